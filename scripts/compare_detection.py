"""Compares the rate of featherload with that of other loaders of detectors, over the same photos.

    compare_detection.py PHOTOS OUT [--rounds N] [--seconds S] [--side SIDE] [--only NAME,NAME]

Makes a data set of 1,000 photos in OUT, upright, with random boxes, as COCO and as YOLO. They are
copies of those below PHOTOS, or enlarged so that the longest side is SIDE. Each measurement is a
process of its own, and the loaders take turns. A loader has two workers, or two threads. Prints a
table of images per second, and of CPU seconds for 1,000 images with all processes of the loader. It
is for two cores: use `taskset` on a machine with more.

| work | content |
|---|---|
| square | resize to 640 x 640, mirror, float32, boxes |
| ssd | torchvision's RandomIoUCrop, mirror, resize to 300 x 300, float32, boxes |
| mosaic | ultralytics' augmentation: mosaic, random perspective, HSV, mirror, uint8 |
| letterbox | the same without mosaic |

Needs featherload, torch, torchvision and Pillow. A loader whose package is missing is left out, and
the table says so.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

BATCH, WORKERS = 16, 2
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
YOLO = """featherload: 1
ops:
  - resize: {max_size: 640, rounding: up}
%s
  - random_affine: {degrees: [0, 0], translate: [0.1, 0.1], scale: [0.5, 1.5],
      interpolation: bilinear, fill: 114, style: opencv}
%s
  - random_hsv: {hue: 0.015, saturation: 0.7, value: 0.4}
  - random_horizontal_flip
  - cast: {dtype: u8}
