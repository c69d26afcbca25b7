"""What may be asked for, and what is said when it cannot be."""

from __future__ import annotations

import inspect
import logging
import os
import signal
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import featherload
from featherload import _labels
from featherload._featherload import option_names
from featherload._options import dtype_name
from featherload._preview import _png as png
from featherload._values import byte_count

Make = Callable[..., featherload.Loader]

# What a keyword is called in the library, where that is another name.
RENAMED = {
    "src": {"path"},
    "shuffle": {"sampler"},
    "recipe": {"recipe", "recipe_text"},
    "sampler": {"sampler", "sample_weights"},
    "framework": set(),
    "targets": set(),
    # Python reads them.
    "stored": set(),
    "then": set(),
}
# Where a run begins and who runs it: state_dict, set_epoch and the package say so.
NOT_ASKED = {"start", "resume", "helper"}


def test_every_option_of_the_library_has_a_keyword() -> None:
    source, loader = option_names()
    keywords = set(inspect.signature(featherload.Loader).parameters)
    named = {name for keyword in keywords for name in RENAMED.get(keyword, {keyword})}
    assert named == (set(source) | set(loader)) - NOT_ASKED
    documented = featherload.Loader.__doc__ or ""
    assert not [keyword for keyword in keywords if f"``{keyword}``" not in documented]


@pytest.mark.parametrize(
    ("options", "kind", "text"),
    [
        ({"src": "/nowhere"}, featherload.DatasetError, "/nowhere: no such file or folder"),
        ({"src": None}, featherload.ConfigError, "SRC is missing"),
        ({"recipe": "train22"}, featherload.ConfigError, "did you mean 'train224'"),
        ({"recipe": {"ops": [{"rezise": 3}]}}, featherload.ConfigError, "recipe: .*rezise"),
        ({"batch_size": 0}, featherload.ConfigError, "batch"),
        ({"num_workers": 0}, featherload.ConfigError, "at least 1"),
        ({"device": "tpu"}, featherload.ConfigError, "device 'tpu'"),
        ({"dtype": "float64"}, featherload.ConfigError, "dtype 'float64'"),
        ({"framework": "mxnet"}, featherload.ConfigError, "framework 'mxnet'"),
        ({"sampler": "random"}, featherload.ConfigError, "sampler 'random'"),
        ({"sampler": "shuffle", "shuffle": True}, featherload.ConfigError, "give one"),
        ({"drop_last": True, "pad_last": True}, featherload.ConfigError, "exclude"),
        ({"memory_limit": "1M"}, featherload.ConfigError, "needs .* memory_limit"),
        ({"memory_limit": "much"}, featherload.ConfigError, "is not a size"),
        ({"root": "/"}, featherload.ConfigError, "`root` has no effect"),
        ({"label_column": "x"}, featherload.ConfigError, "`label_column` has no effect"),
        ({"on_error": "ignore"}, featherload.ConfigError, "on_error: unknown variant"),
        ({"num_workers": -1}, featherload.ConfigError, "num_workers -1 is too small"),
        ({"batch_size": 16.5}, featherload.ConfigError, "batch_size 16.5 is not a whole number"),
        ({"depth": 0}, featherload.ConfigError, "depth 0 is too small"),
        ({"seed": 1 << 64}, featherload.ConfigError, "seed 18446744073709551616 is too large"),
        ({"epochs": 0}, featherload.ConfigError, "epochs 0 is too small: give at least 1"),
        ({"src": "a\0b"}, featherload.ConfigError, "src .* has a NUL byte"),
        ({"shuffle": "no"}, featherload.ConfigError, "shuffle 'no' is neither"),
        ({"num_workers": 5000}, featherload.ConfigError, "`num_workers` is 5000: use at most"),
        ({"multi_scale": 96}, featherload.ConfigError, "multi_scale 96 is not a list"),
        ({"multi_scale": [(1, 2, 3)]}, featherload.ConfigError, "multi_scale: "),
        ({"memory_limit": 1.5}, featherload.ConfigError, "memory_limit 1.5 is not a whole"),
        ({"src": b"/tmp"}, featherload.ConfigError, "src b'/tmp' is bytes"),
        ({"src": "/tmp/\udcff"}, featherload.ConfigError, "src .* is not UTF-8"),
        (
            {"recipe": {"ops": [{"resize": {"size": {1}}}]}},
            featherload.ConfigError,
            "does not fit in a recipe file",
        ),
        ({"upload": "copied"}, featherload.ConfigError, "upload has no effect"),
        ({"decode_on": "gpu"}, featherload.ConfigError, "decode_on gpu: .*use device cuda"),
        ({"decode_on": "both"}, featherload.ConfigError, "decode_on: unknown variant"),
        ({"mode": "eval"}, featherload.ConfigError, "PaddleClas"),
        ({"row_limit": -1.0}, featherload.ConfigError, "-1 seconds"),
        ({"truncated": "yes"}, featherload.ConfigError, "truncated: unknown variant"),
        ({"sandbox": "yes"}, featherload.ConfigError, "sandbox: unknown variant"),
        ({"recipe": object()}, featherload.ConfigError, "object cannot be translated"),
    ],
)
def test_mistakes_are_named(
    loader: Make, options: dict[str, object], kind: type[featherload.Error], text: str
) -> None:
    with pytest.raises(kind, match=text) as raised:
        loader(**options)
    assert isinstance(raised.value, featherload.Error)
    assert "\n" not in str(raised.value)
    named = text.split(":")[0].split(" ")[0]
    if kind is featherload.ConfigError and named in options:
        assert raised.value.option == named


