"""``featherload.Scene``: images with a camera and a pose each.

Never in here: a decoded picture, a ray.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from . import _options
from ._errors import ConfigError
from ._featherload import RawScene, printable
from ._reports import SceneReport

_Path = str | os.PathLike[str]
Split = Literal["train", "eval", "test"]
SceneFormat = Literal["nerfstudio", "instant-ngp", "blender", "scannet-pp", "colmap", "llff"]
Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Camera:
    """What an image was taken with. Lengths are pixels; the middle of the first pixel lies at
    (0.5, 0.5).
    """

    width: int
    height: int
    fx: float
    fy: float
    cx: float
    cy: float
    lens: str
    """``"pinhole"``, ``"brown"`` (COLMAP's RADIAL and OPENCV, nerfstudio's perspective with
    distortion), ``"rational"``, ``"fisheye"``, ``"fisheye624"``, ``"thin_prism_fisheye"``,
    ``"fov"``, ``"equirectangular"``, ``"orthographic"``."""
    coefficients: Mapping[str, tuple[float, ...]]
    """Of the lens: ``{"k": (k1, k2, ...), "p": (p1, p2)}``, ``{"omega": (omega,)}``; empty for
    lenses without."""

    @property
    def matrix(self) -> Numbers:
        """The 3 x 3 matrix of focal lengths and principal point, float64."""
        return np.array([[self.fx, 0, self.cx], [0, self.fy, self.cy], [0, 0, 1]], np.float64)


@dataclass(frozen=True)
class RollingShutter:
    """Rows of the image follow each other in time. At (u, v), both 0 to 1 over the image, the
    pose is the one at ``timing[0] + timing[1] u + timing[2] v + timing[3] random`` between
    the frame's pose (0) and ``end`` (1).
    """

    timing: tuple[float, float, float, float]
    end: Numbers = field(compare=False, repr=False)
    """3 x 4, float64."""


@dataclass(frozen=True)
class Frame:
    """One image of a scene."""

    name: str
    """As the scene's file has it."""
    image: Path
    mask: Path | None
    depth: Path | None
    camera: int
    """Its place in ``scene.cameras``."""
    split: Split
    time: float | None
    """0 to 1, in scenes that move."""
    pose: Numbers = field(compare=False, repr=False)
    """From the camera to the scene: 3 x 4, float64. Axes of the camera are OpenCV's: x right, y
    down, z forward."""
    mask_is_full_size: bool = False
    """The mask is of the original image, where a smaller one is read."""
    depth_is_full_size: bool = False
    """The depth is of the original image, where a smaller one is read."""
    mask_is_inverted: bool = False
    """Pixels of the mask that are not zero are left out, as in instant-ngp's
    ``dynamic_mask_*``. In other masks they count."""
    fisheye_crop_radius: float | None = None
    """Only pixels this near to the middle count; in pixels of the image."""
    rolling_shutter: RollingShutter | None = None

    @property
    def pose_opengl(self) -> Numbers:
        """The pose for OpenGL's axes, x right, y up, z backward, as nerfstudio and
        ``transforms.json`` have it: 3 x 4, float64.
        """
        pose: Numbers = self.pose * np.array([1.0, -1.0, -1.0, 1.0])
        return pose


class Points(NamedTuple):
    """A point cloud, in the world of the scene."""

    xyz: npt.NDArray[np.float32]
    """N x 3."""
    rgb: npt.NDArray[np.uint8] | None
    """N x 3; None where the file has no colours."""


