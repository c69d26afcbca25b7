"""``featherload.gsplat``: the fields and items of gsplat's own Parser and Dataset."""

from __future__ import annotations

import math
import pickle
import struct
from pathlib import Path

import numpy as np
import pytest
from conftest import SCENE_SIZE, need, scene_color

import featherload
from featherload._preview import _png as png

HEIGHT, WIDTH, IMAGES = SCENE_SIZE
POINTS = 20
RADIAL = (30.0, 18.25, 11.5, 0.02, -0.01)


@pytest.fixture(autouse=True)
def _torch() -> None:
    need("torch")


def turn(image: int) -> tuple[float, float, float, float]:
    """About y, as a quaternion: w, x, y, z."""
    return math.cos(0.05 * image), 0.0, math.sin(0.05 * image), 0.0


def write_colmap(
    folder: Path, *, text: bool = False, radial: bool = False, sizes: bool = False
) -> Path:
    """A model of 7 images by 2 cameras, which are alike, and 20 points. Image ids are 10 more
    than their numbers, the names of 0 and 1 are in the other order, and points are not sorted.
    """
    (folder / "images").mkdir(parents=True)
    model = folder / "sparse/0"
    model.mkdir(parents=True)
    rows, cols = np.mgrid[:HEIGHT, :WIDTH]
    names = [f"{image:02}.png" for image in (1, 0, *range(2, IMAGES))]
    for image in range(IMAGES):
        width = WIDTH + 2 * (sizes and image == 4)
        rows, cols = np.mgrid[:HEIGHT, :width]
        (folder / f"images/{image:02}.png").write_bytes(png(scene_color(image, rows, cols)))
    params = RADIAL if radial else (30.0, 31.0, 18.25, 11.5)
    kind, kind_name = (3, "RADIAL") if radial else (1, "PINHOLE")
    random = np.random.default_rng(1)
    ids = random.permutation(POINTS) + 5
    xyz = random.uniform((-3, -2, 8), (3, 2, 12), (POINTS, 3))
    # Of each point: the images that see it, and its place among what each of them sees.
    sees: list[list[int]] = [[] for _ in range(IMAGES)]
    tracks: list[list[int]] = []
    for point in ids.tolist():
        tracks.append([])
        for image in random.permutation(IMAGES)[:3].tolist():
            tracks[-1] += [10 + image, len(sees[image])]
            sees[image].append(point)
    poses = [(*turn(image), 0.1 * image, 0.2, -0.01 * image**2) for image in range(IMAGES)]
    if text:
        numbers = " ".join(map(str, params))
        lines = [f"{camera} {kind_name} {WIDTH} {HEIGHT} {numbers}" for camera in (4, 9)]
        (model / "cameras.txt").write_text("# cameras\n" + "\n".join(lines) + "\n")
        lines = []
        for image, name in enumerate(names):
            pose = " ".join(map(repr, poses[image]))
            lines.append(f"{10 + image} {pose} {9 if image == 3 else 4} {name}")
            lines.append(" ".join(f"1.5 2.5 {point}" for point in sees[image]))
        (model / "images.txt").write_text("# images\n" + "\n".join(lines) + "\n")
        lines = []
        for point, at, track in zip(ids, xyz, tracks, strict=True):
            seen = " ".join(map(str, track))
            lines.append(f"{point} {' '.join(map(repr, at.tolist()))} 1 2 {point} 0.5 {seen}")
        (model / "points3D.txt").write_text("# points\n" + "\n".join(lines) + "\n")
        return folder
    data = struct.pack("<Q", 2)
    for camera in (4, 9):
        data += struct.pack(f"<IiQQ{len(params)}d", camera, kind, WIDTH, HEIGHT, *params)
    (model / "cameras.bin").write_bytes(data)
    data = struct.pack("<Q", IMAGES)
    for image, name in enumerate(names):
        data += struct.pack("<I7dI", 10 + image, *poses[image], 9 if image == 3 else 4)
        data += name.encode() + b"\0" + struct.pack("<Q", len(sees[image]))
        data += b"".join(struct.pack("<2dq", 1.5, 2.5, point) for point in sees[image])
    (model / "images.bin").write_bytes(data)
    data = struct.pack("<Q", POINTS)
    for point, at, track in zip(ids, xyz, tracks, strict=True):
        data += struct.pack("<Q3d3Bd", point, *at, 1, 2, point, 0.5)
        data += struct.pack("<Q6I", 3, *track)
    (model / "points3D.bin").write_bytes(data)
    return folder


