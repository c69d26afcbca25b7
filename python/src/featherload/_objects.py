"""Objects in images: boxes, labels, keypoints, as the arrays of a batch and as views of them.

The arrays of a batch are flat: the objects of all rows follow each other, and ``offsets`` says
where each row begins. Every other form is made of them here.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, get_args

import numpy as np

from ._errors import ConfigError
from ._featherload import RawBatch, RawObjects
from ._values import shown

ObjectSource = str | Mapping[str, Any] | Sequence[Mapping[str, Any]]

TargetForm = Literal["list", "flat", "padded", "detr"]

_LISTED = {
    "boxes": (4, np.float64),
    "area": (0, np.float64),
    "iscrowd": (0, np.bool_),
    "ids": (0, np.int64),
}
"""The arrays of an item: numbers of an object (0: one number, without an axis), and type."""

_ITEM = {*_LISTED, "labels", "keypoints", "rotated", "polygons", "image_id", "size"}
_FORM = {"box_format", "normalized", "names", "keypoint_swap"}
_ROTATED = {5: "centre", 8: "corners"}


@dataclass(frozen=True, eq=False)
class Objects:
    """The objects of all rows of a batch, one after the other.

    M objects in N rows. Arrays are of the loader's framework, on the device of the images. Boxes
    are pixels of the row: 0 to its width and height.
    """

    offsets: Any
    """int64, N + 1: objects ``offsets[n]`` to ``offsets[n + 1]`` belong to row ``n``."""
    boxes: Any
    """float32, M x 4: left, top, right, bottom."""
    labels: Any
    """int64, M."""
    area: Any
    """float32, M: square pixels. Empty if the annotations have none."""
    iscrowd: Any
    """bool, M."""
    ids: Any
    """int64, M: numbers of the objects in the annotations, or -1."""
    keypoints: Any
    """float32, M x K x 3: x, y and visibility (0 not labelled, 1 hidden, 2 visible)."""
    rotated: Any
    """float32, M x 5 (centre, width, height, degrees counter-clockwise) or M x 8 (four corners).
    M x 0 without rotated boxes."""
    image_ids: Any
    """int64, N: numbers of the images in the annotations, or -1."""
    original_sizes: Any
    """int64, N x 2: height and width of each image. 0 for a masked row."""
    sizes: Any
    """int64, N x 2: height and width of each row. 0 for a masked row."""
    dropped: Any
    """int64, N: objects that the style dropped, or that were over ``max_objects``."""
    masks: list[Any] | None = None
    """For each row uint8, n x H x W: the masks of its objects, 1 inside. None without masks."""

    @property
    def counts(self) -> list[int]:
        """The number of objects of each row."""
        ends = _listed(self.offsets)
        return [end - start for start, end in itertools.pairwise(ends)]

    def as_list(self) -> list[dict[str, Any]]:
        """A dict for each row, as torchvision's detection models take them: ``boxes`` n x 4,
        ``labels`` n, ``image_id``, ``area``, ``iscrowd``, and ``keypoints`` n x K x 3, ``rotated``
        if there are any. The arrays are views.
        """
        masks = self._masks()
        rows: list[dict[str, Any]] = []
        ends = _listed(self.offsets)
        names = ["boxes", "labels", "area", "iscrowd", *self._extra()]
        for row, image_id in enumerate(_listed(self.image_ids)):
            part = slice(ends[row], ends[row + 1])
            target = {name: getattr(self, name)[part] for name in names if self._has(name)}
            rows.append({**target, **masks[row], "image_id": image_id})
        return rows

    def as_flat(self) -> dict[str, Any]:
        """Arrays over all rows, as ultralytics' trainers take them: ``batch_idx`` float32 M,
        ``cls`` float32 M x 1, ``bboxes`` float32 M x 4 (centre, width, height as shares of the
        row's sides), and ``keypoints`` with x and y as shares. ``masks`` N x H x W have the number
        of the object in its row from 1 on, 0 outside; where objects overlap, the smaller one.
        """
        xp = _module(self.boxes)
        rows = self._rows()
        wide, high = self._sides(rows)
        flat = {
            "batch_idx": _float(rows),
            "cls": _float(self.labels)[:, None],
            "bboxes": _shares(self.boxes, wide, high),
        }
        if self.keypoints.shape[1]:
            x, y, seen = (self.keypoints[..., axis] for axis in range(3))
            flat["keypoints"] = xp.stack((x / wide[:, None], y / high[:, None], seen), -1)
        if self.masks is not None:
            flat["masks"] = self._numbered(self.masks)
        return flat

    def as_padded(self, most: int | None = None) -> dict[str, Any]:
        """Arrays of one shape: ``boxes`` N x P x 4, ``labels`` N x P, ``valid`` bool N x P, and
        ``area``, ``iscrowd``, ``keypoints``, ``rotated`` alike. Where ``valid`` is false, labels
        are -1 and all else is 0. P is ``most``, or the largest count of the batch.
        """
        counts = self.counts
        side = max(counts, default=0) if most is None else most
        if max(counts, default=0) > side:
            raise ConfigError(
                f"a row has {max(counts)} objects, and there is room for {side}: give a larger "
                "number, or objects={..., 'max_objects': ...}",
                option="targets",
            )
        rows = self._rows()
        places = _arange(self.boxes, len(self.boxes)) - self.offsets[rows]
        padded = {}
        for name in ["boxes", "labels", "area", "iscrowd", *self._extra()]:
            if not self._has(name):
                continue
            values = getattr(self, name)
            empty = -1 if name == "labels" else 0
            room = _full(values, (len(counts), side, *values.shape[1:]), empty)
            room[rows, places] = values
            padded[name] = room
        if self.masks is not None:
            padded["masks"] = self._room_of_masks(self.masks, side)
        valid = _full(self.iscrowd, (len(counts), side), False)
        valid[rows, places] = True
        return {**padded, "valid": valid}

    def as_detr(self, height: int, width: int) -> dict[str, Any]:
        """What Hugging Face's models of the DETR family take: ``pixel_mask`` int64 N x H x W (1
        inside of images), and ``labels``, a dict for each row with ``class_labels``, ``boxes``
        (centre, width, height as shares), ``area``, ``iscrowd``, ``image_id``, ``orig_size``,
        ``size``.
        """
        wide, high = self._sides(self._rows())
        boxes = _shares(self.boxes, wide, high)
        ends = _listed(self.offsets)
        masks = self._masks()
        rows = []
        for row in range(len(ends) - 1):
            part = slice(ends[row], ends[row + 1])
            area = {"area": self.area[part]} if self._has("area") else {}
            rows.append(
                {
                    "class_labels": self.labels[part],
                    "boxes": boxes[part],
                    **area,
                    **masks[row],
                    "iscrowd": _whole(self.iscrowd[part]),
                    "image_id": self.image_ids[row : row + 1],
                    "orig_size": self.original_sizes[row],
                    "size": self.sizes[row],
                }
            )
        mask = _full(self.labels, (len(rows), height, width), 0)
        for row, (high_of, wide_of) in enumerate(_listed(self.sizes)):
            mask[row, :high_of, :wide_of] = 1
        return {"pixel_mask": mask, "labels": rows}

    def to(self, *args: Any, **options: Any) -> Objects:
        """The arrays on another device, like ``torch.Tensor.to``."""
        return _converted(self, lambda array: array.to(*args, **options))

    def _masks(self) -> list[dict[str, Any]]:
        """The entry of masks of each row's dict."""
        if self.masks is None:
            return [{} for _ in self.counts]
        return [{"masks": masks} for masks in self.masks]

    def _numbered(self, masks: list[Any]) -> Any:
        """N x H x W: the number of the smallest object at each pixel of a row, from 1 on."""
        shape = max((tuple(of.shape[1:]) for of in masks), default=(0, 0))
        numbered = _full(_whole(masks[0]), (len(masks), *shape), 0)
        for row, of_row in enumerate(masks):
            sizes = _listed(_whole(of_row).reshape(len(of_row), -1).sum(1)) if len(of_row) else []
            # The largest first, so that smaller ones lie above it.
            for place in sorted(range(len(sizes)), key=lambda place: -sizes[place]):
                numbered[row][of_row[place] != 0] = place + 1
        return numbered

    def _room_of_masks(self, masks: list[Any], side: int) -> Any:
        shape = max((tuple(of.shape[1:]) for of in masks), default=(0, 0))
        room = _full(masks[0], (len(masks), side, *shape), 0)
        for row, of_row in enumerate(masks):
            room[row, : len(of_row), : of_row.shape[1], : of_row.shape[2]] = of_row
        return room

    def _has(self, name: str) -> bool:
        return name != "area" or len(self.area) == len(self.labels)

    def _extra(self) -> list[str]:
        return [name for name in ("keypoints", "rotated") if getattr(self, name).shape[1]]

    def _rows(self) -> Any:
        """The row of each object."""
        counts = self.offsets[1:] - self.offsets[:-1]
        rows = _arange(self.boxes, len(counts))
        return rows.repeat(counts) if isinstance(rows, np.ndarray) else _repeated(rows, counts)

    def _sides(self, rows: Any) -> tuple[Any, Any]:
        """Width and height of the row of each object."""
        sizes = _float(self.sizes)[rows]
        return sizes[:, 1], sizes[:, 0]


