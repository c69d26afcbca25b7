"""Objects in images: boxes, labels, keypoints, as the arrays of a batch and as views of them.

The arrays of a batch are flat: the objects of all rows follow each other, and ``offsets`` says
where each row begins. Every other form is made of them here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, Protocol, get_args

import numpy as np

from ._errors import ConfigError
from ._featherload import RawBatch, RawObjects
from ._values import shown

ObjectSource = str | Mapping[str, Any] | Sequence[Mapping[str, Any]]

TargetForm = Literal["list", "flat", "padded", "detr"]

Viewer = Callable[["Objects", Any], tuple[Any, Any]]

_LISTED = {
    "boxes": (4, np.float64),
    "area": (0, np.float64),
    "iscrowd": (0, np.bool_),
    "ids": (0, np.int64),
}
"""The arrays of an item: numbers of an object (0: one number, without an axis), and type."""

_ITEM = {*_LISTED, "labels", "keypoints", "rotated", "polygons", "image_id", "size"}
_FORM = {"box_format", "normalized", "names", "keypoint_swap"}
_READING = {"column", "member", "box_format", "normalized", "names", "strict", "crowds"}
"""How a column of objects is read."""
_ROTATED = {5: "centre", 8: "corners"}
_BOX_FORMATS = ("xyxy", "xywh", "cxcywh")


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
    content: Any
    """int64, N x 4: left, top, right, bottom of the image in its row. The rest is the border of
    ``pad_to``, ``letterbox`` and others."""
    dropped: Any
    """int64, N: objects that the style dropped, or that were over ``max_objects``."""
    masks: list[Any] | None = None
    """For each row uint8, n x H x W: the masks of its objects, 1 inside. None without masks."""
    host: Objects | None = field(default=None, repr=False)
    """The same arrays of NumPy. None if these are NumPy's."""

    @property
    def counts(self) -> list[int]:
        """The number of objects of each row."""
        counts: list[int] = np.diff(self._host.offsets).tolist()
        return counts

    def as_list(self) -> list[dict[str, Any]]:
        """A dict for each row, as torchvision's detection models take them: ``boxes`` n x 4,
        ``labels`` n, ``image_id``, ``area``, ``iscrowd``, and ``keypoints`` n x K x 3, ``rotated``,
        ``masks`` n x H x W if there are any. The arrays are views.
        """
        rows: list[dict[str, Any]] = []
        ends = self._host.offsets.tolist()
        names = self._names()
        for row, image_id in enumerate(self._host.image_ids.tolist()):
            part = slice(ends[row], ends[row + 1])
            target = {name: getattr(self, name)[part] for name in names}
            rows.append({**target, **self._masks_of(row), "image_id": image_id})
        return rows

    def as_flat(self) -> dict[str, Any]:
        """Arrays over all rows, as ultralytics' trainers take them: ``batch_idx`` float32 M,
        ``cls`` float32 M x 1, ``bboxes`` float32 M x 4 (centre, width, height as shares of the
        row's sides), and ``keypoints`` with x and y as shares. ``masks`` N x H x W have the number
        of the object in its row from 1 on, 0 outside; where objects overlap, the smaller one.
        """
        host = self._host
        rows = host._rows()
        flat = {
            "batch_idx": rows.astype(np.float32),
            "cls": host.labels.astype(np.float32)[:, None],
            "bboxes": _shares(host.boxes, host.sizes[rows]),
        }
        if host.keypoints.shape[1]:
            shares = host.keypoints.copy()
            shares[..., :2] /= host.sizes[rows][:, None, ::-1].astype(np.float32)
            flat["keypoints"] = shares
        if host.masks is not None:
            flat["masks"] = _numbered(host.masks)
        return {name: self._like(array) for name, array in flat.items()}

    def as_padded(self, most: int | None = None) -> dict[str, Any]:
        """Arrays of one shape: ``boxes`` N x P x 4, ``labels`` N x P, ``valid`` bool N x P, and
        ``area``, ``iscrowd``, ``keypoints``, ``rotated``, ``masks`` alike. Where ``valid`` is
        false, labels are -1 and all else is 0. P is ``most``, or the largest count of the batch.
        """
        host, counts = self._host, self.counts
        side = max(counts, default=0) if most is None else most
        if max(counts, default=0) > side:
            raise ConfigError(
                f"a row has {max(counts)} objects, and there is room for {side}: give a larger "
                "number, or objects={..., 'max_objects': ...}",
                option="targets",
            )
        rows = host._rows()
        places = np.arange(len(rows)) - host.offsets[rows]
        padded = {}
        for name in self._names():
            values = getattr(host, name)
            empty = -1 if name == "labels" else 0
            room = np.full((len(counts), side, *values.shape[1:]), empty, values.dtype)
            room[rows, places] = values
            padded[name] = room
        if host.masks is not None:
            padded["masks"] = np.zeros((len(counts), side, *_largest(host.masks)), np.uint8)
            for row, masks in enumerate(host.masks):
                count, height, width = masks.shape
                padded["masks"][row, :count, :height, :width] = masks
        valid = np.zeros((len(counts), side), np.bool_)
        valid[rows, places] = True
        return {name: self._like(array) for name, array in {**padded, "valid": valid}.items()}

    def cut_out(self, images: Any) -> list[Any]:
        """The image of each row without its border. ``images``: those of the batch, N x C x H x W
        or N x H x W x C. The arrays are views.
        """
        is_nchw = self._is_nchw(images)
        parts = []
        for image, (left, top, right, bottom) in zip(
            images, self._host.content.tolist(), strict=True
        ):
            part = (slice(top, bottom), slice(left, right))
            parts.append(image[(slice(None), *part)] if is_nchw else image[part])
        return parts

    def cut_out_masks(self) -> list[Any]:
        """The instance masks of each row without its border. The arrays are views."""
        places = self._host.content.tolist()
        return [
            masks[:, top:bottom, left:right]
            for masks, (left, top, right, bottom) in zip(self.masks or (), places, strict=True)
        ]

    def _is_nchw(self, images: Any) -> bool:
        """Whether the sides of images are their last two axes, also of narrowed ones."""
        host = self._host
        sides = (tuple(host.sizes.max(0, initial=0).tolist()), self.padded_size())
        return tuple(images.shape[2:4]) in sides

    def padded_size(self) -> tuple[int, int]:
        """Height and width of the largest image of the batch, if all lie at the top left of their
        rows; else those of the rows.
        """
        left, top, right, bottom = self._host.content.max(0, initial=0).tolist()
        if left or top:
            height, width = self._host.sizes.max(0, initial=0).tolist()
            return height, width
        return bottom, right

    def as_detr(self, height: int, width: int) -> dict[str, Any]:
        """What Hugging Face's models of the DETR family take: ``pixel_mask`` int64 N x H x W (1
        inside of images), and ``labels``, a dict for each row with ``class_labels``, ``boxes``
        (centre, width, height as shares), ``area``, ``iscrowd``, ``masks``, ``image_id``,
        ``orig_size``, ``size``. ``height`` and ``width`` are those of the images: shares are of
        them, as the processors make them of padded images.
        """
        host = self._host
        size = np.array([height, width])
        shares = self._like(_shares(host.boxes, np.broadcast_to(size, (len(host.labels), 2))))
        sizes = self._like(np.where(host.sizes > 0, size, 0))
        crowds = self._like(host.iscrowd.astype(np.int64))
        ends = host.offsets.tolist()
        rows = []
        for row in range(len(ends) - 1):
            part = slice(ends[row], ends[row + 1])
            rows.append(
                {
                    "class_labels": self.labels[part],
                    "boxes": shares[part],
                    **({"area": self.area[part]} if "area" in self._names() else {}),
                    "iscrowd": crowds[part],
                    **{
                        name: masks[:, :height, :width]
                        for name, masks in self._masks_of(row).items()
                    },
                    "image_id": self.image_ids[row : row + 1],
                    "orig_size": self.original_sizes[row],
                    "size": sizes[row],
                }
            )
        inside = np.zeros((len(rows), height, width), np.int64)
        for row, (left, top, right, bottom) in enumerate(host.content.tolist()):
            inside[row, top:bottom, left:right] = 1
        return {"pixel_mask": self._like(inside), "labels": rows}

    def to(self, device: Any, non_blocking: bool = False, own_masks: bool = False) -> Objects:
        """The tensors on another device. ``own_masks``: masks leave the loader's memory, too."""

        def moved(tensor: Any) -> Any:
            return tensor.to(device, non_blocking=non_blocking)

        masks, host = self.masks, self._host
        if own_masks and masks is not None:
            masks = [one.to(device, copy=True, non_blocking=non_blocking) for one in masks]
            if host.masks is not None:
                host = replace(host, masks=[np.array(one) for one in host.masks])
        elif masks is not None:
            masks = [moved(one) for one in masks]
        names = [one.name for one in fields(self) if one.name not in ("masks", "host")]
        arrays = {name: moved(getattr(self, name)) for name in names}
        return Objects(**arrays, masks=masks, host=host)

    @property
    def _host(self) -> Objects:
        return self if self.host is None else self.host

    def _names(self) -> list[str]:
        """The arrays that the annotations have."""
        host = self._host
        names = ["boxes", "labels", "area", "iscrowd", "keypoints", "rotated"]
        lacks = {
            "area": len(host.area) != len(host.labels),
            "keypoints": not host.keypoints.shape[1],
            "rotated": not host.rotated.shape[1],
        }
        return [name for name in names if not lacks.get(name, False)]

    def _masks_of(self, row: int) -> dict[str, Any]:
        return {} if self.masks is None else {"masks": self.masks[row]}

    def _rows(self) -> Any:
        """The row of each object."""
        counts = np.diff(self.offsets)
        return np.repeat(np.arange(len(counts)), counts)

    def _like(self, array: Any) -> Any:
        """An array of NumPy as one of these: of the same framework, on the same device."""
        if self.host is None:
            return array
        if hasattr(self.boxes, "new_full"):
            import torch

            return torch.from_numpy(array).to(self.boxes.device, non_blocking=True)
        return _jax_array(array)


