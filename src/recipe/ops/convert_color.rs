//! To another colour space.

use serde::{Deserialize, Serialize};

use crate::error::SampleFault;
use crate::recipe::described::described;
use crate::recipe::known::{Known, Values};
use crate::recipe::operation::{OnDevice, Operation, Rights};
use crate::recipe::random::Numbers;
use crate::recipe::reach::Sides;
use crate::recipe::step::Step;
use crate::recipe::steps::Sink;
use crate::recipe::unit::Part;
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

    fn parts(&self) -> &'static [Part] {
        &[Part::Color]
    }

    fn draw(
        &self,
        _known: &Known,
        size: Sides,
        _random: &mut Numbers<'_>,
        steps: &mut dyn Sink,
    ) -> Result<Sides, SampleFault> {
        steps.push(Step::Convert(self.to, self.white_point));
        Ok(size)
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
