"""Dataset configs of sd-scripts. Expected values are those of its own code (48d368f)."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import need, png

import featherload
from featherload import ConfigError, DatasetError, kohya

# Width and height of the images of each folder.
TRAIN = {"a": (300, 200), "b_1_10_20_30_40": (200, 300), "c": (256, 256), "d": (90, 310)}
REG = {"r0": (128, 128), "r1": (320, 128), "r2": (100, 160)}


def write_images(folder: Path, sizes: dict[str, tuple[int, int]]) -> None:
    folder.mkdir(parents=True)
    for number, (name, (width, height)) in enumerate(sizes.items()):
        pixels = np.full((height, width, 3), number, np.uint8)
        (folder / f"{name}.png").write_bytes(png(pixels))


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folders with images and captions, as the working directory."""
    write_images(tmp_path / "train", TRAIN)
    write_images(tmp_path / "reg", REG)
    train = tmp_path / "train"
    (train / "a.txt").write_text(" 1girl, solo \nsecond {line|row}\n\nthird\n")
    (train / "b_1.txt").write_text("face, smile")
    (train / "c.txt").write_text("\nafter a blank line\n")
    (tmp_path / "reg" / "r1.txt").write_text("a photo, of a girl\n")
    # Neither of them is read.
    write_images(train / "sub", {"e": (64, 64)})
    (train / "f.Png").write_bytes(b"")
    (train / ".hidden.png").write_bytes(b"")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def read(root: Path, text: str, **options: Any) -> list[kohya.Dataset]:
    (root / "dataset.toml").write_text(text)
    return kohya.read("dataset.toml", **options)


def dataset(options: str = "", train: str = "", reg: str | None = None, general: str = "") -> str:
    """A config with one dataset."""
    text = f"""
[general]
caption_extension = "txt"
{general}
[[datasets]]
resolution = 256
{options}
[[datasets.subsets]]
image_dir = "train"
class_tokens = "sks girl"
{train}
"""
    return text if reg is None else f'{text}[[datasets.subsets]]\nimage_dir = "reg"\n{reg}\n'


def found(data: kohya.Dataset) -> dict[str, tuple[int, str]]:
    """Repeats and captions."""
    return {Path(image.path).stem[:2]: (image.repeats, image.caption) for image in data.images}


def rows(data: kohya.Dataset, **options: Any) -> list[dict[str, Any]]:
    """The rows of an epoch, in the order of ids."""
    listed = []
    keywords = {**data.keywords(), "num_workers": 1, **options}
    with featherload.Loader(**keywords) as loader:
        for batch in loader:
            for row, number in enumerate(batch.ids.tolist()):
                listed.append(
                    {
                        "id": number,
                        "size": batch.images.shape[:1:-1],
                        "caption": batch.captions[row],
                        "weight": float(batch["loss_weight"][row]),
                        "is_reg": bool(batch["is_reg"][row]),
                    }
                )
    return sorted(listed, key=lambda row: row["id"])


def captions(data: kohya.Dataset, name: str, draws: int = 600) -> Counter[str]:
    """Captions of an image in many rows."""
    at = next(at for at, image in enumerate(data.images) if Path(image.path).stem == name)
    images = np.zeros((draws, 8, 8, 3), np.uint8)
    items = featherload.Items(images=images, caption=[data.texts[at]] * draws)
    recipe = {"ops": [{"resize": {"size": [8, 8]}}]}
    with featherload.Loader(
        items, recipe, batch_size=200, num_workers=1, captions=data.captions, seed=1
    ) as loader:
        return Counter(caption for batch in loader for caption in batch.captions)


def assert_like(got: Counter[str], want: dict[str, float]) -> None:
    """Captions have these probabilities."""
    total = sum(got.values())
    assert set(got) == set(want)
    for caption, probability in want.items():
        mean = total * probability
        assert abs(got[caption] - mean) < 5 * math.sqrt(mean), caption


