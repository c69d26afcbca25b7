"""``featherload.timm.create_loader``: in place of timm's, for its ``train.py`` and others.

::

    -from timm.data import create_dataset, create_loader
    +from timm.data import create_dataset
    +from featherload.timm import create_loader
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from timm.data.constants import IMAGENET_DEFAULT_MEAN, IMAGENET_DEFAULT_STD
from timm.data.distributed_sampler import OrderedDistributedSampler, RepeatAugSampler
from timm.data.loader import PrefetchLoader, fast_collate
from timm.data.mixup import FastCollateMixup
from timm.data.random_erasing import RandomErasing

from ._batch import Batch
from ._errors import ConfigError
from ._item_feed import METHOD
from ._timm import _ERASING, create_transform, split_recipe
from ._torch_order import is_distributed
from ._values import shown
from .torch import DataLoader

__all__ = ["create_loader"]

_MEAN, _STD = IMAGENET_DEFAULT_MEAN, IMAGENET_DEFAULT_STD


def create_loader(
    dataset: Any,
    input_size: int | tuple[int, int] | tuple[int, int, int],
    batch_size: int,
    is_training: bool = False,
    no_aug: bool = False,
    re_prob: float = 0.0,
    re_mode: str = "const",
    re_count: int = 1,
    re_split: bool = False,
    train_crop_mode: str | None = None,
    scale: tuple[float, float] | None = None,
    ratio: tuple[float, float] | None = None,
    hflip: float = 0.5,
    vflip: float = 0.0,
    color_jitter: float | tuple[float, ...] | None = 0.4,
    color_jitter_prob: float | None = None,
    grayscale_prob: float = 0.0,
    gaussian_blur_prob: float = 0.0,
    auto_augment: str | None = None,
    num_aug_repeats: int = 0,
    num_aug_splits: int = 0,
    interpolation: str = "bilinear",
    mean: tuple[float, ...] = _MEAN,
    std: tuple[float, ...] = _STD,
    num_workers: int = 1,
    distributed: bool = False,
    crop_pct: float | None = None,
    crop_mode: str | None = None,
    crop_border_pixels: int | None = None,
    collate_fn: Callable[..., Any] | None = None,
    pin_memory: bool = False,
    fp16: bool = False,
    img_dtype: Any = torch.float32,
    device: Any = torch.device("cuda"),  # noqa: B008
    use_prefetcher: bool = True,
    use_multi_epochs_loader: bool = False,
    persistent_workers: bool = True,
    worker_seeding: Any = "all",
    tf_preprocessing: bool = False,
    input_size_choices: Any = None,
    batch_size_choices: Any = None,
    batch_choice_weights: Any = None,
    batch_choice_seed: int = 0,
    batch_choice_schedule: str = "constant",
    batch_schedule_epochs: int | None = None,
    batch_schedule_spread: float = 0.65,
    batch_schedule_random_mix: float = 0.1,
    num_batches: int | None = None,
    **options: Any,
) -> Any:
    """``timm.data.create_loader`` with loaders of featherload. The keywords are timm's.

    ``dataset``
        timm's ``ImageDataset`` of a folder, or a data set that ``featherload.torch.DataLoader``
        accepts, such as ``ImageFolder``. A broken image of an ``ImageDataset`` is replaced by the
        next one, as in timm.
    ``use_prefetcher``
        Rows are levels, and a subclass of timm's ``PrefetchLoader`` normalises and erases them on
        ``device``. Without it workers do, in float32, and ``device`` has no effect.
    ``collate_fn``
        None, or with the prefetcher timm's ``FastCollateMixup``. It runs in this process, with
        random numbers that follow from seed, epoch and batch. Other functions are an error.
    ``re_mode="rand"``, ``re_count``
        Without the prefetcher, timm's ``RandomErasing`` runs in this process for these.
        It has random numbers that follow from seed, epoch and batch, as with the prefetcher.
    ``pin_memory``, ``persistent_workers``, ``use_multi_epochs_loader``, ``worker_seeding``
        These have no effect, because they do not change batches.
    ``options``
        Further keywords of ``featherload.torch.DataLoader``, such as ``seed`` or ``depth``.

    ``num_aug_splits``
        With timm's ``AugMixDataset``, as in timm. The splits of an image have one crop and flip.
        The first split has nothing else. With the prefetcher, rows are those of the first split,
        then those of the next. Without it ``images`` is a list of splits.

    Raises ``ConfigError`` for ``tf_preprocessing`` and ``input_size_choices``. The error states how
    pixels would differ.
    """
    _check(tf_preprocessing and use_prefetcher, input_size_choices)
    augments = is_training and not no_aug
    dataset, splits = _without_splits(dataset, num_aug_splits, augments, collate_fn)
    dataset = _as_list_of_files(dataset, options)
    erases = re_prob if augments else 0.0
    in_recipe = not use_prefetcher and re_mode in _ERASING and re_count == 1
    recipe = create_transform(
        input_size,
        is_training,
        no_aug=no_aug,
        train_crop_mode=train_crop_mode,
        scale=scale,
        ratio=ratio,
        hflip=hflip,
        vflip=vflip,
        color_jitter=color_jitter,
        color_jitter_prob=color_jitter_prob,
        grayscale_prob=grayscale_prob,
        gaussian_blur_prob=gaussian_blur_prob,
        auto_augment=auto_augment,
        interpolation=interpolation,
        mean=tuple(mean),
        std=tuple(std),
        re_prob=erases if in_recipe else 0.0,
        re_mode=re_mode,
        crop_pct=crop_pct,
        crop_mode=crop_mode,
        crop_border_pixels=crop_border_pixels,
        normalize=not use_prefetcher,
    )
    if splits:
        recipe = split_recipe(recipe, splits)
    mixes = _mixer(collate_fn, use_prefetcher, batch_size)
    erasing = None
    if erases and not use_prefetcher and not in_recipe:
        erasing = RandomErasing(erases, mode=re_mode, max_count=re_count, device="cpu")
    device = torch.device(device)
    on_device = use_prefetcher and device.type == "cuda" and mixes is None
    loader = _Loader(
        dataset,
        batch_size,
        sampler=_sampler(dataset, is_training, distributed, num_aug_repeats),
        shuffle=is_training and not distributed,
        num_workers=num_workers,
        drop_last=is_training,
        recipe=recipe,
        mixes=mixes,
        erasing=erasing,
        **{"device": str(device) if on_device else "cpu", **options},
    )
    if not use_prefetcher:
        return loader
    return _Prefetched(
        loader,
        mean=mean,
        std=std,
        channels=3,
        device=device,
        fp16=fp16,
        img_dtype=img_dtype,
        re_prob=erases,
        re_mode=re_mode,
        re_count=re_count,
        re_num_splits=(num_aug_splits or 2) if re_split else 0,
    )


def _without_splits(dataset: Any, splits: int, augments: bool, collate_fn: Any) -> tuple[Any, int]:
    """The data set without timm's ``AugMixDataset``, and its number of splits. 0: it has none."""
    kind = type(dataset)
    has_splits = (kind.__module__, kind.__name__) == ("timm.data.dataset", "AugMixDataset")
    if not has_splits and not splits:
        return dataset, 0
    if not has_splits or dataset.num_splits != splits:
        given = f"AugMixDataset(num_splits={dataset.num_splits})" if has_splits else kind.__name__
        raise ConfigError(
            f"num_aug_splits={splits} and the data set is {given}: give the same number to both, "
            "as timm's train.py does: AugMixDataset(dataset, num_splits=3) and num_aug_splits=3",
            option="num_aug_splits",
        )
    if not augments:
        raise ConfigError(
            f"num_aug_splits={splits}: timm has splits only with is_training=True and no_aug=False",
            option="num_aug_splits",
        )
    if type(collate_fn) is FastCollateMixup:
        raise ConfigError(
            f"num_aug_splits={splits} and FastCollateMixup: timm's function mixes single images: "
            "leave one of them out",
            option="collate_fn",
        )
    return dataset.dataset, int(splits)


