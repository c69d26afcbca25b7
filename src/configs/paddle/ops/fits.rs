//! Which operation works on what PaddleClas holds at its place, and the mistake where
//! it does not.

use super::held::Held;
use super::pipe::Pipe;
use crate::configs::paddle::params::{Params, Read};
use crate::recipe::file::Mistake;
use crate::recipe::{Cast, Dtype};

impl Pipe<'_> {
    /// Levels are floats from here on.
    pub(crate) fn becomes_floats(&mut self) {
        if self.held != Held::Floats {
            self.held = Held::Floats;
            self.push(Cast { dtype: Dtype::F32 });
        }
    }

    /// Refuses what fails on Pillow pictures.
    pub(crate) fn needs_array(&self, params: &Params<'_>) -> Read<()> {
        match self.held {
            Held::Array | Held::Floats => Ok(()),
            Held::Picture | Held::Either => Err(self.unfit(
                params,
                "arrays",
                "make the operation before it give an array: DecodeImage with to_np: True, \
                 ResizeImage with return_numpy: True, ColorJitter with prob: 1, or the data set \
                 without backend: pil",
            )),
        }
    }

    /// Refuses what fails on arrays.
    pub(crate) fn needs_picture(&self, params: &Params<'_>, fix: &str) -> Read<()> {
        match self.held {
            Held::Picture => Ok(()),
            _ => Err(self.unfit(params, "Pillow pictures", fix)),
        }
    }

    /// Refuses what fails on floats, or does not round them as it rounds bytes.
    pub(crate) fn needs_bytes(&self, params: &Params<'_>) -> Read<()> {
        match self.held {
            Held::Floats => Err(self.unfit(params, "bytes", "move it before Padv2 or PCALighting")),
            _ => Ok(()),
        }
    }

    /// Whether a picture stands here: paddle.vision resizes it by Pillow, and an
    /// array by OpenCV.
    pub(crate) fn holds_picture(&self, params: &Params<'_>) -> Read<bool> {
        self.needs_bytes(params)?;
        match self.held {
            Held::Picture => Ok(true),
            Held::Array | Held::Floats => Ok(false),
            Held::Either => Err(self.unfit(
                params,
                "both in two ways",
                "write prob: 1 in ColorJitter, or make DecodeImage give an array",
            )),
        }
    }

    /// Refuses an end of which PaddleClas makes no batch.
    pub(crate) fn ends_in_numbers(&self, is_levels: bool) -> Result<(), String> {
        let what = match self.held {
            Held::Picture | Held::Either => "transposes",
            Held::Floats if is_levels => "scales",
            _ => return Ok(()),
        };
        Err(format!(
            "transform_ops ends with {}, which nothing {what}: end with NormalizeImage",
            self.held.described()
        ))
    }

    fn unfit(&self, params: &Params<'_>, takes: &str, fix: &str) -> Mistake {
        let here = self.held.described();
        params.misplaced(format_args!("works on {takes}, and gets {here}: {fix}"))
    }
}
