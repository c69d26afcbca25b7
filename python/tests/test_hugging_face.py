"""Data sets of Hugging Face's ``datasets`` and Arrow files, in place."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import need

import featherload
from featherload import ConfigError, DatasetError

EVAL = {"ops": [{"resize": {"size": [16, 16]}}]}
COLUMNS = ["caption", "score", "tags", "words", "box", "flag", "fixed"]


@pytest.fixture(scope="module", autouse=True)
def installed() -> None:
    need("datasets")
    need("pyarrow")


@pytest.fixture(scope="module")
def saved(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data set of 64 photos in three files, with columns of all kinds."""
    import datasets

    files = sorted(photos.rglob("*.jpg"))[::4]
    names = sorted({path.parent.name for path in files})
    lists = datasets.Sequence
    features = datasets.Features(
        {
            "image": datasets.Image(),
            "label": datasets.ClassLabel(names=names),
            "caption": datasets.Value("string"),
            "score": datasets.Value("float32"),
            "tags": lists(datasets.Value("int16")),
            "words": lists(datasets.Value("string")),
            "box": lists(lists(datasets.Value("float32"), length=4)),
            "flag": datasets.Value("bool"),
            "fixed": lists(datasets.Value("int64"), length=3),
            "objects": {"n": datasets.Value("int64"), "ids": lists(datasets.Value("uint8"))},
        }
    )
    rows = [
        {
            "image": {"bytes": path.read_bytes(), "path": path.name},
            "label": names.index(path.parent.name),
            "caption": None if i % 9 == 4 else f"caption {i} é",
            "score": None if i % 9 == 5 else i / 7,
            "tags": None if i % 9 == 6 else list(range(i % 4)),
            "words": [f"w{k}" for k in range(i % 3)],
            "box": [[i, 0.5, 2, 3]] * (i % 3),
            "flag": i % 2 == 0,
            "fixed": [i, i + 1, -i],
            "objects": {"n": i, "ids": [i] * (i % 2)},
        }
        for i, path in enumerate(files)
    ]
    folder = tmp_path_factory.mktemp("hugging-face") / "saved"
    datasets.Dataset.from_list(rows, features=features).save_to_disk(folder, num_shards=3)
    return folder


def same(batch: Any, want: Any) -> None:
    """The columns of a batch against ``datasets``' own values of the same rows."""
    for name in batch.columns:
        found, of = batch[name], [row[name] for row in want]
        if isinstance(found, featherload.Ragged):
            assert [row.tolist() for row in found.rows()] == [row or [] for row in of], name
        elif isinstance(found, list):
            assert found == of, name
        else:
            of = [np.nan if value is None else value for value in of]
            assert np.array_equal(found, np.array(of, found.dtype), equal_nan=True), name
            assert found.dtype == {"score": "f4", "flag": "?", "fixed": "i8"}[name]


def compare(src: Any, dataset: Any, **options: Any) -> None:
    """A source against the rows of a data set: ids, labels, pixels and columns."""
    from PIL import Image

    rows = dataset.cast_column("image", dataset.features["image"].__class__(decode=False))
    exact = {"ops": [{"resize": {"size": [16, 16], "interpolation": "nearest"}}]}
    seen = []
    options = {"seed": 5, "dtype": "uint8", "columns": COLUMNS, **options}
    with featherload.Loader(src, exact, 7, 2, **options) as loader:
        assert len(loader.dataset) == len(dataset)
        assert loader.dataset.classes == dataset.features["label"].names
        for batch in loader:
            want = [rows[i] for i in batch.ids.tolist()]
            assert batch.labels.tolist() == [row["label"] for row in want]
            same(batch, want)
            for pixels, row in zip(batch.images, want, strict=True):
                image = Image.open(io.BytesIO(row["image"]["bytes"])).convert("RGB")
                image = image.resize((16, 16), Image.Resampling.NEAREST)
                levels = np.asarray(image).transpose(2, 0, 1)
                assert np.array_equal(pixels, levels)
            seen += batch.ids.tolist()
    assert sorted(seen) == [*range(len(dataset))]


def test_folders_and_files_are_read_where_they_lie(saved: Path) -> None:
    import datasets

    dataset = datasets.load_from_disk(str(saved))
    compare(saved, dataset)
    compare(f"{saved}/data-*.arrow", dataset)
    first = datasets.Dataset.from_file(str(saved / "data-00000-of-00003.arrow"))
    compare(saved / "data-00000-of-00003.arrow", first)


