#!/usr/bin/env python3
"""Compares rows of patches and tiles with the image processors of transformers.

    compare_patches.py values PHOTOS [NUMBER]   grids, and values in levels
    compare_patches.py rates PHOTOS WORKERS...  images/s and memory beside torch's DataLoader

The variable ONLY chooses processors: those whose names have it.

Needs featherload, transformers, torch, torchvision and Pillow. PHOTOS is a folder. `values` takes its
first NUMBER images (200). `rates` gives both sides the same files, batches of 8 and f32 rows, and
measures them in turns, three times. Each run is a process of its own. Its memory is the largest sum
of PSS over its processes.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from turns import measure, on_one_thread, print_turns

BATCH = 8


def processors() -> dict[str, Any]:
    from transformers import (
        GotOcr2ImageProcessor,
        LlavaNextImageProcessor,
        Pix2StructImageProcessor,
        Qwen2VLImageProcessor,
        Siglip2ImageProcessor,
    )

    tile = {"height": 336, "width": 336}
    qwen3 = {"shortest_edge": 65536, "longest_edge": 16777216}
    halves = {"image_mean": [0.5] * 3, "image_std": [0.5] * 3}
    all_of_them = {
        "InternVL": GotOcr2ImageProcessor(
            size={"height": 448, "width": 448}, crop_to_patches=True
        ),
        "LLaVA-NeXT": LlavaNextImageProcessor(size=tile, crop_size=tile),
        "Pix2Struct": Pix2StructImageProcessor(),
        "Qwen2-VL": Qwen2VLImageProcessor(),
        "Qwen3-VL": Qwen2VLImageProcessor(size=qwen3, patch_size=16, **halves),
        "Qwen2-VL, 200,704 pixels": Qwen2VLImageProcessor(
            size={"shortest_edge": 3136, "longest_edge": 200704}
        ),
        "SigLIP 2, 256": Siglip2ImageProcessor(),
        "SigLIP 2, 1024": Siglip2ImageProcessor(max_num_patches=1024),
    }
    wanted = os.environ.get("ONLY", "")
    return {name: found for name, found in all_of_them.items() if wanted in name}


def files(photos: Path) -> list[Path]:
    found = (
        path for path in photos.rglob("*") if path.suffix.lower() in {".jpg", ".jpeg"}
    )
    return sorted(found)


def opened(path: Path) -> Any:
    from PIL import Image

    with Image.open(path) as image:
        return image.convert("RGB")


def compare_values(photos: Path, number: int) -> bool:
    import featherload

    paths = files(photos)[:number]
    same = True
    print(f"{len(paths)} photos\n")
    print("| processor | grids | equal | 1 level | 2 | more | most |")
    print("|---|---|---|---|---|---|---|")
    for name, processor in processors().items():
        loader = featherload.Loader(
            paths,
            processor,
            batch_size=1,
            framework="torch",
            num_workers=1,
            shuffle=False,
        )
        counts, grids, most = np.zeros(4, np.int64), 0, 0.0
        for path, batch in zip(paths, loader, strict=True):
            image = opened(path)
            wanted = processor(images=[image], return_tensors="pt")
            found = batch.patches.inputs()
            if "num_patches" in wanted:
                found["num_patches"] = batch.patches.counts
            [values] = set(wanted) & {"pixel_values", "flattened_patches"}
            equal = [
                bool((found[key] == wanted[key]).all())
                for key in set(wanted) - {values}
            ]
            # LLaVA-NeXT: images x tiles x 3 x height x width.
            other = wanted[values].reshape(found[values].shape)
            apart = (found[values] - other).abs().numpy()
            if values == "flattened_patches":
                # The places of patches are equal. One deviation for the whole image.
                equal.append(not apart[..., :2].any())
                apart = apart[..., 2:] * np.asarray(image).std(ddof=1)
            else:
                levels = np.array(processor.image_std) * 255
                is_last = "spatial_shapes" in found
                shape = (-1, 1, 3) if is_last else (len(apart), 3, -1)
                apart = apart.reshape(shape) * (levels if is_last else levels[:, None])
            if not all(equal):
                same = False
                continue
            grids += 1
            most = max(most, float(apart.max()))
            whole = np.minimum(np.rint(apart), 3).astype(np.int64)
            counts += np.bincount(whole.reshape(-1), minlength=4)
        cells = " | ".join(f"{count:,}" for count in counts)
        print(
            f"| {name} | {grids} of {len(paths)} equal | {cells} | {most:.2f} |",
            flush=True,
        )
    return same


def processed(paths: list[Path], processor: Any) -> tuple[Any, Any]:
    """A data set of torch with the inputs of each image, and what joins them to a batch."""
    import torch

    class Photos(torch.utils.data.Dataset[Any]):
        def __len__(self) -> int:
            return len(paths)

        def __getitem__(self, at: int) -> Any:
            return processor(images=[opened(paths[at])], return_tensors="pt")

    def collate(rows: list[Any]) -> dict[str, Any]:
        for row in rows:
            values = row.get("pixel_values")
            # LLaVA-NeXT: the tiles of one image.
            if values is not None and values.ndim == 5:
                row["pixel_values"] = values[0]
        return {key: torch.cat([row[key] for row in rows]) for key in rows[0]}

    return Photos(), collate


def with_processor(paths: list[Path], processor: Any, workers: int) -> Iterator[int]:
    import torch

    data, collate = processed(paths, processor)
    loader = torch.utils.data.DataLoader(
        data,
        BATCH,
        shuffle=True,
        num_workers=workers,
        collate_fn=collate,
    )
    for batch in loader:
        of_images = (
            "image_grid_thw",
            "spatial_shapes",
            "num_patches",
            "image_sizes",
            "attention_mask",
        )
        yield next(len(batch[key]) for key in of_images if key in batch)


def with_recipe(paths: list[Path], recipe: Any, workers: int) -> Iterator[int]:
    """``recipe``: also a processor."""
    import featherload

    loader = featherload.Loader(
        paths,
        recipe,
        batch_size=BATCH,
        framework="torch",
        num_workers=workers,
        epochs=1,
    )
    for batch in loader:
        batch.patches.inputs()
        yield len(batch.ids)


def scaled(paths: list[Path], processor: Any, workers: int) -> Iterator[int]:
    """Like the others, but large JPEGs may be decoded at a smaller scale."""
    from featherload import recipes

    recipe: Any = recipes.preprocessor(processor)
    del recipe["ops"][0]["decode"]["mode"]
    return with_recipe(paths, recipe, workers)


SIDES = {
    "DataLoader": with_processor,
    "featherload": with_recipe,
    "scaled": scaled,
}


def run(side: str, name: str, photos: Path, workers: int, times: Any) -> None:
    on_one_thread()
    batches = SIDES[side](files(photos), processors()[name], workers)
    times.send("begins")
    rows = next(batches)
    began = time.perf_counter()
    for count in batches:
        rows += count
    times.send((rows - BATCH) / (time.perf_counter() - began))


def compare_rates(photos: Path, workers: list[int]) -> None:
    print(f"{len(files(photos))} photos, {os.cpu_count()} processors\n")
    print("| processor | workers | side | images/s | PSS, MiB |")
    print("|---|---|---|---|---|")
    for name in processors():
        for count in workers:
            once = partial(measured, name=name, photos=photos, workers=count)
            print_turns(f"{name} | {count}", [*SIDES], 3, once)


def measured(side: str, name: str, photos: Path, workers: int) -> tuple[float, int]:
    return measure(run, side, name, photos, workers)


def main() -> int:
    if len(sys.argv) < 3 or sys.argv[1] not in ("values", "rates"):
        print(__doc__, file=sys.stderr)
        return 2
    photos = Path(sys.argv[2])
    if sys.argv[1] == "values":
        number = int(sys.argv[3]) if len(sys.argv) > 3 else 200
        return 0 if compare_values(photos, number) else 1
    compare_rates(photos, [int(count) for count in sys.argv[3:]] or [2])
    return 0


if __name__ == "__main__":
    sys.exit(main())
