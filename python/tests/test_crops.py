"""Several crops of each image: ``recipe=[...]``, and other people's transforms that return several
images.
"""
# ruff: noqa: E402

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import pickle
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import kill_one, need

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
from torchvision.datasets import ImageFolder
from torchvision.transforms import functional as F
from torchvision.transforms import v2

from featherload import ConfigError, _crops
from featherload._other_transforms import code_of
from featherload.torch import DataLoader

Make = Callable[..., featherload.Loader]
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def crop(size: int, scale: tuple[float, float]) -> Any:
    return v1.Compose(
        [
            v1.RandomResizedCrop(size, scale=scale, interpolation=v1.InterpolationMode.BICUBIC),
            v1.RandomHorizontalFlip(),
            v1.ToTensor(),
            v1.Normalize(MEAN, STD),
        ]
    )


def dino() -> list[Any]:
    return [crop(48, (0.32, 1.0)), crop(48, (0.32, 1.0)), (crop(24, (0.05, 0.32)), 8)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Soft PNGs of sizes of their own, which every decoder reads alike."""
    root = tmp_path_factory.mktemp("crops")
    noise = np.random.default_rng(3)
    for number in range(11):
        height, width = (int(side) for side in noise.integers(60, 120, 2))
        few = Image.fromarray(noise.integers(0, 256, (5, 7, 3), dtype=np.uint8))
        path = root / f"class{number % 2}" / f"{number:02}.png"
        path.parent.mkdir(exist_ok=True)
        few.resize((width, height), Image.Resampling.BICUBIC).save(path)
    return root


BICUBIC, BILINEAR = F.InterpolationMode.BICUBIC, F.InterpolationMode.BILINEAR


def expected(
    path: Path, geometry: featherload.CropGeometry, row: int, size: int, mode: Any = BICUBIC
) -> Any:
    """The crop as torchvision makes it from the box and the flip of the batch."""
    with Image.open(path) as opened:
        image = opened.convert("RGB")
    assert tuple(geometry.sizes[row]) == (image.height, image.width)
    left, top, right, bottom = (int(side) for side in geometry.boxes[row])
    part = F.resized_crop(image, top, left, bottom - top, right - left, [size, size], mode)
    if geometry.flips[row]:
        part = F.hflip(part)
    return F.normalize(F.to_tensor(part), MEAN, STD)


def assert_near(one: Any, other: Any, levels: float) -> None:
    """Fails unless pixels differ by at most two levels, and mostly not: filters of 8-bit levels
    have several ways to round a number. ``levels``: those of a unit.
    """
    difference = (torch.as_tensor(one) - other).abs() * levels
    assert difference.max() <= 2.01
    assert difference.mean() <= 0.15


def assert_drawn(batch: featherload.Batch, sizes: list[int], mode: Any = BICUBIC) -> None:
    """Fails unless each crop has torchvision's pixels for its box."""
    assert len(batch.images) == len(batch.geometry) == len(sizes)
    for images, geometry, size in zip(batch.images, batch.geometry, sizes, strict=True):
        assert images.shape == (len(batch.ids), 3, size, size)
        for row, path in enumerate(batch.paths()):
            assert path is not None
            want = expected(path, geometry, row, size, mode)
            assert_near(images[row], want, 0.225 * 255)


def test_a_list_gives_torchvisions_pixels_for_each_drawn_box(loader: Make, folder: Path) -> None:
    made = loader(folder, recipe=dino(), batch_size=4, framework="torch", seed=3)
    flips = []
    for batch in made:
        assert_drawn(batch, [48] * 2 + [24] * 8)
        boxes = np.stack([crop.boxes for crop in batch.geometry])
        assert len(np.unique(boxes.reshape(-1, 4), axis=0)) > 5 * len(batch.ids)
        flips += [crop.flips for crop in batch.geometry]
        assert not batch.geometry[0].vertical_flips.any()
    assert 0 < np.concatenate(flips).mean() < 1
    assert made.stats()["decoded_images"] == 11


def streams(made: featherload.Loader) -> list[list[bytes]]:
    return [[images.tobytes() for images in batch.images] for batch in made]


def test_crops_are_the_same_for_any_workers_after_a_kill_and_after_a_resume(
    loader: Make, folder: Path
) -> None:
    def make(workers: int) -> featherload.Loader:
        return loader(folder, recipe=dino(), batch_size=3, num_workers=workers)

    want = streams(make(1))
    assert len(want) == 4
    assert streams(make(2)) == want
    assert streams(make(3)) == want
    killed = make(2)
    got = []
    for batch in killed:
        got.append([images.tobytes() for images in batch.images])
        kill_one(lambda: [worker for worker in killed.stats()["workers"]])
    assert got == want
    first = make(1)
    batches = iter(first)
    next(batches)
    state = first.state_dict()
    resumed = make(2)
    resumed.load_state_dict(state)
    assert streams(resumed) == want[1:]


def test_batches_with_crops_move_print_and_pickle(loader: Make, folder: Path) -> None:
    made = loader(folder, recipe=dino(), batch_size=4, framework="torch")
    batch = next(iter(made))
    assert "10 crops of 4" in repr(batch)
    halves = batch.to(torch.float16)
    assert [images.dtype for images in halves.images] == [torch.float16] * 10
    arrays, labels = batch.numpy()
    assert len(arrays) == 10 and len(labels) == 4
    images, _ = pickle.loads(pickle.dumps(batch))
    assert torch.equal(images[9], batch.images[9])
    # Neighbours of one size follow each other.
    size = batch.images[2].nbytes
    assert batch.images[3].data_ptr() == batch.images[2].data_ptr() + size
    single = next(iter(loader(folder, recipe=crop(8, (0.5, 1.0)))))
    with pytest.raises(AttributeError, match="several crops"):
        _ = single.geometry


def test_entries_are_anything_that_recipe_accepts(
    loader: Make, folder: Path, tmp_path: Path
) -> None:
    file = tmp_path / "local.yaml"
    file.write_text(
        "featherload: 1\nops:\n  - random_resized_crop: {size: 12}\n  - cast: {dtype: f32}\n"
    )
    entries = [
        "eval224",
        file,
        {"ops": [{"center_crop": {"size": 9}}]},
        [v2.CenterCrop(7), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)],
        (crop(6, (0.5, 1.0)), 2),
    ]
    made = loader(folder, recipe=entries[:3], batch_size=2)
    batch = next(iter(made))
    assert [images.shape[-1] for images in batch.images] == [224, 12, 9]
    assert {images.dtype for images in batch.images} == {np.dtype("float32")}
    batch = next(iter(loader(folder, recipe=entries[3:], batch_size=2)))
    assert [images.shape[-1] for images in batch.images] == [7, 6, 6]
    # torchvision's decoding differs from that of recipes.
    with pytest.raises(ConfigError, match="an image is decoded once"):
        loader(folder, recipe=entries)
    # What a loader prints can be given back.
    again = loader(folder, recipe=made.recipe, batch_size=2)
    assert streams(again) == streams(loader(folder, recipe=entries[:3], batch_size=2))


