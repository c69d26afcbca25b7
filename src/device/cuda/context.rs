//! A device's primary context, its streams and its events.
//!
//! In the consumer. The CUDA runtime and PyTorch use the primary context too, so addresses and
//! streams are valid everywhere. Each call makes the context current and restores the calling
//! thread's context afterwards.
//!
//! A failed call makes the context unusable. The first error is kept, and every later call returns
//! it. In a forked copy of the process every call is an error, and dropping does nothing.
//!
//! Other code can reset the primary context. Everything in it is then destroyed, and its handles
//! and addresses may be reused. So each call first checks that the context is still the one that
//! was opened.

use std::marker::PhantomData;
use std::process;
use std::ptr;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};

use cudarc::driver::sys::{
    self, CUcontext, CUdevice, CUdevice_attribute, CUevent, CUevent_flags, CUresult, CUstream,
    CUstream_flags,
};

use super::driver::{self, call, call_error, code_of, is_lost};
use crate::device::DeviceInfo;
use crate::error::{Error, Result};

/// A stream as the driver's handle: 0, 1 and 2 are default streams.
pub type RawStream = usize;

/// The primary context of a device.
#[derive(Debug)]
pub(crate) struct CudaContext {
    raw: CUcontext,
    handle: CUdevice,
    device: DeviceInfo,
    process: u32,
    /// The driver's number of the context. No later context has the same.
    id: OnceLock<u64>,
    /// The first error.
    failed: OnceLock<String>,
    out_of_memory: AtomicU64,
    /// Free and total bytes.
    at_start: OnceLock<(u64, u64)>,
}

// SAFETY: a context belongs to the process; the driver locks by itself, and each
// use makes it current in the thread that uses it (`enter`).
unsafe impl Send for CudaContext {}
// SAFETY: as for Send.
unsafe impl Sync for CudaContext {}

/// Keeps the context current in this thread until it is dropped.
pub(super) struct CurrentContext<'a> {
    _of: &'a CudaContext,
    /// Not Send: valid in this thread only.
    _here: PhantomData<*const ()>,
}

impl CudaContext {
    /// The primary context of the device with this number among the visible ones.
    pub(crate) fn open(ordinal: u32) -> Result<Arc<Self>> {
        let (handle, device) = driver::device(ordinal)?;
        let mut raw = ptr::null_mut();
        // SAFETY: `handle` is the driver's; released once, in `drop`.
        let retained = call("cuDevicePrimaryCtxRetain", || unsafe {
            sys::cuDevicePrimaryCtxRetain(&mut raw, handle)
        });
        retained.map_err(|e| device.named(e))?;
        let context = Arc::new(Self {
            raw,
            handle,
            device,
            process: process::id(),
            id: OnceLock::new(),
            failed: OnceLock::new(),
            out_of_memory: AtomicU64::new(0),
            at_start: OnceLock::new(),
        });
        let _ = context.at_start.set(context.memory()?);
        Ok(context)
    }

    #[cfg(test)]
    pub(super) fn device(&self) -> &DeviceInfo {
        &self.device
    }

    /// The device's number among the visible ones.
    pub(super) fn ordinal(&self) -> u32 {
        self.device.ordinal
    }

    /// Free bytes of the device when this context was created.
    pub(crate) fn free_bytes_at_start(&self) -> u64 {
        self.at_start.get().map_or(0, |(free, _)| *free)
    }

    /// Used bytes of the device when this context was created, by any process.
    pub(crate) fn used_bytes_at_start(&self) -> u64 {
        self.at_start.get().map_or(0, |(free, all)| all - free)
    }

    /// Free bytes of the device now. Counts the use of all processes.
    pub(crate) fn free_bytes(&self) -> Result<u64> {
        self.memory().map(|(free, _)| free)
    }

    /// Free and total bytes of the device.
    fn memory(&self) -> Result<(u64, u64)> {
        let (mut free, mut all) = (0, 0);
        // SAFETY: both pointers are to live integers; the context is current.
        self.setup("cuMemGetInfo_v2", || unsafe {
            sys::cuMemGetInfo_v2(&mut free, &mut all)
        })?;
        Ok((free as u64, all as u64))
    }

