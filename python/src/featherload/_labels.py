"""Labels that are places in a picture: no operation moves them.

By the names of columns alone. Never in here: their values.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

_PLACE = re.compile(
    r"""
    (.*[_.-])?
    ( b?box(es)? | bounding_?box(es)? | rect(angle)?s? | roi | rois
    | key_?points? | landmarks? | polygons? | segmentations?
    | [xy] | [xy][0-9] | [xy]_?(min|max|center|centre|c|top|left)
    | (min|max|center|centre)_?[xy] | left | top | right | bottom | c[xy]
    )
    ([_.-]([0-9]+|abs|rel|px|coords?|xyxy|xywh))?
    """,
    re.VERBOSE | re.IGNORECASE,
)
_MOVES = ("resize", "crop", "flip", "rotat", "affine", "perspective", "pad", "zoom", "elastic")


def is_place(column: str) -> bool:
    """Whether a column's name, or the last part of a JSON pointer, is that of a place."""
    return _PLACE.fullmatch(column.strip().rsplit("/", 1)[-1]) is not None


def moves(ops: Iterable[Any]) -> bool:
    """Whether operations move pixels, alone or within others."""
    for op in ops:
        for name, values in op.items():
            if any(part in name for part in _MOVES):
                return True
            if isinstance(values, dict) and moves(values.get("transforms", ())):
                return True
    return False