def _check(tensorflow: bool, sizes: Any) -> None:
    if tensorflow:
        raise ConfigError(
            "tf_preprocessing=True: TensorFlow's decoder and its bicubic filter give other pixels "
            "than Pillow's, which are those of this loader: leave it out, or use timm's "
            "create_loader",
            option="tf_preprocessing",
        )
    if sizes is not None:
        raise ConfigError(
            "input_size_choices: timm draws size and number of rows of each batch from its own "
            "schedule, and multi_scale of featherload.Loader would give other sizes: leave it "
            "out, or use timm's create_loader",
            option="input_size_choices",
        )


class _TimmFolder(torch.utils.data.Dataset[Any]):
    """timm's ``ImageDataset`` as a list of files. Other attributes are those of the data set."""

    def __init__(self, dataset: Any) -> None:
        self._timms = dataset

    def __len__(self) -> int:
        return len(self._timms)

    def featherload_item(self, index: int) -> tuple[Any, Any]:
        path, target = self._timms.reader.samples[index]
        return path, -1 if target is None else target

    @property
    def classes(self) -> list[str]:
        return [*self._timms.reader.class_to_idx]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_timms"], name)


def _as_list_of_files(dataset: Any, options: dict[str, Any]) -> Any:
    kind = type(dataset)
    if (kind.__module__, kind.__name__) != ("timm.data.dataset", "ImageDataset"):
        return dataset
    reader = type(dataset.reader).__name__
    if reader != "ReaderImageFolder":
        raise ConfigError(
            f"the reader {reader} of timm's ImageDataset gives no paths: give a folder, or a data "
            f"set with the method {METHOD}",
            option="dataset",
        )
    for name, accepted in (
        ("input_img_mode", "RGB"),
        ("load_bytes", False),
        ("additional_features", None),
    ):
        value = getattr(dataset, name)
        if value != accepted:
            raise ConfigError(
                f"{name}={shown(value)} of timm's ImageDataset gives other rows than images in RGB "
                f"with one target: give {name}={accepted!r}",
                option="dataset",
            )
    options.setdefault("on_error", "substitute")
    return _TimmFolder(dataset)


