"""``featherload.timm.create_loader`` beside timm's own."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import need

import featherload
from featherload import recipes

# timm's data set leaves files open.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

# Levels that the filters of a resize may differ by, and the mean of all pixels.
ROUNDED = (2.01, 0.1)
# Policies whose strengths are fixed.
TABLES = ["original", "originalr", "v0", "v0r"]
# Two of timm's means, and its deviation.
STATS = {"mean": (0.5, 0.4, 0.3), "std": (0.25, 0.25, 0.25)}


@pytest.fixture(autouse=True)
def _needed() -> Iterator[None]:
    for module in ("torch", "torchvision", "timm"):
        need(module)
    yield


def save(folder: Path, sizes: list[tuple[int, int]], *, alike: bool = False) -> Path:
    """PNGs in two classes, which every decoder reads alike."""
    from PIL import Image

    for number, (width, height) in enumerate(sizes):
        random = np.random.default_rng(0 if alike else number)
        few = Image.fromarray(random.integers(0, 256, (5, 7, 3), dtype=np.uint8))
        soft = few.resize((width, height), Image.Resampling.BICUBIC)
        (folder / str(number % 2)).mkdir(parents=True, exist_ok=True)
        soft.save(folder / str(number % 2) / f"{number:03}.png")
    return folder


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    sizes = [(292, 500), (500, 292), (101, 75), (97, 97), (333, 334), (149, 150), (60, 40)]
    return save(tmp_path_factory.mktemp("odd"), sizes)


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tmp_path_factory.mktemp("copies"), [(53, 67)] * 96, alike=True)


def both(folder: Path, size: Any, batch: int, **options: Any) -> tuple[Any, Any]:
    """timm's loader and ours over the same data set of timm."""
    import timm.data
    import torch

    from featherload.timm import create_loader

    given = {"device": torch.device("cpu"), **STATS, **options}
    theirs = timm.data.create_loader(
        timm.data.create_dataset("", str(folder), "train"), size, batch, **given, num_workers=0
    )
    ours = create_loader(timm.data.create_dataset("", str(folder), "train"), size, batch, **given)
    return theirs, ours


def assert_alike(ours: Any, theirs: Any, tolerance: tuple[float, float] = ROUNDED) -> None:
    assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
    off = (ours.double() - theirs.double()).abs() * 255 * 0.25
    assert off.max() <= tolerance[0] and off.mean() <= tolerance[1], (off.max(), off.mean())


def test_keywords_and_defaults_are_timms() -> None:
    import timm.data

    from featherload.timm import create_loader

    theirs = inspect.signature(timm.data.create_loader).parameters
    ours = inspect.signature(create_loader).parameters
    assert [*ours] == [*theirs, "options"]
    for name, of in theirs.items():
        assert (ours[name].default, ours[name].kind) == (of.default, of.kind)


@pytest.mark.parametrize("use_prefetcher", [True, False])
@pytest.mark.parametrize(
    ("size", "options"),
    [
        (96, {}),
        ((3, 96, 64), {"interpolation": "bicubic"}),
        (96, {"crop_mode": "border", "crop_pct": 0.9}),
        ((64, 96), {"crop_mode": "border", "crop_pct": 1.0, "interpolation": "bicubic"}),
        (80, {"crop_mode": "squash", "crop_border_pixels": 7}),
        (80, {"crop_border_pixels": 3}),
        (96, {"is_training": True, "no_aug": True, "interpolation": "random"}),
    ],
)
def test_rows_without_random_values_are_timms(
    odd: Path, size: Any, options: dict[str, Any], use_prefetcher: bool
) -> None:
    import torch

    if options.get("is_training"):
        # The orders differ.
        options = {**options, "scale": (1.0, 1.0)}
    theirs, ours = both(odd, size, 3, use_prefetcher=use_prefetcher, **options)
    assert len(ours) == len(theirs) and len(ours.dataset) == len(theirs.dataset) == 7
    assert ours.dataset.reader is not None and ours.dataset.classes == ["0", "1"]
    expected = [(images, target) for images, target in theirs]
    found = [(images.clone(), target.clone()) for images, target in ours]
    if options.get("is_training"):
        assert [len(target) for _, target in found] == [3, 3]
        return
    for (images, target), (wanted, of) in zip(found, expected, strict=True):
        assert torch.equal(target, of) and target.dtype == of.dtype
        assert_alike(images, wanted)


