//! The stages on a driver that is none: order of the calls, lives of slots and
//! buffers, errors.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;

use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, fork};

use crate::decode_plan::crop_row::CropStep;
use crate::device::UploadMode;
use crate::device::crop_launch::{KernelEmission, KernelRow, MASKED};
use crate::device::cuda::tests::ring::TestRing;
use crate::device::cuda::tests::standin::{with_compiled, with_standin};
use crate::device::cuda::{CropStage, CudaContext, DeviceRows, RowsStage};
use crate::device::probe;
use crate::device::stage_shapes::{CropShape, RowPlaces, TrailingBytes};
use crate::error::Error;
use crate::recipe::{ColorOrder, DataType, MemoryLayout, OutputFormat, Step};

const ROWS: usize = 3;
const CAPACITY: usize = 1024;
const TABLES: usize = 256;
/// Height and width of rows.
const SIZE: (u32, u32) = (4, 8);
const ROW_BYTES: usize = 4 * 8 * 3 * 4;

const NAME: &str = "device::cuda::standin_tests";

fn test(name: &str) -> String {
    format!("{NAME}::{name}")
}

fn shape(outputs: usize) -> CropShape {
    CropShape {
        rows: ROWS,
        source_bytes: ROWS * CAPACITY,
        outputs,
        output_bytes: ROWS * ROW_BYTES,
        dtype: DataType::F32,
        copies: true,
        jpegs: None,
    }
}

const PLACES: RowPlaces = RowPlaces {
    capacity: CAPACITY,
    tables: TABLES,
    pixels_end: CAPACITY,
};

fn emission() -> KernelEmission {
    let emission = OutputFormat {
        zero_channels: 0,
        patches: None,
        unit: 255.0,
        mean: [0.0; 3],
        std: [1.0; 3],
        dtype: DataType::F32,
        layout: MemoryLayout::Nhwc,
        order: ColorOrder::Rgb,
    };
    KernelEmission::new(&emission, SIZE)
}

/// Three rows, the last masked.
fn rows() -> Vec<KernelRow> {
    let row = |i: usize| KernelRow {
        pixels: (i * CAPACITY + TABLES) as u64,
        tables: (i * CAPACITY) as u64,
        width: 10 + i as u32,
        height: 10,
        across_taps: 2,
        down_taps: 2,
        out_width: SIZE.1,
        out_height: SIZE.0,
        ..KernelRow::default()
    };
    let masked = KernelRow {
        flags: MASKED,
        ..KernelRow::default()
    };
    vec![row(0), row(1), masked]
}

/// Of row `i`: tables of `10 * batch + i`, pixels of 100 more.
fn slot_bytes(batch: u8) -> Vec<u8> {
    let mut bytes = vec![0; ROWS * CAPACITY];
    for (i, row) in bytes.chunks_exact_mut(CAPACITY).enumerate() {
        let (tables, pixels) = row.split_at_mut(TABLES);
        tables.fill(10 * batch + i as u8);
        pixels.fill(100 + 10 * batch + i as u8);
    }
    bytes
}

/// What the stand-in's kernel makes of it.
fn expected(batch: u8) -> Vec<u8> {
    let mut bytes = vec![0; ROWS * ROW_BYTES];
    for (i, row) in bytes.chunks_exact_mut(ROW_BYTES).enumerate().take(2) {
        row.fill(100 + 10 * batch + i as u8);
        row[0] = 10 * batch + i as u8;
    }
    bytes
}

fn open() -> Arc<CudaContext> {
    CudaContext::open(0).unwrap()
}

fn crops(slots: u32, outputs: usize) -> (TestRing, CropStage) {
    let scene = TestRing::new(slots, ROWS as u32, ROWS * CAPACITY);
    let stage = CropStage::new(&open(), scene.ring(), shape(outputs)).unwrap();
    (scene, stage)
}

fn submit(scene: &mut TestRing, stage: &mut CropStage, batch: u8, read: UploadMode) -> DeviceRows {
    let slot = scene.held_slot(&slot_bytes(batch));
    stage
        .submit(slot, &rows(), PLACES, &emission(), read, &[])
        .unwrap()
}

