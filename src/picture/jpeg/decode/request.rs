//! The arguments of a decode, and the reasons of a rejection.

/// Why this decoder did not decode a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DecodeRefusal {
    /// The decoder does not support this kind of file.
    Unsupported,
    /// The coded data are invalid, or end too early.
    Damaged,
    /// Memory ran out.
    NoMemory,
}

/// A rectangle of the picture, in pixels at the scale of the decode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct JpegWindow {
    pub(crate) x: usize,
    pub(crate) y: usize,
    pub(crate) w: usize,
    pub(crate) h: usize,
}

/// A picture, and the window of it to decode.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DecodeRequest<'a> {
    pub(crate) bytes: &'a [u8],
    /// Width and height in the header.
    pub(crate) size: (usize, usize),
    pub(crate) components: usize,
    /// The side of a luma block at the scale: 8, 4, 2 or 1.
    pub(crate) block: usize,
    pub(crate) window: JpegWindow,
}
