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

/// The reaction to a sample of the source that cannot be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnBadSample {
    /// The build stops. The error names the first bad sample in the order of the cache. Complete
    /// shards stay. A source with damaged shards is rejected.
    #[default]
    Stop,
    /// The sample is skipped. The manifest of its shard lists it with the reason.
    ///
    /// This holds for permanent faults: bad bytes in the file, or a file that is already missing
    /// when all headers are read. Temporary faults stop the build all the same: timeouts, killed
    /// workers, failing storage, unreadable files, and files that disappear during the build. So
    /// does a source without any readable header. The report and the cache count what damaged
    /// shards of the source have lost.
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

/// The part of a cache that a call builds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum BuildPart {
    /// All missing shards, then index and manifest.
    #[default]
    All,
    /// The shards of one share, without index and manifest. Needs [`BuildOptions::shard_samples`].
    /// Any number of processes, on any machines that see the same folder, may build shares at a
    /// time, also the same share: each shard has the same bytes. With as many shares as shards,
    /// share k is shard k.
    Share {
        /// The number of the share, from 0.
        number: u64,
        /// The number of shares, at least 1. A share without a shard builds nothing.
        of: u64,
    },
    /// Index and manifest, when all shards are complete. Needs [`BuildOptions::shard_samples`].
    /// Builds no shard.
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

    /// The shards of this part. `shards`: the number of shards of the cache.
    pub(crate) fn shards(self, shards: u64) -> Range<u64> {
        let Self::Share { number, of } = self else {
            return 0..shards;
        };
        let begin = |n: u64| (u128::from(shards) * u128::from(n) / u128::from(of.max(1))) as u64;
        begin(number)..begin(number.saturating_add(1))
    }
}

/// The options that, together with the source, determine the bytes of a cache.
/// [`crate::cache::CacheBuilder`] has the options of the process: workers, limits, folders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "cli", derive(clap::Args))]
pub struct BuildOptions {
    /// The encoding of images: copy, jpeg:QUALITY or raw.
    ///
    /// `copy` keeps the bytes of the files. `jpeg` has a quality of 1 to 100 (default 90) and 4:2:0
    /// chroma. `raw` is decoded RGB, u8, as NumPy arrays.
    #[cfg_attr(feature = "cli", arg(long, value_name = "HOW", default_value_t, help_heading = cli::RECIPE))]
    pub encode: CacheEncoding,

    /// The size of images: shorter:N, longer:N or exact:HEIGHTxWIDTH.
    ///
    /// The filter is antialiased bilinear. N is the number of pixels of that side. Smaller images
    /// keep their size. Not with `copy`.
    #[cfg_attr(feature = "cli", arg(long, value_name = "SIZE", help_heading = cli::RECIPE))]
    pub resize: Option<CacheResize>,

    /// Seed of a random order of the samples (default: the order of the source).
    #[cfg_attr(feature = "cli", arg(long, value_name = "SEED", help_heading = cli::ORDER))]
    pub shuffle: Option<u64>,

    /// The reaction to a sample that cannot be decoded.
    ///
    /// `stop` ends the build. `skip` skips the sample, and lists it in the manifest of its shard.
    /// The same holds for a damaged tar of SRC: `skip` counts what it has lost. Temporary faults
    /// end the build in any case: timeouts, killed workers, failing storage, unreadable files,
    /// files that disappear during the build.
    #[cfg_attr(feature = "cli", arg(long, default_value_t, value_parser = one_of::<OnBadSample>(&["stop", "skip"]), help_heading = cli::LIMITS))]
    pub on_error: OnBadSample,

    /// Largest number of pixels of an image.
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", default_value_t = PictureLimits::default().max_pixels, help_heading = cli::LIMITS))]
    pub max_pixels: u64,

    /// Largest memory to decode one image, such as 256M.
    #[cfg_attr(feature = "cli", arg(long, value_name = "SIZE", default_value = "512M", value_parser = units::bytes, help_heading = cli::LIMITS))]
    pub max_scratch: u64,

    /// Largest size of a shard, such as 512M [256M, in at least eight shards].
    ///
    /// A shard has at least one sample. Without this option a shard has at most an eighth of the
    /// samples, so that a kill loses little work.
    #[cfg_attr(feature = "cli", arg(long, value_name = "SIZE", value_parser = units::shard_bytes, help_heading = cli::OUTPUT))]
    pub shard_size: Option<u64>,

    /// Number of samples of SRC for each shard, so that shards can be built independently.
    ///
    /// Shard K has the samples from K x N on, in the order of the cache. Its members are named by
    /// position. So its bytes depend on SRC, options and K only, also when other shards skip
    /// samples. Not with --shard-size.
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
    /// Largest size of a shard without `shard_size`, in bytes.
    const MOST_BYTES: u64 = 256 << 20;
    /// Smallest number of shards without `shard_size`, if the source has as many samples.
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

    /// The limits of decoding one image.
    pub(crate) fn decode_limits(&self) -> PictureLimits {
        PictureLimits {
            max_pixels: self.max_pixels,
            max_scratch: self.max_scratch,
        }
    }

    /// The largest size of a shard, in bytes.
    pub(crate) fn shard_bytes(&self) -> u64 {
        match self.shard_samples {
            Some(_) => u64::MAX,
            None => self.shard_size.unwrap_or(Self::MOST_BYTES),
        }
    }

    /// The largest number of positions of the order in one shard, for a source of `samples`
    /// samples. None if `shard_size` is given. Each of the positions 0, n, 2n, ... begins a shard,
    /// whatever comes before it. So a resumed build has the same shards.
    pub(crate) fn most_shard_places(&self, samples: u64) -> Option<u64> {
        match (self.shard_samples, self.shard_size) {
            (Some(places), _) => Some(places),
            (None, Some(_)) => None,
            (None, None) => Some((samples / Self::LEAST_SHARDS).max(1)),
        }
    }

    /// The options as the manifest of a cache of `samples` samples states them.
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
