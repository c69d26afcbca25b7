"""Makes tests/goldens/detection_draws.tar: crops and sizes that libraries draw for detectors.

    detection_draws.py OUT [TIMES]

OUT/manifest.json   `by`, and the cases

A case has `op` as a recipe spells it, `numbers` (the random numbers of the operation in its order,
in 65,536ths), `size` (height, width) of the image, `boxes` (left, top, right, bottom), and
`steps`: `crop` (left, top, width, height) and `resize` (height, width). For `random_iou_crop` also
`kept`: for each box whether it stays.

OUT/hsv.json        `by`, and the cases: `gains` of hue, saturation and value, and the levels of
                    pixels before and after, by OpenCV's HSV with ultralytics' tables in between

torchvision's and albumentations' own classes run, with `numbers` instead of their generators.
detectron2's `ResizeScale` and `FixedSizeCrop` are written down from their documentation, because
detectron2 has no wheel.

`TIMES` makes as many times the cases, for a comparison that is not kept.

Needs torch, torchvision 0.29.2, albumentations 2.0.8, OpenCV 5.0.0 and NumPy.
"""

import json
import sys
from pathlib import Path

import albumentations as A
import cv2
import numpy as np
import torch
import torchvision
from torchvision import tv_tensors
from torchvision.transforms import v2
from torchvision.transforms.v2 import _geometry

TIMES = int(sys.argv[2]) if len(sys.argv) > 2 else 1


class Listed:
    """Replaces torch and Python's random. Keeps the numbers that its functions return."""

    def __init__(self, rng):
        self.rng, self.numbers = rng, []

    def __getattr__(self, name):
        return getattr(torch, name)

    def next(self):
        # f32 and f64 represent it exactly.
        self.numbers.append(int(self.rng.integers(0, 65536)) / 65536)
        return self.numbers[-1]

    def rand(self, count):
        return torch.tensor([self.next() for _ in range(count)], dtype=torch.float32)

    def randint(self, *args, low=None, high=None, size=None):
        if low is None:
            low, high = (0, args[0]) if len(args) == 2 else args[:2]
        return torch.tensor(low + int(self.next() * (high - low)))


class ListedRandom(Listed):
    def random(self):
        return self.next()

    def randint(self, low, high):
        return low + int(self.next() * (high - low + 1))


def boxes_of(rng, size, count):
    h, w = size
    out = []
    for _ in range(count):
        x0, y0 = rng.uniform(0, w - 3), rng.uniform(0, h - 3)
        box = [x0, y0, rng.uniform(x0 + 2, w), rng.uniform(y0 + 2, h)]
        out.append([round(float(v), 2) for v in box])
    return out


def by_torchvision(name, made, params, rng, size, boxes):
    listed = Listed(rng)
    _geometry.torch = listed
    try:
        image = torch.zeros(3, *size, dtype=torch.uint8)
        target = tv_tensors.BoundingBoxes(
            boxes or torch.zeros(0, 4), format="XYXY", canvas_size=size, dtype=torch.float32
        )
        found = made.make_params([image, target])
    finally:
        _geometry.torch = torch
    case = {
        "op": {name: params},
        "numbers": listed.numbers,
        "size": size,
        "boxes": boxes,
        "steps": [],
    }
    if name == "random_iou_crop":
        if found:
            crop = [found[key] for key in ("left", "top", "width", "height")]
            case["steps"] = [{"crop": crop}]
            case["kept"] = found["is_within_crop_area"].tolist()
    elif name == "random_resize":
        shape = v2.functional.resize(image, found["size"]).shape[-2:]
        case["steps"] = [{"resize": list(shape)}]
    else:
        case["steps"] = [{"resize": list(found["size"])}]
    return case


def iou_crops(rng):
    for i in range(300 * TIMES):
        size = [int(v) for v in rng.integers(20, 700, 2)]
        boxes = boxes_of(rng, size, int(rng.integers(0, 8)))
        params = {}
        if i % 3 == 1:
            params = {"min_scale": 0.5, "max_scale": 0.9, "trials": 10}
        if i % 3 == 2:
            params = {
                "min_aspect_ratio": 0.8,
                "max_aspect_ratio": 1.5,
                "sampler_options": [0.0, 0.25, 0.6, 1.0],
            }
        made = v2.RandomIoUCrop(**params)
        yield by_torchvision("random_iou_crop", made, params, rng, size, boxes)


def sizes(rng):
    for _ in range(100 * TIMES):
        size = [int(v) for v in rng.integers(20, 1500, 2)]
        side = int(rng.integers(20, 900))
        params = {"min_size": side, "max_size": side + int(rng.integers(1, 300))}
        made = v2.RandomResize(**params)
        yield by_torchvision("random_resize", made, params, rng, size, [])
        params = {"min_size": [side, side + 32, side + 64]}
        if rng.random() < 0.5:
            params["max_size"] = int(rng.integers(side, 2 * side + 64))
        made = v2.RandomShortestSize(**params)
        yield by_torchvision("random_shortest_size", made, params, rng, size, [])
        to = int(rng.integers(30, 1200))
        made = v2.ScaleJitter((to, to), (0.3, 2.0))
        params = {"size": [to, to], "scale": [0.3, 2.0]}
        yield by_torchvision("scale_jitter", made, params, rng, size, [])


