"""``featherload.cache.Writer``: stores what a trainer computes for samples, such as latents."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import logging
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ._batch import Batch, RowStatus
from ._errors import ConfigError, DatasetError, PlatformError
from ._loader import Loader
from ._stored_parts import (
    KEY,
    KINDS,
    NewRow,
    Part,
    dtype_of,
    part_names,
    part_pieces,
    read_part,
)
from ._values import path_text, shown

_log = logging.getLogger("featherload")
_MASKED = (RowStatus.PADDING, RowStatus.FAILED)
_OWN = ".featherload-"
_SIZES = ("original_size", "crop", "target_size")
"""How an image was cropped to its bucket, stored with its values."""


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
    loader's seed decides it. ``write(..., crop_name="center")`` names it otherwise. With
    ``samplers.Buckets`` and ``cover_crop``, ``original_size``, ``crop`` and ``target_size`` of the
    batch are stored, too.

    Values are written in parts of about ``part_bytes``, and at least every ``part_seconds`` if
    batches come. A part is a file of safetensors, complete on the disk before it has its name, and
    its name has a hash of its bytes. After a kill, the same program continues: ``loader`` begins at
    the last batch of the last part, and rows that are stored already are not stored again. Ranks
    write to the same folder, each its own parts.

    ``allow_nonfinite``: also stores infinite values and NaN, which are an error otherwise.

    Raises ``ConfigError`` if ``loader`` has begun an epoch, if it has a sampler object of its own,
    if another writer of the same rank is open, and for values of another type than those before.
    ``DatasetError``: a damaged part. ``PlatformError``: a part that cannot be written; call
    ``flush`` again after making room.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        loader: Loader,
        *,
        part_bytes: int = 64 << 20,
        part_seconds: float = 60.0,
        allow_nonfinite: bool = False,
    ) -> None:
        if not isinstance(loader, Loader):
            raise _refused(f"loader {shown(loader)} is no featherload.Loader", "loader")
        if loader._given is not None:
            raise _refused(
                "the loader has a sampler object, whose place is unknown after a kill: use one of "
                "featherload.samplers, 'shuffle' or 'sequential'",
                "sampler",
            )
        if loader._running is not None:
            raise _refused("an epoch of the loader has begun: make the writer before", "loader")
        self.folder = Path(path_text("folder", folder))
        self._loader, self._allow_nonfinite = loader, allow_nonfinite
        self._part_bytes, self._part_seconds = part_bytes, part_seconds
        self._rank, self._world = loader._place
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
        keys = np.frombuffer(loader._stream.sample_keys(), f"S{KEY}")
        # Samples of one key share a row, such as an image that a list has twice.
        self._keys, self._unit = np.unique(keys, return_inverse=True)
        self._units: dict[str, npt.NDArray[np.bool_]] = {}
        for part in parts:
            units, found = self._of_crop(part.crop), part.keys()
            at = np.minimum(np.searchsorted(self._keys, found), len(self._keys) - 1)
            is_known = self._keys[at] == found
            units[at[is_known]] = True
        self._kinds: dict[str, tuple[str, int]] | None = None
        if parts:
            columns = parts[0].columns.items()
            self._kinds = {name: (column.kind, column.axes) for name, column in columns}
        own = [part.number for part in parts if part.rank == self._rank]
        self._number = max(own, default=-1) + 1
        self._rows: list[NewRow] = []
        self._bytes, self._since = 0, time.monotonic()
        self._crop, self._state = "", ""
        self._check_recipe(parts)
        state = _first_state(parts)
        if state is not None and self._has_data_of(state):
            loader.load_state_dict(state)

    def _check_recipe(self, parts: Sequence[Part]) -> None:
        """Raises an error for parts of other operations or another seed."""
        here = json.loads(self._loader._stream.state())
        for part in {part.notes["state"]: part for part in parts}.values():
            state = json.loads(part.notes["state"])
            for what, was, now in (
                ("recipe", state["recipe_hash"], here["recipe_hash"]),
                ("seed", state["plan"]["seed"], here["plan"]["seed"]),
            ):
                if was != now:
                    raise _refused(
                        f"{part.path} has values of another {what}: use that {what}, or another "
                        "folder",
                        what,
                    )

    def _has_data_of(self, state: Mapping[str, Any]) -> bool:
        """Whether a state can be resumed. Of other data or another order it cannot. The epoch then
        begins anew, and rows that are stored stay.
        """
        try:
            self._loader._stream.check_resumable(json.dumps(state))
        except ConfigError as error:
            _log.warning("%s: the epoch begins anew: %s", self.folder, error)
            return False
        return True

    def _of_crop(self, crop: str) -> npt.NDArray[np.bool_]:
        return self._units.setdefault(crop, np.zeros(len(self._keys), bool))

    def _locked(self) -> Any:
        """A file that is locked while this writer is open."""
        path = self.folder / f"{_OWN}rank-{self._rank:05}.lock"
        try:
            # It stays open with the writer.
            file = open(path, "ab")  # noqa: SIM115
        except OSError as error:
            raise self._failed("open", error) from None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            raise _refused(
                f"another writer of rank {self._rank} is open in {self.folder}: close it, or give "
                "the loaders rank and world_size",
                "folder",
            ) from None
        return file

    def _failed(self, what: str, error: OSError) -> PlatformError:
        return PlatformError(f"{what} {self.folder}: {error.strerror}", path=str(self.folder))

    def has(self, batch: Batch, *, crop_name: str | None = None) -> bool:
        """Whether the values of all samples of a batch are stored, or wait for their part."""
        units = self._units_of(self._rows_of(batch)[1])
        crop = str(batch.epoch) if crop_name is None else crop_name
        return bool(self._of_crop(crop)[units].all())

    def _units_of(self, samples: Sequence[int]) -> npt.NDArray[np.int64]:
        """The number of the key of each of these samples."""
        return self._unit[np.array(samples, np.int64)]

    def _rows_of(self, batch: Batch) -> tuple[list[int], list[int]]:
        """The rows of a batch that have a sample of their own, and their samples."""
        if not isinstance(batch, Batch):
            raise _refused(f"batch {shown(batch)} is no featherload.Batch", "batch")
        rows = zip(batch.status, batch.repeated.tolist(), batch.ids.tolist(), strict=True)
        good = [
            (row, sample)
            for row, (status, is_repeated, sample) in enumerate(rows)
            if status not in _MASKED and not is_repeated
        ]
        return [row for row, _ in good], [sample for _, sample in good]

    def write(self, batch: Batch, *, crop_name: str | None = None, **values: Any) -> int:
        """Stores the values of a batch: for each keyword an array or a list of arrays, with one
        entry for each row. Padding, failed and repeated rows are left out, and rows that are stored
        already. Returns the number of new rows.

        Arrays are those of NumPy, torch (on any device) or JAX, of whole numbers, fractions or
        bools. Rows of a column may have different shapes with the same number of axes.
        """
        self._check_open()
        rows, samples = self._rows_of(batch)
        if not values:
            raise _refused("no values are given: name them, such as latents=...", "values")
        crop = str(batch.epoch) if crop_name is None else crop_name
        if not isinstance(crop, str) or not crop:
            raise _refused(f"crop_name {shown(crop)} is no name: give a text", "crop_name")
        units, stored = self._units_of(samples), self._of_crop(crop)
        # A sample may be in a batch twice.
        _, firsts = np.unique(units, return_index=True)
        new = [n for n in sorted(firsts.tolist()) if not stored[units[n]]]
        columns = {name: _Values(name, value, len(batch.ids)) for name, value in values.items()}
        columns |= self._sizes(batch, columns)
        self._check_kinds(columns)
        names = batch._of_loader.sample_names()
        made = []
        for n in new:
            name, key = names[rows[n]] or (b"", b"")
            of_row = {
                column: found.row(rows[n], name, self._allow_nonfinite)
                for column, found in columns.items()
            }
            made.append(NewRow(key, name, of_row))
        if self._rows and crop != self._crop:
            self.flush()
        self._crop = crop
        raw = batch._of_loader
        at = {"epoch": raw.epoch, "samples": raw.samples_before}
        self._state = json.dumps({**json.loads(self._loader._stream.state()), **at})
        self._rows += made
        stored[units[new]] = True
        self._bytes += sum(array.nbytes for row in made for array in row.values.values())
        if self._bytes >= self._part_bytes or time.monotonic() - self._since >= self._part_seconds:
            self.flush()
        return len(made)

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

    def _check_kinds(self, columns: Mapping[str, _Values]) -> None:
        """Raises an error for columns that are not those of earlier batches."""
        kinds = {name: (values.kind, values.axes) for name, values in columns.items()}
        if self._kinds is None:
            self._kinds = kinds
        known = self._kinds
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

    def flush(self) -> None:
        """Writes the rows that wait as a part. It is on the disk when this returns."""
        self._check_open()
        self._since = time.monotonic()
        if not self._rows:
            return
        notes = {"crop": self._crop, "state": self._state, "world": str(self._world)}
        # The order of columns is that of the first batch of the folder.
        kinds = {name: kind for name, (kind, _) in (self._kinds or {}).items()}
        hasher = hashlib.blake2b(digest_size=8)
        new = ""
        try:
            file_number, new = tempfile.mkstemp(prefix=f"{_OWN}{self._rank:05}-", dir=self.folder)
            with open(file_number, "wb") as file:
                for piece in part_pieces(self._rows, kinds, notes):
                    hasher.update(piece)
                    file.write(piece)
                # As other files of this process, not for the owner alone.
                mask = os.umask(0)
                os.umask(mask)
                os.fchmod(file.fileno(), 0o666 & ~mask)
                file.flush()
                os.fsync(file.fileno())
            name = f"part-{self._rank:05}-{self._number:06}-{hasher.hexdigest()}.safetensors"
            os.rename(new, self.folder / name)
            _sync(self.folder)
        except OSError as error:
            if new:
                with contextlib.suppress(OSError):
                    os.unlink(new)
            raise self._failed("write a part to", error) from None
        self._number += 1
        self._rows, self._bytes = [], 0

    def close(self) -> None:
        """Writes the rows that wait, and ends the writer."""
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

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        stored = {crop: int(units.sum()) for crop, units in self._units.items()}
        return f"<featherload.cache.Writer {self.folder}: rows of each crop {stored}>"


class _Values:
    """The values of one column for a batch, on the host."""

    def __init__(self, name: str, values: Any, rows: int) -> None:
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
            self._arrays = [*self._arrays[0]] if self._arrays[0].ndim else []
        forms = {(kind, array.ndim) for array, kind in found} if listed is not None else set()
        if len(forms) > 1:
            raise _refused(f"{name} has rows of different types or numbers of axes", name)
        self.axes = np.ndim(self._arrays[0]) if self._arrays else 0

    def row(self, row: int, sample: bytes, allow_nonfinite: bool) -> npt.NDArray[Any]:
        """A copy of the values of a row."""
        array = np.array(self._arrays[row], order="C", copy=True)
        if not allow_nonfinite and not _is_finite(array, self.kind):
            raise DatasetError(
                f"{self._name} of {sample.decode(errors='replace')} has infinite values or NaN: "
                "compute it with a wider type, or give the writer allow_nonfinite=True"
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


def _first_state(parts: Sequence[Part]) -> dict[str, Any] | None:
    """The state from which all ranks can continue. None: from the beginning."""
    last = {part.rank: part for part in parts}
    if not last:
        return None
    worlds = {part.notes.get("world") for part in last.values()}
    if worlds != {str(len(last))}:
        # A rank was killed before its first part, or the number of ranks has changed.
        return None
    states: list[dict[str, Any]] = [json.loads(part.notes["state"]) for part in last.values()]
    return min(states, key=lambda state: (state["epoch"], state["samples"]))


def _sync(folder: Path) -> None:
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _refused(why: str, option: str) -> ConfigError:
    return ConfigError(f"Writer: {why}", option=option)
