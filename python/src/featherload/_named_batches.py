"""Batches as dicts, which the models and scripts of Hugging Face take.

Never in here: the loaders that make the batches.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ._batch import Batch
from ._errors import ConfigError
from ._values import shown


class NamedBatches(Iterator[dict[str, Any]]):
    """The batches of an epoch as dicts. Without labels, or with one name, they have one entry."""

    def __init__(self, epoch: Iterator[Batch], names: tuple[str, ...]) -> None:
        self._epoch = epoch
        self._names = names

    def __next__(self) -> dict[str, Any]:
        images, labels = next(self._epoch)
        pairs = zip(self._names, (images, labels), strict=False)
        return {name: value for name, value in pairs if value is not None}


def checked_names(names: Any) -> tuple[str, str]:
    """Two different names, of images and of labels."""
    try:
        of_images, of_labels = names
    except (TypeError, ValueError):
        of_images = of_labels = None
    if not isinstance(of_images, str) or not isinstance(of_labels, str) or of_images == of_labels:
        raise ConfigError(
            f"names {shown(names)} are not two names: give those of images and labels, such as "
            "('pixel_values', 'labels')",
            option="names",
        )
    return of_images, of_labels
