//! By what a cache is built, and how the command line and the manifest spell it. `BuildOptions` is
//! the definition of its options: flags and docs/options.md follow from it, and Python's keywords
//! are compared with it. Those of processes and of the folder (`num_workers`, `row_limit`,
//! `sandbox`, `force`, `shard`, `finish`, `stage_dir`) are not in it: `Builder` takes them, and
//! `bin/featherload/cache/build.rs` has their flags.
//!
//! Plain data, in the consumer.

use std::fmt;
use std::ops::Range;

use serde::Deserialize;

use crate::data::index::Index;
use crate::data::shard::manifest::OptionsEntry;
use crate::error::{self, Error};
pub use crate::jobs::encode::encoding::{CacheEncoding, CacheResize};
#[cfg(feature = "cli")]
use crate::options::cli::{self, one_of};
#[cfg(feature = "cli")]
use crate::options::units;
use crate::picture::PictureLimits;

/// What happens when a sample of the source gives no picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
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

/// Which part of a cache a call makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum BuildPart {
    /// All that is missing, then index and manifest.
    #[default]
    All,
    /// The shards of one share; neither index nor manifest. Needs
    /// [`BuildOptions::shard_samples`]. Any number of processes, on any machines that see the
    /// same folder, may make shares at a time, the same one too: each shard has the same
    /// bytes. With as many shares as shards, share k is shard k.
    Share {
        /// From 0.
        number: u64,
        /// How many shares there are; at least 1. Those without a shard make nothing.
        of: u64,
    },
    /// Index and manifest, once all shards are there. Needs
    /// [`BuildOptions::shard_samples`]. Makes no shard.
    Finish,
}

impl BuildPart {
    /// # Errors
    /// The share does not exist, or a part of a cache whose shards depend on each other.
    pub(crate) fn check(self, options: &BuildOptions, force: bool) -> Result<(), Error> {
        let option = match self {
            Self::All => return Ok(()),
            Self::Share { number, of } if number >= of => {
                return Err(Error::option(
                    "shard",
                    format!("`shard` is {number} of {of}: shares count from 0"),
                ));
            }
            Self::Share { .. } => "shard",
            Self::Finish => "finish",
        };
        if options.shard_samples.is_none() {
            return Err(Error::option(
                option,
                format!(
                    "`{option}` needs shard_samples: without it a shard depends on those before \
                     it. Give the number of samples of a shard, the same to every call"
                ),
            ));
        }
        if force {
            return Err(Error::option(
                "force",
                format!(
                    "`force` replaces shards that others make meanwhile, so it cannot go with \
                     {option}: remove one of them"
                ),
            ));
        }
        Ok(())
    }

    /// The shards of this part, of so many.
    pub(crate) fn shards(self, shards: u64) -> Range<u64> {
        let Self::Share { number, of } = self else {
            return 0..shards;
        };
        let begin = |n: u64| (u128::from(shards) * u128::from(n) / u128::from(of.max(1))) as u64;
        begin(number)..begin(number.saturating_add(1))
    }
}

/// What the content of a cache follows from, beside its source: the definition of each option.
/// Who makes the cache, and how fast, is [`crate::cache::CacheBuilder`]'s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "cli", derive(clap::Args))]
pub struct BuildOptions {
    /// What pictures are written as: copy, jpeg:QUALITY or raw.
    ///
    /// `copy` keeps the files' bytes. `jpeg` has a quality of 1 to 100, 90 where none is
    /// given, and 4:2:0. `raw` is decoded RGB, u8, as NumPy arrays.
    #[cfg_attr(feature = "cli", arg(long, value_name = "HOW", default_value_t, help_heading = cli::RECIPE))]
    pub encode: CacheEncoding,

    /// The size of pictures: shorter:N, longer:N or exact:HEIGHTxWIDTH.
    ///
    /// By antialiased bilinear filtering. N is the pixels of that side; smaller pictures
    /// stay as they are. Not with `copy`.
    #[cfg_attr(feature = "cli", arg(long, value_name = "SIZE", help_heading = cli::RECIPE))]
    pub resize: Option<CacheResize>,

    /// Write samples in a random order, of this seed (default: the source's order).
    #[cfg_attr(feature = "cli", arg(long, value_name = "SEED", help_heading = cli::ORDER))]
    pub shuffle: Option<u64>,

    /// What a sample that gives no picture does.
    ///
    /// It ends the build (stop), or is left out and listed in its shard's manifest (skip).
    /// So does a damaged tar of SRC: it ends
    /// the build, or what it has lost is counted. What may pass (time that ran
    /// out, killed workers, failing storage, a file that may not be read or goes while
    /// the cache is built) ends the build in any case.
    #[cfg_attr(feature = "cli", arg(long, default_value_t, value_parser = one_of::<OnBadSample>(&["stop", "skip"]), help_heading = cli::LIMITS))]
    pub on_error: OnBadSample,

    /// Most pixels that an image may have.
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", default_value_t = PictureLimits::default().max_pixels, help_heading = cli::LIMITS))]
    pub max_pixels: u64,

    /// Most memory that decoding one image may take, such as 256M.
    #[cfg_attr(feature = "cli", arg(long, value_name = "SIZE", default_value = "512M", value_parser = units::bytes, help_heading = cli::LIMITS))]
    pub max_scratch: u64,

    /// Most bytes of a shard, such as 512M [256M, in at least eight shards].
    ///
    /// One sample is in a shard at least. Where no size is given, a shard has an eighth of
    /// the samples at most, so that a kill costs little.
    #[cfg_attr(feature = "cli", arg(long, value_name = "SIZE", value_parser = units::shard_bytes, help_heading = cli::OUTPUT))]
    pub shard_size: Option<u64>,

