//! Rays that a device makes are those of the CPU: pixels, colours, times and `valid` to the
//! bit, the rest within rounding. Through every lens, sampler and kind of scene. Without a
//! device these tests say `SKIP` and pass; with `FEATHERLOAD_REQUIRE_GPU=1` they fail.

use featherload::rays::RaySampler;
use featherload::rays::{RayBatch, RayField, Rays, RaysBuilder};
use featherload::{Device, Scene};
use serde_json::Value;

use crate::common::FEATHERLOAD;
use crate::common::command::{featherload, object};
use crate::common::cuda::is_there;
use crate::common::scene::{Written, mask};

const DEVICE: Device = Device::Cuda(0);

const SAMPLERS: [(RaySampler, u64); 4] = [
    (RaySampler::Uniform, 5000),
    (RaySampler::ByImage, 1003),
    (
        RaySampler::Patches {
            size: 3,
            dilation: 2,
        },
        9 * 211,
    ),
    (RaySampler::Pairs { radius: 4 }, 3002),
];

/// The same rays, by the CPU and on the device.
fn compare(what: &str, made: &RayBatch, wanted: &RayBatch) {
    assert_eq!(made.step(), wanted.step(), "{what}");
    assert_eq!(made.indices().unwrap(), wanted.indices().unwrap(), "{what}");
    assert!(made.valid().unwrap() == wanted.valid().unwrap(), "{what}");
    for field in [RayField::Colors, RayField::Depths, RayField::Times] {
        let same = made.bytes(field).unwrap() == wanted.bytes(field).unwrap();
        assert!(same, "{what}: {field:?}");
    }
    for field in [
        RayField::Origins,
        RayField::Directions,
        RayField::DirectionNorms,
        RayField::PixelAreas,
    ] {
        let (made, wanted) = (made.floats(field).unwrap(), wanted.floats(field).unwrap());
        assert_eq!(made.len(), wanted.len(), "{what}");
        for (i, (made, wanted)) in made.iter().zip(wanted).enumerate() {
            let (off, size) = (f64::from((made - wanted).abs()), f64::from(wanted.abs()));
            // Of areas what directions of 1e-9 make of them, and a rounding.
            let bound = match field {
                RayField::PixelAreas => 4e-9 * size.sqrt() + 2e-7 * size,
                _ => 1e-6 * size.max(1.0),
            };
            assert!(off <= bound, "{what}: {field:?} {i}: {made}, not {wanted}");
        }
    }
}

/// Builds both and compares some steps.
fn same_rays(what: &str, steps: usize, of: impl Fn() -> RaysBuilder) {
    let mut cpu = of().num_workers(0).build().unwrap();
    let mut gpu = of().num_workers(2).device(DEVICE).build().unwrap();
    for _ in 0..steps {
        let made = gpu.next_batch().unwrap();
        assert!(made.on_device().is_some() && made.valid().is_err());
        compare(what, &made.to_host().unwrap(), &cpu.next_batch().unwrap());
    }
    assert_eq!(gpu.state(), cpu.state());
}

#[test]
fn a_device_makes_the_rays_of_every_lens() {
    if !is_there() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_str().unwrap();
    object(&featherload(&["demo", "--scene", path, "--json"]));
    let manifest = std::fs::read(dir.path().join(".featherload-demo.json")).unwrap();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    for scene in manifest["scenes"].as_array().unwrap() {
        let name = scene["path"].as_str().unwrap();
        let scene = Scene::open(dir.path().join(name), &Default::default()).unwrap();
        for (sampler, rays) in SAMPLERS {
            same_rays(&format!("{name}, {sampler:?}"), 4, || {
                let scene = scene.clone();
                let builder = Rays::builder(scene).helper(FEATHERLOAD).sampler(sampler);
                let builder = builder.rays(rays).joining(2).seed(rays);
                builder.alpha(name == "rgba")
            });
        }
    }
}

#[test]
fn a_device_draws_within_masks_discs_and_shutters() {
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
    // Shutters without blur are among the demo's scenes.
    let scenes = [
        ("masks", Written::with_masks(some)),
        (
            "a shutter with blur",
            Written::rolling([0.1, 0.2, 0.4, 0.3]),
        ),
    ];
    for (what, scene) in &scenes {
        for (sampler, rays) in SAMPLERS {
            same_rays(&format!("{what}, {sampler:?}"), 3, || {
                scene.rays(0).sampler(sampler).rays(rays)
            });
        }
    }
    let disc = Written::with_masks(some);
    disc.crop(9.3);
    for (sampler, rays) in SAMPLERS {
        same_rays(&format!("a disc, {sampler:?}"), 3, || {
            disc.rays(0).sampler(sampler).rays(rays)
        });
    }
}

