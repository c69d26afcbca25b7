//! A channel of zeros behind those of the pictures.

use serde::{Deserialize, Serialize};

use crate::error::SampleFault;
use crate::recipe::described::described;
use crate::recipe::known::Known;
use crate::recipe::operation::Operation;
use crate::recipe::random::Numbers;
use crate::recipe::reach::Sides;
use crate::recipe::steps::Sink;
use crate::recipe::unit::Part;

described! {
    example: "zero_channel: {}";

    /// Batches get a fourth channel, which is zero: what PaddleClas' `NormalizeImage`
    /// does with `channel_num: 4`, for convolutions that are faster on four. Of colour
    /// pictures in layout nchw; where it stands means nothing.
    #[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct ZeroChannel {}
}

impl Operation for ZeroChannel {
    /// Of the whole recipe, as it is not of its place: `program` does.
    fn check(&self, _known: &mut Known) -> Result<(), String> {
        Ok(())
    }

    fn parts(&self) -> &'static [Part] {
        &[]
    }

    fn draw(
        &self,
        _known: &Known,
        size: Sides,
        _random: &mut Numbers<'_>,
        _steps: &mut dyn Sink,
    ) -> Result<Sides, SampleFault> {
        Ok(size)
    }
}
