"""torchvision's transforms (v1 and v2) as recipes.

Reads types and public attributes; calls nothing. A class of one's own counts as the torchvision
class that it inherits from, if it overrides nothing. A transform that cannot be translated is an
error that names it, because another recipe would train another model.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ._errors import ConfigError
from ._values import shown

Op = dict[str, Any]
Recipe = dict[str, Any]

_FILTERS = ("nearest", "bilinear", "bicubic", "lanczos")
_NUMBERED_FILTERS = {
    "0": "nearest",
    "1": "lanczos",
    "2": "bilinear",
    "3": "bicubic",
    "4": "box",
    "5": "hamming",
}

# Operations on levels, 0 to 255, only. On floats, torchvision computes them in another way.
_ONLY_LEVELS = {
    "AugMix",
    "JPEG",
    "RandAugment",
    "RandomAdjustSharpness",
    "RandomAffine",
    "RandomAutocontrast",
    "RandomEqualize",
    "RandomInvert",
    "RandomPerspective",
    "RandomPosterize",
    "RandomSolarize",
    "TrivialAugmentWide",
}
# Transforms that need colours in 0 to 1.
_NOT_NORMALISED = {
    "ColorJitter",
    "Grayscale",
    "RandomGrayscale",
    "RandomPhotometricDistort",
}
# Transforms that partly have no effect on one channel. The operations of recipes need three.
_ONLY_COLOUR = {
    "AugMix",
    "ColorJitter",
    "JPEG",
    "RandAugment",
    "RandomPhotometricDistort",
    "TrivialAugmentWide",
}


class Walk:
    """Walks a list of transforms, and tracks the kind of their values."""

    def __init__(self, channels: int = 3) -> None:
        """``channels``: those of the opened image, 3 (RGB) or 1 (grey)."""
        self.is_tensor = False
        """After ToImage or ToTensor: torchvision's kernels run instead of Pillow's."""
        self.values: Literal["levels", "unit", "normalised"] = "levels"
        """0 to 255, 0 to 1, or after Normalize."""
        self.channels = channels
        self.is_grey = channels == 1
        """The image was opened as grey, not made grey. Its three channels in a recipe are equal."""
        self.type_name = "PIL.Image.Image"
        """The type of the image, by which v2's transforms look up values in dicts."""

    def ops(self, transform: Any) -> list[Op]:
        kind = torchvision_class(transform)
        name = kind.__name__
        known = TRANSFORMS.get(name)
        if known is None:
            raise cannot(name, _REFUSED.get(name, "no operation of a recipe does the same"))
        translate = known.translate
        if name in _ONLY_LEVELS and self.values != "levels":
            raise cannot(name, "put it before the transform to float32")
        if name in _NOT_NORMALISED and self.values == "normalised":
            raise cannot(name, "put it before Normalize")
        # Pillow leaves colour and hue of a grey image as they are, as recipes do.
        is_opened_grey = self.is_grey and not self.is_tensor
        if name in _ONLY_COLOUR and self.channels != 3 and not is_opened_grey:
            raise cannot(name, "put it before Grayscale(1)")
        if kind is type(transform):
            return translate(self, transform)
        try:
            return translate(self, transform)
        except AttributeError as error:
            raise cannot(
                full_name(type(transform)),
                f"it lacks an attribute of {name} ({error}): call super().__init__",
            ) from error

    def all_of(self, transforms: Any) -> list[Op]:
        return [op for transform in transforms for op in self.ops(transform)]

    def inner(self, outer: Any, transform: Any) -> list[Op]:
        """The operations of a transform for only some images. It must keep the kind of values."""
        before = (self.is_tensor, self.values, self.channels)
        ops = self.ops(transform)
        if before != (self.is_tensor, self.values, self.channels):
            raise cannot(
                f"{type(outer).__name__}([{type(transform).__name__}])",
                "the kind of values would depend on chance",
            )
        return ops


# Names that a class of one's own may define, because they do not change what the transform does.
# Its settings are read after `__init__`.
_HARMLESS = {
    *("__init__", "__repr__", "__str__", "extra_repr", "__doc__", "__module__", "__dict__"),
    *("__weakref__", "__annotations__", "__annotate__", "__annotate_func__"),
    *("__annotations_cache__", "__static_attributes__", "__firstlineno__", "__qualname__"),
    *("__hash__", "__eq__", "__reduce__", "__reduce_ex__", "__getstate__", "__setstate__"),
    *("__copy__", "__deepcopy__", "__slots__", "__abstractmethods__", "_abc_impl"),
    *("__parameters__", "__orig_bases__", "__class_getitem__", "__subclasshook__"),
}
# Where torch keeps functions that run before or after a module.
_HOOKS = ("_forward_hooks", "_forward_pre_hooks")


