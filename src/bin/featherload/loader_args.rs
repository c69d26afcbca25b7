//! Arguments that describe a loader.

use clap::{Args, ValueEnum};
use featherload::LoaderBuilder;
use featherload::options::{LoaderOptions, cli};

use crate::sampler_args::SamplerArgs;

/// Options of a loader, its order, and how its pool is started.
#[derive(Args)]
pub struct LoaderArgs {
    #[command(flatten)]
    pub options: LoaderOptions,

    #[command(flatten)]
    pub sampler: SamplerArgs,

    /// How the coordinator is started.
    #[arg(long, value_enum, default_value_t = RunPlace::Exec, help_heading = cli::LIMITS)]
    pub launch: RunPlace,

    /// Kill a worker at this interval, such as 200 (milliseconds), to test the recovery.
    #[arg(long, value_name = "MS", help_heading = cli::LIMITS)]
    pub kill_workers_every: Option<u64>,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum RunPlace {
    Exec,
    Fork,
}

impl LoaderArgs {
    /// Slots of the ring. A memory limit may reduce them.
    pub fn depth(&self) -> u32 {
        self.options.depth.unwrap_or(LoaderBuilder::DEFAULT_DEPTH)
    }
}
