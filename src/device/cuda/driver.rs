//! The CUDA driver: its version, its devices, and its errors.
//!
//! In the consumer. Every driver call goes through [`call`], which turns a code into an error with
//! the name of the call and a fix. Nothing here creates a context, so no device memory is used.

use std::collections::BTreeSet;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::{Mutex, OnceLock, PoisonError};

use cudarc::driver::sys::{self, CUdevice, CUdevice_attribute, CUresult};

use crate::device::device_info::{DeviceInfo, DeviceReport};
use crate::error::{Error, Result};

/// CUDA 12.0, in the driver's notation. `kernels/` and the calls here need it.
const OLDEST_DRIVER: i32 = 12_000;
/// Volta, the target of the PTX.
const OLDEST_CAPABILITY: (u32, u32) = (7, 0);

/// Runs one driver call.
pub(super) fn call(name: &'static str, f: impl FnOnce() -> CUresult) -> Result<()> {
    let code = code_of(name, f)?;
    match code {
        CUresult::CUDA_SUCCESS => Ok(()),
        code => Err(call_error(name, code)),
    }
}

/// Like [`call`], but returns codes other than success. `name` must be the exact name of the
/// driver's function: the binding panics on a function that the driver lacks.
pub(super) fn code_of(name: &'static str, f: impl FnOnce() -> CUresult) -> Result<CUresult> {
    if has(name) {
        return Ok(f());
    }
    Err(Error::device(format!(
        "{name}: this NVIDIA driver does not have it: update the driver to 525 or newer \
             (CUDA 12.0)"
    )))
}

/// Whether the driver's library has this function.
fn has(name: &'static str) -> bool {
    static FOUND: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: `version` saw the library before anything else is called; what is found
    // is not called.
    let has = found.contains(name)
        || unsafe { sys::culib().get::<*const c_void>(name.as_bytes()).is_ok() };
    if has {
        found.insert(name);
    }
    has
}

/// Whether a code means that the context, and everything in it, was destroyed.
pub(super) fn is_lost(code: CUresult) -> bool {
    matches!(
        code,
        CUresult::CUDA_ERROR_INVALID_CONTEXT | CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED
    )
}

/// An error for a code, with the driver's text and a fix.
pub(super) fn call_error(name: &str, code: CUresult) -> Error {
    let number = code as u32;
    // SAFETY of what is called by it: both take a code and where to write an address.
    let word = |f: unsafe fn(CUresult, *mut *const c_char) -> CUresult| {
        let mut text = ptr::null();
        // SAFETY: the driver writes the address of a text of its own, which it keeps
        // for as long as it is loaded; of a code that it does not know, null.
        let known = catch_unwind(AssertUnwindSafe(|| unsafe { f(code, &mut text) }));
        if !matches!(known, Ok(CUresult::CUDA_SUCCESS)) || text.is_null() {
            return None;
        }
        // SAFETY: as above: not null, ends with a zero, never freed.
        Some(
            unsafe { CStr::from_ptr(text) }
                .to_string_lossy()
                .into_owned(),
        )
    };
    let named = word(sys::cuGetErrorName).unwrap_or_else(|| format!("error {number}"));
    let message = word(sys::cuGetErrorString).unwrap_or_else(|| "no text".into());
    let what = match advice(number) {
        "" => format!("{name}: {named} ({message})"),
        advice => format!("{name}: {named} ({message}): {advice}"),
    };
    Error::device(match number {
        100 | 101 => format!("{what}; {}", visible()),
        _ => what,
    })
}

/// `CUDA_VISIBLE_DEVICES`, for error texts.
fn visible() -> String {
    match std::env::var_os("CUDA_VISIBLE_DEVICES") {
        None => "CUDA_VISIBLE_DEVICES is not set".into(),
        Some(list) => format!("CUDA_VISIBLE_DEVICES is {list:?}"),
    }
}

