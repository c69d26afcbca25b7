//! The engines on a library that is none: what goes where, and every failure of it.

use std::env;
use std::ffi::OsStr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, fork};

use crate::device::cuda::context::{Context, Stream};
use crate::device::cuda::engine_thread::EngineThread;
use crate::device::cuda::engines::{Coded, EngineShape, Engines, Failure};
use crate::device::cuda::memory::DeviceBuffer;
use crate::device::cuda::nvjpeg::Library;
use crate::device::cuda::standin::{Log, with_nvjpeg};
use crate::device::frames::{Arena, Frame, Picture};

const NAME: &str = "device::cuda::engine_tests";
const ARENA: usize = 1 << 20;
/// What the driver's stand-in fills new memory with.
const UNTOUCHED: u8 = 0xaa;
const SHAPE: EngineShape = EngineShape {
    pictures: 8,
    largest: (128, 96),
};
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

/// Pictures in one buffer, and their frames.
struct Batch {
    bytes: Vec<u8>,
    pictures: Vec<Picture>,
}

impl Batch {
    fn new(arena: &mut Arena, files: &[((u32, u32), Vec<u8>)]) -> Self {
        let sizes: Vec<_> = files.iter().map(|(size, _)| *size).collect();
        let frames = arena.take(&sizes).unwrap();
        let mut bytes = vec![1, 2, 3];
        let one = |((size, file), frame): (&((u32, u32), Vec<u8>), Frame)| {
            let start = bytes.len();
            bytes.extend(file);
            Picture {
                at: start,
                len: file.len(),
                size: *size,
                frame,
            }
        };
        let pictures = files.iter().zip(frames).map(one).collect();
        Self { bytes, pictures }
    }

    fn of(arena: &mut Arena, sizes: &[(u32, u32)]) -> Self {
        let files: Vec<_> = (1..).zip(sizes).map(|(i, s)| (*s, jpeg(*s, i))).collect();
        Self::new(arena, &files)
    }

    fn coded(&self) -> Vec<Coded<'_>> {
        let of = |p: &Picture| Coded {
            bytes: &self.bytes[p.bytes()],
            size: p.size,
            frame: p.frame,
        };
        self.pictures.iter().map(of).collect()
    }

    /// Whether picture `i` lies in its frame.
    fn is_decoded(&self, i: usize, memory: &[u8]) -> bool {
        let p = &self.pictures[i];
        let (width, height) = p.size;
        (0..height).all(|y| {
            let at = p.frame.pixel(0, y);
            let due = line(&self.bytes[p.bytes()], y, width);
            memory[at..at + due.len()] == due
        })
    }
}

struct Device {
    context: Arc<Context>,
    stream: Stream,
    memory: Arc<DeviceBuffer>,
    arena: Arena,
}

impl Device {
    fn open() -> Self {
        let context = Context::open(0).unwrap();
        Self {
            stream: Stream::new(&context).unwrap(),
            memory: Arc::new(DeviceBuffer::new(&context, ARENA, "frames").unwrap()),
            arena: Arena::new(ARENA),
            context,
        }
    }

    fn read(&self) -> Vec<u8> {
        let mut bytes = vec![0; ARENA];
        self.stream.download(&mut bytes, &self.memory).unwrap();
        bytes
    }

    fn thread(&self, limit: Duration) -> EngineThread {
        EngineThread::start(&self.context, SHAPE, self.memory.clone(), limit).unwrap()
    }
}

/// Hands a batch over.
fn submit(thread: &mut EngineThread, batch: &Batch) -> crate::error::Result<()> {
    thread.submit(Arc::new(batch.bytes.clone()), batch.pictures.clone())
}

/// Which pictures of the next batch are none.
fn done(thread: &mut EngineThread) -> crate::error::Result<Vec<usize>> {
    let culprits = thread.next_done(LONG)?.expect("a batch within 20 s");
    Ok(culprits.into_iter().map(|(at, _)| at).collect())
}

