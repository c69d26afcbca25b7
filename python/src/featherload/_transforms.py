"""Other people's transforms as recipes: torchvision (v1 and v2), Hugging Face's
``preprocessor_config.json``.

By exact types and public attributes; nothing is called. What cannot be translated is an error
that names it: a recipe that does something else would train another model.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from typing import Any

from ._errors import ConfigError

Op = dict[str, Any]
Recipe = dict[str, Any]

# How Pillow numbers its filters, which Hugging Face's files have.
_PILLOW_FILTERS = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic", 4: "area"}


class _Walk:
    """What is known of the values while a list of transforms is walked."""

    def __init__(self) -> None:
        self.is_tensor = False
        """Behind ToImage or ToTensor: torchvision's kernels instead of Pillow's."""
        self.is_float = False

    def ops(self, transform: Any) -> list[Op]:
        kind = type(transform)
        name = kind.__name__
        if kind.__module__.split(".")[:2] != ["torchvision", "transforms"]:
            raise _cannot(f"{kind.__module__}.{name}", "it is no class of torchvision.transforms")
        translate = _TRANSFORMS.get(name)
        if translate is None:
            raise _cannot(name, "no operation of a recipe does the same")
        return translate(self, transform)

    def all_of(self, transforms: Any) -> list[Op]:
        return [op for transform in transforms for op in self.ops(transform)]


def _cannot(what: str, why: str) -> ConfigError:
    return ConfigError(
        f"the transform {what} cannot be translated into a recipe: {why} (write a recipe: "
        "`featherload ops` lists the operations)",
        option="recipe",
    )


def translate(transforms: Any) -> Recipe:
    """The recipe of a Compose, a list of transforms, or a weights' ``transforms()``.

    Pictures are opened as ``torchvision.datasets.ImageFolder`` does: not turned by EXIF,
    transparency dropped.
    """
    walk = _Walk()
    given = list(transforms) if isinstance(transforms, (list, tuple)) else [transforms]
    ops = walk.all_of(given)
    ops.insert(0, {"decode": {"orientation": "stored", "alpha": "drop"}})
    if not walk.is_float:
        ops.append({"cast": {"dtype": "u8"}})
    ops.append({"layout": {"layout": "nchw"}})
    return {"featherload": 1, "name": "torchvision", "ops": ops}


def preprocessor(config: Mapping[str, Any] | str | os.PathLike[str]) -> Recipe:
    """The recipe of a Hugging Face ``preprocessor_config.json``: its path, its folder, or its
    contents (``AutoImageProcessor.from_pretrained(...).to_dict()``).
    """
    if isinstance(config, (str, os.PathLike)):
        path = os.fspath(config)
        if os.path.isdir(path):
            path = os.path.join(path, "preprocessor_config.json")
        with open(path, encoding="utf-8") as file:
            config = json.load(file)
    assert isinstance(config, Mapping)
    ops: list[Op] = [{"decode": {"orientation": "stored", "alpha": "drop"}}]
    filter = _PILLOW_FILTERS.get(config.get("resample", 2))
    if filter is None:
        raise _cannot(f"resample={config.get('resample')!r}", "it is no number of a Pillow filter")
    if config.get("do_resize", True):
        size = config.get("size")
        if size is None:
            raise _cannot("do_resize", "the config has no size")
        ratio = config.get("crop_pct")
        if isinstance(size, Mapping) and set(size) == {"height", "width"}:
            to: Any = [size["height"], size["width"]]
        elif isinstance(size, Mapping) and "shortest_edge" in size:
            to = size["shortest_edge"]
        elif isinstance(size, int):
            to = [size, size]
        else:
            raise _cannot(f"size={size!r}", "it is neither height and width nor shortest_edge")
        if ratio is not None and isinstance(to, int):
            # ConvNeXt: below 384 the shorter side becomes size / crop_pct, then the middle.
            if to < 384:
                shorter = int(to / ratio)
                ops.append({"resize": {"size": shorter, "interpolation": filter}})
                ops.append({"center_crop": {"size": [to, to]}})
            else:
                ops.append({"resize": {"size": [to, to], "interpolation": filter}})
        else:
            resize: Op = {"size": to, "interpolation": filter}
            if isinstance(size, Mapping) and "longest_edge" in size and isinstance(to, int):
                resize["max_size"] = size["longest_edge"]
            ops.append({"resize": resize})
    if config.get("do_center_crop", False):
        crop = config.get("crop_size", 224)
        if isinstance(crop, Mapping):
            crop = [crop["height"], crop["width"]]
        ops.append({"center_crop": {"size": crop if isinstance(crop, list) else [crop, crop]}})
    if config.get("do_rescale", True):
        factor = config.get("rescale_factor", 1 / 255)
        if abs(factor - 1 / 255) > 1e-9:
            raise _cannot(f"rescale_factor={factor}", "levels are divided by 255 in a recipe")
    elif config.get("do_normalize", True):
        raise _cannot("do_rescale=False", "normalize takes levels divided by 255")
    if config.get("do_normalize", True):
        ops.append({"normalize": {"mean": config["image_mean"], "std": config["image_std"]}})
    ops.append({"cast": {"dtype": "f32" if config.get("do_rescale", True) else "u8"}})
    ops.append({"layout": {"layout": "nchw"}})
    name = str(config.get("image_processor_type", "preprocessor"))
    return {"featherload": 1, "name": name, "ops": ops}


# Attributes, as recipes write them.


def _list(value: Any) -> Any:
    """Tuples and tensors as lists."""
    if hasattr(value, "tolist"):
        return value.tolist()
    return [_list(v) for v in value] if isinstance(value, (list, tuple)) else value


def _both(size: Any) -> list[int]:
    """Height and width."""
    values = [size] if isinstance(size, int) else list(size)
    return [int(v) for v in (values * 2 if len(values) == 1 else values)]


def _filter(t: Any) -> str:
    mode = getattr(t, "interpolation", "bilinear")
    name = str(getattr(mode, "value", mode))
    name = {"box": "area"}.get(name, name)
    if name not in _PILLOW_FILTERS.values():
        raise _cannot(f"{type(t).__name__}(interpolation={name})", "recipes have no such filter")
    return name


def _fill(t: Any) -> Any:
    fill = getattr(t, "fill", 0)
    if fill is None:
        return 0
    if isinstance(fill, (int, float)):
        return fill
    if isinstance(fill, (list, tuple)) and len(fill) in (1, 3):
        return list(fill)
    raise _cannot(f"{type(t).__name__}(fill={fill!r})", "a fill is one number or three")


def _probability(t: Any) -> float:
    return float(t.p)


def _resize(walk: _Walk, t: Any) -> list[Op]:
    size = t.size
    if isinstance(size, (list, tuple)):
        size = int(size[0]) if len(size) == 1 else [int(v) for v in size]
    op: Op = {"size": size, "interpolation": _filter(t)}
    if t.max_size is not None:
        op["max_size"] = t.max_size
    if walk.is_tensor and not t.antialias:
        op["antialias"] = False
    return [{"resize": op}]


def _random_resized_crop(walk: _Walk, t: Any) -> list[Op]:
    op: Op = {
        "size": _both(t.size),
        "scale": _list(t.scale),
        "ratio": _list(t.ratio),
        "interpolation": _filter(t),
    }
    if walk.is_tensor and not t.antialias:
        op["antialias"] = False
    return [{"random_resized_crop": op}]


def _random_crop(walk: _Walk, t: Any) -> list[Op]:
    op: Op = {"size": _both(t.size), "pad_if_needed": t.pad_if_needed, "fill": _fill(t)}
    if t.padding is not None:
        op["padding"] = _list(t.padding)
    op["padding_mode"] = _padding_mode(t)
    return [{"random_crop": op}]


def _padding_mode(t: Any) -> str:
    mode = str(t.padding_mode)
    if mode not in ("constant", "edge", "reflect"):
        raise _cannot(f"{type(t).__name__}(padding_mode={mode})", "recipes have no such mode")
    return mode


def _color_jitter(walk: _Walk, t: Any) -> list[Op]:
    op: Op = {"style": "tensor" if walk.is_tensor else "pillow"}
    for name in ("brightness", "contrast", "saturation", "hue"):
        value = getattr(t, name)
        if value is not None:
            op[name] = _list(value)
    return [{"color_jitter": op}]


def _rotation(walk: _Walk, t: Any) -> list[Op]:
    if t.center is not None:
        raise _cannot("RandomRotation(center=...)", "a recipe turns about the middle")
    op = {
        "degrees": _list(t.degrees),
        "interpolation": _filter(t),
        "expand": bool(t.expand),
        "fill": _fill(t),
    }
    return [{"random_rotation": op}]


def _affine(walk: _Walk, t: Any) -> list[Op]:
    op: Op = {"degrees": _list(t.degrees), "interpolation": _filter(t), "fill": _fill(t)}
    for name in ("translate", "scale", "shear", "center"):
        if getattr(t, name) is not None:
            op[name] = _list(getattr(t, name))
    return [{"random_affine": op}]


def _to_dtype(walk: _Walk, t: Any) -> list[Op]:
    name = str(t.dtype).rsplit(".", 1)[-1]
    scale = getattr(t, "scale", True)
    if name == "uint8" and not walk.is_float:
        return []
    if name != "float32" or not scale:
        raise _cannot(
            f"{type(t).__name__}({name}, scale={scale})",
            "a recipe has float32 with scale=True; give Loader another dtype",
        )
    return _to_float(walk)


def _to_float(walk: _Walk) -> list[Op]:
    if walk.is_float:
        return []
    walk.is_float = walk.is_tensor = True
    return [{"cast": {"dtype": "f32"}}]


def _to_tensor(walk: _Walk, t: Any) -> list[Op]:
    return _to_float(walk)


def _to_image(walk: _Walk, t: Any) -> list[Op]:
    walk.is_tensor = True
    return []


def _nothing(walk: _Walk, t: Any) -> list[Op]:
    return []


def _normalize(walk: _Walk, t: Any) -> list[Op]:
    if not walk.is_float:
        raise _cannot(
            "Normalize", "it stands on levels: put ToDtype(float32, scale=True) before it"
        )
    return [{"normalize": {"mean": _list(t.mean), "std": _list(t.std)}}]


def _erasing(walk: _Walk, t: Any) -> list[Op]:
    op: Op = {"p": _probability(t), "scale": _list(t.scale), "ratio": _list(t.ratio)}
    value = _list(t.value)
    op["value"] = "random" if value in (None, "random") else value
    return [{"random_erasing": op}]


def _preset(walk: _Walk, t: Any) -> list[Op]:
    """``weights.transforms()`` of a classifier."""
    resize = {"size": _list(t.resize_size), "interpolation": _filter(t)}
    if isinstance(resize["size"], list) and len(resize["size"]) == 1:
        resize["size"] = resize["size"][0]
    walk.is_float = walk.is_tensor = True
    return [
        {"resize": resize},
        {"center_crop": {"size": _both(t.crop_size)}},
        {"normalize": {"mean": _list(t.mean), "std": _list(t.std)}},
        {"cast": {"dtype": "f32"}},
    ]


def _policy(walk: _Walk, t: Any) -> list[Op]:
    name = getattr(t.policy, "value", str(t.policy))
    if name != "imagenet":
        raise _cannot(f"AutoAugment({name})", "recipes have the policy imagenet")
    return [{"auto_augment": {}}]


def _rand_augment(walk: _Walk, t: Any) -> list[Op]:
    if t.num_magnitude_bins != 31:
        raise _cannot(
            f"RandAugment(num_magnitude_bins={t.num_magnitude_bins})", "recipes have 31 strengths"
        )
    op = {
        "num_ops": t.num_ops,
        "magnitude": t.magnitude,
        "interpolation": _filter(t),
        "fill": _fill(t),
    }
    return [{"rand_augment": op}]


def _trivial_augment(walk: _Walk, t: Any) -> list[Op]:
    if t.num_magnitude_bins != 31:
        raise _cannot(
            f"TrivialAugmentWide(num_magnitude_bins={t.num_magnitude_bins})",
            "recipes have 31 strengths",
        )
    return [{"trivial_augment": {"interpolation": _filter(t), "fill": _fill(t)}}]


def _apply(walk: _Walk, t: Any) -> list[Op]:
    return [{"random_apply": {"transforms": walk.all_of(t.transforms), "p": _probability(t)}}]


def _choice(walk: _Walk, t: Any) -> list[Op]:
    op: Op = {"transforms": [_one(walk, inner) for inner in t.transforms]}
    if getattr(t, "p", None) is not None:
        op["p"] = [float(p) for p in t.p]
    return [{"random_choice": op}]


def _one(walk: _Walk, transform: Any) -> Op:
    ops = walk.ops(transform)
    if len(ops) != 1:
        return {"random_apply": {"transforms": ops, "p": 1}}
    return ops[0]


def _same(name: str, **attributes: Callable[[Any], Any]) -> Callable[[_Walk, Any], list[Op]]:
    """An operation whose numbers are attributes of the same names."""

    def translate(walk: _Walk, t: Any) -> list[Op]:
        return [{name: {key: read(t) for key, read in attributes.items()}}]

    return translate


def _get(name: str) -> Callable[[Any], Any]:
    return lambda t: _list(getattr(t, name))


_TRANSFORMS: dict[str, Callable[[_Walk, Any], list[Op]]] = {
    "AutoAugment": _policy,
    "CenterCrop": _same("center_crop", size=lambda t: _both(t.size)),
    "ColorJitter": _color_jitter,
    "Compose": lambda walk, t: walk.all_of(t.transforms),
    "ConvertImageDtype": _to_dtype,
    "ElasticTransform": _same(
        "elastic_transform",
        alpha=_get("alpha"),
        sigma=_get("sigma"),
        interpolation=_filter,
        fill=_fill,
    ),
    "GaussianBlur": _same(
        "gaussian_blur",
        kernel_size=lambda t: list(reversed(_both(t.kernel_size))),
        sigma=_get("sigma"),
    ),
    "Grayscale": _same("grayscale", num_output_channels=_get("num_output_channels")),
    "Identity": _nothing,
    "ImageClassification": _preset,
    "Normalize": _normalize,
    "PILToTensor": _to_image,
    "Pad": _same("pad", padding=_get("padding"), fill=_fill, padding_mode=_padding_mode),
    "RGB": _nothing,
    "RandAugment": _rand_augment,
    "RandomAdjustSharpness": _same(
        "random_adjust_sharpness", sharpness_factor=_get("sharpness_factor"), p=_probability
    ),
    "RandomAffine": _affine,
    "RandomApply": _apply,
    "RandomAutocontrast": _same("random_autocontrast", p=_probability),
    "RandomChoice": _choice,
    "RandomCrop": _random_crop,
    "RandomEqualize": _same("random_equalize", p=_probability),
    "RandomErasing": _erasing,
    "RandomGrayscale": _same("random_grayscale", p=_probability),
    "RandomHorizontalFlip": _same("random_horizontal_flip", p=_probability),
    "RandomInvert": _same("random_invert", p=_probability),
    "RandomOrder": lambda walk, t: [
        {"random_order": {"transforms": [_one(walk, inner) for inner in t.transforms]}}
    ],
    "RandomPerspective": _same(
        "random_perspective",
        distortion_scale=_get("distortion_scale"),
        p=_probability,
        interpolation=_filter,
        fill=_fill,
    ),
    "RandomPosterize": _same("random_posterize", bits=_get("bits"), p=_probability),
    "RandomResizedCrop": _random_resized_crop,
    "RandomRotation": _rotation,
    "RandomSolarize": _same("random_solarize", threshold=_get("threshold"), p=_probability),
    "RandomVerticalFlip": _same("random_vertical_flip", p=_probability),
    "RandomZoomOut": _same(
        "random_zoom_out", fill=_fill, side_range=_get("side_range"), p=_probability
    ),
    "Resize": _resize,
    "ToDtype": _to_dtype,
    "ToImage": _to_image,
    "ToPureTensor": _nothing,
    "ToTensor": _to_tensor,
    "TrivialAugmentWide": _trivial_augment,
}
