//! The consumer that is measured: a process of its own for each pool, which
//! takes batches for ever and tells where it is.
//!
//! It ends when its input does, and with it coordinator and workers; so nothing
//! of it outlives the process that measures, however that ends.

use std::ffi::OsString;
use std::io::{BufRead, Write};
use std::process::ExitCode;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use clap::Parser;
use featherload::{Error, Loader, LoaderReport, Result};

use super::args::RssArgs;
use super::messages::{Message, Ready, Status};
use crate::scene::RaysArgs;
use crate::setup::Setup;
use crate::{consumer, index};

/// The hidden sub-command of a measured consumer. Its arguments: the number of
/// workers, [`IMAGES`] or [`RAYS`], then those of the command.
pub const CHILD_COMMAND: &str = "__rss";

/// The pool makes batches of images; the arguments are those of `rss`.
pub const IMAGES: &str = "images";

/// The pool makes rays of a scene; the arguments are those of `rays`.
pub const RAYS: &str = "rays";

/// The shortest time between two tellings of where it is.
const TELL: Duration = Duration::from_millis(20);

pub fn child(args: impl Iterator<Item = OsString>) -> ExitCode {
    match live(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            // When this fails too, the parent is gone.
            let _ = tell(&Message::Failed {
                is_usage: e.is_usage(),
                what: consumer::suggest_policy(e).to_string(),
            });
            ExitCode::FAILURE
        }
    }
}

fn tell(message: &Message) -> Result<()> {
    let text = serde_json::to_string(message)
        .map_err(|e| Error::io("write JSON", std::io::Error::other(e)))?;
    crate::output::line(&text)
}

fn live(mut args: impl Iterator<Item = OsString>) -> Result<()> {
    let missing = || Error::config("a measured consumer takes two arguments before those of rss");
    let mut word = || args.next().and_then(|a| a.into_string().ok());
    let workers: usize = word().and_then(|n| n.parse().ok()).ok_or_else(missing)?;
    let how = word().ok_or_else(missing)?;
    if how == RAYS {
        return live_on_rays(workers, args);
    }
    let own_name = OsString::from("rss");
    let args = RssArgs::try_parse_from(std::iter::once(own_name).chain(args))
        .map_err(|e| Error::config(e.to_string()))?;
    let setup = Setup::new(&args.loader, &args.source)?;
    let source = setup.source()?;
    let epochs = args.epochs.unwrap_or(u64::MAX);
    let builder = setup.builder(source)?;
    let mut loader = builder.num_workers(workers).epochs(epochs).build()?;
    let go_on = read_input()?;
    if args.num_workers.0.first() == Some(&workers) {
        index::print_skipped(loader.scan_report());
    }
    tell(&Message::Ready(Ready {
        samples: loader.index().len(),
        ring_bytes: loader.report()?.ring_bytes,
        scan: serde_json::to_value(loader.scan_report())
            .map_err(|e| Error::io("write JSON", std::io::Error::other(e)))?,
    }))?;
    Consumer {
        go_on,
        paced: args.epochs.is_some(),
        told: None,
        batches: 0,
        epochs: 0,
        skipped: 0,
    }
    .consume(&mut loader)
}

/// Says that it is ready once every image is decoded: what it takes from then on is what
/// training takes.
fn live_on_rays(workers: usize, args: impl Iterator<Item = OsString>) -> Result<()> {
    let mut rays = RaysArgs::parsed(args)?
        .builder()?
        .num_workers(workers)
        .build()?;
    // No lines come; their end ends this process.
    let _go_on = read_input()?;
    let (mut batches, mut told) = (0, None::<Instant>);
    loop {
        drop(rays.next_batch()?);
        batches += 1;
        if !rays.is_decoded() || told.is_some_and(|told| told.elapsed() < TELL) {
            continue;
        }
        let report = rays.report()?;
        if told.is_none() {
            tell(&Message::Ready(Ready {
                samples: report.images,
                ring_bytes: report.ring_bytes,
                scan: serde_json::Value::Null,
            }))?;
        }
        told = Some(Instant::now());
        tell(&Message::Status(Status {
            consumer: std::process::id() as i32,
            coordinator: report.coordinator,
            workers: report.workers,
            rows_by_worker: report.work.rows_by_worker,
            batches,
            epochs: 0,
            skipped: 0,
            worker_deaths: report.worker_deaths,
        }))?;
    }
}

/// Lines of the input, as they come: each begins an epoch. The end of the input ends this
/// process, and what is left of the pool with it.
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

struct Consumer {
    go_on: Receiver<()>,
    /// Each epoch but the first waits for a line.
    paced: bool,
    told: Option<Instant>,
    batches: u64,
    epochs: u64,
    skipped: u64,
}

impl Consumer {
    /// Epoch after epoch, until the input ends.
    fn consume(mut self, loader: &mut Loader) -> Result<()> {
        loop {
            let mut epoch = loader.epoch();
            while let Some(batch) = epoch.next() {
                let batch = batch?;
                consumer::touch(&batch)?;
                self.batches += 1;
                self.skipped += batch.faults().len() as u64;
                drop(batch);
                if self.told.is_none_or(|told| told.elapsed() >= TELL) {
                    self.tell_status(&epoch.report()?)?;
                }
            }
            drop(epoch);
            self.epochs += 1;
            self.tell_status(&loader.report()?)?;
            if self.paced {
                tell(&Message::EpochOver(self.epochs - 1))?;
                // The sender ends with this process.
                let _ = self.go_on.recv();
            }
        }
    }

    fn tell_status(&mut self, report: &LoaderReport) -> Result<()> {
        self.told = Some(Instant::now());
        tell(&Message::Status(Status {
            consumer: std::process::id() as i32,
            coordinator: report.coordinator,
            workers: report.workers.clone(),
            rows_by_worker: report.rows_by_worker.clone(),
            batches: self.batches,
            epochs: self.epochs,
            skipped: self.skipped,
            worker_deaths: report.worker_deaths,
        }))
    }
}
