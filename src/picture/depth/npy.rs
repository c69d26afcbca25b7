//! Depths as an array of NumPy: any numbers of shape (H, W) or (H, W, 1).

use half::f16;

use super::depth_header::corrupt;
use crate::error::{FaultKind, SampleFault};
use crate::picture::npy::NpyDepth;

pub(super) fn read(file: &[u8], levels: &mut Vec<f32>) -> Result<(), SampleFault> {
    read_of(file, 1, levels)
}

/// The same for an array with this many numbers for each pixel, which `levels` gets together.
pub(in crate::picture) fn read_of(
    file: &[u8],
    channels: usize,
    levels: &mut Vec<f32>,
) -> Result<(), SampleFault> {
    let numbers = NpyDepth::read_of(file, channels as u64)?;
    let (width, height) = (numbers.size.0 as usize, numbers.size.1 as usize);
    let data = file.get(numbers.data_at as usize..).unwrap_or_default();
    // `at`: the number of a column and a channel in its row.
    let place = |row: usize, at: usize| match numbers.fortran_order {
        true => (at % channels * width + at / channels) * height + row,
        false => row * width * channels + at,
    };
    macro_rules! each {
        ($number:ty, $bytes:literal, $to:expr) => {{
            let (all, _) = data.as_chunks::<$bytes>();
            if all.len() < width * height * channels {
                return Err(corrupt("ends before its last number"));
            }
            for row in 0..height {
                levels.extend((0..width * channels).map(|at| {
                    let bytes = all[place(row, at)];
                    let number = match numbers.is_big_endian {
                        true => <$number>::from_be_bytes(bytes),
                        false => <$number>::from_le_bytes(bytes),
                    };
                    let to: fn($number) -> f32 = $to;
                    to(number)
                }));
            }
        }};
    }
    match (numbers.kind, numbers.bytes) {
        (b'f', 2) => each!(f16, 2, f16::to_f32),
        (b'f', 4) => each!(f32, 4, |v| v),
        (b'f', 8) => each!(f64, 8, |v| v as f32),
        (b'u' | b'b', 1) => each!(u8, 1, f32::from),
        (b'u', 2) => each!(u16, 2, f32::from),
        (b'u', 4) => each!(u32, 4, |v| v as f32),
        (b'u', 8) => each!(u64, 8, |v| v as f32),
        (b'i', 1) => each!(i8, 1, f32::from),
        (b'i', 2) => each!(i16, 2, f32::from),
        (b'i', 4) => each!(i32, 4, |v| v as f32),
        (b'i', 8) => each!(i64, 8, |v| v as f32),
        (kind, bytes) => {
            let what = format!(
                "the depth has numbers of type {}{bytes}: use f2, f4, f8, u1 to u8 or i1 to i8",
                char::from(kind)
            );
            return Err(FaultKind::Unsupported.fault(what));
        }
    }
    Ok(())
}
