//! Workers and a device: batches are put on it ahead of who takes them.
//!
//! In the consumer, inside of `next`, which no thread helps: before a batch is handed
//! over, every batch behind it that workers have finished is put on the device, as
//! far as that has memory. So the device copies and computes while the consumer
//! works with what it was given, and slots are free for workers early.
//!
//! Where engines decode rows, a batch that workers have finished goes to them first, as far
//! as there is room for its frames. Their thread works on while the consumer does.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::device::frames::Frame;
use crate::error::{Error, Result};
use crate::jobs::images::batch::Batch;
use crate::jobs::images::in_engines::{Begin, Begun, End};
use crate::jobs::images::on_device::OnDevice;
use crate::jobs::images::run::Run;
use crate::pool::consumer::Pool;
use crate::pool::filled::Filled;

/// How long a sleep is, while engines are waited for, between two looks at the workers.
const LOOK: Duration = Duration::from_millis(1);

/// A batch, and the frames that engines have decoded of its rows.
type Decoded = (Filled, Vec<Option<Frame>>);

#[derive(Debug)]
pub(crate) struct DevicePool {
    // In this order: what the device reads of the ring is waited for before the pool ends.
    ahead: VecDeque<Result<Batch>>,
    /// Behind those: what engines are at, and a batch whose frames have no room yet.
    decoding: VecDeque<Begun>,
    stalled: Option<Filled>,
    pub(crate) on: OnDevice,
    pub(crate) pool: Pool,
    /// How long to wait until a batch is dropped.
    hold_timeout: Duration,
}

impl DevicePool {
    pub(crate) fn new(on: OnDevice, pool: Pool, hold_timeout: Duration) -> Self {
        Self {
            ahead: VecDeque::new(),
            decoding: VecDeque::new(),
            stalled: None,
            on,
            pool,
            hold_timeout,
        }
    }

    /// The batch at which the run stands; none when it is not there within `limit`.
    pub(crate) fn next_within(&mut self, run: &mut Run, limit: Duration) -> Result<Option<Batch>> {
        self.pool.check_owner()?;
        let batch = match self.ahead.pop_front() {
            Some(batch) => batch?,
            None => {
                let began = Instant::now();
                if !self.on.make_room(self.hold_timeout, limit)? {
                    return Ok(None);
                }
                let left = limit.saturating_sub(began.elapsed());
                let taken = match self.on.engines() {
                    None => self.take(run, left)?.map(|filled| (filled, Vec::new())),
                    Some(_) => self.take_decoded(run, left)?,
                };
                let Some((filled, frames)) = taken else {
                    return Ok(None);
                };
                self.put(run, filled, &frames)?
            }
        };
        self.run_ahead(run);
        Ok(Some(batch))
    }

    /// The batch at which the run stands, as workers finish it. Slots that the device
    /// reads come back meanwhile, for workers to go on with.
    fn take(&mut self, run: &Run, limit: Duration) -> Result<Option<Filled>> {
        let coming = |n| run.coming(n);
        loop {
            if let Some(next) = self.pool.next_finished(&coming)? {
                return Ok(Some(next));
            }
            if !self.on.wait_one()? {
                return self.pool.next_within(&coming, limit);
            }
        }
    }

    /// As [`Self::take`], once engines have done what is theirs: the frames of its rows.
    fn take_decoded(&mut self, run: &Run, limit: Duration) -> Result<Option<Decoded>> {
        let began = Instant::now();
        loop {
            self.hand_to_engines(run, 0)?;
            let left = limit.saturating_sub(began.elapsed());
            if let Some(decoded) = self.decoded(left.min(LOOK))? {
                return Ok(Some(decoded));
            }
            if self.decoding.is_empty() {
                if self.stalled.is_some() {
                    // Frames are free when the kernel has read them.
                    if !self.on.wait_one()? {
                        return Err(self.pool.end(Error::Device {
                            what: "a batch whose frames have no room in an arena that is free"
                                .into(),
                        }));
                    }
                    continue;
                }
                let Some(filled) = self.take(run, left)? else {
                    return Ok(None);
                };
                self.begin(run, filled)?;
                continue;
            }
            if left.is_zero() {
                return Ok(None);
            }
        }
    }

