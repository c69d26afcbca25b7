//! Errors that end a decode, with libjpeg-turbo's messages (jerror.h).

use std::borrow::Cow;

/// An error that leaves no pixels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FatalFault(pub(crate) Cow<'static, str>);

impl FatalFault {
    pub(super) const BAD_LENGTH: Self = Self::of("Bogus marker length");
    pub(super) const BAD_HUFFMAN: Self = Self::of("Bogus Huffman table definition");
    pub(super) const BAD_FACTORS: Self = Self::of("Bogus sampling factors");
    pub(super) const LARGE_MCU: Self = Self::of("Sampling factors too large for interleaved scan");
    pub(super) const FRACTIONS: Self = Self::of("Fractional sampling not implemented yet");
    pub(super) const EMPTY: Self = Self::of("Empty JPEG image (DNL not supported)");
    pub(super) const NO_PICTURE: Self = Self::of("JPEG datastream contains no image");
    pub(super) const TWO_STARTS: Self = Self::of("Invalid JPEG file structure: two SOI markers");
    pub(super) const TWO_FRAMES: Self = Self::of("Invalid JPEG file structure: two SOF markers");
    pub(super) const NO_FRAME: Self = Self::of("Invalid JPEG file structure: SOS before SOF");
    pub(super) const NO_SCAN: Self = Self::of("Invalid JPEG file structure: missing SOS marker");
    pub(super) const ABSURD_DC: Self =
        Self::of("DCT coefficient (lossy) or spatial difference (lossless) out of range");

    const fn of(words: &'static str) -> Self {
        Self(Cow::Borrowed(words))
    }
}

impl From<String> for FatalFault {
    fn from(words: String) -> Self {
        Self(Cow::Owned(words))
    }
}
