"""Hugging Face's ``preprocessor_config.json`` as a recipe.

A config has the keywords of a class, and each class interprets them in its own way. So only the
classes of one table are translated, and an unknown key or value is an error.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import Any

from . import _patch_processors
from ._errors import ConfigError, DatasetError
from ._image_processors import KINDS, ProcessorKind
from ._patch_processors import PATCH_KINDS, PatchKind
from ._transforms import Op, Recipe, as_opened, cannot

# Pillow's numbers of the filters of recipes. 0 (nearest) is left out: for it, transformers takes
# other pixels with torch than with Pillow. Recipes have no 4 (box) and 5 (hamming).
_FILTERS = {1: "lanczos", 2: "bilinear", 3: "bicubic"}
_SUFFIXES = (
    "ImageProcessorFast",
    "ImageProcessorPil",
    "ImageProcessor",
    "FeatureExtractor",
)

# Keys that change no pixel of a colour image.
_NO_PIXELS = {
    "do_convert_rgb",
    "do_reduce_labels",
    "feature_extractor_type",
    "image_processor_type",
    "processor_class",
    "reduce_labels",
    "_valid_processor_keys",
}
_INSTEAD = {
    "VitPose": "it cuts the box of each person out of the image, and no operation does that",
}
# Keys of detectors alone.
_OF_DETECTORS = {"do_convert_annotations", "format", "pad_and_return_pixel_mask"}
# Keys of processors that pad a batch.
_OF_PADDING = {"max_size", "pad_size"}
# Steps that processors of patches do not have. Their saved configs may have the keys.
_OFF = {"do_pad", "do_center_crop"}
_READ = {
    "crop_pct",
    "crop_size",
    "data_format",
    "default_to_square",
    "do_center_crop",
    "do_flip_channel_order",
    "do_normalize",
    "do_pad",
    "do_rescale",
    "do_resize",
    "image_mean",
    "image_std",
    "include_top",
    "resample",
    "rescale_factor",
    "rescale_offset",
    "size",
}


def preprocessor(config: Any) -> Recipe:
    """The recipe of an image processor of Hugging Face: of the object, of its
    ``preprocessor_config.json`` (the file's path, its folder, or its contents), or of the model's
    name on the hub.

    A name is looked up by the package ``huggingface_hub``, in its cache or on the network. Raises
    ``ConfigError`` for an unsupported processor and for an unknown key or value, and
    ``DatasetError`` for a missing file.
    """
    if is_processor(config):
        config = _of_object(config)
    elif isinstance(config, (str, os.PathLike)):
        config = _read(_local_path(os.fspath(config)))
    if not isinstance(config, Mapping):
        raise ConfigError(
            "a config of Hugging Face is an image processor, a path, a model's name or a dict, but "
            f"this is a {type(config).__name__}: give one of them",
            option="recipe",
        )
    # A key with null is a missing key: classes use their default for it.
    given = {str(key): value for key, value in config.items() if value is not None}
    name, stem = _name(given)
    cut = PATCH_KINDS.get(stem)
    if cut is not None and (cut.switch is None or _flag(given, cut.switch, False)):
        return _patched(given, name, cut)
    kind = _kind(name, stem)
    for key, value in given.items():
        if key not in _READ | _NO_PIXELS | _keys(kind):
            raise _cannot(f"{key}={value!r} of {name}", "the key is unknown")
    # Further operations. A key that a class does not know has no effect in one version of
    # transformers, and an effect in another.
    if kind.annotates:
        _check_annotations(given, name, kind)
    elif _flag(given, "do_pad", False) and _edges(given, kind) is None:
        raise _cannot(
            f"do_pad of {name}", "a recipe cannot pad in that way: give the processor do_pad=False"
        )
    for key, why in [
        ("do_split_image", "an image would become several rows"),
        ("keep_aspect_ratio", "images would have several sizes"),
    ]:
        if _flag(given, key, False):
            raise _cannot(f"{key}=True of {name}", f"{why}: give the processor {key}=False")
    if kind.fixed:
        _check_size(given, name, kind)
    if given.get("data_format", "channels_first") != "channels_first":
        raise _cannot(
            f"data_format={given['data_format']!r} of {name}", "batches are N x C x H x W"
        )

    for key, has in [
        ("crop_pct", kind.crop_pct is not None or kind.enlarged is not None),
        ("do_flip_channel_order", kind.flips),
        ("include_top", kind.standardises),
        ("rescale_offset", kind.standardises),
    ]:
        if key in given and not has:
            raise _cannot(f"{key} of {name}", f"only {_with(key)} has it")
    ops: list[Op] = [as_opened()]
    if _flag(given, "do_flip_channel_order", kind.flips):
        ops[0]["decode"]["color"] = "bgr"
    if kind.floats:
        ops.append({"cast": {"dtype": "f32"}})
    edges = _edges(given, kind)
    ops += _steps(given, name, kind) if edges is None else _padded(given, name, kind, *edges)
    ops.append({"layout": {"layout": "nchw"}})
    return {"featherload": 1, "name": name, "ops": ops}


def _patched(given: Mapping[str, Any], name: str, kind: PatchKind) -> Recipe:
    """The recipe of a processor that makes patches or tiles."""
    read = {"data_format", "do_normalize", "do_rescale", "do_resize", "image_mean", "image_std"}
    read |= {"resample", "rescale_factor"}
    if kind.style == "pix2struct":
        read = {"do_normalize"}
    read |= {*_NO_PIXELS, *kind.keys}
    for key, value in given.items():
        is_off = key in _OFF and value is False
        if key not in read and not is_off and key != "default_to_square":
            raise _cannot(f"{key}={value!r} of {name}", "the key is unknown")
    if not _flag(given, "do_resize", True):
        raise _cannot(
            f"do_resize=False of {name}", f"images must be resized to whole {kind.operation}"
        )
    for key in sorted(kind.keys & _OFF):
        _flag(given, key, True)
    if given.get("data_format", "channels_first") != "channels_first":
        raise _cannot(
            f"data_format={given['data_format']!r} of {name}", "the order of values is the model's"
        )
    try:
        numbers = _patch_processors.parameters(given, kind)
    except ValueError as error:
        what, why = error.args
        raise _cannot(f"{what} of {name}", why) from None
    if kind.style == "pix2struct":
        # It resizes values, not levels, and does not divide by 255.
        ops = [as_opened(), {"standardize": {}}, {"patches": numbers}]
        if not _flag(given, "do_normalize", True):
            whole: Op = {"normalize": {"mean": [0.0] * 3, "std": [1 / 255] * 3}}
            ops = [as_opened(), {"cast": {"dtype": "f32"}}, {"patches": numbers}, whole]
        return {"featherload": 1, "name": name, "ops": ops}
    numbers["interpolation"] = _filter(given, name, kind.levels)
    ops = [as_opened(), {kind.operation: numbers}, *_levels(given, name, kind.levels)]
    return {"featherload": 1, "name": name, "ops": ops}


def _padded(
    given: Mapping[str, Any], name: str, kind: ProcessorKind, shortest: int, longest: int
) -> list[Op]:
    """The steps of a processor that resizes to edges and pads."""
    [resize] = _resize(given, name, kind, shortest)
    resize["resize"].update(max_size=longest, rounding="detr")
    pad: Op = {"pad_to": {"size": [longest, longest]}}
    levels = _levels(given, name, kind)
    # EoMT pads levels. The others pad values after they are normalised.
    return [resize, pad, *levels] if kind.pads_levels else [resize, *levels, pad]


def _steps(given: Mapping[str, Any], name: str, kind: ProcessorKind) -> list[Op]:
    """The steps of other processors."""
    ops: list[Op] = []
    size = None
    if _flag(given, "do_resize", True):
        size = _size(given, name, kind)
        ops += _resize(given, name, kind, size)
    if _flag(given, "do_center_crop", kind.do_center_crop, name):
        if not kind.crops:
            raise _cannot(
                f"do_center_crop of {name}", "versions of transformers differ in whether it crops"
            )
        ops.append(_center_crop(given, name, kind, size))
    return ops + _levels(given, name, kind)


def steps_text(kind: ProcessorKind) -> str:
    """The steps of a processor, for the docs."""
    steps = []
    if kind.levit:
        steps.append("256/224 of the shorter side")
    if kind.enlarged is not None:
        steps.append("size / `crop_pct`")
    if kind.crop_pct is not None:
        steps.append("below 384 pixels: size / `crop_pct`, then a crop")
    if kind.fixed:
        what = " of floats" if kind.floats else ""
        what += "" if kind.antialias else " without antialias"
        end = ", up to multiples of `size_divisor`" if kind.divisor is not None else ""
        end += ", to multiples of `ensure_multiple_of`" if kind.multiples else ""
        steps.append(f"resize{what} to a fixed `size`: height and width{end}")
        if kind.pads or kind.pads_levels:
            of = " if `do_pad`" if kind.pads_levels else ""
            steps.append(f"or to edges, with a border{of}")
    else:
        steps.append("resize of floats" if kind.floats else "resize")
    if kind.crops:
        crop = {True: "crop", False: "crop if `do_center_crop`"}.get(kind.do_center_crop or False)
        steps.append(str(crop))
    if kind.flips:
        steps.append("blue first")
    else:
        steps.append("normalise" if kind.normalizes else "normalise if `do_normalize`")
    if kind.standardises:
        steps.append("`include_top`, `rescale_offset`")
    if kind.resample is None:
        steps.append("the config must have `resample`")
    return "; ".join(steps)


def with_style(recipe: Any, objects: Any) -> Any:
    """The keyword ``objects`` with the style of the recipe, if that is a detector's processor and
    ``objects`` names no style.
    """
    if objects is None or not is_processor(recipe):
        return objects
    rule = dict(objects) if isinstance(objects, Mapping) else {"files": objects}
    name = type(_inner(recipe)).__name__
    known = KINDS.get(_name({"image_processor_type": name})[1])
    if rule.get("style") is None and known is not None and known.annotates:
        rule["style"] = "hf"
    return rule


def with_labels(recipe: Any, masks: Any) -> Any:
    """The keyword ``masks`` with the rules of the recipe, if that is an image processor: which
    label a resized pixel takes, and whether labels are reduced. Rules that ``masks`` has stay.
    """
    if masks is None or not is_processor(recipe):
        return masks
    rule = dict(masks) if isinstance(masks, Mapping) else {"files": masks}
    processor = _inner(recipe)
    name = type(processor).__name__
    ignored = getattr(processor, "ignore_index", None)
    reduces = bool(getattr(processor, "do_reduce_labels", False))
    if name.startswith("Eomt"):
        reduces = ignored is not None
    wanted = {"filter": "center", "ignore": ignored}
    if reduces:
        wanted |= {"reduce_zero_label": True, "ignore": 255 if ignored is None else ignored}
    for field, value in wanted.items():
        if rule.get(field) is None and value is not None:
            rule[field] = value
    return rule


def is_processor(value: Any) -> bool:
    """Whether it is an image processor of transformers, or a processor that has one."""
    module = type(value).__module__.split(".")[0]
    return module == "transformers" and hasattr(value, "to_dict")


def _inner(processor: Any) -> Any:
    """The image processor of a processor of images and texts, or the given one."""
    return getattr(processor, "image_processor", processor)


def _of_object(whole: Any) -> Any:
    processor = _inner(whole)
    if not hasattr(processor, "to_json_string"):
        raise _cannot(type(processor).__name__, "it is no image processor")
    config = json.loads(processor.to_json_string())
    # A processor of images and texts calls its image processor with these, whatever that has.
    # Older versions of transformers have no such attribute.
    cuts = type(whole).__name__ in ("InternVLProcessor", "AyaVisionProcessor")
    older = {"crop_to_patches": True} if cuts else {}
    fixed = getattr(whole, "images_kwargs", older)
    return config | {key: value for key, value in fixed.items() if key in config}


def _local_path(path: str) -> str:
    """The path, or that of the config of a model with this name."""
    if os.path.exists(path) or not re.fullmatch(r"[\w.-]+/[\w.-]+", path):
        return path
    try:
        from huggingface_hub import hf_hub_download
    except ImportError:
        return path
    try:
        return str(hf_hub_download(path, "preprocessor_config.json"))
    except Exception as error:
        raise DatasetError(
            f"{path} is no path, and the hub's config of a model with this name cannot be read: "
            f"{str(error).splitlines()[0]}",
            path=path,
        ) from error


def _with(key: str) -> str:
    """The processors that have a key."""
    names = {
        "crop_pct": [n for n, k in KINDS.items() if k.crop_pct or k.enlarged],
        "do_flip_channel_order": [n for n, k in KINDS.items() if k.flips],
    }.get(key, [n for n, k in KINDS.items() if k.standardises])
    return " or ".join(f"{name}ImageProcessor" for name in sorted(set(names)))


def _read(path: str) -> Any:
    if os.path.isdir(path):
        path = os.path.join(path, "preprocessor_config.json")
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except OSError as error:
        raise DatasetError(
            f"{path} cannot be read: {error.strerror}. Give the config's path, the model's folder, "
            "or AutoImageProcessor.from_pretrained(...).to_dict()",
            path=path,
        ) from error
    except ValueError as error:
        raise ConfigError(f"{path} is not JSON: {error}", path=path, option="recipe") from error


def _name(config: Mapping[str, Any]) -> tuple[str, str]:
    """The name of the processor, and that of its model."""
    name = config.get("image_processor_type", config.get("feature_extractor_type"))
    if name is None:
        raise _cannot(
            "a config without image_processor_type",
            "the meaning of keys depends on the processor; give "
            "AutoImageProcessor.from_pretrained(...).to_dict(), which has the type",
        )
    name = str(name)
    suffix = next((suffix for suffix in _SUFFIXES if name.endswith(suffix)), "")
    return name, name.removesuffix(suffix)


def _kind(name: str, stem: str) -> ProcessorKind:
    """The rules of a processor."""
    kind = KINDS.get(stem)
    if kind is None:
        instead = _INSTEAD.get(stem)
        if instead is not None:
            raise _cannot(name, instead)
        known = ", ".join(sorted({*KINDS, *PATCH_KINDS}))
        raise _cannot(name, f"supported are the image processors of {known}")
    return kind


def _flag(config: Mapping[str, Any], key: str, default: bool | None, name: str = "") -> bool:
    value = config.get(key, default)
    if value is None:
        raise _cannot(f"{name} without {key}", "versions of transformers have different defaults")
    if not isinstance(value, bool):
        raise _cannot(f"{key}={value!r}", "it is neither true nor false")
    return value


def _size(config: Mapping[str, Any], name: str, kind: ProcessorKind) -> int | list[int]:
    """The shorter side, or height and width."""
    size = config.get("size", kind.size)
    if size is None:
        raise _cannot(f"{name} without size", "versions of transformers have different defaults")
    if _whole(size):
        square = {"square": True, "shorter": False}.get(kind.number or "")
        if square is None or config.get("default_to_square", square) is not square:
            raise _cannot(
                f"size={size!r} of {name}",
                "versions of transformers read one number differently; write height and width, "
                "or shortest_edge",
            )
        return [int(size), int(size)] if square else int(size)
    keys = set(size) if isinstance(size, Mapping) else set()
    if keys == {"shortest_edge"} and _whole(size["shortest_edge"]):
        return int(size["shortest_edge"])
    if keys == {"height", "width"} and kind.crop_pct is None and all(map(_whole, size.values())):
        return _rounded([int(size["height"]), int(size["width"])], config, name, kind)
    raise _cannot(
        f"size={size!r} of {name}",
        "it is not shortest_edge"
        if kind.crop_pct is not None
        else "it is neither height and width nor shortest_edge",
    )


def _keys(kind: ProcessorKind) -> set[str]:
    """Keys that only some processors have."""
    keys = set(kind.keys)
    if kind.annotates:
        keys |= _OF_DETECTORS
    if kind.annotates or kind.divisor is not None:
        keys |= _OF_PADDING
    if kind.divisor is not None:
        keys.add("size_divisor")
    if kind.multiples:
        # size_divisor is of do_pad, which is rejected.
        keys |= {"ensure_multiple_of", "keep_aspect_ratio", "size_divisor"}
    return keys


def _check_size(config: Mapping[str, Any], name: str, kind: ProcessorKind) -> None:
    """Raises an error unless all rows have one size without padding."""
    size = config.get("size", kind.size)
    edges = size if isinstance(size, Mapping) else {}
    if (both := _edges(config, kind)) is not None:
        if kind.pads_levels and both[0] != both[1]:
            raise _cannot(
                f"size={size!r} of {name}",
                "tall images would not fit: give the processor the same number for both edges",
            )
        _check_padding(config, name)
        return
    is_fixed = set(edges) == {"height", "width"} and all(map(_whole, edges.values()))
    if not is_fixed or not _flag(config, "do_resize", True):
        what = f"size={size!r}" if not is_fixed else "do_resize=False"
        raise _cannot(
            f"{what} of {name}",
            "images would have several sizes, and be padded to the largest of their batch: give "
            f"the processor a fixed size, such as {name}.from_pretrained(..., do_resize=True, "
            "size={'height': 800, 'width': 800})",
        )
    height, width = _rounded([int(edges["height"]), int(edges["width"])], config, name, kind)
    pad = config.get("pad_size")
    wanted = {"height": height, "width": width}
    if pad is not None and dict(pad) != wanted and _flag(config, "do_pad", True):
        raise _cannot(
            f"pad_size={pad!r} of {name}",
            f"rows have the size {wanted!r}: give the processor the same pad_size, or None",
        )


def _edges(config: Mapping[str, Any], kind: ProcessorKind) -> tuple[int, int] | None:
    """Shortest and longest edge, if the processor resizes to them and pads. None: another size."""
    if not _flag(config, "do_resize", True):
        return None
    size = config.get("size", kind.size)
    if _whole(size):
        # As in the configs of transformers 4.
        size = {"shortest_edge": size, "longest_edge": config.get("max_size", 1333)}
    pads = kind.pads or (kind.pads_levels and _flag(config, "do_pad", False))
    names = ("shortest_edge", "longest_edge")
    if not pads or not isinstance(size, Mapping) or set(size) != set(names):
        return None
    shortest, longest = (size[name] for name in names)
    is_valid = _whole(shortest) and _whole(longest) and 0 < shortest <= longest
    return (shortest, longest) if is_valid else None


def _check_padding(config: Mapping[str, Any], name: str) -> None:
    """Raises an error unless a batch is padded to its largest image."""
    if config.get("pad_size") is not None:
        raise _cannot(
            f"pad_size={config['pad_size']!r} of {name}",
            "batches end with their largest image: give the processor pad_size=None, or a fixed "
            "size",
        )
    if not _flag(config, "do_pad", _flag(config, "pad_and_return_pixel_mask", True)):
        raise _cannot(
            f"do_pad=False of {name}",
            "a batch has rows of one size: give the processor do_pad=True, or a fixed size",
        )


def _rounded(
    size: list[int], config: Mapping[str, Any], name: str, kind: ProcessorKind
) -> list[int]:
    """Height and width as multiples of the config's number."""
    if kind.divisor is None and not kind.multiples:
        return size
    key = "ensure_multiple_of" if kind.multiples else "size_divisor"
    step = config.get(key, 1 if kind.multiples else kind.divisor)
    if not _whole(step) or (step == 0 and kind.multiples):
        raise _cannot(f"{key}={step!r} of {name}", "it is no whole number: give one of at least 1")
    if kind.multiples:
        size = [round(side / step) * step for side in size]
        if 0 in size:
            raise _cannot(
                f"{key}={step} of {name}", "a side would have no pixel: give a smaller number"
            )
        return size
    return [-(-side // step) * step for side in size] if step else size


def _check_annotations(config: Mapping[str, Any], name: str, kind: ProcessorKind) -> None:
    """Raises an error unless objects are as ``targets="detr"``."""
    if config.get("format", "coco_detection") != "coco_detection":
        raise _cannot(
            f"format={config['format']!r} of {name}",
            "objects are boxes of COCO: give the processor format='coco_detection'",
        )
    # Without the key, classes whose images are normalised by default follow do_normalize.
    converts = not kind.normalizes or _flag(config, "do_normalize", True)
    if not _flag(config, "do_convert_annotations", converts):
        raise _cannot(
            f"do_convert_annotations=False of {name}",
            "targets='detr' has boxes as shares of the sides: give the processor "
            "do_convert_annotations=True",
        )


def _resize(
    config: Mapping[str, Any], name: str, kind: ProcessorKind, size: int | list[int]
) -> list[Op]:
    filter = _filter(config, name, kind)
    if kind.levit and isinstance(size, int):
        size = int((256 / 224) * size)
    part = config.get("crop_pct", kind.crop_pct if kind.enlarged is None else kind.enlarged)
    if part is None:
        whole: Op = {"size": size, "interpolation": filter}
        return [{"resize": whole if kind.antialias else {**whole, "antialias": False}}]
    if isinstance(part, bool) or not isinstance(part, (int, float)) or not 0 < part <= 1:
        raise _cannot(f"crop_pct={part!r} of {name}", "it must be above 0, at most 1")
    if kind.enlarged is not None:
        if isinstance(size, list) and size[0] == size[1]:
            # A square is its shorter side.
            size = size[0]
        larger = int(size / part) if isinstance(size, int) else [int(v / part) for v in size]
        return [{"resize": {"size": larger, "interpolation": filter}}]
    if not isinstance(size, int) or size >= 384:
        size = [size, size] if isinstance(size, int) else size
        return [{"resize": {"size": size, "interpolation": filter}}]
    return [
        {"resize": {"size": int(size / part), "interpolation": filter}},
        {"center_crop": {"size": [size, size], "rounding": "down"}},
    ]


def _filter(config: Mapping[str, Any], name: str, kind: ProcessorKind) -> str:
    """The interpolation."""
    number = config.get("resample", kind.resample)
    if number is None:
        raise _cannot(
            f"{name} without resample", "versions of transformers have different defaults"
        )
    filter = _FILTERS.get(number) if _whole(number) else None
    if filter is None:
        raise _cannot(
            f"resample={number!r} of {name}",
            "recipes have Pillow's filters 1 (lanczos), 2 (bilinear) and 3 (bicubic)",
        )
    return filter


def _center_crop(
    config: Mapping[str, Any], name: str, kind: ProcessorKind, size: int | list[int] | None
) -> Op:
    given = config.get("crop_size", kind.crop)
    if _whole(given):
        crop = [int(given), int(given)]
    elif (
        isinstance(given, Mapping)
        and set(given) == {"height", "width"}
        and all(map(_whole, given.values()))
    ):
        crop = [int(given["height"]), int(given["width"])]
    else:
        raise _cannot(
            f"crop_size={given!r} of {name}", "it is neither a number nor height and width"
        )
    least = [size, size] if isinstance(size, int) else size
    if least is not None and (crop[0] > least[0] or crop[1] > least[1]):
        raise _cannot(
            f"crop_size={given!r} of {name}", "it is larger than size, so it would be padded"
        )
    # transformers rounds half of an odd margin down. Its versions differ in the position of the odd
    # pixel of a border.
    return {"center_crop": {"size": crop, "rounding": "down", "pad_if_needed": False}}


def _levels(config: Mapping[str, Any], name: str, kind: ProcessorKind) -> list[Op]:
    rescales = _flag(config, "do_rescale", True)
    # MobileViT has the key and does not read it.
    normalizes = not kind.flips and _flag(config, "do_normalize", kind.normalizes)
    divides = kind.standardises and _flag(config, "include_top", True)
    offset = 1.0 if kind.standardises and _flag(config, "rescale_offset", False) else 0.0
    factor = config.get("rescale_factor", 1 / 255)
    if not rescales:
        if normalizes or divides or kind.floats:
            raise _cannot(f"do_rescale=False of {name}", "normalize needs levels divided by 255")
        return [{"cast": {"dtype": "u8"}}]
    is_usual = isinstance(factor, float) and abs(factor - 1 / 255) <= 1e-9
    if not is_usual and (not kind.standardises or not isinstance(factor, float) or factor <= 0):
        raise _cannot(f"rescale_factor={factor!r}", "a recipe always divides levels by 255")
    # Of levels divided by 255. All that the class does is one normalize.
    unit = 1.0 if is_usual else 255.0 * factor
    mean, std = [0.0] * 3, [1.0] * 3
    deviation = _channels(config, "image_std", kind.std, name) if normalizes or divides else std
    if normalizes:
        mean, std = _channels(config, "image_mean", kind.mean, name), deviation
    if divides:
        std = [a * b for a, b in zip(std, deviation, strict=True)]
    mean = [(v + offset) / unit for v in mean]
    std = [v / unit for v in std]
    ops: list[Op] = []
    if (mean, std) != ([0.0] * 3, [1.0] * 3) or normalizes:
        ops.append({"normalize": {"mean": mean, "std": std}})
    return [*ops, {"cast": {"dtype": "f32"}}]


def _channels(config: Mapping[str, Any], key: str, default: list[float], name: str) -> list[float]:
    value = config.get(key, default)
    values = [value] * 3 if isinstance(value, (int, float)) else value
    if (
        not isinstance(values, (list, tuple))
        or len(values) != 3
        or not all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values)
    ):
        raise _cannot(f"{key}={value!r} of {name}", "it is neither one number nor three")
    return [float(v) for v in values]


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _cannot(what: str, why: str) -> ConfigError:
    return cannot(what, why, "Hugging Face's")
