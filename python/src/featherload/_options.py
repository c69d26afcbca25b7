"""Converts keywords to the library's options.

Never in here: the effect of an option.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from . import samplers
from ._errors import ConfigError
from ._featherload import option_names, rays_option_names
from ._helper import helper
from ._values import as_json, byte_count, path_text, shown, whole, whole_or_none, yes_or_no
from .samplers import RaySampler, Sampler

DEPTH = 4
"""Default number of batches with memory: one in the loop variable, one that is being returned, one
that a trainer keeps, one that workers fill."""

_DTYPES = {
    "uint8": "u8",
    "float16": "f16",
    "half": "f16",
    "bfloat16": "bf16",
    "float32": "f32",
    "float": "f32",
}
_LONGEST_DEVICE = 100
# Presets whose own dtype is for GPUs.
_FLOAT_PRESETS = ("train224", "eval224")


def dtype_name(dtype: Any) -> str:
    """The library's name of ``"float32"``, ``torch.float32``, ``numpy.float32`` or ``"f32"``."""
    # Python refuses to write very long numbers.
    name = dtype if isinstance(dtype, (int, float)) else getattr(dtype, "__name__", str(dtype))
    if isinstance(name, str):
        name = name.rsplit(".", 1)[-1]
        if name in _DTYPES.values():
            return name
        if name in _DTYPES:
            return _DTYPES[name]
    raise ConfigError(
        f"dtype {shown(name)} is unknown: use uint8, float16, bfloat16 or float32",
        option="dtype",
    )


def device_name(device: Any) -> str:
    """``"cpu"`` or ``"cuda:N"``. ``"cuda"``: torch's current device, or torchrun's local rank."""
    if isinstance(device, (int, float)) or len(name := str(device)) > _LONGEST_DEVICE:
        raise ConfigError(
            f"device {shown(device)} is unknown: use cpu, cuda or cuda:N", option="device"
        )
    if name != "cuda":
        return name
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
        return f"cuda:{torch.cuda.current_device()}"
    return f"cuda:{os.environ.get('LOCAL_RANK', 0)}"


def place(rank: int | None, world_size: int | None) -> dict[str, int]:
    """``rank`` and ``world_size`` of this process: the given values, otherwise those of
    torch.distributed, otherwise torchrun's variables, otherwise none.
    """
    if (rank is None) != (world_size is None):
        missing = "rank" if rank is None else "world_size"
        raise ConfigError(f"rank and world_size go together: {missing} is missing", option=missing)
    if rank is not None:
        return {"rank": whole("rank", rank, 0), "world_size": whole("world_size", world_size, 1)}
    group = process_group()
    if group is not None:
        return {"rank": group[0], "world_size": group[1]}
    found = os.environ.get("RANK"), os.environ.get("WORLD_SIZE")
    if found[1] is None or (found[0] is None and found[1] == "1"):
        return {}
    try:
        return {"rank": int(found[0] or ""), "world_size": int(found[1])}
    except ValueError:
        raise ConfigError(
            f"the environment has RANK={found[0]!r} and WORLD_SIZE={found[1]!r}, which are not two "
            "whole numbers: make the loader after torch.distributed.init_process_group (in "
            "Lightning in train_dataloader), or give rank and world_size",
            option="rank",
        ) from None


def process_group() -> tuple[int, int] | None:
    """Rank and world size of torch.distributed, if it is imported and initialised."""
    group = sys.modules.get("torch.distributed")
    if group is None or not group.is_available() or not group.is_initialized():
        return None
    return group.get_rank(), group.get_world_size()


