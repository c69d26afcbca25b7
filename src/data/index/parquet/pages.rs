//! Finds and reads the pages of one column in one row group.
//!
//! Runs in the consumer, on untrusted bytes. Checks every length against the file and against
//! [`MOST_PAGE`] before it allocates.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use parquet::basic::{Compression, Encoding};
use parquet::file::metadata::ColumnChunkMetaData;

use crate::data::index::parquet::thrift::{STRUCT, ThriftReader};
use crate::data::packed_page::{MOST_PAGE, PackedPage, PageCodec, read_page};
use crate::error::SampleFault;

/// Most bytes of a page header, which may contain statistics.
const MOST_HEAD: u64 = 1 << 20;
/// Bytes of a page header that are read at first.
const FIRST: u64 = 1 << 10;
/// Image pages with more bytes, packed or unpacked, are in memory one at a time.
const LARGE: u64 = 64 << 20;

static LARGE_PAGE: Mutex<()> = Mutex::new(());

/// The lock that a thread holds while a large page is in memory. `None` for other pages.
pub(super) type LargePage = Option<MutexGuard<'static, ()>>;

/// The numbers of encodings in the format.
pub(super) mod encoding {
    pub(crate) const PLAIN: i64 = 0;
    pub(crate) const PLAIN_DICTIONARY: i64 = 2;
    pub(crate) const RLE: i64 = 3;
    pub(crate) const DELTA_BINARY_PACKED: i64 = 5;
    pub(crate) const DELTA_LENGTH_BYTE_ARRAY: i64 = 6;
    pub(crate) const DELTA_BYTE_ARRAY: i64 = 7;
    pub(crate) const RLE_DICTIONARY: i64 = 8;
    pub(crate) const BYTE_STREAM_SPLIT: i64 = 9;
}

/// The encoding with this number, as a type of the `parquet` crate.
pub(super) fn encoding_of(number: i64) -> Option<Encoding> {
    Some(match number {
        0 => Encoding::PLAIN,
        2 => Encoding::PLAIN_DICTIONARY,
        3 => Encoding::RLE,
        5 => Encoding::DELTA_BINARY_PACKED,
        6 => Encoding::DELTA_LENGTH_BYTE_ARRAY,
        7 => Encoding::DELTA_BYTE_ARRAY,
        8 => Encoding::RLE_DICTIONARY,
        9 => Encoding::BYTE_STREAM_SPLIT,
        _ => return None,
    })
}

/// Reads the pages of a column in one row group, one after the other.
pub(super) struct PageReader {
    file: Arc<File>,
    at: u64,
    end: u64,
    /// Values in the pages that have not been read.
    left: u64,
    pub(super) codec: Option<PageCodec>,
}

