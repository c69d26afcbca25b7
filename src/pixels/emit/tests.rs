//! Every output format against the documented map and formula; EXIF orientations.

use super::*;
use crate::pixels::rounding::{elements, numbers, step};
use crate::recipe::PatchOrder;

const MEAN: [f32; 3] = [0.485, 0.456, 0.406];
const STD: [f32; 3] = [0.229, 0.224, 0.225];

fn image(width: usize, height: usize) -> Vec<RgbPixel<u8>> {
    (0..width * height)
        .map(|i| [0, 1, 2].map(|c| ((3 * i + c) * 7 + (3 * i + c) / 5) as u8))
        .collect()
}

/// Levels with fractions, including halves and values beyond the range.
fn floats(width: usize, height: usize) -> Vec<RgbPixel<f32>> {
    let of = |v: u8| match v {
        1 => -0.0,
        _ => f32::from(v) * 1.25 - 20.5,
    };
    image(width, height).iter().map(|p| p.map(of)).collect()
}

fn placements() -> impl Iterator<Item = PixelPlacement> {
    (0..8).map(|bits| PixelPlacement {
        flip_x: bits & 1 != 0,
        flip_y: bits & 2 != 0,
        transpose: bits & 4 != 0,
    })
}

fn emissions() -> impl Iterator<Item = OutputFormat> {
    let layouts = [MemoryLayout::Nchw, MemoryLayout::Nhwc];
    let orders = [ColorOrder::Rgb, ColorOrder::Bgr, ColorOrder::Grey];
    layouts.into_iter().flat_map(move |layout| {
        orders.into_iter().flat_map(move |order| {
            DataType::ALL.into_iter().flat_map(move |dtype| {
                let scalings = [
                    (255.0, MEAN, STD),
                    (1.0, MEAN, STD),
                    (1.0, [0.0; 3], [1.0; 3]),
                ];
                scalings.map(|(unit, mean, std)| OutputFormat {
                    zero_channels: 0,
                    patches: None,
                    unit,
                    mean,
                    std,
                    dtype,
                    layout,
                    order,
                })
            })
        })
    })
}

fn of_dtype(dtype: DataType) -> OutputFormat {
    OutputFormat {
        zero_channels: 0,
        patches: None,
        unit: 255.0,
        mean: MEAN,
        std: STD,
        dtype,
        layout: MemoryLayout::Nhwc,
        order: ColorOrder::Rgb,
    }
}

/// The documented map and formula, element by element.
fn expected(pixels: PixelView<'_, f32>, p: PixelPlacement, e: OutputFormat) -> Vec<u8> {
    let (ow, oh) = p.output_size(pixels.width, pixels.height);
    let channels = match e.order {
        ColorOrder::Grey => 1,
        ColorOrder::Rgb | ColorOrder::Bgr => 3,
    };
    let size = e.dtype.size();
    let mut out = vec![0; ow * oh * channels * size];
    for y in 0..oh {
        for x in 0..ow {
            let (mut sy, mut sx) = if p.transpose { (x, y) } else { (y, x) };
            if p.flip_x {
                sx = pixels.width - 1 - sx;
            }
            if p.flip_y {
                sy = pixels.height - 1 - sy;
            }
            let pixel = pixels.pixels[sy * pixels.stride + sx];
            for c in 0..channels {
                let v = match e.order {
                    ColorOrder::Bgr => pixel[2 - c],
                    ColorOrder::Rgb | ColorOrder::Grey => pixel[c],
                };
                let f = (v / e.unit - e.mean[c]) / e.std[c];
                let at = match e.layout {
                    MemoryLayout::Nchw => (c * oh + y) * ow + x,
                    MemoryLayout::Nhwc => (y * ow + x) * channels + c,
                } * size;
                match e.dtype {
                    DataType::U8 => out[at] = v.round_ties_even().clamp(0.0, 255.0) as u8,
                    floats => out[at..at + size].copy_from_slice(&elements([f], floats)),
                }
            }
        }
    }
    out
}

/// Spaces the rows `stride` apart with `gap` between them, and cuts off after the last.
fn apart<T: Copy>(pixels: &[RgbPixel<T>], width: usize, stride: usize, gap: T) -> Vec<RgbPixel<T>> {
    let mut apart = Vec::new();
    for row in pixels.chunks(width) {
        apart.extend_from_slice(row);
        apart.resize(apart.len() + stride - width, [gap; 3]);
    }
    apart.truncate(apart.len() - (stride - width));
    apart
}

