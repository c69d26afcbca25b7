"""The size of rows, buckets and operations of a dataset. Reads no file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._values import shown
from ..samplers import Buckets
from ._config import Section, shared_value

# The arithmetic of the others differs from that of OpenCV and Pillow.
_INTERPOLATIONS = ("area", "lanczos")


def resolution_of(section: Section) -> tuple[int, int]:
    value = section.find("resolution")
    if value is None:
        raise section.refuse("resolution", "is missing: give one, such as 1024")
    width, height = value if isinstance(value, list) else (value, value)
    if min(width, height) < 1:
        raise section.refuse("resolution", f"is {shown(value)}: give positive numbers")
    return width, height


def _buckets(section: Section, resolution: tuple[int, int]) -> Buckets:
    """The sampler of ``enable_bucket``. Limits are rounded to steps as in sd-scripts."""
    step = section.find("bucket_reso_steps")
    if step < 1:
        raise section.refuse("bucket_reso_steps", f"is {step}: give at least 1, such as 64")
    least, most = section.find("min_bucket_reso"), section.find("max_bucket_reso")
    least, most = least - least % step, most + -most % step
    if min(resolution) < least:
        raise section.refuse(
            "min_bucket_reso", f"{least} is above resolution {min(resolution)}: lower it"
        )
    if max(resolution) > most:
        raise section.refuse(
            "max_bucket_reso", f"{most} is below resolution {max(resolution)}: raise it"
        )
    area = resolution[0] * resolution[1]
    if area < step * step:
        raise section.refuse("bucket_reso_steps", f"{step} is above resolution: lower it")
    if section.find("bucket_no_upscale"):
        return Buckets(area=area, step=step, style="sd-scripts", upscale=False)
    if least < 1:
        raise section.refuse(
            "min_bucket_reso", f"is below bucket_reso_steps {step}: give at least {step}"
        )
    return Buckets(area=area, step=step, style="sd-scripts", sides=(least, most))


def _interpolation(subsets: Sequence[Section]) -> str | None:
    value: str | None = shared_value(subsets, "resize_interpolation")
    if value is not None and value not in _INTERPOLATIONS:
        raise subsets[0].refuse(
            "resize_interpolation",
            f"{shown(value)} has no equivalent: remove it, or give 'area' or 'lanczos'",
        )
    return value


def row_operations(
    section: Section, subsets: Sequence[Section], resolution: tuple[int, int]
) -> tuple[Buckets | None, tuple[Mapping[str, Any], ...]]:
    """The sampler, and the operations of the recipe."""
    width, height = resolution
    size = [height, width]
    is_random, flips = bool(shared_value(subsets, "random_crop")), shared_value(subsets, "flip_aug")
    interpolation = _interpolation(subsets)
    crop: dict[str, Any] = {"size": size}
    buckets = None
    if section.find("enable_bucket"):
        buckets = _buckets(section, resolution)
        crop["place"] = "random" if is_random else "center"
    elif not is_random and width == height:
        # A ladder of one size: sd-scripts resizes to it as to a bucket when it caches latents.
        buckets = Buckets(area=width * width, step=width, style="sd-scripts", sides=(width, width))
    elif not is_random:
        interpolation = interpolation or "area"
    if interpolation is not None:
        crop["interpolation"] = interpolation
    cut: dict[str, Any] = {"cover_crop": crop}
    if is_random and buckets is None:
        # sd-scripts does not resize here.
        cut = {"random_crop": {"size": size}}
    # Pillow's ``convert("RGB")`` of the stored pixels.
    decode = {"mode": "full", "orientation": "stored", "alpha": "drop"}
    operations: list[dict[str, Any]] = [{"decode": decode}, cut]
    if flips:
        operations.append({"random_horizontal_flip": {"p": 0.5}})
    operations.append({"normalize": {"mean": [0.5] * 3, "std": [0.5] * 3}})
    return buckets, tuple(operations)
