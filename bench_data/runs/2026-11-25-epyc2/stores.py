"""A cache of 10 GB in an object store, through a folder of 2 GB: three epochs by two ranks.

    python stores.py PLACE --photos ../shared/data/photos --binary target/release/featherload

Needs the package `featherload` for the order (`--order FILE` keeps it, so that runs without the
package can use it). PLACE is a folder with 35 GB of room: the cache is made there once. It lies
behind `folder_server.py` and the tests' proxy. Each rate is a run; raw results go to
`stores.json` beside this file. With `--shard-samples N` shards have N samples each, and the order
takes whole ones; without it they have 24 MiB each.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[2] / "python" / "tests"))

from store_proxy import StoreProxy  # noqa: E402

GB = 1_000_000_000
SHARD_BYTES = 24 << 20
LIMIT = 2_000_000_000
WORLD = 2
WORKERS = 2
BATCH = 64
EPOCHS = 3
WINDOW = 2048
SHARDS = "*/shard-*.tar"


def sample_paths(photos: Path, total: int) -> list[Path]:
    """Photos, again and again, until they have so many bytes."""
    own = sorted(path.resolve() for path in photos.rglob("*") if path.suffix.lower() == ".jpeg")
    once = sum(path.stat().st_size for path in own)
    return own * max(1, round(total / once))


def photo_labels(paths: Sequence[Path]) -> dict[Path, int]:
    classes = sorted({path.parent.name for path in paths})
    return {path: classes.index(path.parent.name) for path in set(paths)}


def make_cache(binary: str, photos: Path, cache: Path, total: int, samples: int | None) -> None:
    if (cache / "manifest.json").exists():
        return
    paths = sample_paths(photos, total)
    labels = photo_labels(paths)
    cache.parent.mkdir(parents=True, exist_ok=True)
    listed = cache.with_suffix(".txt")
    root = photos.resolve()
    listed.write_text("".join(f"{p.relative_to(root)} {labels[p]}\n" for p in paths))
    size = ["--shard-samples", str(samples)] if samples else ["--shard-size", str(SHARD_BYTES)]
    options = ["--root", str(root), *size]
    subprocess.run([binary, "cache", "build", str(listed), str(cache), *options], check=True)


@contextmanager
def served(root: Path) -> Iterator[StoreProxy]:
    """The folder's buckets behind a proxy; the environment leads there."""
    server = subprocess.Popen(
        [sys.executable, str(HERE / "folder_server.py"), str(root)],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stdout is not None
        with StoreProxy(("127.0.0.1", int(server.stdout.readline()))) as proxy:
            os.environ.update(
                AWS_ENDPOINT_URL=proxy.url,
                S3_ENDPOINT_URL=proxy.url,
                AWS_ALLOW_HTTP="true",
                AWS_ACCESS_KEY_ID="key",
                AWS_SECRET_ACCESS_KEY="secret",
                AWS_REGION="us-east-1",
                AWS_DEFAULT_REGION="us-east-1",
                NO_PROXY="127.0.0.1",
                no_proxy="127.0.0.1",
            )
            yield proxy
    finally:
        server.kill()


class Folder:
    """The most bytes that a folder ever held, as far as 20 looks a second see it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.most = self.most_on_disk = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _names(self) -> list[str]:
        return sorted(os.path.join(at, one) for at, _, all in os.walk(self.path) for one in all)

    def _watch(self) -> None:
        while not self._over.wait(0.05):
            names = self._names()
            found = []
            for name in names:
                try:
                    found.append(os.stat(name))
                except OSError:
                    continue
            # Of other names now, one may stand in the place of one that went.
            if names == self._names():
                self.most = max(self.most, sum(one.st_size for one in found))
                self.most_on_disk = max(self.most_on_disk, sum(o.st_blocks * 512 for o in found))

    def end(self) -> dict[str, int]:
        self._over.set()
        self._thread.join()
        return {"most_bytes": self.most, "most_bytes_on_disk": self.most_on_disk}


def fewest_bytes(uses: Sequence[Sequence[int]], sizes: Sequence[int], capacity: int) -> int:
    """Bytes to fetch by Belady's rule: what is used last goes first."""
    turns: dict[int, list[int]] = {}
    for at, batch in enumerate(uses):
        for shard in set(batch):
            turns.setdefault(shard, []).append(at)
    for all in turns.values():
        all.reverse()
    here: set[int] = set()
    held = fetched = 0
    for batch in uses:
        now = set(batch)
        for shard in now:
            turns[shard].pop()
        for shard in dict.fromkeys(batch):
            if shard in here:
                continue
            fetched += sizes[shard]
            held += sizes[shard]
            here.add(shard)
            while held > capacity:
                free = here - now
                last = max(free, key=lambda one: turns[one][-1] if turns[one] else 1 << 60)
                here.remove(last)
                held -= sizes[last]
    return fetched


def shards_of_batches(
    place: Path, shards: Sequence[dict[str, Any]], per_shard: int, window: int
) -> Any:
    """The shards of each batch of all ranks. The order follows from numbers alone, so a list of
    one tiny picture gives it.
    """
    import bisect

    import featherload

    samples = sum(shard["samples"] for shard in shards)
    tiny = place / "tiny"
    tiny.mkdir(exist_ok=True)
    # Two pixels, binary PPM.
    (tiny / "one.ppm").write_bytes(b"P6 2 1 255\n" + bytes(6))
    (tiny / "list.txt").write_text("one.ppm 0\n" * samples)
    ends, end = [], 0
    for shard in shards:
        end += shard["samples"]
        ends.append(end)
    of_ranks = []
    for rank in range(WORLD):
        loader = featherload.Loader(
            tiny / "list.txt",
            recipe="full",
            batch_size=BATCH,
            num_workers=2,
            rank=rank,
            world_size=WORLD,
            sampler=featherload.samplers.ShardShuffle(shard=per_shard, window=window),
        )
        batches = []
        for _ in range(EPOCHS):
            for batch in loader:
                used = [bisect.bisect_right(ends, int(id)) for id in batch.ids]
                batches.append(list(dict.fromkeys(used)))
        loader.close()
        of_ranks.append(batches)
    together = zip(*of_ranks, strict=True)
    return [[shard for batch in batches for shard in batch] for batches in together]


def run_ranks(binary: str, src: str, per_shard: int, window: int, *args: str) -> list[Any]:
    """Both ranks at one time; their reports."""
    common = ["--workers", str(WORKERS), "--batch", str(BATCH), "--epochs", str(EPOCHS)]
    order = ["--sampler", "shard-shuffle", "--shard", str(per_shard)]
    order += ["--shuffle-window", str(window)]
    command = [binary, "bench", src, "--json", "--digest", *common, *order, *args]
    runs = [
        subprocess.Popen([*command, "--rank", f"{rank}/{WORLD}"], stdout=subprocess.PIPE, text=True)
        for rank in range(WORLD)
    ]
    said = [run.communicate()[0] for run in runs]
    if any(run.returncode for run in runs):
        sys.exit("a rank failed")
    return [json.loads(one) for one in said]


def main() -> None:
    said = argparse.ArgumentParser(description=__doc__)
    said.add_argument("place", type=Path)
    said.add_argument("--photos", type=Path, required=True)
    said.add_argument("--binary", required=True)
    said.add_argument("--gb", type=float, default=10.0)
    said.add_argument("--limit", type=int, default=LIMIT)
    said.add_argument("--window", type=int, default=WINDOW)
    said.add_argument("--rates", default="0,150", help="MB/s, 0: unlimited")
    said.add_argument("--shard-samples", type=int, help="samples of a shard")
    said.add_argument("--order", type=Path, help="keeps the shards of each batch")
    said.add_argument("--out", type=Path, default=HERE / "stores.json")
    given = said.parse_args()

    cache = given.place / "root" / "bench" / "cache"
    make_cache(given.binary, given.photos, cache, int(given.gb * GB), given.shard_samples)
    shards = json.loads((cache / "manifest.json").read_text())["shards"]
    sizes = [shard["bytes"] for shard in shards]
    mean = round(sum(shard["samples"] for shard in shards) / len(shards))
    per_shard = given.shard_samples or mean

    best: int | None = None
    kept = given.order
    if kept and kept.exists():
        uses = json.loads(kept.read_text())
        best = fewest_bytes(uses, sizes, given.limit)
    else:
        try:
            uses = shards_of_batches(given.place, shards, per_shard, given.window)
        except ImportError as e:
            print(f"no count of the fewest bytes: {e}", file=sys.stderr)
        else:
            best = fewest_bytes(uses, sizes, given.limit)
            if kept:
                kept.write_text(json.dumps(uses))

    local = run_ranks(given.binary, str(cache), per_shard, given.window)
    results: dict[str, Any] = {
        "cache_bytes": sum(sizes),
        "shards": len(sizes),
        "samples": sum(shard["samples"] for shard in shards),
        "samples_per_shard": per_shard,
        "limit": given.limit,
        "window": given.window,
        "fewest_bytes": best,
        "local": local,
        "runs": [],
    }
    local_rate = sum(one["images_per_s"] for one in local)
    print(f"local cache: {local_rate:.0f} images/s by {WORLD} ranks")
    for rate in [float(one) for one in given.rates.split(",")]:
        here = given.place / "here"
        shutil.rmtree(here, ignore_errors=True)
        with served(given.place / "root") as proxy:
            proxy.limit_rate(rate * 1e6 or None)
            folder = Folder(here)
            began = time.monotonic()
            reports = run_ranks(
                given.binary,
                "s3://bench/cache",
                per_shard,
                given.window,
                *("--fetch-dir", str(here), "--fetch-limit", f"{given.limit // 1024}K"),
            )
            seconds = time.monotonic() - began
            found = {
                "rate_mb_s": rate or None,
                "seconds": seconds,
                "same_digests": [
                    a["digest"] == b["digest"] for a, b in zip(reports, local, strict=True)
                ],
                "bytes_fetched": proxy.bytes_sent(SHARDS),
                "fetched_to_fewest": best and proxy.bytes_sent(SHARDS) / best,
                "most_gets_of_one_key": proxy.most_gets_at_once(SHARDS),
                "asked_twice_at_once": sorted(proxy.asked_twice_at_once(SHARDS)),
                "images_per_s": sum(one["images_per_s"] for one in reports),
                "to_local": sum(one["images_per_s"] for one in reports) / local_rate,
                "folder": folder.end(),
                "ranks": reports,
            }
        results["runs"].append(found)
        given.out.write_text(json.dumps(results, indent=1) + "\n")
        shown = {key: value for key, value in found.items() if key != "ranks"}
        print(json.dumps(shown, indent=1))
    shutil.rmtree(given.place / "here", ignore_errors=True)


if __name__ == "__main__":
    main()
