"""A batch: two arrays, and the status, ids and paths of their rows."""

from __future__ import annotations

import importlib
import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from . import _columns, _masks
from ._captions import BatchCaptions
from ._columns import HeldColumns
from ._errors import ConfigError
from ._featherload import RawBatch, Tensor
from ._objects import Objects, of_batch
from ._patches import Patches
from ._patches import of_batch as patches_of_batch
from ._target_plan import TargetView
from ._values import handle

Framework = Literal["numpy", "torch", "jax"]


class RowStatus(IntEnum):
    """The status of a row of a batch."""

    OK = 0
    """A sample."""
    REPEATED = 1
    """A sample that another rank or an earlier row also has. It fills this rank up to the number
    of batches of the other ranks. Leave it out of evaluations."""
    PADDING = 2
    """No sample: the row fills up the last batch. Pixels are 0, the label is -1 or zeros."""
    FAILED = 3
    """The sample failed. Pixels are 0, the label is -1 or zeros."""
    SUBSTITUTED = 4
    """The sample failed. Id, pixels and label belong to another sample."""


class Fault(NamedTuple):
    """A failed sample, and the reason."""

    row: int
    id: int
    path: Path
    kind: str
    reason: str
    substitute: int | None
    """The sample that replaced it in the row. None: the row is masked."""


@dataclass(frozen=True, eq=False)
class CropGeometry:
    """Where one crop of each row lies in its image.

    Boxes refer to the upright image, or to the sample's box if it has one. Masked rows have zeros.
    """

    boxes: npt.NDArray[np.float32]
    """N x 4: left, top, right and bottom in pixels of the image. Beyond the image if the crop was
    padded. NaN if an operation moved pixels in another way than crops, resizes, flips, pads and
    quarter turns."""
    flips: npt.NDArray[np.bool_]
    """N: the crop shows its box mirrored left to right."""
    vertical_flips: npt.NDArray[np.bool_]
    """N: the crop shows its box upside down."""
    transposed: npt.NDArray[np.bool_]
    """N: rows of the box are columns of the crop. The flips are those of the box."""
    sizes: npt.NDArray[np.uint32]
    """N x 2: height and width of the image."""

    @classmethod
    def _of(cls, boxes: bytes, sizes: bytes, turns: bytes) -> CropGeometry:
        turned = np.frombuffer(turns, np.bool_).reshape(-1, 3)
        return cls(
            boxes=np.frombuffer(boxes, np.float32).reshape(-1, 4),
            flips=turned[:, 0],
            vertical_flips=turned[:, 1],
            transposed=turned[:, 2],
            sizes=np.frombuffer(sizes, np.uint32).reshape(-1, 2),
        )


