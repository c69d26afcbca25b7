//! What a sampler knows of the data: from index, weights and sizes to its table.
//!
//! In the consumer, once, before other processes get it. 8 bytes a sample more
//! while it is made.

use crate::data::index::{Index, Label};
use crate::data::sizes::Sizes;
use crate::data::survey;
use crate::error::{Error, Result};
use crate::picture::Limits;
use crate::plan::{
    Plan, PlanOptions, Sampler, SamplerTable, Weights, by_identity, by_size, by_weight,
    inverse_class_frequency,
};
use crate::recipe::Upright;

/// The sampler's table, if it needs one, and the sizes of all pictures, read this
/// way up, if they were read for it.
///
/// # Errors
/// When the index does not have what the sampler goes by, or weights are given
/// and not asked for, or the other way round.
pub(super) fn prepare(
    index: &Index,
    options: &PlanOptions,
    weights: Option<&[f64]>,
    limits: &Limits,
    upright: Upright,
) -> Result<(Option<SamplerTable>, Option<Sizes>)> {
    let sizes = match options.sampler.reads_sizes() {
        true => Some(survey::read_sizes(index, limits, upright)?),
        false => None,
    };
    let table = table(index, options, weights, sizes.as_ref())?;
    Ok((table, sizes))
}

/// The plan of a loader with default limits and without given weights.
///
/// # Errors
/// As a loader's.
pub(crate) fn plan(index: &Index, options: &PlanOptions) -> Result<Plan> {
    let options = &options.settled(index.samples_of_a_shard());
    options.check(index.len())?;
    // Areas alone: a turn changes none.
    let upright = Upright::default();
    let (table, _) = prepare(index, options, None, &Limits::default(), upright)?;
    Plan::with_table(index.len(), options.clone(), table)
}

/// Whether an order can be had where an operation gives each sample another label
/// each time.
///
/// # Errors
/// When the sampler goes by labels.
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
    options: &PlanOptions,
    weights: Option<&[f64]>,
    sizes: Option<&Sizes>,
) -> Result<Option<SamplerTable>> {
    let sampler = &options.sampler;
    let takes_weights = matches!(
        sampler,
        Sampler::Weighted {
            weights: Weights::Given,
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
        (true, Some(weights)) => by_weight(weights, index.len()).map(Some),
        (false, None) => match *sampler {
            Sampler::Identity { prob, .. } => {
                by_identity(&classes(index, sampler)?, prob, &options.identity_ratios).map(Some)
            }
            Sampler::Weighted { .. } => {
                let weights = inverse_class_frequency(&classes(index, sampler)?);
                by_weight(&weights, index.len()).map(Some)
            }
            Sampler::LargestFirst { classes } => {
                let area = |size: Option<(u32, u32)>| {
                    size.map_or(0, |(height, width)| u64::from(height) * u64::from(width))
                };
                let areas: Vec<u64> = match sizes {
                    Some(sizes) => sizes.iter().map(area).collect(),
                    None => return Err(Error::protocol("the sizes of the pictures were not read")),
                };
                by_size(&areas, classes).map(Some)
            }
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
