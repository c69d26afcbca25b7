//! `featherload rss`: what the loader's processes take, for several numbers of
//! workers.
//!
//! - `args`: what is asked for;
//! - `watch`: in the process that measures: one pool, sampled from outside;
//! - `child`: the consumer that is measured; `messages`: what the two say;
//! - `report`: what was found; `table` and `chart`: how it is shown;
//! - `scene`: the same for rays of a scene, `featherload rays --rss`.

mod args;
mod chart;
mod child;
mod messages;
mod report;
mod scene;
mod table;
mod watch;

use std::time::Duration;

use featherload::forecast::MemoryForecast;
use featherload::measure::PageCache;
use featherload::{Error, Result};
use indicatif::ProgressBar;

pub use self::args::RssArgs;
pub use self::child::{CHILD_COMMAND, child};
use self::report::{EpochMedian, Row, RssReport, growth_mib, own, without_ring};
pub use self::scene::measure_scene;
use self::watch::{Stop, Watched};
use crate::outcome::Outcome;
use crate::setup::Setup;
use crate::{interrupt, output};

pub fn run(args: RssArgs) -> Result<Outcome> {
    let planned = check(&args)?;
    interrupt::end_the_run()?;
    let ended = measure(&args, &planned);
    let mut report = match ended {
        Ok(report) => report,
        Err(Stop::Interrupted) => return Ok(interrupted()),
        // A Ctrl-C reaches the whole group, and may end the consumer before
        // this process: then it is what happened.
        Err(Stop::Failed(e)) if !e.is_usage() => match interrupt::caught_behind_failure() {
            Some(signal) => return Ok(Outcome::Interrupted(signal)),
            None => return Err(e),
        },
        Err(Stop::Failed(e)) => return Err(e),
    };
    report.conclude(args.max_slope_mib, args.max_growth_mib);
    if args.json {
        output::json(&report)?;
    } else {
        table::print(&report)?;
    }
    // Last: a chart that cannot be written loses no report.
    if let Some(file) = &args.svg {
        output::write_whole(file, chart::draw(&report).as_bytes())?;
    }
    Ok(match report.broken_bounds.is_empty() {
        true => Outcome::Done,
        false => Outcome::CheckFailed,
    })
}

fn interrupted() -> Outcome {
    interrupt::caught().map_or(Outcome::Done, Outcome::Interrupted)
}

/// What can be refused before minutes of measuring; and what each number of workers takes at
/// most.
fn check(args: &RssArgs) -> Result<Vec<MemoryForecast>> {
    let setup = Setup::new(&args.loader, &args.source)?;
    let source = setup.source()?;
    setup.recipe()?;
    setup.warn();
    if args.max_slope_mib.is_some() && args.num_workers.0.iter().filter(|n| **n > 0).count() < 2 {
        return Err(Error::config(
            "--max-slope-mib needs at least two numbers of workers above 0 (--num-workers)",
        ));
    }
    if let Some(file) = &args.svg {
        output::check_text_writable("--svg", file)?;
    }
    setup
        .builder(source)?
        .memory_with_workers(&args.num_workers.0)
}

fn measure(args: &RssArgs, planned: &[MemoryForecast]) -> Result<RssReport, Stop> {
    let bar = output::steps(args.num_workers.0.len() as u64, "pools", !args.json);
    let ended = measure_all(args, planned, &bar);
    bar.finish_and_clear();
    ended
}

fn measure_all(
    args: &RssArgs,
    planned: &[MemoryForecast],
    bar: &ProgressBar,
) -> Result<RssReport, Stop> {
    let setup = Setup::new(&args.loader, &args.source)?;
    let mut rows = Vec::new();
    let (mut samples, mut scan) = (0, serde_json::Value::Null);
    for (&workers, planned) in args.num_workers.0.iter().zip(planned) {
        let (row, pool) = measure_pool(args, workers, planned)?;
        (samples, scan) = (pool.samples(), pool.scan());
        rows.push(row);
        bar.inc(1);
    }
    Ok(RssReport {
        source: setup.source_name(),
        recipe: args.loader.options.recipe_name().to_owned(),
        batch: setup.batch(),
        depth: args.loader.depth(),
        samples,
        scan,
        seconds: args.epochs.is_none().then_some(args.seconds),
        epochs: args.epochs,
        rows,
        ring_bytes_equal: true,
        slope_mib_per_worker: None,
        broken_bounds: Vec::new(),
        verdict: String::new(),
    })
}

/// One fresh pool in a fresh tree of processes, which is there still.
fn measure_pool(
    args: &RssArgs,
    workers: usize,
    planned: &MemoryForecast,
) -> Result<(Row, Watched), Stop> {
    let mut pool = Watched::start(workers, child::IMAGES)?;
    let (steady, epochs) = match args.epochs {
        Some(epochs) => pool.epochs(epochs)?,
        None => {
            pool.warm_up()?;
            (
                pool.steady(Duration::from_secs_f64(args.seconds))?,
                Vec::new(),
            )
        }
    };
    let page_cache = PageCache::read();
    let (status, peak, ring_bytes) = (pool.status(), pool.peak(), pool.ring_bytes());
    let epoch_medians: Vec<_> = epochs
        .into_iter()
        .map(|e| EpochMedian {
            epoch: e.epoch,
            samples: e.memory.samples,
            pss_total_bytes: e.memory.total.pss_bytes,
            pss_without_ring_bytes: without_ring(&e.memory.total),
            pss_own_bytes: own(&e.memory.total),
        })
        .collect();
    let pss_total_bytes = steady.memory.total.pss_bytes;
    let ring_unmapped_bytes = ring_bytes.saturating_sub(steady.memory.total.pss_ring_bytes);
    let memory_bytes = pss_total_bytes + ring_unmapped_bytes;
    // The plan has the page cache of mapped shards apart.
    let apart = match planned.page_cache_bytes {
        0 => 0,
        _ => steady.memory.total.pss_input_bytes,
    };
    let row = Row {
        workers,
        planned_bytes: planned.total_bytes,
        measured_bytes: memory_bytes.saturating_sub(apart),
        ring_bytes,
        ring_unmapped_bytes,
        pss_total_bytes,
        memory_bytes,
        pss_without_ring_bytes: without_ring(&steady.memory.total),
        pss_input_bytes: steady.memory.total.pss_input_bytes,
        pss_own_bytes: own(&steady.memory.total),
        peak_pss_bytes: peak.pss_bytes,
        peak_pss_without_ring_bytes: peak.pss_without_ring_bytes,
        peak_at_s: peak.at.as_secs_f64(),
        steady: steady.memory,
        sampled_s: steady.took.as_secs_f64(),
        batches: status.batches,
        rows_by_worker: status.rows_by_worker,
        worker_deaths: status.worker_deaths,
        skipped: status.skipped,
        page_cache,
        growth_mib: growth_mib(&epoch_medians),
        epoch_medians,
    };
    Ok((row, pool))
}