#[test]
fn a_batch_is_copied_launched_and_marked_in_this_order() {
    let log = with_standin(
        &test("a_batch_is_copied_launched_and_marked_in_this_order"),
        &[],
        || {
            let (mut scene, mut stage) = crops(2, 2);
            for (batch, read) in [(1, UploadMode::InPlace), (2, UploadMode::Copied)] {
                let rows = submit(&mut scene, &mut stage, batch, read);
                assert_eq!(rows.len(), ROWS * ROW_BYTES);
                assert_eq!(rows.to_host().unwrap(), expected(batch), "{read:?}");
            }
            stage.drop_read_slots().unwrap();
            let times = stage.times();
            assert_eq!(times.batches, 2);
            assert_eq!(times.copied_bytes, 3 * (256 + 640));
            // 10 x 10 and 11 x 10 pixels; the third row is masked.
            assert_eq!(times.in_place_bytes, 300 + 330);
            // The stand-in's clock is the number of the event.
            for (seconds, spans) in [(times.copy_s, 5.0), (times.kernel_s, 3.0)] {
                assert!((seconds - spans * 1e-6).abs() < 1e-9, "{times:?}");
            }
        },
    );
    let Some(log) = log else { return };
    log.is_balanced();
    let descriptors = ["cuEventRecord", "cuMemcpyHtoDAsync_v2", "cuEventRecord"];
    let copy = ["cuEventRecord", "cuMemcpy2DAsync_v2", "cuEventRecord"];
    let launch = ["cuEventRecord", "cuLaunchKernel", "cuEventRecord"];
    let read_back = ["cuEventRecord", "cuMemcpyDtoHAsync_v2", "cuEventRecord"];
    let all = [
        "cuEventRecord",
        "cuMemcpyHtoDAsync_v2",
        "cuMemcpy2DAsync_v2",
        "cuLaunchKernel",
        "cuMemcpyDtoHAsync_v2",
    ];
    let in_place = [descriptors, copy, launch, read_back].concat();
    let copied = [descriptors, copy, launch, copy, launch, read_back].concat();
    assert_eq!(log.calls(&all), [in_place, copied].concat());
    // Tables alone; then 256 bytes of tables and 330 of pixels, to the next 64.
    let copies = log.lines("cuMemcpy2DAsync_v2");
    for (copy, size) in copies.iter().zip([" 256 x 3 ", " 640 x 1 ", " 640 x 2 "]) {
        assert!(copy.contains(size), "{copies:?}");
    }
    let launches = log.lines("cuLaunchKernel");
    for (launch, size) in launches.iter().zip(["1 x 1 x 3", "1 x 1 x 1", "1 x 1 x 2"]) {
        assert!(launch.contains(&format!(" crops {size} ")), "{launches:?}");
    }
    // The first part goes through the stream of the kernels, the others do not, and a
    // part is copied when the kernel has read what lay there.
    let stream = |line: &str| {
        line.split(' ')
            .find(|w| w.starts_with('s'))
            .map(str::to_owned)
    };
    assert_eq!(stream(copies[0]), stream(launches[0]));
    assert_ne!(stream(copies[1]), stream(launches[1]));
    assert_eq!(stream(copies[1]), stream(copies[2]));
    // Nothing is under way when the memory goes.
    let drained = log.position("cuStreamSynchronize");
    assert!(drained < log.position("cuMemHostUnregister"));
    assert!(drained < log.position("cuMemFree_v2"));
}

