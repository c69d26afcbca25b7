"""What may be asked for, and what is said when it cannot be."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path

import pytest

import featherload
from featherload._featherload import option_names
from featherload._options import byte_count, dtype_name

Make = Callable[..., featherload.Loader]

# What a keyword is called in the library, where that is another name.
RENAMED = {
    "src": {"path"},
    "num_workers": {"workers"},
    "shuffle": {"sampler"},
    "drop_last": {"tail"},
    "pad_last": {"tail"},
    "world_size": {"rank"},
    "recipe": {"recipe", "recipe_text"},
    "sampler": {"sampler", "sample_weights"},
    "framework": set(),
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
        ({"src": "/nowhere"}, featherload.DatasetError, "/nowhere: cannot be read"),
        ({"src": None}, featherload.ConfigError, "SRC is missing"),
        ({"recipe": "train22"}, featherload.ConfigError, "did you mean 'train224'"),
        ({"recipe": {"ops": [{"rezise": 3}]}}, featherload.DatasetError, "recipe:.*rezise"),
        ({"batch_size": 0}, featherload.ConfigError, "batch"),
        ({"num_workers": 0}, featherload.ConfigError, "at least 1"),
        ({"device": "tpu"}, featherload.ConfigError, "device 'tpu'"),
        ({"dtype": "float64"}, featherload.ConfigError, "dtype 'float64'"),
        ({"framework": "mxnet"}, featherload.ConfigError, "framework 'mxnet'"),
        ({"sampler": "random"}, featherload.ConfigError, "sampler 'random'"),
        ({"sampler": "shuffle", "shuffle": True}, featherload.ConfigError, "give one"),
        ({"drop_last": True, "pad_last": True}, featherload.ConfigError, "exclude"),
        ({"memory_limit": "1M"}, featherload.ConfigError, "memory_limit"),
        ({"memory_limit": "much"}, featherload.ConfigError, "is no size"),
        ({"root": "/"}, featherload.ConfigError, "`root` means nothing"),
        ({"on_error": "ignore"}, featherload.ConfigError, "unknown variant"),
        ({"upload": "copied"}, featherload.ConfigError, "upload says nothing"),
        ({"mode": "eval"}, featherload.ConfigError, "PaddleClas"),
        ({"row_limit": -1.0}, featherload.ConfigError, "-1 seconds"),
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


def test_a_missing_device_is_named(loader: Make) -> None:
    if Path("/dev/nvidia0").exists():
        pytest.skip("SKIP: there is a device")
    with pytest.raises(featherload.Error, match="cuda:0|CUDA|NVIDIA|libcuda"):
        loader(device="cuda")
    with pytest.raises(featherload.ConfigError, match="NumPy has no arrays on cuda:1"):
        loader(device="cuda:1", framework="numpy")


def test_sizes_and_types() -> None:
    assert byte_count("x", "2G") == 2 << 30 and byte_count("x", "1.5 MiB") == 3 << 19
    assert byte_count("x", "100") == byte_count("x", 100) == byte_count("x", "100B") == 100
    assert dtype_name("float16") == dtype_name("torch.float16") == dtype_name("f16") == "f16"


def test_stats_and_what_was_left_out(loader: Make, tmp_path: Path, photos: Path) -> None:
    (tmp_path / "a.jpg").write_bytes(next(photos.rglob("*.jpg")).read_bytes())
    (tmp_path / "notes.txt").write_text("none")
    one = loader(tmp_path, batch_size=1)
    list(one)
    stats = one.stats()
    assert len(stats["workers"]) == 2 and stats["times"]["rows"] == 1
    left_out = one.left_out()
    assert left_out is not None and left_out["skipped"] == 1
