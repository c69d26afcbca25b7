"""Counts of the rows that a loader returned."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._featherload import RawBatch


class Counts:
    """Counts rows with pixels and failed samples, and computes the rate."""

    def __init__(self) -> None:
        self._images = 0
        self._failed = 0
        self._of_epoch = 0
        self._began = self._until = 0.0

    def begin_epoch(self) -> None:
        self._of_epoch = 0
        self._began = self._until = time.perf_counter()

    def add(self, raw: RawBatch) -> None:
        self._images += raw.good
        self._of_epoch += raw.good
        self._failed += raw.failed
        self._until = time.perf_counter()

    def read(self) -> dict[str, float]:
        # Up to the last batch: the rate no longer changes after the end of the epoch.
        took = self._until - self._began
        return {
            "images": self._images,
            "failed": self._failed,
            "images_per_s": self._of_epoch / took if took else 0.0,
        }
