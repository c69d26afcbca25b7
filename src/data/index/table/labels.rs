//! Collects the labels of a table, record by record. All labels have one kind, and names get
//! numbers.
//!
//! Runs in the consumer. Holds each class name once. The number of names is limited, because a
//! column of captions is not a label column.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use crate::data::index::binary_form::IndexLabels;
use crate::data::index::classes::ClassList;
use crate::data::index::label_value::LabelValue;
use crate::data::index::names::shown;

const MOST_CLASSES: usize = 1 << 20;
/// A word for the place of a label in files with one record a line. Such files have `classes`.
pub(super) const LINE: &str = "line";
/// Maximum bytes of a class name.
const LONGEST_CLASS: usize = 4 << 10;

#[derive(Debug, Clone, Copy, PartialEq)]
enum TableLabelKind {
    None,
    Number,
    Name,
    Vector(usize),
}

impl TableLabelKind {
    fn of(label: Option<&LabelValue>) -> Self {
        match label {
            None => Self::None,
            Some(LabelValue::Number(_)) => Self::Number,
            Some(LabelValue::Name(_)) => Self::Name,
            Some(LabelValue::Vector(values)) => Self::Vector(values.len()),
        }
    }

    fn text(self) -> String {
        match self {
            Self::None => "no label".into(),
            Self::Number => "a whole number".into(),
            Self::Name => "a class name".into(),
            Self::Vector(1) => "a fraction".into(),
            Self::Vector(width) => format!("a vector of {width} numbers"),
        }
    }
}

#[derive(Debug)]
pub(in crate::data::index) struct TableLabelCollector<'a> {
    /// The line of the first record, and the kind of all labels.
    first: Option<(u64, TableLabelKind)>,
    labels: IndexLabels,
    /// The numbers of names in order of appearance. Not used with `classes`.
    names: HashMap<Vec<u8>, i64>,
    classes: Option<Cow<'a, ClassList>>,
    /// The noun before a number in error texts: `line` or `item`.
    place: &'static str,
}

impl<'a> TableLabelCollector<'a> {
    pub(in crate::data::index) fn new(
        place: &'static str,
        classes: Option<Cow<'a, ClassList>>,
    ) -> Self {
        Self {
            place,
            first: None,
            labels: IndexLabels::None,
            names: HashMap::new(),
            classes,
        }
    }

    /// Adds the label of a record. An error says why it does not fit the other labels.
    pub(in crate::data::index) fn add(
        &mut self,
        line: u64,
        label: Option<LabelValue>,
    ) -> Result<(), String> {
        let kind = TableLabelKind::of(label.as_ref());
        let (first, all) = *self.first.get_or_insert_with(|| {
            self.labels = match kind {
                TableLabelKind::None => IndexLabels::None,
                TableLabelKind::Number | TableLabelKind::Name => IndexLabels::Class(Vec::new()),
                TableLabelKind::Vector(width) => IndexLabels::Vector {
                    width,
                    values: Vec::new(),
                },
            };
            (line, kind)
        });
        match (all, kind) {
            // A fraction among whole numbers makes all labels numbers instead of classes.
            (TableLabelKind::Number, TableLabelKind::Vector(1)) => {
                self.first = Some((first, kind));
                if let IndexLabels::Class(numbers) = &self.labels {
                    self.labels = IndexLabels::Vector {
                        width: 1,
                        values: numbers.iter().map(|n| *n as f32).collect(),
                    };
                }
            }
            (TableLabelKind::Vector(1), TableLabelKind::Number) => {}
            (all, kind) if all == kind => {}
            (all, kind) => return Err(unlike(kind, all, self.place, first)),
        }
        match (&mut self.labels, label) {
            (IndexLabels::Class(all), Some(LabelValue::Number(number))) => all.push(number),
            (IndexLabels::Vector { values, .. }, Some(LabelValue::Number(n))) => {
                values.push(n as f32)
            }
            (IndexLabels::Vector { values, .. }, Some(LabelValue::Vector(v))) => values.extend(v),
            (IndexLabels::Class(all), Some(LabelValue::Name(name))) => {
                let number = match (self.names.get(&name), &self.classes) {
                    (Some(number), _) => *number,
                    (None, Some(table)) => table
                        .get(OsStr::from_bytes(&name))
                        .ok_or_else(|| unknown(&name))?,
                    (None, None) => add_name(&mut self.names, name)?,
                };
                all.push(number);
            }
            _ => {}
        }
        Ok(())
    }

