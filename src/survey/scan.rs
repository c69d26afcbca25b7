//! Headers of all samples, by threads that are joined before the end.
//!
//! In the consumer. Each thread takes runs of samples, reads their headers and
//! keeps counts of its own; what comes out does not depend on who took which.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::error::{Error, Result, SampleFault};
use crate::index::Index;
use crate::packing::Sizes;
use crate::picture::header::{PictureHeader, read_header_within};
use crate::picture::{Format, Limits, Orientation, Upright};
use crate::sys::regular::open_regular;

use super::part::Part;

/// Samples that a thread takes at a time: enough that taking costs nothing, few
/// enough that no thread is left behind with many.
const RUN: usize = 64;

/// Reading headers waits for storage more than it computes.
const THREADS_PER_CPU: usize = 2;
const MAX_THREADS: usize = 32;

/// Bytes read at a time.
const PIECE: usize = 4096;

/// What a scan tells while it goes on.
pub(super) enum Seen<'a> {
    /// So many samples are done.
    Samples(u64),
    /// The header of a sample, and the length of its file.
    Header(u64, &'a PictureHeader, u64),
}

/// What is counted beside the sizes.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) encoded_bytes: u64,
    pub(super) formats: BTreeMap<Format, u64>,
    pub(super) orientations: BTreeMap<u8, u64>,
    /// By the code of the kind.
    pub(super) fault_kinds: BTreeMap<u8, u64>,
    /// In the order of their ids.
    pub(super) faults: Vec<(u64, SampleFault)>,
}

