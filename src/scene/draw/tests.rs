//! Properties of the draws of rays, over whole tables.
//!
//! - `spread`: frequency of each image and pixel; `stream`: inputs of the draws of a step;
//! - `hostile`: invalid tables and masks.

mod hostile;
mod spread;
mod stream;

use super::*;
use crate::order::PositionRandom;

fn table(
    sampler: RaySampler,
    joining: u32,
    images: &[((u32, u32), SamplingRegion<'_>)],
) -> RayTable {
    let mut builder = RayTableBuilder::new(sampler, 11, joining).unwrap();
    for (size, region) in images {
        builder.add(*size, region).unwrap();
    }
    builder.finish().unwrap()
}

fn wholes(sizes: &[(u32, u32)]) -> Vec<((u32, u32), SamplingRegion<'static>)> {
    sizes
        .iter()
        .map(|&size| (size, SamplingRegion::WHOLE))
        .collect()
}

fn no_mask<'a>(image: u32) -> Option<MaskView<'a>> {
    panic!("image {image} has no mask")
}

/// The pixels of some rays of some steps.
fn drawn<'m>(
    table: &RayTable,
    steps: u64,
    rays: usize,
    mask: impl Fn(u32) -> Option<MaskView<'m>>,
) -> Vec<ScenePixel> {
    let mut all = Vec::new();
    for step in 0..steps {
        let mut pixels = vec![ScenePixel::default(); rays];
        table
            .fill(&table.step(step, 0), 0, &mask, &mut pixels)
            .unwrap();
        all.extend(pixels);
    }
    all
}

/// A random mask with `in_of_ten` of ten pixels inside.
fn random_mask(size: (u32, u32), in_of_ten: u64, seed: u64) -> MaskBits {
    let pixels: Vec<u8> = (0..u64::from(size.0 * size.1))
        .map(|i| u8::from(PositionRandom::new(seed, 77, i).below(10) < in_of_ten))
        .collect();
    MaskBits::from_pixels(&pixels, size.0, size.1).unwrap()
}

#[test]
fn the_bytes_of_a_table_are_known_before_any_mask_is() {
    let (disc, size) = (RegionShape::Disc(CropDisc::new(9.0).unwrap()), (40, 30));
    let masks = [random_mask(size, 5, 1), random_mask(size, 0, 2)];
    let images = |last| {
        [
            (RegionShape::Whole, None),
            (RegionShape::Sphere, None),
            (RegionShape::Sphere, None),
            (disc, None),
            (disc, Some(&masks[0])),
            (RegionShape::Whole, Some(last)),
        ]
    };
    let made = |images: [(RegionShape, Option<&MaskBits>); 6]| {
        let images = images.map(|(shape, mask)| {
            let mask = mask.map(MaskBits::view);
            (size, SamplingRegion { shape, mask })
        });
        table(RaySampler::Uniform, 0, &images).bytes()
    };
    let known = images(&masks[0]).map(|(shape, mask)| (size, shape, mask.is_some()));
    let known = RayTableBuilder::most_bytes(known.into_iter());
    assert_eq!(made(images(&masks[0])), known);
    // An empty mask has no sum.
    assert_eq!(made(images(&masks[1])), known - 8);
}
