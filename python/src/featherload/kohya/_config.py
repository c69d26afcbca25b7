"""The file of a dataset config: its tables, the keys that sd-scripts knows, and those that have no
equivalent here. Reads the config alone."""

from __future__ import annotations

import json
import os
import re
import tomllib
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .._errors import ConfigError, DatasetError
from .._items import _outside
from .._values import shown


def parse_file(file: str) -> dict[str, Any]:
    """The config as a dict."""
    suffix = os.path.splitext(file)[1].lower()
    if suffix not in (".toml", ".json"):
        raise ConfigError(
            f"{file} is neither .toml nor .json, the formats of a dataset config: rename it, or "
            "give the path of the config",
            path=file,
            option="path",
        )
    try:
        with open(file, "rb") as opened:
            data = opened.read().decode()
        config = tomllib.loads(data) if suffix == ".toml" else json.loads(data)
    except OSError as error:
        raise ConfigError(
            f"{file} cannot be read: {error.strerror}: give the path of a dataset config",
            path=file,
            option="path",
        ) from None
    except UnicodeDecodeError:
        raise ConfigError(f"{file} is not UTF-8: save it as UTF-8", path=file) from None
    except (ValueError, RecursionError) as error:
        found = re.search(r"line (\d+)", str(error))
        raise ConfigError(
            f"{file} is not valid {suffix[1:].upper()}: {error}: correct it. Paths with "
            "backslashes need single quotes in TOML",
            path=file,
            line=int(found[1]) if found else None,
        ) from None
    if not isinstance(config, dict):
        raise ConfigError(f"{file} is no table: begin it with [[datasets]]", path=file)
    return config


@dataclass(frozen=True)
class Section:
    """A part of the config: ``[general]``, one of the ``[[datasets]]``, or one of its subsets."""

    file: str
    name: str
    values: Mapping[str, Any]
    parent: Section | None = None
    number: int = 0
    """Its place among the sections of its kind, from 0."""

    def owner(self, key: str) -> Section:
        """The most specific section that has the key. Without one, this section."""
        section: Section | None = self
        while section is not None:
            if key in section.values:
                return section
            section = section.parent
        return self

    def find(self, key: str) -> Any:
        """The value of the most specific section that has the key, else the default."""
        return self.owner(key).values.get(key, DEFAULTS.get(key))

    def refuse(self, key: str, why: str) -> ConfigError:
        """The error for the value of a key. ``why`` states the fix, too."""
        owner = self.owner(key)
        return ConfigError(f"{self.file}: {owner.name}: {key} {why}", path=self.file, option=key)

    def damaged(self, key: str, path: str, why: str, line: int | None = None) -> DatasetError:
        """The error for a file or folder that this section names."""
        return DatasetError(
            f"{self.file}: {self.name}: {key}: {path} {why}", path=path, option=key, line=line
        )

    def warn(self, text: str) -> None:
        warnings.warn(f"{self.file}: {self.name}: {text}", UserWarning, stacklevel=_outside())


def sections_of(file: str, config: Mapping[str, Any]) -> list[tuple[Section, list[Section]]]:
    """The datasets of the config and their subsets, with checked keys."""
    whole_file = Section(file, "the file", config)
    for key in config:
        if key not in ("general", "datasets"):
            raise whole_file.refuse(key, "is unknown here: use [general] and [[datasets]]")
    general = Section(file, "[general]", _table(whole_file, "general", config.get("general", {})))
    _check_keys(general, _GENERAL)
    datasets = _tables(whole_file, "datasets")
    if not datasets:
        raise whole_file.refuse("datasets", "is missing: add [[datasets]] with its subsets")
    sections = []
    for at, values in enumerate(datasets):
        section = Section(file, f"[[datasets]] {at + 1}", values, general, at)
        subsets = [
            Section(file, f"{section.name}, subset {number + 1}", subset, section, number)
            for number, subset in enumerate(_tables(section, "subsets"))
        ]
        _check_dataset_keys(section, subsets)
        sections.append((section, subsets))
    return sections


