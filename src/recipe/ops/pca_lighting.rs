//! AlexNet's colour noise.

use serde::{Deserialize, Serialize};

use crate::recipe::augment::distribution::gauss;
use crate::recipe::operation::{
    DrawContext, HeightWidth, MoveRights, Operation, OperationPart, PixelState, SampleFault, Step,
};
use crate::recipe::operation_docs::described;
use crate::recipe::ranges::{MAX_FACTOR, number};

described! {
    example: "pca_lighting: {std: 0.1}";

    /// AlexNet's colour noise, the same on every pixel of an image. Adds `unit * eigenvectors *
    /// (eigenvalues * alpha)` to red, green and blue. Three alphas are drawn from the normal
    /// distribution with mean 0 and deviation `std`. In `u8`, levels are rounded and clipped to 0
    /// to 255; after a cast to floats they are not.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct PcaLighting {
        /// The deviation of the noise.
        pub std: f64 = 0.1,
        /// Deviation of the data set's colours along each axis, in multiples of `unit`.
        pub eigenvalues: [f64; 3] = [0.2175, 0.0188, 0.0045],
        /// Rows are red, green and blue; columns are the axes.
        pub eigenvectors: [[f64; 3]; 3] = [
            [-0.5675, 0.7192, 0.4009],
            [-0.5808, -0.0045, -0.8140],
            [-0.5836, -0.6948, 0.4203],
        ],
        /// The levels that are 1 for the eigenvalues: 255 if they are for colours of 0 to 1, which
        /// is usual; 1 if they are for levels.
        pub unit: f64 = 255.0,
    }
}

impl PcaLighting {
    /// The noise for red, green and blue.
    pub(crate) fn noise(&self, alpha: [f64; 3]) -> [f32; 3] {
        self.eigenvectors.map(|row| {
            let along = row.iter().zip(alpha).zip(self.eigenvalues);
            let sum: f64 = along
                .map(|((axis, alpha), value)| axis * alpha * value)
                .sum();
            (self.unit * sum) as f32
        })
    }
}

impl Operation for PcaLighting {
    const PARTS: &'static [OperationPart] = &[OperationPart::Color];

    fn check(&self, known: &mut PixelState) -> Result<(), String> {
        known.check_rgb_levels("adds to levels of red, green and blue")?;
        if known.channels == 1 {
            return Err("needs three channels, and the images are grey".into());
        }
        number("std", self.std, 0.0, MAX_FACTOR)?;
        if !(self.unit > 0.0 && self.unit <= MAX_FACTOR) {
            return Err(format!(
                "unit is {}: use more than 0, at most {MAX_FACTOR} (255 for eigenvalues of \
                 colours from 0 to 1, 1 for those of levels)",
                self.unit
            ));
        }
        let numbers = self
            .eigenvectors
            .iter()
            .flatten()
            .map(|v| ("eigenvectors", *v));
        let mut numbers = numbers.chain(self.eigenvalues.map(|v| ("eigenvalues", v)));
        match numbers.find(|(_, v)| v.is_nan() || v.abs() > MAX_FACTOR) {
            None => Ok(()),
            Some((what, v)) => Err(format!(
                "{what} hold {v}: use -{MAX_FACTOR} to {MAX_FACTOR}"
            )),
        }
    }

    fn draw(&self, on: DrawContext<'_>) -> Result<HeightWidth, SampleFault> {
        let alpha = [(); 3].map(|()| self.std * gauss(on.random));
        // For red, green and blue, in the order of pixels in memory.
        on.steps.push(Step::Shift(self.noise(alpha)));
        Ok(on.size)
    }

    fn move_rights(&self) -> MoveRights {
        MoveRights {
            change_after_resize: "noise and resize both round to whole levels, and noise clips at 0 and 255",
            ..MoveRights::default()
        }
    }
}