def test_the_prefetcher_casts_and_moves(odd: Path) -> None:
    import torch

    for options in ({"img_dtype": torch.bfloat16}, {"fp16": True}):
        theirs, ours = both(odd, 32, 4, **options)
        (images, target), (wanted, of) = next(iter(ours)), next(iter(theirs))
        assert images.dtype == wanted.dtype and torch.equal(target, of)
        assert (images - wanted).abs().max() < 0.05


def test_random_filters_are_one_of_two(copies: Path) -> None:
    import torch

    plain = {"scale": (1.0, 1.0), "ratio": (53 / 67, 53 / 67), "hflip": 0.0, "color_jitter": None}
    _, ours = both(copies, 32, 48, is_training=True, interpolation="random", **plain)
    wanted = [
        next(iter(both(copies, 32, 48, is_training=True, interpolation=name, **plain)[0]))[0][0]
        for name in ("bilinear", "bicubic")
    ]
    kinds = []
    for images, _ in ours:
        off = torch.stack([(images - one).abs().amax((1, 2, 3)) for one in wanted])
        assert off.amin(0).max() <= 2.01 / 255 / 0.25
        kinds += off.argmin(0).tolist()
    assert len(kinds) == 96 and 24 < sum(kinds) < 72


def test_mixing_by_timms_collating_function(copies: Path) -> None:
    """Pixels and targets are those of timm's function on the same levels, with the same draws."""
    import torch
    from timm.data import FastCollateMixup

    for mode in ("batch", "pair", "elem", "half"):
        mixing = {"mixup_alpha": 0.8, "cutmix_alpha": 1.0, "num_classes": 2, "mode": mode}
        options = {"is_training": True, "no_aug": True, "seed": 3}
        import timm.data

        from featherload.timm import create_loader

        def loader(collate: Any, options: dict[str, Any] = options) -> Any:
            dataset = timm.data.create_dataset("", str(copies), "train")
            return create_loader(
                dataset, 16, 8, device="cpu", **STATS, collate_fn=collate, **options
            )

        ours = loader(FastCollateMixup(**mixing))
        assert ours.mixup_enabled
        before = np.random.get_state()[1].tolist()  # type: ignore[union-attr]
        found = [(images.clone(), target) for images, target in ours]
        assert np.random.get_state()[1].tolist() == before  # type: ignore[union-attr]
        plain = loader(None)
        theirs = FastCollateMixup(**mixing)
        for number, (levels, labels) in enumerate(plain.loader):
            np.random.seed([3, 0, 0, 0, number])
            wanted, target = theirs([*zip(levels, labels.tolist(), strict=True)])
            assert wanted.dtype == torch.uint8
            wanted = wanted.float().sub_(plain.mean).div_(plain.std)
            assert torch.equal(found[number][0], wanted)
            assert torch.equal(found[number][1], target)
        # The same epoch again, and one without mixing.
        ours.loader.set_epoch(0)
        again, _ = next(iter(ours))
        assert torch.equal(again, found[0][0])
        ours.mixup_enabled = False
        ours.loader.set_epoch(0)
        _, target = next(iter(ours))
        assert (target.amax(1) - 0.95).abs().max() < 1e-6


