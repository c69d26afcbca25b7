"""The executable inside the package: coordinator and workers of loaders, and the CLI."""

from __future__ import annotations

import json
import logging
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ._errors import ConfigError, Error, WorkerError

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
        "by FEATHERLOAD_HELPER"
    )


def run_json(args: Sequence[str], *, accept: Sequence[int] = (0,)) -> Any:
    """What the executable prints as JSON. Its warnings go to the logger ``featherload``."""
    ended = subprocess.run([helper(), *args, "--json"], capture_output=True, text=True, check=False)
    said = ended.stderr.strip()
    if ended.returncode not in accept:
        kind = ConfigError if ended.returncode == 2 else Error
        # clap's advice stands behind an empty line.
        text = said.split("\n\n")[0].removeprefix("featherload: ").removeprefix("error: ")
        raise kind(text or f"the executable ended with {ended.returncode}")
    for line in said.splitlines():
        _log.warning("%s", line.removeprefix("featherload: "))
    return json.loads(ended.stdout)
