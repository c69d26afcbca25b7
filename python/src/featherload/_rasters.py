"""Rasters that move with their images: the keyword, and the arrays of a batch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from . import _masks
from ._errors import ConfigError
from ._featherload import RawBatch, RawItems
from ._items import Source

Rasters = Mapping[str, str | Mapping[str, Any] | Source]

Listed = list[tuple[str, RawItems]]


def taken(keywords: dict[str, Any]) -> Listed:
    """Masks and rasters of the keywords of ``Loader`` that are listed: paths, bytes of files, or
    arrays. The keywords then have the rules alone. Masks have the name ``masks``.
    """
    masks, rasters = _masks.taken(keywords), keywords["rasters"]
    listed: Listed = [] if masks is None else [("masks", masks)]
    if rasters is None:
        return listed
    if not isinstance(rasters, Mapping):
        raise ConfigError(
            "rasters is no dict: give names and files, such as {'depth': '../depth/{stem}.png'}",
            option="rasters",
        )
    rules = keywords["rasters"] = {}
    for name, raster in rasters.items():
        rule = json_rule(raster)
        items = _masks.listed(rule, f"rasters[{name!r}]", "rasters")
        rules[str(name)] = rule
        if items is not None:
            listed.append((str(name), items))
    return listed


def json_rule(raster: Any) -> dict[str, Any]:
    """The fields of a raster for JSON, which has no NaN."""

    def number(value: Any) -> Any:
        return "nan" if isinstance(value, float) and math.isnan(value) else value

    return {name: number(value) for name, value in _masks.rule_of(raster).items()}


def of_batch(framework: str, raw: RawBatch) -> dict[str, Any]:
    """The rasters of a batch as arrays of the framework."""
    return {name: _masks.as_array(framework, raster) for name, raster in raw.rasters()}
