//! The memory that steps on pixels take, computed from sizes alone. A worker checks it before it
//! begins a sample, and `plan` prints it.
//!
//! Follows the effects of steps (`recipe::buffer_effect`) on the buffers of `pixels/canvas` and
//! `pixels/resample`:
//!
//! - two buffers of `u8` and two of `f32`: a step that cannot work in place reads one and writes
//!   the other;
//! - rows of a blur;
//! - images that AugMix keeps and adds;
//! - lines of Pillow's blur, or planes of a JPEG, in bytes;
//! - rows and tables of a resize.
//!
//! Each buffer keeps its largest size, so a sample takes the sum of the maxima. All sums saturate,
//! because sizes come from files.

use crate::decode_plan::folded_steps::FoldedSteps;
use crate::error::{FaultKind, SampleFault};
use crate::picture::jpeg::round_trip_bytes;
use crate::recipe::PixelPlacement;
use crate::recipe::Size;
use crate::recipe::Step;
use crate::recipe::buffer_effect::{BufferEffect, CopyShape, StepScratch};
use crate::recipe::weights::AxisGeometry;

/// Bytes of a pixel.
pub(crate) const RGB8: u64 = 3;
pub(crate) const RGB32: u64 = 12;
pub(crate) const RGB64: u64 = 24;
/// Bytes of a pixel in the rows of a float resize: three channels padded to four.
const PADDED: u64 = 16;

/// A buffer, or several buffers that grow together. True in `Bytes` and `Floats` is the second
/// buffer of the type. True in the buffers of a resize means `f32` pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CanvasBuffer {
    Bytes(bool),
    Floats(bool),
    Blur,
    /// The image that AugMix keeps.
    Kept,
    Sum,
    /// Bytes beside the image: lines of Pillow's blur, planes of a JPEG.
    Spare,
    /// Rows between the two passes of a resize.
    Ring(bool),
    Line(bool),
    Across(bool),
    Down(bool),
}

impl CanvasBuffer {
    const ALL: usize = 16;
    /// The first buffers hold images; those after them belong to a resize.
    #[cfg(test)]
    const OF_PICTURES: usize = 8;

    fn index(self) -> usize {
        match self {
            Self::Bytes(other) => usize::from(other),
            Self::Floats(other) => 2 + usize::from(other),
            Self::Blur => 4,
            Self::Kept => 5,
            Self::Sum => 6,
            Self::Spare => 7,
            Self::Ring(floats) => 8 + usize::from(floats),
            Self::Line(floats) => 10 + usize::from(floats),
            Self::Across(floats) => 12 + usize::from(floats),
            Self::Down(floats) => 14 + usize::from(floats),
        }
    }
}

/// Bytes of each buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct CanvasBufferBytes([u64; CanvasBuffer::ALL]);

impl CanvasBufferBytes {
    pub(crate) fn raise(&mut self, buffer: CanvasBuffer, bytes: u64) {
        let held = &mut self.0[buffer.index()];
        *held = (*held).max(bytes);
    }

    /// Raises each buffer to at least its size in `other`.
    pub(crate) fn raise_all(&mut self, other: &Self) {
        for (held, other) in self.0.iter_mut().zip(other.0) {
            *held = (*held).max(other);
        }
    }

    /// Counts the rows and tables of a resize.
    pub(crate) fn resize(&mut self, x: AxisGeometry, y: AxisGeometry, floats: bool) {
        let window = ResizeMemory::of(x, y, if floats { PADDED } else { RGB8 });
        self.raise(CanvasBuffer::Ring(floats), window.ring);
        self.raise(CanvasBuffer::Line(floats), window.line);
        self.raise(CanvasBuffer::Across(floats), window.across);
        self.raise(CanvasBuffer::Down(floats), window.down);
    }

    /// Bytes of the larger of the two buffers of `u8`.
    pub(crate) fn of_bytes(&self) -> u64 {
        let of = |other| self.0[CanvasBuffer::Bytes(other).index()];
        of(false).max(of(true))
    }

    /// Bytes of all buffers together.
    pub(crate) fn bytes(&self) -> u64 {
        self.0.into_iter().fold(0, u64::saturating_add)
    }

    /// Bytes of the buffers that hold images, without the decoder's and a resize's.
    #[cfg(test)]
    pub(crate) fn of_pictures(&self) -> u64 {
        self.0[..CanvasBuffer::OF_PICTURES].iter().sum()
    }
}

