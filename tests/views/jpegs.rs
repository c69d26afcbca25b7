//! JPEGs of a scene that a device decodes, with the stand-in for the NVIDIA driver in front: which
//! images it decodes, and what becomes of files that it flags or that are damaged.
//!
//! Of an image that the device decodes the stand-in makes pixels which follow from the coded data.
//! An image is flagged by the number of its coded bytes.

use std::fs;
use std::path::Path;

use featherload::scene::SceneDeviceMemory;
use featherload::views::{View, ViewField, Views, ViewsBuilder};
use featherload::{Device, Error};
use image::{ImageBuffer, Luma};

use crate::common::coded;
use crate::common::scene::{HEIGHT, IMAGES, WIDTH, Written};
use crate::common::standin::{Standin, with_standin};
use crate::views;

/// Workers decode these: a PNG, and a progressive JPEG.
const PNG: u32 = 4;
const PROGRESSIVE: u32 = 1;
/// Images that the device decodes.
const CODED: u64 = IMAGES as u64 - 2;

fn scene() -> Written {
    let png = fs::read(Written::new().image(PNG)).unwrap();
    let scene = Written::new().into_jpegs();
    fs::write(scene.image(PNG), png).unwrap();
    let progressive = scene.jpeg(PROGRESSIVE, true);
    fs::write(scene.image(PROGRESSIVE), progressive).unwrap();
    scene
}

/// Views that share no image with another run.
fn alone(scene: &Written, workers: usize) -> ViewsBuilder {
    views(scene, workers).share_store(false)
}

fn on_device(scene: &Written, workers: usize) -> Views {
    let views = alone(scene, workers).device(Device::Cuda(0));
    views.build().unwrap()
}

fn is_coded(image: u64) -> bool {
    ![PNG, PROGRESSIVE].map(u64::from).contains(&image)
}

/// What the stand-in makes of an image.
fn by_device(scene: &Written, image: u64) -> Vec<u8> {
    let file = fs::read(scene.image(image as u32)).unwrap();
    let sum: u32 = coded(&file).iter().map(|byte| u32::from(*byte)).sum();
    let lines = (0..HEIGHT).flat_map(|y| (0..3 * WIDTH).map(move |x| x / 3 + 3 * y));
    lines.map(|place| (sum + place) as u8).collect()
}

/// The same view; of an image that `is_decoded` by the device with the stand-in's pixels.
fn compare(scene: &Written, made: View, wanted: &View, is_decoded: impl Fn(u64) -> bool) {
    let made = made.to_host().unwrap();
    let at = (made.step(), made.index());
    assert_eq!(at, (wanted.step(), wanted.index()));
    let pixels = made.bytes(ViewField::Image).unwrap();
    match is_decoded(made.index()) {
        true => assert!(pixels == by_device(scene, made.index()), "{at:?}"),
        false => assert!(
            pixels == wanted.bytes(ViewField::Image).unwrap(),
            "{at:?}, not decoded by the device"
        ),
    }
}

fn with_scene(
    test: &str,
    environment: &[(&str, &str)],
    body: impl FnOnce(&Written),
) -> Option<(Standin, String)> {
    let (_, module) = module_path!().split_once("::").unwrap();
    with_standin(&format!("{module}::{test}"), environment, |_: &Path| {
        body(&scene());
    })
}

#[test]
fn the_device_decodes_what_it_takes_and_workers_the_others() {
    let ended = with_scene(
        "the_device_decodes_what_it_takes_and_workers_the_others",
        &[("STANDIN_PENDING", "2")],
        |scene| {
            for workers in [0, 1, 3] {
                let mut cpu = alone(scene, 0).build().unwrap();
                let mut gpu = on_device(scene, workers);
                assert!(!gpu.is_decoded());
                for _ in 0..IMAGES + 3 {
                    let (made, wanted) = (gpu.next_view().unwrap(), cpu.next_view().unwrap());
                    compare(scene, made, &wanted, is_coded);
                }
                assert!(gpu.is_decoded());
                let report = gpu.report().unwrap();
                assert_eq!(report.decoded, u64::from(IMAGES));
                assert_eq!(report.decoded_on_device, CODED);
                let memory = report.device.unwrap();
                assert!(memory.used_bytes <= memory.planned_bytes, "{memory:?}");
            }
        },
    );
    let Some((standin, _)) = ended else { return };
    let launches = standin.calls("cuLaunchKernel");
    assert!(launches.iter().any(|line| line.contains(" jpeg_colour ")));
}

#[test]
fn steps_may_change_while_images_are_decoded() {
    with_scene(
        "steps_may_change_while_images_are_decoded",
        &[("STANDIN_PENDING", "3"), ("STANDIN_SLOW", "2")],
        |scene| {
            let mut cpu = alone(scene, 0).build().unwrap();
            let mut gpu = on_device(scene, 2);
            for step in [0, 5, 6, 1, 9, 3, 4, 2, 30] {
                gpu.go_to(step);
                cpu.go_to(step);
                let (made, wanted) = (gpu.next_view().unwrap(), cpu.next_view().unwrap());
                compare(scene, made, &wanted, is_coded);
            }
        },
    );
}

