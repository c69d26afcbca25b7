//! Properties of a plan with every sampler, over ranks, batches and rows.

use std::collections::{HashMap, HashSet};

use proptest::prelude::*;

use super::*;
use crate::error::Result;
use crate::order::{
    EpochLength, EpochMark, EpochPlan, EpochTail, OrderOptions, RowPlan, RowStatus,
};

/// Input of tables: a class and an area for each sample.
#[derive(Debug, Clone)]
struct Data {
    labels: Vec<i64>,
    areas: Vec<u64>,
}

impl Data {
    fn len(&self) -> u64 {
        self.labels.len() as u64
    }

    fn plan(&self, options: &OrderOptions) -> Result<EpochPlan> {
        // As the loader does before it makes a table.
        options.check(self.len())?;
        let table = match options.sampler {
            Sampler::Identity { prob, .. } => Some(identity_table(
                &self.labels,
                prob,
                &options.identity_ratios,
            )?),
            Sampler::Weighted { .. } => {
                let weights = inverse_class_frequency(&self.labels);
                Some(weight_table(&weights, self.len())?)
            }
            Sampler::LargestFirst { classes } => Some(size_table(&self.areas, classes)?),
            _ => None,
        };
        EpochPlan::with_table(self.len(), options.clone(), table)
    }
}

fn data() -> impl Strategy<Value = Data> {
    prop::collection::vec((0i64..12, 0u64..30), 1..250).prop_map(|samples| {
        let (labels, areas) = samples.into_iter().unzip();
        Data { labels, areas }
    })
}

fn any_sampler() -> impl Strategy<Value = Sampler> {
    let prob = prop_oneof![Just(IdentityProb::SampleAvg), Just(IdentityProb::IdAvg)];
    prop_oneof![
        Just(Sampler::Sequential),
        Just(Sampler::Shuffle),
        (1u64..50, 1u64..50).prop_map(|(shard, window)| Sampler::ShardShuffle {
            shard: Some(shard),
            window,
        }),
        (1u32..5, prob).prop_map(|(per_id, prob)| Sampler::Identity { per_id, prob }),
        prop::option::of(1u64..300).prop_map(|num_samples| Sampler::Weighted {
            weights: SampleWeights::InverseClassFrequency,
            num_samples,
        }),
        (1u32..9).prop_map(|repeats| Sampler::RepeatedAugmentation { repeats }),
        (1u32..20).prop_map(|classes| Sampler::LargestFirst { classes }),
        (1u64..300).prop_map(|num_samples| Sampler::Given { num_samples }),
    ]
}

fn scales() -> impl Strategy<Value = MultiScale> {
    let sizes = prop::collection::vec((8u32..70, 8u32..70), 1..6);
    (sizes, 1u32..9).prop_map(|(sizes, divided_by)| MultiScale {
        divided_by,
        ..MultiScale::new(sizes)
    })
}

fn options() -> impl Strategy<Value = OrderOptions> {
    let tail = prop_oneof![
        Just(EpochTail::Short),
        Just(EpochTail::Pad),
        Just(EpochTail::Drop)
    ];
    let scales = prop::option::of(scales());
    (1u32..24, any::<u64>(), any_sampler(), scales, tail, 1u32..7).prop_map(
        |(batch, seed, sampler, scales, tail, world)| {
            // Identity needs multiples.
            let batch = match sampler {
                Sampler::Identity { per_id, .. } => batch.next_multiple_of(per_id),
                _ => batch,
            };
            let identity = matches!(sampler, Sampler::Identity { .. });
            OrderOptions {
                batch,
                seed,
                sampler,
                multi_scale: scales.filter(|_| !identity),
                tail,
                world,
                ..OrderOptions::default()
            }
        },
    )
}

/// One plan per rank; `None` if there is no such plan.
fn ranks(data: &Data, options: &OrderOptions) -> Option<Vec<EpochPlan>> {
    let of = |rank| {
        data.plan(&OrderOptions {
            rank,
            ..options.clone()
        })
    };
    let plans: Vec<EpochPlan> = (0..options.world).map_while(|rank| of(rank).ok()).collect();
    (plans.len() == options.world as usize).then_some(plans)
}

