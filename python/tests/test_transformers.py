"""Hugging Face's Trainer and accelerate with loaders of featherload, beside torch's loaders."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import need

import featherload


@pytest.fixture(autouse=True)
def _needed() -> Iterator[None]:
    for module in ("torch", "torchvision", "transformers", "accelerate"):
        need(module)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def photo_set(photos: Path, samples: int = 256) -> Any:
    """The first photos. A crop has the same pixels in both decoders, and no resize."""
    import torch
    from torchvision.datasets import ImageFolder
    from torchvision.transforms import v2

    crop = v2.Compose([v2.CenterCrop(24), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])
    whole = ImageFolder(photos, crop)
    spread = [(7 * i) % len(whole) for i in range(samples)]
    return torch.utils.data.Subset(whole, spread)


class Dicts:
    """A data set for the Trainer of transformers."""

    def __init__(self, pairs: Any) -> None:
        self.pairs = pairs

    def __len__(self) -> int:
        return len(self.pairs)

    def __getitem__(self, index: int) -> dict[str, Any]:
        image, label = self.pairs[index]
        return {"pixel_values": image, "labels": label}


def tiny_resnet() -> Any:
    import torch
    from transformers import ResNetConfig, ResNetForImageClassification

    torch.manual_seed(0)
    config = ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 8], depths=[1, 1], layer_type="basic", num_labels=8
    )
    return ResNetForImageClassification(config)


def joined(lists: Iterable[list[Any]]) -> list[Any]:
    return [*itertools.chain.from_iterable(lists)]


def metrics(found: Any) -> dict[str, float]:
    right = found.predictions.argmax(-1) == found.label_ids
    return {"accuracy": float(right.mean()), "rows": len(right)}


def arguments(folder: Path, **options: Any) -> Any:
    from transformers import TrainingArguments

    given = {"per_device_train_batch_size": 16, "per_device_eval_batch_size": 48, **options}
    return TrainingArguments(
        output_dir=str(folder), use_cpu=True, report_to=[], disable_tqdm=True, **given
    )


def test_evaluation_and_prediction_equal_those_of_transformers(
    photos: Path, tmp_path: Path
) -> None:
    """250 samples in batches of 48: the last batch has 10."""
    import numpy as np
    import transformers

    from featherload.transformers import Trainer

    pictures, model = photo_set(photos, 250), tiny_resnet()
    for drop_last in (False, True):
        args = arguments(tmp_path, dataloader_num_workers=2, dataloader_drop_last=drop_last)
        theirs = transformers.Trainer(
            model, args, eval_dataset=Dicts(pictures), compute_metrics=metrics
        )
        ours = Trainer(model, args, eval_dataset=pictures, compute_metrics=metrics)
        expected, found = theirs.evaluate(), ours.evaluate()
        assert found["eval_rows"] == expected["eval_rows"] == (240 if drop_last else 250)
        assert found["eval_accuracy"] == expected["eval_accuracy"]
        assert found["eval_loss"] == pytest.approx(expected["eval_loss"], rel=1e-6)
        # A second evaluation has the same workers and the same result.
        (kept,) = ours._kept_loaders.values()
        again = ours.evaluate()
        assert again["eval_loss"] == found["eval_loss"] and not kept.loader.closed
        predicted, wanted = (
            ours.predict(photo_set(photos, 100)),
            theirs.predict(Dicts(photo_set(photos, 100))),
        )
        assert np.allclose(predicted.predictions, wanted.predictions, atol=1e-6)
        assert (predicted.label_ids == wanted.label_ids).all()
        assert kept.loader is ours.get_eval_dataloader().loader
        kept.loader.close()


def test_training_takes_its_numbers_from_the_arguments_and_resumes(
    photos: Path, tmp_path: Path
) -> None:
    import torch

    from featherload.transformers import Images, Trainer

    recipe = {"ops": [{"random_crop": {"size": 24}}, {"cast": {"dtype": "f32"}}]}
    images = Images(photos, recipe, on_error="stop")
    assert len(images) == 256 and len(images.classes) == 8 and "Images(" in repr(images)

    class Seen(Trainer):  # type: ignore[misc]
        """Keeps a number of each row that depends on its crop."""

        def compute_loss(self, model: Any, inputs: Any, **options: Any) -> Any:
            if model.training:
                rows = inputs["pixel_values"].sum((1, 2, 3)).tolist()
                self.__dict__.setdefault("seen", []).append(rows)
            return super().compute_loss(model, inputs, **options)

    def trainer(folder: str, **options: Any) -> Any:
        args = arguments(
            tmp_path / folder,
            num_train_epochs=2,
            gradient_accumulation_steps=3,
            logging_strategy="no",
            **options,
        )
        return Seen(
            tiny_resnet(),
            args,
            train_dataset=images,
            eval_dataset={"all": Images(photos, recipe), "few": photo_set(photos, 50)},
            compute_metrics=metrics,
        )

    # 16 batches an epoch: 6 steps. Saved in the middle of the second epoch, and at its beginning.
    whole = trainer("whole", save_steps=3, eval_strategy="epoch")
    assert whole.train().global_step == 12
    assert [len(rows) for rows in whole.seen] == [16] * 32
    assert whole.seen[:16] != whole.seen[16:]
    first, second = (sorted(joined(whole.seen[at : at + 16])) for at in (0, 16))
    assert first != second
    loader = whole.callback_handler.train_dataloader.loader
    assert (loader.batch_size, loader.num_workers, len(loader)) == (16, 1, 16)
    history = {name for entry in whole.state.log_history for name in entry}
    assert {"eval_all_accuracy", "eval_few_accuracy"} <= history
    weights = whole.model.state_dict()
    for step, batches in ((9, 9), (6, 0), (3, -7)):
        again = trainer(f"again{step}")
        assert again.train(str(tmp_path / f"whole/checkpoint-{step}")).global_step == 12
        assert again.seen == whole.seen[16 + batches :]
        assert all(
            torch.equal(value, weights[name]) for name, value in again.model.state_dict().items()
        )
        # As with torch's loader.
        assert again.state.epoch == whole.state.epoch == 2
    # Without the state, the position follows from the number of steps.
    (tmp_path / "whole/checkpoint-9/featherload_state.json").unlink()
    again = trainer("without")
    again.train(str(tmp_path / "whole/checkpoint-9"))
    assert again.seen == whole.seen[25:]
    # A state of other data or of another batch size is not resumed.
    other = trainer("seed", seed=5)
    with pytest.raises(featherload.ConfigError, match="seed"):
        other.train(str(tmp_path / "whole/checkpoint-3"))
    other = trainer("batch", per_device_train_batch_size=8)
    with pytest.raises(featherload.ConfigError, match="has batch size 16, and this run has 8"):
        other.train(str(tmp_path / "whole/checkpoint-3"))
    # Left out on purpose, the epoch begins again.
    begun = trainer("begun", ignore_data_skip=True, max_steps=10)
    begun.train(str(tmp_path / "whole/checkpoint-9"))
    assert begun.seen[0] == whole.seen[16]


def test_other_names_orders_and_data_sets_without_labels(photos: Path, tmp_path: Path) -> None:
    from featherload.transformers import Images, Trainer

    flat = tmp_path / "flat"
    flat.mkdir()
    for number, path in enumerate(sorted(photos.rglob("*.jpg"))[:10]):
        (flat / f"{number}.jpg").symlink_to(path)

    class Named(Trainer):  # type: ignore[misc]
        names = ("x", "y")

    args = arguments(tmp_path, train_sampling_strategy="sequential", dataloader_drop_last=True)
    named = Named(tiny_resnet(), args, train_dataset=photo_set(photos, 40))
    batches = [*named.get_train_dataloader()]
    assert [sorted(batch) for batch in batches] == [["x", "y"]] * 2
    labels = [label for _, label in photo_set(photos, 32)]
    assert joined(batch["y"].tolist() for batch in batches) == labels
    assert named.get_train_dataloader().dataset is named.train_dataset
    small = {"ops": [{"center_crop": {"size": 24}}, {"cast": {"dtype": "f32"}}]}
    found = Trainer(tiny_resnet(), arguments(tmp_path)).predict(Images(flat, small))
    assert found.predictions.shape == (10, 8) and found.label_ids is None


def test_failed_samples_are_left_out_of_the_loss_and_columns_are_entries(
    photos: Path, tmp_path: Path
) -> None:
    import torch

    from featherload.transformers import Images, Trainer

    paths = [path for path, _ in photo_set(photos).dataset.samples[:8]]
    rows = {
        "path": [*paths[:3], tmp_path / "none.jpg", *paths[3:]],
        "label": [n % 8 for n in range(9)],
        "score": [n / 2 for n in range(9)],
    }
    small = {"ops": [{"center_crop": {"size": 24}}, {"cast": {"dtype": "f32"}}]}
    images = Images(rows, small, on_error="skip", columns=["score"])
    seen = []

    class Scored(Trainer):  # type: ignore[misc]
        def compute_loss(self, model: Any, inputs: Any, *args: Any, **options: Any) -> Any:
            seen.append(inputs.pop("score"))
            assert inputs["labels"].tolist() == [0, 1, 2, -100, 4, 5, 6, 7, 0]
            return super().compute_loss(model, inputs, *args, **options)

    args = arguments(
        tmp_path, train_sampling_strategy="sequential", max_steps=1, remove_unused_columns=False
    )
    result = Scored(tiny_resnet(), args, train_dataset=images).train()
    assert 0 < result.training_loss < 10
    assert torch.equal(seen[0].cpu(), torch.arange(9) / 2)
    with pytest.raises(featherload.ConfigError, match="colums .*did you mean columns"):
        Images(rows, small, colums=["score"])
    with pytest.raises(TypeError, match="give it to featherload.transformers.Trainer"):
        images[0]


def test_what_would_load_other_rows_is_an_error(photos: Path, tmp_path: Path) -> None:
    from featherload.transformers import Images, Trainer

    def failed(match: str, make: Any) -> None:
        with pytest.raises(featherload.ConfigError, match=match):
            make()

    pictures = photo_set(photos, 40)
    failed("batch_size follows from per_device", lambda: Images(pictures, batch_size=3))
    failed("Images needs a recipe", lambda: Images(photos))
    failed("takes tensors of torch", lambda: Images(pictures, framework="numpy"))
    model = tiny_resnet()
    failed(
        "data_collator is not called",
        lambda: Trainer(model, arguments(tmp_path), data_collator=lambda rows: rows),
    )

    def trainer(dataset: Any = pictures, **options: Any) -> Any:
        return Trainer(model, arguments(tmp_path, **options), train_dataset=dataset)

    failed("has no transform: give featherload.transformers.Images", trainer(["a.jpg"]).train)
    failed("length", trainer(train_sampling_strategy="group_by_length").get_train_dataloader)
    for name in ("split_batches", "even_batches"):
        config = {name: name == "split_batches"}
        failed(name, trainer(accelerator_config=config).get_train_dataloader)
    ordered = Images(pictures, sampler=featherload.samplers.Weighted([1.0] * 40))
    assert len(trainer(ordered).get_train_dataloader()) == 3
    failed("in the order of the data set", lambda: trainer().predict(ordered))


def test_three_processes_count_and_order_as_accelerate_does(photos: Path, tmp_path: Path) -> None:
    program = tmp_path / "evaluate.py"
    program.write_text(PROCESSES)
    ended = subprocess.run(
        [
            *(sys.executable, "-W", "ignore", "-m", "torch.distributed.run", "--standalone"),
            *("--nproc-per-node", "3", program, photos, tmp_path),
        ],
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).parent)},
    )
    assert ended.returncode == 0, ended.stderr
    ranks = [json.loads((tmp_path / f"rank{rank}.json").read_text()) for rank in range(3)]
    for rank in ranks:
        assert rank["counted"] == rank["expected"] == [*range(250)]
        assert rank["ours"] == pytest.approx(rank["theirs"], rel=1e-6)
        assert rank["ours"]["eval_rows"] == 250 and rank["same_predictions"]
        # Two epochs of 250 samples over three processes: 84 rows each, one of which is repeated.
        assert rank["batches"] == rank["their_batches"] == 6
    for epoch in range(2):
        rows = joined(rank["trained"][epoch] for rank in ranks)
        assert len(rows) == 252 and set(rows) == {*range(250)}
    assert ranks[0]["trained"][0] != ranks[0]["trained"][1]


PROCESSES = """
import json, sys
from pathlib import Path
import accelerate, numpy, torch, transformers
import torch.utils.data
import featherload.accelerate
import featherload.transformers
from test_transformers import Dicts, arguments, metrics, photo_set, tiny_resnet

