"""ResNet-18 on image folders, by torch's DataLoader or by featherload's: `python_resnet.py WHICH PHOTOS EPOCHS`.

The two programs differ by the import alone. PSS is that of all processes, ten times a second.
"""

import json
import os
import resource
import sys
import threading
import time

import torch
from torch import nn
from torchvision.datasets import ImageFolder
from torchvision.models import resnet18
from torchvision.transforms import v2

which, photos, epochs = sys.argv[1], sys.argv[2], int(sys.argv[3])
if which == "torch":
    from torch.utils.data import DataLoader
else:
    from featherload.torch import DataLoader


def pss(pid):
    try:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            own = sum(int(line.split()[1]) for line in file if line.startswith("Pss:"))
        children = []
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children") as file:
                children += file.read().split()
    except OSError:
        return 0
    return own + sum(pss(child) for child in children)


peak, over = 0, False


def watch():
    global peak
    while not over:
        peak = max(peak, pss(os.getpid()))
        time.sleep(0.1)


torch.set_num_threads(2)
transform = v2.Compose([
    v2.ToImage(),
    v2.RandomResizedCrop(128),
    v2.RandomHorizontalFlip(),
    v2.ToDtype(torch.float32, scale=True),
    v2.Normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225]),
])
dataset = ImageFolder(photos, transform)
torch.manual_seed(0)
model = resnet18(num_classes=len(dataset.classes))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
criterion = nn.CrossEntropyLoss()
before = pss(os.getpid())
watcher = threading.Thread(target=watch)
watcher.start()
began = time.perf_counter()
loader = DataLoader(dataset, batch_size=32, shuffle=True, num_workers=2, drop_last=True)
losses, firsts, waits = [], [], 0.0
for epoch in range(epochs):
    total, batches = 0.0, iter(loader)
    asked = time.perf_counter()
    begun = asked
    for images, labels in batches:
        waits += time.perf_counter() - asked
        if len(firsts) == epoch:
            firsts.append(round(time.perf_counter() - begun, 3))
        loss = criterion(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
        asked = time.perf_counter()
    losses.append(round(total / len(loader), 3))
took = time.perf_counter() - began
over = True
watcher.join()
del batches
if which != "torch":
    loader.close()
own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps({
    "loader": which,
    "seconds": round(took, 1),
    "waited_s": round(waits, 2),
    "cpu_s": round(own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime, 1),
    "cpu_workers_s": round(children.ru_utime + children.ru_stime, 1),
    "pss_mib_above_start": round((peak - before) / 1024),
    "first_batch_s": firsts[:3],
    "losses": losses,
}))
