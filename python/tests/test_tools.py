"""The command line's tools as functions."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import featherload
from featherload import cache, recipes
from featherload._flags import flags

Make = Callable[..., featherload.Loader]


def test_plan_says_what_the_loader_takes(loader: Make, photos: Path) -> None:
    planned = featherload.plan(photos, batch_size=32, num_workers=2)
    one = loader()
    assert sum(1 for _ in one) == 8
    assert planned.batches == len(one)
    assert planned["memory"]["ring_bytes"] == one.stats()["ring_bytes"]
    assert "all processes" in str(planned) and "<table>" in planned._repr_html_()
    recipe = {"ops": [{"resize": {"size": [64, 64]}}]}
    assert featherload.plan(photos, recipe).total_bytes < planned.total_bytes
    assert featherload.plan(recipe=recipes.create_transform(96))["memory"]["batch"] == 256
    assert "all processes" in str(featherload.plan())
    with pytest.raises(featherload.DatasetError, match="nowhere") as failed:
        featherload.plan("/nowhere")
    assert failed.value.path == "/nowhere"
    assert featherload.plan(photos, then=len, batch_size=32).batches == planned.batches
    with pytest.raises(featherload.ConfigError, match="then"):
        featherload.plan(photos, then=3)
    with pytest.raises(TypeError, match="batchsize"):
        featherload.plan(photos, batchsize=3)


def test_a_number_is_a_size_in_bytes(photos: Path) -> None:
    with pytest.raises(featherload.ConfigError, match="allows 1000 bytes"):
        featherload.plan(photos, memory_limit=1000)


@pytest.mark.parametrize(
    "options",
    [
        {"rank": 1, "world_size": 2},
        {"memory_limit": "2G"},
        {"sampler": featherload.samplers.Weighted(num_samples=100)},
        {"multi_scale": [64, (96, 128)]},
        {"drop_last": True, "epochs": 3, "hold_timeout": 1.0},
        {"dtype": "uint8", "recipe": {"ops": [{"resize": {"size": [64, 64]}}]}},
    ],
)
def test_plan_is_the_loaders(loader: Make, photos: Path, options: dict[str, Any]) -> None:
    planned = featherload.plan(photos, num_workers=2, batch_size=32, **options)
    one = loader(**options)
    assert planned.batches == len(one)
    assert planned["memory"]["depth"] == one._stream.held()[1]
    assert planned["memory"]["ring_bytes"] == one.stats()["ring_bytes"]
    own = one.plan()
    assert own["memory"] == planned["memory"] and own.batches == planned.batches


@pytest.mark.parametrize(
    "options",
    [
        {"framework": "nonsense"},
        {"framework": "numpy", "device": "cuda"},
        {"targets": "nonsense"},
        {"targets": "list"},
        {"objects": "{stem}.txt", "targets": "nonsense"},
        {"images": False, "then": len},
        {"num_workers": 0},
    ],
)
def test_plan_refuses_what_the_loader_refuses(photos: Path, options: dict[str, Any]) -> None:
    options = {"num_workers": 1, **options}
    with pytest.raises(featherload.Error) as of_loader:
        featherload.Loader(photos, **options)
    with pytest.raises(featherload.Error) as of_plan:
        featherload.plan(photos, **options)
    assert str(of_plan.value) == str(of_loader.value)
    assert type(of_plan.value) is type(of_loader.value)


def test_a_loader_has_its_plan(loader: Make, photos: Path) -> None:
    listed = [photo.read_bytes() for photo in sorted(photos.glob("*/*.jpg"))[:40]]
    one = loader(featherload.Items(images=listed), objects=[None] * 40, targets="list")
    assert one.plan()["samples"] == 40
    assert one.plan()["memory"]["ring_bytes"] == one.stats()["ring_bytes"]
    assert sum(1 for _ in one) == len(one)


def test_tools_raise_what_a_loader_does(tmp_path: Path) -> None:
    for call in (
        lambda: featherload.index("/nowhere"),
        lambda: featherload.rss("/nowhere", num_workers=(1,)),
        lambda: cache.build("/nowhere", tmp_path / "c", progress=False),
    ):
        with pytest.raises(featherload.DatasetError, match="/nowhere: no such file") as failed:
            call()
        assert failed.value.path == "/nowhere"
    odd = tmp_path / os.fsdecode(b"\xff")
    with pytest.raises(featherload.DatasetError, match="no such file"):
        featherload.index(odd)
    with pytest.raises(featherload.ConfigError, match="for 'labels'"):
        featherload.index(tmp_path, labels="some")


def test_index_and_doctor(photos: Path) -> None:
    found = featherload.index(photos)
    assert (found.samples, found.classes) == (256, 8) and "256 jpeg" in str(found)
    assert featherload.index(photos, labels="none").classes == 0
    checked = featherload.doctor(photos)
    assert checked.ok and "memfd_create" in str(checked)


def test_an_index_without_a_readable_file_prints(tmp_path: Path) -> None:
    (tmp_path / "bad.jpg").write_bytes(b"\xff\xd8\xff\xe0none")
    assert "unreadable  1" in str(featherload.index(tmp_path))


def test_an_index_prints_objects(photos: Path, tmp_path: Path) -> None:
    names = [photo.relative_to(photos).as_posix() for photo in sorted(photos.glob("*/*.jpg"))]
    annotations = [
        {"id": n, "image_id": n // 2, "category_id": 1 + n % 2, "bbox": [5, 5, 20, 20], "area": 400}
        for n in range(256)
    ]
    coco = {
        "images": [
            {"id": n, "file_name": name, "height": 500, "width": 500}
            for n, name in enumerate(names)
        ],
        "annotations": [{**one, "iscrowd": 0} for one in annotations],
        "categories": [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}],
    }
    (tmp_path / "coco.json").write_text(json.dumps(coco))
    file = tmp_path / "coco.json"
    for objects in (file, {"files": file, "style": "albumentations"}, {"files": str(file)}):
        found = str(featherload.index(photos, objects=objects))
        assert "objects          256: 128 cat, 128 dog" in found
        assert "without objects  128 images" in found


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"objects": [{"boxes": []}]}, r"objects \[.*\] is a list, which only Loader takes"),
        ({"objects": {"files": [{}]}}, "objects .* is a list, .* give a COCO file, a pattern"),
        ({"objects": {"files": "a.json", "names": print}}, "objects .* is of type dict"),
        ({"masks": ["a.png"]}, "masks .* is a list, .* a pattern such as '../masks/{stem}.png'"),
        ({"rasters": {"depth": [b"some"]}}, "rasters .* is a list, .* '../depth/{stem}.png'"),
        ({"labels": [0, 1]}, "labels .* is a list, .* give 'auto' or 'none'"),
        ({"sampler": featherload.samplers.Weighted()}, "sampler .* is of type Weighted"),
        ({"then": print}, "then .* is a function, which only Loader takes"),
        ({"columns": "score"}, "columns is 'score': give a list of names"),
        ({"batch_size": {}}, "batch_size {} is of type dict: give a text or a number"),
        ({"row_limit": float("nan")}, "row_limit nan is not a finite number"),
    ],
)
def test_values_that_only_a_loader_takes(photos: Path, options: dict[str, Any], match: str) -> None:
    (name,) = options
    calls: list[Callable[[], Any]] = [
        lambda: featherload.index(photos, **options),
        lambda: featherload.rss(photos, num_workers=(1,), **options),
        lambda: cache.build(photos, photos / "none", progress=False, **options),
    ]
    for call in calls:
        with pytest.raises(featherload.ConfigError, match=match) as failed:
            call()
        assert failed.value.option == name
    assert not (photos / "none").exists()


def test_keywords_as_flags() -> None:
    rule = featherload.Captions("text", drop=0.5, map=print)
    assert flags({"columns": ["a", "b"], "allow_outside": True, "images": False}) == [
        *("--columns=a,b", "--allow-outside", "--no-images")
    ]
    assert flags({"multi_scale": [64, (96, 128)], "shuffle": True, "images": True}) == [
        "--multi-scale=64x64,96x128"
    ]
    assert flags({"find_masks": False, "strict": False, "objects": None, "columns": []}) == [
        "--find-masks=false"
    ]
    (captions,) = flags({"captions": rule})
    assert json.loads(captions.removeprefix("--captions="))["drop"] == 0.5
    masks = {"files": Path("../masks/{stem}.png"), "ignore": 255}
    (text,) = flags({"masks": masks})
    assert json.loads(text.removeprefix("--masks=")) == {**masks, "files": "../masks/{stem}.png"}
    depth = {"files": "../depth/{stem}.png", "missing": float("nan")}
    both = flags({"rasters": {"depth": depth, "flow": Path("../flow/{stem}.flo")}})
    assert both[1] == "--raster=flow=../flow/{stem}.flo" and '"missing": "nan"' in both[0]


def test_the_package_is_a_program() -> None:
    program = [sys.executable, "-m", "featherload", "--version"]
    assert subprocess.run(program, capture_output=True, check=True).stdout.startswith(
        b"featherload"
    )


@pytest.mark.alone
def test_rss(photos: Path) -> None:
    with pytest.raises(featherload.ConfigError, match="num_workers 0 is too small"):
        featherload.rss(photos, num_workers=0)
    measured = featherload.rss(photos, num_workers=(1, 2), seconds=1)
    assert len(measured["rows"]) == 2 and measured.slope_mib_per_worker < 20
    assert str(measured).count("\n") == 2


def test_a_cache(loader: Make, photos: Path, tmp_path: Path) -> None:
    built = cache.build(photos, tmp_path / "c", shuffle=3, num_workers=1)
    assert built.ok and built["samples"] == 256
    assert cache.info(tmp_path / "c")["shuffle"] == 3
    assert cache.verify(tmp_path / "c").ok
    assert len(loader(tmp_path / "c").dataset) == 256
    shard = next((tmp_path / "c").glob("*.tar"))
    data = bytearray(shard.read_bytes())
    data[5000] ^= 1
    shard.write_bytes(data)
    damaged = cache.verify(tmp_path / "c")
    assert not damaged.ok and damaged["findings"]
