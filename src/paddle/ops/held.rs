//! What PaddleClas hands from one operation to the next: a picture of Pillow's, or
//! an array. Some operations take one of them alone, paddle.vision's do something
//! else to each, and each operation leaves one of them behind.

use super::{Params, Pipe, Read};
use crate::recipe::file::Mistake;
use crate::recipe::{Cast, Dtype};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Held {
    Picture,
    /// Levels in bytes, or numbers that are no levels any more.
    Array,
    /// A picture or an array, as an operation in front drew it.
    Either,
    /// An array of levels in floats, which Padv2 and PCALighting give.
    Floats,
}

impl Held {
    /// The word for it in front of "stands here".
    fn described(self) -> &'static str {
        match self {
            Self::Picture => "a picture of Pillow's",
            Self::Array => "an array",
            Self::Either => "a picture of Pillow's or an array, as ColorJitter's prob draws it,",
            Self::Floats => "an array of floats",
        }
    }
}

impl Pipe<'_> {
    /// Levels are floats from here on.
    pub(super) fn becomes_floats(&mut self) {
        if self.held != Held::Floats {
            self.held = Held::Floats;
            self.push(Cast { dtype: Dtype::F32 });
        }
    }

    /// Refuses what fails on pictures of Pillow's.
    pub(super) fn needs_array(&self, params: &Params<'_>) -> Read<()> {
        match self.held {
            Held::Array | Held::Floats => Ok(()),
            Held::Picture | Held::Either => Err(self.unfit(
                params,
                "arrays",
                "let what gives it give an array: DecodeImage by to_np: True, ResizeImage by \
                 return_numpy: True, ColorJitter by prob: 1, the data set without backend: pil",
            )),
        }
    }

    /// Refuses what fails on arrays.
    pub(super) fn needs_picture(&self, params: &Params<'_>, fix: &str) -> Read<()> {
        match self.held {
            Held::Picture => Ok(()),
            _ => Err(self.unfit(params, "pictures of Pillow's", fix)),
        }
    }

    /// Refuses what fails on floats, or does not round them as it rounds bytes.
    pub(super) fn needs_bytes(&self, params: &Params<'_>) -> Read<()> {
        match self.held {
            Held::Floats => {
                Err(self.unfit(params, "bytes", "move it in front of Padv2 or PCALighting"))
            }
            _ => Ok(()),
        }
    }

    /// Whether a picture stands here: paddle.vision resizes it by Pillow, and an
    /// array by OpenCV.
    pub(super) fn holds_picture(&self, params: &Params<'_>) -> Read<bool> {
        self.needs_bytes(params)?;
        match self.held {
            Held::Picture => Ok(true),
            Held::Array | Held::Floats => Ok(false),
            Held::Either => Err(self.unfit(
                params,
                "both in two ways",
                "write prob: 1 in ColorJitter, or let DecodeImage give an array",
            )),
        }
    }

    /// Refuses an end of which PaddleClas makes no batch.
    pub(super) fn ends_in_numbers(&self, is_levels: bool) -> Result<(), String> {
        let what = match self.held {
            Held::Picture | Held::Either => "transposes",
            Held::Floats if is_levels => "scales",
            _ => return Ok(()),
        };
        Err(format!(
            "transform_ops ends where {} stands, which nothing {what}: end with NormalizeImage",
            self.held.described()
        ))
    }

    fn unfit(&self, params: &Params<'_>, takes: &str, fix: &str) -> Mistake {
        let here = self.held.described();
        Mistake::new(
            params.at,
            format!(
                "{} works on {takes}, and {here} stands here: {fix}",
                params.name
            ),
        )
    }
}
