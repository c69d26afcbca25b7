//! One epoch over a folder of images: prints the shape and the labels of each batch.
//! `cargo run --release --example 01_folder -- SRC`

use featherload::{Loader, Recipe, Source, f16};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The worker processes run this program too: call this first.
    featherload::init();
    let src = std::env::args().nth(1).ok_or("usage: 01_folder SRC")?;

    // This starts the worker processes, by default one for each usable CPU.
    let mut loader = Loader::builder(Source::detect(src)?)
        .recipe(Recipe::train224())
        .batch_size(32)
        .build()?;
    println!(
        "{} samples, {} batches an epoch",
        loader.index().len(),
        loader.batches_per_epoch()
    );

    for batch in loader.epoch() {
        let batch = batch?;
        // A view of the memory that the workers wrote to. Nothing was copied.
        let pixels = batch.pixels()?.as_slice::<f16>()?;
        println!(
            "batch {}: {} {} {:?}, first value {}, {:?}",
            batch.number(),
            batch.dtype(),
            batch.layout(),
            batch.shape()?,
            pixels[0],
            batch.labels()
        );
        // Dropping the batch frees its slot for the workers.
    }
    Ok(())
}
