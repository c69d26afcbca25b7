//! The state of a run, and checks that another run may continue it.

use serde::{Deserialize, Serialize};

use super::length::EpochLength;
use super::options::OrderOptions;
use super::position::EpochMark;
use super::sampler::{IdentityRatio, MultiScale, Sampler};
use crate::error::{Error, Result};
use crate::recipe::NumericProfile;

/// The state of a run. Counts samples of batches that the user has received, not of those that
/// workers have prepared. Save it with the model.
///
/// All ranks with the same number of received batches have the same position. So the state of one
/// rank is enough. A run may continue with another rank, number of ranks or batch size; each
/// remaining sample of the epoch still comes once. There are three exceptions, made of whole batches:
/// [`Sampler::Identity`] keeps its batch size, an [`EpochLength`] in batches also keeps the number of
/// ranks, and [`Sampler::Buckets`] and [`Sampler::PatchBudget`] keep both until the epoch ends.
///
/// [`OnError`](crate::OnError) is not included. A run that stopped at a bad sample may continue
/// with another policy; other runs should keep theirs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Version of this format.
    pub version: u32,
    /// Epoch of the next batch.
    pub epoch: u64,
    /// Samples of that epoch, over all ranks, before the next batch. With buckets, rows
    /// of short batches that no sample fills count, too.
    pub samples: u64,
    /// Options of the rank that wrote the state.
    pub plan: OrderOptions,
    /// Fingerprint of the sampler's table (labels, weights or sizes), as hexadecimal digits; `None`
    /// without a table.
    pub sampler_hash: Option<String>,
    /// Fingerprint of paths, labels and their order, as hexadecimal digits.
    pub index_hash: String,
    /// Fingerprint of the recipe's operations, as hexadecimal digits.
    pub recipe_hash: String,
    /// Fingerprint of the files of masks and of their rule, as hexadecimal digits; `None` without
    /// masks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub masks: Option<String>,
    /// Names of the other rasters, each with a fingerprint of its files and its rule; `None` without
    /// rasters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rasters: Option<String>,
    /// Fingerprint of the table of objects and of their rule, as hexadecimal digits; `None` without
    /// objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objects: Option<String>,
    pub profile: NumericProfile,
    /// Limits that decide which samples fail.
    pub max_pixels: u64,
    pub max_scratch: u64,
}

impl State {
    /// The version that this crate reads and writes.
    pub const VERSION: u32 = 3;

    pub(crate) fn mark(&self) -> EpochMark {
        EpochMark::new(self.epoch, self.samples)
    }

    pub(crate) fn go_to(&mut self, at: EpochMark) {
        (self.epoch, self.samples) = (at.epoch, at.samples);
    }

