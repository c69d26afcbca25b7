//! Headers of compressed frames: the memory that their decoders keep beside the unpacked bytes.
//!
//! Pure, on untrusted bytes. The numbers are those of the crates ruzstd and lz4_flex.

/// The most bytes of a header that are read.
pub(crate) const FRAME_HEADER: usize = 18;

const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Flag of a header: the window is the whole content.
const SINGLE_SEGMENT: u8 = 0x20;
/// Flag of a header: its content size has 8 bytes.
#[cfg(feature = "parquet")]
const WIDE_SIZE: u8 = 0xc0;
/// Most bytes of a block of Zstandard.
const ZSTD_BLOCK: u64 = 128 << 10;
/// Most bytes of the literals, the sequences and the tables of such a block. Measured at level 19:
/// 2.2 MiB.
const ZSTD_TABLES: u64 = 3 << 20;
/// A frame without content. A decoder that has read it allocates the next window at once.
#[cfg(feature = "parquet")]
pub(crate) const ZSTD_EMPTY: [u8; 6] = [0x28, 0xb5, 0x2f, 0xfd, SINGLE_SEGMENT, 0];

const LZ4_MAGIC: [u8; 4] = [0x04, 0x22, 0x4d, 0x18];
/// The most memory of a decoder of LZ4 frames: two blocks and a packed one, of 8 MiB each.
pub(crate) const MOST_LZ4: u64 = 32 << 20;

/// The header of a frame of Zstandard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ZstdHeader {
    /// Its length.
    pub(crate) bytes: usize,
    /// Bytes of content that the decoder must keep.
    pub(crate) window: u64,
    flags: u8,
    dictionary: [u8; 4],
}

impl ZstdHeader {
    /// The header at the start of `bytes`. `None` if there is none.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let rest = bytes.strip_prefix(&ZSTD_MAGIC)?;
        let (flags, mut rest) = rest.split_first()?;
        let is_single = flags & SINGLE_SEGMENT != 0;
        let mut window = None;
        if !is_single {
            let (size, after) = rest.split_first()?;
            rest = after;
            let base = 1u64 << (10 + (size >> 3));
            window = Some(base + base / 8 * u64::from(size & 7));
        }
        let (number, rest) = rest.split_at_checked(dictionary_bytes(*flags))?;
        let mut dictionary = [0; 4];
        dictionary[..number.len()].copy_from_slice(number);
        let size_bytes = match flags >> 6 {
            0 => usize::from(is_single),
            1 => 2,
            2 => 4,
            _ => 8,
        };
        let (size, rest) = rest.split_at_checked(size_bytes)?;
        let mut word = [0; 8];
        word[..size.len()].copy_from_slice(size);
        let size = u64::from_le_bytes(word).saturating_add(if size_bytes == 2 { 256 } else { 0 });
        Some(Self {
            bytes: bytes.len() - rest.len(),
            window: window.unwrap_or(size),
            flags: *flags,
            dictionary,
        })
    }

    /// The header of the same frame for a page of `unpacked` bytes, which needs no larger window than
    /// itself. `None` if the window is no larger.
    #[cfg(feature = "parquet")]
    pub(crate) fn for_page(&self, unpacked: u64) -> Option<Vec<u8>> {
        let content = largest_window(unpacked);
        (self.window > content).then(|| self.with_window(content))
    }

    #[cfg(feature = "parquet")]
    fn with_window(&self, content: u64) -> Vec<u8> {
        let flags = WIDE_SIZE | SINGLE_SEGMENT | (self.flags & 7);
        let dictionary = &self.dictionary[..dictionary_bytes(self.flags)];
        [
            &ZSTD_MAGIC[..],
            &[flags],
            dictionary,
            &content.to_le_bytes(),
        ]
        .concat()
    }
}

fn dictionary_bytes(flags: u8) -> usize {
    [0, 1, 2, 4][usize::from(flags & 3)]
}

/// The largest window of a page of `unpacked` bytes. It has room for a block, so that a page with too
/// many bytes ends where the page ends.
fn largest_window(unpacked: u64) -> u64 {
    unpacked.max(ZSTD_BLOCK)
}

/// Most bytes that the decoder of Zstandard keeps beside `unpacked` bytes of content.
pub(crate) fn zstd_bytes(window: u64, unpacked: u64) -> u64 {
    let largest = largest_window(unpacked);
    let window = window.min(largest);
    let allocated = zstd_buffer(window);
    // The decoder adds a block to the window before it returns bytes.
    let buffer = match largest.min(window.saturating_add(ZSTD_BLOCK)) < allocated {
        true => allocated,
        // The buffer doubles once, beside the old one.
        false => allocated.saturating_mul(3),
    };
    let tables = unpacked.saturating_mul(16).saturating_add(64 << 10);
    buffer.saturating_add(tables.min(ZSTD_TABLES))
}

