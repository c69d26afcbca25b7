//! The decoding programs for the files of a scene.
//!
//! Used by workers, and in the consumer by memory plans. Also compiled without the decoders. Not
//! here: pixels.

use crate::error::Result;
use crate::picture::{AlphaPolicy, BackgroundColor, FileFormat, OrientationMode};
use crate::recipe::{
    AlphaMode, DataType, Decode, DecodeMode, MemoryLayout, Recipe, Resize, SampleProgram,
};

/// Output of a decoding program for an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DecodeTarget {
    pub(crate) transparency: AlphaPolicy,
    /// Whether the size differs from the file's.
    pub(crate) resizes: bool,
}

impl DecodeTarget {
    /// Colours that are merged with alpha later. A resize weights them by their alpha.
    pub(crate) fn separate_colors(resizes: bool) -> Self {
        let transparency = match resizes {
            false => AlphaPolicy::Ignore,
            true => AlphaPolicy::Composite(BackgroundColor::BLACK),
        };
        Self {
            transparency,
            resizes,
        }
    }

    /// Alpha, as three equal channels.
    pub(crate) fn separate_alpha(resizes: bool) -> Self {
        Self {
            transparency: AlphaPolicy::AlphaOnly,
            resizes,
        }
    }
}

/// Whether files of this format never have alpha.
pub(crate) fn is_opaque(format: FileFormat) -> bool {
    matches!(format, FileFormat::Jpeg | FileFormat::Npy)
}

/// Program for images. EXIF orientation is ignored, as the cameras refer to the pixels as stored.
/// With a resize, each row sets the size.
pub(crate) fn image_program(made: DecodeTarget) -> Result<SampleProgram> {
    let mut recipe = Recipe::new("scene").then(Decode {
        mode: Some(DecodeMode::Full),
        orientation: OrientationMode::Stored,
        ..Decode::default()
    });
    if made.resizes {
        recipe = recipe.then(Resize::exact(1, 1));
    }
    let recipe = recipe
        .with_dtype(DataType::U8)
        .with_layout(MemoryLayout::Nhwc);
    let mut program = SampleProgram::compile(&recipe)?;
    program.transparency = made.transparency;
    Ok(program)
}

/// Program for masks: all channels as stored. A pixel is in the mask if any channel is nonzero.
pub(crate) fn mask_program() -> Result<SampleProgram> {
    let recipe = Recipe::new("mask").then(Decode {
        mode: Some(DecodeMode::Full),
        orientation: OrientationMode::Stored,
        alpha: AlphaMode::Drop,
        ..Decode::default()
    });
    SampleProgram::compile(
        &recipe
            .with_dtype(DataType::U8)
            .with_layout(MemoryLayout::Nhwc),
    )
}
