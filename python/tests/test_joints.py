"""Rows of several samples: mosaics and mixed pictures, with the objects of all of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import featherload
from featherload import ConfigError

COUNT = 9
SIDE = 32


def _box(n: int) -> list[int]:
    return [3 + n % 4, 2 + n % 3, 20 + n % 5, 12 + n % 6]


@pytest.fixture(scope="session")
def painted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pictures with a longer side of 32, whose one object has a colour of its own."""
    from PIL import Image

    root = tmp_path_factory.mktemp("joints")
    for n in range(COUNT):
        pixels = np.full((19 + n, SIDE, 3), [0, n, 60], np.uint8)
        left, top, right, bottom = _box(n)
        pixels[top:bottom, left:right] = [255, n, 7]
        Image.fromarray(pixels).save(root / f"{n:02}.png")
    return root


def _loader(root: Path, *ops: Any, **options: Any) -> Any:
    resize: Any = {"resize": {"max_size": SIDE, "rounding": "up"}}
    last: list[Any] = [{"cast": {"dtype": "u8"}}, {"layout": {"layout": "nhwc"}}]
    objects = {
        "files": [{"boxes": [_box(n)], "labels": [n + 1], "ids": [n]} for n in range(COUNT)],
        "style": "ultralytics",
        "min_size": 0,
        "min_visibility": 0,
    }
    options = {"batch_size": 4, "num_workers": 2, "seed": 5, "objects": objects, **options}
    recipe = {"featherload": 1, "ops": [resize, *ops, *last]}
    return featherload.Loader(root, recipe=recipe, **options)


@pytest.mark.parametrize("grid", [2, 3])
def test_boxes_of_a_mosaic_are_where_the_painted_pixels_are(painted: Path, grid: int) -> None:
    mosaic = {"mosaic": {"size": SIDE, "grid": grid}}
    compared, of_partners = 0, 0
    for batch in _loader(painted, mosaic):
        images, objects = np.asarray(batch.images), batch.objects
        assert images.shape[1:] == (2 * SIDE, 2 * SIDE, 3)
        for row, own in enumerate(batch.ids):
            span = slice(objects.offsets[row], objects.offsets[row + 1])
            ids = np.asarray(objects.ids[span])
            boxes = np.asarray(objects.boxes[span])
            assert (np.asarray(objects.labels[span]) == ids + 1).all()
            for number, box in zip(ids, boxes, strict=True):
                is_painted = (images[row] == [255, number, 7]).all(-1)
                # Of two equal pictures the pixels are those of both. Of nine, one may cover
                # another.
                if (ids == number).sum() > 1 or grid == 3:
                    continue
                y, x = np.nonzero(is_painted)
                want = [x.min(), y.min(), x.max() + 1, y.max() + 1]
                np.testing.assert_array_equal(box, want)
                compared += 1
            of_partners += (ids != own).sum()
    assert of_partners > COUNT
    assert compared > COUNT or grid == 3


def test_the_stream_does_not_depend_on_workers(painted: Path) -> None:
    ops = [
        {"mosaic": {"size": SIDE, "p": 0.7}},
        {"random_crop": {"size": SIDE}},
        {"mix_samples": {"p": 0.5}},
        {"cut_samples": {"p": 0.5}},
    ]

    def stream(workers: int) -> list[bytes]:
        rows = []
        for batch in _loader(painted, *ops, num_workers=workers):
            rows.append(np.asarray(batch.images).tobytes())
            rows.append(np.asarray(batch.objects.boxes).tobytes())
        return rows

    one = stream(1)
    assert all(stream(workers) == one for workers in (2, 8))


def test_what_joints_cannot_have_is_an_error(painted: Path) -> None:
    with pytest.raises(ConfigError, match="give `objects`"):
        _loader(
            painted,
            {"mosaic": {"size": SIDE}},
            {"cut_samples": {}},
            objects=None,
        )
    with pytest.raises(ConfigError, match="takes images of at most 16 x 16"):
        _loader(painted, {"mosaic": {"size": 16}})
