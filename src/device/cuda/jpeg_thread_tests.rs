//! The thread of JPEGs on a driver that is none: what is decoded and when, rows that are decoded
//! again, and every failure.

use std::env;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, fork};

use super::context::CudaStream;
use super::crop_kernel::CropKernel;
use super::crop_stage::BatchTarget;
use super::jpeg_thread::JpegThread;
use super::output_pool::{OutputBuffer, OutputPool};
use super::pinned_ring::PinnedRing;
use super::tests::ring::TestRing;
use super::tests::standin::{Log, with_standin};
use crate::device::coded_rows::{
    CodedBatch, CodedRow, CodedRowState, CpuVerdict, DecodedBatch, RedecodedRow, RowAttempt,
};
use crate::device::crop_launch::{KernelEmission, KernelRow};
use crate::device::jpeg_part::{KERNELS, PartLimits};
use crate::device::stage_shapes::{GRANULE, JPEG_LANES, JpegRoom, JpegShape, RowPlaces};
use crate::error::{Error, FaultKind};
use crate::picture::jpeg::fixtures::{Sampling, encode};
use crate::picture::jpeg::gpu_rows::{CodedPicture, write_row};
use crate::picture::jpeg::{DecodeRequest, JpegWindow, SimdForm};
use crate::pool::ring::slots::HeldSlot;
use crate::recipe::{ColorOrder, DataType, MemoryLayout, OutputFormat};

const NAME: &str = "device::cuda::jpeg_thread_tests";
/// What the driver's stand-in fills new memory with.
const UNTOUCHED: u8 = 0xaa;
/// Rows of a batch.
const ROWS: usize = 200;
/// Pictures of a part.
const PICTURES: usize = 64;
/// So many are worth a part where a lane has nothing to do.
const ENOUGH: usize = PICTURES / 2;
const SHAPE: JpegShape = JpegShape {
    limits: PartLimits {
        pictures: PICTURES,
        rows: 1 << 20,
        pixels: 1 << 20,
    },
    room: JpegRoom {
        pixels: PLACES.capacity - PLACES.tables,
        coded: PLACES.capacity - PLACES.tables,
        window: 0,
    },
    rows: ROWS,
    row_bytes: PLACES.capacity,
    row_tables: PLACES.tables,
};
const PLACES: RowPlaces = RowPlaces {
    capacity: 4096,
    tables: 256,
    pixels_end: 4096,
};
/// Of a row on the device: 4 x 8 pixels.
const ROW: usize = 3 * 4 * 8;
/// The part of each picture that is decoded.
const WINDOW: JpegWindow = JpegWindow {
    x: 5,
    y: 3,
    w: 16,
    h: 8,
};
const LONG: Duration = Duration::from_secs(20);
/// The attempt of each row.
const ATTEMPT: u32 = 3;
/// A row that the CPU takes this long for.
const SLOW: usize = 60;
const SLOW_TAKES: Duration = Duration::from_millis(900);

fn run(test: &str, environment: &[(&str, &str)], body: impl FnOnce()) -> Option<Log> {
    with_standin(&format!("{NAME}::{test}"), environment, body)
}

/// A coded picture as workers write it, 24 x 16 pixels.
fn coded() -> &'static [u8] {
    static CODED: OnceLock<Vec<u8>> = OnceLock::new();
    CODED.get_or_init(|| {
        let jpeg = encode(24, 16, Sampling::S420, 50, false, 0);
        let job = DecodeRequest {
            bytes: &jpeg,
            size: (24, 16),
            components: 3,
            block: 8,
            window: WINDOW,
        };
        let mut row = vec![0; jpeg.len() + (8 << 10)];
        let len = write_row(&job, SimdForm::Plain, &mut row).unwrap();
        row.truncate(len);
        assert!(PLACES.tables + len <= PLACES.capacity);
        row
    })
}

/// A picture that stands in a row of a slot.
#[derive(Debug, Clone)]
struct InSlot {
    row: u32,
    /// Its coded data.
    data: Range<usize>,
    kernel: KernelRow,
}

/// A held slot whose rows come in their order, as far as they are let.
#[derive(Debug)]
struct Coming {
    slot: HeldSlot,
    pictures: Vec<InSlot>,
    come: AtomicU32,
}

impl Coming {
    /// So many rows have come.
    fn come(&self, rows: usize) {
        self.come.store(rows as u32, Release);
    }
}