#[test]
fn every_form_follows_the_documented_map_and_formula() {
    for (width, height) in [(1, 1), (5, 3), (17, 4), (3, 33), (16, 16), (53, 2)] {
        let (levels, floats) = (image(width, height), floats(width, height));
        let whole: Vec<RgbPixel<f32>> = levels.iter().map(|p| p.map(f32::from)).collect();
        for emission in emissions() {
            let emitter = RowEmitter::new(emission);
            for p in placements() {
                let what = format!("{width}x{height} {emission:?} {p:?}");
                let want = expected(PixelView::tight(&whole, width, height), p, emission);
                // Offset by one byte, so that nothing is aligned.
                let mut out = vec![0xee; emitter.row_bytes(width, height) + 1];
                emitter.emit(levels.as_flattened(), width, height, p, &mut out[1..]);
                assert!(out[1..] == want, "{what}");
                let stride = width + 3;
                let view = |pixels| PixelView {
                    pixels,
                    width,
                    height,
                    stride,
                };
                let mut again = vec![0xee; want.len()];
                let gaps = apart(&levels, width, stride, 0xdd);
                emitter.emit_rows(view(&gaps), p, &mut again);
                assert!(again == want, "{what}, in rows of {stride}");
                let gaps = apart(&floats, width, stride, f32::NAN);
                let view = PixelView {
                    pixels: &gaps[..],
                    width,
                    height,
                    stride,
                };
                let want = expected(view, p, emission);
                out.fill(0xee);
                emitter.emit_floats(view, p, &mut out[1..]);
                assert!(out[1..] == want, "{what}, of floats");
            }
        }
    }
}

/// Floats that are hard to round: values of a type, the midpoints between them, and the floats
/// beside both. Includes infinities and overflows.
fn hard(dtype: DataType) -> Vec<f32> {
    let all = (0..=u16::MAX).map(|bits| match dtype {
        DataType::F16 => f16::from_bits(bits).to_f32(),
        _ => f32::from_bits(u32::from(bits) << 16),
    });
    let near = all.filter(|v| v.is_finite()).flat_map(|v| {
        let half = step(v.into(), dtype) / 2.0;
        let half = (f64::from(v) + half.copysign(v.into())) as f32;
        [v, half.next_down(), half, half.next_up()]
    });
    let beyond = [f32::MAX, f32::MIN, f32::INFINITY, f32::NEG_INFINITY, 1e-45];
    let mut hard: Vec<f32> = beyond.into_iter().chain(near).collect();
    hard.truncate(hard.len() / 3 * 3);
    hard
}

#[test]
fn floats_become_the_nearest_elements_halves_to_the_even_side() {
    for dtype in [DataType::F16, DataType::Bf16] {
        let emitter = RowEmitter::new(OutputFormat {
            zero_channels: 0,
            patches: None,
            unit: 1.0,
            mean: [0.0; 3],
            std: [1.0; 3],
            ..of_dtype(dtype)
        });
        let hard = hard(dtype);
        assert!(hard.len() > 250_000);
        let pixels = hard.as_chunks().0;
        let view = PixelView::tight(pixels, pixels.len(), 1);
        let mut out = vec![0; 2 * hard.len()];
        emitter.emit_floats(view, PixelPlacement::default(), &mut out);
        let want = elements(hard.iter().copied(), dtype);
        for (i, v) in hard.iter().enumerate() {
            let at = 2 * i..2 * i + 2;
            assert_eq!(
                out[at.clone()],
                want[at],
                "{dtype} of {:#010x}",
                v.to_bits()
            );
        }
        // NaN, with various bits.
        for bits in [0x7f80_0001, 0x7fc0_0000, 0xffff_ffff, 0xff80_8000] {
            let mut out = [0; 6];
            let pixel = [[f32::from_bits(bits); 3]];
            emitter.emit_floats(
                PixelView::tight(&pixel, 1, 1),
                PixelPlacement::default(),
                &mut out,
            );
            let got = numbers(&out, dtype);
            assert!(got.iter().all(|v| v.is_nan()), "{dtype} {bits:#010x}");
        }
    }
}

