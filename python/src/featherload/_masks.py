"""Masks that a program lists, in place of a pattern of paths."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ._errors import ConfigError
from ._featherload import RawItems
from ._items import Items, Source, is_path
from ._values import shown

Masks = str | Mapping[str, Any] | Source


def taken(keywords: dict[str, Any]) -> RawItems | None:
    """The masks of the keywords of ``Loader``, if they are listed: paths, bytes of image files, or
    an array. The keyword then has the rule alone.
    """
    masks = keywords["masks"]
    rule = dict(masks) if isinstance(masks, Mapping) else {}
    files = rule.get("files") if isinstance(masks, Mapping) else masks
    if files is None or is_path(files):
        # The library reads it.
        return None
    rule.pop("files", None)
    keywords["masks"] = rule
    try:
        if isinstance(files, Items):
            return files._raw
        if hasattr(files, "dtype") and getattr(files, "ndim", 1) > 1:
            return Items(images=files)._raw
        listed = list(files)
        if listed and (isinstance(listed[0], bytes) or getattr(listed[0], "ndim", 0) > 1):
            return Items(images=listed)._raw
        return Items(listed)._raw
    except (ConfigError, TypeError) as error:
        raise ConfigError(
            f"masks is {shown(files)}, which is no list of masks: give a pattern such as "
            f"'annotations/{{stem}}.png', or a list of paths or of bytes ({error})",
            option="masks",
        ) from None