folder = Path(sys.argv[2])
pictures = photo_set(Path(sys.argv[1]), 250)
args = arguments(folder)
accelerator = accelerate.Accelerator(cpu=True)
result = {}

# accelerate alone: numbers of samples. torch's loader over the same set.
loader = accelerator.prepare(
    featherload.accelerate.DataLoader(pictures, 16, num_workers=1, names=("image", "label"))
)
theirs = accelerator.prepare(torch.utils.data.DataLoader([*range(250)], 16))
result["counted"] = []
ids = iter(loader)._epoch
for batch in ids:
    numbers = torch.from_numpy(batch.ids.astype("int64"))
    result["counted"] += accelerator.gather_for_metrics(numbers).tolist()
labels = sum((accelerator.gather_for_metrics(batch["label"]).tolist() for batch in loader), [])
assert labels == [label for _, label in pictures], labels
result["expected"] = sum((accelerator.gather_for_metrics(n).tolist() for n in theirs), [])

shuffled = featherload.accelerate.DataLoader(pictures, 16, True, num_workers=1)
result["trained"] = [sum((b.ids.tolist() for b in shuffled), []) for _ in range(2)]
result["batches"] = len(shuffled)
result["their_batches"] = len(accelerator.prepare(torch.utils.data.DataLoader([*range(250)], 16)))

model = tiny_resnet()
ours = featherload.transformers.Trainer(
    model, args, train_dataset=pictures, eval_dataset=pictures, compute_metrics=metrics
)
stock = transformers.Trainer(model, args, eval_dataset=Dicts(pictures), compute_metrics=metrics)
names = ("eval_loss", "eval_accuracy", "eval_rows")
result["ours"] = {name: ours.evaluate()[name] for name in names}
result["theirs"] = {name: stock.evaluate()[name] for name in names}
few = torch.utils.data.Subset(pictures, range(50))
found, wanted = ours.predict(few), stock.predict(Dicts(few))
result["same_predictions"] = bool(
    numpy.allclose(found.predictions, wanted.predictions, atol=1e-6)
    and (found.label_ids == wanted.label_ids).all()
)
with open(folder / f"rank{accelerator.process_index}.json", "w") as file:
    json.dump(result, file)
accelerator.end_training()
"""
