//! Frequency of each image, row, column and pixel.
//!
//! Compares counts with their expectation by chi-square, at a probability of 1e-6 on either side,
//! with fixed seeds.

use super::*;

const SIZES: [(u32, u32); 6] = [(7, 5), (64, 1), (1, 90), (33, 20), (130, 3), (12, 12)];

/// Checks that each bin is close to its weight's share: chi-square between its quantiles of 1e-6
/// and 1 - 1e-6, by Wilson and Hilferty's approximation.
fn assert_spread(bins: &[u64], weights: &[f64]) {
    let (n, total) = (bins.iter().sum::<u64>() as f64, weights.iter().sum::<f64>());
    let mut chi = 0.0;
    let mut used = 0.0;
    for (bin, weight) in bins.iter().zip(weights) {
        let expected = n * weight / total;
        if *weight == 0.0 {
            assert_eq!(*bin, 0, "drawn where nothing is");
            continue;
        }
        assert!(expected >= 5.0, "too few draws to say: {expected}");
        chi += (*bin as f64 - expected).powi(2) / expected;
        used += 1.0;
    }
    let freedom = used - 1.0;
    assert_eq!(bins.len(), weights.len());
    assert!(freedom >= 3.0, "{freedom}");
    let quantile = |z: f64| {
        let spread: f64 = 2.0 / (9.0 * freedom);
        freedom * (1.0 - spread + z * spread.sqrt()).max(0.0).powi(3)
    };
    assert!(
        (quantile(-4.753)..quantile(4.753)).contains(&chi),
        "chi-square {chi:.1} for {freedom} degrees of freedom"
    );
}

fn counted(len: usize, places: impl IntoIterator<Item = u32>) -> Vec<u64> {
    let mut bins = vec![0; len];
    for place in places {
        bins[place as usize] += 1;
    }
    bins
}

fn pixels_of(mask: MaskView<'_>) -> Vec<(u32, u32)> {
    let (width, height) = mask.size();
    let all = (0..height).flat_map(|r| (0..width).map(move |c| (r, c)));
    all.filter(|&(r, c)| mask.holds(r, c)).collect()
}

#[test]
fn images_are_even_and_none_is_left_out_when_they_outnumber_the_rays() {
    let images = wholes(&[(108, 192); 300]);
    for sampler in [RaySampler::Uniform, RaySampler::ByImage] {
        let pixels = drawn(&table(sampler, 0, &images), 500, 128, no_mask);
        let bins = counted(300, pixels.iter().map(|p| p.image));
        assert_spread(&bins, &[1.0; 300]);
        assert!(bins.iter().all(|&bin| bin > 0));
        // Most images that a fair draw reaches in the first two steps.
        let early = counted(300, pixels[..256].iter().map(|p| p.image));
        let reached = early.iter().filter(|&&bin| bin > 0).count();
        assert!((140..200).contains(&reached), "{reached}");
    }
}

#[test]
fn mixed_sizes_are_drawn_by_pixel_or_by_image() {
    let images = wholes(&SIZES);
    let sized: Vec<f64> = SIZES.iter().map(|&(w, h)| f64::from(w * h)).collect();
    for (sampler, weights) in [
        (RaySampler::Uniform, sized),
        (RaySampler::ByImage, vec![1.0; 6]),
    ] {
        let pixels = drawn(&table(sampler, 0, &images), 300, 1000, no_mask);
        assert_spread(&counted(6, pixels.iter().map(|p| p.image)), &weights);
        for (number, (w, h)) in (0..).zip(SIZES) {
            let here = || pixels.iter().filter(|p| p.image == number);
            if h > 3 {
                let rows = counted(h as usize, here().map(|p| p.row));
                assert_spread(&rows, &vec![1.0; h as usize]);
            }
            if w > 3 {
                let cols = counted(w as usize, here().map(|p| p.col));
                assert_spread(&cols, &vec![1.0; w as usize]);
            }
        }
    }
}

