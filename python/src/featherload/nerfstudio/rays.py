"""``RayDataManager``: rays for nerfstudio's methods, from ``featherload.Rays``.

Never in here: reading a scene, evaluation of full images (nerfstudio's own loaders do that, one
image at a time).
"""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, Literal, Optional

import torch
from nerfstudio.cameras.rays import RayBundle
from nerfstudio.data.datamanagers.base_datamanager import (
    VanillaDataManager,
    VanillaDataManagerConfig,
)
from nerfstudio.data.pixel_samplers import PairPixelSampler, PatchPixelSampler, PixelSampler
from nerfstudio.data.utils.dataloaders import FixedIndicesEvalDataloader, RandIndicesEvalDataloader

from .._errors import ConfigError, DatasetError
from .._rays import Rays
from ..samplers import Pairs, Patches, RaySampler
from ._scene import Dataset, Source, dataset_type

_log = logging.getLogger("featherload")

# "Optional" instead of "| None", as in nerfstudio. tyro makes flags from these fields, and shows
# both in the same way.


@dataclass
class RayDataManagerConfig(VanillaDataManagerConfig):
    """Rays by featherload: each image is decoded once, into memory that all ranks share.

    ``train_num_images_to_sample_from``, ``train_num_times_to_repeat_images`` and the same options
    for evaluation have no effect: rays come from all images. ``images_on_gpu`` and
    ``masks_on_gpu`` have no effect either: batches are delivered on the device of the pipeline.
    """

    _target: type = field(default_factory=lambda: RayDataManager)
    """Target class to instantiate."""
    seed: int = 0
    """Seed of the draws. The rays of a step depend on seed, rank and step."""
    spread: Literal["uniform", "by_image"] = "uniform"
    """Distribution of rays: all pixels with equal probability, or all images."""
    joining: int = 4
    """Images that are added at each step, so that training begins after a few are decoded. 0 draws
    from all images at once."""
    num_workers: Optional[int] = None  # noqa: UP045
    """Worker processes. Default: one for each usable CPU."""
    memory_limit: Optional[str] = None  # noqa: UP045
    """Most memory of all processes, such as 8G. If images do not fit, they are kept in a file."""
    store_folder: Optional[Path] = None  # noqa: UP045
    """Folder for that file. Default: TMPDIR, or /tmp."""


class RayDataManager(VanillaDataManager, Generic[Dataset]):
    """A ``VanillaDataManager`` whose rays come from ``featherload.Rays``.

    Dataparser, datasets and full images for evaluation are nerfstudio's. ``next_train(step)``
    returns the rays of that step. So a run that is resumed from a checkpoint gets the same rays as
    an uninterrupted run. A second call with the same step returns further rays.
    """

    config: RayDataManagerConfig

    @cached_property
    def dataset_type(self) -> Any:
        """``InputDataset``, or the class in ``RayDataManager[...]``."""
        return dataset_type(self)

    def setup_train(self) -> None:
        """Starts the workers."""
        self._train = self._stream(self.train_dataset, "train")
        self.train_pixel_sampler = self._train.sampler
        self._train.start()

    def setup_eval(self) -> None:
        """Reads the scene of the evaluation. Its workers start with the first ``next_eval``."""
        self._eval = self._stream(self.eval_dataset, "eval")
        self.eval_pixel_sampler = self._eval.sampler
        workers = self.world_size * 4
        self.fixed_indices_eval_dataloader = FixedIndicesEvalDataloader(
            input_dataset=self.eval_dataset, device=self.device, num_workers=workers
        )
        self.eval_dataloader = RandIndicesEvalDataloader(
            input_dataset=self.eval_dataset, device=self.device, num_workers=workers
        )

    def next_train(self, step: int) -> tuple[RayBundle, dict[str, Any]]:
        """The rays of a step and their pixels."""
        self.train_count += 1
        return self._train.next(step)

    def next_eval(self, step: int) -> tuple[RayBundle, dict[str, Any]]:
        """Rays of images for evaluation and their pixels."""
        self.eval_count += 1
        return self._eval.next(step)

    def close(self) -> None:
        """Ends the workers now. Otherwise they end with the process."""
        for stream in (getattr(self, "_train", None), getattr(self, "_eval", None)):
            if stream is not None:
                stream.close()

    def _stream(self, dataset: Any, split: Literal["train", "eval"]) -> _Stream:
        config = self.config
        count = getattr(config, f"{split}_num_images_to_sample_from")
        if 0 <= count < len(dataset):
            _log.warning(
                "%s_num_images_to_sample_from=%s has no effect: rays come from all %s images, "
                "which all ranks share",
                *(split, count, len(dataset)),
            )
        wanted = getattr(config, f"{split}_num_rays_per_batch")
        sampler = self._get_pixel_sampler(dataset, wanted)
        # A sampler of patches has rounded the number by its default patch size.
        sampler.set_num_rays_per_batch(wanted)
        return _Stream(dataset, sampler, config, self.device, split)


