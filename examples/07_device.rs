//! Batches that end on a GPU. It decodes JPEGs, and makes normalised f16 of them.
//! `cargo run --release --example 07_device -- SRC`

use featherload::{DataType, Device, Loader, OnError, Recipe, Source, f16};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    featherload::init();
    let src = std::env::args().nth(1).ok_or("usage: 07_device SRC")?;
    // Building takes all the memory that the run has on the device.
    let mut loader = Loader::builder(Source::detect(src)?)
        .recipe(Recipe::train224().with_dtype(DataType::F16))
        .batch_size(64)
        .device(Device::Cuda(0))
        .on_error(OnError::Skip)
        .build()?;
    for batch in loader.epoch() {
        let batch = batch?;
        let rows = batch.on_device().ok_or("a batch of the host")?;
        // The address is there at once, the pixels when the stream has made them. A
        // trainer does not wait for that: `rows.make_wait(stream)` lets its own stream
        // wait, and keeps the memory until what the stream was given is done.
        rows.wait()?;
        println!(
            "batch {}: {:?} {} at {:#x} of the device",
            batch.number(),
            batch.shape()?,
            batch.dtype(),
            rows.address()
        );
        // For a look at the values: a copy.
        let host = batch.to_host()?;
        let first = host.pixels()?.as_slice::<f16>()?[0];
        println!("  first value {first}");
    }
    if let Some(memory) = loader.device_memory()? {
        println!(
            "{} bytes of the device used, at most {} were said",
            memory.used_bytes, memory.planned_bytes
        );
    }
    Ok(())
}
