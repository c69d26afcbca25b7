"""Masks that a program lists, in place of a pattern of paths."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from ._errors import ConfigError
from ._featherload import RawItems
from ._items import Items, Source
from ._values import shown

Masks = str | Mapping[str, Any] | Source


def taken(keywords: dict[str, Any]) -> RawItems | None:
    """The masks of the keywords of ``Loader``, if they are listed: paths, bytes of image files, or
    arrays. The keyword then has the rule alone.
    """
    masks = keywords["masks"]
    if masks is None:
        return None
    rule = dict(masks) if isinstance(masks, Mapping) else {"files": masks}
    if rule.get("dtype") is not None:
        # Types of NumPy and of torch.
        dtype = rule["dtype"]
        rule["dtype"] = getattr(dtype, "__name__", str(dtype)).removeprefix("torch.")
    files = rule.pop("files", None)
    keywords["masks"] = rule
    if files is None:
        return None
    if isinstance(files, (str, os.PathLike)):
        rule["files"] = os.fspath(files)
        return None
    try:
        return _items(files)._raw
    except (ConfigError, TypeError) as error:
        raise ConfigError(
            f"masks is {shown(files)}, which is no list of masks: give a pattern such as "
            f"'../masks/{{stem}}.png', or a list of paths, of bytes of image files or of arrays "
            f"H x W ({error})",
            option="masks",
        ) from None


def _items(files: Any) -> Items:
    if isinstance(files, Items):
        return files
    listed = list(files)
    if listed and isinstance(listed[0], bytes):
        return Items(images=listed)
    if listed and getattr(listed[0], "ndim", 0) > 0:
        return Items(images=[_file(number, mask) for number, mask in enumerate(listed)])
    return Items(listed)


def _file(number: int, mask: Any) -> bytes:
    """An array as a file of NumPy."""
    labels = np.asarray(mask)
    if labels.ndim != 2 or labels.dtype.kind not in "buif":
        raise ConfigError(
            f"mask {number} has shape {labels.shape} and dtype {labels.dtype}: give arrays of "
            "whole numbers, H x W"
        )
    file = io.BytesIO()
    np.save(file, labels, allow_pickle=False)
    return file.getvalue()
