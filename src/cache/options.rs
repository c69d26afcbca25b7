//! By what a cache is built, and how the command line and the manifest spell it.
//!
//! Plain data, in the consumer.

use std::fmt;

use crate::data::index::Index;
use crate::data::shard::manifest::OptionsEntry;
use crate::error::{self, Error};
pub use crate::jobs::encode::encoding::{CacheResize, Encoding};
use crate::picture::Limits;

/// What happens when a sample of the source gives no picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnBadSample {
    /// The build stops and names the first in the cache's order. Shards that
    /// are complete stay. A source of damaged shards is refused.
    #[default]
    Stop,
    /// The sample is left out, and listed with the reason in the manifest of
    /// its shard, where the fault follows from the file's bytes, or from its absence
    /// when all headers were read. What may pass (time that ran out, killed workers,
    /// failing storage, a file that may not be read, one that goes while the cache is
    /// built) stops the build all the same, and so does a source of which no header
    /// can be read. What damaged shards of the source have lost is counted in the
    /// report, and in the cache.
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
/// and how fast, is [`crate::cache::Builder`]'s.
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
        let limits = Limits::default();
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
                "shard_size is {}: use at least {}",
                error::room(self.shard_size),
                error::size(Self::MIN_SHARD)
            )));
        }
        if let Encoding::Jpeg { quality } = self.encode
            && !(1..=100).contains(&quality)
        {
            return Err(Error::config(format!(
                "the JPEG quality is {quality}: use 1 to 100"
            )));
        }
        if let Some(resize) = self.resize {
            if self.encode == Encoding::Copy {
                return Err(Error::config(format!(
                    "encode copy keeps the files as they are, so resize {resize} is not \
                     possible: use encode jpeg or raw, or remove resize"
                )));
            }
            // A value that was put together by hand is held to what is parsed.
            resize.to_string().parse::<CacheResize>()?;
        }
        Ok(())
    }

    /// # Errors
    /// Options that cannot work with this source.
    pub(crate) fn check_with(&self, index: &Index) -> Result<(), Error> {
        match self.encode {
            Encoding::Copy if index.has_boxes() => Err(Error::config(
                "encode copy keeps the files as they are, so the `boxes` of the source would be \
                 lost: use encode jpeg or raw, or remove boxes",
            )),
            _ => Ok(()),
        }
    }

    /// What decoding one picture may take.
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            max_pixels: self.max_pixels,
            max_scratch: self.max_scratch,
        }
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
                "shard_size is 3.99 KiB: use at least 4 KiB",
            ),
            (
                BuildOptions {
                    encode: Encoding::Jpeg { quality: 0 },
                    ..options
                },
                "the JPEG quality is 0: use 1 to 100",
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
