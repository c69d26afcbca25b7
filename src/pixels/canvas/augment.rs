//! The operations of policies on the canvas: which buffer each reads and writes.
//!
//! Operations on single levels work in place, in any stored orientation. Geometric operations write
//! the other buffer, upright. `decode_plan::canvas_memory` follows the same rules.

use super::buffers::{BufferPair, PictureLayout, ensure_len, pixels_mut};
use super::steps::PictureCanvas;
use crate::picture::jpeg::{round_trip, round_trip_bytes};
use crate::pixels::augment::interpolate::TransformOptions;
use crate::pixels::augment::opencv_affine::WarpSettings;
use crate::pixels::augment::{
    affine, blend, box_blur, histogram, hue, mix, opencv_affine, opencv_blur, opencv_hsv,
    opencv_resize, perspective, table,
};
use crate::pixels::oriented_pixels::OrientedPixels;
use crate::pixels::pixel_view::{PixelView, PixelViewMut, RgbPixel};
use crate::pixels::{erase, tensor};
use crate::recipe::geometry::{PixelRect, pillow_quarter_turns};
use crate::recipe::{AffineStyle, AugmentStep, BoxFill, InterpolationMode, PixelPlacement};
use crate::sys::cpu::CpuLevel;

impl PictureCanvas {
    /// Applies the step. Pixels are bytes: `recipe::check` rejects other recipes.
    /// `window`: the part of the result that the next step keeps, if it is a crop.
    pub(super) fn augment(
        &mut self,
        step: AugmentStep,
        (window, cpu): (Option<PixelRect>, CpuLevel),
    ) {
        debug_assert!(!self.at.is_floats, "{step:?} of floats");
        let at = self.at;
        let (width, height) = self.upright_size();
        let whole = || PixelRect::whole((height as u32, width as u32));
        let window = window.unwrap_or_else(whole);
        let options = |interpolation, fill| TransformOptions {
            interpolation,
            fill,
            shown: window,
            cpu,
        };
        match step {
            AugmentStep::AutoContrast => histogram::autocontrast(self.bytes_mut()),
            AugmentStep::Equalize => histogram::equalize(self.bytes_mut()),
            AugmentStep::Invert => table::map(self.bytes_mut(), &table::of(table::invert)),
            AugmentStep::Posterize { bits } => {
                table::map(self.bytes_mut(), &table::of(table::posterize(bits)));
            }
            AugmentStep::Solarize { threshold } => {
                table::map(self.bytes_mut(), &table::of(table::solarize(threshold)));
            }
            AugmentStep::SolarizeAdd { add, threshold } => {
                let table = table::of(table::solarize_add(add, threshold));
                table::map(self.bytes_mut(), &table);
            }
            AugmentStep::Brightness(factor) => blend::brightness(self.bytes_mut(), factor),
            AugmentStep::Contrast(factor) => blend::contrast(self.bytes_mut(), factor),
            AugmentStep::Color(factor) => blend::color(self.bytes_mut(), factor),
            AugmentStep::Sharpness(factor) => {
                self.smooth(|picture, to| blend::sharpness(picture, factor, to));
            }
            AugmentStep::TensorSharpness(factor) => {
                self.smooth(|picture, to| blend::tensor_sharpness(picture, factor, to));
            }
            AugmentStep::TensorAutoContrast => {
                histogram::tensor_autocontrast(self.bytes_mut());
            }
            AugmentStep::TensorAffine {
                matrix,
                interpolation,
                fill,
            } => self.transform(interpolation, |picture, to| {
                tensor::affine(picture, matrix, interpolation, fill, to);
            }),
            AugmentStep::BoxBlurs { radius } => {
                let size = self.copy_upright();
                let pixels = pixels_mut(&mut self.bytes.here, size.0 * size.1);
                box_blur::gaussian(pixels, size, radius, &mut self.spare);
            }
            AugmentStep::Jpeg { quality } => {
                let size = self.copy_upright();
                let pixels = pixels_mut(&mut self.bytes.here, size.0 * size.1);
                let bytes = round_trip_bytes((size.0 as u32, size.1 as u32)) as usize;
                ensure_len(&mut self.spare, bytes);
                round_trip(pixels, size, quality, &mut self.spare[..bytes]);
            }
            AugmentStep::Hue(by) => hue::shift(self.bytes_mut(), by),
            AugmentStep::Hsv { gains } => opencv_hsv::change(self.bytes_mut(), gains, cpu),
            AugmentStep::Affine {
                matrix,
                fill,
                style: AffineStyle::Opencv,
                ..
            } => {
                let settings = WarpSettings {
                    matrix,
                    fill,
                    shown: window,
                    cpu,
                };
                self.apply_upright(|picture, to| opencv_affine::affine(picture, settings, to));
            }
            AugmentStep::Affine {
                matrix,
                interpolation,
                fill,
                style: AffineStyle::Pillow,
            } => self.transform(interpolation, |picture, to| {
                affine::affine(picture, matrix, options(interpolation, fill), to);
            }),
            AugmentStep::Perspective {
                coefficients,
                interpolation,
                fill,
            } => self.transform(interpolation, |picture, to| {
                perspective::perspective(picture, coefficients, options(interpolation, fill), to);
            }),
            AugmentStep::Rotate {
                degrees,
                interpolation,
                fill,
            } => self.rotate(degrees, options(interpolation, fill)),
            AugmentStep::GaussianBlur { width, height } => {
                self.apply_upright(|picture, to| {
                    opencv_blur::gaussian(picture, (width, height), to)
                });
            }
            AugmentStep::MotionBlur { length, degrees } => {
                self.apply_upright(|picture, to| opencv_blur::motion(picture, length, degrees, to));
            }
            AugmentStep::Resample { size, filter } => {
                let (width, height) = (size.width as usize, size.height as usize);
                let to = pixels_mut(&mut self.bytes.there, width * height);
                let picture = OrientedPixels::new(at.of(&self.bytes.here), at.placement);
                opencv_resize::resize(&picture, (width, height), filter, to);
                self.bytes.swap();
                self.at.placement = PixelPlacement::default();
                self.at.set_tight(width, height);
            }
            AugmentStep::Fill { rect, color } => {
                let stored = (at.width as u32, at.height as u32);
                let rect = at.placement.to_stored(self.within(rect), stored);
                let with = BoxFill::Value(color.map(f32::from));
                erase::erase(self.bytes_mut(), rect, at.placement, with, false);
            }
            AugmentStep::Keep => {
                let kept = pixels_mut(&mut self.mix.kept, at.width * at.height);
                mix::copy(&shown(&self.bytes, at), kept);
                let sum = pixels_mut(&mut self.mix.sum, at.width * at.height);
                sum.as_flattened_mut().fill(0.0);
            }
            AugmentStep::Add { weight } => {
                self.add(|picture, sum| mix::add(picture, weight, sum));
            }
            AugmentStep::AddSingle { weight } => {
                self.add(|picture, sum| mix::add_single(picture, weight, sum));
            }
            AugmentStep::MixIn { by } => {
                self.add(|picture, sum| mix::mix_in(picture, by, sum));
            }
            AugmentStep::BlendTotal { by } => {
                let pixels = self.set_upright();
                let to = pixels_mut(&mut self.bytes.here, pixels);
                let (kept, sum) = (&mut self.mix.kept, &mut self.mix.sum);
                mix::blend_total(pixels_mut(kept, pixels), pixels_mut(sum, pixels), by, to);
            }
            AugmentStep::Total => {
                let pixels = self.set_upright();
                let to = pixels_mut(&mut self.bytes.here, pixels);
                mix::total(pixels_mut(&mut self.mix.sum, pixels), to);
            }
            AugmentStep::Blend { by } => {
                let pixels = self.set_upright();
                let to = pixels_mut(&mut self.bytes.here, pixels);
                let (kept, sum) = (&mut self.mix.kept, &mut self.mix.sum);
                mix::blend(pixels_mut(kept, pixels), pixels_mut(sum, pixels), by, to);
            }
        }
    }

