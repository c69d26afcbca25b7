"""Data sets as shards, which later runs map and read at the speed of the link.

::

    featherload.cache.build("data/train", "cache/train", encode="jpeg:90", resize="shorter:256")
    loader = featherload.Loader("cache/train")
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from . import _progress, _stored_values
from ._errors import ConfigError
from ._flags import flags
from ._helper import run_json
from ._reports import CacheReport
from ._stored_values import Stored
from ._values import argument_text, shown, whole, whole_or_none
from ._writer import Writer

__all__ = ["Stored", "Writer", "build", "info", "verify"]

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
    columns: Sequence[str] | None = None,
    objects: str | Mapping[str, Any] | None = None,
    masks: str | Mapping[str, Any] | None = None,
    rasters: Mapping[str, str | Mapping[str, Any]] | None = None,
    num_workers: int | None = None,
    on_error: Literal["stop", "skip"] | None = None,
    force: bool = False,
    stage_dir: _Path | None = None,
    progress: bool = True,
    **options: Any,
) -> CacheReport:
    """Writes a data set as shards: WebDataset tars with DALI's index, and checksums. After an
    interruption, the same call continues the build.

    ``encode``: ``"copy"`` (default), ``"raw"`` or ``"jpeg:QUALITY"``. ``resize``:
    ``"shorter:PIXELS"``. ``shuffle``: a seed; the samples are shuffled once. ``shard_size``: the
    most bytes of a shard (default ``"256M"``, in at least eight shards). ``on_error``: ``"stop"``
    (default), or ``"skip"``, which leaves out failed samples. ``force``: replace a cache with
    other options or another source. ``columns``: columns of the source that the cache keeps, such
    as ``["caption", "score"]``. ``Loader(dst, columns=[...])`` then gives the values of the source.
    ``objects``, ``masks``, ``rasters``: those of the images, in files, a column or members, as
    ``Loader`` takes them. ``Loader(dst, objects="cache", masks="cache")`` with
    ``rasters={"depth": "cache"}`` then gives them.
    Further keywords: those of ``Loader`` for reading a source,
    and ``sandbox``, ``row_limit``, ``max_pixels`` and ``max_scratch``.

    ``shard_samples`` is the number of samples of each shard. A shard then depends only on source,
    options and its number. So any process on any machine can make share k of n of the shards, with
    ``shard=(k, n)`` and k from 0. When all shards exist, ``finish`` writes index and manifest.
    ``featherload.ray.build_cache`` does both on a Ray cluster.

    ``src`` may be an address of a cache, of tar shards or of images. Its shards are downloaded to
    the folder ``fetch_dir``, within ``fetch_limit``. If the limit is too low for all of them, the
    cache is made part by part, which needs ``shard_samples``.

    ``dst`` may be an address (``"s3://bucket/prefix"``, ``gs://``, ``az://``, ``file://``). Each
    shard is uploaded as soon as it is complete; index and manifest are uploaded last. Shards are
    built in a folder of ``stage_dir`` (default ``~/.cache/featherload/building``), which holds a
    few of them at a time.

    With ``progress``, a tqdm bar shows the progress, if tqdm is installed. Ctrl-C ends the build.
    """
    said = {
        "encode": encode,
        "resize": resize,
        "shard_size": shard_size,
        "shard_samples": whole_or_none("shard_samples", shard_samples, 1),
        "shard": None if shard is None else _share(shard),
        "finish": finish,
        "shuffle": None,
        "columns": columns,
        "objects": objects,
        "masks": masks,
        "rasters": rasters,
        "num_workers": whole_or_none("num_workers", num_workers, 0),
        "on_error": on_error,
        "force": force,
        "stage_dir": stage_dir,
        **options,
    }
    # Not through `flags`: its `shuffle` is the one of `Loader`, and False is not a seed.
    seed = whole_or_none("shuffle", shuffle, 0)
    said_flags = flags(said) + ([] if seed is None else [f"--shuffle={seed}"])
    args = ["cache", "build", *said_flags, argument_text("src", src), argument_text("dst", dst)]
    with _progress.Steps(shown=progress) as steps:
        return _report([*args, "--progress", "json"], steps.tell)


def info(dst: _Path) -> CacheReport:
    """The contents of a cache, how it was built, and its reading speed. Of a folder that ``Writer``
    wrote: its columns, crops and bytes.
    """
    if _stored_values.is_folder(dst):
        return CacheReport(_stored_values.describe(Path(dst)))
    return _report(["cache", "info", argument_text("dst", dst)])


def verify(dst: _Path) -> CacheReport:
    """Compares every byte with its checksum. If the cache is damaged or unfinished, ``.ok`` is
    False. ``["findings"]`` lists the damage. Also of a folder that ``Writer`` wrote.
    """
    if _stored_values.is_folder(dst):
        return CacheReport(_stored_values.verify(Path(dst)))
    return _report(["cache", "verify", argument_text("dst", dst)])


def _share(shard: Any) -> str:
    """``(k, n)`` as text for the command line."""
    if not isinstance(shard, Sequence) or len(shard) != 2:
        raise ConfigError(
            f"shard {shown(shard)} is not a share: give one such as (0, 4)", option="shard"
        )
    return "/".join(str(whole("shard", number, 0)) for number in shard)


def _report(
    args: list[str], on_progress: Callable[[dict[str, Any]], None] | None = None
) -> CacheReport:
    # Exit code 1: damage or an unfinished build. The report states which.
    found = run_json(args, accept=(0, 1), on_progress=on_progress)
    of_it = found.get("report") or found.get("info") or {}
    return CacheReport({"folder": found.get("folder"), **of_it})
