//! The arguments of `kernels/rays.cu`, byte for byte as the kernel reads them
//! (`kernels/rays/types.cuh`), and the parts of a scene on the device.
//!
//! In the consumer. Plain numbers, explained in `src/scene`.

use bytemuck::{Pod, Zeroable};

use crate::device::scene_launch::{KernelCamera, PixelPlace, SCENE_ALIGN};

/// The kernel's name in its PTX.
pub(crate) const RAYS_KERNEL: &str = "rays";
/// Threads per block, one ray each.
pub(crate) const RAYS_BLOCK: u32 = 128;

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
    /// Offset of its pixels. The stage replaces it by the address: see [`PixelPlace`].
    pub(crate) pixels: u64,
    /// Index of the first word of its mask.
    pub(crate) mask: u64,
    /// Offset of its depths from its pixels, in bytes. 0: none.
    pub(crate) depths: u64,
    pub(crate) camera: u32,
    pub(crate) time: f32,
    pub(crate) width: u32,
    /// Number of its shutter plus 1. 0: none.
    pub(crate) shutter: u32,
}

/// The parts of a scene that are on the device from the beginning.
#[derive(Debug)]
pub(crate) struct RayScene<'a> {
    /// The table of the draws, and the offsets of its parts: sums, weights, images, order, counts.
    pub(crate) table: &'a [u8],
    pub(crate) parts: [usize; 5],
    pub(crate) masks: &'a [u8],
    pub(crate) cameras: Vec<KernelCamera>,
    pub(crate) shutters: Vec<KernelShutter>,
    pub(crate) frames: Vec<KernelFrame>,
    /// One per frame.
    pub(crate) places: Vec<PixelPlace>,
    /// Bytes of the pixels on the device.
    pub(crate) pixel_bytes: u64,
}

/// Sizes of the parts that are on the device from the beginning, without pixels.
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

/// Flags of optional arrays: times, depths.
pub(crate) const HAS_TIMES: u32 = 1;
pub(crate) const HAS_DEPTHS: u32 = 2;

/// The argument of a launch. The stage fills in the addresses.
#[derive(Debug, Clone, Copy, PartialEq, Default, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct KernelRays {
    /// Sums, weights, images, order, counts, masks, cameras, frames, shutters.
    pub(crate) scene: [u64; 9],
    pub(crate) out: u64,
    /// Offsets of the arrays from `out`.
    pub(crate) arrays: [u64; 9],
    /// The scene's units per level of a depth.
    pub(crate) depth_scale: f64,
    /// Number of images to draw from if all are equally likely, otherwise of units.
    pub(crate) total: u64,
    pub(crate) key: [u32; 2],
    /// Number of images that are drawn from.
    pub(crate) joined: u32,
    pub(crate) even: u32,
    /// Width and height of every image, if all are whole and equal. Otherwise 0.
    pub(crate) alike: [u32; 2],
    /// The sampler's kind and numbers.
    pub(crate) sampler: [u32; 3],
    pub(crate) extent: u32,
    pub(crate) rays: u32,
    /// [`HAS_TIMES`], [`HAS_DEPTHS`].
    pub(crate) has: u32,
    /// Bytes of a pixel, and numbers of a colour.
    pub(crate) channels: u32,
    pub(crate) zero: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel's structs have these sizes: `kernels/rays/types.cuh`, field by field.
    #[test]
    fn sizes_are_the_kernel_s() {
        assert_eq!(size_of::<KernelShutter>(), 16 * 8);
        assert_eq!(size_of::<KernelFrame>(), 15 * 8 + 4 * 4);
        assert_eq!(size_of::<KernelRays>(), 21 * 8 + 14 * 4);
        let ptx = include_str!("../../kernels/rays.ptx");
        assert!(ptx.contains(&format!(".visible .entry {RAYS_KERNEL}(")));
        assert!(ptx.contains(&format!("rays_param_0[{}]", size_of::<KernelRays>())));
        assert!(ptx.contains(&format!(".maxntid {RAYS_BLOCK}, 1, 1")));
    }
}