def large_scales(rng):
    for _ in range(100 * TIMES):
        size = [int(v) for v in rng.integers(20, 1500, 2)]
        to = [int(v) for v in rng.integers(30, 1200, 2)]
        listed = Listed(rng)
        numbers = [listed.next(), listed.next()]
        scale = 0.1 + (2.0 - 0.1) * numbers[0]
        by = np.minimum(*(np.multiply(to, scale) / size))
        resized = np.round(np.multiply(size, by)).astype(int)
        room = np.maximum(resized - to, 0)
        top, left = np.round(np.multiply(room, numbers[1])).astype(int).tolist()
        high, wide = np.minimum(resized, to).tolist()
        steps = [{"resize": resized.tolist()}]
        if [high, wide] != resized.tolist():
            steps.append({"crop": [left, top, wide, high]})
        if [high, wide] != to:
            steps.append({"pad": [0, 0, to[1] - wide, to[0] - high]})
        op = {"large_scale_jitter": {"size": to, "scale": [0.1, 2.0]}}
        yield {"op": op, "numbers": numbers, "size": size, "boxes": [], "steps": steps}


def safe_crops(rng):
    for i in range(300 * TIMES):
        size = [int(v) for v in rng.integers(20, 700, 2)]
        boxes = boxes_of(rng, size, int(rng.integers(0, 5)))
        rate = [0.0, 0.3, 1.0][i % 3]
        made = A.RandomSizedBBoxSafeCrop(64, 48, erosion_rate=rate)
        listed = ListedRandom(rng)
        made.py_random = listed
        h, w = size
        shares = np.array(boxes, np.float64).reshape(-1, 4) / [w, h, w, h]
        data = {"bboxes": shares.astype(np.float32)}
        found = made.get_params_dependent_on_data({"shape": (h, w, 3)}, data)
        left, top, right, bottom = (int(v) for v in found["crop_coords"])
        if right <= left or bottom <= top:
            continue
        op = {"random_sized_bbox_safe_crop": {"size": [64, 48], "erosion_rate": rate}}
        crop = [left, top, right - left, bottom - top]
        yield {
            "op": op,
            "numbers": listed.numbers,
            "size": size,
            "boxes": boxes,
            "steps": [{"crop": crop}, {"resize": [64, 48]}],
        }


def hsv(rng):
    """Tables as ultralytics documents them: no hue stays without saturation."""
    for i in range(12 * TIMES):
        # OpenCV rounds the last pixels of other rows, and truncates all else.
        count = 384
        pixels = rng.integers(0, 256, (1, count, 3)).astype(np.uint8)
        # Greys, and pixels with two equal levels.
        pixels[0, :20] = pixels[0, :20, :1]
        pixels[0, 20:60, 1] = pixels[0, 20:60, 2]
        gains = [0.0, 0.0, 0.0] if i == 0 else (rng.uniform(-1, 1, 3) * [0.5, 0.9, 0.6]).tolist()
        levels = np.arange(256, dtype=np.float64)
        tables = [
            ((levels + gains[0] * 180) % 180).astype(np.uint8),
            np.clip(levels * (gains[1] + 1), 0, 255).astype(np.uint8),
            np.clip(levels * (gains[2] + 1), 0, 255).astype(np.uint8),
        ]
        tables[1][0] = 0
        parts = cv2.split(cv2.cvtColor(pixels, cv2.COLOR_RGB2HSV))
        moved = cv2.merge([cv2.LUT(part, table) for part, table in zip(parts, tables)])
        after = cv2.cvtColor(moved, cv2.COLOR_HSV2RGB)
        yield {"gains": gains, "before": pixels.ravel().tolist(), "after": after.ravel().tolist()}


def main():
    rng = np.random.default_rng(5)
    cases = [*iou_crops(rng), *sizes(rng), *large_scales(rng), *safe_crops(rng)]
    by = f"torchvision {torchvision.__version__.split('+')[0]}, albumentations {A.__version__}"
    for case in cases:
        case["numbers"] = [int(65536 * number) for number in case["numbers"]]
    short = [case for case in cases if len(case["numbers"]) < 400]
    lines = ",\n".join(json.dumps(case) for case in short)
    text = f'{{"by": "{by}", "cases": [\n{lines}\n]}}\n'
    (Path(sys.argv[1]) / "manifest.json").write_text(text)
    lines = ",\n".join(json.dumps(case) for case in hsv(rng))
    text = f'{{"by": "OpenCV {cv2.__version__}", "cases": [\n{lines}\n]}}\n'
    (Path(sys.argv[1]) / "hsv.json").write_text(text)


main()