#[test]
fn pictures_go_to_their_frames_and_all_memory_is_taken_first() {
    let log = run(
        "pictures_go_to_their_frames_and_all_memory_is_taken_first",
        &[],
        || {
            let mut device = Device::open();
            let mut engines = Engines::open(&device.context, SHAPE).unwrap();
            assert_eq!((engines.count(), engines.found().version), (7, (12, 4, 0)));
            let path = engines.found().path.display().to_string();
            assert!(path.ends_with("/libnvjpeg.so.12"), "{path}");
            let sizes = [(64, 64), (100, 77), (128, 96)];
            for _ in 0..2 {
                let batch = Batch::of(&mut device.arena, &sizes);
                // SAFETY: nothing else uses the arena.
                unsafe { engines.decode(&batch.coded(), &device.memory, &device.stream) }.unwrap();
                let memory = device.read();
                assert!((0..3).all(|i| batch.is_decoded(i, &memory)));
            }
            let drawn = device.read().iter().filter(|b| **b != UNTOUCHED).count();
            let due: u32 = sizes.iter().map(|(w, h)| 2 * 3 * w * h).sum();
            // Every 256th is as it was.
            assert!(
                (due - due / 100..=due).contains(&(drawn as u32)),
                "{drawn} of {due}"
            );
        },
    );
    let Some(log) = log else { return };
    assert_eq!(
        log.all(&CALLS)[..5],
        [
            "nvjpegDecodeBatchedInitialize 8",
            "nvjpegDecodeBatchedPreAllocate 8 of 128 x 96",
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
            let mut device = Device::open();
            let mut engines = Engines::open(&device.context, SHAPE).unwrap();
            let batch = Batch::of(&mut device.arena, &[(64, 64); 9]);
            let usual = batch.coded();
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
                vec![at(ARENA - 64 * 192 + 1, 192)],
                vec![at(usize::MAX, 192)],
                vec![at(0, usize::MAX)],
            ];
            for (i, pictures) in wrong.iter().enumerate() {
                // SAFETY: nothing else uses the arena.
                let done = unsafe { engines.decode(pictures, &device.memory, &device.stream) };
                assert!(matches!(done, Err(Failure::Engines(_))), "{i}: {done:?}");
            }
            // SAFETY: as above.
            let done = unsafe { engines.decode(&[], &device.memory, &device.stream) };
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
                    let why = Engines::open(&device.context, SHAPE)
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
            let device = Device::open();
            let why = device.thread(LONG).opened().unwrap_err().to_string();
            assert!(why.contains("no JPEG engines: decode on cpu"), "{why}");
        },
    );
}

#[test]
fn batches_are_reported_in_order_with_their_own_culprits() {
    let log = run(
        "batches_are_reported_in_order_with_their_own_culprits",
        &[("STANDIN_NVJPEG_SLOW", "100")],
        || {
            let mut device = Device::open();
            let mut thread = device.thread(LONG);
            assert_eq!(thread.opened().unwrap().engines, 7);
            let text = ((64, 64), b"no JPEG, only text".to_vec());
            let good = ((64, 64), jpeg((64, 64), 9));
            let sets = [
                vec![good.clone(), good.clone()],
                vec![good.clone()],
                vec![],
                vec![good.clone(), text.clone(), good.clone()],
                vec![text.clone()],
                vec![good.clone(), good.clone()],
            ];
            let batches: Vec<Batch> = (sets.iter())
                .map(|files| Batch::new(&mut device.arena, files))
                .collect();
            for batch in &batches {
                submit(&mut thread, batch).unwrap();
            }
            for (batch, files) in batches.iter().zip(&sets) {
                let bad = done(&mut thread).unwrap();
                let due: Vec<usize> = (0..files.len()).filter(|i| files[*i] == text).collect();
                assert_eq!(bad, due);
                let memory = device.read();
                for i in 0..files.len() {
                    assert_eq!(batch.is_decoded(i, &memory), !due.contains(&i));
                }
            }
            assert!(thread.next_done(Duration::ZERO).unwrap().is_none());
        },
    );
    let Some(log) = log else { return };
    // What was queued went into one submission, which failed and was then halved.
    let decodes = log.lines("nvjpegDecodeBatched");
    let largest = decodes
        .iter()
        .filter_map(|line| line.rsplit(' ').next()?.parse().ok())
        .max();
    assert!(largest >= Some(7), "{decodes:?}");
    log.is_balanced();
}

