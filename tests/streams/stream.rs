//! A batch is a pure function of data, recipe, seed and place: the same stream
//! for any number of workers, through crashes, from any point on.

use std::collections::HashMap;
use std::time::Duration;

use featherload::Position;
use featherload::Rank;
use featherload::bf16;
use featherload::f16;
use featherload::internals::DrillBuilder;
use featherload::recipe::{
    ElasticTransform, Op, RandomAdjustSharpness, RandomAffine, RandomApply, RandomAutocontrast,
    RandomChoice, RandomEqualize, RandomInvert, RandomOrder, RandomPerspective, RandomPosterize,
    RandomSolarize, RandomZoomOut, Resize, Span,
};
use featherload::{BatchLabels, DataType, EpochTail, Loader, Recipe, RowStatus, State};
use nix::sys::signal::Signal;

use crate::common::processes::send;
use crate::common::rows::{Row, assert_same, rows, stream, take};
use crate::common::{Random, builder, data};

fn truth(dir: &std::path::Path, epochs: u64) -> Vec<Row> {
    stream(&mut builder(dir).num_workers(0).build().unwrap(), epochs)
}

#[test]
fn any_number_of_workers_gives_the_stream_of_none() {
    let dir = data(6, 9);
    let want = truth(dir.path(), 2);
    for workers in [1, 2, 4, 8] {
        let mut loader = builder(dir.path()).num_workers(workers).build().unwrap();
        let got = stream(&mut loader, 2);
        assert_same(&got, &want, &format!("{workers} workers"));
        let report = loader.report().unwrap();
        assert_eq!(report.workers.len(), workers);
        assert_eq!(report.worker_deaths, 0, "{:?}", report.events);
    }
}

#[test]
fn a_state_behind_the_last_batch_is_refused_and_the_loader_goes_on() {
    let dir = data(3, 4);
    let want = truth(dir.path(), 1);
    for workers in [0, 1] {
        let make = || builder(dir.path()).num_workers(workers);
        let mut loader = make().build().unwrap();
        let batches = loader.batches_per_epoch();
        let behind = |samples| State {
            samples,
            ..make().build().unwrap().state()
        };
        for samples in [12, 19] {
            let e = loader.resume(&behind(samples)).unwrap_err();
            assert_eq!(e.option_name(), Some("resume"), "{e}");
            let message = format!("after {samples} samples of epoch 0, and an epoch has 12");
            assert!(e.to_string().contains(&message), "{e}");
            let e = make().resume(behind(samples)).build().unwrap_err();
            assert!(e.is_usage(), "{e}");
            let e = make().start(Position::new(0, samples)).build().unwrap_err();
            assert!(e.to_string().contains("has 2 batches"), "{e}");
        }
        assert_same(&stream(&mut loader, 1), &want, "after refusals");
        assert_eq!(batches, 2);
        loader.resume(&behind(8)).unwrap();
        assert_eq!(loader.batches_left(), 1);
        let last = stream(&mut loader, 1);
        assert_same(&last, &want[want.len() - last.len()..], "the last batch");
    }
}

/// torchvision's single operations, and those that hold others.
#[test]
fn operations_inside_of_others_stream_alike_for_any_workers() {
    let dir = data(3, 7);
    let some: Vec<Op> = vec![
        RandomPosterize::new(3).into(),
        RandomSolarize::new(120.0).into(),
        RandomEqualize::default().into(),
        RandomAutocontrast::default().into(),
        RandomInvert::default().into(),
        RandomAdjustSharpness::new(2.5).into(),
    ];
    let moved: Vec<Op> = vec![
        RandomAffine {
            translate: [0.2, 0.2],
            ..RandomAffine::new(Span(-30.0, 30.0))
        }
        .into(),
        RandomPerspective::default().into(),
        ElasticTransform::default().into(),
    ];
    let recipe = Recipe::new("single")
        .then(RandomZoomOut::default())
        .then(Resize::exact(64, 80))
        .then(RandomOrder::new(vec![
            RandomChoice::new(some).into(),
            RandomApply::new(moved).into(),
        ]));
    let make = |workers| {
        let builder = builder(dir.path())
            .recipe(recipe.clone())
            .num_workers(workers);
        stream(&mut builder.build().unwrap(), 2)
    };
    let want = make(0);
    for workers in [1, 2] {
        assert_same(&make(workers), &want, &format!("{workers} workers"));
    }
}

