//! Labels of Parquet files: of one file by the crate, on pages that are read here; then of all.
//!
//! In the consumer. Holds each class name once, and a bounded number of them: a column of
//! captions is none of labels.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use bytes::Bytes;
use parquet::basic::{ConvertedType, Encoding, Type as Physical};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::{
    BoolType, ByteArrayType, DataType, DoubleType, FloatType, Int32Type, Int64Type,
};
use parquet::errors::ParquetError;
use parquet::schema::types::ColumnDescPtr;

use crate::data::index::classes::Classes;
use crate::data::index::names::shown;
use crate::data::index::parquet::pages::{Kind, Pages, encoding_of};
use crate::data::index::sealed::Labels;

const MOST_CLASSES: usize = 1 << 20;
/// Bytes of a name.
const LONGEST_CLASS: usize = 4 << 10;
/// The largest page of labels, unpacked.
const MOST_PAGE: u64 = 64 << 20;
/// Rows that are read at a time.
const ROWS: u64 = 4096;

/// The labels of one file.
#[derive(Debug, Default, PartialEq)]
pub(super) enum FileLabels {
    #[default]
    None,
    Numbers(Vec<i64>),
    Fractions(Vec<f32>),
    /// A number of `names` a row.
    Names {
        numbers: Vec<u32>,
        names: Vec<Vec<u8>>,
    },
}

impl FileLabels {
    fn text(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Numbers(_) => "whole numbers",
            Self::Fractions(_) => "fractions",
            Self::Names { .. } => "class names",
        }
    }
}

/// Reads the labels of a file, a row group at a time.
pub(super) struct Reading {
    labels: FileLabels,
    known: HashMap<Vec<u8>, u32>,
    rows: u64,
}

impl Reading {
    pub(super) fn new(column: &ColumnDescPtr) -> Result<Self, String> {
        let is_scaled = column.converted_type() == ConvertedType::DECIMAL;
        let labels = match column.physical_type() {
            other if is_scaled => return Err(no_label(column, &format!("decimals ({other})"))),
            Physical::INT32 | Physical::INT64 | Physical::BOOLEAN => {
                FileLabels::Numbers(Vec::new())
            }
            Physical::FLOAT | Physical::DOUBLE => FileLabels::Fractions(Vec::new()),
            Physical::BYTE_ARRAY => FileLabels::Names {
                numbers: Vec::new(),
                names: Vec::new(),
            },
            other => return Err(no_label(column, &other.to_string())),
        };
        Ok(Self {
            labels,
            known: HashMap::new(),
            rows: 0,
        })
    }

    /// The labels of one row group.
    pub(super) fn add(
        &mut self,
        column: &ColumnDescPtr,
        pages: Pages,
        rows: u64,
    ) -> Result<(), String> {
        let first = self.rows;
        self.rows += rows;
        let (labels, known) = (&mut self.labels, &mut self.known);
        match (labels, column.physical_type()) {
            (FileLabels::Numbers(all), Physical::INT32) => {
                let is_unsigned = column.converted_type() == ConvertedType::UINT_32;
                each::<Int32Type>(column, pages, (first, rows), |n| {
                    all.push(match is_unsigned {
                        true => i64::from(*n as u32),
                        false => i64::from(*n),
                    });
                    Ok(())
                })
            }
            (FileLabels::Numbers(all), Physical::INT64) => {
                let is_unsigned = column.converted_type() == ConvertedType::UINT_64;
                each::<Int64Type>(column, pages, (first, rows), |n| {
                    match is_unsigned && *n < 0 {
                        true => Err(format!("the label {} is too large", *n as u64)),
                        false => {
                            all.push(*n);
                            Ok(())
                        }
                    }
                })
            }
            (FileLabels::Numbers(all), _) => each::<BoolType>(column, pages, (first, rows), |is| {
                all.push(i64::from(*is));
                Ok(())
            }),
            (FileLabels::Fractions(all), Physical::FLOAT) => {
                each::<FloatType>(column, pages, (first, rows), |n| fraction(all, *n))
            }
            (FileLabels::Fractions(all), _) => {
                each::<DoubleType>(column, pages, (first, rows), |n| fraction(all, *n as f32))
            }
            (FileLabels::Names { numbers, names }, _) => {
                each::<ByteArrayType>(column, pages, (first, rows), |name| {
                    numbers.push(number_of(name.data(), known, names)?);
                    Ok(())
                })
            }
            (FileLabels::None, _) => Ok(()),
        }
    }

    pub(super) fn finish(self) -> FileLabels {
        self.labels
    }
}

fn no_label(column: &ColumnDescPtr, kind: &str) -> String {
    format!(
        "has {kind} in column '{}', which is no label: name another with `label_column`, or use \
         `labels: none`",
        shown(column.name().as_bytes())
    )
}

