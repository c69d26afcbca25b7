//! The weights of a separable resize, one table per axis. They are computed only here. The CPU
//! resampler, its reference and the CUDA kernels all read this table. `fixed_weights` rounds them.
//!
//! Built in the worker (CPU) or in the consumer (uploaded to the GPU). Pure: no I/O, no pixels, no
//! `unsafe`. A table allocates only when an axis is larger than all axes before.
//!
//! # Formula
//!
//! As in Pillow (`precompute_coeffs` in `src/libImaging/Resample.c`), in `f64`.
//! For output pixel `o` of `out_size` over the input interval `in0..in1`:
//!
//! ```text
//! scale   = (in1 - in0) / out_size
//! stretch = antialias ? max(scale, 1) : 1
//! center  = in0 + (o + 0.5) * scale
//! first   = max(trunc(center - support * stretch + 0.5), 0)
//! end     = min(trunc(center + support * stretch + 0.5), in_size)
//! w(i)    = filter((i - center + 0.5) / stretch)    for i in first..end
//! weight  = w(i) / sum of w
//! ```
//!
//! The interval may begin and end between pixels: the weights include the fraction. The filter
//! reads pixels outside the interval, up to the edge of the image. To prevent that, pass the crop
//! as the image. One difference from Pillow: its interval is `f32`, ours is `f64`.
//!
//! Three filters have rules of their own. [`ResizeFilter::Nearest`] and [`ResizeFilter::Area`] use
//! bounds instead of a kernel and never read outside the interval. [`ResizeFilter::SharpCubic`]
//! repeats the edge pixel outside the image. The bounds are `in0 + n * (in1 - in0) / out_size`. The
//! product is computed first, so that whole numbers stay exact.

use super::values::{InterpolationMode, LabelFilter, LibraryFilter};

/// The shape of the filter. Most have a kernel of width 2 x [`support`](Self::support).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ResizeFilter {
    /// One pixel: the one whose area contains the centre of the output pixel. On the border of two
    /// pixels, the second.
    Nearest,
    /// One pixel by the rule of a library, for labels. The interval must have whole numbers.
    Labels(LabelFilter),
    /// The same for an axis that is mirrored before the resize, while its pixels lie as stored.
    MirroredLabels(LabelFilter),
    /// The mean over the area of the output pixel. Pixels at both ends count with the share inside.
    Area,
    /// A triangle. Commonly called bilinear.
    Triangle,
    /// Cubic convolution with a = -0.5 (Catmull-Rom), called bicubic by Pillow.
    Cubic,
    /// Cubic convolution with a = -0.75, called bicubic by PyTorch and OpenCV. It repeats the edge
    /// pixel outside the image. The other filters omit pixels outside.
    SharpCubic,
    /// Sinc windowed by a sinc, three lobes.
    Lanczos3,
    /// One of the others, with the rounding and the order of passes of Pillow 13.
    Pillow(LibraryFilter),
    /// The same of torchvision's resize of tensors of bytes.
    Torchvision(LibraryFilter),
}

impl ResizeFilter {
    /// The filter for a recipe's interpolation, and whether it widens when shrinking.
    pub(crate) fn of(interpolation: InterpolationMode, antialias: bool) -> (Self, bool) {
        match (interpolation, antialias) {
            (InterpolationMode::Nearest, _) => (Self::Nearest, false),
            (InterpolationMode::Labels(filter), _) => (Self::Labels(filter), false),
            (InterpolationMode::Area, _) => (Self::Area, false),
            (InterpolationMode::Bilinear, _) => (Self::Triangle, antialias),
            (InterpolationMode::Bicubic, true) => (Self::Cubic, true),
            (InterpolationMode::Bicubic, false) => (Self::SharpCubic, false),
            (InterpolationMode::Lanczos, _) => (Self::Lanczos3, antialias),
            // Libraries have no rule of their own without antialias.
            (InterpolationMode::Pillow(filter), true) => (Self::Pillow(filter), true),
            (InterpolationMode::Torchvision(filter), true) => (Self::Torchvision(filter), true),
            (InterpolationMode::Pillow(filter) | InterpolationMode::Torchvision(filter), false) => {
                Self::of(filter.interpolation(), false)
            }
        }
    }

