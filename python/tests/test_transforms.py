"""Other people's transforms as recipes: the pixels that they make themselves, or an error."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import digest, need

import featherload
from featherload import recipes

Make = Callable[..., featherload.Loader]
Pixels = Any

# Most that a pixel may differ by, in levels, and the mean of all pixels.
EXACT = (0.01, 0.001)
# Filters of 8-bit levels: other ways to round one number.
ROUNDED = (1.01, 0.1)
# Two filters, one behind the other.
TWICE = (2.01, 0.1)
# Of Pillow's grey in one channel, recipes cut what Pillow rounds.
CUT = (1.01, 0.6)

WIDTH, HEIGHT = 53, 67


def picture(width: int, height: int, seed: int) -> Pixels:
    """Soft colours with some noise: all levels, and no two places alike."""
    from PIL import Image

    random = np.random.default_rng(seed)
    few = Image.fromarray(random.integers(0, 256, (5, 7, 3), dtype=np.uint8))
    soft = np.asarray(few.resize((width, height), Image.Resampling.BICUBIC)).astype(int)
    noisy = soft + random.integers(-12, 13, (height, width, 3))
    return np.clip(noisy, 0, 255).astype(np.uint8)


def save(folder: Path, sizes: list[tuple[int, int]]) -> Path:
    """PNGs, which every decoder reads alike."""
    from PIL import Image

    (folder / "class").mkdir()
    for number, (width, height) in enumerate(sizes):
        one = Image.fromarray(picture(width, height, number))
        one.save(folder / "class" / f"{number}.png")
    return folder


@pytest.fixture(scope="module")
def alike(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three pictures of one size, so that no resize must be in front of what is tested."""
    return save(tmp_path_factory.mktemp("alike"), [(WIDTH, HEIGHT)] * 3)


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pictures of which halves and parts of sides are no whole numbers."""
    sizes = [(292, 500), (500, 292), (101, 75), (97, 97), (333, 334), (149, 150)]
    return save(tmp_path_factory.mktemp("odd"), sizes)


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One picture 160 times, for what is drawn."""
    folder = save(tmp_path_factory.mktemp("copies"), [(WIDTH, HEIGHT)])
    for number in range(1, 160):
        shutil.copy(folder / "class" / "0.png", folder / "class" / f"{number}.png")
    return folder


def first(loader: Make, folder: Path, recipe: Any) -> tuple[list[Pixels], list[Any]]:
    """All rows as featherload has them, and their pictures as ImageFolder opens them."""
    from torchvision.datasets import folder as of

    count = len(list(folder.rglob("*.png")))
    one = loader(
        folder, recipe=recipe, batch_size=count, num_workers=1, shuffle=False, decode="full"
    )
    batch = next(iter(one))
    rows = [np.array(row) for row in batch.images]
    opened = [of.default_loader(str(path)) for path in batch.paths()]
    one.close()
    return rows, opened


def assert_alike(
    rows: list[Pixels], wanted: list[Pixels], unit: float, tolerance: tuple[float, float]
) -> None:
    for row, other in zip(rows, wanted, strict=True):
        other = np.asarray(other)
        assert (row.shape, row.dtype) == (other.shape, other.dtype)
    off = [
        abs(a.astype(float) - np.asarray(b).astype(float))
        for a, b in zip(rows, wanted, strict=True)
    ]
    most = max(one.max() for one in off) * unit
    mean = float(np.mean([one.mean() for one in off])) * unit
    assert most <= tolerance[0] and mean <= tolerance[1], f"most {most}, mean {mean} levels"


# What values are where a transform stands, and how many levels are in 1 of them.
PLACES = {"pillow": 1.0, "tensor": 1.0, "float": 255.0, "normalised": 255.0 * 0.25}


def placed(v: Any, place: str, transforms: list[Any]) -> list[Any]:
    """With what makes its place out of an ImageFolder's picture."""
    import torch

    if place == "pillow":
        return [*transforms, v.PILToTensor()]
    if place == "tensor":
        return [v.PILToTensor(), *transforms]
    unit = [v.PILToTensor(), v.ConvertImageDtype(torch.float32)]
    if place == "float":
        return [*unit, *transforms]
    return [*unit, v.Normalize([0.5, 0.4, 0.3], [0.25] * 3), *transforms]


LEVELS = ("pillow", "tensor")
COLOURS = (*LEVELS, "float")
TENSORS = ("tensor", "float", "normalised")
ALL = tuple(PLACES)

Case = tuple[str, Callable[[Any], list[Any]], tuple[str, ...], tuple[float, float]]


def resized(name: str, antialias: bool = True) -> Callable[[Any], list[Any]]:
    return lambda v: [
        v.Resize((40, 30), interpolation=v.InterpolationMode(name), antialias=antialias),
        v.CenterCrop((39, 30)),
        v.Resize((90, 100), interpolation=v.InterpolationMode(name), antialias=antialias),
    ]


