//! Decoding, always the first operation.

use serde::{Deserialize, Serialize};

use crate::recipe::defaults::is_default;
use crate::recipe::operation::{
    DrawContext, HeightWidth, Operation, OperationPart, PixelState, SampleFault,
};
use crate::recipe::operation_docs::described;
use crate::recipe::values::{
    AlphaMode, BackgroundColor, ColorOrder, DecodeMode, OrientationMode, TruncationPolicy,
};

described! {
    example: "decode: {color: rgb, background: white}";

    /// Decodes to 8 bits per channel. Converts grey, CMYK, palettes and 16 bits. Applies the EXIF
    /// orientation or not; composites alpha on `background` or drops it. Always the first
    /// operation. A recipe without it gets the default.
    #[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct Decode {
        /// Channels and their order: `rgb`, `bgr`, or `grey` (one channel, Pillow's
        /// `L`).
        pub color: ColorOrder,
        /// Default: `scaled`, or `full` with `reorder: exact` or `off`.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub mode: Option<DecodeMode>,
        /// The colour behind transparent pixels.
        pub background: BackgroundColor,
        /// `exif` applies the EXIF orientation. `stored` does not, as torchvision's `ImageFolder`
        /// and Pillow's `open`.
        #[serde(skip_serializing_if = "is_default")]
        pub orientation: OrientationMode,
        /// `composite` on the background, or `drop` as in OpenCV.
        #[serde(skip_serializing_if = "is_default")]
        pub alpha: AlphaMode,
        /// `refuse` truncated JPEG and PNG files, or `keep` what can be decoded, as with Pillow's
        /// `LOAD_TRUNCATED_IMAGES`.
        #[serde(skip_serializing_if = "is_default")]
        pub truncated: TruncationPolicy,
    }
}

impl Operation for Decode {
    const PARTS: &'static [OperationPart] = &[];
    const DRAWS: bool = false;

    fn check(&self, _known: &mut PixelState) -> Result<(), String> {
        Ok(())
    }

    fn draw(&self, on: DrawContext<'_>) -> Result<HeightWidth, SampleFault> {
        Ok(on.size)
    }
}
