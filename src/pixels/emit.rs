//! The last step on the CPU: converts pixels to the bytes of an output row. One pass normalises,
//! casts, changes the layout and applies the orientation.
//!
//! Runs in the worker, and in the consumer when there are no workers. A `u8` image has 256 levels a
//! channel, so every value comes from a table built once for a recipe: exact, and the same on every
//! CPU. An `f32` image is computed by the same formula. `emit_source` has the rows of an upright
//! image, `patches` the order of patches, `planes` the fast path of `u8`. Never in here: other
//! arithmetic on pixels, allocation after `new`, `unsafe` outside of `planes`.

mod emit_source;
mod patches;
mod planes;

use half::{bf16, f16};

use self::emit_source::{CHANNELS, EmitSource};
use self::patches::write_patches;
use self::planes::write_planes;
use super::level::ChannelLevel;
use super::pixel_view::{PixelView, RgbPixel};
use crate::recipe::{
    ChannelScaling, ColorOrder, DataType, MemoryLayout, OutputFormat, PatchOrder, PixelPlacement,
};

/// The bytes of one element, for each level of each source channel.
type ElementTable<const N: usize> = [[[u8; N]; 256]; CHANNELS];

#[derive(Debug)]
enum ElementTables {
    F32(Box<ElementTable<4>>),
    /// `f16` or `bf16`.
    Half(Box<ElementTable<2>>),
    /// Levels stay unchanged.
    U8,
}

impl ElementTables {
    fn of(dtype: DataType, value: impl Fn(usize, u8) -> f32) -> Self {
        match dtype {
            DataType::F32 => Self::F32(table(|c, v| value(c, v).to_ne_bytes())),
            DataType::F16 => Self::Half(table(|c, v| f16::from_f32(value(c, v)).to_ne_bytes())),
            DataType::Bf16 => Self::Half(table(|c, v| bf16::from_f32(value(c, v)).to_ne_bytes())),
            DataType::U8 => Self::U8,
        }
    }
}

/// Writes output rows of one recipe.
#[derive(Debug)]
pub struct RowEmitter {
    emission: OutputFormat,
    scaling: ChannelScaling,
    tables: ElementTables,
    /// Tables after a normalisation within the recipe, for the last one used.
    normalised: Option<(ChannelScaling, ElementTables)>,
}

impl RowEmitter {
    /// For float types, value `v` of output channel `c` becomes `((v / unit) - mean[c]) / std[c]`.
    /// Each step is rounded to `f32`, as in torchvision. For `f16` and `bf16` the result is then
    /// rounded to nearest, halves to even.
    ///
    /// For `u8`, which holds levels, unit, mean and deviation are not applied. Levels in `f32` are
    /// rounded like torch's `round`, halves to even, and clamped to 0 and 255.
    pub fn new(emission: OutputFormat) -> Self {
        let scaling = emission.scaling();
        Self {
            emission,
            scaling,
            tables: ElementTables::of(emission.dtype, |c, v| scaling.of(c, f32::from(v))),
            normalised: None,
        }
    }

    /// Bytes of an output image of `width` x `height`.
    pub fn row_bytes(&self, width: usize, height: usize) -> usize {
        let values = self.emission.row_values(height as u64, width as u64);
        values as usize * self.emission.dtype.size()
    }

