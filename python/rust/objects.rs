//! Objects of samples: those that Python lists, and those of a batch.

use std::collections::BTreeMap;

use featherload::objects::{BoxForm, ItemObjects, ObjectList, ObjectListOptions, RotatedForm};
use featherload::{BatchObjects, ObjectOptions, ObjectRows};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyByteArray, PyDict, PyList};
use serde::Deserialize;

use crate::errors::{mistake, raised};

/// What all objects of a list have in common.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListForm {
    boxes: BoxForm,
    shares: bool,
    keypoints: usize,
    keypoint_swap: Vec<usize>,
    rotated: Option<RotatedForm>,
    polygons: bool,
    names: BTreeMap<i64, String>,
}

/// A table of objects that Python listed.
#[pyclass(frozen, module = "featherload._featherload")]
pub struct RawObjects {
    options: ObjectOptions,
}

#[pymethods]
impl RawObjects {
    /// `form`: JSON. `items`: a dict for each sample, with lists of numbers.
    #[new]
    fn new(py: Python<'_>, form: &str, items: &Bound<'_, PyList>) -> PyResult<Self> {
        let wrong = |what: String| mistake(py, "objects", format!("objects: {what}"));
        let form: ListForm = serde_json::from_str(form).map_err(|e| wrong(e.to_string()))?;
        let mut list = ObjectList::new(ObjectListOptions {
            boxes: form.boxes,
            shares: form.shares,
            keypoints: form.keypoints,
            keypoint_swap: form.keypoint_swap,
            rotated: form.rotated,
            polygons: form.polygons,
            names: form.names,
        });
        for (number, item) in items.iter().enumerate() {
            let read = || -> PyResult<ItemObjects> { item_objects(item.cast::<PyDict>()?) };
            let item = read().map_err(|e| wrong(format!("item {number}: {}", e.value(py))))?;
            list.push(&item).map_err(|e| raised(&e))?;
        }
        let options = ObjectOptions::default().listed(list);
        let options = options.map_err(|e| raised(&e))?;
        Ok(Self { options })
    }
}

/// Objects of a column, which Python hands over row by row.
#[pyclass(module = "featherload._featherload")]
pub struct RawObjectRows {
    rows: Option<ObjectRows>,
}

#[pymethods]
impl RawObjectRows {
    /// `option`: the keyword `objects` as JSON. `classes`: names of categories.
    #[new]
    fn new(option: &str, classes: Option<Vec<String>>) -> PyResult<Self> {
        let made = option
            .parse()
            .and_then(|options| ObjectRows::new(options, classes.as_deref()));
        let rows = Some(made.map_err(|e| raised(&e))?);
        Ok(Self { rows })
    }

    /// Adds the next rows, each a JSON object.
    fn extend(&mut self, py: Python<'_>, rows: Vec<PyBackedBytes>) -> PyResult<()> {
        let Some(into) = &mut self.rows else {
            return Err(mistake(
                py,
                "objects",
                "objects: all rows were given".into(),
            ));
        };
        let added = py.detach(|| rows.iter().try_for_each(|row| into.push(row.to_vec())));
        added.map_err(|e| raised(&e))
    }

    fn finish(&mut self, py: Python<'_>) -> PyResult<RawObjects> {
        let Some(rows) = self.rows.take() else {
            return Err(mistake(
                py,
                "objects",
                "objects: all rows were given".into(),
            ));
        };
        let options = rows.finish().map_err(|e| raised(&e))?;
        Ok(RawObjects { options })
    }
}

impl RawObjects {
    pub fn options(&self) -> ObjectOptions {
        self.options.clone()
    }
}

/// The objects of one sample.
fn item_objects(item: &Bound<'_, PyDict>) -> PyResult<ItemObjects> {
    fn list<'py, T: FromPyObjectOwned<'py>>(
        item: &Bound<'py, PyDict>,
        name: &str,
    ) -> PyResult<Vec<T>> {
        match item.get_item(name)? {
            Some(values) => values.extract(),
            None => Ok(Vec::new()),
        }
    }
    let one = |name: &str| item.get_item(name);
    let shape = one("size")?.map(|size| size.extract()).transpose()?;
    Ok(ItemObjects {
        boxes: list(item, "boxes")?,
        labels: list(item, "labels")?,
        area: list(item, "area")?,
        crowd: list(item, "iscrowd")?,
        ids: list(item, "ids")?,
        keypoints: list(item, "keypoints")?,
        rotated: list(item, "rotated")?,
        polygons: list(item, "polygons")?,
        image_id: one("image_id")?.map(|id| id.extract()).transpose()?,
        size: shape,
    })
}

/// The arrays of a batch's objects as bytes in the machine's order, with the numbers of an object's
/// keypoints and of its rotated box.
pub fn arrays<'py>(py: Python<'py>, objects: &BatchObjects) -> PyResult<Bound<'py, PyDict>> {
    let arrays = PyDict::new(py);
    let put = |name: &str, bytes: Vec<u8>| arrays.set_item(name, PyByteArray::new(py, &bytes));
    let floats = |all: &mut dyn Iterator<Item = f32>| all.flat_map(f32::to_ne_bytes).collect();
    let numbers = |all: &[i64]| all.iter().flat_map(|n| n.to_ne_bytes()).collect();
    let sizes = |all: &[[u32; 2]]| {
        let sides = all.iter().flatten();
        sides.flat_map(|n| i64::from(*n).to_ne_bytes()).collect()
    };
    put(
        "offsets",
        objects
            .offsets
            .iter()
            .flat_map(|n| n.to_ne_bytes())
            .collect(),
    )?;
    put(
        "boxes",
        floats(&mut objects.boxes.iter().flatten().copied()),
    )?;
    put("labels", numbers(&objects.labels))?;
    put("area", floats(&mut objects.area.iter().copied()))?;
    put(
        "iscrowd",
        objects.crowd.iter().map(|crowd| u8::from(*crowd)).collect(),
    )?;
    put("ids", numbers(&objects.ids))?;
    put(
        "keypoints",
        floats(&mut objects.keypoints.iter().flatten().copied()),
    )?;
    put("rotated", floats(&mut objects.rotated.iter().copied()))?;
    put("image_ids", numbers(&objects.image_ids))?;
    put("original_sizes", sizes(&objects.source_sizes))?;
    put("sizes", sizes(&objects.sizes))?;
    let dropped = objects
        .dropped
        .iter()
        .map(|counts| u64::from(counts.total()));
    put("dropped", dropped.flat_map(u64::to_ne_bytes).collect())?;
    arrays.set_item(
        "each",
        (objects.keypoints_per_object(), objects.rotated_numbers()),
    )?;
    Ok(arrays)
}
