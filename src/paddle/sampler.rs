//! A `sampler` and a `loader` of a config: the order of an epoch, the rows of its
//! batches, and how many workers fill them.

use super::note::Notes;
use super::params::{Params, Read};
use crate::plan::{IdentityProb, MultiScale, Sampler, Tail};
use crate::recipe::file::{Node, Value, advice};

/// What follows from a `sampler`.
#[derive(Debug, PartialEq)]
pub(super) struct Order {
    pub(super) sampler: Sampler,
    pub(super) batch: u32,
    pub(super) tail: Tail,
    pub(super) multi_scale: Option<MultiScale>,
}

const SERVED: [&str; 5] = [
    "DistributedBatchSampler",
    "BatchSampler",
    "PKSampler",
    "DistributedRandomIdentitySampler",
    "MultiScaleSampler",
];

pub(super) fn read(node: &Node, multi_scale: bool, notes: &mut Notes) -> Read<Order> {
    let mut params = Params::of("sampler", node.at, node)?;
    let name = params.text("name")?.unwrap_or("DistributedBatchSampler");
    if !SERVED.contains(&name) {
        let advice = advice(name, &SERVED);
        return Err(params.wrong("name", format_args!("'{name}' is not served: {advice}")));
    }
    if multi_scale != (name == "MultiScaleSampler") {
        return Err(params.wrong(
            "name",
            format_args!("{name}: MultiScaleSampler and MultiScaleDataset go together"),
        ));
    }
    let order = match name {
        "PKSampler" => pk(&mut params)?,
        "DistributedRandomIdentitySampler" => random_identity(&mut params, notes)?,
        "MultiScaleSampler" => scales(&mut params, notes)?,
        _ => plain(&mut params)?,
    };
    params.done()?;
    if order.batch == 0 {
        return Err(Params::of("sampler", node.at, node)?
            .wrong("batch_size", "batch_size is 0, it must be at least 1"));
    }
    Ok(order)
}

fn shuffled(shuffle: bool) -> Sampler {
    match shuffle {
        true => Sampler::Shuffle,
        false => Sampler::Sequential,
    }
}

fn dropped(drop: bool) -> Tail {
    match drop {
        true => Tail::Drop,
        false => Tail::Short,
    }
}

fn batch_size(params: &mut Params<'_>) -> Read<u32> {
    match params.whole("batch_size")? {
        Some(rows) => Ok(rows),
        None => Err(params.wrong("batch_size", "'batch_size' is missing, and has no default")),
    }
}

fn plain(params: &mut Params<'_>) -> Read<Order> {
    Ok(Order {
        batch: batch_size(params)?,
        sampler: shuffled(params.flag("shuffle", false)?),
        tail: dropped(params.flag("drop_last", false)?),
        multi_scale: None,
    })
}

fn pk(params: &mut Params<'_>) -> Read<Order> {
    let batch = batch_size(params)?;
    let Some(per_id) = params.whole("sample_per_id")?.filter(|k| *k > 0) else {
        return Err(params.wrong("sample_per_id", "'sample_per_id' must be 1 or more"));
    };
    // Its batches are full either way, and always drawn.
    params.ignore(&["shuffle", "drop_last", "total_epochs"]);
    for name in ["id_list", "ratio"] {
        if params.node(name).is_some() {
            return Err(params.wrong(
                name,
                format_args!("{name} (identities that come more often) is not served"),
            ));
        }
    }
    let prob = match params.text("sample_method")? {
        None | Some("sample_avg_prob") => IdentityProb::SampleAvg,
        Some("id_avg_prob") => IdentityProb::IdAvg,
        Some(other) => {
            return Err(params.wrong(
                "sample_method",
                format_args!("sample_method is '{other}': sample_avg_prob or id_avg_prob fit"),
            ));
        }
    };
    identity(params, "sample_per_id", per_id, prob, batch)
}

