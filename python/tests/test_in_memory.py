"""Images in memory: bytes, arrays, ``.npy`` files, and torchvision's data sets that are arrays."""
# ruff: noqa: E402

from __future__ import annotations

import importlib.util
import io
import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import featherload
from featherload import ConfigError

for module in ("torch", "torchvision"):
    if importlib.util.find_spec(module) is None:
        if os.environ.get("FEATHERLOAD_REQUIRE_FRAMEWORKS"):
            pytest.fail(f"{module} is not installed", pytrace=False)
        pytest.skip(f"SKIP: {module} is not installed", allow_module_level=True)

import torch
from conftest import kill_one
from PIL import Image
from torch.utils.data import ConcatDataset, Subset, random_split
from torch.utils.data import DataLoader as Theirs
from torchvision import datasets
from torchvision.transforms import v2

from featherload.torch import DataLoader

EVAL = {"ops": [{"resize": {"size": [16, 16]}}]}
# Levels, which are equal to the last bit.
TENSOR = v2.Compose([v2.ToImage()])
FLOAT = v2.ToDtype(torch.float32, scale=True)


@pytest.fixture(scope="module")
def files(photos: Path) -> list[Path]:
    return sorted(path for path in photos.rglob("*") if path.suffix in (".jpg", ".png", ".webp"))


def batches(src: Any, recipe: Any = EVAL, **options: Any) -> list[Any]:
    with featherload.Loader(src, recipe, 7, 2, shuffle=False, **options) as loader:
        return [(b.ids.tolist(), b.images.copy(), b.labels) for b in loader]


def same(got: list[Any], want: list[Any]) -> None:
    assert len(got) == len(want)
    for a, b in zip(got, want, strict=True):
        assert a[0] == b[0]
        np.testing.assert_array_equal(a[1], b[1])
        np.testing.assert_array_equal(a[2], b[2])


class Table:
    """A table of pyarrow, as far as it is read here."""

    def __init__(self, columns: dict[str, list[Any]]) -> None:
        self._columns = columns
        self.column_names = [*columns]
        self.columns = [*columns.values()]

    def __getitem__(self, name: str) -> list[Any]:
        return self._columns[name]


# Bytes.


def test_bytes_give_the_batches_of_their_files(files: list[Path]) -> None:
    names = [path.parent.name for path in files]
    numbers = [sorted(set(names)).index(name) for name in names]
    contents = [path.read_bytes() for path in files]
    want = batches(featherload.Items(files, numbers))
    for src in (
        [*zip(contents, numbers, strict=True)],
        [[bytearray(image), label] for image, label in zip(contents, numbers, strict=True)],
        [{"image": image, "label": name} for image, name in zip(contents, names, strict=True)],
        {"jpg": contents, "label": np.array(numbers)},
        Table({"image": [{"bytes": image, "path": None} for image in contents], "label": numbers}),
        Table({"path": [str(path) for path in files], "bytes": contents, "label": numbers}),
        featherload.Items(images=map(memoryview, contents), labels=numbers),
    ):
        same(batches(src), want)
    unlabelled = batches(contents)
    same([(*a[:2], None) for a in want], unlabelled)
    assert batches(contents, labels=numbers)[0][2].tolist() == want[0][2].tolist()


def test_pandas_and_polars_columns_of_bytes(files: list[Path]) -> None:
    contents, numbers = [path.read_bytes() for path in files[:9]], [*range(9)]
    want = batches([*zip(contents, numbers, strict=True)])
    done = 0
    for module in ("pandas", "polars", "pyarrow"):
        if importlib.util.find_spec(module) is None:
            print(f"SKIP: {module} is not installed")
            continue
        library = importlib.import_module(module)
        make = library.table if module == "pyarrow" else library.DataFrame
        same(batches(make({"image": contents, "label": numbers})), want)
        done += 1
    if not done:
        pytest.skip("SKIP: pandas, polars and pyarrow are not installed")


