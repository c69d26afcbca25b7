//! Where a run stands, and all that must be equal to go on from there.

use serde::{Deserialize, Serialize};

use super::options::PlanOptions;
use super::place::Position;
use super::sampler::{IdentityRatio, MultiScale};
use crate::error::{Error, Result};
use crate::recipe::NumericProfile;

/// Where a run stands. Counts the batches that were handed to the user, not
/// those that workers have prepared ahead; serialise it beside the model.
/// [`OnError`](crate::OnError) is no part of it: a run that a bad sample stopped
/// may go on under another policy, any other should keep its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Version of this form.
    pub version: u32,
    /// Epoch that the next batch belongs to.
    pub epoch: u64,
    /// Batch of that epoch that comes next, on this rank.
    pub batch: u64,
    pub plan: PlanOptions,
    /// Fingerprint of what the sampler knows of the data (labels, weights or
    /// sizes), as hexadecimal digits; none when that is their number alone.
    pub sampler_hash: Option<String>,
    /// Fingerprint of paths, labels and their order, as hexadecimal digits.
    pub index_hash: String,
    /// Fingerprint of the recipe's operations, as hexadecimal digits.
    pub recipe_hash: String,
    pub profile: NumericProfile,
    /// Limits that decide whether a sample fails.
    pub max_pixels: u64,
    pub max_scratch: u64,
}

impl State {
    /// The version that this crate writes and reads.
    pub const VERSION: u32 = 2;

    /// The batch that comes next.
    #[must_use]
    pub fn position(&self) -> Position {
        Position::new(self.epoch, self.batch)
    }

    /// Checks that going on with `now` gives the stream that `self` left.
    ///
    /// # Errors
    /// Names what differs, both values, and what to do.
    pub(crate) fn check_resumable(&self, now: &Self) -> Result<()> {
        let differs = |what: &str, then: &dyn std::fmt::Display, now: &dyn std::fmt::Display| {
            Err(Error::config(format!(
                "cannot resume: {what} was {then} and is now {now}. Use the former, or start \
                 without a state"
            )))
        };
        if self.version != now.version {
            return differs("the version of the state", &self.version, &now.version);
        }
        if self.index_hash != now.index_hash {
            return differs(
                "the index (paths, labels, order)",
                &self.index_hash,
                &now.index_hash,
            );
        }
        if self.recipe_hash != now.recipe_hash {
            return differs("the recipe", &self.recipe_hash, &now.recipe_hash);
        }
        if let Some((name, then, now)) = self.profile.difference(&now.profile) {
            return differs(&format!("the numeric profile's {name}"), &then, &now);
        }
        let (a, b) = (&self.plan, &now.plan);
        if a.sampler != b.sampler {
            return differs("the sampler", &a.sampler, &b.sampler);
        }
        if a.identity_ratios != b.identity_ratios {
            let text = |ratios: &[IdentityRatio]| match ratios {
                [] => "none".to_owned(),
                some => format!("{some:?}"),
            };
            return differs(
                "the list of identities that come more often",
                &text(&a.identity_ratios),
                &text(&b.identity_ratios),
            );
        }
        if a.length != b.length {
            return differs("the length of an epoch", &a.length, &b.length);
        }
        if a.multi_scale != b.multi_scale {
            let text = |s: &Option<MultiScale>| {
                s.as_ref().map_or("none".to_owned(), MultiScale::to_string)
            };
            return differs("multi_scale", &text(&a.multi_scale), &text(&b.multi_scale));
        }
        if self.sampler_hash != now.sampler_hash {
            let hash = |h: &Option<String>| h.clone().unwrap_or_else(|| "absent".to_owned());
            return differs(
                &format!(
                    "the table of the sampler {} (labels, weights or sizes)",
                    a.sampler
                ),
                &hash(&self.sampler_hash),
                &hash(&now.sampler_hash),
            );
        }
        for (what, then, now) in [
            ("batch", u64::from(a.batch), u64::from(b.batch)),
            ("seed", a.seed, b.seed),
            ("rank", u64::from(a.rank), u64::from(b.rank)),
            ("world", u64::from(a.world), u64::from(b.world)),
            ("max_pixels", self.max_pixels, now.max_pixels),
            ("max_scratch", self.max_scratch, now.max_scratch),
        ] {
            if then != now {
                return differs(what, &then, &now);
            }
        }
        if a.tail != b.tail {
            return differs("tail", &format!("{:?}", a.tail), &format!("{:?}", b.tail));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Sampler;

    fn state() -> State {
        State {
            version: State::VERSION,
            epoch: 3,
            batch: 17,
            plan: PlanOptions::default(),
            sampler_hash: None,
            index_hash: "aa".into(),
            recipe_hash: "bb".into(),
            profile: NumericProfile {
                featherload: "0.1.0".into(),
                decoder: "d".into(),
                decode: "full".into(),
                resampler: "r".into(),
                hand_over: "h".into(),
                dtype: "f32".into(),
            },
            max_pixels: 1,
            max_scratch: 2,
        }
    }

    #[test]
    fn round_trips_through_json() {
        let s = state();
        let text = serde_json::to_string(&s).unwrap();
        assert_eq!(serde_json::from_str::<State>(&text).unwrap(), s);
    }

    #[test]
    fn each_difference_is_named() {
        let base = state();
        assert!(base.check_resumable(&state()).is_ok());
        type Change = fn(&mut State);
        let changes: [(&str, Change); 15] = [
            ("identities that come more often was none and is now", |s| {
                let ratio = IdentityRatio {
                    first: 2,
                    last: 3,
                    ratio: 4,
                };
                s.plan.identity_ratios = vec![ratio];
            }),
            (
                "length of an epoch was all samples and is now 9 batches",
                |s| s.plan.length = crate::plan::EpochLength::Batches(9),
            ),
            (
                "multi_scale was none and is now 64x32,32x32 in multiples of 32",
                |s| {
                    s.plan.multi_scale = Some(MultiScale::new([(64, 32), (32, 32)]));
                },
            ),
            ("version", |s| s.version = 1),
            ("index", |s| s.index_hash = "x".into()),
            ("recipe", |s| s.recipe_hash = "x".into()),
            ("decode", |s| s.profile.decode = "scaled".into()),
            ("batch", |s| s.plan.batch = 1),
            ("seed", |s| s.plan.seed = 1),
            ("sampler was shuffle and is now sequential", |s| {
                s.plan.sampler = Sampler::Sequential;
            }),
            ("sampler was shuffle and is now repeated (repeats 3)", |s| {
                s.plan.sampler = Sampler::RepeatedAugmentation { repeats: 3 };
            }),
            ("table of the sampler shuffle", |s| {
                s.sampler_hash = Some("x".into());
            }),
            ("world", |s| s.plan.world = 2),
            ("max_scratch", |s| s.max_scratch = 3),
            ("tail", |s| s.plan.tail = crate::plan::Tail::Drop),
        ];
        for (name, change) in changes {
            let mut other = state();
            change(&mut other);
            let e = base.check_resumable(&other).unwrap_err().to_string();
            assert!(e.contains(name), "{e} lacks {name}");
        }
        let mut elsewhere = state();
        elsewhere.epoch = 9;
        elsewhere.batch = 0;
        assert!(base.check_resumable(&elsewhere).is_ok());
    }
}
