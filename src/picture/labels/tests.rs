use std::io::Cursor;

use image::{GrayImage, ImageFormat, Luma, Rgb, RgbImage};
use png::{BitDepth, ColorType};

use super::label_form::{LABEL, LabelForm};
use super::reader::LabelImageReader;
use crate::error::{FaultKind, SampleFault};
use crate::picture::jpeg::PixelRegion;
use crate::picture::jpeg::fixtures::{self, Sampling};
use crate::picture::limits::PictureLimits;

const SIZE: (u32, u32) = (13, 7);

/// A PNG of these packed rows.
fn png(color: ColorType, depth: BitDepth, rows: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, SIZE.0, SIZE.1);
    encoder.set_color(color);
    encoder.set_depth(depth);
    if color == ColorType::Indexed {
        // Colours that no label may become.
        encoder.set_palette(
            (0..3 * 256)
                .map(|i| (i * 7 % 251) as u8)
                .collect::<Vec<_>>(),
        );
    }
    let mut writer = encoder.write_header().unwrap();
    writer.write_image_data(rows).unwrap();
    writer.finish().unwrap();
    bytes
}

/// Label `(x, y)` of every test image, below 2 to the power of `bits`.
fn label(x: u32, y: u32, bits: u32) -> u32 {
    (x * 31 + y * 57 + x * y) % (1 << bits)
}

/// The rows of labels with this number of bits.
fn packed(bits: u32) -> Vec<u8> {
    let mut rows = Vec::new();
    for y in 0..SIZE.1 {
        let row: Vec<u32> = (0..SIZE.0).map(|x| label(x, y, bits)).collect();
        match bits {
            16 => rows.extend(row.iter().flat_map(|&v| (v as u16).to_be_bytes())),
            _ => rows.extend(row.chunks(8 / bits as usize).map(|labels| {
                let shifts = (0..8).step_by(bits as usize);
                let bits = labels
                    .iter()
                    .zip(shifts)
                    .map(|(v, at)| v << (8 - bits - at));
                bits.sum::<u32>() as u8
            })),
        }
    }
    rows
}

fn read(bytes: &[u8], form: LabelForm, window: PixelRegion) -> Result<Vec<u32>, SampleFault> {
    let reader = LabelImageReader::open(bytes, form, &PictureLimits::default())?;
    assert_eq!(reader.size(), SIZE);
    let mut labels = vec![9; 4];
    reader.read_window(window, None, &mut labels)?;
    assert_eq!(labels.len(), LABEL * (window.w * window.h) as usize);
    let number = |l: &[u8]| u32::from_le_bytes([l[0], l[1], l[2], 0]);
    Ok(labels.chunks_exact(LABEL).map(number).collect())
}

const WHOLE: PixelRegion = PixelRegion {
    x: 0,
    y: 0,
    w: SIZE.0,
    h: SIZE.1,
};

fn wanted(window: PixelRegion, label: impl Fn(u32, u32) -> u32) -> Vec<u32> {
    let rows = window.y..window.y + window.h;
    let columns = window.x..window.x + window.w;
    rows.flat_map(|y| columns.clone().map(move |x| (x, y)))
        .map(|(x, y)| label(x, y))
        .collect()
}

#[test]
fn indices_and_levels_are_those_of_the_file_in_every_window() {
    let windows = [
        WHOLE,
        PixelRegion {
            x: 3,
            y: 2,
            w: 5,
            h: 4,
        },
        PixelRegion {
            x: 12,
            y: 6,
            w: 1,
            h: 1,
        },
        PixelRegion {
            x: 0,
            y: 6,
            w: 13,
            h: 1,
        },
    ];
    let files = [
        (ColorType::Indexed, BitDepth::One, 1, 1),
        (ColorType::Indexed, BitDepth::Two, 2, 1),
        (ColorType::Indexed, BitDepth::Four, 4, 1),
        (ColorType::Indexed, BitDepth::Eight, 8, 1),
        (ColorType::Grayscale, BitDepth::One, 1, 1),
        (ColorType::Grayscale, BitDepth::Two, 2, 85),
        (ColorType::Grayscale, BitDepth::Four, 4, 17),
        (ColorType::Grayscale, BitDepth::Eight, 8, 1),
        (ColorType::Grayscale, BitDepth::Sixteen, 16, 1),
    ];
    for (color, depth, bits, step) in files {
        let file = png(color, depth, &packed(bits));
        for window in windows {
            let got = read(&file, LabelForm::Numbers, window).unwrap();
            let want = wanted(window, |x, y| label(x, y, bits) * step);
            assert_eq!(got, want, "{color:?} {depth:?} {window:?}");
        }
    }
}