def of_batch(raw: RawBatch, framework: str) -> Objects | None:
    """The objects of a batch as arrays of the framework; None without objects."""
    found = raw.objects()
    if found is None:
        return None
    keypoints, rotated = found.pop("each")
    shapes: dict[str, tuple[str, tuple[int, ...]]] = {
        "offsets": ("int64", (-1,)),
        "boxes": ("float32", (-1, 4)),
        "area": ("float32", (-1,)),
        "iscrowd": ("bool", (-1,)),
        "keypoints": ("float32", (-1, keypoints, 3)),
        "rotated": ("float32", (-1, rotated)),
        "original_sizes": ("int64", (-1, 2)),
        "sizes": ("int64", (-1, 2)),
    }
    count = len(found["labels"]) // 8
    arrays = {}
    for name, data in found.items():
        dtype, shape = shapes.get(name, ("int64", (-1,)))
        if 0 in shape:
            shape = (count, *shape[1:])
        arrays[name] = np.frombuffer(data, dtype).reshape(shape)
    objects = Objects(**arrays, masks=_masks_of(raw))
    if framework == "numpy":
        return objects
    return _converted(objects, _converter(framework, raw.device))


def _masks_of(raw: RawBatch) -> list[Any] | None:
    """The instance masks of each row, as arrays of NumPy."""
    found = raw.instance_masks() if raw.has_pixels else None
    if found is None:
        return None
    return [
        np.frombuffer(one[1], np.uint8).reshape(one[0])
        if isinstance(one, tuple)
        else np.asarray(one)
        for one in found
    ]


