//! A batch that workers still fill, while a device already decodes its JPEGs row by row.
//!
//! In the consumer, in the JPEG thread. The content of a row is checked before a kernel reads it. A
//! malformed row is not decoded here. Closing its batch finds it as well, and ends the run.

use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Arc, Mutex, PoisonError};

use crate::decode_plan::crop_row::{CropHeader, RowContents};
use crate::device::coded_rows::{
    CodedBatch, CodedRow, CodedRowState, CpuVerdict, RedecodedRow, RowAttempt,
};
use crate::device::cuda::BatchTarget;
use crate::device::jpeg_part::PartLimits;
use crate::error::{Result, SampleFault};
use crate::jobs::images::jpeg_batches::{RowContent, destroyed_row, kernel_row, read_row};
use crate::picture::jpeg::gpu_rows::CodedPicture;
use crate::pool::batch_request::BatchRequest;
use crate::pool::job::{Job, RowParts};
use crate::pool::pool_report::PoolReport;
use crate::pool::ring::region::shorten_reason;
use crate::pool::ring::slots::WatchedSlot;
use crate::pool::worker::attempts;
use crate::pool::worker::attempts::AttemptRange;
use crate::pool::worker::meter::StageMeter;
use crate::recipe::CropRule;

/// The workers' job in this process, to decode rows that the device flags.
pub(crate) struct CpuJob {
    job: Mutex<Box<dyn Job>>,
    /// Separate counters, so that a report does not wait for a decode.
    meter: Mutex<StageMeter>,
}

impl CpuJob {
    pub(crate) fn new(job: Box<dyn Job>) -> Self {
        Self {
            job: Mutex::new(job),
            meter: Mutex::default(),
        }
    }

    fn count(&self, more: &StageMeter) {
        let mut meter = self.meter.lock().unwrap_or_else(PoisonError::into_inner);
        meter.bytes += more.bytes;
        meter.truncated += more.truncated;
        meter.counted += more.counted;
        meter.decoded += more.decoded;
    }

    /// Adds its rows to the workers' counts by kind, and the bytes of substitutes that it read.
    pub(crate) fn add_to(&self, report: &mut PoolReport) {
        let meter = self.meter.lock().unwrap_or_else(PoisonError::into_inner);
        // Workers write these, so they may be any numbers.
        report.input_bytes = report.input_bytes.wrapping_add(meter.bytes);
        report.truncated = report.truncated.wrapping_add(meter.truncated);
        report.counted = report.counted.wrapping_add(meter.counted);
        report.decoded = report.decoded.wrapping_add(meter.decoded);
    }
}

impl fmt::Debug for CpuJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CpuJob")
    }
}

/// A batch whose coded rows a device decodes while workers fill it.
#[derive(Debug)]
pub(crate) struct OpenCodedBatch {
    pub(crate) place: BatchRequest,
    pub(crate) target: BatchTarget,
    pub(crate) rows: Arc<BatchRows>,
}

/// The plan of such a batch.
#[derive(Debug)]
pub(crate) struct BatchOutline {
    pub(crate) place: BatchRequest,
    /// Attempts after a row's first.
    pub(crate) tries: u32,
    pub(crate) rule: CropRule,
    /// Height and width of its rows.
    pub(crate) size: (u32, u32),
    /// The limits of every part on the device. Workers hand over no larger image.
    pub(crate) parts: PartLimits,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct BatchRows {
    slot: WatchedSlot,
    outline: BatchOutline,
    cpu: Arc<CpuJob>,
    /// Whether all rows were final once.
    is_filled: AtomicBool,
}

impl BatchRows {
    pub(crate) fn new(slot: WatchedSlot, outline: BatchOutline, cpu: Arc<CpuJob>) -> Self {
        Self {
            slot,
            outline,
            cpu,
            is_filled: AtomicBool::new(false),
        }
    }

    /// Records that all rows were final. A row that is not final afterwards was corrupted, and
    /// stays so.
    pub(crate) fn close(&self) {
        self.is_filled.store(true, Release);
    }

    /// Offset of a row, as in [`crate::jobs::images::packing`] for crops.
    fn row_offset(&self, row: u32) -> usize {
        row as usize * self.outline.rule.row_bytes(self.outline.size).row_bytes()
    }

