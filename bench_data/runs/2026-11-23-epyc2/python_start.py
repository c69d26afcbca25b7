"""What 16 workers cost a trainer of 8 GiB and 20 threads at the start: `python_start.py WHICH PHOTOS`,
where WHICH is featherload, fork or spawn (torch's DataLoader)."""

import json
import os
import sys
import threading
import time

import numpy as np

which, photos = sys.argv[1:]


def processes(pid):
    found = [pid]
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/children") as file:
            for child in file.read().split():
                try:
                    found += processes(int(child))
                except OSError:
                    pass
    return found


def pss(pids, ring=False):
    total = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/smaps") as file:
                name = ""
                for line in file:
                    if line[0] in "0123456789abcdef":
                        name = line.split(None, 5)[5].strip() if len(line.split(None, 5)) > 5 else ""
                    elif line.startswith("Pss:") and ring == ("memfd:" in name):
                        total += int(line.split()[1])
        except OSError:
            pass
    return total / 1024


if __name__ == "__main__":
    held = np.ones(8 << 27)  # 8 GiB, each page touched
    done = threading.Event()
    for _ in range(20):
        threading.Thread(target=done.wait, daemon=True).start()
    import torch  # noqa: F401

    if which == "featherload":
        import featherload
    else:
        from torch.utils.data import DataLoader
        from torchvision.datasets import ImageFolder
        from torchvision.transforms import v2

        transform = v2.Compose([
            v2.ToImage(), v2.RandomResizedCrop(224), v2.ToDtype(torch.float32, scale=True),
            v2.Normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225]),
        ])
        dataset = ImageFolder(photos, transform)
    own = os.getpid()
    before = pss([own])
    began = time.perf_counter()
    if which == "featherload":
        loader = featherload.Loader(photos, batch_size=16, num_workers=16, framework="torch")
        started = time.perf_counter() - began
        batches = iter(loader)
    else:
        loader = DataLoader(dataset, 16, shuffle=True, num_workers=16, multiprocessing_context=which)
        batches = iter(loader)
        started = time.perf_counter() - began
    images, labels = next(batches)
    first = time.perf_counter() - began
    everyone = processes(own)
    print(json.dumps({
        "loader": which,
        "start_ms": round(started * 1e3, 1),
        "first_batch_ms": round(first * 1e3),
        "processes": len(everyone) - 1,
        "pss_mib_more": round(pss(everyone) - before, 1),
        "ring_mib": round(pss(everyone, ring=True), 1),
    }))
    sys.stdout.flush()
    os._exit(0)
