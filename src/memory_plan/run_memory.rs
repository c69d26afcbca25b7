//! The memory of a run, before any of it is allocated, and what to change to fit a limit.
//!
//! In the consumer. Reads the header of every sample, but no pixel. A run takes the ring, the
//! scratch of each worker for the largest sample, and the processes themselves.

use std::fs::File;
use std::io::{BufRead, BufReader, Cursor, Read, Seek};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use serde::Serialize;

use crate::data::index::{Index, lossy};
use crate::data::sample_sizes::SampleSizes;
use crate::data::survey;
use crate::decode_plan::stored_picture::{MAX_KEPT_BYTES, SampleMemory, StoredPicture};
use crate::error::{Error, Result, size, size_rounded_down, size_rounded_up};
use crate::jobs::images::{crop_sections, mix};
use crate::jobs::picture_window::WindowShape;
use crate::jobs::raster_rule::RasterRule;
use crate::jobs::stage_needs::StageNeeds;
use crate::memory_plan::batch_sizes::BatchSizes;
use crate::memory_plan::joined_bound::joined_bytes;
use crate::picture::read_header::{DecodeCost, PictureHeader};
use crate::picture::{ExifOrientation, FileFormat, PictureLimits, depth};
use crate::pool::ring::{RingLayout, RingShape};
use crate::recipe::steps::LargestStep;
use crate::recipe::{Recipe, RowExtent, SampleProgram};
use crate::sys::{cgroup, memory};

/// PSS of a process without what the run allocates in it, in bytes: code and data of the
/// executable, the C library's heap, the decoder's tables. Measured with `featherload rss`
/// (`bench_data/runs`), rounded up.
pub(crate) const CONSUMER: u64 = 8 << 20;
pub(crate) const COORDINATOR: u64 = 2 << 20;
const WORKER: u64 = 3 << 20;
/// Memory of a worker whose rows have several sizes, in bytes: buffers that grow leave holes in its
/// heap, and more of the resizer's code runs. Measured (`bench_data/runs/2026-11-30-xeon2`).
pub(crate) const SEVERAL_SIZES: u64 = 512 << 10;

/// The sample that takes the most memory in a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LargestSample {
    pub id: u64,
    /// JSON replaces bytes that are not UTF-8.
    #[serde(serialize_with = "lossy")]
    pub path: PathBuf,
    pub format: FileFormat,
    pub height: u32,
    pub width: u32,
    /// Bytes of its pixels, rows and decoder.
    pub scratch_bytes: u64,
}

/// The memory needs of a recipe for the images of a data set, from their headers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ScratchSurvey {
    /// None if no header could be read.
    largest: Option<(u64, u64, PictureHeader)>,
    /// The largest size of each buffer over all samples.
    max_buffers: SampleMemory,
    /// The same, over the samples whose buffers are kept.
    left: SampleMemory,
    /// Bytes of the longest file.
    pub(crate) input_bytes: u64,
    /// The limit of each sample, if no header is known.
    limit: Option<u64>,
    /// Memory of the decoders of rasters, which are separate.
    beside: u64,
}

/// The programs of images, of their labels, and of the labels of objects.
pub(crate) type SurveyPrograms<'a> = (
    &'a SampleProgram,
    Option<&'a SampleProgram>,
    Option<&'a SampleProgram>,
);

impl ScratchSurvey {
    /// Upper bound of a worker's memory. Different samples enlarge different buffers, but at most
    /// [`MAX_KEPT_BYTES`] bytes are kept from one sample to the next.
    pub(crate) fn scratch_bytes(&self) -> u64 {
        if let Some(limit) = self.limit {
            return limit;
        }
        let largest = self.largest.as_ref().map_or(0, |(bytes, ..)| *bytes);
        bound(&self.max_buffers, largest, &self.left).saturating_add(self.beside)
    }

    /// The most that samples within these limits can need: pixels and file.
    pub(crate) fn at_limit(limits: &PictureLimits) -> Self {
        Self {
            limit: Some(limits.max_scratch),
            input_bytes: limits.max_scratch,
            ..Self::default()
        }
    }

