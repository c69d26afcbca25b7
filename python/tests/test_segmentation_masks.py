"""Masks of images: resizes beside torchvision and Pillow, and moves beside their images."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Cli, need

import featherload
from featherload import ConfigError, DatasetError

SIZES = [(67, 91), (120, 45), (33, 33), (200, 301)]


def _labels(height: int, width: int, seed: int, most: int = 256) -> Any:
    return np.random.default_rng(seed).integers(0, most, (height, width))


@pytest.fixture(scope="session")
def photos_and_masks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pictures of several sizes as PNG, in two classes, and palette masks beside them."""
    from PIL import Image

    root = tmp_path_factory.mktemp("segmentation")
    for n in range(24):
        height, width = SIZES[n % len(SIZES)]
        folder = root / "images" / "ab"[n % 2]
        folder.mkdir(parents=True, exist_ok=True)
        (root / "masks").mkdir(exist_ok=True)
        pixels = np.random.default_rng(n).integers(0, 256, (height, width, 3), np.uint8)
        Image.fromarray(pixels).save(folder / f"{n}.png")
        mask = Image.fromarray(_labels(height, width, n).astype(np.uint8)).convert("P")
        mask.putpalette([(7 * i) % 256 for i in range(768)])
        mask.save(root / "masks" / f"{n}.png")
    return root


def _recipe(*ops: Any, **more: Any) -> dict[str, Any]:
    return {"featherload": 1, **more, "ops": [*ops, {"cast": {"dtype": "u8"}}]}


def _loader(root: Path, recipe: Any, masks: Any = "../masks/{stem}.png", **options: Any) -> Any:
    options = {"batch_size": 8, "num_workers": 2, "shuffle": False, **options}
    return featherload.Loader(root / "images", recipe, masks=masks, **options)


def _masks(root: Path, recipe: Any, masks: Any = "../masks/{stem}.png", **options: Any) -> Any:
    with _loader(root, recipe, masks, **options) as loader:
        return np.concatenate([np.array(batch.masks) for batch in loader])


def _order(root: Path) -> list[int]:
    return [int(path.stem) for path in sorted((root / "images").glob("*/*.png"))]


def _opened(root: Path, n: int) -> Any:
    from PIL import Image

    # Pillow keeps the indices of a palette.
    return np.asarray(Image.open(root / "masks" / f"{n}.png"))


@pytest.mark.parametrize("size", [[48, 64], [33, 17], [201, 302], [1, 1], [97, 33], [60, 50]])
def test_resized_masks_are_those_of_each_library(photos_and_masks: Path, size: list[int]) -> None:
    need("torchvision")
    import torch
    from PIL import Image
    from torchvision.transforms import v2
    from torchvision.transforms.v2 import functional as fn

    recipe = _recipe({"resize": {"size": size}})
    files = "../masks/{stem}.png"
    got = {
        name: _masks(photos_and_masks, recipe, {"files": files, "filter": name})
        for name in ("floor", "center", "pillow")
    }
    assert (_masks(photos_and_masks, recipe) == got["floor"]).all()
    modes = v2.InterpolationMode
    for row, n in enumerate(_order(photos_and_masks)):
        labels = _opened(photos_and_masks, n).copy()
        mask = torch.from_numpy(labels)[None]
        want = {
            "floor": fn.resize(mask, size, interpolation=modes.NEAREST)[0].numpy(),
            "center": fn.resize(mask, size, interpolation=modes.NEAREST_EXACT)[0].numpy(),
            "pillow": np.asarray(
                Image.fromarray(labels).resize((size[1], size[0]), Image.Resampling.NEAREST)
            ),
        }
        for name, masks in got.items():
            assert (masks[row] == want[name]).all(), (name, n)


@pytest.mark.parametrize("length", [7, 8, 45, 96, 250])
def test_every_length_is_resized_as_in_each_library(tmp_path: Path, length: int) -> None:
    """Where the centre of a pixel lies on a border, rounding decides."""
    need("torchvision")
    import torch
    from PIL import Image
    from torchvision.transforms import v2
    from torchvision.transforms.v2 import functional as fn

    for folder in ("images", "masks"):
        (tmp_path / folder).mkdir()
    labels = np.arange(length, dtype=np.uint8)[None].repeat(2, 0)
    Image.fromarray(labels[..., None].repeat(3, 2)).save(tmp_path / "images" / "a.png")
    Image.fromarray(labels).save(tmp_path / "masks" / "a.png")
    modes = v2.InterpolationMode
    mask = torch.from_numpy(labels)[None]
    for width in range(1, 330, 29):
        recipe = _recipe({"resize": {"size": [2, width]}})
        want = {
            "floor": fn.resize(mask, [2, width], interpolation=modes.NEAREST)[0].numpy(),
            "center": fn.resize(mask, [2, width], interpolation=modes.NEAREST_EXACT)[0].numpy(),
            "pillow": np.asarray(
                Image.fromarray(labels).resize((width, 2), Image.Resampling.NEAREST)
            ),
        }
        for name, wanted in want.items():
            masks = {"files": "../masks/{stem}.png", "filter": name}
            got = _masks(tmp_path, recipe, masks, batch_size=1, num_workers=1)
            assert (got[0] == wanted).all(), (name, width)