class Batch(tuple[Any, Any]):
    """``images, labels = batch``.

    It is a tuple of two, so tools that walk nested batches (accelerate, Lightning) accept it.

    ``images``: array N x C x H x W (``layout="nchw"``) or N x H x W x C, of ``dtype``. If images
    keep their own sizes (``recipe="full"``), it is a list of N arrays. If a recipe makes several
    crops of each image, it is a list with one such array for each crop. If it makes ``patches``
    or ``tiles``, it is the array of all of them.
    ``labels``: int64 array N, float32 array N x K (mixed batches, vectors), or None for a data
    set without labels. Masked rows have label -1, or zeros.

    No pixel is copied: ``images`` is the memory that the workers wrote. It does not change while
    ``images``, the batch, or any view of them exists.
    """

    # Keeps the names of the samples alive, but no process.
    _raw: RawBatch | None
    # Columns that Python holds. None if the library reads them.
    _columns: HeldColumns | None
    _masks: Any
    _objects: Objects | None
    _rasters: dict[str, Any]
    _captions: BatchCaptions | None
    # Makes images and targets, which take the place of these labels.
    _view: TargetView | None
    _labels: Any
    # Made when they are read first.
    _patches: Patches | None
    # Rows of images for each sample: the images of all samples, then those of all again, ...
    _splits: int
    # Hash of the recipe and seed of its run. None for a batch that no loader made.
    _crops: tuple[str, int] | None

    def __new__(
        cls,
        pair: Iterable[Any],
        raw: RawBatch | None = None,
        columns: HeldColumns | None = None,
        masks: Any = None,
        objects: Objects | None = None,
        splits: int = 1,
        view: TargetView | None = None,
        labels: Any = None,
        rasters: dict[str, Any] | None = None,
        captions: BatchCaptions | None = None,
    ) -> Batch:
        batch = super().__new__(cls, tuple(pair))
        batch._raw, batch._columns, batch._masks = raw, columns, masks
        batch._objects, batch._splits = objects, splits
        batch._view, batch._labels = view, labels
        batch._rasters, batch._captions = rasters or {}, captions
        batch._patches, batch._crops = None, None
        return batch

    def __getitem__(self, key: Any) -> Any:
        """``batch["caption"]``: a column. ``batch[0]``, ``batch[1]``: images and labels."""
        if not isinstance(key, str):
            return super().__getitem__(key)
        if key.rstrip("s") in ("image", "label") and key not in self.columns:
            raise ConfigError(
                f"no column {key!r}: images and labels are batch.images and batch.labels",
                option="columns",
            )
        return self.column(key)

    @property
    def columns(self) -> list[str]:
        """Names of the columns that the loader was made with (``columns=[...]``)."""
        raw = self._of_loader
        return raw.column_names() if self._columns is None else self._columns.names()

    def column(self, name: str) -> Any:
        """The values of a column, one for each row, read now from where they lie.

        Numbers are an array, N or N x K, on the device of ``images``. Texts are a list of ``str``,
        bytes a list of ``bytes``, lists of texts a list of lists. Lists of numbers are ``Ragged``:
        ``values`` and ``offsets``. A text or bytes without a value are None, a fraction NaN.

        Repeated and substituted rows have the values of the sample in the row, failed rows those
        of their sample. Padding has zeros and empty values.

        Raises ``ConfigError`` for a name that is not in ``columns``, and for a missing whole
        number, if the column has a type (``docs/columns.md``).
        """
        raw = self._of_loader
        held = self._columns
        values = _columns.of_raw(raw, name) if held is None else held.read(name, raw)
        return _columns.beside(values, self[0])

    @property
    def captions(self) -> Any:
        """One caption for each row, a list of ``str``, where the loader has ``captions``. Masked
        rows have ``""``. With ``map``, what it returned. Made when it is read first.

        Raises ``DatasetError`` or ``ConfigError`` for a sample without a text, unless the rule has
        ``missing="empty"``.
        """
        if self._captions is None:
            raise AttributeError(
                "this batch has no captions: give the loader captions, such as captions='caption'"
            )
        return self._captions.read(self._of_loader)

    def __reduce__(self) -> tuple[type[tuple[Any, ...]], tuple[tuple[Any, Any]]]:
        # Only images and labels are sent to another process.
        return (tuple, ((self[0], self[1]),))

    @property
    def images(self) -> Any:
        """The images of the rows: N x C x H x W, or N x H x W x C with ``layout="nhwc"``, in the
        type and the framework of the loader. A list of such arrays if the recipe makes several
        crops. It is the memory that the workers wrote, so it is valid while the batch is held.

        Raises ``AttributeError`` if the loader was made with ``images=False``.
        """
        if self._raw is not None and not self._raw.reads_images:
            raise AttributeError(
                "this batch has no images: make the loader without images=False, or read the "
                "columns of the batch"
            )
        return self[0]

    @property
    def labels(self) -> Any:
        """The labels of the rows: int64 of N, float32 of N x K (mixed batches, vectors), or None
        for a data set without labels. Masked rows have -1, or zeros.
        """
        return self[1]

    @property
    def masks(self) -> Any:
        """The masks of the rows, N x H x W, where the loader has ``masks``: the memory that the
        workers wrote, as ``images``. Masked rows have the number of the outside of images.
        """
        if self._masks is None:
            raise AttributeError(
                "this batch has no masks: give the loader masks, such as "
                "masks='../masks/{stem}.png'"
            )
        return self._masks

    @property
    def rasters(self) -> dict[str, Any]:
        """The rasters of the rows by name, where the loader has ``rasters``: the memory that the
        workers wrote, as ``images``. Depths and alpha are N x 1 x H x W, flows N x 2 x H x W (3
        with ``valid``), images as ``images``, masks N x H x W. Masked rows have ``fill``, and
        images zeros.
        """
        if not self._rasters:
            raise AttributeError(
                "this batch has no rasters: give the loader rasters, such as "
                "rasters={'depth': '../depth/{stem}.png'}"
            )
        return self._rasters

    @property
    def objects(self) -> Objects:
        """The objects of all rows as flat arrays, where the loader has ``objects``."""
        if self._objects is None:
            raise AttributeError(
                "this batch has no objects: give the loader objects, such as "
                "objects='annotations/instances_train.json'"
            )
        return self._objects

    @property
    def targets(self) -> Any:
        """The objects in the form that ``targets`` of the loader names. They are in the place of
        the labels: ``images, targets = batch``.
        """
        return self.objects if self._view is None else self[1]

    @property
    def _of_loader(self) -> RawBatch:
        if self._raw is None:
            raise AttributeError(
                "this batch was made from another batch (moved to a device, pinned): read ids, "
                "status and paths from the batch of the loader"
            )
        return self._raw

    @property
    def epoch(self) -> int:
        """Epoch that the batch belongs to, from 0."""
        return self._of_loader.epoch

    @property
    def number(self) -> int:
        """Number of the batch within its epoch on this rank, from 0."""
        return self._of_loader.number

    @property
    def device(self) -> str:
        """Where the loader put the pixels: ``"cpu"`` or ``"cuda:N"``."""
        return self._of_loader.device

    @property
    def layout(self) -> str:
        """Order of the axes: ``"nchw"`` or ``"nhwc"``."""
        return self._of_loader.layout

    @property
    def ids(self) -> npt.NDArray[np.uint64]:
        """The number of each sample in the index; 0 for padding."""
        return np.asarray(self._of_loader.ids())

    @property
    def status(self) -> list[RowStatus]:
        """The status of each row."""
        return [RowStatus(s) for s in self._of_loader.status()]

    @property
    def repeated(self) -> npt.NDArray[np.bool_]:
        """Whether each row repeats a sample to fill up this rank. Leave such rows out of
        evaluations.
        """
        return np.array(self._of_loader.repeated(), dtype=np.bool_)

    @property
    def geometry(self) -> list[CropGeometry]:
        """Where each crop lies in its image: one entry for each array of ``images``."""
        found = self._of_loader.geometry()
        if found is None:
            raise AttributeError(
                "only batches of a recipe with several crops have a geometry: give recipe a list"
            )
        return [CropGeometry._of(*crop) for crop in found]

    @property
    def patches(self) -> Patches:
        """The patches of the rows with their grids. The recipe has ``patches`` or ``tiles``."""
        if self._patches is None:
            found = self._of_loader.patches()
            if found is None:
                raise AttributeError(
                    "this batch has no patches: give the loader a recipe with patches, such as "
                    "recipe={'ops': [{'patches': {'style': 'qwen'}}]}"
                )
            self._patches = patches_of_batch(found, self[0])
        return self._patches

    @property
    def _has_patches(self) -> bool:
        return self._raw is not None and self._raw.patches() is not None

    @property
    def original_size(self) -> npt.NDArray[np.int64]:
        """N x 2: height and width of each row's image, before it was resized to its bucket.

        With ``samplers.Buckets`` and a recipe with ``cover_crop``. Masked rows have zeros.
        """
        return self._size_conditions[:, 0:2]

    @property
    def crop(self) -> npt.NDArray[np.int64]:
        """N x 2: top and left edge of each row in its resized image.

        With ``samplers.Buckets`` and a recipe with ``cover_crop``. Masked rows have zeros.
        """
        return self._size_conditions[:, 2:4]

    @property
    def target_size(self) -> npt.NDArray[np.int64]:
        """N x 2: height and width of each row.

        With ``samplers.Buckets`` and a recipe with ``cover_crop``. Masked rows have zeros.
        """
        return self._size_conditions[:, 4:6]

    @property
    def _size_conditions(self) -> npt.NDArray[np.int64]:
        found = self._of_loader.size_conditions()
        if found is None:
            raise AttributeError(
                "only batches of buckets have a crop and sizes: give the loader "
                "sampler=samplers.Buckets() and a recipe with cover_crop"
            )
        return np.array(found, dtype=np.int64).reshape(-1, 6)

    def good_rows(self) -> list[int]:
        """The rows with pixels of a sample: all but padding and failed ones. They are rows of
        ``images``, except with ``patches`` and ``tiles``.

        With timm's splits these are rows of all splits.
        """
        rows = self._of_loader.good_rows()
        if self._splits == 1:
            return rows
        samples = len(self._of_loader.repeated())
        return [split * samples + row for split in range(self._splits) for row in rows]

    @property
    def faults(self) -> list[Fault]:
        """The failed samples, with the reasons."""
        return [Fault(**fault) for fault in self._of_loader.faults()]

    def paths(self) -> list[Path | None]:
        """The file of each row's sample; None for padding. Also available after the loader is
        closed or deleted.
        """
        return self._of_loader.paths()

    def record_stream(self, stream: Any) -> None:
        """Registers a further ``stream`` that reads the pixels, in addition to the stream that
        was current when the batch was taken. When the last reference to the pixels is dropped,
        their memory is reused only after the work that ``stream`` has at that time. ``stream``: a
        ``torch.cuda.Stream``, or a handle; it must exist until then. Without a device it does
        nothing.
        """
        raw = self._of_loader
        if not raw.has_pixels:
            # A copy belongs to the framework, which tracks streams itself.
            if hasattr(self[0], "record_stream") and self[0].is_cuda:
                self[0].record_stream(stream)
            return
        raw.record_stream(handle(stream))

    def to(self, *args: Any, **options: Any) -> Batch:
        """Images and labels, moved or cast like ``torch.Tensor.to``. Ids and status are kept.
        Moved images do not use the loader's memory. A dtype applies only to the images.
        """
        import torch

        images, targets = self
        labels = targets if self._view is None else self._labels
        first = images[0] if isinstance(images, list) and images else images
        if not isinstance(first, torch.Tensor):
            raise TypeError(
                f"Batch.to needs torch tensors, but images are {type(first).__name__}: "
                "give Loader framework='torch'"
            )

        def elsewhere(tensor: Any) -> Any:
            if isinstance(tensor, list):
                moved = [one.to(*args, **options) for one in tensor]
                return tensor if all(map(operator.is_, moved, tensor)) else moved
            return tensor.to(*args, **options)

        there = elsewhere(images)
        where = there[0] if isinstance(there, list) else there
        at = labels
        waits = {k: v for k, v in options.items() if k in ("non_blocking", "copy")}
        if labels is not None and labels.device != where.device:
            at = labels.to(where.device, **waits)
        waits = {k: v for k, v in options.items() if k == "non_blocking"}

        def beside(tensor: Any) -> Any:
            if tensor is None or (tensor.device == where.device and there is images):
                return tensor
            # A dtype is that of the images. Copies do not use the loader's memory.
            return tensor.to(where.device, copy=True, **waits)

        masks = beside(self._masks)
        rasters = {name: beside(raster) for name, raster in self._rasters.items()}
        objects = self._objects
        if objects is not None:
            # Masks lie in the loader's memory, as the images that were moved.
            own_masks = objects.masks is not None and there is not images
            if own_masks or objects.boxes.device != where.device:
                wait = not options.get("non_blocking")
                objects = objects.to(where.device, not wait, own_masks)
        are_same = at is labels and masks is self._masks and objects is self._objects
        are_same = are_same and all(rasters[name] is old for name, old in self._rasters.items())
        if there is images and are_same:
            return self
        raw = self._raw
        if raw is not None and there is not images:
            raw = raw.without_pixels()
        if self._view is None:
            targets = at
        elif not are_same:
            targets = self._view(there, at, masks, objects)[1]
        parts = (masks, objects, self._splits, self._view, at, rasters, self._captions)
        moved = Batch((there, targets), raw, self._columns, *parts)
        moved._crops = self._crops
        return moved

    def numpy(self) -> tuple[Any, Any]:
        """Images and labels as NumPy arrays: views, or copies if they are on a device."""
        raw = self._of_loader
        if raw.has_pixels and raw.device == "cpu":
            return self._with_targets(as_numpy(raw), "numpy")
        images = as_torch(raw)[0] if raw.has_pixels else self[0]
        labels = as_numpy(raw, pixels=False)[1]
        host = [_host(row) for row in images] if isinstance(images, list) else _host(images)
        return self._with_targets((host, labels), "numpy")

    def torch(self) -> tuple[Any, Any]:
        """Images and labels as torch tensors, which share the batch's memory."""
        return self._as("torch", as_torch)

    def jax(self) -> tuple[Any, Any]:
        """Images and labels as JAX arrays, which share the batch's memory if JAX allows it.
        Without JAX's ``jax_enable_x64``, labels are int32.
        """
        return self._as("jax", as_jax)

    def _as(
        self, module: Framework, take: Callable[[RawBatch], tuple[Any, Any]]
    ) -> tuple[Any, Any]:
        raw = self._of_loader
        if raw.has_pixels:
            return self._with_targets(take(raw), module)
        first = self[0][0] if isinstance(self[0], list) else self[0]
        if type(first).__module__.split(".")[0].removesuffix("lib") == module:
            return self[0], self[1]
        raise RuntimeError(
            "the pixels of this batch were copied or moved elsewhere: take them from batch.images"
        )

    def _with_targets(self, pair: tuple[Any, Any], framework: Framework) -> tuple[Any, Any]:
        """The pair with targets in place of the labels, if the loader has them."""
        if self._view is None:
            return pair
        raw = self._of_loader
        masks = masks_of(framework, raw) if raw.has_pixels else self._masks
        if framework == "numpy" and masks is not None:
            masks = _host(masks)
        return self._view(*pair, masks, of_batch(raw, framework))

    def __repr__(self) -> str:
        raw = self._raw
        if raw is None:
            return tuple.__repr__(self)
        images = self[0]
        first = images[0] if isinstance(images, list) and images else images
        if not isinstance(images, list):
            shape = " x ".join(map(str, getattr(images, "shape", [type(images).__name__])))
        elif len(getattr(first, "shape", ())) > 3:
            shape = f"{len(images)} crops of {len(raw)}"
        else:
            shape = "rows of own sizes"
        device = raw.device if raw.has_pixels else getattr(first, "device", raw.device)
        return f"<featherload.Batch {raw.number} of epoch {raw.epoch}: {shape}, {device}>"


