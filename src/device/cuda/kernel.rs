//! `kernels/crops.ptx`, loaded: one kernel of it, and its launch.
//!
//! In the consumer. The driver compiles the PTX for the device at hand, once: it
//! keeps the result for later processes.

use std::ffi::{CString, c_void};
use std::ptr;
use std::sync::Arc;

use cudarc::driver::sys::{self, CUdeviceptr, CUfunction, CUmodule};

use super::context::{Context, Stream};
use crate::device::launch::{BLOCK, KERNEL, KernelEmission, KernelTile, Pass};
use crate::error::{Error, Result};

const PTX: &str = include_str!("../../../kernels/crops.ptx");

/// The kernel.
#[derive(Debug)]
pub(super) struct Kernel {
    context: Arc<Context>,
    module: CUmodule,
    function: CUfunction,
}

// SAFETY: handles of the process, alive as long as the value; the driver locks.
unsafe impl Send for Kernel {}

/// Where a launch reads and writes, all of the device.
#[derive(Debug, Clone, Copy)]
pub(super) struct Places {
    pub(super) tables: CUdeviceptr,
    pub(super) pixels: CUdeviceptr,
    /// `KernelRow`s. The first pass writes their sums.
    pub(super) rows: CUdeviceptr,
    pub(super) out: CUdeviceptr,
}

impl Kernel {
    pub(super) fn load(context: &Arc<Context>) -> Result<Self> {
        let zeroed = |text: &str| {
            CString::new(text).map_err(|_| Error::Device {
                what: "a zero in the text of a kernel".into(),
            })
        };
        let ptx = zeroed(PTX)?;
        let mut module = ptr::null_mut();
        // SAFETY: the text ends with a zero and lives until the call is over.
        context.setup("cuModuleLoadData", || unsafe {
            sys::cuModuleLoadData(&mut module, ptx.as_ptr().cast())
        })?;
        let mut kernel = Self {
            context: context.clone(),
            module,
            function: ptr::null_mut(),
        };
        let name = zeroed(KERNEL)?;
        // SAFETY: the module was loaded above; the name ends with a zero.
        context.setup("cuModuleGetFunction", || unsafe {
            sys::cuModuleGetFunction(&mut kernel.function, module, name.as_ptr())
        })?;
        Ok(kernel)
    }

    /// Puts one launch into the stream, for `count` rows of the emission's size.
    ///
    /// # Safety
    /// All places must lie in memory that stays until the launch is over, and that
    /// nothing else writes meanwhile; nothing else may use `out` and `rows`. The rows
    /// must have been checked: what they name lies inside of it.
    pub(super) unsafe fn launch(
        &self,
        stream: &Stream,
        mut places: Places,
        count: u32,
        mut emission: KernelEmission,
        pass: Pass,
    ) -> Result<()> {
        let mut sums = pass.sums();
        let mut tile = KernelTile::USUAL;
        let (across, down) = tile.grid(emission.size());
        let kept = tile.kept;
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
        // (`device::launch` has its structs), and the driver copies them before it
        // returns; what they point to is right by this function's contract.
        self.context.work("cuLaunchKernel", || unsafe {
            sys::cuLaunchKernel(
                self.function,
                across,
                down,
                count,
                BLOCK.0,
                BLOCK.1,
                1,
                kept,
                stream.raw(),
                arguments.as_mut_ptr(),
                ptr::null_mut(),
            )
        })
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        let module = self.module;
        // SAFETY: loaded in `load`, unloaded here only; its owner has waited for the
        // launches.
        self.context
            .release("cuModuleUnload", || unsafe { sys::cuModuleUnload(module) });
    }
}
