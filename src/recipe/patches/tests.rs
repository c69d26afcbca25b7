use std::collections::BTreeMap;

use serde::Deserialize;

use super::{PatchGrid, PatchOrder, PatchRule, PatchStyle};
use crate::tests_support::golden;

#[derive(Debug, Deserialize)]
struct OrderCase {
    rule: PatchRule,
    grid: (u32, u32),
    at: usize,
}

#[derive(Debug, Deserialize)]
struct PixelCases {
    floats: BTreeMap<String, PixelFloats>,
    images: Vec<PixelImage>,
}

#[derive(Debug, Deserialize)]
struct PixelFloats {
    image_mean: [f64; 3],
    image_std: [f64; 3],
}

#[derive(Debug, Deserialize)]
struct PixelImage {
    size: (u32, u32),
    at: usize,
    rows: Vec<PixelRow>,
}

#[derive(Debug, Deserialize)]
struct PixelRow {
    rule: PatchRule,
    grid: (u32, u32),
    torchvision: usize,
    pil: usize,
}

/// Numbers without a pattern, the same in each run.
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11
    }

    /// From 0 to `end` - 1.
    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// From `least` to `most`. All orders of magnitude are as likely.
    fn sized(&mut self, least: u64, most: u64) -> u64 {
        let bits = u64::from((most / least).ilog2()) + 1;
        let end = least.saturating_mul(2 << self.below(bits)).min(most + 1);
        least + self.below(end.max(least + 1) - least)
    }
}

fn words(bytes: &[u8]) -> Vec<u32> {
    let words = bytes.chunks_exact(2);
    words
        .map(|word| u32::from(u16::from_le_bytes([word[0], word[1]])))
        .collect()
}

#[test]
fn grids_are_those_of_transformers() {
    let rules: Vec<PatchRule> =
        serde_json::from_slice(&golden("patches", "sizes.json").unwrap()).unwrap();
    let pairs = words(&golden("patches", "sizes.bin").unwrap());
    let pairs: Vec<(u32, u32)> = pairs.chunks_exact(2).map(|two| (two[0], two[1])).collect();
    let count = pairs.len() / (rules.len() + 1);
    let (images, grids) = pairs.split_at(count);
    let (mut wrong, mut refused) = (Vec::new(), 0);
    for (rule, grids) in rules.iter().zip(grids.chunks_exact(count)) {
        rule.check().unwrap();
        for (image, &(rows, columns)) in images.iter().zip(grids) {
            let want = (rows > 0).then_some(PatchGrid { rows, columns });
            let got = rule.grid(*image).ok();
            refused += u32::from(want.is_none());
            if got != want || got.is_some_and(|grid| grid.patches() > rule.most_patches()) {
                wrong.push(format!("{rule:?}: {image:?}: {got:?} instead of {want:?}"));
            }
        }
    }
    let lines = wrong.len().min(12);
    assert!(
        wrong.is_empty() && count == 800 && rules.len() == 12 && refused > 50,
        "{} of {count} images, {refused} refused:\n{}",
        wrong.len(),
        wrong[..lines].join("\n")
    );
}

/// Checks each value of a row against the place that `order` has for its pixel. `value` is that of
/// a pixel and a channel.
fn check_row<T: PartialEq + std::fmt::Debug + Copy>(
    order: PatchOrder,
    grid: PatchGrid,
    row: &[T],
    value: impl Fn(u32, u32, u32) -> T,
) {
    let (height, width) = grid.resized(order.patch_size);
    let mut seen = vec![false; row.len()];
    for (y, x) in (0..height).flat_map(|y| (0..width).map(move |x| (y, x))) {
        for (c, copy) in (0..3).flat_map(|c| (0..order.temporal).map(move |copy| (c, copy))) {
            let at = order.index(grid.columns, y, x, c) + copy as usize * order.frame_stride();
            assert!(!seen[at], "{order:?}: two values at {at}");
            seen[at] = true;
            assert_eq!(row[at], value(y, x, c), "{order:?}: {y}, {x}, {c}, {copy}");
        }
    }
    assert!(seen.into_iter().all(|seen| seen));
}

