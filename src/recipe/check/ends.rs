//! The ends of a recipe: normalised values, and the types that hold what there is.

use super::{Known, Values};
use crate::recipe::ops::{Cast, Normalize};
use crate::recipe::tensor::Dtype;

impl Known {
    pub(super) fn normalize(&mut self, o: &Normalize) -> Result<(), String> {
        let (mean, std) = (o.mean.0, o.std.0);
        self.color("mean", mean)?;
        self.color("std", std)?;
        if std.contains(&0.0) {
            return Err(format!("std is {std:?}, no value may be 0"));
        }
        self.values = Values::Normalized;
        self.floats = true;
        Ok(())
    }

    pub(super) fn cast(&mut self, o: &Cast) -> Result<(), String> {
        match (o.dtype, self.values) {
            (Dtype::F16 | Dtype::F32, _) => self.floats = true,
            (Dtype::U8, Values::Levels) => self.floats = false,
            (Dtype::U8, Values::Normalized) => {
                return Err(
                    "u8 holds levels, and the pixels were normalized: leave out \
                            normalize, or cast to f16 or f32"
                        .into(),
                );
            }
            (Dtype::U8, Values::Color(space)) => {
                return Err(format!(
                    "u8 cannot hold {}: cast to f16 or f32",
                    space.name()
                ));
            }
        }
        Ok(())
    }
}
