//! `bench --ceiling`: processes that do nothing but decode, run in turns with
//! the loader.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};
use std::time::Duration;

use featherload::measure::ceiling::{CeilingPart, CeilingShare, serve};
use featherload::plan::PlanOptions;
use featherload::{Error, Recipe, Result};

/// The hidden sub-command of a measuring process.
pub const CHILD_COMMAND: &str = "__ceiling";

/// Processes that wait for windows.
pub struct Ceiling {
    children: Vec<Decoder>,
}

struct Decoder {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Ceiling {
    /// Starts `n` processes over a saved index.
    pub fn start(
        n: u64,
        part: CeilingPart,
        saved_index: &Path,
        recipe: &Recipe,
        plan: &PlanOptions,
    ) -> Result<Self> {
        let me = std::env::current_exe().map_err(|e| Error::io("find this executable", e))?;
        let json = |e| Error::io("write JSON", std::io::Error::other(e));
        let recipe = serde_json::to_string(recipe).map_err(json)?;
        let plan = serde_json::to_string(plan).map_err(json)?;
        let mut children = Vec::new();
        for i in 0..n {
            let part = match part {
                CeilingPart::Full => "full",
                CeilingPart::Crop => "crop",
            };
            let mut child = Command::new(&me)
                .arg(CHILD_COMMAND)
                .args([part, &i.to_string(), &n.to_string(), &recipe, &plan])
                .arg(saved_index)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .map_err(|e| Error::io_at("start a measuring process,", &me, e))?;
            let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
                return Err(Error::worker("a measuring process has no pipes"));
            };
            children.push(Decoder {
                child,
                input,
                output: BufReader::new(output),
            });
        }
        let mut this = Self { children };
        for c in &mut this.children {
            c.line()?;
        }
        Ok(this)
    }

    /// One window: images per second of all processes together.
    pub fn window(&mut self, length: Duration) -> Result<f64> {
        for c in &mut self.children {
            writeln!(c.input, "{}", length.as_millis())
                .map_err(|e| Error::io("ask a measuring process", e))?;
        }
        let mut rate = 0.0;
        for c in &mut self.children {
            let line = c.line()?;
            let bad = || Error::worker(format!("a measuring process answered '{}'", line.trim()));
            let (images, ns) = line.trim().split_once(' ').ok_or_else(bad)?;
            let images: f64 = images.parse().map_err(|_| bad())?;
            let ns: f64 = ns.parse().map_err(|_| bad())?;
            rate += images / (ns * 1e-9);
        }
        Ok(rate)
    }
}

impl Decoder {
    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        let n = self
            .output
            .read_line(&mut line)
            .map_err(|e| Error::io("read from a measuring process", e))?;
        if n == 0 {
            return Err(Error::worker("a measuring process ended early"));
        }
        Ok(line)
    }
}

impl Drop for Ceiling {
    fn drop(&mut self) {
        for c in &mut self.children {
            // One that has ended already cannot be killed, and need not be.
            let _ = c.child.kill();
            let _ = c.child.wait();
        }
    }
}

/// The life of a measuring process.
pub fn child(args: impl Iterator<Item = String>) -> ExitCode {
    match serve_share(args) {
        Ok(()) => ExitCode::SUCCESS,
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
            _ => CeilingPart::Crop,
        },
        recipe: serde_json::from_str(recipe).map_err(|e| bad(&e))?,
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
