"""Converts rows, as the model gets them, to images for people.

Never in here: a change of a loader's position.
"""

from __future__ import annotations

import base64
import html
import os
import struct
import textwrap
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _overlay, _values
from ._batch import Batch, RowStatus
from ._featherload import printable
from ._objects import Objects
from ._patches import of_batch as patches_of_batch

Levels = npt.NDArray[np.uint8]
"""Height x width x 3."""

_SHOWN = 256
"""Longer side of an image in a notebook, in pixels."""
_LETTERS = 120
"""The most letters of a caption that are shown."""


@dataclass(frozen=True)
class Row:
    """One row of a batch: its image as levels, its sample and its status."""

    image: Levels
    id: int
    label: Any
    """The class's name, or the label itself."""
    path: Path | None
    status: RowStatus
    fault: str | None
    """Why the sample failed."""
    crop: int | None = None
    """The number of the crop, if the recipe makes several."""
    objects: int | None = None
    """How many objects it has. None without objects."""
    text: str | None = None
    """The caption of the sample. None if the loader has no ``captions``."""

    def caption(self) -> str:
        """What stands below the image."""
        if self.status == RowStatus.PADDING:
            return "padding"
        words = [str(self.id), *([] if self.label is None else [str(self.label)])]
        words += [] if self.crop is None else [f"crop {self.crop}"]
        if self.objects is not None:
            words.append(f"{self.objects} object{'' if self.objects == 1 else 's'}")
        words += [] if self.status == RowStatus.OK else [self.status.name.lower()]
        words += [] if self.text is None else [_shortened(self.text)]
        return " ".join(words)


def _shortened(text: str) -> str:
    """A text in quotes, cut to the first words that fit."""
    return f'"{textwrap.shorten(text, _LETTERS, placeholder=" ...")}"'