    /// Checks that a run with `now` would continue with the samples that `self` has left. Ranks and
    /// batch size may change, unless the order consists of whole batches.
    ///
    /// # Errors
    /// A difference. The text names it, both values, and the fix.
    pub(crate) fn check_resumable(&self, now: &Self) -> Result<()> {
        let what = "the version of the state";
        same(what, &self.version, &now.version, u32::to_string)?;
        let (what, text) = ("the index (paths, labels, order)", String::clone);
        same(what, &self.index_hash, &now.index_hash, text)?;
        same("the recipe", &self.recipe_hash, &now.recipe_hash, text)?;
        let hash = |hash: &Option<String>| hash.clone().unwrap_or_else(|| "none".to_owned());
        same("the masks", &self.masks, &now.masks, hash)?;
        same("the rasters", &self.rasters, &now.rasters, hash)?;
        same("the objects", &self.objects, &now.objects, hash)?;
        if let Some((name, then, now)) = self.profile.difference(&now.profile) {
            let what = format!("the numeric profile's {name}");
            same(&what, &then, &now, text)?;
        }
        let (a, b) = (&self.plan, &now.plan);
        same("the sampler", &a.sampler, &b.sampler, Sampler::to_string)?;
        let what = "the list of identities with ratios";
        let text = |ratios: &Vec<IdentityRatio>| match &ratios[..] {
            [] => "none".to_owned(),
            some => serde_json::to_string(some).unwrap_or_default(),
        };
        same(what, &a.identity_ratios, &b.identity_ratios, text)?;
        let what = "the length of an epoch";
        same(what, &a.length, &b.length, EpochLength::to_string)?;
        let text = |scales: &Option<MultiScale>| match scales {
            None => "none".to_owned(),
            Some(scales) => scales.to_string(),
        };
        same("multi_scale", &a.multi_scale, &b.multi_scale, text)?;
        let sampler = &a.sampler;
        let what = format!("the table of the sampler {sampler} (labels, weights or sizes)");
        let text = |hash: &Option<String>| hash.clone().unwrap_or_else(|| "absent".to_owned());
        let is_given = matches!(sampler, Sampler::Given { .. });
        // Each rank has its own order. At the start of an epoch the hash is that of the former one.
        if !is_given || (self.samples > 0 && a.rank == b.rank) {
            same(&what, &self.sampler_hash, &now.sampler_hash, text)?;
        }
        if is_given && self.samples > 0 {
            let what = "the number of ranks, in an epoch whose order is given,";
            same(what, &a.world, &b.world, u32::to_string)?;
        }
        let text = u64::to_string;
        same("seed", &a.seed, &b.seed, text)?;
        same("max_pixels", &self.max_pixels, &now.max_pixels, text)?;
        same("max_scratch", &self.max_scratch, &now.max_scratch, text)?;
        same("tail", &a.tail, &b.tail, |tail| tail.name().to_owned())?;
        self.check_whole_batches(&now.plan)
    }

    /// Checks what an order of whole batches must keep: each of its batches is its own draw.
    fn check_whole_batches(&self, now: &OrderOptions) -> Result<()> {
        let then = &self.plan;
        let is_whole = match then.sampler {
            Sampler::Identity { .. } => true,
            // At the start of an epoch they may become other batches.
            sampler => sampler.has_bucket_batches() && self.samples > 0,
        };
        if !is_whole {
            return Ok(());
        }
        let differs = |option, what: &str, why: &str, then: u32, now: u32| {
            Err(Error::option(
                option,
                format!(
                    "cannot resume: {what} was {then} and is now {now}, and {why}. Use the \
                     former, or start without a state"
                ),
            ))
        };
        if then.batch != now.batch {
            let why = format!("the sampler {} draws whole batches", then.sampler);
            return differs("batch_size", "`batch_size`", &why, then.batch, now.batch);
        }
        let why = match (then.length, then.sampler) {
            (length @ (EpochLength::Batches(_) | EpochLength::IdentityGroups), _) => Some(format!(
                "an epoch of {length} has that length on each rank, so other ranks change the whole \
                 epoch"
            )),
            (_, sampler) if sampler.has_bucket_batches() => {
                Some("ranks share the batches of buckets in this epoch".to_owned())
            }
            _ => None,
        };
        if let Some(why) = why.filter(|_| then.world != now.world) {
            return differs("rank", "the number of ranks", &why, then.world, now.world);
        }
        let rows = match then.sampler {
            // All ranks share a batch of a bucket.
            sampler if sampler.has_bucket_batches() => {
                u64::from(then.batch) * u64::from(then.world)
            }
            _ => then.batch.into(),
        };
        if !self.samples.is_multiple_of(rows.max(1)) {
            return Err(Error::config(format!(
                "cannot resume: the state is after {} samples, which are not whole batches of {rows}. \
                 Start without a state",
                self.samples
            )));
        }
        Ok(())
    }
}

