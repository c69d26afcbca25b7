//! The element type.

use serde::{Deserialize, Serialize};

use crate::error::SampleFault;
use crate::recipe::described::described;
use crate::recipe::known::Known;
use crate::recipe::operation::{Operation, Rights};
use crate::recipe::random::Numbers;
use crate::recipe::reach::Sides;
use crate::recipe::step::Step;
use crate::recipe::steps::Sink;
use crate::recipe::tensor::Dtype;
use crate::recipe::unit::Part;

described! {
    example: "cast: {dtype: f16}";

    /// The element type from here on, and of the batch if it is the last cast.
    /// Levels stay 0 to 255 on the way; a batch of floats is divided by 255 at its end.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Cast {
        /// `u8`, `f16`, `bf16` or `f32`.
        pub dtype: Dtype,
    }
}

impl Operation for Cast {
    fn check(&self, known: &mut Known) -> Result<(), String> {
        known.values.fit(self.dtype)?;
        known.floats = self.dtype != Dtype::U8;
        Ok(())
    }

    fn parts(&self) -> &'static [Part] {
        &[Part::Cast]
    }

    fn draw(
        &self,
        _known: &Known,
        size: Sides,
        _random: &mut Numbers<'_>,
        steps: &mut dyn Sink,
    ) -> Result<Sides, SampleFault> {
        steps.push(Step::Cast(self.dtype));
        Ok(size)
    }

    fn rights(&self) -> Rights {
        Rights {
            casts_to: Some(self.dtype),
            ..Rights::default()
        }
    }
}
