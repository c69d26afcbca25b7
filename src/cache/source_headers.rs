//! Reads the headers of a source's samples before any is encoded, and takes the fingerprint of its
//! files, which detects changes.
//!
//! Runs in the consumer. Opens every file and reads its header, never a pixel.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{ControlFlow, Range};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use twox_hash::xxhash3_128::Hasher;

use crate::cache::sample_members::known_extension;
use crate::cache::targets::StoredAs;
use crate::cache::{BuildOptions, OnBadSample, lasting_faults};
use crate::data::index::Index;
use crate::data::sample_sizes::SampleSizes;
use crate::data::shard::manifest::HexHash128;
use crate::data::survey;
use crate::error::{Error, FaultKind, Result, SampleFault};
use crate::jobs::encode::encoding::{CacheEncoding, CacheResize};
use crate::jobs::encode::payload::CacheOrder;
use crate::jobs::encode::payload_spaces::PayloadSpaces;
use crate::jobs::encode::raster_form::RasterForm;
use crate::loader::OpenedRaster;
use crate::picture::read_header::PictureHeader;
use crate::picture::{FileFormat, PictureLimits};
use crate::recipe::OrientationMode;

/// The time between two progress reports.
const PAUSE: Duration = Duration::from_millis(100);

/// The headers of all samples, or of the samples of one build.
#[derive(Debug)]
pub(super) struct SourceHeaders<'a> {
    index: &'a Index,
    pub(super) sizes: SampleSizes,
    /// Bytes of each sample in the source, by id; 0 if its header could not be read.
    file_bytes: Vec<u64>,
    /// Formats of files whose names do not state one, by id.
    pub(super) formats: BTreeMap<u64, FileFormat>,
    /// By number.
    rasters: Vec<RasterFiles<'a>>,
    /// Samples of which a raster has no file.
    without_raster: BTreeSet<u64>,
}

/// The files of the rasters with one name.
#[derive(Debug)]
struct RasterFiles<'a> {
    raster: &'a OpenedRaster,
    stored: StoredAs,
    /// Bytes of each file in the source, by id. Empty if rasters are resized.
    bytes: Vec<u64>,
}

impl RasterFiles<'_> {
    /// The form of a raster, and the bytes of its file.
    fn form(&self, id: u64) -> (RasterForm, u64) {
        let path = self.raster.files.relative_path(id);
        let bytes = usize::try_from(id).ok().and_then(|at| self.bytes.get(at));
        let form = RasterForm::of(&self.raster.named.rule, self.stored, path);
        (form, bytes.copied().unwrap_or(0))
    }
}

