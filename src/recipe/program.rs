//! From the operations that the user wrote to the one program that runs.
//!
//! The stages of a sample are fixed: decode (with crop and scale), resize, flip,
//! normalise, cast, layout. A recipe whose operations fit that order compiles;
//! any other is refused with the operation's name and what would fit.

use serde::{Deserialize, Serialize};

use super::ops::{Background, DecodeMode, Interpolation, Op, ResizeTo, Size};
use super::tensor::{Dtype, MemoryLayout};
use super::written::Recipe;
use crate::error::{Error, Result};

/// Largest side of an output, pixels: JPEG's own limit.
const MAX_SIDE: u32 = 65_535;

/// Which part of the image becomes the output.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) enum Crop {
    /// Crop, then resize: the filter never sees outside of the box.
    RandomResized {
        scale: (f64, f64),
        ratio: (f64, f64),
    },
    /// Resize the shorter side, then crop the middle: the filter sees beyond
    /// the box's edge.
    ShorterThenCenter { shorter: u32 },
    /// All of it, as large as it is.
    Whole,
}

/// How large the rows of a batch are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum RowExtent {
    /// All of this size, pixels: it follows from the recipe alone.
    Fixed { height: u32, width: u32 },
    /// Each has its picture's own upright size: it follows from the data.
    Own,
}

impl RowExtent {
    /// Height and width of the row of an upright picture of this height and width.
    pub(crate) fn of(self, picture: (u32, u32)) -> (u32, u32) {
        match self {
            Self::Fixed { height, width } => (height, width),
            Self::Own => picture,
        }
    }
}

/// A checked recipe: what a worker runs for each sample.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct SampleProgram {
    pub(crate) decode: DecodeMode,
    pub(crate) background: Background,
    pub(crate) crop: Crop,
    pub(crate) extent: RowExtent,
    /// Probability of a horizontal flip.
    pub(crate) flip: f64,
    pub(crate) mean: [f32; 3],
    pub(crate) std: [f32; 3],
    pub(crate) dtype: Dtype,
    pub(crate) layout: MemoryLayout,
}

impl SampleProgram {
    /// Compiles a recipe.
    ///
    /// # Errors
    /// Names the operation, the number, and what would be accepted.
    pub(crate) fn compile(recipe: &Recipe) -> Result<Self> {
        let bad = |op: &Op, why: String| {
            Error::config(format!("recipe '{}': {}: {why}", recipe.name, op.name()))
        };
        let mut decodes = 0;
        let mut shorter = None;
        let mut crop = None;
        let mut flip = None;
        let mut normalise = None;
        let mut dtype = None;
        let mut layout = None;
        // The stage an operation belongs to; they must come in this order.
        let mut last = 0;
        for op in &recipe.ops {
            let stage = match op {
                Op::Decode(_) => 1,
                Op::Resize(_) => 2,
                Op::RandomResizedCrop(_) | Op::CenterCrop(_) => 3,
                Op::RandomHorizontalFlip(_) => 4,
                Op::Normalize(_) => 5,
                // Where the type and the order of axes are written makes no
                // difference to the values.
                Op::Cast(_) | Op::Layout(_) => last,
                _ => return Err(bad(op, "is not served yet".into())),
            };
            if stage < last {
                return Err(bad(
                    op,
                    "comes too late: the order is decode, resize, crop, flip, normalize".into(),
                ));
            }
            last = stage;
            let doubled = match op {
                Op::Decode(_) => {
                    decodes += 1;
                    decodes > 1
                }
                Op::Resize(resize) => match (resize.size, resize.interpolation) {
                    (Some(ResizeTo::Shorter(size)), Interpolation::Bilinear)
                        if resize.antialias && resize.max_size.is_none() =>
                    {
                        check_side(size).map_err(|e| bad(op, e))?;
                        shorter.replace(size).is_some()
                    }
                    _ => return Err(bad(op, "is not served yet".into())),
                },
                Op::RandomResizedCrop(crop_op) => {
                    let (size, scale, ratio) = (tuple(crop_op.size), crop_op.scale, crop_op.ratio);
                    let (scale, ratio) = ((scale.0, scale.1), (ratio.0, ratio.1));
                    check_size(size).map_err(|e| bad(op, e))?;
                    check_range("scale", scale, 1.0).map_err(|e| bad(op, e))?;
                    check_range("ratio", ratio, f64::MAX).map_err(|e| bad(op, e))?;
                    if shorter.is_some() {
                        return Err(bad(op, "cannot follow resize".into()));
                    }
                    let c = Crop::RandomResized { scale, ratio };
                    crop.replace((c, size)).is_some()
                }
                Op::CenterCrop(centre) => {
                    let size = tuple(centre.size);
                    check_size(size).map_err(|e| bad(op, e))?;
                    let shorter =
                        shorter.ok_or_else(|| bad(op, "needs a resize before it".into()))?;
                    if size.0 > shorter || size.1 > shorter {
                        return Err(bad(
                            op,
                            format!(
                                "size {}x{} is larger than the shorter side {shorter}",
                                size.0, size.1
                            ),
                        ));
                    }
                    let c = Crop::ShorterThenCenter { shorter };
                    crop.replace((c, size)).is_some()
                }
                Op::RandomHorizontalFlip(f) => {
                    let p = f.p;
                    if !(0.0..=1.0).contains(&p) {
                        return Err(bad(op, format!("p is {p}, it must lie between 0 and 1")));
                    }
                    flip.replace(p).is_some()
                }
                Op::Normalize(n) => {
                    let (mean, std) = (n.mean.0, n.std.0);
                    if mean.iter().any(|m| !m.is_finite())
                        || std.iter().any(|s| !s.is_finite() || *s == 0.0)
                    {
                        return Err(bad(
                            op,
                            format!("mean {mean:?} and std {std:?} must be finite, std not 0"),
                        ));
                    }
                    normalise.replace((mean, std)).is_some()
                }
                Op::Cast(c) => dtype.replace(c.dtype).is_some(),
                Op::Layout(l) => layout.replace(l.layout).is_some(),
                _ => return Err(bad(op, "is not served yet".into())),
            };
            if doubled {
                return Err(bad(op, "is written twice".into()));
            }
        }
        let (crop, extent) = match (crop, shorter) {
            (Some((crop, (height, width))), _) => (crop, RowExtent::Fixed { height, width }),
            (None, None) => (Crop::Whole, RowExtent::Own),
            (None, Some(_)) => {
                return Err(Error::config(format!(
                    "recipe '{}' has a resize_shorter and no center_crop: rows of a batch have \
                     one size, or all their pictures' own (leave the resize out)",
                    recipe.name
                )));
            }
        };
        let decode = recipe.decode();
        let background = decode.background;
        let decode = match (extent, decode.mode.unwrap_or(DecodeMode::Scaled)) {
            (RowExtent::Own, DecodeMode::Scaled) if recipe.decode().mode.is_some() => {
                return Err(Error::config(format!(
                    "recipe '{}' has no resize, so pictures come at full size and 'decode: \
                     scaled' has nothing to scale to: use 'decode: full'",
                    recipe.name
                )));
            }
            // Not said, and not needed.
            (RowExtent::Own, _) => DecodeMode::Full,
            (RowExtent::Fixed { .. }, mode) => mode,
        };
        let (mean, std) = normalise.unwrap_or(([0.0; 3], [1.0; 3]));
        Ok(Self {
            decode,
            background,
            crop,
            extent,
            flip: flip.unwrap_or(0.0),
            mean,
            std,
            dtype: dtype.unwrap_or(Dtype::F32),
            layout: layout.unwrap_or(MemoryLayout::Nchw),
        })
    }

