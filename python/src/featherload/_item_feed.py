"""Data sets whose images are bytes that a method returns, such as those in LMDB or HDF5.

One thread calls the method, in the order of the epoch, and hands the bytes to the workers.
Never in here: which data sets have the method.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from . import _columns
from ._errors import ConfigError, Error
from ._featherload import RawFeed, RawItems
from ._values import shown

METHOD = "featherload_item"
"""The method by which any data set gives the image and the target of a sample."""

LIMIT = 256 << 20
"""Default of ``feed_limit``."""


class _WrongItem(ConfigError):
    """The method returned what is no sample."""


class AskedItem(NamedTuple):
    """A sample whose bytes and target a data set's method returns."""

    dataset: Any
    number: int
    target_transform: Callable[[Any], Any] | None

    def ask(self) -> tuple[Any, Any]:
        """Calls the method. Raises what it raises, and ``ConfigError`` for another result."""
        item = getattr(self.dataset, METHOD)(self.number)
        if not isinstance(item, tuple) or len(item) != 2:
            raise _WrongItem(
                f"{self.name()} returned {shown(item)}: return the image and its target",
                option="dataset",
            )
        image, target = item
        if self.target_transform is not None:
            target = self.target_transform(target)
        return image, target

    def name(self) -> str:
        """The call of the method."""
        return f"{type(self.dataset).__name__}.{METHOD}({self.number})"


def is_bytes(image: Any) -> bool:
    return isinstance(image, (bytes, bytearray, memoryview))


class _ItemTable(Sequence[AskedItem]):
    """Items in little memory: 12 bytes each."""

    def __init__(self, items: Sequence[AskedItem]) -> None:
        leaves = {id(item.dataset): (item.dataset, item.target_transform) for item in items}
        numbers = {key: number for number, key in enumerate(leaves)}
        self._leaves = [*leaves.values()]
        self._leaf = np.array([numbers[id(item.dataset)] for item in items], np.int32)
        self._index = np.array([item.number for item in items], np.int64)

    def __len__(self) -> int:
        return len(self._index)

    def __getitem__(self, number: Any) -> Any:
        dataset, transform = self._leaves[self._leaf[number]]
        return AskedItem(dataset, int(self._index[number]), transform)


class AskedItems:
    """Samples that are asked while the run goes on."""

    def __init__(self, samples: Sequence[AskedItem], first_target: Any, limit: int) -> None:
        self._samples = _ItemTable(samples)
        self.limit = limit
        # Samples without bytes, whose labels only show their kind: none has a value yet.
        labels = None if first_target is None else [_zero(first_target)] * len(samples)
        if isinstance(first_target, str):
            raise ConfigError(
                f"{samples[0].name()} returned the target {first_target!r}: return the number of "
                "the class, because the names of all classes are not known",
                option="dataset",
            )
        try:
            self._raw = RawItems.in_memory([b""] * len(samples), labels, None)
        except ConfigError as error:
            text = str(error).removeprefix("item 0: ")
            raise ConfigError(f"{samples[0].name()}: {text}", option="dataset") from None

    def __len__(self) -> int:
        return len(self._samples)

    def feeder(self) -> Feeder:
        return Feeder(self._samples, self.limit)

    def _open(self, names: Sequence[str]) -> dict[str, _columns.Held]:
        return _columns.select(names, {}, "src")

    def _column_names(self) -> Sequence[str]:
        return []

    def _without_columns(self) -> AskedItems:
        return self


def _zero(target: Any) -> Any:
    """A target of the same kind without a value; any other object itself."""
    detached = target.detach().cpu() if hasattr(target, "detach") else target
    try:
        array = np.asarray(detached)
    except (TypeError, ValueError):
        return target
    return np.zeros_like(array).tolist() if array.dtype.kind in "biuf" and array.size else target


class Feeder:
    """The thread that asks. It ends when the stream of its feed is closed, or is garbage."""

    def __init__(self, samples: Sequence[AskedItem], limit: int) -> None:
        self.feed = RawFeed(limit)
        # Shared with the thread, which must not keep the loader.
        self._failed: list[BaseException] = []
        arguments = (self.feed, samples, self._failed)
        self._thread = threading.Thread(
            target=_answer, args=arguments, name="featherload-feed", daemon=True
        )

    def start(self) -> None:
        self._thread.start()

    def explain(self, error: Error) -> None:
        """Raises ``error`` from the exception of the method, if there was one."""
        if self._failed:
            cause = self._failed.pop()
            raise error from cause


def _answer(feed: RawFeed, samples: Sequence[AskedItem], failed: list[BaseException]) -> None:
    # `os.read` waits without Python's lock, and ends quietly with the interpreter.
    while os.read(feed.wake_pipe, 16) and not feed.is_closed:
        while (request := feed.next()) is not None:
            sample = samples[request.id]
            try:
                image, target = sample.ask()
                if not is_bytes(image):
                    raise _WrongItem(
                        f"{sample.name()} returned {shown(image)}, and bytes for the first sample: "
                        "return bytes for all samples, or paths for all",
                        option="dataset",
                    )
                while not feed.put(request, image, target):
                    os.read(feed.wake_pipe, 16)
                    if feed.is_closed:
                        return
            # The loop of the trainer raises it.
            except BaseException as error:
                failed[:] = [error]
                what = f"{sample.name()}, sample {request.id}, raised {_text(error)}"
                if isinstance(error, _WrongItem):
                    what = f"sample {request.id}: {error}"
                if not feed.fail(request, what):
                    failed.clear()


def _text(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:
        text = ""
    return f"{type(error).__name__}: {text[:500]}" if text else type(error).__name__
