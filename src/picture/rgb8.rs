//! Converts the pixel forms of files to 8-bit RGB.
//!
//! Pure. Rows in, rows out. The arithmetic is defined only here.
//!
//! - Grey becomes three equal channels.
//! - 16 bits become 8 by dropping the low byte, as in libpng and Pillow.
//! - Floats are clamped to 0..1, multiplied by 255 and rounded, without a tone curve. NaN is 0.
//! - Alpha is composited on the background: `(v * a + b * (255 - a)) / 255`, rounded, on the stored
//!   values (no gamma). It can also be dropped, which keeps the stored colours, or replace the
//!   colours.
//! - Premultiplied colours already include alpha: `v + b * (255 - a) / 255`, rounded, at most 255.
//!   If alpha is dropped, they are divided by it, as in Pillow.

use super::background::{AlphaPolicy, BackgroundColor};

/// The relation of a file's colours to its alpha.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum AlphaKind {
    /// Colours are independent of alpha.
    #[default]
    Straight,
    /// Colours have been multiplied by alpha.
    Premultiplied,
}

/// The memory layout of a decoded row's pixels, in the machine's byte order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PixelForm {
    L8,
    La8,
    Rgb8,
    Rgba8,
    L16,
    La16,
    Rgb16,
    Rgba16,
    Rgb32F,
    Rgba32F,
}

impl PixelForm {
    /// Bytes of a pixel.
    pub(super) fn bytes(self) -> usize {
        match self {
            Self::L8 => 1,
            Self::La8 | Self::L16 => 2,
            Self::Rgb8 => 3,
            Self::Rgba8 | Self::La16 => 4,
            Self::Rgb16 => 6,
            Self::Rgba16 => 8,
            Self::Rgb32F => 12,
            Self::Rgba32F => 16,
        }
    }

    /// Converts as many pixels as `out` holds, from the start of `row`.
    pub(super) fn to_rgb8(
        self,
        row: &[u8],
        alpha: AlphaKind,
        transparency: AlphaPolicy,
        out: &mut [u8],
    ) {
        match (transparency, alpha) {
            (AlphaPolicy::Composite(background), AlphaKind::Straight) => {
                self.convert(row, |rgb, a| background.under(rgb, a), out);
            }
            (AlphaPolicy::Composite(background), AlphaKind::Premultiplied) => {
                self.convert(row, |rgb, a| background.under_premultiplied(rgb, a), out);
            }
            (AlphaPolicy::Ignore, AlphaKind::Straight) => self.convert(row, |rgb, _| rgb, out),
            // Divides before the conversion to bytes, which are too coarse for small alpha.
            (AlphaPolicy::Ignore, AlphaKind::Premultiplied) if self == Self::Rgba32F => {
                let out = out.as_chunks_mut::<3>().0;
                each(row, out, |pixel: &[u8; 16]| divided_floats(pixel));
            }
            (AlphaPolicy::Ignore, AlphaKind::Premultiplied) => self.convert(row, divided, out),
            (AlphaPolicy::AlphaOnly, _) if !self.has_alpha() => out.fill(255),
            (AlphaPolicy::AlphaOnly, _) => self.convert(row, |_, a| [a; 3], out),
        }
    }

    fn has_alpha(self) -> bool {
        matches!(
            self,
            Self::La8 | Self::Rgba8 | Self::La16 | Self::Rgba16 | Self::Rgba32F
        )
    }

    fn convert(self, row: &[u8], under: impl Fn([u8; 3], u8) -> [u8; 3], out: &mut [u8]) {
        let out = out.as_chunks_mut::<3>().0;
        match self {
            Self::L8 => each(row, out, |&[v]| [v; 3]),
            Self::La8 => each(row, out, |&[v, a]| under([v; 3], a)),
            Self::Rgb8 => each(row, out, |&rgb| rgb),
            Self::Rgba8 => each(row, out, |&[r, g, b, a]| under([r, g, b], a)),
            Self::L16 => each(row, out, |&[v0, v1]| [high([v0, v1]); 3]),
            Self::La16 => each(row, out, |&[v0, v1, a0, a1]| {
                under([high([v0, v1]); 3], high([a0, a1]))
            }),
            Self::Rgb16 => each(row, out, |&[r0, r1, g0, g1, b0, b1]| {
                [high([r0, r1]), high([g0, g1]), high([b0, b1])]
            }),
            Self::Rgba16 => each(row, out, |&[r0, r1, g0, g1, b0, b1, a0, a1]| {
                let rgb = [high([r0, r1]), high([g0, g1]), high([b0, b1])];
                under(rgb, high([a0, a1]))
            }),
            Self::Rgb32F => each(row, out, |pixel: &[u8; 12]| floats(pixel)),
            Self::Rgba32F => each(row, out, |pixel: &[u8; 16]| {
                let [r, g, b, a] = floats(pixel);
                under([r, g, b], a)
            }),
        }
    }
}

fn each<const N: usize>(row: &[u8], out: &mut [[u8; 3]], to: impl Fn(&[u8; N]) -> [u8; 3]) {
    for (pixel, out) in row.as_chunks::<N>().0.iter().zip(out) {
        *out = to(pixel);
    }
}

