"""Whose turn it is to change a run: threads wait for each other, and nested calls are refused."""

from __future__ import annotations

import threading
from collections.abc import Callable

from ._errors import Error


class _Here(threading.local):
    """What one thread does."""

    call = ""
    """The call that it is in the midst of."""


class Turn:
    """The turn of a loader, of rays or of views.

    Threads take turns by ``lock``. Code that Python runs in the midst of a call is in the same
    thread: a handler of signals or of logging, a finalizer, a trace function. It would be given
    the batch that the interrupted call is about to hand over. So each call that moves the run asks
    ``check`` first, and sets ``here.call`` while it runs.

    ``here.call = ...`` stands in a ``try`` whose ``finally`` takes it back. A context manager
    cannot do it: Ctrl-C may come before its ``__enter__`` returned.
    """

    __slots__ = ("_thing", "here", "lock")

    def __init__(self, thing: str) -> None:
        self._thing = thing
        self.here = _Here()
        self.lock = threading.RLock()

    def check(self, call: str) -> None:
        """Raises when this thread is in the midst of a call already."""
        inside = self.here.call
        if inside:
            raise Error(
                f"{call}() was called inside {inside}() of the same {self._thing}, by a handler "
                "of signals or of logging, a finalizer or a trace function: set a flag there, and "
                f"make the call after {inside}() returned"
            )

    def alone(self, call: str, change: Callable[[], None]) -> None:
        """Makes a change for ``call``, inside which this thread makes no other one."""
        self.check(call)
        try:
            self.here.call = call
            change()
        finally:
            self.here.call = ""

    def move(self, call: str, change: Callable[[], None]) -> None:
        """As ``alone``, once no other thread is in its turn."""

        def in_turn() -> None:
            with self.lock:
                change()

        self.alone(call, in_turn)
