"""Makes tests/goldens/warp.tar: results of OpenCV 4 for rotations of small images, with the
calls of PaddlePaddle's `rotate` of arrays.

    OPENCV4=path warp.py OUT

OUT/in.u8, OUT/out.u8   images, made here from fixed seeds, and the expected results
OUT/manifest.json       `by`, and the cases

Files are rows of RGB without a gap. A case has `degrees`, `interpolation`, `fill`,
`size` (height, width) of both images, `input` and `expected` (first byte in the files).
Every element must be equal.

`OPENCV4` is a folder with an OpenCV 4 (`pip install --target`). Version 5 computes places
that differ by up to half a 32nd of a pixel, and so other levels. Needs NumPy.
"""

import json
import os
import sys
from pathlib import Path

sys.path.insert(0, os.environ["OPENCV4"])

import cv2
import numpy as np

assert cv2.__version__.startswith("4."), cv2.__version__
cv2.setNumThreads(1)

HOW = {"nearest": cv2.INTER_NEAREST, "bilinear": cv2.INTER_LINEAR, "bicubic": cv2.INTER_CUBIC}
SIZES = [(1, 1), (2, 3), (5, 3), (17, 23), (16, 16), (9, 31)]
ANGLES = [0.0, 90.0, -90.0, 180.0, 45.0, -45.0, 33.3, -12.75, 77.123456, -89.99, 0.001]


def noise(size, seed):
    """An image of random levels."""
    return np.random.default_rng(seed).integers(0, 256, (*size, 3), dtype=np.uint8)


def main():
    out = Path(sys.argv[1])
    pictures, expected, cases = bytearray(), bytearray(), []
    for i, size in enumerate(SIZES):
        picture = noise(size, 700 + i)
        at = len(pictures)
        pictures += picture.tobytes()
        for j, degrees in enumerate(ANGLES):
            for interpolation, how in HOW.items():
                fill = [0, 0, 0] if (i + j) % 2 == 0 else [255, 3, 124]
                h, w = size
                matrix = cv2.getRotationMatrix2D((w / 2.0, h / 2.0), degrees, 1)
                turned = cv2.warpAffine(picture, matrix, (w, h), flags=how, borderValue=fill)
                cases.append(
                    {
                        "degrees": degrees,
                        "interpolation": interpolation,
                        "fill": fill,
                        "size": size,
                        "input": at,
                        "expected": len(expected),
                    }
                )
                expected += turned.tobytes()
    (out / "in.u8").write_bytes(pictures)
    (out / "out.u8").write_bytes(expected)
    lines = ",\n".join(json.dumps(case) for case in cases)
    by = f"OpenCV {cv2.__version__}"
    (out / "manifest.json").write_text(f'{{"by": "{by}", "cases": [\n{lines}\n]}}\n')
    print(f"{len(cases)} cases")


if __name__ == "__main__":
    main()
