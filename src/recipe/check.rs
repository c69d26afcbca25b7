//! The checks of a recipe: every number in its range, every operation on pixels
//! that it can work on.
//!
//! Walks the operations in the written order and keeps what is known of the
//! pixels between them; the first mistake ends the walk.

use super::augment;
use super::fault::RecipeFault;
use super::ops::{
    ColorOrder, ColorSpace, Erasing, Interpolation, JitterStyle, Op, Padding, PcaLighting,
    RandomRotation, Resize, ResizeTo, RotationStyle, Rounding, Size, Span,
};
use super::tensor::Dtype;
use super::written::Recipe;

/// Largest side of a picture, pixels: JPEG's own limit.
pub(super) const MAX_SIDE: u32 = 65_535;

/// Most that a colour may be multiplied by.
const MAX_FACTOR: f64 = 1000.0;

/// Most boxes that erasing may draw.
const MAX_ATTEMPTS: u32 = 1000;

/// What the values of a pixel are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Values {
    /// 0 to 255.
    Levels,
    /// As `lab` or `hsv` has them.
    Color(ColorSpace),
    /// What `normalize` left.
    Normalized,
}

/// What is known of the pixels at a place of the order, whatever the picture.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Known {
    pub(crate) values: Values,
    /// Red, green and blue, or something made of them.
    is_rgb: bool,
    pub(crate) channels: u8,
    /// Blue first.
    pub(crate) bgr: bool,
    /// Held in floats, whatever the values are.
    floats: bool,
    /// Height and width, when every picture has the same here.
    pub(crate) size: Option<(u32, u32)>,
    /// No side is smaller; none = nothing is known of the sides.
    at_least: Option<u32>,
    /// An operation has changed the size of some pictures.
    resized: bool,
}

/// What is known behind the last operation, and of the batch.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Checked {
    /// What is known in front of each operation.
    pub(crate) before: Vec<Known>,
    pub(crate) known: Known,
    /// Of the batch.
    pub(crate) dtype: Dtype,
    /// The size of the rows: none = each its own picture's.
    pub(crate) size: Option<(u32, u32)>,
}

/// What divides levels before a mean is taken off.
pub(crate) fn unit(values: Values) -> f32 {
    match values {
        Values::Levels => 255.0,
        Values::Color(_) | Values::Normalized => 1.0,
    }
}

/// Checks every operation.
pub(crate) fn check(recipe: &Recipe) -> Result<Checked, RecipeFault> {
    let decode = recipe.decode();
    let mut known = Known {
        values: Values::Levels,
        is_rgb: true,
        channels: if decode.color == ColorOrder::Grey {
            1
        } else {
            3
        },
        bgr: decode.color == ColorOrder::Bgr,
        floats: false,
        size: None,
        at_least: None,
        resized: false,
    };
    let mut seen = Seen::default();
    let mut before = Vec::new();
    for (i, op) in recipe.ops.iter().enumerate() {
        let fault = |message: String| RecipeFault {
            op: Some(i),
            message: format!("{}: {message}", op.name()),
        };
        seen.note(op, i).map_err(fault)?;
        before.push(known);
        known.follow(op).map_err(fault)?;
    }
    let dtype = seen.dtype.unwrap_or(Dtype::F32);
    let at = |message: String| RecipeFault {
        op: seen.cast,
        message,
    };
    if dtype == Dtype::U8 {
        match known.values {
            Values::Levels => {}
            Values::Normalized => {
                return Err(at(
                    "cast: u8 holds levels, and the pixels were normalized: leave out normalize, \
                     or cast to f16 or f32"
                        .into(),
                ));
            }
            Values::Color(space) => {
                return Err(at(format!(
                    "cast: u8 cannot hold {}: cast to f16 or f32",
                    space.name()
                )));
            }
        }
    }
    if known.size.is_none() && known.resized {
        return Err(RecipeFault {
            op: seen.last_resize,
            message: format!(
                "{} leaves pictures of different sizes, and rows of a batch have one size, or all \
                 their pictures' own: add a center_crop, random_crop or a resize to [height, width] \
                 behind it, or leave it out",
                seen.last_resize
                    .map_or("the recipe", |i| recipe.ops[i].name())
            ),
        });
    }
    Ok(Checked {
        before,
        known,
        dtype,
        size: known.size,
    })
}

/// Operations that may stand once, and where some stood last.
#[derive(Default)]
struct Seen {
    normalize: bool,
    layout: bool,
    label: Option<&'static str>,
    cast: Option<usize>,
    dtype: Option<Dtype>,
    last_resize: Option<usize>,
}

