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
        self.values.fit(o.dtype)?;
        self.floats = o.dtype != Dtype::U8;
        Ok(())
    }
}

impl Values {
    /// Whether elements of that type hold them.
    pub(super) fn fit(self, dtype: Dtype) -> Result<(), String> {
        match (dtype, self) {
            (Dtype::F16 | Dtype::Bf16 | Dtype::F32, _) | (Dtype::U8, Self::Levels) => Ok(()),
            (Dtype::U8, Self::Normalized) => Err(format!(
                "u8 holds levels, and the pixels were normalized: leave out normalize, or cast to \
                 one of {}",
                Dtype::floats()
            )),
            (Dtype::U8, Self::Color(space)) => Err(format!(
                "u8 cannot hold {}: cast to one of {}",
                space.name(),
                Dtype::floats()
            )),
        }
    }
}
