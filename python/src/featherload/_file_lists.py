"""Data sets of torch and torchvision that are lists of image files, or arrays of images, as images
and targets.

Never in here: the order of an epoch, and pixels.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _crops, _detection, _joint_transforms, _wrapped_sets
from ._errors import ConfigError
from ._item_feed import METHOD, AskedItem, is_bytes
from ._pixel_arrays import PixelRow
from ._values import shown

_SAME_TARGETS = 16
"""Targets for which target_transform is called twice, to see that it depends on them alone."""

_Samples = list[tuple[Any, Any]]


@dataclass(frozen=True)
class FileList:
    """A data set as a list of files, or of images of arrays."""

    samples: _Samples
    """Image and target of each sample, in the order of the data set. An image is a path, a
    :class:`PixelRow` or an :class:`AskedItem`."""
    leaves: tuple[Any, ...]
    """The data sets that read the files: one, or those of a ConcatDataset."""
    first_target: Any = None
    """The target of the first sample, if the targets of all come later (:class:`AskedItem`)."""

    @property
    def is_grey(self) -> bool:
        """Whether torch gets images of one channel."""
        return self._all_rows() and all(image.is_grey for image, _ in self.samples)

    @property
    def size(self) -> tuple[int, int] | None:
        """Height and width of all images, if they are known and equal."""
        sizes = {image.size for image, _ in self.samples} if self._all_rows() else set()
        return sizes.pop() if len(sizes) == 1 else None

    def _all_rows(self) -> bool:
        rows = (isinstance(image, PixelRow) for image, _ in self.samples)
        return bool(self.samples) and all(rows)

    @property
    def classes(self) -> list[Any]:
        """Names of the classes; empty if the data sets differ in them."""
        names = [list(getattr(leaf, "classes", ())) for leaf in self.leaves]
        return names[0] if all(of == names[0] for of in names) else []


def _refused(text: str) -> ConfigError:
    return ConfigError(text, option="dataset")


def resolve(dataset: Any, *, raw_targets: bool = False) -> FileList:
    """The files and targets of ``dataset``. Reads no image. ``raw_targets``: without calling
    ``target_transform``.

    Raises ``ConfigError`` for a data set that is no list of files, with what to change.
    """
    from torch.utils.data import ConcatDataset, Subset

    kind = type(dataset)
    if hasattr(kind, METHOD):
        return _by_method(dataset)
    if f"{kind.__module__}.{kind.__name__}" == "lightly.data.dataset.LightlyDataset":
        # It adds names of files to the samples of another data set, which has its transform.
        return resolve(dataset.dataset, raw_targets=raw_targets)
    if kind is Subset:
        inner = resolve(dataset.dataset, raw_targets=raw_targets)
        try:
            samples = [inner.samples[i] for i in _indices(dataset.indices)]
        except (IndexError, KeyError, TypeError) as error:
            count = len(inner.samples)
            raise _refused(
                f"the indices of a Subset are not valid in its data set of {count} samples "
                f"({error}): give whole numbers below {count}"
            ) from None
        return FileList(samples, inner.leaves, inner.first_target)
    if kind is ConcatDataset:
        parts = [resolve(part, raw_targets=raw_targets) for part in dataset.datasets]
        return _check_one_kind(
            FileList(
                [sample for part in parts for sample in part.samples],
                tuple(leaf for part in parts for leaf in part.leaves),
                parts[0].first_target,
            )
        )
    wrapped = _wrapped_sets.samples(dataset)
    if wrapped is not None:
        return FileList(wrapped, (dataset,))
    wrapping = _wrapped_sets.wrapping(kind)
    if wrapping is not None:
        raise _refused(wrapping)
    base = next((b for b in kind.__mro__ if _reader(b) is not None), None)
    read = None if base is None else _reader(base)
    if base is None or read is None:
        raise _refused(_without_method(kind))
    # EuroSAT counts its samples itself, with the result of its base.
    counts = next(b for b in kind.__mro__ if _is_known(b))
    for method, of in (("__getitem__", base), ("__getitems__", base), ("__len__", counts)):
        if getattr(kind, method, None) is not getattr(of, method, None):
            raise _refused(
                f"{kind.__name__} has a {method} of its own, which workers cannot call: "
                f"{_method_text(kind)}"
            )
    _check_loader(dataset)
    samples = read(dataset)
    if raw_targets:
        return FileList(samples, (dataset,))
    return FileList(_with_target_transform(dataset, samples), (dataset,))


def _check_one_kind(files: FileList) -> FileList:
    """Raises an error for samples of several kinds: files, images of arrays, bytes of a method,
    and targets that are objects, masks or labels.
    """
    targets = {_wrapped_sets.kind_of(target) for _, target in files.samples}
    if len(targets) > 1:
        raise _refused(
            f"a ConcatDataset of data sets with {' and with '.join(sorted(targets))} has no common "
            "targets: make a loader for each"
        )
    kinds = {type(image) for image, _ in files.samples} & {PixelRow, AskedItem}
    is_all = all(type(image) in kinds for image, _ in files.samples)
    if len(kinds) > 1 or (kinds and not is_all):
        raise _refused(
            "a ConcatDataset of image files, of arrays and of data sets that return bytes has no "
            "common source: make a loader for each kind"
        )
    return files


def _by_method(dataset: Any) -> FileList:
    """The samples of a data set with the method. One that returns bytes is asked for item 0 alone
    here, and for all during the run.
    """
    transform = _target_transform(dataset)
    samples: _Samples = []
    for index in range(len(dataset)):
        item = AskedItem(dataset, index, None)
        image, target = item.ask()
        if is_bytes(image) and not index:
            asked = [AskedItem(dataset, number, transform) for number in range(len(dataset))]
            first = target if transform is None else transform(target)
            return FileList([(item, None) for item in asked], (dataset,), first)
        if is_bytes(image):
            raise _refused(
                f"{item.name()} returned bytes, and a path for item 0: return paths for all "
                "samples, or bytes for all"
            )
        samples.append((image, target))
    return FileList(_with_target_transform(dataset, samples), (dataset,))


def _without_method(kind: type[Any]) -> str:
    package = kind.__module__.split(".")[0]
    if package == "builtins":
        return (
            f"dataset is a {kind.__name__}, and no data set of torch: give it to "
            "featherload.Loader, which takes paths, shards, lists and tables"
        )
    if package == "datasets":
        return (
            f"a {kind.__name__} of Hugging Face within a Subset or ConcatDataset is not read: "
            "use dataset.select(indices) or datasets.concatenate_datasets([...]), or "
            "dataset.train_test_split() for a random split"
        )
    if package == "webdataset":
        return (
            f"{kind.__name__} reads shards in this process: give their paths to "
            "featherload.Loader, such as 'train-*.tar'"
        )
    return f"{kind.__name__} is not known as a list of image files: {_method_text(kind)}"


def _method_text(kind: type[Any]) -> str:
    """The line that makes any data set known."""
    return (
        f"add to {kind.__name__} a method that returns a path, or the bytes of an image file, and "
        f"the target without decoding, such as `def {METHOD}(self, index): return "
        "self.paths[index], self.targets[index]`, or give paths and labels to featherload.Loader"
    )


def _check_loader(dataset: Any) -> None:
    from torchvision import get_image_backend
    from torchvision.datasets.folder import default_loader, pil_loader

    # Data sets without a loader open files by Pillow themselves.
    loader = getattr(dataset, "loader", getattr(dataset, "_loader", None))
    if getattr(loader, "__module__", None) == "lightly.data._image_loaders":
        # lightly's copies of torchvision's functions.
        same = {"default_loader": default_loader, "pil_loader": pil_loader}
        loader = same.get(getattr(loader, "__name__", ""), loader)
    name = type(dataset).__name__
    backend = get_image_backend()
    if loader is default_loader and backend != "PIL":
        raise _refused(
            f"torchvision's image backend is {backend}, and featherload reads images as "
            "Pillow does: call torchvision.set_image_backend('PIL')"
        )
    if loader is not None and loader is not default_loader and loader is not pil_loader:
        raise _refused(
            f"the loader of the {name} cannot be called by workers: use torchvision's "
            "default_loader if it returns the same pixels, or write the pixels of your loader to "
            "files"
        )


def _with_target_transform(dataset: Any, samples: _Samples) -> _Samples:
    function = _target_transform(dataset)
    if function is None:
        return samples
    for number, (_, target) in enumerate(samples[:_SAME_TARGETS]):
        once, twice = function(target), function(target)
        if not np.array_equal(np.asarray(once), np.asarray(twice)):
            raise _refused(
                f"target_transform returned {shown(once)} and {shown(twice)} for the target of "
                f"sample {number}: it is called once per sample here, so it must not be random"
            )
    return [(path, function(target)) for path, target in samples]


def _target_transform(dataset: Any) -> Any:
    joint = getattr(dataset, "transforms", None)
    if joint is not None and type(joint).__name__ != "StandardTransform":
        raise _refused(
            f"the transforms of the {type(dataset).__name__} change image and target together, "
            "which is not done here: give transform, and target_transform if targets change"
        )
    return getattr(dataset, "target_transform", None)


# Data sets of torchvision, by the class that has their `__getitem__`. Values: attributes that hold
# pairs of path and target; or paths, and targets; or a function.
_PAIRS = {
    "DatasetFolder": "samples",
    "GTSRB": "_samples",
    "Imagenette": "_samples",
    "Places365": "imgs",
    "RenderedSST2": "_samples",
    "StanfordCars": "_samples",
}
_COLUMNS = {
    "CLEVRClassification": ("_image_files", "_labels"),
    "DTD": ("_image_files", "_labels"),
    "FGVCAircraft": ("_image_files", "_labels"),
    "Flowers102": ("_image_files", "_labels"),
    "Food101": ("_image_files", "_labels"),
    "LFWPeople": ("data", "targets"),
    "SUN397": ("_image_files", "_labels"),
}


def _is_known(kind: type[Any]) -> bool:
    """Whether it is a class of torchvision's data sets, or lightly's folder without classes."""
    return kind.__module__.startswith("torchvision.datasets.") or (
        kind.__module__ == "lightly.data._image" and kind.__name__ == "DatasetFolder"
    )


def _reader(base: type[Any]) -> Callable[[Any], _Samples] | None:
    """How the samples of torchvision's class ``base`` are listed; None for other classes."""
    if not _is_known(base):
        return None
    name = base.__name__
    if name in _PAIRS:
        return lambda dataset: [*getattr(dataset, _PAIRS[name])]
    if name in _COLUMNS:
        paths, targets = _COLUMNS[name]
        return lambda dataset: _zipped(getattr(dataset, paths), getattr(dataset, targets))
    return _FUNCTIONS.get(name)


