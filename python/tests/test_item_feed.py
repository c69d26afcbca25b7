"""Data sets whose method returns the bytes of images, such as those in LMDB or HDF5."""
# ruff: noqa: E402

from __future__ import annotations

import importlib.util
import io
import json
import os
import random
import subprocess
import sys
import threading
import time
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
from conftest import kill_one, need
from PIL import Image
from torch.utils.data import ConcatDataset, Dataset, Subset, random_split
from torch.utils.data import DataLoader as Theirs
from torchvision.transforms import v2

from featherload.torch import DataLoader

LEVELS = v2.Compose([v2.CenterCrop(16), v2.ToImage()])
COUNT = 37


def png(number: int) -> bytes:
    """An image that no other number has, of a size of its own."""
    numbers = np.random.default_rng(number)
    size = 20 + number % 7, 30 - number % 5, 3
    file = io.BytesIO()
    Image.fromarray(numbers.integers(0, 256, size, np.uint8)).save(file, "PNG")
    return file.getvalue()


IMAGES = [png(number) for number in range(COUNT)]


class Stored(Dataset[Any]):
    """Images in a store of keys and bytes, as LMDB has them."""

    def __init__(self, first: int = 0, count: int = COUNT, transform: Any = LEVELS) -> None:
        self.store = {f"{n:08}".encode(): IMAGES[n] for n in range(first, first + count)}
        self.keys = sorted(self.store)
        self.transform = transform
        self.asked: list[int] = []
        self.threads: set[str] = set()

    def __len__(self) -> int:
        return len(self.keys)

    def __getitem__(self, index: int) -> Any:
        image = Image.open(io.BytesIO(self.store[self.keys[index]])).convert("RGB")
        return self.transform(image), int(self.keys[index]) % 10

    def featherload_item(self, index: int) -> Any:
        self.asked.append(index)
        self.threads.add(threading.current_thread().name)
        key = self.keys[index]
        return self.store[key], int(key) % 10


def assert_same(dataset: Any, workers: int = 2, **options: Any) -> None:
    order = [*range(len(dataset))]
    random.Random(1).shuffle(order)
    ours = DataLoader(dataset, 4, sampler=order, num_workers=workers, **options)
    theirs = Theirs(dataset, 4, sampler=order)
    try:
        for _ in range(2):
            rows = 0
            for (images, labels), batch in zip(theirs, ours, strict=True):
                assert batch.ids.tolist() == order[rows : rows + 4]
                rows += 4
                assert torch.equal(batch.images, images)
                assert torch.equal(batch.labels, labels)
                assert batch.labels.dtype == labels.dtype
    finally:
        ours.close()


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_batches_are_those_of_torch(workers: int) -> None:
    assert_same(Stored(), workers)


def test_items_are_asked_in_order_by_one_thread() -> None:
    dataset = Stored()
    loader = DataLoader(dataset, 4, shuffle=True, num_workers=2, depth=3)
    # To see of what kind it is.
    assert dataset.asked == [0]
    dataset.asked.clear()
    order: list[int] = []
    for _ in range(3):
        for batch in loader:
            order += batch.ids.tolist()
            # This batch, and at most `depth` more.
            assert len(dataset.asked) <= len(order) + 3 * 4
    assert dataset.asked == order and len(order) == 3 * COUNT
    assert dataset.threads == {threading.current_thread().name, "featherload-feed"}
    loader.close()


def test_the_thread_ends_with_the_loader() -> None:
    def running() -> int:
        return sum(thread.name == "featherload-feed" for thread in threading.enumerate())

    def end() -> None:
        until = time.monotonic() + 20
        while running() and time.monotonic() < until:
            time.sleep(0.01)
        assert not running()

    end()
    loader = DataLoader(Stored(), 4)
    next(iter(loader))
    assert running() == 1
    loader.close()
    end()
    loader = DataLoader(Stored(), 4)
    next(iter(loader))
    del loader
    end()
    loader = DataLoader(Stored(), 4)
    assert [row.id for row in loader.preview(3)] == [0, 1, 2]
    loader.close()
    end()


