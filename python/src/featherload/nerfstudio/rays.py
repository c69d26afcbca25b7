"""``RayDataManager``: rays for nerfstudio's methods, by ``featherload.Rays``.

Never in here: how a scene is read, how full images are evaluated (nerfstudio's own loaders do
that, one image at a time).
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

# Optional and not "| None": tyro, which reads these for flags, shows both alike, and nerfstudio
# writes the former.


@dataclass
class RayDataManagerConfig(VanillaDataManagerConfig):
    """Rays by featherload: each image is decoded once, into memory that all ranks share.

    ``train_num_images_to_sample_from``, ``train_num_times_to_repeat_images`` and their twins for
    evaluation have no effect: rays come from all images. ``images_on_gpu`` and ``masks_on_gpu``
    have none either: batches are on the device of the pipeline.
    """

    _target: type = field(default_factory=lambda: RayDataManager)
    """Target class to instantiate."""
    seed: int = 0
    """Of the draws. The rays of a step follow from seed, rank and step."""
    spread: Literal["uniform", "by_image"] = "uniform"
    """How rays are spread: all pixels alike, or all images alike."""
    joining: int = 4
    """Images that join at each step, so that training begins when a few are decoded. 0 draws from
    all at once."""
    num_workers: Optional[int] = None  # noqa: UP045
    """Worker processes. Default: as many as there are CPUs."""
    memory_limit: Optional[str] = None  # noqa: UP045
    """Most memory of all processes, as 8G. Images that do not fit are kept in a file."""
    store_folder: Optional[Path] = None  # noqa: UP045
    """Where that file goes. Default: TMPDIR, or /tmp."""


class RayDataManager(VanillaDataManager, Generic[Dataset]):
    """A ``VanillaDataManager`` whose rays come from ``featherload.Rays``.

    Dataparser, datasets and full images for evaluation are nerfstudio's. ``next_train(step)``
    gives the rays of that step, so that a run that goes on from a checkpoint gets the rays that
    it would have got. Asked for the same step again, it gives further rays.
    """

    config: RayDataManagerConfig

    @cached_property
    def dataset_type(self) -> Any:
        """``InputDataset``, or what ``RayDataManager[...]`` was made of."""
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
        """Ends the workers now. They end with the process, too."""
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
        # A sampler of patches has rounded by its default size, before it was told another one.
        sampler.set_num_rays_per_batch(wanted)
        return _Stream(dataset, sampler, config, self.device, split)


class _Stream:
    """Rays of a dataset, step by step, as nerfstudio has them."""

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
        """Says the number of rays, which may change before each step."""
        kind, self._unit = _kind(sampler, config.spread)
        masked = self._source.has_masks and not sampler.config.ignore_mask
        if self._source.has_masks and not masked and dataset.mask_color is not None:
            raise ConfigError(
                "pixel_sampler.ignore_mask would draw pixels that the dataparser wants to have "
                "mask_color, which rays do not do: leave one of them out",
                option="pixel_sampler",
            )
        self._masked = masked
        self._options: dict[str, Any] = {
            "sampler": kind,
            "seed": config.seed,
            "joining": config.joining,
            "masks": masked,
            "downscale": self._source.downscale,
            # Evaluation takes a batch now and then.
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
        """The rays, with room for those of the next step."""
        wanted = self._wanted()
        if self._rays is None:
            self._rays = self._open(wanted)
        elif wanted > self._most:
            # Twice as many, since the number may grow step by step. The new ones find the decoded
            # images of the old ones while these are there.
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
        """Where the lens has no ray there is no direction, and nerfstudio's models know of no
        such rays: others of the batch take their place.
        """
        good = arrays["valid"].view(-1, self._unit).all(1)
        among = good.nonzero().flatten()
        if len(among) == 0:
            raise DatasetError(
                f"step {step}: no ray of {len(arrays['valid'])} has a direction, since the lenses "
                "are defined for none of these pixels: check the distortion coefficients"
            )
        bad = (~good).nonzero().flatten()
        if not self._told:
            self._told = True
            _log.warning(
                "the lens is defined for no ray of %s of %s pixels of step %s: other rays of the "
                "batch take their place, here and in later steps",
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
            # As Cameras.generate_rays does.
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
            # None is drawn that a mask leaves out.
            batch["mask"] = torch.ones(len(image), 1, dtype=torch.bool, device=image.device)
        if self._source.has_depths:
            batch["depth_image"] = arrays["depths"].reshape(-1, 1)
        return batch


def _kind(sampler: PixelSampler, spread: str) -> tuple[str | RaySampler, int]:
    """How rays are drawn, and how many belong together."""
    if sampler.config.keep_full_image:
        raise ConfigError(
            "pixel_sampler.keep_full_image: featherload's ray batches have no full images",
            option="pixel_sampler",
        )
    # The exact class: others draw as they like.
    if type(sampler) is PixelSampler:
        return spread, 1
    if type(sampler) is PatchPixelSampler:
        size = int(sampler.config.patch_size)
        return Patches(size), size * size
    if type(sampler) is PairPixelSampler:
        return Pairs(int(sampler.radius)), 2
    raise ConfigError(
        f"pixel_sampler: {type(sampler).__name__} is none that featherload knows: use "
        "PixelSampler, PatchPixelSampler or PairPixelSampler, or nerfstudio's own data manager",
        option="pixel_sampler",
    )
