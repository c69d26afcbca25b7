//! `featherload preview`: samples as people see them, beside what a model gets of them.
//!
//! - `args`: what is asked for; `samples`: which samples, their originals, and draws of the recipe;
//! - `levels`: rows of a batch as colours for a screen;
//! - `corners`: which part of the original a row shows; `draw_text`: what was drawn, in words;
//! - `grid`: all of it as one picture; `canvas`: letters and lines on it;
//! - `terminal`: terminals that show pictures, and a picture as a file.

mod args;
mod canvas;
mod corners;
mod draw_text;
mod grid;
mod levels;
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

/// Where the picture goes when nobody says so and the terminal shows none.
const FILE: &str = "featherload-preview.png";

/// Names are the contract of `--json`.
#[derive(Serialize)]
struct Report<'a> {
    file: Option<String>,
    width: u32,
    height: u32,
    recipe: &'a str,
    seed: u64,
    samples: Vec<Told<'a>>,
}

#[derive(Serialize)]
struct Told<'a> {
    #[serde(flatten)]
    sample: &'a PreviewSample,
    /// Where the original and each draw are in the picture.
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
        let told = preview.samples.iter().zip(placed);
        output::json(&Report {
            file: file.map(|file| file.display().to_string()),
            width: picture.width(),
            height: picture.height(),
            recipe: &preview.recipe,
            seed: preview.seed,
            samples: told
                .map(|(sample, placed)| Told { sample, placed })
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

/// Flags of a run that mean nothing here.
fn refuse_what_has_no_effect(args: &PreviewArgs) -> Result<()> {
    let said = &args.loader.options;
    let what = match (said.batch_size, said.on_error) {
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
