#!/usr/bin/env python3
"""Stored latents beside a file for each image, as trainers of diffusion models keep them.

    compare_stored_values.py PHOTOS FOLDER [WORKERS...]

Stores latents of 4 x 128 x 128 float32 for each photo, made of the pixels in place of a VAE: with
`featherload.cache.Writer`, and with `numpy.savez` as sd-scripts. Then reads them in random order, in
batches of 16: with `featherload.Loader(..., stored=, images=False)`, and with torch's DataLoader over
the files. Prints values a second in turns, and the most PSS of all processes. Files are in the page
cache. Needs torch, in the environment of `scripts/python`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from turns import measure, on_one_thread, print_turns, rate_of

BATCH = 16
RECIPE = {
    "featherload": 1,
    "ops": [{"random_resized_crop": {"size": [128, 128]}}, {"cast": {"dtype": "f32"}}],
}
TURNS = 3


def latents(images: Any) -> Any:
    """4 x 128 x 128 values for each image of 3 x 128 x 128."""
    return np.concatenate([images, images[:, :1]], axis=1)


def loader(photos: Path, **options: Any) -> Any:
    import featherload

    return featherload.Loader(photos, RECIPE, batch_size=BATCH, **options)


def prepare(photos: Path, folder: Path) -> tuple[float, float]:
    """Stores the latents both ways. Returns the seconds of writing."""
    import featherload

    (folder / "npz").mkdir(parents=True, exist_ok=True)
    made = loader(photos, num_workers=1, on_error="stop")
    ours = files = 0.0
    with featherload.cache.Writer(folder / "parts", made) as writer:
        for batch in made:
            values = latents(batch.images)
            began = time.perf_counter()
            writer.write(batch, latents=values)
            middle = time.perf_counter()
            for at, row in zip(batch.ids, values, strict=True):
                size = np.array([1024, 1024])
                corner = np.array([0, 0, 1024, 1024])
                path = folder / f"npz/{at}.npz"
                np.savez(path, latents=row, original_size=size, crop_ltrb=corner)
            ours += middle - began
            files += time.perf_counter() - middle
        began = time.perf_counter()
        writer.flush()
        ours += time.perf_counter() - began
    return ours, files


def with_files(photos: Path, folder: Path, workers: int) -> Iterator[int]:
    import torch

    class Latents(torch.utils.data.Dataset[Any]):
        def __init__(self) -> None:
            self.paths = sorted((folder / "npz").iterdir())

        def __len__(self) -> int:
            return len(self.paths)

        def __getitem__(self, at: int) -> Any:
            found = np.load(self.paths[at])
            sizes = (
                torch.from_numpy(found["original_size"]),
                torch.from_numpy(found["crop_ltrb"]),
            )
            return torch.from_numpy(found["latents"]), *sizes

    made = torch.utils.data.DataLoader(
        Latents(), BATCH, shuffle=True, num_workers=workers, persistent_workers=True
    )
    while True:
        for values, *_ in made:
            yield len(values)


def with_parts(photos: Path, folder: Path, workers: int) -> Iterator[int]:
    made = loader(
        photos,
        columns=["latents"],
        stored=folder / "parts",
        images=False,
        framework="torch",
        num_workers=workers,
    )
    while True:
        for batch in made:
            yield len(batch["latents"])


SIDES = {"npz files, DataLoader": with_files, "featherload": with_parts}


def run(side: str, photos: Path, folder: Path, workers: int, times: Any) -> None:
    on_one_thread()
    rate_of(SIDES[side](photos, folder, workers), 4, 20, times)


def measured(side: str, photos: Path, folder: Path, workers: int) -> tuple[float, int]:
    return measure(run, side, photos, folder, workers)


def main() -> int:
    if len(sys.argv) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    photos, folder = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
    ours, files = prepare(photos, folder)
    print(f"writing: featherload {ours:.1f} s, npz files {files:.1f} s\n")
    print("| workers | side | values/s | PSS, MiB |")
    print("|---|---|---|---|")
    for count in [int(count) for count in sys.argv[3:]] or [2]:
        once = partial(measured, photos=photos, folder=folder, workers=count)
        print_turns(str(count), [*SIDES], TURNS, once)
    return 0


if __name__ == "__main__":
    sys.exit(main())
