//! One header of a tar archive: a block of 512 bytes, checked and split into its fields.
//!
//! Runs in the consumer. Works on one block alone. `walk` combines GNU and pax headers with the
//! member that they describe.

use std::fmt;

/// Size of a block, bytes. Headers begin at multiples of it, and data too.
pub(crate) const BLOCK: u64 = 512;

/// A header's bytes.
pub(crate) type TarBlock = [u8; BLOCK as usize];

const NAME: std::ops::Range<usize> = 0..100;
const SIZE: std::ops::Range<usize> = 124..136;
const CHECKSUM: std::ops::Range<usize> = 148..156;
const FLAG: usize = 156;
const MAGIC: std::ops::Range<usize> = 257..263;
const PREFIX: std::ops::Range<usize> = 345..500;
/// In GNU's old header of a sparse file: whether another block of the map follows.
const SPARSE_FOLLOWS: usize = 482;
/// In a block of such a map: whether another one follows.
pub(crate) const SPARSE_CONTINUES: usize = 504;

/// The kind of entry that a header describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeaderKind {
    /// A regular file.
    File,
    /// GNU `L`: its data are the name of the next member.
    LongName,
    /// GNU `K`: its data are the target of the next entry, a link.
    LongLink,
    /// Pax `x`: its data describe the next member.
    Pax,
    /// Pax `g`: its data describe all members that follow.
    PaxGlobal,
    /// A hard or symbolic link: no data follow, whatever its size field says.
    Link,
    /// A folder, device or FIFO: no data follow.
    Bare,
    /// GNU `S`, a sparse file. With `more_map`, more blocks of its map follow the header. Its data
    /// are not one range of the file.
    Sparse { more_map: bool },
    /// Any other kind: its data are skipped.
    Other,
}

/// A header that passed its checks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TarHeader<'a> {
    block: &'a TarBlock,
    pub(crate) kind: HeaderKind,
    /// Bytes of data after it, unless a pax header states another size.
    pub(crate) size: u64,
}

/// Why a block is not a header, or which field of it is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeaderFault {
    /// The sum of its bytes differs from its checksum field.
    Checksum,
    /// Its size is not a number, or larger than any file.
    Size,
    /// The name is empty, or has a NUL byte.
    Name,
    /// A name, or pax records, of more than 64 KiB.
    TooLong { bytes: u64 },
    /// Malformed pax records.
    Pax,
}

impl fmt::Display for HeaderFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Checksum => f.write_str("its checksum is wrong"),
            Self::Size => f.write_str("its size is not a number"),
            Self::Name => f.write_str("it has no name, or one with a NUL byte"),
            Self::TooLong { bytes } => {
                write!(f, "its name or pax records have {bytes} bytes, over 64 KiB")
            }
            Self::Pax => f.write_str("its pax records are malformed"),
        }
    }
}

impl<'a> TarHeader<'a> {
    /// `None` for a block of zeros, which ends an archive.
    pub(crate) fn parse(block: &'a TarBlock) -> Result<Option<Self>, HeaderFault> {
        if is_zero(block) {
            return Ok(None);
        }
        if !checksum_is_right(block) {
            return Err(HeaderFault::Checksum);
        }
        let size = number(&block[SIZE]).ok_or(HeaderFault::Size)?;
        let kind = match block[FLAG] {
            0 | b'0' | b'7' => HeaderKind::File,
            b'1' | b'2' => HeaderKind::Link,
            b'3'..=b'6' => HeaderKind::Bare,
            b'L' => HeaderKind::LongName,
            b'K' => HeaderKind::LongLink,
            b'x' | b'X' => HeaderKind::Pax,
            b'g' => HeaderKind::PaxGlobal,
            b'S' => HeaderKind::Sparse {
                more_map: block[SPARSE_FOLLOWS] != 0,
            },
            _ => HeaderKind::Other,
        };
        Ok(Some(Self { block, kind, size }))
    }

    /// Replaces `into` with the name in this header alone.
    pub(crate) fn write_name(&self, into: &mut Vec<u8>) {
        into.clear();
        let prefix = text(&self.block[PREFIX]);
        // GNU's magic ends in blanks. GNU keeps times in the prefix field of ustar.
        if &self.block[MAGIC] == b"ustar\0" && !prefix.is_empty() {
            into.extend_from_slice(prefix);
            into.push(b'/');
        }
        into.extend_from_slice(text(&self.block[NAME]));
    }

