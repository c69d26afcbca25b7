//! The arrays of a batch of rays, and their layout in memory.
//!
//! Used in the consumer and in workers. Computes sizes only.

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// One array of a batch, with one entry per ray.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(usize)]
pub enum RayField {
    /// Image, row, column: `i64`, (rays, 3).
    Indices,
    /// Origin of the ray in the scene's units: `f32`, (rays, 3).
    Origins,
    /// Direction of the ray, of length 1: `f32`, (rays, 3).
    Directions,
    /// Colour of the pixel, 0 to 1: `f32`, (rays, 3), or (rays, 4) with alpha.
    Colors,
    /// Length of the direction before it was normalised: `f32`, (rays). Multiplied by a depth along
    /// the camera's axis, it is a distance along the ray.
    DirectionNorms,
    /// Area of the pixel at distance 1: `f32`, (rays).
    PixelAreas,
    /// Depth along the camera's axis in the scene's units, 0 if unknown: `f32`, (rays). In scenes
    /// with depths.
    Depths,
    /// Time of the image: `f32`, (rays). In scenes with times.
    Times,
    /// Whether the lens defines the ray of this pixel: `u8`, 0 or 1, (rays). Where it is 0, origin
    /// and direction are zero.
    Valid,
}

impl RayField {
    /// In the order of the memory layout.
    pub const ALL: [Self; 9] = [
        Self::Indices,
        Self::Origins,
        Self::Directions,
        Self::Colors,
        Self::DirectionNorms,
        Self::PixelAreas,
        Self::Depths,
        Self::Times,
        Self::Valid,
    ];

    /// The name in other languages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Indices => "indices",
            Self::Origins => "origins",
            Self::Directions => "directions",
            Self::Colors => "colors",
            Self::DirectionNorms => "directions_norms",
            Self::PixelAreas => "pixel_areas",
            Self::Depths => "depths",
            Self::Times => "times",
            Self::Valid => "valid",
        }
    }

    /// Bytes of one value.
    pub(crate) fn number_bytes(self) -> usize {
        match self {
            Self::Indices => size_of::<i64>(),
            Self::Valid => 1,
            Self::Origins
            | Self::Directions
            | Self::Colors
            | Self::DirectionNorms
            | Self::PixelAreas
            | Self::Depths
            | Self::Times => size_of::<f32>(),
        }
    }
}

/// Alignment of arrays.
const ALIGN: usize = 64;

/// Memory layout of a batch with a number of rays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RayLayout {
    rays: usize,
    form: RayForm,
}

/// Optional arrays and channels of rays.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RayForm {
    pub(crate) times: bool,
    pub(crate) depths: bool,
    /// Colours have alpha as a fourth value.
    pub(crate) alpha: bool,
}

impl RayLayout {
    pub(crate) fn new(rays: usize, form: RayForm) -> Self {
        Self { rays, form }
    }

    /// Values per ray.
    pub(crate) fn width(self, field: RayField) -> usize {
        match field {
            RayField::Indices | RayField::Origins | RayField::Directions => 3,
            RayField::Colors if self.form.alpha => 4,
            RayField::Colors => 3,
            RayField::DirectionNorms
            | RayField::PixelAreas
            | RayField::Depths
            | RayField::Times
            | RayField::Valid => 1,
        }
    }

    pub(crate) fn rays(self) -> usize {
        self.rays
    }

    pub(crate) fn has(self, field: RayField) -> bool {
        match field {
            RayField::Times => self.form.times,
            RayField::Depths => self.form.depths,
            _ => true,
        }
    }

    /// Bytes of one array.
    fn len(self, field: RayField) -> usize {
        match self.has(field) {
            true => self.rays * self.width(field) * field.number_bytes(),
            false => 0,
        }
    }

    /// Byte range of an array; empty if it is absent.
    pub(crate) fn of(self, field: RayField) -> Range<usize> {
        let in_front = RayField::ALL.into_iter().take_while(|f| *f != field);
        let begin: usize = in_front.map(|f| self.len(f).next_multiple_of(ALIGN)).sum();
        begin..begin + self.len(field)
    }

