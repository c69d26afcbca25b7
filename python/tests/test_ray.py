"""Caches that a Ray cluster builds: by a stand-in for Ray, and by Ray."""

from __future__ import annotations

import fcntl
import shutil
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import need

import featherload
import featherload.ray as by_ray
from featherload import cache

# Ray forks, of which JAX warns where a test before used it.
pytestmark = pytest.mark.filterwarnings("ignore")


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


class StandIn(types.ModuleType):
    """Tasks run when they are waited for, the last first. ``dies``: a task's number to how often
    it dies before it runs."""

    def __init__(self, dies: dict[int, int]) -> None:
        super().__init__("ray")
        self.dies = dict(dies)
        self.cancelled: list[Any] = []
        self.most = 0
        self.sizes: list[int] = []

    def remote(self, **options: Any) -> Callable[[Any], Any]:
        self.options = options

        def make(function: Any) -> Any:
            return types.SimpleNamespace(remote=lambda *args: (function, args))

        return make

    def wait(self, refs: list[Any], num_returns: int, timeout: float) -> tuple[Any, Any]:
        assert num_returns == 1
        self.most = max(self.most, len(refs))
        return refs[-1:], refs[:-1]

    def get(self, ref: Any) -> Any:
        function, args = ref
        for _ in range(self.options["max_retries"] + 1):
            if self.dies.get(args[-1][0], 0):
                self.dies[args[-1][0]] -= 1
                continue
            made = function(*args)
            # No pixels through the store.
            self.sizes.append(len(repr(made)))
            return made
        raise RuntimeError("the node died")

    def cancel(self, ref: Any) -> None:
        self.cancelled.append(ref)

    def is_initialized(self) -> bool:
        return True

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 2.0}


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[int, int]], StandIn]:
    class Hashable(tuple):  # type: ignore[type-arg]
        __hash__ = object.__hash__

    def make(dies: dict[int, int]) -> StandIn:
        ray = StandIn(dies)
        plain = ray.remote

        def remote(**options: Any) -> Any:
            made = plain(**options)
            return lambda function: types.SimpleNamespace(
                remote=lambda *args: Hashable(made(function).remote(*args))
            )

        ray.remote = remote  # type: ignore[method-assign]
        monkeypatch.setitem(sys.modules, "ray", ray)
        return ray

    return make


@pytest.fixture
def one_machine(photos: Path, tmp_path: Path) -> dict[str, bytes]:
    cache.build(
        photos,
        tmp_path / "one",
        shard_samples=20,
        encode="jpeg:80",
        resize="shorter:64",
        progress=False,
    )
    return files(tmp_path / "one")


def build(photos: Path, folder: Path, **options: Any) -> Any:
    return by_ray.build_cache(
        photos,
        folder,
        shard_samples=20,
        encode="jpeg:80",
        resize="shorter:64",
        progress=False,
        **options,
    )


def test_tasks_make_the_bytes_of_one_machine(
    photos: Path, tmp_path: Path, one_machine: dict[str, bytes], stand_in: Any
) -> None:
    ray = stand_in({0: 1, 7: 3})
    report = build(photos, tmp_path / "many", num_cpus=2, remote={"resources": {"disk": 1}})
    assert report["samples"] == 256 and report["shards"] == 13 and report["complete"]
    assert files(tmp_path / "many") == one_machine
    assert ray.options["num_cpus"] == 2 and ray.options["resources"] == {"disk": 1}
    assert ray.most == 8 and max(ray.sizes) < 200
    # What is there stays.
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "many").iterdir()}
    build(photos, tmp_path / "many")
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "many").iterdir()}


def test_a_task_that_dies_too_often_names_its_shard(
    photos: Path, tmp_path: Path, one_machine: dict[str, bytes], stand_in: Any
) -> None:
    ray = stand_in({3: 9})
    with pytest.raises(featherload.WorkerError, match="shard 3 of 13 .* the node died"):
        build(photos, tmp_path / "many", retries=2)
    assert ray.cancelled
    # Again, with what was made before.
    stand_in({})
    build(photos, tmp_path / "many")
    assert files(tmp_path / "many") == one_machine


def test_the_end_waits_for_what_a_lost_node_still_writes(
    photos: Path, tmp_path: Path, stand_in: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in({})
    folder = tmp_path / "many"
    folder.mkdir()
    with open(folder / ".featherload-lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        monkeypatch.setattr(by_ray, "_STRAGGLERS", 0)
        with pytest.raises(featherload.DatasetError, match="another process is building"):
            build(photos, folder)
        monkeypatch.setattr(by_ray, "_STRAGGLERS", 60)
        timer = threading.Timer(2, fcntl.flock, (lock, fcntl.LOCK_UN))
        timer.start()
        assert build(photos, folder)["complete"]
        timer.join()


def test_what_comes_again_is_not_tried_again(photos: Path, tmp_path: Path, stand_in: Any) -> None:
    shutil.copytree(photos, tmp_path / "photos")
    bad = sorted((tmp_path / "photos").rglob("*.jpg"))[30]
    bad.write_bytes(b"no picture")
    ray = stand_in({})
    with pytest.raises(featherload.SampleError) as e:
        build(tmp_path / "photos", tmp_path / "many")
    assert e.value.path == str(bad) and e.value.id == 30 and ray.cancelled
    report = build(tmp_path / "photos", tmp_path / "other", on_error="skip")
    assert report["samples"] == 255 and report["skipped"] == 1


def test_options_that_cannot_work_are_named(
    photos: Path, tmp_path: Path, stand_in: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in({})
    for option in ({"force": True}, {"shard_size": "1M"}, {"num_workers": 3}):
        with pytest.raises(featherload.ConfigError, match="no effect in a build by tasks"):
            build(photos, tmp_path / "c", **option)
    with pytest.raises(featherload.ConfigError, match="shard_samples 0 is too small"):
        by_ray.build_cache(photos, tmp_path / "c", shard_samples=0)
    with pytest.raises(featherload.ConfigError, match="num_cpus 0 is too small"):
        build(photos, tmp_path / "c", num_cpus=0)
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(featherload.ConfigError, match="pip install ray"):
        build(photos, tmp_path / "c")


@pytest.fixture
def cluster() -> Iterator[Any]:
    need("ray")
    import ray
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        ray.init(address=cluster.address, log_to_driver=False)
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()


def test_a_cluster_that_loses_a_node_makes_the_same_bytes(
    photos: Path, tmp_path: Path, one_machine: dict[str, bytes], cluster: Any
) -> None:
    nodes = [cluster.add_node(num_cpus=1) for _ in range(3)]
    cluster.wait_for_nodes()
    folder = tmp_path / "many"
    killed = threading.Event()

    def kill() -> None:
        # Once a shard is there, in the midst of others.
        until = time.monotonic() + 120
        while time.monotonic() < until and not list(folder.glob("shard-*.json")):
            time.sleep(0.01)
        cluster.remove_node(nodes[1], allow_graceful=False)
        killed.set()

    killer = threading.Thread(target=kill)
    killer.start()
    report = build(photos, folder)
    killer.join()
    assert killed.is_set() and report["complete"] and report["samples"] == 256
    assert files(folder) == one_machine
