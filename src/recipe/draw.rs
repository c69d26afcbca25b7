//! From operations and the random numbers of a position to steps: every
//! operation in the written order, on the size that the picture has there.
//!
//! Each operation has a stream of numbers of its own, by its name and the number
//! of its kind in front of it, so that moving, adding or changing one never shifts
//! those of another kind. Distributions are
//! torchvision's (`get_params` of each transform) where no operation says others.

use super::augment;
use super::check::Values;
use super::geometry::{Rect, Uniform, around, bounded_box, random_box, rotated_size};
use super::ops::{
    Aspect, ColorJitter, Erasing, JitterStyle, Op, PadTo, Padding, RandomCrop, RandomErasing, Size,
    Span,
};
use super::step::{Erased, Step};
use crate::error::{FaultKind, SampleFault};

/// The random numbers of one position.
pub(crate) trait Streams {
    type Stream: Uniform;

    /// Those of a stream.
    fn stream(&self, n: u32) -> Self::Stream;
}

/// An operation, with what the draw must know of its place.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Drawn {
    pub(crate) op: Op,
    /// Whose numbers it draws.
    pub(crate) stream: u32,
    /// What the values are in front of it.
    pub(crate) values: Values,
    /// Blue is the first channel of the recipe, and the last of pixels in memory.
    pub(crate) bgr: bool,
    /// The three channels are one.
    pub(crate) grey: bool,
}

/// A step, and the operation that it is of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct OpStep {
    pub(crate) op: usize,
    pub(crate) step: Step,
}

impl Op {
    /// Whether it takes random numbers.
    pub(crate) fn draws(&self) -> bool {
        match self {
            Self::RandomResizedCrop(_)
            | Self::BoundedResizedCrop(_)
            | Self::AutoAugment(_)
            | Self::RandAugment(_)
            | Self::TrivialAugment(_)
            | Self::AugMix(_)
            | Self::TimmAugment(_)
            | Self::Cutout(_)
            | Self::RandomCrop(_)
            | Self::RandomHorizontalFlip(_)
            | Self::RandomVerticalFlip(_)
            | Self::RandomRotation(_)
            | Self::RandomRotate90(_)
            | Self::ColorJitter(_)
            | Self::RandomGrayscale(_)
            | Self::PcaLighting(_)
            | Self::GaussianBlur(_)
            | Self::RandomErasing(_)
            | Self::CropWithPadding(_) => true,
            Self::Decode(_)
            | Self::Resize(_)
            | Self::CenterCrop(_)
            | Self::Rotate90(_)
            | Self::Pad(_)
            | Self::PadTo(_)
            | Self::Grayscale(_)
            | Self::ConvertColor(_)
            | Self::Normalize(_)
            | Self::Cast(_)
            | Self::Layout(_) => false,
        }
    }
}

impl Op {
    /// How many labels there are, where what is drawn is the sample's label: from 0 on.
    pub(crate) fn gives_labels(&self) -> Option<u32> {
        match self {
            Self::RandomRotate90(o) => o.label.then_some(MOST_QUARTERS + 1),
            _ => None,
        }
    }
}

impl Drawn {
    /// The label that is drawn here: no picture's size has a part in it, so that who
    /// knows a row's position knows its label.
    pub(crate) fn label(&self, random: &impl Streams) -> Option<i64> {
        let mut stream = random.stream(self.stream);
        match &self.op {
            Op::RandomRotate90(o) => o.label.then(|| quarters(&mut stream).into()),
            _ => None,
        }
    }

    /// From the recipe's channels to those in memory.
    fn channels(&self, mut v: [f32; 3]) -> [f32; 3] {
        if self.bgr {
            v.reverse();
        }
        v
    }

