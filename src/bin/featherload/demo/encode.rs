//! Encodes pixels to file bytes with other crates. The encoder versions in Cargo.lock are part of
//! what fixes the bytes.

use std::io::{self, Cursor};

use image::codecs::png::{CompressionType, FilterType, PngEncoder};
use image::codecs::pnm::{PnmEncoder, PnmSubtype, SampleEncoding};
use image::{ExtendedColorType, ImageEncoder, ImageFormat, RgbImage, imageops};
use jpeg_encoder::{ChromaSubsamplingMethod, ColorType, Encoder, EncodingError, SamplingFactor};

use super::chunks;
use super::random::hash;

/// The format of an image file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JpegCoding {
    Jpeg(JpegOptions),
    Png(PngOptions),
    Lossless(LosslessForm),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JpegOptions {
    Grey,
    Baseline(ChromaSampling),
    Progressive(ChromaSampling),
    /// Stored turned. This EXIF orientation (2 to 8) turns it upright.
    Turned(u8),
    /// CMYK as Adobe writes it: inverted.
    Cmyk,
    /// The same as luma, two chroma channels and black.
    Ycck,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChromaSampling {
    /// Every pixel has its own colour (4:4:4).
    Full,
    /// Each 2 x 2 pixels share one colour (4:2:0).
    Quarter,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PngOptions {
    Rgb,
    Rgb16,
    Rgba,
    Grey,
    Grey16,
    GreyAlpha,
    Palette,
    /// One entry of the palette is transparent.
    PaletteAlpha,
    /// RGB in the seven passes of Adam7.
    Interlaced,
}

/// Formats with a single variant, or one more with alpha.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LosslessForm {
    WebP,
    WebPAlpha,
    Gif,
    Bmp,
    Tiff,
    Ppm,
    Qoi,
}

impl JpegCoding {
    /// Encodes `width` x `height` RGB pixels. `quality`, 1 to 100, applies to JPEG.
    pub(super) fn encode(
        self,
        width: u16,
        height: u16,
        rgb: Vec<u8>,
        quality: u8,
    ) -> io::Result<Vec<u8>> {
        let size = (u32::from(width), u32::from(height));
        match self {
            Self::Jpeg(form) => jpeg(form, width, height, rgb, quality).map_err(io::Error::other),
            Self::Png(form) => png(form, size, &rgb),
            Self::Lossless(form) => lossless(form, size, &rgb),
        }
    }
}

fn jpeg(
    form: JpegOptions,
    width: u16,
    height: u16,
    rgb: Vec<u8>,
    quality: u8,
) -> Result<Vec<u8>, EncodingError> {
    let mut size = (width, height);
    let mut pixels = rgb;
    let mut colour = ColorType::Rgb;
    let mut bytes = Vec::new();
    let mut encoder = Encoder::new(&mut bytes, quality);
    match form {
        JpegOptions::Grey => (pixels, colour) = (grey(&pixels), ColorType::Luma),
        JpegOptions::Baseline(chroma) => sample(&mut encoder, chroma),
        JpegOptions::Progressive(chroma) => {
            sample(&mut encoder, chroma);
            encoder.set_progressive(true);
            encoder.set_optimized_huffman_tables(true);
        }
        JpegOptions::Turned(orientation) => {
            sample(&mut encoder, ChromaSampling::Quarter);
            encoder.add_exif_metadata(&exif(orientation))?;
            (size, pixels) = turned(orientation, size, pixels);
        }
        JpegOptions::Cmyk => (pixels, colour) = (inks(&pixels), ColorType::Cmyk),
        JpegOptions::Ycck => (pixels, colour) = (inks(&pixels), ColorType::CmykAsYcck),
    }
    encoder.encode(&pixels, size.0, size.1, colour)?;
    Ok(bytes)
}

fn sample<W: jpeg_encoder::JfifWrite>(encoder: &mut Encoder<W>, chroma: ChromaSampling) {
    encoder.set_chroma_subsampling_method(ChromaSubsamplingMethod::Average);
    encoder.set_sampling_factor(match chroma {
        ChromaSampling::Full => SamplingFactor::F_1_1,
        ChromaSampling::Quarter => SamplingFactor::F_2_2,
    });
}

/// The luma of JPEG, in 256ths.
fn grey(rgb: &[u8]) -> Vec<u8> {
    rgb.chunks_exact(3)
        .map(|p| {
            let sum = 77 * u32::from(p[0]) + 150 * u32::from(p[1]) + 29 * u32::from(p[2]);
            ((sum + 128) >> 8) as u8
        })
        .collect()
}

/// Cyan, magenta, yellow and black: 0 is no ink.
fn inks(rgb: &[u8]) -> Vec<u8> {
    rgb.chunks_exact(3)
        .flat_map(|p| {
            let lightest = p[0].max(p[1]).max(p[2]);
            let ink = |v: u8| {
                let missing = u32::from(lightest - v) * 255;
                (missing / u32::from(lightest).max(1)) as u8
            };
            [ink(p[0]), ink(p[1]), ink(p[2]), 255 - lightest]
        })
        .collect()
}

/// TIFF's header and one directory with one entry: the orientation. The byte order is
/// little-endian for even orientations, big-endian for odd ones.
fn exif(orientation: u8) -> Vec<u8> {
    const TAG: u16 = 0x0112;
    const SHORT: u16 = 3;
    let big = orientation % 2 == 1;
    let two = |v: u16| {
        if big {
            v.to_be_bytes()
        } else {
            v.to_le_bytes()
        }
    };
    let four = |v: u32| {
        if big {
            v.to_be_bytes()
        } else {
            v.to_le_bytes()
        }
    };
    let mut bytes = if big { b"MM" } else { b"II" }.to_vec();
    bytes.extend(two(42));
    bytes.extend(four(8));
    bytes.extend([1, TAG, SHORT].map(two).as_flattened());
    bytes.extend(four(1));
    bytes.extend([orientation.into(), 0].map(two).as_flattened());
    bytes.extend(four(0));
    bytes
}

/// The pixels as a turned camera would have stored them: applying `orientation` makes them upright
/// again.
fn turned(orientation: u8, size: (u16, u16), rgb: Vec<u8>) -> ((u16, u16), Vec<u8>) {
    // The caller guarantees the length.
    let Some(upright) = RgbImage::from_raw(size.0.into(), size.1.into(), rgb) else {
        return (size, Vec::new());
    };
    let kept = match orientation {
        2 => imageops::flip_horizontal(&upright),
        3 => imageops::rotate180(&upright),
        4 => imageops::flip_vertical(&upright),
        5 => imageops::flip_horizontal(&imageops::rotate90(&upright)),
        6 => imageops::rotate270(&upright),
        7 => imageops::flip_horizontal(&imageops::rotate270(&upright)),
        8 => imageops::rotate90(&upright),
        _ => upright,
    };
    let (width, height) = kept.dimensions();
    ((width as u16, height as u16), kept.into_raw())
}

pub(super) fn png_of(
    (width, height): (u32, u32),
    pixels: &[u8],
    colour: ExtendedColorType,
) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    PngEncoder::new_with_quality(&mut bytes, CompressionType::Fast, FilterType::Adaptive)
        .write_image(pixels, width, height, colour)
        .map_err(io::Error::other)?;
    Ok(bytes)
}

