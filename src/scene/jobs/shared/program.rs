//! How the files of a scene are decoded, as programs.
//!
//! Used where rows are made, and in the consumer by forecasts; compiled without the
//! decoders too. Never in here: pixels.

use crate::error::Result;
use crate::picture::{AlphaPolicy, BackgroundColor, FileFormat, OrientationMode};
use crate::recipe::{
    AlphaMode, DataType, Decode, DecodeMode, MemoryLayout, Recipe, Resize, SampleProgram,
};

/// What a decoder makes of the file of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DecodeTarget {
    pub(crate) transparency: AlphaPolicy,
    /// Another size than the file's.
    pub(crate) resizes: bool,
}

impl DecodeTarget {
    /// Colours to which alpha is put later. Those that are mixed count by their alpha.
    pub(crate) fn colors_apart(resizes: bool) -> Self {
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
    pub(crate) fn alpha_apart(resizes: bool) -> Self {
        Self {
            transparency: AlphaPolicy::AlphaOnly,
            resizes,
        }
    }
}

/// Whether files of this format have no alpha.
pub(crate) fn is_opaque(format: FileFormat) -> bool {
    matches!(format, FileFormat::Jpeg | FileFormat::Npy)
}

/// Pictures as they are stored: cameras were found in them like that. Resized where that
/// is wanted, to the size that each row sets.
pub(crate) fn of_image(made: DecodeTarget) -> Result<SampleProgram> {
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

/// Masks: all channels as they are stored. What is not 0 in any of them is in the mask.
pub(crate) fn of_mask() -> Result<SampleProgram> {
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
