"""Values that ``cache.Writer`` stored, as columns of batches.

Only the values of a batch are read. A sample takes 4 bytes for each crop that was stored.

Never in here: how parts are written.
"""

from __future__ import annotations

import importlib.util
import logging
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
import numpy.typing as npt

from ._columns import Held, Rows
from ._errors import ConfigError, DatasetError
from ._featherload import RawBatch
from ._stored_parts import (
    KEY,
    Part,
    content_hash,
    damaged,
    dtype_of,
    hash_in_name,
    part_names,
    read_part,
)
from ._values import folder_path, shown

_log = logging.getLogger("featherload")

Framework = Literal["numpy", "torch", "jax"]


@dataclass(frozen=True)
class Stored:
    """A folder that ``cache.Writer`` wrote, for ``Loader(..., stored=)``.

    ``crop``: the name of the crops to read. Without it, epoch ``e`` has the values that epoch ``e``
    of the writer stored, from the first on again after the last.
    """

    folder: str | os.PathLike[str]
    crop: str | None = None


Source = str | os.PathLike[str] | Stored | Sequence[str | os.PathLike[str] | Stored]


@dataclass(frozen=True)
class _Column:
    """A column of a folder. ``shape``: that of each row, or None if rows differ."""

    kind: str
    axes: int
    shape: tuple[int, ...] | None


class StoredFolder:
    """A folder of stored values, whose headers were read."""

    def __init__(self, stored: Stored) -> None:
        self.path = folder_path("stored", stored.folder)
        self.parts = [read_part(self.path / name) for name in part_names(self.path)]
        if not self.parts:
            raise DatasetError(
                f"{self.path}: has no stored values: write some with featherload.cache.Writer",
                path=str(self.path),
            )
        self._crops = self._crop_order(stored.crop)
        self.parts = [part for part in self.parts if part.crop in self._crops]
        self.columns = {name: self._column(name) for name in self.parts[0].columns}
        for part in self.parts:
            if part.columns.keys() != self.columns.keys():
                raise self._mixed(part, "other columns")

    def _crop_order(self, named: str | None) -> list[str]:
        """The crops that epochs read, one after the other."""
        known = sorted({part.crop for part in self.parts}, key=lambda crop: (len(crop), crop))
        if named is not None:
            if named not in known:
                raise self._refused(f"has no crop {named!r}: it has {_listed(known)}")
            return [named]
        if len(known) > 1 and known != [str(number) for number in range(len(known))]:
            raise self._refused(
                f"has the crops {_listed(known)}: name one with "
                "stored=featherload.cache.Stored(folder, crop=...)"
            )
        return known

    def _mixed(self, part: Part, what: str) -> ConfigError:
        return self._refused(
            f"has parts with {what} than those before them, such as {part.path.name}: store them "
            "in a folder of their own"
        )

    def _refused(self, why: str) -> ConfigError:
        return ConfigError(f"stored: {self.path} {why}", option="stored")

    def _column(self, name: str) -> _Column:
        known: _Column | None = None
        for part in self.parts:
            column = part.columns.get(name)
            if column is None:
                raise self._mixed(part, "other columns")
            different = np.unique(part.shapes(name), axis=0)
            shape = tuple(different[0].tolist()) if len(different) == 1 else None
            if shape is not None and (
                min(shape, default=0) < 0 or math.prod(shape) * part.rows != column.numbers
            ):
                raise damaged(part.path, f"column {name!r} has other values than its shapes")
            here = _Column(column.kind, column.axes, shape)
            if known is not None and (known.kind, known.axes) != (here.kind, here.axes):
                raise self._mixed(part, f"another type or number of axes of column {name!r}")
            known = here if known is None or known == here else _Column(here.kind, here.axes, None)
        if known is None:
            raise self._refused("has no parts")
        return known

    def bind(self, keys: npt.NDArray[np.bytes_], name_of: Any) -> None:
        """Finds the row of each sample. ``keys``: those of all samples in order. ``name_of``: a
        function that names a sample for an error.
        """
        self.firsts = np.cumsum([0, *(part.rows for part in self.parts)])
        self._rows_of_crop = [self._find_rows(crop, keys, name_of) for crop in self._crops]

    def _find_rows(
        self, crop: str, keys: npt.NDArray[np.bytes_], name_of: Any
    ) -> npt.NDArray[np.int32]:
        of_crop = [n for n, part in enumerate(self.parts) if part.crop == crop]
        stored = np.concatenate([self.parts[n].keys() for n in of_crop])
        ranges = [np.arange(self.firsts[n], self.firsts[n + 1], dtype=np.int32) for n in of_crop]
        rows = np.concatenate(ranges)
        order = np.argsort(stored, kind="stable")
        stored = stored[order]
        at = np.minimum(np.searchsorted(stored, keys), len(stored) - 1)
        missing = np.flatnonzero(stored[at] != keys)
        if len(missing):
            first = name_of(int(missing[0]))
            raise DatasetError(
                f"{self.path}: {len(missing)} of {len(keys)} samples have no stored values of crop "
                f"{crop!r}, the first is sample {missing[0]} ({first}): run cache.Writer to its "
                "end, in an order that has all samples, name a crop that is complete with "
                "stored=featherload.cache.Stored(folder, crop=...), or leave these samples out of "
                "the data set",
                path=str(self.path),
                id=int(missing[0]),
            )
        return rows[order[at]]

    def is_of_crops(self, recipe: str, seed: int) -> bool:
        """Whether the values belong to the crops that a loader with this recipe and seed makes."""
        return all(part.recipe == recipe and part.seed == seed for part in self.parts)

    def rows_in_epoch(self, epoch: int) -> npt.NDArray[np.int32]:
        """The row of each sample in an epoch."""
        return self._rows_of_crop[epoch % len(self._rows_of_crop)]

    def part_of(self, row: int) -> tuple[int, int]:
        """The number of the part that has a row, and the row's number there."""
        number = int(np.searchsorted(self.firsts, row, "right")) - 1
        return number, row - int(self.firsts[number])