    /// The same with the stages of a program that joins samples, after the first. `rows`: the sizes
    /// that batches set. `labels`: which labels go through the stages, with those of this number of objects.
    pub(crate) fn with_joined(
        mut self,
        program: &SampleProgram,
        rows: &BatchSizes<'_>,
        labels: (StageNeeds, u64),
    ) -> Self {
        self.beside =
            self.beside
                .saturating_add(joined_bytes(program, &rows.of_any_image(), labels));
        self
    }

    pub(crate) fn sample(&self, index: &Index) -> Option<LargestSample> {
        let (scratch_bytes, id, header) = self.largest.as_ref()?;
        let (width, height) = header.upright_size();
        Some(LargestSample {
            id: *id,
            path: index.path(*id),
            format: header.format,
            height,
            width,
            scratch_bytes: *scratch_bytes,
        })
    }

    /// Adds a sample: its id, its header and the length of its file. `size`: the size that its
    /// batch sets.
    pub(crate) fn add(
        &mut self,
        (id, header, file_bytes): (u64, &PictureHeader, u64),
        (program, size): (&SampleProgram, Option<(u32, u32)>),
        limits: &PictureLimits,
        steps: &mut Vec<LargestStep>,
    ) {
        let stored = StoredPicture::from(header);
        self.add_stored(
            (id, header, file_bytes),
            stored,
            (program, size),
            limits,
            steps,
        );
    }

    /// Like [`ScratchSurvey::add`], for a file that is stored in another way than its header says.
    fn add_stored(
        &mut self,
        (id, header, file_bytes): (u64, &PictureHeader, u64),
        stored: StoredPicture,
        (program, size): (&SampleProgram, Option<(u32, u32)>),
        limits: &PictureLimits,
        steps: &mut Vec<LargestStep>,
    ) {
        self.input_bytes = self.input_bytes.max(file_bytes);
        let draws = program.draws();
        let [all, some] = stored.scratch_bounds(program, size, steps);
        // A sample above the limit fails before it allocates. But other random values for the same
        // image may need just less than the limit.
        let bytes = match all.bytes().max(some.bytes()) {
            bytes if bytes <= limits.max_scratch => bytes,
            _ if draws => limits.max_scratch,
            _ => return,
        };
        self.max_buffers.raise_all(&all);
        self.max_buffers.raise_all(&some);
        if draws || bytes <= MAX_KEPT_BYTES {
            self.left.raise_all(&all);
            self.left.raise_all(&some);
        }
        // Ties go to the lowest id, whichever thread finished first.
        let larger = self
            .largest
            .as_ref()
            .is_none_or(|(most, at, _)| bytes > *most || (bytes == *most && id < *at));
        if larger {
            self.largest = Some((bytes, id, *header));
        }
    }