    /// Whether the name fills its field, so that it may be cut.
    pub(crate) fn name_may_be_cut(&self) -> bool {
        !self.block[NAME].contains(&0)
    }

    /// Whether a slash at the end of the name makes it a folder, as before ustar.
    pub(crate) fn may_be_old_folder(&self) -> bool {
        self.block[FLAG] == 0
    }

    /// Whether the block has the magic of ustar, pax or GNU. This is enough to find a header among
    /// other bytes.
    pub(crate) fn has_magic(&self) -> bool {
        self.block[MAGIC].starts_with(b"ustar")
    }
}

/// Whether an invalid block may have been a header that describes the next entry. Decides by its
/// flag, which may be intact.
pub(crate) fn may_extend_next(block: &TarBlock) -> bool {
    !matches!(block[FLAG], 0 | b'0'..=b'7')
}

pub(crate) fn is_zero(block: &TarBlock) -> bool {
    // Most other blocks differ in the first byte.
    block[0] == 0 && block.iter().all(|&b| b == 0)
}

/// Some old writers summed signed bytes, so both sums are accepted.
fn checksum_is_right(block: &TarBlock) -> bool {
    let Some(stated) = number(&block[CHECKSUM]) else {
        return false;
    };
    let (mut plain, mut high) = (0u64, 0u64);
    for &byte in block {
        plain += u64::from(byte);
        high += u64::from(byte >> 7);
    }
    for &byte in &block[CHECKSUM] {
        plain -= u64::from(byte);
        high -= u64::from(byte >> 7);
    }
    // The checksum field itself counts as blanks.
    plain += 8 * u64::from(b' ');
    stated == plain || stated + 256 * high == plain
}

/// The bytes before the first NUL.
fn text(field: &[u8]) -> &[u8] {
    field.split(|&b| b == 0).next().unwrap_or_default()
}

