"""``ImageDataManager``: full images for nerfstudio's splatting, from ``featherload.Views``.

Never in here: reading a scene, straightening images.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, Literal, NoReturn, Optional

import torch
from nerfstudio.cameras.cameras import Cameras, CameraType
from nerfstudio.data.datamanagers.full_images_datamanager import (
    FullImageDatamanager,
    FullImageDatamanagerConfig,
)

from .._errors import ConfigError
from .._view import View
from .._views import Views
from ._scene import Dataset, Source, dataset_type

_log = logging.getLogger("featherload")

# Images of these cameras are never straight, whatever the coefficients.
_FISHEYES = (CameraType.FISHEYE.value, CameraType.FISHEYE624.value)


# "Optional" as in rays.py.
@dataclass
class ImageDataManagerConfig(FullImageDatamanagerConfig):
    """Full images by featherload: each is decoded once, into memory that all ranks share.

    ``cache_images``, ``max_thread_workers``, and the newer ``dataloader_num_workers``,
    ``prefetch_factor`` and ``cache_compressed_images`` have no effect: images are delivered on the
    device of the pipeline. ``eval_num_images_to_sample_from`` and similar options have no effect
    either.
    """

    _target: type = field(default_factory=lambda: ImageDataManager)
    """Target class to instantiate."""
    undistort: bool = True
    """Whether images are straightened, as splatting needs. False returns the original images, and
    cameras with their coefficients."""
    num_workers: Optional[int] = None  # noqa: UP045
    """Worker processes. Default: one for each usable CPU."""
    memory_limit: Optional[str] = None  # noqa: UP045
    """Most memory of all processes, such as 8G. If images do not fit, they are kept in a file."""
    store_folder: Optional[Path] = None  # noqa: UP045
    """Folder for that file. Default: TMPDIR, or /tmp."""


class ImageDataManager(FullImageDatamanager, Generic[Dataset]):
    """A ``FullImageDatamanager`` whose images come from ``featherload.Views``.

    ``next_train(step)`` returns the image of that step. Each epoch has a new order of all images.
    A run that is resumed from a checkpoint gets the same images as an uninterrupted run. Cameras
    of straightened images have no coefficients.
    """

    config: ImageDataManagerConfig
    train_cameras: Cameras

    def __init__(self, config: ImageDataManagerConfig, *args: Any, **keywords: Any) -> None:
        if config.train_cameras_sampling_strategy != "random":
            raise ConfigError(
                f"train_cameras_sampling_strategy={config.train_cameras_sampling_strategy!r} is "
                "not supported: featherload returns each image once per epoch, in random order: "
                "use 'random'",
                option="train_cameras_sampling_strategy",
            )
        if config.cache_images == "disk":
            # Newer nerfstudio sets the start method of all processes if it is "disk".
            config.cache_images = "cpu"
            _log.warning("cache_images='disk' has no effect: featherload reads the images")
        super().__init__(config, *args, **keywords)

    @cached_property
    def dataset_type(self) -> Any:
        """``InputDataset``, or the class in ``ImageDataManager[...]``."""
        return dataset_type(self)

    def setup_train(self) -> None:
        """Starts the workers."""
        self._train = _Images(self.train_dataset, self.config, self.device)
        self._train_views = self._train.open(
            seed=self.config.train_cameras_sampling_seed, num_workers=self.config.num_workers
        )
        self.train_cameras = self._train.cameras
        self._train_step: int | None = None

    def setup_eval(self) -> None:
        """Reads the scene of the evaluation. Its worker starts with the first image."""
        self._eval = _Images(self.eval_dataset, self.config, self.device)
        self._eval_views: Views | None = None

    def next_train(self, step: int) -> tuple[Cameras, dict[str, Any]]:
        """The camera and the image of a step."""
        self.train_count += 1
        view = self._train_views._next(None if step == self._train_step else step)
        self._train_step = step
        camera, data = self._train.taken(view)
        if camera.metadata is None:
            camera.metadata = {}
        camera.metadata["cam_idx"] = view.index
        return camera, data

    def next_eval(self, step: int) -> tuple[Cameras, dict[str, Any]]:
        """The next image for evaluation."""
        self.eval_count += 1
        return self.next_eval_image(step)

    def next_eval_image(self, step: int) -> tuple[Cameras, dict[str, Any]]:
        """The next image for evaluation. Each comes once, in random order, then all come again."""
        if self._eval_views is None:
            self._eval_views = self._eval.open(rank=0, world_size=1, num_workers=1)
        return self._eval.taken(next(self._eval_views))

    @property
    def fixed_indices_eval_dataloader(self) -> _InOrder:
        """All images for evaluation, in their order: (camera, data) each."""
        return _InOrder(self._eval)

    def get_train_rays_per_batch(self) -> int:
        """Pixels of the first image."""
        camera = self.train_dataset.cameras[0].reshape(())
        return int(camera.width.item()) * int(camera.height.item())

    @property
    def cached_train(self) -> NoReturn:
        """Raises an error: there is no list of images."""
        raise ConfigError("ImageDataManager keeps no list of images: call next_train")

    @property
    def cached_eval(self) -> NoReturn:
        """Raises an error: there is no list of images."""
        raise ConfigError("ImageDataManager keeps no list of images: call next_eval_image")

    def close(self) -> None:
        """Ends the workers now. Otherwise they end with the process."""
        for views in (getattr(self, "_train_views", None), getattr(self, "_eval_views", None)):
            if views is not None:
                views.close()


class _Images:
    """Images of a dataset and their cameras, in the form of nerfstudio."""

    def __init__(self, dataset: Any, config: ImageDataManagerConfig, device: Any) -> None:
        self._source = Source(dataset)
        self._dataset = dataset
        self._device = device
        self._type: Literal["uint8", "float32"] = config.cache_images_type
        kinds = set(dataset.cameras.camera_type.flatten().tolist())
        lens = dataset.cameras.distortion_params
        bent = lens is not None and bool((lens != 0).any())
        undistort = config.undistort and (bent or not kinds.isdisjoint(_FISHEYES))
        if undistort and not kinds <= {CameraType.PERSPECTIVE.value, *_FISHEYES}:
            raise ConfigError(
                "undistort is not possible: some images are panoramas or orthophotos, which have "
                "no straight image: give undistort=False",
                option="undistort",
            )
        self._options: dict[str, Any] = {
            "dtype": self._type,
            "downscale": self._source.downscale,
            "memory_limit": config.memory_limit,
            "store_folder": config.store_folder,
            "framework": "torch",
        }
        if undistort:
            self._options["undistort"] = True
        if self._source.alpha:
            self._options["alpha"] = True
        self._is_to_straighten = undistort
        self.cameras: Cameras = dataset.cameras.to(device)
        """Cameras of the images that are returned."""

    def __len__(self) -> int:
        return len(self._dataset)

    def open(self, **options: Any) -> Views:
        views = Views(self._source.scene, **self._options, **options)
        if self._is_to_straighten:
            self._straighten(views)
        return views

    def _straighten(self, views: Views) -> None:
        """Sets the cameras of straightened images, also in the dataset."""
        old = self._dataset.cameras
        new = views.cameras
        metadata = dict(old.metadata or {})
        metadata.pop("fisheye_crop_radius", None)

        def column(name: str, dtype: torch.dtype) -> torch.Tensor:
            return torch.tensor([[getattr(camera, name)] for camera in new], dtype=dtype)

        self._dataset.cameras = Cameras(
            camera_to_worlds=old.camera_to_worlds,
            fx=column("fx", torch.float32),
            fy=column("fy", torch.float32),
            cx=column("cx", torch.float32),
            cy=column("cy", torch.float32),
            width=column("width", torch.int64),
            height=column("height", torch.int64),
            camera_type=CameraType.PERSPECTIVE,
            times=old.times,
            metadata=metadata or None,
        )
        self.cameras = self._dataset.cameras.to(self._device)
        self._is_to_straighten = False

    def taken(self, view: View) -> tuple[Cameras, dict[str, Any]]:
        """A view in the form of nerfstudio's manager."""
        index = view.index
        data: dict[str, Any] = {"image_idx": index, "image": self._colours(view.image)}
        if view.mask is not None:
            data["mask"] = view.mask[..., None].to(self._device)
        if self._source.has_depths:
            data["depth_image"] = view.depth[..., None].to(self._device)
        if self._dataset.mask_color:
            colour = torch.tensor(self._dataset.mask_color, device=self._device)
            data["image"] = torch.where(
                data["mask"], data["image"], torch.ones_like(data["image"]) * colour
            )
        return self.cameras[index : index + 1], data

    def _colours(self, image: torch.Tensor) -> torch.Tensor:
        image = image.to(self._device)
        if not self._source.alpha or self._source.alpha_color is None:
            return image
        if self._type == "float32":
            return self._source.opaque(image)
        # Rounded as InputDataset.get_image_uint8 does.
        levels = 255.0 * self._source.opaque(image / 255.0)
        return levels.clamp(0, 255).to(torch.uint8)


class _InOrder:
    """All images once, in the order of the dataset. Each is read when it is requested."""

    def __init__(self, images: _Images) -> None:
        self._images = images

    def __len__(self) -> int:
        return len(self._images)

    def __iter__(self) -> Iterator[tuple[Cameras, dict[str, Any]]]:
        with self._images.open(shuffle=False, rank=0, world_size=1, num_workers=1) as views:
            for _ in range(len(self)):
                yield self._images.taken(next(views))
