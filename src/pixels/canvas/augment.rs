//! A policy's operations on the canvas: which buffer each reads and writes.
//!
//! What changes levels by themselves works in place, whichever way the picture is
//! stored. What goes by places writes the other buffer, upright. `cut::needs`
//! mirrors it.

use super::buffers::{Pair, Part, room};
use super::steps::Canvas;
use crate::pixels::augment::{
    affine, blend, histogram, hue, mix, opencv_blur, opencv_resize, perspective, table,
};
use crate::pixels::erase;
use crate::pixels::shown::Shown;
use crate::pixels::view::{Pixel, View, ViewMut};
use crate::recipe::geometry::{Rect, plain_quarters};
use crate::recipe::{Augment, Erased, Interpolation, Placement};

impl Canvas {
    /// Pixels are bytes: `recipe::check` sees to it.
    pub(super) fn augment(&mut self, step: Augment) {
        debug_assert!(!self.at.is_floats, "{step:?} of floats");
        let at = self.at;
        match step {
            Augment::AutoContrast => histogram::autocontrast(self.bytes_mut()),
            Augment::Equalize => histogram::equalize(self.bytes_mut()),
            Augment::Invert => table::map(self.bytes_mut(), &table::of(table::invert)),
            Augment::Posterize { bits } => {
                table::map(self.bytes_mut(), &table::of(table::posterize(bits)));
            }
            Augment::Solarize { threshold } => {
                table::map(self.bytes_mut(), &table::of(table::solarize(threshold)));
            }
            Augment::SolarizeAdd { add, threshold } => {
                let table = table::of(table::solarize_add(add, threshold));
                table::map(self.bytes_mut(), &table);
            }
            Augment::Brightness(factor) => blend::brightness(self.bytes_mut(), factor),
            Augment::Contrast(factor) => blend::contrast(self.bytes_mut(), factor),
            Augment::Color(factor) => blend::color(self.bytes_mut(), factor),
            Augment::Sharpness(factor) => {
                // The same whichever way it is stored.
                let to = room(&mut self.bytes.there, at.width * at.height);
                blend::sharpness(at.of(&self.bytes.here), factor, to);
                self.bytes.swap();
                self.at.becomes(at.width, at.height);
            }
            Augment::Hue(by) => hue::shift(self.bytes_mut(), by),
            Augment::Affine {
                matrix,
                interpolation,
                fill,
            } => self.transform(interpolation, |picture, to| {
                affine::affine(picture, matrix, interpolation, fill, to);
            }),
            Augment::Perspective {
                coefficients,
                interpolation,
                fill,
            } => self.transform(interpolation, |picture, to| {
                perspective::perspective(picture, coefficients, interpolation, fill, to);
            }),
            Augment::Rotate {
                degrees,
                interpolation,
                fill,
            } => self.rotate(degrees, interpolation, fill),
            Augment::GaussianBlur { width, height } => {
                self.blur(|picture, to| opencv_blur::gaussian(picture, (width, height), to));
            }
            Augment::MotionBlur { length, degrees } => {
                self.blur(|picture, to| opencv_blur::motion(picture, length, degrees, to));
            }
            Augment::Resample { size, filter } => {
                let (width, height) = (size.width as usize, size.height as usize);
                let to = room(&mut self.bytes.there, width * height);
                let picture = Shown::new(at.of(&self.bytes.here), at.placement);
                opencv_resize::resize(&picture, (width, height), filter, to);
                self.bytes.swap();
                self.at.placement = Placement::default();
                self.at.becomes(width, height);
            }
            Augment::Fill { rect, color } => {
                let stored = (at.width as u32, at.height as u32);
                let rect = at.placement.to_stored(self.within(rect), stored);
                let with = Erased::Value(color.map(f32::from));
                erase::erase(self.bytes_mut(), rect, at.placement, with, false);
            }
            Augment::Keep => {
                let kept = room(&mut self.mix.kept, at.width * at.height);
                mix::copy(&shown(&self.bytes, at), kept);
                let sum = room(&mut self.mix.sum, at.width * at.height);
                sum.as_flattened_mut().fill(0.0);
            }
            Augment::Add { weight } => {
                let sum = room(&mut self.mix.sum, at.width * at.height);
                mix::add(&shown(&self.bytes, at), weight, sum);
                let pixels = self.begin_again();
                let to = room(&mut self.bytes.here, pixels);
                to.copy_from_slice(room(&mut self.mix.kept, pixels));
            }
            Augment::Blend { by } => {
                let pixels = self.begin_again();
                let to = room(&mut self.bytes.here, pixels);
                let (kept, sum) = (&mut self.mix.kept, &mut self.mix.sum);
                mix::blend(room(kept, pixels), room(sum, pixels), by, to);
            }
        }
    }

