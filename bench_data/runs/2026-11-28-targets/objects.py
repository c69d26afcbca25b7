"""Images/s and memory of images with boxes: featherload beside torchvision in torch's DataLoader.

    objects.py PHOTOS FOLDER OUT.json [--cpus 0,1] [--workers N] [--rounds N] [--seconds S]
               [--objects N]

FOLDER gets a COCO file with N objects of 80 categories for each photo, made once. The loaders take
the same data set of torchvision: `CocoDetection` within `wrap_dataset_for_transforms_v2`, resized
to 640 x 640, flipped, normalised, sanitized; batch 16. `featherload.torch.DataLoader` replaces
torch's. "without objects" reads the same photos without boxes. `../2026-11-28-sources/turns.py`
measures.
"""

from __future__ import annotations

import argparse
import contextlib
import io
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
SIZE = (640, 640)
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def annotated(photos: str, folder: str, objects: int) -> Path:
    """The COCO file. Photos are repeated until there are about SAMPLES images."""
    file = Path(folder) / f"instances_{objects}.json"
    if file.exists():
        return file
    found = sorted(Path(photos).rglob("*.JPEG")) or sorted(Path(photos).rglob("*.jpg"))
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    for photo in found * (SAMPLES // len(found)):
        with Image.open(photo) as image:
            width, height = image.size
        number = len(images) + 1
        name = str(photo.relative_to(photos))
        images.append({"id": number, "file_name": name, "width": width, "height": height})
        random = np.random.default_rng(number)
        for _ in range(objects):
            x, y = random.uniform(0, 0.7, 2) * (width, height)
            w, h = random.uniform(0.05, 0.3, 2) * (width, height)
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    "image_id": number,
                    "category_id": int(random.integers(1, 81)),
                    "bbox": [round(float(v), 2) for v in (x, y, w, h)],
                    "area": round(float(w * h), 2),
                    "iscrowd": 0,
                    "segmentation": [],
                }
            )
    categories = [{"id": n, "name": f"category {n}"} for n in range(1, 81)]
    whole = {"images": images, "annotations": annotations, "categories": categories}
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(whole))
    return file


def dataset(photos: str, file: Path) -> Any:
    from torchvision.datasets import CocoDetection, wrap_dataset_for_transforms_v2
    from torchvision.transforms import v2

    transforms = v2.Compose(
        [
            v2.Resize(SIZE),
            v2.RandomHorizontalFlip(),
            v2.ToImage(),
            v2.SanitizeBoundingBoxes(),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize(MEAN, STD),
        ]
    )
    with contextlib.redirect_stdout(io.StringIO()):
        return wrap_dataset_for_transforms_v2(CocoDetection(photos, file, transforms=transforms))


def lists(rows: Any) -> Any:
    return tuple(zip(*rows, strict=True))


def one(photos: str, file: str, loader: str, workers: int, seconds: float) -> None:
    torch.set_num_threads(1)
    options: dict[str, Any] = {"shuffle": True, "num_workers": workers, "drop_last": True}

    def make() -> Callable[[], Iterator[int]]:
        made: Any
        if loader == "torch":
            made = torch.utils.data.DataLoader(
                dataset(photos, Path(file)),
                BATCH,
                **options,
                persistent_workers=True,
                collate_fn=lists,
            )
        elif loader == "featherload":
            from featherload.torch import DataLoader

            made = DataLoader(dataset(photos, Path(file)), BATCH, **options)
        else:
            import featherload

            recipe = {
                "featherload": 1,
                "ops": [
                    {"resize": {"size": [*SIZE]}},
                    {"random_horizontal_flip": {"p": 0.5}},
                    {"normalize": {"mean": MEAN, "std": STD}},
                ],
            }
            images = json.loads(Path(file).read_text())["images"]
            # As torchvision opens them.
            more: dict[str, Any] = {"framework": "torch", "orientation": "stored", **options}
            paths = [str(Path(photos) / one["file_name"]) for one in images]
            if loader == "without objects":
                made = featherload.Loader(paths, recipe, BATCH, decode="full", **more)
            else:
                made = featherload.Loader(photos, recipe, BATCH, objects=file, **more)

        def batches() -> Iterator[int]:
            for images, _ in made:
                yield len(images)

        return batches

    print(json.dumps(turns.timed(make, seconds / 2, seconds, False)), flush=True)
    os._exit(0)


def main() -> None:
    if sys.argv[1] == "one":
        photos, file, loader, workers, seconds = sys.argv[2:]
        one(photos, file, loader, int(workers), float(seconds))
    parse = argparse.ArgumentParser()
    parse.add_argument("photos")
    parse.add_argument("folder")
    parse.add_argument("out", type=Path)
    parse.add_argument("--cpus")
    parse.add_argument("--workers", type=int, default=2)
    parse.add_argument("--rounds", type=int, default=3)
    parse.add_argument("--seconds", type=float, default=12)
    parse.add_argument("--objects", type=int, default=12)
    given = parse.parse_args()
    if given.cpus:
        os.sched_setaffinity(0, {int(cpu) for cpu in given.cpus.split(",")})
    file = annotated(given.photos, given.folder, given.objects)
    loaders = ("featherload", "featherload, COCO file", "without objects", "torch")
    cases = [
        [given.photos, str(file), loader, str(given.workers), str(given.seconds)]
        for loader in loaders
    ]
    results = turns.in_turns(__file__, cases, given.rounds)
    # Paths of the machine are not recorded.
    for row in results:
        row["case"][:2] = ["photos", str(Path("folder") / file.name)]
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