    /// Bytes of a row of this height and width.
    pub(crate) fn row_bytes(&self, (height, width): (u32, u32)) -> u64 {
        3 * self.dtype.size() as u64 * u64::from(height) * u64::from(width)
    }
}

fn tuple(size: Size) -> (u32, u32) {
    (size.height, size.width)
}

fn check_side(side: u32) -> std::result::Result<(), String> {
    if (1..=MAX_SIDE).contains(&side) {
        Ok(())
    } else {
        Err(format!(
            "size is {side}, it must lie between 1 and {MAX_SIDE}"
        ))
    }
}

fn check_size(size: (u32, u32)) -> std::result::Result<(), String> {
    check_side(size.0).and_then(|()| check_side(size.1))
}

fn check_range(what: &str, (low, high): (f64, f64), most: f64) -> std::result::Result<(), String> {
    if low.is_finite() && high.is_finite() && 0.0 < low && low <= high && high <= most {
        Ok(())
    } else {
        Err(format!(
            "{what} is {low} to {high}, it must be a range of finite numbers above 0{}",
            if most == 1.0 { ", at most 1" } else { "" }
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::RandomHorizontalFlip;

    #[test]
    fn without_a_crop_rows_have_their_own_sizes_at_full_size() {
        for recipe in [
            Recipe::full(),
            Recipe::new("nothing"),
            Recipe::new("mirrored").then(RandomHorizontalFlip::default()),
        ] {
            let p = SampleProgram::compile(&recipe).unwrap();
            assert_eq!((p.crop, p.extent), (Crop::Whole, RowExtent::Own));
            assert_eq!(p.decode, DecodeMode::Full);
            assert_eq!(p.extent.of((5, 7)), (5, 7));
        }
    }

    #[test]
    fn a_row_is_as_large_as_its_shape_says() {
        for dtype in [Dtype::U8, Dtype::F16, Dtype::F32] {
            for layout in [MemoryLayout::Nchw, MemoryLayout::Nhwc] {
                let r = Recipe::train224().with_dtype(dtype).with_layout(layout);
                let p = SampleProgram::compile(&r).unwrap();
                let elements: usize = layout.row_shape(224, 224).iter().product();
                assert_eq!(
                    p.row_bytes(p.extent.of((9, 9))),
                    (elements * dtype.size()) as u64
                );
            }
        }
    }
}