/// Follows the steps of a sample and records the largest size of each buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CanvasMemory {
    /// Width and height of the image, as stored.
    size: (u32, u32),
    placement: PixelPlacement,
    /// The image is in `f32` now.
    floats: bool,
    buffers: CanvasBufferBytes,
    /// For `u8` and `f32`: the image is in the first of the two buffers.
    first: [bool; 2],
    /// Bytes of the first `u8` buffer that belong to the decoder.
    adopted: u64,
    /// A side of a resize that is too long for fixed-point weights: pixels before and after it.
    steep: Option<(u32, u32)>,
}

impl CanvasMemory {
    /// Begins with `u8` pixels, as decoded or resized.
    pub(crate) fn begin(size: (u32, u32), placement: PixelPlacement) -> Self {
        let mut needs = Self {
            size,
            placement,
            floats: false,
            buffers: CanvasBufferBytes::default(),
            first: [true, true],
            adopted: 0,
            steep: None,
        };
        needs.count_picture();
        needs
    }

    /// Begins with `u8` pixels in a buffer of the decoder, which counts that buffer itself.
    pub(crate) fn begin_in_decoder(size: (u32, u32), placement: PixelPlacement) -> Self {
        Self {
            adopted: area(size).saturating_mul(RGB8),
            buffers: CanvasBufferBytes::default(),
            ..Self::begin(size, placement)
        }
    }

    /// Counts a resize of `u8` pixels or of floats.
    pub(crate) fn resize(&mut self, x: AxisGeometry, y: AxisGeometry, floats: bool) {
        self.buffers.resize(x, y, floats);
        if !floats {
            self.steep = self.steep.or(too_steep(&x)).or(too_steep(&y));
        }
    }

    pub(crate) fn is_floats(&self) -> bool {
        self.floats
    }

    pub(crate) fn buffers(&self) -> &CanvasBufferBytes {
        &self.buffers
    }

    pub(crate) fn steep(&self) -> Option<(u32, u32)> {
        self.steep
    }

    /// Bytes of all buffers together.
    pub(crate) fn bytes(&self) -> u64 {
        self.buffers.bytes()
    }

    /// Bytes of the image alone.
    pub(crate) fn picture_bytes(&self) -> u64 {
        area(self.size).saturating_mul(if self.floats { RGB32 } else { RGB8 })
    }

    /// Follows all steps. Without `fuses`, each resize is followed alone.
    pub(crate) fn add_steps<'a>(
        &mut self,
        mut steps: impl Iterator<Item = &'a Step> + Clone,
        fuses: bool,
    ) {
        let most = if fuses { usize::MAX } else { 1 };
        loop {
            match self.add_next_steps(steps.clone().take(most)) {
                0 => return,
                done => {
                    steps.nth(done - 1);
                }
            }
        }
    }

    /// Follows the first step, or several if a resize absorbs the crops after it. Returns the
    /// number of steps followed.
    pub(crate) fn add_next_steps<'a>(
        &mut self,
        steps: impl Iterator<Item = &'a Step> + Clone,
    ) -> usize {
        let Some(step) = steps.clone().next() else {
            return 0;
        };
        let upright = self.upright_size();
        match step.effect(Some(upright.0 == upright.1)) {
            BufferEffect::Folds => {
                let fold = FoldedSteps::of(steps, self.size, self.placement);
                self.placement = fold.placement;
                self.size = fold.size();
                if let Some((x, y)) = fold.resize_axes() {
                    self.resize(x, y, self.floats);
                    self.count_copy();
                }
                return fold.steps;
            }
            BufferEffect::InPlace => {}
            BufferEffect::Turns(quarters) => self.placement = self.placement.turned(quarters),
            BufferEffect::Copies {
                to,
                scratch: beside,
            } => {
                self.copied(to);
                if let Some(beside) = beside {
                    let (buffer, bytes) = scratch(self.size, beside, self.placement.transpose);
                    self.buffers.raise(buffer, bytes);
                }
                self.count_copy();
            }
            BufferEffect::Converts { floats } => {
                if self.floats != floats {
                    self.floats = floats;
                    self.count_picture();
                }
            }
            BufferEffect::Keeps => {
                let pixels = area(self.size);
                self.buffers
                    .raise(CanvasBuffer::Kept, pixels.saturating_mul(RGB8));
                self.buffers
                    .raise(CanvasBuffer::Sum, pixels.saturating_mul(RGB64));
            }
            BufferEffect::Uprights => self.set_upright(),
        }
        1
    }

    /// Sets the size and orientation that a copy has.
    fn copied(&mut self, to: CopyShape) {
        match to {
            CopyShape::Same => {}
            CopyShape::Padded(padding) => {
                let p = self.placement.padding_to_stored(padding);
                self.size = (
                    self.size.0.saturating_add(p.left).saturating_add(p.right),
                    self.size.1.saturating_add(p.top).saturating_add(p.bottom),
                );
            }
            CopyShape::Upright => self.set_upright(),
            CopyShape::UprightFirst => {
                if self.placement != PixelPlacement::default() {
                    self.set_upright();
                    self.count_copy();
                }
            }
            CopyShape::Sized(size) => {
                self.placement = PixelPlacement::default();
                self.size = (size.width, size.height);
            }
        }
    }

    fn set_upright(&mut self) {
        self.size = self.upright_size();
        self.placement = PixelPlacement::default();
    }

    /// Width and height of the upright image.
    pub(crate) fn upright_size(&self) -> (u32, u32) {
        let (w, h) = (self.size.0 as usize, self.size.1 as usize);
        let (w, h) = self.placement.output_size(w, h);
        (w as u32, h as u32)
    }

    fn count_copy(&mut self) {
        let first = &mut self.first[usize::from(self.floats)];
        *first = !*first;
        self.count_picture();
    }

    /// Counts the image in the buffer in use.
    fn count_picture(&mut self) {
        let bytes = self.picture_bytes();
        let other = !self.first[usize::from(self.floats)];
        match (self.floats, other) {
            (true, _) => self.buffers.raise(CanvasBuffer::Floats(other), bytes),
            // An adopted buffer counts only if it must grow.
            (false, false) => {
                let grown = if bytes > self.adopted { bytes } else { 0 };
                self.buffers.raise(CanvasBuffer::Bytes(false), grown);
            }
            (false, true) => self.buffers.raise(CanvasBuffer::Bytes(true), bytes),
        }
    }
}