def _converter(framework: str, device: str) -> Callable[[Any], Any]:
    if framework == "torch":
        import torch

        def tensor(array: Any) -> Any:
            # Arrays of the loader's own memory may be written, those of bytes are copies.
            there = torch.from_numpy(array)
            return there if device == "cpu" else there.to(device, non_blocking=True)

        return tensor
    import jax.numpy as jnp

    return jnp.asarray


def _converted(objects: Objects, convert: Callable[[Any], Any]) -> Objects:
    names = [field.name for field in fields(objects) if field.name != "masks"]
    masks = None if objects.masks is None else [convert(masks) for masks in objects.masks]
    return replace(
        objects, **{name: convert(getattr(objects, name)) for name in names}, masks=masks
    )


def view(objects: Objects, form: TargetForm, images: Any, most: int | None) -> Any:
    """The form of objects that a loader's ``targets`` names."""
    if form == "list":
        return objects.as_list()
    if form == "flat":
        return objects.as_flat()
    if form == "padded":
        return objects.as_padded(most)
    if isinstance(images, list):
        raise ConfigError(
            "targets='detr' needs images of one size: end the recipe with a resize",
            option="targets",
        )
    # Images are N x C x H x W or N x H x W x C; a pixel mask has their largest sides.
    sizes = _listed(objects.sizes)
    high = max((size[0] for size in sizes), default=0)
    wide = max((size[1] for size in sizes), default=0)
    return objects.as_detr(high, wide)


