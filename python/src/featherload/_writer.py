"""``featherload.cache.Writer``: stores what a trainer computes for samples, such as latents."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import logging
import os
import secrets
import time
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np
import numpy.typing as npt

from ._batch import Batch, RowStatus
from ._errors import ConfigError, DatasetError, PlatformError
from ._loader import Loader
from ._stored_parts import (
    KEY,
    KINDS,
    MOST_AXES,
    NewRow,
    Part,
    dtype_of,
    part_name,
    part_names,
    part_pieces,
    read_part,
)
from ._values import byte_count, folder_path, shown

_log = logging.getLogger("featherload")
_MASKED = (RowStatus.PADDING, RowStatus.FAILED)
_OWN = ".featherload-"
_SIZES = ("original_size", "crop", "target_size")
"""How an image was cropped to its bucket, stored with its values."""
_PARTIAL = ("weighted", "repeated_augmentation", "identity")
"""Orders whose epochs do not have all samples."""
_ROW = 512
"""Bytes that a waiting row takes beside its values, about."""


class Writer:
    """Stores values that a trainer computes for samples: latents, embeddings, scores.

    ::

        loader = featherload.Loader("photos", recipe, batch_size=16, framework="torch")
        with featherload.cache.Writer("latents", loader) as writer:
            for batch in loader:
                writer.write(batch, latents=vae.encode(batch.images).latent_dist.mean)

        later = featherload.Loader(
            "photos", recipe, columns=["latents"], stored="latents", images=False
        )

    A row is stored for each sample and crop. The crop of an epoch is named by its number: the
    loader's seed decides it. ``crops``: names of the crops that are stored in one epoch instead,
    such as ``["plain", "flipped"]``, which ``write(..., crop_name="plain")`` chooses from. With
    ``samplers.Buckets`` and ``cover_crop``, ``original_size``, ``crop`` and ``target_size`` of the
    batch are stored, too.

    Values are written in parts of about ``part_bytes``, and at least every ``part_seconds`` if
    batches come. A part is a file of safetensors, complete on the disk before it has its name, and
    its name has a hash of its bytes. After a kill, the same program continues: ``loader`` begins at
    the first batch with a sample that has no row. If all have one, it begins at the last batch of
    the epoch, of which nothing is stored again. Ranks write to the same folder, each its own parts.
    Any thread may call a writer.

    ``allow_nonfinite``: also stores infinite values and NaN, which are an error otherwise.

    Raises ``ConfigError`` if ``loader`` has begun an epoch or has a position of its own, if it has
    a sampler object, if another writer of the same rank is open, for a folder of another recipe or
    seed, and for values of another type than those before. ``DatasetError``: a damaged part.
    ``PlatformError``: a part that cannot be written; call ``flush`` again after making room.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        loader: Loader,
        *,
        crops: Sequence[str] | None = None,
        part_bytes: int | str = 64 << 20,
        part_seconds: float = 60.0,
        allow_nonfinite: bool = False,
    ) -> None:
        _check_loader(loader)
        self.closed = True
        self.folder = folder_path("folder", folder)
        self._loader, self._allow_nonfinite = loader, allow_nonfinite
        self._crops = _crop_names(crops)
        self._part_bytes = byte_count("part_bytes", part_bytes) or 0
        if not isinstance(part_seconds, (int, float)) or not part_seconds >= 0:
            raise _refused(f"part_seconds {shown(part_seconds)} is no time", "part_seconds")
        self._part_seconds = part_seconds
        self._rank = loader._place[0]
        # Rows that wait, of each crop.
        self._rows: dict[str, list[NewRow]] = {}
        self._bytes, self._since = 0, time.monotonic()
        self._turn = RLock()
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._failed("create", error) from None
        self._lock = self._locked()
        try:
            self._open(loader)
        except BaseException:
            self._lock.close()
            raise
        self.closed = False

    def _open(self, loader: Loader) -> None:
        for left in self.folder.glob(f"{_OWN}{self._rank:05}-*"):
            left.unlink(missing_ok=True)
        parts = [read_part(self.folder / name) for name in part_names(self.folder)]
        self._is_listed = loader._lists_samples()
        keys = np.frombuffer(loader._stream.sample_keys(self._is_listed), f"S{KEY}")
        # Samples of one key share a row, such as an image that a list has twice.
        self._keys, self._unit = np.unique(keys, return_inverse=True)
        self._units: dict[str, npt.NDArray[np.bool_]] = {}
        for part in parts:
            units = self._units.setdefault(part.crop, np.zeros(len(self._keys), bool))
            found = part.keys()
            at = np.minimum(np.searchsorted(self._keys, found), len(self._keys) - 1)
            units[at[self._keys[at] == found]] = True
        self._kinds: dict[str, tuple[str, int]] | None = None
        if parts:
            columns = parts[0].columns.items()
            self._kinds = {name: (column.kind, column.axes) for name, column in columns}
        own = [part.number for part in parts if part.rank == self._rank]
        self._number = max(own, default=-1) + 1
        self._recipe, self._seed = loader._crops
        self._check_recipe(parts)
        if parts:
            epoch, samples = self._place()
            state = json.loads(loader._stream.state())
            loader.load_state_dict({**state, "epoch": epoch, "samples": samples})

    def _check_recipe(self, parts: Sequence[Part]) -> None:
        """Raises an error for parts of other operations or another seed."""
        for part in parts:
            for what, was, now in (
                ("recipe", part.recipe, self._recipe),
                ("seed", part.seed, self._seed),
            ):
                if was != now:
                    raise _refused(
                        f"{part.path} has values of another {what}: use that {what}, or another "
                        "folder",
                        what,
                    )

    def _place(self) -> tuple[int, int]:
        """Where the loader begins: the epoch, and its samples before the first batch."""
        stream = self._loader._stream
        epoch = 0
        while True:
            crops = [str(epoch)] if self._crops is None else self._crops
            known = [self._of_crop(crop) for crop in crops]
            done = np.logical_and.reduce(known)[self._unit]
            samples = stream.samples_before_first(epoch, done.astype(np.uint8).tobytes())
            if samples is not None:
                return epoch, samples
            # The next epoch begins only if it has begun before.
            if self._crops is not None or not self._of_crop(str(epoch + 1)).any():
                return epoch, stream.samples_before_last(epoch)
            epoch += 1

    def _of_crop(self, crop: str) -> npt.NDArray[np.bool_]:
        """Which samples have a row of a crop, by the number of their key."""
        return self._units.get(crop, np.zeros(len(self._keys), bool))

    def _locked(self) -> Any:
        """A file that is locked while this writer is open."""
        path = self.folder / f"{_OWN}rank-{self._rank:05}.lock"
        try:
            # It stays open with the writer.
            file = open(path, "ab")  # noqa: SIM115
        except OSError as error:
            raise self._failed("open a file in", error) from None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            file.close()
            if not isinstance(error, BlockingIOError):
                raise self._failed("lock a file in", error) from None
            raise _refused(
                f"another writer of rank {self._rank} is open in {self.folder}: close it, or give "
                "the loaders rank and world_size",
                "folder",
            ) from None
        return file

    def _failed(self, what: str, error: OSError) -> PlatformError:
        return PlatformError(f"{what} {self.folder}: {error.strerror}", path=str(self.folder))

    def _crop_of(self, batch: Batch, name: str | None) -> str:
        """The name of the crop of a batch."""
        if self._crops is None:
            if name is not None:
                raise _refused(
                    f"crop_name {shown(name)} is given, and crops are named by their epoch: give "
                    "the writer crops=[...]",
                    "crop_name",
                )
            return str(batch.epoch)
        if name is None and len(self._crops) == 1:
            return self._crops[0]
        if name not in self._crops:
            known = ", ".join(map(repr, self._crops))
            raise _refused(
                f"crop_name {shown(name)} is none of {known}: give one of them", "crop_name"
            )
        return str(name)

    def has(self, batch: Batch, *, crop_name: str | None = None) -> bool:
        """Whether the values of all samples of a batch are stored, or wait for their part."""
        with self._turn:
            units = self._units_of(batch)[1]
            return bool(self._of_crop(self._crop_of(batch, crop_name))[units].all())

    def _units_of(self, batch: Batch) -> tuple[list[int], npt.NDArray[np.int64]]:
        """The rows of a batch that have a sample of their own, and the number of its key."""
        if not isinstance(batch, Batch):
            raise _refused(f"batch {shown(batch)} is no featherload.Batch", "batch")
        all_rows = zip(batch.status, batch.repeated.tolist(), strict=True)
        rows = [
            row
            for row, (status, is_repeated) in enumerate(all_rows)
            if status not in _MASKED and not is_repeated
        ]
        units: npt.NDArray[np.int64] = np.zeros(0, np.int64)
        ids = batch.ids[rows].astype(np.int64)
        if (ids < len(self._unit)).all():
            units = self._unit[ids]
        named = batch._of_loader.sample_names(self._is_listed)
        keys = np.array([(named[row] or (b"", b"", None))[1] for row in rows], f"S{KEY}")
        if len(units) != len(rows) or not np.array_equal(self._keys[units], keys):
            raise _refused(
                "the batch is of another data set than the writer's loader: give batches of that "
                "loader",
                "batch",
            )
        if batch._crops != self._loader._crops:
            raise _refused(
                "the batch is not one that the writer's loader made, or is of another recipe or "
                "seed: give batches as that loader returns them",
                "batch",
            )
        return rows, units

    def write(self, batch: Batch, *, crop_name: str | None = None, **values: Any) -> int:
        """Stores the values of a batch: for each keyword an array or a list of arrays, with one
        entry for each row. Padding, failed and repeated rows are left out, and rows that are stored
        already. Returns the number of new rows.

        Arrays are those of NumPy, torch (on any device) or JAX, of whole numbers, fractions or
        bools. Rows of a column may have different shapes with the same number of axes.
        """
        with self._turn:
            self._check_open()
            rows, units = self._units_of(batch)
            crop = self._crop_of(batch, crop_name)
            if not values:
                raise _refused("no values are given: name them, such as latents=...", "values")
            stored = self._of_crop(crop)
            # A sample may be in a batch twice.
            _, firsts = np.unique(units, return_index=True)
            new = [n for n in sorted(firsts.tolist()) if not stored[units[n]]]
            columns = {name: _Values(name, value, len(batch.ids)) for name, value in values.items()}
            columns |= self._sizes(batch, columns)
            kinds = self._checked_kinds(columns)
            made = self._new_rows(batch, [rows[n] for n in new], columns)
            if made:
                self._kinds = kinds
                self._rows.setdefault(crop, []).extend(made)
                self._units[crop] = stored
                stored[units[new]] = True
                sizes = (array.nbytes for row in made for array in row.values.values())
                self._bytes += sum(sizes) + _ROW * len(made)
            waited = time.monotonic() - self._since
            if self._bytes >= self._part_bytes or waited >= self._part_seconds:
                self.flush()
            return len(made)

    def _new_rows(
        self, batch: Batch, rows: Sequence[int], columns: Mapping[str, _Values]
    ) -> list[NewRow]:
        named = batch._of_loader.sample_names(self._is_listed)
        made = []
        for row in rows:
            name, key, length = named[row] or (b"", b"", None)
            of_row = {
                column: found.row(row, name, self._allow_nonfinite)
                for column, found in columns.items()
            }
            made.append(NewRow(key, name, length, of_row))
        return made

    def _sizes(self, batch: Batch, given: Mapping[str, Any]) -> dict[str, _Values]:
        """How the rows were cropped to their bucket. Empty without buckets."""
        if batch._of_loader.size_conditions() is None:
            return {}
        taken = [name for name in _SIZES if name in given]
        if taken:
            raise _refused(
                f"the values have the name {taken[0]!r}, under which the batch's own are stored: "
                "rename them",
                "values",
            )
        return {
            name: _Values(name, getattr(batch, name).astype(np.int32), len(batch.ids))
            for name in _SIZES
        }

    def _checked_kinds(self, columns: Mapping[str, _Values]) -> dict[str, tuple[str, int]]:
        """Types and numbers of axes. Raises an error if they are not those of earlier batches."""
        kinds = {name: (values.kind, values.axes) for name, values in columns.items()}
        known = self._kinds
        if known is None:
            return kinds
        if kinds.keys() != known.keys():
            raise _refused(
                f"{self.folder} has the columns {', '.join(known)}, and this batch has "
                f"{', '.join(kinds)}: store other columns in a folder of their own",
                "values",
            )
        for name, (kind, axes) in kinds.items():
            if (kind, axes) != known[name]:
                was = f"{known[name][0]} with {known[name][1]} axes a row"
                raise _refused(
                    f"{name} has {kind} with {axes} axes a row, and {self.folder} has {was}: "
                    "convert it, or use another folder",
                    name,
                )
        return known

    def flush(self) -> None:
        """Writes the rows that wait, a part for each crop. They are on the disk when this
        returns.
        """
        with self._turn:
            self._check_open()
            self._since = time.monotonic()
            for crop in [*self._rows]:
                self._write_part(crop, self._rows[crop])
                del self._rows[crop]
            self._bytes = 0

    def _write_part(self, crop: str, rows: Sequence[NewRow]) -> None:
        notes = {"crop": crop, "recipe": self._recipe, "seed": str(self._seed)}
        # The order of columns is that of the first batch of the folder.
        kinds = {name: kind for name, (kind, _) in (self._kinds or {}).items()}
        hasher = hashlib.blake2b(digest_size=8)
        new = self.folder / f"{_OWN}{self._rank:05}-{secrets.token_hex(8)}"
        try:
            with open(new, "xb") as file:
                for piece in part_pieces(rows, kinds, notes):
                    hasher.update(piece)
                    file.write(piece)
                file.flush()
                os.fsync(file.fileno())
            os.rename(new, self.folder / part_name(self._rank, self._number, hasher.hexdigest()))
            _sync(self.folder)
        except BaseException as error:
            with contextlib.suppress(OSError):
                os.unlink(new)
            if isinstance(error, OSError):
                raise self._failed("write a part to", error) from None
            raise
        self._number += 1

    def close(self) -> None:
        """Writes the rows that wait, and ends the writer."""
        with self._turn:
            if self.closed:
                return
            self.flush()
            self.closed = True
            self._lock.close()

    def _check_open(self) -> None:
        if self.closed:
            raise _refused("the writer is closed: make another one", "writer")

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, kind: object, error: BaseException | None, *_: object) -> None:
        if error is None:
            self.close()
            return
        # The error of the with block is what the trainer must see.
        try:
            self.close()
        except PlatformError as failed:
            error.add_note(f"featherload.cache.Writer: rows that waited were lost: {failed}")
            self.closed = True
            self._lock.close()

    def __del__(self) -> None:
        if getattr(self, "closed", True):
            return
        waiting = sum(map(len, self._rows.values()))
        if waiting:
            warnings.warn(
                f"a Writer of {self.folder} was dropped with {waiting} rows that are not on the "
                "disk: call close, or use it in a with statement",
                ResourceWarning,
                stacklevel=2,
            )
        self._lock.close()

    def __repr__(self) -> str:
        stored = {crop: int(units.sum()) for crop, units in self._units.items()}
        return f"<featherload.cache.Writer {self.folder}: rows of each crop {stored}>"


