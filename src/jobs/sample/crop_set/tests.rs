//! Each crop has the bytes of the recipe that makes only it, from the numbers of that crop. The
//! image is decoded once.

use std::io::Cursor;

use image::{DynamicImage, ImageFormat, RgbImage};
use proptest::prelude::*;
use proptest::sample::select;

use crate::decode_plan::CropGeometry;
use crate::decode_plan::stored_picture::StoredPicture;
use crate::jobs::sample::moves_tests::recipes;
use crate::jobs::sample::{RowRequest, SampleDecoder};
use crate::order::PositionRandom;
use crate::picture::jpeg::fixtures;
use crate::picture::jpeg::fixtures::Sampling;
use crate::picture::read_header::read_header_within;
use crate::picture::{PictureLimits, npy};
use crate::pool::job::RowParts;
use crate::pool::worker::meter::StageMeter;
use crate::recipe::DrawnPicture;
use crate::recipe::random::CropStreams;
use crate::recipe::{
    DataType, DecodeMode, InterpolationMode, MemoryLayout, Op, OrientationMode, RandomCrop,
    RandomHorizontalFlip, RandomResizedCrop, RandomSolarize, RandomVerticalFlip, Recipe,
    ReorderMode, SampleProgram, Span, Step, TruncationPolicy,
};

type Made = std::result::Result<Vec<Vec<u8>>, String>;

pub(in crate::jobs::sample) fn random(position: u64) -> PositionRandom {
    PositionRandom::new(7, 1, position)
}

/// A row of a whole image of any size.
pub(in crate::jobs::sample) fn request<R>(random: &R) -> RowRequest<'_, R> {
    RowRequest {
        random,
        size: None,
        part: None,
        boxes: None,
        check_size: &|_| Ok(()),
    }
}

/// The crops and the geometries of a file, and how often it was decoded.
fn crops(decoder: &mut SampleDecoder, recipe: &Recipe, file: &[u8], position: u64) -> (Made, u64) {
    let program = SampleProgram::compile(recipe).unwrap();
    let rows = program.crop_rows();
    let geometries = rows.len() * CropGeometry::BYTES;
    let bytes = rows.iter().map(|(_, bytes)| *bytes as usize);
    let mut out: Vec<_> = (bytes.chain([geometries])).map(|n| vec![0xa5; n]).collect();
    let numbers = random(position);
    let request = request(&numbers);
    let mut meter = StageMeter::default();
    let (first, further) = out.split_first_mut().unwrap();
    let mut parts = RowParts {
        first,
        further: further.iter_mut().map(|part| &mut part[..]).collect(),
    };
    let made = decoder.make_crops(file, &request, &mut parts, &mut meter);
    (made.map(|()| out).map_err(|f| f.reason), meter.decoded)
}

pub(in crate::jobs::sample) fn decoder(recipe: &Recipe) -> SampleDecoder {
    let program = SampleProgram::compile(recipe).unwrap();
    SampleDecoder::new(&program, &PictureLimits::default()).unwrap()
}

/// The row of one recipe, from the numbers of a crop.
fn alone(recipe: &Recipe, file: &[u8], position: u64, crop: u32) -> Result<Vec<u8>, String> {
    let program = SampleProgram::compile(recipe).unwrap();
    let mut decoder = SampleDecoder::new(&program, &PictureLimits::default()).unwrap();
    let mut out = vec![0x5a; program.row_bytes(program.extent.of((0, 0))) as usize];
    let numbers = random(position).of_crop(crop);
    let request = request(&numbers);
    let made = decoder.make_row(file, &request, &mut out, &mut StageMeter::default());
    made.map(|()| out).map_err(|f| f.reason)
}

