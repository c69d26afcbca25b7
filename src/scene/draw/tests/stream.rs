//! Inputs of the draws of a step, and their stability.

use super::*;

/// Images of every kind: whole, a disc, a sphere, masked, empty, and whole of another size.
struct Scene {
    mask: MaskBits,
    empty: MaskBits,
}

impl Scene {
    fn new() -> Self {
        let pixels: Vec<u8> = (0..9u32)
            .flat_map(|r| (0..70u32).map(move |c| u8::from((r * 7 + c * 13) % 5 < 2)))
            .collect();
        Self {
            mask: MaskBits::from_pixels(&pixels, 70, 9).unwrap(),
            empty: MaskBits::from_pixels(&[0; 64 * 48], 64, 48).unwrap(),
        }
    }

    fn table(&self, sampler: RaySampler, joining: u32) -> RayTable {
        let shaped = |shape| SamplingRegion { shape, mask: None };
        let images = [
            ((64, 48), SamplingRegion::WHOLE),
            (
                (64, 48),
                shaped(RegionShape::Disc(CropDisc::new(20.0).unwrap())),
            ),
            ((64, 48), shaped(RegionShape::Sphere)),
            ((70, 9), SamplingRegion::masked(self.mask.view())),
            ((64, 48), SamplingRegion::masked(self.empty.view())),
            ((40, 30), SamplingRegion::WHOLE),
        ];
        table(sampler, joining, &images)
    }

    fn mask(&self, image: u32) -> Option<MaskView<'_>> {
        assert_eq!(image, 3, "it alone is drawn from through a mask");
        Some(self.mask.view())
    }

    fn pixels(&self, table: &RayTable, step: &RayStep, first: u64, rays: usize) -> Vec<ScenePixel> {
        let mut out = vec![ScenePixel::default(); rays];
        table.fill(step, first, |i| self.mask(i), &mut out).unwrap();
        out
    }
}

const ALL: [RaySampler; 4] = [
    RaySampler::Uniform,
    RaySampler::ByImage,
    RaySampler::Patches {
        size: 3,
        dilation: 2,
    },
    RaySampler::Pairs { radius: 2 },
];

fn places(pixels: &[ScenePixel]) -> Vec<(u32, u32, u32)> {
    pixels.iter().map(|p| (p.image, p.row, p.col)).collect()
}

/// Draws must stay the same for every resumed run. The expected values were computed by other code,
/// from this code's documentation: with integers of any size, and lists of all pixels.
#[test]
fn draws_stay_what_they_are() {
    let scene = Scene::new();
    let table = scene.table(RaySampler::Uniform, 0);
    assert_eq!(table.order(), [1, 3, 0, 2, 5, 4]);
    let pixels = scene.pixels(&table, &table.step(5, 1), 0, 64);
    #[rustfmt::skip]
    assert_eq!(places(&pixels), [
        (1, 38, 41), (0, 41, 21), (0, 17, 24), (5, 16, 37), (0, 32, 62), (1, 28, 24),
        (0, 13, 58), (2, 11, 17), (5, 25, 5), (0, 6, 41), (0, 0, 32), (5, 17, 37),
        (0, 15, 29), (0, 6, 21), (0, 30, 62), (0, 10, 26), (0, 9, 23), (5, 17, 34),
        (2, 22, 8), (2, 38, 52), (2, 7, 18), (3, 3, 3), (0, 37, 9), (0, 38, 58),
        (5, 24, 3), (0, 14, 1), (1, 40, 27), (2, 7, 53), (0, 28, 60), (2, 40, 27),
        (5, 21, 35), (0, 16, 40), (0, 16, 29), (0, 3, 54), (2, 19, 35), (0, 23, 43),
        (2, 29, 62), (0, 38, 55), (2, 29, 56), (0, 11, 20), (2, 15, 16), (0, 27, 11),
        (0, 47, 21), (2, 36, 54), (2, 10, 44), (0, 1, 42), (1, 30, 28), (2, 23, 23),
        (2, 23, 21), (2, 26, 2), (1, 39, 31), (2, 14, 41), (2, 1, 7), (5, 24, 8),
        (3, 6, 41), (5, 11, 27), (0, 42, 54), (5, 15, 20), (0, 35, 25), (1, 14, 14),
        (5, 6, 17), (2, 8, 50), (2, 34, 62), (2, 14, 45),
    ]);

    let table = scene.table(RaySampler::ByImage, 2);
    let pixels = scene.pixels(&table, &table.step(1, 0), 0, 16);
    #[rustfmt::skip]
    assert_eq!(places(&pixels), [
        (1, 22, 42), (0, 22, 53), (1, 32, 42), (1, 38, 37), (0, 12, 0), (1, 20, 18),
        (0, 6, 1), (3, 4, 66), (2, 32, 34), (3, 1, 23), (0, 21, 2), (3, 7, 32),
        (0, 6, 35), (0, 45, 10), (3, 7, 67), (2, 30, 33),
    ]);

    let table = scene.table(RaySampler::Pairs { radius: 2 }, 0);
    let pixels = scene.pixels(&table, &table.step(3, 0), 0, 24);
    #[rustfmt::skip]
    assert_eq!(places(&pixels), [
        (0, 5, 30), (0, 3, 30), (2, 11, 9), (2, 11, 11), (5, 27, 33), (5, 28, 31),
        (2, 21, 48), (2, 19, 46), (2, 11, 27), (2, 12, 29), (2, 19, 8), (2, 20, 7),
        (2, 17, 37), (2, 19, 36), (2, 21, 2), (2, 22, 0), (2, 20, 18), (2, 19, 17),
        (5, 1, 14), (5, 1, 15), (5, 29, 35), (5, 28, 35), (2, 27, 60), (2, 25, 60),
    ]);

    // The corners of patches, beyond 2^32 of them.
    let table = super::table(ALL[2], 0, &wholes(&[(64, 48), (40, 30)]));
    let pixels = scene.pixels(&table, &table.step(7, 2), 9 << 33, 72);
    let corners: Vec<ScenePixel> = pixels.chunks(9).map(|patch| patch[0]).collect();
    #[rustfmt::skip]
    assert_eq!(places(&corners), [
        (0, 13, 58), (1, 8, 13), (0, 30, 4), (1, 9, 17),
        (0, 24, 11), (0, 36, 47), (1, 22, 11), (1, 0, 23),
    ]);
}

