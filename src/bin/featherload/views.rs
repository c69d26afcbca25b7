//! `featherload views`: shows whole images of a scene and reports rate, start, memory.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use featherload::measure::TreeUsage;
use featherload::options::{cli, units};
use featherload::views::{View, ViewField, Views, ViewsBuilder, ViewsReport};
use featherload::{Device, Result, Sandbox};
use serde::Serialize;
use twox_hash::XxHash3_128;

use crate::run_args::RankArgs;
use crate::run_length::{is_measured, too_short};
use crate::scene_args::{self, SceneReading, SplitArg};
use crate::{Outcome, interrupt, output, scene_plan};

/// Show whole images of a scene, one a step. Reports images per second, start and memory.
#[derive(Args)]
pub struct ViewsArgs {
    /// A folder with transforms.json, a COLMAP model, transforms_train.json or poses_bounds.npy;
    /// or one such file; or a model's folder, such as sparse/1.
    #[arg(help_heading = cli::SOURCE)]
    scene: PathBuf,

    #[command(flatten)]
    reading: SceneReading,

    /// Steps.
    #[arg(long, value_name = "N", default_value_t = 500, help_heading = cli::ORDER)]
    steps: u64,

    /// The first step: to go on.
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = cli::ORDER)]
    start: u64,

    /// Which frames are shown.
    #[arg(long, value_enum, default_value_t = SplitArg::Train, help_heading = cli::SOURCE)]
    split: SplitArg,

    /// Straighten images: as a pinhole camera sees them, masks and depths with them.
    #[arg(long, help_heading = cli::RECIPE)]
    undistort: bool,

    /// Give images as floats from 0 to 1: four bytes a number instead of one.
    #[arg(long, help_heading = cli::RECIPE)]
    float: bool,

    /// Show images in the scene's order, and not in a new random one each epoch.
    #[arg(long, help_heading = cli::ORDER)]
    no_shuffle: bool,

    /// Leave masks out.
    #[arg(long, help_heading = cli::RECIPE)]
    no_masks: bool,

    /// Give depths, also those that the scene's file does not name: by the names of the images,
    /// in `depths` or `depth`.
    #[arg(long, help_heading = cli::RECIPE)]
    depths: bool,

    /// Leave depths out.
    #[arg(long, conflicts_with = "depths", help_heading = cli::RECIPE)]
    no_depths: bool,

    /// Keep alpha as a fourth channel, instead of showing the background through.
    #[arg(long, help_heading = cli::RECIPE)]
    alpha: bool,

    /// Read images at 1/N of their width and height.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..), help_heading = cli::RECIPE)]
    downscale: u32,

    /// Worker processes; 0 shows the images in this one (default: the CPUs).
    #[arg(long, value_name = "N", help_heading = cli::LIMITS)]
    num_workers: Option<usize>,

    /// Views that are made ahead (default: the workers and 2, at most 8); on a device those that
    /// may be held at a time (default: 4).
    #[arg(long, value_name = "N", help_heading = cli::LIMITS)]
    depth: Option<u32>,

    /// Where views are made: cpu, cuda, or cuda:N. On a device workers only decode images.
    #[arg(long, value_name = "DEVICE", default_value = "cpu", help_heading = cli::DEVICE)]
    device: Device,

    /// Most memory of the device that the run may take, its context apart. Images that do not
    /// fit are read from the host's memory.
    #[arg(long, value_name = "SIZE", value_parser = units::bytes, help_heading = cli::DEVICE)]
    gpu_memory_limit: Option<u64>,

    /// Most memory that all processes may take together, such as 2G, 1500M or bytes.
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

    /// Most time that one view may take (default: 600).
    #[arg(long, value_name = "SECONDS", value_parser = units::seconds, help_heading = cli::LIMITS)]
    row_limit: Option<Duration>,

    /// Most pixels that an image may have (default: 178956970).
    #[arg(long, value_name = "N", help_heading = cli::LIMITS)]
    max_pixels: Option<u64>,

    /// Most memory that decoding one image may take, such as 256M (default: 512M).
    #[arg(long, value_name = "SIZE", value_parser = units::bytes, help_heading = cli::LIMITS)]
    max_scratch: Option<u64>,

    /// Seed of the orders.
    #[arg(long, default_value_t = 0, help_heading = cli::ORDER)]
    seed: u64,

    #[command(flatten)]
    place: RankArgs,

    /// Hash every view: the same digests mean the same views.
    #[arg(long, help_heading = cli::MEASURE)]
    digest: bool,

    /// Kill a worker that often, as 200 (milliseconds): the views stay the same.
    #[arg(long, value_name = "MS", help_heading = cli::LIMITS)]
    kill_workers_every: Option<u64>,

    /// Print the memory of the run before it begins, and end: what takes how much, and whether
    /// images are held in memory or in a file. Reads headers, decodes nothing, starts nothing.
    #[arg(long, conflicts_with_all = ["digest", "kill_workers_every", "steps"], help_heading = cli::MEASURE)]
    plan: bool,

    /// One JSON object on stdout.
    #[arg(long, help_heading = cli::OUTPUT)]
    json: bool,
}

