"""Makes tests/goldens/geometry.tar: results of other libraries for small images, by the
operations that change an image's shape.

    geometry.py OUT

OUT/in/        the images, made here from fixed seeds
OUT/expected/  the expected results; results with equal pixels share a file
OUT/manifest.json

Files are rows of RGB without a gap, little-endian, `u8` or `f32`. A case has `op` and
`params`, `input` and `expected`, the `dtype`, `height` and `width` of the result, and `by`
(the source of the result). `tolerance` is in levels, and `why` gives the reason of every
tolerance above 0. `share` is the part of the elements that may differ at all (default: 1).
If no library has the operation, this script computes its formula in float64, and `by` is
`formula`.

Needs NumPy, Pillow, PyTorch, torchvision and OpenCV.
"""

import hashlib
import json
import sys
from pathlib import Path

import cv2
import numpy as np
import PIL
import torch
import torch.nn.functional as F
import torchvision
from PIL import Image
from torchvision.transforms import InterpolationMode
from torchvision.transforms.v2 import functional as V

PILLOW = f"Pillow {PIL.__version__}"
TORCH = f"PyTorch {torch.__version__.split('+')[0]}"
TORCHVISION = f"torchvision {torchvision.__version__.split('+')[0]}"
OPENCV = f"OpenCV {cv2.__version__}"

# Height, width.
ODD, ONE, TINY, FLAT, TALL = (29, 37), (1, 1), (3, 5), (7, 120), (61, 9)
SMALL = (11, 14)

FIXED_POINT = (
    "both round: weights to fixed point of other precisions, and a level between the passes"
)
FLOAT_THEN_ROUND = "weights in fixed point and a level between the passes, there floats rounded once"
FLOAT = "sums of float32 in another order"
PLACES = "places are float32 there, so that a value near a half may round the other way"


def noise(size, seed):
    """An image of random levels."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, (*size, 3), dtype=np.uint8)


def soft(size, seed):
    """An image on which sharp filters do not leave the range of levels. A resize that clips
    between its passes gives the same result as one that does not."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[: size[0], : size[1]]
    wave = 60 * np.sin(x / 3.1)[..., None] * np.cos(y / 2.3)[..., None]
    colour = np.array([0, 11, -17]) + rng.integers(-9, 10, (*size, 3))
    return np.clip(128 + wave + colour, 0, 255).astype(np.uint8)


class Goldens:
    def __init__(self, out):
        self.out = Path(out)
        self.cases = []
        for folder in ("in", "expected"):
            (self.out / folder).mkdir(parents=True, exist_ok=True)
            for old in (self.out / folder).iterdir():
                old.unlink()

    def keep(self, folder, pixels):
        raw = np.ascontiguousarray(pixels).astype(pixels.dtype.newbyteorder("<")).tobytes()
        kind = "u8" if pixels.dtype == np.uint8 else "f32"
        name = f"{folder}/{hashlib.sha256(raw).hexdigest()[:12]}.{kind}"
        (self.out / name).write_bytes(raw)
        return name

    def add(self, op, params, picture, expected, by, tolerance=0, why=None, share=None):
        assert picture.dtype == expected.dtype and expected.shape[2] == 3
        assert (why is None) == (tolerance == 0), op
        case = {
            "op": op,
            "params": params,
            "input": {
                "file": self.keep("in", picture),
                "height": picture.shape[0],
                "width": picture.shape[1],
            },
            "expected": self.keep("expected", expected),
            "dtype": "u8" if picture.dtype == np.uint8 else "f32",
            "height": expected.shape[0],
            "width": expected.shape[1],
            "by": by,
            "tolerance": tolerance,
        }
        if share is not None:
            case["share"] = share
        if why is not None:
            case["why"] = why
        self.cases.append(case)

    def write(self):
        lines = ",\n".join(json.dumps(case) for case in self.cases)
        (self.out / "manifest.json").write_text(f'{{"cases": [\n{lines}\n]}}\n')


def tensor(pixels):
    return torch.from_numpy(pixels.copy()).permute(2, 0, 1)


def pixels(t):
    return t.permute(1, 2, 0).contiguous().numpy()


def levels(values, dtype):
    """Converts values to the type of the image. Bytes are rounded and clipped."""
    if dtype == np.uint8:
        return np.clip(np.rint(values), 0, 255).astype(np.uint8)
    return values.astype(np.float32)


def pillow(picture, size, how):
    if how in (Image.BICUBIC, Image.LANCZOS) and picture.dtype == np.uint8:
        # Levels are clipped between the passes, so the order of the passes counts. Ours is
        # across, then down. Pillow 13 chooses by the shape, so each pass is a call here.
        across = Image.fromarray(picture).resize((size[1], picture.shape[0]), how)
        return np.asarray(across.resize(size[::-1], how))
    if picture.dtype == np.uint8:
        return np.asarray(Image.fromarray(picture).resize(size[::-1], how))
    channels = [Image.fromarray(picture[..., c]).resize(size[::-1], how) for c in range(3)]
    return np.stack([np.asarray(c) for c in channels], axis=2)


