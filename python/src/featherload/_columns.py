"""Columns: further values of samples, such as captions and scores, for the rows of a batch.

Columns of files are read by the library. Those of lists, tables and data sets in Python are read
here, where they are: no value is copied before a batch is asked for it.

Never in here: which rows a batch has, and pixels.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ._errors import ConfigError
from ._featherload import RawBatch
from ._values import shown

Rows = Sequence[int | None]
"""Samples of a batch; None for a row of padding."""

_PADDING = 2


class Ragged(NamedTuple):
    """Numbers of a column whose rows have different counts."""

    values: Any
    """The numbers of all rows, one after the other; N x K for lists of K numbers each."""
    offsets: Any
    """Row ``i`` has ``values[offsets[i]:offsets[i + 1]]``; int64, one more than there are rows."""

    def rows(self) -> list[Any]:
        """The numbers of each row."""
        return [self.values[a:b] for a, b in zip(self.offsets, self.offsets[1:], strict=False)]


class Held(ABC):
    """The values of one column, in the order of the samples."""

    @abstractmethod
    def read(self, rows: Rows) -> Any:
        """The values of these samples: an array, a list, or ``Ragged``."""


class HeldColumns:
    """Columns that Python holds, by name."""

    def __init__(self, columns: Mapping[str, Held]) -> None:
        self._columns = columns

    def names(self) -> list[str]:
        return [*self._columns]

    def read(self, name: str, raw: RawBatch) -> Any:
        if name not in self._columns:
            raise missing(name, self._columns, "this run")
        ids = np.asarray(raw.ids()).tolist()
        rows = [
            None if status == _PADDING else sample
            for sample, status in zip(ids, raw.status(), strict=True)
        ]
        return self._columns[name].read(rows)


def missing(name: str, columns: Iterable[str], where: str) -> ConfigError:
    known = ", ".join(map(repr, columns))
    there = f"the columns of {where} are {known}" if known else f"{where} has no columns"
    fix = "name those to read with columns=[...]"
    if where == "src" and not known:
        fix = "give a table, dicts, or Items with the values as a keyword"
    return ConfigError(f"no column {shown(name)}: {there}; {fix}", option="columns")


def checked(columns: Any) -> list[str] | None:
    """The names of ``columns=``."""
    if columns is None:
        return None
    if isinstance(columns, (str, bytes)) or not isinstance(columns, Iterable):
        raise ConfigError(
            f"columns is {shown(columns)}: give a list of names, such as ['caption']",
            option="columns",
        )
    names = [*columns]
    for name in names:
        if not isinstance(name, str):
            raise ConfigError(
                f"columns has {shown(name)}, which is no text: give names, such as 'caption'",
                option="columns",
            )
    return names


def select(
    names: Sequence[str], columns: Mapping[str, Callable[[], Held]], where: str
) -> HeldColumns | None:
    """The columns ``names``; None without any."""
    for at, name in enumerate(names):
        if name not in columns:
            raise missing(name, columns, where)
        if name in names[:at]:
            raise ConfigError(f"column {name!r} is named twice: name it once", option="columns")
    return HeldColumns({name: columns[name]() for name in names}) if names else None


def of_raw(raw: RawBatch, name: str) -> Any:
    """The values of a column of files."""
    found = raw.column(name)
    if isinstance(found, list):
        return found
    kind, numbers, width = found[:3]
    values = np.frombuffer(numbers, dtype=kind)
    values = values if width is None else values.reshape(-1, width)
    return Ragged(values, np.frombuffer(found[3], dtype=np.int64)) if len(found) > 3 else values


def beside(values: Any, images: Any) -> Any:
    """Numbers as arrays of the framework of ``images``, on the same device."""
    first = images[0] if isinstance(images, list) and images else images
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(first, torch.Tensor):
        return values
    if isinstance(values, Ragged):
        return Ragged(*(torch.from_numpy(array).to(first.device) for array in values))
    return torch.from_numpy(values).to(first.device) if isinstance(values, np.ndarray) else values


class _Array(Held):
    def __init__(self, values: npt.NDArray[Any]) -> None:
        self._values = values

    def read(self, rows: Rows) -> Any:
        values = self._values[[0 if row is None else row for row in rows]]
        padding = [at for at, row in enumerate(rows) if row is None]
        values[padding] = 0
        return values


class _Objects(Held):
    """Texts, bytes, lists of texts, or lists of numbers."""

    def __init__(self, name: str, values: Any, first: Any) -> None:
        self._name, self._values = name, values
        # An empty list has no kind.
        inner = next(iter(first), None) if isinstance(first, (list, tuple)) else None
        self._kind: type = str if first is None else type(first)
        self._is_ragged = not isinstance(first, (str, bytes, type(None))) and not isinstance(
            inner, str
        )

    def read(self, rows: Rows) -> Any:
        values = [None if row is None else self._values[row] for row in rows]
        if self._is_ragged:
            return _joined(self._name, rows, values)
        lists = issubclass(self._kind, (list, tuple))
        for row, value in zip(rows, values, strict=True):
            kinds = (list, tuple) if lists else (self._kind,)
            if value is not None and not isinstance(value, kinds):
                raise _unlike(self._name, row, value)
        blank: Any = [] if lists else self._kind()
        if lists:
            return [[] if value is None else [*value] for value in values]
        return [
            blank if row is None else _none(value) for row, value in zip(rows, values, strict=True)
        ]


def _unlike(name: str, row: int | None, value: Any) -> ConfigError:
    return ConfigError(
        f"column {name!r} has {shown(value)} at item {row}, unlike items before: give texts, "
        "bytes, numbers, or lists of one of these",
        option="columns",
    )


def _joined(
    name: str, rows: Rows, values: Sequence[Any], dtype: np.dtype[Any] | None = None
) -> Ragged:
    """Lists of numbers, or of lists of numbers of one length. None: an empty list."""
    arrays = []
    for row, value in zip(rows, values, strict=True):
        try:
            arrays.append(np.asarray([] if value is None else value, dtype))
        except (TypeError, ValueError):
            raise _unlike(name, row, value) from None
    filled = [array for array in arrays if array.size]
    for row, array in zip(rows, arrays, strict=True):
        alike = not array.size or (
            array.dtype.kind in "biuf"
            and array.ndim in (1, 2)
            and array.shape[1:] == filled[0].shape[1:]
        )
        if not alike:
            raise _unlike(name, row, array.tolist())
    offsets = np.array([0, *accumulate(len(array) for array in arrays)], np.int64)
    return Ragged(np.concatenate(filled) if filled else np.zeros(0, dtype), offsets)


def _none(value: Any) -> Any:
    return None if isinstance(value, float) else value


class ArrowHeld(Held):
    """A column of pyarrow. ``order``: the row of each sample, if rows are not samples in order."""

    def __init__(self, name: str, column: Any, order: npt.NDArray[Any] | None = None) -> None:
        chunks = column.chunks if hasattr(column, "chunks") else [column]
        self._chunks = [getattr(chunk, "storage", chunk) for chunk in chunks]
        self._firsts = [0, *accumulate(map(len, self._chunks))][:-1]
        self._order, self._name = order, name
        kind = getattr(column.type, "storage_type", column.type)
        self._read = self._reader(kind)

    def _reader(self, kind: Any) -> Callable[[Rows], Any]:
        import pyarrow as pa

        if pa.types.is_dictionary(kind):
            # A scalar has the value that its number stands for.
            kind = kind.value_type
            if _is_number(kind):
                return lambda rows: self._numbers(rows, kind)
        is_text = {"string", "large_string", "string_view"}
        is_bytes = {"binary", "large_binary", "binary_view"}
        if str(kind) in is_text:
            return lambda rows: self._objects(rows, "")
        if str(kind) in is_bytes or pa.types.is_fixed_size_binary(kind):
            return lambda rows: self._objects(rows, b"")
        if _is_number(kind):
            return lambda rows: self._numbers(rows, kind)
        inner = kind.value_type if hasattr(kind, "value_type") else None
        if inner is not None:
            fixed = pa.types.is_fixed_size_list(kind)
            if str(inner) in is_text:
                return lambda rows: [value or [] for value in self._objects(rows, [])]
            if _is_number(inner):
                return (lambda rows: self._fixed(rows, kind)) if fixed else self._ragged(inner, ())
            if not fixed and pa.types.is_fixed_size_list(inner) and _is_number(inner.value_type):
                return self._ragged(inner.value_type, (inner.list_size,))
            deeper = getattr(inner, "value_type", None)
            if not fixed and deeper is not None and _is_number(deeper):
                dtype = np.dtype(deeper.to_pandas_dtype())
                return lambda rows: _joined(self._name, rows, self._objects(rows, []), dtype)
        nested = inner is not None and getattr(inner, "value_type", None) is not None
        fix = "give numbers, text, bytes, or lists of them"
        if nested:
            fix = (
                "give one list of all numbers a row, and the lengths of its parts as a second "
                "column"
            )
        raise ConfigError(
            f"column {self._name!r} has the type {kind}, which no batch has: {fix}",
            option="columns",
        )

    def read(self, rows: Rows) -> Any:
        return self._read(rows)

    def _scalar(self, sample: int) -> Any:
        row = sample if self._order is None else int(self._order[sample])
        # Chunks may be empty: the last one that begins here has the row.
        at = bisect_right(self._firsts, row) - 1
        return self._chunks[at][row - self._firsts[at]]

    def _objects(self, rows: Rows, blank: Any) -> list[Any]:
        return [blank if row is None else self._scalar(row).as_py() for row in rows]

    def _numbers(self, rows: Rows, kind: Any) -> npt.NDArray[Any]:
        dtype = np.dtype(kind.to_pandas_dtype())
        values = self._objects(rows, 0)
        for at, value in enumerate(values):
            if value is None:
                if dtype.kind != "f":
                    raise self._no_value(rows[at], dtype)
                values[at] = np.nan
        return np.array(values, dtype)

    def _fixed(self, rows: Rows, kind: Any) -> npt.NDArray[Any]:
        dtype = np.dtype(kind.value_type.to_pandas_dtype())
        values = np.zeros((len(rows), kind.list_size), dtype)
        for at, row in enumerate(rows):
            if row is None:
                continue
            scalar = self._scalar(row)
            if scalar.is_valid:
                values[at] = scalar.values.to_numpy(zero_copy_only=False)
            elif dtype.kind == "f":
                values[at] = np.nan
            else:
                raise self._no_value(row, dtype)
        return values

    def _ragged(self, kind: Any, shape: tuple[int, ...]) -> Callable[[Rows], Ragged]:
        dtype = np.dtype(kind.to_pandas_dtype())

        def read(rows: Rows) -> Ragged:
            arrays = [np.zeros((0, *shape), dtype)]
            for row in rows:
                scalar = None if row is None else self._scalar(row)
                values = None if scalar is None else scalar.values
                if values is None:
                    arrays.append(arrays[0])
                    continue
                flat = values.flatten() if shape else values
                array = flat.to_numpy(zero_copy_only=False).astype(dtype, copy=False)
                arrays.append(array.reshape(-1, *shape))
            offsets = np.array([*accumulate(map(len, arrays))], np.int64)
            return Ragged(np.concatenate(arrays), offsets)

        return read

    def _no_value(self, row: int | None, dtype: np.dtype[Any]) -> ConfigError:
        return ConfigError(
            f"column {self._name!r} has no value at item {row}, which {dtype} cannot express: "
            "fill the column, or store it as fractions",
            option="columns",
        )


def _is_number(kind: Any) -> bool:
    import pyarrow as pa

    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))


def hold(name: str, values: Any, count: int) -> Held:
    """A column of any kind: list, tuple, array, tensor, or column of pandas, polars or pyarrow.

    Raises ``ConfigError`` for another count of values than there are samples, and for values that
    no batch has.
    """
    if type(values).__module__.split(".")[0] == "polars" and "pyarrow" in sys.modules:
        values = values.to_arrow()
    if type(values).__module__.split(".")[0] == "pyarrow":
        _check_count(name, len(values), count)
        return ArrowHeld(name, values)
    if hasattr(values, "to_numpy") and _plain_numbers(values):
        values = values.to_numpy()
    elif hasattr(values, "detach"):
        values = values.detach().cpu().numpy()
    if isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
        _check_count(name, len(values), count)
        return _Array(values)
    if not isinstance(values, (list, tuple)):
        for method in ("to_pylist", "to_list", "tolist"):
            convert = getattr(values, method, None)
            if convert is not None:
                values = convert()
                break
        else:
            values = [*values]
    _check_count(name, len(values), count)
    first = next((value for value in values if value is not None), None)
    if isinstance(first, (bool, int, float, np.generic)) and not isinstance(first, (str, bytes)):
        if isinstance(first, float) and any(isinstance(value, str) for value in values):
            # pandas has NaN for a missing text.
            return _Objects(name, values, "")
        return _Array(_number_array(name, values))
    if first is None or isinstance(first, (str, bytes, list, tuple, np.ndarray)):
        lists = (value for value in values if value is not None and len(value))
        return _Objects(
            name, values, first if isinstance(first, (str, bytes)) else next(lists, first)
        )
    raise ConfigError(
        f"column {name!r} has {shown(first)} (type {type(first).__name__}): give numbers, texts, "
        "bytes, or lists of one of these",
        option="columns",
    )


def _plain_numbers(values: Any) -> bool:
    """Whether a column of pandas or polars is of numbers without missing ones."""
    dtype = getattr(values, "dtype", None)
    return isinstance(dtype, np.dtype) and dtype.kind in "biuf"


def _number_array(name: str, values: Sequence[Any]) -> npt.NDArray[Any]:
    try:
        if any(value is None for value in values):
            array = np.array([np.nan if value is None else value for value in values], np.float64)
        else:
            array = np.array(values)
    except (TypeError, ValueError):
        array = np.array([], object)
    if array.dtype.kind not in "biuf" or array.ndim != 1:
        raise ConfigError(
            f"column {name!r} has numbers and other values: give values of one kind",
            option="columns",
        )
    return array


def _check_count(name: str, found: int, count: int) -> None:
    if found != count:
        raise ConfigError(
            f"column {name!r} has {found} values for {count} samples: give one each",
            option="columns",
        )
