//! Reads and writes recipes as texts and files.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

use serde::{Deserialize, Deserializer, Serialize};

use super::de;
use super::format::RecipeFormat;
use super::mistake::{TextMistake, nearest};
use super::node::{NodeValue, TreeNode};
use super::{toml, write};
use crate::error::{self, Error, Result};
use crate::recipe::mixing::Mixing;
use crate::recipe::op::Op;
use crate::recipe::operation::Operation;
use crate::recipe::program::SampleProgram;
use crate::recipe::recipe_spec::{Recipe, RecipeCrop, ReorderMode};
use crate::recipe::row_extent::RowExtent;
use crate::recipe::suggestion::suggest_fix;

/// The version of the format that is read and written.
const VERSION: u32 = 1;
/// The largest recipe file, bytes.
const MAX_BYTES: u64 = 1 << 20;
/// The maximum bytes of a row that a file may request: 18,000 x 18,000 pixels in `f32`.
const MAX_ROW_BYTES: u64 = 4 << 30;

/// The structure of a recipe file for reading. New sections become fields.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RecipeFile {
    /// Checked before the rest, since another version may have other fields.
    #[serde(rename = "featherload")]
    _version: u32,
    name: Option<String>,
    reorder: Option<ReorderMode>,
    /// Missing only beside `crops`.
    #[serde(default, deserialize_with = "given_list")]
    ops: Option<Vec<Op>>,
    mixing: Option<Mixing>,
    #[serde(default, deserialize_with = "given_list")]
    crops: Option<Vec<RecipeCrop>>,
}

/// A list that may be missing, but not empty of a value.
fn given_list<'de, T, D>(list: D) -> std::result::Result<Option<Vec<T>>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    Vec::deserialize(list).map(Some)
}

/// The structure of a recipe file for writing.
#[derive(Serialize)]
struct WrittenFile<'a> {
    featherload: u32,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reorder: Option<ReorderMode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ops: Option<&'a [Op]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mixing: Option<&'a Mixing>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    crops: &'a [RecipeCrop],
}

/// A recipe with the lines of its operations.
#[derive(Debug)]
pub(super) struct LocatedRecipe {
    pub(super) recipe: Recipe,
    /// Lines of the operations, of `mixing`, and of its operations, from 1. With crops: of the
    /// operations of each.
    pub(super) lines: Vec<u64>,
    /// Line of the list of operations.
    ops: u64,
}

impl Recipe {
    /// Reads a recipe from a file. Its extension selects the language.
    ///
    /// # Errors
    /// One line with the file, the line, what is wrong and the fix.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let format = RecipeFormat::of(path)?;
        let text = read_text(path)?;
        let LocatedRecipe { recipe, lines, ops } = parse_checked(&text, format, path)?;
        // Texts written by programs may be empty, so only files are rejected.
        if recipe.ops.is_empty() && recipe.crops.is_empty() {
            return Err(Error::dataset_line(
                path,
                ops,
                "ops is an empty list: write operations, or use the recipe 'full' for whole \
                 images",
            ));
        }
        check_rows(&recipe, &lines, path)?;
        Ok(recipe)
    }

    /// Reads a recipe from text. `origin` is the name of the text in errors. Without its extension
    /// it is the name of a recipe that has none.
    ///
    /// # Errors
    /// As [`from_file`](Self::from_file).
    pub fn from_text(text: &str, format: RecipeFormat, origin: impl AsRef<Path>) -> Result<Self> {
        parse_checked(text, format, origin.as_ref()).map(|located| located.recipe)
    }

    /// Writes the recipe as text. Reading it returns an equal recipe.
    ///
    /// # Errors
    /// If a number is not finite and the format is JSON.
    pub fn to_text(&self, format: RecipeFormat) -> Result<String> {
        let file = WrittenFile {
            featherload: VERSION,
            name: &self.name,
            reorder: self.reorder,
            ops: (self.crops.is_empty() || !self.ops.is_empty()).then_some(&self.ops[..]),
            mixing: self.mixing.as_ref(),
            crops: &self.crops,
        };
        let text = toml::to_toml(&file)
            .map_err(|e| Error::config(format!("recipe '{}' cannot be written: {e}", self.name)))?;
        match RecipeFormat::Toml.tree(&text).map(|tree| tree.value) {
            Ok(NodeValue::Map(entries)) => write::write(&entries, format),
            Ok(_) => Err(Error::config("a recipe must be a map")),
            Err(e) => Err(Error::config(format!("recipe '{}': {e}", self.name))),
        }
    }

    /// The recipe named by `text`: the name of a preset, or the path of a file.
    ///
    /// # Errors
    /// If it is neither. The text lists the presets. Otherwise as [`from_file`](Self::from_file).
    pub fn load(text: &str) -> Result<Self> {
        if Self::PRESETS.contains(&text) {
            return Self::preset(text);
        }
        let path = Path::new(text);
        if text.contains('/') || path.extension().is_some() || path.exists() {
            return Self::from_file(path);
        }
        Err(Error::config(format!(
            "recipe '{text}' is unknown: {}",
            match nearest(text, &Self::PRESETS) {
                Some(near) => format!(
                    "did you mean '{near}'? (presets: {})",
                    Self::PRESETS.join(", ")
                ),
                None => format!(
                    "use {}, or a file that ends in .yaml, .toml or .json",
                    Self::PRESETS.join(", ")
                ),
            }
        )))
    }
}

