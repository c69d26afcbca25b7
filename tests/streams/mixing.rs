//! Mixed batches through real loaders: what labels say of the pixels, the same
//! stream for any number of workers, through deaths, from any point on, and
//! another on every rank.

use std::fs;
use std::path::Path;
use std::time::Duration;

use featherload::Rank;
use featherload::bf16;
use featherload::index::{ClassList, FolderOptions};
use featherload::internals::DrillBuilder;
use featherload::order::MultiScale;
use featherload::recipe::{MixChoice, MixOp, Mixing, RandomResizedCrop};
use featherload::{
    Batch, BatchLabels, DataType, EpochTail, Loader, LoaderBuilder, MemoryLayout, OnError, Recipe,
    RowStatus, Source, State,
};
use twox_hash::XxHash3_128;

use crate::common::{FEATHERLOAD, builder, data};

const CLASSES: u64 = 5;
const EACH: u64 = 7;

fn one_of() -> MixOp {
    MixOp::OneOf(vec![
        MixChoice {
            p: 0.4,
            op: MixOp::Mixup { alpha: 0.8 },
        },
        MixChoice {
            p: 0.3,
            op: MixOp::Cutmix { alpha: 1.0 },
        },
        MixChoice {
            p: 0.2,
            op: MixOp::Fmix {
                alpha: 1.0,
                decay_power: 3.0,
                max_soft: 0.1,
            },
        },
    ])
}

fn plain() -> Recipe {
    Recipe::new("small").then(RandomResizedCrop::new((24, 32)))
}

fn recipe(op: MixOp) -> Recipe {
    plain().with_mixing(Mixing::new(CLASSES as u32).then(op))
}

/// A batch, so that two can be compared.
#[derive(Debug, Clone, PartialEq)]
struct Seen {
    epoch: u64,
    number: u64,
    ids: Vec<u64>,
    status: Vec<RowStatus>,
    labels: BatchLabels,
    pixels: u128,
}

fn observed(batch: &Batch) -> Seen {
    Seen {
        epoch: batch.epoch(),
        number: batch.number(),
        ids: batch.ids().to_vec(),
        status: batch.status().to_vec(),
        labels: batch.labels().clone(),
        pixels: XxHash3_128::oneshot(batch.pixels().unwrap().bytes()),
    }
}

fn stream(loader: &mut Loader, epochs: u64) -> Vec<Seen> {
    let mut all = Vec::new();
    while loader.state().epoch < epochs {
        for batch in loader.epoch() {
            all.push(observed(&batch.unwrap()));
        }
    }
    all
}

fn vectors(batch: &Batch) -> Vec<Vec<f32>> {
    let BatchLabels::Vectors { width, values } = batch.labels() else {
        panic!("no vectors: {:?}", batch.labels());
    };
    assert_eq!(values.len(), width * batch.len());
    values.chunks(*width).map(<[f32]>::to_vec).collect()
}

#[test]
fn any_workers_deaths_and_resumes_give_the_same_batches() {
    let dir = data(CLASSES, EACH);
    let make = |workers| {
        builder(dir.path())
            .recipe(recipe(one_of()).with_dtype(DataType::F16))
            .num_workers(workers)
    };
    let epochs = 3;
    let full = stream(&mut make(0).build().unwrap(), epochs);
    assert_eq!(full.len(), 15, "35 samples in batches of 8");
    for workers in [1, 2, 8] {
        let mut loader = make(workers).build().unwrap();
        assert_eq!(stream(&mut loader, epochs), full, "{workers} workers");
        assert!(loader.report().unwrap().mix_s > 0.0);
    }
    let killed = make(2)
        .epochs(epochs)
        .kill_workers_every(Duration::from_millis(4));
    assert_eq!(stream(&mut killed.build().unwrap(), epochs), full, "kills");
    for (taken, before, after) in [(3, 2, 0), (7, 0, 2), (12, 1, 2)] {
        let mut loader = make(before).build().unwrap();
        let mut head = Vec::new();
        let state = 'taken: loop {
            let mut epoch = loader.epoch();
            loop {
                if head.len() == taken {
                    break 'taken epoch.state();
                }
                let Some(batch) = epoch.next() else { break };
                head.push(observed(&batch.unwrap()));
            }
        };
        let text = serde_json::to_string(&state).unwrap();
        let state: State = serde_json::from_str(&text).unwrap();
        let mut loader = make(after).resume(state.clone()).build().unwrap();
        head.extend(stream(&mut loader, epochs));
        assert_eq!(head, full, "{taken} batches, then a resume");
        // Another mixing is another run.
        let other = make(0)
            .recipe(plain().with_dtype(DataType::F16))
            .resume(state);
        let message = other.build().unwrap_err().to_string();
        assert!(message.contains("cannot resume: the recipe"), "{message}");
    }
}

