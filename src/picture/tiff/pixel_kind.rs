//! The meaning of a TIFF's samples, and their conversion to 8-bit pixels.
//!
//! Pure. The list has Pillow's kinds (`OPEN_INFO` of its TIFF plugin), and a few more.
//!
//! | samples | 8-bit values |
//! |---|---|
//! | 1, 2, 4 bits of grey, and palettes | 0 to 255 |
//! | 12 and 16 bits | their 8 high bits |
//! | signed 16 bits, 32 bits: grey | 0 to 255, clamped, as Pillow |
//! | floats of grey, of 16, 32, 64 bits | the whole part, 0 to 255, clamped |
//! | other floats of these bits | `v * 255`, rounded, clamped |

use half::f16;

use super::directory::ByteOrder;
use super::fault::unsupported;
use crate::error::SampleFault;
use crate::picture::rgb8::{AlphaKind, PixelForm};

/// The meaning of a pixel's samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TiffColors {
    Grey { zero_is_white: bool },
    Palette,
    Rgb,
    Cmyk,
    YCbCr,
}

impl TiffColors {
    pub(super) fn of(photometric: u64) -> Result<Self, SampleFault> {
        Ok(match photometric {
            0 => Self::Grey {
                zero_is_white: true,
            },
            1 => Self::Grey {
                zero_is_white: false,
            },
            2 => Self::Rgb,
            3 => Self::Palette,
            5 => Self::Cmyk,
            6 => Self::YCbCr,
            4 => return Err(unsupported("a transparency mask")),
            8..=10 => return Err(unsupported("colours of CIE Lab")),
            32803 | 34892 => return Err(unsupported("raw values of a camera")),
            32844 | 32845 => return Err(unsupported("logarithmic luminance")),
            other => return Err(unsupported(format!("photometric interpretation {other}"))),
        })
    }

    fn name(self) -> &'static str {
        match self {
            Self::Grey { .. } => "grey",
            Self::Palette => "a palette",
            Self::Rgb => "RGB",
            Self::Cmyk => "CMYK",
            Self::YCbCr => "YCbCr",
        }
    }

    /// Samples of a pixel without extra ones.
    pub(super) fn samples(self) -> u16 {
        match self {
            Self::Grey { .. } | Self::Palette => 1,
            Self::Rgb | Self::YCbCr => 3,
            Self::Cmyk => 4,
        }
    }
}

/// The number format of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SampleFormat {
    Unsigned,
    Signed,
    Float,
}

/// The complete description of a pixel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PixelKind {
    pub(super) colours: TiffColors,
    pub(super) bits: u16,
    pub(super) number: SampleFormat,
    /// Samples of a pixel in the file, including extra ones.
    pub(super) samples: u16,
    /// Index of the alpha sample.
    pub(super) alpha: Option<u16>,
    pub(super) alpha_kind: AlphaKind,
}

impl PixelKind {
    /// `extra`: the kinds of extra samples, if the file states them.
    pub(super) fn of(
        colours: TiffColors,
        bits: u64,
        number: SampleFormat,
        samples: u64,
        extra: Option<&[u64]>,
    ) -> Result<Self, SampleFault> {
        let own = colours.samples();
        if samples < u64::from(own) || samples > 64 {
            return Err(unsupported(format!("{samples} samples a pixel")));
        }
        let samples = samples as u16;
        let served = match (colours, number, bits) {
            (TiffColors::Grey { .. }, SampleFormat::Unsigned, 1 | 2 | 4 | 8 | 12 | 16 | 32)
            | (TiffColors::Grey { .. }, SampleFormat::Signed, 8 | 16 | 32)
            | (TiffColors::Grey { .. } | TiffColors::Rgb, SampleFormat::Float, 16 | 32 | 64)
            | (TiffColors::Palette, SampleFormat::Unsigned, 1 | 2 | 4 | 8)
            | (TiffColors::Rgb | TiffColors::Cmyk, SampleFormat::Unsigned, 8 | 16)
            | (TiffColors::YCbCr, SampleFormat::Unsigned, 8) => bits >= 8 || samples == own,
            _ => false,
        };
        if !served {
            let what = match number {
                SampleFormat::Unsigned => "",
                SampleFormat::Signed => " with a sign",
                SampleFormat::Float => " as floats",
            };
            return Err(unsupported(format!(
                "{} of {samples} samples of {bits} bits{what}",
                colours.name()
            )));
        }
        let (alpha, alpha_kind) = match extra {
            // Programs that write one more sample and do not state its kind mean alpha.
            None if samples == own + 1 && colours != TiffColors::Cmyk => {
                (Some(own), AlphaKind::Straight)
            }
            None => (None, AlphaKind::Straight),
            Some(extra) => {
                let is_alpha = |&(_, &kind): &(u16, &u64)| matches!(kind, 1 | 2 | 999);
                let found = (own..samples).zip(extra).find(is_alpha);
                let kind = match found {
                    Some((_, 1)) => AlphaKind::Premultiplied,
                    _ => AlphaKind::Straight,
                };
                (found.map(|(at, _)| at), kind)
            }
        };
        if alpha.is_some() && matches!(colours, TiffColors::Cmyk | TiffColors::YCbCr) {
            return Err(unsupported(format!("{} and alpha", colours.name())));
        }
        Ok(Self {
            colours,
            bits: bits as u16,
            number,
            samples,
            alpha,
            alpha_kind,
        })
    }

