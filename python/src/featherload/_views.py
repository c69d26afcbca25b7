"""``featherload.Views``: whole images of a scene, as a trainer holds them."""

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
    """Whole images of a scene, one a step and without end: what splatting trains on.

    ::

        views = featherload.Views("data/fox", framework="torch")
        for step in range(30_000):
            view = next(views)
            loss = (render(view.camera, view.frame.pose) - view.image / 255).abs().mean()

    Step s is image ``s % len(views)`` of epoch ``s // len(views)``. Each image is decoded once, as
    8 bits, into one store that all workers and all ranks of the machine read, and that ``Rays`` of
    the same scene share. The view of a step is a function of scene, options, seed, rank and step:
    it is the same for any number of workers, and a run goes on by its step alone.

    ``scene``
        A path as ``featherload.Scene`` takes it, or a ``Scene``.
    ``split``
        Which frames are shown: ``"train"``, ``"eval"``, ``"test"``.
    ``undistort``
        Whether images are straightened: shown as a pinhole camera sees them (``view.camera``),
        and their masks and depths with them. Where a straight image has no source, image and
        depth are 0 and the mask is False. Default False.
    ``dtype``
        Of images: ``"uint8"`` (default), or ``"float32"`` from 0 to 1.
    ``shuffle``
        Whether each epoch is a new random order of the images (default), or always the scene's.
    ``seed``
        Of the orders. Default 0.
    ``rank``, ``world_size``
        Ranks take turns: position p of an epoch is that of rank ``p % world_size``. Default:
        those of torch.distributed, or torchrun's ``RANK`` and ``WORLD_SIZE``, or alone.
    ``start``
        The first step. Default 0.
    ``masks``
        Whether views have the masks of their images. Default True.
    ``depths``
        Whether views have the depths of their images. True: those that the scene's file names,
        and others that have the name of their image, in ``depths`` or ``depth``. False: none.
        Default: those that the file names. PNG, TIFF, OpenEXR and ``.npy``, of any size.
    ``alpha``
        Whether images keep their alpha as a fourth channel (255 where a file has none), instead
        of being composited on ``background``. Default False.
    ``num_workers``
        Worker processes. Default: the CPUs that this process may use. At least 1.
    ``downscale``
        Images are read at a fraction of their width and height. Default 1.
    ``background``
        The colour behind transparent pixels: ``"white"`` (default), ``"black"`` or ``"rrggbb"``.
    ``device``
        Where views are made and lie: ``"cpu"`` (default), ``"cuda"``, ``"cuda:1"``, or a torch
        device. On a device workers only decode images, each goes up once, and a kernel shows and
        straightens them: the CPU's numbers, but for one in a million of straightened images.
    ``gpu_memory_limit``
        Most memory of the device that the run may take, its context apart: bytes, or ``"2G"``.
        Images that do not fit are read from the host's memory. Default: no limit.
    ``depth``
        Views that there is memory for. Default: the workers and 2, at most 8, and 4 on a device.
        Raise it if the trainer keeps several: a warning says so, on a device
        ``BatchesHeldError``.
    ``memory_limit``
        Most memory that all processes may take: bytes, or ``"2G"``. Images that do not fit are
        kept in a file. Default: what the machine has available.
    ``store_folder``
        Where that file goes. Default: ``TMPDIR``, or ``/tmp``; ``/var/tmp`` where that lies in
        memory.
    ``share_store``
        Whether decoded images are shared with the other processes of this machine that read the
        same files. Default True.
    ``framework``
        What arrays are: ``"numpy"`` (default), ``"torch"``, ``"jax"``. They share the memory of
        the view.
    ``sandbox``
        What workers are kept from, beside their work: ``"auto"`` (default), all system calls and
        files but those that they need, as far as the system has it; ``"require"``; ``"off"``.
    ``row_limit``, ``hold_timeout``
        Most seconds that a view may take in a worker (default 600); and, on a device, that
        ``next`` waits for a view to be dropped when all are held (default 2). On the CPU further
        views come as copies.
    ``max_pixels``, ``max_scratch``
        Most pixels of an image, and most bytes that decoding one may take.
    ``format``, ``image_order``, ``orientation``, ``center``, ``auto_scale``, ``scale_factor``,
    ``downscale_folder``, ``split_by``, ``find_masks``, ``find_depths``, ``depth_unit``,
    ``strict``, ``max_json_bytes``
        How a path is read, as ``featherload.Scene`` has them.

    Raises ``featherload.ConfigError`` for options that cannot work, ``DatasetError`` for a scene
    that cannot be read, ``WorkerError`` for what is missing.
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
        """What ``Views`` with the same keywords would take: memory of all processes and of the
        device, and whether decoded images lie in memory or in a file. Reads headers, decodes
        nothing, starts nothing.

        Raises what ``Views`` would raise before it decodes.
        """
        said = inspect.signature(Views).bind(scene, **options)
        return cls._planned(said, ViewStream.plan)

    def __len__(self) -> int:
        """Images of an epoch, on this rank."""
        return self._length

    def __next__(self) -> View:
        """The next view.

        Raises ``SampleError`` for an image that cannot be read: mend it, and the next call tries
        it again; ``BatchesHeldError`` when the trainer keeps all that there is memory for.
        """
        return self._next(None)

    def _step_of(self, raw: Any) -> View:
        return View(raw, self.framework, self.cameras[raw.index], self.frames[raw.index])

    @cached_property
    def cameras(self) -> list[Camera]:
        """The camera of each image as views show it, in the order of their numbers."""
        return [camera_of(said) for said in json.loads(self._open().cameras())]

    @cached_property
    def poses(self) -> Numbers:
        """The pose of each image: N x 3 x 4, float64, OpenCV's axes."""
        return np.stack([frame.pose for frame in self.frames])

    def stats(self) -> dict[str, Any]:
        """What happened so far: views given, their rate, images decoded, times by stage
        (seconds), memory, deaths of workers, process ids. ``missing``, ``missing_images``,
        ``missing_masks``, ``missing_depths`` and ``missing_points`` are what the scene's files
        name and is not there.

        ``views_per_s`` counts from the first view on. ``store_bytes`` are all images,
        ``ring_bytes`` the memory of the views; ``memory_bytes`` that and what the processes have
        of their own.
        """
        report = self._stats()
        return {"views": self._steps, "views_per_s": self._rate(), **report}

    def __repr__(self) -> str:
        return f"<featherload.Views: {len(self):,} images, {self.split}, {self.framework}>"
