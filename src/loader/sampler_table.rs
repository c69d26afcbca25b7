//! The table of a sampler, from index, weights and sizes.
//!
//! In the consumer, once, before the workers start. Making it takes 8 more bytes per sample.

use crate::data::index::{Index, Label};
use crate::data::sample_sizes::SampleSizes;
use crate::data::survey;
use crate::error::{Error, Result};
use crate::order::{
    EpochPlan, OrderOptions, SampleWeights, Sampler, SamplerTable, identity_table,
    inverse_class_frequency, size_table, weight_table,
};
use crate::picture::PictureLimits;
use crate::recipe::OrientationMode;

/// Returns the sampler's table, if the sampler needs one. Also returns the sizes of all images in
/// this orientation, if they were read for it.
///
/// # Errors
/// The index lacks what the sampler needs; weights that are given and not used, or needed and not
/// given.
pub(super) fn prepare(
    index: &Index,
    options: &OrderOptions,
    weights: Option<&[f64]>,
    limits: &PictureLimits,
    upright: OrientationMode,
) -> Result<(Option<SamplerTable>, Option<SampleSizes>)> {
    let sizes = match options.sampler.reads_sizes() {
        true => Some(survey::read_sizes(index, limits, upright)?),
        false => None,
    };
    let table = table(index, options, weights, sizes.as_ref())?;
    Ok((table, sizes))
}

/// The order of a loader with default limits and without given weights.
///
/// # Errors
/// As those of a loader.
pub(crate) fn plan(index: &Index, options: &OrderOptions) -> Result<EpochPlan> {
    let options = &options.with_shard_samples(index.samples_per_shard());
    options.check(index.len())?;
    // Only areas are used, and a rotation does not change them.
    let upright = OrientationMode::default();
    let (table, _) = prepare(index, options, None, &PictureLimits::default(), upright)?;
    EpochPlan::with_table(index.len(), options.clone(), table)
}

/// Checks that a sampler works with labels that an operation draws for each sample.
///
/// # Errors
/// The sampler depends on labels.
pub(super) fn check_labelled_by(op: &str, sampler: &Sampler) -> Result<()> {
    if !sampler.reads_classes() {
        return Ok(());
    }
    Err(Error::config(format!(
        "the sampler {sampler} needs classes, and {op} with label: true draws a new class for \
         each sample: use another sampler, or remove label"
    )))
}

fn table(
    index: &Index,
    options: &OrderOptions,
    weights: Option<&[f64]>,
    sizes: Option<&SampleSizes>,
) -> Result<Option<SamplerTable>> {
    let sampler = &options.sampler;
    let takes_weights = matches!(
        sampler,
        Sampler::Weighted {
            weights: SampleWeights::Given,
            ..
        }
    );
    match (takes_weights, weights) {
        (false, Some(_)) => Err(Error::config(format!(
            "sample_weights have no effect on the sampler {sampler}: use Sampler::Weighted with \
             Weights::Given, or remove them"
        ))),
        (true, None) => Err(Error::config(format!(
            "the sampler {sampler} needs a weight for each sample: give sample_weights, or use \
             Weights::InverseClassFrequency"
        ))),
        (true, Some(weights)) => weight_table(weights, index.len()).map(Some),
        (false, None) => match *sampler {
            Sampler::Identity { prob, .. } => {
                identity_table(&classes(index, sampler)?, prob, &options.identity_ratios).map(Some)
            }
            Sampler::Weighted { .. } => {
                let weights = inverse_class_frequency(&classes(index, sampler)?);
                weight_table(&weights, index.len()).map(Some)
            }
            Sampler::LargestFirst { classes } => {
                let area = |size: Option<(u32, u32)>| {
                    size.map_or(0, |(height, width)| u64::from(height) * u64::from(width))
                };
                let areas: Vec<u64> = match sizes {
                    Some(sizes) => sizes.iter().map(area).collect(),
                    None => return Err(Error::protocol("the sizes of the images were not read")),
                };
                size_table(&areas, classes).map(Some)
            }
            Sampler::Given { num_samples } => SamplerTable::orders(num_samples).map(Some),
            _ => Ok(None),
        },
    }
}

/// The class of every sample.
fn classes(index: &Index, sampler: &Sampler) -> Result<Vec<i64>> {
    let needed = |what: &str| {
        Error::config(format!(
            "the sampler {sampler} needs classes, and {what}: give a folder with a sub-folder \
             for each class, or a list of paths and class numbers"
        ))
    };
    let mut classes = Vec::with_capacity(index.len() as usize);
    for id in 0..index.len() {
        match index.label(id) {
            Label::Class(class) => classes.push(class),
            Label::None => return Err(needed("the data set has no labels")),
            Label::Vector(v) => {
                let numbers = v.iter().count();
                return Err(needed(&format!(
                    "its labels are vectors of {numbers} numbers"
                )));
            }
        }
    }
    // A flat folder.
    if classes.iter().all(|class| *class == -1) {
        return Err(needed("no sample has a class (all have -1)"));
    }
    Ok(classes)
}
