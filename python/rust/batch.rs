//! A batch in Python, and the memory of its tensors.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use featherload::batch::{BatchCaptions, BatchPatches, BatchRow, SizeCondition};
use featherload::columns::{BatchColumns, ColumnValues, NumberValues};
use featherload::index::Index;
use featherload::{
    Batch, BatchLabels, BatchObjects, CropGeometry, DataType, Device, DeviceRows, MaskType,
    MemoryLayout, RasterType, Result, RowFault, RowStatus,
};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyList};

use crate::captions::{self, RowTexts};
use crate::dlpack::ElementType;
use crate::errors::raised;
use crate::objects;
use crate::tensor::{PER_THREAD_DEFAULT, Tensor, TensorMemory, per_thread};

/// Boxes, sizes of images, and turns of each crop.
type GeometryBytes<'py> = Vec<(
    Bound<'py, PyBytes>,
    Bound<'py, PyBytes>,
    Bound<'py, PyBytes>,
)>;

/// The name of a sample, its key, and its length.
type SampleName<'py> = (Bound<'py, PyBytes>, Bound<'py, PyBytes>, Option<u64>);

/// A batch that Python holds. It is counted while any of its tensors is alive.
pub struct HeldBatch {
    pub batch: Batch,
    /// Address of the pixels on the host. 0 on a device.
    pub pixels: u64,
    count: Option<Arc<AtomicU32>>,
}

impl TensorMemory for HeldBatch {
    fn address(&self) -> u64 {
        let rows = self.batch.on_device();
        rows.map_or(self.pixels, DeviceRows::address)
    }

    fn on_device(&self) -> Option<&DeviceRows> {
        self.batch.on_device()
    }
}

