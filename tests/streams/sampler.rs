//! Orders of an epoch through real loaders: the same stream for any number of
//! workers, through deaths, from any point on; and what each order promises.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use featherload::internals::DrillBuilder;
use featherload::order::{IdentityProb, MultiScale, SampleWeights};
use featherload::recipe::BoundedResizedCrop;
use featherload::{Loader, LoaderBuilder, OnError, Rank, Recipe, RowStatus, Sampler, State};

use crate::common::rows::{Row, assert_same, stream, take};
use crate::common::{Picture, Random, builder, data};

/// Classes in `data`, and samples in each.
const CLASSES: u64 = 6;
const EACH: u64 = 9;

const PK: Sampler = Sampler::Identity {
    per_id: 4,
    prob: IdentityProb::SampleAvg,
};
const WEIGHTED: Sampler = Sampler::Weighted {
    weights: SampleWeights::Given,
    num_samples: Some(37),
};

fn samplers() -> Vec<Sampler> {
    vec![
        Sampler::Sequential,
        Sampler::Shuffle,
        Sampler::ShardShuffle {
            shard: Some(5),
            window: 12,
        },
        PK,
        WEIGHTED,
        Sampler::Weighted {
            weights: SampleWeights::InverseClassFrequency,
            num_samples: None,
        },
        Sampler::RepeatedAugmentation { repeats: 3 },
        Sampler::LargestFirst { classes: 4 },
    ]
}

/// Weights that leave every third sample out.
fn weights() -> Vec<f64> {
    (0..CLASSES * EACH).map(|i| (i % 3) as f64).collect()
}

fn with(dir: &Path, sampler: Sampler) -> LoaderBuilder {
    let b = builder(dir).sampler(sampler);
    if sampler == WEIGHTED {
        return b.sample_weights(weights());
    }
    b
}

#[test]
fn every_order_streams_alike_for_any_workers_and_from_any_point() {
    let dir = data(CLASSES, EACH);
    let epochs = 2;
    let mut random = Random(6);
    let mut streams = HashSet::new();
    for sampler in samplers() {
        let full = stream(
            &mut with(dir.path(), sampler).num_workers(0).build().unwrap(),
            epochs,
        );
        let ids: Vec<u64> = full.iter().map(|r| r.id).collect();
        assert!(streams.insert(ids), "{sampler}: an order of its own");
        for workers in [1, 2] {
            let mut loader = with(dir.path(), sampler)
                .num_workers(workers)
                .build()
                .unwrap();
            let got = stream(&mut loader, epochs);
            assert_same(&got, &full, &format!("{sampler}, {workers} workers"));
        }
        let per_epoch = full
            .iter()
            .filter(|r| r.epoch == 0)
            .map(|r| r.batch)
            .max()
            .unwrap()
            + 1;
        for (before, after) in [(0, 1), (1, 2), (2, 0)] {
            let taken = random.below(per_epoch * epochs);
            let mut loader = with(dir.path(), sampler)
                .num_workers(before)
                .build()
                .unwrap();
            let (head, state) = take(&mut loader, taken);
            drop(loader);
            let text = serde_json::to_string(&state).unwrap();
            let state: State = serde_json::from_str(&text).unwrap();
            let mut loader = with(dir.path(), sampler)
                .num_workers(after)
                .resume(state)
                .build()
                .unwrap();
            let tail = stream(&mut loader, epochs);
            let what = format!("{sampler}: {taken} batches, {before} then {after} workers");
            assert_same(&[head, tail].concat(), &full, &what);
        }
    }
}

