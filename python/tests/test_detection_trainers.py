"""What the page of detection trainers shows trains: two steps of small models."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import need

import featherload

PAGE = Path(__file__).parents[2] / "docs/python/detection-trainers.md"
COUNT = 4


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    for module in ("torch", "torchvision", "transformers", "accelerate"):
        need(module)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.fixture
def shown() -> dict[str, Any]:
    """The functions of the page."""
    names: dict[str, Any] = {}
    for block in re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.M | re.S):
        exec(compile(block, str(PAGE), "exec"), names)
    return names


@pytest.fixture
def coco(tmp_path: Path) -> tuple[Path, Path]:
    """Images with 1, 2, 0 and 3 objects, and their annotations."""
    from PIL import Image

    root = tmp_path / "images"
    root.mkdir()
    images, annotations = [], []
    for n, count in enumerate([1, 2, 0, 3]):
        random = np.random.default_rng(n)
        height, width = 60 + 8 * n, 90 - 7 * n
        pixels = random.integers(0, 256, (height, width, 3), np.uint8)
        Image.fromarray(pixels).save(root / f"{n}.png")
        images.append({"id": n + 1, "file_name": f"{n}.png", "height": height, "width": width})
        for k in range(count):
            box = [5 + 9 * k, 6, 30, 25 + k]
            annotations.append(
                {
                    **{"id": 10 * n + k, "image_id": n + 1, "category_id": 3 + 4 * k},
                    **{"bbox": box, "area": box[2] * box[3], "iscrowd": 0},
                }
            )
    categories = [{"id": n, "name": f"class {n}"} for n in (3, 7, 11)]
    file = tmp_path / "instances.json"
    whole = {"images": images, "annotations": annotations, "categories": categories}
    file.write_text(json.dumps(whole))
    return root, file


def _weights(model: Any) -> list[Any]:
    return [weight.detach().clone() for weight in model.parameters() if weight.requires_grad]


def _changed(model: Any, before: list[Any]) -> int:
    return sum(not (a == b).all() for a, b in zip(_weights(model), before, strict=True))


def test_faster_rcnn_takes_two_steps(shown: dict[str, Any], coco: tuple[Path, Path]) -> None:
    import torch
    from torch import nn

    torch.manual_seed(0)
    backbone: Any = nn.Sequential(nn.Conv2d(3, 8, 3, 8, 1), nn.ReLU())
    backbone.out_channels = 8
    model = _faster_rcnn(backbone)
    root, file = coco
    seen: list[list[int]] = []
    forward = model.forward

    def counted(images: Any, targets: Any) -> Any:
        seen.append([len(one["boxes"]) for one in targets])
        assert all(image.dtype == torch.float32 and image.max() <= 1 for image in images)
        losses = forward(images, targets)
        assert all(torch.isfinite(loss) for loss in losses.values())
        return losses

    model.forward = counted
    before = _weights(model)
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    recipe = {"ops": [{"resize": {"size": [64, 64]}}, {"cast": {"dtype": "f32"}}]}
    for _ in range(2):
        loader = shown["train_faster_rcnn"](model, optimizer, root, str(file), recipe)
        assert [number for number, _ in loader.categories] == [3, 7, 11]
        loader.close()
    assert [sorted(counts) for counts in seen] == [[0, 1, 2, 3]] * 2
    assert _changed(model, before) > 5


def _faster_rcnn(backbone: Any) -> Any:
    from torchvision.models.detection import FasterRCNN
    from torchvision.models.detection.anchor_utils import AnchorGenerator
    from torchvision.models.detection.faster_rcnn import FastRCNNPredictor, TwoMLPHead
    from torchvision.ops import MultiScaleRoIAlign

    return FasterRCNN(
        backbone,
        min_size=64,
        max_size=64,
        rpn_anchor_generator=AnchorGenerator(((16, 32),), ((1.0,),)),
        box_roi_pool=MultiScaleRoIAlign(["0"], 3, 2),
        box_head=TwoMLPHead(8 * 9, 16),
        box_predictor=FastRCNNPredictor(16, 12),
    )


def _detr() -> Any:
    import transformers

    backbone = transformers.ResNetConfig(
        embedding_size=8,
        hidden_sizes=[8] * 4,
        depths=[1] * 4,
        layer_type="basic",
        out_features=["stage4"],
    )
    config = transformers.DetrConfig(
        backbone_config=backbone,
        d_model=16,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=16,
        decoder_ffn_dim=16,
        num_queries=8,
        num_labels=3,
    )
    return transformers.DetrForObjectDetection(config)


def _rt_detr() -> Any:
    import transformers

    backbone = transformers.RTDetrResNetConfig(
        embedding_size=8,
        hidden_sizes=[8, 16, 16, 16],
        depths=[1] * 4,
        layer_type="basic",
        out_features=["stage2", "stage3", "stage4"],
    )
    config = transformers.RTDetrConfig(
        backbone_config=backbone,
        encoder_hidden_dim=16,
        encoder_in_channels=[16] * 3,
        encoder_ffn_dim=16,
        encoder_attention_heads=2,
        d_model=16,
        num_queries=8,
        decoder_in_channels=[16] * 3,
        decoder_ffn_dim=16,
        decoder_layers=1,
        decoder_attention_heads=2,
        num_denoising=0,
        num_labels=3,
    )
    return transformers.RTDetrForObjectDetection(config)


@pytest.mark.parametrize("name", ["Detr", "RTDetr"])
def test_the_trainer_takes_two_steps(
    shown: dict[str, Any], coco: tuple[Path, Path], tmp_path: Path, name: str
) -> None:
    import torch
    import transformers

    torch.manual_seed(0)
    # Edges and a border; a fixed size.
    edges = {"shortest_edge": 64, "longest_edge": 96}
    size = edges if name == "Detr" else {"height": 64, "width": 64}
    processor = getattr(transformers, f"{name}ImageProcessor")(size=size)
    model = _detr() if name == "Detr" else _rt_detr()
    seen = []
    forward = model.forward

    def counted(pixel_values: Any, pixel_mask: Any, labels: Any, **more: Any) -> Any:
        assert pixel_values.shape[2:] == pixel_mask.shape[1:]
        assert (int(pixel_mask.min()) == 0) == (name == "Detr")
        assert all(int(label) < 3 for one in labels for label in one["class_labels"])
        seen.append(sorted(len(one["boxes"]) for one in labels))
        found = forward(pixel_values=pixel_values, pixel_mask=pixel_mask, labels=labels, **more)
        assert torch.isfinite(found.loss)
        return found

    model.forward = counted
    before = _weights(model)
    root, file = coco
    trainer = shown["train_detr"](model, processor, root, str(file), str(tmp_path / "output"))
    assert trainer.state.global_step == 2
    assert sorted(count for counts in seen for count in counts) == [0, 1, 2, 3]
    assert _changed(model, before) > 5
    loader = trainer._train_loader.loader
    assert [name for _, name in loader.categories] == ["class 3", "class 7", "class 11"]
    loader.close()


def test_evaluation_has_the_targets_of_each_image(coco: tuple[Path, Path], tmp_path: Path) -> None:
    import transformers

    from featherload.transformers import Images, Trainer

    found = []

    def metrics(evaluated: Any) -> dict[str, float]:
        found.append(evaluated.label_ids)
        return {}

    root, file = coco
    processor = transformers.DetrImageProcessor(size={"height": 64, "width": 64})
    args = transformers.TrainingArguments(
        str(tmp_path / "output"),
        per_device_eval_batch_size=2,
        eval_do_concat_batches=False,
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
    )
    data = Images(root, processor, objects=str(file), targets="detr")
    trainer = Trainer(_detr(), args, eval_dataset=data, compute_metrics=metrics)
    assert np.isfinite(trainer.evaluate()["eval_loss"])
    [batches] = found
    counts = [[len(one["boxes"]) for one in batch] for batch in batches]
    assert counts == [[1, 2], [0, 3]]
    trainer.get_eval_dataloader().loader.close()


def test_the_batch_of_ultralytics(shown: dict[str, Any], coco: tuple[Path, Path]) -> None:
    import torch

    root, file = coco
    recipe = {"ops": [{"letterbox": {"size": 160}}, {"cast": {"dtype": "u8"}}]}
    with featherload.Loader(
        root,
        recipe,
        batch_size=COUNT,
        shuffle=False,
        num_workers=1,
        objects={"files": str(file), "style": "ultralytics"},
        targets="flat",
        framework="torch",
    ) as loader:
        [batch] = list(loader)
        made = shown["ultralytics_batch"](batch)
        assert made["img"].dtype == torch.uint8 and made["img"].shape == (4, 3, 160, 160)
        assert made["cls"].tolist() == [[0], [0], [1], [0], [1], [2]]
        assert made["cls"].dtype == made["bboxes"].dtype == made["batch_idx"].dtype == torch.float32
        assert made["batch_idx"].tolist() == [0, 1, 1, 3, 3, 3]
        assert made["im_file"] == [str(root / f"{n}.png") for n in range(4)]
        assert made["ori_shape"] == [(60 + 8 * n, 90 - 7 * n) for n in range(4)]
        assert made["resized_shape"] == [(160, 160)] * 4
        boxes = iter(made["bboxes"].tolist())
        for count, (h, w), ((of_height, of_width), (left, top)) in zip(
            [1, 2, 0, 3], made["ori_shape"], made["ratio_pad"], strict=True
        ):
            factor = 160 / max(h, w)
            assert abs(of_height - factor) < 0.5 / h and abs(of_width - factor) < 0.5 / w
            assert abs(top - (160 - round(h * factor)) / 2) <= 0.5
            assert abs(left - (160 - round(w * factor)) / 2) <= 0.5
            for k in range(count):
                x, y, wide, high = (160 * share for share in next(boxes))
                assert (x - wide / 2 - left) / of_width == pytest.approx(5 + 9 * k, abs=1e-3)
                assert (y - high / 2 - top) / of_height == pytest.approx(6, abs=1e-3)
                assert wide / of_width == pytest.approx(30, abs=1e-3)
                assert high / of_height == pytest.approx(25 + k, abs=1e-3)
        assert next(boxes, None) is None
        del batch, made
