//! torchvision's `RandomChannelPermutation`.

use serde::{Deserialize, Serialize};

use crate::recipe::operation::{
    DrawContext, HeightWidth, Operation, OperationPart, PixelState, SampleFault, Step,
};
use crate::recipe::operation_docs::described;
use crate::recipe::permutation::draw_permutation;

described! {
    example: "random_channel_permutation: {}";

    /// Puts the three channels in a random order, all with the same probability.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct RandomChannelPermutation {}
}

impl Operation for RandomChannelPermutation {
    const PARTS: &'static [OperationPart] = &[OperationPart::Augment];

    fn check(&self, _known: &mut PixelState) -> Result<(), String> {
        Ok(())
    }

    fn draw(&self, on: DrawContext<'_>) -> Result<HeightWidth, SampleFault> {
        let order = draw_permutation(on.known, on.random);
        on.steps.push(Step::Permute(order));
        Ok(on.size)
    }
}
