//! Operations that join the picture of a sample with those of partners, and what they draw.
//!
//! Pure. A joint divides a recipe into stages. Partners are drawn uniformly from all samples, or
//! from a window of the epoch's order, by the numbers of the position. Sizes are height, width.
//! Coordinates are pixels of the canvas, x to the right and y down. Never in here: pixels, which are
//! joined in `pixels/joining`.

use serde::Serialize;

use super::augment::distribution::beta;
use super::geometry::{PixelRect, UniformSource};
use super::random::{OperationNumbers, RandomStreams};
use super::size_bounds::HeightWidth;
use super::values::Size;

/// Most pictures of which a row may be made.
pub(crate) const MOST_PICTURES: u64 = 64;

/// An operation that joins pictures.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SampleJoint {
    /// The probability that partners are joined, 0 to 1. Otherwise the picture is alone.
    pub(crate) p: f64,
    pub(crate) kind: JointKind,
    /// Partners come from a window of this many positions. None: from the whole epoch.
    pub(crate) window: Option<u32>,
}

/// A partner, before it is known which sample it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PartnerDraw {
    /// Where it stands among those that it may be, 0 to 1.
    pub(crate) share: f64,
    /// See [`SampleJoint::window`].
    pub(crate) window: Option<u32>,
}

/// The most positions of a window.
const MOST_WINDOW: u32 = 1_000_000;

/// Checks the window of a joint.
pub(crate) fn check_window(window: Option<u32>) -> Result<(), String> {
    match window {
        Some(n) if !(2..=MOST_WINDOW).contains(&n) => Err(format!(
            "partner_window is {n}: use 2 to {MOST_WINDOW}, or remove it"
        )),
        _ => Ok(()),
    }
}

/// How pictures are joined.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum JointKind {
    /// Pictures of at most `size` beside each other, on a canvas of twice that.
    Mosaic {
        grid: u32,
        size: Size,
        fill: [u8; 3],
    },
    /// A weighted mean with one partner of the same size.
    Mix { alpha: f64 },
    /// A box is taken from one partner of the same size.
    Cut {
        alpha: f64,
        boxes: u32,
        min_visibility: f64,
    },
    /// Objects of one partner of the same size are pasted.
    Paste {
        max_overlap: f64,
        min_visibility: f64,
    },
}

/// What a joint draws for a picture.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct JointDraw {
    /// The samples that are joined with the picture, in order. Empty: it stays alone.
    pub partners: Vec<u64>,
    /// Where the first four pictures of a mosaic meet: x, y. None without a mosaic of four.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub center: Option<(u32, u32)>,
    /// The weight of the picture itself. None unless pictures are mixed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<f64>,
    /// Boxes of which one is taken from the partner: the first of those that the objects allow.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub boxes: Vec<PixelRect>,
}

impl SampleJoint {
    /// The number of partners, if the picture is not alone.
    pub(crate) fn partners(&self) -> u32 {
        match self.kind {
            JointKind::Mosaic { grid, .. } => grid * grid - 1,
            JointKind::Mix { .. } | JointKind::Cut { .. } | JointKind::Paste { .. } => 1,
        }
    }

    /// The largest height and width of a picture that it takes. None: all have the canvas's size.
    pub(crate) fn most(&self) -> Option<HeightWidth> {
        match self.kind {
            JointKind::Mosaic { size, .. } => Some((size.height, size.width)),
            JointKind::Mix { .. } | JointKind::Cut { .. } | JointKind::Paste { .. } => None,
        }
    }

    /// Draws partners and all else. `partner`: the sample of a draw. `canvas`: height and width of the
    /// result.
    pub(crate) fn draw(
        &self,
        (random, stream): (&dyn RandomStreams, u32),
        partner: &dyn Fn(PartnerDraw) -> u64,
        canvas: HeightWidth,
    ) -> JointDraw {
        let mut random = OperationNumbers::new(random, stream);
        let mut draw = JointDraw {
            partners: Vec::new(),
            center: None,
            weight: None,
            boxes: Vec::new(),
        };
        if random.next_f64() >= self.p {
            return draw;
        }
        for _ in 0..self.partners() {
            draw.partners.push(partner(PartnerDraw {
                share: random.next_f64(),
                window: self.window,
            }));
        }
        match self.kind {
            JointKind::Mosaic { grid: 2, size, .. } => {
                let mut along = |side: u32| {
                    let (low, high) = (side.div_ceil(2), 2 * side - side.div_ceil(2));
                    let at = f64::from(low) + f64::from(high - low) * random.next_f64();
                    (at as u32).min(high)
                };
                let y = along(size.height);
                draw.center = Some((along(size.width), y));
            }
            JointKind::Mosaic { .. } | JointKind::Paste { .. } => {}
            JointKind::Mix { alpha } => draw.weight = Some(beta(alpha, &mut random)),
            JointKind::Cut { alpha, boxes, .. } => {
                let drawn = (0..boxes).map(|_| cut_box(canvas, alpha, &mut random));
                draw.boxes = drawn.collect();
                // Any of those that the objects allow is equally likely to be the first.
                for last in (1..draw.boxes.len()).rev() {
                    let other = random.next_up_to(last as u32) as usize;
                    draw.boxes.swap(last, other);
                }
            }
        }
        draw
    }