    fn coded(&self, row: u32, attempt: u32) -> Option<CodedRow> {
        let BatchOutline { rule, size, .. } = self.outline;
        let begin = self.row_offset(row);
        let read = read_row(|to| self.slot.copy(begin, to), begin, rule, size).ok()?;
        let RowContent::Coded(coded, kernel) = read else {
            return None;
        };
        let first = begin + coded.start;
        let copy = |from, to: &mut [u8]| self.slot.copy(first + from, to);
        // Weights apply to the pixels that the row's header names.
        let size = (kernel.width, kernel.height);
        let picture = CodedPicture::copied_as(size, coded.len(), copy).ok()?;
        if !self.outline.parts.hold(&picture) {
            return None;
        }
        Some(CodedRow {
            row,
            attempt,
            data: first + picture.data.start..first + picture.data.end,
            picture,
            kernel,
        })
    }
}

impl CodedBatch for BatchRows {
    fn rows(&self) -> u32 {
        self.outline.place.rows
    }

    fn row_state(&self, row: u32) -> CodedRowState {
        if row >= self.outline.place.rows_to_fill {
            return CodedRowState::NotCoded;
        }
        // Read before the row's state, since the row may become final in between.
        let is_filled = self.is_filled.load(Acquire);
        if !self.slot.is_final(row) {
            return match is_filled {
                true => CodedRowState::NotCoded,
                false => CodedRowState::Pending,
            };
        }
        // Failed, or corrupted.
        let Some(Some(attempt)) = self.slot.final_attempt(row, self.outline.tries) else {
            return CodedRowState::NotCoded;
        };
        let coded = self.coded(row, attempt);
        coded.map_or(CodedRowState::NotCoded, |coded| {
            CodedRowState::Coded(Box::new(coded))
        })
    }

    fn memory(&self) -> (*const u8, usize) {
        self.slot.memory()
    }

    fn decode_again(&self, of: RowAttempt, out: &mut [u8]) -> Result<RedecodedRow> {
        let BatchOutline {
            place,
            tries,
            rule,
            size,
            ..
        } = self.outline;
        let RowAttempt { row, attempt } = of;
        let (mut meter, mut fault) = (StageMeter::default(), None);
        let mut job = (self.cpu.job.lock()).unwrap_or_else(PoisonError::into_inner);
        let mut fill = |first, tries, meter: &mut StageMeter| {
            // The image alone. The worker's rasters and objects are kept: the sample is the same.
            attempts::fill_or_substitute(
                &mut **job,
                &place.ticket(1),
                row,
                AttemptRange { first, tries },
                &mut RowParts::whole(out),
                meter,
                |_, why, _| {
                    fault.get_or_insert(why);
                },
            )
        };
        let mut filled = fill(attempt, attempt, &mut meter);
        // The worker that handed the row over has counted its file, but no substitute.
        meter.bytes = 0;
        if filled.is_none() && attempt < tries {
            filled = fill(attempt + 1, tries, &mut meter);
        }
        drop(job);
        self.cpu.count(&meter);
        let kernel = filled.map(|_| {
            let room = rule.row_bytes(size);
            let header = CropHeader::read(out, room, size, RowContents::Pixels);
            let kernel = header.and_then(|header| kernel_row(&header, 0, room, rule));
            kernel.map_err(|why| destroyed_row(row, &why))
        });
        Ok(RedecodedRow {
            kernel: kernel.transpose()?,
            verdict: fault.map(|fault: SampleFault| CpuVerdict {
                row,
                fault: SampleFault::new(fault.kind, shorten_reason(&fault.reason)),
                attempt: filled,
            }),
        })
    }
}

#[cfg(all(test, feature = "codecs"))]
mod tests {
    use std::ops::Range;
    use std::time::Duration;

    use super::*;
    use crate::decode_plan::crop_row::CROP_HEADER;
    use crate::device::jpeg_part::{JpegPart, THREADS};
    use crate::jobs::sample::{RowRequest, SampleDecoder};
    use crate::order::PositionRandom;
    use crate::picture::PictureLimits;
    use crate::picture::jpeg::fixtures::{Random, Sampling, encode};
    use crate::pool::ring::slots::RingSlots;
    use crate::pool::ring::ticket::Ticket;
    use crate::pool::ring::worker_side::{RowOutcome, WorkerStep};
    use crate::pool::ring::{Ring, RingShape, receipt, worker_side};
    use crate::recipe::{CenterCrop, Decode, Recipe, SampleProgram};

