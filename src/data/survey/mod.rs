//! The headers of all images of a data set: formats, sizes, orientations, and unreadable files.
//!
//! Runs in the consumer. It opens every file and reads its header, never a pixel. Its threads end
//! before the call returns, so a caller with one thread has one thread again. Files are read, not
//! mapped, because a mapped file that shrinks would kill this process. A broken file is a finding,
//! not an error. So is an image over the limits of a run.
//!
//! Memory: 8 bytes for each sample, in shared memory, and 8 more during the call. Paths are kept
//! only for the first [`HeaderSurvey::MAX_FAULTS`] unreadable files.
//! ```
//! # fn main() -> featherload::Result<()> {
//! # let dir = tempfile::tempdir().unwrap();
//! # std::fs::write(dir.path().join("half.jpg"), b"\xff\xd8\xff").unwrap();
//! # let src = dir.path();
//! use featherload::{Source, survey::HeaderSurvey};
//!
//! let (index, _) = Source::detect(src)?.open()?;
//! let survey = HeaderSurvey::of(&index)?;
//! println!("{} of {} have a header", survey.readable, survey.samples);
//! for fault in &survey.faults {
//!     println!("{}: {}", fault.path.display(), fault.reason);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! - `scan`: reads headers with threads; `file_range`: headers of samples in shards;
//! - `statistics`: summary numbers of all sizes.

mod file_range;
mod scan;
mod statistics;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::PathBuf;

use serde::Serialize;

use crate::data::index::{Index, lossy};
use crate::data::sample_sizes::SampleSizes;
use crate::error::{FaultKind, Result, SampleFault};
pub use crate::picture::FileFormat;
use crate::picture::OrientationMode;
use crate::picture::PictureLimits;
use crate::picture::read_header::PictureHeader;
use scan::ScanEvent;
pub(crate) use scan::{JpegFile, header_at, thread_count};

pub use statistics::{PictureSize, SizeQuantiles, SizeStatistics};

/// The findings over all samples of an index.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct HeaderSurvey {
    /// Number of samples in the index.
    pub samples: u64,
    /// Samples whose header was read and is within the limits. Their pixels were not decoded.
    pub readable: u64,
    /// All other samples.
    pub unreadable: u64,
    /// Bytes of the readable files.
    pub encoded_bytes: u64,
    /// Readable samples of each format, by content.
    pub formats: BTreeMap<FileFormat, u64>,
    /// Number of samples for each EXIF orientation, by the value of the tag. The normal
    /// orientation, 1, is left out.
    pub orientations: BTreeMap<u8, u64>,
    /// Upright sizes of the images or of their boxes. `None` if no header could be read.
    pub sizes: Option<SizeStatistics>,
    /// Number of unreadable samples of each kind of fault.
    #[serde(serialize_with = "by_name")]
    pub fault_kinds: BTreeMap<u8, u64>,
    /// The unreadable samples with the lowest ids, at most [`HeaderSurvey::MAX_FAULTS`].
    pub faults: Vec<SurveyFault>,
    #[serde(skip)]
    heights_and_widths: SampleSizes,
}

/// Limits on an image that counts as readable. The defaults are those of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SurveyOptions {
    /// Maximum number of pixels. Default 178,956,970, as Pillow's.
    pub max_pixels: u64,
    /// Maximum number of bytes that a worker may need to decode the image, as far as its header
    /// shows (the layers of an OpenEXR). Default 512 MiB.
    pub max_scratch: u64,
}

impl Default for SurveyOptions {
    fn default() -> Self {
        let PictureLimits {
            max_pixels,
            max_scratch,
        } = PictureLimits::default();
        Self {
            max_pixels,
            max_scratch,
        }
    }
}

/// A sample whose header could not be read, or is over a limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SurveyFault {
    /// Id of the sample.
    pub id: u64,
    /// In JSON, bytes that are not UTF-8 are replaced.
    #[serde(serialize_with = "lossy")]
    pub path: PathBuf,
    #[serde(serialize_with = "name")]
    pub kind: FaultKind,
    /// What is wrong, in words.
    pub reason: String,
}

impl HeaderSurvey {
    /// Maximum number of unreadable samples in `faults`. The counts include the rest.
    pub const MAX_FAULTS: usize = 10_000;

    /// Reads the headers of all samples, with the default limits ([`SurveyOptions`]).
    ///
    /// # Errors
    /// There is not enough memory, a thread cannot be started, or the shards are in an object
    /// store. The content of a file is never an error.
    pub fn of(index: &Index) -> Result<Self> {
        Self::with(index, &SurveyOptions::default(), &|_| ())
    }

