//! Position of a run of views, and everything that determines the view of a step, except the rank.
//!
//! Runs in the consumer. Some numbers and a fingerprint, small enough for a checkpoint.

use crate::scene::run::state::scene_state;

scene_state! {
    /// Position from which a run of views resumes ([`Views::state`](crate::views::Views::state)).
    ///
    /// The rank is not part of it: one process of a training group saves the state, and all resume
    /// from it.
    ViewsState {
        shuffle: bool = "shuffle",
        /// Number of processes in the training group.
        world: u32 = "the number of ranks",
        ; undistort: bool = "undistort",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::data::SceneSplit;
    use crate::scene::run::SceneState;

    fn state() -> ViewsState {
        ViewsState {
            version: ViewsState::VERSION,
            step: 7,
            seed: 3,
            shuffle: true,
            world: 1,
            split: SceneSplit::Train,
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
            ("split was eval", |s| s.split = SceneSplit::Eval),
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
