"""Reads the order from torch's samplers and generators."""

from __future__ import annotations

from typing import Any

from ._errors import ConfigError


def of_batch_sampler(batch_sampler: Any) -> tuple[Any, int, bool]:
    """Sampler, batch size and drop_last of torch's ``BatchSampler``."""
    from torch.utils.data import BatchSampler

    if type(batch_sampler) is not BatchSampler:
        raise ConfigError(
            f"the batch_sampler {type(batch_sampler).__name__} is not supported: give torch's "
            "BatchSampler itself, or batch_size and sampler",
            option="batch_sampler",
        )
    return batch_sampler.sampler, batch_sampler.batch_size, batch_sampler.drop_last


def is_random(sampler: Any, samples: int) -> bool:
    """Whether a sampler of torch shuffles."""
    from torch.utils.data import RandomSampler, SequentialSampler

    if type(sampler) not in (RandomSampler, SequentialSampler):
        raise ConfigError(
            f"the sampler {type(sampler).__name__} is not supported: give a Subset of the data "
            "set with shuffle=True, or one of featherload.samplers to featherload.Loader",
            option="sampler",
        )
    _check_length(sampler, sampler.data_source, samples)
    if type(sampler) is SequentialSampler:
        return False
    if sampler.replacement:
        raise ConfigError(
            "RandomSampler(replacement=True) is not supported: give featherload.Loader the "
            "sampler featherload.samplers.Weighted with a weight of 1 for each sample",
            option="sampler",
        )
    if sampler.num_samples != samples:
        raise ConfigError(
            f"RandomSampler(num_samples={sampler.num_samples}) is not supported: leave "
            f"num_samples out to use all {samples} samples, or give a Subset",
            option="sampler",
        )
    return True


def _check_length(sampler: Any, of: Any, samples: int) -> None:
    if len(of) != samples:
        raise ConfigError(
            f"the {type(sampler).__name__} is over {len(of)} samples, but the data set has "
            f"{samples}: make the sampler from the data set, or give a Subset as the data set",
            option="sampler",
        )


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


def take_distributed(
    sampler: Any, samples: int, batch_size: int, drop_last: bool, options: dict[str, Any]
) -> bool:
    """Takes rank, world size and seed of a ``DistributedSampler`` or timm's sampler into
    ``options``. Returns whether it shuffles.
    """
    from torch.utils.data import DistributedSampler

    if type(sampler) is not DistributedSampler and not _is_timms(sampler):
        raise ConfigError(
            f"the sampler {type(sampler).__name__} is not supported: give torch's "
            "DistributedSampler itself",
            option="sampler",
        )
    _check_length(sampler, sampler.dataset, samples)
    ranks = sampler.num_replicas
    drops, shuffles = drops_last(sampler), bool(getattr(sampler, "shuffle", False))
    if drops and shuffles and samples % ranks:
        raise ConfigError(
            f"DistributedSampler(drop_last=True, shuffle=True) drops {samples % ranks} of "
            f"{samples} samples over {ranks} ranks, others in each epoch, which is not supported: "
            "leave its drop_last out to repeat samples instead, or give a Subset of "
            f"{samples - samples % ranks} samples",
            option="sampler",
        )
    if drops:
        # Always the last samples.
        samples -= samples % ranks
    # torch fills up the ranks, then drops. featherload drops a batch that needs filling.
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
                f"{name}={options[name]} differs from the DistributedSampler's {of_sampler}: "
                f"leave {name} out",
                option=name,
            )
        options[name] = of_sampler
    # This seed is the same on all ranks, unlike torch's own seed or a generator's.
    if options.get("seed") is None and hasattr(sampler, "seed"):
        options["seed"] = sampler.seed % (1 << 64)
    return shuffles


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
