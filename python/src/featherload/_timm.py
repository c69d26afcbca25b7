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
    "train_crop_mode": (None, "rrc"),
    "re_count": (1,),
    "re_num_splits": (0,),
    "crop_border_pixels": (None, 0),
    "use_prefetcher": (False,),
    "separate": (False,),
    "naflex": (False,),
    "patchify": (False,),
}
# Advice for values that recipes do not support. Leaving one of them out would change pixels.
_INSTEAD = {
    "train_crop_mode": "recipes crop as rrc does: train with train_crop_mode='rrc', or write a "
    "recipe with resize and random_crop",
    "re_count": "random_erasing erases one box: train with re_count=1; several erasings would be "
    "drawn independently, with larger areas",
    "re_num_splits": "a recipe erases in every row: use timm's loader for split batches",
    "crop_border_pixels": "a recipe cuts no border: cut the borders of the image files",
    "use_prefetcher": "Loader normalises rows without it: give use_prefetcher=False",
    "separate": "a recipe is one list of operations: give separate=False",
    "naflex": "rows have one size: use timm's NaFlex loader",
    "patchify": "rows are images: use timm's NaFlex loader",
}
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
    if is_training and no_aug and interpolation == "random":
        interpolation = "bilinear"
    if interpolation == "random":
        raise _cannot(
            "interpolation='random'",
            "random_resized_crop has one filter: give bilinear or bicubic, and train with that",
        )
    if interpolation not in ("nearest", "bilinear", "bicubic", "lanczos"):
        raise _cannot(
            f"interpolation={interpolation!r}",
            "recipes have nearest, bilinear, bicubic and lanczos",
        )
    ops: list[Op] = [as_opened()]
    if augments:
        ops.append(
            {
                "random_resized_crop": {
                    "size": [height, width],
                    "scale": list(scale or (0.08, 1.0)),
                    "ratio": list(ratio or (3 / 4, 4 / 3)),
                    "interpolation": interpolation,
                }
            }
        )
        if hflip > 0:
            ops.append({"random_horizontal_flip": {"p": hflip}})
        if vflip > 0:
            ops.append({"random_vertical_flip": {"p": vflip}})
        if auto_augment == "3a":
            ops.append(_three_augment())
        elif auto_augment:
            if not auto_augment.startswith("rand"):
                raise _cannot(
                    f"auto_augment={auto_augment!r}", "recipes have the policies rand-... and 3a"
                )
            ops.append(
                {
                    "timm_augment": {
                        "config": auto_augment,
                        "interpolation": [interpolation],
                        "fill": [float(min(255, round(255 * m))) for m in mean],
                    }
                }
            )
        if color_jitter is not None and not auto_augment:
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
        ops += _evaluation(height, width, crop_pct or _CROP_PCT, crop_mode, interpolation)
    if not normalize:
        # timm erases nothing in this case either.
        return _recipe([*ops, {"cast": {"dtype": "u8"}}])
    ops.append({"normalize": {"mean": list(mean), "std": list(std)}})
    if augments and re_prob > 0:
        if re_mode not in ("const", "pixel"):
            raise _cannot(
                f"re_mode={re_mode!r}",
                "random_erasing has one random value per pixel, or one fixed value: "
                "train with re_mode='pixel' or 'const'",
            )
        erased: Any = "random" if re_mode == "pixel" else 0.0
        box = {"p": re_prob, "scale": [0.02, 1 / 3], "ratio": [0.3, 1 / 0.3], "value": erased}
        ops.append({"random_erasing": box})
    return _recipe([*ops, {"cast": {"dtype": "f32"}}])


def accepted() -> dict[str, str]:
    """Keywords that take fewer values than in timm, for the docs."""
    neutral = {
        name: " or ".join(f"`{value!r}`" for value in values) for name, values in _NEUTRAL.items()
    }
    return {
        **neutral,
        "auto_augment": "`None`, `'3a'`, policies that begin with `rand`",
        "crop_mode": "`None` or `'center'` (a square `input_size`), `'squash'`",
        "interpolation": "`'bilinear'`, `'bicubic'`, `'nearest'`, `'lanczos'`",
        "re_mode": "`'const'`, `'pixel'`",
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


def _evaluation(
    height: int, width: int, part: float, crop_mode: str | None, interpolation: str
) -> list[Op]:
    if not part > 0:
        raise _cannot(f"crop_pct={part}", "it must be above 0")
    crop = {"center_crop": {"size": [height, width]}}
    scaled = [math.floor(height / part), math.floor(width / part)]
    if crop_mode == "squash":
        return [{"resize": {"size": scaled, "interpolation": interpolation}}, crop]
    if crop_mode not in (None, "center"):
        raise _cannot(
            f"crop_mode={crop_mode!r}",
            "it is not supported: write a recipe with resize: {longer: ...} and pad_to, or "
            "evaluate with center or squash",
        )
    if scaled[0] != scaled[1]:
        raise _cannot(
            f"input_size {height} x {width} with crop_mode='center'", "use crop_mode='squash'"
        )
    return [{"resize": {"size": scaled[0], "interpolation": interpolation}}, crop]


def _cannot(what: str, why: str) -> ConfigError:
    return cannot(what, why, "timm's")
