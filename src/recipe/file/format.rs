//! The languages of recipe files.

use std::path::Path;

use super::mistake::TextMistake;
use super::node::TreeNode;
use super::{toml, yaml};
use crate::error::{Error, Result};

/// A language for recipes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RecipeFormat {
    Yaml,
    Toml,
    Json,
}

impl RecipeFormat {
    /// By the extension of a file's name.
    ///
    /// # Errors
    /// For other extensions and none; the text lists those that are known.
    pub fn of(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        match path.extension().and_then(|e| e.to_str()) {
            Some("yaml" | "yml") => Ok(Self::Yaml),
            Some("toml") => Ok(Self::Toml),
            Some("json") => Ok(Self::Json),
            _ => Err(Error::dataset(
                path,
                "a recipe file's name ends in .yaml (or .yml), .toml or .json",
            )),
        }
    }

    /// The tree of a text.
    pub(crate) fn tree(self, text: &str) -> std::result::Result<TreeNode, TextMistake> {
        match self {
            Self::Yaml => yaml::read(text),
            Self::Toml => toml::read(text),
            Self::Json => yaml::read_json(text),
        }
    }
}
