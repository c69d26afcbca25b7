//! The place of each pixel in the patches of an image.

/// Order of the patches of an image, and of the values in a patch.
///
/// The row of an image is `[patches, values of a patch]`. Patches lie in blocks of
/// `merge_size` x `merge_size`. Blocks go from left to right and from top to bottom, and so do the
/// patches of a block. With `merge_size` 1 these are the patches row by row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PatchOrder {
    /// Height and width of a patch, in pixels.
    pub patch_size: u32,
    /// Height and width of a block, in patches.
    pub merge_size: u32,
    /// Copies of the image in each patch.
    pub temporal: u32,
    /// Values of a patch: by row, column, channel. Otherwise by channel, copy, row, column.
    pub channels_last: bool,
    /// The first two values of a patch are its row and its column, from 1.
    pub is_numbered: bool,
}

impl PatchOrder {
    /// Values of a patch.
    pub fn patch_values(&self) -> usize {
        let pixels = (self.patch_size as usize).pow(2);
        self.numbers() + self.temporal as usize * 3 * pixels
    }

    /// Values before those of its pixels.
    fn numbers(&self) -> usize {
        if self.is_numbered { 2 } else { 0 }
    }

    /// Values of the patches of an image of this height and width, which are whole patches.
    pub fn image_values(&self, height: u64, width: u64) -> u64 {
        let side = u64::from(self.patch_size);
        (height / side) * (width / side) * self.patch_values() as u64
    }

    /// Index of the first copy of a value in the row of an image.
    ///
    /// `columns` is that of the grid, a multiple of `merge_size`. `y` and `x` are pixels of the
    /// resized image. `c` is 0, 1 or 2.
    pub fn index(&self, columns: u32, y: u32, x: u32, c: u32) -> usize {
        let (side, merge) = (self.patch_size as usize, self.merge_size as usize);
        let (y, x, c) = (y as usize, x as usize, c as usize);
        let (row, column) = (y / side, x / side);
        let (y, x) = (y % side, x % side);
        let block = row / merge * (columns as usize / merge) + column / merge;
        let patch = block * merge * merge + row % merge * merge + column % merge;
        let copies = self.temporal as usize;
        let value = match self.channels_last {
            true => (y * side + x) * 3 + c,
            false => (c * copies * side + y) * side + x,
        };
        patch * self.patch_values() + self.numbers() + value
    }

    /// Values between a copy of a pixel and the next copy.
    pub fn frame_stride(&self) -> usize {
        let pixels = self.patch_size as usize * self.patch_size as usize;
        match self.channels_last {
            true => pixels * 3,
            false => pixels,
        }
    }
}
