//! Measures the loader and the bare decoder in alternating windows of one run, so that a slow spell
//! of the machine affects both.

use std::time::{Duration, Instant};

use featherload::index::ScanReport;
use featherload::measure::ceiling::CeilingPart;
use featherload::measure::statistics::median;
use featherload::{Loader, Recipe, Result};
use indicatif::ProgressBar;
use serde::Serialize;

use super::args::{BenchArgs, LoaderPart};
use crate::ceiling::CeilingRates;
use crate::outcome::CommandOutcome;
use crate::setup::RunSetup;
use crate::{consumer, index, interrupt, output};

/// A run whose halves differ by more than this is invalid.
const STEADY: f64 = 0.05;

/// Field names are part of the `--json` format.
#[derive(Serialize)]
struct CeilingReport {
    images_per_s: f64,
    ceiling_images_per_s: f64,
    /// Median of the ratios of all pairs.
    ceiling_ratio: f64,
    ceiling_ratio_min: f64,
    ceiling_ratio_max: f64,
    /// True if the medians of both halves differ by more than 5%: measure again.
    void: bool,
    workers: usize,
    pairs: Vec<Pair>,
    /// Entries that the scan left out. None for a saved index or a cache.
    scan: Option<ScanReport>,
}

#[derive(Serialize, Clone, Copy)]
struct Pair {
    images_per_s: f64,
    ceiling_images_per_s: f64,
    ratio: f64,
}

pub fn run(args: &BenchArgs, setup: &RunSetup<'_>, part: LoaderPart) -> Result<CommandOutcome> {
    let workers = setup.worker_count(args.run.one_count()?);
    let mut loader = args
        .run
        .builder(setup, Some(workers))?
        .epochs(u64::MAX)
        .build()?;
    interrupt::end_the_run()?;
    index::print_skipped(loader.scan_report());
    let recipe = setup.options.recipe()?;
    let bar = output::steps(u64::from(args.pairs), "pairs", !args.json);
    let pairs = measure(args, (part, &recipe), &mut loader, workers, &bar);
    bar.finish_and_clear();
    let pairs = match pairs {
        Err(_) if interrupt::received_signal().is_some() => {
            output::print_to_stderr(
                "featherload: interrupted before all pairs were measured: no figures",
            );
            return Ok(CommandOutcome::of_run());
        }
        pairs => pairs?,
    };
    let report = summarise(pairs, workers, loader.scan_report().cloned());
    output::report(&report, args.json, |report| print(report, part))?;
    Ok(CommandOutcome::Done)
}

/// All pairs. The measuring processes end when this call returns.
fn measure(
    args: &BenchArgs,
    (part, recipe): (LoaderPart, &Recipe),
    loader: &mut Loader,
    workers: usize,
    bar: &ProgressBar,
) -> Result<Vec<Pair>> {
    let mut ceiling = CeilingRates::start(
        workers.max(1) as u64,
        match part {
            LoaderPart::Full => CeilingPart::Full,
            LoaderPart::Crop => CeilingPart::Crop,
            LoaderPart::Copy => CeilingPart::Copy {
                room: loader.report()?.ring_bytes,
            },
        },
        loader.index(),
        recipe,
        loader.plan().options(),
    )?;
    let window = Duration::from_secs_f64(args.window);
    // Both warm up before measurement starts.
    let warm_up = window / 3;
    loader_window(loader, warm_up)?;
    ceiling.window(warm_up)?;
    let mut pairs = Vec::new();
    for i in 0..args.pairs {
        // The order alternates, so that a drift affects both equally.
        let (ours, bare) = if i % 2 == 0 {
            let ours = loader_window(loader, window)?;
            (ours, ceiling.window(window)?)
        } else {
            let bare = ceiling.window(window)?;
            (loader_window(loader, window)?, bare)
        };
        pairs.push(Pair {
            images_per_s: ours,
            ceiling_images_per_s: bare,
            ratio: ours / bare,
        });
        bar.inc(1);
    }
    Ok(pairs)
}

/// Images per second over a window that begins and ends at the arrival of a batch. Batches that
/// wait in the ring are removed first.
fn loader_window(loader: &mut Loader, length: Duration) -> Result<f64> {
    let mut ready = 8;
    let mut began: Option<Instant> = None;
    let mut images = 0;
    loop {
        for batch in loader.epoch() {
            let batch = batch?;
            interrupt::check()?;
            consumer::touch(&batch)?;
            match began {
                None if ready > 0 => ready -= 1,
                None => began = Some(Instant::now()),
                Some(began) => {
                    images += batch.len();
                    if began.elapsed() >= length {
                        // Dropping the epoch cancels all tickets, so workers are idle while the
                        // bare decoder runs.
                        return Ok(images as f64 / began.elapsed().as_secs_f64());
                    }
                }
            }
        }
    }
}

fn summarise(pairs: Vec<Pair>, workers: usize, scan: Option<ScanReport>) -> CeilingReport {
    let of = |f: fn(&Pair) -> f64, pairs: &[Pair]| {
        median(pairs.iter().map(f).collect()).unwrap_or(f64::NAN)
    };
    let (first, second) = pairs.split_at(pairs.len() / 2);
    let halves = (of(|p| p.ratio, first), of(|p| p.ratio, second));
    let void = pairs.len() < 2 || (halves.0 / halves.1 - 1.0).abs() > STEADY;
    CeilingReport {
        images_per_s: of(|p| p.images_per_s, &pairs),
        ceiling_images_per_s: of(|p| p.ceiling_images_per_s, &pairs),
        ceiling_ratio: of(|p| p.ratio, &pairs),
        ceiling_ratio_min: pairs.iter().map(|p| p.ratio).fold(f64::INFINITY, f64::min),
        ceiling_ratio_max: pairs.iter().map(|p| p.ratio).fold(0.0, f64::max),
        void,
        workers,
        pairs,
        scan,
    }
}

fn print(r: &CeilingReport, part: LoaderPart) -> Result<()> {
    let what = match part {
        LoaderPart::Full => "decoding whole images",
        LoaderPart::Crop => "decoding the recipe's crops",
        LoaderPart::Copy => "copying raw images",
    };
    for p in &r.pairs {
        output::line(&format!(
            "{:>10.0} images/s   {:>8.0} {what}   {:.3}",
            p.images_per_s, p.ceiling_images_per_s, p.ratio
        ))?;
    }
    output::line(&format!(
        "{:>10.3} of the ceiling (median; {:.3} to {:.3}), {} workers{}",
        r.ceiling_ratio,
        r.ceiling_ratio_min,
        r.ceiling_ratio_max,
        r.workers,
        if r.void {
            "; VOID: the halves differ by over 5%, measure again on a quiet machine"
        } else {
            ""
        }
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(ratio: f64) -> Pair {
        Pair {
            images_per_s: 100.0 * ratio,
            ceiling_images_per_s: 100.0,
            ratio,
        }
    }

    #[test]
    fn medians_and_the_void_rule() {
        let r = summarise(
            [1.0, 1.1, 1.2, 1.0, 1.1, 1.2, 1.1].map(pair).to_vec(),
            2,
            None,
        );
        assert_eq!(r.ceiling_ratio, 1.1);
        assert!(!r.void);
        let r = summarise([1.0, 1.0, 1.2, 1.2].map(pair).to_vec(), 2, None);
        assert!(r.void);
    }
}
