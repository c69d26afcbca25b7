//! A batch that workers are filling, for a device that decodes its JPEGs, row by row.
//!
//! In the consumer, in the thread of JPEGs. What workers wrote of a row is checked before a kernel
//! sees it. A row that was destroyed is not decoded here. Closing its batch finds it, too, and ends
//! the run.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use crate::cut::crop::{CropHeader, Takes};
use crate::device::coded_rows::{Again, CodedBatch, CodedRow, Look, Verdict};
use crate::error::{Result, SampleFault};
use crate::jobs::images::jpeg_batches::{InRow, destroyed, kernel_row, read_row};
use crate::picture::jpeg::gpu_rows::CodedPicture;
use crate::pool::job::Job;
use crate::pool::place::Place;
use crate::pool::report::PoolReport;
use crate::pool::ring::region::told_of;
use crate::pool::ring::slots::WatchedSlot;
use crate::pool::worker::attempts;
use crate::pool::worker::attempts::Attempts;
use crate::pool::worker::meter::Meter;
use crate::recipe::CropRule;

/// The job of the workers once more, in this process, which decodes all that it fills.
pub(crate) struct CpuJob {
    job: Mutex<Box<dyn Job>>,
    /// What it has counted: apart, so that a report does not wait for a decode.
    meter: Mutex<Meter>,
}

impl CpuJob {
    pub(crate) fn new(job: Box<dyn Job>) -> Self {
        Self {
            job: Mutex::new(job),
            meter: Mutex::default(),
        }
    }

    fn count(&self, more: &Meter) {
        let mut meter = self.meter.lock().unwrap_or_else(PoisonError::into_inner);
        meter.truncated += more.truncated;
        meter.counted += more.counted;
    }

    /// Adds the rows that it has made to those of workers, by their kinds.
    pub(crate) fn add_to(&self, report: &mut PoolReport) {
        let meter = self.meter.lock().unwrap_or_else(PoisonError::into_inner);
        report.truncated += meter.truncated;
        report.counted += meter.counted;
    }
}

impl fmt::Debug for CpuJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CpuJob")
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct BatchRows {
    pub(crate) slot: WatchedSlot,
    pub(crate) place: Place,
    /// Attempts behind a row's first.
    pub(crate) tries: u32,
    pub(crate) rule: CropRule,
    /// Height and width of its rows.
    pub(crate) size: (u32, u32),
    pub(crate) cpu: Arc<CpuJob>,
}

impl BatchRows {
    /// Where a row lies: as [`crate::jobs::images::packing`] places rows of crops.
    fn bytes_of(&self, row: u32) -> Range<usize> {
        let bytes = self.rule.room(self.size).row_bytes();
        row as usize * bytes..(row as usize + 1) * bytes
    }

    fn coded(&self, row: u32, own: &[u8]) -> Option<CodedRow> {
        let begin = self.bytes_of(row).start;
        let read = read_row(own, begin, self.rule, self.size).ok()?;
        let InRow::Coded(coded, kernel) = read else {
            return None;
        };
        let picture = CodedPicture::read(own.get(coded.clone())?).ok()?;
        // Weights are those of the crop that the row's header names.
        if picture.picture.size() != (kernel.width, kernel.height) {
            return None;
        }
        let first = begin + coded.start;
        Some(CodedRow {
            row,
            data: first + picture.data.start..first + picture.data.end,
            picture,
            kernel,
        })
    }
}

impl CodedBatch for BatchRows {
    fn rows(&self) -> u32 {
        self.place.rows
    }

    fn look(&self, row: u32) -> Look {
        if row >= self.place.filled {
            return Look::Other;
        }
        if !self.slot.is_final(row) {
            return Look::NotYet;
        }
        // Failed, or destroyed.
        let Some(Some(_)) = self.slot.end(row, self.tries) else {
            return Look::Other;
        };
        // SAFETY: `is_final` has shown that the row is, and these bytes are its own.
        let own = unsafe { self.slot.row(self.bytes_of(row)) };
        let coded = own.and_then(|own| self.coded(row, own));
        coded.map_or(Look::Other, |coded| Look::Coded(Box::new(coded)))
    }

    fn memory(&self) -> (*const u8, usize) {
        self.slot.memory()
    }

