"""Rows of tiles: the inputs of InternVL and LLaVA-NeXT, as the processors of transformers make
them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import need
from conftest import png as write_png

import featherload
from featherload import _patches, masks, recipes, samplers
from featherload._named_batches import NamedBatches

Make = Callable[..., featherload.Loader]

# Height and width. Squares of 22 to 34 pixels are beside the bounds at which tiles of 16 pixels
# become more. 24 x 36 is as far from one tile as from two.
SIZES = [
    *((1, 1), (1, 300), (300, 1), (5, 200), (16, 16), (22, 22), (23, 23), (33, 33), (34, 34)),
    *((24, 36), (32, 64), (64, 32), (64, 64), (96, 32), (33, 65), (100, 30), (30, 100), (57, 91)),
    (150, 149),
]
PINPOINTS = [[32, 64], [64, 32], [64, 64], [96, 32], [32, 96]]
INTERNVL = {"style": "internvl", "tile_size": 16, "max_tiles": 6}
LLAVA_NEXT = {"style": "llava_next", "tile_size": 32, "grid_pinpoints": PINPOINTS}
STYLES = [INTERNVL, LLAVA_NEXT]


def pixels(number: int, size: tuple[int, int]) -> Any:
    """Edges, but none near 0 or 255: torchvision also clips between the two passes."""
    rows, columns = np.mgrid[0 : size[0], 0 : size[1]]
    waves = [rows * 3 + number, columns * 5 + number, (rows + columns) * 5]
    return np.stack([wave % 196 + 30 for wave in waves], axis=-1).astype(np.uint8)


def write(folder: Path, sizes: Iterable[tuple[int, int]]) -> Path:
    """A folder of images with these sizes."""
    for number, size in enumerate(sizes):
        (folder / f"{number:02}.png").write_bytes(write_png(pixels(number, size)))
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("shapes"), SIZES)


def recipe(of: dict[str, Any], dtype: str = "u8") -> dict[str, Any]:
    return {"featherload": 1, "ops": [{"tiles": of}, {"cast": {"dtype": dtype}}]}


def internvl(side: int, **more: Any) -> Any:
    from transformers import GotOcr2ImageProcessor

    size = {"height": side, "width": side}
    return GotOcr2ImageProcessor(**{"crop_to_patches": True, "size": size, **more})


def llava_next(side: int, **more: Any) -> Any:
    from transformers import LlavaNextImageProcessor

    crop = {"height": side, "width": side}
    return LlavaNextImageProcessor(**{"size": {"shortest_edge": side}, "crop_size": crop, **more})


def llava_onevision(side: int, **more: Any) -> Any:
    from transformers import LlavaOnevisionImageProcessor

    return LlavaOnevisionImageProcessor(size={"height": side, "width": side}, **more)


HALVES = {"image_mean": [0.5] * 3, "image_std": [0.5] * 3}
CANVASES = [[16 * rows, 16 * columns] for rows in range(1, 5) for columns in range(1, 5)]
SMALL: list[Callable[[], Any]] = [
    lambda: internvl(16),
    lambda: internvl(20, min_patches=2, max_patches=6, **HALVES),
    # One tile or two.
    lambda: internvl(24, max_patches=2, resample=2),
    lambda: internvl(16, max_patches=1),
    lambda: llava_next(32, image_grid_pinpoints=PINPOINTS),
    # Of canvases that are as good, another one is first.
    lambda: llava_next(
        32, image_grid_pinpoints=PINPOINTS[::-1], do_center_crop=False, do_pad=False, resample=2
    ),
    lambda: llava_onevision(16, image_grid_pinpoints=CANVASES, **HALVES),
]
# With the numbers of the models.
LARGE: list[Callable[[], Any]] = [
    lambda: internvl(448),
    lambda: llava_next(336),
    lambda: llava_onevision(384),
]


def check(made: featherload.Loader, processor: Any, opened: Callable[[Path], Any]) -> int:
    """Compares an epoch with the processor. The number of its samples."""
    import torch

    seen = 0
    levels = torch.tensor(processor.image_std).reshape(3, 1, 1) * 255
    for batch in made:
        images = [opened(path) for path in batch.paths()]
        wanted = processor(images=images, return_tensors="pt", do_pad=True)
        patches, found = batch.patches, batch.patches.inputs()
        sizes = [[image.height, image.width] for image in images]
        assert patches.image_sizes.tolist() == sizes
        tiles = wanted["pixel_values"]
        if patches.style == "internvl":
            assert set(found) == {"pixel_values"}
            assert patches.counts.tolist() == wanted["num_patches"].tolist()
        else:
            assert set(found) == {"pixel_values", "image_sizes"}
            assert found["image_sizes"].dtype == wanted["image_sizes"].dtype
            assert found["image_sizes"].tolist() == wanted["image_sizes"].tolist()
            assert (patches.grid.prod(dim=1) + 1).tolist() == patches.counts.tolist()
            # The processor fills rows with zeros.
            counts = patches.counts.tolist()
            assert tiles.shape[1] == max(counts)
            tiles = torch.cat([row[:count] for row, count in zip(tiles, counts, strict=True)])
        got = found["pixel_values"]
        assert got.shape == tiles.shape and got.dtype == tiles.dtype
        apart = (got - tiles).abs() * levels
        # Without AVX2, torchvision rounds in another way.
        is_exact = torch.backends.cpu.get_cpu_capability() != "DEFAULT"
        assert float(apart.max()) < (0.01 if is_exact else 2.01)
        seen += len(batch.ids)
    return seen


def opened(path: Path) -> Any:
    from PIL import Image, ImageOps

    return ImageOps.exif_transpose(Image.open(path)).convert("RGB")


@pytest.mark.parametrize("which", range(len(SMALL)))
def test_inputs_are_those_of_the_processor(folder: Path, loader: Make, which: int) -> None:
    need("transformers")
    processor = SMALL[which]()
    made = loader(folder, recipe=processor, batch_size=5, framework="torch", dtype="f32")
    assert check(made, processor, opened) == len(SIZES)


@pytest.mark.parametrize("which", range(len(LARGE)))
def test_inputs_with_the_numbers_of_models(tmp_path: Path, loader: Make, which: int) -> None:
    need("transformers")
    processor = LARGE[which]()
    write(tmp_path, [(1, 300), (34, 34), (57, 91), (700, 340), (150, 149)])
    made = loader(tmp_path, recipe=processor, batch_size=2, framework="torch", dtype="f32")
    assert check(made, processor, opened) == 5


def test_turned_images(tmp_path: Path, loader: Make) -> None:
    """A processor gets images as Pillow opens them. A recipe of one's own turns them upright."""
    need("transformers")
    from PIL import Image

    exif = Image.Exif()
    exif[0x0112] = 6
    for number in range(2):
        image = Image.fromarray(pixels(number, (40, 90)))
        image.save(tmp_path / f"{number}.png", exif=exif)

    def stored(path: Path) -> Any:
        return Image.open(path).convert("RGB")

    for processor in (internvl(16), llava_next(32, image_grid_pinpoints=PINPOINTS)):
        made = loader(tmp_path, recipe=processor, batch_size=2, framework="torch", dtype="f32")
        assert check(made, processor, stored) == 2
    for of in STYLES:
        batch = next(iter(loader(tmp_path, recipe=recipe(of), batch_size=2)))
        assert batch.patches.image_sizes.tolist() == [[90, 40]] * 2
        rows, columns = batch.patches.grid[0]
        assert rows > columns


