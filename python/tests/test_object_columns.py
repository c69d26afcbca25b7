"""Objects in columns, in JSON of tars and in files of other layouts, beside readers of Python."""

from __future__ import annotations

import csv
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import need

import featherload
from featherload import ConfigError, DatasetError

WIDTH, HEIGHT, COUNT = 64, 48, 10
RECIPE = {"ops": [{"resize": {"size": [HEIGHT, WIDTH]}}]}
NAMES = ["ant", "bee", "cat"]


def _png(n: int) -> bytes:
    from PIL import Image

    pixels = np.random.default_rng(n).integers(0, 256, (HEIGHT, WIDTH, 3), np.uint8)
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "PNG")
    return out.getvalue()


def _objects(n: int) -> dict[str, list[Any]]:
    """The objects of image ``n``: none in each fifth. Boxes are left, top, width, height."""
    random = np.random.default_rng(100 + n)
    count = 0 if n % 5 == 0 else 1 + n % 3
    corners = random.integers(0, 30, (count, 2))
    sides = random.integers(2, 18, (count, 2))
    return {
        "bbox": np.concatenate([corners, sides], 1).astype(float).tolist(),
        "category": random.integers(0, 3, count).tolist(),
        "id": (1000 * n + np.arange(count)).tolist(),
        "area": random.integers(1, 90, count).astype(float).tolist(),
        "iscrowd": [False] * count,
    }


def _check(loader: Any, order: list[int], areas: bool = True, ids: bool = True) -> None:
    """Compares the targets of a loader with the objects of these images."""
    seen = []
    with loader:
        for _, targets in loader:
            seen += targets
    assert len(seen) == len(order)
    for target, n in zip(seen, order, strict=True):
        want = _objects(n)
        sides = np.array(want["bbox"], np.float32).reshape(-1, 4)
        sides[:, 2:] += sides[:, :2]
        np.testing.assert_array_equal(target["boxes"], sides)
        assert target["labels"].tolist() == want["category"]
        if areas:
            assert target["area"].tolist() == want["area"]
        if ids:
            assert target["image_id"] == 500 + n


def _loader(src: Any, objects: Any, **options: Any) -> Any:
    options = {"batch_size": 4, "num_workers": 1, "shuffle": False, "drop_last": False, **options}
    return featherload.Loader(src, RECIPE, objects=objects, **options)


def _dataset(form: str) -> Any:
    import datasets

    lists = datasets.Sequence
    kinds = {
        "bbox": lists(datasets.Value("float32"), length=4),
        "category": datasets.ClassLabel(names=NAMES),
        "id": datasets.Value("int64"),
        "area": datasets.Value("float64"),
        "iscrowd": datasets.Value("bool"),
    }
    rows = []
    for n in range(COUNT):
        found: Any = _objects(n)
        if form == "structs":
            found = [
                dict(zip(found, each, strict=True)) for each in zip(*found.values(), strict=True)
            ]
        rows.append({"image": {"bytes": _png(n)}, "image_id": 500 + n, "objects": found})
    of_lists = {name: lists(kind) for name, kind in kinds.items()}
    features = datasets.Features(
        {
            "image": datasets.Image(),
            "image_id": datasets.Value("int64"),
            "objects": of_lists if form == "lists" else datasets.List(kinds),
        }
    )
    return datasets.Dataset.from_list(rows, features=features)


@pytest.mark.parametrize("form", ["lists", "structs"])
def test_columns_of_datasets(form: str, tmp_path: Path) -> None:
    need("datasets")
    dataset = _dataset(form)
    objects = {"column": "objects"}
    everything = list(range(COUNT))
    loader = _loader(dataset, objects)
    assert [name for _, name in loader.categories] == NAMES
    _check(loader, everything)
    order = [7, 3, 3, 0, 9, 1]
    _check(_loader(dataset.select(order), objects), order)
    dataset.save_to_disk(str(tmp_path / "saved"))
    _check(_loader(tmp_path / "saved", objects), everything)
    dataset.to_parquet(str(tmp_path / "a.parquet"), batch_size=3)
    _check(_loader(tmp_path / "a.parquet", objects), everything)


def test_columns_of_a_dataset_in_torch() -> None:
    need("datasets")
    need("torch")
    from featherload.torch import DataLoader

    made = DataLoader(
        _dataset("lists"), 4, num_workers=1, recipe=RECIPE, objects={"column": "objects"}
    )
    _check(made, list(range(COUNT)))


