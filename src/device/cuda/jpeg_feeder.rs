//! The work of the JPEG thread: sends coded rows to the device as workers finish them.
//!
//! In the consumer, in the JPEG thread. A batch is opened while workers still fill it. The thread
//! polls its rows until all are final. So the device decodes while the batch is filled, and does
//! not wait for the slowest row. A part has rows of one batch or of several. If the kernels flag a
//! row, the CPU decodes it again, in this thread. Batches are reported in the order in which they
//! were opened.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::context::CudaContext;
use super::gpu_jpeg_decoder::JpegKernels;
use super::jpeg_lane::{JpegBatch, JpegBatchPart, JpegRowLane};
use super::jpeg_redecode::RedecodeStage;
use crate::device::JpegTimes;
use crate::device::coded_rows::{CodedRow, CodedRowState, DecodedBatch};
use crate::device::stage_shapes::{JPEG_LANES, JpegShape};
use crate::error::{Error, Result};

/// Sleep between two polls of rows and lanes while a part is under way, which takes about 600 us,
/// and there is nothing to submit.
const BUSY_SLEEP: Duration = Duration::from_micros(50);
/// The same while the device is idle.
const IDLE_SLEEP: Duration = Duration::from_micros(200);
/// Parts per lane at one time: one is decoded, the next is queued in the stream.
const PARTS: usize = 2;

/// A command for the thread.
#[derive(Debug)]
pub(super) enum FeederOrder {
    Open(JpegBatch),
    /// Forget all batches.
    Cancel,
}

/// A message from the thread.
#[derive(Debug)]
pub(super) enum FeederReport {
    /// The oldest batch is decoded.
    Decoded(DecodedBatch),
    Cancelled,
}

/// The thread's progress, for the consumer.
#[derive(Debug, Default)]
pub(super) struct FeederProgress {
    pub(super) times: JpegTimes,
    /// The row that the CPU decodes again now.
    pub(super) on_cpu: Option<u32>,
}

impl FeederProgress {
    /// A counter that grows with each step.
    pub(super) fn steps(&self) -> u64 {
        self.times.parts + self.times.decoded_again
    }
}

/// The state of the thread.
#[derive(Debug)]
pub(super) struct JpegFeeder {
    lanes: Vec<JpegRowLane>,
    redecode: RedecodeStage,
    /// Most rows of a batch.
    rows: usize,
    /// Most images of a part.
    part_images: usize,
    /// Batches that were not reported yet, the oldest first.
    open: VecDeque<OpenBatch>,
    /// The lane for the next part. The lane before it has the newest part.
    next_lane: usize,
    progress: Arc<Mutex<FeederProgress>>,
    /// Since when a lane has been busy, for time that was not counted yet.
    busy_since: Option<Instant>,
}

/// A batch that was not reported yet.
#[derive(Debug)]
struct OpenBatch {
    batch: Arc<JpegBatch>,
    /// Rows that are not final yet.
    missing: Vec<u32>,
    /// Coded rows that are in no part yet, in order.
    waiting: Vec<CodedRow>,
    /// Number of rows in lanes.
    in_lanes: usize,
    decoded: DecodedBatch,
}

impl OpenBatch {
    fn new(job: JpegBatch) -> Self {
        Self {
            missing: (0..job.rows.rows()).collect(),
            waiting: Vec::new(),
            in_lanes: 0,
            decoded: DecodedBatch::default(),
            batch: Arc::new(job),
        }
    }

    /// Takes the rows that became final since the last call.
    ///
    /// # Errors
    /// A row with data outside of the batch.
    fn take_final_rows(&mut self, max_rows: usize) -> Result<()> {
        let rows = &self.batch.rows;
        let (_, bytes) = rows.memory();
        let before = self.waiting.len();
        let mut wrong = None;
        self.missing.retain(|row| match rows.row_state(*row) {
            CodedRowState::Pending => true,
            CodedRowState::NotCoded => false,
            CodedRowState::Coded(coded) => {
                let len = coded.picture.data.end - coded.picture.data.start;
                let is_inside = coded.data.start + len == coded.data.end && coded.data.end <= bytes;
                let is_inside = is_inside && len > 0;
                if is_inside && coded.row == *row && (*row as usize) < max_rows {
                    self.waiting.push(*coded);
                    self.decoded.rows.push(*row);
                } else {
                    wrong = Some((coded.row, coded.data));
                }
                false
            }
        });
        if self.waiting.len() > before {
            self.waiting.sort_by_key(|coded| coded.row);
        }
        match wrong {
            None => Ok(()),
            Some((row, data)) => Err(Error::device(format!(
                "a coded JPEG is outside of its slot of {bytes} bytes, or of {max_rows} rows: row \
                     {row}, bytes {data:?}"
            ))),
        }
    }

