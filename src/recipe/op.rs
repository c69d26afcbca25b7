//! The list of operations. This file is the only place that names all of them: each method of
//! [`Operation`] calls the method of the struct inside [`Op`].
//!
//! To add an operation, add its file to `ops` and its line below.

use serde::{Deserialize, Serialize};

use super::catalogue::{OperationInfo, info};
use super::joints::SampleJoint;
use super::operation::{
    DeviceSupport, DrawContext, HeightWidth, LargestCase, MoveRights, NamedOperation, Operation,
    OperationPart, PixelState, SampleFault, Step, UniformSource,
};

/// For each operation: its file in `ops`, its struct, and its name in a recipe file.
macro_rules! ops {
    ($($file:ident::$name:ident $(<$inner:ident>)? => $text:literal),* $(,)?) => {
        $(pub use super::ops::$file::$name;)*

        /// One operation on one sample.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[non_exhaustive]
        pub enum Op {
            $(#[serde(rename = $text)] $name($name $(<$inner>)?),)*
        }

        $(impl From<$name $(<$inner>)?> for Op {
            fn from(op: $name $(<$inner>)?) -> Self {
                Self::$name(op)
            }
        })*

        impl Op {
            /// The name in a recipe file.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$name(_) => $text,)*
                }
            }

            /// The number of label values, if the drawn value is the sample's label.
            pub(crate) fn gives_labels(&self) -> Option<u32> {
                self.label_count()
            }
        }

        impl NamedOperation for Op {
            fn op_name(&self) -> &'static str {
                self.name()
            }
        }

        /// Every operation, with its parameters and an example.
        pub fn operations() -> Vec<OperationInfo> {
            vec![$(info::<$name $(<$inner>)?, Op>($text)),*]
        }

        /// Evaluates an expression for the struct inside an operation.
        macro_rules! of_each {
            ($me:expr, $op:ident => $answer:expr) => {
                match $me {
                    $(Op::$name($op) => $answer,)*
                }
            };
        }
    };
}