/// Rounded when they are made, and once more when they are mixed in `f32`.
#[test]
fn rows_of_bf16_are_mixed_as_those_of_f32() {
    let dir = data(CLASSES, EACH);
    let make = |workers, dtype| {
        let recipe = recipe(one_of()).with_dtype(dtype);
        let builder = builder(dir.path()).recipe(recipe).num_workers(workers);
        builder.build().unwrap()
    };
    let none = stream(&mut make(0, DataType::Bf16), 2);
    assert_eq!(none.len(), 10, "35 samples in batches of 8");
    assert_eq!(stream(&mut make(2, DataType::Bf16), 2), none, "2 workers");
    let mut mixed = 0;
    let (mut floats, mut halves) = (make(0, DataType::F32), make(0, DataType::Bf16));
    for (want, got) in floats.epoch().zip(halves.epoch()) {
        let (want, got) = (want.unwrap(), got.unwrap());
        assert_eq!(got.labels(), want.labels());
        let labels = vectors(&got);
        mixed += usize::from(labels.iter().flatten().any(|v| *v > 0.0 && *v < 1.0));
        let (want, got) = (
            want.pixels().unwrap().as_slice::<f32>().unwrap(),
            got.pixels().unwrap().as_slice::<bf16>().unwrap(),
        );
        assert_eq!(got.len(), want.len());
        for (want, got) in want.iter().zip(got) {
            // Values of at most 1: half a step of 1 / 256, twice.
            let off = (got.to_f32() - want).abs();
            assert!(off <= 1.0 / 256.0 + 1e-6, "{got} and not {want}");
        }
    }
    assert!(mixed > 1, "{mixed} batches are mixed");
}

/// The same loader without mixing has the pixels that were mixed.
fn pairs(make: impl Fn(Recipe) -> LoaderBuilder, op: MixOp, look: impl Fn(&Batch, &Batch)) {
    for recipe in [
        recipe(op.clone()),
        recipe(op).with_layout(MemoryLayout::Nhwc),
    ] {
        let mut raw = recipe.clone();
        raw.mixing = None;
        let mut mixed = make(recipe).build().unwrap();
        let mut raw = make(raw).build().unwrap();
        for (mixed, raw) in mixed.epoch().zip(raw.epoch()) {
            let (mixed, raw) = (mixed.unwrap(), raw.unwrap());
            assert_eq!(mixed.ids(), raw.ids());
            assert_eq!(mixed.status(), raw.status());
            look(&mixed, &raw);
        }
    }
}

/// The weights of all rows of the raw batch in each row of a mixed one, by the
/// labels alone where classes differ; here by least squares of the pixels.
#[test]
fn mixup_blends_pixels_and_labels_alike() {
    let dir = data(CLASSES, EACH);
    let make = |recipe| {
        builder(dir.path())
            .recipe(recipe)
            .batch_size(5)
            .num_workers(1)
    };
    pairs(make, MixOp::Mixup { alpha: 1.0 }, |mixed, raw| {
        let labels = vectors(mixed);
        let BatchLabels::Classes(classes) = raw.labels() else {
            panic!("classes");
        };
        let n = raw.pixels().unwrap().as_slice::<f32>().unwrap().len() / raw.len();
        let row = |i: usize| &raw.pixels().unwrap().as_slice::<f32>().unwrap()[i * n..(i + 1) * n];
        for (i, label) in labels.iter().enumerate() {
            let sum: f32 = label.iter().sum();
            assert!((sum - 1.0).abs() < 1e-6);
            let got = mixed.row(i).unwrap().as_slice::<f32>().unwrap();
            // The partner is the row whose pixels and label explain what there is.
            let explained = (0..raw.len()).any(|j| {
                let keep = weight(got, row(i), row(j));
                let right = got
                    .iter()
                    .zip(row(i).iter().zip(row(j)))
                    .all(|(g, (a, b))| {
                        let want = f64::from(*a) * keep + f64::from(*b) * (1.0 - keep);
                        (f64::from(*g) - want).abs() < 1e-5
                    });
                let mut want = vec![0f64; CLASSES as usize];
                want[classes[i] as usize] += keep;
                want[classes[j] as usize] += 1.0 - keep;
                let alike = label
                    .iter()
                    .zip(&want)
                    .all(|(l, w)| (f64::from(*l) - w).abs() < 1e-5);
                right && alike
            });
            assert!(explained, "row {i} of batch {}", mixed.number());
        }
    });
}

