"""``featherload.Loader``, which a trainer iterates.

An executable inside the package starts the workers as processes, before any image is read. So a
trainer with threads, CUDA and many GiB of memory starts them safely and quickly.
"""

from __future__ import annotations

import importlib.util
import json
import logging
import operator
import os
import warnings
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from . import (
    _accelerate,
    _captions,
    _columns,
    _counts,
    _items,
    _labels,
    _masks,
    _object_lists,
    _objects,
    _options,
    _preview,
    _progress,
    _rasters,
    _request,
    _stored_values,
    _then,
)
from ._batch import TAKEN, Batch, Framework, masks_of
from ._dataset import Dataset
from ._epoch import Epoch
from ._epoch_sampler import EpochBatchSampler, EpochSampler
from ._errors import ConfigError, Error, WorkerError
from ._featherload import RawBatch, Stream, printable, tell_warnings
from ._given_order import EPOCH, ITERATIONS, GivenBatches, GivenBatchOrder
from ._item_feed import AskedItems, Feeder
from ._preview import Preview
from ._processes import private_bytes
from ._reports import Plan
from ._target_plan import TargetView
from ._turn import Turn
from ._values import LAST, shown, whole
from .samplers import Sampler

_log = logging.getLogger("featherload")
# Attributes that a loader reads once. `worker_init_fn` is not among them: Lightning sets it, and no
# worker calls it.
_FIXED = {
    *("batch_sampler", "batch_size", "collate_fn", "dataset", "drop_last", "framework"),
    *("generator", "num_workers", "persistent_workers", "sampler", "timeout"),
}
_Path = str | os.PathLike[str]


def made_again(samples: Any) -> Any:
    """The ``collate_fn`` of a loader. Only a loader of torch calls it that was made of this one."""
    raise ConfigError(
        "a loader of torch was made of this one, and would give the data set's own images: resume "
        "with state_dict and load_state_dict, or call accelerator.skip_first_batches with a "
        "featherload.accelerate.DataLoader",
        option="dataset",
    )


