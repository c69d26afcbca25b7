"""Detection data sets of torchvision, wrapped for its v2 transforms, as paths and objects.

``wrap_dataset_for_transforms_v2(CocoDetection(root, file, transforms=...))`` names files and
annotations. No image is read here. Transforms of boxes alone become rules of objects.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np

from ._joint_transforms import inner, refused, sanitizing
from ._objects import Objects
from ._target_plan import TargetPlan, TargetView

_DEFAULT_KEYS = {"image_id", "boxes", "labels"}

FACE = 1
"""The label of boxes in data sets of faces, which have no categories. 0 is the background."""


@dataclass(frozen=True)
class AnnotatedSample:
    """The annotations of one image. Equal samples are of the same data set."""

    dataset: int
    """Identity of the annotations."""
    number: int
    read: Callable[[], dict[str, Any]] = field(compare=False, repr=False)

    def objects(self) -> dict[str, Any]:
        """Boxes and labels as ``Loader``'s ``objects`` lists them. Further values of torchvision's
        targets: ``of_objects``, each with a value for each object, and ``of_image``.
        """
        return self.read()


def samples(dataset: Any) -> list[tuple[str, AnnotatedSample]]:
    """Paths and annotations of a wrapped data set."""
    wrapped = inner(dataset)
    return READERS[type(wrapped).__name__](wrapped, dataset._target_keys)


def has_masks(dataset: Any) -> bool:
    """Whether the targets of a wrapped data set have masks."""
    if type(inner(dataset)).__name__ != "CocoDetection":
        return False
    keys = dataset._target_keys
    keys = _DEFAULT_KEYS if keys is None else keys
    return keys == "all" or "masks" in keys


def plan(leaves: Sequence[Any], listed: Sequence[tuple[str, AnnotatedSample]]) -> TargetPlan:
    """The objects as a keyword of a loader."""
    files = [target.objects() for _, target in listed]
    fields = FurtherFields(files, _box_names(leaves[0]))
    value = {**rule(leaves), "files": files}
    return TargetPlan([(path, None) for path, _ in listed], "objects", value, fields.view)


def _box_names(dataset: Any) -> tuple[str, ...]:
    """The name of boxes in WIDERFace's targets."""
    keys = dataset._target_keys
    is_wider = type(inner(dataset)).__name__ == "WIDERFace"
    return ("bbox",) if is_wider and (keys in (None, "all") or "bbox" in keys) else ()


class FurtherFields:
    """Values of torchvision's targets that objects have no place for, such as the pose of a face.
    Targets in the form of a list have them.
    """

    def __init__(self, items: list[dict[str, Any]], box_names: Sequence[str] = ()) -> None:
        """Takes them out of the items. Objects are found by ``ids``, images by ``image_id``.
        ``box_names``: further names of boxes.
        """
        self._box_names = box_names
        self._of_images: dict[str, list[Any]] = {}
        parts: dict[str, list[Any]] = {}
        count = 0
        for number, item in enumerate(items):
            of_objects, of_image = item.pop("of_objects", None), item.pop("of_image", None)
            if of_objects is None and of_image is None:
                continue
            item["ids"] = list(range(count, count + len(item["labels"])))
            item["image_id"] = number
            count += len(item["labels"])
            for name, values in (of_objects or {}).items():
                parts.setdefault(name, []).append(values)
            for name, value in (of_image or {}).items():
                self._of_images.setdefault(name, []).append(value)
        self._of_objects: dict[str, Any] = {
            name: np.concatenate(of) if isinstance(of[0], np.ndarray) else [*chain(*of)]
            for name, of in parts.items()
        }

    def view(self, inner: TargetView | None) -> TargetView | None:
        if inner is None or not (self._of_objects or self._of_images or self._box_names):
            return inner

        def made(images: Any, labels: Any, masks: Any, objects: Objects | None) -> tuple[Any, Any]:
            images, targets = inner(images, labels, masks, objects)
            if objects is None or not isinstance(targets, list):
                return images, targets
            rows = zip(targets, objects.ids_of_rows(), strict=True)
            return images, [
                {**target, **self._of_row(target, ids, objects)} for target, ids in rows
            ]

        return made

    def _of_row(self, target: Mapping[str, Any], ids: Any, objects: Objects) -> dict[str, Any]:
        found = {name: target["boxes"] for name in self._box_names}
        for name, values in self._of_objects.items():
            is_array = isinstance(values, np.ndarray)
            found[name] = objects.like(values[ids]) if is_array else [values[id] for id in ids]
        number = target["image_id"]
        for name, values in self._of_images.items():
            # A masked row has no image.
            found[name] = values[number] if number >= 0 else -1
        return found


def rule(leaves: Sequence[Any]) -> dict[str, Any]:
    """How objects move, by the transforms of these data sets."""
    rules = [{**sanitizing(of), "masks": "full" if has_masks(of) else None} for of in leaves]
    kinds = {type(inner(of)).__name__ for of in leaves}
    if any(other != rules[0] for other in rules):
        raise refused(
            "the data sets of a ConcatDataset sanitize boxes in different ways, or have other "
            "targets: give all the same transforms and target_keys"
        )
    if len(kinds) > 1 and kinds & {"CelebA", "Kitti", "WIDERFace"}:
        raise refused(
            f"a ConcatDataset of {' and '.join(sorted(kinds))} has targets with different entries: "
            "make a loader for each"
        )
    return {"style": "torchvision", "labels": "ids", **rules[0]}


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


