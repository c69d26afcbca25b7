//! The sizes of rows that an image may get.

use crate::recipe::BucketFitter;

/// What sets the height and width of rows.
#[derive(Debug)]
pub(crate) enum BatchSizes<'a> {
    /// The recipe alone.
    OfRecipe,
    /// Batches: any of these.
    Any(&'a [(u32, u32)]),
    /// The bucket of the image, or this size if it has none.
    Bucket(BucketFitter, (u32, u32)),
}

impl BatchSizes<'_> {
    /// All sizes of rows of an upright image of this height and width. None among them: the
    /// recipe's.
    pub(super) fn of(&self, image: (u32, u32)) -> Vec<Option<(u32, u32)>> {
        match self {
            Self::OfRecipe => vec![None],
            Self::Any(sizes) => sizes.iter().map(|size| Some(*size)).collect(),
            Self::Bucket(fitter, other) => {
                vec![Some(fitter.fit(image).map_or(*other, |fit| fit.row))]
            }
        }
    }

    /// The sizes that do not depend on the image. None among them: the recipe's.
    pub(super) fn of_any_image(&self) -> Vec<Option<(u32, u32)>> {
        match self {
            Self::OfRecipe | Self::Bucket(..) => vec![None],
            Self::Any(sizes) => sizes.iter().map(|size| Some(*size)).collect(),
        }
    }
}
