"""Several crops of each image as a recipe: lists, and transforms that return several images.

Reads types, public attributes and the code of ``__call__``; calls nothing. Classes of packages are
known by their names. Classes that scripts copy from each other are known by their code, so a
changed copy is an error.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import json
import os
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import _transforms
from ._errors import ConfigError
from ._featherload import recipe_json
from ._transforms import Op, Recipe, Walk, cannot
from ._values import path_text, whole

Crop = dict[str, Any]
"""An entry of ``crops`` in a recipe file: name, count, ops."""


def of(recipe: Any) -> Recipe | None:
    """The recipe with crops of a list of recipes, or of a transform that returns several images.
    None if it is another recipe.
    """
    if isinstance(recipe, Sequence) and not isinstance(recipe, str):
        if not _is_list_of_recipes(recipe):
            return None
        return _with_crops("crops", [crop for entry in recipe for crop in _entry(entry)])
    views = _views(recipe)
    return None if views is None else _with_crops(type(recipe).__name__, views)


def one(transforms: Any, walk: CropWalk | None = None) -> Recipe:
    """The recipe of transforms that return one image. ``walk``: a new one."""
    return _transforms.translate(transforms, CropWalk() if walk is None else walk)


def returns_dict(transform: Any) -> bool:
    """Whether the transform returns a dict of lists, not a list of images."""
    return _code_of(transform) in _RETURN_DICTS


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
    if not recipe or not all(_is_recipe(entry) or _is_pair(entry) for entry in recipe):
        return False
    return len(recipe) > 1 or not _is_compose(recipe[0])


def _is_pair(entry: Any) -> bool:
    return isinstance(entry, tuple) and len(entry) == 2 and isinstance(entry[1], int)


def _is_compose(entry: Any) -> bool:
    return type(entry).__name__ in ("Compose", "ImageClassification")


def _is_recipe(entry: Any) -> bool:
    if isinstance(entry, (str, os.PathLike, Mapping, list)) or _is_compose(entry):
        return True
    return _lightly_view(entry) is not None or _several(entry) is not None


def _entry(entry: Any) -> list[Crop]:
    """The crops of an entry of a list: a recipe, or a recipe and its count."""
    count = 1
    if _is_pair(entry):
        entry, count = entry
        whole("the count of a crop", count, 1)
    if isinstance(entry, (str, os.PathLike)):
        crops = [_of_file(path_text("recipe", entry))]
    elif isinstance(entry, Mapping):
        crops = [_of_mapping(dict(entry))]
    else:
        several = of(entry)
        crops = [_of_mapping(one(entry))] if several is None else several["crops"]
    if count > 1 and len(crops) > 1:
        raise ConfigError(
            f"a count of {count} stands beside {type(entry).__name__}, which gives "
            f"{len(crops)} different crops: write it {count} times",
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


def _views(transform: Any) -> list[Crop] | None:
    translate = _several(transform)
    return None if translate is None else translate(transform)


def _several(transform: Any) -> Callable[[Any], list[Crop]] | None:
    if _is_lightly_multi_view(transform):
        return _of_multi_view
    if _position_of_five(getattr(transform, "transforms", None)) is not None:
        if not _is_compose(transform):
            raise cannot(_full_name(transform), "it returns several images: use a Compose")
        return _of_five
    name = type(transform).__name__
    if _is_torchvisions(transform) and name in _FIVE:
        return lambda transform: _of_five_in([transform], 0)
    return _VIEWS_BY_CODE.get(_code_of(transform))


def _crop(transforms: Any) -> Crop:
    return _of_mapping({**one(transforms), "name": ""})


def _is_lightly_multi_view(transform: Any) -> bool:
    """Whether lightly's ``MultiViewTransform.__call__`` makes the views."""
    for kind in type(transform).__mro__:
        is_it = kind.__name__ == "MultiViewTransform"
        if is_it and kind.__module__ == "lightly.transforms.multi_view_transform":
            if type(transform).__call__ is kind.__call__:
                return True
            raise cannot(
                _full_name(transform),
                "it overrides __call__ of MultiViewTransform, and workers run no Python: give a "
                "list of recipes",
            )
    return False


