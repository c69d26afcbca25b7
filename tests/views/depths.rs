//! Depths of pixels, and transparency: in views and in rays.

use std::fs;

use featherload::rays::RayField;
use featherload::views::{View, ViewField};
use image::{GrayImage, ImageBuffer, Luma, Rgb, RgbImage};

use crate::common::scene::{Depths, HEIGHT, IMAGES, WIDTH, Written, color, digests as rays_of};
use crate::{digests, views};

/// The level of a pixel: some are unknown.
fn level(image: u32, row: u32, col: u32) -> u16 {
    match (row + col) % 11 {
        0 => 0,
        _ => (5000 + image * 3000 + row * 401 + col * 7) as u16,
    }
}

fn depths(image: u32) -> Depths {
    ImageBuffer::from_fn(WIDTH, HEIGHT, |x, y| Luma([level(image, y, x)]))
}

/// All but one of the images have depths.
fn deep() -> Written {
    Written::with_depths(|image| (image != 4).then(|| depths(image)))
}

fn floats(view: &View, field: ViewField) -> Vec<f32> {
    let numbers = view.bytes(field).unwrap().as_chunks::<4>().0.iter();
    numbers.map(|number| f32::from_ne_bytes(*number)).collect()
}

#[test]
fn a_view_has_the_depths_of_its_image_in_the_scenes_units() {
    let scene = deep();
    for workers in [0, 2] {
        let mut views = views(&scene, workers).build().unwrap();
        let scale = views.scene().depth_unit * views.scene().to_scene.scale;
        assert!(scale > 0.0 && (scale - 0.001).abs() > 1e-5, "{scale}");
        for _ in 0..IMAGES {
            let view = views.next_view().unwrap();
            let (image, found) = (view.index() as u32, floats(&view, ViewField::Depth));
            assert_eq!(view.has(ViewField::Depth), image != 4);
            assert_eq!(found.is_empty(), image == 4);
            for (at, found) in found.iter().enumerate() {
                let (row, col) = (at as u32 / WIDTH, at as u32 % WIDTH);
                let wanted = f64::from(level(image, row, col)) * scale;
                assert_eq!(
                    *found, wanted as f32,
                    "image {image}, row {row}, column {col}"
                );
            }
        }
    }
    let mut without = views(&scene, 0).depths(false).build().unwrap();
    assert!((0..IMAGES).all(|_| !without.next_view().unwrap().has(ViewField::Depth)));
}

#[test]
fn smaller_images_have_the_depths_under_their_middles() {
    let scene = deep();
    let mut views = views(&scene, 1).downscale(2).build().unwrap();
    let scale = views.scene().depth_unit * views.scene().to_scene.scale;
    let (width, height) = (WIDTH / 2, HEIGHT / 2);
    for _ in 0..IMAGES {
        let view = views.next_view().unwrap();
        for (at, found) in floats(&view, ViewField::Depth).iter().enumerate() {
            let (row, col) = (at as u32 / width, at as u32 % width);
            let (y, x) = (
                (f64::from(row) + 0.5) / f64::from(height),
                (f64::from(col) + 0.5) / f64::from(width),
            );
            let from = (
                (y * f64::from(HEIGHT)) as u32,
                (x * f64::from(WIDTH)) as u32,
            );
            let wanted = f64::from(level(view.index() as u32, from.0, from.1)) * scale;
            assert_eq!(*found, wanted as f32, "row {row}, column {col}");
        }
    }
}

#[test]
fn depths_are_straightened_as_their_image_is() {
    let scene = deep();
    // Bent by more than a pixel.
    let file = scene.path().join("transforms.json");
    let text = fs::read_to_string(&file).unwrap();
    let bent = text.replace("\"k1\":0.05", "\"k1\":-0.2");
    assert_ne!(bent, text);
    fs::write(&file, bent).unwrap();
    for workers in [0, 2] {
        let mut views = views(&scene, workers).undistort(true).build().unwrap();
        let scale = views.scene().depth_unit * views.scene().to_scene.scale;
        let bent = views.scene().cameras[0];
        let straight = bent.undistorted().unwrap();
        let mut moved = 0;
        for _ in 0..IMAGES {
            let view = views.next_view().unwrap();
            for (at, found) in floats(&view, ViewField::Depth).iter().enumerate() {
                let (row, col) = (at / view.width(), at % view.width());
                let [x, y] = straight.source(col as f64 + 0.5, row as f64 + 0.5).unwrap();
                let edge = |at: f64| (at - at.round()).abs() < 1e-3;
                if edge(x) || edge(y) || x < 0.0 || y < 0.0 {
                    continue;
                }
                let (from_row, from_col) = (y as u32, x as u32);
                if from_row >= HEIGHT || from_col >= WIDTH {
                    continue;
                }
                let image = view.index() as u32;
                let wanted = f64::from(level(image, from_row, from_col)) * scale;
                assert_eq!(*found, wanted as f32, "row {row}, column {col}");
                let cropped = f64::from(level(image, row as u32, col as u32)) * scale;
                moved += usize::from(wanted != cropped);
            }
        }
        // Depths that are cropped, and not straightened, would differ.
        assert!(moved > 100, "{moved}");
    }
}