#[test]
fn orders_are_those_of_transformers() {
    let cases: Vec<OrderCase> =
        serde_json::from_slice(&golden("patches", "orders.json").unwrap()).unwrap();
    let sources = words(&golden("patches", "orders.bin").unwrap());
    assert_eq!(cases.len(), 10);
    for OrderCase { rule, grid, at } in cases {
        let (rows, columns) = grid;
        let grid = PatchGrid { rows, columns };
        let values = grid.patches() as usize * rule.patch_values();
        let width = columns * rule.patch_size;
        check_row(rule.order(), grid, &sources[at..][..values], |y, x, c| {
            (y * width + x) * 3 + c
        });
    }
}

/// An image that keeps its size has its own levels, in the order of the processor. A float is its
/// level, less the mean and divided by the deviation, up to the rounding.
#[test]
fn rows_have_the_pixels_of_their_images() {
    let cases: PixelCases =
        serde_json::from_slice(&golden("patches", "pixels.json").unwrap()).unwrap();
    let data = golden("patches", "pixels.bin").unwrap();
    let mut kept = 0;
    for image in &cases.images {
        for row in &image.rows {
            let grid = row.rule.grid(image.size).unwrap();
            assert_eq!((grid.rows, grid.columns), row.grid);
            if grid.resized(row.rule.patch_size) != image.size {
                continue;
            }
            kept += 1;
            let order = PatchOrder {
                temporal: 1,
                ..row.rule.order()
            };
            let pixel = |y, x, c| data[image.at + ((y * image.size.1 + x) * 3 + c) as usize];
            let values = (image.size.0 * image.size.1 * 3) as usize;
            for at in [row.torchvision, row.pil] {
                check_row(order, grid, &data[at..][..values], pixel);
            }
        }
    }
    assert_eq!(kept, 2);
    for (style, floats) in &cases.floats {
        let table = golden("patches", &format!("{style}.f32")).unwrap();
        assert_eq!(table.len(), 256 * 3 * 4);
        for (at, value) in table.chunks_exact(4).enumerate() {
            let value = f32::from_le_bytes(value.try_into().unwrap());
            let (level, c) = ((at / 3) as f64, at % 3);
            let want = (level / 255.0 - floats.image_mean[c]) / floats.image_std[c];
            assert!((f64::from(value) - want).abs() < 1e-6, "{style}: {at}");
        }
    }
}

/// Images that have many patches: those near the limits of the ratio, near a whole number of
/// blocks, and of the area of each limit.
fn demanding_image(draw: &mut Draw, rule: &PatchRule) -> (u32, u32) {
    let block = u64::from(rule.patch_size * rule.merge_size);
    let near = |draw: &mut Draw, side: u64| (side + draw.below(5)).saturating_sub(2).max(1);
    let (height, width) = match draw.below(5) {
        0 => (draw.sized(1, 1 << 24), draw.sized(1, 1 << 24)),
        // The ratio of 200, whatever the size.
        1 => {
            let height = draw.sized(1, (1 << 24) / 201);
            let spare = draw.below(height.min(20));
            (height, height * 200 - spare)
        }
        // A ratio of blocks, so that one side lies near whole blocks after the resize.
        2 => {
            let pixels = match draw.below(2) {
                0 => rule.min_pixels,
                _ => rule.max_pixels,
            };
            let rows = draw.sized(1, (pixels.isqrt() / block).max(1));
            // Height : width is (rows x block)^2 : pixels.
            let scale = draw.sized(1, 1 << 10);
            let height = (rows * block * scale / 16).max(1);
            let width = (pixels * scale / (rows * block * 16)).max(1);
            (near(draw, height), near(draw, width))
        }
        // Sides that round up.
        3 => {
            let side = |draw: &mut Draw| {
                let blocks = draw.sized(1, 1 << 10) - 1;
                blocks * block + block / 2
            };
            let (height, width) = (side(draw), side(draw));
            (near(draw, height), near(draw, width))
        }
        // Squares of each limit.
        _ => {
            let side = match draw.below(2) {
                0 => rule.min_pixels.isqrt(),
                _ => rule.max_pixels.isqrt(),
            };
            let times = draw.sized(1, 64);
            (near(draw, side * times), near(draw, side * times))
        }
    };
    let side = |side: u64| side.min(1 << 24) as u32;
    match draw.below(2) {
        0 => (side(height), side(width)),
        _ => (side(width), side(height)),
    }
}