def test_data_sets_are_read_in_their_own_order(saved: Path) -> None:
    import datasets

    dataset = datasets.load_from_disk(str(saved))
    shuffled = dataset.shuffle(seed=3)
    for of in (
        dataset,
        shuffled,
        shuffled.select(range(5, 40)),
        dataset.select([7, 7, 60, 0]),
        dataset.filter(lambda row: row["score"] is not None and row["score"] > 4),
        datasets.concatenate_datasets([dataset.select(range(30, 50)), shuffled, dataset]),
        dataset.train_test_split(0.25, seed=1)["test"],
        dataset.with_format("torch").with_format(None),
        dataset.remove_columns("objects"),
        dataset.add_column("extra", range(len(dataset))),
    ):
        compare(of, of)


def test_data_sets_in_memory_are_copied_once(saved: Path) -> None:
    import datasets

    mapped = datasets.load_from_disk(str(saved))
    memory = datasets.load_from_disk(str(saved), keep_in_memory=True)
    plain = mapped.cast_column("image", datasets.Image(decode=False))
    rows = [*plain]
    listed = datasets.Dataset.from_list(rows, features=mapped.features)
    shuffled = memory.shuffle(seed=3)
    for of in (
        memory,
        listed,
        datasets.Dataset.from_dict(
            {name: [row[name] for row in rows] for name in rows[0]}, features=mapped.features
        ),
        datasets.Dataset.from_generator(
            lambda: iter(rows), features=mapped.features, keep_in_memory=True
        ),
        shuffled,
        shuffled.select(range(5, 40)),
        listed.select([7, 7, 60, 0]),
        memory.filter(lambda row: row["label"] > 1, keep_in_memory=True),
        memory.map(lambda row: {"score": 0.5}, keep_in_memory=True),
        # A part is in a file, and a part in memory.
        datasets.concatenate_datasets([mapped.select(range(30, 50)), shuffled, mapped, listed]),
        memory.train_test_split(0.25, seed=1)["test"],
    ):
        compare(of, of)
    # Bytes alone, and paths alone.
    count = sum(len(row["image"]["bytes"]) for row in rows)
    values = datasets.Dataset.from_dict({"image": [row["image"]["bytes"] for row in rows]})
    with featherload.Loader(values, EVAL, 8, 1) as loader:
        assert sum(len(batch.ids) for batch in loader) == len(rows) // 8 * 8
    here = featherload.plan(values, EVAL, 8, 1)["memory"]["fixed_bytes"]
    files = mapped.select_columns(["image"])
    there = featherload.plan(files, EVAL, 8, 1)["memory"]["fixed_bytes"]
    assert count - 60 * len(rows) <= here - there <= count + 60 * len(rows)
    # An image that is missing fails alone.
    rows[3] = {**rows[3], "image": None}
    holes = datasets.Dataset.from_list(rows, features=mapped.features)
    with featherload.Loader(holes, EVAL, 8, 1, shuffle=False, on_error="skip") as loader:
        failed = [fault.id for batch in loader for fault in batch.faults]
    assert failed == [3]


def test_a_shuffled_data_set_equals_torchs_loader(saved: Path) -> None:
    need("torch")
    import datasets
    import torch
    from torchvision.transforms import v2

    import featherload.torch

    of = datasets.load_from_disk(str(saved)).shuffle(seed=3).select(range(37))
    resize = v2.Compose([v2.ToImage(), v2.CenterCrop(64), v2.ToDtype(torch.float32, scale=True)])
    with pytest.raises(ConfigError, match="has no transform that workers can run: give recipe"):
        featherload.torch.DataLoader(of)
    loader = featherload.torch.DataLoader(
        of, batch_size=5, recipe=resize, num_workers=2, columns=["caption", "fixed"]
    )
    read = of.select_columns(["image", "label", "caption", "fixed"])

    def collate(rows: list[Any]) -> Any:
        images = torch.stack([resize(row["image"].convert("RGB")) for row in rows])
        labels = torch.tensor([row["label"] for row in rows])
        fixed = torch.tensor([row["fixed"] for row in rows])
        return images, labels, [row["caption"] for row in rows], fixed

    torchs = torch.utils.data.DataLoader(read, batch_size=5, collate_fn=collate)
    count = 0
    for batch, (images, labels, captions, fixed) in zip(loader, torchs, strict=True):
        assert torch.equal(batch.labels, labels) and torch.equal(batch["fixed"], fixed)
        assert batch["caption"] == captions
        assert torch.equal((batch.images * 255).round(), (images * 255).round())
        count += len(labels)
    assert count == 37
    loader.close()