CASES: list[Case] = [
    ("nothing", lambda v: [], ALL, EXACT),
    ("resize nearest", resized("nearest"), ("pillow",), EXACT),
    ("resize nearest-exact", resized("nearest-exact"), ALL, EXACT),
    ("resize bilinear", resized("bilinear"), ALL, ROUNDED),
    ("resize bicubic", resized("bicubic"), ALL, TWICE),
    ("resize lanczos", resized("lanczos"), ("pillow",), TWICE),
    ("resize no antialias", resized("bilinear", False), TENSORS, ROUNDED),
    ("shorter side", lambda v: [v.Resize(41), v.CenterCrop((40, 31))], ALL, ROUNDED),
    ("longest", lambda v: [v.Resize(60, max_size=65), v.CenterCrop(40)], ALL, ROUNDED),
    ("center crop", lambda v: [v.CenterCrop((40, 30))], ALL, EXACT),
    ("center crop odd", lambda v: [v.CenterCrop((38, 31))], ALL, EXACT),
    ("center crop of less", lambda v: [v.CenterCrop((70, 81))], ALL, EXACT),
    ("center crop of a lower one", lambda v: [v.CenterCrop((72, 31))], ALL, EXACT),
    ("center crop of a narrower one", lambda v: [v.CenterCrop((38, 76))], ALL, EXACT),
    (
        "whole resized crop",
        lambda v: [v.RandomResizedCrop((40, 30), scale=(1, 1), ratio=(53 / 67, 53 / 67))],
        ALL,
        ROUNDED,
    ),
    (
        "whole resized crop nearest",
        lambda v: [
            v.RandomResizedCrop(
                (40, 30), (1, 1), (53 / 67, 53 / 67), v.InterpolationMode("nearest-exact")
            )
        ],
        ALL,
        EXACT,
    ),
    (
        "whole random crop, sides",
        lambda v: [v.RandomCrop((73, 57), padding=(1, 2, 3, 4), fill=9)],
        LEVELS,
        EXACT,
    ),
    ("whole random crop", lambda v: [v.RandomCrop((75, 61), padding=4)], ALL, EXACT),
    ("flips", lambda v: [v.RandomHorizontalFlip(1.0), v.RandomVerticalFlip(1.0)], ALL, EXACT),
    *[
        (
            f"pad {mode}",
            # A resize to the same size, so that the rows' size is known.
            lambda v, mode=mode: [v.Resize((67, 53)), v.Pad((1, 2, 3, 4), padding_mode=mode)],
            ALL,
            EXACT,
        )
        for mode in ("constant", "edge", "reflect")
    ],
    ("pad levels", lambda v: [v.Resize((67, 53)), v.Pad(3, fill=(7, 80, 255))], LEVELS, EXACT),
    (
        "pad parts",
        lambda v: [v.Resize((67, 53)), v.Pad(3, fill=(0.5, 0.25, 1.0))],
        ("float", "normalised"),
        EXACT,
    ),
    ("pad one part", lambda v: [v.Resize((67, 53)), v.Pad(3, fill=0.5)], ("float",), EXACT),
    ("crop levels", lambda v: [v.RandomCrop((75, 61), padding=4, fill=200)], LEVELS, EXACT),
    (
        "crop parts",
        lambda v: [v.RandomCrop((75, 61), padding=4, fill=0.5)],
        ("float", "normalised"),
        EXACT,
    ),
    ("grey in three", lambda v: [v.Grayscale(3)], COLOURS, EXACT),
    ("grey in one", lambda v: [v.Grayscale(1)], ("tensor", "float"), EXACT),
    ("grey in one of Pillow", lambda v: [v.Grayscale(1)], ("pillow",), CUT),
    ("grey twice", lambda v: [v.Grayscale(1), v.RandomGrayscale(1.0)], ("tensor",), EXACT),
    ("random grey", lambda v: [v.RandomGrayscale(1.0)], COLOURS, EXACT),
    ("brightness", lambda v: [v.ColorJitter(brightness=(1.5, 1.5))], COLOURS, EXACT),
    ("contrast", lambda v: [v.ColorJitter(contrast=(0.5, 0.5))], COLOURS, EXACT),
    ("saturation", lambda v: [v.ColorJitter(saturation=(1.5, 1.5))], COLOURS, EXACT),
    ("hue", lambda v: [v.ColorJitter(hue=(-0.2, -0.2))], COLOURS, ROUNDED),
    ("invert", lambda v: [v.RandomInvert(1.0)], LEVELS, EXACT),
    ("equalize", lambda v: [v.RandomEqualize(1.0)], LEVELS, EXACT),
    ("autocontrast", lambda v: [v.RandomAutocontrast(1.0)], LEVELS, ROUNDED),
    ("sharper", lambda v: [v.RandomAdjustSharpness(2, 1.0)], LEVELS, EXACT),
    ("softer", lambda v: [v.RandomAdjustSharpness(0, 1.0)], LEVELS, EXACT),
    ("solarize", lambda v: [v.RandomSolarize(100, 1.0)], LEVELS, EXACT),
    ("posterize", lambda v: [v.RandomPosterize(3, 1.0)], LEVELS, EXACT),
    # At 1.77 no exact value of these pictures is within 7e-5 of a half. Nearer to one torch rounds
    # up or down by the order of its sums, which is another on each kind of processor.
    ("blur", lambda v: [v.GaussianBlur((5, 9), (1.77, 1.77))], ALL, EXACT),
    ("rotation bilinear", lambda v: [turned(v, "bilinear")], LEVELS, ROUNDED),
    (
        "rotation bilinear of parts",
        lambda v: [turned(v, "bilinear", fill=1.0)],
        ("float", "normalised"),
        EXACT,
    ),
    ("rotation nearest", lambda v: [turned(v, "nearest", fill=(9, 8, 7))], LEVELS, EXACT),
    ("rotation bicubic", lambda v: [turned(v, "bicubic", fill=9)], ("pillow",), ROUNDED),
    (
        "rotation about a point",
        lambda v: [v.RandomRotation((20, 20), v.InterpolationMode("bilinear"), center=[10, 20])],
        ("pillow",),
        ROUNDED,
    ),
    (
        "rotation expanded",
        lambda v: [v.Resize((67, 53)), turned(v, "bilinear", expand=True), v.Resize((70, 60))],
        ("tensor", "float", "normalised"),
        ROUNDED,
    ),
    ("affine nearest", lambda v: [leant(v, "nearest")], LEVELS, EXACT),
    ("affine bilinear", lambda v: [leant(v, "bilinear")], ("pillow",), ROUNDED),
    ("affine bicubic", lambda v: [leant(v, "bicubic")], ("pillow",), ROUNDED),
    ("elastic", lambda v: [v.ElasticTransform(0.0, 0.0, fill=0)], ALL, EXACT),
]


def turned(v: Any, filter: str, **more: Any) -> Any:
    return v.RandomRotation((37, 37), interpolation=v.InterpolationMode(filter), **more)


def leant(v: Any, filter: str) -> Any:
    filter = v.InterpolationMode(filter)
    return v.RandomAffine((20, 20), None, (0.8, 0.8), (5, 5, 3, 3), filter, fill=7)


@pytest.mark.parametrize(
    ("make", "place", "tolerance"),
    [
        pytest.param(make, place, tolerance, id=f"{name}-{place}")
        for name, make, places, tolerance in CASES
        for place in places
    ],
)
def test_pixels_are_torchvisions(
    loader: Make,
    alike: Path,
    make: Callable[[Any], list[Any]],
    place: str,
    tolerance: tuple[float, float],
) -> None:
    need("torchvision")
    from torchvision.transforms import v2

    compose = v2.Compose(placed(v2, place, make(v2)))
    rows, opened = first(loader, alike, compose)
    assert_alike(rows, [compose(one) for one in opened], PLACES[place], tolerance)


def test_nearest_is_pillows_but_for_ties(loader: Make, odd: Path) -> None:
    """A place just between two pixels is now one, now the other for Pillow, which adds up steps
    and their errors. So 149 pixels to 224 are alike but for every third.
    """
    need("torchvision")
    from torchvision.transforms import v2

    def ties(given: int, made: int) -> Pixels:
        return (2 * np.arange(made) + 1) * given % (2 * made) == 0

    nearest = v2.InterpolationMode.NEAREST
    for height, width in [(109, 186), (224, 225)]:
        resize = v2.Compose([v2.Resize((height, width), nearest), v2.PILToTensor()])
        rows, opened = first(loader, odd, resize)
        for row, one in zip(rows, opened, strict=True):
            off = whole(row) != whole(resize(one))
            off[:, ties(one.height, height)] = False
            off[:, :, ties(one.width, width)] = False
            assert not off.any()


def test_resizes_are_along_rows_first(loader: Make, tmp_path: Path) -> None:
    """As Pillow did before 13, and as torch does. Pillow 13 begins with columns where that is
    less work, and levels are cut in between: hard edges of upright pictures, made square, differ
    by some levels.
    """
    need("torchvision")
    from PIL import Image
    from torchvision.transforms import v2

    folder = save(tmp_path, [(40, 60)])
    file = folder / "class" / "0.png"
    Image.open(file).resize((20, 30)).resize((300, 450), Image.Resampling.NEAREST).save(file)
    bicubic = v2.InterpolationMode.BICUBIC
    rows, opened = first(loader, folder, [v2.Resize((96, 96), bicubic), v2.PILToTensor()])
    along = opened[0].resize((96, 450), Image.Resampling.BICUBIC)
    wanted = along.resize((96, 96), Image.Resampling.BICUBIC)
    assert_alike(rows, [v2.functional.pil_to_tensor(wanted)], 1.0, ROUNDED)