/// Fails unless each crop is that of its recipe alone.
fn check(recipe: &Recipe, decoder: &mut SampleDecoder, file: &[u8], position: u64) {
    let each = recipe
        .crops
        .iter()
        .flat_map(|crop| (0..crop.count).map(|_| &crop.recipe));
    let each: Result<Vec<_>, String> = (0..)
        .zip(each)
        .map(|(crop, recipe)| alone(recipe, file, position, crop))
        .collect();
    let (made, decoded) = crops(decoder, recipe, file, position);
    match (each, made) {
        (Ok(each), Ok(mut made)) => {
            made.pop();
            for (crop, (one, other)) in each.iter().zip(&made).enumerate() {
                assert!(one == other, "crop {crop} of {recipe:?}");
            }
            assert_eq!(each.len(), made.len());
            assert!(decoded <= 1, "decoded {decoded} times");
        }
        // The first crop that fails names the fault, unless a shared limit does.
        (Err(each), Err(made)) => assert_eq!(each, made),
        (each, made) => panic!("alone {:?}, together {:?}", each.is_ok(), made.is_ok()),
    }
}

pub(in crate::jobs::sample) fn png(width: u32, height: u32) -> Vec<u8> {
    let pixels = fixtures::pattern(width, height, 3);
    let picture = DynamicImage::from(RgbImage::from_raw(width, height, pixels).unwrap());
    let mut bytes = Cursor::new(Vec::new());
    picture.write_to(&mut bytes, ImageFormat::Png).unwrap();
    bytes.into_inner()
}

pub(in crate::jobs::sample) fn files() -> impl Strategy<Value = Vec<u8>> {
    let sizes = prop_oneof![(9u32..70, 9u32..70), (100u32..260, 100u32..260)];
    (sizes, 0..13usize, 1u8..9).prop_map(|((w, h), kind, orientation)| match kind {
        10 => png(w, h),
        11 => [&npy::header((h, w), 3)[..], &fixtures::pattern(w, h, 3)].concat(),
        12 => fixtures::encode(w, h, Sampling::S420, 90, true, 0),
        kind => fixtures::turned(fixtures::jpeg(w, h, Sampling::ALL[kind]), orientation),
    })
}

fn same_format(recipe: Recipe) -> Recipe {
    recipe
        .with_orientation(OrientationMode::Exif)
        .with_truncated(TruncationPolicy::Refuse)
        .with_dtype(DataType::F32)
        .with_layout(MemoryLayout::Nchw)
}

proptest! {
    #![proptest_config(ProptestConfig { max_global_rejects: 100_000, ..ProptestConfig::with_cases(300) })]

    /// Any operations, formats, samplings and orders of operations, with full decoding.
    #[test]
    fn crops_are_those_of_their_recipes_alone(
        all in prop::collection::vec((recipes(), 1u32..3), 1..4),
        reorder in select(vec![None, Some(ReorderMode::Off), Some(ReorderMode::Exact)]),
        files in prop::collection::vec(files(), 1..3),
        position in 0u64..1000,
    ) {
        let mut recipe = Recipe::new("all");
        for (one, count) in all {
            let one = Recipe { reorder, ..same_format(one.with_decode(DecodeMode::Full)) };
            recipe = recipe.with_crop(one, count);
        }
        let program = SampleProgram::compile(&recipe);
        prop_assume!(program.is_ok());
        // One decoder for all files: nothing of a sample is left for the next.
        let mut decoder = decoder(&recipe);
        for (position, file) in (position..).zip(&files) {
            check(&recipe, &mut decoder, file, position);
        }
    }
}

