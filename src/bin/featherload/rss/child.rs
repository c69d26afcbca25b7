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
use featherload::measure::{LoadedImages, system};
use featherload::{Error, Launch, Loader, LoaderReport, Result};

use super::args::RssArgs;
use super::messages::{Loaded, Message, Order, Ready, Status};
use crate::rays::RaysArgs;
use crate::setup::Setup;
use crate::{consumer, index};

/// The hidden sub-command of a measured consumer. Its arguments: the number of
/// workers, [`AT_ONCE`] or [`AFTER_LOADING`], then those of `rss`.
pub const CHILD_COMMAND: &str = "__rss";

/// The pool is made first, as always.
pub const AT_ONCE: &str = "at-once";
/// The pool is forked from a process that holds all images.
pub const AFTER_LOADING: &str = "after-loading";

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
    let (loaded, mut loader) = if how == AFTER_LOADING {
        let (index, _) = source.open()?;
        let copies = workers as u64 + 1;
        let room = system::available_memory().map_or(u64::MAX, |free| free / copies);
        let loaded = LoadedImages::decode(&index, room)?;
        // The library's own fork: this process has one thread.
        let builder = setup.builder(index.into())?.launch(Launch::Fork);
        (
            Some(loaded),
            builder.num_workers(workers).epochs(epochs).build()?,
        )
    } else {
        let builder = setup.builder(source)?;
        (None, builder.num_workers(workers).epochs(epochs).build()?)
    };
    let orders = read_orders()?;
    if how == AT_ONCE && args.num_workers.0.first() == Some(&workers) {
        index::print_skipped(loader.scan_report());
    }
    tell(&Message::Ready(Ready {
        samples: loader.index().len(),
        ring_bytes: loader.report()?.ring_bytes,
        scan: serde_json::to_value(loader.scan_report())
            .map_err(|e| Error::io("write JSON", std::io::Error::other(e)))?,
        loaded: loaded.as_ref().map(|l| Loaded {
            images: l.count(),
            bytes: l.bytes(),
            failed: l.failed(),
        }),
    }))?;
    Consumer {
        orders,
        loaded,
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
        .builder()
        .num_workers(workers)
        .build()?;
    // Nothing is ordered; their end ends this process.
    let _orders = read_orders()?;
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
                loaded: None,
            }))?;
        }
        told = Some(Instant::now());
        tell(&Message::Status(Status {
            consumer: std::process::id() as i32,
            coordinator: report.coordinator,
            workers: report.workers,
            rows_by_worker: report.rows_by_worker,
            batches,
            epochs: 0,
            skipped: 0,
            worker_deaths: report.worker_deaths,
        }))?;
    }
}

/// Orders, as they come in. The end of the input ends this process: what is
/// left of the pool ends with it.
fn read_orders() -> Result<Receiver<Order>> {
    let (sender, orders) = mpsc::channel();
    std::thread::Builder::new()
        .name("orders".into())
        .spawn(move || {
            for line in std::io::stdin().lock().lines() {
                let Some(order) = line.ok().and_then(|l| Order::from_word(&l)) else {
                    break;
                };
                if sender.send(order).is_err() {
                    break;
                }
            }
            let _ = std::io::stdout().flush();
            std::process::exit(0);
        })
        .map_err(|e| Error::not_started("start a thread", e))?;
    Ok(orders)
}

struct Consumer {
    orders: Receiver<Order>,
    loaded: Option<LoadedImages>,
    /// Each epoch waits for an order to begin.
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
                if let Ok(Order::Write) = self.orders.try_recv() {
                    self.write(&epoch.report()?)?;
                }
            }
            drop(epoch);
            self.epochs += 1;
            self.tell_status(&loader.report()?)?;
            if self.paced {
                tell(&Message::EpochOver(self.epochs - 1))?;
                // The sender ends with this process.
                let _ = self.orders.recv();
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

    fn write(&self, report: &LoaderReport) -> Result<()> {
        if let Some(loaded) = &self.loaded {
            for &worker in &report.workers {
                loaded.write_in_copy(worker)?;
            }
        }
        tell(&Message::Written)
    }
}