def _check_loader(loader: Any) -> None:
    """Raises an error for a loader that a writer cannot lead."""
    if not isinstance(loader, Loader):
        raise _refused(f"loader {shown(loader)} is no featherload.Loader", "loader")
    if loader._request.order is not None:
        raise _refused(
            "the loader has a sampler object, whose order is unknown after a kill: use one of "
            "featherload.samplers, 'shuffle' or 'sequential'",
            "sampler",
        )
    plan = json.loads(loader._stream.state())["plan"]
    order = plan["sampler"] if isinstance(plan["sampler"], str) else next(iter(plan["sampler"]))
    if loader.drop_last or order in _PARTIAL:
        _log.warning(
            "an epoch with %s leaves samples out, and a run that reads stored values needs all: "
            "use another order without drop_last",
            "drop_last" if loader.drop_last else f"the sampler {order}",
        )
    if loader._running is not None:
        raise _refused("an epoch of the loader has begun: make the writer before", "loader")
    if (loader.state_dict()["epoch"], loader.state_dict()["samples"]) != (0, 0):
        raise _refused(
            "the loader has a position of its own, and the writer sets it: make the writer without "
            "load_state_dict and set_epoch",
            "loader",
        )


def _crop_names(crops: Any) -> list[str] | None:
    if crops is None:
        return None
    names = [crops] if isinstance(crops, str) else [*crops]
    if not names or not all(isinstance(name, str) and name for name in names):
        raise _refused(f"crops {shown(crops)} has no names: give texts, such as ['plain']", "crops")
    return names