/// Contrast takes the mean of a row: only then is a batch read twice.
#[test]
fn a_batch_with_contrast_is_launched_twice() {
    let log = with_standin(
        &test("a_batch_with_contrast_is_launched_twice"),
        &[],
        || {
            let (mut scene, mut stage) = crops(2, 2);
            let mut with = rows();
            with[1].steps = 2;
            with[1].step[..2].copy_from_slice(
                &[Step::Brightness(1.5), Step::Contrast(0.5)].map(|s| CropStep::of(&s).unwrap()),
            );
            // Behind the steps that are done.
            let mut without = rows();
            without[0].step[0] = with[1].step[1];
            for (batch, rows) in [(1, &with), (2, &without), (3, &with)] {
                let slot = scene.held_slot(&slot_bytes(batch));
                let made = stage.submit(slot, rows, PLACES, &emission(), UploadMode::InPlace, &[]);
                let mut wanted = expected(batch);
                if rows[1].steps > 0 {
                    wanted[ROW_BYTES + 1] = wanted[ROW_BYTES + 2].wrapping_mul(3);
                }
                assert_eq!(made.unwrap().to_host().unwrap(), wanted, "{batch}");
            }
        },
    );
    let Some(log) = log else { return };
    log.is_balanced();
    let launches = log.lines("cuLaunchKernel");
    let passes: Vec<_> = launches
        .iter()
        .map(|l| l.rsplit(' ').next().unwrap())
        .collect();
    assert_eq!(passes, ["sums", "rows", "rows", "sums", "rows"]);
    assert!(launches.iter().all(|l| l.contains(" crops 1 x 1 x 3 ")));
    // The batch's event comes after both.
    let order = log.calls(&["cuLaunchKernel", "cuEventRecord", "cuMemcpyDtoHAsync_v2"]);
    let begin = order.iter().position(|c| *c == "cuLaunchKernel").unwrap();
    assert_eq!(
        order[begin..begin + 5],
        [
            "cuLaunchKernel",
            "cuLaunchKernel",
            "cuEventRecord",
            "cuEventRecord",
            "cuMemcpyDtoHAsync_v2"
        ]
    );
}

/// What lies where a part of a batch is copied to has been read: by the kernel of the
/// same part, or, when the batch before had other parts, by all of its kernels.
#[test]
fn a_part_is_copied_behind_the_kernels_that_read_there() {
    let log = with_standin(
        &test("a_part_is_copied_behind_the_kernels_that_read_there"),
        &[],
        || {
            let (mut scene, mut stage) = crops(4, 4);
            for (batch, count) in [(1, 3), (2, 3), (3, 2), (4, 3)] {
                let slot = scene.held_slot(&slot_bytes(batch));
                let rows = &rows()[..count];
                drop(stage.submit(slot, rows, PLACES, &emission(), UploadMode::Copied, &[]));
                stage.drop_read_slots().unwrap();
            }
        },
    );
    let Some(log) = log else { return };
    log.is_balanced();
    let order = log.all(&[
        "cuLaunchKernel",
        "cuEventRecord",
        "cuMemcpy2DAsync_v2",
        "cuStreamWaitEvent",
    ]);
    let word = |line: &str, begin: char| {
        let word = line.split(' ').skip(1).find(|w| w.starts_with(begin));
        word.unwrap().to_owned()
    };
    let copies = word(log.lines("cuMemcpy2DAsync_v2")[0], 's');
    // The event behind each launch, and of each copy the event that its stream waited for.
    let (mut behind, mut waited, mut last) = (Vec::new(), Vec::new(), None);
    for (i, line) in order.iter().enumerate() {
        if line.starts_with("cuLaunchKernel") {
            behind.push(word(order[i + 1], 'e'));
        } else if line.starts_with("cuStreamWaitEvent") && word(line, 's') == copies {
            last = Some(word(line, 'e'));
        } else if line.starts_with("cuMemcpy2DAsync_v2") {
            waited.push(
                last.take()
                    .map(|e| behind.iter().position(|b| *b == e).unwrap()),
            );
        }
    }
    // Launches 0 and 1 are of the first batch, and so on.
    let wanted = [
        None,
        None,
        Some(0),
        Some(1),
        Some(3),
        Some(3),
        Some(5),
        Some(5),
    ];
    assert_eq!(waited, wanted, "{order:?}");
}

#[test]
fn a_slot_is_kept_until_its_event_is_over() {
    let log = with_standin(
        &test("a_slot_is_kept_until_its_event_is_over"),
        &[("STANDIN_PENDING", "2")],
        || {
            let (mut scene, mut stage) = crops(1, 2);
            let rows = submit(&mut scene, &mut stage, 1, UploadMode::InPlace);
            // The batch may be given up long before.
            drop(rows);
            for _ in 0..2 {
                stage.drop_read_slots().unwrap();
                assert!(!scene.has_free());
                assert_eq!(stage.under_way(), 1);
            }
            stage.drop_read_slots().unwrap();
            assert!(scene.has_free());
            assert_eq!(stage.under_way(), 0);
            assert!(!stage.wait_one().unwrap());

            let _rows = submit(&mut scene, &mut stage, 2, UploadMode::Copied);
            assert!(!scene.has_free());
            assert!(stage.wait_one().unwrap());
            assert!(scene.has_free());
        },
    );
    let Some(log) = log else { return };
    log.is_balanced();
    // Three looks, then one wait: no busy loop.
    assert_eq!(log.lines("cuEventQuery").len(), 3);
    assert_eq!(log.lines("cuEventSynchronize").len(), 1);
}

