//! The `sampler` and the `loader` of a config: the order of an epoch, the size of batches, and the
//! number of workers.

use crate::configs::paddle::note::NoteList;
use crate::configs::paddle::params::{ConfigParams, ConfigResult};
use crate::order::{EpochLength, EpochTail, IdentityProb, IdentityRatio, MultiScale, Sampler};
use crate::recipe::file::{NodeValue, TreeNode, advice};

/// The settings that a `sampler` leads to.
#[derive(Debug, PartialEq)]
pub(crate) struct SamplerConfig {
    pub(crate) sampler: Sampler,
    pub(crate) batch: u32,
    pub(crate) tail: EpochTail,
    pub(crate) multi_scale: Option<MultiScale>,
    pub(crate) ratios: Vec<IdentityRatio>,
    pub(crate) length: EpochLength,
}

impl SamplerConfig {
    fn new(sampler: Sampler, batch: u32, tail: EpochTail) -> Self {
        Self {
            sampler,
            batch,
            tail,
            multi_scale: None,
            ratios: Vec::new(),
            length: EpochLength::Samples,
        }
    }
}

const SUPPORTED: [&str; 8] = [
    "DistributedBatchSampler",
    "BatchSampler",
    "PKSampler",
    "DistributedRandomIdentitySampler",
    "NaiveIdentityBatchSampler",
    "RASampler",
    "RepeatedAugSampler",
    "MultiScaleSampler",
];

pub(crate) fn read(
    node: &TreeNode,
    multi_scale: bool,
    notes: &mut NoteList,
) -> ConfigResult<SamplerConfig> {
    let mut params = ConfigParams::of("sampler", node.at, node)?;
    let name = params.text("name")?.unwrap_or("DistributedBatchSampler");
    if !SUPPORTED.contains(&name) {
        let advice = advice(name, &SUPPORTED);
        return Err(params.mistake_at("name", format_args!("'{name}' is not supported: {advice}")));
    }
    if multi_scale != (name == "MultiScaleSampler") {
        return Err(params.mistake_at(
            "name",
            format_args!("{name}: MultiScaleSampler and MultiScaleDataset go together"),
        ));
    }
    let order = match name {
        "PKSampler" => pk(&mut params)?,
        "DistributedRandomIdentitySampler" => random_identity(&mut params, notes)?,
        "NaiveIdentityBatchSampler" => naive_identity(&mut params, notes)?,
        "RASampler" | "RepeatedAugSampler" => repeated(&mut params, name == "RASampler")?,
        "MultiScaleSampler" => scales(&mut params, notes)?,
        _ => plain(&mut params)?,
    };
    params.reject_unread()?;
    if order.batch == 0 {
        return Err(ConfigParams::of("sampler", node.at, node)?
            .mistake_at("batch_size", "batch_size is 0: use at least 1"));
    }
    Ok(order)
}

fn shuffled(shuffle: bool) -> Sampler {
    match shuffle {
        true => Sampler::Shuffle,
        false => Sampler::Sequential,
    }
}

fn dropped(drop: bool) -> EpochTail {
    match drop {
        true => EpochTail::Drop,
        false => EpochTail::Short,
    }
}

fn batch_size(params: &mut ConfigParams<'_>) -> ConfigResult<u32> {
    let rows = params.whole("batch_size")?;
    rows.ok_or_else(|| params.missing("batch_size"))
}

fn plain(params: &mut ConfigParams<'_>) -> ConfigResult<SamplerConfig> {
    let batch = batch_size(params)?;
    let sampler = shuffled(params.flag("shuffle", false)?);
    Ok(SamplerConfig::new(
        sampler,
        batch,
        dropped(params.flag("drop_last", false)?),
    ))
}

/// DeiT's repeated augmentation: each sample several times in a row, spread over all ranks. An
/// epoch is as long as without repeats.
fn repeated(params: &mut ConfigParams<'_>, is_ra: bool) -> ConfigResult<SamplerConfig> {
    let batch = batch_size(params)?;
    let tail = dropped(params.flag("drop_last", false)?);
    if !params.flag("shuffle", false)? {
        return Err(params.mistake_at(
            "shuffle",
            "shuffle is false, so every epoch would have the same first samples of the list: \
             write shuffle: True",
        ));
    }
    let repeats = params.whole_or("num_repeats", 3)?;
    if repeats == 0 {
        return Err(params.mistake_at("num_repeats", "num_repeats is 0: use at least 1"));
    }
    // RASampler has no such parameter. RepeatedAugSampler replaced it.
    let round = match is_ra {
        true => 256,
        false => params.whole_or("selected_round", 256)?,
    };
    if round == 0 {
        return Err(params.mistake_at("selected_round", "selected_round is 0: use at least 1"));
    }
    // The launcher sets the ranks.
    params.ignore(&["num_replicas", "rank"]);
    Ok(SamplerConfig {
        length: EpochLength::MultipleOf(u64::from(round)),
        ..SamplerConfig::new(Sampler::RepeatedAugmentation { repeats }, batch, tail)
    })
}

