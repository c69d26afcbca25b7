//! Whole images at full size. Each row has its own height and width, and the rows are packed
//! in one slot.
//! `cargo run --release --example 06_full_size -- SRC`

use featherload::{Loader, OnError, Recipe, RowDescriptor, Source};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    featherload::init();
    let src = std::env::args().nth(1).ok_or("usage: 06_full_size SRC")?;
    // Building reads the header of every image, so that a slot has room for a batch of the
    // largest images.
    let mut loader = Loader::builder(Source::detect(src)?)
        .recipe(Recipe::full())
        .batch_size(8)
        .depth(2)
        .on_error(OnError::Skip)
        .build()?;
    for batch in loader.epoch() {
        let batch = batch?;
        // Table and rows are one range of bytes, which one copy brings to a device.
        let packed = batch.pixels()?.packed()?;
        println!(
            "batch {}: {} rows in {} bytes, {} of them the table",
            batch.number(),
            batch.len(),
            packed.bytes().len(),
            8 * RowDescriptor::BYTES
        );
        for (row, at) in batch.rows().zip(packed.descriptors()) {
            // Height x width x 3 levels, from 0 to 255.
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
