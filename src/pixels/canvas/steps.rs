//! Applies each step to the buffers of a canvas.

use half::{bf16, f16};

use super::buffers::{BufferPair, PictureLayout, ensure_len, pixels_mut};
use super::mix_buffers::MixBuffers;
use crate::decode_plan::folded_steps::FoldedSteps;
use crate::pixels::convert::ColorConverter;
use crate::pixels::elastic::{self, DisplacementField};
use crate::pixels::level::ChannelLevel;
use crate::pixels::noise::{self, AddedNoise};
use crate::pixels::normalise;
use crate::pixels::pixel_view::{PixelView, RgbPixel};
use crate::pixels::resample::{ImageResampler, PixelSource, ResizeAxes};
use crate::pixels::{blur, erase, grey, jitter, pad, rotate, warp};
use crate::recipe::ChannelScaling;
use crate::recipe::{
    DataType, InterpolationMode, Padding, PaddingMode, PixelPlacement, RotationStyle, Size, Step,
};

/// Calls a function on the image in place, in its current type.
macro_rules! in_place {
    ($canvas:expr, $f:path $(, $with:expr)*) => {
        match $canvas.at.is_floats {
            false => $f($canvas.at.of_mut(&mut $canvas.bytes.here) $(, $with)*),
            true => $f($canvas.at.of_mut(&mut $canvas.floats.here) $(, $with)*),
        }
    };
}

/// An image, and the memory of its steps. A warm call allocates nothing.
#[derive(Debug, Default)]
pub(crate) struct PictureCanvas {
    pub(super) bytes: BufferPair<u8>,
    pub(super) floats: BufferPair<f32>,
    /// Scratch memory of blurs.
    rows: Vec<f32>,
    pub(super) mix: MixBuffers,
    /// Bytes of steps that need more than the two buffers.
    pub(super) spare: Vec<u8>,
    /// Created at first use, because its table takes time to compute.
    converter: Option<ColorConverter>,
    pub(super) at: PictureLayout,
}

