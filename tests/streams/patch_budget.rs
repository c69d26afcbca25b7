//! A budget of patches through real loaders: no batch of a rank has more, each image comes once an
//! epoch over all ranks, alike for any number of workers and from any point on.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use featherload::recipe::{PatchRule, Patches, RandomHorizontalFlip};
use featherload::{
    DataType, EpochTail, LoaderBuilder, OnError, Rank, Recipe, RowStatus, Sampler, State,
};

use crate::common::rows::{assert_same, stream, take};
use crate::common::{Picture, builder, sized_folder};

const IMAGES: u64 = 61;
const BUDGET: u64 = 400;

fn size(i: u64) -> (u16, u16) {
    (9 + (i * 37 % 90) as u16, 12 + (i * 53 % 110) as u16)
}

fn rule() -> PatchRule {
    PatchRule::qwen(7, 784, 9000)
}

/// The patches of an image.
fn patches(i: u64) -> u64 {
    let (height, width) = size(i);
    rule()
        .grid((height.into(), width.into()))
        .unwrap()
        .patches()
}

fn data() -> tempfile::TempDir {
    sized_folder(IMAGES, size)
}

fn recipe() -> Recipe {
    Recipe::new("patches")
        .then(RandomHorizontalFlip::default())
        .then(Patches::qwen(7).between(784, 9000))
        .with_dtype(DataType::U8)
}

fn make(dir: &Path) -> LoaderBuilder {
    builder(dir)
        .recipe(recipe())
        .batch_size(32)
        .on_error(OnError::Stop)
        .sampler(Sampler::PatchBudget { patches: BUDGET })
}

#[test]
fn each_image_comes_once_an_epoch_within_the_budget() {
    let dir = data();
    let value = rule().patch_values();
    for (world, tail) in [
        (1, EpochTail::Short),
        (2, EpochTail::Short),
        (3, EpochTail::Short),
        (2, EpochTail::Drop),
    ] {
        let mut seen = [BTreeSet::new(), BTreeSet::new()];
        let mut filled = 0;
        // Of each step, the patches of all ranks.
        let mut steps: Vec<Vec<u64>> = Vec::new();
        for rank in 0..world {
            let made = make(dir.path()).rank(Rank::new(rank, world)).tail(tail);
            let mut loader = made.num_workers(1).build().unwrap();
            let (mut order, mut step) = (Vec::new(), 0);
            for seen in &mut seen {
                let mut batches = 0;
                for batch in loader.epoch() {
                    let batch = batch.unwrap();
                    let found = batch.patches().unwrap();
                    let total: u64 = found.counts().sum();
                    assert!(total <= BUDGET && batch.len() <= 32);
                    let values = batch.patch_values::<u8>().unwrap();
                    assert_eq!(values.len(), total as usize * value);
                    for (row, count) in found.counts().enumerate() {
                        let id = batch.ids()[row];
                        assert_eq!(count, patches(id));
                        match batch.status()[row] {
                            RowStatus::Ok => assert!(seen.insert(id), "{id} comes twice"),
                            status => assert_eq!(status, RowStatus::Repeated),
                        }
                    }
                    order.push(batch.ids().to_vec());
                    steps.resize(steps.len().max(step + 1), Vec::new());
                    steps[step].push(total);
                    (batches, step) = (batches + 1, step + 1);
                }
                assert_eq!(batches, loader.plan().batches());
            }
            filled = loader.plan().filled_positions();
            let (first, second) = order.split_at(order.len() / 2);
            // A batch of one image may come again.
            assert!(
                first
                    .iter()
                    .all(|batch| batch.len() < 2 || !second.contains(batch))
            );
        }
        assert!(steps.iter().all(|step| step.len() == world as usize));
        for seen in seen {
            match tail {
                EpochTail::Drop => {
                    assert_eq!(seen.len() as u64, filled);
                    assert!(filled > 0 && filled < IMAGES);
                }
                _ => assert_eq!(seen.len(), IMAGES as usize),
            }
        }
        if world == 1 {
            // The budget is used: 400 patches are not more than three or four images.
            let all: u64 = steps.iter().flatten().sum();
            assert!(all * 100 > steps.len() as u64 * BUDGET * 80, "{steps:?}");
        }
    }
}

