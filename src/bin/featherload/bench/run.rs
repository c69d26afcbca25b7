//! One pass over the epochs.

use std::path::Path;
use std::time::{Duration, Instant};

use featherload::index::Index;
use featherload::measure::system::{CgroupLimits, default_workers};
use featherload::measure::{CpuClocks, ProcessUsage, TreeUsage};
use featherload::memory_plan::RecipeOutline;
use featherload::{Batch, DataType, DecodeOn, Device, Error, Loader, LoaderReport, Result, State};

use super::args::BenchArgs;
use super::bar::TerminalBar;
use super::chart::RunTimeline;
use super::column_cost;
use super::counts::RunCounts;
use super::device::{DeviceUse, DeviceWatch};
use super::failures::FailureLog;
use super::limit::{CpuCount, GpuDecoding, RateLimit, RunFacts, StageShares, WorkerTimes};
use super::report::{BenchReport, LimitedBy};
use super::scaled_gain;
use super::subject::{BenchSubject, JPEG};
use crate::digest::StreamDigest;
use crate::outcome::CommandOutcome;
use crate::run_length::too_short;
use crate::setup::RunSetup;
use crate::{consumer, flags, index, interrupt, output};

/// Figures that are collected while batches arrive.
struct Seen {
    counts: RunCounts,
    digest: Option<StreamDigest>,
    watch: DeviceWatch,
    /// Data for the chart, if one is requested.
    timeline: Option<RunTimeline>,
    /// Height and width of a row. None if rows differ in size.
    row: Option<(usize, usize)>,
    /// Time for reading the columns of batches.
    columns: Duration,
}

/// Figures at the time when the workers have started.
struct Started {
    began: Instant,
    at: Instant,
    /// Usage of this process until then.
    usage: Option<ProcessUsage>,
    /// CPU clocks of the machine.
    clocks: Option<CpuClocks>,
}

impl Started {
    /// Idle CPUs until `now`, among those that this run may use. The run itself used `used` CPUs.
    fn idle(&self, now: Option<&CpuClocks>, used: f64) -> Option<f64> {
        let idle = now?.idle_since(self.clocks.as_ref()?)?;
        let quota = CgroupLimits::read().cpus;
        Some(quota.map_or(idle, |quota| idle.min((quota - used).max(0.0))))
    }
}

pub fn run(args: &BenchArgs, setup: &RunSetup<'_>, began: Instant) -> Result<CommandOutcome> {
    let workers = setup.worker_count(args.run.one_count()?);
    let mut report = run_once(args, setup, workers, began)?;
    let file = args.failures.as_deref();
    output::report(&report, args.json, |report| {
        report.print(args.verbose, file)
    })?;
    match report.unwritten.take() {
        Some(e) => Err(e),
        None => Ok(CommandOutcome::of_run()),
    }
}

/// Runs a fresh pool. An error of writing a file at the end does not lose the report.
pub fn run_once(
    args: &BenchArgs,
    setup: &RunSetup<'_>,
    workers: usize,
    began: Instant,
) -> Result<BenchReport> {
    let mut loader = args.run.builder(setup, Some(workers))?.build()?;
    let started = Started {
        began,
        at: Instant::now(),
        usage: ProcessUsage::read(std::process::id() as i32).ok(),
        clocks: CpuClocks::read(),
    };
    interrupt::end_the_run()?;
    index::print_skipped(loader.scan_report());
    let first = loader.state();
    if args.run.epochs <= first.epoch {
        return Err(Error::config(format!(
            "nothing to do: the run starts at epoch {}, counted from 0, and --epochs {} counts all \
             epochs from 0: use more --epochs",
            first.epoch, args.run.epochs
        )));
    }
    let epochs = args.run.epochs - first.epoch;
    // Positions count the samples of all ranks.
    let batch = u64::from(loader.plan().options().batch);
    let rows = loader
        .plan()
        .filled_positions()
        .min(loader.batches_per_epoch().saturating_mul(batch));
    let rows = rows
        .saturating_mul(epochs)
        .min(args.limit.unwrap_or(u64::MAX));
    let batches_planned = planned(args, &loader, &first);
    let mut bar = TerminalBar::new(rows, args.run.epochs, !args.json);
    let mut counters = Seen {
        counts: RunCounts::new(args.limit, FailureLog::new(args.failures.as_deref())?),
        digest: args.digest.then(StreamDigest::default),
        watch: DeviceWatch::default(),
        timeline: args.svg.is_some().then(|| RunTimeline::new(began)),
        row: None,
        columns: Duration::ZERO,
    };
    let ended = consume(args, &mut loader, &mut counters, &mut bar);
    bar.finish();
    let end = Instant::now();
    let mut written = Ok(());
    if let Some(file) = &args.save_state {
        let broken_off = ended.as_ref().ok().cloned().flatten();
        written = write_state(file, &broken_off.unwrap_or_else(|| loader.state()));
    }
    if let Err(e) = ended {
        if let (_, Err(e)) | (Err(e), _) = (written, counters.counts.failures.finish()) {
            output::print_to_stderr(&format!("featherload: {e}"));
        }
        return Err(consumer::suggest_policy(e));
    }
    let subject = BenchSubject::of(setup, loader.index())?;
    let timeline = counters.timeline.take();
    let length = (args.run.epochs, args.limit);
    let mut report = report(
        setup,
        &loader,
        counters,
        subject,
        workers,
        (started, end),
        length,
    )?;
    written = written.and(report.unwritten.take().map_or(Ok(()), Err));
    report.batches_planned = batches_planned;
    if let (Some(file), Some(timeline)) = (&args.svg, timeline) {
        let svg = timeline.finish(&mut report);
        written = written.and(output::write_whole(file, svg.as_bytes()));
    }
    report.unwritten = written.err();
    Ok(report)
}