def _zipped(paths: Iterable[Any], targets: Any) -> _Samples:
    return [*zip(paths, _plain(targets), strict=True)]


def _plain(targets: Any) -> Any:
    """Targets as Python's numbers and lists."""
    return targets.tolist() if hasattr(targets, "tolist") else targets


def _only(dataset: Any, chosen: Sequence[str], known: Sequence[str]) -> str:
    """The one target of a sample."""
    if len(chosen) != 1 or chosen[0] not in known:
        raise _refused(
            f"target_type {shown(list(chosen))} of the {type(dataset).__name__} gives several "
            f"targets, or none that is a label: give one of {', '.join(known)}"
        )
    return chosen[0]


def _rows(images: Any, targets: Any) -> _Samples:
    """The images of an array, and their targets."""
    array = np.asarray(images)
    if targets is None:
        return [(PixelRow(array, row), None) for row in range(len(array))]
    rows = [PixelRow(array, row) for row in range(len(array))]
    return _zipped(rows, targets)


def _qmnist(dataset: Any) -> _Samples:
    targets = dataset.targets
    return _rows(dataset.data, targets[:, 0] if dataset.compat else targets)


def _of_planes(dataset: Any) -> _Samples:
    """Images of SVHN and STL10, which are stored as N x C x H x W."""
    return _rows(dataset.data.transpose(0, 2, 3, 1), dataset.labels)