#[test]
fn jpegs_that_the_device_decodes_give_the_rays_of_the_cpu() {
    if !is_there() {
        return;
    }
    let scene = Written::enlarged(8).into_jpegs();
    for workers in [0, 2] {
        let of = |workers| scene.rays(workers).joining(2).share_store(false);
        let mut gpu = of(workers).device(DEVICE).build().unwrap();
        let mut cpu = of(0).build().unwrap();
        for _ in 0..6 {
            let made = gpu.next_batch().unwrap().to_host().unwrap();
            compare("JPEGs", &made, &cpu.next_batch().unwrap());
        }
        assert!(gpu.is_decoded());
        let report = gpu.report().unwrap();
        assert_eq!(report.decoded_on_device, report.images);
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
        let gpu = scene.rays(1).joining(3).device(DEVICE);
        match limit {
            Some(bytes) => gpu.gpu_memory_limit(bytes),
            None => gpu,
        }
    };
    let output = |limit| planned(limit).memory_plan().unwrap().device.unwrap();
    let all = output(None).total_bytes;
    let image = 3 * 32 * 32 * 37 * 23;
    for fewer in [0, 1, 3 * image, 7 * image] {
        let limit = all - fewer;
        let (output, mut gpu) = (output(Some(limit)), planned(Some(limit)).build().unwrap());
        assert_eq!(output.host_image_bytes > 0, fewer > 0);
        let mut cpu = scene.rays(0).joining(3).build().unwrap();
        for _ in 0..5 {
            let made = gpu.next_batch().unwrap().to_host().unwrap();
            compare("a limit", &made, &cpu.next_batch().unwrap());
        }
        let device = gpu.report().unwrap().device.unwrap();
        assert_eq!(device.planned_bytes, output.total_bytes);
        assert!(device.used_bytes <= device.planned_bytes && device.planned_bytes <= limit);
    }
    let least = scene.rays(1).device(DEVICE).gpu_memory_limit(1000).build();
    let text = least.unwrap_err().to_string();
    assert!(text.contains("gpu_memory_limit"), "{text}");
}

#[test]
fn steps_and_numbers_of_rays_may_change_and_held_batches_stay() {
    if !is_there() {
        return;
    }
    let scene = Written::new();
    let both = || scene.rays(2).most_rays(3000).joining(1);
    let mut gpu = both().device(DEVICE).depth(3).build().unwrap();
    let mut cpu = both().num_workers(0).build().unwrap();
    for (step, rays) in [
        (0, 10),
        (1, 3000),
        (9, 1),
        (4, 129),
        (5, 2999),
        (1 << 40, 128),
    ] {
        gpu.go_to(step);
        cpu.go_to(step);
        let made = gpu.next_rays(rays).unwrap().to_host().unwrap();
        compare("a step", &made, &cpu.next_rays(rays).unwrap());
    }
    gpu.go_to(3);
    cpu.go_to(3);
    let held = [gpu.next_batch().unwrap(), gpu.next_batch().unwrap()];
    for _ in 0..20 {
        drop(gpu.next_batch().unwrap());
    }
    for held in held {
        let wanted = cpu.next_batch().unwrap();
        compare("held", &held.to_host().unwrap(), &wanted);
    }
    assert!(
        gpu.next_rays(3001)
            .unwrap_err()
            .to_string()
            .contains("most_rays")
    );
}

#[test]
fn an_image_that_cannot_be_read_is_named_and_tried_again() {
    if !is_there() {
        return;
    }
    let scene = Written::new();
    for workers in [0, 2] {
        let mut gpu = scene.rays(workers).device(DEVICE).share_store(false);
        // Behind the look at its header, in front of its pixels; and so that no worker has
        // decoded it in between, it joins at step 1 or later.
        gpu = gpu.joining(1);
        let mut gpu = gpu.num_workers(workers).build().unwrap();
        let good: Vec<_> = (0..7)
            .map(|i| std::fs::read(scene.image(i)).unwrap())
            .collect();
        for (image, good) in (0..).zip(&good) {
            std::fs::write(scene.image(image), &good[..good.len() - 40]).unwrap();
        }
        // Some may have been decoded before; with zero workers none.
        let failed = (0..7).find_map(|_| gpu.next_batch().err());
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
        let mut cpu = scene.rays(0).joining(1).start(step).build().unwrap();
        let made = gpu.next_batch().unwrap().to_host().unwrap();
        compare("tried again", &made, &cpu.next_batch().unwrap());
    }
}

#[test]
fn a_limit_of_a_device_that_there_is_none_of_is_refused() {
    let scene = Written::new();
    let refused = scene.rays(0).gpu_memory_limit(1 << 30).build();
    let text = refused.unwrap_err().to_string();
    assert!(text.contains("gpu_memory_limit has no effect"), "{text}");
}
