//! The memory that steps on pixels take, from sizes alone: what a worker checks
//! before it begins on a sample, and what `plan` prints.
//!
//! Mirrors the buffers of `pixels/canvas.rs`: two of `u8` and two of `f32`, of
//! which steps that cannot work in place read one and write the other. They
//! keep the size of the largest picture that they held, so a sample takes the
//! sum of four maxima.

use super::fold::Fold;
use super::placement::Placement;
use super::step::Step;
use super::tensor::Dtype;
use super::weights::Axis;

/// Bytes of a pixel.
pub(crate) const RGB8: u64 = 3;
pub(crate) const RGB32: u64 = 12;

/// What the buffers held so far, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CanvasNeeds {
    /// Width and height of the picture as it is stored.
    size: (u32, u32),
    placement: Placement,
    /// In `f32`, by now.
    floats: bool,
    rgb: [u64; 2],
    f32s: [u64; 2],
    /// The first of its two is in use.
    first: [bool; 2],
    /// Rows of a resize.
    rows: u64,
    rows_of_blur: u64,
}

impl CanvasNeeds {
    /// Pixels in `u8`, as decoded or resized.
    pub(crate) fn begin(size: (u32, u32), placement: Placement) -> Self {
        Self {
            size,
            placement,
            floats: false,
            rgb: [area(size) * RGB8, 0],
            f32s: [0, 0],
            first: [true, true],
            rows: 0,
            rows_of_blur: 0,
        }
    }

    pub(crate) fn is_floats(&self) -> bool {
        self.floats
    }

    /// All buffers together.
    pub(crate) fn bytes(&self) -> u64 {
        let all = [
            self.rgb[0],
            self.rgb[1],
            self.f32s[0],
            self.f32s[1],
            self.rows,
            self.rows_of_blur,
        ];
        all.into_iter().fold(0, u64::saturating_add)
    }

    /// Bytes of the picture alone.
    pub(crate) fn picture_bytes(&self) -> u64 {
        area(self.size) * if self.floats { RGB32 } else { RGB8 }
    }

    /// Follows all steps. Without `fuses` a resize takes nothing along.
    pub(crate) fn follow_all<'a>(
        &mut self,
        mut steps: impl Iterator<Item = &'a Step> + Clone,
        fuses: bool,
    ) {
        let most = if fuses { usize::MAX } else { 1 };
        loop {
            match self.follow(steps.clone().take(most)) {
                0 => return,
                done => {
                    steps.nth(done - 1);
                }
            }
        }
    }

    /// Follows the first of `steps`, or more when a resize takes crops behind it
    /// along. How many.
    pub(crate) fn follow<'a>(&mut self, steps: impl Iterator<Item = &'a Step> + Clone) -> usize {
        let Some(step) = steps.clone().next() else {
            return 0;
        };
        match *step {
            Step::Crop(_)
            | Step::Mirror
            | Step::UpsideDown
            | Step::Turn(_)
            | Step::Resize { .. } => {
                let fold = Fold::of(steps, self.size, self.placement);
                self.placement = fold.placement;
                self.size = fold.size();
                if let Some((x, y)) = fold.reads_all() {
                    // Rows of floats are padded to four.
                    let pixel = if self.floats { 16 } else { RGB8 };
                    self.rows = self.rows.max(window_bytes(x, y, pixel));
                    self.write_other();
                }
                return fold.steps;
            }
            Step::Pad { padding: p, .. } => {
                let (w, h) = self.upright();
                let (w, h) = (w + p.left + p.right, h + p.top + p.bottom);
                let (w, h) = self.placement.output_size(w as usize, h as usize);
                self.size = (w as u32, h as u32);
                self.write_other();
            }
            Step::Rotate { size, .. } => {
                // Comes out upright.
                self.placement = Placement::default();
                self.size = (size.width, size.height);
                self.write_other();
            }
            Step::Blur { kernel, .. } => {
                // `pixels::blur::scratch_len`, whichever way the picture is turned.
                let (long, wide) = (kernel.height.max(kernel.width), self.size.0);
                let padded = RGB32 * u64::from(wide + long);
                let window = RGB32 * u64::from(wide) * u64::from(1 + long.min(self.size.1));
                let rows = 8 * u64::from(long) + padded + window;
                self.rows_of_blur = self.rows_of_blur.max(rows);
                self.write_other();
            }
            Step::Convert(..) | Step::Normalize { .. } | Step::Cast(Dtype::F16 | Dtype::F32) => {
                if !self.floats {
                    self.floats = true;
                    self.hold();
                }
            }
            Step::Cast(Dtype::U8) => {
                if self.floats {
                    self.floats = false;
                    self.hold();
                }
            }
            Step::Brightness(_)
            | Step::Contrast(_)
            | Step::Saturation(_)
            | Step::Hue(_)
            | Step::Luma
            | Step::Grayscale
            | Step::Erase { .. } => {}
        }
        1
    }

    /// Width and height of the picture as it is to be looked at.
    pub(crate) fn upright(&self) -> (u32, u32) {
        let (w, h) = (self.size.0 as usize, self.size.1 as usize);
        let (w, h) = self.placement.output_size(w, h);
        (w as u32, h as u32)
    }

    fn write_other(&mut self) {
        let first = &mut self.first[usize::from(self.floats)];
        *first = !*first;
        self.hold();
    }

    /// The buffer in use holds the picture.
    fn hold(&mut self) {
        let bytes = self.picture_bytes();
        let (of, which) = match self.floats {
            false => (&mut self.rgb, usize::from(!self.first[0])),
            true => (&mut self.f32s, usize::from(!self.first[1])),
        };
        of[which] = of[which].max(bytes);
    }
}

/// Rows between the passes of a resize, and one to read.
pub(crate) fn window_bytes(x: Axis, y: Axis, pixel: u64) -> u64 {
    let wide = u64::from(x.out_size.max(x.in_size));
    let rows = if y.is_identity() {
        1
    } else {
        y.window() as u64 + 2
    };
    rows * (wide * pixel + 64)
}

fn area((w, h): (u32, u32)) -> u64 {
    u64::from(w) * u64::from(h)
}