#[test]
fn slots_under_way_come_back_when_the_stage_ends() {
    let log = with_standin(
        &test("slots_under_way_come_back_when_the_stage_ends"),
        &[("STANDIN_PENDING", "1000000")],
        || {
            let (mut scene, mut stage) = crops(2, 2);
            let first = submit(&mut scene, &mut stage, 1, UploadMode::InPlace);
            let second = submit(&mut scene, &mut stage, 2, UploadMode::InPlace);
            assert!(!first.is_ready().unwrap());
            assert!(!scene.has_free());
            drop(stage);
            assert!(scene.has_free());
            drop(scene);
            // The rows outlive the stage and the loader's ring, in any thread.
            thread::spawn(move || {
                first.wait().unwrap();
                assert_eq!(first.to_host().unwrap(), expected(1));
                drop(first);
            })
            .join()
            .unwrap();
            assert_eq!(second.to_host().unwrap(), expected(2));
        },
    );
    if let Some(log) = log {
        log.is_balanced();
        assert!(log.position("cuStreamSynchronize") < log.position("cuMemHostUnregister"));
        // The last batch holds the memory of all.
        let order = log.calls(&["cuMemcpyDtoHAsync_v2", "cuStreamDestroy_v2"]);
        let (copies, rows) = ("cuStreamDestroy_v2", "cuMemcpyDtoHAsync_v2");
        assert_eq!(order, [copies, rows, rows, "cuStreamDestroy_v2"]);
    }
}

#[test]
fn a_buffer_is_written_again_once_its_readers_have_passed() {
    let log = with_standin(
        &test("a_buffer_is_written_again_once_its_readers_have_passed"),
        &[],
        || {
            let (mut scene, mut stage) = crops(3, 1);
            let rows = submit(&mut scene, &mut stage, 1, UploadMode::InPlace);
            // SAFETY: the default streams live as long as the process.
            unsafe {
                rows.make_wait(2).unwrap();
                rows.make_wait(2).unwrap();
                rows.make_wait(1).unwrap();
            }
            let address = rows.address();
            drop(rows);
            let rows = submit(&mut scene, &mut stage, 2, UploadMode::InPlace);
            assert_eq!(rows.address(), address);
            // The readers' events are waited for before the memory goes, too.
            // SAFETY: as above.
            unsafe { rows.make_wait(2).unwrap() };
            drop(rows);
        },
    );
    let Some(log) = log else { return };
    log.is_balanced();
    let records = log.lines("cuEventRecord");
    let after_s2 = records.iter().find(|r| r.ends_with(" s2")).unwrap();
    let event = after_s2.split(' ').nth(1).unwrap().to_owned();
    let waits = log.lines("cuStreamWaitEvent");
    // Thrice for the ready event, twice by our stream, once more by s2.
    assert_eq!(waits.len(), 6, "{waits:?}");
    assert!(
        waits[3].ends_with(&event) && waits[3].contains(" s1"),
        "{waits:?}"
    );
    assert_eq!(log.lines("cuEventSynchronize").len(), 1);
    assert!(log.position("cuEventSynchronize") < log.position("cuMemFree_v2"));
}

#[test]
fn batches_that_are_held_are_named() {
    let log = with_standin(&test("batches_that_are_held_are_named"), &[], || {
        let (mut scene, mut stage) = crops(3, 2);
        let first = submit(&mut scene, &mut stage, 1, UploadMode::InPlace);
        let _second = submit(&mut scene, &mut stage, 2, UploadMode::InPlace);
        assert!(!stage.has_room());
        let slot = scene.held_slot(&slot_bytes(3));
        let e = stage.submit(slot, &rows(), PLACES, &emission(), UploadMode::InPlace, &[]);
        let e = e.unwrap_err();
        assert!(
            e.is_transient() && e.to_string().contains("all 2 batches"),
            "{e}"
        );
        drop(first);
        assert!(stage.has_room());
        let third = submit(&mut scene, &mut stage, 3, UploadMode::InPlace);
        assert_eq!(third.to_host().unwrap(), expected(3));
    });
    if let Some(log) = log {
        log.is_balanced();
    }
}