    /// The filter for an axis whose pixels are mirrored before the resize. Only filters of labels
    /// have another one: their rules are those of libraries, and count from one end.
    pub(crate) fn mirrored(self) -> Self {
        match self {
            Self::Labels(filter) => Self::MirroredLabels(filter),
            other => other,
        }
    }

    /// Half the width of the kernel at scale 1, in input pixels.
    pub fn support(self) -> f64 {
        match self {
            Self::Nearest | Self::Labels(_) | Self::MirroredLabels(_) | Self::Area => 0.5,
            Self::Triangle => 1.0,
            Self::Cubic | Self::SharpCubic => 2.0,
            Self::Lanczos3 => 3.0,
            Self::Pillow(filter) | Self::Torchvision(filter) => filter.kernel().support(),
        }
    }

    /// True for filters that read no pixel outside the interval, except the rest of a pixel that
    /// lies partly in it.
    fn stays_inside(self) -> bool {
        self.copies() || self == Self::Area
    }

    /// True for filters whose output pixels are copies of input pixels.
    pub(crate) fn copies(self) -> bool {
        matches!(
            self,
            Self::Nearest | Self::Labels(_) | Self::MirroredLabels(_)
        )
    }

    /// The filter whose shape it has.
    fn kernel(self) -> Self {
        match self {
            Self::Pillow(filter) | Self::Torchvision(filter) => filter.kernel(),
            other => other,
        }
    }

    /// True for filters with negative weights.
    pub(crate) fn overshoots(self) -> bool {
        let kernel = self.kernel();
        matches!(kernel, Self::Cubic | Self::SharpCubic | Self::Lanczos3)
    }

    /// The kernel before normalisation. Zero outside the support.
    #[inline(always)]
    fn at(self, x: f64) -> f64 {
        match self {
            // Both have separate rules.
            Self::Nearest | Self::Labels(_) | Self::MirroredLabels(_) | Self::Area => 0.0,
            Self::Pillow(filter) | Self::Torchvision(filter) => filter.kernel().at(x),
            Self::Triangle => {
                let x = x.abs();
                if x < 1.0 { 1.0 - x } else { 0.0 }
            }
            Self::Cubic => cubic(-0.5, x.abs()),
            Self::SharpCubic => cubic(-0.75, x.abs()),
            Self::Lanczos3 => {
                if (-3.0..3.0).contains(&x) {
                    sinc(x) * sinc(x / 3.0)
                } else {
                    0.0
                }
            }
        }
    }
}

impl LibraryFilter {
    /// The shape of the filter.
    fn kernel(self) -> ResizeFilter {
        match self {
            Self::Bilinear => ResizeFilter::Triangle,
            Self::Bicubic => ResizeFilter::Cubic,
            Self::Lanczos => ResizeFilter::Lanczos3,
        }
    }
}

/// Keys' cubic convolution.
fn cubic(a: f64, x: f64) -> f64 {
    if x < 1.0 {
        ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0
    } else if x < 2.0 {
        (((x - 5.0) * x + 8.0) * x - 4.0) * a
    } else {
        0.0
    }
}

// libm, not std: std's sine may differ between C libraries.
fn sinc(x: f64) -> f64 {
    if x == 0.0 {
        return 1.0;
    }
    let x = x * std::f64::consts::PI;
    libm::sin(x) / x
}

/// The geometry of one axis of a resize. Its weights depend on nothing else.
///
/// The output may be a part of the whole output, and the input a part of the image's pixels. The
/// weights equal those of the whole resize bit by bit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AxisGeometry {
    /// Pixels of the whole image.
    pub in_size: u32,
    /// Start of the interval, `0 <= in0 < in1`.
    pub in0: f64,
    /// End of the interval, `in1 <= in_size`.
    pub in1: f64,
    /// Pixels of the image before the first one in memory.
    pub origin: u32,
    /// Output pixels for the whole interval.
    pub full_size: u32,
    /// The first output pixel that is computed.
    pub first: u32,
    /// Number of output pixels that are computed, `first + out_size <= full_size`.
    pub out_size: u32,
    pub filter: ResizeFilter,
    /// The axis lies along the columns of the upright image, which may be stored on its side.
    /// Passes have the order of the upright image.
    pub is_down: bool,
    /// Widens the filter when shrinking. False: plain bilinear or bicubic, which skips pixels. No
    /// effect on nearest and area.
    pub antialias: bool,
}

