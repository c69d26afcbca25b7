"""Images of several sizes with objects: borders, DETR's batches, torchvision's lists of images."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_detection_sets import COUNT as COCO_COUNT
from test_detection_sets import _wrapped, coco
from test_objects import COUNT, _item, _loader, _size, photos

from featherload import ConfigError

__all__ = ["coco", "photos"]


def test_the_border_of_rows_is_known(photos: Path) -> None:
    ops = [{"resize": {"max_size": 40}}, {"pad_to": {"size": [40, 40], "fill": 7}}]
    recipe = {"featherload": 1, "ops": [*ops, {"cast": {"dtype": "u8"}}]}
    n = 0
    with _loader(photos, framework="numpy", recipe=recipe) as loader:
        for batch in loader:
            images, _ = batch
            cut = batch.objects.cut_out(images)
            for image, part, content in zip(images, cut, batch.objects.content, strict=True):
                height, width = _size(n)
                longest = max(height, width)
                sides = [40 * height // longest, 40 * width // longest]
                assert content.tolist() == [0, 0, sides[1], sides[0]]
                assert part.shape == (3, *sides) and np.shares_memory(part, image)
                assert (image[:, sides[0] :] == 7).all() and (image[:, :, sides[1] :] == 7).all()
                n += 1
    assert n == COUNT


def test_rows_of_own_layout_are_cut(photos: Path) -> None:
    ops = [{"letterbox": {"size": [40, 50]}}, {"layout": {"layout": "nhwc"}}]
    recipe = {"featherload": 1, "ops": [*ops, {"cast": {"dtype": "u8"}}]}
    with _loader(photos, framework="numpy", recipe=recipe) as loader:
        for batch in loader:
            for part, content in zip(
                batch.objects.cut_out(batch[0]), batch.objects.content.tolist(), strict=True
            ):
                left, top, right, bottom = content
                assert part.shape == (bottom - top, right - left, 3)
                assert (left, right) == (0, 50) or (top, bottom) == (0, 40)


def test_detr_ends_with_the_largest_image(photos: Path) -> None:
    """Against transformers' processor, which resizes and pads a batch."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    from PIL import Image

    processor = transformers.DetrImageProcessor(
        size={"shortest_edge": 48, "longest_edge": 80},
        do_normalize=False,
        do_rescale=False,
        do_convert_annotations=True,
    )
    ops = [{"resize": {"size": 48, "max_size": 80}}, {"pad_to": {"size": [80, 80]}}]
    recipe = {"featherload": 1, "ops": [*ops, {"cast": {"dtype": "u8"}}]}
    files = [
        {key: value for key, value in _item(n).items() if key not in ("iscrowd", "keypoints")}
        for n in range(COUNT)
    ]
    objects = {"files": files, "style": "hf", "labels": "ids"}
    options = {"recipe": recipe, "targets": "detr", "framework": "torch"}
    n, narrowed = 0, 0
    with _loader(photos, objects, **options) as loader:
        for images, targets in loader:
            numbers = range(n, n + len(images))
            n += len(images)
            pictures = [Image.open(photos / f"{number:02}.png") for number in numbers]
            want = processor(
                images=pictures,
                annotations=[_annotations(number) for number in numbers],
                return_tensors="pt",
            )
            assert images.shape == want["pixel_values"].shape
            narrowed += images.shape[2:] != (80, 80)
            assert (targets["pixel_mask"] == want["pixel_mask"]).all()
            inside = targets["pixel_mask"][:, None].bool()
            assert ((images * ~inside) == 0).all()
            assert (images.float() - want["pixel_values"].float()).abs().max() <= 2
            for got, label in zip(targets["labels"], want["labels"], strict=True):
                assert torch.allclose(got["boxes"], label["boxes"], atol=1e-5)
                assert (got["class_labels"] == label["class_labels"]).all()
                assert got["size"].tolist() == label["size"].tolist() == list(images.shape[2:])
                assert (got["orig_size"] == label["orig_size"]).all()
    assert n == COUNT and narrowed