@pytest.mark.parametrize("of", STYLES)
def test_canvases_and_overviews(folder: Path, loader: Make, of: dict[str, Any]) -> None:
    """Tiles go row by row. The overview is first, or last among several tiles."""
    side = of["tile_size"]
    made = loader(folder, recipe=recipe(of), batch_size=5, shuffle=False, pad_last=True)
    padding = 0
    for batch in made:
        patches = batch.patches
        assert batch.images is patches.values and batch.layout == "nchw"
        assert batch.images.shape == (patches.counts.sum(), 3, side, side)
        assert (patches.style, patches.patch_size) == (of["style"], side)
        assert patches.merge_size == 1
        assert (patches.sizes == patches.grid * side).all()
        assert (np.diff(patches.offsets) == patches.counts).all()
        assert patches.image_sizes.dtype == np.int64
        for row, number in enumerate(batch.ids):
            rows, columns = patches.grid[row]
            first, end = patches.offsets[row : row + 2]
            canvas = patches.image(row)
            assert canvas.shape == (rows * side, columns * side, 3)
            if not rows:
                padding += 1
                assert first == end and patches.image_sizes[row].tolist() == [0, 0]
                with pytest.raises(ValueError, match=f"row {row} has no tiles: it is padding"):
                    patches.overview(row)
                continue
            assert tuple(patches.image_sizes[row]) == SIZES[number]
            tiles = canvas.reshape(rows, side, columns, side, 3).transpose(0, 2, 4, 1, 3)
            tiles = tiles.reshape(-1, 3, side, side)
            overview = patches.overview(row)
            assert overview.shape == (side, side, 3)
            whole = overview.transpose(2, 0, 1)[None]
            if of["style"] == "llava_next":
                wanted = np.concatenate([whole, tiles])
            else:
                wanted = tiles if rows * columns == 1 else np.concatenate([tiles, whole])
            assert (batch.images[first:end] == wanted).all()
        for name in ("mask", "tokens"):
            with pytest.raises(AttributeError, match="style"):
                getattr(patches, name)
    assert padding == -len(SIZES) % 5