impl Seen {
    fn note(&mut self, op: &Op, at: usize) -> Result<(), String> {
        let twice = |seen: &mut bool| match std::mem::replace(seen, true) {
            true => Err("is written twice: leave one out".to_owned()),
            false => Ok(()),
        };
        if op.gives_labels().is_some()
            && let Some(first) = self.label.replace(op.name())
        {
            return Err(format!(
                "label is true, and {first} in front of it gives the labels: leave one of them out"
            ));
        }
        match op {
            Op::Decode(_) if at > 0 => {
                return Err("is the first operation, and written once: move it to the top".into());
            }
            Op::Normalize(_) => twice(&mut self.normalize)?,
            Op::Layout(_) => twice(&mut self.layout)?,
            Op::Cast(cast) => {
                self.cast = Some(at);
                self.dtype = Some(cast.dtype);
            }
            Op::Resize(_)
            | Op::RandomRotation(_)
            | Op::Pad(_)
            | Op::Rotate90(_)
            | Op::RandomRotate90(_) => self.last_resize = Some(at),
            _ => {}
        }
        Ok(())
    }
}

impl Known {
    /// Checks an operation's numbers, and what it makes of the pixels.
    fn follow(&mut self, op: &Op) -> Result<(), String> {
        match op {
            Op::Decode(_) | Op::Layout(_) => {}
            Op::Resize(o) => self.resize(o)?,
            Op::RandomResizedCrop(o) => {
                sides(o.size)?;
                range("scale", o.scale, 0.0, 1.0)?;
                range("ratio", o.ratio, 0.0, f64::MAX)?;
                self.has_size(o.size);
            }
            Op::BoundedResizedCrop(o) => {
                sides(o.size)?;
                range("scale", o.scale, 0.0, 1.0)?;
                range("ratio", o.ratio, 0.0, f64::MAX)?;
                self.has_size(o.size);
            }
            Op::RandomCrop(o) => {
                sides(o.size)?;
                self.color("fill", o.fill.0)?;
                let pad = o.padding;
                padding(pad)?;
                self.grows(pad)?;
                if !o.pad_if_needed {
                    self.holds(o.size, "give it padding or pad_if_needed: true")?;
                }
                self.has_size(o.size);
            }
            Op::CenterCrop(o) => {
                sides(o.size)?;
                self.holds(o.size, "put a resize or a pad in front of it")?;
                self.has_size(o.size);
            }
            Op::RandomHorizontalFlip(o) => probability(o.p)?,
            Op::RandomVerticalFlip(o) => probability(o.p)?,
            Op::RandomRotation(o) => {
                range("degrees", o.degrees, -360.0, 360.0)?;
                self.color("fill", o.fill.0)?;
                probability(o.p)?;
                self.turns(o)?;
                if o.expand {
                    self.size = None;
                    self.resized = true;
                }
            }
            Op::Rotate90(o) => {
                if o.times % 2 != 0 {
                    self.size = self.size.map(|(h, w)| (w, h));
                    self.resized = true;
                }
            }
            Op::RandomRotate90(_) => {
                self.size = self.size.filter(|(h, w)| h == w);
                self.resized = true;
            }
            Op::Pad(o) => {
                padding(o.padding)?;
                self.color("fill", o.fill.0)?;
                self.grows(o.padding)?;
                self.resized = true;
            }
            Op::ColorJitter(o) => {
                self.is_levels_of_rgb("changes colours of rgb levels")?;
                if o.style == JitterStyle::Pillow {
                    self.is_rgb8()
                        .map_err(|why| format!("{why}, or leave out style: pillow"))?;
                }
                probability(o.p)?;
                range("brightness", o.brightness, 0.0, MAX_FACTOR)?;
                range("contrast", o.contrast, 0.0, MAX_FACTOR)?;
                range("saturation", o.saturation, 0.0, MAX_FACTOR)?;
                range("hue", o.hue, -0.5, 0.5)?;
            }
            Op::Grayscale(o) => {
                self.is_levels_of_rgb("is made from rgb levels")?;
                if !matches!(o.num_output_channels, 1 | 3) {
                    return Err(format!(
                        "num_output_channels is {}, it must be 1 or 3",
                        o.num_output_channels
                    ));
                }
                self.channels = o.num_output_channels;
            }
            Op::RandomGrayscale(o) => {
                self.is_levels_of_rgb("is made from rgb levels")?;
                probability(o.p)?;
            }
            Op::ConvertColor(o) => {
                self.is_levels_of_rgb("leads away from rgb levels")?;
                if self.channels == 1 {
                    return Err("needs three channels, and the pictures are grey".into());
                }
                self.is_rgb = false;
                self.bgr = false;
                self.floats = true;
                if o.to != ColorSpace::Ycbcr {
                    self.values = Values::Color(o.to);
                }
            }
            Op::PcaLighting(o) => self.lit(o)?,
            Op::GaussianBlur(o) => {
                let k = o.kernel_size;
                for side in [k.height, k.width] {
                    if side % 2 == 0 || side > 255 {
                        return Err(format!(
                            "kernel_size is {k}, both must be odd and at most 255"
                        ));
                    }
                }
                range("sigma", o.sigma, 0.0, 1000.0)?;
            }
            Op::RandomErasing(o) => {
                probability(o.p)?;
                range("scale", o.scale, 0.0, 1.0)?;
                range("ratio", o.ratio, 0.0, f64::MAX)?;
                if !(1..=MAX_ATTEMPTS).contains(&o.attempts) {
                    return Err(format!(
                        "attempts is {}, it must lie between 1 and {MAX_ATTEMPTS}",
                        o.attempts
                    ));
                }
                match (o.value, self.values) {
                    (Erasing::Value(v), _) => self.color("value", v.0)?,
                    (Erasing::Random, Values::Color(space)) => {
                        return Err(format!(
                            "value 'random' is made for levels and for normalized pixels, not for \
                             {}: give a number, or put it behind normalize",
                            space.name()
                        ));
                    }
                    (Erasing::Random, _) => {}
                }
            }
            Op::AutoAugment(_)
            | Op::RandAugment(_)
            | Op::TrivialAugment(_)
            | Op::AugMix(_)
            | Op::TimmAugment(_)
            | Op::Cutout(_) => {
                self.is_rgb8()?;
                augment::check(op)?;
            }
            Op::Normalize(o) => {
                let (mean, std) = (o.mean.0, o.std.0);
                self.color("mean", mean)?;
                self.color("std", std)?;
                if std.contains(&0.0) {
                    return Err(format!("std is {std:?}, no value may be 0"));
                }
                self.values = Values::Normalized;
                self.floats = true;
            }
            Op::Cast(o) => match (o.dtype, self.values) {
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
            },
        }
        Ok(())
    }

