//! The kernel of `kernels/crops.ptx`, and its launch.
//!
//! In the consumer.

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

use cudarc::driver::sys::CUdeviceptr;

use super::context::{CudaContext, CudaStream};
use super::loaded_kernel::{LaunchGrid, LoadedKernel};
use crate::device::crop_launch::{BLOCK, CropPass, KERNEL, KernelEmission, KernelTile};
use crate::error::Result;

const PTX: &str = include_str!("../../../kernels/crops.ptx");

/// The kernel.
#[derive(Debug)]
pub(super) struct CropKernel(LoadedKernel);

/// Device addresses that a launch reads and writes.
#[derive(Debug, Clone, Copy)]
pub(super) struct LaunchAddresses {
    pub(super) tables: CUdeviceptr,
    pub(super) pixels: CUdeviceptr,
    /// Array of `KernelRow`. The first pass writes its sums.
    pub(super) rows: CUdeviceptr,
    pub(super) out: CUdeviceptr,
}

impl CropKernel {
    pub(super) fn load(context: &Arc<CudaContext>) -> Result<Self> {
        LoadedKernel::load(context, PTX, KERNEL).map(Self)
    }

    /// Adds one launch to the stream, for `count` rows of the emission's size.
    ///
    /// # Safety
    /// All addresses must be valid until the launch is done, and no other code may write there. No
    /// other code may use `out` and `rows`. The rows must have been checked: they only name bytes
    /// inside of that memory.
    pub(super) unsafe fn launch(
        &self,
        stream: &CudaStream,
        mut places: LaunchAddresses,
        count: u32,
        mut emission: KernelEmission,
        pass: CropPass,
    ) -> Result<()> {
        let mut sums = pass.sums();
        let mut tile = KernelTile::USUAL;
        let (across, down) = tile.grid(emission.size());
        let grid = LaunchGrid {
            blocks: (across, down, count),
            threads: BLOCK,
            shared: tile.kept,
        };
        fn at<T>(value: &mut T) -> *mut c_void {
            ptr::from_mut(value).cast()
        }
        let mut arguments = [
            at(&mut places.tables),
            at(&mut places.pixels),
            at(&mut places.rows),
            at(&mut emission),
            at(&mut tile),
            at(&mut places.out),
            at(&mut sums),
        ];
        // SAFETY: the arguments are those that the kernel declares, in order and size
        // (`device::crop_launch` has its structs); what they point to is right by this function's
        // contract.
        unsafe { self.0.launch(stream, grid, &mut arguments) }
    }
}
