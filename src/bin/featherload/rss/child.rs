//! The measured consumer: a separate process for each pool, which takes batches endlessly and
//! reports its progress.
//!
//! It ends when its input closes, and coordinator and workers end with it. So nothing outlives the
//! measuring process, however that ends.

use std::ffi::OsString;
use std::io::{BufRead, Write};
use std::process::ExitCode;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use clap::Parser;
use featherload::{Error, LoaderReport, Result};

use super::args::RssArgs;
use super::messages::{ChildMessage, ChildStatus, ReadyMessage};
use crate::scene::RaysArgs;
use crate::setup::RunSetup;
use crate::{consumer, index, output};

/// The hidden sub-command of a measured consumer. Its arguments: the number of workers, [`IMAGES`]
/// or [`RAYS`], then the arguments of the command.
pub const CHILD_COMMAND: &str = "__rss";

/// The pool makes batches of images; the arguments are those of `rss`.
pub const IMAGES: &str = "images";

/// The pool makes rays of a scene; the arguments are those of `rays`.
pub const RAYS: &str = "rays";

/// Least time between two progress messages.
const TELL: Duration = Duration::from_millis(20);

pub fn child(args: impl Iterator<Item = OsString>) -> ExitCode {
    match run_child(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            // If this fails too, the parent has ended.
            let _ = send(&ChildMessage::Failed {
                is_usage: e.is_usage(),
                what: consumer::suggest_policy(e).to_string(),
            });
            ExitCode::FAILURE
        }
    }
}

fn send(message: &ChildMessage) -> Result<()> {
    output::line(&output::json_text(message)?)
}

fn run_child(mut args: impl Iterator<Item = OsString>) -> Result<()> {
    let missing = || Error::config("a measured consumer takes two arguments before those of rss");
    let mut word = || args.next().and_then(|a| a.into_string().ok());
    let workers: usize = word().and_then(|n| n.parse().ok()).ok_or_else(missing)?;
    let how = word().ok_or_else(missing)?;
    if how == RAYS {
        return run_rays(workers, args);
    }
    let own_name = OsString::from("rss");
    let args = RssArgs::try_parse_from(std::iter::once(own_name).chain(args))
        .map_err(|e| Error::config(e.to_string()))?;
    let setup = RunSetup::new(&args.loader, &args.source)?;
    let source = setup.options.data()?;
    let epochs = args.epochs.unwrap_or(u64::MAX);
    let builder = setup.builder(source)?;
    let mut loader = builder.num_workers(workers).epochs(epochs).build()?;
    let go_on = read_input()?;
    if args.num_workers.0.first() == Some(&workers) {
        index::print_skipped(loader.scan_report());
    }
    send(&ChildMessage::Ready(ReadyMessage {
        samples: loader.index().len(),
        ring_bytes: loader.report()?.ring_bytes,
        scan: serde_json::to_value(loader.scan_report())
            .map_err(|e| Error::io("write JSON", std::io::Error::other(e)))?,
    }))?;
    let mut progress = Progress::new();
    loop {
        let mut epoch = loader.epoch();
        while let Some(batch) = epoch.next() {
            let batch = batch?;
            consumer::touch(&batch)?;
            progress.status.batches += 1;
            progress.status.skipped += batch.faults().len() as u64;
            drop(batch);
            if progress.is_due() {
                progress.send_loader(epoch.report()?)?;
            }
        }
        drop(epoch);
        progress.status.epochs += 1;
        progress.send_loader(loader.report()?)?;
        // Each epoch but the first waits for a line.
        if args.epochs.is_some() {
            send(&ChildMessage::EpochOver(progress.status.epochs - 1))?;
            // The sender ends with this process.
            let _ = go_on.recv();
        }
    }
}

/// Reports readiness after every image is decoded: its memory from then on is that of training.
fn run_rays(workers: usize, args: impl Iterator<Item = OsString>) -> Result<()> {
    let builder = RaysArgs::parsed(args)?.builder()?;
    let mut rays = builder.num_workers(workers).build()?;
    // No lines arrive. The end of the input ends this process.
    let _go_on = read_input()?;
    let mut progress = Progress::new();
    loop {
        drop(rays.next_batch()?);
        progress.status.batches += 1;
        if !rays.is_decoded() || !progress.is_due() {
            continue;
        }
        let report = rays.report()?;
        if progress.last_sent.is_none() {
            send(&ChildMessage::Ready(ReadyMessage {
                samples: report.images,
                ring_bytes: report.ring_bytes,
                scan: serde_json::Value::Null,
            }))?;
        }
        progress.send(ChildStatus {
            coordinator: report.coordinator,
            workers: report.workers,
            rows_by_worker: report.work.rows_by_worker,
            worker_deaths: report.worker_deaths,
            ..progress.status.clone()
        })?;
    }
}

/// Reads lines of the input, each of which begins an epoch. The end of the input ends this process
/// and the rest of its pool.
fn read_input() -> Result<Receiver<()>> {
    let (sender, go_on) = mpsc::channel();
    std::thread::Builder::new()
        .name("input".into())
        .spawn(move || {
            for line in std::io::stdin().lock().lines() {
                if line.is_err() || sender.send(()).is_err() {
                    break;
                }
            }
            let _ = std::io::stdout().flush();
            std::process::exit(0);
        })
        .map_err(|e| Error::not_started("start a thread", e))?;
    Ok(go_on)
}

/// Progress of this process, and when it last reported it.
struct Progress {
    last_sent: Option<Instant>,
    status: ChildStatus,
}

impl Progress {
    fn new() -> Self {
        Self {
            last_sent: None,
            status: ChildStatus {
                consumer: std::process::id() as i32,
                ..ChildStatus::default()
            },
        }
    }

    fn is_due(&self) -> bool {
        self.last_sent
            .is_none_or(|last_sent| last_sent.elapsed() >= TELL)
    }

    fn send_loader(&mut self, report: LoaderReport) -> Result<()> {
        self.send(ChildStatus {
            coordinator: report.coordinator,
            workers: report.workers.clone(),
            rows_by_worker: report.rows_by_worker.clone(),
            worker_deaths: report.worker_deaths,
            ..self.status.clone()
        })
    }

    fn send(&mut self, status: ChildStatus) -> Result<()> {
        self.last_sent = Some(Instant::now());
        send(&ChildMessage::Status(status))
    }
}
