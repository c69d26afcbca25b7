"""The images of subsets, with their captions: listed in folders or in metadata. Reads caption
files and metadata. Never in here: which tags of a caption move."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from .._errors import DatasetError
from .._values import shown
from ._config import Section, refuse_subset_options

# Case counts, as in sd-scripts: ``.Png`` is not read.
_EXTENSIONS = tuple(
    chain.from_iterable((e, e.upper()) for e in (".png", ".jpg", ".jpeg", ".webp", ".bmp"))
)


# sd-scripts reads them if a plugin of Pillow is installed.
_PLUGIN_EXTENSIONS = (".avif", ".AVIF", ".jxl", ".JXL")


@dataclass(slots=True)
class Entry:
    """An image while repeats are counted."""

    key: str
    path: str
    caption: str
    repeats: int
    is_reg: bool
    subset: Section


def _dreambooth_entries(subset: Section) -> list[Entry]:
    folder = subset.values["image_dir"]
    repeats, is_reg = subset.find("num_repeats"), bool(subset.find("is_reg"))
    extension = subset.find("caption_extension")
    if extension and not extension.startswith("."):
        extension = f".{extension}"
    class_tokens = subset.find("class_tokens")
    entries, without_caption = [], []
    for path in _image_files(subset, folder):
        caption = _caption_of_file(subset, path, extension)
        if caption is None:
            caption = class_tokens
        if caption is None:
            without_caption.append(path)
        entries.append(Entry(path, path, caption or "", repeats, is_reg, subset))
    if without_caption:
        subset.warn(
            f"{len(without_caption)} images have neither a caption file ({extension}) nor "
            f"class_tokens, so their captions are empty: {without_caption[0]} is the first. Give "
            "caption_extension or class_tokens"
        )
    return entries


def _image_files(subset: Section, folder: str) -> list[str]:
    """Images of the folder itself, sorted."""
    try:
        with os.scandir(folder) as found:
            names = [entry.name for entry in found if not entry.is_dir()]
    except OSError as error:
        raise subset.damaged(
            "image_dir",
            folder,
            f"cannot be read: {error.strerror}: give a folder. Relative ones start from the "
            "working directory",
        ) from None
    except ValueError:
        raise subset.refuse("image_dir", f"is {shown(folder)}: give a folder") from None
    names = sorted(name for name in names if not name.startswith("."))
    images = [name for name in names if name.endswith(_EXTENSIONS)]
    others = [name for name in names if name.endswith(_PLUGIN_EXTENSIONS)]
    if others:
        subset.warn(f"{len(others)} AVIF and JPEG XL images are left out: convert them")
    if not images:
        raise subset.damaged(
            "image_dir",
            folder,
            "has no images (.png, .jpg, .jpeg, .webp, .bmp): give a folder with images. Those of "
            "its subfolders are not read: give each one a subset",
        )
    root = folder.rstrip("/") or "/"
    return [os.path.join(root, name) for name in images]


def _caption_of_file(subset: Section, image: str, extension: str) -> str | None:
    """The caption beside an image: the first line, or with ``enable_wildcard`` all lines."""
    stem = os.path.splitext(image)[0]
    stems = [stem]
    parts = stem.split("_")
    if len(parts) >= 5:
        # Names with the place of a face end with four numbers.
        stems.append("_".join(parts[:-4]))
    for path in (f"{stem}{extension}" for stem in stems):
        if os.path.isfile(path):
            lines = _lines(subset, path)
            if not subset.find("enable_wildcard"):
                return lines[0].strip()
            return "\n".join(line.strip() for line in lines if line.strip())
    return None


def _lines(subset: Section, path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8") as opened:
            lines = opened.readlines()
    except UnicodeDecodeError:
        raise subset.damaged("caption_extension", path, "is not UTF-8: save it as UTF-8") from None
    except OSError as error:
        raise subset.damaged(
            "caption_extension", path, f"cannot be read: {error.strerror}: correct its rights"
        ) from None
    if not lines:
        raise subset.damaged(
            "caption_extension", path, "is empty: write a caption, or remove the file"
        )
    return lines


def _fine_tuning_entries(subset: Section) -> list[Entry]:
    file, folder = subset.values["metadata_file"], subset.find("image_dir")
    metadata = _metadata(subset, file)
    entries = []
    # sd-scripts has this order. Of two entries for one image it keeps the last.
    for key in sorted(metadata, key=len, reverse=True):
        if not os.path.isabs(key) and folder is None:
            raise subset.refuse(
                "image_dir", f"is missing, and {file} has the relative path {key}: give the folder"
            )
        path = key if folder is None else os.path.join(folder, key)
        if not os.path.isfile(path):
            raise subset.damaged(
                "metadata_file", path, f"does not exist, but {file} names it: correct the key"
            )
        caption = _caption_of_metadata(subset, file, key, metadata[key])
        entries.append(Entry(key, path, caption, subset.find("num_repeats"), False, subset))
    return entries


def _metadata(subset: Section, file: str) -> dict[str, dict[str, Any]]:
    try:
        with open(file, encoding="utf-8") as opened:
            if file.endswith(".jsonl"):
                metadata = dict(_json_lines(subset, file, opened))
            else:
                metadata = json.load(opened)
    except OSError as error:
        raise subset.damaged(
            "metadata_file", file, f"cannot be read: {error.strerror}: give a JSON file"
        ) from None
    except UnicodeDecodeError:
        raise subset.damaged("metadata_file", file, "is not UTF-8: save it as UTF-8") from None
    except json.JSONDecodeError as error:
        raise subset.damaged(
            "metadata_file", file, f"is not valid JSON: {error}: correct it", error.lineno
        ) from None
    except RecursionError:
        raise subset.damaged("metadata_file", file, "has too many levels: correct it") from None
    except ValueError:
        raise subset.refuse("metadata_file", f"is {shown(file)}: give a path") from None
    if not isinstance(metadata, dict):
        raise subset.damaged("metadata_file", file, "is no object with an entry for each image")
    if not metadata:
        raise subset.damaged("metadata_file", file, "has no images: remove the subset")
    return metadata


def _json_lines(
    subset: Section, file: str, lines: Iterable[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, line in enumerate(lines, 1):
        try:
            entry = json.loads(line)
        except (json.JSONDecodeError, RecursionError) as error:
            why = getattr(error, "msg", "too many levels")
            raise subset.damaged(
                "metadata_file", file, f"line {number} is not valid JSON: {why}", number
            ) from None
        if not isinstance(entry, dict) or not isinstance(entry.get("image_path"), str):
            raise subset.damaged(
                "metadata_file", file, f"line {number} has no image_path: add it", number
            )
        yield entry["image_path"], entry


def _caption_of_metadata(subset: Section, file: str, key: str, entry: Any) -> str:
    """Caption and tags of an entry, joined as sd-scripts does it."""
    caption: Any = entry.get("caption") if isinstance(entry, dict) else entry
    tags: Any = entry.get("tags") if isinstance(entry, dict) else None
    caption = "" if caption is None else caption
    if not isinstance(entry, dict) or not all(isinstance(t, str) for t in (caption, tags or "")):
        raise subset.damaged(
            "metadata_file", file, f"has no texts for {shown(key)}: give caption and tags as texts"
        )
    separator: str = subset.find("caption_separator")
    if not subset.find("enable_wildcard"):
        return separator.join(text for text in (caption, tags) if text)
    if tags is None:
        return str(caption)
    tags = tags.replace("\n", separator)
    # An image without a caption loses its tags here. sd-scripts does the same.
    return "\n".join(f"{line}{separator}{tags}" for line in caption.split("\n") if line.strip())


# Repeats.


@dataclass
class _Epoch:
    """The images of a dataset, registered in the order of sd-scripts."""

    entries: dict[str, Entry] = field(default_factory=dict)
    subsets: list[Section] = field(default_factory=list)
    train_images: int = 0
    reg_images: int = 0

    def register(self, entry: Entry) -> None:
        """Adds an image. One with the same key is replaced, as in sd-scripts."""
        self.entries[entry.key] = entry

    def register_reg_images(self, entries: Sequence[Entry]) -> None:
        """Adds regularisation images, one after the other, up to the number of training images.

        The first round adds each one with its own repeats. Further rounds add one repeat each.
        """
        registered, is_first = 0, True
        while entries and registered < self.train_images:
            for entry in entries:
                if is_first:
                    self.register(entry)
                    registered += entry.repeats
                else:
                    entry.repeats += 1
                    registered += 1
                if registered >= self.train_images:
                    break
            is_first = False


def epoch_of(section: Section, subsets: Sequence[Section]) -> _Epoch:
    epoch, names = _Epoch(), set()
    reg_entries: list[Entry] = []
    for subset in subsets:
        of_metadata = "metadata_file" in subset.values
        key = "metadata_file" if of_metadata else "image_dir"
        if subset.find("num_repeats") < 1:
            subset.warn("num_repeats is below 1, so the subset is left out, as in sd-scripts")
            continue
        if subset.values[key] in names:
            subset.warn(
                f"{key} {subset.values[key]} is that of an earlier subset, so the subset is left "
                "out, as in sd-scripts: remove it"
            )
            continue
        names.add(subset.values[key])
        refuse_subset_options(subset, bool(section.find("enable_bucket")))
        entries = _fine_tuning_entries(subset) if of_metadata else _dreambooth_entries(subset)
        repeated = sum(entry.repeats for entry in entries)
        epoch.subsets.append(subset)
        if entries[0].is_reg:
            epoch.reg_images += repeated
            reg_entries += entries
            continue
        epoch.train_images += repeated
        known = [entry.key for entry in entries if entry.key in epoch.entries]
        if known:
            subset.warn(
                f"{len(known)} images are in an earlier subset under the same name, such as "
                f"{known[0]}. The last one is kept, as in sd-scripts: use absolute paths"
            )
        for entry in entries:
            epoch.register(entry)
    if not epoch.train_images:
        raise DatasetError(
            f"{section.file}: {section.name} has no images for training: add a subset without "
            "is_reg and with num_repeats of at least 1",
            path=section.file,
        )
    epoch.register_reg_images(reg_entries)
    if epoch.reg_images > epoch.train_images:
        section.warn(
            f"{epoch.reg_images} regularisation images are more than the {epoch.train_images} "
            "training images, so some are not used: raise num_repeats of training images"
        )
    return epoch


# Captions.
