//! Writes a shard: its members, one after the other, and the end of the archive.
//!
//! Runs in the consumer. Only names and contents decide the bytes. No time, user or host is
//! written, so the same members make the same file. Never in here: the meaning of a member's data,
//! and the place of the file.

use std::hash::Hasher as _;
use std::io::{self, Read, Write};

use twox_hash::XxHash3_64;
use twox_hash::xxhash3_128::Hasher;

use crate::data::shard::header::BLOCK;

/// Length of the two blocks of zeros that end an archive, bytes.
pub(crate) const END: u64 = 2 * BLOCK;

/// The longest name that fits the name field. A longer one goes into a pax record before the
/// header.
const NAME_FIELD: usize = 100;

/// Bytes of a member that are copied at a time.
const PIECE: usize = 1 << 20;

/// The smallest size that does not fit into eleven octal digits.
const OCTAL_END: u64 = 1 << 33;

/// The headers before a member's data. One ustar header: a regular file, mode 0644, with user,
/// group and time 0. If `name` is longer than 100 bytes, a pax header comes before it. The length
/// is a multiple of 512 bytes.
///
/// `name` must not contain NUL bytes. Sizes of 8 GiB and more are written in base 256, which GNU
/// tar, Python's tarfile and the `tar` crate read.
pub(crate) fn encode_header(name: &str, size: u64) -> Vec<u8> {
    let name = name.as_bytes();
    if name.len() <= NAME_FIELD {
        return one_header(name, size, b'0').to_vec();
    }
    let record = pax_record(b"path", name);
    let mut bytes = Vec::new();
    bytes.extend(one_header(b"PaxHeaders/path", record.len() as u64, b'x'));
    bytes.extend_from_slice(&record);
    bytes.resize(bytes.len().next_multiple_of(BLOCK as usize), 0);
    bytes.extend(one_header(&name[..NAME_FIELD], size, b'0'));
    bytes
}

/// `LENGTH KEY=VALUE\n`, where LENGTH counts itself.
fn pax_record(key: &[u8], value: &[u8]) -> Vec<u8> {
    let rest = key.len() + value.len() + 3;
    let mut length = rest + 1;
    while length != rest + length.to_string().len() {
        length = rest + length.to_string().len();
    }
    [length.to_string().as_bytes(), b" ", key, b"=", value, b"\n"].concat()
}

fn one_header(name: &[u8], size: u64, kind: u8) -> [u8; BLOCK as usize] {
    let mut h = [0; BLOCK as usize];
    h[..name.len()].copy_from_slice(name);
    h[100..108].copy_from_slice(b"0000644\0");
    h[108..116].copy_from_slice(b"0000000\0");
    h[116..124].copy_from_slice(b"0000000\0");
    if size < OCTAL_END {
        h[124..136].copy_from_slice(format!("{size:011o}\0").as_bytes());
    } else {
        h[124] = 0x80;
        h[128..136].copy_from_slice(&size.to_be_bytes());
    }
    h[136..148].copy_from_slice(b"00000000000\0");
    // The sum is taken with blanks in the checksum field.
    h[148..156].fill(b' ');
    h[156] = kind;
    h[257..265].copy_from_slice(b"ustar\x0000");
    let sum: u32 = h.iter().map(|&b| u32::from(b)).sum();
    h[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    h
}

/// Number of zeros after `size` bytes of data, up to the next block.
pub(crate) fn padding(size: u64) -> u64 {
    size.wrapping_neg() % BLOCK
}

/// Bytes that a member takes in a shard: header, data and padding.
pub(crate) fn member_bytes(name: &str, size: u64) -> u64 {
    let header = encode_header(name, 0).len() as u64;
    header.saturating_add(size).saturating_add(padding(size))
}

/// Where a member was written, and the hash of its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MemberPlacement {
    /// Offset of its first header in the shard.
    pub(crate) header_at: u64,
    /// Offset of its data in the shard.
    pub(crate) data_at: u64,
    pub(crate) size: u64,
    /// XXH3-64 of the data.
    pub(crate) hash: u64,
}

/// A finished shard.
#[derive(Debug)]
pub(crate) struct ShardOutput<W> {
    pub(crate) out: W,
    /// Length of the file.
    pub(crate) bytes: u64,
    /// XXH3-128 of the whole file.
    pub(crate) hash: u128,
}

/// Writes one shard, member by member.
pub(crate) struct ShardWriter<W> {
    out: W,
    at: u64,
    hasher: Hasher,
}

impl<W: Write> ShardWriter<W> {
    /// Starts an empty shard in `out`, which must be at the beginning of a file.
    pub(crate) fn new(out: W) -> Self {
        Self {
            out,
            at: 0,
            hasher: Hasher::new(),
        }
    }

    /// Bytes written so far, without the end of the archive.
    pub(crate) fn bytes(&self) -> u64 {
        self.at
    }

    /// Appends a member.
    ///
    /// # Errors
    /// When `out` fails. Nothing more may be written after that.
    pub(crate) fn append(&mut self, name: &str, data: &[u8]) -> io::Result<MemberPlacement> {
        let size = data.len() as u64;
        let header_at = self.at;
        self.write(&encode_header(name, size))?;
        let data_at = self.at;
        self.write(data)?;
        self.write(&[0; BLOCK as usize][..padding(size) as usize])?;
        Ok(MemberPlacement {
            header_at,
            data_at,
            size,
            hash: XxHash3_64::oneshot(data),
        })
    }

