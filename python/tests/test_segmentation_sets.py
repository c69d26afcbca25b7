"""torchvision's segmentation data sets in the drop-in, beside torchvision's own loader."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import need

from featherload import ConfigError

COUNT = 5

Make = Callable[..., Any]


def _size(number: int) -> tuple[int, int]:
    return 60 + 7 * number, 100 - 9 * number


def _picture(path: Path, number: int) -> None:
    """Smooth colours, which JPEG keeps well."""
    from PIL import Image

    height, width = _size(number)
    small = np.random.default_rng(number).integers(0, 256, (6, 8, 3), np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(small).resize((width, height), Image.Resampling.BICUBIC).save(path)


def _labels(number: int, most: int = 256) -> Any:
    """A mask of patches, and of single pixels."""
    random = np.random.default_rng(100 + number)
    height, width = _size(number)
    patches = random.integers(0, most, (height // 9 + 1, width // 9 + 1))
    labels = patches.repeat(9, 0).repeat(9, 1)[:height, :width]
    alone = random.random((height, width)) < 0.1
    return np.where(alone, random.integers(0, most, (height, width)), labels)


def _mask(path: Path, labels: Any, palette: bool = False) -> None:
    from PIL import Image

    mask = Image.fromarray(labels)
    if palette:
        mask = mask.convert("P")
        mask.putpalette([(7 * i) % 256 for i in range(768)])
    path.parent.mkdir(parents=True, exist_ok=True)
    mask.save(path)


@pytest.fixture(scope="session")
def sets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Small data sets in the folders that torchvision reads."""
    need("torchvision")
    from scipy.io import savemat

    root = tmp_path_factory.mktemp("sets")
    voc, sbd = root / "voc" / "VOCdevkit" / "VOC2012", root / "sbd"
    pets, city = root / "pets" / "oxford-iiit-pet", root / "city"
    names = [f"2007_{n:06}" for n in range(COUNT)]
    (sbd / "cls").mkdir(parents=True)
    for n, name in enumerate(names):
        labels = _labels(n).astype(np.uint8)
        _picture(voc / "JPEGImages" / f"{name}.jpg", n)
        _mask(voc / "SegmentationClass" / f"{name}.png", labels, palette=True)
        _picture(sbd / "img" / f"{name}.jpg", n)
        savemat(sbd / "cls" / f"{name}.mat", {"GTcls": {"Segmentation": labels}})
        _picture(pets / "images" / f"Abyssinian_{n}.jpg", n)
        _mask(pets / "annotations" / "trimaps" / f"Abyssinian_{n}.png", labels % 3 + 1)
        stem, folder = f"bonn_{n:06}_000019", "train/bonn"
        image = city / "leftImg8bit" / folder / f"{stem}_leftImg8bit.png"
        _picture(image, n)
        classes = _labels(n, 34).astype(np.uint8)
        _mask(city / "gtFine" / folder / f"{stem}_gtFine_labelIds.png", classes)
        things = np.where(classes > 23, 1000 * _labels(n, 34) + classes % 3, classes)
        file = city / "gtFine" / folder / f"{stem}_gtFine_instanceIds.png"
        _mask(file, things.astype(np.uint16))
    for folder in (voc / "ImageSets" / "Segmentation" / "train.txt", sbd / "train.txt"):
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.write_text("\n".join(names[::-1]) + "\n")
    lines = [f"Abyssinian_{n} {n % 3 + 1} {n % 2 + 1} 1" for n in range(COUNT)]
    (pets / "annotations" / "trainval.txt").write_text("\n".join(lines) + "\n")
    return root


def _voc(root: Path, transforms: Any) -> Any:
    from torchvision.datasets import VOCSegmentation

    return VOCSegmentation(root / "voc", image_set="train", transforms=transforms)


def _sbd(root: Path, transforms: Any) -> Any:
    from torchvision.datasets import SBDataset

    return SBDataset(root / "sbd", mode="segmentation", transforms=transforms)


def _city(root: Path, transforms: Any, target_type: Any = "semantic") -> Any:
    from torchvision.datasets import Cityscapes

    return Cityscapes(root / "city", target_type=target_type, transforms=transforms)


def _pets(root: Path, transforms: Any, target_types: Any = "segmentation") -> Any:
    from torchvision.datasets import OxfordIIITPet

    return OxfordIIITPet(root / "pets", target_types=target_types, transforms=transforms)


SETS = {"voc": _voc, "sbd": _sbd, "city": _city, "pets": _pets}


