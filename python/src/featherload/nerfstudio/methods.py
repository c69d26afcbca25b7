"""The methods that ``ns-train`` finds by the entry points of the package.

They are the methods of the installed nerfstudio, with another data manager. They are made on first
access, because nerfstudio accesses them while it is being imported.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from nerfstudio.plugins.types import MethodSpecification

from .images import ImageDataManagerConfig
from .rays import RayDataManagerConfig

_METHODS: dict[str, tuple[type, str]] = {
    "nerfacto": (RayDataManagerConfig, "nerfacto with rays by featherload."),
    "splatfacto": (ImageDataManagerConfig, "splatfacto with images by featherload."),
}
_made: dict[str, MethodSpecification] = {}


def __getattr__(name: str) -> Any:
    if name not in _METHODS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # The first import of this module accesses all methods, so it calls this function again.
    from nerfstudio.configs.method_configs import method_configs

    if name not in _made:
        _made[name] = _method(name, method_configs[name], *_METHODS[name])
    return _made[name]


def _method(name: str, method: Any, manager: Any, description: str) -> MethodSpecification:
    config = deepcopy(method)
    config.method_name = f"{name}-featherload"
    theirs = config.pipeline.datamanager
    kept = {
        key: getattr(theirs, key)
        for key in (
            "dataparser",
            "train_num_rays_per_batch",
            "eval_num_rays_per_batch",
            "cache_images_type",
        )
        if hasattr(theirs, key) and key in manager.__dataclass_fields__
    }
    config.pipeline.datamanager = manager(**kept)
    return MethodSpecification(config=config, description=description)
