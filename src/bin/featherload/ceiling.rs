//! `bench --ceiling`: processes that do nothing but decode, run in turns with
//! the loader.

use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use featherload::measure::ceiling::{CeilingPart, CeilingShare, serve};
use featherload::plan::PlanOptions;
use featherload::recipe::RecipeFormat;
use featherload::{Error, Index, Recipe, Result};

use crate::interrupt;

/// The hidden sub-command of a measuring process.
pub const CHILD_COMMAND: &str = "__ceiling";

/// A window is asked for in slices of at most this length: a process whose
/// parent is gone ends with the answer to the slice at hand.
const SLICE: Duration = Duration::from_millis(250);

/// How often a signal is looked for while an answer is awaited.
const LOOK: Duration = Duration::from_millis(20);

/// Processes that wait for windows. Dropping it ends them at once.
pub struct Ceiling {
    children: Vec<Decoder>,
}

struct Decoder {
    child: Child,
    input: ChildStdin,
    /// What it says, line by line.
    answers: Receiver<String>,
}

impl Ceiling {
    /// Starts `n` processes over an index of this process and waits until they
    /// have read what they will decode. None when a signal came meanwhile.
    pub fn start(
        n: u64,
        part: CeilingPart,
        index: &Index,
        recipe: &Recipe,
        plan: &PlanOptions,
    ) -> Result<Option<Self>> {
        let me = std::env::current_exe().map_err(|e| Error::io("find this executable", e))?;
        let json = |e| Error::io("write JSON", std::io::Error::other(e));
        let recipe = recipe.to_text(RecipeFormat::Toml)?;
        let plan = serde_json::to_string(plan).map_err(json)?;
        // The sealed memory itself: no file is made that a kill would leave.
        // `self` leads to this process's folder, whatever number it has there.
        let here = fs::canonicalize("/proc/self").map_err(|e| Error::io("find /proc/self", e))?;
        let saved_index = format!("{}/fd/{}", here.display(), index.as_fd().as_raw_fd());
        let part = match part {
            CeilingPart::Full => "full".to_owned(),
            CeilingPart::Crop => "crop".to_owned(),
            CeilingPart::Copy { room } => room.to_string(),
        };
        let mut this = Self {
            children: Vec::new(),
        };
        for i in 0..n {
            let mut command = Command::new(&me);
            command
                .arg(CHILD_COMMAND)
                .args([&part, &i.to_string(), &n.to_string(), &recipe, &plan])
                .arg(&saved_index);
            this.children.push(Decoder::start(command)?);
        }
        for c in &this.children {
            if c.line()?.is_none() {
                return Ok(None);
            }
        }
        Ok(Some(this))
    }

    /// One window: images per second of all processes together. None when a
    /// signal came meanwhile: the answers are out of step then.
    pub fn window(&mut self, length: Duration) -> Result<Option<f64>> {
        let slices = length.as_nanos().div_ceil(SLICE.as_nanos()).max(1);
        let ms = (length.as_millis() / slices).max(1);
        // All slices at once, so that no process waits for another: they are
        // few bytes, which the pipe holds.
        let request: String = (0..slices).map(|_| format!("{ms}\n")).collect();
        for c in &mut self.children {
            c.input
                .write_all(request.as_bytes())
                .map_err(|e| Error::io("ask a measuring process", e))?;
        }
        let mut rate = 0.0;
        for c in &self.children {
            let (mut images, mut ns) = (0.0, 0.0);
            for _ in 0..slices {
                let Some(line) = c.line()? else {
                    return Ok(None);
                };
                let (i, t) = read_answer(&line).ok_or_else(|| {
                    Error::worker(format!("a measuring process answered '{line}'"))
                })?;
                images += i;
                ns += t;
            }
            rate += images / (ns * 1e-9);
        }
        Ok(Some(rate))
    }
}

/// `IMAGES NANOSECONDS`.
fn read_answer(line: &str) -> Option<(f64, f64)> {
    let (images, ns) = line.split_once(' ')?;
    Some((images.parse().ok()?, ns.parse().ok()?))
}

impl Decoder {
    fn start(mut command: Command) -> Result<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| Error::not_started("start a measuring process", e))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Error::worker("a measuring process has no pipes"));
        };
        let (sender, answers) = mpsc::channel();
        let this = Self {
            child,
            input,
            answers,
        };
        // Ends with the process, or when nobody listens.
        std::thread::Builder::new()
            .name("answers".into())
            .spawn(move || {
                for line in BufReader::new(output).lines() {
                    let Ok(line) = line else { return };
                    if sender.send(line).is_err() {
                        return;
                    }
                }
            })
            .map_err(|e| Error::not_started("start a thread", e))?;
        Ok(this)
    }

    /// Its next line; none when a signal came meanwhile.
    fn line(&self) -> Result<Option<String>> {
        loop {
            if interrupt::caught().is_some() {
                return Ok(None);
            }
            match self.answers.recv_timeout(LOOK) {
                Ok(line) => return Ok(Some(line)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Error::worker("a measuring process ended early"));
                }
            }
        }
    }
}

impl Drop for Decoder {
    fn drop(&mut self) {
        // One that has ended already cannot be killed, and need not be.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The life of a measuring process.
pub fn child(args: impl Iterator<Item = String>) -> ExitCode {
    match serve_share(args) {
        Ok(()) => ExitCode::SUCCESS,
        // The parent is gone, and with it whoever wants to know.
        Err(Error::Io { source, .. }) if source.kind() == ErrorKind::BrokenPipe => {
            ExitCode::FAILURE
        }
        Err(e) => {
            crate::output::complain(&format!("featherload: ceiling: {e}"));
            ExitCode::FAILURE
        }
    }
}

fn serve_share(args: impl Iterator<Item = String>) -> Result<()> {
    let args: Vec<String> = args.collect();
    let [part, i, n, recipe, plan, saved_index] = args.as_slice() else {
        return Err(Error::config("a measuring process takes six arguments"));
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