def test_the_border_of_llava_next(tmp_path: Path, loader: Make) -> None:
    """The image keeps its ratio, in the middle. An odd line of the border comes after it."""
    sizes = [(64, 20), (20, 64), (64, 64), (30, 9)]
    write(tmp_path, sizes)
    batch = next(iter(loader(tmp_path, recipe=recipe(LLAVA_NEXT), batch_size=4, shuffle=False)))
    for row, size in enumerate(sizes):
        canvas = batch.patches.image(row)
        left, top, right, bottom = content(size, canvas.shape[:2])
        assert canvas[top:bottom, left:right].min() > 0
        inside = np.zeros(canvas.shape[:2], bool)
        inside[top:bottom, left:right] = True
        assert not canvas[~inside].any()
        assert batch.patches.overview(row).min() > 0


def content(size: tuple[int, int], canvas: tuple[int, ...]) -> tuple[int, int, int, int]:
    """Left, top, right and bottom of an image in its canvas."""
    down, across = (whole / side for whole, side in zip(canvas, size, strict=True))
    if across < down:
        height, width = min(int(np.ceil(size[0] * across)), canvas[0]), canvas[1]
    else:
        height, width = canvas[0], min(int(np.ceil(size[1] * down)), canvas[1])
    left, top = (canvas[1] - width) // 2, (canvas[0] - height) // 2
    return left, top, left + width, top + height


@pytest.mark.parametrize("of", STYLES)
def test_objects_are_in_the_canvas(tmp_path: Path, loader: Make, of: dict[str, Any]) -> None:
    sizes = [(60, 20), (20, 60), (64, 64), (31, 90), (90, 41)]
    write(tmp_path, sizes)
    shares = np.array([[0.1, 0.2, 0.5, 0.9], [0.0, 0.0, 1.0, 1.0]])
    boxes = [shares * np.array([width, height] * 2) for height, width in sizes]
    objects = {"files": [{"boxes": box, "labels": [1, 0]} for box in boxes]}
    options: dict[str, Any] = {"recipe": recipe(of), "objects": objects, "shuffle": False}
    made = loader(tmp_path, batch_size=len(sizes), **options)
    batch = next(iter(made))
    found, patches = batch.objects, batch.patches
    assert (found.sizes == patches.sizes).all()
    for row, size in enumerate(sizes):
        canvas = tuple(int(side) for side in patches.sizes[row])
        left, top, right, bottom = place = (0, 0, canvas[1], canvas[0])
        if of["style"] == "llava_next":
            left, top, right, bottom = place = content(size, canvas)
        assert tuple(found.content[row]) == place
        start, end = found.offsets[row : row + 2]
        wanted = shares * np.array([right - left, bottom - top] * 2) + [left, top, left, top]
        assert np.abs(found.boxes[start:end] - wanted).max() < 1e-3
        assert found.labels[start:end].tolist() == [1, 0]
    with pytest.raises(featherload.ConfigError, match="makes patches or tiles: use targets='list'"):
        loader(tmp_path, targets="detr", **options)