/// Rejects a resume with another value of `what`.
fn same<T: PartialEq>(what: &str, then: &T, now: &T, text: impl Fn(&T) -> String) -> Result<()> {
    if then == now {
        return Ok(());
    }
    Err(Error::config(format!(
        "cannot resume: {what} was {} and is now {}. Use the former, or start without a state",
        text(then),
        text(now)
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::Sampler;

    fn state() -> State {
        State {
            version: State::VERSION,
            epoch: 3,
            samples: 17 * 64,
            plan: OrderOptions::default(),
            sampler_hash: None,
            index_hash: "aa".into(),
            recipe_hash: "bb".into(),
            masks: None,
            rasters: None,
            objects: None,
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
        let changes: [(&str, Change); 16] = [
            ("the objects was none and is now", |s| {
                s.objects = Some("x".into())
            }),
            ("the rasters was none and is now", |s| {
                s.rasters = Some("depth x".into())
            }),
            ("the masks was none and is now", |s| {
                s.masks = Some("x".into())
            }),
            (
                "the list of identities with ratios was none and is now",
                |s| {
                    let ratio = IdentityRatio {
                        first: 2,
                        last: 3,
                        ratio: 4,
                    };
                    s.plan.identity_ratios = vec![ratio];
                },
            ),
            (
                "length of an epoch was all samples and is now 9 batches",
                |s| s.plan.length = crate::order::EpochLength::Batches(9),
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
            ("max_scratch", |s| s.max_scratch = 3),
            ("tail", |s| s.plan.tail = crate::order::EpochTail::Drop),
        ];
        for (name, change) in changes {
            let mut other = state();
            change(&mut other);
            let e = base.check_resumable(&other).unwrap_err().to_string();
            assert!(e.contains(name), "{e} lacks {name}");
        }
        let mut elsewhere = state();
        elsewhere.epoch = 9;
        elsewhere.samples = 0;
        (
            elsewhere.plan.batch,
            elsewhere.plan.rank,
            elsewhere.plan.world,
        ) = (7, 2, 3);
        assert!(base.check_resumable(&elsewhere).is_ok());
    }

    #[test]
    fn an_order_of_whole_batches_keeps_them() {
        let identity = |length, batch, world| {
            let mut s = state();
            s.plan.sampler = Sampler::Identity {
                per_id: 4,
                prob: crate::order::IdentityProb::SampleAvg,
            };
            (s.plan.length, s.plan.batch, s.plan.world) = (length, batch, world);
            s
        };
        let all = |batch, world| identity(EpochLength::Samples, batch, world);
        all(64, 4).check_resumable(&all(64, 8)).unwrap();
        let e = all(64, 4).check_resumable(&all(32, 8)).unwrap_err();
        assert_eq!(e.option_name(), Some("batch_size"));
        let message = "`batch_size` was 64 and is now 32, and the sampler identity (per_id 4, prob \
                    sample-avg) draws whole batches. Use the former";
        assert!(e.to_string().contains(message), "{e}");
        for length in [EpochLength::Batches(30), EpochLength::IdentityGroups] {
            let of = |world| identity(length, 64, world);
            of(4).check_resumable(&of(4)).unwrap();
            let e = of(4).check_resumable(&of(2)).unwrap_err();
            assert_eq!(e.option_name(), Some("rank"));
            let message = "number of ranks was 4 and is now 2, and an epoch of";
            assert!(e.to_string().contains(message), "{e}");
        }
        let mut between = all(64, 4);
        between.samples = 100;
        let e = between.check_resumable(&all(64, 4)).unwrap_err();
        assert!(e.to_string().contains("100 samples, which are not whole"));
    }

    #[test]
    fn a_field_that_is_unknown_or_missing_is_named() {
        let written = serde_json::to_value(state()).unwrap();
        let message = |text| {
            serde_json::from_value::<State>(text)
                .unwrap_err()
                .to_string()
        };
        let mut more = written.clone();
        more["more"] = 1.into();
        assert!(message(more).contains("unknown field `more`"));
        let mut fewer = written;
        fewer.as_object_mut().unwrap().remove("samples");
        assert!(message(fewer).contains("missing field `samples`"));
    }
}