def interpolate(picture, size, mode):
    t = tensor(picture).float()[None]
    corners = {} if mode == "nearest-exact" else {"align_corners": False}
    return levels(pixels(F.interpolate(t, size=size, mode=mode, **corners)[0]), picture.dtype)


def matrix(n, out, weight):
    """The matrix of `weight(o, i)` of one axis, with rows that sum to 1."""
    m = np.array([[weight(o, i) for i in range(n)] for o in range(out)])
    return m / m.sum(axis=1, keepdims=True)


def area_weights(n, out):
    def weight(o, i):
        low, high = o * n / out, (o + 1) * n / out
        return max(0.0, min(high, i + 1) - max(low, i))

    return matrix(n, out, weight)


def lanczos_weights(n, out):
    """Weights of three lobes in pixels of the input, at any scale."""

    def weight(o, i):
        x = i + 0.5 - (o + 0.5) * n / out
        return np.sinc(x) * np.sinc(x / 3) if -3 <= x < 3 else 0.0

    return matrix(n, out, weight)


def formula(picture, size, weights):
    down, across = weights(picture.shape[0], size[0]), weights(picture.shape[1], size[1])
    values = np.einsum("oy,yxc,px->opc", down, picture.astype(np.float64), across)
    return levels(values, picture.dtype)


def identical(picture, size):
    return picture.shape[:2] == size


def resized(picture, size, interpolation, antialias):
    """The expected pixels, their source, the tolerance and its reason."""
    bytes_ = picture.dtype == np.uint8
    floats = (0.001, FLOAT)
    if interpolation == "nearest":
        expected = interpolate(picture, size, "nearest-exact")
        # The libraries may differ where a centre lies between two pixels. None does here.
        assert (expected == pillow(picture, size, Image.NEAREST)).all(), size
        return expected, f"{TORCH}, {PILLOW}", 0, None
    if interpolation == "area":
        shrinks = size[0] <= picture.shape[0] and size[1] <= picture.shape[1]
        if shrinks:
            expected, by = cv2.resize(picture, size[::-1], interpolation=cv2.INTER_AREA), OPENCV
        else:
            expected, by = formula(picture, size, area_weights), "formula"
        return expected, by, *((1, FLOAT_THEN_ROUND) if bytes_ else floats)
    if antialias:
        how = {"bilinear": Image.BILINEAR, "bicubic": Image.BICUBIC, "lanczos": Image.LANCZOS}
        expected = pillow(picture, size, how[interpolation])
        if bytes_ and interpolation != "bilinear":
            return expected, f"{PILLOW}, across then down", 0, None
        return expected, PILLOW, *((1, FIXED_POINT) if bytes_ else floats)
    if interpolation == "lanczos":
        expected, by = formula(picture, size, lanczos_weights), "formula"
    else:
        expected, by = interpolate(picture, size, interpolation), TORCH
    return expected, by, *((1, FLOAT_THEN_ROUND) if bytes_ else floats)


INTERPOLATIONS = ("nearest", "bilinear", "bicubic", "lanczos", "area")


def resizes(goldens):
    shapes = [
        (ODD, (11, 14)),
        (ODD, (38, 50)),
        (ODD, (10, 43)),
        (ODD, (29, 20)),
        (ONE, (3, 5)),
        (TINY, (1, 1)),
        (FLAT, (3, 9)),
        (TALL, (7, 22)),
    ]
    for i, interpolation in enumerate(INTERPOLATIONS):
        for antialias in (True, False):
            for j, (size, out) in enumerate(shapes):
                sharp = interpolation in ("bicubic", "lanczos") and not antialias
                picture = (soft if sharp else noise)(size, 100 + j)
                # Bytes for every shape, and floats for every second shape.
                kinds = [picture]
                if (i + j) % 2 == 0:
                    kinds.append(picture.astype(np.float32) * np.float32(0.99))
                for picture in kinds:
                    expected, by, tolerance, why = resized(
                        picture, out, interpolation, antialias
                    )
                    params = {
                        "height": out[0],
                        "width": out[1],
                        "interpolation": interpolation,
                        "antialias": antialias,
                    }
                    if picture.dtype == np.uint8 and identical(picture, out):
                        tolerance, why = 0, None
                    goldens.add("resize", params, picture, expected, by, tolerance, why)


def resizes_then_crops(goldens):
    """Resizes followed by a crop, which must equal the crop of the whole resize."""
    for interpolation in INTERPOLATIONS:
        for antialias in (True, False):
            for size, out, (top, left, height, width) in [
                (ODD, (17, 22), (3, 5, 11, 13)),
                (ODD, (51, 40), (30, 1, 15, 38)),
                (FLAT, (7, 31), (0, 11, 5, 9)),
            ]:
                sharp = interpolation in ("bicubic", "lanczos") and not antialias
                picture = (soft if sharp else noise)(size, 200)
                expected, by, tolerance, why = resized(picture, out, interpolation, antialias)
                params = {
                    "height": out[0],
                    "width": out[1],
                    "interpolation": interpolation,
                    "antialias": antialias,
                    "crop": {"top": top, "left": left, "height": height, "width": width},
                }
                expected = expected[top : top + height, left : left + width]
                goldens.add(
                    "resize_then_crop", params, picture, expected, by, tolerance, why
                )