/// How much of `a` is in `got`, if the rest is `b`.
fn weight(got: &[f32], a: &[f32], b: &[f32]) -> f64 {
    let (mut up, mut down) = (0f64, 0f64);
    for (g, (a, b)) in got.iter().zip(a.iter().zip(b)) {
        let d = f64::from(*a) - f64::from(*b);
        up += (f64::from(*g) - f64::from(*b)) * d;
        down += d * d;
    }
    if down == 0.0 { 1.0 } else { up / down }
}

#[test]
fn ranks_differ_and_each_is_a_place_of_its_own() {
    let dir = data(CLASSES, EACH);
    let labels = |rank, world| {
        let mut loader = builder(dir.path())
            .recipe(recipe(MixOp::Mixup { alpha: 1.0 }))
            .shuffle(false)
            .batch_size(4)
            .tail(EpochTail::Drop)
            .rank(Rank::new(rank, world))
            .num_workers(0)
            .build()
            .unwrap();
        stream(&mut loader, 1)
    };
    let keeps = |all: &[Seen]| -> Vec<u32> {
        let of = |s: &Seen| {
            let BatchLabels::Vectors { values, .. } = &s.labels else {
                panic!("no vectors");
            };
            let part = values.iter().filter(|v| **v > 0.0 && **v < 1.0);
            part.fold(0, |most, v| most.max(v.max(1.0 - v).to_bits()))
        };
        all.iter().map(of).filter(|k| *k > 0).collect()
    };
    let (first, second) = (labels(0, 2), labels(1, 2));
    assert_eq!(labels(0, 2), first);
    let (a, b) = (keeps(&first), keeps(&second));
    assert!(a.len() > 1 && b.len() > 1, "{a:?}, {b:?}");
    assert!(a.iter().all(|k| !b.contains(k)), "{a:?}, {b:?}");
}

#[test]
fn rows_without_samples_stay_zero_and_are_nobodys_partner() {
    let dir = data(CLASSES, EACH);
    for name in ["class1/002.jpg", "class3/005.jpg", "class3/006.jpg"] {
        fs::write(dir.path().join(name), "no picture").unwrap();
    }
    for op in [
        MixOp::Mixup { alpha: 4.0 },
        one_of(),
        MixOp::MixupCutmix {
            mixup_alpha: 0.8,
            cutmix_alpha: 1.0,
            p: 1.0,
            switch_p: 0.5,
            label_smoothing: 0.1,
        },
    ] {
        let make = |workers| {
            builder(dir.path())
                .recipe(recipe(op.clone()))
                .batch_size(8)
                .tail(EpochTail::Pad)
                .on_error(OnError::Skip)
                .num_workers(workers)
                .build()
                .unwrap()
        };
        let mut loader = make(2);
        assert_eq!(stream(&mut loader, 2), stream(&mut make(0), 2));
        let (mut failed, mut padded) = (0, 0);
        for batch in loader.epoch() {
            let batch = batch.unwrap();
            for (row, label) in vectors(&batch).iter().enumerate() {
                let sum: f32 = label.iter().sum();
                failed += u32::from(batch.status()[row] == RowStatus::Failed);
                padded += u32::from(batch.status()[row] == RowStatus::Padding);
                if batch.status()[row].is_masked() {
                    assert!(label.iter().all(|v| *v == 0.0));
                    assert!(
                        batch
                            .row(row)
                            .unwrap()
                            .as_slice::<f32>()
                            .unwrap()
                            .iter()
                            .all(|v| *v == 0.0)
                    );
                } else {
                    assert!((sum - 1.0).abs() < 1e-6, "{sum}");
                }
            }
        }
        assert_eq!((failed, padded), (3, 5));
    }
}

