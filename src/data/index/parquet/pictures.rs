//! Locates the images of one column: in the file itself, or in its compressed pages.
//!
//! Runs in the consumer. Of an uncompressed page it reads only the length of each image, which
//! has 4 bytes. It decompresses each compressed page and frees it again.
//!
//! Names and comments in this room call a compressed page packed.

use crate::data::index::parquet::pages::{
    LargePage, PageKind, PageLocation, PageReader, encoding, encoding_of,
};
use crate::data::index::parquet::rle::RleDecoder;
use crate::data::packed_page::PackedPage;

/// The locations of the images of one file, in the order of its rows.
#[derive(Default)]
pub(super) struct PictureLocations {
    pub(super) rows: Vec<PictureLocation>,
    /// The packed pages that hold images.
    pub(super) pages: Vec<PackedPage>,
    /// Number of rows without an image.
    pub(super) nulls: u64,
}

/// The location of one image.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct PictureLocation {
    /// The index of its packed page in [`PictureLocations::pages`]. `None` if it is a range of the
    /// file.
    pub(super) page: Option<u32>,
    /// The offset of its first byte in the file, or in the unpacked page.
    pub(super) at: u64,
    /// Its length. 0 for a row without an image.
    pub(super) bytes: u64,
}

/// Where the values of a page are read from.
enum PageBody<'a> {
    /// The bytes of an unpacked page, and the lock of a large one.
    Memory(Vec<u8>, #[expect(dead_code, reason = "a lock")] LargePage),
    /// The file, up to this offset.
    File(&'a PageReader, u64),
}

impl PageBody<'_> {
    fn end(&self) -> u64 {
        match self {
            Self::Memory(bytes, _) => bytes.len() as u64,
            Self::File(_, end) => *end,
        }
    }

    /// Reads `len` bytes at `at`. `None` if they do not end within the page.
    fn read(&self, at: u64, len: u64) -> Option<Result<Vec<u8>, String>> {
        let end = at.checked_add(len).filter(|end| *end <= self.end())?;
        Some(match self {
            Self::Memory(bytes, _) => Ok(bytes.get(at as usize..end as usize)?.to_vec()),
            Self::File(pages, _) => pages.read(at, len),
        })
    }

    /// Reads a length of 4 bytes at `at`. `None` if it does not end within the page.
    fn length(&self, at: u64) -> Option<Result<u64, String>> {
        let end = at.checked_add(4).filter(|end| *end <= self.end())?;
        let mut word = [0; 4];
        let read = match self {
            Self::Memory(bytes, _) => {
                word.copy_from_slice(bytes.get(at as usize..end as usize)?);
                Ok(())
            }
            Self::File(pages, _) => pages.read_into(at, &mut word),
        };
        Some(read.map(|()| u64::from(u32::from_le_bytes(word))))
    }
}

impl PictureLocations {
    /// Adds the images of one row group, which has `rows` rows. `max_def` is the definition level
    /// of a row with an image.
    ///
    /// # Errors
    /// A damaged page, an unsupported encoding, or another number of rows.
    pub(super) fn add(
        &mut self,
        mut pages: PageReader,
        rows: u64,
        max_def: u32,
    ) -> Result<(), String> {
        let first = self.rows.len() as u64;
        let mut dictionary: Option<Vec<PictureLocation>> = None;
        while let Some(page) = pages.next_page()? {
            match page.kind {
                PageKind::Dictionary => {
                    let (number, body, at) = self.open(&pages, &page, 0)?;
                    // Each value has at least the 4 bytes of its length.
                    let most = (body.end().saturating_sub(at)) / 4;
                    if u64::from(page.values) > most || page.encoding_is_other_than_plain() {
                        return Err(pages.damaged());
                    }
                    let mut places = Vec::new();
                    plain(&body, at, number, page.values, &mut places)
                        .ok_or_else(|| pages.damaged())??;
                    dictionary = Some(places);
                }
                PageKind::Data { .. } | PageKind::DataV2 { .. } => {
                    let so_far = self.rows.len() as u64 - first;
                    if so_far + u64::from(page.values) > rows {
                        return Err(pages.damaged());
                    }
                    self.data(&pages, &page, max_def, dictionary.as_deref())?;
                }
            }
        }
        match self.rows.len() as u64 - first {
            found if found == rows => Ok(()),
            found => Err(format!(
                "is damaged: its image column has {found} rows, but the row group has {rows}"
            )),
        }
    }

