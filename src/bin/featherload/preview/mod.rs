//! `featherload preview`: shows samples beside the model's input.
//!
//! - `args`: the arguments;
//! - `samples`: the samples, their originals, and draws of the recipe;
//! - `levels`: converts rows of a batch to screen colours;
//! - `mask_overlay`: masks over their images; `raster_picture`: other rasters;
//! - `object_overlay`: boxes, keypoints and masks of objects over their images;
//! - `corners`: the part of the original that a row shows;
//! - `draw_text`: drawn values as text;
//! - `picture_size`: the bound of the picture;
//! - `grid`: lays everything out as one picture;
//! - `canvas`: draws text and lines on it;
//! - `terminal`: shows the picture on a terminal, or writes it to a file.

mod args;
mod canvas;
mod corners;
mod draw_text;
mod grid;
mod levels;
mod mask_overlay;
mod object_overlay;
mod picture_size;
mod raster_picture;
mod samples;
mod terminal;

use std::path::Path;

use featherload::{Error, Result};
use serde::Serialize;

pub use self::args::PreviewArgs;
use self::grid::PlacedImage;
use self::samples::{PreviewSample, SamplePreview};
use self::terminal::{ScreenImages, png};
use crate::outcome::CommandOutcome;
use crate::output;

/// Default file for the picture, if the terminal shows none.
const FILE: &str = "featherload-preview.png";

/// Field names are part of the `--json` format.
#[derive(Serialize)]
struct Report<'a> {
    file: Option<String>,
    width: u32,
    height: u32,
    recipe: &'a str,
    seed: u64,
    samples: Vec<PreviewReport<'a>>,
}

#[derive(Serialize)]
struct PreviewReport<'a> {
    #[serde(flatten)]
    sample: &'a PreviewSample,
    /// Positions of the original and each draw in the picture.
    #[serde(flatten)]
    placed: PlacedImage,
}

pub fn run(args: PreviewArgs) -> Result<CommandOutcome> {
    let screen = match args.out.is_none() && !args.json {
        true => ScreenImages::here(),
        false => None,
    };
    let file = match (&args.out, &screen) {
        (Some(file), _) => Some(file.as_path()),
        (None, Some(_)) => None,
        (None, None) => Some(Path::new(FILE)),
    };
    if let Some(file) = file {
        output::check_writable("--out", file)?;
    }
    refuse_what_has_no_effect(&args)?;
    let preview = samples::read(&args)?;
    let (picture, placed) = grid::draw(&preview, args.side);
    if let Some(file) = file {
        output::write_whole(file, &png(&picture)?)?;
    }
    if args.json {
        let shown = preview.samples.iter().zip(placed);
        output::json(&Report {
            file: file.map(|file| file.display().to_string()),
            width: picture.width(),
            height: picture.height(),
            recipe: &preview.recipe,
            seed: preview.seed,
            samples: shown
                .map(|(sample, placed)| PreviewReport { sample, placed })
                .collect(),
        })?;
        return Ok(CommandOutcome::Done);
    }
    if let Some(screen) = &screen {
        screen.show(&picture)?;
    }
    print(&preview)?;
    if let Some(file) = file {
        let (width, height) = picture.dimensions();
        output::line(&format!("{} ({width} x {height})", file.display()))?;
    }
    Ok(CommandOutcome::Done)
}

/// Rejects flags of a run that have no effect here.
fn refuse_what_has_no_effect(args: &PreviewArgs) -> Result<()> {
    let options = &args.loader.options;
    let what = match (options.batch_size, options.on_error) {
        (Some(_), _) => "--batch-size has no effect here: the samples make one batch; give --rows",
        (_, Some(_)) => "--on-error has no effect here: failed samples are shown as such",
        _ => return Ok(()),
    };
    Err(Error::config(what))
}

fn print(preview: &SamplePreview) -> Result<()> {
    for sample in &preview.samples {
        output::line(&format!("{}  {}", sample.title(), sample.path.display()))?;
        if let Some(fault) = &sample.fault {
            output::line(&format!("     {fault}"))?;
        }
        for (number, draw) in sample.draws.iter().enumerate() {
            if let Some(words) = draw.words(sample) {
                output::line(&format!("  {}  {words}", number + 1))?;
            }
        }
    }
    Ok(())
}
