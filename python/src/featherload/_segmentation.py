"""Segmentation data sets of torchvision, wrapped for its v2 transforms, as paths, masks and labels.

``wrap_dataset_for_transforms_v2(VOCSegmentation(root, transforms=...))`` names the files. No image
is read here. Masks of ``SBDataset`` are read, because their files are MATLAB's.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ._joint_transforms import inner, mask_rule, refused
from ._objects import Objects
from ._target_plan import TargetPlan, TargetView

INSTANCES = 1000
"""Cityscapes' numbers of instances: 1000 x class + count. Smaller ones are classes."""


@dataclass(frozen=True)
class MaskedSample:
    """The targets of one image."""

    mask: str
    labels: tuple[int, ...] = ()
    read: Callable[[str], bytes] | None = field(default=None, compare=False, repr=False)
    """Reads the mask as an image file, if workers cannot."""


def samples(dataset: Any) -> list[tuple[str, MaskedSample]]:
    """Paths and masks of a wrapped data set."""
    wrapped = inner(dataset)
    return READERS[type(wrapped).__name__](wrapped)


def plan(leaves: Sequence[Any], listed: Sequence[tuple[str, MaskedSample]]) -> TargetPlan:
    """The masks as a keyword of a loader."""
    forms = [_form(leaf) for leaf in leaves]
    rules = [mask_rule(leaf, "int32" if "instance" in _form(leaf) else "uint8") for leaf in leaves]
    for other, form in zip(rules, forms, strict=True):
        if (other, form) != (rules[0], forms[0]):
            raise refused(
                "the data sets of a ConcatDataset have other types or fills of masks, or other "
                "targets: give all the same transforms and target types"
            )
    # Paths, or the bytes of all.
    are_paths = all(target.read is None for _, target in listed)
    files = [target.mask if are_paths else _bytes(target) for _, target in listed]
    labels = [list(target.labels) for _, target in listed]
    single = len(labels[0]) == 1
    return TargetPlan(
        [
            (path, (of[0] if single else of) if of else None)
            for (path, _), of in zip(listed, labels, strict=True)
        ],
        "masks",
        {**rules[0], "files": files},
        lambda _: _viewer(forms[0]),
    )


def _bytes(target: MaskedSample) -> bytes:
    if target.read is not None:
        return target.read(target.mask)
    try:
        return Path(target.mask).read_bytes()
    except OSError as error:
        raise refused(f"the mask {target.mask} cannot be read: {error.strerror}") from None


def _form(dataset: Any) -> tuple[str, ...]:
    """The parts of a target, in their order."""
    wrapped = inner(dataset)
    name = type(wrapped).__name__
    if name == "OxfordIIITPet":
        return tuple(wrapped._target_types)
    return tuple(wrapped.target_type) if name == "Cityscapes" else ("segmentation",)


def _viewer(form: tuple[str, ...]) -> TargetView:
    def view(images: Any, labels: Any, masks: Any, objects: Objects | None) -> tuple[Any, Any]:
        if "instance" in form:
            return images, [_instances(mask) for mask in masks]
        # torchvision's masks have an axis of one channel.
        masks = masks[:, None]
        if len(form) == 1:
            return images, masks
        columns = iter([labels] if len(labels.shape) == 1 else labels.T)
        return images, [masks if part == "segmentation" else _whole(next(columns)) for part in form]

    return view


def _whole(column: Any) -> Any:
    return column.long() if hasattr(column, "long") else column.astype("int64")


def _instances(mask: Any) -> dict[str, Any]:
    """Masks of all numbers in a mask, and their classes."""
    host = np.asarray(mask.cpu() if hasattr(mask, "cpu") else mask)
    numbers = np.bincount(host.ravel()).nonzero()[0].astype(host.dtype)
    labels = np.where(numbers >= INSTANCES, numbers // INSTANCES, numbers).astype(np.int64)
    if hasattr(mask, "new_tensor"):
        one = mask.new_tensor(numbers)
        return {"masks": mask[None] == one[:, None, None], "labels": one.new_tensor(labels).long()}
    return {"masks": mask[None] == numbers[:, None, None], "labels": labels}


def _voc(dataset: Any) -> list[tuple[str, MaskedSample]]:
    pairs = zip(dataset.images, dataset.masks, strict=True)
    return [(path, MaskedSample(mask)) for path, mask in pairs]


def _sbd(dataset: Any) -> list[tuple[str, MaskedSample]]:
    def read(file: str) -> bytes:
        """A mask as PNG, which takes less memory than its pixels."""
        try:
            picture = dataset._get_target(file)
        except Exception as error:
            raise refused(
                f"the mask {file} of the SBDataset cannot be read: {error}. Give the data set as "
                "torchvision downloads it, with scipy installed, or masks as PNG to "
                "featherload.Loader(paths, recipe, masks=[...])"
            ) from error
        png = io.BytesIO()
        picture.save(png, "PNG", compress_level=1)
        return png.getvalue()

    pairs = zip(dataset.images, dataset.masks, strict=True)
    return [(path, MaskedSample(mask, read=read)) for path, mask in pairs]


def _cityscapes(dataset: Any) -> list[tuple[str, MaskedSample]]:
    if dataset.target_type not in (["semantic"], ["instance"]):
        raise refused(
            f"the Cityscapes has target_type={dataset.target_type}, and images have one mask here: "
            "give target_type='semantic' or 'instance'"
        )
    pairs = zip(dataset.images, dataset.targets, strict=True)
    return [(path, MaskedSample(files[0])) for path, files in pairs]


def _pets(dataset: Any) -> list[tuple[str, MaskedSample]]:
    types = dataset._target_types
    if types.count("segmentation") != 1:
        raise refused(
            f"the wrapped OxfordIIITPet has target_types={types}: give 'segmentation' once, with "
            "or without 'category', or leave out wrap_dataset_for_transforms_v2 for categories "
            "alone"
        )
    columns = [
        dataset._labels if one == "category" else dataset._bin_labels
        for one in types
        if one != "segmentation"
    ]
    return [
        (str(path), MaskedSample(str(mask), tuple(column[row] for column in columns)))
        for row, (path, mask) in enumerate(zip(dataset._images, dataset._segs, strict=True))
    ]


READERS: dict[str, Callable[[Any], list[tuple[str, MaskedSample]]]] = {
    "Cityscapes": _cityscapes,
    "OxfordIIITPet": _pets,
    "SBDataset": _sbd,
    "VOCSegmentation": _voc,
}
