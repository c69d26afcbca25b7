//! Views that a device makes are those of the CPU: images as they are to the bit, straightened
//! ones but for a level where a place rounds to the other side. Of every lens and kind of
//! scene. Without a device these tests say `SKIP` and pass; with `FEATHERLOAD_REQUIRE_GPU=1`
//! they fail.

use featherload::order::Rank;
use featherload::views::{View, ViewField, Views, ViewsBuilder};
use featherload::{Device, Scene};
use image::{ImageBuffer, Luma};
use serde_json::Value;

use crate::common::command::{featherload, object};
use crate::common::cuda::is_there;
use crate::common::scene::{HEIGHT, IMAGES, WIDTH, Written, mask};
use crate::common::{FEATHERLOAD, Random};
use crate::{digest, views};

const DEVICE: Device = Device::Cuda(0);

/// Numbers of straightened images that were compared, and those that were not the same.
#[derive(Default)]
struct Seen {
    numbers: u64,
    other: u64,
}

impl Seen {
    /// The same view, by the device and by the CPU.
    fn compare(&mut self, what: &str, made: &View, wanted: &View) {
        assert_eq!(
            (made.step(), made.index()),
            (wanted.step(), wanted.index()),
            "{what}"
        );
        assert_eq!(made.is_float(), wanted.is_float());
        for field in ViewField::ALL {
            assert_eq!(made.has(field), wanted.has(field), "{what}");
            let (made_bytes, wanted_bytes) =
                (made.bytes(field).unwrap(), wanted.bytes(field).unwrap());
            assert_eq!(made_bytes.len(), wanted_bytes.len(), "{what}: {field:?}");
            if field != ViewField::Image {
                assert!(made_bytes == wanted_bytes, "{what}: {field:?}");
            } else if made.is_float() {
                let numbers = |bytes: &[u8]| -> Vec<f32> {
                    let all = bytes.as_chunks::<4>().0.iter();
                    all.map(|number| f32::from_ne_bytes(*number)).collect()
                };
                for (made, wanted) in numbers(made_bytes).iter().zip(numbers(wanted_bytes)) {
                    self.numbers += 1;
                    self.other += u64::from(*made != wanted);
                    // A place may be 1/16384 pixel away.
                    assert!(
                        (made - wanted).abs() <= 1.3e-4,
                        "{what}: {made}, not {wanted}"
                    );
                }
            } else {
                for (made, wanted) in made_bytes.iter().zip(wanted_bytes) {
                    self.numbers += 1;
                    self.other += u64::from(made != wanted);
                    assert!(made.abs_diff(*wanted) <= 1, "{what}: {made}, not {wanted}");
                }
            }
        }
    }
}

/// Builds both and compares some steps.
fn same_views(what: &str, steps: u64, of: impl Fn() -> ViewsBuilder) -> Seen {
    let mut cpu = of().num_workers(0).build().unwrap();
    let mut gpu = of().num_workers(2).device(DEVICE).build().unwrap();
    let mut seen = Seen::default();
    for _ in 0..steps {
        let made = gpu.next_view().unwrap();
        assert!(made.on_device().is_some() && made.bytes(ViewField::Image).is_err());
        seen.compare(what, &made.to_host().unwrap(), &cpu.next_view().unwrap());
    }
    assert_eq!(gpu.state(), cpu.state());
    assert_eq!(gpu.cameras(), cpu.cameras());
    seen
}

#[test]
fn a_device_shows_and_straightens_through_every_lens() {
    if !is_there() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_str().unwrap();
    object(&featherload(&["demo", "--scene", path, "--json"]));
    let manifest = std::fs::read(dir.path().join(".featherload-demo.json")).unwrap();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    let mut all = Seen::default();
    let mut straightened = 0;
    for scene in manifest["scenes"].as_array().unwrap() {
        let name = scene["path"].as_str().unwrap();
        let scene = Scene::open(dir.path().join(name), &Default::default()).unwrap();
        for (float, straight) in [(false, false), (true, false), (false, true), (true, true)] {
            let of = || {
                let views = Views::builder(scene.clone()).helper(FEATHERLOAD);
                let views = views.undistort(straight).float(float);
                views.alpha(name == "rgba")
            };
            if straight && of().num_workers(0).build().is_err() {
                continue;
            }
            let images = of().num_workers(0).build().unwrap().epoch_len();
            let what = format!("{name}, float {float}, straight {straight}");
            let seen = same_views(&what, images + 2, of);
            match straight {
                false => assert_eq!(seen.other, 0, "{what}"),
                true => {
                    straightened += 1;
                    all.numbers += seen.numbers;
                    all.other += seen.other;
                }
            }
        }
    }
    println!("{} of {} numbers are not the same", all.other, all.numbers);
    assert!(straightened >= 10 && all.other * 1_000_000 <= all.numbers);
}