    /// Like [`HeaderSurvey::of`], with other limits. Calls `progress` with the number of samples
    /// finished since its last call, from several threads.
    ///
    /// # Errors
    /// Like [`HeaderSurvey::of`].
    pub fn with(
        index: &Index,
        options: &SurveyOptions,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<Self> {
        let limits = PictureLimits {
            max_pixels: options.max_pixels,
            max_scratch: options.max_scratch,
        };
        let (sizes, findings) = scan::headers(
            index,
            &limits,
            OrientationMode::Exif,
            Self::MAX_FAULTS,
            &|seen| {
                if let ScanEvent::Samples(n) = seen {
                    progress(n);
                }
                ControlFlow::Continue(())
            },
        )?;
        let readable = findings.formats.values().sum();
        Ok(Self {
            samples: index.len(),
            readable,
            unreadable: index.len() - readable,
            encoded_bytes: findings.encoded_bytes,
            formats: findings.formats,
            orientations: findings.orientations,
            sizes: SizeStatistics::of(&sizes),
            fault_kinds: findings.fault_kinds,
            faults: findings
                .faults
                .into_iter()
                .map(|(id, fault)| SurveyFault {
                    id,
                    path: index.path(id),
                    kind: fault.kind,
                    reason: fault.reason,
                })
                .collect(),
            heights_and_widths: sizes,
        })
    }

    /// Upright height and width of a sample's image, or of its box, in pixels. `None` if the sample
    /// is unreadable.
    pub fn size(&self, id: u64) -> Option<(u32, u32)> {
        self.heights_and_widths.get(id)
    }
}

/// The sizes of all samples in this orientation mode, for rows that have the size of their sample.
/// A sample over a limit has no size.
pub(crate) fn read_sizes(
    index: &Index,
    limits: &PictureLimits,
    upright: OrientationMode,
) -> Result<SampleSizes> {
    scan::headers(index, limits, upright, 0, &|_| ControlFlow::Continue(())).map(|(sizes, _)| sizes)
}

/// The JPEG files among at most `count` samples with evenly spaced ids. `None` if headers were
/// read, but none of them is a JPEG's.
pub(crate) fn jpeg_files(
    index: &Index,
    count: u64,
    limits: &PictureLimits,
) -> Option<Vec<JpegFile>> {
    scan::jpeg_files(index, count, limits)
}

/// The header of one sample, in this orientation mode.
pub(crate) fn header_of(
    index: &Index,
    id: u64,
    limits: &PictureLimits,
    upright: OrientationMode,
) -> std::result::Result<PictureHeader, SampleFault> {
    scan::header_of(index, id, limits, upright)
}

/// The same of the whole image, without the sample's box.
pub(crate) fn whole_header_of(
    index: &Index,
    id: u64,
    limits: &PictureLimits,
    upright: OrientationMode,
) -> std::result::Result<PictureHeader, SampleFault> {
    scan::whole_header_of(index, id, limits, upright)
}

/// Calls `with` for each sample whose header is within the limits: id, header in this orientation
/// mode, and length of the file. The calls come from several threads, in any order.
///
/// Calls `progress` with the number of newly finished samples, and stops if it returns `Break`.
/// Returns the sizes, as [`read_sizes`] does. Samples after a break have no size.
pub(crate) fn each_header(
    index: &Index,
    limits: &PictureLimits,
    upright: OrientationMode,
    with: &(dyn Fn(u64, &PictureHeader, u64) + Sync),
    progress: &(dyn Fn(u64) -> ControlFlow<()> + Sync),
) -> Result<SampleSizes> {
    scan::check_all_local(index)?;
    each_header_of(index, limits, upright, with, progress, &|_| true)
}

/// Like [`each_header`], but only for samples that are `wanted`. Other samples have no size. If the
/// shards are in an object store, those of the wanted samples must already be on this machine.
pub(crate) fn each_header_of(
    index: &Index,
    limits: &PictureLimits,
    upright: OrientationMode,
    with: &(dyn Fn(u64, &PictureHeader, u64) + Sync),
    progress: &(dyn Fn(u64) -> ControlFlow<()> + Sync),
    wanted: &(dyn Fn(u64) -> bool + Sync),
) -> Result<SampleSizes> {
    let seen = |seen: ScanEvent<'_>| match seen {
        ScanEvent::Header(id, header, bytes) => {
            with(id, header, bytes);
            ControlFlow::Continue(())
        }
        ScanEvent::Samples(n) => progress(n),
    };
    scan::headers_of(index, limits, upright, 0, &seen, wanted).map(|(sizes, _)| sizes)
}

fn name<S: serde::Serializer>(kind: &FaultKind, s: S) -> std::result::Result<S::Ok, S::Error> {
    s.serialize_str(kind.name())
}

fn by_name<S: serde::Serializer>(
    counts: &BTreeMap<u8, u64>,
    s: S,
) -> std::result::Result<S::Ok, S::Error> {
    s.collect_map(
        counts
            .iter()
            .map(|(code, count)| (FaultKind::from_code(*code).name(), count)),
    )
}
