"""Options that many cases share.

The data sets are `default` (24 photo-like JPEGs in 5 classes), `mixed` (37 forms and formats),
`large` (3 of 3840 x 2160), `broken` (16 good, 20 that fail) and `odd` (16 sizes from 1 x 1). The
shared data add `photos` (66) and `fox` (12 of 1080 x 1920).
"""

QUICK = "--num-workers 1 --batch-size 8"
SMALL = "--recipe recipes/resize-shorter.yaml --num-workers 1 --batch-size 4"
NO_LABELS = "--labels none --on-error skip"