@pytest.mark.parametrize("text", [False, True])
def test_fields_are_those_of_the_model(tmp_path: Path, text: bool) -> None:
    from featherload.gsplat import Parser

    parser = Parser(write_colmap(tmp_path / "colmap", text=text), num_workers=1)
    assert parser.image_names == [f"{image:02}.png" for image in range(IMAGES)]
    assert [Path(path).name for path in parser.image_paths] == parser.image_names
    assert parser.camera_ids == [4, 4, 4, 9, 4, 4, 4] and parser.num_cameras == 2
    assert parser.camera_indices == [0, 0, 0, 1, 0, 0, 0]
    assert parser.camera_id_to_idx == {4: 0, 9: 1}
    for camera in (4, 9):
        assert parser.Ks_dict[camera].tolist() == [[30, 0, 18.25], [0, 31, 11.5], [0, 0, 1]]
        assert parser.params_dict[camera].shape == (0,)
        assert parser.imsize_dict[camera] == (WIDTH, HEIGHT)
        assert parser.mask_dict[camera] is None
    assert parser.points.shape == (POINTS, 3) and parser.points.dtype == np.float32
    # By their ids, which are in their colours.
    assert parser.points_rgb[:, 2].tolist() == list(range(5, 5 + POINTS))
    assert parser.points_rgb.dtype == np.uint8 and parser.points_err.tolist() == [0.5] * POINTS
    assert sum(map(len, parser.point_indices.values())) == 3 * POINTS
    assert set(parser.point_indices) == set(parser.image_names)
    assert parser.camtoworlds.shape == (IMAGES, 4, 4) and (parser.transform == np.eye(4)).all()
    # The first image by name is the second one of the model.
    w, x, y, z = turn(1)
    rotation = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )
    worldtocam = np.linalg.inv(parser.camtoworlds[0])
    assert np.abs(worldtocam[:3, :3] - rotation).max() < 1e-12
    assert np.abs(worldtocam[:3, 3] - [0.1, 0.2, -0.01]).max() < 1e-12
    places = parser.camtoworlds[:, :3, 3]
    assert parser.scene_scale == np.linalg.norm(places - places.mean(0), axis=1).max()
    assert parser.bounds.tolist() == [0.01, 1.0] and parser.exposure_values == [None] * IMAGES
    parser.close()