/// Every row of an epoch, of all ranks.
fn rows(plans: &[EpochPlan], epoch: u64) -> Vec<RowPlan> {
    let mut all = Vec::new();
    for plan in plans {
        for batch in 0..plan.batches() {
            let at = plan.mark(epoch, batch);
            all.extend((0..plan.rows_at(at)).map(|row| plan.row_at(at, row)));
        }
    }
    all
}

#[test]
fn runs_are_as_long_as_shards_where_nobody_says_how_long() {
    let shard_shuffle = |shard| Sampler::ShardShuffle { shard, window: 7 };
    assert_eq!(
        shard_shuffle(None).with_shard_samples(None),
        shard_shuffle(Some(Sampler::RUN))
    );
    assert_eq!(
        shard_shuffle(None).with_shard_samples(Some(334)),
        shard_shuffle(Some(334))
    );
    assert_eq!(
        shard_shuffle(Some(9)).with_shard_samples(Some(334)),
        shard_shuffle(Some(9))
    );
    assert_eq!(
        Sampler::Shuffle.with_shard_samples(Some(334)),
        Sampler::Shuffle
    );
}

proptest! {
    #[test]
    fn ranks_have_as_many_rows_and_no_position_twice(
        data in data(), options in options(), epoch: u64,
    ) {
        let plans = ranks(&data, &options);
        prop_assume!(plans.is_some());
        let plans = plans.unwrap();
        for plan in &plans {
            prop_assert_eq!(plan.batches(), plans[0].batches());
            for batch in 0..plan.batches() {
                let at = plan.mark(epoch, batch);
                prop_assert_eq!(at, plans[0].mark(epoch, batch));
                prop_assert_eq!(plan.rows_at(at), plans[0].rows_at(at));
                prop_assert_eq!(plan.filled_rows_at(at), plans[0].filled_rows_at(at));
                prop_assert_eq!(plan.size_at(at), plans[0].size_at(at));
                prop_assert!(plan.rows_at(at) <= plan.most_rows());
                prop_assert!(plan.filled_rows_at(at) > 0);
                for row in 0..plan.rows_at(at) {
                    prop_assert_eq!(plan.row_at(at, row).size, plan.size_at(at));
                }
            }
        }
        let mut positions = HashSet::new();
        let mut ids: HashMap<u64, u64> = HashMap::new();
        let all = rows(&plans, epoch);
        for row in &all {
            if row.status == RowStatus::Padding {
                continue;
            }
            prop_assert!(row.id < data.len());
            prop_assert!(positions.insert(row.position), "a position of its own");
            if row.status == RowStatus::Ok {
                *ids.entry(row.id).or_default() += 1;
            }
        }
        let identity = matches!(options.sampler, Sampler::Identity { .. });
        let once = !identity && !matches!(options.sampler,
            Sampler::Weighted { .. } | Sampler::RepeatedAugmentation { .. });
        if once {
            prop_assert!(ids.values().all(|n| *n == 1));
        }
        if options.tail != EpochTail::Drop && !identity {
            let ok = all.iter().filter(|r| r.status == RowStatus::Ok).count() as u64;
            prop_assert_eq!(ok, plans[0].positions(), "each position once");
            if once {
                prop_assert_eq!(ids.len() as u64, data.len());
            }
            if let Sampler::RepeatedAugmentation { repeats } = options.sampler {
                let repeats = u64::from(repeats);
                prop_assert_eq!(ids.len() as u64, data.len().div_ceil(repeats));
                let full = ids.values().filter(|n| **n == repeats).count() as u64;
                prop_assert_eq!(full, data.len() / repeats);
            }
        }
        if identity {
            prop_assert!(all.iter().all(|r| r.status == RowStatus::Ok), "no short batch");
        }
    }

    #[test]
    fn rows_follow_from_their_numbers_alone(
        data in data(), options in options(), epoch: u64, seed: u64,
    ) {
        let plans = ranks(&data, &options);
        prop_assume!(plans.is_some());
        let plan = &plans.unwrap()[0];
        let in_order = rows(std::slice::from_ref(plan), epoch);
        let other = data.plan(plan.options()).unwrap();
        let places: Vec<(u64, u32)> = (0..plan.batches())
            .flat_map(|b| (0..plan.rows_at(plan.mark(epoch, b))).map(move |r| (b, r)))
            .collect();
        let mix = crate::order::key::OrderKey { seed, epoch: 0 }.shuffle(places.len() as u64);
        for i in 0..places.len() as u64 {
            let at = mix.at(i) as usize;
            let (batch, row) = places[at];
            // Interleaved with other requests.
            other.row_at(other.mark(epoch ^ 1, batch), row);
            prop_assert_eq!(other.row_at(other.mark(epoch, batch), row), in_order[at]);
        }
    }

    /// Substitutes are other samples, each once, as far as the order allows. No sample fills more
    /// rows of a batch than there is room for.
    #[test]
    fn attempts_are_others_and_within_the_bound(
        data in data(), options in options(), epoch: u64, tries in 0u32..9,
    ) {
        let plans = ranks(&data, &options);
        prop_assume!(plans.is_some());
        for plan in plans.unwrap() {
            let tries = tries.min(plan.substitutes());
            for batch in 0..plan.batches() {
                let mut room: HashMap<u64, u64> = HashMap::new();
                let mark = plan.mark(epoch, batch);
                for row in 0..plan.filled_rows_at(mark) {
                    let all: Vec<RowPlan> = (0..=tries)
                        .map(|attempt| plan.attempt_at(mark, row, attempt))
                        .collect();
                    prop_assert_eq!(all[0], plan.row_at(mark, row));
                    let mut ids = HashSet::new();
                    for (n, stands) in all.iter().enumerate() {
                        prop_assert!(stands.id < data.len());
                        let fresh = ids.insert(stands.id);
                        if n == 0 {
                            continue;
                        }
                        let label = |id: u64| data.labels[id as usize];
                        match options.sampler {
                            Sampler::Weighted { .. } => {}
                            Sampler::Identity { .. } => {
                                prop_assert_eq!(label(stands.id), label(all[0].id));
                                let failed = stands.status == RowStatus::Failed;
                                prop_assert_eq!(fresh, !failed);
                                continue;
                            }
                            _ => prop_assert!(fresh),
                        }
                        prop_assert_eq!(stands.status, RowStatus::Substituted);
                    }
                    for id in ids {
                        *room.entry(id).or_default() += 1;
                    }
                }
                let most = plan.most_rows_per_sample(tries);
                prop_assert!(room.values().all(|n| *n <= most), "{:?} over {}", room, most);
            }
        }
    }

    /// Numbers from shared memory that a faulty decoder has overwritten.
    #[test]
    fn any_numbers_give_some_row(
        data in data(), options in options(), epoch: u64, batch: u64, row: u32, attempt: u32,
    ) {
        let plans = ranks(&data, &options);
        prop_assume!(plans.is_some());
        let plan = &plans.unwrap()[0];
        prop_assert!(plan.attempt_at(plan.mark(epoch, batch), row, attempt).id < data.len());
    }
}