RETURN_SEVERAL = ("FiveCrop", "TenCrop")
"""Classes of torchvision that return several images."""


def torchvision_base(kind: type) -> type | None:
    """The first class of torchvision among a class and its parents."""
    return next((one for one in kind.__mro__ if is_torchvisions(one)), None)


def torchvision_class(transform: Any) -> type:
    """The class of torchvision that decides what this transform does: its own, or the one that it
    inherits from without overriding anything.
    """
    kind = type(transform)
    if kind.__module__.split(".")[0] == "timm":
        raise cannot(
            full_name(kind),
            "timm's transforms do not keep all settings: give timm's keywords to "
            "featherload.recipes.create_transform",
        )
    base = torchvision_base(kind)
    # `Transform` itself does nothing.
    known = (*TRANSFORMS, *RETURN_SEVERAL)
    if base is None or (base is not kind and base.__name__ not in known):
        raise _unknown(transform)
    overridden = [] if base is kind else _overridden(kind, base)
    if overridden:
        raise cannot(full_name(kind), _overrides(overridden[0], base))
    check_object(transform, base)
    return base


def check_object(transform: Any, base: type) -> None:
    """Raises an error if a function or a hook of the object replaces what ``base`` does."""
    kind = full_name(type(transform))
    for name, value in vars(transform).items():
        if callable(value) and callable(inspect.getattr_static(base, name, None)):
            raise cannot(kind, _overrides(name, base))
    if any(getattr(transform, hooks, None) for hooks in _HOOKS):
        raise cannot(kind, "it has a forward hook, and workers run no Python: remove it")


def _overrides(name: str, base: type) -> str:
    return (
        f"it overrides {name} of {base.__name__}, and workers run no Python: remove {name}, or use "
        f"{base.__name__} and do the rest on batches"
    )


def is_torchvisions(kind: type) -> bool:
    return kind.__module__.split(".")[:2] == ["torchvision", "transforms"]


def full_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__name__}"


def _overridden(kind: type, base: type) -> list[str]:
    """Names of attributes of `base` that are others in `kind`."""

    def function(of: type, name: str) -> Any:
        found = inspect.getattr_static(of, name)
        # torchvision wraps some static methods again for each class.
        return getattr(found, "__func__", found)

    names = [name for name in dir(base) if name not in _HARMLESS]
    return [name for name in names if function(kind, name) is not function(base, name)]


# What to do begins the reason, or follows a colon.
_FIX = re.compile(r"(^|: )(add|call|combine|give|leave|name|put|remove|train|use|write)\b")


def cannot(what: str, why: str, whose: str = "the transform") -> ConfigError:
    """The error of a transform. If ``why`` names no fix, the fix is another recipe."""
    has_fix = _FIX.search(why) is not None
    fix = "" if has_fix else ": write a recipe (`featherload ops` lists the operations)"
    return ConfigError(
        f"{whose} {what} cannot be translated into a recipe: {why}{fix}", option="recipe"
    )


_NO_PYTHON = (
    "it is a function, and workers run no Python: give then=function, which gets whole batches, or "
    "write a recipe (`featherload ops` lists the operations)"
)


def _unknown(transform: Any) -> ConfigError:
    """The error of an object that is no transform of a known package."""
    kind = type(transform)
    if isinstance(transform, type):
        name = transform.__name__
        return cannot(name, f"it is a class: give an object of it, such as {name}(...)")
    if inspect.isroutine(transform):
        return cannot(getattr(transform, "__name__", kind.__name__), _NO_PYTHON)
    if isinstance(transform, (int, float, str)):
        return cannot(shown(transform), "it is no transform: give pairs as (transform, count)")
    held = vars(transform).values() if hasattr(transform, "__dict__") else ()
    if any(torchvision_base(type(value)) is not None for value in held):
        return cannot(
            full_name(kind),
            "it is a class of your own that holds transforms, and workers run no Python: give a "
            "list for several images, recipe=[first, second] or recipe=[first, (second, 8)]",
        )
    return cannot(full_name(kind), "it is no class of torchvision.transforms")


