"""The patches of a batch: grids of the images, and the inputs of a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from . import _columns

PatchStyle = Literal["qwen", "siglip2"]


@dataclass(frozen=True, eq=False)
class Patches:
    """The patches of a batch, where the recipe has ``patches``.

    Arrays are NumPy's or torch's, on the device of ``images``. A failed row has the grid of its
    sample, and zeros as patches. Padding, and an image without a readable header, have a grid of
    0 x 0.
    """

    style: PatchStyle
    values: Any
    """``images`` of the batch. ``qwen``: patches of all rows x numbers of a patch. ``siglip2``:
    N x ``max_num_patches`` x numbers of a patch."""
    grid: Any
    """N x 2, int64: rows and columns of the patches of each image."""
    counts: Any
    """N, int64: patches of each image."""
    offsets: Any
    """N + 1, int64: the first patch of each row among the patches of all rows, then their number.
    With ``siglip2`` rows have ``max_num_patches`` each."""
    patch_size: int
    """Height and width of a patch in pixels."""
    merge_size: int
    """Patches along each side of a block."""

    @property
    def sizes(self) -> Any:
        """N x 2: height and width of each resized image in pixels."""
        return self.grid * self.patch_size

    @property
    def tokens(self) -> Any:
        """N: image tokens of each row in the text of the model, which merges each block to one."""
        return self.counts // self.merge_size**2

    @property
    def mask(self) -> Any:
        """N x ``max_num_patches``, int32: 1 for patches of the image, 0 after them. With
        ``siglip2``."""
        if self.style != "siglip2":
            raise AttributeError("only rows of style siglip2 have patches after those of the image")
        most = self.values.shape[1]
        return _columns.beside(self._mask(most), self.values)

    def _mask(self, most: int) -> Any:
        counts = np.asarray(self.counts.cpu() if hasattr(self.counts, "cpu") else self.counts)
        return (np.arange(most)[None] < counts[:, None]).astype(np.int32)

    def inputs(self) -> dict[str, Any]:
        """The arguments of the model, named as by the processors of transformers."""
        if self.style == "siglip2":
            return {
                "pixel_values": self.values,
                "pixel_attention_mask": self.mask,
                "spatial_shapes": self.grid,
            }
        counts = np.asarray(self.grid.cpu() if hasattr(self.grid, "cpu") else self.grid)
        grids = np.concatenate([np.ones((len(counts), 1), np.int64), counts], axis=1)
        return {
            "pixel_values": self.values,
            "image_grid_thw": _columns.beside(grids, self.values),
        }


def of_batch(
    found: tuple[PatchStyle, int, int, list[tuple[int, int]], list[int]], values: Any
) -> Patches:
    """``found``: style, patch size, merge size, the grids, and the patches in each row."""
    style, patch_size, merge_size, grids, patches = found
    grid = np.array(grids, np.int64).reshape(-1, 2)
    offsets = np.concatenate([[0], np.cumsum(patches, dtype=np.int64)])
    grid, counts, offsets = (
        _columns.beside(array, values) for array in (grid, grid.prod(axis=1), offsets)
    )
    return Patches(style, values, grid, counts, offsets, patch_size, merge_size)
