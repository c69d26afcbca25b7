//! Measures the steps of a run over a scene, and prints the result.

use std::path::Path;
use std::time::Instant;

use featherload::Result;
use featherload::measure::TreeUsage;
use featherload::scene::{SceneBatch, SceneKind, SceneReport, SceneRun};
use serde::Serialize;
use twox_hash::XxHash3_128;

use crate::outcome::CommandOutcome;
use crate::run_length::{is_measured, too_short};
use crate::scene::args::SceneRunArgs;
use crate::{interrupt, output};

/// Counts at one moment.
#[derive(Clone, Copy)]
pub struct RunCounters {
    at: Instant,
    pub steps: u64,
    /// Rays, or pixels.
    pub parts: u64,
}

/// Measurements of a run.
pub struct RunMeasurement<W> {
    /// At its end.
    pub now: RunCounters,
    /// At the arrival of the first batch, if the run was long enough for a rate.
    pub first: Option<RunCounters>,
    /// At the first batch after every image was decoded.
    pub warm: Option<RunCounters>,
    pub too_short: Option<String>,
    pub first_ms: f64,
    /// When every image was decoded.
    pub decoded_ms: Option<f64>,
    pss_mib: f64,
    cpu_s: f64,
    digest: Option<String>,
    pub run: SceneReport<W>,
    outcome: CommandOutcome,
}

impl<W> RunMeasurement<W> {
    pub fn since(&self, seen: RunCounters) -> f64 {
        (self.now.at - seen.at).as_secs_f64()
    }
}

/// Takes the requested steps from a run whose build began at `began`. `next` returns a batch. `see`
/// adds one to the hash and returns its number of parts. `unit` is the singular and plural name of
/// a batch.
pub fn measure<K: SceneKind>(
    run: &mut SceneRun<K>,
    (args, json): (&SceneRunArgs, bool),
    began: Instant,
    unit: [&str; 2],
    mut next: impl FnMut(&mut SceneRun<K>) -> Result<SceneBatch<K::Arrays>>,
    mut see: impl FnMut(&SceneBatch<K::Arrays>, Option<&mut XxHash3_128>) -> Result<u64>,
) -> Result<RunMeasurement<K::Work>> {
    interrupt::end_the_run()?;
    let bar = output::steps(args.steps, "steps", !json);
    let mut hash = args.digest.then(XxHash3_128::new);
    let (mut first, mut decoded) = (None, None);
    let mut last = None;
    let mut signal = None;
    let mut now = RunCounters {
        at: Instant::now(),
        steps: 0,
        parts: 0,
    };
    while now.steps < args.steps {
        let mut batch = next(run)?;
        if args.digest && batch.on_device().is_some() {
            batch = batch.to_host()?;
        }
        if let Some(rows) = batch.on_device().filter(|_| first.is_none()) {
            rows.wait()?;
        }
        let parts = see(&batch, hash.as_mut())?;
        now = RunCounters {
            at: Instant::now(),
            steps: now.steps + 1,
            parts: now.parts + parts,
        };
        // A batch on a device may be unfinished.
        last = batch.on_device().is_some().then_some(batch);
        first.get_or_insert(now);
        if decoded.is_none() && run.is_decoded() {
            decoded = Some(now);
        }
        bar.inc(1);
        signal = interrupt::received_signal();
        if signal.is_some() {
            break;
        }
    }
    if let Some(rows) = last.as_ref().and_then(SceneBatch::on_device) {
        rows.wait()?;
        now.at = Instant::now();
    }
    drop(last);
    bar.finish_and_clear();
    let ahead = u64::from(run.depth().unwrap_or_default());
    let run = run.report()?;
    let pids = run.workers.iter().copied().chain(run.coordinator);
    let usage = TreeUsage::read(pids.chain([std::process::id() as i32]));
    let since = |seen: RunCounters| (now.at - seen.at).as_secs_f64();
    let is_long = |seen: &RunCounters| is_measured(now.steps - seen.steps + 1, ahead, since(*seen));
    let rated = first.filter(is_long);
    let too_short = rated.is_none().then(|| {
        let unit = unit[usize::from(now.steps != 1)];
        let seconds = first.map_or(0.0, since);
        too_short((now.steps, unit), seconds, ("--steps", args.steps))
    });
    let ms = |seen: RunCounters| (seen.at - began).as_secs_f64() * 1e3;
    Ok(RunMeasurement {
        now,
        first: rated,
        warm: decoded.filter(is_long),
        too_short,
        first_ms: first.map_or(0.0, ms),
        decoded_ms: decoded.map(ms),
        pss_mib: output::mib(usage.memory.pss_bytes),
        cpu_s: usage.cpu_s,
        digest: hash.map(|hash| format!("{:032x}", hash.finish_128())),
        run,
        outcome: signal.map_or(CommandOutcome::Done, CommandOutcome::Interrupted),
    })
}

