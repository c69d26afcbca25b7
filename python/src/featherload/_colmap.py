"""Data of a COLMAP model that gsplat needs and ``featherload.Scene`` does not have: numbers of
images and cameras, errors and tracks of points.

Never in here: cameras, poses and images, which ``featherload.Scene`` reads and checks.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from ._errors import DatasetError

_T = TypeVar("_T")


class Image(NamedTuple):
    """An image of the model."""

    id: int
    camera_id: int
    name: str


class Cloud(NamedTuple):
    """The points of the model, by their ids."""

    xyz: npt.NDArray[np.float32]
    """N x 3, in the model's world."""
    rgb: npt.NDArray[np.uint8]
    """N x 3."""
    error: npt.NDArray[np.float32]
    """N: mean reprojection error in pixels."""
    seen_by: dict[int, npt.NDArray[np.int32]]
    """The points that each image sees, by the image's id: rows of ``xyz``."""


def read_images(model: Path) -> list[Image]:
    """All images of the model."""
    # The same choice as in Scene.
    if (model / "cameras.bin").exists():
        return _read(model / "images.bin", _images_binary)
    return _read(model / "images.txt", _images_text)


def read_points(model: Path) -> Cloud:
    """All points of the model. Empty if it has no file of points."""
    is_binary = (model / "cameras.bin").exists()
    path = model / ("points3D.bin" if is_binary else "points3D.txt")
    if not path.exists():
        return _cloud([])
    return _cloud(_read(path, _points_binary if is_binary else _points_text))


class _Point(NamedTuple):
    id: int
    xyz: tuple[float, ...]
    rgb: tuple[int, ...]
    error: float
    images: list[int]


def _read(path: Path, parse: Callable[[bytes], Iterator[_T]]) -> list[_T]:
    try:
        return list(parse(path.read_bytes()))
    except OSError as e:
        raise DatasetError(f"{path}: {e.strerror}", path=str(path)) from None
    except (struct.error, IndexError, ValueError):
        raise DatasetError(
            f"{path}: damaged or cut off: export the model again", path=str(path)
        ) from None


def _images_binary(data: bytes) -> Iterator[Image]:
    (count,), at = struct.unpack_from("<Q", data), 8
    for _ in range(count):
        image, *_pose, camera = struct.unpack_from("<I7dI", data, at)
        end = data.index(b"\0", at + 64)
        name = data[at + 64 : end].decode()
        (points,) = struct.unpack_from("<Q", data, end + 1)
        at = end + 9 + 24 * points
        yield Image(image, camera, name)


def _images_text(data: bytes) -> Iterator[Image]:
    # A line for an image, then a line of its 2D points. The latter may be empty or missing, as in
    # Scene.
    takes_points = False
    for line in _lines(data):
        if line.startswith("#"):
            continue
        parts = line.split(maxsplit=9)
        if takes_points and (not parts or _is_points(line)):
            takes_points = False
        elif parts:
            yield Image(int(parts[0]), int(parts[8]), parts[9])
            takes_points = True


def _lines(data: bytes) -> Iterator[str]:
    return (line.strip() for line in data.decode("utf-8-sig").split("\n"))


def _is_points(line: str) -> bool:
    """Whether a line is a list of X, Y, POINT3D_ID."""
    words = line.split()
    try:
        return len(words) % 3 == 0 and all(float(word).is_integer() for word in words[2::3])
    except ValueError:
        return False


def _points_binary(data: bytes) -> Iterator[_Point]:
    (count,), at = struct.unpack_from("<Q", data), 8
    for _ in range(count):
        point, x, y, z, r, g, b, error, length = struct.unpack_from("<Q3d3BdQ", data, at)
        track = struct.unpack_from(f"<{2 * length}I", data, at + 51)
        at += 51 + 8 * length
        yield _Point(point, (x, y, z), (r, g, b), error, list(track[::2]))


def _points_text(data: bytes) -> Iterator[_Point]:
    for line in _lines(data):
        if line and not line.startswith("#"):
            parts = line.split()
            xyz = tuple(map(float, parts[1:4]))
            rgb = tuple(map(int, parts[4:7]))
            yield _Point(int(parts[0]), xyz, rgb, float(parts[7]), list(map(int, parts[8::2])))


def _cloud(points: list[_Point]) -> Cloud:
    points.sort(key=lambda point: point.id)
    images = np.array([image for point in points for image in point.images], np.int64)
    rows = np.repeat(np.arange(len(points), dtype=np.int32), [len(p.images) for p in points])
    order = np.argsort(images, kind="stable")
    ids, starts = np.unique(images[order], return_index=True)
    seen = np.split(rows[order], starts[1:]) if len(ids) else []
    return Cloud(
        np.array([point.xyz for point in points], np.float32).reshape(-1, 3),
        np.array([point.rgb for point in points], np.uint8).reshape(-1, 3),
        np.array([point.error for point in points], np.float32),
        dict(zip(ids.tolist(), seen, strict=True)),
    )
