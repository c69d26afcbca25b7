//! The form of a raster in a cache: the bytes of its file, or a format that keeps every number of a
//! resized one.
//!
//! Used in the consumer, which names members and counts bytes, and in workers. Pure.

use std::path::Path;

use crate::data::index::{ARRAY_EXTENSION, IMAGE_EXTENSIONS};
use crate::jobs::encode::encoding::{CacheEncoding, CacheResize, RAW_HEADER, raw_bytes};
use crate::jobs::mask_rule::{MaskRule, MaskType};
use crate::jobs::raster_rule::{
    FlowRule, NumberRule, PairRule, RasterFilter, RasterFloat, RasterNumber, RasterRule,
};
use crate::picture::LabelForm;

/// The extension of Middlebury's files of flows.
const FLOW_EXTENSION: &str = "flo";

/// Bytes of the header of such a file.
const FLOW_HEADER: u64 = 12;

/// Pixels of labels that take a byte in a PNG, and bytes of the rest: usual numbers.
const LABELS_OF_PNG_BYTE: u64 = 20;
const PNG_HEADERS: u64 = 200;

/// The form of a raster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RasterForm {
    /// The bytes of the file.
    Copied,
    /// Labels: a grey PNG of 8 or 16 bits, or one in colours.
    LabelPng(LabelForm),
    /// Whole numbers: a grey PNG of 8 or 16 bits.
    NumberPng,
    /// An array of NumPy of `f32`.
    NumberArray,
    /// Middlebury's format of flows.
    Flow,
    /// A PNG of 8-bit RGB, this many times larger than the image.
    ImagePng { scale: u32 },
    /// The same as an array of NumPy.
    ImageArray { scale: u32 },
}

impl RasterForm {
    /// The form of rasters with this rule in a cache with this encoding and resize. `file`: the path
    /// in the source.
    pub(crate) fn of(
        rule: &RasterRule,
        (encode, resize): (CacheEncoding, Option<CacheResize>),
        file: &Path,
    ) -> Self {
        if resize.is_none() {
            return Self::Copied;
        }
        match rule {
            RasterRule::Mask(rule) => Self::LabelPng(rule.form),
            // A PNG has whole numbers, and this filter makes no others.
            RasterRule::Numbers(rule) if rule.filter != RasterFilter::Bilinear && is_png(file) => {
                Self::NumberPng
            }
            RasterRule::Numbers(_) => Self::NumberArray,
            RasterRule::Flow(_) => Self::Flow,
            RasterRule::Image(rule) => match encode {
                CacheEncoding::Raw => Self::ImageArray { scale: rule.scale },
                CacheEncoding::Copy | CacheEncoding::Jpeg { .. } => {
                    Self::ImagePng { scale: rule.scale }
                }
            },
        }
    }

    /// The extension of its member, if it has one. `file`: the path in the source.
    pub(crate) fn extension(self, file: &Path) -> Option<String> {
        let known = match self {
            Self::Copied => {
                let extension = file.extension()?.to_str()?.to_ascii_lowercase();
                let is_other = [ARRAY_EXTENSION, FLOW_EXTENSION].contains(&extension.as_str());
                let is_known = is_other || IMAGE_EXTENSIONS.contains(&extension.as_str());
                return is_known.then_some(extension);
            }
            Self::LabelPng(_) | Self::NumberPng | Self::ImagePng { .. } => "png",
            Self::NumberArray | Self::ImageArray { .. } => ARRAY_EXTENSION,
            Self::Flow => FLOW_EXTENSION,
        };
        Some(known.to_owned())
    }

    /// Most bytes. `size`: height and width of the image in the cache. `file`: bytes of the file.
    pub(crate) fn most_bytes(self, size: (u32, u32), file: u64) -> u64 {
        match self {
            Self::LabelPng(_) | Self::NumberPng => most_png_bytes(size),
            Self::ImagePng { scale } => most_png_bytes(scaled(size, scale)),
            exact => exact.usual_bytes(size, file),
        }
    }

