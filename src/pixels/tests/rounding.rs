//! Rounding to float types by their definition, as a reference for tests.

use half::f16;

use crate::recipe::DataType;

/// Bits of the fraction, and the exponent of the smallest normal number.
fn form(dtype: DataType) -> (i32, i32) {
    match dtype {
        DataType::F16 => (10, -14),
        DataType::Bf16 => (7, -126),
        DataType::F32 => (23, -126),
        DataType::U8 => panic!("u8 are no floats"),
    }
}

/// Distance from a number of this size to the next.
pub(crate) fn step(v: f64, dtype: DataType) -> f64 {
    let (bits, least) = form(dtype);
    let exponent = if v == 0.0 { least } else { libm::ilogb(v) };
    libm::exp2(f64::from(exponent.max(least) - bits))
}

/// The nearest number of that type, halves to even. A number half a step or more beyond the largest
/// becomes infinite.
pub(crate) fn rounded(v: f32, dtype: DataType) -> f32 {
    if !v.is_finite() {
        return v;
    }
    let step = step(v.into(), dtype);
    let rounded = (f64::from(v) / step).round_ties_even() * step;
    match dtype {
        DataType::F16 if rounded.abs() >= 65536.0 => f32::INFINITY.copysign(v),
        // f32 and bf16 have the same exponent range.
        _ => rounded as f32,
    }
}

/// Encodes the values as elements of that type.
pub(crate) fn elements(values: impl IntoIterator<Item = f32>, dtype: DataType) -> Vec<u8> {
    let element = |v: f32| match (rounded(v, dtype), dtype) {
        (v, DataType::F32) => v.to_ne_bytes().to_vec(),
        (v, DataType::Bf16) => ((v.to_bits() >> 16) as u16).to_ne_bytes().to_vec(),
        // Exact: the value is already rounded to the type.
        (v, _) => f16::from_f32(v).to_ne_bytes().to_vec(),
    };
    values.into_iter().flat_map(element).collect()
}

/// Decodes elements to numbers.
pub(crate) fn numbers(bytes: &[u8], dtype: DataType) -> Vec<f64> {
    let number = |element: &[u8]| match *element {
        [level] => level.into(),
        [a, b] if dtype == DataType::F16 => f16::from_ne_bytes([a, b]).into(),
        [a, b] => f32::from_bits(u32::from(u16::from_ne_bytes([a, b])) << 16).into(),
        [a, b, c, d] => f32::from_ne_bytes([a, b, c, d]).into(),
        _ => panic!("{dtype} has no {} bytes", element.len()),
    };
    bytes.chunks_exact(dtype.size()).map(number).collect()
}

/// Results of `Tensor.to(torch.bfloat16)` in torch 2.15.0 for the bits of an f32.
#[test]
fn bf16_are_rounded_as_by_torch() {
    for (from, to) in [
        (0x3f80_0000, 0x3f80),
        (0x3f80_8000, 0x3f80),
        (0x3f80_8001, 0x3f81),
        (0x3f80_7fff, 0x3f80),
        (0x3f81_8000, 0x3f82),
        (0x3f81_7fff, 0x3f81),
        (0xbf81_8000, 0xbf82),
        (0x3fff_8000, 0x4000),
        (0x7f7f_7fff, 0x7f7f),
        (0x7f7f_8000, 0x7f80),
        (0xff7f_ffff, 0xff80),
        (0x7f80_0000, 0x7f80),
        (0xff80_0000, 0xff80),
        (0x0000_0000, 0x0000),
        (0x8000_0000, 0x8000),
        (0x0000_0001, 0x0000),
        (0x0000_8000, 0x0000),
        (0x0000_8001, 0x0001),
        (0x0001_8000, 0x0002),
        (0x007f_ffff, 0x0080),
        (0x807f_ffff, 0x8080),
        (0x437f_0000, 0x437f),
        (0x4380_8000, 0x4380),
    ] {
        let got = rounded(f32::from_bits(from), DataType::Bf16).to_bits();
        assert_eq!(got, to << 16, "{from:#010x}");
    }
}

/// Every number of a type rounds to itself.
#[test]
fn numbers_stay_what_they_are() {
    for dtype in [DataType::F16, DataType::Bf16] {
        for bits in 0..=u16::MAX {
            let bytes = bits.to_ne_bytes();
            let v = numbers(&bytes, dtype)[0] as f32;
            if !v.is_nan() {
                assert_eq!(elements([v], dtype), bytes, "{dtype} {bits:#06x}");
            }
        }
    }
}
