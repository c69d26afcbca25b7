//! A scene in the numbers of a device's kernel.
//!
//! In the consumer. Never in here: the device, its memory.

use crate::camera::{Camera, Lens, Unprojector};
use crate::device::ray_launch::{
    HAS_DEPTHS, HAS_TIMES, KernelCamera, KernelFrame, KernelRays, KernelShutter, PixelPlace,
    RayScene, lens,
};
use crate::jobs::rays::device_bytes::IMAGE_ALIGN;
use crate::jobs::rays::fields::{RayField, RayLayout};
use crate::jobs::scene::frames::StoredFrames;
use crate::jobs::scene::masks::Masks;
use crate::plan::rays::{RayTable, StepNumbers};

/// All of a scene but its pixels. Those of an image that is drawn from lie on the device as
/// long as `room` bytes there have room, in the order in which images join; the others are
/// read in the host's memory.
pub(crate) fn scene<'a>(
    frames: &StoredFrames,
    table: &'a RayTable,
    masks: &'a Masks,
    room: u64,
) -> RayScene<'a> {
    let (bytes, parts) = table.layout();
    let (words, begins) = masks.words();
    let mut shutters = Vec::new();
    let described = frames.frames.iter().zip(begins).enumerate();
    let described = described.map(|(image, (frame, mask))| {
        shutters.extend(frame.rolling_shutter.map(|shutter| KernelShutter {
            end: shutter.end.0,
            timing: shutter.timing,
        }));
        KernelFrame {
            pose: frame.pose.0,
            pixels: 0,
            mask,
            depths: frames.depth_begin(image).map_or(0, |begin| begin as u64),
            camera: frame.camera,
            time: frame.time,
            width: frames.camera(image).map_or(0, |camera| camera.width),
            shutter: match frame.rolling_shutter {
                Some(_) => shutters.len() as u32,
                None => 0,
            },
        }
    });
    let described: Vec<KernelFrame> = described.collect();
    let (places, pixel_bytes) = places(frames, table.drawn_images(), room);
    RayScene {
        table: bytes,
        parts,
        masks: words,
        cameras: frames.cameras.iter().map(camera).collect(),
        shutters,
        frames: described,
        places,
        pixel_bytes,
    }
}

/// Where the pixels of each image are read, and how many of them lie on the device.
fn places(frames: &StoredFrames, drawn: &[u32], room: u64) -> (Vec<PixelPlace>, u64) {
    // Images that nobody draws from are read nowhere.
    let mut places = vec![PixelPlace::Device(0); frames.frames.len()];
    let (mut end, mut fits) = (0u64, true);
    for &image in drawn {
        let Some(range) = frames.places.of(image as usize) else {
            continue;
        };
        let begin = end.next_multiple_of(IMAGE_ALIGN);
        let behind = begin + (range.end - range.start);
        // The first that does not fit ends it: those that join first are on the device.
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

fn camera(camera: &Camera) -> KernelCamera {
    let unprojector = Unprojector::new(camera);
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

/// The launch of a step's rays.
pub(crate) fn launch(step: &StepNumbers, layout: RayLayout, depth_scale: f64) -> KernelRays {
    let (width, height) = step.alike.unwrap_or_default();
    KernelRays {
        arrays: RayField::ALL.map(|field| layout.of(field).start as u64),
        total: step.total,
        key: step.key,
        joined: step.joined,
        even: u32::from(step.even),
        alike: [width, height],
        sampler: step.sampler,
        extent: step.extent,
        rays: layout.rays() as u32,
        has: [(RayField::Times, HAS_TIMES), (RayField::Depths, HAS_DEPTHS)]
            .into_iter()
            .filter(|(field, _)| layout.has(*field))
            .fold(0, |all, (_, bit)| all | bit),
        channels: layout.width(RayField::Colors) as u32,
        depth_scale,
        ..KernelRays::default()
    }
}
