"""Draws the pictures of the gallery on data of `featherload demo`, and writes its page.

    gallery.py EXECUTABLE FOLDER

FOLDER gets the pictures and gallery.md, each picture with the command that drew it. Data are made
in a temporary folder.
"""

from __future__ import annotations

import json
import math
import os
import shlex
import struct
import subprocess
import sys
import tempfile
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

NORMALIZE = "  - normalize: {mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225]}\n"
RECIPES = {
    "colours.yaml": "ops:\n"
    "  - random_resized_crop: {size: 224, scale: [0.5, 1.0]}\n"
    "  - random_horizontal_flip\n"
    "  - color_jitter: {brightness: 0.4, contrast: 0.4, saturation: 0.4, hue: 0.1}\n" + NORMALIZE,
    "augment.yaml": "ops:\n"
    "  - random_resized_crop: {size: 224, scale: [0.5, 1.0]}\n"
    "  - rand_augment: {num_ops: 2, magnitude: 9}\n"
    "  - random_erasing: {p: 0.5}\n" + NORMALIZE,
    "dino.yaml": "crops:\n"
    "  - ops:\n"
    "      - random_resized_crop: {size: 224, scale: [0.32, 1.0]}\n"
    "      - random_horizontal_flip\n"
    "  - count: 6\n"
    "    ops:\n"
    "      - random_resized_crop: {size: 98, scale: [0.05, 0.32]}\n"
    "      - random_horizontal_flip\n",
    "detect.yaml": "ops:\n"
    "  - random_resized_crop: {size: 320, scale: [0.5, 1.0]}\n"
    "  - random_horizontal_flip\n" + NORMALIZE,
    "segment.yaml": "ops:\n"
    "  - random_resized_crop: {size: 320, scale: [0.4, 1.0]}\n"
    "  - random_horizontal_flip\n" + NORMALIZE,
    "qwen.yaml": "ops:\n"
    "  - patches: {style: qwen, patch_size: 14, max_pixels: 100352}\n"
    "  - normalize:\n"
    "      mean: [0.48145466, 0.4578275, 0.40821073]\n"
    "      std: [0.26862954, 0.26130258, 0.27577711]\n",
    "tiles.yaml": "ops:\n  - tiles: {style: llava_next, tile_size: 112}\n" + NORMALIZE,
}
# Ellipses of two demo photos: centre, radii, angle in degrees, category.
ELLIPSES = {
    "class_07/0005.jpg": [
        (391, 93, 38, 59, 5, "large"),
        (315, 300, 64, 118, 6, "large"),
        (157, 228, 45, 66, -28, "large"),
        (45, 325, 31, 20, -18, "small"),
    ],
    "class_06/0002.jpg": [
        (350, 286, 63, 41, 0, "large"),
        (94, 212, 36, 21, 0, "small"),
        (243, 170, 20, 48, 28, "small"),
        (39, 302, 22, 38, -20, "small"),
        (270, 52, 32, 55, -25, "large"),
    ],
}
WIDTH, HEIGHT = 500, 375
# Heading, file, caption, command. Commands run in this order only where a file is named twice.
PICTURES = [
    (
        "Draws of a recipe",
        "preview.png",
        "Each original with the boxes of its draws, then the draws as the model gets them.",
        "featherload preview photos/train --recipe train224 --rows 3 --out preview.png",
    ),
    (
        "Colours",
        "colours.png",
        "`color_jitter` and a crop.",
        "featherload preview photos/train --recipe colours.yaml --rows 2 --out colours.png",
    ),
    (
        "Policies",
        "augment.png",
        "`rand_augment` and `random_erasing`.",
        "featherload preview photos/train --recipe augment.yaml --rows 2 --out augment.png",
    ),
    (
        "Several crops of each image",
        "dino.png",
        "One global crop and six local ones, as [self-supervised training](python/crops.md) "
        "needs them.",
        "featherload preview photos/train --recipe dino.yaml --rows 2 --draws 1 --out dino.png",
    ),
    (
        "Detection",
        "detect.png",
        "Boxes and instance masks move with their image. Objects outside a crop are dropped: "
        "[targets](targets.md).",
        "featherload preview photos/train --recipe detect.yaml --rows 2 --draws 3 "
        """--objects '{"files": "ellipses.json", "masks": "full"}' --out detect.png""",
    ),
    (
        "Segmentation",
        "segment.png",
        "Each label in its colour of Pascal VOC: [segmentation](segmentation.md). `some` has two "
        "of the photos.",
        "featherload preview some --recipe segment.yaml --rows 2 --draws 3 "
        "--masks '../masks/{dir}/{stem}.png' --out segment.png",
    ),
    (
        "Patches of a vision-language model",
        "patches.png",
        "Each image is resized to whole [patches](patches.md).",
        "featherload preview photos/train --recipe qwen.yaml --rows 3 --draws 1 --out patches.png",
    ),
    (
        "Tiles",
        "tiles.png",
        "The canvas of LLaVA-NeXT, which is cut into [tiles](patches.md#tiles). The image keeps "
        "its aspect ratio.",
        "featherload preview photos/train --recipe tiles.yaml --rows 3 --draws 1 --out tiles.png",
    ),
    (
        "Files of every kind",
        "kinds.png",
        "CMYK, palettes, transparency, 16 bits, orientation of EXIF: [formats](formats.md).",
        "featherload preview mixed --recipe eval224 --ids 4,6,9 --draws 1 --out kinds.png",
    ),
    (
        "Depth",
        "depth.png",
        "A depth moves with its image: [rasters](rasters.md).",
        "featherload preview scenes/opencv/images --recipe segment.yaml --rows 2 --draws 3 "
        "--raster 'depth=../depths/{stem}.png' --out depth.png",
    ),
    (
        "Memory before the run",
        "plan.svg",
        "`plan` opens no image. It shows each stage of a sample, and the memory of all processes: "
        "[memory](memory.md).",
        "featherload plan photos/train --num-workers 4 --svg plan.svg",
    ),
    (
        "Memory as measured",
        "rss.svg",
        "Each page of memory is counted once, for 1, 2 and 4 workers. The executable that built "
        "this site was measured, which may be one for tests.",
        "featherload rss photos/train --num-workers 1,2,4 --seconds 0.5 --svg rss.svg",
    ),
    (
        "Throughput over time",
        "bench.svg",
        "It also shows where the workers' time went: [speed](measuring.md). The executable that "
        "built this site was measured. One for tests is slower than a release.",
        "featherload bench photos/train --batch-size 16 --epochs 6 --svg bench.svg",
    ),
    (
        "Cameras of a scene",
        "scene.svg",
        "From above and from the side: [scenes](scenes.md).",
        "featherload index scenes/opencv --svg scene.svg",
    ),
    (
        "Rays of a scene",
        "rays.svg",
        "The rays of one step as dots in their colours, where they meet the room.",
        "featherload rays scenes/opencv --rays 1024 --steps 20 --svg rays.svg",
    ),
]
# Timings and memory of these are disturbed by others.
ALONE = {"rss.svg", "bench.svg"}
INTRO = """# Gallery

featherload draws what it does. These pictures were made with this site, by the commands below
them, from data that `featherload demo` writes:

```sh
featherload demo photos/train --images 64
featherload demo mixed --kind mixed --images 16
featherload demo scenes --scene
```

Boxes and masks are outlines of shapes in two of these photos, written by `site/gallery.py`. In a
notebook, `loader.preview()` shows rows of the running loader: [monitoring](python/monitoring.md).

"""