@pytest.mark.parametrize("of", STYLES)
def test_epochs_do_not_depend_on_workers(folder: Path, loader: Make, of: dict[str, Any]) -> None:
    epochs = []
    for workers in (1, 2, 3):
        made = loader(folder, recipe=recipe(of), batch_size=4, num_workers=workers, seed=5)
        epochs.append(
            [(batch.ids.copy(), batch.images.copy(), batch.patches.grid.copy()) for batch in made]
        )
    for other in epochs[1:]:
        for batch, same in zip(epochs[0], other, strict=True):
            assert all(np.array_equal(*pair) for pair in zip(batch, same, strict=True))


@pytest.mark.parametrize("of", STYLES)
def test_failed_rows_keep_their_place(tmp_path: Path, loader: Make, of: dict[str, Any]) -> None:
    write(tmp_path, [(40, 70)] * 5)
    broken = tmp_path / "03.png"
    # The header can be read.
    broken.write_bytes(broken.read_bytes()[:60])
    (tmp_path / "05.png").write_bytes(b"no picture")
    options: dict[str, Any] = {"on_error": "skip", "shuffle": False, "num_workers": 1}
    batch = next(iter(loader(tmp_path, recipe=recipe(of), batch_size=6, **options)))
    patches = batch.patches
    assert [fault.row for fault in batch.faults] == [3, 5]
    counts = patches.counts.tolist()
    assert counts == [counts[0]] * 5 + [0] and counts[0] > 2
    assert patches.image_sizes.tolist() == [[40, 70]] * 5 + [[0, 0]]
    first, end = patches.offsets[3:5]
    assert not batch.images[first:end].any()
    assert not patches.image(3).any() and not patches.overview(3).any()
    others = np.concatenate([batch.images[:first], batch.images[end:]])
    assert others.any(axis=(1, 2, 3)).all()
    inputs = patches.inputs()
    assert inputs["pixel_values"] is batch.images
    if of["style"] == "llava_next":
        assert inputs["image_sizes"].tolist() == [[40, 70]] * 5


@pytest.mark.parametrize(("of", "budget", "least"), [(INTERNVL, 20, 6), (LLAVA_NEXT, 13, 3)])
def test_batches_stay_within_a_budget(
    folder: Path, loader: Make, of: dict[str, Any], budget: int, least: int
) -> None:
    sampler = samplers.PatchBudget(budget)
    made = loader(folder, recipe=recipe(of), sampler=sampler, batch_size=8)
    seen: list[int] = []
    rows = set()
    for batch in made:
        assert len(batch.images) == batch.patches.counts.sum() <= budget
        assert len(batch.ids) <= 8
        rows.add(len(batch.ids))
        seen += batch.ids.tolist()
    assert sorted(seen) == list(range(len(SIZES)))
    assert len(rows) > 1
    tile = 3 * of["tile_size"] ** 2
    plan = featherload.plan(folder, recipe(of), 8, sampler=sampler, num_workers=1)
    assert plan["memory"]["slot_bytes"] <= budget * tile
    small = samplers.PatchBudget(least - 1)
    with pytest.raises(featherload.ConfigError, match=f"budget of a batch is {least - 1}: raise"):
        loader(folder, recipe=recipe(of), sampler=small)