@pytest.mark.parametrize("place", ["pillow", "float"])
@pytest.mark.parametrize(
    "case",
    [
        lambda v: [v.Resize(48), v.CenterCrop((45, 46)), v.RandomHorizontalFlip(1.0)],
        lambda v: [v.RandomCrop((75, 61), padding=4, fill=0), v.Resize((40, 30), antialias=True)],
        lambda v: [v.RandomCrop((73, 57), padding=(1, 2, 3, 4)), v.Resize((67, 53))],
        lambda v: [v.ColorJitter((1.5, 1.5)), v.GaussianBlur((5, 9), (1.5, 1.5))],
        lambda v: [v.RandomGrayscale(1.0), turned(v, "bilinear"), v.Resize((67, 53)), v.Pad(3)],
    ],
)
def test_version_1_is_translated_as_version_2(
    loader: Make, alike: Path, case: Callable[[Any], list[Any]], place: str
) -> None:
    need("torchvision")
    from torchvision import transforms

    inner = case(transforms)
    ends = [transforms.ToTensor(), transforms.Normalize([0.5] * 3, [0.25] * 3)]
    # ToTensor in front makes floats of them all.
    parts = [*inner, *ends] if place == "pillow" else [ends[0], *inner, ends[1]]
    compose = transforms.Compose(parts)
    rows, opened = first(loader, alike, compose)
    wanted = [compose(one) for one in opened]
    assert_alike(rows, wanted, PLACES["normalised"], ROUNDED)


def whole(rows: Any) -> Pixels:
    """As signed numbers, which can be subtracted."""
    return np.asarray(rows).astype(np.int16)


def test_what_leans_is_torchs_but_for_the_rim(loader: Make, alike: Path) -> None:
    """Recipes lean pictures as Pillow does, in tensors too. There bilinear is otherwise: levels
    are rounded, not cut, and pixels that are partly outside are mixed with the fill. So a
    pixel's distance to the rim counts, and inside one level.
    """
    need("torchvision")
    from PIL import Image
    from torchvision.transforms import v2

    compose = v2.Compose([v2.ToImage(), leant(v2, "bilinear")])
    rows, opened = first(loader, alike, compose)
    white = Image.new("RGB", opened[0].size, (255, 255, 255))
    outside = np.asarray(compose(white)).min(0) < 255
    rim = sum(np.roll(outside, (y, x), (0, 1)) for y in (-1, 0, 1) for x in (-1, 0, 1)) > 0
    assert (~rim).mean() > 0.3
    off = abs(whole(rows) - whole([compose(one).numpy() for one in opened]))[:, :, ~rim]
    assert off.max() <= 1 and off.mean() < 0.6


def nearest(rows: list[Pixels], outcomes: Pixels) -> tuple[Pixels, Pixels]:
    """Of each row how far the nearest outcome is, in mean levels, and its number."""
    flat = outcomes.reshape(len(outcomes), -1)
    off = np.stack([abs(flat - whole(row).ravel()).mean(1, dtype=np.float32) for row in rows])
    return off.min(1), off.argmin(1)


@pytest.mark.parametrize("policy", ["rand 9", "rand 25 filled", "trivial"])
@pytest.mark.parametrize("place", LEVELS)
def test_policies_draw_what_torchvisions_do(
    loader: Make, copies: Path, policy: str, place: str
) -> None:
    """Each picture is one of torchvision's outcomes."""
    need("torchvision")
    import torch
    from torchvision.transforms import v2

    # With bilinear the rim is Pillow's in tensors too, as in the test above.
    filter = v2.InterpolationMode("bilinear" if place == "pillow" else "nearest")
    transform, strengths = {
        "rand 9": (v2.RandAugment(1, 9), [9]),
        "rand 25 filled": (v2.RandAugment(1, 25, 31, filter, [10, 200, 30]), [25]),
        "trivial": (v2.TrivialAugmentWide(), list(range(31))),
    }[policy]
    rows, opened = first(loader, copies, placed(v2, place, [transform]))
    given = v2.PILToTensor()(opened[0]) if place == "tensor" else opened[0]
    outcomes, names = [], []
    for name, (strength, signed) in transform._AUGMENTATION_SPACE.items():
        all_of = strength(31, HEIGHT, WIDTH)
        for number in strengths if all_of is not None else [0]:
            values = [0.0 if all_of is None else float(all_of[number])]
            # torch counts strengths in float32: of 16 pixels it makes 15.999999, which is cut
            # to 15, and a level more or less is inverted. Recipes count in float64.
            if name in ("TranslateX", "TranslateY"):
                values.append(round(values[0], 3))
            elif name == "Solarize":
                values.append((30 - number) / 30)
            if signed:
                values += [-value for value in values]
            for value in values:
                changed = transform._apply_image_or_video_transform(
                    given, name, value, transform.interpolation, transform._fill
                )
                if not isinstance(changed, torch.Tensor):
                    changed = v2.functional.pil_to_tensor(changed)
                outcomes.append(whole(changed))
                names.append(name)
    off, which = nearest(rows, np.stack(outcomes))
    # In tensors torch cuts what Pillow rounds of Contrast and Color; recipes have Pillow's.
    most = 0.02 if place == "pillow" else 0.8
    assert off.max() < most, {names[w]: o for w, o in zip(which, off, strict=True) if o >= most}
    pixels = np.stack([whole(row) for row in rows]) - np.stack(outcomes)[which]
    # Where nearest is a tie, a pixel is now and then its neighbour.
    assert (abs(pixels) > 1).mean() < (1e-3 if place == "tensor" else 1e-9)
    assert len({names[one] for one in which}) >= 10


@pytest.mark.parametrize("place", LEVELS)
def test_perspectives_are_torchvisions(loader: Make, copies: Path, place: str) -> None:
    """With corners that move by no pixel or by one there are 256 of them."""
    need("torchvision")
    from torchvision.transforms import v2

    bilinear = v2.InterpolationMode.BILINEAR
    transform = v2.RandomPerspective(0.04, 1.0, bilinear, fill=9)
    rows, opened = first(loader, copies, placed(v2, place, [transform]))
    given = v2.PILToTensor()(opened[0]) if place == "tensor" else opened[0]
    right, bottom = WIDTH - 1, HEIGHT - 1
    start = [[0, 0], [right, 0], [right, bottom], [0, bottom]]
    outcomes = []
    for a, b, c, d, e, f, g, h in product((0, 1), repeat=8):
        end = [[a, b], [right - c, d], [right - e, bottom - f], [g, bottom - h]]
        moved = v2.functional.perspective(given, start, end, bilinear, fill=9)
        outcomes.append(whole(moved if place == "tensor" else v2.functional.pil_to_tensor(moved)))
    # The rim of a tensor is mixed with the fill otherwise, and levels are rounded, not cut.
    rim = 3 if place == "tensor" else 0
    inside = (slice(None), slice(rim, HEIGHT - rim), slice(rim, WIDTH - rim))
    off, which = nearest([row[inside] for row in rows], np.stack([one[inside] for one in outcomes]))
    # Where no corner moves Pillow cuts what is left of the sums, and the recipe does nothing.
    assert off.max() < 0.6 and len(set(which)) > 60
    assert np.median(off) < (0.6 if place == "tensor" else 0.001)


