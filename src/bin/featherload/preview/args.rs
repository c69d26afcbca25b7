//! The arguments of `featherload preview`.

use std::path::PathBuf;

use clap::Args;
use featherload::options::{SourceOptions, cli};

use crate::loader_args::LoaderArgs;

/// Show samples beside the model's input. Each original is shown with the crops of the recipe's
/// draws, then with these draws in screen colours, with label and id.
///
/// The samples are the first of the first epoch. They form their own batch, so a recipe that mixes
/// rows mixes these. A sample or a draw that fails is shown as a plate with the reason. A terminal
/// that supports images (kitty, iTerm2, sixel) shows the picture; otherwise it is written to
/// featherload-preview.png.
#[derive(Args)]
pub struct PreviewArgs {
    #[command(flatten)]
    pub source: SourceOptions,

    #[command(flatten)]
    pub loader: LoaderArgs,

    /// Number of samples.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64), help_heading = cli::ORDER)]
    pub rows: u32,

    /// Number of draws of the recipe for each sample. Each draw shows all crops of the recipe, in a
    /// line of its own.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=16), help_heading = cli::OUTPUT)]
    pub draws: u32,

    /// Sample ids to show, instead of the first ones.
    #[arg(
        long,
        value_name = "ID,...",
        value_delimiter = ',',
        conflicts_with = "rows", help_heading = cli::ORDER)]
    pub ids: Vec<u64>,

    /// Longer side of each image in pixels. Smaller images keep their size or a multiple of it.
    #[arg(long, value_name = "PIXELS", default_value_t = 224, value_parser = clap::value_parser!(u32).range(32..=2048), help_heading = cli::OUTPUT)]
    pub side: u32,

    /// Write the picture to this PNG file, even if the terminal shows it.
    #[arg(long, value_name = "FILE", help_heading = cli::OUTPUT)]
    pub out: Option<PathBuf>,

    /// Print one JSON object on stdout.
    #[arg(long, help_heading = cli::OUTPUT)]
    pub json: bool,
}