fn demanding_rule(draw: &mut Draw) -> PatchRule {
    let patch_size = [1, 2, 3, 4, 7, 14, 16, 28, 64][draw.below(9) as usize];
    let merge_size = 1 + draw.below(3) as u32;
    let block = u64::from(patch_size * merge_size).pow(2);
    let max_pixels = match draw.below(3) {
        0 => block * draw.sized(1, 300),
        1 => block * draw.sized(1, 300) + draw.below(block),
        _ => block * draw.sized(1, 9).pow(2) * 200,
    };
    let min_pixels = match draw.below(4) {
        0 => max_pixels,
        1 => block * draw.sized(1, max_pixels / block),
        2 => max_pixels - draw.below(max_pixels.min(20)),
        _ => draw.sized(1, max_pixels),
    };
    PatchRule {
        merge_size,
        ..PatchRule::qwen(patch_size, min_pixels, max_pixels)
    }
}

#[test]
fn no_image_has_more_patches_than_the_bound() {
    let mut draw = Draw(0x9E37_79B9_7F4A_7C15);
    let (mut reached, mut above_max) = (0, 0);
    for _ in 0..1500 {
        let rule = demanding_rule(&mut draw);
        rule.check().unwrap();
        let (bound, mut most) = (rule.most_patches(), 0);
        for _ in 0..200 {
            let image = demanding_image(&mut draw, &rule);
            let Ok(grid) = rule.grid(image) else {
                continue;
            };
            assert!(grid.rows > 0 && grid.columns > 0, "{rule:?}: {image:?}");
            most = most.max(grid.patches());
            assert!(
                grid.patches() <= bound,
                "{rule:?}: {image:?}: {grid:?}, bound {bound}"
            );
        }
        reached += u32::from(most == bound);
        let pixels = bound * u64::from(rule.patch_size).pow(2);
        above_max += u32::from(pixels > rule.max_pixels);
    }
    assert!(
        reached > 400 && above_max > 400,
        "{reached} bounds reached, {above_max} above max_pixels"
    );
}

#[test]
fn bounds_of_models_are_their_limits() {
    // The most of Qwen2-VL's class, of its model, and of Qwen3-VL.
    for (patch, least, most, patches) in [
        (14, 3136, 1_003_520, 5120),
        (14, 3136, 12_845_056, 65_536),
        (16, 65_536, 16_777_216, 65_536),
    ] {
        let rule = PatchRule::qwen(patch, least, most);
        rule.check().unwrap();
        assert_eq!(rule.most_patches(), patches);
    }
    assert_eq!(PatchRule::qwen(14, 3136, 12_845_056).patch_values(), 1176);
    assert_eq!(PatchRule::siglip2(16, 256).most_patches(), 256);
    assert_eq!(PatchRule::siglip2(16, 256).patch_values(), 768);
}

#[test]
fn no_image_of_siglip2_has_more_patches_than_the_limit() {
    let mut draw = Draw(0xD1B5_4A32_D192_ED03);
    let mut refused = 0;
    for _ in 0..20_000 {
        let patch_size = draw.sized(1, 64) as u32;
        let rule = PatchRule::siglip2(patch_size, draw.sized(1, 4096) as u32);
        rule.check().unwrap();
        let image = (draw.sized(1, 1 << 24) as u32, draw.sized(1, 1 << 24) as u32);
        match rule.grid(image) {
            Ok(grid) => assert!(grid.patches() <= rule.most_patches(), "{rule:?}: {image:?}"),
            Err(text) => {
                refused += 1;
                assert!(text.contains("smallest scale"), "{text}");
                assert!(image.0.max(image.1) > 1_000_000, "{text}");
            }
        }
    }
    assert!(refused > 0);
}