fn high(v: [u8; 2]) -> u8 {
    (u16::from_ne_bytes(v) >> 8) as u8
}

fn floats<const N: usize, const M: usize>(pixel: &[u8; N]) -> [u8; M] {
    let mut out = [0; M];
    for (v, out) in pixel.as_chunks::<4>().0.iter().zip(&mut out) {
        // The cast clamps, and converts NaN to 0.
        *out = (f32::from_ne_bytes(*v) * 255.0 + 0.5) as u8;
    }
    out
}

/// Divides premultiplied colours by alpha, in Pillow's arithmetic. Pixels of alpha 0 become black.
fn divided(rgb: [u8; 3], a: u8) -> [u8; 3] {
    match a {
        255 => rgb,
        0 => [0; 3],
        _ => rgb.map(|v| (u32::from(v) * 255 / u32::from(a)).min(255) as u8),
    }
}

fn divided_floats(pixel: &[u8; 16]) -> [u8; 3] {
    let [r, g, b, a] = *pixel.as_chunks::<4>().0 else {
        return [0; 3];
    };
    let a = f32::from_ne_bytes(a);
    if a.is_nan() || a <= 0.0 {
        return [0; 3];
    }
    [r, g, b].map(|v| (f32::from_ne_bytes(v) / a * 255.0 + 0.5) as u8)
}

impl BackgroundColor {
    /// The colour of a pixel of alpha `a` and premultiplied colours on this background.
    fn under_premultiplied(self, rgb: [u8; 3], a: u8) -> [u8; 3] {
        let rest = 255 - u32::from(a);
        let Self(back) = self;
        [0, 1, 2].map(|c| {
            let shown = (u32::from(back[c]) * rest + 127) / 255;
            (u32::from(rgb[c]) + shown).min(255) as u8
        })
    }

