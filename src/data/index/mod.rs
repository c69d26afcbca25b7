//! What there is: the paths of all samples, their labels and the class names.
//!
//! Built in the consumer, before any other process exists, and sealed into a
//! memfd that coordinator and workers map: its bytes are paid for once. Only
//! names are read here, and of tar shards headers and labels: no picture is
//! opened, so a sample that is broken, dangling or no regular file is found when
//! it is loaded. A sample's
//! id is its position, from 0. Nothing here is random, prints, or decides
//! which samples a batch takes: that is the plan's.
//!
//! - `samples`: the index itself; `subset`: some samples as an index of their own; `location`:
//!   where a sample lies; `classes`, `class_counts`: names of classes, samples of each;
//! - `constructors`: the ways to an index; `folder`, `list`, `table`, `shards`, `parquet`, `cifar`,
//!   `open_cache`: one each; `names`: which names are pictures'; `lines`, `list_root`: of lists, and
//!   where their paths start; `label_value`: a label as it is written; `numbers`: several numbers in a
//!   text; `column_names`: which columns have paths and labels; `lenient_json`: a value of a JSON
//!   text; `record_keys`: what a record of JSON has; `foreign_data`: what is no data set; `text_encoding`:
//!   text that is not UTF-8; `boxes`: box files; `link_targets`: where links lead;
//!   `sandbox_roots`: the folders of all;
//! - `report`: what a scan found, left out and found damaged; `json`: paths in JSON;
//! - `binary_form`: the binary form; `index_file`: in a file; `index_cache`: an index of shards, for
//!   later runs; `remote_index`: the same of shards that lie in an object store; `cached_samples`: that of a
//!   cache, made while it is built; `agreement`: whether an index fits its shards.
//!
//! ```
//! # fn main() -> featherload::Result<()> {
//! # let dir = tempfile::tempdir().unwrap();
//! # let src = dir.path();
//! # std::fs::create_dir_all(src.join("cat")).unwrap();
//! # std::fs::write(src.join("cat/1.jpg"), "").unwrap();
//! use featherload::index::{FolderOptions, Index, Label};
//!
//! let (index, report) = Index::folder(src, &FolderOptions::default())?;
//! assert_eq!(index.len(), 1);
//! assert_eq!(index.relative_path(0), std::path::Path::new("cat/1.jpg"));
//! assert_eq!(index.label(0), Label::Class(0));
//! assert_eq!(report.skipped_total(), 0);
//! # Ok(())
//! # }
//! ```

mod agreement;
mod binary_form;
mod boxes;
mod cached_samples;
mod cifar;
mod class_counts;
mod classes;
mod column_names;
mod constructors;
mod folder;
mod foreign_data;
mod index_cache;
mod index_file;
mod json;
mod label_value;
mod lenient_json;
mod lines;
mod link_targets;
mod list;
mod list_root;
mod location;
mod names;
mod numbers;
mod open_cache;
mod parquet;
mod record_keys;
mod remote_index;
mod report;
mod samples;
mod sandbox_roots;
mod shards;
mod subset;
mod table;
mod text_encoding;

pub use crate::picture::PixelBox;
pub(crate) use binary_form::SampleLocation;
pub use binary_form::{Label, LabelVector};
pub(crate) use cached_samples::CachedSamples;
pub use cifar::{CifarClasses, CifarOptions};
pub use class_counts::ClassCount;
pub use classes::ClassList;
pub use folder::{FolderLabels, FolderOptions};
pub(crate) use json::{lossy, lossy_option};
pub use list::{ListDelimiter, ListLabels, ListOptions};
pub(crate) use names::shown;
pub use names::{ARRAY_EXTENSION, IMAGE_EXTENSIONS, OWN_PREFIX};
pub use parquet::{ParquetLabels, ParquetOptions};
#[cfg(feature = "stores")]
pub(crate) use remote_index::is_index_file;
#[cfg(feature = "stores")]
pub(crate) use remote_index::stored_hashes;
pub(crate) use remote_index::{
    RemoteIndexBuilder, open_stored, placeholder_index, placeholder_subset,
};
pub use report::{DamagedShard, ScanReport, SkipCount, SkipReason, TableColumns};
pub use samples::Index;
pub(crate) use shards::check_is_tar;
pub use shards::{JSON_EXTENSION, KeepIndex, ShardLabels, ShardOptions};
pub use table::{TableLabels, TableOptions};
