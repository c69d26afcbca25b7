//! The thread that feeds the kernels of JPEGs, so that who takes batches never waits for a decode.
//!
//! In the consumer; made after the coordinator, which must be alone when it is forked. It
//! opens the device and loads the kernels itself, beside the start of workers. What it does with
//! batches then: `jpeg_feeder`.
//!
//! A decode cannot be taken back. So the thread holds what it works on, and a thread whose
//! device hangs is left alone with it.

use std::collections::VecDeque;
use std::process;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::context::{CudaContext, CudaEvent};
use super::crop_stage::BatchTarget;
use super::gpu_jpeg_decoder::JpegKernels;
use super::jpeg_feeder::{FeederOrder, FeederProgress, FeederReport, JpegFeeder};
use super::jpeg_lane::JpegBatch;
use crate::device::JpegTimes;
use crate::device::coded_rows::{CodedBatch, DecodedBatch};
use crate::device::crop_launch::KernelEmission;
use crate::device::stage_shapes::{JpegShape, RowPlaces};
use crate::error::{Error, Result};
use crate::sys::clock::RunningClock;

/// How long a sleep is between two looks at the time.
const LOOK: Duration = Duration::from_millis(50);
/// How long it may take to open a device and to load the kernels, which a driver compiles when it
/// first meets them: several processes of a machine may do so at a time.
const OPEN: Duration = Duration::from_secs(300);
/// How long the CPU may take for a row that it decodes again: for its sample and all that stand in
/// for it, of a storage that may be slow.
const AGAIN: Duration = Duration::from_secs(300);
/// How long the end of a thread is waited for whose decoder is open.
const END: Duration = Duration::from_secs(1);

/// The decoder of a device, and who waits for it.
#[derive(Debug)]
pub(crate) struct JpegThread {
    /// Always there, but in a forked copy that drops it.
    ends: Option<ThreadChannels>,
    is_open: bool,
    process: u32,
    /// Of batches that are not reported: before what their memory is not written.
    after: VecDeque<Vec<Arc<CudaEvent>>>,
    /// Time that was waited for a device that could work, and what was done by then.
    waited: Option<(RunningClock, u64)>,
    limit: Duration,
    failed: Option<String>,
    progress: Arc<Mutex<FeederProgress>>,
}

/// Of the channels to and from the thread.
#[derive(Debug)]
struct ThreadChannels {
    orders: Sender<FeederOrder>,
    context: Receiver<Result<Arc<CudaContext>>>,
    begin: Sender<JpegShape>,
    opened: Receiver<Result<()>>,
    reports: Receiver<Result<FeederReport>>,
    thread: JoinHandle<()>,
}

impl JpegThread {
    /// Starts the thread, which opens the device. `limit`: how long the device may take for a part.
    ///
    /// # Errors
    /// No further thread.
    pub(crate) fn start(ordinal: u32, limit: Duration) -> Result<Self> {
        let (orders, to_do) = mpsc::channel();
        let (say_context, context) = mpsc::channel();
        let (begin, may_begin) = mpsc::channel();
        let (say_opened, opened) = mpsc::channel();
        let (report, reports) = mpsc::channel();
        let progress = Arc::<Mutex<FeederProgress>>::default();
        let theirs = progress.clone();
        let work = move || {
            let context = match CudaContext::open(ordinal) {
                Ok(context) => context,
                Err(why) => {
                    let _ = say_context.send(Err(why));
                    return;
                }
            };
            if say_context.send(Ok(context.clone())).is_err() {
                return;
            }
            let opened = JpegKernels::load(&context).and_then(|kernels| {
                // Nobody begins where the run does not.
                match may_begin.recv() {
                    Ok(shape) => JpegFeeder::open(&context, kernels, &shape, theirs).map(Some),
                    Err(_) => Ok(None),
                }
            });
            match opened {
                Ok(None) => {}
                Ok(Some(feeder)) => {
                    if say_opened.send(Ok(())).is_ok() {
                        feeder.feed(&to_do, &report);
                    }
                }
                Err(why) => {
                    let _ = say_opened.send(Err(why));
                }
            }
        };
        let thread = thread::Builder::new()
            .name("jpegs".into())
            .spawn(work)
            .map_err(|e| Error::not_started("start the thread that decodes JPEGs", e))?;
        Ok(Self {
            ends: Some(ThreadChannels {
                orders,
                context,
                begin,
                opened,
                reports,
                thread,
            }),
            is_open: false,
            process: process::id(),
            after: VecDeque::new(),
            waited: None,
            limit,
            failed: None,
            progress,
        })
    }

