"""Writes tests/goldens/straight.json: bent images, and the straight images of OpenCV.

The calls are those of nerfstudio 1.1.5, `_undistort_image` of
data/datamanagers/full_images_datamanager.py, for perspective lenses and fisheyes. Each case
has the `keys` of a transforms.json, the bent `image` and the `straight` one as rows of RGB in
hexadecimal digits, and the `size` (height, width) of the straight one.
"""

import json
import sys
from pathlib import Path

import cv2
import numpy as np


def pictured(height, width):
    """An image of short waves, in which a shift of half a pixel changes every area."""
    rows, cols = np.mgrid[:height, :width].astype(np.float64)
    waves = [
        np.sin(cols * 0.21 + rows * 0.06),
        np.cos(rows * 0.19 - cols * 0.04),
        np.sin((rows + cols) * 0.11) * np.cos((rows - cols) * 0.09),
    ]
    return np.rint(127.5 + 115 * np.stack(waves, -1)).astype(np.uint8)


def case(name, keys):
    image = pictured(keys["h"], keys["w"])
    size = (keys["w"], keys["h"])
    matrix = np.array(
        [
            [keys["fl_x"], 0, keys["cx"] - 0.5],
            [0, keys["fl_y"], keys["cy"] - 0.5],
            [0, 0, 1],
        ]
    )
    of = lambda *names: np.array([keys.get(key, 0.0) for key in names])
    if keys["camera_model"] == "OPENCV_FISHEYE":
        bent = of("k1", "k2", "k3", "k4")
        new = cv2.fisheye.estimateNewCameraMatrixForUndistortRectify(
            matrix, bent, size, np.eye(3), balance=0
        )
        maps = cv2.fisheye.initUndistortRectifyMap(matrix, bent, np.eye(3), new, size, cv2.CV_32FC1)
        straight = cv2.remap(image, *maps, interpolation=cv2.INTER_LINEAR)
    else:
        bent = of("k1", "k2", "p1", "p2", "k3")
        new, (left, top, width, height) = cv2.getOptimalNewCameraMatrix(matrix, bent, size, 0)
        straight = cv2.undistort(image, matrix, bent, None, new)
        straight = straight[top : top + height, left : left + width]
    return {
        "name": name,
        "keys": keys,
        "image": image.tobytes().hex(),
        "size": straight.shape[:2],
        "straight": np.ascontiguousarray(straight).tobytes().hex(),
    }


def main(to):
    base = {"w": 83, "h": 61, "fl_x": 64.25, "fl_y": 62.5, "cx": 42.75, "cy": 29.125}
    tall = {"w": 45, "h": 77, "fl_x": 57.5, "fl_y": 58.25, "cx": 21.5, "cy": 39.75}
    barrel = {"camera_model": "OPENCV", "k1": -0.12, "k2": 0.02, "p1": 0.001, "p2": -0.002}
    cushion = {"camera_model": "OPENCV", "k1": 0.06, "k2": -0.01, "k3": 0.002, "p2": 0.001}
    fisheye = {"camera_model": "OPENCV_FISHEYE", "k1": 0.031, "k2": -0.012, "k3": 0.002}
    cases = [
        case("barrel", {**base, **barrel}),
        case("cushion", {**base, **cushion}),
        case("tall barrel", {**tall, **barrel}),
        case("fisheye", {**base, **fisheye, "fl_x": 45.5, "fl_y": 46.25}),
        case("tall fisheye", {**tall, **fisheye}),
    ]
    lines = ",\n".join(json.dumps(one, separators=(",", ":")) for one in cases)
    Path(to).write_text(f'{{"cases":[\n{lines}\n]}}\n')


main(sys.argv[1])
