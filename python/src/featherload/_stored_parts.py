"""The files of a folder of stored values: parts, in the format of safetensors.

A part has rows of values of samples. Its tensors:

- ``sample.key``: uint8, rows x 16, the key of each sample (``Index::sample_key``);
- ``sample.name`` and ``sample.name.ends``: the names of the samples, one after the other, and the
  end of each;
- ``sample.bytes``: uint64, the length of each sample's file, or the largest number if unknown;
- for each column: its values, one row after the other; ``COLUMN.ends``, the end of each row, in
  numbers; ``COLUMN.shapes``, rows x axes.

A part appears under its name when all of its bytes are on the disk, so a part without an end is
damage. The hash in its name is that of its bytes.

Never in here: which samples a run has.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from ._errors import DatasetError

KEY = 16
"""Bytes of a key."""

KINDS: dict[str, str] = {
    "bool": "BOOL",
    "int8": "I8",
    "int16": "I16",
    "int32": "I32",
    "int64": "I64",
    "uint8": "U8",
    "uint16": "U16",
    "uint32": "U32",
    "uint64": "U64",
    "float16": "F16",
    "bfloat16": "BF16",
    "float32": "F32",
    "float64": "F64",
}
"""Types of numbers, and their names in the format."""

FORMAT = "stored values 1"
UNKNOWN = (1 << 64) - 1
"""In place of a length."""

MOST_AXES = 32
_NAMES = {name: kind for kind, name in KINDS.items()}
_PART = re.compile(r"part-(\d{5,})-(\d{6,})-([0-9a-f]{16})\.safetensors")
_MOST_HEADER = 64 << 20
_PIECE = 1 << 20


def dtype_of(kind: str) -> np.dtype[Any]:
    """NumPy's type for the bytes of numbers. NumPy has no bfloat16: its bits are uint16."""
    return np.dtype("uint16" if kind == "bfloat16" else kind)


@dataclass(frozen=True)
class PartColumn:
    """A column of a part, by its places in the file."""

    kind: str
    values_at: int
    numbers: int
    ends_at: int
    shapes_at: int
    axes: int


@dataclass(frozen=True)
class Part:
    """A part whose header was read."""

    path: Path
    rank: int
    number: int
    rows: int
    crop: str
    recipe: str
    """The hash of the recipe."""
    seed: int
    columns: Mapping[str, PartColumn]
    keys_at: int
    bytes_at: int

    def keys(self) -> npt.NDArray[np.bytes_]:
        """The keys of all rows."""
        with self.open() as file:
            return np.frombuffer(self.read(file, self.keys_at, KEY * self.rows), f"S{KEY}")

    def sample_bytes(self, file: BinaryIO, row: int) -> int | None:
        """The length of the sample of a row when its values were stored."""
        found = int.from_bytes(self.read(file, self.bytes_at + 8 * row, 8), "little")
        return None if found == UNKNOWN else found

    def shapes(self, name: str) -> npt.NDArray[np.int32]:
        """The shapes of all rows of a column, rows x axes."""
        column = self.columns[name]
        with self.open() as file:
            found = self.read(file, column.shapes_at, 4 * self.rows * column.axes)
        return np.frombuffer(found, np.int32).reshape(self.rows, column.axes)

    def open(self) -> BinaryIO:
        try:
            return open(self.path, "rb", buffering=0)
        except OSError as error:
            raise _unreadable(self.path, error) from None

    def read(self, file: BinaryIO, at: int, count: int) -> bytearray:
        """These bytes of the file."""
        found = bytearray(count)
        self.read_into(file, at, memoryview(found))
        return found

    def read_into(self, file: BinaryIO, at: int, into: memoryview) -> None:
        """Fills ``into`` with the bytes from ``at`` on."""
        done = 0
        try:
            while done < len(into):
                read = os.preadv(file.fileno(), [into[done:]], at + done)
                if not read:
                    raise damaged(self.path, "ends before its values")
                done += read
        except OSError as error:
            raise _unreadable(self.path, error) from None

    def row(
        self, file: BinaryIO, name: str, row: int
    ) -> tuple[tuple[int, ...], Callable[[memoryview], None]]:
        """The shape of a row, and what reads its values into memory of their size."""
        column = self.columns[name]
        before = min(row, 1)
        ends = np.frombuffer(
            self.read(file, column.ends_at + 8 * (row - before), 8 + 8 * before), np.int64
        )
        start, end = (int(ends[0]) if before else 0), int(ends[-1])
        found = self.read(file, column.shapes_at + 4 * row * column.axes, 4 * column.axes)
        shape = tuple(np.frombuffer(found, np.int32).tolist())
        fits = 0 <= start <= end <= column.numbers and min(shape, default=0) >= 0
        if not fits or int(np.prod(shape, dtype=np.int64)) != end - start:
            raise damaged(
                self.path, f"row {row} of column {name!r} has other values than its shape"
            )
        size = dtype_of(column.kind).itemsize

        def fill(into: memoryview) -> None:
            self.read_into(file, column.values_at + size * start, into)

        return shape, fill


