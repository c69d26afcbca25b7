//! Mistakes in recipes, as a user meets them: exit code 2, nothing on stdout,
//! and one line that names the file, the line of the operation, and what to
//! write instead.

use std::fs;
use std::path::Path;

use crate::common::command::{featherload, refusal};

/// What `plan --recipe RECIPE` says about a recipe that it refuses.
#[track_caller]
fn refusal_of(recipe: &str) -> String {
    refusal(&featherload(&["plan", "--recipe", recipe]))
}

/// `text` in a file of this name is refused, at `line` and with these words; at
/// no line where that is 0.
#[track_caller]
fn refused(dir: &Path, name: &str, text: &str, line: usize, words: &[&str]) {
    let file = dir.join(name);
    fs::write(&file, text).unwrap();
    let path = file.to_str().unwrap();
    let message = refusal_of(path);
    let place = match line {
        0 => format!("{path}: "),
        n => format!("{path}:{n}: "),
    };
    for word in [&[place.as_str()], words].concat() {
        assert!(message.contains(word), "{text}\nlacks '{word}': {message}");
    }
}

/// Operations as YAML, the first of them on line 3.
fn yaml(ops: &str) -> String {
    format!("featherload: 1\nops:\n{ops}\n")
}

#[test]
fn mistakes_in_operations_name_the_line_and_the_fix() {
    let dir = tempfile::tempdir().unwrap();
    let cases: &[(&str, usize, &[&str])] = &[
        (
            "  - decode\n  - center_corp: {size: 224}",
            4,
            &["'center_corp'", "did you mean 'center_crop'?"],
        ),
        (
            "  - decode\n  - mixup: {alpha: 1}",
            4,
            &["'mixup'", "works on batches", "`mixing: ops`"],
        ),
        (
            "  - resize:\n      sise: 224",
            4,
            &["'sise'", "resize", "did you mean 'size'?"],
        ),
        (
            "  - random_horizontal_flip: {prob: 0.5}",
            3,
            &["'prob'", "random_horizontal_flip", "choose from p"],
        ),
        (
            "  - random_rotate90: {p: 0.5}",
            3,
            &["'p'", "random_rotate90", "choose from label"],
        ),
        (
            "  - resize: {size: 224px}",
            3,
            &["size", "expected a number of pixels", "'224px'"],
        ),
        (
            "  - resize: {size: 224, antialias: 1}",
            3,
            &["antialias", "true or false", "the number 1"],
        ),
        (
            "  - random_horizontal_flip: {p: half}",
            3,
            &["p", "expected a number", "'half'"],
        ),
        (
            "  - resize: {size: 224, interpolation: bilinaer}",
            3,
            &["interpolation", "'bilinaer'", "did you mean 'bilinear'?"],
        ),
        (
            "  - decode\n\n  - center_crop: {size: -224}",
            5,
            &["size", "expected a number of pixels", "-224"],
        ),
        (
            "  - center_crop: {size: 0}",
            3,
            &["center_crop", "size is 0", "use 1 to 65535"],
        ),
        (
            "  - center_crop: {}",
            3,
            &["center_crop", "needs a size or a ratio"],
        ),
        (
            "  - decode\n  - center_crop: {size: 224, ratio: 0.875}",
            4,
            &[
                "center_crop",
                "size 224 x 224 and ratio 0.875",
                "remove one",
            ],
        ),
        (
            "  - center_crop: {ratio: 1.5}",
            3,
            &["center_crop", "ratio is 1.5", "more than 0, at most 1"],
        ),
        (
            "  - decode\n  - center_crop: {ratio: 0.5}",
            4,
            &["center_crop", "different sizes", "[height, width]"],
        ),
        (
            "  - resize: {size: [100, 300]}\n  - center_crop: {ratio: 0.5}\n  - random_crop: \
             {size: 51}",
            5,
            &["random_crop", "51 x 51 is larger", "50 x 50 here"],
        ),
        (
            "  - pad_to: {fill: 9}",
            3,
            &["pad_to", "needs a size, a min_size or a multiple_of"],
        ),
        (
            "  - pad_to: {size: 9, multiple_of: 3}",
            3,
            &["pad_to", "size 9 x 9 and multiple_of 3 x 3", "remove one"],
        ),
        (
            "  - pad_to: {multiple_of: [32, 0]}",
            3,
            &["multiple_of is 0", "use 1 to 65535"],
        ),
        (
            "  - pad_to: {size: 9, anchor: middle}",
            3,
            &["anchor", "'middle'", "top_left, center, bottom_right"],
        ),
        (
            "  - pad_to: {size: 9, anchor: center, offset: [1, 2]}",
            3,
            &["pad_to", "offset counts from the top left"],
        ),
        (
            "  - resize: {size: 64}\n  - pad_to: {size: [80, 60]}",
            4,
            &["pad_to", "60 x 80 has no room", "at least 64 x 64"],
        ),
        (
            "  - resize: {size: [64, 50]}\n  - pad_to: {size: 64, offset: [15, 0]}",
            4,
            &["pad_to", "offset leaves no room", "50 x 64"],
        ),
        (
            "  - resize: {size: [64, 65535]}\n  - pad_to: {multiple_of: 32}",
            4,
            &["pad_to", "65536 x 64", "smaller multiple_of"],
        ),
        (
            "  - decode\n  - pad_to: {multiple_of: 32}",
            4,
            &["pad_to", "different sizes", "[height, width]"],
        ),
        (
            "  - crop_with_padding: {scale: [0, 1]}",
            3,
            &["crop_with_padding", "scale is 0 to 1", "above 0"],
        ),
        (
            "  - crop_with_padding: {p: 2}",
            3,
            &["crop_with_padding", "p is 2"],
        ),
        (
            "  - random_crop: {}",
            3,
            &["random_crop", "'size' is missing"],
        ),
        (
            "  - resize: {size: 128}\n  - center_crop: {size: 224, pad_if_needed: false}",
            4,
            &[
                "center_crop",
                "224 x 224 is larger",
                "128 here",
                "put a resize before it",
            ],
        ),
        (
            "  - resize: {size: [300, 128]}\n  - random_crop: {size: 224}",
            4,
            &[
                "random_crop",
                "128 x 300 here",
                "a resize or a pad before it",
            ],
        ),
        (
            "  - normalize: {mean: .nan, std: 1}",
            3,
            &["normalize", "mean holds NaN", "use finite"],
        ),
        (
            "  - normalize: {mean: 0, std: [1, 0, 1]}",
            3,
            &[
                "normalize",
                "std is [1.0, 0.0, 1.0]",
                "use values other than 0",
            ],
        ),
        (
            "  - normalize: {mean: [0.5, 0.5], std: 1}",
            3,
            &["mean", "1 or 3 numbers", "[0.5, 0.5]"],
        ),
        (
            "  - normalize: {mean: 0, std: 1}\n  - cast: {dtype: f32}\n  - normalize: {mean: 0, \
             std: 1}",
            5,
            &["normalize", "written twice", "remove one"],
        ),
        (
            "  - resize: {size: [64, 64]}\n  - normalize: {mean: 0, std: 1}\n  - cast: {dtype: u8}",
            5,
            &[
                "cast",
                "normalized",
                "remove normalize",
                "one of f16, bf16, f32",
            ],
        ),
        (
            "  - convert_color: {to: lab}\n  - cast: {dtype: u8}",
            4,
            &["cast", "u8 cannot hold lab", "one of f16, bf16, f32"],
        ),
        (
            "  - cast: {dtype: int8}",
            3,
            &["dtype", "'int8'", "u8, f16, bf16, f32"],
        ),
        (
            "  - normalize: {mean: 0, std: 1}\n  - color_jitter: {brightness: 0.4}",
            4,
            &["color_jitter", "after normalize", "move it before"],
        ),
        (
            "  - convert_color: {to: hsv}\n  - random_grayscale: {p: 0.1}",
            4,
            &["random_grayscale", "after convert_color", "move it before"],
        ),
        (
            "  - resize: {size: [64, 64]}\n  - decode: {color: bgr}",
            4,
            &["decode", "first operation", "move it to the top"],
        ),
        (
            "  - decode\n  - resize",
            4,
            &["resize", "needs a size or a max_size", "size: 256"],
        ),
        (
            "  - resize: {size: [64, 64], max_size: 70}",
            3,
            &["resize", "64 x 64", "max_size 70", "remove it"],
        ),
        (
            "  - resize: {size: 256, max_size: 256}",
            3,
            &["max_size is 256", "more than size 256"],
        ),
        (
            "  - decode\n  - resize: {size: 256}\n  - cast: {dtype: u8}",
            4,
            &[
                "resize",
                "different sizes",
                "center_crop",
                "[height, width]",
            ],
        ),
        (
            "  - random_resized_crop: {size: 224, scale: [0.08, 1.5]}",
            3,
            &["scale is 0.08 to 1.5", "above 0, at most 1"],
        ),
        (
            "  - random_resized_crop: {size: 224, scale: [0.8, 0.2]}",
            3,
            &["scale is 0.8 to 0.2", "the lower first"],
        ),
        (
            "  - random_resized_crop: {size: 224, ratio: [0, 1]}",
            3,
            &["ratio is 0 to 1", "above 0"],
        ),
        (
            "  - bounded_resized_crop: {size: 224, scale: [0.08, 1.5]}",
            3,
            &["bounded_resized_crop", "scale is 0.08 to 1.5"],
        ),
        (
            "  - bounded_resized_crop: {size: 224, ratio: [-1, 1]}",
            3,
            &["ratio is -1 to 1", "above 0"],
        ),
        (
            "  - bounded_resized_crop: {size: 224, aspect: sqrt}",
            3,
            &["aspect", "'sqrt'", "log", "uniform"],
        ),
        (
            "  - resize: {size: [224, 224], rounding: nearest}",
            3,
            &["224 x 224 sets both sides", "rounding", "remove it"],
        ),
        (
            "  - random_erasing: {attempts: 0}",
            3,
            &["attempts is 0", "use 1 to 1000"],
        ),
        (
            "  - random_erasing: {attempts: 1001}",
            3,
            &["attempts is 1001", "use 1 to 1000"],
        ),
        (
            "  - random_erasing: {p: 1.5}",
            3,
            &["p is 1.5", "use 0 to 1"],
        ),
        (
            "  - color_jitter: {brightness: -0.4}",
            3,
            &["brightness", "-0.4", "0 to 1000"],
        ),
        (
            "  - color_jitter: {hue: 0.7}",
            3,
            &["hue is -0.7 to 0.7", "-0.5 to 0.5"],
        ),
        (
            "  - gaussian_blur: {kernel_size: 4}",
            3,
            &["gaussian_blur", "kernel_size is 4 x 4", "odd"],
        ),
        (
            "  - gaussian_blur: {kernel_size: 3, sigma: [0, 1]}",
            3,
            &["sigma is 0 to 1", "above 0"],
        ),
        (
            "  - random_rotation: {degrees: 30, interpolation: bicubic}",
            3,
            &["interpolation is bicubic", "nearest or bilinear"],
        ),
        (
            "  - random_rotation: {degrees: 30, p: 1.5}",
            3,
            &["p is 1.5", "use 0 to 1"],
        ),
        (
            "  - random_rotation: {degrees: 30, style: opencv, expand: true}",
            3,
            &["expand is true", "style: opencv"],
        ),
        (
            "  - random_rotation: {degrees: 30, style: opencv, interpolation: area}",
            3,
            &["interpolation is area", "bicubic with style: opencv"],
        ),
        (
            "  - cast: {dtype: f32}\n  - random_rotation: {degrees: 30, style: opencv}",
            4,
            &["style: opencv works on levels in u8", "move it before"],
        ),
        (
            "  - resize: {size: [8, 8]}\n  - random_rotate90: {label: true}\n  - random_rotate90: \
             {label: true}",
            5,
            &["random_rotate90: label is true", "remove one"],
        ),
        (
            "  - pca_lighting: {std: -1}",
            3,
            &["pca_lighting: std is -1", "use 0 to 1000"],
        ),
        (
            "  - pca_lighting: {unit: 0}",
            3,
            &["unit is 0", "more than 0", "1 for those of levels"],
        ),
        (
            "  - pca_lighting: {eigenvalues: [1, 2, 1e6]}",
            3,
            &["eigenvalues hold 1000000", "-1000 to 1000"],
        ),
        (
            "  - decode: {color: grey}\n  - pca_lighting",
            4,
            &["pca_lighting: needs three channels"],
        ),
        (
            "  - normalize: {mean: 0, std: 1}\n  - pca_lighting",
            4,
            &["pca_lighting: adds to levels", "move it before"],
        ),
        (
            "  - grayscale: {num_output_channels: 2}",
            3,
            &["num_output_channels is 2", "1 or 3"],
        ),
        (
            "  - decode: {color: grey}\n  - convert_color: {to: lab}",
            4,
            &["convert_color", "three channels", "grey"],
        ),
        (
            "  - decode: {background: whit}",
            3,
            &["background", "'whit'", "six hexadecimal digits"],
        ),
        (
            "  - decode: {mode: scaled}\n  - cast: {dtype: u8}",
            3,
            &["decode", "no resize", "mode: full"],
        ),
        (
            "  - convert_color: {to: lab}\n  - random_erasing: {value: random}",
            4,
            &["random_erasing", "lab", "use a number"],
        ),
    ];
    for (ops, line, words) in cases {
        refused(dir.path(), "my recipe.yaml", &yaml(ops), *line, words);
    }
}

