"""Detection data sets of torchvision, wrapped for its v2 transforms, as paths and objects.

``wrap_dataset_for_transforms_v2(CocoDetection(root, file, transforms=...))`` names files and
annotations. No image is read here. Transforms of boxes alone become rules of objects.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ._errors import ConfigError
from ._objects import Objects, Viewer
from ._values import shown

_WRAPPER = "torchvision.tv_tensors._dataset_wrapper.VisionDatasetTVTensorWrapper"

# Transforms after which boxes may be sanitized: they move no pixel.
_STILL = {"ConvertImageDtype", "Normalize", "ToDtype", "ToImage", "ToPureTensor"}

# Of boxes alone. Boxes of batches are clamped before they are sanitized, and have one format.
_CLAMPED = ("ClampBoundingBoxes",)
_CONVERTED = ("ConvertBoundingBoxFormat",)

_DEFAULT_KEYS = {"image_id", "boxes", "labels"}


@dataclass(frozen=True)
class AnnotatedSample:
    """The annotations of one image. Equal samples are of the same data set."""

    dataset: int
    """Identity of the annotations."""
    number: int
    read: Callable[[], dict[str, Any]] = field(compare=False, repr=False)

    def objects(self) -> dict[str, Any]:
        """Boxes and labels as ``Loader``'s ``objects`` lists them."""
        return self.read()


def inner(dataset: Any) -> Any:
    """The data set within torchvision's wrapper; None for other data sets."""
    names = {f"{base.__module__}.{base.__qualname__}" for base in type(dataset).__mro__}
    if _WRAPPER not in names:
        return None
    wrapped = dataset._dataset
    kind = type(wrapped)
    if f"{kind.__module__.split('.')[0]}.{kind.__name__}" not in _READERS:
        known = ", ".join(name.split(".")[1] for name in _READERS)
        raise _refused(
            f"a wrapped {kind.__name__} is not read here: use {known}, or give its boxes to "
            "featherload.Loader(paths, recipe, objects=[...])"
        )
    return wrapped


def samples(dataset: Any) -> list[tuple[str, AnnotatedSample]]:
    """Paths and annotations of a wrapped data set."""
    wrapped = dataset._dataset
    kind = type(wrapped)
    return _READERS[f"{kind.__module__.split('.')[0]}.{kind.__name__}"](wrapped, has_masks(dataset))


def has_masks(dataset: Any) -> bool:
    """Whether the targets of a wrapped data set have masks."""
    keys = dataset._target_keys
    keys = _DEFAULT_KEYS if keys is None else keys
    return keys == "all" or "masks" in keys


def rule(leaves: tuple[Any, ...]) -> dict[str, Any]:
    """How objects move, by the transforms of these data sets."""
    rules = [
        {**_sanitizing(of.transforms), "masks": "full" if has_masks(of) else None} for of in leaves
    ]
    if any(other != rules[0] for other in rules):
        raise _refused(
            "the data sets of a ConcatDataset sanitize boxes in different ways, or have other "
            "targets: give all the same transforms and target_keys"
        )
    return {"style": "torchvision", "labels": "ids", **rules[0]}


def image_transform(dataset: Any) -> Any:
    """The transforms of a wrapped data set without those of boxes alone."""
    from torchvision.transforms import v2

    parts = [part for part in _parts(dataset.transforms) if not _is_of_boxes(part)]
    if not parts:
        raise _refused(
            f"the {type(dataset._dataset).__name__} has no transforms, so its images form no "
            "batch: give transforms=v2.Compose([v2.Resize((640, 640)), v2.ToImage(), ...])"
        )
    return v2.Compose(parts)


def padded(recipe: dict[str, Any]) -> dict[str, Any]:
    """A recipe that leaves images of several sizes, with a border up to the largest of them. Rows
    of a batch have one size. Other recipes stay.
    """
    ops = list(recipe.get("ops", ()))
    sizes = [place for place, op in enumerate(ops) if next(iter(op)) in _SIZES]
    most = _most(ops[sizes[-1]]) if sizes else None
    if most is None:
        return recipe
    # Bytes are padded, before a cast to floats.
    end = len(ops)
    while end and next(iter(ops[end - 1])) in ("cast", "layout", "normalize"):
        end -= 1
    ops.insert(end, {"pad_to": {"size": most}})
    return {**recipe, "ops": ops}


def has_border(recipe: Any) -> bool:
    """Whether `padded` added the border."""
    return any("pad_to" in op for op in recipe.get("ops", ()))


def cut_out(view: Viewer) -> Viewer:
    """Targets as before, and images without their borders: a list of arrays of several sizes."""

    def of_batch(objects: Objects, images: Any) -> tuple[Any, Any]:
        images, targets = view(objects, images)
        if objects.masks is not None:
            for target, masks in zip(targets, objects.cut_out_masks(), strict=True):
                target["masks"] = masks
        # Images that were moved are cut out already.
        return images if isinstance(images, list) else objects.cut_out(images), targets

    return of_batch


# Operations after which all images have one size, or not.
_SIZES = {
    *("center_crop", "pad", "random_crop", "random_iou_crop", "random_resize"),
    *("random_resized_crop", "random_shortest_size", "random_zoom_out", "resize", "scale_jitter"),
}


def _most(op: dict[str, Any]) -> list[int] | None:
    """The largest height and width of images after an operation that leaves several sizes. None: it
    leaves one size, or any.
    """
    ((name, of),) = op.items()
    if name in ("random_shortest_size", "resize") and not isinstance(of.get("size"), list):
        side = of.get("max_size")
        return None if side is None else [int(side)] * 2
    if name == "scale_jitter":
        return [math.ceil(side * of["scale"][1]) for side in of["size"]]
    return None


