//! Arguments that say where samples come from, shared by the sub-commands.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use featherload::Source;
use featherload::options::{self, SourceOptions, units};

#[derive(Args)]
pub struct SourceArgs {
    #[arg(value_name = "SRC", help = source_help(), long_help = source_long_help())]
    path: Option<PathBuf>,

    /// A list file or a table whose paths are relative to SRC, or to --root.
    #[arg(long, value_name = "FILE")]
    list: Option<PathBuf>,

    /// Where labels come from. `none` takes every image under SRC, recursively. Of
    /// tar shards `auto` is the field `cls`, or the only one that ends in it (label.cls),
    /// when samples have it.
    #[arg(long, value_enum, default_value_t = LabelSource::Auto)]
    labels: LabelSource,

    /// Class names, one a line: the line's number, from 0, is the label. For a
    /// validation folder, or tar shards or a table whose labels are names, that lack a
    /// class.
    #[arg(long, value_name = "FILE")]
    classes: Option<PathBuf>,

    /// Folder that paths of a list file or a table are relative to (default: the file's
    /// own).
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,

    /// Separator of path and label in a list file (default: blanks). With it a .csv is a
    /// list without a header line.
    #[arg(long, value_name = "CHAR")]
    delimiter: Option<String>,

    /// Let paths of a list file or a table leave the root.
    #[arg(long)]
    allow_outside: bool,

    /// Folder of box files, one for each picture of a list file (a/1.txt for a/1.jpg):
    /// the last line, `x0 y0 x1 y1`, is the part that counts as the picture.
    #[arg(long, value_name = "DIR")]
    boxes: Option<PathBuf>,

    /// Column of a table that has the paths (default: `file_name`, or another usual name);
    /// of JSON lines a key, or a JSON pointer (/a/b).
    #[arg(long, value_name = "NAME")]
    path_column: Option<String>,

    /// Column of Parquet files that has the pictures (default: the only one that there is, or
    /// `image`).
    #[arg(long, value_name = "NAME")]
    image_column: Option<String>,

    /// Column of a table or of Parquet files that has the labels, class numbers or names (default:
    /// `label`, `class`, `category`, `target`, or the only one with a similar name; without one
    /// there are none); several columns of a table are a vector of their numbers.
    #[arg(long, value_name = "NAME,..", conflicts_with = "labels")]
    label_column: Option<String>,

    /// Put behind each path of a table, such as .jpg where a column has ids.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    path_suffix: Option<String>,

    /// Pictures of tar shards: the field, such as image.jpg of 0.image.jpg (default: jpg or
    /// another extension of pictures, or else the only field that ends in one). Of several
    /// with `;` between two, the first that a sample has.
    #[arg(long, value_name = "EXT")]
    image_field: Option<String>,

    /// Labels of tar shards: the field of this extension (a class number, numbers
    /// or a class name).
    #[arg(long, value_name = "EXT", conflicts_with = "labels")]
    label_field: Option<String>,

    /// Labels of tar shards: what stands at this JSON pointer (/a/b) of the field
    /// `json`, or EXT: a class number, a class name or an array of numbers.
    #[arg(long, value_name = "[EXT:]POINTER", conflicts_with_all = ["labels", "label_field"])]
    label_json: Option<String>,

    /// Where the index of tar shards is kept, so that their headers are read once
    /// (default: $XDG_CACHE_HOME/featherload, or ~/.cache/featherload); `none` keeps none.
    #[arg(long, value_name = "DIR|none")]
    index_dir: Option<PathBuf>,

    /// Of a data set in an object store: the folder that its shards come to, which all ranks of a
    /// machine share (default: $XDG_CACHE_HOME/featherload/fetched, or ~/.cache/...).
    #[arg(long, value_name = "DIR")]
    fetch_dir: Option<PathBuf>,

    /// Of a data set in an object store: most bytes that its folder may hold, such as 200G
    /// (default: all of it, where that is at most half of what is free).
    #[arg(long, value_name = "SIZE", value_parser = units::bytes)]
    fetch_limit: Option<u64>,

    /// Of a data set in an object store: follow redirects to other hosts, such as those of public
    /// download sites. Addresses of this machine and of private networks stay closed.
    #[arg(long)]
    allow_redirects: bool,
}

/// What SRC may be, in a line.
pub fn source_help() -> String {
    format!("Where samples come from: {}", Source::KINDS)
}

/// What SRC may be.
pub fn source_long_help() -> String {
    format!(
        "{}. A folder has class sub-folders or is flat; of shards give \
         'train-{{000..123}}.tar' or 'DIR/*.tar', in quotes, in a store \
         's3://BUCKET/train-{{000..123}}.tar' or the prefix; of Parquet files a folder or \
         'DIR/train-*.parquet'; a list has `path label` lines; a \
         table is a .csv or .tsv with a header line, or a .jsonl; an index is kept by `featherload index --save`",
        source_help()
    )
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LabelSource {
    Auto,
    None,
}

impl SourceArgs {
    /// SRC.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Whether nothing but SRC is given.
    pub fn is_path_alone(&self) -> bool {
        let Self {
            path: _,
            list,
            labels,
            classes,
            root,
            delimiter,
            allow_outside,
            boxes,
            path_column,
            image_column,
            label_column,
            path_suffix,
            image_field,
            label_field,
            label_json,
            index_dir,
            fetch_dir,
            fetch_limit,
            allow_redirects,
        } = self;
        let paths = [list, classes, root, boxes, index_dir, fetch_dir];
        let of_tables = [path_column, image_column, label_column, path_suffix];
        let texts = [delimiter, image_field, label_field, label_json];
        *labels == LabelSource::Auto
            && !allow_outside
            && !allow_redirects
            && fetch_limit.is_none()
            && paths.iter().all(|given| given.is_none())
            && of_tables.iter().all(|given| given.is_none())
            && texts.iter().all(|given| given.is_none())
    }

    /// What they say, as the library takes it.
    pub fn options(&self) -> SourceOptions {
        let mut said = SourceOptions::default();
        said.path.clone_from(&self.path);
        said.list.clone_from(&self.list);
        said.labels = match self.labels {
            LabelSource::Auto => options::LabelSource::Auto,
            LabelSource::None => options::LabelSource::None,
        };
        said.classes.clone_from(&self.classes);
        said.root.clone_from(&self.root);
        said.delimiter.clone_from(&self.delimiter);
        said.allow_outside = self.allow_outside;
        said.boxes.clone_from(&self.boxes);
        said.path_column.clone_from(&self.path_column);
        said.image_column.clone_from(&self.image_column);
        said.label_column.clone_from(&self.label_column);
        said.path_suffix.clone_from(&self.path_suffix);
        said.image_field.clone_from(&self.image_field);
        said.label_field.clone_from(&self.label_field);
        said.label_json.clone_from(&self.label_json);
        said.index_dir.clone_from(&self.index_dir);
        said.fetch_dir.clone_from(&self.fetch_dir);
        said.fetch_limit = self.fetch_limit;
        said.allow_redirects = self.allow_redirects;
        said
    }
}
