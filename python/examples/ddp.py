"""Several processes that train one model: each gets its part of every epoch.

    torchrun --nproc-per-node 2 ddp.py PHOTOS

The loader reads rank and world size from torchrun's environment.
"""

from __future__ import annotations

import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import featherload


def main(photos: str) -> None:
    dist.init_process_group("gloo")
    loader = featherload.Loader(
        photos, "eval224", batch_size=16, num_workers=1, shuffle=True, framework="torch"
    )
    torch.manual_seed(0)
    classes = len(loader.dataset.classes)
    layers = nn.Sequential(nn.AvgPool2d(32), nn.Flatten(), nn.Linear(147, classes))
    model = DistributedDataParallel(layers)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    seen = torch.zeros(len(loader.dataset), dtype=torch.int64)
    for batch in loader:
        images, labels = batch
        loss = nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        for row in batch.good_rows():
            seen[int(batch.ids[row])] += int(not batch.repeated[row])
    dist.all_reduce(seen)
    assert bool((seen == 1).all()), "each picture once, over all ranks"
    if dist.get_rank() == 0:
        print(f"{len(loader)} batches on each of {dist.get_world_size()} ranks")
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1])
