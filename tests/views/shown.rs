//! What views hold.

use std::fs;

use featherload::order::Rank;
use featherload::views::{View, ViewField, Views};

use crate::common::FEATHERLOAD;
use crate::common::command::{featherload, object};
use crate::common::scene::{HEIGHT, IMAGES, WIDTH, Written, color, mask};
use crate::views;

/// That the image of a view is the one of its number.
fn check_image(view: &View) {
    let pixels = view.bytes(ViewField::Image).unwrap();
    assert_eq!(
        (view.height(), view.width()),
        (HEIGHT as usize, WIDTH as usize)
    );
    assert_eq!(pixels.len(), (3 * HEIGHT * WIDTH) as usize);
    for (at, pixel) in pixels.as_chunks::<3>().0.iter().enumerate() {
        let (row, col) = (at as u32 / WIDTH, at as u32 % WIDTH);
        assert_eq!(
            *pixel,
            color(view.index() as u32, row, col),
            "row {row}, column {col}"
        );
    }
}

#[test]
fn a_view_is_the_image_of_its_number_and_an_epoch_shows_each_once() {
    let scene = Written::new();
    for workers in [0, 2] {
        let mut views = views(&scene, workers).build().unwrap();
        assert_eq!(
            (views.epoch_len(), views.images().len()),
            (u64::from(IMAGES), IMAGES as usize)
        );
        let mut orders = Vec::new();
        for epoch in 0..3 {
            let mut order = Vec::new();
            for at in 0..u64::from(IMAGES) {
                let view = views.next_view().unwrap();
                assert_eq!(view.step(), epoch * u64::from(IMAGES) + at);
                check_image(&view);
                assert!(!view.has(ViewField::Mask) && !view.is_float());
                order.push(view.index());
            }
            orders.push(order.clone());
            order.sort_unstable();
            assert_eq!(order, (0..u64::from(IMAGES)).collect::<Vec<_>>());
        }
        assert!(orders[0] != orders[1] && orders[1] != orders[2]);
    }
}

#[test]
fn without_shuffling_a_step_is_the_image_of_its_number() {
    let scene = Written::new();
    let mut views = views(&scene, 1).shuffle(false).build().unwrap();
    for step in [0, 1, 5, 2, u64::from(IMAGES) + 3] {
        views.go_to(step);
        let view = views.next_view().unwrap();
        assert_eq!(view.index(), step % u64::from(IMAGES));
        check_image(&view);
    }
}

#[test]
fn ranks_take_turns_in_one_order() {
    let scene = Written::new();
    let mut seen = Vec::new();
    let mut alone = views(&scene, 0).seed(3).build().unwrap();
    let order: Vec<u64> = (0..IMAGES)
        .map(|_| alone.next_view().unwrap().index())
        .collect();
    for rank in 0..3 {
        let mut views = views(&scene, 1)
            .seed(3)
            .rank(Rank::new(rank, 3))
            .build()
            .unwrap();
        let mine: Vec<u64> = (0..views.epoch_len())
            .map(|_| views.next_view().unwrap().index())
            .collect();
        let wanted: Vec<u64> = order
            .iter()
            .copied()
            .skip(rank as usize)
            .step_by(3)
            .collect();
        assert_eq!(mine, wanted);
        seen.extend(mine);
    }
    seen.sort_unstable();
    assert_eq!(seen, (0..u64::from(IMAGES)).collect::<Vec<_>>());
    let e = views(&scene, 0).rank(Rank::new(0, 8)).build().unwrap_err();
    assert!(
        e.to_string().contains("7 images are too few for 8 ranks"),
        "{e}"
    );
}

#[test]
fn a_mask_comes_with_its_image() {
    let holds = |image: u32, row: u32, col: u32| !(row * 3 + col + image).is_multiple_of(5);
    let scene = Written::with_masks(|image| {
        (image % 2 == 1).then(|| mask(|row, col| holds(image, row, col)))
    });
    let mut shown = views(&scene, 2).build().unwrap();
    for _ in 0..IMAGES {
        let view = shown.next_view().unwrap();
        check_image(&view);
        let (image, found) = (view.index() as u32, view.bytes(ViewField::Mask).unwrap());
        assert_eq!(view.has(ViewField::Mask), image % 2 == 1);
        assert_eq!(found.is_empty(), image % 2 == 0);
        for (at, found) in found.iter().enumerate() {
            let (row, col) = (at as u32 / WIDTH, at as u32 % WIDTH);
            assert_eq!(
                *found,
                u8::from(holds(image, row, col)),
                "row {row}, column {col}"
            );
        }
    }
    let mut without = views(&scene, 0).masks(false).build().unwrap();
    assert!((0..IMAGES).all(|_| !without.next_view().unwrap().has(ViewField::Mask)));
}

#[test]
fn floats_are_the_levels_from_0_to_1() {
    let scene = Written::new();
    let mut floats = views(&scene, 1).float(true).build().unwrap();
    let mut bytes = views(&scene, 0).build().unwrap();
    for _ in 0..IMAGES {
        let (a, b) = (floats.next_view().unwrap(), bytes.next_view().unwrap());
        assert!(a.is_float() && a.index() == b.index());
        let found = a.bytes(ViewField::Image).unwrap().as_chunks::<4>().0;
        let levels = b.bytes(ViewField::Image).unwrap();
        assert_eq!(found.len(), levels.len());
        for (found, level) in found.iter().zip(levels) {
            assert_eq!(f32::from_ne_bytes(*found), f32::from(*level) / 255.0);
        }
    }
}

