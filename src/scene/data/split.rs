//! Splits frames into training and evaluation by nerfstudio's rules
//! (`data/utils/dataparsers_utils.py`).
//!
//! Pure.

use std::path::Path;

use crate::scene::data::options::SplitBy;
use crate::scene::data::scene::SceneSplit;
use crate::scene::data::scene_description::FrameDescription;

/// Sets the split of the frames. With [`SplitBy::Listed`] it is already set.
///
/// # Errors
/// A rule that cannot split these frames. As text.
pub(super) fn mark(frames: &mut [FrameDescription], by: SplitBy) -> Result<(), String> {
    if by == SplitBy::Listed {
        return Ok(());
    }
    let names: Vec<&str> = frames.iter().map(|frame| frame.name.as_str()).collect();
    let trains = trains(&names, by)?;
    for (frame, trains) in frames.iter_mut().zip(trains) {
        frame.split = Some(if trains {
            SceneSplit::Train
        } else {
            SceneSplit::Eval
        });
    }
    Ok(())
}

/// For each of these names, whether its frame is for training.
pub(super) fn trains(names: &[&str], by: SplitBy) -> Result<Vec<bool>, String> {
    let count = names.len();
    let mut trains = vec![false; count];
    match by {
        SplitBy::All | SplitBy::Listed => trains.fill(true),
        SplitBy::Fraction(part) => {
            if !(0.0..=1.0).contains(&part) {
                return Err(format!("the fraction is {part}: use 0 to 1"));
            }
            for number in spread(count, (count as f64 * part).ceil() as usize) {
                trains[number] = true;
            }
        }
        SplitBy::Interval(every) => {
            if every == 0 {
                return Err("the interval is 0: use 1 or more".into());
            }
            for (number, trains) in (0u64..).zip(&mut trains) {
                *trains = number % every != 0;
            }
        }
        SplitBy::Filename => {
            for (path, trains) in names.iter().zip(&mut trains) {
                let name = Path::new(path).file_name().unwrap_or_default();
                let name = name.to_string_lossy();
                *trains = name.contains("train");
                if !*trains && !name.contains("eval") {
                    return Err(format!(
                        "{path:?}: its file name contains neither train nor eval"
                    ));
                }
            }
        }
    }
    Ok(trains)
}

/// `chosen` of `count` numbers, evenly spaced, including the first and the last: NumPy's
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
