//! A coded crop that is handed over, decoded by the CPU in the device's place, is the row of pixels
//! that a worker hands over.

use super::*;
use crate::decode_plan::crop_row::{CROP_HEADER_CODED, CropHeader};
use crate::device::jpeg_part::PartLimits;
use crate::device::tests::reference::cpu_resize::resized;
use crate::device::tests::reference::worker_rows::{PARTS, handed_coded};
use crate::picture::PictureLimits;
use crate::picture::jpeg::fixtures::{self, Sampling};
use crate::picture::jpeg::gpu_rows::CodedPicture;
use crate::picture::jpeg::{DecodeScale, JpegDecoder, JpegScratch, PixelRegion, read_header};
use crate::recipe::{
    CenterCrop, CropRowBytes, InterpolationMode, RandomHorizontalFlip, RandomVerticalFlip,
};

/// What a device makes of a coded row.
struct Decoded {
    /// The row with its pixels.
    row: Vec<u8>,
    scale: DecodeScale,
    is_resized: bool,
}

/// The row with the pixels of its coded crop, which is a part of `file`.
fn decoded(file: &[u8], row: &[u8], header: &CropHeader, room: CropRowBytes) -> Decoded {
    let coded = &row[room.pixels_at()..][..header.coded as usize];
    let size = (header.width, header.height);
    let read = CodedPicture::read_as(coded, size).unwrap();
    assert_eq!(read.picture.size() != size, read.resize.is_some());
    // It begins with the picture's size, the side of a block and the window.
    let number = |n: usize| u32::from_ne_bytes(coded[4 * n..][..4].try_into().unwrap());
    let scale = DecodeScale::of_denominator(8 / number(2));
    let want = PixelRegion {
        x: number(3),
        y: number(4),
        w: number(5),
        h: number(6),
    };
    let of_file = read_header(file).unwrap();
    assert_eq!([number(0), number(1)], [of_file.width, of_file.height]);
    let mut scratch = JpegScratch::default();
    let decoder = JpegDecoder::new(&PictureLimits::default());
    let there = decoder
        .decode_region(file, &of_file, scale, want, &mut scratch)
        .unwrap();
    assert_eq!(
        (there.x, there.y, there.stride),
        (want.x, want.y, 3 * want.w as usize)
    );
    let mut all = row.to_vec();
    all[CROP_HEADER_CODED].fill(0);
    let mut pixels = scratch.rgb[..there.stride * want.h as usize].to_vec();
    if read.resize.is_some() {
        let tables = &coded[read.data.start + read.coded_bytes()..read.data.end];
        let [from, to] =
            [(want.w, want.h), size].map(|(width, height)| (width as usize, height as usize));
        pixels = resized(tables, &pixels, from, to);
    }
    all[room.pixels_at()..][..pixels.len()].copy_from_slice(&pixels);
    Decoded {
        row: all,
        scale,
        is_resized: read.resize.is_some(),
    }
}