/// Sizes take turns; every batch has as many pixels or a few less. Rows that the
/// decoder does not serve are masked: shapes and places are what is looked at.
#[test]
fn batches_of_several_sizes_have_shapes_of_their_own() {
    let dir = data(CLASSES, EACH);
    let make = |workers| {
        builder(dir.path())
            .multi_scale(MultiScale::new([(64, 64), (96, 64), (32, 64)]))
            .on_error(OnError::Stop)
            .num_workers(workers)
            .build()
            .unwrap()
    };
    let shapes = |loader: &mut Loader| {
        let mut shapes = Vec::new();
        for _ in 0..2 {
            for batch in loader.epoch() {
                let batch = batch.unwrap();
                let shape = batch.shape().unwrap();
                let bytes: usize = shape.iter().product::<usize>() * batch.dtype().size();
                assert_eq!(batch.pixels().unwrap().bytes().len(), bytes);
                assert_eq!(batch.len(), shape[0]);
                shapes.push(shape);
            }
        }
        shapes
    };
    let want = shapes(&mut make(0));
    assert_eq!(shapes(&mut make(2)), want);
    let per_epoch = want.len() / 2;
    let rows: usize = want[..per_epoch].iter().map(|s| s[0]).sum();
    assert_eq!(rows as u64, CLASSES * EACH);
    for (i, shape) in want.iter().enumerate() {
        let full = 8 * 64 * 64 / (shape[2] * shape[3]);
        let last = i % per_epoch == per_epoch - 1;
        assert!(shape[0] == full || last && shape[0] < full, "{shape:?}");
    }
    let sizes: HashSet<_> = want.iter().map(|s| (s[2], s[3])).collect();
    assert_eq!(sizes.len(), 3);
    let full = stream(&mut make(0), 2);
    assert_same(&stream(&mut make(2), 2), &full, "2 workers");
    for taken in [1, 5, 8] {
        let (head, state) = take(&mut make(1), taken);
        let state = serde_json::to_string(&state).unwrap();
        let state: State = serde_json::from_str(&state).unwrap();
        let mut loader = builder(dir.path())
            .multi_scale(MultiScale::new([(64, 64), (96, 64), (32, 64)]))
            .on_error(OnError::Stop)
            .resume(state)
            .num_workers(2)
            .build()
            .unwrap();
        let tail = stream(&mut loader, 2);
        assert_same(&[head, tail].concat(), &full, &format!("{taken} batches"));
    }
    // A bounded crop takes the batch's size as well.
    let bounded = Recipe::new("bounded").then(BoundedResizedCrop::new(48));
    let mut loader = builder(dir.path())
        .recipe(bounded)
        .multi_scale(MultiScale::new([(64, 64), (96, 64), (32, 64)]))
        .num_workers(0)
        .build()
        .unwrap();
    assert_eq!(shapes(&mut loader), want);
    let e = builder(dir.path())
        .recipe(Recipe::full())
        .multi_scale(MultiScale::new([(64, 64)]))
        .num_workers(0)
        .build()
        .unwrap_err();
    assert!(e.is_usage() && e.to_string().contains("multi_scale sets the size of rows"));
}

/// What `bench` prints on stderr, and its digest when it ended well.
fn bench(dir: &Path, args: &[&str]) -> (String, Option<String>) {
    let out = Command::new(crate::common::FEATHERLOAD)
        .args([
            "bench",
            "--json",
            "--digest",
            "--batch-size",
            "8",
            "--recipe",
            "eval224",
        ])
        .args(args)
        .arg(dir)
        .output()
        .unwrap();
    let digest = serde_json::from_slice::<serde_json::Value>(&out.stdout)
        .ok()
        .and_then(|report| Some(report.get("digest")?.as_str()?.to_owned()));
    let digest = digest.filter(|_| out.status.success());
    (String::from_utf8_lossy(&out.stderr).into_owned(), digest)
}

