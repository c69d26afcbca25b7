//! Sizes, crops, turns and what stands around a picture: their numbers, and what
//! is known of the sides behind them.

use super::numbers::{check_side, range, sides};
use super::{Known, MAX_SIDE};
use crate::recipe::ops::{
    BoundedResizedCrop, CenterCrop, Interpolation, Pad, Padding, RandomCrop, RandomResizedCrop,
    RandomRotation, Resize, ResizeTo, Rotate90, Rounding, Size,
};

impl Known {
    pub(super) fn resize(&mut self, o: &Resize) -> Result<(), String> {
        if let Some(side) = o.max_size {
            check_side("max_size", side)?;
        }
        self.resized = true;
        match (o.size, o.max_size) {
            (None, None) => Err(
                "needs a size or a max_size: size: 256, size: [256, 256] or max_size: 256".into(),
            ),
            (Some(ResizeTo::Exact(size)), None) => {
                sides(size)?;
                if o.rounding == Rounding::Nearest {
                    return Err(format!(
                        "size {size} is both sides, so rounding has nothing to round: leave it \
                         out, or give size as one number"
                    ));
                }
                self.has_size(size);
                Ok(())
            }
            (Some(ResizeTo::Exact(size)), Some(max)) => Err(format!(
                "size {size} is both sides, so max_size {max} has nothing to limit: leave it out, \
                 or give size as one number"
            )),
            (Some(ResizeTo::Shorter(side)), max) => {
                check_side("size", side)?;
                if let Some(max) = max.filter(|max| *max <= side) {
                    return Err(format!(
                        "max_size {max} must be larger than size {side}: it limits the longer side"
                    ));
                }
                self.size = self.size.map(|size| o.output(size));
                self.at_least = match (self.size, max) {
                    (Some((h, w)), _) => Some(h.min(w)),
                    (None, None) => Some(side),
                    // A long picture's shorter side may be anything.
                    (None, Some(_)) => None,
                };
                Ok(())
            }
            (None, Some(_)) => {
                self.size = self.size.map(|size| o.output(size));
                self.at_least = self.size.map(|(h, w)| h.min(w));
                Ok(())
            }
        }
    }

    pub(super) fn random_resized_crop(&mut self, o: &RandomResizedCrop) -> Result<(), String> {
        sides(o.size)?;
        range("scale", o.scale, 0.0, 1.0)?;
        range("ratio", o.ratio, 0.0, f64::MAX)?;
        self.has_size(o.size);
        Ok(())
    }

    pub(super) fn bounded_resized_crop(&mut self, o: &BoundedResizedCrop) -> Result<(), String> {
        sides(o.size)?;
        range("scale", o.scale, 0.0, 1.0)?;
        range("ratio", o.ratio, 0.0, f64::MAX)?;
        self.has_size(o.size);
        Ok(())
    }

    pub(super) fn random_crop(&mut self, o: &RandomCrop) -> Result<(), String> {
        sides(o.size)?;
        self.color("fill", o.fill.0)?;
        let pad = o.padding;
        padding(pad)?;
        self.grows(pad)?;
        if !o.pad_if_needed {
            self.holds(o.size, "give it padding or pad_if_needed: true")?;
        }
        self.has_size(o.size);
        Ok(())
    }

    pub(super) fn center_crop(&mut self, o: &CenterCrop) -> Result<(), String> {
        sides(o.size)?;
        self.holds(o.size, "put a resize or a pad in front of it")?;
        self.has_size(o.size);
        Ok(())
    }

    pub(super) fn random_rotation(&mut self, o: &RandomRotation) -> Result<(), String> {
        range("degrees", o.degrees, -360.0, 360.0)?;
        self.color("fill", o.fill.0)?;
        if !matches!(
            o.interpolation,
            Interpolation::Nearest | Interpolation::Bilinear
        ) {
            return Err(format!(
                "interpolation is {}: nearest and bilinear are served",
                o.interpolation.name()
            ));
        }
        if o.expand {
            self.size = None;
            self.resized = true;
        }
        Ok(())
    }

    pub(super) fn rotate90(&mut self, o: &Rotate90) -> Result<(), String> {
        if o.times % 2 != 0 {
            self.size = self.size.map(|(h, w)| (w, h));
            self.resized = true;
        }
        Ok(())
    }

    pub(super) fn random_rotate90(&mut self) {
        self.size = self.size.filter(|(h, w)| h == w);
        self.resized = true;
    }

    pub(super) fn pad(&mut self, o: &Pad) -> Result<(), String> {
        padding(o.padding)?;
        self.color("fill", o.fill.0)?;
        self.grows(o.padding)?;
        self.resized = true;
        Ok(())
    }

    fn has_size(&mut self, size: Size) {
        self.size = Some((size.height, size.width));
        self.at_least = Some(size.height.min(size.width));
        self.resized = true;
    }

    fn grows(&mut self, p: Padding) -> Result<(), String> {
        let (x, y) = (p.left + p.right, p.top + p.bottom);
        self.size = self.size.map(|(h, w)| (h + y, w + x));
        let known = self.size.map(|(h, w)| h.min(w));
        self.at_least = known.or(self.at_least.map(|side| side + x.min(y)));
        match self.size {
            Some((h, w)) if h.max(w) > MAX_SIDE => Err(format!(
                "makes pictures of {h}x{w}, a side may have {MAX_SIDE} pixels: give it less padding"
            )),
            _ => Ok(()),
        }
    }

    /// A crop of `size` fits, as far as is known.
    fn holds(&self, size: Size, fix: &str) -> Result<(), String> {
        let (height, width) = match (self.size, self.at_least) {
            (Some(known), _) => known,
            (None, Some(side)) => (side, side),
            // A picture that is too small will be a failed sample.
            (None, None) => return Ok(()),
        };
        if size.height <= height && size.width <= width {
            return Ok(());
        }
        let what = match self.size {
            Some((h, w)) => format!("the image, which is {h}x{w} here"),
            None => format!("the shorter side of the image, which is {height} here"),
        };
        Err(format!("size {size} is larger than {what}: {fix}"))
    }
}

fn padding(p: Padding) -> Result<(), String> {
    let most = p.left.max(p.top).max(p.right).max(p.bottom);
    if most > MAX_SIDE {
        return Err(format!("padding is {most}, it must be at most {MAX_SIDE}"));
    }
    Ok(())
}
