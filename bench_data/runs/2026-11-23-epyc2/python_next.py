"""What `next()` costs when batches are ready: `python_next.py PHOTOS`. The first one of each epoch
comes after a pause; the others follow at once.
"""

import json
import statistics
import sys
import time

import featherload

TINY = {"ops": [{"resize": {"size": [8, 8]}}]}
for framework in ("numpy", "torch", "jax"):
    with featherload.Loader(
        sys.argv[1], TINY, 64, 2, framework=framework, depth=64, dtype="uint8", epochs=100
    ) as loader:
        warm, cold = [], []
        for _ in range(8):
            epoch = iter(loader)
            time.sleep(0.4)
            costs = []
            while True:
                asked = time.perf_counter()
                batch = next(epoch, None)
                if batch is None:
                    break
                costs.append((time.perf_counter() - asked) * 1e6)
            cold.append(costs[0])
            warm += costs[1:]
        seen = {"warm": statistics.median(warm), "cold": statistics.median(cold[1:])}
        print(json.dumps({"framework": framework, "next_us": seen}), flush=True)
