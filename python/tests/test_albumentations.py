"""A Compose of albumentations with boxes and keypoints, beside what albumentations makes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import need, png, shared_data

import featherload
from featherload import ConfigError
from featherload._albumentations import TRANSFORMS, translate

PIXELS = 1e-3
"""How close coordinates are, in pixels."""

FORMATS = ["coco", "pascal_voc", "yolo", "albumentations"]


@pytest.fixture
def A() -> Any:
    need("albumentations")
    import albumentations

    return albumentations


def _tensor() -> Any:
    from albumentations.pytorch import ToTensorV2

    return ToTensorV2()


def _chains(A: Any) -> dict[str, list[Any]]:
    """Transforms without chance, whose results have one size."""
    return {
        "flips": [A.HorizontalFlip(p=1), A.VerticalFlip(p=1), A.Resize(150, 210)],
        "centre": [A.SmallestMaxSize(260), A.CenterCrop(200, 180), A.HorizontalFlip(p=1)],
        "letterbox": [A.LongestMaxSize(256), A.PadIfNeeded(256, 256, fill=114)],
        "top_left": [
            A.LongestMaxSize(256, interpolation=3),
            A.PadIfNeeded(256, 288, position="top_left", border_mode=1),
        ],
        "bottom_right": [
            A.Resize(200, 180),
            A.PadIfNeeded(
                None, None, pad_height_divisor=256, pad_width_divisor=256, position="bottom_right"
            ),
            A.VerticalFlip(p=1),
        ],
        "padded floats": [A.Resize(200, 180), A.ToFloat(), A.PadIfNeeded(200, 224, fill=0.5)],
        "nothing": [A.OneOf([A.NoOp(), A.NoOp()], p=1), A.Resize(96, 96)],
        "nearest": [A.Resize(200, 256, interpolation=6), A.NoOp(p=1), A.HorizontalFlip(p=0)],
        "floats": [
            A.Compose([A.Sequential([A.InvertImg(p=1), A.Resize(96, 96)], p=1)]),
            A.Normalize(),
            _tensor(),
        ],
        "unit": [A.OneOf([A.HorizontalFlip(p=0.3)], p=1), A.Resize(90, 80), A.ToFloat()],
        "levels": [A.Resize(128, 160), _tensor()],
    }


CHAINS = [
    "flips",
    "centre",
    "letterbox",
    "top_left",
    "bottom_right",
    "padded floats",
    "nothing",
    "nearest",
    "floats",
    "unit",
    "levels",
]


def _objects(root: Path) -> tuple[list[Path], list[dict[str, Any]]]:
    """Photos, and their boxes within them as edges, labels and keypoints."""
    whole = json.loads((root / "test_coco.json").read_text())
    paths, items = [], []
    for image in whole["images"]:
        of = [one for one in whole["annotations"] if one["image_id"] == image["id"]]
        boxes = np.array([one["bbox"] for one in of])
        boxes[:, 2:] += boxes[:, :2]
        sides = [image["width"], image["height"]] * 2
        paths.append(root / image["file_name"])
        items.append(
            {
                "boxes": np.minimum(boxes, sides),
                "labels": [one["id"] % 1000 for one in of],
                "keypoints": np.array([one["keypoints"] for one in of]).reshape(len(of), -1, 3),
            }
        )
    return paths, items


def _as(name: str, boxes: Any, height: int, width: int) -> Any:
    """Edges in pixels in a format of albumentations."""
    x0, y0, x1, y1 = np.asarray(boxes, float).reshape(-1, 4).T
    made = {
        "coco": [x0, y0, x1 - x0, y1 - y0],
        "pascal_voc": [x0, y0, x1, y1],
        "yolo": [
            (x0 + x1) / 2 / width,
            (y0 + y1) / 2 / height,
            (x1 - x0) / width,
            (y1 - y0) / height,
        ],
        "albumentations": [x0 / width, y0 / height, x1 / width, y1 / height],
    }
    return np.stack(made[name], 1)


def _opened(path: Path) -> Any:
    from PIL import Image

    return np.asarray(Image.open(path).convert("RGB"))


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("chain", CHAINS)
def test_boxes_and_pixels_are_those_of_albumentations(A: Any, chain: str, format: str) -> None:
    paths, items = _objects(shared_data("targets") / "coco")
    limits = {"min_area": 400.0, "min_visibility": 0.3, "min_width": 9.0, "min_height": 9.0}
    params = A.BboxParams(format, label_fields=["labels"], clip=True, **limits)
    compose = A.Compose(_chains(A)[chain], bbox_params=params)
    pictures = [_opened(path) for path in paths]
    for item, picture in zip(items, pictures, strict=True):
        item.pop("keypoints")
        item["boxes"] = _as(format, item["boxes"], *picture.shape[:2])
    loader = featherload.Loader(
        paths, compose, objects=items, batch_size=4, shuffle=False, num_workers=1, framework="torch"
    )
    assert "albumentations" in str(loader._request.loader["objects"])
    dropped = 0
    with loader:
        [(images, targets)] = list(loader)
        for image, target, picture, item in zip(images, targets, pictures, items, strict=True):
            labels = item["labels"]
            want = compose(image=picture, bboxes=item["boxes"], labels=labels)
            pixels = want["image"] if chain in ("floats", "levels") else np.asarray(want["image"])
            other = np.asarray(pixels, np.float64)
            assert image.shape == other.shape
            assert str(image.dtype).split(".")[-1] == str(pixels.dtype).split(".")[-1]
            of_floats = {"floats": 1 / 255 / 0.224, "unit": 1 / 255, "padded floats": 1 / 255}
            levels = of_floats.get(chain, 1)
            levels = 0 if chain == "nearest" else levels
            assert np.abs(image.numpy().astype(np.float64) - other).max() <= 1.01 * levels
            assert target["labels"].tolist() == [int(label) for label in want["labels"]]
            height, width = image.shape[1:] if chain in ("floats", "levels") else image.shape[:2]
            sides = [width, height] * 2 if format in ("yolo", "albumentations") else 1
            away = (target["boxes"].numpy() - want["bboxes"]) * sides
            assert np.abs(away).max(initial=0) < PIXELS
            dropped += len(labels) - len(want["labels"])
        del images, targets, image, target
    assert dropped > 0 or chain not in ("centre", "floats", "unit")


@pytest.mark.parametrize("format", ["coco", "pascal_voc", "albumentations"])
def test_boxes_outside_are_clipped_and_dropped(A: Any, tmp_path: Path, format: str) -> None:
    """``clip`` and ``filter_invalid_bboxes``, of boxes that leave their image."""
    random = np.random.default_rng(5)
    paths, items, pictures = [], [], []
    for n in range(8):
        height, width = (int(side) for side in random.integers(40, 90, 2))
        pictures.append(random.integers(0, 256, (height, width, 3), np.uint8))
        paths.append(tmp_path / f"{n}.png")
        paths[-1].write_bytes(png(pictures[-1]))
        corners = random.uniform(-20, 90, (12, 2))
        boxes = np.concatenate([corners, corners + random.uniform(3, 40, (12, 2))], 1)
        made = _as(format, boxes, height, width).astype(np.float32)
        items.append({"boxes": made, "labels": list(range(12))})
    limits = {"min_area": 20.0, "min_visibility": 0.4, "clip": True, "filter_invalid_bboxes": True}
    compose = A.Compose(
        [A.CenterCrop(36, 38), A.VerticalFlip(p=1), A.Resize(72, 60)],
        bbox_params=A.BboxParams(format, label_fields=["labels"], **limits),
    )
    with featherload.Loader(
        paths, compose, objects=items, batch_size=8, shuffle=False, num_workers=1
    ) as loader:
        [(_, targets)] = list(loader)
        kept = 0
        for target, picture, item in zip(targets, pictures, items, strict=True):
            want = compose(image=picture, bboxes=item["boxes"], labels=item["labels"])
            assert target["labels"].tolist() == [int(label) for label in want["labels"]]
            sides = [60, 72] * 2 if format == "albumentations" else 1
            away = (target["boxes"] - np.reshape(want["bboxes"], (-1, 4))) * sides
            assert np.abs(away).max(initial=0) < PIXELS
            kept += len(want["labels"])
        assert 10 < kept < 80
        del targets, target


@pytest.mark.parametrize("by_side", [False, True])
def test_keypoints_are_those_of_albumentations(A: Any, by_side: bool) -> None:
    paths, items = _objects(shared_data("targets") / "coco")
    # By one side, albumentations multiplies both coordinates by the same factor. Here each axis has
    # its own, of the rounded sides.
    resize, near = (A.SmallestMaxSize(260), 0.5) if by_side else (A.Resize(300, 380), PIXELS)
    compose = A.Compose(
        [resize, A.CenterCrop(220, 200), A.HorizontalFlip(p=1), _tensor()],
        bbox_params=A.BboxParams("pascal_voc", label_fields=["labels"], clip=True),
        keypoint_params=A.KeypointParams("xy", label_fields=["places"]),
    )
    loader = featherload.Loader(
        paths, compose, objects=items, batch_size=4, shuffle=False, num_workers=1, framework="torch"
    )
    compared = outside = 0
    with loader:
        [(_, targets)] = list(loader)
        for path, target, item in zip(paths, targets, items, strict=True):
            flat = item["keypoints"].reshape(-1, 3)
            seen = np.flatnonzero(flat[:, 2])
            want = compose(
                image=_opened(path),
                bboxes=item["boxes"],
                labels=item["labels"],
                keypoints=flat[seen, :2],
                places=seen,
            )
            kept = [item["labels"].index(label) for label in target["labels"].tolist()]
            found = {
                kept[n] * 17 + k: point[:2]
                for n, points in enumerate(target["keypoints"].tolist())
                for k, point in enumerate(points)
                if point[2]
            }
            # Keypoints go with the box of their object here.
            wanted = {
                int(place): point
                for place, point in zip(want["places"], want["keypoints"], strict=True)
                if place // 17 in kept
            }
            assert sorted(found) == sorted(wanted)
            for place, point in wanted.items():
                assert np.abs(np.subtract(found[place], point)).max() < near
            compared, outside = compared + len(wanted), outside + len(seen) - len(want["places"])
    assert compared > 60
    assert outside > 20


def test_files_keep_their_format_and_padded_targets_get_that_of_the_params(A: Any) -> None:
    root = shared_data("targets") / "coco"
    compose = A.Compose(
        [A.Resize(100, 200), _tensor()],
        bbox_params=A.BboxParams("yolo", label_fields=["labels"], clip=True),
    )
    options: dict[str, Any] = {"batch_size": 4, "shuffle": False, "num_workers": 1}
    objects = str(root / "test_coco.json")
    with featherload.Loader(
        root, compose, objects=objects, targets="padded", framework="torch", **options
    ) as loader:
        [batch] = list(loader)
        images, targets = batch
        assert images.shape == (4, 3, 100, 200)
        pixels = batch.objects.as_padded()["boxes"]
        x0, y0, x1, y1 = pixels.unbind(-1)
        shares = np.stack([(x0 + x1) / 400, (y0 + y1) / 200, (x1 - x0) / 200, (y1 - y0) / 100], -1)
        assert np.allclose(targets["boxes"], shares, atol=1e-6)
        assert (pixels > 1.5).any()
        del batch, images, targets


def test_the_page_s_program_runs(A: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = shared_data("targets") / "coco"
    page = (Path(__file__).parents[2] / "docs/targets.md").read_text()
    [block] = re.findall(
        r"^```python no-test \(needs albumentations\)\n(.*?)^```", page, re.M | re.S
    )
    (tmp_path / "coco").mkdir()
    (tmp_path / "coco/train2017").symlink_to(root)
    (tmp_path / "instances.json").symlink_to(root / "test_coco.json")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"featherload": featherload}
    exec(block, names)
    with names["loader"] as loader:
        [(images, targets)] = list(loader)
        assert images.shape == (4, 3, 640, 640) and images.dtype == np.uint8
        assert sum(len(one["labels"]) for one in targets) == 14
        del images, targets


def test_torch_s_loader_takes_a_compose(A: Any, photos: Path) -> None:
    need("torchvision")
    from torchvision.datasets import ImageFolder

    from featherload.torch import DataLoader

    data = ImageFolder(str(photos))
    compose = A.Compose(
        [A.Resize(64, 64), A.HorizontalFlip(p=1), _tensor()],
        bbox_params=A.BboxParams("coco", label_fields=["labels"], clip=True),
    )
    one = {"boxes": [[0.0, 0.0, 10.0, 10.0]], "labels": [3]}
    with DataLoader(data, 8, recipe=compose, objects=[one] * len(data)) as loader:
        batch = next(iter(loader))
        images, targets = batch
        assert images.shape == (8, 3, 64, 64)
        for target, (height, width) in zip(
            targets, batch.objects.original_sizes.tolist(), strict=True
        ):
            w, h = 640 / width, 640 / height
            assert np.allclose(target["boxes"], [[64 - w, 0, w, h]], atol=PIXELS)
            assert target["labels"].tolist() == [3]
        del batch, images, targets


def test_random_transforms_become_operations(A: Any) -> None:
    def ops(*transforms: Any) -> list[Any]:
        made = translate(A.Compose([*transforms]))["ops"]
        return [op for op in made if not set(op) & {"decode", "cast", "layout"}]

    plain = {"interpolation": "bilinear", "antialias": False}
    assert ops(A.RandomResizedCrop((7, 9), (0.2, 0.9), (0.5, 2))) == [
        {"random_resized_crop": {"size": [7, 9], "scale": [0.2, 0.9], "ratio": [0.5, 2], **plain}}
    ]
    assert ops(A.RandomCrop(7, 9)) == [{"random_crop": {"size": [7, 9], "pad_if_needed": False}}]
    assert ops(A.RandomSizedBBoxSafeCrop(7, 9, 0.2), A.RandomRotate90(p=1)) == [
        {"random_sized_bbox_safe_crop": {"erosion_rate": 0.2, "size": [7, 9], **plain}},
        {"random_rotate90": {}},
    ]
    assert ops(A.BBoxSafeRandomCrop(0.1), A.Resize(8, 8, interpolation=2)) == [
        {"random_sized_bbox_safe_crop": {"erosion_rate": 0.1, "antialias": False}},
        {"resize": {"size": [8, 8], "interpolation": "bicubic", "antialias": False}},
    ]
    assert ops(
        A.ChannelShuffle(p=0.25),
        A.OneOf([A.InvertImg(p=0.1), A.Sequential([A.VerticalFlip(p=0.5)], p=0.3)], p=0.7),
    ) == [
        {"random_apply": {"transforms": [{"random_channel_permutation": {}}], "p": 0.25}},
        {
            "random_apply": {
                "transforms": [
                    {
                        "random_choice": {
                            "transforms": [
                                {"random_invert": {"p": 1.0}},
                                {"random_vertical_flip": {"p": 0.5}},
                            ],
                            "p": [0.1, 0.3],
                        }
                    }
                ],
                "p": 0.7,
            }
        },
    ]


def test_every_class_of_the_table_is_one_of_albumentations(A: Any) -> None:
    import albumentations.pytorch

    for name in TRANSFORMS:
        assert hasattr(A, name) or hasattr(albumentations.pytorch, name), name


def test_what_is_not_translated_names_the_option(A: Any, photos: Path) -> None:
    class OwnFlip(A.HorizontalFlip):  # type: ignore[misc, name-defined]
        """A class of one's own."""

    for transform, text in [
        (A.RandomBrightnessContrast(), "RandomBrightnessContrast.*no operation"),
        (OwnFlip(), "OwnFlip.*no operation"),
        (A.LongestMaxSize([100, 200]), r"LongestMaxSize.*\[100, 200\].*max_size as one number"),
        (A.SmallestMaxSize(max_size_hw=(9, 8)), r"SmallestMaxSize.*\(9, 8\).*max_size"),
        (A.Resize(8, 8, interpolation=4), "Resize.*interpolation=4.*INTER_LINEAR"),
        (A.Resize(8, 8, interpolation=0), "Resize.*interpolation=0.*INTER_NEAREST_EXACT"),
        (A.Resize(8, 8, area_for_downscale="image"), "area_for_downscale='image'.*leave it out"),
        (A.Resize(8, 8, mask_interpolation=1), "mask_interpolation=1.*masks="),
        (A.Resize(8, 8, p=0.5), "Resize.*p=0.5: give p=1"),
        (A.PadIfNeeded(8, 8, position="random"), "position='random': use center"),
        (A.PadIfNeeded(8, 8, border_mode=3), "border_mode=3.*BORDER_CONSTANT"),
        (A.PadIfNeeded(8, 8, fill_mask=255), "fill_mask=255.*masks="),
        (A.PadIfNeeded(8, None, pad_width_divisor=4), "one side by a size.*use one of both"),
        (A.CenterCrop(8, 8, pad_if_needed=True), "pad_if_needed=True: put PadIfNeeded"),
        (A.Normalize(normalization="image"), "normalization='image'.*use 'standard'"),
        (A.ToFloat(max_value=1000), "ToFloat.*max_value=255"),
        (A.OneOf([A.Resize(8, 8)]), "OneOf.*put Resize outside"),
        (A.OneOf([A.RandomCrop(8, 4), A.HorizontalFlip()]), "OneOf.*put RandomCrop outside"),
        (A.Compose([], p=0.5), r"Compose.*p=0.5: give p=1"),
        (A.Compose([], additional_targets={"image2": "image"}), "no additional_targets="),
        (A.ReplayCompose([]), "ReplayCompose.*give A.Compose"),
        (A.HorizontalFlip(), r"HorizontalFlip.*give A.Compose"),
    ]:
        outer = transform
        if not isinstance(transform, A.BaseCompose) or isinstance(transform, A.OneOf):
            outer = transform if text.endswith("give A.Compose") else A.Compose([transform])
        with pytest.raises(ConfigError, match=text) as refused:
            featherload.Loader(photos, outer)
        assert refused.value.option == "recipe"
    tensor = A.Compose([_tensor(), A.Resize(8, 8)])
    with pytest.raises(ConfigError, match="Resize.*put it before ToTensorV2"):
        featherload.Loader(photos, tensor)


