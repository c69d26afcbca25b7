"""A ``datasets.Dataset`` of Hugging Face as a source: where its images lie in its files.

Its table is mapped from files, so an image has an address in memory. The map of this process's
memory says which part of which file that is. So it does not matter how the data set was sliced,
shuffled, filtered or joined: workers read images from the files, and nothing is copied. If images
are in memory alone (``from_dict``, ``keep_in_memory``), all are copied once, into memory that all
processes share.

Never in here: decoding, and files that are given by their paths.
"""

from __future__ import annotations

import json
import os
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _columns, _featherload
from ._errors import ConfigError
from ._values import shown

_IMAGES = ("image", "img", "picture", "photo", "images")
_LABELS = ("label", "labels", "class", "category", "target", "y")


def is_one(src: Any) -> bool:
    """Whether ``src`` is an object of ``datasets``."""
    return type(src).__module__.split(".")[0] == "datasets"


def is_folder(src: Any) -> bool:
    """Whether ``src`` is a folder of ``save_to_disk``."""
    names = ("dataset_info.json", "state.json")
    return isinstance(src, (str, os.PathLike)) and all(
        os.path.isfile(os.path.join(os.fsdecode(src), name)) for name in names
    )


def orientation(recipe: Any, given: str | None) -> str | None:
    """The option ``orientation`` for images of such a data set. ``datasets`` turns images upright
    before a transform gets them. A recipe by name, of a file or of a dict says it itself.
    """
    if given is not None or isinstance(recipe, (str, os.PathLike, Mapping)):
        return given
    return "exif"


@dataclass(frozen=True)
class HuggingFaceSamples:
    """The samples of a data set, in its order."""

    raw: _featherload.RawItems
    columns: dict[str, Any]
    classes: list[str]
    objects: HuggingFaceObjects


class HuggingFaceSnapshot:
    """What a loader read of a data set, to find out whether it has changed since."""

    def __init__(self, dataset: Any) -> None:
        self._dataset, self._known = dataset, self._state(dataset)

    @staticmethod
    def _state(dataset: Any) -> tuple[Any, ...]:
        return dataset._fingerprint, len(dataset), dataset.format["type"] == "custom"

    def check(self) -> None:
        if self._state(self._dataset) != self._known:
            raise ConfigError(
                "the Dataset changed after the loader was made, which still has the former "
                "samples: make a new loader",
                option="dataset",
            )


def resolve(
    dataset: Any,
    image_column: str | None = None,
    label_column: str | None = None,
    has_labels: bool = True,
) -> HuggingFaceSamples:
    """The samples of ``dataset``. Reads no image.

    Raises ``ConfigError`` for a transform, and for columns that are missing.
    """
    _check(dataset)
    table, features = dataset.data.table, dataset.features
    image = _image_column(features, image_column)
    label = _label_column(features, label_column, image) if has_labels else None
    order = _order(dataset)
    labels, classes = _labels(dataset, features, label, order)
    raw = _raw(table.column(image), image, order, labels, classes)
    columns = {
        name: partial(_columns.ArrowHeld, name, table.column(name), order)
        for name in table.column_names
    }
    objects = HuggingFaceObjects(table, features, order)
    return HuggingFaceSamples(raw, columns, classes or [], objects)


class HuggingFaceObjects:
    """Columns of objects of a data set: lists of structs, or structs of lists."""

    def __init__(self, table: Any, features: Any, order: npt.NDArray[np.int64] | None) -> None:
        self._table, self._features, self._order = table, features, order

    def read(self, column: str, option: str) -> _featherload.RawObjects:
        """The objects of a column. ``option``: the keyword ``objects`` as JSON.

        Raises ``ConfigError`` if there is no such column, or none of its objects can be used.
        """
        names = self._table.column_names
        if column not in names:
            raise ConfigError(
                f"objects: the Dataset has no column {shown(column)}: its columns are "
                f"{', '.join(names)}",
                option="objects",
            )
        beside = [name for name in _BESIDE if name in names and name != column]
        part = self._table.select([column, *beside])
        count = part.num_rows if self._order is None else len(self._order)
        rows = _featherload.RawObjectRows(option, _classes_inside(self._features[column]))
        for start in range(0, count, _PIECE):
            if self._order is None:
                piece = part.slice(start, _PIECE)
            else:
                piece = part.take(self._order[start : start + _PIECE])
            # Values that JSON lacks are none of an object's.
            texts = (json.dumps(row, default=lambda _: None) for row in piece.to_pylist())
            rows.extend([text.encode() for text in texts])
        return rows.finish()


