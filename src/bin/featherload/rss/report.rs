//! The result of `rss`. Field names are part of the `--json` format.

use featherload::measure::statistics::{growth, slope};
use featherload::measure::{PageCache, ProcessMemory, SteadyMemory};
use serde::Serialize;

use crate::output::{mib, mib_at_most};

/// Epochs at each end from which growth is computed.
const GROWTH_EPOCHS: usize = 5;

#[derive(Serialize)]
pub struct RssReport {
    pub source: String,
    pub recipe: String,
    pub batch: u32,
    pub depth: u32,
    /// Samples of the data set.
    pub samples: u64,
    /// Entries that the scan left out, as in `bench --json`. Null for a saved index or a cache.
    pub scan: serde_json::Value,
    /// Least time of the steady samples. None if epochs were counted.
    pub seconds: Option<f64>,
    pub epochs: Option<u64>,
    /// One row for each number of workers.
    pub rows: Vec<ReportRow>,
    /// Whether all rings have the same size (0 workers have none).
    pub ring_bytes_equal: bool,
    /// Slope of `pss_own_bytes`, by least squares. None with fewer than two numbers of workers
    /// above 0.
    pub slope_mib_per_worker: Option<f64>,
    /// The given limits that are exceeded.
    pub broken_bounds: Vec<String>,
    /// Whether the measured memory is within the plan, as text.
    pub verdict: String,
}

/// One number of workers.
#[derive(Serialize)]
pub struct ReportRow {
    pub workers: usize,
    /// Most memory of all processes, by `plan`.
    pub planned_bytes: u64,
    /// The part of `memory_bytes` that the plan covers: all but the page cache of mapped shards.
    pub measured_bytes: u64,
    /// The ring's size, all of it allocated, mapped or not.
    pub ring_bytes: u64,
    /// The part of the ring that no process maps: rows that no batch has filled yet, or that short
    /// batches never fill. It is allocated, but in no PSS.
    pub ring_unmapped_bytes: u64,
    /// Steady PSS of all processes: `total.pss_bytes`.
    pub pss_total_bytes: u64,
    /// All memory of the run: steady PSS and the unmapped part of the ring.
    pub memory_bytes: u64,
    /// Steady PSS without the mapped part of the ring.
    pub pss_without_ring_bytes: u64,
    /// Page cache of input files that is mapped: `total.pss_input_bytes`.
    pub pss_input_bytes: u64,
    /// PSS without the ring and without mapped input. Slope and growth are computed from it.
    pub pss_own_bytes: u64,
    /// The largest PSS of all processes in any sample.
    pub peak_pss_bytes: u64,
    pub peak_pss_without_ring_bytes: u64,
    /// When the peak occurred, from the start of the consumer.
    pub peak_at_s: f64,
    #[serde(flatten)]
    pub steady: SteadyMemory,
    /// Time span of the steady samples.
    pub sampled_s: f64,
    pub batches: u64,
    pub rows_by_worker: Vec<u64>,
    pub worker_deaths: u64,
    /// Failed samples that were masked.
    pub skipped: u64,
    /// Page cache of the system. The figures above contain only its mapped part (`pss_file_bytes`).
    pub page_cache: Option<PageCache>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub epoch_medians: Vec<EpochMedian>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub growth_mib: Option<f64>,
}

#[derive(Serialize)]
pub struct EpochMedian {
    pub epoch: u64,
    pub samples: usize,
    pub pss_total_bytes: u64,
    pub pss_without_ring_bytes: u64,
    /// Also without mapped input.
    pub pss_own_bytes: u64,
}

/// PSS without the mapped part of the ring.
pub fn without_ring(memory: &ProcessMemory) -> u64 {
    memory.pss_bytes.saturating_sub(memory.pss_ring_bytes)
}

/// PSS without the mapped parts of the ring and of input files. Pages of input files are the
/// system's page cache, not memory of the processes.
pub fn own(memory: &ProcessMemory) -> u64 {
    without_ring(memory).saturating_sub(memory.pss_input_bytes)
}

/// Growth over the epochs in MiB. The ring does not count: its slots are allocated before their
/// first use. Mapped input does not count either: a run maps more and more of it.
pub fn growth_mib(epochs: &[EpochMedian]) -> Option<f64> {
    let medians: Vec<f64> = epochs.iter().map(|e| mib(e.pss_own_bytes)).collect();
    growth(&medians, GROWTH_EPOCHS)
}

