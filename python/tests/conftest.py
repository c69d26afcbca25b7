"""Data and helpers of all tests."""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import json
import math
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xxhash
from object_store import Store, served

import featherload
from featherload._helper import helper
from featherload._preview import _png as png

# What starts the tests in the background may have it ignored, and some tests send it.
signal.signal(signal.SIGINT, signal.default_int_handler)

Cli = Callable[..., Any]

BUCKETS = itertools.count()

# A recipe of few pixels.
SMALL = Path(__file__).parent / "small.yaml"


def need(module: str) -> None:
    """Skips a test without a framework, unless the gate says that all are there."""
    if importlib.util.find_spec(module) is None:
        if os.environ.get("FEATHERLOAD_REQUIRE_FRAMEWORKS"):
            pytest.fail(f"{module} is not installed")
        pytest.skip(f"SKIP: {module} is not installed")


def shared_data(name: str) -> Path:
    """A folder of real data. Skips a test without it, and prints which folder is absent."""
    usual = Path(__file__).parents[2] / "../shared/data"
    folder = Path(os.environ.get("FEATHERLOAD_DATA", usual)).resolve() / name
    if not folder.is_dir():
        pytest.skip(f"SKIP: no folder {folder}: set FEATHERLOAD_DATA to the folder of {name}")
    return folder


def kill_one(workers: Callable[[], list[int]]) -> None:
    """Kills a worker. One may be gone already, and the report not know it yet."""
    for _ in range(1000):
        for pid in workers():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                return
        time.sleep(0.01)
    pytest.fail("there is no worker")


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
    """256 pictures in 8 class folders, which no test changes."""
    if made := os.environ.get("FEATHERLOAD_TEST_PHOTOS"):
        return Path(made)
    folder = tmp_path_factory.mktemp("demo") / "photos"
    subprocess.run([helper(), "demo", folder], check=True, capture_output=True)
    return folder


@pytest.fixture(scope="session")
def store_server() -> Iterator[int]:
    """The port of an S3 server on this machine."""
    need("moto")
    need("boto3")
    with served() as port:
        yield port


@pytest.fixture
def store(store_server: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """A new bucket, behind a proxy. The environment leads clients there."""
    made = Store(store_server, f"bucket-{next(BUCKETS)}")
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"):
        monkeypatch.delenv(name, raising=False)
    for name, value in made.env.items():
        monkeypatch.setenv(name, value)
    yield made
    made.close()


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


SCENE_SIZE = HEIGHT, WIDTH, IMAGES = 23, 37, 7


class InterruptedLock:
    """A lock; Ctrl-C comes as it is left for the `at`-th time without an error."""

    def __init__(self, at: int = 1) -> None:
        self._lock = threading.RLock()
        self._left = at

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, error: object, *_: object) -> None:
        self._lock.release()
        if error is None:
            self._left -= 1
            if self._left == 0:
                raise KeyboardInterrupt


def scene_color(image: Any, row: Any, col: Any) -> Any:
    """A colour that says where it is."""
    return np.stack(np.broadcast_arrays(image * 30, row * 11, col * 6), -1).astype(np.uint8)


def write_scene(
    folder: Path, *, times: bool = False, camera: dict[str, float] | None = None
) -> Path:
    """A scene of 7 pictures as nerfstudio writes it; ``camera`` is more of its keys."""
    (folder / "images").mkdir(parents=True)
    rows, cols = np.mgrid[:HEIGHT, :WIDTH]
    frames = []
    for image in range(IMAGES):
        (folder / f"images/{image:02}.png").write_bytes(png(scene_color(image, rows, cols)))
        sin, cos = math.sin(0.7 * image), math.cos(0.7 * image)
        frames.append(
            {
                "file_path": f"images/{image:02}.png",
                "transform_matrix": [
                    [cos, 0.0, sin, float(image)],
                    [0.0, 1.0, 0.0, 0.5],
                    [-sin, 0.0, cos, -2.0],
                    [0.0, 0.0, 0.0, 1.0],
                ],
                **({"time": image / 8} if times else {}),
            }
        )
    described = {
        **{"w": WIDTH, "h": HEIGHT, "fl_x": 30.0, "fl_y": 31.0, "cx": 18.25, "cy": 11.5},
        **(camera or {}),
        "frames": frames,
    }
    (folder / "transforms.json").write_text(json.dumps(described))
    return folder
