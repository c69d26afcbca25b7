//! Compares timm's AugMix and AutoAugment with timm's own draws: tests/goldens/timm_policies.tar,
//! which scripts/op_goldens/timm_policies.py writes. Pixels are compared in `pixels`.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::super::policy_op::{PolicyOp, WarpOptions};
use super::super::timm::{CHAIN_KINDS, PosterizeBits, blended_parts};
use super::super::timm_text::TimmPolicy;
use super::tables::{args, kind};
use crate::recipe::InterpolationMode;
use crate::recipe::step::AugmentStep;

#[derive(Deserialize)]
struct Drawn {
    policy: String,
    name: String,
    level: f64,
    sign: f64,
    filter: Option<InterpolationMode>,
    size: (u32, u32),
    step: AugmentStep,
}

#[derive(Deserialize)]
struct Mixed {
    weights: Vec<f32>,
    by: f32,
    factors: Vec<f32>,
}

#[derive(Deserialize)]
struct Draws {
    ops: Vec<Drawn>,
    mixes: Vec<Mixed>,
}

/// Name, probability and magnitude.
type NamedEntry = (String, f64, u32);

#[derive(Deserialize)]
struct Tables {
    chain: Vec<String>,
    tables: BTreeMap<String, Vec<[NamedEntry; 2]>>,
}

fn json<T: DeserializeOwned>(name: &str) -> T {
    let text = crate::tests_support::golden("timm_policies", &format!("{name}.json")).unwrap();
    serde_json::from_slice(&text).unwrap()
}

#[test]
fn arguments_of_chains_and_tables_are_timms() {
    let draws: Draws = json("draws");
    let mut seen = BTreeSet::new();
    for drawn in &draws.ops {
        let rules = match TimmPolicy::parse(&drawn.policy).unwrap() {
            TimmPolicy::AugMix(policy) => policy.levels.rules,
            TimmPolicy::Auto(policy) => policy.rules,
            TimmPolicy::Rand(_) => panic!("{}", drawn.policy),
        };
        let kind = kind(&drawn.name);
        let look = WarpOptions {
            interpolation: drawn.filter.unwrap_or_default(),
            fill: [124, 116, 104],
        };
        let amount = rules.amount(kind, drawn.level, drawn.sign, drawn.size);
        let step = kind.step(amount, look).unwrap();
        assert_eq!(
            args(&step),
            args(&drawn.step),
            "{} of {}",
            drawn.name,
            drawn.policy
        );
        assert_eq!(
            std::mem::discriminant(&step),
            std::mem::discriminant(&drawn.step),
            "{}",
            drawn.name
        );
        seen.insert(&drawn.name);
    }
    for name in [
        "Posterize",
        "PosterizeIncreasing",
        "PosterizeOriginal",
        "Solarize",
        "SolarizeIncreasing",
        "SolarizeAdd",
        "ColorIncreasing",
        "Color",
        "ShearX",
        "TranslateXRel",
        "TranslateYRel",
        "Rotate",
    ] {
        assert!(seen.contains(&name.to_owned()), "{name} is never drawn");
    }
}

#[test]
fn factors_of_blended_chains_are_timms() {
    let draws: Draws = json("draws");
    assert!(draws.mixes.len() >= 10);
    for mixed in draws.mixes {
        let mut weights = [0.0; 16];
        weights[..mixed.weights.len()].copy_from_slice(&mixed.weights);
        let parts = blended_parts(weights, mixed.by);
        assert_eq!(parts[..mixed.factors.len()], mixed.factors);
        assert!(parts[mixed.factors.len()..].iter().all(|part| *part == 0.0));
    }
    // Where the last chain hides all others, timm divides by zero.
    assert_eq!(blended_parts([0.0, 0.0, 1.0], 1.0), [0.0, 0.0, 1.0]);
    assert_eq!(blended_parts([0.5, 0.5], 0.0), [0.0, 0.0]);
}

#[test]
fn tables_and_operations_are_timms() {
    let told: Tables = json("tables");
    let chain: Vec<PolicyOp> = told.chain.iter().map(|name| kind(name)).collect();
    assert_eq!(chain, CHAIN_KINDS);
    assert_eq!(told.tables.len(), 4);
    for (name, pairs) in told.tables {
        let TimmPolicy::Auto(policy) = TimmPolicy::parse(&name).unwrap() else {
            panic!("{name}");
        };
        let ours: Vec<_> = policy.pairs.to_vec();
        let theirs: Vec<_> = pairs
            .iter()
            .map(|pair| {
                pair.each_ref()
                    .map(|(name, p, magnitude)| (kind(name), *p, *magnitude))
            })
            .collect();
        assert_eq!(ours, theirs, "{name}");
        let bits = match policy.rules.posterize {
            PosterizeBits::Rising => "Posterize",
            PosterizeBits::Falling => "PosterizeIncreasing",
            PosterizeBits::Original => "PosterizeOriginal",
        };
        let mut names = pairs.iter().flatten().map(|(name, ..)| name);
        assert!(
            names.all(|name| !name.starts_with("Posterize") || name == bits),
            "{name}"
        );
    }
}
