"""One image of a scene: its arrays, and how each framework takes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ._batch import Framework
from ._featherload import RawView, Tensor
from ._scene import Camera, Frame


class View:
    """The image of one step, with its mask, depth, camera and frame.

    Nothing is copied: arrays are the memory that a worker wrote. They stay as they are for as
    long as the view, an array or any view of one lives.
    """

    def __init__(self, raw: RawView, framework: Framework, camera: Camera, frame: Frame) -> None:
        self._raw = raw
        self._framework: Framework = framework
        self._arrays: dict[str, Any] = {}
        self.camera = camera
        """The camera of the image as it is here, of its size."""
        self.frame = frame
        """The frame: its pose, name, time and files."""

    @property
    def step(self) -> int:
        """The step that it is of, from 0."""
        return self._raw.step

    @property
    def index(self) -> int:
        """The image's number in the split: its place in ``Views.images``."""
        return self._raw.index

    @property
    def image(self) -> Any:
        """uint8, or float32 from 0 to 1: (H, W, 3), or (H, W, 4) with alpha."""
        return self._array("image")

    @property
    def mask(self) -> Any:
        """Whether each pixel counts: bool, (H, W). None without a mask."""
        return self._array("mask")

    @property
    def depth(self) -> Any:
        """Depth of each pixel along the camera's axis, in the scene's units, 0 where it is not
        known: float32, (H, W). None without depths.
        """
        return self._array("depth")

    def numpy(self) -> View:
        """The same with NumPy's arrays, which share the memory."""
        return self._as("numpy")

    def torch(self) -> View:
        """The same with torch's tensors, which share the memory."""
        return self._as("torch")

    def jax(self) -> View:
        """The same with JAX's arrays, which share the memory where JAX lets them."""
        return self._as("jax")

    def to(self, device: Any, *, non_blocking: bool = False) -> dict[str, Any]:
        """The arrays that there are, by name, as torch's tensors on a device."""
        view = self.torch()
        tensors = {name: view._array(name) for name in NAMES}
        return {
            name: tensor.to(device, non_blocking=non_blocking)
            for name, tensor in tensors.items()
            if tensor is not None
        }

    def _array(self, name: str) -> Any:
        if name not in self._arrays:
            tensor = self._raw.array(name)
            taken = None if tensor is None else TAKEN_VIEWS[self._framework](name, tensor)
            self._arrays[name] = taken
        return self._arrays[name]

    def _as(self, framework: Framework) -> View:
        if framework == self._framework:
            return self
        return View(self._raw, framework, self.camera, self.frame)

    def __reduce__(self) -> Any:
        raise TypeError("a View cannot go to another process: send its arrays")

    def __repr__(self) -> str:
        height, width = self.camera.height, self.camera.width
        return f"<featherload.View of step {self.step}: {self.frame.name}, {height} x {width}>"


NAMES = ("image", "mask", "depth")
"""The arrays that there may be."""


def _as_numpy(name: str, tensor: Tensor) -> Any:
    array = np.asarray(tensor)
    return array.view(np.bool_) if name == "mask" else array


def _as_torch(name: str, tensor: Tensor) -> Any:
    import torch
    from torch.utils.dlpack import from_dlpack

    array = from_dlpack(tensor)
    return array.view(torch.bool) if name == "mask" else array


def _as_jax(name: str, tensor: Tensor) -> Any:
    import jax
    import jax.numpy as jnp

    if name == "mask":
        # JAX has no other view of bytes.
        return jnp.asarray(_as_numpy(name, tensor))
    return jax.dlpack.from_dlpack(tensor)


TAKEN_VIEWS: dict[Framework, Callable[[str, Tensor], Any]] = {
    "numpy": _as_numpy,
    "torch": _as_torch,
    "jax": _as_jax,
}
"""How each framework takes an array."""
