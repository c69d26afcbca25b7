//! Position of a run, and everything that determines the rays of a step, except the rank.
//!
//! Runs in the consumer. Some numbers and a fingerprint, small enough for a checkpoint.

use crate::scene::draw::RaySampler;
use crate::scene::run::state::scene_state;

scene_state! {
    /// Position from which a run of rays resumes ([`Rays::state`](crate::rays::Rays::state)).
    ///
    /// The rank is not part of it: one process of a training group saves the state, and all resume
    /// from it. The number of rays is not part of it either: it may change from step to step.
    RaysState {
        sampler: RaySampler = "sampler",
        /// Images that join at each step.
        joining: u32 = "joining",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::data::SceneSplit;
    use crate::scene::run::SceneState;

    fn state() -> RaysState {
        RaysState {
            version: RaysState::VERSION,
            step: 7,
            seed: 3,
            sampler: RaySampler::Uniform,
            joining: 4,
            split: SceneSplit::Train,
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
                    split: SceneSplit::Eval,
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