def _parts(transforms: Any) -> list[Any]:
    """The transforms in their order."""
    if transforms is None:
        return []
    name = type(transforms).__name__
    if name == "StandardTransform":
        raise _refused(
            "transform moves images and not their boxes: give the data set transforms=v2.Compose"
            "([...]), which moves both"
        )
    if name == "Compose":
        return [part for one in transforms.transforms for part in _parts(one)]
    return [transforms]


def _is_of_boxes(part: Any) -> bool:
    return type(part).__name__ in ("SanitizeBoundingBoxes", *_CLAMPED, *_CONVERTED)


def _sanitizing(transforms: Any) -> dict[str, Any]:
    """The least side and area of boxes. torchvision keeps all without ``SanitizeBoundingBoxes``."""
    parts = _parts(transforms)
    for part in parts:
        _check_format(part)
    places = [
        place for place, part in enumerate(parts) if type(part).__name__ == "SanitizeBoundingBoxes"
    ]
    if not places:
        clamped = next((part for part in parts if type(part).__name__ in _CLAMPED), None)
        if clamped is not None:
            raise _refused(
                f"{type(clamped).__name__} is translated together with SanitizeBoundingBoxes, "
                "which drops what it leaves empty: add v2.SanitizeBoundingBoxes() after it"
            )
        return {"min_size": 0, "min_area": 0}
    if len(places) > 1:
        raise _refused("SanitizeBoundingBoxes is there twice: keep the last one")
    one, after = parts[places[0]], parts[places[0] + 1 :]
    moving = [
        part for part in after if type(part).__name__ not in _STILL and not _is_of_boxes(part)
    ]
    if moving:
        raise _refused(
            f"SanitizeBoundingBoxes comes before {type(moving[0]).__name__}, and boxes are "
            "sanitized once, at the end: put it after all transforms that move or colour pixels"
        )
    if one.labels_getter not in ("default", None) and not callable(one.labels_getter):
        raise _refused(f"SanitizeBoundingBoxes has labels_getter {shown(one.labels_getter)}")
    return {"min_size": float(one.min_size), "min_area": float(one.min_area)}


def _check_format(part: Any) -> None:
    """Boxes of batches are left, top, right, bottom."""
    if type(part).__name__ in _CONVERTED and getattr(part.format, "name", part.format) != "XYXY":
        raise _refused(
            f"{type(part).__name__} makes {getattr(part.format, 'name', part.format)} of boxes, "
            "and those of batches are XYXY: use format='XYXY', and convert targets in the loop"
        )


def _coco(dataset: Any, with_masks: bool) -> list[tuple[str, AnnotatedSample]]:
    coco, found = dataset.coco, []

    def reader(image_id: int) -> Callable[[], dict[str, Any]]:
        return lambda: _coco_objects(coco, image_id, with_masks)

    for image_id in dataset.ids:
        path = os.path.join(dataset.root, coco.imgs[image_id]["file_name"])
        found.append((path, AnnotatedSample(id(coco.anns), image_id, reader(image_id))))
    return found


def _coco_objects(coco: Any, image_id: int, with_masks: bool) -> dict[str, Any]:
    annotations = coco.imgToAnns.get(image_id, [])
    sides = [one["bbox"] for one in annotations]
    item: dict[str, Any] = {
        "image_id": image_id,
        "boxes": [[x, y, x + w, y + h] for x, y, w, h in sides],
        "labels": [one["category_id"] for one in annotations],
        "iscrowd": [one.get("iscrowd", 0) for one in annotations],
        "ids": [one["id"] for one in annotations],
        "area": [one.get("area", one["bbox"][2] * one["bbox"][3]) for one in annotations],
    }
    if with_masks:
        item["polygons"] = [_rings(one) for one in annotations]
    return item


def _rings(annotation: Any) -> list[list[list[float]]]:
    rings = annotation["segmentation"]
    if not isinstance(rings, list):
        raise _refused(
            f"annotation {annotation['id']} has a mask of run lengths, which a data set in memory "
            "cannot hand over: give the file itself, such as featherload.Loader(root, recipe, "
            "objects={'files': 'instances.json', 'masks': 'full'})"
        )
    return [[[x, y] for x, y in zip(ring[::2], ring[1::2], strict=True)] for ring in rings]


def _voc(dataset: Any, with_masks: bool) -> list[tuple[str, AnnotatedSample]]:
    from torchvision.tv_tensors._dataset_wrapper import VOC_DETECTION_CATEGORIES

    numbers = {name: number for number, name in enumerate(VOC_DETECTION_CATEGORIES)}

    def reader(number: int) -> Callable[[], dict[str, Any]]:
        return lambda: _voc_objects(dataset, number, numbers)

    files = enumerate(dataset.images)
    return [
        (path, AnnotatedSample(id(dataset.targets), number, reader(number)))
        for number, path in files
    ]


def _voc_objects(dataset: Any, number: int, numbers: dict[str, int]) -> dict[str, Any]:
    from xml.etree.ElementTree import parse

    file = dataset.annotations[number]
    found = dataset.parse_voc_xml(parse(file).getroot())["annotation"].get("object", [])
    unknown = sorted({one["name"] for one in found} - set(numbers))
    if unknown:
        raise _refused(f"{file} has the category {unknown[0]!r}, which Pascal VOC does not have")
    sides = ("xmin", "ymin", "xmax", "ymax")
    return {
        "boxes": [[float(one["bndbox"][side]) for side in sides] for one in found],
        "labels": [numbers[one["name"]] for one in found],
    }


_READERS: dict[str, Callable[[Any, bool], list[tuple[str, AnnotatedSample]]]] = {
    "torchvision.CocoDetection": _coco,
    "torchvision.VOCDetection": _voc,
}


def _refused(text: str) -> ConfigError:
    return ConfigError(text, option="dataset")
