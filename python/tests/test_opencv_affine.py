"""`random_affine` with `style: opencv`, beside `cv2.warpAffine` of the installed version."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import need

import featherload
from featherload import ConfigError

FILL = [114, 3, 250]
# Height and width: odd and even, less than eight pixels wide, and with edges everywhere.
SIZES = [(1, 1), (2, 3), (5, 7), (9, 31), (64, 65), (480, 641)]
CASES = [(0, 1.0), (0, 0.5), (0, 0.731), (0, 1.5), (0, 0.2), (30, 1.0), (-90, 0.9), (171.3, 1.21)]


def _moved(
    folder: Path, degrees: float, scale: float, size: tuple[int, int]
) -> np.ndarray[Any, Any]:
    op = {
        "degrees": [degrees, degrees],
        "scale": [scale, scale],
        "interpolation": "bilinear",
        "fill": FILL,
        "style": "opencv",
    }
    # The crop keeps all, and tells the loader the size.
    ops = [{"random_affine": op}, {"center_crop": {"size": list(size)}}, {"cast": {"dtype": "u8"}}]
    recipe = {"featherload": 1, "ops": ops}
    loader = featherload.Loader(folder, recipe, batch_size=1, num_workers=1, layout="nhwc")
    with loader:
        [batch] = list(loader)
        return np.array(batch.images)[0]


def _matrix(degrees: float, scale: float, size: tuple[int, int]) -> np.ndarray[Any, Any]:
    """From pixels of the output to those of the input, whose centres are whole numbers."""
    height, width = size
    angle = math.radians(degrees)
    cos, sin = math.cos(angle) / scale, math.sin(angle) / scale
    x, y = width / 2 - 0.5, height / 2 - 0.5
    return np.array([[cos, sin, x - cos * x - sin * y], [-sin, cos, y + sin * x - cos * y]])


@pytest.mark.parametrize("size", SIZES)
def test_levels_differ_from_opencv_by_one_at_most(tmp_path: Path, size: tuple[int, int]) -> None:
    need("cv2")
    import cv2
    from PIL import Image

    noise = np.random.default_rng(7).integers(0, 256, (*size, 3), dtype=np.uint8)
    Image.fromarray(noise).save(tmp_path / "noise.png")
    different = 0
    for degrees, scale in CASES:
        got = _moved(tmp_path, degrees, scale, size)
        want = cv2.warpAffine(
            noise,
            _matrix(degrees, scale, size),
            size[::-1],
            flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP,
            borderValue=FILL,
        )
        off = np.abs(got.astype(int) - want.astype(int))
        assert off.max() <= 1, (degrees, scale, np.argwhere(off > 1)[:4])
        different += (off > 0).sum()
    # Only levels close to a half, and halves themselves, which OpenCV rounds to even numbers.
    assert different <= 0.03 * noise.size * len(CASES) + 3, different


def test_other_filters_of_opencv_are_refused(tmp_path: Path) -> None:
    ops = [{"random_affine": {"degrees": 3, "style": "opencv"}}]
    with pytest.raises(ConfigError, match="style: opencv has only bilinear"):
        featherload.Loader(tmp_path, {"featherload": 1, "ops": ops})


def test_pictures_too_wide_for_its_places_are_named(tmp_path: Path) -> None:
    from PIL import Image

    Image.new("RGB", (65_536, 1)).save(tmp_path / "wide.png")
    with pytest.raises(featherload.SampleError, match="65535 pixels.*resize it before"):
        _moved(tmp_path, 0, 1.0, (1, 64))
