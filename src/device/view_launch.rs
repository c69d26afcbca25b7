//! The arguments of `kernels/views.cu`, byte for byte as the kernel reads them.
//!
//! In the consumer. Plain numbers, explained in `src/scene`.

use bytemuck::{Pod, Zeroable};

use crate::device::scene_launch::KernelCamera;

/// The kernel's name in its PTX.
pub(crate) const VIEWS_KERNEL: &str = "views";
/// Pixels per block, across and down, one thread each.
pub(crate) const VIEWS_BLOCK: (u32, u32) = (32, 8);

/// Most rows of an image: blocks down are counted in 16 bits.
pub(crate) const MOST_ROWS: u32 = 65_535 * VIEWS_BLOCK.1;

/// Flags: the image is straightened; its numbers are `f32` from 0 to 1.
pub(crate) const STRAIGHT: u32 = 1;
pub(crate) const FLOAT: u32 = 2;

/// The argument of a launch. The stage fills in the addresses.
#[derive(Debug, Clone, Copy, PartialEq, Default, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct KernelView {
    /// The camera that took the image.
    pub(crate) camera: KernelCamera,
    /// The pinhole camera of the view: fx, fy, cx, cy.
    pub(crate) pinhole: [f64; 4],
    /// The scene's units per level of a depth.
    pub(crate) depth_scale: f64,
    pub(crate) pixels: u64,
    /// Address of its mask. 0: none.
    pub(crate) mask: u64,
    /// Offset of its depths from its pixels, in bytes. 0: none.
    pub(crate) depths: u64,
    pub(crate) out: u64,
    /// Offsets of the arrays from `out`.
    pub(crate) arrays: [u64; 3],
    /// Width and height of the view, and of the image.
    pub(crate) size: [u32; 2],
    pub(crate) source: [u32; 2],
    /// Bytes of a pixel.
    pub(crate) channels: u32,
    /// [`STRAIGHT`], [`FLOAT`].
    pub(crate) form: u32,
}

/// The launch of a view, and the sizes that it needs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ViewParts {
    pub(crate) launch: KernelView,
    pub(crate) image: usize,
    /// Bytes of its pixels and depths.
    pub(crate) stored: u64,
    /// Index of the first word of its mask. None: no mask.
    pub(crate) mask: Option<u64>,
    /// Bytes of all arrays.
    pub(crate) bytes: usize,
}

impl ViewParts {
    /// Whether the kernel only reads bytes of the image and words before `mask_words`, and only
    /// writes bytes of the view.
    pub(crate) fn fits(&self, mask_words: u64) -> bool {
        let KernelView {
            arrays,
            size: [width, height],
            source: [columns, rows],
            depths,
            form,
            ..
        } = self.launch;
        let channels = u64::from(self.launch.channels);
        let number = if form & FLOAT == 0 { 1 } else { 4 };
        let shown = u64::from(width) * u64::from(height);
        let there = u64::from(columns) * u64::from(rows);
        let straight = form & STRAIGHT != 0 || (width, height) == (columns, rows);
        let within =
            |begin: u64, len: u64, all: u64| begin.checked_add(len).is_some_and(|e| e <= all);
        let bytes = self.bytes as u64;
        let masked = self.mask.is_none_or(|word| {
            let words = u64::from(rows) * u64::from(columns.div_ceil(64));
            within(word, words, mask_words) && within(arrays[1], shown, bytes)
        });
        let deep = depths == 0
            || (within(depths, 4 * there, self.stored) && within(arrays[2], 4 * shown, bytes));
        straight
            && masked
            && deep
            && within(0, channels * there, self.stored)
            && within(arrays[0], number * channels * shown, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel's struct has this size: `kernels/views.cu`, field by field.
    #[test]
    fn sizes_are_the_kernel_s() {
        assert_eq!(
            size_of::<KernelView>(),
            size_of::<KernelCamera>() + 12 * 8 + 6 * 4
        );
        let ptx = include_str!("../../kernels/views.ptx");
        assert!(ptx.contains(&format!(".visible .entry {VIEWS_KERNEL}(")));
        assert!(ptx.contains(&format!("views_param_0[{}]", size_of::<KernelView>())));
        let threads = VIEWS_BLOCK.0 * VIEWS_BLOCK.1;
        assert!(ptx.contains(&format!(".maxntid {threads}, 1, 1")));
    }
}
