//! Contrast against torchvision's law, written down once more in `f64`: on pictures
//! that are not resized, so that only the colours count.

use super::cases::png;
use super::*;
use crate::picture::jpeg::fixtures;
use crate::recipe::{CenterCrop, ColorJitter, Rotate90, Span};

fn jitter(brightness: f64, contrast: f64, saturation: f64) -> Op {
    ColorJitter {
        brightness: Span(brightness, brightness),
        contrast: Span(contrast, contrast),
        saturation: Span(saturation, saturation),
        random_order: false,
        ..ColorJitter::default()
    }
    .into()
}

/// What an operation of `jitter` does, in the order in which it does it.
fn law(op: &Op, pixels: &mut [[f64; 3]]) {
    let Op::ColorJitter(ColorJitter {
        brightness,
        contrast,
        saturation,
        ..
    }) = op
    else {
        panic!("{op:?}");
    };
    let grey = |[r, g, b]: [f64; 3]| 0.2989 * r + 0.587 * g + 0.114 * b;
    let blend =
        |v: f64, other: f64, factor: f64| (factor * v + (1.0 - factor) * other).clamp(0.0, 255.0);
    for pixel in &mut *pixels {
        *pixel = pixel.map(|v| blend(v, 0.0, brightness.0));
    }
    let mean = pixels.iter().map(|p| grey(*p)).sum::<f64>() / pixels.len() as f64;
    for pixel in &mut *pixels {
        *pixel = pixel.map(|v| blend(v, mean, contrast.0));
        let own = grey(*pixel);
        *pixel = pixel.map(|v| blend(v, own, saturation.0));
    }
}

#[test]
fn contrast_blends_with_the_mean_of_the_row_as_it_stands_there() {
    let orders = |factor: f64| -> [Vec<Op>; 5] {
        let alone = jitter(1.0, factor, 1.0);
        let (dark, strong) = (jitter(0.6, 1.0, 1.0), jitter(1.0, 1.0, 1.7));
        [
            vec![alone.clone()],
            vec![alone.clone(), strong.clone()],
            vec![strong, alone.clone()],
            vec![alone, dark],
            vec![jitter(1.4, factor, 0.3)],
        ]
    };
    for (width, height) in [(1, 1), (1, 7), (17, 33), (64, 5), (70, 41)] {
        let picture = fixtures::pattern(width, height, 3);
        let file = png(width, height);
        for factor in [0.0, 0.4, 1.5, 3.0] {
            for (ops, turned) in orders(factor).iter().flat_map(|o| [(o, false), (o, true)]) {
                let mut recipe = Recipe::new("law").then(Decode::default());
                recipe.ops.push(CenterCrop::new((height, width)).into());
                if turned {
                    recipe.ops.push(Rotate90 { times: 1 }.into());
                }
                recipe.ops.extend(ops.iter().cloned());
                recipe.ops.push(
                    Cast {
                        dtype: DataType::F32,
                    }
                    .into(),
                );
                let layout = MemoryLayout::Nhwc;
                recipe.ops.push(Layout { layout }.into());
                let program = SampleProgram::compile(&recipe).unwrap();
                let program = program.with_crops().unwrap();
                let (made, header) = by_crop(&program, &file, 0, None).unwrap();
                let steps = &header.step[..header.steps as usize];
                assert!(steps.iter().any(CropStep::takes_mean));

                let mut pixels: Vec<[f64; 3]> = picture
                    .as_chunks()
                    .0
                    .iter()
                    .map(|p: &[u8; 3]| p.map(f64::from))
                    .collect();
                for op in ops {
                    law(op, &mut pixels);
                }
                let (w, h) = (width as usize, height as usize);
                let places: Vec<usize> = match turned {
                    false => (0..w * h).collect(),
                    // The last column is the first row.
                    true => (0..w)
                        .flat_map(|y| (0..h).map(move |x| x * w + w - 1 - y))
                        .collect(),
                };
                for (made, at) in made.chunks_exact(3).zip(places) {
                    for (made, want) in made.iter().zip(pixels[at]) {
                        let off = (f64::from(*made) * 255.0 - want).abs();
                        assert!(
                            off <= TOLERANCE,
                            "{width}x{height} by {factor}, {turned}: {off} of {want}, {ops:?}"
                        );
                    }
                }
            }
        }
    }
}