/// Bytes that a resize needs beside its pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ResizeMemory {
    /// Rows between the passes.
    ring: u64,
    /// One padded source row.
    line: u64,
    /// Weights of the two axes.
    across: u64,
    down: u64,
}

impl ResizeMemory {
    fn of(x: AxisGeometry, y: AxisGeometry, pixel: u64) -> Self {
        let wide = u64::from(x.out_size.max(x.in_size)) * pixel;
        let rows = match y.is_identity() {
            true => 0,
            false => taps(&y),
        };
        Self {
            ring: rows.saturating_mul(wide + 64),
            line: wide + taps(&x).saturating_mul(pixel) + 64,
            across: table_bytes(&x),
            down: table_bytes(&y),
        }
    }
}

/// Bytes of the rows and tables of a resize.
#[cfg(test)]
pub(crate) fn window_bytes(x: AxisGeometry, y: AxisGeometry, pixel: u64) -> u64 {
    let w = ResizeMemory::of(x, y, pixel);
    w.ring + w.line + w.across + w.down
}

/// The largest number of weights of an output pixel, rounded up to an even number.
fn taps(axis: &AxisGeometry) -> u64 {
    let most = (axis.window() as u64).min(u64::from(axis.in_size));
    most.next_multiple_of(2).max(2)
}

/// Bytes of the weights of an axis, in every form that a resize of either type keeps: whole windows
/// in `f64`, and in fixed point or `f32`; the order of the SIMD paths, in two parts; the start and
/// length of each window. A worker may keep the tables of several filters, so all count as much as
/// those with the most bits.
fn table_bytes(axis: &AxisGeometry) -> u64 {
    if axis.is_identity() {
        return 0;
    }
    let (window, taps) = (axis.window() as u64, taps(axis));
    let pixel = (window.saturating_mul(12)).saturating_add(taps.saturating_mul(20) + 40);
    let padded = u64::from(axis.out_size).next_multiple_of(8);
    // The last terms: a window of `f64` for the computation, and the offsets of the rows of the
    // pass down.
    padded
        .saturating_mul(pixel)
        .saturating_add(window.saturating_mul(8))
        .saturating_add(taps.saturating_mul(8) + 64)
}

/// The largest number of weights of a pixel. With more, rounding to 16 bits could overflow the
/// largest weight. Filters with more bits have the same limit.
const MOST_TAPS: u64 = 8_190;

/// The source and target length of an axis with too many weights for fixed point.
fn too_steep(axis: &AxisGeometry) -> Option<(u32, u32)> {
    let sums = !axis.is_identity() && !axis.filter.copies();
    (sums && taps(axis) > MOST_TAPS).then_some((axis.in_size, axis.full_size))
}