impl<'a> SourceHeaders<'a> {
    /// Reads the headers of the `wanted` samples. `tell` receives the number of headers read so
    /// far. `None` if `tell` ended it.
    ///
    /// # Errors
    /// When there is not enough memory, or a thread cannot be started.
    pub(super) fn read(
        index: &'a Index,
        limits: &PictureLimits,
        wanted: &(dyn Fn(u64) -> bool + Sync),
        tell: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<Option<Self>> {
        let too_many = || Error::config(format!("{} samples are too many", index.len()));
        let samples = usize::try_from(index.len()).map_err(|_| too_many())?;
        let mut file_bytes = Vec::new();
        file_bytes
            .try_reserve_exact(samples)
            .map_err(|_| too_many())?;
        file_bytes.resize_with(samples, AtomicU64::default);
        let formats = Mutex::new(BTreeMap::new());
        let note = |id: u64, header: &PictureHeader, bytes| {
            if let Some(place) = usize::try_from(id).ok().and_then(|at| file_bytes.get(at)) {
                place.store(bytes, Ordering::Relaxed);
            }
            if known_extension(index.relative_path(id)).is_none() {
                let mut formats = formats.lock().unwrap_or_else(PoisonError::into_inner);
                formats.insert(id, header.format);
            }
        };
        let (read, ended) = (AtomicU64::new(0), AtomicBool::new(false));
        let count = |n| {
            read.fetch_add(n, Ordering::Relaxed);
            match ended.load(Ordering::Relaxed) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        };
        // Another thread reads, because `tell` may not be shared between threads.
        let sizes = thread::scope(|scope| {
            let (open, is_over) = mpsc::channel::<()>();
            let reader = thread::Builder::new()
                .name("featherload-headers".into())
                .spawn_scoped(scope, || {
                    // Dropped when the thread ends, also by a panic.
                    let _open = open;
                    survey::each_header_of(
                        index,
                        limits,
                        OrientationMode::Exif,
                        &note,
                        &count,
                        wanted,
                    )
                })
                .map_err(|e| Error::not_started("start a thread that reads headers", e))?;
            loop {
                if tell(read.load(Ordering::Relaxed)).is_break() {
                    ended.store(true, Ordering::Relaxed);
                    break;
                }
                if is_over.recv_timeout(PAUSE) != Err(RecvTimeoutError::Timeout) {
                    break;
                }
            }
            let read = reader.join();
            read.map_err(|_| Error::worker("a thread that reads headers panicked"))?
        })?;
        if ended.into_inner() {
            return Ok(None);
        }
        Ok(Some(Self {
            index,
            sizes,
            file_bytes: file_bytes.into_iter().map(AtomicU64::into_inner).collect(),
            formats: formats.into_inner().unwrap_or_else(PoisonError::into_inner),
            rasters: Vec::new(),
            without_raster: BTreeSet::new(),
        }))
    }

    /// Adds the rasters of the samples. Of the samples that have a header, notes which have a raster
    /// without a file, and the lengths of files that are copied. A file longer than `most` bytes is
    /// no part of the memory: reading it is an error.
    pub(super) fn with_rasters(
        mut self,
        rasters: &'a [OpenedRaster],
        stored: StoredAs,
        most: u64,
    ) -> Self {
        for raster in rasters {
            let files = &raster.files;
            let mut bytes = Vec::new();
            for id in 0..self.index.len() {
                let length = match (self.sizes.get(id), files.part(id)) {
                    (None, _) => 0,
                    (Some(_), Some(part)) => part.bytes,
                    (Some(_), None) => match files.file(id).metadata() {
                        Ok(found) => found.len(),
                        Err(e) => {
                            if lasting_faults::is_not_found(&e) {
                                self.without_raster.insert(id);
                            }
                            0
                        }
                    },
                };
                if stored.1.is_none() {
                    bytes.push(if length > most { 0 } else { length });
                }
            }
            self.rasters.push(RasterFiles {
                raster,
                stored,
                bytes,
            });
        }
        self
    }

    /// Bytes of the rasters of a sample in the cache, whose image has this height and width there:
    /// usual numbers for those that are encoded again.
    pub(super) fn raster_bytes(&self, id: u64, size: (u32, u32)) -> impl Iterator<Item = u64> {
        let bytes = move |files: &RasterFiles<'_>| {
            let (form, bytes) = files.form(id);
            form.usual_bytes(size, bytes)
        };
        self.rasters.iter().map(bytes)
    }

    /// Whether [`SourceHeaders::raster_bytes`] of a sample are exact.
    pub(super) fn has_exact_rasters(&self, id: u64) -> bool {
        (self.rasters.iter()).all(|files| files.form(id).0.is_exact())
    }

    /// Checks the samples without a header, before anything is removed to make room for the build.
    ///
    /// # Errors
    /// The first sample at these places whose header could not be read. If bad samples are left
    /// out, the first one whose fault may pass. Also a source without any readable header: its
    /// storage is probably not mounted.
    pub(super) fn check(
        &self,
        is_in_store: bool,
        options: &BuildOptions,
        order: &CacheOrder,
        places: &[Range<u64>],
    ) -> Result<()> {
        let index = self.index;
        let mut reason = String::new();
        let places = places.iter().cloned().flatten();
        let samples = places.filter_map(|place| order.sample(place));
        for id in samples.filter(|id| self.sizes.get(*id).is_none()) {
            let fault =
                match survey::header_of(index, id, &options.decode_limits(), OrientationMode::Exif)
                {
                    Err(fault) => fault,
                    Ok(_) => SampleFault::new(
                        FaultKind::Changed,
                        "its header could not be read at first, but now it can: build again",
                    ),
                };
            let why = self.skip_reason(options.on_error, id, fault)?;
            if reason.is_empty() {
                reason = why;
            }
        }
        // Shards from a store are on this machine, and have the right checksums.
        if is_in_store || (0..index.len()).any(|id| self.sizes.get(id).is_some()) {
            return Ok(());
        }
        // The build may have read only some headers, so this tries the others.
        let limits = options.decode_limits();
        let readable = |id| survey::header_of(index, id, &limits, OrientationMode::Exif).is_ok();
        match (0..index.len()).any(readable) {
            true => Ok(()),
            false => Err(no_picture(index, &reason)),
        }
    }

    /// The reason that is listed for a left-out sample.
    ///
    /// # Errors
    /// The fault, if it ends the build.
    pub(super) fn skip_reason(
        &self,
        on_error: OnBadSample,
        id: u64,
        fault: SampleFault,
    ) -> Result<String> {
        let file = (self.index.part(id).is_none()).then(|| self.index.file(id));
        let had_header = self.sizes.get(id).is_some();
        let has_no_raster =
            fault.kind == FaultKind::Unreadable && self.without_raster.contains(&id);
        let is_lasting =
            has_no_raster || lasting_faults::is_lasting(&fault, file.as_deref(), had_header);
        lasting_faults::skip_reason(fault, is_lasting, on_error).map_err(|fault| Error::Sample {
            id,
            path: self.index.path(id),
            fault,
        })
    }

