"""Trains RF-DETR nano (384 x 384, no pretrained weights) on a GPU with batches of 16 from a loader.

    train_rfdetr.py PHOTOS OUT LOADER WORKERS [SECONDS] [DEVICE]

PHOTOS and OUT as in scripts/compare_detection.py. LOADER: featherload; torch (DataLoader with
torchvision's v2); rfdetr (its CocoDetection and packing collate, without scale jitter); none (one
batch again and again). All resize to 384 x 384, mirror half of the images, and normalize. Prints
images/s, the share of time that the program waits for batches, the mean utilisation of the GPU, and
cores used by all processes.
"""

import json
import os
import sys
import threading
import time
from pathlib import Path

import psutil
import torch
from rfdetr.config import RFDETRNanoConfig, TrainConfig
from rfdetr.models.lwdetr import build_criterion_from_config, build_model_from_config
from rfdetr.utilities.tensors import NestedTensor

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "scripts"))
import compare_detection as data

SIDE, ROWS = 384, 16
photos, out, loader_name, workers = (
    Path(sys.argv[1]),
    Path(sys.argv[2]),
    sys.argv[3],
    int(sys.argv[4]),
)
seconds = float(sys.argv[5]) if len(sys.argv) > 5 else 20
device = torch.device(sys.argv[6] if len(sys.argv) > 6 else "cuda")


def dataset():
    from torchvision.datasets import CocoDetection, wrap_dataset_for_transforms_v2
    from torchvision.transforms import v2

    ops = [
        v2.ToImage(),
        v2.RandomHorizontalFlip(),
        v2.Resize((SIDE, SIDE)),
        v2.ToDtype(torch.float32, scale=True),
        v2.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
        v2.SanitizeBoundingBoxes(),
    ]
    made = CocoDetection(str(out / "images"), str(out / "coco.json"), transforms=v2.Compose(ops))
    return wrap_dataset_for_transforms_v2(made, target_keys=("boxes", "labels"))


def rfdetr_set():
    from rfdetr.datasets.coco import CocoDetection, draft_size_for_transforms
    from rfdetr.datasets.coco import make_coco_transforms_square_div_64

    transforms = make_coco_transforms_square_div_64("train", SIDE, scale_jitter=False)
    draft = draft_size_for_transforms("train", SIDE)
    return CocoDetection(out / "images", out / "coco.json", transforms, draft_size=draft)


def loader(name):
    if name == "featherload":
        from featherload.torch import DataLoader

        return DataLoader(dataset(), ROWS, shuffle=True, num_workers=workers, drop_last=True)
    from rfdetr.utilities.tensors import make_collate_fn
    from torch.utils.data import DataLoader

    torch.set_num_threads(1)
    made, collate = dataset(), data.collate
    if name == "rfdetr":
        made, collate = rfdetr_set(), make_collate_fn(pack=True)
    return DataLoader(
        made,
        ROWS,
        shuffle=True,
        num_workers=workers,
        collate_fn=collate,
        persistent_workers=True,
        pin_memory=device.type == "cuda",
        drop_last=True,
    )


def centred(boxes):
    """Corners in pixels as centre and size in shares of the side."""
    first, last = boxes[:, :2], boxes[:, 2:]
    return torch.cat([(first + last) / 2, last - first], 1) / SIDE


def batches(name):
    made = loader(name)
    empty = torch.zeros((ROWS, SIDE, SIDE), dtype=torch.bool, device=device)
    while True:
        for batch in made:
            if name == "rfdetr":
                if hasattr(batch[1], "unpack"):
                    batch = (batch[0], batch[1].unpack())
                samples, targets = batch
                samples = samples.to(device, non_blocking=True)
                targets = [
                    {key: t[key].to(device, non_blocking=True) for key in ("boxes", "labels")}
                    for t in targets
                ]
                yield samples, targets
                continue
            images, targets = batch
            images = torch.stack(images) if name == "torch" else images
            images = images.to(device, non_blocking=True)
            targets = [
                {
                    "boxes": centred(t["boxes"].to(device, non_blocking=True).float()),
                    "labels": t["labels"].to(device, non_blocking=True),
                }
                for t in targets
            ]
            yield NestedTensor(images, empty, no_padding=True), targets


def same(batch):
    while True:
        yield batch


data.make(photos, out, None)
config = RFDETRNanoConfig(pretrain_weights=None, device=device.type)
training = TrainConfig(dataset_dir=".", output_dir="/tmp/rfdetr")
model = build_model_from_config(config, training).to(device)
criterion, _ = build_criterion_from_config(config, training)
criterion = criterion.to(device)
model.train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=device.type == "cuda")
source = same(next(batches("featherload"))) if loader_name == "none" else batches(loader_name)


def step(samples, targets):
    with torch.autocast(device.type, torch.bfloat16):
        outputs = model(samples, targets)
        losses = criterion(outputs, targets)
        weights = criterion.weight_dict
        loss = sum(losses[name] * weights[name] for name in losses if name in weights)
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    optimizer.step()
    return loss


def synchronize():
    if device.type == "cuda":
        torch.cuda.synchronize()


for _ in range(20 if device.type == "cuda" else 1):
    loss = step(*next(source))
synchronize()
assert torch.isfinite(loss), "the loss is not finite"

uses, stop = [], threading.Event()


def watch():
    while device.type == "cuda" and not stop.wait(0.1):
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
synchronize()
took, used = time.monotonic() - start, cpu() - used
stop.set()
watcher.join()
report = {
    "model": "rfdetr-nano",
    "loader": loader_name,
    "workers": workers,
    "images_per_s": round(ROWS * steps / took, 1),
    "waits": round(waited / took, 3),
    "gpu_use": round(sum(uses) / max(len(uses), 1), 1),
    "cores": round(used / took, 2),
}
print(json.dumps(report), flush=True)
os._exit(0)
