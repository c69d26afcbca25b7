//! Properties of plans with buckets, over ranks, batches and rows.

use std::collections::{HashMap, HashSet};

use proptest::prelude::*;

use super::*;
use crate::order::{EpochMark, EpochPlan, EpochTail, OrderOptions, RowStatus, SamplerTable};
use crate::recipe::{BucketRule, BucketStyle};

const RULE: BucketRule = BucketRule {
    area: 96 * 96,
    step: Some(16),
    style: BucketStyle::SdScripts,
    sides: Some((48, 160)),
    upscale: true,
};

type ImageSizes = Vec<Option<(u32, u32)>>;

fn table(sizes: &ImageSizes) -> SamplerTable {
    bucket_table(sizes.iter().copied(), &RULE).unwrap()
}

/// The size of each sample's rows. Images that cannot be read are in the bucket with most images.
fn rows(sizes: &ImageSizes) -> Vec<(u32, u32)> {
    let fitter = RULE.fitter().unwrap();
    let row = |size: &Option<(u32, u32)>| size.and_then(|size| fitter.fit(size)).map(|f| f.row);
    let rows: Vec<_> = sizes.iter().map(row).collect();
    let mut counts: HashMap<(u32, u32), usize> = HashMap::new();
    rows.iter()
        .flatten()
        .for_each(|row| *counts.entry(*row).or_default() += 1);
    let most = *counts.values().max().unwrap();
    let most = counts.into_iter().filter(|(_, count)| *count == most);
    let most = most.map(|(row, _)| row).min().unwrap();
    rows.into_iter().map(|row| row.unwrap_or(most)).collect()
}

fn plans(sizes: &ImageSizes, options: &OrderOptions) -> Option<Vec<EpochPlan>> {
    let of = |rank| {
        let options = OrderOptions {
            rank,
            ..options.clone()
        };
        EpochPlan::with_table(sizes.len() as u64, options, Some(table(sizes))).ok()
    };
    (0..options.world).map(of).collect()
}

fn sizes() -> impl Strategy<Value = ImageSizes> {
    let size = prop_oneof![
        9 => (20u32..400, 20u32..400).prop_map(Some),
        1 => Just(None)
    ];
    prop::collection::vec(size, 1..160).prop_filter("an image", |s| s.iter().any(Option::is_some))
}

fn options() -> impl Strategy<Value = OrderOptions> {
    let tail = prop_oneof![
        Just(EpochTail::Short),
        Just(EpochTail::Pad),
        Just(EpochTail::Drop)
    ];
    (1u32..9, any::<u64>(), tail, 1u32..5).prop_map(|(batch, seed, tail, world)| OrderOptions {
        batch,
        seed,
        sampler: Sampler::Buckets(RULE),
        tail,
        world,
        ..OrderOptions::default()
    })
}

