//! The levels of a page: which of its values begin rows and entries of lists, and which are missing.
//!
//! Runs in the consumer, on untrusted bytes.

use crate::data::index::parquet::pages::{PageKind, PageLocation, encoding};
use crate::data::index::parquet::rle::RleDecoder;

/// The levels of a column's values.
#[derive(Debug, Clone, Copy)]
pub(super) struct ColumnLevels {
    pub(super) most_def: u32,
    pub(super) most_rep: u32,
    /// The level of an entry of a list, perhaps without a value.
    pub(super) entry: u32,
}

/// Repetition and definition levels, if there are any, and the bytes of the values.
pub(super) type SplitPage<'a> = (Option<RleDecoder<'a>>, Option<RleDecoder<'a>>, &'a [u8]);

/// The levels of a page, and the bytes of its values.
///
/// # Errors
/// `None` for a damaged page, else the reason as text.
pub(super) fn levels<'a>(
    page: &PageLocation,
    body: &'a [u8],
    levels: ColumnLevels,
) -> Result<SplitPage<'a>, Option<String>> {
    let mut rest = body;
    let mut take = |most: u32, bytes: Option<u32>| {
        if most == 0 && bytes.is_none() {
            return Ok(None);
        }
        let bytes = match bytes {
            Some(bytes) => bytes,
            None => {
                let (length, after) = rest.split_first_chunk::<4>().ok_or(None)?;
                rest = after;
                u32::from_le_bytes(*length)
            }
        };
        let (bytes, after) = rest.split_at_checked(bytes as usize).ok_or(None)?;
        rest = after;
        match most {
            0 => Ok(None),
            _ => RleDecoder::new(bytes, RleDecoder::width_of(most))
                .map(Some)
                .ok_or(None),
        }
    };
    let (reps, defs) = match page.kind {
        PageKind::DataV2 {
            rep_bytes,
            def_bytes,
            ..
        } => (
            take(levels.most_rep, Some(rep_bytes))?,
            take(levels.most_def, Some(def_bytes))?,
        ),
        PageKind::Data { level_encoding }
            if level_encoding != encoding::RLE && levels.most_def > 0 =>
        {
            return Err(Some(
                "has levels in the old encoding BIT_PACKED: write it with a newer writer".into(),
            ));
        }
        _ => (take(levels.most_rep, None)?, take(levels.most_def, None)?),
    };
    Ok((reps, defs, rest))
}
