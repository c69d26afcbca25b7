"""Compares eval224 with Pillow, following torchvision's geometry.

    compare_with_pillow.py NPY_EXAMPLE PHOTOS OUT

Makes three comparisons, in levels of 0 to 255 after mean and std are undone:

- decoder: our upright images at full size with Pillow's. Ours come from a recipe whose resize
  is the identity.
- full: our eval224 without scaled decoding with our own images at full size, which Pillow
  resizes and crops. The decoders have no influence.
- scaled: our eval224 with scaled decoding with Pillow from file to crop.

Writes contact sheets to OUT. The exit status is 1 when a difference exceeds its limit. If
torchvision can be imported, its transforms must equal the Pillow pipeline.
"""

import json
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps, features

MEAN = np.array([0.485, 0.456, 0.406], np.float64).reshape(1, 3, 1, 1)
STD = np.array([0.229, 0.224, 0.225], np.float64).reshape(1, 3, 1, 1)
SHORTER, CROP = 256, 224

# Limits of the absolute difference in levels: mean, largest, 99.9th percentile.
BARS = {
    "full": {"mean": 0.25, "max": 2},
    "scaled": {"mean": 0.6, "p99.9": 8},
}
WORST_SHOWN = 8


def export(example, src, out, *options):
    """Runs the example, and returns the joined batches and the path of each row."""
    shutil.rmtree(out, ignore_errors=True)
    command = [example, src, out, "--no-shuffle", *options]
    subprocess.run([str(c) for c in command], check=True, stdout=subprocess.DEVNULL)
    batches = [np.load(f) for f in sorted(out.glob("batch-*.npy"))]
    rows = json.loads((out / "rows.json").read_text())
    pixels = np.concatenate(batches)
    assert len(rows) == len(pixels)
    return pixels, [Path(r["path"]) for r in rows]


def levels(normalised):
    """Converts normalised NCHW floats to u8 in NHWC."""
    x = (normalised.astype(np.float64) * STD + MEAN) * 255
    return np.clip(np.rint(x), 0, 255).astype(np.uint8).transpose(0, 2, 3, 1)


def upright(path):
    return ImageOps.exif_transpose(Image.open(path)).convert("RGB")


def resize_and_crop(image):
    """The same as torchvision's Resize(256, bilinear, antialias) and CenterCrop(224)."""
    w, h = image.size
    if w <= h:
        size = (SHORTER, int(SHORTER * h / w))
    else:
        size = (int(SHORTER * w / h), SHORTER)
    if size != image.size:
        image = image.resize(size, Image.Resampling.BILINEAR)
    # Python rounds halves to even, as torchvision's CenterCrop does.
    left, top = round((size[0] - CROP) / 2.0), round((size[1] - CROP) / 2.0)
    return image.crop((left, top, left + CROP, top + CROP))


def our_pictures(example, paths, out):
    """Our full-size pixels of each path. Each size has its own recipe."""
    by_size = defaultdict(list)
    for path in paths:
        by_size[upright(path).size].append(path)
    pictures = {}
    for (w, h), group in by_size.items():
        links = out / "links" / f"{w}x{h}"
        shutil.rmtree(links, ignore_errors=True)
        links.mkdir(parents=True)
        for i, path in enumerate(group):
            (links / f"{i:06}.jpg").symlink_to(path.resolve())
        options = ("--recipe", f"{w}x{h}", "--num-workers", "0")
        pixels, _ = export(example, links, out / "whole", *options)
        pictures.update(zip(group, pixels))
    return pictures


def statistics(differences):
    all_of_them = np.concatenate([d.ravel() for d in differences])
    return {
        "mean": float(all_of_them.mean()),
        "max": int(all_of_them.max()),
        "p99.9": float(np.percentile(all_of_them, 99.9)),
    }


def difference(a, b):
    return np.abs(np.asarray(a, np.int16) - np.asarray(b, np.int16))


