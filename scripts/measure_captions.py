#!/usr/bin/env python3
"""Measures how long a data set of many captions takes to start, and its memory.

    measure_captions.py PHOTOS ROWS...

For each number of rows it writes JSON lines with a caption of about 70 characters for each row,
whose images are the photos of the folder in turns. Then it starts a loader with two workers, with
and without captions, and prints seconds until the loader exists and until the first batch, the PSS
of all processes after it, and the bytes a row beyond those of a run of 1,000 rows. Each run is a
process of its own. Needs the Python package.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from turns import pss

FEW = 1000


def write(path: Path, photos: list[Path], rows: int) -> None:
    with path.open("w") as out:
        for row in range(rows):
            photo = photos[row % len(photos)]
            text = f"a photograph, row {row:>9} of {rows:>9}, with some words that describe it"
            out.write(json.dumps({"file_name": str(photo), "caption": text}) + "\n")


def start(source: str, root: str, has_captions: bool, answers: Any) -> None:
    import featherload

    began = time.perf_counter()
    loader = featherload.Loader(
        source,
        "train224",
        root=root,
        batch_size=64,
        num_workers=2,
        captions="caption" if has_captions else None,
    )
    started = time.perf_counter() - began
    batch = next(iter(loader))
    if has_captions:
        assert len(batch.captions) == 64 and batch.captions[0].startswith("a photograph")
    first = time.perf_counter() - began
    answers.send((started, first, pss(os.getpid())))
    os._exit(0)


def measured(source: Path, root: Path, has_captions: bool) -> tuple[float, float, int]:
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=start, args=(str(source), str(root), has_captions, there))
    process.start()
    there.close()
    answer = here.recv()
    process.join()
    return answer


def main() -> None:
    folder, *counts = sys.argv[1:]
    root = Path(folder).resolve()
    photos = sorted(path.relative_to(root) for path in root.rglob("*") if path.is_file())
    base: dict[bool, int] = {}
    print("| rows | captions | start, s | first batch, s | MiB | bytes a row |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as made:
        for rows in [FEW, *map(int, counts)]:
            source = Path(made) / f"{rows}.jsonl"
            write(source, photos, rows)
            for has_captions in (False, True):
                started, first, memory = measured(source, root, has_captions)
                base.setdefault(has_captions, memory)
                each = (memory - base[has_captions]) / rows if rows > FEW else 0
                cells = [f"{rows:,}", "yes" if has_captions else "no"]
                cells += [f"{started:.2f}", f"{first:.2f}", f"{memory / 2**20:.0f}"]
                print("|", " | ".join([*cells, f"{each:.0f}"]), "|", flush=True)
            source.unlink()


if __name__ == "__main__":
    main()