def test_a_killed_worker_changes_nothing() -> None:
    order = [n % COUNT for n in range(200)]
    loader = DataLoader(Stored(), 4, sampler=order, num_workers=2)
    theirs = Theirs(Stored(), 4, sampler=order)
    for number, ((images, labels), batch) in enumerate(zip(theirs, loader, strict=True)):
        assert torch.equal(batch.images, images) and torch.equal(batch.labels, labels)
        if number % 10 == 3:
            kill_one(lambda: loader.stats()["workers"])
    loader.close()


def test_little_memory_gives_the_same_batches() -> None:
    largest = max(map(len, IMAGES))
    # Room for one batch, or little more.
    for limit in (8 * largest, 9 * largest + 5, 20 * largest):
        assert_same(Stored(), feed_limit=limit)


def test_parts_of_data_sets() -> None:
    assert_same(Subset(Stored(), [7, 1, 1, 3, 30]))
    assert_same(ConcatDataset([Stored(0, 9), Subset(Stored(), [4, 2]), Stored(20, 5)]))
    for part in random_split(Stored(), [30, 7], torch.Generator().manual_seed(2)):
        assert_same(part)


def test_targets_of_all_kinds() -> None:
    class Targets(Stored):
        target: Any = None

        def __getitem__(self, index: int) -> Any:
            return super().__getitem__(index)[0], self.target(index)

        def featherload_item(self, index: int) -> Any:
            return super().featherload_item(index)[0], self.target(index)

    for target in (
        lambda index: index * 3 - 5,
        lambda index: np.int64(index),
        lambda index: torch.tensor(index),
        lambda index: np.array([index, 0.5], np.float32),
    ):
        dataset = Targets()
        dataset.target = target
        assert_same(dataset)
    floats = Targets()
    floats.target = lambda index: index / 4
    loader = DataLoader(floats, 5)
    assert next(iter(loader)).labels.tolist() == [0, 0.25, 0.5, 0.75, 1]
    loader.close()
    unlabelled = Targets()
    unlabelled.target = lambda index: None
    unlabelled.transform = None
    with featherload.Loader(unlabelled, {"ops": [{"resize": {"size": [8, 8]}}]}, 5, 1) as one:
        assert next(iter(one)).labels is None


def test_target_transforms_are_called_for_each_item() -> None:
    class Transformed(Stored):
        target_transform = staticmethod(lambda target: target + 100)

    loader = DataLoader(Transformed(), 3)
    assert next(iter(loader)).labels.tolist() == [100, 101, 102]
    loader.close()


def test_states_and_early_ends() -> None:
    loader = DataLoader(Stored(), 4, shuffle=True, num_workers=2)
    epoch = iter(loader)
    first = [next(epoch).ids.tolist() for _ in range(3)]
    state = json.loads(json.dumps(loader.state_dict()))
    rest = [batch.ids.tolist() for batch in epoch]
    for _ in zip(range(2), loader, strict=False):
        pass
    loader.set_epoch(0)
    again = [(batch.ids.tolist(), batch.labels.tolist()) for batch in loader]
    assert [ids for ids, _ in again] == first + rest
    assert all(labels == [i % 10 for i in ids] for ids, labels in again)
    loader.close()
    other = DataLoader(Stored(), 4, shuffle=True, num_workers=1)
    other.load_state_dict(state)
    assert [batch.ids.tolist() for batch in other] == rest
    other.close()


def test_batches_of_different_sizes() -> None:
    sizes = [[5, 6], [1], [36, 0, 7, 8, 9], [2, 2]]
    ours = DataLoader(Stored(), batch_sampler=sizes, num_workers=2)
    theirs = Theirs(Stored(), batch_sampler=sizes)
    for (images, labels), batch in zip(theirs, ours, strict=True):
        assert torch.equal(batch.images, images) and torch.equal(batch.labels, labels)
    ours.close()


