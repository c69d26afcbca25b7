"""Reads the order from torch's samplers and generators."""

from __future__ import annotations

from typing import Any

from ._errors import ConfigError
from ._given_order import GivenBatchOrder


def of_batch_sampler(batch_sampler: Any) -> tuple[Any, int, bool]:
    """Sampler, batch size and drop_last of torch's ``BatchSampler``. Of any other object: its
    batches, taken once per epoch, and the size of the largest.
    """
    from torch.utils.data import BatchSampler

    if type(batch_sampler) is not BatchSampler:
        order = GivenBatchOrder(batch_sampler)
        return order, order.batch_size, False
    return batch_sampler.sampler, batch_sampler.batch_size, batch_sampler.drop_last


def makes_order(sampler: Any, samples: int, batch_size: int, drop_last: bool) -> bool:
    """Whether featherload makes the order of ``sampler`` itself, over ``samples`` samples.

    It does for torch's sequential, random and distributed samplers over all samples. The order of
    any other sampler is taken once per epoch.
    """
    from torch.utils.data import DistributedSampler, RandomSampler, SequentialSampler

    kind = type(sampler)
    if kind is SequentialSampler:
        return len(sampler.data_source) == samples
    if kind is RandomSampler:
        all_samples = len(sampler.data_source) == sampler.num_samples == samples
        return all_samples and not sampler.replacement
    if (kind is not DistributedSampler and not _is_timms(sampler)) or len(
        sampler.dataset
    ) != samples:
        return False
    ranks = sampler.num_replicas
    if drops_last(sampler):
        # torch drops others in each epoch if it shuffles.
        if getattr(sampler, "shuffle", False) and samples % ranks:
            return False
        samples -= samples % ranks
    # torch fills up the ranks, then drops. featherload drops a batch that needs filling.
    return not drop_last or -(-samples // ranks) // batch_size == samples // ranks // batch_size


def is_random(sampler: Any) -> bool:
    """Whether a sampler of :func:`makes_order` shuffles."""
    from torch.utils.data import RandomSampler

    return type(sampler) is RandomSampler or bool(getattr(sampler, "shuffle", False))


def settings(sampler: Any) -> tuple[Any, ...]:
    """The settings of a torch sampler, except its epoch. A loader reads them once."""
    import torch

    names = ("num_replicas", "rank", "shuffle", "seed", "drop_last", "replacement", "_num_samples")
    of = getattr(sampler, "dataset", getattr(sampler, "data_source", None))
    length = None if of is None else len(of)
    seed = getattr(sampler, "generator", None)
    if isinstance(seed, torch.Generator):
        seed = seed.initial_seed()
    return (*(getattr(sampler, name, None) for name in names), length, seed)


def is_distributed(sampler: Any) -> bool:
    from torch.utils.data import DistributedSampler

    return isinstance(sampler, DistributedSampler) or _is_timms(sampler)


def _is_timms(sampler: Any) -> bool:
    """Whether it is timm's sampler for evaluation. Its order is that of torch's
    ``DistributedSampler`` with ``shuffle=False``.
    """
    kind = type(sampler)
    return (kind.__module__, kind.__name__) == (
        "timm.data.distributed_sampler",
        "OrderedDistributedSampler",
    )


def drops_last(sampler: Any) -> bool:
    return bool(getattr(sampler, "drop_last", False))


def take_rank(sampler: Any, options: dict[str, Any]) -> None:
    """Takes rank, world size and seed of a distributed sampler into ``options``."""
    ranks = sampler.num_replicas
    for name, of_sampler in (("rank", sampler.rank), ("world_size", ranks)):
        if options.get(name) not in (None, of_sampler):
            raise ConfigError(
                f"{name}={options[name]} differs from the DistributedSampler's {of_sampler}: "
                f"leave {name} out",
                option=name,
            )
        options[name] = of_sampler
    # This seed is the same on all ranks, unlike torch's own seed or a generator's.
    if options.get("seed") is None and hasattr(sampler, "seed"):
        options["seed"] = sampler.seed % (1 << 64)


def take_seed(generator: Any, options: dict[str, Any]) -> None:
    import torch

    if generator is not None and not isinstance(generator, torch.Generator):
        raise ConfigError(
            f"generator is a {type(generator).__name__}: give a torch.Generator, or seed",
            option="generator",
        )
    if options.get("seed") is not None:
        return
    if generator is not None:
        options["seed"] = generator.initial_seed() % (1 << 64)
    elif options.get("world_size") in (None, 1):
        options["seed"] = torch.initial_seed() % (1 << 64)
    # Otherwise featherload divides the ranks. Its default seed is the same on all ranks.