impl AxisGeometry {
    /// True if every output pixel is one input pixel, so a pass over this axis is a copy.
    pub fn is_identity(&self) -> bool {
        self.in0 == f64::from(self.in0 as u32) && self.in1 - self.in0 == f64::from(self.full_size)
    }

    /// The first pixel that is copied, if [`AxisGeometry::is_identity`].
    pub fn copies_from(&self) -> usize {
        (self.in0 as usize + self.first as usize).saturating_sub(self.origin as usize)
    }

    /// The pixels of the image that the computed output pixels may read.
    pub fn reads(&self) -> std::ops::Range<u32> {
        let (low, high) = (f64::from(self.first), f64::from(self.first + self.out_size));
        let reach = match self.is_identity() {
            true => 0.0,
            false if self.filter.stays_inside() => 1.0,
            // One pixel more than the support, since sums of halves are rounded.
            false => self.filter.support() * self.stretch() + 1.0,
        };
        let first = (self.in0 + low * self.scale() - reach).floor().max(0.0) as u32;
        let end = (self.in0 + high * self.scale() + reach).ceil() as u32;
        let first = first.min(self.in_size - 1);
        first..end.clamp(first + 1, self.in_size)
    }

    fn stretch(&self) -> f64 {
        match self.filter {
            filter if filter.copies() => 1.0,
            ResizeFilter::Area => self.scale().max(1.0),
            _ if self.antialias => self.scale().max(1.0),
            _ => 1.0,
        }
    }

    /// True for a reduction whose output pixels use all their input pixels, not only a few.
    pub(crate) fn gathers(&self) -> bool {
        match self.filter {
            filter if filter.copies() => false,
            ResizeFilter::Area => true,
            _ => self.antialias,
        }
    }

    /// The start of output pixel `n` of the whole, in image pixels. The product comes first, so
    /// that whole intervals stay exact.
    fn bound(&self, n: f64) -> f64 {
        self.in0 + n * (self.in1 - self.in0) / f64::from(self.full_size)
    }

    /// The pixel at the same distance from the other end of the interval, whose ends are whole
    /// numbers.
    fn mirrored(&self, pixel: u32) -> u32 {
        (self.in0 + self.in1) as u32 - 1 - pixel
    }

    /// Input pixels per output pixel.
    pub fn scale(&self) -> f64 {
        (self.in1 - self.in0) / f64::from(self.full_size)
    }

    /// The maximum number of weights of an output pixel. GPU buffers and memory bounds use it.
    pub fn window(&self) -> usize {
        if self.filter.copies() {
            return 1;
        }
        (self.filter.support() * self.stretch()).ceil() as usize * 2 + 1
    }

    fn check(&self) {
        assert!(
            self.in_size >= 1 && self.out_size >= 1,
            "an axis of {} to {} pixels",
            self.in_size,
            self.out_size
        );
        assert!(
            self.first + self.out_size <= self.full_size,
            "{} pixels from {} on of {}",
            self.out_size,
            self.first,
            self.full_size
        );
        assert!(
            self.in0 >= 0.0 && self.in0 < self.in1 && self.in1 <= f64::from(self.in_size),
            "the interval {}..{} does not lie in 0..{}",
            self.in0,
            self.in1,
            self.in_size
        );
    }
}

/// The weights of one axis in `f64`. Reused between calls.
#[derive(Debug, Default, Clone)]
pub struct WeightTable {
    axis: Option<AxisGeometry>,
    window: usize,
    starts: Vec<u32>,
    sizes: Vec<u32>,
    weights: Vec<f64>,
    spare: Vec<f64>,
}