#[test]
fn rays_have_the_depths_of_their_pixels() {
    let scene = deep();
    let wanted = rays_of(&mut scene.rays(0).build().unwrap(), 20);
    for workers in [1, 3] {
        assert!(rays_of(&mut scene.rays(workers).build().unwrap(), 20) == wanted);
    }
    let mut rays = scene.rays(1).build().unwrap();
    let scale = rays.scene().depth_unit * rays.scene().to_scene.scale;
    let batch = rays.next_batch().unwrap();
    let found = batch.floats(RayField::Depths).unwrap();
    assert_eq!(
        (found.len(), batch.width(RayField::Depths)),
        (batch.len(), 1)
    );
    for (found, index) in found.iter().zip(batch.indices().unwrap()) {
        let [image, row, col] = index.map(|i| i as u32);
        let wanted = match image {
            4 => 0.0,
            _ => f64::from(level(image, row, col)) * scale,
        };
        assert_eq!(
            *found, wanted as f32,
            "image {image}, row {row}, column {col}"
        );
    }
    let mut without = scene.rays(1).depths(false).build().unwrap();
    let without = without.next_batch().unwrap();
    assert!(!without.has(RayField::Depths));
    assert!(without.floats(RayField::Depths).unwrap().is_empty());
    assert!(without.indices().unwrap() == batch.indices().unwrap());
}

