//! The decoding, which always stands first.

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

    /// To 8 bits a channel: EXIF orientation is applied or not, grey, CMYK, palettes
    /// and 16 bits are converted, alpha is composited on `background` or left out.
    /// Always the first operation; a recipe that does not write it gets the default.
    #[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct Decode {
        /// Channels and their order: `rgb`, `bgr`, or `grey` (one channel, Pillow's
        /// `L`).
        pub color: ColorOrder,
        /// None: `scaled`, or `full` where the recipe says `reorder: exact` or `off`.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub mode: Option<DecodeMode>,
        /// What shows through where a picture is transparent.
        pub background: BackgroundColor,
        /// `exif`, or `stored`: as torchvision's `ImageFolder` and Pillow's `open`.
        #[serde(skip_serializing_if = "is_default")]
        pub orientation: OrientationMode,
        /// `composite` on the background, or `drop`, as OpenCV.
        #[serde(skip_serializing_if = "is_default")]
        pub alpha: AlphaMode,
        /// `refuse` JPEG and PNG that end too early, or `keep` what is there of them, as Pillow's
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
