"""Options that many cases have.

The sets: `default` (24 photo-like JPEGs in 5 classes), `mixed` (37 forms and formats), `large`
(3 of 3840 x 2160), `broken` (16 good, 20 that fail), `odd` (16 sizes from 1 x 1), and from the
shared data `photos` (66) and `fox` (12 of 1080 x 1920).
"""

QUICK = "--num-workers 1 --batch-size 8"
SMALL = "--recipe recipes/resize-shorter.yaml --num-workers 1 --batch-size 4"
NO_LABELS = "--labels none --on-error skip"
