//! Where a run stands, and all that the rays of a step depend on but the rank.
//!
//! In the consumer. A few numbers and a fingerprint: what a checkpoint keeps.

use serde::{Deserialize, Serialize};

use crate::scene::data::Split;
use crate::scene::draw::RaySampler;
use crate::scene::run::SceneState;

/// From where a run of rays goes on ([`Rays::state`](crate::rays::Rays::state)).
///
/// The rank is left out: where processes train together one of them keeps the state, and
/// each goes on with it. So is the number of rays, which may change from step to step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct RaysState {
    /// Version of this form.
    pub version: u32,
    /// The step that comes next.
    pub step: u64,
    pub seed: u64,
    pub sampler: RaySampler,
    /// Images that join at each step.
    pub joining: u32,
    pub split: Split,
    pub downscale: u32,
    /// Images of the split.
    pub images: u64,
    /// Fingerprint of cameras, poses, sizes, times and masks, as hexadecimal digits. Paths
    /// and colours are no part of it.
    pub scene: String,
}

impl RaysState {
    /// The version that this crate writes and reads.
    pub const VERSION: u32 = 1;
}

impl SceneState for RaysState {
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
        let sampler = serde_json::to_string(&self.sampler).unwrap_or_default();
        vec![
            ("the version of the state", self.version.to_string()),
            ("seed", self.seed.to_string()),
            ("sampler", sampler),
            ("joining", self.joining.to_string()),
            ("split", self.split.name().to_owned()),
            ("downscale", self.downscale.to_string()),
            ("the number of images", self.images.to_string()),
            (
                "the scene (cameras, poses, sizes, times, masks)",
                self.scene.clone(),
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> RaysState {
        RaysState {
            version: RaysState::VERSION,
            step: 7,
            seed: 3,
            sampler: RaySampler::Uniform,
            joining: 4,
            split: Split::Train,
            downscale: 1,
            images: 50,
            scene: "ab".into(),
        }
    }

    #[test]
    fn what_differs_is_named_and_the_step_does_not_count() {
        let now = RaysState { step: 9, ..state() };
        state().check_resumable(&now).unwrap();
        let others = [
            (
                "version",
                RaysState {
                    version: 0,
                    ..state()
                },
            ),
            ("seed was 4 and is now 3", RaysState { seed: 4, ..state() }),
            (
                "sampler was {\"pairs\":{\"radius\":3}} and is now \"uniform\"",
                RaysState {
                    sampler: RaySampler::Pairs { radius: 3 },
                    ..state()
                },
            ),
            (
                "joining",
                RaysState {
                    joining: 0,
                    ..state()
                },
            ),
            (
                "split was eval and is now train",
                RaysState {
                    split: Split::Eval,
                    ..state()
                },
            ),
            (
                "downscale was 2",
                RaysState {
                    downscale: 2,
                    ..state()
                },
            ),
            (
                "images was 49",
                RaysState {
                    images: 49,
                    ..state()
                },
            ),
            (
                "scene",
                RaysState {
                    scene: "cd".into(),
                    ..state()
                },
            ),
        ];
        for (named, other) in others {
            let text = other.check_resumable(&state()).unwrap_err().to_string();
            assert!(text.contains(named), "{text}");
        }
        let text = serde_json::to_string(&state()).unwrap();
        assert_eq!(serde_json::from_str::<RaysState>(&text).unwrap(), state());
    }
}