    /// The colour of a pixel of alpha `a` on this background.
    fn under(self, rgb: [u8; 3], a: u8) -> [u8; 3] {
        let Self(back) = self;
        match a {
            255 => rgb,
            0 => back,
            _ => [0, 1, 2].map(|c| {
                let (v, b) = (u32::from(rgb[c]), u32::from(back[c]));
                let a = u32::from(a);
                ((v * a + b * (255 - a) + 127) / 255) as u8
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GREY: BackgroundColor = BackgroundColor([100, 150, 200]);

    fn convert(form: PixelForm, row: &[u8]) -> Vec<u8> {
        let mut out = vec![0xee; 3 * row.len() / form.bytes()];
        form.to_rgb8(
            row,
            AlphaKind::Straight,
            AlphaPolicy::Composite(GREY),
            &mut out,
        );
        out
    }

    fn dropped(form: PixelForm, row: &[u8]) -> Vec<u8> {
        let mut out = vec![0xee; 3 * row.len() / form.bytes()];
        form.to_rgb8(row, AlphaKind::Straight, AlphaPolicy::Ignore, &mut out);
        out
    }

    fn premultiplied(form: PixelForm, row: &[u8], transparency: AlphaPolicy) -> Vec<u8> {
        let mut out = vec![0xee; 3 * row.len() / form.bytes()];
        form.to_rgb8(row, AlphaKind::Premultiplied, transparency, &mut out);
        out
    }

    #[test]
    fn premultiplied_colours_are_not_multiplied_again() {
        let on = AlphaPolicy::Composite(GREY);
        // 64 + 100 * 127 / 255 and so on: colours of 127, 64 and 0 at half of the light.
        let half = [64 + 50, 32 + 75, 100];
        assert_eq!(premultiplied(PixelForm::Rgba8, &[64, 32, 0, 128], on), half);
        assert_eq!(
            premultiplied(PixelForm::La8, &[64, 128, 7, 255], on)[3..],
            [7; 3]
        );
        // A pixel of alpha 0 adds its colours to the background.
        assert_eq!(
            premultiplied(PixelForm::Rgba8, &[9, 200, 0, 0], on),
            [109, 255, 200]
        );
        let floats = numbers(&[0.25, 0.125, 0.0, 0.5]);
        assert_eq!(premultiplied(PixelForm::Rgba32F, &floats, on), half);
    }

    /// As Pillow opens a TIFF of associated alpha: (64 * 255 / 128, ...).
    #[test]
    fn premultiplied_colours_are_divided_where_alpha_is_left_out() {
        let drop = |form, row: &[u8]| premultiplied(form, row, AlphaPolicy::Ignore);
        assert_eq!(drop(PixelForm::Rgba8, &[64, 32, 0, 128]), [127, 63, 0]);
        assert_eq!(drop(PixelForm::Rgba8, &[200, 9, 1, 100]), [255, 22, 2]);
        assert_eq!(drop(PixelForm::Rgba8, &[9, 9, 9, 0]), [0; 3]);
        let floats = numbers(&[0.001, 0.0005, 0.0, 0.001]);
        assert_eq!(drop(PixelForm::Rgba32F, &floats), [255, 128, 0]);
        let nothing = numbers(&[0.5, 0.5, 0.5, f32::NAN]);
        assert_eq!(drop(PixelForm::Rgba32F, &nothing), [0; 3]);
    }

    fn words(v: &[u16]) -> Vec<u8> {
        v.iter().flat_map(|v| v.to_ne_bytes()).collect()
    }

    fn numbers(v: &[f32]) -> Vec<u8> {
        v.iter().flat_map(|v| v.to_ne_bytes()).collect()
    }

    #[test]
    fn every_form_becomes_rgb() {
        let half = [
            (10 * 128 + 100 * 127 + 127) / 255,
            (20 * 128 + 150 * 127 + 127) / 255,
            (30 * 128 + 200 * 127 + 127) / 255,
        ]
        .map(|v: u32| v as u8);
        assert_eq!(convert(PixelForm::L8, &[7, 9]), [7, 7, 7, 9, 9, 9]);
        assert_eq!(
            convert(PixelForm::La8, &[7, 255, 9, 0]),
            [7, 7, 7, 100, 150, 200]
        );
        assert_eq!(convert(PixelForm::Rgb8, &[1, 2, 3]), [1, 2, 3]);
        assert_eq!(convert(PixelForm::Rgba8, &[10, 20, 30, 128]), half);
        assert_eq!(convert(PixelForm::L16, &words(&[0x12ff])), [0x12; 3]);
        assert_eq!(
            convert(PixelForm::La16, &words(&[0x12ff, 0xff00])),
            [0x12; 3]
        );
        let rgb = words(&[10 << 8 | 255, 20 << 8, 30 << 8 | 1]);
        assert_eq!(convert(PixelForm::Rgb16, &rgb), [10, 20, 30]);
        let rgba = words(&[10 << 8, 20 << 8, 30 << 8, 128 << 8 | 77]);
        assert_eq!(convert(PixelForm::Rgba16, &rgba), half);
        let f = numbers(&[-1.0, 0.5, f32::NAN]);
        assert_eq!(convert(PixelForm::Rgb32F, &f), [0, 128, 0]);
        let f = numbers(&[2.0, 0.0, f32::INFINITY, 1.0]);
        assert_eq!(convert(PixelForm::Rgba32F, &f), [255, 0, 255]);
    }

    #[test]
    fn without_a_background_colours_are_as_stored_whatever_the_alpha() {
        for a in [0u8, 1, 128, 255] {
            assert_eq!(
                dropped(PixelForm::La8, &[7, a, 9, 255 - a]),
                [7, 7, 7, 9, 9, 9]
            );
            assert_eq!(dropped(PixelForm::Rgba8, &[10, 20, 30, a]), [10, 20, 30]);
            let high = u16::from(a) << 8 | 3;
            assert_eq!(dropped(PixelForm::La16, &words(&[0x12ff, high])), [0x12; 3]);
            let rgba = words(&[10 << 8 | 255, 20 << 8, 30 << 8, high]);
            assert_eq!(dropped(PixelForm::Rgba16, &rgba), [10, 20, 30]);
            let rgba = numbers(&[0.5, 2.0, 0.0, f32::from(a) / 255.0]);
            assert_eq!(dropped(PixelForm::Rgba32F, &rgba), [128, 255, 0]);
        }
        // Forms without alpha are the same as with a background.
        assert_eq!(dropped(PixelForm::Rgb8, &[1, 2, 3]), [1, 2, 3]);
        assert_eq!(dropped(PixelForm::L16, &words(&[0x12ff])), [0x12; 3]);
    }

    #[test]
    fn alpha_alone_is_255_where_there_is_none() {
        let alone = |form: PixelForm, row: &[u8]| {
            let mut out = vec![7; row.len() / form.bytes() * 3];
            form.to_rgb8(row, AlphaKind::Straight, AlphaPolicy::AlphaOnly, &mut out);
            out
        };
        assert_eq!(alone(PixelForm::La8, &[7, 9, 1, 0]), [9, 9, 9, 0, 0, 0]);
        assert_eq!(alone(PixelForm::Rgba8, &[1, 2, 3, 4]), [4; 3]);
        assert_eq!(
            alone(PixelForm::Rgba16, &words(&[1, 2, 3, 0x7f03])),
            [0x7f; 3]
        );
        assert_eq!(
            alone(PixelForm::Rgba32F, &numbers(&[0.0, 0.0, 0.0, 0.5])),
            [128; 3]
        );
        assert_eq!(alone(PixelForm::L8, &[1, 2]), [255; 6]);
        assert_eq!(alone(PixelForm::Rgb8, &[1, 2, 3]), [255; 3]);
        assert_eq!(alone(PixelForm::L16, &words(&[1])), [255; 3]);
    }

    #[test]
    fn compositing_rounds_to_the_nearest() {
        for a in 0..=255u8 {
            for v in [0u8, 1, 77, 128, 254, 255] {
                let [got, ..] = BackgroundColor([30; 3]).under([v; 3], a);
                let exact = (f64::from(v) * f64::from(a) + 30.0 * f64::from(255 - a)) / 255.0;
                assert!((f64::from(got) - exact).abs() <= 0.5, "{v} {a}");
            }
        }
    }
}