def _joint(name: str) -> Any:
    import torch
    from torchvision import tv_tensors
    from torchvision.transforms import v2

    floats = v2.ToDtype(torch.float32, scale=True)
    types = {tv_tensors.Image: torch.float32, tv_tensors.Mask: torch.int64, "others": None}
    fill = {tv_tensors.Mask: 255, "others": 0}
    ends: dict[str, list[Any]] = {
        "resize": [v2.Resize((48, 64)), v2.ToImage(), floats],
        "tensor": [v2.ToImage(), v2.Resize((97, 33)), floats, v2.ToPureTensor()],
        "crop": [v2.Resize(40), v2.CenterCrop((52, 36)), v2.ToImage(), floats],
        "pad": [
            v2.Pad([3, 5, 8, 1], fill=fill),
            v2.Resize((64, 48)),
            v2.CenterCrop((60, 40)),
            v2.ToImage(),
            v2.ToDtype(types, scale=True),
            v2.Normalize([0.5] * 3, [0.5] * 3),
        ],
        "flips": [
            v2.RandomHorizontalFlip(1.0),
            v2.Resize((30, 41)),
            v2.RandomVerticalFlip(1.0),
            v2.PILToTensor(),
            floats,
        ],
    }
    return v2.Compose(ends[name])


def _wrapped(make: Make, root: Path, transforms: Any, *more: Any) -> Any:
    from torchvision.datasets import wrap_dataset_for_transforms_v2

    return wrap_dataset_for_transforms_v2(make(root, transforms, *more))


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
@pytest.mark.parametrize("joint", ["resize", "tensor", "crop", "pad", "flips"])
@pytest.mark.parametrize("name", SETS)
def test_images_and_masks_are_torchs(sets: Path, name: str, joint: str) -> None:
    import torch
    from torch.utils.data import DataLoader as TorchLoader

    from featherload.torch import DataLoader

    dataset = _wrapped(SETS[name], sets, _joint(joint))
    with DataLoader(dataset, 3, num_workers=1) as loader:
        pairs = list(zip(loader, TorchLoader(dataset, 3), strict=True))
    for (images, masks), (want_images, want_masks) in pairs:
        assert images.dtype == torch.float32
        # Pixels are within a level, as everywhere.
        tolerance = 1.01 / 255 * (2 if joint == "pad" else 1)
        assert (images - want_images).abs().max() < tolerance
        assert masks.dtype == want_masks.dtype
        assert masks.shape == want_masks.shape
        assert (masks == want_masks).all()
    assert sum(len(images) for (images, _), _ in pairs) == COUNT


def test_labels_beside_masks(sets: Path) -> None:
    import torch
    from torch.utils.data import DataLoader as TorchLoader

    from featherload.torch import DataLoader

    for types in (["category", "segmentation"], ["segmentation", "binary-category", "category"]):
        dataset = _wrapped(_pets, sets, _joint("resize"), types)
        with DataLoader(dataset, 3, num_workers=1) as loader:
            for (_, got), (_, want) in zip(loader, TorchLoader(dataset, 3), strict=True):
                assert len(got) == len(want) == len(types)
                for one, other in zip(got, want, strict=True):
                    assert one.dtype == other.dtype
                    assert (one == other).all()
            batch = next(iter(loader))
            there = batch.to(torch.device("meta"))
            assert [part.device.type for part in there[1]] == ["meta"] * len(types)
            numbers = batch.numpy()[1]
            assert all(isinstance(part, np.ndarray) for part in numbers)
            assert (numbers[types.index("segmentation")] == batch.masks[:, None].numpy()).all()
            del batch, there, numbers, got, one


def test_masks_follow_random_moves(sets: Path, tmp_path: Path) -> None:
    """Images whose levels are their labels. Crops and flips of both are the same."""
    import shutil

    import torch
    from PIL import Image
    from torchvision.transforms import v2

    from featherload.torch import DataLoader

    shutil.copytree(sets / "city", tmp_path / "city")
    for n in range(COUNT):
        folder, stem = "train/bonn", f"bonn_{n:06}_000019"
        mask = tmp_path / "city" / "gtFine" / folder / f"{stem}_gtFine_labelIds.png"
        image = tmp_path / "city" / "leftImg8bit" / folder / f"{stem}_leftImg8bit.png"
        Image.open(mask).convert("RGB").save(image)
    joint = [
        v2.RandomCrop((70, 90), padding=4, pad_if_needed=True, fill=9),
        v2.RandomHorizontalFlip(),
        v2.ToImage(),
        v2.ToDtype(torch.uint8),
    ]
    dataset = _wrapped(_city, tmp_path, v2.Compose(joint))
    seen = []
    with DataLoader(dataset, COUNT, num_workers=2) as loader:
        for _ in range(3):
            for images, masks in loader:
                assert (images == masks).all()
                seen.append(images.numpy().tobytes())
                del images, masks
    assert len(set(seen)) == 3


