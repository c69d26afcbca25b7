//! Converts differences between neighbours to samples.
//!
//! Pure, one row at a time, in place.

use super::directory::ByteOrder;

/// For whole numbers: each becomes the sum of those before it. `step` is the number of samples per
/// pixel.
pub(super) fn sum_up(row: &mut [u8], bits: u16, step: usize, order: ByteOrder) {
    match bits {
        8 => {
            for at in step..row.len() {
                row[at] = row[at].wrapping_add(row[at - step]);
            }
        }
        16 => sum_words::<2>(row, step, order),
        32 => sum_words::<4>(row, step, order),
        _ => sum_words::<8>(row, step, order),
    }
}

fn sum_words<const N: usize>(row: &mut [u8], step: usize, order: ByteOrder) {
    let words = row.as_chunks_mut::<N>().0;
    for at in step..words.len() {
        let before = words[at - step];
        let mut carry = 0;
        for i in 0..N {
            // From the lowest byte up.
            let i = match order {
                ByteOrder::Little => i,
                ByteOrder::Big => N - 1 - i,
            };
            let sum = u16::from(words[at][i]) + u16::from(before[i]) + carry;
            words[at][i] = sum as u8;
            carry = sum >> 8;
        }
    }
}

/// For floats: sums up bytes. The bytes of a row are grouped by significance, the highest first.
/// Afterwards they are big-endian numbers. `spare` has the row's length.
pub(super) fn sum_up_floats(row: &mut [u8], bits: u16, step: usize, spare: &mut [u8]) {
    sum_up(row, 8, step, ByteOrder::Big);
    let bytes = usize::from(bits) / 8;
    let numbers = row.len() / bytes;
    for (at, number) in spare.chunks_exact_mut(bytes).enumerate().take(numbers) {
        for (rank, byte) in number.iter_mut().enumerate() {
            *byte = row[rank * numbers + at];
        }
    }
    row.copy_from_slice(&spare[..row.len()]);
}