#[test]
fn masks_discs_and_depths_come_with_their_images() {
    if !is_there() {
        return;
    }
    let some = |image: u32| match image {
        1 => Some(mask(|row, col| row == 5 && col == 36)),
        2 => Some(mask(|row, _| row > 9)),
        3 => Some(mask(|_, _| false)),
        4 => Some(mask(|row, col| (row * 7 + col * 3) % 5 < 2)),
        _ => None,
    };
    let depth = |image: u32| {
        (image != 4).then(|| {
            ImageBuffer::from_fn(WIDTH, HEIGHT, |x, y| {
                Luma([(image * 3000 + y * 401 + x * 7) as u16])
            })
        })
    };
    let disc = Written::with_masks(some);
    disc.crop(9.3);
    for (what, scene) in [
        ("masks", Written::with_masks(some)),
        ("a disc", disc),
        ("depths", Written::with_depths(depth)),
    ] {
        let seen = same_views(what, 9, || views(&scene, 0));
        assert_eq!(seen.other, 0, "{what}");
    }
}

#[test]
fn jpegs_that_the_device_decodes_are_those_of_the_cpu() {
    if !is_there() {
        return;
    }
    for times in [1, 8] {
        let scene = Written::enlarged(times).into_jpegs();
        for workers in [0, 2] {
            let of = |workers| views(&scene, workers).share_store(false);
            let mut gpu = of(workers).device(DEVICE).build().unwrap();
            let mut cpu = of(0).build().unwrap();
            for _ in 0..IMAGES + 2 {
                let made = gpu.next_view().unwrap().to_host().unwrap();
                assert!(digest(&made) == digest(&cpu.next_view().unwrap()));
            }
            let report = gpu.report().unwrap();
            assert_eq!(report.decoded_on_device, u64::from(IMAGES));
            let memory = report.device.unwrap();
            assert!(memory.at_start_bytes <= memory.planned_bytes, "{memory:?}");
        }
    }
}

#[test]
fn damaged_jpegs_are_those_of_the_cpu() {
    if !is_there() {
        return;
    }
    let scene = Written::enlarged(8).into_jpegs();
    let mut random = Random(7);
    for round in 0..20 {
        for image in 0..IMAGES {
            let mut file = scene.jpeg(image, false);
            let begin = file.len() / 3;
            for _ in 0..round % 4 {
                let at = begin + random.below((file.len() - begin - 2) as u64) as usize;
                file[at] = random.next() as u8;
            }
            std::fs::write(scene.image(image), file).unwrap();
        }
        let of = |workers| views(&scene, workers).share_store(false);
        let mut gpu = of(2).device(DEVICE).build().unwrap();
        let mut cpu = of(0).build().unwrap();
        for step in 0..u64::from(IMAGES) {
            gpu.go_to(step);
            cpu.go_to(step);
            match (gpu.next_view(), cpu.next_view()) {
                (Ok(made), Ok(wanted)) => {
                    assert!(
                        digest(&made.to_host().unwrap()) == digest(&wanted),
                        "{step}"
                    );
                }
                (Err(made), Err(wanted)) => assert_eq!(made.to_string(), wanted.to_string()),
                (made, wanted) => panic!("round {round}, step {step}: {made:?}, {wanted:?}"),
            }
        }
    }
}

#[test]
fn images_beyond_the_limit_are_read_where_they_are() {
    if !is_there() {
        return;
    }
    // 2.6 MB an image.
    let scene = Written::enlarged(32);
    let planned = |limit: Option<u64>| {
        let gpu = views(&scene, 1).device(DEVICE);
        match limit {
            Some(bytes) => gpu.gpu_memory_limit(bytes),
            None => gpu,
        }
    };
    let output = |limit| planned(limit).memory_plan().unwrap().device.unwrap();
    let all = output(None).total_bytes;
    let image = u64::from(3 * 32 * 32 * WIDTH * HEIGHT);
    for fewer in [0, 1, 3 * image, 7 * image] {
        let limit = all - fewer;
        let (output, mut gpu) = (output(Some(limit)), planned(Some(limit)).build().unwrap());
        assert_eq!(output.host_image_bytes > 0, fewer > 0);
        let mut cpu = views(&scene, 0).build().unwrap();
        for _ in 0..9 {
            let made = gpu.next_view().unwrap().to_host().unwrap();
            assert!(digest(&made) == digest(&cpu.next_view().unwrap()));
        }
        let device = gpu.report().unwrap().device.unwrap();
        assert_eq!(device.planned_bytes, output.total_bytes);
        assert!(device.used_bytes <= device.planned_bytes && device.planned_bytes <= limit);
    }
    let least = views(&scene, 1)
        .device(DEVICE)
        .gpu_memory_limit(1000)
        .build();
    let text = least.unwrap_err().to_string();
    assert!(text.contains("gpu_memory_limit"), "{text}");
}