#[test]
fn batches_of_one_row_and_of_several_sizes_are_mixed() {
    let dir = data(CLASSES, EACH);
    let mut mixed = builder(dir.path())
        .recipe(recipe(MixOp::Cutmix { alpha: 1.0 }))
        .batch_size(1)
        .num_workers(0)
        .build()
        .unwrap();
    let mut raw = builder(dir.path())
        .recipe(plain())
        .batch_size(1)
        .num_workers(0)
        .build()
        .unwrap();
    for (a, b) in mixed.epoch().zip(raw.epoch()) {
        let (a, b) = (a.unwrap(), b.unwrap());
        assert_eq!(a.pixels().unwrap().bytes(), b.pixels().unwrap().bytes());
        assert!(vectors(&a)[0].contains(&1.0));
    }
    let make = |workers| {
        builder(dir.path())
            .recipe(recipe(one_of()))
            .multi_scale(MultiScale::new([(32, 32), (64, 32)]))
            .num_workers(workers)
            .build()
            .unwrap()
    };
    assert_eq!(stream(&mut make(2), 2), stream(&mut make(0), 2));
}

#[test]
fn labels_that_do_not_fit_are_named_when_the_loader_is_built() {
    let dir = data(CLASSES, EACH);
    let says = |source: &Path, mixing: Mixing| {
        let recipe = plain().with_mixing(mixing);
        let loader = builder(source).recipe(recipe.clone()).num_workers(0);
        let error = loader.build().unwrap_err();
        assert!(error.is_usage());
        let forecast = builder(source).recipe(recipe).num_workers(0).memory_plan(0);
        assert_eq!(forecast.unwrap_err().to_string(), error.to_string());
        error.to_string()
    };
    let message = says(dir.path(), Mixing::new(4));
    assert!(
        message.ends_with(
            "class4/000.jpg: sample 28 has label 4, and mixing has num_classes 4: the largest \
             label is 4, so use num_classes 5"
        ),
        "{message}"
    );
    let flat = dir.path().join("class0");
    let message = says(&flat, Mixing::new(4));
    assert!(message.contains("mixing"), "{message}");
    let list = dir.path().join("vectors.txt");
    fs::write(&list, "class0/000.jpg 0,1,0\nclass0/001.jpg 1,1,0\n").unwrap();
    let vectors_of = |mixing: Mixing| {
        Loader::builder(Source::detect(&list).unwrap())
            .recipe(plain().with_mixing(mixing))
            .num_workers(0)
            .build()
    };
    let mut loader = vectors_of(Mixing::new(3).then(MixOp::Mixup { alpha: 4.0 })).unwrap();
    for batch in loader.epoch() {
        for label in vectors(&batch.unwrap()) {
            assert!(
                (label[1] - 1.0).abs() < 1e-6 && label[2] == 0.0,
                "{label:?}"
            );
        }
    }
    let message = vectors_of(Mixing::new(4)).unwrap_err().to_string();
    assert!(message.contains("use num_classes 3"), "{message}");
}

#[test]
fn the_forecast_counts_labels_of_every_batch_that_is_alive() {
    let dir = data(CLASSES, EACH);
    let fixed = |recipe: Recipe| {
        let forecast = builder(dir.path()).recipe(recipe).num_workers(2).depth(3);
        forecast.memory_plan(0).unwrap().memory.fixed_bytes
    };
    let n = 1 << 20;
    let labels = plain().with_mixing(Mixing::new(n));
    let without = fixed(plain());
    let label = u64::from(n) * 4;
    assert_eq!(fixed(labels), without + 3 * 8 * label);
    let mixed = plain().with_mixing(Mixing::new(n).then(MixOp::Mixup { alpha: 1.0 }));
    let row = 24 * 32 * 3 * 4;
    assert_eq!(fixed(mixed), without + (3 * 8 + 1) * label + row);
}

/// The index has them once for all processes, and the consumer once more.
#[test]
fn the_forecast_counts_class_names() {
    let dir = data(CLASSES, EACH);
    let fixed = |more: usize| {
        let own = (0..CLASSES).map(|n| format!("class{n}"));
        let names = own.chain((0..more).map(|n| format!("{n:0>100}")));
        let options = FolderOptions {
            classes: Some(ClassList::new(names).unwrap()),
            ..FolderOptions::default()
        };
        let source = Source::Folder(dir.path().into(), options);
        let loader = Loader::builder(source).helper(FEATHERLOAD).recipe(plain());
        loader
            .num_workers(2)
            .memory_plan(0)
            .unwrap()
            .memory
            .fixed_bytes
    };
    let names = 40_000;
    assert!(fixed(names) > fixed(0) + 2 * 100 * names as u64);
}