/// Batches of the run, if nothing ends it. With a limit, only the batches up to that limit.
fn planned(args: &BenchArgs, loader: &Loader, first: &State) -> u64 {
    let epochs = args.run.epochs - first.epoch;
    let further = loader.batches_per_epoch().saturating_mul(epochs - 1);
    let all = further.saturating_add(loader.batches_left());
    match args.limit {
        Some(limit) => all.min(limit.div_ceil(u64::from(loader.plan().options().batch))),
        None => all,
    }
}

/// Takes batches until the end of the last epoch, the limit, or a signal. Returns the position at
/// which it broke an epoch off: the loader itself has moved to the next epoch.
fn consume(
    args: &BenchArgs,
    loader: &mut Loader,
    counters: &mut Seen,
    bar: &mut TerminalBar,
) -> Result<Option<State>> {
    // The last batch of a device. It is awaited only when the next one has arrived: the device
    // works meanwhile, as in training.
    let mut last: Option<Batch> = None;
    let stopped = loop {
        if loader.state().epoch >= args.run.epochs {
            break None;
        }
        let mut epoch = loader.epoch();
        let mut stopped = None;
        while stopped.is_none()
            && let Some(batch) = epoch.next()
        {
            let batch = batch?;
            if counters.counts.batches == 0 {
                consumer::wait(&batch)?;
                let shape = batch.shape();
                counters.row = shape.ok().and(batch.rows().next().map(|row| row.size()));
            }
            let arrived = Instant::now();
            // A trainer reads them too, in its own time.
            for (name, _) in batch.columns().names() {
                batch.column(name)?;
            }
            if batch.caption_rows().is_some() {
                batch.captions()?;
            }
            counters.columns += arrived.elapsed();
            let rows = counters.counts.add(&batch, arrived);
            counters.watch.read(&epoch)?;
            if let Some(timeline) = &mut counters.timeline {
                timeline.add(&epoch, &batch, arrived)?;
            }
            bar.update(batch.epoch(), counters.counts.samples);
            if counters.counts.is_full() || interrupt::received_signal().is_some() {
                let mut state = epoch.state();
                if rows < batch.len() {
                    // A resumed run gets the whole batch again, so no sample is lost.
                    (state.epoch, state.samples) = (batch.epoch(), batch.samples_before());
                }
                stopped = Some(state);
            }
            match &mut counters.digest {
                Some(digest) => digest.add(&batch.to_host()?, rows, epoch.index())?,
                None if batch.on_device().is_some() => {
                    if let Some(last) = last.replace(batch) {
                        consumer::wait(&last)?;
                    }
                }
                None => consumer::touch(&batch)?,
            }
        }
        if stopped.is_some() {
            break stopped;
        }
    };
    if let Some(last) = last {
        consumer::wait(&last)?;
    }
    Ok(stopped)
}

