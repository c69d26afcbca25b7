//! Sizes, crops, turns and what stands around a picture: their numbers, and what
//! is known of the sides behind them.

use super::numbers::{check_side, probability, range, sides};
use super::{Known, MAX_SIDE};
use crate::recipe::ops::{
    Anchor, BoundedResizedCrop, CenterCrop, Interpolation, Pad, PadTo, Padding, RandomCrop,
    RandomResizedCrop, RandomRotation, Resize, ResizeTo, Rotate90, RotationStyle, Rounding, Size,
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
        match (o.size, o.ratio) {
            (Some(size), None) => {
                sides(size)?;
                self.holds(size, "put a resize or a pad in front of it")?;
                self.has_size(size);
                Ok(())
            }
            (None, Some(ratio)) if 0.0 < ratio && ratio <= 1.0 => {
                self.becomes(|size| o.output(size));
                Ok(())
            }
            (None, Some(ratio)) => Err(format!(
                "ratio is {ratio}, it must be a part of the shorter side: above 0, at most 1"
            )),
            (Some(size), Some(ratio)) => Err(format!(
                "has size {size} and ratio {ratio}, which both say how large the part is: leave \
                 one out"
            )),
            (None, None) => Err("needs a size or a ratio: size: 224 or ratio: 0.875".into()),
        }
    }

    pub(super) fn random_rotation(&mut self, o: &RandomRotation) -> Result<(), String> {
        range("degrees", o.degrees, -360.0, 360.0)?;
        self.color("fill", o.fill.0)?;
        probability(o.p)?;
        self.turns(o)?;
        if o.expand {
            self.size = None;
            self.resized = true;
        }
        Ok(())
    }

    /// A turn by any angle can be had in its style.
    fn turns(&self, o: &RandomRotation) -> Result<(), String> {
        let opencv = o.style == RotationStyle::Opencv;
        let served = match (o.interpolation, opencv) {
            (Interpolation::Nearest | Interpolation::Bilinear, _) => true,
            (Interpolation::Bicubic, opencv) => opencv,
            _ => false,
        };
        if !served {
            let name = o.interpolation.name();
            return Err(format!(
                "interpolation is {name}: nearest and bilinear are served, and bicubic with \
                 style: opencv"
            ));
        }
        if !opencv {
            return Ok(());
        }
        if o.expand {
            return Err("expand is true, which style: opencv does not serve: leave out one".into());
        }
        if self.floats {
            return Err(
                "style: opencv works on levels in u8, and stands behind what makes floats of \
                 them: move it in front of that, or leave out style"
                    .into(),
            );
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

    pub(super) fn pad_to(&mut self, o: &PadTo) -> Result<(), String> {
        self.color("fill", o.fill.0)?;
        if o.offset.is_some() && o.anchor != Anchor::TopLeft {
            return Err(
                "offset counts from the top left, where anchor says another corner: leave one out"
                    .into(),
            );
        }
        match (o.size, o.multiple_of) {
            (Some(size), None) => sides(size)?,
            (None, Some(of)) => {
                check_side("multiple_of", of.height)?;
                check_side("multiple_of", of.width)?;
            }
            (Some(size), Some(of)) => {
                return Err(format!(
                    "has size {size} and multiple_of {of}, which both say how large it becomes: \
                     leave one out"
                ));
            }
            (None, None) => {
                return Err("needs a size or a multiple_of: size: 256 or multiple_of: 32".into());
            }
        }
        // One that is too large will be a failed sample.
        let here = self.size.or(self.at_least.map(|side| (side, side)));
        if let (Some(size), Some((h, w))) = (o.size, here)
            && (h > size.height || w > size.width)
        {
            let are = match self.size {
                Some(_) => "are",
                None => "are at least",
            };
            return Err(format!(
                "size {size} has no room for the pictures, which {are} {h}x{w} here: give it a \
                 larger one, or put a resize or a crop in front of it"
            ));
        }
        if let Some((h, w)) = self.size.filter(|here| o.padding(*here).is_none()) {
            return Err(format!(
                "offset leaves no room for the pictures, which are {h}x{w} here: make it smaller"
            ));
        }
        self.becomes(|size| o.output(size));
        if let Some(size) = o.size {
            self.has_size(size);
        }
        match self.size {
            Some((h, w)) if h.max(w) > MAX_SIDE => Err(format!(
                "makes pictures of {h}x{w}, a side may have {MAX_SIDE} pixels: give it a smaller \
                 multiple_of"
            )),
            _ => Ok(()),
        }
    }

    /// Follows a size that grows with both sides.
    fn becomes(&mut self, of: impl Fn((u32, u32)) -> (u32, u32)) {
        let shorter = |(h, w): (u32, u32)| h.min(w);
        self.at_least = self.at_least.map(|side| shorter(of((side, side))));
        self.size = self.size.map(&of);
        self.at_least = self.size.map(shorter).or(self.at_least);
        self.resized = true;
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