    /// An attribute of the device.
    pub(super) fn attribute(&self, what: CUdevice_attribute) -> Result<u32> {
        let mut value = 0;
        let handle = self.handle;
        // SAFETY: the handle is the driver's, the pointer to a live integer.
        self.setup("cuDeviceGetAttribute", || unsafe {
            sys::cuDeviceGetAttribute(&mut value, what, handle)
        })?;
        Ok(value.max(0) as u32)
    }

    /// Whether this process created it.
    pub(super) fn is_ours(&self) -> bool {
        process::id() == self.process
    }

    /// Makes the context current in this thread.
    pub(super) fn enter(&self) -> Result<CurrentContext<'_>> {
        if !self.is_ours() {
            return Err(Error::device(format!(
                "cuda:{} was opened by process {}, and this is a forked copy of it: CUDA \
                     does not work here",
                self.device.ordinal, self.process
            )));
        }
        let (mut flags, mut active) = (0, 0);
        let handle = self.handle;
        // SAFETY: the handle is the driver's, both pointers are to live integers.
        let state = code_of("cuDevicePrimaryCtxGetState", || unsafe {
            sys::cuDevicePrimaryCtxGetState(handle, &mut flags, &mut active)
        });
        self.done("cuDevicePrimaryCtxGetState", state)?;
        if active == 0 {
            return Err(self.lost("cuDevicePrimaryCtxGetState"));
        }
        // SAFETY: retained in `open`, released in `drop` only; popped by `CurrentContext`.
        let pushed = code_of("cuCtxPushCurrent_v2", || unsafe {
            sys::cuCtxPushCurrent_v2(self.raw)
        });
        self.done("cuCtxPushCurrent_v2", pushed)?;
        let current = CurrentContext {
            _of: self,
            _here: PhantomData,
        };
        let mut id = 0;
        // SAFETY: as above; the pointer is to a live integer.
        let code = code_of("cuCtxGetId", || unsafe {
            sys::cuCtxGetId(self.raw, &mut id)
        });
        self.done("cuCtxGetId", code)?;
        if *self.id.get_or_init(|| id) != id {
            return Err(self.lost("cuCtxGetId"));
        }
        Ok(current)
    }

    /// Checks the result of a call. Keeps an error that says that the context is lost.
    fn done(&self, name: &str, code: Result<CUresult>) -> Result<()> {
        match code {
            Ok(CUresult::CUDA_SUCCESS) => Ok(()),
            Ok(code) if is_lost(code) => Err(self.fail(self.device.named(call_error(name, code)))),
            Ok(code) => {
                if code == CUresult::CUDA_ERROR_OUT_OF_MEMORY {
                    self.out_of_memory.fetch_add(1, Relaxed);
                }
                Err(self.device.named(call_error(name, code)))
            }
            Err(e) => Err(self.device.named(e)),
        }
    }

    /// Number of calls that failed for lack of memory.
    pub(super) fn out_of_memory(&self) -> u64 {
        self.out_of_memory.load(Relaxed)
    }

    /// The error of a context that other code has reset.
    fn lost(&self, name: &str) -> Error {
        let why = call_error(name, CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED);
        self.fail(self.device.named(why))
    }

    /// The first error, if there is one.
    pub(super) fn check(&self) -> Result<()> {
        match self.failed.get() {
            Some(what) => Err(Error::device(what.clone())),
            None => Ok(()),
        }
    }

    /// A call that creates something. Its error does not affect later calls.
    pub(super) fn setup(&self, name: &'static str, f: impl FnOnce() -> CUresult) -> Result<()> {
        self.check()?;
        let _current = self.enter()?;
        self.done(name, code_of(name, f))
    }

    /// A call that does work. Every later call returns its error.
    pub(super) fn work(&self, name: &'static str, f: impl FnOnce() -> CUresult) -> Result<()> {
        self.setup(name, f).map_err(|e| self.fail(e))
    }

    /// Keeps an error, and returns the first that was kept.
    pub(super) fn fail(&self, error: Error) -> Error {
        // Not kept in a forked copy: the device has no error.
        if !self.is_ours() {
            return error;
        }
        let what = self.failed.get_or_init(|| error.to_string()).clone();
        Error::Device { what }
    }

    /// A call that frees something. Also runs in an unusable context, never in a forked copy, and
    /// never returns an error.
    pub(super) fn release(&self, name: &'static str, f: impl FnOnce() -> CUresult) {
        if !self.is_ours() {
            return;
        }
        let done = self
            .enter()
            .and_then(|_current| self.done(name, code_of(name, f)));
        // In an unusable context everything is freed already, and each call fails.
        if let (Err(e), None) = (done, self.failed.get()) {
            tracing::warn!("{e}");
        }
    }
}