def test_images_repeats_and_captions_of_dreambooth(root: Path) -> None:
    (data,) = read(root, dataset("batch_size = 2", "num_repeats = 3"))
    assert found(data) == {
        "a": (3, "1girl, solo"),
        "b_": (3, "face, smile"),
        "c": (3, ""),
        "d": (3, "sks girl"),
    }
    assert (len(data), data.train_images, data.reg_images) == (12, 12, 0)
    assert data.resolution == (256, 256)
    listed = rows(data)
    assert [row["caption"] for row in listed[::3]] == ["1girl, solo", "face, smile", "", "sks girl"]
    assert [row["id"] for row in listed] == [*range(12)]
    assert {row["weight"] for row in listed} == {1.0}


@pytest.mark.parametrize(
    ("repeats", "reg_repeats", "want"),
    [
        (1, 1, [2, 1, 1]),
        (2, 1, [3, 3, 2]),
        (2, 5, [5, 5]),
        (1, 6, [6]),
        (5, 3, [7, 7, 6]),
    ],
)
def test_regularisation_images_fill_up_to_the_training_images(
    root: Path, repeats: int, reg_repeats: int, want: list[int]
) -> None:
    text = dataset("", f"num_repeats = {repeats}", f"is_reg = true\nnum_repeats = {reg_repeats}")
    with pytest.warns(UserWarning) as warned:
        (data,) = read(root, text, prior_loss_weight=0.5)
    assert "neither a caption file" in str(warned[0].message)
    assert len(warned) == 1 + (3 * reg_repeats > 4 * repeats)
    assert [image.repeats for image in data.images if image.is_reg] == want
    assert (data.train_images, data.reg_images) == (4 * repeats, 3 * reg_repeats)
    listed = rows(data)
    assert sum(row["weight"] == 0.5 for row in listed) == sum(want)
    assert all((row["weight"] == 0.5) == row["is_reg"] for row in listed)


def test_the_most_specific_section_wins(root: Path) -> None:
    text = dataset(
        "num_repeats = 3\nbatch_size = 2", "num_repeats = 4", "num_repeats = 1", "num_repeats = 2"
    )
    with pytest.warns(UserWarning, match="neither a caption file"):
        (data,) = read(root, text)
    assert [image.repeats for image in data.images] == [4, 4, 4, 4, 1, 1, 1]
    assert data.batch_size == 2
    (data,) = read(root, dataset("num_repeats = 3", general="num_repeats = 2\nbatch_size = 5"))
    assert (data.images[0].repeats, data.batch_size) == (3, 5)


SIZES = {
    "bucket_reso_steps = 32\nmin_bucket_reso = 64": ["320x192", "192x320", "256x256", "128x448"],
    "bucket_no_upscale = true": ["256x192", "192x256", "256x256", "64x256"],
    "min_bucket_reso = 200\nmax_bucket_reso = 300": ["320x192", "192x320", "256x256", "192x320"],
}


@pytest.mark.parametrize("options", SIZES)
def test_rows_have_the_sizes_of_buckets(root: Path, options: str) -> None:
    (data,) = read(root, dataset(f"enable_bucket = true\n{options}"))
    assert [f"{w}x{h}" for w, h in (row["size"] for row in rows(data))] == SIZES[options]


def test_without_buckets_rows_have_the_resolution(root: Path) -> None:
    (data,) = read(root, dataset())
    with featherload.Loader(**data.keywords(), num_workers=1) as loader:
        sizes = [batch.original_size.tolist() for batch in loader]
    assert sorted(size for batch in sizes for size in batch) == sorted(
        [height, width] for width, height in TRAIN.values()
    )
    assert {row["size"] for row in rows(data)} == {(256, 256)}
    (data,) = read(root, dataset().replace("resolution = 256", "resolution = [128, 64]"))
    assert data.buckets is None
    assert {row["size"] for row in rows(data)} == {(128, 64)}


