"""Makes tests/goldens/opencv_blur.tar: results of PaddleClas' BlurImage for small images,
by OpenCV itself.

    opencv_blur.py OUT

OUT/cases.json: `cases`, each with `height`, `width`, `pixels` (rows of RGB, hexadecimal),
the `step` of a recipe, and `expected`. The images are made here from fixed seeds. The two
blurs are BlurImage's `_gaussian_blur` and `_motion_blur`. Their random numbers are
parameters here.

Needs NumPy and OpenCV (5.0.0 here).
"""

import json
import pathlib
import sys

import cv2
import numpy as np


def gaussian(picture, width, height):
    return cv2.GaussianBlur(picture, (width, height), 0)


def motion(picture, length, degrees):
    turn = cv2.getRotationMatrix2D((length / 2, length / 2), degrees, 1)
    kernel = cv2.warpAffine(np.diag(np.ones(length)), turn, (length, length)) / length
    blurred = cv2.filter2D(picture, -1, kernel)
    cv2.normalize(blurred, blurred, 0, 255, cv2.NORM_MINMAX)
    return np.array(blurred, dtype=np.uint8)


def main():
    pictures = []
    for height, width in [(13, 17), (3, 70), (9, 4)]:
        rng = np.random.default_rng(100 * height + width)
        pictures.append(rng.integers(40, 200, (height, width, 3), dtype=np.uint8))
    cases = []

    def add(picture, step, expected):
        cases.append(
            {
                "height": picture.shape[0],
                "width": picture.shape[1],
                "pixels": picture.tobytes().hex(),
                "step": step,
                "expected": expected.tobytes().hex(),
            }
        )

    for picture in pictures:
        for width, height in [(5, 5), (7, 11), (11, 7), (9, 9)]:
            step = {"gaussian_blur": {"width": width, "height": height}}
            add(picture, step, gaussian(picture, width, height))
        for length, degrees in [(5, 0), (7, -45), (9, 44), (11, -7), (11, 30)]:
            step = {"motion_blur": {"length": length, "degrees": degrees}}
            add(picture, step, motion(picture, length, degrees))
    lines = ",\n".join(json.dumps(case) for case in cases)
    (pathlib.Path(sys.argv[1]) / "cases.json").write_text(f'{{"cases": [\n{lines}\n]}}\n')
    print(f"{len(cases)} cases")


if __name__ == "__main__":
    main()