# Operations that leave labels where they are.
COLOURS = ("color_jitter", "random_erasing", "gaussian_blur", "random_grayscale")


def test_masks_go_where_their_image_goes(photos_and_masks: Path, tmp_path: Path) -> None:
    """An image that has its labels as levels, and its mask, are moved by nearest pixels. Both are
    equal wherever the image is not filled.
    """
    from PIL import Image

    root = tmp_path / "same"
    for n, path in enumerate(sorted((photos_and_masks / "masks").glob("*.png"))):
        labels = np.asarray(Image.open(path))
        for folder in ("images", "masks"):
            (root / folder).mkdir(parents=True, exist_ok=True)
            grey = np.repeat(labels[..., None], 3, 2) if folder == "images" else labels
            Image.fromarray(grey).save(root / folder / f"{n}.png")
    nearest = {"interpolation": "nearest"}
    moves: list[list[dict[str, Any]]] = [
        [{"random_resized_crop": {"size": [40, 52], **nearest}}],
        [{"resize": {"size": 50, **nearest}}, {"random_crop": {"size": [48, 48]}}],
        [{"random_horizontal_flip": {"p": 0.5}}, {"random_vertical_flip": {"p": 0.5}}],
        [{"random_rotation": {"degrees": [-40, 40], **nearest, "fill": 9}}],
        [{"random_affine": {"degrees": [-30, 30], "translate": [0.2, 0.1], **nearest}}],
        [{"random_perspective": {"p": 1.0, **nearest}}],
        [{"pad": {"padding": [5, 3], "padding_mode": "reflect"}}],
        [{"color_jitter": {"brightness": 0.4}}, {"random_erasing": {"p": 1.0}}],
        [{"gaussian_blur": {"kernel_size": 5}}, {"random_grayscale": {"p": 0.5}}],
    ]
    for ops in moves:
        ended = [*ops, {"center_crop": {"size": [32, 32]}}]
        moves_pixels = not any(name in op for op in ops for name in COLOURS)
        loader = featherload.Loader(
            root / "images",
            _recipe(*ended),
            masks={"files": "../masks/{stem}.png", "filter": "center", "fill": 0},
            batch_size=24,
            num_workers=2,
            layout="nhwc",
        )
        with loader:
            [batch] = list(loader)
            image, masks = np.array(batch.images)[..., 0], np.array(batch.masks)
            ids = batch.ids
            del batch
        assert masks.shape == (24, 32, 32)
        if moves_pixels:
            # Where the image is filled, it is not equal.
            assert (image == masks).mean() > 0.75, ops
            continue
        plain = _masks(root, _recipe(*ended[len(ops) :]), batch_size=24)
        assert (masks == plain[ids]).all(), ops


def test_the_stream_does_not_depend_on_workers(photos_and_masks: Path) -> None:
    recipe = _recipe({"random_resized_crop": {"size": [40, 40]}}, {"random_horizontal_flip": {}})
    want = None
    for workers in (1, 2, 8):
        got = _masks(photos_and_masks, recipe, num_workers=workers, shuffle=True, seed=5)
        assert want is None or (got == want).all()
        want = got


def test_labels_become_numbers_by_the_rule(photos_and_masks: Path) -> None:
    recipe = _recipe({"center_crop": {"size": [32, 32]}})
    files = "../masks/{stem}.png"
    plain = _masks(photos_and_masks, recipe)
    assert plain.dtype == np.uint8
    reduced = _masks(photos_and_masks, recipe, {"files": files, "reduce_zero_label": True})
    want = plain.astype(np.int64)
    want[want == 0] = 255
    want = np.where(plain == 0, 255, plain.astype(np.int64) - 1)
    want[plain == 255] = 255
    assert (reduced == want).all()
    mapped = {"files": files, "map": {3: 0, 200: 7}, "ignore": 255, "dtype": "int64"}
    got = _masks(photos_and_masks, recipe, mapped)
    assert got.dtype == np.int64
    assert (got == np.where(plain == 3, 0, np.where(plain == 200, 7, 255))).all()


