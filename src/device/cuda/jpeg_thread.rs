//! The thread that decodes JPEGs on the device, so that a consumer never waits for a decode of
//! later batches.
//!
//! In the consumer. The thread starts after the coordinator, since the process must have one thread
//! when it forks. It opens the device and loads the kernels while workers start. Its work is in
//! `jpeg_feeder`.
//!
//! A decode cannot be cancelled. So the thread owns everything that it works on. If the device
//! hangs, the thread is abandoned together with that memory.

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

/// Sleep between two checks of the time limit.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// Time limit for opening a device and loading the kernels. The driver compiles them when it first
/// sees them, perhaps for several processes at once.
const OPEN_LIMIT: Duration = Duration::from_secs(300);
/// Time limit for a row that the CPU decodes again: for its sample and all substitutes, perhaps
/// from slow storage.
const REDECODE_LIMIT: Duration = Duration::from_secs(300);
/// How long `drop` waits for the thread if its decoder is open.
const DROP_LIMIT: Duration = Duration::from_secs(1);

/// The consumer's side of the thread.
#[derive(Debug)]
pub(crate) struct JpegThread {
    /// None only in a forked copy, while it is dropped.
    channels: Option<ThreadChannels>,
    is_open: bool,
    process: u32,
    /// For each batch that was not reported: the events before which its memory is not written.
    pending_reads: VecDeque<Vec<Arc<CudaEvent>>>,
    /// Time for which the device could work and did not, and its progress at the start of that
    /// time.
    stalled_since: Option<(RunningClock, u64)>,
    limit: Duration,
    failed: Option<String>,
    progress: Arc<Mutex<FeederProgress>>,
}

