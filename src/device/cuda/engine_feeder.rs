//! What the engines' thread does with batches: pictures go to the engines as workers hand them
//! over, row by row.
//!
//! In the consumer, in the engines' thread. A batch is opened before its rows are there, and its
//! rows are looked at until all have come. So the engines work while the batch is filled, and
//! not behind its slowest row. A submission has pictures of one batch or of several. Batches
//! are reported in the order in which they were opened.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::context::Context;
use super::engine_lane::{Job, Lane, Part};
use super::engines::Engines;
use crate::device::EngineTimes;
use crate::device::frames::{Look, Made, Picture};
use crate::device::shape::{ENOUGH, EngineShape, LANES};
use crate::error::{Error, Result};

/// Between two looks at rows and lanes, while there is nothing to submit: a submission takes
/// 3 ms.
const LOOK: Duration = Duration::from_micros(200);

/// What the thread is told.
#[derive(Debug)]
pub(super) enum Order {
    Open(Job),
    /// Let all batches go.
    Forget,
}

/// What it tells.
#[derive(Debug)]
pub(super) enum Report {
    /// The oldest batch is done.
    Made(Made),
    Forgotten,
}

/// What the thread has.
#[derive(Debug)]
pub(super) struct Feeder {
    // In this order: the streams are over before states go.
    lanes: Vec<Lane>,
    engines: Engines,
    /// Rows of a batch at most.
    rows: usize,
    /// Batches that are not reported, the oldest first.
    open: VecDeque<Open>,
    /// The lane of the next submission; the one before it has the newest.
    next: usize,
    times: Arc<Mutex<EngineTimes>>,
    /// Since when a lane has been at work.
    busy: Option<Instant>,
    /// Pictures that were refused since one was decoded.
    in_a_row: usize,
}

/// A batch that is not reported.
#[derive(Debug)]
struct Open {
    job: Arc<Job>,
    /// Rows that have not come.
    missing: Vec<u32>,
    /// Pictures that are in no submission yet, in the order of their rows.
    waiting: Vec<Picture>,
    /// Pictures that lanes are at.
    in_lanes: usize,
    made: Made,
}

impl Open {
    fn new(job: Job) -> Self {
        Self {
            missing: (0..job.files.rows()).collect(),
            waiting: Vec::new(),
            in_lanes: 0,
            made: Made::default(),
            job: Arc::new(job),
        }
    }

    /// Takes what has come since the last look.
    ///
    /// # Errors
    /// A picture that does not lie in the batch.
    fn look(&mut self, most: usize) -> Result<()> {
        let files = &self.job.files;
        let (_, bytes) = files.memory();
        let before = self.waiting.len();
        let mut wrong = None;
        self.missing.retain(|row| match files.look(*row) {
            Look::NotYet => true,
            Look::NoPicture => false,
            Look::Picture(picture) => {
                let lies = picture.len > 0 && picture.bytes().end <= bytes;
                if lies && picture.row == *row && (*row as usize) < most {
                    self.waiting.push(picture);
                    self.made.rows.push(*row);
                } else {
                    wrong = Some(picture);
                }
                false
            }
        });
        if self.waiting.len() > before {
            self.waiting.sort_by_key(|picture| picture.row);
        }
        match wrong {
            None => Ok(()),
            Some(picture) => Err(Error::Device {
                what: format!(
                    "a picture for engines, outside of its slot of {bytes} bytes or of {most} \
                     rows: row {}, {} bytes",
                    picture.row, picture.len
                ),
            }),
        }
    }

    /// Nothing comes that is not there.
    fn has_come(&self) -> bool {
        self.missing.is_empty()
    }

    fn is_done(&self) -> bool {
        self.has_come() && self.waiting.is_empty() && self.in_lanes == 0
    }
}

impl Feeder {
    /// # Errors
    /// Not enough memory of the device.
    pub(super) fn open(
        context: &Arc<Context>,
        engines: Engines,
        shape: &EngineShape,
        times: Arc<Mutex<EngineTimes>>,
    ) -> Result<Self> {
        Ok(Self {
            lanes: (0..LANES)
                .map(|index| Lane::new(context, index, shape))
                .collect::<Result<_>>()?,
            engines,
            rows: shape.rows,
            open: VecDeque::new(),
            next: 0,
            times,
            busy: None,
            in_a_row: 0,
        })
    }

    /// Until who opens batches is gone, or the engines fail. What nobody waits for then is let
    /// go, behind what lanes are at.
    pub(super) fn feed(mut self, orders: &Receiver<Order>, reports: &Sender<Result<Report>>) {
        while let Some(report) = self.step(orders).transpose() {
            let failed = report.is_err();
            if reports.send(report).is_err() || failed {
                return;
            }
        }
    }