#[test]
fn colours_are_labels_only_where_that_is_requested() {
    let panoptic = RgbImage::from_fn(SIZE.0, SIZE.1, |x, y| {
        let [r, g, b, _] = label(x, y, 24).to_le_bytes();
        Rgb([r, g, b])
    });
    let grey = RgbImage::from_fn(SIZE.0, SIZE.1, |x, y| Rgb([label(x, y, 8) as u8; 3]));
    let file = |image: &RgbImage| {
        let mut bytes = Cursor::new(Vec::new());
        image.write_to(&mut bytes, ImageFormat::Png).unwrap();
        bytes.into_inner()
    };
    let of = |image, form| read(&file(image), form, WHOLE);
    let ids = wanted(WHOLE, |x, y| label(x, y, 24));
    assert_eq!(of(&panoptic, LabelForm::Colors).unwrap(), ids);
    let fault = of(&panoptic, LabelForm::Numbers).unwrap_err();
    assert_eq!(fault.kind, FaultKind::Unsupported);
    assert!(fault.reason.contains("form: colors"), "{fault}");
    let levels = wanted(WHOLE, |x, y| label(x, y, 8));
    assert_eq!(of(&grey, LabelForm::Numbers).unwrap(), levels);
    let numbers = png(ColorType::Indexed, BitDepth::Eight, &packed(8));
    let fault = read(&numbers, LabelForm::Colors, WHOLE).unwrap_err();
    assert!(fault.reason.contains("colour type 3"), "{fault}");
}

#[test]
fn other_formats_have_whole_numbers_or_are_rejected() {
    let of_tiff = |pixels: &[f32]| {
        use tiff::encoder::{TiffEncoder, colortype};
        let mut bytes = Cursor::new(Vec::new());
        let mut encoder = TiffEncoder::new(&mut bytes).unwrap();
        let written = encoder.write_image::<colortype::Gray32Float>(SIZE.0, SIZE.1, pixels);
        written.unwrap();
        bytes.into_inner()
    };
    let window = PixelRegion {
        x: 1,
        y: 3,
        w: 9,
        h: 2,
    };
    let mut pixels: Vec<f32> = wanted(WHOLE, |x, y| label(x, y, 24))
        .into_iter()
        .map(|v| v as f32)
        .collect();
    let got = read(&of_tiff(&pixels), LabelForm::Numbers, window).unwrap();
    assert_eq!(got, wanted(window, |x, y| label(x, y, 24)));
    for bad in [-1.0, 0.5, 16_777_216.0, f32::NAN, f32::INFINITY] {
        // The first label lies outside the window.
        pixels[0] = bad;
        let fault = read(&of_tiff(&pixels), LabelForm::Numbers, window).unwrap_err();
        assert_eq!(fault.kind, FaultKind::Corrupt);
        assert!(fault.reason.contains("whole number"), "{fault}");
    }
    let mut bmp = Cursor::new(Vec::new());
    let grey = GrayImage::from_pixel(SIZE.0, SIZE.1, Luma([3]));
    grey.write_to(&mut bmp, ImageFormat::Bmp).unwrap();
    let jpeg = fixtures::jpeg(SIZE.0, SIZE.1, Sampling::S444);
    for (file, what) in [
        (jpeg, "compression changes labels"),
        (bmp.into_inner(), "is a BMP"),
    ] {
        let fault = read(&file, LabelForm::Numbers, WHOLE).unwrap_err();
        assert!(fault.reason.contains(what), "{fault}");
    }
}

#[test]
fn cut_files_are_faults_in_every_window() {
    let whole = png(ColorType::Indexed, BitDepth::Eight, &packed(8));
    let corner = PixelRegion {
        x: 0,
        y: 0,
        w: 1,
        h: 1,
    };
    for end in 0..whole.len() {
        let fault = match read(&whole[..end], LabelForm::Numbers, corner) {
            Err(fault) => fault,
            Ok(_) => panic!("{end} of {} bytes are a whole mask", whole.len()),
        };
        assert_ne!(fault.kind, FaultKind::Unknown, "{end}: {fault}");
    }
}
