//! What a launch of `kernels/rays.cu` is told, byte for byte as the kernel reads it
//! (`kernels/rays/types.cuh`), and what of a scene lies on the device.
//!
//! In the consumer. Numbers alone: what they mean is said where they are made.

use bytemuck::{Pod, Zeroable};

/// The kernel's name in its PTX.
pub(crate) const RAYS_KERNEL: &str = "rays";
/// Threads of a block: a ray each.
pub(crate) const RAYS_BLOCK: u32 = 128;

/// Kinds of lenses, as the kernel numbers them.
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

/// A rolling shutter.
#[derive(Debug, Clone, Copy, PartialEq, Default, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct KernelShutter {
    pub(crate) end: [[f64; 4]; 3],
    pub(crate) timing: [f64; 4],
}

/// An image.
#[derive(Debug, Clone, Copy, PartialEq, Default, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct KernelFrame {
    pub(crate) pose: [[f64; 4]; 3],
    /// Where its pixels begin. The stage puts the address in: see [`PixelPlace`].
    pub(crate) pixels: u64,
    /// The first word of its mask.
    pub(crate) mask: u64,
    /// Its depths, so many bytes behind its pixels; 0 without.
    pub(crate) depths: u64,
    pub(crate) camera: u32,
    pub(crate) time: f32,
    pub(crate) width: u32,
    /// The number of its shutter, and 1; 0 without one.
    pub(crate) shutter: u32,
}

/// Where the pixels of an image are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PixelPlace {
    /// So many bytes behind the beginning of the device's own.
    Device(u64),
    /// So many bytes behind the beginning of the store, in memory of the host.
    Host(u64),
}

/// What of a scene lies on the device from the beginning.
#[derive(Debug)]
pub(crate) struct RayScene<'a> {
    /// The table of the draws, and where its parts begin: sums, weights, images, order, counts.
    pub(crate) table: &'a [u8],
    pub(crate) parts: [usize; 5],
    pub(crate) masks: &'a [u8],
    pub(crate) cameras: Vec<KernelCamera>,
    pub(crate) shutters: Vec<KernelShutter>,
    pub(crate) frames: Vec<KernelFrame>,
    /// Of each frame.
    pub(crate) places: Vec<PixelPlace>,
    /// Bytes of the device's own pixels.
    pub(crate) pixel_bytes: u64,
}

impl RayScene<'_> {
    /// Bytes of all but the pixels.
    pub(crate) fn bytes(&self) -> u64 {
        let sizes = RaySceneSizes {
            table: self.table.len() as u64,
            masks: self.masks.len() as u64,
            cameras: self.cameras.len() as u64,
            shutters: self.shutters.len() as u64,
            frames: self.frames.len() as u64,
        };
        sizes.bytes()
    }
}

/// The sizes of what lies on the device from the beginning, but for the pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RaySceneSizes {
    /// Bytes.
    pub(crate) table: u64,
    /// Bytes.
    pub(crate) masks: u64,
    pub(crate) cameras: u64,
    pub(crate) shutters: u64,
    pub(crate) frames: u64,
}

impl RaySceneSizes {
    pub(crate) fn bytes(&self) -> u64 {
        let parts = [
            self.table,
            self.masks,
            self.cameras * size_of::<KernelCamera>() as u64,
            self.shutters * size_of::<KernelShutter>() as u64,
            self.frames * size_of::<KernelFrame>() as u64,
        ];
        parts
            .map(|bytes| bytes.next_multiple_of(SCENE_ALIGN as u64))
            .iter()
            .sum()
    }
}

/// Arrays that some scenes have: of times, of depths.
pub(crate) const HAS_TIMES: u32 = 1;
pub(crate) const HAS_DEPTHS: u32 = 2;

/// Parts of a scene begin at multiples of this.
pub(crate) const SCENE_ALIGN: usize = 256;

/// A launch: addresses are the stage's business.
#[derive(Debug, Clone, Copy, PartialEq, Default, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct KernelRays {
    /// Sums, weights, images, order, counts, masks, cameras, frames, shutters.
    pub(crate) scene: [u64; 9],
    pub(crate) out: u64,
    /// Where the arrays begin behind `out`.
    pub(crate) arrays: [u64; 9],
    /// What a level of a depth is in the scene's units.
    pub(crate) depth_scale: f64,
    /// Images to draw from where those are even, else units.
    pub(crate) total: u64,
    pub(crate) key: [u32; 2],
    /// Images that are drawn from.
    pub(crate) joined: u32,
    pub(crate) even: u32,
    /// Width and height of every image, where all are whole and alike; else 0.
    pub(crate) alike: [u32; 2],
    /// The sampler's kind and numbers, and how far a unit's last row is from its first.
    pub(crate) sampler: [u32; 3],
    pub(crate) extent: u32,
    pub(crate) rays: u32,
    /// [`HAS_TIMES`], [`HAS_DEPTHS`].
    pub(crate) has: u32,
    /// Bytes of a pixel, numbers of a colour.
    pub(crate) channels: u32,
    pub(crate) zero: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel's structs have these sizes: `kernels/rays/types.cuh`, field by field.
    #[test]
    fn sizes_are_the_kernel_s() {
        assert_eq!(size_of::<KernelCamera>(), 19 * 8 + 4 * 4);
        assert_eq!(size_of::<KernelShutter>(), 16 * 8);
        assert_eq!(size_of::<KernelFrame>(), 15 * 8 + 4 * 4);
        assert_eq!(size_of::<KernelRays>(), 21 * 8 + 14 * 4);
        let ptx = include_str!("../../kernels/rays.ptx");
        assert!(ptx.contains(&format!(".visible .entry {RAYS_KERNEL}(")));
        assert!(ptx.contains(&format!("rays_param_0[{}]", size_of::<KernelRays>())));
        assert!(ptx.contains(&format!(".maxntid {RAYS_BLOCK}, 1, 1")));
    }
}