/// MiB for each further worker, by least squares. Leaves out 0 workers, which have neither ring nor
/// coordinator.
pub fn slope_mib(points: impl Iterator<Item = (usize, u64)>) -> Option<f64> {
    let points: Vec<_> = points
        .filter(|(workers, _)| *workers > 0)
        .map(|(workers, bytes)| (workers as f64, mib(bytes)))
        .collect();
    slope(&points)
}

impl RssReport {
    /// Fills in the figures that follow from the rows, the exceeded limits, and whether the plan
    /// holds.
    pub fn conclude(&mut self, max_slope_mib: Option<f64>, max_growth_mib: Option<f64>) {
        let mut rings = self.rows.iter().filter(|r| r.workers > 0);
        let first = rings.next().map(|r| r.ring_bytes);
        self.ring_bytes_equal = rings.all(|r| Some(r.ring_bytes) == first);
        let points = self.rows.iter();
        self.slope_mib_per_worker = slope_mib(points.map(|r| (r.workers, r.pss_own_bytes)));
        if let (Some(most), Some(slope)) = (max_slope_mib, self.slope_mib_per_worker)
            && slope > most
        {
            self.broken_bounds.push(format!(
                "{slope:.2} MiB a worker, and --max-slope-mib is {most}"
            ));
        }
        for row in &self.rows {
            if let (Some(most), Some(growth)) = (max_growth_mib, row.growth_mib)
                && growth > most
            {
                self.broken_bounds.push(format!(
                    "{growth:.2} MiB of growth with {} workers, and --max-growth-mib is {most}",
                    row.workers
                ));
            }
        }
        let rows = self.rows.iter();
        self.verdict = verdict(rows.map(|r| (r.workers, r.measured_bytes, r.planned_bytes)));
    }
}

/// Number of workers, measured bytes and planned bytes.
fn verdict(rows: impl Iterator<Item = (usize, u64, u64)>) -> String {
    let rows: Vec<_> = rows.collect();
    let figures = |(workers, measured, planned): &(usize, u64, u64)| {
        let with = match workers {
            1 => "1 worker".to_owned(),
            n => format!("{n} workers"),
        };
        (with, mib(*measured), mib_at_most(*planned))
    };
    let above: Vec<String> = rows
        .iter()
        .filter(|(_, measured, planned)| measured > planned)
        .map(|row| {
            let (with, measured, planned) = figures(row);
            let by = mib_at_most(row.1 - row.2);
            format!("{by:.1} MiB with {with} ({measured:.1} measured, {planned:.1} planned)")
        })
        .collect();
    if !above.is_empty() {
        return format!("ABOVE the plan by {}", above.join(", by "));
    }
    let nearest = rows.iter().min_by_key(|row| row.2 - row.1);
    nearest.map_or_else(String::new, |row| {
        let (with, measured, planned) = figures(row);
        format!("within the plan; nearest with {with}: {measured:.1} of {planned:.1} MiB")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_workers_take_no_part_in_the_slope() {
        let points = [(0, 500 << 20), (1, 10 << 20), (3, 14 << 20)];
        assert_eq!(slope_mib(points.into_iter()), Some(2.0));
        assert_eq!(slope_mib(points[..2].iter().copied()), None);
    }

    #[test]
    fn the_verdict_says_by_how_much_the_plan_does_not_hold() {
        let rows = |rows: &[(usize, u64, u64)]| {
            let rows = rows.iter().map(|r| (r.0, r.1 << 20, r.2 << 20));
            verdict(rows.collect::<Vec<_>>().into_iter())
        };
        assert_eq!(
            rows(&[(1, 60, 70), (2, 73, 75)]),
            "within the plan; nearest with 2 workers: 73.0 of 75.0 MiB"
        );
        assert_eq!(
            rows(&[(1, 60, 60), (0, 5, 10)]),
            "within the plan; nearest with 1 worker: 60.0 of 60.0 MiB"
        );
        assert_eq!(
            rows(&[(1, 72, 70), (2, 70, 75), (4, 80, 79)]),
            "ABOVE the plan by 2.0 MiB with 1 worker (72.0 measured, 70.0 planned), by 1.0 MiB \
             with 4 workers (80.0 measured, 79.0 planned)"
        );
        // By one byte, which is never printed as zero.
        let text = verdict([(1, (70 << 20) + 1, 70 << 20)].into_iter());
        assert!(text.starts_with("ABOVE the plan by 0.1 MiB"), "{text}");
    }
}
