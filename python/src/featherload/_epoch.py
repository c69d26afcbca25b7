"""The iterator of a loader."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from . import _accelerate
from ._batch import Batch
from ._errors import Error
from ._featherload import RawBatch

if TYPE_CHECKING:
    from ._loader import Loader


class Epoch(Iterator[Batch]):
    """The batches of one epoch."""

    def __init__(self, loader: Loader) -> None:
        # None once the epoch is over.
        self._loader: Loader | None = loader
        self._stream = loader._stream
        self._epoch = -1
        self.begun = False
        self._superseded = False
        # Taken from the workers, and not handed over yet.
        self._raw: RawBatch | None = None

    def __next__(self) -> Batch:
        loader = self._loader
        if loader is None:
            if self._superseded:
                raise Error(
                    "another epoch of the same loader began, and broke this one off: a loader has "
                    "one at a time (for a look at rows: loader.preview())"
                )
            raise StopIteration
        loader._check_process()
        if not self.begun:
            self._epoch = loader._begin(self)
            self.begun = True
        if self._raw is None:
            self._raw = self._stream.next(self._epoch)
        loader._tell(())
        if self._raw is None:
            self._end()
            raise StopIteration
        loader.end_of_dataloader = self._raw.ends_epoch
        batch = loader._take(self._raw)
        loader._counts.add(self._raw)
        self._raw = None
        return batch

    def _end(self) -> None:
        loader, self._loader = self._loader, None
        if loader is not None and self.begun:
            _accelerate.end(loader)
            loader._running = None

    def supersede(self) -> None:
        """Another epoch begins."""
        self._superseded = True
        self.close()

    def close(self) -> None:
        """Ends the epoch here: the loader's next one is the next."""
        loader, begun = self._loader, self.begun
        self._end()
        if loader is None or not begun or os.getpid() != loader._pid:
            return
        if self._stream.position()[0] == self._epoch:
            loader._break_off()

    def __del__(self) -> None:
        try:
            self.close()
        except Exception:  # the loader was closed, or the interpreter ends
            pass
