//! The thread that feeds the engines, so that who takes batches never waits for a decode.
//!
//! In the consumer; made after the coordinator, which must be alone when it is forked. It
//! opens the device and the engines itself, beside index and workers' start. Batches come in
//! one order and are reported in it. A submission has what is queued, of one batch or of
//! several: small batches do not wait for themselves, and of large ones the first pictures are
//! rows before the last are decoded.
//!
//! A decode cannot be taken back. So the thread holds what it works on, and a thread whose
//! engines hang is left alone with it.

use std::collections::VecDeque;
use std::process;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::context::{Context, Event};
use super::crop_stage::Target;
use super::engine_lane::{Job, Lane, Made};
use super::engines::Engines;
use super::kernel::Kernel;
use crate::device::frames::{Bytes, Culprits, Picture};
use crate::device::launch::KernelEmission;
use crate::device::shape::{EngineShape, LANES, RowPlaces};
use crate::device::{EngineInfo, EngineTimes};
use crate::error::{Error, Result};
use crate::sys::clock::RunningClock;

/// How long a sleep is between two looks at the time.
const LOOK: Duration = Duration::from_millis(50);
/// How long one is while lanes are at work and no batch is queued: a submission takes 3 ms.
const NEXT: Duration = Duration::from_micros(200);
/// How long the end of a thread at work is waited for.
const END: Duration = Duration::from_secs(1);

/// The end of a batch, once its rows are there: what failed.
type Done = Result<Culprits>;

/// The engines of a device, and who waits for them.
#[derive(Debug)]
pub(crate) struct EngineThread {
    /// Always there, but in a forked copy that drops it.
    ends: Option<Ends>,
    process: u32,
    rows: usize,
    /// Of batches that are not reported: when their memory may be written.
    free: VecDeque<Option<Arc<Event>>>,
    /// Time that was waited for engines that could work, and submissions that they had then.
    waited: Option<(RunningClock, u64)>,
    limit: Duration,
    failed: Option<String>,
    times: Arc<Mutex<EngineTimes>>,
}

/// Of the channels to and from the thread.
#[derive(Debug)]
struct Ends {
    jobs: Sender<Job>,
    context: Receiver<Result<Arc<Context>>>,
    found: Receiver<Result<EngineInfo>>,
    opened: Receiver<Result<()>>,
    done: Receiver<Done>,
    thread: JoinHandle<()>,
}

