"""Compares batches with those of torch's DataLoader, for each kind of data set, on real photos.

    kinds.py PHOTOS FOLDER [NAME...]

PHOTOS has one folder of JPEG files for each class. Layouts of data sets are made in FOLDER, from
links and copies. For each kind, both loaders read one object in one random order, and ids, labels
and pixels are compared for equality. NAME runs some of the kinds.

Needs featherload, torch, torchvision, pandas, polars, pyarrow, datasets, lmdb and h5py.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets as hf
import h5py
import lmdb
import numpy as np
import pandas
import polars
import pyarrow
import torch
from PIL import Image
from torch.utils.data import ConcatDataset, Dataset, Subset, WeightedRandomSampler, random_split
from torch.utils.data import DataLoader as Theirs
from torchvision import datasets
from torchvision.datasets.folder import pil_loader
from torchvision.transforms import v2

import featherload
from featherload.torch import DataLoader

hf.disable_progress_bars()
EDGE = 64
CROP = v2.Compose([v2.CenterCrop(EDGE), v2.RGB(), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])
ARRAY = v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])
KINDS: dict[str, Callable[[Path, Path], tuple[Any, Any]]] = {}


def kind(make: Callable[[Path, Path], tuple[Any, Any]]) -> Callable[[Path, Path], Any]:
    """Registers a function that makes an object for featherload, and a Dataset of its samples."""
    KINDS[make.__name__.replace("_", " ")] = make
    return make


class Pictures(Dataset[Any]):
    """What torch's loader reads: pictures that Pillow opens, and targets."""

    def __init__(self, opened: list[Any], targets: list[Any], transform: Any = CROP) -> None:
        self.opened, self.targets, self.transform = opened, targets, transform

    def __len__(self) -> int:
        return len(self.opened)

    def __getitem__(self, index: int) -> Any:
        source = self.opened[index]
        if isinstance(source, bytes):
            import io

            source = io.BytesIO(source)
        with Image.open(source) as image:
            return self.transform(image.convert("RGB")), self.targets[index]


def photos(root: Path) -> tuple[list[Path], list[int]]:
    paths = sorted(path for path in root.rglob("*") if path.suffix.lower() in (".jpg", ".jpeg"))
    names = sorted({path.parent.name for path in paths})
    return paths, [names.index(path.parent.name) for path in paths]


# Lists and tables.


@kind
def list_of_paths(root: Path, place: Path) -> tuple[Any, Any]:
    paths, _ = photos(root)
    return paths, Pictures(paths, [-1] * len(paths))


@kind
def list_of_path_and_label(root: Path, place: Path) -> tuple[Any, Any]:
    paths, labels = photos(root)
    return [*zip(paths, labels, strict=True)], Pictures(paths, labels)


@kind
def list_of_bytes_and_label(root: Path, place: Path) -> tuple[Any, Any]:
    paths, labels = photos(root)
    data = [path.read_bytes() for path in paths]
    return [*zip(data, labels, strict=True)], Pictures(data, labels)


@kind
def list_of_dicts(root: Path, place: Path) -> tuple[Any, Any]:
    paths, labels = photos(root)
    rows = [{"file_name": str(p), "label": n} for p, n in zip(paths, labels, strict=True)]
    return rows, Pictures(paths, labels)


@kind
def Items(root: Path, place: Path) -> tuple[Any, Any]:
    paths, labels = photos(root)
    scores = [[n / 2, -n] for n in labels]
    return (
        featherload.Items(paths, scores, caption=[p.stem for p in paths]),
        Pictures(paths, [torch.tensor(score) for score in scores]),
    )


def table(root: Path) -> tuple[dict[str, list[Any]], Any]:
    paths, labels = photos(root)
    return {"image_path": [*map(str, paths)], "label": labels}, Pictures(paths, labels)


@kind
def pandas_DataFrame(root: Path, place: Path) -> tuple[Any, Any]:
    columns, theirs = table(root)
    return pandas.DataFrame(columns), theirs