#[test]
fn every_pixel_of_every_image_is_as_likely() {
    let sizes = [(7, 5), (3, 40), (65, 2), (1, 1)];
    let pixels = drawn(
        &table(RaySampler::Uniform, 0, &wholes(&sizes)),
        100,
        1000,
        no_mask,
    );
    let start = |image: u32| -> u32 { sizes[..image as usize].iter().map(|(w, h)| w * h).sum() };
    let place = |p: &ScenePixel| start(p.image) + p.row * sizes[p.image as usize].0 + p.col;
    let bins = counted(start(4) as usize, pixels.iter().map(place));
    assert_spread(&bins, &vec![1.0; bins.len()]);
}

#[test]
fn masks_are_drawn_from_pixel_by_pixel_and_empty_ones_never() {
    let size = (70, 9);
    let (sparse, dense) = (random_mask(size, 1, 1), random_mask(size, 8, 2));
    let single = {
        let mut pixels = [0; 630];
        pixels[8 * 70 + 69] = 255;
        MaskBits::from_pixels(&pixels, 70, 9).unwrap()
    };
    let empty = MaskBits::from_pixels(&[0; 630], 70, 9).unwrap();
    let masks = [&empty, &sparse, &single, &dense, &empty];
    let mut images: Vec<_> = masks
        .iter()
        .map(|mask| (size, SamplingRegion::masked(mask.view())))
        .collect();
    images.push(((20, 4), SamplingRegion::WHOLE));
    // Index of each pixel that may be drawn, image by image.
    let mut all: Vec<ScenePixel> = Vec::new();
    for (image, mask) in (0..).zip(masks) {
        let inside = pixels_of(mask.view()).into_iter();
        all.extend(inside.map(|(row, col)| ScenePixel { image, row, col }));
    }
    let whole = (0..80).map(|i| (i / 20, i % 20));
    all.extend(whole.map(|(row, col)| ScenePixel { image: 5, row, col }));
    let mask = |image: u32| Some(masks[image as usize].view());

    for sampler in [RaySampler::Uniform, RaySampler::ByImage] {
        let table = table(sampler, 0, &images);
        assert_eq!((table.images(), table.drawn()), (6, 4));
        let last: Vec<u32> = table.order()[4..].to_vec();
        assert!(last == [0, 4] || last == [4, 0]);
        assert_eq!(table.units_at(0), all.len() as u64);
        let pixels = drawn(&table, 100, 2000, mask);
        let place = |p: &ScenePixel| all.iter().position(|q| p == q).unwrap() as u32;
        let bins = counted(all.len(), pixels.iter().map(place));
        let in_image = |image| all.iter().filter(|p| p.image == image).count() as f64;
        let weights: Vec<f64> = all
            .iter()
            .map(|p| match sampler {
                RaySampler::Uniform => 1.0,
                _ => 1.0 / in_image(p.image),
            })
            .collect();
        assert_spread(&bins, &weights);
    }
}

#[test]
fn a_mask_of_one_pixel_gives_that_pixel() {
    let mut pixels = vec![0; 300 * 200];
    pixels[123 * 300 + 287] = 1;
    let mask = MaskBits::from_pixels(&pixels, 300, 200).unwrap();
    let want = ScenePixel {
        image: 0,
        row: 123,
        col: 287,
    };
    for sampler in [
        RaySampler::Uniform,
        RaySampler::ByImage,
        RaySampler::Pairs { radius: 2 },
        RaySampler::Patches {
            size: 1,
            dilation: 1,
        },
    ] {
        let table = table(
            sampler,
            0,
            &[((300, 200), SamplingRegion::masked(mask.view()))],
        );
        let pixels = drawn(&table, 3, 100, |_| Some(mask.view()));
        assert!(pixels.iter().all(|&pixel| pixel == want), "{sampler:?}");
    }
}

