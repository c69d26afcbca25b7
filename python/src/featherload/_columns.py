"""Columns: further values of samples, such as captions and scores, for the rows of a batch.

Columns of files are read by the library. Those of lists, tables and data sets in Python are read
here. The order of a list is copied when the loader is made, and values when a batch asks for them.

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

    def of_batch(self, raw: RawBatch) -> Held:
        """The column for a batch, if values do not follow from its samples alone."""
        return self

    def itself(self) -> Held:
        """This column, where a function that makes one is wanted."""
        return self


class HeldColumns:
    """Columns that Python holds, by name. ``names``: those of batches, which may be of files, too.
    Others are for captions.
    """

    def __init__(self, columns: Mapping[str, Held], names: Sequence[str]) -> None:
        self._columns, self._names = columns, names

    def names(self) -> list[str]:
        return [*self._names]

    def add(self, columns: Mapping[str, Held]) -> None:
        """Adds columns that are among ``names``."""
        self._columns = {**self._columns, **columns}

    def has(self, name: str) -> bool:
        """Whether Python holds this column."""
        return name in self._columns

    def read(self, name: str, raw: RawBatch) -> Any:
        if name not in self._names:
            raise missing(name, self._names, "this run")
        return self.values(name, raw) if self.has(name) else of_raw(raw, name)

    def values(self, name: str, raw: RawBatch) -> Any:
        """The values of a column that Python holds."""
        ids = np.asarray(raw.ids()).tolist()
        rows = [
            None if status == _PADDING else sample
            for sample, status in zip(ids, raw.status(), strict=True)
        ]
        return self._columns[name].of_batch(raw).read(rows)


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
) -> dict[str, Held]:
    """The columns ``names``."""
    for at, name in enumerate(names):
        if name not in columns:
            raise missing(name, columns, where)
        if name in names[:at]:
            raise ConfigError(f"column {name!r} is named twice: name it once", option="columns")
    return {name: columns[name]() for name in names}


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
    if isinstance(values, list) and values and isinstance(values[0], torch.Tensor):
        return [tensor.to(first.device) for tensor in values]
    if isinstance(values, torch.Tensor):
        return values.to(first.device)
    return torch.from_numpy(values).to(first.device) if isinstance(values, np.ndarray) else values


class _Array(Held):
    def __init__(self, values: npt.NDArray[Any]) -> None:
        self._values = values

    def read(self, rows: Rows) -> Any:
        values = self._values[[0 if row is None else row for row in rows]]
        padding = [at for at, row in enumerate(rows) if row is None]
        values[padding] = 0
        return values


class _Texts(Held):
    """Texts or bytes, with None for missing ones. ``blank``: that of padding."""

    def __init__(self, name: str, values: Sequence[Any], blank: str | bytes) -> None:
        for row, value in enumerate(values):
            if value is not None and not isinstance(value, type(blank)):
                raise _unlike(name, row, value)
        self._values, self._blank = values, blank

    def read(self, rows: Rows) -> Any:
        return [self._blank if row is None else self._values[row] for row in rows]


class _Lists(Held):
    """Lists of texts, or lists of numbers. A missing one is empty."""

    def __init__(self, name: str, values: Sequence[Any]) -> None:
        for row, value in enumerate(values):
            if value is not None and not _is_list(value):
                raise _unlike(name, row, value)
        # A list without values has no kind.
        filled = (value for value in values if value is not None)
        first = next((of for value in filled for of in value if of is not None), None)
        self._name, self._values, self._has_texts = name, values, isinstance(first, str)

    def read(self, rows: Rows) -> Any:
        values = [None if row is None else self._values[row] for row in rows]
        if not self._has_texts:
            return _joined(self._name, rows, values)
        for row, value in zip(rows, values, strict=True):
            if not all(text is None or isinstance(text, str) for text in value or ()):
                raise _unlike(self._name, row, value)
        return [[*(value or ())] for value in values]


def _is_list(value: Any) -> bool:
    if hasattr(value, "detach"):
        return bool(value.ndim)
    return isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim > 0)


def _unlike(name: str, row: int | None, value: Any) -> ConfigError:
    return ConfigError(
        f"column {name!r} has {shown(value)} at item {row}, unlike items before: give texts, "
        "bytes, numbers, or lists of one of these",
        option="columns",
    )


def _no_value(name: str, row: int | None, dtype: Any, what: str = "no value") -> ConfigError:
    return ConfigError(
        f"column {name!r} has {what} at item {row}, which {dtype} cannot express: fill the "
        "column, or store it as fractions",
        option="columns",
    )


def _inexact(name: str, row: int | None, value: Any) -> ConfigError:
    return ConfigError(
        f"column {name!r} has {value} at item {row}, which loses digits as a fraction, and other "
        "numbers of the column are fractions, missing or of another sign: give texts",
        option="columns",
    )


def _joined(
    name: str, rows: Rows, values: Sequence[Any], dtype: np.dtype[Any] | None = None
) -> Ragged:
    """Lists of numbers, or of lists of numbers of one length. None: an empty list."""
    arrays = [_list_array(name, row, value, dtype) for row, value in zip(rows, values, strict=True)]
    filled = [array for array in arrays if array.size]
    for row, array in zip(rows, arrays, strict=True):
        alike = not array.size or (array.ndim in (1, 2) and array.shape[1:] == filled[0].shape[1:])
        if not alike:
            raise _unlike(name, row, array.tolist())
    offsets = np.array([0, *accumulate(len(array) for array in arrays)], np.int64)
    together = np.concatenate(filled) if filled else np.zeros(0, dtype)
    if together.dtype.kind == "f":
        for row, array in zip(rows, arrays, strict=True):
            if array.dtype.kind in "iu":
                _check_digits(name, row, array.reshape(-1).tolist())
    return Ragged(together, offsets)


def _list_array(
    name: str, row: int | None, value: Any, dtype: np.dtype[Any] | None
) -> npt.NDArray[Any]:
    """The numbers of one list. A missing one among fractions is NaN."""
    if value is None:
        return np.zeros(0, dtype)
    is_list = isinstance(value, (list, tuple))
    try:
        array = _numbers(value) if is_list else np.asarray(_of_tensor(value))
        gone = np.zeros(array.shape, bool)
        if array.dtype == object:
            gone[...] = np.reshape([number is None for number in array.flat], array.shape)
        if gone.any():
            kind = np.array(array[~gone].tolist()).dtype if dtype is None else dtype
            if kind.kind != "f":
                raise _no_value(name, row, kind, "a list with a missing value")
            array = np.where(gone, np.nan, array)
            array = array.astype(kind)
        elif dtype is not None:
            # A list of whole numbers that is empty has no type.
            array = np.asarray(value, dtype)
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(error, ConfigError):
            raise
        raise _unlike(name, row, value) from None
    if array.size and array.dtype.kind not in "biuf":
        raise _unlike(name, row, value)
    if is_list and dtype is None and array.dtype.kind == "f":
        for inner in value:
            _check_digits(name, row, inner if isinstance(inner, (list, tuple)) else [inner])
    return array


def _numbers(values: Sequence[Any]) -> npt.NDArray[Any]:
    """Numbers of one type. NumPy makes fractions of whole numbers that only uint64 has."""
    array = np.asarray(values)
    if array.dtype.kind == "f" and {*map(type, np.array(values, object).reshape(-1))} == {int}:
        try:
            return np.asarray(values, np.uint64)
        except OverflowError:
            # Negative numbers beside them: fractions, if no digit is lost.
            pass
    return array


def _check_digits(name: str, row: int | None, numbers: Iterable[Any]) -> None:
    """Raises an error for a whole number that has other digits as a fraction."""
    for number in numbers:
        if _is_inexact(number):
            raise _inexact(name, row, number)


def _is_inexact(number: Any) -> bool:
    return isinstance(number, (int, np.integer)) and int(float(number)) != int(number)


def _is_missing(value: Any) -> bool:
    """Whether it stands for a missing value: None, or pandas' NA and NaT."""
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and value != value


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
                    raise _no_value(self._name, rows[at], dtype)
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
                values[at] = self._array(row, scalar.values, dtype)
            elif dtype.kind == "f":
                values[at] = np.nan
            else:
                raise _no_value(self._name, row, dtype)
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
                elif shape:
                    arrays.append(self._groups(row, values, dtype, shape))
                else:
                    arrays.append(self._array(row, values, dtype))
            offsets = np.array([*accumulate(map(len, arrays))], np.int64)
            return Ragged(np.concatenate(arrays), offsets)

        return read

    def _groups(
        self, row: int | None, values: Any, dtype: np.dtype[Any], shape: tuple[int, ...]
    ) -> npt.NDArray[Any]:
        """Groups of numbers of one length."""
        groups = np.full((len(values), *shape), np.nan if dtype.kind == "f" else 0, dtype)
        given = np.asarray(values.is_valid())
        if not given.all() and dtype.kind != "f":
            raise self._no_value_in_list(row, dtype)
        # It leaves missing groups out.
        flat = self._array(row, values.flatten(), dtype)
        groups[given] = flat.reshape(-1, *shape)
        return groups

    def _array(self, row: int | None, values: Any, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        """The numbers of one list."""
        if values.null_count and dtype.kind != "f":
            raise self._no_value_in_list(row, dtype)
        array: npt.NDArray[Any] = values.to_numpy(zero_copy_only=False)
        return array.astype(dtype, copy=False)

    def _no_value_in_list(self, row: int | None, dtype: np.dtype[Any]) -> ConfigError:
        return _no_value(self._name, row, dtype, "a list with a missing value")


def _is_number(kind: Any) -> bool:
    import pyarrow as pa

    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))


