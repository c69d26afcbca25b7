//! Batches in the memory of a GPU, which decodes the JPEGs and makes normalised f16 of them.
//! `cargo run --release --example 07_device -- SRC`

use featherload::{DataType, Device, Loader, OnError, Recipe, Source, f16};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    featherload::init();
    let src = std::env::args().nth(1).ok_or("usage: 07_device SRC")?;
    // Building allocates all the memory that the run uses on the device.
    let mut loader = Loader::builder(Source::detect(src)?)
        .recipe(Recipe::train224().with_dtype(DataType::F16))
        .batch_size(64)
        .device(Device::Cuda(0))
        .on_error(OnError::Skip)
        .build()?;
    for batch in loader.epoch() {
        let batch = batch?;
        let rows = batch
            .on_device()
            .ok_or("the batch is in host memory: build the loader with a device")?;
        // The address is known at once, but the GPU may still be writing the pixels. A trainer
        // does not wait on the host: `rows.make_wait(stream)` makes its own stream wait, and
        // keeps the memory until the work queued on that stream is done.
        rows.wait()?;
        println!(
            "batch {}: {:?} {} at {:#x} of the device",
            batch.number(),
            batch.shape()?,
            batch.dtype(),
            rows.address()
        );
        // Copies the batch to the host, to look at its values.
        let host = batch.to_host()?;
        let first = host.pixels()?.as_slice::<f16>()?[0];
        println!("  first value {first}");
    }
    if let Some(memory) = loader.device_memory()? {
        println!(
            "{} bytes of device memory used, {} planned",
            memory.used_bytes, memory.planned_bytes
        );
    }
    Ok(())
}