    /// Opens a page for reading: its index if it is packed, its body, and the offset of its first
    /// value. `levels` is the length of unpacked levels before the values.
    fn open<'a>(
        &mut self,
        pages: &'a PageReader,
        page: &PageLocation,
        levels: u64,
    ) -> Result<(Option<u32>, PageBody<'a>, u64), String> {
        let (_, packed) = pages.parts(page).ok_or_else(|| pages.damaged())?;
        let Some(packed) = packed else {
            let end = page.at + page.packed;
            return Ok((None, PageBody::File(pages, end), page.at + levels));
        };
        let number = u32::try_from(self.pages.len()).map_err(|_| "has too many pages")?;
        self.pages.push(pages.with_header(packed));
        let turn = PageReader::wait_for(&packed);
        let body = PageBody::Memory(pages.unpacked(&packed)?, turn);
        Ok((Some(number), body, 0))
    }

    /// Adds the images of one data page.
    fn data(
        &mut self,
        pages: &PageReader,
        page: &PageLocation,
        max_def: u32,
        dictionary: Option<&[PictureLocation]>,
    ) -> Result<(), String> {
        let damaged = || pages.damaged();
        let in_front = match page.kind {
            PageKind::DataV2 {
                rep_bytes,
                def_bytes,
                ..
            } => u64::from(rep_bytes) + u64::from(def_bytes),
            _ => 0,
        };
        if in_front > page.packed {
            return Err(damaged());
        }
        let (number, body, mut at) = self.open(pages, page, in_front)?;
        let levels = match page.kind {
            _ if max_def == 0 => Vec::new(),
            PageKind::DataV2 {
                rep_bytes,
                def_bytes,
                ..
            } => pages.read(page.at + u64::from(rep_bytes), u64::from(def_bytes))?,
            PageKind::Data { level_encoding } if level_encoding != encoding::RLE => {
                return Err(
                    "has levels in the old encoding BIT_PACKED: write it with a newer writer"
                        .into(),
                );
            }
            _ => {
                let len = body.length(at).ok_or_else(damaged)??;
                let levels = body.read(at + 4, len).ok_or_else(damaged)??;
                at += 4 + len;
                levels
            }
        };
        let present = self
            .present(&levels, page.values, max_def)
            .ok_or_else(damaged)?;
        let count = present.iter().filter(|is| **is).count() as u32;
        let mut places = Vec::new();
        match page.encoding {
            encoding::PLAIN => {
                plain(&body, at, number, count, &mut places).ok_or_else(damaged)??;
            }
            encoding::PLAIN_DICTIONARY | encoding::RLE_DICTIONARY => {
                // The page holds indices into the dictionary, and no image.
                if number.is_some() {
                    self.pages.pop();
                }
                if count > 0 {
                    let left = body.end().checked_sub(at).ok_or_else(damaged)?;
                    let bytes = body.read(at, left).ok_or_else(damaged)??;
                    let known = dictionary.ok_or_else(damaged)?;
                    let chosen = chosen(&bytes, count, known).ok_or_else(damaged)?;
                    places = chosen;
                }
            }
            other => {
                let name = encoding_of(other).map_or("?".into(), |known| known.to_string());
                return Err(format!(
                    "has images in the encoding {name}, which is not supported: write it with \
                     plain or dictionary encoding"
                ));
            }
        }
        let mut places = places.into_iter();
        for is_present in present {
            let place = match is_present {
                true => places.next().ok_or_else(damaged)?,
                false => {
                    self.nulls += 1;
                    // In the page of the row before it, so that no other page is opened for it.
                    PictureLocation {
                        page: self.rows.last().and_then(|place| place.page),
                        at: 0,
                        bytes: 0,
                    }
                }
            };
            self.rows.push(place);
        }
        Ok(())
    }

    /// Which of `rows` rows have an image. `None` if the levels are malformed or too few.
    fn present(&self, levels: &[u8], rows: u32, max_def: u32) -> Option<Vec<bool>> {
        if max_def == 0 {
            return Some(vec![true; rows as usize]);
        }
        let levels = RleDecoder::new(levels, RleDecoder::width_of(max_def))?;
        let mut present = Vec::new();
        present.extend(levels.take(rows as usize).map(|level| level == max_def));
        (present.len() == rows as usize).then_some(present)
    }
}

impl PageLocation {
    fn encoding_is_other_than_plain(&self) -> bool {
        !matches!(self.encoding, encoding::PLAIN | encoding::PLAIN_DICTIONARY)
    }
}

/// Adds the locations of `count` consecutive values, each of which follows its length. `None` if
/// they do not end within the page.
fn plain(
    body: &PageBody<'_>,
    mut at: u64,
    page: Option<u32>,
    count: u32,
    places: &mut Vec<PictureLocation>,
) -> Option<Result<(), String>> {
    for _ in 0..count {
        let bytes = match body.length(at)? {
            Ok(bytes) => bytes,
            Err(e) => return Some(Err(e)),
        };
        at += 4;
        let end = at.checked_add(bytes).filter(|end| *end <= body.end())?;
        places.push(PictureLocation { page, at, bytes });
        at = end;
    }
    Some(Ok(()))
}

/// The locations that a page's `count` dictionary indices refer to. `None` if they are malformed.
fn chosen(
    bytes: &[u8],
    count: u32,
    dictionary: &[PictureLocation],
) -> Option<Vec<PictureLocation>> {
    let (width, bytes) = bytes.split_first()?;
    let numbers = RleDecoder::new(bytes, u32::from(*width))?;
    let mut places = Vec::new();
    for number in numbers.take(count as usize) {
        places.push(*dictionary.get(number as usize)?);
    }
    (places.len() == count as usize).then_some(places)
}