fn report(
    setup: &RunSetup<'_>,
    loader: &Loader,
    counters: Seen,
    subject: BenchSubject,
    workers: usize,
    (started, end): (Started, Instant),
    (epochs, limit_of_run): (u64, Option<u64>),
) -> Result<BenchReport> {
    let clocks = CpuClocks::read();
    let r = loader.report()?;
    let device = loader.device_memory()?.map(|m| counters.watch.finish(m));
    let pids = r
        .coordinator
        .into_iter()
        .chain(r.workers.iter().copied())
        .chain([std::process::id() as i32]);
    let memory = TreeUsage::read(pids);
    let running_s = (end - started.at).as_secs_f64().max(1e-9);
    let usage = started.usage.as_ref();
    let of_workers = WorkerTimes::of(&r, &memory, usage);
    let used = (memory.cpu_s - usage.map_or(0.0, |u| u.cpu_s)) / running_s;
    let processors = CpuCount {
        used,
        usable: default_workers(),
        idle: started.idle(clocks.as_ref(), used),
        workers_used: of_workers.cpu_s / running_s,
    };
    let columns_s = counters.columns.as_secs_f64();
    let shares = StageShares::of(&r, &of_workers, running_s, columns_s);
    let limit = RateLimit::of(&shares, &processors, workers);
    let mut facts = facts(
        setup,
        loader,
        &r,
        &subject,
        workers,
        counters.row,
        &counters.digest,
    )?;
    // Slots that may be full when the first batch arrives.
    let ahead = u64::from(loader.depth().unwrap_or_default());
    let counts = counters.counts;
    let images_per_s = counts.pace.images_per_s(end, ahead);
    let too_short = images_per_s.is_none().then(|| {
        let unit = if counts.batches == 1 {
            "batch"
        } else {
            "batches"
        };
        let text = too_short((counts.batches, unit), running_s, ("--epochs", epochs));
        match limit_of_run.is_some_and(|limit| counts.samples >= limit) {
            true => text + ", without --limit",
            false => text,
        }
    });
    let is_measured = too_short.is_none();
    let decode = shares.stages.iter().find(|stage| stage.0 == "decode");
    let decode = decode.map_or(0.0, |stage| stage.1 / 100.0);
    facts.scaled_gain = match limit {
        RateLimit::Stage("decode" | "resize") | RateLimit::OtherWork
            if is_measured
                && subject.kind == JPEG
                && facts.side.is_some()
                && facts.gpu_decoding == GpuDecoding::Impossible
                && (limit == RateLimit::OtherWork || processors.room(workers).is_none())
                && counts.failures.is_empty()
                && interrupt::received_signal().is_none() =>
        {
            // This is only advice: an error here does not end the run.
            scaled_gain::measure(setup, loader, workers, decode).unwrap_or_else(|e| {
                if interrupt::received_signal().is_none() {
                    output::print_to_stderr(&format!(
                        "featherload: the gain of --decode scaled was not measured: {}",
                        flags::in_place(&e.to_string())
                    ));
                }
                None
            })
        }
        _ => None,
    };
    let limited_by = LimitedBy {
        limit,
        text: match is_measured {
            true => limit.text(&shares, &processors, workers),
            false => "not known: the run is too short".to_owned(),
        },
        faster: limit
            .faster(&facts, &shares, &processors)
            .filter(|_| is_measured),
        processors: match is_measured {
            true => processors.text(limit, &shares, workers),
            false => processors.used_text(),
        },
        shares,
    };
    let mut failures = counts.failures;
    let written = failures.finish();
    let (digests, digest) = counters.digest.map(StreamDigest::finish).unzip();
    let m = &memory.memory;
    let processes = m
        .pss_bytes
        .saturating_sub(m.pss_ring_bytes + m.pss_input_bytes);
    let first_at = counts.pace.first().unwrap_or(end);
    let options = &setup.options.loader;
    let mut columns = options.columns.clone().unwrap_or_default();
    let of_captions = options
        .captions
        .as_ref()
        .and_then(|rule| rule.column.clone());
    columns.extend(
        of_captions.filter(|column| !options.columns.iter().flatten().any(|c| c == column)),
    );
    // A cache may be named by its folder, a saved index, or an address.
    let is_cache = || {
        let index = loader.index();
        let shard = (index.shards() > 0).then(|| index.shard_path(0));
        shard.is_some_and(|shard| shard.parent().is_some_and(Index::is_cache))
    };
    let columns_ms = (counters.columns.as_secs_f64() * 1e3) / counts.batches.max(1) as f64;
    Ok(BenchReport {
        columns_ms: (!columns.is_empty()).then_some(columns_ms),
        columns_faster: column_cost::advice(&columns, counters.columns, counts.samples, is_cache),
        images_per_s,
        too_short,
        spread: counts.pace.spread(),
        first_batch_ms: (first_at - started.began).as_secs_f64() * 1e3,
        startup_ms: (started.at - started.began).as_secs_f64() * 1e3,
        cpu_s_per_1k_images: memory.cpu_s * 1e3 / counts.samples.max(1) as f64,
        pss_total_mib: output::mib(m.pss_bytes),
        memory_mib: output::mib(r.ring_bytes + processes),
        processes_mib: output::mib(processes),
        jpegs: (setup.options.loader.device != Device::Cpu).then(|| loader.jpegs().clone()),
        gpu_mib: device.as_ref().map_or(0.0, DeviceUse::peak_mib),
        device,
        samples: counts.samples,
        failed: failures.rows,
        failed_samples: failures.count_samples(),
        skipped: failures.rows - failures.substituted,
        substituted: failures.substituted,
        repeated: counts.repeated,
        batches: counts.batches,
        batches_planned: counts.batches,
        interrupted: interrupt::received_signal().is_some(),
        worker_deaths: r.worker_deaths,
        failures: failures.kept,
        failure_kinds: failures.kinds,
        unwritten: written.err(),
        scan: loader.scan_report().cloned(),
        digests,
        digest,
        profile: loader.state().profile.clone(),
        subject,
        bound_by: is_measured.then(|| limit.name()),
        limited_by,
        processors,
        seconds: (end - started.began).as_secs_f64(),
        workers,
        ring_mib: output::mib(r.ring_bytes),
        loader: r,
        memory,
    })
}