#[test]
fn nothing_to_sample_is_an_error_that_says_so() {
    let empty = MaskBits::from_pixels(&[0; 12], 4, 3).unwrap();
    let finish = |sampler, images: &[((u32, u32), SamplingRegion<'_>)]| {
        let mut builder = RayTableBuilder::new(sampler, 0, 0).unwrap();
        for (size, region) in images {
            builder.add(*size, region).unwrap();
        }
        builder.finish().unwrap_err()
    };
    let masked = ((4, 3), SamplingRegion::masked(empty.view()));
    let error = finish(RaySampler::Uniform, &[masked, masked]);
    assert!(error.is_config());
    let text = error.to_string();
    assert!(
        text.contains("none of 2 images") && text.contains("2 masks are empty"),
        "{text}"
    );
    let error = finish(RaySampler::ByImage, &[]).to_string();
    assert!(error.contains("no image"), "{error}");
    let patches = RaySampler::Patches {
        size: 3,
        dilation: 2,
    };
    let error = finish(patches, &wholes(&[(4, 90), (90, 4)])).to_string();
    assert!(error.contains("patch of 5 x 5"), "{error}");
    let error = finish(RaySampler::Uniform, &wholes(&[(0, 0)])).to_string();
    assert!(error.contains("none of 1 images"), "{error}");
}

#[test]
fn images_that_cannot_be_are_refused() {
    let mut builder = RayTableBuilder::new(RaySampler::Uniform, 0, 0).unwrap();
    assert!(
        builder
            .add((65_536, 65_536), &SamplingRegion::WHOLE)
            .unwrap_err()
            .is_config()
    );
    let mask = MaskBits::from_pixels(&[1; 12], 4, 3).unwrap();
    let error = builder
        .add((3, 4), &SamplingRegion::masked(mask.view()))
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("3 x 4 pixels, but its mask has 4 x 3")
    );
    assert!(RayTableBuilder::new(RaySampler::Pairs { radius: 0 }, 0, 0).is_err());
    // Neither is drawn from.
    builder
        .add((65_535, 65_537), &SamplingRegion::WHOLE)
        .unwrap();
    assert_eq!(builder.finish().unwrap().images(), 1);
}

#[test]
fn a_sphere_is_drawn_from_by_its_sine_and_evenly_along_a_row() {
    let (width, height) = (20u32, 31u32);
    let region = |mask| SamplingRegion {
        shape: RegionShape::Sphere,
        mask,
    };
    let mask = random_mask((width, height), 6, 5);
    for mask in [None, Some(mask.view())] {
        let table = table(RaySampler::Uniform, 0, &[((width, height), region(mask))]);
        let pixels = drawn(&table, 100, 4000, |_| mask);
        let weight = |row: u32, col: u32| {
            let inside = mask.is_none_or(|mask| mask.holds(row, col));
            let angle = std::f64::consts::PI * (f64::from(row) + 0.5) / f64::from(height);
            f64::from(u8::from(inside)) * angle.sin()
        };
        let all = (0..height).flat_map(|r| (0..width).map(move |c| (r, c)));
        let weights: Vec<f64> = all.map(|(r, c)| weight(r, c)).collect();
        let bins = counted(weights.len(), pixels.iter().map(|p| p.row * width + p.col));
        assert_spread(&bins, &weights);
    }
}

/// Among other images, a sphere counts by its pixels. The weights of its rows only matter within
/// it.
#[test]
fn a_sphere_is_as_likely_as_another_image_of_its_size() {
    let sphere = SamplingRegion {
        shape: RegionShape::Sphere,
        mask: None,
    };
    let mut images = wholes(&[(40, 20), (30, 10), (20, 20)]);
    images.push(((40, 20), sphere));
    let pixels = drawn(&table(RaySampler::Uniform, 0, &images), 100, 1000, no_mask);
    let bins = counted(4, pixels.iter().map(|p| p.image));
    assert_spread(&bins, &[800.0, 300.0, 400.0, 800.0]);
}

