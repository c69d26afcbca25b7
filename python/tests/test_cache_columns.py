"""Caches that keep columns: ``featherload.cache.build(..., columns=[...])``."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Cli, need

import featherload
from featherload import ConfigError, DatasetError

EVAL = {"ops": [{"resize": {"size": [8, 8]}}]}
COUNT = 60


@pytest.fixture(scope="module", autouse=True)
def installed() -> None:
    need("pyarrow")
    need("PIL")


def _jpeg(number: int) -> bytes:
    from PIL import Image

    file = io.BytesIO()
    Image.new("RGB", (20 + number % 5, 16), (number, 2 * number, 90)).save(file, "JPEG")
    return file.getvalue()


@pytest.fixture(scope="module")
def table() -> Any:
    """Columns of all types, with values that are missing, empty and extreme."""
    import pyarrow as pa

    n = range(COUNT)
    limits = [-(2**63), 2**63 - 1, 0]
    texts = ["", "é 日本 😀", "a\n\0b", None, "x" * 100_000]
    columns = {
        "image": pa.array([_jpeg(i) for i in n], pa.binary()),
        "label": pa.array([i % 3 for i in n]),
        "caption": pa.array([texts[i % 5] for i in n]),
        "large": pa.array([f"t{i}" for i in n], pa.large_string()),
        "blob": pa.array([None if i % 7 == 3 else bytes([i]) * i for i in n], pa.binary()),
        "i64": pa.array([limits[i % 3] for i in n]),
        "u64": pa.array([2**64 - 1 - i for i in n], pa.uint64()),
        "i8": pa.array([i - 30 for i in n], pa.int8()),
        "f16": pa.array(np.arange(COUNT).astype(np.float16)),
        "f32": pa.array([None if i % 4 == 1 else i / 7 for i in n], pa.float32()),
        "f64": pa.array([[float("nan"), float("inf"), -0.0, 1e-320][i % 4] for i in n]),
        "flag": pa.array([i % 3 == 0 for i in n]),
        "fixed": pa.array([[i, -i, 1] for i in n], pa.list_(pa.int16(), 3)),
        "ragged": pa.array([None if i % 9 == 4 else list(range(i % 5)) for i in n]),
        "flags": pa.array([[k % 2 == 0 for k in range(i % 11)] for i in n]),
        "boxes": pa.array(
            [[[i, k, 2.5, 3.0] for k in range(i % 3)] for i in n],
            pa.list_(pa.list_(pa.float32(), 4)),
        ),
        "words": pa.array([[None, "", f"w{i}"][: i % 4] for i in n]),
    }
    return pa.table(columns)


def _values(src: Any, names: list[str], **options: Any) -> dict[int, list[Any]]:
    """The values of each sample, with their types."""
    found: dict[int, list[Any]] = {}
    with featherload.Loader(src, EVAL, 7, 1, shuffle=False, columns=names, **options) as loader:
        for batch in loader:
            for row, sample in enumerate(batch.ids.tolist()):
                of = []
                for name in names:
                    value = batch[name]
                    if isinstance(value, featherload.Ragged):
                        value = value.rows()
                    one = value[row]
                    is_array = isinstance(one, (np.ndarray, np.generic))
                    of.append((str(one.dtype), one.tobytes()) if is_array else one)
                found[sample] = of
    return found


def _sources(table: Any, folder: Path) -> dict[str, tuple[Path, list[str]]]:
    import pyarrow.feather
    import pyarrow.parquet

    names = [name for name in table.column_names if name not in ("image", "label")]
    arrow, parquet = folder / "all.arrow", folder / "all.parquet"
    pyarrow.feather.write_feather(table, arrow, compression="uncompressed", chunksize=17)
    # Parquet has no lists of fixed size, and half floats are bytes there.
    others = ["fixed", "boxes", "f16"]
    flat = [name for name in names if name not in others]
    pyarrow.parquet.write_table(table.drop_columns(others), parquet, row_group_size=23)
    return {"arrow": (arrow, names), "parquet": (parquet, flat)}


def test_a_cache_gives_the_values_and_types_of_its_source(table: Any, tmp_path: Path) -> None:
    for name, (source, names) in _sources(table, tmp_path).items():
        want = _values(source, names)
        assert len(want) == COUNT
        for kind, options in (
            ("default", {}),
            ("shards", {"shard_samples": 13, "encode": "raw", "num_workers": 2}),
        ):
            to = tmp_path / f"{name}-{kind}"
            report = featherload.cache.build(
                source, to, columns=names, progress=False, **{"num_workers": 0, **options}
            )
            assert report["complete"] and report["samples"] == COUNT
            assert _values(to, names) == want, (name, kind)
            assert featherload.cache.verify(to).ok
            info = featherload.cache.info(to)
            assert [column["name"] for column in info["columns"]] == names
        types = {column["name"]: column["type"] for column in info["columns"]}
        assert types["caption"] == "text" and types["ragged"] == "lists of int64"
        # As an Arrow file for every other reader: the last member of a shard.
        if name == "arrow":
            import tarfile

            import pyarrow.ipc

            rows = 0
            for shard in sorted(to.glob("*.tar")):
                with tarfile.open(shard) as tar:
                    last = tar.getmembers()[-1]
                    assert last.name == ".columns.arrow"
                    member = tar.extractfile(last)
                    assert member is not None
                    kept = pyarrow.ipc.open_file(io.BytesIO(member.read())).read_all()
                kept.validate(full=True)
                of = table.slice(rows, len(kept))
                rows += len(kept)
                for column in ("caption", "blob", "i64", "u64", "flag", "words", "boxes", "fixed"):
                    assert kept[column].to_pylist() == of[column].to_pylist(), column
            assert rows == COUNT


def test_json_lines_and_csv(table: Any, tmp_path: Path) -> None:
    import csv
    import json

    captions = [text and text.replace("\0", "") for text in table["caption"].to_pylist()]
    for i, image in enumerate(table["image"].to_pylist()):
        (tmp_path / f"{i}.jpg").write_bytes(image)
    lines = tmp_path / "all.jsonl"
    with lines.open("w") as file:
        for i, text in enumerate(captions):
            row = {"file_name": f"{i}.jpg", "caption": text, "n": i, "deep": {"x": [i, 0.5]}}
            file.write(json.dumps(row) + "\n")
    sheet = tmp_path / "all.csv"
    with sheet.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["file_name", "caption", "n"])
        writer.writerows([f"{i}.jpg", text or "", i - 5] for i, text in enumerate(captions))
    for source, names in ((lines, ["caption", "n", "/deep/x"]), (sheet, ["n", "caption"])):
        to = tmp_path / source.suffix[1:]
        featherload.cache.build(source, to, columns=names, num_workers=0, progress=False)
        assert _values(to, names) == _values(source, names)


def test_data_sets_of_hugging_face(table: Any, tmp_path: Path) -> None:
    need("datasets")
    import datasets

    names = ["caption", "label", "boxes", "f32"]
    saved = datasets.Dataset(table).cast_column("image", datasets.Image())
    saved = saved.cast_column("label", datasets.ClassLabel(names=["a", "b", "c"]))
    saved.save_to_disk(tmp_path / "saved", num_shards=2)
    to = tmp_path / "cache"
    featherload.cache.build(
        tmp_path / "saved", to, columns=names, num_workers=0, progress=False, shard_samples=16
    )
    got = _values(to, names)
    assert got == _values(tmp_path / "saved", names)
    # A class stays a number.
    assert [row[1][0] for row in got.values()] == ["int64"] * COUNT


def test_dictionaries_have_the_values_that_they_stand_for(table: Any, tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.feather
    import pyarrow.ipc

    plain = table.select(["image"])
    values = {
        "text": ["cat", None, "é", ""] * (COUNT // 4),
        "number": [2**62, -1, None, 7] * (COUNT // 4),
        "bytes": [b"", b"x", b"yz", None] * (COUNT // 4),
    }
    coded: dict[str, Any] = {}
    for name, of in values.items():
        if name == "number":
            of = [0 if value is None else value for value in of]
        values[name] = of
        coded[name] = pa.array(of).dictionary_encode()
    # Numbers of one byte, with and without a sign, and an entry that is missing.
    coded["u8"] = pa.DictionaryArray.from_arrays(
        pa.array([i % 3 for i in range(COUNT)], pa.uint8()), pa.array(["a", None, "c"])
    )
    values["u8"] = ["a", None, "c"] * (COUNT // 3)
    coded["i8"] = pa.DictionaryArray.from_arrays(
        pa.array([i % 2 for i in range(COUNT)], pa.int8()), pa.array([1.5, float("inf")])
    )
    values["i8"] = [1.5, float("inf")] * (COUNT // 2)
    for name, column in coded.items():
        plain = plain.append_column(name, column)
    file, stream = tmp_path / "file.arrow", tmp_path / "stream.arrow"
    pyarrow.feather.write_feather(plain, file, compression="uncompressed", chunksize=17)
    with pyarrow.ipc.new_stream(stream, plain.schema) as writer:
        writer.write_table(plain, max_chunksize=9)
    # Later record batches add entries.
    grown = tmp_path / "grown.arrow"
    parts = [
        pa.table({"image": table["image"][a:b], "text": pa.array(names).dictionary_encode()})
        for a, b, names in ((0, 2, ["a", "b"]), (2, 5, ["a", "b", "c"]))
    ]
    options = pyarrow.ipc.IpcWriteOptions(emit_dictionary_deltas=True)
    with pyarrow.ipc.new_stream(grown, parts[0].schema, options=options) as writer:
        for part in parts:
            writer.write_table(part)
    got = _values(grown, ["text"])
    assert [row[0] for row in got.values()] == ["a", "b", "a", "b", "c"]
    names = [*coded]
    for source in (file, stream):
        with featherload.Loader(source, EVAL, COUNT, 1, shuffle=False, columns=names) as loader:
            for batch in loader:
                for name in names:
                    found = batch[name]
                    found = found.tolist() if isinstance(found, np.ndarray) else found
                    assert found == values[name], (source, name)
        to = tmp_path / source.stem
        featherload.cache.build(source, to, columns=names, num_workers=0, progress=False)
        assert _values(to, names) == _values(source, names)
    # In a table of Python.
    with featherload.Loader(plain, EVAL, COUNT, 1, shuffle=False, columns=names) as loader:
        for batch in loader:
            for name in names:
                found = batch[name]
                found = found.tolist() if isinstance(found, np.ndarray) else found
                assert found == values[name], name
    # Numbers beyond the dictionary, and a dictionary that is replaced.
    replaced = tmp_path / "replaced.arrow"
    with pyarrow.ipc.new_stream(replaced, parts[0].schema) as writer:
        for part in parts:
            writer.write_table(part)
    with pytest.raises(DatasetError, match="a dictionary that changes from batch to batch"):
        featherload.Loader(replaced, EVAL, columns=["text"])
    # A dictionary inside of a list, and lists of lists of different lengths.
    inside = pa.ListArray.from_arrays(
        pa.array([*range(COUNT + 1)], pa.int32()), pa.array(["a"] * COUNT).dictionary_encode()
    )
    nested = pa.array([[[1], [2, 3]]] * COUNT)
    others = table.select(["image"]).append_column("inside", inside)
    others = others.append_column("nested", nested)
    pyarrow.feather.write_feather(others, file, compression="uncompressed")
    for name, fix in (
        ("inside", "write it as numbers, text, bytes"),
        ("nested", "write inner lists of one length as lists of fixed size"),
    ):
        with pytest.raises(DatasetError, match=f"'{name}' has the type list of .*{fix}"):
            featherload.Loader(file, EVAL, columns=[name])


def test_errors_name_the_fix(table: Any, tmp_path: Path) -> None:
    source, _ = _sources(table, tmp_path)["arrow"]
    to = tmp_path / "cache"

    def build(**options: Any) -> Any:
        return featherload.cache.build(source, to, num_workers=0, progress=False, **options)

    with pytest.raises(ConfigError, match="columns is 'caption': give a list of names"):
        build(columns="caption")
    with pytest.raises(ConfigError, match="'a,b', and flags have no column of such a name"):
        build(columns=["a,b"])
    with pytest.raises(DatasetError, match="no column 'nothing'"):
        build(columns=["nothing"])
    assert not to.exists()
    build(columns=["caption"])
    with pytest.raises(
        DatasetError, match=r"columns was caption \(text\) and is now caption \(text\), i64"
    ):
        build(columns=["caption", "i64"])
    with pytest.raises(DatasetError, match=r"no column 'i64' \(its columns: 'caption'\)"):
        featherload.Loader(to, EVAL, columns=["i64"])
    build(columns=["i64"], force=True)
    assert len(_values(to, ["i64"])) == COUNT
    plain = tmp_path / "plain"
    featherload.cache.build(source, plain, num_workers=0, progress=False)
    with pytest.raises(DatasetError, match="build it again with `cache build --columns`"):
        featherload.Loader(plain, EVAL, columns=["caption"])


def test_bench_prints_what_columns_cost(table: Any, tmp_path: Path, cli: Cli) -> None:
    import pyarrow as pa
    import pyarrow.parquet

    # A page of many values is decompressed for a row. Whether that is slow depends on the machine:
    # the limit is tested where the advice is made.
    count = 20_000
    image = table["image"][0].as_py()
    rows = pa.table(
        {
            "image": pa.array([image] * count, pa.binary()),
            "caption": [f"{i:060}" for i in range(count)],
        }
    )
    source = tmp_path / "large.parquet"
    pyarrow.parquet.write_table(rows, source, use_dictionary=False)
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text("featherload: 1\nops: [{resize: {size: [8, 8]}}]")
    plain = ["--recipe", recipe, "--limit", "512", "--num-workers", "1"]
    args = [*plain, "--columns", "caption"]
    pages = cli("bench", source, *args)
    assert pages["columns_ms"] > 0, pages
    advice = "cache build --columns caption: a cache keeps them where a row is read at once"
    assert pages.get("columns_faster", advice) == advice, pages
    to = tmp_path / "cache"
    featherload.cache.build(source, to, columns=["caption"], progress=False)
    fast = cli("bench", to, *args)
    assert fast["columns_ms"] > 0 and "columns_faster" not in fast, fast
    assert "columns_ms" not in cli("bench", source, *plain)