def test_wrong_objects_of_a_dataset_are_counted_or_errors() -> None:
    need("datasets")
    dataset = _dataset("lists").to_list()
    dataset[1]["objects"]["bbox"][0][2] = 0.0
    dataset[2]["objects"]["bbox"][0][0] = float("nan")
    import datasets

    broken = datasets.Dataset.from_list(dataset, features=_dataset("lists").features)
    with _loader(broken, {"column": "objects"}) as loader:
        counts = [len(target["labels"]) for _, targets in loader for target in targets]
    want = [len(_objects(n)["category"]) for n in range(COUNT)]
    want[1] -= 1
    want[2] -= 1
    assert counts == want
    with pytest.raises(DatasetError, match=r"row 1, object 1: with a box without width"):
        _loader(broken, {"column": "objects", "strict": True})
    for objects, what in [
        ({"column": "things"}, "has no column 'things': its columns are image, image_id, objects"),
        ({"column": "objects", "names": ["a"]}, "remove `names`"),
        ({"column": "objects", "files": "a.json"}, "two places"),
        ({"column": "objects", "box_format": "ltrb"}, "ltrb"),
    ]:
        with pytest.raises(ConfigError, match=what):
            _loader(broken, objects)
    with pytest.raises(ConfigError, match=r"column is for a datasets\.Dataset"):
        _loader(["a.png"], {"column": "objects"})


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("images")
    for n in range(COUNT):
        (folder / f"{n}.png").write_bytes(_png(n))
    return folder


def test_lines_of_json(images: Path) -> None:
    table = images.parent / "metadata.jsonl"
    with table.open("w") as lines:
        for n in range(COUNT):
            row = {"file_name": f"{n}.png", "objects": _objects(n), "image_id": 500 + n}
            lines.write(json.dumps(row) + "\n")
    _check(_loader(table, {"column": "objects"}, root=str(images)), list(range(COUNT)))


def test_json_in_tars(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        for n in range(COUNT):
            found = _objects(n)
            items = [
                dict(zip(found, each, strict=True)) for each in zip(*found.values(), strict=True)
            ]
            record = {"annotations": items, "image_id": 500 + n, "width": WIDTH, "height": HEIGHT}
            for name, data in [("png", _png(n)), ("json", json.dumps(record).encode())]:
                info = tarfile.TarInfo(f"{n:04}.{name}")
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    _check(_loader(tmp_path / "a.tar", {"member": "json"}), list(range(COUNT)))


def test_tables_of_boxes_as_pandas_reads_them(images: Path, tmp_path: Path) -> None:
    need("pandas")
    import pandas as pd

    rows = []
    for n in range(COUNT):
        found = _objects(n)
        for (x, y, w, h), label in zip(found["bbox"], found["category"], strict=True):
            rows.append([f"{n}.png", x, y, x + w, y + h, NAMES[label]])
        if not found["bbox"]:
            rows.append([f"{n}.png", 0, 0, 0, 0, "bee"])
    names = ["image_path", "xmin", "ymin", "xmax", "ymax", "label"]
    table = tmp_path / "boxes.csv"
    with table.open("w", newline="") as out:
        csv.writer(out).writerows([names, *rows])
    frame = pd.read_csv(table)
    _check(_loader(images, str(table)), list(range(COUNT)), areas=False, ids=False)
    shares = pd.DataFrame({"ImageID": frame.image_path.str.removesuffix(".png")})
    for name, side in zip(["XMin", "YMin", "XMax", "YMax"], names[1:5], strict=True):
        shares[name] = frame[side] / (WIDTH if "X" in name else HEIGHT)
    shares["LabelName"], shares["IsGroupOf"] = frame.label, -1
    shares[frame.xmax > 0].to_csv(tmp_path / "open.csv", index=False)
    with _loader(images, str(tmp_path / "open.csv")) as loader:
        found = [target for _, targets in loader for target in targets]
    for n, target in enumerate(found):
        of_image = frame[(frame.image_path == f"{n}.png") & (frame.xmax > 0)]
        np.testing.assert_allclose(target["boxes"], of_image[names[1:5]], atol=1e-4)


def test_faces_as_torchvision_reads_them(tmp_path: Path) -> None:
    need("torchvision")
    from torchvision.datasets import WIDERFace

    lines = []
    for split in ("train", "val"):
        (tmp_path / f"widerface/WIDER_{split}/images/a").mkdir(parents=True)
    (tmp_path / "widerface/wider_face_split").mkdir()
    for n in range(COUNT):
        name = f"a/{n}.png"
        (tmp_path / "widerface/WIDER_train/images" / name).write_bytes(_png(n))
        boxes = [[int(v) for v in sides] for sides in _objects(n)["bbox"]]
        lines += [name, str(len(boxes))]
        for sides in boxes or [[0, 0, 0, 0]]:
            lines.append(" ".join(map(str, [*sides, 0, 0, 0, 0, 0, 0])) + " ")
    file = tmp_path / "widerface/wider_face_split/wider_face_train_bbx_gt.txt"
    file.write_text("\n".join(lines) + "\n")
    theirs = WIDERFace.__new__(WIDERFace)
    theirs.root, theirs.split = str(tmp_path / "widerface"), "train"
    theirs.img_info = []
    theirs.parse_train_val_annotations_file()
    with _loader(tmp_path / "widerface/WIDER_train/images", str(file)) as loader:
        ours = [target for _, targets in loader for target in targets]
    assert len(ours) == len(theirs.img_info) == COUNT
    for target, info in zip(ours, theirs.img_info, strict=True):
        boxes = info["annotations"]["bbox"].numpy().astype(np.float32)
        boxes = boxes[boxes[:, 2] > 0]
        boxes[:, 2:] += boxes[:, :2]
        np.testing.assert_array_equal(target["boxes"], boxes)
