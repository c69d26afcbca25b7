//! The engines on a library that is none: what goes where, and every failure of it.

use std::env;
use std::ffi::OsStr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, fork};

use crate::device::cuda::context::{Context, Stream};
use crate::device::cuda::crop_stage::Target;
use crate::device::cuda::engine_thread::EngineThread;
use crate::device::cuda::engines::{Coded, Engines, Failure};
use crate::device::cuda::kernel::Kernel;
use crate::device::cuda::memory::DeviceBuffer;
use crate::device::cuda::nvjpeg::Library;
use crate::device::cuda::outputs::{Output, Outputs};
use crate::device::cuda::pinned::PinnedRing;
use crate::device::cuda::scene::{Coming, Scene};
use crate::device::cuda::standin::{Log, with_nvjpeg};
use crate::device::frames::{Frame, Picture};
use crate::device::launch::{KernelEmission, KernelRow};
use crate::device::shape::{ENOUGH, EngineShape, LANES, RowPlaces, SUBMISSION};
use crate::recipe::{ColorOrder, Dtype, Emission, MemoryLayout};

const NAME: &str = "device::cuda::engine_tests";
const MEMORY: usize = 1 << 20;
/// What the driver's stand-in fills new memory with.
const UNTOUCHED: u8 = 0xaa;
const LARGEST: (u32, u32) = (128, 96);
/// Rows of a batch.
const ROWS: usize = 200;
const SHAPE: EngineShape = EngineShape {
    largest: LARGEST,
    rows: ROWS,
    batch_tables: ROWS * PLACES.tables,
    row_tables: PLACES.tables,
};
const PLACES: RowPlaces = RowPlaces {
    capacity: 512,
    tables: 256,
};
/// Of a row on the device: 4 x 8 pixels.
const ROW: usize = 3 * 4 * 8;
const LONG: Duration = Duration::from_secs(20);
const CALLS: [&str; 4] = [
    "nvjpegDecodeBatchedInitialize",
    "nvjpegDecodeBatchedPreAllocate",
    "nvjpegDecodeBatched",
    "nvjpegJpegStateDestroy",
];

fn run(test: &str, environment: &[(&str, &str)], body: impl FnOnce()) -> Option<Log> {
    with_nvjpeg(&format!("{NAME}::{test}"), &[], environment, body)
}

/// As much of a JPEG as the stand-in looks at.
fn jpeg((width, height): (u32, u32), data: u8) -> Vec<u8> {
    let [w1, w0] = (width as u16).to_be_bytes();
    let [h1, h0] = (height as u16).to_be_bytes();
    let frame = [0xff, 0xd8, 0xff, 0xc0, 0, 17, 8, h1, h0, w1, w0, 3];
    [&frame[..], &[0; 9], &[data; 30], &[0xff, 0xd9]].concat()
}

/// What the stand-in makes of it, at a line, in the order of bytes.
fn line(bytes: &[u8], y: u32, width: u32) -> Vec<u8> {
    let sum: u32 = bytes.iter().map(|&b| u32::from(b)).sum();
    let of = |x: u32| (sum + 7 * (x % 3) + x / 3 + 3 * y) as u8;
    (0..3 * width).map(of).collect()
}

/// Files, and frames for them.
struct Files {
    files: Vec<((u32, u32), Vec<u8>)>,
    frames: Vec<Frame>,
}

impl Files {
    fn of(sizes: &[(u32, u32)]) -> Self {
        let mut at = 0;
        let frames = sizes.iter().map(|size| {
            let frame = Frame::new(at, size.0);
            at += Frame::bytes(*size);
            frame
        });
        Self {
            frames: frames.collect(),
            files: (1..).zip(sizes).map(|(i, s)| (*s, jpeg(*s, i))).collect(),
        }
    }

