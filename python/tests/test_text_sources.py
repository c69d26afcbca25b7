"""Image-text data sets as other tools write them, and the page that shows how to read each one.

The layouts are those of img2dataset 1.47, Megatron-Energon 7.4.1 and ``datasets``. The content of
each image is its number, so a caption of another image is noticed.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import sqlite3
import struct
import tarfile
import threading
from collections.abc import Iterator, Sequence
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from conftest import need

import featherload
from featherload import Captions, ConfigError, DatasetError, SampleError

PAGE = Path(__file__).parents[2] / "docs" / "text-sources.md"
EVAL = {"ops": [{"resize": {"size": [8, 8]}}]}


@pytest.fixture(autouse=True)
def caches(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stored indexes are those of one test."""
    need("PIL")
    need("pyarrow")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


class Row(NamedTuple):
    number: int
    """Of the image, read from its pixels."""
    caption: Any
    values: tuple[Any, ...]
    """Of the columns."""


def picture(number: int, form: str = "jpeg") -> bytes:
    """An image file whose red is ``number``."""
    from PIL import Image

    red = 8 + 16 * number
    stream = io.BytesIO()
    Image.new("RGB", (24, 16), (red, 255 - red, 128)).save(stream, form)
    return stream.getvalue()


def number_in(image: Any) -> int:
    red, green, _ = (image.reshape(3, -1) * 255).mean(axis=1)
    number = round(float(red - 8) / 16)
    assert abs(red - 8 - 16 * number) < 5 and abs(green + red - 255) < 5
    return number


def epoch(loader: featherload.Loader) -> list[Row]:
    """The rows that did not fail, in their order."""
    found = []
    for batch in loader:
        columns = [batch[name] for name in batch.columns]
        failed = {fault.row for fault in batch.faults if fault.substitute is None}
        for row in sorted({*range(len(batch.ids))} - failed):
            values = [column[row] for column in columns]
            values = [v.item() if isinstance(v, np.generic) else v for v in values]
            found.append(Row(number_in(batch.images[row]), batch.captions[row], tuple(values)))
    return found


def rows(
    src: Any, captions: str | Captions, columns: Sequence[str] = (), **options: Any
) -> list[Row]:
    """The rows of an epoch in the order of the files, equal for one and two workers.

    A shuffled epoch has the same rows, in an order that does not depend on workers either.
    """
    options = {"labels": "none", "batch_size": 4, **options}
    listed: list[list[Row]] = []
    for shuffle in (False, True):
        for workers in (1, 2):
            with featherload.Loader(
                src,
                EVAL,
                num_workers=workers,
                seed=3,
                shuffle=shuffle,
                captions=captions,
                columns=columns,
                **options,
            ) as loader:
                listed.append(epoch(loader))
        assert listed[-1] == listed[-2]
    if options.get("on_error") != "substitute":
        assert sorted(map(repr, listed[0])) == sorted(map(repr, listed[2]))
    assert len(listed[0]) < 5 or listed[0] != listed[2]
    return listed[0]


def refused(src: Any, captions: str | Captions, match: str, **options: Any) -> str:
    """The error of a run, at its start or at its first batches."""
    options = {"labels": "none", "batch_size": 4, "num_workers": 1, "shuffle": False, **options}
    with (
        pytest.raises((ConfigError, DatasetError, SampleError), match=match) as raised,
        featherload.Loader(src, EVAL, captions=captions, **options) as loader,
    ):
        epoch(loader)
    return str(raised.value)


def write(path: Path, data: bytes | str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data.encode() if isinstance(data, str) else data)


def write_parquet(path: Path, table: list[dict[str, Any]], **options: Any) -> None:
    import pyarrow
    import pyarrow.parquet

    path.parent.mkdir(parents=True, exist_ok=True)
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(table), path, **options)


