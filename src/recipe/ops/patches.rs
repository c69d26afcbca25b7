//! A resize to whole patches, and rows of the patches that a vision-language model reads.
//!
//! Coordinates are multiplied by the ratio of the sides, each axis by its own.

use serde::{Deserialize, Serialize};

use crate::error::FaultKind;
use crate::recipe::operation::{
    DrawContext, HeightWidth, LargestCase, Operation, OperationPart, PixelState, SampleFault, Step,
};
use crate::recipe::operation_docs::described;
use crate::recipe::patches::{CutRule, PatchRule, PatchStyle};
use crate::recipe::ranges::MAX_SIDE;
use crate::recipe::steps::StepSink;
use crate::recipe::values::InterpolationMode;

described! {
    example: "patches: {style: qwen, patch_size: 16, max_pixels: 262144}";

    /// Resizes an image to whole patches and makes its row of them, like the image processors of
    /// transformers. `qwen`: Qwen2-VL, Qwen2.5-VL and Qwen3-VL; a row has the patches of its image.
    /// `siglip2`: SigLIP 2 NaFlex; a row has `max_num_patches`, and zeros after those of its image.
    /// `pix2struct`: the same for Pix2Struct, and each patch begins with its row and its column,
    /// from 1. No other operation may change the size.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Patches {
        /// `qwen`, `siglip2` or `pix2struct`.
        pub style: PatchStyle,
        /// Height and width of a patch in pixels. Default: 14 for `qwen` (Qwen2-VL and Qwen2.5-VL;
        /// Qwen3-VL has 16), 16 for the others.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub patch_size: Option<u32>,
        /// `qwen`: patches along each side of a block. The model merges a block to one token.
        /// Default: 2.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub merge_size: Option<u32>,
        /// `qwen`: how often a patch has its image, as if it were frames of a video. Default: 2.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub temporal_patch_size: Option<u32>,
        /// `qwen`: images with fewer pixels grow. Default: 3136 (56 x 56).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub min_pixels: Option<u64>,
        /// `qwen`: images with more pixels shrink. Default: 1003520 (28 x 28 x 1280).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub max_pixels: Option<u64>,
        /// `siglip2`, `pix2struct`: patches of a row. Default: 256 and 2048. Elements must hold
        /// this number exactly with `pix2struct`: bf16 holds 256, f16 2048.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub max_num_patches: Option<u32>,
        /// How values between pixels are computed, with antialias. Default: bicubic for `qwen`,
        /// bilinear for the others.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub interpolation: Option<InterpolationMode>,
    }
}

impl Patches {
    fn of_style(style: PatchStyle, patch_size: u32) -> Self {
        Self {
            style,
            patch_size: Some(patch_size),
            merge_size: None,
            temporal_patch_size: None,
            min_pixels: None,
            max_pixels: None,
            max_num_patches: None,
            interpolation: None,
        }
    }

    /// Of Qwen2-VL and Qwen2.5-VL with 14, of Qwen3-VL with 16.
    pub fn qwen(patch_size: u32) -> Self {
        Self::of_style(PatchStyle::Qwen, patch_size)
    }

    /// Of SigLIP 2 NaFlex.
    pub fn siglip2(patch_size: u32, max_num_patches: u32) -> Self {
        Self {
            max_num_patches: Some(max_num_patches),
            ..Self::of_style(PatchStyle::Siglip2, patch_size)
        }
    }

    /// Of Pix2Struct. Its values are those of [`Standardize`](super::standardize::Standardize),
    /// which comes before.
    pub fn pix2struct(patch_size: u32, max_num_patches: u32) -> Self {
        Self {
            max_num_patches: Some(max_num_patches),
            ..Self::of_style(PatchStyle::Pix2struct, patch_size)
        }
    }

    /// With this range of pixels.
    #[must_use]
    pub fn between(self, min_pixels: u64, max_pixels: u64) -> Self {
        Self {
            min_pixels: Some(min_pixels),
            max_pixels: Some(max_pixels),
            ..self
        }
    }