def outline(x: float, y: float, a: float, b: float, degrees: float) -> list[tuple[float, float]]:
    """An ellipse as 40 points within the photo."""
    turn = math.radians(degrees)
    points = []
    for k in range(40):
        angle = 2 * math.pi * k / 40
        u, v = a * math.cos(angle), b * math.sin(angle)
        px = x + u * math.cos(turn) - v * math.sin(turn)
        py = y + u * math.sin(turn) + v * math.cos(turn)
        points.append((min(max(px, 0), WIDTH), min(max(py, 0), HEIGHT)))
    return points


def write_objects(path: Path) -> None:
    """A COCO file of the ellipses."""
    names = ["large", "small"]
    images, annotations = [], []
    for number, (file, ellipses) in enumerate(ELLIPSES.items()):
        images.append({"id": number, "file_name": file, "width": WIDTH, "height": HEIGHT})
        for *shape, name in ellipses:
            points = outline(*shape)
            xs, ys = [p[0] for p in points], [p[1] for p in points]
            annotations.append(
                {
                    "id": len(annotations),
                    "image_id": number,
                    "category_id": names.index(name) + 1,
                    "iscrowd": 0,
                    "bbox": [min(xs), min(ys), max(xs) - min(xs), max(ys) - min(ys)],
                    "area": math.pi * shape[2] * shape[3],
                    "segmentation": [[value for point in points for value in point]],
                }
            )
    categories = [{"id": i + 1, "name": name} for i, name in enumerate(names)]
    path.write_text(
        json.dumps({"images": images, "annotations": annotations, "categories": categories})
    )


