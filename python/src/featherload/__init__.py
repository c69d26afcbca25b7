"""Batches of images for vision and NeRF training, at the speed of the decoder and with the
memory of one process.

::

    import featherload

    loader = featherload.Loader("data/train", batch_size=256, framework="torch")
    for images, labels in loader:
        ...

    rays = featherload.Rays("data/fox", rays=4096, framework="torch")
    for batch in rays:
        ...

    views = featherload.Views("data/fox", framework="torch")
    for view in views:
        ...
"""

from __future__ import annotations

import logging

from . import cache, kohya, masks, recipes, samplers
from ._batch import Batch, CropGeometry, Fault, RowStatus
from ._captions import Captions
from ._columns import Ragged
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
from ._items import Items
from ._loader import Loader
from ._patches import Patches
from ._preview import Preview
from ._ray_batch import RayBatch
from ._rays import Rays
from ._reports import CacheReport, Doctor, IndexReport, Plan, Report, Rss, ScenePlan, SceneReport
from ._scene import Camera, Frame, Points, RollingShutter, Scene
from ._tools import doctor, index, plan, rss
from ._view import View
from ._views import Views

__all__ = [
    "Batch",
    "BatchesHeldError",
    "CacheReport",
    "Camera",
    "Captions",
    "ConfigError",
    "CropGeometry",
    "Dataset",
    "DatasetError",
    "DeviceError",
    "Doctor",
    "Error",
    "Fault",
    "Frame",
    "IndexReport",
    "Items",
    "Loader",
    "Patches",
    "Plan",
    "PlatformError",
    "Points",
    "Preview",
    "Ragged",
    "RayBatch",
    "Rays",
    "Report",
    "RollingShutter",
    "RowStatus",
    "Rss",
    "SampleError",
    "Scene",
    "ScenePlan",
    "SceneReport",
    "Tensor",
    "View",
    "Views",
    "WorkerError",
    "__version__",
    "cache",
    "doctor",
    "index",
    "kohya",
    "masks",
    "plan",
    "recipes",
    "rss",
    "samplers",
]

logging.getLogger("featherload").addHandler(logging.NullHandler())
