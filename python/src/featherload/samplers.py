"""Orders of an epoch, for ``Loader(sampler=...)``, and draws of rays, for ``Rays(sampler=...)``.

``"shuffle"`` (a new random order in each epoch) and ``"sequential"`` (the order of the index) are
given as names. ``Patches`` and ``Pairs`` are for rays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ._values import numbers, whole

__all__ = [
    "Buckets",
    "Identity",
    "LargestFirst",
    "Pairs",
    "PatchBudget",
    "Patches",
    "RareObjects",
    "RaySampler",
    "RepeatedAugmentation",
    "Sampler",
    "ShardShuffle",
    "Weighted",
]


class Sampler:
    """The base class of orders of an epoch."""

    def _options(self) -> dict[str, Any]:
        raise NotImplementedError


@dataclass(frozen=True)
class ShardShuffle(Sampler):
    """An order for tar shards, with reads close to each other.

    The data set is cut into groups of consecutive samples. The groups are put in a random order.
    Then samples are shuffled within windows of that order.

    ``shard``: number of samples in a group. None: the number of samples in a shard, or its mean if
    shards differ; 1,024 if samples are files. ``window``: number of samples in a window.
    """

    shard: int | None = None
    window: int = 16_384

    def _options(self) -> dict[str, Any]:
        return {"sampler": {"shard_shuffle": {"shard": self.shard, "window": self.window}}}


@dataclass(frozen=True)
class Identity(Sampler):
    """A batch has ``per_id`` samples of each of its ``batch_size / per_id`` classes (PKSampler).

    ``prob``: probability of a class: in proportion to its samples, or equal for all classes.
    """

    per_id: int = 4
    prob: Literal["sample_avg", "id_avg"] = "sample_avg"

    def _options(self) -> dict[str, Any]:
        return {"sampler": {"identity": {"per_id": self.per_id, "prob": self.prob}}}


@dataclass(frozen=True)
class Weighted(Sampler):
    """Draws with replacement, like torch's ``WeightedRandomSampler``.

    ``weights``: one for each sample, in the order of the index. None: 1 / number of samples of the
    class. ``num_samples``: draws of an epoch. None: the number of samples.
    """

    weights: Sequence[float] | None = None
    num_samples: int | None = None

    def _options(self) -> dict[str, Any]:
        kind = "inverse_class_frequency" if self.weights is None else "given"
        options: dict[str, Any] = {
            "sampler": {"weighted": {"weights": kind, "num_samples": self.num_samples}}
        }
        if self.weights is not None:
            options["sample_weights"] = numbers("sampler", self.weights)
        return options


@dataclass(frozen=True)
class RareObjects(Sampler):
    """Draws with replacement. Images with objects of rare categories come more often.

    A category that a share f of the images has, has the factor ``max(1, sqrt(threshold / f))``. The
    weight of an image is the largest factor of its categories: the repeat factors of LVIS.
    ``empty``: weight of images without objects; 0 leaves them out. ``num_samples``: draws of an
    epoch. None: the number of samples. The loader needs ``objects``.
    """

    threshold: float = 0.001
    empty: float = 1.0
    num_samples: int | None = None

    def _options(self) -> dict[str, Any]:
        frequency = {"threshold": self.threshold, "empty": self.empty}
        weights = {"object_frequency": frequency}
        return {"sampler": {"weighted": {"weights": weights, "num_samples": self.num_samples}}}


@dataclass(frozen=True)
class RepeatedAugmentation(Sampler):
    """Each sample comes ``repeats`` times in succession, over the ranks (DeiT's RASampler)."""

    repeats: int = 3

    def _options(self) -> dict[str, Any]:
        return {"sampler": {"repeated_augmentation": {"repeats": self.repeats}}}


@dataclass(frozen=True)
class LargestFirst(Sampler):
    """Large images first, in ``classes`` size classes. So memory grows only at the start."""

    classes: int = 16

    def _options(self) -> dict[str, Any]:
        return {"sampler": {"largest_first": {"classes": self.classes}}}


@dataclass(frozen=True)
class Buckets(Sampler):
    """Batches of one size each, chosen from the sizes of images: aspect-ratio buckets.

    For recipes with ``cover_crop``, which resizes and crops each image to its bucket. Each image
    comes once an epoch over all ranks. ``drop_last`` and ``pad_last`` apply to the last batch of
    each bucket.

    ``style``: the trainer whose buckets, resizes and crops these are. ``area``: most pixels of a
    row, but for the rounding of the style. ``step``: sides are multiples of it. None: 64 for
    ``"sd-scripts"`` and ``"simpletuner"``, 16 for ``"diffusers"``, 8 for ``"ai-toolkit"``.
    ``sides``: the least and the largest side, only for ``"sd-scripts"`` with ``upscale``. None: 256
    and 1,024. ``area`` lies between their squares. ``upscale``: False keeps the size of small
    images, only for ``"sd-scripts"``.
    """

    area: int = 1024 * 1024
    step: int | None = None
    style: Literal["sd-scripts", "diffusers", "ai-toolkit", "simpletuner"] = "sd-scripts"
    sides: tuple[int, int] | None = None
    upscale: bool = True

    def _options(self) -> dict[str, Any]:
        rule = {
            "area": self.area,
            "step": self.step,
            "style": self.style,
            "sides": list(self.sides) if isinstance(self.sides, Sequence) else self.sides,
            "upscale": self.upscale,
        }
        return {"sampler": {"buckets": rule}}


@dataclass(frozen=True)
class PatchBudget(Sampler):
    """Batches with at most ``patches`` patches on each rank, and at most ``batch_size`` rows.

    For recipes with ``patches`` of style ``"qwen"``, such as a processor of Qwen2-VL, and for
    ``tiles``, where an overview is a patch, too. Images of a batch have about the same number of
    patches, also on other ranks. Each image comes once an epoch over all ranks. ``drop_last``
    leaves out batches that are not full.
    """

    patches: int

    def _options(self) -> dict[str, Any]:
        return {"sampler": {"patch_budget": {"patches": whole("patches", self.patches, 1)}}}


class RaySampler:
    """The base class of draws of rays, for ``Rays``.

    Two draws are given as names: ``"uniform"`` (all pixels with equal probability) and
    ``"by_image"`` (all images with equal probability, then all pixels of the image).
    """

    def _ray_sampler(self) -> dict[str, Any]:
        raise NotImplementedError


@dataclass(frozen=True)
class Patches(RaySampler):
    """Patches of ``size`` x ``size`` pixels, with a distance of ``dilation`` pixels between
    neighbours. Each patch is ``size * size`` consecutive rays, row by row. No pixel of a patch is
    masked.
    """

    size: int
    dilation: int = 1

    def _ray_sampler(self) -> dict[str, Any]:
        return {"patches": {"size": self.size, "dilation": self.dilation}}


@dataclass(frozen=True)
class Pairs(RaySampler):
    """Pairs of pixels of one image, at most ``radius`` rows and columns apart. Each pair is two
    consecutive rays.
    """

    radius: int

    def _ray_sampler(self) -> dict[str, Any]:
        return {"pairs": {"radius": self.radius}}