def test_a_bad_image_is_named_by_its_place(files: list[Path]) -> None:
    good = files[0].read_bytes()
    images = [good, good, good, b"no image", good[: len(good) // 2], b""]
    with featherload.Loader(images, EVAL, 3, 1, shuffle=False) as loader:
        with pytest.raises(featherload.SampleError, match=r"item 3 of the list") as caught:
            for _ in loader:
                pass
        assert caught.value.id == 3
    with featherload.Loader(images, EVAL, 6, 2, shuffle=False, on_error="skip") as loader:
        (batch,) = loader
        assert batch.good_rows() == [0, 1, 2]
        told = {fault.id: (str(fault.path), fault.kind) for fault in batch.faults}
        assert [*told] == [3, 4, 5]
        assert told[3][0] == "item 3 of the list"
        assert "Items(6 samples in memory)" in repr(featherload.Items(images=images))
    with featherload.Loader(images, EVAL, 6, 2, shuffle=False, on_error="substitute") as loader:
        (batch,) = loader
        assert all(fault.substitute in (0, 1, 2) for fault in batch.faults)


def test_memory_is_shared_and_planned(files: list[Path]) -> None:
    contents = [path.read_bytes() for path in files]
    size = sum(map(len, contents))
    one = featherload.plan(contents, EVAL, batch_size=8, num_workers=1)["memory"]
    two = featherload.plan(contents, EVAL, batch_size=8, num_workers=2)["memory"]
    of_paths = featherload.plan(files, EVAL, batch_size=8, num_workers=1)["memory"]
    extra = one["fixed_bytes"] - of_paths["fixed_bytes"]
    assert size - 60 * len(files) <= extra <= size + 60 * len(files)
    assert one["fixed_bytes"] == two["fixed_bytes"]


def test_states_compare_the_bytes(files: list[Path]) -> None:
    contents = [path.read_bytes() for path in files[:20]]
    with featherload.Loader(contents, EVAL, 4, 1, seed=3) as loader:
        epoch = iter(loader)
        first = [next(epoch).ids.tolist() for _ in range(2)]
        state = loader.state_dict()
        rest = [batch.ids.tolist() for batch in epoch]
    with featherload.Loader([*contents], EVAL, 4, 2, seed=3) as loader:
        loader.load_state_dict(state)
        assert [batch.ids.tolist() for batch in loader] == rest
        assert sorted(i for ids in first + rest for i in ids) == [*range(20)]
    other = [contents[1], contents[0], *contents[2:]]
    with featherload.Loader(other, EVAL, 4, 1, seed=3) as loader:
        loader.load_state_dict(state)
        with pytest.raises(ConfigError, match="the index"):
            next(iter(loader))


def test_a_killed_worker_changes_nothing(files: list[Path]) -> None:
    contents = [path.read_bytes() for path in files]
    want = batches(contents)
    got = []
    with featherload.Loader(contents, EVAL, 7, 2, shuffle=False) as loader:
        for number, batch in enumerate(loader):
            got.append((batch.ids.tolist(), batch.images.copy(), batch.labels))
            if number in (1, 5):
                kill_one(lambda: loader.stats()["workers"])
    same(got, want)


@pytest.mark.parametrize(
    ("src", "text"),
    [
        ([(b"x", 0), ("a.jpg", 1)], "item 1: the image is 'a.jpg'"),
        ([("a.jpg", 0), (b"x", 1)], "item 1: the path is b'x'"),
        ([b"x", 5], "item 1: the image is 5"),
        ([(b"x", 0), (b"y", "cat")], "item 1: the label is a class name"),
        (Table({"text": ["a.jpg"], "label": [0]}), "no column of paths or of images as bytes"),
    ],
)
def test_what_is_no_list_of_bytes(src: Any, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        featherload.Loader(src, EVAL, 1, 1)


# Arrays.


def an_array(*shape: int) -> Any:
    return np.random.default_rng(shape).integers(0, 256, shape, np.uint8)


@pytest.mark.parametrize("shape", [(11, 20, 31, 3), (11, 20, 31), (11, 20, 31, 1), (2, 3, 3, 3)])
def test_arrays_give_the_batches_of_their_images(shape: tuple[int, ...], tmp_path: Path) -> None:
    array = an_array(*shape)
    count = len(array)
    labels = [*range(count)]
    coded = []
    for image in array:
        file = io.BytesIO()
        Image.fromarray(image.squeeze(-1) if image.shape[-1] == 1 else image).save(file, "PNG")
        coded.append(file.getvalue())
    want = batches(featherload.Items(images=coded, labels=labels))
    np.save(tmp_path / "images.npy", array)
    mapped = np.load(tmp_path / "images.npy", mmap_mode="r")
    for src, given in (
        (array, labels),
        (torch.from_numpy(array), torch.arange(count)),
        (np.asfortranarray(array), labels),
        (np.flip(np.flip(array, 0), 0), labels),
        (tmp_path / "images.npy", np.arange(count)),
        (str(tmp_path / "images.npy"), labels),
        (mapped, labels),
        ([*array], labels),
    ):
        same(batches(src, labels=given), want)
        same(batches(featherload.Items(images=src, labels=given)), want)
    same(batches(mapped[::-1], labels=labels), batches(array[::-1], labels=labels))
    assert batches(array)[0][2] is None
    assert batches(tmp_path / "images.npy")[0][2] is None


def test_an_npy_file_is_read_where_it_lies(tmp_path: Path) -> None:
    array = an_array(300, 64, 64, 3)
    np.save(tmp_path / "images.npy", array)
    table = "fixed_bytes"
    there = featherload.plan(tmp_path / "images.npy", EVAL, batch_size=8, num_workers=1)["memory"]
    here = featherload.plan(array, EVAL, batch_size=8, num_workers=1)["memory"]
    assert array.nbytes - 1_000 < here[table] - there[table] < array.nbytes + 1_000
    with featherload.Loader(tmp_path / "images.npy", EVAL, 4, 2, shuffle=False) as loader:
        assert str(loader.dataset[7][0]) == str(tmp_path / "images.npy" / "7")
        np.save(tmp_path / "images.npy", an_array(200, 64, 64, 3))
        with pytest.raises(
            featherload.SampleError, match="changed since its index was made|shrank"
        ):
            for _ in loader:
                pass


@pytest.mark.parametrize(
    ("array", "text"),
    [
        (an_array(4, 3, 32, 32), "looks like N x C x H x W: give N x H x W x C"),
        (an_array(32, 32, 3), "looks like one image of H x W x C"),
        (an_array(4, 32, 32, 4), "with 1 or 3 channels"),
        (an_array(4, 32, 32).astype(np.float32), "dtype float32"),
        (an_array(4, 32), "has shape"),
        (an_array(0, 32, 32), "at least one"),
        (torch.zeros(4, 32, 32), "dtype float32"),
    ],
)
def test_other_arrays_are_errors(array: Any, text: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=text):
        featherload.Loader(array, EVAL, 1, 1)
    np.save(tmp_path / "a.npy", np.asarray(array))
    with pytest.raises((ConfigError, featherload.DatasetError), match=r"a\.npy"):
        featherload.Loader(tmp_path / "a.npy", EVAL, 1, 1)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"src": an_array(4, 8, 8), "labels": [1]}, "4 images have 1 labels"),
        ({"src": [("a.jpg", 1)], "labels": [1]}, "labels=.* goes with an array"),
        ({"src": "photos.csv", "labels": [1]}, "labels=.* goes with an array"),
        ({"src": an_array(4, 8, 8), "root": "a"}, "root says how a path is read"),
    ],
)
def test_labels_beside_images(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        featherload.Loader(recipe=EVAL, batch_size=1, num_workers=1, **options)


def test_items_take_images_or_paths() -> None:
    with pytest.raises(ConfigError, match="images and paths are two ways"):
        featherload.Items(["a.jpg"], images=[b"x"])
    with pytest.raises(ConfigError, match="give paths or images"):
        featherload.Items(labels=[1])


# torchvision's data sets. Their files are not there, so they are made without them.


def made(kind: Any, transform: Any, **attributes: Any) -> Any:
    dataset = kind.__new__(kind)
    torch.utils.data.Dataset.__init__(dataset)
    dataset.transform, dataset.target_transform, dataset.transforms = transform, None, None
    for name, value in attributes.items():
        setattr(dataset, name, value)
    return dataset


def arrays(transform: Any) -> Iterator[Any]:
    """One data set of each class."""
    targets = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5]
    n = len(targets)
    for kind in (datasets.CIFAR10, datasets.CIFAR100):
        yield made(kind, transform, data=an_array(n, 32, 32, 3), targets=targets)
    for kind in (datasets.MNIST, datasets.FashionMNIST, datasets.KMNIST, datasets.EMNIST):
        data, numbers = torch.from_numpy(an_array(n, 28, 28)), torch.tensor(targets)
        yield made(kind, transform, data=data, targets=numbers)
    qmnist = torch.from_numpy(an_array(n, 28, 28)), torch.tensor([[t] * 8 for t in targets])
    yield made(datasets.QMNIST, transform, data=qmnist[0], targets=qmnist[1], compat=True)
    yield made(datasets.SVHN, transform, data=an_array(n, 3, 32, 32), labels=np.array(targets))
    yield made(datasets.STL10, transform, data=an_array(n, 3, 96, 96), labels=np.array(targets))
    yield made(datasets.USPS, transform, data=an_array(n, 16, 16), targets=targets)