    /// Runs `how`, which fills the other buffer, the same way in every stored orientation.
    fn smooth(&mut self, how: impl FnOnce(PixelView<'_, u8>, &mut [RgbPixel<u8>])) {
        let at = self.at;
        let to = pixels_mut(&mut self.bytes.there, at.width * at.height);
        how(at.of(&self.bytes.here), to);
        self.bytes.swap();
        self.at.set_tight(at.width, at.height);
    }

    /// Adds the image to the sum, and restores the kept copy.
    fn add(&mut self, how: impl FnOnce(&OrientedPixels<'_, u8>, &mut [RgbPixel<f64>])) {
        let at = self.at;
        let sum = pixels_mut(&mut self.mix.sum, at.width * at.height);
        how(&shown(&self.bytes, at), sum);
        let pixels = self.set_upright();
        let to = pixels_mut(&mut self.bytes.here, pixels);
        to.copy_from_slice(pixels_mut(&mut self.mix.kept, pixels));
    }

    /// Copies the image, upright and tight, to the other buffer. Returns width and height.
    fn copy_upright(&mut self) -> (usize, usize) {
        self.transform(InterpolationMode::Nearest, mix::copy);
        (self.at.width, self.at.height)
    }

    fn bytes_mut(&mut self) -> PixelViewMut<'_, u8> {
        self.at.of_mut(&mut self.bytes.here)
    }

    /// Sets the layout to upright and tight. Returns the number of pixels.
    pub(super) fn set_upright(&mut self) -> usize {
        let (width, height) = self.upright_size();
        self.at.placement = PixelPlacement::default();
        self.at.set_tight(width, height);
        width * height
    }

    /// Width and height of the upright image.
    fn upright_size(&self) -> (usize, usize) {
        self.at.placement.output_size(self.at.width, self.at.height)
    }

    /// The part of a box that is inside the image.
    fn within(&self, rect: PixelRect) -> PixelRect {
        let (width, height) = self.upright_size();
        let (width, height) = (width as u32, height as u32);
        let (left, top) = (rect.left.min(width), rect.top.min(height));
        PixelRect {
            left,
            top,
            width: rect.width.min(width - left),
            height: rect.height.min(height - top),
        }
    }

    /// Runs `how`, which fills an upright image of the same size.
    fn transform(
        &mut self,
        interpolation: InterpolationMode,
        how: impl FnOnce(&OrientedPixels<'_, u8>, &mut [RgbPixel<u8>]),
    ) {
        if interpolation != InterpolationMode::Nearest {
            self.unmirror();
        }
        let (at, (width, height)) = (self.at, self.upright_size());
        let to = pixels_mut(&mut self.bytes.there, width * height);
        let picture = OrientedPixels::new(at.of(&self.bytes.here), at.placement);
        how(&picture, to);
        self.bytes.swap();
        self.set_upright();
    }

    /// Runs `how` from the image, made upright, into the other buffer.
    fn apply_upright(&mut self, how: impl FnOnce(PixelView<'_, u8>, &mut [RgbPixel<u8>])) {
        if self.at.placement != PixelPlacement::default() {
            let (width, height) = self.upright_size();
            let to = pixels_mut(&mut self.bytes.there, width * height);
            let picture = OrientedPixels::new(self.at.of(&self.bytes.here), self.at.placement);
            mix::copy(&picture, to);
            self.bytes.swap();
            self.set_upright();
        }
        let to = pixels_mut(&mut self.bytes.there, self.at.width * self.at.height);
        how(self.at.of(&self.bytes.here), to);
        self.bytes.swap();
        self.at.set_tight(self.at.width, self.at.height);
    }

    /// Reverses mirrored rows in memory: operations that read many pixels of a row are faster if
    /// they are in order. A transposed image stays as it is.
    fn unmirror(&mut self) {
        let PixelPlacement {
            flip_x, transpose, ..
        } = self.at.placement;
        if flip_x && !transpose {
            self.bytes_mut().rows_mut().for_each(<[_]>::reverse);
            self.at.placement.flip_x = false;
        }
    }

    fn rotate(&mut self, degrees: f64, options: TransformOptions) {
        let (width, height) = self.upright_size();
        let Some(quarters) = pillow_quarter_turns(degrees, width == height) else {
            let matrix = affine::rotation(degrees, (width, height));
            return self.transform(options.interpolation, |picture, to| {
                affine::affine(picture, matrix, options, to);
            });
        };
        self.at.placement = self.at.placement.turned(quarters);
        if quarters % 2 == 1 {
            // The computed memory depends on sizes alone, so the orientation must follow from them
            // too.
            let to = pixels_mut(&mut self.bytes.there, width * height);
            let picture = OrientedPixels::new(self.at.of(&self.bytes.here), self.at.placement);
            mix::copy(&picture, to);
            self.bytes.swap();
            self.set_upright();
        }
    }
}

fn shown(pair: &BufferPair<u8>, at: PictureLayout) -> OrientedPixels<'_, u8> {
    OrientedPixels::new(at.of(&pair.here), at.placement)
}
