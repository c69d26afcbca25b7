//! One run for each number of workers, each with a fresh pool. Prints a table and the number of
//! workers that is enough.

use std::time::Instant;

use featherload::{Error, Result};
use serde::Serialize;

use super::args::BenchArgs;
use super::limit::RateLimit;
use super::report::BenchReport;
use super::run::run_once;
use super::text::{rate, workers};
use crate::outcome::CommandOutcome;
use crate::output::fields::field;
use crate::setup::RunSetup;
use crate::{interrupt, output};

/// Rates within this fraction of the fastest count as equal.
const ENOUGH: f64 = 0.95;

/// Field names are part of the `--json` format.
#[derive(Serialize)]
struct Several {
    runs: Vec<BenchReport>,
    verdict: Option<Verdict>,
    interrupted: bool,
}

#[derive(Debug, PartialEq, Serialize)]
struct Verdict {
    /// The fewest workers with the fastest rate. None if the runs were too short to measure.
    workers: Option<usize>,
    text: String,
}

/// The facts for a verdict.
#[derive(Clone, Copy)]
struct Line {
    workers: usize,
    /// None if the run is too short to measure.
    images_per_s: Option<f64>,
    memory_mib: f64,
    /// Other programs used the CPUs.
    is_disturbed: bool,
    /// Files were read from storage, not from memory.
    is_from_storage: bool,
    /// Whether one more worker would have a CPU. None if it is not known.
    has_idle: Option<bool>,
}

pub fn run(args: &BenchArgs, setup: &RunSetup<'_>) -> Result<CommandOutcome> {
    for (flag, given) in [
        ("--save-state", args.save_state.is_some()),
        ("--svg", args.svg.is_some()),
    ] {
        if given {
            return Err(Error::config(format!(
                "{flag} needs one run, but --num-workers has several numbers: give one"
            )));
        }
    }
    let counts = args.run.counts();
    let mut runs = Vec::new();
    for &count in counts {
        let report = run_once(args, setup, count, Instant::now())?;
        if !args.json {
            if runs.is_empty() {
                report.subject.print("")?;
                output::lines(HEAD)?;
            }
            output::line(&row(&report))?;
        }
        runs.push(report);
        if interrupt::received_signal().is_some() {
            break;
        }
    }
    let interrupted = interrupt::received_signal();
    let lines: Vec<Line> = runs.iter().map(Line::of).collect();
    let several = Several {
        verdict: interrupted.is_none().then(|| verdict(&lines)).flatten(),
        interrupted: interrupted.is_some(),
        runs,
    };
    output::report(&several, args.json, |all| {
        all.print(counts.len(), args.verbose)
    })?;
    if several.digests_differ() {
        return Ok(CommandOutcome::CheckFailed);
    }
    Ok(interrupted.map_or(CommandOutcome::Done, CommandOutcome::Interrupted))
}

const HEAD: &str = "\n  workers   images/s   first batch   memory   cores used   limited by";

fn row(r: &BenchReport) -> String {
    let limit = match r.images_per_s {
        Some(_) => r.limited_by.limit.short(&r.limited_by.shares),
        None => "not measured".to_owned(),
    };
    format!(
        "  {:>7} {:>10} {:>13} {:>8} {:>12}   {limit}",
        r.workers,
        r.images_per_s.map_or("too short".to_owned(), rate),
        output::seconds(r.first_batch_ms * 1e-3),
        format!("{:.0} MiB", r.memory_mib),
        format!("{:.1} of {}", r.processors.used, r.processors.usable),
    )
}

impl Line {
    fn of(r: &BenchReport) -> Self {
        Self {
            workers: r.workers,
            images_per_s: r.images_per_s,
            memory_mib: r.memory_mib,
            is_disturbed: r.limited_by.limit == RateLimit::OtherWork,
            is_from_storage: r.limited_by.limit == RateLimit::Storage,
            has_idle: r.processors.has_idle(),
        }
    }
}

fn verdict(lines: &[Line]) -> Option<Verdict> {
    // Runs without a rate are not compared.
    let rate = |line: &Line| line.images_per_s.unwrap_or_default();
    let best = lines.iter().map(rate).max_by(f64::total_cmp)?;
    let is_enough = |l: &&Line| rate(l) >= ENOUGH * best;
    let enough = lines.iter().filter(is_enough).min_by_key(|l| l.workers)?;
    let most = lines.iter().max_by_key(|l| l.workers)?;
    let (name, is) = match enough.workers {
        1 => ("1 worker".to_owned(), "is"),
        n => (workers(n), "are"),
    };
    let from_storage = lines.iter().filter(|l| l.is_from_storage).count();
    let text = if lines.iter().any(|l| l.images_per_s.is_none()) {
        return Some(Verdict {
            workers: None,
            text: "none: runs are too short to measure. Use more --epochs".to_owned(),
        });
    } else if lines.iter().any(|l| l.is_disturbed) {
        "none: other work used the CPUs. Measure again when it has ended".to_owned()
    } else if from_storage > 0 && from_storage < lines.len() {
        "none: some runs read from storage, others from memory. Measure again".to_owned()
    } else if enough.workers == most.workers {
        let more = match most.has_idle {
            Some(false) => "no core is idle for more",
            _ => "more may be faster still",
        };
        format!("{name}: the fastest of these; {more}")
    } else {
        let more = 100.0 * (rate(most) / rate(enough) - 1.0);
        let rate = match more.round() {
            0.0 => "no faster".to_owned(),
            more if more < 0.0 => format!("{:.0}% slower", -more),
            more => format!("{more:.0}% faster"),
        };
        let memory = (most.memory_mib - enough.memory_mib).max(0.0);
        format!(
            "{name} {is} enough: {} are {rate} and take {memory:.0} MiB more",
            most.workers
        )
    };
    Some(Verdict {
        workers: Some(enough.workers),
        text,
    })
}