@pytest.mark.parametrize("use_prefetcher", [True, False])
def test_all_kinds_of_erasing(copies: Path, use_prefetcher: bool) -> None:
    import torch

    plain = {
        "is_training": True,
        "no_aug": False,
        "scale": (1.0, 1.0),
        "ratio": (53 / 67, 53 / 67),
        "hflip": 0.0,
        "color_jitter": None,
        "use_prefetcher": use_prefetcher,
    }
    _, whole = both(copies, 32, 48, **plain)
    clean = next(iter(whole))[0][0].clone()
    for mode, count in (("const", 1), ("const", 3), ("rand", 1), ("rand", 2), ("pixel", 1)):
        _, ours = both(copies, 32, 48, re_prob=0.5, re_mode=mode, re_count=count, **plain)
        rows = torch.cat([images.clone() for images, _ in ours])
        changed = (rows != clean).any(1)
        erased = changed.flatten(1).any(1)
        assert 24 < int(erased.sum()) < 72, (mode, count)
        for row, where in zip(rows[erased], changed[erased], strict=True):
            colours = {tuple(pixel) for pixel in row[:, where].T.tolist()}
            if mode == "const":
                assert colours == {(0.0, 0.0, 0.0)}
            elif mode == "rand":
                assert len(colours) <= count
            else:
                assert len(colours) == int(where.sum())
    if use_prefetcher:
        # The first half of each batch stays clean.
        _, ours = both(copies, 32, 48, re_prob=1.0, re_split=True, **plain)
        for images, _ in ours:
            erased = (images != clean).flatten(1).any(1)
            assert not erased[:24].any() and erased[24:].all()


def test_crops_that_keep_the_ratio(odd: Path, copies: Path) -> None:
    import torch

    names = ["decode", "resize_keep_ratio"]
    for mode, crop in (("rkrc", "center_crop_or_pad"), ("rkrr", "random_crop")):
        recipe = recipes.create_transform(48, True, train_crop_mode=mode, interpolation="random")
        assert [next(iter(op)) for op in recipe["ops"]][:3] == [*names, crop]
        _, ours = both(odd, (48, 40), 7, is_training=True, train_crop_mode=mode)
        assert next(iter(ours))[0].shape == (7, 3, 48, 40)
    # Without random values left, the pixels are timm's.
    fixed = {"scale": (1.0, 1.0), "ratio": (1.0, 1.0), "hflip": 0.0, "color_jitter": None}
    theirs, ours = both(copies, 60, 8, is_training=True, train_crop_mode="rkrc", **fixed)
    assert_alike(next(iter(ours))[0], next(iter(theirs))[0])
    assert not torch.equal(next(iter(ours))[0][0], torch.zeros(3, 60, 60))


def test_samplers_of_several_processes(copies: Path, tmp_path: Path) -> None:
    import torch.distributed as dist

    store = f"file://{tmp_path / 'group'}"
    dist.init_process_group("gloo", init_method=store, rank=0, world_size=1)
    try:
        for training, repeats in ((True, 0), (True, 3), (False, 0)):
            options = {"is_training": training, "distributed": True, "num_aug_repeats": repeats}
            theirs, ours = both(copies, 16, 10, use_prefetcher=False, **options)
            assert type(ours.sampler) is type(theirs.sampler) and len(ours) == len(theirs)
            for epoch in range(2):
                for one in (ours, theirs):
                    if hasattr(one.sampler, "set_epoch"):
                        one.sampler.set_epoch(epoch)
                ids = [batch.ids.tolist() for batch in ours]
                if repeats or not training:
                    wanted = [*iter(theirs.batch_sampler)]
                    assert ids == wanted
                else:
                    assert len(ids) == 9 and len({*sum(ids, [])}) == 90  # noqa: RUF017
    finally:
        dist.destroy_process_group()