def as_opened() -> Op:
    """Decoding as in ``torchvision.datasets.ImageFolder``: EXIF orientation ignored, transparency
    dropped, JPEGs at full size.
    """
    return {"decode": {"orientation": "stored", "alpha": "drop", "mode": "full"}}


def translate(transforms: Any, walk: Walk | None = None) -> Recipe:
    """The recipe of a Compose, a list of transforms, or ``weights.transforms()``.

    Images are decoded as in ``torchvision.datasets.ImageFolder``. ``walk``: a new one, which may
    know further transforms.
    """
    walk = Walk() if walk is None else walk
    given = list(transforms) if isinstance(transforms, (list, tuple)) else [transforms]
    ops = walk.all_of(given)
    ops.insert(0, as_opened())
    if walk.values == "levels":
        ops.append({"cast": {"dtype": "u8"}})
    ops.append({"layout": {"layout": "nchw"}})
    return {"featherload": 1, "name": "torchvision", "ops": ops}


# Attributes of transforms, in the form of recipes.


def _list(value: Any) -> Any:
    """Tuples and tensors as lists."""
    if hasattr(value, "tolist"):
        return value.tolist()
    return [_list(v) for v in value] if isinstance(value, (list, tuple)) else value


def both(size: Any) -> list[int]:
    """Height and width."""
    values = [size] if isinstance(size, int) else list(size)
    return [int(v) for v in (values * 2 if len(values) == 1 else values)]


def _filter(t: Any) -> str:
    mode = getattr(t, "interpolation", "bilinear")
    name = str(getattr(mode, "value", mode))
    # Pillow's numbers of filters, which torchvision accepts, too.
    name = _NUMBERED_FILTERS.get(name, name)
    if name not in _FILTERS:
        raise cannot(f"{type(t).__name__}(interpolation={name})", "recipes have no such filter")
    return name


def _resampling(walk: Walk, t: Any) -> str:
    """The filter of a resize. Recipes have Pillow's nearest. torch's nearest-exact takes the same
    pixels, but torch's nearest takes others.
    """
    mode = getattr(t, "interpolation", "bilinear")
    name = str(getattr(mode, "value", mode))
    if name == "nearest-exact":
        return "nearest"
    if name == "nearest" and walk.is_tensor:
        raise cannot(
            f"{type(t).__name__}(interpolation=nearest) after {_TO_TENSOR}",
            "recipes have Pillow's nearest: put it before that, or use nearest-exact",
        )
    return _filter(t)


def entry_of(given: Mapping[Any, Any], type_name: str, missing: Any = None) -> Any:
    """The value of a type in a dict of v2, as its transforms look it up."""
    named = {_type_name(key): value for key, value in given.items()}
    return named.get(type_name, named.get("others", missing))


def _type_name(key: Any) -> str:
    return full_name(key) if isinstance(key, type) else str(key)


def _fill(walk: Walk, t: Any) -> Any:
    fill = getattr(t, "fill", 0)
    if isinstance(fill, Mapping):
        fill = entry_of(fill, walk.type_name)
    if fill is None:
        return 0
    if isinstance(fill, Mapping):
        fill = _fill_of_images(fill)
    values = [fill] if isinstance(fill, (int, float)) else fill
    if (
        not isinstance(values, (list, tuple))
        or len(values) not in (1, 3)
        or not all(isinstance(v, (int, float)) for v in values)
    ):
        raise cannot(f"{type(t).__name__}(fill={fill!r})", "a fill is one number or three")
    levels = [_level(walk, t, "fill", v) for v in values]
    return levels[0] if len(levels) == 1 else levels


def _fill_of_images(fills: Mapping[Any, Any]) -> Any:
    """Of v2's fills by type, that of images. Masks of objects have none, which is 0."""
    names = {getattr(kind, "__name__", str(kind)): value for kind, value in fills.items()}
    for name in ("Image", "Tensor", "others"):
        if name in names:
            return names[name]
    return 0


def _level(walk: Walk, t: Any, name: str, value: float) -> float:
    """A value in the form of recipes: in levels, or unchanged after Normalize."""
    if walk.values == "normalised":
        return float(value)
    if walk.values == "unit":
        return float(value) * 255.0
    if value != int(value) or not 0 <= value <= 255:
        raise cannot(
            f"{type(t).__name__}({name}={value!r})",
            "it is used on levels, which are whole numbers from 0 to 255",
        )
    return float(value)


