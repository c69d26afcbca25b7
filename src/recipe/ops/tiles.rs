//! A resize to whole tiles, and rows of the tiles that a vision-language model reads.
//!
//! Coordinates are those of the canvas. They are multiplied by the ratio of the sides, each axis by
//! its own. Then they are shifted by the border at the left and at the top.

use serde::{Deserialize, Serialize};

use super::resize::Resize;
use crate::error::FaultKind;
use crate::recipe::operation::{
    DrawContext, HeightWidth, LargestCase, MoveRights, Operation, OperationPart, PixelState,
    SampleFault, Step,
};
use crate::recipe::operation_docs::described;
use crate::recipe::patches::{CutRule, GridPinpoints, TileCanvases, TileRule, TileStyle};
use crate::recipe::size_bounds::SizeBounds;
use crate::recipe::steps::{StepBounds, StepPresence, StepSink};
use crate::recipe::values::{InterpolationMode, Padding, PaddingMode, PerChannel};

/// The canvases of LLaVA-NeXT, in tiles: height and width.
const LLAVA_NEXT: [(u32, u32); 5] = [(1, 2), (2, 1), (2, 2), (3, 1), (1, 3)];

described! {
    example: "tiles: {style: internvl, tile_size: 224, max_tiles: 6}";

    /// Cuts an image into tiles of one size, and adds an overview: the whole image in one tile.
    /// Like the image processors of transformers. `internvl`: the image fills a canvas of
    /// `min_tiles` to `max_tiles`; the overview is last, and only with several tiles. `llava_next`:
    /// the image keeps its ratio within one of `grid_pinpoints`, in the middle of a black border;
    /// the overview is first. No other operation may change the size.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Tiles {
        /// `internvl` or `llava_next`.
        pub style: TileStyle,
        /// Height and width of a tile in pixels, 1 to 2048. Default: 448 for `internvl`, 336 for
        /// `llava_next`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub tile_size: Option<u32>,
        /// `internvl`: least tiles of an image, without its overview. Default: 1.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub min_tiles: Option<u32>,
        /// `internvl`: most tiles of an image, without its overview, 1 to 256. Default: 12.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub max_tiles: Option<u32>,
        /// `llava_next`: canvases, as height and width in pixels, multiples of `tile_size`.
        /// Default: 1 x 2, 2 x 1, 2 x 2, 3 x 1 and 1 x 3 tiles.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub grid_pinpoints: Option<Vec<(u32, u32)>>,
        /// How values between pixels are computed, with antialias.
        #[serde(default = "bicubic")]
        pub interpolation: InterpolationMode,
    }
}

fn bicubic() -> InterpolationMode {
    InterpolationMode::Bicubic
}

impl Tiles {
    fn of_style(style: TileStyle, tile_size: u32) -> Self {
        Self {
            style,
            tile_size: Some(tile_size),
            min_tiles: None,
            max_tiles: None,
            grid_pinpoints: None,
            interpolation: bicubic(),
        }
    }

    /// Of InternVL.
    pub fn internvl(tile_size: u32, max_tiles: u32) -> Self {
        Self {
            max_tiles: Some(max_tiles),
            ..Self::of_style(TileStyle::Internvl, tile_size)
        }
    }

    /// Of LLaVA-NeXT, with its canvases.
    pub fn llava_next(tile_size: u32) -> Self {
        Self::of_style(TileStyle::LlavaNext, tile_size)
    }

    /// With these canvases, as height and width in pixels.
    #[must_use]
    pub fn pinpoints(self, sizes: impl IntoIterator<Item = (u32, u32)>) -> Self {
        Self {
            grid_pinpoints: Some(sizes.into_iter().collect()),
            ..self
        }
    }

    fn size(&self) -> u32 {
        self.tile_size.unwrap_or(match self.style {
            TileStyle::Internvl => 448,
            TileStyle::LlavaNext => 336,
        })
    }

    /// The rule, with the defaults of the style.
    ///
    /// # Errors
    /// A canvas that no rule can have.
    fn rule(&self) -> Result<TileRule, String> {
        let tile_size = self.size();
        let canvases = match self.style {
            TileStyle::Internvl => TileCanvases::Count {
                min: self.min_tiles.unwrap_or(1),
                max: self.max_tiles.unwrap_or(12),
            },
            TileStyle::LlavaNext => {
                let in_pixels = |(rows, columns): (u32, u32)| {
                    let side = |tiles: u32| tiles.saturating_mul(tile_size);
                    (side(rows), side(columns))
                };
                let list = match &self.grid_pinpoints {
                    Some(sizes) => GridPinpoints::new(sizes.iter().copied(), tile_size),
                    None => GridPinpoints::new(LLAVA_NEXT.map(in_pixels).into_iter(), tile_size),
                };
                TileCanvases::Pinpoints(list?)
            }
        };
        Ok(TileRule {
            tile_size,
            canvases,
        })
    }

