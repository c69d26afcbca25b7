//! A crop that is finished later is the row of the same operations one by one, on
//! the whole picture.
//!
//! - `cases`: recipes and files;
//! - `coded`: crops that a device decodes;
//! - `contrast`: its law once more;
//! - `scaled`: pictures that are decoded smaller.

mod cases;
mod coded;
mod contrast;
mod scaled;

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use self::cases::{File, cases, side};
use crate::decode_plan::crop_row::CropStep;
use crate::device::tests::reference::color_distance::largest_distance;
use crate::device::tests::reference::worker_rows::{
    PARTS, extent, filled, handed, handed_coded, random,
};

use crate::device::tests::reference::*;
use crate::picture::PictureLimits;
use crate::pixels::rounding::elements;
use crate::recipe::DrawnPicture;
use crate::recipe::{
    BoundedResizedCrop, Cast, CenterCrop, ColorSpace, DataType, Decode, DecodeMode, Layout,
    MemoryLayout, Op, OrientationMode, RandomResizedCrop, Recipe, Resize, SampleProgram,
};
use crate::sys::cpu::CpuLevel;

/// What a level may be off before it is cast: as of the kernel.
const TOLERANCE: f64 = 2e-3;

fn resampler() -> ImageResampler {
    ImageResampler::new(CpuLevel::detect().unwrap())
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    let elements = bytes.as_chunks().0.iter();
    elements.map(|b| f32::from_ne_bytes(*b)).collect()
}

/// A row by way of a crop, and what was handed over for it.
fn by_crop(
    program: &SampleProgram,
    file: &[u8],
    position: u64,
    size: Option<(u32, u32)>,
) -> Result<(Vec<f32>, CropHeader), String> {
    let (row, header, room) = handed(program, file, position, size)?;
    let made = CpuStage::new(program.output_format, resampler()).row(&row, &header, room);
    Ok((floats(&made), header))
}

/// Whether the worker has resized what it handed over.
fn was_resized(header: &CropHeader) -> bool {
    (header.width, header.height) == (header.out_width, header.out_height)
        && header.across_taps == 1
        && header.down_taps == 1
}

/// Each step by itself on the whole upright picture, in floats: up to the colours in
/// whole levels where the worker has resized, as workers do. Of a picture that is
/// decoded at 1 / `scale`, which must leave whole pixels.
fn step_by_step(
    program: &SampleProgram,
    file: &File,
    position: u64,
    size: Option<(u32, u32)>,
    whole: bool,
    scale: u32,
) -> Result<Vec<f32>, String> {
    let mut steps = Vec::new();
    let (height, width) = file.upright;
    program
        .steps(
            &DrawnPicture::of_size((height, width)).in_row(size),
            &random(position),
            &mut steps,
        )
        .map_err(|f| f.reason)?;
    let steps: Vec<Step> = steps.iter().map(|s| s.step).collect();
    let colors = steps.iter().position(|s| {
        !matches!(
            s,
            Step::Crop(_)
                | Step::Resize { .. }
                | Step::Pad { .. }
                | Step::Mirror
                | Step::UpsideDown
                | Step::Turn(_)
        )
    });
    let (shapes, colors) = steps.split_at(colors.unwrap_or(steps.len()));
    let mut canvas = PictureCanvas::default();
    // A turned picture is resized as it is stored.
    let placement = file.orientation.placement();
    let (width, height) = match placement.transpose {
        true => (height / scale, width / scale),
        false => (width / scale, height / scale),
    };
    let bytes = 3 * (height * width) as usize;
    let stored = stored_pictures((scale > 1).then_some((height, width)));
    let pixels = filled(&stored, &file.bytes, position, None, bytes)?;
    let to = canvas.begin(width as usize, height as usize, placement);
    to.copy_from_slice(&pixels);
    let mut resampler = resampler();
    let in_floats = [Step::Cast(DataType::F32)];
    // Brightness by 1 holds levels to 0 to 255, which a sharp filter leaves.
    let brightness = [Step::Brightness(1.0)];
    let order: &[&[Step]] = match whole {
        true => &[shapes, &in_floats, colors],
        false => &[&in_floats, shapes, &brightness, colors],
    };
    for step in order.iter().copied().flatten() {
        canvas.apply([step].into_iter(), false, &mut resampler);
    }
    let (height, width) = extent(program, size);
    let mut out = vec![0; program.row_bytes((height, width)) as usize];
    let (CanvasPixels::Floats(view), placement) = canvas.pixels() else {
        panic!("levels behind a cast");
    };
    RowEmitter::new(program.output_format).emit_floats(view, placement, &mut out);
    Ok(floats(&out))
}

