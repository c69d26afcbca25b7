//! Raw pixels give the rows of the PNG that holds the same ones, whatever a recipe
//! makes of them, and take nothing that need not be taken.

use std::cell::Cell;
use std::io::Cursor;

use image::{DynamicImage, GrayImage, ImageFormat, RgbImage};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use crate::jobs::sample::moves_tests::recipes;
use crate::jobs::sample::{RowRequest, SampleDecoder};
use crate::order::PositionRandom;
use crate::picture::{PictureLimits, npy};
use crate::pool::worker::meter::StageMeter;
use crate::recipe::{
    CenterCrop, ColorOrder, DataType, Decode, MemoryLayout, Pad, Padding, RandomHorizontalFlip,
    Recipe, Resize, RowExtent, SampleProgram,
};

/// Height and width.
type Size = (u32, u32);

/// Noise: no pixel can be missed, nor another taken for it.
fn pixels((height, width): Size, channels: u32) -> Vec<u8> {
    let mut state = 9u32;
    let next = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..height * width * channels).map(next).collect()
}

/// The same pixels as an array and as a PNG.
fn twins(size: Size, channels: u32) -> [Vec<u8>; 2] {
    let pixels = pixels(size, channels);
    let npy = [&npy::header(size, channels)[..], &pixels].concat();
    let (height, width) = size;
    let picture = match channels {
        1 => DynamicImage::from(GrayImage::from_raw(width, height, pixels).unwrap()),
        _ => DynamicImage::from(RgbImage::from_raw(width, height, pixels).unwrap()),
    };
    let mut png = Cursor::new(Vec::new());
    picture.write_to(&mut png, ImageFormat::Png).unwrap();
    [npy, png.into_inner()]
}

/// What is kept of a row: its bytes, or why there are none.
type Made = std::result::Result<Vec<u8>, String>;

fn decoder(program: &SampleProgram) -> SampleDecoder {
    SampleDecoder::new(program, &PictureLimits::default()).unwrap()
}

fn made(decoder: &mut SampleDecoder, file: &[u8], size: Size, position: u64) -> Made {
    let program = decoder.program();
    let extent = match program.extent {
        RowExtent::Fixed { height, width } => (height, width),
        RowExtent::Own | RowExtent::Patches(_) => size,
    };
    let bytes = match &program.crops {
        Some(rule) => rule.row_bytes(extent).row_bytes(),
        None => program.row_bytes(extent) as usize,
    };
    let mut out = vec![0xa5; bytes + 5];
    let request = RowRequest {
        random: &PositionRandom::new(7, 1, position),
        size: None,
        part: None,
        boxes: None,
        check_size: &|_| Ok(()),
    };
    let filled = decoder.make_row(file, &request, &mut out, &mut StageMeter::default());
    assert_eq!(out[bytes..], [0xa5; 5], "behind the row");
    out.truncate(bytes);
    filled.map(|()| out).map_err(|fault| fault.reason)
}

/// What workers write, and what they hand over to a device where one can do the rest.
fn programs(recipe: &Recipe) -> Vec<SampleProgram> {
    let rows = SampleProgram::compile(recipe).unwrap();
    let crops = rows.with_crops().ok();
    std::iter::once(rows).chain(crops).collect()
}

#[test]
fn rows_are_those_of_the_png() {
    let mut runner = TestRunner::new(ProptestConfig {
        max_global_rejects: 100_000,
        ..ProptestConfig::with_cases(1_500)
    });
    let (all, good, crops) = (Cell::new(0u32), Cell::new(0u32), Cell::new(0u32));
    let given = (
        recipes(),
        [(9u32..70, 9u32..70), (9..70, 9..70)],
        any::<u64>(),
    );
    let tested = runner.run(&given, |(recipe, sizes, position)| {
        prop_assume!(SampleProgram::compile(&recipe).is_ok());
        for program in programs(&recipe) {
            for channels in [3, 1] {
                // The second finds the buffers of the first.
                let (mut raw, mut coded) = (decoder(&program), decoder(&program));
                for (size, position) in sizes.into_iter().zip(position >> 1..) {
                    let [npy, png] = twins(size, channels);
                    let got = made(&mut raw, &npy, size, position);
                    let want = made(&mut coded, &png, size, position);
                    prop_assert!(got == want, "other bytes: {:?}", (got.err(), want.err()));
                    all.set(all.get() + 1);
                    good.set(good.get() + u32::from(want.is_ok()));
                    crops.set(crops.get() + u32::from(program.crops.is_some()));
                }
            }
        }
        Ok(())
    });
    if let Err(fault) = tested {
        panic!("{fault}");
    }
    let (all, good, crops) = (all.get(), good.get(), crops.get());
    assert!(2 * good > all, "only {good} of {all} samples gave pixels");
    assert!(crops > 20, "{crops} of {all} samples were handed over");
}

