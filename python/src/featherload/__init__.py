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

from . import cache, recipes, samplers
from ._batch import Batch, Fault, RowStatus
from ._dataset import Dataset
from ._errors import (
    BatchesHeldError,
    ConfigError,
    DatasetError,
    DeviceError,
    Error,
    PlatformError,
    SampleError,
    WorkerError,
)
from ._featherload import Tensor, __version__
from ._loader import Loader
from ._preview import Preview
from ._reports import CacheReport, Doctor, IndexReport, Plan, Report, Rss
from ._tools import doctor, index, plan, rss

__all__ = [
    "Batch",
    "BatchesHeldError",
    "CacheReport",
    "ConfigError",
    "Dataset",
    "DatasetError",
    "DeviceError",
    "Doctor",
    "Error",
    "Fault",
    "IndexReport",
    "Loader",
    "Plan",
    "PlatformError",
    "Preview",
    "Report",
    "RowStatus",
    "Rss",
    "SampleError",
    "Tensor",
    "WorkerError",
    "__version__",
    "cache",
    "doctor",
    "index",
    "plan",
    "recipes",
    "rss",
    "samplers",
]

logging.getLogger("featherload").addHandler(logging.NullHandler())