def test_padding_has_the_ignored_number(photos_and_masks: Path) -> None:
    recipe = _recipe({"center_crop": {"size": [210, 310]}})
    masks = {"files": "../masks/{stem}.png", "ignore": 250}
    got = _masks(photos_and_masks, recipe, masks)
    for row, n in enumerate(_order(photos_and_masks)):
        mask = _opened(photos_and_masks, n)
        top, left = (round((a - b) / 2) for a, b in zip((210, 310), mask.shape, strict=True))
        want = np.full((210, 310), 250)
        want[top : top + mask.shape[0], left : left + mask.shape[1]] = mask
        # Which side gets the odd pixel is tested with the images.
        assert abs(int((got[row] == 250).sum()) - int((want == 250).sum())) == 0


def test_frameworks_share_the_memory(photos_and_masks: Path) -> None:
    need("torch")
    import torch

    recipe = _recipe({"resize": {"size": [24, 24]}})
    masks = {"files": "../masks/{stem}.png", "dtype": "int32"}
    with _loader(photos_and_masks, recipe, masks, framework="torch") as loader:
        batch = next(iter(loader))
        assert batch.masks.dtype == torch.int32
        assert batch.masks.shape == (8, 24, 24)
        there = batch.to(torch.zeros(1, device="meta"))
        assert there.images.device == there.masks.device == torch.device("meta")
        moved = batch.to("cpu", torch.float32, copy=True)
        assert moved.images.dtype == torch.float32
        assert moved.masks.dtype == torch.int32
        assert moved.masks.data_ptr() != batch.masks.data_ptr()
        assert (moved.masks == batch.masks).all()
        same = batch.to(torch.uint8)
        assert same is batch
        del batch, same
    with _loader(photos_and_masks, recipe, None) as loader:
        batch = next(iter(loader))
        with pytest.raises(AttributeError, match="has no masks: give the loader masks"):
            _ = batch.masks


def test_a_bad_mask_is_a_failed_sample(photos_and_masks: Path, tmp_path: Path) -> None:
    import shutil

    from PIL import Image

    root = tmp_path / "bad"
    shutil.copytree(photos_and_masks, root)
    order = _order(root)
    (root / "masks" / f"{order[1]}.png").unlink()
    Image.fromarray(np.zeros((5, 4), np.uint8)).save(root / "masks" / f"{order[3]}.png")
    colours = np.random.default_rng(1).integers(0, 256, (*SIZES[order[5] % 4], 3), np.uint8)
    Image.fromarray(colours).save(root / "masks" / f"{order[5]}.png")
    recipe = _recipe({"resize": {"size": [16, 16]}})
    masks = {"files": "../masks/{stem}.png", "ignore": 255}
    with _loader(root, recipe, masks, on_error="skip") as loader:
        batches = list(loader)
        first = batches[0]
        faults = {fault.row: fault.reason for fault in first.faults}
        assert sorted(faults) == [1, 3, 5]
        assert f"mask {root}/masks/{order[1]}.png" in faults[1]
        assert "the mask has 4 x 5 pixels, and its image" in faults[3]
        assert "form: colors" in faults[5]
        got = np.array(first.masks)
        assert (got[[1, 3, 5]] == 255).all()
        assert not np.array(first.images)[[1, 3, 5]].any()
        del first, batches
    with pytest.raises(featherload.SampleError, match="mask .*png"):
        _masks(root, recipe)


def test_masks_of_tables(photos_and_masks: Path, tmp_path: Path) -> None:
    need("pyarrow")
    import pyarrow as pa
    import pyarrow.parquet

    order = _order(photos_and_masks)
    images = [next((photos_and_masks / "images").glob(f"*/{n}.png")) for n in order]
    masks = [photos_and_masks / "masks" / f"{n}.png" for n in order]
    recipe = _recipe({"resize": {"size": [20, 30]}})
    want = _masks(photos_and_masks, recipe)
    table = tmp_path / "table.csv"
    rows = [f"{a},{b}\n" for a, b in zip(images, masks, strict=True)]
    table.write_text("path,mask\n" + "".join(rows))
    options: dict[str, Any] = {"batch_size": 8, "shuffle": False, "num_workers": 2}
    with featherload.Loader(table, recipe, masks="mask", allow_outside=True, **options) as loader:
        got = np.concatenate([np.array(batch.masks) for batch in loader])
    assert (got == want).all()
    parquet = tmp_path / "table.parquet"
    columns = {
        "image": [path.read_bytes() for path in images],
        "mask": [path.read_bytes() for path in masks],
    }
    pyarrow.parquet.write_table(pa.table(columns), parquet)
    both = {"image_column": "image", "masks": "mask", **options}
    with featherload.Loader(parquet, recipe, **both) as loader:
        got = np.concatenate([np.array(batch.masks) for batch in loader])
    assert (got == want).all()


