"""Masks of patches for iBOT: DINOv2's algorithm, drawn by position."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from conftest import kill_one, need

import featherload
from featherload import ConfigError
from featherload.masks import IbotMasks, PatchMasks

Make = Callable[..., featherload.Loader]
Flags = npt.NDArray[np.bool_]
SIDE, ROWS = 16, 32


def oracle_mask(side: int, wanted: int, numbers: random.Random, complete: bool) -> list[list[bool]]:
    """DINOv2's definition: rectangles of random area and shape, each with at least one new patch
    and not more new patches than are missing; ten attempts for each.
    """
    most_ever = 0.5 * side * side
    taken = [[False] * side for _ in range(side)]
    missing = wanted
    while missing > 0:
        most = min(missing, most_ever)
        for _ in range(10):
            area = numbers.uniform(4, most)
            aspect = math.exp(numbers.uniform(math.log(0.3), math.log(1 / 0.3)))
            height, width = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
            if width >= side or height >= side:
                continue
            top, left = numbers.randint(0, side - height), numbers.randint(0, side - width)
            places = [(y, x) for y in range(top, top + height) for x in range(left, left + width)]
            new = [(y, x) for y, x in places if not taken[y][x]]
            if 0 < len(new) <= most:
                for y, x in new:
                    taken[y][x] = True
                missing -= len(new)
                break
        else:
            break
    if complete:
        free = [(y, x) for y in range(side) for x in range(side) if not taken[y][x]]
        for y, x in numbers.sample(free, missing):
            taken[y][x] = True
    return taken


def oracle_batch(numbers: random.Random, complete: bool = False) -> Flags:
    """The masks of a batch as DINOv2 collates them."""
    masked = ROWS // 2
    bounds = np.linspace(0.1, 0.5, masked + 1)
    all_masks = []
    for i in range(masked):
        wanted = int(SIDE * SIDE * numbers.uniform(bounds[i], bounds[i + 1]))
        all_masks.append(oracle_mask(SIDE, wanted, numbers, complete))
    all_masks += [oracle_mask(SIDE, 0, numbers, complete) for _ in range(ROWS - masked)]
    numbers.shuffle(all_masks)
    return np.array(all_masks)


def figures(masks: Flags) -> list[list[float]]:
    """Numbers of each crop that would be others if rectangles had other sizes or places."""
    masks = masks.reshape(-1, SIDE, SIDE)
    masks = masks[masks.any(axis=(1, 2))]
    edge = np.ones((SIDE, SIDE), dtype=bool)
    edge[2:-2, 2:-2] = False
    runs = [
        [float((mask[:, 1:] & ~mask[:, :-1]).sum()) for mask in masks],
        [float((mask[1:] & ~mask[:-1]).sum()) for mask in masks],
    ]
    return [
        [float(mask.sum()) for mask in masks],
        [float((mask & edge).sum()) for mask in masks],
        *runs,
        [float(mask.any(axis=0).sum()) for mask in masks],
        [float(mask.any(axis=1).sum()) for mask in masks],
        [float(mask[SIDE // 2, SIDE // 2]) for mask in masks],
    ]


@pytest.mark.parametrize("complete", [False, True])
def test_masks_are_distributed_as_those_of_dinov2(complete: bool) -> None:
    numbers = random.Random(5)
    ibot = IbotMasks(SIDE, complete=complete)
    theirs = np.concatenate([oracle_batch(numbers, complete) for _ in range(120)])
    ours = np.concatenate([ibot.draw(0, n, ROWS).masks for n in range(120)])
    for a, b in zip(figures(theirs), figures(ours), strict=True):
        error = math.hypot(np.std(a) / math.sqrt(len(a)), np.std(b) / math.sqrt(len(b)))
        assert abs(np.mean(a) - np.mean(b)) < 4 * error
        assert abs(np.std(a) / np.std(b) - 1) < 0.1
    # Which crops are masked is random, too.
    places = ours.reshape(120, ROWS, -1).any(axis=2).mean(axis=0)
    assert np.all(np.abs(places - 0.5) < 4 * 0.5 / math.sqrt(120))


def check(drawn: PatchMasks, rows: int, patches: int) -> None:
    masks = np.asarray(drawn.masks)
    assert masks.shape == (rows, patches) and masks.dtype == bool
    assert np.array_equal(np.asarray(drawn.indices), np.flatnonzero(masks))
    assert drawn.count == masks.sum() <= drawn.upper_bound
    weights = np.asarray(drawn.weights)
    assert weights.dtype == np.float32 and len(weights) == drawn.count
    masked = np.count_nonzero(masks.any(axis=1))
    # The weights of a crop sum to 1.
    assert weights.sum() == pytest.approx(masked, rel=1e-5)
    for crop, place in enumerate(np.cumsum(masks.sum(axis=1))):
        own = masks[crop].sum()
        assert np.all(weights[place - own : place] == np.float32(1) / np.float32(max(own, 1)))


@pytest.mark.parametrize("rows", [1, 2, 7, 64])
@pytest.mark.parametrize("patches", [(1, 1), (2, 3), (7, 7), (16, 16), (14, 32)])
@pytest.mark.parametrize("probability", [0.0, 0.3, 1.0])
def test_masks_indices_weights_and_the_bound_fit_each_other(
    rows: int, patches: tuple[int, int], probability: float
) -> None:
    all_patches = patches[0] * patches[1]
    for complete in (False, True):
        ibot = IbotMasks(patches, probability=probability, complete=complete)
        bounds = {ibot.draw(epoch, 3, rows).upper_bound for epoch in range(4)}
        # Equal for batches of one size.
        assert len(bounds) == 1
        for epoch in range(4):
            drawn = ibot.draw(epoch, 3, rows)
            check(drawn, rows, all_patches)
            assert np.count_nonzero(drawn.masks.any(axis=1)) <= int(rows * probability)


def test_a_completed_mask_has_the_patches_of_its_ratio() -> None:
    ibot = IbotMasks(16, ratio=(0.25, 0.25), probability=1.0, complete=True)
    assert {int(n) for n in ibot.draw(1, 2, 20).masks.sum(axis=1)} == {64}
    without = IbotMasks(16, ratio=(0.25, 0.25), probability=1.0)
    assert {int(n) for n in without.draw(1, 2, 20).masks.sum(axis=1)} <= set(range(65))
    everything = IbotMasks(4, ratio=(1.0, 1.0), probability=1.0, complete=True)
    assert everything.draw(0, 0, 5).masks.all()


def test_the_bound_is_that_of_dinov2() -> None:
    """Each term may be one less or more, since DINOv2 spreads ratios in single precision."""
    need("torch")
    import torch

    for rows in (2, 8, 64, 128, 1024):
        masked = rows // 2
        ratios = torch.linspace(0.1, 0.5, masked + 1)
        wanted = sum(int(256 * ratios[i + 1]) for i in range(masked))
        assert abs(IbotMasks(16).draw(0, 0, rows).upper_bound - wanted) <= 2


def test_position_seed_and_samples_decide() -> None:
    def masks(epoch: int, number: int, seed: int = 0, ids: bytes = b"") -> bytes:
        drawn = IbotMasks(8, seed=seed).draw(epoch, number, 8, ids)
        return bytes(drawn.masks.tobytes())

    assert masks(1, 2) == masks(1, 2)
    others = [masks(0, 2), masks(1, 3), masks(2, 1), masks(1, 2, seed=1), masks(1, 2, ids=b"1")]
    assert len({masks(1, 2), *others}) == 6


def test_the_masks_of_a_version_are_those_of_the_next() -> None:
    """Python and NumPy may change. The masks of a run must not."""
    drawn = IbotMasks(6, probability=1.0, seed=7).draw(3, 5, 3)
    lines = ["".join(".#"[int(patch)] for patch in crop) for crop in drawn.masks]
    assert lines == GOLDEN


GOLDEN = [
    ".......#.....#.....#.....#.##.......",
    "............#########...###...###...",
    ".........#....###...###....###...###",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("masks")
    (root / "class").mkdir()
    noise = np.random.default_rng(4)
    for number in range(11):
        # A PPM file is a line of text, and the pixels.
        pixels = noise.integers(0, 256, (40, 50, 3), dtype=np.uint8)
        (root / "class" / f"{number:02}.ppm").write_bytes(b"P6 50 40 255\n" + pixels.tobytes())
    return root


def recipe(size: int) -> dict[str, Any]:
    return {"name": "", "ops": [{"random_resized_crop": {"size": size}}]}


RECIPE = [recipe(32), recipe(32), (recipe(16), 2)]


def test_masks_are_the_same_for_any_workers_after_a_kill_and_after_a_resume(
    loader: Make, folder: Path
) -> None:
    ibot = IbotMasks(4, seed=3)

    def make(workers: int) -> featherload.Loader:
        return loader(folder, recipe=RECIPE, batch_size=3, num_workers=workers)

    def stream(made: featherload.Loader) -> list[bytes]:
        return [ibot(batch).masks.tobytes() for _ in range(2) for batch in made]

    want = stream(make(1))
    assert len(set(want)) == len(want) == 8
    assert stream(make(3)) == want
    killed, got = make(2), []
    for batch in killed:
        got.append(ibot(batch).masks.tobytes())
        kill_one(lambda: list(killed.stats()["workers"]))
    assert got == want[:4]
    first = make(1)
    assert ibot(next(iter(first))).masks.tobytes() == want[0]
    resumed = make(2)
    resumed.load_state_dict(first.state_dict())
    assert stream(resumed) == want[1:]


def test_the_arrays_are_those_of_the_images(loader: Make, folder: Path) -> None:
    batch = next(iter(loader(folder, recipe=RECIPE, batch_size=4)))
    drawn = IbotMasks(4)(batch)
    assert isinstance(drawn.masks, np.ndarray)
    check(drawn, 8, 16)
    check(IbotMasks(4)(batch, crops=4), 16, 16)
    need("torch")
    import torch

    tensors = next(iter(loader(folder, recipe=RECIPE, batch_size=4, framework="torch")))
    of_torch = IbotMasks(4)(tensors)
    assert torch.equal(of_torch.masks, torch.from_numpy(drawn.masks))
    assert of_torch.indices.dtype == torch.int64 and of_torch.weights.dtype == torch.float32
    assert torch.equal(of_torch.indices, of_torch.masks.flatten().nonzero().flatten())
    check(of_torch, 8, 16)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"patches": (4, 4, 4)}, "give one number, or two"),
        ({"patches": 0}, "at least 1"),
        ({"patches": 4, "ratio": 0.5}, "ratio is 0.5: give two numbers"),
        ({"patches": 4, "ratio": (0.5, 0.1)}, "the smaller number first"),
        ({"patches": 4, "ratio": (0.5, 1.5)}, "ratio is 1.5: use 0 to 1"),
        ({"patches": 4, "probability": -1}, "probability is -1: use 0 to 1"),
        ({"patches": 4, "probability": float("nan")}, "probability is nan"),
        ({"patches": 4, "min_patches": "4"}, "min_patches is '4': give a number"),
        ({"patches": 4, "max_aspect": 0}, "max_aspect is 0: use 0.001"),
        ({"patches": 4, "seed": -1}, "seed -1 is too small"),
    ],
)
def test_mistakes_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        IbotMasks(**options)


def test_what_has_no_crops_for_masks_is_an_error(loader: Make, folder: Path) -> None:
    batch = next(iter(loader(folder, recipe=RECIPE, batch_size=4)))
    with pytest.raises(ConfigError, match="crops is 5, and the samples of this batch have 4"):
        IbotMasks(4)(batch, crops=5)
    whole = next(iter(loader(folder, recipe="full", batch_size=4)))
    with pytest.raises(ConfigError, match="different sizes"):
        IbotMasks(4)(whole)


def test_ranks_have_different_masks(loader: Make, folder: Path) -> None:
    ranks = [
        IbotMasks(4, probability=1.0)(
            next(iter(loader(folder, recipe=RECIPE, batch_size=4, rank=rank, world_size=2)))
        )
        for rank in range(2)
    ]
    assert not np.array_equal(ranks[0].masks, ranks[1].masks)


def test_the_largest_rectangle_and_aspects_are_those_of_dinov2() -> None:
    """``0.5 * size // patch * size // patch`` for the sizes of DINOv2's configurations."""
    for size, patch in ((224, 16), (224, 14), (518, 14), (256, 16)):
        side = size // patch
        assert IbotMasks(side).max_patches == 0.5 * size // patch * size // patch
    # DINOv2 takes 1 / min_aspect, also where it is the smaller one.
    assert IbotMasks(8, min_aspect=2.0).max_aspect == 0.5
    check(IbotMasks(8, min_aspect=2.0).draw(0, 0, 6), 6, 64)
