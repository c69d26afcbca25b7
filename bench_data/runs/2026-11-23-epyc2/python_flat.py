"""Host memory over 500 epochs of 20 batches: `python_flat.py PHOTOS FRAMEWORK`."""

import gc
import json
import sys
import time

import featherload

TINY = {"ops": [{"resize": {"size": [16, 16]}}]}
with featherload.Loader(sys.argv[1], TINY, 4, 2, framework=sys.argv[2], dtype="uint8") as loader:
    seen = []
    began = time.time()
    for epoch in range(501):
        total = 0
        for images, labels in loader:
            total += int(images.sum())
        if epoch in (10, 100, 200, 300, 400, 500):
            gc.collect()
            with open("/proc/self/statm") as file:
                _, resident, shared, *_ = map(int, file.read().split())
            seen.append((resident - shared) * 4096)
    print(json.dumps({"batches": len(loader), "private_bytes": seen, "s": round(time.time() - began, 1)}))
