use std::fs::File;
use std::os::fd::AsRawFd;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::*;
use crate::recipe::{CenterCrop, ColorJitter, CutSamples, Mosaic, Recipe, Resize, Span};

fn program(recipe: Recipe) -> SampleProgram {
    SampleProgram::compile(&recipe).unwrap()
}

fn mosaic(window: u32) -> Mosaic {
    Mosaic {
        partner_window: Some(window),
        ..Mosaic::new(32)
    }
}

fn base() -> Recipe {
    Recipe::new("joined").then(Resize::longer(32))
}

fn shape(slots: u32) -> WindowShape {
    let program = program(base().then(mosaic(slots)));
    WindowShape::of(&program, StageNeeds::default(), u64::MAX).unwrap()
}

const KEPT: KeptPicture = KeptPicture {
    image: (500, 333),
    truncated: true,
};

/// Another map of the same memory, as a worker has it.
fn worker(window: &PictureWindow, lane: u32) -> PictureWindow {
    let fd = window.as_fd().try_clone_to_owned().unwrap();
    let mut worker = PictureWindow::from_fd(fd, window.shape).unwrap();
    worker.enter_worker(lane);
    worker
}

fn pixels_of(window: &PictureWindow, (place, id): (u64, u64), len: usize) -> Option<Vec<u8>> {
    let slot = window.hold(place)?;
    slot.picture_of(id)?;
    let mut pixels = vec![0; len];
    slot.copy_to(&mut pixels, &mut []).then_some(pixels)
}

#[test]
fn slots_are_those_of_the_largest_window_and_of_the_epoch() {
    let none = StageNeeds::default();
    let of = |recipe, places| WindowShape::of(&program(recipe), none, places);
    assert_eq!(of(base().then(CenterCrop::new(16)), 100), None);
    assert_eq!(of(base().then(Mosaic::new(32)), 100), None);
    let one = of(base().then(mosaic(40)), 100).unwrap();
    assert_eq!((one.slots, one.pixels, one.labels), (40, 3 * 32 * 32, 0));
    assert_eq!(of(base().then(mosaic(40)), 7).unwrap().slots, 7);
    let cut = CutSamples {
        partner_window: Some(60),
        ..CutSamples::default()
    };
    let resized = || base().then(mosaic(40)).then(Resize::exact(64, 64));
    assert_eq!(of(resized().then(cut), 100).unwrap().slots, 60);
    // Pictures of a sample differ.
    let jitter = ColorJitter {
        brightness: Span(0.5, 1.5),
        ..ColorJitter::default()
    };
    assert_eq!(of(base().then(jitter).then(mosaic(40)), 100), None);
    let classes = StageNeeds {
        classes: true,
        ..none
    };
    // A window of later joints alone serves no picture.
    let later = base().then(Mosaic::new(32)).then(Resize::exact(64, 64));
    let cut = CutSamples {
        partner_window: Some(60),
        ..CutSamples::default()
    };
    assert_eq!(of(later.then(cut), 100), None);
    let with_labels = WindowShape::of(&program(base().then(mosaic(40))), classes, 100);
    assert_eq!(with_labels.unwrap().labels, 3 * 32 * 32);
}

#[test]
fn a_picture_comes_back_in_another_process_as_it_was_kept() {
    let window = PictureWindow::create(shape(3)).unwrap();
    let (first, second) = (worker(&window, 0), worker(&window, 1));
    let pixels: Vec<u8> = (0..60).collect();
    first.hold(5).unwrap().keep(9, KEPT, &pixels, &[]);
    let slot = second.hold(5).unwrap();
    assert_eq!(slot.picture_of(9), Some(KEPT));
    assert_eq!(slot.picture_of(5), None);
    drop(slot);
    assert_eq!(pixels_of(&second, (5, 9), 60), Some(pixels.clone()));
    // The place of another slot, and the same slot three places later.
    assert_eq!(pixels_of(&second, (6, 9), 60), None);
    assert_eq!(pixels_of(&second, (8, 9), 60), Some(pixels));
    second.hold(8).unwrap().keep(4, KEPT, &[7; 3], &[]);
    assert_eq!(pixels_of(&first, (5, 9), 60), None);
    assert_eq!(pixels_of(&first, (5, 4), 3), Some(vec![7; 3]));
}

#[test]
fn nobody_uses_a_slot_that_another_uses() {
    let window = PictureWindow::create(shape(3)).unwrap();
    let (first, second) = (worker(&window, 0), worker(&window, 1));
    let held = first.hold(1).unwrap();
    assert!(second.hold(1).is_none() && first.hold(1).is_none());
    assert!(second.hold(0).is_some() && second.hold(4).is_none());
    drop(held);
    assert!(second.hold(1).is_some());
}

/// The death of a worker costs the picture that it was writing, until another worker has its lane.
#[test]
fn the_next_worker_of_a_lane_empties_what_the_last_one_used() {
    let window = PictureWindow::create(shape(4)).unwrap();
    let (dies, lives) = (worker(&window, 0), worker(&window, 1));
    dies.hold(0).unwrap().keep(1, KEPT, &[1], &[]);
    dies.hold(1).unwrap().keep(2, KEPT, &[2], &[]);
    lives.hold(2).unwrap().keep(3, KEPT, &[3], &[]);
    std::mem::forget(dies.hold(0));
    std::mem::forget(lives.hold(2));
    assert!(lives.hold(0).is_none());
    let next = worker(&window, 0);
    assert_eq!(pixels_of(&lives, (0, 1), 1), None);
    assert_eq!(pixels_of(&next, (1, 2), 1), Some(vec![2]));
    assert!(next.hold(2).is_none(), "its worker lives");
    next.hold(0).unwrap().keep(1, KEPT, &[5], &[]);
    assert_eq!(pixels_of(&lives, (0, 1), 1), Some(vec![5]));
}

