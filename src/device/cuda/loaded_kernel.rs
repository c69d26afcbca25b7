//! Loads kernels from PTX.
//!
//! In the consumer. The driver compiles the PTX for the device once, and keeps the result for later
//! processes.

use std::ffi::{CString, c_void};
use std::ptr;
use std::sync::Arc;

use cudarc::driver::sys::{self, CUfunction, CUfunction_attribute, CUmodule};

use super::context::{CudaContext, CudaStream};
use crate::error::{Error, Result};

/// A loaded PTX text.
#[derive(Debug)]
struct PtxModule {
    context: Arc<CudaContext>,
    module: CUmodule,
}

/// A loaded kernel.
#[derive(Debug)]
pub(super) struct LoadedKernel {
    loaded: Arc<PtxModule>,
    function: CUfunction,
}

// SAFETY: handles of the process, alive as long as the value; the driver locks.
unsafe impl Send for PtxModule {}
// SAFETY: as above; nothing of the value changes.
unsafe impl Sync for PtxModule {}
// SAFETY: as for `PtxModule`, which lives as long.
unsafe impl Send for LoadedKernel {}
// SAFETY: as for `PtxModule`.
unsafe impl Sync for LoadedKernel {}

/// The threads and the shared memory of a launch.
#[derive(Debug, Clone, Copy)]
pub(super) struct LaunchGrid {
    pub(super) blocks: (u32, u32, u32),
    pub(super) threads: (u32, u32),
    /// Bytes of shared memory per block.
    pub(super) shared: u32,
}

impl LoadedKernel {
    /// Loads the kernel `name` of a PTX text.
    pub(super) fn load(context: &Arc<CudaContext>, ptx: &str, name: &str) -> Result<Self> {
        let [module] = Self::load_all(context, ptx, [name])?;
        Ok(module)
    }

    /// Loads several kernels of a PTX text.
    pub(super) fn load_all<const N: usize>(
        context: &Arc<CudaContext>,
        ptx: &str,
        names: [&str; N],
    ) -> Result<[Self; N]> {
        let zeroed = |text: &str| {
            CString::new(text)
                .map_err(|_| Error::device("the text of a kernel contains a zero byte"))
        };
        let ptx = zeroed(ptx)?;
        let mut module = ptr::null_mut();
        // SAFETY: the text ends with a zero and lives until the call is over.
        context.setup("cuModuleLoadData", || unsafe {
            sys::cuModuleLoadData(&mut module, ptx.as_ptr().cast())
        })?;
        let loaded = Arc::new(PtxModule {
            context: context.clone(),
            module,
        });
        let mut kernels = names.map(|_| Self {
            loaded: loaded.clone(),
            function: ptr::null_mut(),
        });
        for (kernel, name) in kernels.iter_mut().zip(names) {
            let name = zeroed(name)?;
            // SAFETY: the module was loaded above; the name ends with a zero.
            context.setup("cuModuleGetFunction", || unsafe {
                sys::cuModuleGetFunction(&mut kernel.function, module, name.as_ptr())
            })?;
        }
        Ok(kernels)
    }

    /// Allows launches with this number of bytes of dynamic shared memory per block.
    pub(super) fn allow_shared(&self, bytes: u32) -> Result<()> {
        let what = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // SAFETY: the function is of a module that is loaded.
        self.loaded.context.setup("cuFuncSetAttribute", || unsafe {
            sys::cuFuncSetAttribute(self.function, what, bytes as i32)
        })
    }

    /// Adds one launch to the stream.
    ///
    /// # Safety
    /// The arguments must be those that the kernel declares, in order and size. What they point to
    /// must be valid for the kernel until the launch is done.
    pub(super) unsafe fn launch(
        &self,
        stream: &CudaStream,
        grid: LaunchGrid,
        arguments: &mut [*mut c_void],
    ) -> Result<()> {
        let (across, down, deep) = grid.blocks;
        // SAFETY: this function's contract; the driver copies the arguments before it
        // returns.
        self.loaded.context.work("cuLaunchKernel", || unsafe {
            sys::cuLaunchKernel(
                self.function,
                across,
                down,
                deep,
                grid.threads.0,
                grid.threads.1,
                1,
                grid.shared,
                stream.raw(),
                arguments.as_mut_ptr(),
                ptr::null_mut(),
            )
        })
    }
}

impl Drop for PtxModule {
    fn drop(&mut self) {
        let module = self.module;
        // SAFETY: loaded in `load`, unloaded here only; its owner has waited for the
        // launches.
        self.context
            .release("cuModuleUnload", || unsafe { sys::cuModuleUnload(module) });
    }
}
