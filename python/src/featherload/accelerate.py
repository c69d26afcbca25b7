"""``featherload.accelerate.DataLoader``: in place of torch's, in scripts that use accelerate.

::

    -from torch.utils.data import DataLoader
    +from featherload.accelerate import DataLoader
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from typing import Any

from . import _dealing, _file_lists, _torch_order
from . import torch as _torch
from ._errors import ConfigError
from ._loader import made_again
from ._named_batches import NamedBatches, checked_names
from ._values import whole
from .samplers import Sampler

__all__ = ["DataLoader"]


class DataLoader(_torch.DataLoader):
    """``featherload.torch.DataLoader`` that divides the samples as accelerate divides torch's.

    ``accelerator.prepare`` returns it unchanged: it already has the samples of its process, so
    ``len`` is the number of batches of this process. Make it after the ``Accelerator``.

    Without shuffling, each process has the samples that accelerate gives it. So
    ``gather_for_metrics`` returns each sample once, in the order of the data set, with any number
    of processes.

    ``names``
        Names of images and labels: batches are dicts. Default: batches are pairs.

    Further keywords are those of ``featherload.torch.DataLoader``, except ``rank`` and
    ``world_size``. With several processes, ``sampler`` is a ``SequentialSampler`` or
    ``RandomSampler`` of torch over all samples, or one of ``featherload.samplers``.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        batch_sampler: Any = None,
        num_workers: int = 0,
        *,
        names: tuple[str, str] | None = None,
        drop_last: bool = False,
        **options: Any,
    ) -> None:
        from accelerate import PartialState

        for name in ("rank", "world_size"):
            if options.get(name) is not None:
                raise ConfigError(
                    f"{name} is that of accelerate's process: leave it out, or use "
                    "featherload.torch.DataLoader",
                    option=name,
                )
        self._entries = None if names is None else checked_names(names)
        state = PartialState()
        rank, world = state.process_index, state.num_processes
        dealt = None
        if world > 1:
            if batch_sampler is not None:
                sampler, batch_size, drop_last = _torch_order.of_batch_sampler(batch_sampler)
                batch_sampler = None
            samples = len(_file_lists.resolve(dataset).samples)
            dealt = _check_sampler(sampler, shuffle, samples, batch_size)
            if dealt:
                sampler = _dealing.DealtSamples(samples, batch_size, rank, world, drop_last)
                options.update(rank=0, world_size=1)
            else:
                if not isinstance(sampler, Sampler):
                    sampler, shuffle = None, True
                options.update(rank=rank, world_size=world)
                if options.get("seed") is None and options.get("generator") is None:
                    options["seed"] = _seed_of_first_process()
        else:
            options.update(rank=0, world_size=1)
        super().__init__(
            dataset,
            batch_size,
            shuffle,
            sampler,
            batch_sampler,
            num_workers,
            drop_last=drop_last,
            **options,
        )
        if dealt and not drop_last:
            self._kept_of_last = _dealing.kept_of_last(samples, batch_size, world)

        self.__dict__["collate_fn"] = made_again
        _support_skipping()

    def __iter__(self) -> Iterator[Any]:
        epoch = super().__iter__()
        return epoch if self._entries is None else NamedBatches(epoch, self._entries)

    def _at_next_epoch(self) -> dict[str, Any]:
        """The state at the beginning of the next epoch. Ends a running one, and takes the order of
        a sampler object.
        """
        running = None if self._running is None else self._running()
        if running is not None:
            running.supersede()
        state = self._comes_next()
        if self._request.order is not None and not state["samples"]:
            epoch = state["epoch"]
            self._request.order.begin(self._stream, epoch, self._asked() is not None)
            # It has the hash of the order.
            state = {**json.loads(self._stream.state()), "epoch": epoch}
        return self._with_progress(state)


class SkippedBatches:
    """The next epoch of a loader without its first batches, which are not loaded."""

    def __init__(self, loader: DataLoader, batches: int) -> None:
        self._loader, self._batches = loader, whole("num_batches", batches, 0)

    def __len__(self) -> int:
        return max(len(self._loader) - self._batches, 0)

    def __iter__(self) -> Iterator[Any]:
        loader = self._loader
        if not self._batches:
            return iter(loader)
        state = loader._at_next_epoch()
        if self._batches >= len(loader):
            # Nothing is left of this epoch: the loader goes on with the one after it.
            loader.load_state_dict({**state, "epoch": state["epoch"] + 1, "samples": 0})
            return iter(())
        samples = self._batches * loader.batch_size * loader._place[1]
        loader.load_state_dict({**state, "samples": samples})
        return iter(loader)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_loader"], name)


def _support_skipping() -> None:
    """Makes ``skip_first_batches`` of accelerate accept these loaders. It would make a loader of
    torch of the data set, with other images.
    """
    import accelerate
    import accelerate.accelerator
    import accelerate.data_loader

    theirs = accelerate.data_loader.skip_first_batches
    if getattr(theirs, "_takes_featherload", False):
        return

    @functools.wraps(theirs)
    def skip_first_batches(dataloader: Any, num_batches: int = 0) -> Any:
        if isinstance(dataloader, DataLoader):
            return SkippedBatches(dataloader, num_batches)
        return theirs(dataloader, num_batches)

    skip_first_batches._takes_featherload = True  # type: ignore[attr-defined]
    for module in (accelerate, accelerate.accelerator, accelerate.data_loader):
        module.skip_first_batches = skip_first_batches


def _check_sampler(sampler: Any, shuffle: Any, samples: int, batch_size: int) -> bool:
    """Whether samples come in the order of the data set. Otherwise they are shuffled, or the order
    is that of a sampler of featherload.
    """
    if sampler is None:
        return not shuffle
    if isinstance(sampler, Sampler):
        return False
    known = _torch_order.makes_order(sampler, samples, batch_size, drop_last=False)
    if not known or _torch_order.is_distributed(sampler):
        raise ConfigError(
            f"the sampler {type(sampler).__name__} is not divided among processes here: give "
            "shuffle or one of featherload.samplers, or give featherload.torch.DataLoader a "
            "sampler with the samples of this process",
            option="sampler",
        )
    return not _torch_order.is_random(sampler)


def _seed_of_first_process() -> int:
    """torch's seed in the first process. accelerate synchronises torch's loaders by it."""
    import torch
    from accelerate.utils import broadcast_object_list

    seeds = [torch.initial_seed() % (1 << 64)]
    broadcast_object_list(seeds)
    return int(seeds[0])
