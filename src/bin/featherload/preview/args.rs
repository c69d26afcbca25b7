//! The arguments of `featherload preview`.

use std::path::PathBuf;

use clap::Args;
use featherload::options::{SourceOptions, cli};

use crate::loader_args::LoaderArgs;

/// Shows samples beside what a model gets of them: each original with the parts that the
/// recipe's draws take of it, then these draws in colours for a screen, with label and id.
///
/// The samples are the first of the first epoch. They make a batch of their own, so a recipe
/// that mixes rows mixes these. A sample or a draw that fails is a plate with the reason. A
/// terminal that shows pictures (kitty, iTerm2, sixel) shows the picture; otherwise it is
/// written to featherload-preview.png.
#[derive(Args)]
pub struct PreviewArgs {
    #[command(flatten)]
    pub source: SourceOptions,

    #[command(flatten)]
    pub loader: LoaderArgs,

    /// How many samples.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64), help_heading = cli::ORDER)]
    pub rows: u32,

    /// How many draws of the recipe beside each.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=16), help_heading = cli::OUTPUT)]
    pub draws: u32,

    /// These samples, by their ids, in place of the first ones.
    #[arg(
        long,
        value_name = "ID,...",
        value_delimiter = ',',
        conflicts_with = "rows", help_heading = cli::ORDER)]
    pub ids: Vec<u64>,

    /// Longer side of each picture, pixels; smaller ones keep their size or a multiple of it.
    #[arg(long, value_name = "PIXELS", default_value_t = 224, value_parser = clap::value_parser!(u32).range(32..=2048), help_heading = cli::OUTPUT)]
    pub side: u32,

    /// Write the picture to this PNG file, whatever the terminal shows.
    #[arg(long, value_name = "FILE", help_heading = cli::OUTPUT)]
    pub out: Option<PathBuf>,

    /// One JSON object on stdout.
    #[arg(long, help_heading = cli::OUTPUT)]
    pub json: bool,
}