def write_tar(path: Path, members: Sequence[tuple[str, bytes]]) -> None:
    """A tar with the owner and mode of webdataset's ``TarWriter``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w") as tar:
        for name, data in members:
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(data), 0o444
            member.uname = member.gname = "bigdata"
            tar.addfile(member, io.BytesIO(data))


# ---- images and metadata.jsonl ----

# The order of the rows is not that of the names.
PETS = {
    "train": [(3, "dogs/3.png"), (0, "cats/0.png"), (2, "dogs/deep/2.jpg"), (1, "cats/1.png")],
    "test": [(5, "5.png"), (4, "4.jpg")],
}


def metadata(split: str) -> list[dict[str, Any]]:
    return [
        {"file_name": name, "text": f"caption {n}, \u00e9", "score": n / 4, "views": n + 10**12}
        for n, name in PETS[split]
    ]


def write_pets(root: Path, form: str = "jsonl") -> None:
    for split, images in PETS.items():
        for number, name in images:
            form_of_image = "png" if name.endswith("png") else "jpeg"
            write(root / split / name, picture(number, form_of_image))
        path = root / split / f"metadata.{form}"
        table = metadata(split)
        if form == "jsonl":
            write(path, "".join(json.dumps(row) + "\n" for row in table))
        elif form == "csv":
            lines = [",".join(f'"{value}"' for value in row.values()) for row in table]
            write(path, "\n".join([",".join(table[0]), *lines]) + "\n")
        else:
            write_parquet(path, table)


def pets(split: str) -> list[Row]:
    return [
        Row(n, f"caption {n}, \u00e9", (n / 4, n + 10**12, f"caption {n}, \u00e9"))
        for n, _ in PETS[split]
    ]


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet"])
def test_a_split_has_the_rows_of_its_metadata(tmp_path: Path, form: str) -> None:
    write_pets(tmp_path, form)
    write(tmp_path / "train" / "cats" / "no-row.png", picture(9, "png"))
    for split in PETS:
        path = tmp_path / split / f"metadata.{form}"
        assert rows(path, "text", ["score", "views", "text"]) == pets(split)
        if form != "parquet":
            listed = rows(tmp_path / split, "text", ["score", "views", "text"], list=path)
            assert listed == pets(split)


def test_metadata_beside_the_splits(tmp_path: Path) -> None:
    write_pets(tmp_path)
    table = [
        {**row, "file_name": f"{split}/{row['file_name']}"}
        for split in PETS
        for row in metadata(split)
    ]
    write(tmp_path / "metadata.jsonl", "".join(json.dumps(row) + "\n" for row in table))
    found = rows(tmp_path / "metadata.jsonl", "text", ["score", "views", "text"])
    assert found == pets("train") + pets("test")


def test_hugging_faces_data_set_of_the_folder_is_equal(tmp_path: Path) -> None:
    need("datasets")
    need("torch")
    import datasets

    from featherload.torch import DataLoader

    write_pets(tmp_path / "pets")
    loaded = datasets.load_dataset(
        "imagefolder", data_dir=str(tmp_path / "pets"), cache_dir=str(tmp_path / "cache")
    )
    for split in PETS:
        of = loaded[split]
        assert [row["text"] for row in of] == [row["text"] for row in metadata(split)]
        assert rows(of, "text", ["score", "views", "text"]) == pets(split)
        for workers in (0, 2):
            numbers, texts = [], []
            for batch in DataLoader(of, 3, num_workers=workers, recipe=EVAL, captions="text"):
                numbers += [number_in(image) for image in batch.images.numpy()]
                texts += batch.captions
            assert numbers == [row.number for row in pets(split)]
            assert texts == [row.caption for row in pets(split)]


def test_metadata_without_a_text_or_an_image(tmp_path: Path) -> None:
    for number in (0, 1, 3):
        write(tmp_path / f"{number}.png", picture(number, "png"))
    table = [
        {"file_name": "0.png", "text": "caption 0"},
        {"file_name": "1.png", "text": None},
        {"file_name": "2.png", "text": "caption 2"},
        {"file_name": "3.png"},
    ]
    path = tmp_path / "metadata.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in table))
    rule = Captions("text", missing="empty")
    want = [Row(0, "caption 0", ("caption 0",)), Row(1, "", (None,)), Row(3, "", (None,))]
    assert rows(path, rule, ["text"], on_error="skip") == want
    assert "2.png" in refused(path, rule, "cannot be opened")
    text = refused(path, "text", "sample 1 has no text in column 'text'", on_error="skip")
    assert "1.png" in text and "`missing`" in text
    refused(path, "caption", "'caption'.*'file_name'")
    # Its folder has values only through the table.
    text = refused(tmp_path, "text", "a folder has none: give .*, a table of its images")
    assert str(path) in text


def test_a_folder_of_splits_names_one(tmp_path: Path) -> None:
    write_pets(tmp_path)
    with pytest.raises(DatasetError, match="test, train are splits.*give one of them"):
        featherload.Loader(tmp_path, EVAL)


# ---- Parquet with images, and with addresses ----


def test_parquet_of_hugging_face(tmp_path: Path) -> None:
    for shard in range(2):
        table = [
            {
                "image": {"bytes": picture(n), "path": f"{n}.jpg"},
                "caption": f"caption {n}",
                "url": f"https://example.invalid/{n}.jpg",
                "similarity": 0.3 + n / 100,
                "hash": 2**62 + n,
            }
            for n in (3 * shard + 2, 3 * shard, 3 * shard + 1)
        ]
        write_parquet(tmp_path / f"train-{shard:05}-of-00002.parquet", table, row_group_size=2)
    write_parquet(tmp_path / "test-00000-of-00001.parquet", table)
    columns = ["similarity", "hash", "url"]
    assert rows(f"{tmp_path}/train-*.parquet", "caption", columns) == [
        Row(n, f"caption {n}", (0.3 + n / 100, 2**62 + n, f"https://example.invalid/{n}.jpg"))
        for n in (2, 0, 1, 5, 3, 4)
    ]
    refused(tmp_path, "caption", r"several splits \(test, train\): give one")


@pytest.fixture
def web(tmp_path: Path) -> Iterator[tuple[str, list[str]]]:
    """The address of a server with images 0 to 4, and the requests that it had."""
    requests: list[str] = []

    class Handler(SimpleHTTPRequestHandler):
        def log_request(self, *_: Any) -> None:
            requests.append(self.command)

        def log_message(self, *_: Any) -> None:
            pass

    for number in range(5):
        write(tmp_path / "web" / f"{number}.jpg", picture(number))
    server = ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(Handler, directory=str(tmp_path / "web"))
    )
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", requests
    server.shutdown()
    thread.join()
    server.server_close()


def laion(address: str, numbers: Sequence[int]) -> list[dict[str, Any]]:
    return [
        {
            "SAMPLE_ID": 10**12 + n,
            "URL": f"{address}/{n}.jpg",
            "TEXT": f"caption {n}",
            "HEIGHT": 16,
            "WIDTH": 24,
            "LICENSE": "?",
            "NSFW": "UNLIKELY",
            "similarity": 0.3 + n / 100,
        }
        for n in numbers
    ]


def test_addresses_of_laion_are_downloaded_or_named(
    web: tuple[str, list[str]], tmp_path: Path
) -> None:
    address, requests = web
    path = tmp_path / "laion.parquet"
    write_parquet(path, laion(address, [3, 0, 5, 1]))
    here = {"fetch_dir": tmp_path / "fetched", "fetch_limit": "100M"}
    text = refused(path, "TEXT", "1 of 4 addresses have no image", **here)
    assert f"{address}/5.jpg" in text and "dead.jsonl" in text and "`on_error`" in text
    assert set(requests) == {"HEAD"}
    found = rows(path, "TEXT", ["similarity", "SAMPLE_ID"], on_error="skip", **here)
    assert found == [Row(n, f"caption {n}", (0.3 + n / 100, 10**12 + n)) for n in (3, 0, 1)]


def test_metadata_of_laion_without_addresses_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "laion.parquet"
    table = [{"TEXT": "a", "WIDTH": 24, "similarity": 0.3}]
    write_parquet(path, table)
    refused(path, "TEXT", "no image column.*'TEXT', 'WIDTH', 'similarity'.*paths or addresses")


# ---- img2dataset ----

# Of each shard: images in the order in which they arrived. 2 has no text, and 3 and 7 no image.
PAIRS = [[3, 1, 0, 2, 5, 4], [7, 6, 8]]
NO_TEXT, FAILED = 2, (3, 7)
HERE = [n for shard in PAIRS for n in shard if n not in FAILED]


def key_of(number: int) -> str:
    shard = next(at for at, numbers in enumerate(PAIRS) if number in numbers)
    return f"{shard:05}{number - min(PAIRS[shard]):04}"


def similarity(number: int) -> float:
    return 0.3 + number / 100


def meta_of(number: int) -> dict[str, Any]:
    """A row of the Parquet file, and the JSON of an image."""
    failed = number in FAILED
    return {
        "similarity": similarity(number),
        "SAMPLE_ID": 10**12 + number,
        "hash": 2**62 + number,
        "caption": None if number == NO_TEXT else f"caption {number} \u00e9",
        "url": f"http://localhost/{number}.jpg",
        "key": key_of(number),
        "status": "failed_to_download" if failed else "success",
        "error_message": "HTTP Error 404: File not found" if failed else None,
        "width": None if failed else 24,
        "height": None if failed else 16,
        "original_width": None if failed else 60,
        "original_height": None if failed else 40 + number,
        "exif": None if failed else "{}",
        "sha256": None if failed else hashlib.sha256(picture(number)).hexdigest(),
    }


def write_pairs(root: Path, form: str, captions: bool = True) -> None:
    """The output of img2dataset with ``output_format=form``."""
    for shard, numbers in enumerate(PAIRS):
        failed = sum(n in FAILED for n in numbers)
        status = {"success": len(numbers) - failed, "HTTP Error 404: File not found": failed}
        stats = {"count": len(numbers), "failed_to_resize": 0, "status_dict": status}
        write(root / f"{shard:05}_stats.json", json.dumps(stats, indent=4))
        table = [meta_of(n) for n in numbers]
        if form == "parquet":
            for n, row in zip(numbers, table, strict=True):
                row["jpg"] = None if n in FAILED else picture(n)
        write_parquet(root / f"{shard:05}.parquet", table)
        members = []
        for n in numbers:
            if n not in FAILED:
                meta = meta_of(n)
                members.append((f"{key_of(n)}.jpg", picture(n)))
                members.append((f"{key_of(n)}.json", json.dumps(meta, indent=4).encode()))
                if captions:
                    members.append((f"{key_of(n)}.txt", (meta["caption"] or "").encode()))
        if form == "webdataset":
            write_tar(root / f"{shard:05}.tar", members)
        if form == "files":
            for name, data in members:
                write(root / f"{shard:05}" / name, data)


def pair(number: int, *names: str) -> Row:
    meta = meta_of(number)
    return Row(number, meta["caption"] or "", tuple(meta[name] for name in names))


NAMES = ("similarity", "SAMPLE_ID", "key", "url", "original_height", "caption", "error_message")


def test_tars_of_img2dataset(tmp_path: Path) -> None:
    write_pairs(tmp_path, "webdataset")
    # All images of this shard failed.
    write_tar(tmp_path / "00002.tar", [])
    want = [pair(n, *NAMES[:-1]) for n in HERE]
    assert rows(f"{tmp_path}/*.tar", "txt", NAMES[:-1]) == want
    assert rows(f"{tmp_path}/{{00000..00001}}.tar", "txt", NAMES[:-1]) == want
    # The text that is missing is an empty file, and null in the JSON.
    assert rows(f"{tmp_path}/*.tar", Captions("caption", missing="empty"), NAMES[:-1]) == want
    text = refused(f"{tmp_path}/*.tar", "caption", "has no text in column 'caption'")
    assert f"00000.tar/{key_of(NO_TEXT)}.jpg" in text
    with featherload.Loader(f"{tmp_path}/*.tar", EVAL, 9, 1, shuffle=False) as loader:
        (batch,) = loader
        assert batch.labels is None
        assert batch.paths() == [
            tmp_path / f"{key_of(n)[:5]}.tar" / f"{key_of(n)}.jpg" for n in HERE
        ]


def test_no_workers_are_refused(tmp_path: Path) -> None:
    write_pairs(tmp_path, "webdataset")
    refused(f"{tmp_path}/*.tar", "txt", "num_workers=0.*give at least 1", num_workers=0)


def test_whole_numbers_of_json_keep_their_digits_or_are_refused(tmp_path: Path) -> None:
    write_pairs(tmp_path, "webdataset")
    tars = f"{tmp_path}/*.tar"
    says = "column 'hash'.*more digits than float64.*name the column json"
    refused(tars, "txt", says, columns=["hash"])
    found = rows(tars, "txt", ["json"])
    assert [json.loads(row.values[0])["hash"] for row in found] == [2**62 + n for n in HERE]


def test_a_folder_of_tars_names_their_pattern(tmp_path: Path) -> None:
    """Beside the tars are tables with the address of each image. They are not asked for."""
    write_pairs(tmp_path, "webdataset")
    assert (tmp_path / "00000.parquet").exists()
    tars = re.escape(f"{tmp_path}/*.tar")
    refused(tmp_path, "txt", f"to read its tar shards give '{tars}'")
    tables = re.escape(f"{tmp_path}/*.parquet")
    says = f"to read them give '{tars}', and '{tables}' for its Parquet files"
    with pytest.raises(DatasetError, match=says):
        featherload.Loader(tmp_path, EVAL)
    tar = tmp_path / "00000.tar"
    with pytest.raises(DatasetError, match="is a tar archive: give its path, or a pattern"):
        featherload.Loader(tmp_path, EVAL, list=tar)
    table = tmp_path / "00000.parquet"
    with pytest.raises(DatasetError, match="is a Parquet file: give its path as the data set"):
        featherload.Loader(tmp_path, EVAL, list=table)


def test_tars_without_texts_name_their_members(tmp_path: Path) -> None:
    write_pairs(tmp_path, "webdataset", captions=False)
    refused(f"{tmp_path}/*.tar", "txt", "no column 'txt': their members are 'jpg', 'json'")
    refused(f"{tmp_path}/*.tar", "text", "no column 'text'.*keys of its JSON are .*'caption'")


def test_files_of_img2dataset(tmp_path: Path) -> None:
    write_pairs(tmp_path, "files")
    found = rows(tmp_path, ".txt", [".json"])
    assert [(row.number, row.caption) for row in found] == [
        (n, pair(n).caption) for n in sorted(HERE)
    ]
    for row in found:
        meta = json.loads(row.values[0])
        assert (meta["key"], meta["similarity"]) == (key_of(row.number), similarity(row.number))
    # A shard alone.
    one = rows(tmp_path / "00001", ".txt", [".json"])
    assert [row.number for row in one] == [6, 8]
    # Without `labels` the folders are classes.
    with featherload.Loader(tmp_path, EVAL, 4, 1) as loader:
        assert loader.dataset.classes == ["00000", "00001"]


def test_files_of_img2dataset_without_a_text(tmp_path: Path) -> None:
    write_pairs(tmp_path, "files")
    gone = tmp_path / key_of(4)[:5] / f"{key_of(4)}.txt"
    gone.unlink()
    assert str(gone) in refused(tmp_path, ".txt", "does not exist.*`missing`")
    found = rows(tmp_path, Captions(".txt", missing="empty"), [".txt"])
    assert [row for row in found if row.number == 4] == [Row(4, "", (None,))]
    assert [row.values[0] for row in found if row.number != 4] == [
        pair(n).caption for n in sorted(HERE) if n != 4
    ]


@pytest.mark.parametrize("module", ["pandas", "pyarrow"])
def test_metadata_of_img2dataset_joins_its_files(tmp_path: Path, module: str) -> None:
    need(module)
    import pyarrow
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    write_pairs(tmp_path, "files")
    table = pyarrow.concat_tables(pq.read_table(tmp_path / f"{s:05}.parquet") for s in range(2))
    table = table.filter(pc.equal(table["status"], "success"))
    key = table["key"]
    path = pc.binary_join_element_wise(pc.utf8_slice_codeunits(key, 0, 5), key, "/")
    table = table.append_column("path", pc.binary_join_element_wise(path, ".jpg", ""))
    names = (*NAMES[:-1], "hash")
    rule = Captions("caption", missing="empty")
    found = rows(
        table.to_pandas() if module == "pandas" else table, rule, names, root=str(tmp_path)
    )
    assert [tuple(map(repr, row)) for row in found] == [
        tuple(map(repr, pair(n, *names))) for n in HERE
    ]


def test_parquet_of_img2dataset(tmp_path: Path) -> None:
    write_pairs(tmp_path, "parquet")
    names = (*NAMES[:-1], "hash")
    rule = Captions("caption", missing="empty")
    for src in (tmp_path, f"{tmp_path}/*.parquet"):
        found = rows(
            src, rule, [name for name in names if name != "original_height"], on_error="skip"
        )
        assert found == [
            pair(n, *(name for name in names if name != "original_height")) for n in HERE
        ]
    text = refused(tmp_path, rule, "sample 0.*on_error='skip'.*'substitute'")
    assert "00000.parquet/row-0" in text
    refused(tmp_path, "caption", "sample 3 has no text in column 'caption'", on_error="skip")
    # Each failed row is an image that is there, with its caption.
    found = rows(tmp_path, rule, ["key"], on_error="substitute")
    assert found == [pair(1 if n == 3 else 6 if n == 7 else n, "key") for n in chain(*PAIRS)]
    with featherload.Loader(
        tmp_path, EVAL, 9, 1, shuffle=False, on_error="skip", captions=rule
    ) as loader:
        (batch,) = loader
        assert [(fault.row, fault.id) for fault in batch.faults] == [(0, 0), (6, 6)]
        assert batch.captions[0] == batch.captions[6] == ""
        assert {fault.reason for fault in batch.faults} == {"the image is empty"}


# ---- WebDataset ----


def write_shards(root: Path, numbers: Sequence[Sequence[int]]) -> None:
    for shard, of in enumerate(numbers):
        members = []
        for n in of:
            meta = {"caption": f"json {n}", "meta": {"score": n / 4, "lines": [f"a {n}", f"b {n}"]}}
            members.append((f"{n:09}.jpg", picture(n)))
            members.append((f"{n:09}.json", json.dumps(meta).encode()))
            members.append((f"{n:09}.txt", f"caption {n}\n".encode()))
        write_tar(root / f"{shard:05}.tar", members)


def test_shards_have_texts_and_json(tmp_path: Path) -> None:
    numbers = [[2, 0], [1, 4, 3]]
    write_shards(tmp_path, numbers)
    listed = [*chain(*numbers)]
    tars = f"{tmp_path}/*.tar"
    want = [Row(n, f"caption {n}", (n / 4, f"json {n}")) for n in listed]
    assert rows(tars, "txt", ["/meta/score", "caption"]) == want
    assert [row.caption for row in rows(tars, "caption")] == [f"json {n}" for n in listed]
    assert [row.caption for row in rows(tars, "/meta/lines")] == [f"a {n}" for n in listed]
    refused(tars, "/meta/score", "column '/meta/score' has float64, and captions are made of texts")


def test_shards_with_a_text_or_an_image_alone(tmp_path: Path) -> None:
    write_tar(
        tmp_path / "0.tar",
        [
            ("a.jpg", picture(0)),
            ("a.txt", b"caption 0"),
            ("b.txt", b"of no image"),
            ("b.json", b"{}"),
            ("c.jpg", picture(2)),
            ("d.txt", b"caption 3"),
            ("d.jpg", picture(3)),
        ],
    )
    found = rows(tmp_path / "0.tar", Captions("txt", missing="empty"), ["txt"])
    assert found == [
        Row(0, "caption 0", ("caption 0",)),
        Row(2, "", (None,)),
        Row(3, "caption 3", ("caption 3",)),
    ]
    text = refused(tmp_path / "0.tar", "txt", "sample 1 has no text in column 'txt'.*`missing`")
    assert "0.tar/c.jpg" in text


# ---- Megatron-Energon ----

SHARDS = [[1, 0], [2, 3], [5, 4], [6], [8, 7]]


def write_energon(root: Path, train: str = "  - shards/{00000..00001}.tar\n") -> None:
    """What ``energon prepare`` leaves: without ``train`` the split has one entry."""
    write_shards(root / "shards", SHARDS)
    entries = []
    for shard, numbers in enumerate(SHARDS):
        path = root / "shards" / f"{shard:05}.tar"
        with tarfile.open(path) as tar:
            offsets = [member.offset for member in tar if member.name.endswith("jpg")]
            end = tar.offset
        ends = [*offsets[1:], end]
        write(path.with_name(f"{path.name}.idx"), struct.pack(f"<{len(ends) + 1}Q", 0, *ends))
        for at, (number, start, stop) in enumerate(zip(numbers, offsets, ends, strict=True)):
            entries.append((shard, f"{number:09}", at, start, stop - start))
    meta = root / ".nv-meta"
    counts = {f"shards/{at:05}.tar": len(numbers) for at, numbers in enumerate(SHARDS)}
    write(
        meta / ".info.json",
        json.dumps({"energon_version": "7.4.1", "shard_counts": counts}, indent=2),
    )
    write(
        meta / "dataset.yaml",
        "sample_type:\n  __module__: megatron.energon\n  __class__: CaptioningSample\n"
        "field_map:\n  image: jpg\n  caption: txt\n",
    )
    write(
        meta / "split.yaml",
        f"split_parts:\n  train:\n{train}  val:\n  - shards/00002.tar\n"
        "  test:\n  - shards/00003.tar\nexclude: []\n",
    )
    write(meta / "index.uuid", "cb21cbcf-5cde-4077-a9be-730edeb735c5")
    database = sqlite3.connect(meta / "index.sqlite")
    database.execute(
        "CREATE TABLE samples (tar_file_id INTEGER NOT NULL, sample_key TEXT NOT NULL UNIQUE, "
        "sample_index INTEGER NOT NULL, byte_offset INTEGER, byte_size INTEGER)"
    )
    database.executemany("INSERT INTO samples VALUES (?, ?, ?, ?, ?)", entries)
    database.commit()
    database.close()


def shown(heading: str) -> str:
    """The last block of Python of a section of the page."""
    section = PAGE.read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    blocks: list[str] = re.findall(r"^```python no-test [^\n]*\n(.*?)^```", section, re.M | re.S)
    return blocks[-1]


def test_splits_of_energon(tmp_path: Path) -> None:
    need("yaml")
    write_energon(tmp_path, "  - shards/00004.tar\n  - shards/{00000..00001}.tar\n")
    before = sorted(path for path in tmp_path.rglob("*"))
    names: dict[str, Any] = {}
    exec(shown("Megatron-Energon").split("\nloader")[0], names)
    for split, numbers in {"train": [8, 7, 1, 0, 2, 3], "val": [5, 4], "test": [6]}.items():
        tars = names["tars_of"](tmp_path, split)
        assert rows(tars, "txt", ["/meta/score"]) == [
            Row(n, f"caption {n}", (n / 4,)) for n in numbers
        ]
    everything = rows(f"{tmp_path}/**/*.tar", "caption")
    assert [(row.number, row.caption) for row in everything] == [
        (n, f"json {n}") for n in chain(*SHARDS)
    ]
    assert sorted(path for path in tmp_path.rglob("*")) == before


def test_a_wrong_source_of_energon_is_named(tmp_path: Path) -> None:
    write_energon(tmp_path)
    tars = [str(tmp_path / "shards" / f"{shard:05}.tar") for shard in range(2)]
    refused(tars, "txt", r"list of tar shards.*shards/\*\.tar.*or braces", labels=None)
    with pytest.raises(DatasetError, match=r"to read them give '.*/shards/\*\.tar'"):
        featherload.Loader(tmp_path, EVAL)
    refused(tmp_path, "txt", r"to read its tar shards give '.*/shards/\*\.tar'")
    refused(f"{tmp_path}/shards/*", "txt", r"00000\.tar\.idx: is not a tar archive")
    refused(f"{tmp_path}/shards/{{00004..00005}}.tar", "txt", r"00005\.tar: no such shard")


# ---- folders with text files ----


@pytest.mark.parametrize("extension", [".txt", ".caption"])
def test_folders_with_text_files(tmp_path: Path, extension: str) -> None:
    for number in range(5):
        folder = tmp_path / ("cats" if number % 2 else "dogs")
        write(folder / f"{number}.jpg", picture(number))
        for other in (".txt", ".caption"):
            write(folder / f"{number}{other}", f"{other} {number}\n")
    order = [1, 3, 0, 2, 4]
    want = [Row(n, f"{extension} {n}", (f".txt {n}",)) for n in order]
    assert rows(tmp_path, extension, [".txt"]) == want
    gone = tmp_path / "dogs" / f"2{extension}"
    gone.unlink()
    assert str(gone) in refused(tmp_path, extension, "does not exist.*`missing`")
    found = rows(tmp_path, Captions(extension, missing="empty"))
    assert [row.caption for row in found] == [f"{extension} {n}" if n != 2 else "" for n in order]


# ---- the page ----


def write_flowers(root: Path) -> None:
    for shard in range(2):
        table = [
            {"image": {"bytes": picture(n)}, "caption": f"caption {n}", "similarity": n / 9}
            for n in (2 * shard, 2 * shard + 1)
        ]
        write_parquet(root / "flowers/data" / f"train-{shard:05}-of-00002.parquet", table)


def write_photos(root: Path) -> None:
    for number in range(3):
        write(root / "photos/cats" / f"{number}.jpg", picture(number))
        for extension in (".txt", ".caption"):
            write(root / "photos/cats" / f"{number}{extension}", f"caption {number}")


def write_many_shards(root: Path) -> None:
    for number in range(128):
        write_tar(
            root / "pairs" / f"{number:03}.tar",
            [
                ("1.jpg", picture(number % 8)),
                ("1.json", json.dumps({"meta": {"score": number / 8}}).encode()),
                ("1.txt", f"caption {number % 8}".encode()),
            ],
        )


# For each section the files that its blocks read, and the numbers of the images.
SECTIONS: dict[str, tuple[Any, list[int]]] = {
    "Images and metadata.jsonl": (lambda root: write_pets(root / "pets"), [3, 0, 2, 1]),
    "Parquet with images": (write_flowers, [0, 1, 2, 3]),
    "img2dataset, tars": (lambda root: write_pairs(root / "pairs", "webdataset"), HERE),
    "img2dataset, files": (lambda root: write_pairs(root / "pairs", "files"), sorted(HERE)),
    "img2dataset, Parquet": (
        lambda root: write_pairs(root / "pairs", "parquet"),
        [1 if n == 3 else 6 if n == 7 else n for n in chain(*PAIRS)],
    ),
    "WebDataset": (write_many_shards, [*range(8)] * 16),
    "Megatron-Energon": (lambda root: write_energon(root / "pairs"), [1, 0, 2, 3]),
    "Folders with text files": (write_photos, [0, 1, 2]),
}


def test_every_block_of_the_page_is_run() -> None:
    page = PAGE.read_text()
    sections = [part.split("\n", 1) for part in page.split("\n## ")[1:]]
    assert [head for head, text in sections if "```python" in text] == [*SECTIONS]


@pytest.mark.parametrize("heading", SECTIONS)
def test_blocks_of_the_page_give_pairs(
    heading: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("datasets", "pandas", "yaml"):
        need(module)
    make, numbers = SECTIONS[heading]
    make(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", str(tmp_path / "cache"))
    section = PAGE.read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    blocks = re.findall(r"^```python no-test [^\n]*\n(.*?)^```", section, re.M | re.S)
    names: dict[str, Any] = {"featherload": featherload, "EVAL": EVAL}
    for block in blocks:
        assert block.count("batch_size=256") == 1
        small = block.replace("batch_size=256", "batch_size=4, shuffle=False, num_workers=1")
        exec(compile(small.replace('"train224"', "EVAL"), str(PAGE), "exec"), names)
        with names.pop("loader") as loader:
            found = epoch(loader)
        for row in found:
            accent = " \u00e9" if heading.startswith("img2dataset") else ""
            accent = ", \u00e9" if heading.startswith("Images and") else accent
            text = f"caption {row.number}{accent}"
            assert row.caption == ("" if accent == " \u00e9" and row.number == NO_TEXT else text)
        want = numbers
        if "similarity" in block and "> 0.3" in block:
            want = [n for n in HERE if similarity(n) > 0.3]
        assert [row.number for row in found] == want
