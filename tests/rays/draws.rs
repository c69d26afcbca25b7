//! What batches hold.

use featherload::rays::RaySampler;
use featherload::rays::{RayBatch, RayField};

use crate::common::command::{featherload, stderr};
use crate::common::scene::{HEIGHT, IMAGES, WIDTH, Written, color, mask};

/// Image, row and column of each ray, whose colour is that pixel's.
fn pixels(batch: &RayBatch) -> Vec<[u32; 3]> {
    let colors = batch.floats(RayField::Colors).unwrap();
    let indices = batch.indices().unwrap();
    assert_eq!(
        (indices.len(), colors.len()),
        (batch.len(), 3 * batch.len())
    );
    let pixels = indices.iter().zip(colors.chunks_exact(3));
    pixels
        .map(|(index, found)| {
            let [image, row, col] = index.map(|i| u32::try_from(i).unwrap());
            let wanted = color(image, row, col).map(|level| f32::from(level) / 255.0);
            assert_eq!(found, wanted, "image {image}, row {row}, column {col}");
            [image, row, col]
        })
        .collect()
}

#[test]
fn a_ray_has_the_colour_of_its_pixel_and_every_pixel_comes() {
    let scene = Written::new();
    let mut rays = scene.rays(2).rays(4000).build().unwrap();
    let mut seen = vec![0u32; (IMAGES * HEIGHT * WIDTH) as usize];
    for step in 0..30 {
        let batch = rays.next_batch().unwrap();
        assert_eq!((batch.step(), batch.len()), (step, 4000));
        for [image, row, col] in pixels(&batch) {
            seen[((image * HEIGHT + row) * WIDTH + col) as usize] += 1;
        }
    }
    // 20 for each pixel in the mean: none is left out.
    assert!(
        seen.iter().all(|&n| n > 0),
        "{}",
        seen.iter().filter(|&&n| n == 0).count()
    );
}

#[test]
fn origins_and_directions_are_those_of_camera_and_pose() {
    let scene = Written::new();
    let mut rays = scene.rays(0).build().unwrap();
    let batch = rays.next_batch().unwrap();
    let frames = rays
        .scene()
        .frames_of(featherload::scene::SceneSplit::Train);
    let floats = |field| batch.floats(field).unwrap();
    for (ray, index) in batch.indices().unwrap().iter().enumerate() {
        let frame = &rays.scene().frames[frames[index[0] as usize] as usize];
        let camera = &rays.scene().cameras[frame.camera as usize];
        let (x, y) = (index[2] as f64 + 0.5, index[1] as f64 + 0.5);
        let wanted = camera.unproject(x, y).unwrap();
        let unit = wanted.unit();
        for axis in 0..3 {
            let row = frame.pose.0[axis];
            let direction = row[0] * unit[0] + row[1] * unit[1] + row[2] * unit[2];
            let found = floats(RayField::Directions)[3 * ray + axis];
            assert!(
                (f64::from(found) - direction).abs() < 1e-6,
                "{found} {direction}"
            );
            let origin = f64::from(floats(RayField::Origins)[3 * ray + axis]);
            assert!((origin - row[3]).abs() < 1e-6);
        }
        let length = wanted.direction.iter().map(|d| d * d).sum::<f64>().sqrt();
        let norm = f64::from(floats(RayField::DirectionNorms)[ray]);
        assert!((norm - length).abs() < 1e-5);
        assert!(floats(RayField::PixelAreas)[ray] > 0.0);
        assert_eq!(batch.valid().unwrap()[ray], 1);
    }
    assert!(floats(RayField::Times).is_empty());
}

#[test]
fn masked_out_pixels_never_come_unless_masks_are_left_out() {
    // None; one pixel; all but one row; a checkerboard.
    let holds = |image: u32, row: u32, col: u32| match image {
        1 => (row, col) == (20, 36),
        2 => row != 3,
        3 => (row + col).is_multiple_of(2),
        4 => false,
        _ => true,
    };
    let scene = Written::with_masks(|image| {
        (1..=4)
            .contains(&image)
            .then(|| mask(|row, col| holds(image, row, col)))
    });
    for workers in [0, 2] {
        let mut rays = scene.rays(workers).rays(8000).build().unwrap();
        let mut counts = [0u32; IMAGES as usize];
        for _ in 0..4 {
            for [image, row, col] in pixels(&rays.next_batch().unwrap()) {
                assert!(
                    holds(image, row, col),
                    "image {image}, row {row}, column {col}"
                );
                counts[image as usize] += 1;
            }
        }
        // One of 4,231 pixels, and none.
        assert!((1..30).contains(&counts[1]) && counts[4] == 0, "{counts:?}");
        let half = counts[3] as f64 / counts[0] as f64;
        assert!((0.45..0.55).contains(&half), "{counts:?}");
    }
    let mut all = scene.rays(0).rays(8000).masks(false).build().unwrap();
    let all = pixels(&all.next_batch().unwrap());
    assert!(all.iter().any(|[image, ..]| *image == 4));
}

