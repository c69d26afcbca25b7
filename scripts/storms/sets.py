"""The data that runs read, made by the binary itself, and the reports of undisturbed runs."""

import json
import math
import os
import re
import shutil
import subprocess
import tarfile
import time
from pathlib import Path

RECIPE = """featherload: 1
ops:
  - decode: {color: rgb}
  - random_resized_crop: {size: 32}
  - random_horizontal_flip
"""
SIDE = 32
BATCH = 8
DEPTH = 3
WORKERS = 3
IMAGES = 64


class World:
    """The binary, the folder of all files, and the data sets in it."""

    row_limit_s = 1.5

    def __init__(self, binary, folder):
        self.binary, self.folder = binary, folder
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self.truths, self.times = {}, {}
        demo, shards = folder / "demo", folder / "shards"
        self.call("demo", demo, "--images", IMAGES)
        self.call("cache", "build", demo, shards, "--resize", "shorter:48", "--encode", "jpeg:80")
        self.pictures = folder / "pictures"
        self.pictures.mkdir()
        # Small images as single files, so that a run takes milliseconds.
        for shard in sorted(shards.glob("*.tar")):
            with tarfile.open(shard) as tar:
                for member in tar.getmembers():
                    if member.name.endswith(".jpg"):
                        bytes_ = tar.extractfile(member).read()
                        (self.pictures / Path(member.name).name).write_bytes(bytes_)
        self.shards = shards
        self.call("demo", folder / "scenes", "--scene")
        self.scene = folder / "scenes" / "many"
        self.recipe = folder / "storm.yaml"
        self.recipe.write_text(RECIPE)

    def call(self, *words):
        environment = os.environ | {"FEATHERLOAD_HELPER": str(self.binary)}
        done = subprocess.run(
            [self.binary, *map(str, words)], capture_output=True, text=True, env=environment
        )
        if done.returncode != 0:
            raise SystemExit(f"storm: {' '.join(map(str, words))}: {done.stderr.strip()}")
        return done.stdout

    # Commands.

    def bench(self, epochs, source=None):
        limit = str(self.row_limit_s)
        return [
            *("bench", source or self.pictures, "--recipe", self.recipe, "--batch-size", BATCH),
            *("--depth", DEPTH, "--num-workers", WORKERS, "--epochs", epochs),
            *("--dtype", "u8", "--row-limit", limit, "--json", "--digest"),
        ]

    def steps(self, command, steps, *more):
        limit = str(self.row_limit_s)
        return [
            *(command, self.scene, "--steps", steps, "--num-workers", 2, "--row-limit", limit),
            *("--json", "--digest", *more),
        ]

    # Undisturbed runs.

    def truth(self, words):
        """The report of the same command with zero workers."""
        words = [str(word) for word in words]
        key = tuple(words)
        if key not in self.truths:
            at = words.index("--num-workers") + 1
            alone = [*words[:at], "0", *words[at + 1 :]]
            self.truths[key] = json.loads(self.call(*alone))
        return self.truths[key]

    def usual(self, words):
        """The seconds of an undisturbed run of the same command, the longer of two."""
        key = tuple(map(str, words))
        if key not in self.times:
            took = []
            for _ in range(2):
                began = time.monotonic()
                self.call(*words)
                took.append(time.monotonic() - began)
            self.times[key] = max(took)
        return self.times[key]

    def least_memory(self, words):
        """The bytes that a run needs beside the images of its scene, from its own error text."""
        if "memory" not in self.times:
            command = [self.binary, *map(str, words), "--memory-limit", "1M"]
            said = subprocess.run(command, capture_output=True, text=True).stderr
            # The text rounds up, so this number is enough.
            found = re.search(r"needs ([\d.]+) ([KMG])iB with the images in a file", said)
            if not found:
                raise SystemExit(f"storm: no size in the error of --memory-limit 1M: {said}")
            unit = {"K": 2**10, "M": 2**20, "G": 2**30}[found[2]]
            self.times["memory"] = math.ceil(float(found[1]) * unit)
        return self.times["memory"]

    def epochs_for(self, seconds):
        """The number of epochs that take about this long undisturbed."""
        if "rate" not in self.times:
            # So many epochs that the time of the start hardly counts.
            self.times["rate"] = self.usual(self.bench(200)) / 200
        return max(2, int(seconds / self.times["rate"]))
