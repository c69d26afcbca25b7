//! The stages of a progressive training (EfficientNetV2's): sizes and strengths that depend on the
//! epoch. PaddleClas has four stages, each a quarter of all epochs.

use super::op_pipeline::OpPipeline;
use crate::configs::paddle::params::{ConfigParams, ConfigResult};
use crate::recipe::Size;

/// The number of stages.
const STAGES: usize = 4;

/// The first epoch of each stage, from 0.
pub(crate) fn first_epochs(epochs: u64) -> [u64; STAGES] {
    // `epoch_id > int(epochs * ratio)`, where epochs count from 1.
    [0, 1, 2, 3].map(|stage| (epochs as f64 * (stage as f64 / STAGES as f64)) as u64)
}

/// `progress_size` of RandCropImage: the size of batches from here on.
pub(super) fn progress_size(
    params: &mut ConfigParams<'_>,
    pipe: &mut OpPipeline<'_>,
) -> ConfigResult<()> {
    let Some(sizes) = of_stages(params, "progress_size", pipe)? else {
        return Ok(());
    };
    let side = |v: f64| match v.fract() == 0.0 && (1.0..=f64::from(u16::MAX)).contains(&v) {
        true => Ok(Size::from(v as u32)),
        false => Err(params.mistake_at(
            "progress_size",
            format_args!("progress_size has {v}: use whole numbers from 1 to 65535"),
        )),
    };
    pipe.stages = sizes.into_iter().map(side).collect::<ConfigResult<_>>()?;
    Ok(())
}

/// `progress_magnitude` of RandAugmentV2, with the size of each stage.
pub(super) fn progress_magnitude(
    params: &mut ConfigParams<'_>,
    pipe: &mut OpPipeline<'_>,
) -> ConfigResult<Vec<(Size, f64)>> {
    let Some(strengths) = of_stages(params, "progress_magnitude", pipe)? else {
        return Ok(Vec::new());
    };
    if pipe.stages.is_empty() {
        return Err(params.mistake_at(
            "progress_magnitude",
            "progress_magnitude needs stages: write progress_size in a RandCropImage before it",
        ));
    }
    let all: Vec<(Size, f64)> = pipe.stages.iter().copied().zip(strengths).collect();
    let differs = |(i, (size, strength)): (usize, &(Size, f64))| {
        let earlier = all.iter().take(i).find(|(other, _)| other == size);
        earlier.is_some_and(|(_, other)| other != strength)
    };
    if all.iter().enumerate().any(differs) {
        return Err(params.mistake_at(
            "progress_magnitude",
            "progress_magnitude has two strengths for one progress_size: use another size for \
             each stage",
        ));
    }
    Ok(all)
}

impl OpPipeline<'_> {
    /// Rejects an operation that sets another size after a stage's size.
    pub(super) fn keeps_stages(&self, params: &ConfigParams<'_>) -> ConfigResult<()> {
        if self.stages.is_empty() {
            return Ok(());
        }
        Err(params.mistake_at(
            "",
            "changes the size that progress_size sets: move it before RandCropImage",
        ))
    }
}

/// The numbers of the four stages. None if the training has no stages.
fn of_stages(
    params: &mut ConfigParams<'_>,
    name: &'static str,
    pipe: &mut OpPipeline<'_>,
) -> ConfigResult<Option<Vec<f64>>> {
    let Some(mut numbers) = params.numbers(name)? else {
        return Ok(None);
    };
    if !pipe.progressive {
        pipe.note(
            params,
            format_args!("{name} counts with Global.train_mode: progressive alone"),
        );
        return Ok(None);
    }
    if numbers.len() < STAGES {
        return Err(params.position_of(name).mistake(format!(
            "{name} has {} values: use {STAGES}, one for each stage",
            numbers.len()
        )));
    }
    numbers.truncate(STAGES);
    Ok(Some(numbers))
}