    /// Reads the headers of all samples. `labels`: the program of labels. `instances`: the same, if
    /// masks of objects are drawn. `rasters`: rules and files. `rows`: the sizes that batches set.
    ///
    /// Of a mask or a raster of numbers only the first bytes are read: it has the size of its image.
    /// Other images are read as the images are.
    pub(crate) fn read_headers(
        index: &Index,
        ((program, labels, instances), rasters): (SurveyPrograms<'_>, &[(&RasterRule, &Index)]),
        limits: &PictureLimits,
        rows: &BatchSizes<'_>,
    ) -> Result<(Self, SampleSizes)> {
        let (pairs, numbers): (Vec<_>, Vec<_>) =
            (rasters.iter().copied()).partition(|(rule, _)| matches!(rule, RasterRule::Image(_)));
        let numbers: Vec<_> = (labels.into_iter())
            .flat_map(|labels| {
                numbers
                    .iter()
                    .map(move |(rule, files)| (*rule, *files, labels))
            })
            .collect();
        let worst = Mutex::new((
            Self::default(),
            vec![Self::default(); numbers.len()],
            Self::default(),
            Vec::new(),
        ));
        let all = survey::each_header(
            index,
            limits,
            program.orientation,
            &|id, header, file_bytes| {
                let (width, height) = header.upright_size();
                let looked: Vec<MaskFile> = (numbers.iter())
                    .map(|(rule, files, _)| {
                        MaskFile::look(files, id).with_rule(rule, (files, id), limits)
                    })
                    .collect();
                let mut guard = worst.lock().unwrap_or_else(PoisonError::into_inner);
                let (worst, of_rasters, of_instances, steps) = &mut *guard;
                for size in &rows.of((height, width)) {
                    worst.add((id, header, file_bytes), (program, *size), limits, steps);
                    let rasters = looked.iter().zip(&numbers).zip(&mut *of_rasters);
                    for ((file, (_, _, labels)), most) in rasters {
                        let stored = file.stored(header, (labels, *size));
                        let of = (id, header, file.file_bytes);
                        most.add_stored(of, stored, (labels, *size), limits, steps);
                    }
                    if let Some(labels) = instances {
                        let stored = MaskFile::DRAWN.stored(header, (labels, *size));
                        let of = (id, header, 0);
                        of_instances.add_stored(of, stored, (labels, *size), limits, steps);
                    }
                }
            },
            &|_| ControlFlow::Continue(()),
        )?;
        let (mut images, mut others, of_instances, _) =
            worst.into_inner().unwrap_or_else(PoisonError::into_inner);
        let scratch = images.scratch_bytes();
        for (rule, files) in pairs {
            let (mut pair, _) =
                Self::read_headers(files, ((program, None, None), &[]), limits, rows)?;
            if let RasterRule::Image(rule) = rule
                && rule.scale > 1
            {
                // The steps are those of the image, on buffers whose sides are multiples.
                let area = u64::from(rule.scale) * u64::from(rule.scale);
                pair.beside = scratch.saturating_mul(area);
            }
            others.push(pair);
        }
        others.push(of_instances);
        for other in &others {
            images.beside = images.beside.saturating_add(other.scratch_bytes());
            images.input_bytes = images.input_bytes.saturating_add(other.input_bytes);
        }
        Ok((images, all))
    }
}

/// Bytes of a pixel of an OpenEXR file with all its channels, and of the number that is read. None
/// for other files, and for those within tars.
fn openexr_pixel(files: &Index, id: u64, limits: &PictureLimits) -> Option<u64> {
    let ((width, height), bytes) = match (files.bytes_in_memory(id), files.part(id)) {
        (Some(bytes), _) => openexr_header(Cursor::new(bytes), limits),
        (None, Some(_)) => None,
        (None, None) => openexr_header(BufReader::new(File::open(files.path(id)).ok()?), limits),
    }?;
    let pixels = (u64::from(width) * u64::from(height)).max(1);
    Some(bytes.div_ceil(pixels) + size_of::<f32>() as u64)
}

/// Size and decoder's bytes of an OpenEXR file.
fn openexr_header(
    mut file: impl BufRead + Seek,
    limits: &PictureLimits,
) -> Option<((u32, u32), u64)> {
    let mut magic = [0; 4];
    file.read_exact(&mut magic).ok()?;
    let is_openexr = magic == *b"\x76\x2f\x31\x01";
    is_openexr.then(|| depth::size_and_bytes(&mut file, limits).ok())?
}

/// What the memory of a mask or a raster of numbers depends on, apart from its size.
#[derive(Debug, Clone, Copy)]
struct MaskFile {
    file_bytes: u64,
    /// Bytes of a pixel of the row while it is made.
    row: u64,
    /// Whether it is a PNG that is decoded row by row.
    by_rows: bool,
    /// Most bytes of a pixel in its decoder, and of the numbers that are read from it.
    pixel: u64,
}

impl MaskFile {
    /// A label image that is drawn from outlines: bits of the masks, and lengths of their runs.
    const DRAWN: Self = Self {
        file_bytes: 0,
        row: LABEL_BYTES,
        by_rows: false,
        pixel: 1,
    };

