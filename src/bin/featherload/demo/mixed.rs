//! The formats of the mixed set's images.

use super::encode::{ChromaSampling, JpegCoding, JpegOptions, LosslessForm, PngOptions};
use super::photo;
use super::random::{RandomStream, hash};

/// The size class of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Size {
    /// 8 to 71 pixels a side.
    Tiny,
    /// 160 to 320 pixels a side.
    Small,
    /// Sizes of ImageNet's photos.
    Photo,
    /// 1920 x 1080, or upright.
    Hd,
    /// 3840 x 2160, or upright.
    Uhd,
}

/// A file format, and the extension of its files.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FileEncoding {
    pub(super) name: &'static str,
    pub(super) coding: JpegCoding,
    size: Size,
}

const fn form(name: &'static str, size: Size, coding: JpegCoding) -> FileEncoding {
    FileEncoding { name, coding, size }
}

const fn jpeg(name: &'static str, size: Size, jpeg: JpegOptions) -> FileEncoding {
    form(name, size, JpegCoding::Jpeg(jpeg))
}

const fn png(name: &'static str, png: PngOptions) -> FileEncoding {
    form(name, Size::Small, JpegCoding::Png(png))
}

const fn lossless(name: &'static str, lossless: LosslessForm) -> FileEncoding {
    form(name, Size::Small, JpegCoding::Lossless(lossless))
}

const QUARTER: JpegOptions = JpegOptions::Baseline(ChromaSampling::Quarter);
const FULL: JpegOptions = JpegOptions::Baseline(ChromaSampling::Full);

/// One image of each format in every 37, in an order that changes each time.
pub(super) const FORMS: [FileEncoding; 37] = [
    jpeg("420.jpg", Size::Photo, QUARTER),
    jpeg("444.jpg", Size::Photo, FULL),
    jpeg("420-tiny.jpg", Size::Tiny, QUARTER),
    jpeg("420-hd.jpg", Size::Hd, QUARTER),
    jpeg("420-4k.jpg", Size::Uhd, QUARTER),
    jpeg(
        "progressive-420.jpg",
        Size::Hd,
        JpegOptions::Progressive(ChromaSampling::Quarter),
    ),
    jpeg(
        "progressive-444.jpg",
        Size::Photo,
        JpegOptions::Progressive(ChromaSampling::Full),
    ),
    jpeg("grey.jpg", Size::Photo, JpegOptions::Grey),
    jpeg("cmyk.jpg", Size::Photo, JpegOptions::Cmyk),
    jpeg("ycck.jpg", Size::Photo, JpegOptions::Ycck),
    jpeg("exif2.jpg", Size::Photo, JpegOptions::Turned(2)),
    jpeg("exif3.jpg", Size::Photo, JpegOptions::Turned(3)),
    jpeg("exif4.jpg", Size::Photo, JpegOptions::Turned(4)),
    jpeg("exif5.jpg", Size::Photo, JpegOptions::Turned(5)),
    jpeg("exif6.jpg", Size::Photo, JpegOptions::Turned(6)),
    jpeg("exif7.jpg", Size::Photo, JpegOptions::Turned(7)),
    jpeg("exif8.jpg", Size::Photo, JpegOptions::Turned(8)),
    // The content decides, not the name.
    jpeg("jpeg-inside.png", Size::Photo, QUARTER),
    png("png-inside.jpg", PngOptions::Rgb),
    png("rgb.png", PngOptions::Rgb),
    form("rgb-tiny.png", Size::Tiny, JpegCoding::Png(PngOptions::Rgb)),
    form("rgb-hd.png", Size::Hd, JpegCoding::Png(PngOptions::Rgb)),
    png("rgb16.png", PngOptions::Rgb16),
    png("rgba.png", PngOptions::Rgba),
    png("grey.png", PngOptions::Grey),
    png("grey16.png", PngOptions::Grey16),
    png("grey-alpha.png", PngOptions::GreyAlpha),
    png("palette.png", PngOptions::Palette),
    png("palette-alpha.png", PngOptions::PaletteAlpha),
    png("interlaced.png", PngOptions::Interlaced),
    lossless("rgb.webp", LosslessForm::WebP),
    lossless("rgba.webp", LosslessForm::WebPAlpha),
    lossless("palette.gif", LosslessForm::Gif),
    lossless("rgb.bmp", LosslessForm::Bmp),
    lossless("rgb.tiff", LosslessForm::Tiff),
    lossless("rgb.ppm", LosslessForm::Ppm),
    lossless("rgb.qoi", LosslessForm::Qoi),
];

/// The format of image `i` of the set.
pub(super) fn form_of(seed: u64, i: u64) -> &'static FileEncoding {
    // The number of formats is a prime, so each comes once in a cycle.
    let cycle = FORMS.len() as u64;
    let turn = hash(hash(seed, 1), i / cycle) % cycle;
    &FORMS[((i % cycle * 13 + turn) % cycle) as usize]
}

impl FileEncoding {
    pub(super) fn size(&self, s: &mut RandomStream) -> (u16, u16) {
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
