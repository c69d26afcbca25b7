//! By what a cache is built, and how the command line and the manifest spell it.
//!
//! Plain data, in the consumer.

use std::fmt;

use crate::data::index::Index;
use crate::data::shard::manifest::OptionsEntry;
use crate::error::Error;
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
    /// [`BuildOptions::MIN_SHARD`]. None: 256 MiB, or an eighth of the source's samples
    /// where that is less, so that a build that is broken off loses little.
    pub shard_size: Option<u64>,
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
            shard_size: None,
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
    /// Most bytes of a shard, where no size is given.
    const MOST_BYTES: u64 = 256 << 20;
    /// Shards that a source of as many samples has at least, where no size is given.
    const LEAST_SHARDS: u64 = 8;

    /// # Errors
    /// Options that cannot work, alone or together.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if let Some(bytes) = self.shard_size.filter(|bytes| *bytes < Self::MIN_SHARD) {
            return Err(Error::config(format!(
                "shard_size is {bytes} bytes; give at least {}",
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

    /// # Errors
    /// Options that cannot work with this source.
    pub(crate) fn check_with(&self, index: &Index) -> Result<(), Error> {
        match self.encode {
            Encoding::Copy if index.has_boxes() => Err(Error::config(
                "encode copy keeps the files as they are, and the source has `boxes`, which would \
                 be lost: take encode jpeg or raw, or leave boxes out",
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

    /// Bytes that a shard does not exceed.
    pub(crate) fn shard_bytes(&self) -> u64 {
        self.shard_size.unwrap_or(Self::MOST_BYTES)
    }

    /// Places of the order that go into one shard at most, of a source of so many
    /// samples; none where a size was given. Each of the places 0, n, 2n, ... begins a
    /// shard, whatever stands before it: where a build goes on makes no difference.
    pub(crate) fn shard_samples(&self, samples: u64) -> Option<u64> {
        match self.shard_size {
            Some(_) => None,
            None => Some((samples / Self::LEAST_SHARDS).max(1)),
        }
    }

    /// As the manifest of a cache of so many samples spells them.
    pub(crate) fn entry(&self, samples: u64) -> OptionsEntry {
        OptionsEntry {
            encode: self.encode.to_string(),
            resize: self.resize.map(|r| r.to_string()),
            shard_size: self.shard_bytes(),
            shard_samples: self.shard_samples(samples),
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
    fn a_source_of_eight_samples_has_eight_shards_unless_a_size_is_given() {
        let options = BuildOptions::default();
        for samples in [1u64, 7, 8, 9, 15, 16, 17, 1000, 1_281_167] {
            let each = options.shard_samples(samples).unwrap();
            let shards = samples.div_ceil(each);
            assert!(
                shards >= samples.min(8) && shards < 16,
                "{samples}: {shards}"
            );
        }
        let given = BuildOptions {
            shard_size: Some(1 << 30),
            ..options
        };
        assert_eq!(
            (given.shard_samples(9), given.shard_bytes()),
            (None, 1 << 30)
        );
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
                    shard_size: Some(4095),
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
