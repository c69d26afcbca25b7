"""torchvision's detection data sets in the drop-in, beside torchvision's own results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from featherload import ConfigError

COUNT = 9


@pytest.fixture(scope="session")
def coco(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pictures, and a COCO file whose images are in another order than their ids."""
    from PIL import Image

    root = tmp_path_factory.mktemp("coco")
    images, annotations = [], []
    for n in range(COUNT):
        random = np.random.default_rng(n)
        height, width = 60 + 7 * n, 100 - 5 * n
        pixels = random.integers(0, 256, (height, width, 3), np.uint8)
        Image.fromarray(pixels).save(root / f"{n:02}.png")
        images.append({"id": 90 - n, "file_name": f"{n:02}.png", "height": height, "width": width})
        for k in range(n % 4):
            x, y = random.uniform(0, width / 2), random.uniform(0, height / 2)
            w, h = random.uniform(2, width / 2), random.uniform(2, height / 2)
            annotations.append(
                {
                    "id": 100 * n + k,
                    "image_id": 90 - n,
                    "category_id": int(random.integers(1, 91)),
                    "bbox": [x, y, w, h],
                    "area": w * h / 2,
                    "iscrowd": 0,
                    "segmentation": [[x, y, x + w, y, x + w / 2, y + h]],
                }
            )
    categories = [{"id": n, "name": f"c{n}"} for n in range(1, 91)]
    whole = {"images": images, "annotations": annotations, "categories": categories}
    (root / "instances.json").write_text(json.dumps(whole))
    return root


def _wrapped(root: Path, *transforms: Any, keys: Any = None) -> Any:
    pytest.importorskip("pycocotools")
    from torchvision.datasets import CocoDetection, wrap_dataset_for_transforms_v2
    from torchvision.transforms import v2

    joint = v2.Compose([*transforms])
    dataset = CocoDetection(root, root / "instances.json", transforms=joint)
    return wrap_dataset_for_transforms_v2(dataset, target_keys=keys)


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
@pytest.mark.parametrize("sanitizes", [False, True])
def test_coco_detection(coco: Path, sanitizes: bool) -> None:
    import torch
    from torchvision.transforms import v2

    from featherload.torch import DataLoader

    last = [v2.SanitizeBoundingBoxes(min_size=25)] if sanitizes else []
    transforms = [v2.Resize((48, 64)), v2.ToImage(), *last, v2.ToDtype(torch.float32, scale=True)]
    dataset = _wrapped(coco, *transforms, keys="all")
    n = kept = 0
    with DataLoader(dataset, 4, num_workers=2) as loader:
        for images, targets in loader:
            for image, target in zip(images, targets, strict=True):
                image_id, objects = dataset.ids[n], len(dataset.coco.imgToAnns[dataset.ids[n]])
                n += 1
                assert target["image_id"] == image_id
                if not objects:
                    # torchvision's Sanitize raises here.
                    assert target["boxes"].shape == (0, 4)
                    continue
                want_image, want = dataset[n - 1]
                # Pixels are within a level, as everywhere.
                assert (image - want_image).abs().max() < 1.01 / 255
                assert torch.allclose(
                    target["boxes"], want["boxes"].as_subclass(torch.Tensor), atol=1e-3
                )
                assert (target["labels"] == want["labels"]).all()
                assert (target["masks"] == want["masks"]).all()
                kept += len(target["labels"])
    assert n == COUNT
    assert (kept < 12) == sanitizes


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
def test_subsets_keep_their_objects(coco: Path) -> None:
    from torch.utils.data import ConcatDataset, Subset
    from torchvision.transforms import v2

    from featherload.torch import DataLoader

    dataset = _wrapped(coco, v2.Resize((48, 64)), v2.ToImage())
    chosen = ConcatDataset([Subset(dataset, [5, 1]), dataset])
    with DataLoader(chosen, 4, num_workers=1) as loader:
        ids = [target["image_id"] for _, targets in loader for target in targets]
    assert ids == [dataset.ids[5], dataset.ids[1], *dataset.ids]


def test_voc_detection(tmp_path: Path) -> None:
    from PIL import Image
    from torchvision.datasets import VOCDetection, wrap_dataset_for_transforms_v2
    from torchvision.transforms import v2

    from featherload.torch import DataLoader

    root = tmp_path / "VOCdevkit" / "VOC2012"
    for folder in ("JPEGImages", "Annotations", "ImageSets/Main"):
        (root / folder).mkdir(parents=True)
    boxes = [(3, 4, 30, 41, "cat"), (10, 2, 59, 40, "person")]
    for name, objects in (("a", boxes), ("b", boxes[1:]), ("c", [])):
        Image.new("RGB", (64, 48)).save(root / "JPEGImages" / f"{name}.jpg")
        entries = "".join(
            f"<object><name>{label}</name><bndbox><xmin>{x0}</xmin><ymin>{y0}</ymin>"
            f"<xmax>{x1}</xmax><ymax>{y1}</ymax></bndbox></object>"
            for x0, y0, x1, y1, label in objects
        )
        text = f"<annotation><filename>{name}.jpg</filename>{entries}</annotation>"
        (root / "Annotations" / f"{name}.xml").write_text(text)
    (root / "ImageSets" / "Main" / "train.txt").write_text("a\nb\nc\n")
    joint = v2.Compose([v2.Resize((96, 128)), v2.ToImage()])
    dataset = wrap_dataset_for_transforms_v2(
        VOCDetection(tmp_path, image_set="train", transforms=joint)
    )
    with DataLoader(dataset, 3, num_workers=1) as loader:
        _, targets = next(iter(loader))
        assert [len(target["labels"]) for target in targets] == [2, 1, 0]
        want = dataset[0][1]
        assert (targets[0]["boxes"] == want["boxes"]).all()
        assert (targets[0]["labels"] == want["labels"]).all()
        del targets


def test_errors_of_detection_sets(coco: Path) -> None:
    pytest.importorskip("pycocotools")
    from torchvision.datasets import CocoDetection, wrap_dataset_for_transforms_v2
    from torchvision.transforms import v2

    from featherload.torch import DataLoader

    to_image = v2.ToImage()
    late = _wrapped(coco, v2.SanitizeBoundingBoxes(), v2.Resize((8, 8)), to_image)
    with pytest.raises(ConfigError, match="comes before Resize"):
        DataLoader(late, 2)
    alone = CocoDetection(coco, coco / "instances.json", transform=v2.Compose([to_image]))
    with pytest.raises(ConfigError, match="transform moves images and not their boxes"):
        DataLoader(wrap_dataset_for_transforms_v2(alone), 2)
    with pytest.raises(ConfigError, match="has no transforms"):
        bare = CocoDetection(coco, coco / "instances.json")
        DataLoader(wrap_dataset_for_transforms_v2(bare), 2)
    usual = _wrapped(coco, v2.Resize((8, 8)), to_image)
    with pytest.raises(ConfigError, match="targets='list'"):
        DataLoader(usual, 2, collate_fn=lambda rows: tuple(zip(*rows, strict=True)))
    with pytest.raises(ConfigError, match="objects are those of the data set"):
        DataLoader(usual, 2, objects=[])
    with pytest.raises(ConfigError, match="Lambda"):
        DataLoader(_wrapped(coco, v2.Lambda(lambda image: image), v2.Resize((8, 8)), to_image), 2)
