"""Orders of an epoch, for ``Loader(sampler=...)``, and draws of rays, for ``Rays(sampler=...)``.

``"shuffle"`` (another random order in each epoch) and ``"sequential"`` (the order of the
index) need no more than their names. ``Patches`` and ``Pairs`` are for rays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ._values import numbers

__all__ = [
    "Identity",
    "LargestFirst",
    "Pairs",
    "Patches",
    "RaySampler",
    "RepeatedAugmentation",
    "Sampler",
    "ShardShuffle",
    "Weighted",
]


class Sampler:
    """One of the classes of this module."""

    def _options(self) -> dict[str, Any]:
        raise NotImplementedError


@dataclass(frozen=True)
class ShardShuffle(Sampler):
    """Groups of neighbouring samples in a random order, shuffled within windows. Reads stay
    close together.

    ``shard``: samples of a group. None: the samples of a shard, or their mean number if shards
    differ; 1,024 if samples are files. ``window``: samples that are shuffled together.
    """

    shard: int | None = None
    window: int = 16_384

    def _options(self) -> dict[str, Any]:
        return {"sampler": {"shard_shuffle": {"shard": self.shard, "window": self.window}}}


@dataclass(frozen=True)
class Identity(Sampler):
    """``per_id`` samples of each of batch / ``per_id`` classes in a batch (PKSampler).

    ``prob``: classes come in proportion to their samples, or all alike.
    """

    per_id: int = 4
    prob: Literal["sample_avg", "id_avg"] = "sample_avg"

    def _options(self) -> dict[str, Any]:
        return {"sampler": {"identity": {"per_id": self.per_id, "prob": self.prob}}}


@dataclass(frozen=True)
class Weighted(Sampler):
    """Draws with replacement, as torch's ``WeightedRandomSampler``.

    ``weights``: one for each sample in the order of the index; None: 1 / number of samples of
    the class. ``num_samples``: draws of an epoch; None: as many as there are samples.
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
class RepeatedAugmentation(Sampler):
    """Each sample ``repeats`` times in a row, over the ranks (DeiT's RASampler)."""

    repeats: int = 3

    def _options(self) -> dict[str, Any]:
        return {"sampler": {"repeated_augmentation": {"repeats": self.repeats}}}


@dataclass(frozen=True)
class LargestFirst(Sampler):
    """Large pictures first, in ``classes`` classes of size: memory grows once, at the start."""

    classes: int = 16

    def _options(self) -> dict[str, Any]:
        return {"sampler": {"largest_first": {"classes": self.classes}}}


class RaySampler:
    """How ``Rays`` spreads rays over images: one of the classes below, or ``"uniform"`` (all
    pixels alike), ``"by_image"`` (all images alike, then all pixels of the image).
    """

    def _ray_sampler(self) -> dict[str, Any]:
        raise NotImplementedError


@dataclass(frozen=True)
class Patches(RaySampler):
    """Patches of ``size`` x ``size`` pixels that are ``dilation`` apart, row by row: each is
    ``size * size`` rays that follow each other. No pixel of a patch is masked out.
    """

    size: int
    dilation: int = 1

    def _ray_sampler(self) -> dict[str, Any]:
        return {"patches": {"size": self.size, "dilation": self.dilation}}


@dataclass(frozen=True)
class Pairs(RaySampler):
    """Pairs of pixels of one image, at most ``radius`` rows and columns apart: two rays that
    follow each other.
    """

    radius: int

    def _ray_sampler(self) -> dict[str, Any]:
        return {"pairs": {"radius": self.radius}}
