"""Every format and mode that ``ImageFolder`` opens: the pixels are Pillow's."""
# ruff: noqa: E402

from __future__ import annotations

import importlib.util
import os
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

from PIL import Image
from torchvision.datasets import ImageFolder
from torchvision.datasets.folder import IMG_EXTENSIONS
from torchvision.transforms import v2

from featherload.torch import DataLoader

SIZE = HEIGHT, WIDTH = 37, 53
ORIENTATION = 0x0112


def coloured(bands: int = 3, seed: int = 0) -> Any:
    """Soft colours, with another level at each pixel."""
    random = np.random.default_rng(seed)
    few = Image.fromarray(random.integers(0, 256, (5, 7, 3), np.uint8))
    soft = np.asarray(few.resize((WIDTH, HEIGHT), Image.Resampling.BICUBIC))
    return soft if bands == 3 else soft[..., :1].repeat(bands, axis=2)


def opened(mode: str) -> Image.Image:
    """A picture of the mode, transparent in parts where it can be."""
    colour = Image.fromarray(coloured())
    if mode in ("RGBA", "LA"):
        picture = colour.convert(mode)
        picture.putalpha(Image.fromarray(np.ascontiguousarray(coloured(seed=1)[..., 0])))
        return picture
    if mode == "P":
        return colour.convert("P", palette=Image.Palette.ADAPTIVE, colors=64)
    return colour.convert(mode)


def turned(orientation: int) -> Any:
    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    return exif


def save(name: str, mode: str, **options: Any) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        opened(mode).save(folder / name, **options)

    return write


def raw(name: str, data: bytes) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_bytes(data) and None


def animated(name: str, **options: Any) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        frames = [Image.fromarray(coloured(seed=seed)) for seed in range(3)]
        frames[0].save(
            folder / name, save_all=True, append_images=frames[1:], duration=100, **options
        )

    return write


def shades(kind: bytes) -> bytes:
    """PNM of the kinds that Pillow does not write."""
    grey = np.ascontiguousarray(coloured()[..., 0])
    size = b"%s\n%d %d\n255\n" % (kind, WIDTH, HEIGHT)
    values = coloured().ravel() if kind == b"P3" else grey.ravel()
    return size + b" ".join(b"%d" % value for value in values) + b"\n"


JPEG = {"quality": 95}
CASES: dict[str, Callable[[Path], None]] = {
    "jpeg-444": save("1.jpg", "RGB", subsampling=0, **JPEG),
    "jpeg-422": save("1.jpeg", "RGB", subsampling=1, **JPEG),
    "jpeg-420": save("1.JPG", "RGB", subsampling=2, **JPEG),
    "jpeg-progressive": save("1.jpg", "RGB", progressive=True, **JPEG),
    "jpeg-grey": save("1.jpg", "L", **JPEG),
    "jpeg-cmyk": save("1.jpg", "CMYK", **JPEG),
    **{f"jpeg-turned-{n}": save("1.jpg", "RGB", exif=turned(n), **JPEG) for n in (3, 6)},
    **{f"png-{m}": save("1.png", m) for m in ("1", "L", "LA", "P", "RGB", "RGBA")},
    "png-turned": save("1.png", "RGB", exif=turned(6)),
    "png-key": save("1.png", "RGB", transparency=(0, 0, 0)),
    "png-grey-key": save("1.png", "L", transparency=9),
    "png-palette-key": save("1.png", "P", transparency=3),
    "png-palette-alpha": save("1.png", "P", transparency=bytes(range(0, 256, 4))),
    **{f"bmp-{m}": save("1.bmp", m) for m in ("1", "L", "P", "RGB", "RGBA")},
    "pgm": save("1.pgm", "L"),
    "pgm-ascii": raw("1.pgm", shades(b"P2")),
    "ppm": save("1.ppm", "RGB"),
    "ppm-ascii": raw("1.ppm", shades(b"P3")),
    "ppm-bits": save("1.ppm", "1"),
    **{f"tiff-{m}": save("1.tif", m) for m in ("1", "L", "P", "RGB", "RGBA", "CMYK")},
    "tiff-grey-alpha": save("1.tif", "LA"),
    **{
        f"tiff-{c}": save("1.tiff", "RGB", compression=f"tiff_{c}")
        for c in ("lzw", "deflate", "jpeg", "adobe_deflate")
    },
    "tiff-packbits": save("1.tiff", "RGB", compression="packbits"),
    **{f"tiff-turned-{n}": save("1.tif", "RGB", exif=turned(n)) for n in range(2, 9)},
    "webp": save("1.webp", "RGB", quality=90),
    "webp-lossless": save("1.webp", "RGB", lossless=True),
    "webp-alpha": save("1.webp", "RGBA", lossless=True, exact=True),
    "webp-turned": save("1.webp", "RGB", lossless=True, exif=turned(6)),
    "webp-animated": animated("1.webp", lossless=True),
    "gif": save("1.gif", "P"),
    "gif-key": save("1.gif", "P", transparency=3),
    "gif-animated": animated("1.gif"),
    "png-animated": animated("1.png"),
}


@pytest.fixture
def rows(tmp_path: Path) -> Iterator[Callable[[str], tuple[Any, Any]]]:
    """The row that torchvision has of a case, and ours."""

    def both(case: str) -> tuple[Any, Any]:
        folder = tmp_path / "class"
        folder.mkdir()
        CASES[case](folder)
        (path,) = folder.iterdir()
        with Image.open(path) as picture:
            # A TIFF is turned while its pixels are read.
            picture.load()
            width, height = picture.size
        whole = v2.Compose([v2.CenterCrop((height, width)), v2.PILToTensor()])
        # ImageFolder names no GIF among its extensions; others are taken by the caller's word.
        named = {} if path.suffix.lower() in IMG_EXTENSIONS else {"is_valid_file": lambda _: True}
        dataset = ImageFolder(str(tmp_path), whole, **named)
        loader = DataLoader(dataset)
        try:
            (images, _) = next(iter(loader))
            return dataset[0][0].numpy(), images[0].numpy().copy()
        finally:
            loader.close()

    yield both


@pytest.mark.filterwarnings("ignore:Palette images with Transparency")
@pytest.mark.parametrize("case", CASES)
def test_pixels_are_those_of_image_folder(case: str, rows: Callable[[str], Any]) -> None:
    theirs, ours = rows(case)
    assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
    off = np.abs(ours.astype(int) - theirs.astype(int))
    # Two decoders, which round otherwise.
    most = {"webp": 2, "tiff-jpeg": 1}.get(case, 0)
    assert off.max() <= most, f"{case}: {off.max()} levels, mean {off.mean():.3f}"


@pytest.mark.parametrize("backend", ["accimage", "other"])
def test_another_image_backend_is_refused(
    backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``torchvision.set_image_backend`` changes what ``ImageFolder`` opens pictures with."""
    import torchvision

    (tmp_path / "class").mkdir()
    opened("RGB").save(tmp_path / "class" / "1.png")
    dataset = ImageFolder(str(tmp_path), v2.Compose([v2.Resize((8, 8)), v2.PILToTensor()]))
    monkeypatch.setattr(torchvision, "_image_backend", backend)
    with pytest.raises(featherload.ConfigError, match=f"image backend.*{backend}.*PIL") as caught:
        DataLoader(dataset)
    assert caught.value.option == "dataset"
