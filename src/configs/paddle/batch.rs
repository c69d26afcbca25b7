//! PaddleClas' `batch_transform_ops` as a recipe's operations on batches.

use crate::configs::paddle::note::{NoteList, SkippedOperation};
use crate::configs::paddle::op_list::{name_and_params, operations_of};
use crate::configs::paddle::params::{ConfigParams, ConfigResult};
use crate::recipe::file::{MapKey, NodeValue, TextMistake, TreeNode, nearest};
use crate::recipe::{MixChoice, MixOp, Mixing};

const NAMES: [&str; 5] = [
    "MixupOperator",
    "CutmixOperator",
    "FmixOperator",
    "OpSampler",
    "MixupCutmixHybrid",
];

/// Settings for the whole list.
pub(crate) struct BatchOpRules {
    /// `Arch.class_num`.
    pub(crate) class_num: Option<u32>,
    pub(crate) skip_unknown: bool,
}

/// The operations on batches, with the lines of the list and of each operation. None if the list
/// has no operation to run.
pub(crate) fn translate(
    list: &TreeNode,
    rules: &BatchOpRules,
    notes: &mut NoteList,
    skipped: &mut Vec<SkippedOperation>,
) -> ConfigResult<Option<(Mixing, Vec<u64>)>> {
    let mut ops = Vec::new();
    let mut lines = vec![list.at.line as u64];
    let mut own_classes = None;
    for item in operations_of(list, "batch_transform_ops")? {
        let (key, node) = name_and_params(item)?;
        if !NAMES.contains(&key.name.as_str()) {
            let mistake = unknown(key);
            if !rules.skip_unknown {
                return Err(mistake);
            }
            skipped.push(SkippedOperation::of(key));
            continue;
        }
        let op = match key.name.as_str() {
            "OpSampler" => {
                notes.at(
                    key.at,
                    "OpSampler: labels are vectors in unmixed batches too",
                );
                match sampler(key, node, rules, skipped)? {
                    Some(op) => op,
                    None => continue,
                }
            }
            _ => {
                let mut params = ConfigParams::of(&key.name, key.at, node)?;
                let op = one(&mut params, &mut own_classes)?;
                params.reject_unread()?;
                op
            }
        };
        ops.push(op);
        lines.push(key.at.line as u64);
    }
    if ops.is_empty() {
        return Ok(None);
    }
    let Some(num_classes) = own_classes.or(rules.class_num) else {
        return Err(list
            .at
            .mistake("batch_transform_ops needs Arch.class_num, the width of mixed labels"));
    };
    Ok(Some((Mixing { num_classes, ops }, lines)))
}

fn unknown(key: &MapKey) -> TextMistake {
    let name = &key.name;
    let near = nearest(name, &NAMES).map(|near| format!("did you mean '{near}'? "));
    key.at.mistake(format!(
        "batch operation '{name}' is unknown: {}`skip_unknown_ops` skips it",
        near.unwrap_or_default()
    ))
}

/// Any operation except OpSampler.
fn one(params: &mut ConfigParams<'_>, own_classes: &mut Option<u32>) -> ConfigResult<MixOp> {
    // PaddleClas adds it by itself.
    params.ignore(&["class_num"]);
    Ok(match params.name {
        "CutmixOperator" => MixOp::Cutmix {
            alpha: alpha(params, "alpha", 0.2)?,
        },
        "FmixOperator" => {
            if params.flag("reformulate", false)? {
                return Err(params.mistake_at("reformulate", "reformulate is true: use false"));
            }
            MixOp::Fmix {
                alpha: alpha(params, "alpha", 1.0)?,
                decay_power: params.number_or("decay_power", 3.0)?,
                max_soft: params.number_or("max_soft", 0.0)?,
            }
        }
        "MixupCutmixHybrid" => hybrid(params, own_classes)?,
        _ => MixOp::Mixup {
            alpha: alpha(params, "alpha", 1.0)?,
        },
    })
}

fn hybrid(params: &mut ConfigParams<'_>, own_classes: &mut Option<u32>) -> ConfigResult<MixOp> {
    params.choice("mode", &[("batch", ())])?;
    if params.node("cutmix_minmax").is_some() {
        return Err(params.mistake_at(
            "cutmix_minmax",
            "cutmix_minmax is not supported, and other boxes are drawn without it: train with \
             cutmix_alpha alone, and remove it",
        ));
    }
    if !params.flag("correct_lam", true)? {
        return Err(params.mistake_at("correct_lam", "correct_lam is false: use true"));
    }
    *own_classes = Some(params.whole_or("num_classes", 4)?);
    let zero_or_more = |v: f64| v >= 0.0;
    let op = MixOp::MixupCutmix {
        mixup_alpha: params.number_or("mixup_alpha", 1.0)?,
        cutmix_alpha: params.number_or("cutmix_alpha", 0.0)?,
        p: params.probability("prob", 1.0)?,
        switch_p: params.probability("switch_prob", 0.5)?,
        label_smoothing: params.probability("label_smoothing", 0.1)?,
    };
    match op {
        MixOp::MixupCutmix {
            mixup_alpha: a,
            cutmix_alpha: b,
            ..
        } if !zero_or_more(a) || !zero_or_more(b) || a + b == 0.0 => Err(params.mistake_at(
            "mixup_alpha",
            format_args!("mixup_alpha is {a} and cutmix_alpha {b}: use 0 or more, and one above 0"),
        )),
        op => Ok(op),
    }
}

fn alpha(params: &mut ConfigParams<'_>, name: &'static str, default: f64) -> ConfigResult<f64> {
    let v = params.number_or(name, default)?;
    match v > 0.0 {
        true => Ok(v),
        false => Err(params.mistake_at(name, format_args!("{name} is {v}: use more than 0"))),
    }
}

/// At most one of several operations, in the order of the text. A skipped operation leaves its
/// probability to "no operation". None if all are skipped.
fn sampler(
    key: &MapKey,
    node: &TreeNode,
    rules: &BatchOpRules,
    skipped: &mut Vec<SkippedOperation>,
) -> ConfigResult<Option<MixOp>> {
    let entries = match &node.value {
        NodeValue::Map(entries) if !entries.is_empty() => entries,
        _ => {
            return Err(key
                .at
                .mistake("OpSampler needs operations, each with its prob"));
        }
    };
    let mut choices = Vec::new();
    let mut sum = 0.0;
    for (key, node) in entries {
        if key.name == "OpSampler" {
            return Err(key
                .at
                .mistake("OpSampler is inside another OpSampler: write its operations there"));
        }
        if !NAMES.contains(&key.name.as_str()) {
            if !rules.skip_unknown {
                return Err(unknown(key));
            }
            skipped.push(SkippedOperation::of(key));
            continue;
        }
        let mut params = ConfigParams::of(&key.name, key.at, node)?;
        let p = params.number_or("prob", 0.0)?;
        if !(0.0..=1.0).contains(&p) {
            return Err(params.mistake_at("prob", format_args!("prob is {p}: use 0 to 1")));
        }
        if key.name == "MixupCutmixHybrid" {
            return Err(params.mistake_at("", "is not supported in OpSampler: move it out"));
        }
        let op = one(&mut params, &mut None)?;
        params.reject_unread()?;
        sum += p;
        choices.push(MixChoice { p, op });
    }
    if sum > 1.0 + 1e-9 {
        return Err(key.at.mistake(format!(
            "OpSampler: probabilities sum to {sum}: use at most 1"
        )));
    }
    Ok((!choices.is_empty()).then_some(MixOp::OneOf(choices)))
}