"""


def main():
    parser = argparse.ArgumentParser(prog="compare_detection")
    parser.add_argument("photos", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--side", type=int)
    parser.add_argument("--only")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        measure(options.one, options.out, options.seconds)
        return
    names = options.only.split(",") if options.only else list(LOADERS)
    if unknown := [name for name in names if name not in LOADERS]:
        parser.error(f"--only {unknown[0]}: use names of {', '.join(LOADERS)}")
    make(options.photos, options.out, options.side)
    results = {name: [] for name in names}
    for turn in range(options.rounds):
        for name in names if turn % 2 == 0 else reversed(names):
            arguments = [
                options.photos,
                options.out,
                "--one",
                name,
                "--seconds",
                options.seconds,
            ]
            done = subprocess.run(
                [sys.executable, __file__, *map(str, arguments)],
                capture_output=True,
                text=True,
            )
            lines = done.stdout.strip().splitlines()
            if done.returncode:
                print(
                    f"{name}: {(done.stderr.strip().splitlines() or ['no message'])[-1]}"
                )
                continue
            results[name].append(json.loads(lines[-1]))
    print(
        "| work | loader | images/s, median | least to most | CPU s for 1,000 images |"
    )
    print("|---|---|---|---|---|")
    for name, rounds in results.items():
        work, loader = name.split("/")
        if not rounds:
            print(f"| {work} | {loader} | did not run | | |")
            continue
        rates = [one["rate"] for one in rounds]
        cpu = median(one["cpu"] for one in rounds)
        extent = f"{min(rates):.0f} to {max(rates):.0f}"
        print(f"| {work} | {loader} | {median(rates):.0f} | {extent} | {cpu:.1f} |")


def make(photos, out, side):
    """1,000 photos with up to 12 boxes each: `images`, `coco.json`, `labels`, `data.yaml`."""
    from PIL import Image, ImageOps

    made, asked = out / "made.json", {"photos": str(photos.resolve()), "side": side}
    if (out / "data.yaml").exists():
        if json.loads(made.read_text()) != asked:
            raise SystemExit(
                f"{out} has another data set: {made.read_text()}. Give a new folder"
            )
        return
    found = sorted(
        p
        for p in photos.rglob("*")
        if p.suffix.lower() in (".jpg", ".jpeg") and p.is_file()
    )
    if not found:
        raise SystemExit(f"{photos} has no JPEGs")
    (out / "images").mkdir(parents=True, exist_ok=True)
    (out / "labels").mkdir(exist_ok=True)
    draw, images, annotations, first = random.Random(1), [], [], {}
    for number in range(1000):
        photo = found[number % len(found)]
        to = out / "images" / f"{number:04}.jpg"
        if photo in first:
            os.link(first[photo][0], to)
            width, height = first[photo][1]
        else:
            with Image.open(photo) as image:
                upright = ImageOps.exif_transpose(image).convert("RGB")
                turned = upright.size != image.size
            width, height = upright.size
            if side is not None:
                width, height = (
                    round(n * side / max(upright.size)) for n in upright.size
                )
                upright.resize((width, height), Image.Resampling.BICUBIC).save(
                    to, quality=90
                )
            elif turned:
                upright.save(to, quality=90)
            else:
                shutil.copy(photo, to)
            first[photo] = (to, (width, height))
        images.append(
            {"id": number + 1, "file_name": to.name, "width": width, "height": height}
        )
        rows = []
        for _ in range(draw.randint(1, 12)):
            w, h = (draw.uniform(0.05, 0.6) * n for n in (width, height))
            x, y = draw.uniform(0, width - w), draw.uniform(0, height - h)
            category = draw.randint(1, 80)
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    "image_id": number + 1,
                    "category_id": category,
                    "bbox": [x, y, w, h],
                    "area": w * h,
                    "iscrowd": 0,
                }
            )
            shares = (x + w / 2) / width, (y + h / 2) / height, w / width, h / height
            rows.append(
                " ".join([str(category - 1), *(f"{share:.6f}" for share in shares)])
            )
        (out / "labels" / f"{number:04}.txt").write_text("\n".join(rows) + "\n")
    categories = [{"id": n, "name": f"c{n}"} for n in range(1, 81)]
    coco = {"images": images, "categories": categories, "annotations": annotations}
    (out / "coco.json").write_text(json.dumps(coco))
    names = "\n".join(f"  {n - 1}: c{n}" for n in range(1, 81))
    made.write_text(json.dumps(asked))
    (out / "data.yaml").write_text(
        f"path: {out.resolve()}\ntrain: images\nval: images\nnames:\n{names}\n"
    )


def measure(name, out, seconds):
    """Prints images per second and the CPU time of this process and all below it."""
    import psutil

    batches = LOADERS[name](out)
    for _ in range(8):
        next(batches)
    me = psutil.Process()

    def cpu():
        all_times = [me.cpu_times()]
        for child in me.children(recursive=True):
            try:
                all_times.append(child.cpu_times())
            except psutil.NoSuchProcess:
                pass
        return sum(times.user + times.system for times in all_times)

    used, start, count = cpu(), time.monotonic(), 0
    while time.monotonic() - start < seconds:
        count += next(batches)
    took = time.monotonic() - start
    report = {"rate": count / took, "cpu": (cpu() - used) / count * 1000}
    print(json.dumps(report), flush=True)
    os._exit(0)


def endless(loader, count):
    """The number of images of each batch, for ever."""
    while True:
        for batch in loader:
            yield count(batch)


def collate(batch):
    return tuple(zip(*batch))


def wrapped(out, *ops):
    from torchvision.datasets import CocoDetection, wrap_dataset_for_transforms_v2
    from torchvision.transforms import v2
    import torch

    steps = [*ops, v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)]
    data = CocoDetection(
        str(out / "images"),
        str(out / "coco.json"),
        transforms=v2.Compose([v2.ToImage(), *steps, v2.SanitizeBoundingBoxes()]),
    )
    return wrap_dataset_for_transforms_v2(data, target_keys=("boxes", "labels"))


def square_ops():
    from torchvision.transforms import v2

    return v2.RandomHorizontalFlip(), v2.Resize((640, 640))


def ssd_ops():
    from torchvision.transforms import v2

    return v2.RandomIoUCrop(), v2.RandomHorizontalFlip(), v2.Resize((300, 300))


def ours_wrapped(out, ops):
    from featherload.torch import DataLoader

    loader = DataLoader(wrapped(out, *ops()), BATCH, shuffle=True, num_workers=WORKERS)
    return endless(loader, lambda batch: len(batch[1]))


def torch_wrapped(out, ops):
    import torch
    from torch.utils.data import DataLoader

    torch.set_num_threads(1)
    loader = DataLoader(
        wrapped(out, *ops()),
        BATCH,
        shuffle=True,
        num_workers=WORKERS,
        collate_fn=collate,
        persistent_workers=True,
    )

    def count(batch):
        torch.stack(batch[0])
        return len(batch[1])

    return endless(loader, count)


def rfdetr(out):
    from rfdetr.datasets.coco import CocoDetection, draft_size_for_transforms
    from rfdetr.datasets.coco import make_coco_transforms_square_div_64
    from rfdetr.utilities.tensors import make_collate_fn
    from torch.utils.data import DataLoader

    transforms = make_coco_transforms_square_div_64("train", 640, scale_jitter=False)
    data = CocoDetection(
        out / "images",
        out / "coco.json",
        transforms,
        draft_size=draft_size_for_transforms("train", 640),
    )
    loader = DataLoader(
        data,
        BATCH,
        shuffle=True,
        num_workers=WORKERS,
        collate_fn=make_collate_fn(pack=True),
        persistent_workers=True,
    )
    return endless(loader, lambda batch: len(batch[1]))


class ProcessorSet:
    """COCO's images and annotations through a processor, as in transformers' examples."""

    def __init__(self, out):
        from torchvision.datasets import CocoDetection
        from transformers import RTDetrImageProcessor

        self.data = CocoDetection(str(out / "images"), str(out / "coco.json"))
        self.processor = RTDetrImageProcessor(size={"height": 640, "width": 640})
        self.draw = random.Random(1)

    def __len__(self):
        return len(self.data)

    def __getitem__(self, at):
        image, annotations = self.data[at]
        target = {"image_id": at, "annotations": annotations}
        done = self.processor(images=image, annotations=target, return_tensors="pt")
        return done["pixel_values"][0], done["labels"][0]


def stacked(batch):
    import torch

    images, labels = zip(*batch)
    return torch.stack(images), labels


def processor(out):
    from torch.utils.data import DataLoader

    loader = DataLoader(
        ProcessorSet(out),
        BATCH,
        shuffle=True,
        num_workers=WORKERS,
        collate_fn=stacked,
        persistent_workers=True,
    )
    return endless(loader, lambda batch: len(batch[1]))


def dali(out, crops):
    import numpy as np
    from nvidia.dali import fn, pipeline_def, types

    @pipeline_def(
        batch_size=BATCH, num_threads=WORKERS, device_id=None, prefetch_queue_depth=2
    )
    def pipe():
        files, boxes, labels = fn.readers.coco(
            file_root=str(out / "images"),
            annotations_file=str(out / "coco.json"),
            ltrb=True,
            ratio=True,
            random_shuffle=True,
            name="reader",
        )
        if crops:
            begin, size, boxes, labels = fn.random_bbox_crop(
                boxes,
                labels,
                thresholds=[0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0],
                aspect_ratio=[0.5, 2.0],
                scaling=[0.3, 1.0],
                bbox_layout="xyXY",
                allow_no_crop=True,
            )
            images = fn.decoders.image_slice(files, begin, size, output_type=types.RGB)
        else:
            images = fn.decoders.image(files, output_type=types.RGB)
        side = 300 if crops else 640
        images = fn.resize(
            images,
            resize_x=side,
            resize_y=side,
            interp_type=types.INTERP_LINEAR,
            antialias=True,
        )
        coin = fn.random.coin_flip()
        images = fn.crop_mirror_normalize(
            images,
            mirror=coin,
            mean=[255 * n for n in MEAN],
            std=[255 * n for n in STD],
            dtype=types.FLOAT,
            output_layout="CHW",
        )
        boxes = fn.bb_flip(boxes, horizontal=coin, ltrb=True)
        return images, boxes, labels

    made = pipe()
    made.build()

    def batches():
        while True:
            images, boxes, labels = made.run()
            np.asarray(images.as_tensor())
            yield len(labels)

    return batches()


def ultralytics(out, mosaic):
    from ultralytics.cfg import get_cfg
    from ultralytics.data.build import build_dataloader, build_yolo_dataset
    from ultralytics.data.utils import check_det_dataset

    cfg = get_cfg(
        overrides={"task": "detect", "imgsz": 640, "mosaic": mosaic, "cache": False}
    )
    data = check_det_dataset(str(out / "data.yaml"))
    made = build_yolo_dataset(cfg, data["train"], BATCH, data, mode="train")
    loader = build_dataloader(made, BATCH, WORKERS, device="cpu")
    return endless(loader, lambda batch: len(batch["img"]))


def ours_yolo(out, mosaic):
    import featherload

    path = out / f"{'mosaic' if mosaic else 'letterbox'}.yaml"
    canvas = (
        # ultralytics draws partners from the last 8 batches of its images.
        f"  - mosaic: {{size: 640, p: 1.0, partner_window: {8 * BATCH}}}"
        if mosaic
        else "  - letterbox: {size: 640}"
    )
    path.write_text(YOLO % (canvas, "  - center_crop: {size: 640}" if mosaic else ""))
    loader = featherload.Loader(
        str(out / "images"),
        str(path),
        batch_size=BATCH,
        num_workers=WORKERS,
        objects={"files": str(out / "coco.json"), "style": "ultralytics"},
        targets="flat",
        framework="torch",
    )
    return endless(loader, lambda batch: len(batch[0]))


LOADERS = {
    "square/featherload": lambda out: ours_wrapped(out, square_ops),
    "square/torch": lambda out: torch_wrapped(out, square_ops),
    "square/rfdetr": rfdetr,
    "square/processor": processor,
    "square/dali": lambda out: dali(out, False),
    "ssd/featherload": lambda out: ours_wrapped(out, ssd_ops),
    "ssd/torch": lambda out: torch_wrapped(out, ssd_ops),
    "ssd/dali": lambda out: dali(out, True),
    "mosaic/featherload": lambda out: ours_yolo(out, True),
    "mosaic/ultralytics": lambda out: ultralytics(out, 1.0),
    "letterbox/featherload": lambda out: ours_yolo(out, False),
    "letterbox/ultralytics": lambda out: ultralytics(out, 0.0),
}

if __name__ == "__main__":
    main()