#[test]
fn the_command_line_has_every_order_and_errors_name_its_flags() {
    let dir = data(CLASSES, EACH);
    let orders = [
        &["--sampler", "sequential"][..],
        &["--sampler", "shuffle"],
        &[
            "--sampler",
            "shard-shuffle",
            "--shard",
            "4",
            "--shuffle-window",
            "9",
        ],
        &["--sampler", "identity", "--per-id", "2", "--prob", "id-avg"],
        &["--sampler", "identity", "--per-id", "2"],
        &["--sampler", "weighted", "--num-samples", "30"],
        &["--sampler", "repeated", "--repeats", "2"],
        &["--sampler", "largest-first", "--size-classes", "3"],
    ];
    let mut seen = HashSet::new();
    for args in orders {
        let of = |workers| {
            let (err, digest) = bench(dir.path(), &[args, &["--num-workers", workers]].concat());
            digest.unwrap_or_else(|| panic!("{args:?}: {err}"))
        };
        let digest = of("0");
        assert_eq!(digest, of("1"), "{args:?}");
        assert!(seen.insert(digest), "{args:?}: an order of its own");
    }
    let (_, no_shuffle) = bench(dir.path(), &["--no-shuffle", "--num-workers", "0"]);
    assert!(seen.contains(&no_shuffle.unwrap()), "that of sequential");
    let (_, default) = bench(dir.path(), &["--num-workers", "0"]);
    assert!(seen.contains(&default.unwrap()), "that of shuffle");
    for (args, text) in [
        (
            &["--shard", "4"][..],
            "--shard needs --sampler shard-shuffle, and the sampler is shuffle",
        ),
        (
            &["--sampler", "repeated", "--repeats", "0"],
            "--repeats is 0",
        ),
        (&["--no-shuffle", "--sampler", "shuffle"], "--sampler"),
        (&["--multi-scale", "224x31"], "--multi-scale"),
        (
            &["--sampler", "identity", "--multi-scale", "64x64"],
            "--multi-scale changes the rows",
        ),
        (
            &["--sampler", "identity", "--per-id", "3"],
            "not a multiple of --per-id = 3",
        ),
    ] {
        let (err, digest) = bench(dir.path(), args);
        assert!(digest.is_none() && err.contains(text), "{args:?}: {err}");
    }
}

#[test]
fn workers_killed_by_order_change_no_identities() {
    let dir = data(CLASSES, EACH);
    let make = || with(dir.path(), PK);
    let mut loader = make()
        .num_workers(2)
        .epochs(30)
        .kill_workers_every(Duration::from_millis(4))
        .build()
        .unwrap();
    let (mut got, mut epochs) = (Vec::new(), 0);
    while epochs < 30 {
        epochs += 1;
        got.extend(stream(&mut loader, epochs));
        if loader.report().unwrap().worker_deaths >= 10 {
            break;
        }
    }
    let report = loader.report().unwrap();
    assert!(report.worker_deaths > 0);
    assert_eq!(report.worker_deaths, report.ordered_deaths, "{report:?}");
    let want = stream(&mut make().num_workers(0).build().unwrap(), epochs);
    assert_same(&got, &want, "kills by order");
}

fn epoch_of(dir: &Path, sampler: Sampler) -> Vec<Row> {
    stream(&mut with(dir, sampler).num_workers(1).build().unwrap(), 1)
}

#[test]
fn batches_keep_what_their_orders_promise() {
    let dir = data(CLASSES, EACH);
    // Batches of 8: two classes of four samples.
    let rows = epoch_of(dir.path(), PK);
    assert_eq!(rows.len(), 56, "7 whole batches of 8 for 54 samples");
    for batch in rows.chunks(8) {
        let labels: Vec<i64> = batch.iter().map(|r| r.label).collect();
        assert!(labels[..4].iter().all(|l| *l == labels[0]));
        assert!(labels[4..].iter().all(|l| *l == labels[4]));
        assert_ne!(labels[0], labels[4]);
        let ids: HashSet<u64> = batch.iter().map(|r| r.id).collect();
        assert_eq!(ids.len(), 8, "drawn without replacement");
    }
    let rows = epoch_of(dir.path(), WEIGHTED);
    assert_eq!(rows.len(), 37);
    assert!(
        rows.iter()
            .all(|r| r.id % 3 != 0 && r.status == RowStatus::Ok)
    );
    let rows = epoch_of(dir.path(), Sampler::RepeatedAugmentation { repeats: 3 });
    assert_eq!(rows.len(), 54);
    for three in rows.chunks(3) {
        assert!(three.iter().all(|r| r.id == three[0].id));
        let pixels: HashSet<u128> = three.iter().map(|r| r.pixels).collect();
        assert_eq!(pixels.len(), 3, "other augmentations of the same picture");
    }
}

