//! Names that other libraries give to operations, and what a recipe has in their place: for
//! the message that refuses them.
//!
//! Only names that do not resemble the right one: those are found by their letters.

/// Names without `_` and in lower case, and what to do.
const NAMES: &[(&[&str], &str)] = &[
    (
        &[
            "totensor",
            "totensorv2",
            "piltotensor",
            "toimage",
            "topuretensor",
        ],
        "leave it out: batches are tensors. Values are 0 to 1 where `cast` gives floats",
    ),
    (
        &["topilimage"],
        "leave it out: no operation needs a Pillow image",
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
        "use cast: {dtype: f32}",
    ),
    (
        &["rescale"],
        "leave it out: floats are 0 to 1. To change the size use resize: {size: 256}",
    ),
    (&["scale"], "use resize: {size: 256}"),
    (&["crop"], "use center_crop or random_crop"),
    (
        &["fivecrop", "tencrop"],
        "use center_crop: a sample gives one row",
    ),
    (&["flip", "hflip", "fliplr"], "use random_horizontal_flip"),
    (&["vflip", "flipud"], "use random_vertical_flip"),
    (&["blur"], "use gaussian_blur"),
    (
        &["brightness", "contrast", "saturation", "hue"],
        "use color_jitter: {brightness: 0.4, contrast: 0.4, saturation: 0.4, hue: 0.1}",
    ),
    (&["rgb", "torgb"], "use decode: {color: rgb}"),
    (&["bgr", "tobgr"], "use decode: {color: bgr}"),
    (
        &["permute", "tochw", "tochwimage", "transpose"],
        "use layout: {layout: nchw}",
    ),
    (
        &["compose", "sequential"],
        "write its operations in the list `ops`",
    ),
    (
        &["lambda"],
        "a recipe holds no code: apply it to the batches",
    ),
    (
        &["mixup", "cutmix", "fmix", "mixupcutmix", "labelsmoothing"],
        "it works on batches: write it in `mixing: ops`, beside `ops`",
    ),
    (
        &["letterbox"],
        "use resize: {max_size: 640} and pad_to: {size: 640}",
    ),
    (
        &["name", "type", "op", "transform", "class"],
        "write the operation's name in its place, such as `- resize: {size: 256}`",
    ),
];

/// What to write instead of an operation of this name.
pub(super) fn instead(name: &str) -> Option<&'static str> {
    let name = name.replace('_', "").to_lowercase();
    let (_, what) = NAMES
        .iter()
        .find(|(names, _)| names.contains(&name.as_str()))?;
    Some(what)
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
            let Some(rest) = what.strip_prefix("use ") else {
                continue;
            };
            for op in rest.split(" or ").flat_map(|part| part.split(" and ")) {
                let op = op.split(':').next().unwrap_or_default();
                assert!(served.contains(&op), "{op}: {what}");
            }
        }
    }
}
