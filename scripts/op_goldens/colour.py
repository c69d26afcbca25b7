"""Makes tests/goldens/colour.tar: operations that change values, and move no pixel.

    colour.py OUT

Cases run torchvision if it has the operation, on `uint8` tensors or on float tensors of
levels / 255. Results of colour spaces are OpenCV's and Pillow's. Since those approximate,
there are also results of the standards' formulas in float64. README.md has the versions and
the command.
"""

import json
import sys
from pathlib import Path

import cv2
import numpy as np
import torch
from PIL import Image
from torchvision.transforms.v2 import functional as F

torch.set_num_threads(1)
cv2.setNumThreads(1)
rng = np.random.default_rng(20)


# ---- the pictures ----


def slopes(h, w):
    """An image of slopes, a pattern without symmetry, black, white, grey and pure colours."""
    y, x = np.mgrid[0:h, 0:w]
    rgb = np.stack(
        [x * 255 // max(w - 1, 1), y * 255 // max(h - 1, 1), (x * 7 + y * 13 + x * y // 5) % 256],
        axis=-1,
    ).astype(np.uint8)
    rgb[3:20, 4:7] = (250, 240, 20)
    rgb[h - 5 :, w - 9 :] = 0
    rgb[:4, w - 6 :] = 255
    rgb[h - 9 : h - 6, w - 12 :] = np.arange(0, 256, 23)[:12, None]
    return rgb


def colours():
    """Every mixture of five levels: saturated, grey, black, and nearby colours."""
    levels = np.array([0, 1, 128, 254, 255], np.uint8)
    return np.stack(np.meshgrid(levels, levels, levels, indexing="ij"), -1).reshape(5, 25, 3)


def noise(h, w):
    return rng.integers(0, 256, (h, w, 3), dtype=np.uint8)


BYTES = {
    "slopes": slopes(37, 29),
    "noise": noise(29, 37),
    "colours": colours(),
    "small": noise(3, 5),
    "one": np.array([[[200, 17, 90]]], np.uint8),
}
FLOATS = {
    # Fractions over the whole range, with both ends.
    "fractions": np.clip(
        slopes(23, 19).astype(np.float32) + rng.uniform(-0.5, 0.5, (23, 19, 3)), 0, 255
    ).astype(np.float32),
    "one": np.array([[[200.25, 17.5, 90.125]]], np.float32),
}
# Values outside of 0 to 255, as a bicubic resize may return them.
WIDE = {"wide": rng.uniform(-20, 280, (11, 13, 3)).astype(np.float32)}


# ---- the list ----

cases = []
results = {}
out = Path(sys.argv[1])
out.mkdir(parents=True, exist_ok=True)


def raw(pixels):
    """The bytes and the type of pixels. NumPy has no bf16, so uint16 holds its bits."""
    kinds = {"uint8": "u8", "float32": "f32", "float16": "f16", "uint16": "bf16"}
    kind = kinds[str(pixels.dtype)]
    little = pixels.astype(pixels.dtype.newbyteorder("<"))
    return np.ascontiguousarray(little).tobytes(), kind


def case(op, params, name, pixels, expected, by, tolerance, why=None):
    """Adds a case. Each input is a file, and all results of an operation share one."""
    data, dtype = raw(pixels)
    (out / f"{name}.{dtype}").write_bytes(data)
    data, gives = raw(np.asarray(expected))
    of_op = results.setdefault(op, bytearray())
    entry = dict(op=op, params=params, input=f"{name}.{dtype}", dtype=dtype)
    entry |= dict(height=pixels.shape[0], width=pixels.shape[1])
    entry |= dict(expected=f"{op}.raw", at=len(of_op), gives=gives)
    entry |= dict(by=by, tolerance=tolerance)
    if why:
        entry["why"] = why
    of_op += data
    cases.append(entry)


def exactly(v):
    """Rounds a number to f32, since featherload stores factors as f32."""
    return float(np.float32(v))


def tensor(pixels):
    return torch.from_numpy(np.ascontiguousarray(pixels)).permute(2, 0, 1)


def array(t):
    return t.permute(1, 2, 0).contiguous().numpy()


def in_levels(op, pixels):
    """Applies a float operation on 0 to 1 to levels."""
    return array(op(tensor(pixels).div(255)).mul(255))


SUMS = "f32 sums in another order, and between 0 and 255 instead of 0 and 1"

# ---- torchvision's operations on values ----

JITTER = {
    "brightness": (F.adjust_brightness, [0.0, 0.3, 0.77, 1.0, 1.4, 6.5]),
    "contrast": (F.adjust_contrast, [0.0, 0.3, 0.77, 1.0, 1.4, 6.5]),
    "saturation": (F.adjust_saturation, [0.0, 0.3, 0.77, 1.0, 1.9, 6.5]),
    "hue": (F.adjust_hue, [-0.5, -0.31, -0.01, 0.0, 0.05, 0.25, 0.5]),
}
for op, (function, factors) in JITTER.items():
    for factor in map(exactly, factors):
        for name, pixels in BYTES.items():
            got = array(function(tensor(pixels), factor))
            case(op, dict(factor=factor), name, pixels, got, "torchvision, uint8", 0)
    for factor in map(exactly, factors[1:5:2]):
        for name, pixels in (FLOATS | (WIDE if op != "hue" else {})).items():
            got = in_levels(lambda t: function(t, factor), pixels)
            case(op, dict(factor=factor), name, pixels, got, "torchvision, float32", 2e-4, SUMS)

for name, pixels in BYTES.items():
    got = array(F.rgb_to_grayscale(tensor(pixels), 3))
    case("grayscale", {}, name, pixels, got, "torchvision, uint8", 0)
    got = np.asarray(Image.fromarray(pixels).convert("L").convert("RGB"))
    case("luma", {}, name, pixels, got, "Pillow, L", 0)
for name, pixels in (FLOATS | WIDE).items():
    got = in_levels(lambda t: F.rgb_to_grayscale(t, 3), pixels)
    case("grayscale", {}, name, pixels, got, "torchvision, float32", 2e-4, SUMS)

TIES = "f32 sums in another order: where the sum is all but half a level, the level beside"
for name, height, width, sigma in [
    ("slopes", 3, 3, 0.1),
    ("slopes", 5, 9, 1.7),
    ("noise", 1, 7, 1.0),
    ("noise", 23, 23, 6.0),
    ("small", 5, 9, 2.0),
    ("colours", 9, 5, 0.8),
    ("one", 1, 1, 1.0),
]:
    params = dict(kernel=[height, width], sigma=sigma)
    got = array(F.gaussian_blur(tensor(BYTES[name]), [width, height], [sigma, sigma]))
    case("gaussian_blur", params, name, BYTES[name], got, "torchvision, uint8", 1, TIES)
for name, height, width, sigma in [
    ("fractions", 5, 9, 1.7),
    ("wide", 7, 3, 0.6),
    ("one", 1, 1, 2.0),
]:
    params = dict(kernel=[height, width], sigma=sigma)
    pixels = (FLOATS | WIDE)[name]
    got = array(F.gaussian_blur(tensor(pixels), [width, height], [sigma, sigma]))
    case("gaussian_blur", params, name, pixels, got, "torchvision, float32", 2e-4, SUMS)

for name, pixels, (left, top, width, height), value in [
    ("slopes", BYTES["slopes"], (3, 5, 11, 20), (0, 127, 255)),
    ("noise", BYTES["noise"], (0, 0, 37, 29), (9, 9, 9)),
    ("small", BYTES["small"], (4, 2, 1, 1), (1, 2, 3)),
    ("fractions", FLOATS["fractions"], (18, 0, 1, 23), (-1.5, 0.25, 300.0)),
]:
    t = tensor(pixels)
    v = torch.tensor(value, dtype=t.dtype).view(3, 1, 1)
    params = dict(rect=[left, top, width, height], value=[float(v) for v in value])
    got = array(F.erase(t, top, left, height, width, v))
    case("erase", params, name, pixels, got, "torchvision", 0)

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
for name, pixels in (BYTES | FLOATS | WIDE).items():
    params = dict(unit=255.0, mean=MEAN, std=STD)
    got = array(F.normalize(tensor(pixels).float().div(255), MEAN, STD))
    case("normalize", params, name, pixels, got, "torch, float32: / 255; torchvision", 0)
by, why = "torchvision, to_dtype", "it multiplies by 1 / 255, which is rounded, instead of dividing"
got = array(F.normalize(F.to_dtype(tensor(BYTES["noise"]), scale=True), MEAN, STD))
case("normalize", params, "noise", BYTES["noise"], got, by, 1e-6, why)
lab = rng.uniform(-90, 100, (4, 6, 3)).astype(np.float32)
params = dict(unit=1.0, mean=[50.0, 1.5, -2.25], std=[25.0, 40.0, 0.5])
got = array(F.normalize(tensor(lab), params["mean"], params["std"]))
case("normalize", params, "values", lab, got, "torchvision", 0)


# ---- colour spaces ----

SRGB_TO_XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)
BRADFORD = np.array(
    [[0.8951, 0.2664, -0.1614], [-0.7502, 1.7135, 0.0367], [0.0389, -0.0685, 1.0296]]
)
WHITES = {"d65": np.array([0.95047, 1, 1.08883]), "d50": np.array([0.96422, 1, 0.82521])}


