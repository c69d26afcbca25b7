"""The keywords of ``Loader``, checked: what a run and its plan are made of."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from . import (
    _albumentations,
    _captions,
    _columns,
    _featherload,
    _huggingface,
    _items,
    _object_lists,
    _objects,
    _options,
    _rasters,
    _stored_values,
    _then,
)
from ._batch import TAKEN, Framework
from ._errors import ConfigError
from ._featherload import RawObjects
from ._given_order import GivenOrder
from ._item_feed import AskedItems
from ._reports import Plan
from ._target_plan import TargetView
from ._values import shown, yes_or_no
from .samplers import Sampler


@dataclass(eq=False)
class LoaderRequest:
    """What a loader is asked for. ``source`` and ``loader`` are options of the library."""

    source: dict[str, Any]
    loader: dict[str, Any]
    items: _items.Items | AskedItems | None
    """The samples, where Python lists them. None: the library finds them."""
    columns: _columns.HeldColumns | None
    captions: _captions.Captions | None
    stored: Mapping[str, _stored_values.StoredFolder]
    """The folder of each column of stored values."""
    rasters: _rasters.Listed
    objects: RawObjects | None
    view: TargetView | None
    """What makes targets of objects."""
    order: GivenOrder | None
    """The order of a sampler of the user."""
    framework: Framework
    reads_images: bool

    def plan(self, depth: int | None = None) -> Plan:
        """The memory plan. ``depth``: at most this number of batches are kept ready."""
        loader = self.loader if depth is None else {**self.loader, "depth": depth}
        text = _options.text(self.source, loader)
        raw = None if self.items is None else self.items._raw
        limit = self.items.limit if isinstance(self.items, AskedItems) else None
        planned = _featherload.plan(text, raw, limit, rasters=self.rasters, objects=self.objects)
        return Plan(json.loads(planned))


def checked(arguments: Mapping[str, Any]) -> LoaderRequest:
    """The request that all keywords of ``Loader`` make.

    Raises:
        ConfigError: A keyword has no meaning, or not with another one.
    """
    keywords = dict(arguments)
    framework, targets, then = (keywords.pop(name) for name in ("framework", "targets", "then"))
    recipe = keywords["recipe"]
    _then.check(then)
    reads_images = yes_or_no("images", keywords["images"])
    if then is not None and not reads_images:
        raise ConfigError(
            "then is a function on images, and images=False reads none: remove one of them",
            option="then",
        )
    if keywords["num_workers"] == 0:
        raise ConfigError(
            "num_workers=0 would decode in this process: give at least 1 (workers start in "
            "milliseconds, however large this process is)",
            option="num_workers",
        )
    named = keywords["columns"] = _columns.checked(keywords["columns"])
    captions = keywords["captions"] = _captions.checked(keywords["captions"])
    stored = _stored_values.taken(keywords)
    items = _items.taken(keywords)
    of_column = getattr(items, "_objects", None)
    columns = _captions.held_columns(items, named or [], captions, stored)
    if items is not None:
        items = items._without_columns()
    keywords |= _captions.library(named, captions, columns, stored)
    keywords["masks"] = _huggingface.with_labels(recipe, keywords["masks"])
    rasters = _rasters.taken(keywords)
    if targets is not None and keywords["objects"] is None and items is None:
        # A cache may have objects, and says so if it has none.
        keywords["objects"] = _object_lists.OF_CACHE
    form = _objects.checked_form(targets, keywords["objects"] is not None)
    objects = _huggingface.with_style(recipe, keywords["objects"])
    keywords["objects"] = _albumentations.with_rule(recipe, objects)
    listed = _object_lists.taken(keywords, items is not None, of_column)
    view = _objects.viewer(form, keywords["objects"], _albumentations.box_format(recipe))
    sampler = keywords["sampler"]
    if sampler is not None and not isinstance(sampler, (str, Sampler)):
        keywords["sampler"] = GivenOrder(sampler)
    order = keywords["sampler"] if isinstance(keywords["sampler"], GivenOrder) else None
    source, loader = _options.library(keywords)
    return LoaderRequest(
        source=source,
        loader=loader,
        items=items,
        columns=columns,
        captions=captions,
        stored=stored,
        rasters=rasters,
        objects=listed,
        view=view,
        order=order,
        framework=checked_framework(framework, loader["device"]),
        reads_images=reads_images,
    )


def checked_framework(framework: Framework | None, device: str) -> Framework:
    """The framework of the arrays on a device. By default NumPy, and torch on a GPU."""
    found: Framework = "numpy" if device == "cpu" else "torch"
    if framework is not None:
        found = framework
    if found not in tuple(TAKEN):
        raise ConfigError(
            f"framework {shown(framework)} is unknown: use one of {', '.join(TAKEN)}",
            option="framework",
        )
    if device != "cpu" and found == "numpy":
        raise ConfigError(
            f"NumPy has no arrays on {device}: use framework='torch' or 'jax', or device='cpu'",
            option="framework",
        )
    return found