    /// Bytes of all arrays.
    pub(crate) fn bytes(self) -> usize {
        RayField::ALL
            .into_iter()
            .map(|f| self.len(f).next_multiple_of(ALIGN))
            .sum()
    }
}

/// The arrays of a batch, for writing.
pub(crate) struct RayArrays<'a> {
    pub(crate) indices: &'a mut [[i64; 3]],
    pub(crate) origins: &'a mut [[f32; 3]],
    pub(crate) directions: &'a mut [[f32; 3]],
    /// Three or four values per ray.
    pub(crate) colors: &'a mut [f32],
    pub(crate) norms: &'a mut [f32],
    pub(crate) areas: &'a mut [f32],
    /// Empty if there are no depths.
    pub(crate) depths: &'a mut [f32],
    /// Empty if there are no times.
    pub(crate) times: &'a mut [f32],
    pub(crate) valid: &'a mut [u8],
}

impl RayLayout {
    /// Splits the memory of a batch into arrays. `None` if it is too short or not aligned.
    pub(crate) fn arrays(self, memory: &mut [u8]) -> Option<RayArrays<'_>> {
        let mut left = memory;
        let mut next = |field| {
            let (array, behind) = std::mem::take(&mut left)
                .split_at_mut_checked(self.len(field).next_multiple_of(ALIGN))?;
            left = behind;
            array.get_mut(..self.len(field))
        };
        Some(RayArrays {
            indices: bytemuck::try_cast_slice_mut(next(RayField::Indices)?).ok()?,
            origins: bytemuck::try_cast_slice_mut(next(RayField::Origins)?).ok()?,
            directions: bytemuck::try_cast_slice_mut(next(RayField::Directions)?).ok()?,
            colors: bytemuck::try_cast_slice_mut(next(RayField::Colors)?).ok()?,
            norms: bytemuck::try_cast_slice_mut(next(RayField::DirectionNorms)?).ok()?,
            areas: bytemuck::try_cast_slice_mut(next(RayField::PixelAreas)?).ok()?,
            depths: bytemuck::try_cast_slice_mut(next(RayField::Depths)?).ok()?,
            times: bytemuck::try_cast_slice_mut(next(RayField::Times)?).ok()?,
            valid: next(RayField::Valid)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_share_no_byte_and_fill_the_batch() {
        for bits in 0..8 {
            for rays in [0, 1, 5, 4096, 4097] {
                let form = RayForm {
                    times: bits & 1 > 0,
                    depths: bits & 2 > 0,
                    alpha: bits & 4 > 0,
                };
                let layout = RayLayout::new(rays, form);
                let mut end = 0;
                for field in RayField::ALL {
                    let range = layout.of(field);
                    assert_eq!(range.start % ALIGN, 0);
                    assert!(range.start >= end);
                    let bytes = rays * layout.width(field) * field.number_bytes();
                    assert_eq!(range.len(), bytes * usize::from(layout.has(field)));
                    end = range.end;
                }
                assert!(end <= layout.bytes() && layout.bytes() < end + 9 * ALIGN);
                // Split one by one, they are at their ranges.
                let mut memory = vec![0u64; layout.bytes() / 8];
                let memory: &mut [u8] = bytemuck::cast_slice_mut(&mut memory);
                let begin = memory.as_ptr() as usize;
                let arrays = layout.arrays(memory).unwrap();
                assert_eq!(arrays.indices.len(), rays);
                assert_eq!(arrays.valid.len(), rays);
                assert_eq!(arrays.colors.len(), rays * if form.alpha { 4 } else { 3 });
                assert_eq!(arrays.depths.len(), rays * usize::from(form.depths));
                let at = arrays.areas.as_ptr() as usize - begin;
                assert_eq!(at, layout.of(RayField::PixelAreas).start);
                let at = arrays.valid.as_ptr() as usize - begin;
                assert_eq!(at, layout.of(RayField::Valid).start);
                assert!(rays == 0 || layout.arrays(&mut [0; 64]).is_none());
            }
        }
    }
}
