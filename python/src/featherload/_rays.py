"""``featherload.Rays``: rays of a scene, as a trainer holds them."""

from __future__ import annotations

import json
import logging
import operator
import os
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from . import _options
from ._batch import Framework
from ._errors import ConfigError, WorkerError
from ._featherload import RawRays, RayStream
from ._featherload import warnings as warnings_of_the_library
from ._processes import private_bytes
from ._ray_batch import TAKEN_RAYS, RayBatch
from ._scene import Frame, Scene, Split
from .samplers import RaySampler

_log = logging.getLogger("featherload")
_Path = str | os.PathLike[str]


class Rays(Iterator[RayBatch]):
    """Batches of rays of a scene, step by step and without end.

    ::

        rays = featherload.Rays("data/fox", rays=4096, framework="torch")
        for step in range(30_000):
            batch = next(rays)
            loss = ((model(batch.origins, batch.directions) - batch.colors) ** 2).mean()

    Each image is decoded once, as 8 bits, into one store that all workers and all ranks of the
    machine read. The rays of a step are a function of scene, options, seed, rank and step: they
    are the same for any number of workers, and a run goes on by its step alone.

    ``scene``
        A path as ``featherload.Scene`` takes it, or a ``Scene``.
    ``rays``, ``most_rays``
        Rays of a step, and the most that ``next(n)`` may ask for. Default 4096, and as many as
        ``rays``.
    ``split``
        Which frames rays are drawn from: ``"train"``, ``"eval"``, ``"test"``.
    ``sampler``
        ``"uniform"``: all pixels of all images alike. ``"by_image"``: all images alike.
        ``featherload.samplers.Patches(size)`` and ``Pairs(radius)``.
    ``masks``
        Whether pixels that a mask leaves out are never drawn. Default True.
    ``num_workers``
        Worker processes. Default: the CPUs that this process may use. At least 1.
    ``seed``, ``rank``
        Of the draws. Each rank draws rays of its own; default: that of torch.distributed, or
        torchrun's ``RANK``, or 0.
    ``start``
        The first step. Default 0.
    ``joining``
        Images that join at each step. Step s draws from the first ``joining * (s + 1)`` images
        of a random order, so that training begins when a few are decoded. 0 draws from all at
        once. Default 4.
    ``downscale``
        Images are read at a fraction of their width and height. Default 1.
    ``background``
        The colour behind transparent pixels: ``"white"`` (default), ``"black"`` or ``"rrggbb"``.
    ``depth``
        Batches that there is memory for. Default: the workers and 2. Raise it if the trainer
        keeps several: a warning says so.
    ``memory_limit``
        Most memory that all processes may take: bytes, or ``"2G"``. Images that do not fit are
        kept in a file. Default: what the machine has available.
    ``store_folder``
        Where that file goes. Default: ``TMPDIR``, or ``/tmp``; ``/var/tmp`` where that lies in
        memory.
    ``share_store``
        Whether decoded images are shared with the other ranks of this machine. Default True.
    ``framework``
        What arrays are: ``"numpy"`` (default), ``"torch"``, ``"jax"``. They share the memory of
        the batch.
    ``row_limit``, ``hold_timeout``
        Most seconds that a step may take in a worker (default 600), and that ``next`` waits for
        a batch to be dropped when all are held (default 2).
    ``max_pixels``, ``max_scratch``
        Most pixels of an image, and most bytes that decoding one may take.
    ``format``, ``orientation``, ``center``, ``auto_scale``, ``scale_factor``,
    ``downscale_folder``, ``split_by``, ``find_masks``, ``find_depths``, ``depth_unit``,
    ``strict``, ``max_json_bytes``
        How a path is read, as ``featherload.Scene`` has them.

    Raises ``featherload.ConfigError`` for options that cannot work, ``DatasetError`` for a scene
    that cannot be read, ``WorkerError`` for what is missing.
    """

    def __init__(
        self,
        scene: _Path | Scene,
        rays: int = 4096,
        *,
        split: Split = "train",
        sampler: Literal["uniform", "by_image"] | RaySampler = "uniform",
        num_workers: int | None = None,
        seed: int = 0,
        rank: int | None = None,
        start: int = 0,
        joining: int = 4,
        downscale: int = 1,
        masks: bool = True,
        background: str | None = None,
        most_rays: int | None = None,
        depth: int | None = None,
        memory_limit: int | str | None = None,
        store_folder: _Path | None = None,
        share_store: bool = True,
        framework: Framework = "numpy",
        row_limit: float | None = None,
        hold_timeout: float | None = None,
        max_pixels: int | None = None,
        max_scratch: int | str | None = None,
        format: str | None = None,
        orientation: Literal["up", "vertical", "pca", "none"] | None = None,
        center: Literal["poses", "focus", "none"] | None = None,
        auto_scale: bool | None = None,
        scale_factor: float | None = None,
        downscale_folder: int | None = None,
        split_by: float | int | Literal["filename", "listed", "all"] | None = None,
        find_masks: bool | None = None,
        find_depths: bool | None = None,
        depth_unit: float | None = None,
        strict: bool | None = None,
        max_json_bytes: int | str | None = None,
    ) -> None:
        keywords = {name: value for name, value in locals().items() if name != "self"}
        del keywords["scene"], keywords["framework"]
        self._stream: RayStream | None = None
        if framework not in TAKEN_RAYS:
            raise ConfigError(
                f"framework {framework!r} is none of {', '.join(TAKEN_RAYS)}", option="framework"
            )
        self.framework: Framework = framework
        read = isinstance(scene, Scene)
        text, self._rank = _options.rays_text(None if read else scene, keywords)
        self._stream = RayStream(text, scene._raw if isinstance(scene, Scene) else None)
        self._rank_was_given = rank is not None
        self._pid = os.getpid()
        self._given_scene = scene if isinstance(scene, Scene) else None
        self.rays = _options.whole("rays", rays, 1) or 0
        """Rays of a step."""
        self.split: Split = split
        # Threads may share the rays. A signal's handler may ask in the midst of a call.
        self._lock = threading.RLock()
        self._warned = False
        self._steps = self._drawn = 0
        self._began = self._until = 0.0
        self._drawn_first = 0
        self._tell()

    def __iter__(self) -> Rays:
        return self

    def __next__(self) -> RayBatch:
        """The next step."""
        return self._next(self.rays)

    def next(self, rays: int | None = None) -> RayBatch:
        """The next step with so many rays: the first ones of its sequence, which does not depend
        on how many are asked for.

        Raises ``ConfigError`` for more than ``most_rays``; ``SampleError`` for an image that
        cannot be read: mend it, and the next call tries the step again; ``BatchesHeldError``.
        """
        if rays is None:
            return self._next(self.rays)
        return self._next(_options.whole("rays", rays, 1) or 0)

    def _next(self, rays: int) -> RayBatch:
        stream = self._open()
        raw: RawRays | None = None
        try:
            with self._lock:
                self._check_rank()
                raw = stream.next(rays)
                self._tell()
                self._check_copied(raw)
                batch = RayBatch(raw, self.framework)
                self._count(rays)
                stream.taken()
            return batch
        except BaseException:
            # Ctrl-C, a warning that is an error, no memory: the batch comes again.
            if raw is not None:
                stream.not_taken(raw)
            raise

    @property
    def step(self) -> int:
        """The step that comes next."""
        return self._open().step()

    def go_to(self, step: int) -> None:
        """The next batch is that of ``step``."""
        number = _options.whole("step", step, 0)
        with self._lock:
            self._open().go_to(number or 0)

    def state_dict(self) -> dict[str, Any]:
        """Where the run stands: the step that comes next, and what its rays depend on but the
        rank. Numbers and texts.
        """
        state: dict[str, Any] = json.loads(self._open().state())
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on where ``state`` stands, with any number of workers, on any rank.

        Raises ``ConfigError`` for what is no state, and for one of another scene, seed, sampler,
        split or size: the text names what differs.
        """
        try:
            # Numbers of NumPy and torch are numbers.
            text = json.dumps(dict(state), default=operator.index)
        except (TypeError, ValueError):
            raise ConfigError(
                f"the state is none that state_dict gave: {state!r:.200}", option="state"
            ) from None
        with self._lock:
            self._open().resume(text)

    @cached_property
    def images(self) -> list[Path]:
        """The files of the images, as ``batch.indices`` numbers them."""
        return [Path(path) for path in self._open().images()]

    @cached_property
    def scene(self) -> Scene:
        """The scene whose rays these are."""
        return self._given_scene or Scene._of(self._open().scene())

    @cached_property
    def frames(self) -> list[Frame]:
        """The frames of the split, as ``batch.indices`` numbers them."""
        return [self.scene.frames[number] for number in self.scene.frames_of(self.split)]

    def stats(self) -> dict[str, Any]:
        """What happened so far: steps and rays given, their rate, images decoded, times by stage
        (seconds), memory, deaths of workers, process ids.

        ``rays_per_s`` counts from the first batch on. ``store_bytes`` are all images,
        ``ring_bytes`` the batches' memory; ``memory_bytes`` that and what the processes have of
        their own.
        """
        report: dict[str, Any] = json.loads(self._open().report())
        self._tell()
        processes = [pid for pid in (report["coordinator"], *report["workers"]) if pid is not None]
        memory = report["ring_bytes"] + sum(private_bytes(pid) for pid in processes)
        took = self._until - self._began
        return {
            "steps": self._steps,
            "rays": self._drawn,
            "rays_per_s": (self._drawn - self._drawn_first) / took if took else 0.0,
            "memory_bytes": memory,
            **report,
        }

    def close(self) -> None:
        """Ends the workers now. Batches stay readable."""
        if self._stream is not None and os.getpid() == self._pid:
            self._stream.close()

    def __enter__(self) -> Rays:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<featherload.Rays: {self.rays:,} rays a step, {self.split}, {self.framework}>"

    def __reduce__(self) -> Any:
        raise TypeError(
            "Rays have processes of their own and cannot go to another process: make them there"
        )

    def _open(self) -> RayStream:
        if self._stream is None:
            raise ConfigError("the rays were never started")
        if os.getpid() != self._pid:
            raise WorkerError(
                "rays cannot be used in a forked copy of the process that made them: make them "
                "there, or start that process by spawn"
            )
        return self._stream

    def _check_rank(self) -> None:
        """Processes of one rank would all draw the same rays."""
        group = _options.process_group()
        if group is None or self._rank_was_given or group[0] == self._rank:
            return
        raise ConfigError(
            f"this process is rank {group[0]} by torch.distributed, and the rays were made for "
            f"rank {self._rank}: make them behind init_process_group, or give rank",
            option="rank",
        )

    def _check_copied(self, raw: RawRays) -> None:
        if not raw.copied or self._warned or self._stream is None:
            return
        self._warned = True
        held, depth = self._stream.held()
        warnings.warn(
            f"{held} batches are held and depth is {depth}: further ones come as copies, which "
            f"takes time and memory. Drop batches earlier, or give depth={2 * (depth or 1)}",
            RuntimeWarning,
            stacklevel=4,
        )

    def _count(self, rays: int) -> None:
        self._until = time.perf_counter()
        self._steps += 1
        self._drawn += rays
        if self._steps == 1:
            self._began, self._drawn_first = self._until, rays

    def _tell(self) -> None:
        for text in warnings_of_the_library():
            _log.warning("%s", text)
