"""The rate through Python beside the command line's, in turns, and what `next()` costs:
`python_rate.py PHOTOS`. Both count from the first batch on.
"""

import json
import statistics
import subprocess
import sys
import time

import featherload
from featherload._helper import helper

photos = sys.argv[1]
EPOCHS = 4


def by_command_line(batch, dtype):
    said = ["bench", photos, "--recipe", "train224", "--batch", batch, "--dtype", dtype]
    said += ["--workers", 2, "--depth", 4, "--epochs", EPOCHS, "--json"]
    ended = subprocess.run([helper(), *map(str, said)], capture_output=True, text=True, check=True)
    return json.loads(ended.stdout)["images_per_s"]


def by_python(batch, dtype):
    with featherload.Loader(
        photos, "train224", batch, 2, dtype=dtype, framework="torch", epochs=EPOCHS
    ) as loader:
        images, first, before = 0, None, 0
        for _ in range(EPOCHS):
            for got, _ in loader:
                if first is None:
                    # As the command line: without the time to the first batch.
                    first = time.perf_counter()
                else:
                    images += len(got)
        return images / (time.perf_counter() - first)


by_python(64, "f16")  # imports torch
for batch in (64, 256):
    for dtype in ("f16", "f32"):
        pairs = []
        for turn in range(8):
            of = [by_command_line, by_python] if turn % 2 else [by_python, by_command_line]
            rate = {f.__name__: f(batch, dtype) for f in of}
            pairs.append(rate["by_python"] / rate["by_command_line"])
        rounded = [round(pair, 3) for pair in pairs]
        ratio = round(statistics.median(pairs), 3)
        print(json.dumps({"batch": batch, "dtype": dtype, "ratio": ratio, "pairs": rounded}), flush=True)

# Batches are ready: tiny rows, and a pause before each call.
TINY = {"ops": [{"resize": {"size": [8, 8]}}]}
for framework in ("numpy", "torch", "jax"):
    with featherload.Loader(photos, TINY, 64, 2, framework=framework, depth=16, dtype="uint8") as loader:
        costs = []
        for _ in range(3):
            epoch = iter(loader)
            while True:
                time.sleep(0.05)
                asked = time.perf_counter()
                batch = next(epoch, None)
                costs.append((time.perf_counter() - asked) * 1e6)
                if batch is None:
                    break
        costs = sorted(costs[5:])
        spread = {name: round(costs[int(len(costs) * at)], 1) for name, at in (("median", 0.5), ("p90", 0.9))}
        print(json.dumps({"framework": framework, "next_us": spread}), flush=True)
