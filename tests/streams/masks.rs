//! Masks of images: one stream for any number of workers, through deaths, and from any point on.
//! Masks with a device: `tests/device/loader.rs`.

use std::fs;
use std::path::Path;
use std::time::Duration;

use featherload::internals::DrillBuilder;
use featherload::recipe::{
    ColorJitter, RandomHorizontalFlip, RandomResizedCrop, RandomRotation, Resize, Span,
};
use featherload::{
    DataType, LoaderBuilder, MaskOptions, MaskRule, MaskType, OnError, Recipe, RowStatus, State,
};
use image::{GrayImage, Luma, Rgb, RgbImage};

use crate::common::builder;
use crate::common::rows::{assert_same, rows, stream, take};

const COUNT: u32 = 21;

/// Images of several sizes, whose first channel is their mask.
fn images(dir: &Path) {
    for folder in ["images", "masks"] {
        fs::create_dir(dir.join(folder)).unwrap();
    }
    for n in 0..COUNT {
        let (width, height) = (30 + 3 * n, 71 - 2 * n);
        let level = |x: u32, y: u32| ((x * 7 + y * 13 + n * 31) % 251) as u8;
        let image = RgbImage::from_fn(width, height, |x, y| Rgb([level(x, y), 9, n as u8]));
        image.save(dir.join(format!("images/{n:02}.png"))).unwrap();
        let mask = GrayImage::from_fn(width, height, |x, y| Luma([level(x, y)]));
        mask.save(dir.join(format!("masks/{n:02}.png"))).unwrap();
    }
}

fn with_masks(dir: &Path, rule: MaskRule) -> LoaderBuilder {
    let masks = MaskOptions::new("../masks/{stem}.png").rule(rule);
    builder(&dir.join("images")).masks(masks)
}

fn recipe() -> Recipe {
    Recipe::new("augmented")
        .then(RandomResizedCrop::new(32))
        .then(RandomHorizontalFlip::default())
        .then(RandomRotation::new(Span(-20.0, 20.0)))
        .then(ColorJitter::default())
        .with_dtype(DataType::U8)
}

#[test]
fn the_stream_is_the_same_for_any_number_of_workers_and_from_any_point() {
    let dir = tempfile::tempdir().unwrap();
    images(dir.path());
    let make = |workers| {
        let rule = MaskRule {
            ignore: Some(255),
            ..MaskRule::default()
        };
        let builder = with_masks(dir.path(), rule).recipe(recipe());
        builder.num_workers(workers).epochs(2)
    };
    let want = stream(&mut make(0).build().unwrap(), 2);
    assert_eq!(want.len(), 2 * COUNT as usize);
    for workers in [1, 2, 8] {
        let got = stream(&mut make(workers).build().unwrap(), 2);
        assert_same(&got, &want, &format!("{workers} workers"));
    }
    let got = make(2).kill_workers_every(Duration::from_millis(4));
    let mut killed = got.build().unwrap();
    assert_same(&stream(&mut killed, 2), &want, "killed");
    let (first, state) = take(&mut make(2).build().unwrap(), 2);
    let text = serde_json::to_string(&state).unwrap();
    let state: State = serde_json::from_str(&text).unwrap();
    let rest = stream(&mut make(3).resume(state).build().unwrap(), 2);
    assert_same(&[first, rest].concat(), &want, "resumed");
}

/// Without a step that mixes pixels, the first channel of the image is the mask.
#[test]
fn a_mask_goes_where_its_image_goes() {
    let dir = tempfile::tempdir().unwrap();
    images(dir.path());
    let recipe = Recipe::new("flips")
        .then(RandomHorizontalFlip::default())
        .then(featherload::recipe::RandomVerticalFlip::default())
        .then(featherload::recipe::CenterCrop::new(24))
        .with_dtype(DataType::U8);
    for dtype in [MaskType::Uint8, MaskType::Int32, MaskType::Int64] {
        let rule = MaskRule {
            dtype: Some(dtype),
            ..MaskRule::default()
        };
        let mut loader = with_masks(dir.path(), rule)
            .recipe(recipe.clone())
            .num_workers(2)
            .build()
            .unwrap();
        let mut seen = 0;
        for batch in loader.epoch() {
            let batch = batch.unwrap();
            let masks = batch.masks().unwrap();
            assert_eq!(masks.shape(), [batch.len(), 24, 24]);
            assert_eq!(masks.dtype(), dtype);
            for row in batch.rows() {
                let levels = &row.bytes().unwrap()[..24 * 24];
                let mask = row.mask().unwrap().unwrap();
                let numbers = mask.chunks_exact(dtype.size());
                for (level, number) in levels.iter().zip(numbers) {
                    assert_eq!(number[0], *level);
                    assert!(number[1..].iter().all(|byte| *byte == 0));
                }
                seen += 1;
            }
        }
        assert_eq!(seen, COUNT);
    }
}

#[test]
fn rows_of_bad_masks_are_masked_or_substituted() {
    let dir = tempfile::tempdir().unwrap();
    images(dir.path());
    fs::remove_file(dir.path().join("masks/04.png")).unwrap();
    fs::write(dir.path().join("masks/09.png"), "no image").unwrap();
    let make = |policy| {
        let rule = MaskRule {
            ignore: Some(200),
            ..MaskRule::default()
        };
        with_masks(dir.path(), rule)
            .recipe(
                Recipe::new("small")
                    .then(Resize::exact(16, 16))
                    .with_dtype(DataType::U8),
            )
            .on_error(policy)
            .shuffle(false)
    };
    let mut skipping = make(OnError::Skip).num_workers(2).build().unwrap();
    let mut failed = Vec::new();
    for batch in skipping.epoch() {
        let batch = batch.unwrap();
        for row in batch.rows() {
            let mask = row.mask().unwrap().unwrap();
            if row.status() == RowStatus::Failed {
                assert!(mask.iter().all(|number| *number == 200));
                assert!(row.bytes().unwrap().iter().all(|level| *level == 0));
                failed.push(row.id());
            } else {
                assert!(mask.iter().any(|number| *number != 200));
            }
        }
        for fault in batch.faults() {
            assert!(
                fault.fault.reason.contains("/masks/"),
                "{}",
                fault.fault.reason
            );
        }
    }
    assert_eq!(failed, [4, 9]);
    let want = stream(
        &mut make(OnError::Substitute).num_workers(0).build().unwrap(),
        1,
    );
    let got = stream(
        &mut make(OnError::Substitute).num_workers(3).build().unwrap(),
        1,
    );
    assert_same(&got, &want, "substituted");
    let substituted = want
        .iter()
        .filter(|row| row.status == RowStatus::Substituted);
    assert_eq!(substituted.count(), 2);
}

#[test]
fn a_short_last_batch_and_detached_batches_have_their_masks() {
    let dir = tempfile::tempdir().unwrap();
    images(dir.path());
    let mut loader = with_masks(dir.path(), MaskRule::default())
        .recipe(recipe())
        .num_workers(2)
        .build()
        .unwrap();
    let mut sizes = Vec::new();
    for batch in loader.epoch() {
        let batch = batch.unwrap();
        sizes.push(batch.len());
        let before = rows(&batch);
        assert_eq!(rows(&batch.detach().unwrap()), before);
    }
    assert_eq!(sizes, [8, 8, 5]);
}
