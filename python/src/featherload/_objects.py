"""Objects of a batch: boxes, labels, keypoints, as arrays and as views of them.

The arrays of a batch are flat: the objects of all rows follow each other, and ``offsets`` says
where each row begins. Every other form is made of them here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, get_args

import numpy as np

from . import _masks
from ._errors import ConfigError
from ._featherload import RawBatch
from ._values import shown

BOX_FORMATS: dict[str, tuple[str, bool]] = {
    "coco": ("xywh", False),
    "pascal_voc": ("xyxy", False),
    "yolo": ("cxcywh", True),
    "albumentations": ("xyxy", True),
}
"""albumentations' formats of boxes: the ``box_format``, and whether they are shares of the
sides.
"""

TargetForm = Literal["list", "flat", "padded", "detr"]


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
    """The same arrays of NumPy, without masks that are on a device. None if these are NumPy's."""

    @property
    def counts(self) -> list[int]:
        """The number of objects of each row."""
        counts: list[int] = np.diff(self._host.offsets).tolist()
        return counts

    def ids_of_rows(self) -> list[Any]:
        """The numbers of the objects of each row, as arrays of NumPy."""
        host = self._host
        rows: list[Any] = np.split(host.ids, host.offsets[1:-1])
        return rows

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

    def with_boxes_as(self, box_format: str) -> Objects:
        """The same with ``boxes`` in a format of albumentations: ``"coco"`` (left, top, width,
        height), ``"pascal_voc"`` (left, top, right, bottom), ``"yolo"`` (centre, width, height as
        shares of the row's sides), ``"albumentations"`` (left, top, right, bottom as shares). Only
        for ``as_list`` and ``as_padded``: the other forms have formats of their own.
        """
        host = self._host
        if box_format not in BOX_FORMATS:
            raise ConfigError(
                f"box format {box_format!r} is unknown: use one of {', '.join(BOX_FORMATS)}"
            )
        name, is_normalized = BOX_FORMATS[box_format]
        corners, ends = host.boxes[:, :2], host.boxes[:, 2:]
        if name == "xyxy":
            boxes = host.boxes
        elif name == "xywh":
            boxes = np.concatenate([corners, ends - corners], 1)
        else:
            boxes = np.concatenate([(corners + ends) / 2, ends - corners], 1)
        if is_normalized:
            sides = host.sizes[host._rows()][:, [1, 0, 1, 0]]
            boxes = boxes / sides.astype(np.float32)
        if self.host is None:
            return replace(self, boxes=boxes)
        return replace(self, boxes=self.like(boxes), host=replace(host, boxes=boxes))

    def as_flat(self) -> dict[str, Any]:
        """Arrays over all rows, as ultralytics' trainers take them: ``batch_idx`` float32 M,
        ``cls`` float32 M x 1, ``bboxes`` float32 M x 4 (centre, width, height as shares of the
        row's sides), and ``keypoints`` with x and y as shares. ``masks`` N x H x W have the number
        of the object in its row from 1 on, 0 outside; where objects overlap, the smaller one. They
        are made on the host, to which masks on a device are copied.
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
        masks = self._masks_on_host()
        if masks is not None:
            flat["masks"] = _numbered(masks)
        return {name: self.like(array) for name, array in flat.items()}

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
        valid = np.zeros((len(counts), side), np.bool_)
        valid[rows, places] = True
        arrays = {name: self.like(array) for name, array in {**padded, "valid": valid}.items()}
        return arrays if self.masks is None else {**arrays, "masks": self._padded_masks(side)}

    def _padded_masks(self, side: int) -> Any:
        """N x ``side`` x H x W. Those of torch stay where they are."""
        of_rows = self.masks or []
        is_torch = any(hasattr(one, "new_zeros") for one in of_rows)
        if not is_torch:
            of_rows = self._masks_on_host() or []
        shape = (len(of_rows), side, *_largest(of_rows))
        room = of_rows[0].new_zeros(shape) if is_torch else np.zeros(shape, np.uint8)
        for row, masks in enumerate(of_rows):
            count, height, width = masks.shape
            room[row, :count, :height, :width] = masks
        return room if is_torch else self.like(room)

    def _masks_on_host(self) -> list[Any] | None:
        """The masks of each row as arrays of NumPy: copies, if they are on a device."""
        if self._host.masks is not None or self.masks is None:
            return self._host.masks
        return [_as_numpy(one) for one in self.masks]

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
        shares = self.like(_shares(host.boxes, np.broadcast_to(size, (len(host.labels), 2))))
        sizes = self.like(np.where(host.sizes > 0, size, 0))
        crowds = self.like(host.iscrowd.astype(np.int64))
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
        return {"pixel_mask": self.like(inside), "labels": rows}

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

    def like(self, array: Any) -> Any:
        """An array of NumPy as one of these: of the same framework, on the same device."""
        if self.host is None:
            return array
        if hasattr(self.boxes, "new_full"):
            import torch

            return torch.from_numpy(array).to(self.boxes.device, non_blocking=True)
        return _jax_array(array)


def _as_numpy(array: Any) -> Any:
    """An array of NumPy, copied if it is on a device."""
    return np.asarray(array.cpu() if hasattr(array, "cpu") else array)


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
    on_device = raw.device != "cpu"
    masks = raw.instance_masks() if raw.has_pixels else None
    if masks is not None and on_device:
        there = "torch" if framework == "numpy" else framework
        masks = [_masks.as_array(there, one) for one in masks]
    stays = on_device and framework != "numpy"
    on_host = None if masks is None or stays else [_row_masks_on_host(one) for one in masks]
    host = Objects(**arrays, masks=on_host)
    if framework == "numpy":
        return host
    convert = _converter(framework, raw.device)
    names = [one.name for one in fields(host) if one.name not in ("masks", "host")]
    masks = masks if on_host is None else [convert(one) for one in on_host]
    return replace(
        host, **{name: convert(getattr(host, name)) for name in names}, masks=masks, host=host
    )


def _row_masks_on_host(row: Any) -> Any:
    """The instance masks of a row as an array of NumPy: of shape and bytes, or of a tensor."""
    if isinstance(row, tuple):
        return np.frombuffer(row[1], np.uint8).reshape(row[0])
    return _as_numpy(row)


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


def viewer(
    form: TargetForm | None, rule: Any, box_format: str | None = None
) -> Callable[[Any, Any, Any, Objects | None], tuple[Any, Any]] | None:
    """What makes targets of this form, and images that fit them. With ``max_objects`` of the rule
    padded targets have one shape in every batch. ``box_format``: that of lists and padded targets,
    in place of pixels.
    """
    if form is None:
        return None
    most = rule.get("max_objects") if isinstance(rule, Mapping) else None

    def made(images: Any, labels: Any, masks: Any, objects: Objects | None) -> tuple[Any, Any]:
        if objects is None:
            return images, labels
        if box_format is not None and form in ("list", "padded"):
            objects = objects.with_boxes_as(box_format)
        return view(objects, form, images, most)

    return made
