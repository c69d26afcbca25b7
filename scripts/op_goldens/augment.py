"""Makes tests/goldens/augment.tar: results of Pillow for small images, by the operations of
augmentation policies.

    augment.py OUT

OUT/in.u8         the images, made here from fixed seeds
OUT/NAME.u8       the expected results, for each kind of operation
OUT/NAME.json     the cases
OUT/manifest.json every NAME, and the two cases whose images are too large to keep

Files are rows of RGB without a gap. A case has the `steps` of an `Augment`, `input` and
`expected` (first byte in the files), and the `size` (height, width) of both. Every
element must be equal. `hue_checksums` are sums over all colours, modulo 2**64. A term is
red * 65536 + green * 256 + blue of the result, times an odd number that depends on the
colour.

Mixing is NumPy's, since Pillow has no such operation. The image that is too wide for fixed
point is not kept; only its last pixels are compared.

Needs NumPy and Pillow.
"""

import json
import sys
from pathlib import Path

import numpy as np
from PIL import Image, ImageEnhance, ImageOps

HOW = {
    "nearest": Image.Resampling.NEAREST,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
}
FILL = [124, 116, 104]
# Height, width.
ONE, TINY, ODD, LARGE, SQUARE = (1, 1), (3, 2), (11, 17), (25, 33), (12, 12)


def noise(size, seed):
    """An image of random levels."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, (*size, 3), dtype=np.uint8)


def soft(size, seed):
    """An image like a photo: levels between 40 and 210, and neighbours are similar."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[: size[0], : size[1]]
    wave = 60 * np.sin(x / 3.1)[..., None] * np.cos(y / 2.3)[..., None]
    colour = np.array([0, 11, -17]) + rng.integers(-9, 10, (*size, 3))
    return np.clip(128 + wave + colour, 40, 210).astype(np.uint8)


def flat(size, colour):
    return np.full((*size, 3), colour, np.uint8)


def two(size):
    """An image of two levels in each channel. Few pixels have one of them."""
    picture = flat(size, (20, 0, 255))
    picture[1::3, ::4] = (200, 255, 254)
    return picture