proptest! {
    #[test]
    fn sizes_take_turns_and_the_pixels_of_a_batch_stay_the_same(
        samples in 1u64..900, options in options(), scales in scales(), epoch: u64,
    ) {
        let options = OrderOptions {
            sampler: Sampler::Shuffle,
            multi_scale: Some(scales.clone()),
            ..options
        };
        let plan = EpochPlan::new(samples, options.clone());
        prop_assume!(plan.is_ok());
        let plan = plan.unwrap();
        let to = scales.divided_by;
        let sizes: Vec<(u32, u32)> =
            scales.sizes.iter().map(|(h, w)| (h / to * to, w / to * to)).collect();
        let area = |(h, w): (u32, u32)| u64::from(h) * u64::from(w);
        let pixels = area(sizes[0]) * u64::from(options.batch);
        let batches = plan.batches();
        let mut turns = Vec::new();
        for batch in 0..batches {
            let mark = plan.mark(epoch, batch);
            let size = plan.size_at(mark).unwrap();
            turns.push(size);
            let filled = plan.filled_rows_at(mark);
            let rows = plan.rows_at(mark);
            let full = (pixels / area(size)).max(1);
            let last = batch == batches - 1;
            prop_assert!(u64::from(rows) <= full);
            prop_assert!((last && options.tail == EpochTail::Short) || u64::from(rows) == full);
            prop_assert!((last && options.tail == EpochTail::Pad) || filled == rows);
        }
        let sorted = |sizes: &[(u32, u32)]| {
            let mut sizes = sizes.to_vec();
            sizes.sort_unstable();
            sizes
        };
        for cycle in turns.chunks_exact(sizes.len()) {
            prop_assert_eq!(sorted(cycle), sorted(&sizes));
        }
        if options.tail == EpochTail::Drop {
            // Samples that are left out would not have filled the next batch.
            let used: u64 = (0..batches).map(|b| u64::from(plan.rows_at(plan.mark(epoch, b)))).sum();
            let left = samples / u64::from(options.world) - used;
            prop_assert!(left < u64::from(plan.most_rows()));
        }
        // The same number in any epoch.
        prop_assert!(plan.filled_rows_at(plan.mark(epoch ^ 1, batches - 1)) > 0);
        if options.tail != EpochTail::Drop {
            prop_assert_eq!(plan.filled_rows_at(plan.mark(epoch ^ 1, batches)), 0);
        }
    }
}