/// The image, in its current type.
pub(crate) enum CanvasPixels<'a> {
    Bytes(PixelView<'a, u8>),
    Floats(PixelView<'a, f32>),
}

impl PictureCanvas {
    /// Bytes of all buffers.
    pub(crate) fn held_bytes(&self) -> usize {
        let floats = [&self.floats.here, &self.floats.there, &self.rows];
        let floats: usize = floats.iter().map(|v| v.capacity()).sum();
        let bytes = self.bytes.here.capacity() + self.bytes.there.capacity();
        bytes + floats * size_of::<f32>() + self.mix.held_bytes() + self.spare.capacity()
    }

    /// Frees all buffers.
    pub(crate) fn free_buffers(&mut self) {
        self.bytes = BufferPair::default();
        self.floats = BufferPair::default();
        self.rows = Vec::new();
        self.mix = MixBuffers::default();
        self.spare = Vec::new();
    }

    /// Begins with a tight `u8` image of this stored width and height, which the caller fills.
    pub(crate) fn begin(
        &mut self,
        width: usize,
        height: usize,
        placement: PixelPlacement,
    ) -> &mut [u8] {
        let bytes = 3 * width * height;
        self.home();
        ensure_len(&mut self.bytes.here, bytes);
        self.at = PictureLayout::tight(width, height, placement);
        &mut self.bytes.here[..bytes]
    }

    /// Like [`PictureCanvas::begin`], in floats.
    #[cfg(test)]
    pub(crate) fn begin_floats(
        &mut self,
        width: usize,
        height: usize,
        placement: PixelPlacement,
    ) -> &mut [f32] {
        self.home();
        ensure_len(&mut self.floats.here, 3 * width * height);
        self.at = PictureLayout {
            is_floats: true,
            ..PictureLayout::tight(width, height, placement)
        };
        &mut self.floats.here[..3 * width * height]
    }

    /// Begins with an image in `buffer`, which is swapped with a buffer of the canvas. The layout
    /// is: pixels before the first, pixels from row to row, width and height.
    pub(crate) fn adopt_buffer(
        &mut self,
        buffer: &mut Vec<u8>,
        (first, stride): (usize, usize),
        (width, height): (usize, usize),
        placement: PixelPlacement,
    ) {
        self.home();
        std::mem::swap(&mut self.bytes.here, buffer);
        self.at = PictureLayout {
            first,
            stride,
            ..PictureLayout::tight(width, height, placement)
        };
    }

    /// Swaps the adopted buffer back into `buffer`, whatever the steps made of it.
    pub(crate) fn return_buffer(&mut self, buffer: &mut Vec<u8>) {
        self.home();
        std::mem::swap(&mut self.bytes.here, buffer);
    }

    fn home(&mut self) {
        self.bytes.reset();
        self.floats.reset();
    }

    /// The image and its orientation.
    pub(crate) fn pixels(&self) -> (CanvasPixels<'_>, PixelPlacement) {
        let held = match self.at.is_floats {
            false => CanvasPixels::Bytes(self.at.of(&self.bytes.here)),
            true => CanvasPixels::Floats(self.at.of(&self.floats.here)),
        };
        (held, self.at.placement)
    }

    /// Applies the first step, or several if a resize absorbs the crops after it. Returns the
    /// number of steps applied.
    pub(crate) fn apply<'a>(
        &mut self,
        steps: impl Iterator<Item = &'a Step> + Clone,
        fuses: bool,
        resampler: &mut ImageResampler,
    ) -> usize {
        let most = if fuses { usize::MAX } else { 1 };
        let Some(step) = steps.clone().next() else {
            return 0;
        };
        match *step {
            Step::Crop(_)
            | Step::Mirror
            | Step::UpsideDown
            | Step::Turn(_)
            | Step::Resize { .. } => {
                let stored = (self.at.width as u32, self.at.height as u32);
                let fold = FoldedSteps::of(steps.take(most), stored, self.at.placement);
                self.fold(&fold, resampler);
                return fold.steps;
            }
            Step::Pad {
                padding,
                mode,
                fill,
            } => self.pad(padding, mode, fill),
            Step::Rotate {
                degrees,
                interpolation,
                size,
                fill,
                style,
            } => {
                let size = (size.width as usize, size.height as usize);
                let at = self.at;
                let turn = (at.placement, degrees, interpolation, size, fill);
                match (style, at.is_floats) {
                    // Only occurs while pixels are bytes.
                    (RotationStyle::Opencv, _) => {
                        let to = pixels_mut(&mut self.bytes.there, size.0 * size.1);
                        let view = at.of(&self.bytes.here);
                        let fill = fill.map(u8::rounded);
                        warp::turn(view, at.placement, degrees, interpolation, fill, to);
                        self.bytes.swap();
                    }
                    (RotationStyle::Tensor, false) => rotate_pair(&mut self.bytes, at, turn),
                    (RotationStyle::Tensor, true) => rotate_pair(&mut self.floats, at, turn),
                }
                // The result is upright.
                self.at.placement = PixelPlacement::default();
                self.at.set_tight(size.0, size.1);
            }
            Step::Blur { kernel, sigma } => {
                let (at, rows) = (self.at, &mut self.rows);
                // The kernel is given for the upright image.
                let kernel = match at.placement.transpose {
                    true => Size {
                        height: kernel.width,
                        width: kernel.height,
                    },
                    false => kernel,
                };
                match at.is_floats {
                    false => blur_pair(&mut self.bytes, at, kernel, sigma, rows),
                    true => blur_pair(&mut self.floats, at, kernel, sigma, rows),
                }
                self.at.set_tight(at.width, at.height);
            }
            Step::Elastic {
                key,
                alpha,
                sigma,
                interpolation,
                fill,
            } => {
                let by = DisplacementField { key, alpha, sigma };
                let (at, rows) = (self.at, &mut self.rows);
                match at.is_floats {
                    false => elastic_pair(&mut self.bytes, at, by, (interpolation, fill), rows),
                    true => elastic_pair(&mut self.floats, at, by, (interpolation, fill), rows),
                }
                // The result is upright.
                self.set_upright();
            }
            Step::Brightness(factor) => in_place!(self, jitter::brightness, factor),
            Step::Contrast(factor) => in_place!(self, jitter::contrast, factor),
            Step::Saturation(factor) => in_place!(self, jitter::saturation, factor),
            Step::Hue(factor) => in_place!(self, jitter::hue, factor),
            Step::Shift(by) => in_place!(self, jitter::shift, by),
            Step::Permute(order) => in_place!(self, jitter::permute, order),
            Step::Noise {
                key,
                mean,
                sigma,
                clip,
                grey,
            } => {
                let added = AddedNoise {
                    key,
                    mean,
                    sigma,
                    clip,
                    grey,
                };
                let placement = self.at.placement;
                in_place!(self, noise::add, placement, added);
            }
            Step::Grayscale => in_place!(self, grey::grayscale),
            // The first step, while pixels are bytes.
            Step::Luma => grey::luma(self.at.of_mut(&mut self.bytes.here)),
            Step::Erase { rect, with, grey } => {
                let stored = (self.at.width as u32, self.at.height as u32);
                let placement = self.at.placement;
                let rect = placement.to_stored(rect, stored);
                in_place!(self, erase::erase, rect, placement, with, grey);
            }
            Step::Convert(to, white) => {
                let converter = self.converter.get_or_insert_with(ColorConverter::new);
                if self.at.is_floats {
                    let view = self.at.of_mut(&mut self.floats.here);
                    converter.convert_in_place(view, to, white);
                } else {
                    let at = self.at;
                    let out = pixels_mut(&mut self.floats.here, at.width * at.height);
                    let view = at.of(&self.bytes.here);
                    converter.convert(view, to, white, out);
                    self.are_floats();
                }
            }
            Step::Normalize { unit, mean, std } => {
                let scaling = ChannelScaling { unit, mean, std };
                if self.at.is_floats {
                    normalise::normalise_in_place(self.at.of_mut(&mut self.floats.here), scaling);
                } else {
                    let (view, out) = self.room_in_floats();
                    normalise::normalise(view, scaling, out);
                    self.are_floats();
                }
            }
            Step::Standardize { grey } => {
                if self.at.is_floats {
                    let view = self.at.of_mut(&mut self.floats.here);
                    let scaling = normalise::scaling_of_floats(&view.as_view(), grey);
                    normalise::normalise_in_place(view, scaling);
                } else {
                    let (view, out) = self.room_in_floats();
                    normalise::normalise(view, normalise::scaling_of_levels(view, grey), out);
                    self.are_floats();
                }
            }
            Step::Cast(dtype) => self.cast(dtype),
            Step::Augment(step) => {
                let next = steps.take(most).nth(1);
                let shown = next.and_then(|next| match next {
                    Step::Crop(rect) => Some(*rect),
                    _ => None,
                });
                self.augment(step, (shown, resampler.cpu()));
            }
        }
        1
    }

    fn pad(&mut self, padding: Padding, mode: PaddingMode, fill: [f32; 3]) {
        let at = self.at;
        let padding = at.placement.padding_to_stored(padding);
        let width = at.width + (padding.left + padding.right) as usize;
        let height = at.height + (padding.top + padding.bottom) as usize;
        match at.is_floats {
            false => pad_pair(&mut self.bytes, at, padding, mode, fill.map(u8::rounded)),
            true => pad_pair(&mut self.floats, at, padding, mode, fill),
        }
        self.at.set_tight(width, height);
    }

    fn cast(&mut self, dtype: DataType) {
        match (dtype, self.at.is_floats) {
            (DataType::U8, false) | (DataType::F32, true) => {}
            (DataType::U8, true) => {
                let at = self.at;
                ensure_len(&mut self.bytes.here, 3 * at.width * at.height);
                let to = self.bytes.here.as_chunks_mut().0;
                let rows = at.of(&self.floats.here);
                for (to, row) in to.chunks_exact_mut(at.width).zip(rows.rows()) {
                    for (to, pixel) in to.iter_mut().zip(row) {
                        *to = pixel.map(u8::rounded);
                    }
                }
                self.at.set_tight(at.width, at.height);
                self.at.is_floats = false;
            }
            (DataType::F16 | DataType::Bf16 | DataType::F32, false) => {
                // f16 and bf16 represent every level exactly.
                let (view, out) = self.room_in_floats();
                for (to, row) in out.chunks_exact_mut(view.width).zip(view.rows()) {
                    for (to, pixel) in to.iter_mut().zip(row) {
                        *to = pixel.map(f32::from);
                    }
                }
                self.are_floats();
            }
            (DataType::F16, true) => self.round(|v| f16::from_f32(v).to_f32()),
            (DataType::Bf16, true) => self.round(|v| bf16::from_f32(v).to_f32()),
        }
    }

    /// Rounds to the values of a smaller float type.
    fn round(&mut self, to: impl Fn(f32) -> f32) {
        for row in self.at.of_mut(&mut self.floats.here).rows_mut() {
            for value in row.as_flattened_mut() {
                *value = to(*value);
            }
        }
    }

    /// The image in bytes, and room for it in floats.
    fn room_in_floats(&mut self) -> (PixelView<'_, u8>, &mut [RgbPixel<f32>]) {
        let pixels = self.at.width * self.at.height;
        let to = pixels_mut(&mut self.floats.here, pixels);
        (self.at.of(&self.bytes.here), to)
    }

    /// Makes that room the current image.
    fn are_floats(&mut self) {
        self.at.is_floats = true;
        self.at.set_tight(self.at.width, self.at.height);
    }

    fn fold(&mut self, fold: &FoldedSteps, resampler: &mut ImageResampler) {
        let at = &mut self.at;
        let rect = fold.rect;
        at.placement = fold.placement;
        at.first += rect.top as usize * at.stride + rect.left as usize;
        (at.width, at.height) = (rect.width as usize, rect.height as usize);
        let Some((x, y)) = fold.resize_axes() else {
            return;
        };
        let axes = ResizeAxes { x, y };
        let (width, height) = (x.out_size as usize, y.out_size as usize);
        if at.is_floats {
            let view = at.of(&self.floats.here);
            let to = pixels_mut(&mut self.floats.there, width * height);
            resampler.resample_floats(view, axes, to);
            self.floats.swap();
        } else {
            let source = PixelSource {
                pixels: &self.bytes.here[3 * at.first..],
                width: at.width,
                height: at.height,
                stride: 3 * at.stride,
            };
            let to = pixels_mut(&mut self.bytes.there, width * height);
            resampler.resample(source, axes, to.as_flattened_mut());
            self.bytes.swap();
        }
        self.at.set_tight(width, height);
    }
}

