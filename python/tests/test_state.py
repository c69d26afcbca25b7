"""Epochs and states: where a loader stands, and goes on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import SMALL, digest, need

import featherload

Make = Callable[..., featherload.Loader]


@pytest.fixture
def loader(loader: Make) -> Make:
    """Of few pixels: states count samples."""
    return lambda *args, **options: loader(*args, **{"recipe": SMALL, **options})


def pixels_of(image: Any) -> bytes:
    return hashlib.sha256(image.tobytes()).digest()


def ids(batches: Any) -> list[list[int]]:
    return [batch.ids.tolist() for batch in batches]


def test_epochs_follow_each_other(loader: Make) -> None:
    one = loader()
    assert len(one) == 8 and one.epoch == 0
    first, second = digest(one), digest(one)
    assert first != second and one.epoch == 2
    one.set_epoch(1)
    assert digest(one) == second
    # Left early: the next is the next.
    for _ in one:
        break
    assert one.epoch == 3 and one.state_dict()["epoch"] == 2
    again = loader()
    again.set_epoch(3)
    assert digest(one) == digest(again)


def test_a_state_goes_on_where_it_stands(loader: Make) -> None:
    whole = loader()
    both = ids(whole) + ids(whole)
    one = loader()
    begun = iter(one)
    got = ids(next(begun) for _ in range(3))
    state = one.state_dict()
    assert state == one.state_dict() and state["samples"] == 96
    # Before any iter, with other workers.
    other = loader(num_workers=1)
    other.load_state_dict(state)
    assert other.state_dict() == state and len(other) == 8
    assert got + ids(other) == both[:8]
    # In the middle of another epoch, and twice.
    for _ in range(2):
        running = iter(other)
        next(running)
        other.load_state_dict(state)
        assert got + ids(other) == both[:8]
    # Another epoch than the state's is asked for: its place is not taken in silence.
    other.load_state_dict(state)
    other.set_epoch(1)
    with pytest.warns(RuntimeWarning, match="epoch 0 after 96 samples.*epoch 1: that one begins"):
        assert ids(other) == both[8:]
    # Trainers set the epoch that they resume.
    other.load_state_dict(state)
    other.set_epoch(0)
    assert got + ids(other) == both[:8]
    # At an epoch's end: a whole new one.
    got += ids(begun)
    end = one.state_dict()
    assert (end["epoch"], end["samples"]) == (1, 0)
    other.load_state_dict(end)
    assert got + ids(other) == both


def test_a_state_of_another_run_is_refused(loader: Make) -> None:
    state = loader(seed=1).state_dict()
    other = loader(seed=2)
    other.load_state_dict(state)
    with pytest.raises(featherload.ConfigError, match="seed was 1 and is now 2"):
        next(iter(other))
    # It is forgotten then.
    assert len(ids(other)) == 8
    other.load_state_dict({"epoch": 1, "samples": 0})
    with pytest.raises(featherload.ConfigError, match="not one that state_dict gave"):
        next(iter(other))
    for part in (
        {"batches": 3},
        {"plan": {**state["plan"], "shuffled": True}},
        {"profile": {**state["profile"], "dtypes": "f32"}},
    ):
        other.load_state_dict({**other.state_dict(), **part})
        with pytest.raises(
            featherload.ConfigError, match="unknown field '(batches|shuffled|dtypes)"
        ):
            next(iter(other))
    for samples in (256, 999):
        other.load_state_dict({**other.state_dict(), "samples": samples})
        with pytest.raises(featherload.ConfigError, match=f"{samples} samples .* has 256"):
            next(iter(other))


def test_other_ranks_and_batch_sizes_go_on(loader: Make) -> None:
    """Four ranks, then two, then eight: each sample of the epoch once, and its pixels."""
    whole = {
        (i, pixels_of(image))
        for batch in loader()
        for i, image in zip(batch.ids.tolist(), batch.images, strict=True)
    }
    seen: list[tuple[int, bytes]] = []
    state: dict[str, Any] | None = None
    for world, batch_size, steps in ((4, 12, 2), (2, 20, 3), (8, 5, None)):
        states = []
        for rank in range(world):
            one = loader(rank=rank, world_size=world, batch_size=batch_size, num_workers=1)
            if state is not None:
                one.load_state_dict(json.loads(json.dumps(state)))
            for number, batch in enumerate(one):
                good = ~batch.repeated
                pixels = [pixels_of(image) for image in batch.images[good]]
                seen += zip(batch.ids[good].tolist(), pixels, strict=True)
                if number + 1 == steps:
                    break
            states.append(one.state_dict())
        state = states[-1]
        assert all((s["epoch"], s["samples"]) == (state["epoch"], state["samples"]) for s in states)
    assert state is not None and (state["epoch"], state["samples"]) == (1, 0)
    assert len(seen) == 256 and set(seen) == whole


def test_a_state_of_another_version_is_refused(loader: Make) -> None:
    one = loader()
    next(iter(one))
    other = loader()
    other.load_state_dict({**one.state_dict(), "version": 2})
    with pytest.raises(featherload.ConfigError, match="version of the state was 2 and is now 3"):
        next(iter(other))


def test_identities_keep_their_batch_size(loader: Make) -> None:
    sampler = featherload.samplers.Identity(4)
    one = loader(sampler=sampler, rank=0, world_size=2)
    next(iter(one))
    state = one.state_dict()
    other = loader(sampler=sampler, rank=2, world_size=3)
    other.load_state_dict(state)
    assert len(ids(other)) == 2
    other = loader(sampler=sampler, batch_size=16)
    other.load_state_dict(state)
    with pytest.raises(featherload.ConfigError, match=r"batch.* was 32 and is now 16") as e:
        next(iter(other))
    assert e.value.option == "batch_size"


def test_ranks_share_an_epoch(loader: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    ranks = [loader(rank=r, world_size=3) for r in range(3)]
    assert [len(one) for one in ranks] == [3, 3, 3]
    seen: list[int] = []
    for one in ranks:
        for batch in one:
            seen += batch.ids[~batch.repeated].tolist()
    assert sorted(seen) == list(range(256))
    monkeypatch.setenv("RANK", "2")
    monkeypatch.setenv("WORLD_SIZE", "3")
    launched = loader()
    ranks[2].set_epoch(0)
    assert ids(launched) == ids(ranks[2])
    monkeypatch.setenv("RANK", "x")
    with pytest.raises(featherload.ConfigError, match="RANK='x'"):
        loader()
    with pytest.raises(featherload.ConfigError, match="world_size is missing"):
        loader(rank=0)
    # Lightning sets the one and not the other: all ranks would read everything.
    monkeypatch.delenv("RANK")
    with pytest.raises(featherload.ConfigError, match="RANK=None and WORLD_SIZE='3'"):
        loader()
    assert len(loader(rank=0, world_size=1)) == 8
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert len(loader()) == 8


def test_processes_that_train_together_never_read_the_same_unasked(
    loader: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    early = loader()
    given = loader(rank=0, world_size=1)
    monkeypatch.setattr("featherload._options.process_group", lambda: (1, 2))
    with pytest.raises(featherload.ConfigError, match=r"rank 1 of 2 .* made as rank 0 of 1"):
        next(iter(early))
    assert len(ids(given)) == 8
    assert len(ids(loader())) == 4


def test_an_epoch_begins_with_its_first_batch(loader: Make) -> None:
    whole = loader()
    epochs = [ids(whole) for _ in range(3)]
    one = loader()
    # Lightning asks for iterators that it never uses.
    iter(one)
    epoch = iter(one)
    one.set_epoch(1)
    assert one.epoch == 1 and one.state_dict()["epoch"] == 1
    assert ids(epoch) == epochs[1]
    # One that was left early, and the next that was not begun.
    epoch = iter(one)
    next(epoch)
    assert (one.epoch, one.state_dict()["samples"]) == (2, 32)
    del epoch
    # What comes is the next epoch; the state is for a run that continues this one.
    state = one.state_dict()
    assert (one.epoch, state["epoch"], state["samples"]) == (3, 2, 32)
    waiting = iter(one)
    iter(one)
    state = one.state_dict()
    assert (one.epoch, state["epoch"], state["samples"]) == (3, 3, 0)
    rest = ids(waiting)
    other = loader()
    other.load_state_dict(state)
    assert ids(other) == rest


def test_a_loader_has_one_epoch_at_a_time(loader: Make) -> None:
    one = loader()
    epoch = iter(one)
    next(epoch)
    # A look at a batch ends the epoch, which is no end of the data.
    next(iter(one))
    with pytest.raises(featherload.Error, match="another epoch of the same loader began"):
        next(epoch)
    with pytest.raises(featherload.Error, match="another epoch"):
        list(zip(one, one, strict=True))
    assert len(ids(one)) == 8


def test_a_batch_that_could_not_be_taken_comes_again(
    loader: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = loader()
    epoch = iter(one)
    take = featherload.Loader._take

    def fails(*_: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr(featherload.Loader, "_take", fails)
    for _ in range(2):
        with pytest.raises(MemoryError):
            next(epoch)
    monkeypatch.setattr(featherload.Loader, "_take", take)
    assert [batch.number for batch in epoch] == list(range(8))


def test_an_error_is_no_end_of_the_epoch(loader: Make, photos: Path, tmp_path: Path) -> None:
    good = [path.read_bytes() for path in sorted(photos.rglob("*.jpg"))[:8]]

    def write(number: int, *, bad: bool) -> None:
        data = good[number][:200] if bad else good[number]
        (tmp_path / f"{number}.jpg").write_bytes(data)

    for number in range(8):
        write(number, bad=number in (0, 5))
    one = loader(tmp_path, batch_size=2, shuffle=False)
    seen = []
    for bad in (0, 5):
        with pytest.raises(featherload.SampleError):
            for batch in one:
                seen.append((batch.epoch, batch.number))
        assert one.epoch == 0 and one.state_dict()["samples"] == 2 * len(seen)
        write(bad, bad=False)
    seen += [(batch.epoch, batch.number) for batch in one]
    assert seen == [(0, number) for number in range(4)]


def test_a_running_epoch_says_where_it_is(loader: Make) -> None:
    one = loader()
    epoch = iter(one)
    next(epoch)
    begin = one.state_dict()
    one.set_epoch(9)
    next(epoch)
    assert (one.state_dict()["epoch"], one.state_dict()["samples"]) == (0, 64)
    del epoch
    assert one.epoch == 9 and ids(one) and one.epoch == 10
    for nothing in ({}, {"epoch": "x", "samples": 1}, {"epoch": -1, "samples": 0}):
        with pytest.raises(featherload.ConfigError):
            one.load_state_dict(nothing)
    one.load_state_dict({**begin, "samples": np.int64(7 * 32)})
    assert len(ids(one)) == 1


def test_a_kept_batch_keeps_no_process(photos: Path) -> None:
    one = featherload.Loader(photos, batch_size=32, num_workers=2)
    batch = next(iter(one))
    before, names = batch.images.copy(), [str(path) for path in batch.paths()]
    assert len(set(names)) == 32
    pids = [one.stats()["coordinator"], *one.stats()["workers"]]
    del one
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
    assert (batch.images == before).all()
    assert [str(path) for path in batch.paths()] == names


def test_nothing_is_left_of_a_loader_that_was_let_go(loader: Make, photos: Path) -> None:
    one = featherload.Loader(photos, batch_size=32, num_workers=2)
    epoch = iter(one)
    next(epoch)
    pids = [one.stats()["coordinator"], *one.stats()["workers"]]
    del one, epoch
    # By counting alone, without a collection of cycles.
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


# As torchdata's StatefulDataLoader has them in its tests (test_state_dict.py).


@pytest.mark.parametrize("interrupt", [0, 1, 5, 8])
@pytest.mark.parametrize("workers", [(1, 3), (3, 1)])
def test_run_and_checkpoint(loader: Make, interrupt: int, workers: tuple[int, int]) -> None:
    one, other = (loader(num_workers=n) for n in workers)
    epoch = iter(one)
    for _ in range(interrupt):
        next(epoch)
    state = json.loads(json.dumps(one.state_dict()))
    expected = ids(epoch) if interrupt < 8 else ids(one)
    other.load_state_dict(state)
    assert ids(other) == expected


def test_snapshots_of_the_same_loader(loader: Make) -> None:
    one = loader()
    # TestSnapshotZero, test_map_interrupted_shuffle: the begin, and the middle.
    epoch = iter(one)
    begin = one.state_dict()
    expected = [next(epoch).ids.tolist() for _ in range(4)]
    middle = one.state_dict()
    one.load_state_dict(middle)
    expected += ids(iter(one))
    one.load_state_dict(begin)
    assert ids(one) == expected
    # TestSnapshotEnd: a state of the end begins the next epoch, here and elsewhere.
    end = one.state_dict()
    following = ids(one)
    other = loader()
    running = iter(other)
    next(running)
    next(running)
    other.load_state_dict(end)
    assert ids(other) == following
    # TestFastStateDictRequest: a state soon after one was loaded.
    one.load_state_dict(middle)
    epoch = iter(one)
    next(epoch)
    next(epoch)
    soon = one.state_dict()
    rest = ids(epoch)
    other.load_state_dict(soon)
    assert ids(other) == rest


def test_torchdatas_protocol(loader: Make) -> None:
    need("torchdata")
    from torchdata.stateful_dataloader import Stateful

    assert isinstance(loader(), Stateful)


def test_two_loaders_at_once(loader: Make) -> None:
    # TestConcurrentDataLoaders.
    alone = ids(loader())
    pairs = list(zip(map(lambda b: b.ids.tolist(), loader()), ids(loader()), strict=True))
    assert [a for a, _ in pairs] == [b for _, b in pairs] == alone
