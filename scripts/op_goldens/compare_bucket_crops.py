"""Compares rows of buckets with those of trainers: sizes, crops and pixels.

    compare_bucket_crops.py PHOTOS MADE SIDE

MADE is what `bucket_crops.py --photos PHOTOS MADE SIDE` has written. Prints one line for each
style: photos, photos with another size or crop, and the number of values for each difference in
levels. Needs the Python package.
"""

import json
import sys
from pathlib import Path

import numpy as np

import featherload
from featherload import samplers

PHOTOS, MADE, SIDE = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
# These ignore the orientation of EXIF.
STORED = ("sd-scripts", "simpletuner")


def compare(style: str) -> None:
    lines = (MADE / f"{style}.jsonl").read_text().splitlines()
    wanted = {line["photo"]: line for line in map(json.loads, lines)}
    pixels = np.memmap(MADE / f"pixels-{style}.bin", np.uint8, "r")
    orientation = "stored" if style in STORED else "exif"
    ops = [
        {"decode": {"mode": "full", "orientation": orientation}},
        {"cover_crop": {"size": SIDE}},
        {"cast": {"dtype": "u8"}},
    ]
    sampler = samplers.Buckets(
        area=SIDE * SIDE,
        style=style.removesuffix("-pillow"),
        sides=(SIDE // 2, SIDE * 2) if style == "sd-scripts" else None,
    )
    recipe = {"featherload": 1, "ops": ops}
    loader = featherload.Loader(PHOTOS, recipe, batch_size=8, sampler=sampler, layout="nhwc")
    photos, wrong, levels = 0, 0, np.zeros(256, np.int64)
    with loader:
        for batch in loader:
            for row, path in enumerate(batch.paths()):
                want = wanted[path.name]
                photos += 1
                of_row = [batch.original_size[row], batch.crop[row], batch.target_size[row]]
                sizes = [[want["height"], want["width"]], want["crop"], want["row"]]
                if [pair.tolist() for pair in of_row] != sizes:
                    wrong += 1
                    continue
                got = np.asarray(batch.images[row]).astype(np.int16)
                theirs = pixels[want["at"] : want["at"] + want["bytes"]].reshape(got.shape)
                differences = np.abs(got - theirs).ravel()
                levels += np.bincount(differences, minlength=256)
    counts = {level: int(count) for level, count in enumerate(levels) if count}
    print(f"{style} {SIDE}: {photos} photos, {wrong} with other sizes or crops, levels {counts}")


for found in sorted(MADE.glob("*.jsonl")):
    compare(found.stem)