def test_broken_images_are_replaced_as_in_timm(odd: Path, tmp_path: Path) -> None:
    import shutil

    folder = tmp_path / "set"
    shutil.copytree(odd, folder)
    (folder / "0" / "002.png").write_bytes(b"no picture")
    theirs, ours = both(folder, 32, 7, use_prefetcher=False)
    batch, (wanted, target) = next(iter(ours)), next(iter(theirs))
    assert batch.labels.tolist() == target.tolist()
    assert_alike(batch.images, wanted)
    assert featherload.RowStatus.SUBSTITUTED in batch.status


def test_what_would_make_other_pixels_is_an_error(odd: Path) -> None:
    import timm.data
    from timm.data import FastCollateMixup
    from timm.data.dataset import AugMixDataset

    from featherload.timm import create_loader

    folder = timm.data.create_dataset("", str(odd), "train")
    for options, why in [
        ({"num_aug_splits": 3}, "num_aug_splits=3 and the data set is ImageDataset"),
        (
            {"dataset": AugMixDataset(folder, 2), "num_aug_splits": 3},
            r"num_splits=2\): give the same",
        ),
        (
            {"dataset": AugMixDataset(folder, 2), "num_aug_splits": 2, "no_aug": True},
            "only with is_training=True",
        ),
        (
            {
                "dataset": AugMixDataset(folder, 2),
                "num_aug_splits": 2,
                "collate_fn": FastCollateMixup(),
            },
            "mixes single images",
        ),
        ({"tf_preprocessing": True}, "TensorFlow's decoder"),
        ({"input_size_choices": [32, 64]}, "multi_scale .* other sizes"),
        ({"auto_augment": "augmix-m5-n2"}, "'n2' is unknown: use an augmix policy"),
        ({"auto_augment": "original-m9"}, "'m9' is unknown: use original"),
        ({"auto_augment": "3a-mstd1"}, "3a without parts"),
        ({"auto_augment": "best"}, "no such policy: use 3a, or one of rand, augmix"),
        ({"train_crop_mode": "rkr"}, "rrc, rkrc and rkrr"),
        ({"collate_fn": print}, "is not called, so batches"),
        ({"collate_fn": FastCollateMixup(), "use_prefetcher": False}, "use_prefetcher=True"),
        ({"collate_fn": FastCollateMixup(), "batch_size": 3}, "give an even number"),
        ({"num_aug_repeats": 3}, "several processes only"),
        ({"is_training": False, "interpolation": "random"}, "evaluates with one filter"),
        ({"dataset": AugMixDataset(folder)}, "num_aug_splits=0"),
        (
            {"dataset": timm.data.create_dataset("", str(odd), "train", input_img_mode="L")},
            "input_img_mode='L'",
        ),
    ]:
        given = {"dataset": folder, "input_size": 32, "batch_size": 2, "is_training": True}
        with pytest.raises(featherload.ConfigError, match=why):
            create_loader(**{**given, "device": "cpu", **options})


POLICIES = ["rand-m9-mstd0.5-inc1", "augmix-m5-w4-d2", "original-mstd0.5", "v0r-mstd2"]


@pytest.mark.parametrize("policy", [None, "3a", *POLICIES])
@pytest.mark.parametrize("jitter", [None, 0.4, (0.3, 0.2, 0.1, 0.05)])
def test_the_steps_of_each_policy_are_timms(policy: str | None, jitter: Any) -> None:
    """timm's object has the same steps in the same order."""
    import timm.data

    given = {"is_training": True, "auto_augment": policy, "color_jitter": jitter, "re_prob": 0.2}
    theirs = [type(one).__name__ for one in timm.data.create_transform(48, **given).transforms]
    ours = [next(iter(op)) for op in recipes.create_transform(48, **given)["ops"]]
    names = {
        "AugMixAugment": "timm_augment",
        "AutoAugment": "random_choice" if policy == "3a" else "timm_augment",
        "ColorJitter": "color_jitter",
        "MaybeToTensor": None,
        "Normalize": "normalize",
        "RandAugment": "timm_augment",
        "RandomErasing": "random_erasing",
        "RandomHorizontalFlip": "random_horizontal_flip",
        "RandomResizedCropAndInterpolation": "random_resized_crop",
    }
    wanted = [names[name] for name in theirs if names[name] is not None]
    assert [name for name in ours if name not in ("decode", "cast", "layout")] == wanted


