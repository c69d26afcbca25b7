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
    rule = keywords["masks"] = rule_of(masks)
    return listed(rule, "masks", "masks")


def rule_of(masks: Any) -> dict[str, Any]:
    """The fields of masks or of a raster. Others than a dict are ``files`` alone."""
    rule = dict(masks) if isinstance(masks, Mapping) else {"files": masks}
    if rule.get("dtype") is not None:
        # Types of NumPy and of torch.
        dtype = rule["dtype"]
        rule["dtype"] = getattr(dtype, "__name__", str(dtype)).removeprefix("torch.")
    return rule


def listed(rule: dict[str, Any], what: str, option: str) -> RawItems | None:
    """The files of a rule, if they are listed. They then leave the rule. ``what``: the name in
    errors of ``option``.
    """
    files = rule.pop("files", None)
    if files is None:
        return None
    if isinstance(files, (str, os.PathLike)):
        rule["files"] = os.fspath(files)
        return None
    try:
        return _items(files, option)._raw
    except (ConfigError, TypeError) as error:
        raise ConfigError(
            f"{what} is {shown(files)}, which is no list of {option}: give a pattern such as "
            f"'../{option}/{{stem}}.png', or a list of paths, of bytes of image files or of "
            f"arrays ({error})",
            option=option,
        ) from None


def as_array(framework: str, tensor: Any) -> Any:
    """A tensor of a batch as an array of the framework."""
    if framework == "numpy":
        return np.asarray(tensor)
    if framework == "torch":
        from torch.utils.dlpack import from_dlpack

        return from_dlpack(tensor)
    import jax

    return jax.dlpack.from_dlpack(tensor)


def _items(files: Any, option: str) -> Items:
    if isinstance(files, Items):
        return files
    listed = list(files)
    if listed and isinstance(listed[0], bytes):
        return Items(images=listed)
    if listed and getattr(listed[0], "ndim", 0) > 0:
        return Items(images=[_file(option, number, mask) for number, mask in enumerate(listed)])
    return Items(listed)


def _file(option: str, number: int, array: Any) -> bytes:
    """An array as a file of NumPy."""
    labels = np.asarray(array)
    if option == "masks" and (labels.ndim != 2 or labels.dtype.kind not in "buif"):
        raise ConfigError(
            f"mask {number} has shape {labels.shape} and dtype {labels.dtype}: give arrays of "
            "whole numbers, H x W"
        )
    if labels.ndim not in (2, 3) or labels.dtype.kind not in "buif":
        raise ConfigError(
            f"array {number} has shape {labels.shape} and dtype {labels.dtype}: give arrays of "
            "numbers, H x W for masks and depths, H x W x 2 for flows, H x W x 3 for images"
        )
    file = io.BytesIO()
    np.save(file, labels, allow_pickle=False)
    return file.getvalue()
