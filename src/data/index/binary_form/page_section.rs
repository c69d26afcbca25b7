//! The section of packed pages and pixel arrays. For a shard that is a page of a file: its place in
//! that file. For a shard whose samples are raw pixels: their shape. An index without such shards
//! does not have this section.
//!
//! Runs in every process that maps an index.

use crate::data::index::binary_form::IndexDamage;
use crate::data::index::binary_form::words::{SectionCursor, word};
use crate::data::packed_page::{PackedPage, PageCodec};
use crate::data::pixel_shape::PixelShape;

/// Bytes of an entry. A page: offset, packed length, unpacked length, codec, each a u64. Raw pixels:
/// height, width, channels, [`PIXELS`]. All are zero for a shard that is a file.
const PAGE: usize = 32;

/// The last number of an entry for raw pixels. No [`PageCodec`] has it.
const PIXELS: u64 = 7;

/// How the bytes of a shard's samples are stored, unless they are plain files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoredForm {
    /// Parts of a packed page.
    Page(PackedPage),
    /// Raw pixels of one shape.
    Pixels(PixelShape),
}

/// The number of bytes per page for the counts, and the section.
pub(crate) fn encode(pages: &[Option<StoredForm>]) -> (u8, Vec<u8>) {
    if pages.iter().all(Option::is_none) {
        return (0, Vec::new());
    }
    let side_by_side = |form: &Option<StoredForm>| {
        let words = match form {
            None => [0; 4],
            Some(StoredForm::Page(p)) => [p.at, p.packed, p.unpacked, p.codec as u64],
            Some(StoredForm::Pixels(shape)) => {
                let [height, width, channels] = shape.sides().map(u64::from);
                [height, width, channels, PIXELS]
            }
        };
        words.map(u64::to_le_bytes)
    };
    let section = pages.iter().flat_map(side_by_side).flatten().collect();
    (PAGE as u8, section)
}

/// The offset of the section in checked bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PageSection(usize);

impl StoredForm {
    /// Most bytes that a worker takes for it: to unpack a page, or for a file of raw pixels.
    pub(crate) fn most_bytes(&self) -> u64 {
        match self {
            Self::Page(page) => page.most_bytes(),
            Self::Pixels(shape) => shape.file_bytes(),
        }
    }
}

impl PageSection {
    /// Takes the section, if there is one.
    pub(crate) fn take(
        sections: &mut SectionCursor,
        shards: u64,
        page_bytes: u8,
    ) -> Result<Option<Self>, IndexDamage> {
        if page_bytes != 0 && (usize::from(page_bytes) != PAGE || shards == 0) {
            return Err(IndexDamage::Counts {
                of: "bytes per page",
            });
        }
        let section = sections.next([shards, u64::from(page_bytes), 1], "pages")?;
        Ok((page_bytes != 0).then_some(Self(section.start)))
    }

    /// Checks that each entry is zero, a page whose end does not overflow, or the shape of a
    /// picture.
    pub(crate) fn check(self, bytes: &[u8], shards: u64) -> Result<(), IndexDamage> {
        for number in 0..shards {
            let is_right = match self.get(bytes, number) {
                Some(StoredForm::Page(page)) => page.at.checked_add(page.packed).is_some(),
                Some(StoredForm::Pixels(_)) => true,
                None => self.words(bytes, number) == Some([0; 4]),
            };
            if !is_right {
                return Err(IndexDamage::Shard {
                    number,
                    what: "page",
                });
            }
        }
        Ok(())
    }

    /// The form of a shard's samples. `None` if the shard is a file of image files.
    pub(crate) fn get(self, bytes: &[u8], number: u64) -> Option<StoredForm> {
        let [at, packed, unpacked, codec] = self.words(bytes, number)?;
        if codec == PIXELS {
            return PixelShape::new([at, packed, unpacked]).map(StoredForm::Pixels);
        }
        let codec = PageCodec::of(codec)?;
        let page = PackedPage::new(at, packed, unpacked, codec);
        Some(StoredForm::Page(page))
    }

    fn words(self, bytes: &[u8], number: u64) -> Option<[u64; 4]> {
        let number = usize::try_from(number).ok()?;
        let at = number.checked_mul(PAGE)?.checked_add(self.0)?;
        let words: [u8; PAGE] = word(bytes, at)?;
        let words: &[[u8; 8]; 4] = words.as_chunks::<8>().0.try_into().ok()?;
        Some(words.map(u64::from_le_bytes))
    }
}
