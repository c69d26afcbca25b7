//! What a worker must know to decode images for a device.
//!
//! Plain data, used in every process. Also compiled without the decoders.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::pool::batch_request::BatchRequest;
use crate::pool::job::JobRequest;
use crate::pool::ring::ticket::BatchKey;
use crate::scene::jobs::device_images::jpeg_decoding::JpegDecoding;
use crate::scene::jobs::shared::spec::{StoreMemory, StoreSpec};

/// Name of the job.
pub(crate) const NAME: &str = "pictures";

/// Bytes of a row if workers pass no coded images on. A slot takes a page anyway.
pub(crate) const ROW_BYTES: u64 = 64;

/// Bytes of a row's header. The first four bytes are the length of the coded image; 0 if the image
/// is in the image store.
pub(crate) const HEAD: usize = 16;

/// The job: a row holds a coded image, or states that the image is in the image store.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct DeviceImagesSpec {
    pub(crate) store: StoreSpec,
    /// The JPEG decoder on the device; `None` if workers decode all images.
    pub(crate) jpegs: Option<JpegDecoding>,
}

impl DeviceImagesSpec {
    /// Describes the job for the coordinator.
    pub(crate) fn order<'a>(&self, memory: StoreMemory<'a>) -> Result<JobRequest<'a>> {
        let order = JobRequest::new(NAME, self, 0, memory.descriptors().to_vec())?;
        Ok(order.reading(memory.index))
    }

    /// Bytes of a row.
    pub(crate) fn row_bytes(&self) -> u64 {
        self.jpegs.map_or(ROW_BYTES, |jpegs| jpegs.row_bytes)
    }

    /// The ticket of an image. With `to_store` a worker always decodes the image.
    pub(crate) fn place(image: u32, to_store: bool) -> BatchRequest {
        BatchRequest {
            key: BatchKey([image.into(), to_store.into()]),
            ..BatchRequest::numbered(image.into(), 1)
        }
    }

    /// The image of a ticket, and whether it has `to_store` set.
    #[cfg(feature = "codecs")]
    pub(crate) fn image(BatchKey([image, to_store]): BatchKey) -> (u64, bool) {
        (image, to_store != 0)
    }
}

/// Splits a row into its header and its coded image; `None` if it is too short.
#[cfg(feature = "codecs")]
pub(crate) fn parts(row: &mut [u8]) -> Option<(&mut [u8], &mut [u8])> {
    row.split_at_mut_checked(HEAD)
}

/// Writes the header of a row with `coded` bytes of coded image; 0 if there is none.
#[cfg(feature = "codecs")]
pub(crate) fn write_head(head: &mut [u8], coded: usize) {
    head.fill(0);
    head[..4].copy_from_slice(&(coded as u32).to_ne_bytes());
}

/// Length of the coded image after this header; `None` if the image is in the image store.
pub(crate) fn coded_bytes(head: [u8; HEAD]) -> Option<usize> {
    let len = u32::from_ne_bytes([head[0], head[1], head[2], head[3]]);
    (len > 0).then_some(len as usize)
}

#[cfg(all(test, feature = "codecs"))]
mod tests {
    use super::*;

    #[test]
    fn a_head_states_the_bytes_behind_it() {
        let mut row = [9; 40];
        let (head, rest) = parts(&mut row).unwrap();
        assert_eq!((head.len(), rest.len()), (HEAD, 24));
        write_head(head, 5);
        assert_eq!(coded_bytes(head.try_into().unwrap()), Some(5));
        write_head(head, 0);
        assert_eq!(coded_bytes(head.try_into().unwrap()), None);
        assert!(parts(&mut row[..HEAD - 1]).is_none());
    }
}