#[test]
fn large_pictures_come_first_with_rows_of_any_size() {
    let dir = tempfile::tempdir().unwrap();
    let side = |i: u16| 20 + (i * 7) % 31;
    for i in 0..30 {
        let picture = Picture::rgb(side(i), 40, u64::from(i)).encode();
        fs::write(dir.path().join(format!("{i:02}.jpg")), picture).unwrap();
    }
    fs::write(dir.path().join("98.jpg"), "no picture").unwrap();
    for recipe in [Recipe::eval224(), Recipe::full()] {
        let make = |workers| {
            builder(dir.path())
                .recipe(recipe.clone())
                .sampler(Sampler::LargestFirst { classes: 3 })
                .on_error(OnError::Skip)
                .num_workers(workers)
                .build()
                .unwrap()
        };
        let rows = stream(&mut make(1), 2);
        assert_same(&rows, &stream(&mut make(0), 2), "1 worker");
        for epoch in rows.chunks(31) {
            let sides: Vec<u16> = epoch
                .iter()
                .map(|r| if r.id == 30 { 0 } else { side(r.id as u16) })
                .collect();
            // 31 samples: 10, 10 and 11. No two pictures are of one area.
            for (larger, smaller) in [
                (&sides[..10], &sides[10..20]),
                (&sides[10..20], &sides[20..]),
            ] {
                assert!(larger.iter().min() > smaller.iter().max());
            }
            let bad = epoch.iter().position(|r| r.id == 30).unwrap();
            assert!(bad >= 20, "what has no header is of the last class");
            assert_eq!(epoch[bad].status, RowStatus::Failed);
        }
        assert_ne!(
            rows[..31].iter().map(|r| r.id).collect::<Vec<_>>(),
            rows[31..].iter().map(|r| r.id).collect::<Vec<_>>()
        );
    }
}

/// Rows of own sizes, of which one may stand in a batch as often as there are
/// rows: the slot holds it.
#[test]
fn the_largest_picture_fits_into_every_row_of_a_slot() {
    let dir = tempfile::tempdir().unwrap();
    for i in 0..12u16 {
        let side = if i == 4 { 300 } else { 16 };
        let picture = Picture::rgb(side, side, u64::from(i)).encode();
        fs::write(dir.path().join(format!("{i:02}.jpg")), picture).unwrap();
    }
    let mut weights = vec![0.0; 12];
    weights[4] = 1.0;
    let make = |workers| {
        builder(dir.path())
            .recipe(Recipe::full())
            .sampler(Sampler::Weighted {
                weights: SampleWeights::Given,
                num_samples: None,
            })
            .sample_weights(weights.clone())
            .num_workers(workers)
            .build()
            .unwrap()
    };
    let rows = stream(&mut make(1), 1);
    assert_eq!(rows.len(), 12);
    assert!(rows.iter().all(|r| r.id == 4 && r.pixels == rows[0].pixels));
    assert_same(&rows, &stream(&mut make(0), 1), "1 worker");
}

