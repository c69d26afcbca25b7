"""Other people's settings as recipes, for ``Loader(recipe=...)``.

A torchvision ``Compose`` and a ``weights.transforms()`` need no function: ``Loader`` takes
them as they are.
"""

from __future__ import annotations

from ._huggingface import preprocessor
from ._timm import create_transform
from ._transforms import translate as torchvision

__all__ = ["create_transform", "preprocessor", "torchvision"]