/// Crops that share first operations have the same box and flip, and own later operations. The
/// numbers of the later ones are those of the crop alone.
#[test]
fn shared_operations_have_the_numbers_of_the_first_crop() {
    let first = same_format(crop(24, (0.1, 1.0))).with_decode(DecodeMode::Full);
    let flips = |recipe: Recipe| recipe.then(RandomVerticalFlip { p: 0.5 });
    let recipe = Recipe::new("splits")
        .with_crop(first.clone(), 1)
        .with_shared_crop(flips(first.clone()), 3, 2);
    let own = Recipe::new("own")
        .with_crop(first.clone(), 1)
        .with_crop(flips(first.clone()), 3);
    let (mut shared, mut apart) = (decoder(&recipe), decoder(&own));
    let mut upside_down = [0; 4];
    for position in 0..24 {
        let file = fixtures::jpeg(90, 70, Sampling::S420);
        let (made, decoded) = crops(&mut shared, &recipe, &file, position);
        let made = made.unwrap();
        assert_eq!(decoded, 1);
        assert!(made[0] == alone(&first, &file, position, 0).unwrap());
        let (others, _) = crops(&mut apart, &own, &file, position);
        let flipped = |made: &[Vec<u8>], crop: usize| {
            let all = made[4].chunks_exact(CropGeometry::BYTES);
            let of: Vec<CropGeometry> = all.map(bytemuck::pod_read_unaligned).collect();
            (
                of[crop].bounds,
                of[crop].is_flipped(),
                of[crop].is_upside_down(),
            )
        };
        let others = others.unwrap();
        for number in 1..4 {
            let (bounds, mirrored, down) = flipped(&made, number);
            let (of_first, first_mirrored, _) = flipped(&made, 0);
            assert_eq!((bounds, mirrored), (of_first, first_mirrored));
            // The later operation is drawn as if nothing were shared.
            assert_eq!(down, flipped(&others, number).2);
            upside_down[number] += usize::from(down);
            let rows = |row: &[u8]| -> Vec<Vec<u8>> {
                row.chunks_exact(24 * 4).map(<[u8]>::to_vec).collect()
            };
            let mut wanted = rows(&made[0]);
            if down {
                // Three planes of 24 rows.
                wanted = wanted
                    .chunks(24)
                    .flat_map(|p| p.iter().rev().cloned())
                    .collect();
            }
            assert!(rows(&made[number]) == wanted, "{position} {number}");
        }
    }
    assert!(
        upside_down[1..].iter().all(|n| (4..21).contains(n)),
        "{upside_down:?}"
    );
    assert!(upside_down[1] != upside_down[2] || upside_down[2] != upside_down[3]);
}

/// Crops that begin with one resize have it once, with the pixels and within the memory that are
/// planned.
#[test]
fn a_shared_resize_is_made_once() {
    let first = same_format(crop(24, (0.1, 1.0))).with_decode(DecodeMode::Full);
    let solarized = crop(24, (0.1, 1.0)).then(RandomSolarize {
        threshold: 128.0,
        p: 1.0,
    });
    let solarized = same_format(solarized).with_decode(DecodeMode::Full);
    let recipe = |shared| {
        Recipe::new("splits")
            .with_crop(first.clone(), 1)
            .with_shared_crop(solarized.clone(), 3, shared)
    };
    let file = fixtures::jpeg(90, 70, Sampling::S420);
    let program = SampleProgram::compile(&recipe(2)).unwrap();
    let stored = StoredPicture::baseline_jpeg((70, 90));
    let bound = stored.scratch_bound(&program, None, &mut Vec::new());
    let mut decoder = decoder(&recipe(2));
    for position in 0..8 {
        let (made, _) = crops(&mut decoder, &recipe(2), &file, position);
        let made = made.unwrap();
        let shared = decoder.shared_resize.as_ref().unwrap();
        assert_eq!(shared.saved, 3 * (position + 1));
        assert!(shared.held_bytes() >= 3 * 24 * 24);
        assert!(shared.held_bytes() as u64 <= bound.tables, "{bound:?}");
        // The first crop's row is its own, whatever the later ones did to their copies.
        assert!(made[0] == alone(&first, &file, position, 0).unwrap());
        assert!(made[1] == made[2] && made[2] == made[3] && made[1] != made[0]);
        let own = alone(&solarized, &file, position, 0).unwrap();
        assert!(made[1] == own);
    }
    // Crops of their own have nothing to share.
    let apart = Recipe::new("own").with_crop(first.clone(), 2);
    let program = SampleProgram::compile(&apart).unwrap();
    let decoder = SampleDecoder::new(&program, &PictureLimits::default()).unwrap();
    assert!(decoder.shared_resize.is_none());
}

fn crop(size: u32, scale: (f64, f64)) -> Recipe {
    let mut crop = RandomResizedCrop::new(size);
    crop.scale = Span(scale.0, scale.1);
    Recipe::new("crop")
        .then(crop)
        .then(RandomHorizontalFlip::default())
}

fn dino() -> Recipe {
    Recipe::new("dino")
        .with_crop(crop(56, (0.32, 1.0)), 2)
        .with_crop(crop(24, (0.05, 0.32)), 8)
}