def test_random_crop_without_buckets_does_not_resize(root: Path) -> None:
    text = dataset("random_crop = true").replace("resolution = 256", "resolution = [90, 200]")
    (data,) = read(root, text)
    assert [row["size"] for row in rows(data)] == [(90, 200)] * 4
    # An image that is too small shows that there is no resize.
    (data,) = read(root, text.replace("[90, 200]", "[100, 200]"))
    with pytest.raises(featherload.SampleError, match="d.png"):
        rows(data)


def test_pixels_are_those_that_pillow_stores(root: Path) -> None:
    """The orientation and alpha of a file do not count, and 0 to 255 becomes -1 to 1."""
    need("PIL")
    from PIL import Image

    pixels = np.full((256, 256, 4), 255, np.uint8)
    pixels[..., 3] = 0
    pixels[:, :128, 0] = 0
    for path in (root / "train").glob("*.png"):
        path.unlink()
    orientation = Image.Exif()
    orientation[0x0112] = 2  # mirrored
    Image.fromarray(pixels).save(root / "train" / "x.png", exif=orientation)
    (data,) = read(root, dataset("flip_aug = false"))
    with featherload.Loader(**data.keywords(), num_workers=1) as loader:
        (images,) = [batch.images.copy() for batch in loader]
    assert images[0, :, 0, 0].tolist() == [-1, 1, 1]
    assert images[0, :, 0, -1].tolist() == [1, 1, 1]
    (data,) = read(root, dataset("flip_aug = true", "num_repeats = 40"))
    with featherload.Loader(**data.keywords(), num_workers=1) as loader:
        flipped = sum(float(batch.images[0, 0, 0, 0]) == 1 for batch in loader)
    assert 5 < flipped < 35


def test_prefix_suffix_and_dropout(root: Path) -> None:
    (data,) = read(root, dataset('caption_prefix = "best,"\ncaption_suffix = "end"'))
    assert [row["caption"] for row in rows(data)] == [
        "best, 1girl, solo end",
        "best, face, smile end",
        "best,  end",
        "best, sks girl end",
    ]
    (data,) = read(root, dataset('caption_prefix = "best,"\ncaption_dropout_rate = 0.25'))
    assert_like(captions(data, "d"), {"best, sks girl": 0.75, "": 0.25})
    (data,) = read(root, dataset("caption_dropout_rate = 2"))
    assert set(captions(data, "d")) == {""}


def test_tags_move_as_in_sd_scripts(root: Path) -> None:
    options = 'shuffle_caption = true\nkeep_tokens = 1\ncaption_prefix = "a, b,"'
    (data,) = read(root, dataset(options))
    orders = ["b, 1girl, solo", "b, solo, 1girl", "1girl, b, solo"]
    orders += ["1girl, solo, b", "solo, b, 1girl", "solo, 1girl, b"]
    assert_like(captions(data, "a"), {f"a, {order}": 1 / 6 for order in orders})
    (data,) = read(root, dataset("caption_tag_dropout_rate = 0.5"))
    want = {"1girl, solo": 0.25, "1girl": 0.25, "solo": 0.25, "": 0.25}
    assert_like(captions(data, "a"), want)
    (root / "train" / "d.txt").write_text("a ||| b;;;c, d ||| e")
    options = 'keep_tokens_separator = "|||"\nsecondary_separator = ";;;"\nshuffle_caption = true'
    (data,) = read(root, dataset(options))
    assert_like(captions(data, "d"), {"a, b,c, d, e": 0.5, "a, d, b,c, e": 0.5})


def test_a_line_is_chosen_with_enable_wildcard(root: Path) -> None:
    """The first line has the prefix, and the last one the suffix."""
    options = 'enable_wildcard = true\ncaption_prefix = "p"\ncaption_suffix = "s"'
    (data,) = read(root, dataset(options))
    assert found(data)["a"] == (1, "1girl, solo\nsecond {line|row}\nthird")
    assert found(data)["c"] == (1, "after a blank line")
    want = {"p 1girl, solo": 1 / 3, "second line": 1 / 6, "second row": 1 / 6, "third s": 1 / 3}
    assert_like(captions(data, "a"), want)