    /// Appends a member of `size` bytes, which it reads from `data`.
    ///
    /// # Errors
    /// When `out` or `data` fails, or `data` ends too early. Nothing more may be written after that.
    pub(crate) fn append_from(
        &mut self,
        name: &str,
        size: u64,
        data: &mut impl Read,
    ) -> io::Result<MemberPlacement> {
        let header_at = self.at;
        self.write(&encode_header(name, size))?;
        let data_at = self.at;
        let (mut hasher, mut piece) = (XxHash3_64::new(), vec![0; PIECE]);
        let mut left = size;
        while left > 0 {
            let piece = &mut piece[..left.min(PIECE as u64) as usize];
            data.read_exact(piece)?;
            hasher.write(piece);
            self.write(piece)?;
            left -= piece.len() as u64;
        }
        self.write(&[0; BLOCK as usize][..padding(size) as usize])?;
        Ok(MemberPlacement {
            header_at,
            data_at,
            size,
            hash: hasher.finish(),
        })
    }

    /// Ends the archive. The bytes are in `out`, but not flushed or synced.
    ///
    /// # Errors
    /// When `out` fails.
    pub(crate) fn finish(mut self) -> io::Result<ShardOutput<W>> {
        self.write(&[0; END as usize])?;
        Ok(ShardOutput {
            hash: self.hasher.finish_128(),
            out: self.out,
            bytes: self.at,
        })
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)?;
        self.hasher.write(bytes);
        self.at += bytes.len() as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn shard(members: &[(String, Vec<u8>)]) -> (Vec<u8>, Vec<MemberPlacement>) {
        let mut writer = ShardWriter::new(Vec::new());
        let placed = members
            .iter()
            .map(|(name, data)| {
                let at = writer.bytes();
                let placed = writer.append(name, data).unwrap();
                assert_eq!(placed.header_at, at);
                assert_eq!(writer.bytes() - at, member_bytes(name, data.len() as u64));
                placed
            })
            .collect();
        let finished = writer.finish().unwrap();
        assert_eq!(finished.bytes, finished.out.len() as u64);
        assert_eq!(
            finished.hash,
            twox_hash::XxHash3_128::oneshot(&finished.out)
        );
        (finished.out, placed)
    }

    #[test]
    fn the_tar_crate_reads_what_was_written_at_the_offsets_told() {
        let lengths = [1, 99, 100, 101, 155, 256, 400, 600];
        let members: Vec<_> = lengths
            .into_iter()
            .map(|n| ("x".repeat(n), vec![n as u8; n * 7 % 1100]))
            .chain([("a/b.c.jpg".into(), vec![]), ("é.cls".into(), vec![9; 512])])
            .collect();
        let (bytes, placed) = shard(&members);
        let mut archive = tar::Archive::new(&bytes[..]);
        let mut seen = 0;
        for (entry, ((name, data), placed)) in
            archive.entries().unwrap().zip(members.iter().zip(&placed))
        {
            let mut entry = entry.unwrap();
            assert_eq!(&*entry.path_bytes(), name.as_bytes());
            assert_eq!(entry.header().mode().unwrap(), 0o644);
            assert_eq!(entry.header().mtime().unwrap(), 0);
            assert_eq!(entry.raw_file_position(), placed.data_at);
            let mut read = Vec::new();
            entry.read_to_end(&mut read).unwrap();
            assert_eq!(&read, data);
            assert_eq!(placed.size, data.len() as u64);
            assert_eq!(placed.hash, XxHash3_64::oneshot(data));
            let header = encode_header(name, placed.size);
            assert_eq!(placed.header_at + header.len() as u64, placed.data_at);
            let there = &bytes[placed.header_at as usize..placed.data_at as usize];
            assert_eq!(there, header);
            seen += 1;
        }
        assert_eq!(seen, members.len());
        assert_eq!(bytes.len() % 512, 0);
        assert!(bytes[bytes.len() - 1024..].iter().all(|&b| b == 0));
    }

    #[test]
    fn sizes_beyond_octal_are_read_back() {
        for size in [0, 1, OCTAL_END - 1, OCTAL_END, OCTAL_END + 1, u64::MAX >> 1] {
            let header = encode_header("a.npy", size);
            let header = tar::Header::from_byte_slice(&header);
            assert_eq!(header.entry_size().unwrap(), size);
        }
    }

    #[test]
    fn the_record_of_a_long_name_counts_itself() {
        for n in 80..1100 {
            let record = pax_record(b"path", &vec![b'n'; n]);
            let text = std::str::from_utf8(&record).unwrap();
            let (length, _) = text.split_once(' ').unwrap();
            assert_eq!(length.parse::<usize>().unwrap(), record.len());
        }
    }

    #[test]
    fn padding_reaches_the_next_block() {
        for (size, zeros) in [(0, 0), (1, 511), (511, 1), (512, 0), (513, 511)] {
            assert_eq!(padding(size), zeros);
        }
    }

    #[test]
    fn an_error_of_the_file_comes_through() {
        let mut room = [0; 600];
        let mut writer = ShardWriter::new(&mut room[..]);
        assert!(writer.append("a.jpg", &[1; 100]).is_err());
    }
}