def test_what_the_rule_of_objects_lacks_names_the_option(A: Any, photos: Path) -> None:
    def loader(objects: Any = None, points: Any = None, **params: Any) -> Any:
        boxes = A.BboxParams("coco", label_fields=["labels"], **params)
        compose = A.Compose(
            [A.Resize(8, 8)],
            bbox_params=boxes,
            keypoint_params=None if points is None else A.KeypointParams(**points),
        )
        return featherload.Loader(photos, compose, objects=objects or "boxes.json")

    for params, text in [
        ({"min_width": 2}, "min_width=2 and min_height=0.0 of BboxParams.*the same number"),
        ({"max_accept_ratio": 3.0}, "max_accept_ratio=3.0 of BboxParams.*leave it out"),
        ({"check_each_transform": False}, "check_each_transform=False of BboxParams"),
        ({"points": {"format": "xya"}}, "format='xya' of KeypointParams.*format='xy'"),
        ({"points": {"format": "xy", "remove_invisible": False}}, "remove_invisible=False"),
    ]:
        with pytest.raises(ConfigError, match=text) as refused:
            loader(**params)
        assert refused.value.option == "recipe"
    mirrored = A.Compose(
        [A.LongestMaxSize(8), A.PadIfNeeded(8, 8, border_mode=4)], bbox_params=A.BboxParams("coco")
    )
    with pytest.raises(ConfigError, match="BORDER_REFLECT_101 of PadIfNeeded.*BORDER_CONSTANT"):
        featherload.Loader(photos, mirrored, objects="boxes.json")
    with pytest.raises(ConfigError, match="style is 'hf', and the Compose.*leave style out"):
        loader({"files": "boxes.json", "style": "hf"})
    with pytest.raises(ConfigError, match="min_area is 5, and the Compose.*has 0.0"):
        loader({"files": "boxes.json", "min_area": 5})
    with pytest.raises(
        ConfigError, match="has no bbox_params.*bbox_params=A.BboxParams"
    ) as refused:
        featherload.Loader(photos, A.Compose([A.Resize(8, 8)]), objects="boxes.json")
    assert refused.value.option == "recipe"
    with pytest.raises(ConfigError, match=r"Resize.*give A.Compose"):
        featherload.Loader(photos, A.Resize(8, 8), objects="boxes.json")
