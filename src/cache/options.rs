//! By what a cache is built, and how the command line and the manifest spell it.
//!
//! Plain data, in the consumer.

use std::fmt;
use std::str::FromStr;

use crate::error::Error;
use crate::shard::manifest::OptionsEntry;

/// What a sample's picture is in a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Encoding {
    /// The file's bytes as they are; its header must be readable. Spelled `copy`.
    #[default]
    Copy,
    /// A baseline JPEG, chroma at half size (4:2:0), of the upright RGB picture;
    /// `quality` is 1 to 100. Spelled `jpeg:90`; `jpeg` alone is
    /// [`Encoding::DEFAULT_QUALITY`].
    Jpeg { quality: u8 },
    /// The upright RGB picture, u8, as a numpy array (height, width, 3) whose
    /// first pixel lies at a multiple of 512 bytes of the shard. Spelled `raw`.
    Raw,
}

impl Encoding {
    /// The quality of `jpeg` without a number.
    pub const DEFAULT_QUALITY: u8 = 90;
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Copy => f.write_str("copy"),
            Self::Jpeg { quality } => write!(f, "jpeg:{quality}"),
            Self::Raw => f.write_str("raw"),
        }
    }
}

impl FromStr for Encoding {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = || {
            Error::config(format!(
                "encode is copy, jpeg, jpeg:1 to jpeg:100, or raw, not '{text}'"
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

/// To what size pictures are brought before they are written: antialiased
/// bilinear, as the operation `Resize` does it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheResize {
    /// The shorter side becomes N pixels, the longer one follows; a picture
    /// whose shorter side is not over N stays as it is. Spelled `shorter:256`.
    Shorter(u32),
    /// The longer side becomes N pixels, the shorter one follows; a picture
    /// whose longer side is not over N stays as it is. Spelled `longer:256`.
    Longer(u32),
    /// This size, whatever the shape was: smaller pictures are enlarged.
    /// Spelled `exact:HEIGHTxWIDTH`.
    Exact { height: u32, width: u32 },
}

impl CacheResize {
    /// The longest side that may be asked for: what JPEG holds.
    pub const MAX_SIDE: u32 = 65_535;

    /// Height and width of the picture that one of `height` x `width` becomes.
    pub(crate) fn output(self, (height, width): (u32, u32)) -> (u32, u32) {
        let (short, long) = (height.min(width), height.max(width));
        match self {
            Self::Exact { height, width } => (height, width),
            Self::Shorter(n) if short > n => {
                let other = follow(n, long, short);
                if height <= width {
                    (n, other)
                } else {
                    (other, n)
                }
            }
            Self::Longer(n) if long > n => {
                let other = follow(n, short, long);
                if height >= width {
                    (n, other)
                } else {
                    (other, n)
                }
            }
            Self::Shorter(_) | Self::Longer(_) => (height, width),
        }
    }
}

/// `side * to / of`, rounded down as torchvision's Resize does, and at least 1.
fn follow(to: u32, side: u32, of: u32) -> u32 {
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
                "resize is shorter:N, longer:N or exact:HEIGHTxWIDTH with sides of 1 to {} \
                 pixels, not '{text}'",
                Self::MAX_SIDE
            ))
        })
    }
}

/// What happens when a sample of the source gives no picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnBadSample {
    /// The build stops and names the first in the cache's order. Shards that
    /// are complete stay.
    #[default]
    Stop,
    /// The sample is left out, and listed with the reason in the manifest of
    /// its shard.
    Skip,
}

impl fmt::Display for OnBadSample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stop => "stop",
            Self::Skip => "skip",
        })
    }
}

/// What the content of a cache follows from, beside its source. Who makes it,
/// and how fast, is [`super::Builder`]'s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BuildOptions {
    pub encode: Encoding,
    /// None = pictures keep their size. Not with [`Encoding::Copy`].
    pub resize: Option<CacheResize>,
    /// Bytes that a shard of more than one sample does not exceed; at least
    /// [`BuildOptions::MIN_SHARD`].
    pub shard_size: u64,
    /// The seed of a random order of the samples; none = the source's order.
    pub shuffle: Option<u64>,
    pub on_error: OnBadSample,
    /// Most pixels that a picture may have.
    pub max_pixels: u64,
    /// Most bytes that a worker may take to decode one picture.
    pub max_scratch: u64,
}