/// To the nearest of `bf16`, halves to the even side: the bits.
fn nearest_bf16(v: f32) -> u16 {
    let bits = v.to_bits();
    ((bits + 0x7fff + (bits >> 16 & 1)) >> 16) as u16
}

#[test]
fn bf16_batches_are_those_of_f32_rounded_for_any_workers() {
    let dir = data(3, 7);
    let make = |workers, dtype| {
        let recipe = Recipe::train224().with_dtype(dtype);
        let builder = builder(dir.path()).recipe(recipe).num_workers(workers);
        builder.build().unwrap()
    };
    let mut exact = make(0, DataType::F32);
    let exact = exact.epoch().map(|batch| batch.unwrap());
    let exact: Vec<Vec<f32>> = exact
        .map(|b| b.pixels().unwrap().as_slice::<f32>().unwrap().to_vec())
        .collect();
    assert_eq!(exact.len(), 3, "21 samples in batches of 8");
    for workers in [0, 2] {
        let mut loader = make(workers, DataType::Bf16);
        let batches: Vec<_> = loader.epoch().map(|batch| batch.unwrap()).collect();
        assert_eq!(batches.len(), exact.len());
        for (batch, exact) in batches.iter().zip(&exact) {
            let got = batch.pixels().unwrap().as_slice::<bf16>().unwrap();
            assert_eq!(batch.pixels().unwrap().bytes().len(), 2 * exact.len());
            let want = exact.iter().map(|v| nearest_bf16(*v));
            let what = format!("{workers} workers, batch {}", batch.number());
            assert!(got.iter().map(|v| v.to_bits()).eq(want), "{what}");
            let row = 3 * 224 * 224;
            assert_eq!(
                batch.row(1).unwrap().as_slice::<bf16>().unwrap(),
                &got[row..2 * row],
                "{what}"
            );
            let message = batch
                .pixels()
                .unwrap()
                .as_slice::<f16>()
                .unwrap_err()
                .to_string();
            assert!(
                message.contains("the batch holds bf16, not f16"),
                "{message}"
            );
        }
    }
}

#[test]
fn the_shared_photos_stream_alike_with_and_without_workers() {
    let Some(photos) = crate::common::photos("the_shared_photos_stream_alike") else {
        return;
    };
    let want = truth(&photos, 1);
    let mut loader = builder(&photos).num_workers(3).build().unwrap();
    assert_same(&stream(&mut loader, 1), &want, "3 workers");
}

#[test]
fn every_id_comes_exactly_once_an_epoch_with_its_label() {
    let dir = data(5, 7);
    let mut loader = builder(dir.path()).num_workers(2).build().unwrap();
    let got = stream(&mut loader, 3);
    for epoch in 0..3 {
        let mut seen = HashMap::new();
        for row in got.iter().filter(|r| r.epoch == epoch) {
            assert_eq!(row.status, RowStatus::Ok);
            assert_eq!(row.label, row.id as i64 / 7, "7 pictures in each class");
            *seen.entry(row.id).or_insert(0) += 1;
        }
        assert_eq!(seen.len(), 35);
        assert!(seen.values().all(|n| *n == 1));
    }
    let order = |epoch| {
        got.iter()
            .filter(|r| r.epoch == epoch)
            .map(|r| r.id)
            .collect::<Vec<_>>()
    };
    assert_ne!(order(0), order(1), "another order in each epoch");
}

#[test]
fn workers_killed_by_order_change_nothing() {
    let dir = data(6, 9);
    let mut loader = builder(dir.path())
        .num_workers(3)
        .epochs(50)
        .kill_workers_every(Duration::from_millis(4))
        .build()
        .unwrap();
    let mut got = Vec::new();
    let mut epochs = 0;
    loop {
        epochs += 1;
        got.extend(stream(&mut loader, epochs));
        let report = loader.report().unwrap();
        if (report.worker_deaths >= 20 && epochs >= 3) || epochs == 50 {
            assert!(report.worker_deaths > 0);
            assert_eq!(report.worker_deaths, report.ordered_deaths, "{report:?}");
            break;
        }
    }
    assert_same(&got, &truth(dir.path(), epochs), "kills by order");
}