/// The CPU's verdict on a row in a test: even ones give nothing, and another sample stands in for
/// odd multiples of 3.
fn verdict(row: u32) -> Option<CpuVerdict> {
    (row.is_multiple_of(2) || row.is_multiple_of(3)).then(|| CpuVerdict {
        row,
        fault: FaultKind::Truncated.fault(format!("row {row} is cut")),
        attempt: (!row.is_multiple_of(2)).then_some(2),
    })
}

/// The row that it makes: the first bytes of its tables and of its pixels.
fn again(row: u32) -> (u8, u8) {
    (row as u8 ^ 0x55, row as u8 ^ 0x33)
}

impl CodedBatch for Coming {
    fn rows(&self) -> u32 {
        ROWS as u32
    }

    fn row_state(&self, row: u32) -> CodedRowState {
        if row >= self.come.load(Acquire) {
            return CodedRowState::Pending;
        }
        let Some(picture) = self.pictures.iter().find(|p| p.row == row) else {
            return CodedRowState::NotCoded;
        };
        CodedRowState::Coded(Box::new(CodedRow {
            row: picture.row,
            attempt: ATTEMPT,
            data: picture.data.clone(),
            picture: CodedPicture::read(coded()).unwrap(),
            kernel: picture.kernel,
        }))
    }

    fn memory(&self) -> (*const u8, usize) {
        let bytes = self.slot.bytes();
        (bytes.as_ptr(), bytes.len())
    }

    fn decode_again(&self, of: RowAttempt, out: &mut [u8]) -> crate::error::Result<RedecodedRow> {
        let RowAttempt { row, attempt } = of;
        assert_eq!(attempt, ATTEMPT);
        match row as usize {
            199 => return Err(Error::protocol("row 199 is no row")),
            SLOW => std::thread::sleep(SLOW_TAKES),
            _ => {}
        }
        assert_eq!(out.len(), PLACES.capacity);
        let verdict = verdict(row);
        let is_made = verdict.as_ref().is_none_or(|v| v.attempt.is_some());
        (out[0], out[PLACES.tables]) = again(row);
        Ok(RedecodedRow {
            kernel: is_made.then(|| KernelRow {
                pixels: PLACES.tables as u64,
                ..kernel(0)
            }),
            verdict,
        })
    }
}

/// 16 x 8 pixels that become 8 x 4.
fn kernel(begin: usize) -> KernelRow {
    KernelRow {
        tables: begin as u64,
        width: WINDOW.w as u32,
        height: WINDOW.h as u32,
        across_taps: 1,
        down_taps: 1,
        out_width: 8,
        out_height: 4,
        ..KernelRow::default()
    }
}

/// A slot of which the device decodes some rows.
#[derive(Debug)]
struct Batch {
    slot: Vec<u8>,
    pictures: Vec<InSlot>,
}

impl Batch {
    /// These rows are coded, each with data of its own, which follow from `seed` too.
    fn of(rows: impl Iterator<Item = usize>, seed: u8) -> Self {
        let mut slot = vec![0; ROWS * PLACES.capacity];
        let data = CodedPicture::read(coded()).unwrap().data;
        let pictures = rows.map(|row| {
            let begin = row * PLACES.capacity;
            // The first byte of its tables.
            slot[begin] = row as u8 + 1;
            let at = begin + PLACES.tables;
            slot[at..at + coded().len()].copy_from_slice(coded());
            slot[at + data.start] = (row as u8).wrapping_mul(3) ^ seed;
            InSlot {
                row: row as u32,
                data: at + data.start..at + data.end,
                kernel: kernel(begin),
            }
        });
        let pictures = pictures.collect();
        Self { slot, pictures }
    }

    fn first(count: usize) -> Self {
        Self::of(0..count, 0)
    }

    /// Its rows are what the stand-in makes of them. `are_again`: all were flagged.
    fn is_made(&self, rows: &[u8], are_again: bool) {
        for picture in &self.pictures {
            let row = picture.row;
            let data = self.slot[picture.data.clone()].iter();
            let sum: u32 = data.map(|&b| u32::from(b)).sum();
            let decoded = (sum + WINDOW.x as u32 + 3 * WINDOW.y as u32) as u8;
            let (tables, pixels) = match (are_again, verdict(row)) {
                (false, _) => (row as u8 + 1, decoded),
                (true, Some(CpuVerdict { attempt: None, .. })) => (0, 0),
                (true, _) => again(row),
            };
            let mut due = [pixels; ROW];
            due[0] = tables;
            assert_eq!(rows[row as usize * ROW..][..ROW], due, "row {row}");
        }
    }

