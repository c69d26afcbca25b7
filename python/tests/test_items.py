"""Samples that are listed in Python: ``featherload.Items``, lists, dicts and tables."""

from __future__ import annotations

import io
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import featherload

EVAL = {"ops": [{"resize": {"size": [16, 16]}}]}


class Column:
    """A column of pyarrow, as far as it is read here."""

    def __init__(self, values: list[Any]) -> None:
        self._values = values

    def to_pylist(self) -> list[Any]:
        return self._values


class Table:
    """A table of pyarrow, as far as it is read here."""

    def __init__(self, columns: dict[str, list[Any]]) -> None:
        self._columns = columns
        self.column_names = [*columns]
        self.columns = [Column(values) for values in columns.values()]

    def __getitem__(self, name: str) -> Column:
        return Column(self._columns[name])


@pytest.fixture(scope="module")
def files(photos: Path) -> list[Path]:
    return sorted(path for path in photos.rglob("*") if path.suffix in (".jpg", ".png", ".webp"))


def batches(src: Any, **options: Any) -> list[Any]:
    loader = featherload.Loader(src, EVAL, 7, 2, shuffle=False, **options)
    try:
        return [
            (batch.ids.tolist(), [*map(str, batch.paths())], batch.images.copy(), batch.labels)
            for batch in loader
        ]
    finally:
        loader.close()


def test_all_forms_give_the_batches_of_the_folder(photos: Path, files: list[Path]) -> None:
    want = batches(photos)
    order = [Path(path) for batch in want for path in batch[1]]
    assert sorted(order) == files
    names = [path.parent.name for path in order]
    numbers = [sorted(set(names)).index(name) for name in names]
    relative = [str(path.relative_to(photos)) for path in order]
    for src in (
        [*zip(order, names, strict=True)],
        [(str(path), label) for path, label in zip(order, numbers, strict=True)],
        [{"file_name": path, "label": label} for path, label in zip(order, names, strict=True)],
        {"path": order, "label": np.array(numbers)},
        Table({"image_path": [str(path) for path in order], "category": numbers}),
        featherload.Items(order, np.array(numbers, np.int16)),
        featherload.Items(relative, iter(names), root=photos, classes=sorted(set(names))),
    ):
        got = batches(src)
        assert len(got) == len(want)
        for a, b in zip(got, want, strict=True):
            assert a[:2] == b[:2]
            np.testing.assert_array_equal(a[2], b[2])
            np.testing.assert_array_equal(a[3], b[3])


def test_labels_have_the_type_of_the_list(files: list[Path]) -> None:
    few = files[:3]
    for labels, want in [
        (None, None),
        ([0.5, 2.0, -1.0], np.array([0.5, 2, -1], np.float32)),
        ([1, 2.5, 3], np.array([1, 2.5, 3], np.float32)),
        ([[1], [2], [3]], np.array([[1], [2], [3]], np.float32)),
        (np.eye(3), np.eye(3, dtype=np.float32)),
        ([np.int64(-7), np.uint8(3), 1 << 40], np.array([-7, 3, 1 << 40])),
        (["b", "a", "b"], np.array([1, 0, 1])),
    ]:
        got = batches(featherload.Items(few, labels))[0][3]
        if want is None:
            assert got is None
        else:
            assert (got.dtype, got.shape) == (want.dtype, want.shape)
            np.testing.assert_array_equal(got, want)


def test_a_run_resumes_where_the_files_were_moved_to(files: list[Path], tmp_path: Path) -> None:
    loader = featherload.Loader(files, EVAL, 4, 2)
    begun = iter(loader)
    seen = [next(begun).ids.tolist()]
    state = json.loads(json.dumps(loader.state_dict()))
    rest = [batch.ids.tolist() for batch in begun]
    loader.close()
    moved = []
    for path in files:
        link = tmp_path / path.relative_to(files[0].parents[1])
        link.parent.mkdir(parents=True, exist_ok=True)
        link.write_bytes(path.read_bytes())
        moved.append(link)
    for src in (files, moved):
        loader = featherload.Loader(src, EVAL, 4, 1)
        loader.load_state_dict(state)
        assert [batch.ids.tolist() for batch in loader] == rest
        loader.close()
    assert sorted(id for ids in seen + rest for id in ids) == [*range(len(files))]
    loader = featherload.Loader(files[::-1], EVAL, 4, 1)
    loader.load_state_dict(state)
    with pytest.raises(featherload.ConfigError, match="data|index"):
        next(iter(loader))
    loader.close()


def test_a_plan_is_that_of_the_same_files_in_a_folder(photos: Path, files: list[Path]) -> None:
    of_folder, of_items = (featherload.plan(src, EVAL, 8, 2) for src in (photos, files))
    assert of_items["samples"] == of_folder["samples"] == len(files)
    # The index of a folder has labels and names of classes, too.
    differ = {"fixed_bytes", "total_bytes"}
    of_items, of_folder = of_items["memory"], of_folder["memory"]
    assert {name for name in of_folder if of_items[name] != of_folder[name]} <= differ


def test_a_file_that_is_not_there_fails_alone(files: list[Path], tmp_path: Path) -> None:
    src = [*files[:3], tmp_path / "none.jpg"]
    loader = featherload.Loader(src, EVAL, 4, 1, shuffle=False, on_error="skip")
    (batch,) = loader
    assert [fault.id for fault in batch.faults] == [3]
    loader.close()


