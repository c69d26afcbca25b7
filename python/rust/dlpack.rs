//! DLPack, the format in which array libraries exchange memory, as its header defines it (dlpack.h,
//! versions 0.8 and 1.0).
//!
//! Never in here: ownership of the memory. A [`Lease`] holds it until the consumer is done. The
//! consumer may release it in any thread, without the GIL, and after the interpreter's end.

use std::ffi::{CStr, c_void};

use featherload::DataType;
use pyo3::ffi;
use pyo3::prelude::*;

/// Keeps the memory of a tensor alive.
pub type Lease = Box<dyn Send>;

/// Device type of host memory.
pub const CPU: i32 = 1;
pub const CUDA: i32 = 2;

/// Element type: DLPack's code and bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ElementType {
    Int32,
    Int64,
    UInt64,
    UInt16,
    Float64,
    Pixel(DataType),
}

impl ElementType {
    fn code(self) -> DlDataType {
        let (code, bits) = match self {
            Self::Int32 => (0, 32),
            Self::Int64 => (0, 64),
            Self::UInt64 => (1, 64),
            Self::UInt16 => (1, 16),
            Self::Float64 => (2, 64),
            Self::Pixel(DataType::U8) => (1, 8),
            Self::Pixel(DataType::F16) => (2, 16),
            Self::Pixel(DataType::F32) => (2, 32),
            Self::Pixel(DataType::Bf16) => (4, 16),
        };
        DlDataType {
            code,
            bits,
            lanes: 1,
        }
    }

    pub fn size(self) -> usize {
        usize::from(self.code().bits / 8)
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
struct DlDataType {
    code: u8,
    bits: u8,
    lanes: u16,
}

#[repr(C)]
struct DeviceId {
    kind: i32,
    number: i32,
}

#[repr(C)]
struct Described {
    data: *mut c_void,
    device: DeviceId,
    ndim: i32,
    dtype: DlDataType,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

/// DLManagedTensor.
#[repr(C)]
struct Legacy {
    tensor: Described,
    manager: *mut c_void,
    // SAFETY: DLPack requires the consumer to call it once, with this struct.
    deleter: Option<unsafe extern "C" fn(*mut Self)>,
}

/// DLManagedTensorVersioned.
#[repr(C)]
struct Versioned {
    version: (u32, u32),
    manager: *mut c_void,
    // SAFETY: as above.
    deleter: Option<unsafe extern "C" fn(*mut Self)>,
    flags: u64,
    tensor: Described,
}

/// `DLPACK_FLAG_BITMASK_IS_COPIED` is 2; 0 says neither read-only nor copied.
const FLAGS: u64 = 0;

/// The memory that the managed structs point to.
struct Held {
    shape: Vec<i64>,
    strides: Vec<i64>,
    _lease: Lease,
}

const LEGACY: &CStr = c"dltensor";
const VERSIONED: &CStr = c"dltensor_versioned";

/// Memory for export to another library.
pub struct DlpackExport {
    pub address: u64,
    pub shape: Vec<i64>,
    pub strides: Vec<i64>,
    pub element: ElementType,
    pub device: (i32, i32),
    pub lease: Lease,
}

impl DlpackExport {
    /// A capsule in the version that the consumer requests.
    pub fn capsule(self, py: Python<'_>, versioned: bool) -> PyResult<Py<PyAny>> {
        let mut held = Box::new(Held {
            shape: self.shape,
            strides: self.strides,
            _lease: self.lease,
        });
        let tensor = Described {
            data: self.address as *mut c_void,
            device: DeviceId {
                kind: self.device.0,
                number: self.device.1,
            },
            ndim: held.shape.len() as i32,
            dtype: self.element.code(),
            shape: held.shape.as_mut_ptr(),
            strides: held.strides.as_mut_ptr(),
            byte_offset: 0,
        };
        let manager = Box::into_raw(held).cast();
        if versioned {
            let managed = Box::into_raw(Box::new(Versioned {
                version: (1, 0),
                manager,
                deleter: Some(delete_versioned),
                flags: FLAGS,
                tensor,
            }));
            // SAFETY: the name is static; `forget_versioned` expects what `managed` points to.
            let capsule = unsafe {
                ffi::PyCapsule_New(managed.cast(), VERSIONED.as_ptr(), Some(forget_versioned))
            };
            // SAFETY: a new reference, or null with an error set: then there is no other owner.
            return unsafe { owned(py, capsule, || delete_versioned(managed)) };
        }
        let managed = Box::into_raw(Box::new(Legacy {
            tensor,
            manager,
            deleter: Some(delete_legacy),
        }));
        // SAFETY: the name is static; `forget_legacy` expects what `managed` points to.
        let capsule =
            unsafe { ffi::PyCapsule_New(managed.cast(), LEGACY.as_ptr(), Some(forget_legacy)) };
        // SAFETY: a new reference, or null with an error set: then there is no other owner.
        unsafe { owned(py, capsule, || delete_legacy(managed)) }
    }
}

/// # Safety
/// `capsule` is a new reference, or null with an error set.
unsafe fn owned(
    py: Python<'_>,
    capsule: *mut ffi::PyObject,
    give_back: impl FnOnce(),
) -> PyResult<Py<PyAny>> {
    if capsule.is_null() {
        give_back();
        return Err(PyErr::fetch(py));
    }
    // SAFETY: it is not null, and this function's contract makes it ours.
    Ok(unsafe { Bound::from_owned_ptr(py, capsule) }.unbind())
}

/// # Safety
/// Called once, with a struct that `capsule` made, by its consumer or by `forget_legacy`.
unsafe extern "C" fn delete_legacy(managed: *mut Legacy) {
    if managed.is_null() {
        return;
    }
    // SAFETY: DLPack calls it once, with what `capsule` made by Box::into_raw.
    let managed = unsafe { Box::from_raw(managed) };
    // SAFETY: as above: `capsule` made the manager too, and it is freed once, here.
    drop(unsafe { Box::from_raw(managed.manager.cast::<Held>()) });
}

/// # Safety
/// Called once, with a struct that `capsule` made, by its consumer or by `forget_versioned`.
unsafe extern "C" fn delete_versioned(managed: *mut Versioned) {
    if managed.is_null() {
        return;
    }
    // SAFETY: DLPack calls it once, with what `capsule` made by Box::into_raw.
    let managed = unsafe { Box::from_raw(managed) };
    // SAFETY: as above: `capsule` made the manager too, and it is freed once, here.
    drop(unsafe { Box::from_raw(managed.manager.cast::<Held>()) });
}

/// Destructor of a capsule. A consumer that took the tensor has renamed the capsule and deletes the
/// tensor itself.
///
/// # Safety
/// Called by Python, with a capsule that `capsule` made.
unsafe extern "C" fn forget_legacy(capsule: *mut ffi::PyObject) {
    // SAFETY: Python calls a capsule's destructor with the capsule. Its name shows that no consumer
    // has taken the tensor.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, LEGACY.as_ptr()) == 1 {
            delete_legacy(ffi::PyCapsule_GetPointer(capsule, LEGACY.as_ptr()).cast());
        }
    }
}

/// Like `forget_legacy`.
///
/// # Safety
/// Called by Python, with a capsule that `capsule` made.
unsafe extern "C" fn forget_versioned(capsule: *mut ffi::PyObject) {
    // SAFETY: as in `forget_legacy`.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, VERSIONED.as_ptr()) == 1 {
            delete_versioned(ffi::PyCapsule_GetPointer(capsule, VERSIONED.as_ptr()).cast());
        }
    }
}
