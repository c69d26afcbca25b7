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
    /// Selects the language by the extension of a file name.
    ///
    /// # Errors
    /// For any other extension, or none. The text lists the supported ones.
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

    /// Parses a text to a tree.
    pub(crate) fn tree(self, text: &str) -> std::result::Result<TreeNode, TextMistake> {
        match self {
            Self::Yaml => yaml::read(text),
            Self::Toml => toml::read(text),
            Self::Json => yaml::read_json(text),
        }
    }
}