NAMES = [type(dataset).__name__ for dataset in arrays(None)]


def assert_same(dataset: Any, tolerance: float = 0.0) -> None:
    order = [*range(len(dataset))]
    random.Random(1).shuffle(order)
    theirs = [*Theirs(dataset, 4, sampler=order)]
    ours = DataLoader(dataset, 4, sampler=order, num_workers=2)
    try:
        rows = 0
        for (images, labels), batch in zip(theirs, ours, strict=True):
            assert batch.ids.tolist() == order[rows : rows + 4]
            rows += 4
            assert batch.images.shape == images.shape and batch.images.dtype == images.dtype
            got, want = batch.images.double(), images.double()
            np.testing.assert_allclose(got, want, rtol=0, atol=tolerance)
            np.testing.assert_array_equal(batch.labels, labels)
    finally:
        ours.close()


@pytest.mark.parametrize("number", range(len(NAMES)), ids=NAMES)
def test_data_sets_of_torchvision(number: int) -> None:
    dataset = [*arrays(TENSOR)][number]
    assert_same(dataset)
    grey = isinstance(dataset, (datasets.MNIST, datasets.USPS))
    # A resize may differ by a level.
    mean, std = ([0.1307], [0.3081]) if grey else ([0.5, 0.4, 0.3], [0.2, 0.3, 0.25])
    pipeline = v2.Compose([v2.Resize((24, 20)), v2.ToImage(), FLOAT, v2.Normalize(mean, std)])
    assert_same([*arrays(pipeline)][number], 1.01 / 255 / min(std))


