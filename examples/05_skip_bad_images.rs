//! A data set with broken files. The run continues, and reports each of them.
//! `cargo run --release --example 05_skip_bad_images -- SRC`

use std::fs;
use std::path::Path;

use featherload::{Loader, OnError, Source};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    featherload::init();
    let src = std::env::args()
        .nth(1)
        .ok_or("usage: 05_skip_bad_images SRC")?;
    let index = Source::detect(src)?.open()?.0;

    // One good image, the first half of its file, and a text file.
    let dir = tempfile::tempdir()?;
    let good = fs::read(index.path(0))?;
    let write = |name: &str, bytes: &[u8]| fs::write(dir.path().join(name), bytes);
    write("good.jpg", &good)?;
    write("half.jpg", &good[..good.len() / 2])?;
    write("text.jpg", b"not a picture")?;

    // `OnError::Stop`, the default, ends the epoch at the first broken file.
    println!("stop: {}", first_error(dir.path())?);

    // `Skip` fills the row with zeros and sets its label to -1. `Substitute` loads another
    // sample into the row. Both keep the size of the batch.
    for policy in [OnError::Skip, OnError::Substitute] {
        let mut loader = Loader::builder(Source::detect(dir.path())?)
            .on_error(policy)
            .shuffle(false)
            .num_workers(1)
            .build()?;
        for batch in loader.epoch() {
            let batch = batch?;
            let good: Vec<u64> = batch.good_rows().map(|row| row.id()).collect();
            println!(
                "{policy:?}: {:?}, {:?}, pixels of {good:?}",
                batch.status(),
                batch.labels()
            );
            for fault in batch.faults() {
                println!(
                    "  row {}, {}: {}: {}",
                    fault.row,
                    fault.path.display(),
                    fault.fault.kind.name(),
                    fault.fault
                );
            }
        }
    }
    Ok(())
}

fn first_error(src: &Path) -> Result<String, Box<dyn std::error::Error>> {
    let mut loader = Loader::builder(Source::detect(src)?)
        .shuffle(false)
        .num_workers(1)
        .build()?;
    let error = loader.epoch().find_map(Result::err);
    Ok(error.ok_or("no file failed")?.to_string())
}
