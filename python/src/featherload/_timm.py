"""timm's ``create_transform`` as a recipe. The recipe is made from its keywords, because its
result does not keep the text of the policy."""

from __future__ import annotations

import math
from typing import Any

from ._errors import ConfigError
from ._transforms import Op, Recipe, as_opened, cannot, pillow_grey

_MEAN, _STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
_CROP_PCT = 0.875

# Other keywords of timm, and the values for which they have no effect.
_NEUTRAL: dict[str, tuple[Any, ...]] = {
    "re_count": (1,),
    "re_num_splits": (0,),
    "use_prefetcher": (False,),
    "separate": (False,),
    "naflex": (False,),
    "patchify": (False,),
}
# Advice for values that recipes do not support. Leaving one of them out would change pixels.
_INSTEAD = {
    "re_count": "random_erasing erases one box, and several would be drawn independently, with "
    "larger areas: train with re_count=1, or use featherload.timm.create_loader",
    "re_num_splits": "a recipe erases in every row, also in those that timm leaves clean: use "
    "featherload.timm.create_loader with use_prefetcher=True",
    "use_prefetcher": "Loader normalises rows without it: give use_prefetcher=False",
    "separate": "a recipe is one list of operations: give separate=False",
    "naflex": "rows have one size: use timm's NaFlex loader",
    "patchify": "rows are images: use timm's NaFlex loader",
}
# timm's "random": one of these for each image, or for each operation of a policy.
_RANDOM = ("bilinear", "bicubic")
_FILTERS = ("bilinear", "bicubic", "nearest", "lanczos")
_ERASING = ("const", "pixel")
# Policies that recipes have, by what comes before the first dash.
_THREE = "3a"
_POLICIES = ("rand", "augmix", "original", "originalr", "v0", "v0r")
# Keywords that timm reads only with use_prefetcher, naflex or patchify.
_UNREAD = {
    "tf_preprocessing",
    "patch_size",
    "max_seq_len",
    "patchify_channels_last",
    "patchify_flatten",
}


