//! Converts a scene to the numbers that the device's ray kernel reads.
//!
//! Runs in the consumer. Not here: the device and its memory.

use crate::device::ray_launch::{
    HAS_DEPTHS, HAS_TIMES, KernelFrame, KernelRays, KernelShutter, RayScene,
};
use crate::scene::draw::{RayTable, StepNumbers};
use crate::scene::jobs::device_images::kernel_numbers::{camera, places};
use crate::scene::jobs::rays::fields::{RayField, RayLayout};
use crate::scene::jobs::shared::frames::StoredFrames;
use crate::scene::jobs::shared::masks::SceneMasks;

/// Converts everything of a scene except its pixels. Pixels of images to draw from are on the
/// device, up to `room` bytes, in the order in which the images join. The kernel reads the others
/// from host memory.
pub(crate) fn scene<'a>(
    frames: &StoredFrames,
    table: &'a RayTable,
    masks: &'a SceneMasks,
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

/// Parameters to launch the rays of a step.
pub(crate) fn launch(step: &StepNumbers, layout: RayLayout, depth_scale: f64) -> KernelRays {
    let (width, height) = step.common_size.unwrap_or_default();
    KernelRays {
        arrays: RayField::ALL.map(|field| layout.of(field).start as u64),
        total: step.total,
        key: step.key,
        joined: step.joined,
        even: u32::from(step.images_equal),
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
