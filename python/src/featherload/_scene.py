"""``featherload.Scene``: images with a camera and a pose each.

Never in here: decoded images, rays.
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
    """Intrinsics and lens of an image. Lengths are in pixels; the middle of the first pixel is at
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
    """Coefficients of the lens: ``{"k": (k1, k2, ...), "p": (p1, p2)}``, ``{"omega": (omega,)}``.
    Empty for lenses without coefficients."""

    @property
    def matrix(self) -> Numbers:
        """The 3 x 3 matrix of focal lengths and principal point, float64."""
        return np.array([[self.fx, 0, self.cx], [0, self.fy, self.cy], [0, 0, 1]], np.float64)


@dataclass(frozen=True)
class RollingShutter:
    """A shutter that exposes rows or columns one after the other. At (u, v), both 0 to 1 over the
    image, the pose lies between the frame's pose (0) and ``end`` (1), at
    ``timing[0] + timing[1] u + timing[2] v + timing[3] random``.
    """

    timing: tuple[float, float, float, float]
    end: Numbers = field(compare=False, repr=False)
    """The pose at the end: 3 x 4, float64."""


@dataclass(frozen=True)
class Frame:
    """One image of a scene."""

    name: str
    """The name in the scene's file."""
    image: Path
    mask: Path | None
    depth: Path | None
    camera: int
    """The index of its camera in ``scene.cameras``."""
    split: Split
    time: float | None
    """Time of the image, 0 to 1. None in scenes without times."""
    pose: Numbers = field(compare=False, repr=False)
    """From the camera to the scene: 3 x 4, float64. Axes of the camera are OpenCV's: x right, y
    down, z forward."""
    mask_is_full_size: bool = False
    """Whether the mask has the original size, but a smaller image is read."""
    depth_is_full_size: bool = False
    """Whether the depth has the original size, but a smaller image is read."""
    mask_is_inverted: bool = False
    """Whether nonzero pixels of the mask are left out, as in instant-ngp's ``dynamic_mask_*``. In
    other masks, nonzero pixels count."""
    fisheye_crop_radius: float | None = None
    """Only pixels within this distance of the middle count; in pixels of the image."""
    rolling_shutter: RollingShutter | None = None

    @property
    def pose_opengl(self) -> Numbers:
        """The pose with OpenGL's axes (x right, y up, z backward), as in nerfstudio and
        ``transforms.json``: 3 x 4, float64.
        """
        pose: Numbers = self.pose * np.array([1.0, -1.0, -1.0, 1.0])
        return pose


class Points(NamedTuple):
    """A point cloud, in coordinates of the scene."""

    xyz: npt.NDArray[np.float32]
    """N x 3."""
    rgb: npt.NDArray[np.uint8] | None
    """N x 3. None if the file has no colours."""


class Scene:
    """Images with a camera and a pose each, for NeRF and splatting.

    ::

        scene = featherload.Scene("data/fox")
        print(scene)
        rays = featherload.Rays(scene, rays=4096)

    Reads only the headers of images.

    ``path``
        A folder with ``transforms.json`` (nerfstudio, instant-ngp, ScanNet++), with
        ``transforms_train.json`` (Blender, D-NeRF), with a COLMAP model, or with
        ``poses_bounds.npy`` (LLFF); or one such file, or a model's folder such as ``sparse/1``.
    ``format``
        ``"nerfstudio"``, ``"instant-ngp"``, ``"blender"``, ``"scannet-pp"``, ``"colmap"``,
        ``"llff"``. Default: detected from the files. If a folder has several formats, the one with
        the most existing images.
    ``image_order``
        The order of the images, which decides how they are split: ``"name"``, or
        ``"nerfstudio"``, the order of nerfstudio's parser for the format (COLMAP's images by their
        numbers). Default: ``"nerfstudio"``; for COLMAP ``"name"``, as in gsplat.
    ``orientation``, ``center``
        Rotation and origin of the world, as in nerfstudio's parsers:
        ``"up"``, ``"vertical"``, ``"pca"``, ``"none"``; ``"poses"``, ``"focus"``, ``"none"``.
        Default: ``"up"`` and ``"poses"``; ``"none"`` for Blender, instant-ngp
        and LLFF.
    ``auto_scale``, ``scale_factor``
        Whether camera centres are scaled into -1 to 1 (default: True, but False for Blender and
        instant-ngp), and an additional factor (default 1). LLFF's nearest depth becomes 4/3.
    ``downscale_folder``
        The folder of images to read: 1 is the originals, n is ``images_n``. Default: the size is
        halved while the larger side exceeds 1,600 pixels and such a folder exists.
    ``split_by``
        Frames for training: a fraction (0.9), all but every n-th (a whole number),
        ``"filename"``, ``"listed"``, ``"all"``. Default: as the files list them. Otherwise every
        8th frame of COLMAP and LLFF, and a tenth of other scenes, is for evaluation.
    ``find_masks``
        Whether masks are found by name if the files name none. Default True.
    ``find_depths``
        Whether depths that are found by name are used if the files name none. Default False.
    ``depth_unit``
        Value of 1 in a depth file (integers and floats), in units of the file's world, like
        nerfstudio's ``depth_unit_scale_factor``. Default: as the file states, otherwise 0.001.
    ``strict``
        Reject a scene with an image that is missing or cannot be read. Default: such frames are
        left out. A warning counts them, and ``report`` names them (``missing_images``).
    ``max_json_bytes``, ``max_pixels``
        The largest ``transforms.json`` (default ``"256M"``) and the largest image (default
        178,956,970 pixels) that are read.

    Raises ``featherload.DatasetError``, which names file and key, for an invalid scene, and
    ``ConfigError`` for invalid options.
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
        """The folder to which paths in the files are relative."""
        return Path(self._raw.root)

    @cached_property
    def cameras(self) -> list[Camera]:
        """The different cameras, for the size of the images that are read."""
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
        """Number of frames."""
        return len(self.frames)

    def frames_of(self, split: Split) -> list[int]:
        """Indices in ``frames`` of the frames of a split. If a scene has no test frames, returns
        the frames for evaluation, as nerfstudio does.
        """
        found = self._raw.frames_of(split)
        if found is None:
            raise ConfigError(
                f"split {split!r} is unknown: use train, eval or test", option="split"
            )
        return found

    def points(self) -> Points | None:
        """The point cloud that the files name, in coordinates of the scene. None without one. Each
        call reads it again.
        """
        found = self._raw.points()
        if found is None:
            return None
        xyz, rgb = found
        return Points(np.asarray(xyz), None if rgb is None else np.asarray(rgb))

    @property
    def transform(self) -> Numbers:
        """From the world of the capture to the scene, before ``scale``: 3 x 4, float64. Equals
        ``transform`` in nerfstudio's ``dataparser_transforms.json``.
        """
        return np.array(self._raw.dataparser_transforms()[0], np.float64)

    @property
    def scale(self) -> float:
        """The factor that is applied after ``transform``. Equals ``scale`` in nerfstudio's
        ``dataparser_transforms.json``.
        """
        return self._raw.dataparser_transforms()[1]

    @cached_property
    def report(self) -> SceneReport:
        """The figures of the scene, as ``featherload index SCENE --json`` prints them."""
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
    """A camera from the library's JSON."""
    lens = said.pop("lens")
    name, values = (lens, {}) if isinstance(lens, str) else next(iter(lens.items()))
    coefficients = {
        key: tuple(value) if isinstance(value, list) else (value,) for key, value in values.items()
    }
    return Camera(**said, lens=name, coefficients=coefficients)