fn fraction(all: &mut Vec<f32>, number: f32) -> Result<(), String> {
    if !number.is_finite() {
        return Err("the label is not a finite number".into());
    }
    all.push(number);
    Ok(())
}

fn number_of(
    name: &[u8],
    known: &mut HashMap<Vec<u8>, u32>,
    names: &mut Vec<Vec<u8>>,
) -> Result<u32, String> {
    if let Some(number) = known.get(name) {
        return Ok(*number);
    }
    let advice = "name another column with `label_column`, or use `labels: none`";
    if name.is_empty() || name.contains(&0) {
        return Err(format!("'{}' is no class name: {advice}", shown(name)));
    }
    if name.len() > LONGEST_CLASS {
        return Err(format!(
            "a class name longer than {LONGEST_CLASS} bytes: {advice}"
        ));
    }
    if names.len() >= MOST_CLASSES {
        return Err(format!("more than {MOST_CLASSES} class names: {advice}"));
    }
    let number = names.len() as u32;
    known.insert(name.to_vec(), number);
    names.push(name.to_vec());
    Ok(number)
}

/// Gives each value of a row group to `take`; a row without one is an error. `first` is the
/// file's row that it begins with.
fn each<T: DataType>(
    column: &ColumnDescPtr,
    pages: Pages,
    (first, rows): (u64, u64),
    mut take: impl FnMut(&T::T) -> Result<(), String>,
) -> Result<(), String> {
    let mut reader = ColumnReaderImpl::<T>::new(column.clone(), Box::new(LabelPages(pages)));
    let (mut levels, mut values) = (Vec::new(), Vec::new());
    let name = || shown(column.name().as_bytes());
    let mut done = 0;
    while done < rows {
        levels.clear();
        values.clear();
        let wanted = ROWS.min(rows - done) as usize;
        let (read, ..) = reader
            .read_records(wanted, Some(&mut levels), None, &mut values)
            .map_err(|e| format!("column '{}' cannot be read: {e}", name()))?;
        if read == 0 {
            return Err(format!("is damaged: column '{}' ends early", name()));
        }
        let mut values = values.iter();
        for i in 0..read {
            let row = first + done + i as u64;
            let is_there = column.max_def_level() == 0
                || levels.get(i).is_some_and(|l| *l == column.max_def_level());
            let value = if is_there { values.next() } else { None };
            let value = value.ok_or_else(|| {
                format!(
                    "row {row}: no label in column '{}': add it, or use `labels: none`",
                    name()
                )
            })?;
            take(value).map_err(|what| format!("row {row}: {what}"))?;
        }
        done += read as u64;
    }
    Ok(())
}

/// Pages that are read here, within bounds, as the crate takes them.
struct LabelPages(Pages);

impl LabelPages {
    fn read(&mut self) -> Result<Option<Page>, String> {
        let Some(page) = self.0.next_page()? else {
            return Ok(None);
        };
        if page.unpacked > MOST_PAGE {
            return Err("has a page of labels of more than 64 MiB".into());
        }
        let buf = Bytes::from(self.0.body(&page)?);
        let encoding = encoding_of(page.encoding).ok_or_else(|| self.0.damaged())?;
        let num_values = page.values;
        Ok(Some(match page.kind {
            Kind::Dictionary => Page::DictionaryPage {
                buf,
                num_values,
                encoding,
                is_sorted: false,
            },
            Kind::Data { level_encoding } => Page::DataPage {
                buf,
                num_values,
                encoding,
                def_level_encoding: encoding_of(level_encoding).ok_or_else(|| self.0.damaged())?,
                rep_level_encoding: Encoding::RLE,
                statistics: None,
            },
            Kind::DataV2 {
                rows,
                nulls,
                rep_bytes,
                def_bytes,
                ..
            } => Page::DataPageV2 {
                buf,
                num_values,
                encoding,
                num_nulls: nulls,
                num_rows: rows,
                def_levels_byte_len: def_bytes,
                rep_levels_byte_len: rep_bytes,
                is_compressed: false,
                statistics: None,
            },
        }))
    }
}

