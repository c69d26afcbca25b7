"""A classifier in torch: ResNet-18 on a folder of class folders.

    python train_torch.py PHOTOS [EPOCHS]

What another loader needs two lines for, as a diff:

    -from torch.utils.data import DataLoader
    +from featherload.torch import DataLoader

`featherload.Loader(PHOTOS, framework="torch")` does the same without torchvision's classes.
"""

from __future__ import annotations

import sys

import torch
from torch import nn
from torchvision.datasets import ImageFolder
from torchvision.models import resnet18
from torchvision.transforms import v2

from featherload.torch import DataLoader


def main(photos: str, epochs: int = 1) -> None:
    transform = v2.Compose(
        [
            v2.ToImage(),
            v2.RandomResizedCrop(64),
            v2.RandomHorizontalFlip(),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225]),
        ]
    )
    dataset = ImageFolder(photos, transform)
    loader = DataLoader(dataset, batch_size=32, shuffle=True, num_workers=2)

    torch.manual_seed(0)
    model = resnet18(num_classes=len(dataset.classes))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(epochs):
        total = 0.0
        for images, labels in loader:
            loss = criterion(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: loss {total / len(loader):.3f}")


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
