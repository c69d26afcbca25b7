//! What the states of runs over a scene share.
//!
//! In the consumer.

use twox_hash::XxHash3_128;

use crate::error::{Error, Result};
use crate::jobs::scene::frames::SealedFrames;

/// The last step that a run may begin at: there are steps behind it for every trainer.
const LAST_STEP: u64 = 1 << 62;

/// That a run may begin at `step`.
///
/// # Errors
/// A step that is too far.
pub(in crate::loader) fn check_first_step(step: u64) -> Result<()> {
    if step <= LAST_STEP {
        return Ok(());
    }
    Err(Error::option(
        "start",
        format!("`start` of {step} is too far: use at most {LAST_STEP}"),
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
            "cannot resume: {what} was {then} and is {now} now; resume with the former, or \
             start without a state"
        ))),
    }
}

/// Tells a scene from others by what its rays and views are made of, but colours.
pub(in crate::loader) fn fingerprint(frames: &SealedFrames, masks: &[Vec<u64>]) -> String {
    let mut hash = XxHash3_128::new();
    hash.write(frames.bytes());
    for words in masks {
        hash.write(bytemuck::cast_slice(words));
    }
    format!("{:032x}", hash.finish_128())
}
