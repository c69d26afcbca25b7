//! Stop in the middle of an epoch, keep the state as JSON, go on with a new loader.
//! `cargo run --release --example 02_resume -- SRC`

use featherload::{Loader, LoaderBuilder, Source, State};

fn builder(src: &str) -> featherload::Result<LoaderBuilder> {
    Ok(Loader::builder(Source::detect(src)?).batch_size(8).seed(7))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    featherload::init();
    let src = std::env::args().nth(1).ok_or("usage: 02_resume SRC")?;

    // The whole epoch, as it should be.
    let mut all = Vec::new();
    for batch in builder(&src)?.build()?.epoch() {
        all.push(batch?.ids().to_vec());
    }

    // Half of it. The state counts what was handed over, not what workers have
    // prepared ahead.
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

    // The rest. Another data set, recipe, seed or version is an error that
    // names the difference.
    let state: State = serde_json::from_str(&saved)?;
    for batch in builder(&src)?.resume(state).build()?.epoch() {
        seen.push(batch?.ids().to_vec());
    }
    assert_eq!(seen, all);
    println!("resumed: the same {} batches", seen.len());
    Ok(())
}