/// A bad sample's row goes to another of its identity; to none when there is none.
#[test]
fn substitutes_are_of_the_same_identity() {
    let dir = data(CLASSES, EACH);
    // The data set is the same, but for the pictures that are spoilt.
    let clean = stream(&mut with(dir.path(), PK).num_workers(0).build().unwrap(), 1);
    let loader = with(dir.path(), PK).num_workers(0).build().unwrap();
    // Two of class 0, and all of class 3.
    let bad: HashSet<u64> = [1, 5].into_iter().chain(27..36).collect();
    for id in &bad {
        fs::write(loader.index().path(*id), "no picture").unwrap();
    }
    drop(loader);
    let make = |workers| {
        with(dir.path(), PK)
            .on_error(OnError::Substitute)
            .num_workers(workers)
            .build()
            .unwrap()
    };
    let got = stream(&mut make(0), 1);
    assert_same(&stream(&mut make(2), 1), &got, "2 workers");
    let mut seen: HashMap<RowStatus, usize> = HashMap::new();
    for (row, was) in got.iter().zip(&clean) {
        let masked = row.status == RowStatus::Failed;
        assert_eq!(row.label, if masked { -1 } else { was.label });
        if !bad.contains(&was.id) {
            assert_eq!(row, was);
            continue;
        }
        *seen.entry(row.status).or_default() += 1;
        if was.label == 3 {
            assert_eq!((row.status, row.id), (RowStatus::Failed, was.id));
        } else {
            assert_eq!(row.status, RowStatus::Substituted);
            assert!(!bad.contains(&row.id));
            let of_batch = clean.iter().filter(|r| r.batch == row.batch);
            assert!(
                of_batch.into_iter().all(|r| r.id != row.id),
                "no twin in its batch"
            );
        }
    }
    assert!(seen.contains_key(&RowStatus::Failed), "{seen:?}");
    assert!(seen.contains_key(&RowStatus::Substituted), "{seen:?}");
}

#[test]
fn another_order_or_another_table_is_no_resume() {
    let dir = data(CLASSES, EACH);
    let state = |sampler| {
        with(dir.path(), sampler)
            .num_workers(0)
            .build()
            .unwrap()
            .state()
    };
    let refused = |builder: LoaderBuilder, state: &State| {
        let e = builder
            .num_workers(0)
            .resume(state.clone())
            .build()
            .unwrap_err();
        assert!(e.is_usage());
        e.to_string()
    };
    assert_eq!(state(Sampler::Shuffle).sampler_hash, None);
    let then = state(PK);
    assert!(then.sampler_hash.is_some());
    let e = refused(with(dir.path(), Sampler::Shuffle), &then);
    let want = "the sampler was identity (per_id 4, prob sample-avg) and is now shuffle";
    assert!(e.contains(want), "{e}");
    let then = state(WEIGHTED);
    let mut other = weights();
    other[7] += 1.0;
    let e = refused(with(dir.path(), WEIGHTED).sample_weights(other), &then);
    assert!(
        e.contains("the table of the sampler weighted (given"),
        "{e}"
    );
    let then = state(Sampler::LargestFirst { classes: 4 });
    let path = with(dir.path(), PK)
        .num_workers(0)
        .build()
        .unwrap()
        .index()
        .path(3);
    fs::write(path, Picture::rgb(999, 999, 3).encode()).unwrap();
    let e = refused(
        with(dir.path(), Sampler::LargestFirst { classes: 4 }),
        &then,
    );
    assert!(e.contains("the table of the sampler largest-first"), "{e}");
}

#[test]
fn what_an_order_lacks_is_named() {
    let dir = data(CLASSES, EACH);
    let flat = tempfile::tempdir().unwrap();
    for i in 0..8 {
        let picture = Picture::rgb(20, 20, i).encode();
        fs::write(flat.path().join(format!("{i}.jpg")), picture).unwrap();
    }
    let list = flat.path().join("vectors.txt");
    fs::write(&list, "0.jpg 1.0 2.0\n1.jpg 0.5 0.5\n").unwrap();
    let given = Sampler::Weighted {
        weights: SampleWeights::Given,
        num_samples: None,
    };
    let few = Sampler::Identity {
        per_id: 1,
        prob: IdentityProb::IdAvg,
    };
    for (builder, text) in [
        (builder(flat.path()).sampler(PK), "no sample has a class"),
        (
            builder(dir.path()).sampler(few),
            "there are 6: lower `batch_size`",
        ),
        (
            builder(dir.path()).sampler(PK).batch_size(6),
            "not a multiple of per_id = 4",
        ),
        (builder(dir.path()).sampler(given), "give sample_weights"),
        (
            builder(dir.path()).sample_weights(weights()),
            "have no effect on the sampler",
        ),
        (
            builder(dir.path()).sampler(given).sample_weights(vec![1.0]),
            "there are 1 sample weights for 54",
        ),
    ] {
        let e = builder.num_workers(0).build().unwrap_err();
        assert!(
            e.is_usage() && e.to_string().contains(text),
            "{e} lacks {text}"
        );
    }
    let (index, _) = featherload::Index::list(
        &list,
        &featherload::index::ListOptions {
            labels: featherload::index::ListLabels::Vector,
            ..Default::default()
        },
    )
    .unwrap();
    let e = featherload::Loader::builder(index)
        .sampler(PK)
        .num_workers(0)
        .build()
        .unwrap_err();
    assert!(e.to_string().contains("vectors of 2 numbers"), "{e}");
}