def create_transform(
    input_size: int | tuple[int, int] | tuple[int, int, int] = 224,
    is_training: bool = False,
    *,
    no_aug: bool = False,
    train_crop_mode: str | None = None,
    scale: tuple[float, float] | None = None,
    ratio: tuple[float, float] | None = None,
    hflip: float = 0.5,
    vflip: float = 0.0,
    color_jitter: float | tuple[float, ...] | None = 0.4,
    color_jitter_prob: float | None = None,
    grayscale_prob: float = 0.0,
    gaussian_blur_prob: float = 0.0,
    auto_augment: str | None = None,
    interpolation: str = "bilinear",
    mean: tuple[float, ...] = _MEAN,
    std: tuple[float, ...] = _STD,
    re_prob: float = 0.0,
    re_mode: str = "const",
    crop_pct: float | None = None,
    crop_mode: str | None = None,
    crop_border_pixels: int | None = None,
    normalize: bool = True,
    **others: Any,
) -> Recipe:
    """The recipe of ``timm.data.create_transform`` with these keywords.

    Batches are normalised float32, N x C x H x W, as in timm without its prefetcher. With
    ``normalize=False`` they are uint8. Raises ``ConfigError`` for unsupported keywords and values.
    """
    for name, value in others.items():
        if name not in _UNREAD and value not in _NEUTRAL.get(name, ()):
            why = _INSTEAD.get(name, "this keyword of create_transform is unknown: remove it")
            raise _cannot(f"{name}={value!r}", why)
    augments = is_training and not no_aug
    if isinstance(input_size, int):
        height = width = input_size
    elif len(input_size) in (2, 3):
        height, width = input_size[-2:]
    else:
        raise _cannot(
            f"input_size={input_size!r}", "give one side, (height, width), or channels first"
        )
    filters: Op = {"interpolation": interpolation}
    if interpolation == "random":
        if not is_training:
            raise _cannot("interpolation='random'", "timm evaluates with one filter: name it")
        interpolation = "bilinear"
        filters = {"interpolation": _RANDOM[0], "interpolation_or": _RANDOM[1]}
    elif interpolation not in _FILTERS:
        raise _cannot(
            f"interpolation={interpolation!r}",
            "recipes have nearest, bilinear, bicubic and lanczos, and another filter gives other "
            "pixels",
        )
    ops: list[Op] = [as_opened()]
    if augments:
        ops += _random_crop(train_crop_mode or "rrc", [height, width], scale, ratio, filters)
        if hflip > 0:
            ops.append({"random_horizontal_flip": {"p": hflip}})
        if vflip > 0:
            ops.append({"random_vertical_flip": {"p": vflip}})
        if auto_augment == _THREE:
            ops.append(_three_augment())
        elif auto_augment:
            kind = auto_augment.split("-")[0]
            if kind == _THREE:
                raise _cannot(f"auto_augment={auto_augment!r}", "recipes have 3a without parts")
            if kind not in _POLICIES:
                why = f"timm has no such policy: use {_THREE}, or one of {', '.join(_POLICIES)}"
                raise _cannot(f"auto_augment={auto_augment!r}", why)
            ops.append(
                {
                    "timm_augment": {
                        "config": auto_augment,
                        "interpolation": list(filters.values()),
                        "fill": [float(min(255, round(255 * m))) for m in mean],
                    }
                }
            )
        # timm also jitters after this policy, but after no other.
        if color_jitter is not None and (not auto_augment or auto_augment == _THREE):
            ops.append(_jitter(color_jitter, color_jitter_prob))
        if grayscale_prob:
            ops.append(pillow_grey(grayscale_prob))
        if gaussian_blur_prob:
            blur = {"gaussian_blur": {"kernel_size": 23, "sigma": [0.1, 2.0]}}
            ops.append({"random_apply": {"transforms": [blur], "p": gaussian_blur_prob}})
    elif is_training:
        # One number is the shorter side, two numbers are height and width. timm does not read
        # crop_pct and crop_mode here.
        size: Any = height if isinstance(input_size, int) else [height, width]
        ops.append({"resize": {"size": size, "interpolation": interpolation}})
        ops.append({"center_crop": {"size": [height, width]}})
    else:
        if crop_border_pixels:
            ops.append({"trim_border": {"pixels": crop_border_pixels}})
        fill = [round(255 * m) for m in mean]
        ops += _evaluation(height, width, crop_pct or _CROP_PCT, crop_mode, interpolation, fill)
    if not normalize:
        # timm erases nothing in this case either.
        return _recipe([*ops, {"cast": {"dtype": "u8"}}])
    ops.append({"normalize": {"mean": list(mean), "std": list(std)}})
    if augments and re_prob > 0:
        if re_mode not in _ERASING:
            raise _cannot(
                f"re_mode={re_mode!r}",
                "random_erasing has one random value per pixel, or one fixed value, and this mode "
                "has one random colour per box: train with re_mode='pixel' or 'const', or use "
                "featherload.timm.create_loader",
            )
        erased: Any = "random" if re_mode == "pixel" else 0.0
        box = {"p": re_prob, "scale": [0.02, 1 / 3], "ratio": [0.3, 1 / 0.3], "value": erased}
        ops.append({"random_erasing": box})
    return _recipe([*ops, {"cast": {"dtype": "f32"}}])


# Operations of timm's first transforms, which all splits share, and of its last ones.
_PRIMARY = {
    *("decode", "random_resized_crop", "resize_keep_ratio", "center_crop_or_pad", "random_crop"),
    *("random_horizontal_flip", "random_vertical_flip"),
}
_FINAL = {"normalize", "random_erasing", "cast", "layout"}


def split_recipe(recipe: Recipe, count: int) -> Recipe:
    """The recipe of timm's ``AugMixDataset``: a clean crop, and others that augment the same crop.

    ``recipe``: of ``create_transform`` for training.
    """
    ops: list[Op] = recipe["ops"]
    names = [next(iter(op)) for op in ops]
    clean = [op for op, name in zip(ops, names, strict=True) if name in _PRIMARY | _FINAL]
    crops: list[Op] = [{"name": "clean", "count": 1, "ops": clean}]
    if count > 1:
        shared = sum(name in _PRIMARY and name != "decode" for name in names)
        crops.append({"name": "augmented", "count": count - 1, "shared": shared, "ops": ops})
    return {"featherload": 1, "name": recipe["name"], "crops": crops}