/// A recipe may hold levels in either type.
#[test]
fn whole_levels_come_out_the_same_in_both_types() {
    let all: Vec<RgbPixel<u8>> = (0..=255).map(|v| [v, 255 - v, v ^ 0x55]).collect();
    let whole: Vec<RgbPixel<f32>> = all.iter().map(|p| p.map(f32::from)).collect();
    for emission in emissions() {
        let emitter = RowEmitter::new(emission);
        let mut one = vec![0; emitter.row_bytes(32, 8)];
        let mut other = one.clone();
        emitter.emit_rows(
            PixelView::tight(&all, 32, 8),
            PixelPlacement::default(),
            &mut one,
        );
        emitter.emit_floats(
            PixelView::tight(&whole, 32, 8),
            PixelPlacement::default(),
            &mut other,
        );
        assert!(one == other, "{emission:?}");
    }
}

/// After a normalisation within a recipe, in any order of calls.
#[test]
fn normalised_levels_come_out_as_their_floats() {
    let (width, height) = (32, 8);
    let all: Vec<RgbPixel<u8>> = (0..=255).map(|v| [v, 255 - v, v ^ 0x55]).collect();
    let levels = PixelView::tight(&all[..], width, height);
    let scalings = [0.5, 0.25, 0.25, 0.5].map(|std| ChannelScaling {
        unit: 255.0,
        mean: [0.485, 0.456, -0.406],
        std: [std, 0.3, 7.0],
    });
    for emission in emissions().filter(|e| e.dtype != DataType::U8) {
        let mut emitter = RowEmitter::new(emission);
        assert!(emitter.normalises());
        for (scaling, p) in scalings.into_iter().zip(placements()) {
            let mut floats = vec![[0.0; 3]; all.len()];
            crate::pixels::normalise::normalise(levels, scaling, &mut floats);
            let mut want = vec![0; emitter.row_bytes(width, height)];
            emitter.emit_floats(PixelView::tight(&floats, width, height), p, &mut want);
            let mut out = vec![0; want.len()];
            emitter.emit_normalised(levels, scaling, p, &mut out);
            assert!(out == want, "{emission:?} {scaling:?} {p:?}");
        }
    }
}

/// The orientation that makes an image with this EXIF number upright. Numbers other than 1 to 8
/// change nothing.
fn from_exif(orientation: u8) -> PixelPlacement {
    let (transpose, flip_y, flip_x) = match orientation {
        2 => (false, false, true),
        3 => (false, true, true),
        4 => (false, true, false),
        5 => (true, false, false),
        6 => (true, true, false),
        7 => (true, true, true),
        8 => (true, false, true),
        _ => (false, false, false),
    };
    PixelPlacement {
        flip_x,
        flip_y,
        transpose,
    }
}

/// Upright images of an F, stored in each of the eight ways.
#[test]
fn exif_orientations_come_out_upright() {
    let upright = ["##", "# ", "##", "# "];
    let stored: [&[&str]; 8] = [
        &["##", "# ", "##", "# "],
        &["##", " #", "##", " #"],
        &[" #", "##", " #", "##"],
        &["# ", "##", "# ", "##"],
        &["####", "# # "],
        &["# # ", "####"],
        &[" # #", "####"],
        &["####", " # #"],
    ];
    let emitter = RowEmitter::new(of_dtype(DataType::U8));
    let bytes = |rows: &[&str]| -> Vec<u8> { rows.concat().bytes().flat_map(|b| [b; 3]).collect() };
    for (orientation, rows) in (1..).zip(stored) {
        let p = from_exif(orientation);
        let (width, height) = (rows[0].len(), rows.len());
        assert_eq!(p.output_size(width, height), (2, 4));
        let mut out = vec![0; 24];
        emitter.emit(&bytes(rows), width, height, p, &mut out);
        assert_eq!(out, bytes(&upright), "orientation {orientation}");
        emitter.emit(&bytes(rows), width, height, p.mirrored(), &mut out);
        assert_eq!(
            out,
            bytes(&["##", " #", "##", " #"]),
            "{orientation} mirrored"
        );
    }
    assert_eq!(from_exif(0), PixelPlacement::default());
    assert_eq!(from_exif(9), PixelPlacement::default());
}

