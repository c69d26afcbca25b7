"""Image processors of the DETR family with objects, beside what they make of annotations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import need, shared_data

import featherload
from featherload import ConfigError, recipes

COUNT = 6

PROCESSORS = [
    ("Detr", {}),
    ("Detr", {"do_normalize": False, "do_convert_annotations": True, "resample": 3}),
    ("DeformableDetr", {"pad_size": {"height": 96, "width": 128}}),
    ("ConditionalDetr", {"do_pad": False}),
    ("RTDetr", {}),
    ("RTDetr", {"do_normalize": True, "do_pad": True}),
    ("RfDetr", {"image_mean": [0.4] * 3, "image_std": [0.3] * 3}),
    ("Yolos", {}),
    ("GroundingDino", {}),
    ("Detr", {"size": {"shortest_edge": 80, "longest_edge": 133}}),
    ("ConditionalDetr", {"size": {"shortest_edge": 200, "longest_edge": 211}, "resample": 3}),
    ("DeformableDetr", {"size": {"shortest_edge": 300, "longest_edge": 300}}),
    ("GroundingDino", {"size": {"shortest_edge": 96, "longest_edge": 170}}),
    ("RfDetr", {"size": {"shortest_edge": 100, "longest_edge": 140}}),
]

SHARES = 1e-5
"""How close boxes are, as shares of the sides."""


@pytest.fixture(scope="session")
def coco(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Images with crowds, boxes that leave them, boxes without width, and no boxes at all."""
    from PIL import Image

    root = tmp_path_factory.mktemp("coco")
    images, annotations = [], []
    for n in range(COUNT):
        random = np.random.default_rng(n)
        height, width = 90 + 17 * n, 150 - 11 * n
        small = random.integers(0, 256, (6, 8, 3), np.uint8)
        picture = Image.fromarray(small).resize((width, height), Image.Resampling.BICUBIC)
        picture.save(root / f"{n}.png")
        images.append({"id": 7 + n, "file_name": f"{n}.png", "height": height, "width": width})
        for k in range(2 * (n % 4)):
            x, y = random.uniform(-4, width / 2), random.uniform(-4, height / 2)
            w, h = random.uniform(2, width / 2 + 9), random.uniform(2, height / 2 + 9)
            annotations.append(
                {
                    "id": 100 * n + k,
                    "image_id": 7 + n,
                    "category_id": int(random.integers(1, 91)),
                    "bbox": [x, y, w, h],
                    "area": w * h / 3,
                    "iscrowd": int(k == 3),
                }
            )
    categories = [{"id": n, "name": f"c{n}"} for n in range(1, 91)]
    whole = {"images": images, "annotations": annotations, "categories": categories}
    (root / "instances.json").write_text(json.dumps(whole))
    return root


def _fixed(name: str, **more: Any) -> Any:
    need("transformers")
    import transformers

    config = {"size": {"height": 96, "width": 128}, **more}
    return getattr(transformers, f"{name}ImageProcessor")(**config)


def _annotations(root: Path, whole: Any = None) -> list[tuple[Any, dict[str, Any]]]:
    from PIL import Image

    whole = whole or json.loads((root / "instances.json").read_text())
    pairs = []
    for image in whole["images"]:
        of = [one for one in whole["annotations"] if one["image_id"] == image["id"]]
        opened = Image.open(root / image["file_name"]).convert("RGB")
        pairs.append((opened, {"image_id": image["id"], "annotations": of}))
    return pairs


def _check_targets(got: Any, want: Any, with_masks: bool = False) -> int:
    """Compares the targets of rows, and counts their objects."""
    import torch

    count = 0
    for row, other in zip(got["labels"], want["labels"], strict=True):
        for key in ("class_labels", "iscrowd", "image_id", "orig_size"):
            assert row[key].dtype == other[key].dtype, key
            assert row[key].tolist() == other[key].tolist(), key
        assert row["size"].tolist() == list(other["size"])
        assert row["boxes"].shape == other["boxes"].shape
        assert torch.allclose(row["boxes"], other["boxes"], rtol=0, atol=SHARES)
        assert torch.allclose(row["area"], other["area"], rtol=1e-5)
        assert ("masks" in row) == ("masks" in other) == with_masks
        if with_masks:
            assert torch.equal(row["masks"] != 0, other["masks"])
            assert other["masks"].any(-1).any(-1).all()
        count += len(row["class_labels"])
    return count


@pytest.mark.parametrize(("name", "more"), PROCESSORS)
def test_batches_are_those_of_the_processor(coco: Path, name: str, more: dict[str, Any]) -> None:
    processor = _fixed(name, **more)
    pairs = _annotations(coco)
    want = processor([one for one, _ in pairs], [of for _, of in pairs], return_tensors="pt")
    recipe = recipes.preprocessor(processor)
    assert recipes.preprocessor(processor.to_dict()) == recipe
    objects = {"files": str(coco / "instances.json"), "style": "hf", "labels": "ids"}
    options: dict[str, Any] = {"batch_size": COUNT, "num_workers": 2, "shuffle": False}
    loader = featherload.Loader(
        coco, recipe, objects=objects, targets="detr", framework="torch", **options
    )
    with loader:
        [(images, targets)] = list(loader)
        # Bicubic is rounded between its two passes.
        levels = 2.1 if more.get("resample") == 3 else 1.01
        deviation = min(processor.image_std) if processor.do_normalize else 1
        assert images.shape == want["pixel_values"].shape
        assert (images - want["pixel_values"]).abs().max() < levels / 255 / deviation
        if "pixel_mask" in want:
            assert (targets["pixel_mask"] == want["pixel_mask"]).all()
        assert _check_targets(targets, want) == 12
        del images, targets


