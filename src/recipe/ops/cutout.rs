//! Squares of one colour at random places (DeVries and Taylor 2017).

use serde::{Deserialize, Serialize};

use crate::error::SampleFault;
use crate::recipe::augment::kind::{happens, levels};
use crate::recipe::described::described;
use crate::recipe::geometry::{Rect, Uniform};
use crate::recipe::known::{Known, Values};
use crate::recipe::operation::Operation;
use crate::recipe::random::Numbers;
use crate::recipe::ranges::{MAX_SIDE, count, number, whole_levels};
use crate::recipe::reach::Sides;
use crate::recipe::step::{Augment, Erased, Step};
use crate::recipe::steps::{Largest, Sink};
use crate::recipe::unit::Part;
use crate::recipe::values::PerChannel;

described! {
    example: "cutout: {holes: 1, length: 112}";

    /// With probability `p`, `holes` squares of `length` pixels at random places become
    /// `value`; their centres lie in the picture, their corners may not (DeVries and
    /// Taylor 2017). The centre of an even length is the pixel after the middle. 1 to
    /// 64 holes. After `normalize` the values are those numbers themselves.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct Cutout {
        /// The probability, 0 to 1.
        pub p: f64,
        /// Squares, 1 to 64.
        pub holes: u32,
        /// The side of a square, pixels.
        pub length: u32,
        /// Levels; none: a colour of whole numbers from 0 to 255 that is drawn for each hole,
        /// in a file `random`.
        #[serde(with = "drawn")]
        pub value: Option<PerChannel>,
    }
}

/// One square of 112 pixels, black.
impl Default for Cutout {
    fn default() -> Self {
        Self {
            p: 1.0,
            holes: 1,
            length: 112,
            value: Some(PerChannel::default()),
        }
    }
}

impl Operation for Cutout {
    fn check(&self, known: &mut Known) -> Result<(), String> {
        number("p", self.p, 0.0, 1.0)?;
        count("holes", self.holes, MOST_HOLES)?;
        count("length", self.length, MAX_SIDE)?;
        let value = self.value.unwrap_or_default();
        if known.values == Values::Normalized {
            return known.color("value", value.0);
        }
        known.is_rgb8()?;
        whole_levels("value", value)
    }

    fn parts(&self) -> &'static [Part] {
        &[Part::Augment]
    }

    fn draw(
        &self,
        known: &Known,
        size: Sides,
        random: &mut Numbers<'_>,
        steps: &mut dyn Sink,
    ) -> Result<Sides, SampleFault> {
        draw(self, size, random, &mut |rect, color| {
            steps.push(hole(known, rect, color))
        });
        Ok(size)
    }

    fn largest(&self, known: &Known, size: Sides, most: &mut Largest<'_>) -> Sides {
        if self.p > 0.0 {
            let step = hole(known, Rect::whole(size), PerChannel::default());
            most.optionally(|most| most.push(step));
        }
        size
    }

    fn draws(&self) -> bool {
        true
    }
}

fn draw(
    o: &Cutout,
    (height, width): (u32, u32),
    random: &mut impl Uniform,
    push: &mut impl FnMut(Rect, PerChannel),
) {
    if !happens(o.p, random) {
        return;
    }
    for _ in 0..o.holes {
        let (top, bottom) = side(
            random.next_up_to(height.saturating_sub(1)),
            o.length,
            height,
        );
        let (left, right) = side(random.next_up_to(width.saturating_sub(1)), o.length, width);
        let drawn = [(); 3].map(|()| random.next_up_to(255) as f32);
        let rect = Rect {
            left,
            top,
            width: right - left,
            height: bottom - top,
        };
        push(rect, o.value.unwrap_or(PerChannel(drawn)));
    }
}

/// One square: in bytes, or in what `normalize` left.
fn hole(known: &Known, rect: Rect, color: PerChannel) -> Step {
    match known.values {
        Values::Normalized => Step::Erase {
            rect,
            with: Erased::Value(known.in_memory(color.0)),
            grey: known.is_grey(),
        },
        Values::Levels | Values::Color(_) => Step::Augment(Augment::Fill {
            rect,
            color: levels(color),
        }),
    }
}

/// `length` pixels of which `middle` is one, cut to those of the picture.
fn side(middle: u32, length: u32, all: u32) -> (u32, u32) {
    let half = length / 2;
    let end = middle.saturating_add(length - half).min(all);
    (middle.saturating_sub(half), end)
}

const MOST_HOLES: u32 = 64;

/// A colour, or that it is drawn: what is left out is the default, which is black,
/// so that none needs a word.
mod drawn {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::recipe::values::{Erasing, PerChannel};

    pub(super) fn serialize<S: Serializer>(
        value: &Option<PerChannel>,
        s: S,
    ) -> Result<S::Ok, S::Error> {
        value.map_or(Erasing::Random, Erasing::Value).serialize(s)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        d: D,
    ) -> Result<Option<PerChannel>, D::Error> {
        Ok(match Erasing::deserialize(d)? {
            Erasing::Value(value) => Some(value),
            Erasing::Random => None,
        })
    }
}
