"""A cache of 10,000 single objects in an S3 store behind a slow proxy: built, killed, resumed.

    python objects.py PLACE --photos ../shared/data/photos [--count 10000] [--rate 20e6]

Puts the photos, made small, into moto's S3 server as single objects of 10 classes. Builds a cache
of them through a proxy that sends at most `--rate` bytes a second, kills the build with SIGKILL
twice, and resumes it. Compares the shards with a build from a folder of the same files. Writes
`objects.json` beside this file.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[2] / "python" / "tests"))


def make(photos: Path, folder: Path, count: int) -> int:
    """Files of 10 classes; their bytes."""
    from PIL import Image

    sources = sorted(
        path for path in photos.rglob("*") if path.suffix.lower() in (".jpg", ".jpeg")
    )
    small = []
    for path in sources[:200]:
        with Image.open(path) as image:
            image = image.convert("RGB")
            image.thumbnail((192, 192))
            to = folder.parent / "one.jpg"
            image.save(to, quality=85)
            small.append(to.read_bytes())
    total = 0
    for number in range(count):
        path = folder / f"class_{number % 10}" / f"{number:06}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        data = small[number % len(small)]
        path.write_bytes(data)
        total += len(data)
    return total


def shards(folder: Path) -> dict[str, str]:
    names = [path for path in sorted(folder.glob("shard-*")) if path.suffix]
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in names}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("place", type=Path)
    parser.add_argument("--photos", type=Path, required=True)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--rate", type=float, default=20e6)
    said = parser.parse_args()
    from object_store import Store, served

    from featherload._helper import helper

    shutil.rmtree(said.place, ignore_errors=True)
    folder = said.place / "set"
    folder.mkdir(parents=True)
    total = make(said.photos, folder, said.count)
    words = ["--shard-samples", "500", "--num-workers", "2"]
    began = time.monotonic()
    subprocess.run(
        [helper(), "cache", "build", folder, said.place / "want", *words],
        check=True,
        capture_output=True,
    )
    result: dict[str, Any] = {
        "objects": said.count,
        "bytes": total,
        "rate_bytes_per_s": said.rate,
        "from_folder_s": round(time.monotonic() - began, 2),
        "builds": [],
    }
    with served() as port:
        store = Store(port, "set")
        url = store.upload(folder, "set")
        os.environ.update(store.env)
        store.proxy.limit_rate(said.rate)
        store.proxy.delay(0.005)
        for dst, kills in (("whole", []), ("got", [4, 12])):
            to = said.place / dst
            # Another folder for each cache.
            fetch = ["--fetch-dir", str(said.place / f"fetched-{dst}")]
            store.proxy.forget()
            for kill in [*kills, None]:
                began = time.monotonic()
                run = subprocess.Popen(
                    [helper(), "cache", "build", url, str(to), *words, *fetch],
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                )
                while kill is not None and run.poll() is None:
                    if len(list(to.glob("shard-*.json"))) >= kill:
                        run.send_signal(signal.SIGKILL)
                        break
                    time.sleep(0.02)
                _, error = run.communicate()
                result["builds"].append(
                    {
                        "to": dst,
                        "killed_after_shards": kill,
                        "rc": run.returncode,
                        "seconds": round(time.monotonic() - began, 2),
                    }
                )
                assert kill is not None or run.returncode == 0, error
            gets = store.proxy.times_fetched("*.jpg")
            result[f"{dst}_requests_most"] = max(gets.values())
            result[f"{dst}_objects_fetched_twice"] = sum(n > 1 for n in gets.values())
            result[f"{dst}_is_equal"] = shards(to) == shards(said.place / "want")
        store.close()
    (HERE / "objects.json").write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
