"""The patches or tiles of a batch: grids of the images, and the inputs of a model."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from . import _columns

PatchStyle = Literal["qwen", "siglip2", "pix2struct", "internvl", "llava_next"]
TILE_STYLES = frozenset({"internvl", "llava_next"})
# Rows have `max_num_patches`, of which those after the image are zeros.
PADDED_STYLES = frozenset({"siglip2", "pix2struct"})


@dataclass(frozen=True, eq=False)
class Patches:
    """The patches of a batch, where the recipe has ``patches`` or ``tiles``. A tile is a patch.

    Arrays are NumPy's or torch's, on the device of ``images``. A failed row has the grid of its
    sample, and zeros as patches. The grid is 0 x 0 for padding, and for an image whose size is
    unknown, over a limit or refused by the style.
    """

    style: PatchStyle
    patch_size: int
    """Height and width of a patch in pixels."""
    merge_size: int
    """Patches along each side of a block. 1 for tiles."""
    values: Any
    """``images`` of the batch. ``qwen``: patches of all rows x values of a patch. ``siglip2`` and
    ``pix2struct``: N x ``max_num_patches`` x values of a patch. Tiles: tiles of all rows x 3 x
    ``patch_size`` x ``patch_size``."""
    _grid: npt.NDArray[np.int64]
    _offsets: npt.NDArray[np.int64]
    _image_sizes: npt.NDArray[np.int64]

    @cached_property
    def grid(self) -> Any:
        """N x 2, int64: rows and columns of the patches of each image. The overview of tiles is not
        among them."""
        return _columns.beside(self._grid, self.values)

    @cached_property
    def counts(self) -> Any:
        """N, int64: patches of each image, with the overview of tiles."""
        return _columns.beside(self._counts, self.values)

    @cached_property
    def offsets(self) -> Any:
        """N + 1, int64: the first patch of each row among the patches of all rows, then their
        number. With ``siglip2`` and ``pix2struct`` rows have ``max_num_patches`` each."""
        return _columns.beside(self._offsets, self.values)

    @property
    def sizes(self) -> Any:
        """N x 2, int64: height and width of each resized image in pixels. ``llava_next``: with its
        border."""
        return self.grid * self.patch_size

    @cached_property
    def image_sizes(self) -> Any:
        """N x 2, int64: height and width of each upright image before the resize. Zeros where the
        grid is 0 x 0."""
        return _columns.beside(self._image_sizes, self.values)

    @property
    def tokens(self) -> Any:
        """N, int64: image tokens of each row in the text of the model, which merges each block to
        one. Not of tiles."""
        if self.style in TILE_STYLES:
            raise AttributeError(
                f"with style {self.style} the number of tokens depends on the model: take "
                "patches.counts and patches.image_sizes"
            )
        return self.counts // self.merge_size**2

    @cached_property
    def mask(self) -> Any:
        """N x ``max_num_patches``, int32: 1 for patches of the image, 0 after them. With
        ``siglip2`` and ``pix2struct``."""
        if self.style not in PADDED_STYLES:
            raise AttributeError(
                "only rows of styles siglip2 and pix2struct have patches after those of the image"
            )
        return _columns.beside(self._shown.astype(np.int32), self.values)

    def inputs(self) -> dict[str, Any]:
        """The arguments of the model, named as by the processors of transformers.

        Only ``siglip2`` and ``pix2struct`` have entries for rows with a grid of 0 x 0: no patch
        that the mask shows, and a shape of 1 x 1.
        """
        if self.style == "pix2struct":
            mask = self._shown.astype(np.float32)
            return {
                "flattened_patches": self.values,
                "attention_mask": _columns.beside(mask, self.values),
            }
        if self.style == "internvl":
            return {"pixel_values": self.values}
        if self.style == "siglip2":
            shapes = np.maximum(self._grid, 1)
            return {
                "pixel_values": self.values,
                "pixel_attention_mask": self.mask,
                "spatial_shapes": _columns.beside(shapes, self.values),
            }
        is_known = self._counts > 0
        if self.style == "llava_next":
            sizes = self._image_sizes[is_known]
            return {
                "pixel_values": self.values,
                "image_sizes": _columns.beside(sizes, self.values),
            }
        known = self._grid[is_known]
        grids = np.concatenate([np.ones((len(known), 1), np.int64), known], axis=1)
        return {
            "pixel_values": self.values,
            "image_grid_thw": _columns.beside(grids, self.values),
        }

    def image(self, row: int) -> npt.NDArray[Any]:
        """The resized image of a row, height x width x 3, as a copy in host memory. Of tiles all
        but the overview, with the border of ``llava_next``."""
        row = range(len(self._grid))[row]
        rows, columns = (int(side) for side in self._grid[row])
        side, merge = self.patch_size, self.merge_size
        count = rows * columns
        if self.style in PADDED_STYLES:
            # The first two values of pix2struct are the place of the patch.
            patches = _on_host(self.values[row])[:count, -3 * side * side :]
            grid = patches.reshape(rows, columns, side, side, 3).transpose(0, 2, 1, 3, 4)
            return grid.reshape(rows * side, columns * side, 3).copy()
        # The overview of llava_next is the first tile.
        first = int(self._offsets[row]) + (self.style == "llava_next")
        patches = _on_host(self.values[first : first + count])
        # Each patch has its image again and again, as if it were frames of a video.
        times = math.prod(patches.shape[1:]) // (3 * side * side)
        blocks = patches.reshape(
            rows // merge, columns // merge, merge, merge, 3, times, side, side
        )[:, :, :, :, :, 0]
        # Block and patch across, then down.
        grid = blocks.transpose(0, 2, 5, 1, 3, 6, 4)
        return grid.reshape(rows * side, columns * side, 3).copy()

    def overview(self, row: int) -> npt.NDArray[Any]:
        """The whole image of a row in one tile, ``patch_size`` x ``patch_size`` x 3, as a copy in
        host memory. A row of ``internvl`` with one tile has no other overview.

        Raises ``AttributeError`` for styles without tiles, and ``ValueError`` for a row without
        them.
        """
        if self.style not in TILE_STYLES:
            raise AttributeError(f"only tiles have an overview, and style {self.style} has none")
        row = range(len(self._grid))[row]
        first, end = (int(place) for place in self._offsets[row : row + 2])
        if first == end:
            raise ValueError(
                f"row {row} has no tiles: it is padding, or the size of its image is unknown or "
                "over a limit"
            )
        place = first if self.style == "llava_next" else end - 1
        return _on_host(self.values[place]).transpose(1, 2, 0).copy()

    @property
    def _shown(self) -> npt.NDArray[np.bool_]:
        """Which patches of a padded row are those of the image."""
        return np.arange(self.values.shape[1])[None] < self._counts[:, None]

    @property
    def _counts(self) -> npt.NDArray[np.int64]:
        is_padded = self.style in PADDED_STYLES
        counts: npt.NDArray[np.int64] = (
            self._grid.prod(axis=1) if is_padded else np.diff(self._offsets)
        )
        return counts


def _on_host(values: Any) -> npt.NDArray[Any]:
    """Values as an array of NumPy. Those that NumPy has no type for become float32."""
    values = values.cpu() if hasattr(values, "cpu") else values
    is_torch = hasattr(values, "numpy")
    is_unknown = is_torch and "bfloat16" in str(values.dtype)
    return np.asarray(values.float().numpy() if is_unknown else values)


def of_batch(
    found: tuple[PatchStyle, int, int, list[tuple[int, int]], list[int], list[tuple[int, int]]],
    values: Any,
) -> Patches:
    """``found``: style, patch size, merge size, the grids, the patches in each row, and the sizes
    of the images."""
    style, patch_size, merge_size, grids, patches, sizes = found
    grid, image_sizes = (np.array(pairs, np.int64).reshape(-1, 2) for pairs in (grids, sizes))
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(patches, dtype=np.int64)])
    return Patches(style, patch_size, merge_size, values, grid, offsets, image_sizes)
