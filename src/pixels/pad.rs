//! Adds pixels around an image: torchvision's `pad`, for bytes and floats.
//!
//! It only copies and fills: it computes no values and allocates nothing.

use super::pixel_view::{PixelView, RgbPixel, fill_pixels};
use crate::recipe::{Padding, PaddingMode};

/// Fills `out`, tight rows of the padded size, with `src` and the pixels around it. `padding` is in
/// stored orientation.
///
/// [`PaddingMode::Reflect`] mirrors about the centre of the last pixel. torchvision rejects a
/// padding as large as the image or larger. Here the mirrored image is mirrored again, as between
/// two mirrors. An axis of one pixel repeats that pixel.
pub(crate) fn pad<T: Copy>(
    src: PixelView<'_, T>,
    padding: Padding,
    mode: PaddingMode,
    fill: RgbPixel<T>,
    out: &mut [RgbPixel<T>],
) {
    let [left, top, right, bottom] =
        [padding.left, padding.top, padding.right, padding.bottom].map(|n| n as usize);
    let (width, height) = (left + src.width + right, top + src.height + bottom);
    assert!(
        src.width >= 1 && src.height >= 1,
        "no picture to pad: {} x {}",
        src.height,
        src.width
    );
    assert_eq!(
        out.len(),
        width * height,
        "the output does not hold {height} x {width} pixels"
    );
    for (y, out) in out.chunks_exact_mut(width).enumerate() {
        let Some(from) = source(y, top, src.height, mode) else {
            fill_pixels(out, fill);
            continue;
        };
        let row = src.row(from);
        let (before, rest) = out.split_at_mut(left);
        let (middle, behind) = rest.split_at_mut(src.width);
        middle.copy_from_slice(row);
        if mode == PaddingMode::Constant {
            fill_pixels(before, fill);
            fill_pixels(behind, fill);
            continue;
        }
        let beyond = (0..left).zip(before);
        for (x, out) in beyond.chain((left + src.width..).zip(behind)) {
            *out = source(x, left, src.width, mode).map_or(fill, |x| row[x]);
        }
    }
}

/// The one of `size` pixels to show at `at`, with `before` padding pixels before the first. `None`:
/// the fill.
fn source(at: usize, before: usize, size: usize, mode: PaddingMode) -> Option<usize> {
    if (before..before + size).contains(&at) {
        return Some(at - before);
    }
    match mode {
        PaddingMode::Constant => None,
        PaddingMode::Edge if at < before => Some(0),
        PaddingMode::Edge => Some(size - 1),
        PaddingMode::Reflect => {
            // Forward and back again, with each end once.
            let period = (2 * (size - 1)).max(1);
            let beyond = at.abs_diff(before);
            let along = beyond % period;
            Some(along.min(period - along).min(size - 1))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn padded(row: &[u8], n: u32, mode: PaddingMode) -> String {
        let pixels: Vec<_> = row.iter().map(|&v| [v; 3]).collect();
        let padding = Padding {
            left: n,
            right: n + 1,
            ..Padding::default()
        };
        let mut out = vec![[0; 3]; row.len() + 2 * n as usize + 1];
        pad(
            PixelView::tight(&pixels, row.len(), 1),
            padding,
            mode,
            *b"...",
            &mut out,
        );
        out.iter().map(|p| char::from(p[1])).collect()
    }

    #[test]
    fn each_mode_goes_on_in_its_manner() {
        assert_eq!(padded(b"abcd", 2, PaddingMode::Constant), "..abcd...");
        assert_eq!(padded(b"abcd", 2, PaddingMode::Edge), "aaabcdddd");
        assert_eq!(padded(b"abcd", 2, PaddingMode::Reflect), "cbabcdcba");
    }

    /// Cases that torchvision rejects.
    #[test]
    fn a_reflection_is_reflected_again() {
        assert_eq!(padded(b"abc", 5, PaddingMode::Reflect), "babcbabcbabcba");
        assert_eq!(padded(b"ab", 3, PaddingMode::Reflect), "babababab");
        assert_eq!(padded(b"a", 2, PaddingMode::Reflect), "aaaaaa");
    }

    #[test]
    fn rows_are_padded_as_columns_are() {
        let pixels: Vec<[f32; 3]> = (0..12).map(|v| [v as f32, 0.5, -1.0]).collect();
        // Three rows of three, with a gap of one pixel between rows.
        let src = PixelView {
            pixels: &pixels,
            width: 3,
            height: 3,
            stride: 4,
        };
        let padding = Padding {
            top: 2,
            bottom: 1,
            ..Padding::default()
        };
        let firsts = |mode| {
            let mut out = vec![[9.0; 3]; 18];
            pad(src, padding, mode, [7.0; 3], &mut out);
            out.chunks(3).map(|row| row[0][0]).collect::<Vec<_>>()
        };
        assert_eq!(
            firsts(PaddingMode::Constant),
            [7.0, 7.0, 0.0, 4.0, 8.0, 7.0]
        );
        assert_eq!(firsts(PaddingMode::Edge), [0.0, 0.0, 0.0, 4.0, 8.0, 8.0]);
        assert_eq!(firsts(PaddingMode::Reflect), [8.0, 4.0, 0.0, 4.0, 8.0, 4.0]);
    }
}
