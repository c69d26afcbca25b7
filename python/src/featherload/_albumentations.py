"""albumentations' ``Compose`` as a recipe, and its parameters of boxes as the rule of objects.

Reads types and public attributes; calls nothing. A transform that cannot be translated is an error
that names it, because another recipe would train another model.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ._errors import ConfigError
from ._objects import BOX_FORMATS
from ._transforms import Known, Op, Recipe, cannot, full_name
from ._values import shown

# cv2's numbers of the filters of recipes. Shrinking takes no average, except in `area`. 0 (nearest)
# is left out: it takes the pixel at the upper left, and recipes take the nearest.
_FILTERS = {6: "nearest", 1: "bilinear", 2: "bicubic", 3: "area"}
# cv2's numbers of borders.
_BORDERS = {0: "constant", 1: "edge", 4: "reflect"}
_ANCHORS = {"center": "center", "top_left": "top_left", "bottom_right": "bottom_right"}

# Attributes of BboxParams, and the field of the rule of objects.
_RULE = {"min_area": "min_area", "min_visibility": "min_visibility"}


class _Walk:
    """Walks a list of transforms, and tracks the kind of their values."""

    def __init__(self) -> None:
        self.is_float = False
        self.level = 1.0
        """Levels of 1 in the values: 255 after ToFloat."""
        self.is_tensor = False
        self.most: int | None = None
        """The most that a side has, if a transform limits it."""

    def ops(self, transform: Any, is_forced: bool = False) -> list[Op]:
        """``is_forced``: the transform runs whatever its ``p``."""
        kind = type(transform)
        known = TRANSFORMS.get(kind.__name__) if _is_of_package(kind) else None
        if known is None:
            raise _cannot(kind, "no operation of a recipe does the same")
        if self.is_tensor:
            raise _cannot(kind, "put it before ToTensorV2")
        p = 1.0 if is_forced else float(transform.p)
        if p == 0:
            return []
        translate: Callable[[_Walk, Any, float], list[Op]] = known.translate
        return translate(self, transform, p)


def is_one(value: Any) -> bool:
    """Whether it is of the package."""
    return _is_of_package(type(value))


def translate(compose: Any) -> Recipe:
    """The recipe of a ``Compose``. JPEGs are decoded at full size, and the EXIF orientation is
    applied, as by ``cv2.imread``.
    """
    kind = type(compose)
    if kind.__name__ != "Compose" or not _is_of_package(kind):
        raise _cannot(kind, "give A.Compose([...])")
    for name in ("additional_targets", "mask_interpolation"):
        value = getattr(compose, f"_{name}", None) or getattr(compose, name, None)
        if value:
            raise _cannot(kind, f"a loader has no {name}={value!r}: leave it out")
    if compose.p != 1:
        raise _cannot(kind, f"rows would have several sizes with p={compose.p}: give p=1")
    walk = _Walk()
    ops = [op for transform in compose.transforms for op in walk.ops(transform)]
    ops.insert(0, {"decode": {"alpha": "drop", "mode": "full"}})
    if not walk.is_float:
        ops.append({"cast": {"dtype": "u8"}})
    ops.append({"layout": {"layout": "nchw" if walk.is_tensor else "nhwc"}})
    return {"featherload": 1, "name": "Compose", "ops": ops}


def box_format(recipe: Any) -> str | None:
    """The format of the boxes of targets. None if the recipe is no ``Compose`` with boxes."""
    params = _params(recipe, "bboxes")
    return None if params is None else str(params.format)


def with_rule(recipe: Any, objects: Any) -> Any:
    """The keyword ``objects`` with the parameters of boxes and keypoints of a ``Compose``."""
    if objects is None or not is_one(recipe):
        return objects
    translate(recipe)
    params = _params(recipe, "bboxes")
    if params is None:
        raise ConfigError(
            "the Compose of albumentations has no bbox_params, and objects have boxes: give "
            "A.Compose(..., bbox_params=A.BboxParams(format='coco', label_fields=['labels']))",
            option="recipe",
        )
    _check_boxes(params)
    pads = [op["pad_to"] for op in translate(recipe)["ops"] if "pad_to" in op]
    if any(pad["padding_mode"] == "reflect" for pad in pads):
        raise _wrong(
            "border_mode=cv2.BORDER_REFLECT_101 of PadIfNeeded",
            "it adds mirrored boxes: use cv2.BORDER_CONSTANT or BORDER_REPLICATE",
        )
    points = _params(recipe, "keypoints")
    if points is not None:
        _check_keypoints(points)
    rule = dict(objects) if isinstance(objects, Mapping) else {"files": objects}
    wanted: dict[str, Any] = {
        "style": "albumentations",
        "min_size": float(params.min_width),
        **{field: float(getattr(params, name)) for name, field in _RULE.items()},
    }
    files = rule.get("files")
    is_listed = (
        files is not None and not isinstance(files, str) and not hasattr(files, "__fspath__")
    )
    if is_listed or rule.get("column") is not None or rule.get("member") is not None:
        # Files say themselves what their boxes are.
        name, is_normalized = BOX_FORMATS[params.format]
        wanted.update(box_format=name, normalized=is_normalized)
    for field, value in wanted.items():
        given = rule.get(field)
        if given is not None and given != value:
            raise ConfigError(
                f"objects: {field} is {shown(given)}, and the Compose of albumentations has "
                f"{shown(value)}: leave {field} out",
                option="objects",
            )
        rule[field] = value
    return rule


def _is_of_package(kind: type) -> bool:
    # The names of a class and its module may be those of another class.
    is_named = kind.__module__.split(".")[0] == "albumentations"
    module = sys.modules.get(kind.__module__)
    return is_named and getattr(module, kind.__name__, None) is kind


def _params(recipe: Any, name: str) -> Any:
    """The parameters of a kind of targets of a ``Compose``."""
    if not is_one(recipe):
        return None
    processor = getattr(recipe, "processors", {}).get(name)
    return None if processor is None else processor.params


def _check_boxes(params: Any) -> None:
    if params.format not in BOX_FORMATS:
        raise _wrong(f"format={params.format!r} of BboxParams", f"use {', '.join(BOX_FORMATS)}")
    if params.min_width != params.min_height:
        raise _wrong(
            f"min_width={params.min_width} and min_height={params.min_height} of BboxParams",
            "objects have one min_size: give both the same number",
        )
    if params.max_accept_ratio is not None:
        raise _wrong(
            f"max_accept_ratio={params.max_accept_ratio} of BboxParams",
            "no rule of objects does the same: leave it out",
        )
    if not params.check_each_transform:
        raise _wrong(
            "check_each_transform=False of BboxParams",
            "boxes are filtered after each operation: leave it out",
        )


def _check_keypoints(params: Any) -> None:
    if params.format != "xy":
        raise _wrong(
            f"format={params.format!r} of KeypointParams",
            "objects have x, y and visibility: use format='xy'",
        )
    if not params.remove_invisible or not params.check_each_transform:
        raise _wrong(
            "remove_invisible=False or check_each_transform=False of KeypointParams",
            "keypoints outside get visibility 0, and keep their place: leave it out",
        )


def _wrong(what: str, why: str) -> ConfigError:
    return ConfigError(
        f"albumentations' {what} cannot be translated into a rule of objects: {why}",
        option="recipe",
    )


def _cannot(kind: type, why: str) -> ConfigError:
    return cannot(full_name(kind), why, "albumentations'")


# One function for each group of transforms.


def _always(t: Any, p: float) -> None:
    """Raises an error for a transform that changes the size of some images."""
    if p != 1:
        raise _cannot(type(t), f"rows would have several sizes with p={p}: give p=1")


def _sometimes(ops: list[Op], p: float) -> list[Op]:
    if p == 1 or not ops:
        return ops
    return [{"random_apply": {"transforms": ops, "p": p}}]


def _filter(t: Any) -> dict[str, Any]:
    """The filter of a resize."""
    filter = _FILTERS.get(t.interpolation)
    if filter is None:
        raise _cannot(
            type(t),
            f"interpolation={t.interpolation} is no filter of recipes: use "
            "cv2.INTER_NEAREST_EXACT, INTER_LINEAR, INTER_CUBIC or INTER_AREA",
        )
    if getattr(t, "area_for_downscale", None) is not None:
        raise _cannot(
            type(t),
            f"area_for_downscale={t.area_for_downscale!r} depends on the image: leave it out, or "
            "use interpolation=cv2.INTER_AREA",
        )
    if t.mask_interpolation != 0:
        raise _cannot(
            type(t),
            f"mask_interpolation={t.mask_interpolation}: leave it out, and give masks={{'filter': "
            "...}}",
        )
    return {"interpolation": filter, "antialias": False}


def _flip(name: str) -> Callable[[_Walk, Any, float], list[Op]]:
    return lambda walk, t, p: [{name: {"p": p}}]


def _turn(walk: _Walk, t: Any, p: float) -> list[Op]:
    _always(t, p)
    return [{"random_rotate90": {}}]


def _resize(walk: _Walk, t: Any, p: float) -> list[Op]:
    _always(t, p)
    walk.most = max(t.height, t.width)
    return [{"resize": {"size": [t.height, t.width], **_filter(t)}}]


def _max_size(walk: _Walk, t: Any, p: float) -> list[Op]:
    _always(t, p)
    if t.max_size_hw is not None or isinstance(t.max_size, Sequence):
        value = t.max_size if t.max_size_hw is None else t.max_size_hw
        raise _cannot(type(t), f"its size is {value!r}: give max_size as one number")
    is_longest = type(t).__name__ == "LongestMaxSize"
    walk.most = t.max_size if is_longest else None
    side = "max_size" if is_longest else "size"
    return [{"resize": {side: t.max_size, "rounding": "nearest", **_filter(t)}}]


def _pad(walk: _Walk, t: Any, p: float) -> list[Op]:
    _always(t, p)
    sides = [t.min_height, t.min_width]
    steps = [t.pad_height_divisor, t.pad_width_divisor]
    if None in sides and None in steps:
        raise _cannot(
            type(t), "it limits one side by a size, and one by a divisor: use one of both"
        )
    anchor = _ANCHORS.get(t.position)
    if anchor is None:
        raise _cannot(
            type(t), f"position={t.position!r}: use center, top_left or bottom_right instead"
        )
    op: Op = {"anchor": anchor, **_border(walk, t)}
    if None in sides:
        op["multiple_of"] = steps
        walk.most = None
    elif walk.most is not None and walk.most <= min(sides):
        op["size"] = sides
        walk.most = max(sides)
    else:
        op["min_size"] = sides
        walk.most = None if walk.most is None else max(walk.most, *sides)
    return [{"pad_to": op}]


def _border(walk: _Walk, t: Any) -> dict[str, Any]:
    mode = _BORDERS.get(t.border_mode)
    if mode is None:
        raise _cannot(
            type(t),
            f"border_mode={t.border_mode} is no border of recipes: use cv2.BORDER_CONSTANT, "
            "BORDER_REPLICATE or BORDER_REFLECT_101",
        )
    if t.fill_mask:
        raise _cannot(
            type(t), f"fill_mask={t.fill_mask}: leave it out, and give masks={{'fill': ...}}"
        )
    fill: Any = t.fill
    if walk.is_float:
        values = fill if isinstance(fill, Sequence) else [fill]
        fill = [float(value) * walk.level for value in values]
        fill = fill if isinstance(t.fill, Sequence) else fill[0]
    elif isinstance(fill, Sequence):
        fill = list(fill)
    return {"padding_mode": mode, **({"fill": fill} if mode == "constant" else {})}


def _crop(name: str, more: Mapping[str, Any]) -> Callable[[_Walk, Any, float], list[Op]]:
    def ops(walk: _Walk, t: Any, p: float) -> list[Op]:
        _always(t, p)
        if t.pad_if_needed:
            raise _cannot(type(t), "pad_if_needed=True: put PadIfNeeded before it instead")
        walk.most = max(t.height, t.width)
        return [{name: {"size": [t.height, t.width], "pad_if_needed": False, **more}}]

    return ops


def _resized_crop(walk: _Walk, t: Any, p: float) -> list[Op]:
    _always(t, p)
    walk.most = max(t.size)
    op = {"size": list(t.size), "scale": list(t.scale), "ratio": list(t.ratio), **_filter(t)}
    return [{"random_resized_crop": op}]


def _safe_crop(walk: _Walk, t: Any, p: float) -> list[Op]:
    _always(t, p)
    op: Op = {"erosion_rate": float(t.erosion_rate)}
    if type(t).__name__ == "RandomSizedBBoxSafeCrop":
        walk.most = max(t.height, t.width)
        op |= {"size": [t.height, t.width], **_filter(t)}
    else:
        op |= {"antialias": False}
    return [{"random_sized_bbox_safe_crop": op}]


def _invert(walk: _Walk, t: Any, p: float) -> list[Op]:
    if walk.is_float:
        raise _cannot(type(t), "put it before Normalize and ToFloat")
    return [{"random_invert": {"p": p}}]


def _shuffle(walk: _Walk, t: Any, p: float) -> list[Op]:
    return _sometimes([{"random_channel_permutation": {}}], p)


def _normalize(walk: _Walk, t: Any, p: float) -> list[Op]:
    if p != 1 or walk.is_float:
        raise _cannot(type(t), "give it p=1, once, and no ToFloat before it")
    if t.normalization != "standard" or t.max_pixel_value != 255:
        raise _cannot(
            type(t),
            f"normalization={t.normalization!r}, max_pixel_value={t.max_pixel_value}: use "
            "'standard' and 255",
        )
    walk.is_float = True
    values = {name: _channels(getattr(t, name)) for name in ("mean", "std")}
    return [{"normalize": values}, {"cast": {"dtype": "f32"}}]


def _channels(value: Any) -> Any:
    return [float(v) for v in value] if isinstance(value, Sequence) else float(value)


def _to_float(walk: _Walk, t: Any, p: float) -> list[Op]:
    if p != 1 or walk.is_float or t.max_value not in (None, 255):
        raise _cannot(type(t), "give it p=1, max_value=255 and once")
    walk.is_float = True
    walk.level = 255.0
    return [{"cast": {"dtype": "f32"}}]


def _to_tensor(walk: _Walk, t: Any, p: float) -> list[Op]:
    if p != 1:
        raise _cannot(type(t), f"the kind of values would depend on chance with p={p}: give p=1")
    walk.is_tensor = True
    return []


def _one_of(walk: _Walk, t: Any, p: float) -> list[Op]:
    parts = [_kept(walk, t, inner) for inner in t.transforms]
    weights = [float(inner.p) for inner in t.transforms]
    choice = {"random_choice": {"transforms": [_as_one(part) for part in parts], "p": weights}}
    return _sometimes([choice], p)


def _sequence(walk: _Walk, t: Any, p: float) -> list[Op]:
    if p == 1:
        return [op for inner in t.transforms for op in walk.ops(inner)]
    ops = [op for inner in t.transforms for op in _kept(walk, t, inner, is_forced=False)]
    return _sometimes(ops, p)


def _kept(walk: _Walk, outer: Any, inner: Any, is_forced: bool = True) -> list[Op]:
    """The operations of a transform for only some images. It must keep size and kind of values."""
    before = (walk.is_float, walk.is_tensor, walk.most)
    ops = walk.ops(inner, is_forced)
    changes_size = any(set(op) & _CHANGE_SIZE for op in ops)
    if changes_size or before != (walk.is_float, walk.is_tensor, walk.most):
        raise _cannot(
            type(outer),
            f"size or kind of values would depend on chance: put {type(inner).__name__} outside",
        )
    return ops


_CHANGE_SIZE = {
    "center_crop",
    "pad_to",
    "random_crop",
    "random_resized_crop",
    "random_rotate90",
    "random_sized_bbox_safe_crop",
    "resize",
}


def _as_one(ops: list[Op]) -> Op:
    if not ops:
        return {"random_horizontal_flip": {"p": 0}}
    return ops[0] if len(ops) == 1 else {"random_apply": {"transforms": ops, "p": 1}}


_P1 = "`p=1`"
_ONE_FILTER = "`p=1`; cv2's exact nearest, linear, cubic, area; no `area_for_downscale`"
_NO_PAD = "`p=1`, `pad_if_needed=False`"

TRANSFORMS: dict[str, Known] = {
    "BBoxSafeRandomCrop": Known(_safe_crop, "`random_sized_bbox_safe_crop`", _P1),
    "CenterCrop": Known(_crop("center_crop", {"rounding": "down"}), "`center_crop`", _NO_PAD),
    "ChannelShuffle": Known(_shuffle, "`random_channel_permutation`"),
    "Compose": Known(_sequence, "its transforms"),
    "HorizontalFlip": Known(_flip("random_horizontal_flip"), "`random_horizontal_flip`"),
    "InvertImg": Known(_invert, "`random_invert`", "before float32"),
    "LongestMaxSize": Known(_max_size, "`resize`", f"`max_size` as one number; {_ONE_FILTER}"),
    "NoOp": Known(lambda walk, t, p: [], "none"),
    "Normalize": Known(_normalize, "`normalize`", "`p=1`, standard, `max_pixel_value=255`"),
    "OneOf": Known(_one_of, "`random_choice`", "of transforms that keep the size"),
    "PadIfNeeded": Known(
        _pad,
        "`pad_to`",
        "`p=1`; position center, top_left or bottom_right; constant, replicated or reflected",
    ),
    "RandomCrop": Known(_crop("random_crop", {}), "`random_crop`", _NO_PAD),
    "RandomResizedCrop": Known(_resized_crop, "`random_resized_crop`", _ONE_FILTER),
    "RandomRotate90": Known(_turn, "`random_rotate90`", _P1),
    "RandomSizedBBoxSafeCrop": Known(_safe_crop, "`random_sized_bbox_safe_crop`", _ONE_FILTER),
    "Resize": Known(_resize, "`resize`", _ONE_FILTER),
    "Sequential": Known(_sequence, "its transforms, or `random_apply`", "keeps the size if `p<1`"),
    "SmallestMaxSize": Known(_max_size, "`resize`", f"`max_size` as one number; {_ONE_FILTER}"),
    "ToFloat": Known(_to_float, "`cast`", "`p=1`, `max_value=255`"),
    "ToTensorV2": Known(_to_tensor, "`layout`: N x C x H x W", _P1),
    "VerticalFlip": Known(_flip("random_vertical_flip"), "`random_vertical_flip`"),
}
"""Classes of albumentations 2, by name."""