    /// Draws which of `count` objects of the partner are pasted: as many numbers as objects, each of
    /// which names one. At least one is.
    pub(crate) fn draw_objects(
        &self,
        (random, stream): (&dyn RandomStreams, u32),
        count: usize,
    ) -> Vec<bool> {
        // How many objects there are follows from the partner's picture, so they have numbers of
        // their own.
        let mut random = OperationNumbers::new(random, stream).nested("objects", 0);
        let mut chosen = vec![false; count];
        for _ in 0..count {
            let one = random.next_up_to(count.saturating_sub(1) as u32);
            chosen[one as usize] = true;
        }
        chosen
    }
}

/// A box of this share of the picture: its centre is uniform, and its edges are clipped.
fn cut_box((height, width): HeightWidth, alpha: f64, random: &mut impl UniformSource) -> PixelRect {
    let share = (1.0 - beta(alpha, random)).max(0.0).sqrt();
    let mut along = |side: u32| {
        let length = (f64::from(side) * share) as u32;
        let at = i64::from(random.next_up_to(side.saturating_sub(1)));
        let half = i64::from(length / 2);
        let clip = |edge: i64| edge.clamp(0, i64::from(side)) as u32;
        let (from, to) = (clip(at - half), clip(at + half));
        (from, to - from)
    };
    let (left, width) = along(width);
    let (top, height) = along(height);
    PixelRect {
        left,
        top,
        width,
        height,
    }
}

/// The places of the pictures of a mosaic, in the order in which they are pasted: a later one
/// covers an earlier one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MosaicLayout {
    size: Size,
    /// None: nine pictures around the middle one.
    center: Option<(u32, u32)>,
    number: u32,
    first: (i64, i64),
    last: (i64, i64),
}

impl MosaicLayout {
    pub(crate) fn new(size: Size, center: Option<(u32, u32)>) -> Self {
        Self {
            size,
            center,
            number: 0,
            first: (0, 0),
            last: (0, 0),
        }
    }

    /// Left and top of the next picture, which has this height and width, on the canvas.
    pub(crate) fn place(&mut self, (height, width): HeightWidth) -> [i64; 2] {
        let (h, w) = (i64::from(height), i64::from(width));
        let number = self.number;
        self.number += 1;
        if let Some((x, y)) = self.center {
            // Each picture has a corner there: its lower right, lower left, upper right, upper left.
            let (x, y) = (i64::from(x), i64::from(y));
            let left = if number.is_multiple_of(2) { x - w } else { x };
            let top = if number < 2 { y - h } else { y };
            return [left, top];
        }
        if number == 0 {
            self.first = (h, w);
        }
        // On a canvas of three times the size, whose middle is the canvas.
        let (sh, sw) = (i64::from(self.size.height), i64::from(self.size.width));
        let ((h0, w0), (hp, wp)) = (self.first, self.last);
        let [x, y] = match number {
            0 => [sw, sh],
            1 => [sw, sh - h],
            2 => [sw + wp, sh - h],
            3 => [sw + w0, sh],
            4 => [sw + w0, sh + hp],
            5 => [sw + w0 - w, sh + h0],
            6 => [sw + w0 - wp - w, sh + h0],
            7 => [sw - w, sh + h0 - h],
            _ => [sw - w, sh + h0 - hp - h],
        };
        self.last = (h, w);
        [x - sw.div_euclid(2), y - sh.div_euclid(2)]
    }
}

