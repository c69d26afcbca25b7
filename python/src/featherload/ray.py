"""Builds caches on a Ray cluster, with one task for each shard.

::

    import featherload.ray

    featherload.ray.build_cache(
        "/shared/train", "/shared/cache", shard_samples=2000, encode="jpeg:90", resize="shorter:256"
    )

A folder, as source or as cache, must have the same path on every node. Each of the two may also be
an address in an object store (``s3://bucket/prefix``). Then each node downloads the shards of the
source that it needs, and uploads the shards of the cache that it made. It uses the credentials of
its own environment. No pixels pass through Ray's object store.

If the source is tar shards at an address, upload their index first, with
``featherload.index(src, share=True)``. Otherwise every node downloads all shards to make the index.
``fetch_limit`` applies to all tasks of a node together.
"""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from . import _errors, _options, _progress, _tools, cache
from ._errors import ConfigError, DatasetError, Error, SampleError, WorkerError
from ._reports import CacheReport
from ._values import argument_text, whole

__all__ = ["build_cache"]

_Path = str | os.PathLike[str]

# Keywords with paths. They are made absolute, because tasks run in other folders.
_PATHS = {"list", "classes", "root", "boxes", "stage_dir", "fetch_dir"}
# Most seconds for a shard of a cancelled or lost task.
_STRAGGLERS = 120
# Errors that a retry cannot remove.
_LASTING = (ConfigError, DatasetError, SampleError)


def build_cache(
    src: _Path,
    dst: _Path,
    *,
    shard_samples: int,
    num_cpus: int = 1,
    retries: int = 3,
    progress: bool = True,
    remote: Mapping[str, Any] | None = None,
    **options: Any,
) -> CacheReport:
    """Builds a cache on the connected Ray cluster, or on one that Ray starts here.

    Each shard of ``shard_samples`` samples is one task, with ``num_cpus`` CPUs and the same number
    of workers. If the node or process of a task dies, or the task fails for a temporary reason, it
    is repeated up to ``retries`` times. Complete shards are kept, so the same call continues an
    interrupted build. The bytes equal those of ``featherload.cache.build`` with the same
    ``shard_samples``.

    ``remote``: further options of ``ray.remote``, such as ``resources``. Further keywords:
    those of ``featherload.cache.build`` (``encode``, ``resize``, ``shuffle``, ``on_error``), and
    those of ``Loader`` for reading a source.

    Raises the errors of ``featherload.cache.build``, such as ``SampleError`` for the first failed
    sample with ``on_error="stop"``. Raises ``WorkerError`` for a shard whose task fails after all
    retries.
    """
    try:
        ray: Any = importlib.import_module("ray")
    except ImportError as e:
        raise ConfigError(
            "featherload.ray needs Ray, which is not installed: pip install ray"
        ) from e
    refused = {"shard", "finish", "force", "shard_size", "num_workers"} & options.keys()
    if refused:
        raise ConfigError(
            f"{sorted(refused)[0]} has no effect in a build by tasks: leave it out, or use "
            "featherload.cache.build",
            option=sorted(refused)[0],
        )
    whole("shard_samples", shard_samples, 1)
    whole("num_cpus", num_cpus, 1)
    # -1 is no limit, as in Ray.
    whole("retries", retries, -1)
    said = {
        name: os.path.abspath(value) if name in _PATHS and value is not None else value
        for name, value in options.items()
    }
    source = argument_text("src", src)
    source = source if _is_address(source) else os.path.abspath(source)
    folder = argument_text("dst", dst)
    folder = folder if _is_address(folder) else os.path.abspath(folder)
    names = {name: value for name, value in said.items() if name in _options.SOURCE}
    samples = _tools.index(source, no_headers=True, **names)["samples"]
    shards = max(1, -(-samples // shard_samples))
    if not _is_address(folder):
        os.makedirs(folder, exist_ok=True)
    said["shard_samples"] = shard_samples
    task = ray.remote(
        **{
            "num_cpus": num_cpus,
            "max_retries": retries,
            "retry_exceptions": True,
            "scheduling_strategy": "SPREAD",
            **(remote or {}),
        }
    )(_make_shard)
    cpus = int(ray.cluster_resources().get("CPU", 1)) if ray.is_initialized() else os.cpu_count()
    # More tasks than run at a time, but few enough for a cheap `ray.wait`.
    most = max(8, 4 * (cpus or 1) // num_cpus)
    _run(ray, task, (source, folder, num_cpus, said), shards, most, progress)
    return _finish(source, folder, said)


def _is_address(dst: _Path) -> bool:
    return "://" in os.fspath(dst)


def _run(
    ray: Any,
    task: Any,
    args: tuple[str, str, int, dict[str, Any]],
    shards: int,
    most: int,
    progress: bool,
) -> None:
    """Runs a task for each shard, at most ``most`` at a time, until one fails after its retries."""
    bar = _progress.tqdm(total=shards, desc="shards", unit=" shards") if progress else None
    running: dict[Any, int] = {}
    begun = 0
    try:
        while begun < shards or running:
            while begun < shards and len(running) < most:
                running[task.remote(*args, (begun, shards))] = begun
                begun += 1
            done, _ = ray.wait(list(running), num_returns=1, timeout=1.0)
            for ref in done:
                number = running.pop(ref)
                try:
                    made = ray.get(ref)
                except Exception as e:
                    # An error of Ray, or a temporary failure that came too often.
                    cause = getattr(e, "cause", None)
                    what = cause if isinstance(cause, Error) else e
                    raise WorkerError(
                        f"shard {number} of {shards} failed after all retries: {what}. Build again "
                        "(it keeps complete shards), or allow more retries"
                    ) from e
                if "error" in made:
                    name, text, about = made["error"]
                    raise getattr(_errors, name)(text, **about)
                if bar is not None:
                    bar.update(1)
    finally:
        for ref in running:
            ray.cancel(ref)
        if bar is not None:
            bar.close()


def _finish(source: str, folder: str, options: dict[str, Any]) -> CacheReport:
    """Writes manifest and index. Waits for shards that a lost node may still be writing."""
    until = time.monotonic() + _STRAGGLERS
    while True:
        try:
            return cache.build(
                source, folder, finish=True, num_workers=0, progress=False, **options
            )
        except DatasetError as e:
            if "another process is building" not in str(e) or time.monotonic() > until:
                raise
        time.sleep(0.5)


def _make_shard(
    source: str, folder: str, workers: int, options: dict[str, Any], shard: tuple[int, int]
) -> dict[str, Any]:
    """Makes one shard, in a task. Returns only numbers and texts."""
    if not _is_address(folder) and not Path(folder).is_dir():
        # A local folder of the node would hold shards that no other node finds.
        raise WorkerError(
            f"{folder} is not a folder on this node: name a folder that all nodes share"
        )
    try:
        made = cache.build(
            source, folder, shard=shard, num_workers=workers, progress=False, **options
        )
    except _LASTING as e:
        about = {name: getattr(e, name) for name in ("path", "option", "line", "id", "kind")}
        return {"error": (type(e).__name__, str(e), about)}
    return {"samples": made["samples"], "skipped": made["skipped"]}
