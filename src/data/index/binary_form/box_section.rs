//! The section of boxes: which part of each picture counts as the picture. An index
//! without boxes does not have it.

use crate::data::index::binary_form::IndexDamage;
use crate::data::index::binary_form::words::{SectionCursor, word};
use crate::picture::PixelBox;

/// Bytes of a box: left, top, right, bottom, a u32 each.
const BOX: usize = 16;

/// Bytes of a box as the counts have them, and the section.
pub(crate) fn encode(boxes: &[PixelBox]) -> (u8, Vec<u8>) {
    let side_by_side = |b: &PixelBox| [b.left, b.top, b.right, b.bottom].map(u32::to_le_bytes);
    let section = boxes.iter().flat_map(side_by_side).flatten().collect();
    (if boxes.is_empty() { 0 } else { BOX as u8 }, section)
}

/// Where the section begins in bytes that were checked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BoxSection(usize);

impl BoxSection {
    /// Takes its section, if there is one.
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

    /// Every box has a pixel.
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

    /// The box of a sample whose id is one.
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
