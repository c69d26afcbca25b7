"""The order of another package's sampler, taken once per epoch.

Never in here: samplers of featherload, whose order the library makes.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ._errors import ConfigError
from ._featherload import Stream
from ._values import shown
from .samplers import Sampler


class GivenOrder(Sampler):
    """A sampler object as the source of orders: an iterable of sample numbers with a length.

    Each epoch iterates it once, when the epoch begins. Its length must stay the same.
    """

    def __init__(self, sampler: Any) -> None:
        self.sampler = sampler
        try:
            self.length = len(sampler)
        except TypeError:
            raise ConfigError(
                f"the sampler {self._name()} has no length: give it a __len__ that returns the "
                "number of its samples",
                option="sampler",
            ) from None
        if self.length < 1:
            raise ConfigError(
                f"the sampler {self._name()} has no samples: give one with samples",
                option="sampler",
            )
        self._epoch: int | None = None
        self._ids = b""

    def _options(self) -> dict[str, Any]:
        return {"sampler": {"given": {"num_samples": self.length}}}

    def _name(self) -> str:
        return type(self.sampler).__name__

    def begin(self, stream: Stream, epoch: int, samples: int) -> None:
        """Gives ``stream`` the order of an epoch, which continues after ``samples`` samples."""
        if samples and self._epoch == epoch:
            # The epoch continues, with the order that it has.
            return
        self._give(stream, epoch, self._take())

    def resume(self, stream: Stream, state: dict[str, Any]) -> None:
        """Gives ``stream`` the order that the epoch of ``state`` had.

        The sampler is iterated as it is. If that is another order, a sampler with ``set_epoch`` is
        set to the epoch. Others are iterated once for each epoch up to it, because their order may
        follow from the number of calls.

        Raises ``ConfigError`` for a sampler that does not repeat the order.
        """
        epoch, wanted = state["epoch"], state.get("sampler_hash")
        if not state["samples"]:
            return
        if self._epoch == epoch and self._is(stream, wanted):
            return
        set_epoch = getattr(self.sampler, "set_epoch", None)
        for attempt in range(epoch + 1 if set_epoch is None else 2):
            if attempt and set_epoch is not None:
                set_epoch(epoch)
            self._give(stream, epoch, self._take())
            if self._is(stream, wanted):
                return
        raise ConfigError(
            f"the sampler {self._name()} does not repeat the order of epoch {epoch}, in which the "
            "state was saved: give it a generator with the seed of that run, or begin an epoch "
            "with set_epoch",
            option="sampler",
        )

    def give_to_preview(self, stream: Stream, epoch: int) -> None:
        """Gives the order of the current epoch again. Before the first epoch, that of the data."""
        ids = self._ids or np.arange(self.length, dtype="<u8").tobytes()
        stream.set_order(epoch, ids)

    def _give(self, stream: Stream, epoch: int, ids: npt.NDArray[np.uint64]) -> None:
        self._epoch, self._ids = epoch, ids.tobytes()
        stream.set_order(epoch, self._ids)

    def _is(self, stream: Stream, wanted: Any) -> bool:
        return bool(stream.order_hash() == wanted)

    def _take(self) -> npt.NDArray[np.uint64]:
        numbers = [*self.sampler]
        try:
            ids = np.fromiter(map(operator.index, numbers), np.int64, len(numbers))
        except (TypeError, OverflowError):
            at = next(at for at, number in enumerate(numbers) if not hasattr(number, "__index__"))
            raise ConfigError(
                f"the sampler {self._name()} gave {shown(numbers[at])} at place {at}: give whole "
                "numbers",
                option="sampler",
            ) from None
        if len(ids) != self.length:
            raise ConfigError(
                f"the sampler {self._name()} gave {len(ids)} samples, and its length was "
                f"{self.length}: its __len__ must be the number of samples in each epoch",
                option="sampler",
            )
        if len(ids) and ids.min() < 0:
            at = int(ids.argmin())
            raise ConfigError(
                f"the sampler {self._name()} gave {ids[at]} at place {at}: give numbers from 0",
                option="sampler",
            )
        return ids.astype("<u8")


class GivenBatches:
    """The numbers of a sampler object, batch by batch. Like torch's ``BatchSampler``."""

    def __init__(self, sampler: Any, batch_size: int, drop_last: bool) -> None:
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __len__(self) -> int:
        whole, rest = divmod(len(self.sampler), self.batch_size)
        return whole + (rest > 0 and not self.drop_last)

    def __iter__(self) -> Iterator[list[int]]:
        numbers = iter(self.sampler)
        while batch := [*itertools.islice(numbers, self.batch_size)]:
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch
