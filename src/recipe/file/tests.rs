//! A table of mistakes, round trips, and what YAML makes difficult.

use std::collections::BTreeSet;
use std::path::Path;

use super::node::{Node, Value};
use super::{RecipeFormat, parse};
use crate::recipe::{Op, Recipe, Reorder};

#[test]
fn probe() {
    for (format, text) in [
        (RecipeFormat::Yaml, "featherload: 1\nops:\n\t- decode\n"),
        (RecipeFormat::Yaml, "featherload: 1\nops: [decode\n"),
        (
            RecipeFormat::Yaml,
            "featherload: 1\nops:\n  - normalize:\n    mean: 1\n",
        ),
        (
            RecipeFormat::Yaml,
            "featherload: 1\nops:\n  - normalise: {mean: 0}\n",
        ),
        (
            RecipeFormat::Yaml,
            "featherload: 1\nops:\n  - normalize: {mean: 0}\n",
        ),
        (
            RecipeFormat::Yaml,
            "featherload: 1\nops:\n  - resize:\n      size: 224px\n",
        ),
        (
            RecipeFormat::Yaml,
            "featherload: 1\nops:\n  - resize:\n      size: -3\n",
        ),
        (
            RecipeFormat::Yaml,
            "featherload: 1\nops:\n  - resize:\n      size: [a, 1]\n",
        ),
        (
            RecipeFormat::Yaml,
            "featherload: 1\nops:\n  - resize:\n      size: [2, 1.5]\n",
        ),
        (
            RecipeFormat::Yaml,
            "featherload: 1\nops:\n  - resize:\n      max_size: -3\n",
        ),
        (
            RecipeFormat::Yaml,
            "featherload: 1\nops:\n  - resize:\n      max_size: 3.0\n",
        ),
        (
            RecipeFormat::Yaml,
            "featherload: 1\nops:\n  - resize:\n      interpolation: bilinaer\n",
        ),
        (
            RecipeFormat::Yaml,
            "featherload: 1\nops:\n  - resize:\n      interpolation: 3\n",
        ),
        (RecipeFormat::Yaml, "featherload: 1\nops:\n  - resize: 3\n"),
        (RecipeFormat::Yaml, "featherload: 1\nops:\n  - 3\n"),
        (RecipeFormat::Yaml, "featherload: 1\nops:\n  - {}\n"),
        (RecipeFormat::Yaml, "featherload: 1\nops:\n  -\n"),
        (RecipeFormat::Yaml, "featherload: 1\nops: 3\n"),
        (RecipeFormat::Yaml, "featherload: 1\nops:\n"),
        (RecipeFormat::Yaml, "featherload: 1\n"),
        (RecipeFormat::Yaml, "featherload: 2\n"),
        (RecipeFormat::Yaml, "ops: []\n"),
        (RecipeFormat::Yaml, "- decode\n"),
        (RecipeFormat::Yaml, "# nothing\n"),
        (RecipeFormat::Yaml, "featherload: 1\nops: []\nopps: 1\n"),
        (RecipeFormat::Yaml, "featherload: 1\nops: []\nops: []\n"),
        (
            RecipeFormat::Yaml,
            "featherload: 1\nops:\n  - decode: {background: 000000}\n",
        ),
        (
            RecipeFormat::Yaml,
            "featherload: 1\nops:\n  - decode: {background: whit}\n",
        ),
        (
            RecipeFormat::Yaml,
            "featherload: 1\nops:\n  - random_rotate90: {p: 1}\n",
        ),
        (RecipeFormat::Yaml, "featherload: 1\nname: 224\nops: []\n"),
        (
            RecipeFormat::Yaml,
            "featherload: 1\nreorder: off\nops: [!python/tuple [1]]\n",
        ),
        (RecipeFormat::Yaml, "featherload: 1\n---\nops: []\n"),
        (
            RecipeFormat::Yaml,
            "featherload: 1\nreorder: yes\nops: []\n",
        ),
        (RecipeFormat::Yaml, "featherload: 1\nops: [*a]\n"),
        (RecipeFormat::Yaml, "a: &a [*a]\n"),
        (RecipeFormat::Yaml, "a: 1\n? [1]\n: 2\n"),
        (RecipeFormat::Toml, "featherload = 1\nops = [\"decode\"\n"),
        (RecipeFormat::Toml, "featherload = 1\nfeatherload = 1\n"),
        (RecipeFormat::Toml, "featherload = \n"),
        (
            RecipeFormat::Toml,
            "featherload = 1\n[[ops]]\nresize = {size = \"2\"}\n",
        ),
        (
            RecipeFormat::Toml,
            "featherload = 1\n[[ops]]\n[ops.resize]\nsizes = \"2\"\n",
        ),
        (
            RecipeFormat::Toml,
            "featherload = 1\n[[ops]]\ncast.dtype = 'f16'\n[[ops]]\n[ops.normalize]\nmean = 3\n",
        ),
        (
            RecipeFormat::Toml,
            "featherload = 1\n[[ops]]\ncast.dtype = 'f16'\nlayout.layout='nchw'\n",
        ),
        (RecipeFormat::Json, "{\"featherload\": 1,\n\"ops\": [],\n}"),
        (RecipeFormat::Json, "{\"featherload\": 1,\n\"ops\": [\n"),
        (RecipeFormat::Json, "featherload: 1"),
        (
            RecipeFormat::Json,
            "{\n\t\"featherload\": 1,\n\t\"name\": \"\\ud83d\\ude00\\/\",\n\t\"ops\": [\n\t\t\"decode\"\n\t]\n}",
        ),
        (
            RecipeFormat::Json,
            "{\n\t\"featherload\":1,\n\t\"name\":\"x\",\n\t\"ops\":[\n\t\t\"decode\"\n\t]\n}",
        ),
    ] {
        match parse(text, format, Path::new("f")) {
            Ok(r) => println!("{text:?}\n    ok {:?}", r),
            Err(e) => println!("{text:?}\n    {e}"),
        }
    }
    for f in [RecipeFormat::Yaml, RecipeFormat::Toml, RecipeFormat::Json] {
        println!("{}", Recipe::train224().to_text(f).unwrap());
    }
    let _: Option<(Op, Reorder, BTreeSet<u8>, Node, Value)> = None;
}