    /// Usual bytes: exact if [`RasterForm::is_exact`].
    pub(crate) fn usual_bytes(self, size: (u32, u32), file: u64) -> u64 {
        let pixels = |(height, width): (u32, u32)| u64::from(height) * u64::from(width);
        match self {
            Self::Copied => file,
            Self::LabelPng(_) => pixels(size) / LABELS_OF_PNG_BYTE + PNG_HEADERS,
            Self::NumberPng => pixels(size) * 2 + PNG_HEADERS,
            Self::NumberArray => pixels(size) * 4 + RAW_HEADER,
            Self::Flow => pixels(size) * 8 + FLOW_HEADER,
            Self::ImagePng { scale } => pixels(scaled(size, scale)) * 2 + PNG_HEADERS,
            Self::ImageArray { scale } => raw_bytes(scaled(size, scale)),
        }
    }

    /// Whether its bytes follow from its size.
    pub(crate) fn is_exact(self) -> bool {
        match self {
            Self::Copied | Self::NumberArray | Self::Flow | Self::ImageArray { .. } => true,
            Self::LabelPng(_) | Self::NumberPng | Self::ImagePng { .. } => false,
        }
    }
}

/// The rule by which a raster with this rule is resized for a cache. It changes no number that its
/// filter does not mix.
pub(crate) fn resizing_rule(rule: &RasterRule) -> RasterRule {
    match rule {
        RasterRule::Mask(rule) => RasterRule::Mask(MaskRule {
            form: rule.form,
            filter: rule.filter,
            dtype: Some(MaskType::Int32),
            ..MaskRule::default()
        }),
        RasterRule::Numbers(rule) => {
            // A mean must know which numbers are missing. They stay as they are.
            let missing = rule
                .missing
                .filter(|_| rule.filter == RasterFilter::Bilinear);
            RasterRule::Numbers(NumberRule {
                divide: 1.0,
                missing,
                fill: missing.unwrap_or(RasterNumber(f32::NAN)),
                filter: rule.filter,
                dtype: RasterFloat::Float32,
            })
        }
        RasterRule::Flow(rule) => RasterRule::Flow(FlowRule {
            filter: rule.filter,
            ..FlowRule::default()
        }),
        RasterRule::Image(rule) => RasterRule::Image(PairRule {
            scale: rule.scale,
            ..PairRule::default()
        }),
    }
}

fn is_png(file: &Path) -> bool {
    file.extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("png"))
}

/// The height and width of a picture that is this many times larger.
pub(crate) fn scaled((height, width): (u32, u32), scale: u32) -> (u32, u32) {
    (height.saturating_mul(scale), width.saturating_mul(scale))
}

/// Most bytes of a PNG of this height and width, with three bytes or fewer for each pixel.
fn most_png_bytes((height, width): (u32, u32)) -> u64 {
    let row = u64::from(width) * 3 + 1;
    let raw = row.saturating_mul(u64::from(height));
    raw.saturating_add(raw / 8).saturating_add(4096)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_keep_every_number() {
        let resized = (CacheEncoding::Raw, Some(CacheResize::Shorter(9)));
        let form = |rule: &RasterRule, file: &str| RasterForm::of(rule, resized, Path::new(file));
        let depth = RasterRule::Numbers(NumberRule::depth());
        let alpha = RasterRule::Numbers(NumberRule::alpha());
        assert_eq!(form(&depth, "a.PNG"), RasterForm::NumberPng);
        assert_eq!(form(&depth, "a.tiff"), RasterForm::NumberArray);
        // A mean of whole numbers is none.
        assert_eq!(form(&alpha, "a.png"), RasterForm::NumberArray);
        let copied = RasterForm::of(&alpha, (CacheEncoding::Raw, None), Path::new("a.TIFF"));
        assert_eq!(
            copied.extension(Path::new("a.TIFF")).as_deref(),
            Some("tiff")
        );
        assert_eq!(copied.extension(Path::new("a.odd")), None);
        let RasterRule::Numbers(rule) = resizing_rule(&depth) else {
            panic!("{depth:?}");
        };
        assert!(rule.missing.is_none() && rule.divide == 1.0 && rule.fill.0.is_nan());
        let mixed = RasterRule::Numbers(NumberRule {
            missing: Some(RasterNumber(7.0)),
            ..NumberRule::alpha()
        });
        let RasterRule::Numbers(rule) = resizing_rule(&mixed) else {
            panic!("{mixed:?}");
        };
        assert_eq!(
            (rule.missing, rule.fill),
            (Some(RasterNumber(7.0)), RasterNumber(7.0))
        );
    }
}