def accepted_values() -> dict[str, str]:
    """Keywords that take fewer values than in timm, for the docs."""
    listed = {**_NEUTRAL, "interpolation": _FILTERS, "re_mode": _ERASING}
    text = {name: ", ".join(f"`{value!r}`" for value in values) for name, values in listed.items()}
    text["interpolation"] += "; for training also `'random'`"
    return {
        **text,
        "auto_augment": f"`None`, `{_THREE!r}`, policies that begin with "
        + ", ".join(f"`{kind}`" for kind in _POLICIES),
    }


def _recipe(ops: list[Op]) -> Recipe:
    return {"featherload": 1, "name": "timm", "ops": [*ops, {"layout": {"layout": "nchw"}}]}


def _three_augment() -> Op:
    """timm's policy ``3a``: one of three, each with the same probability."""
    three: list[Op] = [
        {"random_solarize": {"threshold": 128.0, "p": 1.0}},
        pillow_grey(1.0),
        {"pillow_gaussian_blur": {"radius": [0.1, 2.0]}},
    ]
    return {"random_choice": {"transforms": three}}


def _jitter(factors: float | tuple[float, ...], p: float | None) -> Op:
    of = (float(factors),) * 3 if isinstance(factors, (int, float)) else tuple(factors)
    if len(of) not in (3, 4):
        raise _cannot(f"color_jitter={factors!r}", "give one number, three or four")
    names = ("brightness", "contrast", "saturation", "hue")
    jitter: Op = {"style": "pillow", **dict(zip(names, of, strict=False))}
    if p is not None:
        jitter["p"] = p
    return {"color_jitter": jitter}


def _random_crop(
    mode: str,
    size: list[int],
    scale: tuple[float, float] | None,
    ratio: tuple[float, float] | None,
    filters: Op,
) -> list[Op]:
    """``train_crop_mode``: a random resized crop, or a random resize that keeps the ratio, and a
    crop in the middle or anywhere.
    """
    if mode == "rrc":
        area = {"scale": list(scale or (0.08, 1.0)), "ratio": list(ratio or (3 / 4, 4 / 3))}
        return [{"random_resized_crop": {"size": size, **area, **filters}}]
    if mode not in ("rkrc", "rkrr"):
        raise _cannot(f"train_crop_mode={mode!r}", "timm has rrc, rkrc and rkrr")
    keep = {
        "size": size,
        **filters,
        "scale_p": 0.5,
        "scale": list(scale or (0.8, 1.0)),
        "aspect_p": 0.5,
        "ratio": list(ratio or (0.9, 1 / 0.9)),
    }
    crop: Op = {"center_crop_or_pad": {"size": size, "padding_mode": "reflect"}}
    if mode == "rkrr":
        # A border on both sides, and a crop anywhere in it, has timm's distribution and pixels.
        crop = {"random_crop": {"size": size, "pad_if_needed": True, "padding_mode": "reflect"}}
    return [{"resize_keep_ratio": keep}, crop]


def _evaluation(
    height: int,
    width: int,
    part: float,
    crop_mode: str | None,
    interpolation: str,
    fill: list[int],
) -> list[Op]:
    if not part > 0:
        raise _cannot(f"crop_pct={part}", "it must be above 0")
    crop = {"center_crop": {"size": [height, width]}}
    scaled = [math.floor(height / part), math.floor(width / part)]
    if crop_mode == "squash":
        return [{"resize": {"size": scaled, "interpolation": interpolation}}, crop]
    keep: Op = {"size": scaled, "interpolation": interpolation}
    if crop_mode == "border":
        border = {"center_crop_or_pad": {"size": [height, width], "fill": fill}}
        return [{"resize_keep_ratio": {**keep, "longest": 1}}, border]
    # Any other text is the centre, as in timm.
    if scaled[0] != scaled[1]:
        return [{"resize_keep_ratio": keep}, crop]
    return [{"resize": {"size": scaled[0], "interpolation": interpolation}}, crop]


def _cannot(what: str, why: str) -> ConfigError:
    return cannot(what, why, "timm's")
