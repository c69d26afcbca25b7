//! Labels that an operation draws: what they say of the pixels, the same for any
//! number of workers, through deaths, substitutes and resumes, and what cannot be
//! had with them.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;
use std::time::Duration;

use featherload::internals::DrillBuilder;
use featherload::order::{IdentityProb, SampleWeights, Sampler};
use featherload::recipe::{
    MixOp, Mixing, RandomHorizontalFlip, RandomResizedCrop, RandomRotate90, Resize,
};
use featherload::{
    BatchLabels, DataType, EpochTail, LoaderBuilder, OnError, Recipe, RowStatus, State,
};

use crate::common::rows::{Row, assert_same, stream, take};
use crate::common::{FEATHERLOAD, builder, data};

const CLASSES: u64 = 5;
const EACH: u64 = 7;

fn turns() -> RandomRotate90 {
    RandomRotate90 { label: true }
}

/// Several operations that draw, in front of the one that labels.
fn recipe() -> Recipe {
    Recipe::new("turned")
        .then(RandomResizedCrop::new(24))
        .then(RandomHorizontalFlip::default())
        .then(turns())
        .with_dtype(DataType::U8)
}

#[test]
fn the_label_is_the_number_of_turns() {
    let dir = data(CLASSES, EACH);
    let side = 16;
    let square = Recipe::new("square").then(Resize::exact(side, side));
    let make = |recipe: Recipe| {
        let recipe = recipe.with_dtype(DataType::U8);
        builder(dir.path())
            .recipe(recipe)
            .num_workers(0)
            .build()
            .unwrap()
    };
    let mut plain = make(square.clone());
    let mut turned = make(square.then(turns()));
    let n = side as usize;
    let mut seen = BTreeSet::new();
    for (plain, turned) in plain.epoch().zip(turned.epoch()) {
        let (plain, turned) = (plain.unwrap(), turned.unwrap());
        let BatchLabels::Classes(labels) = turned.labels() else {
            panic!("{:?}", turned.labels());
        };
        assert_eq!(labels.len(), turned.len());
        for (row, label) in labels.iter().enumerate() {
            seen.insert(*label);
            let mut pixels = plain.row(row).unwrap().as_slice::<u8>().unwrap().to_vec();
            for _ in 0..*label {
                // Counter-clockwise: the last column becomes the first row.
                pixels = (0..3 * n * n)
                    .map(|i| {
                        let (c, y, x) = (i / (n * n), i / n % n, i % n);
                        pixels[c * n * n + x * n + (n - 1 - y)]
                    })
                    .collect();
            }
            assert!(
                turned.row(row).unwrap().as_slice::<u8>().unwrap() == pixels,
                "row {row}: {label}"
            );
        }
    }
    assert_eq!(seen, BTreeSet::from([0, 1, 2, 3]));
}

#[test]
fn any_workers_deaths_and_resumes_give_the_same_labels() {
    let dir = data(CLASSES, EACH);
    let make = |workers| {
        builder(dir.path())
            .recipe(recipe())
            .tail(EpochTail::Pad)
            .num_workers(workers)
    };
    let epochs = 3;
    let full = stream(&mut make(0).build().unwrap(), epochs);
    assert_eq!(full.len(), 3 * 40, "35 samples in batches of 8");
    for row in &full {
        let padding = row.status == RowStatus::Padding;
        assert_eq!(row.label == -1, padding, "{row:?}");
        assert!(row.label < 4, "{row:?}");
    }
    let labels = |epoch: u64| -> Vec<i64> {
        let of_epoch = full.iter().filter(|r| r.epoch == epoch);
        of_epoch.map(|r| r.label).collect()
    };
    assert_ne!(labels(0), labels(1), "each epoch draws its own");
    for workers in [1, 2, 8] {
        let got = stream(&mut make(workers).build().unwrap(), epochs);
        assert_same(&got, &full, &format!("{workers} workers"));
    }
    let killed = make(2)
        .epochs(epochs)
        .kill_workers_every(Duration::from_millis(4));
    assert_same(
        &stream(&mut killed.build().unwrap(), epochs),
        &full,
        "kills",
    );
    for (taken, before, after) in [(3, 2, 0), (7, 0, 2)] {
        let (mut head, state) = take(&mut make(before).build().unwrap(), taken);
        let text = serde_json::to_string(&state).unwrap();
        let state: State = serde_json::from_str(&text).unwrap();
        let mut loader = make(after).resume(state.clone()).build().unwrap();
        head.extend(stream(&mut loader, epochs));
        assert_same(&head, &full, "a resume");
        // Who draws no labels has another run.
        let other = make(0).recipe(Recipe::new("turned").then(RandomResizedCrop::new(24)));
        let message = other.resume(state).build().unwrap_err().to_string();
        assert!(message.contains("cannot resume: the recipe"), "{message}");
    }
}

