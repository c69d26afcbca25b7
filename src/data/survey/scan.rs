//! Reads the headers of all samples, with threads that are joined before the call returns.
//!
//! Runs in the consumer. Each thread takes runs of samples, reads their headers and keeps its own
//! counts. The result does not depend on which thread took which run.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs::File;
use std::io::{BufReader, Cursor, Read, Seek};
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rayon::prelude::*;

use crate::data::index::Index;
use crate::data::packed_page::{LastPage, read_page, slice_page};
use crate::data::sample_sizes::SampleSizes;
use crate::error::{Error, FaultKind, Result, SampleFault};
use crate::picture::OrientationMode;
use crate::picture::read_header::{PictureHeader, read_header_within};
use crate::picture::{ExifOrientation, FileFormat, PictureLimits};
use crate::sys::regular_file::open_regular;

use crate::data::survey::file_range::FileRange;
use crate::sys::threads::with_pool;

/// Samples that a thread takes at a time. Large enough that taking a run costs nothing, small
/// enough that all threads finish at about the same time.
const RUN: usize = 64;

/// Reading headers waits for storage more than it computes.
const THREADS_PER_CPU: usize = 2;
const MAX_THREADS: usize = 32;

/// Limit on the bytes of pages in memory, packed and unpacked, over all threads. At least one
/// thread runs even if one page is larger.
const MOST_OF_PAGES: u64 = 1 << 30;

/// Bytes per read.
const PIECE: usize = 4096;

/// A progress event of a scan.
pub(crate) enum ScanEvent<'a> {
    /// This number of samples has been finished.
    Samples(u64),
    /// Id and header of a sample, and the length of its file.
    Header(u64, &'a PictureHeader, u64),
}

/// The results of a scan, other than the sizes.
#[derive(Debug, Default)]
pub(crate) struct ScanCounts {
    pub(crate) encoded_bytes: u64,
    pub(crate) formats: BTreeMap<FileFormat, u64>,
    pub(crate) orientations: BTreeMap<u8, u64>,
    /// By the code of the fault kind.
    pub(crate) fault_kinds: BTreeMap<u8, u64>,
    /// Sorted by id.
    pub(crate) faults: Vec<(u64, SampleFault)>,
}

