"""``featherload.torch.DataLoader``: in the place of torch's, over torchvision's image folders.

::

    -from torch.utils.data import DataLoader
    +from featherload.torch import DataLoader
"""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from ._errors import ConfigError
from ._loader import Loader
from ._transforms import _Walk, translate

__all__ = ["DataLoader"]

_SAID_BY_DATASET = (
    "src",
    "list",
    "root",
    "labels",
    "classes",
    "delimiter",
    "allow_outside",
    "boxes",
    "label_field",
    "label_json",
    "index_dir",
)
_Samples = list[tuple[Any, Any]]


class DataLoader(Loader):
    """torch's ``DataLoader`` over a ``torchvision.datasets.ImageFolder``.

    ``dataset``
        The ``ImageFolder``, or a ``torch.utils.data.Subset`` of one (also of a subset). Its
        ``samples`` are read, in their order and with their labels, and its ``transform`` is
        done by featherload's workers. ``batch.ids`` are places in it.
    ``batch_size``, ``shuffle``, ``drop_last``
        As in torch: 1, False, False.
    ``sampler``
        A ``SequentialSampler`` or ``RandomSampler`` over all samples, or a
        ``DistributedSampler``: its rank, number of replicas, seed and shuffling are taken, and
        its ``set_epoch`` says the epoch that begins next.
    ``generator``
        Its ``initial_seed()`` is the seed; else ``torch.initial_seed()`` is, which
        ``torch.manual_seed`` sets. On several ranks it is the ``DistributedSampler``'s.
    ``num_workers``
        Worker processes. 0 is 1 here.
    ``timeout``
        Most seconds that one picture may take (``row_limit``); 0: the default.
    ``collate_fn``
        ``torch.utils.data.default_collate``, which is what is done.
    ``pin_memory``, ``pin_memory_device``, ``multiprocessing_context``, ``prefetch_factor``, \
``persistent_workers``, ``in_order``
        How torch does its work, not what comes out: they change nothing. Workers live as long
        as the loader, ``depth`` says how many batches there is memory for, and batches always
        come in order.

    Without a ``DistributedSampler`` (or ``rank`` and ``world_size``) each process gets all
    samples, as in torch. Further keywords are those of ``featherload.Loader``; ``recipe`` takes
    the place of the folder's ``transform``.

    ``loader.dataset`` is the data set that was given, ``loader.sampler`` the loader itself.

    Raises ``ConfigError`` for what has no place here, such as another data set, a
    ``target_transform``, or a ``loader``, ``collate_fn`` or sampler of one's own.
    """

    dataset: Any
    collate_fn: Any

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
        from torch.utils.data import DistributedSampler, default_collate

        for name in _SAID_BY_DATASET:
            if name in options:
                raise ConfigError(
                    f"{name} has no place here, where the data set says what is read: leave it "
                    "out, or give the files to featherload.Loader",
                    option=name,
                )
        for name, given in (("batch_sampler", batch_sampler), ("worker_init_fn", worker_init_fn)):
            if given is not None:
                raise ConfigError(f"{name} has no place here: leave it out", option=name)
        if collate_fn is not None and collate_fn is not default_collate:
            raise ConfigError(
                "collate_fn has no place here, but for torch's default_collate: leave it out, and "
                "do to the batches what it does",
                option="collate_fn",
            )
        _check_numbers(batch_size, num_workers, drop_last, timeout)
        if timeout and options.get("row_limit") is None:
            options["row_limit"] = timeout
        folder, samples = _resolve(dataset)
        recipe = options.pop("recipe", None)
        if recipe is None:
            recipe = _recipe(folder)
        if sampler is not None and shuffle:
            raise ConfigError("sampler and shuffle both say the order: give one", option="sampler")
        self._follows: Any = None
        self._seen_epoch = 0
        if isinstance(sampler, DistributedSampler):
            shuffle = _take_distributed(sampler, len(samples), batch_size, drop_last, options)
            self._follows = sampler
        else:
            if sampler is not None:
                shuffle = _is_random(sampler, len(samples))
                generator = getattr(sampler, "generator", None) or generator
            _take_place_and_seed(generator, options)
        root = _root(folder.root)
        file = _list_file(folder.root, samples)
        # For as long as the loader lives: a preview reads it again.
        weakref.finalize(self, os.close, file)
        super().__init__(
            None,
            recipe,
            list=f"/proc/self/fd/{file}",
            root=root,
            allow_outside=True,
            delimiter=" ",
            batch_size=batch_size,
            # 0 in torch: no processes. Here one is the least.
            num_workers=max(1, num_workers),
            shuffle=bool(shuffle),
            drop_last=drop_last,
            framework=options.pop("framework", None) or "torch",
            **options,
        )
        self._check_config(samples, batch_size, drop_last)
        self._names = [_name(of) for of in folder.classes]
        # What trainers and users ask of torch's.
        self.dataset = dataset
        self.collate_fn = default_collate
        self.pin_memory = pin_memory
        self.timeout = timeout
        self.worker_init_fn = None
        self.multiprocessing_context = multiprocessing_context
        self.generator = generator
        self.prefetch_factor = prefetch_factor
        self.persistent_workers = persistent_workers
        self.pin_memory_device = pin_memory_device
        self.in_order = in_order

    def _before_epoch(self) -> None:
        """The epoch that the ``DistributedSampler`` was told, if it was told one."""
        if self._follows is not None and self._follows.epoch != self._seen_epoch:
            self._seen_epoch = self._follows.epoch
            self.set_epoch(self._seen_epoch)

    def _class_names(self) -> list[str]:
        return self._names

    def _check_config(self, samples: _Samples, batch_size: int, drop_last: bool) -> None:
        """A PaddleClas config as the recipe says more than what is done to a picture."""
        places = {int(label): place for place, (_, label) in enumerate(samples)}
        same = all(self._stream.sample(at)[1] == label for label, at in places.items())
        if not same or (self.batch_size, self.drop_last) != (batch_size, drop_last):
            self.close()
            raise ConfigError(
                "the recipe is a config that reads labels or makes batches in its own way: give "
                "it to featherload.Loader",
                option="recipe",
            )


