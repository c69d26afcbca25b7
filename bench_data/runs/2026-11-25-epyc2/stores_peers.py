"""LitData and MosaicML Streaming on the samples of `stores.py`, behind the same proxy.

    python stores_peers.py PLACE --photos ../shared/data/photos --gb 2 --limit 400000000

Needs litdata, mosaicml-streaming, torch and Pillow. The data sets are made once, in PLACE. Two
ranks with two workers each, shuffled, three epochs. Chunks are as large as our shards. Samples are
JPEG bytes. Workers give back how many bytes a sample had, so no pixel goes between processes.
With `decode` they decode it by Pillow first. Raw results go to `stores_peers.json`.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from stores import (
    BATCH,
    EPOCHS,
    GB,
    HERE,
    SHARD_BYTES,
    WINDOW,
    WORKERS,
    WORLD,
    Folder,
    photo_labels,
    sample_paths,
    served,
)

# What takes longer is ended, and what it fetched until then is kept.
MOST_SECONDS = 600


def one_sample(item: tuple[str, int]) -> dict[str, Any]:
    path, label = item
    return {"jpeg": Path(path).read_bytes(), "label": label}


def make_litdata(paths: list[Path], labels: dict[Path, int], to: Path) -> None:
    import litdata

    litdata.optimize(
        fn=one_sample,
        inputs=[(str(path), labels[path]) for path in paths],
        output_dir=str(to),
        chunk_bytes=SHARD_BYTES,
        num_workers=2,
    )


def make_mosaic(paths: list[Path], labels: dict[Path, int], to: Path) -> None:
    from streaming import MDSWriter

    columns = {"jpeg": "bytes", "label": "int"}
    with MDSWriter(out=str(to), columns=columns, size_limit=SHARD_BYTES) as out:
        for path in paths:
            out.write(one_sample((str(path), labels[path])))


MAKERS: dict[str, Callable[[list[Path], dict[Path, int], Path], None]] = {
    "litdata": make_litdata,
    "mosaic": make_mosaic,
}


def length(sample: dict[str, Any], decode: bool) -> int:
    data = sample["jpeg"]
    if decode:
        from PIL import Image

        with Image.open(io.BytesIO(data)) as picture:
            picture.convert("RGB")
    return len(data)


def litdata_batches(decode: bool, folder: str, limit: int) -> Any:
    import litdata
    from litdata.streaming import downloader

    # Its client refuses http. Nothing else is changed.
    downloader._OBSTORE_CLIENT_OPTIONS["allow_http"] = True

    class Lengths(litdata.StreamingDataset):
        def __getitem__(self, index: Any) -> int:
            return length(super().__getitem__(index), decode)

    dataset = Lengths(
        "s3://bench/litdata",
        cache_dir=folder,
        shuffle=True,
        max_cache_size=limit,
        storage_options={"endpoint_url": os.environ["AWS_ENDPOINT_URL"]},
    )
    return litdata.StreamingDataLoader(dataset, batch_size=BATCH, num_workers=WORKERS)


def mosaic_batches(decode: bool, folder: str, limit: int) -> Any:
    import streaming
    from torch.utils.data import DataLoader

    class Lengths(streaming.StreamingDataset):
        def get_item(self, sample_id: int, retry: int = 7) -> int:
            return length(super().get_item(sample_id, retry), decode)

    dataset = Lengths(
        remote="s3://bench/mosaic",
        local=folder,
        shuffle=True,
        batch_size=BATCH,
        cache_limit=limit,
        # By default samples are shuffled over 262,144 and more, so each needs another shard.
        shuffle_block_size=WINDOW,
    )
    return DataLoader(dataset, batch_size=BATCH, num_workers=WORKERS)


def rank(peer: str, decode: bool, folder: str, limit: int) -> None:
    """In a process of its own; prints what it measured."""
    import torch.distributed

    if peer == "litdata":
        import litdata  # noqa: F401
    else:
        import streaming  # noqa: F401
    torch.distributed.init_process_group("gloo")
    torch.distributed.barrier()
    began = time.monotonic()
    make = litdata_batches if peer == "litdata" else mosaic_batches
    batches = make(decode, folder, limit)
    first = None
    epochs = []
    for _ in range(EPOCHS):
        start, samples, total = time.monotonic(), 0, 0
        for batch in batches:
            if first is None:
                first = time.monotonic() - began
            samples += len(batch)
            total += int(batch.sum())
        epochs.append({"seconds": time.monotonic() - start, "samples": samples, "bytes": total})
    print("RESULT " + json.dumps({"first_batch_s": first, "epochs": epochs}), flush=True)
    # Workers of a peer may linger.
    os._exit(0)


def without_folders(text: str) -> str:
    """Paths of this machine tell nobody anything."""
    return re.sub(r"/[^\s\"':]*/", "", text)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as made:
        port: int = made.getsockname()[1]
        return port


def run(peer: str, decode: bool, folder: Path, limit: int, most_seconds: float) -> list[Any]:
    env = {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port()),
        "WORLD_SIZE": str(WORLD),
        "LOCAL_WORLD_SIZE": str(WORLD),
    }
    args = [str(int(decode)), str(folder), str(limit)]
    runs = [
        subprocess.Popen(
            [sys.executable, __file__, "--rank", peer, *args],
            env={**os.environ, **env, "RANK": str(number), "LOCAL_RANK": str(number)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for number in range(WORLD)
    ]
    found: list[Any] = []
    end = time.monotonic() + most_seconds
    for one in runs:
        try:
            text = one.communicate(timeout=max(1.0, end - time.monotonic()))[0]
        except subprocess.TimeoutExpired:
            one.kill()
            text = one.communicate()[0]
        lines = [line for line in text.splitlines() if line.startswith("RESULT ")]
        found.append(
            json.loads(lines[0][7:]) if lines else {"failed": one.returncode, "said": without_folders(text)[-2000:]}
        )
    return found


def main() -> None:
    if sys.argv[1] == "--rank":
        peer, decode, folder, limit = sys.argv[2:]
        rank(peer, decode == "1", folder, int(limit))
        return
    said = argparse.ArgumentParser(description=__doc__)
    said.add_argument("place", type=Path)
    said.add_argument("--photos", type=Path, required=True)
    said.add_argument("--gb", type=float, default=10.0)
    said.add_argument("--limit", type=int, default=2_000_000_000)
    said.add_argument("--rates", default="0", help="MB/s, 0: unlimited")
    said.add_argument("--most-seconds", type=float, default=MOST_SECONDS)
    said.add_argument("--peers", default="litdata,mosaic")
    said.add_argument("--out", type=Path, default=HERE / "stores_peers.json")
    given = said.parse_args()

    paths = sample_paths(given.photos, int(given.gb * GB))
    labels = photo_labels(paths)
    root = given.place / "root"
    results: dict[str, Any] = {
        "samples": len(paths),
        "sample_bytes": sum(path.stat().st_size for path in paths),
        "limit": given.limit,
        "versions": versions(),
        "runs": [],
    }
    for peer in given.peers.split(","):
        to = root / "bench" / peer
        if not (to / "index.json").exists():
            shutil.rmtree(to, ignore_errors=True)
            to.parent.mkdir(parents=True, exist_ok=True)
            MAKERS[peer](paths, labels, to)
        stored = sum(path.stat().st_size for path in to.iterdir())
        pattern = f"bench/{peer}/*"
        for rate, decode in ((float(r), d) for r in given.rates.split(",") for d in (False, True)):
            here = given.place / f"here-{peer}"
            shutil.rmtree(here, ignore_errors=True)
            with served(root) as proxy:
                proxy.limit_rate(rate * 1e6 or None)
                folder = Folder(here)
                began = time.monotonic()
                ranks = run(peer, decode, here, given.limit, given.most_seconds)
                found = {
                    "peer": peer,
                    "rate_mb_s": rate or None,
                    "decode": decode,
                    "seconds": time.monotonic() - began,
                    "stored_bytes": stored,
                    "bytes_fetched": proxy.bytes_sent(pattern),
                    "fetched_to_stored": proxy.bytes_sent(pattern) / stored,
                    "most_gets_of_one_key": proxy.most_gets_at_once(pattern),
                    "asked_twice_at_once": len(proxy.asked_twice_at_once(pattern)),
                    "folder": folder.end(),
                    "ranks": ranks,
                }
                done = [one for one in ranks if "epochs" in one]
                if done:
                    slowest = max(sum(e["seconds"] for e in one["epochs"]) for one in done)
                    epochs = [e for one in done for e in one["epochs"]]
                    found["images_per_s"] = sum(e["samples"] for e in epochs) / slowest
                    found["mb_per_s"] = sum(e["bytes"] for e in epochs) / slowest / 1e6
                    found["first_batch_s"] = max(one["first_batch_s"] for one in done)
            results["runs"].append(found)
            given.out.write_text(json.dumps(results, indent=1) + "\n")
            print(json.dumps(found), flush=True)
            shutil.rmtree(here, ignore_errors=True)


def versions() -> dict[str, str]:
    from importlib.metadata import version

    return {name: version(name) for name in ("litdata", "mosaicml-streaming", "torch", "pillow")}


if __name__ == "__main__":
    main()