def test_instances_of_cityscapes(sets: Path) -> None:
    """torchvision raises on files of 16 bits, so that its rule is applied here."""
    import torch
    from PIL import Image
    from torchvision.transforms import v2

    from featherload.torch import DataLoader

    joint = v2.Compose([v2.Resize((48, 64)), v2.ToImage()])
    dataset = _wrapped(_city, sets, joint, "instance")
    n = 0
    with DataLoader(dataset, 2, num_workers=1) as loader:
        for images, targets in loader:
            assert len(images) == len(targets)
            for target in targets:
                numbers = np.array(Image.open(dataset.targets[n][0])).astype(np.int64)
                mask = torch.from_numpy(numbers)[None]
                modes = v2.InterpolationMode
                moved = v2.functional.resize(mask, [48, 64], interpolation=modes.NEAREST)[0]
                ids = moved.unique()
                assert (target["masks"] == (moved == ids[:, None, None])).all()
                classes = torch.where(ids >= 1000, ids // 1000, ids)
                assert (target["labels"] == classes).all()
                assert target["labels"].dtype == torch.int64
                assert target["masks"].dtype == torch.bool
                n += 1
    assert n == COUNT


def test_subsets_keep_their_masks(sets: Path) -> None:
    from torch.utils.data import ConcatDataset, Subset

    from featherload.torch import DataLoader

    first, second = (_wrapped(make, sets, _joint("resize")) for make in (_voc, _sbd))
    chosen = ConcatDataset([Subset(first, [3, 1]), second])
    with DataLoader(chosen, 7, num_workers=1) as loader:
        [(_, masks)] = list(loader)
    want = [first[3][1], first[1][1], *(second[n][1] for n in range(COUNT))]
    assert all((mask == one).all() for mask, one in zip(masks, want, strict=True))


def _filled(number: int) -> Any:
    from torchvision import tv_tensors
    from torchvision.transforms import v2

    pad = v2.Pad(2, fill={tv_tensors.Mask: number, "others": 0})
    return v2.Compose([pad, v2.Resize((8, 8)), v2.ToImage()])


def test_errors_of_segmentation_sets(sets: Path, tmp_path: Path) -> None:
    import shutil

    import torch
    from torch.utils.data import ConcatDataset
    from torchvision import transforms as v1
    from torchvision import tv_tensors
    from torchvision.datasets import VOCSegmentation, wrap_dataset_for_transforms_v2
    from torchvision.transforms import v2

    from featherload.torch import DataLoader

    usual, to_image = _joint("resize"), v2.ToImage()
    crops = v2.Compose([v2.Pad(2, fill=3), v2.CenterCrop(8), to_image])
    colours = v2.Compose([v2.Pad(2, fill=(1, 2, 3)), v2.Resize((8, 8)), to_image])
    halves = v2.ToDtype({tv_tensors.Mask: torch.float16, "others": None})
    separate = VOCSegmentation(sets / "voc", image_set="train", transform=v2.Compose([to_image]))
    for dataset, text in [
        (_voc(sets, usual), "VOCSegmentation get its mask as an image.*wrap_dataset_for_transform"),
        (_city(sets, usual), "Cityscapes get its mask as an image.*wrap_dataset_for_transforms_v2"),
        (wrap_dataset_for_transforms_v2(separate), "not their masks: give the VOCSegmentation"),
        (_wrapped(_voc, sets, None), "VOCSegmentation has no transforms"),
        (_wrapped(_voc, sets, crops), "VOCSegmentation fill masks with 0, 3.*tv_tensors.Mask"),
        (_wrapped(_sbd, sets, colours), r"Pad\(fill=.*masks of the SBDataset.*tv_tensors.Mask"),
        (_wrapped(_voc, sets, v2.Compose([to_image])), "transform of the VOCSegmentation keeps"),
        (
            _wrapped(_voc, sets, v2.Compose([v2.Resize((8, 8)), to_image, halves])),
            "type float16: use one of torch.uint8",
        ),
        (_wrapped(_voc, sets, v1.Compose([v1.Resize(8)])), "use torchvision.transforms.v2 for"),
        (_wrapped(_city, sets, usual, ["semantic", "instance"]), "give target_type='semantic'"),
        (_wrapped(_pets, sets, usual, "category"), "OxfordIIITPet has target_types.*'category'"),
        (
            ConcatDataset([_wrapped(_voc, sets, usual), _wrapped(_voc, sets, _joint("pad"))]),
            "differ, and a loader has one recipe",
        ),
        (
            ConcatDataset([_wrapped(_voc, sets, _filled(number)) for number in (3, 5)]),
            "other types or fills of masks",
        ),
        (
            ConcatDataset([_wrapped(_city, sets, usual, one) for one in ("semantic", "instance")]),
            "other types or fills of masks",
        ),
        (
            ConcatDataset([_wrapped(_voc, sets, usual), _pets(sets, None, "category")]),
            "with labels and with masks has no common targets",
        ),
        (
            _wrapped(_voc, sets, v2.Compose([v2.RandomIoUCrop(), v2.Resize((8, 8)), to_image])),
            "random_iou_crop reads the boxes of objects",
        ),
    ]:
        with pytest.raises(ConfigError, match=text):
            DataLoader(dataset, 2)
    with pytest.raises(ConfigError, match="masks are those of the data set"):
        DataLoader(_wrapped(_voc, sets, usual), 2, masks="../{stem}.png")
    shutil.copytree(sets / "sbd", tmp_path / "sbd")
    bad = next((tmp_path / "sbd" / "cls").glob("*.mat"))
    bad.write_bytes(b"no matlab")
    with pytest.raises(ConfigError, match=f"the mask {bad} of the SBDataset cannot be read"):
        DataLoader(_wrapped(_sbd, tmp_path, usual), 2)
