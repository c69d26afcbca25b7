//! Reads each Parquet file, and joins all files to one index.
//!
//! Runs in the consumer, with one file per thread.

use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::data::columns::AvailableColumn;
use crate::data::index::binary_form::{IndexContent, StoredForm};
use crate::data::index::column_labels::{self, ClassNumbering, FileLabels};
use crate::data::index::items::{ItemLabel, ItemList};
use crate::data::index::list_root::ListRoot;
use crate::data::index::names::shown;
use crate::data::index::parquet::column_reader;
use crate::data::index::parquet::columns::{ParquetColumns, paths_alone};
use crate::data::index::parquet::footer::ParquetFooter;
use crate::data::index::parquet::labels::LabelReader;
use crate::data::index::parquet::options::ParquetOptions;
use crate::data::index::parquet::pages::PageReader;
use crate::data::index::parquet::picture_paths::PicturePaths;
use crate::data::index::parquet::pictures::PictureLocations;
use crate::data::index::report::{ScanReport, SkipReason, TableColumns};
use crate::data::index::samples::Index;
use crate::data::index::shards::common_folder;
use crate::data::shard::shard_patterns;
use crate::error::{self, Error, Result};
use crate::sys::memory;
use crate::sys::panics::catch_panic;
use crate::sys::regular_file::FileStamp;
use crate::sys::threads;

/// Each thread holds a page, compressed and decompressed.
const MAX_THREADS: usize = 4;

/// Bytes per row until the index is sealed: the location of its image, its label and its name.
const ROW_BYTES: u64 = 64;

/// The samples of one file.
struct ParquetSamples {
    pictures: ParquetPictures,
    labels: FileLabels,
    columns: ParquetColumns,
    available: Vec<AvailableColumn>,
    stamp: FileStamp,
}

/// The images of one file.
enum ParquetPictures {
    Places(PictureLocations),
    Paths(PicturePaths),
}

impl ParquetPictures {
    fn rows(&self) -> usize {
        match self {
            Self::Places(places) => places.rows.len(),
            Self::Paths(paths) => paths.len(),
        }
    }
}

pub(super) fn open(files: &[PathBuf], options: &ParquetOptions) -> Result<(Index, ScanReport)> {
    if files.is_empty() {
        return Err(Error::config("no Parquet files: give a path or a pattern"));
    }
    let absolute = |path: &PathBuf| {
        shard_patterns::check_is_file(path)?;
        std::path::absolute(path).map_err(|_| Error::config("a Parquet file has an empty name"))
    };
    let paths = files.iter().map(absolute).collect::<Result<Vec<_>>>()?;
    let names = ClassNumbering::default();
    let found = threads::each("featherload-parquet", MAX_THREADS, &paths, |path| {
        // Before the file is read, so that a change during the read is noticed.
        let stamp = FileStamp::of(path).map_err(|e| match e.kind() {
            ErrorKind::NotFound => Error::dataset(path, "no such file: check the path"),
            _ => Error::io_at("look at", path, e),
        })?;
        // The crate that decodes footers may panic on damaged bytes.
        let read = catch_panic(|| {
            let footer = ParquetFooter::read(path)?;
            let available = column_reader::available(footer.data.file_metadata().schema_descr());
            let found = read(&footer, options, &names);
            let found = found.map_err(|what| Error::dataset(path, what))?;
            Ok((found, available))
        });
        let damaged = || Err(Error::dataset(path, "is damaged: it cannot be read"));
        let ((pictures, labels, columns), available) = read.unwrap_or_else(damaged)?;
        Ok(ParquetSamples {
            pictures,
            labels,
            columns,
            available,
            stamp,
        })
    })?;
    join(&paths, found, names, options)
}

/// The number of rows of a file.
///
/// A few bytes of a file can hold very many equal rows, and a sparse file can be longer than its
/// disk space. So rows whose index needs more than half of `available` bytes are rejected.
fn count_rows(footer: &ParquetFooter, available: Option<u64>) -> Result<u64, String> {
    let mut all: u64 = 0;
    for group in footer.data.row_groups() {
        let rows = u64::try_from(group.num_rows()).ok();
        let sum = rows.and_then(|rows| all.checked_add(rows));
        let sum = sum.filter(|sum| *sum <= footer.len);
        all = sum.ok_or("is damaged: it has more rows than bytes")?;
    }
    let bytes = all.saturating_mul(ROW_BYTES);
    match available.map(|bytes| bytes / 2) {
        Some(room) if bytes > room => Err(format!(
            "has {all} rows, whose index takes {}, more than {} (half of the available memory): \
             use files of fewer rows, or more memory",
            error::size_rounded_up(bytes),
            error::size_rounded_down(room)
        )),
        _ => Ok(all),
    }
}