#[test]
fn patches_lie_within_the_mask() {
    let scene = Written::with_masks(|image| Some(mask(|row, col| row + image < 20 && col > 4)));
    let sampler = RaySampler::Patches {
        size: 4,
        dilation: 2,
    };
    let mut rays = scene.rays(2).rays(320).sampler(sampler).build().unwrap();
    for _ in 0..5 {
        let batch = rays.next_batch().unwrap();
        for patch in pixels(&batch).chunks_exact(16) {
            for (at, [image, row, col]) in patch.iter().enumerate() {
                let [of, first_row, first_col] = patch[0];
                assert_eq!(*image, of);
                assert_eq!(*row, first_row + 2 * (at as u32 / 4));
                assert_eq!(*col, first_col + 2 * (at as u32 % 4));
                assert!(row + image < 20 && *col > 4);
            }
        }
    }
    let e = rays.next_rays(321).unwrap_err().to_string();
    assert!(e.contains("320"), "{e}");
}

#[test]
fn images_join_by_and_by() {
    let scene = Written::new();
    let mut rays = scene.rays(1).joining(2).build().unwrap();
    let mut seen = std::collections::BTreeSet::new();
    for step in 0..6 {
        seen.extend(
            pixels(&rays.next_batch().unwrap())
                .iter()
                .map(|[image, ..]| *image),
        );
        assert_eq!(seen.len(), (2 * (step + 1)).min(IMAGES as usize));
    }
}

#[test]
fn smaller_images_have_smaller_rows_and_the_same_directions() {
    let scene = Written::new();
    let mut rays = scene.rays(0).downscale(2).build().unwrap();
    let batch = rays.next_batch().unwrap();
    for [_, row, col] in batch.indices().unwrap() {
        assert!(*row < i64::from(HEIGHT / 2) && *col < i64::from(WIDTH / 2));
    }
    let camera = rays.scene().cameras[0];
    let smaller = camera.scaled(WIDTH / 2, HEIGHT / 2);
    let middle = smaller.unproject(smaller.cx, smaller.cy).unwrap();
    assert_eq!(
        middle.unit(),
        camera.unproject(camera.cx, camera.cy).unwrap().unit()
    );
}

#[test]
fn each_ray_of_a_shutter_with_blur_has_a_moment_of_its_own() {
    let timing = [0.0, 0.3, 0.5, 0.2];
    let scene = Written::rolling(timing);
    let mut rays = scene.rays(1).build().unwrap();
    let batch = rays.next_batch().unwrap();
    let frames = rays
        .scene()
        .frames_of(featherload::scene::SceneSplit::Train);
    let (origins, directions) = (
        batch.floats(RayField::Origins).unwrap(),
        batch.floats(RayField::Directions).unwrap(),
    );
    let mut moments = Vec::new();
    for (ray, [image, row, col]) in batch.indices().unwrap().iter().enumerate() {
        let frame = &rays.scene().frames[frames[*image as usize] as usize];
        let shutter = frame.rolling_shutter.unwrap();
        let (x, y) = (*col as f64 + 0.5, *row as f64 + 0.5);
        let place = (x / f64::from(WIDTH), y / f64::from(HEIGHT));
        // When it was, by how far the camera had come.
        let origin: [f64; 3] = std::array::from_fn(|axis| f64::from(origins[3 * ray + axis]));
        let (from, to) = (frame.pose.centre(), shutter.end.centre());
        let along = |axis: usize| (to[axis] - from[axis], origin[axis] - from[axis]);
        let dots = (0..3).map(along).fold((0.0, 0.0), |(a, b), (way, gone)| {
            (a + way * way, b + way * gone)
        });
        let t = dots.1 / dots.0;
        let known = timing[0] + timing[1] * place.0 + timing[2] * place.1;
        let random = (t - known) / timing[3];
        assert!((-1e-3..1.001).contains(&random), "{t} {known}");
        moments.push(random);
        let camera = &rays.scene().cameras[frame.camera as usize];
        let unit = camera.unproject(x, y).unwrap().unit();
        let pose = shutter.pose_at(&frame.pose, place, random).0;
        for axis in 0..3 {
            let wanted = (0..3).map(|i| pose[axis][i] * unit[i]).sum::<f64>();
            let found = f64::from(directions[3 * ray + axis]);
            assert!((found - wanted).abs() < 1e-5, "{found} {wanted}");
        }
    }
    let spread = moments.iter().copied().fold(f64::MIN, f64::max);
    assert!(spread > 0.9, "{spread}");
}

#[test]
fn a_picture_has_a_dot_for_each_ray_in_its_colour() {
    let scene = Written::new();
    let file = scene.path().join("rays.svg");
    let message = ["rays", scene.path().to_str().unwrap(), "--rays", "64"];
    let more = [
        "--steps",
        "2",
        "--joining",
        "0",
        "--num-workers",
        "1",
        "--svg",
    ];
    let out = featherload(&[&message[..], &more, &[file.to_str().unwrap()]].concat());
    assert!(out.status.success(), "{}", stderr(&out));
    let svg = std::fs::read_to_string(&file).unwrap();
    // Seen from above and from the side.
    assert_eq!(svg.matches("<circle").count(), 2 * 64);
    let mut rays = scene.rays(1).rays(64).start(2).build().unwrap();
    let batch = rays.next_batch().unwrap();
    for [image, row, col] in batch.indices().unwrap() {
        let [r, g, b] = color(*image as u32, *row as u32, *col as u32);
        assert!(svg.contains(&format!("fill=\"#{r:02x}{g:02x}{b:02x}\"")));
    }
}
