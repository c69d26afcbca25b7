//! Samples that gave no pixels: grouped for people, all of them in a file.

use std::collections::BTreeMap;
use std::path::Path;

use featherload::{Error, Result, RowFault};
use serde::Serialize;

use crate::output;

/// Samples that are named to people.
const EXAMPLES: usize = 5;

/// One sample that gave no pixels; names are the contract of `--json` and `--failures`.
#[derive(Serialize)]
pub struct Failure {
    pub id: u64,
    pub path: String,
    pub kind: &'static str,
    pub reason: String,
    /// The sample whose pixels stand in its row; none = the row is masked.
    pub substitute: Option<u64>,
}

impl Failure {
    pub fn of(fault: &RowFault) -> Self {
        Self {
            id: fault.id,
            path: fault.path.display().to_string(),
            kind: fault.fault.kind.name(),
            reason: fault.fault.reason.clone(),
            substitute: fault.substitute,
        }
    }
}

/// Failures of one kind, and some of them to be named.
pub struct Group<'a> {
    pub kind: &'static str,
    pub count: usize,
    pub examples: Vec<&'a Failure>,
}

/// By kind, the most frequent first. Five samples are named in all: as many kinds as
/// possible have one before any has two.
pub fn grouped(failures: &[Failure]) -> Vec<Group<'_>> {
    let mut kinds: BTreeMap<&'static str, Vec<&Failure>> = BTreeMap::new();
    for failure in failures {
        kinds.entry(failure.kind).or_default().push(failure);
    }
    let mut kinds: Vec<_> = kinds.into_iter().collect();
    kinds.sort_by_key(|(_, all)| std::cmp::Reverse(all.len()));
    let mut named = vec![0; kinds.len()];
    for round in 0..EXAMPLES {
        for (count, (_, all)) in named.iter_mut().zip(&kinds) {
            *count = all.len().min(round + 1).max(*count);
        }
        if named.iter().sum::<usize>() >= EXAMPLES {
            break;
        }
    }
    let mut left = EXAMPLES;
    let groups = kinds.into_iter().zip(named).map(|((kind, all), named)| {
        let named = named.min(left);
        left -= named;
        Group {
            kind,
            count: all.len(),
            examples: all.into_iter().take(named).collect(),
        }
    });
    groups.collect()
}

/// Writes all of them: a JSON object a line, in the order in which they came.
pub fn write(file: &Path, failures: &[Failure]) -> Result<()> {
    let mut text = Vec::new();
    for failure in failures {
        serde_json::to_writer(&mut text, failure)
            .map_err(|e| Error::io("write JSON", std::io::Error::other(e)))?;
        text.push(b'\n');
    }
    output::write_whole(file, &text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failures(kinds: &[(&'static str, usize)]) -> Vec<Failure> {
        let each = kinds
            .iter()
            .flat_map(|&(kind, n)| (0..n).map(move |i| (kind, i)));
        each.map(|(kind, i)| Failure {
            id: i as u64,
            path: format!("{kind}/{i}"),
            kind,
            reason: String::new(),
            substitute: None,
        })
        .collect()
    }

    #[test]
    fn five_are_named_and_every_kind_has_its_turn() {
        for (kinds, want) in [
            (&[][..], &[][..]),
            (&[("a", 9)], &[5]),
            (&[("a", 1), ("b", 9)], &[4, 1]),
            (&[("a", 3), ("b", 2), ("c", 9)], &[2, 2, 1]),
            (
                &[("a", 1), ("b", 1), ("c", 1), ("d", 1), ("e", 1), ("f", 1)],
                &[1, 1, 1, 1, 1, 0],
            ),
        ] {
            let all = failures(kinds);
            let groups = grouped(&all);
            let named: Vec<usize> = groups.iter().map(|g| g.examples.len()).collect();
            assert_eq!(named, want, "{kinds:?}");
            assert!(groups.is_sorted_by_key(|g| std::cmp::Reverse(g.count)));
            assert_eq!(groups.iter().map(|g| g.count).sum::<usize>(), all.len());
        }
    }
}