def test_subsets_may_keep_and_shuffle_other_tags(root: Path) -> None:
    (root / "reg" / "r0.txt").write_text("x, y, z")
    (root / "reg" / "r2.txt").write_text("girl")
    both = ["1girl, solo", "solo, 1girl"]
    (data,) = read(root, dataset("shuffle_caption = true", "", "keep_tokens = 2"))
    assert_like(captions(data, "a"), dict.fromkeys(both, 0.5))
    assert set(captions(data, "r0")) == {"x, y, z"}
    assert set(captions(data, "r2")) == {"girl"}
    (data,) = read(root, dataset("shuffle_caption = true", "", "shuffle_caption = false"))
    assert_like(captions(data, "a"), dict.fromkeys(both, 0.5))
    assert set(captions(data, "r0")) == {"x, y, z"}
    assert set(captions(data, "r1")) == {"a photo, of a girl"}
    assert set(captions(data, "c")) == {""}
    # Braces of a subset without wildcards stay.
    (root / "reg" / "r0.txt").write_text("a {{b|c}} {d|e}")
    (data,) = read(root, dataset("enable_wildcard = true", "", "enable_wildcard = false"))
    assert set(captions(data, "r0")) == {"a {{b|c}} {d|e}"}
    assert len(captions(data, "a")) == 4


METADATA = {
    "c.png": {"caption": "one\ntwo", "tags": "t, u"},
    "d.png": {"tags": "t, u", "image_size": [90, 310]},
    "a.png": {"caption": "only a caption"},
}
FINE_TUNING = """
[[datasets]]
resolution = [320, 256]
{options}
[[datasets.subsets]]
image_dir = "train"
metadata_file = "{file}"
num_repeats = 2
"""


@pytest.mark.parametrize("file", ["meta.json", "meta.jsonl"])
@pytest.mark.parametrize("has_wildcards", [False, True])
def test_captions_of_metadata(root: Path, file: str, has_wildcards: bool) -> None:
    lines = [json.dumps({"image_path": key, **value}) for key, value in METADATA.items()]
    text = json.dumps(METADATA) if file.endswith(".json") else "\n".join(lines)
    (root / file).write_text(text)
    options = "enable_wildcard = true" if has_wildcards else ""
    (data,) = read(root, FINE_TUNING.format(options=options, file=file))
    want = {"a": "only a caption", "c": "one\ntwo,t, u", "d": "t, u"}
    if has_wildcards:
        want |= {"c": "one,t, u\ntwo,t, u", "d": ""}
    assert {name: caption for name, (_, caption) in found(data).items()} == want
    assert (len(data), data.train_images) == (6, 6)
    assert_like(
        captions(data, "c"), {"one,t, u": 0.5, "two,t, u": 0.5} if has_wildcards else {"one": 1}
    )


def test_several_datasets_and_json(root: Path) -> None:
    config = {
        "datasets": [
            {
                "resolution": size,
                "caption_extension": ".txt",
                "network_multiplier": 0.5,
                "subsets": [{"image_dir": "train", "class_tokens": "x"}],
            }
            for size in (128, 192)
        ]
    }
    (root / "dataset.json").write_text(json.dumps(config))
    first, second = kohya.read(root / "dataset.json", seed=7)
    assert (first.resolution, second.resolution) == ((128, 128), (192, 192))
    assert first.keywords()["seed"] == 7
    assert first.network_multiplier == 0.5
    assert second.name.endswith("dataset.json: [[datasets]] 2")