def test_crops_are_torchvisions(loader: Make, copies: Path) -> None:
    need("torchvision")
    from torchvision.transforms import v2

    crop = v2.RandomCrop((HEIGHT, WIDTH), padding=(2, 3), fill=200)
    rows, opened = first(loader, copies, [crop, v2.PILToTensor()])
    padded = v2.functional.pil_to_tensor(v2.functional.pad(opened[0], [2, 3, 2, 3], fill=200))
    places = list(product(range(7), range(5)))
    outcomes = [whole(padded)[:, y : y + HEIGHT, x : x + WIDTH] for y, x in places]
    off, which = nearest(rows, np.stack(outcomes))
    assert off.max() == 0 and len(set(which)) > 25


@pytest.mark.parametrize(("place", "fill"), [("pillow", 7), ("float", 0.5), ("normalised", 0.5)])
def test_what_is_around_a_picture_is_the_fill(
    loader: Make, copies: Path, place: str, fill: float
) -> None:
    need("torchvision")
    from torchvision.transforms import v2

    # The resize is to the size that there is: rows of a batch must have a size that is known.
    zoom = [v2.RandomZoomOut(fill, (2.0, 2.0), 1.0), v2.Resize((2 * HEIGHT, 2 * WIDTH))]
    rows, opened = first(loader, copies, placed(v2, place, zoom))
    inside = np.asarray(v2.Compose(placed(v2, place, []))(opened[0]))
    for row in rows[:20]:
        around = np.isclose(row, fill, atol=1e-6).all(0)
        ys, xs = np.nonzero(~around)
        y, x = ys.min(), xs.min()
        np.testing.assert_allclose(row[:, y : y + HEIGHT, x : x + WIDTH], inside, atol=1e-5)
        assert around.sum() == 3 * HEIGHT * WIDTH


@pytest.mark.parametrize(
    ("place", "value", "is_behind"),
    [
        ("pillow", 7, False),
        ("tensor", (7, 80, 255), False),
        ("float", 0.5, False),
        ("float", (1.0, 0.0, 0.25), True),
        ("normalised", 0.5, False),
    ],
)
def test_what_is_erased_is_the_value(
    loader: Make, alike: Path, place: str, value: Any, is_behind: bool
) -> None:
    """20 x 20 pixels, somewhere, of the value that torchvision writes there."""
    need("torchvision")
    import torch
    from torchvision.transforms import v2

    share = 400 / WIDTH / HEIGHT
    erase = v2.RandomErasing(1.0, (share, share), (1, 1), value)
    ends = [v2.Normalize([0.5] * 3, [0.25] * 3)] if is_behind else []
    compose = v2.Compose([*placed(v2, place, [erase]), *ends])
    plain = v2.Compose([*placed(v2, place, []), *ends])
    rows, opened = first(loader, alike, compose)
    torch.manual_seed(0)
    for row, one in zip(rows, opened, strict=True):
        before, theirs = np.asarray(plain(one)), np.asarray(compose(one))
        where = (abs(theirs - before) > 1e-4).any(0)
        colour = theirs[:, where][:, 0]
        ours = (abs(row.astype(float) - before) > 1e-4).any(0)
        ys, xs = np.nonzero(ours)
        assert (np.ptp(ys), np.ptp(xs)) == (19, 19) and ours.sum() > 380
        np.testing.assert_allclose(row[:, ours], colour[:, None].repeat(ours.sum(), 1), atol=1e-5)


def test_noise_is_erased_behind_normalize(loader: Make, copies: Path) -> None:
    need("torchvision")
    from torchvision.transforms import v2

    erase = v2.RandomErasing(1.0, (0.2, 0.2), (1, 1), "random")
    rows, opened = first(loader, copies, placed(v2, "normalised", [erase]))
    before = np.asarray(v2.Compose(placed(v2, "normalised", []))(opened[0]))
    noise = np.concatenate([row[:, (abs(row - before) > 1e-3).any(0)].ravel() for row in rows])
    assert abs(noise.mean()) < 0.01 and abs(noise.std() - 1) < 0.01


REFUSED: list[tuple[Callable[[Any], Any], str, str]] = [
    (lambda v: v.Lambda(lambda x: x), "pillow", "Lambda"),
    (lambda v: v.AutoAugment(), "pillow", "AutoAugment.*PaddleClas"),
    (lambda v: v.Normalize([0.5], [0.5]), "tensor", "Normalize.*levels"),
    (lambda v: v.Normalize([0.5], [0.5]), "normalised", "Normalize.*one mean"),
    (lambda v: v.RandomRotation(10, center=(0, 0)), "tensor", "RandomRotation.center"),
    (lambda v: v.RandomRotation(10, expand=True), "pillow", "RandomRotation.expand.*ToImage"),
    (lambda v: v.RandomRotation(10, fill=0.5), "tensor", "RandomRotation.fill=0.5.*levels"),
    (lambda v: v.Pad(3, fill=256), "pillow", "Pad.fill=256.*levels"),
    (lambda v: v.Pad(3, fill=(1, 2)), "pillow", "Pad.fill.*three"),
    (lambda v: v.Pad(3, padding_mode="symmetric"), "pillow", "Pad.padding_mode=symmetric"),
    (lambda v: v.RandomErasing(value="random"), "tensor", "RandomErasing.*Normalize"),
    (lambda v: v.RandomErasing(value="random"), "float", "RandomErasing.*Normalize"),
    (lambda v: v.RandomErasing(value=0.5), "tensor", "RandomErasing.value=0.5.*levels"),
    (lambda v: v.Resize(9, v.InterpolationMode("nearest")), "tensor", "Resize.*nearest-exact"),
    (lambda v: v.Resize(9, v.InterpolationMode("box")), "pillow", "Resize.interpolation=box"),
    (
        lambda v: v.RandomResizedCrop(9, interpolation=v.InterpolationMode("nearest")),
        "tensor",
        "RandomResizedCrop.*nearest-exact",
    ),
    (lambda v: v.Compose([v.Grayscale(1), v.RGB()]), "pillow", "RGB.*Grayscale"),
    (lambda v: v.Compose([v.Grayscale(1), v.Grayscale(3)]), "pillow", "Grayscale"),
    (lambda v: v.Compose([v.Grayscale(1), v.ColorJitter(0.4)]), "tensor", "ColorJitter.*before"),
    (lambda v: v.Compose([v.Grayscale(1), v.RandAugment()]), "tensor", "RandAugment.*before"),
    (lambda v: v.ColorJitter(0.4), "normalised", "ColorJitter.*before Normalize"),
    (lambda v: v.Grayscale(3), "normalised", "Grayscale.*before Normalize"),
    *[
        (lambda v, name=name, more=more: getattr(v, name)(*more), "float", f"{name}.*before")
        for name, more in [
            ("RandAugment", []),
            ("RandomAdjustSharpness", [2.0]),
            ("RandomAffine", [10]),
            ("RandomAutocontrast", []),
            ("RandomEqualize", []),
            ("RandomInvert", []),
            ("RandomPerspective", []),
            ("RandomPosterize", [4]),
            ("RandomSolarize", [0.5]),
            ("TrivialAugmentWide", []),
        ]
    ],
    (lambda v: v.RandAugment(num_magnitude_bins=10), "pillow", "RandAugment.num_magnitude_bins"),
]


