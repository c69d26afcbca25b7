"""What a step of ``Rays`` and of ``Views`` share: arrays, and how each framework takes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np

from ._batch import Framework
from ._featherload import RawRays, RawView, Tensor
from ._values import handle

FRAMEWORKS: tuple[Framework, ...] = ("numpy", "torch", "jax")


class SceneArrays:
    """Arrays of one step, in the workers' memory or a device's."""

    _booleans: ClassVar[frozenset[str]]
    """Arrays that are bool."""
    _by_numpy: ClassVar[frozenset[str]]
    """Arrays that JAX takes as copies: it may have no int64, and has no other view of bytes."""
    _names: Sequence[str]
    """The arrays that there may be."""

    def __init__(self, raw: RawRays | RawView, framework: Framework) -> None:
        self._raw: Any = raw
        self._framework: Framework = framework
        self._on_host: Any = None
        self._arrays: dict[str, Any] = {}

    @property
    def step(self) -> int:
        """The step that it is of, from 0."""
        step: int = self._raw.step
        return step

    @property
    def device(self) -> str:
        """Where the arrays lie: ``"cpu"``, or ``"cuda:0"`` and so on."""
        device: str = self._raw.device
        return device

    def record_stream(self, stream: Any) -> None:
        """Tells that ``stream`` reads the arrays, beside the stream that was current when they
        were taken. Their memory is not written again before what is in that stream when the
        last of them goes is over. ``stream``: a ``torch.cuda.Stream``, or a handle; it must live
        until then. Without a device it does nothing.
        """
        self._raw.record_stream(handle(stream))

    def _array(self, name: str) -> Any:
        """The framework's array, or None where there is none."""
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
        """NumPy's arrays, and what JAX takes through them, lie in memory of the host."""
        by_numpy = self._framework == "numpy" or (
            self._framework == "jax" and name in self._by_numpy
        )
        if not by_numpy or self.device == "cpu":
            return self._raw
        if self._on_host is None:
            self._on_host = self._raw.to_host()
        return self._on_host

    def numpy(self) -> Self:
        """The same with NumPy's arrays, which share the memory; copies of those on a device."""
        return self._as("numpy")

    def torch(self) -> Self:
        """The same with torch's tensors, which share the memory."""
        return self._as("torch")

    def jax(self) -> Self:
        """The same with JAX's arrays, which share the memory where JAX lets them. Without JAX's
        ``jax_enable_x64`` whole numbers are int32.
        """
        return self._as("jax")

    def to(self, device: Any, *, non_blocking: bool = False) -> dict[str, Any]:
        """The arrays that there are, by name, as torch's tensors on a device."""
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
