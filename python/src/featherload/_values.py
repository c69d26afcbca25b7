"""Checks and converts values of keywords, and describes wrong values in errors.

Never in here: the list of keywords.
"""

from __future__ import annotations

import json
import operator
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ._errors import ConfigError
from ._featherload import size_in_bytes

LAST = 1 << 62
"""The last epoch, and the last step."""

_MOST = (1 << 64) - 1
# Most characters of a value in an error.
_SHOWN = 100


def shown(value: Any) -> str:
    """A value as text for an error."""
    if isinstance(value, int) and abs(value) > 1 << 128:
        # Python cannot print very long integers.
        return f"of {value.bit_length()} bits"
    try:
        text = repr(value)
    except ValueError:
        # The value contains such an integer.
        text = f"of type {type(value).__name__}"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def whole(option: str, value: Any, least: int, most: int = _MOST) -> int:
    """A whole number of Python or NumPy, within a range."""
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None:
        raise ConfigError(
            f"{option} {shown(value)} is not a whole number: give one from {least} to {most}",
            option=option,
        )
    if number < least:
        raise ConfigError(
            f"{option} {shown(number)} is too small: give at least {least}", option=option
        )
    if number > most:
        raise ConfigError(
            f"{option} {shown(number)} is too large: give at most {most}", option=option
        )
    return number


def whole_or_none(option: str, value: Any, least: int) -> int | None:
    return None if value is None else whole(option, value, least)


def yes_or_no(option: str, value: Any) -> bool:
    """True or False of Python or NumPy. A text is an error: "no" would count as True."""
    if not isinstance(value, (bool, np.bool_)):
        raise ConfigError(
            f"{option} {shown(value)} is neither True nor False: give one of them", option=option
        )
    return bool(value)


def byte_count(option: str, size: Any) -> int | None:
    """Bytes, from a number or a text in the form of the command line, such as ``"2G"``."""
    if size is None:
        return None
    if not isinstance(size, str):
        whole_bytes = isinstance(size, float) and size.is_integer()
        return whole(option, int(size) if whole_bytes else size, 0)
    try:
        return size_in_bytes(size)
    except ValueError as error:
        raise ConfigError(f"{option} {shown(size)} is not a size: {error}", option=option) from None


def numbers(option: str, values: Iterable[Any]) -> list[float]:
    """A list of numbers. The library checks that they are finite."""
    try:
        return [float(value) for value in values]
    except (OverflowError, TypeError, ValueError) as error:
        raise ConfigError(
            f"{option}: not all are numbers: {error}: give numbers", option=option
        ) from None


def handle(stream: Any) -> int:
    """The handle of a CUDA stream. torch's default stream is CUDA's legacy one."""
    return whole("stream", getattr(stream, "cuda_stream", stream), 0) or 1


def path_text(option: str, path: Any) -> str:
    """A path, or a text that may be one, for JSON."""
    value = argument_text(option, path)
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ConfigError(
                f"{option} {shown(value)} is not UTF-8: rename it, or use a link to it",
                option=option,
            ) from None
    return value


def argument_text(option: str, path: Any) -> str:
    """Like ``path_text``, for a command line, which accepts any bytes except NUL."""
    value = os.fspath(path) if isinstance(path, os.PathLike) else path
    if isinstance(value, bytes):
        raise ConfigError(
            f"{option} {shown(value)} is bytes: convert it with os.fsdecode", option=option
        )
    if not isinstance(value, str):
        raise ConfigError(f"{option} {shown(value)} is not a path: give a text", option=option)
    if "\0" in value:
        raise ConfigError(
            f"{option} {shown(value)} has a NUL byte, which file names cannot have: remove it",
            option=option,
        )
    return value


def _item(value: Any) -> Any:
    """Converts a number of NumPy or torch to Python's."""
    try:
        return value.item()
    except AttributeError:
        raise TypeError from None


def _plain(option: str, value: Any) -> str:
    """A value as JSON."""
    if isinstance(value, (str, bytes, os.PathLike)):
        value = path_text(option, value)
    try:
        return json.dumps(value, allow_nan=False, default=_item)
    except (TypeError, ValueError, RecursionError):
        raise ConfigError(
            f"{option} {shown(value)} is not a valid value: give a finite number, a text, or a "
            "value of the documentation",
            option=option,
        ) from None


def as_json(options: Mapping[str, Any], names: Mapping[str, str] | None = None) -> str:
    """Options as a JSON object, without those that are None. ``names``: keywords that differ from
    the names of the options, for errors.
    """
    named = names or {}
    parts = [
        f"{json.dumps(name)}: {_plain(named.get(name, name), value)}"
        for name, value in options.items()
        if value is not None
    ]
    return "{" + ", ".join(parts) + "}"


def folder_path(option: str, folder: Any) -> Path:
    """A folder. An empty text is an error: it would be the working directory."""
    text = path_text(option, folder)
    if not text:
        raise ConfigError(f"{option} is empty: give the path of a folder", option=option)
    return Path(text)
