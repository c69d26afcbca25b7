//! `featherload views`: delivers whole images of a scene, and reports rate, start time and memory.

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use featherload::Result;
use featherload::options::cli;
use featherload::scene::{SceneOptions, SceneSource, ViewsOptions};
use featherload::views::{View, ViewField, Views, ViewsBuilder};
use serde::Serialize;
use twox_hash::XxHash3_128;

use crate::outcome::CommandOutcome;
use crate::output;
use crate::scene::args::SceneRunArgs;
use crate::scene::plan;
use crate::scene::run::{self, RunCounters, RunTexts};

/// Deliver whole images of a scene, one a step. Reports images per second, start and memory.
#[derive(Args)]
pub struct ViewsArgs {
    /// A folder with transforms.json, a COLMAP model, transforms_train.json or poses_bounds.npy;
    /// or one such file; or a model's folder, such as sparse/1.
    #[arg(help_heading = cli::SOURCE)]
    scene: PathBuf,

    #[command(flatten)]
    reading: SceneOptions,

    #[command(flatten)]
    options: ViewsOptions,

    #[command(flatten)]
    run: SceneRunArgs,

    /// Print the memory plan of the run and end: the memory of each part, and whether images are
    /// kept in memory or in a file. Reads headers; decodes and starts nothing.
    #[arg(long, conflicts_with_all = ["digest", "kill_workers_every", "steps"], help_heading = cli::MEASURE)]
    plan: bool,

    /// Print one JSON object on stdout.
    #[arg(long, help_heading = cli::OUTPUT)]
    json: bool,
}

/// Field names are part of the `--json` format.
#[derive(Serialize)]
struct Rates {
    /// From the arrival of the first view on. None if the run is too short to measure; then
    /// `too_short` explains it.
    views_per_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    too_short: Option<String>,
    /// The rate after every image was decoded. None if that came never or too late.
    warm_views_per_s: Option<f64>,
    /// Of images alone, after every image was decoded.
    warm_mpixels_per_s: Option<f64>,
    first_view_ms: f64,
    /// When every image was decoded.
    decoded_ms: Option<f64>,
}

impl ViewsArgs {
    fn builder(&self) -> Result<ViewsBuilder> {
        let mut options = self.options.clone();
        options.depths = self.run.depths(options.depths);
        let scene = SceneSource::Path(self.scene.clone(), self.reading.clone());
        Ok(self.run.apply(options.builder(scene)?))
    }
}

pub fn run(args: ViewsArgs) -> Result<CommandOutcome> {
    let began = Instant::now();
    if args.plan {
        let forecast = args.builder()?.memory_plan_with_refusal()?;
        let views = ["view".to_owned(), "views".to_owned()];
        return plan::print(&args.scene, forecast, &views, args.json);
    }
    CommandOutcome::or_interrupted(show(&args, began))
}

fn show(args: &ViewsArgs, began: Instant) -> Result<CommandOutcome> {
    let mut views = args.builder()?.build()?;
    let see = |view: &View, hash: Option<&mut XxHash3_128>| {
        if let Some(hash) = hash {
            add(hash, view)?;
        }
        Ok((view.height() * view.width()) as u64)
    };
    let (units, how) = (["view", "views"], (&args.run, args.json));
    let run = run::measure(&mut views, how, began, units, Views::next_view, see)?;
    let rate = |seen: RunCounters| (run.now.steps - seen.steps) as f64 / run.since(seen);
    let mpixels = |seen: RunCounters| (run.now.parts - seen.parts) as f64 / 1e6 / run.since(seen);
    let rates = Rates {
        views_per_s: run.first.map(rate),
        too_short: run.too_short.clone(),
        warm_views_per_s: run.warm.map(rate),
        warm_mpixels_per_s: run.warm.map(mpixels),
        first_view_ms: run.first_ms,
        decoded_ms: run.decoded_ms,
    };
    let work = run.run.work.clone();
    let mut text = match rates.warm_views_per_s.or(rates.views_per_s) {
        Some(rate) => format!("{rate:>8.1} views/s"),
        None => format!(
            " views/s  {}",
            rates.too_short.as_deref().unwrap_or_default()
        ),
    };
    if let Some(rate) = rates.warm_mpixels_per_s {
        text += &format!(" ({rate:.0} M pixels/s)");
    }
    let texts = RunTexts {
        counts: format!(
            "{} views of {} images",
            output::grouped(run.now.steps),
            output::grouped(run.run.images),
        ),
        rate: text,
        first: "first",
        unit: "views",
        stages: &[("decode", work.decode_s), ("show", work.show_s)],
        note: None,
    };
    run.report((&args.scene, args.json), &rates, &texts)
}

/// Hashes step and number, then the bytes of each array that exists.
fn add(hash: &mut XxHash3_128, view: &View) -> Result<()> {
    hash.write(&view.step().to_le_bytes());
    hash.write(&view.index().to_le_bytes());
    for field in ViewField::ALL {
        hash.write(view.bytes(field)?);
    }
    Ok(())
}
