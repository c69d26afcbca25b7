//! The fields and checks that states of all kinds share.
//!
//! Runs in the consumer.

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;
use twox_hash::XxHash3_128;

use crate::camera::Camera;
use crate::error::{Error, Result};
use crate::scene::data::{Pose, RollingShutter, SceneSplit};
use crate::scene::run::split_frames::SplitFrames;

/// The last valid first step: more steps follow than any trainer needs.
const LAST_STEP: u64 = 1 << 62;

/// Checks that a run may start or continue at `step`.
///
/// # Errors
/// A step above the maximum.
pub(crate) fn check_first_step(step: u64) -> Result<()> {
    if step <= LAST_STEP {
        return Ok(());
    }
    Err(Error::option(
        "start",
        format!("`start` is {step}, which is too large: use at most {LAST_STEP}"),
    ))
}

/// Fields that states of all kinds have.
#[derive(Debug)]
pub struct SceneFacts {
    pub(crate) step: u64,
    pub(crate) seed: u64,
    pub(crate) split: SceneSplit,
    pub(crate) downscale: u32,
    /// Images of the split.
    pub(crate) images: u64,
    /// The result of [`fingerprint`].
    pub(crate) scene: String,
}

/// Position from which a run over a scene resumes, with everything that determines the batch of a
/// step, except the rank. Small enough for a checkpoint.
///
/// The rank is not part of it: one process of a training group saves the state, and all resume from
/// it.
pub trait SceneState: Debug + Serialize + DeserializeOwned {
    /// The next step.
    fn step(&self) -> u64;

    /// The same state at another step.
    #[must_use]
    fn at(&self, step: u64) -> Self;

    /// All fields except the step as text, with the names that errors use.
    fn facts(&self) -> Vec<(&'static str, String)>;

    /// # Errors
    /// The first field that differs from that of the run `now`: both values, and what to do.
    fn check_resumable(&self, now: &Self) -> Result<()> {
        let mut compared = self.facts().into_iter().zip(now.facts());
        match compared.find(|(then, now)| then != now) {
            None => Ok(()),
            Some(((what, then), (_, now))) => Err(Error::config(format!(
                "cannot resume: {what} was {then} and is now {now}. Use the old value, or start \
                 without a state"
            ))),
        }
    }
}

/// Defines the state of a kind: the shared fields, and the kind's own fields, each with the name
/// that errors use.
macro_rules! scene_state {
    (
        $(#[$about:meta])*
        $name:ident {
            $($(#[$meta:meta])* $own:ident: $value:ty = $fact:literal,)*
            // Fields that follow `downscale` in the file.
            $(; $(#[$late_meta:meta])* $late:ident: $late_value:ty = $late_fact:literal,)*
        }
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        #[non_exhaustive]
        pub struct $name {
            /// Version of the format.
            pub version: u32,
            /// The next step.
            pub step: u64,
            pub seed: u64,
            $($(#[$meta])* pub $own: $value,)*
            pub split: $crate::scene::data::SceneSplit,
            pub downscale: u32,
            $($(#[$late_meta])* pub $late: $late_value,)*
            /// Images of the split.
            pub images: u64,
            /// Fingerprint of cameras, poses, sizes, times and masks, in hexadecimal. Paths and
            /// colours do not count.
            pub scene: String,
        }

        impl $name {
            /// The version that this library writes and reads.
            pub const VERSION: u32 = 1;

            pub(super) fn new(
                facts: $crate::scene::run::SceneFacts,
                $($own: $value,)*
                $($late: $late_value,)*
            ) -> Self {
                Self {
                    version: Self::VERSION,
                    step: facts.step,
                    seed: facts.seed,
                    $($own,)*
                    split: facts.split,
                    downscale: facts.downscale,
                    $($late,)*
                    images: facts.images,
                    scene: facts.scene,
                }
            }
        }

        impl $crate::scene::run::SceneState for $name {
            fn step(&self) -> u64 {
                self.step
            }

            fn at(&self, step: u64) -> Self {
                Self {
                    step,
                    ..self.clone()
                }
            }

            fn facts(&self) -> Vec<(&'static str, String)> {
                vec![
                    ("the version of the state", self.version.to_string()),
                    ("seed", self.seed.to_string()),
                    $(($fact, serde_json::to_string(&self.$own).unwrap_or_default()),)*
                    ("split", self.split.name().to_owned()),
                    ("downscale", self.downscale.to_string()),
                    $(($late_fact, serde_json::to_string(&self.$late).unwrap_or_default()),)*
                    ("the number of images", self.images.to_string()),
                    (
                        "the scene (cameras, poses, sizes, times, masks)",
                        self.scene.clone(),
                    ),
                ]
            }
        }
    };
}

pub(super) use scene_state;

/// Data that determine the rays and views of an image. Without colours, alpha and depths: those
/// depend on options of a run, which may change.
#[derive(Serialize)]
struct Facts<'a> {
    camera: Option<&'a Camera>,
    pose: &'a Pose,
    time: f32,
    rolling_shutter: Option<&'a RollingShutter>,
    crop_radius: Option<f64>,
}

/// Fingerprint of a scene: of everything that determines its rays and views.
pub(crate) fn fingerprint(chosen: &SplitFrames, masks: &[Vec<u64>]) -> Result<String> {
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
            .map_err(|e| Error::protocol(format!("serialise the data of an image: {e}")))?;
        hash.write(&text);
        hash.write(&[u8::from(frame.has_mask)]);
    }
    for words in masks {
        hash.write(bytemuck::cast_slice(words));
    }
    Ok(format!("{:032x}", hash.finish_128()))
}