    fn bytes_mut(&mut self) -> ViewMut<'_, u8> {
        self.at.of_mut(&mut self.bytes.here)
    }

    /// The picture's place is to hold it upright and tight; pixels of it.
    pub(super) fn begin_again(&mut self) -> usize {
        let (width, height) = self.upright();
        self.at.placement = Placement::default();
        self.at.becomes(width, height);
        width * height
    }

    /// Width and height of the picture as it is to be looked at.
    fn upright(&self) -> (usize, usize) {
        self.at.placement.output_size(self.at.width, self.at.height)
    }

    /// The part of a box that lies in the picture.
    fn within(&self, rect: Rect) -> Rect {
        let (width, height) = self.upright();
        let (width, height) = (width as u32, height as u32);
        let (left, top) = (rect.left.min(width), rect.top.min(height));
        Rect {
            left,
            top,
            width: rect.width.min(width - left),
            height: rect.height.min(height - top),
        }
    }

    /// `how` fills a picture of the same size, upright.
    fn transform(
        &mut self,
        interpolation: Interpolation,
        how: impl FnOnce(&Shown<'_, u8>, &mut [Pixel<u8>]),
    ) {
        if interpolation != Interpolation::Nearest {
            self.unmirror();
        }
        let (at, (width, height)) = (self.at, self.upright());
        let to = room(&mut self.bytes.there, width * height);
        let picture = Shown::new(at.of(&self.bytes.here), at.placement);
        how(&picture, to);
        self.bytes.swap();
        self.begin_again();
    }

    /// From the picture, upright and tight, into the other buffer.
    fn blur(&mut self, blur: impl FnOnce(View<'_, u8>, &mut [Pixel<u8>])) {
        if self.at.placement != Placement::default() {
            let (width, height) = self.upright();
            let to = room(&mut self.bytes.there, width * height);
            let picture = Shown::new(self.at.of(&self.bytes.here), self.at.placement);
            mix::copy(&picture, to);
            self.bytes.swap();
            self.begin_again();
        }
        let to = room(&mut self.bytes.there, self.at.width * self.at.height);
        blur(self.at.of(&self.bytes.here), to);
        self.bytes.swap();
        self.at.becomes(self.at.width, self.at.height);
    }

    /// Turns stored rows round where the picture shows them the other way: what looks at
    /// many pixels of a row is faster where they lie beside each other. A picture
    /// that shows rows as columns stays as it is.
    fn unmirror(&mut self) {
        let Placement {
            flip_x, transpose, ..
        } = self.at.placement;
        if flip_x && !transpose {
            self.bytes_mut().rows_mut().for_each(<[_]>::reverse);
            self.at.placement.flip_x = false;
        }
    }

    fn rotate(&mut self, degrees: f64, interpolation: Interpolation, fill: Pixel<u8>) {
        let (width, height) = self.upright();
        let Some(quarters) = plain_quarters(degrees, width == height) else {
            let matrix = affine::rotation(degrees, (width, height));
            return self.transform(interpolation, |picture, to| {
                affine::affine(picture, matrix, interpolation, fill, to);
            });
        };
        self.at.placement = self.at.placement.turned(quarters);
        if quarters % 2 == 1 {
            // So that whoever knows the sizes alone knows how it is turned.
            let to = room(&mut self.bytes.there, width * height);
            let picture = Shown::new(self.at.of(&self.bytes.here), self.at.placement);
            mix::copy(&picture, to);
            self.bytes.swap();
            self.begin_again();
        }
    }
}

fn shown(pair: &Pair<u8>, at: Part) -> Shown<'_, u8> {
    Shown::new(at.of(&pair.here), at.placement)
}
