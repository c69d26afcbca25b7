"""Rays of a GPU through Python: `rays_python.py SCENE`. First that they are the CPU's, then steps
of 262,144 rays a second: `next` alone, and with one kernel of torch's on each batch.
"""

import sys
import time

import featherload
import numpy as np
import torch

STEPS, RAYS = 3000, 262_144

gpu = featherload.Rays(sys.argv[1], RAYS, joining=0, device="cuda", framework="torch")
cpu = featherload.Rays(sys.argv[1], RAYS, joining=0)
for _ in range(3):
    made, wanted = next(gpu), next(cpu)
    for name in made:
        apart = made[name].cpu().numpy().astype(np.float64) - wanted[name].astype(
            np.float64
        )
        print(name, made[name].dtype, tuple(made[name].shape), np.abs(apart).max())
del made, wanted
for touched in (False, True):
    next(gpu)
    torch.cuda.synchronize()
    total = torch.zeros(3, device="cuda")
    began = time.perf_counter()
    for _ in range(STEPS):
        batch = next(gpu)
        if touched:
            total += batch.colors[0]
    torch.cuda.synchronize()
    seconds = time.perf_counter() - began
    print(
        "touched" if touched else "next alone",
        round(STEPS * RAYS / seconds / 1e6),
        "M rays/s",
    )
    del batch
