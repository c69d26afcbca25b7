//! A crop that overlaps objects.
//!
//! Coordinates are shifted by the crop's left and top. Objects whose centre lies outside are
//! dropped.

use serde::{Deserialize, Serialize};

use crate::recipe::geometry::PixelRect;
use crate::recipe::operation::{
    DrawContext, HeightWidth, LargestCase, Operation, OperationPart, PixelState, SampleFault, Step,
    UniformSource,
};
use crate::recipe::operation_docs::described;
use crate::recipe::ranges::{number, range};
use crate::recipe::size_bounds::SizeBounds;
use crate::recipe::steps::{StepBounds, StepPresence};
use crate::recipe::values::Span;

described! {
    example: "random_iou_crop: {min_scale: 0.3, max_scale: 1.0}";

    /// Crops a part in which an object lies, as SSD and torchvision's `RandomIoUCrop` do. It reads
    /// the boxes of `objects`. A least overlap is chosen from `sampler_options`; 1 or more leaves
    /// the image as it is. Up to `trials` crops are drawn until one has the centre of a box, and an
    /// intersection over union with such a box of at least the chosen overlap. If none has, another
    /// overlap is chosen. Objects whose centre lies outside are dropped. A resize or a crop must
    /// follow.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct RandomIouCrop {
        /// The least share of each side, 0 to 1.
        pub min_scale: f64 = 0.3,
        /// The greatest share of each side, 0 to 1.
        pub max_scale: f64 = 1.0,
        /// The least width divided by height.
        pub min_aspect_ratio: f64 = 0.5,
        /// The greatest width divided by height.
        pub max_aspect_ratio: f64 = 2.0,
        /// Least overlaps, each as likely as the others.
        pub sampler_options: Vec<f64> = vec![0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0],
        /// Crops that are drawn for a chosen overlap, 1 to 1000.
        pub trials: u32 = 40,
    }
}

/// The most overlaps that are chosen for a sample. Then it stays as it is. torchvision searches
/// without end where no overlap of 1 is among the options.
const MOST_CHOICES: u32 = 100;

impl Operation for RandomIouCrop {
    const PARTS: &'static [OperationPart] = &[OperationPart::Crop];

    fn check(&self, known: &mut PixelState) -> Result<(), String> {
        range(
            "min_scale and max_scale",
            Span(self.min_scale, self.max_scale),
            0.0,
            1.0,
        )?;
        let ratio = Span(self.min_aspect_ratio, self.max_aspect_ratio);
        range(
            "min_aspect_ratio and max_aspect_ratio",
            ratio,
            0.0,
            f64::MAX,
        )?;
        if !(1..=64).contains(&self.sampler_options.len()) {
            return Err(format!(
                "sampler_options has {} numbers: use 1 to 64",
                self.sampler_options.len()
            ));
        }
        for overlap in &self.sampler_options {
            number("sampler_options", *overlap, 0.0, f64::MAX)?;
        }
        if !(1..=1000).contains(&self.trials) {
            return Err(format!("trials is {}: use 1 to 1000", self.trials));
        }
        known.forget_size();
        Ok(())
    }

    fn draw(&self, on: DrawContext<'_>) -> Result<HeightWidth, SampleFault> {
        let boxes = on.boxes.unwrap_or_default();
        let last = self.sampler_options.len() as u32 - 1;
        for _ in 0..MOST_CHOICES {
            let chosen = on.random.next_up_to(last) as usize;
            let Some(overlap) = self.sampler_options.get(chosen).filter(|v| **v < 1.0) else {
                break;
            };
            for _ in 0..self.trials {
                let Some(rect) = self.drawn_rect(on.size, on.random) else {
                    continue;
                };
                let inside = boxes.iter().filter(|values| rect.has_centre_of(**values));
                let most = inside.map(|values| rect.overlap_with(*values));
                // None: no centre lies inside.
                if most
                    .reduce(f32::max)
                    .is_some_and(|most| most >= *overlap as f32)
                {
                    on.steps.push(Step::Crop(rect));
                    return Ok((rect.height, rect.width));
                }
            }
        }
        Ok(on.size)
    }

    fn largest(
        &self,
        _known: &PixelState,
        size: HeightWidth,
        most: &mut LargestCase<'_>,
    ) -> HeightWidth {
        let reach = most.reach();
        let over = StepBounds {
            presence: StepPresence::Optional,
            size_after: Some(SizeBounds {
                low: (1, 1),
                ..reach
            }),
            ..StepBounds::default()
        };
        most.add(Step::Crop(PixelRect::whole(size)), over);
        size
    }

    fn reads_boxes(&self) -> bool {
        true
    }

    fn drops_by_centre(&self) -> bool {
        true
    }
}

impl RandomIouCrop {
    /// In `f32`, as in torch's tensors. None: the crop is empty, or of a wrong shape.
    fn drawn_rect(
        &self,
        (height, width): HeightWidth,
        random: &mut impl UniformSource,
    ) -> Option<PixelRect> {
        let mut next = || random.next_f64() as f32;
        let (low, more) = (
            self.min_scale as f32,
            (self.max_scale - self.min_scale) as f32,
        );
        let mut share = |side: u32| (side as f32 * (low + more * next())) as u32;
        let (w, h) = (share(width), share(height));
        let ratio = f64::from(w) / f64::from(h);
        if !(self.min_aspect_ratio..=self.max_aspect_ratio).contains(&ratio) {
            return None;
        }
        let mut before = |room: u32| (room as f32 * next()) as u32;
        let (left, top) = (before(width - w.min(width)), before(height - h.min(height)));
        (w > 0 && h > 0).then_some(PixelRect {
            left,
            top,
            width: w.min(width),
            height: h.min(height),
        })
    }
}
