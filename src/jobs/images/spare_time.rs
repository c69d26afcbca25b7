//! When a worker decodes a JPEG that the device would decode: when it waits for rows, since the
//! consumer is slower.
//!
//! Runs in workers. Each worker decides by its own clock, so nothing is shared. The pixels are the
//! same, whoever decodes: no stream depends on it.

/// Rows over which waits and decodes are averaged.
const WAITS: f64 = 64.0;
const DECODES: f64 = 8.0;
/// Of one wait, as many decodes count at most: validation makes workers wait for seconds, and
/// training takes the next rows at its usual pace.
const MOST: f64 = 16.0;
/// Nanoseconds that a decode takes, until one was measured.
const UNKNOWN: f64 = 50e6;

/// The time that a worker has left.
#[derive(Debug, Clone)]
pub(super) struct SpareTime {
    /// Nanoseconds that it waits for a row, and that it takes to decode one, on average.
    waits: f64,
    takes: f64,
    is_measured: bool,
    /// Rows that it could have decoded since the last one: below 1.
    due: f64,
    /// Behind its first row: the wait in front of that is the start.
    is_running: bool,
}

impl SpareTime {
    pub(super) fn new() -> Self {
        Self {
            waits: 0.0,
            takes: UNKNOWN,
            is_measured: false,
            due: 0.0,
            is_running: false,
        }
    }

    /// Whether the worker decodes this row, in front of which it has waited for `waited`
    /// nanoseconds.
    ///
    /// It decodes the share of rows that its waits have room for. Then it waits less, and the
    /// share falls: about half of the spare time remains. So a batch comes no later, and a faster
    /// consumer finds the device decoding all within some rows.
    pub(super) fn has_room(&mut self, waited: u64) -> bool {
        if !std::mem::replace(&mut self.is_running, true) {
            return false;
        }
        let waited = (waited as f64).min(MOST * self.takes);
        self.waits += (waited - self.waits) / WAITS;
        self.due += (self.waits / self.takes).min(1.0);
        let is_due = self.due >= 1.0;
        if is_due {
            self.due -= 1.0;
        }
        is_due
    }

    /// It took so many nanoseconds to decode a row.
    pub(super) fn took(&mut self, nanoseconds: u64) {
        let took = (nanoseconds as f64).max(1.0);
        self.takes = match std::mem::replace(&mut self.is_measured, true) {
            true => self.takes + (took - self.takes) / DECODES,
            false => took,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Of `rows`, how many it decodes in 1 ms each, when a row is there each `period`
    /// nanoseconds, and handing over coded bytes takes 20 us.
    fn decodes(spare: &mut SpareTime, rows: u32, period: u64) -> u32 {
        let (mut now, mut count) = (0, 0);
        for row in 0..u64::from(rows) {
            let waited = (row * period).saturating_sub(now);
            now += waited;
            now += match spare.has_room(waited) {
                true => {
                    count += 1;
                    spare.took(MS);
                    MS
                }
                false => 20_000,
            };
        }
        count
    }

    #[test]
    fn a_worker_decodes_in_half_of_the_time_that_it_waits() {
        let mut spare = SpareTime::new();
        // Nothing to wait for: the device decodes all.
        assert_eq!(decodes(&mut spare, 10_000, 0), 0);
        // Time for all, and more.
        let all = decodes(&mut spare, 10_000, 10 * MS);
        assert!(all > 9_500, "{all}");
        // Time for one of two rows: half of that is used.
        let quarter = decodes(&mut spare, 10_000, MS / 2);
        assert!((2_000..3_000).contains(&quarter), "{quarter}");
        // No time again: it ends within some rows.
        let rest = decodes(&mut spare, 10_000, 0);
        assert!(rest < 100, "{rest}");
    }

    #[test]
    fn one_long_wait_counts_little() {
        let mut spare = SpareTime::new();
        assert!(!spare.has_room(3_600_000 * MS), "the start");
        spare.took(MS);
        let mut decodes = u32::from(spare.has_room(3_600_000 * MS));
        decodes += (0..1_000).filter(|_| spare.has_room(0)).count() as u32;
        assert!((8..=MOST as u32).contains(&decodes), "{decodes}");
    }
}