fn png(form: PngOptions, size: (u32, u32), rgb: &[u8]) -> io::Result<Vec<u8>> {
    let by_image = |pixels: &[u8], colour| png_of(size, pixels, colour);
    match form {
        PngOptions::Rgb => by_image(rgb, ExtendedColorType::Rgb8),
        PngOptions::Rgb16 => by_image(&deep(rgb), ExtendedColorType::Rgb16),
        PngOptions::Rgba => by_image(&with_alpha(size, rgb, 3), ExtendedColorType::Rgba8),
        PngOptions::Grey => by_image(&grey(rgb), ExtendedColorType::L8),
        PngOptions::Grey16 => by_image(&deep(&grey(rgb)), ExtendedColorType::L16),
        PngOptions::GreyAlpha => by_image(&with_alpha(size, &grey(rgb), 1), ExtendedColorType::La8),
        PngOptions::Palette => palette_png(size, &cube_indices(size, rgb), false),
        PngOptions::PaletteAlpha => {
            let mut indices = cube_indices(size, rgb);
            for (index, alpha) in indices.iter_mut().zip(alpha(size)) {
                if alpha < 128 {
                    *index = CLEAR;
                }
            }
            palette_png(size, &indices, true)
        }
        PngOptions::Interlaced => chunks::interlaced(size, rgb),
    }
}

/// 16 bits a channel: the low byte is noise, as from a sensor. Native byte order, as the encoder
/// expects.
fn deep(samples: &[u8]) -> Vec<u8> {
    samples
        .iter()
        .enumerate()
        .flat_map(|(i, &v)| u16::from_be_bytes([v, hash(16, i as u64) as u8]).to_ne_bytes())
        .collect()
}

