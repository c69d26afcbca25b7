//! Compares every byte of a cache with its manifests.
//!
//! Runs in the consumer, with threads that end before it returns. It reads every file once, by
//! positioned reads of 1 MiB, and never maps a file: so a damaged page of the disk is an error of a
//! read. An intact index is read a second time, when it is loaded. Shards may be few and large, so
//! threads check pieces of shards. It changes nothing.
//!
//! - `subject`: the files to check; `tasks`: the pieces of work; `findings`: the results;
//! - `file_window`: reads; `shard`: one shard against its manifest; `index`: against the index of
//!   all samples;
//! - `tar_headers`: a shard without a manifest, by its headers only.

mod file_window;
mod findings;
mod index;
mod shard;
mod subject;
mod tar_headers;
mod tasks;

use std::path::Path;
use std::time::Instant;

use self::findings::FindingLog;
pub use self::findings::{DamagedSample, FindingKind, VerifyFinding, VerifyProgress, VerifyReport};
use self::subject::VerifySubject;
use crate::error::{Error, Result};
use crate::pool::worker_options::default_workers;
use crate::sys::threads::with_pool;

/// Options of `verify`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerifyOptions {
    /// Number of threads that read, at least 1; none = the usable CPUs.
    pub num_workers: Option<usize>,
}

/// Compares all bytes of the cache in the folder `path` with its checksums. It checks the
/// manifest, the manifest, index and tar of each shard, and the sealed index. It compares the
/// sealed index with the manifests (samples, names, places) and with the tars (labels). It reports
/// missing files, and shards that do not belong to the cache.
///
/// If a shard's manifest is damaged, only headers and padding of its tar are checked. If the build
/// of the cache has not ended, its complete shards are checked.
///
/// `path` may also be one shard of a cache, such as `shard-000001.tar`. It is checked against the
/// manifest beside it. It may also be another tar, or a folder of other tars. They have no
/// checksums: headers and bounds are checked, and [`VerifyReport::checksums`] is false.
///
/// `watch` receives the progress, from any of the threads.
///
/// ```
/// # fn main() -> featherload::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let (src, dst) = (dir.path().join("src"), dir.path().join("dst"));
/// # std::fs::create_dir(&src).unwrap();
/// # std::fs::write(src.join("1.ppm"), b"P6 2 1 255\n\x01\x02\x03\x04\x05\x06").unwrap();
/// use featherload::Source;
/// use featherload::cache::{self, BuildOptions, CacheBuilder, FindingKind, VerifyOptions};
///
/// let source = Source::detect(&src)?;
/// CacheBuilder::new(source, &dst, BuildOptions::default()).num_workers(0).build()?;
/// let verify = || cache::verify(&dst, &VerifyOptions::default(), &|_| {});
/// assert!(verify()?.is_good());
///
/// let tar = dst.join("shard-000000.tar");
/// let mut bytes = std::fs::read(&tar).unwrap();
/// bytes[512] ^= 1;
/// std::fs::write(&tar, bytes).unwrap();
/// let report = verify()?;
/// let finding = &report.findings[0];
/// assert_eq!(finding.kind, FindingKind::Data);
/// assert_eq!(finding.sample.as_ref().map(|s| s.key.as_str()), Some("00000000_1"));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// When `path` is neither a cache nor a tar, or the folder cannot be listed. A compressed file, or
/// one that is not a tar, is an error too, unless it is a shard with its manifest beside it. Damage
/// is not an error, and neither is a file of the folder that cannot be read: they are findings.
pub fn verify(
    path: &Path,
    options: &VerifyOptions,
    watch: &(dyn Fn(VerifyProgress) + Sync),
) -> Result<VerifyReport> {
    let began = Instant::now();
    if options.num_workers == Some(0) {
        return Err(Error::config("`num_workers` is 0: use at least 1"));
    }
    let subject = VerifySubject::of(path)?;
    let found = FindingLog::new(watch, subject.bytes);
    let workers = options.num_workers.unwrap_or_else(default_workers);
    with_pool("featherload-verify", workers, |pool| {
        pool.scope(|scope| subject.begin(scope, &found));
    })?;
    Ok(found.report(subject.complete, subject.checksums, began.elapsed()))
}
