//! What the states of runs over a scene share.
//!
//! In the consumer.

use serde::Serialize;
use twox_hash::XxHash3_128;

use crate::camera::Camera;
use crate::data::scenes::{Pose, RollingShutter};
use crate::error::{Error, Result};
use crate::loader::scene::chosen::Chosen;

/// The last step that a run may begin at: there are steps behind it for every trainer.
const LAST_STEP: u64 = 1 << 62;

/// That a run may begin, or go on, at `step`.
///
/// # Errors
/// A step that is too far.
pub(in crate::loader) fn check_first_step(step: u64) -> Result<()> {
    if step <= LAST_STEP {
        return Ok(());
    }
    Err(Error::option(
        "start",
        format!("step {step} of `start` is too far: use at most {LAST_STEP}"),
    ))
}

/// Names the first that differs of what a run was and is, both values, and what to do.
///
/// # Errors
/// A difference.
pub(in crate::loader) fn check_same<'a>(
    compared: impl IntoIterator<Item = (&'a str, (String, String))>,
) -> Result<()> {
    match compared.into_iter().find(|(_, (then, now))| then != now) {
        None => Ok(()),
        Some((what, (then, now))) => Err(Error::config(format!(
            "cannot resume: {what} was {then} and is now {now}. Use the former, or start without \
             a state"
        ))),
    }
}

/// What the rays and views of an image follow from, but colours, alpha and depths: those are
/// options of a run, which may change.
#[derive(Serialize)]
struct Facts<'a> {
    camera: Option<&'a Camera>,
    pose: &'a Pose,
    time: f32,
    rolling_shutter: Option<&'a RollingShutter>,
    crop_radius: Option<f64>,
}

/// Tells a scene from others by what its rays and views are made of.
pub(in crate::loader) fn fingerprint(chosen: &Chosen, masks: &[Vec<u64>]) -> Result<String> {
    let mut hash = XxHash3_128::new();
    for (image, frame) in chosen.frames.frames.iter().enumerate() {
        let facts = Facts {
            camera: chosen.frames.camera(image),
            pose: &frame.pose,
            time: frame.time,
            rolling_shutter: frame.rolling_shutter.as_ref(),
            crop_radius: chosen.crop_radii.get(image).copied().flatten(),
        };
        let text = serde_json::to_vec(&facts)
            .map_err(|e| Error::protocol(format!("write what is known of an image: {e}")))?;
        hash.write(&text);
        hash.write(&[u8::from(frame.has_mask)]);
    }
    for words in masks {
        hash.write(bytemuck::cast_slice(words));
    }
    Ok(format!("{:032x}", hash.finish_128()))
}
