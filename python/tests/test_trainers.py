"""Loaders in the hands of trainers, which take them for torch's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import digest, need

import featherload
from featherload import recipes

Make = Callable[..., featherload.Loader]


def test_accelerate_takes_it_unchanged_and_accumulates_to_the_end(loader: Make) -> None:
    need("accelerate")
    import torch
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=3)
    one = loader(framework="torch")
    model = torch.nn.Linear(3, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer, prepared = accelerator.prepare(model, optimizer, one)
    assert prepared is one
    for _ in range(2):
        steps = []
        for images, labels in prepared:
            with accelerator.accumulate(model):
                loss = torch.nn.functional.cross_entropy(model(images.mean((2, 3))), labels)
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
                steps.append(accelerator.sync_gradients)
        # The last two batches are no whole accumulation, and still take their step.
        assert steps == [False, False, True, False, False, True, False, True]
    # Left early, the next epoch is whole.
    for images, _ in prepared:  # noqa: B007
        break
    assert sum(1 for _ in prepared) == 8


def test_lightning_fits_and_resumes(loader: Make, tmp_path: Path) -> None:
    need("lightning")
    import lightning
    import torch

    class Model(lightning.LightningModule):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(3, 8)
            self.seen: list[tuple[int, list[int]]] = []

        def training_step(self, batch: Any, number: int) -> Any:
            self.seen.append((batch.epoch, batch.ids.tolist()))
            images, labels = batch
            return torch.nn.functional.cross_entropy(self.layer(images.mean((2, 3))), labels)

        def validation_step(self, batch: Any, number: int) -> None:
            pass

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.1)

    def trainer(**options: Any) -> Any:
        return lightning.Trainer(
            default_root_dir=tmp_path,
            accelerator="cpu",
            logger=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            **options,
        )

    whole = Model()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer(max_epochs=2, enable_checkpointing=False).fit(
            whole, loader(framework="torch"), loader(framework="torch", shuffle=False)
        )
        assert [epoch for epoch, _ in whole.seen] == [0] * 8 + [1] * 8
        # Saved in the middle of an epoch, which goes on behind it.
        first = Model()
        saver = lightning.pytorch.callbacks.ModelCheckpoint(
            dirpath=tmp_path, filename="{step}", every_n_train_steps=11, save_top_k=-1
        )
        trainer(max_steps=14, callbacks=[saver]).fit(first, loader(framework="torch"))
        second = Model()
        trainer(max_epochs=2).fit(
            second,
            loader(framework="torch", num_workers=1),
            ckpt_path=tmp_path / "step=11.ckpt",
            weights_only=False,
        )
        assert first.seen[:11] + second.seen == whole.seen
        # Saved at an epoch's end, as Lightning does by itself: Lightning loads no state then.
        third = Model()
        saver = lightning.pytorch.callbacks.ModelCheckpoint(dirpath=tmp_path, filename="end")
        trainer(max_epochs=1, callbacks=[saver]).fit(third, loader(framework="torch"))
        fourth = Model()
        trainer(max_epochs=2).fit(
            fourth, loader(framework="torch"), ckpt_path=tmp_path / "end.ckpt", weights_only=False
        )
    assert third.seen + fourth.seen == whole.seen


def test_timms_prefetcher_takes_it(loader: Make) -> None:
    need("timm")
    import torch
    from timm.data.loader import PrefetchLoader

    recipe = {"ops": [{"resize": {"size": 256}}, {"center_crop": {"size": 224}}]}
    levels = loader(recipe=recipe, dtype="uint8", layout="nchw", framework="torch")
    prefetched = PrefetchLoader(levels, device=torch.device("cpu"))
    assert len(prefetched) == 8 and prefetched.dataset.classes == levels.dataset.classes
    assert prefetched.sampler is levels and not prefetched.mixup_enabled
    with warnings.catch_warnings():
        # It holds two batches, and the loop two: no copies.
        warnings.simplefilter("error")
        got = [(images.clone(), labels.clone()) for images, labels in prefetched]
    prefetched.sampler.set_epoch(0)
    plain = loader(recipe="eval224", decode="scaled", framework="torch")
    assert len(got) == 8
    for (images, labels), (expected, of) in zip(got, plain, strict=True):
        assert (labels == of).all() and (images - expected).abs().max() < 1e-5


def test_lightnings_own_processes_share_an_epoch(photos: Path, tmp_path: Path) -> None:
    need("lightning")
    program = tmp_path / "train.py"
    program.write_text(DDP)
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", program, photos, tmp_path],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert ended.returncode == 0, ended.stderr
    seen = [json.loads((tmp_path / f"rank{rank}.json").read_text()) for rank in range(2)]
    assert sorted(seen[0] + seen[1]) == list(range(256))


DDP = """
import json, sys, lightning, torch, featherload

