//! The table at the start of a slot: position and size of each row.
//!
//! Plain data. The consumer writes it from its own computations when it delivers a batch. It does
//! not trust what workers could have written there, because they decode untrusted bytes.

use bytemuck::{Pod, Zeroable};

/// Position and size of a row in a batch whose rows have different sizes: 32 bytes, in native byte
/// order.
///
/// Such a batch begins with one descriptor for each row of a full batch. Descriptors of missing
/// rows are zero. Table and rows are contiguous
/// ([`BatchPixels::Packed`](crate::batch::BatchPixels::Packed)), so one copy moves both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Pod, Zeroable)]
#[repr(C)]
pub struct RowDescriptor {
    /// First byte of the row, counted from the start of the table. A multiple of 64.
    pub offset: u64,
    /// Bytes of the row: height x width x 3 x bytes of an element. 0 for padding and for an image
    /// with an unreadable header.
    pub bytes: u64,
    /// Height of the upright image, in pixels.
    pub height: u32,
    /// Width of the upright image, in pixels.
    pub width: u32,
    /// [`RowDescriptor::MASKED`] or 0.
    pub flags: u32,
    /// Always 0.
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
