"""Data sets as shards, which later runs map and read at the speed of the link.

::

    featherload.cache.build("data/train", "cache/train", encode="jpeg:90", resize="shorter:256")
    loader = featherload.Loader("cache/train")
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, Literal

from . import _progress
from ._errors import ConfigError
from ._helper import run_json
from ._reports import CacheReport
from ._tools import _flags
from ._values import argument_text, shown, whole, whole_or_none

__all__ = ["build", "info", "verify"]

_Path = str | os.PathLike[str]


def build(
    src: _Path,
    dst: _Path,
    *,
    encode: str | None = None,
    resize: str | None = None,
    shard_size: int | str | None = None,
    shard_samples: int | None = None,
    shard: tuple[int, int] | None = None,
    finish: bool = False,
    shuffle: int | None = None,
    num_workers: int | None = None,
    on_error: Literal["stop", "skip"] | None = None,
    force: bool = False,
    stage_dir: _Path | None = None,
    progress: bool = True,
    **options: Any,
) -> CacheReport:
    """Writes a data set as shards: WebDataset tars with DALI's index, and checksums. A build
    that was stopped goes on where it stood.

    ``encode``: ``"copy"`` (default), ``"raw"`` or ``"jpeg:QUALITY"``. ``resize``:
    ``"shorter:PIXELS"``. ``shuffle``: a seed; the samples are shuffled once. ``shard_size``: the
    most bytes of a shard (default ``"256M"``, in at least eight shards). ``on_error``: ``"stop"``
    (default), or ``"skip"``, which leaves out samples that give no picture. Further keywords:
    those of ``Loader`` that say how a source is read, and its ``sandbox``, ``row_limit``,
    ``max_pixels`` and ``max_scratch``.

    ``shard_samples`` makes each shard of so many samples, so that it follows from source,
    options and its number alone. Then ``shard=(k, n)`` makes share k of n of the shards, k from
    0, in any process on any machine, and ``finish`` writes index and manifest once all are
    there. ``featherload.ray.build_cache`` does both on a Ray cluster.

    ``src`` may be an address of a cache or of tar shards. What is read of it comes to the folder
    ``fetch_dir``, within ``fetch_limit``. Where that is too little for all of it, the cache is made
    part by part, which needs ``shard_samples``.

    ``dst`` may be an address (``"s3://bucket/prefix"``, ``gs://``, ``az://``, ``file://``). Each
    shard goes there as soon as it is complete; index and manifest go last. Shards are built in a
    folder of ``stage_dir`` (default ``~/.cache/featherload/building``), which holds a few of them
    at a time.

    With ``progress`` a bar of tqdm's shows how far it is, where tqdm is installed. Ctrl-C ends
    the build; the same call goes on.
    """
    said = {
        "encode": encode,
        "resize": resize,
        "shard_size": shard_size,
        "shard_samples": whole_or_none("shard_samples", shard_samples, 1),
        "shard": None if shard is None else _share(shard),
        "finish": finish,
        "shuffle": None,
        "num_workers": whole_or_none("num_workers", num_workers, 0),
        "on_error": on_error,
        "force": force,
        "stage_dir": stage_dir,
        **options,
    }
    # False is no seed: `_flags` knows another `shuffle`.
    seed = whole_or_none("shuffle", shuffle, 0)
    flags = _flags(said) + ([] if seed is None else [f"--shuffle={seed}"])
    args = ["cache", "build", *flags, argument_text("src", src), argument_text("dst", dst)]
    with _progress.Steps(shown=progress) as steps:
        return _report([*args, "--progress", "json"], steps.tell)


def info(dst: _Path) -> CacheReport:
    """What a cache holds, by what it was built, and how fast it is read."""
    return _report(["cache", "info", argument_text("dst", dst)])


def verify(dst: _Path) -> CacheReport:
    """Compares every byte with its checksum. ``.ok`` is False where something is damaged, and
    ``["findings"]`` names it.
    """
    return _report(["cache", "verify", argument_text("dst", dst)])


def _share(shard: Any) -> str:
    """``(k, n)`` as the command line reads it."""
    if not isinstance(shard, Sequence) or len(shard) != 2:
        raise ConfigError(
            f"shard {shown(shard)} is not a share: give one such as (0, 4)", option="shard"
        )
    return "/".join(str(whole("shard", number, 0)) for number in shard)


def _report(
    args: list[str], on_progress: Callable[[dict[str, Any]], None] | None = None
) -> CacheReport:
    # 1: damage, or a build that is not complete, which the report says.
    found = run_json(args, accept=(0, 1), on_progress=on_progress)
    of_it = found.get("report") or found.get("info") or {}
    return CacheReport({"folder": found.get("folder"), **of_it})
