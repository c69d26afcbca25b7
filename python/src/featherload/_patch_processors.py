"""Image processors of vision-language models, which make patches or tiles, as recipes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ._image_processors import CLIP_MEAN, CLIP_STD, HALVES, KINDS, ProcessorKind
from ._patches import TILE_STYLES, PatchStyle


@dataclass(frozen=True)
class PatchKind:
    """How a class of image processor interprets its config."""

    style: PatchStyle
    numbers: Mapping[str, int]
    """Keys that are parameters of the operation, with the defaults of the class."""
    levels: ProcessorKind
    """Filter, mean and deviation. Of tiles also their size."""
    pinpoints: Sequence[Sequence[int]] = ()
    """Height and width of each canvas. Empty: the class has no such key."""
    switch: str | None = None
    """The key that makes tiles. Without it, the class is one of ``KINDS``."""

    @property
    def operation(self) -> str:
        return "tiles" if self.style in TILE_STYLES else "patches"

    @property
    def keys(self) -> set[str]:
        """All keys that change pixels, or may change them."""
        keys = set(self.numbers)
        if self.style == "qwen":
            keys |= {"size", "min_pixels", "max_pixels"}
        if self.operation == "tiles":
            keys.add("size")
        if self.style == "pix2struct":
            keys.add("is_vqa")
        if self.pinpoints:
            keys |= {"aspect_ratio_setting", "crop_size", "image_grid_pinpoints", *_NO_EFFECT}
        return keys | ({self.switch} if self.switch else set())


# With pinpoints. Tiles have the size of the crop, and rows of other images do not change a row.
_NO_EFFECT = {"do_center_crop", "do_pad"}
_QWEN = PatchKind(
    "qwen",
    {"patch_size": 14, "temporal_patch_size": 2, "merge_size": 2},
    ProcessorKind(None, None, 3, CLIP_MEAN, CLIP_STD),
)
_LLAVA_NEXT = PatchKind(
    "llava_next",
    {},
    ProcessorKind(
        None, {"shortest_edge": 224}, 3, CLIP_MEAN, CLIP_STD, crops=True, do_center_crop=True
    ),
    pinpoints=[[336, 672], [672, 336], [672, 672], [1008, 336], [336, 1008]],
)
PATCH_KINDS = {
    # InternVL.
    "GotOcr2": PatchKind(
        "internvl",
        {"min_patches": 1, "max_patches": 12},
        KINDS["GotOcr2"],
        switch="crop_to_patches",
    ),
    "LlavaNext": _LLAVA_NEXT,
    "LlavaOnevision": replace(
        _LLAVA_NEXT,
        levels=ProcessorKind(None, {"height": 384, "width": 384}, 3, CLIP_MEAN, CLIP_STD),
        pinpoints=[[384 * rows, 384 * columns] for rows in range(1, 7) for columns in range(1, 7)],
    ),
    "Pix2Struct": PatchKind(
        "pix2struct",
        {"patch_size": 16, "max_patches": 2048},
        ProcessorKind(None, None, 2, HALVES, HALVES),
    ),
    "Qwen2VL": _QWEN,
    "Qwen2_5_VL": _QWEN,
    "Siglip2": PatchKind(
        "siglip2",
        {"patch_size": 16, "max_num_patches": 256},
        ProcessorKind(None, None, 2, HALVES, HALVES),
    ),
}
# Pixels of an image: the names in `size`, and those that come before it.
_AREAS = {"min_pixels": ("shortest_edge", 3136), "max_pixels": ("longest_edge", 1003520)}


def parameters(given: Mapping[str, Any], kind: PatchKind) -> dict[str, Any]:
    """The numbers of the operation for a config.

    Raises ``ValueError`` with the key, its value and the reason.
    """
    found: dict[str, Any] = {"style": kind.style}
    is_tiles = kind.operation == "tiles"
    if kind.style == "pix2struct":
        return found | _pix2struct(given, kind)
    for key, default in kind.numbers.items():
        name = key.replace("patches", "tiles") if is_tiles else key
        found[name] = _whole(key, given.get(key, default))
    if is_tiles:
        return found | _tiles(given, kind)
    return found | _areas(given) if kind.style == "qwen" else found


def _pix2struct(given: Mapping[str, Any], kind: PatchKind) -> dict[str, Any]:
    if given.get("is_vqa", False):
        raise ValueError("is_vqa=True", "a recipe cannot write the question above the image")
    side = given.get("patch_size", kind.numbers["patch_size"])
    if isinstance(side, Mapping):
        side = _side("patch_size", side, [{"height", "width"}])
    most = _whole("max_patches", given.get("max_patches", kind.numbers["max_patches"]))
    return {"patch_size": _whole("patch_size", side), "max_num_patches": most}


def _tiles(given: Mapping[str, Any], kind: PatchKind) -> dict[str, Any]:
    """The size of a tile, and the canvases."""
    whole = {"height", "width"}
    edges = [whole, {"shortest_edge"}] if kind.pinpoints else [whole]
    side = _side("size", given.get("size", kind.levels.size), edges)
    if not kind.pinpoints:
        return {"tile_size": side}
    crop = given.get("crop_size", kind.levels.crop if kind.levels.crops else None)
    if crop is not None and _side("crop_size", crop, [whole]) != side:
        raise ValueError(
            f"crop_size={crop!r}",
            f"it is not the size, which is {side}: give the processor the same number for both",
        )
    setting = given.get("aspect_ratio_setting", "anyres")
    if setting != "anyres":
        raise ValueError(f"aspect_ratio_setting={setting!r}", "tiles are made with anyres alone")
    points = given.get("image_grid_pinpoints", kind.pinpoints)
    if not isinstance(points, Sequence) or isinstance(points, str) or not points:
        raise ValueError(f"image_grid_pinpoints={points!r}", "it is no list of heights and widths")
    for point in points:
        if not isinstance(point, Sequence) or len(point) != 2:
            raise ValueError(f"image_grid_pinpoints with {point!r}", "it is no height and width")
        if any(_whole("image_grid_pinpoints", edge) % side for edge in point):
            raise ValueError(
                f"image_grid_pinpoints with {list(point)}",
                f"they are no multiples of the size of a tile, which is {side}: give the processor "
                "the size of the model's tiles, or other pinpoints",
            )
    return {"tile_size": side, "grid_pinpoints": [list(point) for point in points]}


def _side(key: str, value: Any, forms: Sequence[set[str]]) -> int:
    """The one side of a square. ``forms``: the keys that it may have."""
    is_known = isinstance(value, Mapping) and set(value) in forms
    sides = list(value.values()) if is_known else [value]
    if isinstance(sides[0], Mapping) or any(side != sides[0] for side in sides):
        raise ValueError(
            f"{key}={value!r}", "it must be a square: give height and width, both equal"
        )
    return _whole(key, sides[0])


def _areas(given: Mapping[str, Any]) -> dict[str, int]:
    """The bounds of the pixels of an image."""
    found = {}
    size = given.get("size", {})
    edges = {key: edge for key, (edge, _) in _AREAS.items()}
    is_known = isinstance(size, Mapping) and set(size) <= {*edges, *edges.values()}
    for key, (edge, default) in _AREAS.items():
        # A number beside `size` comes before it. transformers needs both edges, or neither.
        inside = size.get(edge, size.get(key)) if is_known else None
        if not is_known or (size and inside is None and key not in given):
            raise ValueError(
                f"size={size!r}",
                "it is not shortest_edge and longest_edge, each a number of pixels",
            )
        found[key] = _whole(key, given.get(key, default if inside is None else inside))
    return found


def _whole(key: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{key}={value!r}", "it is no whole number of at least 1")
    return value


def steps_text(kind: PatchKind) -> str:
    """The steps of a processor, for the docs."""
    silent = {"size", "crop_size", "aspect_ratio_setting", "is_vqa", kind.switch, *_NO_EFFECT}
    keys = ", ".join(f"`{key}`" for key in sorted(kind.keys - silent))
    normal = "standardise first" if kind.style == "pix2struct" else "normalise"
    steps = f"`{kind.operation}` of style {kind.style}: {keys}; {normal} if `do_normalize`"
    return f"if `{kind.switch}`: {steps}" if kind.switch else steps


def size_text(kind: PatchKind) -> str:
    """The default size, for the docs."""
    if kind.style == "qwen":
        return ", ".join(f"{edge} {default}" for edge, default in _AREAS.values())
    if kind.levels.size is not None:
        return ", ".join(f"{key} {value}" for key, value in kind.levels.size.items())
    key = "max_patches" if kind.style == "pix2struct" else "max_num_patches"
    return f"{key} {kind.numbers[key]}"
