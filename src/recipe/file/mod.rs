//! Recipe files in YAML, TOML and JSON: reading, with the position of each mistake, and writing.
//!
//! The only part of `recipe` that does I/O, and only in
//! [`Recipe::from_file`](crate::Recipe::from_file) and [`Recipe::load`](crate::Recipe::load), in
//! the consumer or the CLI. Workers get a recipe that is already checked. Never in here: the
//! meaning of operations.
//!
//! Every language is parsed to the same tree of values with their lines. The derived code of the
//! operations reads the tree. So there is one list of names, and every mistake is reported in one
//! line: file, line, what is wrong, and the fix.
//!
//! ```
//! use featherload::Recipe;
//! use featherload::recipe::RecipeFormat;
//!
//! let yaml = "
//! featherload: 1              # the version of the format
//! name: portraits             # without it: the file's name
//! reorder: exact              # off, exact or fast
//! ops:
//!   - decode: {color: rgb, background: white}
//!   - random_resized_crop: {size: 224, scale: [0.25, 1]}
//!   - random_horizontal_flip  # alone: with its defaults
//!   - normalize: {mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225]}
//!   - cast: {dtype: f16}
//!   - layout: {layout: nchw}
//! mixing:                     # of whole batches; labels become vectors
//!   num_classes: 1000
//!   ops:
//!     - label_smoothing: {epsilon: 0.1}
//!     - one_of:
//!         - {p: 0.5, op: {mixup: {alpha: 0.8}}}
//!         - {p: 0.5, op: {cutmix: {alpha: 1.0}}}
//! ";
//! let recipe = Recipe::from_text(yaml, RecipeFormat::Yaml, "portraits.yaml")?;
//! assert_eq!(recipe.ops.len(), 6);
//!
//! // The same in another language.
//! let toml = recipe.to_text(RecipeFormat::Toml)?;
//! assert_eq!(Recipe::from_text(&toml, RecipeFormat::Toml, "portraits.toml")?, recipe);
//!
//! let wrong = yaml.replace("scale", "scales");
//! let error = Recipe::from_text(&wrong, RecipeFormat::Yaml, "mine.yaml").unwrap_err();
//! assert_eq!(
//!     error.to_string(),
//!     "mine.yaml:7: random_resized_crop has no parameter 'scales': did you mean 'scale'?"
//! );
//! # Ok::<(), featherload::Error>(())
//! ```
//!
//! A recipe with several crops of each image has a list `crops` instead of `ops`. Each has a
//! `name`, a `count`, a number `shared` and `ops` of its own: see [`RecipeCrop`](super::RecipeCrop).
//!
//! - `text`: reads and writes recipes as texts and files;
//! - `format`: the languages;
//! - `node`: the tree; `position`: positions in a text; `mistake`: mistakes, in one line;
//! - `foreign_names`: the names of operations in other libraries;
//! - `yaml` (also JSON), `toml`: from text to the tree; `scalar`: words and numbers in YAML;
//! - `de`: from the tree to values; `write`: from the tree to text.

pub(crate) mod de;
mod foreign_names;
mod format;
mod mistake;
mod node;
mod position;
mod scalar;
#[cfg(test)]
mod tests;
mod text;
pub(crate) mod toml;
pub(crate) mod write;
pub(crate) mod yaml;

pub use format::RecipeFormat;
pub(crate) use mistake::{TextMistake, advice, nearest, no_parameter};
pub(crate) use node::{MapKey, NodeValue, TreeNode};
pub(crate) use position::TextPosition;
pub(crate) use text::{parse_tree, read_text};
