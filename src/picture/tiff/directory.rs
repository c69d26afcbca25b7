//! The tags of a TIFF's first directory, and their values.
//!
//! Pure. Supports classic files and BigTIFF.

use std::io::{self, ErrorKind, Read, Seek, SeekFrom};

use super::fault::{corrupt, truncated, unsupported};
use crate::error::SampleFault;
use crate::picture::reader::PictureReader;
use crate::picture::reader::unreadable;

/// Maximum values of a tag: the strips of a picture with this number of rows.
const MOST_VALUES: u64 = 1 << 18;

/// The tags that are read.
pub(super) mod tag {
    pub(in super::super) const WIDTH: u16 = 256;
    pub(in super::super) const HEIGHT: u16 = 257;
    pub(in super::super) const BITS: u16 = 258;
    pub(in super::super) const COMPRESSION: u16 = 259;
    pub(in super::super) const PHOTOMETRIC: u16 = 262;
    pub(in super::super) const FILL_ORDER: u16 = 266;
    pub(in super::super) const STRIP_OFFSETS: u16 = 273;
    pub(in super::super) const ORIENTATION: u16 = 274;
    pub(in super::super) const SAMPLES: u16 = 277;
    pub(in super::super) const ROWS_PER_STRIP: u16 = 278;
    pub(in super::super) const STRIP_BYTES: u16 = 279;
    pub(in super::super) const PLANAR: u16 = 284;
    pub(in super::super) const FAX_OPTIONS: u16 = 292;
    pub(in super::super) const PREDICTOR: u16 = 317;
    pub(in super::super) const PALETTE: u16 = 320;
    pub(in super::super) const TILE_WIDTH: u16 = 322;
    pub(in super::super) const TILE_HEIGHT: u16 = 323;
    pub(in super::super) const TILE_OFFSETS: u16 = 324;
    pub(in super::super) const TILE_BYTES: u16 = 325;
    pub(in super::super) const EXTRA_SAMPLES: u16 = 338;
    pub(in super::super) const SAMPLE_FORMAT: u16 = 339;
    pub(in super::super) const JPEG_TABLES: u16 = 347;
    pub(in super::super) const COEFFICIENTS: u16 = 529;
    pub(in super::super) const SUBSAMPLING: u16 = 530;
    pub(in super::super) const BLACK_WHITE: u16 = 532;
    pub(in super::super) const XMP: u16 = 700;
}

/// The byte order of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ByteOrder {
    Little,
    Big,
}