def _mixer(collate_fn: Any, use_prefetcher: bool, batch_size: int) -> Any:
    """The collating function, if it mixes rows."""
    from torch.utils.data import default_collate

    if collate_fn is None or collate_fn is (fast_collate if use_prefetcher else default_collate):
        return None
    if type(collate_fn) is not FastCollateMixup or not use_prefetcher:
        raise ConfigError(
            f"collate_fn={shown(collate_fn)} is not called, so batches would be those without it: "
            "give timm's FastCollateMixup with use_prefetcher=True, or apply its changes to the "
            "batches, as timm's Mixup does",
            option="collate_fn",
        )
    if batch_size % 2 and "half" not in collate_fn.mode:
        raise ConfigError(
            f"batch_size={batch_size}: FastCollateMixup mixes pairs: give an even number",
            option="batch_size",
        )
    return collate_fn


def _sampler(dataset: Any, is_training: bool, distributed: bool, repeats: float) -> Any:
    """timm's sampler. None: all samples in this process."""
    if not distributed:
        if repeats:
            raise ConfigError(
                f"num_aug_repeats={repeats}: timm repeats samples over several processes only: "
                "give distributed=True, or use featherload.samplers.RepeatedAugmentation",
                option="num_aug_repeats",
            )
        return None
    if not is_training:
        return OrderedDistributedSampler(dataset)
    if repeats:
        return RepeatAugSampler(dataset, num_repeats=repeats)
    return torch.utils.data.DistributedSampler(dataset)


