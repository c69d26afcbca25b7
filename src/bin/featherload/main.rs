//! The command line: parse, dispatch, exit code. One file for each sub-command.
//!
//! The same executable is the helper of `LaunchMethod::Exec`. Started as the helper, it becomes a
//! coordinator before any argument is parsed.
//!
//! - `bench`, `cache`, `demo`, `doctor`, `index`, `operations`, `plan`, `preview`, `rss`: the
//!   sub-commands;
//! - `scene`: `rays`, `views`, and `index` of a scene;
//! - `loader_args`, `run_args`, `sampler_args`, `worker_counts`: arguments of several commands;
//! - `setup`: builds a loader from the arguments;
//! - `consumer`: the consumer's part of a run;
//! - `outcome`: how a command ended;
//! - `ceiling`: the decoder alone, in its own processes;
//! - `line_process`: a child process of `ceiling` or `rss`;
//! - `digest`: digests of batches;
//! - `run_length`: whether a run is long enough for a rate;
//! - `chart`: the frame and style of all charts;
//! - `plan_chart`: the chart of `plan`; `object_report`: what `index` prints of objects;
//! - `output`: printing;
//! - `output_files`: rejects output files that are also inputs;
//! - `failure`: errors as JSON;
//! - `flags`: replaces the library's option names by flags;
//! - `clap_command`: the flags that exist;
//! - `warnings`: warnings of the library;
//! - `help`: help pages, completions, man pages;
//! - `interrupt`: signals;
//! - `pool_processes`: the processes of a pool;
//! - `short_text`: small text files, with a size limit;
//! - `step_text`: drawn steps as text.

mod bench;
mod cache;
mod ceiling;
mod chart;
mod clap_command;
mod consumer;
mod demo;
mod digest;
mod doctor;
mod failure;
mod flags;
mod help;
mod index;
mod interrupt;
mod line_process;
mod loader_args;
mod object_report;
mod operations;
mod outcome;
mod output;
mod output_files;
mod plan;
mod plan_chart;
mod pool_processes;
mod preview;
mod rss;
mod run_args;
mod run_length;
mod sampler_args;
mod scene;
mod setup;
mod short_text;
mod step_text;
mod warnings;
mod worker_counts;

use std::ffi::OsStr;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use featherload::error::printable;

use crate::outcome::CommandOutcome;

/// Batches of images for vision and NeRF training, at the speed of the decoder and with the memory
/// of one process.
#[derive(Parser)]
#[command(name = "featherload", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Bench(Box<bench::BenchArgs>),
    Cache(cache::CacheArgs),
    Completions(help::CompletionsArgs),
    Demo(demo::DemoArgs),
    Doctor(doctor::DoctorArgs),
    Index(Box<index::IndexArgs>),
    Man(help::ManArgs),
    Ops(operations::OpsArgs),
    Plan(Box<plan::PlanArgs>),
    Preview(Box<preview::PreviewArgs>),
    Rays(Box<scene::RaysArgs>),
    Rss(Box<rss::RssArgs>),
    Views(Box<scene::ViewsArgs>),
}

/// A check that the user requested has failed.
const EXIT_CHECK: u8 = 1;
/// Invalid usage or input.
const EXIT_USAGE: u8 = 2;
/// The run failed.
const EXIT_RUN: u8 = 3;

fn main() -> ExitCode {
    // Parsing may need a larger stack: an overflow is a crash without a message.
    if let Err(e) = featherload::measure::system::check_stack() {
        output::print_to_stderr(&format!("featherload: {e}"));
        return ExitCode::from(EXIT_USAGE);
    }
    run()
}

/// A separate function, because the stack frame of `main` is small.
#[inline(never)]
fn run() -> ExitCode {
    clap_command::set(Cli::command);
    // Before the helper and the hidden sub-commands, whose warnings also go to stderr. Starts no
    // thread. If it fails, the run continues without warnings.
    let _ = tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .with_max_level(tracing::Level::WARN)
        .event_format(warnings::AsErrors)
        .try_init();
    featherload::init();
    let _ = featherload::internals::end_by_crash_signals();
    // If a file may not grow further (`ulimit -f`), a write returns an error that names the file.
    let handled = Arc::new(AtomicBool::new(false));
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, handled);
    let first = std::env::args_os().nth(1);
    match first.as_deref().and_then(OsStr::to_str) {
        Some(ceiling::CHILD_COMMAND) => return ceiling::child(std::env::args().skip(2)),
        Some(rss::CHILD_COMMAND) => return rss::child(std::env::args_os().skip(2)),
        _ => {}
    }
    let parsed = help::command().try_get_matches();
    let parsed = parsed.and_then(|matches| Ok((Cli::from_arg_matches(&matches)?, matches)));
    let (cli, matches) = match parsed {
        Ok(parsed) => parsed,
        Err(e) => return misuse(&e),
    };
    // For every command: signals without a handler do not end the first process of a container.
    let handled = interrupt::end_the_process();
    let run = |command: Command| match command {
        Command::Bench(args) => bench::run(*args),
        Command::Cache(args) => cache::run(args),
        Command::Completions(args) => help::completions(&args),
        Command::Demo(args) => demo::run(args),
        Command::Doctor(args) => doctor::run(args),
        Command::Index(args) => index::run(*args),
        Command::Man(args) => help::man(&args),
        Command::Ops(args) => operations::run(args),
        Command::Plan(args) => plan::run(*args),
        Command::Preview(args) => preview::run(*args),
        Command::Rays(args) => scene::rays(*args),
        Command::Rss(args) => rss::run(*args),
        Command::Views(args) => scene::views(*args),
    };
    let ready = handled.and_then(|()| output_files::check(&matches));
    match ready.and_then(|()| run(cli.command)) {
        Ok(CommandOutcome::Done) => ExitCode::SUCCESS,
        Ok(CommandOutcome::CheckFailed) => ExitCode::from(EXIT_CHECK),
        Ok(CommandOutcome::Interrupted(signal)) => ExitCode::from(128 + signal as u8),
        Err(e) => {
            match failure::is_requested() {
                true => output::print_json_to_stderr(&failure::of(&e)),
                false => output::print_to_stderr(&format!("featherload: {}", flags::of_error(&e))),
            }
            ExitCode::from(if e.is_usage() { EXIT_USAGE } else { EXIT_RUN })
        }
    }
}

/// Prints help, or the error in the arguments. Uses clap's colours, unless an argument contains
/// terminal control characters.
fn misuse(e: &clap::Error) -> ExitCode {
    let text = e.render().to_string();
    if !e.use_stderr() || text.lines().all(|line| printable(line) == line) {
        e.exit();
    }
    text.lines().for_each(output::print_to_stderr);
    ExitCode::from(EXIT_USAGE)
}
