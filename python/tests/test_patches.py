"""Rows of patches: the inputs of vision-language models, as the processors of transformers make
them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import need
from conftest import png as write_png

import featherload
from featherload import _preview, recipes, samplers

Make = Callable[..., featherload.Loader]

IMAGES = 13
QWEN = {"style": "qwen", "patch_size": 7, "min_pixels": 784, "max_pixels": 6000}
SIGLIP2 = {"style": "siglip2", "patch_size": 8, "max_num_patches": 40}


def size(number: int) -> tuple[int, int]:
    """Height and width of an image."""
    return 9 + number * 37 % 90, 12 + number * 53 % 110


def pixels(number: int) -> Any:
    """Edges, but none near 0 or 255: torchvision also clips between the two passes."""
    height, width = size(number)
    rows, columns = np.mgrid[0:height, 0:width]
    waves = [(rows * 3 + number) % 196 + 30, columns * 2, (rows + columns) * 5 % 196 + 30]
    return np.stack(waves, axis=-1).astype(np.uint8)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("shapes")
    for number in range(IMAGES):
        (made / f"{number:02}.png").write_bytes(write_png(pixels(number)))
    return made


def recipe(of: dict[str, Any], dtype: str = "u8") -> dict[str, Any]:
    return {"featherload": 1, "ops": [{"patches": of}, {"cast": {"dtype": dtype}}]}


def processors() -> list[Any]:
    """Processors of the classes with numbers of the models, and smaller ones."""
    from transformers import Qwen2VLImageProcessor, Siglip2ImageProcessor

    small = {"shortest_edge": 784, "longest_edge": 8000}
    halves = {"image_mean": [0.5] * 3, "image_std": [0.5] * 3}
    return [
        Qwen2VLImageProcessor(),
        Qwen2VLImageProcessor(size=small, patch_size=7, merge_size=3, temporal_patch_size=1),
        # Qwen3-VL.
        Qwen2VLImageProcessor(
            size={"shortest_edge": 65536, "longest_edge": 16777216}, patch_size=16, **halves
        ),
        Siglip2ImageProcessor(),
        Siglip2ImageProcessor(patch_size=8, max_num_patches=30),
    ]


@pytest.mark.parametrize("which", range(5))
def test_inputs_are_those_of_the_processor(folder: Path, loader: Make, which: int) -> None:
    need("transformers")
    import torch
    from PIL import Image

    processor = processors()[which]
    made = loader(folder, recipe=processor, batch_size=5, framework="torch", dtype="f32")
    seen = 0
    for batch in made:
        paths = batch.paths()
        images = [Image.open(path).convert("RGB") for path in paths]
        wanted = processor(images=images, return_tensors="pt")
        found = batch.patches.inputs()
        assert set(found) == set(wanted)
        for key, value in wanted.items():
            got = found[key]
            assert got.shape == value.shape and got.dtype == value.dtype, key
            if key != "pixel_values":
                assert bool((got == value).all()), key
        levels = float(np.max(processor.image_std)) * 255
        apart = (found["pixel_values"] - wanted["pixel_values"]).abs() * levels
        # Without AVX2, torchvision rounds in another way.
        is_exact = torch.backends.cpu.get_cpu_capability() != "DEFAULT"
        assert float(apart.max()) < (0.01 if is_exact else 2.01)
        seen += len(batch.ids)
    assert seen == IMAGES


@pytest.mark.parametrize("more", [{}, {"patch_size": {"height": 8, "width": 8}}, {"plain": True}])
def test_pix2struct_inputs_are_those_of_the_processor(
    folder: Path, loader: Make, more: dict[str, Any]
) -> None:
    need("transformers")
    from PIL import Image
    from transformers import Pix2StructImageProcessor

    numbers = {key: value for key, value in more.items() if key != "plain"}
    processor = Pix2StructImageProcessor(
        max_patches=40, do_normalize="plain" not in more, **numbers
    )
    made = loader(folder, recipe=processor, batch_size=5, framework="torch", dtype="f32")
    seen = 0
    for batch in made:
        images = [Image.open(path).convert("RGB") for path in batch.paths()]
        wanted = processor(images=images, return_tensors="pt")
        found = batch.patches.inputs()
        assert sorted(found) == sorted(wanted)
        assert found["attention_mask"].equal(wanted["attention_mask"])
        values, other = found["flattened_patches"], wanted["flattened_patches"]
        assert values.shape == other.shape and values.dtype == other.dtype
        # The places of patches, and zeros after them.
        assert values[..., :2].equal(other[..., :2])
        unit = 1.0 if "plain" in more else 1 / 60
        assert float((values - other).abs().max()) < 2e-3 * unit
        for row, image in enumerate(images):
            shown = batch.patches.image(row)
            grid = batch.patches.grid[row] * processor.patch_size["height"]
            assert shown.shape == (*grid.tolist(), 3), image
        seen += len(batch.ids)
    assert seen == IMAGES


def test_inputs_of_a_model_keep_their_names(loader: Make, folder: Path, tmp_path: Path) -> None:
    """Patches come last, under the name that the model has for them. Nothing replaces an input."""
    from featherload._named_batches import NamedBatches

    need("torch")
    table = tmp_path / "table.csv"
    head = "path,label,attention_mask,flattened_patches,caption\n"
    lines = [f"{number:02}.png,{number},1,2,c{number}\n" for number in range(IMAGES)]
    table.write_text(head + "".join(lines))
    rows = {"ops": ["standardize", {"patches": {"style": "pix2struct", "max_num_patches": 40}}]}

    def named(names: tuple[str, str] = ("pixel_values", "labels"), **more: Any) -> Any:
        made = loader(table, recipe=rows, batch_size=4, framework="torch", root=folder, **more)
        return next(NamedBatches(iter(made), names))

    found = named(columns=["caption"])
    assert list(found) == ["attention_mask", "labels", "caption", "flattened_patches"]
    assert found["attention_mask"].shape == (4, 40) and found["labels"].shape == (4,)
    assert list(named(("images", "labels"))) == ["attention_mask", "labels", "images"]
    for column in ("attention_mask", "flattened_patches"):
        with pytest.raises(featherload.ConfigError, match=f"same name, '{column}'") as raised:
            named(columns=[column])
        assert raised.value.option == "columns"
    for name in ("attention_mask", "flattened_patches"):
        with pytest.raises(featherload.ConfigError, match=f"same name, '{name}'") as raised:
            named(("pixel_values", name))
        assert raised.value.option == "names"


def test_a_preview_of_standardised_values_has_their_colours(loader: Make, tmp_path: Path) -> None:
    image = np.zeros((8, 12, 3), np.uint8)
    image[:, :6, 0] = 250
    (tmp_path / "red.png").write_bytes(write_png(image))
    for color in ("rgb", "bgr"):
        ops = [{"decode": {"color": color}}, {"resize": {"size": [8, 12]}}, "standardize"]
        made = loader(tmp_path, recipe={"ops": ops}, batch_size=1)
        batch = next(iter(made))
        shown = _preview._levels(np.moveaxis(batch.images[0], 0, -1), made.recipe)
        assert shown[4, 2].tolist() == [255, 0, 0] and not shown[4, 10].any(), color


def test_pix2struct_grids_are_those_of_the_processor(loader: Make, tmp_path: Path) -> None:
    """Of narrow images, too: a side has at least one patch."""
    need("transformers")
    from PIL import Image
    from transformers import Pix2StructImageProcessor

    sizes = [(1, 1), (1, 300), (300, 1), (2, 500), (16, 16), (31, 97), (100, 100), (7, 2000)]
    for number, (height, width) in enumerate(sizes):
        image = np.full((height, width, 3), 90, np.uint8)
        image[: max(1, height // 2), : max(1, width // 2)] = 160
        (tmp_path / f"{number}.png").write_bytes(write_png(image))
    processor = Pix2StructImageProcessor(max_patches=50)
    batch = next(iter(loader(tmp_path, recipe=processor, batch_size=8, framework="torch")))
    images = [Image.open(path).convert("RGB") for path in batch.paths()]
    wanted = processor(images=images, return_tensors="pt")["flattened_patches"]
    assert batch.images[..., :2].equal(wanted[..., :2])
    assert float((batch.images - wanted).abs().max()) < 1e-3


def test_pix2struct_is_refused_where_its_numbers_do_not_fit(loader: Make, folder: Path) -> None:
    need("transformers")
    from transformers import Pix2StructImageProcessor

    processor = Pix2StructImageProcessor(max_patches=300)
    with pytest.raises(featherload.ConfigError, match="bf16 holds whole numbers up to 256.*f32"):
        loader(folder, recipe=processor, batch_size=2, dtype="bf16")
    with pytest.raises(featherload.ConfigError, match="is_vqa=True.*write the question"):
        recipes.preprocessor(Pix2StructImageProcessor(is_vqa=True))
    with pytest.raises(featherload.ConfigError, match="image_mean.*the key is unknown"):
        recipes.preprocessor(processor.to_dict() | {"image_mean": [0.5] * 3})


def test_models_take_rows_without_images(folder: Path, loader: Make, tmp_path: Path) -> None:
    need("transformers")
    import torch
    from transformers.models.qwen2_vl.configuration_qwen2_vl import Qwen2VLVisionConfig
    from transformers.models.qwen2_vl.modeling_qwen2_vl import (
        Qwen2VisionTransformerPretrainedModel,
    )
    from transformers.models.siglip2.configuration_siglip2 import Siglip2VisionConfig
    from transformers.models.siglip2.modeling_siglip2 import Siglip2VisionModel

    for number in range(3):
        (tmp_path / f"{number}.png").write_bytes(write_png(pixels(number)))
    (tmp_path / "3.png").write_bytes(b"no picture")

    def inputs(of: dict[str, Any]) -> Any:
        more = {"batch_size": 5, "pad_last": True, "on_error": "skip", "framework": "torch"}
        batch = next(iter(loader(tmp_path, recipe=recipe(of, "f32"), **more)))
        assert sorted(batch.patches.counts.tolist())[:2] == [0, 0]
        return batch.patches.inputs()

    torch.manual_seed(1)
    qwen = Qwen2VisionTransformerPretrainedModel(
        Qwen2VLVisionConfig(depth=1, embed_dim=32, hidden_size=16, num_heads=2, patch_size=7)
    )
    siglip2 = Siglip2VisionModel(
        Siglip2VisionConfig(
            hidden_size=32,
            intermediate_size=32,
            num_hidden_layers=1,
            num_attention_heads=2,
            num_patches=16,
            patch_size=8,
        )
    )
    with torch.no_grad():
        of_qwen = inputs(QWEN)
        assert len(of_qwen["image_grid_thw"]) == 3
        qwen(of_qwen["pixel_values"], grid_thw=of_qwen["image_grid_thw"])
        made = siglip2(**inputs(SIGLIP2))
    assert made.pooler_output.shape == (5, 32)
    assert bool(made.pooler_output.isfinite().all())


def test_a_model_takes_them(folder: Path, loader: Make) -> None:
    need("transformers")
    import torch
    from transformers.models.qwen2_vl.configuration_qwen2_vl import Qwen2VLVisionConfig
    from transformers.models.qwen2_vl.modeling_qwen2_vl import (
        Qwen2VisionTransformerPretrainedModel,
    )

    config = Qwen2VLVisionConfig(depth=1, embed_dim=32, hidden_size=16, num_heads=2, patch_size=7)
    torch.manual_seed(1)
    model = Qwen2VisionTransformerPretrainedModel(config)
    made = loader(folder, recipe=recipe(QWEN, "f32"), batch_size=4, framework="torch")
    batch = next(iter(made))
    inputs = batch.patches.inputs()
    with torch.no_grad():
        made_of = model(inputs["pixel_values"], grid_thw=inputs["image_grid_thw"])
    tokens = getattr(made_of, "pooler_output", made_of)
    assert len(tokens) == int(batch.patches.tokens.sum())


@pytest.mark.parametrize("of", [QWEN, SIGLIP2])
def test_rows_grids_and_offsets(folder: Path, loader: Make, of: dict[str, Any]) -> None:
    made = loader(folder, recipe=recipe(of), batch_size=5, pad_last=True)
    padding = 0
    for batch in made:
        patches = batch.patches
        side = of["patch_size"]
        assert batch.images is patches.values
        assert patches.style == of["style"] and patches.patch_size == side
        assert (patches.sizes == patches.grid * side).all()
        assert (patches.counts == patches.grid.prod(axis=1)).all()
        assert len(patches.offsets) == len(batch.ids) + 1
        padding += int((patches.counts == 0).sum())
        pairs = zip(batch.ids, patches.counts, strict=True)
        sizes = [list(size(int(id))) if count else [0, 0] for id, count in pairs]
        assert patches.image_sizes.tolist() == sizes
        if of["style"] == "qwen":
            assert batch.images.shape == (patches.counts.sum(), 2 * 3 * side * side)
            assert (np.diff(patches.offsets) == patches.counts).all()
            assert (patches.tokens * 4 == patches.counts).all()
            with pytest.raises(AttributeError, match="siglip2"):
                _ = patches.mask
        else:
            assert batch.images.shape == (5, 40, 3 * side * side)
            assert (patches.offsets == np.arange(6) * 40).all()
            assert patches.mask.sum(axis=1).tolist() == patches.counts.tolist()
            assert not batch.images[patches.mask == 0].any()
            first = batch.images[0, 0].reshape(side, side, 3)
            # The image keeps nearly its ratio, and grows: its corner stays.
            assert abs(int(first[0, 0, 0]) - int(pixels(int(batch.ids[0]))[0, 0, 0])) < 30
    assert padding == 2


def test_patches_go_with_their_batch(folder: Path, loader: Make) -> None:
    need("torch")
    import torch

    made = loader(folder, recipe=recipe(QWEN, "bf16"), batch_size=3, framework="torch")
    batch = next(iter(made))
    moved = batch.to(torch.float32)
    assert moved.patches.values is moved.images
    assert moved.images.dtype == torch.float32
    assert bool((moved.patches.grid == batch.patches.grid).all())
    assert batch.numpy()[0].shape == tuple(batch.images.shape)
    assert "patches" not in repr(batch) and str(batch.images.shape[0]) in repr(batch)


def test_failed_rows_keep_their_place(folder: Path, loader: Make, tmp_path: Path) -> None:
    for number in range(4):
        (tmp_path / f"{number}.png").write_bytes(write_png(pixels(number)))
    whole = write_png(pixels(9))
    # The header can be read.
    (tmp_path / "4.png").write_bytes(whole[: len(whole) // 2])
    made = loader(
        tmp_path, recipe=recipe(QWEN), batch_size=5, on_error="skip", shuffle=False, num_workers=1
    )
    batch = next(iter(made))
    [fault] = batch.faults
    offsets = batch.patches.offsets
    lost = batch.images[offsets[fault.row] : offsets[fault.row + 1]]
    assert len(lost) > 0 and not lost.any()
    assert batch.images[: offsets[fault.row]].any(axis=1).all()


def test_batches_without_patches_have_none(folder: Path, loader: Make) -> None:
    made = loader(folder, recipe="eval224", batch_size=2)
    with pytest.raises(AttributeError, match="recipe with patches"):
        _ = next(iter(made)).patches


def test_rows_as_images(folder: Path, loader: Make) -> None:
    """Each row is its resized image, also where the preview draws it."""
    for of in (QWEN, {**QWEN, "merge_size": 1, "temporal_patch_size": 1}, SIGLIP2):
        made = loader(folder, recipe=recipe(of), batch_size=IMAGES, shuffle=False)
        batch = next(iter(made))
        preview = made.preview(rows=3)
        for row in range(IMAGES):
            image = batch.patches.image(row)
            assert image.shape == (*batch.patches.sizes[row].tolist(), 3)
            small = pixels(int(batch.ids[row]))
            width = small.shape[1]
            # The second channel is linear in the column, as in a resize by nearest pixels.
            columns = (np.arange(image.shape[1]) + 0.5) * width / image.shape[1] - 0.5
            wanted = np.clip(columns, 0, width - 1) * 2
            apart = np.abs(image[..., 1].astype(float) - wanted[None])
            assert apart[:, 4:-4].max() < 3
        assert f"{batch.patches.sizes[0][1]} x {batch.patches.sizes[0][0]}" in str(preview)


def test_functions_on_batches_of_patches(folder: Path, loader: Make) -> None:
    made = loader(folder, recipe=recipe(QWEN), batch_size=4, then=lambda images: images + 1)
    batch = next(iter(made))
    assert batch.patches.values is batch.images
    assert len(batch.images) == batch.patches.counts.sum()
    with pytest.raises(featherload.ConfigError, match="are patches"):
        featherload.masks.IbotMasks(4)(batch, crops=1)


QWEN_CONFIG = {"image_processor_type": "Qwen2VLImageProcessorFast"}


def test_configs_of_models(tmp_path: Path) -> None:
    qwen2 = {**QWEN_CONFIG, "min_pixels": 3136, "max_pixels": 12845056, "crop_size": None}
    op = recipes.preprocessor(qwen2)["ops"][1]["patches"]
    assert (op["min_pixels"], op["max_pixels"], op["patch_size"]) == (3136, 12845056, 14)
    size = {"longest_edge": 16777216, "shortest_edge": 65536}
    qwen3 = {**QWEN_CONFIG, "size": size, "patch_size": 16}
    op = recipes.preprocessor(qwen3)["ops"][1]["patches"]
    assert (op["min_pixels"], op["max_pixels"], op["patch_size"]) == (65536, 16777216, 16)
    siglip2 = {"image_processor_type": "Siglip2ImageProcessorFast", "max_num_patches": 1024}
    size = {"max_pixels": 12845056, "min_pixels": 3136}
    older = {**QWEN_CONFIG, **size, "size": size, "default_to_square": True, "do_pad": False}
    op = recipes.preprocessor(older)["ops"][1]["patches"]
    assert (op["min_pixels"], op["max_pixels"]) == (3136, 12845056)
    half = {**QWEN_CONFIG, "size": {"shortest_edge": 900}, "max_pixels": 90000}
    op = recipes.preprocessor(half)["ops"][1]["patches"]
    assert (op["min_pixels"], op["max_pixels"]) == (900, 90000)
    op = recipes.preprocessor(siglip2)["ops"][1]["patches"]
    assert op == {
        "style": "siglip2",
        "patch_size": 16,
        "max_num_patches": 1024,
        "interpolation": "bilinear",
    }


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"do_resize": False}, "do_resize=False of Qwen2VL.*whole patches"),
        ({"size": {"height": 3, "width": 3}}, "size=.*shortest_edge and longest_edge"),
        ({"size": {"shortest_edge": 3}}, "size=.*shortest_edge and longest_edge"),
        ({"do_pad": True}, "do_pad=True of .*unknown"),
        ({"min_pixels": 0}, "min_pixels=0 of .*at least 1"),
        ({"max_num_patches": 9}, "max_num_patches=9 of .*unknown"),
        ({"data_format": "channels_last"}, "data_format"),
        ({"resample": 0}, "resample=0"),
    ],
)
def test_configs_that_mean_something_else_are_refused(more: dict[str, Any], text: str) -> None:
    with pytest.raises(featherload.ConfigError, match=text):
        recipes.preprocessor({**QWEN_CONFIG, **more})


def test_batches_stay_within_a_budget(folder: Path, loader: Make) -> None:
    made = loader(folder, recipe=recipe(QWEN), sampler=samplers.PatchBudget(250), batch_size=8)
    seen: list[int] = []
    rows = set()
    for batch in made:
        assert len(batch.images) == batch.patches.counts.sum() <= 250
        assert len(batch.ids) <= 8
        rows.add(len(batch.ids))
        seen += batch.ids.tolist()
    assert sorted(seen) == list(range(IMAGES))
    assert len(rows) > 1
    assert sorted(made.sampler) == list(range(IMAGES))
    plan = featherload.plan(
        folder, recipe(QWEN), 8, sampler=samplers.PatchBudget(250), num_workers=1
    )
    assert plan["memory"]["slot_bytes"] <= 250 * 2 * 3 * 7 * 7
    with pytest.raises(featherload.ConfigError, match="patches 0 is too small"):
        loader(folder, recipe=recipe(QWEN), sampler=samplers.PatchBudget(0))
    with pytest.raises(featherload.ConfigError, match="the budget of a batch is 20: raise it"):
        loader(folder, recipe=recipe(QWEN), sampler=samplers.PatchBudget(20))
