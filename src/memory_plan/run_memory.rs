//! The memory of a run, before anything of it is allocated, and what to choose
//! when there is a limit.
//!
//! In the consumer. Reads the header of every sample; reads no pixel. What a run
//! takes is the ring, what each worker needs for the largest sample, and the
//! processes themselves.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use serde::Serialize;

use crate::data::index::{Index, lossy};
use crate::data::sample_sizes::SampleSizes;
use crate::data::survey;
use crate::decode_plan::stored_picture::{MAX_KEPT_BYTES, SampleMemory, StoredPicture};
use crate::error::{Error, Result, size, size_rounded_down, size_rounded_up};
use crate::jobs::images::mix;
use crate::picture::read_header::PictureHeader;
use crate::picture::{FileFormat, PictureLimits};
use crate::pool::ring::{RingLayout, RingShape};
use crate::recipe::steps::LargestStep;
use crate::recipe::{Recipe, RowExtent, SampleProgram};
use crate::sys::{cgroup, memory};

/// PSS of a process beside what a run allocates in it, bytes: code and data of
/// the executable, the C library's heap, the decoder's tables. Measured with
/// `featherload rss` (`bench_data/runs`), rounded up.
pub(crate) const CONSUMER: u64 = 8 << 20;
pub(crate) const COORDINATOR: u64 = 2 << 20;
const WORKER: u64 = 3 << 20;

/// The sample that takes the most memory in a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LargestSample {
    pub id: u64,
    /// As JSON with a replacement for bytes that are no UTF-8.
    #[serde(serialize_with = "lossy")]
    pub path: PathBuf,
    pub format: FileFormat,
    pub height: u32,
    pub width: u32,
    /// Bytes that it takes: pixels, rows, and what its decoder holds.
    pub scratch_bytes: u64,
}

/// What the headers of a data set say about a recipe's memory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ScratchSurvey {
    /// None when no header could be read.
    largest: Option<(u64, u64, PictureHeader)>,
    /// Each buffer as large as any sample makes it.
    kept: SampleMemory,
    /// The same, of the samples that leave anything behind.
    left: SampleMemory,
    /// Of the longest file.
    pub(crate) input_bytes: u64,
}

impl ScratchSurvey {
    /// The most that a worker holds: buffers grow to what different samples make of
    /// them, but what is kept from one to the next is at most [`KEPT`].
    pub(crate) fn scratch_bytes(&self) -> u64 {
        let largest = self.largest.as_ref().map_or(0, |(bytes, ..)| *bytes);
        bound(&self.kept, largest, &self.left)
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

    /// Adds a sample: its id, its header and the length of its file. `size`: the one that
    /// its batch sets.
    pub(crate) fn add(
        &mut self,
        (id, header, file_bytes): (u64, &PictureHeader, u64),
        (program, size): (&SampleProgram, Option<(u32, u32)>),
        limits: &PictureLimits,
        steps: &mut Vec<LargestStep>,
    ) {
        self.input_bytes = self.input_bytes.max(file_bytes);
        let draws = program.draws();
        let stored = StoredPicture::from(header);
        let [all, some] = stored.scratch_bounds(program, size, steps);
        // What is over the limit fails before it takes anything; but another draw of the
        // same picture may be just below it.
        let bytes = match all.bytes().max(some.bytes()) {
            bytes if bytes <= limits.max_scratch => bytes,
            _ if draws => limits.max_scratch,
            _ => return,
        };
        self.kept.raise_all(&all);
        self.kept.raise_all(&some);
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

    /// Reads the headers of all samples. `rows`: the sizes that batches set; none =
    /// the recipe's alone.
    pub(crate) fn read_headers(
        index: &Index,
        program: &SampleProgram,
        limits: &PictureLimits,
        rows: &[(u32, u32)],
    ) -> Result<(Self, SampleSizes)> {
        let worst = Mutex::new((Self::default(), Vec::new()));
        let mut sizes: Vec<Option<(u32, u32)>> = rows.iter().map(|size| Some(*size)).collect();
        if sizes.is_empty() {
            sizes.push(None);
        }
        let all = survey::each_header(
            index,
            limits,
            program.orientation,
            &|id, header, file_bytes| {
                let mut guard = worst.lock().unwrap_or_else(PoisonError::into_inner);
                let (worst, steps) = &mut *guard;
                for size in &sizes {
                    worst.add((id, header, file_bytes), (program, *size), limits, steps);
                }
            },
            &|_| ControlFlow::Continue(()),
        )?;
        let worst = worst.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok((worst.0, all))
    }
}

/// The most that samples take, one after the other. Each buffer keeps its largest
/// size; but of a sample that took more than [`KEPT`] nothing stays, and never more
/// than that lies beside the next one's own.
fn bound(kept: &SampleMemory, largest: u64, left: &SampleMemory) -> u64 {
    let beside = left.bytes().min(MAX_KEPT_BYTES);
    kept.bytes().min(largest.saturating_add(beside))
}

/// The memory of a run, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RunMemory {
    pub workers: u32,
    /// Slots of the ring.
    pub depth: u32,
    /// Rows of a batch.
    pub batch: u32,
    pub slot_bytes: u64,
    /// Shared by all processes; pinned when there is a GPU. Without workers the
    /// batches themselves, of which two live at a time.
    pub ring_bytes: u64,
    /// The most that samples take in a worker, one after the other.
    pub scratch_bytes: u64,
    /// The longest file, mapped while it is decoded; with workers 0 for samples of
    /// shards.
    pub input_bytes: u64,
    /// Most bytes of shards that workers have mapped: page cache, which stands in
    /// their PSS and not in `total_bytes`; the kernel takes it back for others.
    pub page_cache_bytes: u64,
    /// Each worker: scratch, input, and the process.
    pub worker_bytes: u64,
    /// Consumer, coordinator, names of the samples and their tables, labels that
    /// mixing makes.
    pub fixed_bytes: u64,
    /// Of a device, its context apart: with [`Device::Cuda`](crate::Device::Cuda).
    pub device_bytes: u64,
    pub total_bytes: u64,
}

/// A run without its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunShape {
    pub workers: u32,
    /// Rows of a batch.
    pub batch: u32,
    /// Slots of the ring; none = as many as fit, 3 at most.
    pub depth: Option<u32>,
    /// Bytes.
    pub memory_limit: Option<u64>,
}

