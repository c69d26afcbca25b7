"""Seconds to the first batch, and PSS of all processes: start_captions.py PHOTOS LIST [captions]."""

import os
import sys
import time
from collections.abc import Iterator

import featherload


def processes(first: int) -> Iterator[int]:
    yield first
    with open(f"/proc/{first}/task/{first}/children") as file:
        for child in file.read().split():
            yield from processes(int(child))


def mebibytes() -> float:
    total = 0
    for process in processes(os.getpid()):
        with open(f"/proc/{process}/smaps_rollup") as file:
            total += sum(int(line.split()[1]) for line in file if line.startswith("Pss:"))
    return total / 1024


photos, table = sys.argv[1:3]
rule = featherload.Captions("caption", drop=0.1, shuffle=True, keep=1)
captions = rule if len(sys.argv) > 3 else None
began = time.perf_counter()
loader = featherload.Loader(
    photos, "train224", list=table, batch_size=64, num_workers=2, captions=captions
)
started = time.perf_counter() - began
batch = next(iter(loader))
texts = batch.captions if captions else []
first = time.perf_counter() - began
print(
    f"{len(loader.sampler)} rows: start {started:.2f} s, first batch {first:.2f} s, "
    f"{mebibytes():.0f} MiB, {texts[:1]}"
)