/// PaddleClas' EfficientNetV2_S: 350 epochs, with one size for each quarter.
#[test]
fn sizes_of_stages_are_those_of_all_batches_of_their_epochs() {
    let sizes = [(171, 171), (214, 214), (257, 257), (300, 300)];
    let firsts = [0, 87, 175, 262];
    let plain = OrderOptions {
        batch: 8,
        ..OrderOptions::default()
    };
    let staged = OrderOptions {
        multi_scale: Some(MultiScale::by_epoch(firsts.into_iter().zip(sizes))),
        ..plain.clone()
    };
    let (plain, staged) = (
        EpochPlan::new(1001, plain).unwrap(),
        EpochPlan::new(1001, staged).unwrap(),
    );
    assert_eq!(staged.batches(), plain.batches());
    for (epoch, size) in [
        (0, sizes[0]),
        (86, sizes[0]),
        (87, sizes[1]),
        (174, sizes[1]),
        (175, sizes[2]),
        (262, sizes[3]),
        (349, sizes[3]),
        (u64::MAX, sizes[3]),
    ] {
        for batch in 0..plain.batches() {
            let at = staged.mark(epoch, batch);
            assert_eq!(at, plain.mark(epoch, batch));
            assert_eq!(staged.size_at(at), Some(size), "{epoch}");
            assert_eq!(staged.rows_at(at), plain.rows_at(at));
            for row in 0..staged.rows_at(at) {
                let id = |plan: &EpochPlan| plan.attempt_at(at, row, 0).id;
                assert_eq!(id(&staged), id(&plain));
            }
        }
    }
    // The ring has room for the largest size.
    let rows: Vec<_> = staged.scales().collect();
    assert_eq!(rows, sizes.map(|size| (size, 8)));
    let text = staged.options().multi_scale.as_ref().unwrap().to_string();
    assert_eq!(
        text,
        "171x171 from epoch 0,214x214 from epoch 87,257x257 from epoch 175,300x300 from epoch 262"
    );
    // Rows stay the same, which identities need.
    let of_identities = |scales| OrderOptions {
        batch: 8,
        sampler: Sampler::Identity {
            per_id: 4,
            prob: IdentityProb::IdAvg,
        },
        multi_scale: Some(scales),
        ..OrderOptions::default()
    };
    let stages = MultiScale::by_epoch(firsts.into_iter().zip(sizes));
    assert!(of_identities(stages).check(1001).is_ok());
    let e = of_identities(MultiScale::new(sizes)).check(1001);
    assert!(e.unwrap_err().to_string().contains("use one of them"));
    for firsts in [vec![1, 2, 3, 4], vec![0, 3, 2, 4], vec![0, 1]] {
        let multi_scale = Some(MultiScale {
            first_epochs: firsts,
            ..MultiScale::new(sizes)
        });
        let options = OrderOptions {
            multi_scale,
            ..OrderOptions::default()
        };
        let e = EpochPlan::new(1001, options).unwrap_err().to_string();
        assert!(e.contains("first epochs"), "{e}");
    }
}