    /// Waits until the device is open, which it is before its decoder is. Asked for once.
    ///
    /// # Errors
    /// Why it is not.
    pub(crate) fn context(&mut self) -> Result<Arc<CudaContext>> {
        self.opening(|ends| &ends.context)
    }

    /// Lets the decoder take the memory of this shape, or less of it, and waits until it has: behind
    /// whatever takes memory that cannot be less.
    ///
    /// # Errors
    /// Kernels that cannot be loaded, or not enough memory; that it takes longer than the limit.
    pub(crate) fn start_decoder(&mut self, shape: JpegShape) -> Result<()> {
        if !self.is_open {
            // Where nobody receives it, `opening` says why.
            let _ = self.ends()?.begin.send(shape);
            self.opening(|ends| &ends.opened)?;
            self.is_open = true;
        }
        Ok(())
    }

    fn opening<T>(&mut self, of: fn(&ThreadChannels) -> &Receiver<Result<T>>) -> Result<T> {
        self.check()?;
        let mut waited = RunningClock::start();
        loop {
            match of(self.ends()?).recv_timeout(LOOK) {
                Ok(opened) => return opened.map_err(|why| self.fail(why)),
                Err(RecvTimeoutError::Disconnected) => return Err(self.gone()),
                Err(RecvTimeoutError::Timeout) if waited.read(LOOK) < OPEN.max(self.limit) => {}
                Err(RecvTimeoutError::Timeout) => {
                    let limit = OPEN.max(self.limit);
                    return Err(self.fail(Error::device(format!(
                        "the device's JPEG decoder did not open within {limit:?}: use decode_on \
                             cpu, and see dmesg for Xid errors"
                    ))));
                }
            }
        }
    }

    /// Hands a batch over whose rows come yet: the device decodes those that are coded, and
    /// nobody else does.
    ///
    /// # Errors
    /// The error of an earlier one.
    pub(crate) fn open(
        &mut self,
        rows: Arc<dyn CodedBatch>,
        target: BatchTarget,
        (places, emission, row_bytes): (RowPlaces, KernelEmission, usize),
    ) -> Result<()> {
        self.check()?;
        let after = target.output.after_all().cloned().collect();
        let job = JpegBatch {
            rows,
            places,
            emission,
            target,
            row_bytes,
        };
        self.order(FeederOrder::Open(job))?;
        self.after.push_back(after);
        Ok(())
    }

    /// Lets all batches go that are not reported, whether their rows have come or not. Behind
    /// this the thread writes none of their memory.
    ///
    /// # Errors
    /// As [`JpegThread::next_done`].
    pub(crate) fn cancel_batches(&mut self) -> Result<()> {
        self.check()?;
        self.order(FeederOrder::Cancel)?;
        loop {
            match self.next_report(Duration::MAX)? {
                Some(FeederReport::Made(_)) => drop(self.after.pop_front()),
                None => {}
                Some(FeederReport::Cancelled) => {
                    self.after.clear();
                    return Ok(());
                }
            }
        }
    }

    fn order(&mut self, order: FeederOrder) -> Result<()> {
        match self.ends()?.orders.send(order) {
            Ok(()) => Ok(()),
            // Why it ended may be told yet, behind batches that were made.
            Err(_) => {
                while let Ok(report) = self.ends()?.reports.try_recv() {
                    if let Err(why) = report {
                        return Err(self.fail(why));
                    }
                }
                Err(self.gone())
            }
        }
    }

    #[cfg(test)]
    pub(super) fn set_limit(&mut self, limit: Duration) {
        self.limit = limit;
    }

    /// What was decoded so far.
    pub(crate) fn times(&self) -> JpegTimes {
        self.seen(|progress| progress.times)
    }

