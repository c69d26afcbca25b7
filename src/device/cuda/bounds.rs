//! Checks that a batch's rows only name bytes of their slot, or of the memory of decoded images.
//! The kernel relies on this.
//!
//! In the consumer, before a launch. The numbers come from headers that workers wrote. They were
//! already checked when the headers were read (`decode_plan::crop_row`).

use crate::decode_plan::crop_row::{MAX_CROP_STEPS, TRANSPOSE};
use crate::device::crop_launch::{ELSEWHERE, KernelEmission, KernelRow, MASKED};
use crate::device::stage_shapes::RowPlaces;
use crate::error::{Error, Result};

/// The kernel reads pixels in vectors of this size, in bytes.
const VECTOR: u64 = 16;

/// Checks all rows. Returns the most bytes that a row uses of its part of the slot.
pub(super) fn used_bytes(
    rows: &[KernelRow],
    places: RowPlaces,
    emission: &KernelEmission,
    room: usize,
    most_rows: usize,
) -> Result<usize> {
    if places.tables > places.capacity || !places.capacity.is_multiple_of(VECTOR as usize) {
        return Err(Error::device(format!(
            "rows of {} bytes cannot have tables of {} bytes",
            places.capacity, places.tables
        )));
    }
    if rows.is_empty() || rows.len() > most_rows {
        return Err(Error::device(format!(
            "{} rows of a batch of {}",
            rows.len(),
            most_rows
        )));
    }
    if rows.len() * places.capacity > room {
        return Err(Error::device(format!(
            "{} rows of {} bytes do not fit a slot of {room} bytes",
            rows.len(),
            places.capacity
        )));
    }
    let mut most = places.tables;
    for (i, row) in rows.iter().enumerate() {
        let used = used_by(row, i, emission, places).ok_or_else(|| not_its_own(i))?;
        most = most.max(used);
    }
    Ok(most)
}

/// Checks row `i`. `memory`: bytes of the memory of its pixels.
///
/// # Errors
/// As [`used_bytes`].
pub(super) fn check_frame(
    row: &KernelRow,
    i: usize,
    emission: &KernelEmission,
    places: RowPlaces,
    memory: usize,
) -> Result<()> {
    let inside = tables_end(row, i, emission, places).and_then(|_| pixels_end(row, 0, memory));
    inside.map(drop).ok_or_else(|| not_its_own(i))
}

fn not_its_own(i: usize) -> Error {
    Error::device(format!("row {i} of a batch names bytes outside of it"))
}

/// Bytes of RGB that the kernel reads from slots, for checked rows. Rows that need their mean count
/// twice.
pub(super) fn pixel_bytes(rows: &[KernelRow]) -> u64 {
    let rows_here = (rows.iter()).filter(|row| row.flags & (MASKED | ELSEWHERE) == 0);
    rows_here
        .map(|row| {
            let once = 3 * u64::from(row.width) * u64::from(row.height);
            once * (1 + u64::from(row.takes_mean()))
        })
        .sum()
}

/// Bytes that row `i` uses of its part of the slot. None if it names bytes outside of its part, or
/// has another size than the batch's rows.
fn used_by(
    row: &KernelRow,
    i: usize,
    emission: &KernelEmission,
    places: RowPlaces,
) -> Option<usize> {
    if row.flags & (MASKED | ELSEWHERE) != 0 {
        return Some(0);
    }
    tables_end(row, i, emission, places)?;
    pixels_end(row, (i * places.capacity) as u64, places.pixels_end)
}

/// Where the tables of row `i` end in its part. None as in [`used_by`].
fn tables_end(
    row: &KernelRow,
    i: usize,
    emission: &KernelEmission,
    places: RowPlaces,
) -> Option<u64> {
    let (height, width) = emission.size();
    let stored = match row.flags & TRANSPOSE {
        0 => (row.out_height, row.out_width),
        _ => (row.out_width, row.out_height),
    };
    if stored != (height, width) || row.steps as usize > MAX_CROP_STEPS || row.grey != 0 {
        return None;
    }
    if row.width == 0 || row.height == 0 || row.across_taps == 0 || row.down_taps == 0 {
        return None;
    }
    let axis = |outputs: u32, taps: u32| u64::from(outputs).checked_mul(4 * (1 + u64::from(taps)));
    let tables = row.tables.checked_sub((i * places.capacity) as u64)?;
    let end = tables
        .checked_add(axis(row.out_width, row.across_taps)?)?
        .checked_add(axis(row.out_height, row.down_taps)?)?;
    (tables.is_multiple_of(4) && end <= places.tables as u64).then_some(end)
}

