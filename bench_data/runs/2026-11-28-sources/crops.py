"""Images/s and memory of several crops: featherload beside lightly in torch's DataLoader.

    crops.py PHOTOS OUT.json [--cpus 0,1] [--workers N] [--rounds N] [--seconds S] [--device]

Both read the same list of JPEG files with the same transform object, DINOTransform (2 crops of 224,
8 of 96) or SimCLRTransform (2 of 224), batch 64. With --device both give tensors on the GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
import turns

BATCH = 64


def one(photos: str, loader: str, recipe: str, workers: int, seconds: float, device: bool) -> None:
    from lightly.transforms import DINOTransform, SimCLRTransform
    from torchvision.datasets import ImageFolder

    dino = recipe == "dino"
    transform = DINOTransform(n_local_views=8) if dino else SimCLRTransform(input_size=224)
    dataset = ImageFolder(photos, transform)
    dataset.samples = dataset.imgs = dataset.samples * (2560 // len(dataset.samples))
    dataset.targets = [target for _, target in dataset.samples]
    if device:
        torch.zeros(1, device="cuda")
    images, made = 0, None

    def make() -> Callable[[], Iterator[int]]:
        nonlocal made
        options: dict[str, Any] = {"shuffle": True, "num_workers": workers, "drop_last": True}
        if loader == "ours":
            from featherload.torch import DataLoader

            made = DataLoader(dataset, BATCH, **options, **({"device": "cuda"} if device else {}))
        else:
            made = torch.utils.data.DataLoader(
                dataset, BATCH, **options, persistent_workers=True, pin_memory=device
            )
        return batches

    def batches() -> Iterator[int]:
        nonlocal images
        for views, _labels in made:
            if device and loader != "ours":
                views = [view.to("cuda", non_blocking=True) for view in views]
            if device:
                torch.cuda.current_stream().synchronize()
            assert views[0].is_cuda == device
            assert len(views) == (10 if recipe == "dino" else 2)
            images += len(views[0])
            yield len(views[0])

    result = turns.timed(make, seconds / 2, seconds, device)
    if loader == "ours":
        result["decodes_per_image"] = made.stats()["decoded_images"] / images
    print(json.dumps(result), flush=True)
    os._exit(0)


def main() -> None:
    if sys.argv[1] == "one":
        photos, loader, recipe, workers, seconds, device = sys.argv[2:]
        one(photos, loader, recipe, int(workers), float(seconds), device == "True")
    parse = argparse.ArgumentParser()
    parse.add_argument("photos")
    parse.add_argument("out", type=Path)
    parse.add_argument("--cpus")
    parse.add_argument("--workers", type=int, default=2)
    parse.add_argument("--rounds", type=int, default=3)
    parse.add_argument("--seconds", type=float, default=15)
    parse.add_argument("--device", action="store_true")
    given = parse.parse_args()
    if given.cpus:
        os.sched_setaffinity(0, {int(cpu) for cpu in given.cpus.split(",")})
    cases = [
        [given.photos, loader, recipe, str(given.workers), str(given.seconds), str(given.device)]
        for recipe in ("simclr", "dino")
        for loader in ("ours", "lightly")
    ]
    results = turns.in_turns(__file__, cases, given.rounds)
    given.out.write_text(json.dumps(results, indent=1))
    print("| transform | loader | images/s | first batch, s | PSS, MiB | without mapped files | device, MiB |")
    print("|---|---|---|---|---|---|---|")
    for row in results:
        _, loader, recipe, *_ = row["case"]
        print(
            f"| {recipe} | {loader} | {row['rate']:.0f} | {row['first_batch_s']:.1f} "
            f"| {row['pss_mib']:.0f} | {row['pss_without_files_mib']:.0f} | {row.get('device_mib', 0):.0f} |"
        )


if __name__ == "__main__":
    main()
