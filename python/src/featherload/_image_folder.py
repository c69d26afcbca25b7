"""torchvision's image folders and subsets of them, as lists of samples.

Never in here: the order of an epoch.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from ._errors import ConfigError
from ._transforms import Walk, translate

_Samples = list[tuple[Any, Any]]


def _refused(text: str) -> ConfigError:
    return ConfigError(text, option="dataset")


def resolve(dataset: Any) -> tuple[Any, _Samples]:
    """The image folder of ``dataset``, and the samples in the order of ``dataset``."""
    from torch.utils.data import Subset
    from torchvision import get_image_backend
    from torchvision.datasets import ImageFolder
    from torchvision.datasets.folder import default_loader, pil_loader

    kind = type(dataset)
    if kind is Subset:
        folder, samples = resolve(dataset.dataset)
        try:
            return folder, [samples[i] for i in _indices(dataset.indices)]
        except (IndexError, KeyError, TypeError) as error:
            raise _refused(
                f"the indices of a Subset are not valid in its data set of {len(samples)} samples "
                f"({error}): give whole numbers below {len(samples)}"
            ) from None
    if not isinstance(dataset, ImageFolder):
        raise _refused(
            f"{kind.__name__} is not a torchvision ImageFolder or a Subset of one: give its files "
            "to featherload.Loader"
        )
    for method in ("__getitem__", "__getitems__", "__len__"):
        if getattr(kind, method, None) is not getattr(ImageFolder, method, None):
            raise _refused(
                f"{kind.__name__} has a {method} of its own, which workers cannot call: give an "
                "ImageFolder, or give its files to featherload.Loader"
            )
    if dataset.target_transform is not None:
        raise _refused(
            "target_transform of an ImageFolder is not supported: write the labels that it returns "
            "into the folder's samples, and set it to None"
        )
    backend = get_image_backend()
    if dataset.loader is default_loader and backend != "PIL":
        raise _refused(
            f"torchvision's image backend is {backend}, but featherload reads images as Pillow "
            "does: call torchvision.set_image_backend('PIL')"
        )
    if dataset.loader is not default_loader and dataset.loader is not pil_loader:
        raise _refused(
            "loader of an ImageFolder cannot be called by workers: use torchvision's "
            "default_loader if it returns the same pixels, or write the pixels of your loader to "
            "files"
        )
    return dataset, dataset.samples


class DatasetSnapshot:
    """The state of a data set when the loader was made. torch reads a data set again for each
    sample. featherload reads it once, so a later change is an error.

    ``listed``: the number of samples in ``list_file``, which are the first ones.
    """

    def __init__(self, dataset: Any, samples: _Samples, listed: int, recipe: Any) -> None:
        self._dataset = dataset
        self._listed = listed
        # A fingerprint, because a copy of the samples would double the memory.
        self._samples = self._fingerprint(samples)
        # None if another recipe replaces the transform.
        self._recipe = recipe

    def check(self) -> None:
        folder, samples = resolve(self._dataset)
        try:
            is_same = self._fingerprint(samples) == self._samples
        except TypeError:
            # A label without a hash is not among the recorded ones.
            is_same = False
        if not is_same:
            raise _changed("samples")
        if self._recipe is not None and _recipe_or_none(folder) != self._recipe:
            raise _changed("transform")

    def _fingerprint(self, samples: _Samples) -> tuple[int, int]:
        return len(samples), hash(tuple(map(tuple, samples[: self._listed])))


def _changed(what: str) -> ConfigError:
    return _refused(
        f"the {what} of the data set changed after the loader was made, which still uses the "
        "former ones: make a new loader"
    )


def _recipe_or_none(folder: Any) -> Any:
    try:
        return recipe(folder)
    except ConfigError:
        return None


def _indices(indices: Any) -> Iterable[Any]:
    """The indices of a subset, one by one, as torch reads them."""
    import torch

    if isinstance(indices, (list, tuple, range)):
        return indices
    if isinstance(indices, (np.ndarray, torch.Tensor)) and "bool" not in str(indices.dtype):
        numbers: list[Any] = indices.tolist()
        return numbers
    if isinstance(indices, (np.ndarray, torch.Tensor)):
        raise TypeError("they are a mask")
    return (indices[at] for at in range(len(indices)))


def recipe(folder: Any) -> Any:
    """The folder's transform, if it makes tensors of one size."""
    if folder.transform is None:
        raise _refused(
            "the ImageFolder has no transform, so its images have different sizes: give it one, "
            "such as a Resize, a crop and ToTensor"
        )
    recipe = translate(folder.transform)
    walk = Walk()
    walk.ops(folder.transform)
    if not walk.is_tensor:
        raise _refused(
            "the transform of the ImageFolder returns no tensor, so torch cannot make a batch of "
            "it: put ToTensor() or v2.ToImage() at its end"
        )
    if not any(name == "resize" or name.endswith("crop") for name in _op_names(recipe["ops"])):
        raise _refused(
            "the transform of the ImageFolder keeps images at their own sizes, which cannot form a "
            "batch: give it a Resize((height, width)) or a crop"
        )
    return recipe


def _op_names(ops: Any) -> Iterator[str]:
    for op in ops:
        for name, values in op.items():
            yield name
            yield from _op_names(values.get("transforms", ()))


def root(root: Any) -> str:
    whole = os.path.join(os.getcwd(), os.fsdecode(root))
    try:
        whole.encode()
    except UnicodeEncodeError:
        raise _refused(
            f"the folder {os.fsdecode(root)!r} of the ImageFolder has a name that is not UTF-8: "
            "rename it"
        ) from None
    return whole


def list_file(root: Any, samples: _Samples) -> int:
    """Writes the samples to a list file without a name, and returns its descriptor. The file
    disappears when the descriptor is closed.

    Paths below the root are relative to it, so the state of a run does not depend on the position
    of the folder.
    """
    if not samples:
        raise _refused("the data set has no samples: give one with samples")
    before = os.path.join(os.fsencode(root), b"")
    here = os.getcwdb()
    with tempfile.TemporaryFile(prefix="featherload-") as file:
        for number, (path, label) in enumerate(samples):
            name = os.fsencode(path)
            if b"\n" in name or b"\0" in name:
                raise _refused(
                    f"sample {number} is {path!r}: a file with a line break in its name cannot be "
                    "listed: rename it"
                )
            if not _is_class(label):
                raise _refused(
                    f"the label of sample {number} is {label!r}: give whole numbers in the "
                    "ImageFolder's samples"
                )
            if name.startswith(before) and name != before:
                name = name[len(before) :].lstrip(b"/")
            else:
                name = os.path.join(here, name)
            quoted = name.replace(b"\\", b"\\\\").replace(b'"', b'\\"')
            file.write(b'"%s" %d\n' % (quoted, label))
        file.flush()
        return os.dup(file.fileno())


def _is_class(label: Any) -> bool:
    """Whether torch would convert it to int64."""
    if isinstance(label, np.int64):
        return True
    return isinstance(label, int) and not isinstance(label, bool) and -(1 << 63) <= label < 1 << 63


def name(of: Any) -> str:
    """A class's name. torchvision's ImageNet has several names for each class."""
    return ", ".join(map(str, of)) if isinstance(of, (tuple, list)) else str(of)