/// Parses octal digits up to a NUL, with blanks around them. No digits mean 0. If the first bit is
/// set, the number is big-endian base 256, and must not be negative.
fn number(field: &[u8]) -> Option<u64> {
    let (&first, rest) = field.split_first()?;
    if first & 0x80 != 0 {
        let first = u64::from(first & 0x7f);
        return rest
            .iter()
            .try_fold(first, |sum, &byte| {
                sum.checked_mul(256)?.checked_add(u64::from(byte))
            })
            .filter(|&sum| i64::try_from(sum).is_ok());
    }
    text(field)
        .trim_ascii()
        .iter()
        .try_fold(0u64, |sum, digit| {
            let digit = digit.wrapping_sub(b'0');
            (digit < 8).then_some(())?;
            sum.checked_mul(8)?.checked_add(u64::from(digit))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(name: &str, size: u64, flag: u8) -> TarBlock {
        let mut header = tar::Header::new_ustar();
        header.set_path(name).unwrap();
        header.set_size(size);
        header.set_entry_type(tar::EntryType::new(flag));
        header.set_cksum();
        *header.as_bytes()
    }

    fn summed(mut block: TarBlock) -> TarBlock {
        let mut header = tar::Header::new_old();
        header.as_mut_bytes().copy_from_slice(&block);
        header.set_cksum();
        block.copy_from_slice(header.as_bytes());
        block
    }

    fn name(block: &TarBlock) -> Vec<u8> {
        let mut name = b"old".to_vec();
        TarHeader::parse(block)
            .unwrap()
            .unwrap()
            .write_name(&mut name);
        name
    }

    #[test]
    fn a_header_says_kind_size_and_name() {
        let plain = block("a/b.jpg", 1234, b'0');
        let header = TarHeader::parse(&plain).unwrap().unwrap();
        assert_eq!((header.kind, header.size), (HeaderKind::File, 1234));
        assert_eq!(name(&plain), b"a/b.jpg");
        assert!(header.has_magic() && !header.name_may_be_cut());
        assert!(!header.may_be_old_folder());
        for (flag, kind) in [
            (b'7', HeaderKind::File),
            (0, HeaderKind::File),
            (b'1', HeaderKind::Link),
            (b'2', HeaderKind::Link),
            (b'5', HeaderKind::Bare),
            (b'L', HeaderKind::LongName),
            (b'K', HeaderKind::LongLink),
            (b'x', HeaderKind::Pax),
            (b'g', HeaderKind::PaxGlobal),
            (b'S', HeaderKind::Sparse { more_map: false }),
            (b'V', HeaderKind::Other),
            (0xff, HeaderKind::Other),
        ] {
            let block = block("a", 0, flag);
            assert_eq!(
                TarHeader::parse(&block).unwrap().unwrap().kind,
                kind,
                "{flag}"
            );
        }
        let folder = summed({
            let mut b = [0; 512];
            b[..2].copy_from_slice(b"d/");
            b
        });
        let header = TarHeader::parse(&folder).unwrap().unwrap();
        assert!(header.may_be_old_folder() && !header.has_magic());
        assert!(TarHeader::parse(&[0; 512]).unwrap().is_none());
    }

    #[test]
    fn the_prefix_of_ustar_is_part_of_the_name_and_gnus_times_are_not() {
        let long = format!("{}/{}.jpg", "d".repeat(120), "f".repeat(90));
        let ustar = block(&long, 0, b'0');
        assert_eq!(name(&ustar), long.as_bytes());
        let mut gnu = ustar;
        gnu[MAGIC].copy_from_slice(b"ustar ");
        let gnu = summed(gnu);
        assert_eq!(name(&gnu), format!("{}.jpg", "f".repeat(90)).as_bytes());
        let full = block(&"f".repeat(100), 0, b'0');
        assert!(TarHeader::parse(&full).unwrap().unwrap().name_may_be_cut());
    }

    #[test]
    fn sizes_are_octal_or_base_256() {
        let size = |field: &[u8; 12]| {
            let mut b = block("a", 0, b'0');
            b[SIZE].copy_from_slice(field);
            TarHeader::parse(&summed(b)).map(|h| h.unwrap().size)
        };
        assert_eq!(size(b"00000001234\0"), Ok(0o1234));
        assert_eq!(size(b"     1234   "), Ok(0o1234));
        assert_eq!(size(b"777777777777"), Ok((8u64 << 33) - 1));
        assert_eq!(size(&[0; 12]), Ok(0));
        assert_eq!(size(b"\x80\0\0\0\0\0\0\x05\0\0\0\x01"), Ok((5 << 32) + 1));
        for bad in [
            b"0000000123x\0",
            b"00000001238\0",
            b"-0000001234\0",
            b"0001 000234\0",
            b"\x80\0\0\0\xff\0\0\x05\0\0\0\x01",
            b"\x80\0\0\x01\0\0\0\x05\0\0\0\x01",
            &[0xff; 12],
        ] {
            assert_eq!(size(bad), Err(HeaderFault::Size), "{bad:?}");
        }
    }

    #[test]
    fn every_changed_byte_is_seen() {
        let good = block("a/b.jpg", 1234, b'0');
        for at in 0..512 {
            let mut bad = good;
            bad[at] = bad[at].wrapping_add(1);
            let header = TarHeader::parse(&bad);
            // The NUL and the blank of the checksum field mean nothing.
            assert!(header.is_err() || CHECKSUM.contains(&at), "{at}");
        }
    }

    #[test]
    fn a_sum_of_signed_bytes_is_right_too() {
        let mut old = block("a", 0, b'0');
        old[0..2].copy_from_slice(b"\xe9\xff");
        let signed: i64 = old
            .iter()
            .enumerate()
            .map(|(i, &b)| match i {
                148..156 => 32,
                _ => i64::from(b as i8),
            })
            .sum();
        old[CHECKSUM].copy_from_slice(format!("{signed:06o}\0 ").as_bytes());
        assert_eq!(name(&old), b"\xe9\xff");
        old[CHECKSUM].copy_from_slice(format!("{:06o}\0 ", signed + 256).as_bytes());
        assert_eq!(TarHeader::parse(&old).unwrap_err(), HeaderFault::Checksum);
    }
}
