#!/usr/bin/env python3
"""Pairs of image and text from tar shards, beside other loaders.

    compare_text_pairs.py PHOTOS FOLDER [WORKERS...]

Writes the photos with a text each to eight shards in FOLDER, once. Then measures images/s and the
most PSS of all processes in turns: open_clip's `get_wds_dataset`, webdataset, megatron-energon,
litdata (its own chunks of the same pairs) and featherload, with open_clip's transform for training
(224 x 224) and batches of 64. Texts are not tokenised. Needs these packages, and torch.
OPEN_CLIP_WEBDATASET: a folder with the webdataset that open_clip takes, if another one is installed.
"""

from __future__ import annotations

import io
import os
import sys
import tarfile
from argparse import Namespace
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from compare_patches import files
from turns import measure, on_one_thread, print_turns, rate_of

BATCH, SHARDS = 64, 8
SECONDS, TURNS = 6.0, 2


def texts(rows: Any) -> Any:
    """In place of a tokenizer: the texts themselves."""
    return rows


def transform() -> Any:
    from open_clip.transform import image_transform

    return image_transform(224, is_train=True)


def pairs(photos: Path) -> list[tuple[str, bytes, str]]:
    found = enumerate(files(photos))
    return [
        (f"{n:06}", path.read_bytes(), f"a photo of {path.stem}") for n, path in found
    ]


def write_shards(photos: Path, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    all_pairs = pairs(photos)
    for shard in range(SHARDS):
        with tarfile.open(folder / f"shard-{shard:03}.tar", "w") as tar:
            for key, image, text in all_pairs[shard::SHARDS]:
                for name, content in (
                    (f"{key}.jpg", image),
                    (f"{key}.txt", text.encode()),
                ):
                    member = tarfile.TarInfo(name)
                    member.size = len(content)
                    tar.addfile(member, io.BytesIO(content))


def write_chunks(photos: Path, folder: Path) -> None:
    import litdata

    litdata.optimize(
        fn=dict,
        inputs=[{"image": image, "text": text} for _, image, text in pairs(photos)],
        output_dir=str(folder / "litdata"),
        chunk_bytes="16MB",
        num_workers=1,
    )


def describe_for_energon(folder: Path) -> None:
    from megatron.energon.epathlib import EPath
    from megatron.energon.flavors import BaseWebdatasetFactory

    BaseWebdatasetFactory.prepare_dataset(
        EPath(str(folder)),
        [f"shard-{shard:03}.tar" for shard in range(SHARDS)],
        split_parts_ratio=[("train", 1.0)],
        tar_index_only=False,
        workers=1,
    )
    (folder / ".nv-meta/dataset.yaml").write_text(
        "sample_type:\n  __module__: megatron.energon\n  __class__: CaptioningSample\n"
        "field_map:\n  image: jpg\n  caption: txt\n"
    )


def urls(folder: Path) -> str:
    return f"{folder}/shard-{{000..{SHARDS - 1:03}}}.tar"


def with_open_clip(folder: Path, workers: int) -> Iterator[int]:
    # open_clip 3.3 fails with webdataset 1.0: it asks for 0.2.86 or an older one.
    sys.path[:0] = filter(None, [os.environ.get("OPEN_CLIP_WEBDATASET")])
    from open_clip_train.data import get_wds_dataset

    args = Namespace(
        train_data=urls(folder),
        train_data_upsampling_factors=None,
        train_num_samples=1000,
        val_data=None,
        val_num_samples=0,
        dataset_resampled=False,
        seed=0,
        batch_size=BATCH,
        workers=workers,
        world_size=1,
        distributed=False,
    )
    epoch = 0
    while True:
        info = get_wds_dataset(
            args, transform(), is_train=True, epoch=epoch, tokenizer=texts
        )
        info.set_epoch(epoch)
        for images, _ in info.dataloader:
            yield len(images)
        epoch += 1


def with_webdataset(folder: Path, workers: int) -> Iterator[int]:
    import webdataset as wds

    dataset = (
        wds.WebDataset(
            urls(folder), shardshuffle=SHARDS, nodesplitter=wds.split_by_node
        )
        .repeat()
        .shuffle(500)
        .decode("pil")
        .to_tuple("jpg", "txt")
        .map_tuple(transform(), texts)
        .batched(BATCH)
    )
    for images, _ in wds.WebLoader(dataset, batch_size=None, num_workers=workers):
        yield len(images)


def with_energon(folder: Path, workers: int) -> Iterator[int]:
    from megatron.energon import (
        CaptioningSample,
        DefaultTaskEncoder,
        WorkerConfig,
        get_loader,
        get_train_dataset,
    )
    from PIL import Image
    from torchvision.transforms.v2.functional import to_pil_image

    made = transform()

    class Encoder(DefaultTaskEncoder):
        decoder = None

        def encode_sample(self, sample: Any) -> Any:
            found = sample.image
            if isinstance(found, bytes):
                found = Image.open(io.BytesIO(found))
            elif not isinstance(found, Image.Image):
                found = to_pil_image(found)
            sample.image = made(found)
            return sample

    dataset = get_train_dataset(
        folder,
        batch_size=BATCH,
        shuffle_buffer_size=500,
        max_samples_per_sequence=100,
        worker_config=WorkerConfig(rank=0, world_size=1, num_workers=workers),
        task_encoder=Encoder(raw_batch_type=CaptioningSample),
    )
    for batch in get_loader(dataset):
        yield len(batch.image)


def with_litdata(folder: Path, workers: int) -> Iterator[int]:
    import litdata
    from PIL import Image

    made = transform()

    class Pairs(litdata.StreamingDataset):
        def __getitem__(self, index: Any) -> Any:
            found = super().__getitem__(index)
            return made(Image.open(io.BytesIO(found["image"]))), found["text"]

    dataset = Pairs(str(folder / "litdata"), shuffle=True)
    loader = litdata.StreamingDataLoader(dataset, batch_size=BATCH, num_workers=workers)
    while True:
        for images, _ in loader:
            yield len(images)


def with_featherload(folder: Path, workers: int) -> Iterator[int]:
    import featherload

    loader = featherload.Loader(
        urls(folder),
        transform(),
        BATCH,
        workers,
        framework="torch",
        captions=featherload.Captions("txt", map=texts),
    )
    while True:
        for batch in loader:
            assert len(batch.captions) == len(batch.images)
            yield len(batch.images)


SIDES = {
    "open_clip": with_open_clip,
    "webdataset": with_webdataset,
    "energon": with_energon,
    "litdata": with_litdata,
    "featherload": with_featherload,
}


def run(side: str, folder: Path, workers: int, times: Any) -> None:
    on_one_thread()
    rate_of(SIDES[side](folder, workers), SECONDS, 3, times)


def measured(side: str, folder: Path, workers: int) -> tuple[float, int]:
    return measure(run, side, folder, workers)


def main() -> int:
    if len(sys.argv) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    photos, folder = Path(sys.argv[1]), Path(sys.argv[2]).resolve()
    if not (folder / "shard-000.tar").exists():
        write_shards(photos, folder)
        write_chunks(photos, folder)
        describe_for_energon(folder)
    print("| workers | loader | images/s | PSS, MiB |")
    print("|---|---|---|---|")
    for count in [int(count) for count in sys.argv[3:]] or [2]:
        once = partial(measured, folder=folder, workers=count)
        print_turns(str(count), [*SIDES], TURNS, once)
    return 0


if __name__ == "__main__":
    sys.exit(main())
