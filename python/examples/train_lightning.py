"""A classifier in Lightning. The loader goes into `fit` as torch's does.

python train_lightning.py PHOTOS
"""

from __future__ import annotations

import sys
from typing import Any

import lightning
import torch
from torch import nn

import featherload


class Classifier(lightning.LightningModule):  # type: ignore[misc]
    def __init__(self, classes: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.AvgPool2d(32), nn.Flatten(), nn.Linear(147, classes))

    def training_step(self, batch: featherload.Batch, _: int) -> Any:
        images, labels = batch
        return nn.functional.cross_entropy(self.layers(images), labels)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.1)


def main(photos: str) -> None:
    loader = featherload.Loader(photos, batch_size=32, num_workers=2, framework="torch")
    trainer = lightning.Trainer(
        max_epochs=2,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Classifier(len(loader.dataset.classes)), loader)
    print(f"{trainer.global_step} steps, loss {trainer.callback_metrics or 'not logged'}")


if __name__ == "__main__":
    main(sys.argv[1])