def _probability(t: Any) -> float:
    return float(t.p)


def _resize(walk: Walk, t: Any) -> list[Op]:
    size = t.size
    if isinstance(size, (list, tuple)):
        size = int(size[0]) if len(size) == 1 else [int(v) for v in size]
    op: Op = {"size": size, "interpolation": _resampling(walk, t)}
    if t.max_size is not None:
        op["max_size"] = t.max_size
    if walk.is_tensor and not t.antialias:
        op["antialias"] = False
    return [{"resize": op}]


def _random_size(name: str, **attributes: Callable[[Any], Any]) -> Callable[[Walk, Any], list[Op]]:
    """Translates to a resize whose size is drawn."""

    def translate(walk: Walk, t: Any) -> list[Op]:
        op = {key: read(t) for key, read in attributes.items()}
        op["interpolation"] = _resampling(walk, t)
        if walk.is_tensor and not t.antialias:
            op["antialias"] = False
        return [{name: {key: value for key, value in op.items() if value is not None}}]

    return translate


def _random_resized_crop(walk: Walk, t: Any) -> list[Op]:
    op: Op = {
        "size": both(t.size),
        "scale": _list(t.scale),
        "ratio": _list(t.ratio),
        "interpolation": _resampling(walk, t),
    }
    if walk.is_tensor and not t.antialias:
        op["antialias"] = False
    return [{"random_resized_crop": op}]


def _random_crop(walk: Walk, t: Any) -> list[Op]:
    op: Op = {"size": both(t.size), "pad_if_needed": t.pad_if_needed, "fill": _fill(walk, t)}
    if t.padding is not None:
        padding = _list(t.padding)
        if (
            ".v2." in torchvision_class(t).__module__
            and isinstance(padding, list)
            and len(padding) == 4
        ):
            # The argument is left, top, right, bottom. v2 stores left, right, top, bottom.
            padding = [padding[0], padding[2], padding[1], padding[3]]
        op["padding"] = padding
    op["padding_mode"] = _padding_mode(t)
    return [{"random_crop": op}]


def _padding_mode(t: Any) -> str:
    mode = str(t.padding_mode)
    if mode not in ("constant", "edge", "reflect"):
        raise cannot(f"{type(t).__name__}(padding_mode={mode})", "recipes have no such mode")
    return mode


def color_jitter(walk: Walk, t: Any) -> list[Op]:
    op: Op = {"style": "tensor" if walk.is_tensor else "pillow"}
    for name in ("brightness", "contrast", "saturation", "hue"):
        value = getattr(t, name)
        if value is not None:
            op[name] = _list(value)
    return [{"color_jitter": op}]


def _rotation(walk: Walk, t: Any) -> list[Op]:
    low, high = t.degrees
    op: Op = {"interpolation": _filter(t), "fill": _fill(walk, t)}
    if walk.is_tensor:
        if t.center is not None:
            raise cannot("RandomRotation(center=...)", "a recipe rotates about the middle")
        return [{"random_rotation": {**op, "degrees": [low, high], "expand": bool(t.expand)}}]
    if t.expand:
        raise cannot("RandomRotation(expand=True) of a Pillow image", f"put {_TO_TENSOR} before it")
    # Pillow rotates like random_affine, which counts clockwise. Its edges differ from torch's.
    op["degrees"] = [-high, -low]
    if t.center is not None:
        op["center"] = _list(t.center)
    return [{"random_affine": op}]


def _affine(walk: Walk, t: Any) -> list[Op]:
    op: Op = {"degrees": _list(t.degrees), "interpolation": _filter(t), "fill": _fill(walk, t)}
    for name in ("translate", "scale", "shear", "center"):
        if getattr(t, name) is not None:
            op[name] = _list(getattr(t, name))
    return [{"random_affine": op}]


_TO_TENSOR = "ToImage, PILToTensor or ToTensor"


def _to_dtype(walk: Walk, t: Any) -> list[Op]:
    dtype = t.dtype
    if isinstance(dtype, Mapping):
        dtype = entry_of(dtype, walk.type_name, missing="")
        if dtype == "":
            raise cannot("ToDtype of a dict", f"give it a dtype for {walk.type_name}, or 'others'")
        if dtype is None:
            # Images keep their dtype.
            return []
    name = str(dtype).rsplit(".", 1)[-1]
    scale = getattr(t, "scale", True)
    if not walk.is_tensor:
        raise cannot(type(t).__name__, f"it does nothing to a Pillow image: put {_TO_TENSOR} first")
    if name == "uint8" and walk.values == "levels":
        return []
    if name != "float32" or not scale:
        raise cannot(
            f"{type(t).__name__}({name}, scale={scale})",
            "a recipe has only float32 with scale=True; give the dtype to Loader",
        )
    return _to_float(walk)