/// Reads the header of every sample; what is over a limit is unreadable. Of
/// unreadable ones the first `max_faults` are kept. Sizes, and headers that are
/// `seen`, are those of pictures read this way up; orientations are counted as
/// files have them. `Break` behind a run of samples ends it for all threads that hear
/// it.
pub(super) fn headers(
    index: &Index,
    limits: &Limits,
    upright: Upright,
    max_faults: usize,
    seen: &(dyn Fn(Seen<'_>) -> ControlFlow<()> + Sync),
) -> Result<(Sizes, Findings)> {
    let too_many = || Error::config(format!("{} samples are too many to survey", index.len()));
    let samples = usize::try_from(index.len()).map_err(|_| too_many())?;
    let mut sizes = Vec::new();
    sizes.try_reserve_exact(samples).map_err(|_| too_many())?;
    sizes.resize(samples, [0u32; 2]);
    let findings = {
        let runs = Mutex::new((0u64..).step_by(RUN).zip(sizes.chunks_mut(RUN)));
        let work = || {
            let mut reader = Reader::new(index, limits, upright, max_faults);
            loop {
                let run = runs.lock().unwrap_or_else(PoisonError::into_inner).next();
                let Some((first, run)) = run else {
                    return reader.findings;
                };
                for (id, size) in (first..).zip(run.iter_mut()) {
                    *size = reader.read(id, seen);
                }
                if seen(Seen::Samples(run.len() as u64)).is_break() {
                    return reader.findings;
                }
            }
        };
        let helpers = thread_count(samples) - 1;
        thread::scope(|scope| -> Result<Findings> {
            // A thread that cannot be started is done without.
            let helpers: Vec<_> = (0..helpers)
                .filter_map(|_| {
                    thread::Builder::new()
                        .name("featherload-survey".into())
                        .spawn_scoped(scope, work)
                        .ok()
                })
                .collect();
            let mut findings = work();
            for helper in helpers {
                let theirs = helper
                    .join()
                    .map_err(|_| Error::worker("a thread that reads headers panicked"))?;
                findings.add(theirs, max_faults);
            }
            Ok(findings)
        })?
    };
    Ok((Sizes::seal(&sizes)?, findings))
}

fn thread_count(samples: usize) -> usize {
    let cpus = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let useful = samples.div_ceil(RUN);
    (cpus * THREADS_PER_CPU).min(MAX_THREADS).min(useful).max(1)
}

impl Findings {
    fn add(&mut self, other: Self, max_faults: usize) {
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
        // Each has its own lowest ids, so the lowest of all are among them.
        self.faults.extend(other.faults);
        self.faults.sort_unstable_by_key(|(id, _)| *id);
        self.faults.truncate(max_faults);
    }
}

/// One thread's work.
struct Reader<'a> {
    index: &'a Index,
    limits: &'a Limits,
    upright: Upright,
    max_faults: usize,
    files: Files,
    findings: Findings,
}

impl<'a> Reader<'a> {
    fn new(index: &'a Index, limits: &'a Limits, upright: Upright, max_faults: usize) -> Self {
        Self {
            index,
            limits,
            upright,
            max_faults,
            files: Files::default(),
            findings: Findings::default(),
        }
    }

    /// Height and width of a sample, or 0 x 0.
    fn read(&mut self, id: u64, seen: &(dyn Fn(Seen<'_>) -> ControlFlow<()> + Sync)) -> [u32; 2] {
        let found = self.files.read(self.index, id, self.limits);
        let f = &mut self.findings;
        match found {
            Ok((header, bytes)) => {
                f.encoded_bytes += bytes;
                *f.formats.entry(header.format).or_default() += 1;
                if header.orientation != Orientation::Normal {
                    let tag = header.orientation as u8;
                    *f.orientations.entry(tag).or_default() += 1;
                }
                let header = header.read_as(self.upright);
                // Ended between two runs alone.
                let _ = seen(Seen::Header(id, &header, bytes));
                let (width, height) = header.upright();
                [height, width]
            }
            Err(fault) => {
                *f.fault_kinds.entry(fault.kind as u8).or_default() += 1;
                // A thread takes runs with growing ids.
                if f.faults.len() < self.max_faults {
                    f.faults.push((id, fault));
                }
                [0, 0]
            }
        }
    }
}

/// The header of one sample.
pub(super) fn header_of(
    index: &Index,
    id: u64,
    limits: &Limits,
) -> Result<PictureHeader, SampleFault> {
    Files::default()
        .read(index, id, limits)
        .map(|(header, _)| header)
}

/// Where headers are read: a file for each sample, or the shard that was read
/// last.
#[derive(Default)]
struct Files {
    path: Vec<u8>,
    shard: Option<(u64, Rc<File>)>,
}

impl Files {
    /// The header of a sample, and the bytes that it has.
    fn read(
        &mut self,
        index: &Index,
        id: u64,
        limits: &Limits,
    ) -> Result<(PictureHeader, u64), SampleFault> {
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
            None => Rc::new(index.open_shard(part.shard, path)?.0),
        };
        self.shard = Some((part.shard, file.clone()));
        Ok((header(Part::new(file, range), limits)?, part.bytes))
    }
}

fn header(file: impl Read + Seek, limits: &Limits) -> Result<PictureHeader, SampleFault> {
    read_header_within(&mut BufReader::with_capacity(PIECE, file), limits)
}

#[cfg(all(test, feature = "codecs"))]
mod tests {
    use std::path::Path;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::{Duration, Instant};

    use super::*;
    use crate::error::FaultKind;
    use crate::index::FolderOptions;
    use crate::picture::jpeg::fixtures::{self, Sampling};

    /// More samples than one run, every seventh of them broken.
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
        let count = |what: Seen<'_>| {
            if let Seen::Samples(n) = what {
                seen.fetch_add(n, Ordering::Relaxed);
            }
            ControlFlow::Continue(())
        };
        let (sizes, findings) =
            headers(&index, &Limits::default(), Upright::Exif, 5, &count).unwrap();
        assert_eq!(seen.into_inner(), samples);
        let broken = (0..samples).filter(|i| i % 7 == 6).count() as u64;
        assert_eq!(findings.formats[&Format::Jpeg], samples - broken);
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
    fn no_thread_is_left() {
        let dir = tempfile::tempdir().unwrap();
        let index = mixed(dir.path(), 200);
        let on = |_: Seen<'_>| ControlFlow::Continue(());
        headers(&index, &Limits::default(), Upright::Exif, 5, &on).unwrap();
        // Other tests run beside this one: look for our own threads alone.
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
