"""Several crops of each image as a recipe: lists, and transforms that return several images.

Reads types, public attributes and the code of ``__call__``; calls nothing.
"""

from __future__ import annotations

import json
import numbers
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _albumentations, _transforms
from ._errors import ConfigError
from ._featherload import recipe_json
from ._huggingface import is_processor, preprocessor
from ._other_transforms import CropWalk, code_of, is_compose, is_multi_view, lightly_view
from ._transforms import Op, Recipe, cannot, full_name, torchvision_base, torchvision_class
from ._values import path_text, whole

Crop = dict[str, Any]
"""An entry of ``crops`` in a recipe file: name, count, ops."""


class CropMaker:
    """Translates transforms to crops, and keeps what is known of their results."""

    def __init__(self, channels: int = 3) -> None:
        """``channels``: those of the opened image."""
        self._channels = channels
        self.walks: list[CropWalk] = []

    def walk(self) -> CropWalk:
        self.walks.append(CropWalk(self._channels))
        return self.walks[-1]

    def crop(self, transforms: Any) -> Crop:
        return _of_mapping({**single_recipe(transforms, self.walk()), "name": ""})


def object_recipe(given: Any) -> Recipe:
    """The recipe of an object: an image processor of Hugging Face, a Compose of albumentations, a
    list, or transforms.
    """
    if is_processor(given):
        return preprocessor(given)
    if _albumentations.is_one(given):
        return _albumentations.translate(given)
    return crops_recipe(given) or single_recipe(given)


def crops_recipe(recipe: Any, maker: CropMaker | None = None) -> Recipe | None:
    """The recipe with crops of a list of recipes, or of a transform that returns several images.
    None if it is another recipe.
    """
    maker = CropMaker() if maker is None else maker
    if isinstance(recipe, Sequence) and not isinstance(recipe, str):
        if is_pair(recipe):
            kind = type(recipe[0]).__name__
            raise ConfigError(
                f"recipe is a pair of a {kind} and a number: put it in a list, [({kind}, "
                f"{recipe[1]})], for {recipe[1]} crops",
                option="recipe",
            )
        if _is_list_of_recipes(recipe):
            crops = [crop for entry in recipe for crop in _entry_crops(entry, maker)]
            return _with_crops("crops", crops)
        if not _has_five(recipe):
            return None
        return _with_crops("crops", _five_crops(recipe, maker))
    translate = _view_translator(recipe)
    if translate is None:
        return None
    return _with_crops(type(recipe).__name__, translate(recipe, maker))


def single_recipe(transforms: Any, walk: CropWalk | None = None) -> Recipe:
    """The recipe of transforms that return one image. ``walk``: a new one."""
    return _transforms.translate(transforms, CropWalk() if walk is None else walk)


def is_pair(entry: Any) -> bool:
    """Whether it is a recipe and its count."""
    is_two = isinstance(entry, tuple) and len(entry) == 2
    return is_two and isinstance(entry[1], (numbers.Number, np.generic))


def _with_crops(name: str, crops: list[Crop]) -> Recipe:
    """Neighbours with the same operations become one entry with a count."""
    merged: list[Crop] = []
    for crop in crops:
        last = merged[-1] if merged else None
        if last is not None and {**last, "count": 0} == {**crop, "count": 0}:
            merged[-1] = {**last, "count": last["count"] + crop["count"]}
        else:
            merged.append(crop)
    return {"featherload": 1, "name": name, "crops": merged}


def _is_list_of_recipes(recipe: Sequence[Any]) -> bool:
    """Whether each entry is a whole recipe. A list of single transforms is one recipe, and so is a
    list with one Compose.
    """
    if not recipe or not all(_is_recipe(entry) or is_pair(entry) for entry in recipe):
        return False
    return len(recipe) > 1 or not is_compose(recipe[0]) or _has_five(recipe)


