//! Reads each Arrow file, and joins all files to one index.
//!
//! Runs in the consumer, with one file per thread.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::data::arrow::{ArrowBytes, ArrowColumn, ArrowFile};
use crate::data::columns::AvailableColumn;
use crate::data::columns::values::{ColumnBuilder, ColumnKind, ColumnValues};
use crate::data::index::arrow::columns;
use crate::data::index::arrow::columns::ArrowColumns;
use crate::data::index::arrow::file_paths::ArrowFiles;
use crate::data::index::arrow::labels;
use crate::data::index::arrow::pictures::{ArrowPictures, ArrowPlaces};
use crate::data::index::binary_form::{IndexContent, IndexLabels, StoredForm};
use crate::data::index::column_labels::{self, ClassNumbering, FileLabels};
use crate::data::index::items::{ItemLabel, ItemList};
use crate::data::index::parquet::ParquetOptions;
use crate::data::index::report::{ScanReport, SkipReason, TableColumns};
use crate::data::index::samples::Index;
use crate::data::index::shards::common_folder;
use crate::data::shard::shard_patterns;
use crate::error::{self, Error, Result};
use crate::sys::memory;
use crate::sys::regular_file::FileStamp;
use crate::sys::threads;

/// Reading offsets is mostly waiting for the disk.
const MAX_THREADS: usize = 4;

/// Bytes per row until the index is sealed: the location of its image, its label and its name, and
/// those of the index. Measured: 88 to 100, and 103 to 120 with an order beside the files.
pub(super) const ROW_BYTES: u64 = 128;

/// The samples of one file.
struct ArrowSamples {
    pictures: ArrowPictures,
    rows: u64,
    labels: FileLabels,
    columns: ArrowColumns,
    available: Vec<AvailableColumn>,
    stamp: FileStamp,
}

pub(crate) fn open(files: &ArrowFiles, options: &ParquetOptions) -> Result<(Index, ScanReport)> {
    if files.data.is_empty() {
        return Err(Error::config("no Arrow files: give a path or a pattern"));
    }
    let paths = absolute(&files.data)?;
    let names = ClassNumbering::default();
    let budget = RowBudget::new(memory::available_bytes());
    let found = threads::each("featherload-arrow", MAX_THREADS, &paths, |path| {
        // Before the file is read, so that a change during the read is noticed.
        let stamp = FileStamp::of(path).map_err(|e| match e.kind() {
            ErrorKind::NotFound => Error::dataset(path, "no such file: check the path"),
            _ => Error::io_at("look at", path, e),
        })?;
        let file = ArrowFile::read(path)?;
        let (pictures, labels, columns) =
            read(&file, options, &names, &budget).map_err(|what| Error::dataset(path, what))?;
        Ok(ArrowSamples {
            pictures,
            rows: file.rows,
            labels,
            columns,
            available: columns::available(file.fields()),
            stamp,
        })
    })?;
    let order = match files.indices.is_empty() {
        true => None,
        false => {
            let rows = found.iter().map(|samples| samples.rows);
            let rows = rows.fold(0, u64::saturating_add);
            Some(read_order(&files.indices, rows)?)
        }
    };
    join(&paths, found, names, options, order)
}

pub(super) fn absolute(files: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let absolute = |path: &PathBuf| {
        shard_patterns::check_is_file(path)?;
        std::path::absolute(path).map_err(|_| Error::config("an Arrow file has an empty name"))
    };
    files.iter().map(absolute).collect()
}

fn read(
    file: &ArrowFile,
    options: &ParquetOptions,
    names: &ClassNumbering,
    budget: &RowBudget,
) -> Result<(ArrowPictures, FileLabels, ArrowColumns), String> {
    let columns = ArrowColumns::find(file, options)?;
    budget.add(file)?;
    if file.rows == 0 {
        return Ok((
            ArrowPictures::Places(ArrowPlaces::default()),
            FileLabels::None,
            columns,
        ));
    }
    let pictures = ArrowPictures::read(file, &columns)?;
    let labels = match columns.label {
        Some(number) => labels::read(file, number, names)?,
        None => FileLabels::None,
    };
    Ok((pictures, labels, columns))
}

/// The rows of all files, compared with the memory that their index takes.
pub(super) struct RowBudget {
    available: Option<u64>,
    rows: AtomicU64,
}

impl RowBudget {
    pub(super) fn new(available: Option<u64>) -> Self {
        Self {
            available,
            rows: AtomicU64::new(0),
        }
    }