    /// Nobody has written the other rows.
    fn leaves_others(&self, rows: &[u8]) {
        let others = (0..ROWS).filter(|n| self.pictures.iter().all(|p| p.row as usize != *n));
        for n in others {
            assert_eq!(rows[n * ROW..][..ROW], [UNTOUCHED; ROW], "row {n}");
        }
    }
}

/// The thread, slots that are pinned, and memory for batches.
struct Running {
    thread: JpegThread,
    pinned: Arc<PinnedRing>,
    scene: TestRing,
    outputs: OutputPool,
    kernel: Arc<CropKernel>,
    stream: CudaStream,
}

impl Running {
    fn start() -> Self {
        Self::with_thread(JpegThread::start(0, LONG).unwrap())
    }

    fn with_thread(mut thread: JpegThread) -> Self {
        let context = thread.context().unwrap();
        let scene = TestRing::new(8, ROWS as u32, ROWS * PLACES.capacity);
        Self {
            pinned: Arc::new(PinnedRing::new(&context, scene.ring()).unwrap()),
            scene,
            outputs: OutputPool::new(&context, 8, ROWS * ROW).unwrap(),
            kernel: Arc::new(CropKernel::load(&context).unwrap()),
            stream: CudaStream::new(&context).unwrap(),
            thread,
        }
    }

    fn opened(limit: Duration) -> Self {
        let mut running = Self::start();
        running.thread.start_decoder(SHAPE).unwrap();
        running.thread.set_limit(limit);
        running
    }

    /// Hands a batch over whose rows have come: where they will be.
    fn submit(&mut self, batch: &Batch) -> crate::error::Result<Arc<OutputBuffer>> {
        let (output, rows) = self.open(batch)?;
        rows.come(ROWS);
        Ok(output)
    }

    /// Hands a batch over: where its rows will be, and what lets them come.
    fn open(&mut self, batch: &Batch) -> crate::error::Result<(Arc<OutputBuffer>, Arc<Coming>)> {
        let mut output = self.outputs.take().unwrap();
        output.add_read(Arc::new(self.stream.record()?));
        let output = Arc::new(output);
        let target = BatchTarget {
            output: output.clone(),
            kernel: self.kernel.clone(),
            pinned: self.pinned.clone(),
        };
        let emission = OutputFormat {
            zero_channels: 0,
            patches: None,
            unit: 255.0,
            mean: [0.0; 3],
            std: [1.0; 3],
            dtype: DataType::U8,
            layout: MemoryLayout::Nchw,
            order: ColorOrder::Rgb,
        };
        let laid = (PLACES, KernelEmission::new(&emission, (4, 8)), ROW);
        let rows = Arc::new(Coming {
            slot: self.scene.held_slot(&batch.slot),
            pictures: batch.pictures.clone(),
            come: AtomicU32::new(0),
        });
        self.thread.open(rows.clone(), target, laid)?;
        Ok((output, rows))
    }

    fn done(&mut self) -> crate::error::Result<DecodedBatch> {
        Ok(self.thread.next_done(LONG)?.expect("a batch within 20 s"))
    }

    /// The next batch is done, and is this one: its rows.
    fn is_done(&mut self, batch: &Batch, output: Arc<OutputBuffer>) -> Vec<u8> {
        let made = self.done().unwrap();
        let rows: Vec<u32> = batch.pictures.iter().map(|p| p.row).collect();
        assert_eq!(made.rows, rows);
        assert!(made.verdicts.is_empty());
        let rows = self.rows(output);
        batch.is_made(&rows, false);
        rows
    }

    /// The rows of a batch that is done. No other code has its memory.
    fn rows(&self, output: Arc<OutputBuffer>) -> Vec<u8> {
        let output = Arc::try_unwrap(output).unwrap();
        let mut bytes = vec![0; ROWS * ROW];
        let buffer = output.buffer().unwrap();
        self.stream.download(&mut bytes, buffer).unwrap();
        bytes
    }

