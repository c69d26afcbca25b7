//! The names of operations in other libraries, and what to use instead in a recipe. For the message
//! that rejects them.
//!
//! Only names that do not resemble the right one. Similar names are found by their letters.

/// Names in lower case without `_`, and the text that follows the name in the message.
const NAMES: &[(&[&str], &str)] = &[
    (
        &[
            "totensor",
            "totensorv2",
            "piltotensor",
            "toimage",
            "topuretensor",
        ],
        "is not needed: batches are tensors, and floats are 0 to 1. Remove it",
    ),
    (
        &["topilimage"],
        "is not needed: no operation takes a Pillow image. Remove it",
    ),
    (
        &[
            "convertimagedtype",
            "todtype",
            "astype",
            "float",
            "half",
            "tofloat",
        ],
        "is unknown: use cast: {dtype: f32}",
    ),
    (
        &["rescale"],
        "is not needed: floats are 0 to 1. Remove it, or change the size with resize: {size: 256}",
    ),
    (&["scale"], "is unknown: use resize: {size: 256}"),
    (&["crop"], "is unknown: use center_crop or random_crop"),
    (
        &["fivecrop", "tencrop"],
        "is unknown: write a recipe with several crops, with center_crop and corner_crop",
    ),
    (
        &["flip", "hflip", "fliplr"],
        "is unknown: use random_horizontal_flip",
    ),
    (&["vflip", "flipud"], "is unknown: use random_vertical_flip"),
    (&["blur"], "is unknown: use gaussian_blur"),
    (
        &["brightness", "contrast", "saturation", "hue"],
        "is a parameter: use color_jitter: {brightness: 0.4, contrast: 0.4, hue: 0.1}",
    ),
    (&["rgb", "torgb"], "is unknown: use decode: {color: rgb}"),
    (&["bgr", "tobgr"], "is unknown: use decode: {color: bgr}"),
    (
        &["permute", "tochw", "tochwimage", "transpose"],
        "is unknown: use layout: {layout: nchw}",
    ),
    (
        &["compose", "sequential"],
        "is not needed: write its operations in the list `ops`",
    ),
    (
        &["lambda"],
        "is not supported, since a recipe holds no code: apply it to the batches",
    ),
    (
        &["mixup", "cutmix", "fmix", "mixupcutmix", "labelsmoothing"],
        "works on batches: write it in `mixing: ops`, beside `ops`",
    ),
    (
        &["name", "type", "op", "transform", "class"],
        "is unknown: write the operation's name in its place, such as `- resize: {size: 256}`",
    ),
];

/// The names of element types in other libraries.
const DTYPES: &[(&[&str], &str)] = &[
    (&["uint8", "byte", "torch.uint8"], "u8"),
    (&["float16", "half", "torch.float16", "fp16"], "f16"),
    (&["bfloat16", "torch.bfloat16"], "bf16"),
    (&["float32", "float", "torch.float32", "fp32"], "f32"),
];

/// The text that follows the name of this operation in the message.
pub(super) fn operation_advice(name: &str) -> Option<&'static str> {
    let name = name.replace('_', "").to_lowercase();
    let (_, what) = NAMES
        .iter()
        .find(|(names, _)| names.contains(&name.as_str()))?;
    Some(what)
}

/// The recipe's value for a name from another library.
pub(super) fn value_advice(name: &str, known: &[&str]) -> Option<&'static str> {
    let (_, ours) = DTYPES.iter().find(|(names, _)| names.contains(&name))?;
    known.contains(ours).then_some(ours)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::operations;

    #[test]
    fn what_takes_a_name_s_place_is_there() {
        let served: Vec<&str> = operations().iter().map(|op| op.name).collect();
        for (names, what) in NAMES {
            for name in *names {
                assert!(
                    !served.iter().any(|op| op.replace('_', "") == *name),
                    "{name}"
                );
            }
            let Some((_, rest)) = what.split_once("use ") else {
                continue;
            };
            for op in rest.split(" or ").flat_map(|part| part.split(" and ")) {
                let op = op.split(':').next().unwrap_or_default();
                assert!(served.contains(&op), "{op}: {what}");
            }
        }
    }
}
