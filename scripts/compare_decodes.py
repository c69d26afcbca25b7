"""Compares full and scaled decoding with torchvision on Pillow, by JPEG sampling kind.

    compare_decodes.py PHOTOS [--recode 444,422,440,420,411] [--sides 256,128] [--pairs 3]

PHOTOS is a folder of JPEGs. Needs featherload, torch, torchvision and Pillow; --recode needs
imagecodecs, too. Each photo goes through Resize(side) and CenterCrop(side * 7 / 8), as
torchvision does it on an image of Pillow, and as featherload does it from the file. Differences
are in levels of 0 to 255.

--recode encodes all photos again with each of these kinds, at quality 90, and compares them too.

`touched` are the photos that scaled decoding decodes at 1/2, 1/4 or 1/8. Rates are those of
featherload with two workers, in turns, over all photos and over the touched ones.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
import PIL
import torchvision
from PIL import Image
from torchvision.transforms import v2

import featherload

BATCH = 50
WORKERS = 2
KINDS = {
    ((1, 1), (1, 1), (1, 1)): "4:4:4",
    ((2, 1), (1, 1), (1, 1)): "4:2:2",
    ((1, 2), (1, 1), (1, 1)): "4:4:0",
    ((2, 2), (1, 1), (1, 1)): "4:2:0",
    ((4, 1), (1, 1), (1, 1)): "4:1:1",
    ((1, 1),): "grey",
}


def kind(path):
    with Image.open(path) as picture:
        factors = tuple((h, v) for _, h, v, _ in picture.layer)
        return KINDS.get(factors, str(factors))


def transform(side):
    return v2.Compose([v2.Resize(side), v2.CenterCrop(side * 7 // 8), v2.PILToTensor()])


def rows(listed, side, decode):
    """The levels of all rows, in the order of the list."""
    loader = featherload.Loader(
        list=listed,
        root="/",
        recipe=transform(side),
        decode=decode,
        batch_size=BATCH,
        num_workers=WORKERS,
        shuffle=False,
    )
    with loader:
        return np.concatenate([batch.images.copy() for batch in loader])


def rate(listed, side, decode, epochs):
    """Images per second of the epochs after the first one."""
    loader = featherload.Loader(
        list=listed,
        root="/",
        recipe=transform(side),
        decode=decode,
        batch_size=BATCH,
        num_workers=WORKERS,
        epochs=epochs + 1,
    )
    with loader:
        count = sum(len(batch.ids) for batch in loader) * epochs
        began = time.perf_counter()
        for _ in range(epochs):
            for _ in loader:
                pass
        return count / (time.perf_counter() - began)


def written(folder, paths):
    """Writes a list file of the paths, and returns its path."""
    file = folder / f"{len(list(folder.iterdir()))}.txt"
    file.write_text("".join(f'"{path}" 0\n' for path in paths))
    return file


def recoded(folder, paths, subsampling):
    import imagecodecs

    folder.mkdir()
    for path in paths:
        pixels = np.asarray(Image.open(path).convert("RGB"))
        data = imagecodecs.jpeg_encode(pixels, level=90, subsampling=subsampling)
        (folder / f"{path.stem}.jpg").write_bytes(data)
    return sorted(folder.iterdir())


def line(name, off, picked):
    each = off[picked]
    if not len(each):
        return
    most = each.reshape(len(each), -1).max(axis=1)
    print(
        f"  {name:<22} {len(each):>5}  mean {each.mean():6.3f}  99.9% "
        f"{np.percentile(each, 99.9):4.0f}  largest {most.max():>3}  "
        f"median of largest {statistics.median(most.tolist()):5.1f}"
    )


def print_rates(label, listed, side, epochs, pairs):
    rates = defaultdict(list)
    for _ in range(pairs):
        for decode in ("full", "scaled"):
            rates[decode].append(rate(listed, side, decode, epochs))
    full, scaled = (statistics.median(rates[decode]) for decode in ("full", "scaled"))
    print(
        f"  images/s, {label}: full {full:.0f} ({min(rates['full']):.0f} to "
        f"{max(rates['full']):.0f}), scaled {scaled:.0f} ({min(rates['scaled']):.0f} to "
        f"{max(rates['scaled']):.0f}), gain {scaled / full:.2f}"
    )


def compare(name, paths, side, folder, pairs):
    kinds = np.array([kind(path) for path in paths])
    listed = written(folder, paths)
    ours = {decode: rows(listed, side, decode) for decode in ("full", "scaled")}
    apply = transform(side)
    theirs = np.stack(
        [apply(Image.open(path).convert("RGB")).numpy() for path in paths]
    )
    off = {
        decode: np.abs(made.astype(np.int16) - theirs.astype(np.int16)).astype(np.uint8)
        for decode, made in ours.items()
    }
    touched = (ours["full"] != ours["scaled"]).reshape(len(paths), -1).any(axis=1)
    print(f"{name}, Resize({side}), CenterCrop({side * 7 // 8}):")
    every = np.ones(len(paths), bool)
    for of in [None, *sorted(set(kinds))] if len(set(kinds)) > 1 else [None]:
        among = every if of is None else kinds == of
        label = of or "all"
        line(f"{label}, full", off["full"], among)
        line(f"{label}, scaled", off["scaled"], among)
        line(f"{label}, scaled, touched", off["scaled"], among & touched)
    if pairs:
        sets = {"all": listed}
        if 0 < touched.sum() < len(paths):
            sets["touched"] = written(folder, [p for p, t in zip(paths, touched) if t])
        for label, of in sets.items():
            epochs = (
                1 if label == "all" else max(1, len(paths) // int(touched.sum()) // 2)
            )
            print_rates(label, of, side, epochs, pairs)
    sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("photos", type=Path)
    parser.add_argument("--recode", default="")
    parser.add_argument("--sides", default="256")
    parser.add_argument("--pairs", type=int, default=3)
    args = parser.parse_args()
    found = args.photos.resolve().rglob("*")
    paths = sorted(p for p in found if p.suffix.lower() in (".jpg", ".jpeg"))
    print(
        f"{len(paths)} photos; featherload {featherload.__version__}, Pillow {PIL.__version__}, "
        f"torchvision {torchvision.__version__}; {WORKERS} workers"
    )
    with tempfile.TemporaryDirectory() as place:
        lists = Path(place) / "lists"
        lists.mkdir()
        for side in map(int, args.sides.split(",")):
            compare("as they are", paths, side, lists, args.pairs)
        for subsampling in filter(None, args.recode.split(",")):
            again = recoded(Path(place) / subsampling, paths, subsampling)
            name = "written anew as " + ":".join(subsampling)
            for side in map(int, args.sides.split(",")):
                compare(name, again, side, lists, 0)


if __name__ == "__main__":
    main()