#[test]
fn workers_killed_from_outside_change_nothing() {
    let dir = data(6, 9);
    let mut random = Random(3);
    let mut loader = builder(dir.path())
        .num_workers(3)
        .epochs(40)
        .build()
        .unwrap();
    let mut got = Vec::new();
    let (mut kills, mut epochs) = (0, 0);
    while kills < 15 && epochs < 40 {
        epochs += 1;
        let mut epoch = loader.epoch();
        while let Some(batch) = epoch.next() {
            got.extend(rows(&batch.unwrap()));
            if random.below(3) == 0 {
                std::thread::sleep(Duration::from_micros(random.below(3000)));
                let workers = epoch.report().unwrap().processes.workers;
                if !workers.is_empty() {
                    let victim = workers[random.below(workers.len() as u64) as usize];
                    kills += u32::from(send(victim, Signal::SIGKILL));
                }
            }
        }
    }
    let report = loader.report().unwrap();
    assert!(report.worker_deaths > 0, "{kills} kills, {report:?}");
    assert_eq!(report.ordered_deaths, 0);
    assert_same(&got, &truth(dir.path(), epochs), "kills from outside");
}

/// One blow at every worker is one death each, not a failed start; and workers
/// that are killed while they wait for a free slot had started long ago.
#[test]
fn all_workers_killed_at_once_or_while_idle_change_nothing() {
    let dir = data(6, 9);
    let mut loader = builder(dir.path())
        .num_workers(8)
        .depth(2)
        .epochs(4)
        .build()
        .unwrap();
    let mut got = Vec::new();
    for round in 0..4 {
        let mut epoch = loader.epoch();
        while let Some(batch) = epoch.next() {
            let batch = batch.unwrap();
            got.extend(rows(&batch));
            if batch.number() % 3 == 1 {
                if round > 1 {
                    // Both slots are ready or held soon: everybody sleeps, and
                    // is old enough to have started.
                    std::thread::sleep(Duration::from_millis(1100));
                }
                for pid in epoch.report().unwrap().processes.workers {
                    send(pid, Signal::SIGKILL);
                }
            }
        }
    }
    assert!(loader.report().unwrap().worker_deaths >= 24);
    assert_same(&got, &truth(dir.path(), 4), "all killed");
}

#[test]
fn a_run_goes_on_from_any_point() {
    let dir = data(6, 9);
    let epochs = 3;
    let full = truth(dir.path(), epochs);
    let per_epoch = 54u64.div_ceil(8);
    let mut random = Random(5);
    for i in 0..50 {
        // Never all: the last batch has nothing behind it.
        let taken = random.below(per_epoch * epochs);
        let (before, after) = ([0, 1, 2][i % 3], [2, 0, 3][i % 3]);
        let mut loader = builder(dir.path())
            .num_workers(before)
            .epochs(epochs)
            .build()
            .unwrap();
        let (head, state) = take(&mut loader, taken);
        drop(loader);
        // Batches that workers had prepared ahead do not count.
        assert_eq!(
            (state.epoch, state.samples),
            (taken / per_epoch, taken % per_epoch * 8)
        );
        let text = serde_json::to_string(&state).unwrap();
        let state: State = serde_json::from_str(&text).unwrap();
        let mut loader = builder(dir.path())
            .num_workers(after)
            .epochs(epochs)
            .resume(state.clone())
            .build()
            .unwrap();
        assert_eq!(loader.state(), state);
        let tail = stream(&mut loader, epochs);
        let what = format!("{taken} batches, {before} then {after} workers");
        assert_same(&[head, tail].concat(), &full, &what);
    }
}

#[test]
fn every_start_gives_the_tail_of_the_full_run() {
    let dir = data(4, 8);
    let full = truth(dir.path(), 2);
    for at in 0..8u64 {
        let (epoch, batch) = (at / 4, at % 4);
        let mut loader = builder(dir.path())
            .num_workers(0)
            .start(Position::new(epoch, batch))
            .build()
            .unwrap();
        let tail = stream(&mut loader, 2);
        assert_same(
            &tail,
            &full[at as usize * 8..],
            &format!("start {epoch}:{batch}"),
        );
    }
    let e = builder(dir.path())
        .num_workers(0)
        .start(Position::new(1, 4))
        .build()
        .unwrap_err();
    assert!(e.is_usage() && e.to_string().contains("4 batches"), "{e}");
}

