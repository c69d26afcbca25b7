//! The rules of processors that cut images into patches, and their ranges.

use serde::{Deserialize, Serialize};

use super::patch_grid::PatchGrid;
use super::patch_order::PatchOrder;
use super::qwen::{MOST_RATIO, QwenLimits};
use super::{pix2struct, siglip2};

/// Largest height and width of a patch, in pixels.
const MOST_PATCH_SIZE: u32 = 64;
/// Largest height and width of a block, in patches.
const MOST_MERGE_SIZE: u32 = 8;
/// Most copies of an image in a patch.
const MOST_TEMPORAL: u32 = 4;
/// Most patches of an image.
const MOST_PATCHES: u64 = 1 << 20;
/// Most pixels of a resized image: the most patches of the largest size.
const MOST_PIXELS: u64 = 1 << 32;
/// Largest side of an image. Products of two sides are exact in floats.
pub(super) const MOST_SIDE: u32 = 1 << 24;

/// How a model's processor cuts images into patches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PatchStyle {
    /// Qwen2-VL, Qwen2.5-VL, Qwen3-VL. The image keeps its ratio nearly, and has `min_pixels` to
    /// `max_pixels`. Patches lie in blocks.
    #[default]
    Qwen,
    /// SigLIP2 NaFlex. The image keeps its ratio nearly, and has at most `max_num_patches`. Small
    /// images are enlarged, by at most 100.
    Siglip2,
    /// Pix2Struct. Images get as many patches as fit into `max_num_patches`. The first two values
    /// of a patch are its row and its column, from 1.
    Pix2struct,
}

impl PatchStyle {
    /// The name in a recipe file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Qwen => "qwen",
            Self::Siglip2 => "siglip2",
            Self::Pix2struct => "pix2struct",
        }
    }
}

/// The numbers of a model's processor. [`check`](Self::check) tests them. The other methods need a
/// rule that passed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PatchRule {
    pub style: PatchStyle,
    /// Height and width of a patch, in pixels: 1 to 64. Qwen2-VL and Qwen2.5-VL: 14. Qwen3-VL,
    /// SigLIP2 and Pix2Struct: 16.
    pub patch_size: u32,
    /// Height and width of a block, in patches: 1 to 8. Qwen: 2. Others: always 1.
    pub merge_size: u32,
    /// Copies of the image in each patch: 1 to 4. Qwen: 2. Others: always 1.
    pub temporal_patch_size: u32,
    /// Qwen: images with fewer pixels are enlarged. 1 to `max_pixels`. Others: 0.
    pub min_pixels: u64,
    /// Qwen: images with more pixels are reduced. From the pixels of one block to 2^32. A narrow
    /// image may have more, because its shorter side is at least one block. Others: 0.
    pub max_pixels: u64,
    /// SigLIP2, Pix2Struct: most patches of an image, 1 to 2^20. Qwen: 0.
    pub max_num_patches: u32,
}

impl PatchRule {
    /// The rule of Qwen's processors, with blocks of 2 x 2 patches and two copies.
    pub fn qwen(patch_size: u32, min_pixels: u64, max_pixels: u64) -> Self {
        Self {
            style: PatchStyle::Qwen,
            patch_size,
            merge_size: 2,
            temporal_patch_size: 2,
            min_pixels,
            max_pixels,
            max_num_patches: 0,
        }
    }

    /// The rule of SigLIP2's processor.
    pub fn siglip2(patch_size: u32, max_num_patches: u32) -> Self {
        Self {
            style: PatchStyle::Siglip2,
            patch_size,
            merge_size: 1,
            temporal_patch_size: 1,
            min_pixels: 0,
            max_pixels: 0,
            max_num_patches,
        }
    }

    /// The rule of Pix2Struct's processor.
    pub fn pix2struct(patch_size: u32, max_num_patches: u32) -> Self {
        Self {
            style: PatchStyle::Pix2struct,
            ..Self::siglip2(patch_size, max_num_patches)
        }
    }

    /// Checks all numbers.
    ///
    /// # Errors
    /// A number is out of range. The text names the field and its range.
    pub fn check(&self) -> Result<(), String> {
        let sides = [
            ("patch_size", self.patch_size, MOST_PATCH_SIZE),
            ("merge_size", self.merge_size, MOST_MERGE_SIZE),
            (
                "temporal_patch_size",
                self.temporal_patch_size,
                MOST_TEMPORAL,
            ),
        ];
        for (name, value, most) in sides {
            if !(1..=most).contains(&value) {
                return Err(format!("{name} {value} must be 1 to {most}"));
            }
        }
        match self.style {
            PatchStyle::Qwen => self.check_qwen()?,
            PatchStyle::Siglip2 | PatchStyle::Pix2struct => self.check_padded()?,
        }
        let most = self.most_patches();
        if most > MOST_PATCHES {
            let field = match (self.style, self.pixels_of_most() > self.max_pixels) {
                (PatchStyle::Siglip2 | PatchStyle::Pix2struct, _) => "max_num_patches",
                (PatchStyle::Qwen, true) => "max_pixels and min_pixels",
                (PatchStyle::Qwen, false) => "max_pixels",
            };
            return Err(format!(
                "an image may have {most} patches, and the limit is {MOST_PATCHES}: reduce {field}"
            ));
        }
        Ok(())
    }

