//! `featherload rays`: draws rays of a scene and reports rate, start, memory.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::{Args, Parser, ValueEnum};
use featherload::measure::TreeUsage;
use featherload::options::{cli, units};
use featherload::plan::RaySampler;
use featherload::rays::{RayBatch, RayField, Rays, RaysBuilder, RaysReport};
use featherload::{Device, Error, Result, Sandbox};
use serde::Serialize;
use twox_hash::XxHash3_128;

use crate::run_args::RankArgs;
use crate::run_length::{is_measured, too_short};
use crate::scene_args::{self, SceneReading, SplitArg};
use crate::{Outcome, interrupt, output, ray_drawing, rss, scene_plan};

/// Draw batches of rays from a scene. Reports rays per second, start and memory.
#[derive(Args)]
pub struct RaysArgs {
    /// A folder with transforms.json, a COLMAP model, transforms_train.json or poses_bounds.npy;
    /// or one such file; or a model's folder, such as sparse/1.
    #[arg(help_heading = cli::SOURCE)]
    scene: PathBuf,

    #[command(flatten)]
    reading: SceneReading,

    /// Rays of a step.
    #[arg(long, value_name = "N", default_value_t = RaysBuilder::DEFAULT_RAYS, help_heading = cli::ORDER)]
    rays: u64,

    /// Steps.
    #[arg(long, value_name = "N", default_value_t = 500, help_heading = cli::ORDER)]
    steps: u64,