impl Drop for CudaContext {
    fn drop(&mut self) {
        if !self.is_ours() {
            return;
        }
        let handle = self.handle;
        // SAFETY: retained once in `open`; whatever was made in it holds an `Arc` of it
        // and is gone.
        let done = code_of("cuDevicePrimaryCtxRelease_v2", || unsafe {
            sys::cuDevicePrimaryCtxRelease_v2(handle)
        });
        let done = self.done("cuDevicePrimaryCtxRelease_v2", done);
        if let (Err(e), None) = (done, self.failed.get()) {
            tracing::warn!("{e}");
        }
    }
}

impl Drop for CurrentContext<'_> {
    fn drop(&mut self) {
        let mut popped = ptr::null_mut();
        // SAFETY: pushed in `enter`, in this thread (`_here` keeps it there); guards are
        // dropped in the reverse order of their making.
        let done = call("cuCtxPopCurrent_v2", || unsafe {
            sys::cuCtxPopCurrent_v2(&mut popped)
        });
        if let Err(e) = done {
            tracing::warn!("{e}");
        }
    }
}

/// A stream of this library. It does not synchronise with the default streams.
#[derive(Debug)]
pub(crate) struct CudaStream {
    context: Arc<CudaContext>,
    raw: CUstream,
}

// SAFETY: the driver locks by itself; the handle lives as long as the value.
unsafe impl Send for CudaStream {}
// SAFETY: as for Send.
unsafe impl Sync for CudaStream {}

impl CudaStream {
    pub(crate) fn new(context: &Arc<CudaContext>) -> Result<Self> {
        let mut raw = ptr::null_mut();
        // SAFETY: the pointer is to a live handle; destroyed once, in `drop`.
        context.setup("cuStreamCreate", || unsafe {
            sys::cuStreamCreate(&mut raw, CUstream_flags::CU_STREAM_NON_BLOCKING as u32)
        })?;
        Ok(Self {
            context: context.clone(),
            raw,
        })
    }

    pub(super) fn context(&self) -> &Arc<CudaContext> {
        &self.context
    }

    pub(super) fn raw(&self) -> CUstream {
        self.raw
    }

    /// An event after all work that the stream has so far.
    pub(super) fn record(&self) -> Result<CudaEvent> {
        // SAFETY: the stream is ours and alive.
        unsafe { CudaEvent::record(&self.context, self.raw) }
    }

    /// The same, with a time.
    pub(super) fn record_timed(&self) -> Result<CudaEvent> {
        // SAFETY: the stream is ours and alive.
        unsafe {
            CudaEvent::put(
                &self.context,
                self.raw,
                CUevent_flags::CU_EVENT_BLOCKING_SYNC as u32,
            )
        }
    }

    /// Makes later work of this stream wait for the event.
    pub(super) fn wait_for(&self, event: &CudaEvent) -> Result<()> {
        // SAFETY: the stream is ours and alive.
        unsafe { event.make_wait(self.raw) }
    }

    /// Waits until the stream has finished its work. In an unusable context no work runs any more.
    pub(super) fn drain(&self) {
        // SAFETY: the stream is ours and alive.
        self.context.release("cuStreamSynchronize", || unsafe {
            sys::cuStreamSynchronize(self.raw)
        });
    }
}