def _table(section: Section, key: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise section.refuse(key, f"is {shown(value)}: make it a table")
    return value


def _tables(section: Section, key: str) -> list[Mapping[str, Any]]:
    listed = section.values.get(key, [])
    if not isinstance(listed, list):
        raise section.refuse(key, "is one table: write its name in double brackets")
    return [_table(section, key, value) for value in listed]


def _check_dataset_keys(section: Section, subsets: Sequence[Section]) -> None:
    if not subsets:
        raise section.refuse("subsets", "is missing: add [[datasets.subsets]] with image_dir")
    for subset in subsets:
        if "conditioning_data_dir" in subset.values:
            raise subset.refuse(
                "conditioning_data_dir",
                "is of ControlNet, whose images this reader does not join: read them with a "
                "Dataset of your own",
            )
    with_metadata = [subset for subset in subsets if "metadata_file" in subset.values]
    if len(with_metadata) not in (0, len(subsets)):
        raise with_metadata[0].refuse(
            "metadata_file",
            "is not in all subsets of this dataset: put DreamBooth and fine-tuning subsets into "
            "separate [[datasets]]",
        )
    of_metadata = bool(with_metadata)
    _check_keys(section, _FINE_TUNING_DATASET if of_metadata else _DREAMBOOTH_DATASET, "subsets")
    for subset in subsets:
        _check_keys(subset, _FINE_TUNING_SUBSET if of_metadata else _DREAMBOOTH_SUBSET)
        if not of_metadata and "image_dir" not in subset.values:
            raise subset.refuse("image_dir", "is missing: give the folder of the images")


def _check_keys(section: Section, known: Mapping[str, str], *others: str) -> None:
    for key, value in section.values.items():
        if key in others:
            continue
        if key not in known:
            raise section.refuse(
                key, "is unknown, or not allowed here: correct its name, move or remove it"
            )
        kind = known[key]
        if not _KINDS[kind](value):
            raise section.refuse(key, f"is {shown(value)}: give {kind}")


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    return isinstance(value, float) or _is_whole(value)


def _is_pair(value: Any, of: Callable[[Any], bool]) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(of, value))


def _is_float(value: Any) -> bool:
    return isinstance(value, float)


_KINDS: dict[str, Callable[[Any], bool]] = {
    "true or false": lambda value: isinstance(value, bool),
    "a whole number": _is_whole,
    "a number": is_number,
    "a number with a point, such as 0.0": _is_float,
    "a text": lambda value: isinstance(value, str),
    "a table": lambda value: isinstance(value, dict),
    "a whole number or [width, height]": lambda v: _is_whole(v) or _is_pair(v, _is_whole),
    "two numbers with a point, such as [1.0, 3.0]": lambda value: _is_pair(value, _is_float),
}


_FLAG, _WHOLE, _NUMBER, _FLOAT, _TEXT, _TABLE, _SIZE, _RANGE = _KINDS


# Keys by the sections that have them, as in ``ConfigSanitizer`` of sd-scripts.
_OF_DATASETS = {
    "batch_size": _WHOLE,
    "bucket_no_upscale": _FLAG,
    "bucket_reso_steps": _WHOLE,
    "enable_bucket": _FLAG,
    "max_bucket_reso": _WHOLE,
    "min_bucket_reso": _WHOLE,
    "network_multiplier": _FLOAT,
    "resize_interpolation": _TEXT,
    "resolution": _SIZE,
    "validation_seed": _WHOLE,
    "validation_split": _FLOAT,
}


_OF_SUBSETS = {
    "caption_dropout_every_n_epochs": _WHOLE,
    "caption_dropout_rate": _NUMBER,
    "caption_prefix": _TEXT,
    "caption_separator": _TEXT,
    "caption_suffix": _TEXT,
    "caption_tag_dropout_rate": _NUMBER,
    "color_aug": _FLAG,
    "custom_attributes": _TABLE,
    "enable_wildcard": _FLAG,
    "face_crop_aug_range": _RANGE,
    "flip_aug": _FLAG,
    "keep_tokens": _WHOLE,
    "keep_tokens_separator": _TEXT,
    "num_repeats": _WHOLE,
    "random_crop": _FLAG,
    "resize_interpolation": _TEXT,
    "secondary_separator": _TEXT,
    "shuffle_caption": _FLAG,
    "token_warmup_min": _WHOLE,
    "token_warmup_step": _NUMBER,
}


