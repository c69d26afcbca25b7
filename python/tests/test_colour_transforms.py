"""torchvision's colour operations, AugMix and JPEG, and blurs of Pillow: their own pixels."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import need
from test_transforms import (
    COLOURS,
    EXACT,
    LEVELS,
    PLACES,
    TENSORS,
    assert_alike,
    first,
    nearest,
    placed,
    save,
    whole,
)

import featherload
from featherload import recipes

Make = Callable[..., featherload.Loader]


@pytest.fixture(scope="module")
def some(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixty pictures of one size, which is no multiple of a JPEG's blocks."""
    return save(tmp_path_factory.mktemp("some"), [(53, 67)] * 60)


@pytest.mark.filterwarnings("ignore:The image decoding and encoding:DeprecationWarning")
@pytest.mark.parametrize("quality", [1, 35, 75, 98, 100])
@pytest.mark.parametrize("place", LEVELS)
def test_jpegs_are_torchvisions_and_pillows(
    loader: Make, some: Path, quality: int, place: str
) -> None:
    """Bit for bit: both write and read with libjpeg-turbo."""
    need("torchvision")
    from torchvision.transforms import v2

    compose = v2.Compose(placed(v2, place, [v2.JPEG(quality)]))
    rows, opened = first(loader, some, compose)
    assert_alike(rows, [compose(one) for one in opened], 1.0, (0.0, 0.0))


@pytest.mark.parametrize("place", COLOURS)
def test_distortions_are_torchvisions(loader: Make, some: Path, place: str) -> None:
    """With one factor for each change there are twelve outcomes: contrast before or after, and six
    orders of the channels. The factors are exact in single precision, in which torch draws them.
    """
    need("torchvision")
    import torch
    from torchvision.transforms import v2

    factors = (1.125, 1.375, 0.625, 0.0390625)
    distort = v2.RandomPhotometricDistort(*[(f, f) for f in factors], p=1.0)
    rows, opened = first(loader, some, placed(v2, place, [distort]))
    seen = set()
    for row, one in zip(rows, opened, strict=True):
        given = v2.Compose(placed(v2, place, []))(one) if place != "pillow" else one
        outcomes = []
        for before in (True, False):
            for order in permutations(range(3)):
                params = {
                    "brightness_factor": factors[0],
                    "contrast_factor": factors[1],
                    "saturation_factor": factors[2],
                    "hue_factor": factors[3],
                    "contrast_before": before,
                    "channel_permutation": list(order),
                }
                changed = distort.transform(given, params)
                if not isinstance(changed, torch.Tensor):
                    changed = v2.functional.pil_to_tensor(changed)
                outcomes.append(np.asarray(changed).astype(float) * PLACES[place])
        off = [abs(row.astype(float) * PLACES[place] - other) for other in outcomes]
        which = int(np.argmin([one.mean() for one in off]))
        seen.add(which)
        assert off[which].max() < 0.01
    assert len(seen) >= 10


@pytest.mark.parametrize("place", [*LEVELS, "float", "normalised"])
def test_orders_of_channels_are_torchvisions(loader: Make, some: Path, place: str) -> None:
    need("torchvision")
    from torchvision.transforms import v2

    rows, opened = first(loader, some, placed(v2, place, [v2.RandomChannelPermutation()]))
    seen = set()
    for row, one in zip(rows, opened, strict=True):
        plain = np.asarray(v2.Compose(placed(v2, place, []))(one))
        fits = [
            order
            for order in permutations(range(3))
            if np.allclose(row, plain[list(order)], atol=1e-6)
        ]
        assert len(fits) == 1
        seen.add(fits[0])
    assert len(seen) == 6