@kind
def polars_DataFrame(root: Path, place: Path) -> tuple[Any, Any]:
    columns, theirs = table(root)
    return polars.DataFrame(columns), theirs


@kind
def pyarrow_Table(root: Path, place: Path) -> tuple[Any, Any]:
    columns, theirs = table(root)
    return pyarrow.table(columns), theirs


# Hugging Face.


class OfHuggingFace(Dataset[Any]):
    """The rows of a ``datasets.Dataset``, as scripts read them."""

    def __init__(self, rows: Any) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Any:
        row = self.rows[index]
        return CROP(row["image"].convert("RGB")), row["label"]


def saved(root: Path, place: Path, *, as_bytes: bool) -> Path:
    paths, labels = photos(root)
    images = [{"bytes": p.read_bytes(), "path": p.name} if as_bytes else str(p) for p in paths]
    names = [str(number) for number in range(max(labels) + 1)]
    features = hf.Features({"image": hf.Image(), "label": hf.ClassLabel(names=names)})
    rows = hf.Dataset.from_dict({"image": images, "label": labels}, features=features)
    folder = place / f"saved-{as_bytes}"
    if not folder.exists():
        rows.save_to_disk(folder)
    return folder


@kind
def Hugging_Face_bytes(root: Path, place: Path) -> tuple[Any, Any]:
    rows = hf.load_from_disk(saved(root, place, as_bytes=True))
    return rows, OfHuggingFace(rows)


@kind
def Hugging_Face_paths(root: Path, place: Path) -> tuple[Any, Any]:
    rows = hf.load_from_disk(saved(root, place, as_bytes=False))
    return rows, OfHuggingFace(rows)


@kind
def Hugging_Face_shuffled_selected_filtered_concatenated(root: Path, place: Path) -> Any:
    rows = hf.load_from_disk(saved(root, place, as_bytes=True)).shuffle(seed=3)
    odd = rows.filter(lambda label: label % 2 == 1, input_columns="label")
    joined = hf.concatenate_datasets([rows.select(range(20, 45)), odd])
    return joined, OfHuggingFace(joined)


@kind
def folder_of_save_to_disk(root: Path, place: Path) -> tuple[Any, Any]:
    folder = saved(root, place, as_bytes=True)
    return folder, OfHuggingFace(hf.load_from_disk(folder))


@kind
def Arrow_file(root: Path, place: Path) -> tuple[Any, Any]:
    folder = saved(root, place, as_bytes=True)
    # A file does not say that its images are turned upright. An option does.
    file = next(folder.glob("*.arrow"))
    return (file, {"orientation": "exif"}), OfHuggingFace(hf.load_from_disk(folder))


# Arrays.


def pixels(root: Path, edge: int, mode: str = "RGB") -> tuple[np.ndarray, list[int]]:
    paths, labels = photos(root)
    images = [Image.open(path).convert(mode).resize((edge, edge)) for path in paths]
    return np.stack([np.asarray(image) for image in images]), labels


class OfArray(Dataset[Any]):
    def __init__(self, images: np.ndarray, labels: list[int]) -> None:
        self.images, self.labels = images, labels

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> Any:
        return ARRAY(self.images[index]), self.labels[index]


@kind
def array_N_H_W_C(root: Path, place: Path) -> tuple[Any, Any]:
    images, labels = pixels(root, 48)
    return (images, {"labels": labels}), OfArray(images, labels)


@kind
def npy_file(root: Path, place: Path) -> tuple[Any, Any]:
    images, labels = pixels(root, 48)
    np.save(place / "images.npy", images)
    return (place / "images.npy", {"labels": labels}), OfArray(images, labels)


def of_torchvision(kind_of: Any, images: Any, labels: Any, field: str = "targets") -> Any:
    """An array set, as its reader leaves it."""
    made = object.__new__(kind_of)
    made.root, made.transform, made.target_transform = "", ARRAY, None
    made.train, made.split, made.data = True, "train", images
    setattr(made, field, labels)
    return made


