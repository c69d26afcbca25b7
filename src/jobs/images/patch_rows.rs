//! The patches of the rows of a batch: where each row begins, and its grid.

use std::ops::Range;

use crate::recipe::{CutRule, OverviewPlace, PatchGrid};

/// The patches of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PatchRow {
    /// Its first byte in the slot.
    pub(crate) start: usize,
    pub(crate) grid: Option<PatchGrid>,
    /// Height and width of the image before the resize.
    pub(crate) image: Option<(u32, u32)>,
}

/// The patches of all rows of a batch, which the recipe's `patches` or `tiles` makes. Rows follow
/// each other without a gap, so all patches are one tensor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchPatches {
    rule: CutRule,
    rows: Vec<PatchRow>,
    /// Bytes of a value.
    value: usize,
}

impl BatchPatches {
    pub(crate) fn new(rule: CutRule, rows: Vec<PatchRow>, value: usize) -> Self {
        Self { rule, rows, value }
    }

    /// The rule, with the defaults of its style.
    #[must_use]
    pub fn rule(&self) -> &CutRule {
        &self.rule
    }

    /// Rows and columns of the patches of each image. A failed row has the grid of its sample, and
    /// zeros as patches. None for padding, and for an image whose size is unknown, over a limit or
    /// refused by the rule.
    pub fn grids(&self) -> impl ExactSizeIterator<Item = Option<PatchGrid>> {
        self.rows.iter().map(|row| row.grid)
    }

    /// Height and width of each image before the resize. None where there is no grid.
    pub fn image_sizes(&self) -> impl ExactSizeIterator<Item = Option<(u32, u32)>> {
        self.rows.iter().map(|row| row.image)
    }

    /// Patches of each row, without those after the image. Of tiles: with the overview.
    pub fn counts(&self) -> impl ExactSizeIterator<Item = u64> {
        self.grids()
            .map(|grid| grid.map_or(0, |grid| self.rule.image_patches(grid)))
    }

    /// The shape of all rows:
    /// - style qwen: `[patches of all rows, values of a patch]`;
    /// - styles siglip2 and pix2struct: `[rows, patches of a row, values of a patch]`;
    /// - tiles: `[tiles of all rows, 3, tile_size, tile_size]`.
    #[must_use]
    pub fn shape(&self) -> Vec<usize> {
        let mut shape = match self.rule.padded_patches() {
            Some(patches) => vec![self.rows.len(), patches as usize],
            None => vec![self.counts().sum::<u64>() as usize],
        };
        shape.extend(self.rule.patch_shape());
        shape
    }

    /// Bytes of all rows.
    pub(crate) fn bytes(&self) -> usize {
        self.shape().iter().product::<usize>() * self.value
    }

    /// Patches in a row, with those after the image.
    ///
    /// # Panics
    /// There is no such row.
    #[must_use]
    pub fn patches_in(&self, row: usize) -> usize {
        self.rule.row_patches(self.rows[row].grid) as usize
    }

    /// The bytes of a row in the slot. `row` exists.
    pub(crate) fn place(&self, row: usize) -> Range<usize> {
        let bytes = self.rule.row_values(self.rows[row].grid) as usize * self.value;
        let start = self.rows[row].start;
        start..start + bytes
    }

    /// A row as an image, without the overview of tiles: its first value for each channel of each
    /// pixel, by row, column and channel. Empty without a grid. `values`: those of the row.
    ///
    /// # Panics
    /// There is no such row, or it has fewer values.
    pub fn image<T: Copy>(&self, row: usize, values: &[T]) -> Vec<T> {
        let (height, width) = self.size(row);
        let order = self.rule.order();
        let columns = (width as u32) / self.rule.side();
        let grid = self.rows[row].grid;
        let first = match grid.and_then(|grid| self.rule.overview(grid)) {
            Some(OverviewPlace::First) => self.rule.patch_values(),
            Some(OverviewPlace::Last) | None => 0,
        };
        let pixels = (0..height as u32).flat_map(|y| (0..width as u32).map(move |x| (y, x)));
        let pixels = pixels.flat_map(|(y, x)| (0..3).map(move |c| (y, x, c)));
        pixels
            .map(|(y, x, c)| values[first + order.index(columns, y, x, c)])
            .collect()
    }

    /// Height and width of a row's resized image, or of its canvas. 0 x 0 without a grid. `row`
    /// exists.
    pub(crate) fn size(&self, row: usize) -> (usize, usize) {
        let grid = self.rows[row].grid;
        let (height, width) = grid.map_or((0, 0), |grid| grid.resized(self.rule.side()));
        (height as usize, width as usize)
    }
}
