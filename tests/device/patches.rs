//! Rows of patches on a device: those of workers, copied, also in batches without a patch.

use std::fs;
use std::path::Path;

use featherload::recipe::{Patches, RandomHorizontalFlip};
use featherload::{DataType, Device, EpochTail, Loader, LoaderBuilder, OnError, Recipe};

use crate::common::rows::{Row, assert_same, rows};
use crate::common::standin::with_standin;
use crate::common::{Picture, builder, cuda};

const IMAGES: u64 = 21;

fn data(dir: &Path) {
    for i in 0..IMAGES {
        let (width, height) = (20 + (i * 37 % 190) as u16, 20 + (i * 53 % 110) as u16);
        let picture = Picture::rgb(width, height, i).encode();
        fs::write(dir.join(format!("{i:03}.jpg")), picture).unwrap();
    }
    fs::write(dir.join("none.jpg"), "no picture").unwrap();
}

/// The shape of a batch, and all of its values.
type PatchTensor = (Vec<usize>, Vec<u8>);

/// The rows of two epochs, and their batches.
fn stream(builder: LoaderBuilder) -> (Vec<Row>, Vec<PatchTensor>) {
    let mut loader: Loader = builder.epochs(2).build().unwrap();
    let (mut all, mut values) = (Vec::new(), Vec::new());
    for _ in 0..2 {
        for batch in loader.epoch() {
            let batch = batch.unwrap().to_host().unwrap();
            let shape = batch.patches().unwrap().shape();
            values.push((shape, batch.patch_values::<u8>().unwrap().to_vec()));
            all.extend(rows(&batch));
        }
    }
    let memory = loader.device_memory().unwrap();
    assert!(memory.is_none_or(|memory| memory.used_bytes <= memory.planned_bytes));
    (all, values)
}

fn compare() {
    let dir = tempfile::tempdir().unwrap();
    data(dir.path());
    for op in [Patches::qwen(7).between(784, 9000), Patches::siglip2(8, 50)] {
        // One row: the batch of the file that is no picture has no patch.
        for batch_size in [1, 4] {
            let make = |device| {
                let recipe = Recipe::new("patches")
                    .then(RandomHorizontalFlip::default())
                    .then(op)
                    .with_dtype(DataType::U8);
                builder(dir.path())
                    .recipe(recipe)
                    .batch_size(batch_size)
                    .tail(EpochTail::Pad)
                    .on_error(OnError::Skip)
                    .num_workers(2)
                    .device(device)
            };
            let (wanted, values) = stream(make(Device::Cpu));
            assert_eq!(values.iter().any(|(shape, _)| shape[0] == 0), {
                batch_size == 1 && op.max_num_patches.is_none()
            });
            let (got, copied) = stream(make(Device::Cuda(0)));
            assert_same(&got, &wanted, &format!("{op:?}, batches of {batch_size}"));
            assert!(copied == values, "{op:?}");
        }
    }
}

#[test]
fn patches_are_copied_to_a_device() {
    with_standin("patches::patches_are_copied_to_a_device", &[], |_| {
        compare()
    });
}

#[test]
fn gpu_patches_are_those_of_workers() {
    if cuda::is_there() {
        compare();
    }
}
