"""Makes tests/goldens/trainer_targets.tar: boxes and keypoints as two trainers move them.

    trainer_targets.py OUT [TIMES]

OUT/detectron2.json   chains of detectron2's transforms, through its `DatasetMapper`
OUT/ultralytics.json  ultralytics' `LetterBox`, `RandomPerspective` and `RandomFlip`

A case has `size` (height, width) of the source and `steps`: pairs of the operation's number and the
step. `kept` has a value for each object, and `moved` and `keypoints_moved` a row, none for one that
is dropped. A keypoint is x, y and visibility. Coordinates may differ by 1e-3 pixels. What is kept
and visibilities must be equal.

Both libraries decide in single precision. Near a limit rounding decides, so `kept` or a visibility
is none there:

- detectron2: a side that is within 4 units in the last place of the coordinates from 1e-5;
- ultralytics: a side within 1e-3 pixels of its limit, or an aspect or share of area within 0.1%;
- a keypoint within 1e-3 pixels of the edge.

Three more differences to ultralytics are on purpose, and left out:

- Its share of area is that of the box before, times the square of the drawn scale. With shear or
  perspective ours may differ. `kept` is none where the two choose differently.
- Its `LetterBox` multiplies both axes by one ratio. Cases have sizes that need no rounding.
- It keeps boxes with a corner behind the horizon of a perspective. Cases have none.

It makes boxes from polygons, and allows them a smaller share. In a third of the warps objects have
polygons, and a subclass keeps the moved boxes.

`TIMES` makes as many times the cases, for a comparison that is not kept.

Needs torch, torchvision, pycocotools, OpenCV, ultralytics 8.4.190, fvcore 0.1.5, iopath, yacs,
omegaconf, hydra-core, tabulate, termcolor, portalocker and cloudpickle. `DETECTRON2` is a folder
with the source of detectron2 (commit 02b5c4e295e990042a714712c21dc79b731e8833). It need not be
built.

ultralytics is under the AGPL. This script runs it, and contains none of its code.
"""

import json
import os
import random
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("YOLO_CONFIG_DIR", tempfile.mkdtemp())
os.environ.setdefault("YOLO_OFFLINE", "true")
sys.path.insert(0, os.environ["DETECTRON2"])

import numpy as np
import torch
from detectron2.data import MetadataCatalog
from detectron2.data import transforms as T
from detectron2.data.dataset_mapper import DatasetMapper
from detectron2.data.detection_utils import create_keypoint_hflip_indices
from detectron2.structures import BoxMode
from fvcore.transforms.transform import ScaleTransform
from ultralytics.data.augment import LetterBox, RandomFlip, RandomPerspective
from ultralytics.utils.instance import Instances

DIGITS = 4
TIMES = int(sys.argv[2]) if len(sys.argv) > 2 else 1
NEAR = 1e-3


def numbers(values):
    return [round(float(v), DIGITS) for v in values]


def keypoint(x, y, seen):
    return [*numbers((x, y)), None if seen is None else int(seen)]


def near_edge(x, y, size):
    h, w = size
    return min(abs(x), abs(y), abs(x - w), abs(y - h)) < NEAR


def keypoints_within(draw, size, count):
    h, w = size
    out = []
    for _ in range(count):
        point = [round(draw.uniform(0, w), 2), round(draw.uniform(0, h), 2)]
        seen = draw.choice([0, 1, 2, 2])
        out.append([*point, seen] if seen else [0.0, 0.0, 0])
    return out


# detectron2


def detectron2_swap():
    """The partners of a nose and two eyes, by its own function."""
    meta = MetadataCatalog.get("trainer_targets")
    meta.keypoint_names = ["left_eye", "nose", "right_eye"]
    meta.keypoint_flip_map = [("left_eye", "right_eye")]
    return create_keypoint_hflip_indices("trainer_targets")


