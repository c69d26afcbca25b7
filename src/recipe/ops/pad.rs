//! Pixels around the picture.

use serde::{Deserialize, Serialize};

use crate::error::SampleFault;
use crate::recipe::described::described;
use crate::recipe::known::Known;
use crate::recipe::operation::{Operation, Rights};
use crate::recipe::random::Numbers;
use crate::recipe::ranges::padding;
use crate::recipe::reach::Sides;
use crate::recipe::step::Step;
use crate::recipe::steps::Sink;
use crate::recipe::unit::Part;
use crate::recipe::values::{Padding, PaddingMode, PerChannel};

described! {
    example: "pad: {padding: 4, fill: 128}";

    /// Pixels around the picture.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Pad {
        /// Pixels to add at each side.
        pub padding: Padding,
        /// For `padding_mode: constant`.
        #[serde(default)]
        pub fill: PerChannel,
        /// What stands in the padding.
        #[serde(default)]
        pub padding_mode: PaddingMode,
    }
}

impl Pad {
    pub fn new(padding: impl Into<Padding>) -> Self {
        Self {
            padding: padding.into(),
            fill: PerChannel::default(),
            padding_mode: PaddingMode::default(),
        }
    }
}

impl Operation for Pad {
    fn check(&self, known: &mut Known) -> Result<(), String> {
        padding(self.padding)?;
        known.color("fill", self.fill.0)?;
        known.grows(self.padding)?;
        known.resized = true;
        Ok(())
    }

    fn parts(&self) -> &'static [Part] {
        &[Part::Pad]
    }

    fn draw(
        &self,
        known: &Known,
        size: Sides,
        _random: &mut Numbers<'_>,
        steps: &mut dyn Sink,
    ) -> Result<Sides, SampleFault> {
        steps.push(Step::Pad {
            padding: self.padding,
            mode: self.padding_mode,
            fill: known.in_memory(self.fill.0),
        });
        Ok(self.padding.around(size))
    }

    fn rights(&self) -> Rights {
        Rights {
            border: Some((self.padding_mode, self.fill)),
            ..Rights::default()
        }
    }
}
