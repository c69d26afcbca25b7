"""Image processors of segmentation and depth, beside what they make of images and label images."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import need, shared_data

import featherload
from featherload import ConfigError, recipes

FIXED = {"height": 200, "width": 300}

PROCESSORS = [
    ("Segformer", {}),
    ("Segformer", {"size": FIXED, "do_reduce_labels": True}),
    ("Mask2Former", {"size": FIXED}),
    ("Mask2Former", {"size": FIXED, "do_reduce_labels": True, "ignore_index": 255}),
    ("MaskFormer", {"size": FIXED, "size_divisor": 64, "do_normalize": False}),
    ("OneFormer", {"size": FIXED}),
    ("Eomt", {"size": FIXED}),
    ("Eomt", {"size": {"shortest_edge": 320, "longest_edge": 320}, "do_pad": True}),
    (
        "Eomt",
        {"size": {"shortest_edge": 256, "longest_edge": 256}, "do_pad": True, "ignore_index": 255},
    ),
    ("DPT", {}),
    ("DPT", {"size": FIXED, "ensure_multiple_of": 32, "resample": 2}),
]


@pytest.fixture(scope="module")
def labels(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Path], list[Any]]:
    """Photos of COCO, and label images of their people: 0, 1, 2... and 255."""
    need("pycocotools")
    from pycocotools import mask as coco

    root = shared_data("targets") / "coco"
    whole = json.loads((root / "test_coco.json").read_text())
    paths, maps = [], []
    for image in whole["images"]:
        labels = np.zeros((image["height"], image["width"]), np.uint8)
        of = [one for one in whole["annotations"] if one["image_id"] == image["id"]]
        for number, one in enumerate(of):
            runs = coco.frPyObjects(one["segmentation"], *labels.shape)
            inside = np.asarray(coco.decode(coco.merge(runs)), bool)
            labels[inside] = number + 1
        labels[-40:, -40:] = 255
        paths.append(root / image["file_name"])
        maps.append(labels)
    return paths, maps


def _processor(name: str, **config: Any) -> Any:
    need("transformers")
    import transformers

    return getattr(transformers, f"{name}ImageProcessor")(**config)


def _mask_labels() -> Any:
    """The function that the page of segmentation shows."""
    page = (Path(__file__).parents[2] / "docs/segmentation.md").read_text()
    names: dict[str, Any] = {}
    [block] = re.findall(r"^```python\n(def mask_labels.*?)^```", page, re.M | re.S)
    exec(block, names)
    return names["mask_labels"]


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
@pytest.mark.parametrize(("name", "config"), PROCESSORS)
def test_batches_are_those_of_the_processor(
    labels: tuple[list[Path], list[Any]], name: str, config: dict[str, Any]
) -> None:
    import torch
    from PIL import Image

    paths, maps = labels
    processor = _processor(name, **config)
    ignore = config.get("ignore_index")
    # EoMT reduces labels if it has a number to ignore.
    reduces = config.get("do_reduce_labels", name == "Eomt" and ignore is not None)
    if reduces and name != "Segformer":
        # These make 254 of 255. Here it stays ignored.
        maps = [np.where(one == 255, 0, one) for one in maps]
    pictures = [Image.open(path).convert("RGB") for path in paths]
    more = {"task_inputs": ["semantic"] * 4} if name == "OneFormer" else {}
    if name == "OneFormer":
        # Its text inputs need a file of the hub.
        want = processor(pictures, return_tensors="pt", **more)
    else:
        want = processor(pictures, segmentation_maps=maps, return_tensors="pt")
    with featherload.Loader(
        paths, processor, masks=maps, batch_size=4, shuffle=False, num_workers=1, framework="torch"
    ) as loader:
        [batch] = list(loader)
        images = batch[0]
        assert recipes.preprocessor(processor.to_dict())["ops"]
        deviation = min(processor.image_std) if processor.do_normalize else 1
        assert images.shape == want["pixel_values"].shape
        levels = 2.1 if processor.resample == 3 else 1.01
        assert (images - want["pixel_values"]).abs().max() < levels / 255 / deviation
        if name == "Segformer":
            assert torch.equal(batch.masks.long(), torch.stack(list(want["labels"])))
        elif "mask_labels" in want:
            for mask, others, numbers in zip(
                batch.masks, want["mask_labels"], want["class_labels"], strict=True
            ):
                found, labels_found = _mask_labels()(mask, ignore)
                assert labels_found.tolist() == numbers.tolist()
                assert len(numbers)
                assert torch.equal(found, others)
        if "pixel_mask" in want:
            assert (want["pixel_mask"] == 1).all()
        assert name in ("OneFormer", "DPT", "Segformer") or "mask_labels" in want
        del batch, images


def test_rules_of_masks_that_are_given_stay(labels: tuple[list[Path], list[Any]]) -> None:
    paths, maps = labels
    processor = _processor("Segformer", size=FIXED, do_reduce_labels=True)
    rule = {"files": maps, "reduce_zero_label": False, "filter": "floor"}
    found = {}
    options: dict[str, Any] = {"batch_size": 4, "shuffle": False, "num_workers": 1}
    for name, masks in (("own", rule), ("its", {"files": maps})):
        with featherload.Loader(paths, processor, masks=masks, **options) as loader:
            [batch] = list(loader)
            found[name] = batch.masks.copy()
            del batch
    assert set(np.unique(found["own"])) == {0, 1, 2, 3, 4, 5, 255}
    assert set(np.unique(found["its"])) == {0, 1, 2, 3, 4, 255}
    columns = (np.arange(300) * maps[0].shape[1] / 300).astype(int)
    lines = (np.arange(200) * maps[0].shape[0] / 200).astype(int)
    assert (found["own"][0] == maps[0][lines][:, columns]).all()


def test_other_sizes_name_the_fix() -> None:
    for name, config, text in [
        ("Mask2Former", {}, "size=.*shortest_edge.*give the processor a fixed size"),
        ("MaskFormer", {}, "size=.*of MaskFormer.*a fixed size"),
        ("OneFormer", {}, "size=.*of OneFormer.*a fixed size"),
        ("Eomt", {}, "size=.*of Eomt.*a fixed size"),
        ("Eomt", {"do_split_image": True}, "do_split_image=True of Eomt.*do_split_image=False"),
        ("Eomt", {"size": FIXED, "do_pad": True}, "do_pad of Eomt.*do_pad=False"),
        (
            "Eomt",
            {"size": {"shortest_edge": 256, "longest_edge": 320}, "do_pad": True},
            "size=.*of Eomt.*the same number for both edges",
        ),
        ("DPT", {"keep_aspect_ratio": True}, "keep_aspect_ratio=True of DPT.*=False"),
        ("DPT", {"do_pad": True, "size_divisor": 14}, "do_pad of DPT.*do_pad=False"),
        ("DPT", {"ensure_multiple_of": 1000}, "ensure_multiple_of=1000.*a smaller number"),
        (
            "Mask2Former",
            {"size": FIXED, "pad_size": FIXED},
            r"pad_size=.*rows have the size \{'height': 224, 'width': 320\}",
        ),
        ("VitPose", {}, "VitPose.*cuts the box of each person"),
    ]:
        with pytest.raises(ConfigError, match=text) as refused:
            recipes.preprocessor(_processor(name, **config))
        assert refused.value.option == "recipe"