/// The levels of pictures as they are stored, or as they are decoded at the scale that
/// leaves this height and width: then there is nothing to resize.
fn stored_pictures(scaled: Option<(u32, u32)>) -> SampleProgram {
    let decode = Decode {
        orientation: OrientationMode::Stored,
        mode: scaled.map(|_| DecodeMode::Scaled),
        ..Decode::default()
    };
    let mut recipe = Recipe::new("stored").then(decode);
    if let Some((height, width)) = scaled {
        recipe = recipe.then(Resize::exact(height, width));
    }
    let recipe = recipe
        .then(Cast {
            dtype: DataType::U8,
        })
        .then(Layout {
            layout: MemoryLayout::Nhwc,
        });
    SampleProgram::compile(&recipe).unwrap()
}

/// How often the cases had what they are for.
#[derive(Debug, Default)]
struct Seen(BTreeMap<String, u32>);

impl Seen {
    fn add(&mut self, what: &str) {
        *self.0.entry(what.to_owned()).or_default() += 1;
    }

    fn at_least(&self, wanted: &[(&str, u32)]) {
        for (what, least) in wanted {
            let seen = self.0.get(*what).copied().unwrap_or(0);
            assert!(seen >= *least, "{seen} of {what}: {:?}", self.0);
        }
    }

    fn steps(&mut self, header: &CropHeader) {
        let steps = &header.step[..header.steps as usize];
        let Some(at) = steps.iter().position(CropStep::takes_mean) else {
            return;
        };
        self.add(match (at, steps.len() - 1 - at) {
            (0, 0) => "contrast alone",
            (0, _) => "contrast first",
            (_, 0) => "contrast last",
            _ => "contrast between",
        });
        match steps[at].amount {
            0.0 => self.add("factor 0"),
            1.0.. => self.add("factor above 1"),
            _ => {}
        }
    }

    /// Pixels on both sides of where hue begins, and nearly grey ones.
    fn hues(&mut self, row: &[f32], layout: MemoryLayout) {
        let pixels = row.len() / 3;
        for pixel in 0..pixels {
            let [h, s, _] = [0, 1, 2].map(|c| match layout {
                MemoryLayout::Nchw => row[c * pixels + pixel],
                MemoryLayout::Nhwc => row[3 * pixel + c],
            });
            if s > 0.05 && h < 4.0 {
                self.add("red from above");
            } else if s > 0.05 && h > 356.0 {
                self.add("red from below");
            } else if s < 0.02 {
                self.add("nearly grey");
            }
        }
    }
}