    fn coded(&self) -> Vec<Coded<'_>> {
        let all = self.files.iter().zip(&self.frames);
        all.map(|((size, bytes), frame)| Coded {
            bytes,
            size: *size,
            frame: *frame,
        })
        .collect()
    }

    /// Whether picture `i` lies in its frame.
    fn is_decoded(&self, i: usize, memory: &[u8]) -> bool {
        let ((width, height), bytes) = &self.files[i];
        (0..*height).all(|y| {
            let at = self.frames[i].pixel(0, y);
            let due = line(bytes, y, *width);
            memory[at..at + due.len()] == due
        })
    }
}

struct Device {
    context: Arc<Context>,
    stream: Stream,
    memory: DeviceBuffer,
}

impl Device {
    fn open() -> Self {
        let context = Context::open(0).unwrap();
        Self {
            stream: Stream::new(&context).unwrap(),
            memory: DeviceBuffer::new(&context, MEMORY, "frames").unwrap(),
            context,
        }
    }

    fn read(&self) -> Vec<u8> {
        let mut bytes = vec![0; MEMORY];
        self.stream.download(&mut bytes, &self.memory).unwrap();
        bytes
    }
}

/// A slot of which engines make some rows.
struct Batch {
    slot: Vec<u8>,
    pictures: Vec<Picture>,
}

/// What stands in a row: a file, or none for engines.
type InRow = Option<((u32, u32), Vec<u8>)>;

impl Batch {
    fn new(rows: &[InRow]) -> Self {
        let mut slot = vec![0; rows.len() * PLACES.capacity];
        let mut pictures = Vec::new();
        for (row, file) in rows.iter().enumerate() {
            let Some((size, bytes)) = file else { continue };
            let begin = row * PLACES.capacity;
            // The first byte of its tables.
            slot[begin] = row as u8 + 1;
            let at = begin + PLACES.tables;
            slot[at..at + bytes.len()].copy_from_slice(bytes);
            pictures.push(Picture {
                row: row as u32,
                at,
                len: bytes.len(),
                size: *size,
                corner: [5, 0],
                kernel: KernelRow {
                    tables: begin as u64,
                    width: 16,
                    height: 8,
                    across_taps: 1,
                    down_taps: 1,
                    out_width: 8,
                    out_height: 4,
                    ..KernelRow::default()
                },
            });
        }
        Self { slot, pictures }
    }

    fn of(sizes: &[(u32, u32)]) -> Self {
        let rows: Vec<InRow> = (1..)
            .zip(sizes)
            .map(|(i, size)| Some((*size, jpeg(*size, i))))
            .collect();
        Self::new(&rows)
    }

    /// What the stand-ins make of the row of picture `i`.
    fn row(&self, i: usize) -> Vec<u8> {
        let picture = &self.pictures[i];
        let first = line(&self.slot[picture.bytes()], 0, 64)[15];
        let mut row = vec![first; ROW];
        row[0] = picture.row as u8 + 1;
        row
    }
}

/// The engines' thread, slots that are pinned, and memory for batches.
struct Running {
    thread: EngineThread,
    pinned: Arc<PinnedRing>,
    scene: Scene,
    outputs: Outputs,
    kernel: Arc<Kernel>,
    stream: Stream,
}

impl Running {
    fn start() -> Self {
        let mut thread = EngineThread::start(0, SHAPE, LONG).unwrap();
        let context = thread.context().unwrap();
        let scene = Scene::new(8, ROWS as u32, ROWS * PLACES.capacity);
        Self {
            pinned: Arc::new(PinnedRing::new(&context, scene.ring()).unwrap()),
            scene,
            outputs: Outputs::new(&context, 8, ROWS * ROW).unwrap(),
            kernel: Arc::new(Kernel::load(&context).unwrap()),
            stream: Stream::new(&context).unwrap(),
            thread,
        }
    }

    fn opened(limit: Duration) -> Self {
        let mut running = Self::start();
        assert_eq!(running.thread.found().unwrap().engines, 7);
        running.thread.opened().unwrap();
        running.thread.set_limit(limit);
        running
    }