    /// Works until there is something to tell; none when nobody is there to be told.
    fn step(&mut self, orders: &Receiver<Order>) -> Result<Option<Report>> {
        loop {
            if let Some(made) = self.oldest_done() {
                return Ok(Some(Report::Made(made)));
            }
            let mut rests = !self.work()?;
            // All that was ordered, so that small batches go together.
            loop {
                match self.next_order(orders, rests) {
                    Ok(Order::Open(job)) => self.open.push_back(Open::new(job)),
                    Ok(Order::Forget) => {
                        for lane in 0..LANES {
                            self.wait(lane)?;
                        }
                        self.open.clear();
                        return Ok(Some(Report::Forgotten));
                    }
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => return Ok(None),
                }
                rests = false;
            }
        }
    }

    /// `rests`: there is nothing else to do now.
    fn next_order(
        &self,
        orders: &Receiver<Order>,
        rests: bool,
    ) -> std::result::Result<Order, TryRecvError> {
        match (rests, self.open.is_empty()) {
            (false, _) => orders.try_recv(),
            (true, true) => orders.recv().map_err(|_| TryRecvError::Disconnected),
            (true, false) => orders.recv_timeout(LOOK).map_err(|why| match why {
                RecvTimeoutError::Timeout => TryRecvError::Empty,
                RecvTimeoutError::Disconnected => TryRecvError::Disconnected,
            }),
        }
    }

    /// The oldest batch, if all of it is done. Nobody else has its target then.
    fn oldest_done(&mut self) -> Option<Made> {
        if !self.open.front()?.is_done() {
            return None;
        }
        let mut made = self.open.pop_front()?.made;
        made.rows.sort_unstable();
        made.culprits.sort_by_key(|(row, _)| *row);
        Some(made)
    }

    /// One submission, or one look at those that are under way; false when there is nothing to
    /// do now.
    fn work(&mut self) -> Result<bool> {
        self.look()?;
        if self.has_enough() {
            // It has the oldest submission, if any. More may come meanwhile.
            self.wait(self.next)?;
            self.look()?;
            self.submit()?;
            return Ok(true);
        }
        // The newest has the largest number of those at work, the oldest comes first.
        let oldest = (0..LANES).map(|n| (self.next + n) % LANES);
        let at_work = oldest.into_iter().find(|n| !self.lanes[*n].is_idle());
        let Some(oldest) = at_work else {
            return Ok(false);
        };
        let parts = self.lanes[oldest].done()?;
        let is_done = parts.is_some();
        self.account(parts);
        Ok(is_done)
    }

    fn look(&mut self) -> Result<()> {
        let most = self.rows;
        (self.open.iter_mut()).try_for_each(|open| open.look(most))
    }

    /// Whether what waits is worth a submission: so many pictures, or all there will be of a
    /// batch.
    fn has_enough(&self) -> bool {
        let waiting = self.open.iter().map(|open| open.waiting.len());
        let last = |open: &Open| open.has_come() && !open.waiting.is_empty();
        waiting.sum::<usize>() >= ENOUGH || self.open.iter().any(last)
    }

    fn wait(&mut self, lane: usize) -> Result<()> {
        let parts = self.lanes[lane].wait()?;
        self.account(parts);
        Ok(())
    }

    fn submit(&mut self) -> Result<()> {
        let waits = self.open.iter().filter(|open| !open.waiting.is_empty());
        let jobs = waits.map(|open| (&open.job, open.waiting.as_slice()));
        let lane = &mut self.lanes[self.next];
        let mut count = lane.submit(&mut self.engines, &mut self.in_a_row, jobs)?;
        self.next = (self.next + 1) % LANES;
        self.busy.get_or_insert_with(Instant::now);
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        times.pictures += count as u64;
        times.submissions += 1;
        drop(times);
        for open in &mut self.open {
            let here = count.min(open.waiting.len());
            open.waiting.drain(..here);
            open.in_lanes += here;
            count -= here;
        }
        Ok(())
    }

    /// Notes what a lane has made.
    fn account(&mut self, parts: Option<Vec<Part>>) {
        for part in parts.into_iter().flatten() {
            let of = self
                .open
                .iter_mut()
                .find(|o| Arc::ptr_eq(&o.job, &part.job));
            if let Some(open) = of {
                open.in_lanes -= part.pictures.len();
                open.made.culprits.extend(part.culprits);
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
