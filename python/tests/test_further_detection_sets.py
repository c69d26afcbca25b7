"""KITTI, WIDER FACE and CelebA in the drop-in, beside torchvision's own results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import need

from featherload import ConfigError

COUNT = 6

TYPES = ["Car", "Van", "Pedestrian", "DontCare", "Misc"]


def _size(number: int) -> tuple[int, int]:
    return 60 + 7 * number, 130 - 9 * number


def _picture(path: Path, number: int) -> None:
    """Smooth colours, which JPEG keeps well."""
    from PIL import Image

    height, width = _size(number)
    small = np.random.default_rng(number).integers(0, 256, (6, 8, 3), np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(small).resize((width, height), Image.Resampling.BICUBIC).save(path)


def _boxes(number: int, count: int) -> Any:
    """Left, top, right, bottom, with two digits after the point."""
    random = np.random.default_rng(50 + number)
    height, width = _size(number)
    sides = np.array([width, height, width, height])
    shares = np.concatenate(
        [random.uniform(0, 0.5, (count, 2)), random.uniform(0.5, 1, (count, 2))], 1
    )
    return (shares * sides).round(2)


@pytest.fixture(scope="session")
def kitti(tmp_path_factory: pytest.TempPathFactory) -> Path:
    need("torchvision")
    root = tmp_path_factory.mktemp("kitti")
    raw = root / "Kitti" / "raw" / "training"
    (raw / "label_2").mkdir(parents=True)
    for n in range(COUNT):
        _picture(raw / "image_2" / f"{n:06}.png", n)
        lines = [
            f"{TYPES[(n + k) % 5]} 0.{k}0 {k % 3} -1.5{k} {' '.join(map(str, box))} "
            f"1.5 1.6 4.{n} -2.0 1.7 30.{k} -1.6"
            for k, box in enumerate(_boxes(n, n % 4).tolist())
        ]
        (raw / "label_2" / f"{n:06}.txt").write_text("".join(f"{line}\n" for line in lines))
    test = root / "Kitti" / "raw" / "testing"
    _picture(test / "image_2" / "000000.png", 0)
    return root


@pytest.fixture(scope="session")
def faces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """WIDER FACE. The third image has no face: its file has a row of zeros, which torchvision
    takes for a box.
    """
    need("torchvision")
    root = tmp_path_factory.mktemp("faces")
    base = root / "widerface"
    for folder in ("WIDER_val", "WIDER_test", "wider_face_split"):
        (base / folder).mkdir(parents=True)
    lines = []
    for n in range(COUNT):
        name = f"{n}--Parade/{n}_Parade_{n}.jpg"
        _picture(base / "WIDER_train" / "images" / name, n)
        boxes = _boxes(n, n % 3 + 1).astype(int).tolist()
        lines += [name, str(0 if n == 2 else len(boxes))]
        if n == 2:
            lines.append("0 0 0 0 0 0 0 0 0 0 ")
            continue
        for k, (x0, y0, x1, y1) in enumerate(boxes):
            lines.append(f"{x0} {y0} {x1 - x0} {y1 - y0} {k % 3} 1 0 {n % 3} {k % 2} 0 ")
    for split in ("train", "val"):
        file = base / "wider_face_split" / f"wider_face_{split}_bbx_gt.txt"
        file.write_text("\n".join(lines) + "\n")
    (base / "wider_face_split" / "wider_face_test_filelist.txt").write_text("0--Parade/a.jpg\n")
    return root


@pytest.fixture
def celebs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    need("torchvision")
    from torchvision.datasets import CelebA

    monkeypatch.setattr(CelebA, "_check_integrity", lambda self: True)
    base = tmp_path / "celeba"
    (base / "img_align_celeba").mkdir(parents=True)
    names = [f"{n + 1:06}.jpg" for n in range(COUNT)]
    for n, name in enumerate(names):
        _picture(base / "img_align_celeba" / name, n)
    boxes = [_boxes(n, 1).astype(int)[0].tolist() for n in range(COUNT)]
    files = {
        "list_eval_partition.txt": ["0"] * COUNT,
        "identity_CelebA.txt": [str(2880 + n) for n in range(COUNT)],
        "list_bbox_celeba.txt": [f"{x} {y} {r - x} {b - y}" for x, y, r, b in boxes],
        "list_landmarks_align_celeba.txt": [
            " ".join(str(10 + 3 * n + k) for k in range(10)) for n in range(COUNT)
        ],
        "list_attr_celeba.txt": [f"{1 if n % 2 else -1} -1 1" for n in range(COUNT)],
    }
    heads = {
        "list_bbox_celeba.txt": f"{COUNT}\nimage_id x_1 y_1 width height\n",
        "list_landmarks_align_celeba.txt": f"{COUNT}\nlefteye_x lefteye_y righteye_x\n",
        "list_attr_celeba.txt": f"{COUNT}\nBald Blurry Young\n",
    }
    for file, values in files.items():
        rows = "".join(f"{name} {of}\n" for name, of in zip(names, values, strict=True))
        (base / file).write_text(heads.get(file, "") + rows)
    return tmp_path


def _joint(*last: Any) -> Any:
    import torch
    from torchvision.transforms import v2

    return v2.Compose(
        [
            v2.Resize((48, 64)),
            v2.RandomHorizontalFlip(1.0),
            v2.ToImage(),
            v2.ToDtype(torch.float32, scale=True),
            *last,
        ]
    )


def _kitti(root: Path, keys: Any = None, *last: Any, train: bool = True) -> Any:
    from torchvision.datasets import Kitti, wrap_dataset_for_transforms_v2

    dataset = Kitti(root, train=train, transforms=_joint(*last))
    return wrap_dataset_for_transforms_v2(dataset, target_keys=keys)


def _wider(root: Path, keys: Any = None, split: str = "train") -> Any:
    from torchvision.datasets import WIDERFace, wrap_dataset_for_transforms_v2

    wrapped = wrap_dataset_for_transforms_v2(WIDERFace(root, split), target_keys=keys)
    wrapped.transforms = _joint()
    return wrapped


def _celeba(root: Path, *types: str) -> Any:
    from torchvision.datasets import CelebA, wrap_dataset_for_transforms_v2

    wrapped = wrap_dataset_for_transforms_v2(CelebA(root, "train", [*types]))
    wrapped.transforms = _joint()
    return wrapped


def _close(boxes: Any, want: Any, tolerance: float = 1e-3) -> bool:
    import torch

    return torch.allclose(boxes, want.as_subclass(torch.Tensor).float(), rtol=0, atol=tolerance)


def _rows(dataset: Any, **options: Any) -> Any:
    from featherload.torch import DataLoader

    with DataLoader(dataset, 4, num_workers=2, **options) as loader:
        for images, targets in loader:
            yield from zip(images.clone(), targets, strict=True)


@pytest.mark.parametrize("keys", [None, "all", ["boxes", "labels", "alpha", "type"]])
def test_kitti(kitti: Path, keys: Any) -> None:
    dataset = _kitti(kitti, keys)
    rows = list(_rows(dataset))
    assert len(rows) == COUNT
    empty = 0
    for n, (image, target) in enumerate(rows):
        if not dataset._dataset._parse_target(n):
            # torchvision raises here.
            assert target["boxes"].shape == (0, 4)
            assert len(target["labels"]) == 0
            empty += 1
            continue
        want_image, want = dataset[n]
        assert (image - want_image).abs().max() < 1.01 / 255
        assert _close(target["boxes"], want["boxes"])
        assert target["labels"].tolist() == want["labels"].tolist()
        for name in set(want) - {"boxes", "labels"}:
            assert target[name] == want[name], name
        assert ("alpha" in target) == (keys is not None)
    assert empty == 2


def test_sanitized_objects_keep_their_fields(kitti: Path) -> None:
    """torchvision's SanitizeBoundingBoxes drops boxes and labels alone. Here all agree."""
    from torchvision.transforms import v2

    whole = [target for _, target in _rows(_kitti(kitti, "all"))]
    least = v2.SanitizeBoundingBoxes(min_size=20)
    fewer = [target for _, target in _rows(_kitti(kitti, "all", least))]
    kept = 0
    for all_of, some in zip(whole, fewer, strict=True):
        sides = all_of["boxes"][:, 2:] - all_of["boxes"][:, :2]
        keep = (sides.min(1).values >= 20).tolist()
        want = [alpha for alpha, is_kept in zip(all_of["alpha"], keep, strict=True) if is_kept]
        assert some["alpha"] == want
        assert len(some["boxes"]) == len(want)
        kept += len(want)
    assert 0 < kept < sum(len(target["labels"]) for target in whole)


