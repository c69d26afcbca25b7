"""Transforms of torchvision's v2 that move images and targets together, in the data sets that
``wrap_dataset_for_transforms_v2`` wraps.

Reads public attributes. The part of images becomes a recipe, and the rest rules of objects or of
masks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ._errors import ConfigError
from ._transforms import both, entry_of, full_name
from ._values import shown

_WRAPPER = "torchvision.tv_tensors._dataset_wrapper.VisionDatasetTVTensorWrapper"

_MASK = "torchvision.tv_tensors._mask.Mask"

# Transforms after which boxes may be sanitized: they move no pixel.
_STILL = {"ConvertImageDtype", "Normalize", "ToDtype", "ToImage", "ToPureTensor"}

# Of boxes alone. Boxes of batches are clamped before they are sanitized, and have one format.
_CLAMPED = ("ClampBoundingBoxes",)
_CONVERTED = ("ConvertBoundingBoxFormat",)

# Transforms that fill the outside of masks. ``CenterCrop`` does too, with 0.
_FILLING = {
    "ElasticTransform",
    "Pad",
    "RandomAffine",
    "RandomCrop",
    "RandomPerspective",
    "RandomRotation",
    "RandomZoomOut",
}
_HOLDERS = {"Compose", "RandomApply", "RandomChoice", "RandomOrder"}

_MASK_TYPES = ("uint8", "int32", "int64")


def inner(dataset: Any) -> Any:
    """The data set within torchvision's wrapper; None for other data sets."""
    names = {full_name(base) for base in type(dataset).__mro__}
    return dataset._dataset if _WRAPPER in names else None


def image_transform(dataset: Any) -> Any:
    """The transforms of a wrapped data set without those of boxes alone."""
    from torchvision.transforms import v2

    parts = [part for part in _parts(dataset, dataset.transforms) if not _is_of_boxes(part)]
    if not parts:
        raise refused(
            f"the {_name(dataset)} has no transforms, so its images form no batch: give "
            "transforms=v2.Compose([v2.Resize((640, 640)), v2.ToImage(), ...])"
        )
    return v2.Compose(parts)


def sanitizing(dataset: Any) -> dict[str, Any]:
    """The least side and area of boxes. torchvision keeps all without ``SanitizeBoundingBoxes``."""
    parts = _parts(dataset, dataset.transforms)
    for part in parts:
        _check_format(part)
    places = [
        place for place, part in enumerate(parts) if type(part).__name__ == "SanitizeBoundingBoxes"
    ]
    if not places:
        clamped = next((part for part in parts if type(part).__name__ in _CLAMPED), None)
        if clamped is not None:
            raise refused(
                f"{type(clamped).__name__} is translated together with SanitizeBoundingBoxes, "
                "which drops what it leaves empty: add v2.SanitizeBoundingBoxes() after it"
            )
        return {"min_size": 0, "min_area": 0}
    if len(places) > 1:
        raise refused("SanitizeBoundingBoxes is there twice: keep the last one")
    one, after = parts[places[0]], parts[places[0] + 1 :]
    moving = [
        part for part in after if type(part).__name__ not in _STILL and not _is_of_boxes(part)
    ]
    if moving:
        raise refused(
            f"SanitizeBoundingBoxes comes before {type(moving[0]).__name__}, and boxes are "
            "sanitized once, at the end: put it after all transforms that move or colour pixels"
        )
    if one.labels_getter not in ("default", None) and not callable(one.labels_getter):
        raise refused(f"SanitizeBoundingBoxes has labels_getter {shown(one.labels_getter)}")
    return {"min_size": float(one.min_size), "min_area": float(one.min_area)}


def mask_rule(dataset: Any, dtype: str) -> dict[str, Any]:
    """How masks become numbers: their type, and the number of the outside of images. ``dtype``:
    that of the files.
    """
    parts = _parts(dataset, dataset.transforms)
    for part in parts:
        if type(part).__name__ == "ToDtype" and isinstance(part.dtype, Mapping):
            found = entry_of(part.dtype, _MASK)
            dtype = dtype if found is None else str(found).removeprefix("torch.")
            if dtype not in _MASK_TYPES:
                raise refused(
                    f"ToDtype gives masks of the {_name(dataset)} the type {dtype}: use one of "
                    f"{', '.join(f'torch.{name}' for name in _MASK_TYPES)}"
                )
    fills = sorted({fill for part in _filling(parts, None) for fill in _fills(dataset, part)})
    if len(fills) > 1:
        raise refused(
            f"the transforms of the {_name(dataset)} fill masks with {', '.join(map(str, fills))}, "
            "and a loader has one number for the outside (CenterCrop has 0): give all transforms "
            "the same, such as fill={tv_tensors.Mask: 0, 'others': 127}, or a Resize before "
            "CenterCrop, so that it fills nothing"
        )
    return {"dtype": dtype, "fill": fills[0] if fills else 0, "filter": "floor"}