#[test]
fn after_an_error_of_the_device_every_call_gives_it() {
    let log = with_standin(
        &test("after_an_error_of_the_device_every_call_gives_it"),
        &[("STANDIN_FAIL", "cuLaunchKernel:700:2")],
        || {
            let (mut scene, mut stage) = crops(3, 3);
            let first = submit(&mut scene, &mut stage, 1, UploadMode::InPlace);
            // SAFETY: a default stream lives as long as the process.
            unsafe { first.make_wait(2).unwrap() };
            let slot = scene.held_slot(&slot_bytes(2));
            let e = stage.submit(slot, &rows(), PLACES, &emission(), UploadMode::InPlace, &[]);
            let e = e.unwrap_err().to_string();
            assert!(e.contains("cuLaunchKernel: CUDA_ERROR_700"), "{e}");
            assert!(e.contains("restart the process"), "{e}");
            let slot = scene.held_slot(&slot_bytes(3));
            for again in [
                stage
                    .submit(slot, &rows(), PLACES, &emission(), UploadMode::Copied, &[])
                    .map(drop),
                stage.drop_read_slots(),
                stage.wait_one().map(drop),
                first.wait(),
                first.is_ready().map(drop),
                first.to_host().map(drop),
                stage_context(&first).free_bytes().map(drop),
            ] {
                assert_eq!(again.unwrap_err().to_string(), e);
            }
            drop(first);
            drop(stage);
            assert_eq!(scene.into_free(), 3);
        },
    );
    if let Some(log) = log {
        log.is_balanced();
    }
}

fn stage_context(rows: &DeviceRows) -> Arc<CudaContext> {
    rows.context().clone()
}

#[test]
fn what_the_device_may_not_read_is_refused_and_nothing_is_done() {
    let log = with_standin(
        &test("what_the_device_may_not_read_is_refused_and_nothing_is_done"),
        &[],
        || {
            let (mut scene, mut stage) = crops(1, 1);
            let mut other = TestRing::new(1, ROWS as u32, ROWS * CAPACITY);
            let slot = other.held_slot(&[]);
            let e = stage.submit(slot, &rows(), PLACES, &emission(), UploadMode::InPlace, &[]);
            assert!(e.unwrap_err().to_string().contains("another ring"));

            let mut wrong = rows();
            wrong[1].pixels += 1 << 20;
            let slot = scene.held_slot(&slot_bytes(1));
            let e = stage.submit(slot, &wrong, PLACES, &emission(), UploadMode::InPlace, &[]);
            assert!(e.unwrap_err().to_string().contains("row 1"));
            let slot = scene.held_slot(&slot_bytes(1));
            let e = stage.submit(slot, &[], PLACES, &emission(), UploadMode::InPlace, &[]);
            assert!(
                e.unwrap_err()
                    .to_string()
                    .contains("0 rows of a batch of 3")
            );
            // Neither is the end.
            let rows = submit(&mut scene, &mut stage, 1, UploadMode::InPlace);
            assert_eq!(rows.to_host().unwrap(), expected(1));
        },
    );
    if let Some(log) = log {
        log.is_balanced();
        assert_eq!(log.lines("cuLaunchKernel").len(), 1);
        assert_eq!(log.lines("cuMemcpy2DAsync_v2").len(), 1);
    }
}

/// Parts of a slot go to their places after the rows.
#[test]
fn what_follows_the_rows_is_copied_after_them() {
    let log = with_standin(
        &test("what_follows_the_rows_is_copied_after_them"),
        &[],
        || {
            let part = |from, to, len| TrailingBytes { from, to, len };
            let bytes: Vec<u8> = (0..3000u32).map(|i| (i % 251) as u8).collect();
            let mut scene = TestRing::new(1, ROWS as u32, 3000);
            let mut stage = RowsStage::new(&open(), scene.ring(), 1, 2100).unwrap();
            let trailing = [part(2500, 2000, 60), part(1, 2060, 0), part(2900, 2060, 40)];
            let slot = scene.held_slot(&bytes);
            let rows = stage.submit_rows(slot, 2000, &trailing).unwrap();
            let expected = [&bytes[..2000], &bytes[2500..2560], &bytes[2900..2940]].concat();
            assert_eq!(rows.to_host().unwrap(), expected);
            stage.drop_read_slots().unwrap();
            assert_eq!(stage.times().copied_bytes, 2100);
            drop(rows);
            for (wrong, words) in [
                (part(2961, 2000, 40), "a slot of 3000"),
                (part(0, 1999, 1), "does not follow the 2000 bytes"),
                (part(usize::MAX, 2000, 40), "a slot of 3000"),
                (part(0, 2061, 40), "does not fit"),
            ] {
                let slot = scene.held_slot(&bytes);
                let e = stage.submit_rows(slot, 2000, &[wrong]).unwrap_err();
                assert!(e.to_string().contains(words), "{wrong:?}: {e}");
            }
        },
    );
    if let Some(log) = log {
        log.is_balanced();
        assert_eq!(log.lines("cuMemcpyHtoDAsync_v2").len(), 3);
    }
}

