"""Objects that a program lists, a dict for each image, as the table that workers read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from ._errors import ConfigError
from ._featherload import RawObjects
from ._values import shown

ObjectSource = str | Mapping[str, Any] | Sequence[Mapping[str, Any]]

OF_CACHE = "cache"
"""In place of files: the objects that a cache was built with."""

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
