"""Trains a detector of torchvision on a GPU with batches of 16 from a loader.

    train_detector.py PHOTOS OUT MODEL LOADER WORKERS [SECONDS]

PHOTOS and OUT as in scripts/compare_detection.py. MODEL: frcnn (fasterrcnn_resnet50_fpn at 640) or
frcnn320 (fasterrcnn_mobilenet_v3_large_320_fpn). LOADER: featherload, torch, or none (one batch
again and again). Prints images/s, the share of time that the program waits for batches, the mean
utilisation of the GPU, and cores used by all processes.
"""

import json
import os
import sys
import threading
import time
from pathlib import Path

import psutil
import torch
from torchvision.models import detection

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "scripts"))
import compare_detection as data

photos, out, model_name, loader_name = Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:5]
workers = int(sys.argv[5])
seconds = float(sys.argv[6]) if len(sys.argv) > 6 else 20
side = {"frcnn": 640, "frcnn320": 320}[model_name]


def dataset():
    from torchvision.datasets import CocoDetection, wrap_dataset_for_transforms_v2
    from torchvision.transforms import v2

    ops = [
        v2.ToImage(),
        v2.RandomHorizontalFlip(),
        v2.Resize((side, side)),
        v2.ToDtype(torch.float32, scale=True),
        v2.SanitizeBoundingBoxes(),
    ]
    made = CocoDetection(
        str(out / "images"), str(out / "coco.json"), transforms=v2.Compose(ops)
    )
    return wrap_dataset_for_transforms_v2(made, target_keys=("boxes", "labels"))


def loader():
    if loader_name == "featherload":
        from featherload.torch import DataLoader

        return DataLoader(dataset(), 16, shuffle=True, num_workers=workers)
    from torch.utils.data import DataLoader

    torch.set_num_threads(1)
    return DataLoader(
        dataset(),
        16,
        shuffle=True,
        num_workers=workers,
        collate_fn=data.collate,
        persistent_workers=True,
        pin_memory=True,
    )


def batches():
    while True:
        for images, targets in made:
            if loader_name == "torch":
                images = torch.stack(images)
            if len(targets) < 16:
                continue
            yield (
                images.cuda(non_blocking=True),
                [
                    {
                        "boxes": t["boxes"].cuda(non_blocking=True).float(),
                        "labels": t["labels"].cuda(),
                    }
                    for t in targets
                ],
            )


def same(batch):
    while True:
        yield batch


data.make(photos, out, None)
build = {
    "frcnn": detection.fasterrcnn_resnet50_fpn,
    "frcnn320": detection.fasterrcnn_mobilenet_v3_large_320_fpn,
}[model_name]
model = build(
    weights=None, weights_backbone=None, num_classes=91, min_size=side, max_size=side
).cuda()
model.train()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
if loader_name == "none":
    loader_name, made = "featherload", None
    made = loader()
    source = same(next(batches()))
    loader_name = "none"
else:
    made = loader()
    source = batches()


def step(images, targets):
    with torch.autocast("cuda", torch.bfloat16):
        losses = model(list(images), targets)
        loss = sum(losses.values())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


torch.backends.cudnn.benchmark = True
for _ in range(20):
    step(*next(source))
torch.cuda.synchronize()

uses, stop = [], threading.Event()


def watch():
    while not stop.wait(0.1):
        uses.append(torch.cuda.utilization())


me = psutil.Process()


def cpu():
    times = [me.cpu_times()]
    for child in me.children(recursive=True):
        try:
            times.append(child.cpu_times())
        except psutil.NoSuchProcess:
            pass
    return sum(t.user + t.system for t in times)


watcher = threading.Thread(target=watch)
watcher.start()
used, start, waited, steps = cpu(), time.monotonic(), 0.0, 0
while time.monotonic() - start < seconds:
    before = time.monotonic()
    batch = next(source)
    waited += time.monotonic() - before
    step(*batch)
    steps += 1
torch.cuda.synchronize()
took, used = time.monotonic() - start, cpu() - used
stop.set()
watcher.join()
report = {
    "model": model_name,
    "loader": loader_name,
    "workers": workers,
    "images_per_s": round(16 * steps / took, 1),
    "waits": round(waited / took, 3),
    "gpu_use": round(sum(uses) / max(len(uses), 1), 1),
    "cores": round(used / took, 2),
}
print(json.dumps(report), flush=True)

os._exit(0)