    /// Looks at the file of sample `id`.
    fn look(files: &Index, id: u64) -> Self {
        let mut head = [0; PNG_HEAD];
        let (file_bytes, is_read) = if let Some(bytes) = files.bytes_in_memory(id) {
            let is_read = bytes.len() >= PNG_HEAD;
            if is_read {
                head.copy_from_slice(&bytes[..PNG_HEAD]);
            }
            (bytes.len() as u64, is_read)
        } else if let Some(part) = files.part(id) {
            (part.bytes, false)
        } else {
            let opened = File::open(files.path(id)).and_then(|mut file| {
                let len = file.metadata()?.len();
                Ok((len, file.read_exact(&mut head).is_ok()))
            });
            opened.unwrap_or((0, false))
        };
        let is_png = is_read && head.starts_with(b"\x89PNG");
        let is_interlaced = head[PNG_HEAD - 1] != 0;
        Self {
            file_bytes,
            row: LABEL_BYTES,
            by_rows: is_png && !is_interlaced,
            pixel: match (is_png, is_read) {
                // Four channels of one byte, or one of two.
                (true, _) => 4,
                // Doubles of a TIFF, and the numbers that are read from them.
                (false, true) => 20,
                // A part of a file is mostly a PNG.
                (false, false) => 8,
            },
        }
    }

    /// The same for a raster with this rule. All numbers of a file are read at once.
    fn with_rule(
        self,
        rule: &RasterRule,
        (files, id): (&Index, u64),
        limits: &PictureLimits,
    ) -> Self {
        match rule {
            RasterRule::Mask(_) | RasterRule::Image(_) => self,
            RasterRule::Numbers(_) | RasterRule::Flow(_) => Self {
                by_rows: false,
                // Doubles of a TIFF, or four channels of an OpenEXR file, and the numbers of them.
                pixel: openexr_pixel(files, id, limits).unwrap_or(0).max(36),
                row: LABEL_BYTES + size_of::<u32>() as u64,
                ..self
            },
        }
    }

    /// The mask of an image with this header. `size`: the size of the row, if its batch sets it.
    fn stored(
        &self,
        header: &PictureHeader,
        (program, size): (&SampleProgram, Option<(u32, u32)>),
    ) -> StoredPicture {
        let (width, height) = header.orientation.apply_to_size(header.stored_size);
        let pixels = u64::from(width) * u64::from(height);
        let rows = match self.by_rows {
            true => pixels.min(PNG_ROWS * u64::from(width)),
            false => pixels + PNG_ROWS * u64::from(width),
        };
        let (upright_width, upright_height) = header.upright_size();
        let own = || program.extent.of((upright_height, upright_width));
        let row = size.unwrap_or_else(own);
        let of_row = u64::from(row.0) * u64::from(row.1);
        StoredPicture {
            size: (width, height),
            orientation: ExifOrientation::Normal,
            cost: DecodeCost::Rows {
                scratch: self.pixel * rows + LABEL_BYTES * pixels + self.row * of_row + (1 << 20),
            },
            pixel_box: header.pixel_box,
        }
    }
}

/// Bytes of a PNG up to the end of its header's fields.
const PNG_HEAD: usize = 29;
/// Bytes of a label.
const LABEL_BYTES: u64 = 3;
/// Rows that the decoder of PNG holds.
const PNG_ROWS: u64 = 10;

/// Upper bound over samples that follow each other. Each buffer keeps its largest size. But a
/// sample above [`MAX_KEPT_BYTES`] leaves no buffers, and the next sample's memory comes in
/// addition to at most [`MAX_KEPT_BYTES`].
fn bound(max_buffers: &SampleMemory, largest: u64, left: &SampleMemory) -> u64 {
    let beside = left.bytes().min(MAX_KEPT_BYTES);
    max_buffers.bytes().min(largest.saturating_add(beside))
}

/// The memory of a run, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RunMemory {
    pub workers: u32,
    /// Slots of the ring.
    pub depth: u32,
    /// Rows of a batch.
    pub batch: u32,
    pub slot_bytes: u64,
    /// Shared by all processes, pinned for a GPU. Without workers: the batches themselves, two at
    /// one time.
    pub ring_bytes: u64,
    /// Upper bound of a worker's memory for samples.
    pub scratch_bytes: u64,
    /// The longest file, mapped while it is decoded. 0 for shards, if there are workers.
    pub input_bytes: u64,
    /// Most bytes of shards that workers have mapped. This is page cache: it is in their PSS but
    /// not in `total_bytes`, and the kernel can reclaim it.
    pub page_cache_bytes: u64,
    /// Per worker: scratch, input, and the process.
    pub worker_bytes: u64,
    /// Consumer, coordinator, names of the samples, samples in memory, tables, unpacked values of
    /// columns, and the labels that mixing makes.
    pub fixed_bytes: u64,
    /// Shared by all processes: pictures of the samples of a `partner_window`, which other rows join.
    pub kept_picture_bytes: u64,
    /// Device memory without the context. 0 without [`Device::Cuda`](crate::Device::Cuda).
    pub device_bytes: u64,
    pub total_bytes: u64,
}