class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 8)
        self.seen = []

    def train_dataloader(self):
        return featherload.Loader(sys.argv[1], batch_size=32, num_workers=1, framework="torch")

    def training_step(self, batch, number):
        self.seen += batch.ids.tolist()
        images, labels = batch
        return torch.nn.functional.cross_entropy(self.layer(images.mean((2, 3))), labels)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

model = Model()
lightning.Trainer(
    max_epochs=1, accelerator="cpu", devices=2, strategy="ddp", logger=False,
    enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
).fit(model)
with open(f"{sys.argv[2]}/rank{model.global_rank}.json", "w") as file:
    json.dump(model.seen, file)
"""


def test_hugging_faces_trainer_takes_it(loader: Make, tmp_path: Path) -> None:
    """The override of docs/python.md; accumulation holds several batches at once."""
    need("transformers")
    import torch
    from transformers import Trainer, TrainingArguments

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(3, 8)
            self.seen: list[int] = []

        def forward(self, pixel_values: Any, labels: Any) -> dict[str, Any]:
            scores = self.layer(pixel_values.mean((2, 3)))
            self.seen.append(len(labels))
            return {"loss": torch.nn.functional.cross_entropy(scores, labels), "logits": scores}

    one = loader(framework="torch", batch_size=16, depth=12)

    class OurTrainer(Trainer):  # type: ignore[misc]
        def get_train_dataloader(self) -> Any:
            return one

        def _prepare_inputs(self, batch: Any) -> dict[str, Any]:
            images, labels = batch.to(self.args.device)
            return {"pixel_values": images, "labels": labels}

    def trainer() -> Any:
        arguments = TrainingArguments(
            output_dir=str(tmp_path),
            num_train_epochs=2,
            gradient_accumulation_steps=4,
            use_cpu=True,
            report_to=[],
            save_steps=6,
            logging_strategy="no",
            disable_tqdm=True,
            ignore_data_skip=True,
        )
        return OurTrainer(model=Model(), args=arguments, train_dataset=one.dataset)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first = trainer()
        assert first.train().global_step == 8
        assert len(first.model.seen) == 32 and one.epoch == 2
        # In the middle of the second epoch, by the loader's own state.
        one.set_epoch(1)
        begun = iter(one)
        for _ in range(8):
            next(begun)
        one.load_state_dict(one.state_dict())
        second = trainer()
        assert second.train(resume_from_checkpoint=str(tmp_path / "checkpoint-6")).global_step == 8
        assert len(second.model.seen) == 8 and one.epoch == 2


def test_torchvision_transforms_are_recipes(loader: Make, photos: Path) -> None:
    need("torchvision")
    import torch
    from torchvision import models
    from torchvision.transforms import v2

    weights = models.ResNet50_Weights.IMAGENET1K_V2.transforms()
    one = loader(recipe=weights, framework="torch", decode="full", shuffle=False)
    images, _ = next(iter(one))
    from PIL import Image

    for row, path in enumerate(next(iter(loader(shuffle=False))).paths()[:4]):
        wanted = weights(Image.open(path).convert("RGB"))
        # One level, after the division by the deviation.
        assert (images[row] - wanted).abs().max() < 1.01 / 255 / 0.224
    compose = v2.Compose(
        [
            v2.ToImage(),
            v2.RandomResizedCrop(96, scale=(0.2, 1.0), interpolation=v2.InterpolationMode.BICUBIC),
            v2.RandomHorizontalFlip(0.3),
            v2.ColorJitter(0.4, 0.4, 0.4, 0.1),
            v2.RandomApply([v2.GaussianBlur((5, 9), (0.1, 2.0))], p=0.3),
            v2.RandAugment(2, 9),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize([0.5] * 3, [0.5] * 3),
            v2.RandomErasing(0.25, value="random"),
        ]
    )
    recipe = recipes.torchvision(compose)
    assert [next(iter(op)) for op in recipe["ops"]] == [
        "decode",
        "random_resized_crop",
        "random_horizontal_flip",
        "color_jitter",
        "random_apply",
        "rand_augment",
        "cast",
        "normalize",
        "random_erasing",
        "layout",
    ]
    assert recipe["ops"][3]["color_jitter"]["brightness"] == [0.6, 1.4]
    assert recipe["ops"][4]["random_apply"]["transforms"] == [
        {"gaussian_blur": {"kernel_size": [9, 5], "sigma": [0.1, 2.0]}}
    ]
    assert digest(loader(recipe=compose)) == digest(loader(recipe=recipe))
    for cannot, why in [
        (v2.Lambda(lambda x: x), "Lambda"),
        (v2.Compose([v2.Normalize([0.5], [0.5])]), "Normalize.*levels"),
        (v2.RandomRotation(10, center=(0, 0)), "center"),
        (torch.nn.ReLU(), "no class of torchvision"),
    ]:
        with pytest.raises(featherload.ConfigError, match=why):
            loader(recipe=cannot)


def test_every_transform_of_torchvision_is_translated(loader: Make) -> None:
    """All that have an operation, with numbers of their own, through a whole batch."""
    need("torchvision")
    from torchvision.transforms import v2

    for transform in [
        v2.RandomCrop(32, padding=4, pad_if_needed=True, fill=7),
        v2.RandomVerticalFlip(0.1),
        v2.Grayscale(3),
        v2.RandomGrayscale(0.3),
        v2.RandomRotation((-10, 20), expand=False, fill=3),
        v2.RandomAffine(15, (0.1, 0.2), (0.8, 1.2), 10),
        v2.RandomPerspective(0.4, 0.7),
        v2.ElasticTransform(40.0, 4.0),
        v2.Pad(4, fill=9),
        v2.RandomPosterize(4),
        v2.RandomSolarize(128),
        v2.RandomEqualize(),
        v2.RandomAutocontrast(),
        v2.RandomInvert(),
        v2.RandomAdjustSharpness(2.0),
        v2.AutoAugment(),
        v2.TrivialAugmentWide(),
        v2.RandomChoice([v2.RandomInvert(1.0), v2.RandomEqualize(1.0)], p=[0.3, 0.7]),
        v2.RandomOrder([v2.RandomInvert(0.5), v2.RandomEqualize(0.5)]),
        v2.CenterCrop(30),
    ]:
        images, _ = next(iter(loader(recipe=[v2.Resize((48, 48)), transform, v2.PILToTensor()])))
        assert images.dtype == "uint8" and images.shape[:2] == (32, 3)


def test_timm_keywords_are_recipes(loader: Make) -> None:
    need("timm")
    train = recipes.create_transform(
        128, True, auto_augment="rand-m9-mstd0.5-inc1", re_prob=0.25, re_mode="pixel"
    )
    assert [next(iter(op)) for op in train["ops"]] == [
        "decode",
        "random_resized_crop",
        "random_horizontal_flip",
        "timm_augment",
        "normalize",
        "random_erasing",
        "cast",
        "layout",
    ]
    images, _ = next(iter(loader(recipe=train)))
    assert images.shape == (32, 3, 128, 128) and images.dtype == "float32"
    from PIL import Image
    from timm.data import create_transform

    options: dict[str, Any] = {"crop_pct": 0.9, "interpolation": "bicubic"}
    one = loader(recipe=recipes.create_transform(96, **options), shuffle=False, decode="full")
    batch = next(iter(one))
    theirs = create_transform(96, **options)
    for row in range(4):
        wanted = theirs(Image.open(batch.paths()[row]).convert("RGB")).numpy()
        assert abs(batch.images[row] - wanted).max() < 1.01 / 255 / 0.224
    with pytest.raises(featherload.ConfigError, match="naflex"):
        recipes.create_transform(224, naflex=True)


def test_hugging_face_preprocessors_are_recipes(loader: Make, tmp_path: Path) -> None:
    vit = {
        "do_resize": True,
        "size": {"height": 64, "width": 64},
        "resample": 2,
        "do_rescale": True,
        "rescale_factor": 0.00392156862745098,
        "do_normalize": True,
        "image_mean": [0.5, 0.5, 0.5],
        "image_std": [0.5, 0.5, 0.5],
        "image_processor_type": "ViTImageProcessor",
    }
    images, _ = next(iter(loader(recipe=recipes.preprocessor(vit))))
    assert images.shape == (32, 3, 64, 64) and -1 <= images.min() < images.max() <= 1
    (tmp_path / "preprocessor_config.json").write_text(
        '{"size": {"shortest_edge": 96}, "crop_pct": 0.875, "resample": 3,'
        ' "image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}'
    )
    recipe = recipes.preprocessor(tmp_path)
    assert recipe["ops"][1] == {"resize": {"size": 109, "interpolation": "bicubic"}}
    assert next(iter(loader(recipe=recipe))).images.shape == (32, 3, 96, 96)
    with pytest.raises(featherload.ConfigError, match="rescale_factor"):
        recipes.preprocessor({**vit, "rescale_factor": 1.0})