#[test]
fn a_disc_gives_all_of_its_pixels_and_no_other() {
    let size = (33u32, 24u32);
    let mask = random_mask(size, 7, 6);
    let disc = RegionShape::Disc(CropDisc::new(10.3).unwrap());
    for mask in [None, Some(mask.view())] {
        let region = SamplingRegion { shape: disc, mask };
        let table = table(RaySampler::ByImage, 0, &[(size, region)]);
        let pixels = drawn(&table, 50, 4000, |_| mask);
        let inside = |row: u32, col: u32| {
            let (x, y) = (f64::from(col) + 0.5 - 16.5, f64::from(row) + 0.5 - 12.0);
            x * x + y * y <= 10.3 * 10.3 && mask.is_none_or(|mask| mask.holds(row, col))
        };
        let all = (0..size.1).flat_map(|r| (0..size.0).map(move |c| (r, c)));
        let weights: Vec<f64> = all
            .map(|(r, c)| f64::from(u8::from(inside(r, c))))
            .collect();
        let bins = counted(weights.len(), pixels.iter().map(|p| p.row * size.0 + p.col));
        assert_spread(&bins, &weights);
        assert!(
            weights
                .iter()
                .zip(&bins)
                .all(|(w, &n)| (*w > 0.0) == (n > 0))
        );
    }
}

#[test]
fn patches_lie_in_the_mask_and_stand_at_each_place_as_often() {
    let size = (75u32, 21u32);
    let holes = random_mask(size, 9, 8);
    for (edge, dilation) in [(1, 1), (2, 1), (3, 2), (5, 4)] {
        let sampler = RaySampler::Patches {
            size: edge,
            dilation,
        };
        // Few holes for large windows, so that some positions remain.
        let mask = match edge {
            1 | 2 => holes.clone(),
            _ => {
                let mut pixels = vec![1; 75 * 21];
                (0..9).for_each(|i| pixels[i * 173 + i] = 0);
                MaskBits::from_pixels(&pixels, 75, 21).unwrap()
            }
        };
        let places = erode(mask.view(), edge, dilation);
        let disc = RegionShape::Disc(CropDisc::new(30.0).unwrap());
        let images = [
            (size, SamplingRegion::masked(places.view())),
            (size, SamplingRegion::WHOLE),
            ((3, 3), SamplingRegion::WHOLE),
            (
                size,
                SamplingRegion {
                    shape: disc,
                    mask: None,
                },
            ),
            (
                size,
                SamplingRegion {
                    shape: disc,
                    mask: Some(places.view()),
                },
            ),
        ];
        let table = table(sampler, 0, &images);
        let per_unit = sampler.rays_per_unit() as usize;
        let pixels = drawn(&table, 10, 4000 * per_unit, |_| Some(places.view()));
        let in_disc = |p: &ScenePixel| disc.columns(size, 0, p.row).contains(&p.col);
        let fits = |p: &ScenePixel| match p.image {
            0 => mask.view().holds(p.row, p.col),
            1 => p.row < size.1 && p.col < size.0,
            2 => p.row < 3 && p.col < 3,
            3 => in_disc(p),
            _ => in_disc(p) && mask.view().holds(p.row, p.col),
        };
        let patches = pixels.chunks(per_unit);
        for patch in patches.clone() {
            for (i, pixel) in (0..).zip(patch) {
                assert!(fits(pixel), "{edge} by {dilation}: {pixel:?}");
                assert_eq!(pixel.row - patch[0].row, i / edge * dilation);
                assert_eq!(pixel.col - patch[0].col, i % edge * dilation);
                assert_eq!(pixel.image, patch[0].image);
            }
        }
        // By positions, over all images.
        let corner = |image: u32, row: u32, col: u32| {
            let extent = (edge - 1) * dilation;
            let steps = || (0..edge).map(|i| i * dilation);
            let pixel = |y, x| ScenePixel {
                image,
                row: row + y,
                col: col + x,
            };
            steps().all(|y| steps().all(|x| fits(&pixel(y, x)))) && (image != 2 || extent < 3)
        };
        let all = (0..5).flat_map(|i| (0..size.1).map(move |r| (i, r)));
        let all = all.flat_map(|(i, r)| (0..size.0).map(move |c| (i, r, c)));
        let weights: Vec<f64> = all
            .map(|(i, r, c)| f64::from(u8::from(corner(i, r, c))))
            .collect();
        let place = |p: &[ScenePixel]| (p[0].image * size.1 + p[0].row) * size.0 + p[0].col;
        let bins = counted(weights.len(), patches.map(place));
        assert_eq!(table.units_at(0) as f64, weights.iter().sum::<f64>());
        assert_spread(&bins, &weights);
    }
}

