"""Caches that are made of data sets in an object store: the bytes are those of a build from the
same shards on this machine.
"""

from __future__ import annotations

import functools
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from object_store import SECRET, Store
from test_sent import Inline, objects
from test_store_tars import TARS, braces, index, tars, total  # noqa: F401
from test_stores import Watched, fetch, fetchers, parts, until

import featherload
import featherload.ray as by_ray
from featherload import cache
from featherload._helper import helper

SHARD_SAMPLES = 20
SHARDS = 13
OPTIONS: dict[str, Any] = {
    "shard_samples": SHARD_SAMPLES,
    "encode": "jpeg:80",
    "resize": "shorter:64",
    "progress": False,
    "num_workers": 2,
}
# Of 22 MiB.
LIMIT = "12M"


@pytest.fixture
def url(store: Store, tars: Path) -> str:  # noqa: F811
    return store.upload(tars, "sets/tars")


@pytest.fixture(scope="session")
def want(tars: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:  # noqa: F811
    """Made of the tars on the disk."""
    folder = tmp_path_factory.mktemp("from") / "cache"
    cache.build(f"{tars}/*.tar", folder, **OPTIONS)
    return files(folder)


def of(contents: dict[str, bytes]) -> dict[str, Any]:
    """Without what the manifest says of the source's files, which lie elsewhere."""
    found: dict[str, Any] = dict(contents)
    manifest = json.loads(found.pop("manifest.json"))
    manifest["checksum"] = manifest["source"]["files"] = None
    return {**found, "manifest": manifest}


def files(folder: Path) -> dict[str, Any]:
    return of({path.name: path.read_bytes() for path in folder.iterdir() if path.suffix})


@pytest.mark.parametrize("by", [str, braces])
def test_a_source_without_room_is_read_part_by_part(
    url: str,
    store: Store,
    tars: Path,  # noqa: F811
    want: dict[str, Any],
    tmp_path: Path,
    by: Callable[[str], str],
) -> None:
    src, here = by(url), tmp_path / "here"
    with pytest.raises(featherload.DatasetError, match="run `featherload index"):
        cache.build(src, tmp_path / "cache", fetch_dir=here, fetch_limit=LIMIT, **OPTIONS)
    index(src, *fetch(here, LIMIT))
    store.proxy.forget()
    with Watched(here) as watched:
        report = cache.build(src, tmp_path / "cache", fetch_dir=here, fetch_limit=LIMIT, **OPTIONS)
    assert report["complete"] and report["samples"] == 256 and report["shards"] == SHARDS
    assert files(tmp_path / "cache") == want
    assert watched.looks > 10 and watched.most_on_disk <= 12 << 20
    # A shard that two parts are made of may come twice; what was there does not come.
    times = Counter(store.proxy.times_fetched(TARS).values())
    assert times[1] >= 20 and max(times) <= 2
    assert store.proxy.bytes_sent(TARS) <= 1.2 * total(tars)
    assert report["fetched"]["bytes"] == store.proxy.bytes_sent(TARS)
    assert not parts(tmp_path)


def test_a_bad_network_changes_no_byte(
    url: str, store: Store, want: dict[str, Any], tmp_path: Path
) -> None:
    index(url, *fetch(tmp_path / "fetched", LIMIT))
    store.proxy.refuse("*", times=20)
    store.proxy.cut(TARS, after=100_000, times=10)
    there = store.url("sets/cache")
    report = cache.build(
        url,
        there,
        fetch_dir=tmp_path / "fetched",
        fetch_limit=LIMIT,
        stage_dir=tmp_path / "stage",
        **OPTIONS,
    )
    assert report["complete"] and report["fetched"]["retries"] > 0
    assert of(objects(store, "sets/cache/")) == want


def test_a_killed_build_goes_on_elsewhere(
    url: str, store: Store, want: dict[str, Any], tmp_path: Path
) -> None:
    index(url, *fetch(tmp_path / "0", LIMIT))
    there = store.url("sets/cache")
    store.proxy.delay(0.01)

    def is_up(shard: int) -> bool:
        return f"shard-{shard:06}.json" in objects(store, "sets/cache/")

    for number, how in enumerate((signal.SIGKILL, signal.SIGINT, signal.SIGKILL)):
        # The first machine has the index; others make it.
        folder, limit = tmp_path / str(number), LIMIT if number == 0 else "100M"
        said = ["--encode", "jpeg:80", "--resize", "shorter:64", "--shard-samples", "20"]
        said += ["--stage-dir", str(tmp_path / f"stage-{number}"), "--num-workers", "1"]
        run = subprocess.Popen(
            [helper(), "cache", "build", url, there, *said, *fetch(folder, limit)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        until(functools.partial(is_up, 3 * number))
        if number == 2:
            # Nothing is lost with a fetcher whose shards are here.
            for pid in fetchers(run.pid):
                os.kill(pid, signal.SIGKILL)
        run.send_signal(how)
        out, error = run.communicate(timeout=60)
        assert SECRET not in out + error
    report = cache.build(
        url, there, fetch_dir=tmp_path / "last", stage_dir=tmp_path / "stage", **OPTIONS
    )
    assert report["complete"] and report["kept_shards"] >= 6
    assert of(objects(store, "sets/cache/")) == want


def test_a_shared_index_saves_the_shards(
    url: str,
    store: Store,
    tars: Path,  # noqa: F811
    want: dict[str, Any],
    tmp_path: Path,
) -> None:
    made = featherload.index(url, share=True, fetch_dir=tmp_path / "one", fetch_limit=LIMIT)
    assert made["samples"] == 256
    [name] = [name for name in objects(store, "sets/tars/") if name.endswith(".fli")]
    assert str(tmp_path).encode() not in objects(store, "sets/tars/")[name]
    there = store.url("sets/cache")
    for number in range(4):
        store.proxy.forget()
        machine = tmp_path / f"machine-{number}"
        report = cache.build(
            braces(url) if number % 2 else url,
            there,
            shard=(number, 4),
            fetch_dir=machine / "fetched",
            fetch_limit=LIMIT,
            stage_dir=machine / "stage",
            **OPTIONS,
        )
        assert report["complete"] and 60 <= report["samples"] <= 80
        # Eight samples a shard, and two more shards where a part ends within them.
        assert len(store.proxy.keys(TARS)) <= report["samples"] / 8 + 2
        assert max(store.proxy.times_fetched(TARS).values()) == 1
    cache.build(url, there, finish=True, fetch_dir=tmp_path / "one", **OPTIONS)
    assert of(objects(store, "sets/cache/")) == want
    # One that may not be read is none.
    store.proxy.refuse("*.fli", status=403, code="AccessDenied", text="Access Denied")
    with pytest.raises(featherload.DatasetError, match="run `featherload index"):
        cache.build(url, tmp_path / "x", fetch_dir=tmp_path / "new", fetch_limit=LIMIT, **OPTIONS)
    with pytest.raises(featherload.DatasetError, match="check the credentials") as e:
        featherload.index(url, share=True, fetch_dir=tmp_path / "one", fetch_limit=LIMIT)
    assert SECRET not in str(e.value) and name in str(e.value)


def test_tasks_build_from_a_store(
    url: str,
    store: Store,
    want: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "driver"))
    featherload.index(url, share=True)
    ray = Inline(tmp_path / "nodes")
    monkeypatch.setitem(sys.modules, "ray", ray)
    store.proxy.forget()
    options = {name: OPTIONS[name] for name in ("shard_samples", "encode", "resize", "progress")}
    report = by_ray.build_cache(url, store.url("sets/cache"), fetch_limit=LIMIT, **options)
    assert report["complete"] and report["samples"] == 256 and ray.tasks == SHARDS
    assert of(objects(store, "sets/cache/")) == want
    # Each task is on a machine of its own, which gets what it needs.
    assert max(store.proxy.times_fetched(TARS).values()) <= 2