def _largest(masks: list[Any]) -> tuple[int, int]:
    """The largest height and width of the masks of rows."""
    height = max((of_row.shape[1] for of_row in masks), default=0)
    return height, max((of_row.shape[2] for of_row in masks), default=0)


def _numbered(masks: list[Any]) -> Any:
    """N x H x W: the number of the smallest object at each pixel of a row, from 1 on."""
    numbered = np.zeros((len(masks), *_largest(masks)), np.int64)
    for row, of_row in enumerate(masks):
        _, height, width = of_row.shape
        sizes = of_row.sum((1, 2), dtype=np.int64)
        # The largest first, so that smaller ones lie above it.
        for place in np.argsort(-sizes, kind="stable").tolist():
            numbered[row, :height, :width][of_row[place] != 0] = place + 1
    return numbered


def _shares(boxes: Any, sizes: Any) -> Any:
    """Centre, width and height of boxes as shares of their rows' sides."""
    corners, ends = boxes[:, :2], boxes[:, 2:]
    sides = sizes[:, ::-1].astype(np.float32)
    return np.concatenate([(corners + ends) / 2 / sides, (ends - corners) / sides], 1)


def _jax_array(array: Any) -> Any:
    """An array of JAX. Whole numbers that its int32 cannot hold stay with NumPy."""
    import jax
    import jax.numpy as jnp

    limits = np.iinfo(np.int32)
    fits = array.dtype != np.int64 or not array.size or jax.config.jax_enable_x64
    fits = fits or (array.min() >= limits.min and array.max() <= limits.max)
    return jnp.asarray(array) if fits else array


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
        "content": ("int64", (-1, 4)),
    }
    count = len(found["labels"]) // 8
    arrays: dict[str, Any] = {}
    for name, data in found.items():
        dtype, shape = shapes.get(name, ("int64", (-1,)))
        if 0 in shape:
            shape = (count, *shape[1:])
        arrays[name] = np.frombuffer(data, dtype).reshape(shape)
    host = Objects(**arrays, masks=_masks_of(raw))
    if framework == "numpy":
        return host
    convert = _converter(framework, raw.device)
    names = [one.name for one in fields(host) if one.name not in ("masks", "host")]
    masks = None if host.masks is None else [convert(masks) for masks in host.masks]
    return replace(
        host, **{name: convert(getattr(host, name)) for name in names}, masks=masks, host=host
    )


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
    if framework == "jax":
        return _jax_array
    import torch

    def tensor(array: Any) -> Any:
        there = torch.from_numpy(array)
        return there if device == "cpu" else there.to(device, non_blocking=True)

    return tensor