_BESIDE = ("image_id", "height", "width")
_CATEGORIES = (
    "category",
    "category_id",
    "label",
    "labels",
    "categories",
    "category_ids",
    "class",
    "classes",
    "class_id",
    "class_label",
)
_PIECE = 1024
"""Rows that are in Python at once."""


def _classes_inside(feature: Any) -> list[str] | None:
    """The names of the classes of objects; None if their categories are no classes."""

    def without_list(feature: Any) -> Any:
        while True:
            if isinstance(feature, list) and len(feature) == 1:
                feature = feature[0]
            elif _kind(feature) in ("Sequence", "List", "LargeList"):
                feature = feature.feature
            else:
                return feature

    inside = without_list(feature)
    if not isinstance(inside, Mapping):
        return None
    found = (without_list(inside[name]) for name in _CATEGORIES if name in inside)
    classes = next((one for one in found if _kind(one) == "ClassLabel"), None)
    return None if classes is None else [*classes.names]


def _check(dataset: Any) -> None:
    kind = type(dataset).__name__
    if kind in ("DatasetDict", "IterableDatasetDict"):
        first = next(iter(dataset), "train")
        raise ConfigError(
            f"src is a {kind} of several splits: give one of them, such as src[{first!r}]",
            option="src",
        )
    if not hasattr(dataset, "_indices") or not hasattr(dataset, "data"):
        raise ConfigError(
            f"src is a {kind}, whose samples have no place that workers can read: give a "
            "datasets.Dataset (load_dataset without streaming=True)",
            option="src",
        )
    if dataset.format["type"] == "custom":
        raise ConfigError(
            "the Dataset has a transform (set_transform, with_transform), which workers cannot "
            "call: call dataset.reset_format(), and give the transform as recipe",
            option="src",
        )
    if not len(dataset):
        raise ConfigError("the Dataset has no samples: give one with samples", option="src")


def _kind(feature: Any) -> str:
    return type(feature).__name__


def _image_column(features: Any, named: str | None) -> str:
    if named is not None:
        if named not in features:
            raise _no_column(named, features, "image_column")
        return named
    found = [name for name, feature in features.items() if _kind(feature) == "Image"]
    if not found:
        found = [
            name
            for name, feature in features.items()
            if getattr(feature, "dtype", None) in ("binary", "large_binary")
        ]
    usual = [name for name in _IMAGES if name in found]
    if len(found) == 1 or usual:
        return found[0] if len(found) == 1 else usual[0]
    if found:
        raise ConfigError(
            f"the Dataset has several columns of images ({', '.join(found)}): name one with "
            "image_column",
            option="image_column",
        )
    raise ConfigError(
        f"the Dataset has no column of images among {', '.join(features)}: cast one "
        "(dataset.cast_column(name, datasets.Image()))",
        option="src",
    )


def _label_column(features: Any, named: str | None, image: str) -> str | None:
    if named is not None:
        if named not in features:
            raise _no_column(named, features, "label_column")
        return named
    usual = [name for name in _LABELS if name in features and name != image]
    if usual:
        return usual[0]
    found = [name for name, feature in features.items() if _kind(feature) == "ClassLabel"]
    if len(found) > 1:
        raise ConfigError(
            f"the Dataset has several columns of classes ({', '.join(found)}): name one with "
            "label_column",
            option="label_column",
        )
    names = [name for name in features if name != image]
    label: str | None = found[0] if found else _featherload.usual_label_column(names)
    return label