class Preview(Sequence[Row]):
    """Rows of a batch: drawn in a notebook, printed as a list, saved as a PNG."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = list(rows)

    def __getitem__(self, at: Any) -> Any:
        return Preview(self._rows[at]) if isinstance(at, slice) else self._rows[at]

    def __len__(self) -> int:
        return len(self._rows)

    def grid(self, columns: int = 8) -> Levels:
        """All images in one, height x width x 3. Empty places are white."""
        _values.whole("columns", columns, 1)
        lines = [self._rows[i : i + columns] for i in range(0, len(self), columns)]
        shape = [max((row.image.shape[axis] for row in self._rows), default=0) for axis in (0, 1)]
        whole = np.full(
            (len(lines) * (shape[0] + 2), min(columns, len(self)) * (shape[1] + 2), 3),
            255,
            np.uint8,
        )
        for y, line in enumerate(lines):
            for x, row in enumerate(line):
                top, left = y * (shape[0] + 2), x * (shape[1] + 2)
                height, width, _ = row.image.shape
                whole[top : top + height, left : left + width] = row.image
        return whole

    def save(self, path: str | os.PathLike[str], columns: int = 8) -> None:
        """Writes ``grid(columns)`` as a PNG."""
        Path(path).write_bytes(_png(self.grid(columns)))

    def __str__(self) -> str:
        lines = []
        for row in self._rows:
            height, width, _ = row.image.shape
            why = "" if row.fault is None else f": {row.fault}"
            line = f"{row.caption()}  {width} x {height}  {row.path or ''}{why}"
            lines.append(printable(line.rstrip()))
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        figures = []
        for row in self._rows:
            step = max(1, -(-max(row.image.shape[:2]) // _SHOWN))
            data = base64.b64encode(_png(row.image[::step, ::step])).decode()
            title = printable(str(row.path or "") if row.fault is None else row.fault)
            title = html.escape(title, quote=True)
            figures.append(
                '<figure style="display:inline-block;margin:4px;vertical-align:top">'
                f'<img title="{title}" src="data:image/png;base64,{data}">'
                f'<figcaption style="max-width:{_SHOWN}px">'
                f"{html.escape(printable(row.caption()))}</figcaption></figure>"
            )
        return "<div>" + "".join(figures) + "</div>"


def of_batch(
    batch: Batch,
    recipe: Mapping[str, Any],
    classes: Sequence[str],
    rows: int,
    masks: Any,
    objects: Objects | None,
    skeleton: Sequence[Sequence[int]],
    texts: Sequence[str] | None,
) -> Preview:
    """The first ``rows`` of a batch in host memory. ``masks``, ``objects``: arrays of NumPy, or
    None. ``skeleton``: pairs of keypoints. ``texts``: the caption of each row.
    """
    images, labels = batch.numpy()
    is_nchw = batch.layout == "nchw"
    raw = batch._raw
    if raw is not None and (found := raw.patches()) is not None:
        patches, is_nchw = patches_of_batch(found, images), False
        images = [patches.image(row) for row in range(len(batch.ids))]
    why = {fault.row: fault.reason for fault in batch.faults}
    ids, paths, statuses = batch.ids, batch.paths(), batch.status
    # Each crop: its number, its images and its recipe.
    crops: list[tuple[int | None, Any, Mapping[str, Any]]] = [(None, images, recipe)]
    if recipe.get("crops"):
        of_each = [crop for crop in recipe["crops"] for _ in range(crop["count"])]
        crops = [(number, images[number], crop) for number, crop in enumerate(of_each)]

    def label_of(i: int) -> Any:
        label = None if labels is None else labels[i]
        if label is not None and np.ndim(label) == 0:
            if 0 <= label < len(classes):
                return classes[label]
            # -1 is a sample without a label.
            return None if label == -1 else int(label)
        return None if label is None else _mixed(label, classes)

    def row(i: int, crop: int | None, image: Any, of: Mapping[str, Any]) -> Row:
        image = np.asarray(image)
        image = image.transpose(1, 2, 0) if is_nchw else image
        if statuses[i] in (RowStatus.PADDING, RowStatus.FAILED):
            # Black. At least one pixel, because a row with its own size may have no pixel.
            height, width = (max(1, side) for side in image.shape[:2])
            levels = np.zeros((height, width, 3), np.uint8)
        else:
            levels = _levels(image, of)
            if masks is not None:
                levels = _overlay.with_mask(levels, masks[i])
            if objects is not None:
                levels = _overlay.with_objects(levels, objects, i, skeleton)
        count = None if objects is None else objects.counts[i]
        return Row(
            levels,
            int(ids[i]),
            label_of(i),
            paths[i],
            statuses[i],
            why.get(i),
            crop,
            count,
            None if texts is None else texts[i],
        )

    return Preview(
        [
            row(i, number, of_crop[i], of)
            for i in range(min(rows, len(ids)))
            for number, of_crop, of in crops
        ]
    )


def _mixed(label: Any, classes: Sequence[str]) -> Any:
    """A vector over the classes as text: its two largest entries."""
    if len(label) != len(classes):
        return [round(float(value), 3) for value in label]
    largest = sorted(range(len(label)), key=lambda i: -label[i])[:2]
    return " + ".join(f"{label[i]:.2f} {classes[i]}" for i in largest if label[i] > 0)


def _levels(image: Any, recipe: Mapping[str, Any]) -> Levels:
    """Height x width x channels as RGB levels, with ``normalize`` reverted."""
    ops = {name: op for op in recipe["ops"] for name, op in op.items()}
    # A fourth channel is zero: PaddleClas' channel_num.
    values: npt.NDArray[np.floating[Any]] = np.asarray(image[..., :3], np.float32)
    if image.dtype == np.uint8:
        values = values / 255
    if "normalize" in ops:
        mean, std = (np.asarray(ops["normalize"][name], np.float32) for name in ("mean", "std"))
        values = values * std + mean
    if {"convert_color", "standardize"} & ops.keys():
        # The values are not colours: each channel is scaled from its minimum to its maximum.
        least = values.min((0, 1))
        values = (values - least) / np.maximum(values.max((0, 1)) - least, 1e-6)
    if "convert_color" not in ops and ops.get("decode", {}).get("color") == "bgr":
        values = values[..., ::-1]
    if values.shape[-1] == 1:
        values = np.repeat(values, 3, axis=-1)
    levels: Levels = (values.clip(0, 1) * 255).round().astype(np.uint8)
    return levels


def _png(image: Levels) -> bytes:
    height, width, _ = image.shape

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + check

    # Each line begins with the number of its filter: none.
    lines = np.zeros((height, width * 3 + 1), np.uint8)
    lines[:, 1:] = image.reshape(height, width * 3)
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(lines.tobytes(), 6))
        + chunk(b"IEND", b"")
    )