def damaged(path: Path, why: str) -> DatasetError:
    return DatasetError(
        f"{path}: {why}: remove this file and store its values again with cache.Writer",
        path=str(path),
    )


def _unreadable(path: Path, error: OSError) -> DatasetError:
    return DatasetError(f"{path}: cannot be read: {error.strerror}", path=str(path))


def part_names(folder: Path) -> list[str]:
    """The names of the parts in a folder, sorted by rank and number."""
    try:
        found = [_PART.fullmatch(name) for name in os.listdir(folder)]
    except OSError as error:
        raise _unreadable(folder, error) from None
    parts = [part for part in found if part is not None]
    return [part[0] for part in sorted(parts, key=lambda part: (int(part[1]), int(part[2])))]


def part_name(rank: int, number: int, content: str) -> str:
    """The name of a part with this hash of its bytes."""
    return f"part-{rank:05}-{number:06}-{content}.safetensors"


def read_part(path: Path) -> Part:
    """Reads the header of a part, and checks it."""
    named = _PART.fullmatch(path.name)
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            length = int.from_bytes(file.read(8), "little")
            if not 2 <= length <= min(_MOST_HEADER, size - 8):
                raise damaged(path, "has no header of safetensors")
            text = file.read(length)
    except OSError as error:
        raise _unreadable(path, error) from None
    try:
        header = json.loads(text)
        notes = header.pop("__metadata__")
        if notes["featherload"] != FORMAT:
            raise damaged(path, f"has the format {notes['featherload']!r}, not {FORMAT!r}")
        places = _Places(header, 8 + length, size)
        if max(tensor["data_offsets"][1] for tensor in header.values()) != size - 8 - length:
            raise damaged(path, "does not end with its last value")
        rows, width = places.shape("sample.key", "uint8", 2)
        lengths = places.shape("sample.bytes", "uint64", 1)
        crop, recipe = notes["crop"], notes["recipe"]
        texts = isinstance(crop, str) and isinstance(recipe, str)
        if named is None or width != KEY or lengths != [rows] or rows < 1 or not texts:
            raise ValueError
        names = [name for name in header if f"{name}.ends" in header and name != "sample.name"]
        return Part(
            path=path,
            rank=int(named[1]),
            number=int(named[2]),
            rows=rows,
            crop=crop,
            recipe=recipe,
            seed=int(notes["seed"]),
            columns={name: places.column(name, rows) for name in names},
            keys_at=places.at("sample.key"),
            bytes_at=places.at("sample.bytes"),
        )
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        raise damaged(path, "has a header that cache.Writer does not write") from None