impl Drop for CudaStream {
    fn drop(&mut self) {
        // SAFETY: made in `new`, destroyed here only.
        self.context.release("cuStreamDestroy_v2", || unsafe {
            sys::cuStreamDestroy_v2(self.raw)
        });
    }
}

/// A point in a stream. Host threads sleep while they wait for it.
#[derive(Debug)]
pub(crate) struct CudaEvent {
    context: Arc<CudaContext>,
    raw: CUevent,
}

// SAFETY: the driver locks by itself; the handle lives as long as the value.
unsafe impl Send for CudaEvent {}
// SAFETY: as for Send.
unsafe impl Sync for CudaEvent {}

impl CudaEvent {
    /// An event after all work that the stream has so far.
    ///
    /// # Safety
    /// The stream must be alive and belong to this context.
    pub(super) unsafe fn record(context: &Arc<CudaContext>, stream: CUstream) -> Result<Self> {
        let flags = CUevent_flags::CU_EVENT_BLOCKING_SYNC as u32
            | CUevent_flags::CU_EVENT_DISABLE_TIMING as u32;
        // SAFETY: this function's contract.
        unsafe { Self::put(context, stream, flags) }
    }

    /// # Safety
    /// As for [`CudaEvent::record`].
    unsafe fn put(context: &Arc<CudaContext>, stream: CUstream, flags: u32) -> Result<Self> {
        let mut raw = ptr::null_mut();
        // SAFETY: the pointer is to a live handle; destroyed once, in `drop`.
        context.work("cuEventCreate", || unsafe {
            sys::cuEventCreate(&mut raw, flags)
        })?;
        let event = Self {
            context: context.clone(),
            raw,
        };
        // SAFETY: the event was made above; the stream lives by this function's contract.
        context.work("cuEventRecord", || unsafe {
            sys::cuEventRecord(raw, stream)
        })?;
        Ok(event)
    }

    /// Makes later work of a stream wait for the event.
    ///
    /// # Safety
    /// The stream must be alive.
    pub(super) unsafe fn make_wait(&self, stream: CUstream) -> Result<()> {
        // SAFETY: the event is ours; the stream lives by this function's contract.
        self.context.work("cuStreamWaitEvent", || unsafe {
            sys::cuStreamWaitEvent(stream, self.raw, 0)
        })
    }

    /// Whether all work before the event has finished. Does not wait.
    pub(super) fn is_done(&self) -> Result<bool> {
        self.context.check()?;
        let _current = self.context.enter()?;
        // SAFETY: made in `put`, alive.
        let code = code_of("cuEventQuery", || unsafe { sys::cuEventQuery(self.raw) });
        match code {
            Ok(CUresult::CUDA_ERROR_NOT_READY) => Ok(false),
            other => self
                .context
                .done("cuEventQuery", other)
                .map(|()| true)
                .map_err(|e| self.context.fail(e)),
        }
    }

    /// Seconds from `earlier` to this event. Both must be timed and done.
    pub(super) fn seconds_since(&self, earlier: &Self) -> Result<f64> {
        let mut ms = 0.0;
        // SAFETY: both were made in `put`, alive; the pointer is to a live number.
        self.context.work("cuEventElapsedTime", || unsafe {
            sys::cuEventElapsedTime(&mut ms, earlier.raw, self.raw)
        })?;
        Ok(f64::from(ms) * 1e-3)
    }

    /// Sleeps until all work before the event has finished.
    pub(super) fn wait(&self) -> Result<()> {
        // SAFETY: made in `put`, alive.
        self.context.work("cuEventSynchronize", || unsafe {
            sys::cuEventSynchronize(self.raw)
        })
    }
}

impl Drop for CudaEvent {
    fn drop(&mut self) {
        // SAFETY: made in `put`, destroyed here only; the driver keeps what still
        // waits for it.
        self.context.release("cuEventDestroy_v2", || unsafe {
            sys::cuEventDestroy_v2(self.raw)
        });
    }
}