def _of_multi_view(transform: Any) -> list[Crop]:
    return [_crop(view) for view in transform.transforms]


# torchvision's FiveCrop and TenCrop.

_FIVE = ("FiveCrop", "TenCrop")
_CORNERS = ("top_left", "top_right", "bottom_left", "bottom_right")
# Operations that have no random values, so that all crops see the same image.
_SETTLED = ("cast", "center_crop", "decode", "grayscale", "layout", "normalize", "pad", "resize")


def _is_torchvisions(transform: Any) -> bool:
    return type(transform).__module__.split(".")[:2] == ["torchvision", "transforms"]


def _position_of_five(transforms: Any) -> int | None:
    if not isinstance(transforms, (list, tuple)):
        return None
    is_five = [_is_torchvisions(t) and type(t).__name__ in _FIVE for t in transforms]
    return is_five.index(True) if any(is_five) else None


def _of_five(compose: Any) -> list[Crop]:
    transforms = list(compose.transforms)
    position = _position_of_five(transforms)
    assert position is not None
    return _of_five_in(transforms, position)


def _of_five_in(transforms: list[Any], position: int) -> list[Crop]:
    five = transforms[position]
    name = type(five).__name__
    walk = CropWalk()
    before = walk.all_of(transforms[:position])
    if transforms[position + 1 :] and ".v2." not in type(five).__module__:
        raise cannot(
            f"{type(transforms[position + 1]).__name__} after {name}",
            f"{name} returns several images: put transforms before it, or use "
            "torchvision.transforms.v2, whose transforms accept several images",
        )
    after = walk.all_of(transforms[position + 1 :])
    for op in [*before, *after]:
        if next(iter(op)) not in _SETTLED:
            raise cannot(
                f"{name} with {next(iter(op))}",
                "torchvision draws its random values once for all crops: leave it out",
            )
    size = _transforms._both(five.size)
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


# Classes that scripts define, by the code of their `__call__`.


def _full_name(transform: Any) -> str:
    kind = type(transform)
    return f"{kind.__module__}.{kind.__qualname__}"


def _code_of(transform: Any) -> str | None:
    """A fingerprint of the code of ``__call__``, without its docstring and annotations. None if
    it has no source.
    """
    call = inspect.getattr_static(type(transform), "__call__", None)
    if not inspect.isfunction(call):
        return None
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(call))).body[0]
    except (OSError, TypeError, SyntaxError):
        return None
    if not isinstance(tree, ast.FunctionDef):
        return None
    body = tree.body[1:] if ast.get_docstring(tree, clean=False) is not None else tree.body
    names = ", ".join(arg.arg for arg in tree.args.args)
    text = names + "\n" + "\n".join(ast.unparse(line) for line in body)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _two_crops(transform: Any) -> list[Crop]:
    """TwoCropsTransform of MoCo and SimSiam."""
    return [{**_crop(transform.base_transform), "count": 2}]


def _two_transforms(transform: Any) -> list[Crop]:
    """TwoCropsTransform of MoCo v3."""
    return [_crop(transform.base_transform1), _crop(transform.base_transform2)]


def _dino(transform: Any) -> list[Crop]:
    """DataAugmentationDINO of DINO."""
    local = _crop(transform.local_transfo)
    return [
        _crop(transform.global_transfo1),
        _crop(transform.global_transfo2),
        *_counted(local, transform.local_crops_number),
    ]


def _dino2(transform: Any) -> list[Crop]:
    """DataAugmentationDINO of DINOv2. Each crop is its geometric part, then its colours."""
    of_global = transform.geometric_augmentation_global
    local = _crop([transform.geometric_augmentation_local, transform.local_transfo])
    return [
        _crop([of_global, transform.global_transfo1]),
        _crop([of_global, transform.global_transfo2]),
        *_counted(local, transform.local_crops_number),
    ]