#[test]
fn finished_rows_are_one_copy() {
    let log = with_standin(&test("finished_rows_are_one_copy"), &[], || {
        let mut scene = TestRing::new(1, ROWS as u32, 4096);
        let mut stage = RowsStage::new(&open(), scene.ring(), 1, 3000).unwrap();
        let bytes: Vec<u8> = (0..2500u32).map(|i| i as u8).collect();
        let rows = stage
            .submit_rows(scene.held_slot(&bytes), 2500, &[])
            .unwrap();
        assert_eq!(rows.to_host().unwrap(), bytes);
        stage.drop_read_slots().unwrap();
        drop(rows);
        for (bytes, words) in [(3001, "does not fit"), (4097, "a slot of 4096")] {
            let e = stage
                .submit_rows(scene.held_slot(&[]), bytes, &[])
                .unwrap_err();
            assert!(e.to_string().contains(words), "{e}");
        }
    });
    if let Some(log) = log {
        log.is_balanced();
        assert_eq!(log.lines("cuMemcpyHtoDAsync_v2").len(), 1);
    }
}

/// What a stage's start says, with the environment of the test.
fn refusal() -> String {
    let scene = TestRing::new(1, ROWS as u32, ROWS * CAPACITY);
    let started = CudaContext::open(0).and_then(|c| CropStage::new(&c, scene.ring(), shape(2)));
    let e = started.unwrap_err();
    assert!(matches!(e, Error::Device { .. }), "{e:?}");
    e.to_string()
}

macro_rules! refused_starts {
    ($($name:ident: $environment:expr => $words:expr;)*) => {$(
        #[test]
        fn $name() {
            let log = with_standin(&test(stringify!($name)), &[$environment], || {
                let e = refusal();
                for words in $words {
                    assert!(e.contains(words), "`{words}` is not in: {e}");
                }
            });
            if let Some(log) = log {
                log.is_balanced();
            }
        }
    )*};
}

refused_starts! {
    an_old_driver_is_named: ("STANDIN_DRIVER", "11080") => ["CUDA 11.8", "needs 12.0", "525"];
    no_device_is_named: ("STANDIN_DEVICES", "0") => ["cuDeviceGetCount", "CUDA_VISIBLE_DEVICES"];
    an_old_device_is_named: ("STANDIN_CAPABILITY", "61") => ["Stand-in 0", "6.1", "7.0"];
    a_driver_that_does_not_start_is_named: ("STANDIN_FAIL", "cuInit:803:1") => ["cuInit", "two versions"];
    a_context_that_is_refused_is_named: ("STANDIN_FAIL", "cuDevicePrimaryCtxRetain:2:1") => ["cuDevicePrimaryCtxRetain", "batch or depth"];
    memory_that_is_not_there_is_named: ("STANDIN_FAIL", "cuMemAlloc_v2:2:2") => ["360 bytes of device memory", "7 GiB free", "needed for descriptors", "batch or depth"];
    the_last_batch_that_does_not_fit_is_named: ("STANDIN_FAIL", "cuMemAlloc_v2:2:5") => ["1.13 KiB of device memory", "needed for batches", "batch or depth"];
    a_ring_that_cannot_be_pinned_is_named: ("STANDIN_FAIL", "cuMemHostRegister_v2:304:1") => ["pin the ring (", "RLIMIT_MEMLOCK"];
    a_ring_that_cannot_be_mapped_is_named: ("STANDIN_FAIL", "cuMemHostGetDevicePointer_v2:801:1") => ["cuMemHostGetDevicePointer_v2"];
    a_kernel_that_is_refused_is_named: ("STANDIN_FAIL", "cuModuleLoadData:222:1") => ["cuModuleLoadData", "update it"];
    a_stream_that_is_refused_is_named: ("STANDIN_FAIL", "cuStreamCreate:2:1") => ["cuStreamCreate"];
}

