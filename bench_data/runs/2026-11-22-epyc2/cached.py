"""train224 over a cache and over its source, in turns: cached.py FEATHERLOAD SOURCE FOLDER

SOURCE: a folder of pictures, which are listed 24 times. Seven pairs; who goes first
changes.
"""

import json
import statistics
import subprocess
import sys
from pathlib import Path

featherload, source, folder = sys.argv[1], Path(sys.argv[2]).resolve(), Path(sys.argv[3])
folder.mkdir(parents=True, exist_ok=True)
listed = folder / "list.txt"
pictures = sorted(p for p in source.rglob("*") if p.suffix.lower() in (".jpg", ".jpeg"))
lines = [f"{path} {number}\n" for number, path in enumerate(pictures)]
listed.write_text("".join(lines * 24))


def run(*args):
    return json.loads(subprocess.check_output([featherload, *map(str, args), "--json"]))


cache = folder / "cache"
build = ["--list", listed, "--encode", "jpeg:90", "--resize", "shorter:256", "--shard-size", "16M"]
built = run("cache", "build", "/", cache, *build)["report"]
print({key: built[key] for key in ("samples", "shards", "bytes", "seconds")})
options = ["--recipe", "train224", "--batch", 64, "--workers", 2, "--epochs", 3]
sources = {"cache": [cache], "source": ["/", "--list", listed]}
ratios = []
for pair in range(7):
    order = ["cache", "source"] if pair % 2 == 0 else ["source", "cache"]
    rate = {name: run("bench", *sources[name], *options)["images_per_s"] for name in order}
    ratios.append(rate["cache"] / rate["source"])
    print(f"{rate['cache']:8.0f} {rate['source']:8.0f} {ratios[-1]:.2f}")
print(f"median {statistics.median(ratios):.2f}")