#[test]
fn a_coded_crop_is_the_row_of_pixels_of_a_worker() {
    let mode = |mode| Decode {
        mode: Some(mode),
        ..Decode::default()
    };
    type Build = fn(Recipe) -> Recipe;
    let recipes: [Build; 3] = [
        |r| {
            r.then(RandomResizedCrop::new(96))
                .then(RandomHorizontalFlip::default())
                .then(RandomVerticalFlip::default())
        },
        |r| r.then(Resize::shorter(100)).then(CenterCrop::new(90)),
        |r| r.then(CenterCrop::new(140)),
    ];
    let mut seen = Seen::default();
    for (i, build) in recipes.into_iter().enumerate() {
        for decode in [DecodeMode::Scaled, DecodeMode::Full] {
            let recipe = build(Recipe::new("coded").then(mode(decode)));
            let recipe = recipe.then(Cast {
                dtype: DataType::F32,
            });
            let program = SampleProgram::compile(&recipe).unwrap();
            let program = program.with_crops().unwrap();
            for (n, sampling) in (0u64..).zip(SAMPLINGS) {
                for turn in 0..=8u8 {
                    let (w, h) = (150 + 31 * u32::from(turn), 320 - 23 * n as u32);
                    let restarts = i32::from(turn % 3);
                    let mut file = fixtures::encode(w, h, sampling, 60, false, restarts);
                    if turn > 0 {
                        file = fixtures::turned(file, turn);
                    }
                    let position = 100 * n + u64::from(turn);
                    let handed_over =
                        handed_coded(&program, &file, position, &PARTS, &PictureLimits::default());
                    let (pixels, of_pixels, _) = handed(&program, &file, position, None).unwrap();
                    let Some((row, header, room)) = handed_over.unwrap() else {
                        // No room for its pixels, or for its coded data.
                        seen.add(&format!("{i}: not for a device"));
                        continue;
                    };
                    let all_but = CropHeader { coded: 0, ..header };
                    assert_eq!(all_but, of_pixels);
                    let decoded = decoded(&file, &row, &header, room);
                    let end = room.pixels_at() + all_but.payload_bytes() as usize;
                    assert!(decoded.row[..end] == pixels[..end], "{sampling:?} {turn}");
                    let scale = decoded.scale.denominator();
                    seen.add(&match decoded.is_resized {
                        true => format!("{i}: resized"),
                        false => format!("{i}: {decode:?} at 1/{scale}"),
                    });
                }
            }
        }
    }
    seen.at_least(&[
        ("0: Scaled at 1/2", 5),
        ("0: Scaled at 1/1", 5),
        ("0: Full at 1/1", 5),
        ("1: Scaled at 1/2", 20),
        ("1: Full at 1/1", 1),
        ("2: Full at 1/1", 30),
        ("1: resized", 5),
    ]);
}

/// Crops that have no room as pixels: with every filter, either pass first, an axis that is copied
/// or enlarged.
#[test]
fn a_crop_that_has_no_room_is_resized_as_by_a_worker() {
    let mut seen = Seen::default();
    let filters = [
        (InterpolationMode::Nearest, false),
        (InterpolationMode::Area, false),
        (InterpolationMode::Bilinear, true),
        (InterpolationMode::Bilinear, false),
        (InterpolationMode::Bicubic, true),
        (InterpolationMode::Bicubic, false),
        (InterpolationMode::Lanczos, true),
    ];
    // Height and width of the row, width and height of the picture.
    let sizes = [
        ((20, 24), (150, 320)),
        ((9, 31), (411, 200)),
        ((24, 150), (150, 320)),
        ((200, 11), (500, 200)),
        ((10, 100), (61, 1501)),
        ((1, 1), (300, 299)),
    ];
    for (n, (interpolation, antialias)) in filters.into_iter().enumerate() {
        for (number, ((height, width), (w, h))) in (0..).zip(sizes) {
            let resize = Resize {
                interpolation,
                antialias,
                ..Resize::exact(height, width)
            };
            let decode = Decode {
                mode: Some(DecodeMode::Full),
                ..Decode::default()
            };
            let recipe = Recipe::new("no room").then(decode).then(resize);
            let recipe = recipe.then(RandomHorizontalFlip::default());
            let program = SampleProgram::compile(&recipe.then(Cast {
                dtype: DataType::F32,
            }));
            let program = program.unwrap().with_crops().unwrap();
            let program = program.with_coded_bytes(256 << 10);
            let sampling = SAMPLINGS[(n + number) % SAMPLINGS.len()];
            let file = fixtures::encode(w, h, sampling, 80, false, 0);
            let position = (10 * n + number) as u64;
            let (pixels, of_pixels, _) = handed(&program, &file, position, None).unwrap();
            let limits = PictureLimits::default();
            let theirs = handed_coded(&program, &file, position, &PARTS, &limits).unwrap();
            let (row, header, room) = theirs.unwrap();
            assert_eq!(CropHeader { coded: 0, ..header }, of_pixels);
            let decoded = decoded(&file, &row, &header, room);
            let end = room.pixels_at() + of_pixels.payload_bytes() as usize;
            assert!(
                decoded.row[..end] == pixels[..end],
                "{resize:?} of {w} x {h}"
            );
            seen.add(if decoded.is_resized {
                "resized"
            } else {
                "fits"
            });
            // A part that has no room for the window.
            let few = PartLimits {
                pictures: 1,
                rows: 64 << 10,
                pixels: 1 << 10,
            };
            let theirs = handed_coded(&program, &file, position, &few, &limits);
            assert!(theirs.unwrap().is_none());
        }
    }
    seen.at_least(&[("resized", 30)]);
}