/// Rejects a resize whose weights do not fit in fixed point.
///
/// # Errors
/// An image whose side is reduced too much by one resize.
pub(crate) fn check_reduction(steep: Option<(u32, u32)>) -> Result<(), SampleFault> {
    let Some((from, to)) = steep else {
        return Ok(());
    };
    Err(FaultKind::TooLarge.fault(format!(
        "a side of {from} pixels is resized to {to}, so each pixel is a mean of more \
             than {MOST_TAPS}: crop it first, resize with nearest, cast to float32 before the \
             resize, or remove the image"
    )))
}

/// Floats that a blur needs beside an image of this stored width and height. `kernel` is in stored
/// orientation.
pub(crate) fn blur_floats((width, height): (u32, u32), kernel: Size) -> u64 {
    let (rx, ry) = (u64::from(kernel.width / 2), u64::from(kernel.height / 2));
    let rows = u64::from(height).min(2 * ry + 1);
    let wide = u64::from(width);
    let padded = 3 * (wide + 2 * rx);
    (rx + ry + 2 + padded).saturating_add((3 * wide).saturating_mul(1 + rows))
}

/// Radii, in pixels, of the blur of an elastic transform's noise, along the width and the height. A
/// radius is four deviations, as in torchvision.
pub(crate) fn elastic_radii(sigma: [f64; 2]) -> [u32; 2] {
    // Half of the kernel, rounded down. torchvision makes an even kernel one larger, which does not
    // change that.
    sigma.map(|sigma| ((8.0 * sigma + 1.0) as u32) / 2)
}

/// Floats that an elastic transform needs beside an upright image of this width and height: for
/// each axis, those of a blur of one channel.
pub(crate) fn elastic_floats((width, height): (u32, u32), sigma: [f64; 2]) -> u64 {
    let (width, height) = (u64::from(width), u64::from(height));
    let of_axis = |radius: u32| {
        let radius = u64::from(radius);
        let rows = height.min(2 * radius + 1);
        (4 * radius + 2 + width).saturating_add(width.saturating_mul(1 + rows))
    };
    let [x, y] = elastic_radii(sigma).map(of_axis);
    x.saturating_add(y)
}

/// Columns of pixels that Pillow's blur makes at a time.
pub(crate) const BLURRED_COLUMNS: usize = 16;

/// Bytes that Pillow's blur needs beside an upright image of this width and height: two buffers of
/// one row, or of several columns.
pub(crate) fn box_blur_bytes((width, height): (u32, u32)) -> u64 {
    let columns = BLURRED_COLUMNS as u64 * u64::from(height);
    2 * RGB8 * columns.max(u64::from(width))
}

/// The memory that a step needs beside an image of this stored width and height. `transposed`:
/// stored rows are columns of the upright image.
pub(crate) fn scratch(
    stored: (u32, u32),
    beside: StepScratch,
    transposed: bool,
) -> (CanvasBuffer, u64) {
    let floats = |floats: u64| (CanvasBuffer::Blur, floats.saturating_mul(4));
    match beside {
        // The kernel is given for the upright image.
        StepScratch::Blur(kernel) if transposed => {
            let Size { height, width } = kernel;
            floats(blur_floats(stored, (width, height).into()))
        }
        StepScratch::Blur(kernel) => floats(blur_floats(stored, kernel)),
        StepScratch::Elastic(sigma) => floats(elastic_floats(stored, sigma)),
        StepScratch::BoxBlurs => (CanvasBuffer::Spare, box_blur_bytes(stored)),
        StepScratch::Jpeg => (CanvasBuffer::Spare, round_trip_bytes(stored)),
    }
}

fn area((w, h): (u32, u32)) -> u64 {
    u64::from(w) * u64::from(h)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::{DataType, Padding, PaddingMode};

    #[test]
    fn sizes_that_overflow_are_a_lot_and_no_panic() {
        let mut needs = CanvasMemory::begin((65_535, u32::MAX), PixelPlacement::default());
        let pad = Step::Pad {
            padding: Padding::from(u32::MAX),
            mode: PaddingMode::Constant,
            fill: [0.0; 3],
        };
        let blur = Step::Blur {
            kernel: Size::from(u32::MAX),
            sigma: 1.0,
        };
        needs.add_steps([pad, Step::Cast(DataType::F32), blur].iter(), true);
        assert_eq!(needs.bytes(), u64::MAX);
    }
}