fn facts(
    setup: &RunSetup<'_>,
    loader: &Loader,
    r: &LoaderReport,
    subject: &BenchSubject,
    workers: usize,
    row: Option<(usize, usize)>,
    digest: &Option<StreamDigest>,
) -> Result<RunFacts> {
    // Moves do not depend on the image's size, so a photo's size is used.
    let outline = RecipeOutline::of(&setup.options.recipe()?, (480, 640))?;
    // The first row has the size of one scale. A cache must be large enough for all scales.
    let scales = loader.plan().options().multi_scale.as_ref();
    let sides = scales.map(|scales| {
        scales
            .sizes
            .iter()
            .map(|(height, width)| *height.min(width))
    });
    let largest = sides.and_then(Iterator::max);
    Ok(RunFacts {
        workers,
        depth: loader.depth().unwrap_or_default(),
        file_bytes: r.times.input_bytes as f64 / r.times.rows.max(1) as f64,
        // Images of buckets have no common side.
        side: row
            .filter(|_| loader.plan().options().size_setter() != Some("sampler"))
            .map(|(height, width)| largest.unwrap_or(height.min(width) as u32)),
        is_shards: subject.shards > 0,
        is_raw: subject.is_raw(),
        has_digest: digest.is_some(),
        is_f32: loader.state().profile.dtype == DataType::F32.name(),
        has_moves_left: !outline.refused.is_empty(),
        gpu_decoding: gpu_decoding(setup, loader, r, subject),
        scaled_gain: None,
    })
}

fn gpu_decoding(
    setup: &RunSetup<'_>,
    loader: &Loader,
    r: &LoaderReport,
    subject: &BenchSubject,
) -> GpuDecoding {
    let is_used = r.device.is_some_and(|d| d.jpegs.pictures > 0);
    let is_possible = setup.options.loader.device != Device::Cpu
        && loader.state().profile.hand_over == "crops"
        && subject.kind == JPEG;
    match is_used {
        true => GpuDecoding::Used,
        // If `auto` chose the CPU, its reason is reported.
        false
            if is_possible
                && setup.options.loader.decode_on.unwrap_or_default() == DecodeOn::Cpu =>
        {
            GpuDecoding::Unused
        }
        false => GpuDecoding::Impossible,
    }
}

/// Written completely or not at all, even if the machine stops: a truncated state is worse than the
/// last one.
fn write_state(file: &Path, state: &State) -> Result<()> {
    let text = serde_json::to_string_pretty(state)
        .map_err(|e| Error::io("write JSON", std::io::Error::other(e)))?;
    output::write_whole(file, format!("{text}\n").as_bytes())
}
