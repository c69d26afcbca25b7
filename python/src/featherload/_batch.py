"""A batch: two arrays, and the status, ids and paths of their rows."""

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
    """The status of a row of a batch."""

    OK = 0
    """A sample."""
    REPEATED = 1
    """A sample that another rank or an earlier row also has. It fills this rank up to the number
    of batches of the other ranks. Leave it out of evaluations."""
    PADDING = 2
    """No sample: the row fills up the last batch. Pixels are 0, the label is -1 or zeros."""
    FAILED = 3
    """The sample failed. Pixels are 0, the label is -1 or zeros."""
    SUBSTITUTED = 4
    """The sample failed. Id, pixels and label belong to another sample."""


class Fault(NamedTuple):
    """A failed sample, and the reason."""

    row: int
    id: int
    path: Path
    kind: str
    reason: str
    substitute: int | None
    """The sample that replaced it in the row. None: the row is masked."""


class Batch(tuple[Any, Any]):
    """``images, labels = batch``.

    It is a tuple of two, so tools that walk nested batches (accelerate, Lightning) accept it.

    ``images``: array N x C x H x W (``layout="nchw"``) or N x H x W x C, of ``dtype``. If images
    keep their own sizes (``recipe="full"``), it is a list of N arrays.
    ``labels``: int64 array N, float32 array N x K (mixed batches, vectors), or None for a data
    set without labels. Masked rows have label -1, or zeros.

    No pixel is copied: ``images`` is the memory that the workers wrote. It does not change while
    ``images``, the batch, or any view of them exists.
    """

    # Keeps the names of the samples alive, but no process.
    _raw: RawBatch | None

    def __new__(cls, pair: Iterable[Any], raw: RawBatch | None = None) -> Batch:
        batch = super().__new__(cls, tuple(pair))
        batch._raw = raw
        return batch

    def __reduce__(self) -> tuple[type[tuple[Any, ...]], tuple[tuple[Any, Any]]]:
        # Only the arrays are sent to another process.
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
                "this batch was made from another batch (moved to a device, pinned): read ids, "
                "status and paths from the batch of the loader"
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
        """The number of each sample in the index; 0 for padding."""
        return np.asarray(self._of_loader.ids())

    @property
    def status(self) -> list[RowStatus]:
        """The status of each row."""
        return [RowStatus(s) for s in self._of_loader.status()]

    @property
    def repeated(self) -> npt.NDArray[np.bool_]:
        """Whether each row repeats a sample to fill up this rank. Leave such rows out of
        evaluations.
        """
        return np.array(self._of_loader.repeated(), dtype=np.bool_)

    def good_rows(self) -> list[int]:
        """The rows that hold pixels of a sample: all but padding and failed ones."""
        return self._of_loader.good_rows()

    @property
    def faults(self) -> list[Fault]:
        """The failed samples, with the reasons."""
        return [Fault(**fault) for fault in self._of_loader.faults()]

    def paths(self) -> list[Path | None]:
        """The file of each row's sample; None for padding. Also available after the loader is
        closed or deleted.
        """
        return self._of_loader.paths()

    def record_stream(self, stream: Any) -> None:
        """Registers a further ``stream`` that reads the pixels, in addition to the stream that
        was current when the batch was taken. When the last reference to the pixels is dropped,
        their memory is reused only after the work that ``stream`` has at that time. ``stream``: a
        ``torch.cuda.Stream``, or a handle; it must exist until then. Without a device it does
        nothing.
        """
        raw = self._of_loader
        if not raw.has_pixels:
            # A copy belongs to the framework, which tracks streams itself.
            if hasattr(self[0], "record_stream") and self[0].is_cuda:
                self[0].record_stream(stream)
            return
        raw.record_stream(handle(stream))

    def to(self, *args: Any, **options: Any) -> Batch:
        """Images and labels, moved or cast like ``torch.Tensor.to``. Ids and status are kept.
        Moved images do not use the loader's memory. A dtype applies only to the images.
        """
        import torch

        images, labels = self
        first = images[0] if isinstance(images, list) and images else images
        if not isinstance(first, torch.Tensor):
            raise TypeError(
                f"Batch.to needs torch tensors, but images are {type(first).__name__}: "
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
        """Images and labels as NumPy arrays: views, or copies if they are on a device."""
        raw = self._of_loader
        if raw.has_pixels and raw.device == "cpu":
            return as_numpy(raw)
        images = as_torch(raw)[0] if raw.has_pixels else self[0]
        labels = as_numpy(raw, pixels=False)[1]
        if isinstance(images, list):
            return [_host(row) for row in images], labels
        return _host(images), labels

    def torch(self) -> tuple[Any, Any]:
        """Images and labels as torch tensors, which share the batch's memory."""
        return self._as("torch", as_torch)

    def jax(self) -> tuple[Any, Any]:
        """Images and labels as JAX arrays, which share the batch's memory if JAX allows it.
        Without JAX's ``jax_enable_x64``, labels are int32.
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


def _channels(raw: RawBatch, images: Any) -> Any:
    """The channels that count: of a grey image one of three equal ones, as a view."""
    if not raw.has_one_channel:
        return images
    if isinstance(images, list):
        return [_channels(raw, row) for row in images]
    return images[..., :1] if raw.layout == "nhwc" else images[..., :1, :, :]


def as_numpy(raw: RawBatch, pixels: bool = True) -> tuple[Any, Any]:
    def array(tensor: Tensor) -> Any:
        if tensor.dtype == "bfloat16":
            # NumPy has no such type. ml_dtypes has it, which JAX installs.
            ml_dtypes = importlib.import_module("ml_dtypes")
            return np.asarray(tensor.bits()).view(ml_dtypes.bfloat16)
        return np.asarray(tensor)

    labels = raw.labels()
    images: Any = None
    if pixels:
        whole = raw.images()
        images = [array(row) for row in raw.rows()] if whole is None else array(whole)
        images = _channels(raw, images)
    return images, None if labels is None else np.asarray(labels)


def as_torch(raw: RawBatch) -> tuple[Any, Any]:
    from torch.utils.dlpack import from_dlpack

    whole = raw.images()
    images: Any
    if whole is None:
        images = [from_dlpack(row) for row in raw.rows()]
    else:
        images = from_dlpack(whole)
    images = _channels(raw, images)
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
    images = _channels(raw, images)
    found = raw.labels()
    return images, None if found is None else jnp.asarray(np.asarray(found))


TAKEN = {"numpy": as_numpy, "torch": as_torch, "jax": as_jax}
"""Converts a batch to the arrays of each framework."""
