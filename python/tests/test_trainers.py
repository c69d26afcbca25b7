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
from conftest import SMALL, need

import featherload

Make = Callable[..., featherload.Loader]


@pytest.fixture
def loader(loader: Make) -> Make:
    """Of few pixels: trainers hand batches on."""
    return lambda *args, **options: loader(*args, **{"recipe": SMALL, **options})


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
        # Saved in the middle of an epoch, which continues after it.
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
    assert len(prefetched.sampler) == 256 and not prefetched.mixup_enabled
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


def test_accelerates_metrics_count_each_sample_once(photos: Path, tmp_path: Path) -> None:
    """Two processes, 255 samples: one row is repeated, and ``gather_for_metrics`` drops it."""
    need("accelerate")
    need("torchvision")
    program = tmp_path / "evaluate.py"
    program.write_text(METRICS)
    ended = subprocess.run(
        [
            *(sys.executable, "-W", "ignore", "-m", "torch.distributed.run", "--standalone"),
            *("--nproc-per-node", "2", program, photos, tmp_path),
        ],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert ended.returncode == 0, ended.stderr
    counted = [json.loads((tmp_path / f"rank{rank}.json").read_text()) for rank in range(2)]
    assert sorted(counted[0]) == sorted(counted[1]) == list(range(255))


def test_accelerate_skips_batches_without_other_images(photos: Path, tmp_path: Path) -> None:
    need("accelerate")
    need("torchvision")
    import accelerate
    import torch
    from torchvision.datasets import ImageFolder
    from torchvision.transforms import v2

    from featherload.accelerate import DataLoader

    accelerator = accelerate.Accelerator(cpu=True)
    transform = v2.Compose([v2.CenterCrop(16), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])
    pictures = ImageFolder(photos, transform)
    recipe = {"ops": [{"center_crop": {"size": 8}}]}
    made = DataLoader(pictures, 32, shuffle=True, seed=3, names=("x", "y"), recipe=recipe)
    whole = accelerator.prepare(made)
    batches = [batch["y"].tolist() for _ in range(2) for batch in whole]
    again = accelerator.prepare(
        DataLoader(pictures, 32, shuffle=True, seed=3, names=("x", "y"), recipe=recipe)
    )
    for skip in (accelerator.skip_first_batches, accelerate.skip_first_batches):
        again.set_epoch(0)
        skipped = skip(again, 3)
        assert len(skipped) == len(whole) - 3
        found = [(batch["y"].tolist(), batch["x"].shape[1:]) for batch in skipped]
        assert [labels for labels, _ in found] == batches[3:8]
        assert {shape for _, shape in found} == {(3, 8, 8)}
        # The epoch after it is whole.
        assert [batch["y"].tolist() for batch in again] == batches[8:]
    # torch's own loaders are skipped as before.
    torchs = torch.utils.data.DataLoader(range(10), 2)
    assert [batch.tolist() for batch in accelerator.skip_first_batches(torchs, 3)] == [
        [6, 7],
        [8, 9],
    ]
    whole.close()
    again.close()


def test_accelerate_skips_as_torch_at_ends_and_with_samplers(photos: Path) -> None:
    need("accelerate")
    need("torchvision")
    import accelerate
    import torch
    from torch.utils.data import Subset, WeightedRandomSampler
    from torchvision.datasets import ImageFolder
    from torchvision.transforms import v2

    from featherload.accelerate import DataLoader

    accelerator = accelerate.Accelerator(cpu=True)
    transform = v2.Compose([v2.Resize((8, 8)), v2.PILToTensor()])
    folder = ImageFolder(photos, transform)
    # Labels show which samples came.
    folder.samples = [(path, number) for number, (path, _) in enumerate(folder.samples)]

    def weighted() -> dict[str, Any]:
        of = WeightedRandomSampler([1.0] * 7, 7, generator=torch.Generator().manual_seed(1))
        return {"sampler": of}

    kinds: list[Any] = [
        dict,
        lambda: {"drop_last": True},
        weighted,
        lambda: {**weighted(), "drop_last": True},
        lambda: {"sampler": [6, 5, 4, 3, 2, 1, 0]},
        lambda: {"batch_sampler": [[0, 1, 2], [3], [5, 4]]},
    ]
    for count in (8, 10):
        for make in kinds:
            options = [make(), make()]
            if "batch_sampler" not in options[0]:
                options = [{"batch_size": 4, **of} for of in options]
            data = Subset(folder, range(count))
            torchs = torch.utils.data.DataLoader(data, **options[0])
            ours = DataLoader(data, **options[1])
            for skipped in (1, 2, 3, 5, 0):
                got = []
                for loader in (accelerator.prepare(torchs), accelerator.prepare(ours)):
                    rest = accelerator.skip_first_batches(loader, skipped)
                    got.append([labels.tolist() for _, labels in rest])
                    # The epoch after it is whole.
                    got[-1].append([labels.tolist() for _, labels in loader])
                assert got[0] == got[1], (count, options[1], skipped)
            ours.close()
    # An epoch that is left early is not skipped into.
    with DataLoader(Subset(folder, range(10)), 4, shuffle=True, seed=1) as ours:
        epochs = [[labels.tolist() for _, labels in ours] for _ in range(4)]
        ours.set_epoch(0)
        running = iter(ours)
        next(running)
        rest = accelerator.skip_first_batches(ours, 1)
        assert [labels.tolist() for _, labels in rest] == epochs[1][1:]
        assert [labels.tolist() for _, labels in accelerator.skip_first_batches(ours, 9)] == []
        assert [labels.tolist() for _, labels in ours] == epochs[3]


def test_too_few_samples_for_a_batch_of_each_process() -> None:
    need("accelerate")
    from featherload._dealing import DealtSamples

    for samples in (0, 3, 7):
        with pytest.raises(featherload.ConfigError, match="fill no batch of 4 on process 1, and"):
            DealtSamples(samples, 4, 1, 2, True)
    assert len(DealtSamples(8, 4, 1, 2, True)) == 4


# torch forks a worker, and another test of this process may have imported JAX.
@pytest.mark.filterwarnings("ignore:os.fork.. was called:RuntimeWarning")
def test_a_loader_of_torch_made_of_ours_is_an_error(photos: Path) -> None:
    need("accelerate")
    need("torchvision")
    from accelerate.data_loader import skip_first_batches
    from torchvision.datasets import ImageFolder
    from torchvision.transforms import v2

    from featherload.accelerate import DataLoader

    transform = v2.Compose([v2.CenterCrop(16), v2.PILToTensor()])
    with DataLoader(ImageFolder(photos, transform), 32) as one:
        # A name that a script took before the loader was made.
        before = getattr(skip_first_batches, "__wrapped__", skip_first_batches)
        other = before(one, 1)
        assert type(other).__module__.startswith("torch")
        with pytest.raises((featherload.ConfigError, RuntimeError), match="set's own images"):
            next(iter(other))


METRICS = """
import json, sys, torch
from accelerate import Accelerator
from torch.utils.data import DistributedSampler, Subset
from torchvision.datasets import ImageFolder
from torchvision.transforms import v2
from featherload.torch import DataLoader

accelerator = Accelerator(cpu=True)
transform = v2.Compose([v2.Resize((8, 8)), v2.PILToTensor()])
part = Subset(ImageFolder(sys.argv[1], transform), range(255))
sampler = DistributedSampler(part, shuffle=False)
loader = accelerator.prepare(DataLoader(part, 32, sampler=sampler, num_workers=1))
counted = []
for batch in loader:
    ids = torch.from_numpy(batch.ids.astype("int64"))
    counted += accelerator.gather_for_metrics(ids).tolist()
with open(f"{sys.argv[2]}/rank{accelerator.process_index}.json", "w") as file:
    json.dump(counted, file)
# Ends the threads of the process group: an interpreter that ends beside them may abort.
accelerator.end_training()
"""