def _oxford_pet(dataset: Any) -> _Samples:
    known = {"category": "_labels", "binary-category": "_bin_labels"}
    chosen = _only(dataset, dataset._target_types, list(known))
    return _zipped(dataset._images, getattr(dataset, known[chosen]))


def _celeba(dataset: Any) -> _Samples:
    known = {"attr": "attr", "identity": "identity", "landmarks": "landmarks_align", "bbox": "bbox"}
    chosen = _only(dataset, dataset.target_type, list(known))
    folder = os.path.join(dataset.root, dataset.base_folder, "img_align_celeba")
    targets = getattr(dataset, known[chosen])
    if chosen == "identity":
        targets = targets[:, 0]
    return _zipped([os.path.join(folder, name) for name in dataset.filename], targets)


def _inaturalist(dataset: Any) -> _Samples:
    names = [name for name in dataset.categories_index if name != "full"]
    chosen = _only(dataset, dataset.target_type, ["full", *names])
    of = dataset.categories_map
    return [
        (
            os.path.join(dataset.root, dataset.all_categories[category], name),
            category if chosen == "full" else of[category][chosen],
        )
        for category, name in dataset.index
    ]


def _caltech101(dataset: Any) -> _Samples:
    _only(dataset, dataset.target_type, ["category"])
    folder = os.path.join(dataset.root, "101_ObjectCategories")
    return [
        (os.path.join(folder, dataset.categories[target], f"image_{number:04d}.jpg"), target)
        for target, number in zip(dataset.y, dataset.index, strict=True)
    ]