#[test]
fn ranks_share_an_epoch_and_have_equal_shapes() {
    let dir = data(5, 7);
    let one = truth(dir.path(), 1);
    for world in [2u32, 3, 8] {
        let mut shapes = Vec::new();
        let mut seen = HashMap::new();
        for rank in 0..world {
            let mut loader = builder(dir.path())
                .num_workers(usize::from(rank == 1))
                .rank(Rank::new(rank, world))
                .build()
                .unwrap();
            let got = stream(&mut loader, 1);
            shapes.push(got.iter().map(|r| (r.batch, r.row)).collect::<Vec<_>>());
            for (i, row) in got.iter().enumerate() {
                // Rank r has places r, r + world, ... of the one order, with
                // the same random parameters.
                let place = i * world as usize + rank as usize;
                if let Some(same) = one.get(place) {
                    assert_eq!(
                        (row.id, row.label, row.pixels),
                        (same.id, same.label, same.pixels)
                    );
                    assert_eq!((row.status, row.repeated), (RowStatus::Ok, false));
                    *seen.entry(row.id).or_insert(0) += 1;
                } else {
                    assert_eq!((row.status, row.repeated), (RowStatus::Repeated, true));
                    assert_eq!(row.id, one[place % one.len()].id);
                }
            }
        }
        assert!(shapes.iter().all(|s| *s == shapes[0]), "world {world}");
        assert_eq!(seen.len(), 35);
        assert!(seen.values().all(|n| *n == 1));
    }
}

#[test]
fn tails_are_short_padded_or_dropped() {
    let dir = data(5, 7); // 35 rows: 4 batches of 8 and 3 rows
    for workers in [0, 2] {
        let last = |tail| {
            let mut loader = builder(dir.path())
                .num_workers(workers)
                .tail(tail)
                .build()
                .unwrap();
            // Twice, so that a slot with old pixels is used for the padding.
            let mut out = Vec::new();
            for _ in 0..2 {
                for batch in loader.epoch() {
                    let batch = batch.unwrap();
                    assert_eq!(batch.shape().unwrap()[1..], [3, 224, 224]);
                    assert_eq!(
                        batch.pixels().unwrap().bytes().len(),
                        batch.len() * 3 * 224 * 224 * 2
                    );
                    if batch.number() < 4 {
                        assert_eq!(batch.len(), 8);
                        continue;
                    }
                    let BatchLabels::Classes(labels) = batch.labels() else {
                        panic!("no classes");
                    };
                    let zero: Vec<bool> = (0..batch.len())
                        .map(|r| {
                            batch
                                .row(r)
                                .unwrap()
                                .bytes()
                                .unwrap()
                                .iter()
                                .all(|b| *b == 0)
                        })
                        .collect();
                    out.push((batch.len(), batch.status().to_vec(), labels.clone(), zero));
                }
            }
            out
        };
        for (rows, status, _, zero) in last(EpochTail::Short) {
            assert_eq!((rows, status), (3, vec![RowStatus::Ok; 3]));
            assert_eq!(zero, [false; 3]);
        }
        let padded = last(EpochTail::Pad);
        assert_eq!(padded.len(), 2);
        for (rows, status, labels, zero) in padded {
            assert_eq!(rows, 8);
            assert_eq!(status[..3], [RowStatus::Ok; 3]);
            assert_eq!(status[3..], [RowStatus::Padding; 5]);
            assert_eq!(labels[3..], [-1; 5]);
            assert_eq!(zero, [false, false, false, true, true, true, true, true]);
        }
        assert!(last(EpochTail::Drop).is_empty());
    }
}

#[test]
fn working_ahead_over_the_border_of_epochs_changes_nothing() {
    let dir = data(3, 5); // two batches an epoch, fewer than slots
    let want = truth(dir.path(), 6);
    for (epochs, depth) in [(None, 3), (Some(6), 3), (Some(6), 7), (Some(2), 4)] {
        let mut b = builder(dir.path()).num_workers(2).depth(depth);
        if let Some(n) = epochs {
            b = b.epochs(n);
        }
        let got = stream(&mut b.build().unwrap(), 6);
        assert_same(&got, &want, &format!("epochs {epochs:?}, depth {depth}"));
    }
}

#[test]
fn an_epoch_broken_off_is_followed_by_the_whole_next() {
    let dir = data(6, 9);
    let want = truth(dir.path(), 6);
    let of = |epoch| {
        want.iter()
            .copied()
            .filter(|r| r.epoch == epoch)
            .collect::<Vec<_>>()
    };
    for workers in [0, 2] {
        let mut loader = builder(dir.path())
            .num_workers(workers)
            .epochs(6)
            .build()
            .unwrap();
        for (epoch, taken) in [(0u64, 2usize), (2, 1), (4, 6)] {
            let got: Vec<Row> = loader
                .epoch()
                .take(taken)
                .flat_map(|b| rows(&b.unwrap()))
                .collect();
            assert_same(&got, &of(epoch)[..taken * 8], "the part before the break");
            // For a resume the state stands behind what was taken.
            let state = loader.state();
            assert_eq!((state.epoch, state.samples), (epoch, 8 * taken as u64));
            // An epoch of which nothing was taken is not broken off by its drop.
            drop(loader.epoch());
            let next = stream(&mut loader, epoch + 2);
            assert_same(&next, &of(epoch + 1), &format!("behind {taken} batches"));
        }
    }
}