def _dino3(transform: Any) -> list[Crop]:
    """DataAugmentationDINO of DINOv3, with the settings that make each crop by itself."""
    for name in (
        "share_color_jitter",
        "teacher_no_color_jitter",
        "local_crops_subset_of_global_crops",
    ):
        if getattr(transform, name):
            raise cannot(
                f"{_full_name(transform)}({name}=True)",
                "its crops share random values, and crops of a recipe have their own",
            )
    if transform.gram_teacher_crops_size is not None:
        raise cannot(
            f"{_full_name(transform)}(gram_teacher_crops_size=...)",
            "its gram crops share random values with the global ones",
        )
    if not _is_identity(transform.resize_global_post_transf):
        raise cannot(f"{_full_name(transform)}.resize_global_post_transf", "it is not Identity")
    return _dino2(transform)


def _counted(crop: Crop, count: int) -> list[Crop]:
    return [{**crop, "count": int(count)}] if count else []


def _n_crops(transform: Any) -> list[Crop]:
    """NCropAugmentation of solo-learn."""
    return _counted(_crop(transform.transform), transform.num_crops)


def _pipeline(transform: Any) -> list[Crop]:
    """FullTransformPipeline of solo-learn."""
    crops = []
    for inner in transform.transforms:
        if _code_of(inner) != _N_CROPS:
            raise cannot(_full_name(inner), "it is no NCropAugmentation of solo-learn")
        crops += _n_crops(inner)
    return crops


_N_CROPS = "88cd30d89358588d"
_DINO2 = "d7ae95e842a051e1"
_DINO3 = "9e6c410cbda6bd67"
_RETURN_DICTS = (_DINO2, _DINO3)

_VIEWS_BY_CODE: dict[str | None, Callable[[Any], list[Crop]]] = {
    "f7b883570bc54570": _two_crops,
    "31d02891fa32fee6": _two_transforms,
    "c8449535dc68837e": _dino,
    _DINO2: _dino2,
    _DINO3: _dino3,
    _N_CROPS: _n_crops,
    "7befbf3b39c011a4": _pipeline,
}


# Single transforms of these packages and scripts.


class CropWalk(Walk):
    """Also translates the single transforms of lightly, and of scripts by their code."""

    def __init__(self, channels: int = 3) -> None:
        super().__init__(channels)
        self.size: list[int] | None = None
        """Height and width, if an operation has set them."""

    def ops(self, transform: Any) -> list[Op]:
        if isinstance(transform, (list, tuple)):
            return self.all_of(transform)
        ops = self._ops(transform)
        for op in ops:
            values = next(iter(op.values()))
            size = values.get("size") if isinstance(values, dict) else None
            if isinstance(size, list):
                self.size = size
        return ops

    def _ops(self, transform: Any) -> list[Op]:
        translate = _lightly(transform) or _SINGLE_BY_CODE.get(_code_of(transform))
        if translate is not None:
            return translate(self, transform)
        if _is_identity(transform):
            return []
        if _only_sets_up(transform, "RandomApply"):
            # The blur of DINOv2 and v3. Its p is the chance to blur, 1 minus the argument.
            return _transforms._apply(self, transform)
        if _several(transform) is not None:
            raise cannot(_full_name(transform), "it returns several images: give it by itself")
        return super().ops(transform)


def _is_identity(transform: Any) -> bool:
    return type(transform).__module__ == "torch.nn.modules.linear" and (
        type(transform).__name__ == "Identity"
    )


# What a class may define without a change of what it does.
_HARMLESS = {"__module__", "__doc__", "__init__", "__firstlineno__", "__static_attributes__"}


def _only_sets_up(transform: Any, base: str) -> bool:
    """Whether a class inherits from torchvision's ``base`` and only has an ``__init__``."""
    kind = type(transform)
    parent = kind.__mro__[:2][-1]
    is_base = parent.__name__ == base
    is_torchvisions = parent.__module__.split(".")[:2] == ["torchvision", "transforms"]
    return is_base and is_torchvisions and set(vars(kind)) <= _HARMLESS