def test_places_in_structs_are_columns_of_files(saved: Path) -> None:
    import datasets

    dataset = datasets.load_from_disk(str(saved))
    names = ["/objects/n", "/objects/ids"]
    with featherload.Loader(saved, EVAL, 7, 2, columns=names) as loader:
        for batch in loader:
            want = [dataset[i]["objects"] for i in batch.ids.tolist()]
            assert batch["/objects/n"].tolist() == [row["n"] for row in want]
            ids = batch["/objects/ids"]
            assert ids.values.dtype == np.uint8
            assert [row.tolist() for row in ids.rows()] == [row["ids"] for row in want]
    for names, text in (
        (["objects"], "name a field of it, one of '/objects/n', '/objects/ids'"),
        (["/objects/x"], r"its columns: '/objects/n', '/objects/ids'"),
        (["nothing"], r"no column 'nothing' \(its columns: 'image', 'label', 'caption'"),
    ):
        with pytest.raises(DatasetError, match=text):
            featherload.Loader(saved, EVAL, columns=names)


def test_all_forms_of_arrow_files(saved: Path, tmp_path: Path) -> None:
    import datasets
    import pyarrow as pa
    import pyarrow.feather
    import pyarrow.ipc

    dataset = datasets.load_from_disk(str(saved))
    plain = dataset.cast_column("image", datasets.Image(decode=False))
    images = [row["bytes"] for row in plain["image"]]
    texts = [row["caption"] for row in plain]
    want_tags = [row["tags"] or [] for row in plain]
    names = dataset.features["label"].names
    labels = [names[label] for label in plain["label"]]

    def write(path: Path, table: Any, stream: bool, rows: int) -> Path:
        new = pa.ipc.new_stream if stream else pa.ipc.new_file
        with pa.OSFile(str(path), "wb") as sink, new(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=rows)
        return path

    kinds = (pa.binary(), pa.large_binary(), pa.binary_view())
    for number, kind in enumerate(kinds):
        text = (pa.string(), pa.large_string(), pa.string_view())[number]
        lists = pa.large_list(pa.int32()) if number else pa.list_(pa.int32())
        table = pa.table(
            {
                "before": pa.array([{"a": [1], "b": "x"}] * len(images)),
                "image": pa.array(images, kind),
                "caption": pa.array(texts, text),
                "tags": pa.array([row["tags"] for row in plain], lists),
                "label": labels,
            }
        )
        # A slice has buffers that do not begin at its first row.
        for stream in (True, False):
            path = write(tmp_path / f"{number}{stream}.arrow", table.slice(3), stream, 10)
            with featherload.Loader(path, EVAL, 9, 2, columns=["caption", "tags"]) as loader:
                assert loader.dataset.classes == names
                for batch in loader:
                    ids = [i + 3 for i in batch.ids.tolist()]
                    assert batch["caption"] == [texts[i] for i in ids]
                    assert [row.tolist() for row in batch["tags"].rows()] == [
                        want_tags[i] for i in ids
                    ]
                    assert [names[label] for label in batch.labels] == [labels[i] for i in ids]
    seen = {}
    for codec in ("uncompressed", "lz4", "zstd"):
        path = tmp_path / f"{codec}.arrow"
        pyarrow.feather.write_feather(table, str(path), compression=codec, chunksize=10)
        with featherload.Loader(path, EVAL, 9, 2, columns=["caption", "tags"]) as loader:
            seen[codec] = [
                (
                    batch.ids.tolist(),
                    batch.labels.tolist() if hasattr(batch.labels, "tolist") else batch.labels,
                    batch.images.tobytes(),
                    batch["caption"],
                    [row.tolist() for row in batch["tags"].rows()],
                )
                for batch in loader
            ]
    assert seen["uncompressed"] == seen["lz4"] == seen["zstd"]
    assert len(seen["lz4"]) > 1
    try:
        import polars
    except ImportError:
        print("SKIP: polars is not installed")
    else:
        path = tmp_path / "polars.arrow"
        frame = polars.DataFrame({"image": images, "label": labels, "caption": texts})
        for codec in ("uncompressed", "lz4", "zstd"):
            frame.write_ipc(path, compression=codec)
            with featherload.Loader(path, EVAL, 9, 2, columns=["caption"]) as loader:
                for batch in loader:
                    assert batch["caption"] == [texts[i] for i in batch.ids.tolist()]


