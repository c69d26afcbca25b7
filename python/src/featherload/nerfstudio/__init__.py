"""Data managers for nerfstudio, and the methods ``nerfacto-featherload`` and
``splatfacto-featherload`` of ``ns-train``.

Needs nerfstudio (1.1.5 or later), which the package does not install. Importing ``featherload``
does not import it.

- ``rays``: ``RayDataManager``, in the place of nerfstudio's ``VanillaDataManager``;
- ``images``: ``ImageDataManager``, in the place of its ``FullImageDatamanager``;
- ``methods``: what ``ns-train`` finds;
- ``_scene``: what nerfstudio's dataparser found, as a scene of featherload.

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
