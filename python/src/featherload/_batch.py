"""A batch: two arrays, and what is known of their rows."""

from __future__ import annotations

import importlib
import operator
from collections.abc import Callable, Iterable
from enum import IntEnum
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from ._featherload import RawBatch, Tensor
from ._values import handle

Framework = Literal["numpy", "torch", "jax"]


class RowStatus(IntEnum):
    """What a row of a batch is."""

    OK = 0
    """A sample."""
    REPEATED = 1
    """A sample that another rank, or an earlier row, has too. It fills this rank up to the
    others' number of batches: leave it out of evaluations."""
    PADDING = 2
    """No sample: fills the last batch up. Pixels are 0, the label is -1 or zeros."""
    FAILED = 3
    """The sample gave no pixels: they are 0, the label is -1 or zeros."""
    SUBSTITUTED = 4
    """The sample gave no pixels: id, pixels and label are another one's."""


class Fault(NamedTuple):
    """A sample that gave no pixels."""

    row: int
    id: int
    path: Path
    kind: str
    reason: str
    substitute: int | None
    """The sample that stands in the row; None: the row is masked."""


class Batch(tuple[Any, Any]):
    """``images, labels = batch``.

    A tuple of two, so whatever walks nested batches (accelerate, Lightning) takes it.

    ``images``: array N x C x H x W (``layout="nchw"``) or N x H x W x C, of ``dtype``; a list
    of N arrays where the recipe leaves pictures their own sizes (``recipe="full"``).
    ``labels``: int64 array N, float32 array N x K (mixed batches, vectors), or None for a data
    set without labels. Masked rows have label -1, or zeros.

    No pixel is copied: ``images`` is the memory that the workers wrote. It stays as it is for
    as long as ``images``, the batch, or any view of them lives.
    """

    # It keeps the names of the samples alive, and no process.
    _raw: RawBatch | None

    def __new__(cls, pair: Iterable[Any], raw: RawBatch | None = None) -> Batch:
        batch = super().__new__(cls, tuple(pair))
        batch._raw = raw
        return batch

    def __reduce__(self) -> tuple[type[tuple[Any, ...]], tuple[tuple[Any, Any]]]:
        # To another process go the arrays alone.
        return (tuple, ((self[0], self[1]),))

    @property
    def images(self) -> Any:
        return self[0]

    @property
    def labels(self) -> Any:
        return self[1]

    @property
    def _of_loader(self) -> RawBatch:
        if self._raw is None:
            raise AttributeError(
                "this batch was made of another one (moved to a device, pinned): ids, status and "
                "paths are those of the batch that the loader gave"
            )
        return self._raw

    @property
    def epoch(self) -> int:
        """Epoch that the batch belongs to, from 0."""
        return self._of_loader.epoch

    @property
    def number(self) -> int:
        """Number of the batch within its epoch on this rank, from 0."""
        return self._of_loader.number

    @property
    def device(self) -> str:
        """Where the loader put the pixels: ``"cpu"`` or ``"cuda:N"``."""
        return self._of_loader.device

    @property
    def layout(self) -> str:
        """Order of the axes: ``"nchw"`` or ``"nhwc"``."""
        return self._of_loader.layout

    @property
    def ids(self) -> npt.NDArray[np.uint64]:
        """The samples, as numbers of the index; 0 for padding."""
        return np.asarray(self._of_loader.ids())

    @property
    def status(self) -> list[RowStatus]:
        """What each row is."""
        return [RowStatus(s) for s in self._of_loader.status()]

    @property
    def repeated(self) -> npt.NDArray[np.bool_]:
        """Rows that fill this rank up. Leave them out of evaluations."""
        return np.array(self._of_loader.repeated(), dtype=np.bool_)

    def good_rows(self) -> list[int]:
        """The rows that hold pixels of a sample: all but padding and failed ones."""
        return self._of_loader.good_rows()

    @property
    def faults(self) -> list[Fault]:
        """The samples that gave no pixels, with the reasons."""
        return [Fault(**fault) for fault in self._of_loader.faults()]

    def paths(self) -> list[Path | None]:
        """The files of the rows' samples; None for padding. They stay known after the loader is
        closed or gone.
        """
        return self._of_loader.paths()

    def record_stream(self, stream: Any) -> None:
        """Tells that ``stream`` reads the pixels, beside the stream that was current when
        they were taken. Their memory is not written again before what is in that stream
        when the last of them goes is over. ``stream``: a ``torch.cuda.Stream``, or a handle;
        it must live until then. Without a device it does nothing.
        """
        raw = self._of_loader
        if not raw.has_pixels:
            # A copy is the framework's, which has streams of its own.
            if hasattr(self[0], "record_stream") and self[0].is_cuda:
                self[0].record_stream(stream)
            return
        raw.record_stream(handle(stream))

    def to(self, *args: Any, **options: Any) -> Batch:
        """Images and labels moved or cast as ``torch.Tensor.to`` does; ids and status stay.
        What was moved keeps no memory of the loader. A dtype is for the images alone.
        """
        import torch

        images, labels = self
        first = images[0] if isinstance(images, list) and images else images
        if not isinstance(first, torch.Tensor):
            raise TypeError(
                f"Batch.to is for torch tensors, and these are {type(first).__name__}: "
                "give Loader framework='torch'"
            )

        def elsewhere(tensor: Any) -> Any:
            if isinstance(tensor, list):
                moved = [one.to(*args, **options) for one in tensor]
                return tensor if all(map(operator.is_, moved, tensor)) else moved
            return tensor.to(*args, **options)

        there = elsewhere(images)
        where = there[0] if isinstance(there, list) else there
        at = labels
        if labels is not None and labels.device != where.device:
            waits = {k: v for k, v in options.items() if k in ("non_blocking", "copy")}
            at = labels.to(where.device, **waits)
        if there is images and at is labels:
            return self
        raw = self._raw
        if raw is not None and there is not images:
            raw = raw.without_pixels()
        return Batch((there, at), raw)

    def numpy(self) -> tuple[Any, Any]:
        """Images and labels as NumPy arrays: views, or copies of what is on a device."""
        raw = self._of_loader
        if raw.has_pixels and raw.device == "cpu":
            return as_numpy(raw)
        images = as_torch(raw)[0] if raw.has_pixels else self[0]
        labels = as_numpy(raw, pixels=False)[1]
        if isinstance(images, list):
            return [_host(row) for row in images], labels
        return _host(images), labels

    def torch(self) -> tuple[Any, Any]:
        """Images and labels as torch tensors, which share the memory."""
        return self._as("torch", as_torch)

    def jax(self) -> tuple[Any, Any]:
        """Images and labels as JAX arrays, which share the memory where JAX lets them. Without
        JAX's ``jax_enable_x64`` labels are int32.
        """
        return self._as("jax", as_jax)

    def _as(self, module: str, take: Callable[[RawBatch], tuple[Any, Any]]) -> tuple[Any, Any]:
        raw = self._of_loader
        if raw.has_pixels:
            return take(raw)
        first = self[0][0] if isinstance(self[0], list) else self[0]
        if type(first).__module__.split(".")[0].removesuffix("lib") == module:
            return self[0], self[1]
        raise RuntimeError(
            "the pixels of this batch were copied or moved elsewhere: take them from batch.images"
        )

    def __repr__(self) -> str:
        raw = self._raw
        if raw is None:
            return tuple.__repr__(self)
        images = raw.images()
        shape = "rows of own sizes" if images is None else " x ".join(map(str, images.shape))
        return f"<featherload.Batch {raw.number} of epoch {raw.epoch}: {shape}, {raw.device}>"