#[test]
fn rays_are_the_same_one_by_one_and_in_batches_of_any_size() {
    let scene = Scene::new();
    let even = table(RaySampler::Uniform, 0, &wholes(&[(64, 48); 9]));
    let tables = ALL.map(|sampler| scene.table(sampler, 0));
    for table in tables.iter().chain([&even]) {
        for start in [0, 5, (1 << 32) - 7, u64::MAX - 120] {
            let step = table.step(3, 2);
            let all = scene.pixels(table, &step, start, 100);
            for (i, pixel) in (0..).zip(&all) {
                let ray = start + i;
                let alone = table.pixel(&step, ray, |i| scene.mask(i)).unwrap();
                assert_eq!(alone, *pixel, "{:?}, ray {ray}", table.sampler());
                assert_eq!(table.image(&step, ray), pixel.image);
            }
            for rays in [0, 1, 2, 7, 9, 64, 99] {
                assert_eq!(scene.pixels(table, &step, start, rays), all[..rays]);
            }
        }
    }
}

/// If all images are whole and of equal size, draws use another code path.
#[test]
fn images_alike_are_drawn_from_as_others_are() {
    let alike = table(RaySampler::Uniform, 0, &wholes(&[(64, 48); 9]));
    assert!(alike.common_size.is_some() && alike.images_equal);
    // The same images, one of them masked by all of its pixels.
    let full = MaskBits::from_pixels(&[1; 64 * 48], 64, 48).unwrap();
    let mut images = wholes(&[(64, 48); 9]);
    images[4].1 = SamplingRegion::masked(full.view());
    let masked = table(RaySampler::Uniform, 0, &images);
    assert!(masked.common_size.is_none() && masked.images_equal);
    // The same with an image that is never drawn from.
    let mut images = wholes(&[(64, 48); 9]);
    images.push(((0, 0), SamplingRegion::WHOLE));
    let more = table(RaySampler::Uniform, 0, &images);
    assert_eq!(more.common_size, Some((64, 48)));
    let pixels = |table: &RayTable| drawn(table, 2, 5000, |_| Some(full.view()));
    assert_eq!(pixels(&alike), pixels(&masked));
    assert!(pixels(&more).iter().all(|pixel| pixel.image < 9));
    // With uneven sums, images are found by a search.
    let mixed = table(RaySampler::Uniform, 0, &wholes(&[(64, 48), (64, 47)]));
    assert!(mixed.common_size.is_none() && !mixed.images_equal);
}