#[test]
fn pairs_are_close_and_every_neighbour_is_as_likely() {
    let size = (13u32, 9u32);
    let mask = random_mask(size, 6, 10);
    let disc = RegionShape::Disc(CropDisc::new(4.6).unwrap());
    let regions = [
        SamplingRegion::WHOLE,
        SamplingRegion::masked(mask.view()),
        SamplingRegion {
            shape: disc,
            mask: None,
        },
        SamplingRegion {
            shape: disc,
            mask: Some(mask.view()),
        },
    ];
    for region in regions {
        let inside = |row: u32, col: u32| {
            region.shape.columns(size, 0, row).contains(&col)
                && region.mask.is_none_or(|mask| mask.holds(row, col))
        };
        for radius in [1u32, 2, 40] {
            let table = table(RaySampler::Pairs { radius }, 0, &[(size, region)]);
            let pixels = drawn(&table, 20, 20_000, |_| region.mask);
            let all = || (0..size.1).flat_map(|r| (0..size.0).map(move |c| (r, c)));
            let near = |a: (u32, u32), b: (u32, u32)| {
                a != b && a.0.abs_diff(b.0) <= radius && a.1.abs_diff(b.1) <= radius
            };
            let others = |a: (u32, u32)| -> Vec<(u32, u32)> {
                all().filter(|&b| inside(b.0, b.1) && near(a, b)).collect()
            };
            for pair in pixels.chunks(2) {
                let [a, b] = [0, 1].map(|i| (pair[i].row, pair[i].col));
                assert!(inside(a.0, a.1) && inside(b.0, b.1));
                assert!(near(a, b) || others(a).is_empty(), "{a:?} {b:?}");
            }
            let firsts = pixels.iter().step_by(2);
            let bins = counted(117, firsts.map(|p| p.row * size.0 + p.col));
            let weights: Vec<f64> = all()
                .map(|(r, c)| f64::from(u8::from(inside(r, c))))
                .collect();
            assert_spread(&bins, &weights);
            // The second pixels, weighted by the choices that the first ones leave.
            let mut weights = vec![0.0; 117];
            for a in all().filter(|a| inside(a.0, a.1)) {
                let others = others(a);
                let alone = others.is_empty().then_some(a);
                for b in others.iter().copied().chain(alone) {
                    let share = 1.0 / others.len().max(1) as f64;
                    weights[(b.0 * size.0 + b.1) as usize] += share;
                }
            }
            let seconds = pixels.iter().skip(1).step_by(2);
            let bins = counted(117, seconds.map(|p| p.row * size.0 + p.col));
            assert_spread(&bins, &weights);
        }
    }
}

/// One pixel's neighbours, in the middle of the image and in its corner.
#[test]
fn the_window_of_a_pair_is_drawn_from_evenly() {
    let table = table(RaySampler::Pairs { radius: 2 }, 0, &wholes(&[(6, 5)]));
    let pixels = drawn(&table, 50, 20_000, no_mask);
    for (first, window) in [((2, 3), 25usize), ((0, 0), 9), ((4, 5), 9)] {
        let mut bins = vec![0u64; 30];
        for pair in pixels.chunks(2).filter(|p| (p[0].row, p[0].col) == first) {
            bins[(pair[1].row * 6 + pair[1].col) as usize] += 1;
        }
        let near = |i: u32| {
            let (row, col) = (i / 6, i % 6);
            row.abs_diff(first.0) <= 2 && col.abs_diff(first.1) <= 2 && (row, col) != first
        };
        let weights: Vec<f64> = (0..30).map(|i| f64::from(u8::from(near(i)))).collect();
        assert_eq!(weights.iter().sum::<f64>(), window as f64 - 1.0);
        assert_spread(&bins, &weights);
    }
}