@pytest.mark.parametrize(("make", "place", "why"), REFUSED)
def test_what_recipes_cannot_is_refused_by_name(
    make: Callable[[Any], Any], place: str, why: str
) -> None:
    need("torchvision")
    from torchvision.transforms import v2

    with pytest.raises(featherload.ConfigError, match=why) as refused:
        recipes.torchvision(placed(v2, place, [make(v2)]))
    assert refused.value.option == "recipe"


def test_what_values_are_is_known_at_each_transform(loader: Make, alike: Path) -> None:
    """Casts of a Pillow image do nothing, and chance must not decide what values are."""
    need("torchvision")
    import torch
    from torchvision.transforms import v2

    cast = v2.ToDtype(torch.float32, scale=True)
    for transforms, why in [
        ([cast, v2.ToImage()], "ToDtype.*Pillow"),
        ([v2.ToImage(), v2.ToDtype(torch.float32)], "ToDtype.float32, scale=False"),
        ([v2.ToImage(), v2.ToDtype(torch.float16, scale=True)], "ToDtype.float16"),
        ([v2.ToImage(), cast, v2.ToDtype(torch.uint8, scale=True)], "ToDtype.uint8"),
        ([v2.ToImage(), v2.ToDtype({torch.Tensor: torch.uint8})], "ToDtype of a dict"),
        ([v2.ToImage(), v2.RandomApply([cast], 0.3)], "RandomApply.*ToDtype.*chance"),
        ([v2.RandomChoice([v2.Grayscale(1), v2.Identity()])], "RandomChoice.*Grayscale.*chance"),
        ([v2.RandomOrder([v2.ToImage()])], "RandomOrder.*ToImage.*chance"),
        ([torch.nn.ReLU()], "ReLU.*no class of torchvision"),
    ]:
        with pytest.raises(featherload.ConfigError, match=why):
            recipes.torchvision(transforms)
    # A fill of parts, where it is not seen.
    elastic = v2.ElasticTransform(9.0, 2.0, fill=0.5)
    op = recipes.torchvision([v2.ToImage(), cast, elastic])["ops"][2]
    assert op["elastic_transform"]["fill"] == 127.5
    # One that does nothing is a choice too.
    same = [
        v2.RandomChoice([v2.Identity(), v2.RandomApply([v2.Identity()])]),
        v2.ToImage(),
        v2.RGB(),
    ]
    rows, opened = first(loader, alike, same)
    assert_alike(rows, [v2.functional.pil_to_tensor(one) for one in opened], 1.0, EXACT)


def test_torchvision_transforms_are_recipes(loader: Make, photos: Path, alike: Path) -> None:
    need("torchvision")
    import torch
    from torchvision import models
    from torchvision.transforms import v2

    weights = models.ResNet50_Weights.IMAGENET1K_V2.transforms()
    one = loader(recipe=weights, framework="torch", decode="full", shuffle=False)
    images, _ = next(iter(one))
    from PIL import Image

    for row, path in enumerate(next(iter(loader(shuffle=False))).paths()[:4]):
        wanted = weights(Image.open(path).convert("RGB"))
        # One level, after the division by the deviation.
        assert (images[row] - wanted).abs().max() < 1.01 / 255 / 0.224
    # Of a tensor antialias counts.
    for antialias in (True, False):
        preset = type(weights)(crop_size=33, resize_size=40, antialias=antialias)
        given = v2.Compose([v2.ToImage(), preset])
        rows, opened = first(loader, alike, given)
        assert_alike(rows, [given(one) for one in opened], 255 * 0.224, (1.1, 0.3))
    compose = v2.Compose(
        [
            v2.ToImage(),
            v2.RandomResizedCrop(96, scale=(0.2, 1.0), interpolation=v2.InterpolationMode.BICUBIC),
            v2.RandomHorizontalFlip(0.3),
            v2.ColorJitter(0.4, 0.4, 0.4, 0.1),
            v2.RandomApply([v2.GaussianBlur((5, 9), (0.1, 2.0))], p=0.3),
            v2.RandAugment(2, 9),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize([0.5] * 3, [0.5] * 3),
            v2.RandomErasing(0.25, value="random"),
        ]
    )
    recipe = recipes.torchvision(compose)
    assert [next(iter(op)) for op in recipe["ops"]] == [
        "decode",
        "random_resized_crop",
        "random_horizontal_flip",
        "color_jitter",
        "random_apply",
        "rand_augment",
        "cast",
        "normalize",
        "random_erasing",
        "layout",
    ]
    assert recipe["ops"][3]["color_jitter"]["brightness"] == [0.6, 1.4]
    assert recipe["ops"][4]["random_apply"]["transforms"] == [
        {"gaussian_blur": {"kernel_size": [9, 5], "sigma": [0.1, 2.0]}}
    ]
    assert digest(loader(recipe=compose)) == digest(loader(recipe=recipe))
    with pytest.raises(featherload.ConfigError, match="Lambda"):
        loader(recipe=v2.Lambda(lambda x: x))


def test_every_transform_of_torchvision_is_translated(loader: Make) -> None:
    """All that have an operation, with numbers of their own, through a whole batch."""
    need("torchvision")
    from torchvision.transforms import v2

    for transform in [
        v2.RandomCrop(32, padding=4, pad_if_needed=True, fill=7),
        v2.RandomVerticalFlip(0.1),
        v2.Grayscale(3),
        v2.RandomGrayscale(0.3),
        v2.RandomRotation((-10, 20), expand=False, fill=3),
        v2.RandomAffine(15, (0.1, 0.2), (0.8, 1.2), 10),
        v2.RandomPerspective(0.4, 0.7),
        v2.ElasticTransform(40.0, 4.0),
        v2.Pad(4, fill=9),
        v2.RandomPosterize(4),
        v2.RandomSolarize(128),
        v2.RandomEqualize(),
        v2.RandomAutocontrast(),
        v2.RandomInvert(),
        v2.RandomAdjustSharpness(2.0),
        v2.TrivialAugmentWide(),
        v2.RandomChoice([v2.RandomInvert(1.0), v2.RandomEqualize(1.0)], p=[0.3, 0.7]),
        v2.RandomOrder([v2.RandomInvert(0.5), v2.RandomEqualize(0.5)]),
        v2.CenterCrop(30),
    ]:
        images, _ = next(iter(loader(recipe=[v2.Resize((48, 48)), transform, v2.PILToTensor()])))
        assert images.dtype == "uint8" and images.shape[:2] == (32, 3)