def tiny_models() -> tuple[Any, Any]:
    """InternVL and LLaVA-NeXT with random weights, for tiles of 32 pixels. Token 3 is an image."""
    import torch
    from transformers import (
        CLIPVisionConfig,
        InternVLConfig,
        InternVLForConditionalGeneration,
        LlavaNextConfig,
        LlavaNextForConditionalGeneration,
        Qwen2Config,
    )
    from transformers.models.internvl.configuration_internvl import InternVLVisionConfig

    torch.manual_seed(1)
    layers: dict[str, Any] = {"hidden_size": 16, "intermediate_size": 16, "num_attention_heads": 2}
    text = Qwen2Config(vocab_size=8, num_hidden_layers=1, num_key_value_heads=2, **layers)
    layers |= {"image_size": 32, "patch_size": 8, "num_hidden_layers": 2}
    of_internvl = InternVLConfig(
        vision_config=InternVLVisionConfig(**layers),
        text_config=text,
        image_token_id=3,
        image_seq_length=4,
    )
    of_llava = LlavaNextConfig(
        vision_config=CLIPVisionConfig(**layers),
        text_config=text,
        image_token_index=3,
        image_grid_pinpoints=PINPOINTS,
    )
    return (
        InternVLForConditionalGeneration(of_internvl).eval(),
        LlavaNextForConditionalGeneration(of_llava).eval(),
    )


def test_models_take_batches_with_rows_without_images(tmp_path: Path, loader: Make) -> None:
    need("transformers")
    import torch

    write(tmp_path, [(40, 70), (64, 64), (33, 20)])
    (tmp_path / "03.png").write_bytes(b"no picture")
    more = {"batch_size": 5, "pad_last": True, "on_error": "skip", "framework": "torch"}
    styles = [{**INTERNVL, "tile_size": 32}, LLAVA_NEXT]
    for of, model in zip(styles, tiny_models(), strict=True):
        patches = next(iter(loader(tmp_path, recipe=recipe(of, "f32"), **more))).patches
        assert sorted(patches.counts.tolist())[:2] == [0, 0]
        inputs = patches.inputs()
        with torch.no_grad():
            features = model.get_image_features(**inputs).pooler_output
            tokens = sum(len(one.reshape(-1, 16)) for one in features)
            made = model(input_ids=torch.full((1, tokens), 3), **inputs)
        if of["style"] == "internvl":
            assert tokens == 4 * int(patches.counts.sum())
        else:
            assert len(features) == len(inputs["image_sizes"]) == 3
        assert made.logits.shape == (1, tokens, 8) and bool(made.logits.isfinite().all())


def test_tiles_go_with_their_batch(folder: Path, loader: Make) -> None:
    need("torch")
    import torch

    options: dict[str, Any] = {"batch_size": 3, "framework": "torch"}
    made = loader(folder, recipe=recipe(LLAVA_NEXT, "bf16"), **options)
    batch = next(iter(made))
    moved = batch.to(torch.float32)
    assert moved.patches.values is moved.images and moved.images.dtype == torch.float32
    assert bool((moved.patches.image_sizes == batch.patches.image_sizes).all())
    assert batch.patches.image(0).dtype == np.float32
    then = loader(folder, recipe=recipe(INTERNVL), then=lambda images: images + 1, **options)
    batch = next(iter(then))
    assert batch.patches.values is batch.images
    assert len(batch.images) == batch.patches.counts.sum()
    with pytest.raises(featherload.ConfigError, match="are patches"):
        masks.IbotMasks(4)(batch, crops=1)


def test_trainers_read_the_number_of_rows(tmp_path: Path, loader: Make) -> None:
    """Their first tensor has a row for each sample."""
    need("torch")
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        write(tmp_path / name, [(40, 70), (64, 64)])
    for of, names in [
        (INTERNVL, ["labels", "pixel_values"]),
        (LLAVA_NEXT, ["image_sizes", "labels", "pixel_values"]),
    ]:
        made = loader(tmp_path, recipe=recipe(of, "f32"), batch_size=4, framework="torch")
        named = next(NamedBatches(iter(made), ("pixel_values", "labels")))
        assert list(named) == names
        assert len(next(iter(named.values()))) == 4 < len(named["pixel_values"])