#[test]
fn sizes_come_in_another_order_in_each_epoch_and_cycle() {
    let sizes = [(224, 224), (192, 192), (160, 200), (256, 256)];
    let options = OrderOptions {
        batch: 8,
        multi_scale: Some(MultiScale::new(sizes)),
        ..OrderOptions::default()
    };
    let plan = EpochPlan::new(4000, options).unwrap();
    let turns = |epoch| {
        (0..40)
            .map(|b| plan.size_at(plan.mark(epoch, b)).unwrap())
            .collect::<Vec<_>>()
    };
    assert_ne!(turns(0), turns(1));
    let cycles: HashSet<_> = turns(0).chunks(4).map(<[_]>::to_vec).collect();
    assert!(cycles.len() > 3, "{cycles:?}");
    // Rounded down to multiples of 32: 160 x 192.
    let rows: HashMap<_, _> = plan.scales().collect();
    let want = [
        ((224, 224), 8),
        ((192, 192), 10),
        ((160, 192), 13),
        ((256, 256), 6),
    ];
    assert_eq!(rows, want.into());
    assert_eq!(plan.most_rows(), 13);
}

#[test]
fn repeats_stand_on_different_ranks() {
    let data = Data {
        labels: vec![0; 300],
        areas: vec![1; 300],
    };
    let plans: Vec<EpochPlan> = (0..3)
        .map(|rank| {
            let sampler = Sampler::RepeatedAugmentation { repeats: 3 };
            let options = OrderOptions {
                batch: 10,
                sampler,
                rank,
                world: 3,
                ..OrderOptions::default()
            };
            data.plan(&options).unwrap()
        })
        .collect();
    let of = |rank: usize, batch, row| plans[rank].row_at(plans[rank].mark(4, batch), row);
    let mut seen = HashSet::new();
    for batch in 0..10 {
        for row in 0..10 {
            let id = of(0, batch, row).id;
            assert!(seen.insert(id));
            assert_eq!((of(1, batch, row).id, of(2, batch, row).id), (id, id));
            let positions: HashSet<u64> = (0..3).map(|r| of(r, batch, row).position).collect();
            assert_eq!(positions.len(), 3, "other random parameters");
        }
    }
}

#[test]
fn ranks_draw_identities_apart() {
    let labels: Vec<i64> = (0..400).map(|i| i / 4).collect();
    let data = Data {
        areas: vec![1; 400],
        labels,
    };
    let options = OrderOptions {
        batch: 16,
        world: 2,
        sampler: Sampler::Identity {
            per_id: 4,
            prob: IdentityProb::SampleAvg,
        },
        ..OrderOptions::default()
    };
    let plans = ranks(&data, &options).unwrap();
    let batch = |rank: usize, b| {
        let ids = (0..16).map(|row| plans[rank].row_at(plans[rank].mark(0, b), row).id);
        ids.collect::<Vec<_>>()
    };
    let mut all = HashSet::new();
    for b in 0..plans[0].batches() {
        assert!(all.insert(batch(0, b)) && all.insert(batch(1, b)));
    }
    // A single process has the same draws, in sequence.
    let alone = &ranks(
        &data,
        &OrderOptions {
            world: 1,
            ..options
        },
    )
    .unwrap()[0];
    for b in 0..alone.batches() {
        let ids: Vec<u64> = (0..16)
            .map(|row| alone.row_at(alone.mark(0, b), row).id)
            .collect();
        assert_eq!(ids, batch(b as usize % 2, b / 2));
    }
}

