//! A run that goes on with other ranks or another batch size sees what is left of its epoch,
//! each sample once, as one process would.

use std::collections::HashMap;
use std::path::Path;

use featherload::order::{EpochLength, IdentityProb, MultiScale};
use featherload::recipe::{MixOp, Mixing};
use featherload::{EpochTail, LoaderBuilder, Rank, Recipe, RowStatus, Sampler, State};

use crate::common::rows::{Row, rows};
use crate::common::{Random, builder, data};

/// Samples of `data(6, 9)`.
const SAMPLES: u64 = 54;

/// An epoch by some ranks of a batch size, up to `steps` batches of each; the state behind
/// them, of a rank that changes. `from` is resumed by all of them, through text.
fn part(
    make: &dyn Fn() -> LoaderBuilder,
    (world, batch): (u32, u32),
    steps: u64,
    from: Option<State>,
) -> (Vec<Row>, State) {
    let mut all = Vec::new();
    let mut state = None;
    for rank in 0..world {
        let mut b = make().rank(Rank::new(rank, world)).batch_size(batch);
        if let Some(from) = &from {
            let text = serde_json::to_string(from).unwrap();
            b = b.resume(serde_json::from_str(&text).unwrap());
        }
        // Two processes for one of the ranks, which is slower.
        let mut loader = b
            .num_workers(if rank == 1 { 1 } else { 0 })
            .build()
            .unwrap();
        let begun = loader.state().epoch;
        let mut epoch = loader.epoch();
        let left = epoch.size_hint().1.unwrap() as u64;
        let mut taken = 0;
        while taken < steps
            && epoch.state().epoch == begun
            && let Some(batch) = epoch.next()
        {
            all.extend(rows(&batch.unwrap()));
            taken += 1;
        }
        assert!(taken <= left, "{taken} batches of {left}");
        let now = epoch.state();
        // Every rank stands where the others do.
        let before = state.replace(now.clone()).unwrap_or_else(|| now.clone());
        assert_eq!((before.epoch, before.samples), (now.epoch, now.samples));
    }
    (all, state.unwrap())
}

/// An epoch by four ranks, then two, then eight, with a batch size for each.
fn elastic(make: &dyn Fn() -> LoaderBuilder, random: &mut Random) -> Vec<Row> {
    let batch = |random: &mut Random| 1 + random.below(4) as u32;
    let (mut all, mut state) = part(make, (4, batch(random)), 1 + random.below(3), None);
    for (world, steps) in [(2, random.below(5)), (8, u64::MAX)] {
        // Large batches may have ended it.
        if state.epoch == 0 {
            let (rows, behind) = part(make, (world, batch(random)), steps, Some(state));
            all.extend(rows);
            state = behind;
        }
    }
    assert_eq!((state.epoch, state.samples), (1, 0));
    all
}

/// Samples with their pixels and labels, whoever has them.
fn contents(all: &[Row]) -> HashMap<(u64, i64, u128), u32> {
    let mut found = HashMap::new();
    for row in all.iter().filter(|r| r.status == RowStatus::Ok) {
        *found.entry((row.id, row.label, row.pixels)).or_default() += 1;
    }
    found
}

fn one_process(make: &dyn Fn() -> LoaderBuilder) -> Vec<Row> {
    part(make, (1, 8), u64::MAX, None).0
}

#[test]
fn four_ranks_then_two_then_eight_are_one_epoch() {
    let dir = data(6, 9);
    let mut random = Random(23);
    let samplers = [
        Sampler::Sequential,
        Sampler::Shuffle,
        Sampler::ShardShuffle {
            shard: Some(5),
            window: 12,
        },
        Sampler::RepeatedAugmentation { repeats: 3 },
        Sampler::LargestFirst { classes: 4 },
        Sampler::Weighted {
            weights: featherload::order::SampleWeights::InverseClassFrequency,
            num_samples: Some(61),
        },
    ];
    for sampler in samplers {
        for tail in [EpochTail::Short, EpochTail::Pad] {
            let make = || builder(dir.path()).sampler(sampler).tail(tail);
            let want = contents(&one_process(&make));
            let got = contents(&elastic(&make, &mut random));
            assert_eq!(got, want, "{sampler}, {tail:?}");
        }
    }
}

/// Rows of own sizes lie at places that follow from where their batch begins.
#[test]
fn rows_of_own_sizes_are_the_same_in_other_batches() {
    let dir = data(6, 9);
    let mut random = Random(5);
    let make = || builder(dir.path()).recipe(Recipe::full());
    let want = contents(&one_process(&make));
    assert_eq!(want.len() as u64, SAMPLES);
    for _ in 0..3 {
        assert_eq!(contents(&elastic(&make, &mut random)), want);
    }
}