fn pk(params: &mut ConfigParams<'_>) -> ConfigResult<SamplerConfig> {
    let batch = batch_size(params)?;
    let per_id = per_identity(params, "sample_per_id")?;
    // Its batches are always full and always drawn.
    params.ignore(&["shuffle", "drop_last", "total_epochs"]);
    let ratios = ratios(params)?;
    let methods = [
        ("sample_avg_prob", IdentityProb::SampleAvg),
        ("id_avg_prob", IdentityProb::IdAvg),
    ];
    let prob = params.choice("sample_method", &methods)?;
    let prob = prob.unwrap_or(IdentityProb::SampleAvg);
    Ok(SamplerConfig {
        ratios,
        ..identity(params, "sample_per_id", per_id, prob, batch)?
    })
}

/// The number of images of one identity in a batch.
fn per_identity(params: &mut ConfigParams<'_>, name: &'static str) -> ConfigResult<u32> {
    let count = params.whole(name)?.filter(|count| *count > 0);
    count.ok_or_else(|| params.mistake_at(name, format_args!("'{name}' must be 1 or more")))
}

/// Ranges of identities, and how much more likely each is. PaddleClas uses them only if both are
/// set.
fn ratios(params: &mut ConfigParams<'_>) -> ConfigResult<Vec<IdentityRatio>> {
    let (list, ratio) = (params.numbers("id_list")?, params.numbers("ratio")?);
    let (Some(list), Some(ratio)) = (list, ratio) else {
        return Ok(Vec::new());
    };
    if list.is_empty() || ratio.is_empty() {
        return Ok(Vec::new());
    }
    let whole =
        |v: f64| (v.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&v)).then_some(v);
    let (ranges, rest) = list.as_chunks::<2>();
    if !rest.is_empty() || ranges.len() != ratio.len() {
        return Err(params.mistake_at(
            "id_list",
            format_args!(
                "id_list has {} numbers and ratio {}: write id_list as [first, last, first, \
                 last, ...], and one ratio for each pair",
                list.len(),
                ratio.len()
            ),
        ));
    }
    let mut ratios = Vec::new();
    for ([first, last], ratio) in ranges.iter().zip(ratio) {
        let range = whole(*first).zip(whole(*last)).filter(|(a, b)| a <= b);
        let Some((first, last)) = range else {
            return Err(params.mistake_at(
                "id_list",
                format_args!(
                    "id_list has {first} to {last}: use whole numbers of 0 or more, the lower first"
                ),
            ));
        };
        let Some(ratio) = whole(ratio).filter(|ratio| *ratio > 0.0) else {
            return Err(params.mistake_at(
                "ratio",
                format_args!("ratio has {ratio}: use whole numbers of 1 or more"),
            ));
        };
        ratios.push(IdentityRatio {
            first: first as u64,
            last: last as u64,
            ratio: ratio as u32,
        });
    }
    Ok(ratios)
}

fn random_identity(
    params: &mut ConfigParams<'_>,
    notes: &mut NoteList,
) -> ConfigResult<SamplerConfig> {
    let batch = batch_size(params)?;
    let per_id = per_identity(params, "num_instances")?;
    params.ignore(&["shuffle", "drop_last"]);
    // With `max_iters`, PaddleClas draws identities by the number of their groups left.
    let (prob, law, length) = match params.whole("max_iters")? {
        None => (IdentityProb::IdAvg, "id_avg_prob", EpochLength::Samples),
        Some(0) => return Err(params.mistake_at("max_iters", "max_iters is 0: use at least 1")),
        Some(n) => (
            IdentityProb::SampleAvg,
            "sample_avg_prob",
            EpochLength::Batches(u64::from(n)),
        ),
    };
    notes.at(
        params.at,
        format!(
            "DistributedRandomIdentitySampler: each batch draws its own identities (PKSampler \
             with {law}). PaddleClas gives each identity's images once an epoch"
        ),
    );
    Ok(SamplerConfig {
        length,
        ..identity(params, "num_instances", per_id, prob, batch)?
    })
}

