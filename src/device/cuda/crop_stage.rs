//! The stage of the crops kernel: pixels as workers decoded them become rows of a
//! batch on the device.
//!
//! In the consumer. A row of a slot is its tables and then its pixels; tables are
//! always copied, pixels are read where they lie or copied first. What is copied
//! comes in two parts of a batch through a stream of its own, so that the copy engine
//! has the second part, or the next batch, while the kernel has the first.

use std::sync::Arc;

use super::context::{Context, Event, Stream};
use super::kernel::{Kernel, Places};
use super::memory::{DeviceBuffer, HostBuffer, Rows};
use super::rows::DeviceRows;
use super::stage::{Kept, Lane, Span, Work};
use crate::device::DeviceTimes;
use crate::device::launch::{KernelEmission, KernelRow, MASKED, Pass};
use crate::error::{Error, Result};
use crate::packing::crop::{MAX_CROP_STEPS, TRANSPOSE};
use crate::recipe::Dtype;
use crate::ring::Ring;
use crate::ring::slots::HeldSlot;

/// Rows of a launch: the third side of a grid.
const MOST_ROWS: usize = 65_535;
/// What the used width of rows is rounded up to when it is copied.
const COPY_STEP: usize = 64;
/// In which a batch is copied: the kernel works on one while the next is copied.
const PARTS: usize = 2;
/// Batches whose descriptors are on the device.
const TURNS: usize = 2;
/// The kernel reads pixels in vectors of this many bytes.
const VECTOR: u64 = 16;

/// How the kernel gets at the pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Read {
    /// Over the bus, while it runs.
    InPlace,
    /// Out of memory of the device, to which they are copied first.
    Copied,
}

/// Where the rows of a batch lie in their slot.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowPlaces {
    /// Bytes of a row, a multiple of 16: row `i` begins at `i` times this.
    pub(crate) capacity: usize,
    /// Bytes at a row's beginning that its tables lie in.
    pub(crate) tables: usize,
}

impl RowPlaces {
    /// Bytes of a row that are copied at most.
    pub(crate) fn copied(self, pixels_too: bool) -> usize {
        if pixels_too {
            self.capacity
        } else {
            self.tables
        }
    }
}

/// What a stage is made for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CropShape {
    /// Rows of a batch at most.
    pub(crate) rows: usize,
    /// Bytes that are copied of a batch at most, its descriptors apart.
    pub(crate) source_bytes: usize,
    /// Batches that have memory on the device at a time.
    pub(crate) outputs: usize,
    /// Bytes of a batch on the device, full.
    pub(crate) output_bytes: usize,
    pub(crate) dtype: Dtype,
    /// Memory for copied pixels too. Without it only [`Read::InPlace`] is served.
    pub(crate) copies: bool,
}

impl CropShape {
    /// Bytes of the device that a stage takes, the driver's own apart.
    pub(crate) fn device_bytes(&self) -> u64 {
        (self.outputs * self.output_bytes) as u64
            + (self.source_bytes + TURNS * self.descriptor_bytes()) as u64
    }

    fn descriptor_bytes(&self) -> usize {
        self.rows * size_of::<KernelRow>()
    }

