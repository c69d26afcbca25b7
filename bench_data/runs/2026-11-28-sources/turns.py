"""Measurements in turns: each in a fresh process, so that other load meets all of them alike."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any


def tree(process: int) -> list[int]:
    """A process and all its descendants."""
    found, waiting = [], [process]
    while waiting:
        found.append(waiting.pop())
        try:
            for task in os.listdir(f"/proc/{found[-1]}/task"):
                with open(f"/proc/{found[-1]}/task/{task}/children") as file:
                    waiting += [int(child) for child in file.read().split()]
        except OSError:
            continue
    return found


def pss_mib(process: int) -> tuple[float, float]:
    """PSS of a process and its descendants: all of it, and without mapped files (page cache)."""
    total = of_files = 0
    for one in tree(process):
        try:
            with open(f"/proc/{one}/smaps_rollup") as file:
                values = {line.split()[0]: int(line.split()[1]) for line in file.readlines()[1:]}
        except OSError:
            continue
        total += values["Pss:"]
        of_files += values["Pss_File:"]
    return total / 1024, (total - of_files) / 1024


def device_mib() -> float:
    """Used memory of the device, of all programs."""
    import torch

    free, total = torch.cuda.mem_get_info()
    return (total - free) / 2**20


def timed(
    make: Callable[[], Callable[[], Iterator[int]]], warm: float, seconds: float, device: bool
) -> dict[str, float]:
    """Makes a loader, and runs through its epochs. What ``make`` returns gives the number of images
    in each batch of one epoch. Memory is counted from before the loader is made.
    """

    def endless() -> Iterator[int]:
        while True:
            yield from batches()

    base = pss_mib(os.getpid())
    used = device_mib() if device else 0.0
    start = time.monotonic()
    batches = make()
    stream = endless()
    next(stream)
    first = time.monotonic() - start
    while time.monotonic() - start < warm:
        next(stream)
    count, start, seen = 0, time.monotonic(), []
    while (spent := time.monotonic() - start) < seconds:
        count += next(stream)
        if len(seen) < 3 and spent > seconds * (len(seen) + 1) / 4:
            seen.append(pss_mib(os.getpid()))
    result = {"rate": count / spent, "first_batch_s": first}
    for n, name in enumerate(("pss_mib", "pss_without_files_mib")):
        result[name] = max(one[n] for one in seen) - base[n]
    if device:
        import torch

        torch.cuda.synchronize()
        result["device_mib"] = device_mib() - used
    return result


def in_turns(script: str, cases: list[list[str]], rounds: int) -> list[dict[str, Any]]:
    """Runs ``script one CASE`` for each case, ``rounds`` times. Each prints JSON in its last line."""
    results: list[list[dict[str, Any]]] = [[] for _ in cases]
    for turn in range(rounds):
        for n, case in enumerate(cases):
            done = subprocess.run(
                [sys.executable, script, "one", *case], capture_output=True, text=True
            )
            if done.returncode:
                sys.exit(f"{case}: {done.stderr[-3000:]}")
            results[n].append(json.loads(done.stdout.splitlines()[-1]))
            print(turn, *case, results[n][-1], file=sys.stderr, flush=True)
    return [
        {"case": case}
        | {key: statistics.median(run[key] for run in runs) for key in runs[0]}
        | {"rates": [round(run["rate"], 1) for run in runs]}
        for case, runs in zip(cases, results, strict=True)
    ]