/// Opaque in the middle, clear in the corners, with every value between.
fn alpha(size: (u32, u32)) -> impl Iterator<Item = u8> {
    const ONE: i64 = 1024;
    let off = |i: u32, n: u32| (i64::from(i) * 2 + 1 - i64::from(n)) * ONE / i64::from(n);
    (0..size.1).flat_map(move |y| {
        (0..size.0).map(move |x| {
            let (dx, dy) = (off(x, size.0), off(y, size.1));
            let inside = ONE * ONE - (dx * dx + dy * dy);
            (inside * 640 / (ONE * ONE)).clamp(0, 255) as u8
        })
    })
}

fn with_alpha(size: (u32, u32), samples: &[u8], channels: usize) -> Vec<u8> {
    samples
        .chunks_exact(channels)
        .zip(alpha(size))
        .flat_map(|(p, a)| p.iter().copied().chain([a]))
        .collect()
}

/// Levels of each channel in a palette of 6 x 6 x 6 colours.
const LEVELS: u8 = 6;
/// The palette entry after the colours: the transparent one.
const CLEAR: u8 = 216;

fn cube_colours() -> impl Iterator<Item = [u8; 3]> {
    (0..CLEAR).map(|i| [i / 36, i / 6 % 6, i % 6].map(|level| level * (255 / (LEVELS - 1))))
}

/// The nearest colours of the palette, with ordered dither.
fn cube_indices(size: (u32, u32), rgb: &[u8]) -> Vec<u8> {
    const BAYER: [[u32; 4]; 4] = [[0, 8, 2, 10], [12, 4, 14, 6], [3, 11, 1, 9], [15, 7, 13, 5]];
    let width = size.0 as usize;
    rgb.chunks_exact(3)
        .enumerate()
        .map(|(i, p)| {
            // In sixteenths of a step, plus a half.
            let lift = BAYER[i / width % 4][i % width % 4];
            let level = |v: u8| (u32::from(v) * u32::from(LEVELS - 1) * 16 / 255 + lift) / 16;
            (level(p[0]) * 36 + level(p[1]) * 6 + level(p[2])) as u8
        })
        .collect()
}

fn palette_png(size: (u32, u32), indices: &[u8], clear: bool) -> io::Result<Vec<u8>> {
    let mut palette: Vec<u8> = cube_colours().flatten().collect();
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, size.0, size.1);
    encoder.set_color(png::ColorType::Indexed);
    encoder.set_depth(png::BitDepth::Eight);
    if clear {
        palette.extend([255, 0, 255]);
        let mut opacity = vec![255; CLEAR.into()];
        opacity.push(0);
        encoder.set_trns(opacity);
    }
    encoder.set_palette(palette);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(indices)?;
    writer.finish()?;
    Ok(bytes)
}

fn lossless(form: LosslessForm, size: (u32, u32), rgb: &[u8]) -> io::Result<Vec<u8>> {
    let mut bytes = Cursor::new(Vec::new());
    let mut write = |format, pixels: &[u8], colour| {
        image::write_buffer_with_format(&mut bytes, pixels, size.0, size.1, colour, format)
    };
    match form {
        LosslessForm::WebP => write(ImageFormat::WebP, rgb, ExtendedColorType::Rgb8),
        LosslessForm::WebPAlpha => write(
            ImageFormat::WebP,
            &with_alpha(size, rgb, 3),
            ExtendedColorType::Rgba8,
        ),
        LosslessForm::Gif => {
            // With at most 216 colours the encoder has no choice.
            let colours: Vec<[u8; 3]> = cube_colours().collect();
            let indices = cube_indices(size, rgb).into_iter();
            let rgb = indices.map(|i| colours[usize::from(i)]);
            let rgba: Vec<u8> = rgb.flat_map(|[r, g, b]| [r, g, b, 255]).collect();
            write(ImageFormat::Gif, &rgba, ExtendedColorType::Rgba8)
        }
        LosslessForm::Bmp => write(ImageFormat::Bmp, rgb, ExtendedColorType::Rgb8),
        LosslessForm::Tiff => write(ImageFormat::Tiff, rgb, ExtendedColorType::Rgb8),
        LosslessForm::Ppm => PnmEncoder::new(&mut bytes)
            .with_subtype(PnmSubtype::Pixmap(SampleEncoding::Binary))
            .write_image(rgb, size.0, size.1, ExtendedColorType::Rgb8),
        LosslessForm::Qoi => write(ImageFormat::Qoi, rgb, ExtendedColorType::Rgb8),
    }
    .map_err(io::Error::other)?;
    Ok(bytes.into_inner())
}
