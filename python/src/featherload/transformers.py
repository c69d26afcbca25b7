"""Hugging Face's ``Trainer`` with the loaders of featherload.

::

    -from transformers import Trainer
    +from featherload.transformers import Trainer
"""

from __future__ import annotations

import difflib
import inspect
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import transformers
import transformers.trainer

from . import _dealing
from . import torch as _torch
from ._dataset import Dataset
from ._errors import ConfigError
from ._items import Items
from ._loader import Loader
from ._named_batches import NamedBatches, checked_names
from ._values import shown

__all__ = ["Images", "Trainer", "TrainerMixin"]

_STATE = "featherload_state.json"
# The label that losses of torch and of transformers leave out.
IGNORED = -100
# Keywords of loaders that follow from the arguments of the Trainer.
_OF_ARGUMENTS = {
    "batch_size": "per_device_train_batch_size and per_device_eval_batch_size",
    "drop_last": "dataloader_drop_last",
    "pad_last": "dataloader_drop_last",
    "rank": "the processes that train",
    "shuffle": "train_sampling_strategy",
    "world_size": "the processes that train",
}


class Images:
    """A data set for :class:`Trainer`, with keywords of the loaders that the Trainer makes.

    ::

        Trainer(
            model,
            args,
            train_dataset=Images("photos/train", "train224"),
            eval_dataset=Images("photos/val", "eval224"),
        )

    ``src``
        Anything that ``featherload.Loader`` or ``featherload.torch.DataLoader`` accepts.
    ``recipe``
        The operations on each image. Default: the transform of a torch data set.
    ``options``
        Further keywords of the loader, such as ``device``, ``dtype`` or ``on_error``. Batch size,
        order, rank and ``drop_last`` follow from the arguments of the Trainer. So do
        ``num_workers``, ``seed`` and ``depth``, unless they are given here. ``columns`` become
        entries of the batches, which the model or ``compute_loss`` takes.

    With ``on_error="skip"``, a failed sample has the label -100, which losses leave out. The model
    still sees its black image.
    """

    def __init__(self, src: Any, recipe: Any = None, **options: Any) -> None:
        for name, argument in _OF_ARGUMENTS.items():
            if name in options:
                raise ConfigError(
                    f"{name} follows from {argument} of the Trainer: leave it out", option=name
                )
        if options.get("framework") not in (None, "torch"):
            raise ConfigError(
                f"framework={shown(options['framework'])}: the Trainer takes tensors of torch: "
                "leave it out",
                option="framework",
            )
        known = inspect.signature(Loader).parameters
        for name in options:
            if name not in known:
                near = difflib.get_close_matches(name, known, 1)
                raise ConfigError(
                    f"{name} is no keyword of a loader"
                    + (f": did you mean {near[0]}?" if near else ": leave it out"),
                    option=name,
                )
        self.src = src
        self.options = options
        self._is_dataset = _is_dataset(src)
        if recipe is not None:
            self.options["recipe"] = recipe
        elif not self._is_dataset:
            raise ConfigError(
                "Images needs a recipe: give a name such as 'train224' or 'eval224', transforms, "
                "or a recipe file",
                option="recipe",
            )
        self._classes: list[str] | None = None
        self._samples: int | None = None
        if self._is_dataset or isinstance(src, Items):
            self._samples = len(src)

    def __len__(self) -> int:
        """The number of samples. Of a path, it is read once."""
        if self._samples is None:
            self._read()
        return self._samples or 0

    @property
    def classes(self) -> list[str]:
        """Names of the classes. The position in the list is the label."""
        if self._classes is None:
            self._read()
        return self._classes or []

    def _read(self) -> None:
        with self.loader(batch_size=1, num_workers=1, rank=0, world_size=1, depth=1) as loader:
            self._classes = loader._class_names()
            self._samples = len(loader.dataset)

    def loader(self, **options: Any) -> Loader:
        """A loader over the data set. ``options``: its keywords, unless the data set has them."""
        given = {**options, **self.options}
        if self._is_dataset:
            return _torch.DataLoader(self.src, **given)
        return Loader(self.src, framework="torch", **given)

    def __getitem__(self, index: Any) -> Any:
        raise TypeError(
            "Images has no items, because workers load whole batches: give it to "
            "featherload.transformers.Trainer in place of transformers.Trainer"
        )

    def __repr__(self) -> str:
        return f"Images({shown(self.src)})"


def _is_dataset(src: Any) -> bool:
    """Whether it is for ``featherload.torch.DataLoader``."""
    import torch.utils.data

    from ._item_feed import METHOD

    return isinstance(src, torch.utils.data.Dataset) or hasattr(type(src), METHOD)


