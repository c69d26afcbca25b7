"""``featherload.Rays``: rays of a scene, as a trainer holds them."""

from __future__ import annotations

import inspect
import os
from typing import Any, Literal

from ._batch import Framework
from ._featherload import RayStream
from ._ray_batch import RayBatch
from ._reports import ScenePlan
from ._scene import Scene, SceneFormat, Split
from ._scene_run import SceneRun
from ._values import whole
from .samplers import RaySampler

_Path = str | os.PathLike[str]


class Rays(SceneRun[RayStream, RayBatch]):
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
    ``depths``
        Whether batches have ``depths``. True: those that the scene's file names, and others that
        have the name of their image, in ``depths`` or ``depth``. False: none. Default: those that
        the file names. PNG, TIFF, OpenEXR and ``.npy``, of any size.
    ``alpha``
        Whether colours keep their alpha as a fourth number (1 where a file has none), instead of
        being composited on ``background``. Default False.
    ``num_workers``
        Worker processes. Default: the CPUs that this process may use. At least 1.
    ``seed``, ``rank``, ``world_size``
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
    ``device``
        Where rays are made and lie: ``"cpu"`` (default), ``"cuda"``, ``"cuda:1"``, or a torch
        device. On a device workers only decode images, each goes up once, and a kernel makes the
        rays: pixels and colours are the CPU's, directions and origins within 1e-6.
    ``gpu_memory_limit``
        Most memory of the device that the run may take, its context apart: bytes, or ``"2G"``.
        Images that do not fit are read from the host's memory. Default: no limit.
    ``depth``
        Batches that there is memory for. Default: the workers and 2, and 4 on a device. Raise it
        if the trainer keeps several: a warning says so, on a device ``BatchesHeldError``.
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
    ``sandbox``
        What workers are kept from, beside their work: ``"auto"`` (default), all system calls and
        files but those that they need, as far as the system has it; ``"require"``; ``"off"``.
    ``row_limit``, ``hold_timeout``
        Most seconds that a step may take in a worker (default 600); and, on a device, that
        ``next`` waits for a batch to be dropped when all are held (default 2). On the CPU further
        batches come as copies.
    ``max_pixels``, ``max_scratch``
        Most pixels of an image, and most bytes that decoding one may take.
    ``format``, ``image_order``, ``orientation``, ``center``, ``auto_scale``, ``scale_factor``,
    ``downscale_folder``, ``split_by``, ``find_masks``, ``find_depths``, ``depth_unit``,
    ``strict``, ``max_json_bytes``
        How a path is read, as ``featherload.Scene`` has them.

    Raises ``featherload.ConfigError`` for options that cannot work, ``DatasetError`` for a scene
    that cannot be read, ``WorkerError`` for what is missing.
    """

    _things = "rays"

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
        world_size: int | None = None,
        start: int = 0,
        joining: int = 4,
        downscale: int = 1,
        masks: bool = True,
        depths: bool | None = None,
        alpha: bool = False,
        background: str | None = None,
        most_rays: int | None = None,
        device: Any = "cpu",
        depth: int | None = None,
        gpu_memory_limit: int | str | None = None,
        memory_limit: int | str | None = None,
        store_folder: _Path | None = None,
        share_store: bool = True,
        framework: Framework = "numpy",
        sandbox: Literal["auto", "require", "off"] | None = None,
        row_limit: float | None = None,
        hold_timeout: float | None = None,
        max_pixels: int | None = None,
        max_scratch: int | str | None = None,
        format: SceneFormat | None = None,
        image_order: Literal["name", "nerfstudio"] | None = None,
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
        self._start(RayStream, **keywords)
        self.rays = whole("rays", rays, 1)
        """Rays of a step."""

    @classmethod
    def plan(cls, scene: _Path | Scene, rays: int = 4096, **options: Any) -> ScenePlan:
        """What ``Rays`` with the same keywords would take: memory of all processes and of the
        device, and whether decoded images lie in memory or in a file. Reads headers, decodes
        nothing, starts nothing.

        Raises what ``Rays`` would raise before it decodes.
        """
        said = inspect.signature(Rays).bind(scene, rays, **options)
        return cls._planned(said, RayStream.plan)

    def __next__(self) -> RayBatch:
        """The next step."""
        return self._next(None, self.rays)

    def next(self, rays: int | None = None) -> RayBatch:
        """The next step with so many rays: the first ones of its sequence, which does not depend
        on how many are asked for.

        Raises ``ConfigError`` for more than ``most_rays``; ``SampleError`` for an image that
        cannot be read: mend it, and the next call tries the step again; ``BatchesHeldError``.
        """
        return self._next(None, self.rays if rays is None else whole("rays", rays, 1))

    def _step_of(self, raw: Any) -> RayBatch:
        return RayBatch(raw, self.framework)

    def stats(self) -> dict[str, Any]:
        """What happened so far: steps and rays given, their rate, images decoded, times by stage
        (seconds), memory, deaths of workers, process ids. ``missing``, ``missing_images``,
        ``missing_masks``, ``missing_depths`` and ``missing_points`` are what the scene's files
        name and is not there.

        ``rays_per_s`` counts from the first batch on. ``store_bytes`` are all images,
        ``ring_bytes`` the batches' memory; ``memory_bytes`` that and what the processes have of
        their own.
        """
        report = self._stats()
        drawn = {"steps": self._steps, "rays": self._parts, "rays_per_s": self._rate()}
        return {**drawn, **report}

    def __repr__(self) -> str:
        return f"<featherload.Rays: {self.rays:,} rays a step, {self.split}, {self.framework}>"
