"""Views: whole images of a scene, whatever Python asks for, whoever waits, forks or dies."""

from __future__ import annotations

import importlib.util
import inspect
import json
import os
import pickle
import re
import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import SCENE_SIZE, InterruptedLock, kill_one, need, scene_color, write_scene

import featherload
from featherload._featherload import rays_option_names, views_option_names
from featherload._preview import _png as png

Make = Callable[..., featherload.Views]

HEIGHT, WIDTH, IMAGES = SCENE_SIZE
ROWS, COLS = np.mgrid[:HEIGHT, :WIDTH]


@pytest.fixture(scope="session")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_scene(tmp_path_factory.mktemp("scene") / "tiny")


@pytest.fixture
def views(scene: Path) -> Iterator[Make]:
    """Makes views of all images of the scene, and ends them."""
    made: list[featherload.Views] = []

    def make(of: Any = scene, **options: Any) -> featherload.Views:
        options.setdefault("num_workers", 2)
        if not isinstance(of, featherload.Scene):
            options.setdefault("split_by", "all")
        made.append(featherload.Views(of, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


def pixels(image: int) -> Any:
    return scene_color(image, ROWS, COLS)


def shown(views: featherload.Views, steps: int) -> list[tuple[int, Any]]:
    return [(view.index, view.image.copy()) for _, view in zip(range(steps), views, strict=False)]


def same(a: list[tuple[int, Any]], b: list[tuple[int, Any]]) -> bool:
    return len(a) == len(b) and all(
        i == j and (x == y).all() for (i, x), (j, y) in zip(a, b, strict=True)
    )


def test_a_view_is_an_image_with_camera_and_frame(views: Make) -> None:
    one = views()
    assert len(one) == IMAGES == len(one.images) == len(one.cameras) == len(one.frames)
    seen = []
    for step in range(2 * IMAGES):
        view = next(one)
        assert view.step == step and one.step == step + 1
        assert (view.image.dtype, view.image.shape) == (np.uint8, (HEIGHT, WIDTH, 3))
        assert (view.image == pixels(view.index)).all() and view.mask is None
        assert view.frame is one.frames[view.index] and view.camera == one.cameras[view.index]
        assert view.frame.image == one.images[view.index]
        assert (one.poses[view.index] == view.frame.pose).all()
        assert view.camera.matrix.tolist() == [[30.0, 0, 18.25], [0, 31.0, 11.5], [0, 0, 1]]
        seen.append(view.index)
    assert sorted(seen[:IMAGES]) == sorted(seen[IMAGES:]) == list(range(IMAGES))
    assert seen[:IMAGES] != seen[IMAGES:]
    assert f"step {2 * IMAGES - 1}: " in repr(view) and f"{IMAGES} images" in repr(one)
    with pytest.raises(TypeError, match="cannot go to another process"):
        pickle.dumps(view)


def test_ctrl_c_behind_the_lock_loses_no_step(views: Make) -> None:
    one = views()
    next(one)
    one._turn.lock = InterruptedLock()  # type: ignore[assignment]
    with pytest.raises(KeyboardInterrupt):
        next(one)
    assert one.step == 1 and next(one).step == 1


def test_a_step_without_shuffling_is_the_image_of_its_number(views: Make) -> None:
    one = views(shuffle=False, rank=0, world_size=1)
    for step in (0, 5, 2, IMAGES + 3):
        one.go_to(step)
        view = next(one)
        assert view.index == step % IMAGES and (view.image == pixels(view.index)).all()


def test_views_do_not_depend_on_workers_and_deaths(views: Make) -> None:
    wanted = shown(views(num_workers=1), 20)
    assert same(shown(views(num_workers=3), 20), wanted)
    assert not same(shown(views(seed=1), 20), wanted)
    one = views()
    got = []
    for step in range(20):
        if step in (5, 12):
            kill_one(lambda: one.stats()["workers"])
        got += shown(one, 1)
    assert same(got, wanted)


def test_a_run_goes_on_by_its_state(views: Make) -> None:
    one = views()
    wanted = shown(one, 20)
    one.go_to(9)
    state = json.loads(json.dumps(one.state_dict()))
    assert state["step"] == 9
    other = views(num_workers=1)
    other.load_state_dict(state)
    assert same(shown(other, 11), wanted[9:])
    assert same(shown(views(start=9), 11), wanted[9:])
    with pytest.raises(featherload.ConfigError, match="shuffle was true"):
        views(shuffle=False).load_state_dict(state)
    with pytest.raises(featherload.ConfigError, match="not one that state_dict gave"):
        one.load_state_dict({"step": 3})


def test_ranks_take_turns(views: Make, monkeypatch: Any) -> None:
    order = [index for index, _ in shown(views(), IMAGES)]
    for rank in range(2):
        monkeypatch.setenv("RANK", str(rank))
        monkeypatch.setenv("WORLD_SIZE", "2")
        one = views()
        assert [index for index, _ in shown(one, len(one))] == order[rank::2]
    with pytest.raises(featherload.ConfigError, match="too few for 8 ranks"):
        views(rank=0, world_size=8)
    with pytest.raises(featherload.ConfigError, match="world_size is missing"):
        views(rank=0)


def test_a_mask_comes_with_its_image(views: Make, tmp_path: Path) -> None:
    folder = write_scene(tmp_path / "masked")
    described = json.loads((folder / "transforms.json").read_text())
    (folder / "masks").mkdir()
    mask = (ROWS * 3 + COLS) % 5 != 0
    (folder / "masks/02.png").write_bytes(png(np.repeat(mask[..., None], 3, -1).astype(np.uint8)))
    described["frames"][2]["mask_path"] = "masks/02.png"
    (folder / "transforms.json").write_text(json.dumps(described))
    for _, view in zip(range(IMAGES), views(folder), strict=False):
        if view.index == 2:
            assert view.mask.dtype == np.bool_ and (view.mask == mask).all()
        else:
            assert view.mask is None
    one = views(folder, masks=False, shuffle=False, start=2)
    assert next(one).mask is None


def write_png16(path: Path, levels: Any) -> None:
    """Grey of 16 bits."""
    height, width = levels.shape
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in levels)

    def chunk(kind: bytes, content: bytes) -> bytes:
        body = kind + content
        return struct.pack(">I", len(content)) + body + struct.pack(">I", zlib.crc32(body))

    head = struct.pack(">IIBBBBB", width, height, 16, 0, 0, 0, 0)
    content = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + content)