    const SIZE: (u32, u32) = (48, 56);
    const PARTS: PartLimits = PartLimits {
        pictures: 8,
        rows: 1 << 20,
        pixels: 1 << 20,
    };

    /// A job that is never called.
    struct NoJob;

    impl Job for NoJob {
        fn row_range(&mut self, _: &Ticket, _: u32) -> Range<usize> {
            unreachable!("nobody asks")
        }

        fn fill(
            &mut self,
            _: &Ticket,
            _: u32,
            _: u32,
            _: &mut [u8],
            _: &mut StageMeter,
        ) -> std::result::Result<(), SampleFault> {
            unreachable!("nobody asks")
        }

        fn memory_limit(&self) -> u64 {
            unreachable!("nobody asks")
        }

        fn describe(&self, _: &Ticket, _: u32, _: u32) -> String {
            unreachable!("nobody asks")
        }
    }

    fn program() -> SampleProgram {
        let recipe = Recipe::new("centre").then(Decode::default());
        let recipe = recipe.then(CenterCrop::new(SIZE));
        let program = SampleProgram::compile(&recipe).unwrap();
        program.with_crops().unwrap()
    }

    /// A coded row as a worker writes it.
    fn coded_row(program: &SampleProgram) -> Vec<u8> {
        let mut row = vec![0xA5; program.crops.unwrap().row_bytes(SIZE).row_bytes()];
        let file = encode(70, 60, Sampling::S420, 90, false, 2);
        let mut decoder = SampleDecoder::new(program, &PictureLimits::default()).unwrap();
        let request = RowRequest {
            random: &PositionRandom::new(7, 0, 0),
            size: None,
            part: None,
            boxes: None,
            check_size: &|_| Ok(()),
        };
        let meter = &mut StageMeter::default();
        let written = decoder.fill_or_copy_coded(&file, &request, &PARTS, &mut row, meter);
        written.unwrap();
        row
    }

    /// A ring with one slot of two rows. The second row is coded.
    struct Scene {
        slots: RingSlots,
        rule: CropRule,
        parts: PartLimits,
        row_bytes: usize,
        sequence: u32,
    }

    impl Scene {
        fn new(program: &SampleProgram) -> Self {
            let rule = program.crops.unwrap();
            let row_bytes = rule.row_bytes(SIZE).row_bytes();
            let ring = Ring::create(RingShape {
                slots: 1,
                rows: 2,
                slot_bytes: 2 * row_bytes as u64,
                lanes: 1,
            });
            Self {
                slots: RingSlots::new(ring.unwrap()),
                rule,
                parts: PARTS,
                row_bytes,
                sequence: 0,
            }
        }

        fn place_of(&self, row: u32) -> Range<usize> {
            let begin = row as usize * self.row_bytes;
            begin..begin + self.row_bytes
        }

        fn rows(&self, slot: WatchedSlot, place: BatchRequest) -> BatchRows {
            let outline = BatchOutline {
                place,
                tries: 0,
                rule: self.rule,
                size: SIZE,
                parts: self.parts,
            };
            BatchRows::new(slot, outline, Arc::new(CpuJob::new(Box::new(NoJob))))
        }