@pytest.mark.parametrize(
    ("size", "is_training", "keywords"),
    [
        (96, False, {}),
        ((3, 96, 96), False, {"crop_pct": 0.9, "interpolation": "bicubic"}),
        ((96, 64), False, {"crop_mode": "squash", "interpolation": "lanczos"}),
        (95, False, {"crop_pct": 1.0, "normalize": True, "crop_mode": "center"}),
        (96, False, {"normalize": False}),
        # Of a size at which no place is just between two pixels: there Pillow takes now one,
        # now the other, as its sum of steps is rounded.
        (
            97,
            False,
            {"interpolation": "nearest", "crop_pct": 1.0, "mean": (0.5,) * 3, "std": (0.25,) * 3},
        ),
        (97, True, {"no_aug": True, "crop_pct": 0.5}),
        (95, False, {"crop_pct": 1.2}),
        ((96, 64), False, {"interpolation": "bicubic"}),
        ((96, 64), False, {"crop_mode": "border", "crop_pct": 1.0}),
        (64, False, {"crop_mode": "border", "crop_border_pixels": 5}),
        ((3, 96, 96), True, {"no_aug": True}),
        ((96, 64), True, {"no_aug": True, "crop_mode": "border", "interpolation": "random"}),
        (96, True, {"no_aug": True, "normalize": False, "auto_augment": "rand-m9"}),
    ],
)
def test_timms_pixels_are_its_own(
    loader: Make, odd: Path, size: Any, is_training: bool, keywords: dict[str, Any]
) -> None:
    need("timm")
    from timm.data import create_transform

    recipe = recipes.create_transform(size, is_training, **keywords)
    rows, opened = first(loader, odd, recipe)
    theirs = create_transform(size, is_training, **keywords)
    unit = 1.0 if keywords.get("normalize") is False else 255 * 0.25
    assert_alike(rows, [theirs(one) for one in opened], unit, (1.2, 0.1))


def test_timm_keywords_are_recipes(loader: Make) -> None:
    need("timm")
    train = recipes.create_transform(
        128, True, auto_augment="rand-m9-mstd0.5-inc1", re_prob=0.25, re_mode="pixel"
    )
    assert [next(iter(op)) for op in train["ops"]] == [
        "decode",
        "random_resized_crop",
        "random_horizontal_flip",
        "timm_augment",
        "normalize",
        "random_erasing",
        "cast",
        "layout",
    ]
    images, _ = next(iter(loader(recipe=train)))
    assert images.shape == (32, 3, 128, 128) and images.dtype == "float32"
    # Without normalize timm erases nothing, and gives levels.
    levels = recipes.create_transform(
        (128, 96), True, normalize=False, re_prob=0.25, grayscale_prob=0.1, color_jitter=0.3
    )
    assert [next(iter(op)) for op in levels["ops"]] == [
        "decode",
        "random_resized_crop",
        "random_horizontal_flip",
        "color_jitter",
        "color_jitter",
        "cast",
        "layout",
    ]
    images, _ = next(iter(loader(recipe=levels)))
    assert images.shape == (32, 3, 128, 96) and images.dtype == "uint8"
    # timm's own defaults may be written.
    plain = recipes.create_transform(224, True)
    assert plain == recipes.create_transform(
        224,
        True,
        train_crop_mode="rrc",
        re_count=1,
        re_num_splits=0,
        crop_border_pixels=None,
        tf_preprocessing=False,
        use_prefetcher=False,
        separate=False,
        naflex=False,
        patch_size=16,
        max_seq_len=576,
        patchify=False,
        patchify_channels_last=True,
        patchify_flatten=True,
    )
    for keywords, why in [
        ({"naflex": True}, "timm's naflex=True.*NaFlex loader"),
        ({"re_count": 3}, "re_count=3.*re_count=1"),
        ({"bogus": None}, "timm's bogus=None"),
        ({"train_crop_mode": "rkr"}, "train_crop_mode='rkr'"),
        ({"re_num_splits": 2}, "re_num_splits=2.*leaves clean"),
        ({"use_prefetcher": True}, "use_prefetcher"),
        ({"is_training": False, "interpolation": "random"}, "interpolation='random'.*one filter"),
        ({"interpolation": "box"}, "interpolation='box'"),
        ({"re_prob": 0.1, "re_mode": "rand"}, "re_mode='rand'"),
        ({"auto_augment": "v1-mstd1"}, "auto_augment='v1-mstd1'.*3a, or one of rand"),
        ({"auto_augment": "3a-mstd1"}, "auto_augment='3a-mstd1'.*without parts"),
        ({"is_training": False, "crop_pct": -1.0}, "crop_pct=-1.0.*above 0"),
        ({"input_size": (96,)}, "input_size=.96,."),
    ]:
        with pytest.raises(featherload.ConfigError, match=why):
            recipes.create_transform(**{"is_training": True, **keywords})


def test_timms_compose_names_the_function_that_takes_its_keywords(loader: Make) -> None:
    need("timm")
    from timm.data import create_transform

    for compose in (create_transform(96, True), create_transform(96, False)):
        with pytest.raises(featherload.ConfigError, match="timm.*recipes.create_transform"):
            loader(recipe=compose)


