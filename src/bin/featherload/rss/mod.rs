//! `featherload rss`: what the loader's processes take, for several numbers of
//! workers.
//!
//! - `args`: what is asked for;
//! - `watch`: in the process that measures: one pool, sampled from outside;
//! - `child`: the consumer that is measured; `messages`: what the two say;
//! - `report`: what was found; `table` and `chart`: how it is shown;
//! - `scene`: the same for rays of a scene, `featherload rays --rss`.
//!
//! The comparison with pools that are forked after loading makes the real pool
//! with `Launch::Fork` from a consumer that holds every image. The workers of a
//! pool never touch what they inherited, so for the second figure that consumer
//! writes one byte of each page into each worker from outside
//! (`process_vm_writev`): the kernel copies the page as if the worker had.

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
use featherload::measure::{PageCache, system};
use featherload::survey::Survey;
use featherload::{Error, Result};
use indicatif::ProgressBar;

pub use self::args::{Counts, RssArgs, parse_counts, parse_seconds};
pub use self::child::{CHILD_COMMAND, child};
use self::report::{
    EpochMedian, ForkAfterLoad, ForkRow, LeftOut, Row, RssReport, copied_parents_bytes, growth_mib,
    own, without_ring,
};
pub use self::scene::measure_scene;
use self::watch::{Stop, Watched};
use crate::setup::Setup;
use crate::{Outcome, interrupt, output};

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
    let forks = forked_counts(args);
    let pools = (args.num_workers.0.len() + forks.len()) as u64;
    let bar = output::steps(pools, "pools", !args.json);
    let ended = measure_all(args, planned, &forks, &bar);
    bar.finish_and_clear();
    ended
}

fn measure_all(
    args: &RssArgs,
    planned: &[MemoryForecast],
    forks: &[usize],
    bar: &ProgressBar,
) -> Result<RssReport, Stop> {
    let setup = Setup::new(&args.loader, &args.source)?;
    // First, because it may be refused for want of memory.
    let comparison = match forks {
        [] => None,
        counts => Some(compare(args, counts, bar)?),
    };
    let mut rows = Vec::new();
    let (mut samples, mut scan) = (0, serde_json::Value::Null);
    for (&workers, planned) in args.num_workers.0.iter().zip(planned) {
        let (row, pool) = measure_pool(args, workers, planned)?;
        (samples, scan) = (pool.samples(), pool.scan());
        rows.push(row);
        bar.inc(1);
    }
    let (fork_after_load, decoded_bytes) = comparison.unzip();
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
        decoded_bytes: match decoded_bytes {
            None if args.svg.is_some() => Some(decoded_bytes_by_headers(args)?),
            counted => counted,
        },
        fork_after_load,
        broken_bounds: Vec::new(),
        verdict: String::new(),
    })
}

/// Bytes of all images as RGB8, by their headers: for the chart's line of copied
/// parents. A comparison decodes the images, and counts.
fn decoded_bytes_by_headers(args: &RssArgs) -> Result<u64, Stop> {
    let (index, _) = Setup::new(&args.loader, &args.source)?.source()?.open()?;
    let survey = Survey::of(&index)?;
    let bytes = survey.sizes.map_or(0, |sizes| sizes.decoded_bytes);
    Ok(u64::try_from(bytes).unwrap_or(u64::MAX))
}

/// One fresh pool in a fresh tree of processes, which is there still.
fn measure_pool(
    args: &RssArgs,
    workers: usize,
    planned: &MemoryForecast,
) -> Result<(Row, Watched), Stop> {
    let mut pool = Watched::start(workers, child::AT_ONCE)?;
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

/// The numbers of workers to compare, smallest first: 0 fork nothing.
fn forked_counts(args: &RssArgs) -> Vec<usize> {
    if !args.compare_fork_after_load {
        return Vec::new();
    }
    let mut counts: Vec<usize> = args
        .num_workers
        .0
        .iter()
        .copied()
        .filter(|n| *n > 0)
        .collect();
    counts.sort_unstable();
    counts
}

/// Pools that are forked after loading, and the bytes that are loaded.
fn compare(
    args: &RssArgs,
    counts: &[usize],
    bar: &ProgressBar,
) -> Result<(ForkAfterLoad, u64), Stop> {
    let mut found = ForkAfterLoad {
        images: 0,
        failed: 0,
        rows: Vec::new(),
        left_out: Vec::new(),
    };
    let mut decoded = 0;
    for &workers in counts {
        // The first consumer finds out by itself, as it decodes.
        let needed_bytes = copied_parents_bytes(decoded, workers);
        if let Some(available_bytes) = system::available_memory()
            && needed_bytes > available_bytes
        {
            found.left_out.push(LeftOut {
                workers,
                needed_bytes,
                available_bytes,
            });
            bar.inc(1);
            continue;
        }
        let mut pool = Watched::start(workers, child::AFTER_LOADING)?;
        let length = Duration::from_secs_f64(args.seconds);
        pool.warm_up()?;
        let read = pool.steady(length)?.memory;
        pool.write_loaded()?;
        let written = pool.steady(length)?.memory;
        if let Some(loaded) = pool.loaded() {
            decoded = loaded.bytes;
            found.images = loaded.images;
            found.failed = loaded.failed;
        }
        found.rows.push(ForkRow {
            workers,
            ring_bytes: pool.ring_bytes(),
            read_pss_bytes: read.total.pss_bytes,
            read_samples: read.samples,
            written_pss_bytes: written.total.pss_bytes,
            written_samples: written.samples,
        });
        bar.inc(1);
    }
    Ok((found, decoded))
}
