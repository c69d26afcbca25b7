"""Caches that are built into an object store: the bytes of a build in a folder, whatever the
network does and whoever dies.
"""

from __future__ import annotations

import functools
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import SMALL
from object_store import SECRET, Store

import featherload
import featherload.ray as by_ray
from featherload import cache
from featherload._helper import helper

SHARD_SAMPLES = 32
SHARDS = 8
OPTIONS: dict[str, Any] = {"shard_samples": SHARD_SAMPLES, "progress": False, "num_workers": 2}
# No run here takes longer, or it hangs.
LIMIT = 60.0

# One shard, which goes there in parts.
LARGE: dict[str, Any] = {
    "shard_samples": 1000,
    "progress": False,
    "encode": "raw",
    "resize": "shorter:256",
}


@pytest.fixture(scope="session")
def want(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("sent") / "cache"
    cache.build(photos, folder, **OPTIONS)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def url(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    return store.url("sets/train")


def objects(store: Store, prefix: str = "sets/train/") -> dict[str, bytes]:
    """What is there, past the proxy."""
    found = store.client.list_objects_v2(Bucket=store.bucket, Prefix=prefix)
    names = [one["Key"] for one in found.get("Contents", [])]
    return {name.removeprefix(prefix): store.get(name) for name in names}


def assert_same(a: dict[str, bytes], b: dict[str, bytes]) -> None:
    assert sorted(a) == sorted(b)
    assert [name for name in a if a[name] != b[name]] == []


def uploads(store: Store) -> list[Any]:
    """Uploads that nobody ended."""
    found = store.client.list_multipart_uploads(Bucket=store.bucket)
    uploads: list[Any] = found.get("Uploads", [])
    return uploads


def stages(tmp_path: Path) -> list[Path]:
    return list((tmp_path / "home/featherload/building").glob("*"))


def is_up(store: Store, shard: int) -> bool:
    """Whether all of a shard is there."""
    name = f"shard-{shard:06}.json"
    puts = [one for one in store.proxy.requests if one.method == "PUT" and one.status == 200]
    return any(one.key.endswith(name) for one in puts)


def started(photos: Path, url: str, *args: str) -> subprocess.Popen[str]:
    said = [helper(), "cache", "build", str(photos), url, "--num-workers", "2"]
    if "--shard-samples" not in args:
        said += ["--shard-samples", str(SHARD_SAMPLES)]
    return subprocess.Popen(
        [*said, *args],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def bench(url: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    """Reads the cache once."""
    said = [helper(), "bench", url, "--json", "--fetch-dir", str(tmp_path / "fetched")]
    said += ["--epochs", "1", "--recipe", str(SMALL)]
    return subprocess.run(said, capture_output=True, text=True, timeout=LIMIT)


def until(what: Callable[[], object], seconds: float = LIMIT) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.005)


def test_the_objects_are_the_files(
    photos: Path, store: Store, url: str, want: dict[str, bytes], tmp_path: Path
) -> None:
    report = cache.build(photos, url, **OPTIONS)
    assert report["complete"] and report["samples"] == 256
    assert report["sent"]["shards_up"] == SHARDS and report["sent"]["retries"] == 0
    assert_same(objects(store), want)
    assert not stages(tmp_path) and not uploads(store)
    # The last object is the manifest, behind the index.
    puts = [one.key for one in store.proxy.requests if one.method == "PUT"]
    assert [key.rsplit("/", 1)[1] for key in puts][-2:] == ["index.fli", "manifest.json"]
    # A second time nothing is sent.
    store.proxy.forget()
    assert cache.build(photos, url, **OPTIONS)["kept_shards"] == SHARDS
    assert {one.method for one in store.proxy.requests} <= {"GET", "HEAD"}
    read = bench(url, tmp_path)
    assert read.returncode == 0 and json.loads(read.stdout)["failed"] == 0, read.stderr
    with pytest.raises(featherload.DatasetError, match="encode was copy and is now jpeg:80"):
        cache.build(photos, url, encode="jpeg:80", **OPTIONS)
    assert_same(objects(store), want)
    report = cache.build(photos, url, encode="jpeg:80", force=True, **OPTIONS)
    assert report["complete"] and objects(store)["index.fli"]
    assert cache.build(photos, url, force=True, **OPTIONS)["complete"]
    assert_same(objects(store), want)


def test_a_large_shard_goes_there_in_parts(
    photos: Path, store: Store, url: str, tmp_path: Path
) -> None:
    folder = tmp_path / "cache"
    cache.build(photos, folder, **LARGE)
    want = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert len(want["shard-000000.tar"]) > 20 << 20
    # Each part is tried again by itself.
    store.proxy.refuse("*shard-000000.tar", times=9)
    report = cache.build(photos, url, **LARGE)
    assert_same(objects(store), want)
    assert not uploads(store)
    assert report["complete"]
    parts = [one for one in store.proxy.requests if "partNumber" in one.query]
    assert len({one.query for one in parts}) >= 3
    # Without its json it is compared by its content, and not sent again.
    other = store.url("sets/other")
    refused: dict[str, Any] = {"status": 403, "code": "AccessDenied", "text": "no"}
    # The first two ask whether it is there.
    store.proxy.refuse("*other/shard-000000.json", skip=2, **refused)
    with pytest.raises(featherload.DatasetError, match=r"shard-000000\.json"):
        cache.build(photos, other, **LARGE)
    store.proxy.calm()
    store.proxy.forget()
    cache.build(photos, other, **LARGE)
    assert_same(objects(store, "sets/other/"), want)
    assert not [one for one in store.proxy.requests if "partNumber" in one.query]


def test_a_bad_network_changes_no_byte(
    photos: Path, store: Store, url: str, want: dict[str, bytes], tmp_path: Path
) -> None:
    store.proxy.refuse("*", times=30)
    store.proxy.delay(0.02)
    report = cache.build(photos, url, **OPTIONS)
    assert report["complete"] and report["sent"]["shards_up"] == SHARDS
    assert_same(objects(store), want)
    assert not stages(tmp_path)


def test_what_stays_bad_is_named(photos: Path, store: Store, url: str, tmp_path: Path) -> None:
    store.proxy.refuse("*", status=403, code="AccessDenied", text="Access Denied")
    with pytest.raises(featherload.DatasetError, match="check the credentials") as e:
        cache.build(photos, url, **OPTIONS)
    assert SECRET not in str(e.value) and "manifest.json" in str(e.value)
    store.proxy.calm()
    store.proxy.refuse("*shard-000002.tar", status=403, code="AccessDenied", text="Access Denied")
    with pytest.raises(featherload.DatasetError, match=r"shard-000002\.tar"):
        cache.build(photos, url, **OPTIONS)
    assert "index.fli" not in objects(store) and stages(tmp_path)
    assert "unfinished cache" in bench(url, tmp_path).stderr
    store.proxy.calm()
    report = cache.build(photos, url, **OPTIONS)
    assert report["complete"] and report["kept_shards"] >= 2
    nowhere = store.url("x").replace(store.bucket, "no-such-bucket-here")
    with pytest.raises(featherload.DatasetError, match="no such bucket"):
        cache.build(photos, nowhere, **OPTIONS)


@pytest.mark.parametrize("keeps_stage", [True, False])
def test_a_killed_build_goes_on(
    photos: Path,
    store: Store,
    url: str,
    want: dict[str, bytes],
    tmp_path: Path,
    keeps_stage: bool,
) -> None:
    store.proxy.delay(0.02)
    for number in (1, 4):
        run = started(photos, url)
        until(functools.partial(is_up, store, number))
        run.kill()
        run.communicate()
        if not keeps_stage:
            for stage in stages(tmp_path):
                subprocess.run(["rm", "-r", stage], check=True)
        store.proxy.forget()
    report = cache.build(photos, url, **OPTIONS)
    assert report["complete"] and report["kept_shards"] >= 3
    assert_same(objects(store), want)
    assert not stages(tmp_path)


def test_a_builder_that_goes_leaves_no_upload(photos: Path, store: Store, url: str) -> None:
    args = ["--encode", "raw", "--resize", "shorter:256", "--shard-samples", "256"]
    for how in (signal.SIGINT, signal.SIGKILL):
        # All parts that are sent at a time stand still, so the upload does not end.
        # Behind two questions, and the begin.
        store.proxy.hang("*shard-000000.tar", times=4, skip=3)
        run = started(photos, f"{url}/{how.name}", *args)
        until(lambda: len([one for one in store.proxy.requests if "partNumber" in one.query]) == 4)
        assert len(uploads(store)) == 1
        os.kill(run.pid, how)
        out, error = run.communicate(timeout=LIMIT)
        assert SECRET not in out + error
        until(lambda: not uploads(store))
        store.proxy.calm()
        store.proxy.forget()
    assert not [name for name in objects(store) if name.endswith(".tar")]


def test_ctrl_c_says_what_is_there(
    photos: Path, store: Store, url: str, want: dict[str, bytes]
) -> None:
    store.proxy.delay(0.05)
    run = started(photos, url)
    until(lambda: is_up(store, 1))
    run.send_signal(signal.SIGINT)
    out, error = run.communicate(timeout=LIMIT)
    assert run.returncode == 130, error
    assert re.search(r"\d shards are there", out) and "the same command continues" in out
    store.proxy.calm()
    cache.build(photos, url, **OPTIONS)
    assert_same(objects(store), want)


class Inline:
    """A stand-in for Ray, whose tasks run when they are waited for."""

    def __init__(self, homes: Path) -> None:
        self.homes = homes
        self.tasks = 0

    def remote(self, **_: Any) -> Callable[[Any], Any]:
        class Task:
            def __init__(self, function: Any) -> None:
                self.function = function

            def remote(self, *args: Any) -> Any:
                return Ref(self.function, args)

        class Ref:
            def __init__(self, function: Any, args: Any) -> None:
                self.function, self.args = function, args

        return Task

    def wait(self, refs: list[Any], num_returns: int, timeout: float) -> tuple[Any, Any]:
        return refs[:num_returns], refs[num_returns:]

    def get(self, ref: Any) -> Any:
        # Each task is on a machine of its own.
        self.tasks += 1
        os.environ["XDG_CACHE_HOME"] = str(self.homes / str(self.tasks))
        return ref.function(*ref.args)

    def cancel(self, ref: Any) -> None:
        raise AssertionError(ref)

    def is_initialized(self) -> bool:
        return True

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 2.0}


def test_tasks_build_into_a_store(
    photos: Path,
    store: Store,
    url: str,
    want: dict[str, bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ray = Inline(tmp_path / "nodes")
    monkeypatch.setitem(sys.modules, "ray", ray)
    report = by_ray.build_cache(photos, url, shard_samples=SHARD_SAMPLES, progress=False)
    assert report["complete"] and report["samples"] == 256 and ray.tasks == SHARDS
    assert_same(objects(store), want)
    assert not list((tmp_path / "nodes").glob("*/featherload/building/*"))
    store.proxy.forget()
    by_ray.build_cache(photos, url, shard_samples=SHARD_SAMPLES, progress=False)
    assert {one.method for one in store.proxy.requests} <= {"GET", "HEAD"}
