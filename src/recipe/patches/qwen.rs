//! `smart_resize` of Qwen2-VL, Qwen2.5-VL and Qwen3-VL.
//!
//! A block is `merge_size` x `merge_size` patches, and the sides of the resized image are whole
//! blocks. All sizes here are in blocks, or in pixels where the name says so.

/// The largest ratio of the longer side to the shorter side.
pub(super) const MOST_RATIO: u32 = 200;

/// The sizes that an image may have after the resize.
#[derive(Debug, Clone, Copy)]
pub(super) struct QwenLimits {
    /// Height and width of a block, in pixels.
    pub(super) block: u32,
    pub(super) min_pixels: u64,
    pub(super) max_pixels: u64,
}

impl QwenLimits {
    /// Whether the sides have a ratio that is allowed. Python compares the rounded quotient. For
    /// sides of 32 bits it is above 200 exactly when the ratio is.
    pub(super) fn allows((height, width): (u32, u32)) -> bool {
        u64::from(height.max(width)) <= u64::from(height.min(width)) * u64::from(MOST_RATIO)
    }

    /// Rows and columns of blocks. Each operation is one of Python's, in the same order.
    pub(super) fn blocks(&self, (height, width): (u32, u32)) -> (u32, u32) {
        let (block, min, max) = (
            f64::from(self.block),
            self.min_pixels as f64,
            self.max_pixels as f64,
        );
        let (height, width) = (f64::from(height), f64::from(width));
        let rounded = |side: f64| (side / block).round_ties_even();
        let (rows, columns) = (rounded(height), rounded(width));
        let pixels = rows * columns * block * block;
        let (rows, columns) = if pixels > max {
            let beta = (height * width / max).sqrt();
            let shrunk = |side: f64| (side / beta / block).floor().max(1.0);
            (shrunk(height), shrunk(width))
        } else if pixels < min {
            let beta = (min / (height * width)).sqrt();
            let enlarged = |side: f64| (side * beta / block).ceil();
            (enlarged(height), enlarged(width))
        } else {
            (rows, columns)
        };
        (rows as u32, columns as u32)
    }

    /// An upper bound of the blocks of an image.
    ///
    /// - Without a limit the image has at most `max_pixels`.
    /// - An image that shrinks has at most `max_pixels`, unless its shorter side has less than a
    ///   block. This side becomes one block. The longer side is at most sqrt(200 x `max_pixels`),
    ///   because the ratio is at most 200.
    /// - An image that grows to `min_pixels` has both sides rounded up. Before that, `rows` blocks
    ///   were at least `rows - 1`. So the width was at most `min_pixels` divided by these, and at
    ///   most sqrt(200 x `min_pixels`). Floats may round up a width of whole blocks. So the bound
    ///   is the whole blocks of the width and one more.
    pub(super) fn most_blocks(&self) -> u64 {
        let block = u64::from(self.block);
        let longest = |pixels: u64| pixels.saturating_mul(u64::from(MOST_RATIO)).isqrt() / block;
        let mut most = (self.max_pixels / (block * block)).max(1);
        if self.max_pixels < block * block * u64::from(MOST_RATIO) {
            most = most.max(longest(self.max_pixels));
        }
        let length = longest(self.min_pixels) + 1;
        // The shorter side: at most a block more than the side of a square.
        let rows = self.min_pixels.isqrt() / block + 1;
        let grown = (1..=rows).map(|rows| {
            let columns = match rows {
                1 => length,
                _ => length.min(self.min_pixels / ((rows - 1) * block * block) + 1),
            };
            rows * columns
        });
        grown.fold(most, u64::max)
    }
}