proptest! {
    #[test]
    fn each_sample_comes_once_over_all_ranks(
        sizes in sizes(), options in options(), epoch in 0u64..1 << 40,
    ) {
        let Some(plans) = plans(&sizes, &options) else {
            // Nothing but a drop leaves no batch.
            prop_assert_eq!(options.tail, EpochTail::Drop);
            return Ok(());
        };
        let of_samples = rows(&sizes);
        let mut counts = vec![0u32; sizes.len()];
        let mut positions = HashSet::new();
        let mut at = EpochMark::new(epoch, 0);
        let mut batches = 0;
        while at.epoch == epoch {
            prop_assert_eq!(plans[0].number_at(at), batches);
            prop_assert_eq!(plans[0].mark(epoch, batches), at);
            prop_assert_eq!(plans[0].batches_left(at), plans[0].batches() - batches);
            let size = plans[0].size_at(at).unwrap();
            for plan in &plans {
                prop_assert_eq!(plan.size_at(at), Some(size), "all ranks have one size");
                let (filled, all) = (plan.filled_rows_at(at), plan.rows_at(at));
                prop_assert_eq!(filled, plans[0].filled_rows_at(at));
                prop_assert!(filled >= 1 && filled <= all && all <= options.batch);
                prop_assert!(options.tail == EpochTail::Short || all == options.batch);
                for n in 0..all {
                    let row = plan.row_at(at, n);
                    prop_assert_eq!(row.size, Some(size));
                    prop_assert_eq!(row.status == RowStatus::Padding, n >= filled);
                    if n >= filled {
                        continue;
                    }
                    prop_assert!(positions.insert(row.position));
                    prop_assert_eq!(of_samples[row.id as usize], size, "another bucket");
                    match row.status {
                        RowStatus::Ok => counts[row.id as usize] += 1,
                        status => prop_assert_eq!(status, RowStatus::Repeated),
                    }
                    prop_assert_eq!(
                        plan.sample_at(epoch, batches * u64::from(options.batch) + u64::from(n)),
                        row.id
                    );
                }
            }
            at = plans[0].next_mark(at);
            batches += 1;
        }
        prop_assert_eq!(batches, plans[0].batches());
        prop_assert!(counts.iter().all(|count| *count <= 1));
        // A drop leaves out what does not fill a batch of all ranks, in each bucket.
        let mut buckets: HashMap<(u32, u32), Vec<u32>> = HashMap::new();
        for (row, count) in of_samples.iter().zip(&counts) {
            buckets.entry(*row).or_default().push(*count);
        }
        let whole = (options.batch * options.world) as usize;
        for counts in buckets.values() {
            let want = match options.tail {
                EpochTail::Drop => counts.len() - counts.len() % whole,
                _ => counts.len(),
            };
            prop_assert_eq!(counts.iter().sum::<u32>() as usize, want);
        }
    }

    #[test]
    fn substitutes_are_other_samples_of_the_bucket(
        sizes in sizes(), options in options(), epoch: u64, n: u64,
    ) {
        let Some(plans) = plans(&sizes, &options) else { return Ok(()) };
        let of_samples = rows(&sizes);
        let plan = &plans[0];
        let at = plan.mark(epoch >> 1, n % plan.batches());
        let own = plan.row_at(at, 0);
        let bucket = of_samples.iter().filter(|row| Some(**row) == own.size).count();
        let mut seen = HashSet::from([own.id]);
        for attempt in 1..=plan.substitutes() {
            let row = plan.attempt_at(at, 0, attempt);
            prop_assert_eq!(row.position, own.position);
            if (attempt as usize) < bucket {
                prop_assert_eq!(row.status, RowStatus::Substituted);
                prop_assert_eq!(Some(of_samples[row.id as usize]), own.size);
                prop_assert!(seen.insert(row.id), "a substitute comes again");
            } else {
                prop_assert_eq!((row.status, row.id), (RowStatus::Failed, own.id));
            }
        }
    }

    /// The bound for which slots have room.
    #[test]
    fn no_sample_fills_more_rows_than_the_plan_has(
        sizes in sizes(), options in options(), epoch in 0u64..1 << 40, tries in 0u32..4,
    ) {
        let Some(plans) = plans(&sizes, &options) else { return Ok(()) };
        for plan in &plans {
            let most = plan.most_rows_per_sample(tries);
            for number in 0..plan.batches() {
                let at = plan.mark(epoch, number);
                let mut rows: HashMap<u64, HashSet<u32>> = HashMap::new();
                for row in 0..plan.filled_rows_at(at) {
                    for attempt in 0..=tries {
                        let id = plan.attempt_at(at, row, attempt).id;
                        rows.entry(id).or_default().insert(row);
                    }
                }
                prop_assert!(rows.values().all(|rows| rows.len() as u64 <= most));
            }
        }
    }
}

#[test]
fn a_table_of_buckets_is_the_same_in_another_process() {
    use std::os::fd::AsFd;
    let all: ImageSizes = vec![Some((100, 100)), None, Some((300, 100)), Some((90, 101))];
    let table = table(&all);
    let sampler = Sampler::Buckets(RULE);
    let fd = || table.as_fd().try_clone_to_owned().unwrap();
    let other = SamplerTable::from_fd(fd(), &sampler, 4).unwrap();
    assert_eq!(other.hash(), table.hash());
    let SamplerTable::Groups(groups) = &other else {
        panic!("no groups");
    };
    let sizes: Vec<_> = (0..=groups.len()).map(|g| groups.pair_of(g)).collect();
    assert_eq!(sizes, [Some([96, 96]), Some([160, 48]), None]);
    let members: Vec<_> = (0..4).map(|place| groups.member(place)).collect();
    assert_eq!(members, [0, 3, 1, 2], "the second has no size");
    // Its sizes are no weights: they do not increase.
    let identity = Sampler::Identity {
        per_id: 1,
        prob: IdentityProb::SampleAvg,
    };
    assert!(SamplerTable::from_fd(fd(), &identity, 4).is_err());
    for sizes in [[(96, 96), (0, 48)], [(96, 0), (1, 1)]] {
        let refused = SamplerTable::sized_groups(&[2, 4], &[0, 1, 2, 3], &sizes).unwrap_err();
        assert!(refused.to_string().contains("no size"), "{refused}");
    }
}

#[test]
fn data_without_a_bucket_is_refused() {
    let none: ImageSizes = vec![None, None];
    let refused = bucket_table(none.into_iter(), &RULE)
        .unwrap_err()
        .to_string();
    assert!(refused.contains("none of 2 images"), "{refused}");
}