fn naive_identity(
    params: &mut ConfigParams<'_>,
    notes: &mut NoteList,
) -> ConfigResult<SamplerConfig> {
    let batch = batch_size(params)?;
    let per_id = per_identity(params, "num_instances")?;
    params.ignore(&["shuffle", "drop_last"]);
    notes.at(
        params.at,
        "NaiveIdentityBatchSampler: each batch draws its own identities (PKSampler with \
         id_avg_prob). PaddleClas gives each identity's images once an epoch. Epochs have the \
         same length, on every rank",
    );
    Ok(SamplerConfig {
        length: EpochLength::IdentityGroups,
        ..identity(params, "num_instances", per_id, IdentityProb::IdAvg, batch)?
    })
}

fn identity(
    params: &ConfigParams<'_>,
    name: &str,
    per_id: u32,
    prob: IdentityProb,
    batch: u32,
) -> ConfigResult<SamplerConfig> {
    if !batch.is_multiple_of(per_id) {
        return Err(params.mistake_at(
            name,
            format_args!("batch_size {batch} is not a multiple of {name} {per_id}"),
        ));
    }
    Ok(SamplerConfig::new(
        Sampler::Identity { per_id, prob },
        batch,
        EpochTail::Drop,
    ))
}

fn scales(params: &mut ConfigParams<'_>, notes: &mut NoteList) -> ConfigResult<SamplerConfig> {
    let Some(batch) = params.whole("first_bs")? else {
        return Err(params.missing("first_bs"));
    };
    let mut divided_by = params.whole_or("divided_factor", 32)?;
    let is_training = params.flag("is_training", true)?;
    // In evaluation it never shuffles, and does not round the size.
    let shuffle = params.flag("shuffle", true)? && is_training;
    let drop_last = params.flag("drop_last", false)?;
    params.ignore(&["seed"]);
    let mut sizes = Vec::new();
    let list: &[TreeNode] = params.node("scales").map_or(&[], TreeNode::items);
    for item in list {
        sizes.push(match &item.value {
            NodeValue::Int(side) => u32::try_from(*side).ok().map(|side| (side, side)),
            NodeValue::List(pair) => match pair.as_slice() {
                // Width, height.
                [w, h] => side(h).zip(side(w)),
                _ => None,
            },
            _ => None,
        });
    }
    let sizes: Option<Vec<(u32, u32)>> = sizes.into_iter().collect();
    let Some(mut sizes) = sizes.filter(|sizes| !sizes.is_empty()) else {
        return Err(params.mistake_at("scales", "scales must be sides, or [width, height] each"));
    };
    if !is_training {
        sizes.truncate(1);
        divided_by = 1;
    } else {
        notes.at(
            params.at,
            "MultiScaleSampler: each size comes once in a cycle. PaddleClas draws each \
             independently",
        );
    }
    Ok(SamplerConfig {
        multi_scale: Some(MultiScale {
            divided_by,
            ..MultiScale::new(sizes)
        }),
        ..SamplerConfig::new(shuffled(shuffle), batch, dropped(drop_last))
    })
}

fn side(node: &TreeNode) -> Option<u32> {
    match node.value {
        NodeValue::Int(v) => u32::try_from(v).ok(),
        _ => None,
    }
}

/// The number of workers of a `loader`, at most `usable` CPUs.
pub(crate) fn workers(
    node: Option<&TreeNode>,
    usable: usize,
    notes: &mut NoteList,
) -> ConfigResult<usize> {
    let Some(node) = node else {
        return Ok(usable);
    };
    let mut params = ConfigParams::of("loader", node.at, node)?;
    let written = params.whole("num_workers")?;
    params.flag("use_shared_memory", true)?;
    for key in params.unread_keys() {
        notes.at(key.at, format!("loader: '{}' means nothing here", key.name));
    }
    let Some(written) = written.map(|n| n as usize) else {
        return Ok(usable);
    };
    if written > usable {
        notes.at(
            params.at,
            format!(
                "num_workers is {written}, and {usable} CPUs can be used: the run has {usable} \
                 workers (`num_workers` changes it)"
            ),
        );
    }
    Ok(written.min(usable))
}