impl WeightTable {
    /// Computes the weights of `axis`, unless the table has them already. Returns true if it
    /// computed them.
    pub fn prepare(&mut self, axis: AxisGeometry) -> bool {
        if self.axis == Some(axis) {
            return false;
        }
        axis.check();
        self.axis = None;
        self.window = axis.window();
        clear_with_capacity(&mut self.starts, axis.out_size as usize);
        clear_with_capacity(&mut self.sizes, axis.out_size as usize);
        clear_with_capacity(&mut self.weights, axis.out_size as usize * self.window);
        self.weights
            .resize(axis.out_size as usize * self.window, 0.0);
        let kernel = AxisKernel::of(&axis);
        for (o, row) in (axis.first..).zip(self.weights.chunks_exact_mut(self.window)) {
            let (start, size) = weigh(&axis, &kernel, o, row);
            assert!(
                start >= axis.origin,
                "pixel {start} is not at hand, {} is the first",
                axis.origin
            );
            self.starts.push(start - axis.origin);
            self.sizes.push(size as u32);
        }
        let pillow = LabelFilter::Pillow;
        let is_mirrored = axis.filter == ResizeFilter::MirroredLabels(pillow);
        if (is_mirrored || axis.filter == ResizeFilter::Labels(pillow)) && !axis.is_identity() {
            self.start_as_pillow(&axis, is_mirrored);
        }
        self.axis = Some(axis);
        true
    }

    /// The pixels that Pillow's `NEAREST` takes. `ImagingScaleAffine` adds the scale for each pixel,
    /// and a product would round otherwise.
    fn start_as_pillow(&mut self, axis: &AxisGeometry, is_mirrored: bool) {
        let length = axis.in1 - axis.in0;
        let scale = length / f64::from(axis.full_size);
        let first = match is_mirrored {
            true => axis.full_size - axis.first - axis.out_size,
            false => axis.first,
        };
        let mut at = (0..first).fold(scale * 0.5, |at, _| at + scale);
        for start in &mut self.starts {
            let pixel = (axis.in0 + at.floor().min(length - 1.0)) as u32;
            let pixel = match is_mirrored {
                true => axis.mirrored(pixel),
                false => pixel,
            };
            *start = pixel - axis.origin;
            at += scale;
        }
        if is_mirrored {
            self.starts.reverse();
        }
    }

    /// The axis of the weights.
    pub(super) fn axis(&self) -> Option<&AxisGeometry> {
        self.axis.as_ref()
    }

    /// The maximum number of weights of an output pixel.
    pub(super) fn window(&self) -> usize {
        self.window
    }

    /// Number of output pixels.
    pub(super) fn outputs(&self) -> usize {
        self.starts.len()
    }

    /// The largest weight of the whole resize. The precision of coefficients depends on it:
    /// otherwise a part would have other coefficients than the whole.
    pub(super) fn largest(&mut self) -> f64 {
        let Some(axis) = self.axis else {
            return 0.0;
        };
        let rows = self.weights.chunks_exact(self.window).zip(&self.sizes);
        let here = rows.fold(0.0, |most, (row, size)| {
            largest(most, &row[..*size as usize])
        });
        here.max(self.largest_elsewhere(&axis))
    }

    fn largest_elsewhere(&mut self, axis: &AxisGeometry) -> f64 {
        let wanted = axis.first..axis.first + axis.out_size;
        let weighs_all = matches!(axis.filter, ResizeFilter::Torchvision(_));
        if axis.full_size > MOST_WEIGHED && !weighs_all {
            return LARGEST;
        }
        if wanted == (0..axis.full_size) {
            return 0.0;
        }
        let mut row = std::mem::take(&mut self.spare);
        let kernel = AxisKernel::of(axis);
        let mut found = 0.0;
        for o in (0..wanted.start).chain(wanted.end..axis.full_size) {
            clear_with_capacity(&mut row, self.window);
            row.resize(self.window, 0.0);
            let (_, size) = weigh(axis, &kernel, o, &mut row);
            found = largest(found, &row[..size]);
        }
        self.spare = row;
        found
    }

    /// Allocated bytes.
    pub(crate) fn bytes(&self) -> usize {
        (self.starts.capacity() + self.sizes.capacity()) * size_of::<u32>()
            + (self.weights.capacity() + self.spare.capacity()) * size_of::<f64>()
    }

    /// First input pixel and weights of output pixel `o`.
    pub fn row(&self, o: usize) -> (usize, &[f64]) {
        let at = o * self.window;
        (
            self.starts[o] as usize,
            &self.weights[at..at + self.sizes[o] as usize],
        )
    }
}

