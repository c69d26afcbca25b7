"""``featherload.Views``, a stream of whole images of a scene."""

from __future__ import annotations

import inspect
import json
import os
from functools import cached_property
from typing import Any, Literal

import numpy as np

from ._batch import Framework
from ._featherload import ViewStream
from ._reports import ScenePlan
from ._scene import Camera, Numbers, Scene, SceneFormat, Split, camera_of
from ._scene_run import SceneRun
from ._view import View

_Path = str | os.PathLike[str]


class Views(SceneRun[ViewStream, View]):
    """Delivers whole images of a scene, one per step and without end, for splatting.

    ::

        views = featherload.Views("data/fox", framework="torch")
        for step in range(30_000):
            view = next(views)
            loss = (render(view.camera, view.frame.pose) - view.image / 255).abs().mean()

    Step s is image ``s % len(views)`` of epoch ``s // len(views)``. Each image is decoded once,
    with 8 bits, into one store. All workers and ranks of the machine read it, and ``Rays`` of the
    same scene share it. The view of a step depends only on scene, options, seed, rank and step. So
    it is the same for any number of workers, and the step is enough to resume a run.

    ``scene``
        A path of a scene, as for ``featherload.Scene``, or a ``Scene``.
    ``split``
        Frames to show: ``"train"``, ``"eval"``, ``"test"``.
    ``undistort``
        Whether images are straightened, with their masks and depths: converted to the image of a
        pinhole camera (``view.camera``). Pixels of the straight image without a source have image
        and depth 0, and mask False. Default False.
    ``dtype``
        Data type of images: ``"uint8"`` (default), or ``"float32"`` from 0 to 1.
    ``shuffle``
        Whether each epoch has a new random order (default), or the order of the scene.
    ``seed``
        Seed of the orders. Default 0.
    ``rank``, ``world_size``
        Ranks take turns: position p of an epoch belongs to rank ``p % world_size``. Default: those
        of torch.distributed, or torchrun's ``RANK`` and ``WORLD_SIZE``, or a single rank.
    ``start``
        The first step. Default 0.
    ``masks``
        Whether views have the masks of their images. Default True.
    ``depths``
        Whether views have the depths of their images. True: depths that the scene's file names, and
        files with the names of the images in ``depths`` or ``depth``. False: none. Default: only
        those that the file names. PNG, TIFF, OpenEXR and ``.npy``, of any size.
    ``alpha``
        Whether images keep alpha as a fourth channel (255 if a file has none), instead of
        compositing on ``background``. Default False.
    ``num_workers``
        Worker processes. Default: the CPUs that this process may use. At least 1.
    ``downscale``
        Read images at 1/n of their width and height. Default 1.
    ``background``
        Colour behind transparent pixels: ``"white"`` (default), ``"black"`` or ``"rrggbb"``.
    ``device``
        Where views are computed and delivered: ``"cpu"`` (default), ``"cuda"``, ``"cuda:1"``, or a
        torch device. For a device, workers only decode images. Each image is copied there once,
        and a kernel makes the views. Numbers equal the CPU's, except for one in a million of
        straightened images.
    ``gpu_memory_limit``
        Most device memory that the run may use, without the device's context: bytes, or ``"2G"``.
        Images that do not fit are read from host memory. Default: no limit.
    ``depth``
        Number of views that have memory. Default: the workers and 2, at most 8, or 4 on a device.
        Raise it if the trainer keeps several views: a warning reports that, or on a device
        ``BatchesHeldError``.
    ``memory_limit``
        Most memory of all processes: bytes, or ``"2G"``. If images do not fit, they are kept in a
        file. Default: the available memory of the machine.
    ``store_folder``
        Folder for that file. Default: ``TMPDIR`` or ``/tmp``, but ``/var/tmp`` if that folder is in
        memory.
    ``share_store``
        Whether decoded images are shared with the other processes of this machine that read the
        same files. Default True.
    ``framework``
        Type of the arrays: ``"numpy"`` (default), ``"torch"``, ``"jax"``. They share the memory of
        the view.
    ``sandbox``
        Blocks system calls and files that workers do not need: as far as the system supports it
        (``"auto"``, default), always (``"require"``), never (``"off"``).
    ``row_limit``, ``hold_timeout``
        Most seconds of a view in a worker (default 600). On a device, most seconds that ``next``
        waits for a view to be dropped if all are held (default 2). On the CPU further views are
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

    _things = "views"
    _held_things = "views"

    def __init__(
        self,
        scene: _Path | Scene,
        *,
        split: Split = "train",
        undistort: bool = False,
        dtype: Any = "uint8",
        shuffle: bool = True,
        seed: int = 0,
        rank: int | None = None,
        world_size: int | None = None,
        start: int = 0,
        downscale: int = 1,
        masks: bool = True,
        depths: bool | None = None,
        alpha: bool = False,
        background: str | None = None,
        num_workers: int | None = None,
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
        self._start(ViewStream, **keywords)
        self._length = len(self._open())

    @classmethod
    def plan(cls, scene: _Path | Scene, **options: Any) -> ScenePlan:
        """The memory that ``Views`` with the same keywords would take, of all processes and on the
        device. Also whether decoded images are kept in memory or in a file. Reads only headers;
        decodes and starts nothing.

        Raises the errors that ``Views`` would raise before it decodes.
        """
        said = inspect.signature(Views).bind(scene, **options)
        return cls._planned(said, ViewStream.plan)

    def __len__(self) -> int:
        """Images of an epoch, on this rank."""
        return self._length

    def __next__(self) -> View:
        """The next view.

        Raises ``SampleError`` for an image that cannot be read: repair the file, and the next call
        tries it again. On a device, raises ``BatchesHeldError`` if the caller holds all views that
        have memory.
        """
        return self._next(None)

    def _step_of(self, raw: Any) -> View:
        return View(raw, self.framework, self.cameras[raw.index], self.frames[raw.index])

    @cached_property
    def cameras(self) -> list[Camera]:
        """The camera of each view, in the order of the images' numbers."""
        return [camera_of(said) for said in json.loads(self._open().cameras())]

    @cached_property
    def poses(self) -> Numbers:
        """The pose of each image: N x 3 x 4, float64, with OpenCV's axes."""
        return np.stack([frame.pose for frame in self.frames])

    def stats(self) -> dict[str, Any]:
        """Statistics until now: returned views, their rate, decoded images, times by stage
        (seconds), memory, deaths of workers, process ids. ``missing``, ``missing_images``,
        ``missing_masks``, ``missing_depths`` and ``missing_points`` are files that the scene names
        but that do not exist.

        ``views_per_s`` counts after the first view. ``store_bytes`` is the memory of all images,
        ``ring_bytes`` that of the views. ``memory_bytes`` is ``ring_bytes`` and the private memory
        of coordinator and workers.
        """
        report = self._stats()
        return {"views": self._steps, "views_per_s": self._rate(), **report}

    def __repr__(self) -> str:
        return f"<featherload.Views: {len(self):,} images, {self.split}, {self.framework}>"