    /// Make each shard of so many samples of SRC, so that it can be made alone.
    ///
    /// Shard K is made of the samples from K x N on, in the order of the cache, and its members
    /// are named by place. So its bytes follow from SRC, options and K, whatever is left out of
    /// other shards. Not with --shard-size.
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", conflicts_with = "shard_size", help_heading = cli::OUTPUT))]
    pub shard_samples: Option<u64>,
}

impl Default for BuildOptions {
    fn default() -> Self {
        let limits = PictureLimits::default();
        Self {
            encode: CacheEncoding::default(),
            resize: None,
            shard_size: None,
            shard_samples: None,
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
                "shard_size is {}: use at least {}",
                error::size_rounded_down(bytes),
                error::size(Self::MIN_SHARD)
            )));
        }
        if self.shard_samples == Some(0) {
            return Err(Error::option(
                "shard_samples",
                "`shard_samples` is 0: use at least 1",
            ));
        }
        if self.shard_samples.is_some() && self.shard_size.is_some() {
            return Err(Error::option(
                "shard_samples",
                "`shard_samples` and shard_size both say where a shard ends: use one of them",
            ));
        }
        if let CacheEncoding::Jpeg { quality } = self.encode
            && !(1..=100).contains(&quality)
        {
            return Err(Error::config(format!(
                "the JPEG quality is {quality}: use 1 to 100"
            )));
        }
        if let Some(resize) = self.resize {
            if self.encode == CacheEncoding::Copy {
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
            CacheEncoding::Copy if index.has_boxes() => Err(Error::config(
                "encode copy keeps the files as they are, so the `boxes` of the source would be \
                 lost: use encode jpeg or raw, or remove boxes",
            )),
            _ => Ok(()),
        }
    }

    /// What decoding one picture may take.
    pub(crate) fn decode_limits(&self) -> PictureLimits {
        PictureLimits {
            max_pixels: self.max_pixels,
            max_scratch: self.max_scratch,
        }
    }

    /// Bytes that a shard does not exceed.
    pub(crate) fn shard_bytes(&self) -> u64 {
        match self.shard_samples {
            Some(_) => u64::MAX,
            None => self.shard_size.unwrap_or(Self::MOST_BYTES),
        }
    }

    /// Places of the order that go into one shard at most, of a source of so many
    /// samples; none where a size was given. Each of the places 0, n, 2n, ... begins a
    /// shard, whatever stands before it: where a build goes on makes no difference.
    pub(crate) fn most_shard_places(&self, samples: u64) -> Option<u64> {
        match (self.shard_samples, self.shard_size) {
            (Some(places), _) => Some(places),
            (None, Some(_)) => None,
            (None, None) => Some((samples / Self::LEAST_SHARDS).max(1)),
        }
    }

    /// As the manifest of a cache of so many samples spells them.
    pub(crate) fn entry(&self, samples: u64) -> OptionsEntry {
        OptionsEntry {
            encode: self.encode.to_string(),
            resize: self.resize.map(|r| r.to_string()),
            shard_size: match self.shard_samples {
                Some(_) => OptionsEntry::NO_SIZE,
                None => self.shard_bytes(),
            },
            shard_samples: self.most_shard_places(samples),
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
            let each = options.most_shard_places(samples).unwrap();
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
            (given.most_shard_places(9), given.shard_bytes()),
            (None, 1 << 30)
        );
    }

    #[test]
    fn shares_have_each_shard_once() {
        for shards in [0u64, 1, 7, 10, 1000, u64::MAX] {
            for of in [1u64, 2, 3, 10, 1001] {
                let mut next = 0;
                for number in 0..of {
                    let share = BuildPart::Share { number, of }.shards(shards);
                    assert_eq!(share.start, next);
                    assert!(share.end - share.start <= shards.div_ceil(of));
                    next = share.end;
                }
                assert_eq!(next, shards);
            }
        }
        let third = BuildPart::Share { number: 3, of: 10 };
        assert_eq!(third.shards(10), 3..4);
    }

    #[test]
    fn parts_that_cannot_work_are_refused() {
        let options = BuildOptions {
            shard_samples: Some(5),
            ..BuildOptions::default()
        };
        let share = |number, of| BuildPart::Share { number, of };
        share(1, 2).check(&options, false).unwrap();
        BuildPart::Finish.check(&options, false).unwrap();
        BuildPart::All
            .check(&BuildOptions::default(), true)
            .unwrap();
        for (part, options, force, named) in [
            (share(2, 2), options, false, "`shard` is 2 of 2"),
            (share(0, 0), options, false, "`shard` is 0 of 0"),
            (
                share(0, 2),
                BuildOptions::default(),
                false,
                "`shard` needs shard_samples",
            ),
            (
                BuildPart::Finish,
                BuildOptions::default(),
                false,
                "`finish` needs shard_samples",
            ),
            (BuildPart::Finish, options, true, "cannot go with finish"),
        ] {
            let e = part.check(&options, force).unwrap_err();
            assert!(e.is_usage() && e.to_string().contains(named), "{e}");
        }
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
                "shard_size is 3.99 KiB: use at least 4 KiB",
            ),
            (
                BuildOptions {
                    shard_samples: Some(0),
                    ..options
                },
                "`shard_samples` is 0: use at least 1",
            ),
            (
                BuildOptions {
                    shard_samples: Some(9),
                    shard_size: Some(1 << 20),
                    ..options
                },
                "`shard_samples` and shard_size both say",
            ),
            (
                BuildOptions {
                    encode: CacheEncoding::Jpeg { quality: 0 },
                    ..options
                },
                "the JPEG quality is 0: use 1 to 100",
            ),
            (
                BuildOptions {
                    encode: CacheEncoding::Raw,
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