#[test]
fn steps_ranks_and_seeds_share_no_run_of_rays() {
    let images = wholes(&[(1000, 1000); 50]);
    let of_seed = |seed| {
        let mut builder = RayTableBuilder::new(RaySampler::Uniform, seed, 0).unwrap();
        images
            .iter()
            .for_each(|(size, region)| builder.add(*size, region).unwrap());
        builder.finish().unwrap()
    };
    let rays = 2000;
    let of = |seed, step, rank| -> Vec<(u32, u32)> {
        let table = of_seed(seed);
        let mut out = vec![ScenePixel::default(); rays];
        table
            .fill(&table.step(step, rank), 0, no_mask, &mut out)
            .unwrap();
        // Without the image, whose order depends on the seed.
        out.iter().map(|p| (p.row, p.col)).collect()
    };
    let base = of(1, 2, 3);
    assert_eq!(base, of(1, 2, 3));
    for other in [
        of(2, 2, 3),
        of(1, 3, 3),
        of(1, 2, 4),
        of(3, 2, 1),
        of(2, 1, 3),
        of(1, 3, 2),
        of(1, 2 | 3 << 32, 0),
        of(1 | 2 << 32, 2, 3),
        of(u64::MAX, u64::MAX, u32::MAX),
    ] {
        // Of 2,000 x 2,000 pairs of rays, about 4 meet among 1,000,000 pixels. A shifted copy of
        // the same stream would meet in hundreds.
        let met = other.iter().filter(|pixel| base.contains(pixel)).count();
        assert!(met < 25, "{met}");
    }
}

#[test]
fn images_join_by_and_by_and_empty_ones_never_do() {
    let scene = Scene::new();
    for sampler in [RaySampler::Uniform, RaySampler::ByImage] {
        let table = scene.table(sampler, 2);
        assert_eq!(
            [0, 1, 2, 3, u64::MAX].map(|step| table.images_at(step)),
            [2, 4, 5, 5, 5]
        );
        assert_eq!((table.images(), table.drawn()), (6, 5));
        let all_at_once = scene.table(sampler, 0);
        assert_eq!(all_at_once.images_at(0), 5);
        assert_eq!(all_at_once.order(), table.order());
        for step in 0..4 {
            let joined = &table.order()[..table.images_at(step) as usize];
            let pixels = scene.pixels(&table, &table.step(step, 0), 0, 4000);
            assert!(pixels.iter().all(|p| joined.contains(&p.image)));
            assert!(joined.iter().all(|i| pixels.iter().any(|p| p.image == *i)));
        }
        // Once all have joined, joining makes no difference.
        assert_eq!(
            scene.pixels(&table, &table.step(9, 0), 0, 500),
            scene.pixels(&all_at_once, &all_at_once.step(9, 0), 0, 500)
        );
    }
    let order = |seed| {
        let mut builder = RayTableBuilder::new(RaySampler::Uniform, seed, 1).unwrap();
        (0..100).for_each(|_| builder.add((2, 2), &SamplingRegion::WHOLE).unwrap());
        builder.finish().unwrap().order().to_vec()
    };
    let mut sorted = order(1);
    assert_ne!(order(1), order(2));
    sorted.sort_unstable();
    assert!(sorted.iter().copied().eq(0..100));
}

#[test]
fn units_of_a_step_are_those_of_the_images_that_joined() {
    let scene = Scene::new();
    let table = scene.table(RaySampler::Uniform, 1);
    let disc: u64 = (0..48u32)
        .map(|row| {
            RegionShape::Disc(CropDisc::new(20.0).unwrap())
                .columns((64, 48), 0, row)
                .len() as u64
        })
        .sum();
    let masked = scene.mask.view().count();
    let sums = [
        disc,
        disc + masked,
        disc + masked + 3072,
        disc + masked + 6144,
    ];
    assert_eq!([0, 1, 2, 3].map(|step| table.units_at(step)), sums);
    assert_eq!(table.units_at(4), table.units_at(u64::MAX));
}

#[test]
fn images_without_masks_share_their_rows() {
    let disc = |radius| SamplingRegion {
        shape: RegionShape::Disc(CropDisc::new(radius).unwrap()),
        mask: None,
    };
    let mut images = vec![((64, 48), disc(20.0)); 100];
    images.extend([((64, 48), disc(21.0)), ((64, 47), disc(20.0))]);
    let table = table(RaySampler::Uniform, 0, &images);
    // Header, images with sums and order, rows.
    assert_eq!(table.bytes(), 64 + 102 * 44 + 4 * (48 + 48 + 47));
}
