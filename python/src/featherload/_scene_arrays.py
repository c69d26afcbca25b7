"""The common part of a step of ``Rays`` and of ``Views``: arrays, converted to each framework."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np

from ._batch import Framework
from ._featherload import RawRays, RawView, Tensor
from ._values import handle

FRAMEWORKS: tuple[Framework, ...] = ("numpy", "torch", "jax")


class SceneArrays:
    """Arrays of one step, in the workers' memory or on a device."""

    _booleans: ClassVar[frozenset[str]]
    """Arrays that are bool."""
    _by_numpy: ClassVar[frozenset[str]]
    """Arrays that are copied for JAX: it may have no int64, and cannot view bytes as bool."""
    _names: Sequence[str]
    """All arrays that a step may have."""

    def __init__(self, raw: RawRays | RawView, framework: Framework) -> None:
        self._raw: Any = raw
        self._framework: Framework = framework
        self._on_host: Any = None
        self._arrays: dict[str, Any] = {}

    @property
    def step(self) -> int:
        """The number of the step, from 0."""
        step: int = self._raw.step
        return step

    @property
    def device(self) -> str:
        """Where the arrays are: ``"cpu"``, or ``"cuda:0"`` and so on."""
        device: str = self._raw.device
        return device

    def record_stream(self, stream: Any) -> None:
        """Registers a further ``stream`` that reads the arrays, in addition to the stream that was
        current when they were taken. When the last reference to them is dropped, their memory is
        reused only after the work that ``stream`` has at that time. ``stream``: a
        ``torch.cuda.Stream``, or a handle; it must exist until then. Without a device it does
        nothing.
        """
        self._raw.record_stream(handle(stream))

    def _array(self, name: str) -> Any:
        """The framework's array. None if the step has no such array."""
        if name not in self._arrays:
            tensor: Tensor | None = self._raw_for(name).array(name)
            self._arrays[name] = None if tensor is None else self._taken(name, tensor)
        return self._arrays[name]

    def _taken(self, name: str, tensor: Tensor) -> Any:
        boolean = name in self._booleans
        if self._framework == "torch":
            import torch
            from torch.utils.dlpack import from_dlpack

            array = from_dlpack(tensor)
            return array.view(torch.bool) if boolean else array
        if self._framework == "jax" and name not in self._by_numpy:
            import jax

            return jax.dlpack.from_dlpack(tensor)
        copied = np.asarray(tensor)
        copied = copied.view(np.bool_) if boolean else copied
        if self._framework == "numpy":
            return copied
        import jax.numpy as jnp

        return jnp.asarray(copied)

    def _raw_for(self, name: str) -> Any:
        """The step that has the array, in host memory for NumPy and for copies to JAX."""
        by_numpy = self._framework == "numpy" or (
            self._framework == "jax" and name in self._by_numpy
        )
        if not by_numpy or self.device == "cpu":
            return self._raw
        if self._on_host is None:
            self._on_host = self._raw.to_host()
        return self._on_host

    def numpy(self) -> Self:
        """The same with NumPy arrays, which share the memory. Arrays on a device are copied."""
        return self._as("numpy")

    def torch(self) -> Self:
        """The same with torch tensors, which share the memory."""
        return self._as("torch")

    def jax(self) -> Self:
        """The same with JAX arrays, which share the memory if JAX allows it. Without JAX's
        ``jax_enable_x64``, whole numbers are int32.
        """
        return self._as("jax")

    def to(self, device: Any, *, non_blocking: bool = False) -> dict[str, Any]:
        """All arrays of the step, by name, as torch tensors on a device."""
        taken = self.torch()
        tensors = {name: taken._array(name) for name in self._names}
        return {
            name: tensor.to(device, non_blocking=non_blocking)
            for name, tensor in tensors.items()
            if tensor is not None
        }

    def _as(self, framework: Framework) -> Self:
        return self if framework == self._framework else self._with(framework)

    def _with(self, framework: Framework) -> Self:
        return type(self)(self._raw, framework)