HALVES = {"image_mean": [0.5] * 3, "image_std": [0.5] * 3}
# Configs as they lie on the hub, in the form of today and of before, and what is left out.
FAST = {  # What transformers 4 writes of its own torch processors.
    **dict.fromkeys(("crop_size", "device", "disable_grouping", "do_center_crop", "do_pad")),
    **dict.fromkeys(("do_convert_rgb", "input_data_format", "pad_size", "return_tensors")),
    **{"data_format": "channels_first", "default_to_square": True, "do_resize": True},
    **{"do_normalize": True, "do_rescale": True, "rescale_factor": 1 / 255, "resample": 2},
}
PREPROCESSORS: list[tuple[str, dict[str, Any]]] = [
    ("ViT", {}),
    ("ViT", {"size": 97, "resample": 3, **HALVES}),
    ("ViT", {"size": {"height": 64, "width": 64}, **FAST, **HALVES}),
    ("ViT", {"size": {"height": 96, "width": 65}, "resample": 1, "image_mean": 0.4}),
    ("ViT", {"size": {"height": 64, "width": 64}, "do_normalize": False}),
    ("ViT", {"size": 64, "do_normalize": False, "do_rescale": False}),
    ("DeiT", {}),
    ("DeiT", {"size": 130, "crop_size": 97, "do_center_crop": True, "resample": 3, **HALVES}),
    ("Beit", {"size": 96, "crop_size": 64, "do_center_crop": False, "resample": 2, **HALVES}),
    (
        "Beit",
        {
            "size": {"height": 97, "width": 96},
            "crop_size": {"height": 64, "width": 65},
            "do_center_crop": True,
            "do_reduce_labels": True,
        },
    ),
    ("CLIP", {}),
    ("CLIP", {"size": 224, "crop_size": 224, "do_center_crop": True, "resample": 3}),
    ("CLIP", {"size": {"shortest_edge": 97}, "crop_size": {"height": 96, "width": 91}}),
    ("CLIP", {"size": {"height": 97, "width": 99}, "crop_size": 96, "do_convert_rgb": True}),
    ("ChineseCLIP", {"size": {"height": 75, "width": 76}, "crop_size": 64}),
    ("Bit", {"size": {"shortest_edge": 75}, "crop_size": {"height": 64, "width": 64}}),
    ("ConvNext", {"size": 224, "crop_pct": 0.875, "resample": 3, **HALVES}),
    ("ConvNext", {"size": {"shortest_edge": 96}, "crop_pct": 0.95, "resample": 2}),
    ("ConvNext", {"size": {"shortest_edge": 384}, "crop_pct": 0.875, "resample": 3}),
    ("Blip", {}),
    ("Blip", {"size": {"height": 97, "width": 64}}),
    ("GotOcr2", {}),
    ("GotOcr2", {"size": {"height": 97, "width": 64}, "max_patches": 4, "resample": 2}),
    ("EfficientNet", {"resample": 3}),
    ("EfficientNet", {"size": 97, "resample": 2, "include_top": False, "image_std": [0.4] * 3}),
    (
        "EfficientNet",
        {
            "size": {"height": 96, "width": 90},
            "crop_size": {"height": 64, "width": 65},
            "do_center_crop": True,
            "resample": 3,
            "rescale_factor": 1 / 127.5,
            "rescale_offset": True,
        },
    ),
    ("EfficientNet", {"size": 64, "resample": 2, "do_normalize": False}),
    ("Levit", {}),
    ("Levit", {"size": {"shortest_edge": 64}, "crop_size": 60}),
    ("Levit", {"size": {"height": 97, "width": 64}, "do_center_crop": False}),
    ("MobileNetV2", {}),
    ("MobileNetV2", {"size": {"shortest_edge": 97}, "crop_size": {"height": 96, "width": 91}}),
    ("MobileViT", {"size": {"shortest_edge": 288}, "resample": 2}),
    ("MobileViT", {"size": 97, "crop_size": 64, "resample": 3, "do_flip_channel_order": False}),
    ("PoolFormer", {}),
    ("PoolFormer", {"size": {"height": 97, "width": 97}, "crop_size": 64, "crop_pct": 0.95}),
    ("PoolFormer", {"size": {"height": 60, "width": 97}, "crop_size": 60, "crop_pct": 1.0}),
    ("Pvt", {"resample": 3}),
    ("Pvt", {"size": {"height": 97, "width": 64}, "resample": 2}),
    ("Siglip", {}),
    ("Siglip", {"size": {"height": 96, "width": 97}, "resample": 2, "do_convert_rgb": None}),
]


@pytest.mark.parametrize(("name", "config"), PREPROCESSORS)
def test_pixels_are_those_of_hugging_face(
    loader: Make, odd: Path, name: str, config: dict[str, Any]
) -> None:
    """As the processor of torch makes them, and as that of Pillow does."""
    need("transformers")
    import transformers

    recipe = recipes.preprocessor({"feature_extractor_type": f"{name}FeatureExtractor", **config})
    rows, opened = first(loader, odd, recipe)
    # transformers 5 calls that of Pillow so; 4 has a class for that of torch instead.
    names = [f"{name}ImageProcessor", f"{name}ImageProcessorPil"]
    if not hasattr(transformers, names[1]):
        names[1] = f"{name}ImageProcessorFast"
    for one in names:
        theirs = getattr(transformers, one)(**config)
        wanted = [theirs(p, return_tensors="pt")["pixel_values"][0].numpy() for p in opened]
        deviation = min(recipe["ops"][-3].get("normalize", {"std": [1.0]})["std"])
        unit = 1.0 if rows[0].dtype == np.uint8 else 255 * deviation
        # Bicubic is rounded between its two passes, each in its own way.
        assert_alike(rows, [p.astype(rows[0].dtype) for p in wanted], unit, (2.1, 0.1))
        # What it says of itself is the same recipe, and so is the object.
        said = recipes.preprocessor(json.loads(json.dumps(theirs.to_dict())))
        assert said["ops"] == recipe["ops"]
        assert recipes.preprocessor(theirs) == said


@pytest.mark.parametrize(
    "config", [{}, {"size": 97}, {"size": {"height": 64, "width": 97}, "do_center_crop": True}]
)
def test_pixels_are_those_of_dinov3(loader: Make, odd: Path, config: dict[str, Any]) -> None:
    """It resizes floats, and has a processor of torch alone."""
    need("transformers")
    import transformers

    if not hasattr(transformers, "DINOv3ViTImageProcessor"):
        pytest.skip("this version of transformers has no DINOv3ViTImageProcessor")
    if config.get("do_center_crop"):
        config = {**config, "crop_size": {"height": 60, "width": 90}}
    theirs = transformers.DINOv3ViTImageProcessor(**config)
    recipe = recipes.preprocessor(theirs)
    rows, opened = first(loader, odd, recipe)
    wanted = [theirs(p, return_tensors="pt")["pixel_values"][0].numpy() for p in opened]
    assert_alike(rows, wanted, 255 * 0.229, (0.01, 0.001))