def test_errors_name_the_item(files: list[Path]) -> None:
    one = str(files[0])
    for src, why in [
        ([], "src is an empty list"),
        ([1], r"item 0: the path is 1 \(type int\)"),
        ([one, b"\xff\xd8"], r"item 1: the path is b'.*bytes"),
        ([(one, 1), (one,)], r"item 1 is \('.*give pairs"),
        ([(one, 1), one], "item 1 is '.*give pairs"),
        ([(one, "a"), (one, 3)], "item 1: the label is a whole .* item 0 is a class name: use one"),
        ([(one, 1, "x")], r"item 0 is .*: give pairs \(path, label\), or dicts such as"),
        ([io.BytesIO(b"x")], r"item 0: the path is .*: give the bytes .* by getvalue\(\)"),
        (
            ["a/1.tar", "a/2.tar"],
            "src is a list of tar shards, such as .*: give a pattern, .*/[*].t",
        ),
        (
            {"path": [one], "image_path": [one]},
            "several columns may be the path: name one|'path', ",
        ),
        ([(one, True)], "item 0: the label is True"),
        ([(one, float("nan"))], "item 0: the label has NaN"),
        ([(one, [])], "item 0: the label is an empty list"),
        ([(one, 1 << 63)], "item 0: the label is 9223372036854775808"),
        ([(one, object())], "item 0: the label is <object"),
        ([(one, None), (one, 3)], "item 1: the label is a whole number, and that of item 0 is no"),
        ([("", 1)], "item 0: the path is empty"),
        (["ftp://h/a.jpg"], "item 0: path 'ftp://h/a.jpg' is an address of no known store"),
        ([one, "s3://bucket/a.jpg"], "item 1: path 's3://bucket/a.jpg' is of another kind"),
        (
            {"crop": [one]},
            "the dict has no column of paths or of images as bytes among .'crop'.: name it with",
        ),
        ([{"path": one}, {"x": one}], "item 1 is .*, and item 0 has the keys"),
        ({"path": [one], "label": [1, 2]}, "1 paths have 2 labels"),
        (5, r"src is 5 \(type int\): give a path, featherload.Items"),
    ]:
        with pytest.raises(featherload.ConfigError, match=why):
            featherload.Loader(src)
    with pytest.raises(featherload.ConfigError, match="root says how a path is read") as caught:
        featherload.Loader([one], root="x")
    assert caught.value.option == "root"
    with pytest.raises(featherload.ConfigError, match="class 'b' is not in the class table"):
        featherload.Items([one], ["b"], classes=["a"])
    with pytest.raises(featherload.ConfigError, match="paths is '.*': give a list"):
        featherload.Items(one)


def test_keywords_name_the_columns_of_tables(photos: Path, files: list[Path]) -> None:
    names = [str(path.relative_to(photos)) for path in files]
    rows = {"picture": names, "breed": [n % 3 for n in range(len(names))], "text": names}
    few = [dict(zip(rows, row, strict=True)) for row in zip(*rows.values(), strict=True)]
    for src in (rows, few, Table(rows)):
        loader = featherload.Loader(
            src,
            EVAL,
            len(names),
            2,
            shuffle=False,
            path_column="picture",
            label_column="breed",
            root=photos,
            columns=["text"],
        )
        (batch,) = loader
        assert batch.paths() == files
        assert batch.labels.tolist() == rows["breed"]
        assert batch["text"] == names
        loader.close()
    for options, why in [
        ({"path_column": "nothing"}, "has no column 'nothing': its columns are"),
        ({"label_column": "nothing"}, "has no column 'nothing': its columns are"),
        ({"path_column": "picture", "image_column": "text"}, "give one of them"),
        ({"path_column": "picture", "delimiter": " "}, "delimiter says how a path is read"),
    ]:
        with pytest.raises(featherload.ConfigError, match=why) as caught:
            featherload.Loader(rows, EVAL, labels="none", **options)
        assert caught.value.option in (*options, "image_column")


def test_tables_have_the_usual_names_of_files(
    photos: Path, files: list[Path], tmp_path: Path
) -> None:
    """The same columns are found in a table, and in a CSV file."""
    for path, label in (("image", "fine_label"), ("img_path", "Class"), ("File Name", "target")):
        rows = {path: [*map(str, files)], label: [n % 3 for n in range(len(files))]}
        table = tmp_path / "table.csv"
        lines = [",".join(rows), *(f"{a},{b}" for a, b in zip(*rows.values(), strict=True))]
        table.write_text("\n".join(lines))
        found = [batches(src, **of) for src, of in ((rows, {}), (table, {"allow_outside": True}))]
        for a, b in zip(*found, strict=True):
            assert a[:2] == b[:2]
            np.testing.assert_array_equal(a[2], b[2])
            np.testing.assert_array_equal(a[3], b[3])


def test_floats_of_a_file_are_those_of_a_list(files: list[Path], tmp_path: Path) -> None:
    scores = [n / 4 for n in range(len(files))]
    table = tmp_path / "table.csv"
    rows = [f"{path},{score}" for path, score in zip(files, scores, strict=True)]
    table.write_text("\n".join(["path,label", *rows]))
    of_file = batches(table, allow_outside=True)
    of_list = batches([*zip(files, scores, strict=True)])
    for a, b in zip(of_file, of_list, strict=True):
        assert a[3].shape == b[3].shape == (len(a[0]),)
        np.testing.assert_array_equal(a[3], b[3])


def test_a_table_without_known_labels_gives_a_warning(files: list[Path]) -> None:
    rows = {"path": files[:2], "breed": ["a", "b"]}
    with pytest.warns(
        UserWarning, match="known to hold labels among .'breed'.*label_column"
    ) as all_:
        assert batches(rows)[0][3] is None
    assert all_[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert batches(rows, labels="none")[0][3] is None
        assert batches(rows, columns=["breed"])[0][3] is None
        assert batches({"path": files[:2]})[0][3] is None
