//! Batches of buckets on a GPU: the rows are those of workers, whoever decodes.

use std::fs;

use featherload::recipe::{BucketRule, BucketStyle, CoverCrop, RandomHorizontalFlip};
use featherload::{
    DataType, DecodeOn, Device, Loader, LoaderBuilder, OnError, Recipe, Sampler, UploadMode,
};

use crate::common::rows::{assert_same, rows};
use crate::common::{Picture, builder, cuda};

const IMAGES: u64 = 45;

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
            let mut all = (Vec::new(), Vec::new());
            for _ in 0..2 {
                for batch in loader.epoch() {
                    let batch = batch.unwrap().to_host().unwrap();
                    all.1.extend(batch.size_conditions().unwrap().to_vec());
                    all.0.extend(rows(&batch));
                }
            }
            let memory = loader.device_memory().unwrap();
            assert!(memory.is_none_or(|memory| memory.used_bytes <= memory.planned_bytes));
            all
        };
        let (want, conditions) = stream(make(Device::Cpu));
        assert_eq!(want.len() as u64, 2 * IMAGES);
        for (on, upload) in [
            (DecodeOn::Cpu, UploadMode::InPlace),
            (DecodeOn::Cpu, UploadMode::Copied),
            (DecodeOn::Gpu, UploadMode::InPlace),
            (DecodeOn::Gpu, UploadMode::Copied),
        ] {
            let of = make(Device::Cuda(0)).decode_on(on).upload(upload);
            let (got, crops) = stream(of);
            let what = format!("{style:?}, decoded on {on}, {upload}");
            assert_same(&got, &want, &what);
            assert_eq!(crops, conditions, "{what}");
        }
    }
}