/// The header of one page, and the location of its body, which follows the header.
#[derive(Debug, Clone, Copy)]
pub(super) struct PageLocation {
    pub(super) kind: PageKind,
    pub(super) values: u32,
    pub(super) encoding: i64,
    /// The offset of the body in the file.
    pub(super) at: u64,
    /// Bytes of the body in the file.
    pub(super) packed: u64,
    /// Bytes of the body after decompression.
    pub(super) unpacked: u64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum PageKind {
    Dictionary,
    /// Levels and values, which are packed together.
    Data {
        level_encoding: i64,
    },
    /// Levels, which are never packed, then values.
    DataV2 {
        rows: u32,
        nulls: u32,
        rep_bytes: u32,
        def_bytes: u32,
        is_packed: bool,
    },
}

/// A page header as the file states it, unchecked.
#[derive(Default)]
struct PageHead {
    kind: i64,
    unpacked: i64,
    packed: i64,
    /// Number of values, encoding of values, encoding of levels.
    data: [i64; 3],
    /// Number of values, encoding.
    dictionary: [i64; 2],
    /// Values, nulls, rows, encoding, bytes of definition levels, bytes of repetition levels.
    v2: [i64; 6],
    v2_is_packed: Option<bool>,
}

impl PageHead {
    /// Parses the header at the start of `bytes`. Returns it and its length.
    fn parse(bytes: &[u8]) -> Option<(Self, u64)> {
        let mut head = Self::default();
        let mut reader = ThriftReader::new(bytes);
        reader.fields(|reader, number, kind| {
            match (number, kind) {
                (1, _) => head.kind = reader.number(kind)?,
                (2, _) => head.unpacked = reader.number(kind)?,
                (3, _) => head.packed = reader.number(kind)?,
                (5, STRUCT) => numbers(reader, &mut head.data, &mut None)?,
                (7, STRUCT) => numbers(reader, &mut head.dictionary, &mut None)?,
                (8, STRUCT) => numbers(reader, &mut head.v2, &mut head.v2_is_packed)?,
                _ => reader.skip(kind)?,
            }
            Some(())
        })?;
        Some((head, reader.read() as u64))
    }
}

/// Reads the first fields of a structure, which are numbers, to `into`, and the last boolean among
/// its other fields to `truth`.
fn numbers(
    reader: &mut ThriftReader<'_>,
    into: &mut [i64],
    truth: &mut Option<bool>,
) -> Option<()> {
    reader.fields(|reader, number, kind| {
        let place = usize::try_from(number - 1).ok();
        match place.and_then(|at| into.get_mut(at)) {
            Some(place) => *place = reader.number(kind)?,
            None => {
                *truth = ThriftReader::truth(kind).or(*truth);
                reader.skip(kind)?;
            }
        }
        Some(())
    })
}

impl PageReader {
    /// The pages of a column of the file, which has `len` bytes.
    ///
    /// # Errors
    /// Columns in other files, an unsupported compression, or a column outside of the file.
    pub(super) fn of(
        file: &Arc<File>,
        len: u64,
        column: &ColumnChunkMetaData,
    ) -> Result<Self, String> {
        if column.file_path().is_some() {
            return Err("has its columns in other files: write it as one file".into());
        }
        let codec = match column.compression() {
            Compression::UNCOMPRESSED => None,
            Compression::SNAPPY => Some(PageCodec::Snappy),
            Compression::GZIP(_) => Some(PageCodec::Gzip),
            Compression::LZ4_RAW => Some(PageCodec::Lz4),
            Compression::ZSTD(_) => Some(PageCodec::Zstd),
            other => {
                return Err(format!(
                    "is compressed with {other}, which is not supported: write it without \
                     compression, or with snappy, gzip, lz4 (raw) or zstd"
                ));
            }
        };
        // Some writers state 0 if there is no dictionary.
        let dictionary = column.dictionary_page_offset().filter(|at| *at > 0);
        let data = column.data_page_offset();
        let first = dictionary.map_or(data, |at| at.min(data));
        let at = u64::try_from(first).ok();
        let bytes = u64::try_from(column.compressed_size()).ok();
        let end = at.zip(bytes).and_then(|(at, bytes)| at.checked_add(bytes));
        let left = u64::try_from(column.num_values()).ok();
        match (at, end, left) {
            (Some(at), Some(end), Some(left)) if end <= len => Ok(Self {
                file: file.clone(),
                at,
                end,
                left,
                codec,
            }),
            _ => Err("is damaged: a column lies outside of the file".into()),
        }
    }

    /// The next page. `None` after the last one.
    pub(super) fn next_page(&mut self) -> Result<Option<PageLocation>, String> {
        loop {
            if self.left == 0 || self.at >= self.end {
                return match self.left {
                    0 => Ok(None),
                    left => Err(format!("is damaged: {left} values of a column are missing")),
                };
            }
            let (head, bytes) = self.head()?;
            let at = self.at + bytes;
            let packed = u64::try_from(head.packed).ok();
            let unpacked = u64::try_from(head.unpacked).ok();
            let end = packed.and_then(|packed| at.checked_add(packed));
            let (Some(packed), Some(unpacked), Some(end)) = (packed, unpacked, end) else {
                return Err(self.damaged());
            };
            if end > self.end {
                return Err(self.damaged());
            }
            if packed > MOST_PAGE || unpacked > MOST_PAGE {
                return Err(format!(
                    "has a page of more than 512 MiB at byte {}: write it again with smaller row \
                     groups",
                    self.at
                ));
            }
            let page = page_of(&head, at, packed, unpacked).ok_or_else(|| self.damaged());
            self.at = end;
            if let Some(page) = page? {
                if page.kind != PageKind::Dictionary {
                    let left = self.left.checked_sub(u64::from(page.values));
                    self.left = left.ok_or_else(|| self.damaged())?;
                }
                return Ok(Some(page));
            }
        }
    }

    fn head(&self) -> Result<(PageHead, u64), String> {
        let room = (self.end - self.at).min(MOST_HEAD);
        let mut len = FIRST.min(room);
        loop {
            let bytes = self.read(self.at, len)?;
            if let Some(parsed) = PageHead::parse(&bytes) {
                return Ok(parsed);
            }
            if len == room {
                return Err(self.damaged());
            }
            len = (len * 32).min(room);
        }
    }

    /// Reads `len` bytes of the file at `at`. The caller has checked that the file has them.
    pub(super) fn read(&self, at: u64, len: u64) -> Result<Vec<u8>, String> {
        let mut bytes = vec![0; usize::try_from(len).map_err(|_| self.damaged())?];
        self.read_into(at, &mut bytes)?;
        Ok(bytes)
    }

    pub(super) fn read_into(&self, at: u64, bytes: &mut [u8]) -> Result<(), String> {
        let read = self.file.read_exact_at(bytes, at);
        read.map_err(|e| format!("cannot be read at byte {at}: {e}"))
    }