        /// The state of the second row before it is final, and after.
        fn row_states(
            &mut self,
            row: &[u8],
            outcome: RowOutcome,
        ) -> (CodedRowState, CodedRowState) {
            self.sequence += 1;
            let place = BatchRequest {
                rows: 3,
                ..BatchRequest::numbered(0, 2)
            };
            let ticket = place.ticket(self.sequence);
            let posted = self.slots.post(self.slots.take_free().unwrap(), ticket);
            let batch = self.rows(self.slots.watch(&posted), place);
            assert_eq!(batch.rows(), 3);
            // No sample of the batch.
            assert!(matches!(batch.row_state(2), CodedRowState::NotCoded));
            let mut before = None;
            let (w, l) = (self.slots.ring().words(), self.slots.ring().layout());
            for n in 0..2 {
                let WorkerStep::Fill(claim) = worker_side::next(&w, l, 1, Duration::ZERO, None)
                else {
                    panic!("nothing to fill");
                };
                assert_eq!(claim.row, n);
                let here = self.place_of(n);
                // SAFETY: claimed just above, and the row's own place.
                let to = unsafe { self.slots.ring().row_mut(&claim, here) };
                to.unwrap().copy_from_slice(row);
                if n == 1 {
                    before = Some(batch.row_state(1));
                }
                let filled = (outcome == RowOutcome::Done).then_some(0);
                receipt::write(&w, l, (claim.slot, n), &ticket, filled);
                worker_side::commit(&w, l, 1, claim, outcome).unwrap();
            }
            let after = batch.row_state(1);
            drop(batch);
            drop(self.slots.hold(posted).unwrap());
            (before.unwrap(), after)
        }

        /// Everything that a coded row names is inside of the row, and a part accepts or rejects
        /// it.
        fn is_checked(&self, coded: &CodedRow) {
            let own = self.row_bytes..2 * self.row_bytes;
            let (data, kernel) = (&coded.data, &coded.kernel);
            assert!(own.start < data.start && data.start < data.end && data.end <= own.end);
            assert_eq!(coded.row, 1);
            let is_window = coded.picture.picture.size() == (kernel.width, kernel.height);
            assert_eq!(is_window, coded.picture.resize.is_none());
            let weights = |outputs, taps| 4 * u64::from(outputs) * (1 + u64::from(taps));
            let end = kernel.tables
                + weights(kernel.out_width, kernel.across_taps)
                + weights(kernel.out_height, kernel.down_taps);
            assert!(end <= data.start as u64);
            JpegPart::new(PARTS, THREADS).add(&coded.picture, 0, 0);
        }
    }

    #[test]
    fn a_coded_row_is_seen_once_it_is_final() {
        let program = program();
        let row = coded_row(&program);
        let mut scene = Scene::new(&program);
        let (before, after) = scene.row_states(&row, RowOutcome::Done);
        assert!(matches!(before, CodedRowState::Pending));
        let CodedRowState::Coded(coded) = after else {
            panic!("{after:?}");
        };
        scene.is_checked(&coded);
        assert_eq!((coded.kernel.width, coded.kernel.height), (SIZE.1, SIZE.0));
        assert!(JpegPart::new(PARTS, THREADS).add(&coded.picture, 0, 0));
        let (_, failed) = scene.row_states(&row, RowOutcome::Failed);
        assert!(matches!(failed, CodedRowState::NotCoded));
        // Pixels are for another stage.
        let mut pixels = row;
        pixels[crate::decode_plan::crop_row::CROP_HEADER_CODED].fill(0);
        let (_, pixels) = scene.row_states(&pixels, RowOutcome::Done);
        assert!(matches!(pixels, CodedRowState::NotCoded));
    }

    /// A job whose attempts cost this number of bytes each. All fail except the last, which makes
    /// the row.
    struct FailsBut(u32, Vec<u8>);

    impl Job for FailsBut {
        fn row_range(&mut self, _: &Ticket, _: u32) -> Range<usize> {
            unreachable!("nobody asks")
        }

        fn fill(
            &mut self,
            _: &Ticket,
            _: u32,
            attempt: u32,
            out: &mut [u8],
            meter: &mut StageMeter,
        ) -> std::result::Result<(), SampleFault> {
            meter.bytes += 10u64.pow(attempt);
            if attempt != self.0 {
                let kind = crate::error::FaultKind::Corrupt;
                return Err(SampleFault::new(kind, format!("attempt {attempt}")));
            }
            meter.truncated += 1;
            out.copy_from_slice(&self.1);
            Ok(())
        }

        fn memory_limit(&self) -> u64 {
            unreachable!("nobody asks")
        }

        fn describe(&self, _: &Ticket, _: u32, _: u32) -> String {
            unreachable!("nobody asks")
        }
    }