    fn check(&self) -> Result<()> {
        if self.rows == 0 || self.rows > MOST_ROWS {
            return Err(Error::config(format!(
                "a batch of {} on a device: between 1 and {MOST_ROWS}",
                self.rows
            )));
        }
        Ok(())
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct CropStage {
    // First: its drop waits for all that is under way.
    lane: Lane,
    kernel: Kernel,
    shape: CropShape,
    /// Of pixels that are copied.
    copies: Stream,
    /// Tables alone, or whole rows.
    source: DeviceBuffer,
    /// The kernels that read the parts of `source` last; the last one is the last of all.
    readers: [Option<Arc<Event>>; PARTS],
    /// Rows of the last batch, and how far apart they lie in `source`: a batch that has
    /// other parts may not be cut where that one was.
    laid: (usize, usize),
    /// In turns, so that those of a batch are copied while the kernel has the last ones.
    descriptors: [DeviceBuffer; TURNS],
    turn: usize,
    /// For descriptors, one for each slot that is not under way.
    spare: Vec<HostBuffer>,
}

impl CropStage {
    /// # Errors
    /// When the ring cannot be pinned, the device has not enough memory, or the driver
    /// cannot load the kernel.
    pub(crate) fn new(context: &Arc<Context>, ring: Arc<Ring>, shape: CropShape) -> Result<Self> {
        shape.check()?;
        let spare = (0..ring.layout().shape().slots)
            .map(|_| HostBuffer::new(context, shape.descriptor_bytes(), "descriptors"));
        let descriptors = || DeviceBuffer::new(context, shape.descriptor_bytes(), "descriptors");
        Ok(Self {
            spare: spare.collect::<Result<_>>()?,
            kernel: Kernel::load(context)?,
            copies: Stream::new(context)?,
            readers: Default::default(),
            laid: (0, 0),
            source: DeviceBuffer::new(context, shape.source_bytes, "rows on their way")?,
            descriptors: [descriptors()?, descriptors()?],
            turn: 0,
            lane: Lane::new(context, ring, shape.outputs, shape.output_bytes)?,
            shape,
        })
    }

    /// Puts a batch on the device: its tables, or all that is used of it, its
    /// descriptors, and one launch, or two where a row takes its mean. Places in `rows`
    /// are bytes behind the slot's beginning.
    ///
    /// # Errors
    /// `SlotsHeld` when every batch of the stage is held (the slot is free again, its
    /// rows lost: ask [`Self::has_room`] first); a device error for a row
    /// that names what is not its own, before anything is done; else a device error
    /// that is the answer to every later call.
    pub(crate) fn submit(
        &mut self,
        slot: impl Into<Arc<HeldSlot>>,
        rows: &[KernelRow],
        places: RowPlaces,
        emission: &KernelEmission,
        read: Read,
    ) -> Result<DeviceRows> {
        let slot = slot.into();
        self.reap()?;
        let (on_device, room) = self.lane.ring.on_device(&slot)?;
        let used = self.used(rows, places, emission, room)?;
        if read == Read::Copied && !self.shape.copies {
            return Err(Error::Device {
                what: "a stage without memory for copied pixels".into(),
            });
        }
        let bytes = rows.len() * emission.elements() * self.shape.dtype.size();
        let output = self.lane.output(bytes)?;
        // As many as slots, and whatever is under way has one of those.
        let mut written = self.spare.pop().ok_or_else(|| Error::Device {
            what: "more batches under way than the ring has slots".into(),
        })?;
        let pitch = places.copied(read == Read::Copied);
        if rows.len() * pitch > self.shape.source_bytes {
            return Err(Error::Device {
                what: format!(
                    "{} rows of {pitch} bytes to be copied, and room for {} of all",
                    rows.len(),
                    self.shape.source_bytes
                ),
            });
        }
        let descriptors_len = size_of_val(rows);
        let room = written.bytes_mut()[..descriptors_len].chunks_exact_mut(size_of::<KernelRow>());
        for ((i, row), to) in rows.iter().enumerate().zip(room) {
            let mut row = *row;
            if row.flags & MASKED == 0 {
                // `used` saw that it lies in the row's part.
                let within = row.tables - (i * places.capacity) as u64;
                row.tables = (i * pitch) as u64 + within;
            }
            to.copy_from_slice(bytemuck::bytes_of(&row));
        }
        let passes: &[Pass] = match rows.iter().any(KernelRow::takes_mean) {
            true => &[Pass::Sums, Pass::Rows],
            false => &[Pass::Rows],
        };
        let (width, parts) = match read {
            Read::InPlace => (places.tables, 1),
            Read::Copied => (
                used.next_multiple_of(COPY_STEP).min(places.capacity),
                PARTS.min(rows.len()),
            ),
        };
        let kept = Kept {
            slot,
            descriptors: Some(written),
        };
        let Self {
            lane,
            kernel,
            copies,
            source,
            readers,
            laid,
            descriptors,
            turn,
            ..
        } = self;
        *turn = (*turn + 1) % TURNS;
        let descriptors = &descriptors[*turn];
        let same_parts = std::mem::replace(laid, (rows.len(), pitch)) == (rows.len(), pitch);
        let row_bytes = bytes / rows.len();
        lane.run(kept, output, bytes, |lane, kept, out| {
            let from = kept.slot.bytes().as_ptr();
            let mut work = Work::default();
            // In place nothing is gained by a second stream.
            let copies = match read {
                Read::InPlace => &*lane.stream,
                Read::Copied => &*copies,
            };
            for part in 0..parts {
                let (first, end) = (part * rows.len() / parts, (part + 1) * rows.len() / parts);
                let count = end - first;
                // Kernels are in one stream, in order: who waits for the last has waited
                // for all.
                let reader = if same_parts { part } else { PARTS - 1 };
                if read == Read::Copied
                    && let Some(reader) = &readers[reader]
                {
                    copies.wait_for(reader)?;
                }
                if part == 0
                    && let Some(written) = &kept.descriptors
                {
                    // SAFETY: `written` is kept by `Lane::run`, unwritten, until the event
                    // behind this; `descriptors` was read last by the kernels of the batch
                    // before the last one, which came before those that this stream has waited
                    // for, or has in front.
                    let put =
                        || unsafe { copies.upload(descriptors, written.as_ptr(), descriptors_len) };
                    work.copies.push(Span::around(copies, put)?);
                }
                let lines = Rows {
                    first,
                    width,
                    count,
                };
                // SAFETY: `used` saw that the rows lie inside of the slot, which is pinned
                // (`on_device`) and kept by `Lane::run`, unwritten, until the event behind
                // this: the kernels' stream waits for these copies, and `drop` for both
                // streams. This part of `source` is read by kernels that were waited for.
                let put =
                    || unsafe { copies.upload_rows(source, pitch, from, places.capacity, lines) };
                let copy = Span::around(copies, put)?;
                if read == Read::Copied {
                    lane.stream.wait_for(copy.ended())?;
                }
                work.copies.push(copy);
                work.copied_bytes += (width * count) as u64;
                let at = Places {
                    tables: source.address(),
                    pixels: match read {
                        Read::InPlace => on_device,
                        Read::Copied => source.address(),
                    },
                    rows: descriptors.address() + (first * size_of::<KernelRow>()) as u64,
                    out: out.address() + (first * row_bytes) as u64,
                };
                // SAFETY: as above; `used` has checked each row against its part of the slot,
                // which lies in `source` the same way; `out` is the output that
                // `Lane::output` gave us alone, large enough, and the stream waits for its
                // earlier readers; a second pass comes behind the first in the stream.
                let put = || unsafe {
                    (passes.iter()).try_for_each(|pass| {
                        kernel.launch(&lane.stream, at, count as u32, *emission, *pass)
                    })
                };
                let kernel = Span::around(&lane.stream, put)?;
                work.kernels.push(kernel);
            }
            for (part, reader) in readers.iter_mut().enumerate() {
                let kernel = work.kernels.get(part).or(work.kernels.last());
                *reader = kernel.map(|kernel| kernel.ended().clone());
            }
            if read == Read::InPlace {
                work.in_place_bytes = pixel_bytes(rows) * passes.len() as u64;
            }
            Ok(work)
        })
    }

    /// The most bytes that a row uses of its part, once all were checked.
    fn used(
        &self,
        rows: &[KernelRow],
        places: RowPlaces,
        emission: &KernelEmission,
        room: usize,
    ) -> Result<usize> {
        if places.tables > places.capacity || !places.capacity.is_multiple_of(VECTOR as usize) {
            return Err(Error::Device {
                what: format!("rows of {places:?}"),
            });
        }
        if rows.is_empty() || rows.len() > self.shape.rows {
            return Err(Error::Device {
                what: format!("{} rows of a batch of {}", rows.len(), self.shape.rows),
            });
        }
        if rows.len() * places.capacity > room {
            return Err(Error::Device {
                what: format!(
                    "{} rows of {} bytes in a slot of {room}",
                    rows.len(),
                    places.capacity
                ),
            });
        }
        let mut most = places.tables;
        for (i, row) in rows.iter().enumerate() {
            let used = used_by(row, i, emission, places).ok_or_else(|| Error::Device {
                what: format!("row {i} of a batch names what is not its own: {row:?}"),
            })?;
            most = most.max(used);
        }
        Ok(most)
    }

    /// Drops the slots that the device has read. Does not wait.
    pub(crate) fn reap(&mut self) -> Result<()> {
        self.lane.reap(&mut self.spare)
    }

    /// Sleeps until the oldest slot under way was read, and drops it; false when there
    /// is none.
    pub(crate) fn wait_one(&mut self) -> Result<bool> {
        self.lane.wait_one(&mut self.spare)
    }

    /// Slots that the device still reads.
    pub(crate) fn under_way(&self) -> usize {
        self.lane.under_way()
    }

    /// True when a batch has memory on the device.
    pub(crate) fn has_room(&self) -> bool {
        self.lane.outputs.has_free()
    }

    pub(crate) fn times(&self) -> DeviceTimes {
        self.lane.times()
    }

    pub(crate) fn pinned_bytes(&self) -> usize {
        self.lane.ring.bytes()
    }
}

impl Drop for CropStage {
    fn drop(&mut self) {
        // Of a batch that failed half way nobody has waited for its copies; the slots go
        // with `lane`.
        self.copies.drain();
    }
}

/// Bytes of RGB of all rows that were checked.
fn pixel_bytes(rows: &[KernelRow]) -> u64 {
    let held = rows.iter().filter(|row| row.flags & MASKED == 0);
    held.map(|row| 3 * u64::from(row.width) * u64::from(row.height))
        .sum()
}

/// Bytes of its part that row `i` uses; none when it names anything outside of its
/// part, or is no row of the batch's size. What the kernel relies on.
fn used_by(
    row: &KernelRow,
    i: usize,
    emission: &KernelEmission,
    places: RowPlaces,
) -> Option<usize> {
    if row.flags & MASKED != 0 {
        return Some(0);
    }
    let (height, width) = emission.size();
    let stored = match row.flags & TRANSPOSE {
        0 => (row.out_height, row.out_width),
        _ => (row.out_width, row.out_height),
    };
    if stored != (height, width) || row.steps as usize > MAX_CROP_STEPS || row.grey != 0 {
        return None;
    }
    if row.width == 0 || row.height == 0 || row.across_taps == 0 || row.down_taps == 0 {
        return None;
    }
    let begin = (i * places.capacity) as u64;
    let axis = |outputs: u32, taps: u32| u64::from(outputs).checked_mul(4 * (1 + u64::from(taps)));
    let tables = row.tables.checked_sub(begin)?;
    let tables_end = tables
        .checked_add(axis(row.out_width, row.across_taps)?)?
        .checked_add(axis(row.out_height, row.down_taps)?)?;
    if !tables.is_multiple_of(4) || tables_end > places.tables as u64 {
        return None;
    }
    let pixels = row.pixels.checked_sub(begin)?;
    let bytes = u64::from(row.width)
        .checked_mul(u64::from(row.height))?
        .checked_mul(3)?;
    // Vectors begin up to 15 bytes before the pixels, and end as far behind them.
    let end = pixels
        .checked_add(bytes)?
        .checked_next_multiple_of(VECTOR)?;
    if pixels < VECTOR || end > places.capacity as u64 {
        return None;
    }
    usize::try_from(end).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packing::crop::FLIP_X;
    use crate::recipe::{ColorOrder, Emission, MemoryLayout};

    fn emission() -> KernelEmission {
        KernelEmission::new(
            &Emission {
                unit: 255.0,
                mean: [0.0; 3],
                std: [1.0; 3],
                dtype: Dtype::F32,
                layout: MemoryLayout::Nchw,
                order: ColorOrder::Rgb,
            },
            (4, 8),
        )
    }

    fn shape() -> CropShape {
        CropShape {
            rows: 2,
            source_bytes: 2048,
            outputs: 1,
            output_bytes: 2 * 4 * 8 * 3 * 4,
            dtype: Dtype::F32,
            copies: true,
        }
    }

    const PLACES: RowPlaces = RowPlaces {
        capacity: 1024,
        tables: 256,
    };

    /// The second row of a batch: 8 x 4 out of 16 x 16, with tables of 12 x 4 x 3 bytes.
    fn row() -> KernelRow {
        KernelRow {
            pixels: 1024 + 256,
            tables: 1024,
            width: 16,
            height: 16,
            across_taps: 2,
            down_taps: 2,
            out_width: 8,
            out_height: 4,
            flags: FLIP_X,
            ..KernelRow::default()
        }
    }

    #[test]
    fn a_row_inside_of_its_part_is_measured() {
        let used = |row: &KernelRow| used_by(row, 1, &emission(), PLACES);
        assert_eq!(used(&row()), Some(1024));
        let turned = KernelRow {
            flags: TRANSPOSE,
            out_width: 4,
            out_height: 8,
            ..row()
        };
        assert_eq!(used(&turned), Some(1024));
        let masked = KernelRow {
            flags: MASKED,
            pixels: u64::MAX,
            ..row()
        };
        assert_eq!(used(&masked), Some(0));
    }

    #[test]
    fn what_is_not_its_own_is_refused() {
        for wrong in [
            KernelRow {
                pixels: 1023,
                ..row()
            },
            KernelRow {
                pixels: 1024 + 15,
                ..row()
            },
            KernelRow {
                pixels: 1024 + 257,
                ..row()
            },
            KernelRow {
                pixels: u64::MAX,
                ..row()
            },
            KernelRow {
                tables: 1020,
                ..row()
            },
            KernelRow {
                tables: 1025,
                ..row()
            },
            KernelRow {
                tables: 1024 + 116,
                ..row()
            },
            KernelRow { width: 0, ..row() },
            KernelRow {
                height: 17,
                ..row()
            },
            KernelRow {
                width: u32::MAX,
                height: u32::MAX,
                ..row()
            },
            KernelRow {
                across_taps: 0,
                ..row()
            },
            KernelRow {
                down_taps: u32::MAX,
                ..row()
            },
            KernelRow {
                out_width: 9,
                ..row()
            },
            KernelRow {
                flags: TRANSPOSE,
                ..row()
            },
            KernelRow {
                steps: MAX_CROP_STEPS as u32 + 1,
                ..row()
            },
            KernelRow { grey: 1, ..row() },
        ] {
            assert_eq!(used_by(&wrong, 1, &emission(), PLACES), None, "{wrong:?}");
        }
    }

    #[test]
    fn shapes_that_cannot_be_launched_are_refused() {
        assert!(shape().check().is_ok());
        for rows in [0, 65_536] {
            let wrong = CropShape { rows, ..shape() };
            assert!(wrong.check().is_err(), "{wrong:?}");
        }
    }
}