/// Field names are part of the `--json` format.
#[derive(Serialize)]
struct Report<'a, R: Serialize, W: Serialize> {
    #[serde(serialize_with = "crate::output::lossy")]
    scene: &'a Path,
    steps: u64,
    #[serde(flatten)]
    rates: &'a R,
    pss_mib: f64,
    cpu_s: f64,
    digest: Option<String>,
    #[serde(flatten)]
    run: &'a SceneReport<W>,
}

/// The texts for printing a kind of run.
pub struct RunTexts<'a> {
    /// The name of its products.
    pub counts: String,
    pub rate: String,
    /// The name of its first product.
    pub first: &'a str,
    /// The name of the ring's contents.
    pub unit: &'a str,
    /// Stages of workers, with their seconds.
    pub stages: &'a [(&'a str, f64)],
    pub note: Option<String>,
}

impl<W: Serialize> RunMeasurement<W> {
    /// Prints the result, or JSON with `rates`.
    pub fn report(
        self,
        (scene, json): (&Path, bool),
        rates: &impl Serialize,
        texts: &RunTexts<'_>,
    ) -> Result<CommandOutcome> {
        match json {
            true => output::json(&Report {
                scene,
                steps: self.now.steps,
                rates,
                pss_mib: self.pss_mib,
                cpu_s: self.cpu_s,
                digest: self.digest,
                run: &self.run,
            })?,
            false => self.print(scene, texts)?,
        }
        Ok(self.outcome)
    }

    fn print(&self, scene: &Path, texts: &RunTexts<'_>) -> Result<()> {
        let run = &self.run;
        output::line(&format!(
            "{} | {} | {} workers",
            scene.display(),
            texts.counts,
            run.workers.len(),
        ))?;
        output::line("")?;
        if interrupt::received_signal().is_some() {
            output::line("  interrupted    the figures cover the steps before that")?;
        }
        output::line(&format!(
            "  {}   {} after {:.0} ms{}",
            texts.rate,
            texts.first,
            self.first_ms,
            match self.decoded_ms {
                Some(ms) => format!(", all {} images after {:.1} s", run.images, ms / 1e3),
                None => format!(", {} of {} images decoded", run.decoded, run.images),
            }
        ))?;
        output::line(&format!(
            "  {:>8.1} MiB memory   {:.1} decoded images{} + {:.1} {}",
            self.pss_mib,
            output::mib(run.store_bytes),
            match run.in_file {
                true => " (in a file)",
                false => "",
            },
            output::mib(run.ring_bytes),
            texts.unit,
        ))?;
        if let Some(device) = &run.device {
            output::line(&format!(
                "  {:>8.1} MiB of the device, {:.1} planned; {:.1} MiB of the host pinned",
                output::mib(device.used_bytes),
                output::mib(device.planned_bytes),
                output::mib(device.pinned_bytes),
            ))?;
        }
        let all: f64 = texts.stages.iter().map(|(_, seconds)| seconds).sum();
        let share = |seconds: f64| (100.0 * seconds / all.max(1e-9)).round();
        let stages = texts.stages.iter();
        let stages = stages.map(|(name, seconds)| format!("{name} {}%", share(*seconds)));
        let stages: Vec<String> = stages.collect();
        output::line(&format!("  worker time    {}", stages.join(", ")))?;
        if let Some(note) = &texts.note {
            output::line(&format!("  {note}"))?;
        }
        for line in run.missing.lines() {
            output::line(&format!("  missing        {line}"))?;
        }
        output::dropped_lines(run.stderr_lost)?;
        if let Some(digest) = &self.digest {
            output::line(&format!("  digest         {digest}"))?;
        }
        Ok(())
    }
}
