//! To another colour space.

use serde::{Deserialize, Serialize};

use crate::recipe::described::described;
use crate::recipe::known::Values;
use crate::recipe::operation::{
    DrawContext, Known, OnDevice, Operation, Part, Rights, SampleFault, Sides, Step,
};
use crate::recipe::values::{ColorSpace, WhitePoint};

described! {
    example: "convert_color: {to: lab}";

    /// To another colour space, in `f32`. Ranges are those of [`ColorSpace`].
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct ConvertColor {
        /// The colour space.
        pub to: ColorSpace,
        /// Of `lab`.
        #[serde(default)]
        pub white_point: WhitePoint,
    }
}

impl ConvertColor {
    pub fn new(to: ColorSpace) -> Self {
        Self {
            to,
            white_point: WhitePoint::default(),
        }
    }
}

impl Operation for ConvertColor {
    const PARTS: &'static [Part] = &[Part::Color];
    const DRAWS: bool = false;

    fn check(&self, known: &mut Known) -> Result<(), String> {
        known.is_levels_of_rgb("does not give rgb levels")?;
        if known.channels == 1 {
            return Err("needs three channels, and the pictures are grey".into());
        }
        known.is_rgb = false;
        known.bgr = false;
        known.floats = true;
        if self.to != ColorSpace::Ycbcr {
            known.values = Values::Color(self.to);
        }
        Ok(())
    }

    fn draw(&self, on: DrawContext<'_>) -> Result<Sides, SampleFault> {
        on.steps.push(Step::Convert(self.to, self.white_point));
        Ok(on.size)
    }

    fn rights(&self) -> Rights {
        Rights {
            behind_resize: "the conversion of a mean is not the mean of conversions (it is not \
                            linear), and the \
                            resize rounds to whole levels",
            ..Rights::default()
        }
    }

    fn on_device(&self) -> OnDevice {
        OnDevice {
            colors: Some(1),
            ..OnDevice::default()
        }
    }
}
