//! The number of samples of each class.
//!
//! Counted in the consumer, over the labels of the whole index.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use crate::data::index::names::shown;
use crate::data::index::{Index, Label};

/// A class and its number of samples. Displays as `name (samples)` or `number 7 (samples)`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ClassCount {
    /// Class number, from 0.
    pub number: i64,
    /// `None` if labels are numbers without names. Bytes that are not UTF-8 are replaced.
    pub name: Option<String>,
    /// Number of samples with this class.
    pub samples: u64,
}

impl Index {
    /// All classes and their numbers of samples, sorted by class number. Includes named classes
    /// without samples, and numbers from 0 that have samples but no name. Empty if samples have no
    /// classes. Reads every label.
    pub fn class_counts(&self) -> Vec<ClassCount> {
        let names = self.classes();
        let mut counts: BTreeMap<i64, u64> = (0..).take(names.len()).map(|n| (n, 0)).collect();
        for id in 0..self.len() {
            if let Label::Class(number @ 0..) = self.label(id) {
                *counts.entry(number).or_default() += 1;
            }
        }
        let class = |(number, samples)| ClassCount {
            number,
            name: names.name(number).map(|n| n.to_string_lossy().into_owned()),
            samples,
        };
        counts.into_iter().map(class).collect()
    }
}

impl ClassCount {
    /// The classes with the fewest and with the most samples. Ties go to the lowest number. `None`
    /// if there are no classes.
    pub fn smallest_and_largest(counts: &[Self]) -> Option<(&Self, &Self)> {
        let smallest = counts.iter().min_by_key(|c| (c.samples, c.number));
        let largest = counts
            .iter()
            .max_by_key(|c| (c.samples, std::cmp::Reverse(c.number)));
        smallest.zip(largest)
    }
}

impl fmt::Display for ClassCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => f.write_str(&shown(name.as_bytes()))?,
            None => write!(f, "number {}", self.number)?,
        }
        write!(f, " ({})", self.samples)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::data::index::ClassList;
    use crate::data::index::binary_form::{IndexContent, IndexLabels};

    fn index(names: &[&str], labels: IndexLabels, samples: usize) -> Index {
        let mut content = IndexContent::default();
        for i in 0..samples {
            content.push_path(format!("{i}.jpg").as_bytes());
        }
        content.labels = labels;
        content.classes = ClassList::new(names).unwrap();
        Index::seal(Path::new("/"), content).unwrap()
    }

    fn text(index: &Index) -> Vec<String> {
        index.class_counts().iter().map(|c| c.to_string()).collect()
    }

    #[test]
    fn classes_are_those_with_a_name_and_those_that_samples_have() {
        let named = index(
            &["a", "none", "b\u{1b}"],
            IndexLabels::Class(vec![2, 0, 2]),
            3,
        );
        assert_eq!(text(&named), ["a (1)", "none (0)", "b\\u{1b} (2)"]);
        let numbers = index(&[], IndexLabels::Class(vec![7, 3, 7, -1]), 4);
        assert_eq!(text(&numbers), ["number 3 (1)", "number 7 (2)"]);
        let flat = index(&[], IndexLabels::Class(vec![-1; 2]), 2);
        assert_eq!(flat.class_counts(), []);
        assert_eq!(index(&[], IndexLabels::None, 2).class_counts(), []);
    }

    #[test]
    fn of_several_the_first_is_named() {
        let all = index(
            &["a", "b", "c", "d"],
            IndexLabels::Class(vec![0, 1, 1, 2, 3, 3]),
            6,
        );
        let counts = all.class_counts();
        let (smallest, largest) = ClassCount::smallest_and_largest(&counts).unwrap();
        assert_eq!((smallest.number, largest.number), (0, 1));
        assert_eq!(ClassCount::smallest_and_largest(&[]), None);
    }
}