class StoredColumn(Held):
    """A column of a folder, in an epoch."""

    def __init__(
        self, folder: StoredFolder, name: str, framework: Framework, epoch: int = 0
    ) -> None:
        self._folder, self._name = folder, name
        self._framework, self._epoch = framework, epoch
        # Of each row of the batch, the length of its file, if it is known.
        self._bytes: list[int | None] = []

    def of_batch(self, raw: RawBatch) -> Held:
        made = StoredColumn(self._folder, self._name, self._framework, raw.epoch)
        made._bytes = raw.sample_bytes()
        return made

    def _check_sample(self, part: Part, file: BinaryIO, row: int, at: int, sample: int) -> None:
        """Raises an error if the file of a sample has another length than when it was stored."""
        now = self._bytes[at] if self._bytes else None
        was = part.sample_bytes(file, row)
        if now is not None and was is not None and now != was:
            raise DatasetError(
                f"{part.path}: the values of sample {sample} are of a file of {was} bytes, and it "
                f"has {now} now: it has changed, or the data set is another one. Store the values "
                "of this data set in another folder",
                path=str(part.path),
                id=sample,
            )

    def read(self, rows: Rows) -> Any:
        folder, column = self._folder, self._folder.columns[self._name]
        dtype = dtype_of(column.kind)
        places = folder.rows_in_epoch(self._epoch)
        found = [None if row is None else folder.part_of(int(places[row])) for row in rows]
        of_parts: dict[int, list[tuple[int, int]]] = {}
        for at, place in enumerate(found):
            if place is not None:
                of_parts.setdefault(place[0], []).append((place[1], at))
        # Padding has zeros, or no values if shapes differ.
        each = [np.zeros((0,) * column.axes, dtype)] * len(found)
        whole = None
        if column.shape is not None:
            whole = np.zeros((len(found), *column.shape), dtype)
            each = [whole[at : at + 1] for at in range(len(found))]
        for number, wanted in of_parts.items():
            part = folder.parts[number]
            with part.open() as file:
                for row, at in sorted(wanted):
                    self._check_sample(part, file, row, at, int(rows[at] or 0))
                    shape, fill = part.row(file, self._name, row)
                    if column.shape is None:
                        each[at] = np.empty(shape, dtype)
                    elif shape != column.shape:
                        raise damaged(part.path, f"row {row} of column {self._name!r} has changed")
                    if each[at].size:
                        fill(each[at].reshape(-1).view(np.uint8).data)
        if whole is not None:
            return _of_framework(whole, column.kind, self._framework)
        return [_of_framework(array, column.kind, self._framework) for array in each]


def _of_framework(array: npt.NDArray[Any], kind: str, framework: Framework) -> Any:
    """The numbers as an array of the framework."""
    if framework == "torch":
        import torch

        if array.dtype.kind == "u" and array.dtype.itemsize > 1:
            # torch has no arithmetic for wide unsigned numbers, but the types.
            tensor = torch.from_numpy(array.view(f"i{array.dtype.itemsize}"))
            return tensor.view(getattr(torch, kind))
        return torch.from_numpy(array)
    if kind == "bfloat16":
        array = array.view(importlib.import_module("ml_dtypes").bfloat16)
    if framework == "jax":
        import jax.numpy as jnp

        return jnp.asarray(array)
    return array