# What goes wrong.


class Broken(Stored):
    """Item 21 raises an error until it is mended."""

    is_mended = False

    def featherload_item(self, index: int) -> Any:
        if index == 21 and not self.is_mended:
            raise KeyError(f"no key {index}")
        return super().featherload_item(index)


def test_an_exception_ends_the_run_and_is_the_cause() -> None:
    dataset = Broken()
    loader = DataLoader(dataset, 4, num_workers=2)
    got = []
    with pytest.raises(ConfigError) as caught:
        for batch in loader:
            got.append(batch.ids.tolist())
    assert got == [[4 * n, 4 * n + 1, 4 * n + 2, 4 * n + 3] for n in range(5)]
    assert "Broken.featherload_item(21), sample 21, raised KeyError" in str(caught.value)
    cause = caught.value.__cause__
    assert isinstance(cause, KeyError) and cause.args == ("no key 21",)
    assert cause.__traceback__ is not None
    with pytest.raises(ConfigError, match="raised KeyError"):
        next(iter(loader))
    dataset.is_mended = True
    assert next(iter(loader)).ids.tolist() == [20, 21, 22, 23]
    loader.close()


class Odd(Stored):
    result: Any = None

    def featherload_item(self, index: int) -> Any:
        return self.result if index == 9 else super().featherload_item(index)


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (("a.jpg", 1), "returned 'a.jpg', and bytes for the first sample"),
        ((None, 1), "returned None, and bytes for the first sample"),
        (IMAGES[0], "return the image and its target"),
        ((IMAGES[0], "cat"), "the label of sample 9 is .*cat.* a whole number"),
        ((IMAGES[0], 0.5), "the label of sample 9"),
        ((IMAGES[0], {}), "the target is {}"),
    ],
)
def test_other_results_are_errors(result: Any, text: str) -> None:
    dataset = Odd()
    dataset.result = result
    loader = DataLoader(dataset, 4)
    with pytest.raises(ConfigError, match=text):
        for _ in loader:
            pass
    loader.close()


def test_a_wrong_result_is_named_once_and_did_not_raise() -> None:
    dataset = Odd()
    dataset.result = None
    with DataLoader(dataset, 4) as loader, pytest.raises(ConfigError) as caught:
        for _ in loader:
            pass
    assert "sample 9: Odd.featherload_item(9) returned None: return the" in str(caught.value)
    assert "raised" not in str(caught.value) and str(caught.value).count("item(9)") == 1


def test_samples_have_no_labels_before_the_method_is_called() -> None:
    class Grown(Stored):
        grows_by = 0

        def featherload_item(self, index: int) -> Any:
            image, target = super().featherload_item(index)
            return image, target + self.grows_by

    dataset = Grown()
    dataset.transform = None
    with featherload.Loader(dataset, {"ops": [{"center_crop": {"size": 8}}]}, 4) as loader:
        assert [loader.dataset[i][1] for i in range(9)] == [None] * 9
    with DataLoader(Grown(), 4) as loader:
        next(iter(loader))
        state = loader.state_dict()
    # Only the kind of the targets is compared.
    dataset = Grown()
    dataset.grows_by = 5
    with DataLoader(dataset, 4) as loader:
        loader.load_state_dict(state)
        batch = next(iter(loader))
        assert batch.labels.tolist() == [id % 10 + 5 for id in batch.ids.tolist()]


def test_an_image_without_bytes_is_skipped() -> None:
    dataset = Odd()
    dataset.result = b"", 3
    with DataLoader(dataset, 4, on_error="skip") as loader:
        failed = [
            id
            for batch in loader
            for id, status in zip(batch.ids.tolist(), batch.status, strict=True)
            if status == featherload.RowStatus.FAILED
        ]
    assert failed == [9]


