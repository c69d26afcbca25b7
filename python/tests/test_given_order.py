"""``Loader(sampler=...)`` with a sampler object: its order, its errors, its ranks, its states."""

from __future__ import annotations

import itertools
import pickle
import random
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import featherload

EVAL = {"ops": [{"resize": {"size": [8, 8]}}]}
Make = Callable[..., featherload.Loader]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """24 images of 8 x 8 pixels."""
    from PIL import Image

    folder = tmp_path_factory.mktemp("given")
    paths = [folder / f"{number:02}.png" for number in range(24)]
    for number, path in enumerate(paths):
        Image.fromarray(np.full((8, 8, 3), number * 10, np.uint8)).save(path)
    return paths


@pytest.fixture
def make(files: list[Path]) -> Iterator[Make]:
    made: list[featherload.Loader] = []

    def one(src: Any = None, batch_size: int = 4, **options: Any) -> featherload.Loader:
        options = {"num_workers": 1, **options}
        made.append(featherload.Loader(files if src is None else src, EVAL, batch_size, **options))
        return made[-1]

    yield one
    for loader in made:
        loader.close()


class Draws:
    """Draws with replacement, other ones in each iteration."""

    def __init__(self, number: int, seed: int = 5) -> None:
        self.number, self.random, self.iterations = number, random.Random(seed), 0

    def __len__(self) -> int:
        return self.number

    def __iter__(self) -> Iterator[int]:
        self.iterations += 1
        return iter([self.random.randrange(24) for _ in range(self.number)])


class Endless:
    def __len__(self) -> int:
        return 8

    def __iter__(self) -> Iterator[int]:
        return itertools.cycle(range(24))


class OfRank:
    """A share of the samples that depends on the epoch."""

    def __init__(self, rank: int, num_replicas: int) -> None:
        self.rank, self.num_replicas, self.epoch = rank, num_replicas, 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __len__(self) -> int:
        return 12

    def __iter__(self) -> Iterator[int]:
        order = [*range(24)]
        random.Random(self.epoch).shuffle(order)
        return iter(order[self.rank :: self.num_replicas])


def flat(loader: Any) -> list[int]:
    return [int(number) for batch in loader for number in batch.ids]


def test_an_epoch_iterates_the_sampler_once(make: Make) -> None:
    sampler = Draws(40)
    loader = make(sampler=sampler)
    again = Draws(40)
    for epoch in range(3):
        assert flat(loader) == [*again]
        assert sampler.iterations == epoch + 1


def test_samplers_that_do_not_keep_their_length_are_refused(make: Make) -> None:
    """One that never ends among them."""
    loader = make(sampler=Endless())
    with pytest.raises(featherload.ConfigError, match="gave at least .* and its length was 8"):
        next(iter(loader))
    order = [0, 1, 2]
    loader = make(sampler=order)
    assert flat(loader) == order
    order.pop()
    with pytest.raises(featherload.ConfigError, match="gave 2 samples, and its length was 3"):
        next(iter(loader))
    order.append(23)
    assert flat(loader) == [0, 1, 23]


def test_an_order_of_many_parts_comes_whole(make: Make) -> None:
    """Longer than the part that is taken at a time, with a mistake near its end."""
    order = [number % 24 for number in range(70_000)]
    loader = make(batch_size=10_000, sampler=order)
    assert flat(loader) == order
    order[69_999] = -7
    with pytest.raises(featherload.ConfigError, match="gave -7 at place 69999"):
        next(iter(loader))


def test_masks_and_broken_iterators_are_refused(make: Make) -> None:
    class Broken(Draws):
        def __iter__(self) -> Iterator[int]:
            raise StopIteration

    for sampler, why in [
        ([True, False], "gave True at place 0: give whole numbers of samples .of a mask"),
        (np.array([True, False]), "at place 0: give whole numbers"),
        ([0, 2**70], "at place 1: give whole numbers"),
        (np.array([0.0, 1.0]), "at place 0: give whole numbers"),
        (Broken(3), "raised StopIteration"),
    ]:
        loader = make(sampler=sampler)
        with pytest.raises(featherload.ConfigError, match=why):
            next(iter(loader))