/// What a text says is at its own line; an operation that cannot work is at the
/// line where it begins: in TOML that of its `[[ops]]`.
#[test]
fn toml_and_json_name_their_own_lines() {
    let dir = tempfile::tempdir().unwrap();
    let cases: [(&str, usize, &str, usize, &[&str]); 6] = [
        (
            "[[ops]]\ndecode = {}\n\n[[ops]]\ncenter_corp = {size = 224}",
            6,
            "{\"decode\": {}},\n{\"center_corp\": {\"size\": 224}}",
            3,
            &["'center_corp'", "did you mean 'center_crop'?"],
        ),
        (
            "[[ops]]\n[ops.resize]\nsise = 224",
            4,
            "{\"resize\": {\n\"sise\": 224}}",
            3,
            &["'sise'", "did you mean 'size'?"],
        ),
        (
            "[[ops]]\nresize = {size = \"224px\"}",
            3,
            "{\"resize\": {\"size\": \"224px\"}}",
            2,
            &["size", "expected a number of pixels", "'224px'"],
        ),
        (
            "[[ops]]\nresize = {size = 128}\n[[ops]]\ncenter_crop = {size = 224, pad_if_needed = false}",
            4,
            "{\"resize\": {\"size\": 128}},\n{\"center_crop\": {\"size\": 224, \"pad_if_needed\": false}}",
            3,
            &["224 x 224 is larger", "128 here", "put a resize before it"],
        ),
        (
            "[[ops]]\nnormalize = {mean = 0, std = 1}\n[[ops]]\ncolor_jitter = {brightness = 0.4}",
            4,
            "{\"normalize\": {\"mean\": 0, \"std\": 1}},\n\n{\"color_jitter\": {\"brightness\": \
             0.4}}",
            4,
            &["color_jitter", "after normalize", "move it before"],
        ),
        (
            "[[ops]]\ngaussian_blur = {kernel_size = 4}",
            2,
            "{\"gaussian_blur\": {\"kernel_size\": 4}}",
            2,
            &["kernel_size is 4 x 4", "odd"],
        ),
    ];
    for (toml, toml_line, json, json_line, words) in cases {
        let text = format!("featherload = 1\n{toml}\n");
        refused(dir.path(), "r.toml", &text, toml_line, words);
        let text = format!("{{\"featherload\": 1, \"ops\": [\n{json}\n]}}\n");
        refused(dir.path(), "r.json", &text, json_line, words);
    }
    let text = "featherload = 1\n[[ops]]\nnormalize = {mean = nan, std = 1}\n";
    refused(dir.path(), "r.toml", text, 2, &["mean holds NaN"]);
}

