//! The arguments of `featherload rss`.

use std::path::PathBuf;

use clap::Parser;

use featherload::options::{SourceOptions, cli};

use crate::loader_args::LoaderArgs;
use crate::run_length::parse_seconds;
use crate::worker_counts::{WorkerCounts, parse_counts};

/// Measure the memory of all processes of the loader, for several numbers of workers.
///
/// Each number gets a fresh pool in a fresh process tree, which this process samples from outside.
/// Steady figures are medians of at least 20 samples of smaps_rollup over at least `--seconds`.
/// They start after every worker has committed 20 rows. The peak covers all samples from the start
/// of the consumer on, including the start of its pool.
///
/// Each number is shown beside the upper limit of `plan`. The last line says whether the plan
/// holds. All headers are read once, before the first pool starts.
///
/// PSS divides each page among all processes that map it, so the sum over the tree counts the
/// mapped part of the ring once. The unmapped part of the ring also takes memory, and is shown
/// separately. Page cache belongs to no process: its mapped part is in PSS and shown as `file`; its
/// total is shown separately. `input` is the mapped page cache of input files, such as shards:
/// every regular file that is mapped for reading, except executables and libraries. Slope, growth
/// and `the rest` are PSS without `input` and without the ring.
#[derive(Parser)]
pub struct RssArgs {
    #[command(flatten)]
    pub source: SourceOptions,

    #[command(flatten)]
    pub loader: LoaderArgs,

    /// Numbers of worker processes, each measured separately. 0 decodes in one process without a
    /// ring, and is left out of the slope.
    #[arg(long, value_name = "N,N,...", default_value = "1,2,4,8,16", value_parser = parse_counts, help_heading = cli::LIMITS)]
    pub num_workers: WorkerCounts,

    /// Seconds to sample each number of workers, 0.5 to 600, for at least 20 samples.
    #[arg(long, default_value_t = 5.0, value_parser = parse_seconds, allow_negative_numbers = true, help_heading = cli::MEASURE)]
    pub seconds: f64,

    /// Sample over N epochs instead, at least 10. Reports the median of each epoch, and the growth:
    /// the median of the last five epochs less the median of the first five.
    #[arg(
        long,
        value_name = "N",
        conflicts_with = "seconds",
        value_parser = clap::value_parser!(u64).range(10..), help_heading = cli::ORDER)]
    pub epochs: Option<u64>,

    /// Exit with 1 if PSS without the ring and mapped input grows by more MiB for each worker
    /// (least squares over the numbers of workers).
    #[arg(long, value_name = "X", value_parser = parse_bound, allow_negative_numbers = true, help_heading = cli::MEASURE)]
    pub max_slope_mib: Option<f64>,

    /// Exit with 1 if the growth over the epochs exceeds this number of MiB, for any number of
    /// workers.
    #[arg(
        long,
        value_name = "X",
        requires = "epochs", value_parser = parse_bound,
        allow_negative_numbers = true, help_heading = cli::MEASURE)]
    pub max_growth_mib: Option<f64>,

    /// Draw memory by kind of process against the number of workers, as SVG.
    #[arg(long, value_name = "FILE", help_heading = cli::OUTPUT)]
    pub svg: Option<PathBuf>,

    /// Print one JSON object on stdout.
    #[arg(long, help_heading = cli::OUTPUT)]
    pub json: bool,
}

fn parse_bound(text: &str) -> Result<f64, String> {
    let bound: f64 = text.parse().map_err(|e| format!("{e}"))?;
    // Nothing is greater than NaN, so NaN would not limit anything.
    if !bound.is_finite() {
        return Err("use a number of MiB".into());
    }
    Ok(bound)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_numbers() {
        assert_eq!(parse_bound("-2.5"), Ok(-2.5));
        for text in ["nan", "inf", "four"] {
            assert!(parse_bound(text).is_err(), "{text}");
        }
    }
}