# Facts of three rows, of which one has no tiles. A value is the number of its tile and of its
# channel.
def facts(style: Any, in_rows: list[int]) -> tuple[_patches.Patches, Any]:
    numbers = np.arange(sum(in_rows))[:, None] * 10 + np.arange(3)
    values = np.broadcast_to(numbers[..., None, None], (*numbers.shape, 2, 2))
    grids, sizes = [(2, 3), (0, 0), (1, 1)], [(5, 7), (0, 0), (2, 2)]
    return _patches.of_batch((style, 2, 1, grids, in_rows, sizes), values), values


@pytest.mark.parametrize(
    ("style", "in_rows", "firsts", "overviews"),
    [("internvl", [7, 0, 1], (0, 7), (6, 7)), ("llava_next", [7, 0, 2], (1, 8), (0, 7))],
)
def test_facts_of_rows(
    style: Any, in_rows: list[int], firsts: tuple[int, int], overviews: tuple[int, int]
) -> None:
    patches, values = facts(style, in_rows)
    assert patches.counts.tolist() == in_rows
    assert patches.offsets.tolist() == [0, *np.cumsum(in_rows)]
    assert patches.sizes.tolist() == [[4, 6], [0, 0], [2, 2]]
    canvas = patches.image(0)
    assert canvas.shape == (4, 6, 3)
    assert (canvas[0::2, 0::2, 0] == 10 * (firsts[0] + np.arange(6).reshape(2, 3))).all()
    assert (canvas[1::2, 1::2, 2] == canvas[0::2, 0::2, 0] + 2).all()
    assert patches.image(1).shape == (0, 0, 3)
    # Rows are counted from the end, too.
    assert (patches.image(-1)[0, 0] == values[firsts[1], :, 0, 0]).all()
    for row, tile in zip((0, 2), overviews, strict=True):
        assert (patches.overview(row) == values[tile].transpose(1, 2, 0)).all()
    with pytest.raises(ValueError, match="row 1 has no tiles"):
        patches.overview(1)
    with pytest.raises(IndexError):
        patches.image(3)
    inputs = patches.inputs()
    assert inputs.pop("pixel_values") is values
    sizes = {name: array.tolist() for name, array in inputs.items()}
    assert sizes == ({} if style == "internvl" else {"image_sizes": [[5, 7], [2, 2]]})


def test_patches_have_no_overview() -> None:
    found: Any = ("qwen", 2, 1, [(1, 1)], [1], [(2, 2)])
    patches = _patches.of_batch(found, np.zeros((1, 12)))
    with pytest.raises(AttributeError, match="only tiles have an overview, and style qwen"):
        patches.overview(0)
    assert patches.image_sizes.tolist() == [[2, 2]]


@pytest.mark.parametrize(
    ("of", "text"),
    [
        ({"style": "internvl", "grid_pinpoints": [[448, 448]]}, "grid_pinpoints .*llava_next"),
        ({"style": "llava_next", "min_tiles": 1}, "min_tiles .*internvl"),
        ({"style": "llava_next", "max_tiles": 3}, "max_tiles .*internvl"),
        ({"style": "internvl", "tile_size": 0}, "tile_size"),
        ({"style": "internvl", "tile_size": 2049}, "tile_size"),
        ({"style": "internvl", "max_tiles": 0}, "max_tiles"),
        ({"style": "internvl", "max_tiles": 257}, "max_tiles"),
        ({"style": "internvl", "min_tiles": 0}, "min_tiles"),
        ({"style": "internvl", "min_tiles": 4, "max_tiles": 3}, "min_tiles 4 .*max_tiles"),
        ({"style": "llava_next", "grid_pinpoints": []}, "grid_pinpoints"),
        ({"style": "llava_next", "grid_pinpoints": [[336, 336]] * 65}, "grid_pinpoints"),
        ({"style": "llava_next", "grid_pinpoints": [[336, 500]]}, "500.*multiples of tile_size"),
        ({"style": "llava_next", "tile_size": 1, "grid_pinpoints": [[17, 17]]}, "256 tiles"),
        ({"style": "qwen"}, "qwen"),
        ({"style": "internvl", "merge_size": 2}, "merge_size"),
    ],
)
def test_parameters_out_of_range(folder: Path, loader: Make, of: dict[str, Any], text: str) -> None:
    with pytest.raises(featherload.ConfigError, match=text):
        loader(folder, recipe=recipe(of))


