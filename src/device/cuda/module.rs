//! PTX, loaded: one kernel of it.
//!
//! In the consumer. The driver compiles the PTX for the device at hand, once: it keeps the
//! result for later processes.

use std::ffi::{CString, c_void};
use std::ptr;
use std::sync::Arc;

use cudarc::driver::sys::{self, CUfunction, CUmodule};

use super::context::{Context, Stream};
use crate::error::{Error, Result};

/// A kernel.
#[derive(Debug)]
pub(super) struct Module {
    context: Arc<Context>,
    module: CUmodule,
    function: CUfunction,
}

// SAFETY: handles of the process, alive as long as the value; the driver locks.
unsafe impl Send for Module {}
// SAFETY: as above; nothing of the value changes.
unsafe impl Sync for Module {}

/// How a launch is cut into threads.
#[derive(Debug, Clone, Copy)]
pub(super) struct Grid {
    pub(super) blocks: (u32, u32, u32),
    pub(super) threads: (u32, u32),
    /// Bytes of shared memory a block.
    pub(super) shared: u32,
}

impl Module {
    /// The kernel `name` of a text.
    pub(super) fn load(context: &Arc<Context>, ptx: &str, name: &str) -> Result<Self> {
        let zeroed = |text: &str| {
            CString::new(text).map_err(|_| Error::Device {
                what: "a zero in the text of a kernel".into(),
            })
        };
        let ptx = zeroed(ptx)?;
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
        let name = zeroed(name)?;
        // SAFETY: the module was loaded above; the name ends with a zero.
        context.setup("cuModuleGetFunction", || unsafe {
            sys::cuModuleGetFunction(&mut kernel.function, module, name.as_ptr())
        })?;
        Ok(kernel)
    }

    /// Puts one launch into the stream.
    ///
    /// # Safety
    /// The arguments must be those that the kernel declares, in order and size, and what they
    /// point to must be as the kernel takes it, until the launch is over.
    pub(super) unsafe fn launch(
        &self,
        stream: &Stream,
        grid: Grid,
        arguments: &mut [*mut c_void],
    ) -> Result<()> {
        let (across, down, deep) = grid.blocks;
        // SAFETY: this function's contract; the driver copies the arguments before it
        // returns.
        self.context.work("cuLaunchKernel", || unsafe {
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

impl Drop for Module {
    fn drop(&mut self) {
        let module = self.module;
        // SAFETY: loaded in `load`, unloaded here only; its owner has waited for the
        // launches.
        self.context
            .release("cuModuleUnload", || unsafe { sys::cuModuleUnload(module) });
    }
}