fn pad_pair<T: Copy + Default>(
    pair: &mut BufferPair<T>,
    at: PictureLayout,
    padding: Padding,
    mode: PaddingMode,
    fill: RgbPixel<T>,
) {
    let width = at.width + (padding.left + padding.right) as usize;
    let height = at.height + (padding.top + padding.bottom) as usize;
    let to = pixels_mut(&mut pair.there, width * height);
    pad::pad(at.of(&pair.here), padding, mode, fill, to);
    pair.swap();
}

/// A rotation: orientation of the image, degrees, style, output size and the fill of the corners.
type Turn = (
    PixelPlacement,
    f64,
    InterpolationMode,
    (usize, usize),
    [f32; 3],
);

fn rotate_pair<T: ChannelLevel + Default>(
    pair: &mut BufferPair<T>,
    at: PictureLayout,
    (placement, degrees, interpolation, size, fill): Turn,
) {
    let to = pixels_mut(&mut pair.there, size.0 * size.1);
    let view = at.of(&pair.here);
    rotate::rotate(view, placement, degrees, interpolation, size, fill, to);
    pair.swap();
}

fn elastic_pair<T: ChannelLevel + Default>(
    pair: &mut BufferPair<T>,
    at: PictureLayout,
    by: DisplacementField,
    (interpolation, fill): (InterpolationMode, [f32; 3]),
    rows: &mut Vec<f32>,
) {
    let (width, height) = at.placement.output_size(at.width, at.height);
    let to = pixels_mut(&mut pair.there, width * height);
    ensure_len(rows, elastic::scratch_len(width, height, by.sigma));
    let view = at.of(&pair.here);
    elastic::elastic(view, at.placement, by, interpolation, fill, to, rows);
    pair.swap();
}

fn blur_pair<T: ChannelLevel + Default>(
    pair: &mut BufferPair<T>,
    at: PictureLayout,
    kernel: Size,
    sigma: f64,
    rows: &mut Vec<f32>,
) {
    let to = pixels_mut(&mut pair.there, at.width * at.height);
    ensure_len(rows, blur::scratch_len(at.width, at.height, kernel));
    blur::gaussian_blur(at.of(&pair.here), kernel, sigma, to, rows);
    pair.swap();
}
