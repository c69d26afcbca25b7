"""Classes of one's own that inherit from torchvision's: like the parent, or an error."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import need

import featherload
from featherload import recipes


def classes(name: str) -> dict[str, type]:
    """Subclasses of version 1 or 2."""
    v: Any = pytest.importorskip(f"torchvision.{name}")

    class Plain(v.RandomCrop):  # type: ignore[misc]
        """Nothing of its own."""

    class Preset(v.RandomResizedCrop):  # type: ignore[misc]
        sizes = (24, 32)

        def __init__(self) -> None:
            super().__init__(self.sizes, scale=(0.5, 1.0))

        def described(self) -> str:
            return f"{self.size}"

        def __repr__(self) -> str:
            return "Preset"

    class Twice(Preset):
        pass

    class Several(v.Compose):  # type: ignore[misc]
        pass

    class Draws(v.RandomCrop):  # type: ignore[misc]
        @staticmethod
        def get_params(img: Any, output_size: Any) -> tuple[int, int, int, int]:
            return 0, 0, 9, 9

        def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
            return {}

    class Changes(v.RandomHorizontalFlip):  # type: ignore[misc]
        def forward(self, *inputs: Any) -> Any:
            return inputs[0]

    class Calls(v.Compose):  # type: ignore[misc]
        def __call__(self, image: Any) -> Any:
            return image

    class Upset:
        def forward(self, *inputs: Any) -> Any:
            return inputs[0]

    class Mixed(Upset, v.Resize):  # type: ignore[misc]
        pass

    class Empty(v.Resize):  # type: ignore[misc]
        def __init__(self) -> None:
            pass

    return {name: one for name, one in locals().items() if isinstance(one, type)}


@pytest.mark.parametrize("version", ["transforms", "transforms.v2"])
def test_subclasses_that_override_nothing_are_their_parents(version: str) -> None:
    need("torchvision")
    own = classes(version)
    v: Any = pytest.importorskip(f"torchvision.{version}")
    pairs: list[tuple[Any, Any]] = [
        (own["Plain"](9, padding=(1, 2, 3, 4)), v.RandomCrop(9, padding=(1, 2, 3, 4))),
        (own["Preset"](), v.RandomResizedCrop((24, 32), scale=(0.5, 1.0))),
        (own["Twice"](), v.RandomResizedCrop((24, 32), scale=(0.5, 1.0))),
        (own["Several"]([own["Plain"](9)]), v.Compose([v.RandomCrop(9)])),
    ]
    for one, parent in pairs:
        assert recipes.torchvision(one) == recipes.torchvision(parent)


@pytest.mark.parametrize("version", ["transforms", "transforms.v2"])
@pytest.mark.parametrize(
    ("name", "make", "why"),
    [
        ("Draws", lambda kind: kind(9), "Draws.*overrides (get|make)_params of RandomCrop"),
        ("Changes", lambda kind: kind(), "Changes.*overrides forward of RandomHorizontalFlip"),
        ("Calls", lambda kind: kind([None]), "Calls.*overrides __call__ of Compose"),
        ("Mixed", lambda kind: kind(9), "Mixed.*overrides forward of Resize"),
        ("Empty", lambda kind: kind(), "Empty.*lacks an attribute of Resize.*super"),
    ],
)
def test_what_a_subclass_overrides_is_named(
    version: str, name: str, make: Callable[[type], Any], why: str
) -> None:
    need("torchvision")
    with pytest.raises(featherload.ConfigError, match=why) as refused:
        recipes.torchvision([make(classes(version)[name])])
    assert refused.value.option == "recipe"


def test_functions_given_to_an_object_are_named() -> None:
    need("torchvision")
    from torchvision.transforms import v2

    replaced = v2.Resize(9)
    replaced.forward = lambda *inputs: inputs[0]
    hooked = v2.Resize(9)
    hooked.register_forward_hook(lambda *_: None)

    class Own(v2.Transform):  # type: ignore[misc]
        def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
            return inpt

    for one, why in [
        (replaced, "Resize.*overrides forward"),
        (hooked, "Resize.*forward hook"),
        (Own(), "Own.*no class of torchvision"),
    ]:
        with pytest.raises(featherload.ConfigError, match=why):
            recipes.torchvision([one])


def test_a_subclass_trains(loader: Callable[..., featherload.Loader]) -> None:
    need("torchvision")
    from torchvision.transforms import v2

    preset = classes("transforms.v2")["Preset"]
    images, _ = next(iter(loader(recipe=[preset(), v2.PILToTensor()])))
    assert images.shape[1:] == (3, 24, 32)


def test_errors_of_what_is_no_transform_name_the_fix(tmp_path: Path) -> None:
    v: Any = pytest.importorskip("torchvision.transforms")
    whole = v.Compose([v.RandomResizedCrop(8), v.ToTensor()])

    class Two:
        def __init__(self) -> None:
            self.transform = whole

        def __call__(self, image: Any) -> list[Any]:
            return [self.transform(image), self.transform(image)]

    for recipe, why in (
        (Two(), r"Two .*give a list for several images, recipe=\[first, second\]"),
        (v.Lambda(abs), "Lambda .*give then=function"),
        (v.Compose([abs, v.ToTensor()]), "the transform abs .*give then=function"),
        (v.Resize, r"the transform Resize .*give an object of it, such as Resize\(...\)"),
        ((whole, 4), "put it in a list"),
        ([whole, (4, whole)], r"the transform 4 .*give pairs as \(transform, count\)"),
        ({"a": whole, "b": whole}, r"crops are a list, recipe=\[first, \(second, 8\)\]"),
    ):
        with pytest.raises(featherload.ConfigError, match=why) as caught:
            featherload.Loader(tmp_path, recipe)
        assert caught.value.option == "recipe"