def _check_numbers(batch_size: Any, num_workers: Any, drop_last: Any, timeout: Any) -> None:
    if type(batch_size) is not int or batch_size < 1:
        raise ConfigError(
            f"batch_size={batch_size!r} has no place here: give a whole number from 1 (for single "
            "samples batch_size=1)",
            option="batch_size",
        )
    if type(num_workers) is not int or num_workers < 0:
        raise ConfigError(
            f"num_workers={num_workers!r} is no number of workers: give 1 or more (0 is 1 here)",
            option="num_workers",
        )
    if type(drop_last) is not bool:
        raise ConfigError(
            f"drop_last={drop_last!r} is neither True nor False: give one of them",
            option="drop_last",
        )
    if type(timeout) not in (int, float) or not timeout >= 0:
        raise ConfigError(
            f"timeout={timeout!r} is no time: give seconds, or 0 for the default",
            option="timeout",
        )


# The data set.


def _refused(text: str) -> ConfigError:
    return ConfigError(text, option="dataset")


def _resolve(dataset: Any) -> tuple[Any, _Samples]:
    """The image folder below, and the samples in the order of ``dataset``."""
    from torch.utils.data import Subset
    from torchvision.datasets import ImageFolder
    from torchvision.datasets.folder import default_loader, pil_loader

    kind = type(dataset)
    if kind is Subset:
        folder, samples = _resolve(dataset.dataset)
        try:
            return folder, [samples[i] for i in _indices(dataset.indices)]
        except (IndexError, KeyError, TypeError) as error:
            raise _refused(
                f"the indices of a Subset are no places in its data set of {len(samples)} samples "
                f"({error}): give whole numbers below {len(samples)}"
            ) from None
    if not isinstance(dataset, ImageFolder):
        raise _refused(
            f"{kind.__name__} is no torchvision ImageFolder, nor a Subset of one: give what it "
            "reads to featherload.Loader"
        )
    for method in ("__getitem__", "__getitems__", "__len__"):
        if getattr(kind, method, None) is not getattr(ImageFolder, method, None):
            raise _refused(
                f"{kind.__name__} has a {method} of its own, which is not called here: give an "
                "ImageFolder, or what it reads to featherload.Loader"
            )
    if dataset.target_transform is not None:
        raise _refused(
            "target_transform of an ImageFolder has no place here: leave it out, and write the "
            "labels that you want into its samples"
        )
    if dataset.loader is not default_loader and dataset.loader is not pil_loader:
        raise _refused(
            "loader of an ImageFolder has no place here, but for torchvision's own: leave it out"
        )
    return dataset, dataset.samples


