"""A cache built by a Ray cluster of one node, and of two: images per second.

    python ray_nodes.py PLACE --photos ../shared/data/photos

Needs the packages `featherload` and `ray`. Each node has one CPU; the head has none, and makes
no shard. PLACE gets copies of the photos (links) and the caches. Turns are one after the other.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import ray
from ray.cluster_utils import Cluster

from featherload.ray import build_cache

HERE = Path(__file__).resolve().parent


def copies(photos: Path, place: Path, times: int) -> Path:
    """Class folders with each photo so many times."""
    root = place / "photos"
    for path in sorted(photos.rglob("*.JPEG")):
        folder = root / path.parent.name
        folder.mkdir(parents=True, exist_ok=True)
        for n in range(times):
            to = folder / f"{path.stem}-{n:03}.JPEG"
            if not to.exists():
                shutil.copyfile(path, to)
    return root


def digest(folder: Path) -> str:
    """Of all files of a cache, by name and content."""
    total = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        total.update(path.name.encode() + hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


def wait() -> None:
    time.sleep(1)


def build(source: Path, dst: Path, nodes: int, each: int) -> dict[str, Any]:
    shutil.rmtree(dst, ignore_errors=True)
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    try:
        for _ in range(nodes):
            cluster.add_node(num_cpus=1)
        cluster.wait_for_nodes()
        ray.init(address=cluster.address, log_to_driver=False)
        # The first task of each node starts its process.
        options: dict[str, Any] = {"num_cpus": 1, "scheduling_strategy": "SPREAD"}
        ray.get([ray.remote(**options)(wait).remote() for _ in range(2 * nodes)])
        began = time.monotonic()
        report = build_cache(
            source,
            dst,
            shard_samples=each,
            encode="jpeg:90",
            resize="shorter:256",
            progress=False,
        )
        seconds = time.monotonic() - began
    finally:
        ray.shutdown()
        cluster.shutdown()
    return {
        "nodes": nodes,
        "seconds": seconds,
        "samples": report["samples"],
        "images_per_s": report["samples"] / seconds,
        "digest": digest(dst),
    }


def main() -> None:
    said = argparse.ArgumentParser(description=__doc__)
    said.add_argument("place", type=Path)
    said.add_argument("--photos", type=Path, required=True)
    said.add_argument("--times", type=int, default=60, help="copies of each photo")
    said.add_argument("--shard-samples", type=int, default=200)
    said.add_argument("--turns", type=int, default=3)
    said.add_argument("--out", type=Path, default=HERE / "ray_nodes.json")
    given = said.parse_args()
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    source = copies(given.photos, given.place, given.times)
    runs = []
    for _ in range(given.turns):
        for nodes in (1, 2):
            runs.append(build(source, given.place / "cache", nodes, given.shard_samples))
            print(json.dumps(runs[-1]), flush=True)
    assert len({run["digest"] for run in runs}) == 1, "the bytes differ"
    given.out.write_text(json.dumps(runs, indent=1) + "\n")


if __name__ == "__main__":
    main()