#[test]
fn a_flagged_image_has_the_pixels_of_the_cpu() {
    let all = scene();
    let bytes = |image: u32| coded(&fs::read(all.image(image)).unwrap()).len();
    let flagged = [0, 3].map(bytes);
    let text = flagged.map(|bytes| bytes.to_string()).join(",");
    with_scene(
        "a_flagged_image_has_the_pixels_of_the_cpu",
        &[("STANDIN_FLAGS", &text), ("STANDIN_PENDING", "1")],
        |scene| {
            let bytes = |image: u64| {
                let file = fs::read(scene.image(image as u32)).unwrap();
                coded(&file).len()
            };
            let is_decoded = |image: u64| is_coded(image) && !flagged.contains(&bytes(image));
            for workers in [0, 2] {
                let mut cpu = alone(scene, 0).build().unwrap();
                let mut gpu = on_device(scene, workers);
                for _ in 0..IMAGES {
                    let (made, wanted) = (gpu.next_view().unwrap(), cpu.next_view().unwrap());
                    compare(scene, made, &wanted, is_decoded);
                }
                assert!(gpu.is_decoded());
            }
        },
    );
}

#[test]
fn a_file_that_cannot_be_decoded_has_the_words_of_the_cpu_and_is_tried_again() {
    with_scene(
        "a_file_that_cannot_be_decoded_has_the_words_of_the_cpu_and_is_tried_again",
        &[],
        |scene| {
            let good = |image: u32| scene.jpeg(image, image == PROGRESSIVE);
            let cut = |image: u32| good(image)[..good(image).len() - 40].to_vec();
            let words = |views: &mut Views| -> Error {
                loop {
                    if let Err(e) = views.next_view() {
                        return e;
                    }
                }
            };
            let mut cpu = alone(scene, 0).build().unwrap();
            let mut gpu = on_device(scene, 0);
            let bad = (0..IMAGES).find(|image| is_coded(u64::from(*image)) && *image > 0);
            let bad = bad.unwrap();
            fs::write(scene.image(bad), cut(bad)).unwrap();
            let (made, wanted) = (words(&mut gpu), words(&mut cpu));
            assert_eq!(made.to_string(), wanted.to_string());
            assert!(made.is_sample() && made.path().is_some(), "{made}");
            assert_eq!(gpu.step(), cpu.step());
            fs::write(scene.image(bad), good(bad)).unwrap();
            for _ in 0..IMAGES {
                let (made, wanted) = (gpu.next_view().unwrap(), cpu.next_view().unwrap());
                compare(scene, made, &wanted, is_coded);
            }
        },
    );
}

#[test]
fn images_in_a_shared_store_are_not_decoded_again() {
    with_scene(
        "images_in_a_shared_store_are_not_decoded_again",
        &[],
        |scene| {
            let mut cpu = views(scene, 0).build().unwrap();
            let of_cpu: Vec<View> = (0..IMAGES).map(|_| cpu.next_view().unwrap()).collect();
            let mut gpu = views(scene, 2).device(Device::Cuda(0)).build().unwrap();
            for wanted in &of_cpu {
                compare(scene, gpu.next_view().unwrap(), wanted, |_| false);
            }
            assert_eq!(gpu.report().unwrap().decoded_on_device, 0);
        },
    );
}

/// Needs no device.
#[test]
fn a_plan_has_the_decoder_where_the_device_decodes() {
    let scene = Written::enlarged(8).into_jpegs();
    let of = |views: ViewsBuilder| -> SceneDeviceMemory {
        let planned = views.device(Device::Cuda(0)).memory_plan().unwrap();
        planned.device.unwrap()
    };
    let all = of(views(&scene, 1));
    assert!(all.decoder_bytes > 0);
    let parts = [
        all.batch_bytes,
        all.scene_bytes,
        all.image_bytes,
        all.decoder_bytes,
    ];
    assert_eq!(all.total_bytes, parts.iter().sum::<u64>());
    let limited = |limit: u64| of(views(&scene, 1).gpu_memory_limit(limit));
    assert_eq!(limited(all.total_bytes).decoder_bytes, all.decoder_bytes);
    let less = limited(all.total_bytes - 1);
    assert_eq!((less.decoder_bytes, less.host_image_bytes), (0, 0));
    let depth = |_| Some(ImageBuffer::from_pixel(WIDTH, HEIGHT, Luma([7u16])));
    for (what, none) in [
        ("alpha", of(views(&scene, 1).alpha(true))),
        ("another size", of(views(&scene, 1).downscale(2))),
        ("PNG", of(views(&Written::new(), 1))),
        (
            "depths",
            of(views(&Written::with_depths(depth).into_jpegs(), 1)),
        ),
    ] {
        assert_eq!(none.decoder_bytes, 0, "{what}");
    }
}