def detectron2_transform(draw, size):
    """A transform, its step and the size after it."""
    h, w = size
    kinds = "crop crop pad resize scale mirror mirror upside_down turn rotate rotate"
    kind = draw.choice(kinds.split())
    if kind == "crop":
        ch, cw = draw.randint(h // 3 + 1, h), draw.randint(w // 3 + 1, w)
        top, left = draw.randint(0, h - ch), draw.randint(0, w - cw)
        return (
            T.CropTransform(left, top, cw, ch, w, h),
            {"crop": [left, top, cw, ch]},
            (ch, cw),
        )
    if kind == "pad":
        left, top, right, bottom = (draw.randint(0, 30) for _ in range(4))
        after = (h + top + bottom, w + left + right)
        return (
            T.PadTransform(left, top, right, bottom, w, h),
            {"pad": [left, top, right, bottom]},
            after,
        )
    if kind in ("resize", "scale"):
        to = (draw.randint(h // 2 + 1, 2 * h), draw.randint(w // 2 + 1, 2 * w))
        resize = T.ResizeTransform if kind == "resize" else ScaleTransform
        return resize(h, w, *to), {"resize": list(to)}, to
    if kind == "mirror":
        return T.HFlipTransform(w), "mirror", size
    if kind == "upside_down":
        return T.VFlipTransform(h), "upside_down", size
    if kind == "turn":
        q = draw.randint(1, 3)
        rotation = T.RotationTransform(h, w, 90 * q, expand=True)
        return rotation, {"turn": q}, (w, h) if q % 2 else size
    angle = round(draw.uniform(-180, 180), 3)
    rotation = T.RotationTransform(h, w, angle, expand=draw.random() < 0.5)
    after = (int(rotation.bound_h), int(rotation.bound_w))
    return rotation, {"rotate": [angle, *after]}, after


def is_near_empty(box, size, threshold=1e-5):
    """Whether single precision decides that the clipped box is empty."""
    x0, y0, x1, y1 = (float(v) for v in box)
    for low, high, most in ((x0, x1, size[1]), (y0, y1, size[0])):
        side = min(high, most) - max(low, 0.0)
        unit = 2.0**-23 * max(abs(low), abs(high))
        if abs(side - threshold) < 4 * unit:
            return True
    return False


def detectron2_case(mapper, size, chain, boxes, mode, crowd, keypoints):
    transforms = T.TransformList([transform for transform, _, _ in chain])
    output = chain[-1][2]
    annotations = []
    for number, (box, is_crowd) in enumerate(zip(boxes, crowd, strict=True)):
        annotation = {"bbox": list(box), "bbox_mode": mode, "category_id": number}
        annotation["iscrowd"] = int(is_crowd)
        if keypoints:
            # As load_coco_json adds half a pixel.
            flat = [v for point in keypoints[number] for v in point]
            annotation["keypoints"] = [v + 0.5 if i % 3 != 2 else v for i, v in enumerate(flat)]
        annotations.append(annotation)
    near = []
    for annotation in annotations:
        box = BoxMode.convert(annotation["bbox"], mode, BoxMode.XYXY_ABS)
        box = transforms.apply_box(np.array([box], dtype=float))[0]
        near.append(is_near_empty(box, output) and not annotation["iscrowd"])
    dataset = {"annotations": annotations}
    mapper._transform_annotations(dataset, transforms, output)
    instances = dataset["instances"]
    moved, points_moved = [None] * len(boxes), [None] * len(boxes)
    for at, number in enumerate(instances.gt_classes.tolist()):
        moved[number] = numbers(instances.gt_boxes.tensor[at].tolist())
        if keypoints:
            points = instances.gt_keypoints.tensor[at].tolist()
            points_moved[number] = [keypoint(*point) for point in points]
    kept = [None if tie else row is not None for row, tie in zip(moved, near, strict=True)]
    case = {
        "size": size,
        "output": output,
        "steps": [[op, step] for op, (_, step, _) in enumerate(chain)],
        "format": {BoxMode.XYXY_ABS: "xyxy", BoxMode.XYWH_ABS: "xywh"}[mode],
        "boxes": boxes,
        "crowd": crowd,
        "kept": kept,
        "moved": moved,
    }
    if keypoints:
        # Outside they become 0 there. Near the edge neither place nor visibility is compared.
        flips = sum(isinstance(t, T.HFlipTransform) for t in transforms.transforms)
        for number, row in enumerate(points_moved):
            places = np.array(keypoints[number])[:, :2] + 0.5
            places = transforms.apply_coords(places)
            if flips % 2:
                places = places[mapper.keypoint_hflip_indices]
            for point, place in zip(row, places, strict=True) if row else ():
                if near_edge(*place, output):
                    point[2] = None
        case |= {"swap": mapper.keypoint_hflip_indices}
        case |= {"keypoints": keypoints, "keypoints_moved": points_moved}
    return case


def detectron2_cases():
    draw, cases = random.Random(11), []
    mapper = DatasetMapper(
        is_train=True,
        augmentations=[],
        image_format="RGB",
        use_keypoint=True,
        keypoint_hflip_indices=detectron2_swap(),
    )
    for i in range(160 * TIMES):
        size = (draw.randint(20, 200), draw.randint(20, 200))
        h, w = size
        chain, at = [], size
        for _ in range(draw.randint(1, 4)):
            chain.append(detectron2_transform(draw, at))
            at = chain[-1][2]
        mode = [BoxMode.XYXY_ABS, BoxMode.XYWH_ABS][i // 2 % 2]
        boxes = []
        for _ in range(2):
            x, y = draw.uniform(0, w - 3), draw.uniform(0, h - 3)
            box = [x, y, draw.uniform(2, w - x), draw.uniform(2, h - y)]
            if mode == BoxMode.XYXY_ABS:
                box = [x, y, x + box[2], y + box[3]]
            boxes.append([round(v, 2) for v in box])
        crowd = [draw.random() < 0.1 for _ in boxes]
        keypoints = [keypoints_within(draw, size, 3) for _ in boxes if i % 2]
        cases.append(detectron2_case(mapper, size, chain, boxes, mode, crowd, keypoints))
    # Sides on both sides of the threshold, at the corner, where single precision is fine.
    for factor in (1, 2, 4):
        resize = T.ResizeTransform(30, 40, 30 * factor, 40 * factor)
        chain = [(resize, {"resize": [30 * factor, 40 * factor]}, (30 * factor, 40 * factor))]
        for side in (0.0, 0.9e-5, 1.1e-5):
            boxes = [[0.0, 0.0, side / factor, 9.0], [0.0, 0.0, 9.0, side / factor]]
            cases.append(
                detectron2_case(mapper, (30, 40), chain, boxes, BoxMode.XYXY_ABS, [False] * 2, [])
            )
    return cases


# ultralytics

SWAP = [2, 1, 0]


class SeenPerspective(RandomPerspective):
    """Remembers what it drew, and keeps boxes where objects have polygons."""

    def get_params(self, labels):
        self.seen = super().get_params(labels)
        return self.seen

    def apply_bboxes(self, bboxes, M):
        self.boxes = super().apply_bboxes(bboxes, M)
        return self.boxes

    def apply_segments(self, segments, M, size):
        return self.boxes, super().apply_segments(segments, M, size)[1]


def letterbox_of(draw, size):
    """A letterbox that needs no rounding: sides of `size` are multiples of 4."""
    h, w = size
    by = draw.choice([1, 2, 3, 5, 6])
    h, w = h * by // 4, w * by // 4
    extra = draw.randint(0, 60)
    to = (h + extra, w) if draw.random() < 0.5 else (h, w + extra)
    return LetterBox(new_shape=to, center=draw.random() < 0.7)


def warp_of(draw, kind):
    return SeenPerspective(
        degrees=draw.choice([0.0, 0.0, 0.0, 30.0, 180.0]),
        translate=draw.choice([0.1, 0.3, 0.5]),
        scale=draw.choice([0.1, 0.5, (0.4, 2.5)]),
        shear=10.0 if kind != "plain" else 0.0,
        perspective=0.001 if kind == "perspective" else 0.0,
        size=draw.choice([None, (draw.randint(80, 400), draw.randint(80, 400)), (400, 400)]),
    )


def place_of(matrix, x, y):
    across, down, depth = np.asarray(matrix, dtype=float) @ [x, y, 1.0]
    return across / depth, down / depth


def reaches_horizon(matrix, box):
    x0, y0, x1, y1 = box
    corners = np.array([[x0, y0, 1], [x1, y0, 1], [x1, y1, 1], [x0, y1, 1]])
    return (corners @ np.asarray(matrix, dtype=float)[2]).min() < 0.01


def output_box(draw, size, least_share):
    """A box in the output near one of the limits, or anywhere: centre and sides."""
    h, w = size
    kind = draw.choice(["any", "edge", "edge", "small", "small", "long"])
    sides = [draw.uniform(3, w), draw.uniform(3, h)]
    if kind == "edge":
        sides = [draw.uniform(20, w), draw.uniform(20, h)]
        share = draw.uniform(-0.1, 1.6) * least_share
        x = draw.choice([0.0, float(w)])
        inwards = sides[0] * (0.5 - share)
        x = x - inwards if x == 0 else x + inwards
        # Wholly inside along y.
        return [x, draw.uniform(sides[1] / 2, h - sides[1] / 2)], sides
    if kind == "small":
        sides = [draw.uniform(1, 3), draw.uniform(1.9, 6)]
    if kind == "long":
        thin = draw.uniform(2.1, 3.2)
        sides = [thin * draw.uniform(90, 110), thin]
    if draw.random() < 0.5 and kind != "any":
        sides.reverse()
    return [draw.uniform(0.2 * w, 0.8 * w), draw.uniform(0.2 * h, 0.8 * h)], sides


def choices(warp, before, after, has_polygons):
    """What its own filter chooses, none where rounding or shear decides."""
    matrix, scale = np.asarray(warp.seen["M"], dtype=float), warp.seen["scale"]
    middle = (before[:, :2] + before[:, 2:]) / 2
    depth = middle @ matrix[2, :2] + matrix[2, 2]
    moved = np.sqrt(abs(np.linalg.det(matrix)) / depth**3)
    share = 0.01 if has_polygons else 0.1
    answers = []
    for by in (np.full(len(before), scale), moved):
        for near in (-NEAR, 0.0, NEAR):
            answers.append(
                warp.box_candidates(
                    box1=(before * by[:, None]).T,
                    box2=after.T,
                    wh_thr=2 + near,
                    ar_thr=100 * (1 - near),
                    area_thr=share * (1 + near),
                )
            )
    return [bool(a[0]) if len({*a.tolist()}) == 1 else None for a in np.array(answers).T]


def ultralytics_case(draw, number):
    kind = ["plain", "plain", "letterbox", "shear", "plain", "perspective"][number % 6]
    size = (4 * draw.randint(10, 60), 4 * draw.randint(10, 60))
    labels = {"img": np.zeros((*size, 3), np.uint8)}
    steps, ratio, border = [], 1.0, (0, 0)
    letterbox = None
    if kind == "letterbox" or draw.random() < 0.3:
        letterbox = letterbox_of(draw, size)
        params = letterbox.get_params({**labels})
        (ratio, _), border = params["ratio"], (params["left"], params["top"])
        w, h = params["new_unpad"]
        steps.append({"resize": [h, w]})
        sides = [params[name] for name in ("left", "top", "right", "bottom")]
        steps += [{"pad": sides}] if any(sides) else []
        at = (h + sides[1] + sides[3], w + sides[0] + sides[2])
    else:
        at = size
    warp, has_polygons, seed = None, False, draw.randint(0, 1 << 30)
    matrix, scale, output = np.eye(3), 1.0, at
    if kind != "letterbox":
        warp, has_polygons = warp_of(draw, kind), number % 3 == 1
        random.seed(seed)
        warp.get_params({"img": np.zeros((*at, 3), np.uint8)})
        matrix, scale = warp.seen["M"], warp.seen["scale"]
        output = warp.seen["size"][::-1]
        # The step keeps the size, so the output is cut from a larger picture.
        (h, w), (oh, ow) = at, output
        larger = (max(h, oh), max(w, ow))
        grown = [0, 0, larger[1] - w, larger[0] - h]
        steps += [{"pad": grown}] if any(grown) else []
        inverse = np.linalg.inv(np.asarray(matrix, dtype=float))
        inverse = [float(f"{v:.11g}") for v in (inverse / inverse[2, 2]).reshape(-1)]
        if kind == "perspective":
            steps.append({"perspective": inverse[:8]})
        else:
            steps.append({"affine": inverse[:6]})
        steps += [{"crop": [0, 0, ow, oh]}] if larger != tuple(output) else []
    boxes = []
    while len(boxes) < 2:
        if warp is None:
            # Wholly inside. Small and long ones stay too.
            h, w = size
            x, y = draw.uniform(0, w - 2), draw.uniform(0, h - 2)
            sides = [draw.uniform(0.5, w - x), draw.uniform(0.5, h - y)]
            if draw.random() < 0.5:
                sides[draw.randint(0, 1)] = draw.uniform(0.5, 2)
            boxes.append([x, y, x + sides[0], y + sides[1]])
            continue
        centre, sides = output_box(draw, output, 0.01 if has_polygons else 0.1)
        x, y = place_of(np.linalg.inv(np.asarray(matrix, dtype=float)), *centre)
        w, h = (side / scale / 2 for side in sides)
        box = [x - w, y - h, x + w, y + h]
        if reaches_horizon(matrix, box):
            continue
        boxes.append([(v - side) / ratio for v, side in zip(box, border * 2, strict=True)])
    name = ["xyxy", "xywh", "cxcywh"][number % 3 if kind == "plain" else number % 2]
    for box in boxes:
        x0, y0, x1, y1 = box
        if name != "xyxy":
            box[2:] = [x1 - x0, y1 - y0]
        if name == "cxcywh":
            box[:2] = [(x0 + x1) / 2, (y0 + y1) / 2]
        box[:] = [round(v, 3) for v in box]
    keypoints = [keypoints_within(draw, size, 3) for _ in boxes if number % 2]
    polygons = np.array([[box[:2], box[2:], box[:2]] for box in boxes], np.float32)
    instances = Instances(
        bboxes=np.array(boxes, np.float32),
        segments=polygons if has_polygons else None,
        keypoints=np.array(keypoints, np.float32) if keypoints else None,
        bbox_format={"xyxy": "xyxy", "xywh": "ltwh", "cxcywh": "xywh"}[name],
        normalized=False,
    )
    labels |= {"instances": instances, "cls": np.arange(len(boxes))}
    if letterbox:
        labels = letterbox(labels)
    kept, near = [True] * len(boxes), np.zeros((len(boxes), 3), bool)
    if warp:
        instances = labels["instances"]
        instances.convert_bbox("xyxy")
        before = instances.bboxes.astype(float)
        points = None if not keypoints else instances.keypoints.astype(float)
        random.seed(seed)
        labels = warp(labels)
        # The same in double precision, for what is near a limit.
        exact = warp.apply_bboxes(before, np.asarray(matrix, dtype=float))
        h, w = output
        kept = choices(warp, before, exact.clip(0, [w, h, w, h]), has_polygons)
        if keypoints:
            points = warp.apply_keypoints(points, np.asarray(matrix, float), (w, h))
            near = np.array([[near_edge(*p[:2], output) for p in row] for row in points])
    assert labels["img"].shape[:2] == tuple(output), (labels["img"].shape, output)
    for direction, step in (("vertical", "upside_down"), ("horizontal", "mirror")):
        if draw.random() < 0.4:
            labels = RandomFlip(1.0, direction, SWAP)(labels)
            steps.append(step)
            near = near[:, SWAP]
    instances = labels["instances"]
    instances.convert_bbox("xyxy")
    moved, points_moved = [None] * len(boxes), [None] * len(boxes)
    for at, n in enumerate(labels["cls"].tolist()):
        moved[n] = numbers(instances.bboxes[at])
        if keypoints:
            points_moved[n] = [
                keypoint(x, y, None if tie else seen)
                for (x, y, seen), tie in zip(instances.keypoints[at], near[n], strict=True)
            ]
    for n, choice in enumerate(kept):
        assert choice is None or choice == (moved[n] is not None), (number, n)
    case = {
        "size": size,
        "output": list(output),
        "steps": [[op, step] for op, step in enumerate(steps)],
        "format": name,
        "boxes": boxes,
        "kept": kept,
        "moved": moved,
    }
    if has_polygons:
        case["polygons"] = True
    if keypoints:
        case |= {"swap": SWAP, "keypoints": keypoints, "keypoints_moved": points_moved}
    return case


def ultralytics_cases():
    draw = random.Random(12)
    return [ultralytics_case(draw, number) for number in range(160 * TIMES)]


def write(path, cases):
    lines = [json.dumps(case, separators=(",", ":")) for case in cases]
    path.write_text("[\n" + ",\n".join(lines) + "\n]\n")


def main():
    out = Path(sys.argv[1])
    torch.set_num_threads(1)
    write(out / "detectron2.json", detectron2_cases())
    write(out / "ultralytics.json", ultralytics_cases())


if __name__ == "__main__":
    main()
