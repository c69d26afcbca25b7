"""Image processors of vision-language models, which cut images into patches, as recipes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ._image_processors import CLIP_MEAN, CLIP_STD, HALVES, ProcessorKind


@dataclass(frozen=True)
class PatchKind:
    """How a class of image processor interprets its config."""

    style: Literal["qwen", "siglip2"]
    numbers: Mapping[str, int]
    """Keys that are parameters of the operation, with the defaults of the class."""
    levels: ProcessorKind
    """Filter, mean and deviation."""

    @property
    def keys(self) -> set[str]:
        """All keys that change pixels."""
        areas = {"size", "min_pixels", "max_pixels"} if self.style == "qwen" else set()
        return {*self.numbers, *areas}


_QWEN = PatchKind(
    "qwen",
    {"patch_size": 14, "temporal_patch_size": 2, "merge_size": 2},
    ProcessorKind(None, None, 3, CLIP_MEAN, CLIP_STD),
)
PATCH_KINDS = {
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
    for key, default in kind.numbers.items():
        found[key] = _whole(key, given.get(key, default))
    if kind.style != "qwen":
        return found
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
    keys = ", ".join(f"`{key}`" for key in sorted(kind.keys - {"size"}))
    return f"`patches` of style {kind.style}: {keys}; normalise if `do_normalize`"


def size_text(kind: PatchKind) -> str:
    """The default size, for the docs."""
    if kind.style == "qwen":
        return ", ".join(f"{edge} {default}" for edge, default in _AREAS.values())
    return f"max_num_patches {kind.numbers['max_num_patches']}"