impl Drop for HeldBatch {
    fn drop(&mut self) {
        if let Some(count) = &self.count {
            count.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Facts about the rows, available also when the pixels were moved elsewhere.
struct Facts {
    epoch: u64,
    number: u64,
    samples_before: u64,
    device: Device,
    layout: MemoryLayout,
    ids: Vec<u64>,
    status: Vec<RowStatus>,
    repeated: Vec<bool>,
    labels: BatchLabels,
    /// The form of the arrays.
    form: BatchForm,
    faults: Vec<RowFault>,
    /// Of each crop of each row. `None` if a sample is one image.
    geometry: Option<Vec<Vec<CropGeometry>>>,
    /// How the image of each row was cropped to its bucket. `None` without buckets.
    size_conditions: Option<Vec<SizeCondition>>,
    /// `None` unless rows are patches.
    patches: Option<BatchPatches>,
    /// Index with the names of the samples. It stays after the loader is gone.
    index: Arc<Index>,
    /// False in a run without images.
    reads_images: bool,
    /// Reads further values of the samples.
    columns: BatchColumns,
    /// `None` if the loader has no captions.
    captions: Option<BatchCaptions>,
    /// Boxes, labels and keypoints. `None` if the images have none.
    objects: Option<BatchObjects>,
}

/// Style, patch size, merge size, the grid of each image, the patches in each row, and the size of
/// each image before the resize.
type PatchFacts = (
    &'static str,
    u32,
    u32,
    Vec<(u32, u32)>,
    Vec<usize>,
    Vec<(u32, u32)>,
);

/// The form of a batch's arrays, if it differs from that of the library's batch.
#[derive(Debug, Clone, Copy, Default)]
pub struct BatchForm {
    /// Labels are one float a sample: an array of N numbers, not of N x 1.
    pub has_float_labels: bool,
    /// Images have one channel, the first of three equal ones.
    pub has_one_channel: bool,
}

/// Rows of pixels with their labels, ids and status.
#[derive(Clone)]
#[pyclass(frozen, module = "featherload._featherload")]
pub struct RawBatch {
    facts: Arc<Facts>,
    /// `None` in a copy without pixels.
    held: Option<Arc<HeldBatch>>,
    /// The batch was copied to memory of its own, because Python holds all other batches.
    #[pyo3(get)]
    copied: bool,
    /// No device memory is left for another batch.
    #[pyo3(get)]
    last_on_device: bool,
    /// The batch is the last one of its epoch.
    #[pyo3(get)]
    ends_epoch: bool,
}

impl RawBatch {
    /// `last`: with this batch, Python would hold all memory for batches.
    pub fn new(
        batch: Batch,
        index: Arc<Index>,
        form: BatchForm,
        count: &Arc<AtomicU32>,
        last: bool,
        ends_epoch: bool,
    ) -> Result<Self> {
        let on_device = batch.on_device().is_some();
        let copied = last && batch.is_in_slot();
        let mut batch = if copied { batch.detach()? } else { batch };
        let counted = batch.is_in_slot() || on_device;
        let count = counted.then(|| {
            count.fetch_add(1, Ordering::Relaxed);
            count.clone()
        });
        let pixels = match on_device {
            true => 0,
            false => batch.pixels_mut()? as u64,
        };
        let device = batch.on_device().map(|rows| Device::Cuda(rows.ordinal()));
        Ok(Self {
            facts: Arc::new(Facts {
                epoch: batch.epoch(),
                number: batch.number(),
                samples_before: batch.samples_before(),
                device: device.unwrap_or_default(),
                layout: batch.layout(),
                ids: batch.ids().to_vec(),
                status: batch.status().to_vec(),
                repeated: batch.repeated().to_vec(),
                labels: batch.labels().clone(),
                form,
                faults: batch.faults().to_vec(),
                geometry: (batch.crop_count())
                    .map(|count| {
                        (0..count)
                            .map(|n| batch.geometry(n).map(<[_]>::to_vec))
                            .collect()
                    })
                    .transpose()?,
                size_conditions: batch.size_conditions().map(<[_]>::to_vec),
                patches: batch.patches().cloned(),
                reads_images: batch.has_pixels(),
                index,
                columns: batch.columns().clone(),
                captions: batch.caption_rows().cloned(),
                objects: batch.objects().cloned(),
            }),
            held: Some(Arc::new(HeldBatch {
                batch,
                pixels,
                count,
            })),
            copied,
            last_on_device: last && on_device,
            ends_epoch,
        })
    }

    /// Where the run is before this batch: the epoch, and the number of its samples before this
    /// batch.
    pub fn place(&self) -> (u64, u64) {
        (self.facts.epoch, self.facts.samples_before)
    }

    fn held(&self) -> PyResult<&Arc<HeldBatch>> {
        self.held.as_ref().ok_or_else(|| {
            PyRuntimeError::new_err(
                "the pixels of this batch were moved elsewhere: use batch.images",
            )
        })
    }
}

#[pymethods]
impl RawBatch {
    #[getter]
    fn epoch(&self) -> u64 {
        self.facts.epoch
    }

    #[getter]
    fn number(&self) -> u64 {
        self.facts.number
    }

    /// Samples of the epoch, over all ranks, before this batch.
    #[getter]
    fn samples_before(&self) -> u64 {
        self.facts.samples_before
    }

    fn __len__(&self) -> usize {
        self.facts.status.len()
    }

    /// "cpu", or "cuda:N".
    #[getter]
    fn device(&self) -> String {
        self.facts.device.to_string()
    }

    /// "nchw" or "nhwc".
    #[getter]
    fn layout(&self) -> String {
        self.facts.layout.to_string()
    }

    /// Whether only the first channel counts: the others are equal.
    #[getter]
    fn has_one_channel(&self) -> bool {
        self.facts.form.has_one_channel
    }

    /// Number of rows that hold pixels of a sample.
    #[getter]
    fn good(&self) -> usize {
        let status = self.facts.status.iter();
        status.filter(|status| !status.is_masked()).count()
    }

    /// Number of samples without pixels because of a fault.
    #[getter]
    fn failed(&self) -> usize {
        self.facts.faults.len()
    }

    /// True unless the pixels were moved elsewhere.
    #[getter]
    fn has_pixels(&self) -> bool {
        self.held.is_some()
    }

    /// Whether the run reads images.
    #[getter]
    fn reads_images(&self) -> bool {
        self.facts.reads_images
    }

    /// Name, key and length of the sample of each row: see `Index::sample_name`. None for padding.
    fn sample_names<'py>(&self, py: Python<'py>, is_listed: bool) -> Vec<Option<SampleName<'py>>> {
        let facts = &self.facts;
        let rows = facts.ids.iter().zip(&facts.status);
        rows.map(|(id, status)| {
            (*status != RowStatus::Padding).then(|| {
                let name = PyBytes::new(py, &facts.index.sample_name(*id, is_listed));
                let key = facts.index.sample_key(*id, is_listed).to_le_bytes();
                let bytes = facts.index.sample_bytes(*id);
                (name, PyBytes::new(py, &key), bytes)
            })
        })
        .collect()
    }

    /// The length of the sample of each row. None for padding, and if it cannot be known.
    fn sample_bytes(&self) -> Vec<Option<u64>> {
        let facts = &self.facts;
        let rows = facts.ids.iter().zip(&facts.status);
        let has_sample = |status: &RowStatus| *status != RowStatus::Padding;
        rows.map(|(id, status)| facts.index.sample_bytes(*id).filter(|_| has_sample(status)))
            .collect()
    }

    /// The pixels as one tensor. None if rows have different sizes, or several crops.
    fn images(&self) -> PyResult<Option<Tensor>> {
        let held = self.held()?;
        if let Some(patches) = held.batch.patches() {
            return Ok(Some(tensor(held, &patches.shape(), 0)));
        }
        if held.batch.descriptors().is_some() || held.batch.crop_count().is_some() {
            return Ok(None);
        }
        let shape = held.batch.shape().map_err(|e| raised(&e))?;
        Ok(Some(tensor(held, &shape, 0)))
    }

    /// The masks of all rows as one tensor: N x H x W. None if the images have no masks.
    fn masks(&self) -> PyResult<Option<Tensor>> {
        let held = self.held()?;
        let tensor = |(at, shape, dtype): (usize, [usize; 3], MaskType)| {
            Tensor::new(held.clone(), at, mask_element(dtype), &shape)
        };
        Ok(held.batch.mask_layout().map(tensor))
    }

    /// The other rasters of all rows: names and tensors.
    fn rasters(&self) -> PyResult<Vec<(String, Tensor)>> {
        let held = self.held()?;
        let tensor = |name: &str| {
            let layout = held.batch.raster_layout(name)?;
            let element = match layout.dtype {
                RasterType::Labels(dtype) => mask_element(dtype),
                RasterType::Numbers(dtype) => ElementType::Pixel(dtype),
                _ => return None,
            };
            let tensor = Tensor::new(held.clone(), layout.start, element, &layout.shape);
            Some((name.to_owned(), tensor))
        };
        Ok(held.batch.raster_names().filter_map(tensor).collect())
    }

    /// The arrays of the objects of all rows, as bytes: see `objects::arrays`. None if the images
    /// have none.
    fn objects<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let objects = self.facts.objects.as_ref();
        objects
            .map(|objects| objects::arrays(py, objects))
            .transpose()
    }

