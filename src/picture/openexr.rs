//! Limits the memory of an OpenEXR file's decoder.
//!
//! Pure. The size of the image is that of its display window. The decoder decodes the data window,
//! in blocks whose size the header states, before it knows whether the file has the pixels. So both
//! windows must fit the limits. The decoder keeps kilobytes for each attribute, and a file may have
//! one in every 15 bytes. So attributes are counted before it reads them.

use std::io::{self, Read, Seek, SeekFrom};

use exr::meta::MetaData;

use super::limits::PictureLimits;
use super::reader::PictureReader;
use crate::error::{FaultKind, SampleFault};

/// Maximum attributes of all parts. Most parts have a dozen, and some have a hundred.
const MOST_ATTRIBUTES: u32 = 10_000;

/// The longest name of an attribute or a type in the format.
const LONGEST_NAME: usize = 255;

/// The flag in the version for a file of several parts.
const PARTS: u32 = 1 << 12;

/// Width and height of the first layer, and bytes per pixel of the layer with the most.
///
/// # Errors
/// A header that cannot be read or has too many attributes, or a layer over the limits.
pub(super) fn check_layers(
    file: &mut PictureReader<'_>,
    limits: &PictureLimits,
) -> Result<((u32, u32), u64), SampleFault> {
    if count_attributes(file).is_ok_and(|count| count > MOST_ATTRIBUTES) {
        let what = format!("OpenEXR of over {MOST_ATTRIBUTES} attributes: write it without them");
        return Err(FaultKind::TooLarge.fault(what));
    }
    let unreadable = |e| super::reader::unreadable(e);
    file.seek(SeekFrom::Start(0)).map_err(unreadable)?;
    let meta = MetaData::read_from_buffered(file, false).map_err(|e| {
        let kind = match &e {
            exr::error::Error::Io(_) => FaultKind::Truncated,
            exr::error::Error::NotSupported(_) => FaultKind::Unsupported,
            _ => FaultKind::Corrupt,
        };
        SampleFault::new(kind, format!("OpenEXR: {e}"))
    })?;
    let side = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let mut first = None;
    let mut most = 0;
    for header in &meta.headers {
        let size = &header.layer_size;
        let size = (side(size.width()), side(size.height()));
        limits.check_pixels("OpenEXR data window", size)?;
        let pixels = u64::from(size.0) * u64::from(size.1);
        let layer = pixels.saturating_mul(header.channels.bytes_per_pixel as u64);
        limits.check_scratch("OpenEXR layer", layer)?;
        first.get_or_insert(size);
        most = most.max(header.channels.bytes_per_pixel as u64);
    }
    Ok((first.unwrap_or_default(), most))
}

/// Counts attributes up to their end or the first invalid one. The decoder reports invalid
/// attributes. Stops at one over the
/// limit.
fn count_attributes(file: &mut PictureReader<'_>) -> io::Result<u32> {
    let mut head = [0; 8];
    file.read_exact(&mut head)?;
    let [.., v0, v1, v2, v3] = head;
    let has_parts = u32::from_le_bytes([v0, v1, v2, v3]) & PARTS != 0;
    let (mut count, mut after_an_end) = (0, false);
    while count <= MOST_ATTRIBUTES {
        match step_over_name(file)? {
            Some(0) if after_an_end || !has_parts => break,
            Some(0) => after_an_end = true,
            Some(_) if step_over_name(file)?.is_some() => {
                let mut len = [0; 4];
                file.read_exact(&mut len)?;
                file.seek_relative(i64::from(u32::from_le_bytes(len)))?;
                count += 1;
                after_an_end = false;
            }
            _ => break,
        }
    }
    Ok(count)
}

/// Reads past a name and the zero after it. Returns its length; `None` if it is too long.
fn step_over_name(file: &mut PictureReader<'_>) -> io::Result<Option<usize>> {
    for len in 0..=LONGEST_NAME {
        let mut byte = [0];
        file.read_exact(&mut byte)?;
        if byte == [0] {
            return Ok(Some(len));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::reader::ReadBudget;

    fn file(parts: u32, attributes: u32) -> Vec<u8> {
        let flags = if parts > 1 { PARTS } else { 0 };
        let mut bytes = b"\x76\x2f\x31\x01".to_vec();
        bytes.extend((2 | flags).to_le_bytes());
        for _ in 0..parts {
            for n in 0..attributes {
                bytes.extend(format!("{n:x}\0int\0\x04\0\0\0abcd").bytes());
            }
            bytes.push(0);
        }
        bytes.extend([0; 9]);
        bytes
    }

    fn checked(bytes: &[u8]) -> SampleFault {
        let mut file = PictureReader::of(bytes, &ReadBudget::of(1 << 20));
        check_layers(&mut file, &PictureLimits::default()).unwrap_err()
    }

    #[test]
    fn attributes_are_counted_in_all_parts() {
        let count = |bytes: &[u8]| {
            count_attributes(&mut PictureReader::of(bytes, &ReadBudget::of(1 << 20)))
        };
        for (parts, attributes) in [(1, 0), (1, 7), (3, 5)] {
            let bytes = file(parts, attributes);
            assert_eq!(count(&bytes).unwrap(), parts * attributes);
            for len in 0..bytes.len() - 9 {
                assert!(count(&bytes[..len]).is_err(), "{len}");
            }
        }
        for (parts, attributes) in [(1, MOST_ATTRIBUTES + 1), (2, MOST_ATTRIBUTES / 2 + 1)] {
            let fault = checked(&file(parts, attributes));
            assert_eq!(fault.kind, FaultKind::TooLarge, "{fault}");
            assert!(fault.reason.contains("10000 attributes"), "{fault}");
        }
        // The allowed number of attributes is left to the decoder.
        assert_ne!(checked(&file(1, MOST_ATTRIBUTES)).kind, FaultKind::TooLarge);
    }
}
