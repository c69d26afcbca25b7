//! A mistake in a recipe, before it is known where the recipe was written.

use crate::error::Error;

/// What is wrong, and at which operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RecipeFault {
    /// Place in `Recipe::ops`; behind the last of these is `Recipe::mixing`, and
    /// behind that are its operations; none = the recipe as a whole.
    pub(crate) op: Option<usize>,
    /// Names the operation, the number, and what would be accepted.
    pub(crate) message: String,
}

impl RecipeFault {
    /// The error for a recipe of this name that stands in no file.
    pub(crate) fn of_recipe(self, name: &str) -> Error {
        Error::config(format!("recipe '{name}': {}", self.message))
    }
}
