//! Estimates the speed of a run that decodes JPEGs at 1/2, 1/4 or 1/8 of their size.
//!
//! Measures the bare decoder on the files of the run, at full size and scaled.

use std::time::Duration;

use featherload::measure::ceiling::CeilingPart;
use featherload::{DecodeMode, Loader, Result};

use crate::ceiling::CeilingRates;
use crate::setup::RunSetup;

const WINDOW: Duration = Duration::from_millis(250);

/// Below this gain scaled decoding is not recommended.
const LEAST: f64 = 1.05;

/// The rate of the run with `--decode scaled`, relative to this run. `decode` is the share of
/// decoding in worker time. The time of resizing counts as unchanged. None if the run scales
/// already, or would gain too little.
///
/// # Errors
/// A file does not decode, or a signal arrived.
pub fn measure(
    setup: &RunSetup<'_>,
    loader: &Loader,
    workers: usize,
    decode: f64,
) -> Result<Option<f64>> {
    let plan = loader.plan().options();
    if loader.state().profile.decode != DecodeMode::Full.name() || plan.size_setter().is_some() {
        return Ok(None);
    }
    let recipe = setup.options.recipe()?;
    if recipe.joins_samples() {
        // The bare decoder has one image for each row.
        return Ok(None);
    }
    let rate = |mode| {
        let recipe = recipe.clone().with_decode(mode);
        let part = CeilingPart::Crop;
        let workers = workers.max(1) as u64;
        let mut bare = CeilingRates::start(workers, part, loader.index(), &recipe, plan)?;
        // The first window warms up.
        bare.window(WINDOW / 2)?;
        bare.window(WINDOW)
    };
    let (full, scaled) = (rate(DecodeMode::Full)?, rate(DecodeMode::Scaled)?);
    let gain = of_run(decode, scaled / full);
    Ok((gain >= LEAST).then_some(gain))
}

/// Relative rate of a run that spends this share of its time on decoding, if decoding alone becomes
/// `ratio` times as fast.
fn of_run(decode: f64, ratio: f64) -> f64 {
    1.0 / (1.0 - decode + decode / ratio.max(1e-9))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_time_of_decoding_shrinks() {
        assert!((of_run(0.8, 2.0) - 1.0 / 0.6).abs() < 1e-12);
        assert!((of_run(0.8, 1.0) - 1.0).abs() < 1e-12);
        assert!((of_run(0.0, 5.0) - 1.0).abs() < 1e-12);
    }
}
