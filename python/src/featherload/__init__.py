"""Batches of images for vision and NeRF training, at the speed of the decoder and with the
memory of one process.

::

    import featherload

    loader = featherload.Loader("data/train", batch_size=256, framework="torch")
    for images, labels in loader:
        ...
"""

from __future__ import annotations

import logging

from . import recipes, samplers
from ._batch import Batch, Fault, RowStatus
from ._errors import (
    BatchesHeldError,
    ConfigError,
    DatasetError,
    DeviceError,
    Error,
    SampleError,
    SystemError,
    WorkerError,
)
from ._featherload import Tensor, __version__
from ._loader import Dataset, Loader

__all__ = [
    "Batch",
    "BatchesHeldError",
    "ConfigError",
    "Dataset",
    "DatasetError",
    "DeviceError",
    "Error",
    "Fault",
    "Loader",
    "RowStatus",
    "SampleError",
    "SystemError",
    "Tensor",
    "WorkerError",
    "__version__",
    "recipes",
    "samplers",
]

logging.getLogger("featherload").addHandler(logging.NullHandler())
