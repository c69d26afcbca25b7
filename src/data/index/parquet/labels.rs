//! Reads the labels of each Parquet file, and joins the labels of all files.
//!
//! Runs in the consumer. Holds one page, and each class name once. The number and length of class
//! names are limited, so that a column of captions is rejected as labels.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::sync::{Mutex, PoisonError};

use parquet::basic::{ConvertedType, Type as Physical};
use parquet::schema::types::ColumnDescPtr;

use crate::data::index::binary_form::IndexLabels;
use crate::data::index::classes::ClassList;
use crate::data::index::names::shown;
use crate::data::index::parquet::pages::{PageKind, PageLocation, PageReader, encoding};
use crate::data::index::parquet::rle::RleDecoder;
use crate::data::index::parquet::values::{ColumnValue, PageValues, ValueDictionary, ValueForm};

/// Most class names of a data set.
const MOST_CLASSES: usize = 1 << 20;
/// Most bytes of a class name.
const LONGEST_CLASS: usize = 4 << 10;
/// Most bytes of all class names of a data set. They may exceed the bytes of the file, because an
/// encoding stores shared prefixes once.
const MOST_NAMES: usize = 64 << 20;
/// Most bytes of a label page, unpacked.
const MOST_PAGE: u64 = 64 << 20;

/// The labels of one file, one per row.
#[derive(Debug, Default, PartialEq)]
pub(super) enum FileLabels {
    #[default]
    None,
    Numbers(Vec<i64>),
    Fractions(Vec<f32>),
    /// Numbers of [`ClassNumbering`].
    Names(Vec<u32>),
}

/// Numbers the class names of all files while threads read them.
///
/// The numbers depend on the order in which threads find the names, so they do not go into the
/// index. [`join`] replaces them.
#[derive(Debug, Default)]
pub(super) struct ClassNumbering {
    met: Mutex<ClassNumbers>,
}

#[derive(Debug, Default)]
struct ClassNumbers {
    numbers: HashMap<Vec<u8>, u32>,
    bytes: usize,
}

impl ClassNumbering {
    /// The number of a class name, which is new or known.
    ///
    /// # Errors
    /// A name that is not valid, or that exceeds a limit.
    fn number(&self, name: &[u8]) -> Result<u32, String> {
        let mut met = self.met.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = met.numbers.get(name) {
            return Ok(*number);
        }
        let number = met.numbers.len();
        check_name(name, number, met.bytes)?;
        met.bytes += name.len();
        // Less than `MOST_CLASSES`, so it fits.
        let number = number as u32;
        met.numbers.insert(name.to_vec(), number);
        Ok(number)
    }

    /// All names, by number.
    fn into_list(self) -> Vec<Vec<u8>> {
        let met = self
            .met
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<(Vec<u8>, u32)> = met.numbers.into_iter().collect();
        all.sort_unstable_by_key(|(_, number)| *number);
        all.into_iter().map(|(name, _)| name).collect()
    }
}

impl FileLabels {
    fn text(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Numbers(_) => "whole numbers",
            Self::Fractions(_) => "fractions",
            Self::Names(_) => "class names",
        }
    }
}

/// Reads the labels of a file, a row group at a time.
pub(super) struct LabelReader<'a> {
    labels: FileLabels,
    names: &'a ClassNumbering,
    /// The names in this file, so that rows with known names take no lock.
    known: HashMap<Vec<u8>, u32>,
    form: ValueForm,
    /// Whether fractions have 8 bytes.
    is_double: bool,
    /// Whether whole numbers have a sign.
    is_signed: bool,
    /// Rows read so far.
    rows: u64,
}

impl<'a> LabelReader<'a> {
    pub(super) fn new(column: &ColumnDescPtr, names: &'a ClassNumbering) -> Result<Self, String> {
        let physical = column.physical_type();
        let form = match column.converted_type() {
            ConvertedType::DECIMAL => {
                return Err(no_label(column, &format!("decimals ({physical})")));
            }
            _ => ValueForm::of(physical).ok_or_else(|| no_label(column, &physical.to_string()))?,
        };
        let labels = match physical {
            Physical::FLOAT | Physical::DOUBLE => FileLabels::Fractions(Vec::new()),
            Physical::BYTE_ARRAY => FileLabels::Names(Vec::new()),
            _ => FileLabels::Numbers(Vec::new()),
        };
        let unsigned = [ConvertedType::UINT_32, ConvertedType::UINT_64];
        Ok(Self {
            labels,
            names,
            known: HashMap::new(),
            form,
            is_double: physical == Physical::DOUBLE,
            is_signed: !unsigned.contains(&column.converted_type()) && form != ValueForm::Truth,
            rows: 0,
        })
    }

