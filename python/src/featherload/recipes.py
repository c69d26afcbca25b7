"""Converts settings of other packages to recipes, for ``Loader(recipe=...)``.

A torchvision ``Compose`` and ``weights.transforms()`` need no conversion: ``Loader`` accepts them
directly.
"""

from __future__ import annotations

from typing import Any

from ._crops import single_recipe
from ._huggingface import preprocessor
from ._timm import create_transform
from ._transforms import Recipe

__all__ = ["create_transform", "preprocessor", "torchvision"]


def torchvision(transforms: Any) -> Recipe:
    """The recipe of a Compose, a list of transforms, or ``weights.transforms()``.

    Images are decoded as in ``torchvision.datasets.ImageFolder``.
    """
    return single_recipe(transforms)
