"""One image of a scene."""

from __future__ import annotations

from typing import Any, Self

from ._batch import Framework
from ._featherload import RawView, printable
from ._scene import Camera, Frame
from ._scene_arrays import SceneArrays


class View(SceneArrays):
    """The image of one step, with its mask, depth, camera and frame.

    Nothing is copied: arrays are the memory that a worker or a device wrote. They do not change
    while the view, an array or a view of one exists.
    """

    _booleans = frozenset({"mask"})
    _by_numpy = frozenset({"mask"})
    _names = ("image", "mask", "depth")

    def __init__(self, raw: RawView, framework: Framework, camera: Camera, frame: Frame) -> None:
        super().__init__(raw, framework)
        self.camera = camera
        """The camera of this image, for its size."""
        self.frame = frame
        """The frame: its pose, name, time and files."""

    @property
    def index(self) -> int:
        """The image's number in the split: its index in ``Views.images``."""
        index: int = self._raw.index
        return index

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
        """Depth of each pixel along the camera's axis, in the scene's units, or 0 if it is unknown:
        float32, (H, W). None without depths.
        """
        return self._array("depth")

    def _with(self, framework: Framework) -> Self:
        return type(self)(self._raw, framework, self.camera, self.frame)

    def __reduce__(self) -> Any:
        raise TypeError("a View cannot go to another process: send its arrays instead")

    def __repr__(self) -> str:
        height, width = self.camera.height, self.camera.width
        name = printable(self.frame.name)
        return f"<featherload.View of step {self.step}: {name}, {height} x {width}>"
