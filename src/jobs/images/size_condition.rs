//! How images were cropped to their buckets.
//!
//! In the consumer. The crops are drawn again from the positions of the rows.

use crate::data::sample_sizes::SampleSizes;
use crate::error::{Error, Result};
use crate::order::{EpochMark, EpochPlan, RowPlan};
use crate::recipe::{DrawnPicture, SampleProgram};

/// How an image was resized and cropped to its bucket: the size conditions of SDXL. Heights and
/// widths, in pixels of the upright image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SizeCondition {
    /// The image.
    pub original: (u32, u32),
    /// Top and left edge of the crop in the resized image.
    pub crop: (u32, u32),
    /// The row.
    pub target: (u32, u32),
}

/// The condition of each row, by the `cover_crop` of the program. Zeros for a masked row.
///
/// # Errors
/// A row has an image without a crop: another process wrote into the memory of the run, since
/// workers check the size of each image.
pub(crate) fn size_conditions(
    (plan, program): (&EpochPlan, &SampleProgram),
    sizes: &SampleSizes,
    at: EpochMark,
    rows: &[RowPlan],
) -> Result<Vec<SizeCondition>> {
    let of_row = |row: &RowPlan| {
        let (original, target) = (sizes.get(row.id)?, row.size?);
        let picture = DrawnPicture::of_size(original).in_row(Some(target));
        let random = plan.random(at.epoch, row.position);
        let crop = program.cover_crop(&picture, &random)?;
        Some(SizeCondition {
            original,
            crop,
            target,
        })
    };
    let of_row = |row: &RowPlan| match row.status.is_masked() {
        true => Ok(SizeCondition::default()),
        false => of_row(row).ok_or_else(|| {
            Error::protocol(format!(
                "sample {} has a row, but no size from which its crop follows",
                row.id
            ))
        }),
    };
    rows.iter().map(of_row).collect()
}
