"""The samples of a loader, without their pixels."""

from __future__ import annotations

from pathlib import Path

from ._featherload import Stream


class Dataset:
    """The samples of a loader: their number, files, labels and classes."""

    def __init__(self, stream: Stream, has_labels: bool = True) -> None:
        self._stream = stream
        self._has_labels = has_labels
        self._len = stream.samples()
        self.classes: list[str] = stream.classes()
        """Names of the classes. The position in the list is the label."""

    @property
    def class_to_idx(self) -> dict[str, int]:
        """The number of each class, by its name, as torchvision's data sets have it."""
        return {name: number for number, name in enumerate(self.classes)}

    def __len__(self) -> int:
        return self._len

    def __getitem__(self, id: int) -> tuple[Path, int | list[float] | None]:
        """File and label of a sample, by its number in the index. Reads no image. The label is
        None if a method of a data set gives it with the image.
        """
        if id < 0:
            id += self._len
        if not 0 <= id < self._len:
            raise IndexError(f"sample {id} does not exist: the data set has {self._len} samples")
        path, label, vector = self._stream.sample(id)
        if not self._has_labels:
            return path, None
        return path, label if vector is None else vector
