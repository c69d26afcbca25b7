"""``loader.sampler`` and ``loader.batch_sampler``, which trainers read as they read torch's.

Samples of one rank in one epoch, as numbers. Never in here: the drawing of an order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._loader import Loader

# Numbers that one call of the extension returns.
_CHUNK = 1 << 14


class EpochSampler:
    """The samples of this rank in the next epoch.

    Its length is that of torch's samplers: the samples of this rank in an epoch, including
    repeated samples that fill up the rank. It does not depend on ``batch_size``, except with
    buckets and ``drop_last``.
    """

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def __len__(self) -> int:
        return self._loader._rows

    def __iter__(self) -> Iterator[int]:
        """Numbers of the samples (``batch.ids``), in the order of the epoch. Does not affect an
        iterator of the loader that has begun.
        """
        stream, epoch = self._loader._stream, self._loader.epoch
        if stream.has_buckets():
            for number in range(len(self._loader)):
                yield from stream.samples_of_batch(epoch, number)
            return
        for first in range(0, len(self), _CHUNK):
            yield from stream.samples_of_rows(epoch, first, first + _CHUNK)

    @property
    def epoch(self) -> int:
        """The next epoch."""
        return self._loader.epoch

    def set_epoch(self, epoch: int) -> None:
        """Like ``loader.set_epoch``."""
        self._loader.set_epoch(epoch)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EpochSampler) and other._loader is self._loader

    def __hash__(self) -> int:
        return hash(id(self._loader))

    def __repr__(self) -> str:
        return f"<the sampler of {self._loader!r}: {len(self)} samples>"


class EpochBatchSampler:
    """The batches of this rank in the next epoch, as numbers of samples."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    @property
    def sampler(self) -> EpochSampler:
        return EpochSampler(self._loader)

    @property
    def batch_size(self) -> int:
        return self._loader.batch_size

    @property
    def drop_last(self) -> bool:
        return self._loader.drop_last

    def __len__(self) -> int:
        return len(self._loader)

    def set_epoch(self, epoch: int) -> None:
        """Like ``loader.set_epoch``."""
        self._loader.set_epoch(epoch)

    def __iter__(self) -> Iterator[list[int]]:
        """Numbers of the samples, batch by batch."""
        stream, epoch = self._loader._stream, self._loader.epoch
        for number in range(len(self)):
            yield stream.samples_of_batch(epoch, number)
