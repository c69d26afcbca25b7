"""CPU time and first batch of two builds in ten interleaved pairs.

    python3 structure_pairs.py OLD NEW DEMO SCENE

DEMO is what `featherload demo` makes, SCENE a scene. OLD has the names of flags of before
13baa2eb.
"""

import json
import resource
import statistics
import subprocess
import sys

OLD, NEW, DEMO, SCENE = sys.argv[1:]


def run(*command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, json.loads(done.stdout)["first_batch_ms"]


def images(binary):
    names = ["--batch", "--workers"] if binary == OLD else ["--batch-size", "--num-workers"]
    size = [names[0], "64", names[1], "2", "--epochs", "20"]
    return run(binary, "bench", DEMO, "--recipe", "train224", *size, "--json")


def rays(binary):
    workers = "--workers" if binary == OLD else "--num-workers"
    return run(binary, "rays", SCENE, workers, "2", "--steps", "1500", "--json")


for case in (images, rays):
    pairs = []
    for i in range(10):
        order = (OLD, NEW) if i % 2 == 0 else (NEW, OLD)
        found = {binary: case(binary) for binary in order}
        pairs.append([new / old for old, new in zip(found[OLD], found[NEW])])
    for what, ratios in zip(("CPU time", "first batch"), zip(*pairs)):
        print(
            f"{case.__name__}: {what} new/old {statistics.median(ratios):.3f} "
            f"({min(ratios):.3f} to {max(ratios):.3f})"
        )