    /// The bytes of an image in the row `out`, which may be longer. Clears the patches after it.
    pub(crate) fn image_part<'a>(
        &self,
        width: usize,
        height: usize,
        out: &'a mut [u8],
    ) -> &'a mut [u8] {
        let (image, after) = out.split_at_mut(self.row_bytes(width, height));
        if self.emission.patches.is_some() {
            after.fill(0);
        }
        image
    }

    /// Fills `out` from tight rows of RGB. `out` needs no alignment.
    #[cfg(any(test, feature = "internals"))]
    pub fn emit(
        &self,
        rgb: &[u8],
        width: usize,
        height: usize,
        placement: PixelPlacement,
        out: &mut [u8],
    ) {
        assert_eq!(
            rgb.len(),
            width * height * CHANNELS,
            "not an image of {height} x {width}"
        );
        let pixels = PixelView::tight(rgb.as_chunks().0, width, height);
        self.emit_rows(pixels, placement, out);
    }

    /// Fills `out` from levels. `out` needs no alignment.
    pub(crate) fn emit_rows(
        &self,
        pixels: PixelView<'_, u8>,
        placement: PixelPlacement,
        out: &mut [u8],
    ) {
        self.emit_by(&self.tables, pixels, placement, out);
    }

    /// True if [`RowEmitter::emit_normalised`] can write this type. `u8` holds levels, so it
    /// cannot.
    pub(crate) fn normalises(&self) -> bool {
        self.emission.dtype != DataType::U8
    }

    /// Normalises levels and writes them. The bits equal those of [`RowEmitter::emit_floats`] after
    /// a normalisation, without storing the floats. `out` needs no alignment.
    pub(crate) fn emit_normalised(
        &mut self,
        pixels: PixelView<'_, u8>,
        first: ChannelScaling,
        placement: PixelPlacement,
        out: &mut [u8],
    ) {
        let dtype = self.emission.dtype;
        let (known, tables) = self.normalised.take().unzip();
        let tables = tables.filter(|_| known == Some(first)).unwrap_or_else(|| {
            ElementTables::of(dtype, |c, v| self.scaling.of(c, first.of(c, f32::from(v))))
        });
        self.emit_by(&tables, pixels, placement, out);
        self.normalised = Some((first, tables));
    }

    fn emit_by(
        &self,
        tables: &ElementTables,
        pixels: PixelView<'_, u8>,
        placement: PixelPlacement,
        out: &mut [u8],
    ) {
        self.check(pixels, out);
        let OutputFormat { layout, order, .. } = self.emission;
        let source = EmitSource { pixels, placement };
        let out = self.without_zeros(out);
        if let Some(patches) = self.emission.patches {
            match tables {
                ElementTables::F32(t) => {
                    write_patches(source, patches, order, out, |c, v: u8| t[c][usize::from(v)])
                }
                ElementTables::Half(t) => {
                    write_patches(source, patches, order, out, |c, v: u8| t[c][usize::from(v)])
                }
                ElementTables::U8 => write_patches(source, patches, order, out, |_, v| [v]),
            }
            self.write_places(patches, source.output_size().0, out);
            return;
        }
        match tables {
            // No lookup and no reordering.
            ElementTables::U8 if self.emission.is_plain_rgb8(placement) => pixels.copy_to(out),
            ElementTables::F32(t) => write(source, layout, order, out, |c, v| t[c][usize::from(v)]),
            ElementTables::Half(t) => {
                write(source, layout, order, out, |c, v| t[c][usize::from(v)])
            }
            ElementTables::U8
                if layout == MemoryLayout::Nchw
                    && order != ColorOrder::Grey
                    && !placement.transpose =>
            {
                let (first, rest) = out.split_at_mut(pixels.width * pixels.height);
                let (second, third) = rest.split_at_mut(pixels.width * pixels.height);
                let planes = match order {
                    ColorOrder::Bgr => [third, second, first],
                    ColorOrder::Rgb | ColorOrder::Grey => [first, second, third],
                };
                write_planes(pixels, (placement.flip_x, placement.flip_y), planes);
            }
            ElementTables::U8 => write(source, layout, order, out, |_, v| [v]),
        }
    }

    /// Fills `out` from floats. `out` needs no alignment.
    pub(crate) fn emit_floats(
        &self,
        pixels: PixelView<'_, f32>,
        placement: PixelPlacement,
        out: &mut [u8],
    ) {
        self.check(pixels, out);
        let OutputFormat { layout, order, .. } = self.emission;
        let source = EmitSource { pixels, placement };
        let out = self.without_zeros(out);
        let s = self.scaling;
        if let Some(patches) = self.emission.patches {
            match self.emission.dtype {
                DataType::F32 => {
                    write_patches(source, patches, order, out, |c, v| s.of(c, v).to_ne_bytes())
                }
                DataType::F16 => write_patches(source, patches, order, out, |c, v| {
                    f16::from_f32(s.of(c, v)).to_ne_bytes()
                }),
                DataType::Bf16 => write_patches(source, patches, order, out, |c, v| {
                    bf16::from_f32(s.of(c, v)).to_ne_bytes()
                }),
                DataType::U8 => {
                    write_patches(source, patches, order, out, |_, v| [u8::rounded(v)]);
                }
            }
            self.write_places(patches, source.output_size().0, out);
            return;
        }
        match self.emission.dtype {
            // Normalised already: nothing to divide.
            DataType::F32 if s.is_identity() => {
                write(source, layout, order, out, |_, v: f32| v.to_ne_bytes());
            }
            DataType::F32 => write(source, layout, order, out, |c, v| s.of(c, v).to_ne_bytes()),
            DataType::F16 => write(source, layout, order, out, |c, v| {
                f16::from_f32(s.of(c, v)).to_ne_bytes()
            }),
            DataType::Bf16 => write(source, layout, order, out, |c, v| {
                bf16::from_f32(s.of(c, v)).to_ne_bytes()
            }),
            DataType::U8 => write(source, layout, order, out, |_, v| [u8::rounded(v)]),
        }
    }

    /// Writes the row and the column of each patch of an image of this width.
    fn write_places(&self, order: PatchOrder, width: usize, out: &mut [u8]) {
        if !order.is_numbered {
            return;
        }
        let size = self.emission.dtype.size();
        let columns = width / order.patch_size as usize;
        let patches = out.chunks_exact_mut(order.patch_values() * size);
        for (number, patch) in patches.enumerate() {
            let place = [number / columns + 1, number % columns + 1];
            for (to, number) in patch.chunks_exact_mut(size).zip(place) {
                let number = number as f32;
                match self.emission.dtype {
                    DataType::F32 => to.copy_from_slice(&number.to_ne_bytes()),
                    DataType::F16 => to.copy_from_slice(&f16::from_f32(number).to_ne_bytes()),
                    DataType::Bf16 => to.copy_from_slice(&bf16::from_f32(number).to_ne_bytes()),
                    DataType::U8 => to.copy_from_slice(&[u8::rounded(number)]),
                }
            }
        }
    }

    /// Writes the channels that are always zero and returns the memory of the others. All types
    /// encode zero as zero bytes.
    fn without_zeros<'a>(&self, out: &'a mut [u8]) -> &'a mut [u8] {
        let zeros = self.emission.zero_channels;
        let zeros = out.len() / self.emission.channels() * zeros;
        let (others, zeros) = out.split_at_mut(out.len() - zeros);
        zeros.fill(0);
        others
    }

    fn check<T>(&self, pixels: PixelView<'_, T>, out: &[u8]) {
        let PixelView {
            width,
            height,
            stride,
            ..
        } = pixels;
        assert!(width >= 1 && height >= 1, "an empty image");
        assert!(width <= stride, "rows of {width} pixels, {stride} apart");
        assert_eq!(
            out.len(),
            self.row_bytes(width, height),
            "the output row does not fit {height} x {width}"
        );
    }
}