EDGES = {"shortest_edge": 400, "longest_edge": 560}


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
@pytest.mark.parametrize(
    ("name", "size"),
    [
        *(
            (name, {"height": 480, "width": 416})
            for name in sorted({name for name, _ in PROCESSORS})
        ),
        *((name, EDGES) for name in ("Detr", "DeformableDetr", "ConditionalDetr", "GroundingDino")),
    ],
)
def test_photos_with_masks_are_those_of_the_processor(name: str, size: dict[str, int]) -> None:
    """People of COCO in photos, with their outlines as masks: equal bit by bit."""
    need("pycocotools")
    root = shared_data("targets") / "coco"
    # RT-DETR's processor makes no masks, also if they are requested.
    with_masks = name != "RTDetr"
    processor = _fixed(name, size=size)
    whole = json.loads((root / "test_coco.json").read_text())
    pairs = _annotations(root, whole)
    want = processor(
        [one for one, _ in pairs],
        [of for _, of in pairs],
        return_segmentation_masks=True,
        return_tensors="pt",
    )
    # The style follows from the processor.
    objects = {
        "files": str(root / "test_coco.json"),
        "labels": "ids",
        "masks": "full" if with_masks else None,
    }
    options: dict[str, Any] = {"batch_size": len(pairs), "num_workers": 1, "shuffle": False}
    loader = featherload.Loader(
        root, processor, objects=objects, targets="detr", framework="torch", **options
    )
    with loader:
        [(images, targets)] = list(loader)
        deviation = min(processor.image_std) if processor.do_normalize else 1
        assert images.shape == want["pixel_values"].shape
        assert (images - want["pixel_values"]).abs().max() < 1.01 / 255 / deviation
        if "pixel_mask" in want:
            assert (targets["pixel_mask"] == want["pixel_mask"]).all()
        assert _check_targets(targets, want, with_masks) == len(whole["annotations"]) == 14
        del images, targets


def test_a_processor_of_another_size_names_the_fix() -> None:
    need("transformers")
    import transformers

    fixed = {"height": 96, "width": 128}
    edges = {"shortest_edge": 512, "longest_edge": 800}
    for name, config, text in [
        ("Yolos", {"size": edges}, "size=.*shortest_edge.*a fixed size.*Yolos.*'height': 800"),
        ("RTDetr", {"size": {"max_height": 9, "max_width": 9}}, "size=.*give the processor a fixe"),
        ("RTDetr", {"size": edges}, "size=.*shortest_edge.*give the processor a fixed size"),
        ("RTDetr", {"do_resize": False}, "do_resize=False of RTDetr.*do_resize=True"),
        ("Detr", {"do_resize": False}, "size=.*of Detr.*do_resize=True"),
        ("Detr", {"do_pad": False}, "do_pad=False of Detr.*do_pad=True"),
        ("Detr", {"pad_size": {"height": 1400, "width": 1400}}, "pad_size=.*pad_size=None"),
        ("Detr", {"size": fixed, "pad_size": {"height": 99, "width": 128}}, "pad_size=.*None"),
        ("Detr", {"size": fixed, "format": "coco_panoptic"}, "format='coco_detection'"),
        ("Detr", {"size": fixed, "do_normalize": False}, "do_convert_annotations=False of Detr"),
        (
            "DeformableDetr",
            {"size": fixed, "do_convert_annotations": False},
            "do_convert_annotations=True",
        ),
    ]:
        processor = getattr(transformers, f"{name}ImageProcessor")(**config)
        with pytest.raises(ConfigError, match=text) as refused:
            recipes.preprocessor(processor)
        assert refused.value.option == "recipe"
    with pytest.raises(ConfigError, match="format='coco_detection' of ViTImageProcessor"):
        recipes.preprocessor(
            {"image_processor_type": "ViTImageProcessor", "format": "coco_detection"}
        )


def test_configs_without_do_convert_annotations_follow_the_class() -> None:
    """DETR's class then follows do_normalize, RT-DETR's does not."""
    size = {"height": 96, "width": 128}
    config = {"do_normalize": False, "size": size}
    with pytest.raises(ConfigError, match="do_convert_annotations=False of DetrImageProcessor"):
        recipes.preprocessor({**config, "image_processor_type": "DetrImageProcessor"})
    recipe = recipes.preprocessor({**config, "image_processor_type": "RTDetrImageProcessor"})
    assert not any("normalize" in op for op in recipe["ops"])


def test_the_hub_of_old_configs() -> None:
    """A config of transformers 4 with one number, as in the first checkpoints of DETR."""
    old = {
        "feature_extractor_type": "DetrFeatureExtractor",
        "format": "coco_detection",
        "max_size": 1333,
        "size": 800,
    }
    recipe = recipes.preprocessor(old)
    assert recipe["ops"][1] == {
        "resize": {"size": 800, "max_size": 1333, "rounding": "detr", "interpolation": "bilinear"}
    }
    assert recipe["ops"][-2] == {"pad_to": {"size": [1333, 1333]}}
    recipe = recipes.preprocessor({**old, "size": {"height": 480, "width": 640}})
    assert recipe["ops"][1] == {"resize": {"size": [480, 640], "interpolation": "bilinear"}}
    yolos = {**old, "feature_extractor_type": "YolosFeatureExtractor"}
    with pytest.raises(ConfigError, match="size=800 of YolosFeatureExtractor.*a fixed size"):
        recipes.preprocessor(yolos)
