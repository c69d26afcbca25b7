"""Makes tests/goldens/opencv.tar: results of PaddleClas' resizes by OpenCV for small images.

    opencv.py OUT

OUT/in/            the images as PPM files, made here from fixed seeds
OUT/expected.u8    rows of RGB, case after case; equal results are stored once
OUT/manifest.json

A case has `ops` as in `transform_ops`, the `picture`, the `size` (height, width) of the
result, and `at`: the first byte of each possible result. ResizeImage has one result, and
RandCropImage one for each box that it may draw. The classes are PaddleClas' own. Only they are
loaded from its file, so that Paddle is not needed.

Every element must be within one level. OpenCV's weights have 11 bits, and it rounds once, after
both passes. featherload rounds also between the passes if no weight is negative, which changes
an element by less than two levels. With negative weights it computes in floats.

Needs NumPy and OpenCV, and PADDLECLAS, the folder `ppcls` of paddleclas 2.4.0.
"""

import ast
import json
import math
import os
import random
import sys
from functools import partial
from pathlib import Path

import cv2
import numpy as np
from PIL import Image

CLASSES = ("UnifiedResize", "OperatorParamError", "ResizeImage", "CropImage", "RandCropImage")


def paddleclas():
    file = Path(os.environ["PADDLECLAS"]) / "data/preprocess/ops/operators.py"
    tree = ast.parse(file.read_text())
    tree.body = [n for n in tree.body if isinstance(n, ast.ClassDef) and n.name in CLASSES]
    found = dict(cv2=cv2, np=np, Image=Image, math=math, random=random, partial=partial)
    exec(compile(tree, str(file), "exec"), found)
    return found


def noise(height, width, seed):
    """An image of random levels."""
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def hard(height, width, seed):
    """An image of black and white only, on which filters overshoot most."""
    return 255 * np.random.default_rng(seed).integers(0, 2, (height, width, 3), dtype=np.uint8)


def photo(height, width, seed):
    """An image like a photo: slopes, an edge, a clipped bright sky, some grain."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:height, :width]
    ground = 70 + 50 * np.sin(x / 4.7) * np.cos(y / 3.9)
    sky = 235 + 2.0 * (height - y)
    light = np.where(y * width < x * height * 0.6 + height * width * 0.2, sky, ground)
    colour = light[..., None] + np.array([9, 0, -14]) + rng.normal(0, 4, (height, width, 3))
    return np.clip(colour, 0, 255).astype(np.uint8)


PICTURES = {
    "noise": noise(13, 17, 1),
    "hard": hard(12, 9, 2),
    "photo": photo(24, 31, 3),
    "one": noise(1, 1, 4),
    "tall": noise(23, 2, 5),
    "flat": noise(2, 25, 6),
    "column": noise(9, 1, 7),
}
BOXES = noise(6, 8, 8)

# Width, height, in the order of PaddleClas.
SIZES = [[1, 1], [5, 7], [16, 11], [34, 26], [17, 30], [29, 3]]
SHORT = [7, 20]
# The default, the same spelled out, and another interpolation.
WAYS = [{}, {"interpolation": "bilinear", "backend": "cv2"}, {"interpolation": "bicubic"}]


class Expected:
    def __init__(self):
        self.bytes = bytearray()
        self.seen = {}

    def keep(self, pixels):
        assert pixels.dtype == np.uint8 and pixels.shape[2] == 3
        raw = np.ascontiguousarray(pixels).tobytes()
        if raw not in self.seen:
            self.seen[raw] = len(self.bytes)
            self.bytes += raw
        return self.seen[raw]


def case(ops, picture, outs, expected):
    return {
        "ops": ops,
        "picture": f"{picture}.ppm",
        "size": outs[0].shape[:2],
        "at": [expected.keep(out) for out in outs],
    }


def resizes(ops, expected):
    for name, picture in PICTURES.items():
        for way in WAYS:
            for size in [*SIZES, 12]:
                params = {"size": size, **way}
                out = ops["ResizeImage"](**params)(picture)
                yield case([{"ResizeImage": params}], name, [out], expected)
            for short in SHORT:
                # The rows of a batch have one size, so crop.
                params, crop = {"resize_short": short, **way}, {"size": short}
                out = ops["CropImage"](**crop)(ops["ResizeImage"](**params)(picture))
                chain = [{"ResizeImage": params}, {"CropImage": crop}]
                yield case(chain, name, [out], expected)


def crops(ops, expected):
    """All square boxes with about a third to three quarters of the image's area."""
    height, width = BOXES.shape[:2]
    scale = [0.34, 0.745]
    sides = {int(math.sqrt(height * width * s)) for s in np.linspace(*scale, 1000)}
    boxes = [
        (left, top, side)
        for side in sorted(sides)
        for left in range(width - side + 1)
        for top in range(height - side + 1)
    ]
    for way in WAYS:
        for size in ([9, 7], [3, 2]):
            params = {"size": size, "scale": scale, "ratio": [1.0, 1.0], **way}
            resize = ops["RandCropImage"](**params)._resize_func
            outs = [resize(BOXES[y : y + n, x : x + n, :], size) for x, y, n in boxes]
            # The results of different boxes must differ by more than the tolerance.
            for i, one in enumerate(outs):
                for other in outs[:i]:
                    assert np.abs(one.astype(int) - other).max() > 2
            yield case([{"RandCropImage": params}], "boxes", outs, expected)


def main():
    out = Path(sys.argv[1])
    (out / "in").mkdir(parents=True, exist_ok=True)
    for old in (out / "in").iterdir():
        old.unlink()
    for name, picture in {**PICTURES, "boxes": BOXES}.items():
        height, width = picture.shape[:2]
        header = f"P6\n{width} {height}\n255\n".encode()
        (out / "in" / f"{name}.ppm").write_bytes(header + picture.tobytes())
    ops, expected = paddleclas(), Expected()
    cases = [*resizes(ops, expected), *crops(ops, expected)]
    lines = ",\n".join(json.dumps(case) for case in cases)
    by = f"OpenCV {cv2.__version__}"
    (out / "manifest.json").write_text(f'{{"by": "{by}", "cases": [\n{lines}\n]}}\n')
    (out / "expected.u8").write_bytes(bytes(expected.bytes))


if __name__ == "__main__":
    main()
