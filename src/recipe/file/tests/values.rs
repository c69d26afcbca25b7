use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use super::super::node::{NodeValue, TreeNode};
use super::super::text::parse;
use super::super::{RecipeFormat, yaml};
use crate::recipe::{Op, Recipe, ReorderMode};

/// A tree without its positions, short.
fn shown(node: &TreeNode) -> String {
    let list = |parts: Vec<String>| parts.join(" ");
    match &node.value {
        NodeValue::Null => "null".into(),
        NodeValue::Bool(v) => v.to_string(),
        NodeValue::Int(v) => v.to_string(),
        NodeValue::Float(v) => format!("{v:?}"),
        NodeValue::Str(v) => format!("{v:?}"),
        NodeValue::List(items) => format!("[{}]", list(items.iter().map(shown).collect())),
        NodeValue::Map(entries) => {
            let entry = |(key, value): &(_, _)| {
                let key: &super::super::node::MapKey = key;
                format!("{}={}", key.name, shown(value))
            };
            format!("{{{}}}", list(entries.iter().map(entry).collect()))
        }
    }
}

fn yaml_as(text: &str) -> String {
    shown(&yaml::read(text).unwrap_or_else(|e| panic!("{text}: {e}")))
}

#[test]
fn scalars_of_yaml_are_those_of_its_core_schema() {
    for (text, value) in [
        ("yes", "\"yes\""),
        ("no", "\"no\""),
        ("on", "\"on\""),
        ("off", "\"off\""),
        ("y", "\"y\""),
        ("true", "true"),
        ("False", "false"),
        ("'true'", "\"true\""),
        ("~", "null"),
        ("NULL", "null"),
        ("''", "\"\""),
        ("12", "12"),
        ("-12", "-12"),
        ("+12", "12"),
        ("010", "10"),
        ("0x1F", "31"),
        ("0o17", "15"),
        ("0x", "\"0x\""),
        ("0x-1", "\"0x-1\""),
        ("\"12\"", "\"12\""),
        ("'1.5'", "\"1.5\""),
        ("1_000", "\"1_000\""),
        ("12:30", "\"12:30\""),
        (
            "170141183460469231731687303715884105728",
            "1.7014118346046923e38",
        ),
        ("1e-3", "0.001"),
        ("1E+3", "1000.0"),
        ("-1.5", "-1.5"),
        (".5", "0.5"),
        ("5.", "5.0"),
        ("1e", "\"1e\""),
        ("1.2.3", "\"1.2.3\""),
        (".", "\".\""),
        ("-", "[null]"),
        (".inf", "inf"),
        ("-.INF", "-inf"),
        (".nan", "NaN"),
        ("inf", "\"inf\""),
        ("nan", "\"nan\""),
        ("infinity", "\"infinity\""),
        ("!!str 12", "\"12\""),
        ("!!float 12", "12.0"),
        ("! 12", "\"12\""),
        ("|\n  12\n", "\"12\\n\""),
        ("{a: , b: }", "{a=null b=null}"),
        ("1: a\n2: b\n", "{1=\"a\" 2=\"b\"}"),
    ] {
        assert_eq!(yaml_as(text), value, "{text}");
    }
}

