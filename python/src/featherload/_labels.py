"""Finds labels that are positions in an image, such as boxes. No operation moves them.

Uses only the names of columns. Never in here: their values.
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
    | xyxy | xywh | coords? | coordinates? | points | masks? | corners? | quads? | joints?
    | [xy][0-9] | [xy]_?(min|max|center|centre|c|top|left)
    | (min|max|center|centre)_?[xy] | left | top | right | bottom | c[xy]
    )
    ([_.-]([0-9]+|abs|rel|px|coords?|xyxy|xywh))?
    """,
    re.VERBOSE | re.IGNORECASE,
)
# A single column with such a name may also hold classes or a vector of classes.
_AXIS = re.compile(r"(.*[_.-])?[xy]([_.-]([0-9]+|abs|rel|px))?", re.IGNORECASE)
_MOVES = ("resize", "crop", "flip", "rotat", "affine", "perspective", "pad", "zoom", "elastic")


def places(columns: Iterable[str]) -> list[str]:
    """The columns that have names of positions. Of a JSON pointer, the last part counts."""
    named = {column: column.strip().rsplit("/", 1)[-1] for column in columns if column.strip()}
    patterns = (_PLACE, _AXIS) if len(named) > 1 else (_PLACE,)
    return [
        column
        for column, name in named.items()
        if any(pattern.fullmatch(name) for pattern in patterns)
    ]


def moves(ops: Iterable[Any]) -> bool:
    """Whether operations, or operations inside them, move pixels."""
    for op in ops:
        for name, values in op.items():
            if any(part in name for part in _MOVES):
                return True
            if isinstance(values, dict) and moves(values.get("transforms", ())):
                return True
    return False
