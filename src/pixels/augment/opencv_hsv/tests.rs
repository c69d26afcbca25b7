//! AVX2 against the plain form.

use super::*;
use crate::pixels::pixel_view::RgbPixel;

/// Every colour, and gains at the ends of their ranges, at 0, and around whole hues.
#[test]
fn every_colour_is_the_same_in_each_instruction_set() {
    let colours = (0..1u32 << 24).map(|n| {
        let [r, g, b, _] = n.to_le_bytes();
        [r, g, b]
    });
    let colours: Vec<RgbPixel<u8>> = colours.collect();
    // One pixel less, so that a group is not whole.
    let width = colours.len() - 1;
    let changed = |gains, cpu| {
        let mut pixels = colours.clone();
        let view = PixelViewMut {
            pixels: &mut pixels,
            width,
            height: 1,
            stride: width + 1,
        };
        change(view, gains, cpu);
        pixels
    };
    let mut quick = 0;
    for gains in [
        [0.0; 3],
        [0.013, 0.631, -0.317],
        [-0.015, -0.7, 0.4],
        [1.0; 3],
        [-1.0; 3],
        [-1e-20, 0.3, 0.2],
        [0.0049999, -0.2211, 0.11],
    ] {
        let want = changed(gains, CpuLevel::Scalar);
        assert!(changed(gains, CpuLevel::best()) == want, "{gains:?}");
        #[cfg(target_arch = "x86_64")]
        if HsvFactors::of(&HsvTables::new(gains)).is_some() {
            quick += 1;
        }
    }
    if cfg!(target_arch = "x86_64") {
        assert_eq!(quick, 5, "gains with and without factors");
    }
}

/// Groups that equal the one before, the one before that, or none, at every distance; from black on.
#[test]
fn repeated_pixels_are_the_same_in_each_instruction_set() {
    let colour = |n: usize| [[0, 0, 0], [114, 114, 114], [250, 3, 99], [7, 8, 9]][n % 4];
    for length in 1..40 {
        let pixels = |n: usize| match n % 5 {
            0 => [n as u8, 90, 17],
            _ => colour(n / length),
        };
        let runs = (0..1_200).map(|n| colour(n / length));
        let pixels: Vec<RgbPixel<u8>> = runs.chain((0..1_200).map(pixels)).collect();
        let changed = |cpu| {
            let mut pixels = pixels.clone();
            let view = PixelViewMut {
                pixels: &mut pixels,
                width: 300,
                height: 8,
                stride: 300,
            };
            change(view, [0.013, 0.631, -0.317], cpu);
            pixels
        };
        let want = changed(CpuLevel::Scalar);
        assert!(changed(CpuLevel::best()) == want, "{length}");
    }
}

/// Random gains, which is what recipes draw, have factors.
#[cfg(target_arch = "x86_64")]
#[test]
fn random_gains_have_factors() {
    use crate::order::PositionRandom;
    use crate::recipe::geometry::UniformSource;
    use crate::recipe::random::OperationNumbers;

    let random = PositionRandom::new(5, 0, 0);
    let mut random = OperationNumbers::new(&random, 1);
    for _ in 0..2_000 {
        let gains = [1.0, 1.0, 1.0].map(|most| (2.0 * random.next_f64() - 1.0) * most);
        let factors = HsvFactors::of(&HsvTables::new(gains));
        assert!(factors.is_some(), "{gains:?}");
    }
}