class _Places:
    """The tensors of a header, checked against the size of the file."""

    def __init__(self, header: Mapping[str, Any], start: int, size: int) -> None:
        self._header, self._start, self._size = header, start, size

    def at(self, name: str) -> int:
        return self._start + int(self._header[name]["data_offsets"][0])

    def kind(self, name: str) -> str:
        return _NAMES[self._header[name]["dtype"]]

    def shape(self, name: str, kind: str, axes: int) -> list[int]:
        tensor = self._header[name]
        shape = [int(length) for length in tensor["shape"]]
        start, end = tensor["data_offsets"]
        bytes_ = dtype_of(kind).itemsize
        for length in shape:
            bytes_ *= length
        fits = 0 <= start <= end <= self._size - self._start and end - start == bytes_
        if self.kind(name) != kind or len(shape) != axes or min(shape) < 0 or not fits:
            raise ValueError
        return shape

    def column(self, name: str, rows: int) -> PartColumn:
        kind = self.kind(name)
        (numbers,) = self.shape(name, kind, 1)
        found, axes = self.shape(f"{name}.shapes", "int32", 2)
        if self.shape(f"{name}.ends", "int64", 1) != [rows] or found != rows or axes > MOST_AXES:
            raise ValueError
        places = (self.at(name), numbers, self.at(f"{name}.ends"), self.at(f"{name}.shapes"))
        return PartColumn(kind, *places, axes)


def content_hash(path: Path) -> str:
    """The hash that the name of a part has."""
    hasher = hashlib.blake2b(digest_size=8)
    try:
        with open(path, "rb", buffering=0) as file:
            while piece := file.read(_PIECE):
                hasher.update(piece)
    except OSError as error:
        raise _unreadable(path, error) from None
    return hasher.hexdigest()


def hash_in_name(path: Path) -> str:
    """The hash in the name of a part."""
    named = _PART.fullmatch(path.name)
    return named[3] if named else ""


@dataclass(frozen=True)
class NewRow:
    """A row that is not in a part yet."""

    key: bytes
    name: bytes
    bytes: int | None
    values: Mapping[str, npt.NDArray[Any]]


def part_pieces(
    rows: Sequence[NewRow], kinds: Mapping[str, str], notes: Mapping[str, str]
) -> Iterator[bytes | memoryview]:
    """The bytes of a part: its header, then its values. ``kinds``: the type of each column, all of
    whose rows have the same number of axes.
    """
    names = [row.name for row in rows]
    lengths = [UNKNOWN if row.bytes is None else row.bytes for row in rows]
    tensors: list[tuple[str, str, Sequence[int], list[Any]]] = [
        ("sample.key", "uint8", (len(rows), KEY), [row.key for row in rows]),
        ("sample.name", "uint8", (sum(map(len, names)),), names),
        ("sample.name.ends", "int64", (len(rows),), [_ends([len(name) for name in names])]),
        ("sample.bytes", "uint64", (len(rows),), [np.array(lengths, np.uint64)]),
    ]
    for column, kind in kinds.items():
        arrays = [row.values[column] for row in rows]
        sizes = [array.size for array in arrays]
        shapes = np.array([array.shape for array in arrays], np.int32)
        tensors += [
            (column, kind, (sum(sizes),), arrays),
            (f"{column}.ends", "int64", (len(rows),), [_ends(sizes)]),
            (f"{column}.shapes", "int32", (len(rows), arrays[0].ndim), [shapes]),
        ]
    # Tensors of wide numbers come first, so all of them are aligned.
    tensors.sort(key=lambda tensor: -dtype_of(tensor[1]).itemsize)
    header: dict[str, Any] = {"__metadata__": {"featherload": FORMAT, **notes}}
    at = 0
    for name, kind, shape, _ in tensors:
        size = dtype_of(kind).itemsize * int(np.prod(shape, dtype=np.int64))
        header[name] = {
            "dtype": KINDS[kind],
            "shape": [*shape],
            "data_offsets": [at, at + size],
        }
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    yield len(text).to_bytes(8, "little") + text
    for *_, pieces in tensors:
        for piece in pieces:
            yield piece if isinstance(piece, bytes) else memoryview(piece.reshape(-1)).cast("B")


def _ends(sizes: Sequence[int]) -> npt.NDArray[np.int64]:
    return np.cumsum(np.array(sizes, np.int64))