    /// Parts that were made until rows of a batch stand still.
    fn settled(&self) -> u64 {
        let mut before = u64::MAX;
        loop {
            let now = self.thread.times().parts;
            if now == before {
                return now;
            }
            before = now;
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

/// Pictures of each part, in order.
fn parts(log: &Log) -> Vec<usize> {
    let of_tables = |line: &&&str| line.contains(" jpeg_tables ");
    let launches = log.lines("cuLaunchKernel");
    let pictures = launches.iter().filter(of_tables);
    pictures
        .map(|line| line.split(' ').nth(2).unwrap().parse().unwrap())
        .collect()
}

#[test]
fn all_memory_is_taken_first_and_is_what_was_planned() {
    let log = run(
        "all_memory_is_taken_first_and_is_what_was_planned",
        &[],
        || {
            let mut thread = JpegThread::start(0, LONG).unwrap();
            thread.start_decoder(SHAPE).unwrap();
            let mut running = Running::with_thread(thread);
            let batch = Batch::first(ROWS);
            for _ in 0..3 {
                let output = running.submit(&batch).unwrap();
                running.is_done(&batch, output);
            }
        },
    );
    let Some(log) = log else { return };
    log.is_balanced();
    let names = ["cuMemAlloc_v2", "cuMemHostAlloc", "cuMemHostRegister_v2"];
    let taken = log.all(&names);
    // Who pins the ring came after the thread had all.
    let pinned = taken.iter().position(|line| line.starts_with(names[2]));
    let (before, after) = taken.split_at(pinned.unwrap());
    let bytes = before.iter().filter(|line| line.starts_with(names[0]));
    let bytes = bytes.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap());
    let bytes: u64 = bytes.map(|bytes| bytes.next_multiple_of(GRANULE)).sum();
    assert_eq!(bytes, SHAPE.device_bytes());
    // The ring, and the batches.
    assert_eq!(after.len(), 1 + 8, "{after:?}");
}

#[test]
fn batches_are_reported_in_order_and_go_together() {
    let log = run(
        "batches_are_reported_in_order_and_go_together",
        &[("STANDIN_SLOW", "200")],
        || {
            let mut running = Running::opened(LONG);
            let sets: [&[usize]; 6] = [&[0, 2], &[0], &[], &[0, 1, 199], &[5], &[1, 2]];
            let batches: Vec<Batch> = (0..)
                .zip(sets)
                .map(|(seed, rows)| Batch::of(rows.iter().copied(), seed))
                .collect();
            let outputs: Vec<_> = (batches.iter())
                .map(|batch| running.submit(batch).unwrap())
                .collect();
            for (batch, output) in batches.iter().zip(outputs) {
                // The first of each memory.
                batch.leaves_others(&running.is_done(batch, output));
            }
            assert!(running.thread.next_done(Duration::ZERO).unwrap().is_none());
            let times = running.thread.times();
            assert_eq!((times.pictures, times.decoded_again), (9, 0));
            assert!(times.busy_s > 0.1, "{times:?}");
        },
    );
    let Some(log) = log else { return };
    // While the first part took its time, all others came.
    let parts = parts(&log);
    assert!(parts.len() <= 3, "{parts:?}");
    assert_eq!(parts.iter().sum::<usize>(), 9);
    log.is_balanced();
}

/// A batch of more pictures than a part has, whose kernels are all launched.
#[test]
fn large_batches_take_several_parts_in_turns() {
    let log = run(
        "large_batches_take_several_parts_in_turns",
        &[("STANDIN_PENDING", "2")],
        || {
            let mut running = Running::opened(LONG);
            let batches: Vec<Batch> = (0..3)
                .map(|b| Batch::of((0..ROWS).filter(|n| n % 7 != b), b as u8))
                .collect();
            for _ in 0..3 {
                let outputs: Vec<_> = (batches.iter())
                    .map(|batch| running.submit(batch).unwrap())
                    .collect();
                for (batch, output) in batches.iter().zip(outputs) {
                    running.is_done(batch, output);
                }
            }
        },
    );
    let Some(log) = log else { return };
    let parts = parts(&log);
    assert!(parts.contains(&PICTURES), "{parts:?}");
    assert!(parts.iter().all(|&pictures| pictures <= PICTURES));
    let launches = log.lines("cuLaunchKernel");
    // The streams of lanes take turns.
    let streams: Vec<&str> = (launches.iter())
        .filter(|line| line.contains(" jpeg_tables "))
        .map(|line| line.rsplit(' ').next().unwrap())
        .collect();
    for lanes in streams.windows(JPEG_LANES) {
        assert!((1..lanes.len()).all(|n| !lanes[..n].contains(&lanes[n])));
    }
    // A picture of halved chroma has planes: RGB is made of them. No window is resized.
    let others = ["jpeg_rgb", "jpeg_first_pass", "jpeg_second_pass"];
    for name in KERNELS.iter().filter(|name| !others.contains(name)) {
        let count = launches
            .iter()
            .filter(|l| l.split(' ').nth(1) == Some(name));
        assert_eq!(count.count(), parts.len(), "{name}");
    }
    log.is_balanced();
}

#[test]
fn rows_are_decoded_as_they_come() {
    let log = run("rows_are_decoded_as_they_come", &[], || {
        let mut running = Running::opened(LONG);
        let batch = Batch::first(ROWS);
        let (first, rows) = running.open(&batch).unwrap();
        let (second, others) = running.open(&batch).unwrap();
        assert_eq!(running.settled(), 0);
        // Too few to begin with, and enough.
        rows.come(ENOUGH - 1);
        assert_eq!(running.settled(), 0);
        rows.come(ENOUGH);
        assert_eq!(running.settled(), 1);
        // Of both together.
        rows.come(ENOUGH + 1);
        others.come(ENOUGH - 1);
        assert_eq!(running.settled(), 2);
        assert_eq!(running.thread.times().pictures, 2 * ENOUGH as u64);
        assert!(running.thread.next_done(Duration::ZERO).unwrap().is_none());
        // The second is complete first, and reported second.
        others.come(ROWS);
        running.settled();
        let so_far = (ENOUGH + 1 + ROWS) as u64;
        assert_eq!(running.thread.times().pictures, so_far);
        assert!(running.thread.next_done(Duration::ZERO).unwrap().is_none());
        rows.come(ROWS);
        for output in [first, second] {
            running.is_done(&batch, output);
        }
    });
    if let Some(log) = log {
        log.is_balanced();
    }
}

/// Rows in the second of two parts of a batch, whose first and last are not coded.
#[test]
fn rows_that_are_flagged_are_decoded_again() {
    let bytes = coded_bytes().to_string();
    let log = run(
        "rows_that_are_flagged_are_decoded_again",
        &[("STANDIN_FLAGS", &bytes)],
        || {
            let mut running = Running::opened(LONG);
            let batch = Batch::of(70..199, 1);
            for _ in 0..2 {
                let output = running.submit(&batch).unwrap();
                let made = running.done().unwrap();
                assert_eq!(made.rows, (70..199).collect::<Vec<_>>());
                let report = |v: &CpuVerdict| (v.row, v.fault.to_string(), v.attempt);
                let seen: Vec<_> = made.verdicts.iter().map(report).collect();
                let due: Vec<_> = (70..199).filter_map(verdict).map(|v| report(&v)).collect();
                assert_eq!(seen, due);
                batch.is_made(&running.rows(output), true);
            }
            let times = running.thread.times();
            assert_eq!((times.pictures, times.decoded_again), (258, 258));
            // What is no row ends all.
            let output = running.submit(&Batch::of(190..200, 1)).unwrap();
            let why = running.done().unwrap_err().to_string();
            assert!(why.contains("row 199 is no row"), "{why}");
            assert_eq!(running.done().unwrap_err().to_string(), why);
            drop(output);
        },
    );
    let Some(log) = log else { return };
    log.is_balanced();
}

/// As the stand-in counts them.
fn coded_bytes() -> u32 {
    let picture = CodedPicture::read(coded()).unwrap().picture;
    bytemuck::cast_slice::<u8, u32>(bytemuck::bytes_of(&picture))[14]
}

#[test]
fn batches_that_are_let_go_are_not_told_and_leave_what_they_have() {
    let log = run(
        "batches_that_are_let_go_are_not_told_and_leave_what_they_have",
        &[("STANDIN_SLOW", "50")],
        || {
            let mut running = Running::opened(LONG);
            let batch = Batch::first(ROWS);
            for _ in 0..3 {
                let whole = running.submit(&batch).unwrap();
                let (half, rows) = running.open(&batch).unwrap();
                rows.come(ROWS / 2);
                running.thread.cancel_batches().unwrap();
                for output in [whole, half] {
                    assert!(Arc::try_unwrap(output).is_ok());
                }
                assert_eq!(Arc::strong_count(&rows), 1);
            }
            let output = running.submit(&batch).unwrap();
            running.is_done(&batch, output);
        },
    );
    if let Some(log) = log {
        log.is_balanced();
    }
}

#[test]
fn what_lies_outside_of_its_slot_or_batch_is_refused() {
    run(
        "what_lies_outside_of_its_slot_or_batch_is_refused",
        &[],
        || {
            type Change = fn(&mut Batch);
            const END: usize = ROWS * PLACES.capacity;
            let changes: [(Change, &str); 5] = [
                (
                    |b| b.pictures[1].data.end = b.pictures[1].data.start,
                    "outside of its slot",
                ),
                (
                    |b| b.pictures[2].data = END..END + 32,
                    "outside of its slot",
                ),
                (
                    |b| b.pictures[2].data.end = usize::MAX,
                    "outside of its slot",
                ),
                (
                    |b| b.pictures[1].kernel.height = u32::MAX,
                    "names bytes outside of it",
                ),
                (
                    |b| b.pictures[1].kernel.tables = 0,
                    "names bytes outside of it",
                ),
            ];
            for (change, word) in changes {
                let mut running = Running::opened(LONG);
                let mut batch = Batch::first(3);
                change(&mut batch);
                let output = running.submit(&batch).unwrap();
                let why = running.done().unwrap_err().to_string();
                assert!(why.contains(word), "{why}");
                assert_eq!(running.done().unwrap_err().to_string(), why);
                drop(output);
            }
        },
    );
}

/// The call that fails, from the environment of the child.
fn failing() -> String {
    let plan = env::var("STANDIN_FAIL").unwrap();
    plan.split(':').next().unwrap().to_owned()
}

#[test]
fn each_call_that_fails_at_the_opening_is_named() {
    for (name, code, nth) in [
        ("cuDeviceGetAttribute", 46, 3),
        ("cuModuleLoadData", 46, 1),
        ("cuModuleGetFunction", 46, 8),
        ("cuFuncSetAttribute", 46, 2),
        ("cuStreamCreate", 46, 1),
        ("cuMemAlloc_v2", 46, 1),
        ("cuMemHostAlloc", 46, 2),
        // Of lanes, which are tried again with less memory: no call succeeds any more, and the
        // last is named.
        ("cuStreamCreate", 700, 3),
        ("cuMemAlloc_v2", 700, 24),
        ("cuMemHostAlloc", 700, 10),
    ] {
        let plan = format!("{name}:{code}:{nth}");
        let log = run(
            "each_call_that_fails_at_the_opening_is_named",
            &[("STANDIN_FAIL", &plan)],
            || {
                let mut thread = JpegThread::start(0, LONG).unwrap();
                thread.context().unwrap();
                let why = thread.start_decoder(SHAPE).unwrap_err().to_string();
                let plan = env::var("STANDIN_FAIL").unwrap();
                let word = match plan.contains(":700:") {
                    true => "CUDA_ERROR_700".to_owned(),
                    false => failing(),
                };
                assert!(why.contains(&word), "{why}");
                assert_eq!(
                    thread.next_done(LONG).map(|_| ()).unwrap_err().to_string(),
                    why
                );
                assert_eq!(thread.cancel_batches().unwrap_err().to_string(), why);
            },
        );
        let Some(log) = log else { return };
        log.is_balanced();
    }
}

/// Shapes of a run, where the device has less memory than was planned.
#[test]
fn parts_are_smaller_where_the_device_has_less() {
    const ROOM: JpegRoom = JpegRoom {
        pixels: 150_000,
        coded: 150_000,
        window: 0,
    };
    let of = |pictures| JpegShape {
        limits: JpegShape::limits(pictures, ROOM),
        room: ROOM,
        ..SHAPE
    };
    for (pictures, free) in [
        (Some(64), of(64).device_bytes()),
        (Some(32), of(64).device_bytes() / 4 * 3),
        (None, 1 << 20),
    ] {
        let free = free.to_string();
        let log = run(
            "parts_are_smaller_where_the_device_has_less",
            &[("STANDIN_FREE", &free)],
            || {
                let mut thread = JpegThread::start(0, LONG).unwrap();
                if env::var("STANDIN_FREE").unwrap() == (1 << 20).to_string() {
                    let why = thread.start_decoder(of(64)).unwrap_err().to_string();
                    assert!(
                        why.contains("free") && why.contains("cuMemAlloc_v2"),
                        "{why}"
                    );
                    return;
                }
                thread.start_decoder(of(64)).unwrap();
            },
        );
        let Some(log) = log else { return };
        log.is_balanced();
        let Some(pictures) = pictures else { continue };
        let taken = log.lines("cuMemAlloc_v2");
        let has = |bytes: usize| {
            taken
                .iter()
                .filter(|l| l.ends_with(&format!(" {bytes}")))
                .count()
        };
        let work = |pictures| JpegShape::limits(pictures, ROOM).memory().work;
        assert_eq!(has(work(pictures)), JPEG_LANES);
        assert_eq!(has(work(pictures / 2)), 0);
    }
}

#[test]
fn a_device_that_cannot_be_opened_says_why() {
    run(
        "a_device_that_cannot_be_opened_says_why",
        &[("STANDIN_FAIL", "cuDevicePrimaryCtxRetain:46:1")],
        || {
            let mut thread = JpegThread::start(0, LONG).unwrap();
            let why = thread.context().unwrap_err().to_string();
            assert!(why.contains("cuDevicePrimaryCtxRetain"), "{why}");
            assert_eq!(thread.start_decoder(SHAPE).unwrap_err().to_string(), why);
        },
    );
}

/// In a part, behind it, and where a row is decoded again.
#[test]
fn each_call_that_fails_later_is_the_answer_to_every_later_call() {
    let bytes = coded_bytes().to_string();
    for (name, nth) in [
        ("cuMemcpyHtoDAsync_v2", 1),
        ("cuMemsetD8Async", 1),
        ("cuMemsetD32Async", 1),
        ("cuLaunchKernel", 1),
        ("cuLaunchKernel", 5),
        ("cuMemcpyDtoHAsync_v2", 1),
        ("cuMemcpy2DAsync_v2", 1),
        ("cuStreamWaitEvent", 1),
        // The first comes from the caller that opens the batch.
        ("cuEventCreate", 2),
        ("cuEventRecord", 2),
        ("cuEventQuery", 1),
        // Of the row that is decoded again.
        ("cuEventSynchronize", 2),
        ("cuLaunchKernel", 10),
    ] {
        for code in [46, 700] {
            let plan = format!("{name}:{code}:{nth}");
            let log = run(
                "each_call_that_fails_later_is_the_answer_to_every_later_call",
                &[("STANDIN_FAIL", &plan), ("STANDIN_FLAGS", &bytes)],
                || {
                    let mut running = Running::opened(LONG);
                    let batch = Batch::of([1, 5, 7].into_iter(), 0);
                    let output = running.submit(&batch).unwrap();
                    let why = running.done().map(|_| ()).unwrap_err().to_string();
                    assert!(why.contains(&failing()), "{why}");
                    for _ in 0..2 {
                        assert_eq!(running.done().unwrap_err().to_string(), why);
                        assert_eq!(
                            running.thread.cancel_batches().unwrap_err().to_string(),
                            why
                        );
                    }
                    let again = running.submit(&batch).map(|_| ()).unwrap_err();
                    assert!(again.to_string().contains(&failing()), "{again}");
                    drop(output);
                },
            );
            let Some(log) = log else { return };
            log.is_balanced();
        }
    }
}

#[test]
fn a_device_that_hangs_is_an_error_and_left_alone() {
    let log = run(
        "a_device_that_hangs_is_an_error_and_left_alone",
        &[("STANDIN_HANG", "2")],
        || {
            let mut running = Running::opened(Duration::from_millis(300));
            let batch = Batch::first(1);
            let first = running.submit(&batch).unwrap();
            running.is_done(&batch, first);
            let output = running.submit(&batch).unwrap();
            let began = Instant::now();
            // Time counts through several waits.
            let mut looks = 0;
            let why = loop {
                match running.thread.next_done(Duration::from_millis(100)) {
                    Ok(None) => looks += 1,
                    Ok(Some(_)) => panic!("a decode that does not return is done"),
                    Err(why) => break why.to_string(),
                }
            };
            assert!((1..10).contains(&looks), "{looks}");
            assert!(
                why.contains("within 300ms") && why.contains("decode_on cpu"),
                "{why}"
            );
            // It has the batch's memory for ever.
            assert!(Arc::try_unwrap(output).is_err());
            assert_eq!(
                running.submit(&batch).map(|_| ()).unwrap_err().to_string(),
                why
            );
            drop(running);
            let took = began.elapsed();
            assert!(took < Duration::from_secs(10), "{took:?}");
        },
    );
    let Some(log) = log else { return };
    // Nothing that the hung call may use was given back: the memory that is, is the batches'
    // that it does not have.
    assert_eq!(log.lines("cuMemFree_v2").len(), 7);
    assert!(log.lines("cuMemFreeHost").is_empty());
    assert!(log.lines("cuMemHostUnregister").is_empty());
}

/// A file that the CPU takes long for is no device that hangs.
#[test]
fn a_row_that_the_cpu_decodes_again_is_waited_for() {
    let bytes = coded_bytes().to_string();
    run(
        "a_row_that_the_cpu_decodes_again_is_waited_for",
        &[("STANDIN_FLAGS", &bytes)],
        || {
            let mut running = Running::opened(Duration::from_millis(300));
            let batch = Batch::of([SLOW].into_iter(), 0);
            let output = running.submit(&batch).unwrap();
            let made = running.done().unwrap();
            assert_eq!(made.rows, [SLOW as u32]);
            batch.is_made(&running.rows(output), true);
            assert_eq!(running.thread.times().decoded_again, 1);
        },
    );
}

/// A training step that holds the memory of a batch is no device that hangs.
#[test]
fn a_batch_that_is_read_is_waited_for_without_end() {
    run(
        "a_batch_that_is_read_is_waited_for_without_end",
        &[("STANDIN_PENDING", "40"), ("STANDIN_SLOW", "900")],
        || {
            let mut running = Running::opened(Duration::from_millis(300));
            let batch = Batch::first(1);
            let output = running.submit(&batch).unwrap();
            // Over at the 40th look.
            running.is_done(&batch, output);
        },
    );
}

#[test]
fn a_thread_ends_behind_what_it_works_on() {
    let log = run(
        "a_thread_ends_behind_what_it_works_on",
        &[("STANDIN_SLOW", "200")],
        || {
            let mut running = Running::opened(LONG);
            // And one that is never whole.
            let batch = Batch::first(40);
            let (first, rows) = running.open(&batch).unwrap();
            rows.come(40);
            let (second, _) = running.open(&batch).unwrap();
            let other = JpegThread::start(0, LONG).unwrap();
            drop(std::mem::replace(&mut running.thread, other));
            for output in [first, second] {
                assert!(Arc::try_unwrap(output).is_ok());
            }
        },
    );
    if let Some(log) = log {
        log.is_balanced();
    }
}

/// A process that ends while CUDA is started in it may hang.
#[test]
fn a_thread_that_opens_its_decoder_is_waited_for() {
    let log = run("a_thread_that_opens_its_decoder_is_waited_for", &[], || {
        let mut thread = JpegThread::start(0, LONG).unwrap();
        thread.context().unwrap();
        drop(thread);
    });
    let Some(log) = log else { return };
    assert!(!log.lines("cuModuleLoadData").is_empty());
    log.is_balanced();
}

/// Of the channels a copy has whatever the thread held at that moment.
#[test]
fn a_forked_copy_has_no_decoder_and_leaves_it_alone() {
    let log = run(
        "a_forked_copy_has_no_decoder_and_leaves_it_alone",
        &[("STANDIN_SLOW", "100")],
        || {
            let mut running = Running::opened(LONG);
            let batch = Batch::first(1);
            let output = running.submit(&batch).unwrap();
            // SAFETY: the copy touches what this thread has, and ends by `_exit`.
            let ForkResult::Parent { child } = (unsafe { fork() }).unwrap() else {
                let refused = catch_unwind(AssertUnwindSafe(|| {
                    let why = running.thread.next_done(LONG).unwrap_err().to_string();
                    assert!(why.contains("forked copy"), "{why}");
                    drop(running);
                }));
                // SAFETY: ends the copy; nothing runs after it.
                unsafe { libc::_exit(i32::from(refused.is_err())) }
            };
            assert_eq!(waitpid(child, None).unwrap(), WaitStatus::Exited(child, 0));
            running.is_done(&batch, output);
        },
    );
    if let Some(log) = log {
        log.is_balanced();
    }
}
