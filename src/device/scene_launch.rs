//! What the kernels of scenes are told of cameras, byte for byte as they read it
//! (`kernels/scene/types.cuh`), and where images lie.
//!
//! In the consumer. Numbers alone: what they mean is said where they are made.

use bytemuck::{Pod, Zeroable};

/// Kinds of lenses, as the kernels number them.
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

/// A camera. Coefficients that its lens does not have are 0.
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
    /// Newton's, of the plane, and of what bends it once more.
    pub(crate) steps: [u32; 2],
    pub(crate) zero: u32,
}

/// Where the pixels of an image are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PixelPlace {
    /// So many bytes behind the beginning of the device's own.
    Device(u64),
    /// So many bytes behind the beginning of the store, in memory of the host.
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
