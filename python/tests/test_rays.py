"""Rays and scenes: the library's, whatever Python asks for, whoever waits, forks or dies."""

from __future__ import annotations

import inspect
import json
import os
import pickle
import random
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xxhash
from conftest import SCENE_SIZE, Cli, InterruptedLock, kill_one, need, scene_color, write_scene

import featherload
from featherload import samplers
from featherload._featherload import rays_option_names
from featherload._preview import _png as png

Make = Callable[..., featherload.Rays]

HEIGHT, WIDTH, IMAGES = SCENE_SIZE


@pytest.fixture(scope="session")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_scene(tmp_path_factory.mktemp("scene") / "tiny")


@pytest.fixture
def rays(scene: Path) -> Iterator[Make]:
    """Makes rays of all images of the scene, and ends them."""
    made: list[featherload.Rays] = []

    def make(of: Any = scene, rays: int = 96, **options: Any) -> featherload.Rays:
        options.setdefault("num_workers", 2)
        if not isinstance(of, featherload.Scene):
            options.setdefault("split_by", "all")
        made.append(featherload.Rays(of, rays, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


def copies(batch: featherload.RayBatch) -> dict[str, Any]:
    return {name: array.copy() for name, array in batch.numpy().items()}


def same(a: Any, b: Any) -> bool:
    a, b = dict(a), dict(b)
    return a.keys() == b.keys() and all((a[name] == b[name]).all() for name in a)


def test_a_batch_is_eight_arrays(rays: Make) -> None:
    batch = next(rays())
    kinds = {name: (array.dtype.name, array.shape) for name, array in batch.items()}
    assert kinds == {
        "indices": ("int64", (96, 3)),
        "origins": ("float32", (96, 3)),
        "directions": ("float32", (96, 3)),
        "colors": ("float32", (96, 3)),
        "directions_norms": ("float32", (96,)),
        "pixel_areas": ("float32", (96,)),
        "valid": ("bool", (96,)),
    }
    assert (batch.step, batch.rays, batch.times) == (0, 96, None)
    assert batch.origins is batch["origins"] and "times" not in batch
    assert batch == batch and len({batch}) == 1 and "step 0: 96 rays" in repr(batch)
    with pytest.raises(KeyError, match="image"):
        batch["image"]
    assert same(pickle.loads(pickle.dumps(batch)), batch)


def test_ctrl_c_behind_the_lock_loses_no_step(rays: Make) -> None:
    one = rays()
    next(one)
    one._turn.lock = InterruptedLock()  # type: ignore[assignment]
    with pytest.raises(KeyboardInterrupt):
        next(one)
    assert one.step == 1 and next(one).step == 1


def test_rays_are_those_of_the_pixels(rays: Make) -> None:
    one = rays(rays=4096, joining=0)
    batch = next(one)
    image, row, col = batch.indices.T
    assert (np.unique(image) == np.arange(IMAGES)).all()
    assert (np.round(batch.colors * 255).astype(np.uint8) == scene_color(image, row, col)).all()
    poses = np.stack([frame.pose for frame in one.frames])[image]
    camera = one.scene.cameras[0]
    local = np.stack(
        [
            (col + 0.5 - camera.cx) / camera.fx,
            (row + 0.5 - camera.cy) / camera.fy,
            np.ones(4096),
        ],
        -1,
    )
    world = np.einsum("nij,nj->ni", poses[:, :, :3], local)
    norms = np.linalg.norm(world, axis=1)
    assert np.abs(batch.directions - world / norms[:, None]).max() < 1e-6
    assert np.abs(batch.directions_norms - norms).max() < 1e-6
    assert np.abs(batch.origins - poses[:, :, 3]).max() < 1e-6
    assert batch.valid.all() and (batch.pixel_areas > 0).all()
    assert [path.name for path in one.images] == [f"{n:02}.png" for n in range(IMAGES)]
    assert [frame.image for frame in one.frames] == one.images


@pytest.mark.parametrize("workers", [1, 3])
def test_rays_are_the_command_lines(rays: Make, cli: Cli, scene: Path, workers: int) -> None:
    """Whose workers are none: it draws in its own process."""

    def digest(one: featherload.Rays, steps: int) -> str:
        hash = xxhash.xxh3_128()
        for _ in range(steps):
            batch = next(one)
            hash.update(np.uint64(batch.step).tobytes())
            for array in batch.values():
                hash.update(np.ascontiguousarray(array).tobytes())
        return hash.hexdigest()

    for options, flags in [
        ({}, ()),
        (
            {"seed": 7, "rank": 2, "world_size": 4, "start": 5},
            ("--seed", "7", "--rank", "2", "--world-size", "4", "--start", "5"),
        ),
        ({"sampler": "by_image", "downscale": 2}, ("--sampler", "by-image", "--downscale", "2")),
        ({"sampler": samplers.Pairs(3), "joining": 1}, ("--pairs", "3", "--joining", "1")),
        ({"sampler": samplers.Patches(4, 2)}, PATCHES),
    ]:
        one = rays(num_workers=workers, split_by=None, **options)
        said = cli(
            *("rays", scene, "--rays", "96", "--steps", "20", "--num-workers", "0", "--digest"),
            *flags,
        )
        assert digest(one, 20) == said["digest"], options


PATCHES = ("--patches", "4", "--dilation", "2")


def test_patches_and_pairs_are_what_they_say(rays: Make) -> None:
    patches = next(rays(sampler=samplers.Patches(4, dilation=2))).indices.reshape(-1, 4, 4, 3)
    assert (
        patches - patches[:, :1, :1]
        == np.mgrid[:1, :4, :4].T.transpose(2, 1, 0, 3)[0]
        * [
            0,
            2,
            2,
        ]
    ).all()
    pairs = next(rays(sampler=samplers.Pairs(3))).indices.reshape(-1, 2, 3)
    apart = np.abs(pairs[:, 1] - pairs[:, 0])
    assert apart[:, 0].max() == 0 and apart[:, 1:].max() == 3
    with pytest.raises(featherload.ConfigError, match="a unit has 16 rays: use 96"):
        rays(rays=100, sampler=samplers.Patches(4))


def test_another_number_of_rays_is_the_same_sequence(rays: Make) -> None:
    one, other = rays(), rays(most_rays=1000)
    for asked in [96, 10, 1000, 999, 1, 500]:
        first, second = next(one), other.next(asked)
        assert first.step == second.step and second.rays == asked
        n = min(96, asked)
        assert same({k: v[:n] for k, v in first.items()}, {k: v[:n] for k, v in second.items()})
    with pytest.raises(featherload.ConfigError, match="1001 rays .* at most 1000 fit") as raised:
        other.next(1001)
    assert raised.value.option == "most_rays"
    with pytest.raises(featherload.ConfigError, match="rays 0 is too small"):
        other.next(0)
    assert other.step == 6


def test_a_patch_stays_whole_when_the_number_changes(rays: Make) -> None:
    one = rays(rays=27, most_rays=90, sampler=samplers.Patches(3))
    for asked in [27, 54, 63, 9, 90, 18]:
        at = one.next(asked).indices.reshape(-1, 3, 3, 3)
        assert (at - at[:, :1, :1])[..., 1:].max() == 2
    with pytest.raises(featherload.ConfigError, match="multiple of 9, the rays of a unit: use 18"):
        one.next(20)


def test_times_are_there_in_scenes_that_move(rays: Make, tmp_path: Path) -> None:
    batch = next(rays(write_scene(tmp_path / "moving", times=True), joining=0))
    assert "times" in batch and batch.times.dtype == np.float32
    assert (batch.times == batch.indices[:, 0] / 8).all()


def test_rays_outside_of_a_lens_are_not_valid(rays: Make, tmp_path: Path) -> None:
    bent = {"k1": -0.9, "k2": 0.0, "p1": 0.0, "p2": 0.0}
    batch = next(rays(write_scene(tmp_path / "bent", camera=bent), joining=0, rays=1000))
    assert not batch.valid.all() and batch.valid.any()
    assert not batch.directions[~batch.valid].any() and not batch.origins[~batch.valid].any()
    assert np.allclose(np.linalg.norm(batch.directions[batch.valid], axis=1), 1)


def test_a_state_goes_on_with_any_number_of_workers_and_on_any_rank(rays: Make) -> None:
    one = rays(num_workers=3)
    for _ in range(5):
        next(one)
    state = json.loads(json.dumps(one.state_dict()))
    assert state["step"] == one.step == 5
    wanted = [copies(next(one)) for _ in range(4)]
    for other in [rays(num_workers=1), rays(start=99), rays(rays=96, most_rays=200, depth=2)]:
        other.load_state_dict({**state, "step": np.int64(5)})
        assert all(same(next(other), batch) for batch in wanted)
    other = rays(rank=3, world_size=4)
    other.load_state_dict(state)
    assert other.step == 5 and not same(next(other), wanted[0])
    one.go_to(6)
    assert same(next(one), wanted[1])


def test_a_state_of_other_rays_is_refused_by_name(rays: Make, tmp_path: Path, scene: Path) -> None:
    state = rays(seed=3).state_dict()
    few = write_scene(tmp_path / "few")
    described = json.loads((few / "transforms.json").read_text())
    described["frames"].pop()
    (few / "transforms.json").write_text(json.dumps(described))
    for options, text in [
        ({}, "seed was 3 and is now 0"),
        ({"seed": 3, "sampler": "by_image"}, 'sampler was "uniform" and is now "by_image"'),
        ({"seed": 3, "joining": 1}, "joining was 4 and is now 1"),
        ({"seed": 3, "split": "eval"}, "split was train and is now eval"),
        ({"seed": 3, "downscale": 2}, "downscale was 1 and is now 2"),
        ({"seed": 3, "of": few}, "number of images was 7 and is now 6"),
        ({"seed": 3, "scale_factor": 2.0}, "the scene .cameras, poses"),
    ]:
        with pytest.raises(featherload.ConfigError, match=text):
            rays(**options).load_state_dict(state)
    one = rays()
    for none in [{}, {"step": 3}, {**state, "step": -1}, {"step": object()}]:
        with pytest.raises(featherload.ConfigError, match="not one that state_dict gave"):
            one.load_state_dict(none)
    # Paths and file formats are no part of it: a scene may move.
    moved = rays(write_scene(tmp_path / "moved"), seed=3)
    moved.load_state_dict({**state, "step": 9})
    assert next(moved).step == 9


def test_kept_batches_stay_and_further_ones_are_copies(rays: Make) -> None:
    one = rays(depth=3)
    wanted = [copies(next(one)) for _ in range(8)]
    one.go_to(0)
    with pytest.warns(RuntimeWarning, match="2 batches are held and depth is 3.*depth=6") as said:
        kept = [next(one) for _ in range(8)]
    assert len(said) == 1 and said[0].filename == __file__
    assert all(same(batch, before) for batch, before in zip(kept, wanted, strict=True))
    view = kept[1].colors[5:]
    one.close()
    del kept
    assert (view == wanted[1]["colors"][5:]).all()


def test_no_memory_is_copied(rays: Make) -> None:
    one = rays()
    batch = next(one)
    batch.colors[3] = 7
    assert (batch.numpy().colors[3] == 7).all()
    assert np.shares_memory(np.asarray(batch._raw.array("colors")), batch.colors)
    assert (np.asarray(batch._raw.array("origins")).ctypes.data) % 64 == 0


def test_torch_shares_the_memory(rays: Make) -> None:
    need("torch")
    import torch

    batch = next(rays(framework="torch"))
    kinds = {name: (array.dtype, tuple(array.shape)) for name, array in batch.items()}
    assert kinds["indices"] == (torch.int64, (96, 3)) and kinds["valid"] == (torch.bool, (96,))
    assert kinds["colors"] == (torch.float32, (96, 3))
    assert batch.torch() is batch
    for name, array in batch.numpy().items():
        assert (batch[name].numpy() == array).all()
        assert batch[name].data_ptr() == array.ctypes.data
    moved = batch.to("cpu")
    assert list(moved) == list(batch) and isinstance(moved["origins"], torch.Tensor)


def test_jax_has_the_same_numbers(rays: Make) -> None:
    need("jax")
    batch = next(rays(framework="jax"))
    for name, array in batch.numpy().items():
        assert (np.asarray(batch[name]) == array).all(), name


def test_masks_are_used_or_not(rays: Make, tmp_path: Path) -> None:
    folder = write_scene(tmp_path / "masked")
    described = json.loads((folder / "transforms.json").read_text())
    (folder / "masks").mkdir()
    mask = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    mask[4:6, 7:9] = 255
    for image, frame in enumerate(described["frames"]):
        frame["mask_path"] = f"masks/{image:02}.png"
        (folder / frame["mask_path"]).write_bytes(png(mask))
    (folder / "transforms.json").write_text(json.dumps(described))
    at = next(rays(folder, rays=400, joining=0)).indices[:, 1:]
    assert {tuple(pixel) for pixel in at.tolist()} == {(4, 7), (4, 8), (5, 7), (5, 8)}
    assert next(rays(folder, rays=400, masks=False)).indices[:, 1].max() > 10


def test_a_picture_that_is_bad_is_named_and_tried_again(rays: Make, tmp_path: Path) -> None:
    folder = write_scene(tmp_path / "bad")
    path = folder / "images/03.png"
    whole = path.read_bytes()
    path.write_bytes(whole[:200] + bytes(50) + whole[250:])
    one = rays(folder, joining=0)
    for _ in range(2):
        with pytest.raises(featherload.SampleError, match="03.png") as raised:
            next(one)
        assert raised.value.path == str(path) and raised.value.kind == "corrupt"
    assert one.step == 0
    path.write_bytes(whole)
    assert next(one).step == 0


@pytest.mark.parametrize(
    ("options", "kind", "text"),
    [
        ({"of": "/nowhere"}, featherload.DatasetError, "/nowhere"),
        ({"rays": 0}, featherload.ConfigError, "rays 0 is too small"),
        ({"rays": 1.5}, featherload.ConfigError, "rays 1.5 is not a whole number"),
        ({"num_workers": 0}, featherload.ConfigError, "num_workers=0 .* at least 1"),
        ({"framework": "mxnet"}, featherload.ConfigError, "framework 'mxnet'"),
        ({"sampler": "random"}, featherload.ConfigError, "sampler 'random'"),
        ({"sampler": samplers.Identity()}, featherload.ConfigError, "sampler Identity"),
        ({"split": "val"}, featherload.ConfigError, "split: unknown variant 'val'"),
        ({"split_by": "val"}, featherload.ConfigError, "split_by: unknown variant 'val'"),
        ({"split_by": True}, featherload.ConfigError, "split_by True"),
        ({"orientation": "down"}, featherload.ConfigError, "orientation: unknown variant"),
        ({"most_rays": 5}, featherload.ConfigError, "most_rays is 5, and"),
        ({"downscale": 40}, featherload.ConfigError, "downscale"),
        ({"memory_limit": "1K"}, featherload.ConfigError, "memory_limit|raise"),
        ({"memory_limit": "much"}, featherload.ConfigError, "is not a size"),
        ({"rank": -1, "world_size": 2}, featherload.ConfigError, "rank -1 is too small"),
        ({"rank": 2, "world_size": 2}, featherload.ConfigError, "rank"),
        ({"rank": 1}, featherload.ConfigError, "world_size is missing"),
        ({"sampler": samplers.Patches(9000)}, featherload.ConfigError, "a unit has 81000000 rays"),
        ({"max_pixels": 10}, featherload.Error, "max_pixels|pixels"),
    ],
)
def test_mistakes_are_named(
    rays: Make, options: dict[str, Any], kind: type[featherload.Error], text: str
) -> None:
    with pytest.raises(kind, match=text) as raised:
        rays(**options)
    assert "\n" not in str(raised.value)


def test_options_of_a_scene_that_was_read_are_refused(rays: Make, scene: Path) -> None:
    read = featherload.Scene(scene, split_by="all")
    assert same(next(rays(read)), next(rays()))
    one = rays(read)
    assert one.scene is read
    with pytest.raises(featherload.ConfigError, match="center says how a path is read"):
        rays(read, center="none")


def test_every_option_of_the_library_has_a_keyword() -> None:
    scenes, of_rays = (set(names) for names in rays_option_names())
    # Said by the package, or another form of an option.
    wanted = (of_rays - {"helper"}) | {"scene", "framework"}
    keywords = set(inspect.signature(featherload.Rays).parameters)
    assert keywords == wanted | scenes
    assert set(inspect.signature(featherload.Scene).parameters) == scenes | {"path"}
    for made in (featherload.Rays, featherload.Scene):
        said = re.findall(r"^ {4}(``\w.*)$", made.__doc__ or "", re.MULTILINE)
        named = {name for line in said for name in re.findall(r"``([a-z_]+)``", line)}
        assert named == set(inspect.signature(made).parameters)


def test_the_rank_is_that_of_the_environment(rays: Make, monkeypatch: Any) -> None:
    wanted = copies(next(rays(rank=3, world_size=4)))
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "4")
    assert same(next(rays()), wanted)
    assert not same(next(rays(rank=0, world_size=4)), wanted)


def test_stats_count_what_was_given(rays: Make) -> None:
    with rays(joining=0) as one:
        assert one.stats()["rays_per_s"] == 0
        for _ in range(20):
            next(one)
        stats = one.stats()
        assert (stats["steps"], stats["rays"], stats["images"]) == (20, 20 * 96, IMAGES)
        assert stats["decoded"] == IMAGES and stats["store_bytes"] >= 3 * IMAGES * HEIGHT * WIDTH
        assert len(stats["workers"]) == 2 and stats["rays_per_s"] > 0
        assert stats["memory_bytes"] > stats["ring_bytes"] > 0
        assert "96 rays a step" in repr(one)
    one.close()
    with pytest.raises(featherload.ConfigError, match="closed"):
        next(one)
    with pytest.raises(TypeError, match="cannot go to another process"):
        pickle.dumps(one)


def test_a_worker_that_dies_changes_nothing(rays: Make) -> None:
    wanted = [copies(batch) for batch, _ in zip(rays(), range(40), strict=False)]
    one = rays()
    got = []
    for step in range(40):
        if step in (5, 20):
            kill_one(lambda: one.stats()["workers"])
        got.append(copies(next(one)))
    assert all(map(same, got, wanted))
    os.kill(one.stats()["coordinator"], signal.SIGKILL)
    # Steps that were ready may come first, more of them on a busy machine.
    until = time.monotonic() + 10
    with pytest.raises(featherload.WorkerError):
        while time.monotonic() < until:
            next(one)


# JAX warns of forks.
@pytest.mark.filterwarnings("ignore")
def test_a_forked_copy_is_told(rays: Make) -> None:
    one = rays()
    batch = next(one)
    before = copies(batch)
    pid = os.fork()
    if pid == 0:
        refused = 0
        calls: list[Callable[[], object]] = [
            lambda: next(one),
            one.stats,
            one.state_dict,
            lambda: one.go_to(3),
        ]
        for call in calls:
            try:
                call()
            except featherload.WorkerError as error:
                refused += "forked copy" in str(error)
        one.close()
        del one
        os._exit(refused)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 4
    assert same(batch, before) and next(one).step == 1


@pytest.mark.alone
def test_ctrl_c_ends_a_wait_and_loses_no_step(rays: Make) -> None:
    one = rays()
    next(one)
    stats = one.stats()
    pids = [stats["coordinator"], *stats["workers"]]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    began = time.monotonic()
    steps = [0]
    try:
        with pytest.raises(KeyboardInterrupt):
            while True:
                steps.append(next(one).step)
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
    assert time.monotonic() - began < 5
    steps += [next(one).step for _ in range(3)]
    assert steps == list(range(len(steps)))


def test_ctrl_c_at_any_time_loses_no_step(rays: Make) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    one = rays(rays=2000)
    wanted = [copies(batch) for batch, _ in zip(rays(rays=2000), range(30), strict=False)]
    draw = random.Random(0)
    before = signal.signal(signal.SIGALRM, interrupt)
    step, times = 0, 0
    try:
        while times < 50:
            last = None
            try:
                try:
                    signal.setitimer(signal.ITIMER_REAL, draw.uniform(0.0002, 0.01))
                    for last in one:  # noqa: B007
                        pass
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                times += 1
            if last is not None:
                assert last.step >= step
                step = last.step + 1
            # Behind the last batch that the loop had, wherever it was interrupted.
            assert one.state_dict()["step"] == one.step == step
    finally:
        signal.signal(signal.SIGALRM, before)
    assert step > 50
    one.go_to(0)
    assert all(same(next(one), batch) for batch in wanted)


def test_a_warning_that_is_an_error_loses_no_step(rays: Make) -> None:
    one = rays(depth=2)
    kept = [next(one)]
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning):
            next(one)
    assert one.step == 1
    # With another number of rays it is drawn anew.
    assert one.next(50).step == 1 and next(one).step == 2
    assert kept[0].step == 0