def _is_recipe(entry: Any) -> bool:
    if isinstance(entry, (str, os.PathLike, Mapping, list)):
        return True
    if is_processor(entry) or is_compose(entry) or lightly_view(entry) is not None:
        return True
    if _albumentations.is_one(entry):
        return True
    return _view_translator(entry) is not None


def _entry_crops(entry: Any, maker: CropMaker) -> list[Crop]:
    """The crops of an entry of a list: a recipe, or a recipe and its count."""
    count = 1
    if is_pair(entry):
        entry, count = entry
        count = whole("the count of a crop", count, 1)
    if isinstance(entry, (str, os.PathLike)):
        crops = [_of_file(path_text("recipe", entry))]
    elif isinstance(entry, Mapping):
        crops = [_of_mapping(dict(entry))]
    elif is_processor(entry):
        crops = [_of_mapping(preprocessor(entry))]
    elif _albumentations.is_one(entry):
        crops = [_of_mapping(_albumentations.translate(entry))]
    else:
        several = crops_recipe(entry, maker)
        if several is None:
            crops = [_of_mapping(single_recipe(entry, maker.walk()))]
        else:
            crops = several["crops"]
    if count > 1 and len(crops) > 1:
        kind = type(entry).__name__
        raise ConfigError(
            f"{kind} gives {len(crops)} different crops, which have no count: list it {count} "
            "times",
            option="recipe",
        )
    return [{**crop, "count": crop["count"] * count} for crop in crops]


def _of_file(name: str) -> Crop:
    recipe = json.loads(recipe_json(name))
    if recipe.get("crops"):
        raise ConfigError(
            f"{name} has crops of its own: give its crops one by one", option="recipe"
        )
    if recipe.get("mixing") is not None:
        raise ConfigError(
            f"{name} has mixing, which needs one image for each sample: give a recipe without it",
            option="recipe",
        )
    kept = {key: recipe[key] for key in ("name", "reorder", "ops") if recipe[key] is not None}
    return {"count": 1, **kept}


def _of_mapping(recipe: dict[str, Any]) -> Crop:
    """Unknown keys stay, so that the reader of the recipe names them."""
    recipe.pop("featherload", None)
    for absent in ("reorder", "mixing"):
        if recipe.get(absent, 0) is None:
            del recipe[absent]
    return {"count": 1, **recipe}


# Transforms that return several images.

Translator = Callable[[Any, CropMaker], list[Crop]]


def _view_translator(transform: Any) -> Translator | None:
    """What translates a transform that returns several images. None: it returns one."""
    if is_multi_view(transform):
        return lambda t, maker: [maker.crop(view) for view in t.transforms]
    base = torchvision_base(type(transform))
    if base is not None and base.__name__ in _transforms.RETURN_SEVERAL:
        return lambda t, maker: _five_crops([t], maker)
    inner = getattr(transform, "transforms", None)
    if isinstance(inner, (list, tuple)) and _has_five(inner):
        if not is_compose(transform):
            kind = full_name(type(transform))
            raise cannot(kind, "it returns several images: use a Compose")
        return lambda t, maker: _five_crops([t], maker)
    script = VIEWS.get(code_of(transform) or "")
    return None if script is None else script.translate


# torchvision's FiveCrop and TenCrop.

_CORNERS = ("top_left", "top_right", "bottom_left", "bottom_right")


def _has_five(transforms: Iterable[Any]) -> bool:
    """Whether one of the transforms returns several images, also in a Compose of a Compose."""
    for transform in transforms:
        base = torchvision_base(type(transform))
        if base is not None and base.__name__ in _transforms.RETURN_SEVERAL:
            return True
        if is_compose(transform) and _has_five(getattr(transform, "transforms", ())):
            return True
    return False


def _flat(transforms: Iterable[Any]) -> list[Any]:
    """The transforms, without the Compose around some of them."""
    flat: list[Any] = []
    for transform in transforms:
        if is_compose(transform) and _has_five([transform]):
            torchvision_class(transform)
            flat += _flat(transform.transforms)
        else:
            flat.append(transform)
    return flat