    /// Whether all rows are final.
    fn has_all_rows(&self) -> bool {
        self.missing.is_empty()
    }

    fn is_done(&self) -> bool {
        self.has_all_rows() && self.waiting.is_empty() && self.in_lanes == 0
    }
}

impl JpegFeeder {
    /// Allocates all memory. If the device has too little, parts become smaller.
    ///
    /// # Errors
    /// The device has not enough memory for the smallest parts.
    pub(super) fn open(
        context: &Arc<CudaContext>,
        kernels: Arc<JpegKernels>,
        shape: &JpegShape,
        progress: Arc<Mutex<FeederProgress>>,
    ) -> Result<Self> {
        let redecode = RedecodeStage::new(context, shape.row_bytes)?;
        let (lanes, shape) = Self::lanes(context, &kernels, *shape)?;
        Ok(Self {
            lanes,
            redecode,
            rows: shape.rows,
            part_images: shape.limits.pictures,
            open: VecDeque::new(),
            next_lane: 0,
            progress,
            busy_since: None,
        })
    }

    /// The lanes, and the shape for which they were made.
    fn lanes(
        context: &Arc<CudaContext>,
        kernels: &Arc<JpegKernels>,
        shape: JpegShape,
    ) -> Result<(Vec<JpegRowLane>, JpegShape)> {
        let before = context.out_of_memory();
        let lanes = (0..JPEG_LANES).map(|_| JpegRowLane::new(context, kernels, shape));
        let lanes = lanes.collect::<Result<Vec<_>>>();
        match (lanes, shape.smaller()) {
            (Ok(lanes), _) => Ok((lanes, shape)),
            // The memory of the failed attempt is free again. Other processes change the free
            // memory too, so its amount proves nothing.
            (Err(why), Some(smaller)) if context.out_of_memory() > before => {
                tracing::warn!("fewer JPEGs are decoded at a time: {why}");
                Self::lanes(context, kernels, smaller)
            }
            (Err(Error::Device { what }), _) => Err(Error::device(format!(
                "{what}; use decode_on cpu to let workers decode"
            ))),
            (Err(why), _) => Err(why),
        }
    }

    /// Runs until the caller has dropped its end, or the device fails.
    pub(super) fn feed(
        mut self,
        orders: &Receiver<FeederOrder>,
        reports: &Sender<Result<FeederReport>>,
    ) {
        while let Some(report) = self.step(orders).transpose() {
            let failed = report.is_err();
            if reports.send(report).is_err() || failed {
                return;
            }
        }
    }

    /// Works until there is a message to report. None if the caller has dropped its end.
    fn step(&mut self, orders: &Receiver<FeederOrder>) -> Result<Option<FeederReport>> {
        loop {
            if let Some(made) = self.take_oldest_done() {
                return Ok(Some(FeederReport::Decoded(made)));
            }
            let mut is_idle = !self.work()?;
            // Reads all commands first, so that small batches share a part.
            loop {
                match self.next_order(orders, is_idle) {
                    Ok(FeederOrder::Open(job)) => self.open.push_back(OpenBatch::new(job)),
                    Ok(FeederOrder::Cancel) => {
                        for lane in &mut self.lanes {
                            while lane.wait()?.is_some() {}
                        }
                        self.open.clear();
                        self.count_busy_time();
                        return Ok(Some(FeederReport::Cancelled));
                    }
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => return Ok(None),
                }
                is_idle = false;
            }
        }
    }

    /// `is_idle`: there is nothing else to do now.
    fn next_order(
        &self,
        orders: &Receiver<FeederOrder>,
        is_idle: bool,
    ) -> std::result::Result<FeederOrder, TryRecvError> {
        match (is_idle, self.open.is_empty()) {
            (false, _) => orders.try_recv(),
            (true, true) => orders.recv().map_err(|_| TryRecvError::Disconnected),
            (true, false) => orders
                .recv_timeout(self.sleep_time())
                .map_err(|why| match why {
                    RecvTimeoutError::Timeout => TryRecvError::Empty,
                    RecvTimeoutError::Disconnected => TryRecvError::Disconnected,
                }),
        }
    }