def cut_out(view: TargetView | None) -> TargetView | None:
    """Targets as before, and images without their borders: a list of arrays of several sizes."""
    if view is None:
        return None

    def of_batch(images: Any, labels: Any, masks: Any, objects: Objects | None) -> tuple[Any, Any]:
        images, targets = view(images, labels, masks, objects)
        if objects is None or not isinstance(targets, list):
            return images, targets
        if objects.masks is not None:
            for target, of_row in zip(targets, objects.cut_out_masks(), strict=True):
                target["masks"] = of_row
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


def _coco(dataset: Any, keys: Any) -> list[tuple[str, AnnotatedSample]]:
    coco, found = dataset.coco, []
    with_masks = keys == "all" or "masks" in (keys or ())

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
        raise refused(
            f"annotation {annotation['id']} has a mask of run lengths, which a data set in memory "
            "cannot hand over: give the file itself, such as featherload.Loader(root, recipe, "
            "objects={'files': 'instances.json', 'masks': 'full'})"
        )
    return [[[x, y] for x, y in zip(ring[::2], ring[1::2], strict=True)] for ring in rings]


def _voc(dataset: Any, keys: Any) -> list[tuple[str, AnnotatedSample]]:
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
        raise refused(f"{file} has the category {unknown[0]!r}, which Pascal VOC does not have")
    sides = ("xmin", "ymin", "xmax", "ymax")
    return {
        "boxes": [[float(one["bndbox"][side]) for side in sides] for one in found],
        "labels": [numbers[one["name"]] for one in found],
    }


def _kitti(dataset: Any, keys: Any) -> list[tuple[str, AnnotatedSample]]:
    from torchvision.tv_tensors._dataset_wrapper import KITTI_CATEGORIES

    _check_split(dataset, dataset.train, "train=True")
    numbers = {name: number for number, name in enumerate(KITTI_CATEGORIES)}

    def reader(number: int) -> Callable[[], dict[str, Any]]:
        return lambda: _kitti_objects(dataset, number, numbers, keys)

    return [
        (path, AnnotatedSample(id(dataset.targets), number, reader(number)))
        for number, path in enumerate(dataset.images)
    ]


_KITTI_KEYS = (
    *("type", "truncated", "occluded", "alpha", "bbox", "dimensions", "location"),
    "rotation_y",
)


def _kitti_objects(dataset: Any, number: int, numbers: dict[str, int], keys: Any) -> dict[str, Any]:
    file = dataset.targets[number]
    try:
        found = dataset._parse_target(number)
    except (IndexError, ValueError) as error:
        raise refused(
            f"{file} is no label file of KITTI ({error}): each line has a type and 14 numbers"
        ) from None
    unknown = sorted({one["type"] for one in found} - set(numbers))
    if unknown:
        raise refused(f"{file} has the type {unknown[0]!r}, which KITTI does not have")
    item: dict[str, Any] = {
        "boxes": [one["bbox"] for one in found],
        "labels": [numbers[one["type"]] for one in found],
    }
    wanted = [name for name in _KITTI_KEYS if keys == "all" or name in (keys or ())]
    if wanted:
        item["of_objects"] = {name: [one[name] for one in found] for name in wanted}
    return item


def _widerface(dataset: Any, keys: Any) -> list[tuple[str, AnnotatedSample]]:
    _check_split(dataset, dataset.split != "test", "split='train'")

    def reader(number: int) -> Callable[[], dict[str, Any]]:
        return lambda: _widerface_objects(dataset.img_info[number]["annotations"], keys)

    return [
        (one["img_path"], AnnotatedSample(id(dataset.img_info), number, reader(number)))
        for number, one in enumerate(dataset.img_info)
    ]


def _widerface_objects(annotations: Mapping[str, Any], keys: Any) -> dict[str, Any]:
    sides = annotations["bbox"].tolist()
    wanted = [
        name for name in annotations if name != "bbox" and (keys in (None, "all") or name in keys)
    ]
    return {
        "boxes": [[x, y, x + w, y + h] for x, y, w, h in sides],
        "labels": [FACE] * len(sides),
        "of_objects": {name: annotations[name].numpy() for name in wanted},
    }


def _celeba(dataset: Any, keys: Any) -> list[tuple[str, AnnotatedSample]]:
    if "bbox" not in dataset.target_type:
        raise refused(
            f"the wrapped CelebA has target_type={dataset.target_type}, which has no boxes: give "
            "'bbox', or leave out wrap_dataset_for_transforms_v2"
        )
    folder = os.path.join(dataset.root, dataset.base_folder, "img_align_celeba")

    def reader(number: int) -> Callable[[], dict[str, Any]]:
        return lambda: _celeba_objects(dataset, number)

    return [
        (os.path.join(folder, name), AnnotatedSample(id(dataset.bbox), number, reader(number)))
        for number, name in enumerate(dataset.filename)
    ]


def _celeba_objects(dataset: Any, number: int) -> dict[str, Any]:
    x, y, w, h = dataset.bbox[number].tolist()
    item: dict[str, Any] = {"boxes": [[x, y, x + w, y + h]], "labels": [FACE]}
    if "identity" in dataset.target_type:
        item["of_image"] = {"identity": int(dataset.identity[number, 0])}
    return item


def _check_split(dataset: Any, has_targets: bool, fix: str) -> None:
    if not has_targets:
        raise refused(
            f"the {type(dataset).__name__} of this split has no targets: give {fix}, or its images "
            "to featherload.Loader(paths, recipe)"
        )


READERS: dict[str, Callable[[Any, Any], list[tuple[str, AnnotatedSample]]]] = {
    "CelebA": _celeba,
    "CocoDetection": _coco,
    "Kitti": _kitti,
    "VOCDetection": _voc,
    "WIDERFace": _widerface,
}