@kind
def CIFAR10(root: Path, place: Path) -> tuple[Any, Any]:
    images, labels = pixels(root, 32)
    made = of_torchvision(datasets.CIFAR10, images, labels)
    return made, made


@kind
def MNIST(root: Path, place: Path) -> tuple[Any, Any]:
    images, labels = pixels(root, 28, "L")
    made = of_torchvision(datasets.MNIST, torch.tensor(images), torch.tensor(labels))
    return made, made


@kind
def SVHN(root: Path, place: Path) -> tuple[Any, Any]:
    images, labels = pixels(root, 32)
    made = of_torchvision(
        datasets.SVHN, images.transpose(0, 3, 1, 2), np.array(labels, np.int64), "labels"
    )
    return made, made


# torchvision's lists of files.


def link(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.exists():
        target.symlink_to(source.resolve())


def lines(path: Path, of: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in of))


@kind
def ImageFolder(root: Path, place: Path) -> tuple[Any, Any]:
    made = datasets.ImageFolder(str(root), CROP)
    return made, made


@kind
def DatasetFolder(root: Path, place: Path) -> tuple[Any, Any]:
    made = datasets.DatasetFolder(str(root), pil_loader, (".jpeg", ".jpg"), CROP)
    return made, made


@kind
def Food101(root: Path, place: Path) -> tuple[Any, Any]:
    base = place / "food-101"
    listed: dict[str, list[str]] = {}
    for path in photos(root)[0]:
        link(path, base / f"images/{path.parent.name}/{path.stem}.jpg")
        listed.setdefault(path.parent.name, []).append(f"{path.parent.name}/{path.stem}")
    lines(base / "meta/train.json", [json.dumps(listed)])
    made = datasets.Food101(place, "train", CROP)
    return made, made


@kind
def Flowers102(root: Path, place: Path) -> tuple[Any, Any]:
    """Its list is a file of MATLAB, so the list is given here."""
    paths, labels = photos(root)
    made = object.__new__(datasets.Flowers102)
    datasets.VisionDataset.__init__(made, "", transform=CROP)
    made.loader = pil_loader
    made._image_files, made._labels = paths, labels
    return made, made


@kind
def OxfordIIITPet(root: Path, place: Path) -> tuple[Any, Any]:
    base = place / "oxford-iiit-pet"
    paths, labels = photos(root)
    rows = [f"breed{n:03}_{n} {n + 1} 1 1" for n in labels]
    for path, row in zip(paths, rows, strict=True):
        link(path, base / f"images/{row.split()[0]}.jpg")
    lines(base / "annotations/trainval.txt", rows)
    made = datasets.OxfordIIITPet(place, transform=CROP)
    return made, made


@kind
def StanfordCars(root: Path, place: Path) -> tuple[Any, Any]:
    """Its list is a file of MATLAB, so the list is given here."""
    paths, labels = photos(root)
    made = object.__new__(datasets.StanfordCars)
    datasets.VisionDataset.__init__(made, "", transform=CROP)
    made.loader = pil_loader
    made._samples = [(str(p), n) for p, n in zip(paths, labels, strict=True)]
    return made, made


@kind
def GTSRB(root: Path, place: Path) -> tuple[Any, Any]:
    base = place / "gtsrb/GTSRB/Training"
    for path, label in zip(*photos(root), strict=True):
        target = base / f"{label:05}/1.ppm"
        target.parent.mkdir(parents=True, exist_ok=True)
        Image.open(path).convert("RGB").save(target)
    made = datasets.GTSRB(place, "train", CROP)
    return made, made


@kind
def FGVCAircraft(root: Path, place: Path) -> tuple[Any, Any]:
    base = place / "fgvc-aircraft-2013b/data"
    paths, labels = photos(root)
    for n, path in enumerate(paths):
        link(path, base / f"images/{n}.jpg")
    lines(base / "families.txt", [f"family {n:03}" for n in sorted(set(labels))])
    lines(base / "images_family_train.txt", [f"{n} family {of:03}" for n, of in enumerate(labels)])
    made = datasets.FGVCAircraft(place, "train", "family", CROP)
    return made, made


