"""Views on a GPU through Python: rate alone and with a kernel of torch's on each, and whether
they are the CPU's.

    views_python.py SCENE
"""

import sys
import time

import torch

import featherload


def rate(steps, work, **options):
    with featherload.Views(sys.argv[1], device="cuda", framework="torch", **options) as views:
        for _ in range(2 * len(views)):
            next(views)
        torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(steps):
            image = next(views).image
            if work:
                image.sum()
        torch.cuda.synchronize()
        return steps / (time.perf_counter() - began)


for options in ({}, {"undistort": True}, {"undistort": True, "dtype": "float32"}):
    print(options, *(f"{rate(8000, work, **options):.0f}/s" for work in (False, True)))

with (
    featherload.Views(sys.argv[1], device="cuda", framework="torch", undistort=True) as gpu,
    featherload.Views(sys.argv[1], framework="torch", undistort=True) as cpu,
):
    apart = 0
    for _ in range(len(cpu)):
        made, wanted = next(gpu), next(cpu)
        apart += int((made.image.cpu() != wanted.image).sum())
    print("numbers of an epoch that are not the CPU's:", apart)