@pytest.mark.parametrize("keys", [None, ["bbox", "pose"], ["blur"]])
def test_widerface(faces: Path, keys: Any) -> None:
    dataset = _wider(faces, keys)
    rows = list(_rows(dataset))
    assert len(rows) == COUNT
    for n, (image, target) in enumerate(rows):
        want_image, want = dataset[n]
        assert (image - want_image).abs().max() < 1.01 / 255
        assert target["labels"].tolist() == [1] * len(target["boxes"])
        if "bbox" in want:
            # torchvision truncates boxes of whole numbers.
            assert target["bbox"] is target["boxes"]
            assert _close(target["bbox"], want["bbox"], 1.0)
        for name in set(want) - {"bbox"}:
            assert target[name].dtype == want[name].dtype
            assert target[name].tolist() == want[name].tolist(), name
        assert ("bbox" in target) == ("bbox" in want)
        assert ("pose" in target) == ("pose" in want)


def test_boxes_of_whole_numbers_are_not_truncated(faces: Path) -> None:
    from torchvision.transforms.v2 import functional as fn
    from torchvision.tv_tensors import BoundingBoxes

    dataset = _wider(faces)
    for n, (_, target) in enumerate(_rows(dataset)):
        x, y, w, h = dataset.img_info[n]["annotations"]["bbox"].T.float()
        corners = np.stack([x, y, x + w, y + h], 1)
        boxes: Any = BoundingBoxes(corners, format="XYXY", canvas_size=_size(n))
        boxes = fn.horizontal_flip(fn.resize(boxes, [48, 64]))
        assert _close(target["boxes"], boxes)


