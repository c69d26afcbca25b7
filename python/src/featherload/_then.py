"""The function of a loader on whole batches (``then=``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._errors import ConfigError


def check(then: Any) -> None:
    if then is not None and not callable(then):
        raise ConfigError(
            f"then is a {type(then).__name__}: give a function that takes the images of a batch "
            "and returns what replaces them",
            option="then",
        )


def run(then: Callable[[Any], Any], images: Any) -> Any:
    """What the function makes of a batch's images."""
    made = then(images)
    if not hasattr(made, "__len__"):
        raise ConfigError(
            f"then={_name(then)} returned a {type(made).__name__}: return the images of the batch",
            option="then",
        )
    if len(made) != len(images):
        raise ConfigError(
            f"then={_name(then)} returned {len(made)} rows for {len(images)}: return as many, "
            "because labels, ids and status belong to them",
            option="then",
        )
    return made


def _name(then: Callable[[Any], Any]) -> str:
    return getattr(then, "__name__", type(then).__name__)