    /// The rule, with the defaults of the style.
    fn rule(&self) -> PatchRule {
        match self.style {
            PatchStyle::Qwen => PatchRule {
                merge_size: self.merge_size.unwrap_or(2),
                temporal_patch_size: self.temporal_patch_size.unwrap_or(2),
                ..PatchRule::qwen(
                    self.patch_size.unwrap_or(14),
                    self.min_pixels.unwrap_or(56 * 56),
                    self.max_pixels.unwrap_or(28 * 28 * 1280),
                )
            },
            PatchStyle::Siglip2 => PatchRule::siglip2(
                self.patch_size.unwrap_or(16),
                self.max_num_patches.unwrap_or(256),
            ),
            PatchStyle::Pix2struct => PatchRule::pix2struct(
                self.patch_size.unwrap_or(16),
                self.max_num_patches.unwrap_or(2048),
            ),
        }
    }

    /// Rejects parameters of the other style.
    fn check_fields(&self) -> Result<(), String> {
        let of_qwen = [
            ("merge_size", self.merge_size.is_some()),
            ("temporal_patch_size", self.temporal_patch_size.is_some()),
            ("min_pixels", self.min_pixels.is_some()),
            ("max_pixels", self.max_pixels.is_some()),
        ];
        let of_others = [("max_num_patches", self.max_num_patches.is_some())];
        let (other, foreign) = match self.style {
            PatchStyle::Qwen => ("styles siglip2 and pix2struct", &of_others[..]),
            PatchStyle::Siglip2 | PatchStyle::Pix2struct => ("style qwen", &of_qwen[..]),
        };
        match foreign.iter().find(|(_, is_set)| *is_set) {
            Some((name, _)) => Err(format!("{name} has an effect with {other} only: remove it")),
            None => Ok(()),
        }
    }

    fn resize(&self, (height, width): HeightWidth) -> Step {
        let of_style = match self.style {
            PatchStyle::Qwen => InterpolationMode::Bicubic,
            PatchStyle::Siglip2 | PatchStyle::Pix2struct => InterpolationMode::Bilinear,
        };
        Step::Resize {
            size: (height, width).into(),
            interpolation: self.interpolation.unwrap_or(of_style).of_torchvision(),
            antialias: true,
        }
    }
}

impl Operation for Patches {
    const PARTS: &'static [OperationPart] = &[OperationPart::Resize];
    const DRAWS: bool = false;

    fn check(&self, known: &mut PixelState) -> Result<(), String> {
        self.check_fields()?;
        let rule = self.rule();
        rule.check()?;
        match known.patches {
            Some(CutRule::Patches(_)) => return Err("is written twice: remove one".into()),
            Some(CutRule::Tiles(_)) => return Err("comes after tiles: remove one of them".into()),
            None => {}
        }
        known.forget_size();
        known.patches = Some(CutRule::Patches(rule));
        Ok(())
    }

    fn draw(&self, on: DrawContext<'_>) -> Result<HeightWidth, SampleFault> {
        let rule = self.rule();
        let grid = rule.grid(on.size);
        let grid = grid.map_err(|text| FaultKind::TooLarge.fault(text))?;
        let to = grid.resized(rule.patch_size);
        if to.0.max(to.1) > MAX_SIDE {
            let limit = match self.style {
                PatchStyle::Qwen => "max_pixels",
                PatchStyle::Siglip2 | PatchStyle::Pix2struct => "max_num_patches",
            };
            return Err(FaultKind::TooLarge.fault(format!(
                "the image is {} x {}, patches makes it {} x {}, and a side has at most {MAX_SIDE} \
                 pixels: use a smaller {limit}",
                on.size.1, on.size.0, to.1, to.0
            )));
        }
        on.steps.push(self.resize(to));
        Ok(to)
    }

    fn largest(
        &self,
        _known: &PixelState,
        size: HeightWidth,
        most: &mut LargestCase<'_>,
    ) -> HeightWidth {
        let rule = self.rule();
        // An image without a grid fails.
        let to = (rule.grid(size)).map_or(size, |grid| grid.resized(rule.patch_size));
        most.push(self.resize(to));
        to
    }
}