class _Values:
    """The values of one column for a batch, on the host."""

    def __init__(self, name: str, values: Any, rows: int) -> None:
        if not name or name.startswith(("sample.", "__")) or name.endswith((".ends", ".shapes")):
            raise _refused(
                f"the name {name!r} is one of the format: name the values otherwise", "values"
            )
        self._name = name
        listed = values if isinstance(values, (list, tuple)) else None
        if listed is None and not getattr(values, "ndim", 0):
            raise _refused(f"{name} is {shown(values)}: give an array with one row a sample", name)
        if len(values) != rows:
            raise _refused(f"{name} has {len(values)} rows, and the batch has {rows}", name)
        found = [_host(name, one) for one in (values if listed is not None else [values])]
        self.kind = found[0][1] if found else "float32"
        self._arrays: Sequence[npt.NDArray[Any]] = [array for array, _ in found]
        if listed is None:
            self._arrays = [*self._arrays[0]]
        forms = {(kind, array.ndim) for array, kind in found} if listed is not None else set()
        if len(forms) > 1:
            raise _refused(f"{name} has rows of different types or numbers of axes", name)
        self.axes = np.ndim(self._arrays[0]) if self._arrays else 0
        if self.axes > MOST_AXES:
            raise _refused(f"{name} has {self.axes} axes a row: give at most {MOST_AXES}", name)

    def row(self, row: int, sample: bytes, allow_nonfinite: bool) -> npt.NDArray[Any]:
        """A copy of the values of a row."""
        array = np.array(self._arrays[row], order="C", copy=True)
        if max(array.shape, default=0) >= 1 << 31:
            raise _refused(f"{self._name} has a row of shape {array.shape}: split it", self._name)
        if not allow_nonfinite and not _is_finite(array, self.kind):
            raise DatasetError(
                f"{self._name} of {sample.decode(errors='replace')} has infinite values or NaN: "
                "compute it with a wider type and store it in another folder, or give the writer "
                "allow_nonfinite=True"
            )
        return array


