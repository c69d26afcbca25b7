//! Two ranks of one training run. Each gets the same number of full batches, and rows that
//! only fill a batch are marked. `cargo run --release --example 03_ranks -- SRC`

use featherload::{EpochTail, Loader, Rank, Recipe, RowStatus, Source};

const WORLD: u32 = 2;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    featherload::init();
    let src = std::env::args().nth(1).ok_or("usage: 03_ranks SRC")?;

    // Here the ranks run one after the other. In training each rank is a process of its own.
    let mut counted = 0;
    let mut samples = 0;
    for rank in 0..WORLD {
        let mut loader = Loader::builder(Source::detect(&src)?)
            .recipe(Recipe::eval224())
            .batch_size(16)
            .shuffle(false)
            .rank(Rank::new(rank, WORLD))
            .tail(EpochTail::Pad)
            .num_workers(1)
            .build()?;
        samples = loader.index().len();
        for batch in loader.epoch() {
            let batch = batch?;
            let count = |s| batch.status().iter().filter(|x| **x == s).count();
            println!(
                "rank {rank}, batch {}: {} rows = {} samples, {} repeated, {} padding",
                batch.number(),
                batch.len(),
                count(RowStatus::Ok),
                count(RowStatus::Repeated),
                count(RowStatus::Padding),
            );
            counted += count(RowStatus::Ok);
        }
    }
    // An evaluation that counts rows of status `Ok` counts each sample once.
    assert_eq!(counted as u64, samples);
    println!("{counted} rows of status ok, {samples} samples");
    Ok(())
}
