//! Samples that Python lists: paths and labels become an index of the library.
//!
//! Python's objects are read once, here. Afterwards the index holds each path once, and no Python
//! object.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use featherload::index::{
    ArrayFiles, ClassList, FilePartList, Index, ItemLabel, ItemList, MemoryItems, UsualColumns,
};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PySet, PyString};

use crate::errors::{mistake, raised};

/// An index of samples that Python listed.
#[pyclass(frozen, module = "featherload._featherload")]
pub struct RawItems {
    index: Index,
    /// Each label is one float, not a list of floats.
    has_float_labels: bool,
}

#[pymethods]
impl RawItems {
    /// `paths`: text, or objects with `__fspath__`. `labels`: as many objects, or None for
    /// samples without labels. Relative paths start from `root`, or else from the working
    /// directory. Class names get their numbers from `classes`, or else by their bytes.
    #[new]
    fn new(
        py: Python<'_>,
        paths: &Bound<'_, PyList>,
        labels: Option<&Bound<'_, PyList>>,
        root: Option<PathBuf>,
        classes: Option<Vec<String>>,
    ) -> PyResult<Self> {
        let mut items = match root {
            Some(root) => ItemList::in_folder(&root).map_err(|e| raised(&e))?,
            None => ItemList::new(),
        };
        if let Some(classes) = class_list(classes)? {
            items = items.with_classes(classes);
        }
        let mut labels = LabelReader::new(labels);
        for (number, path) in paths.iter().enumerate() {
            let label = labels.read(py)?;
            // Text is read without a copy, which is most paths.
            let pushed = match path.cast::<PyString>().map(|text| text.to_cow()) {
                Ok(Ok(text)) => items.push(Path::new(&*text), label),
                _ => {
                    let path = read_path(py, &path).map_err(|what| {
                        mistake(py, "src", format!("item {number}: the path {what}"))
                    })?;
                    items.push(path, label)
                }
            };
            pushed.map_err(|e| raised(&e))?;
        }
        let index = py.detach(|| Index::items(items)).map_err(|e| raised(&e))?;
        Ok(Self {
            index,
            has_float_labels: labels.are_floats,
        })
    }

    /// Samples that are ranges of `files`. For each sample: the number of its file (u32), the offset
    /// and the length of its image there (u64), as little-endian bytes. `labels`: as in `new`.
    /// `classes`: names of the classes that labels are numbers of.
    #[staticmethod]
    fn of_parts(
        py: Python<'_>,
        files: Vec<PathBuf>,
        places: (PyBackedBytes, PyBackedBytes, PyBackedBytes),
        labels: Option<&Bound<'_, PyList>>,
        classes: Option<Vec<String>>,
    ) -> PyResult<Self> {
        let (numbers, offsets, lengths) = &places;
        let mut parts = FilePartList::new(&files).map_err(|e| raised(&e))?;
        if let Some(classes) = class_list(classes)? {
            parts = parts.with_class_names(classes);
        }
        let mut labels = LabelReader::new(labels);
        let numbers = numbers.as_chunks::<4>().0.iter();
        let places = offsets
            .as_chunks::<8>()
            .0
            .iter()
            .zip(lengths.as_chunks::<8>().0);
        for (number, (offset, length)) in numbers.zip(places) {
            let label = labels.read(py)?;
            let (at, bytes) = (u64::from_le_bytes(*offset), u64::from_le_bytes(*length));
            let pushed = parts.push(u32::from_le_bytes(*number), at, bytes, label);
            pushed.map_err(|e| raised(&e))?;
        }
        let index = py.detach(|| Index::file_parts(parts));
        Ok(Self {
            index: index.map_err(|e| raised(&e))?,
            has_float_labels: labels.are_floats,
        })
    }

    /// Samples in memory. `parts`: objects like bytes, each of them an image file, and pairs of the
    /// sides and the bytes of an array of images. `labels`: one object an image, or None.
    #[staticmethod]
    fn in_memory(
        py: Python<'_>,
        parts: &Bound<'_, PyAny>,
        labels: Option<&Bound<'_, PyList>>,
        classes: Option<Vec<String>>,
    ) -> PyResult<Self> {
        let mut items = MemoryItems::new().map_err(|e| raised(&e))?;
        if let Some(classes) = class_list(classes)? {
            items = items.with_classes(classes);
        }
        let mut labels = LabelReader::new(labels);
        for part in parts.try_iter()? {
            let part = part?;
            let pushed = match part.extract::<(Vec<u64>, Bound<'_, PyBytes>)>() {
                Ok((sides, pixels)) => {
                    let count = sides.first().copied().unwrap_or_default();
                    let labels: PyResult<Vec<_>> = (0..count).map(|_| labels.read(py)).collect();
                    items.push_pixels(&sides, pixels.as_bytes(), labels?)
                }
                Err(_) => {
                    let label = labels.read(py)?;
                    let file = bytes_of(&part).map_err(|what| {
                        mistake(py, "src", format!("item {}: the image {what}", items.len()))
                    })?;
                    items.push(file.as_bytes(), label)
                }
            };
            pushed.map_err(|e| raised(&e))?;
        }
        let index = py.detach(|| Index::memory_items(items));
        Ok(Self {
            index: index.map_err(|e| raised(&e))?,
            has_float_labels: labels.are_floats,
        })
    }

