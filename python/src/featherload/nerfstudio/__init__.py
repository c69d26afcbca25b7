"""Data managers for nerfstudio, and the methods ``nerfacto-featherload`` and
``splatfacto-featherload`` of ``ns-train``.

Needs nerfstudio (1.1.5 or later), which the package does not install. Importing ``featherload``
does not import it.

- ``rays``: ``RayDataManager``, which replaces nerfstudio's ``VanillaDataManager``;
- ``images``: ``ImageDataManager``, which replaces its ``FullImageDatamanager``;
- ``methods``: the methods that ``ns-train`` finds;
- ``_scene``: converts the outputs of nerfstudio's dataparser to a scene of featherload.

::

    from featherload.nerfstudio import RayDataManagerConfig

    config.pipeline.datamanager = RayDataManagerConfig(dataparser=NerfstudioDataParserConfig())
"""

from __future__ import annotations

from .images import ImageDataManager, ImageDataManagerConfig
from .rays import RayDataManager, RayDataManagerConfig

__all__ = [
    "ImageDataManager",
    "ImageDataManagerConfig",
    "RayDataManager",
    "RayDataManagerConfig",
]
