"""The stream is the library's, whatever Python asks for and whoever dies."""

from __future__ import annotations

import csv
import json
import os
import signal
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from conftest import SMALL, Cli, digest

import featherload
from featherload import samplers

Make = Callable[..., featherload.Loader]


def same_as_cli(cli: Cli, loader: featherload.Loader, *args: str | Path) -> None:
    report = cli("bench", *args, "--digest", "--num-workers", "1")
    assert digest(loader) == report["digests"][0]


def test_digests_are_the_command_lines(loader: Make, cli: Cli, photos: Path) -> None:
    same_as_cli(cli, loader(dtype="float16"), photos, "--batch-size", "32")
    same_as_cli(cli, loader(seed=7), photos, "--batch-size", "32", "--seed", "7", "--dtype", "f32")
    same_as_cli(
        cli,
        loader(recipe="eval224", shuffle=False, layout="nhwc", drop_last=True, batch_size=48),
        *(photos, "--batch-size", "48", "--recipe", "eval224", "--layout", "nhwc"),
        *("--no-shuffle", "--drop-last"),
    )
    same_as_cli(
        cli, loader(recipe="full", batch_size=8), photos, "--batch-size", "8", "--recipe", "full"
    )


def test_digests_of_mixed_batches(loader: Make, cli: Cli, photos: Path, tmp_path: Path) -> None:
    file = tmp_path / "mixed.yaml"
    file.write_text(
        "featherload: 1\nname: mixed\nops:\n  - random_resized_crop: {size: 64}\n"
        "  - normalize: {mean: 0.5, std: 0.25}\n  - cast: {dtype: f32}\n"
        "  - layout: {layout: nchw}\nmixing: {ops: [mixup: {alpha: 0.4}], num_classes: 8}\n"
    )
    one = loader(recipe=file)
    same_as_cli(cli, one, photos, "--batch-size", "32", "--recipe", file)
    images, labels = next(iter(one))
    assert labels.shape == (32, 8) and labels.dtype == np.float32
    assert images.shape == (32, 3, 64, 64)


def test_digests_of_shards(loader: Make, cli: Cli, photos: Path, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "train-000.tar", "w") as tar:
        for number, path in enumerate(sorted(photos.rglob("*.jpg"))[:40]):
            tar.add(path, f"{number:03}.jpg")
            label = tmp_path / "label.cls"
            label.write_text(str(number % 5))
            tar.add(label, f"{number:03}.cls")
    src = tmp_path / "train-{000..000}.tar"
    one = loader(src, index_dir="none", dtype="float16", batch_size=16)
    same_as_cli(cli, one, src, "--batch-size", "16", "--index-dir", "none")
    assert one.dataset[7][1] == 2


