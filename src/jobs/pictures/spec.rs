//! What a worker must know to put images into their store.
//!
//! Plain data, used in every process; compiled without the decoders too.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::jobs::pictures::jpeg_decoding::JpegDecoding;
use crate::jobs::scene::spec::{StoreMemory, StoreSpec};
use crate::pool::job::JobOrder;
use crate::pool::place::Place;
#[cfg(feature = "codecs")]
use crate::pool::ring::ticket::Ticket;

/// By this name it is ordered.
pub(crate) const NAME: &str = "pictures";

/// Bytes of a row where nothing is handed over: a slot has a page anyway.
pub(crate) const ROW_BYTES: u64 = 64;

/// Bytes before the coded picture of a row. The first four are its length; 0 = the image is in
/// the store.
const HEAD: usize = 16;

/// One row = one image is in the store, or its coded picture is in the row.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct PicturesSpec {
    pub(crate) store: StoreSpec,
    /// What JPEGs are decoded with on a device; none = workers decode all images.
    pub(crate) jpegs: Option<JpegDecoding>,
}

impl PicturesSpec {
    /// Orders the job.
    pub(crate) fn order<'a>(&self, memory: StoreMemory<'a>) -> Result<JobOrder<'a>> {
        let order = JobOrder::new(NAME, self, 0, memory.descriptors().to_vec())?;
        Ok(order.reading(memory.index))
    }

    /// Bytes of a row.
    pub(crate) fn row_bytes(&self) -> u64 {
        self.jpegs.map_or(ROW_BYTES, |jpegs| jpegs.row_bytes)
    }

    /// Whether a ticket is of [`PicturesSpec::place`] with `to_store`.
    #[cfg(feature = "codecs")]
    pub(crate) fn is_to_store(ticket: &Ticket) -> bool {
        ticket.epoch != 0
    }

    /// The ticket of an image: its number is the batch's. `to_store`: a worker decodes it, whatever
    /// its file is.
    pub(crate) fn place(image: u32, to_store: bool) -> Place {
        Place {
            epoch: u64::from(to_store),
            batch: u64::from(image),
            number: u64::from(image),
            filled: 1,
            rows: 1,
        }
    }
}

/// Where a row's head and its coded picture lie; none where it is too short.
#[cfg(feature = "codecs")]
pub(crate) fn parts(row: &mut [u8]) -> Option<(&mut [u8], &mut [u8])> {
    row.split_at_mut_checked(HEAD)
}

/// Writes the head of a row that has a coded picture of so many bytes, or none.
#[cfg(feature = "codecs")]
pub(crate) fn write_head(head: &mut [u8], coded: usize) {
    head.fill(0);
    head[..4].copy_from_slice(&(coded as u32).to_ne_bytes());
}

/// The coded picture of a row; none where the image is in the store.
///
/// # Errors
/// A length that the row has no room for.
pub(crate) fn coded_picture(row: &[u8]) -> Result<Option<&[u8]>> {
    let too_long = || Error::protocol("a coded image is longer than its row");
    let (head, rest) = row.split_at_checked(HEAD).ok_or_else(too_long)?;
    let len = u32::from_ne_bytes([head[0], head[1], head[2], head[3]]) as usize;
    match len {
        0 => Ok(None),
        _ => rest.get(..len).map(Some).ok_or_else(too_long),
    }
}

#[cfg(all(test, feature = "codecs"))]
mod tests {
    use super::*;

    #[test]
    fn a_coded_picture_is_found_in_its_row() {
        let mut row = vec![9; 40];
        let (head, rest) = parts(&mut row).unwrap();
        rest[..5].fill(7);
        write_head(head, 5);
        assert_eq!(coded_picture(&row).unwrap(), Some(&[7; 5][..]));
        write_head(&mut row[..HEAD], 24);
        assert!(coded_picture(&row).unwrap().is_some());
        write_head(&mut row[..HEAD], 25);
        assert!(coded_picture(&row).is_err());
        write_head(&mut row[..HEAD], 0);
        assert_eq!(coded_picture(&row).unwrap(), None);
        assert!(coded_picture(&row[..HEAD - 1]).is_err());
    }
}