/// The fix for a code.
fn advice(code: u32) -> &'static str {
    match code {
        2 => {
            "lower batch or depth, leave the pixels in place (upload), or see in nvidia-smi what \
             else holds memory of the device (pinned host memory counts too)"
        }
        3 | 4 => {
            "CUDA cannot be used in a process that was forked after its start, nor while it ends"
        }
        34 => {
            "the CUDA toolkit's stub of libcuda was found in front of the driver's: take its \
             folder off LD_LIBRARY_PATH"
        }
        46 => "another process has the device to itself: see its compute mode in nvidia-smi",
        100 => {
            "nvidia-smi lists the devices that there are; CUDA_VISIBLE_DEVICES may hide them, \
             and a container must be started with them (docker: --gpus all)"
        }
        101 => {
            "this number is too large: nvidia-smi lists the devices, CUDA_VISIBLE_DEVICES may hide some"
        }
        201 | 709 => {
            "the device's context was reset, or destroyed, by another part of this process \
             (cudaDeviceReset, cuDevicePrimaryCtxReset): leave that out, or build the loader \
             behind it"
        }
        209 | 218 | 222 => "the driver cannot load the kernels of this version: update it",
        221 | 223 => {
            "the driver may not compile PTX here: libnvidia-ptxjitcompiler.so.1 is missing, or \
             CUDA_DISABLE_PTX_JIT is set"
        }
        214 | 220 | 226 | 714 => "the device reports a fault of its own: see dmesg for its Xid",
        700 | 715..=719 => {
            "the device's context is lost, restart the process; another library that uses the \
             same device may have been the cause (compute-sanitizer finds it)"
        }
        702 => "the device's watchdog ended a kernel: use a device without a display",
        803 | 804 => {
            "libcuda and the kernel's module are of two versions: reload the nvidia module or \
             restart the machine; in a container, do not bring another libcuda"
        }
        802 => {
            "the device is not ready yet; on machines with NVSwitch, is nvidia-fabricmanager \
             running?"
        }
        999 => "often the nvidia_uvm module: `modprobe nvidia_uvm`, or restart the machine",
        _ => "",
    }
}

/// Finds and starts the driver, once per process. Rejects a driver that is too old. Returns its
/// version as 1000 x major + 10 x minor.
pub(super) fn start() -> Result<i32> {
    static STARTED: OnceLock<i32> = OnceLock::new();
    if let Some(version) = STARTED.get() {
        return Ok(*version);
    }
    let version = version()?;
    if version < OLDEST_DRIVER {
        return Err(Error::device(format!(
            "the NVIDIA driver serves CUDA {}, and featherload needs {}: update the driver \
                 to 525 or newer",
            text(version),
            text(OLDEST_DRIVER)
        )));
    }
    // SAFETY: the library is there (`version`); cuInit takes 0 and nothing else.
    call("cuInit", || unsafe { sys::cuInit(0) })?;
    Ok(*STARTED.get_or_init(|| version))
}

/// The driver's CUDA version. An error without a driver.
fn version() -> Result<i32> {
    // SAFETY: loads a library by its name, as the first call of any function
    // would; that panics where there is none, so it is tried here.
    if !unsafe { sys::is_culib_present() } {
        return Err(Error::device(
            "no NVIDIA driver: libcuda.so.1 cannot be loaded (install the driver, 525 or \
                   newer; in a container, start it with the device: docker --gpus all, and \
                   NVIDIA_DRIVER_CAPABILITIES with `compute`)",
        ));
    }
    let mut version = 0;
    // SAFETY: the library is there, and the pointer is to a live integer.
    call("cuDriverGetVersion", || unsafe {
        sys::cuDriverGetVersion(&mut version)
    })?;
    Ok(version)
}

/// `12.4` for 12040.
fn text(version: i32) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

fn count() -> Result<u32> {
    start()?;
    let mut count: c_int = 0;
    // SAFETY: started above; the pointer is to a live integer.
    call("cuDeviceGetCount", || unsafe {
        sys::cuDeviceGetCount(&mut count)
    })?;
    Ok(count.max(0) as u32)
}

