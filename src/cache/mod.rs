//! Caches: a data set as shards, which later runs map and read at the speed of the disk or
//! network.
//!
//! A cache is a folder of uncompressed WebDataset tars. Each has DALI's index and a manifest with
//! checksums beside it. The samples are ordinary image files. This room runs in the consumer,
//! except for the workers of step 6. Never in here: printing, `unsafe`.
//!
//! ```text
//! shard-000000.tar .idx .json   the samples, then their columns; DALI's index; offsets and hashes
//! manifest.json                 options, source, classes; written before the first shard, with
//!                               the shards at the end
//! index.fli                     the sealed index of all samples
//! objects.flo, masks.fli        the table of their objects, the index of their masks
//! raster-NAME.fli               the index of their rasters of this name
//! ```
//!
//! **The steps of a build**, from the command line down. Each name is a function:
//!
//! 1. `bin/featherload/cache/build.rs` fills a `CacheBuilder`.
//!    `CacheBuilder::build_watched` (`builder`) checks the options, starts the coordinator and
//!    reads the names of the samples.
//! 2. `CacheBuild::build` (`build`) builds one part. `build_in_shares` builds several: if the
//!    source's shards come from a store and do not all fit on this machine at once.
//! 3. `build_part` locks the folder. For a destination in a store, that folder is a stage:
//!    `build_into_store` compares it with the store, and `upload_remaining` waits for the upload.
//! 4. `CacheBuild::build_in_folder` (`folder_build`) reads the existing manifest
//!    (`existing_manifest`). A manifest of other options or of another source ends the build,
//!    unless `force` is given or no shard is complete yet. `FolderBuild::run` calls `find_missing`,
//!    and `make_shards` if some are missing. It calls `finish`, except for a share.
//! 5. `make_shards` takes a list of shards: `fetch_shards`, `read_headers`, `DiskEstimate::need`,
//!    `start_workers`, `clear_and_begin` (writes the first `manifest.json`),
//!    `PayloadWriter::write_all`. Then it compares the source's files again.
//! 6. Workers decode and encode: `EncodeJob::fill` (`jobs/encode/worker.rs`). `EncodeRun::next`
//!    (`jobs/encode/run.rs`) returns payloads in order. `PayloadWriter::end_shard` ends a shard.
//! 7. `ShardFileWriter::finish` (`shard_file`) renames the files of a shard to their final names
//!    in this order: tar, `.idx`, manifest. It syncs each of them.
//!
//! **After a kill** the folder has the first `manifest.json`, complete shards, temporary files and
//! the lock file. It may have tars and `.idx` files without a manifest, of shards that were being
//! finished or removed. A shard is complete if its manifest can be read, its tar has the length
//! that the manifest states, and it begins at the right sample. The next call keeps complete
//! shards. It removes temporary files, except for a share, because they may belong to another
//! process. Shards of a given size depend on the shards before them: the build makes the first
//! missing one and all after it. With `shard_samples` it makes each missing shard alone.
//!
//! | subject | files |
//! |---|---|
//! | the request; its options; rejects a cache inside its own source | `builder`, `options`, `overlap` |
//! | which parts are built, and where; the build of one part in its folder | `build`, `folder_build` |
//! | the existing folder; differences from the request; finished and missing shards | `cache_folder`, `changes`, `complete_shards`, `shard_places` |
//! | the lock of a folder; folders that a rejected build removes; the names of all files | `lock`, `new_folders`, `layout` |
//! | the source's shards in a store; headers of its files, and the fingerprint that detects changes | `source_shards`, `source_headers` |
//! | the disk space that a build takes; the error of a full disk | `disk_estimate`, `disk_full` |
//! | the columns that a cache keeps; its objects and rasters | `columns`, `targets` |
//! | writes payloads into shards; bad samples that may be skipped | `payload_writer`, `lasting_faults` |
//! | the members of one sample; the table of shards; one shard while it is written | `sample_members`, `shard_ledger`, `shard_file` |
//! | a cache in a store: its local folder; the stored and the uploaded files | `stage`, `upload` |
//! | progress and reports | `report` |
//! | verifies all bytes; describes a cache | `verify`, `info` |

mod build;
mod builder;
mod cache_folder;
mod changes;
mod columns;
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
mod targets;
mod upload;
mod verify;

pub use crate::data::shard::manifest::SourceLosses;
pub use builder::CacheBuilder;
pub use info::{CacheInfo, CacheObjectInfo, CacheRasterInfo, ReadMeasurement, SampleBytes, info};
pub use options::{BuildOptions, BuildPart, CacheEncoding, CacheResize, OnBadSample};
pub use report::{BuildPhase, BuildProgress, BuildReport, SendReport, SkippedSample};
pub use verify::{
    DamagedSample, FindingKind, VerifyFinding, VerifyOptions, VerifyProgress, VerifyReport, verify,
};
