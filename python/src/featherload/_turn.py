"""Serialises changes of a run: threads wait for each other, and nested calls are errors."""

from __future__ import annotations

import threading
from collections.abc import Callable

from ._errors import Error


class _Here(threading.local):
    """The state of one thread."""

    call = ""
    """The call that the thread is executing."""


class Turn:
    """The lock of a loader, of rays or of views.

    Threads take turns with ``lock``. But Python may run other code of the same thread inside a
    call: a handler of signals or of logging, a finalizer, a trace function. That code would get
    the batch that the interrupted call is about to return. So each call that moves the run first
    calls ``check``, and sets ``here.call`` while it runs.

    ``here.call = ...`` is in a ``try`` whose ``finally`` resets it. A context manager cannot do
    this: Ctrl-C may arrive before its ``__enter__`` has returned.
    """

    __slots__ = ("_thing", "here", "lock")

    def __init__(self, thing: str) -> None:
        self._thing = thing
        self.here = _Here()
        self.lock = threading.RLock()

    def check(self, call: str) -> None:
        """Raises an error if this thread is already inside a call."""
        inside = self.here.call
        if inside:
            raise Error(
                f"{call}() was called inside {inside}() of the same {self._thing}, by a handler "
                "of signals or of logging, a finalizer or a trace function: set a flag there, and "
                f"make the call after {inside}() returned"
            )

    def alone(self, call: str, change: Callable[[], None]) -> None:
        """Makes a change for ``call``. This thread can make no other change meanwhile."""
        self.check(call)
        try:
            self.here.call = call
            change()
        finally:
            self.here.call = ""

    def move(self, call: str, change: Callable[[], None]) -> None:
        """Like ``alone``, after waiting for other threads."""

        def in_turn() -> None:
            with self.lock:
                change()

        self.alone(call, in_turn)
