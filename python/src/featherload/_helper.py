"""The executable inside the package: coordinator and workers of loaders, and the CLI."""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

from ._errors import (
    ConfigError,
    DatasetError,
    DeviceError,
    Error,
    PlatformError,
    SampleError,
    WorkerError,
)

_log = logging.getLogger("featherload")


def helper() -> str:
    """Path of the executable: ``FEATHERLOAD_HELPER``, or the one of this package."""
    named = os.environ.get("FEATHERLOAD_HELPER")
    if named:
        return named
    inside = Path(__file__).parent / "_bin" / "featherload"
    if inside.is_file():
        return str(inside)
    raise WorkerError(
        f"the package has no executable at {inside}: install featherload again, or name one "
        "with FEATHERLOAD_HELPER"
    )


_MOST_LINES = 1000
"""Most lines of stderr that are kept. The last ones are kept, because an error is at the end."""


def run_json(
    args: Sequence[str],
    *,
    accept: Sequence[int] = (0,),
    on_progress: Callable[[dict[str, Any]], None] | None = None,
) -> Any:
    """Runs the executable and returns the JSON that it prints. Its warnings are sent to the logger
    ``featherload``. Each progress message is passed to ``on_progress`` at once, in another thread.
    """
    said: deque[str] = deque(maxlen=_MOST_LINES)
    count = 0

    def listen(stderr: IO[str]) -> None:
        # Reads to the end, also after an error here: otherwise the executable would block.
        for line in stderr:
            if on_progress is None or not line.startswith('{"progress":'):
                nonlocal count
                count += 1
                said.append(line)
                continue
            try:
                on_progress(json.loads(line)["progress"])
            except Exception:
                _log.exception("progress cannot be shown")

    command = [helper(), *args, "--json"]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
        env={**os.environ, "FEATHERLOAD_ERRORS": "json"},
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        listener = threading.Thread(target=listen, args=(process.stderr,), daemon=True)
        try:
            listener.start()
            printed = process.stdout.read()
            listener.join()
            process.wait()
        except BaseException:
            # Ctrl-C: the executable stops in order, as on a terminal.
            process.send_signal(signal.SIGINT)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
            raise
    if process.returncode not in accept:
        raise _failure(process.returncode, said)
    if count > _MOST_LINES:
        _log.warning("%d warnings before these were dropped", count - _MOST_LINES)
    for line in said:
        _log.warning("%s", line.strip().removeprefix("featherload: "))
    return json.loads(printed)


_KINDS: dict[str, type[Error]] = {
    "config": ConfigError,
    "dataset": DatasetError,
    "sample": SampleError,
    "device": DeviceError,
    "system": PlatformError,
    "worker": WorkerError,
}


def _failure(code: int, said: Sequence[str]) -> Error:
    """The error of a run that failed."""
    objects = [line for line in said if line.startswith('{"error":')]
    if not objects:
        # An error in the arguments. clap's advice follows after an empty line.
        text = "".join(said).strip().split("\n\n")[0].removeprefix("error: ")
        # Flags, with the names of their values, become keywords.
        text = re.sub("--([a-z][a-z-]*)( <[^>]*>)?", lambda found: found[1].replace("-", "_"), text)
        text = " ".join(text.split())
        kind = ConfigError if code == 2 else Error
        return kind(text or f"the executable ended with {code}")
    error = json.loads(objects[-1])["error"]
    return _KINDS[error["kind"]](
        error["text"],
        path=error["path"],
        option=error["option"],
        line=error["line"],
        id=error["id"],
        kind=error["fault"],
    )
