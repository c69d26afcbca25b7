"""Keywords of ``Loader`` as flags of the executable, for the tools that run it.

Never in here: which flags a command has. The executable rejects the others by name.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from . import _captions, _columns, _options, _rasters
from ._errors import ConfigError
from ._values import argument_text, byte_count, shown, whole

# Keywords with sizes. A number is in bytes, but the command line needs a unit.
_SIZES = {"memory_limit", "gpu_memory_limit", "max_scratch", "shard_size", "fetch_limit"}
# Flags that False turns off. Without them a scene has its own default.
_SWITCHES = {"auto_scale", "find_masks", "find_depths"}
# What the executable reads, for errors.
_FORMS = {
    "objects": "a COCO file, a pattern such as '../labels/{stem}.txt', or a dict with files, "
    "column or member",
    "masks": "a pattern such as '../masks/{stem}.png', or a dict with files or member",
    "rasters": "a pattern such as '../depth/{stem}.png', or a dict with files or member",
    "labels": "'auto' or 'none'",
    "sampler": "the name of an order, such as 'sequential'",
}


def flags(options: Mapping[str, Any]) -> list[str]:
    """Keywords as flags. None and False are left out."""
    found = []
    for name, value in options.items():
        if value is None:
            continue
        if name == "rasters":
            found += _rasters_of(value)
            continue
        if name == "columns":
            names = _column_names(value)
            found += [f"--columns={names}"] if names else []
            continue
        flag = "--" + name.replace("_", "-")
        if value is False:
            if name in _SWITCHES:
                found.append(f"{flag}=false")
            elif name == "images":
                found.append("--no-images")
        elif value is not True:
            # As one argument: a value may begin with a dash.
            found.append(f"{flag}={_text(name, value)}")
        elif name not in ("shuffle", "images"):
            # These two are true by default, and have no flag.
            found.append(flag)
    return found


def _text(name: str, value: Any) -> str:
    """A value as text for the command line."""
    if name == "captions" and isinstance(value, _captions.Captions):
        # A function on captions runs in the trainer.
        return json.dumps(value._options())
    if name == "multi_scale" and not isinstance(value, str):
        sizes = _options.scales(value)["sizes"]
        return ",".join("x".join(str(whole(name, side, 1)) for side in size) for size in sizes)
    if isinstance(value, Mapping) and name in ("objects", "masks"):
        return _rule(name, _rasters.json_rule(value) if name == "masks" else value)
    if isinstance(value, (str, bytes, os.PathLike)):
        return argument_text(name, value)
    if name in _SIZES:
        return f"{byte_count(name, value)}B"
    if isinstance(value, (float, np.floating)):
        if not math.isfinite(value):
            raise ConfigError(f"{name} {value} is not a finite number: give one", option=name)
        return repr(float(value))
    if name in _FORMS or not hasattr(value, "__index__"):
        raise _no_text(name, value)
    return str(whole(name, value, -(1 << 63)))


def _column_names(columns: Any) -> str:
    """``["a", "b"]`` as text."""
    names = _columns.checked(columns) or []
    for name in names:
        if "," in name or not name:
            raise ConfigError(
                f"columns has {shown(name)}, and flags have no column of such a name: rename it",
                option="columns",
            )
    return ",".join(names)


def _rule(name: str, rule: Mapping[str, Any]) -> str:
    """Objects, masks or a raster with the fields of a rule, as JSON."""
    files = rule.get("files")
    if files is not None and not isinstance(files, (str, os.PathLike)):
        raise _no_text(name, files)
    try:
        return json.dumps(dict(rule), default=os.fspath)
    except TypeError:
        raise _no_text(name, rule) from None


def _rasters_of(rasters: Any) -> list[str]:
    """A flag for each raster."""
    if not isinstance(rasters, Mapping):
        raise ConfigError(
            "rasters is no dict: give names and files, such as {'depth': '../depth/{stem}.png'}",
            option="rasters",
        )
    found = []
    for name, raster in rasters.items():
        if raster is None:
            raise ConfigError(f"rasters[{name!r}] is None: name its files", option="rasters")
        if isinstance(raster, Mapping):
            text = _rule("rasters", _rasters.json_rule(raster))
        elif isinstance(raster, (str, os.PathLike)):
            text = argument_text("rasters", raster)
        else:
            raise _no_text("rasters", raster)
        found.append(f"--raster={name}={text}")
    return found


def _no_text(name: str, value: Any) -> ConfigError:
    """The error for values that only a loader takes, such as lists of Python and functions."""
    if isinstance(value, Sequence):
        what = "a list, which only Loader takes"
    elif callable(value):
        what = "a function, which only Loader takes"
    else:
        what = f"of type {type(value).__name__}"
    form = _FORMS.get(name, "a text or a number, or remove it")
    return ConfigError(f"{name} {shown(value)} is {what}: give {form}", option=name)
