"""Batches as dicts, which the models and scripts of Hugging Face take.

Never in here: the loaders that make the batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from ._batch import Batch
from ._errors import ConfigError
from ._values import shown


class NamedBatches(Iterator[dict[str, Any]]):
    """The batches of an epoch as dicts. Without labels, or with one name, they have no entry for
    labels. Masks are the labels, if images have masks. Targets of objects that are a dict, as with
    ``targets="detr"``, are entries of their own names. So are columns, and ``captions``. Without
    images they have no entry for images.

    ``failed_label``: the label of samples that failed, in place of -1.
    """

    def __init__(
        self, epoch: Iterator[Batch], names: tuple[str, ...], failed_label: int | None = None
    ) -> None:
        self._epoch = epoch
        self._names = names
        self._failed_label = failed_label

    def __next__(self) -> dict[str, Any]:
        batch = next(self._epoch)
        images, labels = batch
        # Failed rows have no objects.
        is_label = labels is not None and batch._objects is None
        if self._failed_label is not None and is_label and batch.faults:
            labels = _masked(batch, labels, self._failed_label)
        if batch._masks is not None:
            if isinstance(labels, Mapping):
                raise ConfigError(
                    "these batches have masks and objects, and the Trainer has one name for both, "
                    "`labels`: leave masks or objects out",
                    option="masks",
                )
            labels = batch._masks
        named: dict[str, Any] = {}
        of_images = self._names[0]
        if batch._has_patches:
            inputs = batch.patches.inputs()
            [images_of_model] = inputs.keys() & {"pixel_values", "flattened_patches"}
            if of_images == "pixel_values":
                of_images = images_of_model
            named = {name: value for name, value in inputs.items() if name != images_of_model}
            self._check_names(named.keys() | {of_images}, labels)
        if isinstance(labels, Mapping):
            named |= {of_images: images, **labels}
        else:
            if batch._raw is not None and not batch._raw.reads_images:
                images = None
            pairs = zip((of_images, *self._names[1:]), (images, labels), strict=False)
            named |= {name: value for name, value in pairs if value is not None}
        further = _further(batch)
        taken = (named.keys() | {of_images}) & further.keys()
        if batch._has_patches and taken:
            raise ConfigError(
                f"a column and an input of the model have the same name, {sorted(taken)[0]!r}: "
                "leave the column out of columns",
                option="columns",
            )
        named |= further
        if batch._has_patches and of_images in named:
            # Patches come last: trainers read the number of rows from the first tensor.
            named[of_images] = named.pop(of_images)
        return named

    def _check_names(self, of_model: AbstractSet[str], labels: Any) -> None:
        """Refuses a name of labels that is an input of the model."""
        of_labels = labels.keys() if isinstance(labels, Mapping) else set(self._names[1:])
        if taken := of_model & of_labels:
            raise ConfigError(
                f"labels and an input of the model have the same name, {sorted(taken)[0]!r}: give "
                "labels another name in names",
                option="names",
            )


def _further(batch: Batch) -> dict[str, Any]:
    """Columns and captions of a batch."""
    values = {name: batch[name] for name in batch.columns}
    if batch._captions is None:
        return values
    if "captions" in values:
        raise ConfigError(
            "batches have a column 'captions' and captions of a rule, and one name for both: leave "
            "the column out of columns",
            option="columns",
        )
    return values | {"captions": batch.captions}


def _masked(batch: Batch, labels: Any, value: int) -> Any:
    """A copy of whole labels, with ``value`` for each failed sample."""
    if labels.is_floating_point():
        return labels
    labels = labels.clone()
    good = set(batch.good_rows())
    failed = [row for row in range(len(labels)) if row not in good]
    labels[failed] = value
    return labels


def checked_names(names: Any) -> tuple[str, str]:
    """Two different names, of images and of labels."""
    try:
        of_images, of_labels = names
    except (TypeError, ValueError):
        of_images = of_labels = None
    if not isinstance(of_images, str) or not isinstance(of_labels, str) or of_images == of_labels:
        raise ConfigError(
            f"names {shown(names)} are not two names: give those of images and labels, such as "
            "('pixel_values', 'labels')",
            option="names",
        )
    return of_images, of_labels
