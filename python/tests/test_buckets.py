"""Aspect-ratio buckets: batches of one size each, and how images were cropped."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import digest
from conftest import png as write_png

import featherload
from featherload import samplers

Make = Callable[..., featherload.Loader]

IMAGES = 37
STYLES: list[Any] = ["sd-scripts", "diffusers", "ai-toolkit", "simpletuner"]


def recipe(place: str = "random", **more: Any) -> dict[str, Any]:
    crop = {"size": 64, "place": place, **more}
    return {"featherload": 1, "ops": [{"cover_crop": crop}, {"cast": {"dtype": "u8"}}]}


def size(number: int) -> tuple[int, int]:
    """Height and width of an image."""
    return 40 + number * 37 % 90, 40 + number * 53 % 110


def pixels(number: int) -> Any:
    """Each pixel of an image has its row and its column as colours."""
    height, width = size(number)
    rows, columns = np.mgrid[0:height, 0:width].astype(np.uint8)
    return np.stack([rows, columns, np.full_like(rows, number)], axis=-1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("shapes")
    for number in range(IMAGES):
        (made / f"{number:02}.png").write_bytes(write_png(pixels(number)))
    return made


def buckets(style: Any = "sd-scripts", **more: Any) -> samplers.Buckets:
    sides = (32, 128) if style == "sd-scripts" and more.get("upscale", True) else None
    return samplers.Buckets(area=64 * 64, step=16, style=style, sides=sides, **more)


@pytest.mark.parametrize("style", STYLES)
def test_rows_have_the_size_of_their_bucket_and_tell_their_crop(
    folder: Path, loader: Make, style: Any
) -> None:
    made = loader(folder, recipe=recipe(), sampler=buckets(style), batch_size=4, layout="nhwc")
    seen: list[int] = []
    shapes = set()
    for batch in made:
        height, width = batch.images.shape[1:3]
        shapes.add((height, width))
        for row, number in enumerate(batch.ids.tolist()):
            assert tuple(batch.original_size[row]) == size(number)
            assert tuple(batch.target_size[row]) == (height, width)
            # The colours of the first pixel are its place in the image.
            scale = np.array(size(number)) / np.array(resized(style, size(number), height, width))
            place = batch.crop[row] * scale
            assert np.abs(batch.images[row][0, 0, :2] - place).max() <= 1.5, (style, number)
        seen += batch.ids.tolist()
    assert sorted(seen) == list(range(IMAGES))
    assert len(shapes) > 2


def resized(style: str, image: tuple[int, int], height: int, width: int) -> tuple[float, float]:
    """The size that just covers a row, without rounding."""
    scale = max(height / image[0], width / image[1])
    return image[0] * scale, image[1] * scale


def test_epochs_do_not_depend_on_workers_and_resume(folder: Path, loader: Make) -> None:
    def make(workers: int) -> featherload.Loader:
        return loader(folder, recipe=recipe(), sampler=buckets(), batch_size=4, num_workers=workers)

    whole = [digest(made) for made in [make(1)] for _ in range(2)]
    again = [digest(made) for made in [make(2)] for _ in range(2)]
    assert whole == again and whole[0] != whole[1]
    first = make(2)
    epoch = iter(first)
    head = [next(epoch).ids.tolist() for _ in range(3)]
    rest = make(1)
    rest.load_state_dict(first.state_dict())
    tail = [batch.ids.tolist() for batch in rest]
    assert head + tail == [batch.ids.tolist() for batch in make(1)]


def test_ranks_share_the_images_of_each_bucket(folder: Path, loader: Make) -> None:
    seen: list[int] = []
    shapes: list[list[Any]] = []
    for rank in range(3):
        made = loader(
            folder, recipe=recipe(), sampler=buckets(), batch_size=2, rank=rank, world_size=3
        )
        shapes.append([])
        samples = 0
        for batch in made:
            before = batch._of_loader.samples_before
            samples += made._stream.samples_of_all_ranks(0, before)
            shapes[-1].append(batch.images.shape)
            seen += batch.ids[~batch.repeated].tolist()
        assert samples == IMAGES
    assert sorted(seen) == list(range(IMAGES))
    assert shapes[0] == shapes[1] == shapes[2]


def test_tails_apply_to_each_bucket(folder: Path, loader: Make) -> None:
    def lengths(**tail: Any) -> list[int]:
        made = loader(folder, recipe=recipe(), sampler=buckets(), batch_size=4, **tail)
        return [len(batch.images) for batch in made]

    assert sum(lengths()) == IMAGES
    assert set(lengths(drop_last=True)) == {4}
    assert set(lengths(pad_last=True)) == {4}
    assert len(lengths(pad_last=True)) == len(lengths()) > len(lengths(drop_last=True))


def test_without_upscale_images_keep_their_size(folder: Path, loader: Make) -> None:
    sampler = samplers.Buckets(area=1 << 20, step=8, upscale=False)
    made = loader(folder, recipe=recipe("center"), sampler=sampler, batch_size=1, layout="nhwc")
    for batch in made:
        (number,) = batch.ids.tolist()
        (top, left), (height, width) = batch.crop[0], batch.target_size[0]
        assert (height, width) == tuple(side // 8 * 8 for side in size(number))
        cut = pixels(number)[top : top + height, left : left + width]
        np.testing.assert_array_equal(batch.images[0], cut)


def test_samplers_have_the_samples_of_the_batches(folder: Path, loader: Make) -> None:
    made = loader(folder, recipe=recipe(), sampler=buckets(), batch_size=4)
    of_batches = list(made.batch_sampler)
    assert sorted(made.sampler) == list(range(IMAGES)) and len(made.sampler) == IMAGES
    assert of_batches == [batch.ids.tolist() for batch in made]
    pair = [
        loader(folder, recipe=recipe(), sampler=buckets(), batch_size=4, rank=rank, world_size=2)
        for rank in range(2)
    ]
    assert set(pair[0].sampler) | set(pair[1].sampler) == set(range(IMAGES))
    assert len(list(pair[0].sampler)) == len(pair[0].sampler) == len(pair[1].sampler)


def test_wrong_buckets_are_refused(folder: Path, loader: Make) -> None:
    def refused(**options: Any) -> str:
        with pytest.raises(featherload.ConfigError) as caught:
            loader(folder, **{"recipe": recipe(), "sampler": buckets(), **options})
        return str(caught.value)

    assert "area 3 must be" in refused(sampler=samplers.Buckets(area=3))
    assert "sides are of style sd-scripts" in refused(
        sampler=samplers.Buckets(style="diffusers", sides=(1, 2))
    )
    assert "unknown variant" in refused(sampler=samplers.Buckets(style="kohya"))  # type: ignore[arg-type]
    assert "cover_crop" in refused(recipe="full")
    assert "multi_scale" in refused(multi_scale=[64, 96])
    with pytest.raises(AttributeError, match="samplers.Buckets"):
        _ = next(iter(loader(folder, recipe=recipe()))).crop