def test_threads_may_share_rays(rays: Make) -> None:
    one = rays(depth=8)
    seen: list[int] = []

    def take() -> None:
        seen.extend(next(one).step for _ in range(30))

    threads = [threading.Thread(target=take) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == list(range(90))


def test_a_scene_is_typed(tmp_path: Path) -> None:
    bent = {"k1": 0.1, "k2": -0.05, "p1": 0.001, "p2": 0.002}
    folder = write_scene(tmp_path / "typed", camera=bent, times=True)
    (folder / "points.ply").write_text(
        "ply\nformat ascii 1.0\nelement vertex 2\nproperty float x\nproperty float y\n"
        "property float z\nproperty uchar red\nproperty uchar green\nproperty uchar blue\n"
        "end_header\n1 2 3 10 20 30\n4 5 6 40 50 60\n"
    )
    described = json.loads((folder / "transforms.json").read_text())
    described["ply_file_path"] = "points.ply"
    (folder / "transforms.json").write_text(json.dumps(described))
    scene = featherload.Scene(
        folder, orientation="none", center="none", auto_scale=False, scale_factor=0.5
    )
    assert len(scene) == len(scene.frames) == IMAGES and scene.root == folder
    [camera] = scene.cameras
    assert (camera.width, camera.height, camera.lens) == (WIDTH, HEIGHT, "brown")
    assert camera.coefficients["k"][:2] == (0.1, -0.05) and camera.coefficients["p"] == (
        0.001,
        0.002,
    )
    assert camera.matrix.tolist() == [[30, 0, 18.25], [0, 31, 11.5], [0, 0, 1]]
    frame = scene.frames[3]
    assert frame.image == folder / "images/03.png" and frame.name == "images/03.png"
    assert (frame.camera, frame.time, frame.mask, frame.depth) == (0, 3 / 8, None, None)
    matrix = np.array(described["frames"][3]["transform_matrix"])[:3]
    matrix[:, 3] *= 0.5
    assert np.allclose(frame.pose_opengl, matrix) and frame.pose.dtype == np.float64
    assert np.allclose(frame.pose[:, 1:3], -matrix[:, 1:3])
    assert scene.poses.shape == (IMAGES, 3, 4) and (scene.poses[3] == frame.pose).all()
    assert scene.transform.tolist() == np.eye(3, 4).tolist() and scene.scale == 0.5
    points = scene.points()
    assert points is not None and points.rgb is not None
    assert points.xyz.tolist() == [[0.5, 1, 1.5], [2, 2.5, 3]] and points.xyz.dtype == np.float32
    assert points.rgb.tolist() == [[10, 20, 30], [40, 50, 60]] and points.rgb.dtype == np.uint8
    splits = [frame.split for frame in scene.frames]
    assert scene.frames_of("train") == [n for n, s in enumerate(splits) if s == "train"]
    with pytest.raises(featherload.ConfigError, match="split 'val'"):
        scene.frames_of("val")  # type: ignore[arg-type]
    svg = scene._repr_svg_()
    assert svg.startswith("<svg") and svg != scene.svg(points=False)
    assert "brown" in str(scene) and f"{IMAGES} frames" in repr(scene)
    thirds = featherload.Scene(folder, split_by=3)
    assert thirds.frames_of("eval") == thirds.frames_of("test") == [0, 3, 6]
    assert len(featherload.Scene(folder, split_by=0.5).frames_of("train")) == 4


def test_a_scene_says_what_the_command_line_says(cli: Cli, scene: Path) -> None:
    report = featherload.Scene(scene).report
    assert dict(report) == cli("index", scene)


def test_a_scene_without_an_image_is_refused_where_asked(tmp_path: Path) -> None:
    folder = write_scene(tmp_path / "gap")
    (folder / "images/02.png").unlink()
    scene = featherload.Scene(folder)
    assert len(scene) == IMAGES - 1 and scene.report["missing"] == 1
    with pytest.raises(featherload.DatasetError, match="02.png"):
        featherload.Scene(folder, strict=True)
    (folder / "transforms.json").write_text("{")
    with pytest.raises(featherload.DatasetError, match="transforms.json"):
        featherload.Scene(folder)


def test_a_plan_is_that_of_the_rays(rays: Make, cli: Cli, scene: Path) -> None:
    planned = featherload.Rays.plan(scene, rays=96, num_workers=2, split_by="all")
    one = rays()
    next(one)
    stats = one.stats()
    assert planned["memory"]["ring_bytes"] == stats["ring_bytes"]
    assert planned["store"]["bytes"] == stats["store_bytes"] and not planned.in_file
    assert planned["images"] == IMAGES and planned.device_bytes == 0
    assert "all processes" in str(planned) and "<table>" in planned._repr_html_()
    # The same of a scene that was read, and by the command line.
    read = featherload.Rays.plan(one.scene, rays=96, num_workers=2)
    assert read["memory"] == planned["memory"]
    told = cli("rays", scene, "--rays", "96", "--num-workers", "2", "--plan")["memory"]
    assert told.keys() == planned["memory"].keys()


def test_a_plan_needs_no_device_and_refuses_what_rays_do(scene: Path) -> None:
    planned = featherload.Rays.plan(scene, device="cuda")
    assert planned.device_bytes == planned["device"]["total_bytes"] > 0
    assert "device" in str(planned)
    with pytest.raises(featherload.ConfigError, match="memory_limit allows 1 KiB") as failed:
        featherload.Rays.plan(scene, memory_limit="1K")
    assert failed.value.option == "memory_limit"
    with pytest.raises(featherload.DatasetError):
        featherload.Rays.plan("/nowhere")
    with pytest.raises(TypeError, match="ray_count"):
        featherload.Rays.plan(scene, ray_count=3)
