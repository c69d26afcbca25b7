"""The iterator of a loader."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from . import _accelerate
from ._batch import Batch
from ._errors import Error
from ._featherload import RawBatch, tell_warnings

if TYPE_CHECKING:
    from ._loader import Loader


class Epoch(Iterator[Batch]):
    """The batches of one epoch."""

    def __init__(self, loader: Loader) -> None:
        # None after the end of the epoch.
        self._loader: Loader | None = loader
        self._stream = loader._stream
        self._epoch = -1
        self.begun = False
        self._superseded = False
        # Another thread waits to close it.
        self._left = False
        # Whether a batch was returned, and whether the last call raised an error.
        self._given = self._failed = False
        # Threads may share an iterator. All iterators of a loader take the same turns.
        self._turn = loader._turn

    def __next__(self) -> Batch:
        turn = self._turn
        turn.check("next")
        if self._loader is not None:
            # Before the lock: in a forked copy another thread may hold it for ever.
            self._loader._check_process()
        raw: RawBatch | None = None
        # Releasing the lock is a call, and Ctrl-C may arrive after any call.
        try:
            turn.here.call = "next"
            with turn.lock:
                self._failed = True
                loader = self._open()
                raw = loader._next(self._epoch, lambda: self._left)
                tell_warnings()
                if raw is None:
                    self._failed = False
                    self._close()
                    raise StopIteration
                loader.end_of_dataloader = raw.ends_epoch
                loader.remainder = _accelerate.remainder(loader, raw)
                batch = loader._take(raw)
                loader._counts.add(raw)
                self._failed, self._given = False, True
                self._stream.taken()
            return batch
        except BaseException:
            # Ctrl-C, a warning that is an error, no memory: the next call returns this batch.
            if raw is not None:
                with turn.lock:
                    self._failed = True
                    self._stream.not_taken(raw)
            raise
        finally:
            turn.here.call = ""

    def _open(self) -> Loader:
        """The loader, with this epoch begun."""
        loader = self._loader
        if loader is None:
            self._failed = False
            if self._superseded:
                raise Error(
                    "another epoch of the same loader began, and ended this one: a loader runs one "
                    "epoch at a time (to look at rows, use loader.preview())"
                )
            raise StopIteration
        if not self.begun:
            self._epoch = loader._begin(self)
            self.begun = True
        return loader

    @property
    def runs(self) -> bool:
        """Whether it has begun and not ended."""
        return self.begun and self._loader is not None

    def _end(self) -> None:
        loader, self._loader = self._loader, None
        if loader is not None and self.begun:
            _accelerate.end(loader)
            if not self._is_replaced(loader):
                loader._running = None

    def _is_replaced(self, loader: Loader) -> bool:
        """Whether another epoch runs already: the garbage collector may end this one late."""
        running = None if loader._running is None else loader._running()
        return running is not None and running is not self

    def supersede(self) -> None:
        """Ends this epoch because another one begins."""
        self._superseded = True
        self._close()

    def close(self) -> None:
        """Ends the epoch here: the loader continues with the next epoch. If the epoch returned
        no batch, or an error ended it, the loader continues with the same epoch. A thread that
        waits in ``next`` stops at once.
        """
        self._turn.check("close")
        loader = self._loader
        if loader is None or os.getpid() != loader._pid:
            return
        self._left = True
        self._turn.move("close", self._close)

    def _close(self) -> None:
        loader = self._loader
        goes_on = self._failed or not self._given
        goes_on = goes_on or (loader is not None and self._is_replaced(loader))
        self._end()
        if loader is None or goes_on or os.getpid() != loader._pid or loader.closed:
            return
        if self._stream.epoch() == self._epoch:
            loader._break_off()

    def __del__(self) -> None:
        try:
            self._close()
        except Exception:  # the loader was closed, or the interpreter ends
            pass