#[test]
fn a_crop_becomes_the_row_of_its_steps_one_by_one() {
    let mut runner = TestRunner::new(ProptestConfig {
        cases: 512,
        ..ProptestConfig::default()
    });
    let files = (
        0u8..=8,
        prop_oneof![1 => Just((1, 1)), 15 => (1u32..300, 1u32..230)],
    )
        .prop_map(|(kind, (width, height))| File::new(kind, width, height));
    let sizes = proptest::option::of((side(), side()));
    let seen = std::cell::RefCell::new(Seen::default());
    let all = (cases(), files, sizes, 0u64..1000);
    runner
        .run(&all, |(case, file, size, position)| {
            let program = SampleProgram::compile(&case.recipe).unwrap();
            let program = program.with_crops().unwrap();
            let size = size.filter(|_| program.allows_batch_sizes());
            let (made, header) = match by_crop(&program, &file.bytes, position, size) {
                Ok(made) => made,
                Err(why) => {
                    let other = step_by_step(&program, &file, position, size, false, 1);
                    prop_assert_eq!(Some(why), other.err());
                    seen.borrow_mut().add("too small");
                    return Ok(());
                }
            };
            // Elements of two bytes are those floats, rounded.
            let half = [DataType::F16, DataType::Bf16][position as usize % 2];
            let shorter = SampleProgram::compile(&case.recipe.clone().with_dtype(half)).unwrap();
            let shorter = shorter.with_crops().unwrap();
            let (row, header_of_half, room) =
                handed(&shorter, &file.bytes, position, size).unwrap();
            let short =
                CpuStage::new(shorter.output_format, resampler()).row(&row, &header_of_half, room);
            prop_assert!(short == elements(made.clone(), half), "{}", half);
            let whole = was_resized(&header);
            let wanted = step_by_step(&program, &file, position, size, whole, 1).unwrap();
            let worst = largest_distance(&made, &wanted, &program.output_format, case.space);
            prop_assert!(worst <= TOLERANCE, "{} levels off, {:?}", worst, header);
            let mut seen = seen.borrow_mut();
            seen.add(if whole { "no room" } else { "by a device" });
            seen.add(file.what);
            seen.add(&format!("{:?}", case.order));
            seen.steps(&header);
            if let Some((height, width)) = size {
                seen.add("a size of the batch");
                prop_assert_eq!(
                    header
                        .placement()
                        .output_size(header.out_width as usize, header.out_height as usize),
                    (width as usize, height as usize)
                );
            }
            if case.space == Some(ColorSpace::Hsv) {
                seen.hues(&wanted, program.output_format.layout);
            }
            for op in &case.recipe.ops {
                if let Op::RandomResizedCrop(RandomResizedCrop { interpolation, .. })
                | Op::Resize(Resize { interpolation, .. })
                | Op::BoundedResizedCrop(BoundedResizedCrop { interpolation, .. }) = op
                {
                    seen.add(&format!("{interpolation:?}"));
                }
            }
            Ok(())
        })
        .unwrap();
    seen.into_inner().at_least(&[
        ("by a device", 200),
        ("no room", 10),
        ("png", 20),
        ("jpeg", 20),
        ("turned jpeg", 150),
        ("Bgr", 50),
        ("Grey", 20),
        ("Nearest", 40),
        ("Area", 40),
        ("Bilinear", 40),
        ("Bicubic", 40),
        ("Lanczos", 40),
        ("a size of the batch", 40),
        ("contrast alone", 15),
        ("contrast first", 20),
        ("contrast last", 15),
        ("contrast between", 5),
        ("factor 0", 20),
        ("factor above 1", 20),
        ("red from above", 3),
        ("red from below", 3),
        ("nearly grey", 10),
    ]);
}

/// Workers add the border; nothing of such a picture is left to a device's decoder.
#[test]
fn a_centre_crop_of_a_smaller_picture_is_handed_over_with_its_border() {
    let mut recipe = Recipe::new("border").then(Decode::default());
    recipe.ops.push(CenterCrop::new((160, 150)).into());
    recipe.ops.push(
        Cast {
            dtype: DataType::F32,
        }
        .into(),
    );
    let program = SampleProgram::compile(&recipe).unwrap();
    let program = program.with_crops().unwrap();
    for (width, height) in [(190, 180), (131, 180), (190, 140), (131, 140), (1, 1)] {
        for kind in [0, 1, 6] {
            let file = File::new(kind, width, height);
            let (made, header) = by_crop(&program, &file.bytes, 0, None).unwrap();
            let fits = file.upright.0 >= 160 && file.upright.1 >= 150;
            assert!(fits || was_resized(&header), "{width} x {height}");
            let wanted = step_by_step(&program, &file, 0, None, !fits, 1).unwrap();
            let worst = largest_distance(&made, &wanted, &program.output_format, None);
            assert!(worst <= TOLERANCE, "{worst} levels off, {header:?}");
            if file.what == "png" {
                continue;
            }
            let theirs = handed_coded(&program, &file.bytes, 0, &PARTS, &PictureLimits::default());
            assert_eq!(theirs.unwrap().is_some(), fits, "{width} x {height}");
        }
    }
    // What stands after the border would have to be done by workers, too.
    let end = recipe.ops.len() - 1;
    recipe.ops.insert(end, Resize::exact(20, 20).into());
    let late = SampleProgram::compile(&recipe).unwrap().with_crops();
    assert!(
        late.unwrap_err()
            .contains("after the border of center_crop")
    );
}
