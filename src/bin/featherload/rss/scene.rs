//! The memory of the processes of a run over a scene, for several numbers of workers.
//!
//! They are watched like the loader's. Decoded images are counted separately: they take the same
//! memory for any number of workers.

use std::path::PathBuf;
use std::time::Duration;

use featherload::measure::SteadyMemory;
use featherload::{Error, Result};
use serde::Serialize;

use super::child;
use super::report::{own, slope_mib};
use super::watch::{WatchedMemory, rows};
use crate::outcome::CommandOutcome;
use crate::output::fields::print_beside;
use crate::output::{line, mib};
use crate::scene::RaysArgs;
use crate::{interrupt, output};

/// Field names are part of the `--json` format.
#[derive(Serialize)]
struct SceneRss {
    #[serde(serialize_with = "crate::output::lossy")]
    scene: PathBuf,
    seconds: f64,
    rows: Vec<SceneRow>,
    /// Slope of `pss_own_bytes`, by least squares.
    slope_mib_per_worker: Option<f64>,
}

/// One number of workers.
#[derive(Serialize)]
struct SceneRow {
    workers: usize,
    ring_bytes: u64,
    /// Steady PSS of all processes: `total.pss_bytes`.
    pss_total_bytes: u64,
    /// Decoded images: `total.pss_store_bytes`. In a file they are page cache, and 0 here.
    pss_store_bytes: u64,
    /// PSS without ring, decoded images and mapped input.
    pss_own_bytes: u64,
    peak_pss_bytes: u64,
    #[serde(flatten)]
    steady: SteadyMemory,
    batches: u64,
    worker_deaths: u64,
}

/// Measures the scene that `args` names.
pub fn measure_scene(args: &RaysArgs) -> Result<CommandOutcome> {
    interrupt::end_the_run()?;
    CommandOutcome::or_interrupted(measure(args))
}

fn measure(args: &RaysArgs) -> Result<CommandOutcome> {
    let counts = args.rss.as_ref().map_or(&[][..], |counts| &counts.0);
    if counts.contains(&0) {
        return Err(Error::option(
            "--rss",
            "0 workers have no processes to measure: use at least 1",
        ));
    }
    let rows = rows(counts.iter(), args.json, |&workers| {
        let mut pool = WatchedMemory::start(workers, child::RAYS)?;
        pool.warm_up()?;
        let steady = pool.steady(Duration::from_secs_f64(args.seconds))?.memory;
        let status = pool.status();
        let total = &steady.total;
        Ok(SceneRow {
            workers,
            ring_bytes: pool.ready().ring_bytes,
            pss_total_bytes: total.pss_bytes,
            pss_store_bytes: total.pss_store_bytes,
            pss_own_bytes: own(total).saturating_sub(total.pss_store_bytes),
            peak_pss_bytes: pool.peak().pss_bytes,
            batches: status.batches,
            worker_deaths: status.worker_deaths,
            steady,
        })
    })?;
    let points = rows.iter().map(|row| (row.workers, row.pss_own_bytes));
    let report = SceneRss {
        scene: args.scene().to_owned(),
        seconds: args.seconds,
        slope_mib_per_worker: slope_mib(points),
        rows,
    };
    output::report(&report, args.json, SceneRss::print)?;
    Ok(CommandOutcome::Done)
}

impl SceneRss {
    fn print(&self) -> Result<()> {
        let head = format!(
            "{}: PSS of all processes in MiB, medians over {} s after every image was decoded",
            self.scene.display(),
            self.seconds
        );
        print_beside("", &head)?;
        line("")?;
        line("workers    total   images  batches the rest     peak  deaths")?;
        for row in &self.rows {
            line(&format!(
                "{:>7}{:>9.1}{:>9.1}{:>9.1}{:>9.1}{:>9.1}{:>8}",
                row.workers,
                mib(row.pss_total_bytes),
                mib(row.pss_store_bytes),
                mib(row.steady.total.pss_ring_bytes),
                mib(row.pss_own_bytes),
                mib(row.peak_pss_bytes),
                row.worker_deaths,
            ))?;
        }
        if let Some(slope) = self.slope_mib_per_worker {
            line("")?;
            line(&format!(
                "{slope:.2} MiB a worker, without images and batches"
            ))?;
        }
        Ok(())
    }
}