def taken(keywords: dict[str, Any]) -> dict[str, StoredFolder]:
    """Takes the folders of ``stored=`` out of the keywords of ``Loader``, and their columns out of
    ``columns``. Returns the folder of each of these columns.
    """
    names = keywords["columns"]
    owners = _owners(_opened(keywords.pop("stored")), names or [])
    if owners:
        keywords["columns"] = [name for name in names if name not in owners]
    return owners


def _opened(stored: Any) -> list[StoredFolder]:
    """The folders of ``stored=``."""
    if stored is None:
        return []
    if isinstance(stored, (str, bytes, os.PathLike, Stored)) or not isinstance(stored, Iterable):
        stored = [stored]
    folders = []
    for one in stored:
        if not isinstance(one, (str, os.PathLike, Stored)):
            raise ConfigError(
                f"stored {shown(one)} is no folder: give one that featherload.cache.Writer wrote",
                option="stored",
            )
        folders.append(StoredFolder(one if isinstance(one, Stored) else Stored(one)))
    return folders


def _owners(folders: Sequence[StoredFolder], names: Sequence[str]) -> dict[str, StoredFolder]:
    """The folder of each of the columns ``names`` that is stored."""
    found: dict[str, StoredFolder] = {}
    for folder in folders:
        for name in folder.columns:
            if name in names and name in found:
                raise ConfigError(
                    f"stored: column {name!r} is in {found[name].path} and in {folder.path}: give "
                    "one of them",
                    option="stored",
                )
            if name in names:
                found[name] = folder
        if not any(name in names for name in folder.columns):
            raise ConfigError(
                f"stored: no column of {folder.path} is read: name some of "
                f"{_listed([*folder.columns])} with columns=[...]",
                option="stored",
            )
    return found


def columns(
    of: Mapping[str, StoredFolder], keys: bytes, name_of: Any, framework: Framework
) -> dict[str, Held]:
    """The columns of these folders, for the samples with these keys."""
    all_keys = np.frombuffer(keys, f"S{KEY}")
    for folder in {id(folder): folder for folder in of.values()}.values():
        folder.bind(all_keys, name_of)
    for name, folder in of.items():
        has_bits = folder.columns[name].kind == "bfloat16" and framework == "numpy"
        if has_bits and importlib.util.find_spec("ml_dtypes") is None:
            raise ConfigError(
                f"column {name!r} is bfloat16, which NumPy lacks without the package ml_dtypes: "
                "install it, or give framework='torch'",
                option="framework",
            )
    return {name: StoredColumn(folder, name, framework) for name, folder in of.items()}


def warn_of_other_crops(of: Mapping[str, StoredFolder], crops: tuple[str, int]) -> None:
    """Warns if images and stored values come in one batch, and are of different crops. ``crops``:
    hash of the recipe, and seed, of the images.
    """
    for folder in {id(folder): folder for folder in of.values()}.values():
        if not folder.is_of_crops(*crops):
            _log.warning(
                "%s: its values were stored with another recipe or seed, so they may belong to "
                "other crops than the images of this loader",
                folder.path,
            )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))


def is_folder(path: str | os.PathLike[str]) -> bool:
    """Whether a folder has stored values."""
    return os.path.isdir(path) and bool(part_names(Path(path)))


def describe(folder: Path) -> dict[str, Any]:
    """Columns, crops and bytes of a folder."""
    parts = [read_part(folder / name) for name in part_names(folder)]
    crops: dict[str, int] = {}
    for part in parts:
        crops[part.crop] = crops.get(part.crop, 0) + part.rows
    return {
        "folder": str(folder),
        "columns": {name: column.kind for name, column in parts[0].columns.items()},
        "crops": crops,
        "parts": len(parts),
        "bytes": sum(part.path.stat().st_size for part in parts),
    }


def verify(folder: Path) -> dict[str, Any]:
    """Compares each part with the hash in its name."""
    findings = []
    names = part_names(folder)
    for name in names:
        path = folder / name
        try:
            # The hash is of the file's bytes, so a part that has it was written by a writer.
            if content_hash(path) != hash_in_name(path):
                raise damaged(path, "does not have the hash in its name")
            read_part(path)
        except DatasetError as error:
            findings.append({"file": name, "kind": "data", "message": str(error)})
    return {"folder": str(folder), "parts": len(names), "findings": findings}
