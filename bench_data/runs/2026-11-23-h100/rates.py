"""Rates through Python beside the command line's, in turns:
`rates.py PHOTOS WORKERS [BATCH DTYPE]`, else all four pairs of batch and dtype.

`hold`: the loop's variables hold a batch while the next one is awaited; `drop`: they do not.
"""

import json
import statistics
import subprocess
import sys
import time

import featherload
from featherload._helper import helper

photos, workers, epochs = sys.argv[1], sys.argv[2], 12


def by_command_line(batch, dtype):
    said = ["bench", photos, "--recipe", "train224", "--batch", batch, "--dtype", dtype]
    said += [
        "--workers",
        workers,
        "--depth",
        4,
        "--epochs",
        epochs,
        "--device",
        "cuda",
        "--json",
    ]
    ended = subprocess.run(
        [helper(), *map(str, said)], capture_output=True, text=True, check=True
    )
    return json.loads(ended.stdout)["images_per_s"]


def by_python(batch, dtype, hold):
    with featherload.Loader(
        photos, "train224", batch, int(workers), "cuda", dtype=dtype, epochs=epochs
    ) as loader:
        images, first = 0, None
        for _ in range(epochs):
            for got, labels in loader:
                if first is None:
                    first = time.perf_counter()
                else:
                    images += len(got)
                if not hold:
                    del got, labels
        return images / (time.perf_counter() - first)


turns = (("cli", "hold", "drop"), ("drop", "hold", "cli"), ("hold", "cli", "drop"))
pairs = [(int(sys.argv[3]), sys.argv[4])] if len(sys.argv) > 3 else []
pairs = pairs or [(batch, dtype) for batch in (64, 256) for dtype in ("f16", "f32")]
for batch, dtype in pairs:
    rows = []
    for number in range(15):
        row = {}
        for what in turns[number % 3]:
            if what == "cli":
                row[what] = by_command_line(batch, dtype)
            else:
                row[what] = by_python(batch, dtype, what == "hold")
        rows.append(row)
        print(row, flush=True)
    ratios = {
        what: statistics.median(row[what] / row["cli"] for row in rows)
        for what in ("hold", "drop")
    }
    print(
        json.dumps({"batch": batch, "dtype": dtype, **ratios, "rows": rows}), flush=True
    )