def write_mask(path: Path, ellipses: list[tuple]) -> None:
    """A label image: 1 for large ellipses, 2 for small ones, as a PNG of 8-bit grey."""
    turned = [
        (x, y, a, b, math.cos(math.radians(d)), math.sin(math.radians(d)), 1 + (name == "small"))
        for x, y, a, b, d, name in ellipses
    ]
    rows = bytearray()
    for py in range(HEIGHT):
        rows.append(0)
        for px in range(WIDTH):
            label = 0
            for x, y, a, b, cos, sin, value in turned:
                u, v = px - x, py - y
                if ((u * cos + v * sin) / a) ** 2 + ((v * cos - u * sin) / b) ** 2 <= 1:
                    label = value
            rows.append(label)

    def chunk(kind: bytes, data: bytes) -> bytes:
        ends = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + ends

    head = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 0, 0, 0, 0)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(bytes(rows)))
        + chunk(b"IEND", b"")
    )


def run(words: list[str], executable: Path, folder: Path) -> None:
    done = subprocess.run(
        [executable, *words[1:]], cwd=folder, capture_output=True, text=True, timeout=120
    )
    if done.returncode:
        sys.exit(f"gallery: {shlex.join(words)}\n{done.stdout}{done.stderr}")


def draw(executable: Path, folder: Path) -> None:
    commands = [line for line in INTRO.splitlines() if line.startswith("featherload demo ")]
    for command in commands:
        run(shlex.split(command), executable, folder)
    for name, text in RECIPES.items():
        (folder / name).write_text(f"featherload: 1\n{text}")
    write_objects(folder / "photos" / "train" / "ellipses.json")
    (folder / "ellipses.json").symlink_to("photos/train/ellipses.json")
    for file, ellipses in ELLIPSES.items():
        write_mask(folder / "masks" / Path(file).with_suffix(".png"), ellipses)
        place = folder / "some" / file
        place.parent.mkdir(parents=True)
        os.link(folder / "photos" / "train" / file, place)
    beside = [words for _, name, _, words in PICTURES if name not in ALONE]
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        list(threads.map(lambda line: run(shlex.split(line), executable, folder), beside))
    for _, name, _, line in PICTURES:
        if name in ALONE:
            run(shlex.split(line), executable, folder)


def page() -> str:
    parts = [INTRO]
    for heading, file, caption, command in PICTURES:
        recipe = next((name for name in RECIPES if f" {name} " in command), None)
        shown = command.replace(" --", " \\\n    --") if len(command) > 88 else command
        parts.append(f"## {heading}\n\n{caption}\n\n![{heading}](gallery/{file})\n\n")
        parts.append(f"```sh\n{shown}\n```\n\n")
        if recipe is not None:
            parts.append(f"```yaml\n# {recipe}\nfeatherload: 1\n{RECIPES[recipe]}```\n\n")
    return "".join(parts)


def main() -> None:
    executable, out = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    for old in out.iterdir():
        old.unlink()
    with tempfile.TemporaryDirectory() as parent:
        # Pictures show the end of a path.
        folder = Path(parent) / "data"
        folder.mkdir()
        draw(executable, folder)
        for _, file, _, _ in PICTURES:
            (out / file).write_bytes((folder / file).read_bytes())
    (out / "gallery.md").write_text(page())


if __name__ == "__main__":
    main()
