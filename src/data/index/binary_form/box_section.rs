//! The section of boxes: for each sample, the part of its image that is used. An index without
//! boxes does not have this section.

use crate::data::index::binary_form::IndexDamage;
use crate::data::index::binary_form::words::{SectionCursor, word};
use crate::picture::PixelBox;

/// Bytes of a box: left, top, right, bottom, each a u32.
const BOX: usize = 16;

/// The number of bytes per box for the counts, and the section.
pub(crate) fn encode(boxes: &[PixelBox]) -> (u8, Vec<u8>) {
    let side_by_side = |b: &PixelBox| [b.left, b.top, b.right, b.bottom].map(u32::to_le_bytes);
    let section = boxes.iter().flat_map(side_by_side).flatten().collect();
    (if boxes.is_empty() { 0 } else { BOX as u8 }, section)
}

/// The offset of the section in checked bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BoxSection(usize);

impl BoxSection {
    /// Takes the section, if there is one.
    pub(crate) fn take(
        sections: &mut SectionCursor,
        samples: u64,
        box_bytes: u8,
    ) -> Result<Option<Self>, IndexDamage> {
        if box_bytes != 0 && usize::from(box_bytes) != BOX {
            return Err(IndexDamage::Counts {
                of: "bytes per box",
            });
        }
        let section = sections.next([samples, u64::from(box_bytes), 1], "boxes")?;
        Ok((box_bytes != 0).then_some(Self(section.start)))
    }

    /// Checks that no box is empty.
    pub(crate) fn check(self, bytes: &[u8], samples: usize) -> Result<(), IndexDamage> {
        let is_box = |id: &usize| self.get(bytes, *id).is_some_and(|b| !b.is_empty());
        match (0..samples).find(|id| !is_box(id)) {
            None => Ok(()),
            Some(id) => Err(IndexDamage::Sample {
                id: id as u64,
                what: "box",
            }),
        }
    }

    /// The box of a sample. The id must be valid.
    pub(crate) fn get(self, bytes: &[u8], id: usize) -> Option<PixelBox> {
        let numbers: [u8; BOX] = word(bytes, self.0 + id * BOX)?;
        let [left, top, right, bottom] = *numbers.as_chunks::<4>().0 else {
            return None;
        };
        Some(PixelBox {
            left: u32::from_le_bytes(left),
            top: u32::from_le_bytes(top),
            right: u32::from_le_bytes(right),
            bottom: u32::from_le_bytes(bottom),
        })
    }
}