def _parts(dataset: Any, transforms: Any) -> list[Any]:
    """The transforms in their order."""
    if transforms is None:
        return []
    name = type(transforms).__name__
    if name == "StandardTransform":
        what = "masks" if has_label_images(dataset) else "boxes"
        raise refused(
            f"transform moves images and not their {what}: give the {_name(dataset)} transforms="
            f"v2.Compose([...]), which moves both{_after(dataset)}"
        )
    modules = [base.__module__.split(".") for base in type(transforms).__mro__]
    is_of_images = ["torchvision", "transforms", "transforms"] in modules
    if is_of_images and not any(module[:3] == _V2 for module in modules):
        raise refused(
            f"{name} of torchvision.transforms moves images alone: use torchvision.transforms.v2 "
            f"for the {_name(dataset)}"
        )
    if name == "Compose":
        return [part for one in transforms.transforms for part in _parts(dataset, one)]
    return [transforms]


_V2 = ["torchvision", "transforms", "v2"]


def _after(dataset: Any) -> str:
    """How the transforms of a data set whose constructor takes none are given."""
    if type(inner(dataset)).__name__ in ("CelebA", "WIDERFace"):
        return ", as an attribute of the wrapped data set: dataset.transforms = v2.Compose([...])"
    return ""


def has_label_images(dataset: Any) -> bool:
    """Whether the targets of a wrapped data set are masks of classes."""
    return type(inner(dataset)).__name__ in (
        "Cityscapes",
        "OxfordIIITPet",
        "SBDataset",
        "VOCSegmentation",
    )


def _name(dataset: Any) -> str:
    return type(inner(dataset)).__name__


def _is_of_boxes(part: Any) -> bool:
    return type(part).__name__ in ("SanitizeBoundingBoxes", *_CLAMPED, *_CONVERTED)


def _check_format(part: Any) -> None:
    """Boxes of batches are left, top, right, bottom."""
    if type(part).__name__ in _CONVERTED and getattr(part.format, "name", part.format) != "XYXY":
        raise refused(
            f"{type(part).__name__} makes {getattr(part.format, 'name', part.format)} of boxes, "
            "and those of batches are XYXY: use format='XYXY', and convert targets in the loop"
        )


def _filling(parts: list[Any], least: list[int] | None) -> Iterator[Any]:
    """The transforms that may fill masks. ``least``: the least sides of images, if known."""
    for part in parts:
        name = type(part).__name__
        if name == "CenterCrop":
            crop = both(part.size)
            if least is None or least[0] < crop[0] or least[1] < crop[1]:
                yield part
            least = crop
        elif name in _HOLDERS:
            yield from _filling(list(part.transforms), None)
            least = None
        elif name == "Resize":
            is_longer = part.max_size is not None or part.size is None
            least = None if is_longer else both(part.size)
        elif name in ("RandomResizedCrop", "RandomCrop"):
            if name == "RandomCrop" and (part.pad_if_needed or part.padding):
                yield part
            least = both(part.size)
        elif name in _FILLING:
            yield part


def _fills(dataset: Any, part: Any) -> Iterator[int]:
    """The number with which a transform fills masks, if it does."""
    name = type(part).__name__
    if name == "CenterCrop":
        yield 0
        return
    if getattr(part, "padding_mode", "constant") != "constant":
        return
    fill = part.fill
    if isinstance(fill, Mapping):
        fill = entry_of(fill, _MASK)
    if isinstance(fill, (list, tuple)) and len(fill) == 1:
        fill = fill[0]
    if fill is None:
        fill = 0
    if not isinstance(fill, (int, float)) or fill != int(fill) or fill < 0:
        raise refused(
            f"{name}(fill={shown(part.fill)}) fills masks of the {_name(dataset)}, whose labels "
            "are whole numbers: give fill={tv_tensors.Mask: 255, 'others': 0}"
        )
    yield int(fill)


def refused(text: str) -> ConfigError:
    return ConfigError(text, option="dataset")