    /// What is seen of the thread.
    fn seen<T: Default>(&self, of: impl FnOnce(&FeederProgress) -> T) -> T {
        // A forked copy may have the lock of a thread that it does not have.
        if self.process != process::id() {
            return T::default();
        }
        of(&self.progress.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits at most `most` for the oldest batch that is not reported, all of whose rows have
    /// come: those that were coded are made then. None when it is not done.
    ///
    /// # Errors
    /// The device fails, or has hung for the limit. So does every later call.
    pub(crate) fn next_done(&mut self, most: Duration) -> Result<Option<DecodedBatch>> {
        self.check()?;
        match self.next_report(most)? {
            Some(FeederReport::Made(made)) => {
                self.after.pop_front();
                Ok(Some(made))
            }
            Some(FeederReport::Cancelled) => Err(self.fail(Error::device(
                "batches of JPEGs were let go, and one is waited for",
            ))),
            None => Ok(None),
        }
    }

    fn next_report(&mut self, most: Duration) -> Result<Option<FeederReport>> {
        let mut left = most;
        loop {
            let look = LOOK.min(left);
            match self.ends()?.reports.recv_timeout(look) {
                Ok(report) => {
                    self.waited = None;
                    return report.map(Some).map_err(|why| self.fail(why));
                }
                Err(RecvTimeoutError::Disconnected) => return Err(self.gone()),
                Err(RecvTimeoutError::Timeout) => {}
            }
            let on_cpu = self.seen(|progress| progress.on_cpu);
            let limit = on_cpu.map_or(self.limit, |_| AGAIN.max(self.limit));
            if self.waited(look) >= limit {
                return Err(self.fail(Error::device(match on_cpu {
                    Some(row) => format!(
                        "the CPU has not decoded row {row} of a batch, which the device \
                             flagged, within {limit:?}: see whether the files of the data set can \
                             be read"
                    ),
                    None => format!(
                        "the device has not decoded a batch of JPEGs within {limit:?}: use \
                             decode_on cpu, and see dmesg for Xid errors"
                    ),
                })));
            }
            left = left.saturating_sub(look);
            if left.is_zero() {
                return Ok(None);
            }
        }
    }

    /// How long nothing was done, though it could be. While a reader has the memory of a batch, as
    /// a training step that was put into a stream, the device cannot.
    fn waited(&mut self, look: Duration) -> Duration {
        // Of newer ones too: a part may have pictures of several.
        let mut events = self.after.iter().flatten();
        let is_read = events.any(|event| matches!(event.is_done(), Ok(false)));
        let steps = self.seen(FeederProgress::steps);
        if is_read || self.waited.as_ref().is_some_and(|(_, n)| *n != steps) {
            self.waited = None;
        }
        let (clock, _) = self
            .waited
            .get_or_insert_with(|| (RunningClock::start(), steps));
        match is_read {
            true => Duration::ZERO,
            false => clock.read(look),
        }
    }

    /// In this process alone: of a forked copy the thread is not there, and what it held of
    /// the channels is held for ever.
    fn ends(&self) -> Result<&ThreadChannels> {
        match &self.ends {
            Some(ends) if self.process == process::id() => Ok(ends),
            _ => Err(Error::device(
                "the JPEG decoder was opened by another process, and this is a forked copy \
                       of it",
            )),
        }
    }

    fn check(&self) -> Result<()> {
        match &self.failed {
            Some(what) => Err(Error::device(what.clone())),
            None => Ok(()),
        }
    }

    /// Keeps an error: no batch follows it.
    pub(crate) fn fail(&mut self, why: Error) -> Error {
        let what = match why {
            Error::Device { what } => what,
            other => other.to_string(),
        };
        self.failed = Some(what.clone());
        Error::Device { what }
    }

    /// The thread ended and gave no reason.
    fn gone(&mut self) -> Error {
        self.fail(Error::Device {
            what:
                "the thread that decodes JPEGs has ended: please report what stands above, and use \
                   decode_on cpu meanwhile"
                    .into(),
        })
    }
}

impl Drop for JpegThread {
    fn drop(&mut self) {
        let Some(ends) = self.ends.take() else {
            return;
        };
        if self.process != process::id() {
            std::mem::forget(ends);
            return;
        }
        let ThreadChannels {
            orders,
            context,
            begin,
            opened,
            reports,
            thread,
        } = ends;
        // The thread ends behind what its lanes are at: the channel of its reports closes then.
        drop((orders, context, begin, opened));
        // One that still opens its device is waited for: a process that ends while CUDA is started in
        // it may hang.
        let end = if self.is_open { END } else { self.limit };
        let mut waited = RunningClock::start();
        loop {
            match reports.recv_timeout(LOOK) {
                Ok(_) => waited = RunningClock::start(),
                Err(RecvTimeoutError::Disconnected) => break,
                // It keeps what the device may write, for as long as this process lives.
                Err(RecvTimeoutError::Timeout) if waited.read(LOOK) >= end => return,
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
        // A panic was reported by its hook.
        let _ = thread.join();
    }
}
