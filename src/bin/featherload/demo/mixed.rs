//! The forms in which images of the mixed set come.

use super::encode::{Chroma, Coding, Jpeg, Lossless, Png};
use super::photo;
use super::random::{Stream, hash};

/// How large a picture is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Size {
    /// 8 to 71 pixels a side.
    Tiny,
    /// 160 to 320 pixels a side.
    Small,
    /// As ImageNet's photos.
    Photo,
    /// 1920 x 1080, or upright.
    Hd,
    /// 3840 x 2160, or upright.
    Uhd,
}

/// A way to keep a picture, and the end of its file's name.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Form {
    pub(super) name: &'static str,
    pub(super) coding: Coding,
    size: Size,
}

const fn form(name: &'static str, size: Size, coding: Coding) -> Form {
    Form { name, coding, size }
}

const fn jpeg(name: &'static str, size: Size, jpeg: Jpeg) -> Form {
    form(name, size, Coding::Jpeg(jpeg))
}

const fn png(name: &'static str, png: Png) -> Form {
    form(name, Size::Small, Coding::Png(png))
}

const fn lossless(name: &'static str, lossless: Lossless) -> Form {
    form(name, Size::Small, Coding::Lossless(lossless))
}

const QUARTER: Jpeg = Jpeg::Baseline(Chroma::Quarter);
const FULL: Jpeg = Jpeg::Baseline(Chroma::Full);

/// One picture of each in every 37, in an order that changes each time.
pub(super) const FORMS: [Form; 37] = [
    jpeg("420.jpg", Size::Photo, QUARTER),
    jpeg("444.jpg", Size::Photo, FULL),
    jpeg("420-tiny.jpg", Size::Tiny, QUARTER),
    jpeg("420-hd.jpg", Size::Hd, QUARTER),
    jpeg("420-4k.jpg", Size::Uhd, QUARTER),
    jpeg(
        "progressive-420.jpg",
        Size::Hd,
        Jpeg::Progressive(Chroma::Quarter),
    ),
    jpeg(
        "progressive-444.jpg",
        Size::Photo,
        Jpeg::Progressive(Chroma::Full),
    ),
    jpeg("grey.jpg", Size::Photo, Jpeg::Grey),
    jpeg("cmyk.jpg", Size::Photo, Jpeg::Cmyk),
    jpeg("ycck.jpg", Size::Photo, Jpeg::Ycck),
    jpeg("exif2.jpg", Size::Photo, Jpeg::Turned(2)),
    jpeg("exif3.jpg", Size::Photo, Jpeg::Turned(3)),
    jpeg("exif4.jpg", Size::Photo, Jpeg::Turned(4)),
    jpeg("exif5.jpg", Size::Photo, Jpeg::Turned(5)),
    jpeg("exif6.jpg", Size::Photo, Jpeg::Turned(6)),
    jpeg("exif7.jpg", Size::Photo, Jpeg::Turned(7)),
    jpeg("exif8.jpg", Size::Photo, Jpeg::Turned(8)),
    // What decides is the content, not the name.
    jpeg("jpeg-inside.png", Size::Photo, QUARTER),
    png("png-inside.jpg", Png::Rgb),
    png("rgb.png", Png::Rgb),
    form("rgb-tiny.png", Size::Tiny, Coding::Png(Png::Rgb)),
    form("rgb-hd.png", Size::Hd, Coding::Png(Png::Rgb)),
    png("rgb16.png", Png::Rgb16),
    png("rgba.png", Png::Rgba),
    png("grey.png", Png::Grey),
    png("grey16.png", Png::Grey16),
    png("grey-alpha.png", Png::GreyAlpha),
    png("palette.png", Png::Palette),
    png("palette-alpha.png", Png::PaletteAlpha),
    png("interlaced.png", Png::Interlaced),
    lossless("rgb.webp", Lossless::WebP),
    lossless("rgba.webp", Lossless::WebPAlpha),
    lossless("palette.gif", Lossless::Gif),
    lossless("rgb.bmp", Lossless::Bmp),
    lossless("rgb.tiff", Lossless::Tiff),
    lossless("rgb.ppm", Lossless::Ppm),
    lossless("rgb.qoi", Lossless::Qoi),
];

/// The form of picture `i` of the set.
pub(super) fn form_of(seed: u64, i: u64) -> &'static Form {
    // The number of forms is a prime, so each comes once in a cycle.
    let cycle = FORMS.len() as u64;
    let turn = hash(hash(seed, 1), i / cycle) % cycle;
    &FORMS[((i % cycle * 13 + turn) % cycle) as usize]
}

impl Form {
    pub(super) fn size(&self, s: &mut Stream) -> (u16, u16) {
        let mut side = |low: u16, spread: u32| low + s.below(spread) as u16;
        let (long, short) = match self.size {
            Size::Tiny => return (side(8, 64), side(8, 64)),
            Size::Small => return (side(160, 161), side(160, 161)),
            Size::Photo => return photo::size(s),
            Size::Hd => (1920, 1080),
            Size::Uhd => (3840, 2160),
        };
        if s.below(3) == 0 {
            (short, long)
        } else {
            (long, short)
        }
    }
}

#[cfg(test)]
mod tests;