def linear_of(pixels):
    """Linear light, by IEC 61966-2-1."""
    c = pixels.astype(np.float64) / 255
    return np.where(c <= 0.04045, c / 12.92, ((np.maximum(c, 0) + 0.055) / 1.055) ** 2.4)


def lab_of(pixels, white):
    """Lab, by IEC 61966-2-1, Bradford's adaptation and CIE 1976."""
    cones = np.diag(BRADFORD @ WHITES[white] / (BRADFORD @ WHITES["d65"]))
    adapt = np.linalg.inv(BRADFORD) @ cones @ BRADFORD
    t = linear_of(pixels) @ (adapt @ SRGB_TO_XYZ).T / WHITES[white]
    f = np.where(t > (6 / 29) ** 3, np.cbrt(t), t * (29 / 6) ** 2 / 3 + 4 / 29)
    x, y, z = f[..., 0], f[..., 1], f[..., 2]
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], -1).astype(np.float32)


def hsv_of(pixels):
    r, g, b = np.moveaxis(pixels.astype(np.float64), -1, 0)
    most, least = pixels.max(-1).astype(np.float64), pixels.min(-1).astype(np.float64)
    span = np.where(most == least, 1, most - least)
    h = np.where(
        most == r,
        (g - b) / span % 6,
        np.where(most == g, (b - r) / span + 2, (r - g) / span + 4),
    )
    h = np.where(most == least, 0, h)
    s = (most - least) / np.where(most == 0, 1, most)
    return np.stack([60 * h, s, most / 255], -1).astype(np.float32)