def kolmogorov(ours: Any, theirs: Any) -> float:
    """The largest difference between the distribution functions of two lists."""
    both = np.sort(np.concatenate([ours, theirs]))
    counts = [
        np.searchsorted(np.sort(one), both, side="right") / len(one) for one in (ours, theirs)
    ]
    return float(np.abs(counts[0] - counts[1]).max())


@pytest.mark.parametrize("policy", ["augmix-m9-w2-d1", "augmix-m6-b1", *TABLES, *POLICIES])
def test_policies_give_what_timm_gives(
    policy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many rows of one image that is neither cropped nor resized, so that pixels are equal."""
    import random

    import torch
    from PIL import ImageOps

    whole = ImageOps.posterize

    def posterize(image: Any, bits: int) -> Any:
        # Pillow 13 rejects 0 bits. Before, it gave black.
        return whole(image, bits) if bits else image.point(lambda _: 0)

    monkeypatch.setattr(ImageOps, "posterize", posterize)
    folder = save(tmp_path / "set", [(24, 24)] * 32, alike=True)
    plain = {"scale": (1.0, 1.0), "ratio": (1.0, 1.0), "hflip": 0.0, "interpolation": "bicubic"}
    theirs, ours = both(folder, 24, 32, is_training=True, auto_augment=policy, **plain)
    _, clean = both(folder, 24, 32, is_training=True, color_jitter=None, **plain)
    random.seed(1)
    np.random.seed(1)
    torch.manual_seed(1)

    def levels(loader: Any, epochs: int) -> Any:
        rows = [images * 255 * 0.25 for _ in range(epochs) for images, _ in loader]
        return torch.cat(rows).numpy().round(3)

    found, wanted = levels(ours, 40), levels(theirs, 40)
    image = levels(clean, 1)[0]
    assert len(found) == len(wanted) == 32 * 40
    bound = 1.95 * (2 / len(found)) ** 0.5
    for about in (
        lambda rows: np.abs(rows - image).mean((1, 2, 3)),
        lambda rows: rows.mean((1, 2, 3)),
        lambda rows: rows.std((1, 2, 3)),
    ):
        off = kolmogorov(about(found).round(2), about(wanted).round(2))
        assert off < bound, (policy, off, bound)
    if policy in TABLES:
        # The outcomes are few, and each is an image of timm's.
        known = {row.tobytes() for row in wanted}
        same = sum(row.tobytes() in known for row in found) / len(found)
        assert len(known) > 30 and same > 0.97, (policy, len(known), same)


def split_loaders(folder: Path, splits: int, batch_size: int, **options: Any) -> tuple[Any, Any]:
    """timm's loader and ours, of the same number of splits."""
    import timm.data
    from timm.data.dataset import AugMixDataset

    from featherload.timm import create_loader

    given = {
        "input_size": 24,
        "batch_size": batch_size,
        "is_training": True,
        "num_aug_splits": splits,
        "device": "cpu",
        **options,
    }

    def dataset() -> Any:
        return AugMixDataset(timm.data.create_dataset("", str(folder), "train"), splits)

    theirs = {key: value for key, value in given.items() if key != "seed"}
    theirs = {**theirs, "num_workers": 0, "device": torch_device()}
    return timm.data.create_loader(dataset(), **theirs), create_loader(dataset(), **given)


def torch_device() -> Any:
    import torch

    return torch.device("cpu")


@pytest.mark.parametrize("use_prefetcher", [True, False])
@pytest.mark.parametrize("policy", ["augmix-m9", "rand-m9-mstd0.5-inc1", None])
def test_splits_have_one_crop_and_timms_order(
    policy: str | None, use_prefetcher: bool, tmp_path: Path
) -> None:
    import torch

    from featherload.timm import create_loader

    folder = save(tmp_path / "set", [(40, 33)] * 8)
    options = {"auto_augment": policy, "use_prefetcher": use_prefetcher, "seed": 5}
    jitter = {"color_jitter": None} if policy is None else {}
    theirs, ours = split_loaders(folder, 3, 4, **options, **jitter)
    plain = {"auto_augment": None, "color_jitter": None, "use_prefetcher": use_prefetcher}
    import timm.data

    alone = create_loader(
        timm.data.create_dataset("", str(folder), "train"),
        24,
        4,
        True,
        device="cpu",
        seed=5,
        **plain,
    )
    assert len(theirs) == len(ours) == 2
    for (wanted, wanted_target), batch, (clean, labels) in zip(theirs, ours, alone, strict=True):
        images, target = batch
        if use_prefetcher:
            assert images.shape == wanted.shape == (12, 3, 24, 24)
            assert target.shape == wanted_target.shape == (12,)
            assert target.tolist() == labels.tolist() * 3
            images = images.split(4)
        else:
            assert len(images) == len(wanted) == 3
            assert target.tolist() == labels.tolist()
        assert images[0].dtype == wanted[0].dtype
        # The clean split is the recipe without augmentation, bit for bit.
        assert torch.equal(images[0], clean)
        for split in images[1:]:
            assert torch.equal(split, clean) == (policy is None)
        if policy is not None:
            assert not torch.equal(images[1], images[2])
        assert len(batch.ids) == len(batch.status) == 4
        assert batch.good_rows() == [*range(12 if use_prefetcher else 4)]


def test_good_rows_of_splits_are_rows_of_the_images(tmp_path: Path) -> None:
    """A broken image has a row in each split, which is left out."""
    import timm.data
    import torch
    from timm.data.dataset import AugMixDataset

    from featherload.timm import create_loader

    folder = save(tmp_path / "set", [(40, 33)] * 8)
    broken = sorted(path for path in folder.rglob("*") if path.is_file())[3]
    broken.write_bytes(b"no image")
    (batch,) = create_loader(
        AugMixDataset(timm.data.create_dataset("", str(folder), "train"), 3),
        24,
        8,
        True,
        auto_augment="augmix-m9",
        num_aug_splits=3,
        device="cpu",
        on_error="skip",
        seed=5,
    )
    (fault,) = batch.faults
    good = batch.good_rows()
    assert good == [row for row in range(24) if row % 8 != fault.row]
    assert batch.to(torch.float64).good_rows() == good
    # Rows without pixels have one value in each channel.
    flat = batch.images.flatten(2).std(dim=2).amax(dim=1)
    assert [row for row in range(24) if flat[row] > 0] == good


def test_splits_augment_the_clean_split_as_timm_does(tmp_path: Path) -> None:
    """Images that are neither resized nor cropped: AugMix changes the clean split as timm's."""
    import random

    import torch

    folder = save(tmp_path / "set", [(24, 24)] * 32, alike=True)
    plain = {"scale": (1.0, 1.0), "ratio": (1.0, 1.0), "interpolation": "bicubic"}
    random.seed(1)
    np.random.seed(1)
    torch.manual_seed(1)
    found = []
    for loader in split_loaders(folder, 2, 32, auto_augment="augmix-m9-w2-d1", **plain):
        apart, clean = [], set()
        for _ in range(30):
            for images, _ in loader:
                first, second = (images * 255).split(32)
                clean |= {row.numpy().round(1).tobytes() for row in first}
                apart += (first - second).abs().mean((1, 2, 3)).tolist()
        # The image and its mirror image, and both of them in both splits.
        assert len(clean) == 2
        found.append(np.array(apart).round(2))
    assert kolmogorov(*found) < 1.95 * (2 / len(found[0])) ** 0.5
    # Splits that were mirrored apart would differ by far more.
    assert found[1].max() <= 1.2 * found[0].max()


@pytest.mark.parametrize("use_prefetcher", [True, False])
def test_erasing_of_splits_is_timms(use_prefetcher: bool, tmp_path: Path) -> None:
    """With ``re_split`` the first split is clean. Without the prefetcher timm erases in all."""
    folder = save(tmp_path / "set", [(40, 33)] * 8)
    for mode in ("const", "rand"):
        options = {"auto_augment": None, "color_jitter": None, "re_prob": 1.0, "re_mode": mode}
        for loader in split_loaders(
            folder, 2, 8, **options, re_split=True, use_prefetcher=use_prefetcher
        ):
            images, _ = next(iter(loader))
            first, second = images.split(8) if use_prefetcher else images
            # Erased pixels differ, so the splits of no image are alike.
            assert all((a != b).any() for a, b in zip(first, second, strict=True))
            zeros = [(row == 0).all(0).sum().item() for row in first]
            if mode == "const":
                assert (min(zeros) > 0) == (not use_prefetcher)


def test_prefetched_batches_keep_what_the_loader_told(odd: Path) -> None:
    from timm.data.mixup import FastCollateMixup

    mixup = FastCollateMixup(mixup_alpha=1.0, num_classes=2)
    for options in ({}, {"collate_fn": mixup}):
        _, ours = both(odd, 32, 2, is_training=True, **options)
        batch = next(iter(ours))
        assert batch.ids.shape == (2,) and len(batch.status) == 2 and batch.faults == []
        assert batch.number == 0 and batch.columns == []
        assert batch.images.is_floating_point() and "2 x 3 x 32 x 32" in repr(batch)


@pytest.mark.parametrize("use_prefetcher", [True, False])
def test_erasing_follows_from_the_position_alone(odd: Path, use_prefetcher: bool) -> None:
    import random

    import torch

    def make() -> Any:
        given = {"is_training": True, "re_prob": 1.0, "re_mode": "rand", "re_count": 3, "seed": 3}
        from timm.data import create_dataset

        from featherload.timm import create_loader

        data = create_dataset("", str(odd), "train")
        return create_loader(
            data, 32, 2, use_prefetcher=use_prefetcher, device=torch.device("cpu"), **given
        )

    def own() -> tuple[Any, ...]:
        return random.getstate(), torch.get_rng_state().tolist()

    random.seed(1)
    torch.manual_seed(1)
    before = own()
    want = [images.clone() for images, _ in make()]
    assert own() == before
    assert len(want) == 3 and not torch.equal(want[0], want[1])
    random.seed(2)
    torch.manual_seed(2)
    ours = make()
    batches = iter(ours)
    assert torch.equal(next(batches).images, want[0])
    state = ours.state_dict()
    again = make()
    again.load_state_dict(state)
    for (images, _), wanted in zip(again, want[1:], strict=True):
        assert torch.equal(images, wanted)


def test_masked_rows_are_not_erased(odd: Path, tmp_path: Path) -> None:
    import torch
    from timm.data import create_dataset

    from featherload.timm import create_loader

    some = tmp_path / "some"
    for path in odd.rglob("*.png"):
        (some / path.parent.name).mkdir(parents=True, exist_ok=True)
        is_broken = path.name == "002.png"
        data = b"broken" if is_broken else path.read_bytes()
        (some / path.parent.name / path.name).write_bytes(data)
    given = {"is_training": True, "re_prob": 1.0, "re_mode": "rand", "on_error": "skip"}
    folder = create_dataset("", str(some), "train")
    ours = create_loader(folder, 32, 7, use_prefetcher=False, device=torch.device("cpu"), **given)
    batch = next(iter(ours))
    [fault] = batch.faults
    assert not batch.images[fault.row].any()
    assert all(batch.images[row].any() for row in batch.good_rows())
