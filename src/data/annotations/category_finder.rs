//! Categories that are found while annotations are read: names, or numbers.

use std::collections::HashMap;

use super::report::AnnotationFault;
use crate::data::objects::ObjectCategory;

/// More categories than a file may have.
const MOST_CATEGORIES: usize = 65_536;
/// Bytes of the longest name.
const MOST_NAME: usize = 4096;

/// Gives each category a number for the time being. In the end they are sorted, since the order of
/// first appearance depends on the order of a file.
#[derive(Debug)]
pub(super) struct CategoryFinder {
    /// Names in the order of their labels. None: they are found.
    given: Option<Vec<String>>,
    found: HashMap<String, u32>,
}

/// Categories in the order of their labels, and the label of each number so far.
#[derive(Debug, PartialEq)]
pub(super) struct FoundCategories {
    pub(super) categories: Vec<ObjectCategory>,
    pub(super) labels: Vec<u32>,
}

impl CategoryFinder {
    pub(super) fn new(given: Option<&[String]>) -> Self {
        let given = given.map(<[String]>::to_vec);
        let names = given.iter().flatten().cloned();
        Self {
            found: names.zip(0..).collect(),
            given,
        }
    }

    /// The number of a category by its name.
    ///
    /// # Errors
    /// It is not one of the given names, or has no name.
    pub(super) fn of_name(&mut self, name: &str) -> Result<u32, AnnotationFault> {
        if let Some(number) = self.found.get(name) {
            return Ok(*number);
        }
        let is_known = self.given.is_some() || name.is_empty() || name.len() > MOST_NAME;
        if is_known || self.found.len() == MOST_CATEGORIES {
            return Err(AnnotationFault::UnknownCategory);
        }
        let number = self.found.len() as u32;
        self.found.insert(name.to_owned(), number);
        Ok(number)
    }

    /// The number of a category by its number in the file, which counts the given names from 0.
    ///
    /// # Errors
    /// There are fewer given names.
    pub(super) fn of_number(&mut self, number: i64) -> Result<u32, AnnotationFault> {
        match &self.given {
            None => self.of_name(&number.to_string()),
            Some(names) => {
                let label = u32::try_from(number).ok();
                let label = label.filter(|label| (*label as usize) < names.len());
                label.ok_or(AnnotationFault::UnknownCategory)
            }
        }
    }

    /// All categories. Names that are whole numbers are sorted as numbers, and keep them as ids.
    /// Others are sorted as texts.
    pub(super) fn finish(self) -> FoundCategories {
        if let Some(names) = self.given {
            let labels = (0..names.len() as u32).collect();
            let category = |(id, name)| ObjectCategory { id, name };
            return FoundCategories {
                categories: (0..).zip(names).map(category).collect(),
                labels,
            };
        }
        let mut found: Vec<(String, u32)> = self.found.into_iter().collect();
        let number = |name: &str| {
            let number: i64 = name.parse().ok()?;
            // `01` and `1` are different names.
            (number.to_string() == name).then_some(number)
        };
        let are_numbers = found.iter().all(|(name, _)| number(name).is_some());
        match are_numbers {
            true => found.sort_by_key(|(name, _)| number(name)),
            false => found.sort(),
        }
        let mut labels = vec![0; found.len()];
        for (label, (_, so_far)) in (0..).zip(&found) {
            labels[*so_far as usize] = label;
        }
        let category = |(label, (name, _)): (i64, (String, u32))| ObjectCategory {
            id: number(&name).filter(|_| are_numbers).unwrap_or(label),
            name,
        };
        FoundCategories {
            categories: (0..).zip(found).map(category).collect(),
            labels,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(names: &[&str]) -> (Vec<(i64, String)>, Vec<u32>) {
        let mut finder = CategoryFinder::new(None);
        let numbers: Vec<u32> = names.iter().map(|n| finder.of_name(n).unwrap()).collect();
        let found = finder.finish();
        let labels = numbers.iter().map(|n| found.labels[*n as usize]).collect();
        let categories = found.categories.into_iter().map(|of| (of.id, of.name));
        (categories.collect(), labels)
    }

    #[test]
    fn names_are_sorted_and_numbers_keep_their_ids() {
        let pair = |id, name: &str| (id, name.to_owned());
        assert_eq!(
            found(&["tree", "cat", "tree", "ant"]),
            (
                vec![pair(0, "ant"), pair(1, "cat"), pair(2, "tree")],
                vec![2, 1, 2, 0]
            )
        );
        assert_eq!(
            found(&["10", "9", "-1"]),
            (
                vec![pair(-1, "-1"), pair(9, "9"), pair(10, "10")],
                vec![2, 1, 0]
            )
        );
        assert_eq!(
            found(&["10", "09"]),
            (vec![pair(0, "09"), pair(1, "10")], vec![1, 0])
        );
        assert_eq!(found(&[]), (vec![], vec![]));
    }

    #[test]
    fn given_names_are_the_only_ones() {
        let names = ["b".to_owned(), "a".to_owned()];
        let mut finder = CategoryFinder::new(Some(&names));
        assert_eq!((finder.of_name("a"), finder.of_number(0)), (Ok(1), Ok(0)));
        let unknown = Err(AnnotationFault::UnknownCategory);
        assert_eq!(finder.of_name("c"), unknown);
        for number in [2, -1, i64::MAX] {
            assert_eq!(finder.of_number(number), unknown);
        }
        let found = finder.finish();
        assert_eq!(found.labels, [0, 1]);
        assert_eq!(found.categories[0].name, "b");
    }

    #[test]
    fn many_categories_and_long_names_are_unknown() {
        let mut finder = CategoryFinder::new(None);
        let unknown = Err(AnnotationFault::UnknownCategory);
        assert_eq!(finder.of_name(""), unknown);
        assert_eq!(finder.of_name(&"a".repeat(MOST_NAME + 1)), unknown);
        for n in 0..MOST_CATEGORIES as i64 {
            finder.of_number(n).unwrap();
        }
        assert_eq!(finder.of_number(-1), unknown);
        assert_eq!(finder.of_number(7), Ok(7));
    }
}
