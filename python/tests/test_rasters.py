"""Rasters of images: values that follow from the place of each pixel, and errors of the keyword."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import featherload
from featherload import ConfigError

COUNT, HEIGHT, WIDTH = 12, 30, 40


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Images whose pixels are column, row and number; depths and flows with the same numbers."""
    from PIL import Image

    root = tmp_path_factory.mktemp("rasters")
    for name in ("images", "depth", "flow", "right", "large"):
        (root / name).mkdir()
    for n in range(COUNT):
        pixels = _places(HEIGHT, WIDTH, n)
        Image.fromarray(pixels).save(root / "images" / f"{n:02}.png")
        Image.fromarray(_places(HEIGHT, WIDTH, 100 + n)).save(root / "right" / f"{n:02}.png")
        large = pixels.repeat(2, axis=0).repeat(2, axis=1)
        Image.fromarray(large).save(root / "large" / f"{n:02}.png")
        Image.fromarray(_depth()).save(root / "depth" / f"{n:02}.png")
        np.save(root / "flow" / f"{n:02}.npy", pixels[..., :2].astype(np.float32))
    return root


def _places(height: int, width: int, n: int) -> Any:
    y, x = np.indices((height, width))
    return np.stack([x, y, np.full_like(x, n)], axis=-1).astype(np.uint8)


def _depth() -> Any:
    """Ten times 1 + column + 64 x row. The first row is missing."""
    y, x = np.indices((HEIGHT, WIDTH))
    return np.where(y == 0, 0, 10 * (1 + x + 64 * y)).astype(np.uint16)


def _recipe(*ops: Any) -> dict[str, Any]:
    return {"featherload": 1, "ops": [*ops, {"cast": {"dtype": "u8"}}]}


CROP = {"center_crop": {"size": [HEIGHT, 20]}}
FLIP = {"random_horizontal_flip": {"p": 1.0}}


def _batches(root: Path, recipe: Any, rasters: Any, **options: Any) -> list[Any]:
    options = {"batch_size": 4, "num_workers": 2, "shuffle": False, **options}
    loader = featherload.Loader(root / "images", recipe, rasters=rasters, **options)
    with loader:
        return [
            {name: np.array(raster) for name, raster in batch.rasters.items()}
            | {"images": np.array(batch.images)}
            for batch in loader
        ]


def test_depths_and_flows_follow_crops_and_flips(scene: Path) -> None:
    rasters = {
        "depth": {"files": "../depth/{stem}.png", "divide": 10, "fill": float("nan")},
        "flow": "../flow/{stem}.npy",
    }
    batches = _batches(scene, _recipe(CROP, FLIP), rasters)
    assert len(batches) == COUNT // 4
    for batch in batches:
        assert batch["depth"].shape == (4, 1, HEIGHT, 20)
        assert batch["depth"].dtype == np.float32
        assert batch["flow"].shape == (4, 2, HEIGHT, 20)
        x, y = batch["images"][:, 0].astype(float), batch["images"][:, 1].astype(float)
        want = np.where(y == 0, np.nan, 1 + x + 64 * y)
        np.testing.assert_array_equal(batch["depth"][:, 0], want)
        np.testing.assert_array_equal(batch["flow"][:, 0], -x)
        np.testing.assert_array_equal(batch["flow"][:, 1], y)


def test_a_resize_scales_flows_and_not_depths(scene: Path) -> None:
    rasters = {"depth": "../depth/{stem}.png", "flow": "../flow/{stem}.npy"}
    recipe = _recipe({"resize": {"size": [HEIGHT // 2, WIDTH * 2]}})
    for batch in _batches(scene, recipe, rasters):
        y, x = np.indices((HEIGHT // 2, WIDTH * 2))
        x, y = x // 2, y * 2
        depth = _depth()[y, x]
        np.testing.assert_array_equal(batch["depth"], np.broadcast_to(depth, (4, 1, *y.shape)))
        np.testing.assert_array_equal(batch["flow"][0], np.stack([2 * x, y / 2]))


def test_pairs_move_with_their_images(scene: Path) -> None:
    rasters = {
        "right": {"files": "../right/{name}", "kind": "image"},
        "large": {"files": "../large/{name}", "kind": "image", "scale": 2},
    }
    recipe = _recipe({"random_crop": {"size": 16}}, {"random_horizontal_flip": {}})
    for batch in _batches(scene, recipe, rasters, seed=3):
        images, right, large = batch["images"], batch["right"], batch["large"]
        np.testing.assert_array_equal(right[:, :2], images[:, :2])
        np.testing.assert_array_equal(right[:, 2], images[:, 2] + 100)
        np.testing.assert_array_equal(large, images.repeat(2, axis=2).repeat(2, axis=3))


def test_arrays_and_paths_are_listed(scene: Path) -> None:
    paths = sorted((scene / "depth").glob("*.png"))
    listed = {"depth": paths, "array": {"files": [_depth()] * COUNT, "kind": "depth"}}
    pattern = {"depth": "../depth/{stem}.png"}
    of_lists = _batches(scene, _recipe(CROP), listed)
    for got, want in zip(of_lists, _batches(scene, _recipe(CROP), pattern), strict=True):
        np.testing.assert_array_equal(got["depth"], want["depth"])
        np.testing.assert_array_equal(got["array"], want["depth"])


@pytest.mark.parametrize("workers", [0, 1])
def test_the_stream_does_not_depend_on_workers(scene: Path, workers: int) -> None:
    rasters = {"depth": {"files": "../depth/{stem}.png", "filter": "bilinear"}}
    recipe = _recipe({"random_resized_crop": {"size": 24}}, {"random_horizontal_flip": {}})
    options = {"shuffle": True, "seed": 5}
    want = _batches(scene, recipe, rasters, **options)
    got = _batches(scene, recipe, rasters, **options, num_workers=workers)
    for one, other in zip(got, want, strict=True):
        np.testing.assert_array_equal(one["depth"], other["depth"])


def test_a_batch_without_rasters_says_so(scene: Path) -> None:
    loader = featherload.Loader(scene / "images", _recipe(CROP), batch_size=4, num_workers=0)
    with loader, pytest.raises(AttributeError, match="give the loader rasters"):
        _ = next(iter(loader)).rasters


@pytest.mark.parametrize(
    ("rasters", "message"),
    [
        ("../depth/{stem}.png", "rasters is no dict"),
        ({"far": "../depth/{stem}.png"}, "it has no kind"),
        ({"depth": {"files": "../depth/{stem}.png", "divide": 0}}, "`divide` is 0"),
        ({"depth": {"files": "../depth/{stem}.png", "scale": 2}}, "unknown field `scale`"),
        ({"masks": {"files": "../depth/{stem}.png", "kind": "mask"}}, "another name"),
    ],
)
def test_wrong_rasters_are_named(scene: Path, rasters: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        featherload.Loader(scene / "images", _recipe(CROP), batch_size=4, rasters=rasters)


def test_plan_counts_rasters(scene: Path) -> None:
    options: dict[str, Any] = {"recipe": _recipe(CROP), "batch_size": 4, "num_workers": 0}
    plain = featherload.plan(scene / "images", **options)
    rasters = {"flow": "../flow/{stem}.npy"}
    counted = featherload.plan(scene / "images", rasters=rasters, **options)
    assert counted.total_bytes > plain.total_bytes
