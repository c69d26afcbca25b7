"""Keywords of a loader as the library's options, and as the command line's flags.

Never in here: what an option does.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from ._errors import ConfigError
from ._helper import helper
from .samplers import Sampler

DEPTH = 4
"""Batches of memory, where nobody says another number: one that the loop variable keeps,
one that is handed over, one that a trainer keeps, one that workers fill."""

_DTYPES = {
    "uint8": "u8",
    "float16": "f16",
    "half": "f16",
    "bfloat16": "bf16",
    "float32": "f32",
    "float": "f32",
}
_UNITS = {"": 0, "B": 0, "K": 10, "M": 20, "G": 30, "T": 40}
# Presets whose own dtype is for GPUs.
_FLOAT_PRESETS = ("train224", "eval224")


def dtype_name(dtype: Any) -> str:
    """``"float32"``, ``torch.float32``, ``numpy.float32``, ``"f32"`` as the library has it."""
    name = getattr(dtype, "__name__", None) or str(dtype)
    name = name.rsplit(".", 1)[-1]
    if name in _DTYPES.values():
        return name
    if name not in _DTYPES:
        raise ConfigError(
            f"dtype {name!r} is none of uint8, float16, bfloat16, float32", option="dtype"
        )
    return _DTYPES[name]


def byte_count(option: str, size: int | str | None) -> int | None:
    """Bytes: a number, or a text such as ``"2G"`` or ``"1500M"`` (units of 1,024)."""
    if size is None or isinstance(size, int):
        return size
    text = size.strip().upper().removesuffix("IB").removesuffix("B")
    unit = text[-1:] if text[-1:].isalpha() else ""
    try:
        return int(float(text.removesuffix(unit)) * (1 << _UNITS[unit]))
    except (KeyError, ValueError):
        raise ConfigError(
            f"{option} {size!r} is no size, as in 2G or 1500M", option=option
        ) from None


def device_name(device: Any) -> str:
    """``"cpu"``, ``"cuda:N"``; of ``"cuda"`` torch's current device, or torchrun's local rank."""
    name = str(device)
    if name != "cuda":
        return name
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
        return f"cuda:{torch.cuda.current_device()}"
    return f"cuda:{os.environ.get('LOCAL_RANK', 0)}"


def place(rank: int | None, world_size: int | None) -> dict[str, int] | None:
    """This process among those that train together: what is given, else torchrun's variables."""
    if (rank is None) != (world_size is None):
        missing = "rank" if rank is None else "world_size"
        raise ConfigError(f"rank and world_size go together: {missing} is missing", option=missing)
    if rank is not None and world_size is not None:
        return {"rank": rank, "world": world_size}
    found = os.environ.get("RANK"), os.environ.get("WORLD_SIZE")
    if found[0] is None or found[1] is None:
        return None
    try:
        return {"rank": int(found[0]), "world": int(found[1])}
    except ValueError:
        raise ConfigError(
            f"the environment has RANK={found[0]!r} and WORLD_SIZE={found[1]!r}, which are no "
            "numbers: set them right, or give rank and world_size",
            option="rank",
        ) from None


def recipe_options(recipe: Any, dtype: Any) -> dict[str, Any]:
    """A recipe: a name, a file, a dict, or somebody's transforms."""
    options: dict[str, Any] = {}
    if isinstance(recipe, (str, os.PathLike)):
        options["recipe"] = os.fspath(recipe)
    elif isinstance(recipe, Mapping):
        whole = dict(recipe)
        whole.setdefault("featherload", 1)
        whole.setdefault("name", "recipe")
        options["recipe_text"] = json.dumps(whole)
    else:
        from ._transforms import translate

        options["recipe_text"] = json.dumps(translate(recipe))
    if dtype is not None:
        options["dtype"] = dtype_name(dtype)
    elif options.get("recipe") in _FLOAT_PRESETS:
        options["dtype"] = "f32"
    return options


def order_options(sampler: str | Sampler | None, shuffle: bool | None) -> dict[str, Any]:
    if sampler is not None and shuffle is not None:
        raise ConfigError("sampler and shuffle both say the order: give one", option="sampler")
    if isinstance(sampler, Sampler):
        return sampler._options()
    if sampler is not None:
        if sampler not in ("shuffle", "sequential"):
            raise ConfigError(
                f"sampler {sampler!r} is neither 'shuffle' nor 'sequential' nor one of "
                "featherload.samplers",
                option="sampler",
            )
        return {"sampler": sampler}
    if shuffle is not None:
        return {"sampler": "shuffle" if shuffle else "sequential"}
    return {}


def tail(drop_last: bool, pad_last: bool) -> dict[str, Any]:
    if drop_last and pad_last:
        raise ConfigError("drop_last and pad_last exclude each other", option="pad_last")
    if drop_last or pad_last:
        return {"tail": "drop" if drop_last else "pad"}
    return {}


def scales(sizes: Sequence[int | tuple[int, int]]) -> dict[str, Any]:
    both = [(size, size) if isinstance(size, int) else tuple(size) for size in sizes]
    return {"sizes": both, "divided_by": 32}


def text(source: Mapping[str, Any], loader: Mapping[str, Any]) -> str:
    """All that was said, as the library reads it."""

    def said(options: Mapping[str, Any]) -> dict[str, Any]:
        found = {name: value for name, value in options.items() if value is not None}
        return {k: os.fspath(v) if isinstance(v, os.PathLike) else v for k, v in found.items()}

    return json.dumps({"source": said(source), "loader": {**said(loader), "helper": helper()}})
