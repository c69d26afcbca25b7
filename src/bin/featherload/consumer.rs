//! What every sub-command that runs a loader does as its consumer.

use featherload::{Batch, Error, Result};

/// Reads one byte of each page, so that every page of the batch is mapped here
/// as a consumer's would be. On a device waits until the batch is there.
pub fn touch(batch: &Batch) -> Result<()> {
    if batch.on_device().is_some() {
        return wait(batch);
    }
    for row in 0..batch.len() {
        let sum = batch
            .row(row)?
            .bytes()?
            .chunks(4096)
            .fold(0u8, |sum, page| sum.wrapping_add(page[0]));
        std::hint::black_box(sum);
    }
    Ok(())
}

/// Waits until a batch is there, where a device makes it.
pub fn wait(batch: &Batch) -> Result<()> {
    batch.on_device().map_or(Ok(()), |rows| rows.wait())
}

/// Under `stop` a bad sample ends the run: says what would not.
pub fn suggest_policy(error: Error) -> Error {
    error.advise_on_sample(
        "use --on-error skip to mask such samples, or --on-error substitute to take the next \
         ones instead",
    )
}