def test_subsets_keep_their_fields(faces: Path) -> None:
    from torch.utils.data import ConcatDataset, Subset

    dataset = _wider(faces)
    chosen = ConcatDataset([Subset(dataset, [5, 1]), dataset])
    targets = [target for _, target in _rows(chosen)]
    info = [dataset.img_info[n]["annotations"] for n in (5, 1, *range(COUNT))]
    for number, (target, want) in enumerate(zip(targets, info, strict=True)):
        assert target["occlusion"].tolist() == want["occlusion"].tolist()
        assert target["image_id"] == number


def test_further_fields_move_with_the_batch(faces: Path) -> None:
    import torch

    from featherload.torch import DataLoader

    with DataLoader(_wider(faces), 3, num_workers=1) as loader:
        batch = next(iter(loader))
        there = batch.to(torch.device("meta"))
        assert there[1][0]["blur"].device.type == "meta"
        assert there[1][0]["bbox"].device.type == "meta"
        assert isinstance(batch.numpy()[1][0]["blur"], np.ndarray)
        del batch, there
    with DataLoader(_wider(faces), 3, num_workers=1, targets="padded") as loader:
        _, targets = next(iter(loader))
        assert targets["valid"].tolist() == [[True, False], [True, True], [True, False]]
        del targets


def test_celeba_boxes(celebs: Path) -> None:
    for types in (["bbox"], ["identity", "bbox"]):
        dataset = _celeba(celebs, *types)
        for n, (image, target) in enumerate(_rows(dataset)):
            want_image, want = dataset[n]
            assert (image - want_image).abs().max() < 1.01 / 255
            boxes = want if len(types) == 1 else want[1]
            assert _close(target["boxes"], boxes, 1.0)
            assert target["labels"].tolist() == [1]
            assert target.get("identity", 2880 + n) == 2880 + n
            assert ("identity" in target) == (len(types) == 2)


def test_errors_of_further_sets(kitti: Path, faces: Path, celebs: Path, tmp_path: Path) -> None:
    import shutil

    from torch.utils.data import ConcatDataset
    from torchvision.datasets import (
        CelebA,
        Kitti,
        WIDERFace,
        wrap_dataset_for_transforms_v2,
    )

    from featherload.torch import DataLoader

    alone = WIDERFace(faces, "train", transform=_joint())
    mixed = ConcatDataset([_kitti(kitti), _wider(faces)])
    celeb = wrap_dataset_for_transforms_v2(CelebA(celebs, "train", "identity"))
    for dataset, text in [
        (Kitti(kitti, transforms=_joint()), "Kitti get its boxes as plain numbers.*wrap_dataset"),
        (WIDERFace(faces, "train"), "WIDERFace get its boxes as plain numbers.*wrap_dataset_for"),
        (_kitti(kitti, train=False), "Kitti of this split has no targets: give train=True"),
        (_wider(faces, split="test"), "WIDERFace of this split has no targets: give split='train'"),
        (wrap_dataset_for_transforms_v2(alone), r"not their boxes.*dataset.transforms = v2.Comp"),
        (celeb, "CelebA has target_type=.*which has no boxes: give 'bbox'"),
        (mixed, "ConcatDataset of Kitti and WIDERFace has targets with different entries"),
    ]:
        with pytest.raises(ConfigError, match=text):
            DataLoader(dataset, 2)
    broken = tmp_path / "broken"
    shutil.copytree(kitti, broken)
    labels = broken / "Kitti" / "raw" / "training" / "label_2"
    for line, text in [("Car 0 0\n", "000001.txt is no label file"), ("Cow" + " 1" * 14, "'Cow'")]:
        (labels / "000001.txt").write_text(line)
        with pytest.raises(ConfigError, match=text):
            DataLoader(_kitti(broken), 2)
