//! Where a run of views stands, and all that the view of a step depends on but the rank.
//!
//! In the consumer. A few numbers and a fingerprint: what a checkpoint keeps.

use serde::{Deserialize, Serialize};

use crate::scene::data::Split;
use crate::scene::run::SceneState;

/// From where a run of views goes on ([`Views::state`](crate::views::Views::state)).
///
/// The rank is left out: where processes train together one of them keeps the state, and
/// each goes on with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ViewsState {
    /// Version of this form.
    pub version: u32,
    /// The step that comes next.
    pub step: u64,
    pub seed: u64,
    pub shuffle: bool,
    /// Processes that take turns.
    pub world: u32,
    pub split: Split,
    pub downscale: u32,
    pub undistort: bool,
    /// Images of the split.
    pub images: u64,
    /// Fingerprint of cameras, poses, sizes, times and masks, as hexadecimal digits. Paths
    /// and colours are no part of it.
    pub scene: String,
}

impl ViewsState {
    /// The version that this crate writes and reads.
    pub const VERSION: u32 = 1;
}

impl SceneState for ViewsState {
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
            ("shuffle", self.shuffle.to_string()),
            ("the number of ranks", self.world.to_string()),
            ("split", self.split.name().to_owned()),
            ("downscale", self.downscale.to_string()),
            ("undistort", self.undistort.to_string()),
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

    fn state() -> ViewsState {
        ViewsState {
            version: ViewsState::VERSION,
            step: 7,
            seed: 3,
            shuffle: true,
            world: 1,
            split: Split::Train,
            downscale: 1,
            undistort: false,
            images: 50,
            scene: "ab".into(),
        }
    }

    #[test]
    fn what_differs_is_named_and_the_step_does_not_count() {
        let changed = |change: fn(&mut ViewsState)| {
            let mut other = state();
            change(&mut other);
            other.check_resumable(&state())
        };
        changed(|s| s.step = 9).unwrap();
        type Change = fn(&mut ViewsState);
        let others: [(&str, Change); 9] = [
            ("version", |s| s.version = 0),
            ("seed was 4 and is now 3", |s| s.seed = 4),
            ("shuffle was false", |s| s.shuffle = false),
            ("ranks was 2", |s| s.world = 2),
            ("split was eval", |s| s.split = Split::Eval),
            ("downscale was 2", |s| s.downscale = 2),
            ("undistort was true", |s| s.undistort = true),
            ("images was 49", |s| s.images = 49),
            ("scene", |s| s.scene = "cd".into()),
        ];
        for (named, change) in others {
            let text = changed(change).unwrap_err().to_string();
            assert!(text.contains(named), "{text}");
        }
        let text = serde_json::to_string(&state()).unwrap();
        assert_eq!(serde_json::from_str::<ViewsState>(&text).unwrap(), state());
    }
}