/// Empties `v` and reserves exactly `len`, since the memory plan includes the tables.
pub(crate) fn clear_with_capacity<T>(v: &mut Vec<T>, len: usize) {
    v.clear();
    if v.capacity() < len {
        // Both blocks at once would leave a hole in the heap.
        *v = Vec::new();
        v.reserve_exact(len);
    }
}

/// Up to this number of output pixels, all are weighed to find the largest weight. Longer axes, of
/// very thin images, use [`LARGEST`]. torchvision weighs all, so its filters do, too.
const MOST_WEIGHED: u32 = 4096;
/// An upper bound of every weight of any filter, edges included.
const LARGEST: f64 = 1.5;

fn largest(than: f64, weights: &[f64]) -> f64 {
    weights.iter().fold(than, |m, w| m.max(w.abs()))
}

/// Values shared by all output pixels of an axis.
struct AxisKernel {
    scale: f64,
    /// Half the width, input pixels.
    support: f64,
    squeeze: f64,
}

impl AxisKernel {
    fn of(axis: &AxisGeometry) -> Self {
        let stretch = axis.stretch();
        Self {
            scale: axis.scale(),
            support: axis.filter.support() * stretch,
            squeeze: 1.0 / stretch,
        }
    }

    /// The centre of output pixel `o` of the whole, in image pixels.
    fn center(&self, axis: &AxisGeometry, o: f64) -> f64 {
        axis.in0 + (o + 0.5) * self.scale
    }
}

/// Writes the weights of output pixel `o` of the whole to `row`, which must be zero and hold a
/// window. Returns the first image pixel and the number of pixels.
fn weigh(axis: &AxisGeometry, kernel: &AxisKernel, o: u32, row: &mut [f64]) -> (u32, usize) {
    let o = f64::from(o);
    let (start, size) = match axis.filter {
        // Every kernel is 0 at the other pixels, which need not be in memory.
        _ if axis.is_identity() => nearest(axis, o, row),
        ResizeFilter::Nearest => nearest(axis, o, row),
        ResizeFilter::Labels(filter) => label_pixel(axis, filter, o, row),
        ResizeFilter::MirroredLabels(filter) => {
            let last = f64::from(axis.full_size - 1);
            let (pixel, size) = label_pixel(axis, filter, last - o, row);
            (axis.mirrored(pixel), size)
        }
        ResizeFilter::Area => area(axis, o, row),
        // The most common filter, without a match for each weight.
        ResizeFilter::Triangle => by_kernel(axis, kernel, o, row, |x| ResizeFilter::Triangle.at(x)),
        ResizeFilter::SharpCubic => with_edges(axis, kernel, o, row),
        filter => {
            let shape = filter.kernel();
            by_kernel(axis, kernel, o, row, |x| shape.at(x))
        }
    };
    let row = &mut row[..size];
    let sum: f64 = row.iter().sum();
    if sum != 0.0 {
        for w in row {
            *w /= sum;
        }
    }
    (start, size)
}

/// Like [`weigh`], without normalisation to a sum of 1.
fn by_kernel(
    axis: &AxisGeometry,
    kernel: &AxisKernel,
    o: f64,
    row: &mut [f64],
    at: impl Fn(f64) -> f64,
) -> (u32, usize) {
    let AxisKernel {
        support, squeeze, ..
    } = *kernel;
    let center = kernel.center(axis, o);
    // Casts truncate and clamp below 0. Pillow does both explicitly.
    let start = (center - support + 0.5) as u32;
    let end = ((center + support + 0.5) as u32).min(axis.in_size);
    let size = (end.saturating_sub(start) as usize).min(row.len());
    for (i, w) in (start..).zip(&mut row[..size]) {
        *w = at((f64::from(i) - center + 0.5) * squeeze);
    }
    (start, size)
}

/// Like [`by_kernel`], but the weights of pixels outside the image are added to the edge pixel.
fn with_edges(axis: &AxisGeometry, kernel: &AxisKernel, o: f64, row: &mut [f64]) -> (u32, usize) {
    let AxisKernel {
        support, squeeze, ..
    } = *kernel;
    let center = kernel.center(axis, o);
    let first = (center - support + 0.5).floor() as i64;
    let end = ((center + support + 0.5).floor() as i64).min(first + row.len() as i64);
    let last = i64::from(axis.in_size) - 1;
    let start = first.clamp(0, last);
    let size = (end - 1).clamp(start, last) - start + 1;
    for i in first..end {
        row[(i.clamp(start, last) - start) as usize] +=
            axis.filter.at((i as f64 - center + 0.5) * squeeze);
    }
    (start as u32, size as usize)
}

