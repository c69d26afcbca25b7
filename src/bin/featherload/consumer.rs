//! The consumer's part of every sub-command that runs a loader.

use featherload::{Batch, Error, Result};

/// Reads one byte of each page, so that every page of the batch is mapped in this process, as in a
/// training process. On a device, waits until the batch is ready.
pub fn touch(batch: &Batch) -> Result<()> {
    if batch.on_device().is_some() {
        return wait(batch);
    }
    for row in 0..batch.len() {
        for part in batch.row(row)?.parts()? {
            let pages = part.chunks(4096);
            let sum = pages.fold(0u8, |sum, page| sum.wrapping_add(page[0]));
            std::hint::black_box(sum);
        }
    }
    Ok(())
}

/// Waits until a batch is ready, if a device makes it.
pub fn wait(batch: &Batch) -> Result<()> {
    batch.on_device().map_or(Ok(()), |rows| rows.wait())
}

/// Under `stop` a bad sample ends the run: adds the alternatives to the error.
pub fn suggest_policy(error: Error) -> Error {
    error.advise_on_sample(
        "use --on-error skip to mask such samples, or --on-error substitute to take the next \
         ones instead",
    )
}