class _TrainerLoader:
    """A loader as the Trainer takes it: its batches are dicts, and ``dataset`` is the given one."""

    def __init__(self, loader: Loader, dataset: Any, names: tuple[str, str]) -> None:
        self.loader, self.dataset = loader, dataset
        # A flat folder has the label -1 for each file, which is no class.
        of = loader.dataset
        has_targets = loader._has_masks or loader._view is not None
        no_labels = (
            not has_targets and isinstance(of, Dataset) and not of.classes and of[0][1] == -1
        )
        self._names = names[:1] if no_labels else names
        self._resumed: tuple[int, dict[str, Any]] | None = None

    def __len__(self) -> int:
        return len(self.loader)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return NamedBatches(iter(self.loader), self._names, IGNORED)

    def set_epoch(self, epoch: int) -> None:
        resumed, self._resumed = self._resumed, None
        if resumed is not None:
            batches, state = resumed
            samples = batches * self.loader.batch_size * self.loader._place[1]
            self.loader.load_state_dict({**state, "epoch": epoch, "samples": samples})
        self.loader.set_epoch(epoch)

    def after(self, batches: int, state: dict[str, Any] | None) -> _TrainerLoader:
        """The same loader. Its next epoch begins after ``batches`` batches of a former run, which
        had ``state``.
        """
        now = self.loader.state_dict()
        if state is not None:
            for name, text in (("batch", "batch size"), ("world", "number of processes")):
                if state["plan"][name] != now["plan"][name]:
                    raise ConfigError(
                        f"the checkpoint has {text} {state['plan'][name]}, and this run has "
                        f"{now['plan'][name]}: resume with that of the checkpoint, or give "
                        "ignore_data_skip=True to begin the epoch again",
                        option="resume_from_checkpoint",
                    )
        self._resumed = batches, now if state is None else state
        return self

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["loader"], name)


class TrainerMixin:
    """The methods of :class:`Trainer`, for other subclasses of ``transformers.Trainer``::

    class MyTrainer(TrainerMixin, MyOtherTrainer): ...
    """

    args: Any
    state: Any
    accelerator: Any
    train_dataset: Any
    eval_dataset: Any
    _train_batch_size: int

    names: tuple[str, str] = ("pixel_values", "labels")
    """Names of images and labels, as the model takes them. Objects with ``targets="detr"`` come as
    ``pixel_mask`` and ``labels`` instead."""

    def __init__(self, *args: Any, **options: Any) -> None:
        collator = options.get("data_collator", args[2] if len(args) > 2 else None)
        if collator is not None:
            raise ConfigError(
                "data_collator is not called, because batches come complete: leave it out, and "
                "give other names of images and labels as the attribute `names` of the Trainer",
                option="data_collator",
            )
        self._train_loader: _TrainerLoader | None = None
        # Loaders of eval_dataset, which each evaluation uses again. Key: the id of the data set,
        # which the value keeps alive.
        self._kept_loaders: dict[int, _TrainerLoader] = {}
        super().__init__(*args, **options)

    def get_train_dataloader(self) -> Any:
        """The loader of ``train_dataset``, with the batch size of the Trainer."""
        if self.train_dataset is None:
            raise ValueError("Trainer: training requires a train_dataset.")
        if self._train_loader is not None:
            self._train_loader.loader.close()
        self._train_loader = self._make(self.train_dataset, self._train_batch_size, training=True)
        return self._train_loader

    def get_eval_dataloader(self, eval_dataset: Any = None) -> Any:
        """The loader of ``eval_dataset``. Workers of the Trainer's own data set stay ready for the
        next evaluation.
        """
        if eval_dataset is None and self.eval_dataset is None:
            raise ValueError("Trainer: evaluation requires an eval_dataset.")
        if isinstance(eval_dataset, str):
            eval_dataset = self.eval_dataset[eval_dataset]
        own = self.eval_dataset.values() if isinstance(self.eval_dataset, dict) else ()
        dataset = self.eval_dataset if eval_dataset is None else eval_dataset
        if dataset is not self.eval_dataset and not any(dataset is one for one in own):
            return self._make(dataset, self.args.eval_batch_size)
        kept = self._kept_loaders.get(id(dataset))
        if kept is None or kept.loader.closed:
            kept = self._make(dataset, self.args.eval_batch_size)
            self._kept_loaders[id(dataset)] = kept
        return kept

    def get_test_dataloader(self, test_dataset: Any) -> Any:
        """The loader of ``test_dataset``."""
        return self._make(test_dataset, self.args.eval_batch_size)

    def evaluation_loop(self, dataloader: Any, *args: Any, **options: Any) -> Any:
        """As in ``transformers.Trainer``. Workers of a data set that is used once end after it."""
        try:
            # Each evaluation has the same epoch, the first one.
            if isinstance(dataloader, _TrainerLoader):
                dataloader.set_epoch(0)
            return super().evaluation_loop(dataloader, *args, **options)  # type: ignore[misc]
        finally:
            kept = self._kept_loaders.values()
            if isinstance(dataloader, _TrainerLoader) and dataloader not in kept:
                dataloader.loader.close()

    def _make(self, dataset: Any, batch_size: int, training: bool = False) -> _TrainerLoader:
        args = self.args
        self._check_arguments()
        images = dataset if isinstance(dataset, Images) else _images(dataset)
        rank, world = args.process_index, args.world_size
        held = args.gradient_accumulation_steps if training else 1
        options: dict[str, Any] = {
            "batch_size": batch_size,
            "num_workers": max(1, args.dataloader_num_workers),
            "drop_last": args.dataloader_drop_last,
            # The Trainer takes the batches of a step at once, and keeps those of the last step.
            "depth": 2 * held + 2,
        }
        if training:
            options["shuffle"] = args.train_sampling_strategy != "sequential"
            options["seed"] = args.seed if args.data_seed is None else args.data_seed
            options.update(rank=rank, world_size=world)
        else:
            # Ranks other than the first have samples of their own, as accelerate deals them.
            options.update(rank=0, world_size=1)
            if "sampler" in images.options:
                raise ConfigError(
                    "sampler: the Trainer evaluates in the order of the data set: leave it out",
                    option="sampler",
                )
            if world == 1:
                options["shuffle"] = False
            else:
                options["sampler"] = _dealing.DealtSamples(
                    len(images), batch_size, rank, world, args.dataloader_drop_last
                )
        if "sampler" in images.options:
            del options["shuffle"]
        loader = images.loader(**options)
        if not training and world > 1 and not args.dataloader_drop_last:
            loader._kept_of_last = _dealing.kept_of_last(len(images), batch_size, world)
        return _TrainerLoader(loader, dataset, checked_names(self.names))

    def _check_arguments(self) -> None:
        args = self.args
        if args.train_sampling_strategy not in ("random", "sequential"):
            raise ConfigError(
                f"train_sampling_strategy={shown(args.train_sampling_strategy)} groups texts by "
                "length: use random or sequential, or give Images a sampler",
                option="train_sampling_strategy",
            )
        config = args.accelerator_config
        if config.split_batches:
            raise ConfigError(
                "split_batches=True divides each batch over the processes: leave it out, and give "
                "the batch size of one process",
                option="split_batches",
            )
        if not config.even_batches:
            raise ConfigError(
                "even_batches=False gives processes different numbers of batches: leave it out",
                option="even_batches",
            )
        parallel = getattr(self.accelerator, "parallelism_config", None)
        if parallel is not None and parallel.non_data_parallel_size > 1:
            raise ConfigError(
                "the processes do not all train on samples of their own (tensor, context or "
                "sequence parallelism): use featherload.Loader with rank and world_size",
                option="parallelism_config",
            )

    def _inner_training_loop(self, *args: Any, **options: Any) -> Any:
        """Resumes at the position of the checkpoint, without loading the batches before it."""
        theirs = transformers.trainer.skip_first_batches
        checkpoint = options.get("resume_from_checkpoint")

        def skip_first_batches(dataloader: Any, num_batches: int = 0) -> Any:
            if isinstance(dataloader, _TrainerLoader):
                return dataloader.after(num_batches, _saved_state(checkpoint))
            return theirs(dataloader, num_batches)

        # The loop calls it by this name.
        transformers.trainer.skip_first_batches = skip_first_batches
        try:
            return super()._inner_training_loop(*args, **options)  # type: ignore[misc]
        finally:
            transformers.trainer.skip_first_batches = theirs

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        """Adds the state of the loader to the checkpoint."""
        super()._save_checkpoint(model, trial)  # type: ignore[misc]
        folder = Path(self._get_output_dir(trial=trial))  # type: ignore[attr-defined]
        folder /= f"{transformers.trainer.PREFIX_CHECKPOINT_DIR}-{self.state.global_step}"
        # The limit of checkpoints may have removed it already.
        if self.args.should_save and self._train_loader is not None and folder.is_dir():
            state = self._train_loader.loader.state_dict()
            (folder / _STATE).write_text(json.dumps(state))