impl Iterator for LabelPages {
    type Item = Result<Page, ParquetError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for LabelPages {
    fn get_next_page(&mut self) -> Result<Option<Page>, ParquetError> {
        self.read().map_err(ParquetError::General)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>, ParquetError> {
        Err(ParquetError::NYI("pages are read in order".into()))
    }

    fn skip_next_page(&mut self) -> Result<(), ParquetError> {
        self.get_next_page().map(|_| ())
    }

    fn at_record_boundary(&mut self) -> Result<bool, ParquetError> {
        Ok(true)
    }
}

/// The labels of all files, and the classes that they name. `names`: those of class numbers,
/// by Hugging Face's note; `classes`: the numbers that are wanted.
///
/// # Errors
/// The number of the file that it is about, and what is wrong.
pub(super) fn join(
    files: Vec<FileLabels>,
    names: Option<Vec<String>>,
    classes: Option<&Classes>,
) -> Result<(Labels, Classes), (usize, String)> {
    let unlike = files.iter().position(|f| f.text() != files[0].text());
    if let Some(at) = unlike {
        let (this, first) = (files[at].text(), files[0].text());
        return Err((
            at,
            format!("its labels are {this}, and those of the first file are {first}"),
        ));
    }
    let unfit = |kind: &str| {
        format!("`classes` numbers class names, and the labels here are {kind}: remove it")
    };
    let first = files.first().map_or("none", FileLabels::text);
    match files.first() {
        None | Some(FileLabels::None) => match classes {
            Some(_) => Err((0, unfit(first))),
            None => Ok((Labels::None, Classes::default())),
        },
        Some(FileLabels::Fractions(_)) => match classes {
            Some(_) => Err((0, unfit(first))),
            None => {
                let values = files.into_iter().flat_map(|f| match f {
                    FileLabels::Fractions(values) => values,
                    _ => Vec::new(),
                });
                let values = values.collect();
                Ok((Labels::Vector { width: 1, values }, Classes::default()))
            }
        },
        Some(FileLabels::Numbers(_)) => numbers(files, names, classes),
        Some(FileLabels::Names { .. }) => by_name(files, classes),
    }
}

fn numbers(
    files: Vec<FileLabels>,
    names: Option<Vec<String>>,
    classes: Option<&Classes>,
) -> Result<(Labels, Classes), (usize, String)> {
    let Some(names) = names else {
        if classes.is_some() {
            let what = "`classes` numbers class names, and the labels here are numbers without \
                        names: remove it";
            return Err((0, what.into()));
        }
        let all = files.into_iter().flat_map(|f| match f {
            FileLabels::Numbers(all) => all,
            _ => Vec::new(),
        });
        return Ok((Labels::Class(all.collect()), Classes::default()));
    };
    // What each number becomes.
    let wanted = match classes {
        None => (0..names.len() as i64).collect(),
        Some(table) => names
            .iter()
            .map(|name| table.get(name).ok_or_else(|| (0, unknown(name.as_bytes()))))
            .collect::<Result<Vec<i64>, _>>()?,
    };
    let mut all = Vec::new();
    for (number, file) in files.into_iter().enumerate() {
        let FileLabels::Numbers(labels) = file else {
            continue;
        };
        for (row, label) in labels.into_iter().enumerate() {
            let known = usize::try_from(label).ok().and_then(|l| wanted.get(l));
            let known = known.ok_or_else(|| {
                let what = format!(
                    "row {row}: label {label} is none of the {} classes that the file names: use \
                     `labels: none`",
                    names.len()
                );
                (number, what)
            })?;
            all.push(*known);
        }
    }
    let table = match classes {
        Some(table) => table.clone(),
        // Names that stand twice cannot be told apart, so numbers stay alone.
        None => Classes::new(names).unwrap_or_default(),
    };
    Ok((Labels::Class(all), table))
}

fn by_name(
    files: Vec<FileLabels>,
    classes: Option<&Classes>,
) -> Result<(Labels, Classes), (usize, String)> {
    let table = match classes {
        Some(table) => table.clone(),
        None => {
            let names = files.iter().flat_map(|f| match f {
                FileLabels::Names { names, .. } => names.as_slice(),
                _ => &[],
            });
            let mut names: Vec<&Vec<u8>> = names.collect();
            names.sort_unstable();
            names.dedup();
            if names.len() > MOST_CLASSES {
                return Err((0, format!("more than {MOST_CLASSES} class names")));
            }
            let names = names.into_iter().cloned().map(OsString::from_vec);
            Classes::new(names).map_err(|e| (0, e.to_string()))?
        }
    };
    let mut all = Vec::new();
    for (number, file) in files.into_iter().enumerate() {
        let FileLabels::Names { numbers, names } = file else {
            continue;
        };
        let wanted = names.iter().map(|name| {
            let known = table.get(OsStr::from_bytes(name));
            known.ok_or_else(|| (number, unknown(name)))
        });
        let wanted = wanted.collect::<Result<Vec<i64>, _>>()?;
        all.extend(numbers.into_iter().map(|n| wanted[n as usize]));
    }
    Ok((Labels::Class(all), table))
}

fn unknown(name: &[u8]) -> String {
    format!(
        "class '{}' is not in the class table: add the name, or remove `classes`",
        shown(name)
    )
}