def _caltech256(dataset: Any) -> _Samples:
    folder = os.path.join(dataset.root, "256_ObjectCategories")
    return [
        (
            os.path.join(folder, dataset.categories[target], f"{target + 1:03d}_{number:04d}.jpg"),
            target,
        )
        for target, number in zip(dataset.y, dataset.index, strict=True)
    ]


_FUNCTIONS: dict[str, Callable[[Any], _Samples]] = {
    "CIFAR10": lambda dataset: _rows(dataset.data, dataset.targets),
    "Caltech101": _caltech101,
    "Caltech256": _caltech256,
    "CelebA": _celeba,
    "INaturalist": _inaturalist,
    "MNIST": lambda dataset: _rows(dataset.data, dataset.targets),
    "OxfordIIITPet": _oxford_pet,
    "QMNIST": _qmnist,
    "STL10": _of_planes,
    "SVHN": _of_planes,
    "USPS": lambda dataset: _rows(dataset.data, dataset.targets),
}


class DatasetSnapshot:
    """The part of a data set that a loader has taken. torch reads it again for each sample. A
    loader of featherload reads it once, so a later change is an error.

    ``listed``: how many of the samples the loader takes, from the first on.
    """

    def __init__(self, dataset: Any, files: FileList, listed: int, recipe: Any) -> None:
        self._dataset = dataset
        self._listed = listed
        # Its method may be slow, and is called once.
        self._by_method = any(hasattr(type(leaf), METHOD) for leaf in files.leaves)
        self._leaves = files.leaves
        # A fingerprint: a copy of the samples would take the memory twice.
        self._transforms = self._transforms_of(files)
        as_given = self._by_method or not any(self._transforms)
        before = files if as_given else resolve(dataset, raw_targets=True)
        self._samples = self._fingerprint(before.samples)
        # None if another recipe replaces the transform.
        self._recipe = recipe

    def check(self) -> None:
        if self._by_method:
            now = FileList([], self._leaves)
            is_same = len(self._dataset) == self._samples[0]
        else:
            now = resolve(self._dataset, raw_targets=True)
            try:
                is_same = self._fingerprint(now.samples) == self._samples
                is_same = is_same and self._transforms_of(now) == self._transforms
            except TypeError:
                # A target without a hash was not there before.
                is_same = False
        if not is_same:
            raise _changed("samples")
        if self._recipe is not None and _recipe_or_none(now) != self._recipe:
            raise _changed("transform")

    @staticmethod
    def _transforms_of(files: FileList) -> list[Any]:
        """What changes targets: called once per sample, when the loader is made."""
        return [getattr(leaf, "target_transform", None) for leaf in files.leaves]

    def _fingerprint(self, samples: _Samples) -> tuple[int, int]:
        if self._by_method:
            return len(samples), 0
        listed = ((_named(image), _hashed(target)) for image, target in samples[: self._listed])
        return len(samples), hash(tuple(listed))


def _named(image: Any) -> Any:
    """A path, or the memory and number of an image."""
    if isinstance(image, PixelRow):
        return image.array.ctypes.data, image.row
    return image


def _hashed(target: Any) -> Any:
    if isinstance(target, (int, float, str)):
        # Python hashes -1 and -2 alike.
        return str(target) if target == -1 else target
    plain = target.tolist() if hasattr(target, "tolist") else target
    return tuple(plain) if isinstance(plain, list) else plain


