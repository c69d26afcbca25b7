"""Samples listed in Python, as a source of ``Loader``.

Never in here: files that list samples, and data sets of other packages.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from . import _columns, _featherload, _hf_dataset, _options, _pixel_arrays
from ._errors import ConfigError
from ._item_feed import LIMIT, AskedItem, AskedItems
from ._values import path_text, shown

_Path = str | os.PathLike[str]


@dataclass(frozen=True)
class ColumnChoice:
    """What the keywords of ``Loader`` say about a table, or about dicts. None: the usual names."""

    path: str | None = None
    image: str | None = None
    label: str | None = None
    root: Any = None
    has_labels: bool | None = None
    """False: without labels. None: a missing column of labels is worth a warning."""
    columns: Sequence[str] = ()
    """Columns that batches have, and that of captions."""

    @classmethod
    def take(cls, keywords: dict[str, Any]) -> ColumnChoice:
        """Takes them out of the keywords."""
        names = ("path_column", "image_column", "label_column", "root")
        path, image, label, root = (keywords[name] for name in names)
        labels, rule = keywords["labels"], keywords["captions"]
        of_captions = [] if rule is None else [rule.column]
        keywords.update(dict.fromkeys(names), labels=None)
        if path is not None and image is not None:
            raise ConfigError(
                "path_column and image_column are two places of the images: give one of them",
                option="image_column",
            )
        return cls(
            path,
            image,
            label,
            root,
            None if labels is None else labels != "none",
            [*(keywords["columns"] or ()), *of_captions],
        )


class Items:
    """Samples that are listed in memory: an image and a label each.

    ::

        items = featherload.Items(["cat/1.jpg", "ant/7.jpg"], ["cat", "ant"], root="data")
        items = featherload.Items(images=[bytes_of_a_jpeg, bytes_of_a_png], labels=[0, 1])
        items = featherload.Items(images=numpy.load("images.npy"), labels=labels)
        loader = featherload.Loader(items, "train224", batch_size=256)

    ``paths``
        Paths of image files: text or ``os.PathLike``. A list, a tuple, or a column of pandas,
        polars or pyarrow. The id of a sample is its position here, from 0.
    ``images``
        In place of ``paths``: images in memory. A list or column of bytes, each of them an image
        file in any format that is decoded. An array or tensor N x H x W or N x H x W x C, uint8,
        with 1 or 3 channels, or a list of arrays of one image each. The bytes are copied once, into
        memory that all processes share and that counts as memory of the index.

        Or the path of a ``.npy`` file with such an array, or an array that ``numpy.load(file,
        mmap_mode="r")`` returned. Workers then read each image in the file, and nothing is copied.
    ``labels``
        As many labels, of one kind: whole numbers (NumPy's and torch's too), names of classes,
        floats, or lists of numbers of one length. A list, a tuple, an array, a tensor or a column.
        Names are numbered by their bytes, from 0. None: samples without labels.
    ``root``
        The folder that relative ``paths`` start from. Default: the working directory.
    ``classes``
        Class names in the order of their numbers, for labels that are names.
    ``**columns``
        Further values of the samples, as many as there are paths: numbers, texts, bytes, or lists
        of one of these. ``Loader(items, columns=["caption"])`` has them in its batches. Lists and
        arrays are copied, with 8 bytes a value for a list, so a later change of their order has
        no effect. Arrays that cannot be written (``numpy.load(file, mmap_mode="r")``), columns of
        polars and pyarrow, and the lists within a list are not copied.

    Paths and labels are copied once, into memory that all processes share: the bytes of each path
    behind the folder that all paths share, and 8 to 16 bytes a sample. No file is opened before
    its sample is loaded.

    Paths may be addresses (``https://host/a.jpg``, ``s3://bucket/a.jpg``), if all are. Their
    objects are downloaded to ``Loader(..., fetch_dir=)``.

    Raises ``ConfigError`` for a path that is empty or an address of no known store, an array of
    another dtype, shape or order of axes, a label of another kind than the first one's, and lists
    of different lengths. The error names the position. An image that cannot be decoded fails when
    it is loaded, and is named by its place in the list.
    """

    def __init__(
        self,
        paths: Iterable[Any] | None = None,
        labels: Iterable[Any] | None = None,
        *,
        images: Any = None,
        root: _Path | None = None,
        classes: Sequence[str] | None = None,
        **columns: Any,
    ) -> None:
        all_labels = None if labels is None else _listed("labels", labels)
        if images is not None:
            if paths is not None or root is not None:
                raise ConfigError(
                    "images and paths are two ways to give samples, and root is for paths: give "
                    "images alone",
                    option="images",
                )
            self._raw = _of_images(images, all_labels, None if classes is None else [*classes])
        elif paths is None:
            raise ConfigError("no samples are given: give paths or images", option="paths")
        else:
            all_paths = _listed("paths", paths)
            _check_count(len(all_paths), all_labels, "path")
            self._raw = _featherload.RawItems(
                all_paths,
                all_labels,
                None if root is None else path_text("root", root),
                None if classes is None else [*classes],
            )
        count = len(self._raw)
        held = {name: _columns.hold(name, values, count) for name, values in columns.items()}
        self._objects: _hf_dataset.HuggingFaceObjects | None = None
        self._columns: dict[str, Callable[[], _columns.Held]] = {
            name: partial(_columns.Held.itself, column) for name, column in held.items()
        }

    @classmethod
    def _of_raw(
        cls,
        raw: _featherload.RawItems,
        columns: dict[str, Any],
        objects: _hf_dataset.HuggingFaceObjects | None = None,
    ) -> Items:
        items = cls.__new__(cls)
        items._raw, items._columns, items._objects = raw, columns, objects
        return items

    def _open(self, names: Sequence[str]) -> dict[str, _columns.Held]:
        """The columns ``names``."""
        return _columns.select(names, self._columns, "src")

    def _column_names(self) -> Sequence[str]:
        """All columns that can be opened."""
        return [*self._columns]

    def _without_columns(self) -> Items:
        """The same samples. Lists of Python that have their columns can be deleted."""
        return self._of_raw(self._raw, {})

    def __len__(self) -> int:
        return len(self._raw)

    def __reduce__(self) -> Any:
        raise TypeError(
            "Items cannot be pickled, because their memory is shared by inheritance: pickle the "
            "lists of paths and labels, and make Items of them in the other process"
        )

    def __repr__(self) -> str:
        where = "memory" if self._raw.is_in_memory else repr(str(self._raw.root))
        return f"Items({len(self)} samples in {where})"


def _check_count(samples: int, labels: list[Any] | None, what: str) -> None:
    if labels is not None and len(labels) != samples:
        raise ConfigError(
            f"{samples} {what}s have {len(labels)} labels: give one label {_A[what]} {what}",
            option="labels",
        )


_A = {"path": "a", "image": "an"}


def _of_images(
    images: Any, labels: list[Any] | None, classes: list[str] | None
) -> _featherload.RawItems:
    if isinstance(images, (str, os.PathLike)):
        return _of_array_file(_pixel_arrays.check_path(images), labels, classes)
    if _pixel_arrays.is_array(images):
        array = _pixel_arrays.levels("images", images)
        _check_count(len(array), labels, "image")
        file = _pixel_arrays.file_of(array)
        if file is not None:
            return _of_array_file(file, labels, classes)
        if not len(array):
            raise ConfigError("images has no images: give at least one", option="images")
        return _featherload.RawItems.in_memory(_pixel_arrays.parts(array), labels, classes)
    listed = _listed("images", images)
    _check_count(len(listed), labels, "image")
    if listed and all(isinstance(image, _pixel_arrays.PixelRow) for image in listed):
        return _featherload.RawItems.in_memory(_pixel_arrays.parts_of_rows(listed), labels, classes)
    if listed and hasattr(listed[0], "dtype"):
        rows = _pixel_arrays.parts_of_list("images", listed)
        return _featherload.RawItems.in_memory(rows, labels, classes)
    return _featherload.RawItems.in_memory([_image(image) for image in listed], labels, classes)


def _of_array_file(
    path: str, labels: list[Any] | None, classes: list[str] | None
) -> _featherload.RawItems:
    return _featherload.RawItems.of_array_files(
        [(path, None)], None if labels is None else [labels], classes
    )


def _is_image(value: Any) -> bool:
    """Whether ``value`` is the bytes of an image file, or a dict of Hugging Face with them."""
    if isinstance(value, Mapping):
        return isinstance(value.get("bytes"), bytes)
    return isinstance(value, (bytes, bytearray, memoryview))


def _image(value: Any) -> Any:
    return value["bytes"] if isinstance(value, Mapping) and "bytes" in value else value


# Tables of other packages are Any: they may not be installed.
Source = _Path | Items | AskedItems | Sequence[Any] | Mapping[str, Any] | Any


def is_path(src: Any) -> bool:
    """Whether ``src`` names a data set, or is none at all."""
    return src is None or isinstance(src, (str, bytes, os.PathLike))


def taken(keywords: dict[str, Any]) -> Items | AskedItems | None:
    """The samples of the keywords of ``Loader``, which then name no source. None for a path."""
    src, labels = keywords["src"], keywords["labels"]
    if _hf_dataset.is_one(src) or _hf_dataset.is_folder(src):
        keywords["orientation"] = _hf_dataset.orientation(
            keywords["recipe"], keywords["orientation"]
        )
    if labels is None or isinstance(labels, str):
        if is_path(src):
            return None
        items = of(src, ColumnChoice.take(keywords) if _has_columns(src) else ColumnChoice())
    else:
        items = with_labels(src, labels)
        keywords["labels"] = None
    _options.check_items(keywords)
    keywords["src"] = None
    return items


def with_labels(src: Any, labels: Any) -> Items:
    """Images and their labels: an array, the path of a ``.npy`` file, or a list of bytes or paths.

    Raises ``ConfigError`` for other sources, which have labels of their own.
    """
    is_file = isinstance(src, (str, os.PathLike)) and os.fspath(src).endswith(".npy")
    if is_file or _pixel_arrays.is_array(src):
        return Items(images=src, labels=labels)
    if isinstance(src, (list, tuple)) and src and not isinstance(src[0], (tuple, Mapping)):
        if _is_image(src[0]) or hasattr(src[0], "dtype"):
            return Items(images=src, labels=labels)
        return Items(src, labels)
    raise ConfigError(
        f"labels={shown(labels)} goes with an array, a .npy file, or a list of images or paths: "
        "for others, labels is 'auto' or 'none'",
        option="labels",
    )


def _has_columns(src: Any) -> bool:
    """Whether it is a table, dicts, or a ``datasets.Dataset``."""
    return (
        _hf_dataset.is_one(src)
        or isinstance(src, Mapping)
        or (isinstance(src, (list, tuple)) and bool(src) and isinstance(src[0], Mapping))
        or (not isinstance(src, np.ndarray) and _table_columns(src) is not None)
    )


def of(src: Any, choice: ColumnChoice) -> Items | AskedItems:
    """``src`` as items: ``Items``, a list of paths, of images in memory, of pairs with a label or
    of dicts, an array of images, a table, a data set of torch, or a ``datasets.Dataset``.

    Raises ``ConfigError`` for anything else, which names its type.
    """
    if isinstance(src, (Items, AskedItems)):
        return src
    if _hf_dataset.is_one(src):
        if choice.path is not None or choice.root is not None:
            raise ConfigError(
                "path_column and root are for tables, and a Dataset has a column of images: give "
                "image_column",
                option="path_column" if choice.root is None else "root",
            )
        has_labels = choice.has_labels is not False
        return of_hugging_face(_hf_dataset.resolve(src, choice.image, choice.label, has_labels))
    if isinstance(src, np.ndarray) and src.dtype.kind in "UO":
        return Items(src)
    if _pixel_arrays.is_array(src) and not hasattr(src, "columns"):
        return Items(images=src)
    columns = _table_columns(src)
    if columns is not None:
        return _of_columns(columns, src, choice)
    if isinstance(src, Mapping):
        return _of_columns({str(name): name for name in src}, src, choice)
    if isinstance(src, (list, tuple)):
        return _of_list(src, choice)
    if _is_dataset(src):
        return _of_dataset(src)
    raise ConfigError(
        f"src is {shown(src)} (type {type(src).__name__}): give a path, featherload.Items, a list "
        "of paths or of (path, label), an array of images, or a table with a column of paths or "
        "images",
        option="src",
    )


def of_hugging_face(samples: _hf_dataset.HuggingFaceSamples) -> Items:
    """The samples of a ``datasets.Dataset`` as items."""
    return Items._of_raw(samples.raw, samples.columns, samples.objects)


def _is_dataset(src: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(src, torch.utils.data.Dataset)


def _of_dataset(dataset: Any) -> Items | AskedItems:
    from . import _file_lists

    files = _file_lists.resolve(dataset)
    if any(getattr(leaf, "transform", None) is not None for leaf in files.leaves):
        warnings.warn(
            f"the transform of the {type(dataset).__name__} is not used: recipe (by default "
            "train224) says what is done with images. Give the transform as recipe, or use "
            "featherload.torch.DataLoader",
            UserWarning,
            stacklevel=_outside(),
        )
    return of_samples(files.samples, files.first_target)


def of_samples(
    samples: Sequence[tuple[Any, Any]], first_target: Any, limit: int = LIMIT
) -> Items | AskedItems:
    """Items of pairs of an image (a path, a row of an array, an item that is asked) and a target.
    ``first_target``, ``limit``: for items that are asked.
    """
    if not samples:
        raise ConfigError("the data set has no samples: give one with samples", option="src")
    if isinstance(samples[0][0], AskedItem):
        return AskedItems([item for item, _ in samples], first_target, limit)
    images, targets = [image for image, _ in samples], [target for _, target in samples]
    labels = None if all(target is None for target in targets) else targets
    if isinstance(images[0], _pixel_arrays.PixelRow):
        return Items(images=images, labels=labels)
    return Items(images, labels)


def _of_list(src: Sequence[Any], choice: ColumnChoice) -> Items:
    if not src:
        raise ConfigError("src is an empty list: give at least one sample", option="src")
    first = src[0]
    if isinstance(first, Mapping):
        columns = {str(name): name for name in first}
        path, label = _names(columns, "dict", first.__getitem__, choice)
        for number, row in enumerate(src):
            if not isinstance(row, Mapping) or row.keys() != first.keys():
                raise ConfigError(
                    f"item {number} is {shown(row)}, and item 0 has the keys {shown([*first])}: "
                    "give all items the same keys",
                    option="src",
                )
        labels = None if label is None else [row[label] for row in src]
        items = _of_values([row[path] for row in src], labels, choice.root)
        items._columns = {name: partial(_of_rows, name, key, src) for name, key in columns.items()}
        return items
    if isinstance(first, (list, tuple)):
        pairs = [row for row in src if isinstance(row, (list, tuple)) and len(row) == 2]
        if len(pairs) != len(src):
            number = next(
                n
                for n, row in enumerate(src)
                if not isinstance(row, (list, tuple)) or len(row) != 2
            )
            raise ConfigError(
                f"item {number} is {shown(src[number])}: give pairs (path, label), or dicts such "
                "as {'path': ..., 'label': ..., 'caption': ...}",
                option="src",
            )
        return _of_values([image for image, _ in pairs], [label for _, label in pairs])
    _check_no_shards(src)
    return _of_values(src, None)


def _check_no_shards(paths: Sequence[Any]) -> None:
    if isinstance(paths[0], (str, os.PathLike)) and os.fspath(paths[0]).endswith(".tar"):
        folder = os.path.dirname(os.fspath(paths[0]))
        raise ConfigError(
            f"src is a list of tar shards, such as {shown(paths[0])}: give a pattern, such as "
            f"{os.path.join(folder, '*.tar')!r}, or braces, such as 'train-{{000..127}}.tar'",
            option="src",
        )


def _of_columns(columns: Mapping[str, Any], table: Any, choice: ColumnChoice) -> Items:
    def first(name: Any) -> Any:
        values = _listed("src", table[name])
        return values[0] if values else None

    path, label = _names(columns, type(table).__name__, first, choice)
    labels = None if label is None else table[label]
    items = _of_values(_listed("src", table[path]), labels, choice.root)
    count = len(items)
    items._columns = {
        name: partial(_of_table, name, key, table, count) for name, key in columns.items()
    }
    return items


def _of_table(name: str, key: Any, table: Any, count: int) -> _columns.Held:
    return _columns.hold(name, table[key], count)


def _of_rows(name: str, key: Any, rows: Sequence[Any]) -> _columns.Held:
    return _columns.hold(name, [row[key] for row in rows], len(rows))


def _of_values(values: Sequence[Any], labels: Any, root: Any = None) -> Items:
    """Items of paths or of images in memory."""
    if values and (_is_image(values[0]) or hasattr(values[0], "dtype")):
        return Items(images=values, labels=labels)
    return Items(values, labels, root=root)


def _names(
    columns: Mapping[str, Any], kind: str, first: Callable[[Any], Any], choice: ColumnChoice
) -> tuple[Any, Any]:
    """The columns of images or paths, and of labels; None without labels. ``first``: the first
    value of a column.
    """
    for option, name in (
        ("path_column", choice.path),
        ("image_column", choice.image),
        ("label_column", choice.label),
    ):
        if name is not None and name not in columns:
            raise ConfigError(
                f"the {kind} has no column {name!r}: its columns are {shown(list(columns))}",
                option=option,
            )
    path = choice.path or choice.image
    label = choice.label if choice.has_labels is not False else None
    rest = [name for name in columns if name != label]
    if path is None:
        images = _featherload.usual_image_columns(rest)
        path = next((name for name in images if _is_image_value(first(columns[name]))), None)
    if path is None:
        path = _featherload.usual_path_column(rest)
    if path is None:
        raise ConfigError(
            f"the {kind} has no column of paths or of images as bytes among "
            f"{shown(list(columns))}: name it with path_column or image_column",
            option="src",
        )
    if label is None and choice.has_labels is not False:
        rest = [name for name in columns if name != path]
        label = _featherload.usual_label_column(rest)
        others = [name for name in rest if name not in choice.columns]
        if label is None and others and choice.has_labels is None:
            warnings.warn(
                f"no column of the {kind} is known to hold labels among {shown(others)}, so the "
                "samples have none: name it with label_column, or give labels='none'",
                UserWarning,
                stacklevel=_outside(),
            )
    return columns[path], None if label is None else columns[label]


def _is_image_value(value: Any) -> bool:
    return _is_image(value) or hasattr(value, "dtype")


def _outside() -> int:
    """The ``stacklevel`` of the first caller outside the package."""
    frame, level = sys._getframe(1), 1
    while frame is not None and frame.f_globals.get("__package__") == __package__:
        frame, level = frame.f_back, level + 1  # type: ignore[assignment]
    return level


def _table_columns(src: Any) -> dict[str, Any] | None:
    """Names of the columns of a table of pandas, polars or pyarrow; None for anything else."""
    # pyarrow.Table has `columns` too, which are its data.
    names = getattr(src, "column_names", None)
    if names is None:
        names = getattr(src, "columns", None)
    if names is None or callable(names) or not hasattr(src, "__getitem__"):
        return None
    listed = [*map(str, names)]
    for at, name in enumerate(listed):
        if name in listed[:at]:
            raise ConfigError(
                f"the {type(src).__name__} has two columns of the name {name!r}: rename one",
                option="src",
            )
    return dict(zip(listed, names, strict=True))


def _listed(what: str, values: Any) -> list[Any]:
    """A list, tuple, array, tensor or column as a list of Python's objects."""
    if isinstance(values, list):
        return values
    if isinstance(values, (str, bytes, os.PathLike)):
        raise ConfigError(
            f"{what} is {shown(values)}: give a list, or that path alone as src", option=what
        )
    if isinstance(values, Mapping):
        raise ConfigError(
            f"{what} is {shown(values)}, and the keys of a dict are no samples: give a list, or "
            "the dict to Loader as a table",
            option=what,
        )
    for method in ("to_pylist", "to_list", "tolist"):
        convert = getattr(values, method, None)
        if convert is not None:
            listed = convert()
            if isinstance(listed, list):
                return listed
    try:
        return [*values]
    except TypeError:
        raise ConfigError(
            f"{what} is {shown(values)} (type {type(values).__name__}): give a list", option=what
        ) from None
