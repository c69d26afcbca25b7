"""The rays of a step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ._batch import Framework
from ._featherload import RawRays
from ._scene_arrays import SceneArrays


class RayBatch(SceneArrays, Mapping[str, Any]):
    """The rays of one step: ``batch.origins``, or ``batch["origins"]``.

    Arrays of N rays, in the ``framework`` of ``Rays``:

    ============================  =========  =======
    ``indices``                   int64      (N, 3)
    ``origins``, ``directions``   float32    (N, 3)
    ``colors``                    float32    (N, 3)
    ``directions_norms``          float32    (N,)
    ``pixel_areas``               float32    (N,)
    ``depths``                    float32    (N, 1)
    ``times``                     float32    (N,)
    ``valid``                     bool       (N,)
    ============================  =========  =======

    Nothing is copied: arrays are the memory that the workers wrote. They do not change while the
    batch, an array or a view of one exists.
    """

    _booleans = frozenset({"valid"})
    _by_numpy = frozenset({"indices", "valid"})

    def __init__(self, raw: RawRays, framework: Framework) -> None:
        super().__init__(raw, framework)
        self._names = raw.names()

    def __getitem__(self, name: str) -> Any:
        array = self._array(name)
        if array is None:
            raise KeyError(name)
        return array

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        """The number of arrays. ``batch.rays`` is the number of rays."""
        return len(self._names)

    # Mappings compare their values, but arrays have no single result.
    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    @property
    def rays(self) -> int:
        """The number of rays."""
        return len(self._raw)

    @property
    def indices(self) -> Any:
        """Image, row and column of each ray's pixel: int64, (N, 3). Images are numbered as in
        ``Rays.images`` and ``Rays.frames``.
        """
        return self["indices"]

    @property
    def origins(self) -> Any:
        """Origin of each ray, in the scene's units: float32, (N, 3)."""
        return self["origins"]

    @property
    def directions(self) -> Any:
        """Direction of each ray, with length 1: float32, (N, 3)."""
        return self["directions"]

    @property
    def colors(self) -> Any:
        """Red, green and blue of each ray's pixel, 0 to 1: float32, (N, 3), or with
        ``alpha`` (N, 4).
        """
        return self["colors"]

    @property
    def directions_norms(self) -> Any:
        """Length of the direction before it was scaled to 1: float32, (N,). A depth along the
        camera's axis times this length is a distance along the ray.
        """
        return self["directions_norms"]

    @property
    def pixel_areas(self) -> Any:
        """Area of the pixel at distance 1: float32, (N,)."""
        return self["pixel_areas"]

    @property
    def depths(self) -> Any:
        """Depth of each ray's pixel along the camera's axis, in the scene's units, or 0 if it is
        unknown: float32, (N, 1). None in a scene without depths.
        """
        return self["depths"] if "depths" in self._names else None

    @property
    def times(self) -> Any:
        """Time of the image, 0 to 1: float32, (N,); None in a scene without times."""
        return self["times"] if "times" in self._names else None

    @property
    def valid(self) -> Any:
        """Whether the lens defines the ray of this pixel: bool, (N,). Otherwise origin and
        direction are zero: leave such rays out of the loss.
        """
        return self["valid"]

    def __reduce__(self) -> Any:
        # Only the arrays are sent to another process.
        return (dict, (dict(self),))

    def __repr__(self) -> str:
        return f"<featherload.RayBatch of step {self.step}: {self.rays:,} rays, {self._framework}>"