def crops(goldens):
    for size, (top, left, height, width) in [
        (ODD, (2, 7, 20, 30)),
        (ODD, (28, 36, 1, 1)),
        (TINY, (0, 0, 3, 5)),
    ]:
        picture = noise(size, 300)
        expected = pixels(V.crop(tensor(picture), top, left, height, width))
        params = {"top": top, "left": left, "height": height, "width": width}
        goldens.add("crop", params, picture, expected, TORCHVISION)
    # Halves of the centre's offset are rounded to the even number.
    for size, out in [(ODD, (12, 22)), (ODD, (29, 1)), (TINY, (2, 2))]:
        picture = noise(size, 301)
        expected = pixels(V.center_crop(tensor(picture), list(out)))
        params = {"height": out[0], "width": out[1]}
        goldens.add("center_crop", params, picture, expected, TORCHVISION)


def pads(goldens):
    fill = [255, 0, 124]
    for mode in ("constant", "edge", "reflect"):
        for size, padding in [
            (SMALL, [3, 1, 0, 10]),
            (TINY, [4, 2, 3, 1]),
            (FLAT, [0, 6, 11, 0]),
            (ONE, [0, 0, 0, 0] if mode == "reflect" else [2, 1, 0, 3]),
        ]:
            for kind in (np.uint8, np.float32):
                picture = noise(size, 400).astype(kind)
                colour = {"fill": [float(v) for v in fill]} if mode == "constant" else {}
                t = V.pad(tensor(picture), padding, padding_mode=mode, **colour)
                params = {"padding": padding, "mode": mode, "fill": fill}
                goldens.add("pad", params, picture, pixels(t), TORCHVISION)
    # torchvision rejects padding larger than the image. NumPy reflects again, as featherload does.
    for size, padding in [(TINY, [11, 7, 5, 8]), (ONE, [2, 1, 0, 3])]:
        left, top, right, bottom = padding
        picture = noise(size, 401)
        around = ((top, bottom), (left, right), (0, 0))
        expected = np.pad(picture, around, mode="reflect")
        params = {"padding": padding, "mode": "reflect", "fill": fill}
        goldens.add("pad", params, picture, expected, f"NumPy {np.__version__}")


def rotations(goldens):
    how = {"nearest": InterpolationMode.NEAREST, "bilinear": InterpolationMode.BILINEAR}
    fill = [10.0, 200.0, 77.5]
    for interpolation in how:
        for size in (ODD, ONE, TINY, FLAT, SMALL):
            for degrees in (0.0, 90.0, 180.0, 33.3, -120.5, -90.0, 405.25):
                quarter = degrees % 180 == 90
                for expand in (False, True):
                    if quarter and not expand and (size[0] + size[1]) % 2 == 1:
                        # Places lie on the border of two pixels, and rounding
                        # in float32 decides between them.
                        continue
                    for kind in (np.uint8, np.float32):
                        if (kind == np.float32) != (size == SMALL):
                            continue
                        picture = noise(size, 500).astype(kind)
                        t = V.rotate(
                            tensor(picture), degrees, how[interpolation], expand, fill=fill
                        )
                        params = {
                            "degrees": degrees,
                            "interpolation": interpolation,
                            "expand": expand,
                            "fill": fill,
                        }
                        exact = degrees in (0.0, 180.0) or quarter and expand
                        tolerance, why, share = 0, None, None
                        if interpolation == "bilinear" and not exact:
                            # Places differ by about 1e-6 pixels.
                            tolerance = 1 if kind == np.uint8 else 0.02
                            share = 0.05 if quarter else 0.005
                            if kind == np.float32:
                                share = None
                            why = PLACES
                        goldens.add(
                            "rotate", params, picture, pixels(t), TORCHVISION, tolerance, why, share
                        )


def flips(goldens):
    for size in (ODD, TINY, ONE):
        picture = noise(size, 600)
        t = tensor(picture)
        goldens.add("horizontal_flip", {}, picture, pixels(V.horizontal_flip(t)), TORCHVISION)
        goldens.add("vertical_flip", {}, picture, pixels(V.vertical_flip(t)), TORCHVISION)
        for times in (1, 2, 3):
            turned = pixels(torch.rot90(t, times, (1, 2)))
            goldens.add("rotate90", {"times": times}, picture, turned, TORCH)


def main():
    torch.set_num_threads(1)
    goldens = Goldens(sys.argv[1])
    resizes(goldens)
    resizes_then_crops(goldens)
    crops(goldens)
    pads(goldens)
    rotations(goldens)
    flips(goldens)
    goldens.write()
    print(f"{len(goldens.cases)} cases")


if __name__ == "__main__":
    main()
