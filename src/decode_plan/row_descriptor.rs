//! What the table at the start of a slot says of a row.
//!
//! Plain data. Written by the consumer when it hands a batch over, from what it
//! computed itself: workers decode untrusted bytes, and what they could have written
//! there is not believed.

use bytemuck::{Pod, Zeroable};

/// Where a row of its own size lies, and how large it is: 32 bytes, in the
/// machine's byte order.
///
/// A batch whose rows have sizes of their own begins with one descriptor for
/// each row that a full batch has; those behind the batch's rows are zero. Table
/// and rows lie in one piece ([`BatchPixels::Packed`](crate::batch::BatchPixels::Packed)), so one
/// copy brings both to where they are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Pod, Zeroable)]
#[repr(C)]
pub struct RowDescriptor {
    /// First byte of the row, counted from the start of the table; a multiple
    /// of 64.
    pub offset: u64,
    /// Bytes of the row: height x width x 3 x the element's size. 0 for padding
    /// and for a picture whose header could not be read.
    pub bytes: u64,
    /// Pixels, as the picture is to be looked at.
    pub height: u32,
    /// Pixels.
    pub width: u32,
    /// [`RowDescriptor::MASKED`] or 0.
    pub flags: u32,
    /// 0.
    pub reserved: u32,
}

impl RowDescriptor {
    /// The row holds no pixels of a sample: its bytes are zero.
    pub const MASKED: u32 = 1;

    /// Bytes of a descriptor.
    pub const BYTES: usize = size_of::<Self>();

    /// True when the row holds no pixels of a sample.
    pub fn is_masked(&self) -> bool {
        self.flags & Self::MASKED != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_is_fixed() {
        let d = RowDescriptor {
            offset: 1,
            bytes: 2,
            height: 3,
            width: 4,
            flags: RowDescriptor::MASKED,
            reserved: 0,
        };
        let words: [u32; 8] = bytemuck::cast(d);
        let (low, high) = if cfg!(target_endian = "little") {
            (0, 1)
        } else {
            (1, 0)
        };
        assert_eq!((words[low], words[high]), (1, 0));
        assert_eq!((words[2 + low], words[2 + high]), (2, 0));
        assert_eq!(words[4..], [3, 4, 1, 0]);
        assert_eq!(RowDescriptor::BYTES, 32);
        assert!(d.is_masked() && !RowDescriptor::default().is_masked());
    }
}