@pytest.mark.parametrize(
    ("place", "clip"), [("tensor", True), ("float", True), *[(place, False) for place in TENSORS]]
)
def test_noise_is_torchvisions(loader: Make, some: Path, place: str, clip: bool) -> None:
    """The same distribution: mean and deviation of what is added, and where it is cut."""
    need("torchvision")
    import torch
    from torchvision.transforms import v2

    noise = v2.GaussianNoise(0.02, 0.05, clip)
    rows, opened = first(loader, some, placed(v2, place, [noise]))
    plain = v2.Compose(placed(v2, place, []))
    theirs = v2.Compose(placed(v2, place, [noise]))
    torch.manual_seed(3)
    ours, other = [], []
    for row, one in zip(rows, opened, strict=True):
        before = np.asarray(plain(one)).astype(float)
        ours.append((row.astype(float) - before).ravel())
        other.append((np.asarray(theirs(one)).astype(float) - before).ravel())
    a, b = np.concatenate(ours), np.concatenate(other)
    if place == "tensor" and not clip:
        # Bytes wrap around.
        a, b = (a + 128) % 256 - 128, (b + 128) % 256 - 128
    unit = 255.0 if place == "tensor" else 1.0
    assert abs(a.mean() - b.mean()) < 0.0005 * unit
    assert abs(a.std() - b.std()) < 0.0005 * unit
    assert abs(np.quantile(a, 0.9) - np.quantile(b, 0.9)) <= 0.001 * unit
    if clip:
        low, high = np.concatenate(rows).min(), np.concatenate(rows).max()
        assert low >= 0 and high <= unit


def test_noise_without_a_deviation_is_the_mean(loader: Make, some: Path) -> None:
    need("torchvision")
    from torchvision.transforms import v2

    for place in TENSORS:
        noise = v2.GaussianNoise(0.1, 0.0, clip=place != "normalised")
        compose = v2.Compose(placed(v2, place, [noise]))
        rows, opened = first(loader, some, compose)
        assert_alike(rows, [compose(one) for one in opened], PLACES[place], EXACT)


@pytest.mark.parametrize("place", LEVELS)
def test_mixes_of_one_chain_are_torchvisions(loader: Make, some: Path, place: str) -> None:
    """With weights that are all but 0 and 1, a row is the picture or one of the operations. Rows
    between them are skipped. The pixels for given weights are those of the goldens of Rust.
    """
    need("torchvision")
    from torchvision.transforms import v2

    mix = v2.AugMix(1, 1, 1, 0.011)
    rows, opened = first(loader, some, placed(v2, place, [mix]))
    found = 0
    for row, one in zip(rows, opened, strict=True):
        given = v2.functional.pil_to_tensor(one)
        outcomes = [whole(given)]
        for name, (strengths, signed) in mix._AUGMENTATION_SPACE.items():
            strength = strengths(10, 67, 53)
            value = 0.0 if strength is None else float(strength[0])
            changed = mix._apply_image_or_video_transform(
                given, name, -value if signed else value, mix.interpolation, mix._fill
            )
            outcomes.append(whole(changed))
        off, _ = nearest([row], np.stack(outcomes))
        found += off[0] < 1.01
    assert found > 45


@pytest.mark.parametrize("radius", [0.1, 0.63, 1.0, 1.9, 7.5])
def test_blurs_are_pillows(loader: Make, some: Path, radius: float) -> None:
    """Bit for bit."""
    for module in ("torchvision", "lightly"):
        need(module)
    from lightly.transforms.gaussian_blur import GaussianBlur
    from PIL import ImageFilter
    from torchvision.transforms import v2

    blur = GaussianBlur(prob=1.0, sigmas=(radius, radius))
    rows, opened = first(loader, some, recipes.torchvision([blur, v2.PILToTensor()]))
    wanted = [
        v2.functional.pil_to_tensor(p.filter(ImageFilter.GaussianBlur(radius))) for p in opened
    ]
    assert_alike(rows, wanted, 1.0, (0.0, 0.0))
    with pytest.raises(featherload.ConfigError, match="GaussianBlur.*before the transform to a"):
        recipes.torchvision([v2.ToImage(), blur])