def report(name, ours, theirs, paths):
    """Prints figures and the worst file of the worst classes. Returns whether all limits hold."""
    each = [difference(a, b) for a, b in zip(ours, theirs)]
    total = statistics(each)
    equal = sum(not d.any() for d in each)
    print(f"\n{name}: {len(each)} images, {equal} bit-equal")
    worst = {}
    for path, d in zip(paths, each):
        row = (float(d.mean()), int(d.max()), float(np.percentile(d, 99.9)), path.name)
        worst[path.parent.name] = max(row, worst.get(path.parent.name, row))
    print(f"  {'class':<12} {'mean':>7} {'max':>4} {'p99.9':>6}  worst file of the class")
    for label, (mean, most, p, file) in sorted(worst.items(), key=lambda kv: kv[1], reverse=True)[:WORST_SHOWN]:
        print(f"  {label:<12} {mean:7.3f} {most:4} {p:6.1f}  {file}")
    print(f"  {'all':<12} {total['mean']:7.3f} {total['max']:4} {total['p99.9']:6.1f}")
    missed = [f"{k} {total[k]:.3f} > {bar}" for k, bar in BARS.get(name, {}).items() if total[k] > bar]
    for text in missed:
        print(f"  MISSED: {text}")
    if name in BARS and not missed:
        print("  limits hold: " + ", ".join(f"{k} <= {bar}" for k, bar in BARS[name].items()))
    return not missed


def compare_with_torchvision(paths, theirs):
    try:
        import torchvision.transforms as T
    except ImportError:
        return True
    transform = T.Compose([T.Resize(SHORTER), T.CenterCrop(CROP)])
    ok = all(np.array_equal(transform(upright(p)), t) for p, t in zip(paths, theirs))
    print(f"\ntorchvision's transforms {'equal' if ok else 'DIFFER FROM'} the Pillow pipeline")
    return ok


def sheet(file, columns, images):
    """Writes a grid of small images."""
    size = 112
    rows = -(-len(images) // columns)
    canvas = Image.new("RGB", (columns * size, rows * size))
    for i, image in enumerate(images):
        small = Image.fromarray(np.asarray(image)).resize((size, size), Image.Resampling.BOX)
        canvas.paste(small, (i % columns * size, i // columns * size))
    canvas.save(file)
    print(f"  {file}")


def main():
    example, photos, out = (Path(a).resolve() for a in sys.argv[1:4])
    out.mkdir(parents=True, exist_ok=True)
    print(f"Pillow {Image.__version__}, libjpeg-turbo {features.version('libjpeg_turbo')}")

    full, paths = export(example, photos, out / "full", "--decode", "full")
    scaled, same = export(example, photos, out / "scaled", "--decode", "scaled")
    assert paths == same
    full, scaled = levels(full), levels(scaled)
    whole = our_pictures(example, paths, out)
    pillow = [upright(p) for p in paths]
    theirs = [np.asarray(resize_and_crop(p)) for p in pillow]
    ours_resized = [np.asarray(resize_and_crop(Image.fromarray(whole[p]))) for p in paths]

    report("decoder", [whole[p] for p in paths], pillow, paths)
    ok = report("full", full, ours_resized, paths)
    ok &= report("scaled", scaled, theirs, paths)
    # The limit is over all photos, but most are too small for scaled decoding. Print the figures
    # of the others alone.
    touched = [i for i in range(len(paths)) if difference(full[i], scaled[i]).any()]
    if touched:
        s = statistics([difference(scaled[i], theirs[i]) for i in touched])
        print(f"  of these, {len(touched)} were decoded at a smaller scale: mean {s['mean']:.3f}, "
              f"largest {s['max']}, 99.9% {s['p99.9']:.0f}")
    ok &= compare_with_torchvision(paths, theirs)

    print("\nsheets (eval224: ours full, ours scaled, Pillow, in turns):")
    triples = [x for three in zip(full, scaled, theirs) for x in three]
    sheet(out / "eval224.png", 15, triples)
    train, _ = export(example, photos, out / "train", "--recipe", "train224")
    sheet(out / "train224.png", 11, list(levels(train)))
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