    /// The first step: to go on.
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = cli::ORDER)]
    start: u64,

    /// Which frames rays are drawn from.
    #[arg(long, value_enum, default_value_t = SplitArg::Train, help_heading = cli::SOURCE)]
    split: SplitArg,

    /// How rays are spread over the images: all pixels alike, or all images alike.
    #[arg(long, value_enum, default_value_t = Spread::Uniform, conflicts_with_all = ["patches", "pairs"], help_heading = cli::ORDER)]
    sampler: Spread,

    /// Patches of N x N pixels.
    #[arg(long, value_name = "N", conflicts_with = "pairs", help_heading = cli::RECIPE)]
    patches: Option<u32>,

    /// Pixels between two of a patch.
    #[arg(long, value_name = "N", default_value_t = 1, requires = "patches", help_heading = cli::RECIPE)]
    dilation: u32,

    /// Pairs of pixels, at most N rows and columns apart.
    #[arg(long, value_name = "N", help_heading = cli::RECIPE)]
    pairs: Option<u32>,

    /// Images that join at each step, so that the first steps need few; 0: all at once.
    #[arg(long, value_name = "N", default_value_t = RaysBuilder::DEFAULT_JOINING, help_heading = cli::ORDER)]
    joining: u32,

    /// Sample masked-out pixels too.
    #[arg(long, help_heading = cli::RECIPE)]
    no_masks: bool,

    /// Give depths, also those that the scene's file does not name: by the names of the images,
    /// in `depths` or `depth`.
    #[arg(long, help_heading = cli::RECIPE)]
    depths: bool,

    /// Leave depths out.
    #[arg(long, conflicts_with = "depths", help_heading = cli::RECIPE)]
    no_depths: bool,

    /// Keep alpha as a fourth number of colours, instead of showing the background through.
    #[arg(long, help_heading = cli::RECIPE)]
    alpha: bool,

    /// Read images at 1/N of their width and height.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..), help_heading = cli::RECIPE)]
    downscale: u32,

    /// Worker processes; 0 makes the rays in this one (default: the CPUs).
    #[arg(long, value_name = "N", help_heading = cli::LIMITS)]
    num_workers: Option<usize>,

    /// Batches that are made ahead (default: the workers and 2).
    #[arg(long, value_name = "N", help_heading = cli::LIMITS)]
    depth: Option<u32>,

    /// Where rays are made: cpu, cuda, or cuda:N. On a device workers only decode images.
    #[arg(long, value_name = "DEVICE", default_value = "cpu", help_heading = cli::DEVICE)]
    device: Device,

    /// Most memory of the device that the run may take, its context apart. Images that do not
    /// fit are read from the host's memory.
    #[arg(long, value_name = "SIZE", value_parser = units::bytes, help_heading = cli::DEVICE)]
    gpu_memory_limit: Option<u64>,

    /// Most memory that all processes may take together, such as 2G or 1500M.
    /// Images that do not fit are kept in a file.
    #[arg(long, value_name = "SIZE", value_parser = units::bytes, help_heading = cli::LIMITS)]
    memory_limit: Option<u64>,

    /// Where that file goes (default: TMPDIR, or /tmp; /var/tmp where that lies in memory).
    #[arg(long, value_name = "DIR", help_heading = cli::LIMITS)]
    store_folder: Option<PathBuf>,

    /// Decode images for this run alone, though another one may have them.
    #[arg(long, help_heading = cli::LIMITS)]
    own_store: bool,

    /// What workers are kept from, beside their work: all system calls and files but those
    /// that they need (auto, as far as the system allows it; require), or nothing (off).
    #[arg(long, value_name = "HOW", default_value = "auto", help_heading = cli::LIMITS)]
    sandbox: Sandbox,

    /// Most time that one step may take (default: 600).
    #[arg(long, value_name = "SECONDS", value_parser = units::seconds, help_heading = cli::LIMITS)]
    row_limit: Option<Duration>,

    /// Most pixels that an image may have (default: 178956970).
    #[arg(long, value_name = "N", help_heading = cli::LIMITS)]
    max_pixels: Option<u64>,

    /// Most memory that decoding one image may take, such as 256M (default: 512M).
    #[arg(long, value_name = "SIZE", value_parser = units::bytes, help_heading = cli::LIMITS)]
    max_scratch: Option<u64>,

    /// Seed of the draws.
    #[arg(long, default_value_t = 0, help_heading = cli::ORDER)]
    seed: u64,

    #[command(flatten)]
    place: RankArgs,

    /// Hash every ray: the same digests mean the same rays.
    #[arg(long, help_heading = cli::MEASURE)]
    digest: bool,

    /// Kill a worker that often, as 200 (milliseconds): the rays stay the same.
    #[arg(long, value_name = "MS", help_heading = cli::LIMITS)]
    kill_workers_every: Option<u64>,

    /// Draw the scene, and one more step's rays as dots in their colours.
    #[arg(long, value_name = "FILE", conflicts_with = "rss", help_heading = cli::OUTPUT)]
    svg: Option<PathBuf>,

    /// In place of rates, the memory of all processes with these numbers of workers, once
    /// every image is decoded: steady PSS, as `featherload rss` has it.
    #[arg(long, value_name = "N,N,...", value_parser = rss::parse_counts, conflicts_with_all = ["num_workers", "digest", "kill_workers_every", "steps"], help_heading = cli::MEASURE)]
    pub rss: Option<rss::Counts>,

    /// How long `--rss` samples each number of workers, 0.5 to 600.
    #[arg(long, default_value_t = 5.0, value_parser = rss::parse_seconds, requires = "rss", help_heading = cli::MEASURE)]
    pub seconds: f64,

    /// Print the memory of the run before it begins, and end: what takes how much, and whether
    /// images are held in memory or in a file. Reads headers, decodes nothing, starts nothing.
    #[arg(long, conflicts_with_all = ["rss", "svg", "digest", "kill_workers_every", "steps"], help_heading = cli::MEASURE)]
    plan: bool,

    /// One JSON object on stdout.
    #[arg(long, help_heading = cli::OUTPUT)]
    pub json: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Spread {
    Uniform,
    ByImage,
}

/// Names are the contract of `--json`.
#[derive(Serialize)]
struct Report {
    #[serde(serialize_with = "crate::output::lossy")]
    scene: PathBuf,
    steps: u64,
    rays: u64,
    /// From the arrival of the first batch on; none of a run that is too short to measure, as
    /// `too_short` then says.
    rays_per_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    too_short: Option<String>,
    /// The same once every image was decoded; none where that never came, or too late.
    warm_rays_per_s: Option<f64>,
    first_batch_ms: f64,
    /// When every image was decoded.
    decoded_ms: Option<f64>,
    /// Rays that a lens does not define; none where rays stayed on a device.
    invalid: Option<u64>,
    pss_mib: f64,
    cpu_s: f64,
    digest: Option<String>,
    #[serde(flatten)]
    run: RaysReport,
}

/// To be read from a list of words.
#[derive(Parser)]
struct Alone {
    #[command(flatten)]
    args: RaysArgs,
}

impl RaysArgs {
    /// Out of the words behind `rays`.
    pub fn parsed(words: impl Iterator<Item = OsString>) -> Result<Self> {
        let words = std::iter::once(OsString::from("rays")).chain(words);
        let alone = Alone::try_parse_from(words).map_err(|e| Error::config(e.to_string()))?;
        Ok(alone.args)
    }

    pub fn scene(&self) -> &Path {
        &self.scene
    }

