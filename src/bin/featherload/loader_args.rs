//! Arguments that describe a loader.

use clap::{Args, ValueEnum};
use featherload::options::{LoaderOptions, cli};
use featherload::{LoaderBuilder, Rank};

use crate::sampler_args::SamplerArgs;

/// What is done to each sample, and by what kind of pool.
#[derive(Args)]
pub struct LoaderArgs {
    #[command(flatten)]
    pub options: LoaderOptions,

    #[command(flatten)]
    pub sampler: SamplerArgs,

    /// How the coordinator is made.
    #[arg(long, value_enum, default_value_t = How::Exec, help_heading = cli::LIMITS)]
    pub launch: How,

    /// Kill a worker that often, as a test of the recovery.
    #[arg(long, value_name = "MS", help_heading = cli::LIMITS)]
    pub kill_workers_every: Option<u64>,
}

/// This process among those that train together.
#[derive(Args)]
pub struct RankArgs {
    /// This process's number among those that train together, from 0; with --world-size.
    #[arg(long, value_name = "R", requires = "world_size", help_heading = cli::ORDER)]
    rank: Option<u32>,

    /// How many processes train together; with --rank.
    #[arg(long, value_name = "W", requires = "rank", help_heading = cli::ORDER)]
    world_size: Option<u32>,
}

impl RankArgs {
    /// None where no flag names a place.
    pub fn rank(&self) -> Option<Rank> {
        Some(Rank::new(self.rank?, self.world_size?))
    }
}

#[derive(Clone, Copy, ValueEnum)]
pub enum How {
    Exec,
    Fork,
}

impl LoaderArgs {
    /// Slots of the ring, where no memory limit makes them fewer.
    pub fn depth(&self) -> u32 {
        self.options.depth.unwrap_or(LoaderBuilder::DEFAULT_DEPTH)
    }
}