def checked_form(targets: Any, has_objects: bool) -> TargetForm | None:
    """``targets`` of a loader; "list" if it has objects and names no form."""
    if targets is None:
        return "list" if has_objects else None
    if targets not in get_args(TargetForm):
        raise ConfigError(
            f"targets {shown(targets)} is unknown: use one of {', '.join(get_args(TargetForm))}",
            option="targets",
        )
    if not has_objects:
        raise ConfigError(
            f"targets={targets!r} is a form of objects, and this loader has none: give objects, "
            "such as objects='annotations/instances_train.json'",
            option="targets",
        )
    form: TargetForm = targets
    return form


def most(rule: Any) -> int | None:
    """``max_objects`` of a rule: padded targets then have one shape in every batch."""
    return rule.get("max_objects") if isinstance(rule, Mapping) else None


def taken(keywords: dict[str, Any]) -> RawObjects | None:
    """The objects of the keywords of ``Loader``, if they are listed: a dict for each image. The
    keyword then has the rule alone.
    """
    objects = keywords["objects"]
    if objects is None or isinstance(objects, str):
        return None
    rule = dict(objects) if isinstance(objects, Mapping) else {"files": objects}
    files = rule.pop("files", None)
    form = {name: rule.pop(name) for name in list(rule) if name in _FORM}
    keywords["objects"] = rule
    if files is None or hasattr(files, "__fspath__") or isinstance(files, str):
        if form:
            raise _wrong(
                f"{', '.join(form)} describe a list of objects, and files say it themselves"
            )
        if files is not None:
            rule["files"] = str(files)
        return None
    return _table(list(files), form)


def _table(items: list[Any], form: dict[str, Any]) -> RawObjects:
    listed = [_item(number, item) for number, item in enumerate(items)]
    keypoints = _one_width("keypoints", listed)
    rotated = _one_width("rotated", listed)
    if rotated and rotated not in _ROTATED:
        raise _wrong(f"rotated boxes have {rotated} numbers: give 5 (centre, sides, angle) or 8")
    for item in listed:
        item["keypoints"] = [point for points in item.get("keypoints", []) for point in points]
        item["rotated"] = [number for box in item.get("rotated", []) for number in box]
    names = form.get("names") or {}
    if not isinstance(names, Mapping):
        names = dict(enumerate(names))
    said = {
        "boxes": form.get("box_format", "xyxy"),
        "shares": bool(form.get("normalized", False)),
        "keypoints": keypoints,
        "keypoint_swap": [int(n) for n in form.get("keypoint_swap") or []],
        "rotated": _ROTATED.get(rotated),
        "polygons": any("polygons" in item for item in listed),
        "names": {int(label): str(name) for label, name in names.items()},
    }
    if said["polygons"]:
        for item in listed:
            item.setdefault("polygons", [[] for _ in item["labels"]])
    return RawObjects(json.dumps(said), listed)


def _item(number: int, item: Any) -> dict[str, Any]:
    """The objects of an image as lists of numbers."""
    if item is None:
        return {"boxes": [], "labels": []}
    if not isinstance(item, Mapping):
        raise _wrong(
            f"item {number} is {shown(item)}: give a dict with boxes and labels for each image"
        )
    unknown = sorted(set(item) - _ITEM)
    if unknown:
        raise _wrong(
            f"item {number} has {', '.join(map(repr, unknown))}: use {', '.join(sorted(_ITEM))}"
        )
    try:
        return _lists(item)
    except (TypeError, ValueError) as error:
        raise _wrong(f"item {number}: {error}") from None


def _lists(item: Mapping[str, Any]) -> dict[str, Any]:
    labels = _numbers("labels", item.get("labels", []), np.int64).reshape(-1)
    lists: dict[str, Any] = {"labels": labels.tolist()}
    for name, (width, dtype) in _LISTED.items():
        if item.get(name) is None:
            if name == "boxes":
                lists[name] = []
            continue
        values = _numbers(name, item[name], dtype)
        lists[name] = values.reshape((-1, width) if width else (-1,)).tolist()
    for name in ("keypoints", "rotated"):
        if item.get(name) is not None:
            values = _numbers(name, item[name], np.float64)
            lists[name] = values.reshape(len(labels), -1).tolist() if values.size else []
    if item.get("keypoints") is not None:
        lists["keypoints"] = [_points(points) for points in lists["keypoints"]]
    if item.get("polygons") is not None:
        lists["polygons"] = [
            [_numbers("polygons", ring, np.float64).reshape(-1, 2).tolist() for ring in rings]
            for rings in item["polygons"]
        ]
    if item.get("image_id") is not None:
        lists["image_id"] = int(item["image_id"])
    if item.get("size") is not None:
        height, width = item["size"]
        lists["size"] = (int(height), int(width))
    return lists


def _points(numbers: list[float]) -> list[list[float]]:
    if len(numbers) % 3:
        raise ValueError(
            f"keypoints have {len(numbers)} numbers an object: give x, y and visibility of each"
        )
    return [numbers[at : at + 3] for at in range(0, len(numbers), 3)]


def _numbers(name: str, values: Any, dtype: Any) -> Any:
    if hasattr(values, "detach"):
        values = values.detach().cpu().numpy()
    array = np.asarray(values)
    if array.size == 0:
        return np.zeros(0, dtype)
    if array.dtype.kind not in "buif":
        raise ValueError(f"{name} has dtype {array.dtype}: give numbers")
    if dtype is np.int64 and array.dtype.kind == "f" and not np.array_equal(array, array.round()):
        raise ValueError(f"{name} has fractions: give whole numbers")
    return array.astype(dtype)


def _one_width(name: str, items: list[dict[str, Any]]) -> int:
    """The count of values of each object, which all objects share."""
    widths = {len(values) for item in items for values in item.get(name, [])}
    if len(widths) > 1:
        raise _wrong(f"{name} differ in their count for an object: {sorted(widths)}")
    return widths.pop() if widths else 0


def _wrong(what: str) -> ConfigError:
    return ConfigError(f"objects: {what}", option="objects")


def _module(array: Any) -> Any:
    if isinstance(array, np.ndarray):
        return np
    if type(array).__module__.startswith("torch"):
        import torch

        return torch
    import jax.numpy as jnp

    return jnp


def _listed(array: Any) -> list[Any]:
    values: list[Any] = array.tolist()
    return values


def _float(array: Any) -> Any:
    return array.astype("float32") if hasattr(array, "astype") else array.float()


def _whole(array: Any) -> Any:
    return array.astype("int64") if hasattr(array, "astype") else array.long()


def _arange(like: Any, count: int) -> Any:
    if isinstance(like, np.ndarray):
        return np.arange(count)
    xp = _module(like)
    return xp.arange(count, device=like.device) if hasattr(like, "new_full") else xp.arange(count)


def _repeated(rows: Any, counts: Any) -> Any:
    return rows.repeat_interleave(counts) if hasattr(rows, "new_full") else rows.repeat(counts)


def _full(like: Any, shape: tuple[int, ...], value: Any) -> Any:
    if hasattr(like, "new_full"):
        return like.new_full(shape, value)
    return np.full(shape, value, np.asarray(like).dtype)


def _shares(boxes: Any, wide: Any, high: Any) -> Any:
    """Centre, width and height of boxes as shares of the row's sides."""
    left, top, right, bottom = (boxes[:, side] for side in range(4))
    return _module(boxes).stack(
        (
            (left + right) / 2 / wide,
            (top + bottom) / 2 / high,
            (right - left) / wide,
            (bottom - top) / high,
        ),
        -1,
    )