fn read(
    footer: &ParquetFooter,
    options: &ParquetOptions,
    names: &ClassNumbering,
) -> Result<(ParquetPictures, FileLabels, ParquetColumns), String> {
    let columns = ParquetColumns::find(footer, options)?;
    let schema = footer.data.file_metadata().schema_descr();
    let picture = schema.column(columns.picture);
    let max_def = u32::try_from(picture.max_def_level()).unwrap_or(0);
    let label = columns.label.map(|number| schema.column(number));
    let mut places = PictureLocations::default();
    let mut paths = PicturePaths::new(memory::available_bytes());
    let reading = |column| LabelReader::new(column, names);
    let mut reading = label.as_ref().map(reading).transpose()?;
    let all = count_rows(footer, memory::available_bytes())?;
    for group in footer.data.row_groups() {
        let rows = u64::try_from(group.num_rows()).unwrap_or(0);
        let pages = |number: usize| {
            let column = group.columns().get(number);
            let column = column.ok_or("is damaged: a row group lacks a column")?;
            PageReader::of(&footer.file, footer.len, column)
        };
        match columns.is_of_paths {
            true => paths.add(&picture, pages(columns.picture)?, rows)?,
            false => places.add(pages(columns.picture)?, rows, max_def)?,
        }
        if let (Some(reading), Some(label), Some(number)) = (&mut reading, &label, columns.label) {
            reading.add(label, pages(number)?, rows)?;
        }
    }
    if !columns.is_of_paths && places.nulls == all && all > 0 {
        return Err(match columns.has_paths {
            true => paths_alone(&columns.picture_name),
            false => format!(
                "has no image in column '{}', because every row is null: name another with \
                 `image_column`",
                shown(columns.picture_name.as_bytes())
            ),
        });
    }
    let labels = reading.map_or(FileLabels::None, LabelReader::finish);
    let pictures = match columns.is_of_paths {
        true => ParquetPictures::Paths(paths),
        false => ParquetPictures::Places(places),
    };
    Ok((pictures, labels, columns))
}

fn join(
    paths: &[PathBuf],
    found: Vec<ParquetSamples>,
    names: ClassNumbering,
    options: &ParquetOptions,
) -> Result<(Index, ScanReport)> {
    let root = common_folder(paths);
    let mut report = ScanReport::default();
    let (mut pictures, mut labels) = (Vec::new(), Vec::new());
    let mut classes: Option<Option<Vec<String>>> = None;
    for (path, file) in paths.iter().zip(found) {
        let relative = path.strip_prefix(&root).unwrap_or(path);
        if file.pictures.rows() == 0 {
            report.skip(SkipReason::EmptyShard, relative.to_owned());
            continue;
        }
        if *classes.get_or_insert_with(|| file.columns.classes.clone()) != file.columns.classes {
            return Err(Error::dataset(
                path,
                "names other classes than the first file: give files of one data set",
            ));
        }
        pictures.push((path, file.stamp, file.pictures));
        report.columns.get_or_insert_with(|| TableColumns {
            image: Some(file.columns.picture_name),
            labels: file.columns.label_name.into_iter().collect(),
            available: file.available,
            ..TableColumns::default()
        });
        labels.push((path, file.labels));
    }
    report.samples = pictures.iter().map(|(.., all)| all.rows() as u64).sum();
    if report.samples == 0 {
        return Err(Error::dataset(&root, "no rows in these Parquet files"));
    }
    let (of, labels): (Vec<&PathBuf>, Vec<FileLabels>) = labels.into_iter().unzip();
    let joined = column_labels::join(labels, names, classes.flatten(), options.classes.as_ref());
    let (labels, classes) = joined.map_err(|(file, what)| Error::dataset(of[file], what))?;
    let is_of_paths = matches!(pictures.first(), Some((.., ParquetPictures::Paths(_))));
    if !is_of_paths && options.root.is_some() {
        return Err(Error::config(format!(
            "`root` has no effect on {}, which has images and no paths: remove the option, or name \
             a column of paths with `path_column`",
            paths[0].display()
        )));
    }
    let (mut list, mut content, mut stamps) = (ItemList::new(), IndexContent::default(), vec![]);
    for (path, stamp, pictures) in pictures {
        match pictures {
            ParquetPictures::Paths(paths) if is_of_paths => {
                let start = ListRoot::new(path, options.root.as_deref(), options.allow_outside)?;
                for (row, text) in paths.iter().enumerate() {
                    let failed = |what: String| Error::dataset(path, format!("row {row}: {what}"));
                    let whole = start.whole(text).map_err(|bad| failed(bad.text()))?;
                    let pushed = list.push(whole, ItemLabel::None);
                    pushed.map_err(|e| failed(e.to_string()))?;
                }
            }
            ParquetPictures::Places(places) if !is_of_paths => {
                let relative = path.strip_prefix(&root).unwrap_or(path);
                add(&mut content, relative, &places, || stamps.push(stamp));
            }
            ParquetPictures::Paths(_) | ParquetPictures::Places(_) => {
                return Err(Error::dataset(
                    path,
                    "has images as paths or as bytes, unlike the first file: give files of one \
                     data set",
                ));
            }
        }
    }
    if is_of_paths {
        let (root, mut content) = list.into_content()?;
        (content.labels, content.classes) = (labels, classes);
        return Ok((Index::seal(&root, content)?, report));
    }
    (content.labels, content.classes) = (labels, classes);
    let index = Index::seal(&root, content)?;
    Ok((index.rebased(&root, &stamps)?, report))
}

/// Adds the samples of a file. Calls `begun` for each shard that is added for them: the file
/// itself, or one of its compressed pages.
fn add(
    content: &mut IndexContent,
    path: &Path,
    places: &PictureLocations,
    mut begun: impl FnMut(),
) {
    let mut last = None;
    for (row, place) in places.rows.iter().enumerate() {
        if last != Some(place.page) {
            let page = place.page.and_then(|n| places.pages.get(n as usize));
            content.begin_form(
                path.as_os_str().as_bytes(),
                page.copied().map(StoredForm::Page),
            );
            begun();
            last = Some(place.page);
        }
        content.push_part(format!("row-{row}").as_bytes(), place.at, place.bytes);
    }
}
