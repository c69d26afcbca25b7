//! One pass over the epochs.

use std::path::Path;
use std::time::Instant;

use featherload::measure::TreeUsage;
use featherload::{Batch, Error, Loader, NumericProfile, Result, RowStatus, State};

use super::BenchArgs;
use super::chart::Timeline;
use super::device::{DeviceUse, DeviceWatch};
use super::report::{BenchReport, Failure, bound_by};
use crate::digest::StreamDigest;
use crate::setup::Setup;
use crate::{Outcome, consumer, index, interrupt, output};

/// What is counted while batches come.
#[derive(Default)]
struct Counts {
    batches: u64,
    samples: u64,
    repeated: u64,
    failures: Vec<Failure>,
    /// Arrival of the first batch, and its rows.
    first: Option<(Instant, u64)>,
    /// What a chart shows, where one is asked for.
    timeline: Option<Timeline>,
}

pub fn run(args: &BenchArgs, began: Instant) -> Result<Outcome> {
    if let Some(file) = &args.save_state {
        output::check_writable("--save-state", file)?;
    }
    if let Some(file) = &args.svg {
        output::check_writable("--svg", file)?;
    }
    let setup = Setup::new(&args.run.loader, &args.source)?;
    setup.warn();
    let mut loader = args.run.builder(&setup)?.build()?;
    let startup = began.elapsed();
    interrupt::end_the_run()?;
    index::print_skipped(loader.scan_report());
    let first_epoch = loader.state().epoch;
    if args.run.epochs <= first_epoch {
        return Err(Error::config(format!(
            "nothing to do: the run starts at epoch {first_epoch}, counted from 0, and --epochs \
             {} is the number of epochs of the whole run; give more of them",
            args.run.epochs
        )));
    }
    let epochs = args.run.epochs - first_epoch;
    let rows = loader.plan().positions().saturating_mul(epochs);
    let bar = output::progress(args.limit.unwrap_or(rows).min(rows), !args.json);
    let mut digest = args.digest.then(StreamDigest::default);
    let mut counts = Counts {
        timeline: args.svg.is_some().then(|| Timeline::new(began)),
        ..Counts::default()
    };
    let mut watch = DeviceWatch::default();
    let seen = (&mut counts, &mut digest, &mut watch);
    let ended = consume(args, &mut loader, seen, &bar);
    bar.finish_and_clear();
    let end = Instant::now();
    if let Some(file) = &args.save_state {
        let broken_off = ended.as_ref().ok().cloned().flatten();
        write_state(file, &broken_off.unwrap_or_else(|| loader.state()))?;
    }
    ended.map_err(consumer::suggest_policy)?;
    let mut report = loader.report()?;
    if let Some(timeline) = &mut counts.timeline {
        timeline.finish(&mut report);
    }
    let device = loader.device_memory()?.map(|memory| watch.finish(memory));
    let pids = report
        .coordinator
        .into_iter()
        .chain(report.workers.iter().copied())
        .chain([std::process::id() as i32]);
    let memory = TreeUsage::read(pids);
    let (first_at, first_rows) = counts.first.unwrap_or((end, 0));
    let failed = counts.failures.len() as u64;
    let substituted = counts.failures.iter().filter(|f| f.substitute.is_some());
    let substituted = substituted.count() as u64;
    let (digests, digest) = digest.map(StreamDigest::finish).unzip();
    let workers = setup.worker_count(args.run.workers);
    let seconds = (end - began).as_secs_f64();
    let result = BenchReport {
        images_per_s: rate(&counts, began, first_at, first_rows, end),
        first_batch_ms: (first_at - began).as_secs_f64() * 1e3,
        startup_ms: startup.as_secs_f64() * 1e3,
        cpu_s_per_1k_images: memory.cpu_s * 1e3 / counts.samples.max(1) as f64,
        pss_total_mib: output::mib(memory.memory.pss_bytes),
        gpu_mib: device.as_ref().map_or(0.0, DeviceUse::peak_mib),
        device,
        samples: counts.samples,
        failed,
        skipped: failed - substituted,
        substituted,
        repeated: counts.repeated,
        batches: counts.batches,
        worker_deaths: report.worker_deaths,
        failures: counts.failures,
        scan: loader.scan_report().cloned(),
        digests,
        digest,
        profile: profile(&loader.state()),
        bound_by: bound_by(&report, workers, seconds),
        seconds,
        workers,
        ring_mib: output::mib(report.ring_bytes),
        loader: report,
        memory,
    };
    if let (Some(file), Some(timeline)) = (&args.svg, &counts.timeline) {
        let (source, recipe) = (setup.source_name(), &args.run.loader.recipe);
        output::write_whole(file, timeline.draw(&source, recipe, &result).as_bytes())?;
    }
    if args.json {
        output::json(&result)?;
    } else {
        result.print()?;
    }
    Ok(interrupt::caught().map_or(Outcome::Done, Outcome::Interrupted))
}