/// Names are the contract of `--json`.
#[derive(Serialize)]
struct Report {
    #[serde(serialize_with = "crate::output::lossy")]
    scene: PathBuf,
    steps: u64,
    /// From the arrival of the first view on; none of a run that is too short to measure, as
    /// `too_short` then says.
    views_per_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    too_short: Option<String>,
    /// The same once every image was decoded; none where that never came, or too late.
    warm_views_per_s: Option<f64>,
    /// Of images alone, once every image was decoded.
    warm_mpixels_per_s: Option<f64>,
    first_view_ms: f64,
    /// When every image was decoded.
    decoded_ms: Option<f64>,
    pss_mib: f64,
    cpu_s: f64,
    digest: Option<String>,
    #[serde(flatten)]
    run: ViewsReport,
}

impl ViewsArgs {
    fn builder(&self) -> ViewsBuilder {
        let mut builder = Views::builder(self.reading.source(&self.scene))
            .start(self.start)
            .split(self.split.into())
            .undistort(self.undistort)
            .float(self.float)
            .shuffle(!self.no_shuffle)
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

pub fn run(args: ViewsArgs) -> Result<Outcome> {
    let began = Instant::now();
    if args.plan {
        let forecast = args.builder().forecast_with_refusal()?;
        let views = ["view".to_owned(), "views".to_owned()];
        return scene_plan::print(&args.scene, forecast, &views, args.json);
    }
    match show(&args, began) {
        Err(e) if !e.is_usage() && !e.is_sample() => match interrupt::caught_behind_failure() {
            Some(signal) => Ok(Outcome::Interrupted(signal)),
            None => Err(e),
        },
        other => other,
    }
}

/// What was seen by some moment.
#[derive(Clone, Copy)]
struct Seen {
    at: Instant,
    steps: u64,
    pixels: u64,
}

fn show(args: &ViewsArgs, began: Instant) -> Result<Outcome> {
    let mut views = args.builder().build()?;
    interrupt::end_the_run()?;
    let bar = output::steps(args.steps, "steps", !args.json);
    let mut hash = args.digest.then(XxHash3_128::new);
    let (mut first, mut decoded) = (None, None);
    let mut last: Option<View> = None;
    let mut signal = None;
    let mut now = Seen {
        at: Instant::now(),
        steps: 0,
        pixels: 0,
    };
    while now.steps < args.steps {
        let mut view = views.next_view()?;
        if args.digest && view.on_device().is_some() {
            view = view.to_host()?;
        }
        if let Some(rows) = view.on_device().filter(|_| first.is_none()) {
            rows.wait()?;
        }
        if let Some(hash) = &mut hash {
            add(hash, &view)?;
        }
        now = Seen {
            at: Instant::now(),
            steps: now.steps + 1,
            pixels: now.pixels + (view.height() * view.width()) as u64,
        };
        // One on a device may not be finished yet.
        last = view.on_device().is_some().then_some(view);
        first.get_or_insert(now);
        if decoded.is_none() && views.is_decoded() {
            decoded = Some(now);
        }
        bar.inc(1);
        signal = interrupt::caught();
        if signal.is_some() {
            break;
        }
    }
    if let Some(rows) = last.as_ref().and_then(View::on_device) {
        rows.wait()?;
        now.at = Instant::now();
    }
    drop(last);
    bar.finish_and_clear();
    let run = views.report()?;
    let pids = run.workers.iter().copied().chain(run.coordinator);
    let usage = TreeUsage::read(pids.chain([std::process::id() as i32]));
    let ahead = u64::from(views.depth().unwrap_or_default());
    let since = |seen: Seen| (now.at - seen.at).as_secs_f64();
    let is_long = |seen: &Seen| is_measured(now.steps - seen.steps + 1, ahead, since(*seen));
    let warm = decoded.filter(is_long);
    let rate = |seen: Seen| (now.steps - seen.steps) as f64 / since(seen);
    let views_per_s = first.filter(is_long).map(rate);
    let too_short = views_per_s.is_none().then(|| {
        let unit = if now.steps == 1 { "view" } else { "views" };
        too_short(
            (now.steps, unit),
            first.map_or(0.0, since),
            ("--steps", args.steps),
        )
    });
    let ms = |seen: Seen| (seen.at - began).as_secs_f64() * 1e3;
    let report = Report {
        scene: args.scene.clone(),
        steps: now.steps,
        views_per_s,
        too_short,
        warm_views_per_s: warm.map(rate),
        warm_mpixels_per_s: warm.map(|seen| (now.pixels - seen.pixels) as f64 / 1e6 / since(seen)),
        first_view_ms: first.map_or(0.0, ms),
        decoded_ms: decoded.map(ms),
        pss_mib: output::mib(usage.memory.pss_bytes),
        cpu_s: usage.cpu_s,
        digest: hash.map(|hash| format!("{:032x}", hash.finish_128())),
        run,
    };
    match args.json {
        true => output::json(&report)?,
        false => report.print()?,
    }
    Ok(match signal {
        Some(signal) => Outcome::Interrupted(signal),
        None => Outcome::Done,
    })
}

/// Step and number, then the bytes of each array, whichever of them may be missing.
fn add(hash: &mut XxHash3_128, view: &View) -> Result<()> {
    hash.write(&view.step().to_le_bytes());
    hash.write(&view.index().to_le_bytes());
    for field in ViewField::ALL {
        hash.write(view.bytes(field)?);
    }
    Ok(())
}

impl Report {
    fn print(&self) -> Result<()> {
        let run = &self.run;
        output::line(&format!(
            "{} | {} views of {} images | {} workers",
            self.scene.display(),
            output::grouped(self.steps),
            output::grouped(run.images),
            run.workers.len(),
        ))?;
        output::line("")?;
        output::interrupted()?;
        let rate = match self.warm_views_per_s.or(self.views_per_s) {
            Some(rate) => format!("{rate:>8.1} views/s"),
            None => format!(
                " views/s  {}",
                self.too_short.as_deref().unwrap_or_default()
            ),
        };
        output::line(&format!(
            "  {rate}{}   first after {:.0} ms{}",
            match self.warm_mpixels_per_s {
                Some(rate) => format!(" ({rate:.0} M pixels/s)"),
                None => String::new(),
            },
            self.first_view_ms,
            match self.decoded_ms {
                Some(ms) => format!(", all {} images after {:.1} s", run.images, ms / 1e3),
                None => format!(", {} of {} images decoded", run.decoded, run.images),
            }
        ))?;
        output::line(&format!(
            "  {:>8.1} MiB memory   {:.1} decoded images{} + {:.1} views",
            self.pss_mib,
            output::mib(run.store_bytes),
            match run.in_file {
                true => " (in a file)",
                false => "",
            },
            output::mib(run.ring_bytes),
        ))?;
        if let Some(device) = &run.device {
            output::device_memory(device)?;
        }
        let all = run.decode_s + run.show_s;
        let share = |part: f64| (100.0 * part / all.max(1e-9)).round();
        output::line(&format!(
            "  worker time    decode {}%, show {}%",
            share(run.decode_s),
            share(run.show_s),
        ))?;
        scene_args::print_missing(&run.missing.lines())?;
        output::dropped_lines(run.stderr_lost)?;
        if let Some(digest) = &self.digest {
            output::line(&format!("  digest         {digest}"))?;
        }
        Ok(())
    }
}
