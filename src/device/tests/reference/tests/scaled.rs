//! Pictures that are decoded smaller.

use proptest::sample::select;

use super::cases::colors;
use super::*;
use crate::recipe::{CenterCrop, InterpolationMode, RandomHorizontalFlip};

/// Of whole pictures that are decoded smaller; sides of 8 pixels leave whole ones.
#[test]
fn a_picture_that_is_decoded_smaller_is_resized_from_there() {
    let mut runner = TestRunner::new(ProptestConfig {
        cases: 160,
        ..ProptestConfig::default()
    });
    let interpolation = select(vec![
        InterpolationMode::Area,
        InterpolationMode::Bilinear,
        InterpolationMode::Bicubic,
        InterpolationMode::Lanczos,
    ]);
    let file = (1u8..=8, 20u32..50, 20u32..50).prop_map(|(t, w, h)| File::new(t, 8 * w, 8 * h));
    let cases = (
        (any::<bool>(), interpolation, (8u32..70, 8u32..70)),
        colors(),
        file,
        0u64..1000,
    );
    let seen = std::cell::RefCell::new(Seen::default());
    runner
        .run(
            &cases,
            |((exact, interpolation, size), colors, file, position)| {
                let resize = match exact {
                    true => Resize::exact(size.0, size.1),
                    false => Resize::shorter(70),
                };
                let mut recipe = Recipe::new("scaled").then(scaled()).then(Resize {
                    interpolation,
                    antialias: true,
                    ..resize
                });
                recipe.ops.push(CenterCrop::new(size).into());
                recipe.ops.push(RandomHorizontalFlip::default().into());
                recipe.ops.extend(colors);
                recipe.ops.push(
                    Cast {
                        dtype: DataType::F32,
                    }
                    .into(),
                );
                let program = SampleProgram::compile(&recipe).unwrap();
                let program = program.with_crops().unwrap();
                let (height, width) = file.upright;
                let (to_height, to_width) = match exact {
                    true => size,
                    false => (
                        (70 * height / width.min(height)).max(70),
                        (70 * width / width.min(height)).max(70),
                    ),
                };
                let shrink = (height / to_height).min(width / to_width);
                let scale = [8, 4, 2].into_iter().find(|d| shrink >= *d).unwrap_or(1);
                let (made, header) = by_crop(&program, &file.bytes, position, None).unwrap();
                let whole = was_resized(&header);
                let wanted = step_by_step(&program, &file, position, None, whole, scale).unwrap();
                let worst = largest_distance(&made, &wanted, &program.output_format, None);
                prop_assert!(
                    worst <= TOLERANCE,
                    "{} off at 1/{}, {:?}",
                    worst,
                    scale,
                    header
                );
                if !whole {
                    seen.borrow_mut().add(&format!("1/{scale}"));
                }
                Ok(())
            },
        )
        .unwrap();
    seen.into_inner()
        .at_least(&[("1/2", 3), ("1/4", 10), ("1/8", 3)]);
}

fn scaled() -> Decode {
    Decode {
        mode: Some(DecodeMode::Scaled),
        ..Decode::default()
    }
}

/// Parts of pictures that are decoded smaller begin between pixels. Against the row that
/// a worker makes of them, twice rounded to levels; filters that never leave the range
/// of levels, which the first rounding would hold them to.
#[test]
fn a_crop_of_a_picture_that_is_decoded_smaller_is_the_row_of_a_worker() {
    let mut runner = TestRunner::new(ProptestConfig {
        cases: 64,
        ..ProptestConfig::default()
    });
    let cases = (
        select(vec![InterpolationMode::Area, InterpolationMode::Bilinear]),
        (8u32..50, 8u32..50),
        (1u8..=8, 150u32..420, 150u32..420),
        0u64..1000,
    );
    let smaller = std::cell::Cell::new(0);
    runner
        .run(&cases, |(interpolation, size, (turn, w, h), position)| {
            let of = |decode: Decode| {
                let recipe = Recipe::new("scaled")
                    .then(decode)
                    .then(RandomResizedCrop {
                        interpolation,
                        antialias: true,
                        ..RandomResizedCrop::new(size)
                    })
                    .then(RandomHorizontalFlip::default())
                    .then(Cast {
                        dtype: DataType::F32,
                    });
                SampleProgram::compile(&recipe).unwrap()
            };
            let file = File::new(turn, w, h).bytes;
            let plain = of(scaled());
            let program = plain.with_crops().unwrap();
            let (made, header) = by_crop(&program, &file, position, None).unwrap();
            let bytes = plain.row_bytes(extent(&plain, None)) as usize;
            let wanted = floats(&filled(&plain, &file, position, None, bytes).unwrap());
            let worst = largest_distance(&made, &wanted, &plain.output_format, None);
            prop_assert!(worst <= 1.5, "{} levels off, {:?}", worst, header);
            let full = of(Decode {
                mode: Some(DecodeMode::Full),
                ..Decode::default()
            });
            let full = full.with_crops().unwrap();
            let full = handed(&full, &file, position, None).unwrap().1;
            // At full size it has no room, or is much larger.
            let larger = was_resized(&full) || 2 * full.width > 3 * header.width;
            if !was_resized(&header) && larger {
                smaller.set(smaller.get() + 1);
            }
            Ok(())
        })
        .unwrap();
    let smaller = smaller.get();
    assert!(smaller > 10, "{smaller} pictures were decoded smaller");
}
