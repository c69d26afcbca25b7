//! Several crops of each image with a device: workers finish them, and each batch is copied in one
//! piece. The crops are those of the CPU.

use featherload::recipe::{RandomHorizontalFlip, RandomResizedCrop};
use featherload::{Batch, DataType, DecodeOn, Device, Loader, LoaderBuilder, Recipe};

use crate::common::rows::{Row, assert_same, rows};
use crate::common::standin::with_standin;
use crate::common::{builder, data};

fn recipe() -> Recipe {
    let crop = |size| {
        Recipe::new("crop")
            .then(RandomResizedCrop::new(size))
            .then(RandomHorizontalFlip::default())
            .with_dtype(DataType::F16)
    };
    Recipe::new("several")
        .with_crop(crop(33), 2)
        .with_crop(crop(16), 3)
}

/// Rows of two epochs, with the geometries of the last batch.
fn stream(builder: LoaderBuilder, see: impl Fn(Batch) -> Vec<Row>) -> (Vec<Row>, Vec<[f32; 4]>) {
    let mut loader: Loader = builder.recipe(recipe()).epochs(2).build().unwrap();
    let (mut all, mut boxes) = (Vec::new(), Vec::new());
    for _ in 0..2 {
        for batch in loader.epoch() {
            let batch = batch.unwrap();
            let geometry = (0..5).flat_map(|crop| batch.geometry(crop).unwrap());
            boxes = geometry.map(|of| of.bounds).collect();
            assert_eq!(batch.crop_shape(4).unwrap()[1..], [3, 16, 16]);
            all.extend(see(batch));
        }
    }
    (all, boxes)
}

#[test]
fn crops_on_a_device_are_those_of_the_cpu() {
    let (_, module) = module_path!().split_once("::").unwrap();
    let test = format!("{module}::crops_on_a_device_are_those_of_the_cpu");
    with_standin(&test, &[], |_| {
        let dir = data(2, 9);
        let make = || builder(dir.path()).num_workers(2);
        let want = stream(make(), |batch| rows(&batch));
        let got = stream(make().device(Device::Cuda(0)), |batch| {
            assert!(batch.on_device().is_some());
            rows(&batch.to_host().unwrap())
        });
        assert_same(&got.0, &want.0, "on a device");
        assert_eq!(got.1, want.1);
        // The device cannot decode for it.
        let refused = make().device(Device::Cuda(0)).decode_on(DecodeOn::Gpu);
        let e = refused.recipe(recipe()).build().unwrap_err().to_string();
        assert!(e.contains("several crops"), "{e}");
    });
}