_OF_DREAMBOOTH = {"cache_info": _FLAG, "caption_extension": _TEXT, "class_tokens": _TEXT}


_GENERAL = {**_OF_DATASETS, **_OF_SUBSETS, **_OF_DREAMBOOTH}


_DREAMBOOTH_DATASET = _GENERAL


_FINE_TUNING_DATASET = {**_OF_DATASETS, **_OF_SUBSETS}


_DREAMBOOTH_SUBSET = {
    **_OF_SUBSETS,
    **_OF_DREAMBOOTH,
    "alpha_mask": _FLAG,
    "image_dir": _TEXT,
    "is_reg": _FLAG,
}


_FINE_TUNING_SUBSET = {
    **_OF_SUBSETS,
    "alpha_mask": _FLAG,
    "image_dir": _TEXT,
    "metadata_file": _TEXT,
}


# Those of the command line of sd-scripts. The default of other keys is None.
DEFAULTS: dict[str, Any] = {
    **{key: False for key, kind in _DREAMBOOTH_DATASET.items() if kind == _FLAG},
    "batch_size": 1,
    "bucket_reso_steps": 64,
    "caption_dropout_every_n_epochs": 0,
    "caption_dropout_rate": 0.0,
    "caption_extension": ".caption",
    "caption_separator": ",",
    "caption_tag_dropout_rate": 0.0,
    "keep_tokens": 0,
    "max_bucket_reso": 1024,
    "min_bucket_reso": 256,
    "network_multiplier": 1.0,
    "num_repeats": 1,
    "token_warmup_step": 0,
    "validation_split": 0.0,
}


# Options without an equivalent.


def refuse_dataset_options(section: Section) -> None:
    if section.find("validation_split") != 0.0:
        raise section.refuse(
            "validation_split",
            "has no equivalent: remove it, and give the validation images a config of their own",
        )
    if section.find("batch_size") < 1:
        raise section.refuse("batch_size", "is too small: give at least 1")


def refuse_subset_options(subset: Section, has_buckets: bool) -> None:
    refused = [
        (
            "color_aug",
            subset.find("color_aug"),
            "has no equivalent, because no operation has its random gamma: set it to false. For "
            "its hue alone, add random_apply of random_hsv before normalize in the recipe",
        ),
        (
            "face_crop_aug_range",
            subset.find("face_crop_aug_range") is not None and not has_buckets,
            "has no equivalent: remove it, or set enable_bucket to true, with which sd-scripts "
            "does not use it",
        ),
        (
            "caption_dropout_every_n_epochs",
            subset.find("caption_dropout_every_n_epochs") > 0,
            "has no equivalent: remove it, and use caption_dropout_rate",
        ),
        (
            "token_warmup_step",
            subset.find("token_warmup_step") > 0,
            "has no equivalent, because captions do not depend on the step: remove it",
        ),
        (
            "custom_attributes",
            subset.find("custom_attributes"),
            "has no equivalent: remove it, and look its values up by Image.subset",
        ),
        (
            "alpha_mask",
            subset.find("alpha_mask"),
            "has no equivalent: set it to false, and read the masks with Loader(masks=...)",
        ),
        (
            "cache_info",
            subset.find("cache_info"),
            "has no equivalent: set it to false. Captions and headers are read at each start, and "
            "metadata_cache.json is not used",
        ),
    ]
    for key, has_effect, why in refused:
        if has_effect:
            raise subset.refuse(key, why)
    if not subset.find("caption_separator"):
        raise subset.refuse("caption_separator", "is empty: give a text, such as ','")


def shared_value(subsets: Sequence[Section], key: str, fix: str = "") -> Any:
    """The value of a key that all subsets must have in common."""
    for subset in subsets[1:]:
        if subset.find(key) != subsets[0].find(key):
            raise difference(subsets[0], subset, key, fix)
    return subsets[0].find(key)


def difference(one: Section, other: Section, key: str, why: str = "") -> ConfigError:
    names = f"{one.name} and subset {other.number + 1}"
    values = " and ".join(shown(subset.find(key)) for subset in (one, other))
    return ConfigError(
        f"{one.file}: {names} differ in {key} ({values}){why or ', and a loader has one value'}: "
        "give them the same value, or put them into separate [[datasets]]",
        path=one.file,
        option=key,
    )


# Images of subsets.
