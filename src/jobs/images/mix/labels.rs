//! From classes to vectors of weights.

use crate::error::{Error, Result};

/// A vector per class: one-hot, smoothed by `epsilon`. Zeros for rows without a sample.
///
/// # Errors
/// A class out of range. The text names it.
pub(crate) fn one_hot(
    classes: impl ExactSizeIterator<Item = Option<i64>>,
    num_classes: u32,
    epsilon: f64,
) -> Result<Vec<f32>> {
    let n = num_classes as usize;
    let off = epsilon / f64::from(num_classes);
    let (on, off) = ((1.0 - epsilon + off) as f32, off as f32);
    let mut values = vec![0f32; classes.len() * n];
    for (row, class) in values.chunks_exact_mut(n).zip(classes) {
        let Some(class) = class else { continue };
        row.fill(off);
        let at = usize::try_from(class).ok().and_then(|at| row.get_mut(at));
        *at.ok_or_else(|| {
            Error::config(format!("label {class} is not among {num_classes} classes"))
        })? = on;
    }
    Ok(values)
}
