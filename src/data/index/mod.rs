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
//! - `samples`: the index itself; `chosen`: some samples as an index of their own; `place`:
//!   where a sample lies; `classes`, `class_counts`: names of classes, samples of each;
//! - `opening`: the ways to an index; `folder`, `list`, `table`, `shards`, `parquet`, `cifar`,
//!   `open_cache`: one each; `names`: which names are pictures'; `lines`, `roots`: of lists, and
//!   where their paths start; `value`: a label as it is written; `numbers`: several numbers in a
//!   text; `column_names`: which columns have paths and labels; `lenient_json`: a value of a JSON
//!   text; `record_keys`: what a record of JSON has; `foreign`: what is no data set; `encoding`:
//!   text that is not UTF-8; `boxes`: box files; `beyond`: where links lead;
//!   `reach`: the folders of all;
//! - `report`: what a scan found, left out and found damaged; `json`: paths in JSON;
//! - `sealed`: the binary form; `save`: in a file; `kept`: an index of shards, for
//!   later runs; `coming`: the same of shards that lie in an object store; `of_cache`: that of a
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
mod beyond;
mod boxes;
mod chosen;
mod cifar;
mod class_counts;
mod classes;
mod column_names;
mod coming;
mod encoding;
mod folder;
mod foreign;
mod json;
mod kept;
mod lenient_json;
mod lines;
mod list;
mod names;
mod numbers;
mod of_cache;
mod open_cache;
mod opening;
mod parquet;
mod place;
mod reach;
mod record_keys;
mod report;
mod roots;
mod samples;
mod save;
mod sealed;
mod shards;
mod table;
mod value;

pub use crate::picture::PixelBox;
pub use cifar::{CifarClasses, CifarOptions};
pub use class_counts::ClassCount;
pub use classes::Classes;
#[cfg(feature = "stores")]
pub(crate) use coming::is_kept_index;
#[cfg(feature = "stores")]
pub(crate) use coming::kept_hashes;
pub(crate) use coming::{ComingShards, one_for_each, one_for_some, open_kept};
pub use folder::{FolderLabels, FolderOptions};
pub(crate) use json::{lossy, lossy_option};
pub use list::{Delimiter, ListLabels, ListOptions};
pub(crate) use names::shown;
pub use names::{ARRAY_EXTENSION, IMAGE_EXTENSIONS, OWN_PREFIX};
pub(crate) use of_cache::CachedSamples;
pub use parquet::{ParquetLabels, ParquetOptions};
pub use report::{DamagedShard, ScanReport, SkipReason, Skipped, TableColumns};
pub use samples::Index;
pub(crate) use sealed::Part;
pub use sealed::{Label, LabelVector};
pub(crate) use shards::refuse_what_is_no_tar;
pub use shards::{JSON_EXTENSION, KeepIndex, ShardLabels, ShardOptions};
pub use table::{TableLabels, TableOptions};
