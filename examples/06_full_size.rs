//! Whole pictures at full size, each row of its own height and width, as they
//! lie packed in a slot.
//! `cargo run --release --example 06_full_size -- SRC`

use featherload::{Loader, OnError, Recipe, RowDescriptor, Source};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    featherload::init();
    let src = std::env::args().nth(1).ok_or("usage: 06_full_size SRC")?;
    // Building reads the header of every picture: a slot has room for the batch
    // of the largest.
    let mut loader = Loader::builder(Source::detect(src)?)
        .recipe(Recipe::full())
        .batch_size(8)
        .depth(2)
        .on_error(OnError::Skip)
        .build()?;
    for batch in loader.epoch() {
        let batch = batch?;
        // Table and rows in one piece: what a device would get in one copy.
        let packed = batch.pixels()?.packed()?;
        println!(
            "batch {}: {} rows in {} bytes, {} of them the table",
            batch.number(),
            batch.len(),
            packed.bytes().len(),
            8 * RowDescriptor::BYTES
        );
        for (row, at) in batch.rows().zip(packed.descriptors()) {
            // Height x width x 3 levels of 0 to 255.
            let pixels = row.as_slice::<u8>()?;
            let sum: u64 = pixels.iter().map(|v| u64::from(*v)).sum();
            println!(
                "  sample {} at byte {}: {} x {}, mean level {:.1}{}",
                row.id(),
                at.offset,
                at.height,
                at.width,
                sum as f64 / pixels.len().max(1) as f64,
                if at.is_masked() { ", failed" } else { "" }
            );
        }
    }
    Ok(())
}
