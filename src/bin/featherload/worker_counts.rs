//! The numbers of workers that a command compares.

/// Numbers of workers, without repetition, in the given order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerCounts(pub Vec<usize>);

/// Most workers of a ring.
const MOST_WORKERS: usize = 4096;

pub fn parse_counts(text: &str) -> Result<WorkerCounts, String> {
    let mut counts = Vec::new();
    for part in text.split(',') {
        let count: usize = part
            .trim()
            .parse()
            .map_err(|e| format!("'{part}': {e}. Use numbers with commas, such as 1,2,4"))?;
        if count > MOST_WORKERS {
            return Err(format!(
                "{count} workers are too many: use at most {MOST_WORKERS}"
            ));
        }
        if counts.contains(&count) {
            return Err(format!("{count} is given twice: remove one"));
        }
        counts.push(count);
    }
    Ok(WorkerCounts(counts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_worker_counts() {
        assert_eq!(parse_counts("1,2,4"), Ok(WorkerCounts(vec![1, 2, 4])));
        assert_eq!(parse_counts("16, 0"), Ok(WorkerCounts(vec![16, 0])));
        for (text, word) in [
            ("", "commas"),
            ("1,,2", "commas"),
            ("1;2", "1;2"),
            ("-1", "-1"),
            ("2,4,2", "twice"),
            ("4097", "4096"),
        ] {
            let e = parse_counts(text).unwrap_err();
            assert!(e.contains(word), "{text}: {e}");
        }
    }
}