def test_a_processor_is_a_recipe_by_object_and_by_name(
    loader: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need("transformers")
    import transformers

    theirs = transformers.ViTImageProcessor(size={"height": 48, "width": 40})
    images, _ = next(iter(loader(recipe=theirs)))
    assert images.shape == (32, 3, 48, 40)
    # As the hub's package keeps a model.
    at = tmp_path / "models--own--vit"
    snapshot = at / "snapshots" / ("0" * 40)
    snapshot.mkdir(parents=True)
    (at / "refs").mkdir()
    (at / "refs" / "main").write_text("0" * 40)
    theirs.save_pretrained(snapshot)
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    assert recipes.preprocessor("own/vit") == recipes.preprocessor(theirs)
    with pytest.raises(featherload.DatasetError, match="own/other is no path.*the hub"):
        recipes.preprocessor("own/other")


def test_hugging_face_preprocessors_are_recipes(loader: Make, tmp_path: Path) -> None:
    vit = {
        "do_resize": True,
        "size": {"height": 64, "width": 64},
        "resample": 2,
        "do_rescale": True,
        "rescale_factor": 0.00392156862745098,
        "do_normalize": True,
        "image_mean": [0.5, 0.5, 0.5],
        "image_std": [0.5, 0.5, 0.5],
        "image_processor_type": "ViTImageProcessor",
    }
    images, _ = next(iter(loader(recipe=recipes.preprocessor(vit))))
    assert images.shape == (32, 3, 64, 64) and -1 <= images.min() < images.max() <= 1
    config = tmp_path / "preprocessor_config.json"
    config.write_text(
        '{"size": {"shortest_edge": 96}, "crop_pct": 0.875, "resample": 3,'
        ' "image_processor_type": "ConvNextImageProcessorFast", "do_pad": null}'
    )
    recipe = recipes.preprocessor(tmp_path)
    assert recipe == recipes.preprocessor(str(config))
    assert recipe["ops"][1] == {"resize": {"size": 109, "interpolation": "bicubic"}}
    assert next(iter(loader(recipe=recipe))).images.shape == (32, 3, 96, 96)


def test_what_hugging_face_says_and_recipes_cannot_is_refused(tmp_path: Path) -> None:
    vit = {"image_processor_type": "ViTImageProcessor", "size": 64}
    clip = {"image_processor_type": "CLIPImageProcessor"}
    convnext = {"image_processor_type": "ConvNextImageProcessor", "resample": 3}
    beit = {"image_processor_type": "BeitImageProcessor", "size": 64, "do_center_crop": False}
    for config, why in [
        ({"size": 224}, "without image_processor_type.*AutoImageProcessor.from_pretrained"),
        *[
            ({"image_processor_type": f"{name}ImageProcessor"}, f"{name}ImageProcessor.*ViT")
            for name in (
                *("Donut", "Nougat", "Owlv2", "Llava"),
                *("BridgeTower", "Perceiver", "ViTHybrid", ""),
            )
        ],
        ({**vit, "bogus": 3}, "bogus=3 of ViTImageProcessor"),
        ({**vit, "do_flip_channel_order": True}, "do_flip_channel_order of ViT.*MobileViT"),
        ({**vit, "include_top": True}, "include_top of ViT.*EfficientNet"),
        ({**vit, "rescale_offset": True}, "rescale_offset of ViT.*EfficientNet"),
        ({"image_processor_type": "PvtImageProcessor"}, "PvtImageProcessor without resample"),
        ({"image_processor_type": "MobileViTImageProcessor"}, "without resample"),
        (
            {"image_processor_type": "EfficientNetImageProcessor", "resample": 0},
            "resample=0 of EfficientNet",
        ),
        (
            {"image_processor_type": "DINOv3ViTImageProcessorFast", "do_rescale": False},
            "do_rescale=False of DINOv3",
        ),
        ({**vit, "do_pad": True}, "do_pad"),
        ({**vit, "do_thumbnail": False}, "do_thumbnail"),
        ({**vit, "auto_map": {}}, "auto_map"),
        ({**vit, "crop_pct": 0.9}, "crop_pct of ViT.*ConvNext"),
        ({**vit, "do_center_crop": True}, "do_center_crop of ViT.*versions"),
        ({**vit, "do_resize": "yes"}, "do_resize='yes'"),
        ({**vit, "default_to_square": False}, "size=64 of ViT.*versions"),
        ({**vit, "data_format": "channels_last"}, "data_format"),
        ({**vit, "resample": 0}, "resample=0"),
        ({**vit, "resample": 4}, "resample=4"),
        ({**vit, "resample": "bicubic"}, "resample='bicubic'"),
        ({**vit, "rescale_factor": 1.0}, "rescale_factor=1.0"),
        ({**vit, "do_rescale": False}, "do_rescale=False"),
        ({**vit, "image_mean": [0.5]}, "image_mean=.0.5. of ViT"),
        ({**vit, "size": {"longest_edge": 64}}, "size=.*longest_edge"),
        ({**vit, "size": {"shortest_edge": 64, "longest_edge": 80}}, "size=.*longest_edge"),
        ({**vit, "size": [64, 64]}, "size=.64, 64."),
        ({**clip, "crop_size": 256}, "crop_size=256 of CLIP.*padded"),
        ({**clip, "crop_size": [224]}, "crop_size=.224."),
        ({**clip, "use_square_size": True}, "use_square_size"),
        ({**convnext, "resample": None}, "ConvNextImageProcessor without resample"),
        ({**convnext, "size": {"height": 96, "width": 96}}, "size=.*shortest_edge"),
        ({**convnext, "size": 96, "crop_pct": 0}, "crop_pct=0"),
        ({**beit, "do_center_crop": None}, "BeitImageProcessor without do_center_crop"),
        ({**beit, "size": None}, "BeitImageProcessor without size"),
        ({"image_processor_type": "SiglipImageProcessor", "size": 64}, "size=64 of Siglip"),
    ]:
        with pytest.raises(featherload.ConfigError, match=why) as refused:
            recipes.preprocessor(config)
        assert refused.value.option == "recipe"
    with pytest.raises(featherload.ConfigError, match="this is a list"):
        recipes.preprocessor([1])  # type: ignore[arg-type]
    with pytest.raises(featherload.DatasetError, match="nowhere.*No such file") as missing:
        recipes.preprocessor("/nowhere")
    assert missing.value.path == "/nowhere"
    config = tmp_path / "preprocessor_config.json"
    for contents, why in [("{", "not JSON"), ("[1]", "this is a list")]:
        config.write_text(contents)
        with pytest.raises(featherload.ConfigError, match=why):
            recipes.preprocessor(tmp_path)


def test_translations_decode_exactly_and_presets_at_a_part(loader: Make, photos: Path) -> None:
    """``decode`` chooses another way for each."""
    need("torchvision")
    from torchvision.transforms import v2

    config = {
        **{"image_processor_type": "ViTImageProcessor", "size": {"height": 32, "width": 32}},
        **{"resample": 2},
    }
    made: dict[str, Any] = {
        "torchvision": v2.Compose([v2.Resize((32, 32)), v2.PILToTensor()]),
        "timm": recipes.create_transform(32),
        "hugging face": recipes.preprocessor(config),
    }

    def decodes(**options: Any) -> str:
        one = loader(batch_size=8, **options)
        profile: dict[str, str] = one.state_dict()["profile"]
        one.close()
        return profile["decode"]

    for recipe in made.values():
        assert decodes(recipe=recipe) == "full"
        assert decodes(recipe=recipe, decode="scaled") == "scaled"
    for name in ("train224", "eval224"):
        assert decodes(recipe=name) == "scaled"
        assert decodes(recipe=name, decode="full") == "full"
    assert decodes(recipe={"ops": [{"resize": {"size": [32, 32]}}]}) == "scaled"


def test_values_by_type_are_those_of_images() -> None:
    """v2 looks up the type of the image, which ToImage and PILToTensor change."""
    need("torchvision")
    import PIL.Image
    import torch
    from torchvision import tv_tensors
    from torchvision.transforms import v2

    fill = {PIL.Image.Image: 7, tv_tensors.Image: 8, tv_tensors.Mask: 255, "others": 9}
    of_masks = {tv_tensors.Mask: 255, tv_tensors.Image: 8}
    pad = v2.Pad(2, fill=fill)
    types = {tv_tensors.Image: torch.float32, tv_tensors.Mask: torch.int64, "others": None}

    def fills(*transforms: Any) -> list[Any]:
        ops = recipes.torchvision([*transforms])["ops"]
        return [op["pad"]["fill"] for op in ops if "pad" in op]

    assert fills(pad, v2.ToImage(), pad, v2.ToPureTensor(), pad) == [7, 8, 9]
    assert fills(v2.PILToTensor(), pad) == [9]
    # Without an entry, v2 fills with 0.
    assert fills(v2.Pad(2, fill=of_masks)) == [0]
    ops = recipes.torchvision([v2.ToImage(), v2.ToDtype(types, scale=True)])["ops"]
    assert {"cast": {"dtype": "f32"}} in ops
    ops = recipes.torchvision([v2.PILToTensor(), v2.ToDtype(types, scale=True)])["ops"]
    assert {"cast": {"dtype": "u8"}} in ops
