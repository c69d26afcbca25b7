"""Makes tests/goldens/paddleclas.tar: results of PaddleClas' own operations for small
images and lines of its configs.

    paddleclas.py OUT

OUT/in/            the images, PNG, made here from fixed seeds
OUT/expected/      their pixels: rows of RGB without a gap, `f32`, little-endian
OUT/manifest.json  for each case: `ops`, the lines of a config's transform_ops after
                   DecodeImage; `input`, `expected`, the `height` and `width` of the
                   result, `tolerance` in levels, and `why` for every tolerance above 0

PADDLECLAS is the folder `ppcls` of paddleclas 2.4.0, as for policies.py. Its classes are
loaded without the imports of their file (Paddle). They need Paddle's draw of a random box,
and this script has the part of it without random numbers. CropImageAtRatio is newer than the
package, so this script has its code, which uses the package's own UnifiedResize.

Needs NumPy, Pillow and OpenCV.
"""

import ast
import functools
import hashlib
import json
import os
import pathlib
import random
import sys

import cv2
import numpy as np
from PIL import Image

BYTES = "both round weights to fixed point of other precisions"
FLOATS = "sums of float32 in another order"


class RandomResizedCrop:
    """paddle.vision's RandomResizedCrop if no drawn box fits: the largest box in the
    middle."""

    def __init__(self, size, scale, ratio, interpolation, keys):
        self.scale, self.ratio = scale, ratio

    def _get_param(self, picture):
        height, width = picture.shape[:2]
        assert self.scale[0] == self.scale[1] == 1 and width / height < self.ratio[0]
        h = int(round(width / self.ratio[0]))
        return (height - h) // 2, 0, h, width


class Functional:
    """Functions of paddle.vision.transforms.functional, for arrays."""

    @staticmethod
    def crop(picture, top, left, height, width):
        return picture[top : top + height, left : left + width]

    @staticmethod
    def _is_pil_image(picture):
        return False

    @staticmethod
    def _is_numpy_image(picture):
        return True


def classes(*names):
    folder = pathlib.Path(os.environ["PADDLECLAS"]) / "data/preprocess/ops"
    tree = ast.parse((folder / "operators.py").read_text())
    tree.body = [node for node in tree.body if getattr(node, "name", None) in names]
    of = {
        "RandomResizedCrop": RandomResizedCrop,
        "F": Functional,
        "Image": Image,
        "cv2": cv2,
        "np": np,
        "partial": functools.partial,
        "random": random,
    }
    exec(compile(tree, "operators.py", "exec"), of)
    return [of[name] for name in names]


def main():
    if "PADDLECLAS" not in os.environ:
        sys.exit("set PADDLECLAS to the folder ppcls of paddleclas 2.4.0: see this script's head")
    out = pathlib.Path(sys.argv[1])
    for folder in ("in", "expected"):
        (out / folder).mkdir(parents=True, exist_ok=True)
        for old in (out / folder).iterdir():
            old.unlink()
    resize, padding, keep = classes("UnifiedResize", "Padv2", "CropWithPadding")

    def at_ratio(picture, size, pad, interpolation="bilinear"):
        height, width = picture.shape[:2]
        side = int(size / (size + pad) * min(height, width))
        y, x = (height - side) // 2, (width - side) // 2
        part = picture[y : y + side, x : x + side, :]
        return resize(interpolation=interpolation)(part, (size, size))

    cases = []

    def add(height, width, text, make, tolerance=0, why=None):
        rng = np.random.default_rng(1000 + 100 * height + width)
        picture = rng.integers(0, 256, (height, width, 3), dtype=np.uint8)
        name = f"in/{height}x{width}.png"
        Image.fromarray(picture).save(out / name)
        made = make(picture).astype(np.float32)
        if not text.startswith("- CropImageAtRatio"):
            # A crop of the whole result, since the rows of a batch need a known size.
            text += f"\n- CropImage: {{size: [{made.shape[1]}, {made.shape[0]}]}}"
        raw = np.ascontiguousarray(made).astype("<f4").tobytes()
        expected = f"expected/{hashlib.sha256(raw).hexdigest()[:12]}.f32"
        (out / expected).write_bytes(raw)
        case = {
            "ops": text,
            "input": name,
            "expected": expected,
            "height": made.shape[0],
            "width": made.shape[1],
            "tolerance": tolerance,
        }
        if why is not None:
            case["why"] = why
        cases.append(case)

    for height, width, size, pad in [(31, 44, 16, 3), (57, 40, 14, 2), (21, 21, 30, 5), (9, 50, 7, 0)]:
        for how in ("bilinear", "bicubic"):
            text = f"- CropImageAtRatio: {{size: {size}, pad: {pad}, interpolation: {how}}}"
            tolerance = 1
            add(height, width, text, lambda p: at_ratio(p, size, pad, how), tolerance, BYTES)
    add(33, 64, "- CropImageAtRatio: {size: 28, pad: 4}", lambda p: at_ratio(p, 28, 4), 1, BYTES)

    for height, width in [(21, 30), (32, 64), (5, 33)]:
        add(height, width, "- Padv2: {size: []}", padding(size=[]))
        for mode in (0, 1, 2):
            text = f"- Padv2: {{size: [67, 40], pad_mode: {mode}, fill_value: [1.25, 0, 255]}}"
            add(height, width, text, padding([67, 40], 32, mode, None, [1.25, 0, 255]))
    text = "- Padv2: {size: [], size_divisor: 8, pad_mode: 1, fill_value: 0}"
    add(21, 30, text, padding([], 8, 1, None, 0))
    text = "- Padv2: {size: 41, pad_mode: -1, offsets: [11, 20], fill_value: 7}"
    add(21, 30, text, padding(41, 32, -1, [11, 20], 7))
    # An image that already has the size does not change, whatever the offsets.
    text = "- Padv2: {size: [30, 21], pad_mode: -1, offsets: [11, 20]}"
    add(21, 30, text, padding([30, 21], 32, -1, [11, 20]))
    # Padv2 returns floats, so the resize after it keeps fractions.
    text = "- Padv2: {size: 41, pad_mode: 1}\n- ResizeImage: {size: [23, 19]}"
    pad = padding(41, 32, 1)
    add(21, 30, text, lambda p: resize()(pad(p), (23, 19)), 0.01, FLOATS)
    text = "- Padv2: {size: [41, 37], fill_value: 0}\n- CropImage: {size: [20, 18]}"
    flat = padding([41, 37], 32, 0, None, 0)
    add(21, 30, text, lambda p: flat(p)[9:27, 10:30])

    for height, width, fill in [(21, 30, 0), (40, 33, 93)]:
        ratio = width / height * 2.5
        text = (
            f"- CropWithPadding: {{scale: [1, 1], ratio: [{ratio}, {ratio}], padding_num: {fill}}}"
        )
        add(height, width, text, keep(1, fill, 224, (1, 1), (ratio, ratio)))

    lines = ",\n".join(json.dumps(case) for case in cases)
    (out / "manifest.json").write_text(f'{{"cases": [\n{lines}\n]}}\n')
    print(f"{len(cases)} cases")


if __name__ == "__main__":
    main()