/// The decoder reads a JPEG's entropy-coded data once, and the crops of a scaled decode come from
/// the finest scale that one of them needs.
#[test]
fn a_jpeg_is_decoded_once_at_the_finest_scale() {
    let recipe = dino();
    let mut shared = decoder(&recipe);
    let full = recipe.clone().with_decode(DecodeMode::Full);
    let mut of_full = decoder(&full);
    let mut scales = [0; 9];
    for sampling in Sampling::ALL {
        for position in 0..12 {
            let (width, height) = if position % 2 == 0 {
                (401, 333)
            } else {
                (171, 140)
            };
            let file = fixtures::jpeg(width, height, sampling);
            let (made, decoded) = crops(&mut shared, &recipe, &file, position);
            let made = made.unwrap();
            assert_eq!(decoded, 1);
            // The scale of each crop alone.
            let stored = StoredPicture::baseline_jpeg((height, width));
            let program = SampleProgram::compile(&recipe).unwrap();
            let scale = |(crop, program): (u32, &SampleProgram)| {
                let mut steps = Vec::new();
                let numbers = random(position).of_crop(crop);
                program
                    .steps(
                        &DrawnPicture::of_size((height, width)),
                        &numbers,
                        &mut steps,
                    )
                    .unwrap();
                stored.plan_decode(program, &steps).scale.denominator()
            };
            let each: Vec<_> = (0..).zip(program.crop_programs()).map(scale).collect();
            let finest = *each.iter().min().unwrap();
            scales[finest as usize] += 1;
            for (number, own) in (0..).zip(&each) {
                let of_crop = if number < 2 {
                    &recipe.crops[0]
                } else {
                    &recipe.crops[1]
                };
                if *own == finest {
                    let alone = alone(&of_crop.recipe, &file, position, number).unwrap();
                    assert!(
                        made[number as usize] == alone,
                        "{sampling:?} {position} {number}"
                    );
                }
            }
            // With mode full each crop is exact.
            check(&full, &mut of_full, &file, position);
            if finest == 1 {
                let exact = crops(&mut of_full, &full, &file, position).0.unwrap();
                assert!(made == exact);
            }
        }
    }
    assert!(scales[1] > 0 && scales[2] > 0, "{scales:?}");
}

#[test]
fn geometries_are_those_of_the_drawn_boxes() {
    let recipe = dino().with_decode(DecodeMode::Full);
    let file = fixtures::turned(fixtures::jpeg(120, 90, Sampling::S420), 6);
    let programs = SampleProgram::compile(&recipe).unwrap();
    let (made, _) = crops(&mut decoder(&recipe), &recipe, &file, 3);
    let made = made.unwrap();
    let geometries: Vec<CropGeometry> = made[10]
        .chunks_exact(CropGeometry::BYTES)
        .map(bytemuck::pod_read_unaligned)
        .collect();
    assert_eq!(geometries.len(), 10);
    // Turned upright, the image is 90 wide.
    assert!(geometries.iter().all(|of| of.image == [120, 90]));
    for (crop, of) in geometries.iter().enumerate() {
        let [left, top, right, bottom] = of.bounds.map(|side| side as u32);
        assert!(left < right && right <= 90 && top < bottom && bottom <= 120);
        // The drawn box of the same crop.
        let mut steps = Vec::new();
        let numbers = random(3).of_crop(crop as u32);
        let program = &programs.crop_programs()[crop];
        program
            .steps(&DrawnPicture::of_size((120, 90)), &numbers, &mut steps)
            .unwrap();
        let drawn = steps.iter().find_map(|step| match step.step {
            Step::Crop(rect) => Some(rect),
            _ => None,
        });
        let rect = drawn.unwrap();
        assert_eq!((left, top), (rect.left, rect.top));
        assert_eq!((right - left, bottom - top), (rect.width, rect.height));
        let flips = steps.iter().any(|step| step.step == Step::Mirror);
        assert_eq!(of.is_flipped(), flips);
    }
    assert!(geometries.iter().any(CropGeometry::is_flipped));
    assert!(geometries.iter().any(|of| !of.is_flipped()));
}