    pub(super) fn form(self) -> PixelForm {
        let is_grey = matches!(self.colours, TiffColors::Grey { .. });
        match (is_grey, self.alpha.is_some()) {
            (true, false) => PixelForm::L8,
            (true, true) => PixelForm::La8,
            (false, false) => PixelForm::Rgb8,
            (false, true) => PixelForm::Rgba8,
        }
    }

    /// Bytes of a row of `pixels` pixels of `samples` samples.
    pub(super) fn row_bytes(self, pixels: u64, samples: u16) -> u64 {
        let bits = pixels.saturating_mul(u64::from(samples) * u64::from(self.bits));
        bits.div_ceil(8)
    }

    /// Sample `at` of a row, as 8 bits; for a palette its index.
    pub(super) fn level(self, row: &[u8], at: usize, order: ByteOrder) -> u8 {
        let bits = usize::from(self.bits);
        if bits < 8 {
            let byte = row[at * bits / 8];
            let shift = 8 - bits - at * bits % 8;
            let most = (1u8 << bits) - 1;
            let value = byte >> shift & most;
            return match self.colours {
                TiffColors::Palette => value,
                _ => value * (255 / most),
            };
        }
        if bits == 12 {
            // Two samples in three bytes, the first in the high bits.
            return match at % 2 {
                0 => row[at / 2 * 3],
                _ => row[at / 2 * 3 + 1] << 4 | row[at / 2 * 3 + 2] >> 4,
            };
        }
        let bytes = &row[at * bits / 8..(at + 1) * bits / 8];
        match (self.number, bytes) {
            (SampleFormat::Unsigned | SampleFormat::Signed, &[v]) => v,
            (SampleFormat::Unsigned, &[a, b]) => match order {
                ByteOrder::Little => b,
                ByteOrder::Big => a,
            },
            (SampleFormat::Signed, &[a, b]) => {
                let v = order.swapped([a, b]);
                i16::from_le_bytes(v).clamp(0, 255) as u8
            }
            (SampleFormat::Unsigned, &[a, b, c, d]) => {
                u32::from_le_bytes(order.swapped([a, b, c, d])).min(255) as u8
            }
            (SampleFormat::Signed, &[a, b, c, d]) => {
                i32::from_le_bytes(order.swapped([a, b, c, d])).clamp(0, 255) as u8
            }
            (SampleFormat::Float, &[a, b]) => {
                self.float(f16::from_le_bytes(order.swapped([a, b])).to_f32())
            }
            (SampleFormat::Float, &[a, b, c, d]) => {
                self.float(f32::from_le_bytes(order.swapped([a, b, c, d])))
            }
            (SampleFormat::Float, &[a, b, c, d, e, f, g, h]) => {
                let v = f64::from_le_bytes(order.swapped([a, b, c, d, e, f, g, h]));
                self.float(v as f32)
            }
            // Not a supported kind.
            _ => 0,
        }
    }

    /// Casts clamp, and convert NaN to 0.
    fn float(self, v: f32) -> u8 {
        match self.colours {
            // As in Pillow.
            TiffColors::Grey { .. } => v as u8,
            // As in `rgb8`.
            _ => (v * 255.0 + 0.5) as u8,
        }
    }
}

impl ByteOrder {
    /// The bytes of a number, the lowest first.
    fn swapped<const N: usize>(self, mut bytes: [u8; N]) -> [u8; N] {
        if self == Self::Big {
            bytes.reverse();
        }
        bytes
    }
}