#[test]
fn streams_are_alike_for_any_workers_and_from_any_point() {
    let dir = data();
    let make = || make(dir.path());
    let full = stream(&mut make().num_workers(0).build().unwrap(), 2);
    for workers in [1, 2, 8] {
        let mut loader = make().num_workers(workers).build().unwrap();
        assert_same(
            &stream(&mut loader, 2),
            &full,
            &format!("{workers} workers"),
        );
    }
    for (taken, before, after) in [(1, 0, 2), (9, 2, 0), (25, 1, 1)] {
        let (head, state) = take(&mut make().num_workers(before).build().unwrap(), taken);
        let text = serde_json::to_string(&state).unwrap();
        let state: State = serde_json::from_str(&text).unwrap();
        let mut loader = make().num_workers(after).resume(state).build().unwrap();
        let tail = stream(&mut loader, 2);
        assert_same(&[head, tail].concat(), &full, &format!("{taken} batches"));
    }
    // Within an epoch, batches stay those of all ranks. At its end they may change.
    let (_, state) = take(&mut make().num_workers(0).build().unwrap(), 3);
    for other in [make().batch_size(31), make().rank(Rank::new(0, 2))] {
        let error = other.num_workers(0).resume(state.clone()).build();
        let error = error.unwrap_err().to_string();
        assert!(error.contains("cannot resume"), "{error}");
    }
    let mut loader = make().num_workers(0).build().unwrap();
    let ended = loader.epoch().map(Result::unwrap).count();
    assert_eq!(
        (loader.state().epoch, loader.state().samples),
        (1, 0),
        "{ended}"
    );
    let other = make().batch_size(31).rank(Rank::new(1, 2)).num_workers(0);
    assert!(other.resume(loader.state()).build().is_ok());
    // Another budget is another order.
    let other = make().sampler(Sampler::PatchBudget { patches: 500 });
    assert!(other.num_workers(0).resume(state).build().is_err());
}

#[test]
fn a_slot_has_room_for_the_budget_and_no_more() {
    let dir = data();
    let plan = make(dir.path()).num_workers(2).memory_plan(0).unwrap();
    let most = BUDGET * rule().patch_values() as u64;
    assert!(plan.memory.slot_bytes <= most && plan.memory.slot_bytes * 10 > most * 9);
    assert!(plan.memory.batch < 32);
    // Also without images, in the same order.
    let order = |builder: LoaderBuilder| -> Vec<Vec<u64>> {
        let mut loader = builder.num_workers(1).build().unwrap();
        loader
            .epoch()
            .map(|batch| batch.unwrap().ids().to_vec())
            .collect()
    };
    assert_eq!(
        order(make(dir.path()).without_images()),
        order(make(dir.path()))
    );
}

#[test]
fn images_that_fail_take_rows_and_no_patches() {
    let dir = data();
    fs::write(dir.path().join("text.jpg"), "no picture").unwrap();
    let whole = Picture::rgb(60, 40, 1).encode();
    fs::write(dir.path().join("cut.jpg"), &whole[..whole.len() * 2 / 3]).unwrap();
    let made = make(dir.path()).on_error(OnError::Skip).num_workers(2);
    let mut loader = made.build().unwrap();
    let (mut rows, mut failed) = (0, Vec::new());
    for batch in loader.epoch() {
        let batch = batch.unwrap();
        assert!(batch.patches().unwrap().counts().sum::<u64>() <= BUDGET);
        rows += batch.len();
        failed.extend(batch.faults().iter().map(|fault| fault.id));
    }
    assert_eq!((rows as u64, failed.len()), (IMAGES + 2, 2));
}

#[test]
fn what_does_not_fit_a_budget_is_refused() {
    let dir = data();
    let siglip = Recipe::new("rows").then(Patches::siglip2(8, 30));
    let pix2struct = Recipe::new("rows").then(Patches::pix2struct(8, 30));
    let budget = |patches| make(dir.path()).sampler(Sampler::PatchBudget { patches });
    for (made, text) in [
        (budget(0), "patches is 0"),
        (budget(1 << 33), "use at most"),
        (budget(20), "and the budget of a batch is 20: raise it"),
        (
            budget(400).recipe(Recipe::eval224()),
            "needs a recipe with patches",
        ),
        (
            budget(400).recipe(siglip),
            "siglip2 have max_num_patches each",
        ),
        (
            budget(400).recipe(pix2struct),
            "pix2struct have max_num_patches each",
        ),
        (
            budget(400).tail(EpochTail::Pad),
            "padding would fill all of them",
        ),
    ] {
        let error = made.num_workers(0).build().unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    }
}