def test_a_bad_image_is_named_and_skipped() -> None:
    dataset = Odd()
    dataset.result = b"no image", 3
    loader = DataLoader(dataset, 4)
    with pytest.raises(featherload.SampleError, match="item 9 of the list"):
        for _ in loader:
            pass
    loader.close()
    loader = DataLoader(dataset, 4, on_error="skip")
    for batch in loader:
        for row, (label, id) in enumerate(zip(batch.labels.tolist(), batch.ids, strict=True)):
            assert label == (-1 if id == 9 else id % 10), row
    loader.close()


class Named(Stored):
    def featherload_item(self, index: int) -> Any:
        return IMAGES[index], "cat"


class Mixed(Stored):
    def featherload_item(self, index: int) -> Any:
        return ("a.jpg", 1) if index < 3 else (IMAGES[index], 1)


@pytest.mark.parametrize(
    ("dataset", "options", "text"),
    [
        (Stored(), {"on_error": "substitute"}, "substitute needs samples that are known"),
        (Stored(), {"feed_limit": 0}, "feed_limit"),
        (Stored(), {"recipe": "full"}, "keeps the sizes of images"),
        (Stored(), {"sampler": featherload.samplers.LargestFirst()}, "needs labels or sizes"),
        (Named(), {}, "return the number of the class"),
        (Mixed(), {}, "returned bytes, and a path for item 0"),
        (Stored(count=0), {}, "no samples"),
    ],
)
def test_what_cannot_be_fed(dataset: Any, options: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        DataLoader(dataset, 4, **options)


def test_a_batch_that_does_not_fit() -> None:
    loader = DataLoader(Stored(), 8, feed_limit=3 * max(map(len, IMAGES)))
    with pytest.raises(ConfigError, match=r"a batch of 8 samples exceeds .* Raise `?feed_limit"):
        next(iter(loader))
    loader.close()


def test_the_plan_counts_what_is_held() -> None:
    dataset = Stored(transform=None)
    recipe = {"ops": [{"resize": {"size": [8, 8]}}]}
    of_feed = featherload.plan(dataset, recipe, 4, 1)["memory"]
    of_bytes = featherload.plan(IMAGES, recipe, 4, 1)["memory"]
    held = of_feed["fixed_bytes"] - of_bytes["fixed_bytes"]
    assert abs(held - ((256 << 20) - sum(map(len, IMAGES)))) < 10_000
    # No header is known, so a worker may need as much as it is allowed.
    assert of_feed["scratch_bytes"] == 512 << 20
    with pytest.raises(ConfigError, match="memory_limit"):
        featherload.Loader(dataset, recipe, 4, 1, memory_limit="300M")


# Processes.

# Without torch, whose import takes long.
SCRIPT = """
import io, os, signal, sys, threading, time
from PIL import Image
import featherload
from featherload._item_feed import AskedItem, AskedItems

file = io.BytesIO()
Image.new("RGB", (20, 20), (1, 2, 3)).save(file, "PNG")

class Stored:
    sleep = 0.0
    def featherload_item(self, index):
        if index:
            time.sleep(self.sleep)
        return file.getvalue(), index

def loader_of(dataset, workers=1):
    items = AskedItems([AskedItem(dataset, index, None) for index in range(40)], 0, 1 << 20)
    recipe = {"ops": [{"resize": {"size": [8, 8]}}]}
    return featherload.Loader(items, recipe, 4, workers, shuffle=False)
"""


def run(script: str, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", SCRIPT + script, *args],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_ctrl_c_ends_a_wait_for_a_slow_method() -> None:
    ended = run(
        """
signal.signal(signal.SIGINT, signal.default_int_handler)
dataset = Stored()
dataset.sleep = 600
loader = loader_of(dataset)
threading.Timer(1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
began = time.monotonic()
try:
    next(iter(loader))
except KeyboardInterrupt:
    print("interrupted", time.monotonic() - began < 30)
"""
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == "interrupted True\n"


def test_a_forked_trainer_has_a_feed_of_its_own() -> None:
    ended = run(
        """
loader = loader_of(Stored())
next(iter(loader))
pid = os.fork()
if pid == 0:
    try:
        try:
            next(iter(loader))
        except featherload.WorkerError:
            pass
        own = loader_of(Stored(), 2)
        for _ in range(2):
            assert [i for batch in own for i in batch.labels.tolist()] == [*range(40)]
        own.close()
        os._exit(7)
    finally:
        os._exit(1)
_, status = os.waitpid(pid, 0)
assert [len(batch.labels) for batch in loader] == [4] * 10
print(os.waitstatus_to_exitcode(status))
"""
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == "7\n"


@pytest.mark.parametrize("how", ["end", "exit", "error"])
def test_a_process_ends_with_a_feed_at_work(how: str) -> None:
    ended = run(
        """
dataset = Stored()
dataset.sleep = 0.02
loader = loader_of(dataset)
next(iter(loader))
if sys.argv[1] == "exit":
    sys.exit(3)
if sys.argv[1] == "error":
    raise ValueError("on purpose")
""",
        how,
    )
    assert ended.returncode == {"end": 0, "exit": 3, "error": 1}[how], ended.stderr
    assert ("on purpose" in ended.stderr) == (how == "error")
    assert "Fatal" not in ended.stderr


# JAX warns of forks if another test has imported it.
@pytest.mark.filterwarnings("ignore:os.fork")
def test_torchs_own_workers_may_run_beside_it() -> None:
    def batches() -> Iterator[Any]:
        ours = DataLoader(Stored(), 4)
        theirs = Theirs(Stored(), 4, num_workers=1)
        yield from zip(ours, theirs, strict=True)
        ours.close()

    for batch, (images, _) in batches():
        assert torch.equal(batch.images, images)


@pytest.mark.parametrize("name", ["h5py", "lmdb"])
def test_hdf5_and_lmdb(tmp_path: Path, name: str) -> None:
    need(name)
    assert_same(OPENED[name](tmp_path))


class Hdf5(Stored):
    def __init__(self, folder: Path) -> None:
        super().__init__()
        h5py = importlib.import_module("h5py")
        with h5py.File(folder / "a.h5", "w") as file:
            for key, image in self.store.items():
                file[key.decode()] = np.frombuffer(image, np.uint8)
        opened = h5py.File(folder / "a.h5", "r")
        self.images = opened

    def featherload_item(self, index: int) -> Any:
        return self.images[self.keys[index].decode()][:].tobytes(), int(self.keys[index]) % 10


class Lmdb(Stored):
    def __init__(self, folder: Path) -> None:
        super().__init__()
        lmdb = importlib.import_module("lmdb")
        self.env = lmdb.open(str(folder / "a.lmdb"), map_size=1 << 24)
        with self.env.begin(write=True) as txn:
            for key, image in self.store.items():
                txn.put(key, image)

    def featherload_item(self, index: int) -> Any:
        with self.env.begin() as txn:
            return txn.get(self.keys[index]), int(self.keys[index]) % 10


OPENED = {"h5py": Hdf5, "lmdb": Lmdb}


def test_a_transform_under_another_name_is_named() -> None:
    dataset: Any = Stored(transform=None)
    with pytest.raises(ConfigError, match="the Stored has no transform"):
        DataLoader(dataset, 4)
    dataset.image_transform = LEVELS
    with pytest.raises(ConfigError, match=r"in image_transform.*recipe=dataset\.image_transform"):
        DataLoader(dataset, 4)
    with DataLoader(dataset, 4, recipe=dataset.image_transform) as loader:
        assert next(iter(loader))[0].shape == (4, 3, 16, 16)