    /// Hands a batch over whose rows have come: where they will be.
    fn submit(&mut self, batch: &Batch) -> crate::error::Result<Arc<Output>> {
        let (output, files) = self.open(batch)?;
        files.come(ROWS as u32);
        Ok(output)
    }

    /// Hands a batch over: where its rows will be, and what lets them come.
    fn open(&mut self, batch: &Batch) -> crate::error::Result<(Arc<Output>, Arc<Coming>)> {
        let mut output = self.outputs.take().unwrap();
        output.not_before(Arc::new(self.stream.record().unwrap()));
        let output = Arc::new(output);
        let target = Target {
            output: output.clone(),
            kernel: self.kernel.clone(),
            _pinned: self.pinned.clone(),
        };
        let emission = Emission {
            zeros: 0,
            unit: 255.0,
            mean: [0.0; 3],
            std: [1.0; 3],
            dtype: Dtype::U8,
            layout: MemoryLayout::Nchw,
            order: ColorOrder::Rgb,
        };
        let laid = (PLACES, KernelEmission::new(&emission, (4, 8)), ROW);
        let slot = self.scene.held(&batch.slot);
        let files = Arc::new(Coming::none(slot, ROWS as u32, batch.pictures.clone()));
        self.thread.open(files.clone(), target, laid)?;
        Ok((output, files))
    }

    /// Which rows of the next batch are none.
    fn done(&mut self) -> crate::error::Result<Vec<u32>> {
        let made = self.thread.next_done(LONG)?.expect("a batch within 20 s");
        Ok(made.culprits.into_iter().map(|(row, _)| row).collect())
    }

    /// The rows of a batch that is done: nobody else has its memory.
    fn rows(&self, output: Arc<Output>) -> Vec<u8> {
        let output = Arc::try_unwrap(output).unwrap();
        let mut bytes = vec![0; ROWS * ROW];
        let buffer = output.buffer().unwrap();
        self.stream.download(&mut bytes, buffer).unwrap();
        bytes
    }
}

/// Row `n` of a batch.
fn row(rows: &[u8], n: usize) -> &[u8] {
    &rows[n * ROW..(n + 1) * ROW]
}

#[test]
fn pictures_go_to_their_frames_and_all_memory_is_taken_first() {
    let log = run(
        "pictures_go_to_their_frames_and_all_memory_is_taken_first",
        &[],
        || {
            let device = Device::open();
            let mut engines = Engines::open(&device.context, LANES, LARGEST).unwrap();
            let info = engines.info();
            assert_eq!((info.engines, info.library.as_str()), (7, "nvJPEG 12.4.0"));
            let path = info.path.display().to_string();
            assert!(path.ends_with("/libnvjpeg.so.12"), "{path}");
            let sizes = [(64, 64), (100, 77), (128, 96)];
            let files = Files::of(&sizes);
            for lane in [0, 1, 0] {
                let coded = files.coded();
                // SAFETY: nothing else uses the memory.
                let done = unsafe { engines.decode(lane, &coded, &device.memory, &device.stream) };
                done.unwrap();
                let memory = device.read();
                assert!((0..3).all(|i| files.is_decoded(i, &memory)));
            }
            let drawn = device.read().iter().filter(|b| **b != UNTOUCHED).count();
            let due: u32 = sizes.iter().map(|(w, h)| 3 * w * h).sum();
            // Every 256th is as it was.
            assert!(
                (due - due / 100..=due).contains(&(drawn as u32)),
                "{drawn} of {due}"
            );
        },
    );
    let Some(log) = log else { return };
    assert_eq!(
        log.lines("nvjpegDecodeBatchedPreAllocate"),
        ["nvjpegDecodeBatchedPreAllocate 64 of 128 x 96"; LANES]
    );
    assert_eq!(
        log.all(&CALLS)[2 * LANES..9],
        [
            "nvjpegDecodeBatchedInitialize 3",
            "nvjpegDecodeBatched of 3",
            "nvjpegDecodeBatchedInitialize 3",
            "nvjpegDecodeBatched of 3",
            "nvjpegDecodeBatched of 3",
        ]
    );
    log.is_balanced();
}