    pub fn builder(&self) -> RaysBuilder {
        let sampler = match (self.patches, self.pairs, self.sampler) {
            (Some(size), ..) => RaySampler::Patches {
                size,
                dilation: self.dilation,
            },
            (None, Some(radius), _) => RaySampler::Pairs { radius },
            (None, None, Spread::Uniform) => RaySampler::Uniform,
            (None, None, Spread::ByImage) => RaySampler::ByImage,
        };
        let mut builder = Rays::builder(self.reading.source(&self.scene))
            .rays(self.rays)
            .start(self.start)
            .split(self.split.into())
            .sampler(sampler)
            .joining(self.joining)
            .masks(!self.no_masks)
            .alpha(self.alpha)
            .downscale(self.downscale)
            .share_store(!self.own_store)
            .device(self.device)
            .seed(self.seed)
            .rank(self.place.rank().unwrap_or_default());
        if self.depths || self.no_depths {
            builder = builder.depths(self.depths);
        }
        if let Some(workers) = self.num_workers {
            builder = builder.num_workers(workers);
        }
        if let Some(depth) = self.depth {
            builder = builder.depth(depth);
        }
        if let Some(bytes) = self.gpu_memory_limit {
            builder = builder.gpu_memory_limit(bytes);
        }
        if let Some(bytes) = self.memory_limit {
            builder = builder.memory_limit(bytes);
        }
        if let Some(folder) = &self.store_folder {
            builder = builder.store_folder(folder);
        }
        builder = builder.sandbox(self.sandbox);
        if let Some(limit) = self.row_limit {
            builder = builder.row_limit(limit);
        }
        if let Some(pixels) = self.max_pixels {
            builder = builder.max_pixels(pixels);
        }
        if let Some(bytes) = self.max_scratch {
            builder = builder.max_scratch(bytes);
        }
        if let Some(every) = self.kill_workers_every {
            use featherload::internals::Drilled;
            builder = builder.kill_workers_every(Duration::from_millis(every.max(1)));
        }
        builder
    }
}

pub fn run(args: RaysArgs) -> Result<Outcome> {
    let began = Instant::now();
    if args.rss.is_some() {
        return rss::measure_scene(&args);
    }
    if args.plan {
        let forecast = args.builder().forecast_with_refusal()?;
        let rays = output::grouped(args.rays);
        let batches = ["batch", "batches"].map(|of| format!("{of} of {rays} rays"));
        return scene_plan::print(&args.scene, forecast, &batches, args.json);
    }
    match draw(&args, began) {
        Err(e) if !e.is_usage() && !e.is_sample() => match interrupt::caught_behind_failure() {
            Some(signal) => Ok(Outcome::Interrupted(signal)),
            None => Err(e),
        },
        other => other,
    }
}

