//! A scene of 10,000 images.

use std::time::Instant;

use super::scenes_on_disk::{Folder, Model, as_is, jpeg};

/// A release build measures the time. Here it must only take less than minutes, and must not keep
/// the 2D points.
#[test]
fn ten_thousand_images_are_indexed() {
    const IMAGES: usize = 10_000;
    let folder = Folder::new();
    let mut model = Model::small();
    let first = folder.write("one.jpg", jpeg(8, 6, 1));
    std::fs::create_dir(folder.join("images")).unwrap();
    model.images = (0..IMAGES)
        .map(|i| {
            let name = format!("{i:05}.jpg");
            std::os::unix::fs::symlink(&first, folder.join("images").join(&name)).unwrap();
            let place = [i as f64, (i % 7) as f64, 0.0];
            ([1.0, 0.0, 0.0, 0.0], place, 1, name, (i % 40) as u64)
        })
        .collect();
    folder.write("sparse/0/cameras.bin", model.cameras_bin());
    folder.write("sparse/0/images.bin", model.images_bin());
    let began = Instant::now();
    let scene = folder.open(&as_is()).unwrap();
    let took = began.elapsed();
    assert_eq!((scene.frames.len(), scene.cameras.len()), (IMAGES, 1));
    assert!(took.as_secs() < 60, "{took:?}");
    println!("{IMAGES} images in {took:?}");
}
