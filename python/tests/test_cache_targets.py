"""Caches that keep objects and masks: batches are those of the folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import need

import featherload
from featherload import ConfigError, DatasetError, Error

RECIPE = {"ops": [{"resize": {"size": [24, 16]}}, "random_horizontal_flip"]}
COUNT = 12


@pytest.fixture(scope="module", autouse=True)
def installed() -> None:
    need("PIL")


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from PIL import Image

    folder = tmp_path_factory.mktemp("scene")
    (folder / "images").mkdir()
    (folder / "masks").mkdir()
    images, annotations = [], []
    for n in range(COUNT):
        size = (20 + n, 30 - n)
        levels = np.arange(size[0] * size[1], dtype=np.uint8).reshape(size[1], size[0])
        Image.fromarray(levels).convert("RGB").save(folder / f"images/{n:02}.png")
        Image.fromarray(levels // 9).save(folder / f"masks/{n:02}.png")
        images.append({"id": n, "file_name": f"{n:02}.png", "width": size[0], "height": size[1]})
        annotations += [
            {
                "id": 10 * n + k,
                "image_id": n,
                "category_id": 3 + k,
                "bbox": [k + 0.1 * n, 2.5, 6, 7],
                "segmentation": [[1, 1, 8, 1, 8, 9]],
            }
            for k in range(n % 3)
        ]
    categories = [{"id": 3, "name": "cat"}, {"id": 4, "name": "dog"}]
    file = {"images": images, "annotations": annotations, "categories": categories}
    (folder / "coco.json").write_text(json.dumps(file))
    objects = {"files": str(folder / "coco.json"), "masks": "full", "min_size": 0}
    featherload.cache.build(
        folder / "images",
        folder / "cache",
        objects=objects,
        masks={"files": "../masks/{stem}.png", "ignore": 255},
        num_workers=1,
        progress=False,
    )
    return folder


def _batches(source: Path, **options: Any) -> list[Any]:
    loader = featherload.Loader(source, RECIPE, batch_size=5, num_workers=1, seed=3, **options)
    with loader:
        return [
            (
                batch.images.copy(),
                None if batch.masks is None else batch.masks.copy(),
                [
                    {name: np.array(value) for name, value in one.items()}
                    for one in batch.objects.as_list()
                ],
            )
            for batch in loader
        ]


def test_batches_are_those_of_the_folder(scene: Path) -> None:
    files = {"files": str(scene / "coco.json"), "masks": "full", "min_size": 0}
    masks = {"files": "../masks/{stem}.png", "ignore": 255}
    want = _batches(scene / "images", objects=files, masks=masks)
    got = _batches(scene / "cache", objects={"files": "cache", "masks": "full"}, masks="cache")
    assert len(got) == len(want) == 3
    for (a, b, c), (x, y, z) in zip(got, want, strict=True):
        assert np.array_equal(a, x) and np.array_equal(b, y)
        assert len(c) == len(z)
        for one, other in zip(c, z, strict=True):
            assert one.keys() == other.keys()
            assert all(np.array_equal(one[name], other[name]) for name in one)


def test_targets_alone_take_the_objects_of_a_cache(scene: Path) -> None:
    planned = featherload.plan(scene / "cache", RECIPE, 5, num_workers=1, targets="list")
    with featherload.Loader(scene / "cache", RECIPE, 5, num_workers=1, targets="list") as loader:
        assert planned["memory"] == loader.plan()["memory"]
        assert planned["object_bytes"] == loader.plan()["object_bytes"] > 0
        assert loader.categories == [(3, "cat"), (4, "dog")]
        _, targets = next(iter(loader))
        assert targets[0].keys() >= {"boxes", "labels"}
    with pytest.raises(Error, match="in no cache"):
        featherload.Loader(scene / "images", RECIPE, num_workers=1, targets="list")


def test_reports_name_them(scene: Path) -> None:
    info = featherload.cache.info(scene / "cache")
    assert info["objects"]["rule"] == {"min_size": 0.0}
    assert info["objects"]["objects"] == sum(n % 3 for n in range(COUNT))
    assert info["masks"] == {"ignore": 255}
    assert featherload.cache.verify(scene / "cache").ok


def test_lists_and_other_annotations_are_refused(scene: Path) -> None:
    with pytest.raises(ConfigError, match="is a list, which only Loader takes"):
        featherload.cache.build(scene / "images", scene / "other", objects=[{}])  # type: ignore[arg-type]
    with pytest.raises(DatasetError, match="objects was"):
        featherload.cache.build(scene / "images", scene / "cache", progress=False)
