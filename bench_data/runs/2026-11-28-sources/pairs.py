"""Pictures with captions from tars: featherload beside open_clip's WebDataset pipeline.

    pairs.py make PHOTOS TARS             makes 16 tars of 320 pairs each
    pairs.py equal TARS                   compares all pairs
    pairs.py TARS OUT.json [--cpus 0,1] [--workers 2,4,8] [--rounds N] [--seconds S]

open_clip's pipeline is `open_clip_train.data.get_wds_dataset`, called as its training calls it, with
`open_clip.image_transform` and its tokenizer of ViT-B-32. Ours is the same transform and tokenizer:
captions are a column, and the tokenizer runs in the trainer's process.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import turns

BATCH, TARS, EACH = 64, 16, 320
WORDS = "a photo of the red blue small large old new dog boat house street tree on near with".split()


def caption(number: int) -> str:
    return " ".join(WORDS[(number * 7 + step * step) % len(WORDS)] for step in range(9)) + f" {number}"


def make(photos: Path, out: Path) -> None:
    paths = sorted(path for path in photos.rglob("*") if path.suffix.lower() in (".jpg", ".jpeg"))
    out.mkdir(parents=True, exist_ok=True)
    for shard in range(TARS):
        with tarfile.open(out / f"{shard:04}.tar", "w") as tar:
            for row in range(EACH):
                number = shard * EACH + row
                files = {"jpg": paths[number % len(paths)].read_bytes(), "txt": caption(number).encode()}
                for extension, data in files.items():
                    info = tarfile.TarInfo(f"{number:07}.{extension}")
                    info.size = len(data)
                    tar.addfile(info, io.BytesIO(data))


def transform(is_train: bool) -> Any:
    import open_clip
    from open_clip.constants import OPENAI_DATASET_MEAN, OPENAI_DATASET_STD

    return open_clip.image_transform(224, is_train, OPENAI_DATASET_MEAN, OPENAI_DATASET_STD)


def tokenizer() -> Any:
    import open_clip

    return open_clip.get_tokenizer("ViT-B-32")


def theirs(tars: Path, workers: int, is_train: bool) -> Any:
    from open_clip_train.data import get_wds_dataset

    shards = str(tars / f"{{0000..{TARS - 1:04}}}.tar")
    args = SimpleNamespace(
        train_data=shards,
        val_data=shards,
        train_num_samples=TARS * EACH,
        val_num_samples=TARS * EACH,
        train_data_upsampling_factors=None,
        dataset_resampled=False,
        seed=0,
        batch_size=BATCH,
        workers=workers,
        world_size=1,
    )
    return get_wds_dataset(args, transform(is_train), is_train, tokenizer=tokenizer()).dataloader


def ours(tars: Path, workers: int, is_train: bool) -> Any:
    import featherload

    # Images as Pillow opens them, as in open_clip.
    return featherload.Loader(
        str(tars / "*.tar"),
        transform(is_train),
        BATCH,
        workers,
        shuffle=is_train,
        drop_last=is_train,
        columns=["txt"],
        decode="full",
        framework="torch",
    )


def equal(tars: Path) -> None:
    """Both orders are that of the tars, with one worker."""
    import torch

    tokenize = tokenizer()
    pairs, largest, total = 0, 0.0, 0.0
    other = iter(theirs(tars, 1, False))
    with ours(tars, 2, False) as loader:
        for batch in loader:
            images, tokens = next(other)
            assert torch.equal(tokens, tokenize(batch["txt"])), f"captions of batch {batch.ids[0]}"
            assert images.shape == batch.images.shape
            # A level of a channel is 1 / 255 / std.
            std = torch.tensor([0.26862954, 0.26130258, 0.27577711]).view(3, 1, 1)
            levels = ((images - batch.images) * std * 255).abs()
            largest, total = max(largest, levels.max().item()), total + levels.mean().item()
            pairs += len(images)
    assert next(other, None) is None
    assert pairs == TARS * EACH
    batches = pairs // BATCH
    print(
        f"{pairs} pairs: captions equal; pixels differ by {largest:.2f} levels at most, "
        f"by {total / batches:.4f} on average"
    )


def one(tars: Path, loader: str, workers: int, seconds: float) -> None:
    tokenize, made = tokenizer(), None

    def make_loader() -> Callable[[], Iterator[int]]:
        nonlocal made
        made = (ours if loader == "ours" else theirs)(tars, workers, True)
        return batches

    def batches() -> Iterator[int]:
        for batch in made:
            if loader == "ours":
                images, tokens = batch.images, tokenize(batch["txt"])
            else:
                images, tokens = batch
            assert len(images) == len(tokens) == BATCH
            yield len(images)

    print(json.dumps(turns.timed(make_loader, seconds / 2, seconds, False)), flush=True)
    os._exit(0)


def main() -> None:
    if sys.argv[1] == "make":
        return make(Path(sys.argv[2]), Path(sys.argv[3]))
    if sys.argv[1] == "equal":
        return equal(Path(sys.argv[2]))
    if sys.argv[1] == "one":
        return one(Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]), float(sys.argv[5]))
    parse = argparse.ArgumentParser()
    parse.add_argument("tars")
    parse.add_argument("out", type=Path)
    parse.add_argument("--cpus")
    parse.add_argument("--workers", default="2,4,8")
    parse.add_argument("--rounds", type=int, default=3)
    parse.add_argument("--seconds", type=float, default=15)
    given = parse.parse_args()
    if given.cpus:
        os.sched_setaffinity(0, {int(cpu) for cpu in given.cpus.split(",")})
    cases = [
        [given.tars, loader, workers, str(given.seconds)]
        for workers in given.workers.split(",")
        for loader in ("ours", "open_clip")
    ]
    results = turns.in_turns(__file__, cases, given.rounds)
    given.out.write_text(json.dumps(results, indent=1))
    print("| workers | loader | pairs/s | first batch, s | PSS, MiB | without mapped files |")
    print("|---|---|---|---|---|---|")
    for row in results:
        _, loader, workers, _ = row["case"]
        print(
            f"| {workers} | {loader} | {row['rate']:.0f} | {row['first_batch_s']:.1f} "
            f"| {row['pss_mib']:.0f} | {row['pss_without_files_mib']:.0f} |"
        )


if __name__ == "__main__":
    main()
