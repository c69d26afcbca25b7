//! One epoch over a folder of pictures: shapes and labels of each batch.
//! `cargo run --release --example 01_folder -- SRC`

use featherload::{Loader, Recipe, Source, f16};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // This program starts its own worker processes: nothing may stand before.
    featherload::init();
    let src = std::env::args().nth(1).ok_or("usage: 01_folder SRC")?;

    // Worker processes start here; by default one for each usable CPU.
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
        // The pixels stand where the workers wrote them; nothing was copied.
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
