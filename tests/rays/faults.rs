//! Images and masks that are not as they should be.

use std::fs;

use featherload::rays::Rays;
use image::{GrayImage, Luma, Rgb, RgbImage};

use crate::common::scene::{HEIGHT, WIDTH, Written, digests, least_limit, mask};

#[test]
fn an_image_that_breaks_is_named_and_tried_again() {
    let scene = Written::new();
    let wanted = digests(&mut scene.rays(0).build().unwrap(), 3);
    for workers in [0, 2] {
        let good = fs::read(scene.image(4)).unwrap();
        let mut rays = scene.rays(workers).build().unwrap();
        // Behind the look at its header, in front of its pixels.
        fs::write(scene.image(4), &good[..good.len() - 40]).unwrap();
        // Another worker may have decoded it before.
        let outcome = rays.next_batch();
        fs::write(scene.image(4), &good).unwrap();
        if let Err(e) = outcome {
            assert!(e.is_sample() && e.path() == Some(&scene.image(4)), "{e}");
            assert_eq!(rays.step(), 0);
        } else {
            assert!(workers > 0);
            rays.go_to(0);
        }
        assert!(digests(&mut rays, 3) == wanted, "{workers} workers");
    }
}

#[test]
fn an_image_of_another_size_than_then_is_named() {
    let scene = Written::new();
    let mut rays = scene.rays(0).build().unwrap();
    RgbImage::from_pixel(WIDTH, HEIGHT + 1, Rgb([1, 2, 3]))
        .save(scene.image(2))
        .unwrap();
    let e = rays.next_batch().unwrap_err().to_string();
    assert!(e.contains("02.png") && e.contains("37 x 24"), "{e}");
}

#[test]
fn a_mask_of_another_shape_is_refused_by_name() {
    let wrong = GrayImage::from_pixel(WIDTH, 2 * HEIGHT, Luma([255]));
    let scene = Written::with_masks(|image| {
        Some(if image == 5 {
            wrong.clone()
        } else {
            mask(|_, _| true)
        })
    });
    for workers in [0, 2] {
        let e = scene.rays(workers).build().unwrap_err().to_string();
        assert!(e.contains("masks/05.png"), "{e}");
    }
}

#[test]
fn masks_that_leave_nothing_are_an_error() {
    let scene = Written::with_masks(|_| Some(mask(|_, _| false)));
    let e = scene.rays(1).build().unwrap_err();
    assert!(e.is_usage(), "{e}");
}

#[test]
fn a_store_folder_that_is_not_there_is_named() {
    let scene = Written::new();
    let nowhere = |limit| {
        let rays = scene.rays(1).depth(1).memory_limit(limit);
        rays.store_folder("/nowhere/at/all").build()
    };
    // The images fit: nothing is written.
    drop(nowhere(64 << 20).unwrap());
    let e = nowhere(least_limit(&scene, 1)).unwrap_err().to_string();
    assert!(e.contains("/nowhere/at/all"), "{e}");
}

#[test]
fn numbers_that_cannot_work_are_refused_by_name() {
    let scene = Written::new();
    for (builder, named) in [
        (scene.rays(0).rays(0), "rays"),
        (scene.rays(0).rays(5).most_rays(4), "most_rays"),
        (scene.rays(0).rays(1 << 25), "most_rays"),
        (scene.rays(0).downscale(1000), "downscale"),
    ] {
        let e = builder.build().unwrap_err();
        assert!(e.is_usage() && e.to_string().contains(named), "{e}");
    }
    assert!(
        Rays::builder("/nowhere/at/all")
            .num_workers(0)
            .build()
            .is_err()
    );
}