    /// In addition to the worker's counts, which include the first file.
    #[test]
    fn what_the_cpu_reads_and_makes_is_counted() {
        let program = program();
        let rule = program.crops.unwrap();
        let mut row = coded_row(&program);
        // Now the row holds pixels, whatever their values.
        row[crate::decode_plan::crop_row::CROP_HEADER_CODED].fill(0);
        // The attempt that was handed over, the one that succeeds, and the counts.
        for (attempt, good, bytes, truncated) in [
            (0, 0, 0, 1),
            (0, 2, 110, 1),
            (1, 1, 0, 1),
            (1, 3, 1100, 1),
            (1, 9, 1100, 0),
            (3, 9, 0, 0),
        ] {
            let scene = Scene::new(&program);
            let place = BatchRequest::numbered(0, 2);
            let posted = scene
                .slots
                .post(scene.slots.take_free().unwrap(), place.ticket(1));
            let outline = BatchOutline {
                place,
                tries: 3,
                rule,
                size: SIZE,
                parts: PARTS,
            };
            let cpu = Arc::new(CpuJob::new(Box::new(FailsBut(good, row.clone()))));
            let batch = BatchRows::new(scene.slots.watch(&posted), outline, cpu.clone());
            let mut out = vec![0; row.len()];
            let of = RowAttempt { row: 1, attempt };
            let RedecodedRow { kernel, verdict } = batch.decode_again(of, &mut out).unwrap();
            assert_eq!(kernel.is_some(), good <= 3);
            let verdict = verdict.map(|v| (v.row, v.fault.reason, v.attempt));
            let expected = (1, format!("attempt {attempt}"), (good <= 3).then_some(good));
            assert_eq!(verdict, (good != attempt).then_some(expected));
            let mut report = PoolReport {
                input_bytes: u64::MAX,
                ..PoolReport::default()
            };
            cpu.add_to(&mut report);
            let counted = (report.input_bytes.wrapping_add(1), report.truncated);
            assert_eq!(counted, (bytes, truncated), "{attempt} {good}");
        }
    }

    /// A row that no worker will finish is reported as not coded.
    #[test]
    fn a_row_whose_word_is_destroyed_has_come_once_its_batch_is_filled() {
        let program = program();
        let scene = Scene::new(&program);
        let place = BatchRequest::numbered(0, 2);
        let posted = scene
            .slots
            .post(scene.slots.take_free().unwrap(), place.ticket(1));
        let batch = scene.rows(scene.slots.watch(&posted), place);
        assert!(matches!(batch.row_state(1), CodedRowState::Pending));
        batch.close();
        assert!(matches!(batch.row_state(1), CodedRowState::NotCoded));
    }

    /// No part has room for it, so no worker hands it over.
    #[test]
    fn a_coded_row_that_fits_no_part_is_none() {
        let program = program();
        let row = coded_row(&program);
        let mut scene = Scene::new(&program);
        scene.parts.rows = 64;
        let (_, seen) = scene.row_states(&row, RowOutcome::Done);
        assert!(matches!(seen, CodedRowState::NotCoded), "{seen:?}");
    }

    /// Whatever a worker writes, a row is rejected, or all that it names is inside of it.
    #[test]
    fn rows_of_other_processes_do_no_harm() {
        let program = program();
        let row = coded_row(&program);
        let mut scene = Scene::new(&program);
        let pixels_at = program.crops.unwrap().row_bytes(SIZE).pixels_at();
        let mut random = Random::new(3);
        let (mut taken, mut refused) = (0, 0);
        for number in 0..4000 {
            let mut changed = row.clone();
            for _ in 0..1 + number % 3 {
                // In the row's header, its weights, or the header and the data of the image.
                let (begin, len) = match random.below(4) {
                    0 => (0, CROP_HEADER),
                    1 => (CROP_HEADER, pixels_at - CROP_HEADER),
                    _ => (pixels_at, 2000),
                };
                let at = begin + random.below(len as u64) as usize;
                changed[at] = random.next() as u8;
            }
            match scene.row_states(&changed, RowOutcome::Done).1 {
                CodedRowState::Coded(coded) => {
                    scene.is_checked(&coded);
                    taken += 1;
                }
                CodedRowState::NotCoded => refused += 1,
                CodedRowState::Pending => panic!("row {number} is final"),
            }
        }
        assert!(taken > 500 && refused > 500, "{taken} {refused}");
    }
}