fn draw(args: &RaysArgs, began: Instant) -> Result<Outcome> {
    if let Some(file) = &args.svg {
        output::check_text_writable("--svg", file)?;
    }
    let mut rays = args.builder().build()?;
    interrupt::end_the_run()?;
    let bar = output::steps(args.steps, "steps", !args.json);
    let mut hash = args.digest.then(XxHash3_128::new);
    let (mut first, mut decoded) = (None, None);
    let (mut steps, mut invalid) = (0, None);
    let mut last: Option<RayBatch> = None;
    let mut signal = None;
    while steps < args.steps {
        let mut batch = rays.next_batch()?;
        steps += 1;
        if args.digest && batch.on_device().is_some() {
            batch = batch.to_host()?;
        }
        match batch.on_device() {
            None => {
                let outside = batch.valid()?.iter().filter(|valid| **valid == 0).count();
                *invalid.get_or_insert(0) += outside as u64;
            }
            Some(rows) if first.is_none() => rows.wait()?,
            Some(_) => {}
        }
        if let Some(hash) = &mut hash {
            add(hash, &batch)?;
        }
        // One on a device may not be finished yet.
        last = batch.on_device().is_some().then_some(batch);
        let now = Instant::now();
        first.get_or_insert((now, steps));
        if decoded.is_none() && rays.is_decoded() {
            decoded = Some((now, steps));
        }
        bar.inc(1);
        signal = interrupt::caught();
        if signal.is_some() {
            break;
        }
    }
    if let Some(rows) = last.as_ref().and_then(RayBatch::on_device) {
        rows.wait()?;
    }
    let end = Instant::now();
    drop(last);
    bar.finish_and_clear();
    let run = rays.report()?;
    let pids = run.workers.iter().copied().chain(run.coordinator);
    let usage = TreeUsage::read(pids.chain([std::process::id() as i32]));
    let ahead = u64::from(rays.depth().unwrap_or_default());
    let rate = |(at, seen): (Instant, u64)| {
        let seconds = (end - at).as_secs_f64();
        is_measured(steps - seen + 1, ahead, seconds)
            .then(|| ((steps - seen) * args.rays) as f64 / seconds)
    };
    let rays_per_s = first.and_then(rate);
    let too_short = rays_per_s.is_none().then(|| {
        let unit = if steps == 1 { "step" } else { "steps" };
        let seconds = first.map_or(0.0, |(at, _)| (end - at).as_secs_f64());
        too_short((steps, unit), seconds, ("--steps", args.steps))
    });
    let ms = |at: Instant| (at - began).as_secs_f64() * 1e3;
    let report = Report {
        scene: args.scene.clone(),
        steps,
        rays: steps * args.rays,
        rays_per_s,
        too_short,
        warm_rays_per_s: decoded.and_then(rate),
        first_batch_ms: first.map_or(0.0, |(at, _)| ms(at)),
        decoded_ms: decoded.map(|(at, _)| ms(at)),
        invalid,
        pss_mib: output::mib(usage.memory.pss_bytes),
        cpu_s: usage.cpu_s,
        digest: hash.map(|hash| format!("{:032x}", hash.finish_128())),
        run,
    };
    match args.json {
        true => output::json(&report)?,
        false => report.print()?,
    }
    // Last: a drawing that cannot be written loses no report.
    if let Some(file) = args.svg.as_ref().filter(|_| signal.is_none()) {
        let mut batch = rays.next_batch()?;
        if batch.on_device().is_some() {
            batch = batch.to_host()?;
        }
        let drawn = ray_drawing::draw(rays.scene(), &batch)?;
        output::write_whole(file, drawn.as_bytes())?;
    }
    Ok(match signal {
        Some(signal) => Outcome::Interrupted(signal),
        None => Outcome::Done,
    })
}

/// The step, then the bytes of each field, whichever of them may be missing.
fn add(hash: &mut XxHash3_128, batch: &RayBatch) -> Result<()> {
    hash.write(&batch.step().to_le_bytes());
    for field in RayField::ALL {
        hash.write(batch.bytes(field)?);
    }
    Ok(())
}

impl Report {
    fn print(&self) -> Result<()> {
        let run = &self.run;
        let rate = match self.warm_rays_per_s.or(self.rays_per_s) {
            Some(rate) => format!("{:>8.2} M rays/s", rate / 1e6),
            None => format!(
                "  rays/s  {}",
                self.too_short.as_deref().unwrap_or_default()
            ),
        };
        output::line(&format!(
            "{} | {} steps of {} rays | {} workers",
            self.scene.display(),
            output::grouped(self.steps),
            output::grouped(self.rays / self.steps.max(1)),
            run.workers.len(),
        ))?;
        output::line("")?;
        output::interrupted()?;
        output::line(&format!(
            "  {rate}   first batch after {:.0} ms{}",
            self.first_batch_ms,
            match self.decoded_ms {
                Some(ms) => format!(", all {} images after {:.1} s", run.images, ms / 1e3),
                None => format!(", {} of {} images decoded", run.decoded, run.images),
            }
        ))?;
        output::line(&format!(
            "  {:>8.1} MiB memory   {:.1} decoded images{} + {:.1} batches",
            self.pss_mib,
            output::mib(run.store_bytes),
            match run.in_file {
                true => " (in a file)",
                false => "",
            },
            output::mib(run.ring_bytes),
        ))?;
        let all = run.draw_s + run.decode_s + run.trace_s + run.color_s;
        let share = |part: f64| (100.0 * part / all.max(1e-9)).round();
        if let Some(device) = &run.device {
            output::device_memory(device)?;
        }
        output::line(&format!(
            "  worker time    draw {}%, decode {}%, trace {}%, colour {}%",
            share(run.draw_s),
            share(run.decode_s),
            share(run.trace_s),
            share(run.color_s),
        ))?;
        if let Some(invalid) = self.invalid.filter(|n| *n > 0) {
            output::line(&format!(
                "  {} rays are outside of what their lens defines: they are masked",
                output::grouped(invalid)
            ))?;
        }
        scene_args::print_missing(&run.missing.lines())?;
        output::dropped_lines(run.stderr_lost)?;
        if let Some(digest) = &self.digest {
            output::line(&format!("  digest         {digest}"))?;
        }
        Ok(())
    }
}
