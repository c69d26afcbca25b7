//! The patches of the rows of a batch: where each row begins, and its grid.

use std::ops::Range;

use crate::recipe::{PatchGrid, PatchRule, PatchStyle};

/// The patches of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PatchRow {
    /// Its first byte in the slot.
    pub(crate) start: usize,
    pub(crate) grid: Option<PatchGrid>,
}

/// The patches of all rows of a batch, which the recipe's `patches` makes. Rows follow each other
/// without a gap, so all patches are one tensor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchPatches {
    rule: PatchRule,
    rows: Vec<PatchRow>,
    /// Bytes of a value.
    value: usize,
}

impl BatchPatches {
    pub(crate) fn new(rule: PatchRule, rows: Vec<PatchRow>, value: usize) -> Self {
        Self { rule, rows, value }
    }

    /// The rule, with the defaults of its style.
    #[must_use]
    pub fn rule(&self) -> &PatchRule {
        &self.rule
    }

    /// Rows and columns of the patches of each image. A failed row has the grid of its sample, and
    /// zeros as patches. None for padding, and for an image whose size is unknown, over a limit or
    /// refused by the rule.
    pub fn grids(&self) -> impl ExactSizeIterator<Item = Option<PatchGrid>> {
        self.rows.iter().map(|row| row.grid)
    }

    /// Patches of each row, without those after the image.
    pub fn counts(&self) -> impl ExactSizeIterator<Item = u64> {
        self.grids().map(|grid| grid.map_or(0, |of| of.patches()))
    }

    /// The shape of all rows. Style qwen: `[patches of all rows, values of a patch]`. Style siglip2:
    /// `[rows, patches of a row, values of a patch]`.
    #[must_use]
    pub fn shape(&self) -> Vec<usize> {
        let values = self.rule.patch_values();
        match self.rule.style {
            PatchStyle::Qwen => vec![self.counts().sum::<u64>() as usize, values],
            PatchStyle::Siglip2 => {
                let patches = self.rule.max_num_patches as usize;
                vec![self.rows.len(), patches, values]
            }
        }
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

    /// A row as an image: its first value for each channel of each pixel, by row, column and channel.
    /// Empty without a grid. `values`: those of the row.
    ///
    /// # Panics
    /// There is no such row, or it has fewer values.
    pub fn image<T: Copy>(&self, row: usize, values: &[T]) -> Vec<T> {
        let (height, width) = self.size(row);
        let order = self.rule.order();
        let columns = (width as u32) / self.rule.patch_size;
        let pixels = (0..height as u32).flat_map(|y| (0..width as u32).map(move |x| (y, x)));
        let pixels = pixels.flat_map(|(y, x)| (0..3).map(move |c| (y, x, c)));
        pixels
            .map(|(y, x, c)| values[order.index(columns, y, x, c)])
            .collect()
    }

    /// Height and width of a row's resized image. 0 x 0 without a grid. `row` exists.
    pub(crate) fn size(&self, row: usize) -> (usize, usize) {
        let grid = self.rows[row].grid;
        let (height, width) = grid.map_or((0, 0), |grid| grid.resized(self.rule.patch_size));
        (height as usize, width as usize)
    }
}
