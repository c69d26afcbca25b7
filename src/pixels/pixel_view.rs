//! Rows of pixels in memory, `stride` pixels apart.

/// One pixel.
pub type RgbPixel<T> = [T; 3];

/// Sets all pixels to one colour. Copies blocks: `fill` of the standard library writes pixels of
/// three bytes one by one.
pub(crate) fn fill_pixels<T: Copy>(pixels: &mut [RgbPixel<T>], color: RgbPixel<T>) {
    const BLOCK: usize = 64;
    let block = [color; BLOCK];
    for pixels in pixels.chunks_mut(BLOCK) {
        pixels.copy_from_slice(&block[..pixels.len()]);
    }
}

/// Pixels to read.
#[derive(Debug, Clone, Copy)]
pub struct PixelView<'a, T> {
    pub(crate) pixels: &'a [RgbPixel<T>],
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) stride: usize,
}

/// Pixels to modify.
#[derive(Debug)]
pub(crate) struct PixelViewMut<'a, T> {
    pub(crate) pixels: &'a mut [RgbPixel<T>],
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) stride: usize,
}

impl<'a, T> PixelView<'a, T> {
    /// A view of rows without gaps.
    #[cfg(any(test, feature = "internals"))]
    pub fn tight(pixels: &'a [RgbPixel<T>], width: usize, height: usize) -> Self {
        Self {
            pixels,
            width,
            height,
            stride: width,
        }
    }

    /// The rows, top to bottom.
    pub(crate) fn rows(self) -> impl Iterator<Item = &'a [RgbPixel<T>]> {
        let width = self.width;
        let rows = self.pixels.chunks(self.stride).take(self.height);
        rows.map(move |row| &row[..width])
    }

    pub(crate) fn row(&self, y: usize) -> &'a [RgbPixel<T>] {
        &self.pixels[y * self.stride..][..self.width]
    }
}

impl PixelView<'_, u8> {
    /// Copies the pixels without gaps to the start of `to`.
    pub(crate) fn copy_to(self, to: &mut [u8]) {
        let line = size_of::<RgbPixel<u8>>() * self.width;
        let to = &mut to[..line * self.height];
        if self.stride == self.width {
            let tight = &self.pixels[..self.width * self.height];
            to.copy_from_slice(tight.as_flattened());
            return;
        }
        for (to, row) in to.chunks_exact_mut(line).zip(self.rows()) {
            to.copy_from_slice(row.as_flattened());
        }
    }
}

impl<T> PixelViewMut<'_, T> {
    /// The rows, top to bottom.
    pub(crate) fn rows_mut(&mut self) -> impl Iterator<Item = &mut [RgbPixel<T>]> {
        let width = self.width;
        self.pixels
            .chunks_mut(self.stride)
            .take(self.height)
            .map(move |row| &mut row[..width])
    }

    pub(crate) fn as_view(&self) -> PixelView<'_, T> {
        PixelView {
            pixels: self.pixels,
            width: self.width,
            height: self.height,
            stride: self.stride,
        }
    }
}
