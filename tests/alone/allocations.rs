//! Once warm, a sample costs no heap allocation: a batch of 64 rows allocates
//! as often as one of 16. Counted with zero workers, where the same job runs in
//! this process. (Rust's allocator only: libjpeg-turbo's own pools are its.)

use std::fs;

use featherload::order::{IdentityProb, SampleWeights};
use featherload::{Recipe, Sampler};

use crate::allocator;
use crate::common::{self, builder};

/// Allocations of each whole batch of epoch 0, when the same epoch has run before.
fn warm(dir: &std::path::Path, recipe: Recipe, sampler: Sampler, batch: u32) -> Vec<u64> {
    let mut loader = builder(dir)
        .sampler(sampler)
        .num_workers(0)
        .recipe(recipe)
        .batch_size(batch)
        .build()
        .unwrap();
    for b in loader.epoch() {
        b.unwrap();
    }
    loader.set_epoch(0);
    let mut counts = Vec::new();
    let mut epoch = loader.epoch();
    loop {
        let before = allocator::count();
        let Some(b) = epoch.next() else { break };
        let b = b.unwrap();
        if b.len() == batch as usize {
            counts.push(allocator::count() - before);
        }
        drop(b);
    }
    counts
}

pub fn a_warm_sample_allocates_nothing() {
    let dir = common::data(4, 48);
    for recipe in [Recipe::train224(), Recipe::eval224(), Recipe::full()] {
        let name = recipe.name.clone();
        assert_warm(dir.path(), &recipe, Sampler::Shuffle, &name);
    }
    for sampler in [
        Sampler::ShardShuffle {
            shard: Some(10),
            window: 30,
        },
        Sampler::Identity {
            per_id: 16,
            prob: IdentityProb::SampleAvg,
        },
        Sampler::Weighted {
            weights: SampleWeights::InverseClassFrequency,
            num_samples: None,
        },
        Sampler::RepeatedAugmentation { repeats: 3 },
        Sampler::LargestFirst { classes: 5 },
    ] {
        let recipe = Recipe::eval224();
        assert_warm(dir.path(), &recipe, sampler, &sampler.to_string());
    }
}

/// Of raw pixels no byte is decoded, and none is held.
pub fn a_warm_sample_of_raw_pixels_allocates_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut random = common::Random(3);
    for i in 0..192 {
        let class = dir.path().join(format!("{}", i % 4));
        fs::create_dir_all(&class).unwrap();
        let (height, width) = (150 + random.below(100), 150 + random.below(100));
        // Every eighth is grey.
        let shape = match i % 8 {
            0 => format!("({height}, {width})"),
            _ => format!("({height}, {width}, 3)"),
        };
        fs::write(class.join(format!("{i}.png")), common::npy(&shape, i)).unwrap();
    }
    for recipe in [Recipe::train224(), Recipe::eval224(), Recipe::full()] {
        let name = format!("raw, {}", recipe.name);
        assert_warm(dir.path(), &recipe, Sampler::Shuffle, &name);
    }
}

fn assert_warm(dir: &std::path::Path, recipe: &Recipe, sampler: Sampler, name: &str) {
    let small = warm(dir, recipe.clone(), sampler, 16);
    let large = warm(dir, recipe.clone(), sampler, 64);
    println!("{name}: {small:?} of 16 rows, {large:?} of 64 rows");
    assert_eq!((small.len(), large.len()), (12, 3));
    assert!(small.iter().chain(&large).all(|n| *n == small[0]), "{name}");
    assert!(small[0] <= 16, "{name}: {} for a batch", small[0]);
}