    /// Images of arrays in files of NumPy. `files`: a path and the numbers of its images, or None
    /// for all. `labels`: a list for each file, or None.
    #[staticmethod]
    fn of_array_files(
        py: Python<'_>,
        files: Vec<(PathBuf, Option<Vec<u64>>)>,
        labels: Option<Vec<Bound<'_, PyList>>>,
        classes: Option<Vec<String>>,
    ) -> PyResult<Self> {
        let mut list = ArrayFiles::new();
        if let Some(classes) = class_list(classes)? {
            list = list.with_classes(classes);
        }
        let mut are_floats = labels.is_some();
        for (number, (file, rows)) in files.iter().enumerate() {
            let of_file = labels.as_ref().and_then(|labels| labels.get(number));
            let of_file = of_file.map(|labels| {
                let mut reader = LabelReader::new(Some(labels));
                let read: PyResult<Vec<_>> = (0..labels.len()).map(|_| reader.read(py)).collect();
                are_floats &= reader.are_floats;
                read
            });
            let of_file = of_file.transpose()?;
            (list.push(file, rows.as_deref(), of_file)).map_err(|e| raised(&e))?;
        }
        let index = py.detach(|| Index::array_files(list));
        Ok(Self {
            index: index.map_err(|e| raised(&e))?,
            has_float_labels: are_floats,
        })
    }

    /// Whether the samples are in memory, not in files.
    #[getter]
    fn is_in_memory(&self) -> bool {
        self.index.is_in_memory()
    }

    fn __len__(&self) -> usize {
        usize::try_from(self.index.len()).unwrap_or(usize::MAX)
    }

    /// The folder that all paths share.
    #[getter]
    fn root(&self) -> PathBuf {
        self.index.root().to_owned()
    }
}

impl RawItems {
    pub fn has_float_labels(&self) -> bool {
        self.has_float_labels
    }

    /// A handle of the index, which shares its memory.
    pub fn index(&self) -> PyResult<Index> {
        self.index.try_clone().map_err(|e| raised(&e))
    }
}

fn class_list(classes: Option<Vec<String>>) -> PyResult<Option<ClassList>> {
    let classes = classes.map(ClassList::new).transpose();
    classes.map_err(|e| raised(&e))
}

/// Reads the labels of a list one after the other.
struct LabelReader<'a, 'py> {
    labels: Option<&'a Bound<'py, PyList>>,
    next: usize,
    /// Each label so far is one float, not a list of floats.
    are_floats: bool,
}

impl<'a, 'py> LabelReader<'a, 'py> {
    fn new(labels: Option<&'a Bound<'py, PyList>>) -> Self {
        Self {
            labels,
            next: 0,
            are_floats: labels.is_some(),
        }
    }

    fn read(&mut self, py: Python<'_>) -> PyResult<ItemLabel> {
        let Some(labels) = self.labels else {
            return Ok(ItemLabel::None);
        };
        let number = self.next;
        let label = labels.get_item(number)?;
        self.next += 1;
        self.are_floats &= label.len().is_err();
        read_label(&label)
            .map_err(|what| mistake(py, "src", format!("item {number}: the label {what}")))
    }
}

/// The bytes of an image file, or the end of a sentence that begins with "the image".
pub fn bytes_of<'py>(image: &Bound<'py, PyAny>) -> Result<Bound<'py, PyBytes>, String> {
    if let Ok(bytes) = image.cast::<PyBytes>() {
        return Ok(bytes.clone());
    }
    let wrong = || {
        format!(
            "is {}: give bytes, or a list of paths alone",
            describe(image)
        )
    };
    // `bytes(5)` would be five zeros.
    if image.is_instance_of::<PyString>() || image.is_instance_of::<PyInt>() {
        return Err(wrong());
    }
    let py = image.py();
    let view = py
        .import("builtins")
        .and_then(|b| b.call_method1("memoryview", (image,)));
    let bytes = view.and_then(|view| view.call_method0("tobytes"));
    let bytes = bytes.map_err(|_| wrong())?;
    bytes.cast_into::<PyBytes>().map_err(|_| wrong())
}

/// A path, or the end of a sentence that begins with "the path".
fn read_path(py: Python<'_>, path: &Bound<'_, PyAny>) -> Result<PathBuf, String> {
    if path.is_instance_of::<PyBytes>() {
        return Err(format!(
            "is {}: bytes are an image, not a path. Give os.fsdecode of a path",
            describe(path)
        ));
    }
    let encoded = py
        .import("os")
        .and_then(|os| os.call_method1("fsencode", (path,)))
        .map_err(|_| format!("is {}: {}", describe(path), in_place_of(path)))?;
    let bytes = encoded.cast::<PyBytes>().map_err(|e| e.to_string())?;
    Ok(OsString::from_vec(bytes.as_bytes().to_vec()).into())
}

