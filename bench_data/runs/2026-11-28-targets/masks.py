"""Images/s and memory of images with masks: featherload beside torchvision in torch's DataLoader.

    masks.py PHOTOS FOLDER OUT.json [--cpus 0,1] [--workers N] [--rounds N] [--seconds S]

FOLDER gets a mask for each photo (a palette PNG of blobs, 21 labels), made once. Both loaders read
the same photos and masks: random resized crop to 512, flip, normalisation; batch 16. torch decodes
with Pillow and moves tv_tensors. `../2026-11-28-sources/turns.py` measures.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

sys.path.insert(0, str(Path(__file__).parent.parent / "2026-11-28-sources"))

import turns

BATCH = 16
SAMPLES = 1024
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def listed(photos: str, folder: str) -> list[tuple[str, str]]:
    pairs = []
    for photo in sorted(Path(photos).rglob("*.JPEG")) or sorted(Path(photos).rglob("*.jpg")):
        mask = Path(folder) / f"{photo.stem}.png"
        if not mask.exists():
            with Image.open(photo) as image:
                width, height = image.size
            numbers = np.random.default_rng(len(pairs)).integers(0, 21, (9, 9), np.uint8)
            blobs = Image.fromarray(numbers).resize((width, height), Image.Resampling.NEAREST)
            blobs = blobs.convert("P")
            blobs.putpalette([(37 * n) % 256 for n in range(768)])
            mask.parent.mkdir(parents=True, exist_ok=True)
            blobs.save(mask)
        pairs.append((str(photo), str(mask)))
    return pairs * (SAMPLES // len(pairs))


class Pairs(torch.utils.data.Dataset[Any]):
    def __init__(self, pairs: list[tuple[str, str]]) -> None:
        from torchvision import tv_tensors
        from torchvision.transforms import v2

        self.pairs = pairs
        self.transform = v2.Compose(
            [
                v2.RandomResizedCrop(512, antialias=True),
                v2.RandomHorizontalFlip(),
                v2.ToDtype({tv_tensors.Image: torch.float32, "others": None}, scale=True),
                v2.Normalize(MEAN, STD),
            ]
        )

    def __len__(self) -> int:
        return len(self.pairs)

    def __getitem__(self, index: int) -> Any:
        from torchvision import tv_tensors
        from torchvision.transforms.v2 import functional as fn

        photo, mask = self.pairs[index]
        with Image.open(photo) as image:
            pixels = tv_tensors.Image(fn.pil_to_tensor(image.convert("RGB")))
        with Image.open(mask) as image:
            labels = tv_tensors.Mask(torch.from_numpy(np.array(image)))
        pixels, labels = self.transform(pixels, labels)
        return pixels, labels


def one(photos: str, folder: str, loader: str, workers: int, seconds: float) -> None:
    torch.set_num_threads(1)
    pairs = listed(photos, folder)

    def make() -> Callable[[], Iterator[int]]:
        options: dict[str, Any] = {"shuffle": True, "num_workers": workers, "drop_last": True}
        if loader == "torch":
            made = torch.utils.data.DataLoader(
                Pairs(pairs), BATCH, **options, persistent_workers=True
            )

            def batches() -> Iterator[int]:
                for images, labels in made:
                    assert labels.shape == (BATCH, 512, 512)
                    yield len(images)

            return batches
        import featherload

        recipe = {
            "featherload": 1,
            "ops": [
                {"random_resized_crop": {"size": 512}},
                {"random_horizontal_flip": {"p": 0.5}},
                {"normalize": {"mean": MEAN, "std": STD}},
            ],
        }
        images = [photo for photo, _ in pairs]
        masks = None if loader == "without masks" else [mask for _, mask in pairs]
        ours = featherload.Loader(
            images, recipe, BATCH, masks=masks, framework="torch", orientation="stored", **options
        )

        def batches() -> Iterator[int]:
            for batch in ours:
                if masks is not None:
                    assert batch.masks.shape == (BATCH, 512, 512)
                yield len(batch.images)

        return batches

    print(json.dumps(turns.timed(make, seconds / 2, seconds, False)), flush=True)
    os._exit(0)


def main() -> None:
    if sys.argv[1] == "one":
        photos, folder, loader, workers, seconds = sys.argv[2:]
        one(photos, folder, loader, int(workers), float(seconds))
    parse = argparse.ArgumentParser()
    parse.add_argument("photos")
    parse.add_argument("folder")
    parse.add_argument("out", type=Path)
    parse.add_argument("--cpus")
    parse.add_argument("--workers", type=int, default=2)
    parse.add_argument("--rounds", type=int, default=3)
    parse.add_argument("--seconds", type=float, default=12)
    given = parse.parse_args()
    if given.cpus:
        os.sched_setaffinity(0, {int(cpu) for cpu in given.cpus.split(",")})
    listed(given.photos, given.folder)
    cases = [
        [given.photos, given.folder, loader, str(given.workers), str(given.seconds)]
        for loader in ("ours", "without masks", "torch")
    ]
    results = turns.in_turns(__file__, cases, given.rounds)
    # Paths of the machine are not recorded.
    for row in results:
        row["case"][:2] = ["photos", "folder"]
    given.out.write_text(json.dumps(results, indent=1))
    print("| loader | images/s | first batch, s | PSS, MiB | without mapped files |")
    print("|---|---|---|---|---|")
    for row in results:
        print(
            f"| {row['case'][2]} | {row['rate']:.0f} | {row['first_batch_s']:.1f} "
            f"| {row['pss_mib']:.0f} | {row['pss_without_files_mib']:.0f} |"
        )


if __name__ == "__main__":
    main()
