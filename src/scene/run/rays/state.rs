//! Where a run stands, and all that the rays of a step depend on but the rank.
//!
//! In the consumer. A few numbers and a fingerprint: what a checkpoint keeps.

use crate::scene::draw::RaySampler;
use crate::scene::run::state::scene_state;

scene_state! {
    /// From where a run of rays goes on ([`Rays::state`](crate::rays::Rays::state)).
    ///
    /// The rank is left out: where processes train together one of them keeps the state, and
    /// each goes on with it. So is the number of rays, which may change from step to step.
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