/// Parses a recipe and checks its operations.
fn parse_checked(text: &str, format: RecipeFormat, origin: &Path) -> Result<LocatedRecipe> {
    let located = parse(text, format, origin)?;
    SampleProgram::check(&located.recipe).map_err(|fault| {
        match fault.op.and_then(|op| located.lines.get(op)) {
            Some(line) => Error::dataset_line(origin, *line, fault.message),
            None => Error::dataset(origin, fault.message),
        }
    })?;
    Ok(located)
}

/// Rejects a size so large that one sample does not fit into a machine's memory.
fn check_rows(recipe: &Recipe, lines: &[u64], path: &Path) -> Result<()> {
    let program = SampleProgram::compile(recipe)?;
    if program.is_crop_set() {
        let bytes: u64 = program.crop_rows().iter().map(|(_, bytes)| bytes).sum();
        return match bytes > MAX_ROW_BYTES {
            true => Err(Error::dataset(
                path,
                format!(
                    "crops: those of one sample take {}, and the limit is {}: use smaller or \
                     fewer crops",
                    error::size_rounded_up(bytes),
                    error::size_rounded_down(MAX_ROW_BYTES)
                ),
            )),
            false => Ok(()),
        };
    }
    let RowExtent::Fixed { height, width } = program.extent else {
        return Ok(());
    };
    let bytes = program.row_bytes((height, width));
    let last = recipe.ops.iter().rposition(Operation::sets_size);
    let (Some(op), true) = (last, bytes > MAX_ROW_BYTES) else {
        return Ok(());
    };
    let (name, dtype) = (recipe.ops[op].name(), program.output_format.dtype.name());
    let text = format!(
        "{name}: one sample of {width} x {height} pixels in {dtype} takes {}, and the limit \
         is {}: use a smaller size",
        error::size_rounded_up(bytes),
        error::size_rounded_down(MAX_ROW_BYTES)
    );
    Err(match lines.get(op) {
        Some(line) => Error::dataset_line(path, *line, text),
        None => Error::dataset(path, text),
    })
}

