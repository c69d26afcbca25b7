//! `featherload rays`: draws rays of a scene and reports rate, start, memory.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{Args, Parser, ValueEnum};
use featherload::options::cli;
use featherload::plan::RaySampler;
use featherload::rays::{RayBatch, RayField, Rays, RaysBuilder};
use featherload::{Error, Result};
use serde::Serialize;
use twox_hash::XxHash3_128;

use crate::run_args::RankArgs;
use crate::scene_args::{SceneReading, SceneRunArgs};
use crate::scene_run::{self, RunTexts, Seen};
use crate::{Outcome, output, ray_drawing, rss, scene_plan};

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

    #[command(flatten)]
    run: SceneRunArgs,

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

    #[command(flatten)]
    place: RankArgs,

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
struct Rates {
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
        self.run
            .apply(Rays::builder(self.reading.source(&self.scene)))
            .rays(self.rays)
            .sampler(sampler)
            .joining(self.joining)
            .rank(self.place.rank().unwrap_or_default())
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
    scene_run::outcome(draw(&args, began))
}

fn draw(args: &RaysArgs, began: Instant) -> Result<Outcome> {
    if let Some(file) = &args.svg {
        output::check_text_writable("--svg", file)?;
    }
    let mut rays = args.builder().build()?;
    let mut invalid = None;
    let see = |batch: &RayBatch, hash: Option<&mut XxHash3_128>| {
        if batch.on_device().is_none() {
            let outside = batch.valid()?.iter().filter(|valid| **valid == 0).count();
            *invalid.get_or_insert(0) += outside as u64;
        }
        if let Some(hash) = hash {
            add(hash, batch)?;
        }
        Ok(batch.len() as u64)
    };
    let (units, how) = (["step", "steps"], (&args.run, args.json));
    let run = scene_run::measure(&mut rays, how, began, units, Rays::next_batch, see)?;
    let rate = |seen: Seen| (run.now.parts - seen.parts) as f64 / run.since(seen);
    let rates = Rates {
        rays: run.now.parts,
        rays_per_s: run.first.map(rate),
        too_short: run.too_short.clone(),
        warm_rays_per_s: run.warm.map(rate),
        first_batch_ms: run.first_ms,
        decoded_ms: run.decoded_ms,
        invalid,
    };
    let (steps, work) = (run.now.steps, run.run.work.clone());
    let texts = RunTexts {
        counts: format!(
            "{} steps of {} rays",
            output::grouped(steps),
            output::grouped(rates.rays / steps.max(1)),
        ),
        rate: match rates.warm_rays_per_s.or(rates.rays_per_s) {
            Some(rate) => format!("{:>8.2} M rays/s", rate / 1e6),
            None => format!(
                "  rays/s  {}",
                rates.too_short.as_deref().unwrap_or_default()
            ),
        },
        first: "first batch",
        unit: "batches",
        stages: &[
            ("draw", work.draw_s),
            ("decode", work.decode_s),
            ("trace", work.trace_s),
            ("colour", work.color_s),
        ],
        note: invalid.filter(|n| *n > 0).map(|invalid| {
            format!(
                "{} rays are outside of what their lens defines: they are masked",
                output::grouped(invalid)
            )
        }),
    };
    let outcome = run.report((&args.scene, args.json), &rates, &texts)?;
    // Last: a drawing that cannot be written loses no report.
    let is_done = matches!(outcome, Outcome::Done);
    if let Some(file) = args.svg.as_ref().filter(|_| is_done) {
        let mut batch = rays.next_batch()?;
        if batch.on_device().is_some() {
            batch = batch.to_host()?;
        }
        let drawn = ray_drawing::draw(rays.scene(), &batch)?;
        output::write_whole(file, drawn.as_bytes())?;
    }
    Ok(outcome)
}

/// The step, then the bytes of each field, whichever of them may be missing.
fn add(hash: &mut XxHash3_128, batch: &RayBatch) -> Result<()> {
    hash.write(&batch.step().to_le_bytes());
    for field in RayField::ALL {
        hash.write(batch.bytes(field)?);
    }
    Ok(())
}