    fn check_qwen(&self) -> Result<(), String> {
        let (min, max) = (self.min_pixels, self.max_pixels);
        let block = u64::from(self.block()).pow(2);
        if self.max_num_patches != 0 {
            return Err(
                "max_num_patches is of styles siglip2 and pix2struct: use max_pixels".into(),
            );
        }
        if !(block..=MOST_PIXELS).contains(&max) {
            return Err(format!(
                "max_pixels {max} must be {block} (one block of patches) to {MOST_PIXELS}"
            ));
        }
        if !(1..=max).contains(&min) {
            return Err(format!(
                "min_pixels {min} must be 1 to {max}, which is max_pixels"
            ));
        }
        Ok(())
    }

    fn check_padded(&self) -> Result<(), String> {
        for (name, value) in [
            ("merge_size", self.merge_size),
            ("temporal_patch_size", self.temporal_patch_size),
        ] {
            if value != 1 {
                let style = self.style.name();
                return Err(format!("{name} {value} must be 1 with style {style}"));
            }
        }
        for (name, value) in [
            ("min_pixels", self.min_pixels),
            ("max_pixels", self.max_pixels),
        ] {
            if value != 0 {
                return Err(format!(
                    "{name} is of style qwen only: remove it, and use max_num_patches"
                ));
            }
        }
        if self.max_num_patches == 0 {
            return Err(format!("max_num_patches 0 must be 1 to {MOST_PATCHES}"));
        }
        Ok(())
    }

    /// Rows and columns of the patches of an image with this height and width.
    ///
    /// # Errors
    /// The processor refuses the image, or a side is above 2^24. The text has the image's size.
    pub fn grid(&self, image: (u32, u32)) -> Result<PatchGrid, String> {
        let (height, width) = image;
        let refused = |why: String| {
            Err(format!(
                "an image of height {height} and width {width}: {why}"
            ))
        };
        if height == 0 || width == 0 {
            return refused("both sides must be at least 1".into());
        }
        if height.max(width) > MOST_SIDE {
            return refused(format!("both sides must be at most {MOST_SIDE}"));
        }
        match self.style {
            PatchStyle::Qwen => {
                if !QwenLimits::allows(image) {
                    return refused(format!(
                        "the longer side must be at most {MOST_RATIO} times the shorter side"
                    ));
                }
                let (rows, columns) = self.qwen_limits().blocks(image);
                Ok(PatchGrid {
                    rows: rows * self.merge_size,
                    columns: columns * self.merge_size,
                })
            }
            PatchStyle::Pix2struct => Ok(pix2struct::largest_grid(
                image,
                self.patch_size,
                self.max_num_patches,
            )),
            PatchStyle::Siglip2 => {
                let grid = siglip2::search_grid(image, self.patch_size, self.max_num_patches);
                let (most, patches) = (self.max_num_patches, grid.patches());
                match patches > u64::from(most) {
                    true => refused(format!(
                        "it has {patches} patches at the smallest scale, and max_num_patches is {most}"
                    )),
                    false => Ok(grid),
                }
            }
        }
    }

    /// An upper bound of the patches of an image, for all images that [`grid`](Self::grid) accepts.
    pub fn most_patches(&self) -> u64 {
        match self.style {
            PatchStyle::Qwen => {
                self.qwen_limits().most_blocks() * u64::from(self.merge_size).pow(2)
            }
            PatchStyle::Siglip2 | PatchStyle::Pix2struct => u64::from(self.max_num_patches),
        }
    }

    /// Values of a patch.
    pub fn patch_values(&self) -> usize {
        self.order().patch_values()
    }

    /// The order of patches and of their values.
    pub fn order(&self) -> PatchOrder {
        PatchOrder {
            patch_size: self.patch_size,
            merge_size: self.merge_size,
            temporal: self.temporal_patch_size,
            channels_last: self.style != PatchStyle::Qwen,
            is_numbered: self.style == PatchStyle::Pix2struct,
        }
    }

    /// Height and width of a block, in pixels.
    fn block(&self) -> u32 {
        self.patch_size * self.merge_size
    }

    /// Pixels of an image with the most patches.
    fn pixels_of_most(&self) -> u64 {
        self.most_patches() * u64::from(self.patch_size).pow(2)
    }

    fn qwen_limits(&self) -> QwenLimits {
        QwenLimits {
            block: self.block(),
            min_pixels: self.min_pixels,
            max_pixels: self.max_pixels,
        }
    }
}