    /// Adds the steps of this operation on a picture of this height and width;
    /// what that becomes.
    ///
    /// # Errors
    /// When the picture is too small.
    pub(crate) fn draw(
        &self,
        at: usize,
        (height, width): (u32, u32),
        random: &mut impl Uniform,
        steps: &mut Vec<OpStep>,
    ) -> Result<(u32, u32), SampleFault> {
        let size = (height, width);
        let mut push = |step| steps.push(OpStep { op: at, step });
        match &self.op {
            Op::Decode(_) | Op::Layout(_) => {}
            Op::Resize(o) => {
                let to = o.output(size);
                push(Step::Resize {
                    size: to.into(),
                    interpolation: o.interpolation,
                    antialias: o.antialias,
                });
                return Ok(to);
            }
            Op::RandomResizedCrop(o) => {
                let (scale, ratio) = ((o.scale.0, o.scale.1), (o.ratio.0, o.ratio.1));
                push(Step::Crop(random_box(width, height, scale, ratio, random)));
                push(Step::Resize {
                    size: o.size,
                    interpolation: o.interpolation,
                    antialias: o.antialias,
                });
                return Ok((o.size.height, o.size.width));
            }
            Op::BoundedResizedCrop(o) => {
                let (scale, ratio) = ((o.scale.0, o.scale.1), (o.ratio.0, o.ratio.1));
                let rect = bounded_box(width, height, scale, ratio, o.aspect, random);
                push(Step::Crop(rect));
                push(Step::Resize {
                    size: o.size,
                    interpolation: o.interpolation,
                    antialias: o.antialias,
                });
                return Ok((o.size.height, o.size.width));
            }
            Op::RandomCrop(o) => {
                let (pad, (h, w)) = paddings(o, size);
                if pad != Padding::default() {
                    push(Step::Pad {
                        padding: pad,
                        mode: o.padding_mode,
                        fill: self.channels(o.fill.0),
                    });
                }
                fits(o.size, (h, w), "random_crop", "or pad_if_needed: true")?;
                push(Step::Crop(Rect {
                    top: random.next_up_to(h - o.size.height),
                    left: random.next_up_to(w - o.size.width),
                    width: o.size.width,
                    height: o.size.height,
                }));
                return Ok((o.size.height, o.size.width));
            }
            Op::CenterCrop(o) => {
                let to = o.output(size);
                fits(to.into(), size, "center_crop", "or a pad in front of it")?;
                push(Step::Crop(o.part(size)));
                return Ok(to);
            }
            Op::RandomHorizontalFlip(o) => {
                if random.next_f64() < o.p {
                    push(Step::Mirror);
                }
            }
            Op::RandomVerticalFlip(o) => {
                if random.next_f64() < o.p {
                    push(Step::UpsideDown);
                }
            }
            Op::RandomRotation(o) => {
                if o.p < 1.0 && random.next_f64() >= o.p {
                    return Ok(size);
                }
                let degrees = uniform(o.degrees, random);
                let (h, w) = match o.expand {
                    true => {
                        let (w, h) = rotated_size(width, height, degrees);
                        (h, w)
                    }
                    false => size,
                };
                push(Step::Rotate {
                    degrees,
                    interpolation: o.interpolation,
                    size: (h, w).into(),
                    fill: self.channels(o.fill.0),
                    style: o.style,
                });
                return Ok((h, w));
            }
            Op::Rotate90(o) => {
                return Ok(turn(o.times.rem_euclid(4) as u8, size, &mut push));
            }
            Op::RandomRotate90(_) => {
                return Ok(turn(quarters(random), size, &mut push));
            }
            Op::Pad(o) => {
                push(Step::Pad {
                    padding: o.padding,
                    mode: o.padding_mode,
                    fill: self.channels(o.fill.0),
                });
                return Ok(padded(size, o.padding));
            }
            Op::PadTo(o) => {
                let padding = o.padding(size).ok_or_else(|| no_room(o, size))?;
                push(Step::Pad {
                    padding,
                    mode: o.padding_mode,
                    fill: self.channels(o.fill.0),
                });
                return Ok(padded(size, padding));
            }
            Op::ColorJitter(o) => jitter(o, random, push),
            Op::Grayscale(_) => push(Step::Grayscale),
            Op::RandomGrayscale(o) => {
                if random.next_f64() < o.p {
                    push(Step::Grayscale);
                }
            }
            Op::ConvertColor(o) => push(Step::Convert(o.to, o.white_point)),
            Op::PcaLighting(o) => {
                let alpha = [(); 3].map(|()| o.std * augment::gauss(random));
                // Of red, green and blue, as pixels in memory are.
                push(Step::Shift(o.noise(alpha)));
            }
            Op::GaussianBlur(o) => push(Step::Blur {
                kernel: o.kernel_size,
                sigma: uniform(o.sigma, random),
            }),
            Op::RandomErasing(o) => {
                if let Some((rect, with)) = erase(o, self.values, size, random) {
                    let with = match with {
                        Erased::Value(v) => Erased::Value(self.channels(v)),
                        noise => noise,
                    };
                    let grey = self.grey;
                    push(Step::Erase { rect, with, grey });
                }
            }
            Op::CropWithPadding(o) => {
                if random.next_f64() < o.p {
                    let (scale, ratio) = ((o.scale.0, o.scale.1), (o.ratio.0, o.ratio.1));
                    let kept = random_box(width, height, scale, ratio, random);
                    for rect in around(kept, size) {
                        push(Step::Erase {
                            rect,
                            with: Erased::Value(self.channels(o.value.0)),
                            grey: self.grey,
                        });
                    }
                }
            }
            Op::AutoAugment(_)
            | Op::RandAugment(_)
            | Op::TrivialAugment(_)
            | Op::AugMix(_)
            | Op::TimmAugment(_)
            | Op::Cutout(_) => {
                augment::draw(&self.op, size, random, |step| push(Step::Augment(step)));
            }
            Op::Normalize(o) => push(Step::Normalize {
                unit: super::check::unit(self.values),
                mean: self.channels(o.mean.0),
                std: self.channels(o.std.0),
            }),
            Op::Cast(o) => push(Step::Cast(o.dtype)),
        }
        Ok(size)
    }

