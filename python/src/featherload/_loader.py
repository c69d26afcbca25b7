"""``featherload.Loader``: what a trainer holds.

Workers are processes that are started before any picture is read, by an executable inside the
package: so a trainer with threads, CUDA and many GiB starts them safely and at once.
"""

from __future__ import annotations

import json
import logging
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from . import _accelerate, _options, _preview, _progress
from ._batch import TAKEN, Batch, Framework
from ._errors import ConfigError, WorkerError
from ._featherload import RawBatch, Stream
from ._preview import Preview
from .samplers import Sampler

_log = logging.getLogger("featherload")
_Path = str | os.PathLike[str]


class Dataset:
    """The samples of a loader: how many, their files, labels and classes."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._len = stream.samples()
        self.classes: list[str] = stream.classes()
        """Names of the classes; the place in the list is the label."""

    @property
    def class_to_idx(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.classes)}

    def __len__(self) -> int:
        return self._len

    def __getitem__(self, id: int) -> tuple[Path, int | list[float] | None]:
        """File and label of a sample, by its number in the index. Reads no picture."""
        if id < 0:
            id += self._len
        if not 0 <= id < self._len:
            raise IndexError(f"there is no sample {id} in a data set of {self._len}")
        path, label, vector = self._stream.sample(id)
        return Path(path), label if vector is None else vector


class Loader:
    """Batches of images, for one epoch after another.

    ::

        loader = featherload.Loader("data/train", batch_size=256, framework="torch")
        for epoch in range(90):
            for images, labels in loader:
                ...

    ``src``
        A folder (flat, or a folder for each class), tar shards (``"train-{000..123}.tar"``), a
        list file, a cache, or a saved index.
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
    ``label_field``, ``label_json``, ``index_dir``
        How the source is read, as the flags of ``featherload index``.
    ``multi_scale``
        Output sizes that take turns: heights and widths, or one number for both.
    ``decode``, ``reorder``, ``background``, ``orientation``, ``upload``, ``row_limit``,
    ``hold_timeout`` (seconds), ``max_pixels``, ``max_scratch`` (bytes), ``epochs``,
    ``mode``, ``skip_unknown_ops``
        As the flags of ``featherload bench``. With ``epochs`` workers go on to the next epoch
        without a gap.

    Raises ``featherload.ConfigError`` for options that cannot work, ``DatasetError`` for a
    source that cannot be read, ``DeviceError`` and ``WorkerError`` for what is missing.
    """

    def __init__(
        self,
        src: _Path | None = None,
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
        upload: Literal["in-place", "copied"] | None = None,
        decode: Literal["full", "scaled"] | None = None,
        reorder: Literal["off", "exact", "fast"] | None = None,
        background: str | None = None,
        orientation: Literal["exif", "stored"] | None = None,
        list: _Path | None = None,
        labels: Literal["auto", "none"] | None = None,
        classes: _Path | None = None,
        root: _Path | None = None,
        delimiter: str | None = None,
        allow_outside: bool | None = None,
        boxes: _Path | None = None,
        label_field: str | None = None,
        label_json: str | None = None,
        index_dir: _Path | None = None,
        epochs: int | None = None,
        row_limit: float | None = None,
        hold_timeout: float | None = None,
        max_pixels: int | None = None,
        max_scratch: int | str | None = None,
        mode: str | None = None,
        skip_unknown_ops: bool | None = None,
    ) -> None:
        if num_workers == 0:
            raise ConfigError(
                "num_workers=0 would decode in this process, which has no decoders: give at least "
                "1 (workers start in milliseconds, whatever this process holds)",
                option="num_workers",
            )
        where = _options.device_name(device)
        self.framework: Framework = framework or ("numpy" if where == "cpu" else "torch")
        if self.framework not in TAKEN:
            raise ConfigError(
                f"framework {framework!r} is none of {', '.join(TAKEN)}", option="framework"
            )
        if where != "cpu" and self.framework == "numpy":
            raise ConfigError(
                f"NumPy has no arrays on {where}: give framework='torch' or 'jax', or device='cpu'",
                option="framework",
            )
        if depth is None and memory_limit is None and gpu_memory_limit is None:
            depth = _options.DEPTH
        source = {
            "path": src,
            "list": list,
            "labels": labels,
            "classes": classes,
            "root": root,
            "delimiter": delimiter,
            "allow_outside": allow_outside,
            "boxes": boxes,
            "label_field": label_field,
            "label_json": label_json,
            "index_dir": index_dir,
        }
        loader: dict[str, Any] = {
            "mode": mode,
            "skip_unknown_ops": skip_unknown_ops,
            "layout": layout,
            "decode": decode,
            "reorder": reorder,
            "background": background,
            "orientation": orientation,
            "batch_size": batch_size,
            "workers": num_workers,
            "depth": depth,
            "memory_limit": _options.byte_count("memory_limit", memory_limit),
            "device": where,
            "upload": upload,
            "gpu_memory_limit": _options.byte_count("gpu_memory_limit", gpu_memory_limit),
            "seed": seed,
            "rank": _options.place(rank, world_size),
            "on_error": on_error,
            "row_limit": row_limit,
            "hold_timeout": hold_timeout,
            "max_pixels": max_pixels,
            "max_scratch": _options.byte_count("max_scratch", max_scratch),
            "epochs": epochs,
            **_options.recipe_options(recipe, dtype),
            **_options.order_options(sampler, shuffle),
            **_options.tail(drop_last, pad_last),
        }
        if multi_scale is not None:
            loader["multi_scale"] = _options.scales(multi_scale)
        self._said = source, loader
        self._stream = Stream(_options.text(source, loader))
        self._pid = os.getpid()
        for told in self._stream.told:
            _log.warning("%s", told)
        plan = json.loads(self._stream.state())["plan"]
        self.dataset = Dataset(self._stream)
        self.batch_size: int = plan["batch"]
        self.drop_last: bool = plan["tail"] == "drop"
        self._batches = self._stream.batches()
        self._running: _Epoch | None = None
        self._resume: dict[str, Any] | None = None
        self._epoch_asked: int | None = None
        self._warned = False
        # What trainers ask of a loader that is none of torch's.
        self.batch_sampler = None
        self.num_workers = num_workers
        self.pin_memory = False
        self.collate_fn = None
        self.mixup_enabled = False
        self.end_of_dataloader = False
        self.remainder = -1

    def __len__(self) -> int:
        """Batches of an epoch on this rank, wherever the loader stands."""
        return self._batches

    def __iter__(self) -> Iterator[Batch]:
        """The batches of the next epoch; of the one that ``load_state_dict`` or ``set_epoch``
        said. An epoch that is not over is broken off.
        """
        self._check_process()
        if self._running is not None:
            self._running.close()
        if self._resume is not None:
            self._stream.resume(json.dumps(self._resume))
            resumed_at = self._stream.position()[0]
            if self._epoch_asked is not None and self._epoch_asked != resumed_at:
                self._stream.set_epoch(self._epoch_asked)
        elif self._epoch_asked is not None:
            self._stream.set_epoch(self._epoch_asked)
        self._resume = self._epoch_asked = None
        self._running = _Epoch(self, self._stream.begin_epoch())
        return self._running

    def set_epoch(self, epoch: int) -> None:
        """The next ``iter()`` gives epoch ``epoch``, from its first batch. After
        ``load_state_dict`` with a state of that epoch it goes on where the state stands.
        """
        self._epoch_asked = epoch

    @property
    def epoch(self) -> int:
        """Epoch of the batch that comes next, from 0."""
        if self._resume is not None:
            return int(self._resume["epoch"])
        return self._stream.position()[0]

    @property
    def sampler(self) -> Loader:
        """The loader itself, which has ``set_epoch``."""
        return self

    def state_dict(self) -> dict[str, Any]:
        """Where the run stands: behind the last batch that was given. Numbers and texts."""
        if self._resume is not None:
            return dict(self._resume)
        state: dict[str, Any] = json.loads(self._stream.state())
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """The next ``iter()`` goes on where ``state`` stands, with any number of workers. A
        state of an epoch's end begins the next epoch.

        Raises ``ConfigError`` at ``iter()`` for a state of other data, another recipe, order,
        seed, rank or batch size, and names what differs.
        """
        self._resume = dict(state)

    def stats(self) -> dict[str, Any]:
        """What happened so far: rows, waits and times by stage (seconds), deaths of workers,
        process ids. Cheap enough for each step.
        """
        report: dict[str, Any] = json.loads(self._stream.report())
        device = json.loads(self._stream.device_memory())
        if device is not None:
            report["device_memory"] = device
        return report

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
        source, loader = self._said
        of_the_run = ("upload", "gpu_memory_limit", "memory_limit", "epochs")
        here = {name: value for name, value in loader.items() if name not in of_the_run}
        stream = Stream(_options.text(source, {**here, "workers": 1, "depth": 2, "device": "cpu"}))
        try:
            stream.set_epoch(self.epoch)
            raw = stream.next(stream.begin_epoch())
            if raw is None:
                return Preview([])
            batch = Batch(TAKEN["numpy"](raw), raw, stream)
            return _preview.of_batch(batch, self.recipe, self.dataset.classes, rows)
        finally:
            stream.close()

    def progress(self, **options: Any) -> Iterator[Batch]:
        """``iter(loader)`` behind a bar of tqdm's that counts images: their rate, and how much of
        the time the trainer waited for them. Keywords are tqdm's. Without tqdm there is no bar.
        """
        return _progress.bar(self, options)

    def left_out(self) -> dict[str, Any] | None:
        """What the scan of the source left out, by reason; None for a saved index."""
        report: dict[str, Any] | None = json.loads(self._stream.scan_report())
        return report

    def close(self) -> None:
        """Ends the workers now. Batches stay readable."""
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
        return Batch(pair, raw, self._stream)


class _Epoch(Iterator[Batch]):
    """The batches of one epoch."""

    def __init__(self, loader: Loader, epoch: int) -> None:
        self._loader: Loader | None = loader
        self._stream = loader._stream
        self._epoch = epoch
        self._begun = False

    def __next__(self) -> Batch:
        loader = self._loader
        if loader is None:
            raise StopIteration
        loader._check_process()
        if not self._begun:
            self._begun = True
            loader.end_of_dataloader = False
            _accelerate.begin(loader)
        raw = self._stream.next(self._epoch)
        if raw is None:
            self._end()
            raise StopIteration
        if self._stream.position()[0] != self._epoch:
            loader.end_of_dataloader = True
        return loader._take(raw)

    def _end(self) -> None:
        loader, self._loader = self._loader, None
        if loader is not None:
            _accelerate.end(loader)
            if loader._running is self:
                loader._running = None

    def close(self) -> None:
        """Ends the epoch here: the loader's next one is the next."""
        loader = self._loader
        if loader is None:
            return
        self._end()
        here = self._begun and os.getpid() == loader._pid
        if here and self._stream.position()[0] == self._epoch:
            self._stream.break_off()

    def __del__(self) -> None:
        try:
            self.close()
        except Exception:  # the loader was closed, or the interpreter ends
            pass


def _own(framework: Framework, pair: tuple[Any, Any]) -> tuple[Any, Any]:
    """The images in memory of the framework's own."""
    images, labels = pair

    def copy(array: Any) -> Any:
        return array.clone() if framework == "torch" else array.copy()

    if isinstance(images, list):
        return [copy(a) for a in images], labels
    return copy(images), labels