/// Takes batches until the last epoch's end, the limit, or a signal. Where it
/// stood when it broke an epoch off: behind that, the loader stands at the next.
fn consume(
    args: &BenchArgs,
    loader: &mut Loader,
    (counts, digest, watch): (&mut Counts, &mut Option<StreamDigest>, &mut DeviceWatch),
    bar: &indicatif::ProgressBar,
) -> Result<Option<State>> {
    // A device makes one batch while the next is awaited, as for a trainer.
    let mut last: Option<Batch> = None;
    let stopped = loop {
        if loader.state().epoch >= args.run.epochs {
            break None;
        }
        let mut epoch = loader.epoch();
        let mut stopped = false;
        while !stopped && let Some(batch) = epoch.next() {
            let batch = batch?;
            if counts.first.is_none() {
                consumer::wait(&batch)?;
            }
            let arrived = Instant::now();
            counts.add(&batch, arrived);
            watch.look(&epoch)?;
            if let Some(timeline) = &mut counts.timeline {
                timeline.add(&epoch, samples_of(&batch), arrived)?;
            }
            let rows = batch.len() as u64;
            match digest {
                Some(digest) => digest.add(&batch.to_host()?, epoch.index())?,
                None if batch.on_device().is_some() => {
                    if let Some(last) = last.replace(batch) {
                        consumer::wait(&last)?;
                    }
                }
                None => consumer::touch(&batch)?,
            }
            bar.inc(rows);
            let full = args.limit.is_some_and(|limit| counts.samples >= limit);
            stopped = full || interrupt::caught().is_some();
        }
        if stopped {
            break Some(epoch.state());
        }
    };
    if let Some(last) = last {
        consumer::wait(&last)?;
    }
    Ok(stopped)
}

impl Counts {
    fn add(&mut self, batch: &Batch, arrived: Instant) {
        self.first.get_or_insert((arrived, batch.len() as u64));
        self.batches += 1;
        self.samples += samples_of(batch);
        self.repeated += batch.repeated().iter().filter(|r| **r).count() as u64;
        self.failures.extend(batch.faults().iter().map(|f| Failure {
            id: f.id,
            path: f.path.display().to_string(),
            kind: f.fault.kind.name(),
            reason: f.fault.reason.clone(),
            substitute: f.substitute,
        }));
    }
}

/// Rows that are no padding.
fn samples_of(batch: &Batch) -> u64 {
    let status = batch.status().iter();
    status.filter(|s| **s != RowStatus::Padding).count() as u64
}

/// Images per second behind the first batch; of all when there is only one.
fn rate(counts: &Counts, began: Instant, first: Instant, first_rows: u64, end: Instant) -> f64 {
    if counts.batches > 1 {
        counts.samples.saturating_sub(first_rows) as f64 / (end - first).as_secs_f64()
    } else {
        counts.samples as f64 / (end - began).as_secs_f64()
    }
}

fn profile(state: &State) -> NumericProfile {
    state.profile.clone()
}

/// Whole or not at all, also if the machine stops: a state that was cut off is
/// worse than the last one.
fn write_state(file: &Path, state: &State) -> Result<()> {
    let mut text = serde_json::to_vec_pretty(state)
        .map_err(|e| Error::io("write JSON", std::io::Error::other(e)))?;
    text.push(b'\n');
    output::write_whole(file, &text)
}
