//! Recipes as files: YAML, TOML and JSON, read with located mistakes, and written.
//!
//! The only part of `recipe` that does I/O, and only in [`Recipe::from_file`](crate::Recipe::from_file) and
//! [`Recipe::load`](crate::Recipe::load), in the consumer or the CLI: workers get a recipe that is
//! already checked. Never here: what operations mean.
//!
//! A text becomes a tree of values that know their lines, whatever the language;
//! the derived form of the operations reads itself out of the tree. So there is
//! one list of names, and every mistake is one line: file, line, what is wrong,
//! and what would be right.
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
//! - `text`: recipes out of texts and files, and the other way round;
//! - `format`: the languages;
//! - `node`: the tree; `position`: places in a text; `mistake`: what can be wrong, in one
//!   line; `elsewhere`: names that other libraries give to operations;
//! - `yaml` (JSON too; `scalar`: words and numbers in it), `toml`: from text to the tree;
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
