"""``featherload.torch.DataLoader``: in the place of torch's, over torchvision's image folders.

::

    -from torch.utils.data import DataLoader
    +from featherload.torch import DataLoader
"""

from __future__ import annotations

from typing import Any

from ._errors import ConfigError
from ._loader import Loader

__all__ = ["DataLoader"]

# Keywords of torch's that say how it does its work, not what comes out.
_MEANINGLESS = {
    "pin_memory",
    "pin_memory_device",
    "persistent_workers",
    "prefetch_factor",
    "timeout",
    "multiprocessing_context",
    "in_order",
}


class DataLoader(Loader):
    """torch's ``DataLoader`` over a ``torchvision.datasets.ImageFolder``.

    The folder's files are read and its ``transform`` done by featherload's workers; labels are
    the folder's. ``shuffle`` is False by default, as in torch; ``sampler`` may be a
    ``torch.utils.data.DistributedSampler``, whose rank, number of replicas, seed and shuffling
    are taken. Further keywords are those of ``featherload.Loader``.

    Raises ``ConfigError`` for what has no place here: another data set, a ``target_transform``,
    a ``loader`` or a ``collate_fn`` of one's own.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        batch_sampler: Any = None,
        num_workers: int = 0,
        collate_fn: Any = None,
        drop_last: bool = False,
        worker_init_fn: Any = None,
        generator: Any = None,
        **options: Any,
    ) -> None:
        for name in _MEANINGLESS:
            options.pop(name, None)
        for name, given in (
            ("batch_sampler", batch_sampler),
            ("collate_fn", collate_fn),
            ("worker_init_fn", worker_init_fn),
        ):
            if given is not None:
                raise ConfigError(f"{name} has no place here: leave it out", option=name)
        recipe = options.pop("recipe", None) or _recipe(dataset)
        if generator is not None:
            options.setdefault("seed", generator.initial_seed() % (1 << 64))
        if sampler is not None:
            shuffle = _take_sampler(sampler, options)
        super().__init__(
            dataset.root,
            recipe,
            batch_size=batch_size,
            # 0 in torch: no processes. Here one is the least.
            num_workers=max(1, num_workers),
            shuffle=bool(shuffle),
            drop_last=drop_last,
            framework=options.pop("framework", "torch"),
            **options,
        )
        if list(dataset.classes) != self.dataset.classes or len(dataset) != len(self.dataset):
            self.close()
            raise ConfigError(
                f"the folder has {len(self.dataset)} pictures in {len(self.dataset.classes)} "
                f"classes, and the ImageFolder {len(dataset)} in {len(dataset.classes)}: give the "
                "folder to featherload.Loader, which says what it leaves out"
            )


def _recipe(dataset: Any) -> Any:
    from torchvision.datasets import ImageFolder
    from torchvision.datasets.folder import default_loader

    if type(dataset) is not ImageFolder:
        raise ConfigError(
            f"{type(dataset).__name__} is no torchvision ImageFolder: give what it reads to "
            "featherload.Loader",
            option="dataset",
        )
    if dataset.target_transform is not None or dataset.loader is not default_loader:
        raise ConfigError(
            "target_transform and loader of an ImageFolder have no place here: leave them out",
            option="dataset",
        )
    if dataset.transform is None:
        raise ConfigError(
            "the ImageFolder has no transform, so its pictures have no one size: give it one, "
            "such as a Resize and a crop",
            option="dataset",
        )
    return dataset.transform


def _take_sampler(sampler: Any, options: dict[str, Any]) -> bool:
    """What a sampler of torch's says; whether it shuffles."""
    from torch.utils.data import DistributedSampler, RandomSampler, SequentialSampler

    if type(sampler) is SequentialSampler:
        return False
    if type(sampler) is RandomSampler and not sampler.replacement:
        return True
    if type(sampler) is DistributedSampler:
        options.setdefault("rank", sampler.rank)
        options.setdefault("world_size", sampler.num_replicas)
        options.setdefault("seed", sampler.seed)
        return bool(sampler.shuffle)
    raise ConfigError(
        f"the sampler {type(sampler).__name__} has no place here: featherload.samplers has orders "
        "for featherload.Loader",
        option="sampler",
    )