def _images(dataset: Any) -> Images:
    if _is_dataset(dataset):
        return Images(dataset)
    raise ConfigError(
        f"the data set {shown(dataset)} has no transform: give "
        "featherload.transformers.Images(src, recipe)",
        option="dataset",
    )


def _saved_state(checkpoint: str | os.PathLike[str] | None) -> dict[str, Any] | None:
    """The state of the loader in a checkpoint. None for one of ``transformers.Trainer``."""
    if checkpoint is None or not (file := Path(checkpoint) / _STATE).exists():
        return None
    state: dict[str, Any] = json.loads(file.read_text())
    return state


class Trainer(TrainerMixin, transformers.Trainer):
    """``transformers.Trainer`` that trains, evaluates and predicts from loaders of featherload.

    ``train_dataset``, ``eval_dataset`` and the data set of ``predict`` are :class:`Images`, or data
    sets that ``featherload.torch.DataLoader`` accepts, such as ``ImageFolder`` with a transform.
    Their items need not be dicts: the Trainer gets ``pixel_values`` and ``labels``, or the names in
    the attribute ``names``.

    Batch size, ``dataloader_num_workers`` (0 means 1 here), ``dataloader_drop_last``, seed and the
    division over processes follow from ``args``. Evaluation has the samples and the order of
    ``transformers.Trainer``, so its metrics count the same rows. A checkpoint has the state of the
    loader, and training resumes at the sample where it stopped.

    Raises ``ConfigError`` for a ``data_collator``, and for arguments that divide batches in another
    way.
    """