    /// Adds the rows of a file. Rejects rows whose index needs more than half of the available
    /// bytes: a sparse file can be longer than its disk space.
    pub(super) fn add(&self, file: &ArrowFile) -> Result<(), String> {
        // Compressed rows that are alike take less than a byte each.
        if file.rows > file.len && !file.is_packed {
            return Err("is damaged: it has more rows than bytes".into());
        }
        let before = self.rows.fetch_add(file.rows, Ordering::Relaxed);
        let all = before.saturating_add(file.rows);
        let bytes = all.saturating_mul(ROW_BYTES);
        let with_others = match before {
            0 => String::new(),
            _ => format!(", {all} with the files before it"),
        };
        match self.available.map(|bytes| bytes / 2) {
            Some(room) if bytes > room => Err(format!(
                "has {} rows{with_others}, whose index takes {}, more than {} (half of the \
                 available memory): use fewer rows, or more memory",
                file.rows,
                error::size_rounded_up(bytes),
                error::size_rounded_down(room)
            )),
            _ => Ok(()),
        }
    }
}

/// The rows that are samples, numbered over all `rows` of all files, in the order of the samples.
pub(super) fn read_order(files: &[PathBuf], rows: u64) -> Result<Vec<u64>> {
    let mut order = Vec::new();
    for path in absolute(files)? {
        let file = ArrowFile::read(&path)?;
        let failed = |what: String| Error::dataset(&path, what);
        let budget = RowBudget::new(memory::available_bytes());
        budget.add(&file).map_err(failed)?;
        let mut columns = file.fields().iter();
        let number = columns.position(|field| field.name == "indices");
        let number = number.ok_or_else(|| {
            failed("has no column 'indices': save the data set again (save_to_disk)".into())
        })?;
        let column = ArrowColumn::find(&file, &[number]).map_err(failed)?;
        let kind = column.field.column_kind();
        let Some(kind @ ColumnKind::Numbers(_, None)) = kind else {
            return Err(failed("has indices that are not whole numbers".into()));
        };
        let mut bytes = ArrowBytes::in_order(&file);
        let mut values = ColumnBuilder::new(kind);
        for row in 0..file.rows {
            let read = column.read_from(&mut bytes, row, &mut values);
            read.map_err(|what| failed(format!("row {row}: {what}")))?;
        }
        if let ColumnValues::Numbers { values, .. } = values.finish() {
            for row in values.to_i64().map_err(|e| failed(e.to_string()))? {
                let row = u64::try_from(row).ok().filter(|row| *row < rows);
                order.push(row.ok_or_else(|| {
                    failed(format!(
                        "has an index outside of the {rows} rows of the data set"
                    ))
                })?);
            }
        }
    }
    Ok(order)
}

fn join(
    paths: &[PathBuf],
    found: Vec<ArrowSamples>,
    names: ClassNumbering,
    options: &ParquetOptions,
    order: Option<Vec<u64>>,
) -> Result<(Index, ScanReport)> {
    let root = common_folder(paths);
    let mut report = ScanReport::default();
    let (mut of, mut labels) = (Vec::new(), Vec::new());
    let mut pictures = Vec::new();
    let mut classes: Option<Option<Vec<String>>> = None;
    for (path, file) in paths.iter().zip(found) {
        if file.rows == 0 {
            let relative = path.strip_prefix(&root).unwrap_or(path);
            report.skip(SkipReason::EmptyShard, relative.to_owned());
            continue;
        }
        if *classes.get_or_insert_with(|| file.columns.classes.clone()) != file.columns.classes {
            return Err(Error::dataset(
                path,
                "names other classes than the first file: give files of one data set",
            ));
        }
        report.columns.get_or_insert_with(|| TableColumns {
            image: Some(file.columns.picture_name),
            labels: file.columns.label_name.into_iter().collect(),
            available: file.available,
            ..TableColumns::default()
        });
        of.push((path, file.stamp));
        labels.push(file.labels);
        pictures.push(file.pictures);
    }
    let samples: u64 = match &order {
        Some(order) => order.len() as u64,
        None => pictures.iter().map(|file| file.rows() as u64).sum(),
    };
    if samples == 0 {
        return Err(Error::dataset(&root, "no rows in these Arrow files"));
    }
    report.samples = samples;
    let joined = column_labels::join(labels, names, classes.flatten(), options.classes.as_ref());
    let (labels, classes) = joined.map_err(|(file, what)| Error::dataset(of[file].0, what))?;
    let (root, mut content, stamps) = match pictures.first() {
        Some(ArrowPictures::Paths(_)) => {
            let (root, content) = of_paths(&of, &pictures, order.as_deref())?;
            (root, content, Vec::new())
        }
        _ => {
            let (content, stamps) = of_places(&root, &of, &pictures, order.as_deref())?;
            (root, content, stamps)
        }
    };
    content.labels = match &order {
        Some(order) => in_order(labels, order),
        None => labels,
    };
    content.classes = classes;
    let index = Index::seal(&root, content)?;
    match stamps.is_empty() {
        true => Ok((index, report)),
        false => Ok((index.rebased(&root, &stamps)?, report)),
    }
}

impl ArrowPictures {
    fn rows(&self) -> usize {
        match self {
            Self::Places(places) => places.rows.len(),
            Self::Paths(paths) => paths.len(),
        }
    }
}

