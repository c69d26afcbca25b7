//! Batches of buckets on a GPU: the rows are those of workers, whoever decodes.

use std::fs;

use featherload::batch::SizeCondition;
use featherload::recipe::{BucketRule, BucketStyle, CoverCrop, RandomHorizontalFlip};
use featherload::{
    DataType, DecodeOn, Device, Loader, LoaderBuilder, OnError, Recipe, Sampler, UploadMode,
};

use crate::common::rows::{Row, assert_same, rows};
use crate::common::{Picture, builder, cuda};

const IMAGES: u64 = 45;

#[derive(Default)]
struct BucketStream {
    rows: Vec<Row>,
    pixels: Vec<Vec<u8>>,
    conditions: Vec<SizeCondition>,
}

#[test]
fn gpu_rows_of_buckets_are_those_of_workers() {
    if !cuda::is_there() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    for i in 0..IMAGES {
        let (width, height) = (60 + (i * 37 % 290) as u16, 60 + (i * 53 % 210) as u16);
        let picture = Picture::rgb(width, height, i).encode();
        fs::write(dir.path().join(format!("{i:03}.jpg")), picture).unwrap();
    }
    for style in [
        BucketStyle::SdScripts,
        BucketStyle::Diffusers,
        BucketStyle::AiToolkit,
        BucketStyle::SimpleTuner,
    ] {
        let rule = BucketRule {
            area: 128 * 128,
            step: Some(16),
            style,
            sides: (style == BucketStyle::SdScripts).then_some((64, 256)),
            upscale: true,
        };
        let recipe = Recipe::new("buckets")
            .then(RandomHorizontalFlip::default())
            .then(CoverCrop::random(128))
            .with_dtype(DataType::U8);
        let make = |device: Device| {
            builder(dir.path())
                .recipe(recipe.clone())
                .batch_size(4)
                .on_error(OnError::Stop)
                .sampler(Sampler::Buckets(rule))
                .num_workers(3)
                .device(device)
        };
        let stream = |builder: LoaderBuilder| {
            let mut loader: Loader = builder.epochs(2).build().unwrap();
            let mut all = BucketStream::default();
            for _ in 0..2 {
                for batch in loader.epoch() {
                    let batch = batch.unwrap().to_host().unwrap();
                    all.conditions.extend(batch.size_conditions().unwrap());
                    all.rows.extend(rows(&batch));
                    for row in batch.rows() {
                        all.pixels.push(row.bytes().unwrap().to_vec());
                    }
                }
            }
            let memory = loader.device_memory().unwrap();
            assert!(memory.is_none_or(|memory| memory.used_bytes <= memory.planned_bytes));
            all
        };
        let by_workers = stream(make(Device::Cpu));
        let on_device = |on, upload| stream(make(Device::Cuda(0)).decode_on(on).upload(upload));
        let want = on_device(DecodeOn::Cpu, UploadMode::InPlace);
        assert_eq!(want.rows.len() as u64, 2 * IMAGES);
        assert_eq!(want.conditions, by_workers.conditions);
        // A device resizes in floats. Workers round and clip between the passes of a resize, which
        // counts where bicubic weights overshoot.
        let (mut values, mut beyond) = (0, 0);
        for (got, want) in want.pixels.iter().zip(&by_workers.pixels) {
            assert_eq!(got.len(), want.len());
            values += got.len();
            beyond += got
                .iter()
                .zip(want)
                .filter(|(a, b)| a.abs_diff(**b) > 1)
                .count();
        }
        println!("{style:?}: {beyond} of {values} values differ by more than a level");
        let most = match style {
            BucketStyle::AiToolkit => values / 1000,
            _ => 0,
        };
        assert!(beyond <= most, "{style:?}: {beyond} of {values}");
        for (on, upload) in [
            (DecodeOn::Cpu, UploadMode::Copied),
            (DecodeOn::Gpu, UploadMode::InPlace),
            (DecodeOn::Gpu, UploadMode::Copied),
        ] {
            let got = on_device(on, upload);
            let what = format!("{style:?}, decoded on {on}, {upload}");
            assert_same(&got.rows, &want.rows, &what);
            assert_eq!(got.conditions, want.conditions, "{what}");
        }
    }
}