fn random_identity(params: &mut Params<'_>, notes: &mut Notes) -> Read<Order> {
    let batch = batch_size(params)?;
    let Some(per_id) = params.whole("num_instances")?.filter(|k| *k > 0) else {
        return Err(params.wrong("num_instances", "'num_instances' must be 1 or more"));
    };
    params.ignore(&["shuffle", "drop_last"]);
    if params.node("max_iters").is_some() {
        return Err(params.wrong("max_iters", "max_iters is not served: leave it out"));
    }
    notes.at(
        params.at,
        "DistributedRandomIdentitySampler: each batch draws its identities by itself (PKSampler \
         with id_avg_prob); PaddleClas deals out each identity's pictures once an epoch",
    );
    identity(params, "num_instances", per_id, IdentityProb::IdAvg, batch)
}

fn identity(
    params: &Params<'_>,
    name: &str,
    per_id: u32,
    prob: IdentityProb,
    batch: u32,
) -> Read<Order> {
    if !batch.is_multiple_of(per_id) {
        return Err(params.wrong(
            name,
            format_args!("batch_size {batch} is no multiple of {name} {per_id}"),
        ));
    }
    Ok(Order {
        sampler: Sampler::Identity { per_id, prob },
        batch,
        tail: Tail::Drop,
        multi_scale: None,
    })
}

fn scales(params: &mut Params<'_>, notes: &mut Notes) -> Read<Order> {
    let Some(batch) = params.whole("first_bs")? else {
        return Err(params.wrong("first_bs", "'first_bs' is missing, and has no default"));
    };
    let mut divided_by = params.whole_or("divided_factor", 32)?;
    let is_training = params.flag("is_training", true)?;
    // In evaluation it does not shuffle, whatever is written, nor round the size.
    let shuffle = params.flag("shuffle", true)? && is_training;
    let drop_last = params.flag("drop_last", false)?;
    params.ignore(&["seed"]);
    let mut sizes = Vec::new();
    let list: &[Node] = params.node("scales").map_or(&[], Node::items);
    for item in list {
        sizes.push(match &item.value {
            Value::Int(side) => u32::try_from(*side).ok().map(|side| (side, side)),
            Value::List(pair) => match pair.as_slice() {
                // Width, height.
                [w, h] => side(h).zip(side(w)),
                _ => None,
            },
            _ => None,
        });
    }
    let sizes: Option<Vec<(u32, u32)>> = sizes.into_iter().collect();
    let Some(mut sizes) = sizes.filter(|sizes| !sizes.is_empty()) else {
        return Err(params.wrong("scales", "scales must be sides, or [width, height] each"));
    };
    if !is_training {
        sizes.truncate(1);
        divided_by = 1;
    } else {
        notes.at(
            params.at,
            "MultiScaleSampler: each size comes once in a cycle, where PaddleClas draws each by \
             itself",
        );
    }
    Ok(Order {
        sampler: shuffled(shuffle),
        batch,
        tail: dropped(drop_last),
        multi_scale: Some(MultiScale { sizes, divided_by }),
    })
}

fn side(node: &Node) -> Option<u32> {
    match node.value {
        Value::Int(v) => u32::try_from(v).ok(),
        _ => None,
    }
}

/// Workers of a `loader`: as many as it says, but no more than `usable` CPUs.
pub(super) fn workers(node: Option<&Node>, usable: usize, notes: &mut Notes) -> Read<usize> {
    let Some(node) = node else {
        return Ok(usable);
    };
    let mut params = Params::of("loader", node.at, node)?;
    let written = params.whole("num_workers")?;
    params.flag("use_shared_memory", true)?;
    for key in params.left() {
        notes.at(key.at, format!("loader: '{}' means nothing here", key.name));
    }
    let Some(written) = written.map(|n| n as usize) else {
        return Ok(usable);
    };
    if written > usable {
        notes.at(
            params.at,
            format!(
                "num_workers is {written}, and {usable} CPUs can be used: {usable} workers; \
                 --workers changes it"
            ),
        );
    }
    Ok(written.min(usable))
}