fn table<const N: usize>(value: impl Fn(usize, u8) -> [u8; N]) -> Box<ElementTable<N>> {
    let mut table = Box::new([[[0; N]; 256]; CHANNELS]);
    for (c, channel) in table.iter_mut().enumerate() {
        for (v, entry) in (0..=255).zip(channel) {
            *entry = value(c, v);
        }
    }
    table
}

/// Pixels in a run. A whole run is written to one plane before the next plane: alternating stores
/// to three planes cost twice as much.
const RUN: usize = 16;

/// `encode` converts a value of a source channel.
fn write<T: Copy + Default, const N: usize>(
    source: EmitSource<'_, T>,
    layout: MemoryLayout,
    order: ColorOrder,
    out: &mut [u8],
    encode: impl Fn(usize, T) -> [u8; N],
) {
    let (width, height) = source.output_size();
    let elements = out.as_chunks_mut::<N>().0;
    match (order, layout) {
        (ColorOrder::Grey, _) => each_run(source, |at, run| {
            to_plane(&mut elements[at..at + run.len()], run, |pixel| {
                encode(0, pixel[0])
            });
        }),
        (ColorOrder::Rgb | ColorOrder::Bgr, MemoryLayout::Nchw) => {
            let (first, rest) = elements.split_at_mut(width * height);
            let (second, third) = rest.split_at_mut(width * height);
            let mut planes = if order == ColorOrder::Bgr {
                [third, second, first]
            } else {
                [first, second, third]
            };
            each_run(source, |at, run| {
                // A loop: three written-out copies take a quarter longer.
                let mut c = 0;
                while c < CHANNELS {
                    to_plane(&mut planes[c][at..at + run.len()], run, |pixel| {
                        encode(c, pixel[c])
                    });
                    c += 1;
                }
            });
        }
        (ColorOrder::Rgb, MemoryLayout::Nhwc) => {
            let pixels = elements.as_chunks_mut::<CHANNELS>().0;
            each_run(source, |at, run| {
                for (to, &[r, g, b]) in pixels[at..at + run.len()].iter_mut().zip(run) {
                    *to = [encode(0, r), encode(1, g), encode(2, b)];
                }
            });
        }
        (ColorOrder::Bgr, MemoryLayout::Nhwc) => {
            let pixels = elements.as_chunks_mut::<CHANNELS>().0;
            each_run(source, |at, run| {
                for (to, &[r, g, b]) in pixels[at..at + run.len()].iter_mut().zip(run) {
                    *to = [encode(2, b), encode(1, g), encode(0, r)];
                }
            });
        }
    }
}

#[inline(always)]
fn to_plane<T: Copy, const N: usize>(
    plane: &mut [[u8; N]],
    run: &[RgbPixel<T>],
    encode: impl Fn(&RgbPixel<T>) -> [u8; N],
) {
    // Without `zip`, which became a call for each pixel when it was not inlined.
    let mut pixels = run.iter();
    for to in plane {
        if let Some(pixel) = pixels.next() {
            *to = encode(pixel);
        }
    }
}

/// Calls `with` for each run of source pixels in output order, with its first output pixel.
#[inline(always)]
fn each_run<T: Copy + Default>(
    source: EmitSource<'_, T>,
    mut with: impl FnMut(usize, &[RgbPixel<T>]),
) {
    let (width, height) = source.output_size();
    let mut buffer = [[T::default(); CHANNELS]; RUN];
    for y in 0..height {
        let mut x = 0;
        while x + RUN <= width {
            let run = source.run(y, x, &mut buffer);
            // A length known at compile time.
            if let Some(run) = run.first_chunk::<RUN>() {
                with(y * width + x, run);
            }
            x += RUN;
        }
        if x < width {
            with(y * width + x, source.run(y, x, &mut buffer[..width - x]));
        }
    }
}

#[cfg(test)]
mod tests;
