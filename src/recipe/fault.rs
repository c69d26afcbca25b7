//! What is wrong with a recipe whose text is right: numbers that cannot be,
//! operations that do not go together.

/// One fault, and the operation that it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RecipeFault {
    /// Place in `Recipe::ops`. None: about the recipe as a whole.
    pub(crate) op: Option<usize>,
    pub(crate) message: String,
}