/// Reads the header of every sample. A header over a limit is a fault, and so is a box outside its
/// image. The first `max_faults` faults are kept.
///
/// Sizes, and the headers given to `seen`, are in this orientation mode. Orientations are counted
/// as the files have them. If `seen` returns `Break` after a sample, all threads stop after their
/// current header.
///
/// # Errors
/// Like [`headers_of`]. The shards are in an object store.
pub(crate) fn headers(
    index: &Index,
    limits: &PictureLimits,
    upright: OrientationMode,
    max_faults: usize,
    seen: &(dyn Fn(ScanEvent<'_>) -> ControlFlow<()> + Sync),
) -> Result<(SampleSizes, ScanCounts)> {
    check_all_local(index)?;
    headers_of(index, limits, upright, max_faults, seen, &|_| true)
}

/// # Errors
/// The shards are in an object store.
pub(crate) fn check_all_local(index: &Index) -> Result<()> {
    index.check_local(
        "this reads the header of every sample, so it would download all shards (a run does not \
        need them if rows have a fixed size, the order does not depend on sizes, and no \
        memory_limit is given)",
    )
}

/// Like [`headers`], but only for samples that are `wanted`. No other sample is opened or counted,
/// and it has no size. If the shards are in an object store, those of the wanted samples must
/// already be on this machine.
///
/// # Errors
/// There is not enough memory, or a thread cannot be started.
pub(crate) fn headers_of(
    index: &Index,
    limits: &PictureLimits,
    upright: OrientationMode,
    max_faults: usize,
    seen: &(dyn Fn(ScanEvent<'_>) -> ControlFlow<()> + Sync),
    wanted: &(dyn Fn(u64) -> bool + Sync),
) -> Result<(SampleSizes, ScanCounts)> {
    let too_many = || Error::config(format!("{} samples are too many to survey", index.len()));
    let samples = usize::try_from(index.len()).map_err(|_| too_many())?;
    let mut sizes = Vec::new();
    sizes.try_reserve_exact(samples).map_err(|_| too_many())?;
    sizes.resize(samples, [0u32; 2]);
    let ended = AtomicBool::new(false);
    let pages = index.largest_page().saturating_add(index.largest_packed());
    let threads = match MOST_OF_PAGES.checked_div(pages) {
        Some(fit) => thread_count(samples).min(usize::try_from(fit).unwrap_or(1).max(1)),
        None => thread_count(samples),
    };
    let new = || HeaderReader::new(index, limits, upright, max_faults);
    let findings = with_pool("featherload-survey", threads, |_| {
        let runs = sizes.par_chunks_mut(RUN).enumerate();
        runs.fold(new, |reader, (run, sizes)| {
            reader.run(run, sizes, seen, wanted, &ended)
        })
        .map(|reader| reader.findings)
        .reduce(ScanCounts::default, |all, more| all.and(more, max_faults))
    })?;
    Ok((SampleSizes::seal(&sizes)?, findings))
}

/// The number of threads for the headers of `samples` files.
pub(crate) fn thread_count(samples: usize) -> usize {
    let cpus = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let useful = samples.div_ceil(RUN);
    (cpus * THREADS_PER_CPU).min(MAX_THREADS).min(useful).max(1)
}

impl ScanCounts {
    fn and(mut self, other: Self, max_faults: usize) -> Self {
        self.encoded_bytes += other.encoded_bytes;
        for (format, n) in other.formats {
            *self.formats.entry(format).or_default() += n;
        }
        for (tag, n) in other.orientations {
            *self.orientations.entry(tag).or_default() += n;
        }
        for (kind, n) in other.fault_kinds {
            *self.fault_kinds.entry(kind).or_default() += n;
        }
        // Each side kept its own lowest ids, so the lowest ids of both are among these.
        self.faults.extend(other.faults);
        self.faults.sort_unstable_by_key(|(id, _)| *id);
        self.faults.truncate(max_faults);
        self
    }
}

/// The state of one thread.
struct HeaderReader<'a> {
    index: &'a Index,
    limits: &'a PictureLimits,
    upright: OrientationMode,
    max_faults: usize,
    files: HeaderFiles,
    findings: ScanCounts,
}

impl<'a> HeaderReader<'a> {
    fn new(
        index: &'a Index,
        limits: &'a PictureLimits,
        upright: OrientationMode,
        max_faults: usize,
    ) -> Self {
        Self {
            index,
            limits,
            upright,
            max_faults,
            files: HeaderFiles::default(),
            findings: ScanCounts::default(),
        }
    }

    /// Reads one run of samples, unless the scan has been stopped.
    fn run(
        mut self,
        number: usize,
        sizes: &mut [[u32; 2]],
        seen: &(dyn Fn(ScanEvent<'_>) -> ControlFlow<()> + Sync),
        wanted: &(dyn Fn(u64) -> bool + Sync),
        ended: &AtomicBool,
    ) -> Self {
        let ids = ((number * RUN) as u64..).zip(sizes.iter_mut());
        for (id, size) in ids.filter(|(id, _)| wanted(*id)) {
            // Checked before each header, because storage may take seconds to read one.
            if ended.load(Ordering::Relaxed) {
                break;
            }
            *size = self.read(id, seen);
            if seen(ScanEvent::Samples(1)).is_break() {
                ended.store(true, Ordering::Relaxed);
            }
        }
        self
    }

    /// Height and width of a sample, or 0 x 0 on a fault.
    fn read(
        &mut self,
        id: u64,
        seen: &(dyn Fn(ScanEvent<'_>) -> ControlFlow<()> + Sync),
    ) -> [u32; 2] {
        let found = self.files.read(self.index, id, self.limits);
        let found = found.and_then(|(header, bytes)| {
            let seen = header
                .in_mode(self.upright)
                .with_box(self.index.pixel_box(id))?;
            Ok((header.orientation, seen, bytes))
        });
        let f = &mut self.findings;
        match found {
            Ok((orientation, header, bytes)) => {
                f.encoded_bytes += bytes;
                *f.formats.entry(header.format).or_default() += 1;
                if orientation != ExifOrientation::Normal {
                    let tag = orientation as u8;
                    *f.orientations.entry(tag).or_default() += 1;
                }
                // Only `Samples` events can stop a scan.
                let _ = seen(ScanEvent::Header(id, &header, bytes));
                let (width, height) = header.upright_size();
                [height, width]
            }
            Err(fault) => {
                *f.fault_kinds.entry(fault.kind as u8).or_default() += 1;
                // A reader takes runs in ascending order of ids.
                if f.faults.len() < self.max_faults {
                    f.faults.push((id, fault));
                }
                [0, 0]
            }
        }
    }
}

/// The header of one sample, in this orientation mode.
pub(crate) fn header_of(
    index: &Index,
    id: u64,
    limits: &PictureLimits,
    upright: OrientationMode,
) -> Result<PictureHeader, SampleFault> {
    whole_header_of(index, id, limits, upright)?.with_box(index.pixel_box(id))
}

/// The same of the whole image, without the sample's box.
pub(crate) fn whole_header_of(
    index: &Index,
    id: u64,
    limits: &PictureLimits,
    upright: OrientationMode,
) -> Result<PictureHeader, SampleFault> {
    let (header, _) = HeaderFiles::default().read(index, id, limits)?;
    Ok(header.in_mode(upright))
}

/// The size of a JPEG file and of its image.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JpegFile {
    pub(crate) bytes: u64,
    /// Stored width and height.
    pub(crate) size: (u32, u32),
}

/// Like [`super::jpeg_files`].
pub(crate) fn jpeg_files(
    index: &Index,
    count: u64,
    limits: &PictureLimits,
) -> Option<Vec<JpegFile>> {
    let mut files = HeaderFiles::default();
    let step = index.len().div_ceil(count.max(1)).max(1);
    let ids = (0..index.len()).step_by(step as usize);
    let (mut jpegs, mut is_other) = (Vec::new(), false);
    for (header, bytes) in ids.filter_map(|id| files.read(index, id, limits).ok()) {
        match header.format {
            FileFormat::Jpeg => jpegs.push(JpegFile {
                bytes,
                size: header.stored_size,
            }),
            _ => is_other = true,
        }
    }
    (!jpegs.is_empty() || !is_other).then_some(jpegs)
}

/// The header of the image file at a path, in its stored orientation.
pub(crate) fn header_at(path: &Path, limits: &PictureLimits) -> Result<PictureHeader, SampleFault> {
    let path = CString::new(path.as_os_str().as_bytes())
        .map_err(|_| FaultKind::Unreadable.fault("its name has a zero byte"))?;
    let (fd, _) = open_regular(&path)?;
    header(File::from(fd), limits)
}

/// Opens samples to read their headers. Keeps the last shard open, and its last page unpacked, or
/// the fault of that page.
#[derive(Default)]
struct HeaderFiles {
    path: Vec<u8>,
    shard: Option<(u64, Arc<File>)>,
    page: LastPage,
}

impl HeaderFiles {
    /// The header of a sample, and the number of its encoded bytes.
    fn read(
        &mut self,
        index: &Index,
        id: u64,
        limits: &PictureLimits,
    ) -> Result<(PictureHeader, u64), SampleFault> {
        if let Some(shape) = index.part(id).and_then(|part| index.pixels(part.shard)) {
            let [height, width, channels] = shape.sides();
            let header = PictureHeader::of_pixels((width, height), channels, limits)?;
            return Ok((header, shape.file_bytes()));
        }
        if let Some(bytes) = index.bytes_in_memory(id) {
            return Ok((header(Cursor::new(bytes), limits)?, bytes.len() as u64));
        }
        let (path, located) = index.locate(id, &mut self.path)?;
        let Some((range, part)) = located.zip(index.part(id)) else {
            let (fd, len) = open_regular(path)?;
            return Ok((header(File::from(fd), limits)?, len as u64));
        };
        let known = self
            .shard
            .take()
            .filter(|(number, _)| *number == part.shard);
        let file = match known {
            Some((_, file)) => file,
            None => Arc::new(index.open_shard(part.shard, path)?.0),
        };
        self.shard = Some((part.shard, file.clone()));
        if let Some(page) = index.page(part.shard) {
            let unpacked = self.page.get(part.shard, |out| {
                let packed = read_page(&file, &page)
                    .map_err(|e| FaultKind::Unreadable.fault(format!("cannot be read: {e}")))?;
                page.unpack(&packed, out)
            })?;
            let picture = slice_page(unpacked, &range)?;
            return Ok((header(Cursor::new(picture), limits)?, part.bytes));
        }
        Ok((header(FileRange::new(file, range), limits)?, part.bytes))
    }
}

fn header(file: impl Read + Seek, limits: &PictureLimits) -> Result<PictureHeader, SampleFault> {
    read_header_within(&mut BufReader::with_capacity(PIECE, file), limits)
}

#[cfg(all(test, feature = "codecs"))]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::{Duration, Instant};

    use super::*;
    use crate::data::index::{ArrowFiles, FolderOptions, ParquetOptions};
    use crate::picture::jpeg::fixtures;
    use crate::picture::jpeg::fixtures::Sampling;

    /// More samples than one run has. Every seventh one is broken.
    fn mixed(dir: &Path, samples: u64) -> Index {
        for i in 0..samples {
            let bytes = match i % 7 {
                6 => b"no picture at all".to_vec(),
                r => fixtures::jpeg(8 + i as u32 % 32, 3 + r as u32, Sampling::S444),
            };
            std::fs::write(dir.join(format!("{i:05}.jpg")), bytes).unwrap();
        }
        Index::folder(dir, &FolderOptions::default()).unwrap().0
    }

    #[test]
    fn every_sample_is_read_once_whoever_reads_it() {
        let dir = tempfile::tempdir().unwrap();
        let samples = 300;
        let index = mixed(dir.path(), samples);
        let seen = AtomicU64::new(0);
        let count = |what: ScanEvent<'_>| {
            if let ScanEvent::Samples(n) = what {
                seen.fetch_add(n, Ordering::Relaxed);
            }
            ControlFlow::Continue(())
        };
        let (sizes, findings) = headers(
            &index,
            &PictureLimits::default(),
            OrientationMode::Exif,
            5,
            &count,
        )
        .unwrap();
        assert_eq!(seen.into_inner(), samples);
        let broken = (0..samples).filter(|i| i % 7 == 6).count() as u64;
        assert_eq!(findings.formats[&FileFormat::Jpeg], samples - broken);
        let kind = FaultKind::Unsupported as u8;
        assert_eq!(findings.fault_kinds, BTreeMap::from([(kind, broken)]));
        let listed: Vec<u64> = findings.faults.iter().map(|(id, _)| *id).collect();
        assert_eq!(listed, [6, 13, 20, 27, 34]);
        for id in 0..samples {
            let size = (3 + id as u32 % 7, 8 + id as u32 % 32);
            assert_eq!(sizes.get(id), (id % 7 != 6).then_some(size), "{id}");
        }
    }

    #[test]
    fn a_break_ends_it_after_the_headers_at_hand() {
        let dir = tempfile::tempdir().unwrap();
        let index = mixed(dir.path(), 300);
        let read = AtomicU64::new(0);
        let after_the_first = |what: ScanEvent<'_>| match what {
            ScanEvent::Samples(n) => {
                read.fetch_add(n, Ordering::Relaxed);
                ControlFlow::Break(())
            }
            ScanEvent::Header(..) => ControlFlow::Continue(()),
        };
        headers(
            &index,
            &PictureLimits::default(),
            OrientationMode::Exif,
            5,
            &after_the_first,
        )
        .unwrap();
        let most = thread_count(300) as u64;
        assert!(
            (1..=most).contains(&read.into_inner()),
            "at most one a thread, {most}"
        );
    }

    #[test]
    #[cfg(feature = "parquet")]
    fn a_broken_page_is_unpacked_once_for_all_its_headers() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.arrow");
        let seed = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/seeds/arrow/lz4");
        let mut bytes = std::fs::read(seed).unwrap().split_off(1);
        let open = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            let files = ArrowFiles {
                data: vec![path.clone()],
                ..ArrowFiles::default()
            };
            Index::arrow(&files, &ParquetOptions::default()).unwrap().0
        };
        let index = open(&bytes);
        let page = index.page(index.part(0).unwrap().shard).unwrap();
        bytes[page.at as usize] ^= 0xff;
        let index = open(&bytes);
        let mut files = HeaderFiles::default();
        let limits = PictureLimits::default();
        let first = files.read(&index, 0, &limits).unwrap_err();
        assert_eq!(first.kind, FaultKind::Corrupt, "{first}");
        // A second try to unpack it would find no bytes.
        let file = File::options().write(true).open(&path).unwrap();
        file.set_len(8).unwrap();
        for id in [2, 0] {
            let again = files.read(&index, id, &limits).unwrap_err();
            assert_eq!(again.reason, first.reason);
        }
    }

    #[test]
    fn no_thread_is_left() {
        let dir = tempfile::tempdir().unwrap();
        let index = mixed(dir.path(), 200);
        let on = |_: ScanEvent<'_>| ControlFlow::Continue(());
        headers(
            &index,
            &PictureLimits::default(),
            OrientationMode::Exif,
            5,
            &on,
        )
        .unwrap();
        // Other tests run at the same time, so look at our own threads only.
        let ours = || {
            std::fs::read_dir("/proc/self/task")
                .unwrap()
                .flatten()
                .filter(|e| {
                    std::fs::read_to_string(e.path().join("comm"))
                        .is_ok_and(|name| name.starts_with("featherload-sur"))
                })
                .count()
        };
        // A joined thread takes a moment to leave the kernel's list.
        let began = Instant::now();
        while ours() > 0 {
            assert!(began.elapsed() < Duration::from_secs(20), "{} left", ours());
            thread::sleep(Duration::from_millis(1));
        }
    }
}
