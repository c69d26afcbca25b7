"""Makes tests/goldens/targets.tar: boxes, keypoints and masks as other libraries move them.

    targets.py OUT [TIMES]

OUT/torchvision.json     chains of torchvision's functions on boxes, keypoints, rotated boxes
OUT/elastic.json         torchvision's `elastic`, with the displacement that a key gives
OUT/albumentations.json  chains in albumentations' Compose, with filters
OUT/hf.json              annotations as transformers' DetrImageProcessor prepares them
OUT/masks.json           polygons and run lengths by pycocotools

A case has `size` (height, width) of the source and `steps`: pairs of the operation's number and the
step. Numbers are those that the library returned. Coordinates may differ by 1e-3 pixels. Masks, run
lengths and what is kept must be equal.

`TIMES` makes as many times the cases, for a comparison that is not kept.

Needs torch, torchvision 0.29.2, albumentations 2.0.8, pycocotools 2.0.11 and transformers.
"""

import json
import math
import random
import sys
from pathlib import Path

import albumentations as A
import numpy as np
import torch
from pycocotools import mask as coco
from torchvision import tv_tensors
from torchvision.transforms.functional import _get_perspective_coeffs
from torchvision.transforms.v2 import functional as F
from torchvision.transforms.v2.functional._geometry import _get_inverse_affine_matrix
from transformers import DetrImageProcessor

DIGITS = 5
TIMES = int(sys.argv[2]) if len(sys.argv) > 2 else 1


def numbers(values):
    """Rounded, as nested lists."""
    return [
        numbers(v)
        if isinstance(v, (list, tuple))
        else (round(v, DIGITS) if math.isfinite(v) else 0)
        for v in values
    ]


# torchvision