@pytest.mark.parametrize("number", [Image.Resampling.BICUBIC, 3])
def test_pillows_numbers_of_filters_are_their_filters(number: Any) -> None:
    """lightly gives torchvision Pillow's number of bicubic."""
    ends = [v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]
    numbered = v2.Compose([v2.RandomResizedCrop(9, interpolation=number), *ends])
    mode = v2.InterpolationMode.BICUBIC
    named = v2.Compose([v2.RandomResizedCrop(9, interpolation=mode), *ends])
    assert _crops.single_recipe(numbered) == _crops.single_recipe(named)
    box = v2.Compose([v2.RandomResizedCrop(9, interpolation=4), *ends])
    with pytest.raises(ConfigError, match="interpolation=box"):
        _crops.single_recipe(box)


def test_one_compose_and_lists_of_transforms_are_still_one_recipe(
    loader: Make, folder: Path
) -> None:
    whole = [v1.Resize((9, 9)), v1.ToTensor()]
    for recipe in (whole, [v1.Compose(whole)], v1.Compose(whole)):
        batch = next(iter(loader(folder, recipe=recipe, batch_size=2)))
        assert batch.images.shape == (2, 3, 9, 9)
    batch = next(iter(loader(folder, recipe=[(v1.Compose(whole), 1)], batch_size=2)))
    assert [images.shape for images in batch.images] == [(2, 3, 9, 9)]


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        ([("eval224", 0)], "count of a crop"),
        ([("eval224", 300)], "at most 256"),
        ([{"ops": [{"center_crop": {"size": 9}}], "mixing": {}}, "eval224"], "mixing"),
        (["eval224", "full"], "keeps the size of each image"),
        (["eval224", "nothing"], "'nothing' is unknown"),
        ([v1.Compose([v1.Resize(9), v1.Lambda(len)]), "eval224"], "Lambda"),
    ],
)
def test_mistakes_name_the_crop(loader: Make, folder: Path, recipe: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        loader(folder, recipe=recipe)


def test_the_plan_counts_all_crops(folder: Path) -> None:
    plan = featherload.plan(folder, recipe=dino(), batch_size=4, num_workers=1)
    pixels = 4 * 3 * (2 * 48 * 48 + 8 * 24 * 24)
    slot = plan.data["memory"]["slot_bytes"]
    assert 4 * pixels < slot < 4 * (pixels + 10 * 32) + 64
    assert [crop["count"] for crop in plan.data["outline"]["crops"]] == [2, 8]


@pytest.mark.parametrize("kind", ["FiveCrop", "TenCrop", "vertical"])
def test_five_and_ten_crops_are_torchvisions(folder: Path, kind: str) -> None:
    for package in (v1, v2):
        if kind == "vertical":
            several = package.TenCrop((40, 30), vertical_flip=True)
        else:
            several = getattr(package, kind)((40, 30))
        end = [] if package is v1 else [v2.Normalize(MEAN, STD)]
        tensor = (
            [v1.ToTensor()]
            if package is v1
            else [v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]
        )
        transform = package.Compose([package.Resize((58, 70)), *tensor, several, *end])
        data = ImageFolder(str(folder), transform)
        ours = DataLoader(data, batch_size=4)
        theirs = Theirs(data, batch_size=4)
        for (images, labels), (wanted, classes) in zip(ours, theirs, strict=True):
            assert torch.equal(labels, classes)
            assert len(images) == len(wanted) == (5 if kind == "FiveCrop" else 10)
            for one, other in zip(images, wanted, strict=True):
                assert_near(one, other, 255 if package is v1 else 0.225 * 255)
        ours.close()


def test_five_crops_of_random_images_are_refused(loader: Make, folder: Path) -> None:
    transform = v2.Compose(
        [v2.Resize((50, 50)), v2.RandomHorizontalFlip(), v2.FiveCrop(40), v2.ToImage()]
    )
    with pytest.raises(ConfigError, match="once for all crops"):
        loader(folder, recipe=transform)
    late = v1.Compose([v1.FiveCrop(40), v1.Lambda(list)])
    with pytest.raises(ConfigError, match="returns several images"):
        loader(folder, recipe=late)


# Classes as scripts define them.


class TwoCropsTransform:
    """Take two random crops of one image as the query and key."""

    def __init__(self, base_transform: Any) -> None:
        self.base_transform = base_transform

    def __call__(self, x: Any) -> Any:
        q = self.base_transform(x)
        k = self.base_transform(x)
        return [q, k]


class GaussianBlur:
    def __init__(self, sigma: Any = (0.1, 2.0)) -> None:
        self.sigma = sigma

    def __call__(self, x: Any) -> Any:
        sigma = random.uniform(self.sigma[0], self.sigma[1])
        x = x.filter(ImageFilter.GaussianBlur(radius=sigma))
        return x


class Solarize:
    def __call__(self, x: Any) -> Any:
        return ImageOps.solarize(x)


class NCropAugmentation:
    def __init__(self, transform: Any, num_crops: int) -> None:
        self.transform = transform
        self.num_crops = num_crops

    def __call__(self, x: Any) -> Any:
        return [self.transform(x) for _ in range(self.num_crops)]


class FullTransformPipeline:
    def __init__(self, transforms: Any) -> None:
        self.transforms = transforms

    def __call__(self, x: Any) -> Any:
        out = []
        for transform in self.transforms:
            out.extend(transform(x))
        return out


class ChangedTwoCrops(TwoCropsTransform):
    def __call__(self, x: Any) -> Any:
        q = self.base_transform(x)
        return [q, q]


class InvertedBlur(v1.RandomApply):  # type: ignore[misc]
    """As in DINOv2 and v3: it blurs with the probability 1 - p."""

    def __init__(self, *, p: float) -> None:
        super().__init__([v1.GaussianBlur(kernel_size=9, sigma=(0.1, 2.0))], p=1 - p)


def test_two_crops_and_pipelines_of_scripts(loader: Make, folder: Path) -> None:
    one, other = crop(48, (0.32, 1.0)), crop(24, (0.05, 0.32))
    views = TwoCropsTransform(one)
    batch = next(iter(loader(folder, recipe=views, batch_size=4, framework="torch")))
    assert_drawn(batch, [48, 48])
    pipeline = FullTransformPipeline([NCropAugmentation(one, 2), NCropAugmentation(other, 3)])
    batch = next(iter(loader(folder, recipe=pipeline, batch_size=4, framework="torch")))
    assert_drawn(batch, [48, 48, 24, 24, 24])
    # As the transform of a data set.
    made = DataLoader(ImageFolder(str(folder), views), batch_size=4)
    assert_drawn(next(iter(made)), [48, 48])
    made.close()
    with pytest.raises(ConfigError, match="ChangedTwoCrops"):
        loader(folder, recipe=ChangedTwoCrops(one))


def test_solarize_of_scripts_is_pillows(loader: Make, folder: Path) -> None:
    solarized = v1.Compose([v1.Resize((20, 20)), Solarize(), v1.ToTensor()])
    plain = v1.Compose([v1.Resize((20, 20)), v1.ToTensor()])
    batch = next(iter(loader(folder, recipe=[plain, solarized], batch_size=11)))
    levels = np.rint(batch.images[0] * 255)
    want = np.where(levels < 128, levels, 255 - levels)
    assert np.abs(batch.images[1] * 255 - want).max() < 0.01


def test_pillows_blur_is_pillows(loader: Make, folder: Path) -> None:
    """MoCo's blur of one radius, in one of two crops."""
    start, end = [v1.Resize((20, 20))], [v1.ToTensor()]
    blur = v1.RandomApply([GaussianBlur([1.5, 1.5])], p=1.0)
    plain, blurred = v1.Compose([*start, *end]), v1.Compose([*start, blur, *end])
    batch = next(iter(loader(folder, recipe=[plain, blurred], batch_size=11)))
    for before, after in zip(*batch.images, strict=True):
        levels = np.rint(before * 255).astype(np.uint8).transpose(1, 2, 0)
        want = Image.fromarray(levels).filter(ImageFilter.GaussianBlur(1.5))
        assert (np.rint(after * 255).transpose(1, 2, 0) == np.asarray(want)).all()


class Augmentation:
    """The attributes of DataAugmentationDINO of DINOv2."""

    def __init__(self, blur: float) -> None:
        self.local_crops_number = 3
        self.geometric_augmentation_global = v1.Compose(
            [v1.RandomResizedCrop(48, (0.32, 1.0), interpolation=v1.InterpolationMode.BICUBIC)]
        )
        self.geometric_augmentation_local = v1.Compose(
            [v1.RandomResizedCrop(24, (0.05, 0.32), interpolation=v1.InterpolationMode.BICUBIC)]
        )
        normalize = v1.Compose([v1.ToTensor(), v1.Normalize(MEAN, STD)])
        extra = v1.Compose([InvertedBlur(p=blur), v1.RandomSolarize(128, p=0.0)])
        self.global_transfo1 = v1.Compose([InvertedBlur(p=blur), normalize])
        self.global_transfo2 = v1.Compose([extra, normalize])
        self.local_transfo = v1.Compose([InvertedBlur(p=blur), normalize])
        self.share_color_jitter = self.teacher_no_color_jitter = False
        self.local_crops_subset_of_global_crops = False
        self.gram_teacher_crops_size = None
        self.resize_global_post_transf = torch.nn.Identity()

    def __call__(self, image: Any) -> Any:
        return {"the test's own": image}


@pytest.mark.parametrize("version", ["_dino2", "_dino3"])
def test_the_blur_of_dino_is_inverted(
    loader: Make, folder: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    code = code_of(Augmentation(1.0))
    assert code is not None
    view = _crops.ViewClass(getattr(_crops, version), "a test's", "5")
    monkeypatch.setitem(_crops.VIEWS, code, view)
    # p=1.0 never blurs.
    never = next(iter(loader(folder, recipe=Augmentation(1.0), batch_size=4, framework="torch")))
    assert_drawn(never, [48, 48, 24, 24, 24])
    always = next(iter(loader(folder, recipe=Augmentation(0.0), batch_size=4, framework="torch")))
    assert [crop.boxes.tobytes() for crop in always.geometry] == [
        crop.boxes.tobytes() for crop in never.geometry
    ]
    for blurred, sharp in zip(always.images, never.images, strict=True):
        assert not torch.equal(blurred, sharp)
    if version == "_dino3":
        shared = Augmentation(1.0)
        shared.share_color_jitter = True
        with pytest.raises(ConfigError, match="share random values"):
            loader(folder, recipe=shared)


def lightly_transforms() -> Any:
    need("lightly")
    return importlib.import_module("lightly.transforms")


PLAIN: dict[str, Any] = {"cj_prob": 0.0, "random_gray_scale": 0.0}


@pytest.mark.parametrize(
    ("name", "options", "sizes"),
    [
        ("SimCLRTransform", {"input_size": 48, "gaussian_blur": 0.0}, [48, 48]),
        ("MoCoV2Transform", {"input_size": 48, "gaussian_blur": 0.0}, [48, 48]),
        ("SimSiamTransform", {"input_size": 48, "gaussian_blur": 0.0}, [48, 48]),
        (
            "DINOTransform",
            {
                "global_crop_size": 48,
                "local_crop_size": 24,
                "gaussian_blur": (0.0, 0.0, 0.0),
                "solarization_prob": 0.0,
            },
            [48, 48] + [24] * 6,
        ),
        (
            "SwaVTransform",
            {"crop_sizes": (48, 24), "gaussian_blur": 0.0},
            [48, 48] + [24] * 6,
        ),
        (
            "VICRegTransform",
            {"input_size": 48, "gaussian_blur": 0.0, "solarize_prob": 0.0},
            [48, 48],
        ),
    ],
)
def test_lightlys_views_have_torchvisions_pixels(
    loader: Make, folder: Path, name: str, options: dict[str, Any], sizes: list[int]
) -> None:
    views = getattr(lightly_transforms(), name)(**PLAIN, **options)
    made = loader(folder, recipe=views, batch_size=4, framework="torch")
    batch = next(iter(made))
    ours = [op for crop in made.recipe["crops"] for op in crop["ops"]]
    filters = {
        op["random_resized_crop"].get("interpolation", "bilinear")
        for op in ours
        if "random_resized_crop" in op
    }
    assert filters == {"bicubic" if name == "DINOTransform" else "bilinear"}
    assert_drawn(batch, sizes, BICUBIC if filters == {"bicubic"} else BILINEAR)
    # What lightly itself returns has the same shapes.
    with Image.open(next(folder.rglob("*.png"))) as image:
        theirs = views(image)
    assert [tuple(view.shape) for view in theirs] == [(3, size, size) for size in sizes]


def colours(strength: float, saturation: float) -> Any:
    """The operation of lightly's jitter: 0.8, 0.8, saturation and 0.2 times the strength."""
    jitter = {"style": "pillow"}
    for key, factor in (("brightness", 0.8), ("contrast", 0.8), ("saturation", saturation)):
        jitter[key] = pytest.approx([1 - factor * strength, 1 + factor * strength])
    jitter["hue"] = pytest.approx([-0.2 * strength, 0.2 * strength])
    return {"random_apply": {"transforms": [{"color_jitter": jitter}], "p": 0.8}}


@pytest.mark.parametrize("name", ["SimCLRTransform", "VICRegTransform", "DINOTransform"])
def test_lightlys_colours_have_their_ranges_and_order(name: str) -> None:
    """The defaults of lightly's papers, written out."""
    views = getattr(lightly_transforms(), name)()
    grey = {"color_jitter": {"style": "pillow", "saturation": [0.0, 0.0], "p": 0.2}}

    def blur(p: float) -> Any:
        return {"pillow_gaussian_blur": {"radius": [0.1, 2.0], "p": p}}

    def solar(p: float) -> Any:
        return {"random_solarize": {"threshold": 128.0, "p": p}}

    weak = colours(0.5, 0.4)
    want = {
        "SimCLRTransform": [(2, [colours(1.0, 0.8), grey, blur(0.5)])],
        "VICRegTransform": [(2, [weak, grey, solar(0.1), blur(0.5)])],
        "DINOTransform": [
            (1, [weak, grey, blur(1.0)]),
            (1, [weak, grey, blur(0.1), solar(0.2)]),
            (6, [weak, grey, blur(0.5)]),
        ],
    }[name]
    made = _crops.crops_recipe(views)
    assert made is not None
    # Decode, crop and two flips before, float32, normalize and the layout after.
    assert [(crop["count"], crop["ops"][4:-3]) for crop in made["crops"]] == want


def test_lightlys_own_operations(loader: Make, folder: Path) -> None:
    transforms = lightly_transforms()
    from lightly.transforms.multi_view_transform import MultiViewTransform
    from lightly.transforms.rotation import RandomRotate
    from lightly.transforms.solarize import RandomSolarization

    start, end = v2.Resize((24, 24)), [v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]
    views = [
        v2.Compose([start, *end]),
        v2.Compose([start, RandomRotate(prob=1.0, angle=90), *end]),
        v2.Compose([start, RandomSolarization(prob=1.0, threshold=128), *end]),
    ]
    made = loader(
        folder, recipe=MultiViewTransform(views), batch_size=11, framework="torch", shuffle=False
    )
    batch = next(iter(made))
    for row, path in enumerate(batch.paths()):
        assert path is not None
        with Image.open(path) as image:
            for images, view in zip(batch.images, views, strict=True):
                assert_near(images[row], view(image.convert("RGB")), 255)
    whole = loader(folder, recipe=transforms.DINOTransform(), batch_size=2)
    assert [len(images) for images in next(iter(whole)).images] == [2] * 8


def test_a_recipe_file_with_crops(loader: Make, folder: Path, tmp_path: Path) -> None:
    local = {"name": "local", "count": 2, "ops": [{"random_resized_crop": {"size": 16}}]}
    recipe = {"featherload": 1, "crops": [local]}
    file = tmp_path / "two.json"
    file.write_text(json.dumps(recipe))
    want = streams(loader(folder, recipe=file, batch_size=4))
    assert streams(loader(folder, recipe=recipe, batch_size=4)) == want
    floats = loader(folder, recipe=file, batch_size=4, dtype="uint8", layout="nhwc")
    batch = next(iter(floats))
    assert [(images.shape[1:], images.dtype) for images in batch.images] == [
        ((16, 16, 3), np.dtype("uint8"))
    ] * 2