def hold(name: str, values: Any, count: int) -> Held:
    """A column of any kind: list, tuple, array, tensor, or column of pandas, polars or pyarrow.

    Keeps a copy of a list and of an array that can be written, so that a later change of their
    order has no effect. Lists within a list are not copied.

    Raises ``ConfigError`` for another count of values than there are samples, and for values that
    no batch has.
    """
    package = type(values).__module__.split(".")[0]
    if package == "pandas":
        values = _of_pandas(name, values)
    elif package == "polars":
        values = _of_polars(name, values)
    if type(values).__module__.split(".")[0] == "pyarrow":
        _check_count(name, len(values), count)
        return ArrowHeld(name, values)
    values = _of_tensor(values)
    if isinstance(values, np.ndarray) and values.dtype.kind in "biuf" and values.ndim:
        _check_count(name, len(values), count)
        return _Array(values.copy() if values.flags.writeable else values)
    listed = _listed(name, values)
    _check_count(name, len(listed), count)
    return _of_list(name, listed)


def _of_pandas(name: str, column: Any) -> Any:
    """The values of a column of pandas: an array, a list with None, or a column of pyarrow."""
    dtype = column.dtype
    if hasattr(dtype, "pyarrow_dtype"):
        import pyarrow as pa

        return pa.array(column)
    missing = np.asarray(column.isna())
    # Types of numbers with a mask, and categories that are numbers.
    numbers = getattr(dtype, "categories", column).dtype
    numbers = getattr(numbers, "numpy_dtype", numbers)
    if isinstance(numbers, np.dtype) and numbers.kind in "biuf":
        if numbers.kind != "f" and missing.any():
            raise _no_value(name, int(missing.argmax()), numbers)
        if numbers.kind == "f":
            return column.to_numpy(dtype=numbers, na_value=np.nan)
        return column.to_numpy(dtype=numbers)
    listed = column.tolist()
    return [None if gone else of for of, gone in zip(listed, missing.tolist(), strict=True)]