impl Several {
    fn digests_differ(&self) -> bool {
        // An interrupted run hashed different rows.
        let mut all = self.runs.iter().filter(|r| !r.interrupted);
        let first = all.next().and_then(|r| r.digest.as_ref());
        all.any(|r| r.digest.as_ref() != first)
    }

    fn print(&self, planned: usize, verbose: bool) -> Result<()> {
        output::line("")?;
        if self.interrupted {
            let ran = format!("in run {} of {planned}", self.runs.len());
            field("interrupted", &ran)?;
        }
        if let Some(verdict) = &self.verdict {
            field("verdict", &verdict.text)?;
        }
        let failed: u64 = self.runs.iter().map(|r| r.failed).sum();
        if failed > 0 {
            let of = "rows in all runs (one number of --num-workers lists them)";
            field("failures", &format!("{} {of}", output::grouped(failed)))?;
        }
        let digest = self.runs.first().and_then(|r| r.digest.as_ref());
        if self.digests_differ() {
            field("digest", "DIFFERS between the numbers of workers")?;
        } else if let Some(digest) = digest {
            field("digest", &format!("{digest}, in all runs"))?;
        }
        if verbose {
            for run in &self.runs {
                output::line("")?;
                run.print(true, None)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(all: &[(usize, f64, f64)]) -> Vec<Line> {
        let line = |&(workers, images_per_s, memory_mib)| Line {
            workers,
            images_per_s: Some(images_per_s),
            memory_mib,
            is_disturbed: false,
            is_from_storage: false,
            has_idle: None,
        };
        all.iter().map(line).collect()
    }

    #[test]
    fn the_fewest_that_are_as_fast_as_the_fastest_are_enough() {
        let verdict_of = |all: &[_]| verdict(&lines(all)).unwrap();
        let v = verdict_of(&[(1, 498.0, 62.0), (2, 983.0, 64.0), (4, 993.0, 68.0)]);
        assert_eq!(v.workers, Some(2));
        assert_eq!(
            v.text,
            "2 workers are enough: 4 are 1% faster and take 4 MiB more"
        );
        let v = verdict_of(&[(4, 560.0, 68.0), (1, 700.0, 62.0)]);
        assert_eq!(
            v.text,
            "1 worker is enough: 4 are 20% slower and take 6 MiB more"
        );
        let v = verdict_of(&[(1, 498.0, 62.0), (2, 983.0, 64.0)]);
        assert_eq!(v.workers, Some(2));
        assert!(v.text.contains("more may be faster"), "{}", v.text);
        let mut all = lines(&[(1, 498.0, 62.0), (2, 983.0, 64.0)]);
        all[1].has_idle = Some(false);
        let v = verdict(&all).unwrap();
        assert_eq!(
            v.text,
            "2 workers: the fastest of these; no core is idle for more"
        );
        assert_eq!(verdict(&[]), None);
    }

    #[test]
    fn runs_that_are_too_short_are_not_compared() {
        let mut all = lines(&[(1, 498.0, 62.0), (2, 983.0, 64.0)]);
        all[1].images_per_s = None;
        let v = verdict(&all).unwrap();
        assert_eq!(v.workers, None);
        assert_eq!(
            v.text,
            "none: runs are too short to measure. Use more --epochs"
        );
    }

    #[test]
    fn nothing_is_said_of_runs_that_cannot_be_compared() {
        let mut all = lines(&[(1, 146.0, 77.0), (2, 146.0, 82.0)]);
        all[1].is_disturbed = true;
        let v = verdict(&all).unwrap();
        assert!(v.text.starts_with("none: other work"), "{}", v.text);
        all[1].is_disturbed = false;
        all[0].is_from_storage = true;
        let v = verdict(&all).unwrap();
        assert!(v.text.starts_with("none: some runs read"), "{}", v.text);
        all[1].is_from_storage = true;
        assert!(
            verdict(&all)
                .unwrap()
                .text
                .starts_with("1 worker is enough")
        );
    }
}
