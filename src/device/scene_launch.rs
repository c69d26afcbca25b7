//! The camera arguments of the scene kernels, byte for byte as they read them
//! (`kernels/scene/types.cuh`), and the places of images.
//!
//! In the consumer. Plain numbers. `src/scene/jobs/device_images/kernel_numbers.rs` computes them;
//! `src/camera` has the lens formulas.

use bytemuck::{Pod, Zeroable};

/// The kernels' numbers of lenses.
pub(crate) mod lens {
    pub(crate) const PINHOLE: u32 = 0;
    pub(crate) const BROWN: u32 = 1;
    pub(crate) const RATIONAL: u32 = 2;
    pub(crate) const FISHEYE: u32 = 3;
    pub(crate) const FISHEYE624: u32 = 4;
    pub(crate) const THIN_PRISM: u32 = 5;
    pub(crate) const FOV: u32 = 6;
    pub(crate) const EQUIRECTANGULAR: u32 = 7;
    pub(crate) const ORTHOGRAPHIC: u32 = 8;
}

/// A camera. Coefficients that its lens lacks are 0.
#[derive(Debug, Clone, Copy, PartialEq, Default, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct KernelCamera {
    pub(crate) focal: [f64; 2],
    pub(crate) centre: [f64; 2],
    /// Width and height of the image.
    pub(crate) size: [f64; 2],
    /// Radius or angle at which the lens ends.
    pub(crate) limit: f64,
    pub(crate) k: [f64; 6],
    pub(crate) p: [f64; 2],
    pub(crate) s: [f64; 4],
    pub(crate) lens: u32,
    /// Newton steps for the plane, and for the second distortion.
    pub(crate) steps: [u32; 2],
    pub(crate) zero: u32,
}

/// Where the pixels of an image are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PixelPlace {
    /// Offset in the device's memory of pixels, in bytes.
    Device(u64),
    /// Offset in the image store, in host memory, in bytes.
    Host(u64),
}

/// Parts of a scene begin at multiples of this.
pub(crate) const SCENE_ALIGN: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernels' struct has this size: `kernels/scene/types.cuh`, field by field.
    #[test]
    fn a_camera_has_the_kernels_size() {
        assert_eq!(size_of::<KernelCamera>(), 19 * 8 + 4 * 4);
    }
}