impl RunMemory {
    /// The memory of a run over pictures of this upright height and width, baseline
    /// JPEG all of them. Their files, and the names of the samples, are not in it.
    ///
    /// # Errors
    /// A recipe that cannot run; a number out of its range; what does not fit the
    /// limit.
    pub fn of(recipe: &Recipe, picture: (u32, u32), shape: RunShape) -> Result<Self> {
        match Self::with_refusal(recipe, picture, shape)? {
            (_, Some(refusal)) => Err(refusal),
            (memory, None) => Ok(memory),
        }
    }

    /// The same, also of a run that does not fit the limit: with the error that
    /// [`RunMemory::of`] gives, and the least that was tried.
    ///
    /// # Errors
    /// The others of [`RunMemory::of`].
    pub fn with_refusal(
        recipe: &Recipe,
        picture: (u32, u32),
        shape: RunShape,
    ) -> Result<(Self, Option<Error>)> {
        let program = SampleProgram::compile(recipe)?;
        let row = program.row_bytes(program.extent.of(picture));
        let ingredients = MemoryInputs {
            workers: shape.workers,
            batch: shape.batch,
            slot_bytes: row.saturating_mul(u64::from(shape.batch)),
            row_bytes: Some(row),
            scratch_bytes: scratch_of(&program, picture),
            input_bytes: 0,
            page_cache_bytes: 0,
            table_bytes: 0,
            mixing: MixingBytes::of(&program, std::iter::empty()),
            device: None,
        };
        let depth = match shape.depth {
            Some(slots) => RingDepth::Exactly(slots),
            None => RingDepth::AtMost(DEFAULT_DEPTH),
        };
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

/// The most that samples of one size take in a worker, one after the other.
fn scratch_of(program: &SampleProgram, picture: (u32, u32)) -> u64 {
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

/// Slots of the ring, where nobody says another number.
pub(crate) const DEFAULT_DEPTH: u32 = 3;

/// What a forecast is made from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MemoryInputs {
    pub(crate) workers: u32,
    pub(crate) batch: u32,
    pub(crate) slot_bytes: u64,
    /// Of every row; none where they differ: then nothing can be said of another
    /// batch size.
    pub(crate) row_bytes: Option<u64>,
    pub(crate) scratch_bytes: u64,
    pub(crate) input_bytes: u64,
    pub(crate) page_cache_bytes: u64,
    /// The index, sizes, a sampler's table.
    pub(crate) table_bytes: u64,
    pub(crate) mixing: MixingBytes,
    /// Where batches end on a device.
    pub(crate) device: Option<DeviceNeeds>,
}

/// What a run takes of a device, its context apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DeviceNeeds {
    /// Whatever the depth.
    pub(crate) fixed: u64,
    /// For each slot of the ring, and for so many at least and at most.
    pub(crate) per_slot: u64,
    pub(crate) least_slots: u64,
    pub(crate) most_slots: u64,
    /// Of the host, pinned beside the ring.
    pub(crate) pinned: u64,
    /// Whether it decodes: what it flags is decoded again in the consumer.
    pub(crate) decodes: bool,
}

impl DeviceNeeds {
    /// All of it, with so many slots.
    pub(crate) fn bytes_with(self, depth: u32) -> u64 {
        self.per_slot
            .saturating_mul(u64::from(depth).min(self.most_slots).max(self.least_slots))
            .saturating_add(self.fixed)
    }
}

/// What a device's driver takes of the consumer's memory.
pub(crate) const DRIVER: u64 = 192 << 20;

/// What the consumer takes to mix batches, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct MixingBytes {
    /// A row, a label and a mask while they are mixed.
    pub(crate) once: u64,
    /// The label of each row of each batch that is alive.
    pub(crate) label: u64,
}

