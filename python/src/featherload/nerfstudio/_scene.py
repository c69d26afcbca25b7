"""Converts the outputs of nerfstudio's dataparser to a scene of featherload.

The dataparser decides the images, their order, cameras, poses, masks and depths. Its poses and
intrinsics are float32, which JSON does not change.

Never in here: rays, pixels.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any, TypeVar, get_args

import torch
from nerfstudio.cameras.cameras import CameraType
from nerfstudio.data.datasets.base_dataset import InputDataset
from nerfstudio.data.datasets.depth_dataset import DepthDataset
from nerfstudio.utils.misc import get_orig_class
from PIL import Image

from .._errors import ConfigError, DatasetError
from .._scene import Scene

Dataset = TypeVar("Dataset", bound=InputDataset)
"""The dataset class of a manager, as in ``RayDataManager[DepthDataset]``."""

_MODELS = {
    CameraType.PERSPECTIVE.value: "OPENCV",
    CameraType.FISHEYE.value: "OPENCV_FISHEYE",
    CameraType.EQUIRECTANGULAR.value: "EQUIRECTANGULAR",
    CameraType.ORTHOPHOTO.value: "ORTHOPHOTO",
    CameraType.FISHEYE624.value: "FISHEYE624",
}
# nerfstudio uses no coefficients for these.
_WITHOUT_LENS = (CameraType.EQUIRECTANGULAR.value, CameraType.ORTHOPHOTO.value)
# Methods that make the images of a dataset. A dataset that overrides one returns other pixels than
# its files.
_SAYS = (
    "__getitem__",
    "get_data",
    "get_image_float32",
    "get_image_uint8",
    "get_metadata",
    "get_numpy_image",
)


class Source:
    """A dataset of nerfstudio, as a scene of featherload."""

    def __init__(self, dataset: Any) -> None:
        _check(dataset)
        outputs = dataset._dataparser_outputs
        self.files = [Path(os.path.abspath(path)) for path in outputs.image_filenames]
        self.alpha = any(map(_has_alpha, self.files))
        """Whether any image has transparency, by its header."""
        self.alpha_color = outputs.alpha_color
        """Colour behind transparent pixels. None: images keep alpha."""
        self.has_masks = outputs.mask_filenames is not None
        self.has_depths = isinstance(dataset, DepthDataset)
        self.downscale = _downscale(dataset)
        self.scene = _scene(dataset, self.files, self.has_depths)

    def opaque(self, images: torch.Tensor) -> torch.Tensor:
        """Composites float colours with alpha, (..., 4), on the dataparser's colour, like
        nerfstudio's datasets. Without such a colour, returns them unchanged.
        """
        if self.alpha_color is None:
            return images
        colour = torch.as_tensor(self.alpha_color, dtype=torch.float32, device=images.device)
        alpha = images[..., 3:]
        return images[..., :3] * alpha + colour * (1.0 - alpha)


def dataset_type(manager: Any) -> Any:
    """The dataset class of ``Manager[Dataset]``, or of a class that is derived from it."""
    given = [get_orig_class(manager, default=None)]
    for base in type(manager).__mro__:
        given.extend(getattr(base, "__orig_bases__", ()))
    for kind in given:
        for argument in get_args(kind):
            if isinstance(argument, type) and issubclass(argument, InputDataset):
                return argument
    return InputDataset


def _check(dataset: Any) -> None:
    own = DepthDataset if isinstance(dataset, DepthDataset) else InputDataset
    for name in _SAYS:
        if getattr(type(dataset), name) is not getattr(own, name):
            raise ConfigError(
                f"{type(dataset).__name__} has a {name} of its own, which featherload does not "
                "call: use InputDataset or DepthDataset, or nerfstudio's own data manager",
                option="datamanager",
            )
    if own is DepthDataset and dataset.depth_filenames is None:
        raise ConfigError(
            "the dataparser names no depth files, and featherload does not estimate depths as "
            "nerfstudio does: add depths to the data, or use nerfstudio's own data manager",
            option="dataparser",
        )


def _has_alpha(path: Path) -> bool:
    if path.suffix.lower() in (".jpg", ".jpeg"):
        return False
    try:
        with Image.open(path) as image:
            return image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info
    except OSError as e:
        raise DatasetError(f"{path}: {e.strerror or e}", path=str(path)) from None


def _downscale(dataset: Any) -> int:
    """``camera_res_scale_factor`` as a whole number to divide by."""
    factor = float(dataset.scale_factor)
    n = round(1 / factor) if factor > 0 else 0
    sizes = torch.cat(
        [dataset._dataparser_outputs.cameras.height, dataset._dataparser_outputs.cameras.width]
    )
    if n < 1 or n * factor != 1.0 or bool((sizes % n != 0).any()):
        raise ConfigError(
            f"camera_res_scale_factor of {factor} is not supported: featherload reads images at "
            "1/2, 1/3, 1/4 and so on of their size, if that divides width and height. Give the "
            "dataparser a downscale_factor instead",
            option="camera_res_scale_factor",
        )
    return n


def _scene(dataset: Any, files: list[Path], has_depths: bool) -> Scene:
    outputs = dataset._dataparser_outputs
    unit = 1.0
    if has_depths:
        unit = float(dataset.depth_unit_scale_factor) * float(outputs.dataparser_scale)
    with tempfile.TemporaryDirectory(prefix="featherload-") as folder:
        path = Path(folder) / "dataparser_outputs.json"
        path.write_text(json.dumps({"frames": _frames(dataset, files, has_depths)}))
        try:
            scene = Scene(
                path,
                # This format keeps the order of the frames.
                format="instant-ngp",
                orientation="none",
                center="none",
                auto_scale=False,
                downscale_folder=1,
                split_by="all",
                find_masks=False,
                find_depths=False,
                depth_unit=unit,
                strict=True,
            )
        except DatasetError as e:
            # Not the name of the temporary file.
            text = str(e).replace(str(path), "what nerfstudio's dataparser found")
            raise DatasetError(text) from None
    sizes = torch.cat([outputs.cameras.width, outputs.cameras.height], 1).tolist()
    for number, (frame, path) in enumerate(zip(scene.frames, files, strict=True)):
        camera = scene.cameras[frame.camera]
        width, height = sizes[number]
        if frame.image != path:
            raise DatasetError(f"{path}: no such file: check the data", path=str(path))
        # Folders of smaller images may be rounded in another way than by the dataparser.
        if abs(camera.width - width) > 1 or abs(camera.height - height) > 1:
            raise DatasetError(
                f"{path}: the image has {camera.width} x {camera.height} pixels, but nerfstudio's "
                f"dataparser says {width} x {height}: make them equal",
                path=str(path),
            )
        if has_depths and frame.depth is None:
            depth = outputs.metadata["depth_filenames"][number]
            raise DatasetError(f"{depth}: no such file: check the data", path=str(depth))
    return scene


def _frames(dataset: Any, files: list[Path], has_depths: bool) -> list[dict[str, Any]]:
    """Frames in the form of a transforms.json, each with its camera. They have no w and h, because
    intrinsics are for the size of the image file, as in nerfstudio.
    """
    outputs = dataset._dataparser_outputs
    cameras = outputs.cameras
    if len(cameras.shape) != 1 or len(cameras) != len(files):
        raise DatasetError(
            f"the dataparser found {len(files)} images, but cameras of shape "
            f"{tuple(cameras.shape)}: each image needs one camera"
        )
    lens = cameras.distortion_params
    radius = (cameras.metadata or {}).get("fisheye_crop_radius")
    frames = []
    columns = zip(
        files,
        cameras.camera_type.flatten().tolist(),
        cameras.camera_to_worlds.tolist(),
        cameras.fx.flatten().tolist(),
        cameras.fy.flatten().tolist(),
        cameras.cx.flatten().tolist(),
        cameras.cy.flatten().tolist(),
        strict=True,
    )
    for number, (path, kind, pose, fx, fy, cx, cy) in enumerate(columns):
        if kind not in _MODELS:
            raise ConfigError(
                f"{path}: cameras of type {CameraType(kind).name} are not supported: use "
                "nerfstudio's own data manager",
                option="dataparser",
            )
        frame: dict[str, Any] = {
            "file_path": str(path),
            "transform_matrix": [*pose, [0.0, 0.0, 0.0, 1.0]],
            "camera_model": _MODELS[kind],
            "fl_x": fx,
            "fl_y": fy,
            "cx": cx,
            "cy": cy,
        }
        if lens is not None and kind not in _WITHOUT_LENS:
            frame["distortion_params"] = lens[number].tolist()
        if radius is not None:
            # Some dataparsers have one number for all images, others one for each image.
            frame["fisheye_crop_radius"] = float(
                radius[number]
                if isinstance(radius, torch.Tensor) and radius.numel() > 1
                else radius
            )
        if outputs.mask_filenames is not None:
            frame["mask_path"] = os.path.abspath(outputs.mask_filenames[number])
        if has_depths:
            frame["depth_file_path"] = os.path.abspath(dataset.depth_filenames[number])
        frames.append(frame)
    return frames
