"""``featherload.torch.DataLoader``, which replaces torch's for torchvision's image folders.

::

    -from torch.utils.data import DataLoader
    +from featherload.torch import DataLoader
"""

from __future__ import annotations

import logging
import math
import os
import warnings
import weakref
from typing import Any

from . import _image_folder, _options, _torch_order
from ._errors import ConfigError
from ._loader import Loader
from ._values import shown

__all__ = ["DataLoader"]

_log = logging.getLogger("featherload")


class DataLoader(Loader):
    """torch's ``DataLoader`` over a ``torchvision.datasets.ImageFolder``.

    ``dataset``
        The ``ImageFolder``, or a ``torch.utils.data.Subset`` of one (also of a subset). The loader
        reads its ``samples`` with their labels, in their order. featherload's workers apply its
        ``transform``. ``batch.ids`` are indices in it.
    ``batch_size``, ``shuffle``, ``drop_last``
        As in torch. Defaults: 1, False, False.
    ``sampler``
        A ``SequentialSampler`` or ``RandomSampler`` over all samples, a ``DistributedSampler``, or
        timm's ``OrderedDistributedSampler``. The loader takes its rank, number of replicas, seed
        and shuffling. After a call of its ``set_epoch`` with a number above 0, each epoch is the
        sampler's.
    ``generator``
        Its ``initial_seed()`` is the seed. Default: ``torch.initial_seed()``, which
        ``torch.manual_seed`` sets, or with several ranks the seed of the ``DistributedSampler``.
    ``num_workers``
        Worker processes. 0 means 1 here.
    ``timeout``
        Most seconds for one image (``row_limit``). 0: the default.
    ``collate_fn``
        None, or ``torch.utils.data.default_collate``, which has the same result.
    ``worker_init_fn``
        Not called, because workers run no Python. A warning reports that.
    ``pin_memory``, ``pin_memory_device``, ``multiprocessing_context``, ``prefetch_factor``, \
``persistent_workers``, ``in_order``
        These have no effect, because they do not change batches. Workers exist as long as the
        loader, ``depth`` is the number of batches that have memory, and batches always come in
        order. The log (``featherload``, level INFO) names the options that were given.

    If several processes train together, give a ``DistributedSampler``, or ``rank`` and
    ``world_size``. Further keywords are those of ``featherload.Loader``. ``recipe`` replaces the
    folder's ``transform``.

    ``loader.dataset`` is the given data set. ``loader.sampler`` is the given
    ``DistributedSampler``, or the samples of this rank. The loader reads data set and sampler once:
    if one of them changes later, the next epoch raises an error.

    JPEGs are decoded at full size. ``decode="scaled"`` is faster, but changes levels.

    Raises ``ConfigError`` for unsupported arguments, such as another kind of data set, a
    ``target_transform``, or a custom ``loader``, ``collate_fn`` or sampler.
    """

    dataset: Any
    collate_fn: Any
    generator: Any

    def __init__(
        self,
        dataset: Any,
        batch_size: int = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        batch_sampler: Any = None,
        num_workers: int = 0,
        collate_fn: Any = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Any = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
        **options: Any,
    ) -> None:
        from torch.utils.data import default_collate

        for name in ("src", *_options.SOURCE):
            if name in options:
                raise ConfigError(
                    f"{name} is not supported here, because the data set names the files: leave it "
                    "out, or give the files to featherload.Loader",
                    option=name,
                )
        if batch_sampler is not None:
            raise ConfigError(
                "batch_sampler is not supported: give batch_size, and the order with shuffle or "
                "sampler",
                option="batch_sampler",
            )
        if worker_init_fn is not None:
            warnings.warn(
                "worker_init_fn is not called: workers of featherload run no Python, and their "
                "random numbers follow from the seed",
                UserWarning,
                stacklevel=2,
            )
        if collate_fn is not None and collate_fn is not default_collate:
            raise ConfigError(
                "collate_fn is not supported, except torch's default_collate: leave it out, and "
                "apply its changes to the batches",
                option="collate_fn",
            )
        _check_numbers(batch_size, num_workers, drop_last, timeout)
        if timeout and options.get("row_limit") is None:
            options["row_limit"] = timeout
        folder, samples = _image_folder.resolve(dataset)
        recipe = options.pop("recipe", None)
        own = _image_folder.recipe(folder) if recipe is None else None
        everything = samples
        if sampler is not None and shuffle:
            raise ConfigError("sampler and shuffle both set the order: give one", option="sampler")
        self._follows: Any = None
        self._was_told = False
        if _torch_order.is_distributed(sampler):
            shuffle = _torch_order.take_distributed(
                sampler, len(samples), batch_size, drop_last, options
            )
            self._follows = sampler
            if _torch_order.drops_last(sampler):
                samples = samples[: len(samples) - len(samples) % sampler.num_replicas]
        else:
            if sampler is not None:
                shuffle = _torch_order.is_random(sampler, len(samples))
                generator = getattr(sampler, "generator", None) or generator
            _torch_order.take_seed(generator, options)
        divided = any(options.get(name) is not None for name in ("rank", "world_size"))
        if not divided:
            # As in torch: torchrun's variables alone do not divide the samples.
            options.update(rank=0, world_size=1)
        root = _image_folder.root(folder.root)
        file = _image_folder.list_file(folder.root, samples)
        # Open as long as the loader exists: a preview reads it again.
        weakref.finalize(self, os.close, file)
        # After list_file, which reports invalid labels.
        snapshot = _image_folder.DatasetSnapshot(dataset, everything, len(samples), own)
        super().__init__(
            None,
            own if recipe is None else recipe,
            list=f"/proc/self/fd/{file}",
            root=root,
            allow_outside=True,
            delimiter=" ",
            batch_size=batch_size,
            # 0 in torch means no processes. Here at least one is needed.
            num_workers=max(1, num_workers),
            shuffle=bool(shuffle),
            drop_last=drop_last,
            framework=options.pop("framework", None) or "torch",
            **options,
        )
        self._check_config(samples, batch_size, drop_last)
        self._divided = divided
        self._names = [_image_folder.name(of) for of in folder.classes]
        self._snapshot = snapshot
        self._sampler, self._settings = sampler, _torch_order.settings(sampler)
        without_effect = {
            "pin_memory": pin_memory,
            "multiprocessing_context": multiprocessing_context,
            "prefetch_factor": prefetch_factor,
            "persistent_workers": persistent_workers,
            "pin_memory_device": pin_memory_device,
            "in_order": in_order,
        }
        said = [name for name, value in without_effect.items() if name != "in_order" and value]
        said += [] if in_order else ["in_order"]
        if said:
            _log.info("%s: no effect on batches of featherload", ", ".join(said))
        # Attributes of torch's loader that trainers and users read.
        self.__dict__.update(
            without_effect,
            dataset=dataset,
            collate_fn=default_collate,
            timeout=timeout,
            worker_init_fn=worker_init_fn,
            generator=generator,
        )
        self._seed_of_generator = None if generator is None else generator.initial_seed()

    @property
    def sampler(self) -> Any:
        """The given ``DistributedSampler``. Without one, the samples of this rank in the next
        epoch, with ``len``, ``set_epoch`` and an iterator over their numbers.
        """
        return super().sampler if self._follows is None else self._follows

    def _check_unchanged(self) -> None:
        """Raises an error if data set, sampler or generator have changed. torch reads them for each
        sample, but this loader reads them once.
        """
        self._snapshot.check()
        if _torch_order.settings(self._sampler) != self._settings:
            raise ConfigError(
                f"the {type(self._sampler).__name__} changed after the loader was made, which "
                "still uses the former order: make a new loader (only set_epoch has an effect)",
                option="sampler",
            )
        of = self.generator
        if of is not None and of.initial_seed() != self._seed_of_generator:
            raise ConfigError(
                "the generator was seeded again after the loader was made, which still uses the "
                "former seed: make a new loader, or use set_epoch for another order",
                option="generator",
            )

    def _asked(self) -> int | None:
        """The epoch of the loader's own ``set_epoch``. Otherwise the epoch of the
        ``DistributedSampler``, which may repeat as in torch, if its ``set_epoch`` was ever called
        with a number above 0.
        """
        asked = super()._asked()
        if self._follows is None:
            return asked
        epoch = getattr(self._follows, "epoch", 0)
        self._was_told = self._was_told or epoch != 0
        return int(epoch) if asked is None and self._was_told else asked

    def _check_place(self) -> None:
        """Raises an error if several processes would train on all samples. accelerate and
        Lightning divide torch's loaders, but not this one.
        """
        group = _options.process_group()
        if self._divided or group is None or group[1] == 1:
            return
        raise ConfigError(
            f"{group[1]} processes train together, but the data set is not divided among them: "
            "give sampler=DistributedSampler(dataset), or rank=0 and world_size=1 if each process "
            "should read all of it",
            option="sampler",
        )

    def _class_names(self) -> list[str]:
        return self._names

    def _check_config(
        self, samples: list[tuple[Any, Any]], batch_size: int, drop_last: bool
    ) -> None:
        """Raises an error for a PaddleClas config that also changes labels or batches."""
        places = {int(label): place for place, (_, label) in enumerate(samples)}
        same = all(self._stream.sample(at)[1] == label for label, at in places.items())
        if not same or (self.batch_size, self.drop_last) != (batch_size, drop_last):
            self.close()
            raise ConfigError(
                "the recipe is a config that changes labels or batches: give it to "
                "featherload.Loader",
                option="recipe",
            )


def _check_numbers(batch_size: Any, num_workers: Any, drop_last: Any, timeout: Any) -> None:
    if type(batch_size) is not int or batch_size < 1:
        raise ConfigError(
            f"batch_size={shown(batch_size)} is not supported: give a whole number from 1 (for "
            "single samples, batch_size=1)",
            option="batch_size",
        )
    if type(num_workers) is not int or num_workers < 0:
        raise ConfigError(
            f"num_workers={shown(num_workers)} is not a number of workers: give 1 or more (0 means "
            "1 here)",
            option="num_workers",
        )
    if type(drop_last) is not bool:
        raise ConfigError(
            f"drop_last={shown(drop_last)} is neither True nor False: give one of them",
            option="drop_last",
        )
    if type(timeout) not in (int, float) or not 0 <= timeout < math.inf:
        raise ConfigError(
            f"timeout={shown(timeout)} is not a time: give seconds, or 0 for the default",
            option="timeout",
        )