class Scene:
    """Images with a camera and a pose each, as NeRF and splatting want them.

    ::

        scene = featherload.Scene("data/fox")
        print(scene)
        rays = featherload.Rays(scene, rays=4096)

    Only headers of pictures are read.

    ``path``
        A folder with ``transforms.json`` (nerfstudio, instant-ngp, ScanNet++), with
        ``transforms_train.json`` (Blender, D-NeRF), with a COLMAP model, or with
        ``poses_bounds.npy`` (LLFF); or one such file, or a model's folder such as ``sparse/1``.
    ``format``
        ``"nerfstudio"``, ``"instant-ngp"``, ``"blender"``, ``"scannet-pp"``, ``"colmap"``,
        ``"llff"``. Default: what the files show. Where a folder has several, the one with the
        most images that are there.
    ``image_order``
        The order of the images, which decides how they are split: ``"name"``, or
        ``"nerfstudio"``, as its parser of the format has it (COLMAP's images by their numbers).
        Default: ``"nerfstudio"``; for COLMAP ``"name"``, as gsplat.
    ``orientation``, ``center``
        How the world is turned and where its origin lies, as nerfstudio's parsers do:
        ``"up"``, ``"vertical"``, ``"pca"``, ``"none"``; ``"poses"``, ``"focus"``, ``"none"``.
        Default: ``"up"`` and ``"poses"``; ``"none"`` for Blender, instant-ngp
        and LLFF.
    ``auto_scale``, ``scale_factor``
        Whether camera centres are scaled into -1 to 1 (default: not for Blender and
        instant-ngp), and a factor on top of that (default 1). LLFF's nearest depth becomes 4/3.
    ``downscale_folder``
        The folder of images to read: 1 = the originals, n = ``images_n``. Default: halves while
        the larger side is over 1,600 pixels and there is a folder.
    ``split_by``
        Which frames train: a fraction (0.9), every n-th evaluates (a whole number),
        ``"filename"``, ``"listed"``, ``"all"``. Default: as the files list it, else every 8th of
        COLMAP and LLFF and a tenth of the others evaluate.
    ``find_masks``
        Whether masks are looked for by name where the files name none. Default True.
    ``find_depths``
        Whether depths that are found by name are read, where the files name none. Default False.
    ``depth_unit``
        What 1 in a depth's file means, in units of the file's world: of integers and of floats,
        as nerfstudio's ``depth_unit_scale_factor``. Default: as the file says, else 0.001.
    ``strict``
        Refuse a scene of which an image is missing or cannot be read. Default: such frames are
        left out, and named in ``report`` (``missing_images``); a warning counts them.
    ``max_json_bytes``, ``max_pixels``
        The largest ``transforms.json`` (default ``"256M"``) and image (default 178,956,970
        pixels) that are read.

    Raises ``featherload.DatasetError``, which names file and key, for what is no scene, and
    ``ConfigError`` for options that cannot work.
    """

    def __init__(
        self,
        path: _Path,
        *,
        format: SceneFormat | None = None,
        image_order: Literal["name", "nerfstudio"] | None = None,
        orientation: Literal["up", "vertical", "pca", "none"] | None = None,
        center: Literal["poses", "focus", "none"] | None = None,
        auto_scale: bool | None = None,
        scale_factor: float | None = None,
        downscale_folder: int | None = None,
        split_by: float | int | Literal["filename", "listed", "all"] | None = None,
        find_masks: bool | None = None,
        find_depths: bool | None = None,
        depth_unit: float | None = None,
        strict: bool | None = None,
        max_json_bytes: int | str | None = None,
        max_pixels: int | None = None,
    ) -> None:
        keywords = {name: value for name, value in locals().items() if name not in ("self", "path")}
        self._raw = RawScene(_options.scene_text(path, keywords))

    @classmethod
    def _of(cls, raw: RawScene) -> Scene:
        scene = cls.__new__(cls)
        scene._raw = raw
        return scene

    @property
    def root(self) -> Path:
        """The folder that paths in the files start from."""
        return Path(self._raw.root)

    @cached_property
    def cameras(self) -> list[Camera]:
        """Each once, of the size that the images have."""
        return [camera_of(said) for said in json.loads(self._raw.cameras())]

    @cached_property
    def poses(self) -> Numbers:
        """The poses of all frames: N x 3 x 4, float64, OpenCV's axes."""
        return np.asarray(self._raw.poses())

    @cached_property
    def frames(self) -> list[Frame]:
        """All images, in the order of the scene."""
        ends = np.asarray(self._raw.end_poses())
        frames = []
        for number, (files, marks, about, timing) in enumerate(self._raw.frames()):
            name, image, mask, depth = files
            camera, time, split, crop = about
            shutter = None if timing is None else RollingShutter(_four(timing), ends[number])
            frames.append(
                Frame(
                    name=name,
                    image=Path(image),
                    mask=None if mask is None else Path(mask),
                    depth=None if depth is None else Path(depth),
                    camera=camera,
                    split=split,
                    time=time,
                    pose=self.poses[number],
                    mask_is_full_size=marks[0],
                    depth_is_full_size=marks[1],
                    mask_is_inverted=marks[2],
                    fisheye_crop_radius=crop,
                    rolling_shutter=shutter,
                )
            )
        return frames

    def __len__(self) -> int:
        """Frames."""
        return len(self.frames)

    def frames_of(self, split: Split) -> list[int]:
        """The places in ``frames`` of those of a split. A scene without frames for tests gives
        those for evaluation, as nerfstudio does.
        """
        found = self._raw.frames_of(split)
        if found is None:
            raise ConfigError(
                f"split {split!r} is unknown: use train, eval or test", option="split"
            )
        return found

    def points(self) -> Points | None:
        """The point cloud that the files name, in the world of the scene; None without one. It
        is read anew with each call.
        """
        found = self._raw.points()
        if found is None:
            return None
        xyz, rgb = found
        return Points(np.asarray(xyz), None if rgb is None else np.asarray(rgb))

    @property
    def transform(self) -> Numbers:
        """From the world of the capture to the scene's, before ``scale``: 3 x 4, float64.
        ``transform`` of nerfstudio's ``dataparser_transforms.json``.
        """
        return np.array(self._raw.dataparser_transforms()[0], np.float64)

    @property
    def scale(self) -> float:
        """What is multiplied behind ``transform``: ``scale`` of nerfstudio's
        ``dataparser_transforms.json``.
        """
        return self._raw.dataparser_transforms()[1]

    @cached_property
    def report(self) -> SceneReport:
        """The scene in numbers, as ``featherload index SCENE --json`` prints it."""
        return SceneReport(json.loads(self._raw.report()))

    def svg(self, *, points: bool = True) -> str:
        """A drawing from above and from the side: cameras, the box around them, and up to 2,000
        points.
        """
        return self._raw.svg(points)

    def _repr_svg_(self) -> str:
        return self.svg()

    def __str__(self) -> str:
        return str(self.report)

    def __repr__(self) -> str:
        root = printable(str(self.root))
        return f"<featherload.Scene: {root}, {self.report['frames']} frames>"


def _four(timing: list[float]) -> tuple[float, float, float, float]:
    a, b, c, d = timing
    return a, b, c, d


def camera_of(said: dict[str, Any]) -> Camera:
    """A camera as the library tells it."""
    lens = said.pop("lens")
    name, values = (lens, {}) if isinstance(lens, str) else next(iter(lens.items()))
    coefficients = {
        key: tuple(value) if isinstance(value, list) else (value,) for key, value in values.items()
    }
    return Camera(**said, lens=name, coefficients=coefficients)