def test_compressed_files_are_those_without_compression(saved: Path, tmp_path: Path) -> None:
    """Structs of bytes and path, and all kinds of columns."""
    import datasets
    import pyarrow as pa
    import pyarrow.feather
    import pyarrow.ipc

    dataset = datasets.load_from_disk(str(saved))
    table = dataset.data.table.combine_chunks()
    for codec in ("lz4", "zstd"):
        path = tmp_path / f"{codec}.feather"
        pyarrow.feather.write_feather(table, str(path), compression=codec, chunksize=7)
        compare(path, dataset)
        compare(path, dataset, sampler=featherload.samplers.ShardShuffle())
        options = pa.ipc.IpcWriteOptions(compression=codec)
        path = tmp_path / f"{codec}.arrow"
        with pa.ipc.new_stream(str(path), table.schema, options=options) as writer:
            writer.write_table(table)
        compare(path, dataset)


def test_paths_are_files(photos: Path, tmp_path: Path) -> None:
    import datasets
    import pyarrow.feather

    files = sorted(photos.rglob("*.jpg"))[:12]
    names = sorted({path.parent.name for path in files})
    features = datasets.Features(
        {"image": datasets.Image(), "label": datasets.ClassLabel(names=names)}
    )
    rows = [{"image": str(p), "label": names.index(p.parent.name)} for p in files]
    dataset = datasets.Dataset.from_list(rows, features=features)
    written = tmp_path / "written.arrow"
    with datasets.arrow_writer.ArrowWriter(path=str(written), features=features) as writer:
        for row in rows:
            writer.write({"image": {"path": row["image"], "bytes": None}, "label": row["label"]})
        writer.finalize()
    packed = tmp_path / "packed.feather"
    pyarrow.feather.write_feather(dataset.data.table, str(packed), compression="zstd")
    for src in (dataset, dataset.select([5, 2, 9]), written, packed):
        with featherload.Loader(src, EVAL, 4, 1, shuffle=False) as loader:
            is_part = not any(src is whole for whole in (dataset, written, packed))
            order = [5, 2, 9] if is_part else [*range(12)]
            paths = [path for batch in loader for path in batch.paths()]
            assert paths == [files[i] for i in order]
            labels = [label for batch in loader for label in batch.labels.tolist()]
            assert labels == [rows[i]["label"] for i in order]
            assert loader.dataset.classes == names


def test_an_old_folder_keeps_its_order(saved: Path, tmp_path: Path) -> None:
    """Before version 2, save_to_disk kept the order of a shuffled data set in a file of its own."""
    import json
    import shutil

    import datasets
    import pyarrow as pa

    folder = tmp_path / "old"
    shutil.copytree(saved, folder)
    order = [50, 3, 3, 17, 63, 0]
    indices = pa.table({"indices": pa.array(order, pa.uint64())})
    sink = pa.OSFile(str(folder / "indices.arrow"), "wb")
    with sink, pa.ipc.new_stream(sink, indices.schema) as writer:
        writer.write_table(indices)
    state = json.loads((folder / "state.json").read_text())
    state["_indices_data_files"] = [{"filename": "indices.arrow"}]
    (folder / "state.json").write_text(json.dumps(state))
    compare(folder, datasets.load_from_disk(str(saved)).select(order))