    /// Height and width of a sample in the cache, and the bytes of its file. `None` if its header
    /// could not be read.
    pub(super) fn output(&self, id: u64, resize: Option<CacheResize>) -> Option<((u32, u32), u64)> {
        let size = self.sizes.get(id)?;
        let bytes = *self.file_bytes.get(usize::try_from(id).ok()?)?;
        Some((resize.map_or(size, |r| r.output(size)), bytes))
    }

    /// The space for the payload at each place of an order.
    pub(super) fn payload_spaces(
        &self,
        order: &CacheOrder,
        encode: CacheEncoding,
        resize: Option<CacheResize>,
    ) -> Result<PayloadSpaces> {
        PayloadSpaces::seal((0..order.samples()).map(|position| {
            order
                .sample(position)
                .and_then(|id| self.output(id, resize))
                .map_or(0, |(size, file)| encode.most_bytes(size, file))
                .saturating_add(self.most_raster_bytes(order.sample(position), resize))
        }))
    }

    fn most_raster_bytes(&self, id: Option<u64>, resize: Option<CacheResize>) -> u64 {
        let Some((id, size)) = id.and_then(|id| Some((id, self.output(id, resize)?.0))) else {
            return 0;
        };
        let most = |files: &RasterFiles<'_>| {
            let (form, bytes) = files.form(id);
            form.most_bytes(size, bytes)
        };
        self.rasters.iter().map(most).fold(0, u64::saturating_add)
    }
}

/// The error for a source without any readable image.
pub(super) fn no_picture(index: &Index, reason: &str) -> Error {
    Error::dataset(
        index.root(),
        format!(
            "none of {} samples has a readable image. The first: {reason}",
            index.len()
        ),
    )
}

/// Fingerprint of the source's files, beside that of its index. With `samples`, only of the files
/// of these samples. Reads their metadata, and opens none.
///
/// # Errors
/// When a file may exist but cannot be examined, so that changes would go unnoticed.
pub(super) fn files_hash(
    index: &Index,
    samples: Option<&mut dyn Iterator<Item = u64>>,
) -> Result<HexHash128> {
    match (index.shards(), samples) {
        (0, None) => hash_files((0..index.len()).map(|id| index.file(id))),
        (0, Some(samples)) => hash_files(samples.map(|id| index.file(id))),
        (shards, None) => hash_files((0..shards).map(|number| index.shard_path(number))),
        (_, Some(samples)) => {
            let parts = samples.filter_map(|id| index.part(id));
            let shards: BTreeSet<u64> = parts.map(|part| part.shard).collect();
            hash_files(shards.into_iter().map(|number| index.shard_path(number)))
        }
    }
}

/// Fingerprint of the paths of these files, from the folder of the images on. With `samples`, only
/// those of these samples. Members of shards have theirs in the fingerprint of their index.
pub(super) fn paths_hash(images: &Path, files: &Index, samples: Option<&[u64]>) -> HexHash128 {
    let mut hasher = Hasher::new();
    let mut add = |id: u64| {
        let file = files.file(id);
        let both = images.components().zip(file.components());
        let common = both.take_while(|(own, other)| own == other).count();
        let above = images.components().count() - common;
        let below: PathBuf = file.components().skip(common).collect();
        hasher.write(&(above as u64).to_le_bytes());
        hasher.write(below.as_os_str().as_bytes());
        hasher.write(&[0]);
    };
    match samples {
        _ if files.shards() > 0 => {}
        Some(samples) => samples.iter().copied().for_each(add),
        None => (0..files.len()).for_each(&mut add),
    }
    HexHash128(hasher.finish_128())
}

/// Fingerprint of the lengths and times of files. One that does not exist counts, too.
///
/// # Errors
/// As [`files_hash`].
pub(super) fn hash_files(paths: impl Iterator<Item = PathBuf>) -> Result<HexHash128> {
    let mut hasher = Hasher::new();
    for path in paths {
        let (bytes, s, ns) = match path.metadata() {
            Ok(m) => (m.len(), m.mtime(), m.mtime_nsec()),
            // Reading a missing file reports it.
            Err(e) if lasting_faults::is_not_found(&e) => (0, 0, 0),
            Err(e) => return Err(Error::io_at("look at", path, e)),
        };
        hasher.write(&bytes.to_le_bytes());
        hasher.write(&s.to_le_bytes());
        hasher.write(&ns.to_le_bytes());
    }
    Ok(HexHash128(hasher.finish_128()))
}