@kind
def INaturalist(root: Path, place: Path) -> tuple[Any, Any]:
    for n, path in enumerate(photos(root)[0]):
        link(path, place / f"2021_valid/{n:05}_Animalia_P_C_O_F_Genus{n % 9}_species{n}/{n}.jpg")
    made = datasets.INaturalist(str(place), "2021_valid", "genus", CROP)
    return made, made


@kind
def Places365(root: Path, place: Path) -> tuple[Any, Any]:
    """Its lists have checksums, so the lists are given here."""
    paths, labels = photos(root)
    made = object.__new__(datasets.Places365)
    datasets.VisionDataset.__init__(made, "", transform=CROP)
    made.loader = pil_loader
    made.imgs = [(str(p), n) for p, n in zip(paths, labels, strict=True)]
    made.targets = labels
    return made, made


@kind
def EuroSAT(root: Path, place: Path) -> tuple[Any, Any]:
    for path in photos(root)[0]:
        link(path, place / f"eurosat/2750/{path.parent.name}/{path.stem}.jpg")
    made = datasets.EuroSAT(str(place), CROP)
    return made, made


@kind
def CelebA(root: Path, place: Path) -> tuple[Any, Any]:
    """Its files have checksums, which are of the real ones."""
    base = place / "celeba"
    paths, labels = photos(root)
    names = [f"{n:06}.jpg" for n in range(len(paths))]
    for path, name in zip(paths, names, strict=True):
        link(path, base / "img_align_celeba" / name)
    lines(base / "list_eval_partition.txt", [f"{name} 0" for name in names])
    lines(base / "identity_CelebA.txt", [f"{a} {b}" for a, b in zip(names, labels, strict=True)])
    for file, columns in (
        ("list_bbox_celeba.txt", 4),
        ("list_landmarks_align_celeba.txt", 10),
        ("list_attr_celeba.txt", 40),
    ):
        rows = [
            f"{name} " + " ".join(str(2 * ((n + i) % 2) - 1) for i in range(columns))
            for n, name in enumerate(names)
        ]
        lines(base / file, [str(len(names)), " ".join(f"c{i}" for i in range(columns)), *rows])
    checked = datasets.CelebA._check_integrity
    datasets.CelebA._check_integrity = lambda self: True
    try:
        made = datasets.CelebA(place, "train", "attr", CROP)
    finally:
        datasets.CelebA._check_integrity = checked
    return made, made


# Parts and targets.


@kind
def Subset_ConcatDataset_random_split(root: Path, place: Path) -> tuple[Any, Any]:
    whole = datasets.ImageFolder(str(root), CROP)
    first, second = random_split(whole, [30, len(whole) - 30], torch.Generator().manual_seed(2))
    made = ConcatDataset([second, Subset(whole, [5, 3, 5]), Subset(first, [*range(0, 30, 2)])])
    return made, made


@kind
def target_transform(root: Path, place: Path) -> tuple[Any, Any]:
    made = datasets.ImageFolder(str(root), CROP, lambda n: np.eye(70, dtype=np.float32)[n])
    return made, made


# A method.


class Listed(Pictures):
    def featherload_item(self, index: int) -> Any:
        return self.opened[index], self.targets[index]


@kind
def method_that_returns_paths(root: Path, place: Path) -> tuple[Any, Any]:
    made = Listed(*photos(root))
    return made, made


class Stored(Dataset[Any]):
    """Bytes from a store, which a transform of torch decodes here."""

    def __init__(self, read: Callable[[int], bytes], targets: list[int]) -> None:
        self.read, self.targets, self.transform = read, targets, CROP

    def __len__(self) -> int:
        return len(self.targets)

    def __getitem__(self, index: int) -> Any:
        return Pictures([self.read(index)], [self.targets[index]])[0]

    def featherload_item(self, index: int) -> Any:
        return self.read(index), self.targets[index]