#[test]
fn aliases_and_merges_are_resolved() {
    let text = "\
a: &a {x: 1, y: [1, 2]}
b: &b {y: 3, z: 4}
c: *a
d: {<<: *a, x: 9}
e:
  <<: [*a, *b]
  z: &n 5
f: *n
g: {\"<<\": 1}
";
    assert_eq!(
        yaml_as(text),
        "{a={x=1 y=[1 2]} b={y=3 z=4} c={x=1 y=[1 2]} d={x=9 y=[1 2]} e={z=5 x=1 y=[1 2]} f=5 \
         g={<<=1}}"
    );
    // A value from an alias has the position where it was written.
    let tree = yaml::read(text).unwrap();
    assert_eq!(tree.get("c").unwrap().at.line, 1);
    assert_eq!(tree.get("f").unwrap().at.line, 7);
    assert!(yaml::read("a: &a {}\nb: {<<: *a, <<: *a}\n").is_err());
}

#[test]
fn what_repeats_or_nests_too_much_is_refused() {
    let mut laughs = String::from("a0: &a0 [ha, ha, ha, ha, ha, ha, ha, ha, ha, ha]\n");
    for i in 1..30 {
        let last = format!("*a{}, ", i - 1).repeat(10);
        writeln!(laughs, "a{i}: &a{i} [{last}]").unwrap();
    }
    let said = yaml::read(&laughs).unwrap_err().to_string();
    assert!(said.starts_with("more than 100000 values"), "{said}");

    let merges = laughs.replace('[', "{<<: [").replace(']', "]}");
    assert!(yaml::read(&merges).is_err());

    // Few values, but long ones.
    for long in ["b", "{b: 1}", "[b]"] {
        let long = long.replace('b', &"b".repeat(1000));
        let text = format!("a: &a {long}\nc: [{}]\n", "*a, ".repeat(20_000));
        assert!(yaml::read(&text).is_err());
    }

    // Depth that only aliases create.
    let mut deep = String::from("a0: &a0 [1]\n");
    for i in 1..200 {
        writeln!(deep, "a{i}: &a{i} [*a{}]", i - 1).unwrap();
    }
    let said = yaml::read(&deep).unwrap_err();
    assert_eq!(said.to_string(), "nested deeper than 64 levels: use fewer");

    for (format, open, close) in [
        (RecipeFormat::Yaml, "a: ", ""),
        (RecipeFormat::Json, "{\"a\": ", "}"),
        (RecipeFormat::Toml, "a = ", ""),
    ] {
        for (levels, fits) in [(60, true), (70, false), (100_000, false)] {
            let text = format!("{open}{}{}{close}", "[".repeat(levels), "]".repeat(levels));
            assert_eq!(format.tree(&text).is_ok(), fits, "{format:?} {levels}");
        }
    }
    for levels in [70, 400] {
        let mut text = String::new();
        for i in 0..levels {
            writeln!(text, "{}a:", " ".repeat(i)).unwrap();
        }
        assert!(yaml::read(&text).is_err());
    }
    let many = "1,".repeat(100_001);
    assert!(RecipeFormat::Toml.tree(&format!("a = [{many}]")).is_err());
    assert!(yaml::read(&format!("[{many}]")).is_err());
}

#[test]
fn the_three_languages_say_the_same() {
    let yaml = "
featherload: 1
reorder: off
ops:
  - decode
  - random_horizontal_flip:
  - resize: {size: [2, 3]}
  - &layout
    layout: {layout: nhwc}
";
    let toml = "
featherload = 1
reorder = 'off'
ops = ['decode', {random_horizontal_flip = {}}, {resize.size = [2, 3]},
  {layout = {layout = 'nhwc'}}]
";
    let tables = "
featherload = 1
reorder = 'off'
[[ops]]
decode = {}
[[ops]]
[ops.random_horizontal_flip]
[[ops]]
resize.size = [
  2, 3,
]
[[ops]]
[ops.layout]
layout = 'nhwc'
";
    let json = "{\"featherload\": 1, \"reorder\": \"off\",
        \"ops\": [\"decode\", {\"random_horizontal_flip\": null},
        {\"resize\": {\"size\": [2, 3]}},
\t\t{\"layout\": {\"layout\": \"nhwc\"}}]}";
    let mut recipes = Vec::new();
    for (format, text, lines) in [
        (RecipeFormat::Yaml, yaml, [5, 6, 7, 9]),
        (RecipeFormat::Toml, toml, [4, 4, 4, 5]),
        (RecipeFormat::Toml, tables, [4, 6, 8, 12]),
        (RecipeFormat::Json, json, [2, 2, 3, 4]),
    ] {
        let located = parse(text, format, Path::new("some/mine.txt")).unwrap();
        assert_eq!(located.lines, lines, "{text}");
        recipes.push(located.recipe);
    }
    let expected = Recipe::new("mine")
        .then(crate::recipe::Decode::default())
        .then(crate::recipe::RandomHorizontalFlip::default())
        .then(crate::recipe::Resize::exact(2, 3))
        .with_layout(crate::recipe::MemoryLayout::Nhwc)
        .with_reorder(ReorderMode::Off);
    for recipe in recipes {
        assert_eq!(recipe, expected);
    }
}

#[test]
fn numbers_that_are_not_finite_are_read() {
    for (format, text) in [
        (
            RecipeFormat::Yaml,
            "featherload: 1\nops: [normalize: {mean: .nan, std: -.inf}]",
        ),
        (
            RecipeFormat::Toml,
            "featherload = 1\nops = [{normalize = {mean = nan, std = -inf}}]",
        ),
    ] {
        let recipe = parse(text, format, Path::new("f")).unwrap().recipe;
        let [Op::Normalize(n)] = &recipe.ops[..] else {
            panic!("{recipe:?}");
        };
        assert!(n.mean.0.iter().all(|v| v.is_nan()));
        assert_eq!(n.std.0, [f32::NEG_INFINITY; 3]);
    }
}

/// Configs of another project: the tree is not only for recipes.
#[test]
fn every_configuration_of_paddleclas_is_read() {
    let said = std::env::var_os("FEATHERLOAD_DATA");
    let root = said.as_ref().map_or("../shared/data".as_ref(), Path::new);
    let folder = root.join("paddleclas");
    if !folder.is_dir() {
        // Not by `eprintln`, which the harness catches.
        writeln!(
            std::io::stderr(),
            "SKIP: no {} (FEATHERLOAD_DATA names the folder that holds paddleclas)",
            folder.display()
        )
        .unwrap();
        return;
    }
    let mut folders = vec![folder.clone()];
    let mut files: Vec<PathBuf> = Vec::new();
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            match path.extension() {
                _ if path.is_dir() => folders.push(path),
                Some(e) if e == "yaml" => files.push(path),
                _ => {}
            }
        }
    }
    assert!(files.len() > 100, "{} files only", files.len());
    for file in &files {
        let text = std::fs::read_to_string(file).unwrap();
        let tree = yaml::read(&text).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        let last = text.lines().count();
        within(&tree, last);
        assert!(matches!(&tree.value, NodeValue::Map(m) if !m.is_empty()));
    }
    let text = std::fs::read_to_string(folder.join("ImageNet/ResNet/ResNet50.yaml")).unwrap();
    let tree = yaml::read(&text).unwrap();
    let train = tree.get("DataLoader").and_then(|n| n.get("Train"));
    let ops = train.and_then(|n| n.get("dataset")?.get("transform_ops"));
    let normalize = ops
        .unwrap()
        .items()
        .iter()
        .find_map(|op| op.get("NormalizeImage"));
    let normalize = normalize.unwrap();
    // PaddleClas evaluates this text. Here it stays text.
    assert_eq!(shown(normalize.get("scale").unwrap()), "\"1.0/255.0\"");
    assert_eq!(shown(normalize.get("mean").unwrap()), "[0.485 0.456 0.406]");
    let line = normalize.get("mean").unwrap().at.line;
    assert!(text.lines().nth(line - 1).unwrap().contains("mean: ["));
}

fn within(node: &TreeNode, last: usize) {
    assert!((1..=last).contains(&node.at.line) && node.at.column > 0);
    match &node.value {
        NodeValue::List(items) => items.iter().for_each(|item| within(item, last)),
        NodeValue::Map(entries) => entries.iter().for_each(|(_, value)| within(value, last)),
        _ => {}
    }
}