#[test]
fn a_batch_outlives_the_break_and_the_loader() {
    let dir = data(6, 9);
    let want = truth(dir.path(), 1);
    let mut loader = builder(dir.path()).num_workers(2).build().unwrap();
    let first = loader.epoch().next().unwrap().unwrap();
    let second = stream(&mut loader, 2);
    assert_eq!(second[0].epoch, 1);
    assert_same(&rows(&first), &want[..8], "held over an epoch");
    drop(loader);
    assert_same(&rows(&first), &want[..8], "held over the loader's end");
}

#[test]
fn set_epoch_gives_what_a_fresh_loader_gives() {
    let dir = data(4, 6);
    let want = truth(dir.path(), 8);
    let of = |epoch| {
        want.iter()
            .copied()
            .filter(|r| r.epoch == epoch)
            .collect::<Vec<_>>()
    };
    let mut loader = builder(dir.path()).num_workers(2).build().unwrap();
    for epoch in [5, 0, 0, 7, 3] {
        loader.set_epoch(epoch);
        assert_eq!(loader.epoch().number(), epoch);
        // The look above broke off an epoch without a batch: back again.
        loader.set_epoch(epoch);
        let got = stream(&mut loader, epoch + 1);
        assert_same(&got, &of(epoch), &format!("epoch {epoch}"));
    }
}

/// Nothing that counts on from an epoch meets the last number, with overflow checks or not.
#[test]
fn an_epoch_that_no_run_meets_is_an_error_and_no_panic() {
    let dir = data(2, 5);
    for workers in [0, 2] {
        let of = || builder(dir.path()).num_workers(workers).epochs(u64::MAX);
        let mut loader = of().build().unwrap();
        for epoch in [u64::MAX, u64::MAX - 1, (1 << 62) + 1] {
            loader.set_epoch(epoch);
            let e = loader.epoch().next().unwrap().unwrap_err();
            assert_eq!(e.option_name(), Some("set_epoch"), "{e}");
            let message = e.to_string();
            assert!(
                message.contains(&format!("epoch {epoch} of `set_epoch` is too large")),
                "{e}"
            );
            assert!(message.contains(&(1u64 << 62).to_string()), "{e}");
            loader.abandon_epoch();
            let next = epoch.saturating_add(1);
            assert_eq!(loader.begin_epoch(), next);
            let mut state = loader.state();
            state.samples = 0;
            let e = of().resume(state.clone()).build().unwrap_err();
            assert_eq!(e.option_name(), Some("resume"), "{e}");
            assert!(loader.resume(&state).is_err());
        }
        // The last one is as any other, and what comes behind it is none.
        loader.set_epoch(1 << 62);
        let batches = loader.batches_per_epoch();
        let mut last = loader.epoch();
        for _ in 0..batches {
            last.next().unwrap().unwrap();
        }
        assert!(last.next().is_none());
        drop(last);
        let e = loader.epoch().next().unwrap().unwrap_err();
        assert!(e.to_string().contains("too large"), "{e}");
    }
}

#[test]
fn a_state_of_another_run_is_refused_by_name() {
    let dir = data(2, 5);
    let state = builder(dir.path()).num_workers(0).build().unwrap().state();
    let other = data(2, 6);
    let refused = |b: featherload::LoaderBuilder, words: &[&str]| {
        let e = b.num_workers(0).resume(state.clone()).build().unwrap_err();
        assert!(e.is_usage(), "{e}");
        for word in words {
            assert!(e.to_string().contains(word), "{e} lacks {word}");
        }
    };
    refused(builder(dir.path()).seed(12), &["seed", "11", "12"]);
    refused(builder(dir.path()).recipe(Recipe::eval224()), &["recipe"]);
    refused(builder(other.path()), &["index"]);
    refused(builder(dir.path()).tail(EpochTail::Drop), &["tail"]);
    // With workers too, and nothing is left running.
    let e = builder(other.path())
        .num_workers(1)
        .resume(state.clone())
        .build()
        .unwrap_err();
    assert!(e.to_string().contains("index"), "{e}");
    let loader: Loader = builder(dir.path())
        .num_workers(0)
        .resume(state.clone())
        .build()
        .unwrap();
    assert_eq!(loader.state(), state);
}