def _of_polars(name: str, column: Any) -> Any:
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise ConfigError(
            f"column {name!r} of polars is read through Arrow, and pyarrow is not installed: "
            "install pyarrow",
            option="columns",
        ) from None
    return column.to_arrow()


def _of_tensor(values: Any) -> Any:
    """A tensor as an array. NumPy has no bfloat16, whose numbers float32 has."""
    if not hasattr(values, "detach"):
        return values
    values = values.detach().cpu()
    return (values.float() if str(values.dtype) == "torch.bfloat16" else values).numpy()


def _listed(name: str, values: Any) -> list[Any]:
    """A list of its own."""
    for method in ("to_pylist", "to_list", "tolist"):
        convert = getattr(values, method, None)
        if convert is not None:
            values = convert()
            break
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        raise ConfigError(
            f"column {name!r} is {shown(values)} (type {type(values).__name__}): give a list, one "
            "value for each sample",
            option="columns",
        )
    return [*values]


def _of_list(name: str, values: list[Any]) -> Held:
    values = [None if _is_missing(value) else value for value in values]
    first = next((value for value in values if value is not None and not _is_nan(value)), None)
    if first is None:
        if any(value is not None for value in values):
            return _Array(_number_array(name, values))
        return _Texts(name, values, "")
    if isinstance(first, (str, bytes)) or _is_list(first):
        # pandas has NaN for any missing value.
        values = [None if _is_nan(value) else value for value in values]
        if _is_list(first):
            return _Lists(name, values)
        return _Texts(name, values, "" if isinstance(first, str) else b"")
    if isinstance(first, (bool, int, float, np.generic)) or hasattr(first, "detach"):
        return _Array(_number_array(name, values))
    raise ConfigError(
        f"column {name!r} has {shown(first)} (type {type(first).__name__}): give numbers, texts, "
        "bytes, or lists of one of these",
        option="columns",
    )


def _number_array(name: str, values: Sequence[Any]) -> npt.NDArray[Any]:
    """Numbers. A missing one makes all of them fractions, as in JSON lines and CSV files."""
    given = np.array([value is not None for value in values], bool)
    plain = [_of_tensor(value) for value in values if value is not None]
    try:
        array = _numbers(plain)
    except (TypeError, ValueError, OverflowError):
        array = np.array([], object)
    if array.dtype.kind not in "biuf" or array.ndim != 1:
        raise ConfigError(
            f"column {name!r} has numbers and other values: give values of one kind, and whole "
            "numbers from -2^63 to 2^64",
            option="columns",
        )
    is_whole = given.all()
    if not is_whole and array.dtype.kind == "b":
        raise _no_value(name, int(given.argmin()), array.dtype)
    if array.dtype.kind == "f" or not is_whole:
        for row, value in enumerate(values):
            if _is_inexact(value):
                raise _inexact(name, row, value)
    if is_whole:
        return array
    filled = np.full(len(values), np.nan, array.dtype if array.dtype.kind == "f" else np.float64)
    filled[given] = array
    return filled


def _check_count(name: str, found: int, count: int) -> None:
    if found != count:
        raise ConfigError(
            f"column {name!r} has {found} values for {count} samples: give one each",
            option="columns",
        )
