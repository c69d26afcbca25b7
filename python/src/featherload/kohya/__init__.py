"""Dataset configs of kohya's sd-scripts (``--dataset_config``) as keywords of ``Loader``.

::

    from featherload import kohya

    for data in kohya.read("dataset.toml"):
        loader = featherload.Loader(**data.keywords(), framework="torch")

``docs/kohya.md`` lists the keys. In the trainer's process: it reads the config, caption files and
metadata, and lists folders. Never in here: pixels, sizes of images, and random numbers.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np

from .._captions import Captions
from .._errors import ConfigError
from .._items import Items
from .._values import path_text, shown, whole
from ..samplers import Buckets
from ._config import Section, is_number, parse_file, refuse_dataset_options, sections_of
from ._entries import epoch_of
from ._recipe import resolution_of, row_operations
from ._tags import caption_rule

__all__ = ["Dataset", "Image", "read"]


@dataclass(frozen=True, slots=True)
class Image:
    """One image of a ``Dataset``."""

    path: str
    caption: str
    """The caption that sd-scripts has before prefix, suffix, dropout and shuffle."""
    repeats: int
    """How often the image comes in each epoch."""
    is_reg: bool
    """Whether it is a regularisation image."""
    subset: int
    """The number of its ``[[datasets.subsets]]`` in the file, from 0."""


@dataclass(frozen=True)
class Dataset:
    """One of the ``[[datasets]]`` of a config. ``keywords()`` are those of its ``Loader``."""

    name: str
    """Its place in the config, such as ``"dataset.toml: [[datasets]] 1"``."""
    images: tuple[Image, ...]
    """All images of an epoch, each one once."""
    train_images: int
    """Images that are not for regularisation, counted with their repeats."""
    reg_images: int
    """Regularisation images of all folders, counted with the ``num_repeats`` of the config. An
    epoch has about as many of them as it has training images."""
    resolution: tuple[int, int]
    """Width and height."""
    batch_size: int
    buckets: Buckets | None
    """The sampler. None: all rows have ``resolution``, in a random order."""
    captions: Captions
    """The rule of captions. Its texts are ``texts``."""
    texts: tuple[str, ...] | tuple[list[str], ...] = field(repr=False)
    """Texts of each image: its caption with prefix and suffix. With ``enable_wildcard``, a list of
    its lines."""
    operations: tuple[Mapping[str, Any], ...] = field(repr=False)
    """The operations of the recipe."""
    prior_loss_weight: float = 1.0
    """The ``loss_weight`` of regularisation images."""
    network_multiplier: float = 1.0
    """A value for the trainer: the loader does not use it."""
    seed: int = 0

    def __len__(self) -> int:
        """The number of rows in an epoch."""
        return sum(image.repeats for image in self.images)

    def keywords(self) -> dict[str, Any]:
        """Keywords of ``Loader``, new ones at each call. Change or add others before the call.

        Batches have ``batch["loss_weight"]`` (float32) and ``batch["is_reg"]``. The id of a row
        counts repeats: the first image has the ids from 0 to ``images[0].repeats - 1``.
        """
        repeats = [image.repeats for image in self.images]
        is_reg = np.repeat([image.is_reg for image in self.images], repeats)
        weight = np.where(is_reg, self.prior_loss_weight, 1.0).astype(np.float32)
        items = Items(
            _repeated((image.path for image in self.images), repeats),
            caption=_repeated(self.texts, repeats),
            loss_weight=weight,
            is_reg=is_reg,
        )
        return {
            "src": items,
            "recipe": {"featherload": 1, "ops": [dict(op) for op in self.operations]},
            "batch_size": self.batch_size,
            "sampler": "shuffle" if self.buckets is None else self.buckets,
            "seed": self.seed,
            "captions": self.captions,
            "columns": ["loss_weight", "is_reg"],
        }


def read(
    path: str | os.PathLike[str], *, seed: int = 0, prior_loss_weight: float = 1.0
) -> list[Dataset]:
    """The ``[[datasets]]`` of a dataset config of sd-scripts, in TOML or JSON.

    ``seed``: that of the loaders. ``prior_loss_weight``: the loss weight of regularisation images,
    which sd-scripts takes from its command line. Relative folders start from the working directory.

    Raises ``ConfigError`` for a key that sd-scripts refuses, and for an option that has no
    equivalent here. Raises ``DatasetError`` for missing folders, images and bad caption files.
    """
    file = path_text("path", path)
    first = whole("seed", seed, 0)
    if not is_number(prior_loss_weight) or not math.isfinite(prior_loss_weight):
        raise ConfigError(
            f"prior_loss_weight {shown(prior_loss_weight)} is not a number: give one, such as 1.0",
            option="prior_loss_weight",
        )
    sections = sections_of(file, parse_file(file))
    return [_dataset(section, subsets, first, prior_loss_weight) for section, subsets in sections]


# The file.


def _dataset(
    section: Section, subsets: Sequence[Section], seed: int, prior_loss_weight: float
) -> Dataset:
    resolution = resolution_of(section)
    refuse_dataset_options(section)
    epoch = epoch_of(section, subsets)
    entries = list(epoch.entries.values())
    buckets, operations = row_operations(section, epoch.subsets, resolution)
    captions, texts = caption_rule(entries)
    images = (
        Image(entry.path, entry.caption, entry.repeats, entry.is_reg, entry.subset.number)
        for entry in entries
    )
    return Dataset(
        name=f"{section.file}: {section.name}",
        images=tuple(images),
        train_images=epoch.train_images,
        reg_images=epoch.reg_images,
        resolution=resolution,
        batch_size=section.find("batch_size"),
        buckets=buckets,
        captions=captions,
        texts=tuple(texts),  # type: ignore[arg-type]
        operations=operations,
        prior_loss_weight=float(prior_loss_weight),
        network_multiplier=section.find("network_multiplier"),
        seed=seed,
    )


def _repeated(values: Iterable[Any], repeats: Sequence[int]) -> list[Any]:
    """Each value as often as its number in ``repeats``, one after the other."""
    pairs = zip(values, repeats, strict=True)
    return [*chain.from_iterable([value] * count for value, count in pairs)]
