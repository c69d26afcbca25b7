//! What `rss` is asked to measure.

use std::path::PathBuf;

use clap::Parser;

use featherload::options::{SourceOptions, cli};

use crate::loader_args::LoaderArgs;
use crate::run_length::parse_seconds;
use crate::worker_counts::{WorkerCounts, parse_counts};

/// Measure the memory of all processes of the loader, for several numbers of workers.
///
/// Each number gets a fresh pool in a fresh tree of processes, which this
/// process samples from outside and is not part of. Steady figures are medians
/// of at least 20 samples of smaps_rollup over at least `--seconds`, begun once
/// every worker has committed 20 rows; the peak is that of all samples from the
/// start of the consumer on, its pool's processes included while it is made.
///
/// Beside each number stands what `plan` says of it, at most; the last line says whether
/// the plan holds. It reads all headers once, before the first pool.
///
/// PSS divides each page among all processes that map it, so the sum over the
/// tree counts the ring once, as far as it is mapped. What is allocated of it
/// and mapped by nobody takes memory too, and is shown beside. Page cache belongs to no process: what they map of
/// it is in their PSS and shown as `file`; all of it is told apart. The page
/// cache of input files, such as shards, that is mapped (any regular file that is
/// mapped to be read, but executables and libraries) is a figure of its own,
/// `input`: slope, growth and `the rest` are PSS without it and without the ring.
#[derive(Parser)]
pub struct RssArgs {
    #[command(flatten)]
    pub source: SourceOptions,

    #[command(flatten)]
    pub loader: LoaderArgs,

    /// Numbers of worker processes, each measured by itself; 0 decodes in one
    /// process, without ring, and takes no part in the slope.
    #[arg(long, value_name = "N,N,...", default_value = "1,2,4,8,16", value_parser = parse_counts, help_heading = cli::LIMITS)]
    pub num_workers: WorkerCounts,

    /// How long to sample each number of workers, 0.5 to 600; there are 20
    /// samples at least.
    #[arg(long, default_value_t = 5.0, value_parser = parse_seconds, allow_negative_numbers = true, help_heading = cli::MEASURE)]
    pub seconds: f64,

    /// Sample over N epochs instead, 10 at least: gives the median of each
    /// epoch, and as growth the median of the last five of these less that of
    /// the first five.
    #[arg(
        long,
        value_name = "N",
        conflicts_with = "seconds",
        value_parser = clap::value_parser!(u64).range(10..), help_heading = cli::ORDER)]
    pub epochs: Option<u64>,

    /// Exit with 1 when PSS without the ring and mapped input grows by more MiB for each worker
    /// (least squares over the numbers of workers).
    #[arg(long, value_name = "X", value_parser = parse_bound, allow_negative_numbers = true, help_heading = cli::MEASURE)]
    pub max_slope_mib: Option<f64>,

    /// Exit with 1 when the growth over the epochs is more MiB, for any number
    /// of workers.
    #[arg(
        long,
        value_name = "X",
        requires = "epochs", value_parser = parse_bound,
        allow_negative_numbers = true, help_heading = cli::MEASURE)]
    pub max_growth_mib: Option<f64>,

    /// Draw memory by kind of process against the number of workers, as SVG.
    #[arg(long, value_name = "FILE", help_heading = cli::OUTPUT)]
    pub svg: Option<PathBuf>,

    /// One JSON object on stdout.
    #[arg(long, help_heading = cli::OUTPUT)]
    pub json: bool,
}

fn parse_bound(text: &str) -> Result<f64, String> {
    let bound: f64 = text.parse().map_err(|e| format!("{e}"))?;
    // Nothing is above "not a number", so it would bound nothing.
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
