//! How images are encoded and resized for a cache, and how users write it.
//!
//! Used in the consumer and in workers. Only sizes and numbers: no pixel, no file.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::Error;

/// The form of an image in a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum CacheEncoding {
    /// The unchanged bytes of the file. Its header must be readable. Not for a source with boxes.
    /// Written `copy`.
    #[default]
    Copy,
    /// A baseline JPEG of the upright RGB image, with chroma at half size (4:2:0). `quality` is 1
    /// to 100. Written `jpeg:90`. `jpeg` alone means [`CacheEncoding::DEFAULT_QUALITY`].
    Jpeg { quality: u8 },
    /// The upright RGB image, u8, as a numpy array (height, width, 3). Its first pixel is at a
    /// multiple of 512 bytes in the shard. Written `raw`.
    Raw,
}

impl CacheEncoding {
    /// The quality of `jpeg` without a number.
    pub const DEFAULT_QUALITY: u8 = 90;

    /// Most bytes of a payload. Exact for `copy` and `raw`. The size is the upright height and
    /// width after the resize. `file`: bytes of the source file.
    pub(crate) fn most_bytes(self, (height, width): (u32, u32), file: u64) -> u64 {
        let (h, w) = (u64::from(height), u64::from(width));
        match self {
            Self::Copy => file,
            Self::Jpeg { .. } => {
                let pixels = h
                    .next_multiple_of(16)
                    .saturating_mul(w.next_multiple_of(16));
                pixels.saturating_mul(3).saturating_add(2048)
            }
            Self::Raw => raw_bytes((height, width)),
        }
    }
}

impl fmt::Display for CacheEncoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Copy => f.write_str("copy"),
            Self::Jpeg { quality } => write!(f, "jpeg:{quality}"),
            Self::Raw => f.write_str("raw"),
        }
    }
}

impl FromStr for CacheEncoding {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = || {
            Error::config(format!(
                "encode '{text}' is unknown: use copy, jpeg, jpeg:1 to jpeg:100, or raw"
            ))
        };
        match text.split_once(':') {
            None if text == "copy" => Ok(Self::Copy),
            None if text == "raw" => Ok(Self::Raw),
            None if text == "jpeg" => Ok(Self::Jpeg {
                quality: Self::DEFAULT_QUALITY,
            }),
            Some(("jpeg", quality)) => match quality.parse() {
                Ok(quality @ 1..=100) => Ok(Self::Jpeg { quality }),
                _ => Err(wrong()),
            },
            _ => Err(wrong()),
        }
    }
}

/// The size of images in a cache. Resized with antialiasing, bilinear, as by the operation
/// `Resize`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum CacheResize {
    /// The shorter side becomes N pixels, and the longer one follows. An image whose shorter side
    /// is at most N is not resized. Written `shorter:256`.
    Shorter(u32),
    /// The longer side becomes N pixels, and the shorter one follows. An image whose longer side is
    /// at most N is not resized. Written `longer:256`.
    Longer(u32),
    /// Exactly this size, whatever the aspect ratio. Smaller images are enlarged. Written
    /// `exact:HEIGHTxWIDTH`.
    Exact { height: u32, width: u32 },
}

impl CacheResize {
    /// The longest side: the encoder's limit for a JPEG.
    pub const MAX_SIDE: u32 = 65_500;

    /// Height and width after the resize of an image of this height and width.
    pub(crate) fn output(self, (height, width): (u32, u32)) -> (u32, u32) {
        let (side, n) = match self {
            Self::Exact { height, width } => return (height, width),
            Self::Shorter(n) => (height.min(width), n),
            Self::Longer(n) => (height.max(width), n),
        };
        match (side > n, side == height) {
            (false, _) => (height, width),
            (true, true) => (n, scale_side(n, width, height)),
            (true, false) => (scale_side(n, height, width), n),
        }
    }
}

/// `side * to / of`, rounded down as torchvision's Resize does, and at least 1.
fn scale_side(to: u32, side: u32, of: u32) -> u32 {
    let followed = u64::from(side) * u64::from(to) / u64::from(of.max(1));
    u32::try_from(followed).unwrap_or(u32::MAX).max(1)
}

impl fmt::Display for CacheResize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shorter(n) => write!(f, "shorter:{n}"),
            Self::Longer(n) => write!(f, "longer:{n}"),
            Self::Exact { height, width } => write!(f, "exact:{height}x{width}"),
        }
    }
}

impl FromStr for CacheResize {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let side = |text: &str| {
            let n = text.parse().ok();
            n.filter(|n| (1..=Self::MAX_SIDE).contains(n))
        };
        let resize = text.split_once(':').and_then(|(kind, size)| match kind {
            "shorter" => side(size).map(Self::Shorter),
            "longer" => side(size).map(Self::Longer),
            "exact" => {
                let (height, width) = size.split_once('x')?;
                Some(Self::Exact {
                    height: side(height)?,
                    width: side(width)?,
                })
            }
            _ => None,
        });
        resize.ok_or_else(|| {
            Error::config(format!(
                "resize must be shorter:N, longer:N or exact:HEIGHTxWIDTH with sides of 1 to {} \
                 pixels, not '{text}'",
                Self::MAX_SIDE
            ))
        })
    }
}

/// Bytes of the header of a raw payload.
pub(crate) const RAW_HEADER: u64 = 512;

/// Bytes of a raw payload of this height and width.
pub(crate) fn raw_bytes((height, width): (u32, u32)) -> u64 {
    let pixels = u64::from(height).saturating_mul(u64::from(width));
    pixels.saturating_mul(3).saturating_add(RAW_HEADER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_are_read_back() {
        for text in ["copy", "raw", "jpeg:1", "jpeg:90", "jpeg:100"] {
            assert_eq!(text.parse::<CacheEncoding>().unwrap().to_string(), text);
        }
        assert_eq!(
            "jpeg".parse::<CacheEncoding>().unwrap(),
            CacheEncoding::Jpeg { quality: 90 }
        );
        for text in ["shorter:256", "longer:1", "exact:224x65500"] {
            assert_eq!(text.parse::<CacheResize>().unwrap().to_string(), text);
        }
        for wrong in ["", "jpg", "jpeg:0", "jpeg:101", "jpeg:", "copy:1", "raw:"] {
            let e = wrong.parse::<CacheEncoding>().unwrap_err();
            assert!(e.is_usage() && e.to_string().contains("copy, jpeg"), "{e}");
        }
        for wrong in [
            "256",
            "shorter",
            "shorter:0",
            "longer:65501",
            "exact:224",
            "exact:1x0",
            "shorter:-1",
        ] {
            let e = wrong.parse::<CacheResize>().unwrap_err();
            assert!(e.is_usage() && e.to_string().contains(wrong), "{e}");
        }
    }

    #[test]
    fn only_exact_enlarges() {
        let shorter = CacheResize::Shorter(256);
        assert_eq!(shorter.output((512, 1024)), (256, 512));
        assert_eq!(shorter.output((1024, 511)), (513, 256));
        assert_eq!(shorter.output((256, 9999)), (256, 9999));
        assert_eq!(shorter.output((3, 2)), (3, 2));
        let longer = CacheResize::Longer(100);
        assert_eq!(longer.output((50, 200)), (25, 100));
        assert_eq!(longer.output((200, 50)), (100, 25));
        assert_eq!(longer.output((60_000, 1)), (100, 1));
        assert_eq!(longer.output((100, 99)), (100, 99));
        let exact = CacheResize::Exact {
            height: 4,
            width: 5,
        };
        assert_eq!(exact.output((1, 1)), (4, 5));
    }
}