ops! {
    decode::Decode => "decode",
    resize::Resize => "resize",
    random_resized_crop::RandomResizedCrop => "random_resized_crop",
    bounded_resized_crop::BoundedResizedCrop => "bounded_resized_crop",
    random_crop::RandomCrop => "random_crop",
    center_crop::CenterCrop => "center_crop",
    corner_crop::CornerCrop => "corner_crop",
    cover_crop::CoverCrop => "cover_crop",
    center_crop_or_pad::CenterCropOrPad => "center_crop_or_pad",
    resize_keep_ratio::ResizeKeepRatio => "resize_keep_ratio",
    trim_border::TrimBorder => "trim_border",
    random_horizontal_flip::RandomHorizontalFlip => "random_horizontal_flip",
    random_vertical_flip::RandomVerticalFlip => "random_vertical_flip",
    random_rotation::RandomRotation => "random_rotation",
    rotate90::Rotate90 => "rotate90",
    random_rotate90::RandomRotate90 => "random_rotate90",
    random_affine::RandomAffine => "random_affine",
    random_perspective::RandomPerspective => "random_perspective",
    elastic_transform::ElasticTransform => "elastic_transform",
    random_zoom_out::RandomZoomOut => "random_zoom_out",
    random_shortest_size::RandomShortestSize => "random_shortest_size",
    random_resize::RandomResize => "random_resize",
    scale_jitter::ScaleJitter => "scale_jitter",
    large_scale_jitter::LargeScaleJitter => "large_scale_jitter",
    letterbox::Letterbox => "letterbox",
    random_iou_crop::RandomIouCrop => "random_iou_crop",
    random_sized_bbox_safe_crop::RandomSizedBboxSafeCrop => "random_sized_bbox_safe_crop",
    mosaic::Mosaic => "mosaic",
    mix_samples::MixSamples => "mix_samples",
    cut_samples::CutSamples => "cut_samples",
    copy_paste::CopyPaste => "copy_paste",
    patches::Patches => "patches",
    tiles::Tiles => "tiles",
    standardize::Standardize => "standardize",
    pad::Pad => "pad",
    pad_to::PadTo => "pad_to",
    color_jitter::ColorJitter => "color_jitter",
    grayscale::Grayscale => "grayscale",
    random_grayscale::RandomGrayscale => "random_grayscale",
    convert_color::ConvertColor => "convert_color",
    pca_lighting::PcaLighting => "pca_lighting",
    gaussian_blur::GaussianBlur => "gaussian_blur",
    pillow_gaussian_blur::PillowGaussianBlur => "pillow_gaussian_blur",
    random_photometric_distort::RandomPhotometricDistort => "random_photometric_distort",
    random_hsv::RandomHsv => "random_hsv",
    random_channel_permutation::RandomChannelPermutation => "random_channel_permutation",
    gaussian_noise::GaussianNoise => "gaussian_noise",
    jpeg::Jpeg => "jpeg",
    random_posterize::RandomPosterize => "random_posterize",
    random_solarize::RandomSolarize => "random_solarize",
    random_equalize::RandomEqualize => "random_equalize",
    random_autocontrast::RandomAutocontrast => "random_autocontrast",
    random_invert::RandomInvert => "random_invert",
    random_adjust_sharpness::RandomAdjustSharpness => "random_adjust_sharpness",
    random_apply::RandomApply<Op> => "random_apply",
    random_choice::RandomChoice<Op> => "random_choice",
    random_order::RandomOrder<Op> => "random_order",
    auto_augment::AutoAugment => "auto_augment",
    rand_augment::RandAugment => "rand_augment",
    trivial_augment::TrivialAugment => "trivial_augment",
    aug_mix::AugMix => "aug_mix",
    torchvision_aug_mix::TorchvisionAugMix => "torchvision_aug_mix",
    timm_augment::TimmAugment => "timm_augment",
    cutout::Cutout => "cutout",
    random_erasing::RandomErasing => "random_erasing",
    crop_with_padding::CropWithPadding => "crop_with_padding",
    hide_and_seek::HideAndSeek => "hide_and_seek",
    random_blur::RandomBlur => "random_blur",
    random_interpolation::RandomInterpolation => "random_interpolation",
    normalize::Normalize => "normalize",
    cast::Cast => "cast",
    layout::Layout => "layout",
    zero_channel::ZeroChannel => "zero_channel",
}

impl Operation for Op {
    const PARTS: &'static [OperationPart] = &[];

    fn check(&self, known: &mut PixelState) -> Result<(), String> {
        of_each!(self, op => op.check(known))
    }

