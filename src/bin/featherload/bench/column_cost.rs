//! The cost of reading the columns of batches, and the advice that follows from it.

use std::time::Duration;

/// Time for the columns of a row that counts as slow: some ten times that of a cache.
const SLOW_ROW: Duration = Duration::from_micros(50);

/// What makes columns faster. None if they are fast, or are read from a cache already.
///
/// `spent`: the time for the columns of `rows` rows.
pub fn advice(
    names: &[String],
    spent: Duration,
    rows: u64,
    is_cache: impl FnOnce() -> bool,
) -> Option<String> {
    let row = spent.div_f64(rows.max(1) as f64);
    if names.is_empty() || row < SLOW_ROW || is_cache() {
        return None;
    }
    Some(format!(
        "cache build --columns {}: a cache keeps them where a row is read at once",
        names.join(",")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_slow_columns_outside_a_cache_get_advice() {
        let names = ["caption".to_owned(), "score".to_owned()];
        let of =
            |spent, rows, is_cache| advice(&names, Duration::from_micros(spent), rows, || is_cache);
        let text = "cache build --columns caption,score: \
                    a cache keeps them where a row is read at once";
        assert_eq!(of(50, 1, false).as_deref(), Some(text));
        assert_eq!(of(5_000, 100, false).as_deref(), Some(text));
        assert_eq!(of(49, 1, false), None);
        assert_eq!(of(4_999, 100, false), None);
        assert_eq!(of(5_000, 100, true), None);
        // A run that ended before its first row.
        assert_eq!(of(0, 0, false), None);
        assert_eq!(advice(&[], Duration::from_secs(1), 1, || false), None);
    }
}
