"""The function of a loader on whole batches (``then=``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import is_
from typing import Any

from ._errors import ConfigError


def check(then: Any) -> None:
    if then is not None and not callable(then):
        raise ConfigError(
            f"then is a {type(then).__name__}: give a function that takes the images of a batch "
            "and returns what replaces them",
            option="then",
        )


def run(then: Callable[[Any], Any], images: Any, samples: int) -> Any:
    """What the function makes of a batch's images. ``images`` itself, if nothing was replaced.

    The function gets a copy of a list, so that it may change the list.
    """
    made = then(list(images) if isinstance(images, list) else images)
    name = _name(then)
    if not isinstance(made, list):
        if isinstance(made, (tuple, Mapping)) or not hasattr(made, "shape") or not len(made.shape):
            raise ConfigError(
                f"then={name} returned a {type(made).__name__}: return the images of the batch, as "
                "an array or a list of arrays",
                option="then",
            )
        _check_rows(name, "", len(made), samples)
        return made
    if _is_crops(images) or _is_crops(made):
        for number, one in enumerate(made):
            if not hasattr(one, "shape") or not len(one.shape):
                raise ConfigError(
                    f"then={name} returned a list with a {type(one).__name__}: return arrays",
                    option="then",
                )
            _check_rows(name, f" in array {number}", len(one), samples)
    else:
        _check_rows(name, "", len(made), samples)
    if isinstance(images, list) and len(made) == len(images) and all(map(is_, made, images)):
        return images
    return made


def _is_crops(images: Any) -> bool:
    """Whether it is a list of arrays with a row for each sample, not a list of rows."""
    return isinstance(images, list) and any(len(getattr(one, "shape", ())) > 3 for one in images)


def _check_rows(name: str, where: str, rows: int, samples: int) -> None:
    if rows != samples:
        raise ConfigError(
            f"then={name} returned {rows} rows{where} for {samples} samples: return as many, "
            "because labels, ids and status belong to them (of several crops, a list, or one array "
            "with the samples first, such as torch.stack(crops, 1))",
            option="then",
        )


def _name(then: Callable[[Any], Any]) -> str:
    return getattr(then, "__name__", type(then).__name__)