/// The settings of a run, without its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunShape {
    pub workers: u32,
    /// Rows of a batch.
    pub batch: u32,
    /// Slots of the ring. None: as many as fit, at most 3.
    pub depth: Option<u32>,
    /// Bytes that all processes may use together.
    pub memory_limit: Option<u64>,
}

impl RunMemory {
    /// The memory of a run over baseline JPEG images of this upright height and width. Files and
    /// names of the samples are not included.
    ///
    /// # Errors
    /// A recipe that cannot run; a number out of range; a run that does not fit the limit.
    pub fn of(recipe: &Recipe, picture: (u32, u32), shape: RunShape) -> Result<Self> {
        match Self::with_refusal(recipe, picture, shape)? {
            (_, Some(refusal)) => Err(refusal),
            (memory, None) => Ok(memory),
        }
    }

    /// Like [`RunMemory::of`], but also returns the memory of a run that does not fit: the smallest
    /// that was tried, with the error.
    ///
    /// # Errors
    /// All other errors of [`RunMemory::of`].
    pub fn with_refusal(
        recipe: &Recipe,
        picture: (u32, u32),
        shape: RunShape,
    ) -> Result<(Self, Option<Error>)> {
        let program = SampleProgram::compile(recipe)?;
        let row = crop_sections::sample_bytes(&program, picture);
        let mut ingredients = MemoryInputs {
            workers: shape.workers,
            batch: shape.batch,
            slot_bytes: crop_sections::slot_bytes(&program, picture, shape.batch),
            row_bytes: Some(row),
            scratch_bytes: scratch_of(&program, picture),
            input_bytes: 0,
            page_cache_bytes: 0,
            table_bytes: 0,
            mixing: MixingBytes::of(&program, std::iter::empty()),
            kept_picture_bytes: 0,
            device: None,
        };
        let window = WindowShape::of(&program, StageNeeds::default(), u64::MAX);
        let depth = match shape.depth {
            Some(slots) => RingDepth::Exactly(slots),
            None => RingDepth::AtMost(DEFAULT_DEPTH),
        };
        ingredients.keep_pictures(window, shape.memory_limit, depth)?;
        match shape.memory_limit {
            Some(bytes) => {
                let by = "memory_limit";
                let faster = || Some(scratch_of(&program.with_fast_order()?, picture));
                ingredients.fit_limit(MemoryLimit { bytes, by }, depth, &faster)
            }
            None => Ok((ingredients.with_depth(depth.most_slots())?, None)),
        }
    }
}

/// Upper bound of a worker's memory for samples of one size.
fn scratch_of(program: &SampleProgram, picture: (u32, u32)) -> u64 {
    if program.is_joined() {
        let decoding = scratch_of(program.decoding_stage(), picture);
        return decoding.saturating_add(joined_bytes(program, &[None], Default::default()));
    }
    let stored = StoredPicture::baseline_jpeg(picture);
    let [all, some] = stored.scratch_bounds(program, None, &mut Vec::new());
    let largest = all.bytes().max(some.bytes());
    let mut kept = all;
    kept.raise_all(&some);
    match program.draws() || largest <= MAX_KEPT_BYTES {
        true => bound(&kept, largest, &kept),
        false => largest,
    }
}

/// Default number of ring slots.
pub(crate) const DEFAULT_DEPTH: u32 = 3;

/// The inputs of [`RunMemory`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct MemoryInputs {
    pub(crate) workers: u32,
    pub(crate) batch: u32,
    pub(crate) slot_bytes: u64,
    /// Bytes of each row. None if rows differ: then no other batch size can be suggested.
    pub(crate) row_bytes: Option<u64>,
    pub(crate) scratch_bytes: u64,
    pub(crate) input_bytes: u64,
    pub(crate) page_cache_bytes: u64,
    /// The index, sizes, a sampler's table, unpacked values of columns.
    pub(crate) table_bytes: u64,
    pub(crate) mixing: MixingBytes,
    /// See [`RunMemory::kept_picture_bytes`].
    pub(crate) kept_picture_bytes: u64,
    /// None unless batches are delivered on a device.
    pub(crate) device: Option<DeviceNeeds>,
}

