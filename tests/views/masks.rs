//! Masks of every kind: what they leave out, and their sizes.

use std::fs;
use std::path::Path;

use featherload::views::ViewField;
use image::{DynamicImage, GrayImage, ImageBuffer, Luma, Rgb, RgbImage};

use crate::common::scene::{HEIGHT, IMAGES, WIDTH, Written, mask};
use crate::views;

/// The left half is in.
fn left(_row: u32, col: u32) -> bool {
    col < WIDTH / 2
}

/// The masks that views show, of images that have one.
fn view_masks(scene: &Written, downscale: u32) -> Vec<Vec<u8>> {
    let shown = views(scene, 1).shuffle(false).downscale(downscale);
    let mut shown = shown.build().unwrap();
    let mut view = || shown.next_view().unwrap();
    let masks = (0..IMAGES).map(|_| view().bytes(ViewField::Mask).unwrap().to_vec());
    masks.filter(|mask| !mask.is_empty()).collect()
}

fn wanted(holds: impl Fn(u32, u32) -> bool) -> Vec<u8> {
    let pixels = (0..HEIGHT).flat_map(|row| (0..WIDTH).map(move |col| (row, col)));
    pixels.map(|(row, col)| u8::from(holds(row, col))).collect()
}

fn beside_images(scene: &Written, picture: &DynamicImage) {
    for image in 0..IMAGES {
        let name = format!("images/dynamic_mask_{image:02}.png");
        picture.save(scene.path().join(name)).unwrap();
    }
}

/// instant-ngp, `nerf_loader.cu`: a pixel whose red, green or blue is not 0 is left out.
#[test]
fn a_dynamic_mask_leaves_out_what_is_not_zero() {
    let blue = RgbImage::from_fn(WIDTH, HEIGHT, |x, y| Rgb([0, 0, u8::from(left(y, x))]));
    for picture in [DynamicImage::from(mask(left)), DynamicImage::from(blue)] {
        let scene = Written::new();
        beside_images(&scene, &picture);
        let found = view_masks(&scene, 1);
        assert_eq!(found.len(), IMAGES as usize);
        let right = wanted(|row, col| !left(row, col));
        assert!(found.iter().all(|mask| *mask == right));
        let mut rays = scene.rays(1).build().unwrap();
        assert!(
            rays.scene()
                .frames
                .iter()
                .all(|frame| frame.mask_is_inverted)
        );
        let batch = rays.next_batch().unwrap();
        let drawn = batch.indices().unwrap();
        assert!(
            drawn
                .iter()
                .all(|[_, row, col]| !left(*row as u32, *col as u32))
        );
    }
}

#[test]
fn other_masks_leave_out_what_is_zero() {
    let folder = |scene: &Written, name: &str| {
        fs::create_dir_all(scene.path().join(name)).unwrap();
        scene.path().join(name)
    };
    let named = Written::with_masks(|_| Some(mask(left)));
    let [png, twice] = [Written::new(), Written::new()];
    for image in 0..IMAGES {
        let to = folder(&png, "masks").join(format!("{image:02}.png"));
        mask(left).save(to).unwrap();
        let to = folder(&twice, "masks").join(format!("{image:02}.png.png"));
        mask(left).save(to).unwrap();
    }
    for scene in [named, png, twice] {
        let found = view_masks(&scene, 1);
        assert_eq!(found.len(), IMAGES as usize);
        assert!(found.iter().all(|mask| *mask == wanted(left)));
    }
}

#[test]
fn all_bits_of_a_mask_count() {
    for high in [1u16, 255, 256, 65535] {
        let deep = |_| GrayImage::new(WIDTH, HEIGHT).into();
        let scene = Written::with_masks(deep);
        let picture: ImageBuffer<Luma<u16>, Vec<u16>> =
            ImageBuffer::from_fn(WIDTH, HEIGHT, |x, y| Luma([high * u16::from(left(y, x))]));
        for image in 0..IMAGES {
            picture.save(mask_path(scene.path(), image)).unwrap();
        }
        assert!(
            view_masks(&scene, 1)
                .iter()
                .all(|mask| *mask == wanted(left)),
            "{high}"
        );
    }
}

fn mask_path(folder: &Path, image: u32) -> std::path::PathBuf {
    folder.join(format!("masks/{image:02}.png"))
}

/// `PIL.Image.resize(.., NEAREST)`, as nerfstudio makes masks smaller: the pixel that the centre
/// falls into.
#[test]
fn a_mask_of_another_size_is_resized_to_its_image() {
    let holds = |row: u32, col: u32| (row * 7 + col * 3).is_multiple_of(5);
    for (times, per) in [(3, 1), (2, 1), (1, 2)] {
        let (width, height) = (WIDTH * times / per, HEIGHT * times / per);
        let large = GrayImage::from_fn(width, height, |x, y| Luma([255 * u8::from(holds(y, x))]));
        let scene = Written::with_masks(|_| Some(large.clone()));
        let place = |at: u32, of: u32, among: u32| (2 * at + 1) * among / (2 * of);
        let right = wanted(|row, col| holds(place(row, HEIGHT, height), place(col, WIDTH, width)));
        assert!(
            view_masks(&scene, 1).iter().all(|mask| *mask == right),
            "{times} / {per}"
        );
    }
}

#[test]
fn a_mask_of_another_shape_is_refused_with_both_sizes() {
    for (width, height) in [(HEIGHT, WIDTH), (2 * WIDTH, HEIGHT)] {
        let wrong = GrayImage::from_pixel(width, height, Luma([255]));
        let scene = Written::with_masks(|image| (image == 2).then(|| wrong.clone()));
        for text in [
            views(&scene, 1).build().unwrap_err().to_string(),
            scene.rays(1).build().unwrap_err().to_string(),
        ] {
            assert!(text.contains("masks/02.png"), "{text}");
            for size in [format!("{width} x {height}"), format!("{WIDTH} x {HEIGHT}")] {
                assert!(text.contains(&size), "{text}");
            }
        }
        // Nobody reads it.
        views(&scene, 1).masks(false).build().unwrap();
    }
}
