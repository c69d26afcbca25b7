"""Code that Python runs in the midst of ``next`` is never given the batch that ``next`` is about
to hand over: handlers of signals and of logging, finalizers, callbacks of the garbage collector,
trace functions.
"""

from __future__ import annotations

import contextlib
import gc
import io
import logging
import os
import re
import signal
import sys
import tarfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
from conftest import SCENE_SIZE, write_scene

import featherload
from featherload._preview import _png as png

_, _, IMAGES = SCENE_SIZE
REFUSED = "called inside next"
NESTED = re.compile(r"^next\(\) was called inside (\w+)\(\)")
SMALL = {"ops": [{"random_resized_crop": {"size": [8, 8]}}]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_scene(tmp_path_factory.mktemp("nested") / "scene")


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """256 small ones: 32 batches."""
    pictures = tmp_path_factory.mktemp("pictures")
    for number in range(256):
        (pictures / f"{number}.png").write_bytes(png(np.full((9, 9, 3), number, np.uint8)))
    return pictures


def small_loader(pictures: Path, depth: int) -> featherload.Loader:
    return featherload.Loader(
        pictures, SMALL, batch_size=8, num_workers=1, depth=depth, dtype="uint8"
    )


@pytest.fixture
def runs(pictures: Path, folder: Path) -> Iterator[dict[str, Any]]:
    """An iterator of each kind, and what gives pids and state.

    A worker that is not stopped at once makes at most ``depth`` batches of the epoch's 32 ahead:
    where its processes stop, ``next`` waits.
    """
    made = {
        "loader": small_loader(pictures, depth=8),
        "rays": featherload.Rays(folder, rays=40, num_workers=1, depth=8, start=3),
        "views": featherload.Views(folder, num_workers=1, depth=8),
    }
    yield made
    for one in made.values():
        one.close()


KINDS = ("loader", "rays", "views")


def number(given: Any) -> int:
    return int(given.number if isinstance(given, featherload.Batch) else given.step)


def address(given: Any) -> int:
    if isinstance(given, featherload.Batch):
        return int(given.images.ctypes.data)
    array = given.colors if isinstance(given, featherload.RayBatch) else given.image
    return int(array.ctypes.data)


def processes(run: Any) -> list[int]:
    report = run.stats()
    return [report["coordinator"], *report["workers"]]


def go_on(pids: list[int]) -> None:
    """Processes that were stopped go on, but those that were replaced meanwhile."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def refused(call: Callable[[], object]) -> bool:
    try:
        call()
    except featherload.Error as error:
        return REFUSED in str(error)
    return False


@pytest.mark.parametrize("kind", KINDS)
def test_a_signal_handler_reads_and_does_not_move_a_run_inside_next(
    runs: dict[str, Any], kind: str
) -> None:
    run = runs[kind]
    steps = iter(run)
    first = next(steps)
    before = run.state_dict()
    pids = processes(run)
    # What was made ahead is used up, so that `next` waits.
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    seen: list[bool] = []
    states: list[object] = []
    got = [number(first)]

    def handler(*_: object) -> None:
        moves: list[Callable[[], object]] = [
            lambda: next(steps),
            lambda: next(iter(run)),
            lambda: run.load_state_dict(before),
            lambda: run.set_epoch(5) if kind == "loader" else run.go_to(5),
        ]
        if kind == "loader":
            moves.append(steps.close)  # type: ignore[attr-defined]
        seen.extend(refused(move) for move in moves)
        states.append(run.state_dict())
        for pid in pids:
            os.kill(pid, signal.SIGCONT)

    old = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.15)
    try:
        while not states:
            got.append(number(next(steps)))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
    assert seen and all(seen)
    assert got == list(range(got[0], got[0] + len(got)))
    # The state stands in front of the batch that `next` was about to give.
    [state] = states
    run.load_state_dict(state)
    assert number(next(iter(run) if kind == "loader" else run)) == got[-1]


@pytest.mark.parametrize("kind", KINDS)
def test_a_signal_handler_may_close_a_run_inside_next(runs: dict[str, Any], kind: str) -> None:
    run = runs[kind]
    steps = iter(run)
    got = [number(next(steps))]
    for pid in processes(run):
        os.kill(pid, signal.SIGSTOP)
    old = signal.signal(signal.SIGALRM, lambda *_: run.close())
    signal.setitimer(signal.ITIMER_REAL, 0.15)
    try:
        with pytest.raises(featherload.ConfigError, match="closed"):
            while True:
                got.append(number(next(steps)))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert got == list(range(got[0], got[0] + len(got)))


@pytest.mark.parametrize("kind", KINDS)
def test_no_trace_function_is_given_what_next_hands_over(runs: dict[str, Any], kind: str) -> None:
    run = runs[kind]
    at, reached = 0, True
    while reached:
        reached = False
        if kind == "loader":
            run.set_epoch(0)
        else:
            run.go_to(0)
        steps, given, count = iter(run), [], 0

        def trace(frame: FrameType, *_: object) -> Any:
            nonlocal count, reached
            if "featherload" not in frame.f_code.co_filename:
                return None
            count += 1
            if count == at + 1 and not reached:  # noqa: B023
                reached = True
                try:
                    given.append(next(steps))  # noqa: B023
                except featherload.Error as error:
                    assert REFUSED in str(error)
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            one = next(steps)
        finally:
            sys.settrace(before)
        given.append(one)
        given.extend(next(steps) for _ in range(3))
        # Each once, in memory of its own.
        numbers = sorted(map(number, given))
        assert numbers == list(range(len(given))), at
        assert len(set(map(address, given))) == len(given), at
        at += 1
    assert at > 20


def test_no_callback_of_the_collector_is_given_what_next_hands_over(pictures: Path) -> None:
    # All batches are held until the end.
    with small_loader(pictures, depth=40) as loader:
        hold_all_batches(loader)


def hold_all_batches(loader: featherload.Loader) -> None:
    steps = iter(loader)
    given: list[Any] = []
    refusals = 0
    inside = False

    def collected(*_: object) -> None:
        nonlocal refusals, inside
        if inside:
            return
        inside = True
        try:
            given.append(next(steps))
        except StopIteration:
            pass
        except featherload.Error as error:
            assert REFUSED in str(error)
            refusals += 1
        inside = False

    threshold = gc.get_threshold()
    gc.callbacks.append(collected)
    try:
        gc.set_threshold(1)
        given.extend(steps)
    finally:
        gc.set_threshold(*threshold)
        gc.callbacks.remove(collected)
    assert refusals
    assert sorted(map(number, given)) == list(range(32))
    assert len({address(one) for one in given}) == 32


def test_an_epoch_that_begins_inside_next_of_another_is_refused(runs: dict[str, Any]) -> None:
    run = runs["loader"]
    first, second = iter(run), iter(run)
    assert number(next(first)) == 0
    run._turn.here.call = "next"
    assert refused(lambda: next(second))
    run._turn.here.call = ""
    # Another thread takes its turn.
    numbers: list[int] = []
    thread = threading.Thread(target=lambda: numbers.append(number(next(first))))
    thread.start()
    thread.join()
    assert numbers == [1]


def test_an_iterator_that_was_replaced_ends_no_other(runs: dict[str, Any]) -> None:
    run = runs["loader"]
    first, second = iter(run), iter(run)
    next(first)
    # As the garbage collector finds it: its weak references are dead, and it was not told.
    run._running = None
    assert number(next(second)) == 1
    del first
    assert [number(one) for one in second] == list(range(2, 32))


def test_threads_that_ask_for_a_view_by_its_step_get_that_one(folder: Path) -> None:
    views = featherload.Views(folder, shuffle=False, num_workers=1, depth=2)
    with views:
        wrong: list[tuple[int, int]] = []

        def take(numbers: list[int]) -> None:
            for index in numbers:
                given = views._next(index).index
                if given != index:
                    wrong.append((index, given))

        order = [number % IMAGES for number in range(60)]
        threads = [threading.Thread(target=take, args=(order[i:],)) for i in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong


@pytest.mark.parametrize("kind", KINDS)
def test_no_trace_function_moves_a_run_in_the_midst_of_another_move(
    runs: dict[str, Any], kind: str
) -> None:
    run = runs[kind]
    steps = iter(run)
    next(steps)
    state = run.state_dict()
    moves: dict[str, Callable[[], object]] = {"load_state_dict": lambda: run.load_state_dict(state)}
    if kind == "loader":
        moves |= {"set_epoch": lambda: run.set_epoch(0), "close": steps.close}  # type: ignore[attr-defined]
    else:
        moves |= {"go_to": lambda: run.go_to(3)}
    for name, move in moves.items():
        inside: set[str] = set()

        def trace(frame: FrameType, *_: object) -> Any:
            if "featherload" not in frame.f_code.co_filename:
                return None
            if run._turn.here.call:
                try:
                    next(steps)
                except featherload.Error as error:
                    inside.update(NESTED.findall(str(error)))  # noqa: B023
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            move()
        finally:
            sys.settrace(before)
        assert inside == {name}
        # It is over.
        assert not run._turn.here.call


def test_a_thread_that_waits_in_next_keeps_no_other_from_closing_its_epoch(
    runs: dict[str, Any],
) -> None:
    run = runs["loader"]
    pids = processes(run)
    steps = iter(run)
    assert number(next(steps)) == 0
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    got: list[int] = []
    waits = threading.Thread(target=lambda: got.extend(number(one) for one in steps))
    closes = threading.Thread(target=steps.close)  # type: ignore[attr-defined]
    try:
        waits.start()
        # What was made ahead is used up.
        waits.join(0.5)
        closes.start()
        closes.join(20)
        waits.join(20)
        ended = not closes.is_alive() and not waits.is_alive()
    finally:
        go_on(pids)
        waits.join()
        closes.join()
    assert ended
    assert got == list(range(1, len(got) + 1)) and len(got) < 31
    # That epoch is over: the next one is the next.
    assert (run.epoch, number(next(iter(run)))) == (1, 0)


@pytest.fixture
def warned_of(tmp_path: Path) -> Path:
    """A shard of whose index the library warns."""
    picture = png(np.zeros((9, 9, 3), np.uint8))
    with tarfile.open(tmp_path / "s.tar", "w") as tar:
        member = tarfile.TarInfo("0.png")
        member.size = len(picture)
        tar.addfile(member, io.BytesIO(picture))
    (tmp_path / "s.idx").write_text("v1.2 1\n")
    return tmp_path / "s.tar"


@pytest.mark.parametrize("kind", KINDS)
def test_warnings_are_heard_while_next_waits_and_their_handler_moves_nothing(
    runs: dict[str, Any], kind: str, warned_of: Path
) -> None:
    run = runs[kind]
    pids = processes(run)
    steps = iter(run)
    here = threading.get_ident()
    waits, over = threading.Event(), threading.Event()
    heard: list[bool] = []

    class Hears(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if threading.get_ident() == here and waits.is_set():
                heard.append("s.idx" in record.getMessage() and refused(lambda: next(steps)))
                over.set()

    def warn() -> None:
        # Another thread of this process makes the library warn, until this one has heard it.
        waits.wait()
        # What was made ahead is used up.
        over.wait(0.3)
        for turn in range(100):
            # Another one than that whose index is kept.
            os.utime(warned_of, (turn, turn))
            featherload.plan(warned_of, SMALL, batch_size=1, num_workers=1)
            if over.wait(0.1):
                break
        over.set()
        go_on(pids)

    handler, logger = Hears(), logging.getLogger("featherload")
    logger.addHandler(handler)
    other = threading.Thread(target=warn)
    other.start()
    try:
        got = [number(next(steps))]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        waits.set()
        while not over.is_set():
            got.append(number(next(steps)))
    finally:
        waits.set()
        other.join()
        logger.removeHandler(handler)
    assert heard and all(heard)
    assert got == list(range(got[0], got[0] + len(got)))


# JAX warns of forks.
@pytest.mark.filterwarnings("ignore")
def test_a_copy_forked_while_a_thread_has_its_turn_does_not_hang(runs: dict[str, Any]) -> None:
    loader, rays = runs["loader"], runs["rays"]
    steps = iter(loader)
    next(steps)
    with loader._turn.lock, rays._turn.lock:
        refusals: list[int] = []
        thread = threading.Thread(target=lambda: refusals.append(refusals_of_a_copy(steps, rays)))
        thread.start()
        thread.join(20)
    assert refusals == [4]


def refusals_of_a_copy(steps: Any, rays: featherload.Rays) -> int:
    pid = os.fork()
    if pid == 0:
        signal.alarm(10)
        raised = 0
        calls: list[Callable[[], object]] = [
            lambda: next(steps),
            lambda: next(rays),
            lambda: rays.go_to(3),
            lambda: rays.load_state_dict({}),
        ]
        for call in calls:
            try:
                call()
            except featherload.WorkerError:
                raised += 1
        steps.close()
        os._exit(raised)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)
