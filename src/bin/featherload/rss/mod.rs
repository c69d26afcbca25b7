//! `featherload rss`: the memory of the loader's processes, for several numbers of workers.
//!
//! - `args`: the arguments;
//! - `watch`: in the measuring process: one pool, sampled from outside;
//! - `child`: the measured consumer;
//! - `messages`: messages between the two;
//! - `report`: the result;
//! - `table`: the printed report;
//! - `chart`: the report as SVG;
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

use featherload::measure::PageCache;
use featherload::memory_plan::RunMemory;
use featherload::{Error, Result};

pub use self::args::RssArgs;
pub use self::child::{CHILD_COMMAND, child};
use self::messages::ReadyMessage;
use self::report::{EpochMedian, ReportRow, RssReport, growth_mib, own, without_ring};
pub use self::scene::measure_scene;
use self::watch::{WatchedMemory, rows};
use crate::outcome::CommandOutcome;
use crate::setup::RunSetup;
use crate::{interrupt, output};

pub fn run(args: RssArgs) -> Result<CommandOutcome> {
    let planned = check(&args)?;
    interrupt::end_the_run()?;
    CommandOutcome::or_interrupted(measure(&args, &planned))
}

/// Checks that need no measuring, and the planned memory for each number of workers.
fn check(args: &RssArgs) -> Result<Vec<RunMemory>> {
    let setup = RunSetup::new(&args.loader, &args.source)?;
    let source = setup.options.data()?;
    setup.options.recipe()?;
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

fn measure(args: &RssArgs, planned: &[RunMemory]) -> Result<CommandOutcome> {
    let setup = RunSetup::new(&args.loader, &args.source)?;
    let mut ready = ReadyMessage::default();
    let pools = args.num_workers.0.iter().zip(planned);
    let rows = rows(pools, args.json, |(&workers, planned)| {
        let row;
        (row, ready) = measure_pool(args, workers, planned)?;
        Ok(row)
    })?;
    let mut report = RssReport {
        source: setup.options.source_name(),
        recipe: args.loader.options.recipe_name().to_owned(),
        batch: setup.options.batch(),
        depth: args.loader.depth(),
        samples: ready.samples,
        scan: ready.scan,
        seconds: args.epochs.is_none().then_some(args.seconds),
        epochs: args.epochs,
        rows,
        ring_bytes_equal: true,
        slope_mib_per_worker: None,
        broken_bounds: Vec::new(),
        verdict: String::new(),
    };
    report.conclude(args.max_slope_mib, args.max_growth_mib);
    output::report(&report, args.json, table::print)?;
    if let Some(file) = &args.svg {
        output::write_whole(file, chart::draw(&report).as_bytes())?;
    }
    Ok(CommandOutcome::of_check(report.broken_bounds.is_empty()))
}

/// One fresh pool in a fresh process tree.
fn measure_pool(
    args: &RssArgs,
    workers: usize,
    planned: &RunMemory,
) -> Result<(ReportRow, ReadyMessage)> {
    let mut pool = WatchedMemory::start(workers, child::IMAGES)?;
    let (steady, epochs) = match args.epochs {
        Some(epochs) => pool.epochs(epochs)?,
        None => {
            pool.warm_up()?;
            let length = Duration::from_secs_f64(args.seconds);
            (pool.steady(length)?, Vec::new())
        }
    };
    let page_cache = PageCache::read();
    let (status, peak, ready) = (pool.status(), pool.peak(), pool.ready());
    let epochs = (0..).zip(&epochs).map(|(epoch, memory)| EpochMedian {
        epoch,
        samples: memory.samples,
        pss_total_bytes: memory.total.pss_bytes,
        pss_without_ring_bytes: without_ring(&memory.total),
        pss_own_bytes: own(&memory.total),
    });
    let epoch_medians: Vec<_> = epochs.collect();
    let total = steady.memory.total;
    let ring_unmapped_bytes = ready.ring_bytes.saturating_sub(total.pss_ring_bytes);
    let memory_bytes = total.pss_bytes + ring_unmapped_bytes;
    // The plan lists the page cache of mapped shards separately.
    let apart = match planned.page_cache_bytes {
        0 => 0,
        _ => total.pss_input_bytes,
    };
    let row = ReportRow {
        workers,
        planned_bytes: planned.total_bytes,
        measured_bytes: memory_bytes.saturating_sub(apart),
        ring_bytes: ready.ring_bytes,
        ring_unmapped_bytes,
        pss_total_bytes: total.pss_bytes,
        memory_bytes,
        pss_without_ring_bytes: without_ring(&total),
        pss_input_bytes: total.pss_input_bytes,
        pss_own_bytes: own(&total),
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
    Ok((row, ready))
}
