//! To another colour space.

use serde::{Deserialize, Serialize};

use crate::recipe::operation::{
    DeviceSupport, DrawContext, HeightWidth, MoveRights, Operation, OperationPart, PixelState,
    SampleFault, Step,
};
use crate::recipe::operation_docs::described;
use crate::recipe::pixel_state::ValueKind;
use crate::recipe::values::{ColorSpace, WhitePoint};

described! {
    example: "convert_color: {to: lab}";

    /// Converts to another colour space, in `f32`. Ranges are those of [`ColorSpace`].
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct ConvertColor {
        /// The colour space.
        pub to: ColorSpace,
        /// The white point of `lab`.
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
    const PARTS: &'static [OperationPart] = &[OperationPart::Color];
    const DRAWS: bool = false;

    fn check(&self, known: &mut PixelState) -> Result<(), String> {
        known.check_rgb_levels("does not give rgb levels")?;
        if known.channels == 1 {
            return Err("needs three channels, and the images are grey".into());
        }
        known.is_rgb = false;
        known.bgr = false;
        known.floats = true;
        if self.to != ColorSpace::Ycbcr {
            known.values = ValueKind::Color(self.to);
        }
        Ok(())
    }

    fn draw(&self, on: DrawContext<'_>) -> Result<HeightWidth, SampleFault> {
        on.steps.push(Step::Convert(self.to, self.white_point));
        Ok(on.size)
    }

    fn move_rights(&self) -> MoveRights {
        MoveRights {
            change_after_resize: "the conversion is not linear, so converting a mean is not the mean \
                                  of conversions, and the resize rounds to whole levels",
            ..MoveRights::default()
        }
    }

    fn device_support(&self) -> DeviceSupport {
        DeviceSupport {
            colors: Some(1),
            ..DeviceSupport::default()
        }
    }
}