impl MixingBytes {
    /// For the program's rows, and those of the sizes that batches set.
    pub(crate) fn of(program: &SampleProgram, sizes: impl Iterator<Item = (u32, u32)>) -> Self {
        let Some(mixing) = &program.recipe().mixing else {
            return Self::default();
        };
        let own = match program.extent {
            RowExtent::Fixed { height, width } => Some((height, width)),
            // Only labels are made.
            RowExtent::Own => None,
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

    /// With so many batches of so many rows alive.
    fn total(self, batches: u32, rows: u32) -> u64 {
        let labels = u64::from(batches) * u64::from(rows);
        self.once.saturating_add(self.label.saturating_mul(labels))
    }
}

impl MemoryInputs {
    /// The memory with `depth` slots.
    ///
    /// # Errors
    /// Numbers of which no ring can be made.
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
        // As much as in a worker.
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
            device_bytes: self.device.map_or(0, |d| d.bytes_with(depth)),
            total_bytes: ring_bytes
                .saturating_add(worker_bytes.saturating_mul(processes))
                .saturating_add(fixed_bytes),
        })
    }

    /// As many slots as were asked for, or as fit. Where not even one fits, the least that
    /// was tried, and the refusal: it says what would fit. `faster`: the scratch of a worker
    /// under `reorder: fast`; none where that changes nothing.
    ///
    /// # Errors
    /// Numbers of which no ring can be made.
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
        if last.depth > 1 && self.fits(limit, 1) {
            fits.push("depth 1".into());
        }
        if faster.is_some_and(|faster| faster.fits(limit, last.depth)) {
            fits.push(FASTER.into());
        }
        if fits.is_empty() {
            let together = self.together(limit, last.depth);
            let faster = || {
                let mut all = vec![FASTER.to_owned()];
                all.append(&mut faster?.together(limit, last.depth)?);
                Some(all)
            };
            fits.extend(together.or_else(faster).map(|all| all_of(&all)));
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

    /// Whether rows of no bytes would fit, in one worker without scratch.
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

    /// The largest smaller batch that fits; none where rows differ.
    fn largest_batch(&self, limit: MemoryLimit, depth: u32) -> Option<u32> {
        let row = self.row_bytes?;
        let of_batch = |batch: u32| Self {
            batch,
            slot_bytes: row.saturating_mul(u64::from(batch)),
            ..*self
        };
        largest_that_fits(self.batch, |n| of_batch(n).fits(limit, depth))
    }

    /// One worker, one slot and a smaller batch, where nothing less fits.
    fn together(&self, limit: MemoryLimit, depth: u32) -> Option<Vec<String>> {
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

/// In a refusal: the order of operations that takes less.
const FASTER: &str = "`reorder: fast` (it changes values)";

/// In a refusal: `a, b and c`.
fn all_of(parts: &[String]) -> String {
    match parts {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        _ => parts.concat(),
    }
}

/// In a refusal: so many workers.
pub(crate) fn workers_text(workers: u32) -> String {
    match workers {
        1 => "1 worker".to_owned(),
        n => format!("{n} workers"),
    }
}

/// In a refusal: what is smaller and fits.
pub(crate) fn advice_text(smaller: &[String]) -> String {
    match smaller {
        [] => "use a recipe with smaller rows, or a higher limit".to_owned(),
        _ => format!("use {}, or a higher limit", smaller.join(", or ")),
    }
}

/// The largest number below `most` that fits; none when 1 does not.
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

/// Slots of the ring: a wish, or a demand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RingDepth {
    Exactly(u32),
    AtMost(u32),
}

impl RingDepth {
    /// Without a limit.
    pub(crate) fn most_slots(self) -> u32 {
        match self {
            Self::Exactly(n) | Self::AtMost(n) => n,
        }
    }

    /// That will do.
    pub(crate) fn least_slots(self) -> u32 {
        match self {
            Self::Exactly(n) => n,
            Self::AtMost(_) => 1,
        }
    }

    /// Where something else leaves room for so many alone.
    pub(crate) fn capped_at(self, to: u32) -> Self {
        match self {
            Self::Exactly(n) => Self::Exactly(n),
            Self::AtMost(n) => Self::AtMost(n.min(to)),
        }
    }
}

/// What a run may take, and who says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct MemoryLimit {
    pub bytes: u64,
    pub by: &'static str,
}

impl MemoryLimit {
    /// The lowest of what was asked for, of what the cgroup leaves and of what the
    /// machine has.
    pub(crate) fn lowest_of(asked: Option<u64>) -> Option<Self> {
        let limits = [
            (asked, "memory_limit"),
            (cgroup::memory_left(), "the cgroup (memory.max)"),
            (memory::available_bytes(), "the memory available now"),
        ];
        let known = limits
            .into_iter()
            .filter_map(|(bytes, by)| Some(Self { bytes: bytes?, by }));
        known.min_by_key(|l| l.bytes)
    }
}