def _is_finite(array: npt.NDArray[Any], kind: str) -> bool:
    if kind == "bfloat16":
        return bool(((array & 0x7F80) != 0x7F80).all())
    return array.dtype.kind != "f" or bool(np.isfinite(array).all())


def _host(name: str, values: Any) -> tuple[npt.NDArray[Any], str]:
    """An array of any framework in NumPy's form, with the bits of bfloat16, and its type."""
    if hasattr(values, "detach"):
        import torch

        tensor = values.detach().cpu()
        kind = str(tensor.dtype).removeprefix("torch.")
        if kind in KINDS:
            size = dtype_of(kind).itemsize
            bits = tensor.contiguous().view(getattr(torch, f"int{8 * size}"))
            return bits.numpy().view(dtype_of(kind)), kind
    else:
        array = np.asarray(values)
        kind = array.dtype.name
        if kind in KINDS:
            array = array.astype(array.dtype.newbyteorder("<"), copy=False)
            return (array.view(np.uint16) if kind == "bfloat16" else array), kind
    raise _refused(
        f"{name} has values of type {shown(kind)}: give whole numbers, fractions or bools", name
    )


def _sync(folder: Path) -> None:
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _refused(why: str, option: str) -> ConfigError:
    return ConfigError(f"Writer: {why}", option=option)