def _to_float(walk: Walk) -> list[Op]:
    if not walk.is_tensor:
        walk.is_tensor, walk.type_name = True, "torch.Tensor"
    if walk.values != "levels":
        return []
    walk.values = "unit"
    return [{"cast": {"dtype": "f32"}}]


def to_tensor(walk: Walk, t: Any) -> list[Op]:
    if walk.is_tensor:
        raise cannot("ToTensor", "it has no effect after ToImage or PILToTensor: leave it out")
    return _to_float(walk)


def _to_image(walk: Walk, t: Any) -> list[Op]:
    walk.is_tensor, walk.type_name = True, "torchvision.tv_tensors._image.Image"
    return []


def _to_pure(walk: Walk, t: Any) -> list[Op]:
    if walk.is_tensor:
        walk.type_name = "torch.Tensor"
    return []


def _pil_to_tensor(walk: Walk, t: Any) -> list[Op]:
    walk.is_tensor = True
    return _to_pure(walk, t)


def rgb(walk: Walk, t: Any) -> list[Op]:
    if walk.is_grey:
        walk.channels, walk.is_grey = 3, False
        return []
    if walk.channels != 3:
        raise cannot("RGB", "a recipe cannot convert one channel to three: use Grayscale(3)")
    return []


def _grayscale(walk: Walk, t: Any) -> list[Op]:
    channels = int(t.num_output_channels)
    if walk.is_grey:
        walk.channels, walk.is_grey = channels, channels == 1
        return []
    if walk.channels == 1:
        if channels != 1:
            raise cannot("Grayscale(3) after Grayscale(1)", "leave Grayscale(1) out")
        return []
    walk.channels = channels
    if channels == 3 and not walk.is_tensor:
        return [pillow_grey(1.0)]
    return [{"grayscale": {"num_output_channels": channels}}]


def random_grayscale(walk: Walk, t: Any) -> list[Op]:
    if walk.channels == 1:
        return []
    if not walk.is_tensor:
        return [pillow_grey(_probability(t))]
    return [{"random_grayscale": {"p": _probability(t)}}]


def pillow_grey(p: float) -> Op:
    """Grey as in Pillow, which rounds it. torchvision and ``grayscale`` truncate it."""
    return {"color_jitter": {"style": "pillow", "saturation": [0.0, 0.0], "p": p}}


def _nothing(walk: Walk, t: Any) -> list[Op]:
    return []


def _normalize(walk: Walk, t: Any) -> list[Op]:
    if walk.values == "levels":
        raise cannot(
            "Normalize", "it is used on levels: put ToDtype(float32, scale=True) before it"
        )
    if walk.values == "normalised":
        raise cannot("Normalize", "a recipe has only one: combine them to one mean and one std")
    walk.values = "normalised"
    mean, std = _list(t.mean), _list(t.std)
    if walk.is_grey:
        if len(mean) != 1 or len(std) != 1:
            raise cannot(
                f"Normalize({shown(mean)}, {shown(std)})",
                "images are grey and have one channel: give one mean and one std",
            )
        mean, std = mean * 3, std * 3
    return [{"normalize": {"mean": mean, "std": std}}]


def _erasing(walk: Walk, t: Any) -> list[Op]:
    op: Op = {"p": _probability(t), "scale": _list(t.scale), "ratio": _list(t.ratio)}
    value = _list(t.value)
    if value in (None, "random"):
        if walk.values != "normalised":
            raise cannot(
                "RandomErasing(value='random')",
                "it is noise around 0, which is a colour only after Normalize: put it there",
            )
        op["value"] = "random"
    else:
        values = value if isinstance(value, list) else [value]
        op["value"] = [_level(walk, t, "value", v) for v in values]
    return [{"random_erasing": op}]


