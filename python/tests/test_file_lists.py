"""``featherload.torch.DataLoader`` over torchvision's data sets and others, beside torch's own."""
# ruff: noqa: E402

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import featherload

for module in ("torch", "torchvision"):
    if importlib.util.find_spec(module) is None:
        if os.environ.get("FEATHERLOAD_REQUIRE_FRAMEWORKS"):
            pytest.fail(f"{module} is not installed", pytrace=False)
        pytest.skip(f"SKIP: {module} is not installed", allow_module_level=True)

import torch
from PIL import Image
from torch.utils.data import ConcatDataset, Dataset, Subset, random_split
from torch.utils.data import DataLoader as Theirs
from torchvision import datasets
from torchvision.datasets.folder import pil_loader
from torchvision.transforms import v2

from featherload.torch import DataLoader

SMALL = v2.Compose([v2.Resize((8, 8)), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])
LEVEL = 1.01 / 255


def image(path: Path) -> None:
    """Coarse waves, others for each path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(list(os.fsencode(path.name)))
    coarse = Image.fromarray(random.integers(0, 256, (4, 4, 3), np.uint8))
    coarse.resize((40, 30), Image.Resampling.BICUBIC).save(path)


def text(path: Path, *lines: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines))


def food101(root: Path) -> Any:
    names = {"pie": ["pie/1", "pie/2"], "apple": ["apple/7"]}
    for name in [*names["pie"], *names["apple"]]:
        image(root / "food-101/images" / f"{name}.jpg")
    text(root / "food-101/meta/train.json", json.dumps(names))
    return datasets.Food101(root, "train", SMALL)


def oxford_pet(root: Path, kind: str = "category") -> Any:
    lines = ["Abyssinian_1 1 1 1", "beagle_2 2 2 1", "beagle_3 2 2 2"]
    for line in lines:
        image(root / "oxford-iiit-pet/images" / f"{line.split()[0]}.jpg")
    text(root / "oxford-iiit-pet/annotations/trainval.txt", *lines)
    return datasets.OxfordIIITPet(root, target_types=kind, transform=SMALL)


def gtsrb(root: Path) -> Any:
    for name in ("00000/1.ppm", "00001/2.ppm", "00001/3.ppm"):
        image(root / "gtsrb/GTSRB/Training" / name)
    return datasets.GTSRB(root, "train", SMALL)


def aircraft(root: Path) -> Any:
    data = root / "fgvc-aircraft-2013b/data"
    for name in ("10", "11", "12"):
        image(data / f"images/{name}.jpg")
    text(data / "families.txt", "A 300", "Boeing 747")
    text(data / "images_family_train.txt", "12 A 300", "10 Boeing 747", "11 A 300")
    return datasets.FGVCAircraft(root, "train", "family", SMALL)


def dtd(root: Path) -> Any:
    names = ["banded/b_2.jpg", "dotted/d_1.jpg", "banded/b_1.jpg"]
    for name in names:
        image(root / "dtd/dtd/images" / name)
    text(root / "dtd/dtd/labels/train1.txt", *names)
    return datasets.DTD(root, transform=SMALL)


def sun397(root: Path) -> Any:
    for name in ("a/abbey/sun_1.jpg", "z/zoo/sun_2.jpg", "a/abbey/sun_3.jpg"):
        image(root / "SUN397" / name)
    text(root / "SUN397/ClassName.txt", "/a/abbey", "/z/zoo")
    return datasets.SUN397(root, SMALL)


def rendered_sst2(root: Path) -> Any:
    for name in ("negative/1.png", "positive/1.png", "positive/2.png"):
        image(root / "rendered-sst2/train" / name)
    return datasets.RenderedSST2(root, transform=SMALL)


def inaturalist(root: Path, kind: str = "full") -> Any:
    for number, genus in enumerate(("Larus", "Apis", "Larus")):
        order = "Aves" if genus == "Larus" else "Insecta"
        name = f"{number:05d}_Animalia_Phylum_{order}_O_F_{genus}_species{number}"
        image(root / "2021_valid" / name / f"{number}.jpg")
    return datasets.INaturalist(root, "2021_valid", kind, SMALL)


def caltech101(root: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    (root / "caltech101/101_ObjectCategories/BACKGROUND_Google").mkdir(parents=True)
    (root / "caltech101/Annotations").mkdir()
    for name in ("crab/image_0001.jpg", "yak/image_0001.jpg", "yak/image_0002.jpg"):
        image(root / "caltech101/101_ObjectCategories" / name)
    return datasets.Caltech101(root, transform=SMALL)


def caltech256(root: Path) -> Any:
    for name in ("001.ak47/001_0001.jpg", "002.flag/002_0001.jpg", "002.flag/002_0002.jpg"):
        image(root / "caltech256/256_ObjectCategories" / name)
    return datasets.Caltech256(root, SMALL)


def celeba(root: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Its files have checksums, which are of the real ones."""
    monkeypatch.setattr(datasets.CelebA, "_check_integrity", lambda self: True)
    folder = root / "celeba"
    names = ["000001.jpg", "000002.jpg", "000003.jpg"]
    for name in names:
        image(folder / "img_align_celeba" / name)
    rows = [f"{name} {n % 2}" for n, name in enumerate(names)]
    text(folder / "list_eval_partition.txt", *(f"{name} 0" for name in names))
    text(folder / "identity_CelebA.txt", *rows)
    for file, columns in (
        ("list_bbox_celeba.txt", 4),
        ("list_landmarks_align_celeba.txt", 10),
        ("list_attr_celeba.txt", 40),
    ):
        header = " ".join(f"c{n}" for n in range(columns))
        values = [" ".join(str(2 * ((n + i) % 2) - 1) for i in range(columns)) for n in range(3)]
        text(folder / file, "3", header, *(f"{a} {b}" for a, b in zip(names, values, strict=True)))
    return datasets.CelebA(root, "train", kind, SMALL)