/// A row that stands in for another has the label that goes with its pixels.
#[test]
fn a_substitute_has_its_own_label() {
    let dir = data(CLASSES, EACH);
    let make = |workers, policy| {
        builder(dir.path())
            .recipe(recipe())
            .on_error(policy)
            .num_workers(workers)
            .build()
            .unwrap()
    };
    let good = stream(&mut make(0, OnError::Stop), 1);
    for name in ["class1/002.jpg", "class3/005.jpg", "class3/006.jpg"] {
        fs::write(dir.path().join(name), "no picture").unwrap();
    }
    let got = stream(&mut make(0, OnError::Substitute), 1);
    for workers in [1, 2] {
        let others = stream(&mut make(workers, OnError::Substitute), 1);
        assert_same(&others, &got, &format!("{workers} workers"));
    }
    let mut differ = 0;
    for (row, planned) in got.iter().zip(&good) {
        // The sample's own row: the same position, so the same draw.
        let own: &Row = good.iter().find(|r| r.id == row.id).unwrap();
        assert_eq!((row.label, row.pixels), (own.label, own.pixels), "{row:?}");
        differ += u32::from(row.label != planned.label);
    }
    let given = got.iter().filter(|r| r.status == RowStatus::Substituted);
    assert_eq!(given.count(), 3);
    assert!(differ > 0, "no substitute was turned otherwise");
    // A masked row keeps its id and has no label.
    for (row, planned) in stream(&mut make(2, OnError::Skip), 1).iter().zip(&good) {
        let label = match row.status {
            RowStatus::Failed => -1,
            _ => planned.label,
        };
        assert_eq!((row.id, row.label), (planned.id, label));
    }
}

#[test]
fn mixing_takes_drawn_labels() {
    let dir = data(CLASSES, EACH);
    let make = |workers, classes| {
        let mixing = Mixing::new(classes).then(MixOp::Mixup { alpha: 0.8 });
        let recipe = recipe().with_dtype(DataType::F32).with_mixing(mixing);
        builder(dir.path()).recipe(recipe).num_workers(workers)
    };
    // Though the folder has five classes.
    let vectors = |workers| -> Vec<BatchLabels> {
        let mut loader = make(workers, 4).build().unwrap();
        loader
            .epoch()
            .map(|b| b.unwrap().labels().clone())
            .collect()
    };
    let alone = vectors(0);
    assert_eq!(vectors(2), alone);
    let mut plain = builder(dir.path())
        .recipe(recipe())
        .num_workers(0)
        .build()
        .unwrap();
    for (mixed, batch) in alone.iter().zip(plain.epoch()) {
        let (BatchLabels::Vectors { width: 4, values }, batch) = (mixed, batch.unwrap()) else {
            panic!("{mixed:?}");
        };
        let BatchLabels::Classes(classes) = batch.labels() else {
            panic!("{:?}", batch.labels());
        };
        let mut sums = [0.0; 4];
        for (i, v) in values.iter().enumerate() {
            sums[i % 4] += v;
        }
        for (class, sum) in (0..).zip(sums) {
            // Partners are a permutation of the rows, so that no weight is lost.
            let count = classes.iter().filter(|c| **c == class).count() as f32;
            assert!((sum - count).abs() < 1e-5, "{class}: {sum} of {count}");
        }
    }
    let message = make(0, 3).build().unwrap_err().to_string();
    assert!(
        message.contains("num_classes is 3, and random_rotate90 gives 4 labels: use 4"),
        "{message}"
    );
}

#[test]
fn samplers_that_go_by_classes_are_refused_by_name() {
    let dir = data(CLASSES, EACH);
    let with = |sampler| {
        builder(dir.path())
            .recipe(recipe())
            .sampler(sampler)
            .num_workers(0)
    };
    let weighted = |weights| Sampler::Weighted {
        weights,
        num_samples: None,
    };
    for (sampler, name) in [
        (
            Sampler::Identity {
                per_id: 2,
                prob: IdentityProb::SampleAvg,
            },
            "identity",
        ),
        (weighted(SampleWeights::InverseClassFrequency), "weighted"),
    ] {
        let message = |b: LoaderBuilder| b.memory_plan(0).unwrap_err().to_string();
        let error = with(sampler).build().unwrap_err();
        assert!(error.is_usage());
        let text = error.to_string();
        assert_eq!(message(with(sampler)), text);
        assert!(
            text.contains(name) && text.contains("random_rotate90"),
            "{text}"
        );
    }
    let given = with(weighted(SampleWeights::Given)).sample_weights(vec![1.0; 35]);
    assert!(given.build().unwrap().epoch().next().unwrap().is_ok());
}

#[test]
fn the_forecast_prints_the_labels_of_the_first_rows() {
    let dir = data(CLASSES, EACH);
    let want = stream(
        &mut builder(dir.path())
            .recipe(recipe())
            .num_workers(0)
            .build()
            .unwrap(),
        1,
    );
    let forecast = builder(dir.path())
        .recipe(recipe())
        .num_workers(0)
        .memory_plan(12);
    let drawn = forecast.unwrap().drawn;
    assert_eq!(drawn.len(), 12);
    for (drawn, row) in drawn.iter().zip(&want) {
        assert_eq!((drawn.id, drawn.label), (row.id, Some(row.label)));
        let turns = drawn.steps.as_ref().unwrap().steps.iter();
        let turned = turns.filter(|(op, _)| op == "random_rotate90").count();
        assert_eq!(turned, usize::from(row.label > 0), "{drawn:?}");
    }
    let file = dir.path().join("r.yaml");
    let text = "featherload: 1\nops:\n  - random_resized_crop: {size: 24}\n  - random_rotate90: \
                {label: true}\n";
    fs::write(&file, text).unwrap();
    let out = Command::new(FEATHERLOAD)
        .args(["plan", "--sample", "3", "--recipe"])
        .arg(&file)
        .arg(dir.path())
        .output()
        .unwrap();
    let message = String::from_utf8_lossy(&out.stdout).into_owned();
    let printed = message.lines().filter(|l| l.trim().starts_with("label: "));
    assert_eq!(printed.count(), 3, "{message}");
}