    /// Rejects parameters of the other style.
    fn check_fields(&self) -> Result<(), String> {
        let of_internvl = [
            ("min_tiles", self.min_tiles.is_some()),
            ("max_tiles", self.max_tiles.is_some()),
        ];
        let of_llava_next = [("grid_pinpoints", self.grid_pinpoints.is_some())];
        let (other, foreign) = match self.style {
            TileStyle::Internvl => (TileStyle::LlavaNext, &of_llava_next[..]),
            TileStyle::LlavaNext => (TileStyle::Internvl, &of_internvl[..]),
        };
        match foreign.iter().find(|(_, is_set)| *is_set) {
            Some((name, _)) => Err(format!(
                "{name} has an effect with style {} only: remove it",
                other.name()
            )),
            None => Ok(()),
        }
    }

    /// The resize to one tile.
    pub(crate) fn overview(&self) -> Resize {
        let side = self.size();
        Resize {
            interpolation: self.interpolation.of_torchvision(),
            antialias: true,
            ..Resize::exact(side, side)
        }
    }

    fn resize(&self, (height, width): HeightWidth) -> Step {
        Step::Resize {
            size: (height, width).into(),
            interpolation: self.interpolation.of_torchvision(),
            antialias: true,
        }
    }
}

fn pad(known: &PixelState, padding: Padding) -> Step {
    Step::Pad {
        padding,
        mode: PaddingMode::Constant,
        fill: known.in_memory(PerChannel::default().0),
    }
}

/// The border that an image of this height and width gets in its canvas. An odd pixel is at the
/// right or at the bottom.
fn border((height, width): HeightWidth, canvas: HeightWidth) -> Padding {
    let (x, y) = (canvas.1 - width, canvas.0 - height);
    Padding {
        left: x / 2,
        top: y / 2,
        right: x - x / 2,
        bottom: y - y / 2,
    }
}

impl Operation for Tiles {
    const PARTS: &'static [OperationPart] = &[OperationPart::Resize, OperationPart::Pad];
    const DRAWS: bool = false;

    fn check(&self, known: &mut PixelState) -> Result<(), String> {
        self.check_fields()?;
        let rule = self.rule()?;
        rule.check()?;
        match known.patches {
            Some(CutRule::Tiles(_)) => return Err("is written twice: remove one".into()),
            Some(CutRule::Patches(_)) => {
                return Err("comes after patches: remove one of them".into());
            }
            None => {}
        }
        known.forget_size();
        known.patches = Some(CutRule::Tiles(rule));
        Ok(())
    }

    fn parts(&self) -> &'static [OperationPart] {
        match self.style {
            TileStyle::Internvl => &[OperationPart::Resize],
            TileStyle::LlavaNext => Self::PARTS,
        }
    }

    fn draw(&self, on: DrawContext<'_>) -> Result<HeightWidth, SampleFault> {
        let rule = self.rule();
        let rule = rule.map_err(|text| FaultKind::Unsupported.fault(text))?;
        let (inside, canvas) = (rule.inside(on.size), rule.grid(on.size));
        let canvas = canvas.resized(rule.tile_size);
        on.steps.push(self.resize(inside));
        if inside != canvas {
            on.steps.push(pad(on.known, border(inside, canvas)));
        }
        Ok(canvas)
    }

    fn largest(
        &self,
        known: &PixelState,
        size: HeightWidth,
        most: &mut LargestCase<'_>,
    ) -> HeightWidth {
        // Only of a recipe that failed its check. Its samples fail, too.
        let Ok(rule) = self.rule() else {
            return size;
        };
        let (inside, canvas) = (rule.inside(size), rule.grid(size));
        let canvas = canvas.resized(rule.tile_size);
        most.push(self.resize(inside));
        if inside != canvas {
            let over = StepBounds {
                presence: StepPresence::Always,
                size_after: Some(SizeBounds::exactly(canvas)),
                ..StepBounds::default()
            };
            most.add(pad(known, border(inside, canvas)), over);
        }
        canvas
    }

    fn part_name(&self, part: OperationPart) -> Option<&'static str> {
        let has_border = self.style == TileStyle::LlavaNext;
        has_border.then_some(match part {
            OperationPart::Resize => "its resize",
            _ => "its border",
        })
    }

    fn move_rights(&self) -> MoveRights {
        let has_border = self.style == TileStyle::LlavaNext;
        MoveRights {
            border: has_border.then_some((PaddingMode::Constant, PerChannel::default())),
            ..MoveRights::default()
        }
    }
}

#[cfg(test)]
mod tests;