def _preset(walk: Walk, t: Any) -> list[Op]:
    """``weights.transforms()`` of a classifier."""
    if walk.values == "normalised":
        raise cannot(
            "ImageClassification", "it has a Normalize, but there is one before it: leave one out"
        )
    size = _list(t.resize_size)
    size = size[0] if isinstance(size, list) and len(size) == 1 else size
    resize: Op = {"size": size, "interpolation": _resampling(walk, t)}
    if walk.is_tensor and not t.antialias:
        resize["antialias"] = False
    return [
        {"resize": resize},
        {"center_crop": {"size": both(t.crop_size)}},
        *_to_float(walk),
        *_normalize(walk, t),
    ]


def _rand_augment(walk: Walk, t: Any) -> list[Op]:
    if t.num_magnitude_bins != 31:
        raise cannot(
            f"RandAugment(num_magnitude_bins={t.num_magnitude_bins})", "recipes have 31: use that"
        )
    op = {
        "num_ops": t.num_ops,
        "magnitude": t.magnitude,
        "interpolation": _filter(t),
        "fill": _fill(walk, t),
    }
    return [{"rand_augment": op}]


def _trivial_augment(walk: Walk, t: Any) -> list[Op]:
    if t.num_magnitude_bins != 31:
        raise cannot(
            f"TrivialAugmentWide(num_magnitude_bins={t.num_magnitude_bins})",
            "recipes have 31: use that",
        )
    return [{"trivial_augment": {"interpolation": _filter(t), "fill": _fill(walk, t)}}]


def _apply(walk: Walk, t: Any) -> list[Op]:
    ops = [op for transform in t.transforms for op in walk.inner(t, transform)]
    return [{"random_apply": {"transforms": ops, "p": _probability(t)}}] if ops else []


def _choice(walk: Walk, t: Any) -> list[Op]:
    op: Op = {"transforms": [_one(walk, t, inner) for inner in t.transforms]}
    if getattr(t, "p", None) is not None:
        op["p"] = [float(p) for p in t.p]
    return [{"random_choice": op}]


def _order(walk: Walk, t: Any) -> list[Op]:
    return [{"random_order": {"transforms": [_one(walk, t, inner) for inner in t.transforms]}}]


def _one(walk: Walk, outer: Any, transform: Any) -> Op:
    ops = walk.inner(outer, transform)
    if not ops:
        # A recipe has no operation that does nothing.
        return {"random_horizontal_flip": {"p": 0}}
    return ops[0] if len(ops) == 1 else {"random_apply": {"transforms": ops, "p": 1}}


def _photometric_distort(walk: Walk, t: Any) -> list[Op]:
    op: Op = {"style": "tensor" if walk.is_tensor else "pillow", "p": _probability(t)}
    for name in ("brightness", "contrast", "saturation", "hue"):
        op[name] = _list(getattr(t, name))
    return [{"random_photometric_distort": op}]


def _posterize(walk: Walk, t: Any) -> list[Op]:
    if t.bits not in range(9):
        raise cannot(f"RandomPosterize(bits={t.bits})", "a level has 8 bits: use 0 to 8")
    return [{"random_posterize": {"bits": int(t.bits), "p": _probability(t)}}]


def _aug_mix(walk: Walk, t: Any) -> list[Op]:
    if t.mixture_width > 8 or t.chain_depth > 8:
        raise cannot(
            f"AugMix(mixture_width={t.mixture_width}, chain_depth={t.chain_depth})",
            "recipes have at most 8 chains of 8 operations: use fewer",
        )
    if _filter(t) not in ("nearest", "bilinear"):
        raise cannot(f"AugMix(interpolation={_filter(t)})", "use nearest or bilinear")
    if not 0.01 <= t.alpha <= 100:
        raise cannot(f"AugMix(alpha={t.alpha})", "recipes have 0.01 to 100: use that")
    if not 1 <= t.severity <= 10:
        raise cannot(f"AugMix(severity={t.severity})", "recipes have 1 to 10: use that")
    op: Op = {
        "severity": int(t.severity),
        "width": int(t.mixture_width),
        "depth": int(t.chain_depth) if t.chain_depth > 0 else "random",
        "alpha": float(t.alpha),
        "all_ops": bool(t.all_ops),
        "interpolation": _filter(t),
    }
    # Without a fill, torchvision mixes the rim with black in another way than with a fill of 0.
    if getattr(t, "fill", None) is not None:
        op["fill"] = _fill(walk, t)
    return [{"torchvision_aug_mix": op}]