#[test]
fn bad_numbers_are_named() {
    let data = Data {
        labels: vec![0, 0, 1, 1, 2],
        areas: vec![1; 5],
    };
    let identity = |per_id| Sampler::Identity {
        per_id,
        prob: IdentityProb::IdAvg,
    };
    for (sampler, text) in [
        (
            Sampler::ShardShuffle {
                shard: Some(0),
                window: 1,
            },
            "shard is 0",
        ),
        (
            Sampler::ShardShuffle {
                shard: Some(1),
                window: 0,
            },
            "window is 0",
        ),
        (identity(0), "per_id is 0"),
        (
            identity(3),
            "`batch_size` is 4, which is not a multiple of per_id = 3",
        ),
        (
            identity(1),
            "there are 3: lower `batch_size`, or raise per_id",
        ),
        (
            Sampler::Weighted {
                weights: SampleWeights::Given,
                num_samples: Some(0),
            },
            "num_samples is 0",
        ),
        (Sampler::RepeatedAugmentation { repeats: 0 }, "repeats is 0"),
        (Sampler::LargestFirst { classes: 0 }, "classes is 0"),
    ] {
        let options = OrderOptions {
            batch: 4,
            sampler,
            ..OrderOptions::default()
        };
        let e = data.plan(&options).unwrap_err().to_string();
        assert!(e.contains(text), "{e} lacks {text}");
    }
    for (sizes, divided_by, batch, text) in [
        (&[][..], 32, 4, "has no sizes"),
        (&[(224, 224)], 0, 4, "divided_by is 0"),
        (
            &[(224, 224), (224, 31)],
            32,
            4,
            "the size 224x31, which is rounded",
        ),
        (
            &[(32_000, 32_000), (1, 1)],
            1,
            5,
            "5120000000 rows: lower `batch_size`",
        ),
    ] {
        let multi_scale = Some(MultiScale {
            divided_by,
            ..MultiScale::new(sizes.to_vec())
        });
        let options = OrderOptions {
            batch,
            multi_scale,
            ..OrderOptions::default()
        };
        let e = data.plan(&options).unwrap_err().to_string();
        assert!(e.contains(text), "{e} lacks {text}");
    }
    let both = OrderOptions {
        multi_scale: Some(MultiScale::new([(32, 32)])),
        batch: 1,
        sampler: identity(1),
        ..OrderOptions::default()
    };
    let e = data.plan(&both).unwrap_err().to_string();
    assert!(e.contains("use one of them"), "{e}");
    // Tables of other samples, missing, and superfluous.
    let options = |sampler| OrderOptions {
        batch: 2,
        sampler,
        ..OrderOptions::default()
    };
    let table = || Some(identity_table(&data.labels, IdentityProb::SampleAvg, &[]).unwrap());
    assert!(EpochPlan::with_table(5, options(identity(1)), table()).is_ok());
    assert!(EpochPlan::with_table(6, options(identity(1)), table()).is_err());
    assert!(EpochPlan::with_table(5, options(identity(1)), None).is_err());
    assert!(EpochPlan::with_table(5, options(Sampler::Shuffle), table()).is_err());
    let e = EpochPlan::new(5, options(identity(1)))
        .unwrap_err()
        .to_string();
    assert!(e.contains("let a loader make the plan"), "{e}");
    let few = Sampler::LargestFirst { classes: 2 };
    let e = options(few).check(1 << 33).unwrap_err().to_string();
    assert!(e.contains("4294967295"), "{e}");
}

fn identities(per_id: u32) -> Sampler {
    Sampler::Identity {
        per_id,
        prob: IdentityProb::SampleAvg,
    }
}

