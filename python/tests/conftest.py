"""Data and helpers of all tests."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xxhash

import featherload
from featherload._helper import helper

Cli = Callable[..., Any]


def need(module: str) -> None:
    """Skips a test without a framework, unless the gate says that all are there."""
    if importlib.util.find_spec(module) is None:
        if os.environ.get("FEATHERLOAD_REQUIRE_FRAMEWORKS"):
            pytest.fail(f"{module} is not installed")
        pytest.skip(f"SKIP: {module} is not installed")


@pytest.fixture(scope="session")
def cli() -> Cli:
    def run(*args: str | Path) -> Any:
        ended = subprocess.run(
            [helper(), *map(str, args), "--json"], capture_output=True, text=True, check=True
        )
        return json.loads(ended.stdout)

    return run


@pytest.fixture(scope="session")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """256 pictures in 8 class folders."""
    folder = tmp_path_factory.mktemp("demo") / "photos"
    subprocess.run([helper(), "demo", folder], check=True, capture_output=True)
    return folder


@pytest.fixture
def loader(photos: Path) -> Iterator[Callable[..., featherload.Loader]]:
    """Makes loaders over the photos, and ends them."""
    made: list[featherload.Loader] = []

    def make(src: Any = photos, **options: Any) -> featherload.Loader:
        options.setdefault("num_workers", 2)
        options.setdefault("batch_size", 32)
        made.append(featherload.Loader(src, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


def digest(loader: featherload.Loader) -> str:
    """The digest of the next epoch, as `featherload bench --digest` has it."""
    hash = xxhash.xxh3_128()
    for batch in loader:
        images, labels = batch.numpy()
        rows = images if isinstance(images, list) else list(images)
        status = batch.status
        for row, pixels in enumerate(rows):
            hash.update(np.asarray(batch.ids[row]).tobytes())
            hash.update(np.int64(-1).tobytes() if labels is None else labels[row].tobytes())
            hash.update(bytes([status[row]]))
            hash.update(np.ascontiguousarray(pixels).tobytes())
    return hash.hexdigest()