def test_items_are_images_with_cameras(tmp_path: Path) -> None:
    import torch

    from featherload.gsplat import Dataset, Parser

    parser = Parser(write_colmap(tmp_path / "colmap"), test_every=3, num_workers=1)
    trained, held = Dataset(parser, load_depths=True), Dataset(parser, split="val")
    assert trained.indices.tolist() == [1, 2, 4, 5] and held.indices.tolist() == [0, 3, 6]
    rows, cols = np.mgrid[:HEIGHT, :WIDTH]
    # In any order, and again.
    for dataset, items in ((trained, [0, 1, 2, 3, 1, 0]), (held, [2, 0, 1, 1])):
        for item in items:
            data = dataset[item]
            index = int(dataset.indices[item])
            kinds = {
                name: (value.dtype, tuple(value.shape))
                for name, value in data.items()
                if isinstance(value, torch.Tensor) and name not in ("points", "depths")
            }
            assert kinds == {
                "K": (torch.float32, (3, 3)),
                "camtoworld": (torch.float32, (4, 4)),
                "image": (torch.float32, (HEIGHT, WIDTH, 3)),
            }
            assert (data["image"].numpy() == scene_color(index, rows, cols)).all()
            assert data["image_id"] == item and data["camera_idx"] == int(index == 3)
            assert (data["camtoworld"].numpy() == parser.camtoworlds[index].astype("f4")).all()
    assert len(list(trained)) == 4
    with pytest.raises(IndexError):
        held[3]
    data = trained[0]
    seen = parser.points[parser.point_indices["01.png"]]
    inside = np.linalg.inv(parser.camtoworlds[1]) @ np.c_[seen, np.ones(len(seen))].T
    at = (parser.Ks_dict[4] @ inside[:3])[:2] / inside[2]
    kept = (at[0] >= 0) & (at[0] < WIDTH) & (at[1] >= 0) & (at[1] < HEIGHT)
    assert data["points"].dtype == data["depths"].dtype == torch.float32
    assert np.allclose(data["points"], at.T[kept], atol=1e-4)
    assert np.allclose(data["depths"], inside[2][kept], atol=1e-5) and kept.any()
    parser.close()


def test_patches_move_the_principal_point(tmp_path: Path) -> None:
    from featherload.gsplat import Dataset, Parser

    parser = Parser(write_colmap(tmp_path / "colmap"), num_workers=1)
    dataset = Dataset(parser, patch_size=8)
    for _ in range(20):
        data = dataset[2]
        left, top = 18.25 - data["K"][0, 2].item(), 11.5 - data["K"][1, 2].item()
        rows, cols = np.mgrid[:8, :8]
        due = scene_color(3, rows + int(top), cols + int(left))
        assert (data["image"].numpy() == due).all()
    parser.close()


def test_a_normalised_world_is_upright_and_around_the_origin(tmp_path: Path) -> None:
    from featherload.gsplat import Parser

    folder = write_colmap(tmp_path / "colmap")
    before, parser = Parser(folder, num_workers=1), Parser(folder, normalize=True, num_workers=1)
    rotations = parser.camtoworlds[:, :3, :3]
    assert np.allclose(rotations @ rotations.transpose(0, 2, 1), np.eye(3))
    assert np.allclose(np.linalg.det(rotations), 1)
    moved = before.camtoworlds[:, :, 3] @ parser.transform.T
    assert np.allclose(moved, parser.camtoworlds[:, :, 3])
    spread = parser.points.var(axis=0)
    assert spread[0] > spread[1] > spread[2]
    for one in (before, parser):
        one.close()


def test_distorted_images_are_straightened_or_not(tmp_path: Path) -> None:
    from featherload.gsplat import Dataset, Parser

    folder = write_colmap(tmp_path / "colmap", radial=True)
    straight = Parser(folder, num_workers=1)
    assert np.allclose(straight.params_dict[4], [0.02, -0.01, 0, 0])
    assert not np.allclose(straight.Ks_dict[4][0, 0], 30)
    image = Dataset(straight)[0]["image"]
    assert tuple(image.shape[1::-1]) == straight.imsize_dict[4]
    raw = Parser(folder, undistort=False, num_workers=1)
    assert raw.Ks_dict[4].tolist() == [[30, 0, 18.25], [0, 30, 11.5], [0, 0, 1]]
    rows, cols = np.mgrid[:HEIGHT, :WIDTH]
    assert (Dataset(raw)[0]["image"].numpy() == scene_color(1, rows, cols)).all()
    for one in (straight, raw):
        one.close()