def _indices(indices: Any) -> Iterable[Any]:
    """The indices of a subset, one by one, as torch takes them."""
    import torch

    if isinstance(indices, (list, tuple, range)):
        return indices
    if isinstance(indices, (np.ndarray, torch.Tensor)) and "bool" not in str(indices.dtype):
        numbers: list[Any] = indices.tolist()
        return numbers
    if isinstance(indices, (np.ndarray, torch.Tensor)):
        raise TypeError("they are a mask")
    return (indices[at] for at in range(len(indices)))


def _recipe(folder: Any) -> Any:
    """The folder's transform, if it makes tensors of one size."""
    if folder.transform is None:
        raise _refused(
            "the ImageFolder has no transform, so its pictures have no one size: give it one, "
            "such as a Resize, a crop and ToTensor"
        )
    recipe = translate(folder.transform)
    walk = _Walk()
    walk.ops(folder.transform)
    if not walk.is_tensor:
        raise _refused(
            "the transform of the ImageFolder gives no tensor, so torch makes no batch of it: put "
            "ToTensor() or v2.ToImage() at its end"
        )
    if not any(name == "resize" or name.endswith("crop") for name in _op_names(recipe["ops"])):
        raise _refused(
            "the transform of the ImageFolder leaves pictures their own sizes, which make no "
            "batch: give it a Resize((height, width)) or a crop"
        )
    return recipe


def _op_names(ops: Any) -> Iterator[str]:
    for op in ops:
        for name, values in op.items():
            yield name
            yield from _op_names(values.get("transforms", ()))


def _root(root: Any) -> str:
    whole = os.path.join(os.getcwd(), os.fsdecode(root))
    try:
        whole.encode()
    except UnicodeEncodeError:
        raise _refused(
            f"the folder {os.fsdecode(root)!r} of the ImageFolder has a name that is no UTF-8: "
            "rename it"
        ) from None
    return whole


def _list_file(root: Any, samples: _Samples) -> int:
    """The samples as a list file without a name, which goes with its last descriptor.

    Paths are relative to the root, where that can be: so the state of a run says nothing of
    where the folder is.
    """
    if not samples:
        raise _refused("the data set has no samples: give one that has")
    before = os.path.join(os.fsencode(root), b"")
    here = os.getcwdb()
    with tempfile.TemporaryFile(prefix="featherload-") as file:
        for number, (path, label) in enumerate(samples):
            name = os.fsencode(path)
            if b"\n" in name or b"\0" in name:
                raise _refused(
                    f"sample {number} is {path!r}: a file with a line break in its name cannot be "
                    "read here: rename it"
                )
            if not _is_class(label):
                raise _refused(
                    f"the label of sample {number} is {label!r}: give whole numbers in the "
                    "ImageFolder's samples"
                )
            if name.startswith(before) and name != before:
                name = name[len(before) :].lstrip(b"/")
            else:
                name = os.path.join(here, name)
            quoted = name.replace(b"\\", b"\\\\").replace(b'"', b'\\"')
            file.write(b'"%s" %d\n' % (quoted, label))
        file.flush()
        return os.dup(file.fileno())


def _is_class(label: Any) -> bool:
    """Whether torch makes int64 of it."""
    if isinstance(label, np.int64):
        return True
    return isinstance(label, int) and not isinstance(label, bool) and -(1 << 63) <= label < 1 << 63