def _host(array: Any) -> Any:
    """An array of a framework as NumPy's."""
    return array.cpu().numpy() if hasattr(array, "cpu") else np.asarray(array)


def as_numpy(raw: RawBatch, pixels: bool = True) -> tuple[Any, Any]:
    def array(tensor: Tensor) -> Any:
        if tensor.dtype == "bfloat16":
            # NumPy has no such type: ml_dtypes, which JAX brings, does.
            ml_dtypes = importlib.import_module("ml_dtypes")
            return np.asarray(tensor.bits()).view(ml_dtypes.bfloat16)
        return np.asarray(tensor)

    labels = raw.labels()
    images: Any = None
    if pixels:
        whole = raw.images()
        images = [array(row) for row in raw.rows()] if whole is None else array(whole)
    return images, None if labels is None else np.asarray(labels)


def as_torch(raw: RawBatch) -> tuple[Any, Any]:
    from torch.utils.dlpack import from_dlpack

    whole = raw.images()
    images: Any
    if whole is None:
        images = [from_dlpack(row) for row in raw.rows()]
    else:
        images = from_dlpack(whole)
    found = raw.labels()
    if found is None:
        return images, None
    labels = from_dlpack(found)
    if raw.device != "cpu":
        labels = labels.to(raw.device, non_blocking=True)
    return images, labels


def as_jax(raw: RawBatch) -> tuple[Any, Any]:
    import jax
    import jax.numpy as jnp

    whole = raw.images()
    images: Any
    if whole is None:
        images = [jax.dlpack.from_dlpack(row) for row in raw.rows()]
    else:
        images = jax.dlpack.from_dlpack(whole)
    found = raw.labels()
    return images, None if found is None else jnp.asarray(np.asarray(found))


TAKEN = {"numpy": as_numpy, "torch": as_torch, "jax": as_jax}
"""How each framework takes a batch."""
