//! Converts 16 x 16 pixels of RGB to six blocks of samples: four of luma, Cb and Cr.

/// The side of an MCU in pixels.
pub(in crate::picture::jpeg) const SIDE: usize = 16;

/// Two blocks side by side, row by row.
pub(in crate::picture::jpeg) type SamplePair = [[i16; SIDE]; 8];

/// An MCU's samples minus 128: the upper two blocks of luma, the lower two, Cb beside Cr.
pub(in crate::picture::jpeg) type McuSamples = [SamplePair; 3];

/// Rows of RGB. Those of an MCU begin at `start`, and are `pitch` bytes apart.
#[derive(Debug, Clone, Copy)]
pub(in crate::picture::jpeg) struct McuPixels<'a> {
    pub(in crate::picture::jpeg) rgb: &'a [u8],
    pub(in crate::picture::jpeg) start: usize,
    pub(in crate::picture::jpeg) pitch: usize,
}

impl McuPixels<'_> {
    /// A row's 16 pixels.
    #[inline]
    pub(super) fn row(&self, y: usize) -> &[u8; 3 * SIDE] {
        let row = self.rgb.get(self.start + y * self.pitch..);
        row.and_then(<[u8]>::first_chunk).unwrap_or(&[0; 3 * SIDE])
    }
}

/// Luma, Cb and Cr of a pixel, each minus 128. Factors have 16 bits of fraction. Halves round up
/// for luma, and down for chroma.
fn convert([r, g, b]: [u8; 3]) -> [i32; 3] {
    const HALF: i32 = 1 << 15;
    let (r, g, b) = (i32::from(r), i32::from(g), i32::from(b));
    [
        (19_595 * r + 38_470 * g + 7_471 * b + HALF - (128 << 16)) >> 16,
        (32_768 * b - 11_059 * r - 21_709 * g + HALF - 1) >> 16,
        (32_768 * r - 27_439 * g - 5_329 * b + HALF - 1) >> 16,
    ]
}

/// `EncodeKernels::samples`, one pixel at a time.
pub(in crate::picture::jpeg) fn samples(pixels: McuPixels<'_>, to: &mut McuSamples) {
    let mut sums = [[0; SIDE]; 8];
    for y in 0..SIDE {
        let (row, _) = pixels.row(y).as_chunks();
        for (x, &pixel) in row.iter().enumerate() {
            let [luma, cb, cr] = convert(pixel);
            to[y / 8][y % 8][x] = luma as i16;
            sums[y / 2][x / 2] += cb as i16;
            sums[y / 2][8 + x / 2] += cr as i16;
        }
    }
    // Quarters are rounded down and up alternately.
    for (to, sums) in to[2].iter_mut().zip(sums) {
        for (x, (to, sum)) in to.iter_mut().zip(sums).enumerate() {
            *to = (sum + 1 + (x % 2) as i16) >> 2;
        }
    }
}

/// Copies an MCU at the right or lower edge, of which `rows` x `columns` pixels lie in the picture.
/// The last pixels are repeated.
pub(in crate::picture::jpeg) fn repeat_edges(
    pixels: McuPixels<'_>,
    (rows, columns): (usize, usize),
    to: &mut [u8; 3 * SIDE * SIDE],
) {
    for (y, to) in to.chunks_exact_mut(3 * SIDE).enumerate() {
        let start = pixels.start + y.min(rows - 1) * pixels.pitch;
        let (from, _) = pixels.rgb[start..start + 3 * columns].as_chunks::<3>();
        let (to, _) = to.as_chunks_mut::<3>();
        to[..columns].copy_from_slice(from);
        to[columns..].fill(from[columns - 1]);
    }
}

/// Repeats the last row of chroma, where `rows` counts the picture's rows of pixels. A row of
/// chroma is the mean of two rows of pixels. The mean of repeated pixels would differ.
pub(in crate::picture::jpeg) fn repeat_chroma(to: &mut McuSamples, rows: usize) {
    let last = rows.div_ceil(2) - 1;
    let row = to[2][last];
    to[2][last..].fill(row);
}