#[test]
fn an_image_that_is_too_small_for_one_crop_fails_with_its_fault() {
    let recipe = Recipe::new("two")
        .with_crop(crop(8, (0.5, 1.0)), 1)
        .with_crop(Recipe::new("c").then(RandomCrop::new(40)), 1);
    let file = fixtures::jpeg(30, 50, Sampling::S444);
    let alone = alone(&recipe.crops[1].recipe, &file, 0, 1);
    let (made, decoded) = crops(&mut decoder(&recipe), &recipe, &file, 0);
    assert_eq!(decoded, 0);
    assert_eq!(made.unwrap_err(), alone.unwrap_err());
}

/// The memory of any draw is within the bound of the plan, which counts the shared image once.
#[test]
fn memory_is_within_the_bound() {
    for (recipe, mode) in [(dino(), DecodeMode::Scaled), (dino(), DecodeMode::Full)] {
        let recipe = recipe.with_decode(mode);
        let program = SampleProgram::compile(&recipe).unwrap();
        for (file, size) in [
            (fixtures::jpeg(401, 333, Sampling::S420), (401, 333)),
            (
                fixtures::encode(300, 500, Sampling::S444, 90, true, 0),
                (300, 500),
            ),
            (png(301, 222), (301, 222)),
        ] {
            let header =
                read_header_within(&mut Cursor::new(&file), &PictureLimits::default()).unwrap();
            assert_eq!(header.stored_size, size);
            let stored = StoredPicture::from(&header);
            let bound = stored.scratch_bound(&program, None, &mut Vec::new());
            let mut decoder = decoder(&recipe);
            for position in 0..40 {
                crops(&mut decoder, &recipe, &file, position).0.unwrap();
                let held = decoder.canvas.held_bytes() + decoder.resampler.scratch_bytes();
                assert!(held as u64 <= bound.buffers.bytes(), "{held} of {bound:?}");
                let shared = decoder.shared_pixels.capacity() as u64;
                assert!(shared <= bound.decoder.bytes(), "{shared} of {bound:?}");
            }
            let once = 3 * u64::from(size.0) * u64::from(size.1);
            assert!(bound.bytes() < 4 * once + (1 << 20), "{bound:?} of {once}");
        }
    }
}

/// The tables of rows for a device are counted, for any draw and both turns of an image.
#[test]
fn tables_of_hulls_are_within_the_bound() {
    let mut filtered = dino().with_decode(DecodeMode::Full);
    for crop in &mut filtered.crops {
        for op in &mut crop.recipe.ops {
            if let Op::RandomResizedCrop(crop) = op {
                crop.interpolation = InterpolationMode::Lanczos;
                crop.scale = Span(0.02, 1.0);
            }
        }
    }
    for recipe in [dino(), filtered] {
        let program = SampleProgram::compile(&recipe).unwrap();
        let program = program.with_hulls().unwrap();
        let rule = program.hulls.clone().unwrap();
        let mut decoder = SampleDecoder::new(&program, &PictureLimits::default()).unwrap();
        let mut row = vec![0; rule.row_bytes()];
        let mut most = 0;
        for turned in [1, 6] {
            for (width, height) in [(401, 333), (90, 700), (60, 60)] {
                let file = fixtures::turned(fixtures::jpeg(width, height, Sampling::S420), turned);
                for position in 0..20 {
                    let request = RowRequest {
                        random: &random(position),
                        size: None,
                        part: None,
                        boxes: None,
                        check_size: &|_| Ok(()),
                    };
                    let mut parts = RowParts {
                        first: &mut row,
                        further: Vec::new(),
                    };
                    let made =
                        decoder.make_crops(&file, &request, &mut parts, &mut StageMeter::default());
                    made.unwrap();
                    most = most.max(decoder.hulls.as_ref().unwrap().held_bytes() as u64);
                }
            }
        }
        let stored = StoredPicture::baseline_jpeg((333, 401));
        let bound = stored.scratch_bound(&program, None, &mut Vec::new());
        assert!(most > 0 && most <= bound.tables, "{most} of {bound:?}");
        assert!(most > bound.tables / 20, "{most} of {bound:?}");
        let finished = program.without_hulls();
        let bound = stored.scratch_bound(&finished, None, &mut Vec::new());
        assert_eq!(bound.tables, 0);
    }
}
