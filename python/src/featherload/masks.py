"""Masks of patches, as iBOT, DINOv2 and DINOv3 draw them for global crops.

A mask depends on seed, epoch, number of the batch and its samples. So it is the same for any number
of workers, and after a resume. Ranks have different samples, and so different masks.
"""

from __future__ import annotations

import hashlib
import math
import random
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ._batch import Batch
from ._errors import ConfigError
from ._values import shown, whole

__all__ = ["IbotMasks", "PatchMasks"]

_ATTEMPTS = 10
"""Rectangles that are tried before a mask stays as it is."""


@dataclass(frozen=True)
class PatchMasks:
    """The masks of a batch, for all global crops: crop by crop, in each the rows of the batch.

    Arrays are torch tensors on the device of the images if the images are tensors, else NumPy
    arrays.
    """

    masks: Any
    """Crops of all rows x patches, bool: whether a patch is masked."""
    indices: Any
    """int64: the places of masked patches in ``masks.flatten()``, in order."""
    weights: Any
    """float32: for each masked patch 1 / number of masked patches in its crop."""
    upper_bound: int
    """A number that is at least that of all masked patches, and equal for batches of one size."""

    @property
    def count(self) -> int:
        """Number of masked patches."""
        return len(self.indices)


class IbotMasks:
    """Draws the masks of a batch: ``masks = IbotMasks(16)(batch)``.

    ``patches``: patches of a global crop, down and across, or one number for both.
    ``ratio``: the least and the greatest part of a crop that is masked. ``probability``: the part
    of the crops that are masked at all. The ratios of masked crops are spread over the range.
    ``min_patches``, ``max_patches``: the area of a rectangle of masked patches. ``max_patches``: by
    default half of all patches. ``min_aspect``, ``max_aspect``: its height divided by its width, by
    default up to ``1 / min_aspect``. ``complete``: adds single patches until a crop has as many as
    its ratio says, as DINOv3 does. ``seed``: another seed gives other masks.
    """

    def __init__(
        self,
        patches: int | tuple[int, int],
        *,
        ratio: tuple[float, float] = (0.1, 0.5),
        probability: float = 0.5,
        min_patches: float = 4,
        max_patches: float | None = None,
        min_aspect: float = 0.3,
        max_aspect: float | None = None,
        complete: bool = False,
        seed: int = 0,
    ) -> None:
        both = patches if isinstance(patches, tuple) else (patches, patches)
        if len(both) != 2:
            raise ConfigError(
                f"patches is {shown(patches)}: give one number, or two, down and across",
                option="patches",
            )
        self.height, self.width = (whole("patches", side, 1, 1 << 15) for side in both)
        self.ratio = _range("ratio", ratio, 0.0, 1.0)
        self.probability = _number("probability", probability, 0.0, 1.0)
        half = self.height // 2 * self.width
        self.min_patches = _number("min_patches", min_patches, 0.0, math.inf)
        most = half if max_patches is None else max_patches
        self.max_patches = _number("max_patches", most, 0.0, math.inf)
        self.min_aspect = _number("min_aspect", min_aspect, 1e-3, 1e3)
        most = 1 / self.min_aspect if max_aspect is None else max_aspect
        self.max_aspect = _number("max_aspect", most, 1e-3, 1e3)
        self.complete = bool(complete)
        self.seed = whole("seed", seed, 0)

    def __call__(self, batch: Batch, crops: int = 2) -> PatchMasks:
        """The masks of the first ``crops`` crops of a batch, as the loader gave it. A batch that
        was made of it, such as by ``.to()``, has no ids.

        Raises ``ConfigError`` for a batch with fewer crops, and for images of different sizes.
        """
        images = batch.images
        views = images if isinstance(images, list) else [images]
        if batch._has_patches or (views and len(views[0].shape) != 4):
            raise ConfigError(
                "the images of this batch have different sizes, or are patches, and masks are for "
                "crops of one size: give a recipe with a crop",
                option="recipe",
            )
        if whole("crops", crops, 1) > len(views):
            raise ConfigError(
                f"crops is {crops}, and the samples of this batch have {len(views)}: use at most "
                f"{len(views)}",
                option="crops",
            )
        first = views[0]
        ids = np.ascontiguousarray(batch.ids).tobytes()
        drawn = self.draw(batch.epoch, batch.number, crops * len(first), ids)
        torch = sys.modules.get("torch")
        if torch is None or not isinstance(first, torch.Tensor):
            return drawn

        def tensor(array: npt.NDArray[Any]) -> Any:
            return torch.from_numpy(array).to(first.device)

        return PatchMasks(
            tensor(drawn.masks), tensor(drawn.indices), tensor(drawn.weights), drawn.upper_bound
        )

    def draw(self, epoch: int, number: int, rows: int, ids: bytes = b"") -> PatchMasks:
        """The masks of ``rows`` crops of batch ``number`` of an epoch, as NumPy arrays. ``ids``:
        other ids give other masks.
        """
        numbers = self._numbers(epoch, number, ids)
        patches = self.height * self.width
        masked = int(rows * self.probability)
        least, most = self.ratio
        bounds = [least + (most - least) * row / masked for row in range(masked)] + [most]
        masks = np.zeros((rows, self.height, self.width), dtype=bool)
        upper_bound = 0
        for row in range(masked):
            low, high = bounds[row], bounds[row + 1]
            most = int(patches * high)
            wanted = int(patches * (low + (high - low) * numbers.random()))
            self._mask(masks[row], min(wanted, most), numbers)
            upper_bound += most
        order = list(range(rows))
        for last in range(rows - 1, 0, -1):
            other = int(numbers.random() * (last + 1))
            order[last], order[other] = order[other], order[last]
        flat = masks.reshape(rows, patches)[order]
        counts = flat.sum(axis=1)
        shares = np.float32(1) / np.maximum(counts, 1).astype(np.float32)
        return PatchMasks(flat, np.flatnonzero(flat), np.repeat(shares, counts), upper_bound)

    def _numbers(self, epoch: int, number: int, ids: bytes) -> random.Random:
        """The random numbers of a batch. Only ``random()`` is used, whose numbers Python keeps."""
        key = f"ibot {self.seed} {epoch} {number} ".encode() + ids
        digest = hashlib.blake2b(key, digest_size=16).digest()
        return random.Random(int.from_bytes(digest, "little"))

    def _mask(self, mask: npt.NDArray[np.bool_], wanted: int, numbers: random.Random) -> None:
        """Adds rectangles until ``wanted`` patches are masked, or none fits any more."""
        count = 0
        while count < wanted:
            added = self._add_rectangle(mask, min(wanted - count, self.max_patches), numbers)
            if added == 0:
                break
            count += added
        if self.complete and count < wanted:
            free = np.flatnonzero(~mask).tolist()
            for _ in range(wanted - count):
                place = int(numbers.random() * len(free))
                free[place], free[-1] = free[-1], free[place]
                mask.reshape(-1)[free.pop()] = True

    def _add_rectangle(
        self, mask: npt.NDArray[np.bool_], most: float, numbers: random.Random
    ) -> int:
        """Masks a rectangle with 1 to ``most`` new patches. The number of them, or 0."""
        low, high = math.log(self.min_aspect), math.log(self.max_aspect)
        for _ in range(_ATTEMPTS):
            # Near the end the least area is above the greatest. It is drawn between them, too.
            area = self.min_patches + (most - self.min_patches) * numbers.random()
            aspect = math.exp(low + (high - low) * numbers.random())
            height, width = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
            if height >= self.height or width >= self.width:
                continue
            top = int(numbers.random() * (self.height - height + 1))
            left = int(numbers.random() * (self.width - width + 1))
            part = mask[top : top + height, left : left + width]
            added = height * width - int(np.count_nonzero(part))
            if 0 < added <= most:
                part[...] = True
                return added
        return 0

    def __repr__(self) -> str:
        return (
            f"IbotMasks(({self.height}, {self.width}), ratio={self.ratio}, "
            f"probability={self.probability}, seed={self.seed})"
        )


def _number(option: str, value: Any, least: float, most: float) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ConfigError(f"{option} is {shown(value)}: give a number", option=option)
    if not least <= value <= most:
        upper = "" if most == math.inf else f" to {most:g}"
        raise ConfigError(f"{option} is {shown(value)}: use {least:g}{upper}", option=option)
    return float(value)


def _range(option: str, value: Any, least: float, most: float) -> tuple[float, float]:
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        raise ConfigError(f"{option} is {shown(value)}: give two numbers", option=option)
    low, high = (_number(option, side, least, most) for side in value)
    if low > high:
        raise ConfigError(
            f"{option} is {shown(value)}: write the smaller number first", option=option
        )
    return low, high
