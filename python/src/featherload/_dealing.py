"""Which samples accelerate gives to a process, for loaders that evaluate.

accelerate deals whole batches: process r of w gets batches r, r + w and so on. The last ones are
filled up from the beginning. So gathered rows have the order of the data set, with the additional
rows at the end. Never in here: pixels, and orders of training.
"""

from __future__ import annotations

from collections.abc import Iterator

from ._errors import ConfigError


class DealtSamples:
    """The numbers of the samples of one process, in the order of the data set."""

    def __init__(
        self, samples: int, batch_size: int, rank: int, world_size: int, drop_last: bool
    ) -> None:
        from accelerate.data_loader import BatchSamplerShard
        from torch.utils.data import BatchSampler

        batches = BatchSampler(range(samples), batch_size, drop_last)
        self._batches = BatchSamplerShard(batches, world_size, rank)
        self._batch_size = batch_size
        if not len(self._batches):
            raise ConfigError(
                f"{samples} samples over {world_size} processes fill no batch of {batch_size} on "
                f"process {rank}, and drop_last leaves out the rest: give a smaller batch_size, or "
                "drop_last=False",
                option="batch_size",
            )

    def __len__(self) -> int:
        return len(self._batches) * self._batch_size

    def __iter__(self) -> Iterator[int]:
        for batch in self._batches:
            yield from batch


def kept_of_last(samples: int, batch_size: int, world_size: int) -> int:
    """Rows of the last batches of all processes that ``gather_for_metrics`` keeps. 0: all."""
    return samples % (batch_size * world_size)