@pytest.mark.parametrize(
    "other",
    [{"resize": {"size": [32, 32]}}, {"patches": {"style": "qwen"}}, {"tiles": dict(INTERNVL)}],
)
def test_no_other_operation_changes_the_size(
    folder: Path, loader: Make, other: dict[str, Any]
) -> None:
    for ops in ([{"tiles": INTERNVL}, other], [other, {"tiles": INTERNVL}]):
        with pytest.raises(featherload.ConfigError, match="tiles"):
            loader(folder, recipe={"featherload": 1, "ops": ops})


# As the hub's files have them.
INTERNVL_CONFIG = {
    "image_processor_type": "GotOcr2ImageProcessorFast",
    "processor_class": "InternVLProcessor",
    "crop_to_patches": True,
    "min_patches": 1,
    "max_patches": 12,
    "size": {"height": 448, "width": 448},
    "crop_size": None,
    "data_format": "channels_first",
    "default_to_square": True,
    "do_center_crop": None,
    "resample": 3,
}
LLAVA_CONFIG = {
    "image_processor_type": "LlavaNextImageProcessor",
    "processor_class": "LlavaNextProcessor",
    "aspect_ratio_setting": "anyres",
    "crop_size": {"height": 336, "width": 336},
    "do_center_crop": True,
    "do_pad": True,
    "size": {"shortest_edge": 336},
}


def operation(config: Any) -> dict[str, Any]:
    """The operation that changes the size."""
    made: dict[str, Any] = recipes.preprocessor(config)["ops"][1]
    return made


def test_configs_of_models() -> None:
    tiles = {"style": "internvl", "tile_size": 448, "min_tiles": 1, "max_tiles": 12}
    assert operation(INTERNVL_CONFIG) == {"tiles": {**tiles, "interpolation": "bicubic"}}
    whole = {"resize": {"size": [448, 448], "interpolation": "bicubic"}}
    for crops in ({"crop_to_patches": False}, {"crop_to_patches": None}):
        assert operation({**INTERNVL_CONFIG, **crops}) == whole
    pinpoints = [[336, 672], [672, 336], [672, 672], [1008, 336], [336, 1008]]
    wanted = {"tiles": {"style": "llava_next", "tile_size": 336, "grid_pinpoints": pinpoints}}
    wanted["tiles"]["interpolation"] = "bicubic"
    assert operation(LLAVA_CONFIG) == wanted
    for size in (336, {"height": 336, "width": 336}):
        assert operation({**LLAVA_CONFIG, "size": size, "crop_size": size}) == wanted
    onevision = operation({"image_processor_type": "LlavaOnevisionImageProcessor"})["tiles"]
    assert onevision["tile_size"] == 384
    assert len(onevision["grid_pinpoints"]) == 36
    assert onevision["grid_pinpoints"][5:7] == [[384, 2304], [768, 384]]


def test_defaults_are_those_of_the_classes() -> None:
    need("transformers")
    for of_class, missing in [
        (internvl(384), {"crop_to_patches": True}),
        (llava_next(336), {"size": 336, "crop_size": 336}),
        (llava_onevision(384), {}),
    ]:
        config = {"image_processor_type": type(of_class).__name__, **missing}
        assert recipes.preprocessor(config)["ops"] == recipes.preprocessor(of_class)["ops"]
    # Its tiles are smaller than those of its canvases.
    with pytest.raises(featherload.ConfigError, match="multiples .*which is 224"):
        recipes.preprocessor({"image_processor_type": "LlavaNextImageProcessor"})


