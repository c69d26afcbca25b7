"""How the targets of a data set of torchvision become keywords of a loader, and how its batches
show them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ._objects import Objects

TargetView = Callable[[Any, Any, Any, Objects | None], tuple[Any, Any]]
"""Makes images and targets of a batch of its images, labels, masks and objects."""


@dataclass(frozen=True)
class TargetPlan:
    """What a loader gets for the targets of a data set."""

    samples: Sequence[tuple[Any, Any]]
    """Image and label of each sample. A label may be None."""
    keyword: str
    """The keyword of ``Loader`` that has the targets: objects or masks."""
    value: Mapping[str, Any]
    view: Callable[[TargetView | None], TargetView | None] = field(default=lambda view: view)
    """Makes the targets of the loader's own view."""