#[test]
#[should_panic(expected = "the output row does not fit 2 x 2")]
fn an_output_of_another_size_is_refused() {
    let emitter = RowEmitter::new(of_dtype(DataType::F32));
    emitter.emit(&[0; 12], 2, 2, PixelPlacement::default(), &mut [0; 47]);
}

#[test]
fn patches_have_the_elements_of_rows_in_another_order() {
    // Sides that are whole blocks, also turned.
    let (width, height) = (24, 12);
    let (levels, fractions) = (image(width, height), floats(width, height));
    for (merge_size, temporal, channels_last, is_numbered) in [
        (1, 1, true, false),
        (2, 2, false, false),
        (1, 3, false, false),
        (1, 1, true, true),
    ] {
        let order = PatchOrder {
            patch_size: 3,
            merge_size,
            temporal,
            channels_last,
            is_numbered,
        };
        for rows in emissions() {
            if rows.layout == MemoryLayout::Nchw || rows.order == ColorOrder::Grey {
                continue;
            }
            let patches = OutputFormat {
                patches: Some(order),
                ..rows
            };
            let (mut rows, mut patches) = (RowEmitter::new(rows), RowEmitter::new(patches));
            let size = rows.emission.dtype.size();
            for p in placements() {
                let (ow, oh) = p.output_size(width, height);
                let mut made = vec![vec![0; rows.row_bytes(width, height)]; 3];
                let mut cut = vec![vec![0; patches.row_bytes(width, height)]; 3];
                let places = 2 * (ow / 3) * (oh / 3) * usize::from(is_numbered);
                let values = made[0].len() * temporal as usize;
                assert_eq!(cut[0].len(), values + places * size);
                for (emitter, out) in [(&mut rows, &mut made), (&mut patches, &mut cut)] {
                    let view = PixelView::tight(&levels, width, height);
                    emitter.emit_rows(view, p, &mut out[0]);
                    if emitter.normalises() {
                        emitter.emit_normalised(view, emitter.scaling, p, &mut out[1]);
                    }
                    let view = PixelView::tight(&fractions, width, height);
                    emitter.emit_floats(view, p, &mut out[2]);
                }
                for (made, cut) in made.iter().zip(&cut) {
                    let patches = cut.chunks_exact(order.patch_values() * size).enumerate();
                    // Levels are not normalised.
                    let is_written = cut.iter().any(|byte| *byte != 0);
                    for (number, patch) in patches.filter(|_| is_numbered && is_written) {
                        let place = [1 + number / (ow / 3), 1 + number % (ow / 3)];
                        for (to, place) in patch.chunks_exact(size).zip(place) {
                            let got = match rows.emission.dtype {
                                DataType::F32 => f32::from_ne_bytes(to.try_into().unwrap()),
                                DataType::F16 => f16::from_ne_bytes(to.try_into().unwrap()).into(),
                                DataType::Bf16 => {
                                    bf16::from_ne_bytes(to.try_into().unwrap()).into()
                                }
                                DataType::U8 => to[0].into(),
                            };
                            assert_eq!(got, place as f32, "{p:?}");
                        }
                    }
                    for (at, element) in made.chunks_exact(size).enumerate() {
                        let (pixel, c) = (at / 3, at % 3);
                        let (y, x) = ((pixel / ow) as u32, (pixel % ow) as u32);
                        assert!(y < oh as u32);
                        let first = order.index(ow as u32 / 3, y, x, c as u32);
                        for copy in 0..temporal as usize {
                            let at = (first + copy * order.frame_stride()) * size;
                            assert_eq!(&cut[at..at + size], element, "{order:?} {p:?}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn a_row_has_zeros_after_its_patches() {
    let order = PatchOrder {
        patch_size: 2,
        merge_size: 1,
        temporal: 1,
        channels_last: true,
        is_numbered: false,
    };
    let emitter = RowEmitter::new(OutputFormat {
        patches: Some(order),
        ..of_dtype(DataType::F16)
    });
    let mut row = [0xa5; 100];
    assert_eq!(emitter.image_part(4, 2, &mut row).len(), 48);
    assert!(row[..48].iter().all(|v| *v == 0xa5) && row[48..].iter().all(|v| *v == 0));
}