def test_a_preview_of_a_longer_order_repeats_samples(make: Make) -> None:
    sampler = Draws(40)
    make(sampler=sampler).preview(3)
    assert sampler.iterations == 0


def test_an_error_before_the_first_batch_keeps_the_order(files: list[Path], make: Make) -> None:
    broken = files[0].parent / "broken.png"
    broken.write_bytes(b"not yet")
    sampler = Draws(8)
    want = [*Draws(8)]
    loader = make([broken, *files[1:]], sampler=[0, *want[1:]])
    with pytest.raises(featherload.SampleError):
        next(iter(loader))
    broken.write_bytes(files[0].read_bytes())
    assert flat(loader) == [0, *want[1:]]
    loader = make([files[0].parent / "missing.png"] * 24, sampler=sampler)
    for _ in range(3):
        with pytest.raises(featherload.SampleError):
            next(iter(loader))
    assert sampler.iterations == 1
    broken.unlink()


def test_a_rejected_state_leaves_the_epoch_as_it_is(make: Make) -> None:
    want = [*Draws(24)]
    other = make(sampler=Draws(24, 6), seed=9)
    flat(other)
    next(iter(other))
    state = other.state_dict()
    loader = make(sampler=Draws(24))
    begun = iter(loader)
    seen = [int(number) for number in next(begun).ids]
    saved = loader.state_dict()
    loader.load_state_dict(state)
    with pytest.raises(featherload.ConfigError, match="cannot resume: seed was 9"):
        next(iter(loader))
    loader.load_state_dict(saved)
    assert seen + flat(loader) == want


def test_the_state_of_one_rank_resumes_the_others(make: Make) -> None:
    def loader(rank: int) -> featherload.Loader:
        return make(sampler=OfRank(rank, 2), rank=rank, world_size=2)

    def epoch(rank: int, number: int) -> list[int]:
        sampler = OfRank(rank, 2)
        sampler.set_epoch(number)
        return [*sampler]

    first = loader(0)
    first.set_epoch(3)
    begun = iter(first)
    assert [int(number) for number in next(begun).ids] == epoch(0, 3)[:4]
    state = first.state_dict()
    for rank in (0, 1):
        other = loader(rank)
        other.load_state_dict(state)
        assert flat(other) == epoch(rank, 3)[4:]
    alone = make(sampler=Draws(24))
    alone.load_state_dict(state)
    with pytest.raises(featherload.ConfigError, match="cannot resume"):
        next(iter(alone))


def test_ranks_of_sampler_and_loader_are_compared(make: Make) -> None:
    with pytest.raises(featherload.ConfigError, match="is for rank 1 of 2, and the loader for"):
        make(sampler=OfRank(1, 2), rank=0, world_size=2)
    with pytest.warns(RuntimeWarning, match="Draws names no rank, and each of the 2 ranks"):
        make(sampler=Draws(24), rank=0, world_size=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make(sampler=[*range(0, 24, 2)], rank=0, world_size=2)
        make(sampler=OfRank(1, 2), rank=1, world_size=2)
        make(sampler=Draws(24))


def test_a_plan_counts_the_orders(files: list[Path]) -> None:
    few, many = (
        featherload.plan(files, EVAL, 4, sampler=[0] * number).total_bytes
        for number in (24, 240_000)
    )
    assert 15.9 * 240_000 < many - few < 17 * 240_000


def test_items_say_why_they_do_not_pickle(files: list[Path]) -> None:
    with pytest.raises(TypeError, match="Items cannot be pickled.*make Items of them"):
        pickle.dumps(featherload.Items(files))


def test_an_array_of_paths_is_a_list(files: list[Path], make: Make) -> None:
    assert flat(make(np.array([*map(str, files)]), shuffle=False)) == [*range(24)]
