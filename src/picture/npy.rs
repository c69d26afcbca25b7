//! Raw pixels: arrays as NumPy writes them, `.npy`.
//!
//! Pure; used where a cache is built.

/// Bytes of a header that [`header`] writes: a block of a tar, so that pixels
/// begin at a multiple of it where the file does.
pub(crate) const HEADER_BYTES: usize = 512;

/// The header of a picture of `u8` of this height, width and channels, as NumPy
/// reads it: version 1.0, padded with blanks.
pub(crate) fn header((height, width): (u32, u32), channels: u32) -> [u8; HEADER_BYTES] {
    let text = format!(
        "{{'descr': '|u1', 'fortran_order': False, 'shape': ({height}, {width}, {channels}), }}"
    );
    let mut header = [b' '; HEADER_BYTES];
    header[..6].copy_from_slice(b"\x93NUMPY");
    header[6..8].copy_from_slice(&[1, 0]);
    header[8..10].copy_from_slice(&(HEADER_BYTES as u16 - 10).to_le_bytes());
    // Three numbers of 32 bits at most: far from the end.
    header[10..10 + text.len()].copy_from_slice(text.as_bytes());
    header[HEADER_BYTES - 1] = b'\n';
    header
}
