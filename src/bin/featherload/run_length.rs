//! Whether a run was long enough for a rate, and the text for a run that was not. Also the range of
//! sampling seconds for memory.
//!
//! Batches that were made before the first one arrived took none of the measured time. A run of
//! only such batches would have an impossibly high rate.

use crate::output;

/// Least seconds after the first batch for a rate: in a shorter time, a pause of the machine
/// dominates.
const SHORTEST: f64 = 0.05;
/// Seconds and batches that are recommended.
const LONG_ENOUGH: f64 = 2.0;
const MANY: u64 = 20;

/// Whether this number of batches, in this number of seconds after the first, is enough for a rate.
pub fn is_measured(batches: u64, ahead: u64, seconds: f64) -> bool {
    batches > ahead.max(1) && seconds >= SHORTEST
}

/// The text that replaces a rate of `batches` in `seconds`. `unit` is their name. `longer` is the
/// option that makes the run longer, with its current value `now`.
pub fn too_short((batches, unit): (u64, &str), seconds: f64, (longer, now): (&str, u64)) -> String {
    let seconds = seconds.max(1e-3);
    // In a longer run each takes no more time than in this one, which includes the start.
    let more = (LONG_ENOUGH / seconds)
        .max(MANY as f64 / batches.max(1) as f64)
        .ceil();
    let asked = now.max(1).saturating_mul(more.max(2.0) as u64);
    format!(
        "too short to measure: {} {unit} in {}. Use {longer} {}",
        output::grouped(batches),
        output::seconds(seconds),
        rounded_up(asked)
    )
}

/// Rounded up to one digit.
fn rounded_up(n: u64) -> u64 {
    let unit = 10_u64.pow(n.max(1).ilog10());
    n.div_ceil(unit).saturating_mul(unit)
}

/// Seconds of sampling, 0.5 to 600.
pub fn parse_seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|e| format!("{e}"))?;
    // NaN lies in no range.
    if !(0.5..=600.0).contains(&seconds) {
        return Err("use 0.5 to 600 seconds".into());
    }
    Ok(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_is_too_short_is_told_how_long_it_must_be() {
        assert_eq!(
            too_short((2, "batches"), 0.021, ("--epochs", 1)),
            "too short to measure: 2 batches in 21 ms. Use --epochs 100"
        );
        assert_eq!(
            too_short((1, "step"), 3.0, ("--steps", 1)),
            "too short to measure: 1 step in 3.0 s. Use --steps 20"
        );
        assert_eq!(
            [1, 9, 10, 11, 96, 110].map(rounded_up),
            [1, 9, 10, 20, 100, 200]
        );
    }

    #[test]
    fn seconds_have_a_range() {
        assert_eq!(parse_seconds("0.5"), Ok(0.5));
        for text in ["0.49", "601", "nan", "inf", "-5", "five"] {
            assert!(parse_seconds(text).is_err(), "{text}");
        }
    }
}
