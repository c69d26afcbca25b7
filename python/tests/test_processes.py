"""Processes that end, are killed, fork or are interrupted: no hang, no crash, nothing left."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from conftest import SMALL, InterruptedLock

import featherload

Make = Callable[..., featherload.Loader]


@pytest.fixture
def loader(loader: Make) -> Make:
    """Of few pixels: what ends, and when, is tested."""
    return lambda *args, **options: loader(*args, **{"recipe": SMALL, **options})


def gone(pids: Sequence[int]) -> bool:
    """All of them ended; waits a little for the system."""
    end = time.monotonic() + 5
    left = list(pids)
    while left and time.monotonic() < end:
        left = [pid for pid in left if not ended(pid)]
        time.sleep(0.01)
    return not left


def ended(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return True
    return state == "Z"


def trainer(program: str, photos: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", program, str(photos)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_nothing_is_left_of_a_killed_trainer(photos: Path) -> None:
    program = """
import sys, time
import featherload
loader = featherload.Loader(sys.argv[1], batch_size=16, num_workers=2)
epoch = iter(loader)
kept = next(epoch)
stats = loader.stats()
print(stats["coordinator"], *stats["workers"], flush=True)
time.sleep(60)
"""
    with trainer(program, photos) as process:
        assert process.stdout is not None
        pids = [int(pid) for pid in process.stdout.readline().split()]
        assert len(pids) == 3 and not any(map(ended, pids))
        process.kill()
    assert gone(pids)


def test_a_killed_coordinator_is_an_error_each_time(loader: Make) -> None:
    one = loader()
    epoch = iter(one)
    kept = next(epoch)
    before = kept.images.copy()
    stats = one.stats()
    os.kill(stats["coordinator"], signal.SIGKILL)
    with pytest.raises(featherload.WorkerError):
        list(epoch)
    with pytest.raises(featherload.WorkerError):
        list(one)
    assert gone(stats["workers"])
    assert (kept.images == before).all()


def test_a_loader_may_end_in_another_thread(loader: Make) -> None:
    one = loader()
    pids = [one.stats()["coordinator"], *one.stats()["workers"]]
    seen: list[BaseException] = []

    def take() -> None:
        try:
            while True:
                for _ in one:
                    pass
        except featherload.ConfigError as error:
            seen.append(error)

    thread = threading.Thread(target=take)
    thread.start()
    time.sleep(0.1)
    one.close()
    thread.join(10)
    assert not thread.is_alive() and "closed" in str(seen[0])
    assert gone(pids)


def test_the_interpreter_ends_with_everything_alive(photos: Path) -> None:
    program = """
import sys, threading
import featherload
loader = featherload.Loader(sys.argv[1], batch_size=16, num_workers=2)
epoch = iter(loader)
kept = [next(epoch) for _ in range(3)]
ring = [kept]; ring.append(ring)
thread = threading.Thread(target=lambda: [b for b in loader], daemon=True)
thread.start()
"""
    with trainer(program, photos) as process:
        _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (0, "")


@pytest.mark.alone
def test_ctrl_c_ends_a_wait_and_loses_nothing(loader: Make) -> None:
    one = loader(row_limit=60.0)
    epoch = iter(one)
    got = [next(epoch).ids.tolist()]
    # Nobody makes progress: the coordinator would kill stopped workers, so it stops first.
    stats = one.stats()
    pids = [stats["coordinator"], *stats["workers"]]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    timer = threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    began = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            while True:
                got.append(next(epoch).ids.tolist())
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
    assert time.monotonic() - began < 5
    got += [batch.ids.tolist() for batch in epoch]
    one.set_epoch(0)
    assert got == [batch.ids.tolist() for batch in one]


def test_ctrl_c_at_any_time_loses_no_batch(loader: Make) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    one = loader(batch_size=4)
    draw = random.Random(0)
    before = signal.signal(signal.SIGALRM, interrupt)
    times, place = 0, (0, 0)
    try:
        while times < 10:
            last = None
            try:
                try:
                    signal.setitimer(signal.ITIMER_REAL, draw.uniform(0.002, 0.06))
                    for last in one:  # noqa: B007
                        pass
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                times += 1
            if last is not None:
                ends = last.number + 1 == len(one)
                place = (last.epoch + 1, 0) if ends else (last.epoch, last.number + 1)
            # Behind the last batch that the loop had, wherever it was interrupted.
            state = one.state_dict()
            assert (state["epoch"], state["samples"]) == (place[0], place[1] * one.batch_size)
            one.load_state_dict(state)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert place != (0, 0)


def test_ctrl_c_behind_the_lock_loses_no_batch(loader: Make) -> None:
    one = loader(batch_size=8)
    epoch = iter(one)
    one._turn.lock = InterruptedLock(at=3)  # type: ignore[assignment]
    got = [next(epoch).number for _ in range(2)]
    with pytest.raises(KeyboardInterrupt):
        next(epoch)
    assert one.state_dict()["samples"] == 16
    got += [batch.number for batch in epoch]
    assert got == list(range(32))


def test_threads_may_share_an_iterator(loader: Make) -> None:
    for _ in range(5):
        epoch = iter(loader(batch_size=8, depth=8))
        seen: list[int] = []

        def take(epoch: Iterator[featherload.Batch], seen: list[int]) -> None:
            seen.extend(batch.number for batch in epoch)

        threads = [threading.Thread(target=take, args=(epoch, seen)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(seen) == list(range(32))


# JAX warns of forks.
@pytest.mark.filterwarnings("ignore")
def test_a_forked_copy_is_told(loader: Make) -> None:
    one = loader()
    epoch = iter(one)
    batch = next(epoch)
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        said = b"nothing"
        try:
            next(epoch)
        except featherload.WorkerError as error:
            said = str(error).encode()
        finally:
            os.write(writer, said)
            os._exit(0)
    os.close(writer)
    said = os.read(reader, 1000).decode()
    os.close(reader)
    os.waitpid(pid, 0)
    assert "forked copy" in said
    # Nothing of it is changed here.
    assert batch.images.any()
    assert len([batch.number, *(b.number for b in epoch)]) == 8


# JAX warns of forks.
@pytest.mark.filterwarnings("ignore")
def test_a_copy_forked_while_a_thread_waits_does_not_hang(loader: Make) -> None:
    one = loader()
    epoch = iter(one)
    next(epoch)
    stats = one.stats()
    for pid in [stats["coordinator"], *stats["workers"]]:
        os.kill(pid, signal.SIGSTOP)
    # It has the loader while it waits.
    thread = threading.Thread(target=lambda: [batch.number for batch in epoch])
    thread.start()
    time.sleep(0.2)
    pid = os.fork()
    if pid == 0:
        signal.alarm(10)
        refused = 0
        calls: list[Callable[[], object]] = [one.stats, one.state_dict, lambda: one.dataset[0]]
        for call in calls:
            try:
                call()
            except featherload.WorkerError:
                refused += 1
        one.close()
        os._exit(refused)
    _, status = os.waitpid(pid, 0)
    for pid in [stats["coordinator"], *stats["workers"]]:
        os.kill(pid, signal.SIGCONT)
    thread.join(20)
    assert not thread.is_alive()
    assert os.waitstatus_to_exitcode(status) == 3


def test_a_small_stack_refuses_the_import_with_its_limit() -> None:
    program = "import resource; resource.setrlimit(resource.RLIMIT_STACK, (100 << 10, -1))"
    program += "\nimport featherload"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 1, done
    for words in ("ImportError", "100 KiB", "512 KiB", "ulimit -s 8192"):
        assert words in done.stderr, done.stderr