/// See [`ResizeFilter::Nearest`].
fn nearest(axis: &AxisGeometry, o: f64, row: &mut [f64]) -> (u32, usize) {
    row[0] = 1.0;
    ((axis.bound(o + 0.5) as u32).min(axis.in_size - 1), 1)
}

/// See [`ResizeFilter::Labels`] and [`LabelFilter`].
fn label_pixel(axis: &AxisGeometry, filter: LabelFilter, o: f64, row: &mut [f64]) -> (u32, usize) {
    row[0] = 1.0;
    let length = axis.in1 - axis.in0;
    let scale = length as f32 / axis.full_size as f32;
    let at = match filter {
        LabelFilter::Floor => f64::from(o as f32 * scale),
        LabelFilter::Center => f64::from((o as f32 + 0.5) * scale),
        // `WeightTable::start_as_pillow` replaces this.
        LabelFilter::Pillow => (o + 0.5) * length / f64::from(axis.full_size),
    };
    ((axis.in0 + at.floor().min(length - 1.0)) as u32, 1)
}

/// See [`ResizeFilter::Area`].
fn area(axis: &AxisGeometry, o: f64, row: &mut [f64]) -> (u32, usize) {
    let (low, high) = (axis.bound(o), axis.bound(o + 1.0));
    let start = (low as u32).min(axis.in_size - 1);
    let end = (high.ceil() as u32).clamp(start + 1, axis.in_size);
    let size = ((end - start) as usize).min(row.len());
    for (i, w) in (start..).zip(&mut row[..size]) {
        let i = f64::from(i);
        *w = (high.min(i + 1.0) - low.max(i)).max(0.0);
    }
    (start, size)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILTERS: [ResizeFilter; 9] = [
        ResizeFilter::Nearest,
        ResizeFilter::Area,
        ResizeFilter::Triangle,
        ResizeFilter::Cubic,
        ResizeFilter::SharpCubic,
        ResizeFilter::Lanczos3,
        ResizeFilter::Pillow(LibraryFilter::Lanczos),
        ResizeFilter::Torchvision(LibraryFilter::Bilinear),
        ResizeFilter::Torchvision(LibraryFilter::Bicubic),
    ];

    fn axis(in_size: u32, in0: f64, in1: f64, out_size: u32, filter: ResizeFilter) -> AxisGeometry {
        AxisGeometry {
            in_size,
            in0,
            in1,
            origin: 0,
            full_size: out_size,
            first: 0,
            out_size,
            filter,
            is_down: false,
            antialias: true,
        }
    }

    fn table(axis: AxisGeometry) -> WeightTable {
        let mut t = WeightTable::default();
        assert!(t.prepare(axis));
        t
    }

    #[test]
    fn halving_with_a_triangle_gives_the_textbook_weights() {
        let t = table(axis(8, 0.0, 8.0, 4, ResizeFilter::Triangle));
        assert_eq!(t.window, 5);
        let (start, w) = t.row(1);
        assert_eq!((start, w), (1, &[0.125, 0.375, 0.375, 0.125][..]));
        // At the edge, pixels outside are omitted and the rest is normalised.
        let (start, w) = t.row(0);
        assert_eq!((start, w), (0, &[3.0 / 7.0, 3.0 / 7.0, 1.0 / 7.0][..]));
    }

    #[test]
    fn without_antialias_two_pixels_are_mixed() {
        let t = table(AxisGeometry {
            antialias: false,
            ..axis(100, 0.0, 100.0, 10, ResizeFilter::Triangle)
        });
        // Centre at 15 = between pixels 14 and 15.
        assert_eq!(t.row(1), (14, &[0.5, 0.5][..]));
    }

    #[test]
    fn the_fraction_of_the_box_lives_in_the_weights() {
        let t = table(axis(10, 2.25, 6.25, 4, ResizeFilter::Triangle));
        assert_eq!(t.row(0), (2, &[0.75, 0.25][..]));
    }

    /// Labels of a mirrored picture are those of the picture that was mirrored in memory.
    #[test]
    fn mirrored_labels_count_from_the_other_end() {
        for filter in [LabelFilter::Floor, LabelFilter::Center, LabelFilter::Pillow] {
            for (in0, length, full) in [(0, 7, 3), (2, 48, 7), (0, 31, 200), (5, 97, 33)] {
                let (from, to) = (f64::from(in0), f64::from(in0 + length));
                let of = |filter| axis(in0 + length, from, to, full, filter);
                let plain = table(of(ResizeFilter::Labels(filter)));
                for (first, out_size) in [(0, full), (1, full - 1), (0, full - 2)] {
                    let mirrored = table(AxisGeometry {
                        first,
                        out_size,
                        ..of(ResizeFilter::Labels(filter).mirrored())
                    });
                    for o in 0..out_size {
                        let (at, weights) = mirrored.row(o as usize);
                        let (want, _) = plain.row((full - 1 - first - o) as usize);
                        assert_eq!(at, (2 * in0 + length) as usize - 1 - want);
                        assert_eq!(weights, [1.0]);
                    }
                    let reads = mirrored.axis.map(|axis| axis.reads());
                    let reads = reads.unwrap();
                    for o in 0..out_size as usize {
                        assert!(reads.contains(&(mirrored.row(o).0 as u32)));
                    }
                }
            }
        }
    }

    /// A part of the output, from a part of the input, has the weights of the whole bit by bit.
    #[test]
    fn a_part_has_the_weights_of_the_whole() {
        for filter in FILTERS {
            for (n, in0, in1, full) in [
                (500, 0.0, 500.0, 256),
                (37, 0.0, 37.0, 100),
                (333, 3.25, 330.5, 64),
                (90, 0.0, 90.0, 90),
                (2000, 0.0, 2000.0, 40),
                (64, 21.5, 23.75, 200),
            ] {
                for antialias in [true, false] {
                    let whole = AxisGeometry {
                        antialias,
                        ..axis(n, in0, in1, full, filter)
                    };
                    for (first, out_size) in [(0, 1), (7, 20), (full - 5, 5), (0, full)] {
                        let part = AxisGeometry {
                            first,
                            out_size,
                            ..whole
                        };
                        let reads = part.reads();
                        let origin = reads.start;
                        let (all, some) = (table(whole), table(AxisGeometry { origin, ..part }));
                        for o in 0..out_size as usize {
                            let (from, weights) = all.row(o + first as usize);
                            assert_eq!(some.row(o), (from - origin as usize, weights));
                            assert!(from + weights.len() <= reads.end as usize, "{part:?}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn nearest_takes_the_pixel_that_holds_the_centre() {
        let picks = |n, in0, in1, out| {
            let t = table(axis(n, in0, in1, out, ResizeFilter::Nearest));
            (0..out as usize)
                .map(|o| {
                    assert_eq!(t.row(o).1, [1.0]);
                    t.row(o).0
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(picks(3, 0.0, 3.0, 7), [0, 0, 1, 1, 1, 2, 2]);
        assert_eq!(picks(10, 0.0, 10.0, 3), [1, 5, 8]);
        // Centres on the border of two pixels: the second.
        assert_eq!(picks(8, 0.0, 8.0, 4), [1, 3, 5, 7]);
        // 2/3 is not exact in f64, but 1.5 * 2/3 is 1.
        assert_eq!(picks(2, 0.0, 2.0, 3), [0, 1, 1]);
        assert_eq!(picks(10, 2.75, 3.25, 2), [2, 3]);
    }

    #[test]
    fn area_counts_what_of_a_pixel_lies_in_the_output_pixel() {
        let t = table(axis(5, 0.0, 5.0, 2, ResizeFilter::Area));
        assert_eq!(t.row(0), (0, &[0.4, 0.4, 0.2][..]));
        assert_eq!(t.row(1), (2, &[0.2, 0.4, 0.4][..]));
        // Enlarging: mixed only where a border crosses the output pixel.
        let t = table(axis(2, 0.0, 2.0, 3, ResizeFilter::Area));
        assert_eq!(t.row(0), (0, &[1.0][..]));
        assert_eq!(t.row(1).0, 0);
        assert!(t.row(1).1.iter().all(|w| (w - 0.5).abs() < 1e-15));
        assert_eq!(t.row(2), (1, &[1.0][..]));
    }

    #[test]
    fn the_sharp_cubic_sees_the_edge_go_on() {
        let t = table(AxisGeometry {
            antialias: false,
            ..axis(4, 0.0, 4.0, 8, ResizeFilter::SharpCubic)
        });
        // Centre 0.25: pixels -2 to 1 at distances 1.75, 0.75, 0.25, 1.25.
        let w = |x| ResizeFilter::SharpCubic.at(x);
        let (start, weights) = t.row(0);
        assert_eq!(start, 0);
        let expected = [w(1.75) + w(0.75) + w(0.25), w(1.25)];
        assert_eq!(weights.len(), 2);
        for (a, b) in weights.iter().zip(expected) {
            assert!((a - b).abs() < 1e-15, "{weights:?}");
        }
        assert_eq!(t.row(4).1.len(), 4);
    }

    #[test]
    fn every_word_of_a_recipe_has_its_filter() {
        let of = |i| (ResizeFilter::of(i, true), ResizeFilter::of(i, false));
        let same = |f| ((f, false), (f, false));
        assert_eq!(of(InterpolationMode::Nearest), same(ResizeFilter::Nearest));
        assert_eq!(of(InterpolationMode::Area), same(ResizeFilter::Area));
        let both = |f, g| ((f, true), (g, false));
        assert_eq!(
            of(InterpolationMode::Bilinear),
            both(ResizeFilter::Triangle, ResizeFilter::Triangle)
        );
        assert_eq!(
            of(InterpolationMode::Bicubic),
            both(ResizeFilter::Cubic, ResizeFilter::SharpCubic)
        );
        assert_eq!(
            of(InterpolationMode::Lanczos),
            both(ResizeFilter::Lanczos3, ResizeFilter::Lanczos3)
        );
        // The rules of libraries, which need antialias.
        let bicubic = InterpolationMode::Bicubic;
        let of_pillow = ResizeFilter::Pillow(LibraryFilter::Bicubic);
        assert_eq!(
            of(bicubic.of_pillow()),
            both(of_pillow, ResizeFilter::SharpCubic)
        );
        let of_torchvision = ResizeFilter::Torchvision(LibraryFilter::Bicubic);
        let tensor = bicubic.of_torchvision();
        assert_eq!(of(tensor), both(of_torchvision, ResizeFilter::SharpCubic));
        assert_eq!(InterpolationMode::Area.of_pillow(), InterpolationMode::Area);
    }

    /// Compares each weight with the formula. A part reads no pixels beyond `reads`, and `reads`
    /// has few unused pixels.
    #[test]
    fn reads_holds_what_is_read_and_little_more() {
        for filter in FILTERS {
            for (n, in0, in1, out) in [(500, 0.0, 500.0, 41), (60, 3.3, 55.1, 300)] {
                for antialias in [true, false] {
                    let a = AxisGeometry {
                        antialias,
                        ..axis(n, in0, in1, out, filter)
                    };
                    let part = AxisGeometry {
                        first: 11,
                        out_size: 5,
                        ..a
                    };
                    let (t, reads) = (table(part), part.reads());
                    let first = t.row(0).0;
                    let end = t.row(4).0 + t.row(4).1.len();
                    let (low, high) = (reads.start as usize, reads.end as usize);
                    assert!(low <= first && end <= high, "{a:?}");
                    let spare = 4 + 2 * a.scale().ceil() as usize;
                    assert!(first - low + high - end <= 2 * spare, "{a:?} {reads:?}");
                }
            }
        }
    }

    #[test]
    fn the_same_axis_is_not_computed_again() {
        let a = axis(50, 0.5, 40.0, 20, ResizeFilter::Cubic);
        let mut t = table(a);
        assert!(!t.prepare(a));
        assert!(t.prepare(AxisGeometry { in1: 41.0, ..a }));
    }

    #[test]
    fn an_identity_is_seen_as_one() {
        assert!(axis(10, 3.0, 8.0, 5, ResizeFilter::Cubic).is_identity());
        assert!(!axis(10, 3.5, 8.5, 5, ResizeFilter::Cubic).is_identity());
        assert!(!axis(10, 3.0, 8.0, 4, ResizeFilter::Cubic).is_identity());
    }
}