def _annotations(number: int) -> dict[str, Any]:
    item = _item(number)
    left, top, right, bottom = item["boxes"].T
    sides = np.stack([left, top, right - left, bottom - top], 1)
    return {
        "image_id": 7 * number,
        "annotations": [
            {"bbox": box.tolist(), "category_id": int(label), "area": 1.0, "iscrowd": 0}
            for box, label in zip(sides, item["labels"], strict=True)
        ],
    }


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
def test_torchvision_images_keep_their_sizes(coco: Path) -> None:
    import torch
    from torchvision.transforms import v2

    from featherload.torch import DataLoader

    transforms = [
        v2.RandomShortestSize([40], max_size=64),
        v2.RandomHorizontalFlip(0.0),
        v2.ToImage(),
        v2.ConvertBoundingBoxFormat("XYXY"),
        v2.ClampBoundingBoxes(),
        v2.SanitizeBoundingBoxes(),
        v2.ToDtype(torch.float32, scale=True),
    ]
    dataset = _wrapped(coco, *transforms, keys="all")
    n, shapes = 0, set()
    with DataLoader(dataset, 4, num_workers=2) as loader:
        for images, targets in loader:
            assert isinstance(images, list)
            for image, target in zip(images, targets, strict=True):
                n += 1
                shapes.add(tuple(image.shape))
                if not dataset.coco.imgToAnns[dataset.ids[n - 1]]:
                    assert target["masks"].shape == (0, *image.shape[1:])
                    continue
                want_image, want = dataset[n - 1]
                assert image.shape == want_image.shape
                assert (image - want_image).abs().max() < 1.01 / 255
                boxes = want["boxes"].as_subclass(torch.Tensor)
                assert torch.allclose(target["boxes"], boxes, atol=1e-3)
                assert (target["labels"] == want["labels"]).all()
                assert (target["masks"] == want["masks"]).all()
    assert n == COCO_COUNT and len(shapes) > 3


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
def test_transforms_that_read_boxes(coco: Path) -> None:
    """SSD's transforms: crops with objects, of which each has its centre inside."""
    import torch
    from torchvision import tv_tensors
    from torchvision.transforms import v2

    from featherload.torch import DataLoader

    fill = {tv_tensors.Image: (123, 117, 104), "others": 0}
    transforms = [
        v2.RandomPhotometricDistort(),
        v2.RandomZoomOut(fill=fill),
        v2.RandomIoUCrop(),
        v2.Resize((48, 48)),
        v2.ToImage(),
        v2.ToDtype(torch.float32, scale=True),
        v2.SanitizeBoundingBoxes(),
    ]
    dataset = _wrapped(coco, *transforms)
    counts = []
    for _ in range(2):
        with DataLoader(dataset, 4, num_workers=2, generator=torch.manual_seed(3)) as loader:
            found = [target["boxes"] for _, targets in loader for target in targets]
        assert all(((boxes >= 0) & (boxes <= 48)).all() for boxes in found)
        counts.append([len(boxes) for boxes in found])
    stated = [len(dataset.coco.imgToAnns[image_id]) for image_id in dataset.ids]
    assert counts[0] == counts[1]
    assert all(0 <= got <= all_ for got, all_ in zip(counts[0], stated, strict=True))
    assert any(got < all_ for got, all_ in zip(counts[0], stated, strict=True))


def test_sizes_of_scale_jitter_are_torchvisions() -> None:
    v2 = pytest.importorskip("torchvision.transforms.v2")
    from featherload import _transforms

    made = v2.ScaleJitter((300, 200), (0.5, 1.5))
    ((name, op),) = _transforms.Walk().ops(made)[0].items()
    # torchvision divides its second number by the height.
    assert (name, op["size"], op["scale"]) == ("scale_jitter", [200, 300], [0.5, 1.5])


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
def test_transforms_of_boxes_alone_are_checked(coco: Path) -> None:
    from torchvision.transforms import v2

    from featherload.torch import DataLoader

    resize = [v2.Resize((48, 48)), v2.ToImage()]
    with pytest.raises(ConfigError, match="use format='XYXY'"):
        DataLoader(_wrapped(coco, *resize, v2.ConvertBoundingBoxFormat("CXCYWH")), 4)
    with pytest.raises(ConfigError, match="together with SanitizeBoundingBoxes"):
        DataLoader(_wrapped(coco, *resize, v2.ClampBoundingBoxes()), 4)
    with pytest.raises(ConfigError, match="images of different sizes"):
        DataLoader(_wrapped(coco, v2.RandomIoUCrop(), v2.ToImage()), 4)


def test_operations_that_read_boxes_need_objects(photos: Path) -> None:
    import featherload

    recipe = {"featherload": 1, "ops": ["random_iou_crop", {"resize": {"size": [32, 32]}}]}
    with pytest.raises(ConfigError, match="random_iou_crop reads the boxes of objects"):
        featherload.Loader(photos, recipe, batch_size=2)
