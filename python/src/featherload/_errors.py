"""The package's exceptions. Their texts are the command line's."""

from __future__ import annotations

from collections.abc import Callable

printable: Callable[[str], str] = str
"""One line that a terminal shows and does not obey. The extension sets it: it imports this file
while it begins."""


class Error(Exception):
    """Anything that featherload refuses or fails at.

    Its text is one line. Control characters of paths and names in it are escaped, and a long
    one loses its middle.

    ``path``: the file or folder that it is about. ``option``: the option to change.
    ``line``: the line of a text file. ``id`` and ``kind``: of one sample, its number in
    the index and the kind of its fault (``"truncated"``, ``"corrupt"`` and so on).
    Each is None where it says nothing.
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
    """An option, or a combination of options, that cannot work."""


class DatasetError(Error):
    """The data set as a whole: a missing folder, a bad line of a list."""


class SampleError(Error):
    """One sample gave no pixels, and ``on_error`` is ``"stop"``."""


class WorkerError(Error):
    """A worker or the coordinator ended, or could not be started."""


class BatchesHeldError(Error):
    """Every batch that there is memory for is held. Drop some, or raise ``depth``."""


class DeviceError(Error):
    """The GPU or its driver."""


class PlatformError(Error):
    """The operating system refused something."""