proptest! {
    /// The requested number of batches on every rank, all full.
    #[test]
    fn epochs_of_identities_are_as_long_as_asked(
        data in data(), per_id in 1u32..4, world in 1u32..4, batches in 1u64..40, epoch: u64,
    ) {
        let options = |length| OrderOptions {
            batch: 2 * per_id,
            sampler: identities(per_id),
            length,
            world,
            ..OrderOptions::default()
        };
        let plans = ranks(&data, &options(EpochLength::Batches(batches)));
        prop_assume!(plans.is_some());
        for plan in plans.unwrap() {
            prop_assert_eq!(plan.batches(), batches);
            prop_assert!((0..batches).all(|b| plan.filled_rows_at(plan.mark(epoch, b)) == 2 * per_id));
        }
        let mut of: HashMap<i64, u64> = HashMap::new();
        for label in &data.labels {
            *of.entry(*label).or_default() += 1;
        }
        let per_id = u64::from(per_id);
        let rows: u64 = of.values().map(|n| n.div_ceil(per_id) * per_id).sum();
        // PaddleClas: total - total % batch - batch, and each rank separately.
        let batches = rows / (2 * per_id) - 1;
        match ranks(&data, &options(EpochLength::IdentityGroups)) {
            Some(plans) => prop_assert!(plans.iter().all(|p| p.batches() == batches)),
            None => prop_assert_eq!(batches, 0),
        }
    }

    /// RASampler: floor(samples / n x n / ranks) rows per rank, at the same positions as in longer
    /// epochs.
    #[test]
    fn epochs_of_multiples_are_cut_off(
        samples in 1u64..300, of in 1u64..40, repeats in 1u32..5, world in 1u32..5,
        batch in 1u32..9, tail in prop_oneof![Just(EpochTail::Short), Just(EpochTail::Drop)], epoch: u64,
    ) {
        let sampler = Sampler::RepeatedAugmentation { repeats };
        let options = |length| OrderOptions { batch, sampler, length, tail, world, ..OrderOptions::default() };
        let data = Data { labels: vec![0; samples as usize], areas: Vec::new() };
        let rows_of_rank = samples / of * of / u64::from(world);
        let plans = ranks(&data, &options(EpochLength::MultipleOf(of)));
        let batches = match tail {
            EpochTail::Drop => rows_of_rank / u64::from(batch),
            _ => rows_of_rank.div_ceil(u64::from(batch)),
        };
        prop_assert_eq!(plans.is_some(), batches > 0);
        prop_assume!(plans.is_some());
        let whole = data.plan(&OrderOptions { batch: 1, sampler, ..OrderOptions::default() }).unwrap();
        for plan in plans.unwrap() {
            prop_assert_eq!(plan.batches(), batches);
            let all = rows(std::slice::from_ref(&plan), epoch);
            if tail == EpochTail::Short {
                prop_assert_eq!(all.len() as u64, rows_of_rank);
            }
            for row in all {
                prop_assert_eq!(row.status, RowStatus::Ok);
                prop_assert_eq!(row.id, whole.row_at(whole.mark(epoch, row.position), 0).id);
            }
        }
    }
}

#[test]
fn lengths_that_do_not_fit_are_named() {
    let data = Data {
        labels: vec![1, 1, 2, 2],
        areas: vec![0; 4],
    };
    let of = |sampler, length| OrderOptions {
        batch: 2,
        sampler,
        length,
        ..OrderOptions::default()
    };
    let ratio = |first, last, ratio| OrderOptions {
        identity_ratios: vec![IdentityRatio { first, last, ratio }],
        ..of(identities(2), EpochLength::Samples)
    };
    for (options, text) in [
        (of(identities(2), EpochLength::Batches(0)), "0 batches"),
        (
            of(identities(2), EpochLength::Batches(u64::MAX)),
            "at most 2^62 rows",
        ),
        (
            of(Sampler::Shuffle, EpochLength::Batches(3)),
            "an epoch of 3 batches needs Sampler::Identity",
        ),
        (
            of(Sampler::Shuffle, EpochLength::MultipleOf(0)),
            "a multiple of 0",
        ),
        (
            of(identities(2), EpochLength::MultipleOf(2)),
            "does not fit Sampler::Identity",
        ),
        (
            of(Sampler::Shuffle, EpochLength::MultipleOf(5)),
            "fill no batch",
        ),
        (ratio(0, 1, 0), "the ratio 0"),
        (ratio(3, 1, 2), "3 to 1"),
        (
            OrderOptions {
                sampler: Sampler::Shuffle,
                ..ratio(0, 1, 2)
            },
            "identity_ratios need Sampler::Identity",
        ),
    ] {
        let e = data.plan(&options).unwrap_err().to_string();
        assert!(e.contains(text), "{e} lacks {text}");
    }
}

/// Ranks, batch size and batches of one part of an epoch.
type Layout = (u32, u32, u64);

/// An epoch in parts, each with its own ranks and batch size. The last part ends it.
fn layouts() -> impl Strategy<Value = Vec<Layout>> {
    prop::collection::vec((1u32..9, 1u32..20, 0u64..9), 1..6)
}