def test_subsets_that_sd_scripts_leaves_out(root: Path) -> None:
    text = dataset("", "", 'num_repeats = 0\nclass_tokens = "a"')
    with pytest.warns(UserWarning, match="subset 2: num_repeats is below 1"):
        (data,) = read(root, text)
    assert len(data) == 4
    text = dataset("", "", 'class_tokens = "a"').replace('"reg"', '"train"')
    with pytest.warns(UserWarning, match="earlier subset"):
        (data,) = read(root, text)
    assert len(data) == 4


REFUSED = {
    "color_aug": "color_aug = true",
    "face_crop_aug_range": "face_crop_aug_range = [1.0, 2.0]",
    "caption_dropout_every_n_epochs": "caption_dropout_every_n_epochs = 2",
    "token_warmup_step": "token_warmup_step = 0.5",
    "custom_attributes": "custom_attributes = {a = 1}",
    "cache_info": "cache_info = true",
    "validation_split": "validation_split = 0.1",
    "resize_interpolation": 'resize_interpolation = "bicubic"',
    "caption_separator": 'caption_separator = ""',
    "batch_size": "batch_size = 0",
    "min_bucket_reso": "enable_bucket = true\nmin_bucket_reso = 320",
    "max_bucket_reso": "enable_bucket = true\nmax_bucket_reso = 128\nmin_bucket_reso = 64",
    "bucket_reso_steps": "enable_bucket = true\nbucket_reso_steps = 0",
    # Refused by sd-scripts, too: unknown, or of another type.
    "num_repeat": "num_repeat = 2",
    "flip_aug": "flip_aug = 1",
    "keep_tokens": "keep_tokens = 1.5",
    "network_multiplier": "network_multiplier = 1",
    "caption_prefix": "caption_prefix = true",
    "image_dir": 'image_dir = "here"',
    # sd-scripts reads it as 1.
    "num_repeats": "num_repeats = true",
}


@pytest.mark.parametrize("key", REFUSED)
def test_options_without_an_equivalent_are_named(root: Path, key: str) -> None:
    with pytest.raises(ConfigError) as error:
        read(root, dataset(REFUSED[key]))
    text = str(error.value)
    assert text.startswith("dataset.toml: [[datasets]] 1") and f": {key} " in text
    assert error.value.option == key
    assert error.value.path == "dataset.toml"


@pytest.mark.parametrize(
    "options",
    [
        "caption_dropout_every_n_epochs = 0",
        "token_warmup_min = 3",
        "validation_split = 0.0\nvalidation_seed = 1",
        "custom_attributes = {}",
        "enable_bucket = true\nface_crop_aug_range = [1.0, 2.0]",
        "keep_tokens = 2",
        'keep_tokens_separator = "|||"',
        'caption_separator = ";"',
    ],
)
def test_options_without_an_effect_are_accepted(root: Path, options: str) -> None:
    (data,) = read(root, dataset(options))
    assert len(rows(data)) == 4


DIFFERENT = {
    "flip_aug": "flip_aug = true",
    "random_crop": "random_crop = true",
    "resize_interpolation": 'resize_interpolation = "area"',
    "caption_dropout_rate": "caption_dropout_rate = 0.1",
    "shuffle_caption": "shuffle_caption = true",
    "secondary_separator": 'secondary_separator = "solo"',
}