def recipe_options(recipe: Any, dtype: Any) -> dict[str, Any]:
    """Options for a recipe: a name, a file, a dict, transforms, or a list of these: the crops of
    each image.
    """
    options: dict[str, Any] = {}
    if not isinstance(recipe, (str, os.PathLike, Mapping)):
        from . import _crops

        entries = recipe if isinstance(recipe, Sequence) else ()
        presets = [entry[0] if _crops.is_pair(entry) else entry for entry in entries]
        has_presets = any(isinstance(e, str) and e in _FLOAT_PRESETS for e in presets)
        recipe = _crops.object_recipe(recipe)
        if dtype is None and has_presets:
            dtype = "f32"
    if isinstance(recipe, (str, os.PathLike)):
        options["recipe"] = path_text("recipe", recipe)
    else:
        complete = {"featherload": 1, "name": "recipe", **recipe}
        try:
            options["recipe_text"] = json.dumps(complete, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            if any(callable(value) for value in recipe.values()):
                raise ConfigError(
                    "recipe is a dict of transforms: crops are a list, recipe=[first, (second, 8)]",
                    option="recipe",
                ) from None
            raise ConfigError(
                f"the recipe does not fit in a recipe file: {error}: use plain values",
                option="recipe",
            ) from None
    if dtype is not None:
        options["dtype"] = dtype_name(dtype)
        if options["dtype"] == "u8":
            _check_levels(options.get("recipe_text"))
    elif options.get("recipe") in _FLOAT_PRESETS:
        options["dtype"] = "f32"
    return options


def _check_levels(recipe: str | None) -> None:
    """Raises an error for uint8 rows with ``normalize``, which would be left out silently. For a
    recipe by name, the extension reports it.
    """
    told = {} if recipe is None else json.loads(recipe)
    ops = [op for part in (told, *(told.get("crops") or ())) for op in part.get("ops") or ()]
    names = [name for op in ops for name in ([op] if isinstance(op, str) else op)]
    if "normalize" in names:
        raise ConfigError(
            "dtype uint8 cannot hold normalized values: leave Normalize out and normalize on the "
            "device, or give float32, float16 or bfloat16",
            option="dtype",
        )


def order_options(sampler: str | Sampler | None, shuffle: bool | None) -> dict[str, Any]:
    if sampler is not None and shuffle is not None:
        raise ConfigError("sampler and shuffle both set the order: give one", option="sampler")
    if isinstance(sampler, Sampler):
        return sampler._options()
    if sampler is not None:
        if sampler not in ("shuffle", "sequential"):
            kinds = {name.lower(): name for name in samplers.__all__}
            kind = kinds.get(str(sampler).replace("-", "").replace("_", "").lower())
            if kind is not None:
                raise ConfigError(
                    f"sampler {shown(sampler)} has settings: give featherload.samplers.{kind}()",
                    option="sampler",
                )
            raise ConfigError(
                f"sampler {shown(sampler)} is unknown: use 'shuffle', 'sequential' or one of "
                "featherload.samplers",
                option="sampler",
            )
        return {"sampler": sampler}
    if shuffle is not None:
        return {"sampler": "shuffle" if yes_or_no("shuffle", shuffle) else "sequential"}
    return {}


def tail(drop_last: bool, pad_last: bool) -> dict[str, bool]:
    drop_last, pad_last = yes_or_no("drop_last", drop_last), yes_or_no("pad_last", pad_last)
    if drop_last and pad_last:
        raise ConfigError("drop_last and pad_last exclude each other: give one", option="pad_last")
    return {"drop_last": drop_last, "pad_last": pad_last}


def scales(sizes: Any) -> dict[str, Any]:
    if not isinstance(sizes, Sequence) or isinstance(sizes, str):
        raise ConfigError(
            f"multi_scale {shown(sizes)} is not a list of sizes: use one such as "
            "[192, 224, (256, 224)]",
            option="multi_scale",
        )
    both = [
        tuple(size) if isinstance(size, Sequence) and not isinstance(size, str) else (size, size)
        for size in sizes
    ]
    return {"sizes": both, "divided_by": 32}


# Keywords that have another name than the library's option.
_NAMES = {"path": "src"}
# Keywords for reading the source. ``src`` is its path.
SOURCE = tuple(name for name in option_names()[0] if name != "path")
# Those that samples listed in Python may have, too: their paths may be addresses.
_FETCH = ("fetch_dir", "fetch_limit", "allow_redirects")


def check_items(keywords: Mapping[str, Any]) -> None:
    """Rejects keywords that say how a path is read, beside samples listed in Python."""
    for name in SOURCE:
        if keywords[name] is not None and name not in _FETCH:
            raise ConfigError(
                f"{name} says how a path is read, and src is no path: remove {name}. "
                "featherload.Items takes root and classes of lists",
                option=name,
            )


# Keywords with whole numbers, and their minimum.
_WHOLE = {
    **{"batch_size": 1, "num_workers": 1, "depth": 1, "seed": 0, "epochs": 1, "max_pixels": 1},
    **{"rays": 1, "most_rays": 1, "start": 0, "joining": 0, "downscale": 1, "downscale_folder": 1},
}
_BYTES = ("memory_limit", "gpu_memory_limit", "max_scratch", "fetch_limit", "max_json_bytes")


def library(keywords: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The library's options of source and loader, from all keywords of ``Loader`` except
    ``framework``.
    """
    said = _read(keywords)
    if all(said[limit] is None for limit in ("depth", "memory_limit", "gpu_memory_limit")):
        said["depth"] = DEPTH
    source = {"path": said.pop("src"), **{name: said.pop(name) for name in SOURCE}}
    loader = {
        "device": device_name(said.pop("device")),
        **place(said.pop("rank"), said.pop("world_size")),
        **recipe_options(said.pop("recipe"), said.pop("dtype")),
        **order_options(said.pop("sampler"), said.pop("shuffle")),
        **tail(said.pop("drop_last"), said.pop("pad_last")),
    }
    sizes = said.pop("multi_scale")
    if sizes is not None:
        loader["multi_scale"] = scales(sizes)
    return source, {**loader, **said}


# Keywords of ``Scene``, which ``Rays`` and ``Views`` also have. ``path`` is the scene.
# ``max_pixels`` belongs to the run.
SCENE = tuple(name for name in rays_option_names()[0] if name != "max_pixels")


def scene_text(path: Any, keywords: Mapping[str, Any]) -> str:
    """A path and all keywords of ``Scene``, as JSON for the extension."""
    scene = as_json(_scene(_read(keywords)))
    return f'{{"path": {json.dumps(path_text("path", path))}, "scene": {scene}}}'


def run_text(
    kind: str, path: Any | None, keywords: Mapping[str, Any]
) -> tuple[str, tuple[int, int]]:
    """A path (None for a scene that was read already) and all keywords of ``Rays`` or ``Views``
    except ``framework``, as JSON for the extension. Also rank and world size of the run, which are
    0 and 1 for a single process. ``kind``: ``"rays"`` or ``"views"``.
    """
    if keywords["num_workers"] == 0:
        raise ConfigError(
            "num_workers=0 would decode in this process: give at least 1 (workers start in "
            "milliseconds, however large this process is)",
            option="num_workers",
        )
    said = _read(_of_rays(keywords) if kind == "rays" else _of_views(keywords))
    at = place(said.pop("rank"), said.pop("world_size"))
    of_scene = {name: said.pop(name) for name in SCENE}
    run = {**said, **at, "device": device_name(said["device"]), "helper": helper()}
    parts = [f'"{kind}": {as_json(run, _NAMES)}']
    if path is None:
        for name, value in of_scene.items():
            if value is not None:
                raise ConfigError(
                    f"{name} says how a path is read, but the scene was read already: give it to "
                    "featherload.Scene",
                    option=name,
                )
    else:
        scene = _scene({**of_scene, "max_pixels": said["max_pixels"]})
        parts.append(f'"path": {json.dumps(path_text("scene", path))}')
        parts.append(f'"scene": {as_json(scene)}')
    text = "{" + ", ".join(parts) + "}"
    return text, (at.get("rank", 0), at.get("world_size", 1))


def _of_rays(keywords: Mapping[str, Any]) -> dict[str, Any]:
    if keywords["rays"] is None:
        raise ConfigError("rays is missing: give the number of rays per step", option="rays")
    return {**keywords, "sampler": ray_sampler(keywords["sampler"])}


def _of_views(keywords: Mapping[str, Any]) -> dict[str, Any]:
    said = dict(keywords)
    dtype = dtype_name(said.pop("dtype"))
    if dtype not in ("u8", "f32"):
        raise ConfigError(
            f"dtype {keywords['dtype']!r} is unknown: use uint8 or float32", option="dtype"
        )
    return {**said, "float": dtype == "f32"}


def ray_sampler(sampler: Any) -> Any:
    if isinstance(sampler, RaySampler):
        return sampler._ray_sampler()
    if sampler not in ("uniform", "by_image"):
        raise ConfigError(
            f"sampler {shown(sampler)} is unknown: use 'uniform', 'by_image', or Patches or Pairs "
            "of featherload.samplers",
            option="sampler",
        )
    return sampler


def _read(keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Checks whole numbers and sizes, and converts them."""
    said = dict(keywords)
    for option, least in _WHOLE.items():
        if option in said:
            said[option] = whole_or_none(option, said[option], least)
    for option in _BYTES:
        if option in said:
            said[option] = byte_count(option, said[option])
    return said


def _scene(said: Mapping[str, Any]) -> dict[str, Any]:
    """Keywords of ``Scene`` as the library's options."""
    options = {name: value for name, value in said.items() if value is not None}
    if "split_by" in options:
        options["split_by"] = _split_by(options["split_by"])
    return options


def _split_by(by: Any) -> Any:
    if isinstance(by, str):
        return by
    if isinstance(by, bool):
        raise ConfigError(
            f"split_by {by} is unknown: use a fraction, a whole number or a name", option="split_by"
        )
    if not isinstance(by, float):
        return {"interval": whole("split_by", by, 1)}
    if not 0 <= by <= 1:
        raise ConfigError(f"split_by {by} is not a fraction: give 0 to 1", option="split_by")
    return {"fraction": by}


def text(source: Mapping[str, Any], loader: Mapping[str, Any]) -> str:
    """The library's options, as JSON for the extension."""
    with_helper = {**loader, "helper": helper()}
    return f'{{"source": {as_json(source, _NAMES)}, "loader": {as_json(with_helper, _NAMES)}}}'
