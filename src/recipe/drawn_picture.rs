//! What the draws of a sample read of its picture: sizes, and the boxes of its objects.

use super::size_bounds::HeightWidth;
use super::steps::OpStep;
use crate::error::SampleFault;

/// The boxes of a sample's objects, for operations that read them.
pub(crate) trait BoxSource {
    /// Left, top, right and bottom of each box after these steps, in pixels of the picture there.
    ///
    /// # Errors
    /// Boxes that cannot be moved.
    fn boxes_after(
        &self,
        picture: &DrawnPicture<'_>,
        steps: &[OpStep],
    ) -> Result<Vec<[f64; 4]>, SampleFault>;
}

/// The picture for which steps are drawn.
#[derive(Clone, Copy)]
pub(crate) struct DrawnPicture<'a> {
    /// Height and width of the upright picture, or of the sample's box in it.
    pub(crate) size: HeightWidth,
    /// Height and width of the whole upright picture.
    pub(crate) whole: HeightWidth,
    /// Height and width of the row, if the batch sets them.
    pub(crate) row: Option<HeightWidth>,
    /// None: the sample has no objects.
    pub(crate) boxes: Option<&'a dyn BoxSource>,
}

impl DrawnPicture<'_> {
    /// A whole picture of this height and width without objects.
    pub(crate) fn of_size(size: HeightWidth) -> Self {
        Self {
            size,
            whole: size,
            row: None,
            boxes: None,
        }
    }

    /// The same in a row of this height and width, if the batch sets them.
    pub(crate) fn in_row(self, row: Option<HeightWidth>) -> Self {
        Self { row, ..self }
    }
}

/// The same boxes after any steps, for tests.
#[cfg(test)]
pub(crate) struct FixedBoxes(pub(crate) Vec<[f64; 4]>);

#[cfg(test)]
impl BoxSource for FixedBoxes {
    fn boxes_after(
        &self,
        _: &DrawnPicture<'_>,
        _: &[OpStep],
    ) -> Result<Vec<[f64; 4]>, SampleFault> {
        Ok(self.0.clone())
    }
}
