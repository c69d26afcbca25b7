//! Converts cameras and places of images to the numbers that the device's kernels read.
//!
//! Runs in the consumer. Not here: the device and its memory.

use crate::camera::{Camera, CameraUnprojector, Lens};
use crate::device::scene_launch::{KernelCamera, PixelPlace, lens};
use crate::scene::jobs::device_images::device_bytes::IMAGE_ALIGN;
use crate::scene::jobs::shared::frames::StoredFrames;

/// Returns where the kernel reads the pixels of each image, and the bytes of the images on the
/// device. The first images of `order` are on the device, up to `room` bytes.
pub(crate) fn places(frames: &StoredFrames, order: &[u32], room: u64) -> (Vec<PixelPlace>, u64) {
    // Images that are not in `order` are never read.
    let mut places = vec![PixelPlace::Device(0); frames.frames.len()];
    let (mut end, mut fits) = (0u64, true);
    for &image in order {
        let Some(range) = frames.places.of(image as usize) else {
            continue;
        };
        let begin = end.next_multiple_of(IMAGE_ALIGN);
        let behind = begin + (range.end - range.start);
        // Stop at the first image that does not fit, so that the images needed first are on the
        // device.
        fits &= behind <= room;
        places[image as usize] = match fits {
            true => {
                end = behind;
                PixelPlace::Device(begin)
            }
            false => PixelPlace::Host(range.start),
        };
    }
    (places, end)
}

/// Converts a camera for the kernels.
pub(crate) fn camera(camera: &Camera) -> KernelCamera {
    let unprojector = CameraUnprojector::new(camera);
    let four = |k: [f64; 4]| [k[0], k[1], k[2], k[3], 0.0, 0.0];
    let (kind, k, p, s) = match camera.lens {
        Lens::Pinhole => (lens::PINHOLE, [0.0; 6], [0.0; 2], [0.0; 4]),
        Lens::Brown { k, p } => (lens::BROWN, four(k), p, [0.0; 4]),
        Lens::Rational { k, p } => (lens::RATIONAL, k, p, [0.0; 4]),
        Lens::Fisheye { k } => (lens::FISHEYE, four(k), [0.0; 2], [0.0; 4]),
        Lens::Fisheye624 { k, p, s } => (lens::FISHEYE624, k, p, s),
        Lens::ThinPrismFisheye { k, p, s } => {
            (lens::THIN_PRISM, four(k), p, [s[0], s[1], 0.0, 0.0])
        }
        Lens::Fov { omega } => {
            let k = [omega, 0.0, 0.0, 0.0, 0.0, 0.0];
            (lens::FOV, k, [0.0; 2], [0.0; 4])
        }
        Lens::Equirectangular => (lens::EQUIRECTANGULAR, [0.0; 6], [0.0; 2], [0.0; 4]),
        Lens::Orthographic => (lens::ORTHOGRAPHIC, [0.0; 6], [0.0; 2], [0.0; 4]),
    };
    KernelCamera {
        focal: [camera.fx, camera.fy],
        centre: [camera.cx, camera.cy],
        size: [f64::from(camera.width), f64::from(camera.height)],
        limit: unprojector.optics().limits().radius,
        k,
        p,
        s,
        lens: kind,
        steps: unprojector.steps(),
        zero: 0,
    }
}