    /// Adds the labels of one row group, which has `rows` rows.
    ///
    /// # Errors
    /// A row without a label or with an invalid one, a damaged page, or an unsupported encoding.
    pub(super) fn add(
        &mut self,
        column: &ColumnDescPtr,
        mut pages: PageReader,
        rows: u64,
    ) -> Result<(), String> {
        let name = || shown(column.name().as_bytes());
        let most_level = u32::try_from(column.max_def_level()).unwrap_or(0);
        let end = self.rows + rows;
        let mut dictionary = None;
        while let Some(page) = pages.next_page()? {
            if page.unpacked > MOST_PAGE {
                return Err(
                    "has a page of labels of more than 64 MiB: write it with smaller pages, or use \
                     `labels: none`"
                        .into(),
                );
            }
            let body = pages.body(&page)?;
            if page.kind == PageKind::Dictionary {
                let known = ValueDictionary::new(body, self.form, page.values);
                dictionary = Some(known.ok_or_else(|| pages.damaged())?);
                continue;
            }
            if u64::from(page.values) > end - self.rows {
                return Err(pages.damaged());
            }
            let (mut levels, bytes) = split(&page, &body, most_level)
                .map_err(|what| what.unwrap_or_else(|| pages.damaged()))?;
            let encoded = (self.form, page.encoding);
            let most = u64::from(page.values);
            let mut values = PageValues::new(encoded, bytes, most, dictionary.as_ref());
            for _ in 0..page.values {
                let row = self.rows;
                let level = levels.as_mut().map_or(Some(most_level), Iterator::next);
                if level.ok_or_else(|| pages.damaged())? != most_level {
                    return Err(format!(
                        "row {row}: no label in column '{}': add it, or use `labels: none`",
                        name()
                    ));
                }
                let value = match &mut values {
                    Ok(values) => values.next_value().ok_or_else(|| pages.damaged())?,
                    Err(None) => return Err(pages.damaged()),
                    Err(Some(encoding)) => {
                        return Err(format!(
                            "has labels in the encoding {encoding} in column '{}', which is not \
                             supported: write it with plain or dictionary encoding",
                            name()
                        ));
                    }
                };
                self.take(value)
                    .map_err(|what| format!("row {row}: {what}"))?;
                self.rows += 1;
            }
        }
        match self.rows == end {
            true => Ok(()),
            false => Err(format!("is damaged: column '{}' ends early", name())),
        }
    }

    fn take(&mut self, value: ColumnValue<'_>) -> Result<(), String> {
        let is_short = self.form == ValueForm::Number(4);
        match (&mut self.labels, value) {
            (FileLabels::Numbers(all), ColumnValue::Bits(bits)) => all.push(match is_short {
                true if self.is_signed => i64::from(bits as i32),
                true => i64::from(bits as u32),
                false if self.is_signed => bits as i64,
                false => {
                    i64::try_from(bits).map_err(|_| format!("the label {bits} is too large"))?
                }
            }),
            (FileLabels::Fractions(all), ColumnValue::Bits(bits)) => {
                let number = match self.is_double {
                    true => f64::from_bits(bits) as f32,
                    false => f32::from_bits(bits as u32),
                };
                if !number.is_finite() {
                    return Err("the label is not a finite number".into());
                }
                all.push(number);
            }
            (FileLabels::Names(numbers), ColumnValue::Text(name)) => {
                let number = match self.known.get(name) {
                    Some(number) => *number,
                    None => {
                        let number = self.names.number(name)?;
                        self.known.insert(name.to_vec(), number);
                        number
                    }
                };
                numbers.push(number);
            }
            // A column has values of one form.
            _ => return Err("the type of the label is not the type of its column".into()),
        }
        Ok(())
    }

    pub(super) fn finish(self) -> FileLabels {
        self.labels
    }
}

/// The definition levels of a page, if it has any, and the bytes of its values.
///
/// # Errors
/// `None` for a damaged page, else the reason as text.
fn split<'a>(
    page: &PageLocation,
    body: &'a [u8],
    most_level: u32,
) -> Result<(Option<RleDecoder<'a>>, &'a [u8]), Option<String>> {
    let (before, levels) = match page.kind {
        PageKind::DataV2 {
            rep_bytes,
            def_bytes,
            ..
        } => (rep_bytes as usize, def_bytes as usize),
        _ if most_level == 0 => (0, 0),
        PageKind::Data { level_encoding } if level_encoding != encoding::RLE => {
            return Err(Some(
                "has levels in the old encoding BIT_PACKED: write it with a newer writer".into(),
            ));
        }
        _ => {
            let length = body.first_chunk::<4>().ok_or(None)?;
            (4, u32::from_le_bytes(*length) as usize)
        }
    };
    let behind = body.get(before..).ok_or(None)?;
    let (levels, values) = behind.split_at_checked(levels).ok_or(None)?;
    let width = RleDecoder::width_of(most_level);
    let levels = match most_level {
        0 => None,
        _ => Some(RleDecoder::new(levels, width).ok_or(None)?),
    };
    Ok((levels, values))
}

fn no_label(column: &ColumnDescPtr, kind: &str) -> String {
    format!(
        "has {kind} in column '{}', which cannot be a label: name another with `label_column`, or \
         use `labels: none`",
        shown(column.name().as_bytes())
    )
}