impl Default for BuildOptions {
    fn default() -> Self {
        let limits = crate::picture::Limits::default();
        Self {
            encode: Encoding::default(),
            resize: None,
            shard_size: 256 << 20,
            shuffle: None,
            on_error: OnBadSample::default(),
            max_pixels: limits.max_pixels,
            max_scratch: limits.max_scratch,
        }
    }
}

impl BuildOptions {
    /// The smallest `shard_size`: the blocks of one empty member and the end.
    pub const MIN_SHARD: u64 = 4096;

    /// # Errors
    /// Options that cannot work, alone or together.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.shard_size < Self::MIN_SHARD {
            return Err(Error::config(format!(
                "shard_size is {} bytes; give at least {}",
                self.shard_size,
                Self::MIN_SHARD
            )));
        }
        if let Encoding::Jpeg { quality } = self.encode
            && !(1..=100).contains(&quality)
        {
            return Err(Error::config(format!(
                "the quality of a JPEG is 1 to 100, not {quality}"
            )));
        }
        if let Some(resize) = self.resize {
            if self.encode == Encoding::Copy {
                return Err(Error::config(format!(
                    "encode copy keeps the files as they are, so resize {resize} cannot be done: \
                     take encode jpeg or raw, or leave resize out"
                )));
            }
            // A value that was put together by hand is held to what is parsed.
            resize.to_string().parse::<CacheResize>()?;
        }
        Ok(())
    }

    /// As the manifest spells them.
    pub(crate) fn entry(&self) -> OptionsEntry {
        OptionsEntry {
            encode: self.encode.to_string(),
            resize: self.resize.map(|r| r.to_string()),
            shard_size: self.shard_size,
            shuffle: self.shuffle,
            on_error: self.on_error.to_string(),
            max_pixels: self.max_pixels,
            max_scratch: self.max_scratch,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_are_read_back() {
        for text in ["copy", "raw", "jpeg:1", "jpeg:90", "jpeg:100"] {
            assert_eq!(text.parse::<Encoding>().unwrap().to_string(), text);
        }
        assert_eq!(
            "jpeg".parse::<Encoding>().unwrap(),
            Encoding::Jpeg { quality: 90 }
        );
        for text in ["shorter:256", "longer:1", "exact:224x65535"] {
            assert_eq!(text.parse::<CacheResize>().unwrap().to_string(), text);
        }
        for wrong in ["", "jpg", "jpeg:0", "jpeg:101", "jpeg:", "copy:1", "raw:"] {
            let e = wrong.parse::<Encoding>().unwrap_err();
            assert!(e.is_usage() && e.to_string().contains("copy, jpeg"), "{e}");
        }
        for wrong in [
            "256",
            "shorter",
            "shorter:0",
            "longer:65536",
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
        assert_eq!(shorter.output((1024, 511)), (512, 256).max((513, 256)));
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

    #[test]
    fn what_cannot_work_is_refused() {
        let options = BuildOptions::default();
        options.check().unwrap();
        for (wrong, named) in [
            (
                BuildOptions {
                    resize: Some(CacheResize::Shorter(256)),
                    ..options
                },
                "resize shorter:256",
            ),
            (
                BuildOptions {
                    shard_size: 4095,
                    ..options
                },
                "4095",
            ),
            (
                BuildOptions {
                    encode: Encoding::Jpeg { quality: 0 },
                    ..options
                },
                "not 0",
            ),
            (
                BuildOptions {
                    encode: Encoding::Raw,
                    resize: Some(CacheResize::Longer(0)),
                    ..options
                },
                "longer:0",
            ),
        ] {
            let e = wrong.check().unwrap_err();
            assert!(e.is_usage() && e.to_string().contains(named), "{e}");
        }
    }
}
