//! `featherload rays`: draws rays of a scene, and reports rate, start time and memory.

use std::time::Instant;

use featherload::Result;
use featherload::rays::{RayBatch, RayField, Rays};
use serde::Serialize;
use twox_hash::XxHash3_128;

use crate::outcome::CommandOutcome;
use crate::scene::rays_args::RaysArgs;
use crate::scene::run::{self, RunCounters, RunTexts};
use crate::scene::{plan, ray_drawing};
use crate::{output, rss};

/// Field names are part of the `--json` format.
#[derive(Serialize)]
struct Rates {
    rays: u64,
    /// From the arrival of the first batch on. None if the run is too short to measure; then
    /// `too_short` explains it.
    rays_per_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    too_short: Option<String>,
    /// The rate after every image was decoded. None if that came never or too late.
    warm_rays_per_s: Option<f64>,
    first_batch_ms: f64,
    /// When every image was decoded.
    decoded_ms: Option<f64>,
    /// Rays that the lens does not define. None if rays stayed on a device.
    invalid: Option<u64>,
}

pub fn run(args: RaysArgs) -> Result<CommandOutcome> {
    let began = Instant::now();
    if args.rss.is_some() {
        return rss::measure_scene(&args);
    }
    if args.plan {
        let forecast = args.builder()?.memory_plan_with_refusal()?;
        let rays = output::grouped(args.rays());
        let batches = ["batch", "batches"].map(|of| format!("{of} of {rays} rays"));
        return plan::print(args.scene(), forecast, &batches, args.json);
    }
    CommandOutcome::or_interrupted(draw(&args, began))
}

fn draw(args: &RaysArgs, began: Instant) -> Result<CommandOutcome> {
    if let Some(file) = &args.svg {
        output::check_text_writable("--svg", file)?;
    }
    let mut rays = args.builder()?.build()?;
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
    let run = run::measure(&mut rays, how, began, units, Rays::next_batch, see)?;
    let rate = |seen: RunCounters| (run.now.parts - seen.parts) as f64 / run.since(seen);
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
                "{} rays are not defined by their lens: they are masked",
                output::grouped(invalid)
            )
        }),
    };
    let outcome = run.report((args.scene(), args.json), &rates, &texts)?;
    // Last: an error of writing the drawing does not lose the report.
    let is_done = matches!(outcome, CommandOutcome::Done);
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

/// Hashes the step, then the bytes of each field that exists.
fn add(hash: &mut XxHash3_128, batch: &RayBatch) -> Result<()> {
    hash.write(&batch.step().to_le_bytes());
    for field in RayField::ALL {
        hash.write(batch.bytes(field)?);
    }
    Ok(())
}
