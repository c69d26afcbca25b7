"""Captions of batches: the rule and its errors; captions of tables, lists, tars and text files."""

from __future__ import annotations

import dataclasses
import io
import json
import pickle
import tarfile
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import need

import featherload
from featherload import Captions, ConfigError, DatasetError
from featherload._preview import _png as png

EVAL = {"ops": [{"resize": {"size": [16, 16]}}]}
COUNT = 12


def loader(src: Any, captions: Any, **options: Any) -> featherload.Loader:
    keywords: dict[str, Any] = {"batch_size": 5, "num_workers": 1, "seed": 3, **options}
    return featherload.Loader(src, EVAL, captions=captions, **keywords)


def made(src: Any, captions: Any, **options: Any) -> dict[int, str]:
    """The caption of each sample in one epoch."""
    with loader(src, captions, **options) as batches:
        return {
            number: caption
            for batch in batches
            for number, caption in zip(batch.ids.tolist(), batch.captions, strict=True)
        }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Images, their captions beside them, and a table with several captions of each."""
    folder = tmp_path_factory.mktemp("captions")
    lines = []
    for number in range(COUNT):
        name = f"{number:02}.png"
        (folder / name).write_bytes(png(np.full((20, 30, 3), number, np.uint8)))
        (folder / f"{number:02}.txt").write_text(f"t{number}, b, c, d\n")
        several = [f"t{number}, b, c, d", f"other {number}, b, c"]
        row = {"path": name, "label": number % 2, "several": several, "score": number}
        lines.append(json.dumps(row) + "\n")
    (folder / "all.jsonl").write_text("".join(lines))
    return folder


def rows(folder: Path) -> list[dict[str, Any]]:
    table = [json.loads(line) for line in (folder / "all.jsonl").read_text().splitlines()]
    return [{**row, "path": str(folder / row["path"])} for row in table]


RULE = Captions("several", choose="random", drop=0.2, shuffle=True, keep=1, tag_drop=0.1)


def test_the_library_and_python_make_the_same_captions(folder: Path) -> None:
    """Columns of files are read by the library, and those of lists by Python."""
    want = made(folder / "all.jsonl", RULE)
    assert made(rows(folder), RULE) == want
    paths, several = zip(*((r["path"], r["several"]) for r in rows(folder)), strict=True)
    assert made(featherload.Items(paths, several=several), RULE) == want
    assert made(folder / "all.jsonl", RULE, num_workers=2, batch_size=3) == want
    assert made(folder / "all.jsonl", RULE, seed=4) != want
    assert len(set(want.values())) > COUNT // 2
    for number, caption in want.items():
        tags = caption.split(", ") if caption else []
        assert set(tags) <= {f"t{number}", f"other {number}", "b", "c", "d"}
        assert not tags or tags[0] in (f"t{number}", f"other {number}")


def test_pandas_and_polars_have_captions(folder: Path) -> None:
    for module in ("pandas", "polars", "pyarrow"):
        need(module)
    import pandas
    import polars

    want = made(folder / "all.jsonl", RULE)
    assert made(pandas.DataFrame(rows(folder)), RULE) == want
    assert made(polars.DataFrame(rows(folder)), RULE) == want


def test_a_name_is_a_column_and_the_column_need_not_be_named(folder: Path) -> None:
    want = {number: f"t{number}, b, c, d" for number in range(COUNT)}
    for src in (folder / "all.jsonl", rows(folder)):
        assert made(src, "several") == want
        with loader(src, "several") as batches:
            batch = next(iter(batches))
            assert batch.columns == []
            with pytest.raises(ConfigError, match="no column 'several'"):
                batch["several"]
        with loader(src, "several", columns=["score", "several"]) as batches:
            batch = next(iter(batches))
            assert batch.columns == ["score", "several"]
            ids = batch.ids.tolist()
            assert batch["score"].tolist() == ids
            assert [texts[0] for texts in batch["several"]] == batch.captions


def test_text_files_are_columns_of_folders_and_lists(folder: Path) -> None:
    want = {number: f"t{number}, b, c, d" for number in range(COUNT)}
    paths = [row["path"] for row in rows(folder)]
    for src in (folder, paths, rows(folder)):
        assert made(src, ".txt") == want
    items = featherload.Items(paths, score=[*range(COUNT)])
    with loader(items, ".txt", columns=["score", ".txt"]) as batches:
        for batch in batches:
            assert batch.columns == ["score", ".txt"]
            ids = batch.ids.tolist()
            assert batch["score"].tolist() == ids
            assert batch[".txt"] == batch.captions == [want[number] for number in ids]
    images = [Path(path).read_bytes() for path in paths]
    with pytest.raises(ConfigError, match="not files of their own") as raised:
        loader(images, ".txt")
    assert raised.value.option == "captions"


def test_a_missing_text_is_named(folder: Path, tmp_path: Path) -> None:
    for name in ("00.png", "01.png", "00.txt"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    with loader(tmp_path, ".txt", columns=[".txt"], shuffle=False) as batches:
        batch = next(iter(batches))
        assert batch[".txt"] == ["t0, b, c, d", None]
        with pytest.raises(DatasetError, match=r"01\.txt.*does not exist.*`missing`"):
            _ = batch.captions
    assert made(tmp_path, Captions(".txt", missing="empty")) == {0: "t0, b, c, d", 1: ""}
    listed = [{"path": str(tmp_path / f"0{n}.png"), "c": [None, "x"][n]} for n in range(2)]
    with loader(listed, "c") as batches, pytest.raises(ConfigError, match="sample 0 has no text"):
        _ = next(iter(batches)).captions
    rule = Captions("c", missing="empty", prefix="p")
    assert made(listed, rule) == {0: "p ", 1: "p x"}


def test_members_of_tars_are_captions(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w") as tar:
        for number in range(3):
            for name, data in (
                (f"{number}.png", (folder / f"0{number}.png").read_bytes()),
                (f"{number}.txt", f" text {number}\n".encode()),
            ):
                member = tarfile.TarInfo(name)
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
    assert made(path, "txt") == {number: f"text {number}" for number in range(3)}


def test_map_runs_once_for_a_batch(folder: Path) -> None:
    calls: list[list[str]] = []

    def lengths(texts: list[str]) -> list[int]:
        calls.append(texts)
        return [len(text) for text in texts]

    with loader(folder, Captions(".txt", map=lengths)) as batches:
        for batch in batches:
            assert batch.captions == [len(text) for text in calls[-1]]
            assert batch.captions is batch.captions
        assert len(calls) == len(batches)


def test_captions_stay_with_a_moved_batch(folder: Path) -> None:
    need("torch")
    import torch

    calls = []

    def count(texts: list[str]) -> list[str]:
        calls.append(1)
        return texts

    rule = Captions(".txt", map=count)
    with loader(folder, rule, framework="torch") as batches:
        batch = next(iter(batches))
        moved = batch.to(dtype=torch.float64)
        assert moved.images.dtype is torch.float64
        assert moved.captions == batch.captions and len(calls) == 1
        assert type(pickle.loads(pickle.dumps(batch))) is tuple
        copy = featherload.Batch((batch.images, batch.labels))
        with pytest.raises(AttributeError, match="no captions"):
            _ = copy.captions
    # After the loader is closed, and without its pixels.
    kept = {number: f"t{number}, b, c, d" for number in range(COUNT)}
    assert moved.captions == [kept[number] for number in moved.ids.tolist()]


def test_masked_rows_have_an_empty_caption(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.png").write_bytes(b"no image")
    paths = [row["path"] for row in rows(folder)[:3]]
    texts = ["a", "b", "c", "d"]
    items = featherload.Items([*paths, str(tmp_path / "bad.png")], c=texts)
    options = {"on_error": "skip", "pad_last": True, "shuffle": False, "batch_size": 5}
    with loader(items, Captions("c", prefix="p"), **options) as batches:
        assert next(iter(batches)).captions == ["p a", "p b", "p c", "", ""]


def test_epochs_differ_and_a_state_continues(folder: Path) -> None:
    rule = dataclasses.replace(RULE, choose="first")
    with loader(folder / "all.jsonl", rule) as batches:
        epochs = [[batch.captions for batch in batches] for _ in range(2)]
        first, second = (sorted(chain.from_iterable(epoch)) for epoch in epochs)
        assert first != second
        batches.set_epoch(1)
        assert next(iter(batches)).captions == epochs[1][0]
        state = batches.state_dict()
    with loader(folder / "all.jsonl", rule) as batches:
        batches.load_state_dict(state)
        assert [batch.captions for batch in batches] == epochs[1][1:]


def test_torch_loaders_pass_captions_on(folder: Path, tmp_path: Path) -> None:
    need("torchvision")
    from torchvision.datasets import ImageFolder

    from featherload.torch import DataLoader

    for number in range(4):
        to = tmp_path / f"class{number % 2}"
        to.mkdir(exist_ok=True)
        for suffix in (".png", ".txt"):
            name = f"0{number}{suffix}"
            (to / name).write_bytes((folder / name).read_bytes())
    data = ImageFolder(str(tmp_path))
    found = set()
    for batch in DataLoader(data, 2, num_workers=1, recipe=EVAL, captions=".txt"):
        found.update(batch.captions)
    assert found == {f"t{number}, b, c, d" for number in range(4)}


def test_named_batches_have_captions(folder: Path) -> None:
    from featherload._named_batches import NamedBatches

    with loader(folder, ".txt") as batches:
        named = next(NamedBatches(iter(batches), ("pixel_values", "labels")))
        assert set(named) - {"labels"} == {"pixel_values", "captions"}
        assert len(named["captions"]) == 5


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("column", value) for value in ("", 3, None, "\ud800")),
        *(("choose", value) for value in ("longest", None, 1)),
        *(("missing", value) for value in ("none", None)),
        *(("drop", value) for value in (-0.1, 1.1, float("nan"), "x", None, True, 10**400)),
        *(("tag_drop", value) for value in (-1, 2)),
        *(("keep", value) for value in (-1, 1.5, "x", 2**32, True)),
        *((name, "yes") for name in ("lines", "wildcards", "shuffle")),
        *((name, 3) for name in ("prefix", "suffix", "separator", "keep_separator")),
        *((name, "") for name in ("separator", "keep_separator", "secondary_separator")),
        ("map", "x"),
    ],
)
def test_a_wrong_field_is_named(field: str, value: Any) -> None:
    make: Callable[..., Any] = Captions
    with pytest.raises(ConfigError, match=field) as raised:
        make(**{"column": "c", field: value})
    assert raised.value.option == field
    assert len(str(raised.value)) < 600


def test_what_cannot_be_a_caption_is_refused(folder: Path) -> None:
    for src in (folder / "all.jsonl", rows(folder)):
        with pytest.raises(ConfigError, match="'score' has") as raised:
            loader(src, "score")
        assert raised.value.option == "captions"
        with pytest.raises(featherload.Error, match="'caption'"):
            loader(src, "caption")
        with pytest.raises(ConfigError, match="`keep` is about tags"):
            loader(src, Captions("several", keep=1))
        with pytest.raises(ConfigError, match="captions is 3"):
            loader(src, 3)
    data = [b"bytes"] * COUNT
    with pytest.raises(ConfigError, match="captions are made of texts"):
        loader(featherload.Items([r["path"] for r in rows(folder)], c=data), "c")
    with loader(folder, None) as batches:
        batch = next(iter(batches))
        with pytest.raises(AttributeError, match="give the loader captions"):
            _ = batch.captions
    with pytest.raises(TypeError):
        Captions("c", "random")  # type: ignore[misc]
    texts = ["a", 3, *["b"] * (COUNT - 2)]
    with pytest.raises(ConfigError, match="'c'|\\bc\\b.*text|item 1"):
        loader(featherload.Items([r["path"] for r in rows(folder)], c=texts), "c")
    half = ["\ud800"] * COUNT
    items = featherload.Items([r["path"] for r in rows(folder)], c=half)
    with loader(items, "c") as batches, pytest.raises(ConfigError, match="no Unicode text"):
        _ = next(iter(batches)).captions


def test_a_plan_has_captions(folder: Path) -> None:
    for src in (folder, folder / "all.jsonl", rows(folder)):
        rule = ".txt" if src == folder else RULE
        plan = featherload.plan(src, EVAL, 5, 1, captions=rule)
        assert plan["memory"]["total_bytes"] > 0
    with pytest.raises(ConfigError, match="'score' has"):
        featherload.plan(folder / "all.jsonl", EVAL, 5, 1, captions="score")


def test_a_cache_keeps_text_files(folder: Path, tmp_path: Path) -> None:
    from featherload import cache

    cache.build(folder, tmp_path / "cache", columns=[".txt"], num_workers=1)
    rule = Captions(".txt", shuffle=True)
    assert made(tmp_path / "cache", rule) == made(folder, rule)


@pytest.mark.parametrize(
    ("base", "change"),
    [
        *(({}, {name: True}) for name in ("lines", "wildcards", "shuffle")),
        *(({}, {name: "p"}) for name in ("prefix", "suffix")),
        ({}, {"choose": "random"}),
        ({}, {"drop": 0.5}),
        ({}, {"tag_drop": 0.5}),
        ({}, {"secondary_separator": ";;"}),
        *(({"shuffle": True}, {"separator": value}) for value in (";", "|")),
        ({"shuffle": True}, {"keep": 2}),
        ({"shuffle": True}, {"keep_separator": "|||"}),
    ],
)
def test_every_field_reaches_the_library(
    folder: Path, base: dict[str, Any], change: dict[str, Any]
) -> None:
    several = [[f"{number}, a, {{p|q}}, b;;c ||| d\nline", "other"] for number in range(COUNT)]
    paths = [row["path"] for row in rows(folder)]
    items = featherload.Items(paths, c=several)
    both = [made(items, Captions("c", **fields)) for fields in (base, {**base, **change})]
    assert both[0] != both[1]


def test_a_preview_shows_the_captions_of_its_rows(folder: Path) -> None:
    """Those of the batch, before ``map``, whoever reads the column."""
    longest = Captions("several", choose="first", prefix="word " * 60, map=len)
    for src in (folder / "all.jsonl", rows(folder)):
        with loader(src, RULE) as batches:
            seen = batches.preview(COUNT)
            batch = next(iter(batches))
            want = dict(zip(batch.ids.tolist(), batch.captions, strict=True))
            assert {row.id: row.text for row in seen} == {row.id: want[row.id] for row in seen}
            assert any(text and f'"{text}"' in str(seen) for text in want.values())
            assert "figcaption" in seen._repr_html_()
        with loader(src, longest) as batches:
            row = batches.preview(1)[0]
            assert row.text.startswith("word ") and len(row.text) > 300
            assert len(row.caption()) < 140 and row.caption().endswith(' ..."')
    with loader(folder / "all.jsonl", None) as batches:
        assert batches.preview(1)[0].text is None