#[test]
fn cameras_are_those_of_the_images_as_they_are_shown() {
    let scene = Written::new();
    let mut shown = views(&scene, 0).downscale(2).build().unwrap();
    let wanted = shown.scene().cameras[0].scaled(WIDTH / 2, HEIGHT / 2);
    assert_eq!(shown.cameras(), vec![wanted; IMAGES as usize]);
    let view = shown.next_view().unwrap();
    assert_eq!(
        (view.height(), view.width()),
        (HEIGHT as usize / 2, WIDTH as usize / 2)
    );
}

#[test]
fn an_image_that_breaks_is_named_and_tried_again() {
    let scene = Written::new();
    for workers in [0, 1] {
        let good = fs::read(scene.image(4)).unwrap();
        let shown = views(&scene, workers).shuffle(false).share_store(false);
        let mut shown = shown.start(4).depth(1).build().unwrap();
        fs::write(scene.image(4), &good[..good.len() - 40]).unwrap();
        let outcome = shown.next_view();
        fs::write(scene.image(4), &good).unwrap();
        match outcome {
            Err(e) => {
                assert!(e.is_sample() && e.path() == Some(&scene.image(4)), "{e}");
                assert_eq!(shown.step(), 4);
            }
            // The worker was at it before it broke.
            Ok(view) => {
                drop(view);
                assert!(workers > 0);
                shown.go_to(4);
            }
        }
        let view = shown.next_view().unwrap();
        assert_eq!(view.index(), 4);
        check_image(&view);
    }
}

#[test]
fn pixels_beyond_the_crop_radius_are_masked() {
    let upper = |image| (image == 2).then(|| mask(|row, _| row < 9));
    let scene = Written::with_masks(upper);
    scene.crop(8.0);
    let mut views = views(&scene, 1).shuffle(false).build().unwrap();
    for image in 0..3 {
        let view = views.next_view().unwrap();
        let found = view.bytes(ViewField::Mask).unwrap();
        assert_eq!(found.len(), (HEIGHT * WIDTH) as usize);
        for (at, holds) in found.iter().enumerate() {
            let (row, col) = (at as u32 / WIDTH, at as u32 % WIDTH);
            let x = f64::from(col) + 0.5 - f64::from(WIDTH) / 2.0;
            let y = f64::from(row) + 0.5 - f64::from(HEIGHT) / 2.0;
            let wanted = x * x + y * y <= 64.0 && (image != 2 || row < 9);
            assert_eq!(
                *holds == 1,
                wanted,
                "image {image}, row {row}, column {col}"
            );
        }
    }
    // A state is of one radius.
    let state = views.state();
    scene.crop(9.0);
    let mut other = self::views(&scene, 1).shuffle(false).build().unwrap();
    let e = other.resume(&state).unwrap_err().to_string();
    assert!(e.contains("the scene"), "{e}");
}

#[test]
fn masks_of_a_cropped_fisheye_leave_out_what_lies_beyond_straight_or_not() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_str().unwrap();
    object(&featherload(&["demo", "--scene", path, "--json"]));
    for straight in [false, true] {
        let views = Views::builder(dir.path().join("crop-radius"));
        let views = views.helper(FEATHERLOAD).num_workers(1).undistort(straight);
        let view = views.build().unwrap().next_view().unwrap();
        let mask = view.bytes(ViewField::Mask).unwrap();
        let pixels = view.bytes(ViewField::Image).unwrap().as_chunks::<3>().0;
        // The demo has magenta beyond the radius; its walls' levels are 8 to 248.
        let of_a_wall = |pixel: &[u8; 3]| pixel.iter().all(|level| (8..=248).contains(level));
        let (mut within, mut beyond) = (0, 0);
        for (pixel, holds) in pixels.iter().zip(mask) {
            match holds {
                1 => within += 1,
                _ => beyond += 1,
            }
            let is_right = of_a_wall(pixel) == (*holds == 1);
            assert!(is_right || straight && *holds == 0, "{pixel:?}, {holds}");
        }
        assert!(within > 1000 && beyond > 100, "{within}, {beyond}");
    }
}

#[test]
fn a_step_that_is_too_far_is_refused() {
    let scene = Written::new();
    let mut shown = views(&scene, 1).build().unwrap();
    let mut rays = scene.rays(1).build().unwrap();
    for step in [1 << 62, u64::MAX] {
        shown.go_to(step);
        rays.go_to(step);
        let too_far = step > 1 << 62;
        for e in [shown.next_view().err(), rays.next_batch().err()] {
            assert_eq!(e.is_some(), too_far, "{step}");
            assert!(e.is_none_or(|e| e.to_string().contains("too large")));
        }
    }
    let state = shown.state();
    shown.go_to(0);
    assert!(shown.resume(&state).is_err() && shown.step() == 0);
}
