//! Applies `Recipe::mixing` to the batches and labels of a run.
//!
//! In the consumer. `mix` does the arithmetic.

use crate::data::index::{Index, Label};
use crate::error::{Error, Result};
use crate::jobs::images::batch::{Batch, BatchLabels, RowsExtent};
use crate::jobs::images::mix;
use crate::jobs::images::mix::{BatchMixer, RowShape};
use crate::order::EpochPlan;
use crate::recipe::Mixing;

/// Mixes the batches of a run.
#[derive(Debug)]
pub(crate) struct BatchMixing {
    mixer: BatchMixer,
}

impl BatchMixing {
    /// For a data set that passed [`check_labels`].
    pub(crate) fn new(mixing: &Mixing) -> Self {
        Self {
            mixer: BatchMixer::new(mixing.clone()),
        }
    }

    /// Turns a batch's labels into vectors, and mixes rows and labels.
    pub(crate) fn mix(&mut self, batch: &mut Batch, plan: &EpochPlan) -> Result<()> {
        let mixing = self.mixer.mixing();
        let masked = |row: usize| batch.status[row].is_masked();
        let mut values = match &mut batch.labels {
            BatchLabels::Classes(classes) => {
                let of_samples = classes.iter().enumerate();
                let of_samples = of_samples.map(|(row, class)| (!masked(row)).then_some(*class));
                mix::one_hot(of_samples, mixing.num_classes, mixing.smoothing())?
            }
            // Labels of masked rows are zeros already.
            BatchLabels::Vectors { values, .. } => std::mem::take(values),
            BatchLabels::None => return Err(no_labels()),
        };
        if self.mixer.mixes_rows()
            && let RowsExtent::Equal { height, width, .. } = batch.extent
        {
            let shape = RowShape {
                channels: batch.channels,
                height,
                width,
                dtype: batch.dtype,
                layout: batch.layout,
            };
            let sampled: Vec<usize> = (0..batch.status.len()).filter(|r| !masked(*r)).collect();
            let random = plan.batch_random(batch.at);
            let used = batch.status.len() * shape.bytes();
            let bytes = &mut batch.storage.bytes_mut()[..used];
            self.mixer
                .mix(random, shape, bytes, &sampled, &mut values)?;
        }
        batch.labels = BatchLabels::Vectors {
            width: self.mixer.mixing().num_classes as usize,
            values,
        };
        Ok(())
    }
}

/// Checks that every label can be a vector of `num_classes` numbers.
///
/// # Errors
/// Names the sample, its path, its label, and what to change.
pub(crate) fn check_labels(mixing: &Mixing, index: &Index) -> Result<()> {
    let classes = match index.label(0) {
        Label::None => return Err(no_labels()),
        Label::Vector(_) => return mix::check_vectors(mixing, index.label_width()),
        Label::Class(_) => i64::from(mixing.num_classes),
    };
    let all = (0..index.len()).map(|id| match index.label(id) {
        Label::Class(class) => class,
        _ => -1,
    });
    let Some((id, label)) = (0..)
        .zip(all.clone())
        .find(|(_, l)| !(0..classes).contains(l))
    else {
        return Ok(());
    };
    let largest = all.max().unwrap_or(label);
    let fix = match label < 0 {
        true => "mixing needs class labels from 0 on".to_owned(),
        false => format!(
            "the largest label is {largest}, so use num_classes {}",
            largest.saturating_add(1)
        ),
    };
    Err(Error::dataset(
        index.path(id),
        format!("sample {id} has label {label}, and mixing has num_classes {classes}: {fix}"),
    ))
}

fn no_labels() -> Error {
    Error::config("mixing needs labels, and this data set has none: add labels, or remove mixing")
}
