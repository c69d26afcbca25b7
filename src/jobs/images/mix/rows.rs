//! Mixes rows with their partners' rows, in place.
//!
//! Follows the cycles of the permutation. Each row is changed once its own pixels are not needed
//! any more. Only the first row of a cycle is copied.

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

use crate::jobs::images::mix::draw::{PasteBox, RowPartners};
use crate::recipe::{DataType, MemoryLayout};

/// The shape of the rows of a batch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowShape {
    pub(crate) channels: usize,
    pub(crate) height: usize,
    pub(crate) width: usize,
    pub(crate) dtype: DataType,
    pub(crate) layout: MemoryLayout,
}

impl RowShape {
    pub(crate) fn bytes(&self) -> usize {
        self.elements() * self.dtype.size()
    }

    pub(crate) fn elements(&self) -> usize {
        self.channels * self.height * self.width
    }
}

/// Elements converted to `f32` at a time.
const CHUNK: usize = 256;

/// An element type that can be mixed.
pub(crate) trait MixElement: bytemuck::Pod {
    /// `own * keep + other * (1 - keep)`, in `f32`, rounded once.
    fn blend(own: &mut [Self], other: &[Self], keep: f64);

    /// The same with a weight per element.
    fn blend_by(own: &mut [Self], other: &[Self], keep: &[f32]);
}

impl MixElement for f32 {
    fn blend(own: &mut [Self], other: &[Self], keep: f64) {
        let (keep, give) = (keep as f32, (1.0 - keep) as f32);
        for (a, b) in own.iter_mut().zip(other) {
            *a = *a * keep + *b * give;
        }
    }

    fn blend_by(own: &mut [Self], other: &[Self], keep: &[f32]) {
        for ((a, b), m) in own.iter_mut().zip(other).zip(keep) {
            *a = *a * m + *b * (1.0 - m);
        }
    }
}

impl MixElement for f16 {
    fn blend(own: &mut [Self], other: &[Self], keep: f64) {
        in_f32(own, other, |_, a, b| f32::blend(a, b, keep));
    }

    fn blend_by(own: &mut [Self], other: &[Self], keep: &[f32]) {
        in_f32(own, other, |at, a, b| {
            f32::blend_by(a, b, &keep[at..at + a.len()]);
        });
    }
}

impl MixElement for bf16 {
    fn blend(own: &mut [Self], other: &[Self], keep: f64) {
        in_f32(own, other, |_, a, b| f32::blend(a, b, keep));
    }

    fn blend_by(own: &mut [Self], other: &[Self], keep: &[f32]) {
        in_f32(own, other, |at, a, b| {
            f32::blend_by(a, b, &keep[at..at + a.len()]);
        });
    }
}

/// Calls `blend` for chunks of both, with the index of the chunk's first element.
fn in_f32<T>(own: &mut [T], other: &[T], mut blend: impl FnMut(usize, &mut [f32], &[f32]))
where
    [T]: HalfFloatSliceExt,
{
    let (mut a, mut b) = ([0f32; CHUNK], [0f32; CHUNK]);
    let chunks = own.chunks_mut(CHUNK).zip(other.chunks(CHUNK));
    for (i, (own, other)) in chunks.enumerate() {
        let (a, b) = (&mut a[..own.len()], &mut b[..own.len()]);
        own.convert_to_f32_slice(a);
        other.convert_to_f32_slice(b);
        blend(i * CHUNK, a, b);
        own.convert_from_f32_slice(a);
    }
}

/// Combines each row of `width` elements with its partner's original row. A row that is its own
/// partner does not change.
pub(crate) fn combine_partners<T: Copy>(
    all: &mut [T],
    width: usize,
    partners: &RowPartners,
    saved: &mut Vec<T>,
    mut combine: impl FnMut(&mut [T], &[T]),
) {
    let place = |i: usize| {
        let row = partners.rows[i];
        row * width..(row + 1) * width
    };
    let mut done = vec![false; partners.partner_of.len()];
    for first in 0..partners.partner_of.len() {
        if done[first] || partners.partner_of[first] == first {
            continue;
        }
        saved.clear();
        saved.extend_from_slice(&all[place(first)]);
        let mut at = first;
        loop {
            done[at] = true;
            let next = partners.partner_of[at];
            if next == first {
                combine(&mut all[place(at)], saved);
                break;
            }
            let (own, other) = (place(at), place(next));
            let (low, high) = all.split_at_mut(own.start.max(other.start));
            match own.start < other.start {
                true => combine(&mut low[own], &high[..width]),
                false => combine(&mut high[..width], &low[other]),
            }
            at = next;
        }
    }
}

/// Copies the partner's pixels into a box.
pub(crate) fn paste<T: Copy>(own: &mut [T], other: &[T], at: &PasteBox, shape: RowShape) {
    // Planes of single numbers, or one plane of whole pixels.
    let (planes, pixel) = match shape.layout {
        MemoryLayout::Nchw => (shape.channels, 1),
        MemoryLayout::Nhwc => (1, shape.channels),
    };
    for plane in 0..planes {
        for y in at.rows.clone() {
            let line = (plane * shape.height + y) * shape.width;
            let part = (line + at.columns.start) * pixel..(line + at.columns.end) * pixel;
            own[part.clone()].copy_from_slice(&other[part]);
        }
    }
}
