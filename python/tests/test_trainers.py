"""Loaders in the hands of trainers, which take them for torch's."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import need

import featherload

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


def test_it_takes_the_place_of_torchs_data_loader(photos: Path) -> None:
    need("torchvision")
    import torch
    from torchvision.datasets import ImageFolder
    from torchvision.transforms import v2

    from featherload.torch import DataLoader

    transform = v2.Compose(
        [v2.Resize((64, 64)), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]
    )
    folder = ImageFolder(str(photos), transform)
    with DataLoader(folder, batch_size=32, pin_memory=True, decode="full") as ours:
        theirs = torch.utils.data.DataLoader(folder, batch_size=32)
        assert len(ours) == len(theirs) and ours.dataset.classes == folder.classes
        for (images, labels), (wanted, of) in zip(ours, theirs, strict=True):
            assert (labels == of).all()
            assert (images - wanted).abs().max() < 1.01 / 255
    for options, why in [
        ({"collate_fn": list}, "collate_fn"),
        ({"sampler": torch.utils.data.SubsetRandomSampler([1])}, "SubsetRandomSampler"),
    ]:
        with pytest.raises(featherload.ConfigError, match=why):
            DataLoader(folder, **options)  # type: ignore[arg-type]
    with pytest.raises(featherload.ConfigError, match="no transform"):
        DataLoader(ImageFolder(str(photos)))
    with pytest.raises(featherload.ConfigError, match="list is no torchvision ImageFolder"):
        DataLoader([])
    sampler = torch.utils.data.DistributedSampler(folder, num_replicas=4, rank=1)
    with DataLoader(folder, 32, sampler=sampler) as one:
        assert len(one) == 2 and one.sampler is one