    fn parts(&self) -> &'static [OperationPart] {
        of_each!(self, op => op.parts())
    }

    fn simplified(&self, known: &PixelState) -> Option<Self> {
        of_each!(self, op => op.simplified(known).map(Op::from))
    }

    fn chance(&self) -> Option<(f64, Step)> {
        of_each!(self, op => op.chance())
    }

    fn draw(&self, on: DrawContext<'_>) -> Result<HeightWidth, SampleFault> {
        of_each!(self, op => op.draw(on))
    }

    fn largest(
        &self,
        known: &PixelState,
        size: HeightWidth,
        most: &mut LargestCase<'_>,
    ) -> HeightWidth {
        of_each!(self, op => op.largest(known, size, most))
    }

    fn draws(&self) -> bool {
        of_each!(self, op => op.draws())
    }

    fn reads_boxes(&self) -> bool {
        of_each!(self, op => op.reads_boxes())
    }

    fn drops_by_centre(&self) -> bool {
        of_each!(self, op => op.drops_by_centre())
    }

    fn sets_size(&self) -> bool {
        of_each!(self, op => op.sets_size())
    }

    fn with_size(&self, size: HeightWidth) -> Option<Self> {
        of_each!(self, op => op.with_size(size).map(Op::from))
    }

    fn part_name(&self, part: OperationPart) -> Option<&'static str> {
        of_each!(self, op => op.part_name(part))
    }

    fn move_rights(&self) -> MoveRights {
        of_each!(self, op => op.move_rights())
    }

    fn device_support(&self) -> DeviceSupport {
        of_each!(self, op => op.device_support())
    }

    fn joint(&self) -> Option<SampleJoint> {
        of_each!(self, op => op.joint())
    }

    fn nesting_depth(&self) -> usize {
        of_each!(self, op => op.nesting_depth())
    }

    fn nested_operations(&self) -> usize {
        of_each!(self, op => op.nested_operations())
    }

    fn label_count(&self) -> Option<u32> {
        of_each!(self, op => op.label_count())
    }

    fn draw_label(&self, random: &mut impl UniformSource) -> Option<i64> {
        of_each!(self, op => op.draw_label(random))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::random::LowestDraws;
    use crate::recipe::{DrawnPicture, FixedBoxes, Recipe, RecipeFormat, SampleProgram};

    #[test]
    fn every_operation_says_what_it_takes() {
        for op in operations() {
            assert!(!op.summary.is_empty(), "{}", op.name);
            for parameter in &op.parameters {
                let of = format!("{} of {}", parameter.name, op.name);
                assert!(!parameter.meaning.is_empty(), "{of}");
                assert!(!parameter.form.is_empty(), "{of}");
            }
        }
    }

    /// Documentation uses the same field names as recipe files.
    #[test]
    fn every_field_is_listed() {
        fn documented<T: crate::recipe::operation_docs::OperationDocs>(
            _: fn(T) -> Op,
        ) -> Vec<&'static str> {
            T::PARAMETERS.iter().map(|(name, _)| *name).collect()
        }
        let listed = |name: &str| -> Vec<&'static str> {
            let all = operations();
            let op = all.iter().find(|op| op.name == name).unwrap();
            op.parameters.iter().map(|p| p.name).collect()
        };
        assert_eq!(documented(Op::Resize), listed("resize"));
        assert_eq!(documented(Op::Cutout), listed("cutout"));
        assert_eq!(listed("pad"), ["padding", "fill", "padding_mode"]);
    }

    #[test]
    fn every_example_is_a_recipe_that_draws() {
        for op in operations() {
            let first = match op.name {
                "decode" => "",
                "patches" | "tiles" => "  - decode\n",
                _ => "  - decode\n  - resize: {size: [300, 300]}\n",
            };
            let last = match op.name {
                "patches" | "tiles" => "",
                _ => "  - random_crop: {size: 8, pad_if_needed: true}\n",
            };
            let yaml = format!("featherload: 1\nops:\n{first}  - {}\n{last}", op.example);
            let recipe = Recipe::from_text(&yaml, RecipeFormat::Yaml, "example.yaml")
                .unwrap_or_else(|e| panic!("{e}\n{yaml}"));
            assert!(recipe.ops.iter().any(|o| o.name() == op.name));
            let program = SampleProgram::compile(&recipe).unwrap_or_else(|e| panic!("{e}\n{yaml}"));
            let boxes = FixedBoxes(vec![[5.0, 9.0, 30.0, 20.0]]);
            let picture = DrawnPicture {
                boxes: Some(&boxes),
                ..DrawnPicture::of_size((70, 90))
            };
            program
                .steps(&picture, &LowestDraws, &mut Vec::new())
                .unwrap_or_else(|e| panic!("{e}\n{yaml}"));
        }
    }

    #[test]
    fn defaults_are_those_that_files_are_read_with() {
        let all = operations();
        let parameter = |op: &str, name: &str| {
            let op = all.iter().find(|o| o.name == op).unwrap();
            let p = op.parameters.iter().find(|p| p.name == name).unwrap();
            (p.required, p.default.as_deref())
        };
        assert_eq!(
            parameter("random_horizontal_flip", "p"),
            (false, Some("0.5"))
        );
        assert_eq!(parameter("random_resized_crop", "size"), (true, None));
        assert_eq!(
            parameter("random_resized_crop", "scale"),
            (false, Some("[0.08, 1.0]"))
        );
        // Files omit these.
        assert_eq!(parameter("resize", "rounding"), (false, Some("down")));
        assert_eq!(parameter("random_rotation", "p"), (false, Some("1")));
        assert_eq!(
            parameter("random_rotation", "style"),
            (false, Some("tensor"))
        );
        assert_eq!(
            parameter("random_rotate90", "label"),
            (false, Some("false"))
        );
        assert_eq!(parameter("resize", "max_size"), (false, None));
    }
}