/// Left and top of a picture of this height and width in the middle of a canvas.
pub(crate) fn centered(canvas: HeightWidth, (height, width): HeightWidth) -> [i64; 2] {
    let along = |all: u32, some: u32| (i64::from(all) - i64::from(some)).div_euclid(2);
    [along(canvas.1, width), along(canvas.0, height)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::PositionRandom;

    #[test]
    fn four_pictures_meet_at_the_centre() {
        let size = Size {
            height: 10,
            width: 20,
        };
        let mut layout = MosaicLayout::new(size, Some((15, 8)));
        let places: Vec<_> = (0..4).map(|n| layout.place((3 + n, 7 + n))).collect();
        assert_eq!(places, [[8, 5], [15, 4], [6, 8], [15, 8]]);
    }

    /// Places by the rule of the nine: around the first, each beside the last.
    #[test]
    fn nine_pictures_lie_around_the_first() {
        let mut layout = MosaicLayout::new(Size::from(10), None);
        let sizes = [
            (8, 10),
            (5, 6),
            (7, 3),
            (10, 4),
            (2, 9),
            (6, 5),
            (3, 2),
            (9, 8),
            (4, 7),
        ];
        let places: Vec<_> = sizes.iter().map(|size| layout.place(*size)).collect();
        let on_three = [
            [10, 10],
            [10, 5],
            [16, 3],
            [20, 10],
            [20, 20],
            [15, 18],
            [13, 18],
            [2, 9],
            [3, 5],
        ];
        let want: Vec<_> = on_three.map(|[x, y]: [i64; 2]| [x - 5, y - 5]).into();
        assert_eq!(places, want);
    }

    #[test]
    fn draws_are_uniform_and_within_their_bounds() {
        let mosaic = |grid| SampleJoint {
            p: 0.75,
            kind: JointKind::Mosaic {
                grid,
                size: Size {
                    height: 11,
                    width: 20,
                },
                fill: [114; 3],
            },
            window: Some(70),
        };
        let joint = mosaic(2);
        let (mut alone, mut partners, mut sum) = (0, [0u32; 5], 0.0);
        let n = 20_000;
        for position in 0..n {
            let random = PositionRandom::new(3, 0, position);
            let partner = |of: PartnerDraw| {
                assert_eq!(of.window, Some(70));
                (5.0 * of.share) as u64
            };
            let draw = joint.draw((&random, 9), &partner, (22, 40));
            if draw.partners.is_empty() {
                assert_eq!(draw.center, None);
                alone += 1;
                continue;
            }
            assert_eq!(draw.partners.len(), 3);
            draw.partners
                .iter()
                .for_each(|id| partners[*id as usize] += 1);
            let (x, y) = draw.center.unwrap();
            assert!((10..30).contains(&x) && (6..16).contains(&y), "{x}, {y}");
            sum += f64::from(x);
        }
        let joined = f64::from(n as u32 - alone);
        assert!((f64::from(alone) / n as f64 - 0.25).abs() < 0.02);
        assert!((sum / joined - 19.5).abs() < 0.2);
        for count in partners {
            assert!((f64::from(count) / joined - 0.6).abs() < 0.03);
        }
        assert_eq!(mosaic(3).partners(), 8);
        let mix = SampleJoint {
            p: 1.0,
            kind: JointKind::Mix { alpha: 32.0 },
            window: None,
        };
        let cut = SampleJoint {
            p: 1.0,
            kind: JointKind::Cut {
                alpha: 1.0,
                boxes: 3,
                min_visibility: 0.1,
            },
            window: None,
        };
        let (mut mean, mut square, mut area) = (0.0, 0.0, 0.0);
        for position in 0..n {
            let random = PositionRandom::new(3, 0, position);
            let weight = mix.draw((&random, 9), &|_| 0, (8, 8)).weight.unwrap();
            (mean, square) = (mean + weight, square + (weight - 0.5) * (weight - 0.5));
            let draw = cut.draw((&random, 9), &|_| 0, (50, 80));
            assert_eq!((draw.partners.as_slice(), draw.boxes.len()), (&[0][..], 3));
            for rect in &draw.boxes {
                assert!(rect.left + rect.width <= 80 && rect.top + rect.height <= 50);
                area += f64::from(rect.width * rect.height) / 4000.0 / 3.0;
            }
        }
        // The variance of beta(32, 32) is 1 / (4 * 65).
        assert!((mean / n as f64 - 0.5).abs() < 0.002);
        assert!((square / n as f64 * 260.0 - 1.0).abs() < 0.05);
        // A share of 1/2 on average, of which clipping leaves less.
        assert!((0.25..0.5).contains(&(area / n as f64)), "{area}");
    }

    /// torchvision's: as many uniform numbers as objects, each of which names one.
    #[test]
    fn objects_are_drawn_with_repetition() {
        let joint = SampleJoint {
            p: 0.5,
            window: None,
            kind: JointKind::Paste {
                max_overlap: 1.0,
                min_visibility: 0.0,
            },
        };
        let n = 20_000;
        for count in [1usize, 2, 5, 40] {
            let mut chosen = vec![0; count];
            let mut repeated = 0;
            for position in 0..n {
                let random = PositionRandom::new(3, 0, position);
                let objects = joint.draw_objects((&random, 9), count);
                assert!(objects.len() == count && objects.contains(&true));
                assert_eq!(objects, joint.draw_objects((&random, 9), count));
                let all = chosen.iter_mut().zip(&objects);
                all.for_each(|(sum, is_chosen)| *sum += u64::from(*is_chosen));
                // Not the numbers of the joint itself: whether it joins, and whom.
                let joins = !joint.draw((&random, 9), &|_| 0, (8, 8)).partners.is_empty();
                repeated += u64::from(objects[0] && joins);
            }
            let want = 1.0 - (1.0 - 1.0 / count as f64).powi(count as i32);
            for sum in &chosen {
                assert!(
                    (*sum as f64 / n as f64 - want).abs() < 0.02,
                    "{count}: {sum}"
                );
            }
            assert!((repeated as f64 / n as f64 - want / 2.0).abs() < 0.02);
        }
        let random = PositionRandom::new(3, 0, 0);
        assert!(joint.draw_objects((&random, 9), 0).is_empty());
    }

    #[test]
    fn a_lone_picture_lies_in_the_middle() {
        assert_eq!(centered((20, 20), (7, 10)), [5, 6]);
        assert_eq!(centered((4, 4), (4, 4)), [0, 0]);
    }
}