    /// The instance masks of each row: a tensor of objects x height x width, or its shape and bytes
    /// if they are not in the memory of the pixels. None without masks.
    fn instance_masks<'py>(&self, py: Python<'py>) -> PyResult<Option<Vec<Bound<'py, PyAny>>>> {
        let held = self.held()?;
        let batch = &held.batch;
        if batch.instance_mask_layout(0).is_none() {
            return Ok(None);
        }
        let of_row = |row: usize| -> PyResult<Bound<'py, PyAny>> {
            match batch.instance_mask_layout(row) {
                Some((at, shape)) if batch.has_masks_in_place() => {
                    let element = ElementType::Pixel(DataType::U8);
                    let tensor = Tensor::new(held.clone(), at, element, &shape);
                    Ok(tensor.into_pyobject(py)?.into_any())
                }
                _ => {
                    let masks = batch.instance_masks(row).map_err(|e| raised(&e))?;
                    let bytes = PyByteArray::new(py, masks.bytes());
                    Ok((masks.shape(), bytes).into_pyobject(py)?.into_any())
                }
            }
        };
        (0..batch.len())
            .map(of_row)
            .collect::<PyResult<_>>()
            .map(Some)
    }

    /// The pixels of each crop, as one tensor over all rows. None if a sample is one image.
    fn crops(&self) -> PyResult<Option<Vec<Tensor>>> {
        let held = self.held()?;
        let Some(count) = held.batch.crop_count() else {
            return Ok(None);
        };
        let crop = |number: usize| -> Result<Tensor> {
            let shape = held.batch.crop_shape(number)?;
            Ok(tensor(held, &shape, held.batch.crop_offset(number)?))
        };
        let crops: Result<Vec<_>> = (0..count).map(crop).collect();
        crops.map(Some).map_err(|e| raised(&e))
    }

    /// Where each crop of each row lies in its image, as bytes: four floats for the box, two
    /// integers for height and width of the image, then a byte for each of flipped, upside down
    /// and transposed. None if a sample is one image.
    fn geometry<'py>(&self, py: Python<'py>) -> Option<GeometryBytes<'py>> {
        let geometry = self.facts.geometry.as_ref()?;
        let of_crop = |rows: &Vec<CropGeometry>| {
            let boxes = rows
                .iter()
                .flat_map(|of| of.bounds)
                .flat_map(f32::to_ne_bytes);
            let sizes = rows
                .iter()
                .flat_map(|of| of.image)
                .flat_map(u32::to_ne_bytes);
            let turns = rows.iter().flat_map(|of| {
                [of.is_flipped(), of.is_upside_down(), of.is_transposed()].map(u8::from)
            });
            (
                PyBytes::new(py, &boxes.collect::<Vec<_>>()),
                PyBytes::new(py, &sizes.collect::<Vec<_>>()),
                PyBytes::new(py, &turns.collect::<Vec<_>>()),
            )
        };
        Some(geometry.iter().map(of_crop).collect())
    }

    /// Of each row: height and width of its image, top and left edge of the crop in the resized
    /// image, height and width of the row. None without buckets.
    fn size_conditions(&self) -> Option<Vec<[u32; 6]>> {
        let all = self.facts.size_conditions.as_ref()?;
        let numbers = |of: &SizeCondition| {
            let (original, crop, target) = (of.original, of.crop, of.target);
            [original.0, original.1, crop.0, crop.1, target.0, target.1]
        };
        Some(all.iter().map(numbers).collect())
    }

    /// Style, patch size, merge size, grids, patches in each row, and image sizes. None unless the
    /// recipe makes patches or tiles.
    fn patches(&self) -> Option<PatchFacts> {
        let patches = self.facts.patches.as_ref()?;
        let rule = patches.rule();
        let grids = patches.grids();
        let grids = grids.map(|grid| grid.map_or((0, 0), |grid| (grid.rows, grid.columns)));
        let sizes = patches.image_sizes().map(|size| size.unwrap_or((0, 0)));
        let in_rows = (0..self.facts.status.len()).map(|row| patches.patches_in(row));
        Some((
            rule.style(),
            rule.side(),
            rule.merge_size(),
            grids.collect(),
            in_rows.collect(),
            sizes.collect(),
        ))
    }

    /// The pixels of each row. Not of patches, which [`RawBatch::images`] returns.
    fn rows(&self) -> PyResult<Vec<Tensor>> {
        let held = self.held()?;
        if held.batch.patches().is_some() {
            return Err(PyRuntimeError::new_err(
                "rows of patches are one tensor: take images",
            ));
        }
        let size = held.batch.dtype().size();
        let place = |row: BatchRow<'_>| {
            let shape = row.shape();
            let at = match held.batch.descriptors() {
                Some(table) => table[row.index()].offset as usize,
                None => row.index() * shape.iter().product::<usize>() * size,
            };
            tensor(held, &shape, at)
        };
        Ok(held.batch.rows().map(place).collect())
    }

    /// Classes (int64) or vectors (float32) of the rows. None if the data set has no labels.
    fn labels(&self) -> Option<Tensor> {
        match &self.facts.labels {
            BatchLabels::Classes(classes) => {
                let words = classes.iter().map(|c| *c as u64).collect();
                Some(Tensor::of_words(
                    words,
                    ElementType::Int64,
                    &[classes.len()],
                ))
            }
            BatchLabels::Vectors { width, values } => {
                let pair = |pair: &[f32]| {
                    let bits = |i: usize| pair.get(i).map_or(0, |v| u64::from(v.to_bits()));
                    bits(0) | bits(1) << 32
                };
                let words = values.chunks(2).map(pair).collect();
                let shape = [self.facts.status.len(), *width];
                let axes = if self.facts.form.has_float_labels && *width == 1 {
                    1
                } else {
                    2
                };
                Some(Tensor::of_words(
                    words,
                    ElementType::Pixel(DataType::F32),
                    &shape[..axes],
                ))
            }
            _ => None,
        }
    }

    /// Sample numbers of the rows (uint64).
    fn ids(&self) -> Tensor {
        let ids = &self.facts.ids;
        Tensor::of_words(ids.clone(), ElementType::UInt64, &[ids.len()])
    }

    /// One caption for each row, of the column in files, or of the texts that Python has: a text,
    /// None or a list of them for each row.
    #[pyo3(signature = (texts=None))]
    fn captions(&self, py: Python<'_>, texts: Option<Vec<RowTexts>>) -> PyResult<Vec<String>> {
        let Some(captions) = &self.facts.captions else {
            let what = "this batch has no captions: give the loader captions";
            return Err(PyRuntimeError::new_err(what));
        };
        let made = py.detach(|| match texts {
            Some(texts) => captions.of_values(&captions::column(texts)),
            None => captions.read(),
        });
        made.map_err(|e| raised(&e))
    }

    /// Names of the columns of the batch.
    fn column_names(&self) -> Vec<String> {
        let names = self.facts.columns.names();
        names.map(|(name, _)| name.to_owned()).collect()
    }

    /// The values of a column, read from the files: a list of texts, bytes or lists of texts, or
    /// numbers as `(type, bytes, width)`, with the offsets of the rows (int64) after them if the
    /// rows have different counts of numbers.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let columns = &self.facts.columns;
        let values = py.detach(|| columns.read(name)).map_err(|e| raised(&e))?;
        let numbers = |values: &NumberValues| PyByteArray::new(py, values.bytes());
        Ok(match values {
            ColumnValues::Numbers { values, width } => {
                let kind = values.kind().name();
                (kind, numbers(&values), width)
                    .into_pyobject(py)?
                    .into_any()
            }
            ColumnValues::Ragged {
                values,
                width,
                offsets,
            } => {
                let kind = values.kind().name();
                let offsets: Vec<u8> = offsets.iter().flat_map(|n| n.to_ne_bytes()).collect();
                let offsets = PyByteArray::new(py, &offsets);
                (kind, numbers(&values), width, offsets)
                    .into_pyobject(py)?
                    .into_any()
            }
            ColumnValues::Text(texts) => texts.into_pyobject(py)?.into_any(),
            ColumnValues::TextLists(lists) => lists.into_pyobject(py)?.into_any(),
            ColumnValues::Bytes(all) => {
                let all = all
                    .iter()
                    .map(|bytes| bytes.as_deref().map(|b| PyBytes::new(py, b)));
                PyList::new(py, all.collect::<Vec<_>>())?.into_any()
            }
            // The kinds of values of this version are above.
            _ => {
                return Err(PyRuntimeError::new_err(
                    "this kind of column has no form in Python: report this",
                ));
            }
        })
    }

    /// The status of each row, as a number.
    fn status<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let numbers: Vec<_> = self.facts.status.iter().map(|s| *s as u8).collect();
        PyBytes::new(py, &numbers)
    }

    /// Paths of the samples. None for padding.
    fn paths(&self) -> Vec<Option<PathBuf>> {
        let index = &self.facts.index;
        let rows = self.facts.ids.iter().zip(&self.facts.status);
        rows.map(|(id, status)| {
            (*status != RowStatus::Padding && *id < index.len()).then(|| index.path(*id))
        })
        .collect()
    }

    fn repeated(&self) -> Vec<bool> {
        self.facts.repeated.clone()
    }

    /// Indices of the rows that hold pixels of a sample.
    fn good_rows(&self) -> Vec<usize> {
        let rows = self.facts.status.iter().enumerate();
        rows.filter(|(_, status)| !status.is_masked())
            .map(|(row, _)| row)
            .collect()
    }

    /// The samples without pixels, each with its fault.
    fn faults<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let told = |fault: &RowFault| {
            let of_it = PyDict::new(py);
            of_it.set_item("row", fault.row)?;
            of_it.set_item("id", fault.id)?;
            of_it.set_item("path", &fault.path)?;
            of_it.set_item("kind", fault.fault.kind.name())?;
            of_it.set_item("reason", &fault.fault.reason)?;
            of_it.set_item("substitute", fault.substitute)?;
            Ok(of_it)
        };
        self.facts.faults.iter().map(told).collect()
    }

    /// Registers a stream of the device that reads the batch. The memory is not reused before the
    /// work that is in that stream when the batch is released has ended.
    fn record_stream(&self, stream: usize) -> PyResult<()> {
        if stream == PER_THREAD_DEFAULT {
            return Err(per_thread());
        }
        match self.held()?.batch.on_device() {
            None => Ok(()),
            Some(rows) => {
                // SAFETY: the docs of `Batch.record_stream` require a stream of this device that
                // lives until the batch is dropped.
                unsafe { rows.make_wait(stream) }.map_err(|e| raised(&e))
            }
        }
    }

    /// The same batch without its pixels, whose memory it does not hold.
    fn without_pixels(&self) -> Self {
        Self {
            facts: self.facts.clone(),
            held: None,
            copied: self.copied,
            last_on_device: self.last_on_device,
            ends_epoch: self.ends_epoch,
        }
    }
}

fn mask_element(dtype: MaskType) -> ElementType {
    match dtype {
        MaskType::Uint8 => ElementType::Pixel(DataType::U8),
        MaskType::Int32 => ElementType::Int32,
        MaskType::Int64 => ElementType::Int64,
    }
}

fn tensor(held: &Arc<HeldBatch>, shape: &[usize], at: usize) -> Tensor {
    let element = ElementType::Pixel(held.batch.dtype());
    Tensor::new(held.clone(), at, element, shape)
}
