//! Failed samples: counted, grouped for the printed report, and written to a file.

use std::collections::BTreeMap;
use std::path::Path;

use featherload::{Error, Result, RowFault};
use serde::Serialize;

use crate::output::{self, WholeFile};

/// Failed samples that the printed report names.
const EXAMPLES: usize = 5;

/// A failed sample. Field names are part of the formats of `--json` and `--failures`.
#[derive(Serialize)]
pub struct FailedSample {
    pub id: u64,
    pub path: String,
    pub kind: &'static str,
    pub reason: String,
    /// The sample that replaced it in its row. None if the row is masked.
    pub substitute: Option<u64>,
}

impl FailedSample {
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

/// Most failures that are kept for the report.
const KEPT: usize = 1000;

/// The failures of a run: counts, the first failures, and a file that lists all.
#[derive(Default)]
pub struct FailureLog {
    /// The first failures, and at least [`EXAMPLES`] of each kind.
    pub kept: Vec<FailedSample>,
    pub kinds: BTreeMap<&'static str, u64>,
    /// Rows whose own sample failed.
    pub rows: u64,
    /// Rows of `rows` that another sample filled.
    pub substituted: u64,
    /// One bit a sample, 64 in a word.
    samples: BTreeMap<u64, u64>,
    file: Option<WholeFile>,
    /// Error of writing the file.
    unwritten: Option<Error>,
}

impl FailureLog {
    /// `file` receives every failure, one JSON object a line, in order of arrival.
    pub fn new(file: Option<&Path>) -> Result<Self> {
        Ok(Self {
            file: file.map(WholeFile::begin).transpose()?,
            ..Self::default()
        })
    }

    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    pub fn add(&mut self, failure: FailedSample) {
        if let Some(file) = &mut self.file
            && let Err(e) = write(file, &failure)
        {
            (self.file, self.unwritten) = (None, Some(e));
        }
        self.rows += 1;
        self.substituted += u64::from(failure.substitute.is_some());
        *self.samples.entry(failure.id / 64).or_default() |= 1 << (failure.id % 64);
        let of_kind = self.kinds.entry(failure.kind).or_default();
        *of_kind += 1;
        if self.kept.len() < KEPT || *of_kind <= EXAMPLES as u64 {
            self.kept.push(failure);
        }
    }

    /// Number of different samples that failed.
    pub fn count_samples(&self) -> u64 {
        let words = self.samples.values();
        words.map(|word| u64::from(word.count_ones())).sum()
    }

    /// Finishes the file.
    pub fn finish(&mut self) -> Result<()> {
        match (self.unwritten.take(), self.file.take()) {
            (Some(e), _) => Err(e),
            (None, Some(file)) => file.end(),
            (None, None) => Ok(()),
        }
    }
}

fn write(file: &mut WholeFile, failure: &FailedSample) -> Result<()> {
    file.add(format!("{}\n", output::json_text(failure)?).as_bytes())
}

/// Failures of one kind, with examples.
pub struct FailureGroup<'a> {
    pub kind: &'static str,
    pub count: u64,
    pub examples: Vec<&'a FailedSample>,
}

/// Groups by kind, the most frequent first. Five samples are named in all: each kind gets one
/// example before any kind gets two.
pub fn grouped<'a>(
    kept: &'a [FailedSample],
    kinds: &BTreeMap<&'static str, u64>,
) -> Vec<FailureGroup<'a>> {
    let of_kind = |kind: &'static str| kept.iter().filter(move |f| f.kind == kind).take(EXAMPLES);
    let mut kinds: Vec<_> = kinds
        .iter()
        .map(|(kind, count)| (*kind, *count, of_kind(kind).collect::<Vec<_>>()))
        .collect();
    kinds.sort_by_key(|(_, count, _)| std::cmp::Reverse(*count));
    let mut named = vec![0; kinds.len()];
    for round in 0..EXAMPLES {
        for (count, (_, _, first)) in named.iter_mut().zip(&kinds) {
            *count = first.len().min(round + 1).max(*count);
        }
        if named.iter().sum::<usize>() >= EXAMPLES {
            break;
        }
    }
    let mut left = EXAMPLES;
    let groups = kinds
        .into_iter()
        .zip(named)
        .map(|((kind, count, first), named)| {
            let named = named.min(left);
            left -= named;
            FailureGroup {
                kind,
                count,
                examples: first.into_iter().take(named).collect(),
            }
        });
    groups.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failures(kinds: &[(&'static str, usize)]) -> FailureLog {
        let each = kinds
            .iter()
            .flat_map(|&(kind, n)| (0..n).map(move |i| (kind, i)));
        let mut failures = FailureLog::default();
        for (kind, i) in each {
            failures.add(FailedSample {
                id: i as u64,
                path: format!("{kind}/{i}"),
                kind,
                reason: String::new(),
                substitute: None,
            });
        }
        failures
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
            let groups = grouped(&all.kept, &all.kinds);
            let named: Vec<usize> = groups.iter().map(|g| g.examples.len()).collect();
            assert_eq!(named, want, "{kinds:?}");
            assert!(groups.is_sorted_by_key(|g| std::cmp::Reverse(g.count)));
            assert_eq!(groups.iter().map(|g| g.count).sum::<u64>(), all.rows);
        }
    }

    #[test]
    fn a_run_of_any_length_keeps_the_first_failures_and_counts_all() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("bad.jsonl");
        let mut all = FailureLog::new(Some(&file)).unwrap();
        for i in 0..100_000u64 {
            let kind = if i < 99_990 { "corrupt" } else { "truncated" };
            all.add(FailedSample {
                id: i % 5000,
                path: format!("{i}"),
                kind,
                reason: String::new(),
                substitute: (i % 4 == 0).then_some(1),
            });
        }
        all.finish().unwrap();
        assert_eq!((all.rows, all.count_samples()), (100_000, 5000));
        assert_eq!(all.substituted, 25_000);
        assert_eq!(all.kinds["truncated"], 10);
        assert_eq!(all.kept.len(), KEPT + EXAMPLES);
        assert_eq!(all.kept[KEPT - 1].path, "999");
        let groups = grouped(&all.kept, &all.kinds);
        let named: Vec<_> = groups.iter().map(|g| (g.kind, g.examples.len())).collect();
        assert_eq!(named, [("corrupt", 3), ("truncated", 2)]);
        let lines = std::fs::read_to_string(&file).unwrap();
        assert_eq!(lines.lines().count(), 100_000);
        assert!(
            lines
                .lines()
                .next_back()
                .unwrap()
                .contains("\"path\":\"99999\"")
        );
    }
}