impl EngineThread {
    /// Starts the thread, which opens the device and then its engines. `limit`: how long
    /// that, and a batch, may take.
    ///
    /// # Errors
    /// No further thread.
    pub(crate) fn start(ordinal: u32, shape: EngineShape, limit: Duration) -> Result<Self> {
        let (jobs, to_do) = mpsc::channel();
        let (say_context, context) = mpsc::channel();
        let (say_found, found) = mpsc::channel();
        let (say_opened, opened) = mpsc::channel();
        let (report, done) = mpsc::channel();
        let times = Arc::new(Mutex::new(EngineTimes::default()));
        let theirs = times.clone();
        let work = move || {
            let context = match Context::open(ordinal) {
                Ok(context) => context,
                Err(why) => {
                    // Whoever asks first is told.
                    let what = why.to_string();
                    let _ = say_found.send(Err(Error::Device { what }));
                    let _ = say_context.send(Err(why));
                    return;
                }
            };
            if say_context.send(Ok(context.clone())).is_err() {
                return;
            }
            let engines = match Engines::find(&context) {
                Ok(engines) => engines,
                Err(why) => {
                    let _ = say_found.send(Err(why));
                    return;
                }
            };
            if say_found.send(Ok(engines.info())).is_err() {
                return;
            }
            match Feeder::open(&context, engines, &shape, theirs) {
                Ok(feeder) => {
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
            .name("engines".into())
            .spawn(work)
            .map_err(|e| Error::io("start the thread of the engines", e))?;
        Ok(Self {
            ends: Some(Ends {
                jobs,
                context,
                found,
                opened,
                done,
                thread,
            }),
            process: process::id(),
            rows: shape.rows,
            free: VecDeque::new(),
            waited: None,
            limit,
            failed: None,
            times,
        })
    }

    /// Waits until the device is open, which it is before the engines are. Asked for once.
    ///
    /// # Errors
    /// Why it is not.
    pub(crate) fn context(&mut self) -> Result<Arc<Context>> {
        self.opening(|ends| &ends.context)
    }

    /// Waits until the engines are found, which they are before they have their memory. Asked
    /// for once.
    ///
    /// # Errors
    /// Why there are none, or that they take longer than the limit.
    pub(crate) fn found(&mut self) -> Result<EngineInfo> {
        self.opening(|ends| &ends.found)
    }

    /// Waits until the engines have all their memory. Asked for once.
    ///
    /// # Errors
    /// Not enough of it, or that they take longer than the limit.
    pub(crate) fn opened(&mut self) -> Result<()> {
        self.opening(|ends| &ends.opened)
    }

    fn opening<T>(&mut self, of: fn(&Ends) -> &Receiver<Result<T>>) -> Result<T> {
        let mut waited = RunningClock::start();
        loop {
            match of(self.ends()?).recv_timeout(LOOK) {
                Ok(opened) => return opened.map_err(|why| self.fail(why)),
                Err(RecvTimeoutError::Disconnected) => return Err(self.gone()),
                Err(RecvTimeoutError::Timeout) if waited.read(LOOK) < self.limit => {}
                Err(RecvTimeoutError::Timeout) => {
                    let limit = self.limit;
                    return Err(self.fail(Error::Device {
                        what: format!(
                            "the JPEG engines did not open within {limit:?}: decode on cpu, and \
                             see dmesg for Xid errors"
                        ),
                    }));
                }
            }
        }
    }

    /// Hands a batch over: engines make the rows of these pictures, and nobody else.
    ///
    /// # Errors
    /// What makes no batch, before anything is done; or the error of an earlier one.
    pub(crate) fn submit(
        &mut self,
        slot: Bytes,
        target: Target,
        pictures: Vec<Picture>,
        (places, emission, row_bytes): (RowPlaces, KernelEmission, usize),
    ) -> Result<()> {
        self.check()?;
        let len = (*slot).as_ref().len();
        let lies = |p: &Picture| p.len > 0 && p.bytes().end <= len && p.row < self.rows;
        let ordered = pictures.is_sorted_by(|a, b| a.row < b.row);
        if !ordered || !pictures.iter().all(lies) {
            return Err(Error::Device {
                what: format!(
                    "{} pictures for engines, outside of their slot of {len} bytes or of {} rows",
                    pictures.len(),
                    self.rows
                ),
            });
        }
        let Target {
            output,
            free,
            pinned,
        } = target;
        self.free.push_back(free.clone());
        let job = Job {
            slot,
            _pinned: pinned,
            pictures,
            places,
            emission,
            output,
            row_bytes,
            free,
        };
        match self.ends()?.jobs.send(job) {
            Ok(()) => Ok(()),
            Err(_) => Err(self.gone()),
        }
    }

    /// What the engines did so far.
    pub(crate) fn times(&self) -> EngineTimes {
        // A forked copy may have the lock of a thread that it does not have.
        if self.process != process::id() {
            return EngineTimes::default();
        }
        *self.times.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits at most `most` for the oldest batch that was handed over and is not reported: its
    /// rows are there then, but for those of the pictures that are none. None when it is not
    /// done.
    ///
    /// # Errors
    /// The engines fail, or have hung for the limit. So does every later call.
    pub(crate) fn next_done(&mut self, most: Duration) -> Result<Option<Culprits>> {
        self.check()?;
        let mut left = most;
        loop {
            let look = LOOK.min(left);
            match self.ends()?.done.recv_timeout(look) {
                Ok(done) => {
                    self.waited = None;
                    self.free.pop_front();
                    return done.map(Some).map_err(|why| self.fail(why));
                }
                Err(RecvTimeoutError::Disconnected) => return Err(self.gone()),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if self.waited(look) >= self.limit {
                let limit = self.limit;
                return Err(self.fail(Error::Device {
                    what: format!(
                        "the JPEG engines have not decoded a batch within {limit:?}: decode on \
                         cpu, and see dmesg for Xid errors"
                    ),
                }));
            }
            left = left.saturating_sub(look);
            if left.is_zero() {
                return Ok(None);
            }
        }
    }

    /// How long engines have done nothing, though they could. While a reader has the memory of
    /// the oldest batch, as a training step that was put into a stream, they cannot.
    fn waited(&mut self, look: Duration) -> Duration {
        let oldest = self.free.front().and_then(Option::as_ref);
        let is_read = oldest.is_some_and(|free| matches!(free.is_over(), Ok(false)));
        let submissions = self.times().submissions;
        if is_read || self.waited.as_ref().is_some_and(|(_, n)| *n != submissions) {
            self.waited = None;
        }
        let (clock, _) = self
            .waited
            .get_or_insert_with(|| (RunningClock::start(), submissions));
        match is_read {
            true => Duration::ZERO,
            false => clock.read(look),
        }
    }

    /// In this process alone: of a forked copy the thread is not there, and what it held of
    /// the channels is held for ever.
    fn ends(&self) -> Result<&Ends> {
        match &self.ends {
            Some(ends) if self.process == process::id() => Ok(ends),
            _ => Err(Error::Device {
                what: "the JPEG engines were opened by another process, and this is a forked copy \
                       of it"
                    .into(),
            }),
        }
    }

    fn check(&self) -> Result<()> {
        match &self.failed {
            Some(what) => Err(Error::Device { what: what.clone() }),
            None => Ok(()),
        }
    }

    /// Keeps an error: no batch follows it.
    fn fail(&mut self, why: Error) -> Error {
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
            what: "the thread of the JPEG engines has ended: please report what stands above, \
                   and decode on cpu meanwhile"
                .into(),
        })
    }
}

impl Drop for EngineThread {
    fn drop(&mut self) {
        let Some(ends) = self.ends.take() else {
            return;
        };
        if self.process != process::id() {
            std::mem::forget(ends);
            return;
        }
        let Ends {
            jobs, done, thread, ..
        } = ends;
        // The thread ends behind what it works on: the channel of its reports closes then.
        drop(jobs);
        let mut waited = RunningClock::start();
        loop {
            match done.recv_timeout(LOOK) {
                Ok(_) => waited = RunningClock::start(),
                Err(RecvTimeoutError::Disconnected) => break,
                // It keeps what its engines may write, for as long as this process lives.
                Err(RecvTimeoutError::Timeout) if waited.read(LOOK) >= END => return,
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
        // A panic was reported by its hook.
        let _ = thread.join();
    }
}

/// What the thread has.
#[derive(Debug)]
struct Feeder {
    // In this order: the streams are over before states and kernel go.
    lanes: Vec<Lane>,
    engines: Engines,
    kernel: Kernel,
    /// Batches that are not reported, the oldest first.
    open: VecDeque<Open>,
    /// The lane of the next submission; the one before it has the newest.
    next: usize,
    times: Arc<Mutex<EngineTimes>>,
    /// Since when a lane has been at work.
    busy: Option<Instant>,
}

/// A batch that is not reported.
#[derive(Debug)]
struct Open {
    job: Arc<Job>,
    /// Pictures that are in a submission.
    submitted: usize,
    /// Pictures that are done.
    done: usize,
    culprits: Culprits,
}

impl Feeder {
    fn open(
        context: &Arc<Context>,
        mut engines: Engines,
        shape: &EngineShape,
        times: Arc<Mutex<EngineTimes>>,
    ) -> Result<Self> {
        engines.take_memory(shape.largest)?;
        Ok(Self {
            lanes: (0..LANES)
                .map(|index| Lane::new(context, index, shape))
                .collect::<Result<_>>()?,
            engines,
            kernel: Kernel::load(context)?,
            open: VecDeque::new(),
            next: 0,
            times,
            busy: None,
        })
    }

    /// Until who hands batches over is gone, and all are done, or the engines fail.
    fn feed(mut self, to_do: &Receiver<Job>, report: &Sender<Done>) {
        while let Some(done) = self.step(to_do) {
            let failed = done.is_err();
            if report.send(done).is_err() || failed {
                return;
            }
        }
    }

    /// Works until a batch is done, or nothing is left to do.
    fn step(&mut self, to_do: &Receiver<Job>) -> Option<Done> {
        let mut more = true;
        loop {
            if let Some(culprits) = self.reported() {
                return Some(Ok(culprits));
            }
            if self.open.is_empty() {
                self.add(to_do.recv().ok()?);
            }
            while more {
                match to_do.try_recv() {
                    Ok(job) => self.add(job),
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => more = false,
                }
            }
            if let Err(why) = self.work(to_do, more) {
                return Some(Err(why));
            }
        }
    }

    fn add(&mut self, job: Job) {
        self.open.push_back(Open {
            job: Arc::new(job),
            submitted: 0,
            done: 0,
            culprits: Vec::new(),
        });
    }

    /// The oldest batch, if all of it is done. Nobody else has its output then.
    fn reported(&mut self) -> Option<Culprits> {
        let first = self.open.front()?;
        if first.done < first.job.pictures.len() {
            return None;
        }
        self.open.pop_front().map(|open| open.culprits)
    }

    /// One submission, or one look at those that are under way.
    fn work(&mut self, to_do: &Receiver<Job>, more: bool) -> Result<()> {
        let waits = |open: &&Open| open.submitted < open.job.pictures.len();
        if self.open.iter().any(|open| waits(&open)) {
            // It has the oldest submission, if any.
            let made = self.lanes[self.next].wait()?;
            self.account(made);
            return self.submit();
        }
        // The newest has the largest number of those at work, the oldest comes first.
        let oldest = (0..LANES).map(|n| (self.next + n) % LANES);
        let at_work = oldest.into_iter().find(|n| !self.lanes[*n].is_idle());
        let Some(oldest) = at_work else {
            return Ok(());
        };
        let made = match more {
            true => self.lanes[oldest].done()?,
            false => self.lanes[oldest].wait()?,
        };
        match made {
            Some(made) => self.account(Some(made)),
            None => {
                if let Ok(job) = to_do.recv_timeout(NEXT) {
                    self.add(job);
                }
            }
        }
        Ok(())
    }

    fn submit(&mut self) -> Result<()> {
        let jobs = self
            .open
            .iter()
            .filter(|o| o.submitted < o.job.pictures.len());
        let jobs = jobs.map(|open| (&open.job, open.submitted));
        let lane = &mut self.lanes[self.next];
        let mut count = lane.submit(&mut self.engines, &self.kernel, jobs)?;
        self.next = (self.next + 1) % LANES;
        self.busy.get_or_insert_with(Instant::now);
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        times.pictures += count as u64;
        times.submissions += 1;
        drop(times);
        for open in &mut self.open {
            let here = count.min(open.job.pictures.len() - open.submitted);
            open.submitted += here;
            count -= here;
        }
        Ok(())
    }

    /// Notes what a lane has made.
    fn account(&mut self, made: Option<Vec<Made>>) {
        for Made { part, culprits } in made.into_iter().flatten() {
            let of = self
                .open
                .iter_mut()
                .find(|o| Arc::ptr_eq(&o.job, &part.job));
            if let Some(open) = of {
                open.done += part.count;
                open.culprits.extend(culprits);
            }
        }
        if self.lanes.iter().all(Lane::is_idle)
            && let Some(since) = self.busy.take()
        {
            let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
            times.busy_s += since.elapsed().as_secs_f64();
        }
    }
}