#[test]
fn sizes_that_a_slot_has_not_are_refused() {
    let window = PictureWindow::create(shape(2)).unwrap();
    let most = window.shape.pixels as usize;
    window.hold(0).unwrap().keep(1, KEPT, &vec![3; most], &[]);
    assert_eq!(pixels_of(&window, (0, 1), most), Some(vec![3; most]));
    assert_eq!(pixels_of(&window, (0, 1), most + 1), None);
    assert!(!window.hold(0).unwrap().copy_to(&mut [], &mut [0]));
    // What cannot be kept replaces what is there.
    window
        .hold(0)
        .unwrap()
        .keep(2, KEPT, &vec![3; most + 1], &[]);
    assert_eq!(pixels_of(&window, (0, 1), 1), None);
    assert_eq!(pixels_of(&window, (0, 2), 1), None);
}

#[test]
fn slots_are_as_many_as_fit() {
    let shape = shape(100);
    assert_eq!(shape.within(u64::MAX), Some(shape));
    assert_eq!(shape.within(shape.bytes()).unwrap().slots, 100);
    let fewer = shape.within(shape.bytes() / 2).unwrap();
    assert!(
        fewer.bytes() <= shape.bytes() / 2 && fewer.slots > 40,
        "{fewer:?}"
    );
    assert_eq!(shape.within(5000), None);
    let large = Mosaic {
        partner_window: Some(1_000_000),
        ..Mosaic::new(640)
    };
    let large = program(Recipe::new("large").then(Resize::longer(640)).then(large));
    let large = WindowShape::of(&large, StageNeeds::default(), u64::MAX).unwrap();
    assert!(
        large.bytes() <= MOST_BYTES && large.slots == 873,
        "{large:?}"
    );
}

#[test]
fn sizes_that_no_memory_has_are_refused() {
    for (slots, pixels, labels) in [
        (0, 8, 0),
        (1, u64::MAX, 1),
        (1, u64::MAX, 0),
        (u64::MAX, 8, 0),
        (1 << 59, 0, 0),
        (1 << 40, 1 << 40, 0),
    ] {
        let shape = WindowShape {
            slots,
            pixels,
            labels,
        };
        assert!(PictureWindow::create(shape).is_err(), "{shape:?}");
    }
}

/// The pixels of a picture in the drill.
fn drilled(id: u64) -> [u8; DRILLED] {
    [id as u8; DRILLED]
}

const DRILLED: usize = 3 * 32 * 32;
const SLOTS: u32 = 3;
/// The memory and the lane of a process of the drill.
const DRILL: &str = "FEATHERLOAD_WINDOW_DRILL";

/// A worker that keeps pictures until it is killed.
struct DrillWorker(Child);

impl DrillWorker {
    fn start(window: &PictureWindow, lane: u32) -> Self {
        let fd = window.as_fd().as_raw_fd();
        let memory = format!("/proc/{}/fd/{fd}", std::process::id());
        let test = "killed_workers_leave_no_half_pictures_and_no_held_slots";
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", &format!("jobs::picture_window::tests::{test}")])
            .env(DRILL, format!("{lane} {memory}"))
            .stdout(Stdio::null())
            .spawn();
        Self(child.unwrap())
    }

    /// The work of such a process.
    fn run(drill: &str) {
        let (lane, memory) = drill.split_once(' ').unwrap();
        let file = File::options().read(true).write(true).open(memory);
        let mut window = PictureWindow::from_fd(file.unwrap().into(), shape(SLOTS)).unwrap();
        window.enter_worker(lane.parse().unwrap());
        for id in 0u64.. {
            if let Some(slot) = window.hold(id.wrapping_mul(7)) {
                slot.keep(id, KEPT, &drilled(id), &[]);
            }
        }
    }
}

impl Drop for DrillWorker {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Workers of two lanes are killed while they write pictures: what others read is a whole picture or
/// none, and the next worker of a lane frees what the last one held.
#[test]
fn killed_workers_leave_no_half_pictures_and_no_held_slots() {
    if let Ok(drill) = std::env::var(DRILL) {
        return DrillWorker::run(&drill);
    }
    let window = PictureWindow::create(shape(SLOTS)).unwrap();
    let reader = worker(&window, 9);
    let owners = || (0..SLOTS as usize).map(|slot| window.word(slot, OWNER).load(Acquire));
    let (mut held, mut whole) = (0, 0);
    for round in 0..40u64 {
        let workers = [0, 1].map(|lane| DrillWorker::start(&window, lane));
        // Both are at work: each has held a slot.
        for owner in [1, 2] {
            while !owners().any(|now| now == owner) {
                std::thread::yield_now();
            }
        }
        std::thread::sleep(Duration::from_micros(37 * round));
        drop(workers);
        held += owners().filter(|owner| *owner != 0).count();
        for place in 0..u64::from(SLOTS) {
            let Some(slot) = reader.hold(place) else {
                continue;
            };
            let Some(id) = slot.word(SAMPLE).load(Relaxed).checked_sub(1) else {
                continue;
            };
            assert_eq!(slot.picture_of(id), Some(KEPT));
            let mut pixels = [0; DRILLED];
            assert!(slot.copy_to(&mut pixels, &mut []));
            assert!(pixels == drilled(id), "half a picture in round {round}");
            whole += 1;
        }
        drop([0, 1].map(|lane| worker(&window, lane)));
        assert!(
            owners().all(|owner| owner == 0),
            "a slot is held in round {round}"
        );
        for place in 0..u64::from(SLOTS) {
            assert!(reader.hold(place).is_some());
        }
    }
    // Some died within a slot, and some pictures were there.
    assert!(held > 10 && whole > 20, "{held} {whole}");
}
