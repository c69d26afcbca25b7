"""Whose turn it is to change a run: threads wait for each other, and nested calls are refused."""

from __future__ import annotations

import threading

from ._errors import Error


class _Here(threading.local):
    """What one thread does."""

    busy = False


class Turn:
    """The turn of a loader, of rays or of views.

    Threads take turns by ``lock``. Code that Python runs in the midst of a call is in the same
    thread: a signal handler, a finalizer, a trace function. It would be given the batch that the
    interrupted call is about to hand over. So a call sets ``here.busy`` while it runs, and each
    call that moves the run asks ``check`` first.

    ``here.busy = True`` stands in a ``try`` whose ``finally`` takes it back. A context manager
    cannot do it: Ctrl-C may come before its ``__enter__`` returned.
    """

    __slots__ = ("_thing", "here", "lock")

    def __init__(self, thing: str) -> None:
        self._thing = thing
        self.here = _Here()
        self.lock = threading.RLock()

    def check(self, call: str) -> None:
        """Raises when this thread is in the midst of a call already."""
        if self.here.busy:
            raise Error(
                f"{call}() was called inside next() of the same {self._thing}, by a signal "
                "handler, a finalizer or a trace function: set a flag there, and make the call "
                "after next() returned"
            )