@pytest.fixture
def deep(tmp_path: Path) -> Path:
    """A scene whose second image has depths, and whose lens bends."""
    folder = write_scene(tmp_path / "deep", camera={"k1": -0.2, "k2": 0.01, "p1": 0.002})
    described = json.loads((folder / "transforms.json").read_text())
    (folder / "depths").mkdir()
    write_png16(folder / "depths/01.png", ROWS * 1000 + COLS * 10 + 7)
    described["frames"][1]["depth_file_path"] = "depths/01.png"
    (folder / "transforms.json").write_text(json.dumps(described))
    return folder


def test_depths_are_in_the_scenes_units(views: Make, deep: Path) -> None:
    one = views(deep)
    scale = 0.001 * one.scene.scale
    wanted = ((ROWS * 1000 + COLS * 10 + 7) * scale).astype(np.float32)
    for _, view in zip(range(IMAGES), one, strict=False):
        if view.index == 1:
            assert view.depth.dtype == np.float32 and (view.depth == wanted).all()
            assert set(view.to("cpu")) == {"image", "depth"} if _torch() else True
        else:
            assert view.depth is None
    without = views(deep, depths=False, shuffle=False, start=1)
    assert next(without).depth is None
    with featherload.Rays(deep, 512, num_workers=1, split_by="all", joining=0) as rays:
        batch = next(rays)
        image, row, col = batch.indices.T
        assert (batch.depths.dtype, batch.depths.shape) == (np.float32, (512, 1))
        found = np.where(image == 1, wanted[row, col], np.float32(0))
        assert (batch.depths[:, 0] == found).all() and (image == 1).any()
    with featherload.Rays(deep, num_workers=1, split_by="all", depths=False) as rays:
        assert next(rays).depths is None


def _torch() -> bool:
    return importlib.util.find_spec("torch") is not None


