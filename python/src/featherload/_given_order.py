"""The order of another package's sampler, taken once per epoch.

Never in here: samplers of featherload, whose order the library makes.
"""

from __future__ import annotations

import itertools
import operator
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ._errors import ConfigError
from ._featherload import Stream
from ._values import shown
from .samplers import Sampler

# Keys of a state: how often the sampler was iterated, and its own epoch.
ITERATIONS, EPOCH = "sampler_iterations", "sampler_epoch"
# Numbers that are taken from a sampler at a time.
_PART = 65_536
# In an order: the row has no sample, which ends its batch.
_NO_SAMPLE = (1 << 64) - 1


class GivenOrder(Sampler):
    """A sampler object as the source of orders: an iterable of sample numbers with a length.

    Each epoch iterates it once, when the epoch begins. Its length must stay the same.
    """

    option = "sampler"
    unit = "samples"

    def __init__(self, sampler: Any) -> None:
        self.sampler = sampler
        if isinstance(sampler, type):
            raise ConfigError(
                f"{self.option} is the class {sampler.__name__}: give an object of it, such as "
                f"{sampler.__name__}()",
                option=self.option,
            )
        try:
            self.length = len(sampler)
        except TypeError:
            raise self._wrong(
                f"has no length: give it a __len__ that returns the number of its {self.unit}"
            ) from None
        if self.length < 1:
            raise self._wrong(f"has no {self.unit}: give one with {self.unit}")
        self._epoch: int | None = None
        self._ids = b""
        self.iterations = 0
        """How often the sampler was iterated. A state has the number, so that a resumed run can
        bring a sampler forward whose order follows from it.
        """

    def _options(self) -> dict[str, Any]:
        return {"sampler": {"given": {"num_samples": self.length}}}

    def _name(self) -> str:
        return type(self.sampler).__name__

    def check_ranks(self, rank: int, world: int, samples: int) -> None:
        """Compares a sampler's rank with that of the loader. A sampler without a rank that has more
        samples than one rank's share gives a warning: each rank may train on all samples.
        """
        theirs = (getattr(self.sampler, "rank", None), getattr(self.sampler, "num_replicas", None))
        if None not in theirs:
            if theirs != (rank, world):
                raise ConfigError(
                    f"the sampler {self._name()} is for rank {theirs[0]} of {theirs[1]}, and the "
                    f"loader for rank {rank} of {world}: give the loader the same rank and "
                    "world_size",
                    option="sampler",
                )
        elif world > 1 and self._rows() > -(-samples // world):
            warnings.warn(
                f"the sampler {self._name()} names no rank, and each of the {world} ranks iterates "
                f"its own: {self._rows()} of {samples} samples come on this rank. If that is not "
                "meant, give a DistributedSampler",
                RuntimeWarning,
                stacklevel=3,
            )

    def _wrong(self, what: str) -> ConfigError:
        named = self.option.replace("_", " ")
        return ConfigError(f"the {named} {self._name()} {what}", option=self.option)

    def begin(self, stream: Stream, epoch: int, was_set: bool) -> None:
        """Gives ``stream`` the order of an epoch. An epoch that continues, or that begins again
        after an error, keeps its order. ``was_set``: ``set_epoch`` chose the epoch.
        """
        if self._epoch == epoch and not was_set:
            return
        if was_set and hasattr(self.sampler, "set_epoch"):
            self.sampler.set_epoch(epoch)
        self._give(stream, epoch, self._take())

    def progress(self) -> dict[str, int]:
        """What a state keeps of the sampler: its iterations, and its epoch if it has one."""
        progress = {ITERATIONS: self.iterations}
        epoch = getattr(self.sampler, "epoch", None)
        if isinstance(epoch, int) and epoch >= 0:
            progress[EPOCH] = epoch
        return progress

    def resume(self, stream: Stream, state: dict[str, Any], progress: Any, rank: int) -> None:
        """Gives ``stream`` the order of the epoch of ``state``, which ``stream`` accepts otherwise.
        ``progress``: what the state kept of the sampler.

        Raises ``ConfigError`` for a sampler that does not repeat the order.
        """
        epoch, iterations = state["epoch"], progress.get(ITERATIONS)
        if not state["samples"]:
            # The next epoch takes the next order.
            self._bring_forward(epoch if iterations is None else iterations, epoch)
            self._epoch = None
            return
        # Each rank has its own order, and a state has the hash of one.
        wanted = state.get("sampler_hash") if state["plan"]["rank"] == rank else None
        if self._epoch == epoch and wanted in (None, Stream.order_hash(self._ids)):
            stream.set_order(epoch, self._ids)
            return
        set_epoch = getattr(self.sampler, "set_epoch", None)
        if set_epoch is None:
            self._bring_forward((epoch + 1 if iterations is None else iterations) - 1, epoch)
        for attempt in range(1 if set_epoch is None else 2):
            # The caller may have set the sampler's epoch. Without a hash nothing shows that.
            if set_epoch is not None and (attempt or wanted is None):
                set_epoch(progress.get(EPOCH, epoch))
            ids = self._take()
            if wanted in (None, Stream.order_hash(ids.tobytes())):
                self._give(stream, epoch, ids)
                return
        raise self._cannot_repeat(epoch)

    def give_to_preview(self, stream: Stream, epoch: int, samples: int) -> None:
        """Gives the order of the current epoch again. Before the first epoch, that of the data."""
        ids = self._ids or (np.arange(self._rows(), dtype="<u8") % samples).tobytes()
        stream.set_order(epoch, ids)

    def _rows(self) -> int:
        """Rows of an epoch."""
        return self.length

    def _bring_forward(self, iterations: int, epoch: int) -> None:
        if self.iterations > iterations:
            raise self._cannot_repeat(epoch)
        while self.iterations < iterations:
            self._take()

    def _cannot_repeat(self, epoch: int) -> ConfigError:
        return self._wrong(
            f"does not repeat the order of epoch {epoch}, in which the state was saved: give a new "
            "sampler with the generator and seed of that run, or begin an epoch with set_epoch"
        )

    def _give(self, stream: Stream, epoch: int, ids: npt.NDArray[np.uint64]) -> None:
        data = ids.tobytes()
        stream.set_order(epoch, data)
        self._epoch, self._ids = epoch, data

    def _take(self) -> npt.NDArray[np.uint64]:
        ids = np.empty(self.length, np.int64)
        begin = 0
        # In parts, since Python's numbers take 32 bytes each.
        for part in self._parts():
            ids[begin : begin + len(part)] = self._numbers(part, begin)
            begin += len(part)
        return self._order(ids)

    def _parts(self) -> Iterator[list[Any]]:
        """An iteration of the sampler, part by part. One part more than the length shows a sampler
        that does not end.
        """
        count = 0
        try:
            given = iter(self.sampler)
            while part := [*itertools.islice(given, _PART)]:
                count += len(part)
                if count > self.length:
                    raise self._other_length(f"at least {count}")
                yield part
        except StopIteration as error:
            raise self._wrong("raised StopIteration: let its __iter__ return instead") from error
        if count < self.length:
            raise self._other_length(str(count))
        self.iterations += 1

    def _other_length(self, gave: str) -> ConfigError:
        return self._wrong(
            f"gave {gave} {self.unit}, and its length was {self.length}: its __len__ must be the "
            f"number of {self.unit} in each epoch"
        )

    def _order(self, ids: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
        if len(ids) and ids.min() < 0:
            at = int(ids.argmin())
            raise self._wrong(f"gave {ids[at]} at place {at}: give numbers from 0")
        return ids.view("<u8")

    def _numbers(self, numbers: list[Any], begin: int) -> npt.NDArray[np.int64]:
        """The numbers of the places from ``begin`` on."""
        if {*map(type, numbers)} <= {int}:
            try:
                return np.array(numbers, np.int64)
            except OverflowError:
                # Found below, by its place.
                pass
        ids = np.empty(len(numbers), np.int64)
        for at, number in enumerate(numbers):
            try:
                if "bool" in (type(number).__name__, *str(getattr(number, "dtype", "")).split(".")):
                    raise TypeError("a mask")
                ids[at] = operator.index(number)
            except (TypeError, OverflowError, RuntimeError):
                raise self._wrong(
                    f"gave {shown(number)} at place {begin + at}: give whole numbers of samples "
                    "(of a mask: its nonzero places)"
                ) from None
        return ids


class GivenBatchOrder(GivenOrder):
    """An object that gives batches, lists of sample numbers, as the source of orders. Its length is
    the number of batches. These may have different sizes.

    The first epoch's batches are taken when this is made, because memory is needed for the largest.
    """

    option = "batch_sampler"
    unit = "batches"

    def __init__(self, sampler: Any) -> None:
        super().__init__(sampler)
        self._first: list[Any] | None = self._iterate()
        self.iterations = 0
        given = getattr(sampler, "batch_size", None)
        most = max(map(len, self._first))
        self.batch_size = max(most, given) if isinstance(given, int) else most

    def _options(self) -> dict[str, Any]:
        return {"sampler": {"given": {"num_samples": self._rows()}}}

    def _rows(self) -> int:
        return self.length * self.batch_size

    def _iterate(self) -> list[Any]:
        batches = [batch for part in self._parts() for batch in part]
        for number, batch in enumerate(batches):
            try:
                batches[number] = [*batch]
            except TypeError:
                raise self._wrong(
                    f"gave {shown(batch)} as batch {number}: give lists of sample numbers"
                ) from None
            if not batches[number]:
                raise self._wrong(f"gave an empty batch {number}: give at least one sample")
        return batches

    def _take(self) -> npt.NDArray[np.uint64]:
        # An object with set_epoch may have been told another epoch since.
        takes_epoch = any(
            hasattr(of, "set_epoch")
            for of in (self.sampler, getattr(self.sampler, "sampler", None))
        )
        first, self._first = self._first, None
        if first is None or takes_epoch:
            batches = self._iterate()
        else:
            batches = first
            self.iterations += 1
        most = max(map(len, batches))
        if most > self.batch_size:
            raise self._wrong(
                f"gave a batch of {most} samples, and memory was made for {self.batch_size}: give "
                "it an attribute batch_size with the size of the largest batch"
            )
        ids = self._order(self._numbers([number for batch in batches for number in batch], 0))
        sizes = np.array([len(batch) for batch in batches])
        rows = np.full((len(batches), self.batch_size), _NO_SAMPLE, "<u8")
        rows[np.arange(self.batch_size) < sizes[:, None]] = ids
        return rows.reshape(-1)


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