def view(objects: Objects, form: TargetForm, images: Any, most: int | None) -> tuple[Any, Any]:
    """Images and targets in the form that a loader's ``targets`` names."""
    if form == "list":
        return images, objects.as_list()
    if form == "flat":
        return images, objects.as_flat()
    if form == "padded":
        return images, objects.as_padded(most)
    if isinstance(images, list):
        raise ConfigError(
            "targets='detr' needs images of one size: end the recipe with a resize",
            option="targets",
        )
    first = 2 if objects._is_nchw(images) else 1
    height, width = objects.padded_size()
    if not height or not width:
        # All rows are masked. The batch keeps its images.
        height, width = (int(side) for side in images.shape[first : first + 2])
    narrow = (slice(None),) * first + (slice(0, height), slice(0, width))
    return images[narrow], objects.as_detr(height, width)


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


def viewer(form: TargetForm | None, rule: Any) -> Viewer | None:
    """What makes targets of this form, and images that fit them, of objects and images. With
    ``max_objects`` of the rule padded targets have one shape in every batch.
    """
    if form is None:
        return None
    most = rule.get("max_objects") if isinstance(rule, Mapping) else None
    return lambda objects, images: view(objects, form, images, most)


class ObjectColumns(Protocol):
    """Columns of objects of a data set in memory."""

    def read(self, column: str, option: str) -> RawObjects: ...