def test_a_depth_of_another_shape_is_named(views: Make, deep: Path) -> None:
    write_png16(deep / "depths/01.png", ROWS[: len(ROWS) // 2] * 3)
    with pytest.raises(
        featherload.SampleError, match=r"01\.png.*resize the depth to the image's width"
    ):
        shown(views(deep), IMAGES)


def test_depths_that_no_file_names_are_read_when_asked_for(views: Make, tmp_path: Path) -> None:
    folder = write_scene(tmp_path)
    (folder / "depths").mkdir()
    for number in range(IMAGES):
        np.save(folder / f"depths/{number:02}.npy", np.full(ROWS.shape, 2.5, np.float32))
    plain = views(folder, shuffle=False)
    assert next(plain).depth is None
    assert plain.scene.report["found_depths"] == IMAGES
    asked = views(folder, shuffle=False, depths=True, depth_unit=1.0)
    depth = next(asked).depth
    assert np.allclose(depth, 2.5 * asked.scene.scale, rtol=1e-6)


def test_straight_images_have_the_camera_that_made_them(views: Make, deep: Path) -> None:
    bent = views(deep, shuffle=False)
    straight = views(deep, shuffle=False, undistort=True)
    camera = straight.cameras[1]
    assert camera.lens == "pinhole" and bent.cameras[1].lens == "brown"
    straight.go_to(1)
    view = next(straight)
    assert view.image.shape == (camera.height, camera.width, 3) == (HEIGHT - 1, WIDTH - 1, 3)
    # The colour of a pixel is where it is: rows of green by 11, columns of blue by 6.
    rows, cols = np.mgrid[: camera.height, : camera.width] + 0.5
    x, y = (cols - camera.cx) / camera.fx, (rows - camera.cy) / camera.fy
    k1, k2 = bent.cameras[1].coefficients["k"][:2]
    p1, p2 = bent.cameras[1].coefficients["p"]
    r2 = x * x + y * y
    radial = 1 + k1 * r2 + k2 * r2 * r2
    u = 30.0 * (x * radial + 2 * p1 * x * y + p2 * (r2 + 2 * x * x)) + 18.25
    v = 31.0 * (y * radial + p1 * (r2 + 2 * y * y) + 2 * p2 * x * y) + 11.5
    # Away from the edge, where outer pixels count alone, and from where levels wrap round.
    inner = (u > 0.5) & (u < WIDTH - 0.5) & (v > 0.5) & (v < HEIGHT - 0.5)
    assert inner.mean() > 0.8
    for channel, wanted in ((1, 11 * (v - 0.5)), (2, 6 * (u - 0.5))):
        off = np.abs(view.image[..., channel] - wanted)[inner]
        assert off.max() <= 0.51, off.max()
    depth = view.depth / (0.001 * straight.scene.scale)
    wanted = np.floor(v) * 1000 + np.floor(u) * 10 + 7
    near = (np.abs(u - np.round(u)) < 1e-3) | (np.abs(v - np.round(v)) < 1e-3)
    assert (np.abs(depth - wanted)[inner & ~near] < 0.01).all()


def test_a_lens_that_cannot_be_straightened_is_named(views: Make, tmp_path: Path) -> None:
    folder = write_scene(tmp_path / "sphere", camera={})
    described = json.loads((folder / "transforms.json").read_text())
    described["camera_model"] = "EQUIRECTANGULAR"
    (folder / "transforms.json").write_text(json.dumps(described))
    with pytest.raises(featherload.ConfigError, match=r"00\.png.*equirectangular") as raised:
        views(folder, undistort=True)
    assert raised.value.option == "undistort"


def test_alpha_is_a_fourth_channel(views: Make, tmp_path: Path) -> None:
    folder = write_scene(tmp_path / "clear")
    view = next(views(folder, alpha=True))
    assert view.image.shape == (HEIGHT, WIDTH, 4) and (view.image[..., 3] == 255).all()
    assert (view.image[..., :3] == pixels(view.index)).all()
    with featherload.Rays(folder, num_workers=1, split_by="all", alpha=True) as rays:
        colors = next(rays).colors
    assert colors.shape == (4096, 4) and (colors[:, 3] == 1).all()


def test_floats_are_the_levels_from_0_to_1(views: Make) -> None:
    view = next(views(dtype=np.float32))
    assert view.image.dtype == np.float32
    assert (view.image == pixels(view.index).astype(np.float32) / np.float32(255)).all()
    with pytest.raises(featherload.ConfigError, match="dtype"):
        views(dtype="float16")


def test_downscaled_images_have_downscaled_cameras(views: Make) -> None:
    one = views(downscale=2)
    view = next(one)
    assert view.image.shape == (HEIGHT // 2, WIDTH // 2, 3)
    camera = view.camera
    assert (camera.height, camera.width) == (HEIGHT // 2, WIDTH // 2)
    assert camera.fx == 30.0 * (WIDTH // 2) / WIDTH


def test_frameworks_share_the_memory(views: Make) -> None:
    need("torch")
    import torch

    view = next(views(framework="torch"))
    assert view.image.dtype == torch.uint8 and tuple(view.image.shape) == (HEIGHT, WIDTH, 3)
    assert view.numpy().image.ctypes.data == view.image.data_ptr()
    on_cpu = view.to("cpu")
    assert set(on_cpu) == {"image"} and (on_cpu["image"].numpy() == pixels(view.index)).all()


def test_jax_takes_views(views: Make) -> None:
    need("jax")
    view = next(views(framework="jax"))
    assert (np.asarray(view.image) == pixels(view.index)).all()


def test_a_trainer_that_keeps_views_is_warned_and_gets_copies(views: Make) -> None:
    one = views(depth=3, shuffle=False)
    kept = [next(one), next(one)]
    with pytest.warns(RuntimeWarning, match="give depth=6"):
        kept += [next(one) for _ in range(3)]
    for number, view in enumerate(kept):
        assert view.index == number and (view.image == pixels(number)).all()


def test_an_image_that_breaks_is_named_and_tried_again(views: Make, tmp_path: Path) -> None:
    folder = write_scene(tmp_path / "broken")
    broken = folder / "images/05.png"
    good = broken.read_bytes()
    one = views(folder, shuffle=False, num_workers=1, depth=2, share_store=False)
    next(one)
    # Workers are two views ahead at most.
    broken.write_bytes(good[:-40])
    for _ in range(4):
        next(one)
    with pytest.raises(featherload.SampleError, match="05.png"):
        next(one)
    broken.write_bytes(good)
    view = next(one)
    assert view.index == 5 and (view.image == pixels(5)).all()


def test_every_option_of_the_library_has_a_keyword() -> None:
    scenes, _ = (set(names) for names in rays_option_names())
    renamed = {"float": "dtype"}
    wanted = {renamed.get(name, name) for name in set(views_option_names()) - {"helper"}}
    keywords = set(inspect.signature(featherload.Views).parameters)
    assert keywords == wanted | scenes | {"scene", "framework"}
    said = re.findall(r"^ {4}(``\w.*)$", featherload.Views.__doc__ or "", re.MULTILINE)
    assert {name for line in said for name in re.findall(r"``([a-z_]+)``", line)} == keywords


def test_stats_count_what_was_given(views: Make) -> None:
    with views() as one:
        assert one.stats()["views_per_s"] == 0
        shown(one, 20)
        report = one.stats()
        assert (report["views"], report["images"], report["decoded"]) == (20, IMAGES, IMAGES)
        assert report["views_per_s"] > 0 and len(report["workers"]) == 2
        assert report["memory_bytes"] > report["ring_bytes"] > 0
    with pytest.raises(featherload.ConfigError, match="closed"):
        next(one)
    with pytest.raises(TypeError, match="Views have processes"):
        pickle.dumps(one)


# JAX warns of forks.
@pytest.mark.filterwarnings("ignore")
def test_a_forked_copy_is_told(views: Make) -> None:
    one = views()
    before = next(one).image.copy()
    pid = os.fork()
    if pid == 0:
        try:
            next(one)
        except featherload.WorkerError:
            os._exit(7)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    one.go_to(0)
    assert (next(one).image == before).all()


def test_a_plan_is_that_of_the_views(views: Make, scene: Path) -> None:
    planned = featherload.Views.plan(scene, num_workers=2, split_by="all", dtype="float32")
    one = views(dtype="float32")
    next(one)
    stats = one.stats()
    assert planned["memory"]["ring_bytes"] == stats["ring_bytes"]
    assert planned["store"]["bytes"] == stats["store_bytes"] and not planned.in_file
    assert planned["images"] == len(one)
    assert "all processes" in str(planned)
    with pytest.raises(featherload.ConfigError, match="memory_limit allows 1 KiB"):
        featherload.Views.plan(one.scene, memory_limit="1K")
    with pytest.raises(TypeError, match="things"):
        featherload.Views.plan(scene, things=3)
