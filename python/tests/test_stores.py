"""Caches in an object store: the same stream as from the disk, whatever the network does."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from conftest import SMALL, digest
from object_store import SECRET, Store

import featherload
from featherload._helper import helper

SHARD_SAMPLES = 8
BATCH = 16
EPOCHS = 3
# Four shards' samples are shuffled together.
WINDOW = 32
ORDER = ["--sampler", "shard-shuffle", "--shuffle-window", str(WINDOW)]
# No run here takes longer, or it hangs.
LIMIT = 60.0
SHARDS = "*/shard-*.tar"


@pytest.fixture(scope="session")
def cache(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """256 pictures in 32 shards, 22 MiB."""
    folder = tmp_path_factory.mktemp("stores") / "cache"
    subprocess.run(
        [helper(), "cache", "build", photos, folder, "--shard-samples", str(SHARD_SAMPLES)],
        check=True,
        capture_output=True,
    )
    return folder


@pytest.fixture(scope="session")
def kept(store_server: int, cache: Path) -> str:
    """The cache in a bucket of all tests. No test changes it."""
    store = Store(store_server, "kept")
    try:
        return store.upload(cache, "sets/cache")
    finally:
        store.close()


@pytest.fixture
def url(store: Store, kept: str) -> str:
    """The cache, through the test's own proxy."""
    return kept


@pytest.fixture
def own(store: Store, cache: Path) -> str:
    """A copy that the test may change."""
    return store.upload(cache, "sets/cache")


@pytest.fixture(scope="session")
def expected(cache: Path) -> Callable[..., str]:
    """The digest of a run from the disk."""
    known: dict[tuple[str, ...], str] = {}

    def of(*args: str) -> str:
        if args not in known:
            known[args] = bench(cache, *args)["digest"]
        return known[args]

    return of


def command(src: str | Path, *args: str) -> list[str]:
    own: list[str] = []
    for flag, value in (("--num-workers", "2"), ("--batch-size", str(BATCH)), ("--epochs", "1")):
        if flag not in args:
            own += [flag, value]
    own += ["--recipe", str(SMALL)]
    return [helper(), "bench", str(src), "--json", "--digest", *own, *args]


def started(src: str | Path, *args: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command(src, *args), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def ended(process: subprocess.Popen[str]) -> Any:
    """The report of a run that must go well."""
    try:
        out, error = process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        process.kill()
        pytest.fail(f"hangs: {process.communicate()}")
    assert process.returncode == 0, error
    report = json.loads(out)
    assert report["failed"] == 0 and report["batches"] == report["batches_planned"]
    return report


def bench(src: str | Path, *args: str) -> Any:
    return ended(started(src, *args))


def failure(src: str | Path, *args: str) -> str:
    """What a run says that must not go well."""
    process = started(src, *args)
    try:
        out, error = process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        process.kill()
        pytest.fail(f"hangs: {process.communicate()}")
    assert process.returncode not in (0, -signal.SIGABRT), out
    assert "panicked" not in error, error
    for text in (out, error):
        assert SECRET not in text
    return error + out


def fetch(folder: Path, limit: str | None = None) -> list[str]:
    return ["--fetch-dir", str(folder), *(["--fetch-limit", limit] if limit else [])]


def parts(folder: Path) -> list[Path]:
    return list(folder.rglob("*.part"))


def shards(folder: Path) -> list[Path]:
    return list(folder.rglob("shard-*.tar"))


def until(what: Callable[[], object], seconds: float = LIMIT) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.005)


def manifest(cache: Path) -> Any:
    return json.loads((cache / "manifest.json").read_text())


def size(cache: Path) -> int:
    """Bytes of all shards."""
    total: int = sum(shard["bytes"] for shard in manifest(cache)["shards"])
    return total


def below(pid: int) -> Iterator[tuple[int, str]]:
    """Processes below another, with their names."""
    for child in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for found in map(int, child.read_text().split()):
                with contextlib.suppress(OSError):
                    yield found, Path(f"/proc/{found}/comm").read_text().strip()
                yield from below(found)


def fetchers(pid: int) -> list[int]:
    return [found for found, name in below(pid) if name.startswith("featherload-fe")]


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


