//! What PaddleClas hands from one operation to the next: a Pillow picture, or
//! an array. Some operations take one of them alone, paddle.vision's do something
//! else to each, and each operation leaves one of them behind.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ImageForm {
    Picture,
    /// Levels in bytes, or numbers that are no levels any more.
    Array,
    /// A picture or an array, as an operation in front drew it.
    Either,
    /// An array of levels in floats, which Padv2 and PCALighting give.
    Floats,
}

impl ImageForm {
    /// The word for it in front of "stands here".
    pub(super) fn described(self) -> &'static str {
        match self {
            Self::Picture => "a Pillow picture",
            Self::Array => "an array",
            Self::Either => "a Pillow picture or an array (as a prob before it draws)",
            Self::Floats => "an array of floats",
        }
    }
}
