//! What a decode is asked for, and why it is refused.

/// Why a picture was not decoded here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DecodeRefusal {
    /// A form that this decoder does not know.
    Unsupported,
    /// The coded data make no sense, or end too early.
    Damaged,
    /// There is no memory.
    NoMemory,
}

/// A box of pixels of the picture at the scale of the decode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct JpegWindow {
    pub(crate) x: usize,
    pub(crate) y: usize,
    pub(crate) w: usize,
    pub(crate) h: usize,
}

/// What the caller knows of the picture, and wants of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DecodeRequest<'a> {
    pub(crate) bytes: &'a [u8],
    /// Width and height as the header states them.
    pub(crate) size: (usize, usize),
    pub(crate) components: usize,
    /// The side of a block of luma at the scale: 8, 4, 2 or 1.
    pub(crate) block: usize,
    pub(crate) window: JpegWindow,
}