def taken(
    keywords: dict[str, Any], has_items: bool, columns: ObjectColumns | None
) -> RawObjects | None:
    """The objects of the keywords of ``Loader``, if they are listed: a dict for each image, or a
    column of a ``datasets.Dataset``. The keyword then has the rule alone. ``has_items``: Python
    lists the samples.
    """
    objects = keywords["objects"]
    if objects is None or isinstance(objects, str):
        return None
    rule = dict(objects) if isinstance(objects, Mapping) else {"files": objects}
    if rule.get("column") is not None and has_items:
        if columns is None:
            raise _wrong(
                "column is for a datasets.Dataset, and for Parquet, Arrow and JSON lines: give a "
                "list, a dict with boxes and labels for each image"
            )
        read = columns.read(rule["column"], json.dumps(rule))
        keywords["objects"] = {name: rule[name] for name in rule if name not in _READING}
        return read
    files = rule.pop("files", None)
    keywords["objects"] = rule
    if rule.get("column") is not None or rule.get("member") is not None:
        # Rust refuses two places.
        if files is not None:
            rule["files"] = str(files)
        return None
    if files is None or hasattr(files, "__fspath__") or isinstance(files, str):
        of_lists = [name for name in rule if name in ("box_format", "normalized")]
        if of_lists:
            raise _wrong(f"{', '.join(of_lists)} are for lists, and files say it: leave them out")
        if files is not None:
            rule["files"] = str(files)
        return None
    form = {name: rule.pop(name) for name in list(rule) if name in _FORM}
    if not isinstance(files, Iterable):
        raise _wrong(
            f"{shown(files)} is no list: give a dict with boxes and labels for each image, a COCO "
            "file, or a pattern such as '../labels/{stem}.txt'"
        )
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
    try:
        names = {int(label): str(name) for label, name in names.items()}
        swap = [int(keypoint) for keypoint in form.get("keypoint_swap") or []]
    except (TypeError, ValueError) as error:
        raise _wrong(f"names have whole numbers as keys, and keypoint_swap too: {error}") from None
    box_format = form.get("box_format", "xyxy")
    if box_format not in _BOX_FORMATS:
        known = ", ".join(_BOX_FORMATS)
        raise _wrong(f"box_format {shown(box_format)} is unknown: use one of {known}")
    said = {
        "boxes": box_format,
        "shares": bool(form.get("normalized", False)),
        "keypoints": keypoints,
        "keypoint_swap": swap,
        "rotated": _ROTATED.get(rotated),
        "polygons": any("polygons" in item for item in listed),
        "names": names,
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
            if name == "keypoints" and values.ndim == 3 and values.shape[2] != 3:
                raise ValueError(f"keypoints have shape {values.shape}: give n x K x 3")
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
    points = [numbers[at : at + 3] for at in range(0, len(numbers), 3)]
    if len(numbers) % 3 or any(point[2] not in (0, 1, 2) for point in points):
        raise ValueError("keypoints are x, y and visibility (0, 1 or 2) each")
    return points


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