    /// Noise along the axes of red, green and blue can be added.
    fn lit(&self, o: &PcaLighting) -> Result<(), String> {
        self.is_levels_of_rgb("adds to levels of red, green and blue")?;
        if self.channels == 1 {
            return Err("needs three channels, and the pictures are grey".into());
        }
        if !(0.0..=MAX_FACTOR).contains(&o.std) {
            return Err(format!(
                "std is {}, it must lie between 0 and {MAX_FACTOR}",
                o.std
            ));
        }
        if !(o.unit > 0.0 && o.unit <= MAX_FACTOR) {
            return Err(format!(
                "unit is {}, it must lie above 0, at most {MAX_FACTOR}: 255 for eigenvalues of \
                 colours from 0 to 1, 1 for those of levels",
                o.unit
            ));
        }
        let numbers = o
            .eigenvectors
            .iter()
            .flatten()
            .map(|v| ("eigenvectors", *v));
        let mut numbers = numbers.chain(o.eigenvalues.map(|v| ("eigenvalues", v)));
        match numbers.find(|(_, v)| v.is_nan() || v.abs() > MAX_FACTOR) {
            None => Ok(()),
            Some((what, v)) => Err(format!(
                "{what} hold {v}, they must lie between -{MAX_FACTOR} and {MAX_FACTOR}"
            )),
        }
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

    fn resize(&mut self, o: &Resize) -> Result<(), String> {
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

    /// A colour for these pictures: three values where they have three channels.
    fn color(&self, what: &str, v: [f32; 3]) -> Result<(), String> {
        finite(what, &v)?;
        if self.channels == 1 && !(v[0] == v[1] && v[1] == v[2]) {
            return Err(format!(
                "{what} has three values, and the pictures are grey: give one"
            ));
        }
        Ok(())
    }

    /// Pillow's arithmetic works on bytes of red, green and blue.
    fn is_rgb8(&self) -> Result<(), String> {
        let what = "works on 8-bit levels of red, green and blue";
        self.is_levels_of_rgb(what)?;
        let why = match (self.floats, self.channels, self.bgr) {
            (true, _, _) => "stands behind a cast to floats: move it in front of that",
            (_, 1, _) => {
                "the pictures are grey: decode them to rgb, and give grayscale \
                 num_output_channels: 3"
            }
            (_, _, true) => "blue is first: leave out color: bgr of decode",
            _ => return Ok(()),
        };
        Err(format!("{what}, and {why}"))
    }

    fn is_levels_of_rgb(&self, what: &str) -> Result<(), String> {
        match (self.values, self.is_rgb) {
            (Values::Levels, true) => Ok(()),
            (Values::Normalized, _) => Err(format!(
                "{what}, and stands behind normalize: move it in front of that"
            )),
            _ => Err(format!(
                "{what}, and stands behind convert_color: move it in front of that"
            )),
        }
    }
}

impl ColorSpace {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Lab => "lab",
            Self::Hsv => "hsv",
            Self::Ycbcr => "ycbcr",
        }
    }
}

