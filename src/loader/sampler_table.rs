//! The table of a sampler, from index, weights and sizes.
//!
//! In the consumer, once, before the workers start. Making it takes 8 to 24 more bytes per sample.

use std::collections::HashMap;

use crate::data::index::{Index, Label};
use crate::data::objects::ObjectTable;
use crate::data::sample_sizes::SampleSizes;
use crate::data::survey;
use crate::error::{Error, Result};
use crate::order::{
    EpochPlan, ObjectFrequency, OrderOptions, PatchTableFault, SampleWeights, Sampler,
    SamplerTable, bucket_table, identity_table, inverse_class_frequency, patch_table, size_table,
    weight_table,
};
use crate::picture::PictureLimits;
use crate::recipe::{OrientationMode, RowExtent};

/// Returns the sampler's table, if the sampler needs one. Also returns the sizes of all images in
/// this orientation, if they were read for it. `extent`: that of the recipe's rows.
///
/// # Errors
/// The index lacks what the sampler needs; weights that are given and not used, or needed and not
/// given.
pub(super) fn prepare(
    (index, objects): (&Index, Option<&ObjectTable>),
    options: &OrderOptions,
    weights: Option<&[f64]>,
    limits: &PictureLimits,
    (upright, extent): (OrientationMode, RowExtent),
) -> Result<(Option<SamplerTable>, Option<SampleSizes>)> {
    let sizes = match options.sampler.reads_sizes() {
        true => Some(survey::read_sizes(index, limits, upright)?),
        false => None,
    };
    let table = match (options.sampler, &sizes) {
        (Sampler::PatchBudget { patches }, Some(sizes)) => {
            Some(budget_table(index, sizes, patches, extent)?)
        }
        _ => table((index, objects), options, weights, sizes.as_ref())?,
    };
    Ok((table, sizes))
}

/// The order of a loader with default limits and without given weights.
///
/// # Errors
/// As those of a loader.
pub(crate) fn plan(index: &Index, options: &OrderOptions) -> Result<EpochPlan> {
    let options = &options.with_shard_samples(index.samples_per_shard());
    options.check(index.len())?;
    if options.sampler.has_bucket_batches() {
        return Err(Error::option(
            "sampler",
            format!(
                "the batches of {} follow from a recipe: build a loader",
                options.sampler
            ),
        ));
    }
    // Only areas are used, and a rotation does not change them.
    let rows = (OrientationMode::default(), RowExtent::Own);
    let limits = PictureLimits::default();
    let (table, _) = prepare((index, None), options, None, &limits, rows)?;
    EpochPlan::with_table(index.len(), options.clone(), table)
}

/// The table of a budget of patches.
///
/// # Errors
/// Rows without patches, or with the same number of patches each; an image with more patches than
/// the budget.
fn budget_table(
    index: &Index,
    sizes: &SampleSizes,
    patches: u64,
    extent: RowExtent,
) -> Result<SamplerTable> {
    let rule = match extent {
        RowExtent::Patches(rule) if rule.padded_patches().is_none() => rule,
        RowExtent::Patches(rule) => {
            return Err(Error::option(
                "sampler",
                format!(
                    "rows of style {} have max_num_patches each, so `batch_size` is their budget: \
                     use another sampler",
                    rule.style()
                ),
            ));
        }
        RowExtent::Fixed { .. } | RowExtent::Own => {
            return Err(Error::option(
                "sampler",
                "a budget of patches needs a recipe with patches of style qwen, or with tiles: use \
                 such a recipe, or another sampler",
            ));
        }
    };
    let count = |size| {
        let grid = rule.grid(size).ok();
        grid.map(|grid| rule.image_patches(grid))
    };
    let counts = sizes.iter().map(|size| size.and_then(count));
    patch_table(counts, patches).map_err(|fault| match fault {
        PatchTableFault::TooLarge(id, count) => Error::option(
            "sampler",
            format!(
                "sample {id} ({}) has {count} patches, and the budget of a batch is {patches}: raise \
                 it, or lower {} in the recipe",
                index.path(id).display(),
                rule.limit()
            ),
        ),
        PatchTableFault::NoPatches => Error::option(
            "sampler",
            "no image has patches: each cannot be read, or is refused by the recipe",
        ),
        PatchTableFault::Memory(error) => error,
    })
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
    (index, objects): (&Index, Option<&ObjectTable>),
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
            Sampler::Weighted {
                weights: SampleWeights::ObjectFrequency(frequency),
                ..
            } => {
                let objects = objects.ok_or_else(|| {
                    Error::config(format!(
                        "the sampler {sampler} needs the objects of images: give `objects`, or use \
                         another sampler"
                    ))
                })?;
                weight_table(&repeat_factors(objects, frequency), index.len()).map(Some)
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
            Sampler::Buckets(rule) => match sizes {
                Some(sizes) => bucket_table(sizes.iter(), &rule).map(Some),
                None => Err(Error::protocol("the sizes of the images were not read")),
            },
            Sampler::Given { num_samples } => SamplerTable::orders(num_samples).map(Some),
            _ => Ok(None),
        },
    }
}

/// The weight of each sample by the categories of its objects. Crowds count as objects.
fn repeat_factors(objects: &ObjectTable, frequency: ObjectFrequency) -> Vec<f64> {
    // Of each category: its samples, and the last of them.
    let mut seen: HashMap<u32, (u64, u64)> = HashMap::new();
    for id in 0..objects.samples() {
        for label in objects.sample(id).labels {
            let (samples, last) = seen.entry(*label).or_insert((0, u64::MAX));
            *samples += u64::from(*last != id);
            *last = id;
        }
    }
    let all = objects.samples() as f64;
    let factor = |label: &u32| {
        let samples = seen.get(label).map_or(0, |(samples, _)| *samples);
        (frequency.threshold * all / samples as f64).sqrt().max(1.0)
    };
    let weight = |id| {
        let factors = objects.sample(id).labels.iter().map(factor);
        factors.reduce(f64::max).unwrap_or(frequency.empty)
    };
    (0..objects.samples()).map(weight).collect()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::objects::{ItemObjects, ObjectList, ObjectListOptions};

    #[test]
    fn weights_are_the_repeat_factors_of_lvis() {
        // Categories of each image: 1 in four of five images, 2 twice in one, 3 in two.
        let labels: [&[i64]; 5] = [&[1], &[1, 2, 2], &[1, 3], &[3, 1], &[]];
        let mut list = ObjectList::new(ObjectListOptions::default());
        for labels in labels {
            let item = ItemObjects {
                boxes: labels.iter().map(|_| [0.0, 0.0, 1.0, 1.0]).collect(),
                labels: labels.to_vec(),
                ..ItemObjects::default()
            };
            list.push(&item).unwrap();
        }
        let table = list.finish().unwrap();
        let factors =
            |threshold, empty| repeat_factors(&table, ObjectFrequency { threshold, empty });
        let (half, rare) = ((0.5f64 / 0.4).sqrt(), (0.5f64 / 0.2).sqrt());
        assert_eq!(factors(0.5, 0.25), [1.0, rare, half, half, 0.25]);
        assert_eq!(factors(0.0, 0.0), [1.0, 1.0, 1.0, 1.0, 0.0]);
    }
}