def test_a_missing_device_is_named(loader: Make) -> None:
    if Path("/dev/nvidia0").exists():
        pytest.skip("SKIP: there is a device")
    with pytest.raises(featherload.Error, match="cuda:0|CUDA|NVIDIA|libcuda"):
        loader(device="cuda")
    with pytest.raises(featherload.ConfigError, match="NumPy has no arrays on cuda:1"):
        loader(device="cuda:1", framework="numpy")


def test_warnings_go_to_logging(
    loader: Make, tmp_path: Path, photos: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for number, path in enumerate(sorted(photos.rglob("*.jpg"))[:8]):
        (tmp_path / f"{number}.jpg").write_bytes(path.read_bytes())
    # One picture makes most of a batch's memory.
    (tmp_path / "large.png").write_bytes(png(np.zeros((3000, 4000, 3), np.uint8)))
    np.save(tmp_path / "large.npy", np.zeros((3000, 4000, 3), np.uint8))
    with caplog.at_level(logging.WARNING, "featherload"):
        loader(tmp_path, recipe="full", batch_size=4)
    assert "large.png" in caplog.text and "make the ring large" in caplog.text


def test_failures_and_deaths_are_counted_and_told(
    loader: Make, photos: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for number, path in enumerate(sorted(photos.rglob("*.jpg"))[:8]):
        data = path.read_bytes()
        (tmp_path / f"{number}.jpg").write_bytes(data[:200] if number == 5 else data)
    one = loader(tmp_path, batch_size=2, on_error="skip", num_workers=1)
    epoch = iter(one)
    next(epoch)
    os.kill(one.stats()["workers"][0], signal.SIGKILL)
    for _ in epoch:
        pass
    one.set_epoch(0)
    for _ in one:
        pass
    with caplog.at_level(logging.WARNING, "featherload"):
        stats = one.stats()
    assert (stats["images"], stats["failed"], stats["worker_deaths"]) == (14, 2, 1)
    # Every call has all of them.
    assert len(stats["events"]) == 1 and one.stats()["events"] == stats["events"]
    assert "SIGKILL" in caplog.text


def test_truncated_pictures_are_kept_and_counted(
    loader: Make, photos: Path, tmp_path: Path
) -> None:
    for number, path in enumerate(sorted(photos.rglob("*.jpg"))[:4]):
        data = path.read_bytes()
        (tmp_path / f"{number}.jpg").write_bytes(data[: len(data) * 3 // 4] if number else data)
    one = loader(tmp_path, batch_size=2, truncated="keep", num_workers=1)
    for _ in one:
        pass
    stats = one.stats()
    assert (stats["images"], stats["failed"], stats["truncated_rows"]) == (4, 0, 3)


def test_numbers_of_numpy_are_numbers(loader: Make) -> None:
    one = loader(batch_size=np.int64(16), memory_limit=8e9, seed=np.uint8(3))
    assert one.batch_size == 16
    with pytest.raises(featherload.ConfigError, match="epoch -1 is too small"):
        one.set_epoch(-1)


def test_sizes_and_types() -> None:
    assert byte_count("x", "2G") == 2 << 30 and byte_count("x", "1.5 MiB") == 3 << 19
    assert byte_count("x", "2097152") == 2 << 20
    assert byte_count("x", 100) == byte_count("x", "100B") == 100
    with pytest.raises(featherload.ConfigError, match="write 100G or 100M"):
        byte_count("x", "100")
    assert dtype_name("float16") == dtype_name("torch.float16") == dtype_name("f16") == "f16"


def test_stats_and_what_was_left_out(loader: Make, tmp_path: Path, photos: Path) -> None:
    (tmp_path / "a.jpg").write_bytes(next(photos.rglob("*.jpg")).read_bytes())
    (tmp_path / "notes.txt").write_text("none")
    one = loader(tmp_path, batch_size=1)
    list(one)
    stats = one.stats()
    assert len(stats["workers"]) == 2 and stats["times"]["rows"] == 1
    assert (stats["images"], stats["failed"]) == (1, 0) and stats["images_per_s"] > 0
    assert stats["ring_bytes"] < stats["memory_bytes"] < stats["ring_bytes"] + (100 << 20)
    left_out = one.left_out()
    assert left_out is not None and left_out["skipped"] == 1


def test_a_normalize_that_levels_have_no_room_for_is_refused(
    loader: Make, caplog: pytest.LogCaptureFixture
) -> None:
    normalize = {"normalize": {"mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5]}}
    ops = [{"random_resized_crop": {"size": [8, 8]}}]
    for dtype in ("uint8", "u8", np.uint8):
        with pytest.raises(featherload.ConfigError, match="uint8 cannot hold normalized") as caught:
            loader(recipe={"ops": [*ops, normalize]}, dtype=dtype)
        assert caught.value.option == "dtype"
    assert loader(recipe={"ops": ops}, dtype="uint8").recipe["ops"][-1] == {"cast": {"dtype": "u8"}}
    assert not caplog.messages
    # A recipe by name keeps what its users have always got, and the log reports it.
    caplog.set_level(logging.WARNING, "featherload")
    assert next(iter(loader(recipe="eval224", dtype="uint8"))).images.dtype == np.uint8
    assert [m for m in caplog.messages if "eval224: normalize is left out" in m]


def test_labels_that_are_places_in_the_picture_are_reported(loader: Make, tmp_path: Path) -> None:
    for number in range(2):
        (tmp_path / f"{number}.png").write_bytes(png(np.zeros((20, 30, 3), np.uint8)))
    (tmp_path / "a.csv").write_text(
        "file_name,xmin,y_min,right,bottom,area,n\n0.png,1,2,9,8,42,1\n1.png,3,4,7,6,6,2\n"
    )
    lines = ['{"file_name": "0.png", "o": {"bbox": [1, 2, 3, 4], "hot": [0, 1]}}\n']
    (tmp_path / "a.jsonl").write_text("".join(lines))
    boxes = "xmin,y_min,right,bottom"
    for table, columns in [("a.csv", boxes), ("a.jsonl", "/o/bbox")]:
        with pytest.warns(UserWarning, match="look like positions in the image.*move") as caught:
            one = loader(tmp_path / table, label_column=columns, batch_size=1, shuffle=False)
        assert len(caught) == 1
        assert len(next(iter(one)).labels[0]) == 4
        # Nothing moves.
        loader(tmp_path / table, label_column=columns, recipe="full", batch_size=1)
    # They are no places, or only one of them, a class.
    loader(tmp_path / "a.csv", label_column="area,n", batch_size=1)
    loader(tmp_path / "a.jsonl", label_column="/o/hot", batch_size=1)
    loader(tmp_path / "a.csv", label_column="right", batch_size=1)
    # A column y alone may as well be a vector of classes.
    line = '{"file_name": "0.png", "x": 3, "y": [0, 1], "masks": [1, 2], "at": {"y": 4}}\n'
    (tmp_path / "b.jsonl").write_text(line)
    loader(tmp_path / "b.jsonl", label_column="/y", batch_size=1)
    for columns in ("/masks", "/x,/at/y"):
        with pytest.warns(UserWarning, match=f"labels {columns.replace(',', ', ')} look like"):
            loader(tmp_path / "b.jsonl", label_column=columns, batch_size=1)


def test_columns_that_are_places_are_known_by_their_names() -> None:
    for name in (
        *("bbox", "xyxy", "xywh", "box_xyxy", "coords", "coordinates", "points", "keypoints"),
        *("mask", "masks", "corners", "quad", "joints", "face_joints", "/o/Corners", "x1", "xmin"),
    ):
        assert _labels.places([name]) == [name]
    for name in ("x", "y", "label_y", "/o/y", "class", "hot", "taxes", "quality", "unmasked"):
        assert _labels.places([name]) == _labels.places(["", name, name]) == []
    assert _labels.places(["x", "y"]) == ["x", "y"]
    assert _labels.places(["center_x", "class", "/o/y"]) == ["center_x", "/o/y"]