    /// The steps that take the most memory on a picture of this height and
    /// width, instead of drawn ones.
    pub(crate) fn largest(
        &self,
        at: usize,
        size: (u32, u32),
        steps: &mut Vec<OpStep>,
    ) -> (u32, u32) {
        let mut push = |step| steps.push(OpStep { op: at, step });
        match &self.op {
            Op::RandomResizedCrop(o) => {
                push(Step::Crop(largest_box(size, o.scale, o.ratio)));
                push(Step::Resize {
                    size: o.size,
                    interpolation: o.interpolation,
                    antialias: o.antialias,
                });
                (o.size.height, o.size.width)
            }
            Op::BoundedResizedCrop(o) => {
                push(Step::Crop(largest_box(size, o.scale, o.ratio)));
                push(Step::Resize {
                    size: o.size,
                    interpolation: o.interpolation,
                    antialias: o.antialias,
                });
                (o.size.height, o.size.width)
            }
            Op::RandomRotation(o) => {
                // No side is longer than the diagonal, both ends rounded outwards.
                let (h, w) = match o.expand {
                    true => {
                        let d = libm::hypot(f64::from(size.0), f64::from(size.1)).ceil() as u32;
                        let d = d.saturating_add(1);
                        (d, d)
                    }
                    false => size,
                };
                push(Step::Rotate {
                    degrees: o.degrees.1,
                    interpolation: o.interpolation,
                    size: (h, w).into(),
                    fill: self.channels(o.fill.0),
                    style: o.style,
                });
                (h, w)
            }
            Op::PadTo(o) => {
                // A smaller draw may have the room that this one has not.
                let to = o.output(size);
                let padding = o.padding(size).unwrap_or(Padding {
                    bottom: to.0.saturating_sub(size.0),
                    right: to.1.saturating_sub(size.1),
                    ..Padding::default()
                });
                push(Step::Pad {
                    padding,
                    mode: o.padding_mode,
                    fill: self.channels(o.fill.0),
                });
                to
            }
            Op::RandomGrayscale(_) => {
                push(Step::Grayscale);
                size
            }
            Op::AutoAugment(_)
            | Op::RandAugment(_)
            | Op::TrivialAugment(_)
            | Op::AugMix(_)
            | Op::TimmAugment(_)
            | Op::Cutout(_) => {
                augment::largest(&self.op, size, |step| push(Step::Augment(step)));
                size
            }
            Op::RandomErasing(_) | Op::CropWithPadding(_) => {
                // The lowest numbers may leave nothing to erase.
                push(Step::Erase {
                    rect: Rect {
                        left: 0,
                        top: 0,
                        width: size.1,
                        height: size.0,
                    },
                    with: Erased::Value([0.0; 3]),
                    grey: self.grey,
                });
                size
            }
            Op::RandomRotate90(_) => {
                // There, and the sizes behind it those of the picture; what a turn by
                // one quarter adds is `forecast::most`'s.
                push(Step::Turn(2));
                size
            }
            _ => {
                // The rest is as large whatever is drawn; a picture too small for a
                // crop is a failed sample and takes nothing more.
                self.draw(at, size, &mut Zeros, steps).unwrap_or(size)
            }
        }
    }
}

/// Every probability comes true, every draw is the lowest.
struct Zeros;

impl Uniform for Zeros {
    fn next_f64(&mut self) -> f64 {
        0.0
    }
}

fn uniform(Span(low, high): Span, random: &mut impl Uniform) -> f64 {
    low + (high - low) * random.next_f64()
}

/// The whole picture where its shape allows that, of a crop of random area and
/// ratio; never more. What any draw takes at most is `forecast::most`'s.
fn largest_box((height, width): (u32, u32), scale: Span, ratio: Span) -> Rect {
    let area = f64::from(height) * f64::from(width) * scale.1;
    let side = |n: u32, most: f64| (most.sqrt().ceil() as u32).clamp(1, n);
    Rect {
        left: 0,
        top: 0,
        height: side(height, area / ratio.0),
        width: side(width, area * ratio.1),
    }
}

fn padded((height, width): (u32, u32), p: Padding) -> (u32, u32) {
    (
        height.saturating_add(p.top).saturating_add(p.bottom),
        width.saturating_add(p.left).saturating_add(p.right),
    )
}

