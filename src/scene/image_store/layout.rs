//! Layout of an image store: the byte range of each image.
//!
//! Used in every process: the consumer computes it, and workers receive it in the job's spec. Works
//! on sizes only.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// Alignment of images: a cache line.
const ALIGN: u64 = 64;

/// The end of each image. Images follow each other.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoreLayout {
    ends: Vec<u64>,
}

impl StoreLayout {
    /// Computes the layout of images with these sizes, in order.
    ///
    /// # Errors
    /// A number of bytes that overflows.
    pub(crate) fn new(bytes: impl IntoIterator<Item = u64>) -> Result<Self> {
        let mut ends = Vec::new();
        let mut end = 0u64;
        for bytes in bytes {
            let begin = end.checked_next_multiple_of(ALIGN);
            end = begin.and_then(|b| b.checked_add(bytes)).ok_or_else(|| {
                Error::config(format!(
                    "the images before number {} have {end} bytes: with it, the total is too large",
                    ends.len()
                ))
            })?;
            ends.push(end);
        }
        Ok(Self { ends })
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Bytes of all images.
    pub(crate) fn bytes(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Bytes of the largest image.
    pub(crate) fn largest(&self) -> u64 {
        let all = (0..self.len()).filter_map(|number| self.of(number));
        all.map(|range| range.end - range.start).max().unwrap_or(0)
    }

    /// Byte range of image `number`; `None` if there is no such image.
    #[inline]
    pub(crate) fn of(&self, number: usize) -> Option<Range<u64>> {
        let end = *self.ends.get(number)?;
        let begin = match number {
            0 => 0,
            _ => self.ends.get(number - 1)?.next_multiple_of(ALIGN),
        };
        Some(begin..end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_lie_one_behind_the_other_on_lines() {
        let places = StoreLayout::new([3, 64, 0, 1]).unwrap();
        let of: Vec<_> = (0..5).map(|n| places.of(n)).collect();
        assert_eq!(
            of,
            [
                Some(0..3),
                Some(64..128),
                Some(128..128),
                Some(128..129),
                None
            ]
        );
        assert_eq!((places.len(), places.bytes()), (4, 129));
        assert_eq!(StoreLayout::default().of(0), None);
    }

    #[test]
    fn more_than_can_be_counted_is_an_error() {
        let e = StoreLayout::new([u64::MAX - 3, 7]).unwrap_err().to_string();
        assert!(e.contains("number 1"), "{e}");
    }
}