    /// The oldest batch that engines are at, if they have done it within `most`.
    fn decoded(&mut self, most: Duration) -> Result<Option<Decoded>> {
        let Some(engines) = self.on.engines() else {
            return Ok(None);
        };
        let Some(first) = self.decoding.pop_front() else {
            return Ok(None);
        };
        match engines.end(first, most) {
            Ok(End::Done(filled, frames)) => Ok(Some((filled, frames))),
            Ok(End::NotYet(first)) => {
                self.decoding.push_front(first);
                Ok(None)
            }
            Err(why) => Err(self.pool.end(why)),
        }
    }

    /// Hands what workers have finished to the engines, as far as there is room. `behind`:
    /// batches between the run's place and those that engines are at.
    fn hand_to_engines(&mut self, run: &Run, behind: usize) -> Result<()> {
        loop {
            let next = match self.stalled.take() {
                Some(filled) => Some(filled),
                None => {
                    let behind = behind + self.decoding.len();
                    self.pool.next_finished(&|n| run.coming(n + behind))?
                }
            };
            let Some(filled) = next else {
                return Ok(());
            };
            self.begin(run, filled)?;
            if self.stalled.is_some() {
                return Ok(());
            }
        }
    }

    fn begin(&mut self, run: &Run, filled: Filled) -> Result<()> {
        let Some(engines) = self.on.engines() else {
            return Ok(());
        };
        let size = run.row_size(&filled.place);
        match engines.begin(filled, size) {
            Ok(Begin::Begun(batch)) => self.decoding.push_back(batch),
            Ok(Begin::NoRoom(filled)) => self.stalled = Some(filled),
            Err(why) => return Err(self.pool.end(why)),
        }
        Ok(())
    }

    /// Waits until the device has memory for a batch, and workers have a slot.
    pub(crate) fn make_room(&mut self) -> Result<()> {
        while !self.on.make_room(self.hold_timeout, Duration::MAX)? {}
        Ok(())
    }

    /// Puts on the device what workers have finished behind the batch that is about
    /// to be handed over, and gives the slots that were read back to them. An error
    /// is told when its batch is asked for.
    fn run_ahead(&mut self, run: &mut Run) {
        while !matches!(self.ahead.back(), Some(Err(_))) {
            match self.one_ahead(run) {
                Ok(None) => break,
                Ok(Some(batch)) => self.ahead.push_back(Ok(batch)),
                Err(why) => self.ahead.push_back(Err(why)),
            }
        }
    }

    /// The batch behind all that are on the device, if it is finished and has room there.
    fn one_ahead(&mut self, run: &mut Run) -> Result<Option<Batch>> {
        let behind = 1 + self.ahead.len();
        let room = self.on.has_room_now()?;
        if self.on.engines().is_some() {
            self.hand_to_engines(run, behind)?;
            if !room {
                let behind = behind + self.decoding.len() + usize::from(self.stalled.is_some());
                self.pool.refill(&|n| run.coming(n + behind));
                return Ok(None);
            }
            let decoded = self.decoded(Duration::ZERO)?;
            let put = decoded.map(|(filled, frames)| self.put(run, filled, &frames));
            return put.transpose();
        }
        let coming = |n| run.coming(n + behind);
        if !room {
            self.pool.refill(&coming);
            return Ok(None);
        }
        match self.pool.next_finished(&coming)? {
            Some(filled) => self.put(run, filled, &[]).map(Some),
            None => Ok(None),
        }
    }

    fn put(&mut self, run: &mut Run, filled: Filled, frames: &[Option<Frame>]) -> Result<Batch> {
        let batch = run.finished(filled)?;
        // Else the batch is lost, and the next one has been asked for.
        let put = self.on.put(batch, frames, &run.program);
        put.map_err(|why| self.pool.end(why))
    }

    /// Drops what was put ahead, and cancels what workers have not begun.
    pub(crate) fn cancel(&mut self) {
        self.ahead.clear();
        self.stalled = None;
        if let Some(engines) = self.on.engines() {
            engines.cancel(self.decoding.drain(..));
        }
        self.pool.cancel();
    }
}
