//! The labels of a data set whose files have a column of labels: Parquet and Arrow.
//!
//! Runs in the consumer. Holds each class name once. The number and length of class names are
//! limited, so that a column of captions is rejected as labels. Reads no file.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::sync::{Mutex, PoisonError};

use crate::data::index::binary_form::IndexLabels;
use crate::data::index::classes::ClassList;
use crate::data::index::names::shown;

/// Most class names of a data set.
const MOST_CLASSES: usize = 1 << 20;
/// Most bytes of a class name.
const LONGEST_CLASS: usize = 4 << 10;
/// Most bytes of all class names of a data set. They may exceed the bytes of the file, because an
/// encoding stores shared prefixes once.
const MOST_NAMES: usize = 64 << 20;

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
    pub(super) fn number(&self, name: &[u8]) -> Result<u32, String> {
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