/// Memory that a run needs for a device, without the device's context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DeviceNeeds {
    /// Device bytes for any depth.
    pub(crate) fixed: u64,
    /// Device bytes per ring slot, and the least and most slots that count.
    pub(crate) per_slot: u64,
    pub(crate) least_slots: u64,
    pub(crate) most_slots: u64,
    /// Pinned host bytes in addition to the ring.
    pub(crate) pinned: u64,
    /// Whether the device decodes. The consumer then decodes flagged images again.
    pub(crate) decodes: bool,
}

impl DeviceNeeds {
    /// Device bytes for this many slots.
    pub(crate) fn bytes_with(self, depth: u32) -> u64 {
        self.per_slot
            .saturating_mul(u64::from(depth).min(self.most_slots).max(self.least_slots))
            .saturating_add(self.fixed)
    }
}

/// Host memory that a device's driver takes in the consumer.
pub(crate) const DRIVER: u64 = 192 << 20;

/// Memory for mixing in the consumer, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct MixingBytes {
    /// A row, a label and a mask while a batch is mixed.
    pub(crate) once: u64,
    /// The label of each row of each live batch.
    pub(crate) label: u64,
}

impl MixingBytes {
    /// For the program's rows and the sizes that batches set.
    pub(crate) fn of(program: &SampleProgram, sizes: impl Iterator<Item = (u32, u32)>) -> Self {
        let Some(mixing) = &program.recipe().mixing else {
            return Self::default();
        };
        let own = match program.extent {
            RowExtent::Fixed { height, width } => Some((height, width)),
            // Only labels are mixed.
            RowExtent::Own | RowExtent::Patches(_) => None,
        };
        let pixels = |(h, w): (u32, u32)| u64::from(h) * u64::from(w);
        let largest = own
            .into_iter()
            .chain(sizes)
            .max_by_key(|size| pixels(*size));
        let (row, pixels) = largest.map_or((0, 0), |s| (program.row_bytes(s), pixels(s)));
        let (once, label) = mix::mixing_bytes(mixing, row, pixels);
        Self { once, label }
    }

    /// Bytes for this number of live batches with this number of rows.
    fn total(self, batches: u32, rows: u32) -> u64 {
        let labels = u64::from(batches) * u64::from(rows);
        self.once.saturating_add(self.label.saturating_mul(labels))
    }
}

impl MemoryInputs {
    /// The memory with `depth` slots.
    ///
    /// # Errors
    /// Numbers for which no ring can be made.
    pub(crate) fn with_depth(&self, depth: u32) -> Result<RunMemory> {
        let shape = RingShape {
            slots: depth,
            rows: self.batch,
            slot_bytes: self.slot_bytes,
            lanes: self.workers.max(1),
        };
        let ring = RingLayout::new(shape)?.total_bytes() as u64;
        let (ring_bytes, processes, base, others, alive) = match self.workers {
            0 => (self.slot_bytes.saturating_mul(2), 1, 0, 0, 2),
            n => (ring, u64::from(n), WORKER, COORDINATOR, depth),
        };
        let worker_bytes = self
            .scratch_bytes
            .saturating_add(self.input_bytes)
            .saturating_add(base);
        // The consumer decodes flagged images again, with the memory of a worker.
        let again = (self.device.filter(|device| device.decodes))
            .map_or(0, |_| self.scratch_bytes.saturating_add(self.input_bytes));
        let fixed_bytes = self
            .table_bytes
            .saturating_add(again)
            .saturating_add(self.mixing.total(alive, self.batch))
            .saturating_add(CONSUMER + others)
            .saturating_add(self.device.map_or(0, |device| DRIVER + device.pinned));
        Ok(RunMemory {
            workers: self.workers,
            depth,
            batch: self.batch,
            slot_bytes: self.slot_bytes,
            ring_bytes,
            scratch_bytes: self.scratch_bytes,
            input_bytes: self.input_bytes,
            page_cache_bytes: self.page_cache_bytes,
            worker_bytes,
            fixed_bytes,
            kept_picture_bytes: self.kept_picture_bytes,
            device_bytes: self.device.map_or(0, |d| d.bytes_with(depth)),
            total_bytes: ring_bytes
                .saturating_add(self.kept_picture_bytes)
                .saturating_add(worker_bytes.saturating_mul(processes))
                .saturating_add(fixed_bytes),
        })
    }