class _Loader(DataLoader):
    """A loader whose batches are mixed or erased in this process, if ``timm`` does so on levels or
    in a way that recipes lack.
    """

    def __init__(self, dataset: Any, batch_size: int, *, mixes: Any, erasing: Any, **options: Any):
        sampler = options["sampler"]
        if sampler is not None and not is_distributed(sampler):
            # Its numbers are those of this process.
            options.update(rank=0, world_size=1)
        elif sampler is None:
            options.setdefault("rank", 0)
            options.setdefault("world_size", 1)
        super().__init__(dataset, batch_size, **options)
        if mixes is not None and self._has_masks:
            self.close()
            raise ConfigError(
                "masks: timm's mixes change images and labels, but not masks: leave out mixup and "
                "cutmix, or masks",
                option="masks",
            )
        self._mixes, self._erasing = mixes, erasing
        if mixes is not None:
            # The training loop turns it off through the prefetcher.
            self.__dict__["collate_fn"] = mixes
        plan = self.state_dict()["plan"]
        self._key = [int(plan["seed"]) % (1 << 32), int(plan["seed"]) >> 32, self._rank()]

    def _rank(self) -> int:
        group = torch.distributed
        return group.get_rank() if group.is_available() and group.is_initialized() else 0

    def _take(self, raw: Any) -> Batch:
        batch = super()._take(raw)
        if self._mixes is not None:
            parts = raw.without_pixels(), self._request.columns
            return Batch(self._mixed(batch), *parts, captions=batch._captions)
        if self._erasing is not None:
            with self._random_numbers(batch, "cpu"):
                images = batch.images
                for row in batch.good_rows():
                    for crop in images if isinstance(images, list) else [images]:
                        self._erasing(crop[row])
        return batch

    @contextlib.contextmanager
    def _random_numbers(self, batch: Batch, device: Any) -> Iterator[None]:
        """Python's and torch's random numbers follow from the batch's position meanwhile. The
        trainer's own are unchanged.
        """
        at = [*self._key, batch.epoch % (1 << 32), batch.number % (1 << 32)]
        ours, theirs = np.random.SeedSequence(at).generate_state(2, np.uint64).tolist()
        device = torch.device(device)
        devices = [device] if device.type == "cuda" else []
        before = random.getstate()
        with torch.random.fork_rng(devices):
            random.seed(ours)
            torch.default_generator.manual_seed(theirs)
            for one in devices:
                index = torch.cuda.current_device() if one.index is None else one.index
                torch.cuda.default_generators[index].manual_seed(theirs)
            try:
                yield
            finally:
                random.setstate(before)

    def _mixed(self, batch: Batch) -> tuple[Any, Any]:
        """The batch as timm's function collates it. Its draws follow from the position."""
        images, labels = batch
        rows = [*zip(images, labels.tolist(), strict=True)]
        before = np.random.get_state()
        np.random.seed([*self._key, batch.epoch % (1 << 32), batch.number % (1 << 32)])
        try:
            mixed: tuple[Any, Any] = self._mixes(rows)
        finally:
            np.random.set_state(before)
        return mixed


class _Prefetched(PrefetchLoader):
    """timm's ``PrefetchLoader`` for a loader that prefetches by itself: it only normalises and
    erases, on the current stream. Batches keep ids, status, faults and columns.
    """

    loader: _Loader

    def __iter__(self) -> Iterator[Batch]:
        for batch in self.loader:
            images, target = batch
            splits = 1
            if isinstance(images, list):
                splits = len(images)
                # All rows of a split, then those of the next, as timm's fast_collate has them.
                target = target.repeat((len(images),) + (1,) * (target.ndim - 1))
                images = torch.cat(images)
            images = images.to(device=self.device, non_blocking=True)
            target = target.to(device=self.device, non_blocking=True)
            images = images.to(self.img_dtype).sub_(self.mean).div_(self.std)
            if self.random_erasing is not None:
                with self.loader._random_numbers(batch, self.device):
                    images = self.random_erasing(images)
            raw = batch._of_loader.without_pixels()
            masks = batch._masks
            if masks is not None:
                masks = masks.to(device=self.device, non_blocking=True)
            parts = raw, batch._columns, masks
            yield Batch((images, target), *parts, splits=splits, captions=batch._captions)

    def state_dict(self) -> dict[str, Any]:
        """The position, as that of ``featherload.Loader``."""
        return self.loader.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues after a saved position."""
        self.loader.load_state_dict(state)
