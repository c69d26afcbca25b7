"""Tar shards in an object store that are no cache: the stream is that of the same tars here."""

from __future__ import annotations

import io
import json
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import digest
from object_store import SECRET, Store
from test_stores import (
    BATCH,
    LIMIT,
    ORDER,
    Watched,
    bench,
    failure,
    fetch,
    fetchers,
    is_gone,
    parts,
    started,
    until,
)

import featherload
from featherload._helper import helper

EACH = 8
TARS = "*/train-*.tar"


@pytest.fixture(scope="session")
def tars(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """256 pictures in 32 shards, with their classes."""
    folder = tmp_path_factory.mktemp("tars")
    pictures = sorted(photos.rglob("*.jpg"))
    classes = sorted({picture.parent.name for picture in pictures})
    for number in range(0, len(pictures), EACH):
        with tarfile.open(folder / f"train-{number // EACH:03}.tar", "w") as tar:
            for at, picture in enumerate(pictures[number : number + EACH], number):
                tar.add(picture, f"{at:06}.jpg")
                label = str(classes.index(picture.parent.name)).encode()
                member = tarfile.TarInfo(f"{at:06}.cls")
                member.size = len(label)
                tar.addfile(member, io.BytesIO(label))
    return folder


@pytest.fixture
def url(store: Store, tars: Path) -> str:
    return store.upload(tars, "sets/tars")


def braces(url: str) -> str:
    return f"{url}/train-{{000..031}}.tar"


def total(tars: Path) -> int:
    return sum(path.stat().st_size for path in tars.iterdir())


def index(src: str, *args: str) -> Any:
    command = [helper(), "index", src, "--json", *args]
    out = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
    assert out.returncode == 0, out.stderr
    return json.loads(out.stdout)


@pytest.fixture(scope="session")
def expected(tars: Path) -> str:
    """The digest of a run from the disk."""
    found: str = bench(f"{tars}/*.tar", *ORDER)["digest"]
    return found


@pytest.mark.parametrize("by", [str, braces])
def test_an_index_is_made_once_and_the_digest_is_that_of_the_tars_here(
    url: str,
    store: Store,
    tars: Path,
    expected: str,
    tmp_path: Path,
    by: Callable[[str], str],
) -> None:
    src, here = by(url), tmp_path / "here"
    told = failure(src, *ORDER, *fetch(here, "12M"))
    assert "has 32 tar shards, but no index" in told
    assert "run `featherload index" in told
    assert not store.proxy.keys(TARS)
    with Watched(here) as watched:
        report = index(src, *fetch(here, "12M"))
    assert watched.looks > 10 and watched.most_on_disk <= 12 << 20
    assert (report["samples"], report["shards"]) == (256, 32)
    # Each comes once, whole: no member is asked for.
    assert set(store.proxy.times_fetched(TARS).values()) == {1}
    assert store.proxy.bytes_sent(TARS) == total(tars)
    assert all(one.range is None for one in store.proxy.gets(TARS))
    store.proxy.forget()
    assert index(src, *fetch(here, "12M")) == report
    asked = {one.method for one in store.proxy.requests if one.key.endswith(".tar")}
    assert asked == ({"HEAD"} if by is braces else set())
    assert not store.proxy.keys(TARS)
    run = bench(src, *ORDER, *fetch(here, "12M"))
    assert run["digest"] == expected
    assert not store.proxy.asked_twice_at_once(TARS)
    assert not parts(tmp_path)


def test_a_run_with_room_for_all_makes_the_index_itself(
    url: str,
    store: Store,
    tars: Path,
    tmp_path: Path,
    loader: Callable[..., featherload.Loader],
) -> None:
    there = loader(url, fetch_dir=tmp_path / "here", batch_size=BATCH)
    local = loader(f"{tars}/*.tar", batch_size=BATCH)
    assert digest(there) == digest(local)
    assert store.proxy.bytes_sent(TARS) == total(tars)
    assert store.proxy.most_gets_at_once(TARS) == 1
    assert there.state_dict() == local.state_dict()
    store.proxy.forget()
    other = loader(url, fetch_dir=tmp_path / "here", batch_size=BATCH, labels="none")
    assert digest(other)
    assert not store.proxy.keys(TARS)


def test_ranks_that_start_together_fetch_each_shard_once(
    url: str, store: Store, tars: Path, tmp_path: Path
) -> None:
    store.proxy.limit_rate(30_000_000)
    shape = ["--world-size", "2", "--num-workers", "1", *ORDER]
    ranks = [["--rank", str(rank), *shape] for rank in range(2)]
    runs = [started(url, *rank, *fetch(tmp_path / "here")) for rank in ranks]
    for run, rank in zip(runs, ranks, strict=True):
        out, error = run.communicate(timeout=LIMIT)
        assert run.returncode == 0, error
        assert "all are downloaded first" in error
        assert json.loads(out)["digest"] == bench(f"{tars}/*.tar", *rank)["digest"]
    assert set(store.proxy.times_fetched(TARS).values()) == {1}
    assert not store.proxy.asked_twice_at_once(TARS)


def begun(url: str, *args: str) -> subprocess.Popen[str]:
    """An index that is being made."""
    return subprocess.Popen(
        [helper(), "index", url, "--json", *args],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_fetcher_that_is_killed_while_the_index_is_made_is_started_again(
    url: str, store: Store, tars: Path, expected: str, tmp_path: Path
) -> None:
    here = tmp_path / "here"
    store.proxy.limit_rate(8_000_000)
    making = begun(url, *fetch(here, "12M"))
    until(lambda: len(store.proxy.keys(TARS)) >= 10)
    (victim,) = fetchers(making.pid)
    subprocess.run(["kill", "-KILL", str(victim)], check=True)
    until(lambda: is_gone(victim))
    store.proxy.limit_rate(None)
    out, error = making.communicate(timeout=LIMIT)
    assert making.returncode == 0, error
    assert json.loads(out)["samples"] == 256
    assert store.proxy.bytes_sent(TARS) <= total(tars) * 1.5
    assert bench(url, *ORDER, *fetch(here, "12M"))["digest"] == expected


def test_an_index_that_was_broken_off_goes_on_with_what_is_there(
    url: str, store: Store, tars: Path, expected: str, tmp_path: Path
) -> None:
    here = tmp_path / "here"
    store.proxy.limit_rate(8_000_000)
    making = begun(url, *fetch(here))
    until(lambda: len(store.proxy.keys(TARS)) >= 12)
    making.kill()
    making.communicate()
    store.proxy.limit_rate(None)
    assert index(url, *fetch(here))["samples"] == 256
    assert store.proxy.bytes_sent(TARS) <= total(tars) * 1.5
    assert bench(url, *ORDER, *fetch(here))["digest"] == expected


def test_cut_connections_and_a_busy_store_cost_nothing_but_time(
    url: str, store: Store, expected: str, tmp_path: Path
) -> None:
    store.proxy.cut(TARS, 100_000, times=40)
    store.proxy.refuse("*", times=3)
    src = braces(url)
    assert bench(src, *ORDER, *fetch(tmp_path / "here"))["digest"] == expected
    assert any(one.range for one in store.proxy.gets(TARS))


def test_an_object_that_changes_is_named(
    url: str, store: Store, tars: Path, tmp_path: Path
) -> None:
    other = (tars / "train-030.tar").read_bytes()
    # Between two ranges of its first download.
    store.proxy.cut("*/train-005.tar", 50_000)
    change = lambda: store.put("sets/tars/train-005.tar", other)  # noqa: E731
    store.proxy.before("*/train-005.tar", 2, change)
    told = failure(url, *ORDER, *fetch(tmp_path / "here"))
    assert f"{url}/train-005.tar" in told and "changed" in told
    store.proxy.calm()
    index(url, *fetch(tmp_path / "here"))
    # With another index, and once it is gone.
    store.put("sets/tars/train-006.tar", other)
    told = failure(url, *ORDER, *fetch(tmp_path / "here", "12M"))
    assert "1 of its 32 shards changed" in told
    store.delete("sets/tars/train-006.tar")
    told = failure(braces(url), *ORDER, *fetch(tmp_path / "here"))
    assert f"{url}/train-006.tar: does not exist" in told


def test_what_is_no_set_is_told(url: str, store: Store, tmp_path: Path) -> None:
    store.put("sets/none/a.tar.gz", b"x")
    store.put("sets/none/deeper/a.tar", b"x")
    told = failure(store.url("sets/none"), *fetch(tmp_path / "here"))
    assert "has neither a cache (manifest.json), nor tar shards (.tar), nor images" in told
    store.put("sets/bad/a.tar", b"no tar at all")
    told = failure(store.url("sets/bad"), *fetch(tmp_path / "here"))
    assert f"{store.url('sets/bad')}/a.tar: is not a tar archive" in told
    assert SECRET not in told
