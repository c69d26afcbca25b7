//! `bench --ceiling`: processes that only decode, run in turns with the loader.

use std::fs;
use std::io::ErrorKind;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use featherload::measure::ceiling::{CeilingPart, CeilingShare, serve};
use featherload::order::OrderOptions;
use featherload::recipe::RecipeFormat;
use featherload::{Error, Index, Recipe, Result};

use crate::line_process::LineProcess;
use crate::output;

/// The hidden sub-command of a measuring process.
pub const CHILD_COMMAND: &str = "__ceiling";

/// Longest slice of a window. A process whose parent has ended ends after its current slice.
const SLICE: Duration = Duration::from_millis(250);

/// Processes that wait for windows. Dropping it ends them at once.
pub struct CeilingRates(Vec<LineProcess>);

impl CeilingRates {
    /// Starts `n` processes over an index of this process, and waits until they have read the files
    /// that they will decode.
    ///
    /// # Errors
    /// A process fails to start, or a signal arrives.
    pub fn start(
        n: u64,
        part: CeilingPart,
        index: &Index,
        recipe: &Recipe,
        plan: &OrderOptions,
    ) -> Result<Self> {
        let recipe = recipe.to_text(RecipeFormat::Toml)?;
        let plan = output::json_text(plan)?;
        // The sealed memory itself: a kill leaves no file. `self` leads to this process's folder in
        // every PID namespace.
        let here = fs::canonicalize("/proc/self").map_err(|e| Error::io("find /proc/self", e))?;
        let saved_index = format!("{}/fd/{}", here.display(), index.as_fd().as_raw_fd());
        let part = match part {
            CeilingPart::Full => "full".to_owned(),
            CeilingPart::Crop => "crop".to_owned(),
            CeilingPart::Copy { room } => room.to_string(),
        };
        let start = |i: u64| {
            let (i, n) = (i.to_string(), n.to_string());
            let args = [CHILD_COMMAND, &part, &i, &n, &recipe, &plan, &saved_index];
            LineProcess::start("a measuring process", args)
        };
        let children = (0..n).map(start).collect::<Result<Vec<_>>>()?;
        for child in &children {
            child.line(None)?;
        }
        Ok(Self(children))
    }

    /// Measures one window: images per second of all processes together.
    ///
    /// # Errors
    /// A process fails, or a signal arrives. Then the answers no longer match the slices.
    pub fn window(&mut self, length: Duration) -> Result<f64> {
        let slices = length.as_nanos().div_ceil(SLICE.as_nanos()).max(1);
        let ms = (length.as_millis() / slices).max(1);
        // All slices are written at once, so that no process waits for another. They are small
        // enough for the pipe.
        let request: String = (0..slices).map(|_| format!("{ms}\n")).collect();
        for child in &mut self.0 {
            child.write(&request)?;
        }
        let mut rate = 0.0;
        for child in &self.0 {
            let (mut images, mut ns) = (0.0, 0.0);
            for _ in 0..slices {
                let line = child.line(None)?.unwrap_or_default();
                let (i, t) = read_answer(&line).ok_or_else(|| {
                    Error::worker(format!(
                        "a measuring process sent '{line}', not two numbers"
                    ))
                })?;
                images += i;
                ns += t;
            }
            rate += images / (ns * 1e-9);
        }
        Ok(rate)
    }
}

/// `IMAGES NANOSECONDS`.
fn read_answer(line: &str) -> Option<(f64, f64)> {
    let (images, ns) = line.split_once(' ')?;
    Some((images.parse().ok()?, ns.parse().ok()?))
}

/// The main function of a measuring process.
pub fn child(args: impl Iterator<Item = String>) -> ExitCode {
    match serve_share(args) {
        Ok(()) => ExitCode::SUCCESS,
        // The parent has ended, so the result is not needed.
        Err(Error::Io { source, .. }) if source.kind() == ErrorKind::BrokenPipe => {
            ExitCode::FAILURE
        }
        Err(e) => {
            output::print_to_stderr(&format!("featherload: ceiling: {e}"));
            ExitCode::FAILURE
        }
    }
}

fn serve_share(args: impl Iterator<Item = String>) -> Result<()> {
    let args: Vec<String> = args.collect();
    let [part, i, n, recipe, plan, saved_index] = args.as_slice() else {
        return Err(Error::config(
            "a measuring process takes six arguments: use `bench --ceiling`",
        ));
    };
    let bad = |e: &dyn std::fmt::Display| Error::config(format!("measuring process: {e}"));
    let share = CeilingShare {
        part: match part.as_str() {
            "full" => CeilingPart::Full,
            "crop" => CeilingPart::Crop,
            room => CeilingPart::Copy {
                room: room.parse().map_err(|e| bad(&e))?,
            },
        },
        recipe: Recipe::from_text(recipe, RecipeFormat::Toml, "recipe.toml")?,
        plan: serde_json::from_str(plan).map_err(|e| bad(&e))?,
        share: (
            i.parse().map_err(|e| bad(&e))?,
            n.parse().map_err(|e| bad(&e))?,
        ),
    };
    serve(
        Path::new(saved_index),
        &share,
        std::io::stdin().lock(),
        std::io::stdout().lock(),
    )
}
