//! Mistakes in recipe files, with the whole line that is printed.

use std::fs;

use crate::recipe::Recipe;

/// The text after `featherload: 1` and `ops:`, and the message after the file's name.
const OPS: &[(&str, &str)] = &[
    (
        "  - random_resized_crop: {size: 224}\n  - to_tensor\n",
        "4: op 'to_tensor' is not needed: batches are tensors, and floats are 0 to 1. Remove it",
    ),
    (
        "  - ToTensor: {}\n",
        "3: op 'ToTensor' is not needed: batches are tensors, and floats are 0 to 1. Remove it",
    ),
    (
        "  - random_resized_crop: {size: 224}\n  - mixup: {alpha: 0.2}\n",
        "4: op 'mixup' works on batches: write it in `mixing: ops`, beside `ops`",
    ),
    (
        "  - random_resize_crop: {size: 224}\n",
        "3: op 'random_resize_crop' is unknown: did you mean 'random_resized_crop'?",
    ),
    (
        "  - decode\n  - solarize: {threshold: 128}\n",
        "4: op 'solarize' is unknown: did you mean 'random_solarize'?",
    ),
    (
        "  - hflip\n",
        "3: op 'hflip' is unknown: use random_horizontal_flip",
    ),
    (
        "  - center_crop: {size: \"224\"}\n",
        "3: size: expected a number of pixels or [height, width], found the text '224': remove \
         the quotes",
    ),
    (
        "  - resize: {size: 256, max_size: \"512\"}\n",
        "3: max_size: expected a whole number from 0 to 4294967295, found the text '512': remove \
         the quotes",
    ),
    (
        "  - center_crop: {size: 224px}\n",
        "3: size: expected a number of pixels or [height, width], found the text '224px': write \
         224 without a unit",
    ),
    (
        "  - normalize: {mean: 0, std: 1/255}\n",
        "3: std: expected a number or a list of 1 or 3 numbers, found the text '1/255': nothing \
         is computed here, write 0.003922",
    ),
    (
        "  - resize: {size: 256, antialias: yes}\n",
        "3: antialias: expected true or false, found the text 'yes': write true",
    ),
    (
        "  - decode\n  - resize: {size: [60000, 60000]}\n",
        "4: resize: one sample of 60000 x 60000 pixels in f32 takes 40.3 GiB, and the limit is 4 \
         GiB: use a smaller size",
    ),
    (
        "  - random_resized_crop: {size: 60000}\n  - cast: {dtype: u8}\n",
        "3: random_resized_crop: one sample of 60000 x 60000 pixels in u8 takes 10.1 GiB, and the \
         limit is 4 GiB: use a smaller size",
    ),
    (
        "  - random_resized_crop: {size: 70000}\n",
        "3: random_resized_crop: size is 70000: use 1 to 65535",
    ),
    (
        "  - center_crop: {size: 0}\n",
        "3: center_crop: size is 0: use 1 to 65535",
    ),
    (
        "  - random_horizontal_flip: {p: 50}\n",
        "3: random_horizontal_flip: p is 50: use 0 to 1",
    ),
    (
        "  - normalize: {mean: 0.5, std: 0}\n",
        "3: normalize: std is [0.0, 0.0, 0.0]: use values other than 0",
    ),
    (
        "  - normalize: {mean: 0.5, sdt: 0.5}\n",
        "3: normalize has no parameter 'sdt': did you mean 'std'?",
    ),
    (
        "  - random_resized_crop\n",
        "3: random_resized_crop: 'size' is missing, and it has no default: write it",
    ),
    (
        "  - resize: 256\n",
        "3: resize: expected parameters (name: value), found the number 256: write {size: 256}",
    ),
    (
        "  - resize:\n    size: 256\n",
        "4: ops: 'size' is next to 'resize': an item of the list holds one operation. Indent \
         'size' deeper if it is a parameter of resize, or begin a new item with '-'",
    ),
    (
        "  - name: resize\n    size: 256\n",
        "4: ops: 'size' is next to 'name': write the operation's name as the key, `- resize: \
         {size: ...}`",
    ),
    (
        "  decode: {}\n  resize: {size: 256}\n",
        "3: ops: expected a list, found parameters: make each one an item (in YAML begin it with \
         '-')",
    ),
    (
        "  - cast: {dtype: float32}\n",
        "3: dtype: 'float32' is unknown: did you mean 'f32'?",
    ),
    (
        "  - decode\n  - resize: {size: 256}\n",
        "4: resize leaves images of different sizes, and the rows of a batch need one: add \
         center_crop, random_crop or a resize to [height, width] after it, or remove it to keep \
         whole images",
    ),
    (
        "  - center_crop: {size: 224}\n  - normalize: {mean: 0.5, std: 0.5}\n  - cast: {dtype: u8}\n",
        "5: cast: u8 holds levels, and the pixels are normalized: remove normalize, or cast to \
         one of f16, bf16, f32",
    ),
    (
        "  - normalize: {mean: 0.5, std: 0.5}\n  - color_jitter: {brightness: 0.4}\n",
        "4: color_jitter: changes colours of rgb levels, and comes after normalize: move it \
         before normalize",
    ),
    (
        "  - resize: {size: [8, 8]}\n  - decode\n",
        "4: decode: must be the first operation, and only once: move it to the top",
    ),
];

