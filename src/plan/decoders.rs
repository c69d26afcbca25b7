//! Which rows the engines of a device decode, and which the workers.
//!
//! A pure function of seed, epoch, position and a share that is fixed for the run. So it is
//! the same for any number of workers, through deaths and resumes. Its numbers are drawn
//! apart from all others: no draw of an operation, and no order, changes with the share.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::epoch::Plan;
use super::key::{OrderKey, Part};
use crate::error::{Error, Result};

/// The part of all positions that are the engines': whole parts of 65,536.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
pub(crate) struct EngineShare(u32);

/// All of it.
const ONE: u32 = 1 << 16;

/// For how many workers' rows one engine has its own, at the share at which both have as much to
/// do as they can: 0.88 of the positions, for 7 engines beside 15 workers. On an H100 of 16
/// cores, whose files were plain but for 8% to 11%, which workers decode at any share.
const WORKERS_OF_AN_ENGINE: f64 = (0.88 / 7.0) / (0.12 / 15.0);

impl EngineShare {
    /// # Errors
    /// A number that is not between 0 and 1.
    pub(crate) fn new(share: f64) -> Result<Self> {
        if !(0.0..=1.0).contains(&share) {
            return Err(Error::config(format!(
                "a share of {share} for the engines: use a number from 0 to 1"
            )));
        }
        Ok(Self((share * f64::from(ONE)).round() as u32))
    }

    /// Engines and workers have as much to do as they can, by what was measured.
    pub(crate) fn balanced(engines: u32, workers: u32) -> Self {
        let engines = f64::from(engines) * WORKERS_OF_AN_ENGINE;
        let all = engines + f64::from(workers);
        let share = if all > 0.0 { engines / all } else { 0.0 };
        Self((share * f64::from(ONE)).round() as u32)
    }
}

impl TryFrom<u32> for EngineShare {
    type Error = String;

    fn try_from(parts: u32) -> std::result::Result<Self, String> {
        match parts {
            0..=ONE => Ok(Self(parts)),
            _ => Err(format!("{parts} of {ONE} parts")),
        }
    }
}

impl From<EngineShare> for u32 {
    fn from(share: EngineShare) -> Self {
        share.0
    }
}

impl fmt::Display for EngineShare {
    /// Five digits tell all of them apart.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.5}", f64::from(self.0) / f64::from(ONE))
    }
}

impl Plan {
    /// Whether the sample at a position is for the engines, if they take its file.
    pub(crate) fn is_for_engines(&self, epoch: u64, position: u64, share: EngineShare) -> bool {
        let key = OrderKey {
            seed: self.options().seed,
            epoch,
        };
        let drawn = key.random(Part::Decoders, position).below(u64::from(ONE));
        drawn < u64::from(share.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::PlanOptions;

    fn plan(seed: u64, batch: u32) -> Plan {
        let options = PlanOptions {
            seed,
            batch,
            ..PlanOptions::default()
        };
        Plan::new(1000, options).unwrap()
    }

    fn chosen(plan: &Plan, epoch: u64, share: f64) -> Vec<bool> {
        let share = EngineShare::new(share).unwrap();
        (0..20_000)
            .map(|at| plan.is_for_engines(epoch, at, share))
            .collect()
    }

    #[test]
    fn as_many_as_the_share_says() {
        let plan = plan(1, 64);
        let count = |share| chosen(&plan, 0, share).iter().filter(|c| **c).count();
        assert_eq!((count(0.0), count(1.0)), (0, 20_000));
        for share in [0.1, 0.663, 0.9] {
            let (count, due) = (count(share) as f64, 20_000.0 * share);
            // Four standard deviations.
            assert!(
                (count - due).abs() < 4.0 * (due * (1.0 - share)).sqrt(),
                "{share}: {count}"
            );
        }
    }

    #[test]
    fn a_position_is_chosen_by_seed_epoch_and_place_alone() {
        let usual = chosen(&plan(1, 64), 0, 0.5);
        assert_eq!(chosen(&plan(1, 7), 0, 0.5), usual);
        assert_ne!(chosen(&plan(2, 64), 0, 0.5), usual);
        assert_ne!(chosen(&plan(1, 64), 1, 0.5), usual);
        // A larger share takes others, and gives none back.
        let more = chosen(&plan(1, 64), 0, 0.6);
        assert!(usual.iter().zip(&more).all(|(less, more)| *more || !less));
        // These are part of the stream: they never change.
        let first: Vec<u8> = usual[..16].iter().map(|c| u8::from(*c)).collect();
        assert_eq!(first, FIRST);
    }

    const FIRST: [u8; 16] = [1, 0, 0, 0, 1, 0, 1, 0, 1, 0, 0, 1, 1, 1, 0, 0];

    #[test]
    fn the_usual_share_follows_from_engines_and_workers() {
        let of = |engines, workers| EngineShare::balanced(engines, workers).to_string();
        assert_eq!(of(7, 15), "0.88000");
        assert_eq!(
            (of(0, 4), of(7, 0), of(0, 0)),
            ("0.00000".into(), "1.00000".into(), "0.00000".into())
        );
        assert!(EngineShare::balanced(7, 30).0 < EngineShare::balanced(7, 15).0);
    }

    #[test]
    fn a_share_is_kept_exactly_and_others_are_refused() {
        for parts in [0, 1, 43_455, ONE] {
            let share = EngineShare(parts);
            let text = serde_json::to_string(&share).unwrap();
            assert_eq!(serde_json::from_str::<EngineShare>(&text).unwrap(), share);
            let shown: f64 = share.to_string().parse().unwrap();
            assert_eq!(EngineShare::new(shown).unwrap(), share);
        }
        assert!(serde_json::from_str::<EngineShare>("65537").is_err());
        for wrong in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
            assert!(EngineShare::new(wrong).is_err(), "{wrong}");
        }
    }
}
