//! The arrays of a view, and their layout in memory.
//!
//! Used in the consumer and in workers. Computes sizes only.

use std::ops::Range;

/// One array of a view, with one entry per pixel, row by row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ViewField {
    /// Red, green, blue, and alpha if requested: `u8`, or `f32` from 0 to 1, (height, width,
    /// channels).
    Image,
    /// Whether the pixel may be used: `u8`, 0 or 1, (height, width). Of images with a mask.
    Mask,
    /// Depth along the camera's axis in the scene's units, 0 if unknown: `f32`, (height, width). Of
    /// images with depths.
    Depth,
}

impl ViewField {
    /// In the order of the memory layout.
    pub const ALL: [Self; 3] = [Self::Image, Self::Mask, Self::Depth];

    /// The name in other languages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Image => "image",
            Self::Mask => "mask",
            Self::Depth => "depth",
        }
    }
}

/// Alignment of arrays.
const ALIGN: usize = 64;

/// Memory layout of a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ViewLayout {
    pub(crate) height: usize,
    pub(crate) width: usize,
    pub(crate) channels: usize,
    /// Whether the image is `f32` instead of `u8`.
    pub(crate) float: bool,
    pub(crate) mask: bool,
    pub(crate) depth: bool,
}

impl ViewLayout {
    pub(crate) fn has(&self, field: ViewField) -> bool {
        match field {
            ViewField::Image => true,
            ViewField::Mask => self.mask,
            ViewField::Depth => self.depth,
        }
    }

    /// Bytes of one array.
    fn len(&self, field: ViewField) -> usize {
        let pixels = self.height * self.width;
        match field {
            ViewField::Image => {
                let number = if self.float { size_of::<f32>() } else { 1 };
                pixels * self.channels * number
            }
            ViewField::Mask => pixels * usize::from(self.mask),
            ViewField::Depth => pixels * size_of::<f32>() * usize::from(self.depth),
        }
    }

    /// Byte range of an array; empty if it is absent.
    pub(crate) fn of(&self, field: ViewField) -> Range<usize> {
        let in_front = ViewField::ALL.into_iter().take_while(|f| *f != field);
        let begin: usize = in_front.map(|f| self.len(f).next_multiple_of(ALIGN)).sum();
        begin..begin + self.len(field)
    }

    /// Bytes of all arrays.
    pub(crate) fn bytes(&self) -> usize {
        let all = ViewField::ALL.into_iter();
        all.map(|f| self.len(f).next_multiple_of(ALIGN)).sum()
    }
}

/// The arrays of a view, for writing. Absent arrays are empty.
pub(crate) struct ViewArrays<'a> {
    pub(crate) image: &'a mut [u8],
    pub(crate) mask: &'a mut [u8],
    pub(crate) depth: &'a mut [f32],
}

impl ViewLayout {
    /// Splits the memory of a view into arrays. `None` if it is too short or not aligned.
    pub(crate) fn arrays<'a>(&self, memory: &'a mut [u8]) -> Option<ViewArrays<'a>> {
        let mut left = memory;
        let mut next = |field| {
            let len = self.len(field);
            let (array, behind) =
                std::mem::take(&mut left).split_at_mut_checked(len.next_multiple_of(ALIGN))?;
            left = behind;
            array.get_mut(..len)
        };
        Some(ViewArrays {
            image: next(ViewField::Image)?,
            mask: next(ViewField::Mask)?,
            depth: bytemuck::try_cast_slice_mut(next(ViewField::Depth)?).ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_share_no_byte_and_lie_where_they_are_said_to() {
        for bits in 0..16 {
            let [float, mask, depth, alpha] = [1, 2, 4, 8].map(|bit| bits & bit > 0);
            let channels = if alpha { 4 } else { 3 };
            let layout = ViewLayout {
                height: 7,
                width: 11,
                channels,
                float,
                mask,
                depth,
            };
            let mut memory = vec![0u64; layout.bytes() / 8];
            let memory: &mut [u8] = bytemuck::cast_slice_mut(&mut memory);
            let begin = memory.as_ptr() as usize;
            let arrays = layout.arrays(memory).unwrap();
            let depth: &mut [u8] = bytemuck::cast_slice_mut(arrays.depth);
            let found = [arrays.image, arrays.mask, depth];
            let mut end = 0;
            for (field, found) in ViewField::ALL.into_iter().zip(found) {
                let range = layout.of(field);
                assert!(range.start.is_multiple_of(ALIGN) && range.start >= end);
                assert_eq!(range.len(), found.len());
                assert_eq!(found.is_empty(), !layout.has(field));
                assert!(found.is_empty() || found.as_ptr() as usize - begin == range.start);
                end = range.end;
            }
            assert_eq!(
                layout.of(ViewField::Image).len(),
                7 * 11 * channels * if float { 4 } else { 1 }
            );
            assert!(end <= layout.bytes() && layout.arrays(&mut [0; 64]).is_none());
        }
    }
}