#[test]
fn rules_that_cannot_be_are_refused() {
    let qwen = || PatchRule::qwen(14, 3136, 1_003_520);
    let siglip2 = || PatchRule::siglip2(16, 256);
    let with = |change: fn(&mut PatchRule), mut rule: PatchRule| {
        change(&mut rule);
        rule.check().unwrap_err()
    };
    assert!(with(|r| r.patch_size = 0, qwen()).contains("patch_size 0 must be 1 to 64"));
    assert!(with(|r| r.patch_size = 65, siglip2()).contains("patch_size 65"));
    assert!(with(|r| r.merge_size = 9, qwen()).contains("merge_size 9 must be 1 to 8"));
    assert!(
        with(|r| r.temporal_patch_size = 5, qwen())
            .contains("temporal_patch_size 5 must be 1 to 4")
    );
    assert!(with(|r| r.min_pixels = 0, qwen()).contains("min_pixels 0 must be 1 to 1003520"));
    assert!(with(|r| r.min_pixels = 1_003_521, qwen()).contains("which is max_pixels"));
    assert!(with(|r| r.max_pixels = 783, qwen()).contains("max_pixels 783 must be 784 (one block"));
    assert!(with(|r| r.max_pixels = u64::MAX, qwen()).contains("to 4294967296"));
    assert!(with(|r| r.max_num_patches = 1, qwen()).contains("use max_pixels"));
    assert!(with(|r| r.max_pixels = 1 << 32, qwen()).contains("reduce max_pixels"));
    assert!(
        with(|r| r.max_num_patches = 0, siglip2())
            .contains("max_num_patches 0 must be 1 to 1048576")
    );
    assert!(with(|r| r.max_num_patches = 1 << 21, siglip2()).contains("reduce max_num_patches"));
    assert!(with(|r| r.merge_size = 2, siglip2()).contains("merge_size 2 must be 1 with"));
    assert!(
        with(|r| r.temporal_patch_size = 2, siglip2())
            .contains("temporal_patch_size 2 must be 1 with")
    );
    assert!(with(|r| r.min_pixels = 9, siglip2()).contains("min_pixels is of style qwen only"));
    // The least and the largest that pass.
    for rule in [
        PatchRule::qwen(14, 1, 784),
        PatchRule::qwen(64, 1, 1 << 32),
        PatchRule::siglip2(1, 1),
        PatchRule::siglip2(64, 1 << 20),
    ] {
        rule.check().unwrap();
    }
}

#[test]
fn images_that_cannot_be_are_refused() {
    let qwen = PatchRule::qwen(14, 3136, 1_003_520);
    let siglip2 = PatchRule::siglip2(16, 256);
    for rule in [qwen, siglip2] {
        let text = rule.grid((0, 30)).unwrap_err();
        assert!(text.contains("height 0 and width 30"), "{text}");
        let text = rule.grid((30, u32::MAX)).unwrap_err();
        assert!(text.contains("at most 16777216"), "{text}");
    }
    let text = qwen.grid((2, 401)).unwrap_err();
    assert!(text.contains("height 2 and width 401"), "{text}");
    assert!(text.contains("at most 200 times"), "{text}");
    assert!(qwen.grid((2, 400)).is_ok() && siglip2.grid((2, 401)).is_ok());
}

#[test]
fn styles_have_their_names() {
    let name = |style| serde_json::to_string(&style).unwrap();
    assert_eq!(name(PatchStyle::Qwen), r#""qwen""#);
    assert_eq!(name(PatchStyle::Siglip2), r#""siglip2""#);
}