def test_grey_images_have_one_channel_until_they_are_made_rgb() -> None:
    data = {"data": torch.from_numpy(an_array(5, 28, 28)), "targets": torch.arange(5)}

    def of(*transforms: Any) -> Any:
        return made(datasets.MNIST, v2.Compose([*transforms]), **data)

    assert_same(of(v2.Resize((16, 16)), v2.ToImage()), 1)
    assert_same(of(v2.Grayscale(3), v2.ToImage()))
    assert_same(of(v2.Grayscale(1), v2.ToImage()))
    assert_same(of(v2.RGB(), v2.ToImage()))
    assert_same(of(v2.Pad(2, fill=9), v2.CenterCrop(30), v2.ToImage()))
    with pytest.raises(ConfigError, match="give one mean and one std"):
        DataLoader(of(TENSOR, FLOAT, v2.Normalize([0.5] * 3, [0.5] * 3)))
    loader = DataLoader(of(TENSOR))
    assert loader.preview(1)[0].image.shape == (28, 28, 3)
    loader.close()
    # Another recipe, and Loader, have three channels.
    with featherload.Loader(
        made(datasets.MNIST, None, **data), EVAL, 5, 1, shuffle=False
    ) as loader:
        (batch,) = loader
        assert batch.images.shape == (5, 3, 16, 16)
        assert batch.labels.tolist() == [0, 1, 2, 3, 4]


def test_loader_says_that_it_does_not_use_the_transform() -> None:
    dataset = next(arrays(TENSOR))
    with (
        pytest.warns(UserWarning, match="transform of the CIFAR10 is not used"),
        featherload.Loader(dataset, EVAL, 5, 1) as loader,
    ):
        assert len(loader.dataset) == 11


def test_parts_of_data_sets() -> None:
    cifar, cifar100, *_ = arrays(TENSOR)
    svhn = next(d for d in arrays(TENSOR) if isinstance(d, datasets.SVHN))
    assert_same(Subset(cifar, [7, 1, 1, 3, 10]))
    assert_same(ConcatDataset([cifar, Subset(svhn, [4, 2]), cifar100]))
    for part in random_split(cifar, [6, 5], torch.Generator().manual_seed(2)):
        assert_same(part)


def test_a_changed_array_is_noticed() -> None:
    dataset = next(arrays(TENSOR))
    ours = DataLoader(dataset, 4)
    for _ in ours:
        pass
    dataset.data = an_array(11, 32, 32, 3)
    with pytest.raises(ConfigError, match="samples of the data set changed"):
        next(iter(ours))
    ours.close()


def test_arrays_and_files_together(files: list[Path]) -> None:
    class Files(torch.utils.data.Dataset[Any]):
        transform = TENSOR

        def __len__(self) -> int:
            return 1

        def featherload_item(self, index: int) -> Any:
            return files[0], 0

    with pytest.raises(ConfigError, match="of image files, of arrays and"):
        DataLoader(ConcatDataset([next(arrays(TENSOR)), Files()]))


# Batch samplers.