#[test]
fn texts_that_are_no_recipe_name_their_line() {
    let dir = tempfile::tempdir().unwrap();
    let cases: &[(&str, &str, usize, &[&str])] = &[
        (
            "r.yaml",
            "featherload: 1\nops: [decode\n",
            2,
            &["not YAML", "unclosed bracket"],
        ),
        ("r.yaml", "featherload: 1\nops:\n\t- decode\n", 3, &["tab"]),
        ("r.yaml", "", 0, &["is empty", "featherload: 1", "'ops'"]),
        ("r.yaml", " \n\n", 0, &["is empty"]),
        ("r.json", "", 0, &["is empty"]),
        ("r.toml", "", 0, &["is empty"]),
        ("r.yaml", "ops: []\n", 1, &["'featherload: 1' is missing"]),
        (
            "r.yaml",
            "featherload: 2\nops: []\n",
            1,
            &["version 1", "the number 2"],
        ),
        ("r.yaml", "featherload: 1\n", 1, &["'ops' is missing"]),
        (
            "r.yaml",
            "featherload: 1\nreoder: exact\nops: []\n",
            2,
            &["'reoder'", "did you mean 'reorder'?"],
        ),
        (
            "r.yaml",
            "featherload: 1\nreorder: quick\nops: []\n",
            2,
            &["'quick'", "off, exact, fast"],
        ),
        ("r.yaml", "- decode\n", 1, &["featherload: 1"]),
        ("r.toml", "featherload = 1\nops = [\n", 2, &[]),
        ("r.json", "{\"featherload\": 1,\n\"ops\": [],\n}", 3, &[]),
        (
            "r.yml2",
            "featherload: 1\n",
            0,
            &[".yaml", ".toml", ".json"],
        ),
        (
            "recipe",
            "featherload: 1\n",
            0,
            &[".yaml", ".toml", ".json"],
        ),
    ];
    for (name, text, line, words) in cases {
        refused(dir.path(), name, text, *line, words);
    }
    fs::write(dir.path().join("b.yaml"), b"featherload: 1\n\xff\n").unwrap();
    let path = dir.path().join("b.yaml");
    let message = refusal_of(path.to_str().unwrap());
    assert!(message.contains("b.yaml:2: is not UTF-8"), "{message}");
}

#[test]
fn names_of_nothing_list_what_there_is() {
    for (recipe, words) in [
        (
            "/nowhere/at/all.yaml",
            &["/nowhere/at/all.yaml", "no such file"][..],
        ),
        ("nowhere.toml", &["nowhere.toml", "no such file"]),
        (
            "train225",
            &[
                "'train225'",
                "train224",
                "eval224",
                "full",
                "did you mean 'train224'?",
            ],
        ),
        (
            "imagenet",
            &[
                "'imagenet'",
                "train224, eval224, full",
                ".yaml, .toml or .json",
            ],
        ),
    ] {
        let message = refusal_of(recipe);
        for word in words {
            assert!(message.contains(word), "{recipe} lacks '{word}': {message}");
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("a.yaml");
    fs::create_dir(&folder).unwrap();
    let message = refusal_of(folder.to_str().unwrap());
    assert!(
        message.contains("a.yaml: is not a regular file: give a recipe file"),
        "{message}"
    );
}