/// A usable device, by its number among the visible ones.
pub(super) fn device(ordinal: u32) -> Result<(CUdevice, DeviceInfo)> {
    let of = |e: Error| Error::device(format!("cuda:{ordinal}: {e}"));
    let there = count().map_err(of)?;
    if there == 0 {
        return Err(of(call_error(
            "cuDeviceGetCount",
            CUresult::CUDA_ERROR_NO_DEVICE,
        )));
    }
    if ordinal >= there {
        let seen = (0..there).map(|i| match described(i) {
            Ok((_, device)) => device.to_string(),
            Err(_) => format!("cuda:{i}"),
        });
        return Err(Error::device(format!(
            "cuda:{ordinal} does not exist. Visible devices: {} (nvidia-smi lists all; {})",
            seen.collect::<Vec<_>>().join(", "),
            visible()
        )));
    }
    let (handle, device) = described(ordinal).map_err(of)?;
    match &device.unusable {
        Some(why) => Err(Error::device(format!("{device}: {why}"))),
        None => Ok((handle, device)),
    }
}

impl DeviceInfo {
    /// Puts the device's name before an error.
    pub(super) fn named(&self, error: Error) -> Error {
        Error::device(format!("{self}: {error}"))
    }
}

fn described(ordinal: u32) -> Result<(CUdevice, DeviceInfo)> {
    let mut handle: CUdevice = 0;
    // SAFETY: started by `count`; the pointer is to a live handle.
    call("cuDeviceGet", || unsafe {
        sys::cuDeviceGet(&mut handle, ordinal as c_int)
    })?;
    let mut name = [0u8; 256];
    // SAFETY: `handle` is the driver's; one byte less than there are, so that the
    // last stays zero.
    call("cuDeviceGetName", || unsafe {
        sys::cuDeviceGetName(name.as_mut_ptr().cast(), name.len() as c_int - 1, handle)
    })?;
    let name = CStr::from_bytes_until_nul(&name).unwrap_or_default();
    let mut total_bytes = 0;
    // SAFETY: `handle` is the driver's, the pointer to a live integer.
    call("cuDeviceTotalMem_v2", || unsafe {
        sys::cuDeviceTotalMem_v2(&mut total_bytes, handle)
    })?;
    let attribute = |what: CUdevice_attribute| {
        let mut value: c_int = 0;
        // SAFETY: `handle` is the driver's, the pointer to a live integer.
        call("cuDeviceGetAttribute", || unsafe {
            sys::cuDeviceGetAttribute(&mut value, what, handle)
        })?;
        Ok(value.max(0) as u32)
    };
    let capability = (
        attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
        attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
    );
    let unusable = (capability < OLDEST_CAPABILITY).then(|| {
        format!(
            "compute capability {}.{}, and the kernels need {}.{} (Volta) or newer",
            capability.0, capability.1, OLDEST_CAPABILITY.0, OLDEST_CAPABILITY.1
        )
    });
    Ok((
        handle,
        DeviceInfo {
            ordinal,
            name: name.to_string_lossy().into_owned(),
            capability,
            total_bytes: total_bytes as u64,
            unusable,
        },
    ))
}

/// Lists the CUDA devices of this machine. Loads the driver's library and starts it, but creates no
/// context, so no device memory is used. Never fails: the report has the reason if there is no
/// usable device.
///
/// A process that has called this must not use CUDA in a forked copy of itself. Such a copy may
/// start a pool, whose processes do not use CUDA.
pub fn probe() -> DeviceReport {
    let mut report = DeviceReport::default();
    let seen = (|| {
        let version = version()?;
        report.cuda = Some(((version / 1000) as u32, (version % 1000 / 10) as u32));
        for ordinal in 0..count()? {
            report.devices.push(described(ordinal)?.1);
        }
        match report.devices.is_empty() {
            true => Err(call_error(
                "cuDeviceGetCount",
                CUresult::CUDA_ERROR_NO_DEVICE,
            )),
            false => Ok(()),
        }
    })();
    report.missing = seen.err().map(|e| e.to_string());
    report
}
