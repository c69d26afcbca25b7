"""The package's exceptions. Their texts are the command line's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

printable: Callable[[str], str] = str
"""One line that a terminal shows and does not obey. The extension sets it: it imports this file
while it begins."""

KEYWORDS = {"workers": "num_workers"}
"""Keywords of options whose name in the library, which stands in backticks, is another."""


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

    @classmethod
    def _of_library(
        cls,
        text: str,
        keywords: Mapping[str, str] = KEYWORDS,
        *,
        option: str | None = None,
        **about: Any,
    ) -> Self:
        """The error of a call whose options have other names in the library: ``keywords``."""
        for name, keyword in keywords.items():
            text = text.replace(f"`{name}`", f"`{keyword}`")
        return cls(text, option=option and keywords.get(option, option), **about)


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