#[test]
fn depths_that_cannot_be_used_are_named_with_what_to_do() {
    let wrong_size = ImageBuffer::from_pixel(HEIGHT, WIDTH, Luma([7u16]));
    let in_color = RgbImage::from_pixel(WIDTH, HEIGHT, Rgb([1, 2, 3]));
    type Spoil<'a> = Box<dyn Fn(&Written) + 'a>;
    let spoils: [(&str, Spoil<'_>); 4] = [
        (
            "another shape",
            Box::new(|s| wrong_size.save(s.depth(2)).unwrap()),
        ),
        (
            "in colours",
            Box::new(|s| in_color.save(s.depth(2)).unwrap()),
        ),
        (
            "not a readable PNG",
            Box::new(|s| {
                let good = fs::read(s.depth(2)).unwrap();
                fs::write(s.depth(2), &good[..good.len() / 2]).unwrap();
            }),
        ),
        (
            "No such file",
            Box::new(|s| fs::remove_file(s.depth(2)).unwrap()),
        ),
    ];
    for (named, spoil) in spoils {
        for workers in [0, 1] {
            let scene = deep();
            let shown = views(&scene, workers).shuffle(false).depth(1).start(1);
            let mut shown = shown.build().unwrap();
            let mut rays = scene.rays(workers).share_store(false).build().unwrap();
            spoil(&scene);
            // The worker may have been there before.
            for e in [
                (0..3).find_map(|_| shown.next_view().err()),
                rays.next_batch().err(),
            ] {
                let Some(e) = e else {
                    assert!(workers > 0, "{named}");
                    continue;
                };
                let text = e.to_string();
                assert!(e.is_sample() && e.path() == Some(&scene.depth(2)), "{text}");
                assert!(
                    matches!(e, featherload::Error::Sample { id: 2, .. }),
                    "{text}"
                );
                assert!(
                    text.contains(named) || text.contains("no such file"),
                    "{named}: {text}"
                );
            }
        }
    }
}

#[test]
fn alpha_is_a_fourth_channel_where_it_is_asked_for() {
    let alpha = |image: u32, row: u32, col: u32| (image * 20 + row * 9 + col) as u8;
    let scene = Written::with_alpha(alpha);
    for workers in [0, 2] {
        let mut shown = views(&scene, workers).alpha(true).build().unwrap();
        let mut on_white = views(&scene, workers).build().unwrap();
        for _ in 0..IMAGES {
            let (view, white) = (shown.next_view().unwrap(), on_white.next_view().unwrap());
            assert_eq!((view.channels(), white.channels()), (4, 3));
            let pixels = view.bytes(ViewField::Image).unwrap().as_chunks::<4>().0;
            let white = white.bytes(ViewField::Image).unwrap().as_chunks::<3>().0;
            for (at, [r, g, b, a]) in pixels.iter().enumerate() {
                let (row, col) = (at as u32 / WIDTH, at as u32 % WIDTH);
                let image = view.index() as u32;
                assert_eq!([*r, *g, *b], color(image, row, col));
                assert_eq!(*a, alpha(image, row, col));
                let seen = |v: u8| {
                    (u32::from(v) * u32::from(*a) + 255 * (255 - u32::from(*a)) + 127) / 255
                };
                assert_eq!(white[at].map(u32::from), [*r, *g, *b].map(seen));
            }
        }
        let mut rays = scene.rays(workers).alpha(true).build().unwrap();
        let batch = rays.next_batch().unwrap();
        let colors = batch.floats(RayField::Colors).unwrap();
        assert_eq!(
            (batch.width(RayField::Colors), colors.len()),
            (4, 4 * batch.len())
        );
        for (found, index) in colors
            .as_chunks::<4>()
            .0
            .iter()
            .zip(batch.indices().unwrap())
        {
            let [image, row, col] = index.map(|i| i as u32);
            let [r, g, b] = color(image, row, col);
            let wanted = [r, g, b, alpha(image, row, col)].map(|v| f32::from(v) / 255.0);
            assert_eq!(*found, wanted);
        }
    }
}

#[test]
fn what_is_opaque_has_an_alpha_of_255_and_grey_counts_as_color() {
    let scene = Written::new();
    GrayImage::from_fn(WIDTH, HEIGHT, |x, y| Luma([(x + y) as u8]))
        .save(scene.image(3))
        .unwrap();
    let mut shown = views(&scene, 1).alpha(true).build().unwrap();
    for _ in 0..IMAGES {
        let view = shown.next_view().unwrap();
        for (at, [r, g, b, a]) in view
            .bytes(ViewField::Image)
            .unwrap()
            .as_chunks::<4>()
            .0
            .iter()
            .enumerate()
        {
            let (row, col) = (at as u32 / WIDTH, at as u32 % WIDTH);
            let wanted = match view.index() {
                3 => [(row + col) as u8; 3],
                image => color(image as u32, row, col),
            };
            assert_eq!(([*r, *g, *b], *a), (wanted, 255));
        }
    }
}

#[test]
fn what_cannot_be_seen_does_not_show_where_images_are_made_smaller() {
    // White that is seen beside a colour that is not.
    let scene = Written::with_alpha(|_, _, col| if col % 4 < 2 { 255 } else { 0 });
    for image in 0..IMAGES {
        let picture = image::RgbaImage::from_fn(WIDTH, HEIGHT, |x, _| match x % 4 < 2 {
            true => image::Rgba([255, 255, 255, 255]),
            false => image::Rgba([255, 0, 0, 0]),
        });
        picture.save(scene.image(image)).unwrap();
    }
    let mut shown = views(&scene, 1).alpha(true).downscale(3).build().unwrap();
    let view = shown.next_view().unwrap();
    let mut between = 0;
    for [r, g, b, a] in view.bytes(ViewField::Image).unwrap().as_chunks::<4>().0 {
        if *a > 0 {
            assert!(*r > 250 && *g > 250 && *b > 250, "{r} {g} {b} {a}");
        }
        between += usize::from((1..255).contains(a));
    }
    assert!(between > 20);
}

#[test]
fn stores_with_depths_or_alpha_are_other_stores() {
    let scene = deep();
    let plain = digests(&mut views(&scene, 0).depths(false).build().unwrap(), 7);
    let mut first = views(&scene, 1).build().unwrap();
    let with = digests(&mut first, 7);
    assert!(first.is_decoded() && with != plain);
    let mut second = views(&scene, 1).depths(false).build().unwrap();
    assert!(!second.is_decoded());
    assert!(digests(&mut second, 7) == plain);
    let mut third = views(&scene, 1).build().unwrap();
    assert!(third.is_decoded());
    assert!(digests(&mut third, 7) == with);
    // Another depth of the same name is not the one that was decoded.
    depths(5).save(scene.depth(0)).unwrap();
    assert!(!views(&scene, 1).build().unwrap().is_decoded());
    assert!(!views(&scene, 1).alpha(true).build().unwrap().is_decoded());
    // Images and their order are the same: a run may go on with other fields.
    second.resume(&first.state()).unwrap();
    assert_eq!(second.step(), first.step());
}

#[test]
fn what_alpha_and_depths_take_is_counted() {
    let scene = deep();
    let needed = |alpha: bool, depths: bool| {
        let shown = views(&scene, 1).alpha(alpha).depths(depths);
        let refused = shown.memory_limit(1).memory_plan_with_refusal().unwrap();
        assert!(refused.1.is_some());
        refused.0.memory.total_bytes
    };
    let pixels = u64::from(WIDTH) * u64::from(HEIGHT);
    let plain = needed(false, false);
    // Colours and alpha apart, while they are decoded; levels of the file.
    assert!(needed(true, false) >= plain + 6 * pixels);
    assert!(needed(false, true) >= plain + 2 * pixels);
}
