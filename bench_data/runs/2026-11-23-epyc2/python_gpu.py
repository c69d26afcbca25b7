"""On a GPU: rates beside the command line's, and a ResNet-50 step with both loaders:
`python_gpu.py PHOTOS`, where PHOTOS has class folders. Prints a JSON object a line.
"""

import json
import statistics
import subprocess
import sys
import time

import torch
from featherload._helper import helper
from torch import nn
from torchvision.datasets import ImageFolder
from torchvision.models import resnet50
from torchvision.transforms import v2

import featherload

photos, workers = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 15


def by_command_line(batch, dtype):
    said = ["bench", photos, "--recipe", "train224", "--batch", batch, "--dtype", dtype]
    said += ["--workers", workers, "--depth", 4, "--epochs", 12, "--device", "cuda", "--json"]
    ended = subprocess.run([helper(), *map(str, said)], capture_output=True, text=True, check=True)
    return json.loads(ended.stdout)["images_per_s"]


def by_python(batch, dtype):
    with featherload.Loader(
        photos, "train224", batch, workers, "cuda", dtype=dtype, epochs=12
    ) as loader:
        images, first = 0, None
        for _ in range(12):
            for got, _ in loader:
                if first is None:
                    first = time.perf_counter()
                else:
                    images += len(got)
        return images / (time.perf_counter() - first)


for batch in (64, 256):
    for dtype in ("f16", "f32"):
        pairs = [(by_command_line(batch, dtype), by_python(batch, dtype)) for _ in range(3)]
        ratio = statistics.median(python / cli for cli, python in pairs)
        print(json.dumps({"batch": batch, "dtype": dtype, "ratio": ratio, "pairs": pairs}))

transform = v2.Compose([
    v2.ToImage(),
    v2.RandomResizedCrop(224),
    v2.RandomHorizontalFlip(),
    v2.ToDtype(torch.float32, scale=True),
    v2.Normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225]),
])


def train(which):
    """Images a second, and the share of the time in which the GPU has nothing to do."""
    if which == "torch":
        from torch.utils.data import DataLoader

        options = {"pin_memory": True, "persistent_workers": True}
    else:
        from featherload.torch import DataLoader

        options = {"device": "cuda"}
    folder = ImageFolder(photos, transform)
    loader = DataLoader(folder, 256, shuffle=True, num_workers=workers, drop_last=True, **options)
    torch.manual_seed(0)
    model = resnet50().cuda().to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    criterion = nn.CrossEntropyLoss()
    busy, images_seen, began = [], 0, None
    for epoch in range(4):
        for images, labels in loader:
            images = images.cuda(non_blocking=True)
            labels = labels.cuda(non_blocking=True)
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            with torch.autocast("cuda", torch.bfloat16):
                loss = criterion(model(images), labels)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            end.record()
            if epoch == 0:
                continue
            if began is None:
                torch.cuda.synchronize()
                began = time.perf_counter()
                continue
            busy.append((start, end))
            images_seen += len(images)
    torch.cuda.synchronize()
    took = time.perf_counter() - began
    stepped = sum(start.elapsed_time(end) for start, end in busy) / 1e3
    return {"loader": which, "images_per_s": images_seen / took, "gpu_idle": 1 - stepped / took}


for which in ("torch", "featherload", "torch", "featherload"):
    print(json.dumps(train(which)), flush=True)
