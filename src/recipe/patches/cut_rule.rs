//! How an image is cut to its row: into patches, or into tiles.

use super::patch_grid::PatchGrid;
use super::patch_order::PatchOrder;
use super::patch_rule::{MOST_SIDE, PatchRule, PatchStyle};
use super::tiles::{OverviewPlace, TileRule, TileStyle};

/// How an image is cut to its row. A tile is a patch of the size that a vision encoder reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CutRule {
    Patches(PatchRule),
    Tiles(TileRule),
}

impl CutRule {
    /// The name of the style in a recipe file.
    #[must_use]
    pub fn style(&self) -> &'static str {
        match self {
            Self::Patches(rule) => rule.style.name(),
            Self::Tiles(rule) => rule.style().name(),
        }
    }

    /// The name of the operation in a recipe file.
    pub(crate) fn operation(&self) -> &'static str {
        match self {
            Self::Patches(_) => "patches",
            Self::Tiles(_) => "tiles",
        }
    }

    /// Height and width of a patch or tile, in pixels.
    #[must_use]
    pub fn side(&self) -> u32 {
        match self {
            Self::Patches(rule) => rule.patch_size,
            Self::Tiles(rule) => rule.tile_size,
        }
    }

    /// Patches along each side of a block. 1 of tiles.
    #[must_use]
    pub fn merge_size(&self) -> u32 {
        match self {
            Self::Patches(rule) => rule.merge_size,
            Self::Tiles(_) => 1,
        }
    }

    /// Rows and columns of the patches of an image with this height and width.
    ///
    /// # Errors
    /// As [`PatchRule::grid`]. Tiles exist for each image with sides of 1 to 2^24.
    pub fn grid(&self, image: (u32, u32)) -> Result<PatchGrid, String> {
        match self {
            Self::Patches(rule) => rule.grid(image),
            Self::Tiles(rule) => {
                match image.0.min(image.1) > 0 && image.0.max(image.1) <= MOST_SIDE {
                    true => Ok(rule.grid(image)),
                    false => Err(format!(
                        "an image of height {} and width {}: both sides must be 1 to {MOST_SIDE}",
                        image.0, image.1
                    )),
                }
            }
        }
    }

    /// The shape of a patch: `[values]`. Of a tile: `[3, tile_size, tile_size]`.
    #[must_use]
    pub fn patch_shape(&self) -> Vec<usize> {
        match self {
            Self::Patches(rule) => vec![rule.patch_values()],
            Self::Tiles(rule) => vec![3, rule.tile_size as usize, rule.tile_size as usize],
        }
    }

    /// Values of a patch.
    #[must_use]
    pub fn patch_values(&self) -> usize {
        self.patch_shape().iter().product()
    }

    /// Patches of each row, if all rows have as many: those after the image are zeros.
    #[must_use]
    pub fn padded_patches(&self) -> Option<u32> {
        match self {
            Self::Patches(rule) if rule.style != PatchStyle::Qwen => Some(rule.max_num_patches),
            Self::Patches(_) | Self::Tiles(_) => None,
        }
    }

    /// Patches of an image with this grid, with its overview.
    #[must_use]
    pub fn image_patches(&self, grid: PatchGrid) -> u64 {
        match self {
            Self::Patches(_) => grid.patches(),
            Self::Tiles(rule) => rule.tiles(grid),
        }
    }

    /// Patches in the row of an image with this grid. Without an image those of any row, or 0.
    pub(crate) fn row_patches(&self, grid: Option<PatchGrid>) -> u64 {
        match self.padded_patches() {
            Some(patches) => u64::from(patches),
            None => grid.map_or(0, |grid| self.image_patches(grid)),
        }
    }

    /// Values in the row of an image with this grid, as [`CutRule::row_patches`].
    pub(crate) fn row_values(&self, grid: Option<PatchGrid>) -> u64 {
        self.row_patches(grid) * self.patch_values() as u64
    }

    /// The order of patches and of their values, without the overview.
    #[must_use]
    pub fn order(&self) -> PatchOrder {
        match self {
            Self::Patches(rule) => rule.order(),
            Self::Tiles(rule) => PatchOrder {
                patch_size: rule.tile_size,
                merge_size: 1,
                temporal: 1,
                channels_last: false,
                is_numbered: false,
            },
        }
    }

    /// Where the overview of an image with this grid lies. None if it has none.
    pub(crate) fn overview(&self, grid: PatchGrid) -> Option<OverviewPlace> {
        match self {
            Self::Patches(_) => None,
            Self::Tiles(rule) => rule.overview(grid),
        }
    }

    /// The parameter that makes fewer patches, and its operation.
    pub(crate) fn limit(&self) -> &'static str {
        match self {
            Self::Patches(rule) if rule.style != PatchStyle::Qwen => "max_num_patches of patches",
            Self::Patches(_) => "max_pixels of patches",
            Self::Tiles(rule) => match rule.style() {
                TileStyle::Internvl => "max_tiles of tiles",
                TileStyle::LlavaNext => "the grid_pinpoints of tiles",
            },
        }
    }
}