/// The rows of all parts: step by step, and in a step rank by rank. Asserts that the last part ends
/// the epoch. `None` if a part has no plan.
fn in_parts(data: &Data, options: &OrderOptions, parts: &[Layout]) -> Option<Vec<RowPlan>> {
    let epoch = 3;
    let mut all = Vec::new();
    let mut at = EpochMark::new(epoch, 0);
    for (i, &(world, batch, steps)) in parts.iter().enumerate() {
        let batch = match options.sampler {
            Sampler::Identity { .. } => options.batch,
            _ => batch,
        };
        let of_part = OrderOptions {
            world,
            batch,
            ..options.clone()
        };
        let plans = ranks(data, &of_part)?;
        at = plans[0].skip_epoch_end(at);
        let last = i + 1 == parts.len();
        let mut step = 0;
        while at.epoch == epoch && (last || step < steps) {
            assert!(plans[0].has_batch_at(at), "a batch where the epoch goes on");
            assert!(plans[0].batches_left(at) > 0);
            for plan in &plans {
                assert_eq!(plan.rows_at(at), plans[0].rows_at(at));
                assert_eq!(plan.size_at(at), plans[0].size_at(at));
                assert_eq!(plan.next_mark(at), plans[0].next_mark(at));
                all.extend((0..plan.rows_at(at)).map(|row| plan.row_at(at, row)));
            }
            let number = plans[0].number_at(at);
            assert!(number < plans[0].batches());
            let behind = plans[0].next_mark(at);
            assert!(behind.epoch > epoch || plans[0].number_at(behind) > number);
            (at, step) = (behind, step + 1);
        }
    }
    assert_eq!(
        at,
        EpochMark::new(epoch + 1, 0),
        "the last part ends the epoch"
    );
    Some(all)
}

proptest! {
    /// For any sequence of ranks and batch sizes, each position of the epoch comes once, with the
    /// same sample as in one process.
    #[test]
    fn an_epoch_in_parts_is_the_epoch(
        data in data(), options in options(), parts in layouts(),
    ) {
        let all = in_parts(&data, &options, &parts);
        prop_assume!(all.is_some());
        let all = all.unwrap();
        let identity = matches!(options.sampler, Sampler::Identity { .. });
        let one = OrderOptions {
            batch: if identity { options.batch } else { 1 },
            world: 1,
            multi_scale: None,
            tail: EpochTail::Short,
            ..options.clone()
        };
        let one = data.plan(&one);
        prop_assume!(one.is_ok());
        let one = one.unwrap();
        let of_one: HashMap<u64, u64> = rows(std::slice::from_ref(&one), 3)
            .into_iter()
            .map(|row| (row.position, row.id))
            .collect();
        let mut seen = HashSet::new();
        for row in all.iter().filter(|row| row.status == RowStatus::Ok) {
            prop_assert!(seen.insert(row.position), "position {} twice", row.position);
            // With identity, ranks may exceed the positions of one process.
            if !identity || row.position < one.positions() {
                prop_assert_eq!(of_one.get(&row.position), Some(&row.id));
            }
        }
        // Whichever part ends the epoch.
        let of_all = |&(world, batch, _): &Layout| u64::from(world) * u64::from(batch);
        let most = parts.iter().map(of_all).max().unwrap();
        match options.tail {
            _ if identity => {}
            EpochTail::Short | EpochTail::Pad => prop_assert_eq!(seen.len() as u64, one.positions()),
            // Samples that fill no batch of the last part, whose sizes may alternate.
            EpochTail::Drop if options.multi_scale.is_none() => {
                prop_assert!(one.positions() - (seen.len() as u64) < most);
            }
            EpochTail::Drop => {}
        }
    }

    /// Batches by number are consecutive.
    #[test]
    fn batches_by_number_are_those_by_samples(
        data in data(), options in options(), epoch: u64,
    ) {
        let epoch = epoch >> 1;
        let plans = ranks(&data, &options);
        prop_assume!(plans.is_some());
        for plan in &plans.unwrap() {
            let mut at = EpochMark::new(epoch, 0);
            for batch in 0..plan.batches() {
                prop_assert_eq!(at, plan.mark(epoch, batch));
                prop_assert_eq!(plan.number_at(at), batch);
                prop_assert_eq!(plan.batches_left(at), plan.batches() - batch);
                prop_assert!(plan.is_within(at.samples));
                at = plan.next_mark(at);
            }
            prop_assert_eq!(at, EpochMark::new(epoch + 1, 0));
        }
    }
}
