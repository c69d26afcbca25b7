"""What counts as a recipe with several crops: objects of other packages and of scripts, counts,
subclasses; and what a loader does with the crops.
"""
# ruff: noqa: E402

from __future__ import annotations

import ast
import functools
import importlib.util
import os
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import need

import featherload

for module in ("torch", "torchvision"):
    # As conftest's `need`, for all tests of the file.
    if importlib.util.find_spec(module) is None:
        if os.environ.get("FEATHERLOAD_REQUIRE_FRAMEWORKS"):
            pytest.fail(f"{module} is not installed", pytrace=False)
        pytest.skip(f"SKIP: {module} is not installed", allow_module_level=True)

import torch
from PIL import Image, ImageFilter, ImageOps
from torch.utils.data import DataLoader as Theirs
from torchvision import transforms as v1
from torchvision.datasets import MNIST, ImageFolder
from torchvision.transforms import v2

from featherload import ConfigError, _crops, recipes
from featherload.torch import DataLoader

Make = Callable[..., featherload.Loader]
FLOATS = [v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Soft PNGs of sizes of their own, which every decoder reads alike."""
    root = tmp_path_factory.mktemp("objects")
    noise = np.random.default_rng(3)
    for number in range(9):
        height, width = (int(side) for side in noise.integers(60, 120, 2))
        few = Image.fromarray(noise.integers(0, 256, (5, 7, 3), dtype=np.uint8))
        path = root / f"class{number % 2}" / f"{number:02}.png"
        path.parent.mkdir(exist_ok=True)
        few.resize((width, height), Image.Resampling.BICUBIC).save(path)
    return root


def sides(made: featherload.Loader) -> list[tuple[int, ...]]:
    """Height and width of each crop."""
    images = next(iter(made)).images
    assert isinstance(images, list)
    return [tuple(one.shape[-2:]) for one in images]


class MyCompose(v2.Compose):  # type: ignore[misc]
    """Overrides nothing."""


class ChangedCompose(v2.Compose):  # type: ignore[misc]
    def forward(self, *inputs: Any) -> Any:
        return inputs[0]


Foreign = type("Compose", (), {"__module__": "albumentations", "transforms": [v2.CenterCrop(9)]})


def test_subclasses_of_compose_are_recipes_of_a_list(loader: Make, folder: Path) -> None:
    mine, theirs = MyCompose([v2.Resize((20, 20))]), v2.Compose([v2.CenterCrop(10)])
    own = MyCompose([v2.CenterCrop(10)])
    assert sides(loader(folder, recipe=[mine, own])) == [(20, 20), (10, 10)]
    assert sides(loader(folder, recipe=[theirs, mine])) == [(10, 10), (20, 20)]
    assert sides(loader(folder, recipe=[(mine, 2)])) == [(20, 20)] * 2
    # One is a recipe of one image, as a list with one Compose is.
    assert next(iter(loader(folder, recipe=[mine]))).images.shape[-2:] == (20, 20)
    with pytest.raises(ConfigError, match="ChangedCompose.*overrides forward"):
        loader(folder, recipe=[theirs, ChangedCompose([v2.CenterCrop(10)])])
    # The name alone does not make a class torchvision's.
    with pytest.raises(ConfigError, match="albumentations.Compose"):
        loader(folder, recipe=[Foreign(), Foreign()])


def test_counts_are_any_whole_numbers(loader: Make, folder: Path) -> None:
    compose = v2.Compose([v2.CenterCrop(10)])
    assert sides(loader(folder, recipe=[(compose, np.int64(3))])) == [(10, 10)] * 3
    for count in (2.0, True, np.float32(2)):
        with pytest.raises(ConfigError, match=r"the count of a crop .* is not a whole number"):
            loader(folder, recipe=[(compose, count)])
    with pytest.raises(ConfigError, match="put it in a list"):
        loader(folder, recipe=(compose, 8))
    with pytest.raises(ConfigError, match="put it in a list"):
        loader(folder, recipe=("eval224", 8))
    # A tuple of names is as a list of them.
    pair = [next(iter(loader(folder, recipe=of("eval224", "eval224")))) for of in (tup, lst)]
    assert [one.dtype for one in pair[0].images] == [one.dtype for one in pair[1].images]


def tup(*entries: Any) -> Any:
    return entries


def lst(*entries: Any) -> Any:
    return list(entries)


def test_image_processors_are_entries(loader: Make, folder: Path) -> None:
    need("transformers")
    from transformers import ViTImageProcessor

    small = ViTImageProcessor(size={"height": 32, "width": 24})
    compose = v2.Compose([v2.Resize((20, 20)), *FLOATS])
    alone = next(iter(loader(folder, recipe=small, shuffle=False)))
    both = loader(folder, recipe=[small, compose], shuffle=False)
    batch = next(iter(both))
    assert [one.shape[-2:] for one in batch.images] == [(32, 24), (20, 20)]
    np.testing.assert_array_equal(batch.images[0], alone.images)
    assert sides(loader(folder, recipe=[(small, 2)])) == [(32, 24)] * 2
    assert sides(loader(folder, recipe=[small, small])) == [(32, 24)] * 2


# FiveCrop.


class MyFive(v2.FiveCrop):  # type: ignore[misc]
    """Overrides nothing."""


@pytest.mark.parametrize(
    "transforms",
    [
        [v2.Grayscale(3), v2.FiveCrop(40)],
        [v2.GaussianBlur(3, sigma=(1, 1)), v2.FiveCrop(40), v2.RandomHorizontalFlip(1.0)],
        [v2.RandomApply([v2.RandomInvert(1.0)], 1.0), MyFive(40)],
        [v2.Compose([v2.Resize((50, 60)), v2.TenCrop(40)]), v2.RandomSolarize(128, 1.0)],
        [v2.ColorJitter(brightness=(0.5, 0.5)), v2.FiveCrop(40), v2.ColorJitter()],
    ],
)
def test_settled_transforms_beside_five_crops(folder: Path, transforms: list[Any]) -> None:
    """Nothing is random, so torch's loader gives the same."""
    start = [v2.Resize((58, 70)), v2.ToImage()]
    data = ImageFolder(str(folder), v2.Compose([*start, *transforms]))
    with DataLoader(data, batch_size=4) as ours:
        for (images, _), (wanted, _) in zip(ours, Theirs(data, batch_size=4), strict=True):
            assert len(images) == len(wanted)
            for one, other in zip(images, wanted, strict=True):
                assert one.shape == other.shape
                assert (one.int() - other.int()).abs().float().mean() < 1


@pytest.mark.parametrize(
    ("transform", "name"),
    [
        (v2.ColorJitter(brightness=0.5), "ColorJitter"),
        (v2.ColorJitter((0.5, 0.5), (0.5, 0.5)), "ColorJitter"),
        (v2.GaussianBlur(3), "GaussianBlur"),
        (v2.RandomInvert(0.5), "RandomInvert"),
        (v2.RandomApply([v2.RandomInvert(0.5)], 1.0), "RandomApply"),
        (v2.RandomRotation(3), "RandomRotation"),
    ],
)
def test_random_transforms_beside_five_crops_are_named(transform: Any, name: str) -> None:
    for transforms in ([transform, v2.FiveCrop(9)], [v2.FiveCrop(9), transform]):
        with pytest.raises(ConfigError, match=f"{name} with FiveCrop.*once for all crops"):
            _crops.crops_recipe(v2.Compose([v2.ToImage(), *transforms]))


# Classes of packages and scripts.


def test_a_changed_copy_of_a_script_is_refused() -> None:
    """The name of a module does not tell what its code does."""

    class GaussianBlur:
        def __init__(self) -> None:
            self.sigma = (0.1, 2.0)

        def __call__(self, x: Any) -> Any:
            return ImageOps.invert(x)

    class Solarization:
        def __call__(self, img: Any) -> Any:
            return ImageOps.solarize(img, 10)

    for name, kind in [
        ("moco.loader", GaussianBlur),
        ("solo.data.pretrain_dataloader", GaussianBlur),
        ("solo.data.pretrain_dataloader", Solarization),
        ("solo.utils.pretrain_dataloader", Solarization),
    ]:
        kind.__module__, kind.__qualname__ = name, kind.__name__
        with pytest.raises(ConfigError, match=f"{name}.{kind.__name__}.*no class"):
            recipes.torchvision([v2.Resize((60, 60)), kind(), v2.ToImage()])


def turned(call: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(call)
    def other(*given: Any) -> Any:
        return call(*given).rotate(180)

    return other


def test_a_decorated_copy_of_a_script_is_refused() -> None:
    class Decorated:
        @turned
        def __call__(self, img: Any) -> Any:
            return ImageOps.solarize(img)

    class Wrapped:
        def __call__(self, img: Any) -> Any:
            return ImageOps.solarize(img)

    assert recipes.torchvision([Wrapped()])["ops"][1] == {
        "random_solarize": {"threshold": 128.0, "p": 1.0}
    }
    Wrapped.__call__ = turned(Wrapped.__call__)  # type: ignore[method-assign]
    for kind in (Decorated, Wrapped):
        with pytest.raises(ConfigError, match=kind.__name__):
            recipes.torchvision([kind()])


class BlurAsInDino(v1.RandomApply):  # type: ignore[misc]
    def __init__(self, *, p: float) -> None:
        super().__init__([v1.GaussianBlur(9)], p=1 - p)


def test_functions_and_hooks_of_any_object_are_refused() -> None:
    assert recipes.torchvision([BlurAsInDino(p=0.25)])["ops"][1]["random_apply"]["p"] == 0.75
    makes: list[Callable[[], Any]] = [
        lambda: BlurAsInDino(p=0.5),
        lambda: v2.RandomApply([v2.CenterCrop(9)]),
        lambda: v2.CenterCrop(9),
        lambda: v2.FiveCrop(9),
        lambda: v2.Compose([v2.CenterCrop(9)]),
    ]
    if importlib.util.find_spec("open_clip") is not None:
        from open_clip.transform import MaybeToTensor

        makes.append(MaybeToTensor)
    for make in makes:
        changed = make()
        if hasattr(changed, "register_forward_hook"):
            changed.register_forward_hook(lambda module, given, made: made)
            with pytest.raises(ConfigError, match="hook"):
                _crops.object_recipe(v2.Compose([changed]))
        changed = make()
        name = "forward" if hasattr(changed, "forward") else "__call__"
        setattr(changed, name, lambda image: image.rotate(180))
        with pytest.raises(ConfigError, match=f"overrides {name}"):
            _crops.object_recipe(v2.Compose([changed]))


def test_every_kind_of_script_is_known_by_its_code(tmp_path: Path) -> None:
    """The `__call__` of DINO and DINOv2 (Apache 2.0, Meta Platforms), MoCo v3 and solo-learn."""

    class OfDino:
        def __call__(self, image: Any) -> Any:
            crops = []
            crops.append(self.global_transfo1(image))  # type: ignore[attr-defined]
            crops.append(self.global_transfo2(image))  # type: ignore[attr-defined]
            for _ in range(self.local_crops_number):  # type: ignore[attr-defined]
                crops.append(self.local_transfo(image))  # type: ignore[attr-defined]
            return crops

    class OfDino2:
        geometric_augmentation_global: Any
        geometric_augmentation_local: Any
        global_transfo1: Any
        global_transfo2: Any
        local_transfo: Any
        local_crops_number: Any

        def __call__(self, image: Any) -> Any:
            output = {}

            # global crops:
            im1_base = self.geometric_augmentation_global(image)
            global_crop_1 = self.global_transfo1(im1_base)

            im2_base = self.geometric_augmentation_global(image)
            global_crop_2 = self.global_transfo2(im2_base)

            output["global_crops"] = [global_crop_1, global_crop_2]

            # global crops for teacher:
            output["global_crops_teacher"] = [global_crop_1, global_crop_2]

            # local crops:
            local_crops = [
                self.local_transfo(self.geometric_augmentation_local(image))
                for _ in range(self.local_crops_number)
            ]
            output["local_crops"] = local_crops
            output["offsets"] = ()  # type: ignore[assignment]

            return output

    def of(size: int) -> Any:
        return v2.Compose([v2.CenterCrop(size)])

    def tensor_of(size: int) -> Any:
        return v2.Compose([v2.CenterCrop(size), v2.ToImage()])

    for kind in (OfDino, OfDino2):
        made: Any = kind()
        made.global_transfo1, made.global_transfo2 = of(12), of(13)
        made.local_transfo, made.local_crops_number = of(8), 3
        made.geometric_augmentation_global = v2.RandomHorizontalFlip(0.5)
        made.geometric_augmentation_local = v2.RandomHorizontalFlip(0.5)
        crops = (_crops.crops_recipe(made) or {})["crops"]
        assert [crop["count"] for crop in crops] == [1, 1, 3]
        cut = [op["center_crop"]["size"] for crop in crops for op in crop["ops"] if center(op)]
        assert cut == [[12, 12], [13, 13], [8, 8]]
        # Also as the transform of a data set: a list in place of the dict.
        made.global_transfo1, made.global_transfo2 = tensor_of(12), tensor_of(13)
        made.local_transfo = tensor_of(8)
        folder = tmp_path / kind.__name__
        for number in range(4):
            path = folder / str(number % 2) / f"{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (20, 16), (number, 50, 90)).save(path)
        images, labels = next(iter(DataLoader(ImageFolder(folder, transform=made), batch_size=4)))
        assert [image.shape[-1] for image in images] == [12, 13, 8, 8, 8]
        assert labels.tolist() == [0, 0, 1, 1]
        # Flat images, so flips and crops change nothing: those of the object itself.
        for row, number in enumerate([0, 2, 1, 3]):
            with Image.open(folder / str(number % 2) / f"{number}.png") as image:
                wanted = made(image)
            if isinstance(wanted, dict):
                wanted = [*wanted["global_crops"], *wanted["local_crops"]]
            for crop, theirs in zip(images, wanted, strict=True):
                assert torch.equal(crop[row], theirs)

    class OfMoCo3:
        def __call__(self, x: Any) -> Any:
            im1 = self.base_transform1(x)  # type: ignore[attr-defined]
            im2 = self.base_transform2(x)  # type: ignore[attr-defined]
            return [im1, im2]

    two: Any = OfMoCo3()
    two.base_transform1, two.base_transform2 = of(12), of(8)
    assert len((_crops.crops_recipe(two) or {})["crops"]) == 2

    class BlurOfDino:
        prob, radius_min, radius_max = 0.25, 0.1, 2.0

        def __call__(self, img: Any) -> Any:
            do_it = random.random() <= self.prob
            if not do_it:
                return img

            return img.filter(
                ImageFilter.GaussianBlur(radius=random.uniform(self.radius_min, self.radius_max))
            )

    class SolarizationOfDino:
        p = 0.25

        def __call__(self, img: Any) -> Any:
            if random.random() < self.p:
                return ImageOps.solarize(img)
            else:
                return img

    class Equalization:
        def __call__(self, img: Any) -> Any:
            return ImageOps.equalize(img)

    class BlurOfSolo:
        sigma = (0.1, 2.0)

        def __call__(self, img: Any) -> Any:
            """Applies gaussian blur to an input image."""

            sigma = random.uniform(self.sigma[0], self.sigma[1])
            img = img.filter(ImageFilter.GaussianBlur(radius=sigma))
            return img

    blur = {"radius": [0.1, 2.0]}
    for kind, op in [
        (BlurOfDino, {"pillow_gaussian_blur": {**blur, "p": 0.25}}),
        (BlurOfSolo, {"pillow_gaussian_blur": {**blur, "p": 1.0}}),
        (SolarizationOfDino, {"random_solarize": {"threshold": 128.0, "p": 0.25}}),
        (Equalization, {"random_equalize": {"p": 1.0}}),
    ]:
        assert recipes.torchvision([kind()])["ops"][1] == op
        with pytest.raises(ConfigError, match="before the transform to a tensor"):
            recipes.torchvision([v2.ToImage(), kind()])


def center(op: Any) -> bool:
    return "center_crop" in op


def test_quarter_turns_of_lightly_need_a_square_that_is_certain() -> None:
    need("lightly")
    from lightly.transforms.rotation import RandomRotate

    turn = RandomRotate(1.0, 90)
    square = v2.Resize((20, 20))
    for between in ([], [v2.ColorJitter(0.1)], [v2.RandomApply([v2.RandomHorizontalFlip()])]):
        ops = recipes.torchvision([square, *between, turn])["ops"]
        assert {"rotate90": {"times": 1}} in ops
    for between in (
        [v2.Pad((6, 0))],
        [v2.RandomZoomOut()],
        [v2.RandomApply([v2.CenterCrop((10, 20))])],
        [v2.Pad((6, 0)), v2.RandomHorizontalFlip()],
    ):
        with pytest.raises(ConfigError, match="quarter turns of square crops"):
            recipes.torchvision([square, *between, turn])


# Data sets.


class TwoCropsTransform:
    def __init__(self, base_transform: Any) -> None:
        self.base_transform = base_transform

    def __call__(self, x: Any) -> Any:
        q = self.base_transform(x)
        k = self.base_transform(x)
        return [q, k]


def test_two_crops_of_grey_images(tmp_path: Path) -> None:
    data = object.__new__(MNIST)
    noise = np.random.default_rng(1).integers(0, 256, (12, 28, 28), dtype=np.uint8)
    data.data, data.targets = torch.from_numpy(noise), torch.arange(12)
    data.target_transform = None
    data.transforms = None
    for transform in (
        TwoCropsTransform(v1.Compose([v1.RandomHorizontalFlip(1.0), v1.ToTensor()])),
        v2.Compose([v2.ToImage(), v2.FiveCrop(20)]),
    ):
        data.transform = transform
        with DataLoader(data, batch_size=4) as ours:
            for (images, labels), (wanted, classes) in zip(
                ours, Theirs(data, batch_size=4), strict=True
            ):
                assert torch.equal(labels, classes)
                assert len(images) == len(wanted)
                for one, other in zip(images, wanted, strict=True):
                    assert one.shape == other.shape and one.shape[1] == 1
                    assert torch.allclose(one.float(), torch.as_tensor(other).float(), atol=1e-6)


def test_views_must_end_with_tensors(folder: Path) -> None:
    """As one image must: torch's loader cannot collate Pillow's."""
    for transform in (
        TwoCropsTransform(v1.Compose([v1.RandomResizedCrop(20)])),
        v1.Compose([v1.FiveCrop(20)]),
    ):
        data = ImageFolder(str(folder), transform)
        with pytest.raises(ConfigError, match="returns no tensor"):
            DataLoader(data, batch_size=4)
        with pytest.raises(TypeError):
            next(iter(Theirs(data, batch_size=4)))
    keeps = TwoCropsTransform(v1.Compose([v1.ToTensor()]))
    with pytest.raises(ConfigError, match="own sizes"):
        DataLoader(ImageFolder(str(folder), keeps), batch_size=4)


def test_lightlys_data_set(folder: Path) -> None:
    need("lightly")
    from lightly.data import LightlyDataset
    from lightly.transforms import DINOTransform

    data = LightlyDataset(str(folder), transform=DINOTransform())
    with DataLoader(data, batch_size=4) as ours:
        images, labels = next(iter(ours))
        assert len(images) == 8 and labels.tolist() == [0, 0, 0, 0]
    # A folder without classes, and another data set inside.
    square = v1.Compose([v1.CenterCrop(20), v1.ToTensor()])
    inner = ImageFolder(str(folder))
    for data in (
        LightlyDataset(str(folder / "class0"), transform=square),
        LightlyDataset.from_torch_dataset(inner, transform=square),
    ):
        with DataLoader(data, batch_size=3) as ours:
            for batch, (wanted, classes, names) in zip(ours, Theirs(data, 3), strict=True):
                assert torch.equal(batch.images, wanted) and torch.equal(batch.labels, classes)
                assert [path.name for path in batch.paths()] == [Path(one).name for one in names]

    class Mine(LightlyDataset):  # type: ignore[misc]
        pass

    with pytest.raises(ConfigError, match="Mine is not known"):
        DataLoader(Mine(str(folder), transform=square), batch_size=4)


# Batches of crops.


def small_crops() -> list[Any]:
    return [v2.Compose([v2.Resize((20, 20))]), (v2.Compose([v2.CenterCrop(10)]), 2)]


def test_batches_print_after_they_moved(loader: Make, folder: Path) -> None:
    options: dict[str, Any] = {"batch_size": 4, "framework": "torch"}
    one = next(iter(loader(folder, recipe="eval224", **options)))
    assert "4 x 3 x 224 x 224, cpu" in repr(one)
    assert "4 x 3 x 224 x 224, cpu" in repr(one.to(torch.float16))
    assert "4 x 3 x 224 x 224, meta" in repr(one.to("meta"))
    crops = next(iter(loader(folder, recipe=small_crops(), **options)))
    assert "3 crops of 4, cpu" in repr(crops.to(torch.float16))
    assert "3 crops of 4, cpu" in repr(crops)
    rows = next(iter(loader(folder, recipe="full", **options)))
    assert "rows of own sizes" in repr(rows) and "rows of own sizes" in repr(rows.to(torch.float16))
    thens: list[tuple[Any, Any, str]] = [
        ("eval224", lambda images: images[:, :1] * 2, "4 x 1 x 224 x 224"),
        (small_crops(), lambda crops: [crop * 2 for crop in crops], "3 crops of 4"),
        (small_crops(), lambda crops: torch.stack(crops[1:], 1), "4 x 2 x 3 x 10 x 10"),
    ]
    for recipe, then, text in thens:
        assert text in repr(next(iter(loader(folder, recipe=recipe, then=then, **options))))


def test_then_with_crops_keeps_a_row_for_each_sample(loader: Make, folder: Path) -> None:
    options: dict[str, Any] = {"recipe": small_crops(), "batch_size": 4, "framework": "torch"}
    plain = next(iter(loader(folder, **options)))

    def replaced(crops: list[Any]) -> Any:
        crops[0] = crops[0] * 0
        return crops

    batch = next(iter(loader(folder, then=replaced, **options)))
    assert not batch.images[0].any() and batch.images[1].any()
    for pair in (batch.torch(), batch.numpy()):
        assert not np.asarray(pair[0][0]).any()
        assert np.asarray(pair[0][1]).any()
    # The list as it came uses the memory of the batch.
    same = next(iter(loader(folder, then=lambda crops: crops, **options)))
    assert torch.equal(same.images[0], plain.images[0]) and same._raw.has_pixels
    refused: list[tuple[Any, str]] = [
        (lambda crops: [crop[:1] for crop in crops], "1 rows in array 0 for 4 samples"),
        (torch.cat, "8 rows for 4 samples.*torch.stack"),
        (lambda crops: tuple(crops), "returned a tuple"),
        (lambda crops: {"a": crops[0]}, "returned a dict"),
        (lambda crops: [crops[0], 3], "a list with a int"),
    ]
    for then, why in refused:
        given = {**options, "recipe": [(v2.Compose([v2.CenterCrop(10)]), 2)]}
        with pytest.raises(ConfigError, match=why):
            next(iter(loader(folder, then=then, **given)))


def test_broken_files_and_columns_with_crops(loader: Make, folder: Path, tmp_path: Path) -> None:
    mixed = tmp_path / "mixed"
    for number, path in enumerate(sorted(folder.rglob("*.png"))):
        (mixed / path.parent.name).mkdir(parents=True, exist_ok=True)
        target = mixed / path.parent.name / path.name
        target.write_bytes(b"broken" if number == 2 else path.read_bytes())
    for on_error in ("skip", "substitute"):
        options = {"recipe": small_crops(), "on_error": on_error, "shuffle": False}
        batch = next(iter(loader(mixed, batch_size=9, **options)))
        [fault] = batch.faults
        for crop, geometry in zip(batch.images, batch.geometry, strict=True):
            if on_error == "skip":
                assert not crop[fault.row].any() and not geometry.boxes[fault.row].any()
                assert batch.labels[fault.row] == -1
            else:
                other = list(batch.ids).index(fault.substitute)
                assert other != fault.row or list(batch.ids).count(fault.substitute) == 2
                twins = [row for row, id in enumerate(batch.ids) if id == fault.substitute]
                assert len(twins) == 2
                np.testing.assert_array_equal(crop[twins[0]], crop[twins[1]])
                np.testing.assert_array_equal(*(geometry.sizes[row] for row in twins))


def test_a_preview_shows_every_crop(loader: Make, folder: Path) -> None:
    normal = v2.Compose([v2.CenterCrop(12), *FLOATS, v2.Normalize([0.5] * 3, [0.25] * 3)])
    plain = v2.Compose([v2.Resize((20, 24)), *FLOATS])
    made = loader(folder, recipe=[(normal, 2), plain], batch_size=4, shuffle=False)
    preview = made.preview(3)
    assert [row.crop for row in preview] == [0, 1, 2] * 3
    assert [row.image.shape for row in preview] == [(12, 12, 3), (12, 12, 3), (20, 24, 3)] * 3
    batch = next(iter(made))
    for row in preview:
        number = list(batch.ids).index(row.id)
        image = batch.images[row.crop][number].transpose(1, 2, 0)
        image = image if row.crop == 2 else image * 0.25 + 0.5
        np.testing.assert_allclose(row.image, image * 255, atol=0.51)
    assert "crop 2" in str(preview)
    alone = loader(folder, recipe=plain, shuffle=False).preview(1)
    assert alone[0].crop is None and "crop" not in alone[0].caption()


def test_moved_pixels_have_no_box(loader: Make, folder: Path) -> None:
    """AugMix shears, moves and turns pixels, so a box would be false."""
    mix = v2.Compose([v2.Resize((50, 50)), v2.AugMix(severity=10, mixture_width=8)])
    batch = next(iter(loader(folder, recipe=[(mix, 8)], batch_size=9)))
    boxes = np.concatenate([crop.boxes for crop in batch.geometry])
    assert np.isnan(boxes).any(1).mean() > 0.5


@pytest.mark.parametrize(
    ("transform", "why"),
    [
        (v2.AugMix(interpolation=v2.InterpolationMode.BICUBIC), "AugMix.*bicubic"),
        (v2.AugMix(alpha=1000.0), "AugMix.*alpha"),
        (v2.RandomPosterize(9), "RandomPosterize.*bits"),
    ],
)
def test_ranges_name_the_class(transform: Any, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        recipes.torchvision([transform])


def test_mistakes_name_the_fix(loader: Make, folder: Path) -> None:
    with pytest.raises(ConfigError, match="set dtype"):
        loader(
            folder,
            recipe=[
                {"ops": [{"center_crop": {"size": 9}}, {"cast": {"dtype": of}}]}
                for of in ("f32", "u8")
            ],
        )
    with pytest.raises(ConfigError, match="orientation.*give all crops the same"):
        loader(folder, recipe=["eval224", v2.Compose([v2.CenterCrop(9), *FLOATS])])
    five = v2.Compose([v2.FiveCrop(9)])
    with pytest.raises(ConfigError, match="5 different crops.*list it 2 times"):
        loader(folder, recipe=[(five, 2)])
    with pytest.raises(ConfigError) as error:
        recipes.torchvision([v2.ToImage(), v1.ToTensor()])
    assert "leave it out" in str(error.value) and "featherload ops" not in str(error.value)
    with pytest.raises(ConfigError, match="featherload ops"):
        recipes.torchvision([v2.Lambda(len)])


def test_real_sources_are_known(tmp_path: Path) -> None:
    """Where checkouts of the scripts are: the code of their classes is what the registries have."""
    root = os.environ.get("FEATHERLOAD_SCRIPT_SOURCES")
    if root is None:
        pytest.skip("SKIP: FEATHERLOAD_SCRIPT_SOURCES names no folder of DINO's and MoCo's scripts")
    from featherload._other_transforms import SCRIPTS, code_of

    head = "from __future__ import annotations\n"
    found = set()
    for number, path in enumerate(Path(root).rglob("*.py")):
        try:
            source = path.read_text(encoding="utf-8")
            nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ClassDef)]
        except (SyntaxError, UnicodeDecodeError):
            continue
        calls = [
            ast.get_source_segment(source, item, padded=True)
            for node in nodes
            for item in node.body
            if isinstance(item, ast.FunctionDef)
            and item.name == "__call__"
            and not item.decorator_list
        ]
        file = tmp_path / f"of{number}.py"
        file.write_text(head + "".join(f"class A{i}:\n{text}\n" for i, text in enumerate(calls)))
        spec = importlib.util.spec_from_file_location(file.stem, file)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[file.stem] = module
        try:
            spec.loader.exec_module(module)
        except (NameError, AttributeError):
            # A default value of an argument.
            continue
        finally:
            del sys.modules[file.stem]
        found |= {code_of(getattr(module, f"A{i}")()) for i in range(len(calls))}
    # MoCo's own class is above.
    found.add(code_of(TwoCropsTransform(None)))
    assert set(SCRIPTS) | set(_crops.VIEWS) <= found