def test_errors_name_the_fix(saved: Path, tmp_path: Path) -> None:
    import datasets

    dataset = datasets.load_from_disk(str(saved))
    splits = datasets.DatasetDict({"train": dataset, "test": dataset})
    for src, text in (
        (splits, r"a DatasetDict of several splits: give one of them, such as src\['train'\]"),
        (dataset.to_iterable_dataset(), "a IterableDataset, whose samples have no place"),
        (dataset.with_transform(lambda rows: rows), "has a transform .*reset_format"),
        (dataset.select([]), "has no samples"),
        (dataset.remove_columns("image"), "no column of images among label, caption"),
    ):
        with pytest.raises(ConfigError, match=text):
            featherload.Loader(src, EVAL)
    with pytest.raises(ConfigError, match="no column 'x': its columns are image, label"):
        featherload.Loader(dataset, EVAL, label_column="x")
    with pytest.raises(ConfigError, match="no column 'x': the columns of src are 'image'"):
        featherload.Loader(dataset, EVAL, columns=["x"])
    splits.save_to_disk(tmp_path / "dict")
    with pytest.raises(DatasetError, match="several splits.*give one, such as .*dict/train"):
        featherload.Loader(tmp_path / "dict", EVAL)
    text = (saved / "data-00000-of-00003.arrow").read_bytes()
    cut = tmp_path / "cut.arrow"
    for length in (3, 100, len(text) // 2, len(text) - 100):
        cut.write_bytes(text[:length])
        with pytest.raises(DatasetError):
            featherload.Loader(cut, EVAL)


def test_parquet_has_the_same_columns(saved: Path, tmp_path: Path) -> None:
    import datasets
    import pyarrow.parquet

    dataset = datasets.load_from_disk(str(saved)).remove_columns(["box", "fixed"])
    plain = dataset.cast_column("image", datasets.Image(decode=False))
    table = plain.data.table
    names = ["caption", "score", "tags", "words", "flag", "/objects/n", "/objects/ids"]
    for number, options in enumerate(
        (
            {"compression": "none"},
            {"compression": "snappy", "row_group_size": 10},
            {"compression": "zstd", "data_page_version": "2.0", "data_page_size": 64},
            {"compression": "gzip", "use_dictionary": False, "data_page_size": 64},
        )
    ):
        path = tmp_path / f"{number}.parquet"
        pyarrow.parquet.write_table(table, path, **options)
        with featherload.Loader(path, EVAL, 7, 2, seed=2, columns=names) as loader:
            for batch in loader:
                want = [plain[i] for i in batch.ids.tolist()]
                for name in names:
                    found = batch[name]
                    of = [
                        row["objects"][name[9:]] if name.startswith("/") else row[name]
                        for row in want
                    ]
                    if isinstance(found, featherload.Ragged):
                        rows = [row.tolist() for row in found.rows()]
                        assert rows == [row or [] for row in of], (name, options)
                    elif isinstance(found, list):
                        assert found == of, (name, options)
                    else:
                        of = [np.nan if value is None else value for value in of]
                        want_array = np.array(of, found.dtype)
                        assert np.array_equal(found, want_array, equal_nan=True), (name, options)
        with pytest.raises(DatasetError, match="no column 'x' .its columns: '/image/bytes'"):
            featherload.Loader(path, EVAL, columns=["x"])


def test_images_are_turned_upright_as_datasets_does(tmp_path: Path) -> None:
    import datasets
    import torch
    from PIL import Image
    from torchvision.transforms import v2

    from featherload.torch import DataLoader

    pixels = np.arange(40 * 24 * 3, dtype=np.uint32).reshape(40, 24, 3) // 12
    exif = Image.Exif()
    exif[0x0112] = 6
    file = io.BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).save(file, "PNG", exif=exif)
    rows = [{"image": {"bytes": file.getvalue(), "path": None}, "label": 0}]
    features = datasets.Features({"image": datasets.Image(), "label": datasets.Value("int64")})
    folder = tmp_path / "turned"
    datasets.Dataset.from_list(rows, features=features).save_to_disk(folder)
    turned = datasets.load_from_disk(folder)
    transform = v2.Compose([v2.CenterCrop((16, 30)), v2.PILToTensor()])
    upright = transform(turned[0]["image"].convert("RGB"))
    stored = transform(Image.fromarray(pixels.astype(np.uint8)))
    assert not torch.equal(upright, stored)
    for src, options, want in (
        (turned, {}, upright),
        (folder, {}, upright),
        (turned, {"orientation": "stored"}, stored),
    ):
        with featherload.Loader(src, transform, 1, 1, framework="torch", **options) as loader:
            assert torch.equal(next(iter(loader)).images[0], want)
    with DataLoader(turned, recipe=transform) as loader:
        assert torch.equal(next(iter(loader)).images[0], upright)


def test_parts_of_a_data_set_by_torch_name_the_calls_of_datasets(saved: Path) -> None:
    need("torch")
    import datasets
    from torch.utils.data import ConcatDataset, Subset

    data = datasets.load_from_disk(str(saved))
    for parts in (Subset(data, [0]), ConcatDataset([data, data])):
        with pytest.raises(ConfigError, match=r"use dataset.select\(indices\) or datasets.concat"):
            featherload.Loader(parts, EVAL)
