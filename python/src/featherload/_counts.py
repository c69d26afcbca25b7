"""What a loader handed over."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._featherload import RawBatch


class Counts:
    """Rows that hold pixels of a sample, samples that gave none, and how fast."""

    def __init__(self) -> None:
        self._images = 0
        self._failed = 0
        self._of_epoch = 0
        self._began: float | None = None

    def begin_epoch(self) -> None:
        self._of_epoch = 0
        self._began = time.perf_counter()

    def add(self, raw: RawBatch) -> None:
        self._images += raw.good
        self._of_epoch += raw.good
        self._failed += raw.failed

    def read(self) -> dict[str, float]:
        took = 0.0 if self._began is None else time.perf_counter() - self._began
        return {
            "images": self._images,
            "failed": self._failed,
            "images_per_s": self._of_epoch / took if took else 0.0,
        }
