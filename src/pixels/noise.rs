//! torchvision's `gaussian_noise`: normal numbers, added to every value. Bytes get noise that is
//! truncated to whole levels.
//!
//! As in `erase`, noise is a pure function of a key and of the element's number in the upright
//! image.

use super::erase::{each_normal, mixed};
use super::pixel_view::PixelViewMut;
use crate::recipe::PixelPlacement;
use crate::recipe::geometry::PixelRect;

/// What is added: a normal number times `sigma`, plus `mean`.
#[derive(Debug, Clone, Copy)]
pub(super) struct AddedNoise {
    pub(super) key: u64,
    pub(super) mean: f32,
    pub(super) sigma: f32,
    /// Keeps values in 0 to 255. Without it, bytes wrap around.
    pub(super) clip: bool,
    /// The three channels get the same noise.
    pub(super) grey: bool,
}

/// Adds the noise to an image of this orientation.
pub(super) fn add<T: NoisyLevel>(
    mut pixels: PixelViewMut<'_, T>,
    placement: PixelPlacement,
    noise: AddedNoise,
) {
    let whole = PixelRect {
        left: 0,
        top: 0,
        width: pixels.width as u32,
        height: pixels.height as u32,
    };
    let channels = if noise.grey { [0, 0, 0] } else { [0, 1, 2] };
    let bits = |first: u64| channels.map(|c| mixed(noise.key, first + c));
    each_normal(&mut pixels, whole, placement, bits, |pixel, normals| {
        for (v, normal) in pixel.iter_mut().zip(normals) {
            *v = v.plus(noise.mean + normal * noise.sigma, noise.clip);
        }
    });
}

/// A channel that noise is added to.
pub(super) trait NoisyLevel: Copy {
    fn plus(self, noise: f32, clip: bool) -> Self;
}

impl NoisyLevel for u8 {
    #[inline(always)]
    fn plus(self, noise: f32, clip: bool) -> Self {
        let sum = i32::from(self) + noise as i32;
        (if clip { sum.clamp(0, 255) } else { sum }) as Self
    }
}

impl NoisyLevel for f32 {
    #[inline(always)]
    fn plus(self, noise: f32, clip: bool) -> Self {
        let sum = self + noise;
        if clip { sum.clamp(0.0, 255.0) } else { sum }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noisy<T: NoisyLevel>(before: T, noise: AddedNoise) -> Vec<[T; 3]> {
        let mut pixels = vec![[before; 3]; 120 * 100];
        let view = PixelViewMut {
            pixels: &mut pixels,
            width: 120,
            height: 100,
            stride: 120,
        };
        add(view, PixelPlacement::default(), noise);
        pixels
    }

    const NOISE: AddedNoise = AddedNoise {
        key: 5,
        mean: 3.0,
        sigma: 20.0,
        clip: true,
        grey: false,
    };

    #[test]
    fn noise_has_its_mean_and_deviation() {
        let floats = noisy(100.0f32, NOISE);
        let all = floats.as_flattened();
        let n = all.len() as f64;
        let mean = all.iter().map(|v| f64::from(*v)).sum::<f64>() / n;
        let square = |v: &f32| (f64::from(*v) - mean).powi(2);
        let deviation = (all.iter().map(square).sum::<f64>() / n).sqrt();
        assert!((mean - 103.0).abs() < 0.4, "{mean}");
        assert!((deviation - 20.0).abs() < 0.3, "{deviation}");
        // Bytes get the same noise without its fraction.
        for (byte, float) in noisy(100u8, NOISE).as_flattened().iter().zip(all) {
            let (whole, noise) = (f32::from(*byte) - 100.0, float - 100.0);
            // The float has lost the last bits of the noise.
            assert!((whole - noise).abs() < 1.001, "{whole} of {noise}");
            assert!(whole.abs() < noise.abs() + 0.001, "{whole} of {noise}");
        }
    }

    #[test]
    fn values_stay_in_range_or_wrap() {
        let bytes = noisy(250u8, NOISE);
        assert!(bytes.as_flattened().iter().all(|v| *v > 100));
        assert!(
            noisy(250.0f32, NOISE)
                .as_flattened()
                .iter()
                .all(|v| *v <= 255.0)
        );
        let open = AddedNoise {
            clip: false,
            ..NOISE
        };
        assert!(noisy(250u8, open).as_flattened().iter().any(|v| *v < 100));
        assert!(
            noisy(250.0f32, open)
                .as_flattened()
                .iter()
                .any(|v| *v > 256.0)
        );
    }

    #[test]
    fn grey_noise_is_grey() {
        let grey = AddedNoise {
            grey: true,
            ..NOISE
        };
        assert!(noisy(90u8, grey).iter().all(|[a, b, c]| a == b && b == c));
    }
}
