//! Arguments of commands over a scene, beside the library's options.

use std::time::Duration;

use clap::Args;
use featherload::internals::DrillBuilder;
use featherload::options::cli;
use featherload::scene::{SceneBuilder, SceneKind};

/// Arguments of every run over a scene.
#[derive(Args)]
pub struct SceneRunArgs {
    /// Number of steps.
    #[arg(long, value_name = "N", default_value_t = 500, help_heading = cli::ORDER)]
    pub steps: u64,

    /// Leave depths out.
    #[arg(long, conflicts_with = "depths", help_heading = cli::RECIPE)]
    no_depths: bool,

    /// Hash every batch: equal digests mean equal batches.
    #[arg(long, help_heading = cli::MEASURE)]
    pub digest: bool,

    /// Kill a worker at this interval, such as 200 (milliseconds): the batches stay the same.
    #[arg(long, value_name = "MS", help_heading = cli::LIMITS)]
    kill_workers_every: Option<u64>,
}

impl SceneRunArgs {
    /// The option `depths`: true with `--depths`, false with `--no-depths`, otherwise unset.
    pub fn depths(&self, flag: Option<bool>) -> Option<bool> {
        flag.filter(|given| *given || self.no_depths)
    }

    /// The builder with the kill interval set.
    pub fn apply<K: SceneKind>(&self, builder: SceneBuilder<K>) -> SceneBuilder<K> {
        match self.kill_workers_every {
            Some(every) => builder.kill_workers_every(Duration::from_millis(every.max(1))),
            None => builder,
        }
    }
}