@pytest.mark.parametrize("key", DIFFERENT)
def test_subsets_that_differ_are_named(root: Path, key: str) -> None:
    (root / "train" / "b_1.txt").write_text("face,smile,")
    with pytest.raises(ConfigError) as error:
        read(root, dataset("", "", f'class_tokens = "a"\n{DIFFERENT[key]}'))
    text = str(error.value)
    assert "[[datasets]] 1, subset 1 and subset 2" in text or "subset 2 and subset 1" in text
    assert f"differ in {key}" in text and "separate [[datasets]]" in text
    assert error.value.option == key


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("[[datasets]\n", "line 1"),
        ("", "datasets is missing"),
        ("[datasets]\n", "double brackets"),
        ("[other]\n", "other is unknown"),
        ("[[datasets]]\nresolution = 64\n", "subsets is missing"),
        ("[[datasets]]\n[[datasets.subsets]]\nis_reg = true\n", "image_dir is missing"),
        ('[[datasets]]\n[[datasets.subsets]]\nimage_dir = "train"\n', "resolution is missing"),
        (dataset(reg='metadata_file = "m.json"'), "separate"),
        (dataset(train="alpha_mask = true"), "alpha_mask has no equivalent"),
        (dataset(train='conditioning_data_dir = "reg"'), "ControlNet"),
        (FINE_TUNING.format(options='caption_extension = ".txt"', file="a"), "caption_extension"),
    ],
)
def test_wrong_configs(root: Path, text: str, match: str) -> None:
    with pytest.raises(ConfigError, match=match) as error:
        read(root, text)
    assert "dataset.toml" in str(error.value)


def test_files_that_are_no_config(root: Path) -> None:
    for name, match in [("none.toml", "No such file"), ("a.yaml", "neither .toml nor .json")]:
        with pytest.raises(ConfigError, match=match):
            kohya.read(root / name)
    (root / "latin.toml").write_bytes(b"# \xe9")
    with pytest.raises(ConfigError, match="is not UTF-8"):
        kohya.read(root / "latin.toml")
    (root / "broken.toml").write_text("a = 1\nb = x\n")
    with pytest.raises(ConfigError) as error:
        kohya.read(root / "broken.toml")
    assert error.value.line == 2
    with pytest.raises(ConfigError, match="prior_loss_weight"):
        kohya.read(root / "broken.toml", prior_loss_weight=math.nan)


@pytest.mark.parametrize(
    ("option", "value", "match"),
    [
        ("image_dir", "none", "none cannot be read"),
        ("image_dir", "empty", "empty has no images"),
        ("metadata_file", "none.json", "none.json cannot be read"),
        ("metadata_file", "list.json", "no object"),
        ("metadata_file", "empty.json", "has no images"),
        ("metadata_file", "broken.json", "not valid JSON"),
        ("metadata_file", "broken.jsonl", "line 2"),
        ("metadata_file", "gone.json", "x.png does not exist"),
        ("metadata_file", "tags.json", "no texts for 'a.png'"),
    ],
)
def test_folders_and_metadata_that_are_wrong(
    root: Path, option: str, value: str, match: str
) -> None:
    (root / "empty").mkdir()
    for name, text in {
        "list.json": "[]",
        "empty.json": "{}",
        "broken.json": "{\n",
        "broken.jsonl": '{"image_path": "a.png"}\n{"caption": "a"}\n',
        "gone.json": '{"x.png": {}}',
        "tags.json": '{"a.png": {"tags": ["a"]}}',
    }.items():
        (root / name).write_text(text)
    text = dataset().replace('"train"', f'"{value}"')
    if option == "metadata_file":
        text = FINE_TUNING.format(options="", file=value)
    with pytest.raises(DatasetError, match=match) as error:
        read(root, text)
    assert f"dataset.toml: [[datasets]] 1, subset 1: {option}" in str(error.value)


def test_caption_files_that_are_wrong(root: Path) -> None:
    for data, match in [(b"", "a.txt is empty"), (b"\xe9", "a.txt is not UTF-8")]:
        (root / "train" / "a.txt").write_bytes(data)
        with pytest.raises(DatasetError, match=match):
            read(root, dataset())


def test_a_dataset_needs_images_for_training(root: Path) -> None:
    with pytest.raises(DatasetError, match="no images for training"):
        read(root, dataset("", "is_reg = true"))


@pytest.mark.parametrize("name", ["deep.toml", "deep.json"])
def test_files_with_too_many_levels_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("a = " * name.endswith("toml") + "[" * 100_000)
    with pytest.raises(featherload.ConfigError, match=f"{name} is not valid"):
        kohya.read(tmp_path / name)
