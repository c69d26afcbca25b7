//! Pictures of several samples beside each other.
//!
//! A joint: `recipe/joints` has what it draws and where the pictures lie. Coordinates are shifted,
//! and boxes are clipped at the canvas.

use serde::{Deserialize, Serialize};

use crate::recipe::joints::{JointKind, SampleJoint, check_window};
use crate::recipe::operation::{Operation, OperationPart, PixelState};
use crate::recipe::operation_docs::described;
use crate::recipe::ranges::{MAX_SIDE, probability, sides, whole_levels};
use crate::recipe::values::{PerChannel, Size};

described! {
    example: "mosaic: {size: 640, p: 1.0}";

    /// Joins the picture with those of random other samples, as ultralytics and YOLOX do. The
    /// result has twice the sides of `size`. With `grid: 2` four pictures meet at a random point:
    /// the picture of the sample lies at the upper left. With `grid: 3` eight pictures lie around
    /// it. With probability `1 - p` the picture is alone, in the middle of the result. A resize to
    /// `size` comes before it, such as `resize: {max_size: 640}`, and a crop to `size` after it.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Mosaic {
        /// The largest height and width of each picture, in pixels.
        pub size: Size,
        /// Pictures along each side: 2 or 3.
        #[serde(default = "two")]
        pub grid: u32,
        /// The probability, 0 to 1.
        #[serde(default = "always")]
        pub p: f64,
        /// The colour where no picture lies: whole levels.
        #[serde(default = "grey")]
        pub fill: PerChannel,
        /// Divides the order of the epoch into windows of this many samples, 2 to 1,000,000.
        /// Partners come from the window of the sample. Without it they come from the whole epoch.
        /// Of the first joint: workers share the pictures of a window, unless an operation before it
        /// draws random numbers.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub partner_window: Option<u32>,
    }
}

impl Mosaic {
    /// Four pictures of at most this size.
    pub fn new(size: impl Into<Size>) -> Self {
        Self {
            size: size.into(),
            grid: two(),
            p: always(),
            fill: grey(),
            partner_window: None,
        }
    }

    /// Height and width of the result.
    fn canvas(&self) -> Size {
        Size {
            height: 2 * self.size.height,
            width: 2 * self.size.width,
        }
    }
}

fn two() -> u32 {
    2
}

fn always() -> f64 {
    1.0
}

fn grey() -> PerChannel {
    PerChannel::from(114.0)
}

impl Operation for Mosaic {
    const PARTS: &'static [OperationPart] = &[OperationPart::Pad];

    fn check(&self, known: &mut PixelState) -> Result<(), String> {
        probability(self.p)?;
        check_window(self.partner_window)?;
        sides(self.size)?;
        whole_levels("fill", self.fill)?;
        known.check_rgb8()?;
        if !(2..=3).contains(&self.grid) {
            return Err(format!("grid is {}: use 2 or 3", self.grid));
        }
        let (Size { height, width }, most) = (self.size, MAX_SIDE / 3);
        if height.max(width) > most {
            return Err(format!("size is {width} x {height}: use at most {most}"));
        }
        if let Some((h, w)) = known.size.filter(|(h, w)| *h > height || *w > width) {
            return Err(format!(
                "size {} is smaller than the images, which are {w} x {h} here: use a larger size, \
                 or a smaller resize before it",
                self.size
            ));
        }
        known.set_size(self.canvas());
        Ok(())
    }

    fn joint(&self) -> Option<SampleJoint> {
        Some(SampleJoint {
            p: self.p,
            kind: JointKind::Mosaic {
                grid: self.grid,
                size: self.size,
                fill: self.fill.0.map(|level| level as u8),
            },
            window: self.partner_window,
        })
    }
}
