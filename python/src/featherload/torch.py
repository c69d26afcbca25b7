"""``featherload.torch.DataLoader``: in place of torch's, over lists of image files and arrays.

::

    -from torch.utils.data import DataLoader
    +from featherload.torch import DataLoader
"""

from __future__ import annotations

import logging
import math
import warnings
from typing import Any

from . import _detection, _file_lists, _hf_dataset, _options, _torch_order, _wrapped_sets
from ._errors import ConfigError
from ._given_order import GivenBatchOrder, GivenOrder
from ._item_feed import LIMIT, AskedItem
from ._items import of_hugging_face, of_samples
from ._loader import Loader
from ._target_plan import TargetPlan, TargetView
from ._values import byte_count, shown
from .samplers import Sampler

__all__ = ["DataLoader"]

_log = logging.getLogger("featherload")


class DataLoader(Loader):
    """torch's ``DataLoader`` over data sets that are lists of image files, or arrays of images.

    ``dataset``
        A torchvision data set that is a list of files and labels: ``ImageFolder``,
        ``DatasetFolder``, ``Food101``, ``Flowers102``, ``OxfordIIITPet``, ``StanfordCars``,
        ``GTSRB``, ``FGVCAircraft``, ``INaturalist``, ``Places365``, ``EuroSAT``, ``CelebA``,
        ``Caltech101``, ``Caltech256``, ``Country211``, ``DTD``, ``Imagenette``, ``ImageNet``,
        ``LFWPeople``, ``RenderedSST2``, ``SUN397`` or ``CLEVRClassification``. Or one that is an
        array of images: ``CIFAR10``, ``CIFAR100``, ``MNIST``, ``FashionMNIST``, ``KMNIST``,
        ``QMNIST``, ``EMNIST``, ``SVHN``, ``STL10`` or ``USPS``. The array is copied once, into
        memory that all workers share. A ``Subset`` or ``ConcatDataset`` of any of these. Any other
        data set with the method ``featherload_item(index)``, which returns the image and the target
        of a sample without decoding it. If the image is a path, it is called once per sample, when
        the loader is made. If it is the bytes of an image file, as from LMDB or HDF5, one thread of
        this process calls it in the order of each epoch, at most ``depth`` batches ahead. An
        exception of the method ends the epoch, and is the cause of the error.

        Or a data set of torchvision within ``wrap_dataset_for_transforms_v2``, whose ``transforms``
        move boxes and masks too. ``CocoDetection``, ``VOCDetection``, ``Kitti``, ``WIDERFace`` and
        ``CelebA`` with boxes: targets come as a list of dicts, or as ``targets`` says. An image
        without objects has arrays of length 0, where torchvision leaves them out.
        ``VOCSegmentation``, ``SBDataset``, ``Cityscapes`` and ``OxfordIIITPet`` with masks: targets
        are as torch's loader makes them.

        Or a ``datasets.Dataset`` of Hugging Face, with ``recipe``. Its images are read from its
        files. ``image_column`` and ``label_column`` name its columns, if there are several.

        The data set's ``transform`` becomes the recipe. Its ``target_transform`` is called once
        per sample, so it must be a function of the target alone. Targets are whole numbers,
        floats, or lists of numbers of one length. ``batch.ids`` are positions in the data set.
        Images of ``MNIST`` and other grey arrays have one channel, as in torch: a view of memory
        with three equal ones.
    ``batch_size``, ``shuffle``, ``drop_last``
        As in torch. Defaults: 1, False, False.
    ``sampler``, ``batch_sampler``
        featherload makes the order of a ``SequentialSampler`` or ``RandomSampler`` over all
        samples, of a ``DistributedSampler``, of timm's ``OrderedDistributedSampler`` and of
        ``featherload.samplers``. It takes rank, number of replicas, seed and shuffling from them.
        After a call of ``set_epoch`` with a number above 0, each epoch is that of a
        ``DistributedSampler``.

        Any other finite sampler, such as ``WeightedRandomSampler``, ``SubsetRandomSampler`` or a
        list, is iterated once at the start of each epoch. It needs a length. A state resumes within
        such an epoch if the sampler repeats the order, which a generator with a seed does.

        ``batch_sampler`` is torch's ``BatchSampler`` over one of these, or any other finite object
        that gives lists of numbers and has a length. It is iterated once at the start of each
        epoch, and batches may have different sizes. A batch has memory for the largest of the
        first epoch, or for its attribute ``batch_size`` if that is larger.
    ``generator``
        Its ``initial_seed()`` is the seed. Default: ``torch.initial_seed()``, which
        ``torch.manual_seed`` sets, or with several ranks the seed of the ``DistributedSampler``.
    ``num_workers``
        Worker processes. 0 means 1 here.
    ``feed_limit``
        Of a data set whose method returns bytes: the most bytes in shared memory at one time, or a
        size such as ``"64M"``. Default: 256 MiB. The images of a batch must fit.
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
    data set's ``transform``.

    ``loader.dataset`` is the given data set. ``loader.sampler`` is the given
    ``DistributedSampler``, or the samples of this rank. The loader reads the data set once, and a
    sampler whose order it makes. If one of them changes later, the next epoch raises an error.

    JPEGs are decoded at full size. ``decode="scaled"`` is faster, but changes levels.

    Labels are int64 for whole numbers, and float32 for floats, where torch has float64.

    Raises ``ConfigError`` for an unknown data set, and for a ``loader``, ``collate_fn`` or sampler
    of one's own. The error of a data set shows the method to write.
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

        of_columns = ("image_column", "label_column")
        is_hf = _hf_dataset.is_one(dataset)
        for name in ("src", *_options.SOURCE):
            if name in options and not (is_hf and name in of_columns):
                raise ConfigError(
                    f"{name} is not supported here, because the data set names the files: leave it "
                    "out, or give the files to featherload.Loader",
                    option=name,
                )
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ConfigError(
                    "batch_sampler sets batch_size, shuffle, sampler and drop_last: leave them out",
                    option="batch_sampler",
                )
            sampler, batch_size, drop_last = _torch_order.of_batch_sampler(batch_sampler)
            batch_size = int(batch_size)
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
                "apply its changes to the batches (lists of targets are targets='list')",
                option="collate_fn",
            )
        _check_numbers(batch_size, num_workers, drop_last, timeout)
        if timeout and options.get("row_limit") is None:
            options["row_limit"] = timeout
        recipe = options.pop("recipe", None)
        files: Any
        samples: Any
        own, channels = None, 3
        self._targets: TargetPlan | None = None
        if is_hf:
            if recipe is None:
                raise ConfigError(
                    "a Dataset of Hugging Face has no transform that workers can run: give recipe, "
                    "such as torchvision's transforms",
                    option="recipe",
                )
            options["orientation"] = _hf_dataset.orientation(recipe, options.get("orientation"))
            named = [options.pop(name, None) for name in of_columns]
            files, samples = _hf_dataset.resolve(dataset, *named), range(len(dataset))
        else:
            files = _file_lists.resolve(dataset)
            samples = files.samples
            if recipe is None:
                own, channels = _file_lists.recipe(files)
        self._has_one_channel = channels == 1
        if sampler is not None and shuffle:
            raise ConfigError("sampler and shuffle both set the order: give one", option="sampler")
        self._follows: Any = None
        self._was_told = False
        gives_batches = isinstance(sampler, GivenBatchOrder)
        made = not gives_batches and _torch_order.makes_order(
            sampler, len(samples), batch_size, drop_last
        )
        if _torch_order.is_distributed(sampler):
            _torch_order.take_rank(sampler, options)
            if made:
                self._follows = sampler
                if _torch_order.drops_last(sampler):
                    samples = samples[: len(samples) - len(samples) % sampler.num_replicas]
        else:
            of_sampler = getattr(sampler, "generator", None)
            _torch_order.take_seed(of_sampler or generator, options)
        if isinstance(sampler, Sampler) and not gives_batches:
            options["sampler"] = sampler
        elif made or sampler is None:
            options["shuffle"] = bool(shuffle) or _torch_order.is_random(sampler)
        else:
            options["sampler"] = sampler if gives_batches else GivenOrder(sampler)
        divided = any(options.get(name) is not None for name in ("rank", "world_size"))
        if not divided:
            # As in torch: torchrun's variables alone do not divide the samples.
            options.update(rank=0, world_size=1)
        if not samples:
            raise ConfigError(
                "the data set has no samples: give one with samples", option="dataset"
            )
        try:
            most = byte_count("feed_limit", options.pop("feed_limit", None))
            if not is_hf:
                self._targets = _wrapped_sets.plan(files.leaves, samples)
            if self._targets is not None:
                keyword, samples = self._targets.keyword, self._targets.samples
                if options.get(keyword) is not None:
                    raise ConfigError(
                        f"{keyword} are those of the data set: leave the keyword out",
                        option=keyword,
                    )
                options[keyword] = self._targets.value
            if most is not None and (is_hf or not isinstance(samples[0][0], AskedItem)):
                raise ConfigError(
                    "feed_limit is for data sets whose method returns bytes: remove it",
                    option="feed_limit",
                )
            if not is_hf:
                items = of_samples(samples, files.first_target, LIMIT if most is None else most)
            elif len(samples) == len(dataset):
                items = of_hugging_face(files)
            else:
                part = _hf_dataset.resolve(dataset.select(samples), *named)
                items = of_hugging_face(part)
        except ConfigError as error:
            option = "feed_limit" if error.option == "feed_limit" else "dataset"
            raise ConfigError(str(error), option=option) from None
        # After Items, which reports what is wrong with a target.
        snapshot: Any = (
            _hf_dataset.HuggingFaceSnapshot(dataset)
            if is_hf
            else _file_lists.DatasetSnapshot(
                dataset, files, len(samples), None if own is None else (own, channels)
            )
        )
        super().__init__(
            items,
            own if recipe is None else recipe,
            batch_size=batch_size,
            # 0 in torch means no processes. Here at least one is needed.
            num_workers=max(1, num_workers),
            drop_last=drop_last,
            framework=options.pop("framework", None) or "torch",
            **options,
        )
        is_list = options.get("targets") in (None, "list")
        if self._has_objects and is_list and recipe is None and _detection.has_border(own):
            # As torch's loader gives them: each image in its size.
            self._view = _detection.cut_out(self._view)
        self._check_config(batch_size, drop_last)
        self._divided = divided
        self._names = [_file_lists.class_name(of) for of in files.classes]
        self._snapshot = snapshot
        # An order that is taken in each epoch may change.
        self._sampler = sampler if made else None
        self._settings = _torch_order.settings(self._sampler)
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
        """The given ``DistributedSampler`` or other sampler object. Otherwise the samples of this
        rank in the next epoch: ``len``, ``set_epoch`` and their numbers.
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

    @property
    def _has_objects(self) -> bool:
        return self._targets is not None and self._targets.keyword == "objects"

    def _target_view(self, view: TargetView | None) -> TargetView | None:
        return view if self._targets is None else self._targets.view(view)

    def _class_names(self) -> list[str]:
        return self._names

    def _check_config(self, batch_size: int, drop_last: bool) -> None:
        """A PaddleClas config as the recipe may set more than the operations on an image."""
        if (self.batch_size, self.drop_last) != (batch_size, drop_last):
            self.close()
            raise ConfigError(
                "the recipe is a config that makes batches in its own way: give it to "
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