def _noise(walk: Walk, t: Any) -> list[Op]:
    if not walk.is_tensor:
        raise cannot("GaussianNoise of a Pillow image", f"put {_TO_TENSOR} before it")
    if walk.values == "normalised" and t.clip:
        raise cannot(
            "GaussianNoise(clip=True) after Normalize",
            "it would cut normalised values: put it before Normalize, or give clip=False",
        )
    op = {"mean": float(t.mean), "sigma": float(t.sigma), "clip": bool(t.clip)}
    return [{"gaussian_noise": op}]


def _jpeg(walk: Walk, t: Any) -> list[Op]:
    low, high = t.quality
    return [{"jpeg": {"quality": [int(low), int(high)]}}]


def _same(name: str, **attributes: Callable[[Any], Any]) -> Callable[[Walk, Any], list[Op]]:
    """Translates to an operation whose parameters are attributes of the transform. If it has a
    fill, adds that too.
    """

    def translate(walk: Walk, t: Any) -> list[Op]:
        op = {key: read(t) for key, read in attributes.items()}
        if hasattr(t, "fill"):
            op["fill"] = _fill(walk, t)
        return [{name: op}]

    return translate


def _get(name: str) -> Callable[[Any], Any]:
    return lambda t: _list(getattr(t, name))


_REFUSED = {
    "Lambda": _NO_PYTHON,
    "FiveCrop": "it returns several images: give its Compose by itself",
    "TenCrop": "it returns several images: give its Compose by itself",
    "AutoAugment": "the operation auto_augment is PaddleClas' policy, whose draws and fill differ; "
    "RandAugment and TrivialAugmentWide can be translated",
}


@dataclass(frozen=True)
class Known:
    """How a class is translated. The docs' table is made of these."""

    translate: Callable[..., list[Op]]
    operation: str
    condition: str = ""
    """When it translates; empty: always."""


_FLOATS = "float32 with `scale=True`, on a tensor. For others give `Loader` a `dtype`"

