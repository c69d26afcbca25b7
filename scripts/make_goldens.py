"""Makes tests/goldens/formats.tar: small images of every format and form, and their pixels.

    make_goldens.py OUT

OUT/files/     the images, stored as 37 x 29 unless their format forbids it
OUT/expected/  the upright 8-bit RGB pixels of each as PPM; images with equal pixels share a file
OUT/manifest.json

The expected pixels are Pillow's: opened, turned upright, with alpha composited on white, and
converted to RGB. If Pillow cannot read a form, or differs from docs/design/decoding.md, this
script computes them from the known pixels, and the manifest has `by: computed`. Small encoders
here write the images that Pillow cannot write.

The manifest has for each file: `kind`, `expected` (or `refused`, the kind of fault of a form that
is not supported), `by` (the source of the pixels) and `tolerance` in levels. For every tolerance
above 0, and for every difference from Pillow, it also has `why`.
"""

import io
import json
import shutil
import struct
import sys
import zlib
from pathlib import Path

import numpy as np
from PIL import Image, ImageFile, ImageOps, features

W, H = 37, 29
WHITE = 255


# ---- the images: every flip, turn or shift changes their pixels ----


def photo(w=W, h=H):
    """An image of slopes, a pattern without symmetry, and an F."""
    y, x = np.mgrid[0:h, 0:w]
    rgb = np.stack(
        [x * 255 // (w - 1), y * 255 // (h - 1), (x * 7 + y * 13 + x * y // 5) % 256], axis=-1
    ).astype(np.uint8)
    rgb[3:20, 4:7] = rgb[3:6, 4:15] = rgb[10:13, 4:12] = (250, 240, 20)
    rgb[h - 5 :, w - 9 :] = (0, 0, 0)
    rgb[:4, w - 6 :] = (255, 255, 255)
    return rgb


def grey(rgb):
    return ((rgb.astype(np.uint32) * (77, 151, 28)).sum(axis=-1) >> 8).astype(np.uint8)


def alpha(w=W, h=H):
    """Alpha from 0 to 255, with areas of 0 and of 255."""
    y, x = np.mgrid[0:h, 0:w]
    a = np.clip((x * 9 + y * 4) - 40, 0, 255)
    return a.astype(np.uint8)


def indices(colours, w=W, h=H):
    y, x = np.mgrid[0:h, 0:w]
    at = (x * 3 + y * 5 + x * y // 7) // 4 % colours
    at[3:20, 4:7] = at[3:6, 4:15] = at[10:13, 4:12] = colours - 1
    return at.astype(np.uint8)


def palette(colours):
    i = np.arange(colours, dtype=np.uint32)
    return np.stack([i * 89 % 256, 255 - i * 37 % 256, (i * i * 11 + 60) % 256], -1).astype(np.uint8)


def with_alpha(rgb, a):
    return np.dstack([rgb, a])


def wide(values, seed):
    """16-bit values whose high byte is `values`. The low byte is arbitrary."""
    y, x = np.mgrid[0 : values.shape[0], 0 : values.shape[1]]
    low = (x * 31 + y * 17 + seed) % 256
    low = low if values.ndim == 2 else low[..., None] + np.arange(values.shape[2]) * 50
    return (values.astype(np.uint16) << 8) | (low % 256).astype(np.uint16)


# ---- the expected pixels: docs/design/decoding.md ----


def rgb_of(pixels):
    """Converts grey, grey with alpha, RGB or RGBA, of 8 or 16 bits, to RGB8 on white."""
    p = pixels if pixels.ndim == 3 else pixels[..., None]
    if p.dtype == np.uint16:
        p = (p >> 8).astype(np.uint8)
    colour = np.repeat(p[..., :1], 3, -1) if p.shape[-1] < 3 else p[..., :3]
    if p.shape[-1] in (1, 3):
        return colour
    return composited(colour, p[..., -1:])


def composited(colour, a):
    c, a = colour.astype(np.uint32), a.astype(np.uint32)
    return ((c * a + WHITE * (255 - a) + 127) // 255).astype(np.uint8)


def premultiplied(colour, a):
    return (colour.astype(np.uint32) * a[..., None] // 255).astype(np.uint8)


def shown(colour, a):
    """Composites premultiplied colours on white."""
    rest = (WHITE * (255 - a.astype(np.uint32)) + 127) // 255
    return np.minimum(colour + rest[..., None], 255).astype(np.uint8)


TWICE = "premultiplied colours are composited as they are; Pillow divides by alpha first, and rounds twice"


def clamped(values):
    """Clips floats to 0 to 1, and rounds 255 times their value."""
    v = np.nan_to_num(values.astype(np.float32), nan=0.0, posinf=1.0, neginf=0.0)
    return np.floor(np.clip(v, 0, 1) * np.float32(255) + np.float32(0.5)).astype(np.uint8)


def seen_by_pillow(data, keep=False):
    ImageFile.LOAD_TRUNCATED_IMAGES = keep
    image = Image.open(io.BytesIO(data))
    image = ImageOps.exif_transpose(image)
    ImageFile.LOAD_TRUNCATED_IMAGES = False
    if image.has_transparency_data:
        image = image.convert("RGBA")
        white = Image.new("RGBA", image.size, (WHITE,) * 4)
        image = Image.alpha_composite(white, image)
    return np.asarray(image.convert("RGB"))


def check_that_pillow_composites_as_we_say():
    s, a = np.meshgrid(np.arange(256, dtype=np.uint8), np.arange(256, dtype=np.uint8))
    rgba = np.dstack([s, s, s, a])
    got = Image.alpha_composite(Image.new("RGBA", (256, 256), (WHITE,) * 4), Image.fromarray(rgba))
    got = np.asarray(got.convert("RGB"))
    assert np.array_equal(got, composited(rgba[..., :3], rgba[..., 3:])), "Pillow composites otherwise"


# ---- the collection ----


class Goldens:
    def __init__(self, out):
        self.out = out
        self.entries = []
        self.expected = {}

    def add(self, name, kind, data, expected=None, tolerance=0, why=None, refused=None, keep=False):
        """Adds a file. Without `expected`, Pillow gives the pixels. `keep` allows truncation."""
        (self.out / "files" / name).write_bytes(data)
        entry = {"file": name, "kind": kind}
        if keep:
            entry["keep"] = True
        if refused:
            self.entries.append(entry | {"refused": refused, "why": why})
            return
        try:
            pillow = seen_by_pillow(data, keep)
        except (OSError, SyntaxError, ValueError, NotImplementedError) as e:
            pillow, refusal = None, str(e)
        entry["by"] = "Pillow"
        if expected is not None:
            entry["by"] = "computed"
            if pillow is None:
                entry["pillow"] = "cannot read it"
            elif np.array_equal(pillow, expected):
                # Both sources have the same pixels.
                entry["by"] = "Pillow and computed"
            else:
                assert why, f"{name}: Pillow differs: give a reason as why"
                most = np.abs(pillow.astype(int) - expected).max()
                entry["pillow"] = f"differs by up to {most} levels"
            pixels = expected
        else:
            assert pillow is not None, f"{name}: Pillow: {refusal}"
            pixels = pillow
        assert why or not tolerance, f"{name}: a tolerance without a reason"
        entry |= {"expected": self.keep(name, pixels), "tolerance": tolerance}
        if why:
            entry["why"] = why
        self.entries.append(entry)

    def keep(self, name, pixels):
        assert pixels.dtype == np.uint8 and pixels.ndim == 3 and pixels.shape[2] == 3, name
        ppm = b"P6\n%d %d\n255\n" % (pixels.shape[1], pixels.shape[0]) + pixels.tobytes()
        if ppm not in self.expected:
            self.expected[ppm] = Path(name).stem + ".ppm"
            (self.out / "expected" / self.expected[ppm]).write_bytes(ppm)
        return self.expected[ppm]

    def finish(self):
        text = json.dumps(self.entries, indent=1) + "\n"
        (self.out / "manifest.json").write_text(text)


def saved(pixels, format, **options):
    image = pixels if isinstance(pixels, Image.Image) else Image.fromarray(pixels)
    out = io.BytesIO()
    image.save(out, format, **options)
    return out.getvalue()


def orientation(tag):
    exif = Image.Exif()
    exif[0x0112] = tag
    return exif.tobytes()


def cut_off(g):
    """Truncated files, as Pillow reads them with LOAD_TRUNCATED_IMAGES."""
    rgb, a = photo(), alpha()
    cmyk = np.asarray(Image.fromarray(rgb).convert("CMYK")).copy()
    for name, image, options in [
        ("420", rgb, {"subsampling": 2}),
        ("444", rgb, {"subsampling": 0}),
        ("restart", rgb, {"subsampling": 2, "restart_marker_blocks": 2}),
        ("grey", grey(rgb), {}),
        ("progressive", rgb, {"progressive": True}),
        ("exif-6", rgb, {"exif": orientation(6)}),
    ]:
        data = saved(image, "JPEG", quality=85, **options)
        for tenth in (7, 9):
            cut = data[: len(data) * tenth // 10]
            g.add(f"jpeg-{name}-kept-{tenth}.jpg", f"JPEG, {name}, {tenth} tenths of it", cut, keep=True)
    colours = palette(16)
    for name, samples, kind, bits, chunks in [
        ("rgb", rgb, 2, 8, []),
        ("rgba-16", wide(with_alpha(rgb, a), 3), 6, 16, []),
        ("palette", indices(16), 3, 4, [(b"PLTE", colours.tobytes())]),
        ("grey-1", grey(rgb) >> 7, 0, 1, []),
    ]:
        for interlaced in (False, True):
            data = png(samples, kind, bits, chunks, interlaced=interlaced)
            for tenth in (5, 8):
                cut = data[: len(data) * tenth // 10]
                file = f"png-{name}{'-interlaced' if interlaced else ''}-kept-{tenth}.png"
                g.add(file, f"PNG, {name}, {tenth} tenths of it", cut, keep=True)


def packet(tag):
    return f'<x:xmpmeta><rdf:Description tiff:Make="O" tiff:Orientation="{tag}"/></x:xmpmeta>'.encode()


# ---- JPEG ----


def jpegs(g):
    rgb = photo()
    for name, kind, options in [
        ("444", "4:4:4", {"subsampling": 0}),
        ("422", "4:2:2", {"subsampling": 1}),
        ("420", "4:2:0", {"subsampling": 2}),
        ("progressive", "progressive, 4:2:0", {"subsampling": 2, "progressive": True}),
        ("restart", "4:2:0 with restart markers", {"subsampling": 2, "restart_marker_blocks": 2}),
        ("rgb", "RGB, with an Adobe marker", {"keep_rgb": True}),
    ]:
        g.add(f"jpeg-{name}.jpg", f"JPEG, {kind}", saved(rgb, "JPEG", quality=85, **options))
    g.add("jpeg-grey.jpg", "JPEG, grey", saved(grey(rgb), "JPEG", quality=85))
    progressive = saved(grey(rgb), "JPEG", quality=85, progressive=True)
    g.add("jpeg-grey-progressive.jpg", "JPEG, grey, progressive", progressive)
    for tag in range(1, 9):
        data = saved(rgb, "JPEG", quality=85, exif=orientation(tag))
        g.add(f"jpeg-exif-{tag}.jpg", f"JPEG, EXIF orientation {tag}", data)

    g.add("jpeg-xmp-6.jpg", "JPEG, orientation 6 in XMP alone", saved(rgb, "JPEG", quality=85, xmp=packet(6)))
    data = saved(rgb, "JPEG", quality=85, xmp=packet(6), exif=orientation(3))
    g.add("jpeg-xmp-and-exif.jpg", "JPEG, orientation 6 in XMP and 3 in EXIF", data)

    cmyk = np.asarray(Image.fromarray(rgb).convert("CMYK")).copy()
    cmyk[..., 3] = alpha() // 3
    cmyk = saved(Image.fromarray(cmyk, "CMYK"), "JPEG", quality=85)
    g.add("jpeg-cmyk.jpg", "JPEG, CMYK, inverted as Adobe does", cmyk)
    # The same four components, said to be YCbCr and black: libjpeg looks at one
    # byte of the Adobe marker.
    at = cmyk.index(b"Adobe\0") + 11
    assert cmyk[at] == 0
    g.add("jpeg-ycck.jpg", "JPEG, YCCK, inverted as Adobe does", cmyk[:at] + b"\2" + cmyk[at + 1 :])


# ---- PNG ----


def packed(row, bits):
    """Samples of 1 to 16 bits -> bytes, first sample in the highest bits."""
    if bits == 16:
        return row.astype(">u2").tobytes()
    if bits == 8:
        return row.astype(np.uint8).tobytes()
    text = "".join(f"{int(v):0{bits}b}" for v in row)
    text += "0" * (-len(text) % 8)
    return bytes(int(text[i : i + 8], 2) for i in range(0, len(text), 8))


def filtered(rows, step):
    """PNG's five filters in turns, row by row."""
    out, above = bytearray(), None
    for number, row in enumerate(rows):
        kind = number % 5
        cur = np.frombuffer(row, np.uint8).astype(int)
        up = np.zeros_like(cur) if above is None else above
        left = np.concatenate([np.zeros(step, int), cur])[: len(cur)]
        upleft = np.concatenate([np.zeros(step, int), up])[: len(cur)]
        p = left + up - upleft
        pa, pb, pc = abs(p - left), abs(p - up), abs(p - upleft)
        paeth = np.where((pa <= pb) & (pa <= pc), left, np.where(pb <= pc, up, upleft))
        predicted = [0 * cur, left, up, (left + up) // 2, paeth][kind]
        out += bytes([kind]) + ((cur - predicted) % 256).astype(np.uint8).tobytes()
        above = cur
    return bytes(out)


ADAM7 = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]


def png_chunk(kind, content):
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def png(samples, colour_type, bits, chunks=(), behind=(), interlaced=False):
    samples = samples if samples.ndim == 3 else samples[..., None]
    h, w, channels = samples.shape
    step = max(1, channels * bits // 8)
    rows = lambda part: [packed(row.ravel(), bits) for row in part]
    if interlaced:
        parts = [samples[y::dy, x::dx] for x, y, dx, dy in ADAM7]
        data = b"".join(filtered(rows(part), step) for part in parts if part.size)
    else:
        data = filtered(rows(samples), step)
    head = struct.pack(">IIBBBBB", w, h, bits, colour_type, 0, 0, interlaced)
    data = zlib.compress(data, 9)
    # Two pieces: a decoder has to join them.
    cut = len(data) // 2
    parts = [(b"IHDR", head), *chunks, (b"IDAT", data[:cut]), (b"IDAT", data[cut:]), *behind, (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(png_chunk(*part) for part in parts)


def pngs(g):
    rgb, a = photo(), alpha()
    l = grey(rgb)
    for bits in (1, 2, 4, 8):
        low = l >> (8 - bits)
        full = rgb_of((low * (255 // (2**bits - 1))).astype(np.uint8))
        g.add(f"png-grey-{bits}.png", f"PNG, grey, {bits} bit", png(low, 0, bits), full)
        n = min(2**bits, 200)
        index, colours = indices(n), palette(n)
        plte = (b"PLTE", colours.tobytes())
        g.add(f"png-palette-{bits}.png", f"PNG, palette, {bits} bit", png(index, 3, bits, [plte]), colours[index])
        # Shorter than the palette: the rest is opaque.
        opacity = np.arange(max(1, n - 1)) * 211 % 256
        trns = (b"tRNS", bytes(opacity.astype(np.uint8)))
        of_all = np.append(opacity, [255] * (n - len(opacity))).astype(np.uint8)
        g.add(
            f"png-palette-{bits}-trns.png",
            f"PNG, palette with transparency, {bits} bit",
            png(index, 3, bits, [plte, trns]),
            composited(colours[index], of_all[index][..., None]),
        )
    high = "16 bits become 8 by leaving out the low byte, as libpng does; Pillow clips 16-bit grey at 255"
    g.add("png-grey-16.png", "PNG, grey, 16 bit", png(wide(l, 5), 0, 16), rgb_of(l), why=high)
    g.add("png-grey-alpha.png", "PNG, grey with alpha", png(np.dstack([l, a]), 4, 8), rgb_of(np.dstack([l, a])))
    la16 = np.dstack([wide(l, 5), wide(a, 9)])
    g.add("png-grey-alpha-16.png", "PNG, grey with alpha, 16 bit", png(la16, 4, 16), rgb_of(la16))
    g.add("png-rgb.png", "PNG, RGB", png(rgb, 2, 8), rgb)
    g.add("png-rgb-16.png", "PNG, RGB, 16 bit", png(wide(rgb, 3), 2, 16), rgb)
    rgba = with_alpha(rgb, a)
    g.add("png-rgba.png", "PNG, RGBA", png(rgba, 6, 8), rgb_of(rgba))
    g.add("png-rgba-16.png", "PNG, RGBA, 16 bit", png(wide(rgba, 3), 6, 16), rgb_of(rgba))

    key = int(l[8, 20])
    trns = (b"tRNS", struct.pack(">H", key))
    hidden = np.where(l == key, 0, 255).astype(np.uint8)
    g.add("png-grey-trns.png", "PNG, grey with a transparent level", png(l, 0, 8, [trns]), rgb_of(np.dstack([l, hidden])))
    key = tuple(int(v) for v in rgb[4, 5])
    trns = (b"tRNS", struct.pack(">HHH", *key))
    hidden = np.where((rgb == key).all(-1), 0, 255).astype(np.uint8)
    g.add("png-rgb-trns.png", "PNG, RGB with a transparent colour", png(rgb, 2, 8, [trns]), rgb_of(with_alpha(rgb, hidden)))

    for name, samples, kind, bits, chunks, expected in [
        ("grey-1", l >> 7, 0, 1, [], rgb_of((l >> 7) * 255)),
        ("palette-4", indices(16), 3, 4, [(b"PLTE", palette(16).tobytes())], palette(16)[indices(16)]),
        ("rgb", rgb, 2, 8, [], rgb),
        ("rgba-16", wide(rgba, 3), 6, 16, [], rgb_of(rgba)),
    ]:
        data = png(samples, kind, bits, chunks, interlaced=True)
        g.add(f"png-interlaced-{name}.png", f"PNG, interlaced, {name}", data, expected)
    exif = (b"eXIf", orientation(6)[6:])
    turned = np.rot90(rgb, -1)
    g.add("png-exif-6.png", "PNG, orientation 6 before the pixels", png(rgb, 2, 8, [exif]), turned)
    g.add("png-exif-6-behind.png", "PNG, orientation 6 behind the pixels", png(rgb, 2, 8, behind=[exif]), turned,
          why="Pillow reads chunks behind the pixels only when they are loaded before the question")
    g.add("png-exif-8-interlaced.png", "PNG, interlaced, orientation 8",
          png(rgb, 2, 8, [(b"eXIf", orientation(8)[6:])], interlaced=True), np.rot90(rgb, 1))
    xmp = (b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + packet(8))
    g.add("png-xmp-8.png", "PNG, orientation 8 in XMP alone", png(rgb, 2, 8, [xmp]), np.rot90(rgb, 1))
    xmp = (b"iTXt", b"XML:com.adobe.xmp\0\1\0\0\0" + zlib.compress(packet(3)))
    g.add("png-xmp-3-packed.png", "PNG, orientation 3 in packed XMP behind the pixels", png(rgb, 2, 8, behind=[xmp]), rgb[::-1, ::-1])
    digits = orientation(6).hex()
    raw = (b"zTXt", b"Raw profile type exif\0\0" + zlib.compress(f"\nexif\n{len(digits) // 2:8}\n{digits}\n".encode()))
    g.add("png-raw-exif-6.png", "PNG, orientation 6 as ImageMagick writes it", png(rgb, 2, 8, [raw]), np.rot90(rgb, -1))
    for cut, what in ((12, "end mark"), (16, "last checksum"), (20, "packing's checksum")):
        data = png(rgba, 6, 8)[:-cut]
        g.add(f"png-cut-{cut}.png", f"PNG without its {what}", data, rgb_of(rgba))
        data = png(rgb, 2, 8, interlaced=True)[:-cut]
        g.add(f"png-interlaced-cut-{cut}.png", f"PNG, interlaced, without its {what}", data, rgb)
    icc = b"any\0\0" + zlib.compress(b"no profile at all" * 9)
    colour = [(b"gAMA", struct.pack(">I", 100000)), (b"iCCP", icc), (b"sBIT", b"\5\6\5")]
    g.add("png-gamma-profile.png", "PNG, with gamma and colour profile, which are left alone", png(rgb, 2, 8, colour), rgb)


# ---- WebP ----


def webps(g):
    rgb, a = photo(), alpha()
    rgba = with_alpha(rgb, a)
    g.add("webp-lossy.webp", "WebP, lossy", saved(rgb, "WEBP", quality=80))
    data = saved(rgba, "WEBP", quality=80, alpha_quality=100, exact=True)
    g.add("webp-lossy-alpha.webp", "WebP, lossy with alpha", data)
    g.add("webp-lossless.webp", "WebP, lossless", saved(rgb, "WEBP", lossless=True), rgb)
    data = saved(rgba, "WEBP", lossless=True, exact=True)
    g.add("webp-lossless-alpha.webp", "WebP, lossless with alpha", data, rgb_of(rgba))
    data = saved(rgb, "WEBP", lossless=True, exif=orientation(6))
    g.add("webp-exif-6.webp", "WebP, lossless, orientation 6", data, np.rot90(rgb, -1))
    data = saved(rgb, "WEBP", lossless=True, xmp=packet(8))
    g.add("webp-xmp-8.webp", "WebP, lossless, orientation 8 in XMP alone", data, np.rot90(rgb, 1))
    first, second = Image.fromarray(rgb), Image.fromarray(rgb[::-1].copy())
    data = saved(first, "WEBP", lossless=True, save_all=True, append_images=[second], duration=100)
    g.add("webp-animated.webp", "WebP, animated: the first picture", data, rgb)


# ---- GIF ----


def lzw(index):
    """Codes of one size, by clearing the table before it grows."""
    codes = []
    for i, value in enumerate(index):
        if i % 254 == 0:
            codes.append(256)
        codes.append(int(value))
    codes.append(257)
    bits = sum(code << (9 * i) for i, code in enumerate(codes))
    data = bits.to_bytes((9 * len(codes) + 7) // 8, "little")
    blocks = [data[i : i + 255] for i in range(0, len(data), 255)]
    return b"\x08" + b"".join(bytes([len(b)]) + b for b in blocks) + b"\0"


def gif(canvas, colours, frames, background=0, colours_bits=8):
    """`frames`: (x, y, indices, transparent index or None, interlaced)."""
    table = colours.tobytes() + bytes(3 * (2**colours_bits - len(colours)))
    out = b"GIF89a" + struct.pack("<HHBBB", *canvas, 0xF0 | (colours_bits - 1), background, 0) + table
    for x, y, index, transparent, interlaced in frames:
        see_through = transparent is not None
        out += b"\x21\xf9\x04" + struct.pack("<BHBB", 4 | see_through, 10, transparent or 0, 0)
        h, w = index.shape
        out += b"\x2c" + struct.pack("<HHHHB", x, y, w, h, 0x40 if interlaced else 0)
        if interlaced:
            order = [*range(0, h, 8), *range(4, h, 8), *range(2, h, 4), *range(1, h, 2)]
            index = index[order]
        out += lzw(index.ravel())
    return out + b"\x3b"


def gifs(g):
    index, colours = indices(200), palette(200)
    whole = colours[index]
    g.add("gif-static.gif", "GIF", gif((W, H), colours, [(0, 0, index, None, False)]), whole)
    g.add("gif-interlaced.gif", "GIF, interlaced", gif((W, H), colours, [(0, 0, index, None, True)]), whole)
    by_pillow = Image.fromarray(photo()).quantize(64, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    g.add("gif-pillow.gif", "GIF, LZW codes of all sizes", saved(by_pillow, "GIF"), np.asarray(by_pillow.convert("RGB")))
    see_through = int(index[15, 20])
    hidden = np.where(index == see_through, 0, 255).astype(np.uint8)
    data = gif((W, H), colours, [(0, 0, index, see_through, False)])
    shown = composited(whole, hidden[..., None])
    g.add("gif-transparent.gif", "GIF with transparency", data, shown)
    data = gif((W, H), colours, [(0, 0, index, None, False), (0, 0, index[::-1], None, False)])
    g.add("gif-animated.gif", "GIF, animated: the first picture", data, whole)
    # The palette has no colours for indices from 128 on.
    short = np.where((index < 128)[..., None], whole, WHITE).astype(np.uint8)
    data = gif((W, H), colours[:128], [(0, 0, index, None, False)], colours_bits=7)
    why = "an index past the palette draws nothing; Pillow takes black"
    g.add("gif-past-palette.gif", "GIF, indices past its palette", data, short, why=why)
    # The frame is smaller than the canvas. The rest is transparent, so white in the result.
    part = index[4:20, 3:30]
    placed = np.full((H, W, 3), WHITE, np.uint8)
    placed[4:20, 3:30] = colours[part]
    data = gif((W, H), colours, [(3, 4, part, None, False), (0, 0, index, None, False)], background=7)
    why = "outside of the first frame nothing is drawn, as browsers do; Pillow fills with the background colour"
    g.add("gif-small-frame.gif", "GIF, first frame smaller than the canvas", data, placed, why=why)
    data = gif((20, 11), colours, [(0, 0, index, None, False)])
    g.add("gif-large-frame.gif", "GIF, first frame larger than the canvas", data, whole)
    data = gif((39, 11), colours, [(2, 4, index, None, False)], background=7)
    placed = np.full((H + 4, 39, 3), WHITE, np.uint8)
    placed[4:, 2 : W + 2] = whole
    g.add("gif-low-canvas.gif", "GIF, first frame reaches below the canvas", data, placed, why=why)


# ---- BMP ----


def bmp(w, h, bits, data, colours=b"", compression=0, top_down=False, masks=b"", core=False):
    n = len(colours) // (3 if core else 4)
    if core:
        head = struct.pack("<IHHHH", 12, w, h, 1, bits)
    else:
        head = struct.pack("<IiiHHIIiiII", 40, w, -h if top_down else h, 1, bits, compression, len(data), 2835, 2835, n, 0)
    at = 14 + len(head) + len(masks) + len(colours)
    return b"BM" + struct.pack("<IHHI", at + len(data), 0, 0, at) + head + masks + colours + data


def bmp_rows(rows, top_down=False):
    rows = [row + bytes(-len(row) % 4) for row in rows]
    return b"".join(rows if top_down else rows[::-1])


def rle8(index):
    out = b""
    for row in index[::-1]:
        x = 0
        while x < len(row):
            run = 1
            while x + run < len(row) and row[x + run] == row[x]:
                run += 1
            literal = row[x : x + 5]
            if run < 3 and len(literal) >= 3:
                out += bytes([0, len(literal)]) + bytes(literal) + bytes(len(literal) % 2)
                x += len(literal)
            else:
                out += bytes([run, row[x]])
                x += run
        out += b"\0\0"
    return out + b"\0\1"


def rle4(index):
    out = b""
    for row in index[::-1]:
        for x in range(0, len(row), 2):
            pair = row[x : x + 2]
            out += bytes([len(pair), int(pair[0]) << 4 | int(pair[-1])])
        out += b"\0\0"
    return out + b"\0\1"


def bmps(g):
    rgb = photo()
    l = grey(rgb)
    g.add("bmp-24.bmp", "BMP, 24 bit", saved(rgb, "BMP"), rgb)
    rows = [row.tobytes() for row in np.ascontiguousarray(rgb[..., ::-1])]
    g.add("bmp-24-top-down.bmp", "BMP, 24 bit, top-down", bmp(W, H, 24, bmp_rows(rows, True), top_down=True), rgb)
    g.add("bmp-24-core.bmp", "BMP, 24 bit, OS/2 header", bmp(W, H, 24, bmp_rows(rows), core=True), rgb)
    rows = [np.dstack([row[None, :, ::-1], np.full((1, W), 99, np.uint8)]).tobytes() for row in rgb]
    g.add("bmp-32.bmp", "BMP, 32 bit, the fourth byte unused", bmp(W, H, 32, bmp_rows(rows)), rgb)
    g.add("bmp-8-grey.bmp", "BMP, 8 bit, grey", saved(l, "BMP"), rgb_of(l))
    for bits in (1, 4, 8):
        n = min(2**bits, 200)
        index, colours = indices(n), palette(n)
        table = np.dstack([colours[None, :, ::-1], np.zeros((1, n), np.uint8)]).tobytes()
        data = bmp_rows([packed(row, bits) for row in index])
        g.add(f"bmp-palette-{bits}.bmp", f"BMP, palette, {bits} bit", bmp(W, H, bits, data, table), colours[index])
        if bits > 1:
            data = rle8(index) if bits == 8 else rle4(index)
            data = bmp(W, H, bits, data, table, compression={8: 1, 4: 2}[bits])
            g.add(f"bmp-rle-{bits}.bmp", f"BMP, run lengths, {bits} bit", data, colours[index])
    r, gr, b = (rgb[..., i].astype(np.uint32) for i in range(3))
    eight = lambda v, bits: ((v >> (8 - bits)) * 255 + 2 ** (bits - 1) - 1) // (2**bits - 1)
    why = "5 and 6 bits become 8 rounded to the nearest; Pillow rounds down"
    for name, kind, green, masks in [
        ("555", "5 bits a channel", 5, b""),
        ("565", "masks of 5, 6 and 5 bits", 6, struct.pack("<III", 0xF800, 0x07E0, 0x001F)),
    ]:
        values = (r >> 3) << (5 + green) | (gr >> (8 - green)) << 5 | b >> 3
        rows = bmp_rows([row.astype("<u2").tobytes() for row in values])
        data = bmp(W, H, 16, rows, compression=3 if masks else 0, masks=masks)
        shown = np.dstack([eight(r, 5), eight(gr, green), eight(b, 5)]).astype(np.uint8)
        g.add(f"bmp-16-{name}.bmp", f"BMP, 16 bit, {kind}", data, shown, why=why)
    g.add("bmp-32-alpha.bmp", "BMP, 32 bit with alpha in its masks", bmp_v4(with_alpha(rgb, alpha())), rgb_of(with_alpha(rgb, alpha())))


def bmp_v4(rgba):
    rows = bmp_rows([row.tobytes() for row in np.ascontiguousarray(rgba[..., [2, 1, 0, 3]])])
    masks = struct.pack("<IIII", 0xFF0000, 0xFF00, 0xFF, 0xFF000000)
    head = struct.pack("<IiiHHIIiiII", 108, W, H, 1, 32, 3, len(rows), 2835, 2835, 0, 0)
    head += masks + b"sRGB"[::-1] + bytes(36 + 12)
    at = 14 + len(head)
    return b"BM" + struct.pack("<IHHI", at + len(rows), 0, 0, at) + head + rows


# ---- TIFF ----


def tiff(strips, w, h, bits, photometric, order="<", tags=()):
    """A TIFF with one directory, strips of bytes, and more tags of (number, type, values)."""
    out = bytearray(b"II*\0" if order == "<" else b"MM\0*") + bytes(4)
    offsets = []
    for strip in strips:
        offsets.append(len(out))
        out += strip + bytes(len(strip) % 2)
    given = {number for number, _, _ in tags}
    all_tags = [(256, 4, [w]), (257, 4, [h]), (258, 3, bits), (262, 3, [photometric]), (277, 3, [len(bits)])]
    if 324 in given or 322 in given:
        all_tags += [(324, 4, offsets), (325, 4, [len(s) for s in strips])]
    else:
        all_tags += [(273, 4, offsets), (279, 4, [len(s) for s in strips])]
        if 278 not in given:
            all_tags.append((278, 4, [h]))
    if 259 not in given:
        all_tags.append((259, 3, [1]))
    all_tags = sorted([*all_tags, *tags])
    entries, beside = b"", bytearray()
    begin = len(out)
    after = begin + 2 + 12 * len(all_tags) + 4
    for number, kind, values in all_tags:
        letter = {1: "B", 3: "H", 4: "I"}[kind]
        data = struct.pack(f"{order}{len(values)}{letter}", *values)
        if len(data) > 4:
            place = struct.pack(order + "I", after + len(beside))
            beside += data + bytes(len(data) % 2)
        else:
            place = data.ljust(4, b"\0")
        entries += struct.pack(order + "HHI", number, kind, len(values)) + place
    out[4:8] = struct.pack(order + "I", begin)
    return bytes(out) + struct.pack(order + "H", len(all_tags)) + entries + bytes(4) + bytes(beside)


def tiffs(g):
    rgb, a = photo(), alpha()
    l = grey(rgb)
    rgba = with_alpha(rgb, a)
    for name, compression in [("none", None), ("lzw", "tiff_lzw"), ("deflate", "tiff_adobe_deflate"), ("packbits", "packbits")]:
        g.add(f"tiff-{name}.tif", f"TIFF, RGB, {name}", saved(rgb, "TIFF", compression=compression), rgb)
    data = saved(rgb, "TIFF", compression="tiff_lzw", tiffinfo={317: 2})
    g.add("tiff-lzw-predictor.tif", "TIFF, RGB, LZW with differences", data, rgb)
    g.add("tiff-grey.tif", "TIFF, grey", saved(l, "TIFF"), rgb_of(l))
    g.add("tiff-big-endian.tif", "TIFF, RGB, big-endian", tiff([rgb.tobytes()], W, H, [8] * 3, 2, ">"), rgb)
    g.add("tiff-rgba.tif", "TIFF, RGBA", tiff([rgba.tobytes()], W, H, [8] * 4, 2, tags=[(338, 3, [2])]), rgb_of(rgba))
    g.add("tiff-rgb-16.tif", "TIFF, RGB, 16 bit", tiff([wide(rgb, 3).astype("<u2").tobytes()], W, H, [16] * 3, 2), rgb)
    data = tiff([wide(rgb, 3).astype(">u2").tobytes()], W, H, [16] * 3, 2, ">")
    g.add("tiff-rgb-16-big-endian.tif", "TIFF, RGB, 16 bit, big-endian", data, rgb)
    why = "16 bits become 8 by leaving out the low byte, as libpng does; Pillow clips 16-bit grey at 255"
    data = tiff([wide(l, 5).astype("<u2").tobytes()], W, H, [16], 1)
    g.add("tiff-grey-16.tif", "TIFF, grey, 16 bit", data, rgb_of(l), why=why)
    data = tiff([(255 - l).tobytes()], W, H, [8], 0)
    g.add("tiff-min-is-white.tif", "TIFF, grey, zero is white", data, rgb_of(l))
    bits = [packed(row, 1) for row in l >> 7]
    g.add("tiff-bilevel.tif", "TIFF, 1 bit", tiff([b"".join(bits)], W, H, [1], 1), rgb_of((l >> 7) * 255))
    strips = [rgb[y : y + 7].tobytes() for y in range(0, H, 7)]
    g.add("tiff-strips.tif", "TIFF, RGB, five strips", tiff(strips, W, H, [8] * 3, 2, tags=[(278, 4, [7])]), rgb)
    padded = np.zeros((32, 48, 3), np.uint8)
    padded[:H, :W] = rgb
    tiles = [padded[y : y + 16, x : x + 16].tobytes() for y in (0, 16) for x in (0, 16, 32)]
    sides = [(322, 4, [16]), (323, 4, [16])]
    g.add("tiff-tiled.tif", "TIFF, RGB, tiles", tiff(tiles, W, H, [8] * 3, 2, tags=sides), rgb)
    planes = [rgb[..., i].tobytes() for i in range(3)]
    g.add("tiff-planar.tif", "TIFF, RGB, a plane a channel", tiff(planes, W, H, [8] * 3, 2, tags=[(284, 3, [2])]), rgb)
    data = tiff([rgb.tobytes()], W, H, [8] * 3, 2, tags=[(274, 3, [6])])
    g.add("tiff-orientation-6.tif", "TIFF, RGB, orientation 6", data, np.rot90(rgb, -1))
    cmyk = np.asarray(Image.fromarray(rgb).convert("CMYK")).copy()
    cmyk[..., 3] = a // 3
    why = "(1 - c)(1 - k) in other arithmetic: the rounding differs"
    data = tiff([cmyk.tobytes()], W, H, [8] * 4, 5)
    g.add("tiff-cmyk.tif", "TIFF, CMYK", data, tolerance=1, why=why)
    for bits in (1, 2, 4, 8):
        n = min(2**bits, 200)
        index, colours = indices(n), palette(2**bits)
        table = (colours.astype(np.uint16) * 257).T.ravel().tolist()
        data = tiff([b"".join(packed(row, bits) for row in index)], W, H, [bits], 3, tags=[(320, 3, table)])
        g.add(f"tiff-palette-{bits}.tif", f"TIFF, palette, {bits} bit", data, colours[index])
    for bits in (2, 4):
        low = l >> (8 - bits)
        data = tiff([b"".join(packed(row, bits) for row in low)], W, H, [bits], 1)
        g.add(f"tiff-grey-{bits}.tif", f"TIFF, grey, {bits} bit", data, rgb_of((low * (255 // (2**bits - 1))).astype(np.uint8)))
    tiffs_of_jpeg(g)
    tiffs_of_ycbcr(g)
    tiffs_of_numbers(g)
    tiffs_of_alpha(g)
    tiffs_of_compressions(g)
    image = Image.fromarray(l >> 7 << 7).convert("1", dither=Image.Dither.NONE)
    data = saved(image, "TIFF", compression="group4")
    g.add("tiff-fax.tif", "TIFF, fax compression", data, np.asarray(image.convert("RGB")))


def tiffs_of_jpeg(g):
    rgb = photo()
    ycbcr = Image.fromarray(rgb).convert("YCbCr")
    cmyk = np.asarray(Image.fromarray(rgb).convert("CMYK")).copy()
    cmyk[..., 3] = alpha() // 3
    for name, kind, image, tolerance in [
        ("", "RGB", Image.fromarray(rgb), 0),
        ("-grey", "grey", Image.fromarray(grey(rgb)), 0),
        ("-ycbcr", "YCbCr", ycbcr, 0),
        ("-cmyk", "CMYK", Image.fromarray(cmyk, "CMYK"), 1),
    ]:
        data = saved(image, "TIFF", compression="jpeg", quality=85)
        why = "(1 - c)(1 - k) in other arithmetic: the rounding differs" if tolerance else None
        g.add(f"tiff-jpeg{name}.tif", f"TIFF, JPEG inside, {kind}", data, tolerance=tolerance, why=why)


def tiffs_of_ycbcr(g):
    ycbcr = np.asarray(Image.fromarray(photo()).convert("YCbCr"))
    why = "luma and chroma to RGB in libtiff's arithmetic, which Pillow uses for packed pictures alone"
    data = tiff([ycbcr.tobytes()], W, H, [8] * 3, 6, tags=[(530, 3, [1, 1])])
    g.add("tiff-ycbcr.tif", "TIFF, YCbCr", data, tolerance=1, why=why)
    for h, v in ((2, 2), (2, 1), (4, 1), (1, 2)):
        wide_, high = -(-W // h) * h, -(-H // v) * v
        padded = np.pad(ycbcr, ((0, high - H), (0, wide_ - W), (0, 0)), mode="edge")
        blocks = padded.reshape(high // v, v, wide_ // h, h, 3).transpose(0, 2, 1, 3, 4)
        luma = blocks[..., 0].reshape(high // v, wide_ // h, h * v)
        chroma = blocks[:, :, 0, 0, 1:]
        data = np.concatenate([luma, chroma], -1).astype(np.uint8).tobytes()
        tags = [(530, 3, [h, v]), (259, 3, [8])]
        data = tiff([zlib.compress(data)], W, H, [8] * 3, 6, tags=tags)
        g.add(f"tiff-ycbcr-{h}{v}.tif", f"TIFF, YCbCr, chroma subsampled {h} x {v}, Deflate", data)


def tiffs_of_numbers(g):
    l = grey(photo())
    # From below 0 to above 255.
    counts = light()[..., 0] * 360 - 60
    floats = "as Pillow cuts off floats of 32 bits"
    for kind in ("<f2", "<f4", "<f8", ">f4"):
        bits = 8 * int(kind[2])
        data = tiff([counts.astype(kind).tobytes()], W, H, [bits], 1, kind[0], [(339, 3, [3])])
        name = f"tiff-grey-float-{bits}{'-big-endian' if kind[0] == '>' else ''}.tif"
        cut_off = rgb_of(np.clip(counts.astype(kind), 0, 255).astype(np.uint8))
        pixels = {} if bits == 32 else {"expected": cut_off, "why": floats}
        g.add(name, f"TIFF, grey, floats of {bits} bits", data, **pixels)
    # From below 0 to above 255.
    whole = (l.astype(np.int32) * 3 - 200)
    for kind, sign in (("<i2", 2), (">i2", 2), ("<i4", 2), (">i4", 2), ("<u4", 1)):
        values = whole if sign == 2 else np.maximum(whole, 0)
        data = tiff([values.astype(kind).tobytes()], W, H, [8 * int(kind[2])], 1, kind[0], [(339, 3, [sign])])
        name = f"tiff-grey-{kind[1:]}{'-big-endian' if kind[0] == '>' else ''}.tif"
        g.add(name, f"TIFF, grey, {kind[1:]}", data)
    data = tiff([light().astype("<f4").tobytes()], W, H, [32] * 3, 2, tags=[(339, 3, [3] * 3)])
    g.add("tiff-rgb-float.tif", "TIFF, RGB, floats", data, clamped(light()))
    twelve = (l.astype(np.uint16) << 4) | 9
    rows = b"".join(packed(row, 12) for row in twelve)
    why = "12 bits become 8 by leaving out the low ones; Pillow takes them for 16 and clips"
    g.add("tiff-grey-12.tif", "TIFF, grey, 12 bit", tiff([rows], W, H, [12], 1), rgb_of(l), why=why)


def tiffs_of_alpha(g):
    rgb, a = photo(), alpha()
    l = grey(rgb)
    pre = premultiplied(rgb, a)
    data = tiff([with_alpha(pre, a).tobytes()], W, H, [8] * 4, 2, tags=[(338, 3, [1])])
    g.add("tiff-premultiplied.tif", "TIFF, premultiplied RGBA", data, shown(pre, a), why=TWICE)
    data = tiff([wide(with_alpha(pre, a), 3).astype("<u2").tobytes()], W, H, [16] * 4, 2, tags=[(338, 3, [1])])
    g.add("tiff-premultiplied-16.tif", "TIFF, premultiplied RGBA, 16 bit", data, shown(pre, a), why=TWICE)
    data = tiff([with_alpha(rgb, a).tobytes()], W, H, [8] * 4, 2, tags=[(338, 3, [0])])
    g.add("tiff-rgbx.tif", "TIFF, RGB and a sample of no meaning", data, rgb)
    la = np.dstack([l, a])
    data = tiff([la.tobytes()], W, H, [8] * 2, 1, tags=[(338, 3, [2])])
    g.add("tiff-grey-alpha.tif", "TIFF, grey with alpha", data, rgb_of(la))
    pre = premultiplied(l[..., None], a)
    data = tiff([np.dstack([pre, a]).tobytes()], W, H, [8] * 2, 1, tags=[(338, 3, [1])])
    g.add("tiff-grey-premultiplied.tif", "TIFF, premultiplied grey with alpha", data, shown(np.repeat(pre, 3, -1), a))
    planes = [with_alpha(rgb, a)[..., i].tobytes() for i in range(4)]
    data = tiff(planes, W, H, [8] * 4, 2, tags=[(284, 3, [2]), (338, 3, [2])])
    g.add("tiff-planar-rgba.tif", "TIFF, RGBA, a plane a channel", data, rgb_of(with_alpha(rgb, a)))
    data = tiff([rgb.tobytes()], W, H, [8] * 3, 2, tags=[(700, 1, list(packet(6)))])
    g.add("tiff-xmp-6.tif", "TIFF, orientation 6 in XMP alone", data, np.rot90(rgb, -1))


def tiffs_of_compressions(g):
    rgb = photo()
    l = grey(rgb)
    g.add("tiff-zstd.tif", "TIFF, RGB, Zstandard", saved(rgb, "TIFF", compression="zstd"), rgb)
    data = tiff([saved(rgb, "WEBP", lossless=True)], W, H, [8] * 3, 2, tags=[(259, 3, [50001])])
    g.add("tiff-webp.tif", "TIFF, RGB, lossless WebP inside", data, rgb)
    g.add("tiff-big.tif", "TIFF, RGB, BigTIFF", saved(rgb, "TIFF", big_tiff=True), rgb)
    why = "not served by the TIFF decoder; Pillow reads it"
    g.add("tiff-lzma.tif", "TIFF, RGB, LZMA", saved(rgb, "TIFF", compression="lzma"), refused="unsupported", why=why)
    bits = Image.fromarray(l >> 7 << 7).convert("1", dither=Image.Dither.NONE)
    seen = np.asarray(bits.convert("RGB"))
    for name, compression, info in [
        ("runs", "tiff_ccitt", {}),
        ("group3", "group3", {}),
        ("group3-2d", "group3", {292: 1}),
        ("group3-2d-fill", "group3", {292: 5}),
        ("group4-white-is-zero", "group4", {262: 0}),
    ]:
        data = saved(bits, "TIFF", compression=compression, tiffinfo=info)
        g.add(f"tiff-fax-{name}.tif", f"TIFF, fax, {name}", data, seen)
    turned = bytes(int(f"{b:08b}"[::-1], 2) for b in range(256))
    rows = b"".join(packed(row, 1) for row in l >> 7).translate(turned)
    data = tiff([rows], W, H, [1], 1, tags=[(266, 3, [2])])
    g.add("tiff-fill-order.tif", "TIFF, 1 bit, bits in the other order", data, rgb_of((l >> 7) * 255))
    deep = wide(rgb, 3)
    for order in "<>":
        differences = deep.copy()
        differences[:, 1:] = deep[:, 1:] - deep[:, :-1]
        data = zlib.compress(differences.astype(order + "u2").tobytes())
        data = tiff([data], W, H, [16] * 3, 2, order, [(259, 3, [8]), (317, 3, [2])])
        g.add(f"tiff-deflate-16-{'little' if order == '<' else 'big'}.tif", "TIFF, RGB, 16 bit, differences", data, rgb)
    floats = light().astype(">f4")
    rows = b""
    for row in floats:
        planes = np.frombuffer(row.tobytes(), np.uint8).reshape(-1, 4).T.reshape(-1).copy()
        planes[3:] = planes[3:] - planes[:-3]
        rows += planes.tobytes()
    tags = [(259, 3, [8]), (317, 3, [3]), (339, 3, [3] * 3)]
    data = tiff([zlib.compress(rows)], W, H, [32] * 3, 2, tags=tags)
    g.add("tiff-float-differences.tif", "TIFF, RGB, floats, differences of bytes", data, clamped(light()))


# ---- PNM ----


def pnms(g):
    rgb, a = photo(), alpha()
    l = grey(rgb)
    size = b"%d %d\n" % (W, H)
    text = lambda v: b"\n".join(
        b" ".join(b"%d" % x for x in row.ravel()) for row in v
    ) + b"\n"
    bit = (l < 128).astype(np.uint8)
    g.add("pnm-1.pbm", "PBM, text", b"P1\n# a comment\n" + size + text(bit), rgb_of((1 - bit) * 255))
    g.add("pnm-2.pgm", "PGM, text", b"P2\n" + size + b"255\n" + text(l), rgb_of(l))
    g.add("pnm-3.ppm", "PPM, text", b"P3\n" + size + b"255\n" + text(rgb), rgb)
    data = b"P4\n" + size + b"".join(packed(row, 1) for row in bit)
    g.add("pnm-4.pbm", "PBM, binary", data, rgb_of((1 - bit) * 255))
    g.add("pnm-5.pgm", "PGM, binary", b"P5\n" + size + b"255\n" + l.tobytes(), rgb_of(l))
    g.add("pnm-6.ppm", "PPM, binary", b"P6\n" + size + b"255\n" + rgb.tobytes(), rgb)
    why = "16 bits become 8 by leaving out the low byte; Pillow rounds, or clips grey at 255"
    data = b"P5\n" + size + b"65535\n" + wide(l, 5).astype(">u2").tobytes()
    g.add("pnm-5-16.pgm", "PGM, binary, 16 bit", data, rgb_of(l), why=why)
    data = b"P6\n" + size + b"65535\n" + wide(rgb, 3).astype(">u2").tobytes()
    g.add("pnm-6-16.ppm", "PPM, binary, 16 bit", data, rgb, why=why)
    low = l // 17
    why = "levels up to 15 become levels up to 255"
    g.add("pnm-5-maxval-15.pgm", "PGM, binary, 16 levels", b"P5\n" + size + b"15\n" + low.tobytes(), rgb_of(low * 17), why=why)
    for name, pixels, kind in [
        ("grey", l, b"GRAYSCALE"),
        ("grey-alpha", np.dstack([l, a]), b"GRAYSCALE_ALPHA"),
        ("rgb", rgb, b"RGB"),
        ("rgba", with_alpha(rgb, a), b"RGB_ALPHA"),
    ]:
        depth = 1 if pixels.ndim == 2 else pixels.shape[2]
        head = b"P7\nWIDTH %d\nHEIGHT %d\nDEPTH %d\nMAXVAL 255\nTUPLTYPE %s\nENDHDR\n" % (W, H, depth, kind)
        g.add(f"pnm-7-{name}.pam", f"PAM, {kind.decode()}", head + pixels.tobytes(), rgb_of(pixels))


# ---- TGA ----


def tgas(g):
    rgb, a = photo(), alpha()
    l = grey(rgb)
    rgba = with_alpha(rgb, a)
    g.add("tga-rgb.tga", "TGA, RGB, bottom-up", saved(rgb, "TGA", orientation=-1), rgb)
    g.add("tga-rgb-top-down.tga", "TGA, RGB, top-down", saved(rgb, "TGA", orientation=1), rgb)
    g.add("tga-rgb-rle.tga", "TGA, RGB, run lengths", saved(rgb, "TGA", compression="tga_rle"), rgb)
    g.add("tga-rgba.tga", "TGA, RGBA", saved(rgba, "TGA"), rgb_of(rgba))
    g.add("tga-rgba-rle.tga", "TGA, RGBA, run lengths", saved(rgba, "TGA", compression="tga_rle"), rgb_of(rgba))
    g.add("tga-grey.tga", "TGA, grey", saved(l, "TGA"), rgb_of(l))
    image = Image.fromarray(indices(200), "P")
    image.putpalette(palette(200).tobytes())
    g.add("tga-palette.tga", "TGA, palette", saved(image, "TGA"), palette(200)[indices(200)])
    g.add("tga-palette-rle.tga", "TGA, palette, run lengths", saved(image, "TGA", compression="tga_rle"), palette(200)[indices(200)])
    a = alpha()
    pre = premultiplied(rgb, a)
    data = saved(with_alpha(pre, a), "TGA")
    area = struct.pack("<H", 495) + bytes(492) + b"\4"
    footer = struct.pack("<II", len(data) - 26, 0) + data[-18:]
    data = data[:-26] + area + footer
    why = "its extension area says that colours are premultiplied, which Pillow does not read"
    g.add("tga-premultiplied.tga", "TGA, premultiplied RGBA", data, shown(pre, a), why=why)


# ---- ICO ----


def icos(g):
    rgba = with_alpha(photo(), alpha())
    image = Image.fromarray(rgba)
    small = Image.fromarray(with_alpha(palette(256)[indices(200, 16, 12)], alpha(16, 12)))
    for format in ("png", "bmp"):
        data = saved(image, "ICO", bitmap_format=format, sizes=[(W, H)])
        g.add(f"ico-{format}.ico", f"ICO, a {format.upper()} inside", data, rgb_of(rgba))
    data = saved(image, "ICO", sizes=[(16, 12), (W, H)], append_images=[small])
    g.add("ico-two.ico", "ICO, two sizes: the larger", data, rgb_of(rgba))


# ---- QOI, DDS ----


def qois(g):
    rgba = with_alpha(photo(), alpha())
    g.add("qoi-rgb.qoi", "QOI, RGB", saved(photo(), "QOI"), photo())
    g.add("qoi-rgba.qoi", "QOI, RGBA", saved(rgba, "QOI"), rgb_of(rgba))


def ddss(g):
    # The decoder reads only whole blocks of 4 x 4.
    rgb = photo(36, 28)
    rgba = with_alpha(rgb, alpha(36, 28))
    why = "colours between the two of a block are rounded in another way"
    for name in ("DXT1", "DXT3", "DXT5"):
        data = saved(rgb if name == "DXT1" else rgba, "DDS", pixel_format=name)
        g.add(f"dds-{name.lower()}.dds", f"DDS, {name}", data, tolerance=1, why=why)
    pre = with_alpha(premultiplied(rgba[..., :3], rgba[..., 3]), rgba[..., 3])
    other = "premultiplied: Pillow does not read the kind, and sees straight alpha with a Direct3D 10 header; " + why
    for name, like in (("DXT2", "DXT3"), ("DXT4", "DXT5")):
        data = saved(pre, "DDS", pixel_format=like)
        blocks = np.asarray(Image.open(io.BytesIO(data)).convert("RGBA"))
        data = data.replace(like.encode(), name.encode(), 1)
        g.add(f"dds-{name.lower()}.dds", f"DDS, {name}", data, shown(blocks[..., :3], blocks[..., 3]), tolerance=1, why=other)
    data = bytearray(saved(pre, "DDS", pixel_format="BC3"))
    blocks = np.asarray(Image.open(io.BytesIO(data)).convert("RGBA"))
    assert data[84:88] == b"DX10"
    data[144:148] = struct.pack("<I", 2)
    expected = shown(blocks[..., :3], blocks[..., 3])
    g.add("dds-premultiplied.dds", "DDS, BC3, premultiplied", bytes(data), expected, tolerance=1, why=other)
    why = "not served by the DDS decoder; Pillow reads it"
    g.add("dds-raw.dds", "DDS, uncompressed", saved(rgb, "DDS"), refused="unsupported", why=why)
    data = saved(photo(), "DDS", pixel_format="DXT1")
    g.add("dds-odd-size.dds", "DDS, DXT1, sides that are no multiples of 4", data, refused="corrupt", why=why)


# ---- what Pillow does not read: Radiance HDR, OpenEXR, farbfeld ----


def light():
    """An image of floats from below 0 to above 1."""
    y, x = np.mgrid[0:H, 0:W]
    r = x / (W - 1) * 1.4 - 0.1
    g_ = y / (H - 1) * 1.2
    b = photo()[..., 2] / 255 * 0.9
    return np.stack([r, g_, b], -1).astype(np.float32)


def rgbe(values):
    """Four bytes for each pixel, and the floats that they encode."""
    v = np.maximum(values, 0)
    m, e = np.frexp(v.max(-1))
    dark = v.max(-1) < 1e-32
    mantissas = np.floor(np.ldexp(v, (8 - e)[..., None])).astype(np.uint8)
    mantissas[dark] = 0
    exponent = np.where(dark, 0, e + 128).astype(np.uint8)
    meant = np.ldexp(mantissas.astype(np.float32), (e - 8)[..., None])
    meant[dark] = 0
    return np.dstack([mantissas, exponent]), meant


def hdrs(g):
    pixels, meant = rgbe(light())
    head = b"#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y %d +X %d\n" % (H, W)
    g.add("hdr-flat.hdr", "Radiance HDR, no run lengths", head + pixels.tobytes(), clamped(meant))
    data = head
    for row in pixels:
        data += bytes([2, 2, 0, W])
        for c in range(4):
            x = 0
            while x < W:
                run = 1
                while x + run < W and row[x + run, c] == row[x, c]:
                    run += 1
                if run > 2:
                    data += bytes([128 + run, row[x, c]])
                else:
                    run = min(9, W - x)
                    data += bytes([run]) + row[x : x + run, c].tobytes()
                x += run
    g.add("hdr-rle.hdr", "Radiance HDR, run lengths", data, clamped(meant))


def exr(channels, compression):
    """An OpenEXR file of scan lines, with compression 0 (none) or 3 (ZIP). `channels` maps
    names to arrays of float16 or float32."""
    attribute = lambda name, kind, data: name + b"\0" + kind + b"\0" + struct.pack("<I", len(data)) + data
    names = sorted(channels)
    listed = b"".join(
        n.encode() + b"\0" + struct.pack("<IIII", 1 if channels[n].dtype == np.float16 else 2, 0, 1, 1) for n in names
    ) + b"\0"
    box = struct.pack("<iiii", 0, 0, W - 1, H - 1)
    head = b"\x76\x2f\x31\x01" + struct.pack("<I", 2)
    head += attribute(b"channels", b"chlist", listed)
    head += attribute(b"compression", b"compression", bytes([compression]))
    head += attribute(b"dataWindow", b"box2i", box) + attribute(b"displayWindow", b"box2i", box)
    head += attribute(b"lineOrder", b"lineOrder", b"\0")
    head += attribute(b"pixelAspectRatio", b"float", struct.pack("<f", 1))
    head += attribute(b"screenWindowCenter", b"v2f", struct.pack("<ff", 0, 0))
    head += attribute(b"screenWindowWidth", b"float", struct.pack("<f", 1)) + b"\0"
    lines = 16 if compression == 3 else 1
    blocks = []
    for y in range(0, H, lines):
        data = b"".join(channels[n][row].tobytes() for row in range(y, min(y + lines, H)) for n in names)
        if compression == 3:
            halves = np.frombuffer(data[0::2] + data[1::2], np.uint8).astype(int)
            halves[1:] = (np.diff(halves) + 128) % 256
            packed_ = zlib.compress(halves.astype(np.uint8).tobytes(), 9)
            data = packed_ if len(packed_) < len(data) else data
        blocks.append(struct.pack("<iI", y, len(data)) + data)
    at = len(head) + 8 * len(blocks)
    table = b""
    for block in blocks:
        table += struct.pack("<Q", at)
        at += len(block)
    return head + table + b"".join(blocks)


def exrs(g):
    v = light()
    half = v.astype(np.float16)
    planes = lambda p: {"R": p[..., 0].copy(), "G": p[..., 1].copy(), "B": p[..., 2].copy()}
    g.add("exr-half.exr", "OpenEXR, half, no compression", exr(planes(half), 0), clamped(half))
    g.add("exr-half-zip.exr", "OpenEXR, half, ZIP", exr(planes(half), 3), clamped(half))
    g.add("exr-float.exr", "OpenEXR, float, ZIP", exr(planes(v), 3), clamped(v))
    a = (alpha() / 255).astype(np.float16)
    # OpenEXR's colours are premultiplied.
    expected = shown(clamped(half), clamped(a))
    data = exr(planes(half) | {"A": a}, 3)
    g.add("exr-alpha.exr", "OpenEXR, half with alpha", data, expected)


def farbfelds(g):
    rgba = wide(with_alpha(photo(), alpha()), 3)
    data = b"farbfeld" + struct.pack(">II", W, H) + rgba.astype(">u2").tobytes()
    g.add("farbfeld.ff", "farbfeld", data, rgb_of(rgba))


def main():
    out = Path(sys.argv[1])
    shutil.rmtree(out, ignore_errors=True)
    for folder in ("files", "expected"):
        (out / folder).mkdir(parents=True)
    check_that_pillow_composites_as_we_say()
    g = Goldens(out)
    for make in (cut_off, jpegs, pngs, webps, gifs, bmps, tiffs, pnms, tgas, icos, qois, ddss, hdrs, exrs, farbfelds):
        make(g)
    g.finish()
    total = sum(f.stat().st_size for f in out.rglob("*") if f.is_file())
    print(f"Pillow {Image.__version__}, libjpeg-turbo {features.version('libjpeg_turbo')}: "
          f"{len(g.entries)} pictures, {len(g.expected)} expected, {total} bytes")


if __name__ == "__main__":
    main()