class Loader:
    """Delivers batches of images, one epoch after another.

    ::

        loader = featherload.Loader("data/train", batch_size=256, framework="torch")
        for epoch in range(90):
            for images, labels in loader:
                ...

    ``src``
        The data set: a folder (flat, or with a folder for each class), tar shards
        (``"train-{000..123}.tar"``), a list file, a table (CSV with a header line, JSON lines), a
        cache, or a saved index. Or an address of a cache or of tar shards in an object store:
        ``"s3://BUCKET/PREFIX"``, ``"s3://BUCKET/train-{000..123}.tar"``, ``gs://``, ``az://``,
        ``https://``. Or a ``.npy`` file with an array of images, uint8. Or samples in Python:
        ``featherload.Items``, a list of paths, of images as bytes, of pairs with a label or of
        dicts, an array of images, a table of pandas, polars or pyarrow, or a data set of torch,
        whose transform is not used. Or a ``datasets.Dataset`` of Hugging Face, which workers read
        from its files.
    ``fetch_dir``, ``fetch_limit``
        For a data set in an object store. Its shards are downloaded to ``fetch_dir``, which all
        ranks of a machine share (default: ``~/.cache/featherload/fetched``). ``fetch_limit`` is
        the most bytes of that folder, or a size such as ``"200G"``. Default: no limit, if all
        shards take at most half of the free space.
    ``allow_redirects``
        For a data set in an object store: follow redirects to other hosts, which public download
        sites need. Addresses of this machine and of private networks stay blocked.
    ``columns``
        Further values of samples that batches have, such as ``["caption", "score"]``: columns of
        tables, Parquet and Arrow files, lists and data sets, members of tar shards and values in
        their JSON. Of folders and lists of paths: text files beside the images, by their extension
        (``".txt"``). ``batch["caption"]`` reads them from where they lie.
    ``captions``
        The captions of batches: a column of texts, such as ``"caption"`` or ``".txt"``, or
        ``featherload.Captions`` with how texts become captions. ``batch.captions`` is a list of
        ``str``, one for each row. ``docs/columns.md`` describes them.
    ``stored``
        Folders with values that ``featherload.cache.Writer`` stored, such as latents, or
        ``featherload.cache.Stored(folder, crop="center")``. Their columns are named by ``columns``.
        ``docs/stored-values.md`` describes them.
    ``images``
        False: read no images. Batches have ids, labels, columns and captions, in the same order,
        and ``images`` is an array N x 0.
    ``masks``
        Masks of the images: a pattern of paths such as ``"../masks/{stem}.png"``, a column of a
        table, of Parquet or of Arrow files, ``"cache"`` for those of a cache, or a list of paths or
        of bytes of image files, one for each image. Or a dict with ``files`` and how labels become
        numbers: ``{"files": ..., "ignore": 255, "reduce_zero_label": True}``. In place of
        ``files``, ``member`` names the extension of masks beside images in tars. ``batch.masks``
        has them, N x H x W.
        ``docs/segmentation.md`` describes them.
    ``rasters``
        Depths, flows, paired images and further masks by name: ``{"depth": {"files":
        "../depth/{stem}.png", "divide": 256}, "right": {"files": "../right/{name}", "kind":
        "image"}}``. ``files`` are as those of ``masks``. ``kind`` is ``depth``, ``alpha``,
        ``flow``, ``image`` or ``mask``, and the name if it is one of these. ``"cache"`` is a raster
        of a cache.
        ``batch.rasters["depth"]`` has them. ``docs/rasters.md`` describes them.
    ``objects``
        Objects in the images: a COCO file, a pattern of YOLO's or Pascal VOC's files such as
        ``"../labels/{stem}.txt"``, ``"cache"`` for those of a cache, or a list with a dict for each
        image (``boxes``, ``labels``, ``keypoints``...). Or a dict with ``files`` and how objects
        move with their image: ``{"files": ..., "style": "albumentations", "min_visibility": 0.1}``.
        In place of ``files``, ``column`` names a column of Parquet, Arrow, JSON lines or a
        ``datasets.Dataset``, and ``member`` JSON beside images in tars. ``batch.objects`` has them
        as flat arrays. A Compose of albumentations, and a detector's image processor, set their
        own style. ``docs/targets.md`` describes them.
    ``targets``
        The form of objects in ``images, targets = batch``: ``"list"`` (default, a dict for each
        image, with boxes as the Compose of albumentations has them), ``"flat"`` (with
        ``batch_idx``), ``"padded"`` (with ``valid``), ``"detr"`` (with ``pixel_mask``). Without
        ``objects``, those of a cache.
    ``recipe``
        The operations on each image. ``"train224"``, ``"eval224"``, ``"full"``, a recipe file
        (.yaml, .toml, .json), a PaddleClas config, a dict as in a recipe file, torchvision's v2
        transforms, a Compose of albumentations or an image processor of Hugging Face. Or a list of
        these: several crops of each image, such as ``[global_1, global_2, (local, 8)]``.
        ``docs/python/crops.md`` describes them.
    ``batch_size``
        Rows per batch. Default: 256, or the value of a PaddleClas config.
    ``num_workers``
        Worker processes. Default: the CPUs that this process may use. At least 1.
    ``device``
        Where batches are delivered: ``"cpu"``, ``"cuda"`` (torch's current device, or torchrun's
        local rank) or ``"cuda:N"``.
    ``framework``
        Type of ``images`` and ``labels``: ``"numpy"`` (default on the CPU), ``"torch"``
        (default on a device), ``"jax"``. They share the memory of the batch.
    ``seed``, ``shuffle``, ``sampler``
        The order of an epoch, and all random numbers. Default: seed 0, with a new random order in
        each epoch. ``sampler``: ``"shuffle"``, ``"sequential"``, one of
        ``featherload.samplers``, or any sampler object with a length, such as torch's.
    ``drop_last``, ``pad_last``
        Drop a last batch that is not full, or fill it with masked rows.
    ``rank``, ``world_size``
        Rank of this process among the processes that train together, and their number. Default:
        those of torch.distributed, or torchrun's ``RANK`` and ``WORLD_SIZE``. All ranks get the
        same number of batches.
    ``dtype``, ``layout``
        ``"float32"``, ``"float16"``, ``"bfloat16"``, ``"uint8"``; ``"nchw"``, ``"nhwc"``.
        Default: float32 for ``"train224"`` and ``"eval224"``, otherwise what the recipe casts to.
    ``on_error``
        A failed sample ends the epoch with an error (``"stop"``, the default), gets a row with
        label -1 and zeros (``"skip"``), or is replaced by the next sample (``"substitute"``).
    ``depth``
        Number of batches that may exist at one time. Default 4. A warning reports a trainer that
        keeps more.
    ``memory_limit``, ``gpu_memory_limit``
        Limits of the memory of all processes together, and of the memory on the device: bytes, or
        ``"2G"``. A run that does not fit is rejected.
    ``labels``, ``classes``, ``list``, ``root``, ``delimiter``, ``allow_outside``, ``boxes``,
    ``path_column``, ``image_column``, ``label_column``, ``path_suffix``, ``image_field``,
    ``label_field``, ``label_json``, ``index_dir``
        How the source is read. ``docs/options.md`` describes each. For an array, a ``.npy`` file
        or a list, ``labels`` may be the labels themselves, as in ``featherload.Items``.
    ``multi_scale``
        Output sizes that alternate from batch to batch: (height, width), or one number for both.
    ``sandbox``
        Blocks system calls and files that workers do not need: as far as the system supports it
        (``"auto"``, default), always (``"require"``), never (``"off"``).
    ``decode_on``
        Which decoder decodes JPEGs. ``"auto"`` (default): the GPU, if batches are delivered there,
        the recipe allows it and ``gpu_memory_limit`` has room; otherwise the workers. ``"gpu"``:
        the GPU, or the run is rejected. ``"cpu"``: the workers. Both give the same pixels.
    ``then``
        A function on the pixels of a whole batch: it gets ``images`` and returns what replaces
        them, with the same number of rows. It runs in this process, on the thread that asks for a
        batch, so its time adds to each step.
    ``decode``, ``reorder``, ``background``, ``orientation``, ``truncated``, ``upload``,
    ``row_limit``, ``hold_timeout`` (seconds), ``max_pixels``, ``max_scratch`` (a size),
    ``epochs``, ``mode``, ``skip_unknown_ops``
        Like the flags of ``featherload bench``. With ``epochs``, workers begin the next epoch
        without a pause.

    Raises ``featherload.ConfigError`` for invalid options, ``DatasetError`` for a source that
    cannot be read, ``DeviceError`` for a missing GPU or driver, and ``WorkerError`` if the workers
    cannot start.
    """

    def __init__(
        self,
        src: _items.Source | None = None,
        recipe: Any = "train224",
        batch_size: int | None = None,
        num_workers: int | None = None,
        device: Any = "cpu",
        seed: int | None = None,
        shuffle: bool | None = None,
        drop_last: bool = False,
        rank: int | None = None,
        world_size: int | None = None,
        *,
        framework: Framework | None = None,
        dtype: Any = None,
        layout: Literal["nchw", "nhwc"] | None = None,
        sampler: str | Sampler | Iterable[int] | None = None,
        multi_scale: Sequence[int | tuple[int, int]] | None = None,
        pad_last: bool = False,
        on_error: Literal["stop", "skip", "substitute"] | None = None,
        depth: int | None = None,
        memory_limit: int | str | None = None,
        gpu_memory_limit: int | str | None = None,
        upload: Literal["auto", "in-place", "copied"] | None = None,
        decode_on: Literal["auto", "gpu", "cpu"] | None = None,
        decode: Literal["full", "scaled"] | None = None,
        reorder: Literal["off", "exact", "fast"] | None = None,
        background: str | None = None,
        orientation: Literal["exif", "stored"] | None = None,
        truncated: Literal["refuse", "keep"] | None = None,
        list: _Path | None = None,
        labels: Literal["auto", "none"] | Iterable[Any] | None = None,
        classes: _Path | None = None,
        root: _Path | None = None,
        delimiter: str | None = None,
        allow_outside: bool | None = None,
        boxes: _Path | None = None,
        path_column: str | None = None,
        image_column: str | None = None,
        label_column: str | None = None,
        path_suffix: str | None = None,
        image_field: str | None = None,
        label_field: str | None = None,
        label_json: str | None = None,
        index_dir: _Path | None = None,
        fetch_dir: _Path | None = None,
        fetch_limit: int | str | None = None,
        allow_redirects: bool | None = None,
        columns: Sequence[str] | None = None,
        captions: str | _captions.Captions | None = None,
        stored: _stored_values.Source | None = None,
        images: bool = True,
        masks: _masks.Masks | None = None,
        rasters: _rasters.Rasters | None = None,
        objects: _object_lists.ObjectSource | None = None,
        epochs: int | None = None,
        sandbox: Literal["auto", "require", "off"] | None = None,
        row_limit: float | None = None,
        hold_timeout: float | None = None,
        max_pixels: int | None = None,
        max_scratch: int | str | None = None,
        mode: str | None = None,
        skip_unknown_ops: bool | None = None,
        targets: _objects.TargetForm | None = None,
        then: Callable[[Any], Any] | None = None,
    ) -> None:
        keywords = {name: value for name, value in locals().items() if name != "self"}
        self._request = request = _request.checked(keywords)
        self._then = then
        self._has_masks = masks is not None
        self._view = self._target_view(request.view)
        self._has_one_channel: bool = getattr(self, "_has_one_channel", False)
        self.framework: Framework = request.framework
        self._stream, self._feeder = self._open(request.loader, self._has_one_channel)
        if targets == "detr" and any({"patches", "tiles"} & op.keys() for op in _ops(self.recipe)):
            self._stream.close()
            raise ConfigError(
                "targets='detr' needs images, and this recipe makes patches or tiles: use "
                "targets='list'",
                option="targets",
            )
        self._place_was_given = rank is not None
        self._pid = os.getpid()
        self._tell(self._stream.told)
        if self.framework == "numpy" and self._gives_bfloat16() and not _has("ml_dtypes"):
            self._stream.close()
            raise ConfigError(
                "NumPy has no bfloat16 without the package ml_dtypes: install it, or give "
                "another dtype or framework",
                option="dtype",
            )
        state = json.loads(self._stream.state())
        plan = state["plan"]
        self._place: tuple[int, int] = plan["rank"], plan["world"]
        self._crops: tuple[str, int] = state["recipe_hash"], plan["seed"]
        # A method of a data set gives labels with the images.
        self.dataset = Dataset(self._stream, not isinstance(request.items, AskedItems))
        if request.columns is not None and request.stored:
            request.columns.add(self._stored_columns())
        if request.order is not None:
            try:
                request.order.check_ranks(*self._place, len(self.dataset))
            except ConfigError:
                self._stream.close()
                raise
        self.batch_size: int = plan["batch"]
        self.drop_last: bool = plan["tail"] == "drop"
        self._pads: bool = plan["tail"] == "pad"
        self._batches, self._rows = self._stream.batches(), self._stream.rows()
        self._turn = Turn("loader")
        self._running: weakref.ref[Epoch] | None = None
        self._broken_off = False
        # Iterators that have not begun.
        self._waiting: weakref.WeakSet[Epoch] = weakref.WeakSet()
        self._resume: dict[str, Any] | None = None
        self._epoch_asked: int | None = None
        self._warned = False
        self.closed = False
        self._counts = _counts.Counts()
        self._events: deque[str] = deque(maxlen=1000)
        # Attributes of torch's loader that trainers read.
        self.num_workers = len(json.loads(self._stream.report())["workers"])
        self.pin_memory = False
        self.collate_fn: Any = made_again
        self.mixup_enabled = False
        self.end_of_dataloader = False
        self.remainder = -1
        # Of the last batches of all processes, the rows that accelerate keeps. None: by the ranks.
        self._kept_of_last: int | None = None
        self._warn_of_places(label_column, label_field, label_json)
        self._is_made = True

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _FIXED and self.__dict__.get("_is_made"):
            raise ConfigError(
                f"{name} of a loader is read when it is made: make a new loader to change {name}",
                option=name,
            )
        super().__setattr__(name, value)

    def __len__(self) -> int:
        """Batches of a whole epoch on this rank."""
        return self._batches

    def __iter__(self) -> Iterator[Batch]:
        """The batches of the next epoch, or of the epoch of ``load_state_dict`` or ``set_epoch``.

        The epoch begins with the first ``next``, which ends a running epoch. After an error of
        ``next``, the new iterator continues after the last batch.
        """
        self._check_process()
        epoch = Epoch(self)
        self._waiting.add(epoch)
        return epoch

    def _open(
        self, loader: Mapping[str, Any], has_one_channel: bool
    ) -> tuple[Stream, Feeder | None]:
        """A stream of these options over the samples of this loader, and the thread that asks for
        their bytes, if a method returns them.
        """
        items = self._request.items
        feeder = items.feeder() if isinstance(items, AskedItems) else None
        stream = Stream(
            _options.text(self._request.source, loader),
            None if items is None else items._raw,
            has_one_channel=has_one_channel,
            feed=None if feeder is None else feeder.feed,
            rasters=self._request.rasters,
            objects=self._request.objects,
        )
        if feeder is not None:
            feeder.start()
        return stream, feeder

    def _stored_columns(self) -> dict[str, _columns.Held]:
        """The columns of folders of stored values, for the samples of this loader."""
        owners = self._request.stored
        try:
            keys = self._stream.sample_keys(self._lists_samples())
            if self._request.reads_images:
                _stored_values.warn_of_other_crops(owners, self._crops)
            return _stored_values.columns(
                owners, keys, lambda id: self.dataset[id][0], self.framework
            )
        except BaseException:
            self._stream.close()
            raise

    def _lists_samples(self) -> bool:
        """Whether Python lists the samples. Raises an error if a method gives their bytes: such
        samples have no names.
        """
        if self._feeder is not None:
            raise ConfigError(
                "a method of the data set gives the bytes of samples, so stored values cannot be "
                "found again: give image files",
                option="stored",
            )
        return self._request.items is not None

    def _target_view(self, view: TargetView | None) -> TargetView | None:
        """What makes the targets of batches. ``view``: that of the keyword ``targets``."""
        return view

    @property
    def categories(self) -> list[tuple[int, str]]:
        """Number and name of each category of the objects, in the order of their labels. Empty
        without objects.
        """
        form = json.loads(self._stream.object_form())
        return [(one["id"], one["name"]) for one in form["categories"]] if form else []

    def _class_names(self) -> list[str]:
        """Names of the classes, for a preview."""
        return self.dataset.classes

    def _asked(self) -> int | None:
        """The epoch that was set as the next one, if any."""
        return self._epoch_asked

    def _begin(self, epoch: Epoch) -> int:
        """Begins the next epoch, and ends a running one."""
        self._check_place()
        self._check_unchanged()
        before = None if self._running is None else self._running()
        if before is not None and before is not epoch:
            before.supersede()
        asked = self._asked()
        was_set = asked is not None and self._resume is None
        if self._resume is not None:
            # A rejected state is forgotten.
            state, self._resume = self._resume, None
            progress = {key: state.pop(key) for key in (ITERATIONS, EPOCH) if key in state}
            if self._request.order is not None and asked in (None, state["epoch"]):
                self._stream.check_resumable(json.dumps(state))
                self._request.order.resume(self._stream, state, progress, self._place[0])
            self._stream.resume(json.dumps(state))
            # Compares with the epoch of the state itself. The stream may be in the next epoch
            # already, if the remaining samples do not fill a batch.
            if asked is not None and asked != state["epoch"]:
                at = json.loads(self._stream.state())
                self._stream.set_epoch(asked)
                warnings.warn(
                    f"the state is in epoch {at['epoch']} after {at['samples']} samples, but "
                    f"set_epoch has set epoch {asked}: that one begins with its first batch",
                    RuntimeWarning,
                    stacklevel=4,
                )
        elif asked is not None:
            self._stream.set_epoch(asked)
        if self._epoch_asked == asked:
            # Another thread may have set another epoch meanwhile.
            self._epoch_asked = None
        self._broken_off = False
        self._waiting.discard(epoch)
        self._running = weakref.ref(epoch)
        self.end_of_dataloader = False
        self._counts.begin_epoch()
        _accelerate.begin(self)
        number = self._stream.begin_epoch()
        if self._request.order is not None:
            self._request.order.begin(self._stream, number, was_set)
        return number

    def _break_off(self) -> None:
        self._stream.break_off()
        self._broken_off = True

    def set_epoch(self, epoch: int) -> None:
        """Sets the next epoch, which begins with its first batch. After ``load_state_dict`` with a
        state of the same epoch, it continues at the position of the state.
        """
        self._turn.alone("set_epoch", lambda: self._ask(whole("epoch", epoch, 0, LAST)))

    def _ask(self, epoch: int | None) -> None:
        self._epoch_asked = epoch

    @property
    def epoch(self) -> int:
        """Epoch of the next batch, from 0."""
        return int(self._comes_next()["epoch"])

    def _is_running(self) -> bool:
        """Whether an epoch runs, and no newer iterator will end it."""
        running = None if self._running is None else self._running()
        return running is not None and running.runs and not self._waiting

    def _comes_next(self) -> dict[str, Any]:
        """The state before the next batch."""
        state: dict[str, Any] = json.loads(self._stream.state())
        if self._is_running():
            return state
        asked = self._asked()
        if self._resume is not None and asked in (None, self._resume["epoch"]):
            return dict(self._resume)
        if asked is None and self._broken_off:
            asked = state["epoch"] + 1
        return state if asked is None else {**state, "epoch": asked, "samples": 0}

    @property
    def sampler(self) -> Any:
        """The samples of this rank in the next epoch. Like torch's samplers, it has ``len``,
        ``set_epoch`` and an iterator over numbers of samples. A sampler object that was given is
        returned itself.
        """
        order = self._request.order
        if order is None:
            return EpochSampler(self)
        of = order.sampler
        return getattr(of, "sampler", of) if isinstance(order, GivenBatchOrder) else of

    @property
    def batch_sampler(self) -> Any:
        """Like ``sampler``, batch by batch."""
        order = self._request.order
        if isinstance(order, GivenBatchOrder):
            return order.sampler
        if order is not None:
            return GivenBatches(order.sampler, self.batch_size, self.drop_last)
        return EpochBatchSampler(self)

    def state_dict(self) -> dict[str, Any]:
        """The position of the run, after the last returned batch. It has only numbers and texts.

        ``samples`` counts the samples of all ranks. So the state of one rank is enough to resume
        any number of ranks.
        """
        left_early = self._broken_off and not self._waiting
        if left_early and self._resume is None and self._asked() is None:
            return self._with_progress(json.loads(self._stream.state()))
        return self._with_progress(self._comes_next())

    def _with_progress(self, state: dict[str, Any]) -> dict[str, Any]:
        """The state of the stream, and of a sampler object that was given."""
        if self._request.order is None:
            return state
        return {**self._request.order.progress(), **state}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Makes the next ``iter()`` continue at the position of ``state``. Numbers of workers and
        ranks and the batch size may differ: each remaining sample of the epoch comes once. A state
        at the end of an epoch begins the next epoch. ``samplers.Identity`` needs the same batch
        size.

        Raises ``ConfigError`` if ``state`` is not a state. When the epoch begins, raises it for a
        state of other data, or of another recipe, order or seed, and names the difference.
        """
        self._turn.alone("load_state_dict", lambda: self._load(state))

    def _load(self, state: Mapping[str, Any]) -> None:
        try:
            # Numbers of NumPy and torch are numbers.
            read = json.loads(json.dumps(dict(state), default=operator.index))
            epoch, samples = read["epoch"], read["samples"]
        except (TypeError, ValueError, KeyError):
            raise ConfigError(
                f"the state is not one that state_dict gave: {shown(state)}: give its result",
                option="state",
            ) from None
        whole("epoch", epoch, 0)
        whole("samples", samples, 0)
        self._resume = read
        self._epoch_asked = None

    def stats(self) -> dict[str, Any]:
        """Statistics until now: images, failures, waits and times by stage (seconds), memory,
        deaths of workers, process ids. Takes 0.1 ms, so it can be called in each step.

        ``images`` and ``failed`` count from the start of the loader. ``images_per_s`` is the rate
        of the current epoch. ``memory_bytes`` is the shared memory of the batches and the private
        memory of coordinator, workers and fetcher.
        """
        report: dict[str, Any] = json.loads(self._stream.report())
        self._tell(report["events"])
        self._events += report["events"]
        report["events"] = [*self._events]
        device = json.loads(self._stream.device_memory())
        if device is not None:
            report["device_memory"] = device
        processes = [report["coordinator"], *report["workers"]]
        if report["fetch"] is not None:
            processes.append(report["fetch"]["process"])
        memory = report["ring_bytes"] + sum(private_bytes(pid) for pid in processes)
        return {**self._counts.read(), "memory_bytes": memory, **report}

    def plan(self) -> Plan:
        """The memory plan of this loader: the upper limit of the memory of all processes, and each
        part of it. ``featherload.plan`` gives the same before a loader is made.

        Reads headers again, and decodes nothing. ``stats()["memory_bytes"]`` is the memory in use.
        """
        # The memory that is available now is less than before the start, and it may limit the
        # number of batches.
        return self._request.plan(depth=self._stream.held()[1])

    def _texts(self, raw: RawBatch) -> list[str] | None:
        """The captions of a batch, before ``map``. None without captions."""
        rule, columns = self._request.captions, self._request.columns
        if rule is None:
            return None
        made = _captions.BatchCaptions(replace(rule, map=None), columns)
        texts: list[str] = made.read(raw)
        return texts

    @property
    def recipe(self) -> dict[str, Any]:
        """The operations on each image, with the changes by keywords."""
        recipe: dict[str, Any] = json.loads(self._stream.recipe)
        return recipe

    def preview(self, rows: int = 16) -> Preview:
        """Rows of the first batch of the current epoch as images: as the model gets them, with
        ``normalize`` reverted. Masks, and boxes, keypoints and instance masks of objects, are drawn
        over them. Captions are below them, before ``map``.

        A notebook draws the result, ``print`` lists it, ``.save("rows.png")`` writes it. If the
        recipe makes several crops, those of a row follow each other. A separate worker makes the
        batch again on the CPU, with memory for two batches. The position of this loader does not
        change.
        """
        self._check_process()
        whole("rows", rows, 1)
        if not self._request.reads_images:
            raise ConfigError(
                "images=False reads no images, so there is nothing to draw: preview a loader with "
                "images",
                option="images",
            )
        of_the_run = ("upload", "gpu_memory_limit", "memory_limit", "epochs", "decode_on")
        options = self._request.loader.items()
        here = {name: value for name, value in options if name not in of_the_run}
        alone = {**here, "num_workers": 1, "depth": 2, "device": "cpu"}
        stream, _ = self._open(alone, has_one_channel=False)
        try:
            stream.set_epoch(self.epoch)
            if self._request.order is not None:
                self._request.order.give_to_preview(stream, self.epoch, len(self.dataset))
            raw = stream.next(stream.begin_epoch())
            if raw is None:
                return Preview([])
            batch = Batch(TAKEN["numpy"](raw), raw)
            form = json.loads(stream.object_form())
            return _preview.of_batch(
                batch,
                self.recipe,
                self._class_names(),
                rows,
                masks_of("numpy", raw),
                _objects.of_batch(raw, "numpy"),
                form["skeleton"] if form else [],
                self._texts(raw),
            )
        finally:
            stream.close()

    def progress(self, **options: Any) -> Iterator[Batch]:
        """Like ``iter(loader)``, with a tqdm bar that counts images. It shows their rate, and the
        share of the time in which the trainer waited for them. Keywords are tqdm's. Without tqdm
        there is no bar.
        """
        return _progress.bar(self, options)

    def _gives_bfloat16(self) -> bool:
        casts = [op["cast"]["dtype"] for op in _ops(self.recipe) if "cast" in op]
        return casts[-1:] == ["bf16"]

    def _tell(self, told: Sequence[str]) -> None:
        for text in told:
            _log.warning("%s", text)
        tell_warnings()

    def left_out(self) -> dict[str, Any] | None:
        """Entries that the scan of the source left out, by reason. None for a saved index."""
        report: dict[str, Any] | None = json.loads(self._stream.scan_report())
        return report

    def close(self) -> None:
        """Ends the workers now. Batches stay readable."""
        self.closed = True
        if os.getpid() == self._pid:
            self._stream.close()

    def __enter__(self) -> Loader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return (
            f"<featherload.Loader: {len(self.dataset)} samples, {len(self)} batches of "
            f"{self.batch_size}, {self.framework}>"
        )

    def __reduce__(self) -> Any:
        raise TypeError(
            "a Loader has its own processes and cannot go to another process: make one there"
        )

    def _check_process(self) -> None:
        if os.getpid() != self._pid:
            raise WorkerError(
                "a loader cannot be used in a forked copy of the process that made it: make one "
                "there, or start that process by spawn"
            )

    def _check_place(self) -> None:
        """Raises an error if torch.distributed has another rank than the loader. Otherwise all
        processes could train on the same rows.
        """
        group = _options.process_group()
        if group is None or self._place_was_given or group == self._place:
            return
        raise ConfigError(
            f"this process is rank {group[0]} of {group[1]} in torch.distributed, but the loader "
            f"was made as rank {self._place[0]} of {self._place[1]}: make it after "
            "init_process_group (in Lightning in train_dataloader), or give rank and world_size",
            option="rank",
        )

    def _check_unchanged(self) -> None:
        """Raises an error if the data set of the loader has changed since."""

    def _warn_of_places(self, *columns: str | None) -> None:
        """Warns if labels are positions in the image: operations move pixels, but not labels."""
        named = [name for columns_ in columns for name in (columns_ or "").split(",")]
        places = _labels.places(named)
        if not places or not len(self.dataset) or not _labels.moves(_ops(self.recipe)):
            return
        label = self.dataset[0][1]
        if isinstance(label, Sequence) and len(label) > 1:
            shown = printable(", ".join(places))
            warnings.warn(
                f"the labels {shown} look like positions in the image. They are delivered as "
                "stored: resize, crop and flip move pixels, but not labels. Use "
                "recipe='full' and move both yourself, or filter this warning",
                UserWarning,
                stacklevel=3,
            )

    def _next(self, epoch: int, is_left: Callable[[], bool]) -> RawBatch | None:
        """The next batch of the stream. If the method of a data set raised an exception, the error
        has it as its cause.
        """
        try:
            return self._stream.next(epoch, is_left)
        except Error as error:
            if self._feeder is not None:
                self._feeder.explain(error)
            raise

    def _take(self, raw: RawBatch) -> Batch:
        pair, masks = TAKEN[self.framework](raw), masks_of(self.framework, raw)
        objects = _objects.of_batch(raw, self.framework)
        rasters = _rasters.of_batch(self.framework, raw)
        if raw.last_on_device:
            # The caller holds all other device memory, so this batch is copied and released.
            pair, masks = _own(self.framework, pair), _copied(self.framework, masks)
            rasters = {name: _copied(self.framework, one) for name, one in rasters.items()}
            if objects is not None and objects.masks is not None:
                own_masks = [_copied(self.framework, one) for one in objects.masks]
                objects = replace(objects, masks=own_masks)
            raw = raw.without_pixels()
        if self._then is not None:
            # A batch of patches has as many rows as patches.
            samples = len(raw) if raw.patches() is None else len(pair[0])
            images = _then.run(self._then, pair[0], samples)
            if images is not pair[0]:
                # The result uses memory of its own, or holds that of the batch itself.
                pair, raw = (images, pair[1]), raw.without_pixels()
        if (raw.copied or raw.last_on_device) and not self._warned:
            self._warned = True
            held, depth = self._stream.held()
            warnings.warn(
                f"{held} batches are held and depth is {depth}: further batches are copied, which "
                f"takes time and memory. Drop batches earlier, or give depth={2 * (depth or 1)}",
                RuntimeWarning,
                stacklevel=3,
            )
        labels = pair[1]
        if self._view is not None:
            pair = self._view(*pair, masks, objects)
        rule = self._request.captions
        made = None if rule is None else _captions.BatchCaptions(rule, self._request.columns)
        parts = {"view": self._view, "labels": labels, "rasters": rasters, "captions": made}
        batch = Batch(pair, raw, self._request.columns, masks, objects, **parts)
        batch._crops = self._crops
        return batch


def _ops(recipe: Mapping[str, Any]) -> Sequence[dict[str, Any]]:
    """All operations of a recipe, or of its crops in order."""
    return [op for part in (recipe, *recipe.get("crops", ())) for op in part["ops"]]


def _has(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def _own(framework: Framework, pair: tuple[Any, Any]) -> tuple[Any, Any]:
    """Copies the images to memory of the framework."""
    images, labels = pair
    if isinstance(images, list):
        return [_copied(framework, a) for a in images], labels
    return _copied(framework, images), labels


def _copied(framework: Framework, array: Any) -> Any:
    if array is None:
        return None
    return array.clone() if framework == "torch" else array.copy()