def _five_crops(given: Iterable[Any], maker: CropMaker) -> list[Crop]:
    transforms = _flat(given)
    position = next(i for i, one in enumerate(transforms) if _has_five([one]))
    five, later = transforms[position], transforms[position + 1 :]
    kind = torchvision_class(five)
    name = kind.__name__
    if later and (".v2." not in kind.__module__ or _has_five(later)):
        raise cannot(
            f"{type(later[0]).__name__} after {name}",
            f"{name} returns several images: put transforms before it, or use "
            "torchvision.transforms.v2, whose transforms accept several images",
        )
    walk = maker.walk()

    def ops_of(transform: Any) -> list[Op]:
        ops = walk.ops(transform)
        if any(is_random(op) for op in ops):
            raise cannot(
                f"{type(transform).__name__} with {name}",
                "torchvision draws its random values once for all crops, and a recipe for each "
                "crop: leave it out",
            )
        return ops

    before = [op for one in transforms[:position] for op in ops_of(one)]
    after = [op for one in later for op in ops_of(one)]
    size = _transforms.both(five.size)
    crops: list[Op] = [{"corner_crop": {"size": size, "corner": corner}} for corner in _CORNERS]
    crops.append({"center_crop": {"size": size, "pad_if_needed": False}})
    flips: list[list[Op]] = [[]]
    if name == "TenCrop":
        flip = "random_vertical_flip" if five.vertical_flip else "random_horizontal_flip"
        flips.append([{flip: {"p": 1.0}}])
    end: list[Op] = [{"cast": {"dtype": "u8"}}] if walk.values == "levels" else []
    start = [_transforms.as_opened(), *before]
    layout: Op = {"layout": {"layout": "nchw"}}
    return [
        {"name": "", "count": 1, "ops": [*start, *flip, crop, *after, *end, layout]}
        for flip in flips
        for crop in crops
    ]


# Operations without random values, apart from a chance.
_DETERMINISTIC = {
    *("cast", "center_crop", "decode", "grayscale", "layout", "normalize", "pad", "resize"),
    *("random_adjust_sharpness", "random_autocontrast", "random_equalize", "random_grayscale"),
    *("random_horizontal_flip", "random_invert", "random_posterize", "random_solarize"),
    *("random_vertical_flip", "rotate90"),
}
# Operations whose random values are ranges. One value is a range from a number to itself.
_RANGES = {
    "color_jitter": ("brightness", "contrast", "saturation", "hue"),
    "gaussian_blur": ("sigma",),
    "jpeg": ("quality",),
    "pillow_gaussian_blur": ("radius",),
    "random_affine": ("degrees", "translate", "scale", "shear"),
    "random_rotation": ("degrees",),
}


def is_random(op: Op) -> bool:
    """Whether the result of an operation depends on random values."""
    name, values = next(iter(op.items()))
    inner = values.get("transforms")
    if name in ("random_choice", "random_order"):
        return len(inner) > 1 or any(is_random(one) for one in inner)
    p = values.get("p", 1.0)
    if p == 0:
        return False
    if p < 1:
        return True
    if inner is not None:
        return any(is_random(one) for one in inner)
    if name in _DETERMINISTIC:
        return False
    ranges = [values[key] for key in _RANGES.get(name, ()) if key in values]
    # Several changes of colour have a random order.
    if name not in _RANGES or (name == "color_jitter" and len(ranges) > 1):
        return True
    return any(not isinstance(one, list) or len(set(one)) > 1 for one in ranges)


# Classes that scripts define.


def _two_crops(transform: Any, maker: CropMaker) -> list[Crop]:
    return [{**maker.crop(transform.base_transform), "count": 2}]


def _two_transforms(transform: Any, maker: CropMaker) -> list[Crop]:
    return [maker.crop(transform.base_transform1), maker.crop(transform.base_transform2)]