def torchvision_step(draw, size, kinds):
    """A step, and the function that applies it."""
    h, w = size
    kind = draw.choice(kinds)
    if kind == "crop":
        ch, cw = draw.randint(max(1, h // 2), h), draw.randint(max(1, w // 2), w)
        top, left = draw.randint(0, h - ch), draw.randint(0, w - cw)
        return {"crop": [left, top, cw, ch]}, lambda v: F.crop(v, top, left, ch, cw)
    if kind == "pad":
        left, top, right, bottom = (draw.randint(0, 9) for _ in range(4))
        return {"pad": [left, top, right, bottom]}, lambda v: F.pad(
            v, [left, top, right, bottom]
        )
    if kind == "resize":
        to = [draw.randint(h // 2 + 1, 2 * h), draw.randint(w // 2 + 1, 2 * w)]
        return {"resize": to}, lambda v: F.resize(v, to)
    if kind == "mirror":
        return "mirror", F.horizontal_flip
    if kind == "upside_down":
        return "upside_down", F.vertical_flip
    if kind == "turn":
        q = draw.randint(1, 3)
        return {"turn": q}, lambda v: F.rotate(v, 90.0 * q, expand=True)
    if kind == "rotate":
        angle, expand = round(draw.uniform(-180, 180), 3), draw.random() < 0.5
        probe = F.rotate(torch.zeros(1, h, w), angle, expand=expand)
        corner = tv_tensors.BoundingBoxes(
            [[0.0, 0, 1, 1]], format="XYXY", canvas_size=size
        )
        if F.rotate(corner, angle, expand=expand).canvas_size != tuple(
            probe.shape[-2:]
        ):
            # The frame of boxes is a pixel off the picture's. Objects here follow the picture.
            return torchvision_step(draw, size, kinds)
        step = {"rotate": [angle, probe.shape[-2], probe.shape[-1]]}
        return step, lambda v: F.rotate(v, angle, expand=expand)
    if kind == "affine":
        angle, scale = draw.uniform(-40, 40), draw.uniform(0.6, 1.5)
        translate = [draw.randint(-9, 9), draw.randint(-9, 9)]
        shear = [draw.uniform(-15, 15), draw.uniform(-15, 15)]
        matrix = _get_inverse_affine_matrix(
            [w * 0.5, h * 0.5], angle, translate, scale, shear
        )
        return {"affine": matrix}, lambda v: F.affine(v, angle, translate, scale, shear)
    assert kind == "perspective", kind
    start = [[0, 0], [w - 1, 0], [w - 1, h - 1], [0, h - 1]]
    inwards = [[draw.randint(0, w // 5), draw.randint(0, h // 5)] for _ in range(4)]
    signs = [[1, 1], [-1, 1], [-1, -1], [1, -1]]
    end = [
        [s[0] + i[0] * g[0], s[1] + i[1] * g[1]]
        for s, i, g in zip(start, inwards, signs)
    ]
    step = {"perspective": _get_perspective_coeffs(start, end)}
    return step, lambda v: F.perspective(v, start, end)


EXACT = ["crop", "pad", "resize", "mirror", "upside_down", "turn"]
WARPS = ["rotate", "affine", "perspective"]


def boxes_within(draw, size, count, integers):
    h, w = size
    out = []
    for _ in range(count):
        x0, y0 = draw.uniform(0, w - 3), draw.uniform(0, h - 3)
        box = [x0, y0, draw.uniform(x0 + 2, w), draw.uniform(y0 + 2, h)]
        out.append(
            [float(int(v)) for v in box] if integers else [round(v, 2) for v in box]
        )
    return out


def decided(boxes, name, sane, steps, size):
    """`sane`, with none where single precision decides: near a limit, after a warp."""
    warped = any(
        isinstance(s, dict) and not {*s} & {"crop", "pad", "resize"} for _, s in steps
    )
    rotated = name in ("XYWHR", "CXCYWHR", "XYXYXYXY")
    if not warped and not rotated:
        return sane
    to = "XYXYXYXY" if rotated else "XYXY"
    corners = F.convert_bounding_box_format(
        boxes.as_subclass(torch.Tensor).double(), old_format=name, new_format=to
    )
    out = []
    for box, is_sane in zip(corners.tolist(), sane):
        (h, w), values = size, list(zip(box[0::2], box[1::2]))
        near = [abs(v) for x, y in values for v in (x, y, x - w, y - h)]
        (ax, ay), (bx, by) = values[0], values[1]
        near += [] if rotated else [abs(bx - ax - 4), abs(by - ay - 4)]
        out.append(None if min(near) < 1e-3 else is_sane)
    return out


def torchvision_cases():
    draw, cases = random.Random(1), []
    for i in range(150 * TIMES):
        size = (draw.randint(17, 200), draw.randint(17, 200))
        integers = i % 3 == 0
        dtype = torch.int64 if integers else torch.float32
        name = ["XYXY", "XYWH", "CXCYWH"][i // 3 % 3]
        boxes = torch.tensor(boxes_within(draw, size, 3, integers), dtype=dtype)
        boxes = F.convert_bounding_box_format(boxes, old_format="XYXY", new_format=name)
        points = torch.tensor(
            boxes_within(draw, size, 2, integers), dtype=dtype
        ).reshape(-1, 2)
        value = tv_tensors.BoundingBoxes(boxes, format=name, canvas_size=size)
        keypoints = tv_tensors.KeyPoints(points, canvas_size=size)
        kinds = EXACT if i % 2 else EXACT + WARPS + WARPS
        steps, at = [], size
        for op in range(draw.randint(1, 4)):
            step, apply = torchvision_step(draw, at, kinds)
            value, keypoints = apply(value), apply(keypoints)
            assert value.canvas_size == keypoints.canvas_size
            at = value.canvas_size
            steps.append([op, step])
        _, mask = F.sanitize_bounding_boxes(value, min_size=4.0, min_area=40.0)
        flat = keypoints.as_subclass(torch.Tensor)
        inside = F.sanitize_keypoints(flat, canvas_size=at)[1].tolist()
        cases.append(
            {
                "size": size,
                "output": at,
                "steps": steps,
                "format": name.lower(),
                "integers": integers,
                "boxes": boxes.tolist(),
                "moved": numbers(value.tolist()),
                "keypoints": points.tolist(),
                "keypoints_moved": numbers(keypoints.tolist()),
                "clamped": numbers(F.clamp_bounding_boxes(value).tolist()),
                "keypoints_clamped": numbers(F.clamp_keypoints(keypoints).tolist()),
                "sane": decided(value, name, mask.tolist(), steps, at),
                "keypoints_sane": inside,
            }
        )
    return cases


def rotated_cases():
    draw, cases = random.Random(2), []
    for i in range(100 * TIMES):
        size = (draw.randint(40, 160), draw.randint(40, 160))
        h, w = size
        name = ["XYWHR", "CXCYWHR", "XYXYXYXY"][i % 3]
        mode = ["soft", "hard", None][i // 3 % 3]
        boxes = torch.tensor(
            [
                [
                    draw.uniform(w * 0.3, w * 0.7),
                    draw.uniform(h * 0.3, h * 0.7),
                    draw.uniform(6, w * 0.5),
                    draw.uniform(6, h * 0.5),
                    draw.uniform(-170, 170),
                ]
                for _ in range(2)
            ]
        )
        boxes = F.convert_bounding_box_format(
            boxes, old_format="CXCYWHR", new_format=name
        )
        value = tv_tensors.BoundingBoxes(
            boxes, format=name, canvas_size=size, clamping_mode=mode
        )
        steps, at = [], size
        for op in range(draw.randint(1, 2)):
            step, apply = torchvision_step(draw, at, EXACT + ["rotate", "affine"])
            value = apply(value)
            at = value.canvas_size
            steps.append([op, step])
        if not torch.isfinite(value).all():
            continue
        _, mask = F.sanitize_bounding_boxes(value, min_size=4.0, min_area=40.0)
        cases.append(
            {
                "size": size,
                "output": at,
                "steps": steps,
                "format": name.lower(),
                "clamping": mode or "off",
                "boxes": boxes.tolist(),
                "moved": numbers(value.tolist()),
                "sane": decided(value, name, mask.tolist(), steps, at),
            }
        )
    return cases


MASK64 = (1 << 64) - 1


def noise(key, first, count):
    """SplitMix64 numbers as `pixels/elastic.rs` makes them: -1 to below 1."""
    out = []
    for element in range(first, first + count):
        z = (key + (element + 1) * 0x9E3779B97F4A7C15) & MASK64
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK64
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK64
        out.append(((z ^ (z >> 31)) >> 40) / 8_388_608.0 - 1.0)
    return torch.tensor(out, dtype=torch.float32)


def elastic_cases():
    draw, cases = random.Random(3), []
    for i in range(24 * TIMES):
        size = (draw.randint(30, 60), draw.randint(30, 60))
        h, w = size
        key, alpha, sigma = (
            100 + i,
            [draw.uniform(5, 60), draw.uniform(5, 60)],
            [3.0, 2.0],
        )
        axes = []
        for axis in range(2):
            field = noise(key, axis * h * w, h * w).reshape(1, 1, h, w)
            # torchvision's ElasticTransform: a kernel of the axis, the same sigma for both sides.
            side = int(8 * sigma[axis] + 1)
            side += side % 2 == 0
            field = F.gaussian_blur(field, [side, side], [sigma[0], sigma[1]])
            axes.append(field * alpha[axis] / size[1 - axis])
        displacement = torch.concat(axes, 1).permute(0, 2, 3, 1)
        integers = i % 4 == 0
        dtype = torch.int64 if integers else torch.float32
        name = ["XYXY", "XYWH", "CXCYWH"][i % 3]
        boxes = torch.tensor(boxes_within(draw, size, 3, integers), dtype=dtype)
        boxes = F.convert_bounding_box_format(boxes, old_format="XYXY", new_format=name)
        points = torch.tensor(
            boxes_within(draw, size, 2, integers), dtype=dtype
        ).reshape(-1, 2)
        value = tv_tensors.BoundingBoxes(boxes, format=name, canvas_size=size)
        keypoints = tv_tensors.KeyPoints(points, canvas_size=size)
        cases.append(
            {
                "size": size,
                "key": key,
                "alpha": alpha,
                "sigma": sigma,
                "format": name.lower(),
                "integers": integers,
                "boxes": boxes.tolist(),
                "moved": numbers(F.elastic(value, displacement).tolist()),
                "keypoints": points.tolist(),
                "keypoints_moved": numbers(F.elastic(keypoints, displacement).tolist()),
            }
        )
    return cases


# albumentations


class FixedTurn(A.RandomRotate90):
    def __init__(self, quarters):
        super().__init__(p=1)
        self.quarters = quarters

    def get_params(self):
        return {"factor": self.quarters}


class SeenAffine(A.Affine):
    def get_params_dependent_on_data(self, params, data):
        out = super().get_params_dependent_on_data(params, data)
        self.seen = np.linalg.inv(
            np.asarray(out["bbox_matrix"], dtype=float).reshape(3, 3)
        )
        return out


def albumentations_transform(draw, size):
    """A transform, its step (a function to call afterwards, or none) and the size after it."""
    h, w = size
    kind = draw.choice(
        ["crop", "pad", "resize", "mirror", "upside_down", "turn", "affine", "none"]
    )
    if kind == "crop":
        ch, cw = draw.randint(h // 2 + 1, h), draw.randint(w // 2 + 1, w)
        top, left = draw.randint(0, h - ch), draw.randint(0, w - cw)
        step = {"crop": [left, top, cw, ch]}
        return A.Crop(left, top, left + cw, top + ch, p=1), lambda: step, (ch, cw)
    if kind == "pad":
        left, top, right, bottom = (draw.randint(0, 9) for _ in range(4))
        step = {"pad": [left, top, right, bottom]}
        after = (h + top + bottom, w + left + right)
        return A.Pad((left, top, right, bottom), p=1), lambda: step, after
    if kind == "resize":
        to = (draw.randint(h // 2 + 1, 2 * h), draw.randint(w // 2 + 1, 2 * w))
        return A.Resize(*to, p=1), lambda: {"resize": list(to)}, to
    if kind == "mirror":
        return A.HorizontalFlip(p=1), lambda: "mirror", size
    if kind == "upside_down":
        return A.VerticalFlip(p=1), lambda: "upside_down", size
    if kind == "turn":
        q = draw.randint(1, 3)
        return FixedTurn(q), lambda: {"turn": q}, (w, h) if q % 2 else size
    if kind == "none":
        # Drew nothing, and boxes are filtered all the same.
        return A.HorizontalFlip(p=0), None, size
    scale, rotate = draw.uniform(0.7, 1.4), draw.uniform(-40, 40)
    x, y, shear = draw.randint(-9, 9), draw.randint(-9, 9), draw.uniform(-10, 10)
    t = SeenAffine(
        scale=(scale, scale),
        rotate=(rotate, rotate),
        translate_px={"x": (x, x), "y": (y, y)},
        shear={"x": (shear, shear), "y": (0.0, 0.0)},
        p=1,
    )
    return t, lambda: {"affine": t.seen[:2].reshape(-1).tolist()}, size


def albumentations_cases():
    draw, cases = random.Random(4), []
    while len(cases) < 110 * TIMES:
        i = len(cases)
        size = (draw.randint(30, 200), draw.randint(30, 200))
        h, w = size
        boxes = boxes_within(draw, size, 4, False)
        name = ["pascal_voc", "coco"][i % 2]
        if name == "coco":
            boxes = [
                [round(a, 2), b, round(c - a, 2), round(d - b, 2)]
                for a, b, c, d in boxes
            ]
        points = [p[:2] for p in boxes_within(draw, size, 4, False)]
        params = {}
        if i % 3 == 1:
            params = {"min_area": 150.0, "min_visibility": 0.4}
        if i % 3 == 2:
            params = {
                "min_width": 8.0,
                "min_height": 6.0,
                "max_accept_ratio": 3.0,
                "clip": True,
            }
        count = draw.randint(1, 4)
        transforms, made, at = [], [], size
        for op in range(count):
            t, step, at = albumentations_transform(draw, at)
            transforms.append(t)
            made.append((op, step))
        compose = A.Compose(
            transforms,
            bbox_params=A.BboxParams(format=name, label_fields=["labels"], **params),
            keypoint_params=A.KeypointParams(format="xy", label_fields=["names"]),
        )
        try:
            out = compose(
                image=np.zeros((h, w, 3), np.uint8),
                bboxes=boxes,
                labels=list(range(4)),
                keypoints=points,
                names=list(range(4)),
            )
        except ValueError:
            # Rounding put a box outside, which albumentations refuses.
            continue
        assert out["image"].shape[:2] == at, (out["image"].shape, at, transforms)
        cases.append(
            {
                "size": size,
                "output": at,
                "steps": [[op, step()] for op, step in made if step],
                "operations": count,
                "format": {"pascal_voc": "xyxy", "coco": "xywh"}[name],
                "params": params,
                "boxes": boxes,
                "kept": [int(v) for v in out["labels"]],
                "moved": numbers([list(map(float, b)) for b in out["bboxes"]]),
                "keypoints": points,
                "keypoints_kept": [int(v) for v in out["names"]],
                "keypoints_moved": numbers(
                    [list(map(float, k)) for k in out["keypoints"]]
                ),
            }
        )
    return cases


# Hugging Face


def hf_cases():
    draw, cases = random.Random(5), []
    processor = DetrImageProcessor()
    for _ in range(40 * TIMES):
        size = (draw.randint(20, 200), draw.randint(20, 200))
        h, w = size
        to = (draw.randint(20, 300), draw.randint(20, 300))
        boxes = []
        for _ in range(5):
            x, y = draw.uniform(-20, w), draw.uniform(-20, h)
            boxes.append(
                [round(v, 2) for v in (x, y, draw.uniform(0, 60), draw.uniform(0, 60))]
            )
        crowd = [draw.random() < 0.2 for _ in boxes]
        annotations = [
            {"bbox": b, "category_id": i, "area": b[2] * b[3], "iscrowd": int(c)}
            for i, (b, c) in enumerate(zip(boxes, crowd))
        ]
        image = torch.zeros(3, h, w)
        target = processor.prepare_annotation(
            image, {"image_id": 1, "annotations": annotations}, "coco_detection"
        )
        target = processor.resize_annotation(target, size, to)
        shares = processor.normalize_annotation(target, to)["boxes"]
        cases.append(
            {
                "size": size,
                "output": to,
                "steps": [[0, {"resize": list(to)}]],
                "boxes": boxes,
                "area": [a["area"] for a in annotations],
                "crowd": crowd,
                "kept": target["class_labels"].tolist(),
                "moved": numbers(target["boxes"].tolist()),
                "area_moved": numbers(target["area"].tolist()),
                "shares": [[round(v, 8) for v in b] for b in shares.tolist()],
            }
        )
    return cases


# pycocotools


def runs(mask):
    """Lengths of runs of a mask, column by column, beginning with 0."""
    flat, counts, before, length = mask.T.reshape(-1), [], 0, 0
    for v in flat.tolist():
        if v != before:
            counts.append(length)
            before, length = v, 0
        length += 1
    return [*counts, length]


def mask_case(size, rings):
    h, w = size
    texts = coco.frPyObjects([[v for p in ring for v in p] for ring in rings], h, w)
    rle = coco.merge(texts)
    return {
        "size": size,
        "rings": rings,
        "text": rle["counts"].decode(),
        "counts": runs(coco.decode(rle)),
        "area": int(coco.area(rle)),
        "bounds": [int(v) for v in coco.toBbox(rle)],
    }


def masks():
    draw = random.Random(6)
    polygons = []
    # A rectangle at half-pixels: 70 pixels.
    polygons.append(
        mask_case((20, 20), [[[2.5, 3.5], [12.5, 3.5], [12.5, 10.5], [2.5, 10.5]]])
    )
    for i in range(80 * TIMES):
        size = (draw.randint(1, 61), draw.randint(1, 61))
        h, w = size
        rings = []
        for _ in range(draw.randint(1, 3)):
            ring = []
            for _ in range(draw.randint(3, 9)):
                x, y = draw.uniform(-0.3 * w, 1.3 * w), draw.uniform(-0.3 * h, 1.3 * h)
                # Whole, half and any coordinates.
                step = [1, 0.5, 0.01][i % 3]
                ring.append(
                    [round(round(x / step) * step, 2), round(round(y / step) * step, 2)]
                )
            rings.append(ring)
        polygons.append(mask_case(size, rings))
    # A point twice, a line, a polygon outside, one around the picture.
    for ring in [
        [[3, 3], [3, 3], [9, 3], [9, 3], [9, 8]],
        [[1, 1], [9, 9], [1, 1]],
        [[-9, -9], [-3, -9], [-3, -2]],
        [[-5, -5], [40, -5], [40, 40], [-5, 40]],
        [[0, 0], [13, 0], [13, 11], [0, 11]],
    ]:
        polygons.append(mask_case((11, 13), [ring]))
    large = []
    for k in range(200):
        angle, r = k / 200 * 2 * math.pi, draw.uniform(60, 260)
        large.append(
            [round(250 + r * math.cos(angle), 2), round(170 + r * math.sin(angle), 2)]
        )
    polygons.append(mask_case((347, 501), [large]))
    quarters = []
    for _ in range(12):
        size = (draw.randint(20, 99), draw.randint(20, 99))
        small = (math.ceil(size[0] / 4), math.ceil(size[1] / 4))
        ring = [[draw.randint(0, 99), draw.randint(0, 99)] for _ in range(6)]
        case = mask_case(small, [[[v / 4 for v in p] for p in ring]])
        quarters.append({**case, "picture": size, "rings": [ring]})
    pixels = []
    rng = np.random.default_rng(7)
    for share in [0.0, 0.02, 0.3, 0.5, 0.9, 1.0]:
        for size in [(1, 1), (1, 9), (7, 1), (13, 17), (40, 31)]:
            mask = (rng.random(size) < share).astype(np.uint8)
            rle = coco.encode(np.asfortranarray(mask))
            assert coco.area(rle) == mask.sum()
            pixels.append(
                {
                    "size": size,
                    "rows": "".join(map(str, mask.reshape(-1).tolist())),
                    "text": rle["counts"].decode(),
                    "area": int(mask.sum()),
                    "bounds": [int(v) for v in coco.toBbox(rle)],
                }
            )
    return {"polygons": polygons, "quarters": quarters, "pixels": pixels}


def write(path, value):
    if isinstance(value, dict):
        parts = [
            f'"{k}": [\n' + ",\n".join(map(json.dumps, v)) + "\n]"
            for k, v in value.items()
        ]
        path.write_text("{" + ",\n".join(parts) + "}\n")
    else:
        path.write_text("[\n" + ",\n".join(map(json.dumps, value)) + "\n]\n")


def main():
    out = Path(sys.argv[1])
    torch.set_num_threads(1)
    write(
        out / "torchvision.json",
        {"boxes": torchvision_cases(), "rotated": rotated_cases()},
    )
    write(out / "elastic.json", elastic_cases())
    write(out / "albumentations.json", albumentations_cases())
    write(out / "hf.json", hf_cases())
    write(out / "masks.json", masks())


if __name__ == "__main__":
    main()
