//! The index: the paths of all samples, their labels and the class names.
//!
//! The consumer builds it before the workers start, and seals it into a memfd. The
//! coordinator and the workers map that memfd, so its bytes exist once. A scan reads names only,
//! and the headers and labels of tar shards. It opens no image. So a broken or dangling sample is
//! found when it is loaded. The id of a sample is its position, from 0. Nothing here is random,
//! prints, or decides which samples a batch takes: that is the task of `order`.
//!
//! The index and its parts:
//!
//! - `samples`: the index itself; `subset`: an index of some of its samples;
//! - `location`: where a sample is stored;
//! - `classes`, `class_counts`: the names of classes, and the number of samples in each;
//! - `report`: found, skipped and damaged files of a scan; `json`: paths in JSON.
//!
//! Constructors:
//!
//! - `constructors`: the public ways to make an index;
//! - `folder`, `list`, `table`, `shards`, `parquet`, `arrow`, `cifar`, `open_cache`: one file for
//!   each source; `items`, `file_parts`, `memory_items`: samples that a program lists, by path, by
//!   place in a file, or in memory; `array_files`: arrays of many images; `packed_objects`: single
//!   images of a store; `address_list`, `address_text`: lists of
//!   addresses;
//! - `names`: extensions of image files; `foreign_data`: files that are no data set;
//! - `lines`, `list_root`: the lines of list files, and the folder that their paths start from;
//! - `label_value`, `numbers`: a label, or several numbers, in a text;
//! - `column_names`: columns of paths and labels; `features`: Hugging Face's types of columns;
//!   `column_labels`: labels of several files; `record_keys`: keys of a JSON record;
//!   `json_column`: a column of JSON values;
//! - `lenient_json`: a value of a JSON text; `text_encoding`: text that is not UTF-8;
//! - `path_pattern`: files that belong to samples, such as masks; `text_files`: text files beside
//!   images;
//! - `boxes`: box files; `link_targets`: targets of symbolic links;
//! - `sandbox_roots`: the folders that workers may read.
//!
//! Stored forms:
//!
//! - `binary_form`: the binary form; `index_file`: that form in a file;
//! - `index_cache`: the saved index of shards, for later runs; `remote_index`: the same for shards
//!   in an object store; `cached_samples`: the index of a cache, made during the build;
//!   `cache_columns`: the columns that a cache keeps; `cache_targets`: its objects and rasters;
//! - `agreement`: whether an index fits its shards.
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

mod address_list;
mod address_text;
mod agreement;
mod array_files;
mod arrow;
mod binary_form;
mod boxes;
mod cache_columns;
mod cache_targets;
mod cached_samples;
mod cifar;
mod class_counts;
mod classes;
mod column_labels;
mod column_names;
mod constructors;
mod features;
mod file_parts;
mod folder;
mod foreign_data;
mod index_cache;
mod index_file;
mod items;
mod json;
mod json_column;
mod label_value;
mod lenient_json;
mod lines;
mod link_targets;
mod list;
mod list_root;
mod location;
mod memory_items;
mod names;
mod numbers;
mod open_cache;
mod packed_objects;
mod parquet;
mod path_pattern;
mod record_keys;
mod remote_index;
mod report;
mod samples;
mod sandbox_roots;
mod shards;
mod subset;
mod table;
mod text_encoding;
mod text_files;

pub use crate::picture::PixelBox;
#[cfg(feature = "stores")]
pub(crate) use address_list::DistinctAddresses;
pub(crate) use address_text::SCHEMES;
#[cfg(feature = "stores")]
pub(crate) use address_text::without_query;
pub use array_files::ArrayFiles;
pub use arrow::ArrowFiles;
pub(crate) use arrow::{open_columns as open_arrow_columns, open_rows as open_arrow_rows};
pub(crate) use binary_form::SampleLocation;
pub use binary_form::{Label, LabelVector};
pub(crate) use cache_columns::open_columns as open_cache_columns;
pub(crate) use cache_targets::{
    CachedObjects, CachedRasters, open_masks as open_cache_masks,
    open_objects as open_cache_objects, open_rasters as open_cache_rasters, read_raster_rule,
};
pub(crate) use cached_samples::CachedSamples;
pub use cifar::{CifarClasses, CifarOptions};
pub use class_counts::ClassCount;
pub use classes::ClassList;
pub use column_names::UsualColumns;
pub(crate) use features::WantedFields;
pub use file_parts::FilePartList;
pub use folder::{FolderLabels, FolderOptions};
pub(crate) use foreign_data::values_of;
pub use items::{ItemLabel, ItemList};
pub(crate) use json::{lossy, lossy_option};
pub(crate) use lines::TextLines;
pub use list::{ListDelimiter, ListLabels, ListOptions};
pub use memory_items::MemoryItems;
pub(crate) use names::shown;
pub use names::{ARRAY_EXTENSION, IMAGE_EXTENSIONS, OWN_PREFIX};
pub(crate) use packed_objects::{ListedNames, MemberPlace};
pub use parquet::{ParquetLabels, ParquetOptions};
pub(crate) use parquet::{open_columns as open_parquet_columns, open_rows as open_parquet_rows};
pub use path_pattern::PathPattern;
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
pub(crate) use shards::{
    PROBED as PROBED_SAMPLES, open_columns as open_shard_columns, open_parts as open_member_parts,
    open_rows as open_member_rows,
};
pub(crate) use table::{
    CsvRecords, open_columns as open_table_columns, open_records, open_rows as open_table_rows,
};
pub use table::{TableLabels, TableOptions};
pub(crate) use text_files::{names_text_files, open_columns as open_text_files};