def _dino(transform: Any, maker: CropMaker) -> list[Crop]:
    local = maker.crop(transform.local_transfo)
    return [
        maker.crop(transform.global_transfo1),
        maker.crop(transform.global_transfo2),
        *_counted(local, transform.local_crops_number),
    ]


def _dino2(transform: Any, maker: CropMaker) -> list[Crop]:
    """Each crop is its geometric part, then its colours."""
    of_global = transform.geometric_augmentation_global
    local = maker.crop([transform.geometric_augmentation_local, transform.local_transfo])
    return [
        maker.crop([of_global, transform.global_transfo1]),
        maker.crop([of_global, transform.global_transfo2]),
        *_counted(local, transform.local_crops_number),
    ]


def _dino3(transform: Any, maker: CropMaker) -> list[Crop]:
    """With the settings that make each crop by itself."""
    for name in (
        "share_color_jitter",
        "teacher_no_color_jitter",
        "local_crops_subset_of_global_crops",
    ):
        if getattr(transform, name):
            raise cannot(
                f"{full_name(type(transform))}({name}=True)",
                "its crops share random values, and crops of a recipe have their own",
            )
    if transform.gram_teacher_crops_size is not None:
        raise cannot(
            f"{full_name(type(transform))}(gram_teacher_crops_size=...)",
            "its gram crops share random values with the global ones",
        )
    last = transform.resize_global_post_transf
    if full_name(type(last)) != "torch.nn.modules.linear.Identity":
        raise cannot(
            f"{full_name(type(transform))}.resize_global_post_transf", "it is not Identity"
        )
    return _dino2(transform, maker)


def _counted(crop: Crop, count: Any) -> list[Crop]:
    return [{**crop, "count": int(count)}] if count else []


def _n_crops(transform: Any, maker: CropMaker) -> list[Crop]:
    return _counted(maker.crop(transform.transform), transform.num_crops)


def _pipeline(transform: Any, maker: CropMaker) -> list[Crop]:
    crops = []
    for inner in transform.transforms:
        if code_of(inner) != _N_CROPS:
            raise cannot(full_name(type(inner)), "it is no NCropAugmentation of solo-learn")
        crops += _n_crops(inner, maker)
    return crops


@dataclass(frozen=True)
class ViewClass:
    """A class of scripts that returns several images."""

    translate: Translator
    name: str
    """Its name, and the scripts that have it."""
    crops: str
    condition: str = ""
    """When it translates; empty: always."""


_N_CROPS = "88cd30d89358588d"
_DINO2 = "d7ae95e842a051e1"
_DINO3 = "9e6c410cbda6bd67"
_GLOBAL_AND_LOCAL = "2 global, `local_crops_number` local"

VIEWS: dict[str, ViewClass] = {
    "f7b883570bc54570": ViewClass(_two_crops, "`TwoCropsTransform` of MoCo, SimSiam", "2"),
    "31d02891fa32fee6": ViewClass(_two_transforms, "`TwoCropsTransform` of MoCo v3", "2"),
    "c8449535dc68837e": ViewClass(_dino, "`DataAugmentationDINO` of DINO", _GLOBAL_AND_LOCAL),
    _DINO2: ViewClass(
        _dino2,
        "`DataAugmentationDINO` of DINOv2",
        _GLOBAL_AND_LOCAL,
        "the crops are a list, in place of the dict",
    ),
    _DINO3: ViewClass(
        _dino3,
        "`DataAugmentationDINO` of DINOv3",
        _GLOBAL_AND_LOCAL,
        "the crops are a list, share no random values, and there are no gram crops",
    ),
    _N_CROPS: ViewClass(_n_crops, "`NCropAugmentation` of solo-learn", "`num_crops`"),
    "7befbf3b39c011a4": ViewClass(
        _pipeline, "`FullTransformPipeline` of solo-learn", "those of its transforms"
    ),
}
"""Classes of scripts, by the code of their ``__call__``."""