type FileOfSet<'a> = (&'a PathBuf, FileStamp);

/// The file of a row of all files, and its row there.
fn find(firsts: &[u64], row: u64) -> (usize, u64) {
    let file = firsts.partition_point(|first| *first <= row) - 1;
    (file, row - firsts[file])
}

/// The first row of each file.
fn firsts(pictures: &[ArrowPictures]) -> Vec<u64> {
    let mut next = 0;
    let first = |file: &ArrowPictures| {
        next += file.rows() as u64;
        next - file.rows() as u64
    };
    pictures.iter().map(first).collect()
}

fn mixed(path: &Path) -> Error {
    Error::dataset(
        path,
        "has images as paths or as bytes, unlike the first file: give files of one data set",
    )
}

/// Samples that are ranges of the files or of their packed buffers. Returns the fingerprint of each
/// shard too: a shard is a file, or one of its buffers.
fn of_places(
    root: &Path,
    of: &[FileOfSet<'_>],
    pictures: &[ArrowPictures],
    order: Option<&[u64]>,
) -> Result<(IndexContent, Vec<FileStamp>)> {
    let mut content = IndexContent::default();
    let mut files = Vec::new();
    for ((path, stamp), file) in of.iter().zip(pictures) {
        let ArrowPictures::Places(places) = file else {
            return Err(mixed(path));
        };
        let path = path.strip_prefix(root).unwrap_or(path);
        files.push((path.as_os_str().as_bytes(), *stamp, places));
    }
    let name = |row| format!("row-{row}");
    let form = |places: &ArrowPlaces, page: Option<u32>| {
        let page = page.and_then(|number| places.pages.get(number as usize));
        page.copied().map(StoredForm::Page)
    };
    let mut stamps = Vec::new();
    let Some(order) = order else {
        for (path, stamp, places) in files {
            let mut last = None;
            for (row, place) in places.rows.iter().enumerate() {
                if last != Some(place.page) {
                    content.begin_form(path, form(places, place.page));
                    stamps.push(stamp);
                    last = Some(place.page);
                }
                content.push_part(name(row).as_bytes(), place.at, place.bytes);
            }
        }
        return Ok((content, stamps));
    };
    // Of each file: its buffers, and last the file itself if some images are ranges of it.
    let mut shards = Vec::new();
    for (path, stamp, places) in &files {
        shards.push(stamps.len());
        let is_file = places.rows.iter().any(|place| place.page.is_none());
        let pages = (0..places.pages.len() as u32).map(Some);
        for page in pages.chain(is_file.then_some(None)) {
            content.begin_form(path, form(places, page));
            stamps.push(*stamp);
        }
    }
    let firsts = firsts(pictures);
    for row in order {
        let (file, row) = find(&firsts, *row);
        let places = files[file].2;
        let place = places.rows[row as usize];
        let page = place.page.map_or(places.pages.len(), |page| page as usize);
        let shard = shards[file] + page;
        let shard = u32::try_from(shard).map_err(|_| Error::dataset(root, "too many buffers"))?;
        content.push_scattered(shard, name(row as usize).as_bytes(), place.at, place.bytes);
    }
    Ok((content, stamps))
}

/// Samples that are files of their own.
fn of_paths(
    of: &[FileOfSet<'_>],
    pictures: &[ArrowPictures],
    order: Option<&[u64]>,
) -> Result<(PathBuf, IndexContent)> {
    let mut files = Vec::new();
    for ((path, _), file) in of.iter().zip(pictures) {
        let ArrowPictures::Paths(paths) = file else {
            return Err(mixed(path));
        };
        files.push((*path, paths));
    }
    let mut list = ItemList::new();
    let mut push = |file: usize, row: usize| {
        let (path, paths): (&PathBuf, &Vec<Vec<u8>>) = files[file];
        let pushed = list.push(OsStr::from_bytes(&paths[row]), ItemLabel::None);
        pushed.map_err(|e| Error::dataset(path, format!("row {row}: {e}")))
    };
    match order {
        Some(order) => {
            let firsts = firsts(pictures);
            for row in order {
                let (file, row) = find(&firsts, *row);
                push(file, row as usize)?;
            }
        }
        None => {
            for (file, pictures) in pictures.iter().enumerate() {
                (0..pictures.rows()).try_for_each(|row| push(file, row))?;
            }
        }
    }
    list.into_content()
}

fn in_order(labels: IndexLabels, order: &[u64]) -> IndexLabels {
    let rows = order.iter().map(|row| *row as usize);
    match labels {
        IndexLabels::None => IndexLabels::None,
        IndexLabels::Class(all) => IndexLabels::Class(rows.map(|row| all[row]).collect()),
        IndexLabels::Vector { width, values } => IndexLabels::Vector {
            width,
            values: rows
                .flat_map(|row| &values[row * width..(row + 1) * width])
                .copied()
                .collect(),
        },
    }
}