def ycbcr_of(pixels):
    """YCbCr, by ITU-T T.871."""
    r, g, b = np.moveaxis(pixels.astype(np.float64), -1, 0)
    y = 0.299 * r + 0.587 * g + 0.114 * b
    return np.stack([y, 128 + (b - y) / 1.772, 128 + (r - y) / 1.402], -1).astype(np.float32)


STANDARD = "the standard's formula, float64"
ROUNDED = "f32 against f64"
for name, pixels in (BYTES | FLOATS).items():
    for white in WHITES:
        params = dict(to="lab", white_point=white)
        case("convert", params, name, pixels, lab_of(pixels, white), STANDARD, 1e-3, ROUNDED)
    case("convert", dict(to="hsv"), name, pixels, hsv_of(pixels), STANDARD, 1e-3, ROUNDED)
    case("convert", dict(to="ycbcr"), name, pixels, ycbcr_of(pixels), STANDARD, 1e-3, ROUNDED)
    unit = pixels.astype(np.float32) / np.float32(255)
    got = cv2.cvtColor(unit, cv2.COLOR_RGB2Lab)
    why = "OpenCV interpolates in a table of 33 levels a channel, whose entries are rounded"
    case("convert", dict(to="lab"), name, pixels, got, "OpenCV", 0.5, why)
    got = cv2.cvtColor(linear_of(pixels).astype(np.float32), cv2.COLOR_LRGB2Lab)
    why = (
        "OpenCV has 0.950456 and 1.088754 as X and Z of the white, other digits of the matrix, "
        "and 0.008856 and 7.787 for the line near black"
    )
    by = "the standard's linear light, then OpenCV"
    case("convert", dict(to="lab"), name, pixels, got, by, 0.05, why)
    got = cv2.cvtColor(unit, cv2.COLOR_RGB2HSV)
    # 360 and 0 are the same hue, and OpenCV may return either.
    got[..., 0] = np.where(got[..., 0] >= 360, 0, got[..., 0])
    # The error is up to 60 degrees times this divided by the range of the channels, which is
    # small in some pixels with fractions.
    why = "OpenCV adds 1.2e-7 to divisors that may be 0"
    tolerance = 5e-3 if pixels.dtype == np.uint8 else 0.05
    case("convert", dict(to="hsv"), name, pixels, got, "OpenCV", tolerance, why)
