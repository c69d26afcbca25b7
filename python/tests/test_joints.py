"""Rows of several samples: mosaics, mixed and pasted pictures, with their objects and masks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import featherload
from featherload import ConfigError

COUNT = 9
SIDE = 32


def _box(n: int) -> list[int]:
    return [3 + n % 4, 2 + n % 3, 20 + n % 5, 12 + n % 6]


@pytest.fixture(scope="session")
def painted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pictures with a longer side of 32, whose one object has a colour of its own."""
    from PIL import Image

    root = tmp_path_factory.mktemp("joints")
    for n in range(COUNT):
        pixels = np.full((19 + n, SIDE, 3), [0, n, 60], np.uint8)
        left, top, right, bottom = _box(n)
        pixels[top:bottom, left:right] = [255, n, 7]
        Image.fromarray(pixels).save(root / f"{n:02}.png")
    return root


def _loader(root: Path, *ops: Any, **options: Any) -> Any:
    resize: Any = {"resize": {"max_size": SIDE, "rounding": "up"}}
    last: list[Any] = [{"cast": {"dtype": "u8"}}, {"layout": {"layout": "nhwc"}}]
    objects = {
        "files": [{"boxes": [_box(n)], "labels": [n + 1], "ids": [n]} for n in range(COUNT)],
        "style": "ultralytics",
        "min_size": 0,
        "min_visibility": 0,
    }
    options = {"batch_size": 4, "num_workers": 2, "seed": 5, "objects": objects, **options}
    recipe = {"featherload": 1, "ops": [resize, *ops, *last]}
    return featherload.Loader(root, recipe=recipe, **options)


@pytest.mark.parametrize("grid", [2, 3])
def test_boxes_of_a_mosaic_are_where_the_painted_pixels_are(painted: Path, grid: int) -> None:
    mosaic = {"mosaic": {"size": SIDE, "grid": grid}}
    compared, of_partners = 0, 0
    for batch in _loader(painted, mosaic):
        images, objects = np.asarray(batch.images), batch.objects
        assert images.shape[1:] == (2 * SIDE, 2 * SIDE, 3)
        for row, own in enumerate(batch.ids):
            span = slice(objects.offsets[row], objects.offsets[row + 1])
            ids = np.asarray(objects.ids[span])
            boxes = np.asarray(objects.boxes[span])
            assert (np.asarray(objects.labels[span]) == ids + 1).all()
            for number, box in zip(ids, boxes, strict=True):
                is_painted = (images[row] == [255, number, 7]).all(-1)
                # Of two equal pictures the pixels are those of both. Of nine, one may cover
                # another.
                if (ids == number).sum() > 1 or grid == 3:
                    continue
                y, x = np.nonzero(is_painted)
                want = [x.min(), y.min(), x.max() + 1, y.max() + 1]
                np.testing.assert_array_equal(box, want)
                compared += 1
            of_partners += (ids != own).sum()
    assert of_partners > COUNT
    assert compared > COUNT or grid == 3


def test_the_stream_does_not_depend_on_workers(painted: Path) -> None:
    ops = [
        {"mosaic": {"size": SIDE, "p": 0.7}},
        {"random_crop": {"size": SIDE}},
        {"mix_samples": {"p": 0.5}},
        {"cut_samples": {"p": 0.5}},
    ]

    def stream(workers: int) -> list[bytes]:
        rows = []
        for batch in _loader(painted, *ops, num_workers=workers):
            rows.append(np.asarray(batch.images).tobytes())
            rows.append(np.asarray(batch.objects.boxes).tobytes())
        return rows

    one = stream(1)
    assert all(stream(workers) == one for workers in (2, 8))


def test_what_joints_cannot_have_is_an_error(painted: Path) -> None:
    with pytest.raises(ConfigError, match="give `objects`"):
        _loader(
            painted,
            {"mosaic": {"size": SIDE}},
            {"cut_samples": {}},
            objects=None,
        )
    with pytest.raises(ConfigError, match="takes images of at most 16 x 16"):
        _loader(painted, {"mosaic": {"size": 16}})


def _star(n: int, k: int, height: int, width: int) -> Any:
    """A ring around a random point, which is not convex."""
    random = np.random.default_rng((n, k))
    angles = np.linspace(0, 2 * np.pi, 11, endpoint=False)
    radii = random.uniform(3, 20, 11)
    centre = random.uniform([8, 8], [width - 8, height - 8])
    points = centre + radii[:, None] * np.stack([np.cos(angles), np.sin(angles)], 1)
    return np.clip(points, 0, [width, height])


def _annotated(root: Path, height: int, width: int) -> dict[str, Any]:
    """Pictures and a COCO file: no object in each fourth; outlines, run lengths and crowds."""
    from PIL import Image

    mask = pytest.importorskip("pycocotools.mask", reason="pycocotools is absent")
    images, annotations = [], []
    for n in range(16):
        pixels = np.random.default_rng(n).integers(0, 256, (height, width, 3), np.uint8)
        Image.fromarray(pixels).save(root / f"{n:02}.png")
        images.append({"id": n, "file_name": f"{n:02}.png", "height": height, "width": width})
        for k in range(0 if n % 4 == 0 else 1 + n % 5):
            ring = _star(n, k, height, width).reshape(1, -1).tolist()
            bits = mask.decode(mask.merge(mask.frPyObjects(ring, height, width)))
            y, x = np.nonzero(bits)
            left, top = int(x.min()), int(y.min())
            changes = np.flatnonzero(np.diff(np.r_[0, bits.T.ravel(), 0]))
            counts = np.diff(np.r_[0, changes, bits.size]).tolist()
            annotations.append(
                {
                    "id": 100 * n + k,
                    "image_id": n,
                    "category_id": 1 + k % 3,
                    "bbox": [left, top, int(x.max()) + 1 - left, int(y.max()) + 1 - top],
                    "area": float(bits.sum()),
                    "iscrowd": int(k == 3),
                    "segmentation": {"size": [height, width], "counts": counts}
                    if k % 2 == 1
                    else ring,
                }
            )
    categories = [{"id": number, "name": f"class {number}"} for number in (1, 2, 3)]
    return {"images": images, "annotations": annotations, "categories": categories}


