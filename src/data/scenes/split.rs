//! Which frames train and which evaluate: nerfstudio's rules
//! (`data/utils/dataparsers_utils.py`).
//!
//! Pure.

use std::path::Path;

use crate::data::scenes::found::FoundFrame;
use crate::data::scenes::options::SplitBy;
use crate::data::scenes::scene::Split;

/// Marks the frames. Those of [`SplitBy::Listed`] are marked by now.
///
/// # Errors
/// A rule that these frames cannot be parted by, in words.
pub(super) fn mark(frames: &mut [FoundFrame], by: SplitBy) -> Result<(), String> {
    let count = frames.len();
    let mut train = vec![false; count];
    match by {
        SplitBy::Listed => return Ok(()),
        SplitBy::All => train.fill(true),
        SplitBy::Fraction(part) => {
            if !(0.0..=1.0).contains(&part) {
                return Err(format!("a fraction of {part}: it must be between 0 and 1"));
            }
            for number in spread(count, (count as f64 * part).ceil() as usize) {
                train[number] = true;
            }
        }
        SplitBy::Interval(every) => {
            if every == 0 {
                return Err("an interval of 0: it must be 1 or more".into());
            }
            for (number, trains) in (0u64..).zip(&mut train) {
                *trains = number % every != 0;
            }
        }
        SplitBy::Filename => {
            for (frame, trains) in frames.iter().zip(&mut train) {
                let name = Path::new(&frame.name).file_name().unwrap_or_default();
                let name = name.to_string_lossy();
                *trains = name.contains("train");
                if !*trains && !name.contains("eval") {
                    return Err(format!(
                        "{} ({:?}): its file name has neither train nor eval in it",
                        frame.at, frame.name
                    ));
                }
            }
        }
    }
    for (frame, trains) in frames.iter_mut().zip(train) {
        frame.split = Some(if trains { Split::Train } else { Split::Eval });
    }
    Ok(())
}

/// `chosen` of `count` numbers, the first and the last among them, evenly spread: NumPy's
/// `linspace(0, count - 1, chosen, dtype=int)`.
fn spread(count: usize, chosen: usize) -> Vec<usize> {
    let Some(last) = count.checked_sub(1) else {
        return Vec::new();
    };
    match chosen {
        0 => Vec::new(),
        1 => vec![0],
        _ => {
            let step = last as f64 / (chosen - 1) as f64;
            let numbers = (0..chosen - 1).map(|i| (i as f64 * step) as usize);
            numbers.chain([last]).collect()
        }
    }
}