@kind
def method_that_reads_LMDB(root: Path, place: Path) -> tuple[Any, Any]:
    paths, labels = photos(root)
    store = lmdb.open(str(place / "lmdb"), map_size=1 << 28)
    with store.begin(write=True) as write:
        for n, path in enumerate(paths):
            write.put(b"%06d" % n, path.read_bytes())

    def read(index: int) -> bytes:
        with store.begin() as reader:
            return bytes(reader.get(b"%06d" % index))

    made = Stored(read, labels)
    return made, made


@kind
def method_that_reads_HDF5(root: Path, place: Path) -> tuple[Any, Any]:
    paths, labels = photos(root)
    with h5py.File(place / "photos.h5", "w") as file:
        rows = file.create_dataset("jpeg", len(paths), h5py.vlen_dtype(np.uint8))
        for n, path in enumerate(paths):
            rows[n] = np.frombuffer(path.read_bytes(), np.uint8)
    opened = h5py.File(place / "photos.h5")
    made = Stored(lambda index: opened["jpeg"][index].tobytes(), labels)
    return made, made


# Samplers of torch, over the pairs.


def order_of(number: int) -> list[int]:
    return torch.randperm(number, generator=torch.Generator().manual_seed(7)).tolist()


def ours(source: Any, order: Any) -> list[Any]:
    options: dict[str, Any] = {}
    if isinstance(source, tuple):
        source, options = source
    transform = ARRAY if "labels" in options else CROP
    common = {"num_workers": 2, "sampler": order}
    if isinstance(source, Dataset) and not isinstance(source, hf.Dataset):
        loader = DataLoader(source, 8, **common)
    else:
        options |= {"decode": "full", "framework": "torch"}
        loader = featherload.Loader(source, transform, 8, **common, **options)
    rows = []
    with loader:
        for batch in loader:
            images, labels = batch
            ids = batch.ids.tolist()
            given = [-1] * len(ids) if labels is None else labels.clone()
            # A recipe of Loader without a size gives a list of images.
            rows += [*zip(ids, [image.clone() for image in images], given, strict=True)]
    return rows


def compare(source: Any, theirs: Any) -> str:
    """Raises where the loaders differ."""
    order = order_of(len(theirs))
    got = ours(source, order)
    want = [row for batch in Theirs(theirs, 8, sampler=order) for row in zip(*batch, strict=True)]
    assert [row[0] for row in got] == order, "ids"
    assert len(got) == len(want)
    for (number, image, label), (pixels_of, target) in zip(got, want, strict=True):
        label, target = torch.as_tensor(label), torch.as_tensor(target)
        assert torch.equal(label, target.to(label.dtype)), f"label of {number}: {label}, {target}"
        assert image.shape == pixels_of.shape, f"{number}: {image.shape}, {pixels_of.shape}"
        # Both divide levels by 255; the last bit of a float may differ.
        assert torch.equal((image * 255).round(), (pixels_of * 255).round()), f"levels of {number}"
        assert torch.allclose(image, pixels_of, rtol=0, atol=1e-7), f"values of {number}"
    return f"{len(got)}"


def main() -> None:
    root, place, names = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]
    print("| kind | samples | ids, labels, pixels | seconds, both loaders |")
    print("|---|---|---|---|")
    failed = False
    for name, make in KINDS.items():
        if names and name not in names:
            continue
        folder = place / name.replace(" ", "_")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        start = time.monotonic()
        try:
            source, theirs = make(root, folder)
            samples, result = compare(source, theirs), "equal"
        except Exception as error:
            samples, result, failed = "", f"**{type(error).__name__}: {error}**", True
        seconds = time.monotonic() - start
        print(f"| {name} | {samples} | {result} | {seconds:.1f} |", flush=True)
    # The readers of LMDB and HDF5 stay open until here.
    sys.stdout.flush()
    os._exit(1 if failed else 0)


if __name__ == "__main__":
    main()
