//! The patches of one image, as rows and columns.

/// The patches of one image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PatchGrid {
    /// Patches from top to bottom. At least 1.
    pub rows: u32,
    /// Patches from left to right. At least 1.
    pub columns: u32,
}

impl PatchGrid {
    /// The size that the image is resized to, in pixels.
    pub fn resized(&self, patch_size: u32) -> (u32, u32) {
        (self.rows * patch_size, self.columns * patch_size)
    }

    /// The number of patches.
    pub fn patches(&self) -> u64 {
        u64::from(self.rows) * u64::from(self.columns)
    }
}