class Watched:
    """Looks at a folder, as often as it can."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self.most_bytes = 0
        self.most_on_disk = 0
        self.looks = 0

    def __enter__(self) -> Watched:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _names(self) -> list[str]:
        return sorted(
            os.path.join(at, name) for at, _, all in os.walk(self._folder) for name in all
        )

    def _watch(self) -> None:
        while not self._over.wait(0.001):
            names = self._names()
            found = []
            for name in names:
                with contextlib.suppress(OSError):
                    found.append(os.stat(name))
            # With other names now, a file that is gone would count beside the one in its place.
            if names != self._names():
                continue
            self.looks += 1
            self.most_bytes = max(self.most_bytes, sum(one.st_size for one in found))
            self.most_on_disk = max(self.most_on_disk, sum(one.st_blocks * 512 for one in found))


def fewest_bytes(uses: Sequence[Sequence[int]], sizes: Sequence[int], capacity: int) -> int:
    """Bytes to fetch by Belady's rule: what is used last goes first.

    ``uses``: the shards of each batch. Those of a batch are there together.
    """
    turns: dict[int, list[int]] = {}
    for at, batch in enumerate(uses):
        for shard in set(batch):
            turns.setdefault(shard, []).append(at)
    here: set[int] = set()
    fetched = 0
    for batch in uses:
        now = set(batch)
        for shard in dict.fromkeys(batch):
            turns[shard].pop(0)
        for shard in dict.fromkeys(batch):
            if shard in here:
                continue
            fetched += sizes[shard]
            here.add(shard)
            while sum(sizes[one] for one in here) > capacity:
                free = here - now
                assert free, "a batch uses more than fits"
                here.remove(max(free, key=lambda one: turns[one][0] if turns[one] else 1 << 60))
    return fetched


def test_the_fewest_bytes_of_small_orders() -> None:
    # Room for two of three: the textbook's count.
    order = [[0], [1], [2], [0], [1], [2]]
    assert fewest_bytes(order, [1, 1, 1], 2) == 4
    assert fewest_bytes(order, [1, 1, 1], 3) == 3
    assert fewest_bytes(order, [1, 1, 1], 1) == 6
    assert fewest_bytes([[0, 1], [0, 2], [1, 2]], [5, 3, 2], 10) == 10
    assert fewest_bytes([[0, 1], [0, 2], [1, 2]], [5, 3, 2], 8) == 13


def uses_of_batches(cache: Path, epochs: int, world: int = 1) -> list[list[int]]:
    """The shards of each batch, in the order in which a run uses them; all ranks together."""
    of_ranks: list[list[list[int]]] = []
    for rank in range(world):
        loader = featherload.Loader(
            cache,
            batch_size=BATCH,
            num_workers=2,
            rank=rank,
            world_size=world,
            recipe=SMALL,
            sampler=featherload.samplers.ShardShuffle(window=WINDOW),
        )
        try:
            of_ranks.append(
                [
                    [int(id) // SHARD_SAMPLES for id in batch.ids]
                    for _ in range(epochs)
                    for batch in loader
                ]
            )
        finally:
            loader.close()
    together = zip(*of_ranks, strict=True)
    return [[shard for batch in batches for shard in batch] for batches in together]


# The same stream.


@pytest.mark.parametrize("workers", ["0", "1", "2"])
def test_the_digest_is_that_of_the_local_cache(
    url: str, expected: Callable[..., str], tmp_path: Path, workers: str
) -> None:
    report = bench(url, "--num-workers", workers, *ORDER, *fetch(tmp_path / "here"))
    assert report["digest"] == expected(*ORDER)
    assert not parts(tmp_path)


def test_pixels_in_python_are_those_of_the_local_cache(
    url: str, cache: Path, tmp_path: Path, loader: Callable[..., featherload.Loader]
) -> None:
    there = loader(url, fetch_dir=tmp_path / "here", fetch_limit=100_000_000, batch_size=BATCH)
    here = loader(cache, batch_size=BATCH)
    for _ in range(2):
        assert digest(there) == digest(here)


def test_a_run_may_begin_in_the_midst(
    url: str, expected: Callable[..., str], tmp_path: Path
) -> None:
    args = ["--epochs", "2", "--start", "0:9", *ORDER]
    report = bench(url, *args, *fetch(tmp_path / "here", "12M"))
    assert report["digest"] == expected(*args)


def test_a_second_run_fetches_no_shard(
    url: str, store: Store, expected: Callable[..., str], tmp_path: Path
) -> None:
    bench(url, *fetch(tmp_path / "here"))
    assert store.proxy.keys(SHARDS)
    store.proxy.forget()
    assert bench(url, *fetch(tmp_path / "here"))["digest"] == expected()
    assert not store.proxy.keys(SHARDS)


# The limit.


def test_the_folder_never_holds_more_than_the_limit(
    url: str, cache: Path, store: Store, expected: Callable[..., str], tmp_path: Path
) -> None:
    here = tmp_path / "here"
    args = ["--epochs", str(EPOCHS), *ORDER]
    limit = 12 << 20
    with Watched(here) as watched:
        report = bench(url, *args, *fetch(here, "12M"))
    assert report["digest"] == expected(*args)
    assert watched.looks > 50
    assert limit // 2 < watched.most_bytes <= limit
    assert watched.most_on_disk <= limit
    assert not store.proxy.asked_twice_at_once(SHARDS)
    # A quarter of the room may hold shards before their time.
    uses = uses_of_batches(cache, EPOCHS)
    sizes = [shard["bytes"] for shard in manifest(cache)["shards"]]
    best, worst = (fewest_bytes(uses, sizes, room) for room in (limit, limit * 3 // 4))
    sent = store.proxy.bytes_sent(SHARDS)
    assert sent <= worst * 1.02, f"{sent} bytes were fetched, {best} are the fewest"


def test_a_limit_that_cannot_work_is_refused_with_the_number_that_does(
    url: str, store: Store, tmp_path: Path
) -> None:
    said = failure(url, *ORDER, *fetch(tmp_path / "here", "2M"))
    assert re.search(r"fetch.limit", said) and re.search(r"\d MiB", said), said
    assert not store.proxy.keys(SHARDS)
    more = re.search(r"give at least ([\d.]+) MiB more", said)
    assert more, said
    enough = int((2 + float(more[1]) + 0.1) * 1024)
    bench(url, *ORDER, *fetch(tmp_path / "here", f"{enough}K"))


def test_files_of_others_are_never_removed(
    url: str, expected: Callable[..., str], tmp_path: Path
) -> None:
    here = tmp_path / "here"
    args = ["--epochs", "2", *ORDER]
    bench(url, *ORDER, *fetch(here, "12M"))
    made = [path for path in here.iterdir() if path.is_dir()]
    assert len(made) == 1
    others = [
        here / "notes.txt",
        here / "shard-000000.tar",
        here / "other" / "shard-000001.tar",
        made[0] / "mine.tar",
        made[0] / "shard-mine.tar",
        made[0] / "shard-000099.tar",
    ]
    for path in others:
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
    assert bench(url, *args, *fetch(here, "12M"))["digest"] == expected(*args)
    assert [path.read_text() for path in others] == ["mine"] * len(others)


def test_a_folder_of_others_is_refused(url: str, tmp_path: Path) -> None:
    bench(url, *fetch(tmp_path / "first"))
    (made,) = (tmp_path / "first").iterdir()
    mine = tmp_path / "second" / made.name / "shard-000000.tar"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    assert str(mine.parent) in failure(url, *fetch(tmp_path / "second"))
    assert mine.read_text() == "mine"


# Several ranks.


def test_ranks_of_a_machine_share_what_they_fetch(
    url: str, cache: Path, store: Store, expected: Callable[..., str], tmp_path: Path
) -> None:
    shape = ["--world-size", "2", "--num-workers", "1", *ORDER]
    ranks = [["--rank", str(rank), *shape] for rank in range(2)]
    runs = [started(url, *rank, *fetch(tmp_path / "here", "1G")) for rank in ranks]
    reports = [ended(run) for run in runs]
    for report, rank in zip(reports, ranks, strict=True):
        assert report["digest"] == expected(*rank)
    times = store.proxy.times_fetched(SHARDS)
    assert len(times) == len(manifest(cache)["shards"]) and set(times.values()) == {1}
    assert store.proxy.most_gets_at_once(SHARDS) == 1


def test_ranks_share_a_folder_that_holds_a_part(
    url: str, cache: Path, store: Store, expected: Callable[..., str], tmp_path: Path
) -> None:
    here = tmp_path / "here"
    shared = ["--epochs", str(EPOCHS), "--num-workers", "1", *ORDER]
    ranks = [["--rank", str(rank), "--world-size", "2", *shared] for rank in range(2)]
    with Watched(here) as watched:
        runs = [started(url, *rank, *fetch(here, "14M")) for rank in ranks]
        reports = [ended(run) for run in runs]
    for report, rank in zip(reports, ranks, strict=True):
        assert report["digest"] == expected(*rank)
    assert watched.most_on_disk <= 14 << 20
    assert not store.proxy.asked_twice_at_once(SHARDS)
    uses = uses_of_batches(cache, EPOCHS, 2)
    sizes = [shard["bytes"] for shard in manifest(cache)["shards"]]
    # Ranks are some batches apart.
    worst = fewest_bytes(uses, sizes, 7 << 20)
    assert store.proxy.bytes_sent(SHARDS) <= worst * 1.02


@pytest.mark.parametrize("victim", [0, 1])
def test_a_rank_goes_on_when_another_is_killed(
    url: str, store: Store, expected: Callable[..., str], tmp_path: Path, victim: int
) -> None:
    store.proxy.limit_rate(20_000_000)
    shape = ["--world-size", "2", "--num-workers", "1", *ORDER]
    ranks = [["--rank", str(rank), *shape] for rank in range(2)]
    # The victim begins first, so it fetches for both.
    runs = {victim: started(url, *ranks[victim], *fetch(tmp_path / "here", "14M"))}
    until(lambda: len(shards(tmp_path)) >= 2)
    other = 1 - victim
    runs[other] = started(url, *ranks[other], *fetch(tmp_path / "here", "14M"))
    until(lambda: len(store.proxy.keys(SHARDS)) >= 8)
    runs[victim].kill()
    runs[victim].communicate()
    assert ended(runs[other])["digest"] == expected(*ranks[other])
    assert not parts(tmp_path)


# The network.


@pytest.mark.parametrize("reset", [False, True])
def test_cut_connections_go_on_where_they_were(
    url: str,
    cache: Path,
    store: Store,
    expected: Callable[..., str],
    tmp_path: Path,
    reset: bool,
) -> None:
    after = 200_000
    store.proxy.cut(SHARDS, after, times=40, reset=reset)
    assert bench(url, *ORDER, *fetch(tmp_path / "here"))["digest"] == expected(*ORDER)
    cuts = [one for one in store.proxy.gets(SHARDS) if one.bytes == after]
    assert len(cuts) >= 32
    assert any(one.range for one in store.proxy.gets(SHARDS))
    # What a reset throws away is sent again.
    most = size(cache) + len(cuts) * (after if reset else 0)
    assert store.proxy.bytes_sent(SHARDS) <= most * 1.02
    assert not parts(tmp_path)


def test_a_busy_store_is_asked_again(
    url: str, cache: Path, store: Store, expected: Callable[..., str], tmp_path: Path
) -> None:
    store.proxy.refuse("*", times=2)
    store.proxy.refuse(SHARDS, times=12)
    store.proxy.refuse(SHARDS, times=4, status=500, code="InternalError", text="Try again.")
    assert bench(url, *ORDER, *fetch(tmp_path / "here"))["digest"] == expected(*ORDER)
    assert sum(one.status >= 500 for one in store.proxy.requests) == 18
    assert store.proxy.bytes_sent(SHARDS) <= size(cache) * 1.02


@pytest.mark.alone
def test_a_distant_store_gives_the_same(
    url: str, store: Store, expected: Callable[..., str], tmp_path: Path
) -> None:
    store.proxy.delay(0.1)
    began = time.monotonic()
    assert bench(url, *ORDER, *fetch(tmp_path / "here"))["digest"] == expected(*ORDER)
    # Several come at a time.
    assert time.monotonic() - began < 0.1 * len(store.proxy.requests) + 2


def test_a_store_that_never_answers_is_asked_again(
    url: str, store: Store, expected: Callable[..., str], tmp_path: Path
) -> None:
    store.proxy.hang(SHARDS, times=1)
    assert bench(url, *ORDER, *fetch(tmp_path / "here"))["digest"] == expected(*ORDER)


def test_an_object_that_changes_in_the_midst_is_an_error_with_its_name(
    own: str, store: Store, tmp_path: Path
) -> None:
    key = "sets/cache/shard-000003.tar"
    other = store.get(key)[::-1]
    pattern = f"*/{key}"
    store.proxy.cut(pattern, 200_000)
    store.proxy.before(pattern, 2, lambda: store.put(key, other))
    said = failure(own, *ORDER, *fetch(tmp_path / "here"))
    assert f"{own}/shard-000003.tar" in said, said
    # The client may ask for the rest without a condition first, and compare tags by itself.
    assert [one.status for one in store.proxy.gets(pattern)][-1] == 412
    assert not list(tmp_path.rglob("shard-000003.tar"))


def test_a_damaged_shard_is_an_error_with_its_name(own: str, store: Store, tmp_path: Path) -> None:
    key = "sets/cache/shard-000003.tar"
    data = bytearray(store.get(key))
    data[100_000] ^= 1
    store.put(key, bytes(data))
    said = failure(own, *ORDER, *fetch(tmp_path / "here"))
    assert f"{own}/shard-000003.tar" in said, said


def test_a_missing_shard_is_an_error_with_its_address(
    own: str, store: Store, tmp_path: Path
) -> None:
    store.delete("sets/cache/shard-000003.tar")
    said = failure(own, *ORDER, *fetch(tmp_path / "here"))
    assert f"{own}/shard-000003.tar" in said, said


def test_what_is_not_there_is_an_error_with_its_address(
    url: str, store: Store, tmp_path: Path
) -> None:
    for wrong in (store.url("sets/none"), "s3://no-such-bucket/cache"):
        said = failure(wrong, *fetch(tmp_path / "here"))
        assert wrong in said, said


def test_a_redirect_to_another_host_needs_allow_redirects(
    tmp_path: Path, loader: Callable[..., featherload.Loader]
) -> None:
    class Elsewhere(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            other = "1.1.1.1" if self.path.startswith("/public") else "169.254.169.254"
            self.send_response(302)
            self.send_header("Location", f"http://{other}/x")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *said: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    at = f"http://127.0.0.1:{server.server_port}"
    try:
        with pytest.raises(featherload.Error, match=r"'1\.1\.1\.1'.*allow_redirects"):
            loader(f"{at}/public", fetch_dir=tmp_path / "a", batch_size=BATCH)
        with pytest.raises(featherload.Error, match=r"'169\.254\.169\.254'.*never followed"):
            loader(
                f"{at}/link",
                fetch_dir=tmp_path / "b",
                batch_size=BATCH,
                allow_redirects=True,
            )
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("InvalidAccessKeyId", "The AWS Access Key Id you provided does not exist."),
        ("SignatureDoesNotMatch", "The request signature we calculated does not match."),
        ("AccessDenied", "Access Denied"),
    ],
)
def test_refused_credentials_are_an_error_without_them(
    url: str, store: Store, tmp_path: Path, code: str, text: str
) -> None:
    store.proxy.refuse("*", status=403, code=code, text=text)
    # `failure` looks for the secret.
    said = failure(url, *fetch(tmp_path / "here"))
    assert url in said and "credentials" in said, said
    # Asking again would not help.
    assert len(store.proxy.requests) <= 4


def test_credentials_that_are_refused_in_the_midst_end_the_run(
    url: str, store: Store, tmp_path: Path
) -> None:
    store.proxy.refuse("*/shard-000003.tar", status=403, code="ExpiredToken", text="Expired.")
    said = failure(url, *ORDER, *fetch(tmp_path / "here"))
    assert f"{url}/shard-000003.tar" in said and "credentials" in said, said


# Processes that die.


def test_a_killed_fetcher_is_started_again(
    url: str, cache: Path, store: Store, expected: Callable[..., str], tmp_path: Path
) -> None:
    store.proxy.limit_rate(20_000_000)
    run = started(url, *ORDER, *fetch(tmp_path / "here"))
    for enough in (3, 9, 15):
        until(lambda enough=enough: len(shards(tmp_path)) >= enough)
        victims = fetchers(run.pid)
        assert len(victims) == 1
        os.kill(victims[0], signal.SIGKILL)
        until(lambda victims=victims: fetchers(run.pid) not in ([], victims))
    assert ended(run)["digest"] == expected(*ORDER)
    assert not parts(tmp_path)
    # Up to eight were under way at each kill, and buffers of sockets are lost with them.
    assert store.proxy.bytes_sent(SHARDS) <= size(cache) * 2


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_stopped_fetcher_is_replaced(
    url: str, store: Store, expected: Callable[..., str], tmp_path: Path, ranks: int
) -> None:
    store.proxy.limit_rate(20_000_000)
    shape = ["--world-size", str(ranks), "--num-workers", "1", *ORDER]
    orders = [["--rank", str(rank), *shape] for rank in range(ranks)]
    # The first one leads.
    runs = [started(url, *orders[0], *fetch(tmp_path / "here", "14M"))]
    until(lambda: len(shards(tmp_path)) >= 3)
    runs += [started(url, *order, *fetch(tmp_path / "here", "14M")) for order in orders[1:]]
    until(lambda: all(fetchers(run.pid) for run in runs))
    (victim,) = fetchers(runs[0].pid)
    os.kill(victim, signal.SIGSTOP)
    until(lambda: is_gone(victim))
    for run, order in zip(runs, orders, strict=True):
        assert ended(run)["digest"] == expected(*order)
    assert not parts(tmp_path)


def test_a_folder_is_taken_over_from_a_killed_run(
    url: str, cache: Path, store: Store, expected: Callable[..., str], tmp_path: Path
) -> None:
    store.proxy.limit_rate(10_000_000)
    run = started(url, *ORDER, *fetch(tmp_path / "here"))
    until(lambda: len(shards(tmp_path)) >= 4 and parts(tmp_path))
    left = [pid for pid, _ in below(run.pid)]
    assert left
    run.kill()
    run.communicate()
    until(lambda: all(map(is_gone, left)), 5)
    there = {path.name for path in shards(tmp_path)}
    store.proxy.calm()
    store.proxy.forget()
    assert bench(url, *ORDER, *fetch(tmp_path / "here"))["digest"] == expected(*ORDER)
    assert not parts(tmp_path)
    again = {key.rsplit("/", 1)[1] for key in store.proxy.keys(SHARDS)}
    assert again.isdisjoint(there) and len(again) + len(there) == len(manifest(cache)["shards"])
    # Parts went on.
    assert any(one.range for one in store.proxy.gets(SHARDS))


def test_nothing_runs_behind_a_loader_that_was_closed(
    url: str, tmp_path: Path, loader: Callable[..., featherload.Loader]
) -> None:
    one = loader(url, fetch_dir=tmp_path / "here", fetch_limit=100_000_000, batch_size=BATCH)
    next(iter(one))
    assert fetchers(os.getpid())
    one.close()
    until(lambda: not fetchers(os.getpid()), 5)


# Memory.


def pss(pid: int) -> int:
    """Bytes; 0 of a process that is gone."""
    with contextlib.suppress(OSError):
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
        if found := re.search(r"^Pss:\s+(\d+) kB", text, re.MULTILINE):
            return int(found[1]) * 1024
    return 0


@pytest.mark.alone
def test_the_fetcher_takes_little_memory(url: str, store: Store, tmp_path: Path) -> None:
    store.proxy.limit_rate(40_000_000)
    run = started(url, "--epochs", str(EPOCHS), *ORDER, *fetch(tmp_path / "here", "12M"))
    most = 0
    while run.poll() is None:
        most = max([most, *map(pss, fetchers(run.pid))])
        time.sleep(0.01)
    ended(run)
    assert 0 < most < 60 << 20, f"{most >> 20} MiB"


# The proxy itself.


def test_the_proxy_passes_all_as_it_is(store: Store) -> None:
    import boto3

    data = os.urandom(12_000_000)
    through: Any = boto3.client("s3", endpoint_url=store.proxy.url)
    with contextlib.closing(through):
        # Multipart, in threads.
        from boto3.s3.transfer import TransferConfig

        config = TransferConfig(multipart_threshold=5 << 20, multipart_chunksize=5 << 20)
        through.upload_fileobj(io.BytesIO(data), store.bucket, "a/large", Config=config)
        assert store.get("a/large") == data
        of = {"Bucket": store.bucket, "Key": "a/large"}
        found = through.get_object(**of)
        assert found["Body"].read() == data
        part = through.get_object(**of, Range="bytes=1000-1999")
        assert part["Body"].read() == data[1000:2000]
        assert through.head_object(**of)["ContentLength"] == len(data)
        assert through.get_object(**of, IfMatch=found["ETag"])["ETag"] == found["ETag"]
        for wrong in ({"IfMatch": '"0"'}, {"IfNoneMatch": found["ETag"]}):
            with pytest.raises(through.exceptions.ClientError):
                through.get_object(**of, **wrong)
        # An error's body passes too.
        with pytest.raises(through.exceptions.NoSuchKey):
            through.get_object(Bucket=store.bucket, Key="a/none")
        listed = through.list_objects_v2(Bucket=store.bucket)["Contents"]
        assert [one["Key"] for one in listed] == ["a/large"]
    gets = store.proxy.gets("*/a/large")
    assert [one.status for one in gets] == [200, 206, 200, 412, 304]
    assert (gets[1].range, gets[1].first, gets[1].behind) == ("bytes=1000-1999", 1000, 2000)
    assert store.proxy.bytes_sent("*/a/large") == sum(one.bytes for one in gets[:3])
    methods = [one.method for one in store.proxy.requests]
    assert methods.count("POST") == 2 and methods.count("PUT") == 3


def get(store: Store, key: str) -> tuple[int, bytes]:
    """A GET without tries; status and what came of the body."""
    import boto3
    from botocore.config import Config
    from botocore.exceptions import ClientError

    config = Config(retries={"total_max_attempts": 1}, read_timeout=1)
    client: Any = boto3.client("s3", endpoint_url=store.proxy.url, config=config)
    with contextlib.closing(client):
        try:
            body = client.get_object(Bucket=store.bucket, Key=key)["Body"]
        except ClientError as e:
            return e.response["ResponseMetadata"]["HTTPStatusCode"], b""
        came = b""
        with contextlib.closing(body), contextlib.suppress(Exception):
            while piece := body.read(10_000):
                came += piece
        return 200, came


def test_the_proxy_cuts_refuses_and_changes(store: Store) -> None:
    store.put("a/b", bytes(1_000_000))
    store.proxy.cut("*/a/b", 300_000, times=1)
    assert get(store, "a/b")[1] in (bytes(300_000), bytes(290_000))
    assert get(store, "a/b") == (200, bytes(1_000_000))
    store.proxy.refuse("*/a/b", times=2)
    assert [get(store, "a/b")[0] for _ in range(3)] == [503, 503, 200]
    store.proxy.before("*/a/b", 2, lambda: store.put("a/b", b"new"))
    assert [get(store, "a/b")[1] for _ in range(2)] == [bytes(1_000_000), b"new"]
    assert store.proxy.times_fetched("*/a/b") == {f"{store.bucket}/a/b": 5}


@pytest.mark.alone
def test_the_proxy_keeps_a_rate_and_hangs(store: Store) -> None:
    from botocore.exceptions import ReadTimeoutError

    store.put("a/b", bytes(1_000_000))
    store.proxy.limit_rate(2_000_000)
    began = time.monotonic()
    ran = [threading.Thread(target=get, args=(store, "a/b")) for _ in range(2)]
    for one in ran:
        one.start()
    for one in ran:
        one.join()
    assert 0.9 < time.monotonic() - began < 2.0
    assert store.proxy.most_gets_at_once() == 2
    assert store.proxy.asked_twice_at_once() == {f"{store.bucket}/a/b"}
    store.proxy.hang(times=1)
    with pytest.raises(ReadTimeoutError):
        get(store, "a/b")
    store.proxy.calm()
    assert get(store, "a/b")[0] == 200
