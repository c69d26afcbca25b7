//! Caches: a data set turned into shards that later runs map and read at the
//! speed of the link.
//!
//! A cache is a folder of uncompressed WebDataset tars, each with DALI's index
//! and a checksummed manifest beside it; no format of our own. Runs in the
//! consumer. Never in here: printing, `unsafe`.
//!
//! ```text
//! shard-000000.tar .idx .json   the samples; DALI's index; offsets and hashes
//! manifest.json                 options, source, classes, the shards
//! index.fli                     the sealed index of all samples
//! ```
//!
//! - `builder`: what is asked for; `options`: by what a cache is built; `asked`: both,
//!   for the build; `overlap`: no cache is written into its source;
//! - `build`: what is gone on with, refused and finished; `apart`: the same of shards that
//!   stand alone; `writing`: from payloads
//!   to complete shards; `so_far`: which are; `report`: what is told of it;
//!   `faults`: which bad samples may be left out;
//! - `surveyed`, `need`, `storage`: what the source is, what it will take, and
//!   what is done when there is no room;
//! - `into_store`: the same into an object store, by way of a folder; `upload`: what of it is
//!   there, and what is on its way;
//! - `from_store`: what gets the shards of a source that lies in one; `brought`: which of them a
//!   build reads; `rounds`: it is made part by part, where they have no room here;
//! - `folder`: what is there already; `new_folders`: what a refused build removes; `lock`: whose
//!   it is; `changes`: what differs;
//! - `members`, `book`, `shard_file`: one sample, one shard, one shard on its way
//!   to storage;
//! - `verify`: whether all bytes are what they were; `info`: what is in a cache;
//! - `layout`: the names of all files.

mod apart;
mod asked;
mod book;
mod brought;
mod build;
mod builder;
mod changes;
mod faults;
mod folder;
mod from_store;
mod info;
mod into_store;
pub(crate) mod layout;
mod lock;
mod members;
mod need;
mod new_folders;
mod options;
mod overlap;
mod report;
mod rounds;
mod shard_file;
mod so_far;
mod storage;
mod surveyed;
mod upload;
mod verify;
mod writing;

pub use crate::data::shard::manifest::SourceLosses;
pub use builder::Builder;
pub use info::{CacheInfo, Reading, SampleBytes, info};
pub use options::{BuildOptions, BuildPart, CacheResize, Encoding, OnBadSample};
pub use report::{BuildPhase, BuildProgress, BuildReport, SendReport, SkippedSample};
pub use verify::{
    Finding, FindingKind, HurtSample, VerifyOptions, VerifyProgress, VerifyReport, verify,
};