def _name(of: Any) -> str:
    """A class's name; torchvision's ImageNet has several for each."""
    return ", ".join(map(str, of)) if isinstance(of, (tuple, list)) else str(of)


# The order.


def _is_random(sampler: Any, samples: int) -> bool:
    """Whether a sampler of torch's shuffles."""
    from torch.utils.data import RandomSampler, SequentialSampler

    if type(sampler) not in (RandomSampler, SequentialSampler):
        raise ConfigError(
            f"the sampler {type(sampler).__name__} has no place here: give a Subset of the data "
            "set with shuffle=True, or one of featherload.samplers to featherload.Loader",
            option="sampler",
        )
    _check_length(sampler, sampler.data_source, samples)
    if type(sampler) is SequentialSampler:
        return False
    if sampler.replacement:
        raise ConfigError(
            "RandomSampler(replacement=True) has no place here: give featherload.Loader the "
            "sampler featherload.samplers.Weighted with a weight of 1 for each sample",
            option="sampler",
        )
    if sampler.num_samples != samples:
        raise ConfigError(
            f"RandomSampler(num_samples={sampler.num_samples}) has no place here: leave "
            f"num_samples out, which takes all {samples} samples, or give a Subset",
            option="sampler",
        )
    return True


def _check_length(sampler: Any, of: Any, samples: int) -> None:
    if len(of) != samples:
        raise ConfigError(
            f"the {type(sampler).__name__} is over {len(of)} samples, and the data set has "
            f"{samples}: make the sampler of the data set, or give a Subset as the data set",
            option="sampler",
        )


def _take_distributed(
    sampler: Any, samples: int, batch_size: int, drop_last: bool, options: dict[str, Any]
) -> bool:
    """What a ``DistributedSampler`` says; whether it shuffles."""
    from torch.utils.data import DistributedSampler

    if type(sampler) is not DistributedSampler:
        raise ConfigError(
            f"the sampler {type(sampler).__name__} has no place here: give torch's "
            "DistributedSampler itself",
            option="sampler",
        )
    _check_length(sampler, sampler.dataset, samples)
    ranks = sampler.num_replicas
    if sampler.drop_last and samples % ranks:
        raise ConfigError(
            f"DistributedSampler(drop_last=True) drops {samples % ranks} of {samples} samples "
            f"over {ranks} ranks, which has no place here: leave its drop_last out, which repeats "
            f"samples instead, or give a Subset of {samples - samples % ranks} samples",
            option="sampler",
        )
    # Torch fills the ranks up before it drops; featherload drops what would be filled up.
    if drop_last and -(-samples // ranks) // batch_size != samples // ranks // batch_size:
        raise ConfigError(
            f"drop_last with {samples} samples over {ranks} ranks would drop a batch that torch "
            "fills with repeated samples: leave drop_last out, or give a Subset of "
            f"{samples - samples % ranks} samples",
            option="drop_last",
        )
    for name, of_sampler in (("rank", sampler.rank), ("world_size", ranks)):
        if options.get(name) not in (None, of_sampler):
            raise ConfigError(
                f"{name}={options[name]} is another than the DistributedSampler's {of_sampler}: "
                "leave it out",
                option=name,
            )
        options[name] = of_sampler
    # The same on all ranks, which torch's own seed and a generator need not be.
    if options.get("seed") is None:
        options["seed"] = sampler.seed % (1 << 64)
    return bool(sampler.shuffle)


def _take_place_and_seed(generator: Any, options: dict[str, Any]) -> None:
    import torch

    if options.get("rank") is None and options.get("world_size") is None:
        # As in torch: torchrun's variables alone divide nothing.
        options.update(rank=0, world_size=1)
    if generator is not None and not isinstance(generator, torch.Generator):
        raise ConfigError(
            f"generator is a {type(generator).__name__}: give a torch.Generator, or seed",
            option="generator",
        )
    if options.get("seed") is not None:
        return
    if generator is not None:
        options["seed"] = generator.initial_seed() % (1 << 64)
    elif options.get("world_size") == 1:
        options["seed"] = torch.initial_seed() % (1 << 64)
    # Else ranks that featherload divides: its default, the same on all of them.