def _host(array: Any) -> Any:
    """An array of a framework as NumPy's."""
    return array.cpu().numpy() if hasattr(array, "cpu") else np.asarray(array)


def _of_each(raw: RawBatch, array: Callable[[Tensor], Any]) -> Any:
    """The array of all images, or a list: of the crops, or of rows with sizes of their own."""
    whole = raw.images()
    if whole is not None:
        return _channels(raw, array(whole))
    crops = raw.crops()
    return _channels(raw, [array(part) for part in (raw.rows() if crops is None else crops)])


def _channels(raw: RawBatch, images: Any) -> Any:
    """The channels that count: of a grey image one of three equal ones, as a view."""
    if not raw.has_one_channel:
        return images
    if isinstance(images, list):
        return [_channels(raw, row) for row in images]
    return images[..., :1] if raw.layout == "nhwc" else images[..., :1, :, :]


def as_numpy(raw: RawBatch, pixels: bool = True) -> tuple[Any, Any]:
    def array(tensor: Tensor) -> Any:
        if tensor.dtype == "bfloat16":
            # NumPy has no such type. ml_dtypes has it, which JAX installs.
            ml_dtypes = importlib.import_module("ml_dtypes")
            return np.asarray(tensor.bits()).view(ml_dtypes.bfloat16)
        return np.asarray(tensor)

    labels = raw.labels()
    images: Any = None
    if pixels:
        images = _of_each(raw, array) if raw.reads_images else np.empty((len(raw), 0), np.float32)
    return images, None if labels is None else np.asarray(labels)


def as_torch(raw: RawBatch) -> tuple[Any, Any]:
    from torch.utils.dlpack import from_dlpack

    if raw.reads_images:
        images = _of_each(raw, from_dlpack)
    else:
        images = importlib.import_module("torch").empty(len(raw), 0)
    found = raw.labels()
    if found is None:
        return images, None
    labels = from_dlpack(found)
    if raw.device != "cpu":
        labels = labels.to(raw.device, non_blocking=True)
    return images, labels


def as_jax(raw: RawBatch) -> tuple[Any, Any]:
    import jax
    import jax.numpy as jnp

    images = _of_each(raw, jax.dlpack.from_dlpack) if raw.reads_images else jnp.empty((len(raw), 0))
    found = raw.labels()
    return images, None if found is None else jnp.asarray(np.asarray(found))


def masks_of(framework: Framework, raw: RawBatch) -> Any:
    """The masks of a batch as an array of the framework; None without masks."""
    masks = raw.masks()
    return None if masks is None else _masks.as_array(framework, masks)


TAKEN = {"numpy": as_numpy, "torch": as_torch, "jax": as_jax}
"""Converts a batch to the arrays of each framework."""
