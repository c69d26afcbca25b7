//! Limits the colour profile in an icon.
//!
//! Pure. An icon may hold its image as a PNG. The decoder of icons unpacks that PNG's colour
//! profile without a limit, to a thousand times its length. The profile is not used. So a packed
//! profile must be short before the decoder reads it.

use std::io::{self, Read, Seek, SeekFrom};

use super::reader::PictureReader;
use crate::error::{FaultKind, SampleFault};

/// The longest packed profile in an icon. Unpacked it has at most 66 MB. A screen's profile has a
/// few KiB.
const LONGEST: u32 = 64 << 10;

const PNG: &[u8; 8] = b"\x89PNG\r\n\x1a\n";

/// Checks the length of an icon's colour profile.
///
/// # Errors
/// A profile over the limit. The decoder reports all other errors of the file.
pub(super) fn check_profile(file: &mut PictureReader<'_>) -> Result<(), SampleFault> {
    match profile_bytes(file) {
        Ok(bytes) if bytes > LONGEST => Err(FaultKind::TooLarge.fault(format!(
            "ICO with a colour profile of {bytes} bytes, over {LONGEST}: write it without one"
        ))),
        _ => Ok(()),
    }
}

/// Bytes of the first profile before the pixels. A second profile is an error of the decoder.
fn profile_bytes(file: &mut PictureReader<'_>) -> io::Result<u32> {
    let Some(offset) = offset_of_the_best(file)? else {
        return Ok(0);
    };
    file.seek(SeekFrom::Start(offset.into()))?;
    let mut head = [0; 8];
    file.read_exact(&mut head)?;
    if head != *PNG {
        return Ok(0);
    }
    loop {
        file.read_exact(&mut head)?;
        let [l0, l1, l2, l3, kind @ ..] = head;
        let len = u32::from_be_bytes([l0, l1, l2, l3]);
        match &kind {
            b"iCCP" => return Ok(len),
            b"IDAT" | b"IEND" => return Ok(0),
            // A checksum follows the content.
            _ => file.seek_relative(i64::from(len) + 4)?,
        }
    }
}

/// Offset of the image that the decoder takes: most bits first, then most pixels. Among equal ones
/// it is the last if no other is better, otherwise the first.
fn offset_of_the_best(file: &mut PictureReader<'_>) -> io::Result<Option<u32>> {
    let mut head = [0; 6];
    file.read_exact(&mut head)?;
    let [.., n0, n1] = head;
    let mut entries = Vec::new();
    for _ in 0..u16::from_le_bytes([n0, n1]) {
        let mut entry = [0; 16];
        file.read_exact(&mut entry)?;
        let [
            width,
            height,
            _,
            _,
            _,
            _,
            b0,
            b1,
            _,
            _,
            _,
            _,
            o0,
            o1,
            o2,
            o3,
        ] = entry;
        // 0 means 256.
        let side = |n: u8| u32::from(n.wrapping_sub(1)) + 1;
        let quality = (u16::from_le_bytes([b0, b1]), side(width) * side(height));
        entries.push((quality, u32::from_le_bytes([o0, o1, o2, o3])));
    }
    let Some(mut best) = entries.pop() else {
        return Ok(None);
    };
    for entry in entries {
        if entry.0 > best.0 {
            best = entry;
        }
    }
    Ok(Some(best.1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::reader::ReadBudget;

    fn icon(sides: &[u8], profile: usize) -> Vec<u8> {
        let mut bytes = vec![0, 0, 1, 0, sides.len() as u8, 0];
        let end = 6 + 16 * sides.len() as u32;
        for (i, &side) in sides.iter().enumerate() {
            bytes.extend([side, side, 0, 0, 1, 0, 32, 0, 0, 0, 0, 0]);
            // The smaller ones have invalid offsets.
            let is_best = side == 0 && i == 0;
            bytes.extend(if is_best { end } else { u32::MAX }.to_le_bytes());
        }
        bytes.extend(PNG);
        for (kind, len) in [(b"IHDR", 13), (b"tEXt", 5), (b"iCCP", profile)] {
            bytes.extend((len as u32).to_be_bytes());
            bytes.extend(kind);
            bytes.resize(bytes.len() + len + 4, 1);
        }
        bytes.extend(b"\0\0\0\x09IDAT");
        bytes
    }

    fn checked(bytes: &[u8]) -> Result<(), SampleFault> {
        check_profile(&mut PictureReader::of(bytes, &ReadBudget::of(1 << 20)))
    }

    #[test]
    fn a_profile_that_unpacks_to_no_end_is_refused() {
        for sides in [&[0u8][..], &[0, 16], &[0, 48, 32]] {
            assert_eq!(checked(&icon(sides, 3000)), Ok(()), "{sides:?}");
            assert_eq!(checked(&icon(sides, LONGEST as usize)), Ok(()));
            let fault = checked(&icon(sides, LONGEST as usize + 1)).unwrap_err();
            assert_eq!(fault.kind, FaultKind::TooLarge);
            assert!(fault.reason.contains("65537 bytes, over 65536"), "{fault}");
        }
    }

    #[test]
    fn what_is_cut_off_is_left_to_the_decoder() {
        let whole = icon(&[0, 16], 3000);
        for len in (0..whole.len()).step_by(7) {
            assert_eq!(checked(&whole[..len]), Ok(()), "{len}");
        }
        assert_eq!(checked(&[0, 0, 1, 0, 0, 0]), Ok(()));
    }
}