/// Those that are in use, by name: whole pictures, crops, crops of which each pixel
/// is wanted as it is, and a canvas.
#[test]
fn rows_of_presets_are_those_of_the_png() {
    let mut crops = 0;
    let full = Recipe::full();
    let middle = full.clone().then(CenterCrop::new((40, 30)));
    let flipped = full.clone().then(RandomHorizontalFlip::default());
    let padded = full.clone().then(Pad::new(Padding {
        left: 3,
        top: 1,
        right: 0,
        bottom: 7,
    }));
    let padded = padded.then(CenterCrop::new((44, 33)));
    let colored = |color| {
        let decode = Decode {
            color,
            ..Decode::default()
        };
        let recipe = Recipe::new("colour").then(decode);
        recipe
            .with_dtype(DataType::U8)
            .with_layout(MemoryLayout::Nhwc)
    };
    for recipe in [
        full.clone().with_dtype(DataType::F16),
        full.clone().with_layout(MemoryLayout::Nchw),
        colored(ColorOrder::Grey),
        colored(ColorOrder::Bgr),
        full,
        middle,
        flipped,
        padded,
        Recipe::eval224(),
        Recipe::train224(),
        Recipe::train224().with_dtype(DataType::U8),
    ] {
        for program in programs(&recipe) {
            crops += u32::from(program.crops.is_some());
            for (size, channels) in [((300, 257), 3), ((230, 400), 1), ((40, 30), 3)] {
                let [npy, png] = twins(size, channels);
                for position in 0..4 {
                    let got = made(&mut decoder(&program), &npy, size, position).unwrap();
                    let want = made(&mut decoder(&program), &png, size, position).unwrap();
                    assert!(got == want, "{} of {size:?}", recipe.name);
                }
            }
        }
    }
    assert!(crops >= 2, "{crops} of the recipes are handed over");
}

/// Where the row is the pixels, or all that is done to them is done with the
/// emission, no buffer grows: the file's bytes are read once, and the row written.
#[test]
fn rows_without_further_steps_take_no_buffer() {
    let full = Recipe::full();
    let size = (300, 257);
    for recipe in [
        full.clone(),
        full.clone().then(CenterCrop::new(100)),
        full.clone().with_dtype(DataType::F16),
        full.clone().with_layout(MemoryLayout::Nchw),
        full.clone().then(RandomHorizontalFlip::default()),
    ] {
        let mut decoder = decoder(&SampleProgram::compile(&recipe).unwrap());
        made(&mut decoder, &twins(size, 3)[0], size, 0).unwrap();
        assert_eq!(decoder.held_bytes(), 0, "{}", recipe.ops.len());
    }
    // Grey is spread out into the row: a row of a few pixels at most.
    let mut grey = decoder(&SampleProgram::compile(&full).unwrap());
    made(&mut grey, &twins(size, 1)[0], size, 0).unwrap();
    assert_eq!(grey.canvas.held_bytes(), 0);
    // A resize holds what it makes, never what it is made of.
    let small = Recipe::new("small").then(Resize::exact(10, 10));
    let small = small
        .with_dtype(DataType::U8)
        .with_layout(MemoryLayout::Nhwc);
    let mut resized = decoder(&SampleProgram::compile(&small).unwrap());
    made(&mut resized, &twins(size, 3)[0], size, 0).unwrap();
    assert_eq!(resized.canvas.held_bytes(), 300);
    assert_eq!(resized.raster_scratch.bytes(), 0);
}

#[test]
fn a_file_that_is_cut_is_a_failed_sample_that_names_its_shape() {
    let program = SampleProgram::compile(&Recipe::full()).unwrap();
    let size = (30, 20);
    let [npy, _] = twins(size, 3);
    let mut decoder = decoder(&program);
    let message = made(&mut decoder, &npy[..npy.len() - 1], size, 0).unwrap_err();
    assert!(
        message.contains("(30, 20, 3) needs 2312 bytes"),
        "{message}"
    );
    made(&mut decoder, &npy, size, 0).unwrap();
}