def test_digests_of_tables(loader: Make, cli: Cli, photos: Path, tmp_path: Path) -> None:
    names = [path.relative_to(photos) for path in sorted(photos.rglob("*.jpg"))]
    folder = loader(recipe=SMALL)
    with open(tmp_path / "train.csv", "w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "caption", "breed"])
        rows.writerows([name.with_suffix(""), 'a, "b"\nc', name.parts[0]] for name in names)
    with open(tmp_path / "metadata.jsonl", "w", encoding="utf-8") as lines:
        for name in names:
            row = {"file_name": str(name), "objects": {"category": name.parts[0]}}
            print(json.dumps(row), file=lines)
    columns = {"path_column": "id", "label_column": "breed", "path_suffix": ".jpg"}
    table = loader(list=tmp_path / "train.csv", **columns, recipe=SMALL)
    flags = ("--path-column", "id", "--label-column", "breed", "--path-suffix", ".jpg")
    args = ("--list", tmp_path / "train.csv", *flags, "--batch-size", "32", "--recipe", SMALL)
    same_as_cli(cli, table, photos, *args)
    nested = {"root": photos, "label_column": "/objects/category"}
    lines_of_json = loader(tmp_path / "metadata.jsonl", **nested, recipe=SMALL)
    # The same as class folders: their second epoch, as the table's first is over.
    digests = [[digest(one) for _ in range(2)] for one in (folder, lines_of_json)]
    assert digests[0] == digests[1] and digest(table) == digests[0][1]
    for one in (table, lines_of_json):
        assert one.dataset.classes == folder.dataset.classes
    columns = (table.left_out() or {})["columns"]
    assert (columns["path"], columns["labels"]) == ("id", ["breed"])
    assert [column["name"] for column in columns["available"]] == ["id", "caption", "breed"]
    found = featherload.index(tmp_path / "metadata.jsonl", **nested)
    assert found.samples == len(names) and "paths file_name, labels /objects" in str(found)


def test_digests_of_a_paddleclas_config(
    loader: Make, cli: Cli, photos: Path, tmp_path: Path
) -> None:
    files = sorted(photos.rglob("*.jpg"))[:50]
    listed = "".join(
        f"{path.relative_to(photos)} {number % 4}\n" for number, path in enumerate(files)
    )
    (tmp_path / "list.txt").write_text(listed)
    config = tmp_path / "config.yaml"
    config.write_text(
        f"""
DataLoader:
  Train:
    dataset:
      name: ImageNetDataset
      image_root: {photos}
      cls_label_path: {tmp_path / "list.txt"}
      transform_ops:
        - DecodeImage: {{to_rgb: True, channel_first: False}}
        - RandCropImage: {{size: 96}}
        - RandFlipImage: {{flip_code: 1}}
        - NormalizeImage:
            scale: 1.0/255.0
            mean: [0.485, 0.456, 0.406]
            std: [0.229, 0.224, 0.225]
            order: ''
    sampler: {{name: DistributedBatchSampler, batch_size: 10, drop_last: False, shuffle: True}}
    loader: {{num_workers: 2, use_shared_memory: True}}
"""
    )
    one = loader(None, recipe=config, batch_size=None, num_workers=None)
    assert one.batch_size == 10
    same_as_cli(cli, one, "--recipe", config)


def test_the_stream_is_the_same_for_any_workers_and_after_kills(loader: Make) -> None:
    one = digest(loader(num_workers=1, recipe=SMALL))
    many = loader(num_workers=3, recipe=SMALL)
    begun = iter(many)
    next(begun)
    for pid in many.stats()["workers"]:
        os.kill(pid, signal.SIGKILL)
    many.set_epoch(0)
    assert digest(many) == one
    assert many.stats()["worker_deaths"] >= 3


def test_samplers(loader: Make, cli: Cli, photos: Path) -> None:
    for sampler, flags in [
        (samplers.ShardShuffle(shard=8, window=32), ["shard-shuffle", "--shard", "8"]),
        (samplers.Identity(per_id=8), ["identity", "--per-id", "8"]),
        (samplers.Weighted(num_samples=64), ["weighted", "--num-samples", "64"]),
        (samplers.RepeatedAugmentation(repeats=2), ["repeated", "--repeats", "2"]),
        (samplers.LargestFirst(classes=4), ["largest-first", "--size-classes", "4"]),
    ]:
        if flags[0] == "shard-shuffle":
            flags += ["--shuffle-window", "32"]
        one = loader(sampler=sampler, recipe=SMALL)
        same_as_cli(cli, one, photos, "--batch-size", "32", "--recipe", SMALL, "--sampler", *flags)
    weights = [0.0] * 256
    weights[5] = 1.0
    batch = next(iter(loader(sampler=samplers.Weighted(weights=weights))))
    assert set(batch.ids.tolist()) == {5}
    sizes = {b.images.shape[2:] for b in loader(multi_scale=[64, (96, 128)])}
    assert sizes == {(64, 64), (96, 128)}


def test_python_is_new_enough() -> None:
    assert sys.version_info >= (3, 11)
