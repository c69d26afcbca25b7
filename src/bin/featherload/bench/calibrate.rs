//! A run for each of several shares of the JPEG engines, each with a fresh pool: a table, and
//! which share is best.

use std::time::Instant;

use featherload::{DecodeOn, Error, Result};
use serde::Serialize;

use super::BenchArgs;
use super::report::BenchReport;
use super::run::one;
use super::text::rate;
use crate::output::fields::field;
use crate::setup::Setup;
use crate::{Outcome, interrupt, output};

/// Shares that are tried.
const SHARES: [f64; 8] = [0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0];
/// What is within this of the fastest is as fast. Of those the smallest share is best: more
/// pixels are then those of `decode_on cpu`.
const AS_FAST: f64 = 0.98;

/// Names are the contract of `--json`.
#[derive(Serialize)]
struct Calibration {
    shares: Vec<Tried>,
    /// None of a run that was interrupted, or of runs that are too short to measure.
    best: Option<f64>,
}

#[derive(Serialize)]
struct Tried {
    share: f64,
    report: BenchReport,
}

pub fn run(args: &BenchArgs, setup: &mut Setup<'_>) -> Result<Outcome> {
    let said = setup.options();
    if said.decode_on != Some(DecodeOn::Both) || said.engine_share.is_some() {
        return Err(Error::config(
            "--calibrate finds --engine-share: use it with --device cuda --decode-on both, and \
             without --engine-share",
        ));
    }
    let workers = setup.worker_count(args.run.one_count()?);
    let mut tried: Vec<Tried> = Vec::new();
    for share in SHARES {
        setup.options().engine_share = Some(share);
        let report = one(args, setup, workers, Instant::now())?;
        if !args.json {
            if tried.is_empty() {
                report.subject.print("")?;
                output::lines(HEAD)?;
            }
            output::line(&row(share, &report))?;
        }
        tried.push(Tried { share, report });
        if interrupt::caught().is_some() {
            break;
        }
    }
    let rates = tried
        .iter()
        .map(|t| Some((t.share, t.report.images_per_s?)))
        .collect::<Option<Vec<(f64, f64)>>>();
    let interrupted = interrupt::caught();
    let calibration = Calibration {
        best: rates
            .as_deref()
            .filter(|_| interrupted.is_none())
            .and_then(best),
        shares: tried,
    };
    if args.json {
        output::json(&calibration)?;
    } else if let Some(best) = calibration.best {
        output::line("")?;
        field("best", &format!("--engine-share {best}"))?;
    } else if rates.is_none() {
        output::line("")?;
        field(
            "best",
            "none: runs are too short to measure. Use more --epochs",
        )?;
    }
    Ok(interrupted.map_or(Outcome::Done, Outcome::Interrupted))
}

const HEAD: &str = "\n    share   images/s   first batch   engines at work   cores used";

fn row(share: f64, r: &BenchReport) -> String {
    let busy = r.loader.device.map_or(0.0, |d| d.engines.busy_s);
    format!(
        "  {share:>7} {:>10} {:>13} {:>17} {:>12}",
        r.images_per_s.map_or("too short".to_owned(), rate),
        output::seconds(r.first_batch_ms * 1e-3),
        format!("{:.0}%", 100.0 * (busy / r.seconds.max(1e-9)).min(1.0)),
        format!("{:.1} of {}", r.processors.used, r.processors.usable),
    )
}

/// The smallest share that is as fast as the fastest. `rates`: of each share.
fn best(rates: &[(f64, f64)]) -> Option<f64> {
    let fastest = rates.iter().map(|(_, rate)| *rate).max_by(f64::total_cmp)?;
    let as_fast = |(_, rate): &&(f64, f64)| *rate >= AS_FAST * fastest;
    let shares = rates.iter().filter(as_fast).map(|(share, _)| *share);
    shares.min_by(f64::total_cmp)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_share_that_is_as_fast_as_the_fastest_is_best() {
        let rates = [
            (0.5, 20_000.0),
            (0.6, 26_900.0),
            (0.7, 27_000.0),
            (1.0, 19_000.0),
        ];
        assert_eq!(best(&rates), Some(0.6));
        assert_eq!(best(&rates[..1]), Some(0.5));
        assert_eq!(best(&[]), None);
    }
}
