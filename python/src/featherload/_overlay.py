"""Draws masks and objects over the images of a preview, as ``featherload preview`` does.

Each label has its colour of Pascal VOC. An object has the colour of its label plus 1, because 0 is
black.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ._objects import Objects

Levels = npt.NDArray[np.uint8]
"""Height x width x 3."""

_LINE = 250
"""A line is this part of the image's longer side."""


def color_of(label: int) -> Levels:
    """The colour of a label: that of Pascal VOC, whose bits are spread over the channels."""
    # Also of negative numbers, such as -1.
    bits = label & (2**64 - 1)
    levels = [
        sum(((bits >> (3 * n + channel)) & 1) << (7 - n) for n in range(8)) for channel in range(3)
    ]
    return np.array(levels, np.uint8)


def with_mask(image: Levels, labels: Any) -> Levels:
    """The image with a mask of labels, height x width, half transparent. 0 has no colour."""
    drawn = image.copy()
    labels = np.asarray(labels)
    for label in np.unique(labels).tolist():
        if label != 0:
            _blend(drawn, labels == label, color_of(label))
    return drawn


def with_objects(
    image: Levels, objects: Objects, row: int, skeleton: Sequence[Sequence[int]]
) -> Levels:
    """The image with the objects of its row: masks, boxes, keypoints with their skeleton, rotated
    boxes. ``objects``: arrays of NumPy. ``skeleton``: pairs of keypoints.
    """
    drawn = image.copy()
    begin, end = objects.offsets[row : row + 2].tolist()
    colors = [color_of(label + 1) for label in objects.labels[begin:end].tolist()]
    height, width, _ = image.shape
    if objects.masks is not None and objects.masks[row].size:
        for mask, color in zip(objects.masks[row], colors, strict=True):
            # Masks of a quarter are stretched.
            lines = np.arange(height) * mask.shape[0] // height
            columns = np.arange(width) * mask.shape[1] // width
            _blend(drawn, mask[lines][:, columns] != 0, color)
    radius = max(1, max(height, width) // _LINE)
    for at, color in zip(range(begin, end), colors, strict=True):
        x0, y0, x1, y1 = objects.boxes[at].tolist()
        _closed(drawn, [(x0, y0), (x1, y0), (x1, y1), (x0, y1)], color, radius)
        points = objects.keypoints[at].tolist()
        for first, second in skeleton:
            if points and points[first][2] > 0 and points[second][2] > 0:
                _line(drawn, points[first][:2], points[second][:2], color, radius)
        for x, y, seen in points:
            if seen > 0:
                _dot(drawn, x, y, np.full(3, 255, np.uint8), 2 * radius)
        _closed(drawn, corners_of(objects.rotated[at].tolist()), color, radius)
    return drawn


def corners_of(numbers: Sequence[float]) -> list[tuple[float, float]]:
    """The corners of a rotated box: of four corners, or of centre, sides and degrees
    counter-clockwise. Empty without numbers.
    """
    if len(numbers) != 5:
        return list(zip(numbers[::2], numbers[1::2], strict=True))
    x, y, w, h, degrees = numbers
    sin, cos = np.sin(np.radians(-degrees)), np.cos(np.radians(-degrees))
    signs = [(-1, -1), (1, -1), (1, 1), (-1, 1)]
    halves = [(dx * w / 2, dy * h / 2) for dx, dy in signs]
    return [(float(x + a * cos - b * sin), float(y + a * sin + b * cos)) for a, b in halves]


def _blend(image: Levels, inside: Any, color: Levels) -> None:
    mixed = (image[inside].astype(np.uint16) + color) // 2
    image[inside] = mixed.astype(np.uint8)


def _closed(
    image: Levels, corners: Sequence[tuple[float, float]], color: Levels, radius: int
) -> None:
    for start, end in zip(corners, [*corners[1:], *corners[:1]], strict=True):
        _line(image, start, end, color, radius)


def _line(
    image: Levels, start: Sequence[float], end: Sequence[float], color: Levels, radius: int
) -> None:
    height, width, _ = image.shape
    limits = [width, height]
    # A line that leaves the image far behind has no more points than one across it.
    a, b = (
        [min(max(v, -side), 2.0 * side) for v, side in zip(point, limits, strict=True)]
        for point in (start, end)
    )
    steps = int(np.ceil(max(abs(b[0] - a[0]), abs(b[1] - a[1]))))
    for step in range(steps + 1):
        part = step / max(1, steps)
        _dot(image, a[0] + (b[0] - a[0]) * part, a[1] + (b[1] - a[1]) * part, color, radius)


def _dot(image: Levels, x: float, y: float, color: Levels, radius: int) -> None:
    """A square of ``2 * radius + 1`` pixels, where it lies in the image."""
    top, left = int(y) - radius, int(x) - radius
    side = 2 * radius + 1
    image[max(0, top) : max(0, top + side), max(0, left) : max(0, left + side)] = color
