"""Samples listed in Python, as a source of ``Loader``.

Never in here: files that list samples, and data sets of other packages.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from . import _columns, _featherload, _hf_dataset
from ._errors import ConfigError
from ._values import path_text, shown

_Path = str | os.PathLike[str]

# Keys of dicts and columns of tables, the first that is there. Those of list files and tables have
# more; they are detected by the library.
_PATH_COLUMNS = ("path", "file_name", "filename", "filepath", "file_path", "file", "image_path")
_LABEL_COLUMNS = ("label", "labels", "class", "category", "target", "y")


class Items:
    """Samples that are listed in memory: the path of an image file and a label each.

    ::

        items = featherload.Items(["cat/1.jpg", "ant/7.jpg"], ["cat", "ant"], root="data")
        loader = featherload.Loader(items, "train224", batch_size=256)

    ``paths``
        Paths of image files: text or ``os.PathLike``. A list, a tuple, or a column of pandas,
        polars or pyarrow. The id of a sample is its position here, from 0.
    ``labels``
        As many labels, of one kind: whole numbers (NumPy's and torch's too), names of classes,
        floats, or lists of numbers of one length. A list, a tuple, an array, a tensor or a column.
        Names are numbered by their bytes, from 0. None: samples without labels.
    ``root``
        The folder that relative paths start from. Default: the working directory.
    ``classes``
        Class names in the order of their numbers, for labels that are names.
    ``**columns``
        Further values of the samples, as many as there are paths: numbers, texts, bytes, or lists
        of one of these. ``Loader(items, columns=["caption"])`` has them in its batches. They are
        not copied before that.

    Paths and labels are copied once, into memory that all processes share: the bytes of each path
    behind the folder that all paths share, and 8 to 16 bytes a sample. No file is opened before
    its sample is loaded.

    Raises ``ConfigError`` for a path that is empty or an address, a label of another kind than the
    first one's, and lists of different lengths. The error names the position.
    """

    def __init__(
        self,
        paths: Iterable[Any],
        labels: Iterable[Any] | None = None,
        *,
        root: _Path | None = None,
        classes: Sequence[str] | None = None,
        **columns: Any,
    ) -> None:
        all_paths = _listed("paths", paths)
        all_labels = None if labels is None else _listed("labels", labels)
        if all_labels is not None and len(all_labels) != len(all_paths):
            raise ConfigError(
                f"{len(all_paths)} paths have {len(all_labels)} labels: give one label a path",
                option="labels",
            )
        self._raw = _featherload.RawItems(
            all_paths,
            all_labels,
            None if root is None else path_text("root", root),
            None if classes is None else [*classes],
        )
        count = len(all_paths)
        self._columns: dict[str, Callable[[], _columns.Held]] = {
            name: partial(_columns.hold, name, values, count) for name, values in columns.items()
        }

    @classmethod
    def _of_raw(cls, raw: _featherload.RawItems, columns: dict[str, Any]) -> Items:
        items = cls.__new__(cls)
        items._raw, items._columns = raw, columns
        return items

    def _open(self, names: Sequence[str]) -> _columns.HeldColumns | None:
        """The columns ``names``."""
        return _columns.select(names, self._columns, "src")

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
        return f"Items({len(self)} samples in {str(self._raw.root)!r})"


# Tables of other packages are Any: they may not be installed.
Source = _Path | Items | Sequence[Any] | Mapping[str, Any] | Any


def is_path(src: Any) -> bool:
    """Whether ``src`` names a data set, or is none at all."""
    return src is None or isinstance(src, (str, bytes, os.PathLike))


def of(src: Any, image_column: str | None = None, label_column: str | None = None) -> Items:
    """``src`` as items: ``Items``, a list of paths, of ``(path, label)`` or of dicts, a table, or a
    ``datasets.Dataset``, whose columns the other arguments name.

    Raises ``ConfigError`` for anything else, which names its type.
    """
    if isinstance(src, Items):
        return src
    if _hf_dataset.is_one(src):
        return of_hugging_face(_hf_dataset.resolve(src, image_column, label_column))
    columns = _table_columns(src)
    if columns is not None:
        return _of_columns(columns, src)
    if isinstance(src, Mapping):
        return _of_columns({str(name): name for name in src}, src)
    if isinstance(src, (list, tuple)):
        return _of_list(src)
    if isinstance(src, np.ndarray) and src.dtype.kind in "UO":
        return Items(src)
    raise ConfigError(
        f"src is {shown(src)} (type {type(src).__name__}): give a path, featherload.Items, a list "
        "of paths or of (path, label), or a table with a column of paths; a torch Dataset goes to "
        "featherload.torch.DataLoader",
        option="src",
    )


def of_hugging_face(samples: _hf_dataset.HuggingFaceSamples) -> Items:
    """The samples of a ``datasets.Dataset`` as items."""
    return Items._of_raw(samples.raw, samples.columns)


def _of_list(src: Sequence[Any]) -> Items:
    if not src:
        raise ConfigError("src is an empty list: give at least one sample", option="src")
    first = src[0]
    if isinstance(first, Mapping):
        columns = {str(name): name for name in first}
        path, label = _names(columns, "dict")
        for number, row in enumerate(src):
            if not isinstance(row, Mapping) or row.keys() != first.keys():
                raise ConfigError(
                    f"item {number} is {shown(row)}, and item 0 has the keys {shown([*first])}: "
                    "give all items the same keys",
                    option="src",
                )
        items = Items(
            [row[path] for row in src], None if label is None else [row[label] for row in src]
        )
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
                f"item {number} is {shown(src[number])}: give a pair (path, label) like item 0",
                option="src",
            )
        return Items([path for path, _ in pairs], [label for _, label in pairs])
    return Items(src)


def _of_columns(columns: Mapping[str, Any], table: Any) -> Items:
    path, label = _names(columns, type(table).__name__)
    items = Items(table[path], None if label is None else table[label])
    count = len(items)
    items._columns = {
        name: partial(_of_table, name, key, table, count) for name, key in columns.items()
    }
    return items


def _of_table(name: str, key: Any, table: Any, count: int) -> _columns.Held:
    return _columns.hold(name, table[key], count)


def _of_rows(name: str, key: Any, rows: Sequence[Any]) -> _columns.Held:
    return _columns.hold(name, [row[key] for row in rows], len(rows))


def _names(columns: Mapping[str, Any], kind: str) -> tuple[Any, Any]:
    """The columns of paths and of labels; None without labels."""
    path = next((columns[name] for name in _PATH_COLUMNS if name in columns), None)
    if path is None:
        raise ConfigError(
            f"the {kind} has no column of paths among {shown(list(columns))}: rename the column to "
            "path, or give featherload.Items(table[...], table[...])",
            option="src",
        )
    return path, next((columns[name] for name in _LABEL_COLUMNS if name in columns), None)


def _table_columns(src: Any) -> dict[str, Any] | None:
    """Names of the columns of a table of pandas, polars or pyarrow; None for anything else."""
    # pyarrow.Table has `columns` too, which are its data.
    names = getattr(src, "column_names", None)
    if names is None:
        names = getattr(src, "columns", None)
    if names is None or callable(names) or not hasattr(src, "__getitem__"):
        return None
    return {str(name): name for name in names}


def _listed(what: str, values: Any) -> list[Any]:
    """A list, tuple, array, tensor or column as a list of Python's objects."""
    if isinstance(values, list):
        return values
    if isinstance(values, (str, bytes, os.PathLike)):
        raise ConfigError(
            f"{what} is {shown(values)}: give a list, or that path alone as src", option=what
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
