"""The patches of a batch: grids of the images, and the inputs of a model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from . import _columns

PatchStyle = Literal["qwen", "siglip2"]


@dataclass(frozen=True, eq=False)
class Patches:
    """The patches of a batch, where the recipe has ``patches``.

    Arrays are NumPy's or torch's, on the device of ``images``. A failed row has the grid of its
    sample, and zeros as patches. The grid is 0 x 0 for padding, and for an image whose size is
    unknown, over a limit or refused by the style.
    """

    style: PatchStyle
    patch_size: int
    """Height and width of a patch in pixels."""
    merge_size: int
    """Patches along each side of a block."""
    values: Any
    """``images`` of the batch. ``qwen``: patches of all rows x values of a patch. ``siglip2``:
    N x ``max_num_patches`` x values of a patch."""
    _grid: npt.NDArray[np.int64]
    _offsets: npt.NDArray[np.int64]

    @cached_property
    def grid(self) -> Any:
        """N x 2, int64: rows and columns of the patches of each image."""
        return _columns.beside(self._grid, self.values)

    @cached_property
    def counts(self) -> Any:
        """N, int64: patches of each image."""
        return _columns.beside(self._counts, self.values)

    @cached_property
    def offsets(self) -> Any:
        """N + 1, int64: the first patch of each row among the patches of all rows, then their
        number. With ``siglip2`` rows have ``max_num_patches`` each."""
        return _columns.beside(self._offsets, self.values)

    @property
    def sizes(self) -> Any:
        """N x 2, int64: height and width of each resized image in pixels."""
        return self.grid * self.patch_size

    @property
    def tokens(self) -> Any:
        """N, int64: image tokens of each row in the text of the model, which merges each block to
        one."""
        return self.counts // self.merge_size**2

    @cached_property
    def mask(self) -> Any:
        """N x ``max_num_patches``, int32: 1 for patches of the image, 0 after them. With
        ``siglip2``."""
        if self.style != "siglip2":
            raise AttributeError("only rows of style siglip2 have patches after those of the image")
        most = self.values.shape[1]
        mask = (np.arange(most)[None] < self._counts[:, None]).astype(np.int32)
        return _columns.beside(mask, self.values)

    def inputs(self) -> dict[str, Any]:
        """The arguments of the model, named as by the processors of transformers.

        Rows with a grid of 0 x 0 are not among those of ``qwen``. With ``siglip2`` they have a
        shape of 1 x 1, and no patch that the mask shows.
        """
        if self.style == "siglip2":
            shapes = np.maximum(self._grid, 1)
            return {
                "pixel_values": self.values,
                "pixel_attention_mask": self.mask,
                "spatial_shapes": _columns.beside(shapes, self.values),
            }
        known = self._grid[self._counts > 0]
        grids = np.concatenate([np.ones((len(known), 1), np.int64), known], axis=1)
        return {
            "pixel_values": self.values,
            "image_grid_thw": _columns.beside(grids, self.values),
        }

    def image(self, row: int) -> npt.NDArray[Any]:
        """The resized image of a row, height x width x 3, as a copy in host memory."""
        rows, columns = (int(side) for side in self._grid[row])
        values = self.values.cpu() if hasattr(self.values, "cpu") else self.values
        if self.style == "siglip2":
            patches = np.asarray(_numpy(values[row]))[: rows * columns]
            side = self.patch_size
            grid = patches.reshape(rows, columns, side, side, 3).transpose(0, 2, 1, 3, 4)
            return grid.reshape(rows * side, columns * side, 3).copy()
        first = int(self._offsets[row])
        patches = np.asarray(_numpy(values[first : first + rows * columns]))
        side, merge = self.patch_size, self.merge_size
        blocks = patches.reshape(rows // merge, columns // merge, merge, merge, 3, -1, side, side)[
            :, :, :, :, :, 0
        ]
        # Block and patch across, then down.
        grid = blocks.transpose(0, 2, 5, 1, 3, 6, 4)
        return grid.reshape(rows * side, columns * side, 3).copy()

    @property
    def _counts(self) -> npt.NDArray[np.int64]:
        counts: npt.NDArray[np.int64] = self._grid.prod(axis=1)
        return counts


def _numpy(values: Any) -> Any:
    """Values that NumPy has no type for become float32."""
    is_torch = hasattr(values, "numpy")
    return values.float().numpy() if is_torch and "bfloat16" in str(values.dtype) else values


def of_batch(
    found: tuple[PatchStyle, int, int, list[tuple[int, int]], list[int]], values: Any
) -> Patches:
    """``found``: style, patch size, merge size, the grids, and the patches in each row."""
    style, patch_size, merge_size, grids, patches = found
    grid = np.array(grids, np.int64).reshape(-1, 2)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(patches, dtype=np.int64)])
    return Patches(style, patch_size, merge_size, values, grid, offsets)