    /// Time to sleep.
    fn sleep_time(&self) -> Duration {
        match self.lanes.iter().any(|lane| lane.under_way() > 0) {
            true => BUSY_SLEEP,
            false => IDLE_SLEEP,
        }
    }

    /// The oldest batch, if all its rows are done. Then no other code has its target.
    fn take_oldest_done(&mut self) -> Option<DecodedBatch> {
        if !self.open.front()?.is_done() {
            return None;
        }
        let mut made = self.open.pop_front()?.decoded;
        made.rows.sort_unstable();
        made.verdicts.sort_by_key(|verdict| verdict.row);
        Some(made)
    }

    /// Submits one part, or polls the lanes. False if there is nothing to do now.
    fn work(&mut self) -> Result<bool> {
        self.take_final_rows()?;
        if self.has_enough() {
            if self.lanes[self.next_lane].under_way() == PARTS {
                // This lane has the oldest part. More rows may become final while it waits.
                let parts = self.lanes[self.next_lane].wait()?;
                self.collect_results(parts)?;
                self.take_final_rows()?;
            }
            self.submit()?;
            return Ok(true);
        }
        let mut is_any = false;
        for lane in 0..JPEG_LANES {
            let parts = self.lanes[lane].poll()?;
            is_any |= parts.is_some();
            self.collect_results(parts)?;
        }
        Ok(is_any)
    }

    fn take_final_rows(&mut self) -> Result<()> {
        let max_rows = self.rows;
        (self.open.iter_mut()).try_for_each(|open| open.take_final_rows(max_rows))
    }

    /// Whether to submit the waiting rows now: they fill a part, or a batch has no further rows. If
    /// the next lane is idle, half a part is enough.
    fn has_enough(&self) -> bool {
        let waiting = self.open.iter().map(|open| open.waiting.len());
        let last = |open: &OpenBatch| open.has_all_rows() && !open.waiting.is_empty();
        let enough = match self.lanes[self.next_lane].under_way() {
            0 => self.part_images.div_ceil(2),
            _ => self.part_images,
        };
        waiting.sum::<usize>() >= enough || self.open.iter().any(last)
    }

    fn submit(&mut self) -> Result<()> {
        let waits = self.open.iter().filter(|open| !open.waiting.is_empty());
        let waits: Vec<_> = waits
            .map(|open| (&open.batch, open.waiting.as_slice()))
            .collect();
        // The device starts with the first launch, and the lane does more after that.
        self.busy_since.get_or_insert_with(Instant::now);
        let counts = self.lanes[self.next_lane].submit(&waits)?;
        self.next_lane = (self.next_lane + 1) % JPEG_LANES;
        self.count_busy_time();
        self.update_progress(|progress| {
            progress.times.pictures += counts.iter().sum::<usize>() as u64;
            progress.times.parts += 1;
        });
        let open = self.open.iter_mut().filter(|open| !open.waiting.is_empty());
        for (open, count) in open.zip(counts) {
            open.waiting.drain(..count);
            open.in_lanes += count;
        }
        Ok(())
    }

    fn update_progress(&self, change: impl FnOnce(&mut FeederProgress)) {
        change(&mut self.progress.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Takes the results of a lane, and decodes flagged rows again.
    fn collect_results(&mut self, parts: Option<Vec<JpegBatchPart>>) -> Result<()> {
        for JpegBatchPart {
            batch: job,
            rows,
            errors,
        } in parts.into_iter().flatten()
        {
            let of = self.open.iter().position(|o| Arc::ptr_eq(&o.batch, &job));
            let Some(at) = of else { continue };
            self.open[at].in_lanes -= rows.len();
            for (of, _) in rows.iter().zip(errors).filter(|(_, error)| *error != 0) {
                // One by one, so that a waiting consumer sees progress.
                self.update_progress(|progress| progress.on_cpu = Some(of.row));
                let verdict = self.redecode.decode(&job, *of)?;
                self.open[at].decoded.verdicts.extend(verdict);
                self.update_progress(|progress| {
                    progress.on_cpu = None;
                    progress.times.decoded_again += 1;
                });
            }
        }
        self.count_busy_time();
        Ok(())
    }

    /// Counts the time since the last call, if a lane was busy.
    fn count_busy_time(&mut self) {
        if let Some(since) = self.busy_since.take() {
            self.update_progress(|progress| progress.times.busy_s += since.elapsed().as_secs_f64());
        }
        let is_busy = self.lanes.iter().any(|lane| lane.under_way() > 0);
        self.busy_since = is_busy.then(Instant::now);
    }
}