    fn decode_again(&self, row: u32, out: &mut [u8]) -> Result<Again> {
        let first = self.slot.end(row, self.tries).flatten();
        let attempts = Attempts {
            first: first.unwrap_or(0),
            tries: self.tries,
        };
        let mut fault = None;
        let mut meter = Meter::default();
        let attempt = attempts::fill(
            &mut **(self.cpu.job.lock()).unwrap_or_else(PoisonError::into_inner),
            &self.place.ticket(1),
            row,
            attempts,
            out,
            &mut meter,
            |_, why, _| {
                fault.get_or_insert(why);
            },
        );
        self.cpu.count(&meter);
        let kernel = attempt.map(|_| {
            let room = self.rule.room(self.size);
            let header = CropHeader::read(out, room, self.size, Takes::Pixels);
            let kernel = header.and_then(|header| kernel_row(&header, 0, room, self.rule));
            kernel.map_err(|why| destroyed(row, &why))
        });
        Ok(Again {
            kernel: kernel.transpose()?,
            verdict: fault.map(|fault: SampleFault| Verdict {
                row,
                fault: SampleFault::new(fault.kind, told_of(&fault.reason)),
                attempt,
            }),
        })
    }
}

#[cfg(all(test, feature = "codecs"))]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::cut::crop::CROP_HEADER;
    use crate::device::jpeg_part::{Part, PartLimits, THREADS};
    use crate::jobs::sample::{RowRequest, SampleDecoder};
    use crate::picture::Limits;
    use crate::picture::jpeg::fixtures::{Random, Sampling, encode};
    use crate::plan::PositionRandom;
    use crate::pool::ring::slots::Slots;
    use crate::pool::ring::ticket::Ticket;
    use crate::pool::ring::worker_side::{Next, Outcome};
    use crate::pool::ring::{Ring, Shape, receipt, worker_side};
    use crate::recipe::{CenterCrop, Decode, Recipe, SampleProgram};

    const SIZE: (u32, u32) = (48, 56);
    const PARTS: PartLimits = PartLimits {
        pictures: 8,
        rows: 1 << 20,
        pixels: 1 << 20,
    };

    /// Nobody asks it.
    struct NoJob;

    impl Job for NoJob {
        fn place(&mut self, _: &Ticket, _: u32) -> Range<usize> {
            unreachable!("nobody asks")
        }

        fn fill(
            &mut self,
            _: &Ticket,
            _: u32,
            _: u32,
            _: &mut [u8],
            _: &mut Meter,
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
        let mut row = vec![0xA5; program.crops.unwrap().room(SIZE).row_bytes()];
        let file = encode(70, 60, Sampling::S420, 90, false, 2);
        let mut decoder = SampleDecoder::new(program, &Limits::default()).unwrap();
        let request = RowRequest {
            random: &PositionRandom::new(7, 0, 0),
            size: None,
            part: None,
            admit: &|_| Ok(()),
        };
        let meter = &mut Meter::default();
        let written = decoder.hand_over_coded(&file, &request, &PARTS, &mut row, meter);
        assert!(written.unwrap());
        row
    }

    /// A ring of one slot of two rows, the second of which is a coded one.
    struct Scene {
        slots: Slots,
        rule: CropRule,
        row_bytes: usize,
        sequence: u32,
    }

    impl Scene {
        fn new(program: &SampleProgram) -> Self {
            let rule = program.crops.unwrap();
            let row_bytes = rule.room(SIZE).row_bytes();
            let ring = Ring::create(Shape {
                slots: 1,
                rows: 2,
                slot_bytes: 2 * row_bytes as u64,
                lanes: 1,
            });
            Self {
                slots: Slots::new(ring.unwrap()),
                rule,
                row_bytes,
                sequence: 0,
            }
        }

        /// What is seen of the second row before it is final, and after.
        fn look(&mut self, row: &[u8], outcome: Outcome) -> (Look, Look) {
            self.sequence += 1;
            let place = Place {
                epoch: 0,
                batch: 0,
                number: 0,
                filled: 2,
                rows: 3,
            };
            let ticket = place.ticket(self.sequence);
            let posted = self.slots.post(self.slots.take_free().unwrap(), ticket);
            let batch = BatchRows {
                slot: self.slots.watch(&posted),
                place,
                tries: 0,
                rule: self.rule,
                size: SIZE,
                cpu: Arc::new(CpuJob::new(Box::new(NoJob))),
            };
            assert_eq!(batch.rows(), 3);
            // No sample of the batch.
            assert!(matches!(batch.look(2), Look::Other));
            let mut before = None;
            let (w, l) = (self.slots.ring().words(), self.slots.ring().layout());
            for n in 0..2 {
                let Next::Fill(claim) = worker_side::next(&w, l, 1, Duration::ZERO, None) else {
                    panic!("nothing to fill");
                };
                assert_eq!(claim.row, n);
                let here = batch.bytes_of(n);
                // SAFETY: claimed just above, and the row's own place.
                let to = unsafe { self.slots.ring().row_mut(&claim, here) };
                to.unwrap().copy_from_slice(row);
                if n == 1 {
                    before = Some(batch.look(1));
                }
                let filled = (outcome == Outcome::Done).then_some(0);
                receipt::write(&w, l, (claim.slot, n), &ticket, filled);
                worker_side::commit(&w, l, 1, claim, outcome).unwrap();
            }
            let after = batch.look(1);
            drop(batch);
            drop(self.slots.hold(posted).unwrap());
            (before.unwrap(), after)
        }

        /// Everything that a coded row names is its own, and a part takes it or does not.
        fn is_checked(&self, coded: &CodedRow) {
            let own = self.row_bytes..2 * self.row_bytes;
            let (data, kernel) = (&coded.data, &coded.kernel);
            assert!(own.start < data.start && data.start < data.end && data.end <= own.end);
            assert_eq!(coded.row, 1);
            assert_eq!(coded.picture.picture.size(), (kernel.width, kernel.height));
            let weights = |outputs, taps| 4 * u64::from(outputs) * (1 + u64::from(taps));
            let end = kernel.tables
                + weights(kernel.out_width, kernel.across_taps)
                + weights(kernel.out_height, kernel.down_taps);
            assert!(end <= data.start as u64);
            Part::new(PARTS, THREADS).add(&coded.picture, 0, 0);
        }
    }

    #[test]
    fn a_coded_row_is_seen_once_it_is_final() {
        let program = program();
        let row = coded_row(&program);
        let mut scene = Scene::new(&program);
        let (before, after) = scene.look(&row, Outcome::Done);
        assert!(matches!(before, Look::NotYet));
        let Look::Coded(coded) = after else {
            panic!("{after:?}");
        };
        scene.is_checked(&coded);
        assert_eq!((coded.kernel.width, coded.kernel.height), (SIZE.1, SIZE.0));
        assert!(Part::new(PARTS, THREADS).add(&coded.picture, 0, 0));
        let (_, failed) = scene.look(&row, Outcome::Failed);
        assert!(matches!(failed, Look::Other));
        // Pixels are for another stage.
        let mut pixels = row;
        pixels[crate::cut::crop::CROP_HEADER_CODED].fill(0);
        let (_, pixels) = scene.look(&pixels, Outcome::Done);
        assert!(matches!(pixels, Look::Other));
    }

    /// Whatever a worker writes, a row is none, or all that it names is its own.
    #[test]
    fn rows_of_other_processes_do_no_harm() {
        let program = program();
        let row = coded_row(&program);
        let mut scene = Scene::new(&program);
        let pixels_at = program.crops.unwrap().room(SIZE).pixels_at();
        let mut random = Random::new(3);
        let (mut taken, mut refused) = (0, 0);
        for number in 0..4000 {
            let mut changed = row.clone();
            for _ in 0..1 + number % 3 {
                // In the row's header, its weights, or the header and the data of the picture.
                let (begin, len) = match random.below(4) {
                    0 => (0, CROP_HEADER),
                    1 => (CROP_HEADER, pixels_at - CROP_HEADER),
                    _ => (pixels_at, 2000),
                };
                let at = begin + random.below(len as u64) as usize;
                changed[at] = random.next() as u8;
            }
            match scene.look(&changed, Outcome::Done).1 {
                Look::Coded(coded) => {
                    scene.is_checked(&coded);
                    taken += 1;
                }
                Look::Other => refused += 1,
                Look::NotYet => panic!("row {number} is final"),
            }
        }
        assert!(taken > 500 && refused > 500, "{taken} {refused}");
    }
}