def few(size, seed):
    """A dark image with one bright pixel, so that most of the histogram is empty."""
    picture = (noise(size, seed) // 16).astype(np.uint8)
    picture[-1, -1] = 255
    return picture


def enhance(kind):
    return lambda im, factor: kind(im).enhance(factor)


def posterize(im, p):
    """Posterizes. Pillow rejects 0 bits since version 13. Before, it returned black."""
    return ImageOps.posterize(im, p["bits"]) if p["bits"] else im.point(lambda _: 0)


def solarize_add(im, p):
    v = np.asarray(im).astype(int)
    v = np.where(v < p["threshold"], np.minimum(255, v + p["add"]), v)
    return Image.fromarray(v.astype(np.uint8))


def hue(im, by):
    h, s, v = im.convert("HSV").split()
    h = Image.fromarray((np.asarray(h).astype(int) + by).astype(np.uint8))
    return Image.merge("HSV", (h, s, v)).convert("RGB")


def affine(im, p):
    how, fill = HOW[p["interpolation"]], tuple(p["fill"])
    return im.transform(im.size, Image.Transform.AFFINE, p["matrix"], how, fillcolor=fill)


def rotate(im, p):
    return im.rotate(p["degrees"], HOW[p["interpolation"]], fillcolor=tuple(p["fill"]))


def fill(im, p):
    out, r = im.copy(), p["rect"]
    out.paste(tuple(p["color"]), (r["left"], r["top"], r["left"] + r["width"], r["top"] + r["height"]))
    return out


OPS = {
    "brightness": enhance(ImageEnhance.Brightness),
    "contrast": enhance(ImageEnhance.Contrast),
    "color": enhance(ImageEnhance.Color),
    "sharpness": enhance(ImageEnhance.Sharpness),
    "auto_contrast": lambda im, _: ImageOps.autocontrast(im),
    "equalize": lambda im, _: ImageOps.equalize(im),
    "invert": lambda im, _: ImageOps.invert(im),
    "posterize": posterize,
    "solarize": lambda im, p: ImageOps.solarize(im, p["threshold"]),
    "solarize_add": solarize_add,
    "hue": hue,
    "affine": affine,
    "rotate": rotate,
    "fill": fill,
}


def name_of(step):
    return step if isinstance(step, str) else next(iter(step))


def run(picture, steps):
    im = Image.fromarray(picture)
    kept = total = None
    for step in steps:
        name, params = name_of(step), None if isinstance(step, str) else next(iter(step.values()))
        if name == "keep":
            kept, total = im.copy(), np.zeros(picture.shape)
        elif name == "add":
            total += np.float32(params["weight"]) * np.asarray(im)
            im = kept.copy()
        elif name == "blend":
            by = np.float32(params["by"])
            mixed = (1 - by) * np.asarray(kept) + by * total
            assert mixed.dtype == np.float64 and mixed.max() < 256 and mixed.min() >= 0
            im = Image.fromarray(mixed.astype(np.uint8))
        else:
            im = OPS[name](im, params)
    return np.asarray(im)


class Goldens:
    def __init__(self, out):
        self.out, self.files, self.cases = Path(out), {}, {}

    def keep(self, file, pixels):
        raw = np.ascontiguousarray(pixels).tobytes()
        all_ = self.files.setdefault(file, bytearray())
        at = all_.find(raw)
        if at < 0:
            at = len(all_)
            all_ += raw
        return at

    def add(self, file, picture, *steps):
        expected = run(picture, steps)
        assert expected.shape == picture.shape
        self.cases.setdefault(file, []).append(
            {
                "input": self.keep("in.u8", picture),
                "expected": self.keep(f"{file}.u8", expected),
                "size": picture.shape[:2],
                "steps": steps,
            }
        )

    def write(self, **more):
        for file, raw in self.files.items():
            (self.out / file).write_bytes(raw)
        for name, cases in self.cases.items():
            lines = ",\n".join(json.dumps(case) for case in cases)
            (self.out / f"{name}.json").write_text(f"[\n{lines}\n]\n")
        manifest = {"names": list(self.cases), **more}
        (self.out / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")


def levels(goldens):
    pictures = [noise(ODD, 1), soft(LARGE, 2), two(ODD), few(ODD, 3), flat(TINY, (7, 130, 255)), noise(ONE, 4)]
    # More pixels than levels, so that equalize has whole steps.
    pictures += [few((25, 33), 5), two(LARGE)]
    for picture in pictures:
        goldens.add("levels", picture, "auto_contrast")
        goldens.add("levels", picture, "equalize")
    for picture in (noise(ODD, 1), noise(ONE, 4)):
        goldens.add("levels", picture, "invert")
        for bits in range(9):
            goldens.add("levels", picture, {"posterize": {"bits": bits}})
        for threshold in (0.0, 3.0, 25.6, 128.0, 178.5, 255.0, 256.0):
            goldens.add("levels", picture, {"solarize": {"threshold": threshold}})
        for add, threshold in ((0, 128), (11, 128), (110, 128), (255, 200), (90, 0)):
            goldens.add("levels", picture, {"solarize_add": {"add": add, "threshold": threshold}})


def enhances(goldens):
    factors = (-0.4, 0.0, 0.1, 0.37, 0.9, 1.0, 1.3, 1.9, 4.0)
    for kind in ("brightness", "contrast", "color", "sharpness"):
        for factor in factors:
            for picture in (noise(ODD, 1), soft(ODD, 6), noise(TINY, 7), noise(ONE, 4)):
                goldens.add(kind, picture, {kind: factor})
        goldens.add(kind, noise(LARGE, 8), {kind: 0.55})
        goldens.add(kind, noise((3, 3), 9), {kind: 1.7})
        goldens.add(kind, noise((2, 9), 9), {kind: 1.7})


def hues(goldens):
    for by in (0, 1, 25, 128, 230, 255):
        goldens.add("hue", noise(ODD, 1), {"hue": by})
        goldens.add("hue", soft(ODD, 6), {"hue": by})


def affines(goldens):
    for how in HOW:
        for size, seed in ((LARGE, 8), (ODD, 1), (TINY, 7), (ONE, 4)):
            h, w = size
            matrices = [
                (1, 0.3, 0, 0, 1, 0),
                (1, 0, 0, -0.21, 1, 0),
                (1, 0, 4.7, 0, 1, 0),
                (1, 0, 0, 0, 1, -0.33 * h),
                (0.8, 0.3, 1.3, -0.25, 1.1, 2.5),
            ]
            if size != LARGE:
                matrices += [
                    (1, -0.3, 0, 0, 1, 0),
                    (1, 0, 3, 0, 1, -2),
                    (0.4, 0, 1.3, 0, 1.7, -3.25),
                    (-1, 0, w, 0, 1, 0),
                    (0, 1, 0, 1, 0, 0),
                    (1, 0, 1e6, 0, 1, 0),
                    # The shift is too large for fixed point.
                    (1, 0.25, -9, 400, 0.5, -3000),
                    (1, 5000.25, -25000, 0.1, 1, 0),
                ]
            for m in matrices:
                m = [float(v) for v in m]
                step = {"affine": {"matrix": m, "interpolation": how, "fill": FILL}}
                goldens.add(f"affine_{how}", noise(size, seed), step)


def rotations(goldens):
    special = (0.0, 90.0, 180.0, 270.0, -90.0, -180.0, 360.0, 450.0)
    for how in HOW:
        for size, seed in ((ODD, 1), (SQUARE, 10), (TINY, 7), (ONE, 4)):
            for degrees in (*special, 0.3, 17.25, -30.0, 45.0, 133.7, -271.0):
                step = {"rotate": {"degrees": degrees, "interpolation": how, "fill": FILL}}
                goldens.add(f"rotate_{how}", noise(size, seed), step)
        step = {"rotate": {"degrees": -22.5, "interpolation": how, "fill": [0, 0, 0]}}
        goldens.add(f"rotate_{how}", soft(LARGE, 2), step)


def fills(goldens):
    for size, seed, box in (
        (ODD, 1, (3, 2, 9, 4)),
        (ODD, 1, (0, 0, 17, 11)),
        (ODD, 1, (16, 10, 1, 1)),
        (ODD, 1, (5, 5, 0, 3)),
        (ONE, 4, (0, 0, 1, 1)),
    ):
        rect = dict(zip(("left", "top", "width", "height"), box))
        goldens.add("fill", noise(size, seed), {"fill": {"rect": rect, "color": [255, 0, 9]}})


def mixes(goldens):
    def rotated(degrees):
        return {"rotate": {"degrees": degrees, "interpolation": "bilinear", "fill": [0, 0, 0]}}

    shear = {"affine": {"matrix": [1.0, 0.03, 0.0, 0.0, 1.0, 0.0], "interpolation": "bilinear", "fill": [0, 0, 0]}}
    chains = [
        [["equalize"], [rotated(2.0)], [shear]],
        [["auto_contrast", {"posterize": {"bits": 4}}], [], [{"sharpness": 1.8}, rotated(180.0)]],
        [[rotated(90.0)], [{"solarize": {"threshold": 231.0}}]],
    ]
    for i, (size, seed) in enumerate(((ODD, 1), (SQUARE, 10), (TINY, 7), (ONE, 4), (LARGE, 8))):
        for j, (chain, by) in enumerate(zip(chains, (0.3, 1.0, 0.71))):
            rng = np.random.default_rng(900 + 10 * i + j)
            weights = rng.dirichlet([0.5] * len(chain)).astype(np.float32)
            steps = ["keep"]
            for ops, weight in zip(chain, weights):
                steps += [*ops, {"add": {"weight": float(weight)}}]
            steps.append({"blend": {"by": by}})
            goldens.add("mix", noise(size, seed), *steps)


def several(goldens):
    """Several steps in a row, in which the first turns or moves the image."""
    turn = {"rotate": {"degrees": 90.0, "interpolation": "nearest", "fill": FILL}}
    half = {"rotate": {"degrees": 180.0, "interpolation": "nearest", "fill": FILL}}
    shear = {"affine": {"matrix": [1.0, 0.3, 0.0, 0.0, 1.0, 0.0], "interpolation": "bicubic", "fill": FILL}}
    rect = {"left": 1, "top": 2, "width": 4, "height": 3}
    box = {"fill": {"rect": rect, "color": [9, 8, 7]}}
    for size, seed in ((ODD, 1), (SQUARE, 10)):
        for steps in ([half, box, shear], [turn, box, {"sharpness": 0.2}], [{"sharpness": 1.6}, half, box, shear]):
            goldens.add("several", noise(size, seed), *steps)


def far(goldens):
    """A case with a side too long for fixed point. Only its last pixels are compared."""
    width, seen = 33_000, 64
    picture = np.zeros((2, width, 3), np.uint8)
    x = np.arange(width)
    picture[..., 0], picture[..., 1], picture[..., 2] = x % 251, x // 251, x % 7
    picture[1] = 255 - picture[0]
    matrix = [1.0, 0.3, 9.0, 0.0001, 1.0, -2.9]
    step = {"affine": {"matrix": matrix, "interpolation": "nearest", "fill": FILL}}
    out = run(picture, [step])[:, -seen:]
    return {"width": width, "steps": [step], "expected": goldens.keep("far.u8", out)}


def checksums():
    """Checksums of the hue operation over all colours."""
    all_ = np.arange(1 << 24, dtype=np.uint64)
    picture = np.stack([all_ >> 16, all_ >> 8 & 255, all_ & 255], axis=1).astype(np.uint8)
    im = Image.fromarray(picture.reshape(4096, 4096, 3))
    odd = all_ * np.uint64(0x9E3779B97F4A7C15) | np.uint64(1)
    sums = []
    for by in (0, 37):
        out = np.asarray(hue(im, by)).reshape(-1, 3).astype(np.uint64)
        got = out[:, 0] << 16 | out[:, 1] << 8 | out[:, 2]
        sums.append({"by": by, "sum": int((got * odd).sum(dtype=np.uint64))})
    return sums


def main():
    goldens = Goldens(sys.argv[1])
    for part in (levels, enhances, hues, affines, rotations, fills, mixes, several):
        part(goldens)
    goldens.write(far=far(goldens), hue_checksums=checksums())
    print(f"{sum(map(len, goldens.cases.values()))} cases")


if __name__ == "__main__":
    main()