#[test]
fn a_driver_without_a_function_is_an_error() {
    let log = with_compiled(
        &test("a_driver_without_a_function_is_an_error"),
        &["-DWITHOUT_EVENT_QUERY"],
        &[],
        || {
            let (mut scene, mut stage) = crops(1, 1);
            let _rows = submit(&mut scene, &mut stage, 1, UploadMode::InPlace);
            let e = stage.drop_read_slots().unwrap_err().to_string();
            assert!(e.contains("cuEventQuery") && e.contains("525"), "{e}");
        },
    );
    if let Some(log) = log {
        log.is_balanced();
    }
}

/// Whoever forks the consumer has all of it twice, and the device but once.
#[test]
fn a_forked_copy_may_not_use_it_and_leaves_it_alone() {
    let log = with_standin(
        &test("a_forked_copy_may_not_use_it_and_leaves_it_alone"),
        &[],
        || {
            let (mut scene, mut stage) = crops(2, 2);
            let rows = submit(&mut scene, &mut stage, 1, UploadMode::InPlace);
            // SAFETY: the copy touches what this thread has, and ends by `_exit`.
            let ForkResult::Parent { child } = (unsafe { fork() }).unwrap() else {
                let refused = catch_unwind(AssertUnwindSafe(|| {
                    let e = rows.wait().unwrap_err().to_string();
                    assert!(e.contains("forked copy"), "{e}");
                    assert!(stage.drop_read_slots().is_err());
                    drop(rows);
                    drop(stage);
                }));
                // SAFETY: ends the copy; nothing runs after it.
                unsafe { libc::_exit(i32::from(refused.is_err())) }
            };
            let ended = waitpid(child, None).unwrap();
            assert_eq!(ended, WaitStatus::Exited(child, 0));
            assert_eq!(rows.to_host().unwrap(), expected(1));
        },
    );
    if let Some(log) = log {
        log.is_balanced();
    }
}

#[test]
fn devices_are_listed_without_a_context() {
    let log = with_standin(
        &test("devices_are_listed_without_a_context"),
        &[("STANDIN_DEVICES", "2")],
        || {
            let report = probe();
            assert_eq!((report.cuda, report.missing), (Some((12, 4)), None));
            assert_eq!(report.devices.len(), 2);
            let device = &report.devices[1];
            assert_eq!((device.ordinal, device.name.as_str()), (1, "Stand-in 1"));
            assert_eq!((device.capability, device.total_bytes), ((9, 0), 8 << 30));
            let e = CudaContext::open(2).unwrap_err().to_string();
            assert!(
                e.contains("cuda:2 does not exist") && e.contains("cuda:1"),
                "{e}"
            );
        },
    );
    if let Some(log) = log {
        assert!(log.lines("cuDevicePrimaryCtxRetain").is_empty());
    }
}

#[test]
fn the_memory_that_is_left_is_read_at_the_start_and_now() {
    let log = with_standin(
        &test("the_memory_that_is_left_is_read_at_the_start_and_now"),
        &[],
        || {
            let context = open();
            assert_eq!(context.free_bytes_at_start(), 7 << 30);
            assert_eq!(context.free_bytes().unwrap(), 7 << 30);
            assert_eq!(context.device().name, "Stand-in 0");
            let scene = TestRing::new(1, ROWS as u32, ROWS * CAPACITY);
            let stage = CropStage::new(&context, scene.ring(), shape(2)).unwrap();
            assert_eq!(stage.pinned_bytes(), scene.ring().bytes());
        },
    );
    let Some(log) = log else { return };
    log.is_balanced();
    // What the shape says is what is taken, in the driver's steps, and 8 MiB.
    let taken = log.lines("cuMemAlloc_v2");
    let taken = taken.iter().map(|l| {
        let bytes = l.rsplit(' ').next().unwrap().parse::<u64>().unwrap();
        bytes.next_multiple_of(2 << 20)
    });
    assert_eq!(taken.sum::<u64>() + (8 << 20), shape(2).device_bytes());
}