#[test]
fn what_is_no_batch_is_refused_before_anything_is_done() {
    let log = run(
        "what_is_no_batch_is_refused_before_anything_is_done",
        &[],
        || {
            let device = Device::open();
            let mut engines = Engines::open(&device.context, LANES, LARGEST).unwrap();
            let files = Files::of(&[(64, 64); SUBMISSION + 1]);
            let usual = files.coded();
            let at = |at, pitch| Coded {
                frame: Frame { at, pitch },
                ..usual[0]
            };
            let wrong = [
                usual.clone(),
                vec![Coded {
                    size: (129, 64),
                    ..usual[0]
                }],
                vec![Coded {
                    size: (64, 97),
                    ..usual[0]
                }],
                vec![Coded {
                    bytes: &[],
                    ..usual[0]
                }],
                vec![at(0, 3 * 63)],
                vec![at(MEMORY - 64 * 192 + 1, 192)],
                vec![at(usize::MAX, 192)],
                vec![at(0, usize::MAX)],
            ];
            for (i, pictures) in wrong.iter().enumerate() {
                // SAFETY: nothing else uses the memory.
                let done = unsafe { engines.decode(0, pictures, &device.memory, &device.stream) };
                assert!(matches!(done, Err(Failure::Engines(_))), "{i}: {done:?}");
            }
            // SAFETY: as above.
            let done = unsafe { engines.decode(0, &[], &device.memory, &device.stream) };
            assert!(done.is_ok());
        },
    );
    let Some(log) = log else { return };
    assert_eq!(log.lines("nvjpegDecodeBatched").len(), 0);
    log.is_balanced();
}

#[test]
fn each_call_that_fails_when_they_are_opened_is_named() {
    for name in [
        "nvjpegCreateEx",
        "nvjpegGetHardwareDecoderInfo",
        "nvjpegJpegStateCreate",
        "nvjpegDecodeBatchedInitialize",
        "nvjpegDecodeBatchedPreAllocate",
    ] {
        for (status, word) in [
            ("7", "no JPEG engines"),
            ("5", "too little memory"),
            ("99", "(99)"),
        ] {
            let plan = format!("{name}:{status}");
            let environment = [("STANDIN_NVJPEG_FAIL", plan.as_str()), ("WORD", word)];
            let log = run(
                "each_call_that_fails_when_they_are_opened_is_named",
                &environment,
                || {
                    let device = Device::open();
                    let said = |text: String| {
                        let plan = env::var("STANDIN_NVJPEG_FAIL").unwrap();
                        let name = plan.split(':').next().unwrap();
                        for word in ["cuda:0: nvJPEG 12.4.0 (", name, &env::var("WORD").unwrap()] {
                            assert!(text.contains(word), "no `{word}` in {text}");
                        }
                    };
                    let why = Engines::open(&device.context, LANES, LARGEST)
                        .map(|_| ())
                        .unwrap_err();
                    said(why.to_string());
                },
            );
            let Some(log) = log else { return };
            log.is_balanced();
        }
    }
}

