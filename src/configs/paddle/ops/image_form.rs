//! The form in which PaddleClas passes an image from one operation to the next: a Pillow image or
//! an array. Some operations accept only one of them. Those of paddle.vision treat both
//! differently. Each operation determines the form of its result.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ImageForm {
    Picture,
    /// Levels in bytes, or numbers that are no longer levels.
    Array,
    /// A Pillow image or an array, depending on an earlier draw.
    Either,
    /// An array of levels in floats, the result of Padv2 and PCALighting.
    Floats,
}

impl ImageForm {
    /// The form as error texts name it.
    pub(super) fn described(self) -> &'static str {
        match self {
            Self::Picture => "a Pillow image",
            Self::Array => "an array",
            Self::Either => "a Pillow image or an array (as a prob before it draws)",
            Self::Floats => "an array of floats",
        }
    }
}
