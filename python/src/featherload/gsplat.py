"""``Parser`` and ``Dataset``, which replace those of gsplat's examples (``datasets/colmap.py``).

::

    from featherload.gsplat import Dataset, Parser

    parser = Parser("data/garden", factor=4, normalize=True)
    trainset = Dataset(parser, split="train")
    data = trainset[0]          # K, camtoworld, image, image_id, camera_idx

featherload's workers decode images into memory that all processes share. Needs torch, but not
gsplat itself.

Never in here: reading a scene, straightening images.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch

from ._colmap import read_images, read_points
from ._errors import ConfigError, DatasetError
from ._scene import Camera, Scene
from ._values import path_text, whole, whole_or_none
from ._views import Views

__all__ = ["Dataset", "Parser"]

_Floats = npt.NDArray[np.float64]


class Parser:
    """A COLMAP model with its images, with the fields of gsplat's ``Parser``.

    ``data_dir``
        The folder with ``images`` and ``sparse/0``.
    ``factor``
        Images are read from the folder ``images_N``, where N is ``factor``. If it does not exist,
        images are scaled to 1/N.
    ``normalize``
        Whether the world is rotated, moved and scaled to fit cameras and points.
    ``test_every``
        Every n-th image, by name, is for evaluation.
    ``undistort``
        Whether images are straightened. False returns the original images, ``Ks_dict`` of the
        distorted camera, and its coefficients in ``params_dict``, as 3DGUT needs them.
    ``num_workers``
        Worker processes of each process that reads images. Default 1, because torch's loaders have
        their own processes, and request images in any order.
    ``memory_limit``, ``store_folder``
        As in ``featherload.Views``.

    Two things differ from gsplat. The principal point of straightened images keeps COLMAP's
    convention that pixel centres are at 0.5; gsplat passes the same numbers to OpenCV, for which
    they are at 0. Masks are found beside the images and returned with them; ``mask_dict`` has None.
    """

    def __init__(
        self,
        data_dir: str | os.PathLike[str],
        factor: int = 1,
        normalize: bool = False,
        test_every: int = 8,
        load_exposure: bool = False,
        *,
        undistort: bool = True,
        num_workers: int = 1,
        memory_limit: int | str | None = None,
        store_folder: str | os.PathLike[str] | None = None,
    ) -> None:
        if load_exposure:
            raise ConfigError(
                "load_exposure is not supported, because exposure is not read from EXIF: leave it "
                "out, or use gsplat's own Parser",
                option="load_exposure",
            )
        for name, value in (("factor", factor), ("test_every", test_every)):
            whole(name, value, 1)
        self.data_dir = path_text("data_dir", data_dir)
        self.factor = factor
        self.normalize = normalize
        self.test_every = test_every
        self.load_exposure = load_exposure
        root = Path(data_dir)
        self.extconf: dict[str, Any] = {"spiral_radius_scale": 1.0, "no_factor_suffix": False}
        self.extconf.update(_extended(root / "ext_metadata.json"))
        bounds = root / "poses_bounds.npy"
        self.bounds = np.array([0.01, 1.0])
        if bounds.exists():
            try:
                self.bounds = np.load(bounds)[:, -2:]
            except (ValueError, IndexError, OSError) as e:
                raise DatasetError(f"{bounds}: {e}: repair or remove it", path=str(bounds)) from e

        has_folder = factor > 1 and (root / f"images_{factor}").is_dir()
        is_small = bool(self.extconf["no_factor_suffix"])
        self._scene: Scene | None = None
        self._folder = factor if has_folder and not is_small else 1
        frames = self.scene.frames
        self._options: dict[str, Any] = {
            "downscale": 1 if has_folder or is_small else factor,
            "shuffle": False,
            "rank": 0,
            "world_size": 1,
            "num_workers": num_workers,
            # Views made ahead are of no use, because the next image may be any.
            "depth": 2,
            "memory_limit": memory_limit,
            "store_folder": store_folder,
            "framework": "torch",
        }
        # Images of cameras without coefficients are straight.
        if undistort and any(camera.lens != "pinhole" for camera in self.scene.cameras):
            self._options["undistort"] = True
        self._views: tuple[int, Views] | None = None

        models = self.scene.report["models"]
        model = Path(next(found["folder"] for found in models if found["is_read"]))
        by_name = {image.name: image for image in read_images(model)}
        images = [by_name[frame.name] for frame in frames]
        cloud = read_points(model)
        self.image_names = [frame.name for frame in frames]
        self.image_paths = [str(frame.image) for frame in frames]
        self.camera_ids = [image.camera_id for image in images]
        self.point_indices = {
            image.name: cloud.seen_by[image.id] for image in images if image.id in cloud.seen_by
        }
        self.points_err = cloud.error
        self.points_rgb = cloud.rgb

        poses = np.tile(np.eye(4), (len(frames), 1, 1))
        poses[:, :3] = self.scene.poses
        self.camtoworlds: _Floats = poses
        self.points: npt.NDArray[Any] = cloud.xyz
        self.transform: _Floats = np.eye(4)
        if normalize:
            moved = _normalized(poses, cloud.xyz)
            self.camtoworlds, self.points, self.transform = moved

        self.Ks_dict: dict[int, _Floats] = {}
        self.params_dict: dict[int, npt.NDArray[np.float32]] = {}
        self.imsize_dict: dict[int, tuple[int, int]] = {}
        self.mask_dict: dict[int, None] = {}
        cameras = self.views().cameras
        # Processes of torch's loaders start their own workers. Workers of this process start again
        # with its first image.
        self.close()
        for image, frame, camera in zip(images, frames, cameras, strict=True):
            known = self.imsize_dict.setdefault(image.camera_id, (camera.width, camera.height))
            if known != (camera.width, camera.height):
                raise DatasetError(
                    f"{frame.image}: its camera {image.camera_id} has images of other sizes, but "
                    "gsplat needs one size for each camera: give each size its own camera",
                    path=str(frame.image),
                )
            self.Ks_dict[image.camera_id] = camera.matrix
            self.params_dict[image.camera_id] = _params(self.scene.cameras[frame.camera])
            self.mask_dict[image.camera_id] = None
        unique = sorted(set(self.camera_ids))
        self.camera_id_to_idx = {camera_id: number for number, camera_id in enumerate(unique)}
        self.camera_indices = [self.camera_id_to_idx[camera_id] for camera_id in self.camera_ids]
        self.num_cameras = len(unique)
        self.exposure_values: list[float | None] = [None] * len(frames)
        places = self.camtoworlds[:, :3, 3]
        self.scene_scale = np.linalg.norm(places - places.mean(axis=0), axis=1).max()

    @property
    def scene(self) -> Scene:
        """The scene, in coordinates of the COLMAP model."""
        if self._scene is None:
            self._scene = Scene(
                self.data_dir,
                format="colmap",
                orientation="none",
                center="none",
                auto_scale=False,
                split_by="all",
                strict=True,
                downscale_folder=self._folder,
            )
        return self._scene

    def views(self) -> Views:
        """The images, by their number. Each process that calls this starts its own workers, as
        torch's loaders need. Decoded images are shared.
        """
        if self._views is None or self._views[0] != os.getpid():
            self._views = (os.getpid(), Views(self.scene, **self._options))
        return self._views[1]

    def close(self) -> None:
        """Ends the workers of this process now. Otherwise they end with the process."""
        if self._views is not None and self._views[0] == os.getpid():
            self._views[1].close()
        self._views = None

    def __getstate__(self) -> dict[str, Any]:
        # Only numbers and paths are sent to another process.
        return {**self.__dict__, "_scene": None, "_views": None}


class Dataset:
    """Images of a ``Parser`` by number, in the form of gsplat's ``Dataset``.

    ``split``
        ``"train"``, or ``"val"`` for every ``test_every``-th image.
    ``patch_size``
        Side of a random square, in pixels, which is returned instead of the image.
    ``load_depths``
        Whether items have ``points`` and ``depths`` of the model's points that the image sees.

    An item is a dict: ``K`` float32 (3, 3); ``camtoworld`` float32 (4, 4), OpenCV's axes;
    ``image`` float32 (H, W, 3), 0 to 255; ``image_id``, its number in the dataset;
    ``camera_idx``; ``mask`` bool (H, W), if there is one. With ``load_depths`` also ``points``
    float32 (M, 2), in pixels, and ``depths`` float32 (M,).
    """

    def __init__(
        self,
        parser: Parser,
        split: Literal["train", "val", "test"] = "train",
        patch_size: int | None = None,
        load_depths: bool = False,
    ) -> None:
        whole_or_none("patch_size", patch_size, 1)
        self.parser = parser
        self.split = split
        self.patch_size = patch_size
        self.load_depths = load_depths
        numbers = np.arange(len(parser.image_names))
        trains = numbers % parser.test_every != 0
        self.indices = numbers[trains if split == "train" else ~trains]

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, item: int) -> dict[str, Any]:
        parser = self.parser
        index = int(self.indices[item])
        view = parser.views()._next(index)
        image, mask = view.image, view.mask
        K = parser.Ks_dict[parser.camera_ids[index]].copy()
        if self.patch_size is not None:
            height, width = image.shape[:2]
            left = np.random.randint(0, max(width - self.patch_size, 1))
            top = np.random.randint(0, max(height - self.patch_size, 1))
            cut = (slice(top, top + self.patch_size), slice(left, left + self.patch_size))
            image, mask = image[cut], None if mask is None else mask[cut]
            K[:2, 2] -= left, top
        camtoworld = parser.camtoworlds[index]
        data: dict[str, Any] = {
            "K": torch.from_numpy(K).float(),
            "camtoworld": torch.from_numpy(camtoworld).float(),
            "image": image.float(),
            "image_id": item,
            "camera_idx": parser.camera_indices[index],
        }
        if mask is not None:
            # Copied, because the view's memory is reused.
            data["mask"] = mask.clone()
        if self.load_depths:
            seen = parser.point_indices.get(parser.image_names[index], np.empty(0, np.int32))
            at, depths = _projected(parser.points[seen], camtoworld, K, image.shape[:2])
            data["points"] = torch.from_numpy(at).float()
            data["depths"] = torch.from_numpy(depths).float()
        return data


def _extended(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        read = json.loads(path.read_text())
    except ValueError as e:
        raise DatasetError(f"{path}: {e}: repair or remove it", path=str(path)) from None
    if not isinstance(read, dict):
        raise DatasetError(f"{path}: not a JSON object: repair or remove it", path=str(path))
    return read


def _params(camera: Camera) -> npt.NDArray[np.float32]:
    """Coefficients of the lens: k1, k2, p1, p2 of OpenCV's lens. Of other lenses all coefficients,
    in the order k, p, s. Empty without distortion.
    """
    k, p = camera.coefficients.get("k", ()), camera.coefficients.get("p", ())
    if camera.lens == "brown" and not any(k[2:]):
        return np.array([*k[:2], *p], np.float32)
    others = [
        value for key, values in camera.coefficients.items() if key not in "kp" for value in values
    ]
    return np.array([*k, *p, *others], np.float32)


def _projected(
    points: npt.NDArray[np.floating[Any]], camtoworld: _Floats, K: _Floats, size: tuple[int, int]
) -> tuple[_Floats, _Floats]:
    """Pixel coordinates of points in an image of this height and width, and their depths along its
    axis. Points outside the image are left out.
    """
    camera = np.linalg.inv(camtoworld)
    inside = points @ camera[:3, :3].T + camera[:3, 3]
    depths = inside[:, 2]
    with np.errstate(divide="ignore", invalid="ignore"):
        at = (inside @ K.T)[:, :2] / depths[:, None]
    height, width = size
    seen = (depths > 0) & (at >= 0).all(1) & (at[:, 0] < width) & (at[:, 1] < height)
    return at[seen], depths[seen]


# The normalisation of gsplat's examples (datasets/normalize.py).


def _normalized(
    poses: _Floats, points: npt.NDArray[np.float32]
) -> tuple[_Floats, npt.NDArray[Any], _Floats]:
    """Makes cameras upright and centred at the origin, then aligns axes with the points, most of
    which are then below. Returns poses, points, and the 4 x 4 matrix that was applied.
    """
    if len(points) < 2:
        raise DatasetError(
            "normalize needs points, but the model has fewer than 2: give normalize=False"
        )
    transform = _upright(poses)
    poses, points = _moved(transform, poses, points)
    for step in (_along_points, _right_way_up):
        matrix = step(points)
        poses, points = _moved(matrix, poses, points)
        transform = matrix @ transform
    return poses, points, transform


def _moved(
    matrix: _Floats, poses: _Floats, points: npt.NDArray[Any]
) -> tuple[_Floats, npt.NDArray[Any]]:
    moved = matrix @ poses
    # Rotations stay rotations.
    moved[:, :3, :3] /= np.linalg.norm(moved[:, 0, :3], axis=1)[:, None, None]
    return moved, points @ matrix[:3, :3].T + matrix[:3, 3]


def _upright(poses: _Floats) -> _Floats:
    """The mean up direction of the cameras becomes -y. Each camera's axis has a point nearest to
    the origin; the median of these points becomes the origin. The median distance of the cameras
    becomes 1.
    """
    up = -poses[:, :3, 1].mean(axis=0)
    up /= np.linalg.norm(up)
    wanted = np.array([0.0, -1.0, 0.0])
    cosine = up @ wanted
    if cosine > -1 + 1e-12:
        x, y, z = np.cross(up, wanted)
        skew = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
        turn = np.eye(3) + skew + skew @ skew / (1 + cosine)
    else:
        # Half a turn about x. (gsplat mirrors here.)
        turn = np.diag([1.0, -1.0, -1.0])
    places = poses[:, :3, 3] @ turn.T
    forward = poses[:, :3, 2] @ turn.T
    nearest = places - (forward * places).sum(1, keepdims=True) * forward
    shift = -np.median(nearest, axis=0)
    matrix = np.eye(4)
    matrix[:3, :3] = turn
    matrix[:3, 3] = shift
    matrix[:3] /= np.median(np.linalg.norm(places + shift, axis=1))
    return matrix


def _along_points(points: npt.NDArray[Any]) -> _Floats:
    """Aligns axes with the principal axes of the points, the longest first, about their median."""
    middle = np.median(points, axis=0)
    _, axes = np.linalg.eigh(np.cov(points - middle, rowvar=False))
    axes = axes[:, ::-1].copy()
    if np.linalg.det(axes) < 0:
        axes[:, 0] *= -1
    matrix = np.eye(4)
    matrix[:3, :3] = axes.T
    matrix[:3, 3] = -axes.T @ middle
    return matrix


def _right_way_up(points: npt.NDArray[Any]) -> _Floats:
    """Half a turn about x if more points are above than below, because the ground is below."""
    upside_down = np.median(points[:, 2]) > np.mean(points[:, 2])
    return np.diag([1.0, -1.0, -1.0, 1.0]) if upside_down else np.eye(4)