    /// All labels, and the list of classes.
    pub(in crate::data::index) fn finish(mut self) -> Result<(IndexLabels, ClassList), String> {
        let kind = self.first.map_or(TableLabelKind::None, |(_, kind)| kind);
        if let Some(table) = self.classes {
            return match kind {
                TableLabelKind::Name => Ok((self.labels, table.into_owned())),
                TableLabelKind::None => Err(
                    "`classes` has no effect without labels, and no column has any: name it with \
                     `label_column`, or remove `classes`"
                        .into(),
                ),
                kind => Err(format!(
                    "`classes` numbers class names, and a label here is {}: remove it",
                    kind.text()
                )),
            };
        }
        let mut sorted: Vec<(Vec<u8>, i64)> = self.names.into_iter().collect();
        sorted.sort_unstable();
        let mut numbers = vec![0; sorted.len()];
        for (number, (_, came)) in sorted.iter().enumerate() {
            numbers[*came as usize] = number as i64;
        }
        if let (TableLabelKind::Name, IndexLabels::Class(all)) = (kind, &mut self.labels) {
            for label in all {
                *label = numbers[*label as usize];
            }
        }
        let names = sorted.into_iter().map(|(name, _)| OsString::from_vec(name));
        let classes = ClassList::new(names).map_err(|e| e.to_string())?;
        Ok((self.labels, classes))
    }
}

/// The number of a name. A new name gets the next number.
fn add_name(names: &mut HashMap<Vec<u8>, i64>, name: Vec<u8>) -> Result<i64, String> {
    let what = if name.len() > LONGEST_CLASS {
        format!("a class name longer than {LONGEST_CLASS} bytes")
    } else if names.len() >= MOST_CLASSES {
        format!("more than {MOST_CLASSES} class names")
    } else {
        let number = names.len() as i64;
        names.insert(name, number);
        return Ok(number);
    };
    Err(format!(
        "{what}: name another column with `label_column`, or use `labels: none`"
    ))
}

fn unlike(this: TableLabelKind, all: TableLabelKind, place: &str, first: u64) -> String {
    let fix = match (this, all) {
        (TableLabelKind::Number, TableLabelKind::Name)
        | (TableLabelKind::Name, TableLabelKind::Number)
            if place == LINE =>
        {
            "use one kind, or give `classes`, which makes all labels of a CSV names"
        }
        _ => "use one kind",
    };
    format!(
        "the label is {}, and that of {place} {first} is {}: {fix}",
        this.text(),
        all.text()
    )
}

fn unknown(name: &[u8]) -> String {
    format!(
        "class '{}' is not in the class table: add the name, or remove `classes`",
        shown(name)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_counted_before_there_is_memory_for_all() {
        let mut labels = TableLabelCollector::new(LINE, None);
        let name = |i: usize| Some(LabelValue::Name(format!("{i}x").into_bytes()));
        for i in 0..MOST_CLASSES {
            labels.add(1, name(i)).unwrap();
        }
        labels.add(2, name(7)).unwrap();
        let e = labels.add(3, name(MOST_CLASSES)).unwrap_err();
        assert!(
            e.starts_with("more than 1048576 class names: name another"),
            "{e}"
        );
        let (_, classes) = labels.finish().unwrap();
        assert_eq!(classes.len(), MOST_CLASSES);
    }
}
