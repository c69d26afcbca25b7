"""Columns of batches: of files, of lists and tables in Python, and of tar members."""

from __future__ import annotations

import csv
import io
import json
import pickle
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Cli, need

import featherload
from featherload import ConfigError, DatasetError, RowStatus

EVAL = {"ops": [{"resize": {"size": [16, 16]}}]}
NAMES = ["caption", "score", "n", "tags", "words", "boxes", "flag"]


def rows(photos: Path) -> list[dict[str, Any]]:
    files = sorted(photos.rglob("*.jpg"))[::8]
    return [
        {
            "file_name": str(path),
            "label": path.parent.name,
            "caption": f'a "{i}",\n{"é" * (i % 5)}',
            "score": i / 7,
            "n": 3 * i - 5,
            "tags": list(range(i % 4)),
            "words": [f"w{k}" for k in range(i % 3)],
            "boxes": [[i + 0.25, 0.5, 2.0, 3.0]] * (i % 3),
            "flag": i % 2 == 0,
        }
        for i, path in enumerate(files)
    ]


@pytest.fixture(scope="module")
def table(photos: Path) -> list[dict[str, Any]]:
    return rows(photos)


@pytest.fixture(scope="module")
def lines(table: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("lines") / "metadata.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in table))
    return path


def check(batch: Any, table: list[dict[str, Any]]) -> None:
    """All columns of a batch against the rows of the table that its ids name."""
    of = [table[i] for i in batch.ids.tolist()]
    for name in batch.columns:
        found, want = batch[name], [row[name] for row in of]
        if isinstance(found, featherload.Ragged):
            assert found.offsets.dtype == np.int64 and len(found.offsets) == len(of) + 1
            assert [np.asarray(row).tolist() for row in found.rows()] == want, name
        elif isinstance(found, list):
            assert found == want, name
        else:
            assert found.shape[0] == len(of) and np.array_equal(found, want), name


def test_columns_of_all_forms_belong_to_their_rows(
    table: list[dict[str, Any]], lines: Path
) -> None:
    named = {name: [row[name] for row in table] for name in NAMES}
    paths = [row["file_name"] for row in table]
    labels = [row["label"] for row in table]
    for src, options in (
        (lines, {"allow_outside": True}),
        (table, {}),
        ({"path": paths, "label": labels, **named}, {}),
        (featherload.Items(paths, labels, **named), {}),
    ):
        seen = 0
        with featherload.Loader(src, EVAL, 7, 2, seed=3, columns=NAMES, **options) as loader:
            for _ in range(2):
                for batch in loader:
                    assert batch.columns == NAMES
                    check(batch, table)
                    images, labels_of = batch
                    assert batch[0] is images and batch[1] is labels_of
                    seen += len(batch.ids)
        assert seen == 2 * len(table)


def test_a_csv_has_numbers_and_texts(table: list[dict[str, Any]], tmp_path: Path) -> None:
    path = tmp_path / "metadata.csv"
    names = ["file_name", "caption", "score", "n"]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, names, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(table)
    with featherload.Loader(
        path, EVAL, 5, 2, allow_outside=True, columns=["n", "caption", "score"]
    ) as loader:
        for batch in loader:
            check(batch, table)
            assert batch["n"].dtype == np.int64 and batch["score"].dtype == np.float64
            with pytest.raises(ConfigError, match="no column 'x'.* 'n', 'caption', 'score'"):
                batch["x"]
    with pytest.raises(DatasetError, match="no column 'captions': the columns are 'file_name',"):
        featherload.Loader(path, EVAL, allow_outside=True, columns=["captions"])


def test_index_lists_the_columns(lines: Path, cli: Cli) -> None:
    report = cli("index", lines, "--allow-outside")
    available = [column["name"] for column in report["columns"]["available"]]
    assert available == ["file_name", "label", *NAMES]


def test_substituted_and_failed_rows_have_the_columns_of_their_sample(
    table: list[dict[str, Any]], tmp_path: Path
) -> None:
    broken = tmp_path / "broken.jpg"
    broken.write_bytes(b"no picture")
    listed = [
        {**row, "file_name": str(broken)} if i % 5 == 2 else row for i, row in enumerate(table)
    ]
    metadata = tmp_path / "metadata.jsonl"
    metadata.write_text("".join(json.dumps(row) + "\n" for row in listed))
    for src, options in ((metadata, {"allow_outside": True}), (listed, {})):
        for on_error, status in (
            ("substitute", RowStatus.SUBSTITUTED),
            ("skip", RowStatus.FAILED),
        ):
            found = 0
            with featherload.Loader(
                src,
                EVAL,
                7,
                2,
                on_error=on_error,
                pad_last=True,
                columns=["caption", "n", "tags"],
                **options,
            ) as loader:
                for batch in loader:
                    found += batch.status.count(status)
                    texts, numbers, tags = batch["caption"], batch["n"], batch["tags"].rows()
                    for row, (sample, of) in enumerate(
                        zip(batch.ids.tolist(), batch.status, strict=True)
                    ):
                        got = (texts[row], numbers[row], tags[row].tolist())
                        want = listed[sample]
                        if of == RowStatus.PADDING:
                            assert got == ("", 0, [])
                        else:
                            assert got == (want["caption"], want["n"], want["tags"])
            assert found > 0


def test_members_of_tars_are_columns(photos: Path, tmp_path: Path) -> None:
    files = sorted(photos.rglob("*.jpg"))[:40]
    want: list[dict[str, Any]] = []
    for shard in range(2):
        with tarfile.open(tmp_path / f"{shard}.tar", "w", format=tarfile.PAX_FORMAT) as tar:
            for i in range(shard * 20, shard * 20 + 20):
                # A long name takes a header of its own, and members stand on both sides.
                key = f"{'é' * 60 if i % 3 else 'k'}{i:04}"
                meta = {"caption": f"meta {i}", "n": i, "tags": [0.5] * (i % 3), "x": {"y": i}}
                members = {
                    "cls": str(i % 4).encode(),
                    "emb.npy": bytes([i]) * (i % 5),
                    "jpg": files[i].read_bytes(),
                    "json": json.dumps(meta).encode(),
                    "txt": f"text {i} é".encode(),
                }
                if i % 7 == 3:
                    del members["txt"]
                want.append({**meta, "members": members})
                for name, data in members.items():
                    info = tarfile.TarInfo(f"{key}.{name}")
                    info.size = len(data)
                    tar.addfile(info, io.BytesIO(data))
    names = ["txt", "json", "cls", "emb.npy", "caption", "n", "tags", "/x/y"]
    pattern = str(tmp_path / "{0,1}.tar")
    with featherload.Loader(pattern, EVAL, 6, 2, columns=names, index_dir="none") as loader:
        count = 0
        for batch in loader:
            of = [want[i] for i in batch.ids.tolist()]
            count += len(of)
            texts = [row["members"].get("txt") for row in of]
            assert batch["txt"] == [None if text is None else text.decode() for text in texts]
            assert batch["json"] == [row["members"]["json"].decode() for row in of]
            assert batch["emb.npy"] == [row["members"]["emb.npy"] for row in of]
            assert batch["cls"].tolist() == [int(row["members"]["cls"]) for row in of]
            assert batch["cls"].tolist() == batch.labels.tolist()
            assert batch["caption"] == [row["caption"] for row in of]
            assert batch["n"].tolist() == [row["n"] for row in of]
            assert batch["/x/y"].tolist() == [row["x"]["y"] for row in of]
            assert [row.tolist() for row in batch["tags"].rows()] == [row["tags"] for row in of]
        assert count == 40
    with pytest.raises(DatasetError, match="no column 'no'.*the keys of its JSON are 'caption'"):
        featherload.Loader(pattern, EVAL, columns=["no"], index_dir="none")


def test_sources_without_columns_say_what_to_do(photos: Path, table: list[Any]) -> None:
    with pytest.raises(ConfigError, match="a folder has none: give a table of its images"):
        featherload.Loader(photos, EVAL, columns=["caption"])
    with pytest.raises(ConfigError, match="no column 'x': the columns of src are 'file_name'"):
        featherload.Loader(table, EVAL, columns=["x"])
    with pytest.raises(ConfigError, match="columns is 'caption': give a list of names"):
        featherload.Loader(table, EVAL, columns="caption")
    with pytest.raises(ConfigError, match="column 'n' is named twice"):
        featherload.Loader(table, EVAL, columns=["n", "n"])
    paths = [row["file_name"] for row in table]
    with pytest.raises(ConfigError, match="column 'n' has 1 values for 32 samples"):
        featherload.Loader(featherload.Items(paths, n=[1]), EVAL, columns=["n"])
    with pytest.raises(ConfigError, match="column 'n' has numbers and other values"):
        items = featherload.Items(paths, n=[1, *["x"] * 31])
        featherload.Loader(items, EVAL, columns=["n"])
    with featherload.Loader(table, EVAL, 4, 1) as loader:
        batch = next(iter(loader))
        assert batch.columns == []
        with pytest.raises(ConfigError, match="this run has no columns"):
            batch["caption"]


def test_columns_survive_the_moves_of_trainers(table: list[Any], lines: Path) -> None:
    need("torch")
    need("accelerate")
    need("lightning")
    import torch
    from accelerate.utils import send_to_device
    from lightning.fabric.utilities import move_data_to_device

    for src, options in ((lines, {"allow_outside": True}), (table, {})):
        with featherload.Loader(
            src, EVAL, 8, 2, framework="torch", columns=NAMES, **options
        ) as loader:
            batch = next(iter(loader))
            for moved in (
                batch.to("meta"),
                batch.to(torch.float64),
                send_to_device(batch, "meta"),
                move_data_to_device(batch, torch.device("meta")),
            ):
                assert moved["caption"] == [table[i]["caption"] for i in moved.ids.tolist()]
                assert moved["score"].device == moved.images.device
                assert moved["tags"].offsets.device == moved.images.device
            score = batch.to(torch.float64)["score"]
            assert score.dtype == torch.float64
            assert score.tolist() == [table[i]["score"] for i in batch.ids.tolist()]
            # Sent to another process it is the arrays alone.
            assert len(pickle.loads(pickle.dumps(batch))) == 2


def test_columns_of_pandas_polars_and_pyarrow(table: list[Any]) -> None:
    need("pandas")
    need("pyarrow")
    import pandas
    import pyarrow

    frame = pandas.DataFrame(table)
    arrow = pyarrow.Table.from_pylist(table)
    forms: list[Any] = [frame, arrow]
    try:
        import polars

        forms.append(polars.DataFrame(table))
    except ImportError:
        print("SKIP: polars is not installed")
    for form in forms:
        with featherload.Loader(form, EVAL, 7, 2, columns=NAMES) as loader:
            for batch in loader:
                check(batch, table)


def column(values: Any, paths: list[str]) -> Any:
    """A column of all samples, by a loader of a table."""
    src = {"path": paths[: len(values)], "x": values}
    with featherload.Loader(src, EVAL, 8, 1, labels="none", shuffle=False, columns=["x"]) as loader:
        return next(iter(loader))["x"]


@pytest.fixture(scope="module")
def paths(table: list[dict[str, Any]]) -> list[str]:
    return [row["file_name"] for row in table]


def test_a_missing_number_within_a_list_of_arrow(paths: list[str]) -> None:
    need("pyarrow")
    import pyarrow as pa

    big = 2**53 + 1
    for kind in (pa.list_(pa.int64()), pa.large_list(pa.int64()), pa.list_(pa.int64(), 2)):
        good = column(pa.array([[big, 2], [-big, 5]], kind), paths)
        values = good.values if isinstance(good, featherload.Ragged) else good
        assert values.dtype == np.int64 and values.reshape(-1).tolist() == [big, 2, -big, 5]
        for bad in ([[1, 2], [big, None]], [[1, 2], [None, None]]):
            with pytest.raises(ConfigError, match="missing value at item 1, which int64 cannot"):
                column(pa.array(bad, kind), paths)
    for kind in (pa.list_(pa.bool_()), pa.list_(pa.bool_(), 2)):
        with pytest.raises(ConfigError, match="missing value at item 0, which bool cannot"):
            column(pa.array([[True, None]], kind), paths)
    pairs, deep = pa.list_(pa.list_(pa.int64(), 2)), pa.list_(pa.list_(pa.bool_()))
    for bad in ([[[1, 2], [3, None]]], [[[1, 2], None]]):
        with pytest.raises(ConfigError, match="missing value at item 0, which int64 cannot"):
            column(pa.array(bad, pairs), paths)
    with pytest.raises(ConfigError, match="missing value at item 0, which bool cannot"):
        column(pa.array([[[True, None]]], deep), paths)
    nan = np.nan
    for float_kind in (pa.float64(), pa.float32(), pa.float16()):
        rows_of = [[np.float16(1), None], [None, np.float16(2)]]
        for kind in (pa.list_(float_kind), pa.list_(float_kind, 2)):
            found = column(pa.array(rows_of, kind), paths)
            values = found.values if isinstance(found, featherload.Ragged) else found
            np.testing.assert_array_equal(values.reshape(-1), [1, nan, nan, 2])
    pairs = pa.list_(pa.list_(pa.float64(), 2))
    found = column(pa.array([[[1, None], None], [], None, [[3, 4]]], pairs), paths)
    np.testing.assert_array_equal(found.values, [[1, nan], [nan, nan], [3, 4]])
    assert found.offsets.tolist() == [0, 2, 2, 2, 3]


def test_a_missing_value_of_pandas(paths: list[str]) -> None:
    need("pandas")
    import pandas

    for texts in (["a", None, "b"], [None, "a", "b"], ["a", float("nan"), "b"]):
        want = [text if isinstance(text, str) else None for text in texts]
        for dtype in (None, object, "string", "category"):
            assert column(pandas.Series(texts, dtype=dtype), paths) == want
        assert column(texts, paths) == want
    assert column([pandas.NA, "a"], paths) == [None, "a"]
    assert column(pandas.Series([b"a", None, b"b"]), paths) == [b"a", None, b"b"]
    for lists in ([["a"], None], [None, ["a"]]):
        assert column(pandas.Series(lists), paths) == [of or [] for of in lists]
    assert column(pandas.Series([1, 2], dtype="Int64"), paths).dtype == np.int64
    found = column(pandas.Series([1.5, None], dtype="Float64"), paths)
    np.testing.assert_array_equal(found, [1.5, np.nan])
    for values, dtype in (([1, None], "Int64"), ([True, None], "boolean")):
        with pytest.raises(ConfigError, match="'x' has no value at item 1, which (int64|bool) "):
            column(pandas.Series(values, dtype=dtype), paths)
    with pytest.raises(ConfigError, match="'x' has no value at item 1, which int64 "):
        column(pandas.Series([1, None]).astype("Int64").astype("category"), paths)
    frame = pandas.DataFrame([[paths[0], paths[1]]], columns=["path", "path"])
    with pytest.raises(ConfigError, match="two columns of the name 'path': rename one"):
        featherload.Loader(frame, EVAL)


def test_a_column_of_polars_does_not_depend_on_imports(paths: list[str]) -> None:
    need("polars")
    need("pyarrow")
    code = f"""
import sys
if sys.argv[1] == "1":
    import pyarrow
import polars, featherload
paths = {paths[:2]!r}
for values in (polars.Series([2**53 + 1, None]), polars.Series([[1, None], [2, 3]]),
               polars.Series(["a", "b"], dtype=polars.Categorical), polars.Series([["a"], None])):
    frame = polars.DataFrame({{"path": paths, "x": values}})
    try:
        loader = featherload.Loader(frame, {EVAL!r}, 2, 1, labels="none", shuffle=False,
                                     columns=["x"])
        print(next(iter(loader))["x"])
    except featherload.ConfigError as error:
        print(error)
"""
    said = [
        subprocess.run(
            [sys.executable, "-c", code, arrow], capture_output=True, text=True, check=True
        ).stdout
        for arrow in "01"
    ]
    assert said[0] == said[1]
    assert "no value at item 1, which int64" in said[0] and "['a', 'b']" in said[0]
    assert "a list with a missing value at item 0, which int64" in said[0]


def test_missing_and_large_numbers_of_lists(paths: list[str]) -> None:
    big = 2**53 + 1
    np.testing.assert_array_equal(column([1, None, 3], paths), [1, np.nan, 3])
    assert column([big, -big], paths).tolist() == [big, -big]
    assert column([2**64 - 1, 0], paths).tolist() == [2**64 - 1, 0]
    for bad in ([1, big, None], [0.5, big], [-1, 2**64 - 1]):
        with pytest.raises(ConfigError, match="at item 1, which loses digits .*: give texts"):
            column(bad, paths)
    with pytest.raises(ConfigError, match="no value at item 1, which bool cannot express"):
        column([True, None], paths)
    with pytest.raises(ConfigError, match="whole numbers from -2"):
        column([2**64, 1], paths)
    np.testing.assert_array_equal(column([[1.0, None], [2.0]], paths).values, [1, np.nan, 2])
    with pytest.raises(ConfigError, match="list with a missing value at item 1, which int64"):
        column([[1], [1, None]], paths)
    for lists in ([[big], [0.5]], [[big, 0.5]], [[0.5], [big]]):
        with pytest.raises(ConfigError, match="loses digits"):
            column(lists, paths)
    assert column([[None, "a"], None, []], paths) == [[None, "a"], [], []]
    with pytest.raises(ConfigError, match=r"has \['a', 1\] at item 0"):
        column([["a", 1], ["b"]], paths)


def test_columns_keep_the_order_that_they_had(paths: list[str]) -> None:
    numbers, texts = np.arange(8), [f"c{i}" for i in range(8)]
    items = featherload.Items(paths[:8], n=numbers, cap=texts)
    src = {"path": paths[:8], "n": numbers, "cap": texts}
    with (
        featherload.Loader(items, EVAL, 8, 1, columns=["n", "cap"]) as one,
        featherload.Loader(src, EVAL, 8, 1, labels="none", columns=["n", "cap"]) as two,
    ):
        numbers[:] = numbers[::-1].copy()
        texts.clear()
        for loader in (one, two):
            batch = next(iter(loader))
            assert batch["n"].tolist() == batch.ids.tolist()
            assert batch["cap"] == [f"c{i}" for i in batch.ids.tolist()]


def test_values_that_are_no_columns(paths: list[str]) -> None:
    for bad in (5, "text", {"a": 1}):
        with pytest.raises(ConfigError, match="column 'x' is .*: give a list, one value for each"):
            featherload.Items(paths, x=bad)
    with pytest.raises(ConfigError, match="keys of a dict are no samples"):
        featherload.Items({"a": 1})
    # A mistake in a text is found before the run begins.
    with pytest.raises(ConfigError, match="column 'x' has 5 at item 1"):
        featherload.Items(paths[:2], x=["a", 5])
    need("torch")
    import torch

    found = column(torch.tensor([1.5, 2], dtype=torch.bfloat16), paths)
    assert found.tolist() == [1.5, 2]
    assert column([torch.tensor(1), torch.tensor(2)], paths).tolist() == [1, 2]
    assert column([torch.tensor([1, 2]), torch.tensor([3])], paths).offsets.tolist() == [0, 2, 3]
