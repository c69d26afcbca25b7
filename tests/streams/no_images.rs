//! Runs without images: the order, labels and captions of a run with images, and no pixels.

use std::fs;
use std::path::Path;

use featherload::recipe::{BucketRule, BucketStyle, CoverCrop, MixOp, Mixing};
use featherload::{
    Batch, BatchLabels, CaptionRule, DataType, Device, EpochTail, LoaderBuilder, MaskOptions,
    NumberRule, ObjectOptions, Rank, RasterOptions, RasterRule, Recipe, RowStatus, Sampler,
};

use crate::common::{builder, data, sized_folder};

/// What a batch tells about its rows.
type Told = (Vec<u64>, Vec<RowStatus>, BatchLabels, [u64; 3]);

fn told(batch: &Batch) -> Told {
    (
        batch.ids().to_vec(),
        batch.status().to_vec(),
        batch.labels().clone(),
        [batch.epoch(), batch.number(), batch.samples_before()],
    )
}

fn make(folder: &Path) -> LoaderBuilder {
    builder(folder).batch_size(7).tail(EpochTail::Pad)
}

/// Two epochs.
fn run(builder: LoaderBuilder) -> Vec<Told> {
    let mut loader = builder.build().unwrap();
    let epochs = (0..2).map(|_| -> Vec<Told> {
        let batches = loader.epoch();
        batches.map(|batch| told(&batch.unwrap())).collect()
    });
    epochs.flatten().collect()
}

#[test]
fn the_order_is_that_of_a_run_with_images() {
    let dir = data(3, 11);
    for recipe in [
        Recipe::eval224(),
        Recipe::full(),
        // What a device would make stays the work of nobody.
        Recipe::train224().with_dtype(DataType::F16),
    ] {
        let make = || make(dir.path()).recipe(recipe.clone());
        let want = run(make().num_workers(1));
        for workers in [0, 1, 2] {
            assert_eq!(run(make().num_workers(workers).without_images()), want);
        }
        // From a point within the second epoch on.
        let mut loader = make().num_workers(1).without_images().build().unwrap();
        assert_eq!(loader.epoch().count(), 5);
        assert_eq!(loader.epoch().take(2).count(), 2);
        let state = loader.state();
        let resumed = make().num_workers(2).without_images().resume(state.clone());
        assert_eq!(run(resumed)[..3], want[7..]);
        // It is a state of the run with images, too.
        assert_eq!(run(make().num_workers(1).resume(state))[..3], want[7..]);
    }
    let of_rank = |rank, without: bool| {
        let made = make(dir.path()).num_workers(1).rank(Rank::new(rank, 2));
        run(if without { made.without_images() } else { made })
    };
    for rank in 0..2 {
        assert_eq!(of_rank(rank, true), of_rank(rank, false));
    }
}

#[test]
fn no_image_is_opened_and_rows_have_no_pixels() {
    let dir = tempfile::tempdir().unwrap();
    for number in 0..9 {
        let file = dir.path().join(format!("{number}.jpg"));
        fs::write(&file, "no picture").unwrap();
        fs::write(file.with_extension("txt"), format!("caption {number}")).unwrap();
    }
    let make = || {
        make(dir.path())
            .captions(CaptionRule::of_column(".txt"))
            .without_images()
    };
    let plan = make().num_workers(2).memory_plan(0).unwrap();
    assert_eq!(plan.memory.slot_bytes, 64);
    assert!(!plan.reads_images);
    for workers in [0, 2] {
        let mut loader = make().num_workers(workers).build().unwrap();
        let mut captions = Vec::new();
        for batch in loader.epoch() {
            let batch = batch.unwrap();
            assert!(!batch.has_pixels());
            let refused = "this run reads no images";
            assert!(batch.pixels().unwrap_err().to_string().contains(refused));
            assert!(batch.shape().unwrap_err().to_string().contains(refused));
            for row in batch.rows() {
                assert!(row.bytes().unwrap_err().to_string().contains(refused));
                assert!(row.parts().unwrap().is_empty());
                assert_eq!(row.size(), (0, 0));
            }
            assert_eq!(
                batch.good_rows().count(),
                batch.len().min(9 - captions.len())
            );
            assert!(batch.faults().is_empty() && batch.size_conditions().is_none());
            let made = batch.captions().unwrap();
            captions.extend(
                made.into_iter()
                    .zip(batch.ids().to_vec())
                    .take(9 - captions.len()),
            );
            // It leaves its slot without pixels, too.
            assert_eq!(batch.detach().unwrap().len(), 7);
        }
        assert_eq!(captions.len(), 9);
        assert!(
            captions
                .iter()
                .all(|(text, id)| *text == format!("caption {id}"))
        );
    }
}

#[test]
fn batches_of_buckets_stay_those_of_the_headers() {
    let dir = sized_folder(40, |i| {
        (40 + (i * 53 % 110) as u16, 40 + (i * 37 % 90) as u16)
    });
    let rule = BucketRule {
        area: 64 * 64,
        step: Some(16),
        style: BucketStyle::SdScripts,
        sides: Some((32, 128)),
        upscale: true,
    };
    let recipe = Recipe::new("cover")
        .then(CoverCrop::random(64))
        .with_dtype(DataType::U8);
    let make =
        || (make(dir.path()).recipe(recipe.clone()).batch_size(4)).sampler(Sampler::Buckets(rule));
    let want = run(make().num_workers(1));
    for workers in [0, 2] {
        assert_eq!(run(make().num_workers(workers).without_images()), want);
    }
}

#[test]
fn what_needs_pixels_is_refused() {
    let dir = data(2, 3);
    let depth = RasterRule::Numbers(NumberRule::depth());
    let mixed = Recipe::train224().with_mixing(Mixing::new(2).then(MixOp::Mixup { alpha: 0.8 }));
    for (made, option) in [
        (make(dir.path()).device(Device::Cuda(0)), "device"),
        (
            make(dir.path()).masks(MaskOptions::new("{stem}.png")),
            "masks",
        ),
        (
            make(dir.path()).objects(ObjectOptions::new("{stem}.txt")),
            "objects",
        ),
        (
            make(dir.path()).raster("depth", RasterOptions::new("{stem}.png", depth)),
            "rasters",
        ),
        (make(dir.path()).recipe(mixed), "recipe"),
    ] {
        let error = made.without_images().num_workers(0).build().unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("this run reads no images"),
            "{option}: {text}"
        );
    }
}