    /// Counts the pictures of joined samples that are kept. With a limit of all memory they are those
    /// for which the rest of the run leaves room: fewer pictures change the speed only.
    ///
    /// # Errors
    /// Numbers for which no ring can be made.
    pub(crate) fn keep_pictures(
        &mut self,
        window: Option<WindowShape>,
        limit: Option<u64>,
        depth: RingDepth,
    ) -> Result<Option<WindowShape>> {
        self.kept_picture_bytes = 0;
        let kept = match limit {
            Some(limit) => {
                let rest = self.with_depth(depth.most_slots())?.total_bytes;
                window.and_then(|window| window.within(limit.saturating_sub(rest)))
            }
            None => window,
        };
        self.kept_picture_bytes = kept.map_or(0, WindowShape::bytes);
        Ok(kept)
    }

    /// The memory with the requested slots, or with as many as fit. If not even one slot fits: the
    /// smallest that was tried, and an error that names what would fit. `faster`: the scratch of a
    /// worker under `reorder: fast`, none if that changes nothing.
    ///
    /// # Errors
    /// Numbers for which no ring can be made.
    pub(crate) fn fit_limit(
        &self,
        limit: MemoryLimit,
        depth: RingDepth,
        faster: &dyn Fn() -> Option<u64>,
    ) -> Result<(RunMemory, Option<Error>)> {
        let (most, least) = (depth.most_slots(), depth.least_slots());
        let mut last = self.with_depth(most)?;
        for depth in (least..=most).rev() {
            last = self.with_depth(depth)?;
            if last.total_bytes <= limit.bytes {
                return Ok((last, None));
            }
        }
        Ok((last, Some(self.refusal(limit, last, faster()))))
    }

    fn refusal(&self, limit: MemoryLimit, last: RunMemory, faster: Option<u64>) -> Error {
        let faster = faster.map(|scratch_bytes| Self {
            scratch_bytes,
            ..*self
        });
        let mut fits = Vec::new();
        if let Some(n) = self.largest_batch(limit, last.depth) {
            fits.push(format!("batch_size {n}"));
        }
        let of_workers = |workers| Self { workers, ..*self };
        if let Some(n) = largest_that_fits(self.workers, |n| of_workers(n).fits(limit, last.depth))
        {
            fits.push(workers_text(n));
        }
        let without_window = Self {
            kept_picture_bytes: 0,
            ..*self
        };
        if self.kept_picture_bytes > 0 && without_window.fits(limit, last.depth) {
            fits.push("a `memory_limit`, which keeps fewer pictures".into());
        }
        if last.depth > 1 && self.fits(limit, 1) {
            fits.push("depth 1".into());
        }
        if faster.is_some_and(|faster| faster.fits(limit, last.depth)) {
            fits.push(FASTER.into());
        }
        if fits.is_empty() {
            let advice_of_all = self.advice_of_all(limit, last.depth);
            let faster = || {
                let mut all = vec![FASTER.to_owned()];
                all.append(&mut faster?.advice_of_all(limit, last.depth)?);
                Some(all)
            };
            fits.extend(advice_of_all.or_else(faster).map(|all| and_list(&all)));
        }
        let fits = match fits.is_empty() && !self.has_room_for_rows(limit) {
            true => "use a higher limit".to_owned(),
            false => advice_text(&fits),
        };
        Error::config(format!(
            "the run needs {} with depth {} and {} allows {}: {fits}. The ring takes {}, each of \
             {} workers {}, the rest {}. `featherload plan` shows every stage",
            size_rounded_up(last.total_bytes),
            last.depth,
            limit.by,
            size_rounded_down(limit.bytes),
            size(last.ring_bytes),
            last.workers,
            size(last.worker_bytes),
            size(last.fixed_bytes),
        ))
    }

