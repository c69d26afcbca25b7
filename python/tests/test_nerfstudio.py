"""``featherload.nerfstudio``: nerfstudio's own managers and cameras are what it is held to.

Most tests need nerfstudio and are skipped without it.
"""

from __future__ import annotations

import importlib.metadata
import json
import logging
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import SCENE_SIZE, scene_color, write_scene

import featherload
from featherload._preview import _png as png

HEIGHT, WIDTH, IMAGES = SCENE_SIZE

Make = Callable[..., Any]


def test_importing_featherload_imports_neither_nerfstudio_nor_torch() -> None:
    code = (
        "import featherload, sys; print([m for m in ('nerfstudio', 'torch') if m in sys.modules])"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "[]"


def test_the_package_has_its_entry_points() -> None:
    found = importlib.metadata.entry_points(group="nerfstudio.method_configs")
    ours = {entry.name: entry.value for entry in found if "featherload" in entry.value}
    assert ours == {
        "nerfacto-featherload": "featherload.nerfstudio.methods:nerfacto",
        "splatfacto-featherload": "featherload.nerfstudio.methods:splatfacto",
    }


# It warns of much, by itself.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="session")
def nerfstudio() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for module in ("torch", "nerfstudio"):
            pytest.importorskip(module, reason=f"SKIP: {module} is not installed")
        import featherload.nerfstudio

        return featherload.nerfstudio


@pytest.fixture
def manager(nerfstudio: Any, tmp_path: Path) -> Iterator[Make]:
    """Makes managers of a scene of nerfstudio's format, and ends them."""
    made = []

    def make(
        scene: Path | None = None,
        *,
        kind: str = "rays",
        dataset: str | None = None,
        parser: dict[str, Any] | None = None,
        test_mode: str = "val",
        theirs: bool = False,
        dataparser: Any = None,
        **options: Any,
    ) -> Any:
        from nerfstudio.data.datamanagers import base_datamanager, full_images_datamanager
        from nerfstudio.data.dataparsers.nerfstudio_dataparser import NerfstudioDataParserConfig
        from nerfstudio.data.datasets.depth_dataset import DepthDataset

        config = {
            ("rays", False): nerfstudio.RayDataManagerConfig,
            ("rays", True): base_datamanager.VanillaDataManagerConfig,
            ("images", False): nerfstudio.ImageDataManagerConfig,
            ("images", True): full_images_datamanager.FullImageDatamanagerConfig,
        }[kind, theirs]()
        if dataset == "depth":
            config._target = config._target[DepthDataset]
        elif dataset is not None:
            config._target = config._target[dataset]
        if dataparser is None:
            if scene is None:
                scene = tmp_path / "scene"
                if not scene.exists():
                    write_scene(scene)
            dataparser = NerfstudioDataParserConfig(
                data=scene, downscale_factor=1, train_split_fraction=0.7, **(parser or {})
            )
        config.dataparser = dataparser
        if not theirs:
            options.setdefault("num_workers", 1)
            if kind == "rays":
                options.setdefault("joining", 0)
        else:
            # "cpu" wants CUDA to pin it.
            config.cache_images = "gpu"
        for name, value in options.items():
            assert hasattr(config, name), name
            setattr(config, name, value)
        one = config.setup(device="cpu", test_mode=test_mode)
        if not theirs:
            made.append(one)
        return one

    yield make
    for one in made:
        one.close()


def change(scene: Path, **keys: Any) -> Path:
    """Changes a transforms.json; keys of frames begin with ``frame_``, and are functions of the
    frame's number."""
    file = scene / "transforms.json"
    described = json.loads(file.read_text())
    for key, value in keys.items():
        if key.startswith("frame_"):
            for number, frame in enumerate(described["frames"]):
                frame[key.removeprefix("frame_")] = value(number)
        else:
            described[key] = value
    file.write_text(json.dumps(described))
    return scene


def kinds(values: dict[str, Any]) -> dict[str, Any]:
    return {
        name: (value.dtype, tuple(value.shape), value.device.type)
        if hasattr(value, "shape")
        else value
        for name, value in values.items()
    }


def of_bundle(bundle: Any) -> dict[str, Any]:
    fields = dict(vars(bundle))
    metadata = fields.pop("metadata")
    return {**{k: v for k, v in fields.items() if not k.startswith("_")}, **metadata}


LENSES: dict[str, dict[str, Any]] = {
    "pinhole": {},
    "opencv": {"k1": 0.05, "k2": -0.02, "p1": 0.003, "p2": -0.002},
    "fisheye": {"camera_model": "OPENCV_FISHEYE", "k1": 0.05, "k2": 0.01, "k3": -0.01, "k4": 0.002},
    "fisheye624": {
        "camera_model": "FISHEYE624",
        "distortion_params": [
            *(0.05, 0.01, -0.01, 0.002, 0.001, -0.0005),
            *(0.001, -0.002, 0.0005, 0.0003, -0.0004, 0.0002),
        ],
    },
    "equirectangular": {"camera_model": "EQUIRECTANGULAR", "fl_x": 18.5, "fl_y": 23.0},
    "orthophoto": {"camera_model": "ORTHOPHOTO"},
}


@pytest.mark.parametrize("lens", LENSES)
def test_rays_are_those_of_nerfstudios_cameras(manager: Make, tmp_path: Path, lens: str) -> None:
    import torch
    from nerfstudio.model_components.ray_generators import RayGenerator

    scene = change(write_scene(tmp_path / "scene"), **LENSES[lens])
    one = manager(scene, train_num_rays_per_batch=3000)
    bundle, batch = one.next_train(0)
    wanted = RayGenerator(one.train_dataset.cameras)(batch["indices"])
    assert kinds(of_bundle(bundle)) == kinds(of_bundle(wanted))
    assert (bundle.camera_indices == wanted.camera_indices).all()
    assert (bundle.origins - wanted.origins).abs().max() < 1e-6
    assert (bundle.directions - wanted.directions).abs().max() < 1e-6
    assert (bundle.pixel_area - wanted.pixel_area).abs().max() < 1e-6
    norms = (bundle.metadata["directions_norm"], wanted.metadata["directions_norm"])
    assert (norms[0] - norms[1]).abs().max() < 1e-6
    images = torch.stack([one.train_dataset[i]["image"] for i in range(len(one.train_dataset))])
    assert (batch["image"] == images[tuple(batch["indices"].T)]).all()
    theirs = manager(scene, theirs=True, train_num_rays_per_batch=3000)
    bundle_of_theirs, batch_of_theirs = theirs.next_train(0)
    assert kinds(batch) == kinds(batch_of_theirs)
    assert kinds(of_bundle(bundle)) == kinds(of_bundle(bundle_of_theirs))


def test_images_keep_the_order_of_the_dataset(manager: Make, tmp_path: Path) -> None:
    """Frames are not in the order of their names, and trained ones are not the first ones."""
    scene = write_scene(tmp_path / "scene")
    names = [f"images/{number:02}.png" for number in range(IMAGES)]
    for chosen in ([5, 0, 3], [1, 6]):
        change(
            scene,
            train_filenames=[names[i] for i in chosen],
            val_filenames=[names[i] for i in (2, 4)],
            test_filenames=[names[i] for i in (4, 2)],
        )
        one = manager(scene, parser={"eval_mode": "filename"})
        for (_, batch), dataset in (
            (one.next_train(0), one.train_dataset),
            (one.next_eval(0), one.eval_dataset),
        ):
            camera, row, col = batch["indices"].T
            files = np.array([int(path.stem) for path in dataset.image_filenames])[camera]
            wanted = scene_color(files, row.numpy(), col.numpy())
            assert (np.round(batch["image"].numpy() * 255) == wanted).all()
            assert set(camera.tolist()) == set(range(len(dataset)))


def masked_scene(folder: Path) -> Path:
    scene = write_scene(folder)
    (scene / "masks").mkdir()
    mask = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    mask[4:6, 7:9] = 255
    for image in range(IMAGES):
        # nerfstudio wants one channel.
        from PIL import Image

        Image.fromarray(mask[..., 0]).save(scene / f"masks/{image:02}.png")
    return change(scene, frame_mask_path=lambda number: f"masks/{number:02}.png")


def test_masks_are_kept_to(manager: Make, tmp_path: Path) -> None:
    scene = masked_scene(tmp_path / "scene")
    one = manager(scene, train_num_rays_per_batch=400)
    _, batch = one.next_train(0)
    at = {tuple(pixel) for pixel in batch["indices"][:, 1:].tolist()}
    assert at == {(4, 7), (4, 8), (5, 7), (5, 8)}
    assert batch["mask"].all()
    # More rays than pixels, which nerfstudio refuses, and few enough for it.
    theirs = manager(scene, theirs=True, train_num_rays_per_batch=8)
    _, wanted = theirs.next_train(0)
    _, few = manager(scene, train_num_rays_per_batch=8).next_train(0)
    assert kinds(few) == kinds(wanted)
    from nerfstudio.data.pixel_samplers import PixelSamplerConfig

    every = PixelSamplerConfig(ignore_mask=True)
    _, batch = manager(scene, pixel_sampler=every, train_num_rays_per_batch=400).next_train(0)
    assert batch["indices"][:, 1].max() > 10 and "mask" not in batch


def deep_scene(folder: Path) -> Path:
    from PIL import Image

    scene = write_scene(folder)
    (scene / "depths").mkdir()
    rows, cols = np.mgrid[:HEIGHT, :WIDTH]
    for image in range(IMAGES):
        levels = (1000 + 100 * image + 20 * rows + cols).astype(np.uint16)
        Image.fromarray(levels).save(scene / f"depths/{image:02}.png")
    return change(scene, frame_depth_file_path=lambda number: f"depths/{number:02}.png")


@pytest.mark.parametrize("unit", [1e-3, 0.25])
def test_depths_are_those_of_nerfstudios_dataset(
    manager: Make, tmp_path: Path, unit: float
) -> None:
    import torch

    scene = deep_scene(tmp_path / "scene")
    parser = {"depth_unit_scale_factor": unit}
    one = manager(scene, dataset="depth", parser=parser)
    assert one.train_dataset._dataparser_outputs.dataparser_scale != 1
    _, batch = one.next_train(0)
    count = len(one.train_dataset)
    depths = torch.stack([one.train_dataset[i]["depth_image"] for i in range(count)])
    wanted = depths[tuple(batch["indices"].T)]
    assert kinds(batch)["depth_image"] == kinds({"": wanted})[""]
    assert ((batch["depth_image"] - wanted).abs() <= 1e-6 * wanted).all()
    theirs = manager(scene, theirs=True, dataset="depth", parser=parser)
    assert kinds(theirs.next_train(0)[1]) == kinds(batch)
    # Without the dataset for depths there are none.
    assert "depth_image" not in manager(scene).next_train(0)[1]


def transparent_scene(folder: Path, *, blender: bool) -> Path:
    from PIL import Image

    scene = write_scene(folder, times=True)
    rows, cols = np.mgrid[:HEIGHT, :WIDTH]
    for image in range(IMAGES):
        pixels = np.dstack([scene_color(image, rows, cols), (rows * 7 + cols * 3) % 256])
        Image.fromarray(pixels.astype(np.uint8)).save(scene / f"images/{image:02}.png")
    if blender:
        described = json.loads((scene / "transforms.json").read_text())
        for frame in described["frames"]:
            frame["file_path"] = frame["file_path"].removesuffix(".png")
        described["camera_angle_x"] = 0.8
        for split in ("train", "val", "test"):
            (scene / f"transforms_{split}.json").write_text(json.dumps(described))
    return scene


def test_transparency_is_nerfstudios(manager: Make, tmp_path: Path) -> None:
    import torch
    from nerfstudio.data.dataparsers.blender_dataparser import BlenderDataParserConfig

    blender = transparent_scene(tmp_path / "blender", blender=True)
    cases = [
        {"scene": transparent_scene(tmp_path / "scene", blender=False)},
        *(
            {"dataparser": BlenderDataParserConfig(data=blender, alpha_color=color)}
            for color in ("white", "black", None)
        ),
    ]
    for case, channels in zip(cases, (4, 3, 3, 4), strict=True):
        one = manager(**case)
        _, batch = one.next_train(0)
        count = len(one.train_dataset)
        images = torch.stack([one.train_dataset[i]["image"] for i in range(count)])
        wanted = images[tuple(batch["indices"].T)]
        assert batch["image"].shape == wanted.shape and wanted.shape[1] == channels
        assert (batch["image"] - wanted).abs().max() < 1e-6, case


def test_times_are_those_of_the_cameras(manager: Make, tmp_path: Path) -> None:
    from nerfstudio.data.dataparsers.dnerf_dataparser import DNeRFDataParserConfig
    from nerfstudio.model_components.ray_generators import RayGenerator

    scene = transparent_scene(tmp_path / "scene", blender=True)
    one = manager(dataparser=DNeRFDataParserConfig(data=scene))
    assert one.includes_time
    bundle, batch = one.next_train(0)
    wanted = RayGenerator(one.train_dataset.cameras)(batch["indices"])
    assert kinds(of_bundle(bundle)) == kinds(of_bundle(wanted))
    assert (bundle.times == wanted.times).all() and len(bundle.times.unique()) > 3


def test_images_of_different_sizes(manager: Make, tmp_path: Path) -> None:
    from nerfstudio.model_components.ray_generators import RayGenerator

    scene = write_scene(tmp_path / "scene")
    rows, cols = np.mgrid[: 2 * HEIGHT, :WIDTH]
    for image in (1, 4):
        (scene / f"images/{image:02}.png").write_bytes(png(scene_color(image, rows, cols)))
    keys = ("w", "h", "fl_x", "fl_y", "cx", "cy")
    described = json.loads((scene / "transforms.json").read_text())
    own = {key: described.pop(key) for key in keys}
    for number, frame in enumerate(described["frames"]):
        frame.update(own, fl_x=30.0 + number, h=HEIGHT * (2 if number in (1, 4) else 1))
    (scene / "transforms.json").write_text(json.dumps(described))
    one = manager(scene, train_num_rays_per_batch=4000)
    bundle, batch = one.next_train(0)
    wanted = RayGenerator(one.train_dataset.cameras)(batch["indices"])
    assert (bundle.directions - wanted.directions).abs().max() < 1e-6
    assert kinds(of_bundle(bundle)) == kinds(of_bundle(wanted))
    camera, row, _ = batch["indices"].T
    tall = one.train_dataset.cameras.height.flatten()[camera] > HEIGHT
    assert row[tall].max() >= HEIGHT > row[~tall].max()
    # All pixels alike: a tall image has twice as many.
    heights = one.train_dataset.cameras.height.flatten().float()
    assert abs(tall.float().mean() - heights[heights > HEIGHT].sum() / heights.sum()) < 0.05
    even = manager(scene, train_num_rays_per_batch=4000, spread="by_image").next_train(0)[1]
    counts = even["indices"][:, 0].bincount()
    assert (counts > 4000 / len(counts) * 0.8).all()


def test_a_step_has_its_rays(manager: Make) -> None:
    """Whatever came before it: a checkpoint goes on with the rays of the uninterrupted run."""

    def copied(given: tuple[Any, Any]) -> list[Any]:
        bundle, batch = given
        return [bundle.origins.clone(), batch["indices"].clone(), batch["image"].clone()]

    def same(a: list[Any], b: list[Any]) -> bool:
        return all((x == y).all() for x, y in zip(a, b, strict=True))

    one = manager()
    wanted = [copied(one.next_train(step)) for step in range(8)]
    other = manager()
    for step in (5, 6, 2, 3, 7):
        assert same(copied(other.next_train(step)), wanted[step])
    # nerfstudio's exporter asks for step 0 again and again, and wants other rays each time.
    again = [copied(other.next_train(0)) for _ in range(3)]
    assert same(again[0], wanted[0]) and not same(again[1], again[0])
    assert not same(again[2], again[1])
    assert same(copied(other.next_train(1)), wanted[1])
    assert not same(copied(manager(seed=3).next_train(0)), wanted[0])
    first, second = (copied(one.next_eval(step)) for step in (0, 500))
    assert not same(first, second)
    assert same(copied(manager().next_eval(500)), second)
    assert (one.train_count, one.eval_count) == (8, 2)


def test_the_number_of_rays_may_change_at_each_step(manager: Make) -> None:
    one = manager(train_num_rays_per_batch=64, eval_num_rays_per_batch=32)
    assert (one.get_train_rays_per_batch(), one.get_eval_rays_per_batch()) == (64, 32)
    first = one.next_train(0)[1]["indices"].clone()
    for step, count in enumerate((64, 65, 256, 257, 7, 5000, 64)):
        one.train_pixel_sampler.set_num_rays_per_batch(count)
        bundle, batch = one.next_train(step)
        assert len(bundle) == len(batch["image"]) == count == one.get_train_rays_per_batch()
    # More room changes no ray.
    assert (one.next_train(0)[1]["indices"] == first).all()
    # As nerfstudio's exporter does it.
    one.train_pixel_sampler.num_rays_per_batch = 10
    assert len(one.next_train(1)[0]) == 10


def test_patches_and_pairs(manager: Make) -> None:
    from nerfstudio.data.pixel_samplers import PairPixelSamplerConfig

    one = manager(patch_size=4, train_num_rays_per_batch=100)
    at = one.next_train(0)[1]["indices"]
    assert len(at) == 96
    apart = at.view(-1, 4, 4, 3) - at.view(-1, 4, 4, 3)[:, :1, :1]
    assert (apart[:, 2, 3] == apart.new_tensor([0, 2, 3])).all()
    pairs = PairPixelSamplerConfig(radius=3)
    at = manager(pixel_sampler=pairs).next_train(0)[1]["indices"].view(-1, 2, 3)
    apart = (at[:, 1] - at[:, 0]).abs()
    assert apart[:, 0].max() == 0 and apart.max() == 3


def test_pixels_without_a_ray_are_replaced(
    manager: Make, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    scene = change(write_scene(tmp_path / "scene"), k1=-0.9)
    with caplog.at_level(logging.WARNING, logger="featherload"):
        one = manager(scene, train_num_rays_per_batch=1000)
        for step in range(3):
            bundle, batch = one.next_train(step)
            assert ((bundle.directions.norm(dim=1) - 1).abs() < 1e-6).all()
            assert len(bundle) == len(batch["image"]) == 1000
    told = [record.message for record in caplog.records if "lens" in record.message]
    assert len(told) == 1 and "of 1000 pixels of step 0" in told[0]
    # Patches stay whole.
    at = manager(scene, patch_size=2, train_num_rays_per_batch=1000).next_train(0)[1]["indices"]
    apart = at.view(-1, 4, 3) - at.view(-1, 4, 3)[:, :1]
    assert (apart[:, 3] == apart.new_tensor([0, 1, 1])).all()
    nowhere = change(scene, k1=-900.0, cx=-90.0)
    with pytest.raises(featherload.DatasetError, match="no ray of 1000 has a direction"):
        manager(nowhere, train_num_rays_per_batch=1000).next_train(0)


def test_images_at_a_part_of_their_size(manager: Make, tmp_path: Path) -> None:
    from nerfstudio.model_components.ray_generators import RayGenerator

    scene = write_scene(tmp_path / "scene")
    rows, cols = np.mgrid[:24, :36]
    for image in range(IMAGES):
        (scene / f"images/{image:02}.png").write_bytes(png(scene_color(image, rows, cols)))
    change(scene, w=36, h=24)
    one = manager(scene, camera_res_scale_factor=0.5, train_num_rays_per_batch=2000)
    bundle, batch = one.next_train(0)
    assert batch["indices"][:, 1:].max(0).values.tolist() == [11, 17]
    wanted = RayGenerator(one.train_dataset.cameras)(batch["indices"])
    assert (bundle.directions - wanted.directions).abs().max() < 1e-6
    for factor in (0.3, 0.2, 2.0):
        with pytest.raises(featherload.ConfigError, match="camera_res_scale_factor"):
            manager(scene, camera_res_scale_factor=factor)


def test_evaluation_is_nerfstudios(manager: Make) -> None:
    one, theirs = manager(), manager(theirs=True)
    assert len(one.fixed_indices_eval_dataloader) == len(theirs.fixed_indices_eval_dataloader)
    both = zip(one.fixed_indices_eval_dataloader, theirs.fixed_indices_eval_dataloader, strict=True)
    for (camera, data), (wanted, wanted_data) in both:
        assert kinds(data) == kinds(wanted_data) and camera.shape == wanted.shape == (1,)
        assert (data["image"] == wanted_data["image"]).all()
    camera, data = one.next_eval_image(0)
    assert camera.shape == (1,) and data["image"].shape == (HEIGHT, WIDTH, 3)
    assert one.eval_dataloader.get_camera(image_idx=1)[0].shape == (1,)
    assert kinds(one.next_eval(0)[1]) == kinds(theirs.next_eval(0)[1])
    assert one.get_datapath() == theirs.get_datapath()
    assert one.get_param_groups() == {} == theirs.get_param_groups()
    assert one.get_training_callbacks(None) == []


def test_nothing_is_started_for_inference(manager: Make) -> None:
    for kind in ("rays", "images"):
        one = manager(kind=kind, test_mode="inference")
        assert not hasattr(one, "_train") and len(one.train_dataset) == 5
        assert one.train_dataparser_outputs is not None and one.dataparser is not None


def test_what_cannot_be_is_named(manager: Make, tmp_path: Path) -> None:
    from nerfstudio.data.datasets.base_dataset import InputDataset
    from nerfstudio.data.pixel_samplers import PixelSampler, PixelSamplerConfig

    class Bright(InputDataset):
        def get_metadata(self, data: Any) -> Any:
            return {"bright": data["image"]}

    class Own(PixelSampler):
        pass

    scene = write_scene(tmp_path / "other")
    for options, text in [
        ({"dataset": Bright}, "Bright has a get_metadata of its own"),
        ({"dataset": Bright, "kind": "images"}, "Bright has a get_metadata of its own"),
        ({"pixel_sampler": PixelSamplerConfig(_target=Own)}, "Own is not supported"),
        ({"pixel_sampler": PixelSamplerConfig(keep_full_image=True)}, "keep_full_image"),
        ({"num_workers": 0}, "num_workers=0"),
        ({"memory_limit": "much"}, "memory_limit"),
        ({"train_num_rays_per_batch": 0}, "asks for 0 rays: .* at least 1"),
        ({"kind": "images", "train_cameras_sampling_strategy": "fps"}, "train_cameras_sampling"),
    ]:
        with pytest.raises(featherload.ConfigError, match=text):
            manager(scene, **options)
    rows, cols = np.mgrid[:HEIGHT, : WIDTH + 5]
    (scene / "images/00.png").write_bytes(png(scene_color(0, rows, cols)))
    with pytest.raises(featherload.DatasetError, match=r"00\.png: .* has 42 x 23 .* says 37 x 23"):
        manager(scene)
    (scene / "images/00.png").write_bytes(b"\x89PNG, nearly")
    with pytest.raises(featherload.DatasetError, match=r"00\.png"):
        manager(scene)
    change(write_scene(tmp_path / "few"), camera_model="FISHEYE624", k1=0.1)
    with pytest.raises(
        featherload.DatasetError, match="what nerfstudio's dataparser .* FISHEYE624"
    ):
        manager(tmp_path / "few")


def test_options_without_effect_are_told(manager: Make, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="featherload"):
        manager(train_num_images_to_sample_from=2, eval_num_images_to_sample_from=-1)
    told = [record.message for record in caplog.records]
    assert [text for text in told if "has no effect" in text] == [
        "train_num_images_to_sample_from=2 has no effect: rays come from all 5 images, which all "
        "ranks share"
    ]


def test_methods_are_nerfstudios_with_other_managers(nerfstudio: Any) -> None:
    from nerfstudio.configs.method_configs import all_methods
    from nerfstudio.data.datamanagers.base_datamanager import VanillaDataManagerConfig
    from nerfstudio.data.datamanagers.full_images_datamanager import FullImageDatamanagerConfig

    from featherload.nerfstudio import methods

    for name, kind, manager in [
        ("nerfacto", VanillaDataManagerConfig, nerfstudio.RayDataManager),
        ("splatfacto", FullImageDatamanagerConfig, nerfstudio.ImageDataManager),
    ]:
        ours, theirs = all_methods[f"{name}-featherload"], all_methods[name]
        assert getattr(methods, name).config is ours and ours is not theirs
        assert ours.method_name == f"{name}-featherload"
        config, of_theirs = ours.pipeline.datamanager, theirs.pipeline.datamanager
        assert isinstance(config, kind) and config._target is manager
        assert type(config.dataparser) is type(of_theirs.dataparser)
        assert type(ours.pipeline.model) is type(theirs.pipeline.model)
        assert ours.optimizers.keys() == theirs.optimizers.keys()
        assert vars(theirs)["method_name"] == name
    assert all_methods["nerfacto-featherload"].pipeline.datamanager.train_num_rays_per_batch == 4096
    assert all_methods["splatfacto-featherload"].pipeline.datamanager.cache_images_type == "uint8"
    with pytest.raises(AttributeError, match="no attribute 'mipnerf'"):
        _ = methods.mipnerf


def test_methods_may_be_imported_first(nerfstudio: Any) -> None:
    """Before nerfstudio, which loads them itself while it is imported."""
    code = (
        "from featherload.nerfstudio.methods import splatfacto, nerfacto\n"
        "from nerfstudio.configs.method_configs import all_methods\n"
        "assert all_methods['splatfacto-featherload'] is splatfacto.config\n"
        "assert all_methods['nerfacto-featherload'] is nerfacto.config\n"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)


def test_a_config_goes_through_yaml(nerfstudio: Any) -> None:
    import yaml
    from nerfstudio.configs.method_configs import all_methods

    for name in ("nerfacto-featherload", "splatfacto-featherload"):
        text = yaml.dump(all_methods[name])
        read = yaml.load(text, Loader=yaml.Loader)
        assert type(read.pipeline.datamanager) is type(all_methods[name].pipeline.datamanager)
        assert "featherload.nerfstudio.rays" in text or "featherload.nerfstudio.images" in text


def test_options_are_flags_of_ns_train(nerfstudio: Any, tmp_path: Path) -> None:
    import tyro
    from nerfstudio.configs.method_configs import AnnotatedBaseConfigUnion

    def parsed(method: str, **flags: str) -> Any:
        args = [method, "--data", str(tmp_path)]
        for name, value in flags.items():
            args += [f"--pipeline.datamanager.{name.replace('_', '-')}", value]
        args += ["nerfstudio-data", "--eval-mode", "all"]
        return tyro.cli(AnnotatedBaseConfigUnion, args=args).pipeline.datamanager

    rays = parsed(
        "nerfacto-featherload",
        **{"seed": "7", "spread": "by_image", "joining": "0", "num_workers": "3"},
        **{"memory_limit": "2G", "store_folder": "/tmp"},
    )
    assert (rays.seed, rays.spread, rays.joining, rays.num_workers) == (7, "by_image", 0, 3)
    assert (rays.memory_limit, rays.store_folder) == ("2G", Path("/tmp"))
    assert rays._target is nerfstudio.RayDataManager and rays.dataparser.eval_mode == "all"
    images = parsed("splatfacto-featherload", undistort="False", num_workers="None")
    assert (images.undistort, images.num_workers) == (False, None)
    assert images._target is nerfstudio.ImageDataManager


# Full images.


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_full_images_are_nerfstudios(manager: Make, tmp_path: Path, dtype: str) -> None:
    scene = masked_scene(tmp_path / "scene")
    options = {"kind": "images", "cache_images_type": dtype}
    one, theirs = manager(scene, **options), manager(scene, theirs=True, **options)
    count = len(one.train_dataset)
    seen, wanted = {}, {}
    for step in range(count):
        for manager_of, got in ((one, seen), (theirs, wanted)):
            camera, data = manager_of.next_train(step)
            got[camera.metadata["cam_idx"]] = (camera, data)
    assert seen.keys() == wanted.keys() == set(range(count))
    for index, (camera, data) in seen.items():
        of_theirs, data_of_theirs = wanted[index]
        assert kinds(data) == kinds(data_of_theirs)
        assert all((data[name] == data_of_theirs[name]).all() for name in ("image", "mask"))
        assert kinds(vars(camera)) == kinds(vars(of_theirs))
        assert (camera.camera_to_worlds == of_theirs.camera_to_worlds).all()
    assert one.get_train_rays_per_batch() == HEIGHT * WIDTH
    fixed = list(one.fixed_indices_eval_dataloader)
    assert len(one.fixed_indices_eval_dataloader) == len(fixed) == len(one.eval_dataset)
    for (camera, data), (of_theirs, wanted_data) in zip(
        fixed, theirs.fixed_indices_eval_dataloader, strict=True
    ):
        assert kinds(data) == kinds(wanted_data) and camera.shape == (1,)
        assert (data["image"] == wanted_data["image"]).all()
        assert (camera.camera_to_worlds == of_theirs.camera_to_worlds).all()
    evaluated = [one.next_eval(0)[1]["image_idx"], one.next_eval_image(0)[1]["image_idx"]]
    assert sorted(evaluated) == [0, 1]
    for cached in ("cached_train", "cached_eval"):
        with pytest.raises(featherload.ConfigError, match="keeps no list of images"):
            getattr(one, cached)


def test_full_images_of_a_step(manager: Make) -> None:
    def index(one: Any, step: int) -> int:
        return int(one.next_train(step)[0].metadata["cam_idx"])

    one = manager(kind="images")
    wanted = [index(one, step) for step in range(15)]
    assert all(sorted(wanted[i : i + 5]) == list(range(5)) for i in (0, 5, 10))
    assert wanted[:5] != wanted[5:10] or wanted[5:10] != wanted[10:]
    other = manager(kind="images")
    assert [index(other, step) for step in (7, 8, 2, 14)] == [wanted[i] for i in (7, 8, 2, 14)]


@pytest.mark.parametrize("lens", ["opencv", "fisheye"])
def test_straightened_images_are_nerfstudios(manager: Make, tmp_path: Path, lens: str) -> None:
    scene = change(masked_scene(tmp_path / "scene"), **LENSES[lens])
    one, theirs = manager(scene, kind="images"), manager(scene, kind="images", theirs=True)
    seen, wanted = {}, {}
    for step in range(len(one.train_dataset)):
        for manager_of, got in ((one, seen), (theirs, wanted)):
            camera, data = manager_of.next_train(step)
            got[camera.metadata["cam_idx"]] = (camera, data)
    for index, (camera, data) in seen.items():
        of_theirs, data_of_theirs = wanted[index]
        assert camera.distortion_params is None and camera.camera_type.item() == 1
        for name in ("width", "height"):
            assert getattr(camera, name).item() == getattr(of_theirs, name).item()
        for name in ("fx", "fy", "cx", "cy"):
            assert abs(getattr(camera, name) - getattr(of_theirs, name)).item() < 0.05, name
        apart = (data["image"].float() - data_of_theirs["image"].float()).abs()
        assert apart.mean() < 0.01 and data["mask"].shape == data_of_theirs["mask"].shape
    assert one.train_dataset.cameras.distortion_params is None
    raw = manager(scene, kind="images", undistort=False)
    camera, data = raw.next_train(0)
    assert camera.distortion_params.abs().sum() > 0 and data["image"].shape[:2] == (HEIGHT, WIDTH)


def test_full_images_with_depths_and_transparency(manager: Make, tmp_path: Path) -> None:
    from nerfstudio.data.dataparsers.blender_dataparser import BlenderDataParserConfig

    one = manager(deep_scene(tmp_path / "deep"), kind="images", dataset="depth")
    camera, data = one.next_train(0)
    wanted = one.train_dataset[camera.metadata["cam_idx"]]["depth_image"]
    assert ((data["depth_image"] - wanted).abs() <= 1e-6 * wanted).all()
    assert data["depth_image"].shape == wanted.shape
    blender = transparent_scene(tmp_path / "blender", blender=True)
    for color, dtype in (("white", "uint8"), ("white", "float32"), (None, "uint8")):
        parser = BlenderDataParserConfig(data=blender, alpha_color=color)
        one = manager(kind="images", dataparser=parser, cache_images_type=dtype)
        camera, data = one.next_train(0)
        wanted = one.train_dataset.get_data(camera.metadata["cam_idx"], dtype)["image"]
        assert kinds(data)["image"] == kinds({"": wanted})[""]
        apart = (data["image"].float() - wanted.float()).abs().max()
        assert apart <= (1 if dtype == "uint8" else 1e-6)