#[test]
fn steps_and_ranks_may_change_and_held_views_stay() {
    if !is_there() {
        return;
    }
    let scene = Written::new();
    for (rank, shuffled) in [
        (Rank::new(0, 1), true),
        (Rank::new(1, 3), true),
        (Rank::new(2, 3), false),
    ] {
        let both = || views(&scene, 2).rank(rank).shuffle(shuffled);
        let mut gpu = both().device(DEVICE).depth(3).build().unwrap();
        let mut cpu = both().num_workers(0).build().unwrap();
        for step in [0, 5, 6, 1, 40, 41, 1 << 40] {
            gpu.go_to(step);
            cpu.go_to(step);
            let made = gpu.next_view().unwrap().to_host().unwrap();
            assert!(digest(&made) == digest(&cpu.next_view().unwrap()), "{step}");
        }
        gpu.go_to(3);
        cpu.go_to(3);
        let held = [gpu.next_view().unwrap(), gpu.next_view().unwrap()];
        for _ in 0..20 {
            drop(gpu.next_view().unwrap());
        }
        for held in held {
            let wanted = digest(&cpu.next_view().unwrap());
            assert!(digest(&held.to_host().unwrap()) == wanted);
        }
    }
}

#[test]
fn an_image_that_cannot_be_read_is_named_and_tried_again() {
    if !is_there() {
        return;
    }
    let scene = Written::new();
    for workers in [0, 2] {
        let gpu = views(&scene, workers).device(DEVICE).share_store(false);
        let mut gpu = gpu.build().unwrap();
        let good: Vec<_> = (0..IMAGES)
            .map(|i| std::fs::read(scene.image(i)).unwrap())
            .collect();
        for (image, good) in (0..).zip(&good) {
            std::fs::write(scene.image(image), &good[..good.len() - 40]).unwrap();
        }
        // Some may have been decoded before; with zero workers none.
        let failed = (0..IMAGES).find_map(|_| gpu.next_view().err());
        let step = gpu.step();
        for (image, good) in (0..).zip(&good) {
            std::fs::write(scene.image(image), good).unwrap();
        }
        match failed {
            Some(e) => assert!(e.is_sample() && e.path().is_some(), "{e}"),
            None => assert!(workers > 0),
        }
        if workers == 0 {
            assert_eq!(step, 0);
        }
        let mut cpu = views(&scene, 0).start(step).build().unwrap();
        let made = gpu.next_view().unwrap().to_host().unwrap();
        assert!(digest(&made) == digest(&cpu.next_view().unwrap()));
    }
}

#[test]
fn a_fault_that_is_met_ahead_takes_no_step_and_is_told_by_its_own() {
    if !is_there() {
        return;
    }
    let scene = Written::new();
    let good = std::fs::read(scene.image(3)).unwrap();
    // Its header is whole, its pixels are not.
    let mut bad = good.clone();
    bad[good.len() / 2] ^= 0xff;
    std::fs::write(scene.image(3), &bad).unwrap();
    let shown = |workers| views(&scene, workers).shuffle(false);
    let mut gpu = shown(2).device(DEVICE).build().unwrap();
    for step in 0..3 {
        let view = gpu.next_view().unwrap();
        assert_eq!((view.step(), view.index()), (step, step));
        // Time enough to meet it.
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    for _ in 0..2 {
        let e = gpu.next_view().unwrap_err();
        assert!(
            e.is_sample() && e.path() == Some(scene.image(3).as_path()),
            "{e}"
        );
        assert_eq!(gpu.step(), 3);
    }
    gpu.go_to(4);
    assert_eq!(gpu.next_view().unwrap().index(), 4);
    std::fs::write(scene.image(3), &good).unwrap();
    gpu.go_to(3);
    let mut cpu = shown(0).start(3).build().unwrap();
    for _ in 0..9 {
        let made = gpu.next_view().unwrap().to_host().unwrap();
        assert!(digest(&made) == digest(&cpu.next_view().unwrap()));
    }
}

#[test]
fn a_limit_of_a_device_that_there_is_none_of_is_refused() {
    let scene = Written::new();
    let refused = views(&scene, 0).gpu_memory_limit(1 << 30).build();
    let text = refused.unwrap_err().to_string();
    assert!(text.contains("gpu_memory_limit has no effect"), "{text}");
}