def test_smaller_images_come_from_their_folder_or_are_made(tmp_path: Path) -> None:
    from featherload.gsplat import Dataset, Parser

    folder = write_colmap(tmp_path / "colmap")
    made = Parser(folder, factor=2, num_workers=1)
    assert Dataset(made)[0]["image"].shape[:2] == made.imsize_dict[4][::-1]
    assert made.imsize_dict[4] in [(18, 11), (19, 12), (18, 12)]
    (folder / "images_2").mkdir()
    rows, cols = np.mgrid[:11, :18]
    for image in range(IMAGES):
        small = png(scene_color(image, rows, cols))
        (folder / f"images_2/{image:02}.png").write_bytes(small)
    parser = Parser(folder, factor=2, num_workers=1)
    assert parser.imsize_dict[4] == (18, 11) and "images_2" in parser.image_paths[0]
    K = parser.Ks_dict[4]
    assert np.allclose([K[0, 0], K[1, 1]], [30 * 18 / WIDTH, 31 * 11 / HEIGHT])
    assert (Dataset(parser)[0]["image"].numpy() == scene_color(1, rows, cols)).all()
    for one in (made, parser):
        one.close()


def test_masks_come_with_the_images(tmp_path: Path) -> None:
    from featherload.gsplat import Dataset, Parser

    folder = write_colmap(tmp_path / "colmap")
    (folder / "masks").mkdir()
    mask = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    mask[4:6, 7:9] = 255
    for image in range(IMAGES):
        (folder / f"masks/{image:02}.png.png").write_bytes(png(mask))
    parser = Parser(folder, num_workers=1)
    got = Dataset(parser)[3]["mask"]
    assert (got.numpy() == (mask[..., 0] > 0)).all()
    parser.close()


# JAX, where a test before this one loaded it, warns of forks.
@pytest.mark.filterwarnings("ignore")
def test_loaders_of_torch_may_have_processes(tmp_path: Path) -> None:
    import torch

    from featherload.gsplat import Dataset, Parser

    parser = Parser(write_colmap(tmp_path / "colmap"), num_workers=1)
    dataset = Dataset(parser)
    wanted = [dataset[item]["image"].clone() for item in range(len(dataset))]
    for context in ("fork", "spawn"):
        loader = torch.utils.data.DataLoader(
            dataset, batch_size=None, num_workers=2, multiprocessing_context=context
        )
        got = [data["image"] for data in loader]
        assert all((a == b).all() for a, b in zip(got, wanted, strict=True)), context
    assert len(pickle.loads(pickle.dumps(dataset))) == len(dataset)
    parser.close()


def test_mistakes_are_named(tmp_path: Path) -> None:
    from featherload.gsplat import Dataset, Parser

    folder = write_colmap(tmp_path / "colmap")
    for options, text in [
        ({"factor": 0}, "factor 0 is too small"),
        ({"test_every": 0}, "test_every 0 is too small"),
        ({"load_exposure": True}, "load_exposure"),
    ]:
        with pytest.raises(featherload.ConfigError, match=text) as raised:
            Parser(folder, **options)
        assert raised.value.option in options
    parser = Parser(folder, num_workers=1)
    with pytest.raises(featherload.ConfigError, match="patch_size 0"):
        Dataset(parser, patch_size=0)
    parser.close()
    with pytest.raises(featherload.DatasetError, match="no such file or folder"):
        Parser(tmp_path / "images")
    with pytest.raises(featherload.DatasetError, match="camera 4 has images of other sizes"):
        Parser(write_colmap(tmp_path / "sizes", sizes=True), num_workers=1)
    points = folder / "sparse/0/points3D.bin"
    points.write_bytes(points.read_bytes()[:-3])
    with pytest.raises(featherload.DatasetError, match="points3D.bin: damaged or cut off"):
        Parser(folder, num_workers=1)
    points.unlink()
    bare = Parser(folder, num_workers=1)
    assert bare.points.shape == (0, 3) and bare.point_indices == {}
    assert Dataset(bare, load_depths=True)[0]["points"].shape == (0, 2)
    bare.close()
    with pytest.raises(featherload.DatasetError, match="normalize needs points"):
        Parser(folder, normalize=True, num_workers=1)
    (folder / "images/03.png").unlink()
    with pytest.raises(featherload.DatasetError, match=r"03\.png"):
        Parser(folder, num_workers=1)