fn check_name(name: &[u8], names: usize, name_bytes: usize) -> Result<(), String> {
    let advice = "name another column with `label_column`, or use `labels: none`";
    if name.is_empty() || name.contains(&0) {
        return Err(format!(
            "'{}' is not a valid class name: {advice}",
            shown(name)
        ));
    }
    if name.len() > LONGEST_CLASS {
        return Err(format!(
            "a class name longer than {LONGEST_CLASS} bytes: {advice}"
        ));
    }
    if names >= MOST_CLASSES {
        return Err(format!("more than {MOST_CLASSES} class names: {advice}"));
    }
    if name_bytes + name.len() > MOST_NAMES {
        return Err(format!(
            "more than 64 MiB of class names in all files: {advice}"
        ));
    }
    Ok(())
}

/// The labels of all files, and the class list of the index.
///
/// `met`: class names found in label columns. `names`: names of class numbers in Hugging Face's
/// metadata. `classes`: the user's class list.
///
/// # Errors
/// The index of the file at fault in `files`, and the reason as text.
pub(super) fn join(
    files: Vec<FileLabels>,
    met: ClassNumbering,
    names: Option<Vec<String>>,
    classes: Option<&ClassList>,
) -> Result<(IndexLabels, ClassList), (usize, String)> {
    let unlike = files.iter().position(|f| f.text() != files[0].text());
    if let Some(at) = unlike {
        let (this, first) = (files[at].text(), files[0].text());
        return Err((
            at,
            format!(
                "its labels are {this}, but the first file has {first}: give files of one data set"
            ),
        ));
    }
    let unfit = |kind: &str| {
        format!("`classes` numbers class names, but the labels here are {kind}: remove `classes`")
    };
    let first = files.first().map_or("none", FileLabels::text);
    match files.first() {
        None | Some(FileLabels::None) => match classes {
            Some(_) => Err((0, unfit(first))),
            None => Ok((IndexLabels::None, ClassList::default())),
        },
        Some(FileLabels::Fractions(_)) => match classes {
            Some(_) => Err((0, unfit(first))),
            None => {
                let values = files.into_iter().flat_map(|f| match f {
                    FileLabels::Fractions(values) => values,
                    _ => Vec::new(),
                });
                let values = values.collect();
                Ok((
                    IndexLabels::Vector { width: 1, values },
                    ClassList::default(),
                ))
            }
        },
        Some(FileLabels::Numbers(_)) => numbers(files, names, classes),
        Some(FileLabels::Names(_)) => by_name(files, met.into_list(), classes),
    }
}

fn numbers(
    files: Vec<FileLabels>,
    names: Option<Vec<String>>,
    classes: Option<&ClassList>,
) -> Result<(IndexLabels, ClassList), (usize, String)> {
    let Some(names) = names else {
        if classes.is_some() {
            let what = "`classes` numbers class names, but the labels here are numbers without \
                        names: remove `classes`";
            return Err((0, what.into()));
        }
        let all = files.into_iter().flat_map(|f| match f {
            FileLabels::Numbers(all) => all,
            _ => Vec::new(),
        });
        return Ok((IndexLabels::Class(all.collect()), ClassList::default()));
    };
    // The label in the index for each class number of the files.
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
                    "row {row}: label {label} is not one of the {} classes in the file's metadata: \
                     correct it, or use `labels: none`",
                    names.len()
                );
                (number, what)
            })?;
            all.push(*known);
        }
    }
    let table = match classes {
        Some(table) => table.clone(),
        // Duplicate names are ambiguous, so the numbers keep no names.
        None => ClassList::new(names).unwrap_or_default(),
    };
    Ok((IndexLabels::Class(all), table))
}

fn by_name(
    files: Vec<FileLabels>,
    names: Vec<Vec<u8>>,
    classes: Option<&ClassList>,
) -> Result<(IndexLabels, ClassList), (usize, String)> {
    let table = match classes {
        Some(table) => table.clone(),
        None => {
            let mut sorted = names.clone();
            sorted.sort_unstable();
            let names = sorted.into_iter().map(OsString::from_vec);
            ClassList::new(names).map_err(|e| (0, e.to_string()))?
        }
    };
    let wanted = names.iter().map(|name| table.get(OsStr::from_bytes(name)));
    let wanted: Vec<Option<i64>> = wanted.collect();
    let mut all = Vec::new();
    for (number, file) in files.into_iter().enumerate() {
        let FileLabels::Names(numbers) = file else {
            continue;
        };
        for name in numbers.into_iter().map(|n| n as usize) {
            all.push(wanted[name].ok_or_else(|| (number, unknown(&names[name])))?);
        }
    }
    Ok((IndexLabels::Class(all), table))
}

fn unknown(name: &[u8]) -> String {
    format!(
        "class '{}' is not in the class table: add the name, or remove `classes`",
        shown(name)
    )
}