impl Resize {
    /// Height and width of what becomes of a picture of this height and width:
    /// torchvision's sizes, or with `rounding: nearest` PaddleClas'; but for sides
    /// that would be 0.
    pub(crate) fn output(&self, (height, width): (u32, u32)) -> (u32, u32) {
        let (short, long) = (height.min(width), height.max(width));
        // `b` times the factor that makes `a` of `c`.
        let scaled = |a: u32, b: u32, c: u32| match self.rounding {
            // In whole numbers, as torchvision's int(): a float quotient may fall just
            // below the whole number that it stands for.
            Rounding::Down => {
                let v = u64::from(a) * u64::from(b) / u64::from(c.max(1));
                v.clamp(1, u64::from(u32::MAX)) as u32
            }
            // In floats, the factor first, as there: halves are what that makes of them.
            Rounding::Nearest => {
                let factor = f64::from(a) / f64::from(c.max(1));
                ((f64::from(b) * factor).round_ties_even() as u32).max(1)
            }
        };
        let (new_short, new_long) = match (self.size, self.max_size) {
            (Some(ResizeTo::Exact(size)), _) => return (size.height, size.width),
            (Some(ResizeTo::Shorter(side)), max) => {
                let new_long = scaled(side, long, short);
                match max.filter(|max| new_long > *max) {
                    Some(max) => (scaled(max, side, new_long), max),
                    None => (side, new_long),
                }
            }
            (None, Some(max)) => (scaled(max, short, long), max),
            // Refused by `check`.
            (None, None) => (short, long),
        };
        if height <= width {
            (new_short, new_long)
        } else {
            (new_long, new_short)
        }
    }
}

fn check_side(what: &str, side: u32) -> Result<(), String> {
    if (1..=MAX_SIDE).contains(&side) {
        Ok(())
    } else {
        Err(format!(
            "{what} is {side}, it must lie between 1 and {MAX_SIDE}"
        ))
    }
}

fn sides(size: Size) -> Result<(), String> {
    check_side("size", size.height).and_then(|()| check_side("size", size.width))
}

fn padding(p: Padding) -> Result<(), String> {
    let most = p.left.max(p.top).max(p.right).max(p.bottom);
    if most > MAX_SIDE {
        return Err(format!("padding is {most}, it must be at most {MAX_SIDE}"));
    }
    Ok(())
}

fn probability(p: f64) -> Result<(), String> {
    if (0.0..=1.0).contains(&p) {
        Ok(())
    } else {
        Err(format!("p is {p}, it must lie between 0 and 1"))
    }
}

fn finite(what: &str, values: &[f32]) -> Result<(), String> {
    match values.iter().find(|v| !v.is_finite()) {
        Some(bad) => Err(format!("{what} holds {bad}, it must be finite")),
        None => Ok(()),
    }
}

/// `low` is left out where it is 0 for things that must be above it.
fn range(what: &str, span: Span, low: f64, high: f64) -> Result<(), String> {
    let Span(a, b) = span;
    let positive = matches!(what, "scale" | "ratio" | "sigma");
    let inside = a.is_finite() && b.is_finite() && low <= a && a <= b && b <= high;
    if inside && !(positive && a <= 0.0) {
        return Ok(());
    }
    let bounds = match (positive, high == f64::MAX) {
        (true, true) => "above 0".to_owned(),
        (true, false) => format!("above 0, at most {high}"),
        (false, true) => format!("at least {low}"),
        (false, false) => format!("{low} to {high}"),
    };
    Err(format!(
        "{what} is {a} to {b}, it must be a range of finite numbers, the lower first, {bounds}"
    ))
}
