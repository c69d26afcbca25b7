"""``featherload.Loader``: what a trainer holds.

Workers are processes that are started before any picture is read, by an executable inside the
package: so a trainer with threads, CUDA and many GiB starts them safely and at once.
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
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from . import _accelerate, _counts, _items, _labels, _options, _preview, _progress
from ._batch import TAKEN, Batch, Framework
from ._dataset import Dataset
from ._epoch import Epoch
from ._epoch_sampler import EpochBatchSampler, EpochSampler
from ._errors import ConfigError, WorkerError
from ._featherload import RawBatch, RawItems, Stream, printable, tell_warnings
from ._preview import Preview
from ._processes import private_bytes
from ._turn import Turn
from ._values import LAST, shown, whole
from .samplers import Sampler

_log = logging.getLogger("featherload")
# Attributes that a loader reads once. Not `worker_init_fn`, which Lightning sets: none is called.
_FIXED = {
    *("batch_sampler", "batch_size", "collate_fn", "dataset", "drop_last", "framework"),
    *("generator", "num_workers", "persistent_workers", "sampler", "timeout"),
}
_Path = str | os.PathLike[str]


class Loader:
    """Batches of images, for one epoch after another.

    ::

        loader = featherload.Loader("data/train", batch_size=256, framework="torch")
        for epoch in range(90):
            for images, labels in loader:
                ...

    ``src``
        A folder (flat, or a folder for each class), tar shards (``"train-{000..123}.tar"``), a
        list file, a table (CSV with a header line, JSON lines), a cache, a saved index, or the
        address of a cache or of tar shards in an object store (``"s3://BUCKET/PREFIX"``,
        ``"s3://BUCKET/train-{000..123}.tar"``, ``gs://``, ``az://``, ``https://``). Or samples
        listed in Python: ``featherload.Items``, a list of paths, of ``(path, label)`` or of dicts,
        or a table of pandas, polars or pyarrow with a column ``path``.
    ``fetch_dir``, ``fetch_limit``
        For a data set in an object store: the folder for its shards, which all ranks of a machine
        share (default: ``~/.cache/featherload/fetched``), and the size limit of that folder in
        bytes, or ``"200G"`` (default: all shards, if they take at most half of the free space).
    ``allow_redirects``
        For a data set in an object store: follow redirects to other hosts, such as those of public
        download sites. Addresses of this machine and of private networks stay closed.
    ``recipe``
        What is done to each picture. ``"train224"``, ``"eval224"``, ``"full"``, a recipe file
        (.yaml, .toml, .json), a PaddleClas config, a dict as in a recipe file, or torchvision
        v2 transforms.
    ``batch_size``
        Rows of a batch. Default 256, or what a PaddleClas config says.
    ``num_workers``
        Worker processes. Default: the CPUs that this process may use. At least 1.
    ``device``
        Where batches end: ``"cpu"``, ``"cuda"`` (torch's current device, or torchrun's local
        rank) or ``"cuda:N"``.
    ``framework``
        What ``images`` and ``labels`` are: ``"numpy"`` (default on the CPU), ``"torch"``
        (default on a device), ``"jax"``. They share the memory of the batch.
    ``seed``, ``shuffle``, ``sampler``
        The order of an epoch and all random numbers. Default: seed 0, shuffled anew in each
        epoch. ``sampler``: ``"shuffle"``, ``"sequential"`` or one of ``featherload.samplers``.
    ``drop_last``, ``pad_last``
        A last batch that is not full is left out, or filled with masked rows.
    ``rank``, ``world_size``
        This process among those that train together; default: torchrun's ``RANK`` and
        ``WORLD_SIZE``. All ranks get the same number of batches.
    ``dtype``, ``layout``
        ``"float32"``, ``"float16"``, ``"bfloat16"``, ``"uint8"``; ``"nchw"``, ``"nhwc"``.
        Default: the recipe's, but float32 for ``"train224"`` and ``"eval224"``.
    ``on_error``
        A sample that gives no pixels ends the run (``"stop"``), is masked (``"skip"``), or
        gives its row to the next one (``"substitute"``).
    ``depth``
        Batches that there is memory for. Default 4. Raise it if the trainer keeps several: a
        warning says so.
    ``memory_limit``, ``gpu_memory_limit``
        Most memory that all processes, or the run on the device, may take: bytes, or
        ``"2G"``. What cannot fit is refused.
    ``labels``, ``classes``, ``list``, ``root``, ``delimiter``, ``allow_outside``, ``boxes``,
    ``path_column``, ``image_column``, ``label_column``, ``path_suffix``, ``image_field``,
    ``label_field``, ``label_json``, ``index_dir``
        How the source is read, as the flags of ``featherload index``.
    ``multi_scale``
        Output sizes that take turns: heights and widths, or one number for both.
    ``sandbox``
        What workers are kept from, beside their work: ``"auto"`` (default), all system calls and
        files but those that they need, as far as the system has it; ``"require"``; ``"off"``.
    ``decode_on``
        Which decoders make the pixels of JPEGs. ``"auto"`` (default): on a device the GPU, all
        that its kernels take, where the recipe lets it make the rows and ``gpu_memory_limit``
        leaves room; else the workers. ``"gpu"``: the same, and a run that cannot is refused.
        ``"cpu"``: the workers. Pixels are the same.
    ``decode``, ``reorder``, ``background``, ``orientation``, ``truncated``, ``upload``,
    ``row_limit``, ``hold_timeout`` (seconds), ``max_pixels``, ``max_scratch`` (a size),
    ``epochs``, ``mode``, ``skip_unknown_ops``
        As the flags of ``featherload bench``. With ``epochs`` workers go on to the next epoch
        without a gap.

    Raises ``featherload.ConfigError`` for options that cannot work, ``DatasetError`` for a
    source that cannot be read, ``DeviceError`` and ``WorkerError`` for what is missing.
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
        sampler: str | Sampler | None = None,
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
        labels: Literal["auto", "none"] | None = None,
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
        epochs: int | None = None,
        sandbox: Literal["auto", "require", "off"] | None = None,
        row_limit: float | None = None,
        hold_timeout: float | None = None,
        max_pixels: int | None = None,
        max_scratch: int | str | None = None,
        mode: str | None = None,
        skip_unknown_ops: bool | None = None,
    ) -> None:
        keywords = {name: value for name, value in locals().items() if name != "self"}
        del keywords["framework"]
        if num_workers == 0:
            raise ConfigError(
                "num_workers=0 would make rows in this process: give at least 1 (workers start in "
                "milliseconds, whatever this process holds)",
                option="num_workers",
            )
        self._items = None if _items.is_path(src) else _items.of(src)
        if self._items is not None:
            _options.check_items(keywords)
            keywords["src"] = None
        self._said = _options.library(keywords)
        where = self._said[1]["device"]
        self.framework: Framework = framework or ("numpy" if where == "cpu" else "torch")
        if self.framework not in TAKEN:
            raise ConfigError(
                f"framework {framework!r} is unknown: use one of {', '.join(TAKEN)}",
                option="framework",
            )
        if where != "cpu" and self.framework == "numpy":
            raise ConfigError(
                f"NumPy has no arrays on {where}: give framework='torch' or 'jax', or device='cpu'",
                option="framework",
            )
        self._stream = Stream(_options.text(*self._said), self._raw_items())
        self._place_was_given = rank is not None
        self._pid = os.getpid()
        self._tell(self._stream.told)
        if self.framework == "numpy" and self._gives_bfloat16() and not _has("ml_dtypes"):
            self._stream.close()
            raise ConfigError(
                "NumPy has no bfloat16 without the package ml_dtypes: install that, or give "
                "another dtype or framework",
                option="dtype",
            )
        plan = json.loads(self._stream.state())["plan"]
        self._place: tuple[int, int] = plan["rank"], plan["world"]
        self.dataset = Dataset(self._stream)
        self.batch_size: int = plan["batch"]
        self.drop_last: bool = plan["tail"] == "drop"
        self._pads: bool = plan["tail"] == "pad"
        self._batches, self._rows = self._stream.batches(), self._stream.rows()
        self._turn = Turn("loader")
        self._running: weakref.ref[Epoch] | None = None
        self._broken_off = False
        # Iterators that no batch was asked of.
        self._waiting: weakref.WeakSet[Epoch] = weakref.WeakSet()
        self._resume: dict[str, Any] | None = None
        self._epoch_asked: int | None = None
        self._warned = False
        self.closed = False
        self._counts = _counts.Counts()
        self._events: deque[str] = deque(maxlen=1000)
        # What trainers ask of a loader that is none of torch's.
        self.num_workers = len(json.loads(self._stream.report())["workers"])
        self.pin_memory = False
        self.collate_fn = None
        self.mixup_enabled = False
        self.end_of_dataloader = False
        self.remainder = -1
        self._warn_of_places(label_column, label_field, label_json)
        self._is_made = True

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _FIXED and self.__dict__.get("_is_made"):
            raise ConfigError(
                f"{name} of a loader is read when it is made: make a new loader to change it",
                option=name,
            )
        super().__setattr__(name, value)

    def __len__(self) -> int:
        """Batches of an epoch on this rank, wherever the loader stands."""
        return self._batches

    def __iter__(self) -> Iterator[Batch]:
        """The batches of the next epoch; of the one that ``load_state_dict`` or ``set_epoch``
        said. It begins with the first ``next``, and one that is not over is broken off then.
        Where ``next`` raised an error, the next epoch continues after the last batch.
        """
        self._check_process()
        epoch = Epoch(self)
        self._waiting.add(epoch)
        return epoch

    def _raw_items(self) -> RawItems | None:
        return None if self._items is None else self._items._raw

    def _class_names(self) -> list[str]:
        """Names of the classes, for a preview."""
        return self.dataset.classes

    def _asked(self) -> int | None:
        """The epoch that is to begin next, where somebody said one."""
        return self._epoch_asked

    def _begin(self, epoch: Epoch) -> int:
        """Begins the epoch that comes next, in the place of another one."""
        self._check_place()
        self._check_unchanged()
        before = None if self._running is None else self._running()
        if before is not None and before is not epoch:
            before.supersede()
        asked = self._asked()
        if self._resume is not None:
            # A state that is refused is forgotten.
            state, self._resume = self._resume, None
            self._stream.resume(json.dumps(state))
            # Not where it stands now: what is left may fill no batch, and the next epoch comes.
            if asked is not None and asked != state["epoch"]:
                at = json.loads(self._stream.state())
                self._stream.set_epoch(asked)
                warnings.warn(
                    f"the state stands in epoch {at['epoch']} after {at['samples']} samples, and "
                    f"set_epoch asks for epoch {asked}: that one begins with its first batch",
                    RuntimeWarning,
                    stacklevel=4,
                )
        elif asked is not None:
            self._stream.set_epoch(asked)
        if self._epoch_asked == asked:
            # Another thread may have asked for another one meanwhile.
            self._epoch_asked = None
        self._broken_off = False
        self._waiting.discard(epoch)
        self._running = weakref.ref(epoch)
        self.end_of_dataloader = False
        self._counts.begin_epoch()
        _accelerate.begin(self)
        return self._stream.begin_epoch()

    def _break_off(self) -> None:
        self._stream.break_off()
        self._broken_off = True

    def set_epoch(self, epoch: int) -> None:
        """The next epoch to begin is ``epoch``, from its first batch. After
        ``load_state_dict`` with a state of that epoch it goes on where the state stands.
        """
        self._turn.alone("set_epoch", lambda: self._ask(whole("epoch", epoch, 0, LAST)))

    def _ask(self, epoch: int | None) -> None:
        self._epoch_asked = epoch

    @property
    def epoch(self) -> int:
        """Epoch of the batch that comes next, from 0."""
        return int(self._comes_next()["epoch"])

    def _is_running(self) -> bool:
        """An epoch was begun, and no iterator waits to take its place."""
        running = None if self._running is None else self._running()
        return running is not None and running.runs and not self._waiting

    def _comes_next(self) -> dict[str, Any]:
        """The state in front of the batch that comes next."""
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
        """The samples of this rank in the epoch that comes next: ``len``, ``set_epoch`` and their
        numbers, as torch's loader has them.
        """
        return EpochSampler(self)

    @property
    def batch_sampler(self) -> Any:
        """The same, batch by batch."""
        return EpochBatchSampler(self)

    def state_dict(self) -> dict[str, Any]:
        """Where the run stands: behind the last batch that was given. Numbers and texts.

        ``samples`` counts those of all ranks. So the state of one rank is enough for all of
        them, and for other ranks.
        """
        left_early = self._broken_off and not self._waiting
        if left_early and self._resume is None and self._asked() is None:
            state: dict[str, Any] = json.loads(self._stream.state())
            return state
        return self._comes_next()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """The next ``iter()`` goes on where ``state`` stands, with any number of workers and
        ranks and any batch size: each further sample of the epoch comes once. A state of an
        epoch's end begins the next epoch.

        Raises ``ConfigError`` for what is no state; and when the epoch begins for a state of
        other data, another recipe, order or seed, and names what differs. ``samplers.Identity``
        keeps its batch size.
        """
        self._turn.alone("load_state_dict", lambda: self._load(state))

    def _load(self, state: Mapping[str, Any]) -> None:
        try:
            # Numbers of NumPy and torch are numbers.
            read = json.loads(json.dumps(dict(state), default=operator.index))
            epoch, samples = read["epoch"], read["samples"]
        except (TypeError, ValueError, KeyError):
            raise ConfigError(
                f"the state is not one that state_dict gave: {shown(state)}", option="state"
            ) from None
        whole("epoch", epoch, 0)
        whole("samples", samples, 0)
        self._resume = read
        self._epoch_asked = None

    def stats(self) -> dict[str, Any]:
        """What happened so far: images, failures, waits and times by stage (seconds), memory,
        deaths of workers, process ids. 0.1 ms: cheap enough for each step.

        ``images`` and ``failed`` count since the loader was made, ``images_per_s`` is that of the
        epoch at hand. ``memory_bytes``: the batches' shared memory, and what the processes have
        beside it.
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

    @property
    def recipe(self) -> dict[str, Any]:
        """What is done to each picture, with what the keywords say of it."""
        recipe: dict[str, Any] = json.loads(self._stream.recipe)
        return recipe

    def preview(self, rows: int = 16) -> Preview:
        """Rows of the first batch of the epoch at hand as pictures: as the model gets them,
        with ``normalize`` taken back.

        A notebook draws it, ``print`` lists it, ``.save("rows.png")`` writes it. One worker makes
        the batch anew, on the CPU, with memory for two batches while it does: this loader stays
        where it is.
        """
        self._check_process()
        whole("rows", rows, 1)
        source, loader = self._said
        of_the_run = ("upload", "gpu_memory_limit", "memory_limit", "epochs", "decode_on")
        here = {name: value for name, value in loader.items() if name not in of_the_run}
        alone = {**here, "num_workers": 1, "depth": 2, "device": "cpu"}
        stream = Stream(_options.text(source, alone), self._raw_items())
        try:
            stream.set_epoch(self.epoch)
            raw = stream.next(stream.begin_epoch())
            if raw is None:
                return Preview([])
            batch = Batch(TAKEN["numpy"](raw), raw)
            return _preview.of_batch(batch, self.recipe, self._class_names(), rows)
        finally:
            stream.close()

    def progress(self, **options: Any) -> Iterator[Batch]:
        """``iter(loader)`` behind a bar of tqdm's that counts images: their rate, and how much of
        the time the trainer waited for them. Keywords are tqdm's. Without tqdm there is no bar.
        """
        return _progress.bar(self, options)

    def _gives_bfloat16(self) -> bool:
        casts = [op["cast"]["dtype"] for op in self.recipe["ops"] if "cast" in op]
        return casts[-1:] == ["bf16"]

    def _tell(self, told: Sequence[str]) -> None:
        for text in told:
            _log.warning("%s", text)
        tell_warnings()

    def left_out(self) -> dict[str, Any] | None:
        """What the scan of the source left out, by reason; None for a saved index."""
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
            "a Loader has processes of its own and cannot go to another process: make one there"
        )

    def _check_process(self) -> None:
        if os.getpid() != self._pid:
            raise WorkerError(
                "a loader cannot be used in a forked copy of the process that made it: make one "
                "there, or start that process by spawn"
            )

    def _check_place(self) -> None:
        """Processes that train together and all read everything would train on each row once
        for each of them.
        """
        group = _options.process_group()
        if group is None or self._place_was_given or group == self._place:
            return
        raise ConfigError(
            f"this process is rank {group[0]} of {group[1]} by torch.distributed, and the loader "
            f"was made as rank {self._place[0]} of {self._place[1]}: make it behind "
            "init_process_group (in Lightning in train_dataloader), or give rank and world_size",
            option="rank",
        )

    def _check_unchanged(self) -> None:
        """What the loader was made of is as it was, where others may change it."""

    def _warn_of_places(self, *columns: str | None) -> None:
        """Labels that are places in the picture stay where they were, and the pixels move."""
        named = [name for columns_ in columns for name in (columns_ or "").split(",")]
        places = _labels.places(named)
        if not places or not len(self.dataset) or not _labels.moves(self.recipe["ops"]):
            return
        label = self.dataset[0][1]
        if isinstance(label, Sequence) and len(label) > 1:
            shown = printable(", ".join(places))
            warnings.warn(
                f"the labels {shown} look like places in the picture. They come as "
                "they are stored: resize, crop and flip move pixels and no labels. Use "
                "recipe='full' and move both yourself, or filter this warning",
                UserWarning,
                stacklevel=3,
            )

    def _take(self, raw: RawBatch) -> Batch:
        pair = TAKEN[self.framework](raw)
        if raw.last_on_device:
            # All other memory on the device is held: this one goes back at once.
            pair = _own(self.framework, pair)
            raw = raw.without_pixels()
        if (raw.copied or raw.last_on_device) and not self._warned:
            self._warned = True
            held, depth = self._stream.held()
            warnings.warn(
                f"{held} batches are held and depth is {depth}: further ones come as copies, which "
                f"takes time and memory. Drop batches earlier, or give depth={2 * (depth or 1)}",
                RuntimeWarning,
                stacklevel=3,
            )
        return Batch(pair, raw)


def _has(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def _own(framework: Framework, pair: tuple[Any, Any]) -> tuple[Any, Any]:
    """The images in memory of the framework's own."""
    images, labels = pair

    def copy(array: Any) -> Any:
        return array.clone() if framework == "torch" else array.copy()

    if isinstance(images, list):
        return [copy(a) for a in images], labels
    return copy(images), labels
