//! Squares of one colour at random places (DeVries and Taylor 2017).

use super::happens;
use super::kind::levels;
use crate::recipe::geometry::{Rect, Uniform};
use crate::recipe::ops::Cutout;
use crate::recipe::step::Augment;

pub(super) fn draw(
    o: &Cutout,
    (height, width): (u32, u32),
    random: &mut impl Uniform,
    push: &mut impl FnMut(Augment),
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
        let drawn = [(); 3].map(|()| random.next_up_to(255) as u8);
        push(Augment::Fill {
            rect: Rect {
                left,
                top,
                width: right - left,
                height: bottom - top,
            },
            color: o.value.map_or(drawn, levels),
        });
    }
}

/// `length` pixels of which `middle` is one, cut to those of the picture.
fn side(middle: u32, length: u32, all: u32) -> (u32, u32) {
    let half = length / 2;
    let end = middle.saturating_add(length - half).min(all);
    (middle.saturating_sub(half), end)
}