class Buckets:
    """Batches of different sizes, another order in each epoch."""

    def __init__(self, sizes: list[int], seed: int = 0) -> None:
        self.sizes, self.random = sizes, random.Random(seed)

    def __len__(self) -> int:
        return len(self.sizes)

    def __iter__(self) -> Iterator[list[int]]:
        order = [*range(sum(self.sizes))]
        self.random.shuffle(order)
        sizes = [*self.sizes]
        self.random.shuffle(sizes)
        for size in sizes:
            yield order[:size]
            order = order[size:]


def test_batch_samplers_of_any_sizes() -> None:
    dataset = next(arrays(TENSOR))
    theirs = Theirs(dataset, batch_sampler=Buckets([5, 1, 3, 2]))
    ours = DataLoader(dataset, batch_sampler=Buckets([5, 1, 3, 2]), num_workers=2)
    assert len(ours) == len(theirs) == 4 and ours.batch_size == 5
    for _ in range(3):
        for (images, labels), batch in zip(theirs, ours, strict=True):
            assert torch.equal(batch.images, images)
            assert torch.equal(batch.labels, labels)
            assert len(batch.status) == len(labels)
    ours.close()


def test_a_state_within_batches_of_a_batch_sampler() -> None:
    dataset = next(arrays(TENSOR))
    ours = DataLoader(dataset, batch_sampler=Buckets([5, 1, 3, 2]))
    for _ in ours:
        pass
    epoch = iter(ours)
    next(epoch)
    state = json.loads(json.dumps(ours.state_dict()))
    rest = [batch.ids.tolist() for batch in epoch]
    ours.close()
    again = DataLoader(dataset, batch_sampler=Buckets([5, 1, 3, 2]))
    again.load_state_dict(state)
    assert [batch.ids.tolist() for batch in again] == rest
    again.close()
    other = DataLoader(dataset, batch_sampler=Buckets([5, 1, 3, 2], 1))
    other.load_state_dict(state)
    with pytest.raises(ConfigError, match="batch sampler Buckets does not repeat the order"):
        next(iter(other))
    other.close()


def test_a_bad_sample_in_a_short_batch_takes_one_of_the_order(tmp_path: Path) -> None:
    class Coded(torch.utils.data.Dataset[Any]):
        transform = v2.Compose([v2.Resize((8, 8)), TENSOR])

        def __len__(self) -> int:
            return 4

        def featherload_item(self, index: int) -> Any:
            return tmp_path / f"{index}.png", index

    for number in (0, 2, 3):
        Image.fromarray(an_array(1, 8, 8, 3)[0]).save(tmp_path / f"{number}.png")
    (tmp_path / "1.png").write_bytes(b"no image")
    loader = DataLoader(Coded(), batch_sampler=[[1], [0, 2, 3]], on_error="substitute")
    batches = iter(loader)
    first = next(batches)
    assert len(first.status) == 1 and first.ids.tolist()[0] in (0, 2, 3)
    assert next(batches).ids.tolist() == [0, 2, 3]
    loader.close()


@pytest.mark.parametrize(
    ("sampler", "text"),
    [
        ([[0], []], "gave an empty batch 1"),
        ([0, 1], "gave 0 as batch 0: give lists"),
        ([[0], [-1]], "gave -1 at place 1"),
        ([[0], [1.5]], "gave 1.5 at place 1"),
        ([[0], [99]], "has sample 99, and the data set has 11"),
        ([], "has no batches"),
        (iter([[0]]), "has no length"),
    ],
)
def test_batch_samplers_that_are_errors(sampler: Any, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        loader = DataLoader(next(arrays(TENSOR)), batch_sampler=sampler)
        try:
            next(iter(loader))
        finally:
            loader.close()


def test_a_batch_larger_than_its_memory() -> None:
    class Growing:
        epoch = 1

        def __len__(self) -> int:
            return 1

        def __iter__(self) -> Iterator[list[int]]:
            yield [*range(self.epoch)]
            self.epoch += 1

    sampler: Any = Growing()
    loader = DataLoader(next(arrays(TENSOR)), batch_sampler=sampler)
    assert [len(batch.labels) for batch in loader] == [1]
    with pytest.raises(ConfigError, match="batch of 2 samples, and memory was made for 1"):
        next(iter(loader))
    loader.close()
    sampler.batch_size = 9
    loader = DataLoader(next(arrays(TENSOR)), batch_sampler=sampler)
    assert [len(batch.labels) for batch in loader] == [3]
    assert [len(batch.labels) for batch in loader] == [4]
    loader.close()