/// The channels to and from the thread, and its handle.
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
    /// The system cannot start a thread.
    pub(crate) fn start(ordinal: u32, limit: Duration) -> Result<Self> {
        let (orders, order_receiver) = mpsc::channel();
        let (context_sender, context) = mpsc::channel();
        let (begin, begin_receiver) = mpsc::channel();
        let (opened_sender, opened) = mpsc::channel();
        let (report, reports) = mpsc::channel();
        let progress = Arc::<Mutex<FeederProgress>>::default();
        let thread_progress = progress.clone();
        let work = move || {
            let context = match CudaContext::open(ordinal) {
                Ok(context) => context,
                Err(why) => {
                    let _ = context_sender.send(Err(why));
                    return;
                }
            };
            if context_sender.send(Ok(context.clone())).is_err() {
                return;
            }
            let opened = JpegKernels::load(&context).and_then(|kernels| {
                // The run was not started.
                match begin_receiver.recv() {
                    Ok(shape) => {
                        JpegFeeder::open(&context, kernels, &shape, thread_progress).map(Some)
                    }
                    Err(_) => Ok(None),
                }
            });
            match opened {
                Ok(None) => {}
                Ok(Some(feeder)) => {
                    if opened_sender.send(Ok(())).is_ok() {
                        feeder.feed(&order_receiver, &report);
                    }
                }
                Err(why) => {
                    let _ = opened_sender.send(Err(why));
                }
            }
        };
        let thread = thread::Builder::new()
            .name("jpegs".into())
            .spawn(work)
            .map_err(|e| Error::not_started("start the thread that decodes JPEGs", e))?;
        Ok(Self {
            channels: Some(ThreadChannels {
                orders,
                context,
                begin,
                opened,
                reports,
                thread,
            }),
            is_open: false,
            process: process::id(),
            pending_reads: VecDeque::new(),
            stalled_since: None,
            limit,
            failed: None,
            progress,
        })
    }

    /// Waits until the device is open. That is before its decoder is ready. Call it once.
    ///
    /// # Errors
    /// Why the device cannot be opened.
    pub(crate) fn context(&mut self) -> Result<Arc<CudaContext>> {
        self.wait_opened(|channels| &channels.context)
    }

    /// Makes the decoder allocate the memory of this shape, or less of it, and waits for it. Call
    /// it after all allocations that cannot be smaller.
    ///
    /// # Errors
    /// Kernels that cannot be loaded; not enough memory; the time limit.
    pub(crate) fn start_decoder(&mut self, shape: JpegShape) -> Result<()> {
        if !self.is_open {
            // If the thread has ended, `wait_opened` returns the reason.
            let _ = self.channels()?.begin.send(shape);
            self.wait_opened(|channels| &channels.opened)?;
            self.is_open = true;
        }
        Ok(())
    }

    fn wait_opened<T>(&mut self, of: fn(&ThreadChannels) -> &Receiver<Result<T>>) -> Result<T> {
        self.check()?;
        let mut waited = RunningClock::start();
        loop {
            match of(self.channels()?).recv_timeout(CHECK_INTERVAL) {
                Ok(opened) => return opened.map_err(|why| self.fail(why)),
                Err(RecvTimeoutError::Disconnected) => return Err(self.ended_error()),
                Err(RecvTimeoutError::Timeout)
                    if waited.read(CHECK_INTERVAL) < OPEN_LIMIT.max(self.limit) => {}
                Err(RecvTimeoutError::Timeout) => {
                    let limit = OPEN_LIMIT.max(self.limit);
                    return Err(self.fail(Error::device(format!(
                        "the device's JPEG decoder did not open within {limit:?}: use decode_on \
                             cpu, and see dmesg for Xid errors"
                    ))));
                }
            }
        }
    }

    /// Hands over a batch that workers still fill. The device decodes its coded rows, and no other
    /// code does.
    ///
    /// # Errors
    /// The error of an earlier batch.
    pub(crate) fn open(
        &mut self,
        rows: Arc<dyn CodedBatch>,
        target: BatchTarget,
        (places, emission, row_bytes): (RowPlaces, KernelEmission, usize),
    ) -> Result<()> {
        self.check()?;
        let after = target.output.pending_events().cloned().collect();
        let job = JpegBatch {
            rows,
            places,
            emission,
            target,
            row_bytes,
        };
        self.order(FeederOrder::Open(job))?;
        self.pending_reads.push_back(after);
        Ok(())
    }

    /// Forgets all batches that were not reported, whether their rows are final or not. After this
    /// call the thread writes none of their memory.
    ///
    /// # Errors
    /// As [`JpegThread::next_done`].
    pub(crate) fn cancel_batches(&mut self) -> Result<()> {
        self.check()?;
        self.order(FeederOrder::Cancel)?;
        loop {
            match self.next_report(Duration::MAX)? {
                Some(FeederReport::Decoded(_)) => drop(self.pending_reads.pop_front()),
                None => {}
                Some(FeederReport::Cancelled) => {
                    self.pending_reads.clear();
                    return Ok(());
                }
            }
        }
    }

    fn order(&mut self, order: FeederOrder) -> Result<()> {
        match self.channels()?.orders.send(order) {
            Ok(()) => Ok(()),
            // The reason may still be in the channel, after finished batches.
            Err(_) => {
                while let Ok(report) = self.channels()?.reports.try_recv() {
                    if let Err(why) = report {
                        return Err(self.fail(why));
                    }
                }
                Err(self.ended_error())
            }
        }
    }

    #[cfg(test)]
    pub(super) fn set_limit(&mut self, limit: Duration) {
        self.limit = limit;
    }

    /// Counters and times of the decoding so far.
    pub(crate) fn times(&self) -> JpegTimes {
        self.read_progress(|progress| progress.times)
    }

    /// Reads the thread's progress.
    fn read_progress<T: Default>(&self, of: impl FnOnce(&FeederProgress) -> T) -> T {
        // In a forked copy, the lock may belong to a thread that does not exist there.
        if self.process != process::id() {
            return T::default();
        }
        of(&self.progress.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits at most `most` for the oldest batch that was not reported. All its rows must be final.
    /// None if it is not decoded yet.
    ///
    /// # Errors
    /// The device fails, or made no progress for the limit. Every later call fails too.
    pub(crate) fn next_done(&mut self, most: Duration) -> Result<Option<DecodedBatch>> {
        self.check()?;
        match self.next_report(most)? {
            Some(FeederReport::Decoded(made)) => {
                self.pending_reads.pop_front();
                Ok(Some(made))
            }
            Some(FeederReport::Cancelled) => Err(self.fail(Error::device(
                "a batch of JPEGs was requested after all were cancelled",
            ))),
            None => Ok(None),
        }
    }

    fn next_report(&mut self, most: Duration) -> Result<Option<FeederReport>> {
        let mut left = most;
        loop {
            let look = CHECK_INTERVAL.min(left);
            match self.channels()?.reports.recv_timeout(look) {
                Ok(report) => {
                    self.stalled_since = None;
                    return report.map(Some).map_err(|why| self.fail(why));
                }
                Err(RecvTimeoutError::Disconnected) => return Err(self.ended_error()),
                Err(RecvTimeoutError::Timeout) => {}
            }
            let on_cpu = self.read_progress(|progress| progress.on_cpu);
            let limit = on_cpu.map_or(self.limit, |_| REDECODE_LIMIT.max(self.limit));
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

    /// How long the device made no progress although it could. It cannot while a reader still uses
    /// the memory of a batch, such as a queued training step.
    fn waited(&mut self, look: Duration) -> Duration {
        // Newer batches too: a part may have images of several.
        let mut events = self.pending_reads.iter().flatten();
        let is_read = events.any(|event| matches!(event.is_done(), Ok(false)));
        let steps = self.read_progress(FeederProgress::steps);
        if is_read
            || self
                .stalled_since
                .as_ref()
                .is_some_and(|(_, n)| *n != steps)
        {
            self.stalled_since = None;
        }
        let (clock, _) = self
            .stalled_since
            .get_or_insert_with(|| (RunningClock::start(), steps));
        match is_read {
            true => Duration::ZERO,
            false => clock.read(look),
        }
    }

    /// Only in the process that made it. A forked copy lacks the thread, and its channels would be
    /// locked for ever.
    fn channels(&self) -> Result<&ThreadChannels> {
        match &self.channels {
            Some(channels) if self.process == process::id() => Ok(channels),
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

    /// The error of a thread that ended without a reason.
    fn ended_error(&mut self) -> Error {
        self.fail(Error::Device {
            what:
                "the thread that decodes JPEGs has ended: please report the output above, and use \
                   decode_on cpu meanwhile"
                    .into(),
        })
    }
}

impl Drop for JpegThread {
    fn drop(&mut self) {
        let Some(channels) = self.channels.take() else {
            return;
        };
        if self.process != process::id() {
            std::mem::forget(channels);
            return;
        }
        let ThreadChannels {
            orders,
            context,
            begin,
            opened,
            reports,
            thread,
        } = channels;
        // The thread ends after the work of its lanes. It then closes the channel of its reports.
        drop((orders, context, begin, opened));
        // A thread that still opens its device is waited for: a process that exits while CUDA
        // starts in it may hang.
        let end = if self.is_open { DROP_LIMIT } else { self.limit };
        let mut waited = RunningClock::start();
        loop {
            match reports.recv_timeout(CHECK_INTERVAL) {
                Ok(_) => waited = RunningClock::start(),
                Err(RecvTimeoutError::Disconnected) => break,
                // The abandoned thread keeps the memory that the device may write, until this
                // process exits.
                Err(RecvTimeoutError::Timeout) if waited.read(CHECK_INTERVAL) >= end => return,
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
        // A panic was reported by its hook.
        let _ = thread.join();
    }
}
