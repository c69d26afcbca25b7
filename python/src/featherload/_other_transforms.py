"""Single transforms of other packages and of scripts.

Classes of installed packages are known by their full names. Classes that scripts copy from each
other are known by the code of their ``__call__``, so a changed copy is an error.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ._transforms import (
    RETURN_SEVERAL,
    Known,
    Op,
    Walk,
    cannot,
    check_object,
    color_jitter,
    full_name,
    random_grayscale,
    rgb,
    to_tensor,
    torchvision_base,
    torchvision_class,
)


def code_of(transform: Any) -> str | None:
    """A fingerprint of the code of ``__call__``, without its docstring and annotations. None if
    it has no source, or a decorator.
    """
    call = inspect.getattr_static(type(transform), "__call__", None)
    # The source of a wrapped function is that of the inner one.
    if not inspect.isfunction(call) or hasattr(call, "__wrapped__"):
        return None
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(call))).body[0]
    except (OSError, TypeError, SyntaxError):
        return None
    if not isinstance(tree, ast.FunctionDef) or tree.decorator_list:
        return None
    body = tree.body[1:] if ast.get_docstring(tree, clean=False) is not None else tree.body
    names = ", ".join(arg.arg for arg in tree.args.args)
    text = names + "\n" + "\n".join(ast.unparse(line) for line in body)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class CropWalk(Walk):
    """Also translates the single transforms of this module."""

    def __init__(self, channels: int = 3) -> None:
        super().__init__(channels)
        self.size: list[int] | None = None
        """Height and width, if they are certain."""

    def ops(self, transform: Any) -> list[Op]:
        if isinstance(transform, (list, tuple)):
            return self.all_of(transform)
        size = self.size
        ops = self._ops(transform)
        for op in ops:
            size = _size_after(op, size)
        self.size = size
        return ops

    def _ops(self, transform: Any) -> list[Op]:
        kind = type(transform)
        package = PACKAGES.get(full_name(kind))
        if package is not None:
            check_object(transform, kind)
            return package.translate(self, transform)
        view = lightly_view(transform)
        if view is not None:
            return self.ops(view)
        script = SCRIPTS.get(code_of(transform) or "")
        if script is not None:
            return script.known.translate(self, transform)
        base = torchvision_base(kind)
        if base is not None and base.__name__ in RETURN_SEVERAL:
            raise cannot(full_name(kind), "it returns several images: give its Compose by itself")
        return super().ops(transform)


# Operations after which an image has its former size.
_KEEP_SIZE = {
    *("cast", "color_jitter", "elastic_transform", "gaussian_blur", "gaussian_noise", "grayscale"),
    *("jpeg", "normalize", "pillow_gaussian_blur", "rand_augment", "random_adjust_sharpness"),
    *("random_affine", "random_autocontrast", "random_channel_permutation", "random_equalize"),
    *("random_erasing", "random_grayscale", "random_horizontal_flip", "random_invert"),
    *("random_perspective", "random_photometric_distort", "random_posterize", "random_solarize"),
    *("random_vertical_flip", "torchvision_aug_mix", "trivial_augment"),
}


def _size_after(op: Op, size: list[int] | None) -> list[int] | None:
    """Height and width after an operation. None: they depend on the image, or on chance."""
    name, values = next(iter(op.items()))
    if "transforms" in values:
        keep = all(_size_after(inner, size) == size for inner in values["transforms"])
        return size if keep else None
    if isinstance(values.get("size"), list):
        return list(values["size"])
    if name == "rotate90" and size is not None:
        return size if size[0] == size[1] else None
    return size if name in _KEEP_SIZE else None


# Views of lightly.


def is_multi_view(transform: Any) -> bool:
    """Whether lightly's ``MultiViewTransform.__call__`` makes the views."""
    for kind in type(transform).__mro__:
        is_it = kind.__name__ == "MultiViewTransform"
        if is_it and kind.__module__ == "lightly.transforms.multi_view_transform":
            if type(transform).__call__ is kind.__call__:
                return True
            raise cannot(
                full_name(type(transform)),
                "it overrides __call__ of MultiViewTransform, and workers run no Python: give a "
                "list of recipes",
            )
    return False


def is_compose(transform: Any) -> bool:
    """Whether torchvision's Compose or preset decides what it does, or a class that overrides
    some of it, which is an error later.
    """
    base = torchvision_base(type(transform))
    return base is not None and base.__name__ in ("Compose", "ImageClassification")


def lightly_view(transform: Any) -> Any:
    """The Compose of a view of lightly, such as ``SimCLRViewTransform``."""
    kind = type(transform)
    is_view = kind.__module__.startswith("lightly.transforms.") and "View" in kind.__name__
    if not is_view or is_multi_view(transform):
        return None
    inner = vars(transform).get("transform")
    return inner if is_compose(inner) else None


# Operations of several packages.


def _check_levels(walk: Walk, t: Any) -> None:
    if walk.is_tensor or walk.values != "levels":
        raise cannot(full_name(type(t)), "put it before the transform to a tensor")


def _pillow_blur(walk: Walk, t: Any, radius: Any, p: float) -> list[Op]:
    """Pillow's ``GaussianBlur`` of a random radius."""
    if p == 0:
        return []
    _check_levels(walk, t)
    low, high = radius
    return [{"pillow_gaussian_blur": {"radius": [float(low), float(high)], "p": p}}]