class _Stream:
    """Rays of a dataset, step by step, in the form of nerfstudio."""

    def __init__(
        self,
        dataset: Any,
        sampler: PixelSampler,
        config: RayDataManagerConfig,
        device: Any,
        split: str,
    ) -> None:
        self._source = Source(dataset)
        self._cameras = dataset.cameras.to(device)
        self._device = device
        self.sampler = sampler
        """Has the number of rays, which may change before each step."""
        kind, self._unit = _kind(sampler, config.spread)
        masked = self._source.has_masks and not sampler.config.ignore_mask
        if self._source.has_masks and not masked and dataset.mask_color is not None:
            raise ConfigError(
                "pixel_sampler.ignore_mask and the dataparser's mask_color exclude each other: "
                "rays of masked pixels cannot have mask_color. Leave one of them out",
                option="pixel_sampler",
            )
        self._masked = masked
        self._options: dict[str, Any] = {
            "sampler": kind,
            "seed": config.seed,
            "joining": config.joining,
            "masks": masked,
            "downscale": self._source.downscale,
            # Evaluation needs few batches.
            "num_workers": config.num_workers if split == "train" else 1,
            "memory_limit": config.memory_limit,
            "store_folder": config.store_folder,
            "framework": "torch",
        }
        if self._source.alpha:
            self._options["alpha"] = True
        self._rays: Rays | None = None
        self._step: int | None = None
        self._told = False

    def start(self) -> Rays:
        """The stream of rays, which can deliver the number of the next step."""
        wanted = self._wanted()
        if self._rays is None:
            self._rays = self._open(wanted)
        elif wanted > self._most:
            # Twice the number, because it may grow step by step. The new stream shares the decoded
            # images of the old one, which still exists.
            bigger = self._open(2 * wanted)
            bigger.go_to(self._rays.step)
            self._rays.close()
            self._rays = bigger
        return self._rays

    def next(self, step: int) -> tuple[RayBundle, dict[str, Any]]:
        batch = self.start()._next(None if step == self._step else step, self._wanted())
        self._step = step
        arrays = dict(batch)
        if not bool(arrays["valid"].all()):
            arrays = self._without_invalid(arrays, step)
        arrays = {name: array.to(self._device) for name, array in arrays.items()}
        return self._bundle(arrays), self._batch(arrays)

    def close(self) -> None:
        if self._rays is not None:
            self._rays.close()

    def _wanted(self) -> int:
        wanted = int(self.sampler.num_rays_per_batch)
        if wanted < 1:
            raise ConfigError(
                f"the pixel sampler asks for {wanted} rays: give num_rays_per_batch at least "
                f"{self._unit}",
                option="num_rays_per_batch",
            )
        return wanted

    def _open(self, most: int) -> Rays:
        self._most = math.ceil(most / self._unit) * self._unit
        return Rays(self._source.scene, self._wanted(), most_rays=self._most, **self._options)

    def _without_invalid(self, arrays: dict[str, Any], step: int) -> dict[str, Any]:
        """Replaces rays without a direction, for which the lens is not defined, by other rays of
        the batch. nerfstudio's models do not support such rays.
        """
        good = arrays["valid"].view(-1, self._unit).all(1)
        among = good.nonzero().flatten()
        if len(among) == 0:
            raise DatasetError(
                f"step {step}: no ray of {len(arrays['valid'])} has a direction, because the "
                "lenses are defined for none of these pixels: check the distortion coefficients"
            )
        bad = (~good).nonzero().flatten()
        if not self._told:
            self._told = True
            _log.warning(
                "the lens is not defined for %s of %s pixels of step %s: other rays of the batch "
                "replace theirs, also in later steps",
                *(len(bad) * self._unit, len(arrays["valid"]), step),
            )
        units = torch.arange(len(good))
        units[bad] = among[torch.arange(len(bad)) % len(among)]
        rows = (units[:, None] * self._unit + torch.arange(self._unit)).flatten()
        return {name: array[rows] for name, array in arrays.items()}

    def _bundle(self, arrays: dict[str, Any]) -> RayBundle:
        cameras = self._cameras
        which = arrays["indices"][:, 0]
        metadata: dict[str, Any] = {}
        if cameras.metadata is not None:
            # Like Cameras.generate_rays.
            metadata = cameras._apply_fn_to_dict(cameras.metadata, lambda of_all: of_all[which])
        metadata["directions_norm"] = arrays["directions_norms"][:, None]
        return RayBundle(
            origins=arrays["origins"],
            directions=arrays["directions"],
            pixel_area=arrays["pixel_areas"][:, None],
            camera_indices=which[:, None],
            times=None if cameras.times is None else cameras.times[which],
            metadata=metadata,
        )

    def _batch(self, arrays: dict[str, Any]) -> dict[str, Any]:
        image = arrays["colors"]
        batch = {
            "image": self._source.opaque(image) if self._source.alpha else image,
            "indices": arrays["indices"],
        }
        if self._masked:
            # No masked pixel is drawn.
            batch["mask"] = torch.ones(len(image), 1, dtype=torch.bool, device=image.device)
        if self._source.has_depths:
            batch["depth_image"] = arrays["depths"].reshape(-1, 1)
        return batch


def _kind(sampler: PixelSampler, spread: str) -> tuple[str | RaySampler, int]:
    """The sampler of rays, and the number of rays that belong together."""
    if sampler.config.keep_full_image:
        raise ConfigError(
            "pixel_sampler.keep_full_image is not supported: featherload's ray batches have no "
            "full images. Leave it out",
            option="pixel_sampler",
        )
    # The exact class: derived classes may draw in another way.
    if type(sampler) is PixelSampler:
        return spread, 1
    if type(sampler) is PatchPixelSampler:
        size = int(sampler.config.patch_size)
        return Patches(size), size * size
    if type(sampler) is PairPixelSampler:
        return Pairs(int(sampler.radius)), 2
    raise ConfigError(
        f"pixel_sampler: {type(sampler).__name__} is not supported: use "
        "PixelSampler, PatchPixelSampler or PairPixelSampler, or nerfstudio's own data manager",
        option="pixel_sampler",
    )
