//! The section of packed pages: where a shard is no file, but a page of one that must be
//! unpacked. An index without such shards does not have it.
//!
//! Runs wherever an index is mapped.

use crate::data::index::binary_form::IndexDamage;
use crate::data::index::binary_form::words::{SectionCursor, word};
use crate::data::packed_page::{PackedPage, PageCodec};

/// Bytes of a page: place, length in its file, length unpacked, codec, a u64 each. All zero
/// for a shard that is a file.
const PAGE: usize = 32;

/// Bytes of a page as the counts have them, and the section.
pub(crate) fn encode(pages: &[Option<PackedPage>]) -> (u8, Vec<u8>) {
    if pages.iter().all(Option::is_none) {
        return (0, Vec::new());
    }
    let side_by_side = |page: &Option<PackedPage>| {
        page.map_or([0; 4], |p| [p.at, p.packed, p.unpacked, p.codec as u64])
            .map(u64::to_le_bytes)
    };
    let section = pages.iter().flat_map(side_by_side).flatten().collect();
    (PAGE as u8, section)
}

/// Where the section begins in bytes that were checked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PageSection(usize);

impl PageSection {
    /// Takes its section, if there is one.
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

    /// Each is a page with an end, or none.
    pub(crate) fn check(self, bytes: &[u8], shards: u64) -> Result<(), IndexDamage> {
        for number in 0..shards {
            let is_right = match self.get(bytes, number) {
                Some(page) => page.at.checked_add(page.packed).is_some(),
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

    /// The page that a shard is; none where it is a file.
    pub(crate) fn get(self, bytes: &[u8], number: u64) -> Option<PackedPage> {
        let [at, packed, unpacked, codec] = self.words(bytes, number)?;
        Some(PackedPage {
            at,
            packed,
            unpacked,
            codec: PageCodec::of(codec)?,
        })
    }

    fn words(self, bytes: &[u8], number: u64) -> Option<[u64; 4]> {
        let number = usize::try_from(number).ok()?;
        let at = number.checked_mul(PAGE)?.checked_add(self.0)?;
        let words: [u8; PAGE] = word(bytes, at)?;
        let words: &[[u8; 8]; 4] = words.as_chunks::<8>().0.try_into().ok()?;
        Some(words.map(u64::from_le_bytes))
    }
}
