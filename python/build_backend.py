"""Builds the package from its source: the hooks of PEP 517 and PEP 660.

They are maturin's, with one step before them: cargo builds the executable that the package brings
along. The extension has the same features and the same folder of cargo, so the library compiles
once for both. An executable that FEATHERLOAD_EXECUTABLE names is taken as it is.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import maturin
from maturin import (
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

Settings = Mapping[str, object] | None


def build_wheel(
    wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None
) -> str:
    provide_executable()
    return maturin.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(
    wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None
) -> str:
    provide_executable()
    return maturin.build_editable(wheel_directory, config_settings, metadata_directory)


def provide_executable() -> None:
    """Sets FEATHERLOAD_EXECUTABLE, which `build.rs` packs."""
    if "FEATHERLOAD_EXECUTABLE" not in os.environ:
        provide_cargo()
        os.environ["FEATHERLOAD_EXECUTABLE"] = str(built_executable())


def provide_cargo() -> None:
    """Installs Rust into a temporary folder where it is missing, as maturin does."""
    if shutil.which("cargo") or "MATURIN_NO_INSTALL_RUST" in os.environ:
        return
    # `get_requires_for_build_wheel` has asked for it.
    from puccinialin import setup_rust

    os.environ.update(setup_rust())


def built_executable() -> Path:
    """Builds the executable. Returns its path.

    Raises:
        SystemExit: It did not compile. Cargo has printed why.
    """
    here = Path(__file__).resolve().parent
    # In a source distribution this file is in its first folder.
    root = here if (here / "kernels").is_dir() else here.parent
    command = ["cargo", "build", "--release", "--message-format", "json-render-diagnostics"]
    command += ["--manifest-path", str(root / "Cargo.toml"), "--package", "featherload"]
    command += ["--features", "cli", "--bin", "featherload"]
    # A source distribution has fewer members than its lock: cargo leaves those out.
    if (root / "model").exists():
        command.append("--locked")
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit("the executable featherload did not compile: the errors are above")
    for line in done.stdout.splitlines():
        message = json.loads(line)
        is_executable = message.get("target", {}).get("name") == "featherload"
        if is_executable and message.get("executable"):
            return Path(message["executable"])
    sys.exit("cargo named no executable featherload: report this with the output above")
