"""Arrays of many images, as parts that the extension copies.

Never in here: files of images, and data sets of other packages.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ._errors import ConfigError
from ._values import shown

# Bytes of pixels that are copied at a time.
_PART = 16 << 20

Part = tuple[list[int], bytes]
"""The sides of an array, and its bytes in C order."""


class PixelRow(NamedTuple):
    """One image of an array."""

    array: npt.NDArray[np.uint8]
    row: int

    @property
    def is_grey(self) -> bool:
        return self.array.ndim == 3

    @property
    def size(self) -> tuple[int, int]:
        """Height and width."""
        return self.array.shape[1], self.array.shape[2]


def is_array(value: Any) -> bool:
    """Whether ``value`` is an array of NumPy, or a tensor of torch or another library."""
    return isinstance(value, np.ndarray) or (
        hasattr(value, "__array__")
        and hasattr(value, "shape")
        and hasattr(value, "dtype")
        # A column of pandas or polars has one axis.
        and len(value.shape) > 1
    )


def levels(what: str, value: Any) -> npt.NDArray[np.uint8]:
    """``value`` as an array of NumPy, which is not copied. Its numbers are levels, 0 to 255."""
    array = np.asarray(value.detach().cpu() if hasattr(value, "detach") else value)
    if array.dtype != np.uint8:
        raise ConfigError(
            f"{what} has dtype {array.dtype}, and images are uint8 from 0 to 255: convert it, such "
            "as (array * 255).round().astype(numpy.uint8) for floats from 0 to 1",
            option=what,
        )
    if array.ndim not in (3, 4):
        raise ConfigError(
            f"{what} has shape {array.shape}: give N x H x W, or N x H x W x C with 1 or 3 "
            "channels",
            option=what,
        )
    return array


def file_of(array: npt.NDArray[np.uint8]) -> str | None:
    """The file of NumPy that ``array`` maps whole, as ``numpy.load(file, mmap_mode="r")`` does."""
    name = getattr(array, "filename", None)
    if not isinstance(array, np.memmap) or name is None or not array.flags.c_contiguous:
        return None
    path = os.fspath(name)
    if not str(path).endswith(".npy"):
        return None
    try:
        whole = np.load(path, mmap_mode="r")
    except (OSError, ValueError):
        return None
    # A slice has another shape.
    return str(path) if (whole.shape, whole.dtype) == (array.shape, array.dtype) else None


def parts(array: npt.NDArray[np.uint8], rows: Sequence[int] | None = None) -> Iterator[Part]:
    """The images of ``array`` at ``rows``, or all, a few MiB at a time."""
    count = len(array) if rows is None else len(rows)
    at_a_time = max(1, _PART // max(1, int(np.prod(array.shape[1:]))))
    for first in range(0, count, at_a_time):
        chosen = slice(first, first + at_a_time)
        part = array[chosen] if rows is None else array[np.asarray(rows[chosen])]
        yield [*part.shape], part.tobytes()


def parts_of_rows(rows: Sequence[PixelRow]) -> Iterator[Part]:
    """Images of several arrays, in their order."""
    first = 0
    while first < len(rows):
        array = rows[first].array
        end = first
        while end < len(rows) and rows[end].array is array:
            end += 1
        yield from parts(array, [row.row for row in rows[first:end]])
        first = end


def parts_of_list(what: str, images: Sequence[Any]) -> Iterator[Part]:
    """Arrays of one image each: H x W or H x W x C."""
    for number, image in enumerate(images):
        array = np.asarray(image.detach().cpu() if hasattr(image, "detach") else image)
        if array.dtype != np.uint8 or array.ndim not in (2, 3):
            raise ConfigError(
                f"item {number} of {what} has dtype {array.dtype} and shape {array.shape}: give "
                "uint8 arrays of H x W or H x W x C",
                option=what,
            )
        # The axis of channels tells a narrow grey image from one in colour.
        whole = array[None, ..., None] if array.ndim == 2 else array[None]
        yield [*whole.shape], whole.tobytes()


def check_path(images: Any) -> str:
    """The path of a file of NumPy."""
    path = os.fsdecode(images)
    if not path.endswith(".npy"):
        raise ConfigError(
            f"images is {shown(images)}: give an array, a list of bytes, or the path of a .npy "
            "file; paths of images go to paths",
            option="images",
        )
    return path
