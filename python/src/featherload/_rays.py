"""``featherload.Rays``, a stream of rays of a scene."""

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
    """Delivers batches of rays of a scene, step by step and without end.

    ::

        rays = featherload.Rays("data/fox", rays=4096, framework="torch")
        for step in range(30_000):
            batch = next(rays)
            loss = ((model(batch.origins, batch.directions) - batch.colors) ** 2).mean()

    Each image is decoded once, with 8 bits, into one store that all workers and ranks of the
    machine read. The rays of a step depend only on scene, options, seed, rank and step. So they
    are the same for any number of workers, and the step is enough to resume a run.

    ``scene``
        A path of a scene, as for ``featherload.Scene``, or a ``Scene``.
    ``rays``, ``most_rays``
        Rays per step, and the most rays that ``next(n)`` may request. Defaults: 4096, and the
        value of ``rays``.
    ``split``
        Frames from which rays are drawn: ``"train"``, ``"eval"``, ``"test"``.
    ``sampler``
        ``"uniform"``: all pixels of all images with equal probability. ``"by_image"``: all images
        with equal probability. Or ``featherload.samplers.Patches(size)`` or ``Pairs(radius)``.
    ``masks``
        Whether masked pixels are never drawn. Default True.
    ``depths``
        Whether batches have ``depths``. True: depths that the scene's file names, and files with
        the names of the images in ``depths`` or ``depth``. False: none. Default: only those that
        the file names. PNG, TIFF, OpenEXR and ``.npy``, of any size.
    ``alpha``
        Whether colours keep alpha as a fourth number (1 if a file has none), instead of
        compositing on ``background``. Default False.
    ``num_workers``
        Worker processes. Default: the CPUs that this process may use. At least 1.
    ``seed``, ``rank``, ``world_size``
        Seed of the draws, and the rank of this process. Each rank draws different rays. Default:
        seed 0, and the rank of torch.distributed, or torchrun's ``RANK``, or 0.
    ``start``
        The first step. Default 0.
    ``joining``
        Images that are added at each step. Step s draws from the first ``joining * (s + 1)``
        images of a random order, so training begins after a few images are decoded. 0 draws from
        all images at once. Default 4.
    ``downscale``
        Read images at 1/n of their width and height. Default 1.
    ``background``
        Colour behind transparent pixels: ``"white"`` (default), ``"black"`` or ``"rrggbb"``.
    ``device``
        Where rays are computed and delivered: ``"cpu"`` (default), ``"cuda"``, ``"cuda:1"``, or a
        torch device. For a device, workers only decode images. Each image is copied there once,
        and a kernel makes the rays. Pixels and colours equal the CPU's; directions and origins
        differ by at most 1e-6.
    ``gpu_memory_limit``
        Most device memory that the run may use, without the device's context: bytes, or ``"2G"``.
        Images that do not fit are read from host memory. Default: no limit.
    ``depth``
        Number of batches that have memory. Default: the workers and 2, or 4 on a device. Raise it
        if the trainer keeps several batches: a warning reports that, or on a device
        ``BatchesHeldError``.
    ``memory_limit``
        Most memory of all processes: bytes, or ``"2G"``. If images do not fit, they are kept in a
        file. Default: the available memory of the machine.
    ``store_folder``
        Folder for that file. Default: ``TMPDIR`` or ``/tmp``, but ``/var/tmp`` if that folder is in
        memory.
    ``share_store``
        Whether decoded images are shared with the other ranks of this machine. Default True.
    ``framework``
        Type of the arrays: ``"numpy"`` (default), ``"torch"``, ``"jax"``. They share the memory of
        the batch.
    ``sandbox``
        Blocks system calls and files that workers do not need: as far as the system supports it
        (``"auto"``, default), always (``"require"``), never (``"off"``).
    ``row_limit``, ``hold_timeout``
        Most seconds of a step in a worker (default 600). On a device, most seconds that ``next``
        waits for a batch to be dropped if all are held (default 2). On the CPU further batches are
        copied instead.
    ``max_pixels``, ``max_scratch``
        Most pixels of an image, and most bytes for decoding one.
    ``format``, ``image_order``, ``orientation``, ``center``, ``auto_scale``, ``scale_factor``,
    ``downscale_folder``, ``split_by``, ``find_masks``, ``find_depths``, ``depth_unit``,
    ``strict``, ``max_json_bytes``
        How a path is read, as for ``featherload.Scene``.

    Raises ``featherload.ConfigError`` for invalid options, ``DatasetError`` for a scene that cannot
    be read, and ``WorkerError`` if the workers cannot start.
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
        """Rays per step."""

    @classmethod
    def plan(cls, scene: _Path | Scene, rays: int = 4096, **options: Any) -> ScenePlan:
        """The memory that ``Rays`` with the same keywords would take, of all processes and on the
        device. Also whether decoded images are kept in memory or in a file. Reads only headers;
        decodes and starts nothing.

        Raises the errors that ``Rays`` would raise before it decodes.
        """
        said = inspect.signature(Rays).bind(scene, rays, **options)
        return cls._planned(said, RayStream.plan)

    def __next__(self) -> RayBatch:
        """The rays of the next step."""
        return self._next(None, self.rays)

    def next(self, rays: int | None = None) -> RayBatch:
        """The next step, with this number of rays. They are the first rays of the step's sequence,
        which does not depend on that number.

        Raises ``ConfigError`` for more than ``most_rays``. Raises ``SampleError`` for an image
        that cannot be read: repair the file, and the next call tries the step again. On a device,
        raises ``BatchesHeldError`` if the caller holds all batches that have memory.
        """
        return self._next(None, self.rays if rays is None else whole("rays", rays, 1))

    def _step_of(self, raw: Any) -> RayBatch:
        return RayBatch(raw, self.framework)

    def stats(self) -> dict[str, Any]:
        """Statistics until now: returned steps and rays, their rate, decoded images, times by stage
        (seconds), memory, deaths of workers, process ids. ``missing``, ``missing_images``,
        ``missing_masks``, ``missing_depths`` and ``missing_points`` are files that the scene names
        but that do not exist.

        ``rays_per_s`` counts after the first batch. ``store_bytes`` is the memory of all images,
        ``ring_bytes`` that of the batches. ``memory_bytes`` is ``ring_bytes`` and the private
        memory of coordinator and workers.
        """
        report = self._stats()
        drawn = {"steps": self._steps, "rays": self._parts, "rays_per_s": self._rate()}
        return {**drawn, **report}

    def __repr__(self) -> str:
        return f"<featherload.Rays: {self.rays:,} rays a step, {self.split}, {self.framework}>"
