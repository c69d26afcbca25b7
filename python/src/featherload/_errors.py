"""The package's exceptions. Their texts are the same as on the command line."""

from __future__ import annotations

from collections.abc import Callable

printable: Callable[[str], str] = str
"""Returns one line, with control characters escaped. The extension sets it: it imports this file
when it starts."""


class Error(Exception):
    """The base class of featherload's errors.

    Its text is one line. Control characters of paths and names are escaped, and the middle of a
    long text is left out.

    ``path``: the file or folder. ``option``: the option to change. ``line``: the line of a text
    file. ``id`` and ``kind``: a sample's number in the index, and the kind of its fault
    (``"truncated"``, ``"corrupt"`` and so on). Each is None if it does not apply.
    """

    def __init__(
        self,
        text: str,
        *,
        path: str | None = None,
        option: str | None = None,
        line: int | None = None,
        id: int | None = None,
        kind: str | None = None,
    ) -> None:
        super().__init__(printable(text))
        self.path = path
        self.option = option
        self.line = line
        self.id = id
        self.kind = kind


class ConfigError(Error, ValueError):
    """An invalid option, or an invalid combination of options."""


class DatasetError(Error):
    """An error of the data set as a whole: a missing folder, a bad line of a list."""


class SampleError(Error):
    """One sample failed, and ``on_error`` is ``"stop"``."""


class WorkerError(Error):
    """A worker or the coordinator ended, or could not be started."""


class BatchesHeldError(Error):
    """The caller holds all batches that have memory. Drop some, or raise ``depth``."""


class DeviceError(Error):
    """An error of the GPU or its driver."""


class PlatformError(Error):
    """An error of the operating system."""