/// The order of an epoch for [`Sampler::Given`]: others in each epoch, with samples that come twice.
fn given_ids(epoch: u64) -> Vec<u64> {
    (0..20).map(|i| (i * 7 + epoch * 13) % 17).collect()
}

/// `epochs` epochs of a loader whose order is given.
fn given_stream(loader: &mut Loader, epochs: u64) -> Vec<Row> {
    let mut rows = Vec::new();
    for epoch in 0..epochs {
        loader.set_order(epoch, &given_ids(epoch)).unwrap();
        rows.extend(stream(loader, epoch + 1));
    }
    rows
}

#[test]
fn given_orders_come_as_given_with_any_workers_and_deaths() {
    let dir = data(CLASSES, EACH);
    let make = || with(dir.path(), Sampler::Given { num_samples: 20 });
    let want = given_stream(&mut make().num_workers(0).build().unwrap(), 4);
    let ids: Vec<u64> = want.iter().map(|row| row.id).collect();
    assert_eq!(ids, (0..4).flat_map(given_ids).collect::<Vec<u64>>());
    for workers in [1, 2, 8] {
        let mut loader = make().num_workers(workers).build().unwrap();
        assert_same(
            &given_stream(&mut loader, 4),
            &want,
            &format!("{workers} workers"),
        );
    }
    let mut loader = make()
        .num_workers(2)
        .kill_workers_every(Duration::from_millis(4))
        .build()
        .unwrap();
    assert_same(&given_stream(&mut loader, 4), &want, "kills");
    // Two ranks: each has its own order, and other random numbers.
    let rank = |rank| {
        let mut loader = make()
            .rank(Rank::new(rank, 2))
            .num_workers(1)
            .build()
            .unwrap();
        given_stream(&mut loader, 1)
    };
    let (first, second) = (rank(0), rank(1));
    let ids = |rows: &[Row]| rows.iter().map(|row| row.id).collect::<Vec<u64>>();
    assert_eq!((ids(&first), ids(&second)), (given_ids(0), given_ids(0)));
    assert_ne!(first, second);
}

