//! Memory with a shape, for NumPy, torch, JAX and CuPy: DLPack, the buffer protocol,
//! `__cuda_array_interface__`. Nothing is copied. An array made from it keeps the batch alive.

use std::ffi::{CStr, c_int, c_void};
use std::sync::Arc;

use featherload::{DataType, DeviceRows};
use pyo3::exceptions::{PyAttributeError, PyBufferError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::dlpack::{CPU, CUDA, DlpackExport, ElementType};
use crate::errors::raised;

/// Memory that tensors point to: a batch, rays, a view.
pub trait TensorMemory: Send + Sync {
    fn address(&self) -> u64;

    /// The rows on a device. `None` on the host.
    fn on_device(&self) -> Option<&DeviceRows>;
}

/// Memory outside any batch: labels and ids, the numbers of a scene.
impl TensorMemory for Vec<u64> {
    fn address(&self) -> u64 {
        self.as_ptr() as u64
    }

    fn on_device(&self) -> Option<&DeviceRows> {
        None
    }
}

/// Dense memory of a batch.
#[pyclass(frozen, module = "featherload._featherload")]
pub struct Tensor {
    memory: Arc<dyn TensorMemory>,
    address: u64,
    element: ElementType,
    shape: Vec<i64>,
    strides: Vec<i64>,
    /// Strides in bytes. The buffer protocol points to them.
    byte_strides: Vec<isize>,
    lengths: Vec<isize>,
}

/// Stream numbers that mean the default stream of a thread or of the process.
const LEGACY_DEFAULT: usize = 1;
pub const PER_THREAD_DEFAULT: usize = 2;

/// The error for a consumer on the per-thread default stream.
pub fn per_thread() -> PyErr {
    PyBufferError::new_err(
        "the per-thread default stream cannot be waited for, because another thread may release \
         the tensor: use another stream",
    )
}

impl Tensor {
    /// A tensor in `memory` from byte `at` on.
    pub fn new(
        memory: Arc<dyn TensorMemory>,
        at: usize,
        element: ElementType,
        shape: &[usize],
    ) -> Self {
        let start = memory.address();
        let mut strides = vec![1; shape.len()];
        for axis in (1..shape.len()).rev() {
            strides[axis - 1] = strides[axis] * shape[axis] as i64;
        }
        let size = element.size() as isize;
        Self {
            memory,
            address: start + at as u64,
            element,
            byte_strides: strides.iter().map(|s| *s as isize * size).collect(),
            lengths: shape.iter().map(|n| *n as isize).collect(),
            shape: shape.iter().map(|n| *n as i64).collect(),
            strides,
        }
    }

    /// A tensor of the elements in `words`, without gaps.
    pub fn of_words(words: Vec<u64>, element: ElementType, shape: &[usize]) -> Self {
        Self::new(Arc::new(words), 0, element, shape)
    }

    fn on_device(&self) -> Option<&DeviceRows> {
        self.memory.on_device()
    }

    fn bytes(&self) -> usize {
        self.shape.iter().product::<i64>() as usize * self.element.size()
    }

    /// Makes `stream` wait for the rows, and the next write of the rows wait for `stream`.
    fn make_wait(&self, rows: &DeviceRows, stream: usize) -> PyResult<()> {
        // SAFETY: DLPack requires that `stream` belongs to this device and lives while the consumer
        // has the tensor. The caller rejects PER_THREAD_DEFAULT.
        unsafe { rows.make_wait(stream) }.map_err(|e| raised(&e))
    }
}

#[pymethods]
impl Tensor {
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.shape)
    }

    /// The dtype's name in NumPy.
    #[getter]
    fn dtype(&self) -> &'static str {
        match self.element {
            ElementType::Int32 => "int32",
            ElementType::Int64 => "int64",
            ElementType::UInt64 => "uint64",
            ElementType::UInt16 => "uint16",
            ElementType::Float64 => "float64",
            ElementType::Pixel(DataType::U8) => "uint8",
            ElementType::Pixel(DataType::F16) => "float16",
            ElementType::Pixel(DataType::Bf16) => "bfloat16",
            ElementType::Pixel(DataType::F32) => "float32",
        }
    }

    /// The same memory as 16-bit integers, for libraries without bfloat16.
    fn bits(&self) -> PyResult<Self> {
        if self.element.size() != 2 {
            return Err(PyValueError::new_err(
                "bits() needs elements of 16 bits: use float16 or bfloat16",
            ));
        }
        let shape: Vec<usize> = self.shape.iter().map(|n| *n as usize).collect();
        let mut same = Self::new(self.memory.clone(), 0, ElementType::UInt16, &shape);
        same.address = self.address;
        Ok(same)
    }

    #[getter]
    fn nbytes(&self) -> usize {
        self.bytes()
    }

    fn __repr__(&self) -> String {
        let shape: Vec<_> = self.shape.iter().map(i64::to_string).collect();
        let device = match self.on_device() {
            None => "cpu".to_owned(),
            Some(rows) => format!("cuda:{}", rows.ordinal()),
        };
        format!(
            "featherload.Tensor({}, {}, {device})",
            shape.join(" x "),
            self.dtype()
        )
    }

    fn __dlpack_device__(&self) -> (i32, i32) {
        match self.on_device() {
            None => (CPU, 0),
            Some(rows) => (CUDA, rows.ordinal() as i32),
        }
    }

    /// DLPack export: a versioned capsule if the consumer supports it, else a legacy one.
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__(
        &self,
        py: Python<'_>,
        stream: Option<isize>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Py<PyAny>> {
        if copy == Some(true) {
            return Err(PyBufferError::new_err(
                "a tensor of a batch cannot be exported as a copy: export it, then copy the array",
            ));
        }
        let device = self.__dlpack_device__();
        if dl_device.is_some_and(|wanted| wanted != device) {
            return Err(PyBufferError::new_err(format!(
                "the tensor is on device {device:?}: export it there, then move the array"
            )));
        }
        match (self.on_device(), stream) {
            (None, None | Some(-1)) => {}
            (None, Some(_)) => {
                return Err(PyValueError::new_err(
                    "a tensor in host memory has no stream: pass stream=None",
                ));
            }
            (Some(rows), None) => self.make_wait(rows, LEGACY_DEFAULT)?,
            (Some(_), Some(0)) => {
                return Err(PyValueError::new_err(
                    "stream 0 is ambiguous: pass 1 (the legacy default stream) or a stream handle",
                ));
            }
            (Some(rows), Some(-1)) => {
                py.detach(|| rows.wait()).map_err(|e| raised(&e))?;
                self.make_wait(rows, LEGACY_DEFAULT)?;
            }
            (Some(rows), Some(stream)) => {
                let stream = usize::try_from(stream).map_err(|_| {
                    PyValueError::new_err("stream must be -1, 1 or a stream handle")
                })?;
                if stream == PER_THREAD_DEFAULT {
                    return Err(per_thread());
                }
                self.make_wait(rows, stream)?;
            }
        }
        let export = DlpackExport {
            address: self.address,
            shape: self.shape.clone(),
            strides: self.strides.clone(),
            element: self.element,
            device,
            lease: Box::new(self.memory.clone()),
        };
        export.capsule(py, max_version.is_some_and(|(major, _)| major >= 1))
    }

    /// Export to CuPy and Numba. The next write waits for their work on the legacy default stream.
    #[getter]
    fn __cuda_array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let Some(rows) = self.on_device() else {
            return Err(PyAttributeError::new_err(
                "the tensor is in host memory: use numpy.asarray",
            ));
        };
        let kind = match self.element {
            ElementType::Pixel(DataType::U8) => "|u1",
            ElementType::Pixel(DataType::F16) => "<f2",
            ElementType::Pixel(DataType::F32) => "<f4",
            ElementType::Int32 => "<i4",
            ElementType::Int64 => "<i8",
            _ => {
                return Err(PyAttributeError::new_err(
                    "__cuda_array_interface__ has no bfloat16: use __dlpack__",
                ));
            }
        };
        self.make_wait(rows, LEGACY_DEFAULT)?;
        let interface = PyDict::new(py);
        interface.set_item("shape", self.shape(py)?)?;
        interface.set_item("typestr", kind)?;
        interface.set_item("data", (self.address, false))?;
        interface.set_item("version", 3)?;
        interface.set_item("stream", LEGACY_DEFAULT)?;
        Ok(interface)
    }

    /// The buffer protocol: `memoryview`, `numpy.asarray`, file writes.
    ///
    /// # Safety
    /// Python calls it with a view to fill.
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let this = slf.get();
        let format: &CStr = match this.element {
            ElementType::Int32 => c"i",
            ElementType::Int64 => c"q",
            ElementType::UInt64 => c"Q",
            ElementType::UInt16 => c"H",
            ElementType::Float64 => c"d",
            ElementType::Pixel(DataType::U8) => c"B",
            ElementType::Pixel(DataType::F16) => c"e",
            ElementType::Pixel(DataType::F32) => c"f",
            ElementType::Pixel(DataType::Bf16) => {
                return Err(PyBufferError::new_err(
                    "buffers have no bfloat16: use __dlpack__ (torch, JAX), or dtype=\"float32\"",
                ));
            }
        };
        if view.is_null() {
            return Err(PyBufferError::new_err("no view to fill"));
        }
        if this.on_device().is_some() {
            return Err(PyBufferError::new_err(
                "the tensor is on a device: use __dlpack__, or Batch.numpy() for a copy",
            ));
        }
        let asked = |flag: c_int| flags & flag == flag;
        // SAFETY: Python passes a view to fill. It points to memory of the tensor. The view holds a
        // reference to the tensor until its release, so address and vectors stay valid.
        unsafe {
            (*view).buf = this.address as *mut c_void;
            (*view).len = this.bytes() as isize;
            (*view).itemsize = this.element.size() as isize;
            (*view).readonly = 0;
            (*view).ndim = this.lengths.len() as c_int;
            (*view).format = if asked(ffi::PyBUF_FORMAT) {
                format.as_ptr().cast_mut()
            } else {
                std::ptr::null_mut()
            };
            (*view).shape = if asked(ffi::PyBUF_ND) {
                this.lengths.as_ptr().cast_mut()
            } else {
                std::ptr::null_mut()
            };
            (*view).strides = if asked(ffi::PyBUF_STRIDES) {
                this.byte_strides.as_ptr().cast_mut()
            } else {
                std::ptr::null_mut()
            };
            (*view).suboffsets = std::ptr::null_mut();
            (*view).internal = std::ptr::null_mut();
            (*view).obj = slf.into_any().into_ptr();
        }
        Ok(())
    }
}
