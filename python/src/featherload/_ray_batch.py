"""The rays of a step: arrays, and how each framework takes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from ._batch import Framework
from ._featherload import RawRays, Tensor


class RayBatch(Mapping[str, Any]):
    """The rays of one step: ``batch.origins``, or ``batch["origins"]``.

    Arrays of N rays, of the framework that ``Rays`` was told:

    ============================  =========  =======
    ``indices``                   int64      (N, 3)
    ``origins``, ``directions``   float32    (N, 3)
    ``colors``                    float32    (N, 3)
    ``directions_norms``          float32    (N,)
    ``pixel_areas``               float32    (N,)
    ``depths``                    float32    (N, 1)
    ``times``                     float32    (N,)
    ``valid``                     bool       (N,)
    ============================  =========  =======

    Nothing is copied: arrays are the memory that the workers wrote. They stay as they are for
    as long as the batch, an array or any view of one lives.
    """

    def __init__(self, raw: RawRays, framework: Framework) -> None:
        self._raw = raw
        self._framework: Framework = framework
        self._on_host: RawRays | None = None
        self._names = raw.names()
        self._arrays: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._arrays:
            tensor = self._raw_for(name).array(name)
            if tensor is None:
                raise KeyError(name)
            self._arrays[name] = TAKEN_RAYS[self._framework](name, tensor)
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        """The number of arrays. ``batch.rays`` is that of the rays."""
        return len(self._names)

    # A mapping compares its values, which arrays cannot be.
    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    @property
    def step(self) -> int:
        """The step that the rays are of, from 0."""
        return self._raw.step

    @property
    def device(self) -> str:
        """Where they lie: ``"cpu"``, or ``"cuda:0"`` and so on."""
        return self._raw.device

    @property
    def rays(self) -> int:
        """Their number."""
        return len(self._raw)

    @property
    def indices(self) -> Any:
        """Image, row and column of each ray's pixel: int64, (N, 3). Images are numbered as in
        ``Rays.images`` and ``Rays.frames``.
        """
        return self["indices"]

    @property
    def origins(self) -> Any:
        """Where each ray begins, in the scene's units: float32, (N, 3)."""
        return self["origins"]

    @property
    def directions(self) -> Any:
        """Where it goes, of length 1: float32, (N, 3)."""
        return self["directions"]

    @property
    def colors(self) -> Any:
        """Its pixel's red, green and blue, 0 to 1: float32, (N, 3); with ``alpha`` (N, 4)."""
        return self["colors"]

    @property
    def directions_norms(self) -> Any:
        """Length of the direction before it was made 1: a depth along the camera's axis times
        this is a distance along the ray. float32, (N,).
        """
        return self["directions_norms"]

    @property
    def pixel_areas(self) -> Any:
        """Area of the pixel at distance 1: float32, (N,)."""
        return self["pixel_areas"]

    @property
    def depths(self) -> Any:
        """Depth of its pixel along the camera's axis, in the scene's units, 0 where it is not
        known: float32, (N, 1). None in a scene without depths.
        """
        return self["depths"] if "depths" in self._names else None

    @property
    def times(self) -> Any:
        """Time of the image, 0 to 1: float32, (N,); None in a scene without times."""
        return self["times"] if "times" in self._names else None

    @property
    def valid(self) -> Any:
        """Whether the lens says where the ray of this pixel goes: bool, (N,). Where it does
        not, origin and direction are zero: leave such rays out of the loss.
        """
        return self["valid"]

    def numpy(self) -> RayBatch:
        """The same with NumPy's arrays, which share the memory; copies of rays on a device."""
        return self._as("numpy")

    def torch(self) -> RayBatch:
        """The same with torch's tensors, which share the memory."""
        return self._as("torch")

    def jax(self) -> RayBatch:
        """The same with JAX's arrays, which share the memory where JAX lets them. Without JAX's
        ``jax_enable_x64`` indices are int32.
        """
        return self._as("jax")

    def record_stream(self, stream: Any) -> None:
        """Tells that ``stream`` reads the rays, beside the stream that was current when they
        were taken. Their memory is not written again before what is in that stream when the
        last of them goes is over. ``stream``: a ``torch.cuda.Stream``, or a handle; it must live
        until then. Without a device it does nothing.
        """
        handle = getattr(stream, "cuda_stream", stream)
        # torch's default stream is CUDA's legacy one.
        self._raw.record_stream(int(handle) or 1)

    def to(self, device: Any, *, non_blocking: bool = False) -> dict[str, Any]:
        """The arrays as torch's tensors on a device."""
        tensors = self.torch()
        return {
            name: tensor.to(device, non_blocking=non_blocking) for name, tensor in tensors.items()
        }

    def _raw_for(self, name: str) -> RawRays:
        """NumPy's arrays, and what JAX takes through them, lie in memory of the host."""
        by_numpy = self._framework == "numpy" or (
            self._framework == "jax" and name in ("indices", "valid")
        )
        if not by_numpy or self._raw.device == "cpu":
            return self._raw
        if self._on_host is None:
            self._on_host = self._raw.to_host()
        return self._on_host

    def _as(self, framework: Framework) -> RayBatch:
        return self if framework == self._framework else RayBatch(self._raw, framework)

    def __reduce__(self) -> Any:
        # To another process go the arrays alone.
        return (dict, (dict(self),))

    def __repr__(self) -> str:
        return f"<featherload.RayBatch of step {self.step}: {self.rays:,} rays, {self._framework}>"


def _as_numpy(name: str, tensor: Tensor) -> Any:
    array = np.asarray(tensor)
    return array.view(np.bool_) if name == "valid" else array


def _as_torch(name: str, tensor: Tensor) -> Any:
    import torch
    from torch.utils.dlpack import from_dlpack

    array = from_dlpack(tensor)
    return array.view(torch.bool) if name == "valid" else array


def _as_jax(name: str, tensor: Tensor) -> Any:
    import jax
    import jax.numpy as jnp

    if name in ("indices", "valid"):
        # It may have no int64, and has no other view of bytes.
        return jnp.asarray(_as_numpy(name, tensor))
    return jax.dlpack.from_dlpack(tensor)


TAKEN_RAYS: dict[Framework, Callable[[str, Tensor], Any]] = {
    "numpy": _as_numpy,
    "torch": _as_torch,
    "jax": _as_jax,
}
"""How each framework takes an array."""
