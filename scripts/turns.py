"""Runs of scripts that compare loaders: each a process of its own, with its rate and its memory."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any


def pss(process: int) -> int:
    """Of a process and its descendants, in bytes."""
    total = 0
    try:
        for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                total += int(line.split()[1]) * 1024
        for thread in os.listdir(f"/proc/{process}/task"):
            children = (
                Path(f"/proc/{process}/task/{thread}/children").read_text().split()
            )
            total += sum(pss(int(child)) for child in children)
    except OSError:
        pass
    return total


def measure(run: Callable[..., None], *args: Any) -> tuple[float, int]:
    """Calls ``run(*args, times)`` in another process. It sends something when its measured part
    begins, then its rate. Returns the rate, and the most PSS of all processes until then.
    """
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=run, args=(*args, there))
    process.start()
    there.close()
    here.recv()
    most = 0
    while not here.poll(0.3):
        most = max(most, pss(process.pid or 0))
    rate = here.recv()
    # Workers of some loaders do not end by themselves.
    process.join(2)
    process.terminate()
    process.join()
    return rate, most


def rate_of(batches: Iterator[int], seconds: float, warm_up: int, times: Any) -> None:
    """Takes batches, which are numbers of rows, and sends rows a second."""
    for _ in range(warm_up):
        next(batches)
    times.send("begins")
    rows, began = 0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        rows += next(batches)
    times.send(rows / (time.perf_counter() - began))


def on_one_thread() -> None:
    """Settings of a process that is measured. Peers give their workers functions that only a fork
    can pass on.
    """
    import torch

    torch.set_num_threads(1)
    multiprocessing.set_start_method("fork", force=True)


def print_turns(
    head: str,
    sides: Sequence[str],
    turns: int,
    once: Callable[[str], tuple[float, int]],
) -> None:
    """Measures the sides in turns, and prints a row of a table for each. ``head``: its first cells."""
    made: dict[str, list[tuple[float, int]]] = {side: [] for side in sides}
    for _ in range(turns):
        for side in sides:
            made[side].append(once(side))
    for side, runs in made.items():
        rates = ", ".join(f"{rate:.1f}" for rate, _ in runs)
        memory = ", ".join(f"{most / 2**20:.0f}" for _, most in runs)
        print(f"| {head} | {side} | {rates} | {memory} |", flush=True)
