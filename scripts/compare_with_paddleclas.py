r"""Compares the rate of featherload with PaddleClas' own CPU transforms, for PaddleClas configs.

Each config runs in turns with both loaders; PaddleClas runs its own `build_dataloader`. The script
replaces the data set (photos, repeated), the batch size and the number of workers (2), and keeps
the rest. Rates are images a second after the first batch. A ratio compares the medians of the
turns. The last line is the lowest ratio, and the exit status is 1 when it is below --bar.

Needs Python with paddlepaddle, opencv-python-headless, pillow, pyyaml, requests, scipy, tqdm,
prettytable, ujson, scikit-learn and visualdl. Needs the folder that holds `ppcls` from the wheel
paddleclas-2.4.0, the last version with its data code:

    python scripts/compare_with_paddleclas.py target/release/featherload wheel/paddleclas \
        photos ResNet50.yaml SwinTransformer_tiny_patch4_window7_224.yaml ...
"""

import argparse
import copy
import json
import logging
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy
import yaml


def label(config, mode, number):
    """A label in the form that the config's data set reads."""
    name = config["DataLoader"][mode]["dataset"]["name"]
    classes = config.get("Arch", {}).get("class_num", 1000)
    if name == "MultiLabelDataset":
        return ",".join(str((number >> i) & 1) for i in range(classes))
    return str(number % min(classes, 66))


def write_list(config, mode, photos, repeats, path):
    dataset = config["DataLoader"][mode]["dataset"]
    delimiter = dataset.get("delimiter") or " "
    if dataset["name"] in ("MultiLabelDataset", "ICartoonDataset"):
        delimiter = "\t"
    files = sorted(p for p in photos.rglob("*") if p.suffix.lower() in (".jpeg", ".jpg"))
    # PaddleClas splits lines at blanks, so leave out paths with blanks.
    files = [p for p in files if " " not in p.name]
    lines = []
    for number, file in enumerate(files * repeats):
        fields = [str(file.relative_to(photos)), label(config, mode, number)]
        lines.append(delimiter.join(fields))
    path.write_text("\n".join(lines) + "\n")
    return len(lines)


def paddleclas(config, mode, photos, listed, batch, workers, seconds):
    """The rate of PaddleClas' own loader, in images a second."""
    from ppcls.data import build_dataloader
    from ppcls.utils import logger

    if logger._logger is None:
        logger.init_logger(log_level=logging.WARNING)

    config = copy.deepcopy(config)
    loader = config["DataLoader"]
    loader["class_num"] = config.get("Arch", {}).get("class_num")
    dataset, sampler = loader[mode]["dataset"], loader[mode]["sampler"]
    dataset["image_root"] = str(photos) + "/"
    dataset["cls_label_path"] = str(listed)
    for key in ("batch_size", "first_bs"):
        if key in sampler:
            sampler[key] = batch
    loader[mode]["loader"].update(num_workers=workers, use_shared_memory=True)
    batches = iter(build_dataloader(loader, mode, "cpu"))
    next(batches)
    images, began = 0, time.monotonic()
    while time.monotonic() - began < seconds:
        try:
            images += next(batches)[0].shape[0]
        except StopIteration:
            break
    return images / (time.monotonic() - began)


def featherload(binary, path, photos, listed, batch, workers, epochs):
    command = [
        binary, "bench", str(photos), "--recipe", str(path), "--list", str(listed),
        "--batch-size", str(batch), "--num-workers", str(workers),
        "--epochs", str(epochs), "--json",
    ]  # fmt: skip
    out = subprocess.run(command, capture_output=True, text=True)
    if out.returncode != 0:
        raise RuntimeError(out.stderr.strip())
    return json.loads(out.stdout)["images_per_s"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("featherload")
    parser.add_argument("ppcls", type=Path, help="folder that holds the package ppcls")
    parser.add_argument("photos", type=Path)
    parser.add_argument("configs", type=Path, nargs="+")
    parser.add_argument("--work", type=Path, default=Path("target/compare"))
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--num-workers", type=int, default=2)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--bar", type=float, default=2.0)
    args = parser.parse_args()
    shape = (args.batch_size, args.num_workers)
    sys.path.insert(0, str(args.ppcls))
    # This version of PaddleClas was written for an older NumPy.
    numpy.int = int
    args.work.mkdir(parents=True, exist_ok=True)
    lowest = None
    for path in args.configs:
        config = yaml.safe_load(path.read_text())
        listed = args.work / f"{path.stem}.txt"
        lines = write_list(config, "Train", args.photos, 16, listed)
        theirs, ours = [], []
        for _ in range(args.turns):
            theirs.append(
                paddleclas(config, "Train", args.photos, listed, *shape, args.seconds)
            )
            ours.append(featherload(args.featherload, path, args.photos, listed, *shape, 2))
        ratio = statistics.median(ours) / statistics.median(theirs)
        lowest = ratio if lowest is None else min(lowest, ratio)
        row = {
            "config": path.name,
            "samples": lines,
            "paddleclas": [round(v, 1) for v in theirs],
            "featherload": [round(v, 1) for v in ours],
            "ratio": round(ratio, 2),
        }
        print(json.dumps(row), flush=True)
    print(f"lowest ratio {lowest:.2f}, bar {args.bar}")
    return 0 if lowest >= args.bar else 1


if __name__ == "__main__":
    sys.exit(main())