impl ByteOrder {
    fn number(self, bytes: &[u8]) -> u64 {
        let join = |n: u64, &b: &u8| n << 8 | u64::from(b);
        match self {
            Self::Little => bytes.iter().rev().fold(0, join),
            Self::Big => bytes.iter().fold(0, join),
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct DirectoryEntry {
    tag: u16,
    kind: u16,
    count: u64,
    /// The values, or their offset.
    value: [u8; 8],
}

pub(super) struct TiffDirectory {
    pub(super) order: ByteOrder,
    /// Bytes of an offset: 4 or 8.
    wide: usize,
    entries: Vec<DirectoryEntry>,
}

impl TiffDirectory {
    /// Reads the first directory of a file.
    pub(super) fn read(file: &mut PictureReader<'_>) -> Result<Self, SampleFault> {
        let mut head = [0; 8];
        read_at(file, 0, &mut head)?;
        let order = match head[0] {
            b'I' => ByteOrder::Little,
            _ => ByteOrder::Big,
        };
        let (wide, at) = match order.number(&head[2..4]) {
            42 => (4, order.number(&head[4..])),
            43 => {
                let mut at = [0; 8];
                read_at(file, 8, &mut at)?;
                (8, order.number(&at))
            }
            version => return Err(corrupt(format!("version {version}"))),
        };
        let mut count = [0; 8];
        let count = &mut count[..if wide == 8 { 8 } else { 2 }];
        read_at(file, at, count)?;
        let entries = order.number(count);
        if entries == 0 || entries > u64::from(u16::MAX) {
            return Err(corrupt(format!("a directory of {entries} tags")));
        }
        let mut directory = Self {
            order,
            wide,
            entries: Vec::new(),
        };
        for _ in 0..entries {
            let mut entry = [0; 20];
            let entry = &mut entry[..4 + 2 * wide];
            file.read_exact(entry).map_err(fault)?;
            directory.push(entry);
        }
        Ok(directory)
    }

    fn push(&mut self, entry: &[u8]) {
        let mut value = [0; 8];
        value[..self.wide].copy_from_slice(&entry[4 + self.wide..]);
        self.entries.push(DirectoryEntry {
            tag: self.order.number(&entry[..2]) as u16,
            kind: self.order.number(&entry[2..4]) as u16,
            count: self.order.number(&entry[4..4 + self.wide]),
            value,
        });
    }

    /// If a tag repeats, the first one counts.
    fn entry(&self, tag: u16) -> Option<&DirectoryEntry> {
        self.entries.iter().find(|entry| entry.tag == tag)
    }

    pub(super) fn has(&self, tag: u16) -> bool {
        self.entry(tag).is_some()
    }

    /// The values of a tag; empty if it is missing.
    pub(super) fn numbers(
        &self,
        file: &mut PictureReader<'_>,
        tag: u16,
    ) -> Result<Option<Vec<u64>>, SampleFault> {
        let Some(entry) = self.entry(tag) else {
            return Ok(None);
        };
        let size = match entry.kind {
            1 | 7 => 1,
            3 => 2,
            4 | 13 => 4,
            16 | 18 => 8,
            kind => return Err(corrupt(format!("tag {tag} of type {kind}"))),
        };
        let bytes = self.values(file, entry, size, MOST_VALUES)?;
        let numbers = bytes.chunks_exact(size).map(|b| self.order.number(b));
        Ok(Some(numbers.collect()))
    }

    /// The first value of a tag.
    pub(super) fn number(
        &self,
        file: &mut PictureReader<'_>,
        tag: u16,
    ) -> Result<Option<u64>, SampleFault> {
        let numbers = self.numbers(file, tag)?;
        Ok(numbers.and_then(|numbers| numbers.first().copied()))
    }

    /// Fractions; `None` if the tag is missing or has other values.
    pub(super) fn fractions(&self, file: &mut PictureReader<'_>, tag: u16) -> Option<Vec<f32>> {
        let entry = self.entry(tag)?;
        let bytes = match entry.kind {
            5 => self.values(file, entry, 8, 16).ok()?,
            _ => return None,
        };
        let fraction = |b: &[u8]| {
            let (over, under) = b.split_at(4);
            self.order.number(over) as f32 / self.order.number(under) as f32
        };
        Some(bytes.chunks_exact(8).map(fraction).collect())
    }

    /// At most `most` bytes of a tag's value.
    pub(super) fn bytes(
        &self,
        file: &mut PictureReader<'_>,
        tag: u16,
        most: usize,
    ) -> Option<Vec<u8>> {
        let mut entry = *self.entry(tag)?;
        if !matches!(entry.kind, 1 | 2 | 7) {
            return None;
        }
        // A value outside the entry keeps a length that shows this.
        if entry.count > self.wide as u64 {
            entry.count = entry.count.min(most as u64).max(self.wide as u64 + 1);
        }
        self.values(file, &entry, 1, most as u64 + 9).ok()
    }

    fn values(
        &self,
        file: &mut PictureReader<'_>,
        entry: &DirectoryEntry,
        size: usize,
        most: u64,
    ) -> Result<Vec<u8>, SampleFault> {
        let &DirectoryEntry { tag, count, .. } = entry;
        if count > most {
            return Err(unsupported(format!(
                "{count} values of tag {tag}, over {most},"
            )));
        }
        let len = count as usize * size;
        if len <= self.wide {
            return Ok(entry.value[..len].to_vec());
        }
        let mut bytes = vec![0; len];
        let at = self.order.number(&entry.value[..self.wide]);
        read_at(file, at, &mut bytes)?;
        Ok(bytes)
    }
}

fn read_at(file: &mut PictureReader<'_>, at: u64, to: &mut [u8]) -> Result<(), SampleFault> {
    file.seek(SeekFrom::Start(at)).map_err(fault)?;
    file.read_exact(to).map_err(fault)
}

fn fault(e: io::Error) -> SampleFault {
    match e.kind() {
        ErrorKind::UnexpectedEof => truncated("it ends before a value of its directory"),
        ErrorKind::InvalidInput => corrupt("a value of its directory has an invalid offset"),
        _ => unreadable(e),
    }
}
