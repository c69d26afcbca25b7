//! Caches: a data set turned into shards that later runs map and read at the
//! speed of the link.
//!
//! A cache is a folder of uncompressed WebDataset tars, each with DALI's index
//! and a checksummed manifest beside it. The samples are in no format of our own.
//! Runs in the consumer, but for the workers of step 6. Never in here: printing, `unsafe`.
//!
//! ```text
//! shard-000000.tar .idx .json   the samples; DALI's index; offsets and hashes
//! manifest.json                 options, source, classes; written before the first shard, with
//!                               the shards at the end
//! index.fli                     the sealed index of all samples
//! ```
//!
//! **The way of a build**, from the command line down. Each step is a function of this name:
//!
//! 1. `bin/featherload/cache/build.rs` fills a `CacheBuilder`. `CacheBuilder::build_watched` (`builder`)
//!    checks the options, starts the coordinator and reads the names of the samples.
//! 2. `Build::build` (`build`) makes one part, or `build_in_shares` several: where the source's
//!    shards come from a store and do not all fit on this machine at once.
//! 3. `build_part` holds the folder. On the way to a store that is a stage: `build_into_store`
//!    compares the store, and at the end `send_rest` waits for it.
//! 4. `CacheBuild::build_in_folder` (`folder_build`) takes the manifest that is there
//!    (`existing_manifest`). One of other options or another source ends the build, unless `force`
//!    is given or no shard is complete yet. `FolderBuild::run` calls `find_missing`, `make_shards`
//!    where some are missing, and `finish`, but not for a share.
//! 5. `make_shards` takes a list of shards: `fetch_shards`, `read_headers`, `DiskEstimate::need`,
//!    `start_workers`, `clear_and_begin` (writes the begun `manifest.json`),
//!    `PayloadWriter::write_all`. Then it compares the source's files once more.
//! 6. Workers decode and encode: `EncodeJob::fill` (`jobs/encode/worker.rs`). `EncodeRun::next`
//!    (`jobs/encode/run.rs`) gives payloads in order, and `PayloadWriter::end_shard` ends a shard.
//! 7. `ShardFileWriter::finish` (`shard_file`) puts the files of a shard in their places in this
//!    order: tar, `.idx`, manifest. Each is synced.
//!
//! **What a kill leaves**: the begun `manifest.json`, complete shards, perhaps tars and `.idx`
//! without a manifest (of the shard that was ending, or of shards that were being removed),
//! temporary files, the lock's file. A shard is complete when its manifest can be read, its tar has
//! the length that this states, and it begins at the right sample. The next call removes temporary
//! files (not for a share: they may be another process's) and keeps complete shards. Shards of a
//! size follow from those before them: the first that is missing and all after it are made. With
//! `shard_samples` each missing one is made alone.
//!
//! | what it is | files |
//! |---|---|
//! | what is asked for; its options; no cache is written into its source | `builder`, `options`, `overlap` |
//! | which parts are built, where; how one is built in its folder | `build`, `folder_build` |
//! | what is there; how the cache there differs; which shards are finished, which are missing | `cache_folder`, `changes`, `complete_shards`, `shard_places` |
//! | the lock of a folder; what a refused build removes; the names of all files | `lock`, `new_folders`, `layout` |
//! | the source's shards out of a store; headers and fingerprint of its files | `source_shards`, `source_headers` |
//! | the space that a build takes; a disk without it | `disk_estimate`, `disk_full` |
//! | payloads into shards; bad samples that may be left out | `payload_writer`, `lasting_faults` |
//! | one sample; one shard; one shard on its way to storage | `sample_members`, `shard_ledger`, `shard_file` |
//! | a cache on its way into a store: its folder here; what is there, and what is sent | `stage`, `upload` |
//! | progress and reports | `report` |
//! | whether all bytes are what they were; what is in a cache | `verify`, `info` |

mod build;
mod builder;
mod cache_folder;
mod changes;
mod complete_shards;
mod disk_estimate;
mod disk_full;
mod folder_build;
mod info;
mod lasting_faults;
pub(crate) mod layout;
mod lock;
mod new_folders;
mod options;
mod overlap;
mod payload_writer;
mod report;
mod sample_members;
mod shard_file;
mod shard_ledger;
mod shard_places;
mod source_headers;
mod source_shards;
mod stage;
mod upload;
mod verify;

pub use crate::data::shard::manifest::SourceLosses;
pub use builder::CacheBuilder;
pub use info::{CacheInfo, ReadMeasurement, SampleBytes, info};
pub use options::{BuildOptions, BuildPart, CacheEncoding, CacheResize, OnBadSample};
pub use report::{BuildPhase, BuildProgress, BuildReport, SendReport, SkippedSample};
pub use verify::{
    DamagedSample, FindingKind, VerifyFinding, VerifyOptions, VerifyProgress, VerifyReport, verify,
};