const SAMPLINGS: [Sampling; 6] = [
    Sampling::S444,
    Sampling::S422,
    Sampling::S420,
    Sampling::S440,
    Sampling::Grey,
    Sampling::AdobeRgb,
];

#[test]
fn what_is_not_for_a_device_keeps_the_verdict_of_workers() {
    let program = SampleProgram::compile(&Recipe::train224()).unwrap();
    let program = program.with_crops().unwrap();
    let limits = PictureLimits::default();
    let usual = fixtures::jpeg(300, 260, Sampling::S420);
    let of = |file: &[u8], parts: &PartLimits, limits: &PictureLimits| {
        let handed = handed_coded(&program, file, 3, parts, limits)?;
        Ok::<bool, String>(handed.is_some())
    };
    assert_eq!(of(&usual, &PARTS, &limits), Ok(true));
    // A worker decodes it.
    let progressive = fixtures::encode(300, 260, Sampling::S420, 90, true, 0);
    let arithmetic = fixtures::encode_arithmetic(300, 260, Sampling::S420, false);
    let inks = fixtures::jpeg(300, 260, Sampling::Cmyk);
    for file in [&progressive, &arithmetic, &inks] {
        assert_eq!(of(file, &PARTS, &limits), Ok(false));
    }
    // Larger than a part; more coded data than its row has room for.
    for parts in [
        PartLimits {
            rows: 4 << 10,
            ..PARTS
        },
        PartLimits {
            pictures: 1,
            rows: 64 << 10,
            pixels: 1 << 10,
        },
    ] {
        assert_eq!(of(&usual, &parts, &limits), Ok(false), "{parts:?}");
    }
    let noisy = fixtures::encode(1600, 1600, Sampling::S444, 100, false, 0);
    assert_eq!(of(&noisy, &PARTS, &limits), Ok(false));
    assert!(filled(&program, &noisy, 3, None, 1 << 20).is_ok());
    // Or it says why not, in the same words.
    let fault = |file: &[u8]| filled(&program, file, 3, None, 1 << 20).unwrap_err();
    let scans = [true, false].map(|kind| fixtures::many_scans(101, kind));
    assert!(fault(&scans[0]).starts_with("JPEG of more than 100 scans"));
    let (short, cut) = (&usual[..40], &usual[..usual.len() - 2]);
    for file in [short, cut, b"GIF89a, or so", &scans[0], &scans[1]] {
        assert_eq!(of(file, &PARTS, &limits), Err(fault(file)));
    }
    let few = PictureLimits {
        max_pixels: 300 * 260 - 1,
        ..limits
    };
    let small = PictureLimits {
        max_scratch: 1000,
        ..limits
    };
    for (limits, word) in [(few, "max_pixels"), (small, "max_scratch")] {
        let message = of(&usual, &PARTS, &limits).unwrap_err();
        assert!(message.contains(word), "{message}");
    }
}

/// How many rows a device decodes of photos.
#[test]
fn most_rows_of_photos_can_be_handed_over() {
    let photos = fixtures::photos();
    for recipe in [Recipe::train224(), Recipe::eval224()] {
        let name = recipe.name.clone();
        let program = SampleProgram::compile(&recipe).unwrap();
        let program = program.with_crops().unwrap();
        let mut taken = 0;
        for (position, (path, file)) in (0..).zip(&photos) {
            let handed = handed_coded(&program, file, position, &PARTS, &PictureLimits::default());
            let handed = handed.unwrap_or_else(|why| panic!("{}: {why}", path.display()));
            taken += usize::from(handed.is_some());
        }
        println!("{name}: {taken} of {}", photos.len());
        assert!(10 * taken >= 9 * photos.len(), "{name}: {taken}");
    }
}
