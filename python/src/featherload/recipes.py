"""Converts settings of other packages to recipes, for ``Loader(recipe=...)``.

A torchvision ``Compose`` and ``weights.transforms()`` need no conversion: ``Loader`` accepts them
directly.
"""

from __future__ import annotations

from ._huggingface import preprocessor
from ._timm import create_transform
from ._transforms import translate as torchvision

__all__ = ["create_transform", "preprocessor", "torchvision"]