/// Reads a file up to the maximum length of a recipe.
pub(crate) fn read_text(path: &Path) -> Result<String> {
    let unreadable = |e: std::io::Error| {
        let what = match e.kind() {
            ErrorKind::NotFound => "no such file: check the path".to_owned(),
            _ => format!("cannot be read: {e}"),
        };
        Error::dataset(path, what)
    };
    // Reading a pipe could block.
    if !path.metadata().map_err(unreadable)?.is_file() {
        return Err(Error::dataset(
            path,
            "is not a regular file: give a recipe file",
        ));
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    check_length(&bytes, path)?;
    String::from_utf8(bytes).map_err(|e| {
        let good = e.utf8_error().valid_up_to();
        let breaks = e.as_bytes().iter().take(good).filter(|b| **b == b'\n');
        Error::dataset_line(path, breaks.count() as u64 + 1, "is not UTF-8")
    })
}

/// Parses a text to a tree. `origin`: its name in errors.
///
/// # Errors
/// One line with the origin and the line.
pub(crate) fn parse_tree(text: &str, format: RecipeFormat, origin: &Path) -> Result<TreeNode> {
    check_length(text.as_bytes(), origin)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    format
        .tree(text)
        .map_err(|e| Error::dataset_line(origin, e.line() as u64, e.to_string()))
}

/// Parses a recipe without checking its operations.
pub(super) fn parse(text: &str, format: RecipeFormat, origin: &Path) -> Result<LocatedRecipe> {
    check_length(text.as_bytes(), origin)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim().is_empty() {
        return Err(Error::dataset(
            origin,
            "is empty: a recipe begins with 'featherload: 1' and has a list 'ops'",
        ));
    }
    let located = |e: TextMistake| Error::dataset_line(origin, e.line() as u64, e.to_string());
    let root = format.tree(text).map_err(located)?;
    check_version(&root).map_err(located)?;
    let file: RecipeFile = de::read(&root).map_err(located)?;
    let list = root.get("ops");
    let crops = root.get("crops");
    match (list, crops) {
        (None, None) => {
            let missing = <TextMistake as serde::de::Error>::missing_field("ops");
            return Err(located(missing));
        }
        (None, Some(list)) if list.items().is_empty() => {
            let text = "crops is an empty list: write crops, or ops";
            return Err(located(list.at.mistake(text)));
        }
        _ => {}
    }
    let of_crops = crops.map(TreeNode::items).unwrap_or_default();
    let of_crops = of_crops.iter().filter_map(|crop| crop.get("ops"));
    let ops = list.map(TreeNode::items).unwrap_or_default();
    let mixing = root.get("mixing");
    let mixers = mixing.and_then(|node| node.get("ops"));
    let mixers = mixers.map(TreeNode::items).unwrap_or_default();
    let stem = origin.file_stem().unwrap_or_default();
    Ok(LocatedRecipe {
        recipe: Recipe {
            name: file.name.unwrap_or_else(|| stem.to_string_lossy().into()),
            reorder: file.reorder,
            ops: file.ops.unwrap_or_default(),
            mixing: file.mixing,
            crops: file.crops.unwrap_or_default(),
        },
        lines: ops
            .iter()
            .chain(mixing)
            .chain(mixers)
            .chain(of_crops.flat_map(TreeNode::items))
            .map(|node| node.at.line as u64)
            .collect(),
        ops: list.map_or(1, |node| node.at.line as u64),
    })
}

fn check_length(bytes: &[u8], origin: &Path) -> Result<()> {
    if bytes.len() as u64 > MAX_BYTES {
        let text = format!("is larger than {}: is it a recipe?", error::size(MAX_BYTES));
        return Err(Error::dataset(origin, text));
    }
    Ok(())
}

fn check_version(root: &TreeNode) -> std::result::Result<(), TextMistake> {
    if !matches!(root.value, NodeValue::Map(_)) {
        let expected = "a recipe ('featherload: 1' and a list 'ops')";
        return Err(TextMistake::expected(root.at, expected, &root.describe()));
    }
    match root.get("featherload") {
        Some(TreeNode {
            value: NodeValue::Int(v),
            ..
        }) if *v == i128::from(VERSION) => Ok(()),
        Some(node) => Err(node.at.mistake(format!(
            "featherload: expected the format's version {VERSION}, found {}{}",
            node.describe(),
            match &node.value {
                NodeValue::Str(text) => suggest_fix("a number", text),
                _ => String::new(),
            }
        ))),
        None => Err(root.at.mistake(format!(
            "'featherload: {VERSION}' is missing: write it as the first line"
        ))),
    }
}