    /// The body of a page, unpacked: its levels, if it has any, then its values.
    pub(super) fn body(&self, page: &PageLocation) -> Result<Vec<u8>, String> {
        self.body_or_fault(page)?
    }

    /// The same, with an inner error for a page that is broken.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(super) fn body_or_fault(
        &self,
        page: &PageLocation,
    ) -> Result<Result<Vec<u8>, String>, String> {
        let Some((levels, packed)) = self.parts(page) else {
            return Ok(Err(self.damaged()));
        };
        let Some(packed) = packed else {
            return self.read(page.at, page.packed).map(Ok);
        };
        let mut values = match self.unpacked_or_fault(&packed)? {
            Ok(values) if levels > 0 => values,
            whole => return Ok(whole),
        };
        let mut body = self.read(page.at, levels)?;
        body.append(&mut values);
        Ok(Ok(body))
    }

    /// Most bytes of memory that [`PageReader::body`] takes.
    pub(super) fn body_bytes(&self, page: &PageLocation) -> u64 {
        match self.parts(page) {
            // Levels are put before the values, in a second copy.
            Some((levels, Some(packed))) => {
                let copies = 1 + u64::from(levels > 0);
                packed.most_bytes() + packed.packed + copies * page.unpacked
            }
            _ => page.packed,
        }
    }

    /// The length of the levels before the packed part of a page, and the packed part. The packed
    /// part is `None` if nothing is packed.
    ///
    /// `None` if the levels are longer than the page.
    pub(super) fn parts(&self, page: &PageLocation) -> Option<(u64, Option<PackedPage>)> {
        let (levels, is_packed) = match page.kind {
            PageKind::Dictionary | PageKind::Data { .. } => (0, true),
            PageKind::DataV2 {
                rep_bytes,
                def_bytes,
                is_packed,
                ..
            } => (u64::from(rep_bytes) + u64::from(def_bytes), is_packed),
        };
        let packed = page.packed.checked_sub(levels)?;
        let unpacked = page.unpacked.checked_sub(levels)?;
        let at = page.at + levels;
        let packed = self
            .codec
            .filter(|_| is_packed)
            .map(|codec| PackedPage::new(at, packed, unpacked, codec));
        Some((levels, packed))
    }

    /// If `page` is large, waits until no other thread has a large page in memory.
    pub(super) fn wait_for(page: &PackedPage) -> LargePage {
        let is_large = page.packed.max(page.unpacked) > LARGE;
        is_large.then(|| LARGE_PAGE.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The same page with the memory that its decoder needs, by the header of its frame.
    pub(super) fn with_header(&self, page: PackedPage) -> PackedPage {
        page.with_header_in(&self.file)
    }

    /// Reads a packed page and decompresses it.
    pub(super) fn unpacked(&self, page: &PackedPage) -> Result<Vec<u8>, String> {
        self.unpacked_or_fault(page)?
    }

    fn unpacked_or_fault(&self, page: &PackedPage) -> Result<Result<Vec<u8>, String>, String> {
        let packed = read_page(&self.file, page)
            .map_err(|e| format!("cannot be read at byte {}: {e}", page.at))?;
        let mut out = Vec::new();
        // Some writers compress nothing if a page has no values.
        if page.unpacked == 0 && page.packed == 0 {
            return Ok(Ok(out));
        }
        let unpacked = page.unpack(&packed, &mut out);
        let fault = |fault: SampleFault| format!("at byte {}: {}", page.at, fault.reason);
        Ok(unpacked.map(|()| out).map_err(fault))
    }

    pub(super) fn damaged(&self) -> String {
        format!("is damaged: a column has no valid page at byte {}", self.at)
    }
}

/// The page of a header. `None` if the header is malformed, `Some(None)` for a page to skip.
fn page_of(head: &PageHead, at: u64, packed: u64, unpacked: u64) -> Option<Option<PageLocation>> {
    let small = |n: i64| u32::try_from(n).ok().filter(|n| i32::try_from(*n).is_ok());
    let (kind, values, encoding) = match head.kind {
        0 => {
            let [values, encoding, level_encoding] = head.data;
            (PageKind::Data { level_encoding }, values, encoding)
        }
        2 => {
            let [values, encoding] = head.dictionary;
            (PageKind::Dictionary, values, encoding)
        }
        3 => {
            let [values, nulls, rows, encoding, def_bytes, rep_bytes] = head.v2;
            let kind = PageKind::DataV2 {
                rows: small(rows)?,
                nulls: small(nulls)?,
                rep_bytes: small(rep_bytes)?,
                def_bytes: small(def_bytes)?,
                is_packed: head.v2_is_packed.unwrap_or(true),
            };
            (kind, values, encoding)
        }
        // An index page, which the format reserves.
        1 => return Some(None),
        _ => return None,
    };
    Some(Some(PageLocation {
        kind,
        values: small(values)?,
        encoding,
        at,
        packed,
        unpacked,
    }))
}