/// Where the pixels of a row end in their memory, which begins at `begin` and has `room` bytes.
fn pixels_end(row: &KernelRow, begin: u64, room: usize) -> Option<usize> {
    let pixels = row.pixels.checked_sub(begin)?;
    let bytes = u64::from(row.width)
        .checked_mul(u64::from(row.height))?
        .checked_mul(3)?;
    // Vectors begin up to 15 bytes before the pixels, and end up to 15 bytes after them.
    let end = pixels
        .checked_add(bytes)?
        .checked_next_multiple_of(VECTOR)?;
    let inside = pixels >= VECTOR && end <= room as u64;
    usize::try_from(end).ok().filter(|_| inside)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode_plan::crop_row::FLIP_X;
    use crate::recipe::{ColorOrder, DataType, MemoryLayout, OutputFormat};

    fn emission() -> KernelEmission {
        KernelEmission::new(
            &OutputFormat {
                zero_channels: 0,
                patches: None,
                unit: 255.0,
                mean: [0.0; 3],
                std: [1.0; 3],
                dtype: DataType::F32,
                layout: MemoryLayout::Nchw,
                order: ColorOrder::Rgb,
            },
            (4, 8),
        )
    }

    const PLACES: RowPlaces = RowPlaces {
        capacity: 1024,
        tables: 256,
        pixels_end: 1024,
    };
    const MEMORY: usize = 4096;

    /// The second row of a batch: 8 x 4 out of 16 x 16, with tables of 12 x 4 x 3 bytes.
    fn row() -> KernelRow {
        KernelRow {
            pixels: 1024 + 256,
            tables: 1024,
            width: 16,
            height: 16,
            across_taps: 2,
            down_taps: 2,
            out_width: 8,
            out_height: 4,
            flags: FLIP_X,
            ..KernelRow::default()
        }
    }

    #[test]
    fn a_row_inside_of_its_part_is_measured() {
        let used = |row: &KernelRow| used_by(row, 1, &emission(), PLACES);
        assert_eq!(used(&row()), Some(1024));
        let turned = KernelRow {
            flags: TRANSPOSE,
            out_width: 4,
            out_height: 8,
            ..row()
        };
        assert_eq!(used(&turned), Some(1024));
        let masked = KernelRow {
            flags: MASKED,
            pixels: u64::MAX,
            ..row()
        };
        assert_eq!(used(&masked), Some(0));
        let elsewhere = KernelRow {
            flags: ELSEWHERE,
            ..masked
        };
        assert_eq!(used(&elsewhere), Some(0));
        assert_eq!(pixel_bytes(&[row(), elsewhere, masked]), 3 * 16 * 16);
    }

    #[test]
    fn a_row_of_a_frame_has_its_tables_in_its_part_and_its_pixels_in_the_frames() {
        let inside = |pixels, tables, memory| {
            let row = KernelRow {
                pixels,
                tables,
                width: 64,
                ..row()
            };
            check_frame(&row, 1, &emission(), PLACES, memory).is_ok()
        };
        let last = (MEMORY - 3 * 64 * 16) as u64;
        assert!(inside(16, 1024, MEMORY) && inside(last, 1024, MEMORY));
        assert!(!inside(last + 1, 1024, MEMORY) && !inside(15, 1024, MEMORY));
        assert!(!inside(16, 1024, 0) && !inside(16, 1020, MEMORY));
    }

    #[test]
    fn what_is_not_its_own_is_refused() {
        for wrong in [
            KernelRow {
                pixels: 1023,
                ..row()
            },
            KernelRow {
                pixels: 1024 + 15,
                ..row()
            },
            KernelRow {
                pixels: 1024 + 257,
                ..row()
            },
            KernelRow {
                pixels: u64::MAX,
                ..row()
            },
            KernelRow {
                tables: 1020,
                ..row()
            },
            KernelRow {
                tables: 1025,
                ..row()
            },
            KernelRow {
                tables: 1024 + 116,
                ..row()
            },
            KernelRow { width: 0, ..row() },
            KernelRow {
                height: 17,
                ..row()
            },
            KernelRow {
                width: u32::MAX,
                height: u32::MAX,
                ..row()
            },
            KernelRow {
                across_taps: 0,
                ..row()
            },
            KernelRow {
                down_taps: u32::MAX,
                ..row()
            },
            KernelRow {
                out_width: 9,
                ..row()
            },
            KernelRow {
                flags: TRANSPOSE,
                ..row()
            },
            KernelRow {
                steps: MAX_CROP_STEPS as u32 + 1,
                ..row()
            },
            KernelRow { grey: 1, ..row() },
        ] {
            assert_eq!(used_by(&wrong, 1, &emission(), PLACES), None, "{wrong:?}");
        }
    }
}