def _changed(what: str) -> ConfigError:
    return _refused(
        f"the {what} of the data set changed after the loader was made, which still uses the "
        "former ones: make a new loader"
    )


def _recipe_or_none(files: FileList) -> Any:
    try:
        return recipe(files)
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


def recipe(files: FileList) -> tuple[Any, int]:
    """The recipe of the data sets' transform, if it makes tensors of one size, and the number of
    channels of these.
    """
    recipes = [_recipe_of(leaf, files) for leaf in files.leaves]
    for leaf, other in zip(files.leaves, recipes, strict=True):
        if other != recipes[0]:
            raise _refused(
                f"the transforms of the {_name(files.leaves[0])} and the {_name(leaf)} of a "
                "ConcatDataset differ, and a loader has one recipe: give both the same transform, "
                "or give recipe"
            )
    return recipes[0]


def _other_transform(dataset: Any) -> str | None:
    """An attribute of a data set of one's own that looks like the transform of images."""
    known = ("transform", "transforms", "target_transform")
    for name, value in vars(dataset).items():
        if name.endswith("transform") and name not in known and callable(value):
            return str(name)
    return None


def _name(dataset: Any) -> str:
    """The name of a data set's class; within torchvision's wrapper, of the wrapped one."""
    wrapped = _joint_transforms.inner(dataset)
    return type(dataset if wrapped is None else wrapped).__name__


def _recipe_of(dataset: Any, files: FileList) -> tuple[Any, int]:
    name = _name(dataset)
    if _joint_transforms.inner(dataset) is not None:
        transform = _joint_transforms.image_transform(dataset)
    else:
        transform = getattr(dataset, "transform", None)
    if transform is None:
        other = _other_transform(dataset)
        if other is not None:
            raise _refused(
                f"the {name} has its transform in {other}, and only an attribute transform is "
                f"read: give recipe=dataset.{other}"
            )
        raise _refused(
            f"the {name} has no transform, so torch cannot make a batch of its images: give it "
            "one, such as a Resize, a crop and ToTensor, or give recipe"
        )
    maker = _crops.CropMaker(1 if files.is_grey else 3)
    recipe = _crops.crops_recipe(transform, maker)
    if recipe is None:
        recipe = _crops.single_recipe(transform, maker.walk())
    if not all(walk.is_tensor for walk in maker.walks):
        raise _refused(
            f"the transform of the {name} returns no tensor, so torch cannot make a batch of "
            "it: put ToTensor() or v2.ToImage() at its end"
        )
    is_wrapped = _joint_transforms.inner(dataset) is not None
    if is_wrapped and not _joint_transforms.has_label_images(dataset):
        recipe = _detection.padded(recipe)
    for part in recipe.get("crops", [recipe]):
        part["ops"] = _of_one_size(part["ops"], files.size, name)
    channels = {walk.channels for walk in maker.walks} if files.is_grey else set()
    if len(channels) > 1:
        raise _refused(
            f"the crops of the {name} have {shown(sorted(channels))} channels: make all of them "
            "grey, or none"
        )
    return recipe, channels.pop() if channels else 3


def _of_one_size(ops: list[Any], size: tuple[int, int] | None, name: str) -> list[Any]:
    """Operations after which all images have one size. ``size``: that of all opened images."""
    sizes = ("resize", "pad_to", "random_resize", "random_shortest_size", "scale_jitter")
    if any(op in sizes or op.endswith("crop") for op in _op_names(ops)):
        return ops
    if size is None:
        raise _refused(
            f"the transform of the {name} keeps images at their own sizes, which cannot form a "
            "batch: give it a Resize((height, width)) or a crop"
        )
    # A crop that changes nothing, after the decode.
    return [ops[0], {"center_crop": {"size": [*size]}}, *ops[1:]]


def _op_names(ops: Any) -> Iterator[str]:
    for op in ops:
        for name, values in op.items():
            yield name
            yield from _op_names(values.get("transforms", ()))


def class_name(of: Any) -> str:
    """The name of a class. torchvision's ImageNet has several for each."""
    return ", ".join(map(str, of)) if isinstance(of, (tuple, list)) else str(of)
