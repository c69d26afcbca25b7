"""Makes a data set with many objects for measurements of memory.

    make.py PHOTOS OUT

OUT/images       each photo below PHOTOS 600 times, as hard links
OUT/NAME.json    COCO files with 100,000, 1,000,000 and 4,000,000 boxes, evenly on all images

Needs Pillow.
"""

import json
import os
import random
import shutil
import sys
from pathlib import Path

from PIL import Image, ImageOps

photos, out = Path(sys.argv[1]), Path(sys.argv[2])
folder = out / "images"
folder.mkdir(parents=True, exist_ok=True)
images = []
for number, photo in enumerate(sorted(p for p in photos.glob("*/*.*"))):
    width, height = ImageOps.exif_transpose(Image.open(photo)).size
    first = folder / f"{number:03}_000.jpg"
    shutil.copy(photo, first)
    for copy in range(600):
        name = f"{number:03}_{copy:03}.jpg"
        if copy:
            os.link(first, folder / name)
        images.append({"id": len(images), "file_name": name, "width": width, "height": height})
categories = [{"id": n, "name": f"c{n}"} for n in range(1, 81)]
for name, total in (("100k", 100_000), ("1m", 1_000_000), ("4m", 4_000_000)):
    draw, number = random.Random(1), 0
    with (out / f"{name}.json").open("w") as file:
        file.write(f'{{"images":{json.dumps(images)},"categories":{json.dumps(categories)}')
        file.write(',"annotations":[')
        for at, image in enumerate(images):
            width, height = image["width"], image["height"]
            while number < total * (at + 1) // len(images):
                x, y = draw.random() * (width - 8), draw.random() * (height - 8)
                box = [x, y, 4 + draw.random() * (width - x - 5), 4 + draw.random() * (height - y - 5)]
                file.write("," if number else "")
                file.write(
                    json.dumps(
                        {
                            "id": number,
                            "image_id": at,
                            "category_id": 1 + number % 80,
                            "bbox": [round(v, 2) for v in box],
                            "area": 20,
                            "iscrowd": 0,
                        }
                    )
                )
                number += 1
        file.write("]}")
