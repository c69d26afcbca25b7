"""Data sets of torchvision within ``wrap_dataset_for_transforms_v2``: their files and targets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import _detection, _segmentation
from ._detection import AnnotatedSample
from ._joint_transforms import inner, refused
from ._segmentation import MaskedSample
from ._target_plan import TargetPlan

_READERS = (_detection.READERS, _segmentation.READERS)


def samples(dataset: Any) -> list[tuple[Any, Any]] | None:
    """Paths and targets of a wrapped data set; None for other data sets."""
    wrapped = inner(dataset)
    if wrapped is None:
        return None
    if not _is_known(type(wrapped)):
        known = ", ".join(sorted(name for readers in _READERS for name in readers))
        raise refused(
            f"a wrapped {type(wrapped).__name__} is not read here: use {known}, or give its boxes "
            "to featherload.Loader(paths, recipe, objects=[...]), or its masks as masks=[...]"
        )
    read = _detection if type(wrapped).__name__ in _detection.READERS else _segmentation
    return [*read.samples(dataset)]


def plan(leaves: Sequence[Any], listed: Sequence[tuple[Any, Any]]) -> TargetPlan | None:
    """What a loader gets for targets of wrapped data sets; None for labels."""
    kind = type(listed[0][1]) if listed else None
    if kind is AnnotatedSample:
        return _detection.plan(leaves, listed)
    return _segmentation.plan(leaves, listed) if kind is MaskedSample else None


def kind_of(target: Any) -> str:
    """What a target is, for texts."""
    return {AnnotatedSample: "objects", MaskedSample: "masks"}.get(type(target), "labels")


def wrapping(kind: type[Any]) -> str | None:
    """How a data set that must be wrapped is given; None for other data sets."""
    if not _is_known(kind) or kind.__name__ in ("CelebA", "OxfordIIITPet"):
        return None
    what = "mask" if kind.__name__ in _segmentation.READERS else "boxes"
    return (
        f"transforms of the {kind.__name__} get its {what} as "
        f"{'an image, and mix labels' if what == 'mask' else 'plain numbers, and do not move them'}"
        f": give wrap_dataset_for_transforms_v2(dataset) of torchvision.datasets"
    )


def _is_known(kind: type[Any]) -> bool:
    is_torchvisions = kind.__module__.startswith("torchvision.datasets.")
    return is_torchvisions and any(kind.__name__ in readers for readers in _READERS)