/// What a random crop pads, and the size that it crops from.
fn paddings(o: &RandomCrop, size: (u32, u32)) -> (Padding, (u32, u32)) {
    let mut pad = o.padding;
    let (h, w) = padded(size, pad);
    if o.pad_if_needed {
        // On both sides by all that is missing, as in torchvision.
        let (y, x) = (
            o.size.height.saturating_sub(h),
            o.size.width.saturating_sub(w),
        );
        pad = Padding {
            left: pad.left + x,
            right: pad.right + x,
            top: pad.top + y,
            bottom: pad.bottom + y,
        };
    }
    (pad, padded(size, pad))
}

fn fits(size: Size, (h, w): (u32, u32), op: &str, or: &str) -> Result<(), SampleFault> {
    if size.height <= h && size.width <= w {
        return Ok(());
    }
    Err(SampleFault::new(
        FaultKind::TooSmall,
        format!(
            "the picture is {h} x {w} where {op} takes {size} of it: the recipe needs a resize {or}"
        ),
    ))
}

fn no_room(o: &PadTo, (h, w): (u32, u32)) -> SampleFault {
    let to = Size::from(o.output((h, w)));
    let at = match o.offset {
        Some([left, top]) => format!(" with {left} pixels at its left and {top} at its top"),
        None => String::new(),
    };
    SampleFault::new(
        FaultKind::TooLarge,
        format!(
            "the picture is {h} x {w} where pad_to makes {to} of it{at}: the recipe needs a resize \
             or a crop in front of it"
        ),
    )
}

/// The most quarter turns that are drawn.
const MOST_QUARTERS: u32 = 3;

fn quarters(random: &mut impl Uniform) -> u8 {
    random.next_up_to(MOST_QUARTERS) as u8
}

fn turn(quarters: u8, (h, w): (u32, u32), push: &mut impl FnMut(Step)) -> (u32, u32) {
    if quarters > 0 {
        push(Step::Turn(quarters));
    }
    if quarters % 2 == 1 { (w, h) } else { (h, w) }
}

fn jitter(o: &ColorJitter, random: &mut impl Uniform, mut push: impl FnMut(Step)) {
    if random.next_f64() >= o.p && o.p < 1.0 {
        return;
    }
    let factors = [o.brightness, o.contrast, o.saturation, o.hue].map(|span| uniform(span, random));
    let mut order = [0usize, 1, 2, 3];
    if o.random_order {
        for i in (1..order.len()).rev() {
            order.swap(i, random.next_up_to(i as u32) as usize);
        }
    }
    let nothing = [
        Span(1.0, 1.0),
        Span(1.0, 1.0),
        Span(1.0, 1.0),
        Span(0.0, 0.0),
    ];
    let spans = [o.brightness, o.contrast, o.saturation, o.hue];
    for i in order {
        if spans[i] == nothing[i] {
            continue;
        }
        let factor = factors[i] as f32;
        push(match i {
            _ if o.style == JitterStyle::Pillow => Step::Augment(augment::jitter(i, factors[i])),
            0 => Step::Brightness(factor),
            1 => Step::Contrast(factor),
            2 => Step::Saturation(factor),
            _ => Step::Hue(factor),
        });
    }
}

/// torchvision's law, and PaddleClas' with other `attempts` and `aspect`; but that
/// a box without pixels, which both take for one that fits, is drawn again.
fn erase(
    o: &RandomErasing,
    values: Values,
    (height, width): (u32, u32),
    random: &mut impl Uniform,
) -> Option<(Rect, Erased)> {
    if random.next_f64() >= o.p && o.p < 1.0 {
        return None;
    }
    let key = (random.next_f64() * (1u64 << 53) as f64) as u64;
    let area = f64::from(height) * f64::from(width);
    let log = Span(libm::log(o.ratio.0), libm::log(o.ratio.1));
    for _ in 0..o.attempts {
        let part = area * uniform(o.scale, random);
        let aspect = match o.aspect {
            Aspect::Log => libm::exp(uniform(log, random)),
            Aspect::Uniform => uniform(o.ratio, random),
        };
        let h = (part * aspect).sqrt().round_ties_even();
        let w = (part / aspect).sqrt().round_ties_even();
        if h >= 1.0 && w >= 1.0 && h < f64::from(height) && w < f64::from(width) {
            let (h, w) = (h as u32, w as u32);
            let rect = Rect {
                top: random.next_up_to(height - h),
                left: random.next_up_to(width - w),
                width: w,
                height: h,
            };
            let with = match (o.value, values) {
                (Erasing::Value(v), _) => Erased::Value(v.0),
                (Erasing::Random, Values::Normalized) => Erased::Normal(key),
                (Erasing::Random, _) => Erased::Levels(key),
            };
            return Some((rect, with));
        }
    }
    None
}

#[cfg(test)]
mod tests;