def test_three_augment_of_timm_is_one_of_three(loader: Make, some: Path) -> None:
    need("timm")
    from PIL import ImageOps

    recipe = recipes.create_transform(
        48,
        True,
        scale=(1, 1),
        ratio=(53 / 67, 53 / 67),
        hflip=0.0,
        normalize=False,
        auto_augment="3a",
        color_jitter=None,
        interpolation="bicubic",
    )
    rows, _ = first(loader, some, recipe)
    plain = {**recipe, "ops": [op for op in recipe["ops"] if "random_choice" not in op]}
    before, _ = first(loader, some, plain)
    counts = {"grey": 0, "solarized": 0, "blurred": 0}
    for row, one in zip(rows, before, strict=True):
        from PIL import Image

        solarized = np.asarray(ImageOps.solarize(Image.fromarray(one.transpose(1, 2, 0)), 128))
        if (row[0] == row[1]).all() and (row[1] == row[2]).all():
            counts["grey"] += 1
        elif (row == solarized.transpose(2, 0, 1)).all():
            counts["solarized"] += 1
        else:
            counts["blurred"] += 1
            assert abs(whole(row) - whole(one)).mean() < 25
    assert min(counts.values()) > 8, counts


@pytest.mark.parametrize(
    ("make", "place", "why"),
    [
        (lambda v: v.GaussianNoise(), "pillow", "GaussianNoise of a Pillow.*ToImage"),
        (lambda v: v.GaussianNoise(), "normalised", "GaussianNoise.*clip=False"),
        (lambda v: v.JPEG(50), "float", "JPEG.*before"),
        (lambda v: v.Compose([v.Grayscale(1), v.JPEG(50)]), "tensor", "JPEG.*before Grayscale"),
        (lambda v: v.AugMix(), "float", "AugMix.*before"),
        (lambda v: v.AugMix(mixture_width=9), "tensor", "AugMix.mixture_width=9.*at most 8"),
        (lambda v: v.AugMix(interpolation=v.InterpolationMode("box")), "pillow", "box"),
        (lambda v: v.RandomPhotometricDistort(), "normalised", "Distort.*before Normalize"),
    ],
)
def test_what_recipes_cannot_is_refused_by_name(
    make: Callable[[Any], Any], place: str, why: str
) -> None:
    need("torchvision")
    from torchvision.transforms import v2

    with pytest.raises(featherload.ConfigError, match=why):
        recipes.torchvision(placed(v2, place, [make(v2)]))


@pytest.mark.filterwarnings("ignore:Unused augmentation cfg items:UserWarning")
def test_open_clips_transforms_are_torchvisions(loader: Make, some: Path) -> None:
    need("open_clip")
    import open_clip
    from torchvision import transforms as v1

    mean, std = (0.48, 0.46, 0.41), (0.27, 0.26, 0.28)
    end = [v1.ToTensor(), v1.Normalize(mean, std)]
    bicubic = v1.InterpolationMode.BICUBIC
    settings = {"color_jitter": (0.3, 0.2, 0.1, 0.05), "color_jitter_prob": 1.0}
    train = open_clip.image_transform(32, True, mean, std, aug_cfg=settings)
    crop = v1.RandomResizedCrop(32, (0.9, 1.0), interpolation=bicubic)
    for theirs, same in (
        (
            open_clip.image_transform(32, False, mean, std),
            [v1.Resize(32, bicubic), v1.CenterCrop(32), *end],
        ),
        (
            open_clip.image_transform(32, False, mean, std, resize_mode="squash"),
            [v1.Resize((32, 32), bicubic), *end],
        ),
        (open_clip.image_transform(32, True, mean, std), [crop, *end]),
        (train, [crop, v1.ColorJitter(0.3, 0.2, 0.1, 0.05), *end]),
        (
            open_clip.image_transform(32, True, mean, std, aug_cfg={"gray_scale_prob": 0.5}),
            [crop, v1.RandomGrayscale(0.5), *end],
        ),
    ):
        ours, wanted = (
            next(iter(loader(some, recipe=recipe, batch_size=60, shuffle=False))).images.copy()
            for recipe in (theirs, v1.Compose(same))
        )
        np.testing.assert_array_equal(ours, wanted)
    with pytest.raises(
        featherload.ConfigError, match="MaybeConvertMode.'L'. cannot .*leave it out"
    ):
        loader(some, recipe=[open_clip.transform.MaybeConvertMode("L"), *end])
    longest = open_clip.image_transform(32, False, mean, std, resize_mode="longest")
    with pytest.raises(featherload.ConfigError, match="ResizeKeepRatio"):
        loader(some, recipe=longest)