/// Bytes that ruzstd allocates for a window: a power of two, and two blocks.
fn zstd_buffer(window: u64) -> u64 {
    let slack = 2 * ZSTD_BLOCK;
    let (more, slack) = match window.checked_sub(slack) {
        None | Some(0) => (window, 0),
        Some(more) => (more, slack),
    };
    // No page is as long as a number without a next power.
    let allocated = more.checked_next_power_of_two().unwrap_or(u64::MAX);
    allocated.saturating_add(slack + 1)
}

/// Most bytes that the decoder of LZ4 frames keeps, by the header at the start of `bytes`.
pub(crate) fn lz4_bytes(bytes: &[u8]) -> Option<u64> {
    let rest = bytes.strip_prefix(&LZ4_MAGIC)?;
    let size = (rest.get(1)? >> 4) & 7;
    let block: u64 = match size {
        4..=7 => 1 << (8 + 2 * size),
        _ => return None,
    };
    // Two blocks with the 64 KiB before them, and a packed one.
    Some(3 * block + (64 << 10))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_those_that_headers_state() {
        let window = |bytes: &[u8]| {
            let header = [&ZSTD_MAGIC, bytes, &[9; 3]].concat();
            ZstdHeader::parse(&header).map(|header| (header.window, header.bytes))
        };
        // Level 1 of zstd: 512 KiB, and a content size of 4 bytes.
        let of_level = [0x80, 9 << 3, 0, 0, 0x40, 0];
        assert_eq!(window(&of_level), Some((512 << 10, 10)));
        assert_eq!(window(&[0, 17 << 3]), Some((128 << 20, 6)));
        assert_eq!(window(&[0, 10 << 3 | 3]), Some(((1 << 20) + (3 << 17), 6)));
        // One segment, with sizes of 1, 2, 4 and 8 bytes.
        assert_eq!(window(&[0x20, 200]), Some((200, 6)));
        assert_eq!(window(&[0x60, 1, 2]), Some((513 + 256, 7)));
        assert_eq!(window(&[0xa0, 1, 0, 0, 1]), Some(((1 << 24) + 1, 9)));
        let wide = [0xe3, 7, 7, 7, 7, 2, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(window(&wide), Some((2, 17)));
        assert_eq!(ZstdHeader::parse(&ZSTD_MAGIC), None);
        assert_eq!(ZstdHeader::parse(b"other bytes"), None);
    }

    #[test]
    #[cfg(feature = "parquet")]
    fn a_header_with_another_window_keeps_the_rest() {
        let header = [&ZSTD_MAGIC[..], &[0x06, 17 << 3, 5, 6]].concat();
        let header = ZstdHeader::parse(&header).unwrap();
        let other = ZstdHeader::parse(&header.with_window(1000)).unwrap();
        assert_eq!((other.window, other.dictionary), (1000, [5, 6, 0, 0]));
        // The flag of the checksum, and the length of the dictionary's number.
        assert_eq!(other.flags & 7, 6);
    }

    #[test]
    fn blocks_of_lz4_are_those_that_headers_state() {
        let of = |size: u8| lz4_bytes(&[&LZ4_MAGIC[..], &[0x60, size << 4, 0]].concat());
        assert_eq!(of(4), Some((3 * 64 + 64) << 10));
        assert_eq!(of(7), Some((12 << 20) + (64 << 10)));
        assert_eq!(of(3), None);
        assert_eq!(lz4_bytes(&LZ4_MAGIC), None);
        assert!(of(7).unwrap() <= MOST_LZ4);
    }

    #[test]
    fn no_length_overflows() {
        assert!(zstd_bytes(0, 0) < 1 << 20);
        for unpacked in [0, 1, 1 << 20, 512 << 20, u64::MAX] {
            for window in [0, 1, 1 << 20, u64::MAX] {
                assert!(zstd_bytes(window, unpacked) >= window.min(unpacked));
            }
        }
        // A page in many windows takes little more than itself, and a page in one its buffer.
        assert!(zstd_bytes(512 << 10, 100 << 20) < 5 << 20);
        assert!(zstd_bytes(u64::MAX, 1 << 20) < 5 << 20);
    }
}