def _no_column(name: str, features: Any, option: str) -> ConfigError:
    return ConfigError(
        f"the Dataset has no column {shown(name)}: its columns are {', '.join(features)}",
        option=option,
    )


def _order(dataset: Any) -> npt.NDArray[np.int64] | None:
    """The row of the table of each sample; None if they are the samples in order."""
    indices = dataset._indices
    if indices is None:
        return None
    chunks = indices.table.column(0).chunks
    arrays = [chunk.to_numpy(zero_copy_only=True) for chunk in chunks]
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def _labels(
    dataset: Any, features: Any, name: str | None, order: npt.NDArray[np.int64] | None
) -> tuple[list[Any] | None, list[str] | None]:
    if name is None:
        return None, None
    column = dataset.data.table.column(name)
    # Few rows of a large table cost no more than themselves.
    values = (column if order is None else column.take(order)).to_pylist()
    empty = next((at for at, value in enumerate(values) if value is None), None)
    if empty is not None:
        raise ConfigError(
            f"item {empty} has no label in column {name!r}: filter such rows, or remove the "
            "column (dataset.remove_columns)",
            option="src",
        )
    feature = features[name]
    if _kind(feature) != "ClassLabel":
        return values, None
    names = [*feature.names]
    if len({*names}) < len(names):
        # Classes with one name are told apart by their numbers only.
        return values, None
    if not all(0 <= value < len(names) for value in values):
        at = next(at for at, value in enumerate(values) if not 0 <= value < len(names))
        raise ConfigError(
            f"item {at} has the label {values[at]} in column {name!r}, which is not one of its "
            f"{len(names)} classes: remove the column (dataset.remove_columns), as for a test set",
            option="src",
        )
    return values, names


def _raw(
    column: Any,
    name: str,
    order: npt.NDArray[np.int64] | None,
    labels: list[Any] | None,
    classes: list[str] | None,
) -> _featherload.RawItems:
    chunks = [_ImageChunk(chunk, name) for chunk in column.chunks]
    missing = np.concatenate([chunk.missing for chunk in chunks])
    missing = missing if order is None else missing[order]
    if missing.any():
        paths = _paths(column, order)
        if missing.all() and paths is not None:
            return _featherload.RawItems(paths, _named(labels, classes), None, classes)
        if paths is not None:
            at = next((at for at in np.flatnonzero(missing).tolist() if paths[at]), None)
            if at is not None:
                raise ConfigError(
                    f"item {at} has a path and no bytes in column {name!r}, and others have "
                    "bytes: save_to_disk makes bytes of all (datasets.load_from_disk reads them)",
                    option="src",
                )
    maps = _MappedFiles()
    places = [chunk.places(maps, name) for chunk in chunks]
    if None in places:
        images = _images(chunks, order)
        return _featherload.RawItems.in_memory(images, _named(labels, classes), classes)
    files, ats, sizes = (
        np.concatenate(part) for part in zip(*(place for place in places if place), strict=True)
    )
    if order is not None:
        files, ats, sizes = files[order], ats[order], sizes[order]
    packed = (
        files.astype("<u4").tobytes(),
        ats.astype("<u8").tobytes(),
        sizes.astype("<u8").tobytes(),
    )
    return _featherload.RawItems.of_parts(maps.files or [os.devnull], packed, labels, classes)


def _named(labels: list[Any] | None, classes: list[str] | None) -> list[Any] | None:
    """The names of classes, which a list of samples has in place of their numbers."""
    if labels is None or classes is None:
        return labels
    return [classes[label] for label in labels]


def _paths(column: Any, order: npt.NDArray[np.int64] | None) -> list[str | None] | None:
    """The paths of the images; None if the column has none."""
    import pyarrow as pa

    if pa.types.is_struct(column.type):
        if column.type.get_field_index("path") < 0:
            return None
        kind = column.type.field("path").type
        column = pa.chunked_array([chunk.field("path") for chunk in column.chunks], kind)
    elif not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return None
    paths: list[str | None] = (column if order is None else column.take(order)).to_pylist()
    return paths


