//! Stops in the middle of an epoch, keeps the state as JSON, and resumes with a new loader.
//! `cargo run --release --example 02_resume -- SRC`

use featherload::{Loader, LoaderBuilder, Rank, Source, State};

fn builder(src: &str) -> featherload::Result<LoaderBuilder> {
    Ok(Loader::builder(Source::detect(src)?).batch_size(8).seed(7))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    featherload::init();
    let src = std::env::args().nth(1).ok_or("usage: 02_resume SRC")?;

    // The whole epoch without a stop, to compare with.
    let mut all = Vec::new();
    for batch in builder(&src)?.build()?.epoch() {
        all.push(batch?.ids().to_vec());
    }

    // The first half. The state counts the batches that this loop took. It does not count
    // batches that workers have prepared ahead.
    let mut seen = Vec::new();
    let mut loader = builder(&src)?.build()?;
    let mut epoch = loader.epoch();
    for batch in epoch.by_ref().take(all.len() / 2) {
        seen.push(batch?.ids().to_vec());
    }
    let saved = serde_json::to_string_pretty(&epoch.state())?;
    drop(epoch);
    drop(loader);
    println!("stopped after {} of {} batches:", seen.len(), all.len());
    println!("{saved}");

    // Two ranks load the rest in batches of three. Each remaining sample comes once. A rank
    // without a sample for a row repeats one.
    let state: State = serde_json::from_str(&saved)?;
    let mut by_two: Vec<u64> = seen.concat();
    for rank in 0..2 {
        let part = builder(&src)?.batch_size(3).rank(Rank::new(rank, 2));
        for batch in part.resume(state.clone()).build()?.epoch() {
            let batch = batch?;
            let rows = batch.ids().iter().zip(batch.repeated());
            by_two.extend(rows.filter(|(_, repeated)| !**repeated).map(|(id, _)| id));
        }
    }

    // One loader loads the rest. A state of another data set, recipe, seed or version is an
    // error, which names the difference.
    for batch in builder(&src)?.resume(state).build()?.epoch() {
        seen.push(batch?.ids().to_vec());
    }
    let mut once = all.concat();
    once.sort_unstable();
    by_two.sort_unstable();
    assert_eq!(by_two, once);
    assert_eq!(seen, all);
    println!(
        "resumed: the same {} batches, and by two ranks the same samples",
        seen.len()
    );
    Ok(())
}