# Classes of torchvision.transforms and torchvision.transforms.v2.
TRANSFORMS: dict[str, Known] = {
    "AugMix": Known(
        _aug_mix,
        "`torchvision_aug_mix`",
        "at most 8 chains of 8 operations; `alpha` is 0.01 to 100; nearest or bilinear; before "
        "float32 and `Grayscale(1)`",
    ),
    "CenterCrop": Known(_same("center_crop", size=lambda t: both(t.size)), "`center_crop`"),
    "ColorJitter": Known(color_jitter, "`color_jitter`", "before `Normalize` and `Grayscale(1)`"),
    "Compose": Known(lambda walk, t: walk.all_of(t.transforms), "its transforms"),
    "ConvertImageDtype": Known(
        _to_dtype,
        "`cast`",
        _FLOATS,
    ),
    "ElasticTransform": Known(
        _same(
            "elastic_transform",
            alpha=_get("alpha"),
            sigma=_get("sigma"),
            interpolation=_filter,
        ),
        "`elastic_transform`",
    ),
    "GaussianBlur": Known(
        _same(
            "gaussian_blur",
            kernel_size=lambda t: list(reversed(both(t.kernel_size))),
            sigma=_get("sigma"),
        ),
        "`gaussian_blur`",
    ),
    "GaussianNoise": Known(
        _noise,
        "`gaussian_noise`",
        "after a class that makes a tensor; after `Normalize` only with `clip=False`",
    ),
    "Grayscale": Known(
        _grayscale, "`grayscale`, or `color_jitter` on a Pillow image", "before `Normalize`"
    ),
    "Identity": Known(_nothing, "none"),
    "ImageClassification": Known(
        _preset,
        "`resize`, `center_crop`, `normalize`",
        "`weights.transforms()` of a classifier; no `Normalize` before it",
    ),
    "JPEG": Known(_jpeg, "`jpeg`", "before float32 and `Grayscale(1)`"),
    "Normalize": Known(_normalize, "`normalize`", "once, after float32"),
    "PILToTensor": Known(_pil_to_tensor, "none: tensor arithmetic begins here"),
    "Pad": Known(
        _same("pad", padding=_get("padding"), padding_mode=_padding_mode),
        "`pad`",
        "`padding_mode` is constant, edge or reflect",
    ),
    "RGB": Known(rgb, "none", "not after `Grayscale(1)`"),
    "RandAugment": Known(
        _rand_augment,
        "`rand_augment`",
        "`num_magnitude_bins=31`; before float32 and `Grayscale(1)`",
    ),
    "RandomAdjustSharpness": Known(
        _same("random_adjust_sharpness", sharpness_factor=_get("sharpness_factor"), p=_probability),
        "`random_adjust_sharpness`",
        "before float32",
    ),
    "RandomAffine": Known(_affine, "`random_affine`", "before float32"),
    "RandomApply": Known(
        _apply, "`random_apply`", "its transforms do not change dtype, range or channels"
    ),
    "RandomAutocontrast": Known(
        _same("random_autocontrast", p=_probability), "`random_autocontrast`", "before float32"
    ),
    "RandomChannelPermutation": Known(
        _same("random_channel_permutation"), "`random_channel_permutation`"
    ),
    "RandomChoice": Known(_choice, "`random_choice`", "as `RandomApply`"),
    "RandomCrop": Known(
        _random_crop, "`random_crop`", "`padding_mode` is constant, edge or reflect"
    ),
    "RandomEqualize": Known(
        _same("random_equalize", p=_probability), "`random_equalize`", "before float32"
    ),
    "RandomErasing": Known(_erasing, "`random_erasing`", '`value="random"` only after `Normalize`'),
    "RandomGrayscale": Known(
        random_grayscale,
        "`random_grayscale`, or `color_jitter` on a Pillow image",
        "before `Normalize`",
    ),
    "RandomHorizontalFlip": Known(
        _same("random_horizontal_flip", p=_probability), "`random_horizontal_flip`"
    ),
    "RandomIoUCrop": Known(
        _same(
            "random_iou_crop",
            min_scale=_get("min_scale"),
            max_scale=_get("max_scale"),
            min_aspect_ratio=_get("min_aspect_ratio"),
            max_aspect_ratio=_get("max_aspect_ratio"),
            sampler_options=_get("options"),
            trials=_get("trials"),
        ),
        "`random_iou_crop`",
        "with objects",
    ),
    "RandomInvert": Known(
        _same("random_invert", p=_probability), "`random_invert`", "before float32"
    ),
    "RandomOrder": Known(_order, "`random_order`", "as `RandomApply`"),
    "RandomPerspective": Known(
        _same(
            "random_perspective",
            distortion_scale=_get("distortion_scale"),
            p=_probability,
            interpolation=_filter,
        ),
        "`random_perspective`",
        "before float32",
    ),
    "RandomPhotometricDistort": Known(
        _photometric_distort,
        "`random_photometric_distort`",
        "before `Normalize` and `Grayscale(1)`",
    ),
    "RandomPosterize": Known(
        _posterize,
        "`random_posterize`",
        "`bits` is 0 to 8; before float32",
    ),
    "RandomResize": Known(
        _random_size("random_resize", min_size=_get("min_size"), max_size=_get("max_size")),
        "`random_resize`",
    ),
    "RandomResizedCrop": Known(_random_resized_crop, "`random_resized_crop`"),
    "RandomRotation": Known(
        _rotation,
        "`random_rotation`, or `random_affine` on a Pillow image",
        "no `expand` on a Pillow image, no `center` on a tensor",
    ),
    "RandomShortestSize": Known(
        _random_size("random_shortest_size", min_size=_get("min_size"), max_size=_get("max_size")),
        "`random_shortest_size`",
    ),
    "RandomSolarize": Known(
        _same("random_solarize", threshold=_get("threshold"), p=_probability),
        "`random_solarize`",
        "before float32",
    ),
    "RandomVerticalFlip": Known(
        _same("random_vertical_flip", p=_probability), "`random_vertical_flip`"
    ),
    "RandomZoomOut": Known(
        _same("random_zoom_out", side_range=_get("side_range"), p=_probability), "`random_zoom_out`"
    ),
    "Resize": Known(_resize, "`resize`"),
    "ScaleJitter": Known(
        _random_size(
            "scale_jitter",
            # torchvision divides its second number by the height.
            size=lambda t: [int(side) for side in reversed(t.target_size)],
            scale=_get("scale_range"),
        ),
        "`scale_jitter`",
    ),
    "ToDtype": Known(
        _to_dtype,
        "`cast`",
        _FLOATS,
    ),
    "ToImage": Known(_to_image, "none: tensor arithmetic begins here"),
    "ToPureTensor": Known(_to_pure, "none"),
    "ToTensor": Known(to_tensor, "`cast`", "not after `ToImage` or `PILToTensor`"),
    "TrivialAugmentWide": Known(
        _trivial_augment,
        "`trivial_augment`",
        "`num_magnitude_bins=31`; before float32 and `Grayscale(1)`",
    ),
}