def test_a_processor_of_internvl_makes_tiles(folder: Path, loader: Make) -> None:
    """It calls its image processor with crop_to_patches, whatever that has."""
    need("transformers")
    from tokenizers import Tokenizer, models
    from transformers import InternVLProcessor, InternVLVideoProcessor, PreTrainedTokenizerFast

    names = ["<unk>", "<img>", "</img>", "<image>", "<video>"]
    words = models.WordLevel({name: at for at, name in enumerate(names)}, unk_token="<unk>")
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(words),
        unk_token="<unk>",
        pad_token="<unk>",
        extra_special_tokens={
            "start_image_token": "<img>",
            "end_image_token": "</img>",
            "context_image_token": "<image>",
            "video_token": "<video>",
        },
    )
    inner = internvl(16, crop_to_patches=False)
    processor = InternVLProcessor(inner, tokenizer, InternVLVideoProcessor(), image_seq_length=1)
    assert operation(processor) == operation(internvl(16))
    assert "resize" in operation(inner)
    made = loader(folder, recipe=processor, batch_size=5, framework="torch", dtype="f32")
    batch = next(iter(made))
    images = [opened(path) for path in batch.paths()]
    wanted = processor(images=images, text=["<image>"] * 5, padding=True, return_tensors="pt")
    apart = (batch.patches.inputs()["pixel_values"] - wanted["pixel_values"]).abs()
    assert float(apart.max()) * min(inner.image_std) * 255 < 2.01


@pytest.mark.parametrize(
    ("config", "more", "text"),
    [
        (INTERNVL_CONFIG, {"do_resize": False}, "do_resize=False of GotOcr2.*whole tiles"),
        (INTERNVL_CONFIG, {"size": {"height": 448, "width": 224}}, "size=.*square"),
        (INTERNVL_CONFIG, {"size": {"shortest_edge": 448}}, "size=.*square"),
        (INTERNVL_CONFIG, {"crop_size": {"height": 448, "width": 448}}, "crop_size=.*unknown"),
        (INTERNVL_CONFIG, {"image_grid_pinpoints": [[448, 448]]}, "image_grid_pinpoints=.*unknown"),
        (INTERNVL_CONFIG, {"do_pad": True}, "do_pad=True of .*unknown"),
        (INTERNVL_CONFIG, {"max_patches": 0}, "max_patches=0 of .*at least 1"),
        (INTERNVL_CONFIG, {"min_patches": 1.5}, "min_patches=1.5 of .*whole number"),
        (INTERNVL_CONFIG, {"crop_to_patches": 1}, "crop_to_patches=1.*neither true nor false"),
        (INTERNVL_CONFIG, {"resample": 0}, "resample=0"),
        (LLAVA_CONFIG, {"crop_size": {"height": 224, "width": 224}}, "crop_size=.*which is 336"),
        (LLAVA_CONFIG, {"crop_size": None}, "crop_size=224 of .*which is 336: give"),
        (LLAVA_CONFIG, {"crop_size": {"shortest_edge": 336}}, "crop_size=.*square"),
        (LLAVA_CONFIG, {"size": {"longest_edge": 336}}, "size=.*square"),
        (
            LLAVA_CONFIG,
            {"size": 224, "crop_size": 224},
            r"image_grid_pinpoints with \[336, 672\] .*multiples .*which is 224: give",
        ),
        (LLAVA_CONFIG, {"image_grid_pinpoints": []}, "image_grid_pinpoints=.*no list"),
        (LLAVA_CONFIG, {"image_grid_pinpoints": [336]}, "image_grid_pinpoints with 336 "),
        (LLAVA_CONFIG, {"image_grid_pinpoints": [[0, 336]]}, "image_grid_pinpoints=0 .*at least 1"),
        (LLAVA_CONFIG, {"aspect_ratio_setting": "pad"}, "aspect_ratio_setting='pad'"),
        (LLAVA_CONFIG, {"do_pad": "no"}, "do_pad='no'"),
        (LLAVA_CONFIG, {"max_patches": 9}, "max_patches=9 of .*unknown"),
        (LLAVA_CONFIG, {"data_format": "channels_last"}, "data_format"),
    ],
)
def test_configs_that_mean_something_else_are_refused(
    config: dict[str, Any], more: dict[str, Any], text: str
) -> None:
    with pytest.raises(featherload.ConfigError, match=text):
        recipes.preprocessor({**config, **more})