def _simple_copy_paste(own: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """What ``_copy_paste`` of torchvision's ``references/detection`` does without ``blending``, for
    pictures of one size and chosen objects. A box ends after the last pixel."""
    import torch
    from torchvision.ops import masks_to_boxes

    alpha = other["masks"].sum(0) > 0
    image = own["image"] * ~alpha + other["image"] * alpha
    masks = own["masks"] * ~alpha
    kept = masks.sum((-1, -2)) > 0
    boxes = masks_to_boxes(masks[kept]) + torch.tensor([0.0, 0.0, 1.0, 1.0])
    joined = {
        key: torch.cat([own[key][kept], other[key]]) for key in ("labels", "area", "iscrowd", "ids")
    }
    joined["masks"] = torch.cat([masks[kept], other["masks"]])
    joined["boxes"] = torch.cat([boxes, other["boxes"]])
    return {"image": image, **joined}


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
def test_copy_paste_is_that_of_torchvision_s_references(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("torchvision")
    height, width = 51, 67
    described = _annotated(tmp_path, height, width)
    (tmp_path / "instances.json").write_text(json.dumps(described))
    objects = {
        "files": str(tmp_path / "instances.json"),
        "masks": "full",
        "min_size": 0,
        "min_area": 0,
    }
    recipe = {"featherload": 1, "ops": [{"center_crop": {"size": [height, width]}}]}
    levels = [{"cast": {"dtype": "u8"}}]

    def batches(*ops: Any, seed: int) -> Any:
        ops = (*recipe["ops"], *ops, *levels)
        options: Any = {"batch_size": 5, "num_workers": 2, "seed": seed, "framework": "torch"}
        made = featherload.Loader(
            tmp_path, {**recipe, "ops": [*ops]}, objects=objects, shuffle=False, **options
        )
        with made as loader:
            for batch in loader:
                for row, number in enumerate(batch.ids):
                    span = slice(*(int(end) for end in batch.objects.offsets[row : row + 2]))
                    target = {**batch.targets[row], "image": batch.images[row]}
                    target["ids"] = batch.objects.ids[span]
                    # Tensors may be memory of the loader, which is written again.
                    yield (
                        int(number),
                        {key: torch.as_tensor(value).clone() for key, value in target.items()},
                    )

    alone = dict(batches(seed=1))
    assert len(alone) == 16
    pasted, dropped, boxes_changed = 0, 0, 0
    for seed in range(4):
        for number, got in batches({"copy_paste": {}}, seed=seed):
            own = alone[number]
            partners = {int(one) // 100 for one in got["ids"]} - {number}
            assert len(partners) <= 1
            if not partners:
                # Its partner had no objects, or it was its own.
                assert (got["image"] == own["image"]).all()
                continue
            other = alone[partners.pop()]
            chosen = torch.isin(other["ids"], got["ids"])
            assert not (other["iscrowd"] * chosen).any()
            other = {
                key: other[key] if key in ("image", "image_id") else other[key][chosen]
                for key in other
            }
            want = _simple_copy_paste(own, other)
            for key, value in want.items():
                assert torch.equal(got[key], value), key
            kept = len(want["labels"]) - len(other["labels"])
            pasted += len(other["labels"])
            dropped += len(own["labels"]) - kept
            boxes_changed += int((got["boxes"][:kept] != own["boxes"][:kept]).any())
    assert pasted > 40 and dropped > 0 and boxes_changed > 10


def test_masks_of_classes_are_joined(painted: Path, tmp_path: Path) -> None:
    """The label of a pixel follows from its colour, so both go to one place."""
    from PIL import Image

    for path in painted.glob("*.png"):
        pixels = np.asarray(Image.open(path))
        labels = pixels[..., 1] + 20 * (pixels[..., 0] == 255)
        Image.fromarray(labels.astype(np.uint8)).save(tmp_path / path.name)
    masks = {"files": f"{tmp_path}/{{stem}}.png", "ignore": 255}
    ops = [
        {"mosaic": {"size": SIDE, "p": 0.8}},
        {"random_crop": {"size": 40}},
        {"cut_samples": {}},
    ]
    outside = 0
    for batch in _loader(painted, *ops, masks=masks):
        images, labels = np.asarray(batch.images), np.asarray(batch.masks)
        is_fill = (images == 114).all(-1)
        want = np.where(is_fill, 255, images[..., 1] + 20 * (images[..., 0] == 255))
        np.testing.assert_array_equal(labels, want)
        outside += is_fill.sum()
    assert outside > 100
    with pytest.raises(ConfigError, match="a pixel has no single label"):
        _loader(painted, *ops[:2], {"mix_samples": {}}, masks=masks)