#[test]
fn a_library_that_cannot_serve_is_refused_with_the_reason() {
    type Case<'a> = (&'a [&'a str], &'a [(&'a str, &'a str)], &'a str);
    let cases: [Case<'_>; 4] = [
        (
            &["-DWITHOUT_PREALLOCATE"],
            &[],
            "nvjpegDecodeBatchedPreAllocate",
        ),
        (
            &[],
            &[("STANDIN_NVJPEG_VERSION", "11.9.0")],
            "version 11.9.0",
        ),
        (&[], &[("STANDIN_NVJPEG_VERSION", "14.0.0")], "12 and 13"),
        (
            &[],
            &[("STANDIN_NVJPEG_FAIL", "nvjpegGetProperty:8:0")],
            "INTERNAL_ERROR",
        ),
    ];
    let test = format!("{NAME}::a_library_that_cannot_serve_is_refused_with_the_reason");
    for (flags, environment, word) in cases {
        let environment = [environment, &[("WORD", word)]].concat();
        let log = with_nvjpeg(&test, flags, &environment, || {
            let why = Library::load(OsStr::new("libnvjpeg.so.12")).unwrap_err();
            let word = env::var("WORD").unwrap();
            assert!(
                why.contains(&word) && why.contains("libnvjpeg.so.12"),
                "{why}"
            );
        });
        if log.is_none() {
            return;
        }
    }
}

#[test]
fn a_device_without_engines_says_so() {
    run(
        "a_device_without_engines_says_so",
        &[("STANDIN_NVJPEG_ENGINES", "0")],
        || {
            let mut running = Running::start();
            // Those of its kind have some.
            assert_eq!(running.thread.found().unwrap().engines, 7);
            let why = running.thread.opened().unwrap_err().to_string();
            assert!(why.contains("no JPEG engines: decode on cpu"), "{why}");
        },
    );
}

/// Of a device of another kind it is not known how many engines it has.
#[test]
fn engines_of_other_devices_are_asked() {
    run(
        "engines_of_other_devices_are_asked",
        &[
            ("STANDIN_CAPABILITY", "80"),
            ("STANDIN_NVJPEG_ENGINES", "5"),
        ],
        || {
            let mut running = Running::start();
            assert_eq!(running.thread.found().unwrap().engines, 5);
            running.thread.opened().unwrap();
        },
    );
}

#[test]
fn another_device_without_engines_says_so_at_once() {
    run(
        "another_device_without_engines_says_so_at_once",
        &[
            ("STANDIN_CAPABILITY", "80"),
            ("STANDIN_NVJPEG_ENGINES", "0"),
        ],
        || {
            let why = Running::start().thread.found().unwrap_err().to_string();
            assert!(why.contains("no JPEG engines: decode on cpu"), "{why}");
        },
    );
}

#[test]
fn a_device_that_cannot_be_opened_says_why() {
    run(
        "a_device_that_cannot_be_opened_says_why",
        &[("STANDIN_FAIL", "cuDevicePrimaryCtxRetain:46:1")],
        || {
            let mut thread = EngineThread::start(0, SHAPE, LONG).unwrap();
            let why = thread.found().unwrap_err().to_string();
            assert!(why.contains("cuDevicePrimaryCtxRetain"), "{why}");
        },
    );
}

/// A training step that holds the memory of a batch is no engine that hangs.
#[test]
fn a_batch_that_is_read_is_waited_for_without_end() {
    run(
        "a_batch_that_is_read_is_waited_for_without_end",
        &[("STANDIN_PENDING", "40"), ("STANDIN_NVJPEG_SLOW", "900")],
        || {
            let mut running = Running::opened(Duration::from_millis(300));
            let batch = Batch::of(&[(64, 64)]);
            let output = running.submit(&batch).unwrap();
            // Over at the 40th look.
            assert!(running.done().unwrap().is_empty());
            drop(output);
        },
    );
}

#[test]
fn batches_are_reported_in_order_with_their_own_culprits() {
    let log = run(
        "batches_are_reported_in_order_with_their_own_culprits",
        &[("STANDIN_NVJPEG_SLOW", "300")],
        || {
            let mut running = Running::opened(LONG);
            let text: InRow = Some(((64, 64), b"no JPEG, only text".to_vec()));
            let good: InRow = Some(((64, 64), jpeg((64, 64), 9)));
            let sets = [
                vec![good.clone(), None, good.clone()],
                vec![good.clone()],
                vec![],
                vec![good.clone(), text.clone(), None, None, good.clone()],
                vec![text.clone()],
                vec![None, good.clone(), good.clone()],
            ];
            let batches: Vec<Batch> = sets.iter().map(|rows| Batch::new(rows)).collect();
            let outputs: Vec<_> = (batches.iter())
                .map(|batch| running.submit(batch).unwrap())
                .collect();
            for ((batch, set), output) in batches.iter().zip(&sets).zip(outputs) {
                let bad = running.done().unwrap();
                let is_bad = |row: &u32| set[*row as usize] == text;
                let due: Vec<u32> = (0..set.len() as u32).filter(is_bad).collect();
                assert_eq!(bad, due);
                let rows = running.rows(output);
                for (n, file) in set.iter().enumerate() {
                    let due = match batch.pictures.iter().position(|p| p.row == n as u32) {
                        Some(_) if file == &text => vec![0; ROW],
                        Some(i) => batch.row(i),
                        // Another's row.
                        None => vec![UNTOUCHED; ROW],
                    };
                    assert_eq!(row(&rows, n), due, "row {n}");
                }
            }
            assert!(running.thread.next_done(Duration::ZERO).unwrap().is_none());
            let times = running.thread.times();
            assert_eq!(times.pictures, 9);
            assert!(times.busy_s > 0.1, "{times:?}");
        },
    );
    let Some(log) = log else { return };
    // What was queued went into one submission, which failed and was then halved.
    let decodes = log.lines("nvjpegDecodeBatched");
    let largest = decodes
        .iter()
        .filter_map(|line| line.rsplit(' ').next()?.parse().ok())
        .max();
    assert!(largest >= Some(6), "{decodes:?}");
    log.is_balanced();
}

/// A batch of more pictures than a submission has, and submissions that the frames fill.
#[test]
fn large_batches_take_several_submissions_in_turns() {
    let log = run(
        "large_batches_take_several_submissions_in_turns",
        &[("STANDIN_PENDING", "2")],
        || {
            let mut running = Running::opened(LONG);
            let batches: Vec<Batch> = (0..3)
                .map(|b| {
                    let rows: Vec<InRow> = (0..ROWS)
                        .map(|n| {
                            let size = (64 + (n % 60) as u32, 64 + (n % 30) as u32);
                            (n % 7 != b).then(|| (size, jpeg(size, (n + b) as u8)))
                        })
                        .collect();
                    Batch::new(&rows)
                })
                .collect();
            for _ in 0..3 {
                let outputs: Vec<_> = (batches.iter())
                    .map(|batch| running.submit(batch).unwrap())
                    .collect();
                for (batch, output) in batches.iter().zip(outputs) {
                    assert!(running.done().unwrap().is_empty());
                    let rows = running.rows(output);
                    for (i, picture) in batch.pictures.iter().enumerate() {
                        let made = row(&rows, picture.row as usize);
                        assert_eq!(made, batch.row(i), "picture {i}");
                    }
                }
            }
        },
    );
    let Some(log) = log else { return };
    assert!(
        log.lines("nvjpegDecodeBatched")
            .iter()
            .any(|l| l.ends_with(" 64"))
    );
    log.is_balanced();
}

/// Submissions that were made until rows of a batch stand still.
fn settled(running: &Running) -> u64 {
    let mut before = u64::MAX;
    loop {
        let now = running.thread.times().submissions;
        if now == before {
            return now;
        }
        before = now;
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn files_are_decoded_as_they_come() {
    let log = run("files_are_decoded_as_they_come", &[], || {
        let mut running = Running::opened(LONG);
        let batch = Batch::of(&[(64, 64); ROWS]);
        let (first, files) = running.open(&batch).unwrap();
        let (second, others) = running.open(&batch).unwrap();
        assert_eq!(settled(&running), 0);
        // Too few to begin with, and enough.
        files.come(ENOUGH as u32 - 1);
        assert_eq!(settled(&running), 0);
        files.come(ENOUGH as u32);
        assert_eq!(settled(&running), 1);
        // Of both together.
        files.come(ENOUGH as u32 + 1);
        others.come(ENOUGH as u32 - 1);
        assert_eq!(settled(&running), 2);
        assert_eq!(running.thread.times().pictures, 2 * ENOUGH as u64);
        assert!(running.thread.next_done(Duration::ZERO).unwrap().is_none());
        // The second is whole first, and told second.
        others.come(ROWS as u32);
        settled(&running);
        assert_eq!(running.thread.times().pictures, (ENOUGH + 1 + ROWS) as u64);
        assert!(running.thread.next_done(Duration::ZERO).unwrap().is_none());
        files.come(ROWS as u32);
        for output in [first, second] {
            let made = running.thread.next_done(LONG).unwrap().unwrap();
            assert_eq!(made.rows, (0..ROWS as u32).collect::<Vec<_>>());
            assert!(made.culprits.is_empty());
            let rows = running.rows(output);
            for n in 0..ROWS {
                assert_eq!(row(&rows, n), batch.row(n), "row {n}");
            }
        }
    });
    if let Some(log) = log {
        log.is_balanced();
    }
}

#[test]
fn batches_that_are_let_go_are_not_told_and_leave_what_they_have() {
    let log = run(
        "batches_that_are_let_go_are_not_told_and_leave_what_they_have",
        &[("STANDIN_NVJPEG_SLOW", "50")],
        || {
            let mut running = Running::opened(LONG);
            let batch = Batch::of(&[(64, 64); ROWS]);
            for _ in 0..3 {
                let whole = running.submit(&batch).unwrap();
                let (half, files) = running.open(&batch).unwrap();
                files.come(ROWS as u32 / 2);
                running.thread.forget().unwrap();
                for output in [whole, half] {
                    assert!(Arc::try_unwrap(output).is_ok());
                }
                assert_eq!(Arc::strong_count(&files), 1);
            }
            let output = running.submit(&batch).unwrap();
            assert!(running.done().unwrap().is_empty());
            assert_eq!(row(&running.rows(output), 7), batch.row(7));
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
            let changes: [(Change, &str); 4] = [
                (|b| b.pictures[1].len = 0, "outside of its slot"),
                (
                    |b| b.pictures[2].at = ROWS * PLACES.capacity,
                    "outside of its slot",
                ),
                (|b| b.pictures[2].len = usize::MAX, "outside of its slot"),
                (
                    |b| b.pictures[1].kernel.height = u32::MAX,
                    "names bytes that are not its own",
                ),
            ];
            for (change, word) in changes {
                let mut running = Running::opened(LONG);
                let mut batch = Batch::of(&[(64, 64); 3]);
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

#[test]
fn engines_that_fail_are_the_answer_to_every_later_call() {
    let log = run(
        "engines_that_fail_are_the_answer_to_every_later_call",
        &[("STANDIN_NVJPEG_FAIL", "nvjpegDecodeBatched:8:0")],
        || {
            let mut running = Running::opened(LONG);
            let batch = Batch::of(&[(64, 64); 8]);
            let output = running.submit(&batch).unwrap();
            let why = running.done().unwrap_err().to_string();
            assert!(why.contains("nvjpegDecodeBatched: INTERNAL_ERROR"), "{why}");
            assert_eq!(running.done().unwrap_err().to_string(), why);
            let again = running.submit(&batch).unwrap_err().to_string();
            assert_eq!(again, why);
            drop(output);
        },
    );
    let Some(log) = log else { return };
    assert!(log.lines("nvjpegDecodeBatched").len() < 16);
    log.is_balanced();
}

#[test]
fn engines_that_hang_are_an_error_and_left_alone() {
    let log = run(
        "engines_that_hang_are_an_error_and_left_alone",
        &[("STANDIN_NVJPEG_HANG", "2")],
        || {
            let mut running = Running::opened(Duration::from_millis(300));
            let batch = Batch::of(&[(64, 64)]);
            let first = running.submit(&batch).unwrap();
            assert!(running.done().unwrap().is_empty());
            drop(first);
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
                why.contains("within 300ms") && why.contains("decode on cpu"),
                "{why}"
            );
            // It has the batch's memory for ever.
            assert!(Arc::try_unwrap(output).is_err());
            assert_eq!(running.submit(&batch).unwrap_err().to_string(), why);
            drop(running);
            let took = began.elapsed();
            assert!(took < Duration::from_secs(10), "{took:?}");
        },
    );
    let Some(log) = log else { return };
    // Nothing that the hung call may use was given back: the memory that is, is the batches'
    // that it does not have.
    assert!(log.lines("nvjpegJpegStateDestroy").is_empty());
    assert_eq!(log.lines("cuMemFree_v2").len(), 7);
}

/// Nothing shows it: the CPU's decoder would have said so. See DESIGN.md.
#[test]
fn engines_that_decode_nothing_and_say_that_all_is_well_are_believed() {
    run(
        "engines_that_decode_nothing_and_say_that_all_is_well_are_believed",
        &[("STANDIN_NVJPEG_IDLE", "1")],
        || {
            let mut running = Running::opened(LONG);
            let batch = Batch::of(&[(64, 64)]);
            let output = running.submit(&batch).unwrap();
            assert!(running.done().unwrap().is_empty());
            assert_ne!(row(&running.rows(output), 0), batch.row(0));
        },
    );
}

#[test]
fn a_thread_ends_behind_what_it_works_on() {
    let log = run(
        "a_thread_ends_behind_what_it_works_on",
        &[("STANDIN_NVJPEG_SLOW", "200")],
        || {
            let mut running = Running::start();
            // Before the engines are open, too; and one that is never whole.
            let batch = Batch::of(&[(64, 64); 40]);
            let (first, files) = running.open(&batch).unwrap();
            files.come(40);
            let (second, _) = running.open(&batch).unwrap();
            drop(std::mem::replace(&mut running.thread, {
                EngineThread::start(0, SHAPE, LONG).unwrap()
            }));
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
fn a_thread_that_opens_its_engines_is_waited_for() {
    let log = run(
        "a_thread_that_opens_its_engines_is_waited_for",
        &[("STANDIN_NVJPEG_SLOW_STATE", "800")],
        || {
            let mut running = Running::start();
            assert_eq!(running.thread.found().unwrap().engines, 7);
        },
    );
    if let Some(log) = log {
        log.is_balanced();
        assert_eq!(log.calls(&["nvjpegDestroy"]).len(), 1);
    }
}

/// Of the channels a copy has whatever the thread held at that moment.
#[test]
fn a_forked_copy_has_no_engines_and_leaves_them_alone() {
    let log = run(
        "a_forked_copy_has_no_engines_and_leaves_them_alone",
        &[("STANDIN_NVJPEG_SLOW", "100")],
        || {
            let mut running = Running::opened(LONG);
            let batch = Batch::of(&[(64, 64)]);
            let output = running.submit(&batch).unwrap();
            // SAFETY: the copy touches what this thread has, and ends by `_exit`.
            let ForkResult::Parent { child } = (unsafe { fork() }).unwrap() else {
                let refused = catch_unwind(AssertUnwindSafe(|| {
                    let why = running.thread.next_done(LONG).unwrap_err().to_string();
                    assert!(why.contains("forked copy"), "{why}");
                    drop(running);
                }));
                // SAFETY: ends the copy; nothing runs behind it.
                unsafe { libc::_exit(i32::from(refused.is_err())) }
            };
            assert_eq!(waitpid(child, None).unwrap(), WaitStatus::Exited(child, 0));
            assert!(running.done().unwrap().is_empty());
            assert_eq!(row(&running.rows(output), 0), batch.row(0));
        },
    );
    if let Some(log) = log {
        log.is_balanced();
    }
}