    /// Whether a run with empty rows, one worker and no scratch would fit.
    fn has_room_for_rows(&self, limit: MemoryLimit) -> bool {
        let least = Self {
            workers: self.workers.min(1),
            batch: 1,
            slot_bytes: 1,
            scratch_bytes: 0,
            ..*self
        };
        least.fits(limit, 1)
    }

    /// The largest smaller batch that fits. None if rows differ.
    fn largest_batch(&self, limit: MemoryLimit, depth: u32) -> Option<u32> {
        let row = self.row_bytes?;
        let of_batch = |batch: u32| Self {
            batch,
            slot_bytes: row.saturating_mul(u64::from(batch)),
            ..*self
        };
        largest_that_fits(self.batch, |n| of_batch(n).fits(limit, depth))
    }

    /// One worker, one slot and a smaller batch, all together.
    fn advice_of_all(&self, limit: MemoryLimit, depth: u32) -> Option<Vec<String>> {
        let least = Self {
            workers: self.workers.min(1),
            ..*self
        };
        let batch = match least.fits(limit, 1) {
            true => None,
            false => Some(least.largest_batch(limit, 1)?),
        };
        let parts = [
            batch.map(|n| format!("batch_size {n}")),
            (self.workers > 1).then(|| workers_text(1)),
            (depth > 1).then(|| "depth 1".to_owned()),
        ];
        Some(parts.into_iter().flatten().collect())
    }

    fn fits(&self, limit: MemoryLimit, depth: u32) -> bool {
        self.with_depth(depth)
            .is_ok_and(|m| m.total_bytes <= limit.bytes)
    }
}

/// For error texts: the order of operations that needs less memory.
const FASTER: &str = "`reorder: fast` (it changes values)";

/// For error texts: `a, b and c`.
fn and_list(parts: &[String]) -> String {
    match parts {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        _ => parts.concat(),
    }
}

/// For error texts: the number of workers.
pub(crate) fn workers_text(workers: u32) -> String {
    match workers {
        1 => "1 worker".to_owned(),
        n => format!("{n} workers"),
    }
}

/// For error texts: the settings that would fit.
pub(crate) fn advice_text(smaller: &[String]) -> String {
    match smaller {
        [] => "use a recipe with smaller rows, or a higher limit".to_owned(),
        _ => format!("use {}, or a higher limit", smaller.join(", or ")),
    }
}

/// The largest number below `most` that fits. None if 1 does not fit.
pub(crate) fn largest_that_fits(most: u32, fits: impl Fn(u32) -> bool) -> Option<u32> {
    if most <= 1 || !fits(1) {
        return None;
    }
    let (mut low, mut high) = (1, most);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        match fits(middle) {
            true => low = middle,
            false => high = middle,
        }
    }
    Some(low)
}

/// Slots of the ring: a fixed number, or a maximum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RingDepth {
    Exactly(u32),
    AtMost(u32),
}

impl RingDepth {
    /// The number of slots without a limit.
    pub(crate) fn most_slots(self) -> u32 {
        match self {
            Self::Exactly(n) | Self::AtMost(n) => n,
        }
    }

    /// The least number of slots that is accepted.
    pub(crate) fn least_slots(self) -> u32 {
        match self {
            Self::Exactly(n) => n,
            Self::AtMost(_) => 1,
        }
    }

    /// The depth if another limit leaves room for only `to` slots.
    pub(crate) fn capped_at(self, to: u32) -> Self {
        match self {
            Self::Exactly(n) => Self::Exactly(n),
            Self::AtMost(n) => Self::AtMost(n.min(to)),
        }
    }
}

/// A memory limit, and where it comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct MemoryLimit {
    pub bytes: u64,
    pub by: &'static str,
}

impl MemoryLimit {
    /// The lowest of the user's limit, the cgroup's free memory and the machine's available memory.
    pub(crate) fn lowest_of(requested: Option<u64>) -> Option<Self> {
        let limits = [
            (requested, "memory_limit"),
            (cgroup::memory_left(), "the cgroup (memory.max)"),
            (memory::available_bytes(), "the memory available now"),
        ];
        let known = limits
            .into_iter()
            .filter_map(|(bytes, by)| Some(Self { bytes: bytes?, by }));
        known.min_by_key(|l| l.bytes)
    }
}