def places365(root: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Its lists have checksums, which are of the real ones."""
    names = ["/a/abbey/1.jpg", "/z/zoo/2.jpg", "/a/abbey/3.jpg"]
    for name in names:
        image(root / "data_large_standard" / name[1:])
    listed = [(str(root / "data_large_standard" / name[1:]), n % 2) for n, name in enumerate(names)]
    classes = ["/a/abbey", "/z/zoo"]
    monkeypatch.setattr(
        datasets.Places365, "load_categories", lambda self, _: (classes, {classes[0]: 0})
    )
    monkeypatch.setattr(datasets.Places365, "load_file_list", lambda self, _: (listed, [0, 1, 0]))
    return datasets.Places365(root, transform=SMALL)


def eurosat(root: Path) -> Any:
    for name in ("Forest/Forest_1.jpg", "River/River_1.jpg", "River/River_2.jpg"):
        image(root / "eurosat/2750" / name)
    return datasets.EuroSAT(str(root), SMALL)


def folder(root: Path, kind: Any = datasets.ImageFolder, **options: Any) -> Any:
    for name in ("ant/1.jpg", "ant/2.png", "bee/3.jpg", "bee/4.jpg", "cat/5.png"):
        image(root / "folder" / name)
    return kind(str(root / "folder"), transform=SMALL, **options)


@pytest.fixture
def loaders() -> Iterator[Callable[..., DataLoader]]:
    made: list[DataLoader] = []

    def make(*args: Any, **options: Any) -> DataLoader:
        made.append(DataLoader(*args, **options))
        return made[-1]

    yield make
    for loader in made:
        loader.close()


def assert_same(make: Callable[..., DataLoader], dataset: Any) -> None:
    """Ids, labels and pixels are those of torch's loader, as it is given and in another order."""
    order = torch.randperm(len(dataset), generator=torch.Generator().manual_seed(5)).tolist()
    for of in (dataset, Subset(dataset, order)):
        ours, theirs = make(of, 2), Theirs(of, 2)
        assert len(ours) == len(theirs)
        seen = 0
        for batch, (wanted, targets) in zip(ours, theirs, strict=True):
            images, labels = batch
            assert batch.ids.tolist() == list(range(seen, seen + len(wanted)))
            seen += len(wanted)
            assert labels.shape == targets.shape, (labels, targets)
            assert labels.tolist() == targets.to(labels.dtype).tolist()
            assert images.shape == wanted.shape
            assert (images - wanted).abs().max() < LEVEL
        assert seen == len(of)


@pytest.mark.parametrize(
    "make_set",
    [
        food101,
        oxford_pet,
        lambda root: oxford_pet(root, "binary-category"),
        gtsrb,
        aircraft,
        dtd,
        sun397,
        rendered_sst2,
        inaturalist,
        lambda root: inaturalist(root, "class"),
        caltech256,
        eurosat,
        folder,
        lambda root: folder(
            root, datasets.DatasetFolder, loader=pil_loader, extensions=(".jpg", ".png")
        ),
        lambda root: folder(root, target_transform=lambda of: 10 - of),
        lambda root: folder(root, target_transform=lambda of: of / 2),
        lambda root: folder(root, target_transform=lambda of: torch.tensor([of, 1.5])),
        lambda root: folder(root, target_transform=lambda of: np.eye(3, dtype=np.float32)[of]),
        lambda root: random_split(folder(root), [2, 3], torch.Generator().manual_seed(1))[1],
        lambda root: ConcatDataset([folder(root), Subset(folder(root), [4, 0]), dtd(root)]),
    ],
)
def test_batches_are_torchs(
    tmp_path: Path, loaders: Callable[..., DataLoader], make_set: Callable[[Path], Any]
) -> None:
    assert_same(loaders, make_set(tmp_path))


def test_batches_of_data_sets_with_checksums_are_torchs(
    tmp_path: Path, loaders: Callable[..., DataLoader], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert_same(loaders, caltech101(tmp_path, monkeypatch))
    assert_same(loaders, places365(tmp_path, monkeypatch))
    for kind in ("attr", "identity", "bbox", "landmarks"):
        assert_same(loaders, celeba(tmp_path / kind, kind, monkeypatch))


class Own(Dataset[Any]):
    """A data set of somebody's own."""

    def __init__(self, of: Any) -> None:
        self.of, self.transform, self.calls = of, SMALL, 0

    def __len__(self) -> int:
        return len(self.of)

    def __getitem__(self, index: int) -> Any:
        path, target = self.of.samples[index]
        return self.transform(pil_loader(path)), target + 0.5


class Listed(Own):
    def featherload_item(self, index: int) -> tuple[str, float]:
        self.calls += 1
        path, target = self.of.samples[index]
        return path, target + 0.5


def test_a_data_set_of_ones_own_gives_paths_and_targets(
    tmp_path: Path, loaders: Callable[..., DataLoader]
) -> None:
    assert_same(loaders, Listed(folder(tmp_path)))
    dataset = Listed(folder(tmp_path))
    loader = loaders(dataset, 2, num_workers=2)
    assert dataset.calls == len(dataset)
    assert sum(len(batch.ids) for batch in loader) == len(dataset)


def test_errors_of_data_sets_show_the_method_to_write(tmp_path: Path) -> None:
    class Bytes(Listed):
        def featherload_item(self, index: int) -> Any:
            image = self.of.samples[index][0]
            return (b"\xff\xd8" if index else image), 0

    class Single(Listed):
        def featherload_item(self, index: int) -> Any:
            return self.of.samples[index][0]

    of = folder(tmp_path)
    both = v2.Compose([v2.Resize((9, 9)), *SMALL.transforms[1:]])
    other = datasets.ImageFolder(str(tmp_path / "folder"), both)
    for dataset, why in [
        (Own(of), r"add to Own .*`def featherload_item\(self, index\): return "),
        (Bytes(of), r"Bytes.featherload_item\(1\) returned bytes, and a path for item 0"),
        (Single(of), r"Single.featherload_item\(0\) returned .*return the image and its target"),
        (ConcatDataset([of, other]), "transforms of the ImageFolder and the ImageFolder.*differ"),
        (oxford_pet(tmp_path, "segmentation"), "give one of category, binary-category"),
        (datasets.FakeData(3), "FakeData is not known"),
    ]:
        with pytest.raises(featherload.ConfigError, match=f"(?s){why}") as caught:
            DataLoader(dataset)
        assert caught.value.option == "dataset"
    loader = DataLoader(
        ConcatDataset([of, other]), 5, recipe={"ops": [{"resize": {"size": [4, 4]}}]}
    )
    assert [len(batch.ids) for batch in loader] == [5, 5]
    loader.close()


def test_target_transform_is_called_when_the_loader_is_made_alone(tmp_path: Path) -> None:
    calls = []

    def counted(target: int) -> int:
        calls.append(target)
        return target + 5

    one = folder(tmp_path, target_transform=counted)
    both = ConcatDataset([one, Subset(one, [0])])
    for data in (one, both):
        with DataLoader(data, 2, num_workers=1) as loader:
            made = len(calls)
            for _ in range(3):
                labels = [label for _, batch in loader for label in batch.tolist()]
                assert labels[: len(one)] == [target + 5 for target in one.targets]
            assert len(calls) == made
            # Another function, and other targets, are still noticed.
            one.target_transform = lambda of: of
            with pytest.raises(featherload.ConfigError, match="samples of the data set changed"):
                next(iter(loader))
            one.target_transform = counted
            path, target = one.samples[0]
            one.samples[0] = (path, target + 1)
            with pytest.raises(featherload.ConfigError, match="samples of the data set changed"):
                next(iter(loader))
            one.samples[0] = (path, target)