/// The column of paths among `names`, as in tables in files.
#[pyfunction]
pub fn usual_path_column(names: Vec<String>) -> PyResult<Option<String>> {
    UsualColumns(&names).path().map_err(|e| raised(&e))
}

/// The columns of images among `names`, as in tables in files.
#[pyfunction]
pub fn usual_image_columns(names: Vec<String>) -> Vec<String> {
    UsualColumns(&names).images()
}

/// The column of labels among `names`, as in tables in files.
#[pyfunction]
pub fn usual_label_column(names: Vec<String>) -> PyResult<Option<String>> {
    UsualColumns(&names).label().map_err(|e| raised(&e))
}

/// What to give in place of an object that is no path.
fn in_place_of(value: &Bound<'_, PyAny>) -> &'static str {
    let has = |name| value.hasattr(name).unwrap_or(false);
    let module = value.get_type().module();
    if module.is_ok_and(|name| name.to_string().starts_with("PIL.")) {
        "give the path of its file, or its pixels by numpy.asarray(image)"
    } else if has("getvalue") {
        "give the bytes of the image file by getvalue()"
    } else if has("dtype") && has("tobytes") {
        "give text or a pathlib.Path; if the array holds an image file, its bytes by tobytes()"
    } else {
        "give text or a pathlib.Path"
    }
}

/// A label, or the end of a sentence that begins with "the label".
pub fn read_label(label: &Bound<'_, PyAny>) -> Result<ItemLabel, String> {
    if label.is_none() {
        return Ok(ItemLabel::None);
    }
    let kind = label.get_type();
    let is_bool = label.is_instance_of::<PyBool>()
        || kind
            .name()
            .is_ok_and(|name| name.to_string().starts_with("bool"))
        || (label.getattr("dtype")).is_ok_and(|dtype| dtype.to_string().contains("bool"));
    if is_bool {
        return Err(format!("is {}: give int(label)", describe(label)));
    }
    if let Ok(name) = label.cast::<PyString>() {
        let name = name.to_cow().map_err(|_| {
            format!(
                "is {}, which has no UTF-8 form: rename the class",
                describe(label)
            )
        })?;
        return match name.is_empty() {
            true => Err("is an empty text: give the name of a class".to_owned()),
            false => Ok(ItemLabel::Name(name.into_owned())),
        };
    }
    let is_whole = label.is_instance_of::<PyInt>();
    if is_whole || (!label.is_instance_of::<PyFloat>() && is_scalar(label)) {
        if let Ok(number) = label.extract::<i64>() {
            return Ok(ItemLabel::Class(number));
        }
        if is_whole || label.call_method0("__index__").is_ok() {
            return Err(format!("is {}, which is not in 64 bits", describe(label)));
        }
    }
    if let Ok(number) = label.extract::<f64>() {
        return Ok(ItemLabel::Vector(vec![finite(number)?]));
    }
    if label.is_instance_of::<PyBytes>()
        || label.is_instance_of::<PySet>()
        || label.is_instance_of::<PyDict>()
    {
        return Err(format!(
            "is {}: give a whole number, a class name, a float or a list of numbers",
            describe(label)
        ));
    }
    let values: Vec<f64> = label
        .try_iter()
        .and_then(|values| values.map(|value| value?.extract::<f64>()).collect())
        .map_err(|_| {
            format!(
                "is {}: give a whole number, a class name, a float or a list of numbers",
                describe(label)
            )
        })?;
    if values.is_empty() {
        return Err("is an empty list: give numbers".to_owned());
    }
    let values = values.into_iter().map(finite);
    Ok(ItemLabel::Vector(values.collect::<Result<_, _>>()?))
}

/// Whether `label` is a number of another library, such as `numpy.int64` or a tensor with one
/// element and no axis.
fn is_scalar(label: &Bound<'_, PyAny>) -> bool {
    let axes = label.getattr("ndim").and_then(|n| n.extract::<usize>());
    axes.unwrap_or(0) == 0
}

fn finite(number: f64) -> Result<f32, String> {
    let narrow = number as f32;
    match narrow.is_finite() {
        true => Ok(narrow),
        false => Err(format!("has {number}, which is not a finite float32")),
    }
}

/// A value and its type, for an error text.
fn describe(value: &Bound<'_, PyAny>) -> String {
    let kind = value.get_type();
    let kind = kind
        .name()
        .map_or_else(|_| "?".to_owned(), |n| n.to_string());
    let text = value
        .repr()
        .map_or_else(|_| String::new(), |r| r.to_string());
    let short: String = text.chars().take(100).collect();
    format!("{short} (type {kind})")
}