#[test]
fn given_orders_resume_and_refuse_another_order() {
    let dir = data(CLASSES, EACH);
    let make = || with(dir.path(), Sampler::Given { num_samples: 20 });
    let want = given_stream(&mut make().num_workers(1).build().unwrap(), 2);
    let mut loader = make().num_workers(2).build().unwrap();
    loader.set_order(0, &given_ids(0)).unwrap();
    let mut got = stream(&mut loader, 1);
    loader.set_order(1, &given_ids(1)).unwrap();
    let (begun, state) = take(&mut loader, 1);
    got.extend(begun);
    let mut other = make().num_workers(1).build().unwrap();
    other.set_order(1, &given_ids(2)).unwrap();
    let e = other.resume(&state).unwrap_err().to_string();
    assert!(e.contains("the table of the sampler given"), "{e}");
    other.set_order(1, &given_ids(1)).unwrap();
    other.resume(&state).unwrap();
    got.extend(stream(&mut other, 2));
    assert_same(&got, &want, "resumed");
    // Nothing is lost if an epoch has no order, or a wrong one.
    let e = other
        .next_batch_within(Duration::from_secs(1))
        .unwrap_err()
        .to_string();
    assert!(e.contains("epoch 2 has no order: call set_order"), "{e}");
    let e = other.set_order(2, &[0; 19]).unwrap_err().to_string();
    assert!(
        e.contains("has 19 samples, and the length of the sampler was 20"),
        "{e}"
    );
    let e = other.set_order(2, &[54; 20]).unwrap_err().to_string();
    assert!(e.contains("give numbers below 54"), "{e}");
    other.set_order(2, &given_ids(2)).unwrap();
    assert_eq!(stream(&mut other, 3).len(), 20);
    let mut shuffled = builder(dir.path()).num_workers(1).build().unwrap();
    let e = shuffled.set_order(0, &[0]).unwrap_err().to_string();
    assert!(
        e.contains("the sampler shuffle makes the order itself"),
        "{e}"
    );
}

#[test]
fn an_order_that_is_given_again_cancels_the_former() {
    let dir = data(CLASSES, EACH);
    let mut loader = with(dir.path(), Sampler::Given { num_samples: 20 })
        .num_workers(2)
        .build()
        .unwrap();
    for round in 0..30 {
        loader.set_epoch(0);
        loader.set_order(0, &given_ids(round)).unwrap();
        let batch = loader.epoch().next().unwrap().unwrap();
        assert_eq!(
            batch.ids(),
            &given_ids(round)[..batch.ids().len()],
            "round {round}"
        );
    }
}

#[test]
fn a_given_order_repeats_large_images_of_their_own_size() {
    let dir = tempfile::tempdir().unwrap();
    for (name, side) in [("a.png", 600), ("b.png", 20), ("c.png", 31)] {
        let pixels = image::RgbImage::from_fn(side, side, |x, y| image::Rgb([x as u8, y as u8, 7]));
        pixels.save(dir.path().join(name)).unwrap();
    }
    let ids = [0, 0, 0, 0, 0, 0, 1, 2, 0];
    let sides = [600_usize, 20, 31];
    for workers in [0, 2] {
        let mut loader = builder(dir.path())
            .recipe(Recipe::full())
            .batch_size(4)
            .sampler(Sampler::Given { num_samples: 9 })
            .num_workers(workers)
            .build()
            .unwrap();
        loader.set_order(0, &ids).unwrap();
        let mut seen = Vec::new();
        for batch in loader.epoch() {
            let batch = batch.unwrap();
            for (row, id) in batch.ids().iter().enumerate() {
                let side = sides[*id as usize];
                let bytes = batch.row(row).unwrap().bytes().unwrap().len();
                assert_eq!(bytes, side * side * 3, "sample {id}");
                seen.push(*id);
            }
        }
        assert_eq!(seen, ids);
    }
}

#[test]
fn the_state_has_the_hash_of_its_own_epochs_order() {
    let dir = data(CLASSES, EACH);
    let make = || with(dir.path(), Sampler::Given { num_samples: 20 }).num_workers(1);
    let mut loader = make().build().unwrap();
    loader.set_order(0, &given_ids(0)).unwrap();
    let (mut got, state) = take(&mut loader, 1);
    loader.set_order(1, &given_ids(1)).unwrap();
    assert_eq!(loader.state(), state);
    let mut other = make().build().unwrap();
    other.set_order(0, &given_ids(0)).unwrap();
    other.set_order(1, &given_ids(1)).unwrap();
    other.resume(&state).unwrap();
    got.extend(stream(&mut other, 1));
    let want = given_stream(&mut make().build().unwrap(), 1);
    assert_same(&got, &want, "resumed with two orders");
    let e = make().resume(state).build().unwrap_err().to_string();
    assert!(
        e.contains("call Loader::set_order and Loader::resume"),
        "{e}"
    );
}