/// The whole file.
const FILES: &[(&str, &str)] = &[
    (
        "featherload: 1\nops: []\n",
        "2: ops is an empty list: write operations, or use the recipe 'full' for whole images",
    ),
    (
        "featherload: 1\nops:\n",
        "2: ops: expected a list, found nothing: write its items (in YAML begin each with '-')",
    ),
    (
        "ops:\n  - decode\n",
        "1: 'featherload: 1' is missing: write it as the first line",
    ),
    (
        "featherload: \"1\"\nops:\n  - decode\n",
        "1: featherload: expected the format's version 1, found the text '1': remove the quotes",
    ),
    (
        "featherload: 1\ntransforms:\n  - decode\n",
        "2: a recipe file has no parameter 'transforms': choose from featherload, name, reorder, \
         ops, mixing, crops",
    ),
];

#[test]
fn mistakes_are_answered_with_the_line_and_the_fix() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.yaml");
    let ops = OPS
        .iter()
        .map(|(ops, says)| (format!("featherload: 1\nops:\n{ops}"), says));
    let files = FILES.iter().map(|(text, says)| ((*text).to_owned(), says));
    let mut wrong = Vec::new();
    for (text, says) in ops.chain(files) {
        fs::write(&path, &text).unwrap();
        let error = Recipe::from_file(&path).expect_err(&text);
        let said = error.to_string();
        if said != format!("{}:{says}", path.display()) {
            wrong.push(format!("{text}\nsays {said}\nnot  {says}\n"));
        }
        assert!(error.is_dataset() && error.line().is_some(), "{said}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn an_unknown_operation_names_the_list_of_all() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.yaml");
    fs::write(&path, "featherload: 1\nops:\n  - defog\n").unwrap();
    let all = crate::recipe::operations().len();
    assert_eq!(
        Recipe::from_file(&path).unwrap_err().to_string(),
        format!(
            "{}:3: op 'defog' is unknown: `featherload ops` lists all {all}",
            path.display()
        )
    );
}

#[test]
fn what_a_program_writes_may_be_empty_or_large() {
    use crate::recipe::{RecipeFormat, Resize};
    for recipe in [
        Recipe::new("empty"),
        Recipe::new("large").then(Resize::exact(60_000, 60_000)),
    ] {
        let text = recipe.to_text(RecipeFormat::Yaml).unwrap();
        let read = Recipe::from_text(&text, RecipeFormat::Yaml, "a.yaml").unwrap();
        assert_eq!(read, recipe);
    }
}