#[test]
fn engines_that_fail_are_the_answer_to_every_later_call() {
    let log = run(
        "engines_that_fail_are_the_answer_to_every_later_call",
        &[("STANDIN_NVJPEG_FAIL", "nvjpegDecodeBatched:8:0")],
        || {
            let mut device = Device::open();
            let mut thread = device.thread(LONG);
            thread.opened().unwrap();
            let batch = Batch::of(&mut device.arena, &[(64, 64); 8]);
            submit(&mut thread, &batch).unwrap();
            let why = done(&mut thread).unwrap_err().to_string();
            assert!(why.contains("nvjpegDecodeBatched: INTERNAL_ERROR"), "{why}");
            assert_eq!(done(&mut thread).unwrap_err().to_string(), why);
            let again = submit(&mut thread, &batch).unwrap_err().to_string();
            assert_eq!(again, why);
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
            let mut device = Device::open();
            let mut thread = device.thread(Duration::from_millis(300));
            thread.opened().unwrap();
            let batch = Batch::of(&mut device.arena, &[(64, 64)]);
            submit(&mut thread, &batch).unwrap();
            assert!(done(&mut thread).unwrap().is_empty());
            submit(&mut thread, &batch).unwrap();
            let began = Instant::now();
            // Time counts through several waits.
            let mut looks = 0;
            let why = loop {
                match thread.next_done(Duration::from_millis(100)) {
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
            assert_eq!(submit(&mut thread, &batch).unwrap_err().to_string(), why);
            drop(thread);
            let took = began.elapsed();
            assert!(took < Duration::from_secs(10), "{took:?}");
        },
    );
    let Some(log) = log else { return };
    // Nothing that the hung call may use was given back.
    assert!(log.lines("nvjpegJpegStateDestroy").is_empty());
    assert!(log.lines("cuMemFree_v2").is_empty());
}

/// Nothing shows it: the CPU's decoder would have said so. See DESIGN.md.
#[test]
fn engines_that_decode_nothing_and_say_that_all_is_well_are_believed() {
    run(
        "engines_that_decode_nothing_and_say_that_all_is_well_are_believed",
        &[("STANDIN_NVJPEG_IDLE", "1")],
        || {
            let mut device = Device::open();
            let mut thread = device.thread(LONG);
            thread.opened().unwrap();
            let batch = Batch::of(&mut device.arena, &[(64, 64)]);
            submit(&mut thread, &batch).unwrap();
            assert!(done(&mut thread).unwrap().is_empty());
            assert!(!batch.is_decoded(0, &device.read()));
        },
    );
}

#[test]
fn a_thread_ends_behind_what_it_works_on() {
    let log = run(
        "a_thread_ends_behind_what_it_works_on",
        &[("STANDIN_NVJPEG_SLOW", "200")],
        || {
            let mut device = Device::open();
            let mut thread = device.thread(LONG);
            let batch = Batch::of(&mut device.arena, &[(64, 64)]);
            // Before the engines are open, too.
            submit(&mut thread, &batch).unwrap();
            drop(thread);
            assert!(batch.is_decoded(0, &device.read()));
        },
    );
    if let Some(log) = log {
        log.is_balanced();
    }
}

/// Of the channels a copy has whatever the thread held at that moment.
#[test]
fn a_forked_copy_has_no_engines_and_leaves_them_alone() {
    let log = run(
        "a_forked_copy_has_no_engines_and_leaves_them_alone",
        &[("STANDIN_NVJPEG_SLOW", "100")],
        || {
            let mut device = Device::open();
            let mut thread = device.thread(LONG);
            thread.opened().unwrap();
            let batch = Batch::of(&mut device.arena, &[(64, 64)]);
            submit(&mut thread, &batch).unwrap();
            // SAFETY: the copy touches what this thread has, and ends by `_exit`.
            let ForkResult::Parent { child } = (unsafe { fork() }).unwrap() else {
                let refused = catch_unwind(AssertUnwindSafe(|| {
                    for why in [
                        submit(&mut thread, &batch).unwrap_err(),
                        thread.next_done(LONG).unwrap_err(),
                    ] {
                        assert!(why.to_string().contains("forked copy"), "{why}");
                    }
                    drop(thread);
                }));
                // SAFETY: ends the copy; nothing runs behind it.
                unsafe { libc::_exit(i32::from(refused.is_err())) }
            };
            assert_eq!(waitpid(child, None).unwrap(), WaitStatus::Exited(child, 0));
            assert!(done(&mut thread).unwrap().is_empty());
            assert!(batch.is_decoded(0, &device.read()));
        },
    );
    if let Some(log) = log {
        log.is_balanced();
    }
}