/// Pixels of a mixed batch, and the size of one of several, follow from the batch. The samples
/// do not.
#[test]
fn what_follows_from_the_batch_leaves_each_sample_once() {
    let dir = data(6, 9);
    let mut random = Random(9);
    let mixed = Mixing {
        num_classes: 6,
        ops: vec![MixOp::Mixup { alpha: 0.2 }],
    };
    let recipe = Recipe::train224().with_mixing(mixed);
    let mixed = || builder(dir.path()).recipe(recipe.clone());
    let scales = MultiScale::new([(64, 64), (96, 64), (32, 64)]);
    let scaled = || builder(dir.path()).multi_scale(scales.clone());
    for make in [&mixed as &dyn Fn() -> LoaderBuilder, &scaled] {
        for _ in 0..2 {
            let all = elastic(make, &mut random);
            let mut ids: Vec<u64> = (all.iter().filter(|r| r.status == RowStatus::Ok))
                .map(|r| r.id)
                .collect();
            ids.sort_unstable();
            assert_eq!(ids, (0..SAMPLES).collect::<Vec<_>>());
        }
    }
}

/// Dropped are samples that fill no batch of all ranks, as without a change; where none is
/// filled the next epoch begins.
#[test]
fn a_dropped_end_is_that_of_the_last_layout() {
    let dir = data(6, 9);
    let make = || builder(dir.path()).tail(EpochTail::Drop);
    let (first, state) = part(&make, (4, 5), 1, None);
    assert_eq!((first.len(), state.samples), (20, 20));
    let (rest, end) = part(&make, (2, 4), u64::MAX, Some(state.clone()));
    assert_eq!((rest.len(), end.epoch, end.samples), (32, 1, 0));
    let ids: std::collections::HashSet<u64> = first.iter().chain(&rest).map(|r| r.id).collect();
    assert_eq!(ids.len(), 52);
    // 34 are left, and a batch has 40.
    let mut loader = make()
        .batch_size(40)
        .num_workers(0)
        .resume(state)
        .build()
        .unwrap();
    assert_eq!((loader.state().epoch, loader.state().samples), (1, 0));
    assert_eq!(loader.epoch().count(), 1);
}

/// Draws of identities are whole batches: each of them comes once, with another number of
/// ranks too, and another batch size is refused.
#[test]
fn draws_of_identities_go_on_with_other_ranks() {
    let dir = data(6, 9);
    let sampler = Sampler::Identity {
        per_id: 4,
        prob: IdentityProb::SampleAvg,
    };
    let make = || builder(dir.path()).sampler(sampler);
    let alone = one_process(&make);
    let (mut all, state) = part(&make, (2, 8), 1, None);
    let (rest, _) = part(&make, (3, 8), u64::MAX, Some(state.clone()));
    all.extend(rest);
    let got = contents(&all);
    for (content, times) in contents(&alone) {
        assert!(got[&content] >= times, "a draw of one process is missing");
    }
    assert_eq!(all.len(), 2 * 8 + 2 * 3 * 8);
    let refused = |b: LoaderBuilder, state: &State, option, said: &str| {
        let e = b.num_workers(0).resume(state.clone()).build().unwrap_err();
        assert_eq!(e.option_name(), Some(option), "{e}");
        assert!(e.to_string().contains(said), "{e} lacks {said}");
    };
    let said = "`batch_size` was 8 and is now 4, and the sampler identity (per_id 4";
    refused(make().batch_size(4), &state, "batch_size", said);
    let counted = || make().epoch_length(EpochLength::Batches(5));
    let (_, state) = part(&counted, (2, 8), 1, None);
    let said = "number of ranks was 2 and is now 1, and an epoch of 5 batches";
    refused(counted().batch_size(8), &state, "rank", said);
}

/// A loader that runs goes on elsewhere as one that was built there.
#[test]
fn a_running_loader_takes_a_state_of_other_ranks() {
    let dir = data(6, 9);
    let make = || builder(dir.path());
    let (head, state) = part(&make, (3, 4), 2, None);
    for workers in [0, 2] {
        let mut loader = make().batch_size(7).num_workers(workers).build().unwrap();
        loader.epoch().next().unwrap().unwrap();
        loader.resume(&state).unwrap();
        assert_eq!((loader.state().samples, loader.batches_left()), (24, 5));
        assert_eq!(loader.position().batch, 3);
        let numbers = |b: &Row| b.batch;
        let rest: Vec<Row> = loader.epoch().flat_map(|b| rows(&b.unwrap())).collect();
        let mut given: Vec<u64> = rest.iter().map(numbers).collect();
        given.dedup();
        assert_eq!(given, [3, 4, 5, 6, 7]);
        let all = [&head[..], &rest].concat();
        assert_eq!(contents(&all), contents(&one_process(&make)));
        // The next epoch is as any other.
        assert_eq!((loader.state().epoch, loader.state().samples), (1, 0));
        assert_eq!(loader.epoch().count(), 8);
    }
    same_from_its_first_batch(dir.path());
}

/// Nothing follows from how a run came to a place.
fn same_from_its_first_batch(dir: &Path) {
    let make = || builder(dir).batch_size(6);
    let mut through = make().num_workers(0).build().unwrap();
    let (_, state) = part(&|| builder(dir), (2, 9), 1, None);
    through.resume(&state).unwrap();
    assert_eq!(state.samples, 18);
    let mut whole = make().num_workers(0).build().unwrap();
    let all: Vec<Row> = whole.epoch().flat_map(|b| rows(&b.unwrap())).collect();
    let rest: Vec<Row> = through.epoch().flat_map(|b| rows(&b.unwrap())).collect();
    assert_eq!(rest, all[18..]);
}