for name, pixels in BYTES.items():
    got = np.asarray(Image.fromarray(pixels).convert("YCbCr")).astype(np.float32)
    why = "Pillow sums products of 6 binary places and cuts the sum to a level"
    case("convert", dict(to="ycbcr"), name, pixels, got, "Pillow", 1.03, why)


# ---- the end of the chain ----

DTYPES = dict(f32=torch.float32, f16=torch.float16, bf16=torch.bfloat16)
for name, pixels in [
    ("noise", BYTES["noise"]),
    ("small", BYTES["small"]),
    ("fractions", FLOATS["fractions"]),
    ("wide", WIDE["wide"]),
]:
    for order, layout, dtype, mirrored in [
        ("rgb", "nchw", "f32", False),
        ("bgr", "nhwc", "f16", True),
        ("bgr", "nchw", "u8", True),
        ("grey", "nhwc", "f16", False),
        ("bgr", "nchw", "bf16", True),
        ("rgb", "nhwc", "bf16", False),
    ]:
        t = tensor(pixels)
        t = t.flip(-1) if mirrored else t
        t = t.flip(0) if order == "bgr" else t
        mean, std = MEAN, STD
        if order == "grey":
            t, mean, std = t[:1], MEAN[:1], STD[:1]
        if dtype == "u8":
            t = t.round().clamp(0, 255).to(torch.uint8) if t.is_floating_point() else t
        else:
            t = F.normalize(t.float().div(255), mean, std).to(DTYPES[dtype])
        got = t if layout == "nchw" else t.permute(1, 2, 0)
        params = dict(order=order, layout=layout, dtype=dtype, mirrored=mirrored)
        params |= dict(unit=255.0, mean=MEAN, std=STD)
        got = got.contiguous()
        got = (got.view(torch.uint16) if dtype == "bf16" else got).numpy()
        case("emit", params, name, pixels, got, "torch: / 255, round, to; torchvision", 0)

for op, data in results.items():
    (out / f"{op}.raw").write_bytes(data)
text = ",\n".join(json.dumps(c) for c in cases)
(out / "manifest.json").write_text(f"[\n{text}\n]\n")