def _lightly_view(transform: Any) -> Any:
    """The Compose of a view of lightly, such as ``SimCLRViewTransform``."""
    kind = type(transform)
    is_view = kind.__module__.startswith("lightly.transforms.") and "View" in kind.__name__
    if not is_view or _is_lightly_multi_view(transform):
        return None
    inner = vars(transform).get("transform")
    return inner if _is_compose(inner) else None


def _lightly(transform: Any) -> Callable[[Walk, Any], list[Op]] | None:
    kind = type(transform)
    if not kind.__module__.startswith("lightly.transforms."):
        return None
    if _lightly_view(transform) is not None:
        return lambda walk, t: walk.ops(t.transform)
    return _LIGHTLY.get(kind.__name__)


def _inner(walk: Walk, t: Any) -> list[Op]:
    return walk.ops(t.transform)


def _lightly_blur(walk: Walk, t: Any) -> list[Op]:
    return pillow_blur(walk, t, t.sigmas, float(t.prob))


def _lightly_solarize(walk: Walk, t: Any) -> list[Op]:
    return _solarize(walk, t, float(t.threshold), float(t.prob))


def _lightly_rotate(walk: Walk, t: Any) -> list[Op]:
    if t.prob == 0:
        return []
    if t.prob < 1 or t.angle % 90 != 0 or not _is_square(walk):
        raise cannot(
            f"{_full_name(t)}(prob={t.prob}, angle={t.angle})",
            "a recipe has quarter turns of square crops without chance: use rr_degrees",
        )
    return [{"rotate90": {"times": int(t.angle // 90)}}]


def _is_square(walk: Walk) -> bool:
    size = walk.size if isinstance(walk, CropWalk) else None
    return size is not None and size[0] == size[1]


_LIGHTLY: dict[str, Callable[[Walk, Any], list[Op]]] = {
    "GaussianBlur": _lightly_blur,
    "RandomRotate": _lightly_rotate,
    "RandomRotateDegrees": _inner,
    "RandomSolarization": _lightly_solarize,
    "ToTensor": _inner,
}


def pillow_blur(walk: Walk, t: Any, radius: Any, p: float) -> list[Op]:
    """Pillow's ``GaussianBlur`` of a random radius."""
    if p == 0:
        return []
    if walk.is_tensor or walk.values != "levels":
        raise cannot(_full_name(t), "put it before the transform to a tensor")
    low, high = radius
    return [{"pillow_gaussian_blur": {"radius": [float(low), float(high)], "p": p}}]


def _solarize(walk: Walk, t: Any, threshold: float, p: float) -> list[Op]:
    """Pillow's ``ImageOps.solarize``."""
    if p == 0:
        return []
    if walk.is_tensor or walk.values != "levels":
        raise cannot(_full_name(t), "put it before the transform to a tensor")
    return [{"random_solarize": {"threshold": threshold, "p": p}}]


def _equalize(walk: Walk, t: Any) -> list[Op]:
    if walk.is_tensor or walk.values != "levels":
        raise cannot(_full_name(t), "put it before the transform to a tensor")
    return [{"random_equalize": {"p": 1.0}}]


_SINGLE_BY_CODE: dict[str | None, Callable[[Walk, Any], list[Op]]] = {
    # GaussianBlur of MoCo, SimSiam and solo-learn, and of DINO.
    "1de6a5e93f4393d8": lambda walk, t: pillow_blur(walk, t, t.sigma, 1.0),
    "4da38b22e1ce2a3b": lambda walk, t: pillow_blur(walk, t, t.sigma, 1.0),
    "66f5c306a7ce99f4": lambda walk, t: pillow_blur(
        walk, t, (t.radius_min, t.radius_max), float(t.prob)
    ),
    # Solarize of MoCo v3, and Solarization of solo-learn and of DINO.
    "be3e62daa3d01dc5": lambda walk, t: _solarize(walk, t, 128.0, 1.0),
    "9eb21d57e9643034": lambda walk, t: _solarize(walk, t, 128.0, 1.0),
    "33a7887b3d1a16d1": lambda walk, t: _solarize(walk, t, 128.0, float(t.p)),
    # Equalization of solo-learn.
    "0fad82a31f374308": _equalize,
}