class _ImageChunk:
    """The images of one chunk of a table: which rows have none, and where the others are."""

    def __init__(self, chunk: Any, name: str) -> None:
        import pyarrow as pa

        kind, count = chunk.type, len(chunk)
        self.missing = chunk.is_null().to_numpy(zero_copy_only=False)
        self._data: Any = None
        self._ends = np.zeros(count + 1, np.int64)
        if pa.types.is_struct(kind) and kind.get_field_index("bytes") >= 0:
            chunk = chunk.field("bytes")
            kind = chunk.type
            self.missing = self.missing | chunk.is_null().to_numpy(zero_copy_only=False)
        elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
            self.missing = np.ones(count, bool)
            return
        if not (pa.types.is_binary(kind) or pa.types.is_large_binary(kind)):
            raise ConfigError(
                f"column {name!r} has the type {kind}, and images are bytes, paths, or a struct of "
                "both: cast it (dataset.cast_column(name, datasets.Image()))",
                option="src",
            )
        _, offsets, data = chunk.buffers()
        if self.missing.all() or data is None:
            return
        self._data = data
        ends: Any = np.frombuffer(offsets, np.int64 if pa.types.is_large_binary(kind) else np.int32)
        self._ends = ends[chunk.offset : chunk.offset + count + 1].astype(np.int64)

    def places(self, maps: _MappedFiles, name: str) -> tuple[Any, Any, Any] | None:
        """For each row: file, offset and length of its bytes. None if they are in memory."""
        nothing = np.zeros(len(self.missing), np.uint64)
        if self._data is None:
            return nothing, nothing, nothing
        found = maps.find(self._data.address, self._data.size, name)
        if found is None:
            return None
        file, at = found
        sizes = np.where(self.missing, 0, self._ends[1:] - self._ends[:-1]).astype(np.uint64)
        ats = np.where(self.missing, 0, at + self._ends[:-1]).astype(np.uint64)
        return np.full(len(nothing), file, np.uint64), ats, sizes

    def image(self, row: int) -> Any:
        """The bytes of a row. Empty without an image."""
        if self.missing[row] or self._data is None:
            return b""
        return memoryview(self._data)[self._ends[row] : self._ends[row + 1]]


def _images(chunks: list[_ImageChunk], order: npt.NDArray[np.int64] | None) -> Iterator[Any]:
    """The bytes of all images, one after the other."""
    firsts = [0, *accumulate(len(chunk.missing) for chunk in chunks)]
    rows: Iterable[int] = range(firsts[-1]) if order is None else order.tolist()
    for row in rows:
        # Chunks may be empty: the last one that begins here has the row.
        at = bisect_right(firsts, row) - 1
        yield chunks[at].image(row - firsts[at])


class _MappedFiles:
    """The files that are mapped into this process, by address."""

    def __init__(self) -> None:
        self.files: list[str] = []
        self._starts: list[int] = []
        self._maps: list[tuple[int, int, str]] = []
        with open("/proc/self/maps", "rb") as lines:
            for line in lines:
                fields = line.rstrip(b"\n").split(maxsplit=5)
                if len(fields) < 6 or not fields[5].startswith(b"/"):
                    continue
                start, end = (int(address, 16) for address in fields[0].split(b"-"))
                self._starts.append(start)
                self._maps.append((end, int(fields[2], 16), os.fsdecode(fields[5])))

    def find(self, address: int, size: int, name: str) -> tuple[int, int] | None:
        """The number of the file that has these bytes in memory, and their offset there. None if no
        file has them."""
        at = bisect_right(self._starts, address) - 1
        end, offset, path = self._maps[at] if at >= 0 else (0, 0, "")
        if address + size > end:
            return None
        if path.endswith(" (deleted)") and not os.path.exists(path):
            raise ConfigError(
                f"the file {path.removesuffix(' (deleted)')} with the images of column {name!r} "
                "was deleted: load the data set again",
                option="src",
            )
        if path not in self.files:
            self.files.append(path)
        return self.files.index(path), offset + address - self._starts[at]