def test_masks_may_be_listed(photos_and_masks: Path) -> None:
    order = _order(photos_and_masks)
    images = [next((photos_and_masks / "images").glob(f"*/{n}.png")) for n in order]
    paths = [photos_and_masks / "masks" / f"{n}.png" for n in order]
    recipe = _recipe({"resize": {"size": [20, 30]}})
    rule = {"ignore": 255, "reduce_zero_label": True}
    want = _masks(photos_and_masks, recipe, {"files": "../masks/{stem}.png", **rule})
    options: dict[str, Any] = {"batch_size": 8, "shuffle": False, "num_workers": 2}
    for files in (paths, [path.read_bytes() for path in paths], [str(path) for path in paths]):
        masks = {"files": files, **rule}
        with featherload.Loader(images, recipe, masks=masks, **options) as loader:
            got = np.concatenate([np.array(batch.masks) for batch in loader])
        assert (got == want).all()
        planned = featherload.plan(images, recipe, 8, 2, masks=masks)
        assert planned["memory"]["slot_bytes"] == 8 * 4 * 20 * 30
    arrays = [np.asarray(_opened(photos_and_masks, n)) for n in order]
    with featherload.Loader(images, recipe, masks=arrays, **options) as loader:
        got = np.concatenate([np.array(batch.masks) for batch in loader])
    assert (got == _masks(photos_and_masks, recipe)).all()
    with pytest.raises(ConfigError, match="the list has 23 masks, and there are 24 images"):
        featherload.Loader(images, recipe, masks=paths[1:], **options)
    for values in (np.int32, np.bool_, np.uint16):
        arrays = [np.asarray(_opened(photos_and_masks, n) % 2, values) for n in order]
        with featherload.Loader(images, recipe, masks=arrays, **options) as loader:
            got = np.concatenate([np.array(batch.masks) for batch in loader])
        assert set(np.unique(got)) == {0, 1}
    for wrong in (3, [4, 5]):
        with pytest.raises(ConfigError, match="which is no list of masks"):
            featherload.Loader(images, recipe, masks=wrong, **options)


def test_errors_name_the_fix(photos_and_masks: Path) -> None:
    recipe = _recipe({"resize": {"size": [16, 16]}})
    root = photos_and_masks
    for masks, options, error, text in [
        ("../masks/{id}.png", {}, ConfigError, r"placeholders are \{stem\}"),
        ("mask", {}, ConfigError, "names a column, and this source has none"),
        ("../nothing/{stem}.png", {}, ConfigError, "nothing/0.png does not exist"),
        ({"ignore": 3}, {}, ConfigError, "masks need .files.: a pattern"),
        ({"files": "{stem}", "ignored": 3}, {}, ConfigError, "unknown field .ignored."),
        ({"files": "{stem}", "ignore": 256}, {}, ConfigError, "uint8 holds 0 to 255"),
    ]:
        with pytest.raises((error, DatasetError), match=text):
            _loader(root, recipe, masks, **options)
    mixed = _recipe({"resize": {"size": [16, 16]}}, {"aug_mix": {}})
    with pytest.raises(ConfigError, match="a pixel has no single label"):
        _loader(root, mixed)
    with pytest.raises(ConfigError, match="rows of own sizes have no masks"):
        _loader(root, "full")
    with pytest.raises(ConfigError, match="makes several crops"):
        _loader(root, [recipe, recipe])


def test_a_state_names_other_masks(photos_and_masks: Path) -> None:
    recipe = _recipe({"resize": {"size": [16, 16]}})
    with _loader(photos_and_masks, recipe) as loader:
        next(iter(loader))
        state = loader.state_dict()
    with _loader(photos_and_masks, recipe) as loader:
        loader.load_state_dict(state)
        assert len(list(loader)) == 2
    ignoring = {"files": "../masks/{stem}.png", "ignore": 255}
    for masks in (None, ignoring):
        with _loader(photos_and_masks, recipe, masks) as loader:
            loader.load_state_dict(state)
            with pytest.raises(ConfigError, match="the masks was"):
                next(iter(loader))


def test_the_plan_counts_masks(photos_and_masks: Path, cli: Cli) -> None:
    recipe = photos_and_masks / "recipe.yaml"
    recipe.write_text("featherload: 1\nops: [{resize: {size: [64, 64]}}, {cast: {dtype: u8}}]")
    base = [photos_and_masks / "images", "--recipe", recipe, "--batch-size", "4"]
    without = cli("plan", *base)["memory"]
    with_masks = cli("plan", *base, "--masks", "../masks/{stem}.png")["memory"]
    assert with_masks["slot_bytes"] == without["slot_bytes"] + 4 * 64 * 64
    assert with_masks["scratch_bytes"] > without["scratch_bytes"]
    assert with_masks["fixed_bytes"] > without["fixed_bytes"]
