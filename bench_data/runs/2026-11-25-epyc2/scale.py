"""1,000,000 samples in 1,000 shards behind a store: how soon a run begins, what its fetcher takes.

    python scale.py --binary target/release/featherload

The cache is made of one tiny picture, in a folder that is removed afterwards (`--place`: where;
5 GB of room). It lies behind `folder_server.py` and the tests' proxy. Raw results go to
`scale.json` beside this file, or to `--out`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from stores import served  # noqa: E402

SAMPLES = 1_000_000
SHARD_SAMPLES = 1_000
LIMIT = 300_000_000
BATCH = 64
# Of these the digest is compared.
TAKEN = 20_000
ORDER = ["--sampler", "shard-shuffle", "--shuffle-window", "4096"]
RECIPE = ["--recipe", "eval224"]


def make_cache(binary: str, place: Path, samples: int) -> Path:
    """One picture under so many names in a list."""
    source = place / "source"
    source.mkdir()
    # A slope of colour, binary PPM. The cache has it as JPEG.
    pixels = bytes(v for y in range(16) for x in range(24) for v in (10 * x, 15 * y, 6 * (x + y)))
    (source / "one.ppm").write_bytes(b"P6 24 16 255\n" + pixels)
    listed = source / "list.txt"
    with listed.open("w") as file:
        file.writelines(f"one.ppm {n % 1000}\n" for n in range(samples))
    cache = place / "root" / "bench" / "cache"
    cache.parent.mkdir(parents=True)
    options = ["--root", str(source), "--shard-samples", str(SHARD_SAMPLES), "--encode", "jpeg:85"]
    subprocess.run([binary, "cache", "build", str(listed), str(cache), *options], check=True)
    return cache


def fetchers(pid: int) -> Iterator[int]:
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in map(int, children.read_text().split()):
                with contextlib.suppress(OSError):
                    if Path(f"/proc/{child}/comm").read_text().startswith("featherload-fe"):
                        yield child


def pss(pid: int) -> int:
    """Bytes; 0 of a process that is gone."""
    with contextlib.suppress(OSError):
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
        if found := re.search(r"^Pss:\s+(\d+) kB", text, re.MULTILINE):
            return int(found[1]) * 1024
    return 0


def run(binary: str, src: str, ranks: int, taken: int, *args: str) -> list[dict[str, Any]]:
    """All ranks at one time; of each its report, and the most that its fetcher took."""
    common = ["--workers", "1", "--batch", str(BATCH), "--limit", str(taken), *RECIPE, *ORDER]
    command = [binary, "bench", src, "--json", "--digest", *common, *args]
    runs = []
    for rank in range(ranks):
        own = ["--rank", f"{rank}/{ranks}"] if ranks > 1 else []
        # It says little, and all at its end: a pipe takes that.
        runs.append(subprocess.Popen([*command, *own], stdout=subprocess.PIPE, text=True))
    most = [0] * ranks
    while any(process.poll() is None for process in runs):
        for rank, process in enumerate(runs):
            most[rank] = max([most[rank], *map(pss, fetchers(process.pid))])
        time.sleep(0.02)
    reports = []
    for rank, process in enumerate(runs):
        said, _ = process.communicate()
        if process.returncode:
            sys.exit(f"rank {rank} failed")
        report = json.loads(said)
        reports.append(
            {
                "first_batch_s": report["first_batch_ms"] / 1e3,
                "fetcher_pss_mib": most[rank] / (1 << 20),
                "images_per_s": report["images_per_s"],
                "digest": report["digest"],
            }
        )
    return reports


def measured(given: argparse.Namespace, place: Path) -> dict[str, Any]:
    began = time.monotonic()
    cache = make_cache(given.binary, place, given.samples)
    shards = json.loads((cache / "manifest.json").read_text())["shards"]
    results: dict[str, Any] = {
        "samples": sum(shard["samples"] for shard in shards),
        "shards": len(shards),
        "shard_bytes": sum(shard["bytes"] for shard in shards),
        "index_bytes": (cache / "index.fli").stat().st_size,
        "build_s": time.monotonic() - began,
        "load_average": os.getloadavg(),
        "local": run(given.binary, str(cache), 1, TAKEN),
        "runs": [],
    }
    print(json.dumps(results, indent=1))
    here = place / "here"
    fetch = ["--fetch-dir", str(here), "--fetch-limit", f"{given.limit // 1024}K"]
    for ranks in (1, 2):
        shutil.rmtree(here, ignore_errors=True)
        for index in ("fetched", "kept"):
            for turn in range(given.turns):
                # Shards come anew each time.
                for shard in here.rglob("shard-*"):
                    shard.unlink()
                if index == "fetched":
                    shutil.rmtree(here, ignore_errors=True)
                # The digest and the most memory of the first turn, the start of all.
                taken = TAKEN if turn == 0 else 10 * BATCH
                with served(place / "root"):
                    reports = run(given.binary, "s3://bench/cache", ranks, taken, *fetch)
                found = {
                    "ranks": ranks,
                    "index": index,
                    "taken": taken,
                    "load_average": os.getloadavg()[0],
                    "reports": reports,
                }
                if ranks == 1 and taken == TAKEN:
                    found["same_digest"] = reports[0]["digest"] == results["local"][0]["digest"]
                results["runs"].append(found)
                print(json.dumps(found))
                given.out.write_text(json.dumps(results, indent=1) + "\n")
    return results


def main() -> None:
    said = argparse.ArgumentParser(description=__doc__)
    said.add_argument("--binary", required=True)
    said.add_argument("--place", type=Path)
    said.add_argument("--samples", type=int, default=SAMPLES)
    said.add_argument("--limit", type=int, default=LIMIT)
    said.add_argument("--turns", type=int, default=3)
    said.add_argument("--out", type=Path, default=HERE / "scale.json")
    given = said.parse_args()
    with tempfile.TemporaryDirectory(dir=given.place, prefix="scale-") as place:
        measured(given, Path(place))


if __name__ == "__main__":
    main()
