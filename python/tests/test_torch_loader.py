"""``featherload.torch.DataLoader`` beside torch's own, over the same image folders."""
# ruff: noqa: E402

from __future__ import annotations

import importlib.util
import inspect
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import featherload

for module in ("torch", "torchvision"):
    # As conftest's `need`, for all tests of the file.
    if importlib.util.find_spec(module) is None:
        if os.environ.get("FEATHERLOAD_REQUIRE_FRAMEWORKS"):
            pytest.fail(f"{module} is not installed", pytrace=False)
        pytest.skip(f"SKIP: {module} is not installed", allow_module_level=True)

import torch
from conftest import need
from PIL import Image
from torch.utils.data import (
    BatchSampler,
    DistributedSampler,
    RandomSampler,
    SequentialSampler,
    Subset,
    SubsetRandomSampler,
    WeightedRandomSampler,
    default_collate,
    random_split,
)
from torch.utils.data import DataLoader as Theirs
from torchvision import transforms as v1
from torchvision.datasets import ImageFolder
from torchvision.datasets.folder import pil_loader
from torchvision.transforms import v2

from featherload.torch import DataLoader

Make = Callable[..., DataLoader]
SMALL = v2.Compose([v2.Resize((8, 8)), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])
NORMALIZED = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])


def picture(path: Path, seed: int) -> None:
    """Coarse waves of a size of their own: a PNG, or a JPEG."""
    random = np.random.default_rng(seed)
    height, width = random.integers(40, 70, 2)
    coarse = Image.fromarray(random.integers(0, 256, (4, 4, 3), np.uint8))
    path.parent.mkdir(parents=True, exist_ok=True)
    coarse.resize((int(width), int(height)), Image.Resampling.BICUBIC).save(path, quality=95)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """27 pictures in three classes, whose order by bytes is not torchvision's; one class has
    none.
    """
    root = tmp_path_factory.mktemp("torch") / "root"
    names = ["b/1.jpg", "b/10.jpg", "b/9.png", "b.jpg", "b-c/1.jpg", "B.JPEG", "é.png", "b c.jpg"]
    for number in range(27):
        folder = root / ("zebra", "ant", "ant b")[number % 3]
        picture(folder / (names[number // 3] if number < 24 else f"{number}.jpg"), number)
    (root / "nothing").mkdir()
    return root


@pytest.fixture
def folder(root: Path) -> ImageFolder:
    return ImageFolder(str(root), SMALL, allow_empty=True)


@pytest.fixture
def make() -> Iterator[Make]:
    made: list[DataLoader] = []

    def one(*args: Any, **options: Any) -> DataLoader:
        made.append(DataLoader(*args, **options))
        return made[-1]

    yield one
    for loader in made:
        loader.close()


def ids(loader: Any) -> list[list[int]]:
    return [batch.ids.tolist() for batch in loader]


def flat(loader: Any) -> list[int]:
    return [number for batch in ids(loader) for number in batch]


def assert_same(ours: DataLoader, theirs: Any, level: float = 1.01 / 255) -> None:
    """A whole epoch: labels, order, shapes and pixels."""
    assert len(ours) == len(theirs)
    assert len(ours.dataset) == len(theirs.dataset)
    for name in ("batch_size", "drop_last", "pin_memory", "timeout", "collate_fn", "in_order"):
        assert getattr(ours, name) == getattr(theirs, name), name
    for (images, labels), (wanted, of) in zip(ours, theirs, strict=True):
        assert labels.dtype == of.dtype and labels.tolist() == of.tolist()
        assert images.shape == wanted.shape and images.dtype == wanted.dtype
        assert (images - wanted).abs().max() < level


def test_an_epoch_is_torchs(make: Make, root: Path) -> None:
    old = v1.Compose([v1.Resize(36), v1.CenterCrop(32), v1.ToTensor(), v1.Normalize(*NORMALIZED)])
    new = v2.Compose(
        [
            v2.Resize(36),
            v2.CenterCrop(32),
            v2.ToImage(),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize(*NORMALIZED),
        ]
    )
    for transform, loader, said in [
        (old, pil_loader, {}),
        (new, None, {"drop_last": True}),
        (old, None, {"in_order": False, "collate_fn": default_collate}),
    ]:
        given = {} if loader is None else {"loader": loader}
        one = ImageFolder(root, transform, allow_empty=True, **given)
        ours = make(one, batch_size=8, **said)
        # A level is 1 / 255 before the division by the deviation.
        assert_same(ours, Theirs(one, batch_size=8, **said), 1.01 / 255 / 0.224)
        assert ours.dataset is one and ours.dataset.classes == one.classes
        assert len(ours.sampler) == len(one) and len(ours.batch_sampler) == len(ours)


def test_the_signature_is_torchs(make: Make, folder: ImageFolder) -> None:
    theirs = inspect.signature(Theirs.__init__).parameters
    ours = inspect.signature(DataLoader.__init__).parameters
    told = [(p.name, p.default, p.kind) for p in theirs.values()]
    assert [(p.name, p.default, p.kind) for p in ours.values()][:-1] == told
    one = make(folder, 4, False, None, None, 1, None, False, True, 2.5, None, "spawn", None)
    assert len(one) == 27 // 4 and one.drop_last and one.multiprocessing_context == "spawn"
    without_meaning = {"pin_memory_device": "cuda", "prefetch_factor": 7, "pin_memory": True}
    one = make(folder, num_workers=2, persistent_workers=True, **without_meaning)
    assert len(one) == 27 and one.batch_size == 1 and one.num_workers == 2 and one.pin_memory
    assert make(folder, num_workers=0).num_workers == 1
    with pytest.raises(TypeError, match="prefetch_factorr"):
        DataLoader(folder, prefetch_factorr=1)


def test_the_timeout_is_the_row_limit(make: Make, folder: ImageFolder, monkeypatch: Any) -> None:
    said = []
    stream = featherload._loader.Stream
    monkeypatch.setattr(
        featherload._loader,
        "Stream",
        lambda text, items, **form: (
            said.append(json.loads(text)["loader"]) or stream(text, items, **form)
        ),
    )
    make(folder, timeout=5)
    make(folder, timeout=5, row_limit=7)
    make(folder)
    assert [options.get("row_limit") for options in said] == [5, 7, None]


class Own(ImageFolder):  # type: ignore[misc]
    def __getitem__(self, at: int) -> Any:
        return super().__getitem__(0)


def collate(rows: Any) -> Any:
    return default_collate(rows)


@pytest.mark.parametrize(
    ("said", "option", "why"),
    [
        ({"batch_size": None}, "batch_size", "batch_size=None"),
        ({"batch_size": 0}, "batch_size", "batch_size=0"),
        ({"batch_size": True}, "batch_size", "batch_size=True"),
        ({"num_workers": -1}, "num_workers", "num_workers=-1"),
        ({"drop_last": 1}, "drop_last", "drop_last=1"),
        ({"timeout": -5}, "timeout", "timeout=-5"),
        ({"collate_fn": collate}, "collate_fn", "default_collate"),
        ({"batch_sampler": [0]}, "batch_sampler", "give lists of sample numbers"),
        ({"generator": 5}, "generator", "generator is a int"),
        ({"labels": "none"}, "labels", "labels is not supported"),
        ({"root": "/"}, "root", "root is not supported"),
        ({"rank": 1}, "world_size", "world_size is missing"),
    ],
)
def test_what_it_cannot_do_is_refused_by_name(
    folder: ImageFolder, said: dict[str, Any], option: str, why: str
) -> None:
    with pytest.raises(featherload.ConfigError, match=why) as caught:
        DataLoader(folder, **said)
    assert caught.value.option == option


def test_samplers_that_cannot_work_are_refused(make: Make, folder: ImageFolder) -> None:
    def distributed(**said: Any) -> Any:
        return DistributedSampler(folder, num_replicas=4, rank=1, **said)

    for sampler, said, option, why in [
        (SequentialSampler(folder), {"shuffle": True}, "sampler", "sampler and shuffle"),
        (RandomSampler(folder), {"shuffle": True}, "sampler", "sampler and shuffle"),
        (distributed(), {"shuffle": True}, "sampler", "sampler and shuffle"),
        (iter([1, 2]), {}, "sampler", "the sampler list_iterator has no length"),
        ([], {}, "sampler", "the sampler list has no samples"),
        (distributed(), {"rank": 2, "world_size": 4}, "rank", "rank=2.*'s 1"),
        (distributed(), {"world_size": 2}, "world_size", "world_size=2.*'s 4"),
    ]:
        with pytest.raises(featherload.ConfigError, match=why) as caught:
            DataLoader(folder, sampler=sampler, **said)
        assert caught.value.option == option
    for sampler, why in [
        ([0, 27], "place 1 of the order of epoch 0 has sample 27.*numbers below 27"),
        ([0, -1], "the sampler list gave -1 at place 1: give numbers from 0"),
        ([0, 1.5], "the sampler list gave 1.5 at place 1: give whole numbers"),
        (RandomSampler(range(28)), "has sample 27"),
        (Uneven(), "the sampler Uneven gave at least 3 samples, and its length was 2"),
    ]:
        loader = make(folder, 5, sampler=sampler)
        for _ in range(2):
            with pytest.raises(featherload.ConfigError, match=why) as caught:
                next(iter(loader))
            assert caught.value.option == "sampler"


class Uneven:
    """A sampler with a wrong length."""

    def __len__(self) -> int:
        return 2

    def __iter__(self) -> Iterator[int]:
        return iter([0, 1, 2])


class Ours(DistributedSampler[Any]):
    """A distributed sampler of somebody's own: backwards."""

    def __iter__(self) -> Iterator[int]:
        return iter([*super().__iter__()][::-1])


def seeded(seed: int = 5) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


WEIGHTS = [float(number % 5) for number in range(27)]
GIVEN: list[Callable[[ImageFolder], Any]] = [
    lambda folder: WeightedRandomSampler(WEIGHTS, 20, generator=seeded()),
    lambda folder: SubsetRandomSampler([3, 1, 20, 26], generator=seeded()),
    lambda folder: RandomSampler(folder, num_samples=10, generator=seeded()),
    lambda folder: RandomSampler(folder, num_samples=54, generator=seeded()),
    lambda folder: RandomSampler(folder, replacement=True, generator=seeded()),
    lambda folder: SequentialSampler(range(10)),
    lambda folder: [5, 5, 0, 26],
    lambda folder: torch.arange(26, -1, -2),
    lambda folder: Ours(folder, 4, 1),
    lambda folder: DistributedSampler(folder, 4, 2, drop_last=True),
    lambda folder: DistributedSampler(range(9), 4, 3),
]


@pytest.mark.parametrize("sampler", GIVEN)
def test_any_finite_sampler_gives_torchs_batches(
    make: Make, folder: ImageFolder, sampler: Callable[[ImageFolder], Any]
) -> None:
    """Ids, labels and pixels of three epochs, with a last batch that is short or dropped."""
    for drop_last in (False, True):
        mine, theirs = sampler(folder), sampler(folder)
        one = make(folder, 3, sampler=mine, num_workers=2, drop_last=drop_last)
        assert one.sampler is mine
        other = Theirs(folder, 3, sampler=theirs, drop_last=drop_last)
        assert len(one) == len(other) and len(one.batch_sampler) == len(other.batch_sampler)
        for epoch in range(3):
            for of in (mine, theirs):
                if hasattr(of, "set_epoch"):
                    of.set_epoch(epoch)
            for batch, (pixels, targets) in zip(one, other, strict=True):
                images, labels = batch
                assert labels.tolist() == targets.tolist()
                assert (images - pixels).abs().max() < 1.01 / 255
                assert [folder.samples[id][1] for id in batch.ids.tolist()] == labels.tolist()


def test_a_state_resumes_within_an_order_that_the_sampler_repeats(
    make: Make, folder: ImageFolder
) -> None:
    def sampler(seed: int = 5) -> Any:
        return WeightedRandomSampler(WEIGHTS, 20, generator=seeded(seed))

    one = make(folder, 3, sampler=sampler(), seed=1)
    want = [ids(one) for _ in range(3)]
    assert want[0] != want[1] != want[2]
    for epochs, batches in ((0, 2), (2, 4), (2, 0)):
        one = make(folder, 3, sampler=sampler(), seed=1)
        for _ in range(epochs):
            ids(one)
        begun = iter(one)
        seen = [next(begun).ids.tolist() for _ in range(batches)]
        state = json.loads(json.dumps(one.state_dict()))
        if not batches:
            # At the end of an epoch: the next epoch has the next order.
            two = make(folder, 3, sampler=sampler(), seed=1)
            two.load_state_dict(state)
            assert ids(two) == want[epochs]
        if batches:
            two = make(folder, 3, sampler=sampler(), seed=1, num_workers=2)
            two.load_state_dict(state)
            assert seen + ids(two) == want[epochs]
            # The same loader goes back, too.
            one.load_state_dict(state)
            assert seen + ids(one) == want[epochs]
            other = make(folder, 3, sampler=sampler(6), seed=1)
            other.load_state_dict(state)
            with pytest.raises(
                featherload.ConfigError, match="WeightedRandomSampler does not repeat the order"
            ) as caught:
                next(iter(other))
            assert caught.value.option == "sampler"
    own = [make(folder, 3, sampler=Ours(folder, 4, 1)) for _ in range(2)]
    own[0].sampler.set_epoch(7)
    begun = iter(own[0])
    seen = [next(begun).ids.tolist()]
    own[1].load_state_dict(own[0].state_dict())
    # The sampler has its own count of epochs.
    own[1].sampler.set_epoch(7)
    assert seen + ids(own[1]) == seen + [batch.ids.tolist() for batch in begun]


def test_a_preview_leaves_the_sampler_alone(make: Make, folder: ImageFolder) -> None:
    one = make(folder, 3, sampler=WeightedRandomSampler(WEIGHTS, 20, generator=seeded()))
    one.preview(3)
    want = [*WeightedRandomSampler(WEIGHTS, 20, generator=seeded())]
    begun = iter(one)
    assert next(begun).ids.tolist() == want[:3]
    one.preview(3)
    assert next(begun).ids.tolist() == want[3:6]


def test_other_data_sets_are_refused(make: Make, root: Path, folder: ImageFolder) -> None:
    def read(transform: Any = SMALL, **said: Any) -> Any:
        return ImageFolder(str(root), transform, allow_empty=True, **said)

    def edited(sample: Any) -> Any:
        one = read()
        one.samples[3] = sample
        return one

    class View(Subset[Any]):
        pass

    path = folder.samples[3][0]
    for dataset, why in [
        ([1, 2], "dataset is a list, and no data set of torch: give it to featherload.Loader"),
        (View(folder, [1]), "View is not known"),
        (Subset([1, 2], [0]), "dataset is a list, and no data set of torch"),
        (Own(str(root), SMALL, allow_empty=True), "Own has a __getitem__ of its own"),
        (read(target_transform=lambda _: np.random.default_rng().random()), "must not be random"),
        (read(loader=Image.open), "the loader of the ImageFolder"),
        (read(None), "no transform"),
        (read(v2.Resize((8, 8))), "returns no tensor"),
        (read(v2.ToImage()), "their own sizes"),
        (Subset(folder, []), "no samples"),
        (Subset(folder, [27]), "not valid.*27"),
        (Subset(folder, [1.0]), "not valid"),
        (Subset(folder, torch.ones(27, dtype=torch.bool)), "they are a mask"),
        (edited((path, "cat")), "item 3: the label is a class name"),
        (edited((path, [1, 2])), "item 3: the label is a vector of 2 numbers"),
        (edited((path, True)), "item 3: the label is True"),
        (edited((path, 1 << 63)), "item 3: the label is 9223372036854775808"),
        (edited(("", 1)), "item 3: the path is empty"),
    ]:
        with pytest.raises(featherload.ConfigError, match=why) as caught:
            DataLoader(dataset)
        assert caught.value.option == "dataset"
    # A recipe takes the transform's place, not the data set's.
    with pytest.raises(
        featherload.ConfigError, match="dataset is a list, and no data set of torch"
    ):
        DataLoader([1, 2], recipe="train224")
    one = make(read(None), recipe={"ops": [{"resize": {"size": [4, 4]}}]}, batch_size=9)
    assert next(iter(one)).images.shape == (9, 3, 4, 4)


def test_subclasses_that_read_the_same_way_are_taken(make: Make, root: Path) -> None:
    class Named(ImageFolder):  # type: ignore[misc]
        """As torchvision's ImageNet, whose classes have several names."""

        def __init__(self) -> None:
            super().__init__(str(root), SMALL, allow_empty=True)
            self.classes = [(name, name.upper()) for name in self.classes]

    one = make(Named(), batch_size=27)
    assert [row.label for row in one.preview(27)][:2] == ["ant, ANT"] * 2


def test_samples_are_the_folders(make: Make, root: Path, folder: ImageFolder) -> None:
    """Edited ones too: order, labels and files; and a preview names their classes."""
    assert folder.classes == ["ant", "ant b", "nothing", "zebra"]
    one = make(folder, batch_size=10)
    assert [str(path) for batch in one for path in batch.paths()] == [p for p, _ in folder.samples]
    assert [str(row.path) for row in one.preview(4)] == [p for p, _ in folder.samples[:4]]
    assert [row.label for row in make(folder, batch_size=27).preview(27)] == [
        folder.classes[label] for _, label in folder.samples
    ]
    folder.samples = [(path, 40 - n) for n, (path, _) in enumerate(folder.samples[::-1])]
    folder.samples[2] = (folder.samples[1][0], np.int64(-7))
    assert_same(make(folder, batch_size=8), Theirs(folder, batch_size=8))
    two = make(folder, batch_size=8, shuffle=True)
    for batch in two:
        assert [folder.samples[i] for i in batch.ids.tolist()] == [
            (str(path), label)
            for path, label in zip(batch.paths(), batch.labels.tolist(), strict=True)
        ]
    few = ImageFolder(str(root), SMALL, is_valid_file=lambda p: p.endswith("1.jpg"), allow_empty=1)
    assert 0 < len(few) < 10
    assert_same(make(few, batch_size=4), Theirs(few, batch_size=4))


def test_hidden_files_that_the_folder_lists_stay_samples(
    make: Make, tmp_path: Path, root: Path
) -> None:
    """A source of our own leaves them out; here places in the data set are torch's."""
    source = ImageFolder(str(root), SMALL, allow_empty=True).samples[0][0]
    names = ["a/1.jpg", "a/._2.jpg", "a/x.png/3.jpg", ".b/4.jpg", "__MACOSX/5.jpg"]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, tmp_path / name)
    folder = ImageFolder(str(tmp_path), SMALL)
    assert len(folder) == len(names)
    assert_same(make(folder, batch_size=5, decode="full"), Theirs(folder, batch_size=5))
    ours = featherload.index(tmp_path)
    assert (ours.samples, ours["left_out"]) == (
        2,
        {"hidden file": 1, "hidden folder": 1, "system folder": 1},
    )
    assert "1 x hidden file (such as a/._2.jpg)" in str(ours)


def test_odd_names(make: Make, tmp_path: Path, root: Path, monkeypatch: Any) -> None:
    source = ImageFolder(str(root), SMALL, allow_empty=True).samples[0][0]
    names = [b"a b 1", b"a\tb", b'q"u\\o', b"#1", b" 2 ", b"\xff\xfe", b"\r", b"a\r", "é".encode()]
    for name in names:
        path = os.path.join(os.fsencode(tmp_path), b"data", b"c " + name, name + b".jpg")
        os.makedirs(os.path.dirname(path))
        shutil.copy(source, path)
    # Outside of the root, and absolute.
    other = tmp_path / "other.jpg"
    shutil.copy(source, other)
    monkeypatch.chdir(tmp_path)
    hashes = set()
    for place in ("data", "./data/", tmp_path / "data", f"{tmp_path}/x/..//data"):
        (tmp_path / "x").mkdir(exist_ok=True)
        folder = ImageFolder(place, SMALL)
        assert len(folder) == len(names)
        one = make(folder, batch_size=4)
        assert_same(one, Theirs(folder, batch_size=4))
        hashes.add(one.state_dict()["index_hash"])
        folder.samples += [(str(other), 3), ("other.jpg", 4), (f"{tmp_path}/data/../other.jpg", 5)]
        assert_same(make(folder, batch_size=4), Theirs(folder, batch_size=4))
    assert len(hashes) == 1
    os.rename(b"data/c a b 1/a b 1.jpg", b"data/c a b 1/a\n1.jpg")
    os.rename(b"data", b"data\xff")
    folder = ImageFolder(os.fsdecode(b"data\xff"), SMALL)
    assert_same(make(folder, batch_size=4), Theirs(folder, batch_size=4))


def test_subsets_are_taken_in_their_order(make: Make, folder: ImageFolder) -> None:
    inner = Subset(folder, range(26, 2, -2))
    parts = random_split(folder, [20, 7], torch.Generator().manual_seed(3))
    for subset in [
        Subset(folder, [5, 3, 3, -1, 20]),
        Subset(inner, [4, 0, 11]),
        Subset(folder, torch.tensor([2, 1])),
        Subset(folder, np.array([9, 8, 26])),
        Subset(folder, {0: 5, 1: 4}),  # type: ignore[arg-type]
        *parts,
    ]:
        one = make(subset, batch_size=3)
        assert_same(one, Theirs(subset, batch_size=3))
        assert one.dataset is subset
    last = make(Subset(inner, [4, 0, 11]), batch_size=3)
    assert ids(last) == [[0, 1, 2]]
    wanted = [folder.samples[i] for i in (18, 26, 4)]
    assert [str(path) for path in next(iter(last)).paths()] == [path for path, _ in wanted]
    assert [row.label for row in last.preview()] == [folder.classes[label] for _, label in wanted]


def test_samplers_give_torchs_batches(make: Make, folder: ImageFolder) -> None:
    one = make(folder, 4, sampler=SequentialSampler(folder))
    assert flat(one) == list(range(27))
    one = make(folder, 4, sampler=RandomSampler(folder))
    first, second = (flat(one) for _ in range(2))
    assert first != second and sorted(first) == sorted(second) == list(range(27))
    for length, ranks, drop_of_sampler, drop in [
        (27, 4, False, False),
        (24, 4, True, False),
        (24, 4, True, True),
        (26, 4, False, True),
        (27, 4, True, False),
        (27, 4, True, True),
        (2, 3, False, False),
    ]:
        part = Subset(folder, range(length))
        for rank in range(ranks):
            sampler = DistributedSampler(
                part, ranks, rank, shuffle=False, drop_last=drop_of_sampler
            )
            one = make(part, 4, sampler=sampler, drop_last=drop)
            batches = torch.utils.data.BatchSampler(sampler, 4, drop)
            assert ids(one) == list(batches) and len(one) == len(batches)
            assert one.sampler is sampler and list(one.batch_sampler) == list(batches)
    shuffled = [
        flat(make(folder, 4, sampler=DistributedSampler(folder, 4, rank, seed=5)))
        for rank in range(4)
    ]
    assert {len(one) for one in shuffled} == {7}
    assert set().union(*shuffled) == set(range(27)) and shuffled[0] != sorted(shuffled[0])


def test_the_samplers_epoch_is_followed(make: Make, folder: ImageFolder) -> None:
    def pair() -> tuple[Any, DataLoader]:
        sampler = DistributedSampler(folder, 2, 1)
        return sampler, make(folder, 4, sampler=sampler)

    sampler, one = pair()
    # Nobody says an epoch: they go on.
    whole = [ids(one) for _ in range(4)]
    assert len({str(epoch) for epoch in whole}) == 4
    assert one.epoch == 4 and sampler.epoch == 0
    # Each is said, and one again.
    sampler, one = pair()
    for epoch in (0, 1, 1, 2, 1, 3, 0, 0):
        sampler.set_epoch(epoch)
        assert one.epoch == one.state_dict()["epoch"] == epoch
        assert ids(one) == whole[epoch]
    # As torch, once it was told: the same until it is told another one.
    sampler.set_epoch(1)
    assert [ids(one), ids(one)] == [whole[1], whole[1]]
    # Said before the loader is made, and between iter() and the first batch.
    sampler = DistributedSampler(folder, 2, 1)
    sampler.set_epoch(3)
    one = make(folder, 4, sampler=sampler)
    assert ids(one) == whole[3]
    begun = iter(one)
    sampler.set_epoch(1)
    assert ids(begun) == whole[1]
    # A run that goes on in the middle of an epoch.
    sampler, one = pair()
    sampler.set_epoch(2)
    begun = iter(one)
    assert next(begun).ids.tolist() == whole[2][0]
    sampler, two = pair()
    two.load_state_dict(one.state_dict())
    sampler.set_epoch(2)
    assert ids(two) == whole[2][1:]
    sampler.set_epoch(3)
    assert ids(two) == whole[3]
    # The loader's own word stands, too.
    two.set_epoch(0)
    assert ids(two) == whole[0]


def test_the_seed_is_torchs(make: Make, folder: ImageFolder) -> None:
    def order(dataset: Any = folder, **said: Any) -> list[int]:
        said.setdefault("shuffle", None if "sampler" in said else True)
        return flat(make(dataset, 9, **said))

    def seeded(seed: int) -> torch.Generator:
        return torch.Generator().manual_seed(seed)

    before = torch.initial_seed()
    try:
        torch.manual_seed(1)
        one = order()
        torch.manual_seed(2)
        two = order()
        assert one != two == order() == order(seed=2) == order(generator=seeded(2))
        assert order(generator=seeded(1)) == one == order(seed=1, generator=seeded(2))
        assert order(sampler=RandomSampler(folder, generator=seeded(1))) == one
        said = {"sampler": RandomSampler(folder, generator=seeded(1)), "generator": seeded(2)}
        assert order(**said) == one
        assert order(sampler=RandomSampler(folder)) == two
        # All ranks have the same seed, whatever each one's torch was given.
        ranked = order(sampler=DistributedSampler(folder, 2, 1, seed=1), generator=seeded(3))
        assert ranked == order(rank=1, world_size=2, seed=1)
        assert order(rank=1, world_size=2) == order(rank=1, world_size=2, seed=0)
        torch.manual_seed(-1)
        assert order() == order(seed=2**64 - 1)
    finally:
        torch.manual_seed(before)


def test_torchruns_variables_alone_divide_nothing(
    make: Make, folder: ImageFolder, monkeypatch: Any
) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "4")
    assert flat(make(folder, 8)) == list(range(27))
    # Nor does a group of torch.distributed's; accelerate and Lightning divide torch's loaders.
    monkeypatch.setattr(featherload._options, "process_group", lambda: (1, 4))
    with pytest.raises(featherload.ConfigError, match="4 processes train together.*Distributed"):
        flat(make(folder, 8))
    assert flat(make(folder, 8, rank=0, world_size=1)) == list(range(27))
    assert ids(make(folder, 8, rank=3, world_size=4)) == [[3, 7, 11, 15, 19, 23, 0]]
    sampler = DistributedSampler(folder, 4, 2, shuffle=False)
    assert ids(make(folder, 8, sampler=sampler)) == [list(sampler)]


def test_states_are_of_the_samples_alone(
    make: Make, root: Path, folder: ImageFolder, tmp_path: Path
) -> None:
    """Not of the list that they are handed over by, nor of the folder's place."""
    one = make(folder, 8, shuffle=True, seed=3)
    begun = iter(one)
    seen = [next(begun).ids.tolist() for _ in range(2)]
    state = json.loads(json.dumps(one.state_dict()))
    moved = tmp_path / "moved"
    shutil.copytree(root, moved)
    for place in (root, moved):
        other = make(ImageFolder(str(place), SMALL, allow_empty=True), 8, shuffle=True, seed=3)
        other.load_state_dict(state)
        assert seen + ids(other) == ids(make(folder, 8, shuffle=True, seed=3))
    folder.samples[0], folder.samples[1] = folder.samples[1], folder.samples[0]
    swapped = make(folder, 8, shuffle=True, seed=3)
    swapped.load_state_dict(state)
    with pytest.raises(featherload.ConfigError, match="data|index"):
        next(iter(swapped))


def test_no_list_is_left_behind(folder: ImageFolder, tmp_path: Path, monkeypatch: Any) -> None:
    import gc
    import tempfile

    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    DataLoader(folder).close()
    gc.collect()
    before = descriptors()
    one = DataLoader(folder)
    assert not list(tmp_path.iterdir())
    one.close()
    del one
    with pytest.raises(featherload.ConfigError):
        DataLoader(folder, depth=0)
    gc.collect()
    assert descriptors() == before


def test_a_config_as_recipe_leaves_labels_alone(
    make: Make, root: Path, folder: ImageFolder, tmp_path: Path
) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(
        "DataLoader:\n  Train:\n    dataset:\n      name: ImageNetDataset\n"
        f"      image_root: {root}\n      cls_label_path: list.txt\n      relabel: True\n"
        "      transform_ops:\n        - DecodeImage:\n            to_rgb: True\n"
        "        - ResizeImage:\n            size: [8, 8]\n"
        "    sampler:\n      name: DistributedBatchSampler\n      batch_size: 4\n"
        "      drop_last: False\n      shuffle: True\n"
    )
    folder.samples = [(path, 10 * label) for path, label in folder.samples]
    loader = make(folder, 4, recipe=config, mode="train")
    for batch in loader:
        assert batch.labels.tolist() == [folder.samples[id][1] for id in batch.ids.tolist()]


def test_lengths_are_torchs(make: Make, folder: ImageFolder) -> None:
    """Trainers count samples by them: a metric over others is another metric."""
    for said in [
        {},
        {"shuffle": True},
        {"drop_last": True},
        {"sampler": SequentialSampler(folder)},
        {"sampler": RandomSampler(folder), "drop_last": True},
        *({"sampler": DistributedSampler(folder, 4, rank, shuffle=True)} for rank in range(4)),
        {"sampler": DistributedSampler(folder, 4, 3, shuffle=False, drop_last=True)},
    ]:
        ours, theirs = make(folder, 5, **said), Theirs(folder, 5, **said)
        for of in (len, lambda x: len(x.sampler), lambda x: len(x.batch_sampler)):
            assert of(ours) == of(theirs), said
        assert len(ours.dataset) == len(theirs.dataset) == 27
        assert (ours.batch_size, ours.drop_last) == (theirs.batch_size, theirs.drop_last)
        assert len(ours.batch_sampler.sampler) == len(theirs.sampler)
        assert ours.batch_sampler.batch_size == 5
    # Ranks without a sampler of torch's: as its DistributedSampler counts.
    one = make(folder, 5, rank=1, world_size=4)
    assert len(one.sampler) == 7 and len(one) == 2


def test_what_the_imagenet_example_evaluates_is_each_sample_once(
    make: Make, folder: ImageFolder
) -> None:
    """The rows of both ranks, and of the rest that each rank then takes (imagenet/main.py -e)."""
    for length in (26, 27):
        part = Subset(folder, range(length))
        seen = []
        for rank in range(2):
            sampler = DistributedSampler(part, 2, rank, shuffle=False, drop_last=True)
            one = make(part, 4, sampler=sampler)
            seen += flat(one)
            rest = range(len(one.sampler) * 2, len(one.dataset))
        assert sorted([*seen, *rest]) == list(range(length))


def test_a_sampler_gives_the_epoch_that_comes_next(make: Make, folder: ImageFolder) -> None:
    one = make(folder, 4, shuffle=True, seed=3)
    for epoch in (0, 1, 5):
        one.sampler.set_epoch(epoch)
        assert one.sampler.epoch == epoch
        numbers, batches = list(one.sampler), list(one.batch_sampler)
        assert sorted(numbers) == list(range(27))
        assert [number for batch in batches for number in batch] == numbers
        assert ids(one) == batches
    ranked = make(folder, 4, shuffle=True, seed=3, rank=1, world_size=2, drop_last=True)
    numbers = list(ranked.sampler)
    assert len(numbers) == 13 and flat(ranked) == numbers[:12]


def test_a_worker_init_fn_is_reported_and_not_called(make: Make, folder: ImageFolder) -> None:
    called: list[int] = []
    with pytest.warns(UserWarning, match="worker_init_fn is not called") as reported:
        one = make(folder, 8, worker_init_fn=called.append)
    assert len(reported) == 1 and one.worker_init_fn == called.append
    assert len(flat(one)) == 27 and not called


def test_keywords_without_effect_are_in_the_log(
    make: Make, folder: ImageFolder, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "featherload")
    make(folder, 8)
    assert not caplog.messages
    make(folder, 8, pin_memory=True, num_workers=1, prefetch_factor=2, in_order=False)
    assert any("pin_memory, prefetch_factor, in_order" in text for text in caplog.messages)


def test_changes_after_the_loader_was_made_are_refused(make: Make, root: Path) -> None:
    def read() -> ImageFolder:
        return ImageFolder(str(root), SMALL, allow_empty=True)

    larger = v2.Compose([v2.Resize((9, 9)), *SMALL.transforms[1:]])
    changes: list[tuple[Callable[[ImageFolder], Any], str]] = [
        (lambda one: setattr(one, "transform", larger), "transform of the data set changed"),
        (lambda one: setattr(one, "transform", None), "transform of the data set changed"),
        (lambda one: setattr(one, "target_transform", lambda of: of + 1), "samples of the data"),
        (lambda one: setattr(one, "loader", Image.open), "the loader of the ImageFolder"),
        (lambda one: one.samples.pop(0), "samples of the data set changed"),
        (lambda one: setattr(one, "samples", one.samples[::-1]), "samples of the data set changed"),
        (lambda one: one.samples.__setitem__(3, (one.samples[3][0], 9)), "samples of the data"),
    ]
    for change, why in changes:
        one = read()
        loaders = [make(one, 9), make(Subset(one, range(26)), 9)]
        assert [len(flat(loader)) for loader in loaders] == [27, 26]
        change(one)
        for loader in loaders:
            with pytest.raises(featherload.ConfigError, match=why) as caught:
                next(iter(loader))
            assert caught.value.option == "dataset"
    # In place, too; and back again.
    one = read()
    one.transform = v2.Compose([v2.Resize((8, 8)), *SMALL.transforms[1:]])
    loader = make(one, 9)
    one.transform.transforms[0].size = [7, 7]
    with pytest.raises(featherload.ConfigError, match="transform of the data set changed"):
        next(iter(loader))
    one.transform.transforms[0].size = [8, 8]
    assert len(flat(loader)) == 27
    # A recipe stands in the place of the transform.
    loader = make(one, 9, recipe={"ops": [{"resize": {"size": [4, 4]}}]})
    one.transform = None
    assert len(flat(loader)) == 27
    subset = Subset(read(), [1, 2, 3])
    loader = make(subset, 9)
    subset.indices = [1, 2]
    with pytest.raises(featherload.ConfigError, match="samples of the data set changed"):
        next(iter(loader))


@pytest.mark.parametrize("label", [[1, 2], np.array([1, 2]), {"a": 1}])
def test_labels_of_another_kind_are_refused_by_name(
    make: Make, root: Path, folder: ImageFolder, label: Any
) -> None:
    def read() -> ImageFolder:
        return ImageFolder(str(root), SMALL, allow_empty=True)

    one = read()
    one.samples[0] = (one.samples[0][0], label)
    why = "item [01]: the label is "
    with pytest.raises(featherload.ConfigError, match=why) as caught:
        DataLoader(one)
    assert caught.value.option == "dataset"
    one = read()
    loader = make(one, 9)
    one.samples[3] = (one.samples[3][0], label)
    with pytest.raises(featherload.ConfigError, match="samples of the data set changed"):
        next(iter(loader))
    # The last of 27 samples, which two ranks leave out, is not asked for its label.
    one = read()
    one.samples[26] = (one.samples[26][0], label)
    sampler = DistributedSampler(one, 2, 1, shuffle=False, drop_last=True)
    loader = make(one, 13, sampler=sampler)
    assert len(flat(loader)) == 13
    one.samples.pop()
    with pytest.raises(featherload.ConfigError, match="samples of the data set changed"):
        next(iter(loader))


def test_a_sampler_or_generator_that_changed_is_refused(make: Make, folder: ImageFolder) -> None:
    for name, value in [("shuffle", False), ("seed", 9), ("rank", 0), ("drop_last", True)]:
        sampler = DistributedSampler(folder, 2, 1)
        one = make(folder, 8, sampler=sampler)
        sampler.set_epoch(4)
        assert len(flat(one)) == 14
        setattr(sampler, name, value)
        with pytest.raises(featherload.ConfigError, match="DistributedSampler changed") as caught:
            next(iter(one))
        assert caught.value.option == "sampler"
    generator = torch.Generator().manual_seed(1)
    one = make(folder, 8, shuffle=True, generator=generator)
    torch.randperm(9, generator=generator)
    assert len(flat(one)) == 27
    generator.manual_seed(2)
    with pytest.raises(featherload.ConfigError, match="seeded again") as caught:
        next(iter(one))
    assert caught.value.option == "generator"
    # A sampler's own, seeded again or another one.
    for replaced in (False, True):
        sampler = RandomSampler(folder, generator=torch.Generator().manual_seed(1))
        one = make(folder, 8, sampler=sampler)
        torch.randperm(9, generator=sampler.generator)
        assert len(flat(one)) == 27
        if replaced:
            sampler.generator = torch.Generator()
        sampler.generator.manual_seed(2)
        with pytest.raises(featherload.ConfigError, match="RandomSampler changed") as caught:
            next(iter(one))
        assert caught.value.option == "sampler"


def test_attributes_that_are_read_once_are_not_set_later(make: Make, folder: ImageFolder) -> None:
    one = make(folder, 8)
    for name in ("batch_size", "dataset", "sampler", "batch_sampler", "drop_last", "collate_fn"):
        with pytest.raises(ValueError, match=f"{name} of a loader is read when it is made"):
            setattr(one, name, None)
    # What timm and Lightning set.
    one.mixup_enabled = False
    one.worker_init_fn = print
    assert len(flat(one)) == 27


def test_an_exact_decode_is_the_default(make: Make, tmp_path: Path) -> None:
    """Large enough to be decoded at 1/4, with edges that show it."""
    (tmp_path / "a").mkdir()
    noise = np.random.default_rng(1).integers(0, 256, (64, 64, 3), np.uint8)
    large = Image.fromarray(noise).resize((512, 512), Image.Resampling.NEAREST)
    large.save(tmp_path / "a" / "1.jpg", quality=95)
    one = ImageFolder(str(tmp_path), v1.Compose([v1.Resize((64, 64)), v1.ToTensor()]))
    (theirs, _) = next(iter(Theirs(one)))
    (exact, _) = next(iter(make(one)))
    assert (exact - theirs).abs().max() * 255 < 2.01
    scaled = make(one, decode="scaled")
    assert (next(iter(scaled)).images - theirs).abs().max() * 255 > 5
    assert make(one, decode="full").state_dict()["profile"]["decode"] == "full"
    assert scaled.state_dict()["profile"]["decode"] == "scaled"


def test_timms_sampler_for_evaluation_is_taken(make: Make, folder: ImageFolder) -> None:
    need("timm")
    from timm.data.distributed_sampler import OrderedDistributedSampler

    for rank in range(4):
        sampler = OrderedDistributedSampler(folder, 4, rank)
        one = make(folder, 5, sampler=sampler)
        assert flat(one) == list(sampler) and one.sampler is sampler
        assert len(one) == len(Theirs(folder, 5, sampler=sampler))


def test_torchs_batch_sampler_is_taken_apart(make: Make, folder: ImageFolder) -> None:
    for drop_last in (False, True):
        of = BatchSampler(SequentialSampler(folder), 5, drop_last)
        assert_same(make(folder, batch_sampler=of), Theirs(folder, 5, drop_last=drop_last))
    of = BatchSampler(RandomSampler(folder), 4, True)
    torch.manual_seed(3)
    one = make(folder, batch_sampler=of)
    assert ids(one) == ids(make(folder, 4, shuffle=True, drop_last=True, seed=3))
    for said in ({"batch_size": 2}, {"shuffle": True}, {"drop_last": True}):
        with pytest.raises(featherload.ConfigError, match="leave them out") as caught:
            DataLoader(folder, batch_sampler=of, **said)
        assert caught.value.option == "batch_sampler"


def test_samplers_of_featherload_are_taken(make: Make, folder: ImageFolder) -> None:
    weights = [float(number % 3 == 0) for number in range(len(folder))]
    weighted = featherload.samplers.Weighted(weights, num_samples=40)
    one = make(folder, 8, sampler=weighted)
    assert len(one) == 5 and {id % 3 for id in flat(one)} == {0}
    one = make(folder, 4, sampler=featherload.samplers.Identity(2))
    for batch in one:
        assert np.unique(batch.labels.numpy(), return_counts=True)[1].tolist() == [2, 2]
    with pytest.raises(featherload.ConfigError, match="both set the order"):
        DataLoader(folder, shuffle=True, sampler=weighted)