def _solarize(walk: Walk, t: Any, threshold: float, p: float) -> list[Op]:
    """Pillow's ``ImageOps.solarize``."""
    if p == 0:
        return []
    _check_levels(walk, t)
    return [{"random_solarize": {"threshold": threshold, "p": p}}]


def _equalize(walk: Walk, t: Any) -> list[Op]:
    _check_levels(walk, t)
    return [{"random_equalize": {"p": 1.0}}]


def _rotate(walk: Walk, t: Any) -> list[Op]:
    if t.prob == 0:
        return []
    size = walk.size if isinstance(walk, CropWalk) else None
    is_square = size is not None and size[0] == size[1]
    if t.prob < 1 or t.angle % 90 != 0 or not is_square:
        raise cannot(
            f"{full_name(type(t))}(prob={t.prob}, angle={t.angle})",
            "a recipe has quarter turns of square crops without chance: use rr_degrees",
        )
    return [{"rotate90": {"times": int(t.angle // 90)}}]


def _mode(walk: Walk, t: Any) -> list[Op]:
    if t.mode != "RGB":
        raise cannot(f"MaybeConvertMode({t.mode!r})", "images are RGB: leave it out")
    return rgb(walk, t)


def _check_inner(t: Any, name: str) -> None:
    if torchvision_class(t.transf).__name__ != name:
        raise cannot(full_name(type(t)), f"its transf is no {name}: use {name}")


def _jitter(walk: Walk, t: Any) -> list[Op]:
    _check_inner(t, "ColorJitter")
    [op] = color_jitter(walk, t.transf)
    return [{"color_jitter": {**op["color_jitter"], "p": float(t.p)}}]


def _grey(walk: Walk, t: Any) -> list[Op]:
    _check_inner(t, "Grayscale")
    return random_grayscale(walk, t)


def _inner(walk: Walk, t: Any) -> list[Op]:
    return walk.ops(t.transform)


_ON_PILLOW = "on a Pillow image"
_BLUR, _SOLARIZE = "`pillow_gaussian_blur`", "`random_solarize`"

PACKAGES: dict[str, Known] = {
    "lightly.transforms.gaussian_blur.GaussianBlur": Known(
        lambda walk, t: _pillow_blur(walk, t, t.sigmas, float(t.prob)), _BLUR, _ON_PILLOW
    ),
    "lightly.transforms.rotation.RandomRotate": Known(
        _rotate, "`rotate90`", "`prob` is 0 or 1, quarter turns of a square crop"
    ),
    "lightly.transforms.rotation.RandomRotateDegrees": Known(_inner, "as its `RandomRotation`"),
    "lightly.transforms.solarize.RandomSolarization": Known(
        lambda walk, t: _solarize(walk, t, float(t.threshold), float(t.prob)),
        _SOLARIZE,
        _ON_PILLOW,
    ),
    "lightly.transforms.torchvision_v2_compatibility.ToTensor": Known(_inner, "`cast`"),
    "open_clip.transform.MaybeConvertMode": Known(_mode, "none", "`mode='RGB'`"),
    "open_clip.transform.MaybeToTensor": Known(to_tensor, "`cast`", _ON_PILLOW),
    "open_clip.transform.color_jitter": Known(_jitter, "`color_jitter`", _ON_PILLOW),
    "open_clip.transform.gray_scale": Known(_grey, "`color_jitter`: Pillow's rounding", _ON_PILLOW),
    "torch.nn.modules.linear.Identity": Known(lambda walk, t: [], "none"),
}
"""Classes of installed packages, by their full names."""


@dataclass(frozen=True)
class ScriptClass:
    """A class that scripts define."""

    name: str
    """Its name, and the scripts that have it."""
    known: Known


def _blur(name: str, radius: Callable[[Any], Any], p: Callable[[Any], float]) -> ScriptClass:
    known = Known(lambda walk, t: _pillow_blur(walk, t, radius(t), p(t)), _BLUR, _ON_PILLOW)
    return ScriptClass(name, known)


def _solarization(name: str, p: Callable[[Any], float]) -> ScriptClass:
    known = Known(lambda walk, t: _solarize(walk, t, 128.0, p(t)), _SOLARIZE, _ON_PILLOW)
    return ScriptClass(name, known)


SCRIPTS: dict[str, ScriptClass] = {
    "1de6a5e93f4393d8": _blur(
        "`GaussianBlur` of MoCo, MoCo v3, SimSiam", lambda t: t.sigma, lambda t: 1.0
    ),
    "4da38b22e1ce2a3b": _blur("`GaussianBlur` of solo-learn", lambda t: t.sigma, lambda t: 1.0),
    "66f5c306a7ce99f4": _blur(
        "`GaussianBlur` of DINO",
        lambda t: (t.radius_min, t.radius_max),
        lambda t: float(t.prob),
    ),
    "be3e62daa3d01dc5": _solarization("`Solarize` of MoCo v3", lambda t: 1.0),
    "9eb21d57e9643034": _solarization("`Solarization` of solo-learn", lambda t: 1.0),
    "33a7887b3d1a16d1": _solarization("`Solarization` of DINO", lambda t: float(t.p)),
    "0fad82a31f374308": ScriptClass(
        "`Equalization` of solo-learn", Known(_equalize, "`random_equalize`", _ON_PILLOW)
    ),
}
"""Classes of scripts, by the code of their ``__call__``."""
